//! LVM's cache (dm-cache): the last device below caches a volume on those before it.

use super::lvm::{VOLUME, command, field, group, listing, use_volume, volume};
use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer {
        steps: |settings, below| cached(settings, below, &["cache", "--cachemode", mode(settings)]),
        fact: |below| {
            let fields =
                "lv_name,segtype,cache_mode,cache_policy,chunk_size,lv_size,pool_lv,cache_total_blocks,devices";
            ("lvs of the cache", listing(below.name, fields))
        },
        mismatches: |settings, shown| {
            let kind = differs("a volume of type", "cache", field(shown, "LVM2_SEGTYPE"));
            vec![kind, differs("cache mode", mode(settings), field(shown, "LVM2_CACHE_MODE"))]
        },
        ..data
    }
}

/// Volume that the cache is made of, metadata and all.
const CACHE: &str = "cache";

fn mode(settings: &Settings) -> &str {
    settings.text("mode").unwrap_or_default()
}

/// A volume on all devices but the last, joined with one on the last; the words are LVM's type of
/// cache and its options.
pub(super) fn cached(settings: &Settings, below: &Below, kind: &[&str]) -> Vec<Step> {
    let devices = below.words();
    let Some((fast, slow)) = devices.split_last() else { return Vec::new() };
    let all = "100%PVS".to_string();
    let size = settings.number("size").map(|bytes| ["--size".to_string(), format!("{bytes}b")]);
    let [by, much] = size.unwrap_or(["--extents".into(), all.clone()]);
    let slow: Vec<&str> = slow.iter().map(String::as_str).collect();
    let (whole, cache) = (format!("{}/{VOLUME}", below.name), format!("{}/{CACHE}", below.name));
    let mut steps = group(below);
    steps.extend([
        volume(VOLUME, &[&["--extents", all.as_str(), below.name], slow.as_slice()].concat()),
        volume(CACHE, &[&by, &much, below.name, fast]),
        // A write cache is refused while it is in use, and dm-cache takes either.
        Step::run("free what the cache is made of", command(&["lvchange", "--activate", "n", &cache])),
        Step::run("put the cache before the volume", command(&join(kind, &cache, &whole))),
        use_volume(below.name),
    ]);
    steps
}

fn join<'a>(kind: &[&'a str], cache: &'a str, whole: &'a str) -> Vec<&'a str> {
    let first = ["lvconvert", "--yes", "--cachevol", cache, "--type"];
    first.into_iter().chain(kind.iter().copied()).chain([whole]).collect()
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
        let join = "run lvconvert --config CONFIG --yes --cachevol pickfsC/cache --type cache --cachemode";
        assert_eq!(
            tail(json!({"mode": "writeback"}), 2),
            [
                format!("{make} data --extents 100%PVS pickfsC /dev/D0"),
                format!("{make} cache --extents 100%PVS pickfsC /dev/D1"),
                "run lvchange --config CONFIG --activate n pickfsC/cache".to_string(),
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
