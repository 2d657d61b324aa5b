//! A file on a mounted file system, as a loop device.

use super::{Backing, LOOP, attach, image_bytes, images_in};
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
        let folder = folder(settings, place);
        images_in(&folder, settings).iter().map(|image| attach(image, settings.flag("direct"))).collect()
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
        let bytes = image_bytes(settings);
        let images = images_in(&folder, settings).into_iter();
        let images = images.map(|path| Step::new("write the image", Action::MakeImage { path, bytes }));
        let make = Step::new(format!("make the folder {}", folder.display()), Action::MakeDirectory(folder.clone()));
        std::iter::once(make.undo(Undo::RemoveTree(folder))).chain(images).collect()
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
        name: "disks",
        kind: Kind::Count,
        default: None,
        about: "so many such files, for layers and file systems on several devices; one unless said",
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
