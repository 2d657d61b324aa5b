//! dm-log-writes: the second device below gets a log of all that is written to the first. A second
//! record of what a disk was given, to compare with the recording of a simulated one.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    let mismatches = |_: &Settings, shown: &str| mapping_differs("log-writes", shown);
    Layer {
        steps: |_, below| steps(below),
        fact: |below| table("dmsetup table of logwrites", below),
        mismatches,
        ..data
    }
}

fn steps(below: &Below) -> Vec<Step> {
    let [device, log] = &below.words()[..] else { return Vec::new() };
    vec![map(format!("log the writes of {device} on {log}"), device, below.name, &["log-writes", device, log])]
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
