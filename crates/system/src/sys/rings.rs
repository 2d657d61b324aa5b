//! Memory that a recorder shares with the programs that it records: a ring of bytes for each
//! thread, which `crates/trace/src/record/preload.c` writes, and the counter that puts the calls of
//! all threads in one order. The layout is that of the C file.
//!
//! Programs can write anything there, so nothing that is read is trusted: it is copied, and all
//! sizes are checked.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The filter lets calls pass whose instruction ends here, just behind the page's start.
pub const PASSES_AT: u64 = 0x7001_0006;
/// All of them, full, are 49 MiB, which count as the recorder's once it has read them.
pub const RINGS: usize = 192;
const RING_BYTES: u64 = 256 << 10;
const DESCRIPTORS: usize = 1024;
const PAGE: usize = 4096;
/// Bytes of a ring with its page.
const WHOLE: usize = PAGE + RING_BYTES as usize;
const BYTES: usize = PAGE + RINGS * WHOLE;

/// Offsets in `struct shared`.
const ORDER: usize = 0;
const MOVED: usize = 16;
/// Offsets in `struct ring`.
const CLAIMED: usize = 0;
const ACCEPTED: usize = 4;
const OFF: usize = 8;
const STOPPED: usize = 12;
const HEAD: usize = 16;
const TAIL: usize = 24;
const KNOWN: usize = 32;

/// What the C file calls SKIP: only the ring's end is left out.
const SKIP: u32 = u32::MAX;
/// All sizes are multiples of it.
const UNIT: u64 = 8;
/// Bytes of a record without texts: `struct record`.
pub const RECORD: usize = 160;
/// Most records of a ring that are not read yet.
pub const MOST_RECORDS: u64 = RING_BYTES / RECORD as u64;

/// The shared memory.
pub struct Rings {
    at: NonNull<u8>,
    /// Other processes open it by its name below /proc.
    file: File,
    /// Up to where each ring has been read: what the memory says of that may not be true any more.
    tails: Vec<u64>,
}

/// Where a record lies.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Place of its end among all ends.
    pub order: u64,
    pub ring: usize,
    at: u64,
    size: u32,
}

/// A file in memory that other processes can open by [`path_of`], until the caller ends.
pub fn memory_file(name: &std::ffi::CStr) -> io::Result<File> {
    // SAFETY: the name lives through the call.
    match unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor is new, and nothing else closes it.
        descriptor => Ok(unsafe { File::from_raw_fd(descriptor) }),
    }
}

pub fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

