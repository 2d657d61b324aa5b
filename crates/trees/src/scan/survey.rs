//! What a tree holds, counted in one walk: by kind and size, by depth, by links and holes, with
//! samples of files to read.
//!
//! Nothing of a file is read here. The counts do not depend on which thread saw what: a file with
//! several names belongs to the one whose rank is lowest, wherever that was met.

use crate::profile::Kind;
use crate::profile::kinds::kind;
use crate::scan::same_size::SameSizeFiles;
use crate::scan::sketch::{Fans, Lowest, Numbers, Sample, Sizes};
use crate::scan::walk::{self, Directory, Entry, Options, Problems, Root, Visitor};
use anyhow::Result;
use rustix::fs::{FileType, OFlags, Statx};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Deeper directories are counted with those at this depth.
pub(crate) const DEEPEST: usize = 63;
/// Files that are drawn of each kind and range of sizes.
const SAMPLES: usize = 128;
/// Largest files, and those with most in holes, that are kept of each kind.
const LARGEST: usize = 64;
/// Files with several names are remembered up to here, in all; of further ones each name counts by
/// its share.
const REMEMBERED: usize = 900_000;
const SHARDS: usize = 16;

/// What was counted. "Files" are regular files, each once however many names it has.
pub struct Survey {
    /// Everything below the root.
    pub entries: u64,
    pub directories: u64,
    pub symlinks: u64,
    /// Bytes of the paths that symbolic links point to.
    pub symlink_bytes: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// FIFOs, sockets and devices.
    pub others: u64,
    /// Number of names of each length in bytes, by length.
    pub names: Vec<u64>,
    /// By depth, the root first.
    pub levels: Vec<Level>,
    pub kinds: BTreeMap<Kind, Tally>,
    /// Files of equal sizes, to be compared.
    pub same_size: SameSizeFiles,
    pub problems: Problems,
    root: Root,
}

/// Directories at one depth.
#[derive(Clone, Debug, Default)]
pub struct Level {
    pub subdirectories: Fans,
    pub files: Fans,
}

/// Files of one kind.
#[derive(Clone, Debug)]
pub struct Tally {
    pub files: u64,
    /// The sum of the sizes.
    pub bytes: u64,
    pub executable: u64,
    pub sizes: Sizes,
    /// By range of sizes.
    pub ranges: BTreeMap<usize, Range>,
    /// The largest files, ranked by their size downwards.
    pub largest: Vec<u64>,
    /// Files that have at least a page less on disk than their size, which holes or compression may
    /// be the reason of.
    pub thin: Thin,
}

#[derive(Clone, Debug)]
pub struct Thin {
    pub files: u64,
    pub bytes: u64,
    /// Bytes that are not on disk.
    pub missing: u64,
    /// Those with most bytes missing.
    pub samples: Lowest,
}

/// Files of one kind whose sizes are in one range: see [`range_of`].
#[derive(Clone, Debug)]
pub struct Range {
    pub files: u64,
    pub bytes: u64,
    /// The sum of [`in_records`].
    pub in_records: u64,
    pub samples: Lowest,
}

/// 0 for empty files; k for sizes above 2^(k-2) and up to 2^(k-1).
pub(crate) fn range_of(size: u64) -> usize {
    match size {
        0 => 0,
        size => 65 - (size - 1).leading_zeros() as usize,
    }
}

/// What zfs takes for a file that it does not compress, in a pool with sectors of 4 KiB: one record
/// in whole sectors, or whole records of 128 KiB.
pub(crate) fn in_records(size: u64) -> u64 {
    const RECORD: u64 = 128 << 10;
    size.checked_next_multiple_of(if size > RECORD { RECORD } else { 4096 }).unwrap_or(size)
}

/// The largest size in a range.
pub(crate) fn range_end(range: usize) -> u64 {
    match range {
        0 => 0,
        range => 1u64.checked_shl(range as u32 - 1).unwrap_or(u64::MAX),
    }
}

