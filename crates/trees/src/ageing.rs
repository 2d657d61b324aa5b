//! What an ager does, operation by operation, from a seed and logical bytes alone: it never asks
//! what a file system has left, so that every target has the same done to it.
//!
//! After Geriatrix (Kadekodi, Nagarajan, Ganger, Gibson: Geriatrix, USENIX ATC 2018): fill quickly
//! to a level, then flip a coin for each operation, make a file or delete one. Which one is deleted
//! keeps ages apart: a file's age is how much of all operations so far it has lived, ages fall into
//! classes that double, and the class that has most above its share loses a file. Always deleting
//! at random would leave nothing old; always the oldest, nothing but the young.
//!
//! Geriatrix makes files with `fallocate`; here every byte is written, as compression and copy on
//! write see no other. Writes are made durable at regular distances, or a short-lived file would
//! never reach the disk at all.

use crate::profile::Stuff;
use pickfs_system::random::Random;

/// How much, in bytes of files as their owners count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// The most that files ever hold.
    pub level: u64,
    /// Written after that level is reached, while as much is deleted.
    pub churn: u64,
    /// What the files hold at the end, to the byte.
    pub leaves: u64,
}

/// One step on files that are known by the number of their making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Make(File),
    Delete(File),
    /// Everything so far is to be durable.
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    pub number: u64,
    pub folder: u64,
    pub stuff: Stuff,
    pub bytes: u64,
}

/// Number of folders; a file may lie in any of them.
pub const FOLDERS: u64 = 64;

/// Sizes are lognormal: half of the files are below the median, half of the bytes in files of some
/// 4 MiB and more where they may be so large, near what surveys find (Agrawal, Bolosky, Douceur,
/// Lorch: A Five-Year Study of File-System Metadata, FAST 2007).
const MEDIAN: f64 = 8192.0;
const DEVIATION: f64 = 2.5;
/// No file is larger than this share of the level, nor than this: one file must not be the whole of
/// a small image.
const LARGEST_SHARE: u64 = 64;
const LARGEST: u64 = 256 << 20;
/// Half is text, a quarter each of what is compiled and what is compressed.
const STUFFS: [Stuff; 4] = [Stuff::Source, Stuff::Records, Stuff::Object, Stuff::Media];
/// The coin is flipped between this share of the level and the level; outside, only one of both can
/// be done.
const FLOOR: (u64, u64) = (7, 8);
/// Made durable so often while the level is written once, within these bytes.
const SYNCS: u64 = 64;
const SYNC_BYTES: (u64, u64) = (4 << 20, 256 << 20);
/// Classes of age: the youngest have lived less than 1/64 of all operations, the oldest more than
/// half.
const AGES: u32 = 7;

/// The operations, in order.
pub struct Schedule {
    amounts: Amounts,
    random: Random,
    files: Files,
    stage: Stage,
    live: u64,
    churned: u64,
    unsynced: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fill,
    Churn,
    Thin,
    Complete,
    Over,
}

impl Schedule {
    pub fn new(amounts: Amounts, seed: u64) -> Schedule {
        let (random, files) = (Random::new(seed, 0xa6e), Files::default());
        Schedule { amounts, random, files, stage: Stage::Fill, live: 0, churned: 0, unsynced: 0 }
    }

    fn step(&mut self) -> Option<Operation> {
        loop {
            let step = match self.stage {
                Stage::Fill => self.fill(self.amounts.level),
                Stage::Churn => self.churn(),
                Stage::Thin => (self.live > self.amounts.leaves).then(|| self.delete()),
                Stage::Complete => self.fill(self.amounts.leaves),
                Stage::Over => return None,
            };
            if step.is_some() {
                return step;
            }
            self.stage = match self.stage {
                Stage::Fill => Stage::Churn,
                Stage::Churn => Stage::Thin,
                Stage::Thin => Stage::Complete,
                Stage::Complete | Stage::Over => Stage::Over,
            };
        }
    }

    /// Makes the next file until the level holds exactly `to` bytes.
    fn fill(&mut self, to: u64) -> Option<Operation> {
        let left = to.checked_sub(self.live).filter(|left| *left > 0)?;
        let bytes = self.size().min(left);
        Some(self.make(bytes))
    }

