//! The settings of `io`: what they mean, and which cannot be.

use super::super::Setting;
use super::PHASES;
use super::drive::{self, Spacing};
use super::engine::Engine;
use crate::plan::{Kind, Objection, Settings};
use crate::sys::file::AlignedBuffer;
use crate::units::show_bytes;

pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "engine",
        kind: Kind::Choice(&["plain", "io_uring"]),
        default: Some("plain"),
        about: "pread and pwrite, or io_uring",
    },
    Setting { name: "size", kind: Kind::Size, default: Some("256MiB"), about: "size of the file" },
    Setting { name: "block", kind: Kind::Size, default: Some("4KiB"), about: "bytes of a random operation" },
    Setting {
        name: "sequential_block",
        kind: Kind::Size,
        default: Some("1MiB"),
        about: "bytes of an operation of the sequential phases",
    },
    Setting { name: "threads", kind: Kind::Count, default: Some("1"), about: "each with a ring of its own" },
    Setting {
        name: "depth",
        kind: Kind::Count,
        default: Some("1"),
        about: "operations that each of them has under way; with plain calls so many threads do them",
    },
    Setting { name: "direct", kind: Kind::Flag, default: Some("false"), about: "past the page cache (O_DIRECT)" },
    Setting {
        name: "operations",
        kind: Kind::Count,
        default: None,
        about: "of a random phase; unless said, each block of the file once",
    },
    Setting {
        name: "rate",
        kind: Kind::Count,
        default: Some("0"),
        about: "random operations a second, on a schedule; 0 for as fast as they go, each after another",
    },
    Setting { name: "time", kind: Kind::Duration, default: None, about: "how long at that rate; 10 s unless said" },
    Setting {
        name: "arrivals",
        kind: Kind::Choice(&["poisson", "even"]),
        default: Some("poisson"),
        about: "how operations at a rate follow each other",
    },
    Setting {
        name: "fsync",
        kind: Kind::Count,
        default: Some("0"),
        about: "fdatasync after so many random writes of a thread; 0 for none but the one at the end",
    },
    Setting {
        name: "phases",
        kind: Kind::Texts,
        default: None,
        about: "which of them, always in the same order; all unless said, at a rate the random ones",
    },
];

/// As long as a rate is offered unless said.
const USUAL_TIME_NS: u64 = 10_000_000_000;
/// Fewer tell nothing of the slowest one in a hundred.
const LEAST_FOR_P99: usize = 2000;
const SMALLEST_BLOCK: u64 = 512;
const MOST_THREADS: u64 = 1024;
/// Schedules are the same for all targets and rounds.
const SEED: u64 = 1;

/// Settings that have passed [`objections`].
pub struct Wanted {
    pub engine: Engine,
    pub size: u64,
    pub block: usize,
    /// Block of the sequential phases.
    pub run: usize,
    pub threads: usize,
    pub depth: usize,
    pub direct: bool,
    /// Of a random phase.
    pub operations: usize,
    pub rate: Option<f64>,
    pub spacing: Spacing,
    pub fsync: u64,
}

impl Wanted {
    pub fn of(settings: &Settings) -> Wanted {
        let number = |name, usual| settings.number(name).unwrap_or(usual);
        let (size, block) = (number("size", 256 << 20), number("block", 4096).max(1));
        let rate = settings.number("rate").filter(|rate| *rate > 0).map(|rate| rate as f64);
        let seconds = number("time", USUAL_TIME_NS) as f64 / 1e9;
        let closed = || number("operations", size / block) as usize;
        Wanted {
            engine: if settings.text("engine") == Some("io_uring") { Engine::IoUring } else { Engine::Plain },
            size,
            block: block as usize,
            run: number("sequential_block", 1 << 20).max(1) as usize,
            threads: number("threads", 1).max(1) as usize,
            depth: number("depth", 1).max(1) as usize,
            direct: settings.flag("direct"),
            operations: rate.map_or_else(closed, |rate| (rate * seconds) as usize),
            rate,
            spacing: if settings.text("arrivals") == Some("even") { Spacing::Even } else { Spacing::Poisson },
            fsync: number("fsync", 0),
        }
    }

    /// Blocks of the file, as random phases see it.
    pub fn blocks(&self) -> u32 {
        (self.size / self.block as u64) as u32
    }

    /// The same, of the sequential phases.
    pub fn runs(&self) -> u32 {
        (self.size / self.run as u64) as u32
    }

    /// When each operation of a random phase begins, at a rate.
    pub fn due(&self) -> Option<Vec<u64>> {
        self.rate.map(|rate| drive::schedule(rate, self.operations, self.spacing, SEED))
    }
}

/// Names of the phases to play.
pub fn phases(settings: &Settings) -> Vec<String> {
    let (asked, open) = (settings.texts("phases"), settings.number("rate").unwrap_or(0) > 0);
    let usual = || PHASES.iter().map(|phase| phase.name.to_string()).filter(|name| !open || is_random(name)).collect();
    if asked.is_empty() { usual() } else { asked }
}

fn is_random(name: &str) -> bool {
    name.starts_with("random")
}

