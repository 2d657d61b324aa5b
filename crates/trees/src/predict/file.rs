//! Reads a file, or some pieces of it, and measures them. Nothing is ever written, and what goes
//! wrong is the caller's to count.

use crate::codec::{Meter, PIECE};
use crate::predict::rules::{CODECS, Piece, heuristic};
use crate::read_full;
use pickfs_system::random::Random;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;

/// btrfs decides on 128 MiB at a time by the first piece whether to compress at all, and goes to
/// the end of 512 KiB when one is not worth it.
const PIECES_OF_RANGE: u64 = 1024;
const PIECES_OF_CHUNK: u64 = 4;
/// The first ones stand for all in a file of more parts than this.
const MOST_STRETCHES: usize = 20_000;

/// What was read of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Contents {
    pub bytes: u64,
    /// Not in holes.
    pub data: u64,
    /// Number of pieces in the file.
    pub count: u64,
    /// By place: the first, and the drawn ones.
    pub pieces: Vec<Piece>,
}

/// Where data lies between holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    start: u64,
    bytes: u64,
    /// The place of its first piece.
    place: u64,
}

/// What one thread needs, and how long its compressors took.
pub(crate) struct Reader {
    meter: Meter,
    buffer: Vec<u8>,
    /// CPU time of this thread, in nanoseconds, by codec.
    pub spent: [u64; CODECS.len()],
    /// That each codec was given.
    pub measured: u64,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { meter: Meter::new(), buffer: vec![0; PIECE], spent: [0; CODECS.len()], measured: 0 }
    }
}

impl Reader {
    /// Reads the first piece and up to `others` others; `rank` decides which.
    pub(crate) fn read(&mut self, file: &File, others: u64, rank: u64) -> io::Result<Contents> {
        let bytes = file.metadata()?.len();
        let stretches = stretches(file, bytes)?;
        let data = stretches.iter().map(|stretch| stretch.bytes).sum();
        let count = stretches.last().map_or(0, |last| last.place + pieces_in(last.bytes));
        let mut visit = Visit { reader: self, file, stretches: &stretches, tried: HashMap::new() };
        let pieces = drawn(count, others, rank).into_iter().map(|place| visit.piece(place));
        let pieces = pieces.filter(|piece| piece.as_ref().map_or(true, |piece| piece.bytes > 0));
        Ok(Contents { bytes, data, count, pieces: pieces.collect::<io::Result<_>>()? })
    }

    /// Compressed sizes of the first bytes of the buffer, by codec.
    fn measure(&mut self, bytes: usize) -> [u64; CODECS.len()] {
        let piece = &self.buffer[..bytes];
        self.measured += bytes as u64;
        std::array::from_fn(|index| {
            let before = processor_time();
            let size = self.meter.bytes(CODECS[index], piece);
            self.spent[index] += processor_time().saturating_sub(before);
            size
        })
    }
}

/// CPU time of this thread alone: what else the machine does is not counted.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn pieces_in(bytes: u64) -> u64 {
    bytes.div_ceil(PIECE as u64)
}

/// All places, or the first and `others` more.
fn drawn(count: u64, others: u64, rank: u64) -> BTreeSet<u64> {
    if count <= others + 1 {
        return (0..count).collect();
    }
    let mut random = Random::new(rank, 1);
    let mut places = BTreeSet::from([0]);
    while (places.len() as u64) < others + 1 {
        places.insert(1 + random.below(count - 1));
    }
    places
}

/// Where data lies; one stretch where the file system cannot tell.
fn stretches(file: &File, bytes: u64) -> io::Result<Vec<Stretch>> {
    let mut found: Vec<Stretch> = Vec::new();
    let (mut at, mut place) = (0, 0);
    while at < bytes && found.len() < MOST_STRETCHES {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break, // nothing but a hole
            Err(Errno::INVAL) => at,
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(bytes).clamp(start, bytes);
        if end == start {
            break; // shrinking just now
        }
        found.push(Stretch { start, bytes: end - start, place });
        (at, place) = (end, place + pieces_in(end - start));
    }
    Ok(found)
}

/// One file being read.
struct Visit<'a> {
    reader: &'a mut Reader,
    file: &'a File,
    stretches: &'a [Stretch],
    /// Whether btrfs would try, by place.
    tried: HashMap<u64, bool>,
}

