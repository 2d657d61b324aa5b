//! A RocksDB store under db_bench, its own benchmark: the log-structured kind of database, which writes sorted files in the
//! background while it answers.
//!
//! Each phase is one run of the program on the store that the run before has left, with the same number of keys and a fixed
//! seed; what it puts off is waited for within the phase, so that no phase pays for another's.

use crate::stage::phase::*;
use crate::stage::{AfterPhase, Printed, Program, Stage};
use crate::workload::settings::{Count, Size, settings};
use crate::workload::{Description, MEAN_OF_PHASES, Workload, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::{Objection, Settings};

pub(crate) struct Rocksdb;

settings! {
    Store {
        keys: Count = "200000", "how many keys there can be; and the operations of each phase but `fill-sync`";
        value: Size = "400", "bytes of a value, half of which compression takes away";
        syncs: Count = "1000", "operations of `fill-sync`, each durable before the next";
        threads: Count = "1", "threads of db_bench; each does its part of the operations";
    }
}

const DESCRIPTION: Description = Description {
    name: "rocksdb",
    about: "RocksDB under db_bench: a log-structured store filled, overwritten and read",
    settings: Store::ROWS,
    main_setting: "keys",
    phases: &[
        Phase::new("fill-sync", "write values, each durable before the next", Fresh, AllData, Durable),
        Phase::new("fill", "write values in random order, until sorted and durable", Warm, AllData, Durable),
        Phase::new(
            "overwrite",
            "write all of them anew in random order, until sorted and durable",
            Warm,
            AllData,
            Durable,
        ),
        Phase::new("read-random", "read values in random order, cold", Cold, Declared, Returned),
        Phase::new(
            "read-write",
            "read nine values and write one, in random order, until durable",
            Warm,
            AllData,
            Durable,
        ),
    ],
    programs: &[("db_bench", "rocksdb-tools")],
    versions: &[&["db_bench", "--version"]],
    judged: MEAN_OF_PHASES,
    seconds: 30,
    ..Description::EMPTY
};

/// What a value takes besides its bytes: the key, and its place in an index.
const BYTES_OF_KEY: u64 = 32;
/// The store, what is sorted into a second copy of it, and the log.
const COPIES: u64 = 3;
/// Values are half as large compressed, and random writes leave out a part of the keys; a read of all touches most blocks.
const READ_AT_LEAST: u64 = 8;

impl Workload for Rocksdb {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let store = Store::of(settings);
        let counts = [("keys", store.keys), ("value", store.value), ("syncs", store.syncs), ("threads", store.threads)];
        let nothing = counts.into_iter().find(|(_, count)| *count == 0);
        nothing.map(|(name, _)| Objection::new(name, format!("`{name}` is 0"), "give 1 or more")).into_iter().collect()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let store = Store::of(settings);
        Some(store.keys.saturating_mul(store.value.saturating_add(BYTES_OF_KEY)).saturating_mul(COPIES))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (store, folder) = (Store::of(settings), text(&stage.root().join("store")));
        let bench = |jobs: &str, operations: u64, more: &[&str]| store.bench(&folder, jobs, operations, more);
        let told = |operations: u64, job: &'static str| {
            move |p: &mut AfterPhase, printed: Printed| tell(p, &printed.text(p)?, job, operations)
        };
        let syncing = bench("fillrandom", store.syncs, &["--sync=true", "--use_existing_db=false"]);
        stage.phase_then("fill-sync", |p| p.output(&syncing), told(store.syncs, "fillrandom"))?;
        let sorted = "flush,waitforcompaction";
        let fill = bench(&format!("fillrandom,{sorted}"), store.keys, &["--use_existing_db=false"]);
        stage.phase_then("fill", |p| p.output(&fill), told(store.keys, "fillrandom"))?;
        let overwrite = bench(&format!("overwrite,{sorted}"), store.keys, &[]);
        stage.phase_then("overwrite", |p| p.output(&overwrite), told(store.keys, "overwrite"))?;
        let read = bench("readrandom", store.keys, &["--readonly=true"]);
        let least = store.keys * store.value / READ_AT_LEAST;
        for _ in stage.repeats() {
            stage.phase_then(
                "read-random",
                |p| p.output(&read),
                |p, printed: Printed| {
                    p.reads_at_least(least);
                    tell(p, &printed.text(p)?, "readrandom", store.keys)
                },
            )?;
        }
        let both = bench("readrandomwriterandom", store.keys, &["--readwritepercent=90"]);
        stage.phase_then("read-write", |p| p.output(&both), told(store.keys, "readrandomwriterandom"))?;
        stage.run(&bench("verifychecksum", store.keys, &[])).context("the store is not whole").map(drop)
    }
}

