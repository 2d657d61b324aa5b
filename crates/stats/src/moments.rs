//! Mean and standard deviation: not what targets are compared by, as one slow round moves them, but
//! what many papers and programs give.

use super::Statistic;

pub(crate) const MEAN: Statistic = Statistic { name: "mean", of: mean };

/// The deviation of the sample, with n - 1 (Bessel); none for a single value.
pub(crate) const STANDARD_DEVIATION: Statistic = Statistic { name: "standard deviation", of: standard_deviation };

pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| mean_of(values))
}

/// Of at least one value.
pub(crate) fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    variance(values).map(f64::sqrt)
}

/// Of the sample, in the square of the unit of the values; none for a single value.
pub(crate) fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (values.len() > 1).then(|| squares / (values.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!((mean(&values), standard_deviation(&values)), (Some(5.0), Some((32.0f64 / 7.0).sqrt())));
        assert_eq!((mean(&[3.0]), standard_deviation(&[3.0]), mean(&[])), (Some(3.0), None, None));
    }
}
