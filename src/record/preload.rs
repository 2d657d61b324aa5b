//! Calls that a program made without being stopped: a library that is loaded into it (`preload.c`) does them and writes them
//! down in shared memory, and here they are read, in the order in which they ended.

use super::start_cost::{Start, StartCost};
use super::world::Pieces;
use crate::sys::ptrace::Call;
use crate::sys::rings::{RINGS, Rings, Spot, memory_file, path_of};
use anyhow::{Context, Result};
use foldhash::{HashMap, HashSet};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

/// Empty where the library is not for this architecture.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));
/// What the recorder writes the path of the shared memory over, and how much room there is.
const PATH: &[u8] = b"PICKFS-SHARED-MEMORY";
const ROOM: usize = 64;
/// As in the C file: a thread closes it, or one of the numbers just below, to ask for a ring.
const HELLO: i32 = -1_000_000;
/// As in the C file: closing it asks for room.
const FLUSH: i32 = -999_999;
/// As in the C file: closing it asks for nothing.
const PROBE: i32 = -999_998;
/// As in the C file: closing it says that the library is loaded.
const LOADED: i32 = -999_997;
/// As in the C file.
const KNOWN_FOLDER: u8 = 1;
const NEEDS_NO_SAMPLE: u8 = 2;
/// Of a record, before its texts.
const WORDS: usize = 20;
/// A thread that has taken its place in the order writes it down at once, unless the processor is taken from it, or it is killed.
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_micros(100);
/// A call during which more others ended counts as begun with the oldest of these.
const REMEMBERED: usize = 1 << 20;

/// What the program's threads have written.
pub struct Preload {
    rings: Rings,
    /// It is there as long as this is.
    library: File,
    /// Whose each ring is.
    owners: HashMap<usize, i32>,
    /// By child, the thread whose memory it uses.
    borrowers: HashMap<i32, i32>,
    /// All up to here has been read.
    seen: u64,
    /// So many places in the order after that are the recorder's own.
    own: u64,
    /// How many operations there were after each place in the order, from the first one that is remembered.
    ops: VecDeque<u32>,
    first: u64,
    spots: Vec<Spot>,
    /// Threads and descriptors of which samples came.
    sampled: HashSet<(i32, i32)>,
    buffer: Vec<u8>,
    start_cost: StartCost,
}

/// Why the library stopped for itself.
pub enum Greeting {
    /// It is there: what that takes, where it is known.
    Loaded(Option<Start>),
    /// It asks for a ring, for room in it, or for nothing.
    Asked,
}

/// A call as the library saw it.
#[derive(Clone, Debug, Default)]
pub struct Made {
    pub tid: i32,
    pub number: i64,
    pub arguments: [u64; 6],
    pub result: i64,
    pub began: u32,
    /// When the thread last left the library; the monotonic clock's nanoseconds.
    pub idle_from: u64,
    /// When it came there again.
    pub entered: u64,
    pub begin: u64,
    pub end: u64,
    /// CPU time of the thread, where it was asked.
    pub cpu_entered: Option<u64>,
    pub cpu_end: Option<u64>,
    /// Texts, and a part of what was written.
    pub memory: Pieces,
}

impl Made {
    pub fn call(&self) -> Call {
        Call { number: self.number, arguments: self.arguments }
    }
}

impl Preload {
    /// None where there is no library for this machine. `start_cost` prints what the start of a program takes; without it that counts
    /// as the program's own.
    pub fn new(start_cost: Option<Command>) -> Result<Option<Preload>> {
        let Some(place) = LIBRARY.windows(PATH.len()).position(|part| part == PATH) else { return Ok(None) };
        let rings = Rings::new().context("cannot make the memory that recorded programs write to")?;
        let mut path = rings.path().into_bytes();
        path.resize(ROOM, 0);
        let bytes = [&LIBRARY[..place], &path, &LIBRARY[place + ROOM..]].concat();
        let mut library = memory_file(c"pickfs-preload").context("cannot make the library that records")?;
        library.write_all(&bytes).context("cannot write the library that records")?;
        Ok(Some(Preload {
            rings,
            library,
            start_cost: StartCost::new(start_cost),
            owners: HashMap::default(),
            borrowers: HashMap::default(),
            seen: 0,
            own: 0,
            ops: VecDeque::from([0]),
            first: 0,
            spots: Vec::new(),
            sampled: HashSet::default(),
            buffer: Vec::new(),
        }))
    }

