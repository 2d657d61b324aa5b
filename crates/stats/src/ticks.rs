//! Times of a coarse clock: what they were rounded by is in every bound.

/// How much a ratio of two values may be off, as a logarithm, because all are whole multiples of a
/// coarse unit: the unit over the least value, as each of the two is off by half a unit at most.
/// The unit is the largest that divides all of them: where all readings are alike, nothing shows a
/// finer one. 0 of values that are no whole numbers.
pub fn tick(series: &[Vec<f64>]) -> f64 {
    let whole = |value: &f64| (value.round() - value).abs() < 1e-6 && *value >= 1.0 && *value < 2f64.powi(53);
    if !series.iter().flatten().all(whole) {
        return 0.0;
    }
    let all = || series.iter().flatten().map(|value| value.round() as u64);
    (all().fold(0, common_divisor) as f64 / all().min().unwrap_or(1) as f64).ln_1p()
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::Noise;

    #[test]
    fn a_tick_is_what_divides_all_values() {
        let off = |unit: f64, least: f64| (unit / least).ln_1p();
        let cases: [(&[&[f64]], f64); 5] = [
            (&[&[9e7, 1e8, 1e8, 1e8], &[1.1e8, 1.1e8, 1e8, 1e8]], off(1e7, 9e7)),
            (&[&[9e7, 1e8, 1.1e8, 1.2e8]], off(1e7, 9e7)),
            (&[&[1e8; 4], &[2e8; 4]], off(1e8, 1e8)),
            (&[&[0.5, 1.5, 0.5, 0.5]], 0.0),
            (&[], 0.0),
        ];
        for (series, wanted) in cases {
            let series: Vec<Vec<f64>> = series.iter().map(|values| values.to_vec()).collect();
            assert!((tick(&series) - wanted).abs() < 1e-12, "{series:?}: {}", tick(&series));
        }
    }

    /// A tick of nanoseconds is next to nothing.
    #[test]
    fn a_fine_clock_has_no_tick() {
        let mut noise = Noise::new(3);
        let mut times = || (0..8).map(|_| (1e9 * (0.01 * noise.normal()).exp()).round()).collect::<Vec<f64>>();
        assert!(tick(&[times(), times()]) < 1e-8);
    }
}
