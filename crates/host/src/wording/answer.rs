//! The first screen's sentences: what was done, what to pick, why it is open, and what to do next.

use super::text::{counted, signed_decimal};
use crate::analysis::{Better, Comparison, Disk, Ending, Model, Panel, Warning, WorkReport, value_of};
use pickfs_core::journal::{StopReason, typed};
use pickfs_stats::{Estimate, Finding};
use pickfs_system::units::{show_bytes, show_duration};
use std::path::Path;

/// How a target compares with the reference, for a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Reference,
    /// Clearly less.
    Better,
    /// Clearly more.
    Worse,
    /// Less or more with 95 % confidence, but perhaps too little to matter.
    Probably,
    Same,
    Open,
    /// Open against the reference, but clearly more than the pick of its race.
    WorseThanPick,
    /// It was eliminated before the comparison was settled.
    LeftEarly,
    /// Nothing to compare.
    Unknown,
}

/// What it is called to be better or worse: of times, and of what a power cut takes.
#[derive(Debug)]
pub(crate) struct Terms {
    pub measured: &'static str,
    pub best: &'static str,
    pub better: &'static str,
    pub worse: &'static str,
}

pub(crate) const OF_TIMES: Terms = Terms { measured: "time", best: "fastest", better: "faster", worse: "slower" };
pub(crate) const OF_LOSSES: Terms = Terms { measured: "loss", best: "best", better: "better", worse: "worse" };

impl WorkReport {
    pub(crate) fn terms(&self) -> &'static Terms {
        if self.durability.is_empty() { &OF_TIMES } else { &OF_LOSSES }
    }
}

impl Standing {
    /// What depends on symmetric noise is only probable.
    pub(crate) fn of(comparison: Option<&Comparison>) -> Standing {
        match comparison.and_then(|found| found.finding.as_ref()) {
            Some(Finding::Tie) => Standing::Same,
            Some(Finding::Higher | Finding::Lower) if comparison.is_some_and(|found| found.rests_on_symmetry) => {
                Standing::Probably
            }
            Some(Finding::Higher) => Standing::Worse,
            Some(Finding::Lower) => Standing::Better,
            Some(Finding::ProbablyHigher | Finding::ProbablyLower) => Standing::Probably,
            Some(Finding::Unresolved) => Standing::Open,
            Some(Finding::TooFewRounds) | None => Standing::Unknown,
        }
    }

    /// The same in a panel. Where it has a race, what is clear there is clear here: a row says what
    /// the answer says.
    pub(crate) fn in_panel(panel: &Panel, target: usize, found: Option<&Comparison>) -> Standing {
        let Some(race) = &panel.race else { return Standing::of(found) };
        match found.and_then(|found| found.finding) {
            Some(Finding::Higher) => Standing::Worse,
            Some(Finding::Lower) => Standing::Better,
            Some(Finding::Unresolved) if race.left_early.contains(&target) => Standing::LeftEarly,
            Some(Finding::Unresolved) if race.slower.contains(&target) => Standing::WorseThanPick,
            _ => Standing::of(found),
        }
    }

    /// The standing of the reference's second copy: it differs clearly only where its interval
    /// leaves 1 out.
    pub(crate) fn of_copy(noise: &Estimate) -> Standing {
        match noise.interval {
            None => Standing::Unknown,
            Some((low, high)) if low <= 1.0 && high >= 1.0 => Standing::Open,
            Some((low, _)) if low > 1.0 => Standing::Worse,
            Some(_) => Standing::Better,
        }
    }

    /// The same where more may be better.
    pub(crate) fn by(self, better: Better) -> Standing {
        match (self, better) {
            (Standing::Better, Better::More) => Standing::Worse,
            (Standing::Worse, Better::More) => Standing::Better,
            (same, _) => same,
        }
    }

