//! One effect measured on several machines: its mean over machines like these, and how much they
//! differ.
//!
//! The model is that of random effects: each machine has its own effect, measured with its own
//! error. The variance between machines is that of DerSimonian & Laird (1986). The interval is that
//! of Hartung & Knapp (2001), which with few machines holds what it promises, with the correction
//! of Knapp & Hartung (2003): it is never narrower than that of equal machines. Heterogeneity is
//! Cochran's Q (1954) and I² (Higgins & Thompson 2002).

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// What one machine shows: a natural logarithm of a ratio, and the variance of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub effect: f64,
    pub variance: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomEffects {
    /// The mean over machines, a natural logarithm of a ratio.
    pub mean: f64,
    /// The interval of the mean; `None` below [`FEWEST`] machines.
    pub interval: Option<(f64, f64)>,
    /// Standard deviation between machines, without the errors of measurement.
    pub tau: f64,
    /// Share of the variance that is between machines, 0 to 1.
    pub i_squared: f64,
    /// The chance of so much difference between equal machines; `None` of one machine.
    pub p_equal: Option<f64>,
    pub n: usize,
}

/// Two machines leave one degree of freedom: its interval spans everything.
pub const FEWEST: usize = 3;

/// No machine is so steady that others count for nothing: times are whole nanoseconds.
const LEAST_VARIANCE: f64 = 1e-12;

/// `level` is that of the interval, 0 to 1. `None` of nothing, and of what is no number.
pub fn random_effects(machines: &[Measured], level: f64) -> Option<RandomEffects> {
    let is_number = |one: &Measured| one.effect.is_finite() && one.variance.is_finite() && one.variance >= 0.0;
    if machines.is_empty() || !machines.iter().all(is_number) {
        return None;
    }
    let variances: Vec<f64> = machines.iter().map(|one| one.variance.max(LEAST_VARIANCE)).collect();
    let weighted = |weights: &[f64]| {
        let sum: f64 = weights.iter().sum();
        let mean = weights.iter().zip(machines).map(|(weight, one)| weight * one.effect).sum::<f64>() / sum;
        let squares = weights.iter().zip(machines).map(|(weight, one)| weight * (one.effect - mean).powi(2)).sum();
        (sum, mean, squares)
    };
    let fixed: Vec<f64> = variances.iter().map(|variance| 1.0 / variance).collect();
    let (sum, _, q): (f64, f64, f64) = weighted(&fixed);
    let freedom = machines.len() as f64 - 1.0;
    let scale = sum - fixed.iter().map(|weight| weight * weight).sum::<f64>() / sum;
    let between = if machines.len() > 1 { ((q - freedom) / scale).max(0.0) } else { 0.0 };
    let weights: Vec<f64> = variances.iter().map(|variance| 1.0 / (variance + between)).collect();
    let (sum, mean, squares) = weighted(&weights);
    let interval = (machines.len() >= FEWEST).then(|| {
        let error = ((squares / freedom).max(1.0) / sum).sqrt();
        let t = StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf((1.0 + level) / 2.0));
        (mean - t * error, mean + t * error)
    });
    Some(RandomEffects {
        mean,
        interval,
        tau: between.sqrt(),
        i_squared: if q > freedom { (q - freedom) / q } else { 0.0 },
        p_equal: ChiSquared::new(freedom).ok().map(|chi| chi.sf(q)),
        n: machines.len(),
    })
}

/// The variance that an interval of this half width and level stands for (Higgins et al., Cochrane
/// Handbook, 6.5.2.2).
pub fn variance_of(half_width: f64, level: f64) -> f64 {
    (half_width / Normal::standard().inverse_cdf((1.0 + level) / 2.0)).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::Noise;

    fn near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
    }

    /// Thirteen trials of the BCG vaccine (Colditz et al. 1994) as the manual of the R package
    /// metafor has them, and what it prints for `rma(yi, vi, method="DL")`; the interval is from
    /// the formula, in Python.
    #[test]
    fn a_textbook_example() {
        let effects = [
            -0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694, -1.3713, -0.3394, 0.4459,
            -0.0173,
        ];
        let variances =
            [0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325, 0.0714];
        let trials: Vec<Measured> =
            effects.into_iter().zip(variances).map(|(effect, variance)| Measured { effect, variance }).collect();
        let found = random_effects(&trials, 0.95).unwrap();
        near(found.mean, -0.7141, 0.002);
        near(found.tau.powi(2), 0.3088, 0.002);
        near(found.i_squared, 0.9212, 0.001);
        assert!(found.p_equal.is_some_and(|p| p < 1e-20) && found.n == 13, "{found:?}");
        let (low, high) = found.interval.unwrap();
        near(low, -1.1078, 0.0005);
        near(high, -0.3204, 0.0005);
    }

    #[test]
    fn equal_machines_and_few_of_them() {
        let one = Measured { effect: 0.1, variance: 0.0001 };
        let two = random_effects(&[one, one], 0.95).unwrap();
        assert_eq!((two.interval, two.tau, two.i_squared, two.n), (None, 0.0, 0.0, 2));
        near(two.mean, 0.1, 1e-12);
        // Student's t with two degrees of freedom at 97.5 %: 4.303.
        let (low, high) = random_effects(&[one; 3], 0.95).unwrap().interval.unwrap();
        near(high - 0.1, 4.303 * (0.0001f64 / 3.0).sqrt(), 1e-5);
        near(low + high, 0.2, 1e-12);
        assert_eq!(random_effects(&[one], 0.95).unwrap().p_equal, None);
        assert_eq!(random_effects(&[], 0.95), None);
        assert_eq!(random_effects(&[Measured { effect: f64::NAN, variance: 1.0 }], 0.95), None);
        assert!(random_effects(&[Measured { variance: 0.0, ..one }; 3], 0.95).is_some());
    }

    #[test]
    fn an_interval_stands_for_its_variance() {
        near(variance_of(1.959964, 0.95), 1.0, 1e-6);
    }

    /// The interval holds the truth about as often as it says, also of three machines that differ
    /// more than they scatter.
    #[test]
    fn the_interval_covers() {
        let mut noise = Noise::new(7);
        for (machines, between) in [(3, 0.0), (3, 0.05), (6, 0.05)] {
            let runs = 2000;
            let mut holds = 0;
            for _ in 0..runs {
                let one = |noise: &mut Noise| {
                    let error = 0.005 + 0.01 * noise.uniform();
                    let effect = 0.1 + between * noise.normal() + error * noise.normal();
                    Measured { effect, variance: error * error }
                };
                let all: Vec<Measured> = (0..machines).map(|_| one(&mut noise)).collect();
                let (low, high) = random_effects(&all, 0.95).unwrap().interval.unwrap();
                holds += u32::from(low <= 0.1 && 0.1 <= high);
            }
            let share = f64::from(holds) / f64::from(runs);
            assert!(share > 0.93, "{machines} machines, {between} between them: {share}");
        }
    }
}
