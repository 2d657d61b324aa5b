//! A second witness: the log of dm-log-writes, which lies on top of the recorded disk. At each
//! flush both must give the same disk. Format and order of the log: drivers/md/dm-log-writes.c.

use super::SECTOR;
use super::image::{Image, Loses, Survivors};
use super::recording::Recording;
use anyhow::{Context, Result, ensure};
use pickfs_system::random::Random;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const FLUSH: u64 = 1;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
/// Words of an entry, and of the first sector.
const WORDS: usize = 4;

/// An entry of the log: a write, a flush, or a write that is a flush too.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Logged {
    first: u64,
    sectors: u64,
    is_flush: bool,
    /// Where in the log its data are, in bytes.
    data_at: u64,
}

/// Entries up to the first mark, in the order of the log.
#[derive(Debug)]
pub struct Witness {
    entries: Vec<Logged>,
}

/// What both witnesses came to.
#[derive(Debug, PartialEq)]
pub struct Agreement {
    /// Flushes that the log has, each with an image that was compared.
    pub flushes: usize,
    /// Flushes that the recording has from the time before the log began.
    pub before: usize,
    /// The number of the first flush at which the images differ, and a sector; none where all are
    /// equal.
    pub differs: Option<(usize, u64)>,
    /// Flushes at which the images differ.
    pub unequal: usize,
}

impl Witness {
    /// None where the log has no mark yet: the kernel writes it some time after it was asked to.
    pub fn read(log: &File) -> Result<Option<Witness>> {
        let [magic, version, count, bytes] = words(log, 0)?;
        if magic == 0 {
            return Ok(None);
        }
        let sector = bytes & 0xffff_ffff;
        ensure!(magic == MAGIC && version == 1, "this is no log of dm-log-writes");
        ensure!(sector.is_power_of_two() && sector >= SECTOR, "the log has sectors of {sector} bytes");
        let (mut entries, mut at) = (Vec::new(), sector);
        for _ in 0..count {
            let [first, sectors, flags, _] = words(log, at)?;
            at += sector;
            if flags & MARK != 0 {
                return Ok(Some(Witness { entries }));
            }
            let scale = sector / SECTOR;
            // A discard has no data, and changes nothing on the recorded disk.
            let sectors = if flags & DISCARD == 0 { sectors } else { 0 };
            let is_flush = flags & FLUSH != 0;
            entries.push(Logged { first: first * scale, sectors: sectors * scale, is_flush, data_at: at });
            at += sectors * sector;
        }
        Ok(None)
    }

    /// Compares whole disks at each flush of the log with a disk at the same flush of the recording
    /// that loses all that was not flushed. Both end with the same flush; what came before the log
    /// is the same on both sides.
    pub fn compare(&self, log: &File, recording: &Recording, recorded: &File) -> Result<Agreement> {
        let (all, logged) = (recording.flushes.len(), self.entries.iter().filter(|entry| entry.is_flush).count());
        let before = all.checked_sub(logged);
        let before = before.with_context(|| format!("dm-log-writes has {logged} flushes, the recording only {all}"))?;
        let mut survivors = Survivors::new(recording, None);
        survivors.advance(recording.flushes[..before].last().copied().unwrap_or_default());
        survivors.changed();
        let mut found = Agreement { flushes: 0, before, differs: None, unequal: 0 };
        let mut sides = Sides { log, recorded, recording, logged: HashMap::new(), differing: BTreeSet::new() };
        let mut touched = Vec::new();
        for entry in &self.entries {
            for number in 0..entry.sectors {
                sides.logged.insert(entry.first + number, entry.data_at + number * SECTOR);
                touched.push(entry.first + number);
            }
            if !entry.is_flush {
                continue;
            }
            let at = recording.flushes[before + found.flushes];
            survivors.advance(at);
            let image = survivors.image(at, Loses::All, &mut Random::new(0, 0));
            touched.extend(survivors.changed());
            sides.compare(touched.drain(..), &survivors, &image)?;
            if let Some(sector) = sides.differing.first() {
                found.differs = found.differs.or(Some((found.flushes, *sector)));
                found.unequal += 1;
            }
            found.flushes += 1;
        }
        Ok(found)
    }
}

struct Sides<'a> {
    log: &'a File,
    recorded: &'a File,
    recording: &'a Recording,
    /// For each sector the place of its data in the log.
    logged: HashMap<u64, u64>,
    differing: BTreeSet<u64>,
}

