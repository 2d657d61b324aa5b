//! The output of fio 3.33 in JSON (`--output-format=json+`, which has every latency bucket), by
//! sections.

use super::job::{Rate, Section};
use crate::stage::{Latencies, Part};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
pub(crate) struct Output {
    jobs: Vec<JobOutput>,
}

/// One job; clones of a section have its name each, unless fio was asked to report them as a group.
#[derive(Debug, Deserialize)]
struct JobOutput {
    jobname: String,
    error: i64,
    #[serde(default)]
    total_err: u64,
    /// Milliseconds.
    job_runtime: u64,
    read: DirectionFigures,
    write: DirectionFigures,
    trim: DirectionFigures,
    sync: SyncFigures,
}

/// Figures of one direction.
#[derive(Debug, Deserialize)]
struct DirectionFigures {
    io_bytes: u64,
    /// Milliseconds.
    runtime: u64,
    total_ios: u64,
    clat_ns: Buckets,
}

#[derive(Debug, Deserialize)]
struct SyncFigures {
    lat_ns: Buckets,
}

/// Nanoseconds in the middle of each bucket, and how often; nothing where the job file has switched
/// them off.
#[derive(Debug, Default, Deserialize)]
struct Buckets {
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

/// The amount of work that the time of a part is given for where the part ends by time.
const A_GIB: f64 = (1u64 << 30) as f64;
/// Least share of a rate at which it counts as kept.
const KEPT: f64 = 0.95;
/// The same, where nothing is read or written.
const OPERATIONS: f64 = 1000.0;

impl Output {
    /// fio may say something before.
    pub(crate) fn parse(text: &str) -> Result<Output> {
        let start = text.find('{').context("fio reported nothing")?;
        serde_json::from_str(&text[start..]).context("cannot read what fio reported; is it fio 3.33 or later?")
    }

    /// The part that it reports for a section.
    pub(crate) fn part(&self, section: &Section, name: &str) -> Result<Part> {
        let clones = self.clones(section);
        ensure!(!clones.is_empty(), "fio reported nothing of [{}]", section.name);
        if let Some(failed) = clones.iter().find(|job| job.error != 0 || job.total_err != 0) {
            let cause = std::io::Error::from_raw_os_error(failed.error as i32);
            bail!("[{}] failed: {cause}, {} errors", section.name, failed.total_err.max(1));
        }
        let sum = Sum::of(section, &clones);
        let mut part = Part::new(name, sum.time_ns(section)?).say("ran_ns", sum.ran_ns);
        for (direction, moved) in &sum.moved {
            part = moved.tell(direction, part);
        }
        Ok(if sum.syncs.count() > 0 { part.latencies("sync", sum.syncs) } else { part })
    }
}

impl Output {
    fn clones(&self, section: &Section) -> Vec<&JobOutput> {
        self.jobs.iter().filter(|job| job.jobname == section.name).collect()
    }

    /// Why the figures of a section at a rate say less than they seem to.
    pub(crate) fn rate_not_kept(&self, section: &Section) -> Option<String> {
        let clones = self.clones(section);
        let kept = Sum::of(section, &clones).kept(section, clones.len() as f64 * section.told_as_one()?)?;
        (kept < KEPT).then(|| {
            let share = pickfs_system::units::show_share(kept);
            format!("[{}] got {share} of its rate, so that its latencies are those of its top speed", section.name)
        })
    }
}

/// All clones of a section together.
struct Sum {
    ran_ns: f64,
    moved: Vec<(&'static str, All)>,
    syncs: Latencies,
}

/// One direction of all clones.
#[derive(Default)]
struct All {
    bytes: u64,
    operations: u64,
    ran_ns: f64,
    latencies: Latencies,
}

impl Sum {
    fn of(section: &Section, clones: &[&JobOutput]) -> Sum {
        let all = |of: fn(&JobOutput) -> &DirectionFigures| All::of(clones.iter().map(|job| of(job)));
        let moved = [("read", all(|job| &job.read)), ("write", all(|job| &job.write)), ("trim", all(|job| &job.trim))];
        let mut syncs = Latencies::new();
        clones.iter().for_each(|job| job.sync.lat_ns.record_in(&mut syncs));
        // For clones that are reported as one this is the sum, where each direction has the longest
        // (`sum_thread_stats`).
        let together = section.told_as_one().unwrap_or(f64::INFINITY);
        let whole = clones.iter().map(|job| job.job_runtime as f64 * 1e6 / together);
        let ran_ns = whole.chain(moved.iter().map(|(_, all)| all.ran_ns)).fold(0.0, f64::max);
        Sum { ran_ns, moved: moved.into_iter().filter(|(_, all)| all.operations > 0).collect(), syncs }
    }

