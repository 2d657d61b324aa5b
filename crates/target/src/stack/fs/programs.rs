//! Programs of drivers apart from mkfs and mount: what makes data durable, takes snapshots and
//! lists free space.

use super::spec::filled;
use super::{Argv, FsSpec, number};
use crate::stack::data::{commands, list};
use pickfs_system::need::Need;
use serde::Deserialize;
use std::path::PathBuf;

/// A program that lists the free space of the device, which it only reads.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreeSpace {
    #[serde(deserialize_with = "list")]
    program: &'static [&'static str],
    /// Phrases before the number of free extents and before their mean size.
    extents: &'static str,
    mean: &'static str,
    /// In bytes; without it the size is in blocks of the file system.
    unit: Option<u64>,
}

impl FreeSpace {
    pub(crate) fn program(&self, spec: &FsSpec) -> Argv {
        filled(self.program, spec)
    }

    /// Number and mean bytes of free extents in what it prints; the file system's blocks are of the
    /// given bytes.
    pub fn extents(&self, text: &str, block: u64) -> Option<(f64, f64)> {
        Some((number(text, self.extents)?, number(text, self.mean)? * self.unit.unwrap_or(block) as f64))
    }
}

/// A program that makes data durable.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub struct Commit {
    #[serde(deserialize_with = "list")]
    words: &'static [&'static str],
    /// The same program with nothing to write or to wait for: what this takes is no time of the
    /// file system's.
    #[serde(deserialize_with = "list")]
    idle: &'static [&'static str],
}

impl Commit {
    pub fn words(&self, spec: &FsSpec) -> Argv {
        filled(self.words, spec)
    }

    pub fn idle(&self, spec: &FsSpec) -> Argv {
        filled(self.idle, spec)
    }

    /// The same words for both.
    #[cfg(test)]
    pub(crate) const fn of(words: &'static [&'static str]) -> Commit {
        Commit { words, idle: words }
    }
}

/// Programs that take, send and delete snapshots of the whole file system, each of its own number,
/// and go back to one.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshots {
    #[serde(deserialize_with = "list")]
    pub take: &'static [&'static str],
    /// Prints one as a stream.
    #[serde(deserialize_with = "list")]
    pub send: &'static [&'static str],
    #[serde(deserialize_with = "list")]
    pub delete: &'static [&'static str],
    /// Makes the first one anew of its stream, which is its input. None may be there.
    #[serde(deserialize_with = "list")]
    pub receive: &'static [&'static str],
    /// The mount point of what was received.
    received: &'static str,
    /// The newest is what is mounted from then on, to be written to.
    #[serde(deserialize_with = "commands")]
    roll_back: Words,
    /// Whether it takes a mount to see that.
    #[serde(default)]
    pub mounts_to_roll_back: bool,
    /// Where the room of deleted ones is given back later.
    pub freed: Option<SpaceFreedCheck>,
    /// Prints the bytes that would be free without all of them; where there is none, extents are
    /// counted.
    #[serde(default, deserialize_with = "list")]
    exclusive: &'static [&'static str],
}

impl Snapshots {
    /// One of its programs, for the snapshot of that number.
    pub fn of(&self, program: &[&str], spec: &FsSpec, number: u64) -> Argv {
        filled(program, spec).into_iter().map(|word| word.replace("{number}", &number.to_string())).collect()
    }

    pub fn roll_back(&self, spec: &FsSpec, number: u64) -> Vec<Argv> {
        self.roll_back.iter().map(|program| self.of(program, spec, number)).collect()
    }

    pub fn received(&self, spec: &FsSpec) -> PathBuf {
        filled(&[self.received], spec).concat().into()
    }

    pub fn exclusive(&self, spec: &FsSpec) -> Option<Argv> {
        Some(filled(self.exclusive, spec)).filter(|words| !words.is_empty())
    }
}

/// How it is learnt that the room of deleted snapshots is free.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpaceFreedCheck {
    #[serde(deserialize_with = "list")]
    program: &'static [&'static str],
    /// What it prints then.
    pub prints: &'static str,
}

impl SpaceFreedCheck {
    pub fn program(&self, spec: &FsSpec) -> Argv {
        filled(self.program, spec)
    }
}

/// What an administrator does with the whole of a file system now and then: check, grow, shrink,
/// rebuild, scrub, quota and so on.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Upkeep {
    pub operation: &'static str,
    /// Variants with this operation; if none is named, all of them.
    #[serde(deserialize_with = "list")]
    pub variants: &'static [&'static str],
    /// What it takes of the kernel.
    #[serde(deserialize_with = "list")]
    pub needs: &'static [Need],
    /// Whether it is done while the file system is mounted.
    pub is_mounted: bool,
    /// Mount options added to the spec's, of the mount after one that is not done while mounted.
    #[serde(deserialize_with = "list")]
    pub mounted_with: &'static [&'static str],
    /// Afterwards the kernel says what each user takes (quotactl(2)).
    pub counts_users: bool,
    /// Run before, while it is mounted or not: what makes it half as large.
    #[serde(deserialize_with = "commands")]
    before: Words,
    is_mounted_before: bool,
    #[serde(deserialize_with = "commands")]
    programs: Words,
}

