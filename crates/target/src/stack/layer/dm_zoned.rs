//! dm-zoned: a host-managed disk that can be written anywhere. What is not in order goes to
//! conventional zones first, and is moved to sequential ones when it has time or no room.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    // `0 4063232 zoned 254:0`.
    let mismatches = |_: &Settings, shown: &str| mapping_differs("zoned", shown);
    Layer { steps, fact: |below| table("dmsetup table", below), mismatches, ..data }
}

/// The mapping has the label's name, and is smaller than the disk by what dm-zoned keeps for
/// itself.
fn steps(_: &Settings, below: &Below) -> Vec<Step> {
    let load = Step::run("load dm-zoned", ["modprobe", "dm-zoned"]);
    let steps = below.each(|device, name| {
        let format = ["dmzadm", "--format", device, &format!("--label={name}"), "--force"];
        let format = Step::run(format!("format {device} for dm-zoned"), format);
        let [start, used] = open(device, name, argv(["dmzadm", "--start", device]));
        vec![format, start, used]
    });
    std::iter::once(load).chain(steps).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, sentences};
    use serde_json::json;

    #[test]
    fn each_disk_is_formatted_and_started() {
        assert_eq!(
            sentences("dm-zoned", json!({}), 2),
            [
                "run modprobe dm-zoned",
                "run dmzadm --format /dev/D0 --label=pickfsC --force",
                "run dmzadm --start /dev/D0; back: remove mapping pickfsC",
                "device /dev/mapper/pickfsC",
                "run dmzadm --format /dev/D1 --label=pickfsCd1 --force",
                "run dmzadm --start /dev/D1; back: remove mapping pickfsCd1",
                "device /dev/mapper/pickfsCd1",
            ]
        );
    }

    #[test]
    fn the_kernels_table_is_held_against_the_plan() {
        for (shown, wrong) in [("0 3670016 zoned 254:0", 0), ("0 3670016 linear 254:0 0", 1), ("", 1)] {
            assert_eq!(mismatches("dm-zoned", json!({}), shown).len(), wrong, "{shown}");
        }
    }
}
