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
pub mod parts;
mod programs;
mod reiser4;
mod reiserfs;
mod spec;
mod squashfs;
#[cfg(test)]
mod tests;
mod tmpfs;
mod tunables;
mod udf;
mod vfat;
mod xfs;
mod zfs;
mod zfs_fuse;

use super::{Argv, Step, argv};
use feature::*;
pub(crate) use mount_options::spelled;
use mount_options::{Mounting, command, with_discard};
use oldest_kernel::Needed::{ToRead, ToWrite};
pub use parts::Variant;
use parts::{Kernel, Limits, Making, ModuleSource, Without};
use pickfs_core::plan::{MkfsOptions, Objection, Tunables};
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

/// A file system that pickfs can make: what is constant as data, what depends on the cell as functions. A driver names
/// what differs from [`Filesystem::DEFAULT`].
pub struct Filesystem {
    pub name: &'static str,
    /// One phrase for `pickfs list fs`.
    pub about: &'static str,
    pub kernel: Kernel,
    /// Programs and the Debian packages that bring them.
    pub tools: &'static [(&'static str, &'static str)],
    /// What must be there besides root, the kernel's file system and the tools.
    pub more_needs: &'static [Need],
    pub variants: &'static [Variant],
    pub without: &'static [Without],
    pub limits: Limits,
    pub features: Features,
    pub making: Making,
    pub mounting: Mounting,
    /// Programs that say what is in effect.
    pub facts: Programs,
    /// Programs that print versions of what was used.
    pub versions: Programs,
    /// What the facts contradict of the spec, besides mount options and zones.
    mismatches: fn(&FsSpec, &Facts) -> Vec<String>,
    pub free_space: Option<FreeSpace>,
    /// What must be run besides `syncfs(2)` until data are durable.
    pub commit: Option<Commit>,
    /// All of it is in memory, and gone with the unmount: no start is cold, and nothing durable.
    pub volatile: bool,
    /// Repairs it before the mount, at every boot (exit codes 0 and 1); no word where the kernel does that.
    preen: &'static [&'static str],
    /// Why a power cut cannot be tried on it.
    pub uncut: Option<&'static str>,
    pub snapshots: Option<Snapshots>,
    /// Sorted by operation.
    pub upkeep: &'static [Upkeep],
    /// What people turn of it: first of mkfs, then of mount, each sorted by name.
    pub tunables: Tunables,
}

impl Filesystem {
    pub(crate) const DEFAULT: Filesystem = Filesystem {
        name: "",
        about: "",
        kernel: Kernel::DEFAULT,
        tools: &[],
        more_needs: &[],
        variants: &[],
        without: &[],
        limits: Limits::DEFAULT,
        features: Features::DEFAULT,
        making: Making::by(|_| Vec::new()),
        mounting: Mounting::DEFAULT,
        facts: &[],
        versions: &[],
        mismatches: |_, _| Vec::new(),
        free_space: None,
        commit: None,
        volatile: false,
        preen: &[],
        uncut: None,
        snapshots: None,
        upkeep: &[],
        tunables: Tunables(""),
    };

    pub fn needs(&self) -> Vec<Need> {
        let kernel = Need::Kernel { filesystem: self.kernel_type(), hint: self.kernel.hint };
        let tools = self.tools.iter().map(|&(name, package)| Need::Program { name, package });
        [Need::Root, kernel].into_iter().chain(self.more_needs.iter().cloned()).chain(tools).collect()
    }

    /// The operation of that name, where this variant has one.
    pub(crate) fn upkeep(&self, operation: &str, variant: Option<&str>) -> Option<&'static Upkeep> {
        let is_on_disk = !self.volatile && self.making.image.is_none();
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
        self.kernel.name.unwrap_or(self.name)
    }

    pub(crate) fn variant(&self, name: Option<&str>) -> Option<&'static Variant> {
        self.variants.iter().find(|variant| Some(variant.name) == name)
    }

    /// How many devices a variant takes at least.
    pub(crate) fn least_devices(&self, variant: Option<&str>) -> usize {
        self.variant(variant).map_or(1, |variant| variant.least_devices)
    }

    /// The program that makes it, with all options; none where there is nothing to make.
    pub fn mkfs(&self, spec: &FsSpec) -> Option<Argv> {
        let words = match self.making.image {
            Some(pack) => pack(spec, &spec.mount_point()),
            None => (self.making.mkfs)(spec),
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
        let zones = zones.map(|(fact, sign)| format!("asked for {sign}, {fact} shows nothing of it"));
        let made = tunables::mismatches(self.tunables, &spec.mkfs, facts);
        mounting.into_iter().chain((self.mismatches)(spec, facts)).chain(zones).chain(made).collect()
    }

    pub(crate) fn preen(&self, spec: &FsSpec) -> Argv {
        filled(self.preen, spec)
    }

    pub(crate) fn facts(&self, spec: &FsSpec) -> Vec<(&'static str, Argv)> {
        self.facts.iter().map(|(name, words)| (*name, filled(words, spec))).collect()
    }
}

/// Options of a mount and its superblock, as mountinfo spells them.
pub(crate) type MountOptions = BTreeMap<String, Option<String>>;

/// Linux's VFS takes no larger file of any file system: include/linux/fs.h, MAX_LFS_FILESIZE.
const VFS_FILE: u64 = i64::MAX as u64;

/// For file systems whose modules Debian leaves out of its cloud kernels.
const STOCK_KERNEL: &str =
    "Debian's stock kernel has it, its cloud kernel has not: `apt-get install linux-image-amd64` and boot that";

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
