//! File system drivers, one file each, in one sorted list.
//!
//! A driver says how its file system is made, mounted, made durable, unmounted and read back. It must not know what
//! lies below the device it is handed, nor what work is done on top. To add one: copy the nearest file, add its line
//! to `ALL`; `pickfs list fs`, the plan check and the tests find it there.

mod bcachefs;
mod btrfs;
mod ext2;
mod ext3;
mod ext4;
mod f2fs;
pub mod feature;
mod jfs;
mod nilfs2;
mod reiser4;
mod reiserfs;
mod xfs;
mod zfs;
mod zfs_fuse;

use super::{Argv, Step, argv};
use crate::journal::Undo;
use crate::need::Need;
use crate::plan::{Objection, Target};
use feature::Found;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every driver, sorted by name.
pub const ALL: &[&dyn Filesystem] = &[
    &bcachefs::Bcachefs,
    &btrfs::Btrfs,
    &ext2::Ext2,
    &ext3::Ext3,
    &ext4::Ext4,
    &f2fs::F2fs,
    &jfs::Jfs,
    &nilfs2::Nilfs2,
    &reiser4::Reiser4,
    &reiserfs::Reiserfs,
    &xfs::Xfs,
    &zfs::Zfs,
    &zfs_fuse::ZfsFuse,
];

/// A named set of options.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    pub about: &'static str,
    pub mkfs: &'static [&'static str],
    pub mount: &'static [&'static str],
}

/// What a driver is told about the cell.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    pub device: &'a Path,
    /// Those beside it, for drivers that take several.
    pub more_devices: &'a [PathBuf],
    pub mount_point: &'a Path,
    /// Options for mkfs: the variant's, then the target's.
    pub mkfs: Vec<String>,
    /// Mount options: the variant's, then the target's.
    pub mount: Vec<String>,
    /// The chosen variant, for drivers where options do not say it all.
    pub variant: Option<&'static str>,
    /// Files are to be written in place.
    pub nodatacow: bool,
    /// False: neither mkfs nor the mounted file system may discard blocks.
    pub discard: bool,
    /// The round's seed, for hash seeds and the like.
    pub seed: u64,
    /// Unique on this machine and short: for pools and labels.
    pub name: &'a str,
}

impl<'a> Wish<'a> {
    /// Puts the variant's options before the target's own.
    pub fn new(driver: &dyn Filesystem, target: &Target, device: &'a Path, mount_point: &'a Path) -> Wish<'a> {
        let variant = driver.variants().iter().find(|v| Some(v.name) == target.variant.as_deref());
        let both = |of_variant: Option<&[&str]>, own: &[String]| {
            let first = of_variant.unwrap_or_default().iter().map(|s| s.to_string());
            first.chain(own.iter().cloned()).collect::<Vec<_>>()
        };
        Wish {
            device,
            more_devices: &[],
            mount_point,
            mkfs: both(variant.map(|v| v.mkfs), &target.mkfs),
            mount: both(variant.map(|v| v.mount), &target.mount),
            variant: variant.map(|v| v.name),
            nodatacow: target.nodatacow,
            discard: target.discard != crate::plan::Discard::None,
            seed: 0,
            name: "pickfs",
        }
    }

    pub fn device(&self) -> String {
        self.device.display().to_string()
    }

    /// All of them, as words of a command.
    pub fn devices(&self) -> Vec<String> {
        let more = self.more_devices.iter().map(|device| device.display().to_string());
        std::iter::once(self.device()).chain(more).collect()
    }

    pub fn mount_point(&self) -> String {
        self.mount_point.display().to_string()
    }
}

/// A file system that pickfs can make.
pub trait Filesystem: Sync {
    fn name(&self) -> &'static str;
    /// One sentence for `pickfs list fs`.
    fn about(&self) -> &'static str;
    /// The program that makes it, with all options.
    fn mkfs(&self, wish: &Wish) -> Argv;

