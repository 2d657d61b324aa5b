//! Estimates from sampled files what all files would take, with an interval. Pure: tables of
//! numbers in, numbers out.
//!
//! The sample has two stages (Cochran, Sampling Techniques, 1977, chapters 6, 7 and 11). Files are
//! drawn from each stratum, which is files of one kind and range of sizes. The total is that of a
//! line through what they take by their size. The line goes through zero for a few files and is
//! free for several, as zfs takes as much for 130 KiB as for 250. The first piece of a large file
//! is always taken and others are drawn. What is taken whole adds no variance. Degrees of freedom
//! are Satterthwaite's (1946).
//!
//! A few files may be alike by chance, so the variance of a stratum is drawn towards that of all,
//! in relation to size, as if that had been seen in [`BORROWED`] further files.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Degrees of freedom that each stratum has of all others.
const BORROWED: f64 = 2.0;
/// From this number of files on, the line need not go through zero.
const FREE_LINE: usize = 8;
/// Relative deviation where nothing is known of any: what shares between 0 and 1 have at most,
/// about.
const UNKNOWN: f64 = 0.5;

/// An estimated amount of a file, and the variance of that: zero for one that was read whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    pub bytes: f64,
    pub variance: f64,
}

/// A file that was drawn: its apparent size, and what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Drawn {
    pub size: f64,
    pub amount: Amount,
}

/// Files of one kind and range of sizes, and the sample drawn from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stratum {
    pub files: f64,
    pub bytes: f64,
    pub drawn: Vec<Drawn>,
}

/// A total, and half the width of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    pub bytes: f64,
    pub half_width: f64,
}

impl Estimate {
    /// The lower and the upper end; nothing is below zero.
    pub fn interval(&self) -> (f64, f64) {
        ((self.bytes - self.half_width).max(0.0), self.bytes + self.half_width)
    }
}

/// What a stratum adds to the total and its variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub bytes: f64,
    /// As not all files are drawn.
    pub between: f64,
    /// As not all pieces of drawn files are.
    pub within: f64,
    freedom: f64,
}

/// Estimates what a file with `data` bytes of data takes, from its first piece and the others that
/// were drawn of `count`. A pair is a piece's bytes and what is stored for it.
pub(crate) fn of_file(data: f64, count: usize, pieces: &[(f64, f64)]) -> Amount {
    let Some(((head, stored), drawn)) = pieces.split_first() else { return Amount::default() };
    if pieces.len() >= count {
        return Amount { bytes: pieces.iter().map(|piece| piece.1).sum(), variance: 0.0 };
    }
    let (n, all) = (drawn.len() as f64, count as f64 - 1.0);
    let ratio = sum(drawn, |piece| piece.1) / sum(drawn, |piece| piece.0).max(1.0);
    let squares = sum(drawn, |piece| (piece.1 - ratio * piece.0).powi(2));
    let rest = data - head;
    let spread = if n < 2.0 { (UNKNOWN * rest / all).powi(2) } else { squares / (n - 1.0) };
    Amount { bytes: stored + ratio * rest, variance: all * all * (1.0 - n / all) * spread / n.max(1.0) }
}

/// What each stratum adds.
pub(crate) fn parts(strata: &[Stratum]) -> Vec<Part> {
    let everywhere = Everywhere::of(strata);
    strata.iter().map(|stratum| stratum.part(&everywhere)).collect()
}

/// The total, with an interval.
pub(crate) fn total(parts: &[Part]) -> Estimate {
    let variance = |part: &Part| part.between + part.within;
    let all = sum(parts, variance);
    let bytes = sum(parts, |part| part.bytes);
    if all <= 0.0 {
        return Estimate { bytes, half_width: 0.0 };
    }
    let freedom = all * all / sum(parts, |part| variance(part).powi(2) / part.freedom.max(1.0));
    let quantile = StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(1.96, |t| t.inverse_cdf(0.975));
    Estimate { bytes, half_width: quantile * all.sqrt() }
}

/// What is known of strata of which too little is known.
struct Everywhere {
    ratio: f64,
    /// Variance of the deviation in relation to the mean size.
    variance: f64,
    /// The same of whole strata's ratios.
    ratios: f64,
}

