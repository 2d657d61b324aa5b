//! bcachefs, a module from outside the kernel since 6.18. What was run is bcachefs as of Linux 6.12, with its tools 1.13.

use super::*;

pub(crate) const BCACHEFS: Filesystem = Filesystem {
    name: "bcachefs",
    about: "copy on write, with checksums, compression and tiers of devices",
    tools: &[("bcachefs", "bcachefs-tools")],
    kernel: Kernel {
        hint: "Linux 6.7 to 6.17 have it; for later ones add the repository apt.bcachefs.org and \
               `apt-get install bcachefs-kernel-dkms`; in a guest, `machine = { kernel = \"trixie\" }` has it",
        ..Kernel::DEFAULT
    },
    // `format` never discards; `no_discard` decides what is discarded while mounted.
    making: Making::by(|spec| make(&["bcachefs", "format", "--force", "--quiet"], &[], spec)),
    variants: VARIANTS,
    // `bcachefs format` 1.13 refuses 16 MiB (ENOSPC_disk_reservation), and takes 24; below 32 hardly a file fits.
    // fs/bcachefs/fs.c of Linux 6.12: s_maxbytes is MAX_LFS_FILESIZE.
    limits: Limits { least: 32 << 20, file: Some(VFS_FILE), ..Limits::DEFAULT },
    facts: &[
        ("bcachefs super block", &["bcachefs", "show-super", DEVICE]),
        ("bcachefs usage", &["bcachefs", "fs", "usage", MOUNT_POINT]),
    ],
    versions: &[("bcachefs-tools", &["bcachefs", "version"])],
    upkeep: &[Upkeep::unmounted("check", &[&["bcachefs", "fsck", "-n", DEVICE]])],
    // bcachefs(8), and the Principles of Operation. Whether it can shrink depends on the version, so it is left out.
    features: Features {
        usual: &[
            CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS, SNAPSHOTS,
        ],
        more: &[CREATION_TIME, ENCRYPTION],
        // Without copy on write there are neither checksums of data nor compression.
        depending: &[
            (CHECKSUMS, |state| !is_asked(state, "nocow") && !is_asked(state, "data_checksum none")),
            (COMPRESSION, |state| !is_asked(state, "nocow")),
            (ENCRYPTION, |state| is_asked(state, "encrypted")),
            (METADATA_CHECKSUMS, |state| !is_asked(state, "metadata_checksum none")),
        ],
        compresses: |_| true,
        ..Features::DEFAULT
    },
    mounting: Mounting {
        // Discarding while mounted is its default (fs/bcachefs/opts.h).
        no_discard: Some("nodiscard"),
        // The kernel shows what differs from its default (fs/bcachefs/fs.c, bch2_show_options): what it does not show is off.
        mismatches: |mounting, asked, shown, _| {
            let lacking = asked.iter().filter(|option| is_lacking(option, shown));
            let lacking =
                lacking.map(|option| format!("asked for mount option {option}, the kernel shows nothing of it"));
            mount_options::mismatches(mounting, asked, shown).into_iter().chain(lacking).collect()
        },
        // The journal is flushed on sync and every 1000 ms (bcachefs(8)).
        weakens: |option| {
            let off = matches!(option, "journal_flush_disabled" | "nochanges" | "no_data_io");
            off || number_above(option, "journal_flush_delay=", 1000)
        },
        ..Mounting::DEFAULT
    },
    tunables: Tunables(include_str!("bcachefs/tunables.toml")),
    ..Filesystem::DEFAULT
};

/// Written as the kernel shows them among the mount's options.
const VARIANTS: &[Variant] = &[
    Variant::new("none", "no compression, as format makes it"),
    Variant::new("lz4", "compressed with lz4: the cheapest").mount(&["compression=lz4"]),
    Variant::new("zstd", "compressed with zstd").mount(&["compression=zstd"]),
];

fn is_lacking(option: &str, shown: &MountOptions) -> bool {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    matches!(name, "compression" | "background_compression") && value != "none" && !shown.contains_key(name)
}

/// True if format or mount has the option, written as `--a=b`, `--a b` or `a=b`; here as `a b`.
fn is_asked(state: &FsState, option: &str) -> bool {
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
            let mismatches = (BCACHEFS.mounting.mismatches)(
                &BCACHEFS.mounting,
                &[asked.to_string()],
                &shown(found),
                &BTreeMap::new(),
            );
            assert_eq!(mismatches.len(), wrong, "{asked} {found:?}");
        }
    }
}
