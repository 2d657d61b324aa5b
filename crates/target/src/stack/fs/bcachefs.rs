//! bcachefs, of which the kernel shows what differs from its default.

use super::*;

pub(super) fn with_code(data: Filesystem) -> Filesystem {
    let features = Features { depending: DEPENDING, compresses: |_| true, ..data.features };
    Filesystem { features, mounting: Mounting { mismatches, ..data.mounting }, ..data }
}

/// Without copy on write there are neither checksums of data nor compression.
const DEPENDING: &[(&str, By)] = &[
    (CHECKSUMS, By::Code(|state| !is_asked(state, "nocow") && !is_asked(state, "data_checksum none"))),
    (COMPRESSION, By::Code(|state| !is_asked(state, "nocow"))),
    (ENCRYPTION, By::Code(|state| is_asked(state, "encrypted"))),
    (METADATA_CHECKSUMS, By::Code(|state| !is_asked(state, "metadata_checksum none"))),
];

/// What the kernel does not show is off (fs/bcachefs/fs.c, bch2_show_options).
fn mismatches(mounting: &Mounting, asked: &[String], shown: &MountOptions, _: &Facts) -> Vec<String> {
    let lacking = asked.iter().filter(|option| is_lacking(option, shown));
    let lacking = lacking.map(|option| format!("asked for mount option {option}, the kernel does not show it"));
    mount_options::mismatches(mounting, asked, shown).into_iter().chain(lacking).collect()
}

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
            let mounting = &find("bcachefs").expect("a driver").mounting;
            let mismatches = mismatches(mounting, &[asked.to_string()], &shown(found), &BTreeMap::new());
            assert_eq!(mismatches.len(), wrong, "{asked} {found:?}");
        }
    }
}
