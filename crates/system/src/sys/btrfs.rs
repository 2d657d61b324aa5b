//! The extent items of files on btrfs, which the kernel lists by BTRFS_IOC_TREE_SEARCH_V2, for root
//! only.

use super::ioctl;
use linux_raw_sys::btrfs::{BTRFS_EXTENT_DATA_KEY, btrfs_ioctl_search_header, btrfs_ioctl_search_key};
use linux_raw_sys::ioctl::BTRFS_IOC_TREE_SEARCH_V2;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::BorrowedFd;

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
