//! How often something may happen that was seen seldom, or never.

use statrs::distribution::{Beta, ContinuousCDF};

/// The largest share that events may have of which `seen` occurred in `trials` trials: a one-sided
/// bound with this error (Clopper and Pearson 1934). For 0 of n and 5 % it is about 3/n.
pub fn largest_share(seen: u64, trials: u64, error: f64) -> Option<f64> {
    if trials == 0 || seen > trials {
        return None;
    }
    if seen == trials {
        return Some(1.0);
    }
    if seen == 0 {
        return Some(1.0 - error.powf(1.0 / trials as f64));
    }
    Beta::new(seen as f64 + 1.0, (trials - seen) as f64).ok().map(|beta| beta.inverse_cdf(1.0 - error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Binomial, DiscreteCDF};

    #[test]
    fn the_share_is_the_one_at_which_so_few_are_as_rare_as_the_error() {
        for (seen, trials, error) in [(0, 1, 0.05), (0, 400, 0.05), (1, 20, 0.05), (7, 100, 0.025), (99, 100, 0.05)] {
            let share = largest_share(seen, trials, error).expect("a share");
            let as_few = Binomial::new(share, trials).expect("a distribution").cdf(seen);
            assert!((as_few - error).abs() < 1e-6, "{seen} of {trials}: {share}, {as_few}");
        }
        let known = largest_share(0, 400, 0.05).expect("a share");
        assert!((known - 0.007_461).abs() < 1e-6, "{known}");
        assert_eq!(
            (largest_share(5, 5, 0.05), largest_share(0, 0, 0.05), largest_share(2, 1, 0.05)),
            (Some(1.0), None, None)
        );
    }
}
