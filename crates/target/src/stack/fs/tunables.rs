//! What people turn of file systems: the words for it, and what every file system has.

pub(super) use pickfs_core::plan::Change::*;
pub(super) use pickfs_core::plan::TunableDefault::{Depends, Is};
pub(super) use pickfs_core::plan::TunableValue;
pub(super) use pickfs_core::plan::Weakened::*;
use pickfs_core::plan::{Tunable, TunableKind};

/// A row says what is not as here.
pub(super) const MKFS: Tunable = Tunable {
    name: "",
    kind: TunableKind::Mkfs,
    about: "",
    values: &[],
    default: Depends(""),
    change: OnlyNew,
    since: "",
    source: "",
    fact: "",
};

pub(super) const MOUNT: Tunable = Tunable { kind: TunableKind::Mount, change: Remount, ..MKFS };

pub(super) const ATIME: Tunable = Tunable {
    name: "atime",
    about: "when reading a file writes the time of that",
    values: &[
        value("strictatime", &["strictatime"]),
        value("relatime", &["relatime"]),
        value("noatime", &["noatime"]).weakens(Features, "no time of the last access"),
    ],
    default: Is("relatime"),
    source: "mount(8)",
    ..MOUNT
};

pub(super) const LAZYTIME: Tunable = Tunable {
    name: "lazytime",
    about: "times of files are kept in memory for up to a day where nothing else of the inode changes",
    values: &[value("off", &["nolazytime"]), value("on", &["lazytime"])],
    default: Is("off"),
    since: "Linux 4.0",
    source: "mount(8)",
    ..MOUNT
};

pub(super) const fn value(name: &'static str, words: &'static [&'static str]) -> TunableValue {
    TunableValue::new(name, words)
}
