//! What a workload declares of a phase: its name, the cache state it starts from, the proof of
//! that, what is timed.

pub(crate) use CacheState::*;
pub(crate) use ColdProof::*;
pub(crate) use TimedUntil::*;

use serde::Deserialize;
use std::borrow::Cow;

/// A timed part of a workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Owned where it depends on settings; no `/` in it.
    pub name: Cow<'static, str>,
    pub about: &'static str,
    pub starts: CacheState,
    /// What a cold start must make the device read.
    pub proof: ColdProof,
    pub timed: TimedUntil,
    /// It is part of what its work is judged by.
    #[serde(default = "judged")]
    pub judged: bool,
}

fn judged() -> bool {
    true
}

impl Phase {
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        starts: CacheState,
        proof: ColdProof,
        timed: TimedUntil,
    ) -> Phase {
        Phase { name: Cow::Borrowed(name), about, starts, proof, timed, judged: true }
    }

    /// A part of the phase listed before it, timed by the work itself: see [`super::Part`].
    pub(crate) const fn part(name: Cow<'static, str>, about: &'static str) -> Phase {
        let (starts, proof) = (CacheState::Warm, ColdProof::Declared);
        Phase { name, about, starts, proof, timed: TimedUntil::Part, judged: true }
    }

    /// It is shown, and nothing is judged by it.
    pub(crate) const fn only_shown(mut self) -> Phase {
        self.judged = false;
        self
    }

    /// It leaves the file system as it found it, and can be repeated on it.
    pub(crate) fn only_reads(&self) -> bool {
        self.timed == TimedUntil::Returned
    }
}

/// What the device must have read in a phase that started cold: the proof that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColdProof {
    /// Every byte of every file.
    AllData,
    /// Names and inodes.
    Metadata,
    /// What the work declares with [`super::Timed::reads_at_least`]; without that, nothing is
    /// proved.
    Declared,
    /// Any byte at all, where it is unknown how much the work reads.
    AnyRead,
}

/// The cache state that a phase starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// On the file system as the stage made it.
    Fresh,
    /// Nothing cached: unmounted, caches dropped, mounted again; proved by what the device then
    /// reads.
    Cold,
    /// As cold, and not mounted: the phase works on the device, or mounts it.
    Unmounted,
    /// As the phase before left it.
    Warm,
}

/// Which time becomes the phase's `time_ns`. Both of its times are always measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimedUntil {
    /// Until the work returned: for phases that only read, and so can be repeated.
    Returned,
    /// Until what was written is durable.
    Durable,
    /// Its parts have times, it has none itself: for a program that does one thing after the other
    /// and times each.
    Parts,
    /// It is such a part.
    Part,
}
