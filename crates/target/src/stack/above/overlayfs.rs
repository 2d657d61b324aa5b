//! overlayfs: the work sees the merged tree, and what it writes lies in a folder on the file
//! system.
//!
//! All three folders are on the file system under test, as those of a container are: on two file
//! systems overlayfs would show files under separate device numbers
//! (Documentation/filesystems/overlayfs.rst, "Inode properties").

use super::*;

pub(crate) const OVERLAYFS: Above = Above {
    name: "overlayfs",
    about: "a folder with what is written over one that is only read, as a container sees its image",
    needs: &[Need::Root, Need::Kernel { filesystem: "overlay", hint: "load its module: `modprobe overlay`" }],
    modules: &["overlay"],
    kind: "overlay",
    folders: &[LOWER, UPPER, WORK],
    stores: UPPER,
    passes_sync: true,
    is_served: false,
    hides: &[],
    cannot: |driver| driver.features.no_upper,
    mount,
    mismatches,
    ..Above::SERVED
};

/// Folders on the file system below, by the names that overlayfs has for them.
const LOWER: &str = "lowerdir";
const UPPER: &str = "upperdir";
const WORK: &str = "workdir";

fn mount(seat: &Seat) -> Argv {
    let folders = [LOWER, UPPER, WORK].map(|name| format!("{name}={}", seat.below.join(name).display()));
    argv(["mount", "-t", "overlay", "-o", &folders.join(","), "overlay", &seat.at()])
}

fn mismatches(seat: &Seat, shown: &MountOptions, _: &str) -> Vec<String> {
    let upper = shown.get(UPPER).and_then(Option::as_deref).unwrap_or("none");
    let elsewhere = (upper != seat.data()).then(|| format!("asked for overlayfs, the kernel shows upperdir {upper}"));
    elsewhere.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::mounts;
    use super::*;
    use crate::stack::sentence;

    #[test]
    fn all_of_it_lies_on_the_file_system_below() {
        let on = "/run/pickfs-r/target";
        let options = format!("lowerdir={on}/lowerdir,upperdir={on}/upperdir,workdir={on}/workdir");
        let said: Vec<String> = mounts(&["overlayfs"])[0].steps().iter().map(sentence).collect();
        assert_eq!(
            said,
            [
                format!("make directory {on}/lowerdir"),
                format!("make directory {on}/upperdir"),
                format!("make directory {on}/workdir"),
                "make directory /run/pickfs-r/above; back: remove tree /run/pickfs-r/above".to_string(),
                format!(
                    "run mount -t overlay -o {options} overlay /run/pickfs-r/above; back: unmount /run/pickfs-r/above"
                ),
            ]
        );
    }

    #[test]
    fn the_key_overlay_is_a_word_for_it() {
        let target = Target { overlay: true, ..Target::default() };
        let names: Vec<_> = target.layers_above().into_iter().map(|chosen| chosen.name).collect();
        assert_eq!(names, ["overlayfs"]);
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
        ] {
            let found = mounts(&["overlayfs"])[0].mismatches(kind, &shown(&options), "");
            assert_eq!(found.len(), wrong, "{kind} {options:?}");
        }
    }
}