impl Store {
    /// Operations are those of all threads together.
    fn bench(&self, folder: &str, jobs: &str, operations: u64, more: &[&str]) -> Program {
        let words = [
            "db_bench".to_string(),
            format!("--benchmarks={jobs}"),
            format!("--db={folder}"),
            format!("--wal_dir={folder}"),
            format!("--num={}", self.keys),
            format!(
                "--{}={}",
                if jobs.starts_with("read") { "reads" } else { "writes" },
                operations.div_ceil(self.threads)
            ),
            format!("--value_size={}", self.value),
            format!("--threads={}", self.threads),
            "--seed=1".to_string(),
            "--stats_per_interval=0".to_string(),
            "--progress_reports=false".to_string(),
        ];
        let existing =
            (!more.iter().any(|word| word.starts_with("--use_existing_db"))).then_some("--use_existing_db=true");
        Program::new(
            words.into_iter().chain(existing.map(String::from)).chain(more.iter().map(|word| word.to_string())),
        )
    }
}

/// The line of a job, and that it did all of its operations.
fn tell(p: &mut AfterPhase, printed: &str, job: &str, operations: u64) -> Result<()> {
    let (done, per_second) = line_of(printed, job)?;
    ensure!(done >= operations, "db_bench did {done} of {operations} operations of {job}");
    p.say("operations_per_second", per_second);
    Ok(())
}

/// Operations, and how many a second by db_bench's own clock, without opening the store:
/// `fillrandom   :    4.3 micros/op 231481 ops/sec 0.9 seconds 200000 operations;`.
fn line_of(printed: &str, job: &str) -> Result<(u64, f64)> {
    let found = printed.lines().rev().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == job));
    let (_, rest) = found.with_context(|| format!("db_bench printed no line of {job}, but: {printed}"))?;
    let before =
        |unit: &str| rest.split(unit).next().and_then(|text| text.split_whitespace().last()?.parse::<f64>().ok());
    let both = before(" operations").zip(before(" ops/sec"));
    let (done, rate) = both.with_context(|| format!("db_bench printed no rate of {job}, but: {rest}"))?;
    ensure!(rate > 0.0, "db_bench printed a rate of {rate} operations a second");
    Ok((done as u64, rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As db_bench 7.8.3 prints it.
    const PRINTED: &str = "Keys:       16 bytes each (+ 0 bytes user-defined timestamp)\nCompression: Snappy\n\
        DB path: [/tmp/t1/db]\nfillrandom   :      10.215 micros/op 97684 ops/sec 0.020 seconds 2000 operations;   38.8 MB/s\n\
        readrandom   :       2.764 micros/op 359582 ops/sec 0.006 seconds 2000 operations;   95.3 MB/s (1336 of 2000 found)\n";

    #[test]
    fn the_line_of_each_job_is_found() {
        assert_eq!(line_of(PRINTED, "fillrandom").unwrap(), (2000, 97684.0));
        assert_eq!(line_of(PRINTED, "readrandom").unwrap(), (2000, 359582.0));
        assert!(line_of(PRINTED, "overwrite").is_err());
        assert!(line_of("fillrandom : nothing", "fillrandom").is_err());
    }

    #[test]
    fn nothing_of_anything_is_refused() {
        for (name, wanted) in [("keys", "keys"), ("value", "value"), ("syncs", "syncs"), ("threads", "threads")] {
            let settings = Settings([(name.to_string(), json!(0))].into());
            assert_eq!(Rocksdb.objections(&settings)[0].setting, wanted);
        }
        assert!(Rocksdb.objections(&Settings::default()).is_empty());
    }
}
