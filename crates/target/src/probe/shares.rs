//! What each top-level directory of a tree takes on the disk, and what would be free without it.
//!
//! Bytes are stretches of the device, so that what several files share counts once. Of btrfs they
//! are the extents that its items name, compressed, as compsize counts them (root). Elsewhere they
//! are what FIEMAP says. Where neither gives a length on the disk, a file takes its blocks as du
//! counts them, and only its own further names share them.

use super::compression::mount_of;
use pickfs_system::sys::btrfs::{self, Extent, Search};
use pickfs_system::sys::extents::{self, extents};
use rustix::fs::{OFlags, StatVfsMountFlags};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// What the files below one directory take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Name of the directory; `None` for files in the root itself, and for the sum.
    pub name: Option<OsString>,
    /// Regular files, each once however many names it has here.
    pub files: u64,
    /// Their sizes.
    pub apparent_bytes: u64,
    /// Data on the disk, one copy, each block once: without directories and other metadata.
    pub disk_bytes: u64,
    /// Those of the disk that no other directory of the tree has: free without it, unless a
    /// snapshot outside has them.
    pub alone_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// The one that takes most first.
    pub rows: Vec<Share>,
    /// Where all rows have a block or a file, it counts once.
    pub sum: Share,
    /// Files whose blocks are counted as du does: nothing gives their length on the disk.
    pub by_blocks: u64,
    /// Names that could not be looked at.
    pub unseen: u64,
}

/// Accounts for what is below `root`, subvolumes included, other mounts not. What is dirty is
/// written first, as a block gets its place only then. An error where the root cannot be opened.
pub fn shares(root: &Path) -> io::Result<Shares> {
    let opened = File::open(root)?;
    if !rustix::fs::fstatvfs(&opened)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        rustix::fs::syncfs(&opened)?;
    }
    let mount = mount_of(root);
    let inside = |entry: &DirEntry| !entry.file_type().is_dir() || mount_of(entry.path()) == mount;
    let mut counter = Counter::new(is_btrfs(&opened)?);
    for entry in WalkDir::new(root).min_depth(1).into_iter().filter_entry(inside) {
        let seen = entry.map_err(io::Error::from).and_then(|entry| counter.add(root, &entry));
        counter.unseen += u64::from(seen.is_err());
    }
    Ok(counter.end())
}

fn is_btrfs(root: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(root)?.f_type == i64::from(linux_raw_sys::general::BTRFS_SUPER_MAGIC))
}

/// Device and inode.
type Inode = (u64, u64);

struct Counter {
    /// For btrfs; `None` where its items cannot be read.
    search: Option<Box<Search>>,
    rows: BTreeMap<Option<OsString>, usize>,
    shares: Vec<Share>,
    sum: Share,
    stretches: Vec<(Range<u64>, usize)>,
    /// Where no stretch of the device is known, behind all devices.
    next: u64,
    /// For files with several names.
    given: HashMap<Inode, u64>,
    met: HashSet<(Inode, Option<usize>)>,
    by_blocks: u64,
    unseen: u64,
}

impl Counter {
    fn new(is_btrfs: bool) -> Counter {
        Counter {
            search: is_btrfs.then(Search::new),
            rows: BTreeMap::new(),
            shares: Vec::new(),
            sum: Share::default(),
            stretches: Vec::new(),
            next: 1 << 63,
            given: HashMap::new(),
            met: HashSet::new(),
            by_blocks: 0,
            unseen: 0,
        }
    }

    /// The row of what lies at the root or below.
    fn row(&mut self, root: &Path, entry: &DirEntry) -> usize {
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let is_top = entry.depth() == 1 && !entry.file_type().is_dir();
        let name = below.iter().next().filter(|_| !is_top).map(OsString::from);
        match self.rows.entry(name.clone()) {
            Entry::Occupied(row) => *row.get(),
            Entry::Vacant(row) => {
                self.shares.push(Share { name, ..Share::default() });
                *row.insert(self.shares.len() - 1)
            }
        }
    }

    fn add(&mut self, root: &Path, entry: &DirEntry) -> io::Result<()> {
        let row = self.row(root, entry);
        if !entry.file_type().is_file() {
            return Ok(());
        }
        let metadata = entry.metadata()?;
        let inode = (metadata.dev(), metadata.ino());
        let is_new = |met: &mut HashSet<_>, row| metadata.nlink() < 2 || met.insert((inode, row));
        if is_new(&mut self.met, Some(row)) {
            self.shares[row].count(&metadata);
            self.place(entry, &metadata, row);
        }
        if is_new(&mut self.met, None) {
            self.sum.count(&metadata);
        }
        Ok(())
    }

