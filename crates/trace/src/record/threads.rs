//! Threads and processes of the program, and what they share.

use super::cpu_clock::CpuClock;
use super::files::{Descriptors, Mappings, Objects, Shared};
use super::preload::LibraryCall;
use super::stop_cost::{HalfStops, StopNs};
use crate::Op;
use std::cell::RefCell;
use std::rc::Rc;

/// A thread that is watched.
pub(crate) struct Thread {
    pub number: u32,
    /// Its process: the number of the thread that it began with.
    pub process: i32,
    pub files: Shared<Descriptors>,
    /// The folder that relative paths start from.
    pub folder: Shared<Vec<u8>>,
    pub maps: Shared<Mappings>,
    /// What its call will come to, while it is in one whose end must be seen.
    pub pending: Option<Pending>,
    /// What it asked for when it starts another one: clone(2)'s flags.
    pub start: u64,
    pub cpu: CpuClock,
    /// CPU time of the thread that is accounted for.
    pub cpu_seen: u64,
    /// CPU time since that look which is accounted for: of calls that were made without a stop.
    pub unstopped_ns: u64,
    /// When it last ended a call, or went on after a stop, by the world's clock.
    pub idle_from: u64,
    /// So much CPU time has gone by since its last operation.
    pub think_ns: u64,
    /// Stops whose cost lies in the CPU time since the last look.
    pub stops: HalfStops,
    /// All of its stops.
    pub stopped: u64,
    /// The library in it stopped last, for itself.
    pub greeted: bool,
}

/// What a thread has used of processor time until it was about to end, and how often it was
/// stopped.
pub struct Life {
    pub cpu_ns: u64,
    pub stops: u64,
}

/// What a call is about.
pub(crate) enum Resolved {
    /// An operation, and where a file that it opens will lie.
    Op(Op, Vec<u8>),
    Duplicate {
        from: u32,
        close_on_exec: bool,
    },
    Folder,
    Execute,
    Wait,
    Map {
        object: u32,
        length: u64,
        offset: u64,
        writes: bool,
    },
}

/// A call on its way.
pub(crate) struct Pending {
    pub what: Resolved,
    pub began: u32,
    /// By the world's clock.
    pub entered: u64,
}

impl Thread {
    /// The first thread of a process.
    pub(crate) fn first(tid: i32, number: u32, folder: Vec<u8>, cpu: CpuClock) -> Thread {
        Thread {
            number,
            process: tid,
            files: Rc::default(),
            folder: Rc::new(RefCell::new(folder)),
            maps: Rc::default(),
            pending: None,
            start: 0,
            cpu,
            cpu_seen: 0,
            unstopped_ns: 0,
            idle_from: 0,
            think_ns: 0,
            stops: HalfStops::default(),
            stopped: 0,
            greeted: false,
        }
    }

    /// One that it has started with clone(2)'s flags.
    pub(crate) fn started(&self, tid: i32, number: u32, cpu: CpuClock, objects: &mut Objects) -> Thread {
        let has = |flag: i32| self.start & flag as u64 != 0;
        let files = if has(libc::CLONE_FILES) {
            self.files.clone()
        } else {
            Rc::new(RefCell::new(self.files.borrow().copied(objects)))
        };
        let folder =
            if has(libc::CLONE_FS) { self.folder.clone() } else { Rc::new(RefCell::new(self.folder.borrow().clone())) };
        let maps = if has(libc::CLONE_VM) {
            self.maps.clone()
        } else {
            Rc::new(RefCell::new(self.maps.borrow().copied(objects)))
        };
        let process = if has(libc::CLONE_THREAD) { self.process } else { tid };
        Thread { process, files, folder, maps, ..Thread::first(tid, number, Vec::new(), cpu) }
    }

    /// After a stop; `now` by the world's clock.
    pub(crate) fn on_resume(&mut self, now: u64, is_held: bool) {
        self.idle_from = now;
        self.stops.on_resume(is_held);
        self.stopped += 1;
    }

    pub(crate) fn life(&self) -> Life {
        Life { cpu_ns: self.cpu_seen, stops: self.stopped }
    }

    /// Nanoseconds of CPU time since the last look that are not accounted for yet.
    pub(crate) fn look_at_clock(&mut self) -> u64 {
        let now = self.cpu.now();
        let used = now.saturating_sub(self.cpu_seen).saturating_sub(self.unstopped_ns);
        (self.cpu_seen, self.unstopped_ns) = (now, 0);
        self.stops = HalfStops::default();
        used
    }

    /// Accounts for the CPU time since the last look, as it stands in a stop: as time to think, but
    /// for what stops cost. Returns what [`Thread::look_at_clock`] does.
    pub(crate) fn think(&mut self, cost: StopNs) -> u64 {
        let stops_ns = cost.of(self.stops);
        let used = self.look_at_clock();
        self.think_ns = self.think_ns.saturating_add(used.saturating_sub(stops_ns));
        used
    }

    /// Accounts for a call that was made without a stop. Its CPU clock was asked only now and then:
    /// a short time between two calls is time to think, of a long one or after a stop the clock
    /// says how much.
    pub(crate) fn made_call(&mut self, made: &LibraryCall, cost: StopNs) {
        let from = made.idle_from.max(self.idle_from);
        // What the library did after the last call, and a call that is written down before it is
        // made, such as close.
        self.unstopped_ns = self.unstopped_ns.saturating_add(made.idle_from.saturating_sub(self.idle_from));
        let gap = made.entered.saturating_sub(from);
        let think = match made.cpu_entered {
            Some(cpu) => {
                let stops_ns = cost.of(self.stops.take_ended());
                let used = cpu.saturating_sub(self.cpu_seen).saturating_sub(self.unstopped_ns);
                used.saturating_sub(stops_ns).min(gap)
            }
            None => gap,
        };
        // The program can write any times.
        self.think_ns = self.think_ns.saturating_add(think);
        self.unstopped_ns = self.unstopped_ns.saturating_add(made.end.saturating_sub(from));
        if let Some(cpu) = made.cpu_entered {
            (self.cpu_seen, self.unstopped_ns) = (cpu, made.end.saturating_sub(made.entered));
        }
        if let Some(cpu) = made.cpu_end {
            (self.cpu_seen, self.unstopped_ns) = (cpu, 0);
        }
        self.idle_from = made.end;
    }
}