    /// The word at the end of a row of times; `pick` is the name of the pick of its race.
    pub(crate) fn word(self, ratio: f64, terms: &Terms, pick: &str) -> String {
        let word = match (self, ratio > 1.0) {
            (Standing::Reference, _) => "reference",
            (Standing::Better, _) => terms.better,
            (Standing::Worse, _) => terms.worse,
            (Standing::Probably, true) => return format!("probably {}", terms.worse),
            (Standing::Probably, false) => return format!("probably {}", terms.better),
            (Standing::Same, _) => "same",
            (Standing::Open, _) => "too close",
            (Standing::WorseThanPick, _) => return format!("{} than {pick}", terms.worse),
            (Standing::LeftEarly, _) => "left early",
            (Standing::Unknown, _) => "",
        };
        word.to_string()
    }

    /// Behind a percentage in a table.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Standing::Probably => "~",
            Standing::Same => "=",
            Standing::Open | Standing::WorseThanPick | Standing::LeftEarly | Standing::Unknown => "?",
            _ => "",
        }
    }
}

/// What [`Standing::sign`] says of a difference, once for a table; the first is for figures without
/// a sign. In colour, what is open is grey.
pub(crate) fn signs(in_colour: bool) -> [(&'static str, &'static str); 4] {
    let open = if in_colour { "grey or ?: not clear" } else { "? not clear" };
    [("", "no sign: clear"), ("~", "~ probably"), ("=", "= same"), ("?", open)]
}

/// For a read that may have come from memory.
pub(crate) const UNPROVEN_SIGN: &str = "†";
pub(crate) const UNPROVEN: &str = "not every read was proved to come from the disk";

/// "+15 %", "−3 %": a ratio as a difference, with its sign.
pub(crate) fn signed_percent(ratio: f64) -> String {
    format!("{} %", signed(ratio))
}

/// "+15", "−3", "0".
pub(crate) fn signed(ratio: f64) -> String {
    signed_decimal((ratio - 1.0) * 100.0, 0)
}

/// "−10 to +10 %"; empty without an interval.
pub(crate) fn interval(estimate: &Estimate) -> String {
    estimate.interval.map_or(String::new(), |(low, high)| format!("{} to {}", signed(low), signed_percent(high)))
}

impl Model {
    /// "tree: 4202 files, 200 MiB; 4.00 GiB image on vda; 7 rounds in 3.7 min".
    pub fn setting(&self) -> String {
        let works: Vec<String> = self.works.iter().map(WorkReport::work_and_data).collect();
        let rounds = self.works.iter().map(|work| work.rounds).max().unwrap_or(0);
        let done = match self.raw.imported.as_str() {
            "" => format!("{} in {}", counted(rounds, "round"), show_duration(self.ledger.total_ns as f64)),
            from => format!("{}, measured by {from}", counted(rounds, "round")),
        };
        let disks: Vec<String> = self.disks.iter().map(in_words).collect();
        let parts = [works.join(", "), disks.join(", "), done];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }

