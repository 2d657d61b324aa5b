//! Calls that a program made without being stopped: a library that is loaded into it (`preload.c`)
//! does them and writes them down in shared memory, and here they are read, in the order in which
//! they ended.

use super::calls::{Request, request};
use super::class::SAMPLE;
use super::sequence::Sequence;
use super::start_cost::{Start, StartCost};
use super::world::Pieces;
use anyhow::{Context, Result, anyhow, ensure};
use foldhash::{HashMap, HashSet};
use pickfs_system::sys::ptrace::Call;
use pickfs_system::sys::rings::{MOST_RECORDS, RECORD, RINGS, Rings, Spot, memory_file, path_of};
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
/// As in the C file: closing it signals that the library is loaded.
const LOADED: i32 = -999_997;
/// As in the C file.
const KNOWN_FOLDER: u8 = 1;
const NEEDS_NO_SAMPLE: u8 = 2;
const LONGEST_PATH: usize = 4096;
/// What it knows of larger descriptors is nothing.
const DESCRIPTORS: i32 = 1024;
/// A thread that has taken its place in the order writes it down at once, unless the processor is
/// taken from it, or it is killed.
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_micros(100);

/// What the program's threads have written.
pub struct Preload {
    rings: Rings,
    /// It is there as long as this is.
    library: File,
    /// Whose each ring is.
    owners: HashMap<usize, i32>,
    /// By child, the thread whose memory it uses.
    borrowers: HashMap<i32, i32>,
    /// Number of rings that have ever had an owner.
    accepted: u64,
    sequence: Sequence,
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
pub struct LibraryCall {
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

impl LibraryCall {
    pub(crate) fn call(&self) -> Call {
        Call { number: self.number, arguments: self.arguments }
    }
}

impl Preload {
    /// None where there is no library for this machine. `start_cost` prints what the start of a
    /// program takes; without it that counts as the program's own.
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
            accepted: 0,
            sequence: Sequence::default(),
            spots: Vec::new(),
            sampled: HashSet::default(),
            buffer: Vec::new(),
        }))
    }

    pub(crate) fn own_cpu_ns(&self) -> u64 {
        self.start_cost.used_ns()
    }

    /// By which others open the memory that is shared.
    pub fn memory(&self) -> String {
        self.rings.path()
    }

    /// What the dynamic linker is to load.
    pub(crate) fn library(&self) -> String {
        path_of(&self.library)
    }

    /// None where the call is the program's own.
    pub fn on_preload_hello(&mut self, tid: i32, call: &Call) -> Result<Option<Greeting>> {
        let number = call.arguments[0] as i32;
        if call.number != libc::SYS_close || number > LOADED {
            return Ok(None);
        }
        let ring = usize::try_from(i64::from(HELLO) - i64::from(number)).ok().filter(|ring| *ring < RINGS);
        let Some(ring) = ring else {
            return Ok(match number {
                LOADED => Some(Greeting::Loaded(self.start_cost.loaded())),
                FLUSH | PROBE => Some(Greeting::Asked),
                _ => None,
            });
        };
        if self.borrowers.contains_key(&tid) {
            return Ok(Some(Greeting::Asked));
        }
        // The thread would take that for the answer to its question.
        if self.rings.is_accepted(ring) {
            return Err(tampered(&format!("ring {ring} has two owners")));
        }
        if self.rings.accept(ring) {
            self.owners.insert(ring, tid);
            self.accepted += 1;
        }
        Ok(Some(Greeting::Asked))
    }

    /// A child uses the memory of the thread that has started it, which therefore makes no calls in
    /// the library for now: these would be taken for the other one's.
    pub(crate) fn lend(&mut self, tid: i32, child: i32) {
        self.borrowers.insert(child, tid);
        self.of(tid).for_each(|ring| self.rings.set_off(ring, true));
    }

    /// It is gone, or runs another program. All that it wrote has been read.
    pub fn ended(&mut self, tid: i32) -> Result<()> {
        let lender = self.borrowers.remove(&tid);
        if let Some(lender) = lender.filter(|lender| !self.borrowers.values().any(|other| other == lender)) {
            self.of(lender).for_each(|ring| self.rings.set_off(ring, false));
        }
        let gone: Vec<usize> = self.of(tid).collect();
        for ring in gone {
            self.spots.clear();
            if !self.rings.find(ring, u64::MAX, &mut self.spots) || !self.spots.is_empty() {
                return Err(tampered("calls of a thread that has ended have no place in their order"));
            }
            self.owners.remove(&ring);
            self.rings.free(ring);
        }
        Ok(())
    }

    /// Rings of a thread: more than one where it forgot one, as after a jump out of a signal's
    /// handler.
    fn of(&self, tid: i32) -> impl Iterator<Item = usize> + '_ {
        self.owners.iter().filter(move |(_, owner)| **owner == tid).map(|(ring, _)| *ring)
    }

    pub(crate) fn set_moved(&self) {
        self.rings.set_moved();
    }

    /// The descriptor is another one now, or none.
    pub(crate) fn forget(&self, tid: i32, descriptor: i32) {
        self.of(tid).for_each(|ring| self.rings.forget(ring, descriptor));
    }

    /// The thread's descriptors are others now than it knows.
    pub(crate) fn forget_known(&self, tid: i32) {
        self.of(tid).for_each(|ring| self.rings.forget_known(ring));
    }

    /// A folder that is known need not be asked for any more.
    pub(crate) fn knows_folder(&self, tid: i32, folder: i32) {
        self.of(tid).for_each(|ring| self.rings.know(ring, folder, KNOWN_FOLDER));
    }

    /// The stopped thread goes on. It sends no more samples of descriptors of which `enough` says
    /// so, if it has them alone.
    pub(crate) fn resumed(&mut self, tid: i32, is_alone: bool, mut enough: impl FnMut(i32) -> bool) {
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

    /// Records the number of operations after something that is in no ring.
    pub(crate) fn mark(&mut self, ops: u32) -> Result<()> {
        let order = self.rings.take_order();
        self.sequence.take(order, self.most(), ops).map_err(|error| tampered(&error.to_string()))
    }

    /// Most calls that can have ended since the last look: those in the rings, and one of each
    /// thread that was killed.
    fn most(&self) -> u64 {
        self.owners.len() as u64 * MOST_RECORDS + self.accepted
    }

    /// Hands on all that has ended by now; `take` returns how many operations there are then.
    pub fn drain(&mut self, mut take: impl FnMut(LibraryCall) -> u32) -> Result<()> {
        let limit = self.rings.order();
        if self.sequence.is_at(limit) {
            return Ok(());
        }
        self.find(limit).map_err(|error| tampered(&error.to_string()))?;
        let mut spots = std::mem::take(&mut self.spots);
        spots.sort_unstable_by_key(|spot| spot.order);
        for spot in spots.drain(..) {
            self.rings.take(spot, &mut self.buffer);
            let ops = take(self.call_in(spot.ring).ok_or_else(|| tampered("what is in a ring is no call"))?);
            self.sequence.remember(spot.order, ops);
        }
        self.spots = spots;
        self.sequence.read(limit);
        Ok(())
    }

    /// Waits for entries that have their place in the order and are about to be written. Any that
    /// still comes later comes late, and is not lost.
    fn find(&mut self, limit: u64) -> Result<()> {
        let wanted = self.sequence.wanted(limit, self.most())?;
        let mut wait = 0;
        loop {
            self.spots.clear();
            for ring in self.owners.keys() {
                ensure!(self.rings.find(*ring, limit, &mut self.spots), "ring {ring} holds what is no call");
            }
            let new = self.spots.iter().filter(|spot| self.sequence.is_new(spot.order)).count() as u64;
            if new >= wanted || wait == PATIENCE {
                return self.sequence.found(wanted, new, self.spots.len() as u64 - new, self.accepted);
            }
            if wait < PATIENCE / 2 {
                std::thread::yield_now()
            } else {
                std::thread::sleep(PAUSE)
            }
            wait += 1;
        }
    }

    /// What the buffer holds; none where that can be no record.
    fn call_in(&mut self, ring: usize) -> Option<LibraryCall> {
        let bytes = &self.buffer;
        let word =
            |at: usize| bytes.get(8 * at..8 * at + 8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or([0; 8])));
        let made = LibraryCall {
            tid: *self.owners.get(&ring)?,
            number: (word(0)? >> 32) as i64,
            began: self.sequence.ops_at(word(2)?),
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
        let (mut at, mut memory) = (RECORD, Vec::new());
        let (sample, is_call) = (word(19)? as u32, is_of_library(&made.call()));
        let most = (lengths as u32).max((lengths >> 32) as u32) as usize;
        if !is_call || made.result < -crate::MOST_ERRNO || most > LONGEST_PATH || sample as usize > SAMPLE {
            return None;
        }
        // The address of a text is 0 where there is none, and a text may be empty.
        let written = if sample > 0 { made.arguments[1] } else { 0 };
        for (address, length) in [(word(16)?, lengths as u32), (word(17)?, (lengths >> 32) as u32), (written, sample)] {
            let part = bytes.get(at..at + length as usize)?;
            at += part.len();
            if address != 0 {
                memory.push((address, part.to_vec()));
            }
        }
        if sample > 0 && (made.arguments[0] as i32) < DESCRIPTORS {
            self.sampled.insert((made.tid, made.arguments[0] as i32));
        }
        Some(LibraryCall { memory, ..made })
    }
}

/// The library makes calls on single files; all others stop.
fn is_of_library(call: &Call) -> bool {
    use Request::{Close, CloseOnExec, Duplicate, File};
    matches!(request(call), Some(File(_) | Close(_) | Duplicate { .. } | CloseOnExec { .. }))
}

fn tampered(how: &str) -> anyhow::Error {
    anyhow!(
        "the program wrote into the recorder's memory ({how}), so its calls are not known: it was ended, and there is no trace. \
         `pickfs record --no-preload` shares no memory with it"
    )
}
