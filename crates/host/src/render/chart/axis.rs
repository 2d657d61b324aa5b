//! A logarithmic axis of ratios around one.

pub(crate) struct Axis {
    pub left: f64,
    pub right: f64,
    low: f64,
    high: f64,
}

/// A ratio and its interval.
pub(crate) type Span = (f64, Option<(f64, f64)>);

/// Ratios that may be labelled, from fine to coarse.
const TICKS: [&[f64]; 10] = [
    &[0.98, 0.99, 1.0, 1.01, 1.02],
    &[0.9, 0.95, 1.0, 1.05, 1.1],
    &[0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.7, 1.9],
    &[0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0],
    &[0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5],
    &[0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0],
    &[0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0],
    &[0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
    &[0.01, 0.1, 1.0, 10.0, 100.0],
    &[1e-6, 1e-4, 0.01, 1.0, 100.0, 1e4, 1e6],
];

impl Axis {
    /// Wide enough for every interval, for one, and for the band in which differences do not
    /// matter.
    pub(crate) fn around(threshold: f64, found: impl Iterator<Item = Span>, left: f64, right: f64) -> Axis {
        let band = 1.0 + threshold.clamp(0.01, 1.0);
        let (mut low, mut high) = (1.0 / band, band);
        for (ratio, interval) in found {
            let (from, to) = interval.unwrap_or((ratio, ratio));
            low = from.min(ratio).min(low);
            high = to.max(ratio).max(high);
        }
        let (low, high) = (low.clamp(1e-6, 1.0).ln(), high.clamp(1.0, 1e6).ln());
        let air = (high - low) * 0.06;
        Axis { left, right, low: low - air, high: high + air }
    }

    /// Where a ratio lies; what is beyond the axis lies at its end.
    pub(crate) fn at(&self, ratio: f64) -> f64 {
        let share = (ratio.max(1e-9).ln() - self.low) / (self.high - self.low);
        self.left + share.clamp(0.0, 1.0) * (self.right - self.left)
    }

    pub(crate) fn one(&self) -> f64 {
        self.at(1.0)
    }

    pub(crate) fn band(&self, threshold: f64) -> (f64, f64) {
        (self.at(1.0 / (1.0 + threshold)), self.at(1.0 + threshold))
    }

    /// The finest labels that leave room for each other, and no long stretch without any; `room` is
    /// what a label needs, in the unit of the axis.
    pub(crate) fn ticks(&self, room: f64) -> Vec<(f64, String)> {
        let choices = TICKS.iter().map(|ratios| self.ticks_at(ratios));
        let fitting = choices.into_iter().find(|ticks| self.is_legible(ticks, room));
        fitting.unwrap_or_else(|| vec![(self.one(), "×1".to_string())])
    }

    fn is_legible(&self, ticks: &[(f64, String)], room: f64) -> bool {
        let apart = ticks.windows(2).all(|pair| pair[1].0 - pair[0].0 >= room);
        let longest = (self.right - self.left) * 0.5;
        let (first, last) = (ticks.first().map_or(0.0, |tick| tick.0), ticks.last().map_or(0.0, |tick| tick.0));
        apart && first - self.left <= longest && self.right - last <= longest
    }

    fn ticks_at(&self, ratios: &[f64]) -> Vec<(f64, String)> {
        let inside = ratios.iter().filter(|ratio| (self.low..=self.high).contains(&ratio.ln()));
        inside.map(|&ratio| (self.at(ratio), ratio_label(ratio))).collect()
    }
}

/// "×1.25".
pub(crate) fn ratio_label(ratio: f64) -> String {
    let text = if ratio < 0.1 { format!("{ratio:.6}") } else { format!("{ratio:.2}") };
    format!("×{}", text.trim_end_matches('0').trim_end_matches('.'))
}
