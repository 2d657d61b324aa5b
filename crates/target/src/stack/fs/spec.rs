//! The file system that a cell asks for, and the words of programs that depend on it.

use super::Filesystem;
use super::feature::FsState;
use crate::stack::data::Programs;
use crate::stack::{Argv, argv};
use pickfs_core::plan::{Discard, Target, join};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file system that a cell asks for.
#[derive(Clone, Debug)]
pub struct FsSpec<'a> {
    pub device: &'a Path,
    /// Further devices, for drivers that take several.
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
    /// Bytes of half of the device, for programs that make the file system so small.
    pub half: u64,
    /// Unique on this machine and short: for pools and labels.
    pub name: &'a str,
}

/// Appends words of mkfs; what they say of an option with a list is joined to the list that is
/// there.
pub(super) fn add(words: &mut Vec<String>, lists: &[&str], given: &[String]) {
    let mut given = given.iter();
    while let Some(word) = given.next() {
        match given.as_slice().first().filter(|_| lists.contains(&word.as_str())) {
            Some(list) => {
                join(words, &[word, list]);
                given.next();
            }
            None => words.push(word.clone()),
        }
    }
}

impl<'a> FsSpec<'a> {
    /// Puts the variant's options before the target's own.
    pub fn new(driver: &Filesystem, target: &Target, device: &'a Path, mount_point: &'a Path) -> FsSpec<'a> {
        let variant = driver.variant(target.variant.as_deref());
        let both = |of_variant: Option<&[&str]>, own: &[String]| {
            let first = of_variant.unwrap_or_default().iter().map(|s| s.to_string());
            first.chain(own.iter().cloned()).collect::<Vec<_>>()
        };
        let mut mkfs = Vec::new();
        add(&mut mkfs, driver.making.lists, &both(variant.map(|v| v.mkfs), &target.mkfs));
        FsSpec {
            device,
            more_devices: &[],
            mount_point,
            mkfs,
            mount: both(variant.map(|v| v.mount), &target.mount),
            variant: variant.map(|v| v.name),
            nodatacow: target.nodatacow,
            discard: target.discard != Discard::None,
            seed: 0,
            half: 0,
            name: "pickfs",
        }
    }

    pub(crate) fn device(&self) -> String {
        self.device.display().to_string()
    }

    /// The same without the last of its devices.
    pub(crate) fn degraded(&self) -> FsSpec<'a> {
        let mount = self.mount.iter().cloned().chain(["degraded".to_string()]).collect();
        let more_devices = self.more_devices.split_last().map(|(_, others)| others).unwrap_or_default();
        FsSpec { mount, more_devices, ..self.clone() }
    }

    /// All devices, as words of a command.
    pub(crate) fn devices(&self) -> Vec<String> {
        let more = self.more_devices.iter().map(|device| device.display().to_string());
        std::iter::once(self.device()).chain(more).collect()
    }

    pub(crate) fn mount_point(&self) -> String {
        self.mount_point.display().to_string()
    }

    /// What it is before anything of it was read back.
    pub fn state<'s>(&'s self, facts: &'s Facts) -> FsState<'s> {
        let FsSpec { mkfs, mount, variant, nodatacow, .. } = self;
        FsState { mkfs, mount, variant: *variant, nodatacow: *nodatacow, facts }
    }
}

/// What programs printed, by name.
pub(crate) type Facts = BTreeMap<String, String>;

pub(super) const MOUNT_POINT: &str = "{mount point}";

/// Each of them as words of a command, for programs that need nothing of a cell.
pub(crate) fn argvs(programs: Programs) -> Vec<(&'static str, Argv)> {
    programs.iter().map(|(name, words)| (*name, argv(*words))).collect()
}

/// The words of a program with what is the cell's: half of the device as in `2048K`, and in sectors
/// of 512 bytes.
pub(super) fn filled(words: &[&str], spec: &FsSpec) -> Argv {
    let devices = spec.devices();
    let fillings = [
        ("{device}", spec.device()),
        (MOUNT_POINT, spec.mount_point()),
        ("{name}", spec.name.to_string()),
        ("{last}", devices.last().cloned().unwrap_or_default()),
        ("{count}", devices.len().to_string()),
        ("{half}", format!("{}K", spec.half >> 10)),
        ("{half in sectors}", (spec.half >> 9).to_string()),
        ("{variant}", spec.variant.unwrap_or_default().to_string()),
    ];
    let fill = |word: &&str| fillings.iter().fold(word.to_string(), |word, (name, value)| word.replace(name, value));
    words.iter().map(fill).collect()
}
