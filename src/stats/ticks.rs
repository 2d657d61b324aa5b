//! Times of a coarse clock: what they were rounded by is in every bound.

/// How much a ratio of two values may be off, as a logarithm, because all are whole multiples of a coarse unit: the unit
/// over the least value, as each of the two is off by half a unit at most. 0 where values do not tie as those of
/// a coarse clock do.
pub fn tick(series: &[Vec<f64>]) -> f64 {
    let whole = |value: &f64| (value.round() - value).abs() < 1e-6 && *value >= 1.0 && *value < 2f64.powi(53);
    let all: Vec<u64> = series.iter().flatten().map(|value| value.round() as u64).collect();
    if !series.iter().flatten().all(whole) || !tie(series) {
        return 0.0;
    }
    let (unit, least) = (all.iter().copied().fold(0, common_divisor), all.iter().copied().min().unwrap_or(1));
    (unit as f64 / least as f64).ln_1p()
}

/// Each value comes twice on average, and some series has several.
fn tie(series: &[Vec<f64>]) -> bool {
    let distinct = |values: &Vec<f64>| {
        let mut bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        bits.sort_unstable();
        bits.dedup();
        bits.len()
    };
    let counts: Vec<usize> = series.iter().map(distinct).collect();
    let all: usize = series.iter().map(Vec::len).sum();
    counts.iter().any(|count| *count > 1) && all >= 2 * counts.iter().sum::<usize>()
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::noise::Noise;

    #[test]
    fn only_values_that_tie_have_a_tick() {
        let off = |unit: f64, least: f64| (unit / least).ln_1p();
        let cases: [(&[&[f64]], f64); 5] = [
            (&[&[9e7, 1e8, 1e8, 1e8], &[1.1e8, 1.1e8, 1e8, 1e8]], off(1e7, 9e7)),
            (&[&[9e7, 1e8, 1.1e8, 1.2e8]], 0.0),
            (&[&[1e8; 4], &[2e8; 4]], 0.0),
            (&[&[0.5, 1.5, 0.5, 0.5]], 0.0),
            (&[], 0.0),
        ];
        for (series, wanted) in cases {
            let series: Vec<Vec<f64>> = series.iter().map(|values| values.to_vec()).collect();
            assert!((tick(&series) - wanted).abs() < 1e-12, "{series:?}: {}", tick(&series));
        }
    }

    /// Of nanoseconds there is none.
    #[test]
    fn a_fine_clock_has_no_tick() {
        let mut noise = Noise::new(3);
        let mut times = || (0..8).map(|_| (1e9 * (0.01 * noise.normal()).exp()).round()).collect::<Vec<f64>>();
        assert_eq!(tick(&[times(), times()]), 0.0);
    }
}
