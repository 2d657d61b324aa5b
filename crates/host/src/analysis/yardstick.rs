//! Whether a run's yardstick can be trusted: what other programs used of the machine, and the
//! reference against its second copy.
//!
//! Rounds in random order cancel what others do to all targets alike. What remains cannot be seen
//! to be little, so where others were at work most of the time, nothing is called clear.

use super::series::{Observed, ObservedWork, Rounds, at_round, observe};
use pickfs_core::journal::Folded;
use pickfs_core::metric::CPU_FOREIGN_NS;
use pickfs_core::plan::Plan;
use pickfs_stats::{Estimate, too_many_apart};

/// Why no difference of a run is called clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreliable {
    /// Other programs used the processor or the disk in `phases` of the `of` phases that were
    /// timed.
    Busy { phases: usize, of: usize },
    /// The reference differs from its second copy in `apart` of `of` phases.
    TwinsDiffer { apart: usize, of: usize },
}

/// As a share of the time of a phase: half of one processor. It is more than the flag of a phase
/// asks for, as a desktop has a few percent of other work all the time.
pub(crate) const MUCH_CPU: f64 = 0.5;
/// The kernel counts in ticks of up to 10 ms.
const LEAST_CPU_NS: f64 = 2e7;
const LEAST_BYTES: f64 = (1 << 20) as f64;

pub(crate) fn unreliable(observed: &Observed, twins: &[Estimate]) -> Option<Unreliable> {
    twins_differ(twins).or_else(|| busy(observed))
}

/// One comparison in twenty of the same thing with itself is apart by chance; many more are not
/// chance.
fn twins_differ(twins: &[Estimate]) -> Option<Unreliable> {
    let intervals: Vec<(f64, f64)> = twins.iter().filter_map(|estimate| estimate.interval).collect();
    let apart = intervals.iter().filter(|(low, high)| *low > 1.0 || *high < 1.0).count();
    let of = intervals.len();
    too_many_apart(apart, of).then_some(Unreliable::TwinsDiffer { apart, of })
}

/// The number of phases in which others used the machine, and that of all, where it is more than
/// half.
pub(crate) fn is_busy(plan: &Plan, folded: &Folded) -> Option<(usize, usize)> {
    match busy(&observe(folded, plan)) {
        Some(Unreliable::Busy { phases, of }) => Some((phases, of)),
        _ => None,
    }
}

fn busy(observed: &Observed) -> Option<Unreliable> {
    let all = observed.works.iter().flat_map(|work| (0..observed.targets.len()).map(move |target| (work, target)));
    let counts = all.flat_map(|(work, target)| work.phases().into_iter().map(move |phase| count(work, target, phase)));
    let (phases, of) = counts.fold((0, 0), |(phases, of), (more, all)| (phases + more, of + all));
    (2 * phases > of).then_some(Unreliable::Busy { phases, of })
}

/// How often a phase was timed on a target, and with how many of these others were at work.
fn count(work: &ObservedWork, target: usize, phase: &str) -> (usize, usize) {
    let of = |metric: &str| work.series(target, phase, metric);
    let foreign = of(CPU_FOREIGN_NS);
    let [read, written, read_below, written_below] =
        ["device_read_bytes", "device_write_bytes", "below_read_bytes", "below_write_bytes"].map(of);
    let at = |series: &Rounds, round: u32| at_round(series, round).unwrap_or(0.0);
    let is_disturbed = |(round, time): &(u32, f64)| {
        let own = at(&read, *round) + at(&written, *round);
        let others = at(&read_below, *round) + at(&written_below, *round) - own;
        at(&foreign, *round) >= LEAST_CPU_NS.max(MUCH_CPU * time) || others >= LEAST_BYTES.max(own)
    };
    let times = of("time_ns");
    (times.iter().filter(|time| is_disturbed(time)).count(), times.len())
}
