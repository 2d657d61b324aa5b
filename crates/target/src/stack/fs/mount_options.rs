//! Mount options: what is asked for, and what the kernel shows of it.

use super::data::mount_names;
use super::spec::{MOUNT_POINT, filled};
use super::{Argv, Facts, Filesystem, FsSpec, MountOptions, argv};
use crate::stack::data::list;
use crate::stack::take_down::TakeDown;
use pickfs_core::journal::Undo;
use serde::Deserialize;

/// How a file system that is made comes to its mount point, and goes from there.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mounting {
    /// More words of `mount`, before its options.
    #[serde(deserialize_with = "list")]
    pub(super) words: &'static [&'static str],
    /// What `mount -t` is given, where that is not the kernel's type, and what is mounted, where
    /// that is no device.
    #[serde(borrow)]
    pub(super) kind: Option<&'static str>,
    #[serde(borrow)]
    pub(super) source: Option<&'static str>,
    /// Options that it always has.
    #[serde(deserialize_with = "list")]
    pub(super) always: &'static [&'static str],
    /// The option that stops discards which the mounted file system would do unasked.
    #[serde(borrow)]
    pub(super) no_discard: Option<&'static str>,
    /// Names of all options that are documented, so that a slip is seen before anything is made;
    /// empty where no such list is kept.
    #[serde(deserialize_with = "mount_names")]
    pub options: &'static [&'static str],
    /// Options with their name in a plan and the kernel's, where these differ.
    #[serde(deserialize_with = "list")]
    pub(super) spellings: &'static [(&'static str, &'static str)],
    /// Whether the kernel shows options of the file system's own.
    pub(super) shows_options: bool,
    #[serde(deserialize_with = "list")]
    pub(super) unmount: &'static [&'static str],
    /// Options, in the kernel's spelling, after which a crash may take more than with the default:
    /// whole ones, their beginnings with `*`, and `name>limit` for numbers. Options that only
    /// concern data without a sync, such as `lazytime`, do not count: a sync still writes it.
    #[serde(deserialize_with = "list")]
    pub(super) weakens: &'static [&'static str],
    #[serde(skip)]
    pub(super) command: fn(&Filesystem, &FsSpec) -> Argv,
    /// Takes back whatever mkfs and mount left, when `unmount` never ran, where that takes more
    /// than another unmount.
    #[serde(skip)]
    pub(crate) take_down: Option<&'static TakeDown>,
    /// Where options in effect, or facts, contradict the plan's.
    #[serde(skip)]
    pub(super) mismatches: fn(&Mounting, &[String], &MountOptions, &Facts) -> Vec<String>,
}

impl Default for Mounting {
    fn default() -> Mounting {
        Mounting {
            words: &[],
            kind: None,
            source: None,
            always: &[],
            no_discard: None,
            options: &[],
            spellings: &[],
            shows_options: true,
            unmount: &["umount", MOUNT_POINT],
            weakens: &["nobarrier"],
            command: |driver, spec| command(driver, spec, []),
            take_down: None,
            mismatches: |mounting, asked, shown, _| mismatches(mounting, asked, shown),
        }
    }
}

impl Mounting {
    pub(crate) fn undo(&self, spec: &FsSpec) -> Undo {
        self.take_down.map_or_else(|| Undo::Unmount(spec.mount_point.into()), |take_down| take_down.of(spec.name))
    }

    pub fn unmount(&self, spec: &FsSpec) -> Argv {
        filled(self.unmount, spec)
    }

    /// Whether a mount option, as given or as in effect, weakens what survives a crash.
    pub(crate) fn weakens(&self, option: &str) -> bool {
        let option = self.respelled(option);
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let is_above = |limit: &str| value.parse().ok() > limit.parse::<u64>().ok();
        self.weakens.iter().any(|weak| match (weak.split_once('>'), weak.strip_suffix('*')) {
            (Some((of, limit)), _) => of == name && is_above(limit),
            (None, Some(begin)) => option.starts_with(begin),
            (None, None) => option == *weak,
        })
    }

    fn respelled<'a>(&self, option: &'a str) -> &'a str {
        self.spellings.iter().find(|(asked, _)| *asked == option).map_or(option, |(_, shown)| shown)
    }
}

/// The line of `mount`, with more options.
pub(super) fn command(driver: &Filesystem, spec: &FsSpec, more: impl IntoIterator<Item = String>) -> Argv {
    let mounting = &driver.mounting;
    let mut words = argv(["mount"].iter().chain(mounting.words));
    words.extend(argv(["-t", mounting.kind.unwrap_or(driver.kernel_type())]));
    let asked = with_discard(mounting.no_discard, spec).into_iter().chain(more);
    let options: Vec<String> = mounting.always.iter().map(|option| option.to_string()).chain(asked).collect();
    if !options.is_empty() {
        words.extend(["-o".to_string(), options.join(",")]);
    }
    words.extend([mounting.source.map_or_else(|| spec.device(), String::from), spec.mount_point()]);
    words
}

