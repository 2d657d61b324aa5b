//! A whole block device, whose contents are destroyed. [`crate::stack::safety`] says when it may be
//! touched.

use super::{Backing, Elsewhere};
use crate::stack::{Action, Step};
use pickfs_core::plan::{MORE_DEVICES, Objection, Settings};
use std::path::PathBuf;

pub(super) fn with_code(data: Backing) -> Backing {
    Backing {
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
        ..data
    }
}

fn disks(settings: &Settings) -> Vec<PathBuf> {
    let more = settings.texts(MORE_DEVICES).into_iter().map(PathBuf::from);
    settings.path("path").into_iter().chain(more).collect()
}
