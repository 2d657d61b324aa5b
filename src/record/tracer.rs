//! The loop: a thread stops, is looked at, and goes on.

use super::calls::is_watched;
use super::program::Program;
use super::scope::Scope;
use super::world::Live;
use crate::sys::ptrace::{self, Event, Resume, Stop};
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::process::ExitStatus;

/// Watches a program that this one has started.
pub struct Tracer<'a> {
    pub program: Program<'a>,
    /// They stopped before the one that started them said so.
    early: HashSet<i32>,
    /// The first process, whose end is the program's.
    pid: i32,
    exit: Option<ExitStatus>,
    /// It has no filter, and stops at calls that are not watched, too.
    every_call: bool,
}

/// Calls that mean nothing, made before the program begins: what is between them is the cost of stopping.
const CALIBRATION: usize = 200;

/// See [`CALIBRATION`].
pub fn calibrate() {
    for _ in 0..CALIBRATION {
        // Of no path: it fails at once, and is watched.
        let _ = rustix::fs::stat(c"");
    }
}

impl<'a> Tracer<'a> {
    pub fn new(scope: &'a mut Scope, live: &'a Live, pid: i32) -> Tracer<'a> {
        let mut program = Program::new(scope, live);
        program.first(pid, pid);
        Tracer { program, early: HashSet::new(), pid, exit: None, every_call: false }
    }

    /// Of programs that run already.
    pub fn of_running(scope: &'a mut Scope, live: &'a Live) -> Tracer<'a> {
        let program = Program::new(scope, live);
        Tracer { program, early: HashSet::new(), pid: 0, exit: None, every_call: true }
    }

    /// A thread has stopped before it is known.
    pub fn hold(&mut self, tid: i32) {
        self.early.insert(tid);
    }

    pub fn go_on(&self, tid: i32, signal: i32) -> Result<()> {
        self.resume(tid, Resume::ToEntry, signal)
    }

    pub fn resume(&self, tid: i32, how: Resume, signal: i32) -> Result<()> {
        let how = if self.every_call && how == Resume::ToEntry { Resume::ToExit } else { how };
        ptrace::resume(tid, how, signal).context("cannot let the program go on")
    }

    /// Until nothing of the program is left; how its first process ended.
    pub fn run(&mut self) -> Result<ExitStatus> {
        loop {
            match ptrace::wait().context("cannot wait for the program")? {
                Event::NoneLeft => return self.exit.context("the program is lost: its end was not seen"),
                Event::Tick => {}
                Event::Ended(tid, status) => {
                    if tid == self.pid {
                        self.exit = Some(status);
                    }
                    self.program.ended(tid);
                }
                Event::Stopped(tid, stop) => {
                    self.program.counts.stops += 1;
                    if let Some((how, signal)) = self.stopped(tid, stop) {
                        self.resume(tid, how, signal)?;
                    }
                }
            }
        }
    }

    /// How the thread goes on; none for one that is not known yet.
    pub fn stopped(&mut self, tid: i32, stop: Stop) -> Option<(Resume, i32)> {
        if !self.program.knows(tid) {
            self.early.insert(tid);
            return None;
        }
        let how = match stop {
            Stop::Entry(call) if self.every_call && !is_watched(&call) => {
                self.program.counts.not_recorded += u64::from(call.number == libc::SYS_io_uring_enter);
                Resume::ToEntry
            }
            Stop::Entry(call) => self.program.entered(tid, &call),
            // Of calls that are not watched, and of the one in which it was found.
            Stop::Exit(_) if self.every_call && !self.program.awaits(tid) => Resume::ToEntry,
            Stop::Exit(result) => {
                self.program.left(tid, result);
                Resume::ToEntry
            }
            Stop::Started(new) => {
                self.program.started(tid, new);
                if self.early.remove(&new) {
                    let _ = self.resume(new, Resume::ToEntry, 0);
                }
                Resume::ToEntry
            }
            Stop::Executed(former) => {
                self.program.executed(tid, former);
                Resume::ToEntry
            }
            Stop::Ending => {
                self.program.ending(tid);
                Resume::ToEntry
            }
            Stop::New => Resume::ToEntry,
            Stop::Group => Resume::Stay,
            Stop::Signal(signal) => return Some((Resume::ToEntry, signal)),
        };
        Some((how, 0))
    }
}
