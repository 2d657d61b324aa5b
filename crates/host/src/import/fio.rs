//! fio's JSON and json+, 3.x: a phase for every job. Warnings may stand before, and
//! `--status-interval` writes one document after the other, of which the last counts. Percentiles
//! are those of `clat_ns`, where fio keeps them by default; those of syncs are in `sync.lat_ns`.
//! Reports show what fio shows: IOPS, bandwidth and latency.

use super::{A_GIB, Contents, Figures, Importer};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) struct Fio;

const WORK: &str = "fio";

#[derive(Deserialize)]
struct Output {
    #[serde(rename = "fio version", default)]
    version: String,
    #[serde(default)]
    time: String,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, Value>,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, Value>,
    #[serde(default)]
    read: DirectionFigures,
    #[serde(default)]
    write: DirectionFigures,
    #[serde(default)]
    trim: DirectionFigures,
    #[serde(default)]
    sync: SyncFigures,
    /// Milliseconds.
    #[serde(default)]
    job_runtime: f64,
    /// Percent.
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
}

/// Figures of one direction.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DirectionFigures {
    io_bytes: f64,
    bw_bytes: f64,
    iops: f64,
    /// Milliseconds.
    runtime: f64,
    total_ios: f64,
    clat_ns: Latency,
    lat_ns: Latency,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SyncFigures {
    lat_ns: Latency,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Latency {
    #[serde(rename = "N")]
    count: f64,
    mean: f64,
    max: f64,
    percentile: BTreeMap<String, f64>,
}

/// Our names of fio's percentiles.
const PERCENTILES: [(&str, &str); 5] =
    [("50.000000", "p50"), ("90.000000", "p90"), ("95.000000", "p95"), ("99.000000", "p99"), ("99.900000", "p999")];

impl Importer for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn about(&self) -> &'static str {
        "fio --output-format=json or json+: a phase for every job"
    }

    fn recognises(&self, text: &str) -> bool {
        text.contains("\"fio version\"")
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let output = last_document(text)?;
        ensure!(!output.jobs.is_empty(), "there is no job in fio's output");
        let mut figures = Figures::default();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for job in &output.jobs {
            let clone = seen.entry(&job.jobname).or_default();
            *clone += 1;
            let phase = if *clone > 1 { format!("{} #{clone}", job.jobname) } else { job.jobname.clone() };
            let judged = output.judged(job);
            job.tell(&phase, judged, output.has(job, "group_reporting"), &mut figures);
            match judged {
                Judged::Work => {}
                Judged::OneGib => figures.time_of("one GiB, in jobs that end with their time"),
                Judged::Slowest => figures.time_of("the 99th percentile, in jobs at a rate"),
            }
        }
        figures.facts.insert("fio version".into(), output.version);
        figures.facts.insert("fio time".into(), output.time);
        Ok(Contents::Figures(figures))
    }
}

/// The last that has jobs. A brace in a warning begins no document.
fn last_document(text: &str) -> Result<Output> {
    let mut found = None;
    let mut cause = None;
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        rest = &rest[at..];
        let mut documents = serde_json::Deserializer::from_str(rest).into_iter::<Output>();
        match documents.next() {
            Some(Ok(output)) => {
                found = Some(output);
                rest = &rest[documents.byte_offset()..];
            }
            Some(Err(error)) => {
                // Only at the begin of a line can another document follow.
                cause = Some(error);
                let Some(next) = rest.find("\n{") else { break };
                rest = &rest[next..];
            }
            None => break,
        }
    }
    match (found, cause) {
        (Some(output), _) => Ok(output),
        (None, Some(cause)) => Err(cause).context("this is not what fio 3 writes as JSON"),
        (None, None) => anyhow::bail!("there is no JSON in it"),
    }
}

/// What the time of a job is.
#[derive(Clone, Copy)]
enum Judged {
    Work,
    OneGib,
    /// Of the operations, the 99th percentile: at a rate the time says nothing.
    Slowest,
}

