//! The extent items of files on btrfs, which the kernel lists by BTRFS_IOC_TREE_SEARCH_V2, for root
//! only.

use super::extents::{self, extents};
use super::ioctl;
use linux_raw_sys::btrfs::{
    BTRFS_EXTENT_DATA_KEY, btrfs_file_extent_item, btrfs_ioctl_search_header, btrfs_ioctl_search_key,
};
use linux_raw_sys::general::BTRFS_SUPER_MAGIC;
use linux_raw_sys::ioctl::BTRFS_IOC_TREE_SEARCH_V2;
use rustix::fs::fstatfs;
use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

/// Room for items in one call: enough for three thousand extents, so that nearly every file takes
/// one call.
const ROOM: usize = 256 << 10;
/// No item is larger than the largest node of a tree.
const LARGEST_ITEM: usize = (64 << 10) + size_of::<btrfs_ioctl_search_header>();

/// `struct btrfs_ioctl_search_args_v2` with room behind it; kept for all files.
#[repr(C)]
pub struct Search {
    key: btrfs_ioctl_search_key,
    room: u64,
    items: [u8; ROOM],
}

impl Search {
    pub fn new() -> Box<Search> {
        Box::new(Search { key: extents_of(0, 0), room: ROOM as u64, items: [0; ROOM] })
    }

    /// Calls `each` with every `btrfs_file_extent_item` of a file, by offset, as it lies in the
    /// tree.
    pub fn each_extent(&mut self, file: BorrowedFd, inode: u64, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut from = Some(0);
        while let Some(offset) = from {
            self.run(file, extents_of(inode, offset))?;
            from = self.for_items(&mut each);
        }
        Ok(())
    }

    fn run(&mut self, file: BorrowedFd, key: btrfs_ioctl_search_key) -> io::Result<()> {
        self.key = key;
        self.room = ROOM as u64;
        // SAFETY: the struct begins as the kernel's btrfs_ioctl_search_args_v2 does, and `room` is
        // the number of bytes that the kernel may write behind that; any bytes are valid there.
        unsafe { ioctl(file, BTRFS_IOC_TREE_SEARCH_V2, &raw mut *self) }
    }

    /// Goes through what a call has brought; returns where to go on when more may be there: the
    /// kernel stops at the first item that does not fit.
    fn for_items(&self, each: &mut impl FnMut(&[u8])) -> Option<u64> {
        const HEADER: usize = size_of::<btrfs_ioctl_search_header>();
        let (mut at, mut last) = (0, None);
        for _ in 0..self.key.nr_items {
            let header = self.items.get(at..at + HEADER)?;
            let length = u32::from_ne_bytes(field(header, offset_of!(btrfs_ioctl_search_header, len)));
            last = Some(u64::from_ne_bytes(field(header, offset_of!(btrfs_ioctl_search_header, offset))));
            each(self.items.get(at + HEADER..at + HEADER + length as usize)?);
            at += HEADER + length as usize;
        }
        if at + LARGEST_ITEM > ROOM { last?.checked_add(1) } else { None }
    }
}

/// An extent item, read.
pub struct Extent {
    /// By the kernel's number; 0 is none.
    pub compression: u8,
    /// By the kernel's number: inline, regular, preallocated.
    pub kind: u8,
    pub place: Place,
    pub ram_bytes: u64,
}

pub enum Place {
    Inline {
        bytes: u64,
    },
    /// A hole starts at 0.
    Disk {
        start: u64,
        bytes: u64,
        referenced: u64,
    },
}

impl Extent {
    /// The layout is the kernel's include/uapi/linux/btrfs_tree.h; numbers are little-endian.
    pub fn parse(item: &[u8]) -> Option<Extent> {
        let number = |offset: usize| Some(u64::from_le_bytes(item.get(offset..offset + 8)?.try_into().ok()?));
        let ram_bytes = number(offset_of!(btrfs_file_extent_item, ram_bytes))?;
        let compression = *item.get(offset_of!(btrfs_file_extent_item, compression))?;
        let kind = *item.get(offset_of!(btrfs_file_extent_item, type_))?;
        let header = offset_of!(btrfs_file_extent_item, disk_bytenr);
        let place = match kind {
            0 => Place::Inline { bytes: item.len().checked_sub(header)? as u64 },
            _ => Place::Disk {
                start: number(header)?,
                bytes: number(offset_of!(btrfs_file_extent_item, disk_num_bytes))?,
                referenced: number(offset_of!(btrfs_file_extent_item, num_bytes))?,
            },
        };
        Some(Extent { compression, kind, place, ram_bytes })
    }
}

