//! btrfs, with the compressions, metadata profiles and copy-on-write switches that people compare.

use super::feature::{
    CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, Found, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS, SHRINK,
    SNAPSHOTS, changed,
};
use super::{Argv, Filesystem, Variant, Wish, argv, make, number_above};

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
];