    pub fn own_cpu_ns(&self) -> u64 {
        self.start_cost.used_ns()
    }

    /// What the dynamic linker is to load.
    pub fn library(&self) -> String {
        path_of(&self.library)
    }

    /// None where the call is the program's own.
    pub fn greeted(&mut self, tid: i32, call: &Call) -> Option<Greeting> {
        let number = call.arguments[0] as i32;
        if call.number != libc::SYS_close || number > LOADED {
            return None;
        }
        let ring = usize::try_from(i64::from(HELLO) - i64::from(number)).ok().filter(|ring| *ring < RINGS);
        let Some(ring) = ring else {
            return match number {
                LOADED => Some(Greeting::Loaded(self.start_cost.loaded())),
                FLUSH | PROBE => Some(Greeting::Asked),
                _ => None,
            };
        };
        if !self.borrowers.contains_key(&tid) && !self.owners.contains_key(&ring) && self.rings.accept(ring) {
            self.owners.insert(ring, tid);
        }
        Some(Greeting::Asked)
    }

    /// A child uses the memory of the thread that has started it, which therefore makes no calls in the library for now: these
    /// would be taken for the other one's.
    pub fn lend(&mut self, tid: i32, child: i32) {
        self.borrowers.insert(child, tid);
        self.of(tid).for_each(|ring| self.rings.set_off(ring, true));
    }

    /// It is gone, or runs another program.
    pub fn ended(&mut self, tid: i32) {
        if let Some(lender) = self.borrowers.remove(&tid)
            && !self.borrowers.values().any(|other| *other == lender)
        {
            self.of(lender).for_each(|ring| self.rings.set_off(ring, false));
        }
        let gone: Vec<usize> = self.of(tid).collect();
        for ring in gone {
            self.owners.remove(&ring);
            self.rings.free(ring);
        }
    }

