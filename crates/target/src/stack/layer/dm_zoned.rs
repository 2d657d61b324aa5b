//! dm-zoned: a host-managed disk that can be written anywhere. What is not in order goes to conventional zones first, and is
//! moved to sequential ones when it has time or no room.

use super::{Below, DEVICES, Layer, MAPPER, MAPS, mapping};
use crate::stack::{Action, Step};
use pickfs_core::journal::Undo;
use pickfs_core::plan::Settings;
use pickfs_system::need::Need;

pub(crate) const DM_ZONED: Layer = Layer {
    name: "dm-zoned",
    about: "a host-managed disk that can be written anywhere (dm-zoned; its tools: trixie and sid)",
    settings: &[DEVICES],
    needs: &[
        Need::Root,
        MAPPER,
        MAPS,
        Need::Program { name: "modprobe", package: "kmod" },
        Need::Program { name: "dmzadm", package: "dm-zoned-tools" },
    ],
    modules: &["dm-zoned"],
    versions: &[("dm-zoned-tools", &["dmzadm", "--version"])],
    takes_zones: true,
    steps,
    fact: |below| ("dmsetup table", crate::stack::argv(["dmsetup", "table", below.name])),
    mismatches,
    ..Layer::DEFAULT
};

/// The mapping has the label's name, and is smaller than the disk by what dm-zoned keeps for itself.
fn steps(_: &Settings, below: &Below) -> Vec<Step> {
    let load = Step::run("load dm-zoned", ["modprobe", "dm-zoned"]);
    let steps = below.words().into_iter().enumerate().flat_map(|(index, device)| {
        let name = below.name_of(index);
        [
            Step::run(
                format!("format {device} for dm-zoned"),
                ["dmzadm", "--format", &device, &format!("--label={name}"), "--force"],
            ),
            Step::run(format!("start dm-zoned on {device}"), ["dmzadm", "--start", &device])
                .undo(Undo::RemoveMapping(name.clone())),
            Step::new("use what it gives", Action::UseDevice(mapping(&name))),
        ]
    });
    std::iter::once(load).chain(steps).collect()
}

/// `0 4063232 zoned 254:0`.
fn mismatches(_: &Settings, shown: &str) -> Vec<String> {
    super::differs("a mapping of type", "zoned", shown.split_whitespace().nth(2)).into_iter().collect()
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
