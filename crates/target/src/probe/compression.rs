//! What compression saved: of f2fs by file ([`super::saved`]), of btrfs by extent.
//!
//! Of btrfs it is which extents files have, compressed how, shared by whom. The figures are those
//! of [compsize](https://github.com/kilobyte/compsize) to the byte, which people know and trust.
//!
//! The table is of everything below the mount point. It needs root; else there is nothing to read.
//! What is counted, as compsize does:
//! * every name of a regular file, a hard linked one at each of its names;
//! * an extent on disk once, however many references it has, under the type of the reference that
//!   is met first (an extent may be preallocated here and written there, so the walk goes in
//!   readdir order, as compsize's);
//! * what lies inline in the metadata by the length of the item less its header;
//! * holes not at all.

use super::{Probe, Reading, Subject, saved, state};
use pickfs_system::sys::btrfs::{Extent, Place, Search};
use pickfs_system::sys::{devices, file};
use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use walkdir::{DirEntry, DirEntryExt, WalkDir};

/// Whether files may take less than du counts. On btrfs it counts them uncompressed, and what they
/// take is shown to root alone.
pub(super) fn is_uncounted(subject: &Subject) -> bool {
    let options = || devices::mount_of(&subject.mount_point.canonicalize().ok()?).ok();
    subject.filesystem == "btrfs"
        && may_compress(
            options().iter().flat_map(|mount| devices::effective_options(mount).into_keys()),
            &file::attributes(&subject.mount_point).unwrap_or_default(),
        )
}

/// What is new in a folder takes its attributes.
fn may_compress(mut options: impl Iterator<Item = String>, attributes: &[String]) -> bool {
    options.any(|name| name.starts_with("compress")) || attributes.iter().any(|name| name == file::COMPRESSED)
}

/// Bytes that all data takes on the disk, compressed or not.
pub(crate) const DISK_BYTES: &str = "compression_total_disk_bytes";

pub(super) const PROBE: Probe = Probe {
    name: "compression",
    about: "disk usage, uncompressed and referenced bytes per compression type: of extents as compsize (btrfs, root), of files (f2fs)",
    read,
    only_after_writing: true,
};

fn read(subject: &Subject) -> Vec<Reading> {
    let root = &subject.mount_point;
    match subject.filesystem.as_str() {
        "btrfs" => compression_table(root).map(|table| readings(&table)).unwrap_or_default(),
        "f2fs" => saved::readings(root),
        _ => Vec::new(),
    }
}

/// Types without bytes too: a zero is a finding, a missing row would be a question.
fn readings(table: &CompressionTable) -> Vec<Reading> {
    let rows = TYPES.iter().map(|name| (*name, table.rows.get(name).copied().unwrap_or_default()));
    let counts = [
        ("files", table.files),
        ("regular_extents", table.regular_extents),
        ("references", table.references),
        ("inline_extents", table.inline_extents),
    ];
    let counts = counts.map(|(name, count)| state(format!("compression_{name}"), count as f64));
    rows.chain([("total", table.total())]).flat_map(|(name, row)| row_readings(name, row)).chain(counts).collect()
}

fn row_readings(name: &str, row: Row) -> [Reading; 3] {
    let reading = |what: &str, bytes: u64| state(format!("compression_{name}_{what}_bytes"), bytes as f64);
    [
        reading("disk", row.disk_bytes),
        reading("uncompressed", row.uncompressed_bytes),
        reading("referenced", row.referenced_bytes),
    ]
}

/// The names of rows, in the order of the kernel's compression numbers; preallocated extents hold
/// no data yet, so they get their own row.
pub(crate) const TYPES: [&str; 5] = ["none", "zlib", "lzo", "zstd", PREALLOCATED];
const PREALLOCATED: &str = "prealloc";
const UNKNOWN: &str = "unknown";

/// What a tree takes on the disk, by compression type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompressionTable {
    /// Only types that were met; compsize prints no row whose extents are all counted under another
    /// type.
    pub rows: BTreeMap<&'static str, Row>,
    /// Names of regular files.
    pub files: u64,
    /// Different extents outside the metadata.
    pub regular_extents: u64,
    /// References to those.
    pub references: u64,
    /// Extents inside the metadata.
    pub inline_extents: u64,
}

