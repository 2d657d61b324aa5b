//! dm-log-writes: the second device below gets a log of all that is written to the first. A second witness of what a disk was
//! given, beside the recording of a simulated one.

use super::{Below, Layer, MAPPER, MAPS};
use crate::stack::{Action, Step, argv};
use pickfs_core::journal::Undo;
use pickfs_system::need::Need;

pub(crate) const LOGWRITES: Layer = Layer {
    name: "logwrites",
    about: "a log of all writes on the last of two devices below, a second witness for power cuts (dm-log-writes)",
    needs: &[Need::Root, MAPPER, MAPS],
    modules: &["dm-log-writes"],
    versions: &[("dmsetup", &["dmsetup", "version"])],
    joins: true,
    least_devices: |_| 2,
    most_devices: Some(2),
    steps: |_, below| steps(below),
    fact: |below| ("dmsetup table of logwrites", argv(["dmsetup", "table", below.name])),
    mismatches: |_, shown| {
        super::differs("a mapping", "log-writes", shown.split_whitespace().nth(2)).into_iter().collect()
    },
    passes: true,
    logs: true,
    ..Layer::DEFAULT
};

fn steps(below: &Below) -> Vec<Step> {
    let [device, log] = below.devices else { return Vec::new() };
    let words = argv(["log-writes", &device.display().to_string(), &log.display().to_string()]);
    let map = Action::MapWhole { device: device.clone(), name: below.name.to_string(), words };
    let says = format!("log the writes of {} on {}", device.display(), log.display());
    vec![Step::new(says, map).undo(Undo::RemoveMapping(below.name.to_string()))]
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, sentences};
    use serde_json::json;

    #[test]
    fn the_last_device_has_the_log() {
        let said = "map /dev/D0 as pickfsC: log-writes /dev/D0 /dev/D1; back: remove mapping pickfsC";
        assert_eq!(sentences("logwrites", json!({}), 2), [said]);
    }

    #[test]
    fn the_kernels_table_is_read() {
        for (printed, wrong) in [("0 2097152 log-writes 252:0 252:1", 0), ("0 2097152 linear 252:0 0", 1), ("", 1)] {
            assert_eq!(mismatches("logwrites", json!({}), printed).len(), wrong, "{printed}");
        }
    }
}
