//! File system drivers, a file of data each, in one sorted list.
//!
//! A driver says how its file system is made, mounted, made durable, unmounted and read back. It
//! must not know what lies below the device it is handed, nor what work is done on top. It is data,
//! in a TOML file, and code for what no data can say. To add one: copy the nearest file, add its
//! row to `ROWS`; `pickfs list fs`, the plan check and the tests find it there.

mod bcachefs;
mod btrfs;
mod data;
mod erofs;
mod ext4;
pub mod feature;
mod mount_options;
pub(crate) mod oldest_kernel;
pub mod parts;
mod programs;
mod spec;
mod squashfs;
#[cfg(test)]
mod tests;
mod tunables;
mod zfs;
mod zfs_fuse;

pub(crate) use super::data::Programs;
use super::data::{list, programs};
use super::{Argv, Step, argv};
use feature::*;
pub(crate) use mount_options::spelled;
use mount_options::{Mounting, command};
pub use parts::Variant;
use parts::{Kernel, Limits, Making, Without};
use pickfs_core::plan::{Objection, Tunables};
use pickfs_system::need::Need;
use programs::SNAPSHOT;
pub(crate) use programs::{Commit, FreeSpace, MOUNT, Snapshots, TRIM, Upkeep};
use serde::Deserialize;
pub use spec::FsSpec;
pub(crate) use spec::{Facts, argvs};
use spec::{MOUNT_POINT, filled};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Every driver, sorted by name: its data, what people turn of it, and the function that puts its
/// code into the data.
type Row = (&'static str, &'static str, fn(Filesystem) -> Filesystem);

const ROWS: [Row; 22] = [
    (include_str!("bcachefs.toml"), include_str!("bcachefs/tunables.toml"), bcachefs::with_code),
    (include_str!("btrfs.toml"), include_str!("btrfs/tunables.toml"), btrfs::with_code),
    (include_str!("erofs.toml"), "", erofs::with_code),
    (include_str!("exfat.toml"), "", no_code),
    (include_str!("ext2.toml"), "", ext4::with_code),
    (include_str!("ext3.toml"), "", ext4::with_code),
    (include_str!("ext4.toml"), include_str!("ext4/tunables.toml"), ext4::with_code),
    (include_str!("f2fs.toml"), include_str!("f2fs/tunables.toml"), no_code),
    (include_str!("jfs.toml"), "", no_code),
    (include_str!("nilfs2.toml"), "", no_code),
    (include_str!("ntfs.toml"), "", no_code),
    (include_str!("ntfs_3g.toml"), "", no_code),
    (include_str!("ntfs3.toml"), "", no_code),
    (include_str!("reiser4.toml"), "", no_code),
    (include_str!("reiserfs.toml"), "", no_code),
    (include_str!("squashfs.toml"), "", squashfs::with_code),
    (include_str!("tmpfs.toml"), "", no_code),
    (include_str!("udf.toml"), "", no_code),
    (include_str!("vfat.toml"), "", no_code),
    (include_str!("xfs.toml"), include_str!("xfs/tunables.toml"), no_code),
    (include_str!("zfs.toml"), include_str!("zfs/tunables.toml"), zfs::with_code),
    (include_str!("zfs_fuse.toml"), "", zfs_fuse::with_code),
];

fn no_code(data: Filesystem) -> Filesystem {
    data
}

/// Every driver, sorted by name.
pub static ALL: LazyLock<Vec<&'static Filesystem>> = LazyLock::new(|| {
    let read = |(text, tunables, with_code): Row| -> &'static Filesystem {
        let data: Filesystem = toml::from_str(text).unwrap_or_else(|error| panic!("a driver came broken: {error}"));
        Box::leak(Box::new(with_code(Filesystem { tunables: Tunables(tunables), ..data })))
    };
    ROWS.into_iter().map(read).collect()
});

/// A file system that pickfs can make: what is constant as data, what depends on the cell as
/// functions.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filesystem {
    pub name: &'static str,
    /// One phrase for `pickfs list fs`.
    pub about: &'static str,
    #[serde(default)]
    pub kernel: Kernel,
    /// Programs and the Debian packages that bring them.
    #[serde(deserialize_with = "list")]
    pub tools: &'static [(&'static str, &'static str)],
    /// What must be there in addition to root, the kernel's file system and the tools.
    #[serde(default, deserialize_with = "list")]
    pub more_needs: &'static [Need],
    #[serde(default, deserialize_with = "list")]
    pub variants: &'static [Variant],
    #[serde(default, deserialize_with = "list")]
    pub without: &'static [Without],
    pub limits: Limits,
    pub features: Features,
    #[serde(default)]
    pub making: Making,
    #[serde(default)]
    pub mounting: Mounting,
    /// Programs that say what is in effect.
    #[serde(deserialize_with = "programs")]
    pub facts: Programs,
    /// Programs that print versions of what was used.
    #[serde(deserialize_with = "programs")]
    pub versions: Programs,
    pub free_space: Option<FreeSpace>,
    /// What must be run in addition to `syncfs(2)` until data are durable.
    pub commit: Option<Commit>,
    /// The kernel's driver discards no free space when it is asked to (FITRIM), so that fstrim
    /// fails.
    #[serde(default)]
    lacks_fitrim: bool,
    /// All of it is in memory, and gone with the unmount: no start is cold, and nothing durable.
    #[serde(default)]
    pub volatile: bool,
    /// Repairs it before the mount, at every boot (exit codes 0 and 1); no word where the kernel
    /// does that.
    #[serde(default, deserialize_with = "list")]
    preen: &'static [&'static str],
    /// The feature with which the kernel repairs it itself, unless mkfs was asked to leave it out.
    #[serde(borrow)]
    preen_without: Option<&'static str>,
    /// Why a power cut cannot be tried on it.
    #[serde(borrow)]
    pub uncut: Option<&'static str>,
    pub snapshots: Option<Snapshots>,
    /// Sorted by operation.
    #[serde(default, deserialize_with = "list")]
    pub upkeep: &'static [Upkeep],
    /// What the facts contradict of the spec, apart from mount options and zones.
    #[serde(skip, default = "nothing")]
    mismatches: fn(&FsSpec, &Facts) -> Vec<String>,
    /// What people turn of it: first of mkfs, then of mount, each sorted by name.
    #[serde(skip, default = "no_tunables")]
    pub tunables: Tunables,
}