/// One compression type's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// On the disk, one copy of each (profiles such as DUP are not counted).
    pub disk_bytes: u64,
    /// The same extents uncompressed, whole, also where a file refers to a part only.
    pub uncompressed_bytes: u64,
    /// What files refer to, shared extents once for each reference.
    pub referenced_bytes: u64,
}

impl CompressionTable {
    /// The sum of all rows.
    pub fn total(&self) -> Row {
        self.rows.values().fold(Row::default(), |sum, row| Row {
            disk_bytes: sum.disk_bytes + row.disk_bytes,
            uncompressed_bytes: sum.uncompressed_bytes + row.uncompressed_bytes,
            referenced_bytes: sum.referenced_bytes + row.referenced_bytes,
        })
    }
}

/// Accounts for the tree below `root`, subvolumes included, other mounts not. What is dirty is
/// written first, as an extent gets its place only then.
pub fn compression_table(root: &Path) -> io::Result<CompressionTable> {
    rustix::fs::syncfs(File::open(root)?)?;
    let mount = mount_of(root);
    let inside = |entry: &DirEntry| !entry.file_type().is_dir() || mount_of(entry.path()) == mount;
    let mut search = Search::new();
    let mut extents = Extents::default();
    for entry in WalkDir::new(root).into_iter().filter_entry(inside) {
        let entry = entry?;
        if entry.file_type().is_file() {
            add_file(&mut extents, &mut search, &entry)?;
        }
    }
    Ok(extents.table)
}

/// Bytes on the disk of extents outside the metadata that only subvolumes below `root` refer to,
/// and not the one that it lies in: what its snapshots hold alone, together. They would be free
/// without them.
pub fn bytes_of_subvolumes_alone(root: &Path) -> io::Result<u64> {
    rustix::fs::syncfs(File::open(root)?)?;
    let (mount, own) = (mount_of(root), root.metadata()?.dev());
    let inside = |entry: &DirEntry| !entry.file_type().is_dir() || mount_of(entry.path()) == mount;
    let mut search = Search::new();
    // By where each begins: its bytes, and whether it belongs to the root's own.
    let mut extents: HashMap<u64, (u64, bool)> = HashMap::new();
    for entry in WalkDir::new(root).into_iter().filter_entry(inside) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let file = File::open(entry.path())?;
            let is_own = file.metadata()?.dev() == own;
            search.each_extent(file.as_fd(), entry.ino(), |item| {
                if let Some(Extent { place: Place::Disk { start: start @ 1.., bytes, .. }, .. }) = Extent::parse(item) {
                    extents.entry(start).or_insert((bytes, false)).1 |= is_own;
                }
            })?;
        }
    }
    Ok(extents.values().filter(|(_, is_own)| !is_own).map(|(bytes, _)| bytes).sum())
}

/// Subvolumes have their own device numbers, so it takes the mount's id to tell them from other
/// file systems.
pub(super) fn mount_of(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    Some(stat.stx_mnt_id)
}

fn add_file(extents: &mut Extents, search: &mut Search, entry: &DirEntry) -> io::Result<()> {
    let flags = (OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(entry.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()), // just deleted
        other => other?,
    };
    extents.table.files += 1;
    search.each_extent(file.as_fd(), entry.ino(), |item| extents.add(item))
}

/// Adds up extent items; remembers which extents were met.
#[derive(Default)]
pub(crate) struct Extents {
    table: CompressionTable,
    met: HashSet<u64>,
}

impl Extents {
    /// Adds one extent item.
    fn add(&mut self, item: &[u8]) {
        match Extent::parse(item) {
            Some(Extent { compression, kind, place: Place::Inline { bytes }, ram_bytes }) => {
                self.table.inline_extents += 1;
                let row = self.table.rows.entry(type_name(compression, kind)).or_default();
                row.disk_bytes += bytes;
                row.uncompressed_bytes += ram_bytes;
                row.referenced_bytes += ram_bytes;
            }
            Some(Extent {
                compression,
                kind,
                place: Place::Disk { start: start @ 1.., bytes, referenced },
                ram_bytes,
            }) => {
                let row = self.table.rows.entry(type_name(compression, kind)).or_default();
                self.table.references += 1;
                row.referenced_bytes += referenced;
                if self.met.insert(start) {
                    self.table.regular_extents += 1;
                    row.disk_bytes += bytes;
                    row.uncompressed_bytes += ram_bytes;
                }
            }
            _ => {} // a hole starts at 0
        }
    }
}