    /// The share of its rate that it did, by the direction that did most: a mix decides how much of
    /// the others is done.
    fn kept(&self, section: &Section, clones: f64) -> Option<f64> {
        let each = self.moved.iter().filter_map(|(direction, moved)| {
            let (rate, unit) = section.asked(direction)?;
            let operations = moved.operations as f64;
            let done = if unit == Rate::Bytes { moved.bytes as f64 } else { operations };
            let asked = rate * clones * moved.ran_ns / 1e9;
            // The next of each clone may have been due just then; and chance may have asked for
            // fewer.
            let chance = if section.is_poisson() { 3.0 / operations.sqrt() } else { 0.0 };
            (asked > 0.0).then(|| done * (1.0 + clones / operations + chance) / asked)
        });
        each.reduce(f64::max)
    }

    /// Fixed work by its time; work for a time by what one GiB of it took, or a thousand operations
    /// without any bytes; work at a rate by the 99th percentile.
    fn time_ns(&self, section: &Section) -> Result<f64> {
        let name = &section.name;
        if section.is_at_a_rate() {
            let mut all = Latencies::new();
            self.moved.iter().for_each(|(_, moved)| all.add(&moved.latencies));
            ensure!(all.count() > 0, "[{name}] is at a rate and has no latencies; leave clat_percentiles on");
            return Ok(all.quantile(0.99) as f64);
        }
        ensure!(
            self.ran_ns > 0.0,
            "[{name}] took less than a millisecond, which fio cannot measure; give it more work"
        );
        if !section.is_for_a_time() {
            return Ok(self.ran_ns);
        }
        let bytes: u64 = self.moved.iter().map(|(_, moved)| moved.bytes).sum();
        let operations: u64 = self.moved.iter().map(|(_, moved)| moved.operations).sum();
        ensure!(operations > 0, "[{name}] did nothing in its time");
        let pieces = if bytes > 0 { bytes as f64 / A_GIB } else { operations as f64 / OPERATIONS };
        Ok(self.ran_ns / pieces)
    }
}

impl All {
    fn of<'a>(clones: impl Iterator<Item = &'a DirectionFigures>) -> All {
        let mut all = All::default();
        for moved in clones {
            all.bytes += moved.io_bytes;
            all.operations += moved.total_ios;
            all.ran_ns = all.ran_ns.max(moved.runtime as f64 * 1e6);
            moved.clat_ns.record_in(&mut all.latencies);
        }
        all
    }

