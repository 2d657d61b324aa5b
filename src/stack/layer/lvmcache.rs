//! LVM's cache (dm-cache): the last device below caches a volume on those before it.

use super::lvm::{PROGRAM, VERSIONS, VOLUME, command, field, group, listing, use_volume, volume};
use super::{Below, DEVICES, Layer, MAPS, WIPES, differs};
use crate::need::Need;
use crate::plan::{Setting, SettingKind, Settings};
use crate::stack::Step;

pub const LVMCACHE: Layer = Layer {
    name: "lvmcache",
    about: "one logical volume of LVM on the devices below but the last, which is its cache",
    settings: &[
        Setting {
            name: "mode",
            kind: SettingKind::Choice(&["writethrough", "writeback"]),
            default: Some("writethrough"),
            about: "whether a write waits for the slow devices too, or for the cache alone",
        },
        Setting {
            name: "size",
            kind: SettingKind::Size,
            default: None,
            about: "of the cache; by default all of its device",
        },
        DEVICES,
    ],
    // The programs that check a cache's metadata are called when it is taken down, too.
    needs: &[
        Need::Root,
        PROGRAM,
        MAPS,
        WIPES,
        Need::Program { name: "cache_check", package: "thin-provisioning-tools" },
    ],
    versions: VERSIONS,
    joins: true,
    least_devices: |_| 2,
    steps,
    fact: |below| {
        let fields = "lv_name,segtype,cache_mode,cache_policy,chunk_size,lv_size,pool_lv,cache_total_blocks,devices";
        ("lvs of the cache", listing(below.name, fields))
    },
    mismatches: |settings, shown| {
        let kind = differs("a volume of type", "cache", field(shown, "LVM2_SEGTYPE"));
        let mode = settings.text("mode").unwrap_or_default();
        kind.into_iter().chain(differs("cache mode", mode, field(shown, "LVM2_CACHE_MODE"))).collect()
    },
    ..Layer::DEFAULT
};

/// Volume that the cache is made of, metadata and all.
const CACHE: &str = "cache";

fn steps(settings: &Settings, below: &Below) -> Vec<Step> {
    let devices = below.words();
    let Some((fast, slow)) = devices.split_last() else { return Vec::new() };
    let all = "100%PVS".to_string();
    let size = settings.number("size").map(|bytes| ["--size".to_string(), format!("{bytes}b")]);
    let [by, much] = size.unwrap_or(["--extents".into(), all.clone()]);
    let slow: Vec<&str> = slow.iter().map(String::as_str).collect();
    let mode = settings.text("mode").unwrap_or_default();
    let (whole, cache) = (format!("{}/{VOLUME}", below.name), format!("{}/{CACHE}", below.name));
    let join = ["lvconvert", "--yes", "--type", "cache", "--cachevol", &cache, "--cachemode", mode, &whole];
    let mut steps = group(below);
    steps.extend([
        volume(VOLUME, &[&["--extents", all.as_str(), below.name], slow.as_slice()].concat()),
        volume(CACHE, &[&by, &much, below.name, fast]),
        Step::run("put the cache before the volume", command(&join)),
        use_volume(below.name),
    ]);
    steps
}

#[cfg(test)]
mod tests {
    use super::super::GROUPS;
    use super::super::example::{mismatches, printed, sentences};
    use serde_json::json;

    #[test]
    fn the_last_device_caches_those_before() {
        let tail = |value, devices| {
            let said = sentences("lvmcache", value, devices);
            said[devices + 1..].iter().map(|line| line.replace(GROUPS, "CONFIG")).collect::<Vec<_>>()
        };
        let make = "run lvcreate --config CONFIG --yes --wipesignatures y --zero y --name";
        let join = "run lvconvert --config CONFIG --yes --type cache --cachevol pickfsC/cache --cachemode";
        assert_eq!(
            tail(json!({"mode": "writeback"}), 2),
            [
                format!("{make} data --extents 100%PVS pickfsC /dev/D0"),
                format!("{make} cache --extents 100%PVS pickfsC /dev/D1"),
                format!("{join} writeback pickfsC/data"),
                "device /dev/mapper/pickfsC-data".to_string(),
            ]
        );
        let small = tail(json!({"mode": "writethrough", "size": 1 << 26}), 3);
        assert_eq!(small[0], format!("{make} data --extents 100%PVS pickfsC /dev/D0 /dev/D1"));
        assert_eq!(small[1], format!("{make} cache --size 67108864b pickfsC /dev/D2"));
    }

    #[test]
    fn the_mode_is_read_back() {
        let printed = printed("lvs-cache");
        assert_eq!(mismatches("lvmcache", json!({"mode": "writeback"}), &printed), Vec::<String>::new());
        assert_eq!(mismatches("lvmcache", json!({"mode": "writethrough"}), &printed).len(), 1);
        assert_eq!(mismatches("lvmcache", json!({"mode": "writeback"}), "").len(), 2);
    }
}
