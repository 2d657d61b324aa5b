//! A folder on a file system that is there already; needs no root and destroys nothing.

use super::{Backing, room};
use crate::stack::{Action, Step};
use pickfs_core::plan::{Setting, SettingKind};

pub(crate) const DIRECTORY: Backing = Backing {
    name: "directory",
    about: "a folder on a file system that is mounted already",
    settings: &[Setting {
        name: "path",
        kind: SettingKind::Path,
        default: Some("."),
        about: "where to make a folder to work in",
    }],
    main_setting: "path",
    steps: |settings, place| {
        let folder = settings.path("path").unwrap_or_default().join(&place.name);
        let make = Step::folder(format!("make the folder {}", folder.display()), folder.clone());
        vec![make, Step::new("work in it", Action::UseDirectory(folder))]
    },
    makes_filesystem: false,
    objection: |settings| room::directory(settings, "path"),
    ..Backing::DEFAULT
};
