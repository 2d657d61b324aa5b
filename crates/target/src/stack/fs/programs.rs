//! Programs of drivers beside mkfs and mount: what makes data durable, takes snapshots and lists free space.

use super::spec::filled;
use super::{Argv, FsSpec};
use pickfs_system::need::Need;
use std::path::PathBuf;

/// A program that lists the free space of the device, which it only reads.
#[derive(Clone, Copy)]
pub struct FreeSpace {
    pub(super) program: &'static [&'static str],
    /// Number and mean bytes of free extents in what it prints; the file system's blocks are of the given bytes.
    pub extents: fn(&str, u64) -> Option<(f64, f64)>,
}

impl FreeSpace {
    pub(crate) fn program(&self, spec: &FsSpec) -> Argv {
        filled(self.program, spec)
    }
}

/// A program that makes data durable.
#[derive(Clone, Copy)]
pub struct Commit {
    pub words: fn(&FsSpec) -> Argv,
    /// The same program with nothing to write or to wait for: what this takes is no time of the file system's.
    pub idle: fn(&FsSpec) -> Argv,
}

/// Programs that take, send and delete snapshots of the whole file system, each of its own number, and go back to one.
#[derive(Clone, Copy)]
pub struct Snapshots {
    pub take: fn(&FsSpec, u64) -> Argv,
    /// Prints one as a stream.
    pub send: fn(&FsSpec, u64) -> Argv,
    pub delete: fn(&FsSpec, u64) -> Argv,
    /// Makes the first one anew of its stream, which is its input. None may be there.
    pub receive: fn(&FsSpec) -> Argv,
    /// The mount point of what was received.
    pub received: fn(&FsSpec) -> PathBuf,
    /// The newest is what is mounted from then on, to be written to.
    pub roll_back: fn(&FsSpec, u64) -> Vec<Argv>,
    /// Whether it takes a mount to see that.
    pub mounts_to_roll_back: bool,
    /// Where the room of deleted ones is given back later.
    pub freed: Option<Freed>,
    /// Prints the bytes that would be free without all of them; where there is none, extents are counted.
    pub exclusive: Option<fn(&FsSpec) -> Argv>,
}

/// How it is learnt that the room of deleted snapshots is free.
#[derive(Clone, Copy)]
pub struct Freed {
    pub program: fn(&FsSpec) -> Argv,
    pub is_free: IsFree,
}

/// Reads it in what the program printed.
pub(crate) type IsFree = fn(&str) -> bool;

/// What an administrator does with the whole of a file system now and then: check, grow, shrink, rebuild, scrub, quota and so on.
#[derive(Clone, Copy)]
pub struct Upkeep {
    pub operation: &'static str,
    /// Variants with this operation; if none is named, all of them.
    pub variants: &'static [&'static str],
    /// What it takes of the kernel.
    pub needs: &'static [Need],
    /// Whether it is done while the file system is mounted.
    pub is_mounted: bool,
    /// Mount options besides the spec's, of the mount after one that is not done while mounted.
    pub mounted_with: &'static [&'static str],
    /// Afterwards the kernel says what each user takes (quotactl(2)).
    pub counts_users: bool,
    /// Run before, while it is mounted or not, as here: what makes it half as large.
    pub(super) before: (bool, Words),
    pub(super) programs: Words,
}

/// Programs one after the other.
type Words = &'static [&'static [&'static str]];

impl Upkeep {
    /// While it is mounted, and after nothing else.
    pub(super) const fn mounted(operation: &'static str, programs: Words) -> Upkeep {
        Upkeep {
            operation,
            variants: &[],
            needs: &[],
            is_mounted: true,
            mounted_with: &[],
            counts_users: false,
            before: (true, &[]),
            programs,
        }
    }

    /// Only with these variants.
    pub(super) const fn of(self, variants: &'static [&'static str]) -> Upkeep {
        Upkeep { variants, ..self }
    }

    /// While it is not.
    pub(super) const fn unmounted(operation: &'static str, programs: Words) -> Upkeep {
        Upkeep { is_mounted: false, ..Upkeep::mounted(operation, programs) }
    }

    pub(crate) fn programs(&self, spec: &FsSpec) -> Vec<Argv> {
        self.programs.iter().map(|words| filled(words, spec)).collect()
    }

    /// Whether it is mounted meanwhile, and what makes it half as large.
    pub(crate) fn before(&self, spec: &FsSpec) -> (bool, Vec<Argv>) {
        (self.before.0, self.before.1.iter().map(|words| filled(words, spec)).collect())
    }

    /// The spec of the mount that follows one that is not done while mounted.
    pub(crate) fn then<'a>(&self, spec: &FsSpec<'a>) -> FsSpec<'a> {
        let more = self.mounted_with.iter().map(|option| option.to_string());
        FsSpec { mount: spec.mount.iter().cloned().chain(more).collect(), ..spec.clone() }
    }
}

/// A new disk in the place of the last one: all zeros, by plain writes, so that an image keeps its blocks.
pub(super) const ANOTHER_LAST: &[&str] = &["shred", "--iterations=0", "--zero", super::LAST];

/// Whole files, and pieces of 128 KiB, that are there twice become one (duperemove(8)).
pub(super) const DEDUP: Upkeep = Upkeep::mounted("dedup", &[&["duperemove", "-d", "-r", "-q", super::MOUNT_POINT]]);

/// What is on a disk has it: unmounted and mounted.
pub(crate) const MOUNT: Upkeep = Upkeep::unmounted("mount", &[]);

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
        for fs in ALL {
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
