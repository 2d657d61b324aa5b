//! What the data takes: by the file system's own account (statfs, as df shows) and by its files'
//! (stat, as du does).
//!
//! The walk stays on one file system, as `du --one-file-system`, and counts a file with several
//! names once. Its sum of blocks is what the file system says of files; what metadata, journals and
//! copies take shows in `used` only.

use super::{Probe, Reading, Subject, compression, state};
use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use walkdir::WalkDir;

pub(crate) const USED_BYTES: &str = "space_used_bytes";
const ALLOCATED_BYTES: &str = "space_allocated_bytes";
const APPARENT_BYTES: &str = "space_apparent_bytes";
const ENTRIES: &str = "space_entries";

/// What files take on the file system under test, as far as read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Occupied {
    /// On the device, where compression was seen: compressed. `None` where it may be and was not
    /// seen.
    pub stored_bytes: Option<f64>,
    /// That they hold.
    pub apparent_bytes: Option<f64>,
    /// Names of all kinds.
    pub entries: Option<f64>,
}

impl Occupied {
    pub(crate) fn of(subject: &Subject, readings: &BTreeMap<String, Reading>) -> Occupied {
        let value = |metric: &str| readings.get(metric).map(|reading| reading.value);
        let allocated = || value(ALLOCATED_BYTES).filter(|_| !compression::is_uncounted(subject));
        Occupied {
            stored_bytes: value(compression::DISK_BYTES).or_else(allocated),
            apparent_bytes: value(APPARENT_BYTES),
            entries: value(ENTRIES),
        }
    }
}

/// Bytes in use, as df shows them.
pub(crate) fn used_bytes(subject: &Subject) -> Option<f64> {
    let found = rustix::fs::statvfs(&subject.mount_point).ok()?;
    Some((found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize) as f64)
}

pub(super) const PROBE: Probe = Probe {
    name: "space",
    about: "bytes used and free as df shows them, allocated and apparent as du shows them, files and entries",
    read,
    only_after_writing: true,
};

fn read(subject: &Subject) -> Vec<Reading> {
    let Ok(filesystem) = rustix::fs::statvfs(&subject.mount_point) else { return Vec::new() };
    let bytes = |blocks: u64| (blocks * filesystem.f_frsize) as f64;
    let mut readings = vec![
        state("space_total_bytes", bytes(filesystem.f_blocks)),
        state(USED_BYTES, bytes(filesystem.f_blocks.saturating_sub(filesystem.f_bfree))),
        state("space_free_bytes", bytes(filesystem.f_bavail)),
    ];
    readings.extend(Tally::of(&subject.mount_point).map(Tally::readings).into_iter().flatten());
    readings
}

/// What a walk finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    allocated_bytes: u64,
    apparent_bytes: u64,
    files: u64,
    entries: u64,
}

impl Tally {
    /// None when the walk meets an error: half a sum is none.
    fn of(root: &Path) -> Option<Tally> {
        let device = root.metadata().ok()?.dev();
        let mut tally = Tally::default();
        let mut met = HashSet::new();
        let mut walk = WalkDir::new(root).into_iter();
        while let Some(entry) = walk.next() {
            let entry = entry.ok()?;
            let metadata = entry.metadata().ok()?;
            if metadata.dev() != device {
                if metadata.is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
            tally.entries += u64::from(entry.depth() > 0);
            if metadata.is_dir() || metadata.nlink() == 1 || met.insert(metadata.ino()) {
                tally.add(&metadata);
            }
        }
        Some(tally)
    }

    /// st_blocks counts 512 bytes whatever the block size (stat(3type)).
    fn add(&mut self, metadata: &Metadata) {
        self.allocated_bytes += metadata.blocks() * 512;
        if metadata.is_file() {
            self.apparent_bytes += metadata.len();
            self.files += 1;
        }
    }

    fn readings(self) -> [Reading; 4] {
        [
            state(ALLOCATED_BYTES, self.allocated_bytes as f64),
            state(APPARENT_BYTES, self.apparent_bytes as f64),
            state("space_files", self.files as f64),
            state(ENTRIES, self.entries as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_once_and_its_names_each() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/file"), vec![1; 10_000]).unwrap();
        std::fs::hard_link(at("d/file"), at("other")).unwrap();
        std::os::unix::fs::symlink("other", at("link")).unwrap();
        std::fs::File::create(at("hole")).unwrap().set_len(1 << 20).unwrap();
        let tally = Tally::of(folder.path()).unwrap();
        assert_eq!((tally.apparent_bytes, tally.files, tally.entries), (10_000 + (1 << 20), 2, 5));
        assert!(tally.allocated_bytes < 1 << 20, "{tally:?}");
    }

    #[test]
    fn what_is_occupied_is_found_among_the_readings() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), vec![1; 10_000]).unwrap();
        let subject = Subject { mount_point: folder.path().into(), ..Subject::default() };
        let mut readings: BTreeMap<_, _> = read(&subject).into_iter().map(|r| (r.metric.clone(), r)).collect();
        let found = Occupied::of(&subject, &readings);
        assert_eq!((found.apparent_bytes, found.entries), (Some(10_000.0), Some(1.0)));
        assert!(found.stored_bytes.is_some_and(|bytes| bytes >= 10_000.0) && used_bytes(&subject).is_some());
        let compressed = state(compression::DISK_BYTES, 77.0);
        readings.insert(compressed.metric.clone(), compressed);
        assert_eq!(Occupied::of(&subject, &readings).stored_bytes, Some(77.0));
    }

    #[test]
    fn nothing_to_read_is_no_error() {
        assert_eq!(read(&Subject { mount_point: "/nowhere".into(), ..Subject::default() }), []);
    }
}
