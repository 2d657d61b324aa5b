//! Windows' NTFS by the driver that Linux has had since 7.1; what all three drivers share is here.

use super::*;

/// Before Linux 6.9 another driver had this name, which only read.
pub(crate) const NTFS: Filesystem = Filesystem {
    name: "ntfs",
    about: "Windows' file system by the driver of Linux 7.1 and later",
    kernel: Kernel::with("Linux 7.1 and later can have it; of Debian's kernels that of sid does"),
    // Else `mount` runs the helper `mount.ntfs`, which is ntfs-3g.
    mounting: Mounting {
        command: |driver, spec| {
            let mut words = command(driver.kernel_type(), &spec.mount, spec);
            words.insert(1, "--internal-only".into());
            words
        },
        ..Mounting::DEFAULT
    },
    ..MADE
};

/// As `mkntfs` makes it.
pub(super) const MADE: Filesystem = Filesystem {
    // `-Q` writes no zeroes over all of it, `-F` takes a whole disk; it asks nothing.
    making: Making::by(|spec| make(&["mkntfs", "-Q", "-F"], &[], spec)),
    tools: &[("mkntfs", "ntfs-3g"), ("ntfsinfo", "ntfs-3g")],
    // 2^32 - 1 clusters of at most 2 MiB (Microsoft, NTFS overview, 2023).
    limits: Limits { file: Some(8 << 50), volume: Some(8 << 50), ..Limits::DEFAULT },
    facts: &[("ntfsinfo", &["ntfsinfo", "--mft", "--force", DEVICE])],
    // dpkg of a guest knows no package.
    versions: &[("ntfs-3g", &["mkntfs", "--version"])],
    // By ntfsresize(8), unmounted. No driver here writes a journal of its changes.
    features: Features { usual: &[GROW, SHRINK], more: &[CREATION_TIME], ..Features::DEFAULT },
    ..Filesystem::DEFAULT
};

#[cfg(test)]
mod tests {
    use super::super::FsSpec;
    use super::*;
    use pickfs_core::plan::Target;
    use std::path::Path;

    #[test]
    fn the_helper_of_another_driver_is_passed_by() {
        let words =
            NTFS.mount(&FsSpec::new(&NTFS, &Target::default(), Path::new("/dev/DEV"), Path::new("/m"))).join(" ");
        assert_eq!(words, "mount --internal-only -t ntfs /dev/DEV /m");
    }
}
