//! A folder on a file system that is there already; needs no root and destroys nothing.

use super::Backing;
use crate::journal::Undo;
use crate::plan::{Kind, Setting, Settings};
use crate::stack::{Action, Place, Step};

pub struct Directory;

impl Backing for Directory {
    fn name(&self) -> &'static str {
        "directory"
    }

    fn about(&self) -> &'static str {
        "a folder on a file system that is mounted already"
    }

    fn steps(&self, settings: &Settings, place: &Place) -> Vec<Step> {
        let folder = settings.path("path").unwrap_or_default().join(&place.name);
        let make = Step::new(format!("make the folder {}", folder.display()), Action::MakeDirectory(folder.clone()));
        vec![make.undo(Undo::RemoveTree(folder.clone())), Step::new("work in it", Action::UseDirectory(folder))]
    }

    fn settings(&self) -> &'static [Setting] {
        &[Setting { name: "path", kind: Kind::Path, default: Some("."), about: "where to make a folder to work in" }]
    }

    fn main_setting(&self) -> &'static str {
        "path"
    }

    fn makes_filesystem(&self) -> bool {
        false
    }
}
