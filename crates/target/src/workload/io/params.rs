//! The settings of `io`: what they mean, and which cannot be.

use super::Io;
use super::engine::Engine;
use crate::stage::open_loop::{self, Spacing};
use crate::workload::Workload;
use crate::workload::settings::{Count, Duration, Flag, Size, Texts, choice, settings};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::sys::file::AlignedBuffer;
use pickfs_system::units::show_bytes;

choice! { pub(crate) EngineName { Plain = "plain", IoUring = "io_uring" } }
choice! { pub(crate) Arrival { Poisson = "poisson", Even = "even" } }

settings! {
    pub(crate) Given {
        engine: EngineName = "plain", "pread and pwrite, or io_uring";
        size: Size = "256MiB", "size of the file";
        block: Size = "4KiB", "bytes of a random operation";
        sequential_block: Size = "1MiB", "bytes of an operation of the sequential phases";
        threads: Count<1> = "1", "each with its own ring";
        depth: Count<1> = "1", "operations that each of them has under way; with plain calls as many threads do them";
        direct: Flag = "false", "past the page cache (O_DIRECT)";
        operations: Count<1>, "of a random phase; by default each block of the file once";
        rate: Count = "0", "random operations a second, on a schedule; 0 for as fast as they go, each after another";
        time: Duration, "how long at that rate; by default 10 s";
        arrivals: Arrival = "poisson", "how operations at a rate follow each other";
        fsync: Count = "0", "random writes of a thread between two calls of fdatasync; 0 for none but the one at the end";
        phases: Texts, "which of them, always in the same order; by default all, at a rate the random ones";
    }
}

/// How long a rate is offered by default.
const USUAL_TIME: std::time::Duration = std::time::Duration::from_secs(10);
/// Fewer show nothing of the slowest one in a hundred.
const LEAST_FOR_P99: usize = 2000;
const SMALLEST_BLOCK: u64 = 512;
const MOST_THREADS: u64 = 1024;
/// Schedules are the same for all targets and rounds.
const SEED: u64 = 1;

/// Settings that have passed [`objections`].
pub(crate) struct IoParams {
    pub engine: Engine,
    pub size: u64,
    pub block: usize,
    /// Block of the sequential phases.
    pub run: usize,
    pub threads: usize,
    pub depth: usize,
    pub direct: bool,
    /// Number of operations of a random phase.
    pub operations: usize,
    pub rate: Option<f64>,
    pub spacing: Spacing,
    pub fsync: u64,
}

impl IoParams {
    pub(crate) fn of(given: &Given) -> IoParams {
        let (size, block) = (given.size, given.block.max(1));
        let rate = (given.rate > 0).then_some(given.rate as f64);
        let seconds = given.time.unwrap_or(USUAL_TIME).as_secs_f64();
        let closed = || given.operations.unwrap_or(size / block) as usize;
        IoParams {
            engine: if given.engine == EngineName::IoUring { Engine::IoUring } else { Engine::Plain },
            size,
            block: block as usize,
            run: given.sequential_block.max(1) as usize,
            threads: given.threads as usize,
            depth: given.depth as usize,
            direct: given.direct,
            operations: rate.map_or_else(closed, |rate| (rate * seconds) as usize),
            rate,
            spacing: if given.arrivals == Arrival::Even { Spacing::Even } else { Spacing::Poisson },
            fsync: given.fsync,
        }
    }

    /// Blocks of the file, as random phases see it.
    pub(crate) fn blocks(&self) -> u32 {
        (self.size / self.block as u64) as u32
    }

    /// The same, of the sequential phases.
    pub(crate) fn runs(&self) -> u32 {
        (self.size / self.run as u64) as u32
    }

    /// When each operation of a random phase begins, at a rate.
    pub(crate) fn due(&self) -> Option<Vec<u64>> {
        self.rate.map(|rate| open_loop::schedule(rate, self.operations, self.spacing, SEED))
    }
}

/// Names of the phases to play.
pub(crate) fn phases(given: &Given) -> Vec<String> {
    let asked = given.phases.clone().unwrap_or_default();
    let names = || Io.description().phases.iter().map(|phase| phase.name.to_string());
    if asked.is_empty() { names().filter(|name| given.rate == 0 || is_random(name)).collect() } else { asked }
}

fn is_random(name: &str) -> bool {
    name.starts_with("random")
}

pub(crate) fn objections(settings: &Settings) -> Vec<Objection> {
    let given = Given::of(settings);
    let params = IoParams::of(&given);
    let found = [
        bad_phase(&given, &params),
        bad_block("block", params.block, &params),
        bad_block("sequential_block", params.run, &params),
        bad_count(&given),
        bad_loop(&given, &params),
    ];
    found.into_iter().flatten().collect()
}