/// Programs one after the other.
type Words = &'static [&'static [&'static str]];

impl Default for Upkeep {
    fn default() -> Upkeep {
        Upkeep::mounted("", &[])
    }
}

impl Upkeep {
    /// While it is mounted, and after nothing else.
    const fn mounted(operation: &'static str, programs: Words) -> Upkeep {
        Upkeep {
            operation,
            variants: &[],
            needs: &[],
            is_mounted: true,
            mounted_with: &[],
            counts_users: false,
            before: &[],
            is_mounted_before: true,
            programs,
        }
    }

    pub(crate) fn programs(&self, spec: &FsSpec) -> Vec<Argv> {
        self.programs.iter().map(|words| filled(words, spec)).collect()
    }

    /// Whether it is mounted meanwhile, and what makes it half as large.
    pub(crate) fn before(&self, spec: &FsSpec) -> (bool, Vec<Argv>) {
        (self.is_mounted_before, self.before.iter().map(|words| filled(words, spec)).collect())
    }

    /// The spec of the mount that follows one that is not done while mounted.
    pub(crate) fn then<'a>(&self, spec: &FsSpec<'a>) -> FsSpec<'a> {
        let more = self.mounted_with.iter().map(|option| option.to_string());
        FsSpec { mount: spec.mount.iter().cloned().chain(more).collect(), ..spec.clone() }
    }
}

/// What is on a disk has it: unmounted and mounted.
pub(crate) const MOUNT: Upkeep = Upkeep { is_mounted: false, ..Upkeep::mounted("mount", &[]) };

/// What takes snapshots has it; their programs are [`Snapshots`].
pub(super) const SNAPSHOT: Upkeep = Upkeep::mounted("snapshot", &[]);

/// Every mounted file system that can discard has it.
pub(crate) const TRIM: Upkeep = Upkeep::mounted("trim", &[&["fstrim", super::MOUNT_POINT]]);

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;
    use pickfs_core::plan::Target;
    use std::path::Path;

    /// File system, operation, the words that are run, options of the mount afterwards.
    const WORDS: &[(&str, &str, &str, &str)] = &[
        ("btrfs", "defrag", "btrfs filesystem defragment", ""),
        ("btrfs", "shrink", "btrfs filesystem resize 2048K /m", ""),
        ("ext2", "shrink", "e2fsck -f -p /dev/DEV; resize2fs /dev/DEV 2048K", ""),
        ("ext3", "shrink", "e2fsck -f -p /dev/DEV; resize2fs /dev/DEV 2048K", ""),
        ("ext4", "defrag", "e4defrag", ""),
        ("ext4", "quota", "tune2fs -O quota -Q usrquota,grpquota /dev/DEV", ""),
        ("ext4", "shrink", "e2fsck -f -p /dev/DEV; resize2fs /dev/DEV 2048K", ""),
        ("f2fs", "shrink", "resize.f2fs -s -t 4096 /dev/DEV", ""),
        ("xfs", "defrag", "xfs_fsr", ""),
        ("xfs", "quota", "", "uquota,gquota"),
    ];

    #[test]
    fn operations_are_sorted_and_have_their_words() {
        for fs in ALL.iter() {
            assert!(fs.upkeep.is_sorted_by(|a, b| a.operation < b.operation), "{}", fs.name);
            let spec = FsSpec::new(fs, &Target::default(), Path::new("/dev/DEV"), Path::new("/m"));
            let spec = FsSpec { half: 2 << 20, ..spec };
            for operation in ["defrag", "quota", "shrink"] {
                let known = WORDS.iter().find(|row| (row.0, row.1) == (fs.name, operation));
                let Some(upkeep) = fs.upkeep(operation, None).filter(|_| (fs.name, operation) != ("btrfs", "quota"))
                else {
                    assert_eq!(known, None, "{} {operation}", fs.name);
                    continue;
                };
                let run: Vec<String> = upkeep.programs(&spec).iter().map(|words| words.join(" ")).collect();
                let mounted = upkeep.then(&spec).mount.join(",");
                assert_eq!(known, Some(&(fs.name, operation, &*run.join("; "), &*mounted)));
                assert_eq!(
                    (upkeep.counts_users, upkeep.needs.len()),
                    if operation == "quota" { (true, 1) } else { (false, 0) }
                );
            }
        }
    }
}
