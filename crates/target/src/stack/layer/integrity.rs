//! dm-integrity: a checksum of every sector, with a journal, so that a device says when it gives
//! back something else.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer {
        steps: |settings, below| below.each(|device, name| one(settings, device, name)),
        fact: |below| ("integritysetup status", argv(["integritysetup", "status", below.name])),
        mismatches: |settings, shown| vec![differs("checksums by", algorithm(settings), value(shown, "integrity"))],
        ..data
    }
}

fn algorithm(settings: &Settings) -> &str {
    settings.text("algorithm").unwrap_or_default()
}

/// Formatting writes every sector, as one without its checksum could not be read; the kernel would
/// do that during the work.
fn one(settings: &Settings, device: &str, name: &str) -> Vec<Step> {
    let algorithm = algorithm(settings);
    let format = ["integritysetup", "format", "--batch-mode", "--integrity", algorithm, device];
    let [open, used] = open(device, name, argv(["integritysetup", "open", "--integrity", algorithm, device, name]));
    vec![wipe(device), Step::run(format!("put checksums on {device}"), format), open, used]
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, printed, sentences};
    use serde_json::json;

    #[test]
    fn checksums_are_written_before_use() {
        assert_eq!(
            sentences("integrity", json!({"algorithm": "sha256"}), 1),
            [
                "run wipefs --all --force --quiet /dev/D0",
                "run integritysetup format --batch-mode --integrity sha256 /dev/D0",
                "run integritysetup open --integrity sha256 /dev/D0 pickfsC; back: remove mapping pickfsC",
                "device /dev/mapper/pickfsC",
            ]
        );
    }

    #[test]
    fn the_algorithm_is_read_back() {
        let printed = printed("integritysetup-status");
        for (algorithm, wrong) in [("crc32c", 0), ("sha256", 1)] {
            assert_eq!(mismatches("integrity", json!({"algorithm": algorithm}), &printed).len(), wrong);
        }
        assert_eq!(mismatches("integrity", json!({"algorithm": "crc32c"}), "").len(), 1);
    }
}
