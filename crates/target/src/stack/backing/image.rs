//! A file on a mounted file system, as a loop device.

use super::{Backing, Elsewhere, LOOP, attach, image_bytes, images_in, room};
use crate::stack::{Action, Place, Step};
use pickfs_core::plan::Settings;
use std::path::PathBuf;

pub(super) fn with_code(data: Backing) -> Backing {
    Backing {
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
        ..data
    }
}

fn folder(settings: &Settings, place: &Place) -> PathBuf {
    settings.path("dir").unwrap_or_default().join(&place.name)
}
