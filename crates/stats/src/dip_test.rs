//! Whether values fall into two groups, and which.
//!
//! A file system that lands in one of two layouts, or a cache that is hit or not, gives times that
//! no single centre describes. One test decides: Hartigan's dip, which promises at most 5 % false
//! alarms whatever the shape of values with one mode. A rule on gaps (the largest above three times
//! the median, two values on either side) was measured and left out: it calls 30 % of samples of
//! ten normal values split in two, and 45 % of those of forty.

use super::median;

/// Ten values that fall into two halves are seen in seven cases of ten; fewer say too little to be
/// asked.
const FEWEST: usize = 10;

/// A group of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Its median, in the unit of the values.
    pub centre: f64,
    /// Share of the values in it, 0 to 1.
    pub share: f64,
}

/// The two groups that the values fall into, the lower one first, split at the widest gap that
/// could cause the dip; more than two groups are not distinguished. The test is for measured
/// values, not for counts: a few whole numbers, each repeated often, would form groups. `None`
/// where one mode explains the values (p >= 0.05), for fewer than ten values, and where one is not
/// finite.
pub fn modes(values: &[f64]) -> Option<Vec<Mode>> {
    if values.len() < FEWEST || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let dip = doubled_dip(&sorted);
    if dip <= critical(sorted.len()) {
        return None;
    }
    let (low, high) = sorted.split_at(widest_gap(&sorted, dip)?);
    let mode = |group: &[f64]| Some(Mode { centre: median(group)?, share: group.len() as f64 / values.len() as f64 });
    Some(vec![mode(low)?, mode(high)?])
}

/// Where the second group begins. A group of m values can be smoothed over by moving each of the
/// distribution's steps by m/2, so none with fewer values than the doubled dip is what caused it:
/// an outlier does not split the values.
fn widest_gap(sorted: &[f64], dip: f64) -> Option<usize> {
    let least = dip.floor() as usize;
    let gap = |at: &usize| sorted[*at] - sorted[at - 1];
    (least..=sorted.len() - least).max_by(|a, b| gap(a).total_cmp(&gap(b)))
}

/// Size of the sample; the square root of it times the dip that one in twenty samples of uniform
/// values exceeds: of all distributions with one mode the worst, or nearly (Hartigan & Hartigan
/// 1985). From 200 000 simulated samples each (50 000 above 40).
const CRITICAL: &[(usize, f64)] = &[
    (10, 0.4419),
    (11, 0.4439),
    (12, 0.4507),
    (13, 0.4549),
    (15, 0.4597),
    (17, 0.4639),
    (20, 0.4698),
    (25, 0.4769),
    (30, 0.4833),
    (40, 0.4908),
    (60, 0.5012),
    (100, 0.5119),
    (200, 0.5211),
];

/// The doubled dip that chance exceeds in at most 5 % of samples of `n` values, linear between the
/// sizes of the table.
fn critical(n: usize) -> f64 {
    let after = CRITICAL.partition_point(|(size, _)| *size <= n);
    let (size, scaled) = CRITICAL[after.max(1) - 1];
    let (next, next_scaled) = CRITICAL[after.min(CRITICAL.len() - 1)];
    let way = if next > size { (n - size) as f64 / (next - size) as f64 } else { 0.0 };
    2.0 * (n as f64).sqrt() * (scaled + way * (next_scaled - scaled))
}

/// A step of the distribution function: the value, and how many values are below it, and not above
/// it.
struct Step {
    value: f64,
    below: f64,
    upto: f64,
}

/// Twice the number of values times the dip: the least largest distance, in values, between the
/// steps of the distribution function and any distribution with one mode; at least 1. By Hartigan &
/// Hartigan 1985: between the greatest convex minorant from the left and the least concave majorant
/// from the right, narrow the interval of the mode to where they are farthest apart until nothing
/// outside of it is farther from its bound.
fn doubled_dip(sorted: &[f64]) -> f64 {
    let steps = steps(sorted);
    let (mut first, mut last, mut dip) = (0, steps.len() - 1, 1.0f64);
    loop {
        let convex = Hull::new(first..=last, |i| (steps[i].value, steps[i].below), 1.0);
        let concave = Hull::new(first..=last, |i| (steps[i].value, steps[i].upto), -1.0);
        let apart = |i: &usize| concave.at(steps[*i].value) - convex.at(steps[*i].value);
        let knots = convex.knots.iter().chain(&concave.knots).copied();
        let Some(farthest) = knots.max_by(|a, b| apart(a).total_cmp(&apart(b))) else { return dip };
        if apart(&farthest) <= dip {
            return dip;
        }
        let begin = convex.knots.iter().copied().filter(|knot| *knot <= farthest).max().unwrap_or(first);
        let end = concave.knots.iter().copied().filter(|knot| *knot >= farthest).min().unwrap_or(last);
        let left = steps[first..begin].iter().map(|step| step.upto - convex.at(step.value));
        let right = steps[end + 1..=last].iter().map(|step| concave.at(step.value) - step.below);
        dip = left.chain(right).fold(dip, f64::max);
        if (begin, end) == (first, last) {
            return dip;
        }
        (first, last) = (begin, end);
    }
}