impl Everywhere {
    fn of(strata: &[Stratum]) -> Everywhere {
        let known: Vec<&Stratum> = strata.iter().filter(|stratum| stratum.size() > 0.0).collect();
        let ratio = sum(&known, |s| s.ratio() * s.bytes) / sum(&known, |s| s.bytes).max(1.0);
        let several: Vec<&Stratum> = known.iter().copied().filter(|stratum| stratum.drawn.len() > 1).collect();
        let freedom = sum(&several, |s| s.squares().1);
        let squares = sum(&several, |s| s.squares().0 / s.mean_size().powi(2));
        let variance = if freedom > 0.0 { squares / freedom } else { UNKNOWN * UNKNOWN };
        let apart = sum(&known, |s| (s.ratio() - ratio).powi(2)) / (known.len() as f64 - 1.0).max(1.0);
        Everywhere { ratio, variance, ratios: if known.len() > 1 { apart } else { UNKNOWN * UNKNOWN } }
    }
}

impl Stratum {
    fn count(&self) -> f64 {
        self.drawn.len() as f64
    }

    fn size(&self) -> f64 {
        sum(&self.drawn, |drawn| drawn.size)
    }

    fn mean_size(&self) -> f64 {
        self.size() / self.count()
    }

    fn ratio(&self) -> f64 {
        sum(&self.drawn, |drawn| drawn.amount.bytes) / self.size()
    }

    /// What a byte more takes, on the line; and what the line takes from the data apart from the
    /// mean.
    fn slope(&self) -> (f64, f64) {
        let (x, y) = (self.mean_size(), sum(&self.drawn, |drawn| drawn.amount.bytes) / self.count());
        let across = sum(&self.drawn, |drawn| (drawn.size - x).powi(2));
        if self.drawn.len() < FREE_LINE || across <= 0.0 {
            return (self.ratio(), 1.0);
        }
        (sum(&self.drawn, |drawn| (drawn.size - x) * (drawn.amount.bytes - y)) / across, 2.0)
    }

    /// The sum over all files by the line.
    fn total(&self) -> f64 {
        let mean = self.size() * self.ratio() / self.count();
        (self.files * mean + self.slope().0 * (self.bytes - self.files * self.mean_size())).max(0.0)
    }

    /// Sum of squares of the deviations from the line, and how many of these are free.
    fn squares(&self) -> (f64, f64) {
        let (x, y) = (self.mean_size(), self.ratio() * self.mean_size());
        let (slope, taken) = self.slope();
        let squares = sum(&self.drawn, |drawn| (drawn.amount.bytes - y - slope * (drawn.size - x)).powi(2));
        (squares, self.count() - taken)
    }

    fn part(&self, everywhere: &Everywhere) -> Part {
        let n = self.count();
        if self.size() <= 0.0 {
            let between = everywhere.ratios * self.bytes.powi(2);
            return Part { bytes: everywhere.ratio * self.bytes, between, within: 0.0, freedom: 1.0 };
        }
        let (squares, free) = self.squares();
        let freedom = free + BORROWED;
        let spread = (squares + BORROWED * everywhere.variance * self.mean_size().powi(2)) / freedom;
        let between = self.files * self.files * (1.0 - n / self.files).max(0.0) * spread / n;
        let within = self.files / n * sum(&self.drawn, |drawn| drawn.amount.variance);
        Part { bytes: self.total(), between, within, freedom }
    }
}