impl Output {
    fn has(&self, job: &Job, name: &str) -> bool {
        job.options.contains_key(name) || self.global.contains_key(name)
    }

    /// fio leaves `time_based` out of the options that it reports, but not the time given.
    fn judged(&self, job: &Job) -> Judged {
        let any = |names: &[&str]| names.iter().any(|name| self.has(job, name));
        match () {
            () if any(&["rate", "rate_iops"]) => Judged::Slowest,
            () if any(&["runtime", "timeout"]) => Judged::OneGib,
            () => Judged::Work,
        }
    }
}

impl Job {
    /// `grouped`: clones are reported as one, whose time is the sum of theirs, where each direction
    /// has the longest (fio's `sum_thread_stats`).
    fn tell(&self, phase: &str, judged: Judged, grouped: bool, figures: &mut Figures) {
        if self.error != 0 {
            let cause = i32::try_from(self.error).map(std::io::Error::from_raw_os_error);
            let cause = cause.map_or("an unknown error".to_string(), |cause| cause.to_string());
            figures.failed = Some(format!("fio's job {phase} failed: {cause}"));
        }
        let directions = [("read", &self.read), ("write", &self.write), ("trim", &self.trim)];
        let moved = || directions.into_iter().filter(|(_, moved)| moved.total_ios > 0.0);
        let whole = if grouped && moved().next().is_some() { 0.0 } else { self.job_runtime };
        let ran_ns = moved().map(|(_, moved)| moved.runtime).fold(whole, f64::max) * 1e6;
        let bytes: f64 = moved().map(|(_, moved)| moved.io_bytes).sum();
        let slowest = moved().filter_map(|(_, moved)| moved.latency().percentile.get("99.000000"));
        let time_ns = match judged {
            Judged::OneGib if bytes > 0.0 => ran_ns / (bytes / A_GIB),
            Judged::Work | Judged::OneGib => ran_ns,
            Judged::Slowest => slowest.copied().fold(0.0, f64::max),
        };
        if time_ns > 0.0 {
            figures.say(WORK, phase, "time_ns", time_ns);
        }
        for (direction, moved) in moved() {
            let mut show = |end: &str, name: &str, value: f64| {
                let (metric, name) = (format!("{direction}_{end}"), format!("{direction} {name}"));
                figures.show(WORK, phase, (&metric, &name), value);
            };
            show("operations_per_second", "IOPS", moved.iops);
            show("bytes_per_second", "bandwidth", moved.bw_bytes);
            moved.latency().tell(phase, direction, figures);
        }
        self.sync.lat_ns.tell(phase, "sync", figures);
        figures.say(WORK, phase, "cpu_user_share", self.usr_cpu / 100.0);
        figures.say(WORK, phase, "cpu_system_share", self.sys_cpu / 100.0);
    }
}

impl DirectionFigures {
    /// Asynchronous engines have the completion apart.
    fn latency(&self) -> &Latency {
        if self.clat_ns.count > 0.0 { &self.clat_ns } else { &self.lat_ns }
    }
}

impl Latency {
    fn tell(&self, phase: &str, kind: &str, figures: &mut Figures) {
        if self.count <= 0.0 {
            return;
        }
        for (key, name) in PERCENTILES {
            let found = self.percentile.get(key).copied();
            found.into_iter().for_each(|ns| figures.say(WORK, phase, &format!("{kind}_{name}_ns"), ns));
        }
        figures.show(WORK, phase, (&format!("{kind}_mean_ns"), &format!("{kind} latency, mean")), self.mean);
        if self.percentile.contains_key("99.000000") {
            figures.headline(WORK, phase, &format!("{kind}_p99_ns"), &format!("{kind} latency, p99"));
        }
        figures.say(WORK, phase, &format!("{kind}_max_ns"), self.max);
    }
}