    fn churn(&mut self) -> Option<Operation> {
        if self.churned >= self.amounts.churn {
            return None;
        }
        let floor = self.amounts.level / FLOOR.1 * FLOOR.0;
        let (bytes, heads) = (self.size(), self.random.bits() & 1 == 0);
        let may_make = self.live + bytes <= self.amounts.level;
        if may_make && (heads || self.live < floor) {
            self.churned += bytes;
            return Some(self.make(bytes));
        }
        Some(self.delete())
    }

    fn size(&mut self) -> u64 {
        let largest = (self.amounts.level.max(self.amounts.leaves) / LARGEST_SHARE).clamp(1, LARGEST);
        (self.random.lognormal(MEDIAN, DEVIATION) as u64).clamp(1, largest)
    }

    fn make(&mut self, bytes: u64) -> Operation {
        let (folder, stuff) = (self.random.below(FOLDERS), STUFFS[self.random.index(STUFFS.len())]);
        let file = self.files.add(folder, stuff, bytes);
        self.live += bytes;
        self.unsynced += bytes;
        Operation::Make(file)
    }

    fn delete(&mut self) -> Operation {
        let file = self.files.remove_of_age(&mut self.random);
        self.live -= file.bytes;
        Operation::Delete(file)
    }
}

impl Iterator for Schedule {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.unsynced >= (self.amounts.level / SYNCS).clamp(SYNC_BYTES.0, SYNC_BYTES.1) {
            self.unsynced = 0;
            return Some(Operation::Sync);
        }
        self.step()
    }
}

/// Every file that was ever made, by number, and which of them there are: a Fenwick tree (1994)
/// counts and finds those of a stretch of numbers in a logarithm of steps.
#[derive(Default)]
struct Files {
    all: Vec<File>,
    /// One-based: entry `n` counts the files of the `n & -n` numbers that end with it.
    counts: Vec<u32>,
    there: u32,
}

impl Files {
    fn add(&mut self, folder: u64, stuff: Stuff, bytes: u64) -> File {
        let file = File { number: self.all.len() as u64, folder, stuff, bytes };
        let place = self.all.len() + 1;
        let earlier = self.before(place - 1) - self.before(place - lowest_bit(place));
        self.all.push(file);
        self.counts.push(earlier + 1);
        self.there += 1;
        file
    }

    /// Number of files in the first `end` places.
    fn before(&self, end: usize) -> u32 {
        let mut sum = 0;
        let mut place = end;
        while place > 0 {
            sum += self.counts[place - 1];
            place -= lowest_bit(place);
        }
        sum
    }

    /// Takes out the file that has `rank` files before it.
    fn remove(&mut self, rank: u32) -> File {
        let (mut place, mut left) = (0, rank);
        for bit in (0..usize::BITS - self.counts.len().leading_zeros()).rev() {
            let next = place + (1 << bit);
            if next <= self.counts.len() && self.counts[next - 1] <= left {
                (place, left) = (next, left - self.counts[next - 1]);
            }
        }
        let mut changed = place + 1;
        while changed <= self.counts.len() {
            self.counts[changed - 1] -= 1;
            changed += lowest_bit(changed);
        }
        self.there -= 1;
        self.all[place]
    }

    /// Ranks of the files of each class of age, the oldest first. Files that were deleted count as
    /// time that has passed.
    fn classes(&self) -> Vec<std::ops::Range<u32>> {
        let now = self.all.len();
        let born_before = |class: u32| now - (now >> class);
        let ends = (1..AGES).map(|class| self.before(born_before(class))).chain([self.there]);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end)..end)).collect()
    }

    /// Any file of the class that has the most: all have the same share.
    fn remove_of_age(&mut self, random: &mut Random) -> File {
        let fullest = self.classes().into_iter().max_by_key(|ranks| ranks.len()).expect("there are classes");
        self.remove(fullest.start + random.below(fullest.len() as u64) as u32)
    }
}

