//! What all drivers have in common, as tables.

use super::feature::READ_ONLY;
use super::*;
use crate::stack::{sentence, undo_words};
use pickfs_core::plan::{Discard, Target};
use std::path::Path;

/// File systems that the work `image` packs, that Linux refuses, and that lack what overlayfs asks
/// for.
#[test]
fn overlayfs_has_its_upper_folder_on_most() {
    let has_none = |name: &str| find(name).is_some_and(|fs| fs.features.no_upper.is_some());
    for name in ["erofs", "exfat", "jfs", "nilfs2", "ntfs-3g", "reiserfs", "squashfs", "udf", "vfat", "zfs-fuse"] {
        assert!(has_none(name), "{name}");
    }
    for name in ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "ntfs", "ntfs3", "reiser4", "tmpfs", "xfs", "zfs"]
    {
        assert!(!has_none(name), "{name}");
    }
    assert!(ALL.iter().all(|fs| fs.making.image.is_none() || fs.features.no_upper == Some(READ_ONLY)));
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
    for fs in ALL.iter() {
        assert!(!fs.about.is_empty() && !fs.about.ends_with('.'), "{}", fs.name);
        assert!(!fs.tools.is_empty() && !fs.kernel.hint.is_empty(), "{}", fs.name);
        assert!(!fs.facts(&spec(fs, None, Discard::None)).is_empty() && !fs.versions.is_empty(), "{}", fs.name);
        assert!(fs.needs().contains(&Need::Root) && fs.limits.least >= 1 << 20, "{}", fs.name);
        assert!(find(fs.name).is_some_and(|found| found.about == fs.about));
        let mut variants: Vec<_> = fs.variants.iter().map(|v| v.name).collect();
        variants.sort();
        assert!(variants.is_sorted_by(|a, b| a < b), "{}", fs.name);
    }
}

/// A later list would take the place of an earlier one, and of pickfs's own.
#[test]
fn lists_that_mkfs_sees_once_are_joined() {
    let driver = find("ext4").unwrap();
    let given = ["-O", "^has_journal", "-m", "0", "-O", "fast_commit", "-E", "stride=4", "-E", "stripe_width=8"];
    let target = Target { mkfs: given.map(String::from).to_vec(), ..Target::default() };
    let spec = FsSpec::new(driver, &target, Path::new("/dev/DEV"), Path::new("/m"));
    assert_eq!(spec.mkfs.join(" "), "-O ^has_journal,fast_commit -m 0 -E stride=4,stripe_width=8");
    let made = driver.mkfs(&spec).unwrap().join(" ");
    let ends = "hash_seed=00000000-0000-0000-ffff-ffffffffffff,stride=4,stripe_width=8 -O ^has_journal,fast_commit -m 0 /dev/DEV";
    assert!(
        made.starts_with("mke2fs -t ext4 -q -F -E nodiscard,lazy_itable_init=0,") && made.ends_with(ends),
        "{made}"
    );
}

/// Name, mkfs that keeps the blocks, mkfs that discards them.
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
        assert_eq!(fs.mkfs(&spec(fs, None, Discard::None)).unwrap_or_default().join(" "), kept.replace("LAZY", LAZY));
        assert_eq!(
            fs.mkfs(&spec(fs, None, Discard::Fresh)).unwrap_or_default().join(" "),
            discarded.replace("LAZY", LAZY)
        );
    }
    assert_eq!(ALL.len(), MKFS.len());
}

#[test]
fn options_of_the_target_come_last_before_the_device() {
    let target = Target { mkfs: vec!["-L".into(), "x".into()], ..Target::default() };
    for fs in ALL.iter().filter(|fs| fs.name != "tmpfs") {
        let made = fs.mkfs(&FsSpec::new(fs, &target, Path::new("/dev/DEV"), Path::new("/m"))).unwrap().join(" ");
        let last = made.ends_with("/dev/DEV") || fs.making.image.is_some();
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
        assert_eq!(mount_options::with_discard(fs.mounting.no_discard, &kept).join(","), quiet);
        assert_eq!(mount_options::with_discard(fs.mounting.no_discard, &trimmed).join(","), loud);
        assert_eq!(run_after(fs, &kept), after);
    }
    assert_eq!(fs.variants.len(), VARIANTS.len());
}