/// Walks through everything below `root` and counts it.
pub fn survey(root: &Path, options: &Options) -> Result<Survey> {
    let linked = Linked::default();
    let walked = walk::walk(root, options, || Counter::new(&linked, options.seed))?;
    let mut counter = Counter::new(&linked, options.seed);
    walked.visitors.into_iter().for_each(|other| counter.merge(other));
    counter.finish();
    let Counter { counts, levels, kinds, same_size, .. } = counter;
    let distinct = linked.files();
    Ok(Survey {
        entries: counts.entries,
        directories: counts.directories,
        symlinks: counts.symlinks,
        symlink_bytes: counts.symlink_bytes,
        hard_links: counts.linked_names - distinct - counts.beyond,
        others: counts.others,
        names: counts.names,
        levels,
        kinds,
        same_size,
        problems: walked.problems,
        root: walked.root,
    })
}

impl Survey {
    pub fn files(&self) -> u64 {
        self.kinds.values().map(|tally| tally.files).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.kinds.values().map(|tally| tally.bytes).sum()
    }

    /// Opens a sampled file, unless it is a regular file no more. Never waits for a FIFO's other
    /// end.
    pub(crate) fn open(&self, sample: &Sample) -> std::io::Result<File> {
        let file = File::from(self.root.open(&sample.path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::ErrorKind::NotFound.into()) }
    }
}

/// A file that has several names.
#[derive(Clone, Copy)]
struct LinkedFile {
    /// Rank of its lowest name, by which it is counted.
    rank: u64,
    /// Hash of the directory where that is.
    directory: u64,
    file: FileFacts,
}

/// What counts of a file.
#[derive(Clone, Copy)]
struct FileFacts {
    kind: Kind,
    executable: bool,
    size: u64,
    allocated: u64,
}

/// Files with several names, by a hash of device and inode, for all threads.
#[derive(Default)]
struct Linked([Mutex<Numbers<LinkedFile>>; SHARDS]);

impl Linked {
    /// Whether it is remembered.
    fn remember(&self, inode: u64, held: LinkedFile) -> bool {
        let mut shard = self.0[inode as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= REMEMBERED / SHARDS && !shard.contains_key(&inode) {
            return false;
        }
        let known = shard.entry(inode).or_insert(held);
        if held.rank < known.rank {
            *known = held;
        }
        true
    }

    fn each(&self, mut visit: impl FnMut(&LinkedFile)) {
        for shard in &self.0 {
            shard.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(&mut visit);
        }
    }

    fn files(&self) -> u64 {
        self.0.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len() as u64).sum()
    }
}

#[derive(Default)]
struct Counts {
    entries: u64,
    directories: u64,
    symlinks: u64,
    symlink_bytes: u64,
    others: u64,
    /// Names of files that have several.
    linked_names: u64,
    /// Files with several names that were counted without being remembered.
    beyond: u64,
    names: Vec<u64>,
}

/// What one thread counts.
struct Counter<'a> {
    seed: u64,
    linked: &'a Linked,
    counts: Counts,
    levels: Vec<Level>,
    kinds: BTreeMap<Kind, Tally>,
    same_size: SameSizeFiles,
    /// Directories where files with several names are, by their hash: depth, and files that have
    /// one name. As many as may be remembered; in further ones such files do not count.
    waiting: Numbers<(usize, u64)>,
}

