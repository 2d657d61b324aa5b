//! bcachefs, a module from outside the kernel since 6.18.

use super::feature::{
    CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, CREATION_TIME, ENCRYPTION, Found, GROW, METADATA_CHECKSUMS,
    MULTI_DEVICE, REFLINKS, SNAPSHOTS, changed,
};
use super::{Argv, Filesystem, Wish, argv, make, number_above};

pub struct Bcachefs;

impl Filesystem for Bcachefs {
    fn name(&self) -> &'static str {
        "bcachefs"
    }

    fn about(&self) -> &'static str {
        "copy on write, with checksums, compression and tiers of devices"
    }

    /// `format` never discards; what the drive is told while mounted is [`Filesystem::no_discard`]'s.
    fn mkfs(&self, wish: &Wish) -> Argv {
        make(&["bcachefs", "format", "--force", "--quiet"], wish)
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("bcachefs", "bcachefs-tools")]
    }

    fn hint(&self) -> &'static str {
        "Linux 6.7 to 6.17 have it; for later ones add the repository apt.bcachefs.org and \
         `apt-get install bcachefs-kernel-dkms`"
    }

    /// Not measured. The format wants 64 buckets of some 256 KiB, and a journal and reserves come on top.
    fn minimum_size(&self) -> u64 {
        256 << 20
    }

    /// Discarding while mounted is its default (fs/bcachefs/opts.h).
    fn no_discard(&self) -> Option<&'static str> {
        Some("nodiscard")
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![
            ("bcachefs super block", argv(["bcachefs", "show-super", &wish.device()])),
            ("bcachefs usage", argv(["bcachefs", "fs", "usage", &wish.mount_point()])),
        ]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("bcachefs-tools", argv(["bcachefs", "version"]))]
    }

    /// bcachefs(8), and the Principles of Operation. Whether it can shrink depends on the version, so it is left out.
    fn features(&self) -> &'static [&'static str] {
        &[CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS, SNAPSHOTS]
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CREATION_TIME, ENCRYPTION]
    }

    /// Without copy on write there are neither checksums of data nor compression.
    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let off = |option: &str| asked(found, &format!("{option} none"));
        let mut without: Vec<&str> = Vec::new();
        if asked(found, "nocow") || off("data_checksum") {
            without.push(CHECKSUMS);
        }
        if asked(found, "nocow") {
            without.push(COMPRESSION);
        }
        if off("metadata_checksum") {
            without.push(METADATA_CHECKSUMS);
        }
        let with: &[&str] = if asked(found, "encrypted") { &[ENCRYPTION] } else { &[] };
        changed(self.features(), &without, with)
    }

    /// The journal is flushed on sync and every 1000 ms (bcachefs(8)).
    fn weakens(&self, option: &str) -> bool {
        let off = matches!(option, "journal_flush_disabled" | "nochanges" | "no_data_io");
        off || number_above(option, "journal_flush_delay=", 1000)
    }
}

/// Of format or of mount, written as `--a=b`, `--a b` or `a=b`; here as `a b`.
fn asked(found: &Found, option: &str) -> bool {
    let plain = |words: &[String]| {
        let words = words.iter().map(|word| word.trim_start_matches('-').replace('=', " "));
        format!(" {} ", words.collect::<Vec<_>>().join(" "))
    };
    [found.mkfs, found.mount].iter().any(|words| plain(words).contains(&format!(" {option} ")))
}