fn steps(sorted: &[f64]) -> Vec<Step> {
    let mut below = 0.0;
    let step = |equal: &[f64]| {
        let upto = below + equal.len() as f64;
        let step = Step { value: equal[0], below, upto };
        below = upto;
        step
    };
    sorted.chunk_by(|a, b| a == b).map(step).collect()
}

/// The lower (`sign` 1) or upper (`sign` -1) edge of the smallest convex shape around some points:
/// Andrew 1979.
struct Hull {
    knots: Vec<usize>,
    points: Vec<(f64, f64)>,
}

impl Hull {
    fn new(range: std::ops::RangeInclusive<usize>, point: impl Fn(usize) -> (f64, f64), sign: f64) -> Hull {
        let mut knots: Vec<usize> = Vec::new();
        for next in range {
            while knots.len() >= 2
                && sign * turn(knots[knots.len() - 2..].iter().chain([&next]).map(|i| point(*i))) <= 0.0
            {
                knots.pop();
            }
            knots.push(next);
        }
        let points = knots.iter().map(|i| point(*i)).collect();
        Hull { knots, points }
    }

    /// The height of the edge over a value between the first point and the last.
    fn at(&self, value: f64) -> f64 {
        let after = self.points.partition_point(|(x, _)| *x <= value).clamp(1, self.points.len());
        let (x, y) = self.points[after - 1];
        self.points.get(after).map_or(y, |(next, height)| y + (height - y) * (value - x) / (next - x))
    }
}