impl<'a> Counter<'a> {
    fn new(linked: &'a Linked, seed: u64) -> Counter<'a> {
        let counts = Counts { names: vec![0; 256], ..Counts::default() };
        let (levels, kinds) = (Vec::new(), BTreeMap::new());
        Counter {
            seed,
            linked,
            counts,
            levels,
            kinds,
            same_size: SameSizeFiles::new(seed),
            waiting: Numbers::default(),
        }
    }

    fn file(&mut self, directory: &mut Directory, entry: &Entry) {
        let stat = entry.stat;
        let executable = stat.stx_mode & 0o111 != 0;
        let kind = kind(entry.name, executable);
        let found = FileFacts { kind, executable, size: stat.stx_size, allocated: stat.stx_blocks.saturating_mul(512) };
        let name = directory.rank(entry.name);
        if stat.stx_nlink < 2 {
            directory.files += 1;
            self.count(&found);
            return self.sample(&found, name, directory, entry);
        }
        self.counts.linked_names += 1;
        let inode = inode(stat, self.seed);
        if self.linked.remember(inode, LinkedFile { rank: name, directory: directory.hash, file: found }) {
            directory.linked += 1;
            self.sample(&found, inode, directory, entry);
        } else if name % u64::from(stat.stx_nlink) == 0 {
            directory.files += 1;
            self.counts.beyond += 1;
            self.count(&found);
        }
    }

    fn count(&mut self, file: &FileFacts) {
        self.kinds.entry(file.kind).or_default().count(file);
    }

    fn sample(&mut self, file: &FileFacts, rank: u64, directory: &Directory, entry: &Entry) {
        let sample = || Sample { rank, path: directory.join(entry.name), size: file.size };
        self.kinds.entry(file.kind).or_default().sample(file, rank, sample);
        self.same_size.add(file.kind, rank, file.size, sample);
    }

    fn level(&mut self, depth: usize) -> &mut Level {
        let depth = depth.min(DEEPEST);
        if self.levels.len() <= depth {
            self.levels.resize_with(depth + 1, Level::default);
        }
        &mut self.levels[depth]
    }

    fn merge(&mut self, other: Counter) {
        self.counts.merge(&other.counts);
        for (depth, level) in other.levels.iter().enumerate() {
            let own = self.level(depth);
            own.subdirectories.merge(&level.subdirectories);
            own.files.merge(&level.files);
        }
        other.kinds.into_iter().for_each(|(kind, tally)| self.kinds.entry(kind).or_default().merge(tally));
        self.same_size.merge(other.same_size);
        self.waiting.extend(other.waiting);
    }

    /// Counts the files with several names, each where its name with the lowest rank is.
    fn finish(&mut self) {
        let linked = self.linked;
        linked.each(|held| {
            self.count(&held.file);
            if let Some((_, files)) = self.waiting.get_mut(&held.directory) {
                *files += 1;
            }
        });
        for (depth, files) in std::mem::take(&mut self.waiting).into_values() {
            self.level(depth).files.add(files);
        }
    }
}

fn inode(stat: &Statx, seed: u64) -> u64 {
    let device = u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor);
    xxh3_64_with_seed(&stat.stx_ino.to_le_bytes(), seed ^ device)
}

impl Visitor for Counter<'_> {
    fn entry(&mut self, directory: &mut Directory, entry: &Entry) {
        self.counts.entries += 1;
        self.counts.names[entry.name.len().min(255)] += 1;
        match entry.kind {
            FileType::RegularFile => self.file(directory, entry),
            FileType::Directory => self.counts.directories += 1,
            FileType::Symlink => {
                self.counts.symlinks += 1;
                self.counts.symlink_bytes += entry.stat.stx_size;
            }
            _ => self.counts.others += 1,
        }
    }

    fn directory(&mut self, directory: &Directory) {
        let full = self.waiting.len() >= REMEMBERED / 4;
        let level = self.level(directory.depth);
        level.subdirectories.add(directory.subdirectories);
        if directory.linked == 0 || full {
            level.files.add(directory.files);
        } else {
            self.waiting.insert(directory.hash, (directory.depth, directory.files));
        }
    }
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.entries += other.entries;
        self.directories += other.directories;
        self.symlinks += other.symlinks;
        self.symlink_bytes += other.symlink_bytes;
        self.others += other.others;
        self.linked_names += other.linked_names;
        self.beyond += other.beyond;
        self.names.iter_mut().zip(&other.names).for_each(|(own, names)| *own += names);
    }
}

impl Tally {
    fn count(&mut self, file: &FileFacts) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(file.size);
        self.executable += u64::from(file.executable);
        self.sizes.add(file.size, 1);
        let range = self.ranges.entry(range_of(file.size)).or_default();
        range.files += 1;
        range.bytes = range.bytes.saturating_add(file.size);
        range.in_records = range.in_records.saturating_add(in_records(file.size));
        add_largest(&mut self.largest, file.size);
        if let Some(missing) = missing(file) {
            self.thin.files += 1;
            self.thin.bytes = self.thin.bytes.saturating_add(file.size);
            self.thin.missing = self.thin.missing.saturating_add(missing);
        }
    }

    fn sample(&mut self, file: &FileFacts, rank: u64, sample: impl Fn() -> Sample) {
        let range = self.ranges.entry(range_of(file.size)).or_default();
        if range.samples.wants(rank) {
            range.samples.add(sample());
        }
        // The rank's last bits tell files apart that miss as much.
        let rank = missing(file).map(|missing| !missing << 10 | rank & 0x3ff);
        if let Some(rank) = rank.filter(|rank| self.thin.samples.wants(*rank)) {
            self.thin.samples.add(Sample { rank, ..sample() });
        }
    }

    fn merge(&mut self, other: Tally) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.executable += other.executable;
        self.sizes.merge(&other.sizes);
        other.ranges.into_iter().for_each(|(range, found)| self.ranges.entry(range).or_default().merge(found));
        other.largest.iter().for_each(|size| add_largest(&mut self.largest, *size));
        self.thin.files += other.thin.files;
        self.thin.bytes = self.thin.bytes.saturating_add(other.thin.bytes);
        self.thin.missing = self.thin.missing.saturating_add(other.thin.missing);
        self.thin.samples.merge(other.thin.samples);
    }
}