    /// "2026-11-22 05:05 UTC · kernel 6.18.44 · pickfs 0.1.0 · Intel Xeon": what is long comes
    /// last.
    pub(crate) fn circumstances(&self) -> String {
        let minute = self.started.get(..16).map(|start| format!("{} UTC", start.replace('T', " ")));
        let kernel = self.kernel().map(|kernel| format!("kernel {kernel}"));
        let pickfs = (!self.pickfs.is_empty()).then(|| format!("pickfs {}", self.pickfs));
        let files = self.host.iter().filter(|fact| fact.name.starts_with("imported file"));
        let files: Vec<String> = files.map(|fact| fact.value.clone()).collect();
        let files = match &files[..] {
            [] => None,
            [first, .., last] if files.len() > 4 => Some(format!("{} files, {first} to {last}", files.len())),
            _ => Some(files.join(", ")),
        };
        let processor = value_of(&self.host, "cpu").filter(|_| !self.is_simulated()).map(String::from);
        let parts = [minute, kernel, pickfs, processor, files];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// What the host is made of changes nothing.
    pub(super) fn is_simulated(&self) -> bool {
        self.disks.iter().any(|disk| disk.model.is_some())
    }

    /// What the cells ran on: the guests' kernels, or the host's.
    pub(super) fn kernel(&self) -> Option<String> {
        let of_host = || value_of(&self.host, "kernel").map(String::from);
        if self.kernels.is_empty() { of_host() } else { Some(self.kernels.join(", ")) }
    }

    /// The machine as tables of benchmarks have it: "Processor", "Memory", "Disk", "OS", "Kernel".
    pub(crate) fn system(&self) -> Vec<(&'static str, String)> {
        if self.is_simulated() {
            let disks: Vec<String> = self.disks.iter().map(in_words).collect();
            let numbers = self.doubts.iter().find_map(|doubt| match doubt {
                Warning::Simulated { numbers, .. } => Some(numbers.iter().map(u64::to_string).collect::<Vec<_>>()),
                _ => None,
            });
            let processor = format!("{}, simulated", numbers.unwrap_or_default().join(" or "));
            let kernel = self.kernel().map(|kernel| ("Kernel", kernel));
            return [("Processor", processor), ("Disk", disks.join("; "))].into_iter().chain(kernel).collect();
        }
        let fact = |name: &str| value_of(&self.host, name).map(String::from);
        let processor = fact("cpu").map(|cpu| match fact("cpus") {
            Some(count) => format!("{cpu}, {count} threads"),
            None => cpu,
        });
        let disks: Vec<String> = self.disks.iter().map(in_words).chain(fact("drive")).collect();
        let disks = Some(disks.join("; ")).filter(|disks| !disks.is_empty());
        let all = [
            ("Processor", processor),
            ("Memory", fact("memory")),
            ("Disk", disks),
            ("OS", fact("system")),
            ("Kernel", self.kernel()),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Why a run that ended is still open, and the command that goes on.
    pub(crate) fn next_step(&self) -> Option<String> {
        let Some(Ending::Ended { end, needed_ns, .. }) = &self.history.ending else { return None };
        // A run that has had all its rounds has no more.
        if *end != StopReason::Budget || self.journal.is_empty() {
            return None;
        }
        let time = needed_ns.map_or("30min".to_string(), whole_minutes);
        Some(format!("pickfs run --resume {} --more {time}", typed(Path::new(&self.journal))))
    }
}

/// "78min": rounded up, in the form of the option.
fn whole_minutes(ns: u64) -> String {
    format!("{}min", ns.div_ceil(60_000_000_000).max(1))
}

impl WorkReport {
    pub(super) fn work_and_data(&self) -> String {
        let files = self.data.files.map(|files| counted(files.round() as usize, "file"));
        let bytes = self.data.bytes.map(show_bytes);
        let data: Vec<String> = files.into_iter().chain(bytes).collect();
        // A work may be called as its data are.
        let is_named = !self.data.name.is_empty() && self.data.name != self.name;
        let name = if is_named { format!("{} ({})", self.name, self.data.name) } else { self.name.clone() };
        if data.is_empty() { name } else { format!("{name}: {}", data.join(", ")) }
    }
}

/// "4.00 GiB image on vda", "device /dev/sdb", "512 MiB in memory".
fn in_words(disk: &Disk) -> String {
    let size = disk.bytes.map(|bytes| format!("{} ", show_bytes(bytes as f64))).unwrap_or_default();
    let place = match &disk.drive {
        Some(drive) => format!("on {drive}"),
        None => disk.path.clone(),
    };
    let text = match &disk.model {
        Some(model) => format!("{size}on a simulated {model}"),
        None if disk.backing == "memory" => format!("{size}in memory"),
        None => format!("{size}{} {place}", disk.backing),
    };
    text.trim_end().to_string()
}
