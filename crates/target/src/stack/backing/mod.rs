//! Where the bytes live, one file each, in one sorted list.
//!
//! A backing says how a block device (or a directory) comes to be, and what must hold before it
//! may. It must not know which file system goes on it.

mod device;
mod directory;
mod image;
mod memory;
mod room;
mod zram;

pub(crate) use pickfs_core::plan::MORE_DEVICES;

use super::data::list;
use super::{Action, Place, Step};
use pickfs_core::journal::Undo;
use pickfs_core::plan::{Objection, Setting, Settings, disks};
use pickfs_system::need::Need;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Every backing, sorted by name: its data, and the function that puts its code into the data.
const ROWS: [Row; 5] = [
    (include_str!("device.toml"), device::with_code),
    (include_str!("directory.toml"), directory::with_code),
    (include_str!("image.toml"), image::with_code),
    (include_str!("memory.toml"), memory::with_code),
    (include_str!("zram.toml"), zram::with_code),
];

type Row = (&'static str, fn(Backing) -> Backing);

/// Every backing, sorted by name.
pub static ALL: LazyLock<Vec<&'static Backing>> = LazyLock::new(|| {
    let read = |(text, with_code): Row| -> &'static Backing {
        let data = toml::from_str(text).unwrap_or_else(|error| panic!("a backing came broken: {error}"));
        Box::leak(Box::new(with_code(data)))
    };
    ROWS.into_iter().map(read).collect()
});

/// Something that gives block devices or a directory: what is constant as data, what depends on the
/// cell as functions.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backing {
    pub name: &'static str,
    /// One phrase for `pickfs list backings`.
    pub about: &'static str,
    #[serde(deserialize_with = "list")]
    pub settings: &'static [Setting],
    /// The setting that a bare value stands for in a plan.
    pub main_setting: &'static str,
    #[serde(deserialize_with = "list")]
    pub needs: &'static [Need],
    /// False where a file system is there already.
    pub makes_filesystem: bool,
    /// Once per run, before any cell.
    #[serde(skip)]
    pub prepare: fn(&Settings, &Place) -> Vec<Step>,
    /// For each cell: steps that use a device, or the last one, give the devices or the directory.
    #[serde(skip)]
    pub steps: fn(&Settings, &Place) -> Vec<Step>,
    /// What belongs to the user and is lost: each must be named in full, and agreed to.
    #[serde(skip)]
    pub erases: fn(&Settings) -> Vec<PathBuf>,
    /// What speaks against it on this machine; devices to be erased are also examined.
    #[serde(skip)]
    pub objection: fn(&Settings) -> Option<Objection>,
    #[serde(skip)]
    pub elsewhere: Elsewhere,
}

/// How a machine that is made for one cell comes to a backing.
pub enum Elsewhere {
    /// Not at all.
    Never,
    /// It makes it in its own memory, which goes with it.
    MadeThere,
    /// These files and devices become disks of the machine.
    Disks(fn(&Settings, &Place) -> Vec<PathBuf>),
}

impl Default for Backing {
    fn default() -> Backing {
        Backing {
            name: "",
            about: "",
            settings: &[],
            main_setting: "",
            needs: &[],
            makes_filesystem: true,
            prepare: |_, _| Vec::new(),
            steps: |_, _| Vec::new(),
            erases: |_| Vec::new(),
            objection: |_| None,
            elsewhere: Elsewhere::Never,
        }
    }
}

/// What it takes to make a loop device.
pub(crate) const LOOP: &[Need] = &[Need::Root, LOSETUP, LOOP_CONTROL];
const LOSETUP: Need = Need::Program { name: "losetup", package: "mount" };
const LOOP_CONTROL: Need =
    Need::File { path: "/dev/loop-control", hint: "`modprobe loop`; in a container, let it have loop devices" };

/// The image in a folder that a backing made: one for each size that the plan's targets ask for.
fn image_in(folder: &Path, settings: &Settings) -> PathBuf {
    folder.join(format!("disk-{}.img", image_bytes(settings)))
}

/// As many as are asked for, all of one size.
fn images_in(folder: &Path, settings: &Settings) -> Vec<PathBuf> {
    let name = |number: u64| match number {
        1 => image_in(folder, settings),
        _ => folder.join(format!("disk-{}-{number}.img", image_bytes(settings))),
    };
    (1..=disks(settings)).map(name).collect()
}

fn image_bytes(settings: &Settings) -> u64 {
    settings.number("size").unwrap_or_default()
}

fn attach(image: &Path, direct: bool) -> Step {
    let attach = Action::AttachImage { image: image.into(), direct };
    Step::new("attach the image to a loop device", attach).undo(Undo::DetachLoops(image.into()))
}

