//! Whether a folder can be worked in, and has room.

use pickfs_core::plan::{Objection, Settings, disks};
use pickfs_system::process::exposed;
use pickfs_system::units::show_bytes;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// A folder that is there, can be written to, and cannot be changed by others while root works in
/// it; by the setting that names it.
pub(crate) fn directory(settings: &Settings, setting: &'static str) -> Option<Objection> {
    use rustix::fs::{Access, access};
    let path = settings.path(setting)?;
    if path.metadata().is_ok_and(|found| found.file_type().is_block_device()) {
        let remedy = "mount it and name that directory; or have it erased, by a plan whose backing is `device` (`pickfs help safety`)";
        return Some(Objection::new(setting, format!("{} is a device, no directory", path.display()), remedy));
    }
    if !path.is_dir() {
        let message = format!("{} is no directory", path.display());
        return Some(Objection::new(setting, message, "make it first, or name another"));
    }
    if let Some(exposed) = exposed(&path) {
        return Some(Objection::new(setting, exposed.message, &exposed.remedy));
    }
    let refused = access(&path, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let message = format!("cannot write to {}: {refused}", path.display());
    Some(Objection::new(setting, message, "name your own directory"))
}

/// Bytes free in the folder for the images of the `size` that is asked for.
pub(crate) fn room(settings: &Settings, folder: &Path, setting: &'static str) -> Option<Objection> {
    let images = disks(settings);
    let wanted = settings.number("size")?.saturating_mul(images);
    let found = rustix::fs::statvfs(folder).ok()?;
    let free = found.f_bavail * found.f_frsize;
    let show = |bytes: u64| show_bytes(bytes as f64);
    let takes = if images > 1 { format!("the {images} images take") } else { "the image takes".to_string() };
    let message = format!("{} has {} free, {takes} {}", folder.display(), show(free), show(wanted));
    (free < wanted).then(|| Objection::new(setting, message, "give a smaller size, or another place"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_must_be_room_for_every_image() {
        let folder = std::env::temp_dir();
        let found = rustix::fs::statvfs(&folder).unwrap();
        let size = found.f_bavail * found.f_frsize / 3 * 2;
        for (size, disks, objects) in [(size, 1, false), (size, 2, true), (u64::MAX, 3, true)] {
            let pairs = [("size", size), ("disks", disks)].map(|(name, value)| (name.to_string(), value.into()));
            assert_eq!(room(&Settings(pairs.into()), &folder, "size").is_some(), objects, "{disks} of {size}");
        }
    }
}
