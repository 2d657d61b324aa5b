//! dm-switch with one path: it passes on every request but flushes, which device-mapper drops for
//! it. A known answer for power cuts: what is synced on it may be lost.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    let mismatches = |_: &Settings, shown: &str| mapping_differs("switch", shown);
    Layer { steps: |_, below| steps(below), fact: |below| table("dmsetup table of noflush", below), mismatches, ..data }
}

/// Sectors that have one path; all have the same.
const REGION: &str = "2048";

/// `switch_ctr` in drivers/md/dm-switch.c sets no `num_flush_bios`, so `dm_table_supports_flush`
/// finds none that wants flushes, and the kernel takes what is above for a disk without a volatile
/// cache.
fn steps(below: &Below) -> Vec<Step> {
    below.each(|device, name| {
        vec![map(format!("lose the flushes of {device}"), device, name, &["switch", "1", REGION, "0", device, "0"])]
    })
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, sentences};
    use serde_json::json;

    #[test]
    fn each_device_has_one_path() {
        assert_eq!(
            sentences("noflush", json!({}), 2),
            [
                "map /dev/D0 as pickfsC: switch 1 2048 0 /dev/D0 0; back: remove mapping pickfsC",
                "map /dev/D1 as pickfsCd1: switch 1 2048 0 /dev/D1 0; back: remove mapping pickfsCd1",
            ]
        );
    }

    #[test]
    fn the_kernels_table_is_read() {
        for (printed, wrong) in [("0 2097152 switch 1 2048 0 252:0 0", 0), ("0 2097152 linear 252:0 0", 1), ("", 1)] {
            assert_eq!(mismatches("noflush", json!({}), printed).len(), wrong, "{printed}");
        }
    }
}