fn nothing() -> fn(&FsSpec, &Facts) -> Vec<String> {
    |_, _| Vec::new()
}

fn no_tunables() -> Tunables {
    Tunables("")
}

impl Filesystem {
    pub fn needs(&self) -> Vec<Need> {
        let kernel = Need::Kernel { filesystem: self.kernel_type(), hint: self.kernel.hint };
        let tools = self.tools.iter().map(|&(name, package)| Need::Program { name, package });
        [Need::Root, kernel].into_iter().chain(self.more_needs.iter().cloned()).chain(tools).collect()
    }

    /// The operation of that name, where this variant has one.
    pub(crate) fn upkeep(&self, operation: &str, variant: Option<&str>) -> Option<&'static Upkeep> {
        let is_on_disk = !self.volatile && self.making.image.is_none();
        let trims = is_on_disk && !self.lacks_fitrim;
        let of_all = [(&MOUNT, is_on_disk), (&TRIM, trims), (&SNAPSHOT, self.snapshots.is_some())];
        if let Some((upkeep, _)) = of_all.into_iter().find(|(upkeep, has)| *has && upkeep.operation == operation) {
            return Some(upkeep);
        }
        let has = |upkeep: &&Upkeep| {
            upkeep.variants.is_empty() || variant.is_some_and(|variant| upkeep.variants.contains(&variant))
        };
        self.upkeep.iter().filter(has).find(|upkeep| upkeep.operation == operation)
    }

    pub(crate) fn kernel_type(&self) -> &'static str {
        self.kernel.name.unwrap_or(self.name)
    }

    pub(crate) fn variant(&self, name: Option<&str>) -> Option<&'static Variant> {
        self.variants.iter().find(|variant| Some(variant.name) == name)
    }

    /// How many devices a variant takes at least.
    pub(crate) fn least_devices(&self, variant: Option<&str>) -> usize {
        self.variant(variant).map_or(1, |variant| variant.least_devices)
    }

    /// Bytes that data can take on devices of these sizes, as far as the variant decides that.
    pub fn data_bytes(&self, variant: Option<&str>, devices: &[u64]) -> u64 {
        let (without, copies) = self.variant(variant).map_or((0, 1), |variant| (variant.without_data, variant.copies));
        let with_data = &devices[..devices.len().saturating_sub(without)];
        let copies = if copies == 0 { with_data.len() } else { copies };
        with_data.iter().sum::<u64>() / copies.max(1) as u64
    }

    /// The program that makes it, with all options; none where there is nothing to make.
    pub fn mkfs(&self, spec: &FsSpec) -> Option<Argv> {
        let words = match self.making.image {
            Some(pack) => pack(spec, &spec.mount_point()),
            None => (self.making.mkfs)(self, spec),
        };
        Some(words).filter(|words| !words.is_empty())
    }

    /// Brings the made file system to the mount point. Run again after each unmount.
    pub(crate) fn mount(&self, spec: &FsSpec) -> Argv {
        (self.mounting.command)(self, spec)
    }

    /// Where mount options in effect, or facts, contradict the spec.
    pub fn mismatches(&self, spec: &FsSpec, shown: &MountOptions, facts: &Facts) -> Vec<String> {
        let mounting = (self.mounting.mismatches)(&self.mounting, &spec.mount, shown, facts);
        let zones = self.variant(spec.variant).and_then(|variant| variant.zoned);
        let zones = zones.filter(|(fact, sign)| !facts.get(*fact).is_some_and(|text| text.contains(sign)));
        let zones = zones.map(|(fact, sign)| format!("asked for {sign}, {fact} does not show it"));
        let made = tunables::mismatches(self.tunables, &spec.mkfs, facts);
        mounting.into_iter().chain((self.mismatches)(spec, facts)).chain(zones).chain(made).collect()
    }

    pub(crate) fn preen(&self, spec: &FsSpec) -> Argv {
        let lacks = |feature| spec.state(&Facts::new()).switched(feature) == Some(false);
        if self.preen_without.is_none_or(lacks) { filled(self.preen, spec) } else { Argv::new() }
    }

    pub(crate) fn facts(&self, spec: &FsSpec) -> Vec<(&'static str, Argv)> {
        self.facts.iter().map(|(name, words)| (*name, filled(words, spec))).collect()
    }
}

/// Options of a mount and its superblock, as mountinfo spells them.
pub(crate) type MountOptions = BTreeMap<String, Option<String>>;

/// The number behind a phrase that begins a line of what a program printed, as in `Num. free
/// extent: 5`.
fn number(text: &str, begin: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim().strip_prefix(begin))?;
    rest.trim_start_matches(':').split_whitespace().next()?.parse().ok()
}

/// The objection to making a file system on this number of devices.
pub fn objection_to_devices(driver: &Filesystem, variant: Option<&str>, there: usize) -> Option<Objection> {
    let (name, least) = (driver.name, driver.least_devices(variant));
    if there > 1 && !driver.making.takes_several {
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
