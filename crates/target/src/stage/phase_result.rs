//! What was measured of a phase: readings before and after become quantities for one unit of its
//! work. Pure.

use super::phase::{Phase, TimedUntil};
use super::sampler::Peaks;
use super::server::Used;
use super::steady_state::SteadyRun;
use crate::probe::cpu::SYSTEM_WIDE_NS;
use crate::probe::device::{self, BUSY_NS, READ_BYTES, READ_BYTES_BELOW, WRITE_BYTES, WRITE_BYTES_BELOW};
use crate::probe::foreign::CPU_NS;
use crate::probe::{Kind, Reading};
use pickfs_core::journal::FlagKind;
use std::collections::BTreeMap;

/// What the workload's own processes had read from block devices.
pub(crate) const WORKLOAD_READ_BYTES: &str = "workload_read_bytes";
const CPU_OF_WORK_NS: &str = "cpu_workload_ns";

/// Shares above which something foreign is flagged.
const FOREIGN_IO: f64 = 0.01;
const FOREIGN_CPU: f64 = 0.03;
const FOREIGN_IO_SLACK: f64 = (1 << 20) as f64;
/// The share of the work's CPU that clocks of two kinds may differ by.
const LOST_CPU: f64 = 0.05;
/// Ticks are 10 ms: one tick of another process is no finding.
const FOREIGN_CPU_SLACK_NS: f64 = 2e7;

/// Readings by metric.
pub(crate) type Readings = BTreeMap<String, Reading>;
/// Metrics with their values.
pub(crate) type Samples = Vec<(String, f64)>;

/// One phase's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseTimer {
    pub returned_ns: u64,
    pub durable_ns: u64,
    /// The device's counters when the work had returned.
    pub(super) returned: Option<device::Counters>,
}

/// What the work itself cost and handled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnCounts {
    /// By processes of the workload.
    pub used: Used,
    pub bytes: u64,
    pub files: u64,
    /// How many of `files` the phase removed.
    pub removed_files: u64,
}

/// The amount of work that a phase's quantities are given for, so that targets are compared on the
/// same work.
#[derive(Debug, Default)]
pub(crate) enum Unit {
    /// All that was done.
    #[default]
    Whole,
    /// One of this number of repeats of the same work.
    Times(f64),
    /// One GiB of work that was done for a time.
    Gib(SteadyRun),
}

/// All measured quantities of a phase.
#[derive(Debug, Default)]
pub(crate) struct PhaseResult {
    /// What the phase is judged by; none where only its parts have times.
    pub time_ns: Option<f64>,
    /// More of it when more is done.
    pub counts: Samples,
    /// States, peaks, and what was still to do afterwards.
    pub others: Samples,
}

impl PhaseResult {
    /// The result from the readings before and after.
    pub(crate) fn of(
        phase: &Phase,
        clocked: &PhaseTimer,
        own: &OwnCounts,
        peaks: Option<Peaks>,
        before: &Readings,
        after: &Readings,
    ) -> PhaseResult {
        let mut result = PhaseResult::new(phase, clocked, own, peaks);
        result.add_readings(before, after);
        result.add_sync(clocked, after);
        result
    }

    fn new(phase: &Phase, clocked: &PhaseTimer, own: &OwnCounts, peaks: Option<Peaks>) -> PhaseResult {
        let time_ns = match phase.timed {
            TimedUntil::Returned => Some(clocked.returned_ns as f64),
            TimedUntil::Durable => Some(clocked.durable_ns as f64),
            TimedUntil::Parts | TimedUntil::Part => None,
        };
        let counts = [
            ("returned_ns", clocked.returned_ns),
            ("durable_ns", clocked.durable_ns),
            (CPU_OF_WORK_NS, own.used.cpu_ns),
            (WORKLOAD_READ_BYTES, own.used.read_bytes),
            ("work_bytes", own.bytes),
            ("work_files", own.files),
        ];
        let counts = counts.map(|(metric, value)| (metric.to_string(), value as f64)).into();
        let mut result = PhaseResult { time_ns, counts, others: Vec::new() };
        if own.removed_files > 0 {
            result.counts.push(("removed_files".into(), own.removed_files as f64));
        }
        if let Some(peaks) = peaks {
            result.state("peak_read_bytes_per_second", peaks.read);
            result.state("peak_write_bytes_per_second", peaks.write);
        }
        result
    }

    pub(crate) fn state(&mut self, metric: &str, value: f64) {
        self.others.push((metric.into(), value));
    }