pub fn objections(settings: &Settings) -> Vec<Objection> {
    let wanted = Wanted::of(settings);
    let found = [
        bad_phase(settings, &wanted),
        bad_block("block", wanted.block, &wanted),
        bad_block("sequential_block", wanted.run, &wanted),
        bad_count(settings),
        bad_loop(settings, &wanted),
    ];
    found.into_iter().flatten().collect()
}

fn bad_phase(settings: &Settings, wanted: &Wanted) -> Option<Objection> {
    let known: Vec<&str> = PHASES.iter().map(|phase| &*phase.name).collect();
    let asked = phases(settings);
    let unknown = asked.iter().find(|name| !known.contains(&name.as_str()));
    let sequential = asked.iter().find(|name| wanted.rate.is_some() && !is_random(name));
    let object = |message, remedy: &str| Some(Objection::new("phases", message, remedy));
    match (unknown, sequential) {
        (Some(name), _) => object(format!("there is no phase `{name}`"), &format!("use {}", known.join(", "))),
        (_, Some(name)) => {
            let remedy = "leave it out, or measure it in a work of its own";
            object(
                format!("at a rate there is no `{name}`: it is judged by its time, and random phases by latency"),
                remedy,
            )
        }
        _ => None,
    }
}

fn bad_block(setting: &'static str, block: usize, wanted: &Wanted) -> Option<Objection> {
    let (block, shown) = (block as u64, show_bytes(block as f64));
    let least = if wanted.direct { AlignedBuffer::ALIGNMENT as u64 } else { SMALLEST_BLOCK };
    let message = if block % least != 0 {
        format!("{shown} is no multiple of {}", show_bytes(least as f64))
    } else if wanted.size % block != 0 {
        format!("a file of {} does not consist of blocks of {shown}", show_bytes(wanted.size as f64))
    } else if wanted.size / block > u64::from(u32::MAX) {
        format!("a file of {} has too many blocks of {shown}", show_bytes(wanted.size as f64))
    } else if block > 1 << 30 {
        format!("{shown} are too many for one operation")
    } else {
        return None;
    };
    Some(Objection::new(setting, message, "take powers of two, such as 4KiB of 256MiB"))
}

fn bad_count(settings: &Settings) -> Option<Objection> {
    for name in ["threads", "depth", "operations"] {
        if settings.number(name) == Some(0) {
            return Some(Objection::new(name, format!("with no {name} nothing is done"), "give 1 or more"));
        }
    }
    let number = |name| settings.number(name).unwrap_or(1);
    let all = number("threads").saturating_mul(number("depth"));
    let message = format!("{all} operations at a time are too many");
    (all > MOST_THREADS).then(|| Objection::new("depth", message, "give at most 1024 in all threads together"))
}

/// Whether work and rate fit together.
fn bad_loop(settings: &Settings, wanted: &Wanted) -> Option<Objection> {
    let given = |name| settings.number(name).is_some();
    if wanted.rate.is_none() && given("time") {
        let message = "without a rate the work is fixed, and its time is measured".to_string();
        return Some(Objection::new("time", message, "give `operations` instead, or a `rate`"));
    }
    if wanted.rate.is_some() && given("operations") {
        let message = "rate and time say how many operations there are".to_string();
        return Some(Objection::new("operations", message, "leave it out, and give `time`"));
    }
    let few = wanted.rate.is_some() && wanted.operations < LEAST_FOR_P99;
    let message = format!("{} operations tell nothing of the slowest one in a hundred", wanted.operations);
    few.then(|| Objection::new("rate", message, &format!("let rate times time be {LEAST_FOR_P99} or more")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(pairs: Value) -> Settings {
        Settings(pairs.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn what_cannot_be_is_told() {
        let second = 1_000_000_000u64;
        let rows: [(Value, &str); 17] = [
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
            (json!({"operations": 0}), "operations"),
            (json!({"threads": 100, "depth": 32}), "depth"),
        ];
        for (given, setting) in rows {
            let found = objections(&settings(given.clone()));
            let told: Vec<&str> = found.iter().map(|objection| objection.setting).collect();
            assert_eq!(told, Vec::from_iter(Some(setting).filter(|name| !name.is_empty())), "{given}");
        }
    }

    #[test]
    fn a_rate_has_the_random_phases_alone() {
        assert_eq!(phases(&settings(json!({}))).len(), 4);
        assert_eq!(phases(&settings(json!({"rate": 500}))), ["random-read", "random-write"]);
        assert_eq!(phases(&settings(json!({"rate": 0, "phases": ["random-read"]}))), ["random-read"]);
    }

    #[test]
    fn the_work_is_the_file_once_or_what_the_rate_comes_to() {
        assert_eq!(Wanted::of(&settings(json!({}))).operations, 65_536);
        assert_eq!(Wanted::of(&settings(json!({"operations": 7}))).operations, 7);
        let at_a_rate = Wanted::of(&settings(json!({"rate": 300, "time": 20_000_000_000u64, "arrivals": "even"})));
        assert_eq!((at_a_rate.operations, at_a_rate.due().unwrap().len()), (6000, 6000));
    }
}
