//! The targets that no other one beats all round, over several criteria that cannot be added up.

/// One criterion: at `[a][b]` the interval of the ratio of target a to target b, lower being
/// better; `None` where it is not known. The diagonal is not read.
pub type Ratios = Vec<Vec<Option<(f64, f64)>>>;

/// The targets, ascending, that no other one dominates, by the ratios in each criterion.
/// `thresholds[criterion]` is the relative difference δ that does not matter there; 0.03 for 3 %.
/// Panics unless there is one for each criterion.
///
/// One target dominates another where it is surely not worse by more than δ in any criterion (the
/// whole interval at or below 1+δ), and surely better by more than δ in one (the whole interval
/// below 1/(1+δ)). What is not known proves nothing. As every criterion has a band in which worse
/// does not count, targets can dominate each other in a circle; where that leaves no target, all
/// are returned.
pub fn front(ratios: &[Ratios], thresholds: &[f64]) -> Vec<usize> {
    assert_eq!(ratios.len(), thresholds.len(), "each criterion needs its threshold");
    let everybody = 0..ratios.first().map_or(0, Vec::len);
    let dominates = |a: usize, b: usize| {
        let intervals: Vec<_> = ratios.iter().map(|criterion| criterion[a][b]).collect();
        a != b && beats(&intervals, thresholds)
    };
    let members: Vec<usize> = everybody.clone().filter(|b| !everybody.clone().any(|a| dominates(a, *b))).collect();
    if members.is_empty() { everybody.collect() } else { members }
}

fn beats(intervals: &[Option<(f64, f64)>], thresholds: &[f64]) -> bool {
    let highs = || intervals.iter().map(|interval| interval.map(|(_, high)| high)).zip(thresholds);
    let never_worse = highs().all(|(high, threshold)| high.is_some_and(|high| high <= 1.0 + threshold));
    never_worse && highs().any(|(high, threshold)| high.is_some_and(|high| high < 1.0 / (1.0 + threshold)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, levels of each criterion, and the front.
    type Case = (&'static str, &'static [&'static [f64]], &'static [usize]);

    /// Intervals of 1 % to either side of the ratios of these levels, one list a criterion; 0 is
    /// not known.
    fn table(levels: &[&[f64]]) -> Vec<Ratios> {
        let interval = |a: &f64, b: &f64| (a * b != 0.0).then(|| (a / b / 1.01, a / b * 1.01));
        let against = |a: &f64, all: &[f64]| all.iter().map(|b| interval(a, b)).collect();
        levels.iter().map(|all| all.iter().map(|a| against(a, all)).collect()).collect()
    }

    #[test]
    fn fronts_of_known_levels() {
        let cases: [Case; 9] = [
            ("no criterion", &[], &[]),
            ("nobody", &[&[]], &[]),
            ("alone", &[&[1.0]], &[0]),
            ("one criterion", &[&[1.2, 1.0, 1.01]], &[1, 2]),
            ("two that trade", &[&[1.0, 2.0], &[2.0, 1.0]], &[0, 1]),
            ("one beaten", &[&[1.0, 2.0, 2.1], &[2.0, 1.0, 1.5]], &[0, 1]),
            ("within the threshold, but for one", &[&[1.01, 1.0], &[1.0, 1.2]], &[0]),
            ("beyond the threshold the other way", &[&[1.04, 1.0], &[1.0, 1.2]], &[0, 1]),
            ("not known", &[&[1.0, 2.0], &[1.0, 0.0]], &[0, 1]),
        ];
        for (name, levels, wanted) in cases {
            assert_eq!(front(&table(levels), &vec![0.03; levels.len()]), wanted, "{name}");
        }
    }

    /// The bounds themselves: at 1+δ still not worse, at 1/(1+δ) not yet better.
    #[test]
    fn bounds_of_the_band() {
        let (ceiling, floor) = (1.25, 0.8);
        let cases = [
            ([(0.5, 0.7), (1.0, ceiling)], true),
            ([(0.5, 0.7), (1.0, 1.26)], false),
            ([(0.5, floor), (0.9, 1.1)], false),
            ([(0.5, 0.79), (0.9, 1.1)], true),
            ([(1.0, 1.0), (1.0, 1.0)], false),
        ];
        for (intervals, wanted) in cases {
            assert_eq!(beats(&intervals.map(Some), &[0.25, 0.25]), wanted, "{intervals:?}");
        }
        assert!(!beats(&[Some((0.1, 0.2)), None], &[0.25, 0.25]), "what is not known proves nothing");
    }

    /// Each one better by far in one criterion and a little worse in the others.
    #[test]
    fn a_circle_loses_nobody() {
        let levels: [&[f64]; 3] = [&[1.0, 1.12, 1.06], &[1.06, 1.0, 1.12], &[1.12, 1.06, 1.0]];
        assert_eq!(front(&table(&levels), &[0.075; 3]), [0, 1, 2]);
        let first_two = levels.map(|all| &all[..2]);
        assert_eq!(front(&table(&first_two), &[0.075; 3]), [0], "not a circle");
    }

    #[test]
    fn the_order_of_targets_and_criteria_does_not_matter() {
        let levels: [&[f64]; 2] = [&[1.0, 2.0, 2.1], &[2.0, 1.0, 1.5]];
        let turned: [&[f64]; 2] = [&[1.5, 1.0, 2.0], &[2.1, 2.0, 1.0]];
        assert_eq!(front(&table(&levels), &[0.03, 0.1]), [0, 1]);
        assert_eq!(front(&table(&turned), &[0.1, 0.03]), [1, 2]);
    }
}
