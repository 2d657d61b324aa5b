//! OpenZFS, and the words that zfs-fuse shares with it.
//!
//! A pool of all devices: each by itself, or by a variant. Mount options of a target are properties of its dataset, such
//! as `compression=lz4`; `noatime` is understood, so that one plan can ask it of every file system.

use super::feature::{
    CASE_FOLDING, CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, CREATION_TIME, ENCRYPTION, Found, GROW,
    METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS, SNAPSHOTS, changed,
};
use super::{Argv, Filesystem, VFS_FILE, Variant, Wish, argv};
use crate::journal::Undo;
use crate::stack::Step;
use std::collections::BTreeMap;

pub struct Zfs;

impl Filesystem for Zfs {
    fn name(&self) -> &'static str {
        "zfs"
    }

    fn about(&self) -> &'static str {
        "OpenZFS: copy on write, with checksums, snapshots, compression and its own cache"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        create(wish)
    }

    fn variants(&self) -> &'static [Variant] {
        POOLS
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn least_devices(&self, variant: Option<&str>) -> usize {
        least_devices(variant)
    }

    fn mismatches(&self, wish: &Wish, facts: &BTreeMap<String, String>) -> Vec<String> {
        let mut all = mismatches(wish, facts);
        all.extend(option_mismatches(wish, facts));
        all
    }

    /// In Debian's contrib.
    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("modprobe", "kmod"), ("zpool", "zfsutils-linux"), ("zfs", "zfsutils-linux")]
    }

    /// Nothing else loads it: `zpool` only asks for it where its service has not.
    fn before(&self, _wish: &Wish) -> Vec<Step> {
        vec![Step::run("load the kernel's module", ["modprobe", "zfs"])]
    }

    fn hint(&self) -> &'static str {
        "enable `contrib` in Debian's sources and `apt-get install zfs-dkms`"
    }

    fn module_source(&self) -> Option<&'static str> {
        Some("zfs-dkms")
    }

    /// Dnodes of 512 bytes are always compressed (zfs(4), `zfs_mdcomp_disable`): 512 that are alike were read as 33 bytes
    /// each; half of that.
    fn least_inode(&self) -> Option<u64> {
        Some(16)
    }

    fn minimum_size(&self) -> u64 {
        MINIMUM
    }

    /// 2^64 bytes by its format, of which the VFS leaves 8 EiB to a file; a pool takes 2^78 and more.
    fn largest_file(&self) -> Option<u64> {
        Some(VFS_FILE)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(u64::MAX)
    }

    fn mkfs_mounts(&self) -> bool {
        true
    }

    /// Looks in the device's own folder: `zpool create` puts a partition table on a whole disk, and then the pool is
    /// found beside the device, not on it.
    fn mount(&self, wish: &Wish) -> Argv {
        let folder = wish.device.parent().unwrap_or(wish.device);
        argv(["zpool", "import", "-o", "cachefile=none", "-d", &folder.display().to_string(), wish.name])
    }

    fn unmount(&self, wish: &Wish) -> Argv {
        export(wish)
    }

    fn undo(&self, wish: &Wish) -> Undo {
        Undo::ExportPool(wish.name.into())
    }

    /// Waits until the open transaction group is on disk; `syncfs(2)` writes the intent log only.
    fn commit(&self, wish: &Wish) -> Option<Argv> {
        Some(argv(["zpool", "sync", wish.name]))
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        let mut facts = properties(wish);
        facts.push((CLONING, argv(["cat", "/sys/module/zfs/parameters/zfs_bclone_enabled"])));
        facts
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("zfs", argv(["zfs", "version"]))]
    }

    fn features(&self) -> &'static [&'static str] {
        POOL
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CASE_FOLDING, CREATION_TIME, ENCRYPTION, REFLINKS]
    }

    /// zfsprops(7), zpool-features(7). Blocks are cloned only where the module's switch allows it too, which was off in
    /// most of 2.2 (zfs(4)).
    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let feature = |name: &str| matches!(found.property("zpool get", name), Some("enabled" | "active"));
        let cloning = found.facts.get(CLONING).is_some_and(|switch| switch.trim() == "1");
        let with = [
            (found.property("zfs get", "casesensitivity") == Some("insensitive"), CASE_FOLDING),
            (feature("feature@encryption"), ENCRYPTION),
            (feature("feature@block_cloning") && cloning, REFLINKS),
        ];
        let with: Vec<&'static str> = with.iter().filter(|(there, _)| *there).map(|(_, name)| *name).collect();
        changed(POOL, without_checksums(found), &with)
    }

    fn weakens(&self, option: &str) -> bool {
        weakens_dataset(option)
    }
}

