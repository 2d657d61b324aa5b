//! File system drivers, one file each, in one sorted list.
//!
//! A driver says how its file system is made, mounted, made durable, unmounted and read back. It must not know what
//! lies below the device it is handed, nor what work is done on top. To add one: copy the nearest file, add its line
//! to `ALL`; `pickfs list fs`, the plan check and the tests find it there.

mod bcachefs;
mod btrfs;
mod erofs;
mod exfat;
mod ext2;
mod ext3;
mod ext4;
mod f2fs;
pub mod feature;
mod jfs;
mod mount_names;
mod mount_options;
mod nilfs2;
mod ntfs;
mod ntfs3;
mod ntfs_3g;
pub(crate) mod oldest_kernel;
mod programs;
mod reiser4;
mod reiserfs;
mod spec;
mod squashfs;
mod tmpfs;
mod udf;
mod vfat;
mod xfs;
mod zfs;
mod zfs_fuse;

use super::{Argv, Step, argv};
use feature::FsState;
pub(crate) use mount_options::spelled;
use pickfs_core::journal::Undo;
use pickfs_core::plan::{MkfsOptions, Objection};
use pickfs_system::need::Need;
use programs::{ANOTHER_LAST, DEDUP, SNAPSHOT};
pub(crate) use programs::{Commit, FreeSpace, Freed, IsFree, MOUNT, Snapshots, TRIM, Upkeep};
pub use spec::FsSpec;
use spec::{COUNT, DEVICE, HALF, HALF_SECTORS, LAST, MOUNT_POINT, NAME, filled};
pub(crate) use spec::{Facts, Programs, argvs};
use std::collections::BTreeMap;

/// Every driver, sorted by name.
pub const ALL: &[&Filesystem] = &[
    &bcachefs::BCACHEFS,
    &btrfs::BTRFS,
    &erofs::EROFS,
    &exfat::EXFAT,
    &ext2::EXT2,
    &ext3::EXT3,
    &ext4::EXT4,
    &f2fs::F2FS,
    &jfs::JFS,
    &nilfs2::NILFS2,
    &ntfs::NTFS,
    &ntfs_3g::NTFS_3G,
    &ntfs3::NTFS3,
    &reiser4::REISER4,
    &reiserfs::REISERFS,
    &squashfs::SQUASHFS,
    &tmpfs::TMPFS,
    &udf::UDF,
    &vfat::VFAT,
    &xfs::XFS,
    &zfs::ZFS,
    &zfs_fuse::ZFS_FUSE,
];

/// A named set of options.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    pub about: &'static str,
    pub mkfs: &'static [&'static str],
    pub mount: &'static [&'static str],
    /// How many devices it needs.
    pub least_devices: usize,
    /// It writes each zone of a host-managed disk in order.
    pub zoned: bool,
}

impl Variant {
    const DEFAULT: Variant = Variant { name: "", about: "", mkfs: &[], mount: &[], least_devices: 1, zoned: false };
}

/// Debian's package with the source of kernel modules that Debian does not compile: guests compile it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModuleSource {
    pub package: &'static str,
    /// Made of the same source, so of the same version, and of no use without the modules.
    pub tools: &'static str,
}