impl Sides<'_> {
    /// Sectors that neither side has written since have not changed.
    fn compare(&mut self, touched: impl Iterator<Item = u64>, survivors: &Survivors, image: &Image) -> Result<()> {
        for sector in touched {
            let write = image.beyond.get(&sector).or(survivors.base.get(&sector));
            let theirs = write.map(|number| self.recording.writes[*number as usize]);
            let theirs = theirs.map(|write| write.data_at + (sector - write.first) * SECTOR);
            let [ours, theirs] =
                [content(self.log, self.logged.get(&sector).copied())?, content(self.recorded, theirs)?];
            if ours == theirs {
                self.differing.remove(&sector)
            } else {
                self.differing.insert(sector)
            };
        }
        Ok(())
    }
}

/// A sector that was never written is zeros.
fn content(file: &File, at: Option<u64>) -> Result<[u8; SECTOR as usize]> {
    let mut bytes = [0; SECTOR as usize];
    let read = at.map_or(Ok(()), |at| file.read_exact_at(&mut bytes, at));
    read.context("cannot read a sector that was logged").map(|()| bytes)
}

fn words(log: &File, at: u64) -> Result<[u64; WORDS]> {
    let mut bytes = [0; 8 * WORDS];
    log.read_exact_at(&mut bytes, at).context("cannot read the log of writes")?;
    Ok(std::array::from_fn(|number: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * number + byte]))))
}

#[cfg(test)]
mod tests {
    use super::super::recording::tests::Written;
    use super::*;

    const LOGGED_SECTOR: u64 = 512;

    /// A log as the kernel writes it.
    fn log(entries: &[(u64, u64, &[u8])]) -> File {
        let file = tempfile::tempfile().expect("a file");
        let put = |at: u64, words: [u64; WORDS]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            file.write_all_at(&bytes, at).expect("written");
        };
        put(0, [MAGIC, 1, entries.len() as u64, LOGGED_SECTOR]);
        let mut at = LOGGED_SECTOR;
        for (first, flags, data) in entries {
            put(at, [*first, data.len() as u64 / LOGGED_SECTOR, *flags, 0]);
            file.write_all_at(data, at + LOGGED_SECTOR).expect("written");
            at += LOGGED_SECTOR + data.len() as u64;
        }
        file.set_len(at + LOGGED_SECTOR).expect("its length");
        file
    }

    fn compared(entries: &[(u64, u64, &[u8])]) -> Agreement {
        let (a, b, c) = ([1; 1024], [2; 512], [3; 512]);
        let recorded = Written::by_a_disk_that_forgets(true)
            .write(9, &c, 1, 2)
            .write(40, &c, 1, 2)
            .flush(3, 4)
            .write(8, &a, 5, 6)
            .flush(7, 9)
            .write(9, &b, 10, 12)
            .write(20, &b, 11, 15)
            .flush(14, 20)
            .forced(30, &c, 21, 22)
            .flush(23, 24)
            .file();
        let recording = Recording::read(&recorded).expect("a recording");
        let log = log(entries);
        let witness = Witness::read(&log).expect("a log").expect("with its mark");
        witness.compare(&log, &recording, &recorded).expect("compared")
    }

    #[test]
    fn both_witnesses_of_the_same_writes_agree_and_each_difference_is_found() {
        let (a, b, c): (&[u8], &[u8], &[u8]) = (&[1; 1024], &[2; 512], &[3; 512]);
        let none: &[u8] = &[];
        // The second write of the second flush was still under way when the flush was given.
        let whole = [
            (8, 0, a),
            (0, FLUSH, none),
            (9, 0, b),
            (0, FLUSH, none),
            (30, 2, c),
            (20, 0, b),
            (0, FLUSH, none),
            (0, MARK, none),
        ];
        assert_eq!(compared(&whole), Agreement { flushes: 3, before: 1, differs: None, unequal: 0 });
        let changed = |number: usize, entry: (u64, u64, &'static [u8])| {
            let mut entries = whole.to_vec();
            entries[number] = entry;
            compared(&entries)
        };
        let differs = |found: Agreement| (found.differs, found.unequal);
        assert_eq!(differs(changed(0, (8, 0, &[7; 1024]))), (Some((0, 8)), 3));
        assert_eq!(differs(changed(2, (10, 0, &[2; 512]))), (Some((1, 9)), 2));
        assert_eq!(differs(changed(4, (30, DISCARD, &[]))), (Some((2, 30)), 1));
        // The same, in time for the wrong flush.
        let early = [whole[0], whole[2], whole[1], whole[3], whole[4], whole[5], whole[6], whole[7]];
        assert_eq!(differs(compared(&early)), (Some((0, 9)), 1));
    }

    #[test]
    fn a_log_without_its_mark_is_not_read() {
        assert!(Witness::read(&log(&[(8, 0, &[1; 512])])).expect("a log").is_none());
        let empty = tempfile::tempfile().expect("a file");
        empty.set_len(4096).expect("its length");
        assert!(Witness::read(&empty).expect("empty").is_none());
        empty.write_all_at(b"else", 0).expect("written");
        assert!(Witness::read(&empty).is_err());
    }
}