    /// What must be there; by default root, the kernel's file system of that name and [`Filesystem::tools`].
    fn needs(&self) -> Vec<Need> {
        let kernel = Need::Kernel { filesystem: self.kernel_type(), hint: self.hint() };
        [Need::Root, kernel].into_iter().chain(programs(self.tools())).collect()
    }

    /// Programs and the Debian packages that bring them.
    fn tools(&self) -> &'static [(&'static str, &'static str)];

    /// What to do when the kernel lacks it.
    fn hint(&self) -> &'static str {
        "nearly every kernel has it; load its module, or run on Debian's stock kernel (linux-image-amd64)"
    }

    /// As `/proc/filesystems` and `mount -t` spell it.
    fn kernel_type(&self) -> &'static str {
        self.name()
    }

    /// Debian's package with the source of its kernel modules, where Debian ships none compiled: guests get theirs of it.
    fn module_source(&self) -> Option<&'static str> {
        None
    }

    /// Bytes that an inode takes at least on disk, where compressed metadata make that less than on any other.
    fn least_inode(&self) -> Option<u64> {
        None
    }

    /// A program that lists the free space of the device, for how it is cut up; it only reads.
    fn free_space(&self, _wish: &Wish) -> Option<Argv> {
        None
    }

    fn variants(&self) -> &'static [Variant] {
        &[]
    }

    /// Copy on write can be switched off for data, and [`Filesystem::after_first_mount`] does it.
    fn takes_nodatacow(&self) -> bool {
        false
    }

    /// Bytes of the smallest device that mkfs takes.
    fn minimum_size(&self) -> u64 {
        16 << 20
    }

    /// Bytes of the largest file that is documented, with the usual blocks of 4 KiB on a machine of 64 bits; `None` where
    /// nothing is.
    fn largest_file(&self) -> Option<u64> {
        None
    }

    /// Bytes of the largest device, or devices together, that are documented, with blocks of 4 KiB; `None` where nothing
    /// is. 2^64 - 1 stands for more than can be counted here.
    fn largest_volume(&self) -> Option<u64> {
        None
    }

    /// The mount option that stops discards which the mounted file system would do unasked.
    fn no_discard(&self) -> Option<&'static str> {
        None
    }

    /// Steps before mkfs, such as starting a daemon.
    fn before(&self, _wish: &Wish) -> Vec<Step> {
        Vec::new()
    }

    /// Brings the made file system to the mount point. Run again after each [`Filesystem::unmount`].
    fn mount(&self, wish: &Wish) -> Argv {
        mount_with(self.kernel_type(), &mount_options(self.no_discard(), wish), wish)
    }

    /// Programs run once after the first mount, such as setting an attribute on the empty root.
    fn after_first_mount(&self, _wish: &Wish) -> Vec<Argv> {
        Vec::new()
    }

    fn unmount(&self, wish: &Wish) -> Argv {
        argv(["umount".to_string(), wish.mount_point()])
    }

    /// Takes back whatever mkfs and mount left, when [`Filesystem::unmount`] never ran.
    fn undo(&self, wish: &Wish) -> Undo {
        Undo::Unmount(wish.mount_point.into())
    }

    /// True where mkfs leaves the file system mounted (a ZFS pool).
    fn mkfs_mounts(&self) -> bool {
        false
    }

    /// True where mkfs makes one file system of several devices.
    fn takes_several(&self) -> bool {
        false
    }

    /// How many devices a variant takes at least.
    fn least_devices(&self, _variant: Option<&str>) -> usize {
        1
    }

    /// What the facts contradict of what the wish asked for, beside mount options.
    fn mismatches(&self, _wish: &Wish, _facts: &BTreeMap<String, String>) -> Vec<String> {
        Vec::new()
    }

    /// What must be run beside `syncfs(2)` until data are durable.
    fn commit(&self, _wish: &Wish) -> Option<Argv> {
        None
    }

    /// Programs whose output says what is in effect, with a name for each.
    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)>;

    /// Programs that print versions of what was used.
    fn versions(&self) -> Vec<(&'static str, Argv)> {
        Vec::new()
    }

    /// What users can have of it as its mkfs makes it by itself, sorted; names of [`feature::FEATURES`].
    fn features(&self) -> &'static [&'static str] {
        &[]
    }

    /// What options, or newer versions of mkfs, bring besides; sorted.
    fn more_features(&self) -> &'static [&'static str] {
        &[]
    }

    /// Those of one that stands: options take some away and bring others.
    fn features_in_effect(&self, _found: &Found) -> Vec<&'static str> {
        self.features().to_vec()
    }

    /// Mount options, as given or as in effect, after which a crash may take more than with the default. What only
    /// concerns data that nobody synced, such as `lazytime`, does not count: a sync writes it all the same.
    fn weakens(&self, option: &str) -> bool {
        matches!(option, "nobarrier" | "barrier=0")
    }
}