/// A file system that pickfs can make: what is constant as data, what depends on the cell as functions. A driver names
/// what differs from [`Filesystem::DEFAULT`].
pub struct Filesystem {
    pub name: &'static str,
    /// One phrase for `pickfs list fs`.
    pub about: &'static str,
    /// Programs and the Debian packages that bring them.
    pub tools: &'static [(&'static str, &'static str)],
    /// What must be there besides root, the kernel's file system and the tools.
    pub more_needs: &'static [Need],
    /// What to do when the kernel lacks it.
    pub hint: &'static str,
    /// As `/proc/filesystems` and `mount -t` spell it, where that is not the name.
    pub kernel_type: Option<&'static str>,
    pub module_source: Option<ModuleSource>,
    /// Bytes that an inode takes at least on disk, where compressed metadata make that less than on any other.
    pub least_inode: Option<u64>,
    /// The end of a file takes less of the device, or less of it is read, than the whole blocks that `st_blocks` counts.
    pub packs_tails: bool,
    pub variants: &'static [Variant],
    /// Bytes of the smallest device that mkfs takes.
    pub minimum_size: u64,
    /// Bytes of the largest file that is documented, with the usual blocks of 4 KiB on a machine of 64 bits.
    pub largest_file: Option<u64>,
    /// The same of the largest device, or devices together; 2^64 - 1 stands for more than can be counted here.
    pub largest_volume: Option<u64>,
    /// The mount option that stops discards which the mounted file system would do unasked.
    pub no_discard: Option<&'static str>,
    /// True where mkfs makes one file system of several devices.
    pub takes_several: bool,
    /// True where mkfs leaves the file system mounted (a ZFS pool).
    pub mkfs_mounts: bool,
    /// What users can have of it as its mkfs makes it by itself, sorted; names of [`feature::FEATURES`].
    pub features: &'static [&'static str],
    /// What options, or newer versions of mkfs, bring besides; sorted.
    pub more_features: &'static [&'static str],
    /// What nearly all others keep of a file: [`LINKS`], [`MODES`].
    pub keeps_no: &'static [&'static str],
    /// The kernels that its features need; the first row is of the file system itself.
    pub since: &'static [oldest_kernel::Since],
    /// Why overlayfs cannot have its upper folder on it.
    pub no_upper: Option<&'static str>,
    /// All of it is in memory, and gone with the unmount: no start is cold, and nothing durable.
    pub volatile: bool,
    /// Programs that say what is in effect.
    pub facts: Programs,
    /// Programs that print versions of what was used.
    pub versions: Programs,
    pub free_space: Option<FreeSpace>,
    /// It is packed once from a folder, which the program is given, and only read from then on.
    pub image: Option<fn(&FsSpec, &str) -> Argv>,
    /// The program that makes it, with all options; no word where there is nothing to make.
    pub mkfs: fn(&FsSpec) -> Argv,
    pub mkfs_options: MkfsOptions,
    /// Names of all mount options that are documented, so that a slip is seen before anything is made; empty where no such
    /// list is kept.
    pub mount_options: &'static [&'static str],
    /// Steps before mkfs, such as starting a daemon.
    pub before: fn(&FsSpec) -> Vec<Step>,
    mount: fn(&Filesystem, &FsSpec) -> Argv,
    /// Switches copy on write off for data, once after the first mount, where the spec asks for it.
    pub in_place: Option<fn(&FsSpec) -> Option<Argv>>,
    pub unmount: fn(&FsSpec) -> Argv,
    /// Takes back whatever mkfs and mount left, when `unmount` never ran.
    pub undo: fn(&FsSpec) -> Undo,
    /// What must be run besides `syncfs(2)` until data are durable.
    pub commit: Option<Commit>,
    pub snapshots: Option<Snapshots>,
    /// Repairs it before the mount, at every boot (exit codes 0 and 1); no word where the kernel does that.
    preen: &'static [&'static str],
    /// Why a power cut cannot be tried on it.
    pub uncut: Option<&'static str>,
    /// Sorted by operation.
    pub upkeep: &'static [Upkeep],
    /// Where mount options in effect, or facts, contradict those that were asked for.
    pub mount_mismatches: fn(&[String], &MountOptions, &Facts) -> Vec<String>,
    /// What else the facts contradict of the spec.
    pub mismatches: fn(&FsSpec, &Facts) -> Vec<String>,
    /// The features of one that stands: options take some away and bring others.
    features_in_effect: fn(&Filesystem, &FsState) -> Vec<&'static str>,
    /// Mount options, as given or as in effect, after which a crash may take more than with the
    /// default. Options that only concern data without a sync, such as `lazytime`, do not count: a
    /// sync still writes it.
    pub weakens: fn(&str) -> bool,
}

