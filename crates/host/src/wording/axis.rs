//! Intervals of ratios side by side on one logarithmic axis, in the letters of a terminal:
//! `├──●──┤`.

/// Ratios that differ by less than this fill no axis: noise would look like a difference.
const LEAST: f64 = 0.02;
/// An end that is further beyond all centres than this ratio is cut, and drawn as an arrow.
const BEYOND: f64 = 2.0;

/// One axis for all rows of a table, on which 1 has a place.
pub(crate) struct Axis {
    /// Logarithms of the ratios at both ends.
    low: f64,
    high: f64,
    width: usize,
}

impl Axis {
    /// For ratios with the bounds of their intervals: low, centre, high.
    pub(crate) fn new(ratios: impl Iterator<Item = [f64; 3]>, width: usize) -> Axis {
        let rows: Vec<[f64; 3]> = ratios.map(|row| row.map(f64::ln)).collect();
        let centres = rows.iter().map(|row| row[1]).filter(|log| log.is_finite());
        let (low, high) = centres.fold((-LEAST, LEAST), |(low, high), log| (log.min(low), log.max(high)));
        // What nothing bounds takes no room from the others.
        let ends = rows.iter().flat_map(|row| [row[0], row[2]]).filter(|log| log.is_finite());
        let (least, most) = (low - BEYOND.ln(), high + BEYOND.ln());
        let (low, high) = ends.fold((low, high), |(low, high), log| (log.clamp(least, low), log.clamp(high, most)));
        Axis { low, high, width: width.max(3) }
    }

    fn place(&self, ratio: f64) -> usize {
        let share = (ratio.max(1e-9).ln() - self.low) / (self.high - self.low);
        (share.clamp(0.0, 1.0) * (self.width - 1) as f64).round() as usize
    }

    /// A target's interval; without one, its place alone.
    pub(crate) fn drawn(&self, [low, centre, high]: [f64; 3]) -> String {
        let mut line = vec![' '; self.width];
        line[self.place(1.0)] = '┊';
        let (first, last) = (self.place(low), self.place(high));
        if last > first {
            line[first..=last].fill('─');
            line[first] = if low.ln() < self.low { '◂' } else { '├' };
            line[last] = if high.ln() > self.high { '▸' } else { '┤' };
        }
        line[self.place(centre)] = '●';
        line.into_iter().collect()
    }

    /// "−13 %      ┊ same          +25 %".
    pub(crate) fn scale(&self) -> String {
        let percent = |log: f64| super::answer::signed_percent(log.exp());
        let mut line = vec![' '; self.width];
        line[self.place(1.0)] = '┊';
        let mut put = |text: String, at: usize| {
            let letters: Vec<char> = text.chars().collect();
            let at = at.min(self.width.saturating_sub(letters.len()));
            let end = (at + letters.len()).min(self.width);
            let is_free = line[at..end].iter().all(|letter| *letter == ' ');
            if is_free {
                line[at..end].copy_from_slice(&letters[..end - at]);
            }
        };
        put(percent(self.low), 0);
        put(percent(self.high), self.width);
        line.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_share_an_axis_on_which_the_reference_has_its_place() {
        let rows = [[0.9, 1.0, 1.2], [1.1, 1.3, 1.5], [1.0, 1.0, 1.0]];
        let axis = Axis::new(rows.into_iter(), 25);
        let drawn: Vec<String> = rows.iter().map(|row| axis.drawn(*row)).collect();
        assert_eq!(
            drawn,
            ["├────●────────┤          ", "     ┊   ├───────●──────┤", "     ●                   "].map(String::from)
        );
        assert_eq!(axis.scale(), "−10 %┊              +50 %");
    }

    #[test]
    fn what_is_far_out_is_cut_and_equals_do_not_fill_the_axis() {
        let axis = Axis::new([[0.2, 1.0, 90.0]].into_iter(), 9);
        assert_eq!(axis.drawn([0.2, 1.0, 90.0]), "◂───●───▸");
        let far = Axis::new([[0.01, 0.08, 4.0]].into_iter(), 9);
        assert_eq!((far.drawn([0.01, 0.08, 4.0]), far.scale()), ("◂●──────▸".into(), "−96 %  ┊ ".into()));
        let unbounded = Axis::new([[0.0, 1.1, f64::INFINITY], [0.8, 1.0, 1.25]].into_iter(), 9);
        assert_eq!(unbounded.drawn([0.8, 1.0, 1.25]), "├───●───┤");
        assert_eq!(unbounded.drawn([0.0, 1.1, f64::INFINITY]), "◂───┊─●─▸".replace('┊', "─"));

        let equal = Axis::new([[0.999, 1.0, 1.001]].into_iter(), 41);
        assert_eq!(equal.drawn([0.999, 1.0, 1.001]).trim(), "├●┤");
    }
}
