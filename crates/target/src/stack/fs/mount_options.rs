//! Mount options: what is asked for, and what the kernel shows of it.

use super::{Argv, FsSpec, MountOptions, argv};

pub(super) fn command(kind: &str, options: &[String], spec: &FsSpec) -> Argv {
    let mut words = argv(["mount", "-t", kind]);
    if !options.is_empty() {
        words.extend(["-o".to_string(), options.join(",")]);
    }
    words.extend([spec.device(), spec.mount_point()]);
    words
}

/// The spec's mount options, after a word against discards, unless the spec itself says something about them.
pub(super) fn with_discard(no_discard: Option<&str>, spec: &FsSpec) -> Vec<String> {
    let own = spec.mount.iter().any(|option| option.starts_with("discard") || option == "nodiscard");
    let quiet = no_discard.filter(|_| !spec.discard && !own);
    quiet.into_iter().map(String::from).chain(spec.mount.iter().cloned()).collect()
}

/// As [`mismatches`], of options some of which the kernel shows in another spelling: as asked, and as shown.
pub(super) fn mismatches_respelled(spellings: &[(&str, &str)], asked: &[String], shown: &MountOptions) -> Vec<String> {
    let respelled = |option: &String| {
        let found = spellings.iter().find(|(asked, _)| asked == option);
        found.map_or(option.clone(), |(_, shown)| shown.to_string())
    };
    asked
        .iter()
        .filter(|option| is_contradicted(&respelled(option), shown))
        .map(|option| sentence(option, shown))
        .collect()
}

/// An option that the kernel shows with another value was not taken as asked. One that it does not show at all is
/// mostly its default, and no contradiction.
pub(super) fn mismatches(asked: &[String], shown: &MountOptions) -> Vec<String> {
    mismatches_respelled(&[], asked, shown)
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
            assert_eq!(!mismatches(&[asked.to_string()], &shown(found)).is_empty(), wrong, "{asked} {found:?}");
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
            assert!(weak.split(' ').all(|option| (driver.weakens)(option)), "{name}: {weak}");
            assert!(!strong.split(' ').any(|option| (driver.weakens)(option)), "{name}: {strong}");
        }
    }
}
