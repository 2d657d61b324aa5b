//! Where a file's bytes lie on its device, as far as the file system reports it (FIEMAP,
//! Documentation/filesystems/fiemap).

use super::ioctl;
use linux_raw_sys::ioctl::{
    FIEMAP_EXTENT_DATA_INLINE, FIEMAP_EXTENT_DATA_TAIL, FIEMAP_EXTENT_DELALLOC, FIEMAP_EXTENT_ENCODED,
    FIEMAP_EXTENT_LAST, FIEMAP_EXTENT_UNKNOWN, FIEMAP_EXTENT_UNWRITTEN, FS_IOC_FIEMAP,
};
use std::fs::File;
use std::io;

/// One stretch of a file, and of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the file's start.
    pub logical: u64,
    /// Bytes from the device's (or the pool's) start.
    pub physical: u64,
    /// Bytes of the file; on the device there are fewer where it is compressed.
    pub bytes: u64,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Block by block.
    Plain,
    /// Compressed or encrypted: it begins there; its length there is not reported.
    Encoded,
    /// Within the metadata: no block is its own.
    Inside,
    /// Allocated and never written.
    Unwritten,
    /// Not yet anywhere.
    Nowhere,
}

/// `struct fiemap_extent`, linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const AT_A_TIME: usize = 128;

/// `struct fiemap` with room for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; AT_A_TIME],
}

/// All extents of a file, in the file's order. An error where the file system does not tell
/// (EOPNOTSUPP, ENOTTY).
pub fn extents(file: &File) -> io::Result<Vec<Extent>> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let request = &mut Request {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            count: AT_A_TIME as u32,
            reserved: 0,
            extents: [RawExtent::default(); AT_A_TIME],
        };
        // SAFETY: FS_IOC_FIEMAP reads a `struct fiemap` and writes at most `count` extents behind
        // it.
        unsafe { ioctl(file, FS_IOC_FIEMAP, &raw mut *request) }?;
        let part = &request.extents[..(request.mapped as usize).min(AT_A_TIME)];
        found.extend(part.iter().map(extent));
        let Some(last) = part.last() else { return Ok(found) };
        start = last.logical.saturating_add(last.length);
        if last.flags & FIEMAP_EXTENT_LAST != 0 || last.length == 0 {
            return Ok(found);
        }
    }
}

fn extent(raw: &RawExtent) -> Extent {
    let any = |flags: u32| raw.flags & flags != 0;
    let place = if any(FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL) {
        Place::Inside
    } else if any(FIEMAP_EXTENT_DELALLOC) {
        Place::Nowhere
    } else if any(FIEMAP_EXTENT_UNWRITTEN) {
        Place::Unwritten
    } else if any(FIEMAP_EXTENT_ENCODED) {
        Place::Encoded
    } else if any(FIEMAP_EXTENT_UNKNOWN) {
        Place::Nowhere
    } else {
        Place::Plain
    };
    Extent { logical: raw.logical, physical: raw.physical, bytes: raw.length, place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::mem::{offset_of, size_of};
    use std::os::unix::fs::FileExt;

    /// As linux/fiemap.h has it.
    #[test]
    fn the_kernel_and_we_mean_the_same_bytes() {
        assert_eq!((size_of::<RawExtent>(), offset_of!(RawExtent, flags)), (56, 40));
        assert_eq!((offset_of!(Request, mapped), offset_of!(Request, extents)), (20, 32));
    }

    #[test]
    fn flags_tell_the_place() {
        for (flags, place) in [
            (FIEMAP_EXTENT_LAST, Place::Plain),
            (FIEMAP_EXTENT_ENCODED, Place::Encoded),
            (FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_ENCODED, Place::Inside),
            (FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN, Place::Nowhere),
            (FIEMAP_EXTENT_UNWRITTEN, Place::Unwritten),
            (FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_DELALLOC, Place::Nowhere),
        ] {
            assert_eq!(extent(&RawExtent { flags, ..RawExtent::default() }).place, place);
        }
    }

    #[test]
    fn a_file_with_holes_has_its_extents() {
        let mut file = tempfile::tempfile().unwrap();
        // More than one call brings.
        for at in 0..AT_A_TIME as u64 + 10 {
            file.write_all_at(&[1; 4096], at << 16).unwrap();
        }
        file.flush().and_then(|()| file.sync_all()).unwrap();
        match extents(&file) {
            Err(error) => {
                pickfs_test_support::not_run(format!("the file system of the temporary folder says: {error}"))
            }
            Ok(found) => {
                assert_eq!(found.len(), AT_A_TIME + 10);
                assert!(found.iter().zip(0..).all(|(extent, at)| (extent.logical, extent.bytes) == (at << 16, 4096)));
            }
        }
    }
}