    pub(crate) fn count(&self, metric: &str) -> Option<f64> {
        self.counts.iter().find(|(name, _)| name == metric).map(|(_, value)| *value)
    }

    /// Counters as after minus before, states as found after.
    pub(crate) fn add_readings(&mut self, before: &Readings, after: &Readings) {
        for (metric, reading) in after {
            match (reading.kind, before.get(metric)) {
                (Kind::State, _) => self.state(metric, reading.value),
                // A process that ended takes its past with it: sums over processes can shrink.
                (Kind::Counter, Some(earlier)) => {
                    self.counts.push((metric.clone(), (reading.value - earlier.value).max(0.0)));
                }
                (Kind::Counter, None) => {}
            }
        }
    }

    /// What the device did from when the work had returned until all was durable.
    fn add_sync(&mut self, clocked: &PhaseTimer, after: &Readings) {
        let Some(returned) = &clocked.returned else { return };
        let parts =
            [("sync_write_bytes", WRITE_BYTES, returned.write_bytes), ("sync_busy_ns", BUSY_NS, returned.busy_ns)];
        for (metric, counter, then) in parts {
            let now = after.get(counter).map(|reading| (reading.value - then as f64).max(0.0));
            self.counts.extend(now.map(|value| (metric.to_string(), value)));
        }
    }

    /// The disk below moved more than the device above asked for.
    pub(crate) fn foreign_io(&self) -> Option<(FlagKind, String)> {
        let own = self.count(READ_BYTES)? + self.count(WRITE_BYTES)?;
        let below = self.count(READ_BYTES_BELOW)? + self.count(WRITE_BYTES_BELOW)?;
        let foreign = below - own;
        let much = foreign > own * FOREIGN_IO && foreign > FOREIGN_IO_SLACK;
        let why = format!("the disk below moved {foreign:.0} bytes more than the {own:.0} of the device under test");
        much.then_some((FlagKind::ForeignIo, why))
    }

    /// Other processes had a share of what all processors can do.
    pub(crate) fn foreign_cpu(&self, capacity_ns: f64) -> Option<(FlagKind, String)> {
        let foreign = self.count(CPU_NS)?;
        let much = foreign > capacity_ns * FOREIGN_CPU && foreign > FOREIGN_CPU_SLACK_NS;
        much.then(|| (FlagKind::ForeignCpu, format!("other processes used {:.0} ms of CPU", foreign / 1e6)))
    }

    /// Takes the CPU of the whole system out where it is less than that of the work alone: what the
    /// kernel lost of the one is unknown, and what would be compared with it false.
    pub(crate) fn without_false_cpu(&mut self) -> Option<(FlagKind, String)> {
        let (whole, part) = (self.count(SYSTEM_WIDE_NS)?, self.count(CPU_OF_WORK_NS)?);
        if whole >= part * (1.0 - LOST_CPU) - FOREIGN_CPU_SLACK_NS {
            return None;
        }
        self.counts.retain(|(name, _)| name != SYSTEM_WIDE_NS);
        let why = format!(
            "the kernel counted {:.0} ms of CPU for the whole system and {:.0} ms for the work alone; CPU is left out",
            whole / 1e6,
            part / 1e6
        );
        Some((FlagKind::CpuLost, why))
    }

    /// Samples for one unit of the work. `time_ns` is missing where the phase has none, or its rate
    /// was never steady.
    pub(crate) fn samples(self, unit: &Unit) -> Samples {
        let (time_ns, more) = match unit {
            Unit::Times(times) if *times != 1.0 => {
                (self.time_ns.map(|time| (time / times).round()), vec![("done_times".to_string(), *times)])
            }
            Unit::Whole | Unit::Times(_) => (self.time_ns, Vec::new()),
            Unit::Gib(run) => (run.time_ns(), run.samples()),
        };
        let one = |value: f64| match unit {
            // Whole nanoseconds and bytes stay whole.
            Unit::Times(times) if *times != 1.0 => (value / times).round(),
            Unit::Whole | Unit::Times(_) => value,
            Unit::Gib(run) => value * run.share_of_gib(),
        };
        let time = time_ns.map(|time| ("time_ns".to_string(), time));
        let counts = self.counts.into_iter().map(|(metric, value)| (metric, one(value)));
        time.into_iter().chain(counts).chain(self.others).chain(more).collect()
    }
}