/// Above 0 where three points turn to the left.
fn turn(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<(f64, f64)> = points.collect();
    let [(ax, ay), (bx, by), (cx, cy)] = points[..] else { return 0.0 };
    (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::{Noise, PAIRS, Side, replications, share_error};

    fn sorted(n: usize, mut draw: impl FnMut() -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = (0..n).map(|_| draw()).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The first two by Maechler's tests of R's diptest; two groups of five, and one value apart
    /// from nine, by hand.
    #[test]
    fn dips_of_known_values() {
        let cases: [(&[f64], f64); 5] = [
            (&[1.0, 1.0, 2.0, 2.0], 2.0),
            (&[0.0, 1.0, 3.0, 6.0], 1.0),
            (&[7.0; 9], 1.0),
            (&[1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0], 5.0),
            (&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0], 1.0),
        ];
        for (values, wanted) in cases {
            assert_eq!(doubled_dip(values), wanted, "{values:?}");
        }
    }

    /// Against the definition, for values with one mode and with two.
    #[test]
    fn dips_are_the_least_distances() {
        let mut noise = Noise::new(1);
        let two = Side::Modes { sd: 0.03, share: 0.4, by: 0.2 };
        for case in 0..replications(300, 3000) {
            let n = 4 + case % 9;
            let values = sorted(n, || if case % 3 == 0 { noise.uniform() } else { two.draw(&mut noise) });
            let (got, wanted) = (doubled_dip(&values), least_distance(&values));
            assert!((got - wanted).abs() < 1e-6, "{got}, not {wanted}, of {values:?}");
        }
    }

    /// By halving: is there, for some place of the mode, a convex function up to it and a concave
    /// one from it, both within d of the steps, where the first ends no higher than the second
    /// begins?
    fn least_distance(values: &[f64]) -> f64 {
        let flipped: Vec<f64> = values.iter().rev().map(|value| -value).collect();
        let n = values.len();
        let fits = |mode: usize, d: f64| {
            let ends = least_end(values, mode, d).zip(least_end(&flipped, n - 1 - mode, d));
            ends.is_some_and(|(left, right)| left <= n as f64 - right + 1e-12)
        };
        let (mut low, mut high) = (0.5, n as f64);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if (0..n).any(|mode| fits(mode, middle)) { high = middle } else { low = middle }
        }
        2.0 * high
    }

    /// The least height at which a convex function within d of the steps before the mode can reach
    /// the mode; `None` where there is no such function. No chord between upper bounds may pass
    /// below a lower bound.
    fn least_end(x: &[f64], mode: usize, d: f64) -> Option<f64> {
        let (lower, upper) = (|i: usize| (i + 1) as f64 - d, |i: usize| i as f64 + d);
        let line =
            |(i, yi): (usize, f64), (k, yk): (usize, f64), at: usize| yi + (yk - yi) * (x[at] - x[i]) / (x[k] - x[i]);
        let chords = (0..mode).flat_map(|i| (i + 2..=mode).map(move |k| (i, k)));
        let passes =
            |(i, k): (usize, usize)| (i + 1..k).all(|j| lower(j) <= line((i, upper(i)), (k, upper(k)), j) + 1e-12);
        let pairs = (0..mode).flat_map(|j| (0..j).map(move |i| (i, j)));
        let pushed = pairs.map(|(i, j)| line((i, upper(i)), (j, lower(j)), mode));
        let least = pushed.chain((0..mode).map(lower)).fold(0.0, f64::max);
        let possible = (0..mode).all(|i| lower(i) <= upper(i)) && chords.into_iter().all(passes);
        (possible && least <= upper(mode) + 1e-12).then_some(least)
    }

    fn mode(centre: f64, share: f64) -> Mode {
        Mode { centre, share }
    }

    /// A name, the values, and their groups.
    type Case = (&'static str, Vec<f64>, Option<Vec<Mode>>);

    #[test]
    fn groups_of_known_values() {
        let near = |centre: f64, count: usize| (0..count).map(move |i| centre + 0.01 * i as f64);
        let groups = |groups: &[(f64, usize)]| groups.iter().flat_map(|(c, n)| near(*c, *n)).collect::<Vec<f64>>();
        let with_outlier = groups(&[(3.0, 9), (1.0, 11), (99.0, 1)]);
        let cases: [Case; 8] = [
            ("none", vec![], None),
            ("too few", groups(&[(1.0, 5), (2.0, 4)]), None),
            ("two halves", groups(&[(2.0, 5), (1.0, 5)]), Some(vec![mode(1.02, 0.5), mode(2.02, 0.5)])),
            ("one in five", groups(&[(1.0, 32), (2.0, 8)]), Some(vec![mode(1.155, 0.8), mode(2.035, 0.2)])),
            ("outlier", groups(&[(1.0, 19), (2.0, 1)]), None),
            ("halves and an outlier", with_outlier, Some(vec![mode(1.05, 11.0 / 21.0), mode(3.045, 10.0 / 21.0)])),
            ("constant", vec![2.0; 20], None),
            ("no number", [groups(&[(2.0, 9), (1.0, 9)]), vec![f64::NAN]].concat(), None),
        ];
        for (name, values, wanted) in cases {
            let rounded = |m: Mode| mode((m.centre * 1e9).round() / 1e9, m.share);
            let got = modes(&values).map(|found| found.into_iter().map(rounded).collect());
            assert_eq!(got, wanted, "{name}");
        }
    }

    /// The share of samples of `n` that are called split.
    fn split(n: usize, side: impl Fn(&mut Noise) -> f64, count: usize) -> f64 {
        let mut noise = Noise::new(n as u64);
        let mut found = || modes(&(0..n).map(|_| side(&mut noise)).collect::<Vec<f64>>()).is_some();
        (0..count).filter(|_| found()).count() as f64 / count as f64
    }

    /// 5 % of uniform values, sizes of the table and between; of other values with one mode 2.5 %
    /// at most.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let one_mode = [Side::Normal(1.0), Side::LogNormal(1.0), Side::Skew(1.0), Side::T2(1.0)];
        for n in [10, 15, 18, 20, 40, 80, 300] {
            let count = replications(1000, 20_000).min(200_000 / n);
            let error = 4.0 * share_error(0.05, count);
            let uniform = split(n, Noise::uniform, count);
            assert!((uniform - 0.05).abs() < 0.004 + error, "{n} uniform values: {uniform}");
            for side in one_mode {
                let share = split(n, |noise| side.draw(noise), count);
                assert!(share < 0.025 + error, "{n} values of {side:?}: {share}");
            }
        }
    }

    /// Halves that lie 15 % apart with noise of 1 % are found; one run in five that is slower is
    /// seen in one case of six among ten runs, and in half of the cases among forty.
    #[test]
    fn groups_are_found() {
        let count = replications(400, 4000);
        for (n, halves, fifth) in [(10, 0.6, 0.09), (15, 0.8, 0.15), (20, 0.93, 0.18), (40, 0.98, 0.42)] {
            let got = [PAIRS[5], PAIRS[4]].map(|pair| split(n, |noise| pair.first.draw(noise), count));
            assert!(got[0] >= halves && got[1] >= fifth, "{n} values: {got:?}");
        }
    }
}
