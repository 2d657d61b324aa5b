//! What f2fs compression saved, file by file: `st_blocks` counts a compressed file as if it were
//! not, and the kernel says what of that was never written. No probe itself; it has what
//! [`super::compression`] reads of f2fs.
//!
//! A file's inode and the blocks of its addresses are in its figures, as in `du`'s.

use super::{Reading, state};
use pickfs_system::sys::{f2fs, file};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use walkdir::WalkDir;

/// Files by whether compression saved anything of them, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Saved {
    compressed: Bytes,
    none: Bytes,
    files: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bytes {
    stored: u64,
    /// As du counts them.
    allocated: u64,
}

/// Empty where the file system cannot compress, or when the walk meets an error.
pub(super) fn readings(root: &Path) -> Vec<Reading> {
    saved(root).ok().flatten().map(Saved::readings).unwrap_or_default()
}

/// What is below a folder of f2fs; what is dirty must have been written, as a block is saved only
/// then.
fn saved(root: &Path) -> io::Result<Option<Saved>> {
    let opened = File::open(root)?;
    if f2fs::saved_bytes(&opened)?.is_none() {
        return Ok(None);
    }
    rustix::fs::syncfs(&opened)?;
    let (mut found, mut met) = (Saved::default(), HashSet::new());
    for entry in WalkDir::new(root).same_file_system(true) {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() && (metadata.nlink() == 1 || met.insert(metadata.ino())) {
            found.add(metadata.blocks() * 512, file::stored_bytes(entry.path(), &metadata)?);
        }
    }
    Ok(Some(found))
}

impl Saved {
    fn add(&mut self, allocated: u64, stored: u64) {
        let row = if stored < allocated { &mut self.compressed } else { &mut self.none };
        row.stored += stored;
        row.allocated += allocated;
        self.files += 1;
    }

    fn readings(self) -> Vec<Reading> {
        let Saved { compressed, none, files } = self;
        let total = Bytes { stored: compressed.stored + none.stored, allocated: compressed.allocated + none.allocated };
        let rows = [("none", none), ("compressed", compressed), ("total", total)];
        let count = state("compression_files", files as f64);
        rows.into_iter().flat_map(|(name, bytes)| bytes.readings(name)).chain([count]).collect()
    }
}

impl Bytes {
    /// No two files share a block, so that what is referenced is what there is.
    fn readings(self, row: &str) -> [Reading; 3] {
        let reading = |what: &str, bytes: u64| state(format!("compression_{row}_{what}_bytes"), bytes as f64);
        [reading("disk", self.stored), reading("uncompressed", self.allocated), reading("referenced", self.allocated)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::compression::DISK_BYTES;
    use super::*;

    #[test]
    fn what_was_saved_is_in_no_row_twice() {
        let mut saved = Saved::default();
        for (allocated, stored) in [(20480, 12288), (8192, 8192), (20480, 4096), (4096, 4096)] {
            saved.add(allocated, stored);
        }
        let readings = saved.readings();
        let value = |metric: &str| readings.iter().find(|reading| reading.metric == metric).map(|found| found.value);
        let rows = [
            (DISK_BYTES, 28672.0),
            ("compression_total_uncompressed_bytes", 53248.0),
            ("compression_compressed_disk_bytes", 16384.0),
            ("compression_compressed_uncompressed_bytes", 40960.0),
            ("compression_none_disk_bytes", 12288.0),
            ("compression_none_referenced_bytes", 12288.0),
            ("compression_files", 4.0),
        ];
        for (metric, wanted) in rows {
            assert_eq!(value(metric), Some(wanted), "{metric}");
        }
    }
}