fn type_name(compression: u8, kind: u8) -> &'static str {
    const KIND_PREALLOCATED: u8 = 2;
    match compression {
        _ if kind == KIND_PREALLOCATED => PREALLOCATED,
        0..=3 => TYPES[compression as usize],
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_three_metrics_and_there_are_four_counts() {
        let row = Row { disk_bytes: 1, uncompressed_bytes: 2, referenced_bytes: 3 };
        let table = CompressionTable { rows: [("zstd", row)].into(), files: 4, ..CompressionTable::default() };
        let readings = readings(&table);
        assert_eq!(readings.len(), 6 * 3 + 4);
        let value = |metric: &str| readings.iter().find(|r| r.metric == metric).unwrap().value;
        assert_eq!(value("compression_zstd_referenced_bytes"), 3.0);
        assert_eq!(value(DISK_BYTES), 1.0);
        assert_eq!(value("compression_lzo_disk_bytes"), 0.0);
        assert_eq!(value("compression_files"), 4.0);
    }

    #[test]
    fn other_file_systems_have_none() {
        assert_eq!(read(&Subject { filesystem: "ext4".into(), ..Subject::default() }), []);
    }

    #[test]
    fn a_mount_or_a_folder_may_compress() {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (options, attributes, expected) in [
            (&["rw", "ssd"][..], &[][..], false),
            (&["rw", "compress"], &[], true),
            (&["rw", "compress-force"], &[], true),
            (&["rw"], &["noatime", file::COMPRESSED], true),
            (&["rw"], &["noatime", file::IN_PLACE], false),
        ] {
            assert_eq!(
                may_compress(words(options).into_iter(), &words(attributes)),
                expected,
                "{options:?} {attributes:?}"
            );
        }
    }

    /// An item as the kernel lays it out: generation, ram_bytes, compression, encryption, encoding,
    /// type, then four numbers.
    fn item(compression: u8, kind: u8, ram_bytes: u64, numbers: [u64; 4]) -> Vec<u8> {
        let mut item = 7u64.to_le_bytes().to_vec();
        item.extend(ram_bytes.to_le_bytes());
        item.extend([compression, 0, 0, 0, kind]);
        item.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        item
    }

    #[test]
    fn extents_count_once_and_references_each_time() {
        let mut extents = Extents::default();
        extents.add(&item(3, 1, 131072, [1 << 20, 40960, 0, 131072]));
        extents.add(&item(3, 1, 131072, [1 << 20, 40960, 4096, 8192]));
        extents.add(&item(0, 1, 4096, [0, 0, 0, 4096])); // a hole
        extents.add(&item(0, 2, 65536, [2 << 20, 65536, 0, 65536]));
        extents.add(&item(9, 1, 4096, [3 << 20, 4096, 0, 4096]));
        let row =
            |disk_bytes, uncompressed_bytes, referenced_bytes| Row { disk_bytes, uncompressed_bytes, referenced_bytes };
        let expected = [
            ("prealloc", row(65536, 65536, 65536)),
            ("unknown", row(4096, 4096, 4096)),
            ("zstd", row(40960, 131072, 139264)),
        ];
        assert_eq!(extents.table.rows, BTreeMap::from(expected));
        assert_eq!((extents.table.regular_extents, extents.table.references), (3, 4));
        assert_eq!(extents.table.total(), row(110592, 200704, 208896));
    }

    #[test]
    fn inline_data_counts_by_the_items_length() {
        let mut extents = Extents::default();
        let mut tiny = item(2, 0, 900, [0; 4]);
        tiny.truncate(21 + 17);
        extents.add(&tiny);
        assert_eq!(extents.table.rows["lzo"], Row { disk_bytes: 17, uncompressed_bytes: 900, referenced_bytes: 900 });
        assert_eq!((extents.table.inline_extents, extents.table.regular_extents), (1, 0));
    }

    #[test]
    fn a_torn_item_is_left_out() {
        let mut extents = Extents::default();
        extents.add(&item(3, 1, 1, [1; 4])[..40]);
        extents.add(&[]);
        assert_eq!(extents.table, CompressionTable::default());
    }
}