    fn tell(&self, direction: &str, part: Part) -> Part {
        let a_second = |count: u64| count as f64 / (self.ran_ns / 1e9);
        let part = if self.ran_ns > 0.0 {
            let part = part.say(&format!("{direction}_bytes_per_second"), a_second(self.bytes));
            part.say(&format!("{direction}_operations_per_second"), a_second(self.operations))
        } else {
            part
        };
        if self.latencies.count() > 0 { part.latencies(direction, self.latencies.clone()) } else { part }
    }
}

impl Buckets {
    fn record_in(&self, latencies: &mut Latencies) {
        self.bins.iter().for_each(|(ns, count)| latencies.record_many(*ns, *count));
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::Job;
    use super::*;
    use serde_json::Value;

    /// The output of fio 3.33 for fixtures/fio-3.33.fio.
    const TOLD: &str = include_str!("../../../../../fixtures/fio-3.33.json");
    const JOB: &str = include_str!("../../../../../fixtures/fio-3.33.fio");

    fn sum(name: &str) -> (Section, Sum) {
        let output = Output::parse(TOLD).unwrap();
        let section = Job::parse(JOB).sections.into_iter().find(|section| section.name == name).unwrap();
        let clones: Vec<&JobOutput> = output.jobs.iter().filter(|job| job.jobname == name).collect();
        let sum = Sum::of(&section, &clones);
        (section, sum)
    }

    fn raw(job: usize) -> Value {
        serde_json::from_str::<Value>(&TOLD[TOLD.find('{').unwrap()..]).unwrap()["jobs"][job].clone()
    }

    #[test]
    fn percentiles_are_those_that_fio_tells() {
        for (name, job, direction) in [("load", 0, "write"), ("commit", 3, "write")] {
            let (_, sum) = sum(name);
            let moved = &sum.moved.iter().find(|(found, _)| *found == direction).unwrap().1;
            for (share, key) in [(0.5, "50.000000"), (0.9, "90.000000"), (0.99, "99.000000"), (0.999, "99.900000")] {
                let expected = raw(job)[direction]["clat_ns"]["percentile"][key].as_f64().unwrap();
                let found = moved.latencies.quantile(share) as f64;
                assert!((found / expected - 1.0).abs() < 0.002, "{name} {share}: {found}, fio says {expected}");
            }
        }
    }

    #[test]
    fn clones_are_added_up() {
        let (section, sum) = sum("query");
        let [(direction, read)] = &sum.moved[..] else { panic!("it only reads") };
        let (one, other) = (raw(1), raw(2));
        let of = |key: &str| [&one, &other].map(|job| job["read"][key].as_u64().unwrap());
        assert_eq!((*direction, read.operations, read.bytes), ("read", 1024, 8 << 20));
        assert_eq!(read.latencies.count(), of("total_ios").iter().sum::<u64>());
        assert_eq!(read.ran_ns, *of("runtime").iter().max().unwrap() as f64 * 1e6);
        // Fixed work: as long as the slower of the two.
        assert_eq!(sum.time_ns(&section).unwrap(), sum.ran_ns);
    }

    #[test]
    fn clones_that_are_told_as_one_take_as_long_as_the_slowest() {
        let mut job = raw(0);
        // As fio 3.33 reports four that took 15 ms each.
        job["job_runtime"] = 60.into();
        let output: JobOutput = serde_json::from_value(job).unwrap();
        for (options, milliseconds) in [
            ("numjobs=4\ngroup_reporting", 16.0),
            ("numjobs=2\ngroup_reporting=1", 30.0),
            ("numjobs=4k\ngroup_reporting", 16.0),
            ("numjobs=4\ngroup_reporting=0", 60.0),
            ("group_reporting", 60.0),
        ] {
            let section = &Job::parse(&format!("[load]\nrw=write\n{options}")).sections[0];
            assert_eq!(Sum::of(section, &[&output]).time_ns(section).unwrap(), milliseconds * 1e6, "{options}");
        }
    }

    #[test]
    fn work_for_a_time_is_told_for_a_gib_and_at_a_rate_by_latency() {
        let (section, sum) = sum("commit");
        let moved = &sum.moved[0].1;
        let wanted = sum.ran_ns * f64::from(1 << 30) / moved.bytes as f64;
        assert!((sum.time_ns(&section).unwrap() / wanted - 1.0).abs() < 1e-12);
        assert!(sum.syncs.count() > 100 && sum.ran_ns >= 1e9, "{} in {}", sum.syncs.count(), sum.ran_ns);
        let at_a_rate = &Job::parse("[commit]\nrate_iops=100").sections[0];
        assert_eq!(sum.time_ns(at_a_rate).unwrap(), moved.latencies.quantile(0.99) as f64);
        let fixed = &Job::parse("[commit]\nrw=read").sections[0];
        assert_eq!(Sum { moved: Vec::new(), ..sum }.time_ns(fixed).unwrap() as u64 / 100_000_000, 10);
    }

    #[test]
    fn a_rate_that_is_not_kept_is_found_out() {
        let output = Output::parse(TOLD).unwrap();
        // 1216 writes of 9.5 MiB in 1.001 s, and two clones with 512 reads each in 77 ms.
        for (section, found) in [
            ("[commit]\nrate_iops=1216", false),
            ("[commit]\nrate_iops=1270", false),
            ("[commit]\nrate_iops=1300", true),
            ("[commit]\nrate_iops=1300\nrate_process=poisson", false),
            ("[commit]\nrate_iops=2000\nrate_process=poisson", true),
            ("[commit]\nrate_iops=2000\nthinktime=5", false),
            ("[commit]\nrate_iops=5000,1k", false),
            ("[commit]\nrate_iops=100,5000", true),
            ("[commit]\nrate=9m", false),
            ("[commit]\nrate=20MiB", true),
            ("[commit]\nrate=,20m", true),
            ("[commit]\nrate=20m,", false),
            ("[commit]\nrate=much", false),
            ("[commit]\nrw=write", false),
            ("[query]\nnumjobs=2\nrate_iops=6k", false),
            ("[query]\nnumjobs=2\nrate_iops=8k", true),
        ] {
            let why = output.rate_not_kept(&Job::parse(section).sections[0]);
            assert_eq!(why.is_some(), found, "{section}: {why:?}");
        }
    }

    #[test]
    fn errors_and_silence_fail() {
        let section = &Job::parse("[load]\nrw=write").sections[0];
        let part = |text: &str| Output::parse(text).and_then(|output| output.part(section, "load")).map(drop);
        part(TOLD).unwrap();
        let full = TOLD.replacen("\"error\" : 0", "\"error\" : 28", 1);
        assert!(part(&full).unwrap_err().to_string().contains("No space left"));
        assert!(part(&TOLD.replace("\"load\"", "\"other\"")).unwrap_err().to_string().contains("nothing of [load]"));
        assert!(part("fio: killed").is_err());
        part(&format!("fio: a note\n{TOLD}")).unwrap();
    }
}