impl Filesystem {
    pub(crate) const DEFAULT: Filesystem = Filesystem {
        name: "",
        about: "",
        tools: &[],
        more_needs: &[],
        hint: "nearly every kernel has it; load its module, or run on Debian's stock kernel (linux-image-amd64)",
        kernel_type: None,
        module_source: None,
        least_inode: None,
        packs_tails: false,
        variants: &[],
        minimum_size: 16 << 20,
        largest_file: None,
        largest_volume: None,
        no_discard: None,
        takes_several: false,
        mkfs_mounts: false,
        features: &[],
        more_features: &[],
        keeps_no: &[],
        since: &[],
        no_upper: None,
        volatile: false,
        facts: &[],
        versions: &[],
        free_space: None,
        image: None,
        mkfs: |_| Vec::new(),
        mkfs_options: MkfsOptions { folders: &[], programs: &[] },
        mount_options: &[],
        before: |_| Vec::new(),
        mount: |driver, spec| {
            mount_options::command(driver.kernel_type(), &mount_options::with_discard(driver.no_discard, spec), spec)
        },
        in_place: None,
        unmount: |spec| argv(["umount".to_string(), spec.mount_point()]),
        undo: |spec| Undo::Unmount(spec.mount_point.into()),
        commit: None,
        snapshots: None,
        preen: &[],
        uncut: None,
        upkeep: &[],
        mount_mismatches: |asked, shown, _| mount_options::mismatches(asked, shown),
        mismatches: |_, _| Vec::new(),
        features_in_effect: |driver, _| driver.features.to_vec(),
        weakens: |option| option == "nobarrier",
    };

    pub fn needs(&self) -> Vec<Need> {
        let kernel = Need::Kernel { filesystem: self.kernel_type(), hint: self.hint };
        let tools = self.tools.iter().map(|&(name, package)| Need::Program { name, package });
        [Need::Root, kernel].into_iter().chain(self.more_needs.iter().cloned()).chain(tools).collect()
    }

    /// The operation of that name, where this variant has one.
    pub(crate) fn upkeep(&self, operation: &str, variant: Option<&str>) -> Option<&'static Upkeep> {
        let is_on_disk = !self.volatile && self.image.is_none();
        let of_all = [(&MOUNT, is_on_disk), (&TRIM, is_on_disk), (&SNAPSHOT, self.snapshots.is_some())];
        if let Some((upkeep, _)) = of_all.into_iter().find(|(upkeep, has)| *has && upkeep.operation == operation) {
            return Some(upkeep);
        }
        let has = |upkeep: &&Upkeep| {
            upkeep.variants.is_empty() || variant.is_some_and(|variant| upkeep.variants.contains(&variant))
        };
        self.upkeep.iter().filter(has).find(|upkeep| upkeep.operation == operation)
    }

    pub(crate) fn kernel_type(&self) -> &'static str {
        self.kernel_type.unwrap_or(self.name)
    }

    pub(crate) fn variant(&self, name: Option<&str>) -> Option<&'static Variant> {
        self.variants.iter().find(|variant| Some(variant.name) == name)
    }

    /// How many devices a variant takes at least.
    pub(crate) fn least_devices(&self, variant: Option<&str>) -> usize {
        self.variant(variant).map_or(1, |variant| variant.least_devices)
    }

    /// Brings the made file system to the mount point. Run again after each unmount.
    pub(crate) fn mount(&self, spec: &FsSpec) -> Argv {
        (self.mount)(self, spec)
    }

    pub(crate) fn preen(&self, spec: &FsSpec) -> Argv {
        filled(self.preen, spec)
    }

    pub(crate) fn facts(&self, spec: &FsSpec) -> Vec<(&'static str, Argv)> {
        self.facts.iter().map(|(name, words)| (*name, filled(words, spec))).collect()
    }

    pub fn features_in_effect(&self, state: &FsState) -> Vec<&'static str> {
        (self.features_in_effect)(self, state)
    }
}