impl Rings {
    pub fn new() -> io::Result<Rings> {
        let file = memory_file(c"pickfs-rings")?;
        file.set_len(BYTES as u64)?;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: the kernel chooses the place; the file is as long.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, shared, file.as_raw_fd(), 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(at) if at.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => {
                Ok(Rings { at, file, tails: vec![0; RINGS] })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub fn path(&self) -> String {
        path_of(&self.file)
    }

    /// Number of calls that have ended, plus the places taken by [`Self::take_order`].
    pub fn order(&self) -> u64 {
        self.long(ORDER).load(Ordering::SeqCst)
    }

    /// A separate place in the order for something that is in no ring.
    pub fn take_order(&self) -> u64 {
        self.long(ORDER).fetch_add(1, Ordering::SeqCst).wrapping_add(1)
    }

    /// A folder was renamed: from now on, calls with relative paths stop.
    pub fn set_moved(&self) {
        self.word(MOVED).store(1, Ordering::SeqCst);
    }

    /// A thread may write to a ring that it has claimed, and that is empty from now on.
    pub fn accept(&mut self, ring: usize) -> bool {
        if ring >= RINGS || self.in_ring(ring, CLAIMED).load(Ordering::SeqCst) != 1 {
            return false;
        }
        self.long(start(ring) + HEAD).store(0, Ordering::SeqCst);
        self.tails[ring] = 0;
        self.long(start(ring) + TAIL).store(0, Ordering::SeqCst);
        self.in_ring(ring, OFF).store(0, Ordering::SeqCst);
        self.forget_known(ring);
        self.in_ring(ring, ACCEPTED).swap(1, Ordering::SeqCst) == 0
    }

    pub fn is_accepted(&self, ring: usize) -> bool {
        self.in_ring(ring, ACCEPTED).load(Ordering::SeqCst) != 0
    }

    /// Another thread may claim it.
    pub fn free(&self, ring: usize) {
        self.in_ring(ring, ACCEPTED).store(0, Ordering::SeqCst);
        self.in_ring(ring, CLAIMED).store(0, Ordering::SeqCst);
    }

    /// The thread's calls stop while it is off.
    pub fn set_off(&self, ring: usize, is_off: bool) {
        self.in_ring(ring, OFF).store(is_off.into(), Ordering::SeqCst);
    }

    /// The thread was stopped since its last record: it should ask its CPU clock.
    pub fn set_stopped(&self, ring: usize) {
        self.in_ring(ring, STOPPED).store(1, Ordering::Relaxed);
    }

    /// Adds to what the thread is to know of a descriptor: bits of the C file.
    pub fn know(&self, ring: usize, descriptor: i32, bits: u8) {
        if let Some(at) = usize::try_from(descriptor).ok().filter(|at| *at < DESCRIPTORS) {
            self.byte(start(ring) + KNOWN + at).fetch_or(bits, Ordering::SeqCst);
        }
    }

    pub fn forget(&self, ring: usize, descriptor: i32) {
        if let Some(at) = usize::try_from(descriptor).ok().filter(|at| *at < DESCRIPTORS) {
            self.byte(start(ring) + KNOWN + at).store(0, Ordering::SeqCst);
        }
    }

    pub fn forget_known(&self, ring: usize) {
        (0..DESCRIPTORS).for_each(|at| self.byte(start(ring) + KNOWN + at).store(0, Ordering::Relaxed));
    }

    /// Adds the records of a ring that are not read yet, up to a place in the order. False where
    /// what is there can be none.
    pub fn find(&self, ring: usize, limit: u64, found: &mut Vec<Spot>) -> bool {
        let head = self.long(start(ring) + HEAD).load(Ordering::Acquire);
        let mut at = self.tails[ring];
        if head.wrapping_sub(at) > RING_BYTES || self.long(start(ring) + TAIL).load(Ordering::Relaxed) != at {
            return false;
        }
        while at < head {
            let (mut size, mut number, mut order) = ([0; 4], [0; 4], [0; 8]);
            self.copy(ring, at, &mut size);
            self.copy(ring, at + 4, &mut number);
            let size = u32::from_le_bytes(size);
            let (size, to_end) = (u64::from(size), RING_BYTES - at % RING_BYTES);
            let is_skip = u32::from_le_bytes(number) == SKIP;
            let is_record = if is_skip { size == to_end } else { size >= RECORD as u64 };
            if !is_record || size > (head - at).min(to_end) || size % UNIT != 0 {
                return false;
            }
            if !is_skip {
                self.copy(ring, at + 8, &mut order);
                let order = u64::from_le_bytes(order);
                if order > limit {
                    break;
                }
                found.push(Spot { order, ring, at, size: size as u32 });
            }
            at += size;
        }
        true
    }

    /// Copies a record and gives its room back, with all before it in its ring.
    pub fn take(&mut self, spot: Spot, into: &mut Vec<u8>) {
        into.resize(spot.size as usize, 0);
        self.copy(spot.ring, spot.at, into);
        self.tails[spot.ring] = spot.at + u64::from(spot.size);
        self.long(start(spot.ring) + TAIL).store(self.tails[spot.ring], Ordering::Release);
    }

    /// Not around the ring's end: no record goes there.
    fn copy(&self, ring: usize, at: u64, into: &mut [u8]) {
        let at = (at % RING_BYTES) as usize;
        let length = into.len().min(RING_BYTES as usize - at);
        // SAFETY: the place lies in this ring of the mapping, with the length; what others write
        // there meanwhile are bytes of any value.
        let from = unsafe { self.at.as_ptr().add(start(ring) + PAGE + at) };
        // SAFETY: as above; the buffer is at least as long, and does not overlap with shared
        // memory.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), length) };
    }

    fn in_ring(&self, ring: usize, offset: usize) -> &AtomicU32 {
        self.word(start(ring) + offset)
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= BYTES && offset % 4 == 0, "outside of the shared memory");
        // SAFETY: it lies in the mapping, which lives as long as `self`, and is aligned.
        unsafe { AtomicU32::from_ptr(self.at.as_ptr().add(offset).cast()) }
    }

    fn long(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= BYTES && offset % 8 == 0, "outside of the shared memory");
        // SAFETY: it lies in the mapping, which lives as long as `self`, and is aligned.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(offset).cast()) }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        assert!(offset < BYTES, "outside of the shared memory");
        // SAFETY: it lies in the mapping, which lives as long as `self`.
        unsafe { AtomicU8::from_ptr(self.at.as_ptr().add(offset)) }
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), BYTES) };
    }
}

