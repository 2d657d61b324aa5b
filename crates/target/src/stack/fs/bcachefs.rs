//! bcachefs, a module from outside the kernel since 6.18. What was run is bcachefs as of Linux 6.12, with its tools 1.13.

use super::feature::{
    CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, CREATION_TIME, ENCRYPTION, FsState, GROW, METADATA_CHECKSUMS,
    MULTI_DEVICE, REFLINKS, SNAPSHOTS, changed,
};
use super::{
    DEVICE, Filesystem, MOUNT_POINT, MountOptions, Upkeep, VFS_FILE, Variant, make, mount_options, number_above,
};

pub(crate) const BCACHEFS: Filesystem = Filesystem {
    name: "bcachefs",
    about: "copy on write, with checksums, compression and tiers of devices",
    tools: &[("bcachefs", "bcachefs-tools")],
    hint: "Linux 6.7 to 6.17 have it; for later ones add the repository apt.bcachefs.org and \
           `apt-get install bcachefs-kernel-dkms`; in a guest, `machine = { kernel = \"trixie\" }` has it",
    // `format` never discards; `no_discard` decides what is discarded while mounted.
    mkfs: |spec| make(&["bcachefs", "format", "--force", "--quiet"], &[], spec),
    variants: VARIANTS,
    // `bcachefs format` 1.13 refuses 16 MiB (ENOSPC_disk_reservation), and takes 24; below 32 hardly a file fits.
    minimum_size: 32 << 20,
    // fs/bcachefs/fs.c of Linux 6.12: s_maxbytes is MAX_LFS_FILESIZE.
    largest_file: Some(VFS_FILE),
    // Discarding while mounted is its default (fs/bcachefs/opts.h).
    no_discard: Some("nodiscard"),
    facts: &[
        ("bcachefs super block", &["bcachefs", "show-super", DEVICE]),
        ("bcachefs usage", &["bcachefs", "fs", "usage", MOUNT_POINT]),
    ],
    versions: &[("bcachefs-tools", &["bcachefs", "version"])],
    upkeep: &[Upkeep::unmounted("check", &[&["bcachefs", "fsck", "-n", DEVICE]])],
    // bcachefs(8), and the Principles of Operation. Whether it can shrink depends on the version, so it is left out.
    features: &[CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS, SNAPSHOTS],
    more_features: &[CREATION_TIME, ENCRYPTION],
    // The kernel shows what differs from its default (fs/bcachefs/fs.c, bch2_show_options): what it does not show is off.
    mount_mismatches: |asked, shown, _| {
        let mut wrong = mount_options::mismatches(asked, shown);
        wrong.extend(
            asked
                .iter()
                .filter(|option| is_lacking(option, shown))
                .map(|option| format!("asked for mount option {option}, the kernel shows nothing of it")),
        );
        wrong
    },
    features_in_effect,
    // The journal is flushed on sync and every 1000 ms (bcachefs(8)).
    weakens: |option| {
        let off = matches!(option, "journal_flush_disabled" | "nochanges" | "no_data_io");
        off || number_above(option, "journal_flush_delay=", 1000)
    },
    ..Filesystem::DEFAULT
};

/// Written as the kernel shows them among the mount's options.
const VARIANTS: &[Variant] = &[
    Variant { name: "none", about: "no compression, as format makes it", ..Variant::DEFAULT },
    Variant {
        name: "lz4",
        about: "compressed with lz4: the cheapest",
        mount: &["compression=lz4"],
        ..Variant::DEFAULT
    },
    Variant { name: "zstd", about: "compressed with zstd", mount: &["compression=zstd"], ..Variant::DEFAULT },
];

fn is_lacking(option: &str, shown: &MountOptions) -> bool {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    matches!(name, "compression" | "background_compression") && value != "none" && !shown.contains_key(name)
}

/// Without copy on write there are neither checksums of data nor compression.
fn features_in_effect(driver: &Filesystem, state: &FsState) -> Vec<&'static str> {
    let off = |option: &str| asked(state, &format!("{option} none"));
    let mut without: Vec<&str> = Vec::new();
    if asked(state, "nocow") || off("data_checksum") {
        without.push(CHECKSUMS);
    }
    if asked(state, "nocow") {
        without.push(COMPRESSION);
    }
    if off("metadata_checksum") {
        without.push(METADATA_CHECKSUMS);
    }
    let with: &[&str] = if asked(state, "encrypted") { &[ENCRYPTION] } else { &[] };
    changed(driver.features, &without, with)
}

/// True if format or mount has the option, written as `--a=b`, `--a b` or `a=b`; here as `a b`.
fn asked(state: &FsState, option: &str) -> bool {
    let plain = |words: &[String]| {
        let words = words.iter().map(|word| word.trim_start_matches('-').replace('=', " "));
        format!(" {} ", words.collect::<Vec<_>>().join(" "))
    };
    [state.mkfs, state.mount].iter().any(|words| plain(words).contains(&format!(" {option} ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn compression_that_is_not_in_effect_is_a_mismatch() {
        let shown = |options: &[(&str, &str)]| -> MountOptions {
            options.iter().map(|(name, value)| (name.to_string(), Some(value.to_string()))).collect()
        };
        for (asked, found, wrong) in [
            ("compression=zstd", &[("compression", "zstd")][..], 0),
            ("compression=zstd", &[("compression", "lz4")], 1),
            ("compression=zstd", &[], 1),
            ("background_compression=lz4", &[("compression", "lz4")], 1),
            ("compression=none", &[], 0),
            ("nodiscard", &[], 0),
        ] {
            let mismatches = (BCACHEFS.mount_mismatches)(&[asked.to_string()], &shown(found), &BTreeMap::new());
            assert_eq!(mismatches.len(), wrong, "{asked} {found:?}");
        }
    }
}
