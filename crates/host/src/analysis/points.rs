//! The rounds in order, for pictures: every value, or, where there are more than anybody can see,
//! the middle and the extremes of some rounds at a time, and word of it.

use super::series::Rounds;

/// Points of a target's series.
const MOST_POINTS: usize = 60;

/// A target's values of a quantity, in the order of the rounds.
#[derive(Debug, Default)]
pub struct Series {
    pub points: Vec<Point>,
    /// Rounds in a point, which is their median with their lowest and highest.
    pub rounds_in_point: usize,
}

#[derive(Debug, PartialEq)]
pub struct Point {
    /// Rounds, of which there may be one alone.
    pub first: u32,
    pub last: u32,
    /// In the unit of the panel.
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

pub(crate) fn series(rounds: &Rounds) -> Series {
    let finite: Rounds = rounds.iter().copied().filter(|(_, value)| value.is_finite()).collect();
    let each = finite.len().div_ceil(MOST_POINTS).max(1);
    Series { points: finite.chunks(each).map(point).collect(), rounds_in_point: each }
}

fn point(rounds: &[(u32, f64)]) -> Point {
    let values: Vec<f64> = rounds.iter().map(|(_, value)| *value).collect();
    Point {
        first: rounds[0].0,
        last: rounds[rounds.len() - 1].0,
        median: pickfs_stats::median(&values).unwrap_or(values[0]),
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_are_shown_each() {
        let found = series(&vec![(1, 3.0), (2, f64::NAN), (4, 5.0)]);
        let shown: Vec<(u32, f64, f64)> = found.points.iter().map(|p| (p.first, p.low, p.high)).collect();
        assert_eq!(shown, [(1, 3.0, 3.0), (4, 5.0, 5.0)]);
        assert_eq!(found.rounds_in_point, 1);
    }

    #[test]
    fn of_many_rounds_no_extreme_is_hidden() {
        let rounds: Rounds = (1..=1000).map(|round| (round, if round == 503 { 99.0 } else { 1.0 })).collect();
        let found = series(&rounds);
        assert!(found.points.len() <= MOST_POINTS && found.points.len() > MOST_POINTS / 2);
        assert_eq!((found.points[0].first, found.points[0].last), (1, 17));
        assert_eq!(found.points.last().unwrap().last, 1000);
        assert!(found.points.iter().any(|point| point.high == 99.0 && point.median == 1.0));
        assert_eq!(found.rounds_in_point, 17);
    }
}