/// Options of a mount and its superblock, as mountinfo spells them.
pub(crate) type MountOptions = BTreeMap<String, Option<String>>;

/// Linux's VFS takes no larger file of any file system: include/linux/fs.h, MAX_LFS_FILESIZE.
const VFS_FILE: u64 = i64::MAX as u64;

/// For file systems whose modules Debian leaves out of its cloud kernels.
const STOCK_KERNEL: &str =
    "Debian's stock kernel has it, its cloud kernel has not: `apt-get install linux-image-amd64` and boot that";

/// What overlayfs asks of the file system with its upper folder (Documentation/filesystems/overlayfs.rst, "Upper and Lower"),
/// and of its names and its kind (ovl_dentry_weird() and ovl_make_workdir() in fs/overlayfs of Linux).
const NO_ATTRIBUTES: &str = "it has no extended attributes";
const NO_TYPES: &str = "its folders do not say of what type their entries are (d_type)";
const NAMES_DIFFER: &str = "it compares names by rules of its own";
const NO_WHITEOUTS: &str = "FUSE cannot leave a mark where a file was renamed away (RENAME_WHITEOUT)";
const READ_ONLY: &str = "it is a read-only image";

pub(crate) const LINKS: &str = "hard and symbolic links";
pub(crate) const MODES: &str = "owners and modes";

/// A mkfs line: the driver's words, `keep` where nothing may be discarded, the spec's options, the devices.
fn make(words: &[&str], keep: &[&str], spec: &FsSpec) -> Argv {
    let keep = if spec.discard { &[] } else { keep };
    let own = words.iter().chain(keep).map(|word| word.to_string());
    own.chain(spec.mkfs.iter().cloned()).chain(spec.devices()).collect()
}

/// Whether an option such as `commit=60` is over a limit.
fn number_above(option: &str, prefix: &str, limit: u64) -> bool {
    option.strip_prefix(prefix).and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number > limit)
}

/// The number behind a phrase that begins a line of what a program printed, as in `Num. free extent: 5`.
fn number(text: &str, begin: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim().strip_prefix(begin))?;
    rest.trim_start_matches(':').split_whitespace().next()?.parse().ok()
}

/// The objection to making a file system on this number of devices.
pub fn objection_to_devices(driver: &Filesystem, variant: Option<&str>, there: usize) -> Option<Objection> {
    let (name, least) = (driver.name, driver.least_devices(variant));
    if there > 1 && !driver.takes_several {
        let message = format!("{name} uses one device, but {there} are below it");
        let remedy = "put what joins them below it, such as `layers = [\"md\"]`, or give the backing one";
        return Some(Objection::new("fs", message, remedy));
    }
    let message = || format!("{name} {} needs {least} devices, but {there} are below it", variant.unwrap_or_default());
    let remedy = "give the backing more `disks`, or take another variant";
    (there < least).then(|| Objection::new("variant", message(), remedy))
}

/// The driver of that name.
pub fn find(name: &str) -> Option<&'static Filesystem> {
    ALL.iter().copied().find(|fs| fs.name == name)
}

