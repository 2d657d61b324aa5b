//! A whole block device, whose contents are destroyed. [`crate::stack::safety`] says when it may be
//! touched.

use super::{Backing, Elsewhere};
use crate::stack::{Action, Step};
use pickfs_core::plan::{Objection, Settings};
use std::path::PathBuf;

/// No setting of a plan, where each of them would have to be checked and agreed to: set by the code
/// that gives a machine its own disks.
pub(crate) const MORE_DEVICES: &str = "more";

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
