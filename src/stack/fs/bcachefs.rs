//! bcachefs, a module from outside the kernel since 6.18.

use super::feature::{
    CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, CREATION_TIME, ENCRYPTION, FsState, GROW, METADATA_CHECKSUMS,
    MULTI_DEVICE, REFLINKS, SNAPSHOTS, changed,
};
use super::{DEVICE, Filesystem, MOUNT_POINT, make, number_above};

pub const BCACHEFS: Filesystem = Filesystem {
    name: "bcachefs",
    about: "copy on write, with checksums, compression and tiers of devices",
    tools: &[("bcachefs", "bcachefs-tools")],
    hint: "Linux 6.7 to 6.17 have it; for later ones add the repository apt.bcachefs.org and \
           `apt-get install bcachefs-kernel-dkms`",
    // `format` never discards; what the drive is told while mounted is `no_discard`'s.
    mkfs: |spec| make(&["bcachefs", "format", "--force", "--quiet"], &[], spec),
    // Not measured. The format wants 64 buckets of some 256 KiB, and a journal and reserves come on top.
    minimum_size: 256 << 20,
    // Discarding while mounted is its default (fs/bcachefs/opts.h).
    no_discard: Some("nodiscard"),
    facts: &[
        ("bcachefs super block", &["bcachefs", "show-super", DEVICE]),
        ("bcachefs usage", &["bcachefs", "fs", "usage", MOUNT_POINT]),
    ],
    versions: &[("bcachefs-tools", &["bcachefs", "version"])],
    // bcachefs(8), and the Principles of Operation. Whether it can shrink depends on the version, so it is left out.
    features: &[CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS, SNAPSHOTS],
    more_features: &[CREATION_TIME, ENCRYPTION],
    features_in_effect,
    // The journal is flushed on sync and every 1000 ms (bcachefs(8)).
    weakens: |option| {
        let off = matches!(option, "journal_flush_disabled" | "nochanges" | "no_data_io");
        off || number_above(option, "journal_flush_delay=", 1000)
    },
    ..Filesystem::DEFAULT
};

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

/// Of format or of mount, written as `--a=b`, `--a b` or `a=b`; here as `a b`.
fn asked(state: &FsState, option: &str) -> bool {
    let plain = |words: &[String]| {
        let words = words.iter().map(|word| word.trim_start_matches('-').replace('=', " "));
        format!(" {} ", words.collect::<Vec<_>>().join(" "))
    };
    [state.mkfs, state.mount].iter().any(|words| plain(words).contains(&format!(" {option} ")))
}