/// The backing of that name.
pub fn find(name: &str) -> Option<&'static Backing> {
    ALL.iter().copied().find(|backing| backing.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::sentence;
    use serde_json::{Value, json};

    fn settings(value: Value) -> Settings {
        Settings(value.as_object().unwrap().clone().into_iter().collect())
    }

    fn place() -> Place {
        Place { name: "pickfs-r".into(), memory: "/dev/shm/pickfs-r".into(), mounts: "/run/pickfs-r".into() }
    }

    /// What is done once, then what is done for each cell.
    fn sentences(name: &str, value: Value) -> (Vec<String>, Vec<String>) {
        let (backing, settings, place) = (find(name).unwrap(), settings(value), place());
        let said = |steps: Vec<Step>| steps.iter().map(sentence).collect();
        (said((backing.prepare)(&settings, &place)), said((backing.steps)(&settings, &place)))
    }

    #[test]
    fn the_list_is_sorted_unique_and_described() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
        for backing in ALL.iter() {
            assert!(!backing.about.is_empty() && !backing.about.ends_with('.'), "{}", backing.name);
            assert!(backing.settings.iter().any(|s| s.name == backing.main_setting), "{}", backing.name);
            assert!(backing.settings.iter().all(|s| !s.about.is_empty()), "{}", backing.name);
            assert_eq!(backing.needs.contains(&Need::Root), backing.makes_filesystem, "{}", backing.name);
        }
    }

    #[test]
    fn an_image_is_written_once_and_attached_for_each_cell() {
        let (once, each) = sentences("image", json!({"dir": "/mnt/a", "size": 4096, "direct": true}));
        assert_eq!(
            once,
            [
                "make directory /mnt/a/pickfs-r; back: remove tree /mnt/a/pickfs-r",
                "make image /mnt/a/pickfs-r/disk-4096.img of 4096",
            ]
        );
        let back = "back: detach loops of /mnt/a/pickfs-r/disk-4096.img";
        let attach = "device from losetup --find --show --direct-io=on /mnt/a/pickfs-r/disk-4096.img";
        assert_eq!(each, [format!("{attach}; {back}")]);
        let (_, cached) = sentences("image", json!({"dir": "/mnt/a", "size": 4096, "direct": false}));
        assert_eq!(cached, [format!("{}; {back}", attach.replace("=on", "=off"))]);
    }

    #[test]
    fn memory_is_a_tmpfs_of_its_own() {
        let (once, each) = sentences("memory", json!({"size": 1 << 30}));
        let options = "size=1074790400,mode=700,huge=never";
        let folder = "/run/pickfs-r/memory-1073741824";
        let file = format!("{folder}/disk-1073741824.img");
        assert_eq!(
            once,
            [
                format!("make directory {folder}; back: remove tree {folder}"),
                format!("run mount -t tmpfs -o {options} pickfs {folder}; back: unmount {folder}"),
                format!("make image {file} of 1073741824"),
            ]
        );
        assert_eq!(
            each,
            [format!("device from losetup --find --show --direct-io=off {file}; back: detach loops of {file}")]
        );
    }

    #[test]
    fn a_directory_gets_a_folder_that_is_removed() {
        let made = "make directory /srv/pickfs-r; back: remove tree /srv/pickfs-r";
        let want = (vec![], vec![made.to_string(), "directory /srv/pickfs-r".to_string()]);
        assert_eq!(sentences("directory", json!({"path": "/srv"})), want);
    }

    #[test]
    fn what_speaks_against_a_place_is_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let file = file.path().display().to_string();
        let folder = std::env::temp_dir().display().to_string();
        for (name, given, setting) in [
            ("image", json!({"dir": file, "size": 4096}), "dir"),
            ("image", json!({"dir": folder, "size": 1u64 << 60}), "size"),
            ("image", json!({"dir": folder, "size": 4096}), ""),
            ("memory", json!({"size": 1u64 << 60}), "size"),
            ("directory", json!({"path": file}), "path"),
            ("directory", json!({"path": folder}), ""),
            ("device", json!({}), "path"),
        ] {
            let found = (find(name).unwrap().objection)(&settings(given.clone()));
            assert_eq!(found.map_or("", |objection| objection.setting), setting, "{name} {given}");
        }
    }

    #[test]
    fn a_disk_in_compressed_memory_is_new_in_each_cell() {
        let note = "/dev/shm/pickfs-r/zram";
        let make = format!("zram of 4096 with lz4, noted in {note}; back: remove the zram disk noted in {note}");
        let each = vec!["run modprobe zram num_devices=0".to_string(), make];
        assert_eq!(sentences("zram", json!({"size": 4096, "algorithm": "lz4"})), (vec![], each));
    }

    #[test]
    fn a_device_is_used_as_it_is() {
        assert_eq!(sentences("device", json!({"path": "/dev/sdz"})), (vec![], vec!["device /dev/sdz".to_string()]));
    }
}
