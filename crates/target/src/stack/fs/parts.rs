//! What a driver consists of: its kernel, its limits, its variants, and how it is made.

use super::data::{size, some_size};
use super::oldest_kernel::Since;
use super::{Argv, Filesystem, FsSpec};
use crate::stack::Step;
use crate::stack::data::list;
use pickfs_core::plan::MkfsOptions;
use serde::Deserialize;

/// What brings it into the kernel.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kernel {
    /// As `/proc/filesystems` and `mount -t` spell it, where that is not the name.
    #[serde(borrow)]
    pub name: Option<&'static str>,
    /// What to do when the kernel lacks it.
    pub hint: &'static str,
    pub module_source: Option<ModuleSource>,
    /// What the names of its caches begin with (slabinfo(5)), where that is not its kernel type
    /// alone.
    #[serde(deserialize_with = "list")]
    pub slabs: &'static [&'static str],
    /// The kernels that its features need; the first row is of the file system itself.
    #[serde(deserialize_with = "list")]
    pub since: &'static [Since],
}

impl Default for Kernel {
    fn default() -> Kernel {
        let hint = "nearly every kernel has it; load its module, or run on Debian's stock kernel (linux-image-amd64)";
        Kernel { name: None, hint, module_source: None, slabs: &[], since: &[] }
    }
}

/// Debian's package with the source of kernel modules that Debian does not compile: guests compile
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct ModuleSource {
    pub package: &'static str,
    /// Made of the same source, so of the same version, and of no use without the modules.
    pub tools: &'static str,
}

/// Sizes in bytes.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The smallest device that mkfs takes.
    #[serde(deserialize_with = "size")]
    pub least: u64,
    /// The largest file that is documented, with the usual blocks of 4 KiB on a machine of 64 bits.
    #[serde(deserialize_with = "some_size")]
    pub file: Option<u64>,
    /// The same of the largest device, or devices together; 2^64 - 1 stands for more than can be
    /// counted here.
    #[serde(deserialize_with = "some_size")]
    pub volume: Option<u64>,
    /// What an inode takes at least on disk, where compressed metadata make that less than on any
    /// other.
    pub inode: Option<u64>,
    /// The end of a file takes less of the device, or less of it is read, than the whole blocks
    /// that `st_blocks` counts.
    pub packs_tails: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { least: 16 << 20, file: None, volume: None, inode: None, packs_tails: false }
    }
}

/// A named set of options.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: &'static str,
    pub about: &'static str,
    #[serde(default, deserialize_with = "list")]
    pub mkfs: &'static [&'static str],
    #[serde(default, deserialize_with = "list")]
    pub mount: &'static [&'static str],
    /// How many devices it needs.
    #[serde(default = "one")]
    pub least_devices: usize,
    /// How many devices hold no data, or parities of data; if the kind matters, the last ones.
    #[serde(default)]
    pub without_data: usize,
    /// How many of the other devices have each block of data; 0 where all have it.
    #[serde(default = "one")]
    pub copies: usize,
    /// If it writes each zone of a host-managed disk in order: a fact, and what stands in it then.
    #[serde(borrow)]
    pub zoned: Option<(&'static str, &'static str)>,
}

fn one() -> usize {
    1
}

/// What a file system can do without, and how: `pickfs why` takes it away.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// As `pickfs why` names what instructions are for.
    pub what: &'static str,
    #[serde(default, deserialize_with = "list")]
    pub mkfs: &'static [&'static str],
    #[serde(default, deserialize_with = "list")]
    pub mount: &'static [&'static str],
}

/// How it is made.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub struct Making {
    /// Its mkfs, with all options; no word where there is nothing to make.
    #[serde(deserialize_with = "list")]
    pub(super) program: &'static [&'static str],
    /// More options, where blocks must not be discarded, and where they may.
    #[serde(deserialize_with = "list")]
    pub(super) no_discard: &'static [&'static str],
    #[serde(deserialize_with = "list")]
    pub(super) discard: &'static [&'static str],
    pub options: MkfsOptions,
    /// Options of mkfs that take lists with commas and that it sees once: what is said of each is
    /// made one list.
    #[serde(deserialize_with = "list")]
    pub lists: &'static [&'static str],
    /// True where mkfs makes one file system of several devices.
    pub takes_several: bool,
    /// True where mkfs leaves the file system mounted.
    pub mounts: bool,
    /// Steps before mkfs, such as starting a daemon.
    #[serde(skip)]
    pub before: fn(&FsSpec) -> Vec<Step>,
    /// The whole line of mkfs.
    #[serde(skip)]
    pub(super) mkfs: fn(&Filesystem, &FsSpec) -> Argv,
    /// It is packed once from a folder, which the program is given, and only read from then on.
    #[serde(skip)]
    pub image: Option<fn(&FsSpec, &str) -> Argv>,
    /// Switches copy on write off for data, once after the first mount, where the spec asks for it.
    #[serde(skip)]
    pub in_place: Option<fn(&FsSpec) -> Option<Argv>>,
}

impl Default for Making {
    fn default() -> Making {
        Making {
            program: &[],
            no_discard: &[],
            discard: &[],
            options: MkfsOptions::default(),
            lists: &[],
            takes_several: false,
            mounts: false,
            before: |_| Vec::new(),
            mkfs: |driver, spec| driver.making.usual(spec),
            image: None,
            in_place: None,
        }
    }
}

impl Making {
    /// The driver's words, those of the spec, the devices.
    fn usual(&self, spec: &FsSpec) -> Argv {
        let discard = if spec.discard { self.discard } else { self.no_discard };
        let own: Argv = self.program.iter().chain(discard).map(|word| word.to_string()).collect();
        if own.is_empty() { own } else { [own, spec.mkfs.clone(), spec.devices()].concat() }
    }
}