const CLONING: &str = "zfs_bclone_enabled";

/// zpool-add(8), zpool-online(8), zfsprops(7), zfs-snapshot(8). A pool never gets smaller by less than a device.
pub(super) const POOL: &[&str] =
    &[CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, SNAPSHOTS];

/// `checksum=off` takes them from data alone (zfsprops(7)).
pub(super) fn without_checksums(found: &Found) -> &'static [&'static str] {
    if found.property("zfs get", "checksum") == Some("off") { &[CHECKSUMS] } else { &[] }
}

/// SPA_MINDEVSIZE; measured with zfs-fuse.
pub(super) const MINIMUM: u64 = 64 << 20;

/// Leaves the pool mounted at the mount point. Without a cache file, no later boot looks for it.
pub(super) fn create(wish: &Wish) -> Argv {
    let mut words = argv(["zpool", "create", "-f", "-o", "cachefile=none"]);
    words.extend(wish.mkfs.iter().cloned());
    words.extend(wish.mount.iter().flat_map(|option| ["-O".to_string(), property(option)]));
    words.extend(argv(["-m", &wish.mount_point(), wish.name]));
    words.extend(wish.variant.map(String::from));
    words.extend(wish.devices());
    words
}

fn property(option: &str) -> String {
    if option == "noatime" { "atime=off".into() } else { option.into() }
}

pub(super) fn export(wish: &Wish) -> Argv {
    argv(["zpool", "export", wish.name])
}

pub(super) fn properties(wish: &Wish) -> Vec<(&'static str, Argv)> {
    vec![
        ("zfs get", argv(["zfs", "get", "all", wish.name])),
        ("zpool get", argv(["zpool", "get", "all", wish.name])),
        ("zpool status", argv(["zpool", "status", wish.name])),
    ]
}

/// Named as `zpool create` has them before the devices.
pub(super) const POOLS: &[Variant] = &[
    Variant { name: "mirror", about: "a copy of everything on every device", mkfs: &[], mount: &[] },
    Variant { name: "raidz", about: "striped over all devices, with one parity", mkfs: &[], mount: &[] },
    Variant { name: "raidz2", about: "striped over all devices, with two parities", mkfs: &[], mount: &[] },
];

/// Of two devices, one with parity is a mirror that costs more.
pub(super) fn least_devices(variant: Option<&str>) -> usize {
    match variant {
        Some("mirror") => 2,
        Some("raidz") => 3,
        Some("raidz2") => 4,
        _ => 1,
    }
}

/// `zpool status` shows such a group as `mirror-0`, or `raidz1-0` where one parity was not counted.
pub(super) fn mismatches(wish: &Wish, facts: &BTreeMap<String, String>) -> Vec<String> {
    let Some(variant) = wish.variant else { return Vec::new() };
    let sign = if variant == "raidz" { "raidz1-".to_string() } else { format!("{variant}-") };
    let shown = facts.get("zpool status").map(String::as_str).unwrap_or_default();
    let found = shown.split_whitespace().any(|word| word.starts_with(&sign));
    let told = || format!("asked for a pool of one {variant}, `zpool status` shows none: {shown}");
    if found { Vec::new() } else { vec![told()] }
}

/// `-o ashift=12` of a pool and `-O xattr=sa` of its dataset, as `zpool create` takes them.
fn option_mismatches(wish: &Wish, facts: &BTreeMap<String, String>) -> Vec<String> {
    let shown = Found { mkfs: &[], mount: &[], variant: None, nodatacow: false, facts };
    let told = |pair: &[String]| {
        let fact = match pair[0].as_str() {
            "-o" => "zpool get",
            "-O" => "zfs get",
            _ => return None,
        };
        let (name, asked) = pair[1].split_once('=')?;
        let found = shown.property(fact, name).unwrap_or("nothing");
        (found != asked).then(|| format!("asked for {name}={asked}, `{fact}` shows {found}"))
    };
    wish.mkfs.windows(2).filter_map(told).collect()
}

/// The intent log switched off: fsync returns before anything is written (zfsprops(7)).
pub(super) fn weakens_dataset(option: &str) -> bool {
    option == "sync=disabled"
}