    fn place(&mut self, entry: &DirEntry, metadata: &Metadata, row: usize) {
        let flags = (OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(entry.path());
        let found = opened.and_then(|file| match &mut self.search {
            Some(search) => of_btrfs(search, &file, metadata.ino()),
            None => mapped(&extents(&file)?).ok_or_else(|| io::ErrorKind::Unsupported.into()),
        });
        let (places, inside) = found.unwrap_or_else(|_| {
            self.by_blocks += 1;
            (Vec::new(), metadata.blocks() * 512)
        });
        let own = self.own(metadata, inside);
        self.stretches
            .extend(places.into_iter().chain([own]).filter(|place| !place.is_empty()).map(|place| (place, row)));
    }

    /// A stretch of no device for bytes whose place is not known; the same for all names of a file.
    fn own(&mut self, metadata: &Metadata, bytes: u64) -> Range<u64> {
        let start = match metadata.nlink() {
            0 | 1 => self.next,
            _ => *self.given.entry((metadata.dev(), metadata.ino())).or_insert(self.next),
        };
        self.next = self.next.max(start + bytes);
        start..start + bytes
    }

    fn end(self) -> Shares {
        let Counter { mut shares, mut sum, stretches, by_blocks, unseen, .. } = self;
        let (of_rows, all) = taken(&stretches, shares.len());
        for (share, (disk, alone)) in shares.iter_mut().zip(of_rows) {
            (share.disk_bytes, share.alone_bytes) = (disk, alone);
        }
        (sum.disk_bytes, sum.alone_bytes) = (all, all);
        shares.sort_by(|one, two| two.disk_bytes.cmp(&one.disk_bytes).then_with(|| one.name.cmp(&two.name)));
        Shares { rows: shares, sum, by_blocks, unseen }
    }
}

impl Share {
    fn count(&mut self, metadata: &Metadata) {
        self.files += 1;
        self.apparent_bytes += metadata.len();
    }
}

/// Where a file lies on the disk, and its bytes without a known place.
type Places = (Vec<Range<u64>>, u64);

fn of_btrfs(search: &mut Search, file: &File, inode: u64) -> io::Result<Places> {
    let mut found = (Vec::new(), 0);
    search.each_extent(file.as_fd(), inode, |item| match Extent::parse(item).map(|extent| extent.place) {
        Some(btrfs::Place::Inline { bytes }) => found.1 += bytes,
        Some(btrfs::Place::Disk { start: start @ 1.., bytes, .. }) => found.0.push(start..start + bytes),
        _ => {} // a hole starts at 0
    })?;
    Ok(found)
}

/// `None` where a length on the disk is not known.
fn mapped(extents: &[extents::Extent]) -> Option<Places> {
    use extents::Place::*;
    let there = extents.iter().filter(|extent| matches!(extent.place, Plain | Unwritten));
    let places = there.map(|extent| extent.physical..extent.physical + extent.bytes).collect();
    let is_known = extents.iter().all(|extent| matches!(extent.place, Plain | Unwritten | Inside));
    is_known.then_some((places, 0))
}

/// Bytes of the stretches of each row, and bytes that only it has; then bytes of all.
fn taken(stretches: &[(Range<u64>, usize)], rows: usize) -> (Vec<(u64, u64)>, u64) {
    let ends = |(place, row): &(Range<u64>, usize)| [(place.start, 1i64, *row), (place.end, -1, *row)];
    let mut ends: Vec<_> = stretches.iter().flat_map(ends).collect();
    ends.sort_unstable();
    let (mut of_rows, mut all) = (vec![(0, 0); rows], 0);
    let mut here: BTreeMap<usize, i64> = BTreeMap::new();
    let mut from = 0;
    for (at, step, row) in ends {
        let bytes = if here.is_empty() { 0 } else { at - from };
        all += bytes;
        for row in here.keys() {
            of_rows[*row].0 += bytes;
            of_rows[*row].1 += if here.len() == 1 { bytes } else { 0 };
        }
        let count = here.entry(row).or_default();
        *count += step;
        if *count == 0 {
            here.remove(&row);
        }
        from = at;
    }
    (of_rows, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches with their rows, and what each row has, alone, and all.
    type Case = (&'static [(Range<u64>, usize)], [(u64, u64); 2], u64);

    #[test]
    fn a_block_counts_once_in_each_row_and_in_the_sum() {
        let cases: [Case; 7] = [
            (&[], [(0, 0); 2], 0),
            (&[(0..10, 0), (20..25, 1)], [(10, 10), (5, 5)], 15),
            (&[(0..10, 0), (0..10, 0)], [(10, 10), (0, 0)], 10),
            (&[(0..10, 0), (4..20, 1)], [(10, 4), (16, 10)], 20),
            (&[(0..10, 0), (10..20, 1)], [(10, 10), (10, 10)], 20),
            (&[(0..10, 0), (10..20, 0), (5..15, 0)], [(20, 20), (0, 0)], 20),
            (&[(0..30, 0), (5..6, 1), (6..7, 1), (8..9, 0)], [(30, 28), (2, 0)], 30),
        ];
        for (stretches, rows, all) in cases {
            assert_eq!(taken(stretches, 2), (rows.to_vec(), all), "{stretches:?}");
        }
    }
}