impl Visit<'_> {
    fn piece(&mut self, place: u64) -> io::Result<Piece> {
        let inside = place - self.stretch(place).place;
        let first = place - inside;
        let head = first + inside / PIECES_OF_RANGE * PIECES_OF_RANGE;
        let chunk = first + inside / PIECES_OF_CHUNK * PIECES_OF_CHUNK;
        let mut skipped = !self.worth_trying(head)?;
        for before in chunk..place {
            skipped = skipped || !self.worth_trying(before)?;
        }
        let bytes = self.load(place)?;
        let skipped = skipped || !self.try_loaded(place, bytes);
        let zeros = self.reader.buffer[..bytes].iter().all(|byte| *byte == 0);
        Ok(Piece { place, bytes: bytes as u64, zeros, skipped, sizes: self.reader.measure(bytes) })
    }

    fn worth_trying(&mut self, place: u64) -> io::Result<bool> {
        if let Some(known) = self.tried.get(&place) {
            return Ok(*known);
        }
        let bytes = self.load(place)?;
        Ok(self.try_loaded(place, bytes))
    }

    fn try_loaded(&mut self, place: u64, bytes: usize) -> bool {
        let buffer = &self.reader.buffer[..bytes];
        *self.tried.entry(place).or_insert_with(|| heuristic::worth_trying(buffer))
    }

    fn stretch(&self, place: u64) -> Stretch {
        self.stretches[self.stretches.partition_point(|stretch| stretch.place <= place) - 1]
    }

    /// Into the buffer; fewer bytes where the file has become shorter.
    fn load(&mut self, place: u64) -> io::Result<usize> {
        let stretch = self.stretch(place);
        let inside = (place - stretch.place) * PIECE as u64;
        let wanted = (stretch.bytes - inside).min(PIECE as u64) as usize;
        read_full(self.file, &mut self.reader.buffer[..wanted], stretch.start + inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const PIECES: u64 = PIECE as u64;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        Random::new(5, 5).fill(&mut noise);
        noise
    }

    fn read(bytes: &[u8], others: u64) -> Contents {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        Reader::default().read(&File::open(path).unwrap(), others, 7).unwrap()
    }

    #[test]
    fn a_file_is_read_in_pieces_and_those_are_measured() {
        let read = read(&b"text ".repeat(60_000), 9);
        assert_eq!((read.bytes, read.data, read.count, read.pieces.len()), (300_000, 300_000, 3, 3));
        let bytes: Vec<u64> = read.pieces.iter().map(|piece| piece.bytes).collect();
        assert_eq!(bytes, [PIECES, PIECES, 300_000 - 2 * PIECES]);
        assert!(read.pieces.iter().all(|piece| !piece.skipped && !piece.zeros && piece.sizes[3] < 100));
        assert_eq!(super::tests::read(&[], 9), Contents::default());
    }

    #[test]
    fn what_is_hopeless_spoils_its_chunk_and_a_hopeless_head_all() {
        let (text, noise) = (b"text ".repeat(PIECE).split_off(PIECE * 4), noise(PIECE));
        let skipped = |parts: &[&[u8]]| -> Vec<bool> {
            let bytes = parts.concat();
            read(&bytes, 99).pieces.iter().map(|piece| piece.skipped).collect()
        };
        assert_eq!(skipped(&[&text, &noise, &text, &text, &text]), [false, true, true, true, false]);
        assert_eq!(skipped(&[&noise, &text, &text, &text, &text]), [true; 5]);
    }

    #[test]
    fn the_first_is_always_drawn_and_none_twice() {
        assert_eq!(drawn(3, 5, 1), BTreeSet::from([0, 1, 2]));
        let places = drawn(1 << 40, 8, 1);
        assert_eq!((places.len(), places.first()), (9, Some(&0)));
        assert_eq!(drawn(1 << 40, 8, 1), places);
    }

    #[test]
    fn holes_are_no_pieces_however_large() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10 << 40).unwrap();
        file.write_all_at(b"island", 5 << 40).unwrap();
        let read = Reader::default().read(&file, 3, 1).unwrap();
        if read.bytes == read.data {
            return pickfs_test_support::not_run("the temporary folder's file system does not tell of holes");
        }
        assert_eq!((read.bytes, read.count, read.pieces.len()), (10 << 40, 1, 1));
        assert!(read.data <= 1 << 20, "{}", read.data);
    }
}