fn start(ring: usize) -> usize {
    PAGE + (ring % RINGS) * WHOLE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(rings: &Rings, ring: usize, records: &[(u32, u32, u64)]) {
        let head = rings.long(start(ring) + HEAD);
        for (size, number, order) in records {
            let at = head.load(Ordering::SeqCst);
            let place = start(ring) + PAGE + (at % RING_BYTES) as usize;
            rings.word(place).store(*size, Ordering::SeqCst);
            rings.word(place + 4).store(*number, Ordering::SeqCst);
            rings.long(place + 8).store(*order, Ordering::SeqCst);
            head.store(at + u64::from(*size), Ordering::SeqCst);
        }
    }

    fn claimed(ring: usize) -> Rings {
        let mut rings = Rings::new().unwrap();
        assert!(!rings.accept(ring) && !rings.accept(RINGS), "no thread has claimed it");
        rings.in_ring(ring, CLAIMED).store(1, Ordering::SeqCst);
        assert!(rings.accept(ring) && !rings.accept(ring));
        rings
    }

    #[test]
    fn records_are_found_up_to_a_place_in_the_order() {
        let mut rings = claimed(7);
        let rest = RING_BYTES as u32 - 168;
        put(&rings, 7, &[(rest, 3, 5), (168, SKIP, 0)]);
        let orders = |rings: &Rings, limit: u64| {
            let mut found = Vec::new();
            assert!(rings.find(7, limit, &mut found));
            found
        };
        assert_eq!(orders(&rings, 4).len(), 0);
        assert_eq!(orders(&rings, 8).iter().map(|spot| spot.order).collect::<Vec<_>>(), [5]);
        let mut bytes = Vec::new();
        rings.take(orders(&rings, 9)[0], &mut bytes);
        assert_eq!((bytes.len(), bytes[8], orders(&rings, 9).len()), (rest as usize, 5, 0));
        put(&rings, 7, &[(160, 4, 6), (160, 4, 9)]);
        assert_eq!(orders(&rings, 9).iter().map(|spot| spot.order).collect::<Vec<_>>(), [6, 9]);
    }

    #[test]
    fn what_can_be_no_record_is_refused() {
        const SIZE: u64 = RECORD as u64;
        let rows = [
            (0, 3, SIZE, 0),
            (152, 3, SIZE, 0),
            (164, 3, 2 * SIZE, 0),
            (2 * SIZE as u32, 3, SIZE, 0),
            (u32::MAX - 7, 3, SIZE, 0),
            (8, SKIP, SIZE, 0),
            (SIZE as u32, 3, RING_BYTES + 8, 0),
            (SIZE as u32, 3, u64::MAX, 0),
            (SIZE as u32, 3, SIZE, 8),
        ];
        for (size, number, head, tail) in rows {
            let rings = claimed(0);
            put(&rings, 0, &[(size, number, 1)]);
            rings.long(start(0) + HEAD).store(head, Ordering::SeqCst);
            rings.long(start(0) + TAIL).store(tail, Ordering::SeqCst);
            assert!(!rings.find(0, 9, &mut Vec::new()), "{size} {number} {head} {tail}");
        }
    }
}
