//! A file on a mounted file system, as a loop device.

use super::{Backing, Elsewhere, LOOP, attach, image_bytes, images_in, room};
use crate::stack::{Action, Place, Step};
use pickfs_core::plan::{Setting, SettingKind, Settings};
use std::path::PathBuf;

pub(crate) const IMAGE: Backing = Backing {
    name: "image",
    about: "a file in a folder, as a loop device",
    settings: &[
        Setting { name: "dir", kind: SettingKind::Path, default: Some("."), about: "the folder that gets the file" },
        Setting {
            name: "size",
            kind: SettingKind::Size,
            default: Some("2GiB"),
            about: "how large the file is; below 4GiB btrfs writes slower than on a real disk",
        },
        Setting {
            name: "disks",
            kind: SettingKind::Count,
            default: None,
            about: "how many such files, for layers and file systems on several devices; one by default",
        },
        Setting {
            name: "direct",
            kind: SettingKind::Flag,
            default: Some("true"),
            about: "pass the page cache of the folder's file system by, so that nothing is cached twice",
        },
    ],
    main_setting: "dir",
    needs: LOOP,
    // One file for all cells, so that every target gets the same blocks of the disk below.
    prepare: |settings, place| {
        let (folder, bytes) = (folder(settings, place), image_bytes(settings));
        let make = Step::folder(format!("make the folder {}", folder.display()), folder.clone());
        let images = images_in(&folder, settings).into_iter();
        let images = images.map(|path| Step::new("write the image", Action::MakeImage { path, bytes }));
        std::iter::once(make).chain(images).collect()
    },
    steps: |settings, place| {
        let images = images_in(&folder(settings, place), settings);
        images.iter().map(|image| attach(image, settings.flag("direct"))).collect()
    },
    objection: |settings| {
        room::directory(settings, "dir").or_else(|| room::room(settings, &settings.path("dir")?, "size"))
    },
    elsewhere: Elsewhere::Disks(|settings, place| images_in(&folder(settings, place), settings)),
    ..Backing::DEFAULT
};

fn folder(settings: &Settings, place: &Place) -> PathBuf {
    settings.path("dir").unwrap_or_default().join(&place.name)
}
