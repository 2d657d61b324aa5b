//! Every metric in a journal says by its name what it counts, so that a report can print and judge
//! it.

use crate::common::{Lab, Observation, not_run, unable};
use pickfs_core::journal::Outcome;
use pickfs_system::units::Unit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Things that are counted and have no unit.
const COUNTS: &[&str] = &[
    "device_flushes", "device_read_requests", "device_write_requests", "done_times", "layout_fragments_mean",
    "layout_fragments_p99", "removed_files", "space_entries", "space_files", "swap_in_pages", "swap_out_pages",
    "work_files",
];

/// Counts of compression, and numbers of operations whose latencies are reported.
fn is_a_count(metric: &str) -> bool {
    COUNTS.contains(&metric) || metric.starts_with("compression_") || metric.ends_with("_operations")
}

#[test]
fn every_metric_has_a_unit_or_is_a_count() {
    if not_run(unable(&["btrfs"])) {
        return;
    }
    let lab = Lab::new();
    let plan = "duplicate = false\nbacking = { memory = \"256MiB\" }\n[[target]]\nfs = \"btrfs\"\nvariant = \"zstd:1\"\n\
                [[work]]\nworkload = \"tree\"\nfiles = 60\nbytes = \"3MiB\"\n[stop]\nrounds = 1\n";
    lab.run_plan(plan).code(0);
    let text = std::fs::read_to_string(lab.journal()).expect("the journal");
    let mut metrics: Vec<String> = text.lines().filter_map(metric).collect();
    metrics.sort();
    metrics.dedup();
    assert!(metrics.len() > 40, "{metrics:?}");
    for metric in &metrics {
        let counted = Unit::of_metric(metric) == Unit::Count;
        assert_eq!(counted, is_a_count(metric) && !metric.ends_with("_bytes"), "{metric}");
    }
    for metric in ["sync_write_bytes", "sync_busy_ns", "after_write_bytes", "returned_ns", "durable_ns"] {
        assert!(metrics.iter().any(|known| known == metric), "no {metric} in {metrics:?}");
    }
    let folded = lab.folded();
    let written = |metric: &str| folded.value(&folded.cells[0], "write", metric).expect("it is told");
    // A copy of 3 MiB into an empty cache returns before anything is written.
    assert!(written("sync_write_bytes") > 0.0 && written("sync_write_bytes") <= written("device_write_bytes"));
}

/// Pages that another program makes dirty on another file system are neither synced nor waited for:
/// ext4 would answer each `sync(2)` of the machine with a flush of its device, without a byte.
#[test]
fn what_others_make_dirty_does_not_keep_the_device_busy() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let over = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::fs::write(lab.path("foreign"), vec![1; 8 << 20]).expect("room for 8 MiB");
            }
        });
        let plan = "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\n\
                    [[work]]\nworkload = \"tree\"\nfiles = 60\nbytes = \"3MiB\"\n[stop]\nrounds = 1\n";
        let said = lab.run_plan(plan);
        over.store(true, Ordering::Relaxed);
        said
    });
    said.code(0);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    let value = |phase: &str, metric: &str| folded.value(cell, phase, metric).expect("it is told");
    for phase in ["write", "tar-read", "copy-read", "stat-walk", "remove"] {
        let moved = value(phase, "after_write_bytes") > 0.0;
        assert!(moved || value(phase, "after_ns") == 0.0, "{phase}: {} ns", value(phase, "after_ns"));
    }
    assert!(cell.flags.iter().all(|flag| flag.flag != "not-settled"), "{:?}", cell.flags);
    lab.assert_nothing_left();
}

/// While a cell runs and not after it; the run's journal has what was read back.
#[test]
fn processors_are_kept_awake_as_long_as_a_cell_lasts() {
    const LIMIT: &str = "/dev/cpu_dma_latency";
    let lacks = (!std::path::Path::new(LIMIT).exists()).then(|| format!("this kernel has no {LIMIT}"));
    if not_run(unable(&["ext4"]).or(lacks)) {
        return;
    }
    let limit = || {
        let bytes = std::fs::read(LIMIT).expect("root reads it");
        i32::from_ne_bytes(bytes[..4].try_into().expect("four bytes"))
    };
    let (lab, before) = (Lab::new(), limit());
    let check = format!("test $(od -An -td4 -N4 {LIMIT}) -le 7");
    let plan = format!(
        "duplicate = false\nhost = {{ cpu_latency_us = 7 }}\nbacking = {{ memory = \"64MiB\" }}\n\
         target = [{{ fs = \"ext4\" }}]\n[[work]]\nworkload = \"command\"\ncommand = [\"sh\", \"-c\", \"{check}\"]\n\
         writes = false\nstart = \"warm\"\n[stop]\nrounds = 1\n"
    );
    lab.run_plan(&plan).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells[0].outcome, Some(Outcome::Done), "{:?}", folded.cells[0]);
    let read_back = folded.host.get("cpu latency limit").map(String::as_str);
    assert_eq!(read_back, Some(format!("{} µs", before.min(7)).as_str()));
    assert!(limit() == before || limit() != 7, "{}", limit());
    lab.assert_nothing_left();
}

/// The metric of a sample's line.
fn metric(line: &str) -> Option<String> {
    let record: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
    let found = [record.get("metric"), record.get("sample").and_then(|sample| sample.get("metric"))];
    found.into_iter().flatten().next()?.as_str().map(String::from)
}

/// While a program is timed it shares its processors with us.
#[test]
fn pickfs_hardly_wakes_up_in_a_phase() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let look = |name: &str| format!("cat /proc/uptime /proc/$PPID/task/*/status > {}", lab.path(name).display());
    let script = format!("{}; sleep 2; {}", look("before"), look("after"));
    let plan = format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\ntarget = [{{ fs = \"ext4\" }}]\n[[work]]\n\
         workload = \"command\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\nwrites = false\nstart = \"warm\"\n\
         [stop]\nrounds = 1\n"
    );
    lab.run_plan(&plan).code(0);
    // Seconds, and how often all threads of the agent had gone to sleep.
    let seen = |name: &str| {
        let text = std::fs::read_to_string(lab.path(name)).expect("what the program saw");
        let seconds: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("the uptime");
        let slept = text.lines().filter_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        (seconds, slept.map(|count| count.trim().parse::<u64>().expect("a number")).sum::<u64>())
    };
    let ((begun, before), (ended, after)) = (seen("before"), seen("after"));
    // The sampler looks ten times a second.
    let at_most = ((ended - begun) * 10.0) as u64 + 10;
    assert!((1..=at_most).contains(&(after - before)), "{} times, not {at_most}", after - before);
}
