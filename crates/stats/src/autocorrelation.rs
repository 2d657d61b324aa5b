//! How much a round resembles the one before it.

use super::moments::mean_of;

/// The fewest values of a series that shows any.
const FEWEST: usize = 3;
/// The autocorrelation of all targets together counts from this many standard errors on.
pub(crate) const MIN_Z_POOLED: f64 = 1.3;
/// The autocorrelation of one pair counts from this many standard errors on.
pub(crate) const MIN_Z_PAIR: f64 = 2.0;
/// The largest autocorrelation that is reckoned with.
const LARGEST: f64 = 0.95;
/// The variance of logarithms below which values differ by nothing but rounding.
const ROUNDING: f64 = 1e-24;

/// An estimate of the first-order autocorrelation, from series of `rounds` rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Autocorrelation {
    pub corrected: f64,
    /// Standard errors away from none.
    pub z: f64,
}

impl Autocorrelation {
    const NONE: Autocorrelation = Autocorrelation { corrected: 0.0, z: 0.0 };

    /// In a series of n values about their own mean, the estimate is (1 + 3r)/n too low where r is
    /// the truth (Kendall 1954), and its standard error is (n-2)/(n sqrt(n-1)) where r is 0 (Moran
    /// 1948). The estimate is the mean of `series` independent ones.
    pub(crate) fn new(estimate: f64, rounds: usize, series: f64) -> Autocorrelation {
        let n = rounds as f64;
        if rounds < 4 {
            return Autocorrelation::NONE;
        }
        let corrected = ((n * estimate + 1.0) / (n - 3.0)).clamp(0.0, LARGEST);
        let error = (n - 2.0) / (n * (n - 1.0).sqrt()) / series.max(1.0).sqrt();
        Autocorrelation { corrected, z: (estimate + 1.0 / n) / error }
    }

    /// The estimate from the rows of several targets that have all rounds, less what each round
    /// does to all: the sum of all products over that of all squares, so that a target that
    /// scatters more weighs more, and counts for as many series as are as loud.
    pub(crate) fn pooled(rows: &[&[f64]]) -> Autocorrelation {
        let (many, rounds) = (rows.len() as f64, rows.first().map_or(0, |row| row.len()));
        let of_round = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>() / many;
        let common: Vec<f64> = (0..rounds).map(of_round).collect();
        let own =
            |row: &&[f64]| products_and_squares(&row.iter().zip(&common).map(|(a, b)| a - b).collect::<Vec<f64>>());
        let found: Vec<(f64, f64)> = rows.iter().map(own).collect();
        let sum = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).sum::<f64>();
        let (products, squares, fourth) = (sum(|own| own.0), sum(|own| own.1), sum(|own| own.1.powi(2)));
        if rows.len() < 2 || squares <= ROUNDING * rounds as f64 {
            return Autocorrelation::NONE;
        }
        Autocorrelation::new(products / squares, rounds, squares * squares / fourth * (many - 1.0) / many)
    }

    /// 0 where it is fewer standard errors away from none.
    pub(crate) fn at_least(self, z: f64) -> f64 {
        if self.z >= z { self.corrected } else { 0.0 }
    }
}

/// The factor by which rounds that resemble those before them widen an interval: from series that
/// drift together.
pub(crate) fn widening(series: &[Vec<f64>]) -> f64 {
    let long: Vec<&Vec<f64>> = series.iter().filter(|values| values.len() >= FEWEST).collect();
    let rounds = long.iter().map(|values| values.len()).min().unwrap_or(0);
    let estimate = long.iter().map(|values| autocorrelation(values)).sum::<f64>() / long.len().max(1) as f64;
    let correlation = Autocorrelation::new(estimate, rounds, 1.0).at_least(MIN_Z_POOLED);
    ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// Autocorrelation of the first order, about the mean of the values; 0 where they are all alike.
pub(crate) fn autocorrelation(values: &[f64]) -> f64 {
    let (products, squares) = products_and_squares(values);
    if squares > ROUNDING * values.len() as f64 { products / squares } else { 0.0 }
}

/// Sums over a series about its mean: of each value times the one after it, and of squares.
fn products_and_squares(values: &[f64]) -> (f64, f64) {
    let mean = mean_of(values);
    let products = values.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    (products, values.iter().map(|value| (value - mean).powi(2)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: deviations -1.5, -0.5, 0.5, 1.5 have products 0.75, -0.25, 0.75 and squares 5.
    #[test]
    fn a_series_resembles_itself_one_round_later() {
        assert!((autocorrelation(&[1.0, 2.0, 3.0, 4.0]) - 0.25).abs() < 1e-12);
        assert!((autocorrelation(&[1.0, -1.0, 1.0, -1.0]) + 0.75).abs() < 1e-12);
        assert_eq!(autocorrelation(&[2.0; 5]), 0.0);
    }

    #[test]
    fn a_correction_needs_four_rounds_and_stays_below_one() {
        assert_eq!(Autocorrelation::new(0.5, 3, 1.0).corrected, 0.0);
        let found = Autocorrelation::new(0.9, 10, 4.0);
        assert_eq!((found.corrected, found.at_least(100.0)), (LARGEST, 0.0));
        assert!((Autocorrelation::new(0.2, 23, 1.0).corrected - 5.6 / 20.0).abs() < 1e-12);
    }
}