/// The driver of what the kernel shows as mounted. One that lies behind FUSE is not known by its
/// type.
pub(crate) fn of_kernel(kind: &str) -> Option<&'static Filesystem> {
    find(kind).filter(|fs| fs.kernel_type() == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::sentence;
    use pickfs_core::plan::{Discard, Target};
    use std::path::Path;

    /// Those that the work `image` packs, those that Linux refuses, and those that lack what overlayfs asks for.
    #[test]
    fn overlayfs_has_its_upper_folder_on_most() {
        let has_none = |name: &str| find(name).is_some_and(|fs| fs.no_upper.is_some());
        for name in ["erofs", "exfat", "jfs", "nilfs2", "ntfs-3g", "reiserfs", "squashfs", "udf", "vfat", "zfs-fuse"] {
            assert!(has_none(name), "{name}");
        }
        for name in
            ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "ntfs", "ntfs3", "reiser4", "tmpfs", "xfs", "zfs"]
        {
            assert!(!has_none(name), "{name}");
        }
        assert!(ALL.iter().all(|fs| fs.image.is_none() || fs.no_upper == Some(READ_ONLY)));
    }

    /// What the programs of Debian 12 really printed in a guest.
    fn printed(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/layers");
        std::fs::read_to_string(Path::new(folder).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn spec<'a>(fs: &Filesystem, variant: Option<&str>, discard: Discard) -> FsSpec<'a> {
        let target = Target { variant: variant.map(String::from), discard, ..Target::default() };
        FsSpec::new(fs, &target, Path::new("/dev/DEV"), Path::new("/run/pickfs-r/target"))
    }

    #[test]
    fn the_list_is_sorted_unique_and_described() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
        for fs in ALL {
            assert!(!fs.about.is_empty() && !fs.about.ends_with('.'), "{}", fs.name);
            assert!(!fs.tools.is_empty() && !fs.hint.is_empty(), "{}", fs.name);
            assert!(!fs.facts(&spec(fs, None, Discard::None)).is_empty() && !fs.versions.is_empty(), "{}", fs.name);
            assert!(fs.needs().contains(&Need::Root) && fs.minimum_size >= 1 << 20, "{}", fs.name);
            assert!(find(fs.name).is_some_and(|found| found.about == fs.about));
            let mut variants: Vec<_> = fs.variants.iter().map(|v| v.name).collect();
            variants.sort();
            assert!(variants.is_sorted_by(|a, b| a < b), "{}", fs.name);
        }
    }

    /// Name, mkfs that leaves the blocks as they are, mkfs that discards them.
    const MKFS: &[(&str, &str, &str)] = &[
        ("bcachefs", "bcachefs format --force --quiet /dev/DEV", "bcachefs format --force --quiet /dev/DEV"),
        ("btrfs", "mkfs.btrfs -f -q -K /dev/DEV", "mkfs.btrfs -f -q /dev/DEV"),
        ("erofs", EROFS, EROFS),
        ("exfat", "mkfs.exfat /dev/DEV", "mkfs.exfat /dev/DEV"),
        ("ext2", "mke2fs -t ext2 -q -F -E nodiscard,LAZY /dev/DEV", "mke2fs -t ext2 -q -F -E discard,LAZY /dev/DEV"),
        ("ext3", "mke2fs -t ext3 -q -F -E nodiscard,LAZY /dev/DEV", "mke2fs -t ext3 -q -F -E discard,LAZY /dev/DEV"),
        ("ext4", "mke2fs -t ext4 -q -F -E nodiscard,LAZY /dev/DEV", "mke2fs -t ext4 -q -F -E discard,LAZY /dev/DEV"),
        ("f2fs", "mkfs.f2fs -f -q -t 0 /dev/DEV", "mkfs.f2fs -f -q -t 1 /dev/DEV"),
        ("jfs", "mkfs.jfs -q /dev/DEV", "mkfs.jfs -q /dev/DEV"),
        ("nilfs2", "mkfs.nilfs2 -f -q -K /dev/DEV", "mkfs.nilfs2 -f -q /dev/DEV"),
        ("ntfs", "mkntfs -Q -F /dev/DEV", "mkntfs -Q -F /dev/DEV"),
        ("ntfs-3g", "mkntfs -Q -F /dev/DEV", "mkntfs -Q -F /dev/DEV"),
        ("ntfs3", "mkntfs -Q -F /dev/DEV", "mkntfs -Q -F /dev/DEV"),
        ("reiser4", "mkfs.reiser4 -f -y /dev/DEV", "mkfs.reiser4 -f -y -d /dev/DEV"),
        ("reiserfs", "mkfs.reiserfs -ff -q /dev/DEV", "mkfs.reiserfs -ff -q /dev/DEV"),
        ("squashfs", SQUASHFS, SQUASHFS),
        ("tmpfs", "", ""),
        ("udf", UDF, UDF),
        ("vfat", "mkfs.fat -I /dev/DEV", "mkfs.fat -I /dev/DEV"),
        ("xfs", "mkfs.xfs -f -q -K /dev/DEV", "mkfs.xfs -f -q /dev/DEV"),
        ("zfs", POOL, POOL),
        ("zfs-fuse", POOL, POOL),
    ];
    const EROFS: &str = "mkfs.erofs --quiet /dev/DEV /run/pickfs-r/target";
    const SQUASHFS: &str = "mksquashfs /run/pickfs-r/target /dev/DEV -noappend -no-progress -quiet";
    const UDF: &str = "mkudffs --media-type=hd --uid=0 --gid=0 /dev/DEV";
    const POOL: &str = "zpool create -f -o cachefile=none -m /run/pickfs-r/target pickfs /dev/DEV";
    const LAZY: &str = "lazy_itable_init=0,lazy_journal_init=0,hash_seed=00000000-0000-0000-ffff-ffffffffffff";

    #[test]
    fn mkfs_asks_nothing_and_discards_only_when_told() {
        for (fs, &(name, kept, discarded)) in ALL.iter().zip(MKFS) {
            assert_eq!(fs.name, name);
            assert_eq!((fs.mkfs)(&spec(fs, None, Discard::None)).join(" "), kept.replace("LAZY", LAZY));
            assert_eq!((fs.mkfs)(&spec(fs, None, Discard::Fresh)).join(" "), discarded.replace("LAZY", LAZY));
        }
        assert_eq!(ALL.len(), MKFS.len());
    }

    #[test]
    fn options_of_the_target_come_last_before_the_device() {
        let target = Target { mkfs: vec!["-L".into(), "x".into()], ..Target::default() };
        for fs in ALL.iter().filter(|fs| fs.name != "tmpfs") {
            let made = (fs.mkfs)(&FsSpec::new(fs, &target, Path::new("/dev/DEV"), Path::new("/m"))).join(" ");
            let last = made.ends_with("/dev/DEV") || fs.image.is_some();
            assert!(format!("{made} ").contains(" -L x ") && last, "{made}");
        }
    }

    /// Variant, mkfs words, mount options without and with discards, what runs after the first mount.
    const VARIANTS: &[(&str, &str, &str, &str, &str)] = &[
        ("none", "", "nodiscard", "", ""),
        ("lzo", "", "nodiscard,compress=lzo", "compress=lzo", ""),
        ("zlib", "", "nodiscard,compress=zlib:3", "compress=zlib:3", ""),
        ("zstd:1", "", "nodiscard,compress=zstd:1", "compress=zstd:1", ""),
        ("zstd:3", "", "nodiscard,compress=zstd:3", "compress=zstd:3", ""),
        ("nocow", "", "nodiscard", "", "chattr +C /run/pickfs-r/target"),
        ("single", "-m single", "nodiscard", "", ""),
        ("dup", "-m dup", "nodiscard", "", ""),
        ("raid0", "-m raid1 -d raid0", "nodiscard", "", ""),
        ("raid1", "-m raid1 -d raid1", "nodiscard", "", ""),
        ("raid1c3", "-m raid1c3 -d raid1c3", "nodiscard", "", ""),
        ("raid10", "-m raid10 -d raid10", "nodiscard", "", ""),
        ("zoned", "-O zoned -m single -d single", "nodiscard", "", ""),
    ];

    #[test]
    fn variants_of_btrfs_give_their_options() {
        let fs = find("btrfs").unwrap();
        for (variant, &(name, made, quiet, loud, after)) in fs.variants.iter().zip(VARIANTS) {
            assert_eq!(variant.name, name);
            let [kept, trimmed] = [Discard::None, Discard::Trim].map(|discard| spec(fs, Some(name), discard));
            assert_eq!(kept.mkfs.join(" "), made);
            assert_eq!(mount_options::with_discard(fs.no_discard, &kept).join(","), quiet);
            assert_eq!(mount_options::with_discard(fs.no_discard, &trimmed).join(","), loud);
            assert_eq!(run_after(fs, &kept), after);
        }
        assert_eq!(fs.variants.len(), VARIANTS.len());
    }

    fn run_after(fs: &Filesystem, spec: &FsSpec) -> String {
        fs.in_place.and_then(|in_place| in_place(spec)).unwrap_or_default().join(" ")
    }

    /// As e2freefrag of e2fsprogs 1.47 and xfs_db of xfsprogs 6.1 print them.
    #[test]
    fn free_space_is_read_from_what_the_tools_print() {
        let ext = "Device: /dev/loop0\nBlocksize: 4096 bytes\nTotal blocks: 65536\nFree blocks: 56814 (86.7%)\n\n\
                   Min. free extent: 4 KB \nMax. free extent: 94208 KB\nAvg. free extent: 45448 KB\n\
                   Num. free extent: 5\n\nHISTOGRAM OF FREE EXTENT SIZES:\n";
        let xfs = "   from      to extents  blocks    pct\n  16384   32768       4   60000 100.00\n\
                   total free extents 4\ntotal free blocks 60000\naverage free extent size 15000\n";
        let extents = |name: &str, text: &str, block| (find(name).unwrap().free_space.unwrap().extents)(text, block);
        assert_eq!(extents("ext4", ext, 1024).unwrap(), (5.0, 45448.0 * 1024.0));
        assert_eq!(extents("xfs", xfs, 4096).unwrap(), (4.0, 15000.0 * 4096.0));
        assert_eq!(extents("ext2", "unknown: no such program", 4096), None);
    }

    #[test]
    fn copy_on_write_is_switched_off_where_it_can_be() {
        for fs in ALL {
            let target = Target { nodatacow: true, ..Target::default() };
            let asked = FsSpec::new(fs, &target, Path::new("/dev/DEV"), Path::new("/m"));
            let after = |spec: &FsSpec| run_after(fs, spec);
            let usual = after(&FsSpec { nodatacow: false, ..asked.clone() });
            assert_eq!(fs.in_place.is_some(), after(&asked) != usual, "{}", fs.name);
        }
        assert!(find("btrfs").unwrap().in_place.is_some());
    }

    #[test]
    fn mounts_and_unmounts_are_the_ordinary_programs() {
        for (name, option, mount, unmount) in [
            ("ext4", "noatime", "mount -t ext4 -o noatime DEV MP", "umount MP"),
            ("btrfs", "discard=async", "mount -t btrfs -o discard=async DEV MP", "umount MP"),
            ("f2fs", "noatime", "mount -t f2fs -o nodiscard,noatime DEV MP", "umount MP"),
            ("zfs", "noatime", "zpool import -o cachefile=none -d /dev pickfs", "zpool export pickfs"),
            ("ntfs-3g", "big_writes", "mount -t ntfs-3g -o permissions,big_writes DEV MP", "umount MP"),
            ("tmpfs", "size=1g", "mount -t tmpfs -o size=1g tmpfs MP", "umount MP"),
            (
                "zfs-fuse",
                "noatime",
                "zpool import -o cachefile=none -d /run/pickfs-r/zfs-fuse-devices pickfs",
                "zpool export pickfs",
            ),
        ] {
            let fs = find(name).unwrap();
            let spec = FsSpec { mount: vec![option.into()], ..spec(fs, None, Discard::None) };
            let short = |words: Argv| words.join(" ").replace("/dev/DEV", "DEV").replace("/run/pickfs-r/target", "MP");
            assert_eq!((short(fs.mount(&spec)), short((fs.unmount)(&spec))), (mount.to_string(), unmount.to_string()));
        }
    }

    #[test]
    fn several_devices_are_made_one_file_system() {
        let more = ["/dev/E".into(), "/dev/F".into()];
        for (name, variant, least, made) in [
            ("btrfs", Some("raid1"), 2, "mkfs.btrfs -f -q -K -m raid1 -d raid1 /dev/DEV /dev/E /dev/F"),
            ("btrfs", Some("raid1c3"), 3, "mkfs.btrfs -f -q -K -m raid1c3 -d raid1c3 /dev/DEV /dev/E /dev/F"),
            ("btrfs", None, 1, "mkfs.btrfs -f -q -K /dev/DEV /dev/E /dev/F"),
            ("zfs", None, 1, "zpool create -f -o cachefile=none -m MP pickfs /dev/DEV /dev/E /dev/F"),
            ("zfs", Some("mirror"), 2, "zpool create -f -o cachefile=none -m MP pickfs mirror /dev/DEV /dev/E /dev/F"),
            (
                "zfs-fuse",
                Some("raidz"),
                3,
                "zpool create -f -o cachefile=none -m MP pickfs raidz /dev/DEV /dev/E /dev/F",
            ),
        ] {
            let fs = find(name).unwrap();
            let spec = FsSpec { more_devices: &more, ..spec(fs, variant, Discard::None) };
            assert_eq!((fs.mkfs)(&spec).join(" "), made.replace("MP", "/run/pickfs-r/target"));
            assert!(fs.takes_several && fs.least_devices(variant) == least, "{made}");
        }
        let fs = find("btrfs").unwrap();
        let spec = FsSpec { more_devices: &more, ..spec(fs, None, Discard::Fresh) };
        let mount = "mount -t btrfs -o device=/dev/E,device=/dev/F /dev/DEV /run/pickfs-r/target";
        assert_eq!(fs.mount(&spec).join(" "), mount);
    }

    #[test]
    fn profiles_are_read_back() {
        let wrong = |name: &str, variant: &str, fact: &str, printed: &str| {
            let fs = find(name).unwrap();
            let facts = BTreeMap::from([(fact.to_string(), printed.to_string())]);
            (fs.mismatches)(&spec(fs, Some(variant), Discard::None), &facts).len()
        };
        let df = &printed("btrfs-df-raid1");
        for (variant, expected) in [("raid1", 0), ("raid10", 2), ("raid0", 1), ("single", 1), ("zstd:1", 0)] {
            assert_eq!(wrong("btrfs", variant, "btrfs profiles", df), expected, "{variant}");
        }
        assert_eq!(wrong("btrfs", "raid1", "btrfs profiles", ""), 2);
        let status = &printed("zpool-status-raidz");
        for (variant, expected) in [("raidz", 0), ("raidz2", 1), ("mirror", 1)] {
            assert_eq!(wrong("zfs", variant, "zpool status", status), expected, "{variant}");
        }
    }

    #[test]
    fn zfs_fuse_brings_its_daemon_and_takes_it_back() {
        let fs = find("zfs-fuse").unwrap();
        let spec = spec(fs, None, Discard::None);
        let steps: Vec<String> = (fs.before)(&spec).iter().map(sentence).collect();
        assert_eq!(
            steps,
            [
                "make directory /run/pickfs-r/zfs-fuse-devices; back: remove tree /run/pickfs-r/zfs-fuse-devices",
                "run ln -sfn /dev/DEV /run/pickfs-r/zfs-fuse-devices/device; back: unmount /run/pickfs-r/target",
                "start zfs-fuse --no-daemon --no-kstat-mount until zpool list; back: kill PICKFS_DAEMON=pickfs",
            ]
        );
        assert_eq!((fs.commit.unwrap().words)(&spec).join(" "), "zfs set pickfs:commit=1 pickfs");
        assert_eq!((fs.undo)(&spec), Undo::ExportPool("pickfs".into()));
    }
}
