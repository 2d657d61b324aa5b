//! overlayfs above a file system: the work sees the merged tree, and what it writes lies in a folder on the file system.
//!
//! All three folders are on the file system under test, as those of a container are: on two file systems overlayfs would show
//! files under device numbers of their own (Documentation/filesystems/overlayfs.rst, "Inode properties").

use super::fs::MountOptions;
use super::{Action, Argv, Place, Step, argv};
use pickfs_core::journal::Undo;
use pickfs_core::plan::Target;
use pickfs_system::need::Need;
use std::path::PathBuf;

/// What a mount of it takes.
pub const NEED: Need = Need::Kernel { filesystem: "overlay", hint: "load its module: `modprobe overlay`" };

/// Parts of the mounted file system below, by the names that overlayfs has for them.
const LOWER: &str = "lowerdir";
const UPPER: &str = "upperdir";
const WORK: &str = "workdir";

/// A mount of overlayfs on the file system under test.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    pub mount_point: PathBuf,
    /// Where the file system is mounted.
    below: PathBuf,
}

impl Overlay {
    /// The one that a target asks for.
    pub fn of(target: &Target, place: &Place) -> Option<Overlay> {
        target.overlay.then(|| Overlay { mount_point: place.overlay(), below: place.mount_point() })
    }

    /// The folder of the file system below that gets all that is written.
    pub(crate) fn upper(&self) -> PathBuf {
        self.below.join(UPPER)
    }

    /// Folders on the mounted file system below, and the mount.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let folder = |name| Step::new("make a folder for overlayfs", Action::MakeWorkFolder(self.below.join(name)));
        let mount = Step::new("mount overlayfs", Action::Mount(self.mount()));
        [LOWER, UPPER, WORK]
            .map(folder)
            .into_iter()
            .chain([Step::folder("make the mount point of overlayfs", self.mount_point.clone())])
            .chain([mount.undo(Undo::Unmount(self.mount_point.clone()))])
            .collect()
    }

    /// Run again after each unmount.
    pub(crate) fn mount(&self) -> Argv {
        let folders = [LOWER, UPPER, WORK].map(|name| format!("{name}={}", self.below.join(name).display()));
        argv(["mount", "-t", "overlay", "-o", &folders.join(","), "overlay", &self.mount_point.display().to_string()])
    }

    pub(crate) fn unmount(&self) -> Argv {
        argv(["umount", &self.mount_point.display().to_string()])
    }

    /// What the mount that the work lies on contradicts, by its type and its options. overlayfs mounts read-only where it cannot
    /// use the folder for its own work.
    pub fn mismatches(&self, kind: &str, shown: &MountOptions) -> Vec<String> {
        let upper = shown.get(UPPER).and_then(Option::as_deref).unwrap_or("none");
        let is_ours = kind == "overlay" && upper == self.upper().display().to_string();
        let elsewhere =
            (!is_ours).then(|| format!("asked for overlayfs, the kernel shows {kind} with upperdir {upper}"));
        let read_only =
            shown.contains_key("ro").then(|| "overlayfs is read-only: the kernel's log has why".to_string());
        elsewhere.into_iter().chain(read_only).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::sentence;

    fn overlay() -> Overlay {
        let place =
            Place { name: "pickfs-r".into(), memory: "/dev/shm/pickfs-r".into(), mounts: "/run/pickfs-r".into() };
        Overlay::of(&Target { overlay: true, ..Target::default() }, &place).unwrap()
    }

    #[test]
    fn all_of_it_lies_on_the_file_system_below() {
        assert_eq!(Overlay::of(&Target::default(), &Place::of_run("r")), None);
        let on = "/run/pickfs-r/target";
        let options = format!("lowerdir={on}/lowerdir,upperdir={on}/upperdir,workdir={on}/workdir");
        let said: Vec<String> = overlay().steps().iter().map(sentence).collect();
        assert_eq!(
            said,
            [
                format!("make directory {on}/lowerdir"),
                format!("make directory {on}/upperdir"),
                format!("make directory {on}/workdir"),
                "make directory /run/pickfs-r/overlay; back: remove tree /run/pickfs-r/overlay".to_string(),
                format!(
                    "run mount -t overlay -o {options} overlay /run/pickfs-r/overlay; back: unmount /run/pickfs-r/overlay"
                ),
            ]
        );
    }

    #[test]
    fn another_mount_in_its_place_is_a_mismatch() {
        let shown = |words: &[(&str, Option<&str>)]| -> MountOptions {
            words.iter().map(|(name, value)| (name.to_string(), value.map(String::from))).collect()
        };
        let ours = (UPPER, Some("/run/pickfs-r/target/upperdir"));
        for (kind, options, wrong) in [
            ("overlay", [("rw", None), ours], 0),
            ("ext4", [("rw", None), ours], 1),
            ("overlay", [("rw", None), (UPPER, Some("/elsewhere"))], 1),
            ("overlay", [("ro", None), ours], 1),
            ("ext4", [("ro", None), ("ro", None)], 2),
        ] {
            assert_eq!(overlay().mismatches(kind, &shown(&options)).len(), wrong, "{kind} {options:?}");
        }
    }
}
