//! What a workload declares of a phase: its name, the cache state it starts from, the proof of that, what is timed.

use std::borrow::Cow;

/// A timed part of a workload.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Owned where it hangs on settings; no `/` in it.
    pub name: Cow<'static, str>,
    pub about: &'static str,
    pub starts: Starts,
    /// What a cold start must make the device read; the proof that it was cold.
    pub reads: Reads,
    pub judged: Judged,
}

impl Phase {
    /// It leaves the file system as it found it, and can be repeated on it.
    pub fn only_reads(&self) -> bool {
        self.judged == Judged::Returned
    }

    /// A part of the phase named in `starts`, timed by the work itself: see [`super::Part`].
    pub const fn part(name: Cow<'static, str>, about: &'static str) -> Phase {
        Phase { name, about, starts: Starts::Within, reads: Reads::Told, judged: Judged::ByParts }
    }
}

/// What a phase reads of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Every byte of every file.
    Data,
    /// Names and inodes, at most.
    Names,
    /// What the work says with [`super::Timed::reads_at_least`]; without that, nothing is proved.
    Told,
    /// Nobody knows how much: that the device read anything is all that can be asked for.
    Unknown,
}

/// The cache state that a phase starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// On the file system as the stage made it.
    Fresh,
    /// Nothing cached: unmounted, caches dropped, mounted again; proved by what the device then reads.
    Cold,
    /// As the phase before left it.
    Warm,
    /// Inside of a phase that is judged by its parts.
    Within,
}

/// Which of the two times is the phase's `time_ns`. Both are always measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Until the work returned: for phases that only read, and so can be repeated.
    Returned,
    /// Until what was written is durable: for writing.
    Durable,
    /// It has no time of its own, only its parts have: for a program that does one thing after the other and times each.
    ByParts,
}