fn lowest_bit(place: usize) -> usize {
    place & place.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const AMOUNTS: Amounts = Amounts { level: 200 << 20, churn: 600 << 20, leaves: 100 << 20 };

    /// Plays a schedule: what is there at the end, the most there ever was, bytes made and syncs.
    fn played(amounts: Amounts, seed: u64) -> (BTreeMap<u64, File>, u64, u64, usize) {
        let (mut there, mut live, mut most, mut made, mut syncs) = (BTreeMap::new(), 0, 0, 0, 0);
        for operation in Schedule::new(amounts, seed) {
            match operation {
                Operation::Make(file) => {
                    assert!(there.insert(file.number, file).is_none() && file.bytes > 0 && file.folder < FOLDERS);
                    (live, made) = (live + file.bytes, made + file.bytes);
                }
                Operation::Delete(file) => {
                    assert_eq!(there.remove(&file.number), Some(file));
                    live -= file.bytes;
                }
                Operation::Sync => syncs += 1,
            }
            most = most.max(live);
        }
        (there, most, made, syncs)
    }

    #[test]
    fn a_seed_has_one_schedule() {
        let all = |seed| Schedule::new(AMOUNTS, seed).collect::<Vec<_>>();
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
    }

    #[test]
    fn bytes_come_out_as_asked_for() {
        let fill = Amounts { level: 50 << 20, churn: 0, leaves: 50 << 20 };
        for (amounts, seed) in
            [(AMOUNTS, 1), (AMOUNTS, 2), (fill, 3), (Amounts { leaves: AMOUNTS.level, ..AMOUNTS }, 4)]
        {
            let (there, most, made, syncs) = played(amounts, seed);
            assert_eq!(there.values().map(|file| file.bytes).sum::<u64>(), amounts.leaves);
            assert_eq!(most, amounts.level);
            // The last file made in churning may go over, and so may the files that make the end
            // exact.
            let (wanted, slack) = (amounts.level + amounts.churn, amounts.level / 16);
            assert!((wanted..wanted + slack).contains(&made), "{made} of {wanted}");
            assert!((made / (8 << 20)..=made / (3 << 20)).contains(&(syncs as u64)), "{syncs} syncs");
        }
        assert_eq!(played(Amounts::default(), 1).0.len(), 0);
    }

    #[test]
    fn sizes_are_broad() {
        let (there, ..) = played(AMOUNTS, 1);
        let mut sizes: Vec<u64> = there.values().map(|file| file.bytes).collect();
        sizes.sort();
        let median = sizes[sizes.len() / 2];
        assert!((2 << 10..32 << 10).contains(&median), "{median}");
        assert!(sizes[0] < 64 && sizes[sizes.len() - 1] == AMOUNTS.level / 64);
    }

    #[test]
    fn deleting_keeps_files_of_all_ages() {
        let amounts = Amounts { leaves: AMOUNTS.level, churn: 4000 << 20, ..AMOUNTS };
        let (there, ..) = played(amounts, 1);
        let made = Schedule::new(amounts, 1).filter(|step| matches!(step, Operation::Make(_))).count() as u64;
        // Lived for more than half, a quarter, an eighth ... of all operations; random deletes
        // leave next to none of the first two, and deleting the oldest none.
        let of_age = |class: u32| {
            let (from, to) = (made - (made >> class), made - (made >> (class + 1)));
            there.range(from..to).count() as f64 / there.len() as f64
        };
        let shares: Vec<f64> = (0..4).map(of_age).collect();
        assert!(shares.iter().all(|share| (0.05..0.35).contains(share)), "{shares:?}");
    }

    #[test]
    fn the_fullest_class_of_age_loses_a_file() {
        let mut files = Files::default();
        for number in 0..64 {
            files.add(0, Stuff::Source, number);
        }
        let lengths = |files: &Files| files.classes().iter().map(ExactSizeIterator::len).collect::<Vec<_>>();
        assert_eq!(lengths(&files), [32, 16, 8, 4, 2, 1, 1]);
        let mut random = Random::new(1, 1);
        for _ in 0..16 {
            assert!(files.remove_of_age(&mut random).number < 32);
        }
        for _ in 0..24 {
            files.remove_of_age(&mut random);
        }
        let left = lengths(&files);
        assert!(left.iter().sum::<usize>() == 24 && left[..3].iter().all(|class| (5..=6).contains(class)), "{left:?}");
    }

    #[test]
    fn files_are_found_by_rank() {
        let mut files = Files::default();
        for number in 0..100 {
            files.add(0, Stuff::Source, number);
        }
        let mut plain: Vec<u64> = (0..100).collect();
        for rank in [0, 98, 50, 3, 3, 3, 90, 0, 20] {
            assert_eq!(files.remove(rank).number, plain.remove(rank as usize));
            plain.push(files.add(0, Stuff::Source, 0).number);
            assert_eq!(files.before(100) as usize, plain.iter().filter(|number| **number < 100).count());
        }
    }
}
