//! A file on a mounted file system, as a loop device.

use super::{Backing, LOOP, attach, image_bytes, image_in};
use crate::journal::Undo;
use crate::need::Need;
use crate::plan::{Kind, Setting, Settings};
use crate::stack::{Action, Place, Step};
use std::path::PathBuf;

pub struct Image;

impl Backing for Image {
    fn name(&self) -> &'static str {
        "image"
    }

    fn about(&self) -> &'static str {
        "a file in a folder, as a loop device"
    }

    fn steps(&self, settings: &Settings, place: &Place) -> Vec<Step> {
        vec![attach(&image_in(&folder(settings, place), settings), settings.flag("direct"))]
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "dir"
    }

    fn needs(&self) -> Vec<Need> {
        LOOP.to_vec()
    }

    /// One file for all cells, so that every target gets the same blocks of the disk below.
    fn prepare(&self, settings: &Settings, place: &Place) -> Vec<Step> {
        let folder = folder(settings, place);
        let image = Action::MakeImage { path: image_in(&folder, settings), bytes: image_bytes(settings) };
        let make = Step::new(format!("make the folder {}", folder.display()), Action::MakeDirectory(folder.clone()));
        vec![make.undo(Undo::RemoveTree(folder)), Step::new("write the image", image)]
    }
}

const SETTINGS: &[Setting] = &[
    Setting { name: "dir", kind: Kind::Path, default: Some("."), about: "the folder that gets the file" },
    Setting {
        name: "size",
        kind: Kind::Size,
        default: Some("2GiB"),
        about: "how large the file is; below 4GiB btrfs writes slower than on a real disk",
    },
    Setting {
        name: "direct",
        kind: Kind::Flag,
        default: Some("true"),
        about: "pass the page cache of the folder's file system by, so that nothing is cached twice",
    },
];

fn folder(settings: &Settings, place: &Place) -> PathBuf {
    settings.path("dir").unwrap_or_default().join(&place.name)
}