/// Bytes that a file has less on disk than its size, from a page upwards: tails of files may lie
/// with their inode.
fn missing(file: &FileFacts) -> Option<u64> {
    const PAGE: u64 = 4096;
    file.size.checked_sub(file.allocated).filter(|missing| *missing >= PAGE)
}

fn add_largest(largest: &mut Vec<u64>, size: u64) {
    if largest.len() == LARGEST && largest.last().is_some_and(|last| size <= *last) {
        return;
    }
    let place = largest.partition_point(|other| *other > size);
    largest.insert(place, size);
    largest.truncate(LARGEST);
}

impl Range {
    fn merge(&mut self, other: Range) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.in_records = self.in_records.saturating_add(other.in_records);
        self.samples.merge(other.samples);
    }
}

impl Default for Range {
    fn default() -> Range {
        Range { files: 0, bytes: 0, in_records: 0, samples: Lowest::new(SAMPLES) }
    }
}

impl Default for Tally {
    fn default() -> Tally {
        let thin = Thin { files: 0, bytes: 0, missing: 0, samples: Lowest::new(LARGEST) };
        let (sizes, ranges, largest) = (Sizes::default(), BTreeMap::new(), Vec::new());
        Tally { files: 0, bytes: 0, executable: 0, sizes, ranges, largest, thin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn shown(root: &Path, threads: usize) -> (Survey, String) {
        let survey = survey(root, &Options { threads, ..Options::default() }).unwrap();
        let kinds = format!("{:?}", survey.kinds.values().map(|tally| tally.sizes.quantiles(50)).collect::<Vec<_>>());
        let rest = format!("{:?} {:?} {:?}", survey.levels, survey.names, survey.hard_links);
        (survey, kinds + &rest)
    }

    #[test]
    fn ranges_end_with_powers_of_two() {
        for (size, range, end) in [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 4), (4096, 13, 4096), (4097, 14, 8192)] {
            assert_eq!((range_of(size), range_end(range)), (range, end), "{size}");
        }
        assert_eq!(range_end(range_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn a_file_with_several_names_counts_once_in_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c/d"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("a/one.c"), "text").unwrap();
        fs::write(folder.path().join("a/two.c"), "more text").unwrap();
        for name in ["b/1.c", "b/2.c", "c/d/3.rs"] {
            fs::hard_link(folder.path().join("a/one.c"), folder.path().join(name)).unwrap();
        }
        let (survey, first) = shown(folder.path(), 1);
        assert_eq!((survey.entries, survey.directories, survey.files(), survey.bytes()), (9, 4, 2, 13));
        assert_eq!(survey.hard_links, 3);
        let files = |level: &Level| level.files.pairs(4).iter().map(|(files, of)| files * of).sum::<u64>();
        assert_eq!(survey.levels.iter().map(files).sum::<u64>(), 2);
        for threads in [2, 5] {
            assert_eq!(shown(folder.path(), threads).1, first);
        }
    }

    #[test]
    fn what_is_missing_on_disk_is_told_and_the_largest_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        fs::File::create(folder.path().join("a.img")).unwrap().set_len(1 << 30).unwrap();
        fs::write(folder.path().join("b.img"), vec![1; 10_000]).unwrap();
        let (survey, _) = shown(folder.path(), 2);
        let tally = &survey.kinds[&Kind::Store];
        assert_eq!((tally.largest.clone(), tally.thin.files, tally.thin.bytes), (vec![1 << 30, 10_000], 1, 1 << 30));
        let sample = tally.thin.samples.iter().next().unwrap();
        assert_eq!(sample.path, b"a.img");
        assert_eq!(survey.open(sample).unwrap().metadata().unwrap().len(), 1 << 30);
    }
}