/// Bytes that a durable file takes on its device, compressed, where `st_blocks` counts it
/// uncompressed; `None` on other file systems. Without root, at least: the kernel shows then which
/// extents are compressed, and not how well.
pub(super) fn stored_bytes(file: &File, found: &Metadata) -> io::Result<Option<u64>> {
    if fstatfs(file)?.f_type != i64::from(BTRFS_SUPER_MAGIC) {
        return Ok(None);
    }
    let mut stored = Stored::default();
    match Search::new().each_extent(file.as_fd(), found.ino(), |item| stored.add(item)) {
        Ok(()) => Ok(Some(stored.bytes)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Some(least_stored(&extents(file)?))),
        Err(error) => Err(error),
    }
}

/// Of the extents of one file.
#[derive(Default)]
struct Stored {
    bytes: u64,
    /// Where compressed ones start: they are read as a whole, once, for whatever part of them.
    met: HashSet<u64>,
}

impl Stored {
    fn add(&mut self, item: &[u8]) {
        self.bytes += match Extent::parse(item) {
            Some(Extent { place: Place::Inline { bytes }, .. }) => bytes,
            Some(Extent { compression: 0, place: Place::Disk { start: 1.., referenced, .. }, .. }) => referenced,
            Some(Extent { place: Place::Disk { start: start @ 1.., bytes, .. }, .. }) if self.met.insert(start) => {
                bytes
            }
            _ => 0,
        };
    }
}

/// A compressed extent holds at most 128 KiB, and takes at least a block of 4 KiB.
fn least_stored(extents: &[extents::Extent]) -> u64 {
    const MOST_COMPRESSED: u64 = 32;
    let least = |extent: &extents::Extent| match extent.place {
        extents::Place::Plain | extents::Place::Unwritten => extent.bytes,
        extents::Place::Encoded => extent.bytes / MOST_COMPRESSED,
        extents::Place::Inside | extents::Place::Nowhere => 0,
    };
    extents.iter().map(least).sum()
}

/// Bytes of a field; a header is always whole.
fn field<const N: usize>(header: &[u8], offset: usize) -> [u8; N] {
    std::array::from_fn(|i| header[offset + i])
}

/// The extents of an inode from an offset on, in the tree of the file that is asked. The key is one
/// compound number and not three filters, which is why inode and type must be single values.
fn extents_of(inode: u64, from: u64) -> btrfs_ioctl_search_key {
    btrfs_ioctl_search_key {
        tree_id: 0,
        min_objectid: inode,
        max_objectid: inode,
        min_offset: from,
        max_offset: u64::MAX,
        min_transid: 0,
        max_transid: u64::MAX,
        min_type: BTRFS_EXTENT_DATA_KEY,
        max_type: BTRFS_EXTENT_DATA_KEY,
        nr_items: u32::MAX,
        unused: 0,
        unused1: 0,
        unused2: 0,
        unused3: 0,
        unused4: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An item as the kernel lays it out: generation, ram_bytes, compression, encryption, encoding,
    /// type, then four numbers.
    fn item(compression: u8, kind: u8, numbers: [u64; 4]) -> Vec<u8> {
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        [7u64, 131_072]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .chain([compression, 0, 0, 0, kind])
            .chain(numbers)
            .collect()
    }

    #[test]
    fn compressed_extents_count_whole_and_once_and_others_by_what_is_used() {
        let mut tiny = item(3, 0, [0; 4]);
        tiny.truncate(21 + 17);
        let rows = [
            (item(3, 1, [1 << 20, 40_960, 0, 131_072]), 40_960),
            (item(3, 1, [1 << 20, 40_960, 4096, 8192]), 0),
            (item(0, 1, [2 << 20, 1 << 20, 4096, 8192]), 8192),
            (item(0, 1, [2 << 20, 1 << 20, 65_536, 4096]), 4096),
            (item(0, 1, [0, 0, 0, 4096]), 0), // a hole
            (tiny, 17),
        ];
        let mut stored = Stored::default();
        for (item, more) in rows {
            let before = stored.bytes;
            stored.add(&item);
            assert_eq!(stored.bytes - before, more);
        }
    }

    #[test]
    fn without_root_a_compressed_extent_is_at_least_a_block() {
        let extent = |place, bytes| extents::Extent { logical: 0, physical: 1, bytes, place };
        let all = [
            extent(extents::Place::Plain, 65_536),
            extent(extents::Place::Encoded, 131_072),
            extent(extents::Place::Inside, 900),
        ];
        assert_eq!(least_stored(&all), 65_536 + 4096);
    }
}
