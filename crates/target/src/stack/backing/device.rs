//! A whole block device, whose contents are destroyed. [`crate::stack::safety`] says when it may be touched.

use super::{Backing, Elsewhere};
use crate::stack::{Action, Step};
use pickfs_core::plan::{Objection, Setting, SettingKind, Settings, setting};
use pickfs_system::need::Need;
use std::path::PathBuf;

/// No setting of a plan, where each of them would have to be checked and agreed to: named by who gives a machine disks
/// that are its own.
pub(crate) const MORE_DEVICES: &str = "more";

pub(crate) const DEVICE: Backing = Backing {
    name: "device",
    about: "a disk or partition, all of it, erased",
    settings: &[
        setting("path", SettingKind::Path, None, "the device; best a name under /dev/disk/by-id"),
        Setting {
            name: "signatures",
            kind: SettingKind::Texts,
            default: None,
            about: "what it may hold now, as `wipefs` names it, and what is then lost: \"ext4\", \"gpt\" ...",
        },
    ],
    main_setting: "path",
    needs: &[
        Need::Root,
        Need::Program { name: "lsblk", package: "util-linux" },
        Need::Program { name: "wipefs", package: "util-linux" },
    ],
    steps: |settings, _| {
        let step = |path: PathBuf| Step::new(format!("erase and use {}", path.display()), Action::UseDevice(path));
        disks(settings).into_iter().map(step).collect()
    },
    erases: disks,
    objection: |settings| {
        let remedy = "give `path`, best a name under /dev/disk/by-id";
        disks(settings).is_empty().then(|| Objection::new("path", "no device is named".into(), remedy))
    },
    elsewhere: Elsewhere::Disks(|settings, _| settings.path("path").into_iter().collect()),
    ..Backing::DEFAULT
};

fn disks(settings: &Settings) -> Vec<PathBuf> {
    let more = settings.texts(MORE_DEVICES).into_iter().map(PathBuf::from);
    settings.path("path").into_iter().chain(more).collect()
}