/// The spec's mount options, after a word against discards, unless the spec itself says something
/// about them.
pub(super) fn with_discard(no_discard: Option<&str>, spec: &FsSpec) -> Vec<String> {
    let name = |option: &String| option.split('=').next().is_some_and(|name| ["discard", "nodiscard"].contains(&name));
    let own = spec.mount.iter().any(name);
    let quiet = no_discard.filter(|_| !spec.discard && !own);
    quiet.into_iter().map(String::from).chain(spec.mount.iter().cloned()).collect()
}

/// An option that the kernel shows with another value was not taken as asked. One that it does not
/// show at all is mostly its default, and no contradiction.
pub(super) fn mismatches(mounting: &Mounting, asked: &[String], shown: &MountOptions) -> Vec<String> {
    let asked = if mounting.shows_options { asked } else { &[] };
    let wrong = asked.iter().filter(|option| is_contradicted(mounting.respelled(option), shown));
    wrong.map(|option| sentence(option, shown)).collect()
}

fn is_contradicted(option: &str, shown: &MountOptions) -> bool {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    match shown.get(name) {
        Some(Some(shown)) if !value.is_empty() => {
            let is_size = bytes(value).is_some_and(|asked| bytes(shown) == Some(asked));
            shown != value && !shown.starts_with(&format!("{value}:")) && !is_size
        }
        _ => negated(name, shown),
    }
}

fn sentence(option: &str, shown: &MountOptions) -> String {
    let name = option.split('=').next().unwrap_or(option);
    let opposite = format!("no{name}");
    let shown = [name, &opposite].into_iter().find_map(|name| Some(spelled(name, shown.get(name)?.as_deref())));
    format!("asked for mount option {option}, the kernel shows {}", shown.as_deref().unwrap_or("nothing of it"))
}

/// Bytes of a size as the kernel reads one (memparse() in lib/cmdline.c of Linux); it shows xfs's
/// in KiB, btrfs's in bytes.
fn bytes(value: &str) -> Option<u64> {
    let digits = value.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let shift = match value[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `noatime` asked and `relatime` or `atime` shown, `nobarrier` asked and `barrier` shown.
fn negated(name: &str, shown: &MountOptions) -> bool {
    let opposite = name.strip_prefix("no").map_or(format!("no{name}"), String::from);
    shown.contains_key(&opposite) || (name == "noatime" && shown.contains_key("relatime"))
}

/// As in a list of options.
pub(crate) fn spelled(name: &str, value: Option<&str>) -> String {
    value.map_or(name.to_string(), |value| format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was asked, what is shown, and whether that is wrong.
    type Case = (&'static str, &'static [(&'static str, Option<&'static str>)], bool);

    #[test]
    fn an_option_shown_with_another_value_is_a_mismatch() {
        let shown =
            |pairs: &[(&str, Option<&str>)]| pairs.iter().map(|(n, v)| (n.to_string(), v.map(String::from))).collect();
        let cases: [Case; 12] = [
            ("compress=zstd:99", &[("compress", Some("zstd:15"))], true),
            ("compress=zstd:1", &[("compress", Some("zstd:1"))], false),
            ("compress=zstd", &[("compress", Some("zstd:3"))], false),
            ("compress=zstd:1", &[("compress", Some("zstd:15"))], true),
            ("noatime", &[("noatime", None), ("rw", None)], false),
            ("noatime", &[("relatime", None)], true),
            ("data=ordered", &[("rw", None)], false),
            ("nobarrier", &[("barrier", None)], true),
            ("allocsize=1m", &[("allocsize", Some("1024k"))], false),
            ("logbsize=262144", &[("logbsize", Some("256k"))], false),
            ("max_inline=1k", &[("max_inline", Some("1024"))], false),
            ("allocsize=1m", &[("allocsize", Some("64k"))], true),
        ];
        for (asked, found, wrong) in cases {
            assert_eq!(
                !mismatches(&Mounting::default(), &[asked.to_string()], &shown(found)).is_empty(),
                wrong,
                "{asked} {found:?}"
            );
        }
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
            let driver = super::super::find(name).unwrap();
            assert!(weak.split(' ').all(|option| driver.mounting.weakens(option)), "{name}: {weak}");
            assert!(!strong.split(' ').any(|option| driver.mounting.weakens(option)), "{name}: {strong}");
        }
    }
}