    /// Rings of a thread: more than one where it forgot one, as after a jump out of a signal's handler.
    fn of(&self, tid: i32) -> impl Iterator<Item = usize> + '_ {
        self.owners.iter().filter(move |(_, owner)| **owner == tid).map(|(ring, _)| *ring)
    }

    pub fn set_moved(&self) {
        self.rings.set_moved();
    }

    /// The descriptor is another one now, or none.
    pub fn forget(&self, tid: i32, descriptor: i32) {
        self.of(tid).for_each(|ring| self.rings.forget(ring, descriptor));
    }

    /// The thread's descriptors are others now than it knows.
    pub fn forget_known(&self, tid: i32) {
        self.of(tid).for_each(|ring| self.rings.forget_known(ring));
    }

    /// A folder that is known need not be asked for any more.
    pub fn knows_folder(&self, tid: i32, folder: i32) {
        self.of(tid).for_each(|ring| self.rings.know(ring, folder, KNOWN_FOLDER));
    }

    /// The stopped thread goes on. It sends no more samples of descriptors of which `enough` says so, if it has them alone.
    pub fn resumed(&mut self, tid: i32, is_alone: bool, mut enough: impl FnMut(i32) -> bool) {
        let rings: Vec<usize> = self.of(tid).collect();
        for ring in rings {
            self.rings.set_stopped(ring);
            let own = self.sampled.iter().filter(|(other, _)| *other == tid && is_alone);
            for (_, descriptor) in own {
                if enough(*descriptor) {
                    self.rings.know(ring, *descriptor, NEEDS_NO_SAMPLE);
                }
            }
        }
        self.sampled.retain(|(other, _)| *other != tid);
    }

    /// So many operations there are now, after something that is in no ring.
    pub fn mark(&mut self, ops: u32) {
        let order = self.rings.take_order();
        self.own += 1;
        self.remember(order, ops);
    }

    /// Hands on all that has ended by now; `take` returns how many operations there are then.
    pub fn drain(&mut self, mut take: impl FnMut(Made) -> u32) {
        let limit = self.rings.order();
        if limit == self.seen {
            return;
        }
        self.find(limit);
        let mut spots = std::mem::take(&mut self.spots);
        spots.sort_unstable_by_key(|spot| spot.order);
        for spot in spots.drain(..) {
            self.rings.take(spot, &mut self.buffer);
            if let Some(made) = self.made(spot.ring) {
                let ops = take(made);
                self.remember(spot.order, ops);
            }
        }
        self.spots = spots;
        (self.seen, self.own) = (limit, 0);
    }

    /// Waits for those that have their place in the order and are about to be written down. Any that still comes later comes late, and
    /// is not lost.
    fn find(&mut self, limit: u64) {
        let wanted = (limit - self.seen).saturating_sub(self.own);
        for wait in 0..PATIENCE {
            self.spots.clear();
            let (rings, spots) = (&self.rings, &mut self.spots);
            self.owners.retain(|ring, _| rings.find(*ring, limit, spots));
            let new = self.spots.iter().filter(|spot| spot.order > self.seen).count() as u64;
            if new >= wanted {
                return;
            }
            if wait < PATIENCE / 2 { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
        }
    }

    fn remember(&mut self, order: u64, ops: u32) {
        let Some(at) = order.checked_sub(self.first) else { return };
        let last = self.ops.back().copied().unwrap_or(0);
        while self.ops.len() as u64 <= at {
            self.ops.push_back(last);
        }
        self.ops[at as usize] = ops;
        while self.ops.len() > REMEMBERED {
            self.ops.pop_front();
            self.first += 1;
        }
    }

    fn ops_at(&self, order: u64) -> u32 {
        let at = order.saturating_sub(self.first) as usize;
        self.ops.get(at).or(self.ops.back()).copied().unwrap_or(0)
    }

    /// What the buffer holds; none where that can be no record.
    fn made(&mut self, ring: usize) -> Option<Made> {
        let bytes = &self.buffer;
        let word =
            |at: usize| bytes.get(8 * at..8 * at + 8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or([0; 8])));
        let made = Made {
            tid: *self.owners.get(&ring)?,
            number: (word(0)? >> 32) as i64,
            began: self.ops_at(word(2)?),
            result: word(3)? as i64,
            arguments: [word(4)?, word(5)?, word(6)?, word(7)?, word(8)?, word(9)?],
            idle_from: word(10)?,
            entered: word(11)?,
            begin: word(12)?,
            end: word(13)?,
            cpu_entered: word(14).filter(|ns| *ns > 0),
            cpu_end: word(15).filter(|ns| *ns > 0),
            memory: Vec::new(),
        };
        let lengths = word(18)?;
        let (mut at, mut memory) = (8 * WORDS, Vec::new());
        let sample = word(19)? as u32;
        // The address of a text is 0 where there is none, and a text may be empty.
        let written = if sample > 0 { made.arguments[1] } else { 0 };
        for (address, length) in [(word(16)?, lengths as u32), (word(17)?, (lengths >> 32) as u32), (written, sample)] {
            let part = bytes.get(at..at + length as usize)?;
            at += part.len();
            if address != 0 {
                memory.push((address, part.to_vec()));
            }
        }
        if sample > 0 {
            self.sampled.insert((made.tid, made.arguments[0] as i32));
        }
        Some(Made { memory, ..made })
    }
}
