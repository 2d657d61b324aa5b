//! A whole block device, whose contents are destroyed. [`crate::stack::safety`] says when it may be touched.

use super::Backing;
use crate::need::Need;
use crate::plan::{Kind, Setting, Settings};
use crate::stack::{Action, Place, Step};
use std::path::PathBuf;

pub struct Device;

/// No setting of a plan, where each of them would have to be checked and agreed to: named by who gives a machine disks
/// that are its own.
pub const MORE_DEVICES: &str = "more";

impl Backing for Device {
    fn name(&self) -> &'static str {
        "device"
    }

    fn about(&self) -> &'static str {
        "a disk or partition, all of it, erased"
    }

    fn steps(&self, settings: &Settings, _place: &Place) -> Vec<Step> {
        let more = settings.texts(MORE_DEVICES).into_iter().map(PathBuf::from);
        let all = settings.path("path").into_iter().chain(more);
        all.map(|path| Step::new(format!("erase and use {}", path.display()), Action::UseDevice(path))).collect()
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "path"
    }

    fn needs(&self) -> Vec<Need> {
        let program = |name| Need::Program { name, package: "util-linux" };
        vec![Need::Root, program("lsblk"), program("wipefs")]
    }
}

const SETTINGS: &[Setting] = &[
    Setting { name: "path", kind: Kind::Path, default: None, about: "the device; best a name under /dev/disk/by-id" },
    Setting {
        name: "signatures",
        kind: Kind::Texts,
        default: None,
        about: "what it may hold now, as `wipefs` names it, and what is then lost: \"ext4\", \"gpt\" ...",
    },
];
