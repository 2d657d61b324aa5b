//! What the device did over the time of a phase: of every target one round, the one whose time is
//! in the middle. A round that was, not an average of several, in which nothing would stand where
//! it stood.

use super::model::TargetInfo;
use super::plain::plain;
use super::series::{ObservedWork, Rounds};
use pickfs_core::journal::{DeviceCourse, FoldedCell, Outcome};

/// Steps that pickfs writes, and then some; what has more is not ours.
const MOST_STEPS: usize = 1000;
/// A picture of fewer steps than this says nothing that its mean does not say.
const LEAST_STEPS: usize = 4;

/// One phase.
#[derive(Debug)]
pub struct DeviceRates {
    pub phase: String,
    pub curves: Vec<RateCurve>,
}

#[derive(Debug)]
pub struct RateCurve {
    pub target: usize,
    pub steps: Vec<RateStep>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// Nanoseconds from the start of the phase.
    pub from_ns: f64,
    pub until_ns: f64,
    /// Bytes a second.
    pub read: f64,
    pub write: f64,
}

pub(crate) fn rates(observed: &ObservedWork, targets: &[TargetInfo]) -> Vec<DeviceRates> {
    let mut phases: Vec<&str> = Vec::new();
    for course in observed.cells.iter().flat_map(|cells| cells.values()).flat_map(|cell| &cell.courses) {
        if !phases.contains(&course.phase.as_str()) {
            phases.push(&course.phase);
        }
    }
    let shown = |target: &usize| !targets[*target].duplicate;
    let of_phase = |phase: &&str| DeviceRates {
        phase: plain(phase),
        curves: (0..targets.len()).filter(shown).filter_map(|target| curve(observed, target, phase)).collect(),
    };
    let is_long = |rates: &DeviceRates| rates.curves.iter().any(|curve| curve.steps.len() >= LEAST_STEPS);
    phases.iter().map(of_phase).filter(is_long).collect()
}

fn curve(observed: &ObservedWork, target: usize, phase: &str) -> Option<RateCurve> {
    let course = |round: u32| course_of(observed.cells[target].get(&round)?, phase);
    let times = observed.series(target, phase, "time_ns");
    let with: Rounds = times.into_iter().filter(|(round, _)| course(*round).is_some()).collect();
    let round = middle(with)?;
    Some(RateCurve { target, steps: steps(course(round)?) })
}

/// The course of the first repeat.
fn course_of<'a>(cell: &'a FoldedCell, phase: &str) -> Option<&'a DeviceCourse> {
    let done = Some(cell).filter(|cell| cell.outcome == Some(Outcome::Done))?;
    done.courses.iter().find(|course| course.phase == phase && course.until_ns.len() <= MOST_STEPS)
}

/// The round whose value has as many below as above, or one more above.
fn middle(mut rounds: Rounds) -> Option<u32> {
    rounds.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    rounds.get(rounds.len().saturating_sub(1) / 2).map(|(round, _)| *round)
}

fn steps(course: &DeviceCourse) -> Vec<RateStep> {
    let mut from_ns = 0.0;
    let all = course.until_ns.iter().zip(&course.read_bytes).zip(&course.write_bytes);
    let step = |((until, read), write): ((&u64, &u64), &u64)| {
        let until_ns = *until as f64;
        let seconds = (until_ns - from_ns) / 1e9;
        let step = RateStep { from_ns, until_ns, read: *read as f64 / seconds, write: *write as f64 / seconds };
        from_ns = from_ns.max(until_ns);
        (seconds > 0.0).then_some(step)
    };
    all.filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_in_the_middle() {
        assert_eq!(middle(vec![]), None);
        assert_eq!(middle(vec![(7, 1.0)]), Some(7));
        assert_eq!(middle(vec![(1, 9.0), (2, 1.0), (3, 5.0)]), Some(3));
        assert_eq!(middle(vec![(1, 9.0), (2, 1.0), (3, 5.0), (4, 4.0)]), Some(4));
    }

    #[test]
    fn steps_are_rates_and_what_goes_back_in_time_is_left_out() {
        let course = DeviceCourse {
            until_ns: vec![100_000_000, 300_000_000, 200_000_000, 400_000_000],
            read_bytes: vec![10, 40, 1, 5],
            write_bytes: vec![0, 20, 1],
            ..DeviceCourse::default()
        };
        let found: Vec<(f64, f64, f64)> = steps(&course).iter().map(|s| (s.from_ns, s.read, s.write)).collect();
        assert_eq!(found, [(0.0, 100.0, 0.0), (1e8, 200.0, 100.0)]);
    }
}
