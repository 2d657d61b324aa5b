//! LVM's VDO (dm-vdo, in Linux since 6.9): blocks that are there already are not stored again,
//! others are compressed.

use super::lvm::{VOLUME, command, field, group, listing, use_volume};
use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer { steps, fact, mismatches, ..data }
}

fn fact(below: &Below) -> (&'static str, Argv) {
    let fields = "lv_name,segtype,pool_lv,lv_size,vdo_compression,vdo_deduplication,vdo_slab_size";
    let states = "vdo_compression_state,vdo_index_state,vdo_operating_mode,vdo_used_size";
    ("lvs of the VDO volume", listing(below.name, &format!("{fields},{states}")))
}

fn is_on(settings: &Settings, name: &str) -> bool {
    settings.text(name) != Some("no")
}

fn slab(settings: &Settings) -> u64 {
    settings.number("slab").unwrap_or_default()
}

/// By itself the volume is as large as what the pool can hold of data that neither repeats nor
/// compresses.
fn steps(settings: &Settings, below: &Below) -> Vec<Step> {
    let flag = |name| if is_on(settings, name) { "y" } else { "n" };
    let slabs = format!("slab_size_mb={}", slab(settings) >> 20);
    let make =
        ["lvcreate", "--yes", "--type", "vdo", "--name", VOLUME, "--extents", "100%FREE", "--vdosettings", &slabs];
    let switches = ["--compression", flag("compression"), "--deduplication", flag("deduplication"), below.name];
    let mut steps = group(below);
    let make = Step::run("make a volume with VDO", command(&[&make[..], &switches].concat()));
    steps.extend([make, use_volume(below.name)]);
    steps
}

/// The kernel opens the index when the volume is there already, and until then stores what repeats
/// again.
fn mismatches(settings: &Settings, shown: &str) -> Vec<Option<String>> {
    let index = field(shown, "LVM2_VDO_INDEX_STATE").map(|state| if state == "opening" { "online" } else { state });
    let word = |name, on, off| if is_on(settings, name) { on } else { off };
    vec![
        differs("a volume of type", "vdo", field(shown, "LVM2_SEGTYPE")),
        differs("compression", word("compression", "online", "offline"), field(shown, "LVM2_VDO_COMPRESSION_STATE")),
        differs("an index that is", word("deduplication", "online", "offline"), index),
        differs("slabs of", &format!("{}B", slab(settings)), field(shown, "LVM2_VDO_SLAB_SIZE")),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::GROUPS;
    use super::super::example::{mismatches, printed, sentences};
    use serde_json::json;

    #[test]
    fn a_volume_with_its_switches() {
        let said = sentences("lvmvdo", json!({"slab": 1 << 27, "deduplication": "no"}), 1);
        assert_eq!(
            said[2].replace(GROUPS, "CONFIG"),
            "run lvcreate --config CONFIG --yes --type vdo --name data --extents 100%FREE --vdosettings \
             slab_size_mb=128 --compression y --deduplication n pickfsC"
        );
        assert_eq!(said[3], "device /dev/mapper/pickfsC-data");
    }

    #[test]
    fn both_switches_and_slabs_are_read_back() {
        let printed = printed("lvs-vdo");
        let wrong = |value, printed: &str| mismatches("lvmvdo", value, printed).len();
        assert_eq!(mismatches("lvmvdo", json!({"slab": 1 << 27}), &printed), Vec::<String>::new());
        assert_eq!(wrong(json!({"slab": 1 << 31}), &printed), 1);
        assert_eq!(wrong(json!({"slab": 1 << 27, "compression": "no", "deduplication": "no"}), &printed), 2);
        assert_eq!(wrong(json!({"slab": 1 << 27}), ""), 4);
    }
}
