//! What a driver consists of: its kernel, its limits, its variants, and how it is made.

use super::oldest_kernel::Since;
use super::{Argv, FsSpec};
use crate::stack::Step;
use pickfs_core::plan::MkfsOptions;

/// What brings it into the kernel.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// As `/proc/filesystems` and `mount -t` spell it, where that is not the name.
    pub name: Option<&'static str>,
    /// What to do when the kernel lacks it.
    pub hint: &'static str,
    pub module_source: Option<ModuleSource>,
    /// What the names of its caches begin with (slabinfo(5)), where that is not its kernel type alone.
    pub slabs: &'static [&'static str],
    /// The kernels that its features need; the first row is of the file system itself.
    pub since: &'static [Since],
}

impl Kernel {
    pub(super) const DEFAULT: Kernel = Kernel {
        name: None,
        hint: "nearly every kernel has it; load its module, or run on Debian's stock kernel (linux-image-amd64)",
        module_source: None,
        slabs: &[],
        since: &[],
    };

    pub(super) const fn with(hint: &'static str) -> Kernel {
        Kernel { hint, ..Kernel::DEFAULT }
    }
}

/// Debian's package with the source of kernel modules that Debian does not compile: guests compile it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModuleSource {
    pub package: &'static str,
    /// Made of the same source, so of the same version, and of no use without the modules.
    pub tools: &'static str,
}

/// Sizes in bytes.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The smallest device that mkfs takes.
    pub least: u64,
    /// The largest file that is documented, with the usual blocks of 4 KiB on a machine of 64 bits.
    pub file: Option<u64>,
    /// The same of the largest device, or devices together; 2^64 - 1 stands for more than can be counted here.
    pub volume: Option<u64>,
    /// What an inode takes at least on disk, where compressed metadata make that less than on any other.
    pub inode: Option<u64>,
    /// The end of a file takes less of the device, or less of it is read, than the whole blocks that `st_blocks` counts.
    pub packs_tails: bool,
}

impl Limits {
    pub(super) const DEFAULT: Limits =
        Limits { least: 16 << 20, file: None, volume: None, inode: None, packs_tails: false };
}

/// A named set of options.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    pub about: &'static str,
    pub mkfs: &'static [&'static str],
    pub mount: &'static [&'static str],
    /// How many devices it needs.
    pub least_devices: usize,
    /// If it writes each zone of a host-managed disk in order: a fact, and what stands in it then.
    pub zoned: Option<(&'static str, &'static str)>,
}

impl Variant {
    pub(super) const fn new(name: &'static str, about: &'static str) -> Variant {
        Variant { name, about, mkfs: &[], mount: &[], least_devices: 1, zoned: None }
    }

    pub(super) const fn mkfs(self, mkfs: &'static [&'static str]) -> Variant {
        Variant { mkfs, ..self }
    }

    pub(super) const fn mount(self, mount: &'static [&'static str]) -> Variant {
        Variant { mount, ..self }
    }

    pub(super) const fn devices(self, least_devices: usize) -> Variant {
        Variant { least_devices, ..self }
    }

    pub(super) const fn zoned(self, fact: &'static str, sign: &'static str) -> Variant {
        Variant { zoned: Some((fact, sign)), ..self }
    }
}

/// What a file system can do without, and how: `pickfs why` takes it away.
#[derive(Clone, Copy)]
pub struct Without {
    /// As `pickfs why` names what instructions are for.
    pub what: &'static str,
    pub mkfs: &'static [&'static str],
    pub mount: &'static [&'static str],
}

/// How it is made.
#[derive(Clone, Copy)]
pub struct Making {
    /// Steps before mkfs, such as starting a daemon.
    pub before: fn(&FsSpec) -> Vec<Step>,
    /// The program, with all options; no word where there is nothing to make.
    pub(super) mkfs: fn(&FsSpec) -> Argv,
    pub options: MkfsOptions,
    /// Options of mkfs that take lists with commas and that it sees once: what is said of each is made one list.
    pub lists: &'static [&'static str],
    /// It is packed once from a folder, which the program is given, and only read from then on.
    pub image: Option<fn(&FsSpec, &str) -> Argv>,
    /// True where mkfs makes one file system of several devices.
    pub takes_several: bool,
    /// True where mkfs leaves the file system mounted.
    pub mounts: bool,
    /// Switches copy on write off for data, once after the first mount, where the spec asks for it.
    pub in_place: Option<fn(&FsSpec) -> Option<Argv>>,
}

impl Making {
    pub(super) const fn by(mkfs: fn(&FsSpec) -> Argv) -> Making {
        let options = MkfsOptions { folders: &[], programs: &[] };
        let before = |_: &FsSpec| Vec::new();
        Making { before, mkfs, options, lists: &[], image: None, takes_several: false, mounts: false, in_place: None }
    }

    pub(super) const fn packed(pack: fn(&FsSpec, &str) -> Argv) -> Making {
        Making { image: Some(pack), ..Making::by(|_| Vec::new()) }
    }
}