/// Linux's VFS takes no larger file of any file system: include/linux/fs.h, MAX_LFS_FILESIZE.
const VFS_FILE: u64 = i64::MAX as u64;

/// For file systems whose modules Debian leaves out of its cloud kernels.
const STOCK_KERNEL: &str =
    "Debian's stock kernel has it, its cloud kernel has not: `apt-get install linux-image-amd64` and boot that";

/// A mkfs line: the driver's words, the wish's options, the devices.
fn make(words: &[&str], wish: &Wish) -> Argv {
    let own = words.iter().map(|word| word.to_string());
    own.chain(wish.mkfs.iter().cloned()).chain(wish.devices()).collect()
}

fn programs(tools: &'static [(&'static str, &'static str)]) -> impl Iterator<Item = Need> {
    tools.iter().map(|&(name, package)| Need::Program { name, package })
}

fn mount_with(kind: &str, options: &[String], wish: &Wish) -> Argv {
    let mut words = argv(["mount", "-t", kind]);
    if !options.is_empty() {
        words.extend(["-o".to_string(), options.join(",")]);
    }
    words.extend([wish.device(), wish.mount_point()]);
    words
}

/// The wish's mount options, after a word against discards, unless the wish itself says something about them.
fn mount_options(no_discard: Option<&str>, wish: &Wish) -> Vec<String> {
    let said = wish.mount.iter().any(|option| option.starts_with("discard") || option == "nodiscard");
    let quiet = no_discard.filter(|_| !wish.discard && !said);
    quiet.into_iter().map(String::from).chain(wish.mount.iter().cloned()).collect()
}

/// Whether an option such as `commit=60` is over a limit.
fn number_above(option: &str, prefix: &str, limit: u64) -> bool {
    option.strip_prefix(prefix).and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number > limit)
}

/// What stands against making a file system on so many devices.
pub fn objection_to_devices(driver: &dyn Filesystem, variant: Option<&str>, there: usize) -> Option<Objection> {
    let (name, least) = (driver.name(), driver.least_devices(variant));
    if there > 1 && !driver.takes_several() {
        let message = format!("{name} is made on one device, and {there} come to it");
        let remedy = "put what joins them below it, such as `layers = [\"md\"]`, or give the backing one";
        return Some(Objection::new("fs", message, remedy));
    }
    let message = || format!("{name} {} needs {least} devices, and {there} come to it", variant.unwrap_or_default());
    let remedy = "give the backing more `disks`, or take another variant";
    (there < least).then(|| Objection::new("variant", message(), remedy))
}

/// The driver of that name.
pub fn find(name: &str) -> Option<&'static dyn Filesystem> {
    ALL.iter().copied().find(|fs| fs.name() == name)
}