fn sum<T>(items: &[T], of: impl Fn(&T) -> f64) -> f64 {
    items.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::random::Random;

    fn drawn(size: f64, bytes: f64) -> Drawn {
        Drawn { size, amount: Amount { bytes, variance: 0.0 } }
    }

    #[test]
    fn what_is_taken_whole_is_exact() {
        let whole = Stratum { files: 2.0, bytes: 30.0, drawn: vec![drawn(10.0, 2.0), drawn(20.0, 19.0)] };
        assert_eq!(total(&parts(&[whole])), Estimate { bytes: 21.0, half_width: 0.0 });
        assert_eq!(of_file(25.0, 2, &[(20.0, 3.0), (5.0, 5.0)]), Amount { bytes: 8.0, variance: 0.0 });
        assert_eq!(total(&parts(&[])), Estimate::default());
    }

    #[test]
    fn a_file_is_its_head_and_the_ratio_of_the_others() {
        // 10 for the head, and 0.5 of the other 400; deviations of -10, 0 and 10, three of four
        // drawn.
        let pieces = [(100.0, 10.0), (100.0, 40.0), (100.0, 50.0), (100.0, 60.0)];
        let expected = 4.0 * 4.0 * (1.0 - 3.0 / 4.0) * 100.0 / 3.0;
        assert_eq!(of_file(500.0, 5, &pieces), Amount { bytes: 210.0, variance: expected });
    }

    #[test]
    fn a_total_by_hand() {
        // 100 files of 10 bytes; of four drawn 4, 4, 6 and 6 are stored: squares 4, borrowed 2 x
        // 4/3.
        let stratum =
            Stratum { files: 100.0, bytes: 1000.0, drawn: [4.0, 4.0, 6.0, 6.0].map(|b| drawn(10.0, b)).into() };
        let parts = parts(&[stratum]);
        let between = 100.0 * 100.0 * 0.96 * (4.0 + 8.0 / 3.0) / 5.0 / 4.0;
        assert_eq!(parts[0].bytes, 500.0);
        assert!((parts[0].between - between).abs() < 1e-9 && parts[0].within == 0.0);
        let total = total(&parts);
        assert!((total.half_width - 2.5706 * between.sqrt()).abs() < 0.01, "{total:?}"); // t for 5 degrees of freedom
    }

    #[test]
    fn what_takes_the_same_whatever_its_size_is_exact_but_for_what_is_borrowed() {
        let files = (0..8).map(|i| drawn(130.0 + 10.0 * f64::from(i), 256.0)).collect();
        let stratum = Stratum { files: 100.0, bytes: 19_000.0, drawn: files };
        let total = total(&parts(&[stratum]));
        assert!((total.bytes - 25_600.0).abs() < 1e-6 && total.half_width < 1e-6, "{total:?}");
    }

    #[test]
    fn a_stratum_that_nobody_saw_is_like_all_others_and_wide() {
        let seen = Stratum { files: 1.0, bytes: 1000.0, drawn: vec![drawn(1000.0, 400.0)] };
        let unseen = Stratum { files: 9.0, bytes: 100.0, drawn: Vec::new() };
        let total = total(&parts(&[seen, unseen]));
        assert!((total.bytes - 440.0).abs() < 1e-9 && total.half_width > 50.0, "{total:?}");
    }

    /// Strata of files whose truth is known: every tenth incompressible, the others by their
    /// stratum's ratio.
    fn truth(random: &mut Random) -> Vec<Vec<(f64, f64)>> {
        let mut file = |stratum: f64| {
            let size = stratum * (1.0 + random.below(1000) as f64 / 1000.0);
            let ratio = 0.2 + random.below(300) as f64 / 1000.0;
            (size, if random.below(10) == 0 { size } else { size * ratio })
        };
        [(1000.0, 400), (8000.0, 150), (60_000.0, 30), (500_000.0, 4)]
            .map(|(size, files)| (0..files).map(|_| file(size)).collect())
            .into()
    }

    #[test]
    fn intervals_hold_the_truth_nineteen_times_of_twenty() {
        let mut random = Random::new(3, 3);
        let (mut held, rounds) = (0, 1000);
        for _ in 0..rounds {
            let tree = truth(&mut random);
            let all: f64 = tree.iter().flatten().map(|file| file.1).sum();
            let strata: Vec<Stratum> = tree.into_iter().map(|files| sampled(files, 24, &mut random)).collect();
            let (low, high) = total(&parts(&strata)).interval();
            held += i32::from(low <= all && all <= high);
        }
        println!("{held} of {rounds}");
        assert!((925..=985).contains(&held), "{held} of {rounds}");
    }

    fn sampled(mut files: Vec<(f64, f64)>, take: usize, random: &mut Random) -> Stratum {
        let (count, bytes) = (files.len() as f64, files.iter().map(|file| file.0).sum());
        let take = take.min(files.len());
        let drawn = (0..take).map(|_| files.swap_remove(random.index(files.len()))).map(|(size, y)| drawn(size, y));
        Stratum { files: count, bytes, drawn: drawn.collect() }
    }
}
