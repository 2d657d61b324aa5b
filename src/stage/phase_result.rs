//! What is told of a phase: readings before and after become samples, and samples become doubts. Pure.

use super::phase::{Phase, TimedUntil};
use super::run_phase::Clocked;
use super::sampler::Peaks;
use super::timed::Part;
use crate::probe::{Kind, Reading};
use std::collections::BTreeMap;

/// Shares above which something foreign is flagged.
const FOREIGN_IO: f64 = 0.01;
const FOREIGN_CPU: f64 = 0.03;
const FOREIGN_IO_SLACK: f64 = (1 << 20) as f64;

/// All that counts up as it is for one of so many times; whole nanoseconds and bytes stay whole.
pub(crate) fn of_one_time(
    samples: Vec<(String, f64)>,
    times: f64,
    counts: impl Fn(&str) -> bool,
) -> Vec<(String, f64)> {
    if times == 1.0 {
        return samples;
    }
    let one = |(metric, value): (String, f64)| {
        let value = if counts(&metric) { (value / times).round() } else { value };
        (metric, value)
    };
    let mut told: Vec<(String, f64)> = samples.into_iter().map(one).collect();
    told.push(("done_times".into(), times));
    told
}

pub(crate) fn own_samples(phase: &Phase, clocked: &Clocked, peaks: Option<Peaks>) -> Vec<(String, f64)> {
    let judged = match phase.timed {
        TimedUntil::Returned => Some(clocked.returned_ns),
        TimedUntil::Durable => Some(clocked.durable_ns),
        TimedUntil::Parts | TimedUntil::Part => None,
    };
    let mut samples: Vec<(String, f64)> = judged.map(|ns| ("time_ns".to_string(), ns as f64)).into_iter().collect();
    samples.extend([
        ("returned_ns".to_string(), clocked.returned_ns as f64),
        ("durable_ns".to_string(), clocked.durable_ns as f64),
    ]);
    if let Some(peaks) = peaks {
        samples.push(("peak_read_bytes_per_second".into(), peaks.read));
        samples.push(("peak_write_bytes_per_second".into(), peaks.write));
    }
    samples
}

/// What the device did from when the work had returned until all was durable.
pub(crate) fn after_the_return(clocked: &Clocked, counters: &BTreeMap<String, Reading>) -> Vec<(String, f64)> {
    let Some(returned) = &clocked.returned else { return Vec::new() };
    let since = |metric: &str, then: u64| Some((counters.get(metric)?.value - then as f64).max(0.0));
    let told = [
        ("sync_write_bytes", since("device_write_bytes", returned.write_bytes)),
        ("sync_busy_ns", since("device_busy_ns", returned.busy_ns)),
    ];
    told.into_iter().filter_map(|(metric, value)| Some((metric.to_string(), value?))).collect()
}

/// More of it when more is done; states, peaks and what is still to do afterwards are not.
pub(crate) fn counts_up(metric: &str, counters: &BTreeMap<String, Reading>) -> bool {
    let own = [
        "returned_ns",
        "durable_ns",
        "cpu_workload_ns",
        "workload_read_bytes",
        "work_bytes",
        "work_files",
        "sync_write_bytes",
        "sync_busy_ns",
    ];
    own.contains(&metric) || counters.get(metric).is_some_and(|reading| reading.kind == Kind::Counter)
}

pub(crate) fn by_metric(readings: impl Iterator<Item = Reading>) -> BTreeMap<String, Reading> {
    readings.map(|reading| (reading.metric.clone(), reading)).collect()
}

/// Counters as after minus before, states as found after.
pub(crate) fn differences(before: &BTreeMap<String, Reading>, after: &BTreeMap<String, Reading>) -> Vec<(String, f64)> {
    let difference = |reading: &Reading| match (reading.kind, before.get(&reading.metric)) {
        (Kind::State, _) => Some(reading.value),
        // A process that ended takes its past with it: sums over processes can shrink.
        (Kind::Counter, Some(earlier)) => Some((reading.value - earlier.value).max(0.0)),
        (Kind::Counter, None) => None,
    };
    after.values().filter_map(|reading| Some((reading.metric.clone(), difference(reading)?))).collect()
}

pub(crate) fn find(samples: &[(String, f64)], name: &str) -> Option<f64> {
    samples.iter().find(|(metric, _)| metric == name).map(|(_, value)| *value)
}

/// What the device has read, and the witness too, where there is one.
pub(crate) fn proof_of_reading(samples: &[(String, f64)], witness: Option<&str>) -> Option<f64> {
    let read = find(samples, "device_read_bytes")?;
    let seen = witness.and_then(|metric| find(samples, metric));
    Some(seen.map_or(read, |seen| seen.min(read)))
}

