//! btrfs, with the compressions, metadata profiles and copy-on-write switches that people compare.

use super::feature::{
    CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, CREATION_TIME, Found, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS,
    SHRINK, SNAPSHOTS, changed,
};
use super::{Argv, Filesystem, VFS_FILE, Variant, Wish, argv, make, mount_options, mount_with, number_above};
use std::collections::BTreeMap;

pub struct Btrfs;

impl Filesystem for Btrfs {
    fn name(&self) -> &'static str {
        "btrfs"
    }

    fn about(&self) -> &'static str {
        "copy on write, with checksums, snapshots, compression and several devices"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        let keep: &[&str] = if wish.discard { &[] } else { &["-K"] };
        make(&[&["mkfs.btrfs", "-f", "-q"], keep].concat(), wish)
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.btrfs", "btrfs-progs"), ("btrfs", "btrfs-progs"), ("chattr", "e2fsprogs"), ("lsattr", "e2fsprogs")]
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    /// mkfs.btrfs says so itself, for metadata in two copies, its default.
    fn minimum_size(&self) -> u64 {
        109 << 20
    }

    /// btrfs(5): 16 EiB by its format, of which the VFS leaves 8 EiB to a file.
    fn largest_file(&self) -> Option<u64> {
        Some(VFS_FILE)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(u64::MAX)
    }

    /// Since kernel 6.2 `discard=async` is the default where the device can discard.
    fn no_discard(&self) -> Option<&'static str> {
        Some("nodiscard")
    }

    /// New files take "no copy on write" from their directory, so the empty root is the place to set it
    /// (btrfs(5), FILE ATTRIBUTES).
    fn after_first_mount(&self, wish: &Wish) -> Vec<Argv> {
        if wish.nodatacow || wish.variant == Some(NOCOW) {
            return vec![argv(["chattr", "+C", &wish.mount_point()])];
        }
        Vec::new()
    }

    fn takes_nodatacow(&self) -> bool {
        true
    }

    fn takes_several(&self) -> bool {
        true
    }

    /// mkfs.btrfs(8), PROFILES; of four devices and more, a `raid10` is more than a `raid1`.
    fn least_devices(&self, variant: Option<&str>) -> usize {
        match variant {
            Some("raid0" | "raid1") => 2,
            Some("raid1c3") => 3,
            Some("raid10") => 4,
            _ => 1,
        }
    }

    /// Named one by one: who scans devices for their file systems may not have come to them yet, or not be there.
    fn mount(&self, wish: &Wish) -> Argv {
        let others = wish.more_devices.iter().map(|device| format!("device={}", device.display()));
        let options: Vec<String> = mount_options(self.no_discard(), wish).into_iter().chain(others).collect();
        mount_with(self.kernel_type(), &options, wish)
    }

    /// What a variant says of profiles must be what the kernel shows.
    fn mismatches(&self, wish: &Wish, facts: &BTreeMap<String, String>) -> Vec<String> {
        let shown = facts.get("btrfs profiles").map(String::as_str).unwrap_or_default();
        let variant = VARIANTS.iter().find(|variant| Some(variant.name) == wish.variant);
        let pairs = variant.map(|variant| variant.mkfs).unwrap_or_default().chunks_exact(2);
        let contradicts = |pair: &[&str]| {
            let what = if pair[0] == "-m" { "Metadata" } else { "Data" };
            let found = profile(shown, what);
            let asked = pair[1];
            let told = || format!("asked for {what} {asked}, the kernel shows {}", found.unwrap_or("nothing"));
            (!found.is_some_and(|found| found.eq_ignore_ascii_case(asked))).then(told)
        };
        pairs.filter_map(contradicts).collect()
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![
            ("btrfs profiles", argv(["btrfs", "filesystem", "df", "-b", &wish.mount_point()])),
            ("btrfs super block", argv(["btrfs", "inspect-internal", "dump-super", &wish.device()])),
            ("root attributes", argv(["lsattr", "-d", &wish.mount_point()])),
        ]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("btrfs-progs", argv(["btrfs", "--version"]))]
    }

    /// btrfs(5), btrfs-device(8), btrfs-filesystem(8).
    fn features(&self) -> &'static [&'static str] {
        &[
            CHECKSUMS,
            COMPRESSION,
            CRASH_CONSISTENCY,
            GROW,
            METADATA_CHECKSUMS,
            MULTI_DEVICE,
            REFLINKS,
            SHRINK,
            SNAPSHOTS,
        ]
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CREATION_TIME]
    }

    /// Without copy on write, or without checksums of data, nothing is compressed either (btrfs(5), MOUNT OPTIONS).
    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let in_place = found.nodatacow || found.variant == Some(NOCOW);
        let bare = in_place || found.mounted_with(&["nodatacow", "nodatasum"]);
        let without: &[&str] = if bare { &[CHECKSUMS, COMPRESSION] } else { &[] };
        changed(self.features(), without, &[])
    }

    /// The default commit interval is 30 s. `notreelog` and `flushoncommit` promise more, not less.
    fn weakens(&self, option: &str) -> bool {
        option == "nobarrier" || number_above(option, "commit=", 30)
    }
}

const NOCOW: &str = "nocow";

/// Options are written as the kernel shows them, so that they can be found again in `/proc/self/mountinfo`.
const VARIANTS: &[Variant] = &[
    Variant { name: "none", about: "no compression, as mkfs makes it", mkfs: &[], mount: &[] },
    Variant { name: "lzo", about: "compressed with lzo: the cheapest", mkfs: &[], mount: &["compress=lzo"] },
    Variant { name: "zlib", about: "compressed with zlib at level 3", mkfs: &[], mount: &["compress=zlib:3"] },
    Variant { name: "zstd:1", about: "compressed with zstd, fast", mkfs: &[], mount: &["compress=zstd:1"] },
    Variant { name: "zstd:3", about: "compressed with zstd, its default", mkfs: &[], mount: &["compress=zstd:3"] },
    Variant { name: NOCOW, about: "data written in place, without checksums (chattr +C)", mkfs: &[], mount: &[] },
    Variant { name: "single", about: "one copy of metadata", mkfs: &["-m", "single"], mount: &[] },
    Variant { name: "dup", about: "two copies of metadata", mkfs: &["-m", "dup"], mount: &[] },
    Variant {
        name: "raid0",
        about: "data striped over all devices, two copies of metadata on two of them",
        mkfs: &["-m", "raid1", "-d", "raid0"],
        mount: &[],
    },
    Variant {
        name: "raid1",
        about: "two copies of everything, on two devices",
        mkfs: &["-m", "raid1", "-d", "raid1"],
        mount: &[],
    },
    Variant {
        name: "raid1c3",
        about: "three copies of everything, on three devices",
        mkfs: &["-m", "raid1c3", "-d", "raid1c3"],
        mount: &[],
    },
    Variant {
        name: "raid10",
        about: "two copies of everything, striped over all devices",
        mkfs: &["-m", "raid10", "-d", "raid10"],
        mount: &[],
    },
];

/// `Metadata, RAID1: total=...` of `btrfs filesystem df`.
fn profile<'a>(shown: &'a str, what: &str) -> Option<&'a str> {
    let line = shown.lines().find_map(|line| line.trim().strip_prefix(what)?.strip_prefix(", "))?;
    line.split_once(':').map(|(profile, _)| profile)
}