fn run_after(fs: &Filesystem, spec: &FsSpec) -> String {
    fs.making.in_place.and_then(|in_place| in_place(spec)).unwrap_or_default().join(" ")
}

/// As e2freefrag of e2fsprogs 1.47 and xfs_db of xfsprogs 6.1 print them.
#[test]
fn free_space_is_read_from_what_the_tools_print() {
    let ext = "Device: /dev/loop0\nBlocksize: 4096 bytes\nTotal blocks: 65536\nFree blocks: 56814 (86.7%)\n\n\
               Min. free extent: 4 KB \nMax. free extent: 94208 KB\nAvg. free extent: 45448 KB\n\
               Num. free extent: 5\n\nHISTOGRAM OF FREE EXTENT SIZES:\n";
    let xfs = "   from      to extents  blocks    pct\n  16384   32768       4   60000 100.00\n\
               total free extents 4\ntotal free blocks 60000\naverage free extent size 15000\n";
    let extents = |name: &str, text: &str, block| find(name).unwrap().free_space.unwrap().extents(text, block);
    assert_eq!(extents("ext4", ext, 1024).unwrap(), (5.0, 45448.0 * 1024.0));
    assert_eq!(extents("xfs", xfs, 4096).unwrap(), (4.0, 15000.0 * 4096.0));
    assert_eq!(extents("ext2", "unknown: no such program", 4096), None);
}

#[test]
fn copy_on_write_is_switched_off_where_it_can_be() {
    for fs in ALL.iter() {
        let target = Target { nodatacow: true, ..Target::default() };
        let asked = FsSpec::new(fs, &target, Path::new("/dev/DEV"), Path::new("/m"));
        let after = |spec: &FsSpec| run_after(fs, spec);
        let usual = after(&FsSpec { nodatacow: false, ..asked.clone() });
        assert_eq!(fs.making.in_place.is_some(), after(&asked) != usual, "{}", fs.name);
    }
    assert!(find("btrfs").unwrap().making.in_place.is_some());
}

#[test]
fn mounts_and_unmounts_are_the_ordinary_programs() {
    for (name, option, mount, unmount) in [
        ("ext4", "noatime", "mount -t ext4 -o noatime DEV MP", "umount MP"),
        ("btrfs", "discard=async", "mount -t btrfs -o discard=async DEV MP", "umount MP"),
        ("f2fs", "noatime", "mount -t f2fs -o nodiscard,noatime DEV MP", "umount MP"),
        ("f2fs", "discard_unit=block", "mount -t f2fs -o nodiscard,discard_unit=block DEV MP", "umount MP"),
        ("f2fs", "discard", "mount -t f2fs -o discard DEV MP", "umount MP"),
        ("zfs", "noatime", "zpool import -o cachefile=none -d /dev pickfs", "zpool export pickfs"),
        // Past `mount.ntfs`, which is ntfs-3g.
        ("ntfs", "uid=1", "mount --internal-only -t ntfs -o uid=1 DEV MP", "umount MP"),
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
        assert_eq!(
            (short(fs.mount(&spec)), short(fs.mounting.unmount(&spec))),
            (mount.to_string(), unmount.to_string())
        );
    }
}