/// Where a doubt that a phase was cold is told: of the phase, and of its parts, which is what reports show then.
pub(crate) fn doubted(phase: &str, parts: &[Part]) -> Vec<String> {
    std::iter::once(phase).chain(parts.iter().map(|part| part.name.as_str())).map(String::from).collect()
}

/// The disk below moved more than the device above asked for.
pub(crate) fn foreign_io(samples: &[(String, f64)]) -> Option<(&'static str, String)> {
    let sum = |level: &str| {
        Some(find(samples, &format!("{level}_read_bytes"))? + find(samples, &format!("{level}_write_bytes"))?)
    };
    let (own, below) = (sum("device")?, sum("below")?);
    let foreign = below - own;
    let much = foreign > own * FOREIGN_IO && foreign > FOREIGN_IO_SLACK;
    much.then(|| {
        (
            "foreign-io",
            format!("the disk below moved {foreign:.0} bytes more than the {own:.0} of the device under test"),
        )
    })
}

pub(crate) fn foreign_cpu(samples: &[(String, f64)], capacity_ns: f64) -> Option<(&'static str, String)> {
    let foreign = find(samples, "foreign_cpu_ns")?;
    // Ticks are 10 ms: one tick of somebody else's is no finding.
    let much = foreign > capacity_ns * FOREIGN_CPU && foreign > 2e7;
    much.then(|| ("foreign-cpu", format!("other processes used {:.0} ms of CPU", foreign / 1e6)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{counter, state};

    fn readings(list: &[Reading]) -> BTreeMap<String, Reading> {
        list.iter().map(|r| (r.metric.clone(), r.clone())).collect()
    }

    #[test]
    fn counters_are_differences_and_states_are_found() {
        let before = readings(&[counter("a_bytes", 10.0), counter("b_ns", 5.0), state("c", 1.0)]);
        let after = readings(&[counter("a_bytes", 15.0), counter("b_ns", 4.0), state("c", 7.0), counter("new", 3.0)]);
        let expected = [("a_bytes", 5.0), ("b_ns", 0.0), ("c", 7.0)].map(|(name, value)| (name.to_string(), value));
        assert_eq!(differences(&before, &after), expected);
    }

    #[test]
    fn reads_from_a_cache_below_prove_nothing() {
        let samples = |list: &[(&str, f64)]| list.iter().map(|(n, v)| (n.to_string(), *v)).collect::<Vec<_>>();
        let loop_device = samples(&[("device_read_bytes", 100.0), ("below_read_bytes", 3.0)]);
        assert_eq!(proof_of_reading(&loop_device, Some("below_read_bytes")), Some(3.0));
        assert_eq!(proof_of_reading(&loop_device, None), Some(100.0));
        // In memory there is no disk below, and others may read more of it than we do.
        assert_eq!(proof_of_reading(&samples(&[("device_read_bytes", 100.0)]), Some("below_read_bytes")), Some(100.0));
        let busy = samples(&[("device_read_bytes", 100.0), ("below_read_bytes", 900.0)]);
        assert_eq!(proof_of_reading(&busy, Some("below_read_bytes")), Some(100.0));
        assert_eq!(proof_of_reading(&[], None), None);
        // On a shared disk, what others read proves nothing of us.
        let shared = samples(&[("device_read_bytes", 900.0), ("workload_read_bytes", 3.0)]);
        assert_eq!(proof_of_reading(&shared, Some("workload_read_bytes")), Some(3.0));
    }

    #[test]
    fn a_phase_that_was_not_cold_had_no_cold_parts() {
        let parts = ["read-during-write", "read-during-drain"].map(|name| Part::new(name, 1.0));
        assert_eq!(doubted("write", &parts), ["write", "read-during-write", "read-during-drain"]);
        assert_eq!(doubted("tar-read", &[]), ["tar-read"]);
    }

    #[test]
    fn foreign_activity_is_flagged_by_share() {
        let io = |below: f64| {
            [
                ("device_read_bytes", 0.0),
                ("device_write_bytes", 1e9),
                ("below_read_bytes", 0.0),
                ("below_write_bytes", below),
            ]
        };
        let named = |list: &[(&str, f64)]| list.iter().map(|(n, v)| (n.to_string(), *v)).collect::<Vec<_>>();
        assert!(foreign_io(&named(&io(1.005e9))).is_none());
        assert!(foreign_io(&named(&io(1.05e9))).is_some());
        assert!(foreign_cpu(&named(&[("foreign_cpu_ns", 2.9e7)]), 1e9).is_none());
        assert!(foreign_cpu(&named(&[("foreign_cpu_ns", 5e7)]), 1e9).is_some());
    }
}