fn bad_phase(given: &Given, params: &IoParams) -> Option<Objection> {
    let known: Vec<&str> = Io.description().phases.iter().map(|phase| &*phase.name).collect();
    let asked = phases(given);
    let unknown = asked.iter().find(|name| !known.contains(&name.as_str()));
    let sequential = asked.iter().find(|name| params.rate.is_some() && !is_random(name));
    let object = |message, remedy: &str| Some(Objection::new("phases", message, remedy));
    match (unknown, sequential) {
        (Some(name), _) => object(format!("there is no phase `{name}`"), &format!("use {}", known.join(", "))),
        (_, Some(name)) => {
            let remedy = "leave it out, or measure it in a separate work";
            object(
                format!("at a rate there is no `{name}`: it is judged by its time, and random phases by latency"),
                remedy,
            )
        }
        _ => None,
    }
}

fn bad_block(setting: &'static str, block: usize, params: &IoParams) -> Option<Objection> {
    let (block, shown) = (block as u64, show_bytes(block as f64));
    let least = if params.direct { AlignedBuffer::ALIGNMENT as u64 } else { SMALLEST_BLOCK };
    let message = if block % least != 0 {
        format!("{shown} is no multiple of {}", show_bytes(least as f64))
    } else if params.size % block != 0 {
        format!("a file of {} does not consist of blocks of {shown}", show_bytes(params.size as f64))
    } else if params.size / block > u64::from(u32::MAX) {
        format!("a file of {} has too many blocks of {shown}", show_bytes(params.size as f64))
    } else if block > 1 << 30 {
        format!("{shown} are too many for one operation")
    } else {
        return None;
    };
    Some(Objection::new(setting, message, "take powers of two, such as 4KiB of 256MiB"))
}

fn bad_count(given: &Given) -> Option<Objection> {
    let all = given.threads.saturating_mul(given.depth);
    let message = format!("{all} operations at a time are too many");
    (all > MOST_THREADS).then(|| Objection::new("depth", message, "give at most 1024 in all threads together"))
}

/// Whether work and rate fit together.
fn bad_loop(given: &Given, params: &IoParams) -> Option<Objection> {
    if params.rate.is_none() && given.time.is_some() {
        let message = "without a rate the work is fixed, and its time is measured".to_string();
        return Some(Objection::new("time", message, "give `operations` instead, or a `rate`"));
    }
    if params.rate.is_some() && given.operations.is_some() {
        let message = "rate and time give the number of operations".to_string();
        return Some(Objection::new("operations", message, "leave it out, and give `time`"));
    }
    let few = params.rate.is_some() && params.operations < LEAST_FOR_P99;
    let message = format!("{} operations are too few for the slowest one in a hundred", params.operations);
    few.then(|| Objection::new("rate", message, &format!("let rate times time be {LEAST_FOR_P99} or more")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(pairs: Value) -> Settings {
        Settings(pairs.as_object().unwrap().clone().into_iter().collect())
    }

    fn given(pairs: Value) -> Given {
        Given::of(&settings(pairs))
    }

    #[test]
    fn what_cannot_be_is_told() {
        let second = 1_000_000_000u64;
        let rows: [(Value, &str); 16] = [
            (json!({}), ""),
            (json!({"size": 1 << 20, "block": 512}), ""),
            (json!({"size": 1 << 20, "block": 512, "direct": true}), "block"),
            (json!({"block": 1000}), "block"),
            (json!({"size": 3 << 20, "block": 2 << 20}), "block"),
            (json!({"size": 3 << 19}), "sequential_block"),
            (json!({"size": 1u64 << 42, "block": 512}), "block"),
            (json!({"phases": ["random-read"]}), ""),
            (json!({"phases": ["random-reed"]}), "phases"),
            (json!({"rate": 1000}), ""),
            (json!({"rate": 1000, "phases": ["random-read", "sequential-read"]}), "phases"),
            (json!({"rate": 100, "time": 10 * second}), "rate"),
            (json!({"rate": 200, "time": 10 * second}), ""),
            (json!({"rate": 1000, "operations": 5}), "operations"),
            (json!({"time": second}), "time"),
            (json!({"threads": 100, "depth": 32}), "depth"),
        ];
        for (pairs, setting) in rows {
            let found = objections(&settings(pairs.clone()));
            let settings: Vec<&str> = found.iter().map(|objection| objection.setting).collect();
            assert_eq!(settings, Vec::from_iter(Some(setting).filter(|name| !name.is_empty())), "{pairs}");
        }
    }

    #[test]
    fn a_rate_has_the_random_phases_alone() {
        assert_eq!(phases(&given(json!({}))).len(), 4);
        assert_eq!(phases(&given(json!({"rate": 500}))), ["random-read", "random-write"]);
        assert_eq!(phases(&given(json!({"rate": 0, "phases": ["random-read"]}))), ["random-read"]);
    }

    #[test]
    fn the_work_is_the_file_once_or_what_the_rate_comes_to() {
        assert_eq!(IoParams::of(&given(json!({}))).operations, 65_536);
        assert_eq!(IoParams::of(&given(json!({"operations": 7}))).operations, 7);
        let at_a_rate = IoParams::of(&given(json!({"rate": 300, "time": 20_000_000_000u64, "arrivals": "even"})));
        assert_eq!((at_a_rate.operations, at_a_rate.due().unwrap().len()), (6000, 6000));
    }
}