/// At a boot, and so after a power cut.
#[test]
fn what_the_kernel_does_not_repair_is_repaired_before_the_mount() {
    for (name, mkfs, preened) in [
        ("ext2", "", true),
        ("ext3", "", false),
        ("ext4", "", false),
        ("ext4", "-O ^has_journal", true),
        ("ext4", "-O extent,^has_journal -m 0", true),
        ("ext4", "-O ^has_journal -O has_journal", false),
        ("ext4", "-O none", true),
        ("ext4", "-O ^metadata_csum", false),
        ("xfs", "", false),
    ] {
        let fs = find(name).unwrap();
        let mkfs = mkfs.split_whitespace().map(String::from).collect();
        let spec = FsSpec { mkfs, ..spec(fs, None, Discard::None) };
        let words = if preened { "e2fsck -p /dev/DEV" } else { "" };
        assert_eq!(fs.preen(&spec).join(" "), words, "{name} {:?}", spec.mkfs);
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
        ("zfs-fuse", Some("raidz"), 3, "zpool create -f -o cachefile=none -m MP pickfs raidz /dev/DEV /dev/E /dev/F"),
    ] {
        let fs = find(name).unwrap();
        let spec = FsSpec { more_devices: &more, ..spec(fs, variant, Discard::None) };
        assert_eq!(fs.mkfs(&spec).unwrap().join(" "), made.replace("MP", "/run/pickfs-r/target"));
        assert!(fs.making.takes_several && fs.least_devices(variant) == least, "{made}");
    }
    let fs = find("btrfs").unwrap();
    let spec = FsSpec { more_devices: &more, ..spec(fs, None, Discard::Fresh) };
    let mount = "mount -t btrfs -o device=/dev/E,device=/dev/F /dev/DEV /run/pickfs-r/target";
    assert_eq!(fs.mount(&spec).join(" "), mount);
}

#[test]
fn data_have_the_room_that_copies_and_parities_leave() {
    for (name, variant, room) in [
        ("btrfs", None, 100),
        ("btrfs", Some("raid0"), 100),
        ("btrfs", Some("raid1"), 50),
        ("btrfs", Some("raid1c3"), 33),
        ("btrfs", Some("raid10"), 50),
        ("zfs", None, 100),
        ("zfs", Some("mirror"), 25),
        ("zfs", Some("raidz"), 70),
        ("zfs-fuse", Some("raidz2"), 50),
        ("zfs", Some("log"), 70),
    ] {
        assert_eq!(find(name).unwrap().data_bytes(variant, &[25, 25, 20, 30]), room, "{name} {variant:?}");
    }
    assert_eq!(find("xfs").unwrap().data_bytes(None, &[7]), 7);
}

#[test]
fn free_space_is_discarded_by_what_can() {
    let words = |fs: &&'static Filesystem| {
        let spec = spec(fs, None, Discard::Trim);
        let programs = fs.upkeep(TRIM.operation, None)?.programs(&spec);
        Some((fs.name, programs.concat().join(" ")))
    };
    let found: BTreeMap<_, _> = ALL.iter().filter_map(words).collect();
    for name in ["bcachefs", "erofs", "reiserfs", "squashfs", "tmpfs", "udf", "zfs-fuse"] {
        assert_eq!(found.get(name), None);
    }
    assert_eq!(found["zfs"], "zpool trim -w pickfs");
    for name in ["btrfs", "exfat", "ext4", "f2fs", "nilfs2", "ntfs-3g", "ntfs3", "vfat", "xfs"] {
        assert_eq!(found[name], "fstrim /run/pickfs-r/target");
    }
}

#[test]
fn profiles_are_read_back() {
    let wrong = |name: &str, variant: &str, fact: &str, printed: &str| {
        let fs = find(name).unwrap();
        let facts = BTreeMap::from([(fact.to_string(), printed.to_string())]);
        fs.mismatches(&spec(fs, Some(variant), Discard::None), &MountOptions::new(), &facts).len()
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
    let steps: Vec<String> = (fs.making.before)(&spec).iter().map(sentence).collect();
    assert_eq!(
        steps,
        [
            "make directory /run/pickfs-r/zfs-fuse-devices; back: remove tree /run/pickfs-r/zfs-fuse-devices",
            "run ln -sfn /dev/DEV /run/pickfs-r/zfs-fuse-devices/device; back: unmount /run/pickfs-r/target",
            "start zfs-fuse --no-daemon --no-kstat-mount until zpool list; back: kill PICKFS_DAEMON=pickfs",
        ]
    );
    assert_eq!(fs.commit.unwrap().words(&spec).join(" "), "zfs set pickfs:commit=1 pickfs");
    assert_eq!(undo_words(&fs.mounting.undo(&spec)), "export pool pickfs");
}