/// The driver of what the kernel shows as mounted. One that lies behind FUSE cannot be told from its type.
pub fn of_kernel(kind: &str) -> Option<&'static dyn Filesystem> {
    ALL.iter().copied().find(|fs| fs.kernel_type() == kind).filter(|fs| fs.name() == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Discard;
    use crate::stack::sentence;

    /// What the programs of Debian 12 really printed in a guest.
    fn printed(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/layers");
        std::fs::read_to_string(Path::new(folder).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn wish<'a>(fs: &dyn Filesystem, variant: Option<&str>, discard: Discard) -> Wish<'a> {
        let target = Target { variant: variant.map(String::from), discard, ..Target::default() };
        Wish::new(fs, &target, Path::new("/dev/DEV"), Path::new("/run/pickfs-r/target"))
    }

    #[test]
    fn the_list_is_sorted_unique_and_described() {
        assert!(ALL.is_sorted_by(|a, b| a.name() < b.name()));
        for fs in ALL {
            assert!(!fs.about().is_empty() && !fs.about().ends_with('.'), "{}", fs.name());
            assert!(!fs.tools().is_empty() && !fs.hint().is_empty(), "{}", fs.name());
            assert!(
                !fs.facts(&wish(*fs, None, Discard::None)).is_empty() && !fs.versions().is_empty(),
                "{}",
                fs.name()
            );
            assert!(fs.needs().contains(&Need::Root) && fs.minimum_size() >= 1 << 20, "{}", fs.name());
            assert!(find(fs.name()).is_some_and(|found| found.about() == fs.about()));
            let mut variants: Vec<_> = fs.variants().iter().map(|v| v.name).collect();
            variants.sort();
            assert!(variants.is_sorted_by(|a, b| a < b), "{}", fs.name());
        }
    }

    /// Name, mkfs that leaves the blocks as they are, mkfs that discards them.
    const MKFS: &[(&str, &str, &str)] = &[
        ("bcachefs", "bcachefs format --force --quiet /dev/DEV", "bcachefs format --force --quiet /dev/DEV"),
        ("btrfs", "mkfs.btrfs -f -q -K /dev/DEV", "mkfs.btrfs -f -q /dev/DEV"),
        ("ext2", "mke2fs -t ext2 -q -F -E nodiscard,LAZY /dev/DEV", "mke2fs -t ext2 -q -F -E discard,LAZY /dev/DEV"),
        ("ext3", "mke2fs -t ext3 -q -F -E nodiscard,LAZY /dev/DEV", "mke2fs -t ext3 -q -F -E discard,LAZY /dev/DEV"),
        ("ext4", "mke2fs -t ext4 -q -F -E nodiscard,LAZY /dev/DEV", "mke2fs -t ext4 -q -F -E discard,LAZY /dev/DEV"),
        ("f2fs", "mkfs.f2fs -f -q -t 0 /dev/DEV", "mkfs.f2fs -f -q -t 1 /dev/DEV"),
        ("jfs", "mkfs.jfs -q /dev/DEV", "mkfs.jfs -q /dev/DEV"),
        ("nilfs2", "mkfs.nilfs2 -f -q -K /dev/DEV", "mkfs.nilfs2 -f -q /dev/DEV"),
        ("reiser4", "mkfs.reiser4 -f -y /dev/DEV", "mkfs.reiser4 -f -y -d /dev/DEV"),
        ("reiserfs", "mkfs.reiserfs -ff -q /dev/DEV", "mkfs.reiserfs -ff -q /dev/DEV"),
        ("xfs", "mkfs.xfs -f -q -K /dev/DEV", "mkfs.xfs -f -q /dev/DEV"),
        ("zfs", POOL, POOL),
        ("zfs-fuse", POOL, POOL),
    ];
    const POOL: &str = "zpool create -f -o cachefile=none -m /run/pickfs-r/target pickfs /dev/DEV";
    const LAZY: &str = "lazy_itable_init=0,lazy_journal_init=0,hash_seed=00000000-0000-0000-ffff-ffffffffffff";

    #[test]
    fn mkfs_asks_nothing_and_discards_only_when_told() {
        for (fs, &(name, kept, discarded)) in ALL.iter().zip(MKFS) {
            assert_eq!(fs.name(), name);
            assert_eq!(fs.mkfs(&wish(*fs, None, Discard::None)).join(" "), kept.replace("LAZY", LAZY));
            assert_eq!(fs.mkfs(&wish(*fs, None, Discard::Fresh)).join(" "), discarded.replace("LAZY", LAZY));
        }
        assert_eq!(ALL.len(), MKFS.len());
    }

    #[test]
    fn options_of_the_target_come_last_before_the_device() {
        let target = Target { mkfs: vec!["-L".into(), "x".into()], ..Target::default() };
        for fs in ALL {
            let made = fs.mkfs(&Wish::new(*fs, &target, Path::new("/dev/DEV"), Path::new("/m"))).join(" ");
            assert!(made.contains(" -L x ") && made.ends_with("/dev/DEV"), "{made}");
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
    ];

    #[test]
    fn variants_of_btrfs_give_their_options() {
        let fs = find("btrfs").unwrap();
        for (variant, &(name, made, quiet, loud, after)) in fs.variants().iter().zip(VARIANTS) {
            assert_eq!(variant.name, name);
            let [kept, trimmed] = [Discard::None, Discard::Trim].map(|discard| wish(fs, Some(name), discard));
            assert_eq!(kept.mkfs.join(" "), made);
            assert_eq!(mount_options(fs.no_discard(), &kept).join(","), quiet);
            assert_eq!(mount_options(fs.no_discard(), &trimmed).join(","), loud);
            assert_eq!(fs.after_first_mount(&kept).concat().join(" "), after);
        }
        assert_eq!(fs.variants().len(), VARIANTS.len());
    }

    #[test]
    fn copy_on_write_is_switched_off_where_it_can_be() {
        for fs in ALL {
            let target = Target { nodatacow: true, ..Target::default() };
            let asked = Wish::new(*fs, &target, Path::new("/dev/DEV"), Path::new("/m"));
            let after = |wish: &Wish| fs.after_first_mount(wish).concat().join(" ");
            let usual = after(&Wish { nodatacow: false, ..asked.clone() });
            assert_eq!(fs.takes_nodatacow(), after(&asked) != usual, "{}", fs.name());
        }
        assert!(find("btrfs").unwrap().takes_nodatacow());
    }

    #[test]
    fn mounts_and_unmounts_are_the_ordinary_programs() {
        for (name, option, mount, unmount) in [
            ("ext4", "noatime", "mount -t ext4 -o noatime DEV MP", "umount MP"),
            ("btrfs", "discard=async", "mount -t btrfs -o discard=async DEV MP", "umount MP"),
            ("f2fs", "noatime", "mount -t f2fs -o nodiscard,noatime DEV MP", "umount MP"),
            ("zfs", "noatime", "zpool import -o cachefile=none -d /dev pickfs", "zpool export pickfs"),
            (
                "zfs-fuse",
                "noatime",
                "zpool import -o cachefile=none -d /run/pickfs-r/zfs-fuse-devices pickfs",
                "zpool export pickfs",
            ),
        ] {
            let fs = find(name).unwrap();
            let wish = Wish { mount: vec![option.into()], ..wish(fs, None, Discard::None) };
            let short = |words: Argv| words.join(" ").replace("/dev/DEV", "DEV").replace("/run/pickfs-r/target", "MP");
            assert_eq!((short(fs.mount(&wish)), short(fs.unmount(&wish))), (mount.to_string(), unmount.to_string()));
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
            let wish = Wish { more_devices: &more, ..wish(fs, variant, Discard::None) };
            assert_eq!(fs.mkfs(&wish).join(" "), made.replace("MP", "/run/pickfs-r/target"));
            assert!(fs.takes_several() && fs.least_devices(variant) == least, "{made}");
        }
        let fs = find("btrfs").unwrap();
        let wish = Wish { more_devices: &more, ..wish(fs, None, Discard::Fresh) };
        let mount = "mount -t btrfs -o device=/dev/E,device=/dev/F /dev/DEV /run/pickfs-r/target";
        assert_eq!(fs.mount(&wish).join(" "), mount);
    }

    #[test]
    fn profiles_are_read_back() {
        let wrong = |name: &str, variant: &str, fact: &str, printed: &str| {
            let fs = find(name).unwrap();
            let facts = BTreeMap::from([(fact.to_string(), printed.to_string())]);
            fs.mismatches(&wish(fs, Some(variant), Discard::None), &facts).len()
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
    fn options_of_a_pool_are_read_back() {
        let fs = find("zfs").unwrap();
        let facts = BTreeMap::from([
            ("zpool get".to_string(), "NAME  PROPERTY  VALUE  SOURCE\npk  ashift  12  local".to_string()),
            ("zfs get".to_string(), "NAME  PROPERTY  VALUE  SOURCE\npk  xattr  sa  local".to_string()),
        ]);
        for (options, wrong) in [
            ("-o ashift=12 -O xattr=sa", 0),
            ("-o ashift=13", 1),
            ("-O xattr=on -o ashift=9", 2),
            ("-o x=1", 1),
            ("-d", 0),
        ] {
            let mkfs = options.split(' ').map(String::from).collect();
            let asked = Wish { mkfs, ..wish(fs, None, Discard::None) };
            assert_eq!(fs.mismatches(&asked, &facts).len(), wrong, "{options}");
        }
    }

    #[test]
    fn mount_options_of_a_pool_are_its_properties() {
        let fs = find("zfs").unwrap();
        let target = Target { mount: vec!["noatime".into(), "recordsize=8K".into()], ..Target::default() };
        let made = fs.mkfs(&Wish::new(fs, &target, Path::new("/dev/DEV"), Path::new("/m"))).join(" ");
        assert_eq!(made, "zpool create -f -o cachefile=none -O atime=off -O recordsize=8K -m /m pickfs /dev/DEV");
    }

    #[test]
    fn zfs_fuse_brings_its_daemon_and_takes_it_back() {
        let fs = find("zfs-fuse").unwrap();
        let wish = wish(fs, None, Discard::None);
        let steps: Vec<String> = fs.before(&wish).iter().map(sentence).collect();
        assert_eq!(
            steps,
            [
                "make directory /run/pickfs-r/zfs-fuse-devices; back: remove tree /run/pickfs-r/zfs-fuse-devices",
                "run ln -sfn /dev/DEV /run/pickfs-r/zfs-fuse-devices/device; back: unmount /run/pickfs-r/target",
                "start zfs-fuse --no-daemon --no-kstat-mount until zpool list; back: kill PICKFS_DAEMON=pickfs",
            ]
        );
        assert_eq!(fs.commit(&wish).unwrap().join(" "), "zfs set pickfs:commit=1 pickfs");
        assert_eq!(fs.undo(&wish), Undo::ExportPool("pickfs".into()));
    }

    #[test]
    fn weaker_promises_are_known() {
        for (name, weak, strong) in [
            ("bcachefs", "journal_flush_disabled journal_flush_delay=5000", "journal_flush_delay=1000 compression=lz4"),
            ("btrfs", "nobarrier commit=120", "commit=30 notreelog flushoncommit compress=zstd:1 nodatacow async"),
            ("ext2", "nobarrier", "noatime"),
            ("ext3", "barrier=0 commit=6", "barrier=1 commit=5 data=journal"),
            (
                "ext4",
                "nobarrier barrier=0 commit=30 data=writeback journal_async_commit",
                "commit=5 data=ordered lazytime",
            ),
            ("f2fs", "nobarrier fsync_mode=nobarrier checkpoint=disable:10%", "fsync_mode=posix fsync_mode=strict"),
            ("jfs", "nointegrity", "integrity"),
            ("nilfs2", "nobarrier", "order=relaxed order=strict"),
            ("reiser4", "no_write_barrier tmgr.atom_max_age=3600", "tmgr.atom_max_age=600"),
            ("reiserfs", "barrier=none nolog data=writeback commit=60", "barrier=flush notail data=ordered"),
            ("xfs", "nobarrier", "wsync logbsize=256k"),
            ("zfs", "sync=disabled", "sync=standard atime=off"),
            ("zfs-fuse", "sync=disabled", "compression=lzjb"),
        ] {
            let fs = find(name).unwrap();
            assert!(weak.split(' ').all(|option| fs.weakens(option)), "{name}: {weak}");
            assert!(!strong.split(' ').any(|option| fs.weakens(option)), "{name}: {strong}");
        }
    }
}