pub(crate) fn by_metric(readings: impl Iterator<Item = Reading>) -> Readings {
    readings.map(|reading| (reading.metric.clone(), reading)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{counter, state};
    use pickfs_stats::Steady;
    use std::time::Duration;

    fn named(list: &[(&str, f64)]) -> Samples {
        list.iter().map(|(metric, value)| (metric.to_string(), *value)).collect()
    }

    #[test]
    fn counters_are_differences_and_states_are_found() {
        let readings = |list: &[Reading]| by_metric(list.iter().cloned());
        let before = readings(&[counter("a_bytes", 10.0), counter("b_ns", 5.0), state("c", 1.0)]);
        let after = readings(&[counter("a_bytes", 15.0), counter("b_ns", 4.0), state("c", 7.0), counter("new", 3.0)]);
        let mut result = PhaseResult::default();
        result.add_readings(&before, &after);
        assert_eq!((result.counts, result.others), (named(&[("a_bytes", 5.0), ("b_ns", 0.0)]), named(&[("c", 7.0)])));
    }

    #[test]
    fn what_the_sync_wrote_is_what_came_after_the_return() {
        let returned = device::Counters { write_bytes: 70, busy_ns: 9, ..device::Counters::default() };
        let clocked = PhaseTimer { returned_ns: 1, durable_ns: 2, returned: Some(returned) };
        let mut result = PhaseResult::default();
        result.add_sync(&clocked, &by_metric([counter(WRITE_BYTES, 100.0), counter(BUSY_NS, 8.0)].into_iter()));
        assert_eq!(result.counts, named(&[("sync_write_bytes", 30.0), ("sync_busy_ns", 0.0)]));
    }

    #[test]
    fn quantities_are_told_for_one_unit_of_the_work() {
        let result = || PhaseResult {
            time_ns: Some(9.0),
            counts: named(&[(WRITE_BYTES, 8e9)]),
            others: named(&[("space_used_bytes", 7.0)]),
        };
        let whole = named(&[("time_ns", 9.0), (WRITE_BYTES, 8e9), ("space_used_bytes", 7.0)]);
        assert_eq!(result().samples(&Unit::Whole), whole);
        assert_eq!(result().samples(&Unit::Times(1.0)), whole);
        let fourth = [("time_ns", 2.0), (WRITE_BYTES, 2e9), ("space_used_bytes", 7.0), ("done_times", 4.0)];
        assert_eq!(result().samples(&Unit::Times(4.0)), named(&fourth));
        let steady = Steady { cut_seconds: 5, mean: (256 << 20) as f64, reached: true, halves_differ: None };
        let run = |steady| SteadyRun { ran: Duration::from_secs(100), bytes: 4 << 30, steady };
        let samples = result().samples(&Unit::Gib(run(Ok(steady))));
        assert_eq!(samples[..3], named(&[("time_ns", 4e9), (WRITE_BYTES, 2e9), ("space_used_bytes", 7.0)]));
        // Without a steady rate there is no time, though the phase had one.
        let never = result().samples(&Unit::Gib(run(Err("down and down".into()))));
        assert!(never.iter().all(|(metric, _)| metric != "time_ns") && never.len() == 4, "{never:?}");
    }

    #[test]
    fn a_whole_that_is_less_than_its_part_is_left_out() {
        for (whole, part, lost) in
            [(2.46e9, 6.92e9, true), (6.92e9, 6.92e9, false), (6.7e9, 6.92e9, false), (0.0, 2e7, false)]
        {
            let counts = named(&[(SYSTEM_WIDE_NS, whole), (CPU_OF_WORK_NS, part)]);
            let mut result = PhaseResult { counts, ..PhaseResult::default() };
            let flag = result.without_false_cpu().map(|(flag, _)| flag);
            assert_eq!(flag, lost.then_some(FlagKind::CpuLost), "{whole} {part}");
            assert_eq!(result.count(SYSTEM_WIDE_NS).is_none(), lost);
        }
    }

    #[test]
    fn foreign_activity_is_flagged_by_share() {
        let io = |below: f64| PhaseResult {
            counts: named(&[
                (READ_BYTES, 0.0),
                (WRITE_BYTES, 1e9),
                (READ_BYTES_BELOW, 0.0),
                (WRITE_BYTES_BELOW, below),
            ]),
            ..PhaseResult::default()
        };
        assert!(io(1.005e9).foreign_io().is_none() && io(1.05e9).foreign_io().is_some());
        let cpu = |ns: f64| PhaseResult { counts: named(&[(CPU_NS, ns)]), ..PhaseResult::default() };
        assert!(cpu(2.9e7).foreign_cpu(1e9).is_none() && cpu(5e7).foreign_cpu(1e9).is_some());
    }
}
