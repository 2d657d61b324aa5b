//! dm-writecache: the last device below takes the writes of those before it, and reads are not
//! cached.

use super::lvm::{field, listing};
use super::lvmcache::cached;
use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer {
        steps: |settings, below| cached(settings, below, &["writecache"]),
        fact: |below| {
            let fields =
                "lv_name,segtype,writecache_block_size,writecache_total_blocks,writecache_error,lv_size,devices";
            ("lvs of the write cache", listing(below.name, fields))
        },
        mismatches: |_, shown| {
            let kind = differs("a volume of type", "writecache", field(shown, "LVM2_SEGTYPE"));
            vec![kind, differs("write errors", "0", field(shown, "LVM2_WRITECACHE_ERROR"))]
        },
        ..data
    }
}

#[cfg(test)]
mod tests {
    use super::super::GROUPS;
    use super::super::example::{mismatches, sentences};
    use serde_json::json;

    #[test]
    fn the_last_device_takes_the_writes_of_those_before() {
        let said = sentences("writecache", json!({"size": 1 << 26}), 3);
        let tail: Vec<String> = said[4..].iter().map(|line| line.replace(GROUPS, "CONFIG")).collect();
        let make = "run lvcreate --config CONFIG --yes --wipesignatures y --zero y --name";
        assert_eq!(
            tail,
            [
                format!("{make} data --extents 100%PVS pickfsC /dev/D0 /dev/D1"),
                format!("{make} cache --size 67108864b pickfsC /dev/D2"),
                "run lvchange --config CONFIG --activate n pickfsC/cache".into(),
                "run lvconvert --config CONFIG --yes --cachevol pickfsC/cache --type writecache pickfsC/data".into(),
                "device /dev/mapper/pickfsC-data".to_string(),
            ]
        );
    }

    #[test]
    fn the_type_and_errors_are_read_back() {
        let shown = |kind: &str, error: u32| format!("LVM2_SEGTYPE='{kind}' LVM2_WRITECACHE_ERROR='{error}'");
        for (printed, wrong) in [(shown("writecache", 0), 0), (shown("cache", 0), 1), (shown("writecache", 5), 1)] {
            assert_eq!(mismatches("writecache", json!({}), &printed).len(), wrong, "{printed}");
        }
        assert_eq!(mismatches("writecache", json!({}), "").len(), 2);
    }
}
