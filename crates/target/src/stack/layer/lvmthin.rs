//! LVM's thin provisioning (dm-thin): a volume whose chunks get their place in a pool at their
//! first write.

use super::lvm::{VOLUME, command, field, group, listing, use_volume};
use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer { steps, fact, mismatches, ..data }
}

fn fact(below: &Below) -> (&'static str, Argv) {
    let fields = "lv_name,segtype,pool_lv,lv_size,data_percent,thin_count";
    let mut words = listing(below.name, &format!("{fields},chunk_size,zero,discards,lv_health_status"));
    // Chunks and zeros are the pool's.
    words.push(pool(below));
    ("lvs of the thin volume and its pool", words)
}

const POOL: &str = "pool";

fn pool(below: &Below) -> String {
    format!("{}/{POOL}", below.name)
}

/// The volume is smaller than the pool, so that it is the file system that is full first. Its size
/// is a share of the group, which LVM gives to one that is there already.
fn steps(settings: &Settings, below: &Below) -> Vec<Step> {
    let (chunk, pool) = (format!("{}b", chunk(settings)), pool(below));
    let whole = format!("{}/{VOLUME}", below.name);
    let options = ["--poolmetadataspare", "n", "--chunksize", &chunk];
    let zero = ["--zero", if zeroes(settings) { "y" } else { "n" }, below.name];
    let make = ["lvcreate", "--yes", "--type", "thin-pool", "--name", POOL, "--extents", "100%FREE"];
    let one = ["lvcreate", "--yes", "--type", "thin", "--name", VOLUME, "--virtualsize", "4m", "--thinpool", &pool];
    let mut steps = group(below);
    steps.extend([
        Step::run("make a thin pool", command(&[&make[..], &options, &zero].concat())),
        // By itself it lets writes wait for a minute.
        Step::run("have a full pool fail", command(&["lvchange", "--errorwhenfull", "y", &pool])),
        Step::run("make a thin volume", command(&one)),
        Step::run("give it its size", command(&["lvextend", "--extents", "90%PVS", &whole])),
        use_volume(below.name),
    ]);
    steps
}

fn chunk(settings: &Settings) -> u64 {
    settings.number("chunk").unwrap_or_default()
}

fn zeroes(settings: &Settings) -> bool {
    settings.text("zero") != Some("no")
}

fn mismatches(settings: &Settings, shown: &str) -> Vec<Option<String>> {
    let line = |kind: &str| shown.lines().find(|line| field(line, "LVM2_SEGTYPE") == Some(kind)).unwrap_or_default();
    let (volume, pool) = (line("thin"), line("thin-pool"));
    let zero = if zeroes(settings) { "zero" } else { "" };
    let bytes = |line| field(line, "LVM2_LV_SIZE").and_then(|size| size.strip_suffix('B')?.parse::<u64>().ok());
    let sizes = bytes(volume).zip(bytes(pool));
    let fits = sizes.is_some_and(|(volume, pool)| volume <= pool && volume >= pool / 2);
    let misfit = (!fits).then(|| format!("asked for a volume that fits its pool, the kernel shows bytes {sizes:?}"));
    vec![
        differs("a volume in the pool", POOL, field(volume, "LVM2_POOL_LV")),
        differs("chunks of", &format!("{}B", chunk(settings)), field(pool, "LVM2_CHUNK_SIZE")),
        differs("zeros", zero, field(pool, "LVM2_ZERO")),
        differs("health", "", field(pool, "LVM2_LV_HEALTH_STATUS")),
        misfit,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::GROUPS;
    use super::super::example::{mismatches, printed, sentences};
    use serde_json::json;

    #[test]
    fn a_pool_and_a_smaller_volume_in_it() {
        let said = sentences("lvmthin", json!({"chunk": 1 << 17, "zero": "no"}), 1);
        let said: Vec<String> = said[2..].iter().map(|line| line.replace(GROUPS, "CONFIG")).collect();
        assert_eq!(
            said,
            [
                "run lvcreate --config CONFIG --yes --type thin-pool --name pool --extents 100%FREE \
                 --poolmetadataspare n --chunksize 131072b --zero n pickfsC",
                "run lvchange --config CONFIG --errorwhenfull y pickfsC/pool",
                "run lvcreate --config CONFIG --yes --type thin --name data --virtualsize 4m --thinpool pickfsC/pool",
                "run lvextend --config CONFIG --extents 90%PVS pickfsC/data",
                "device /dev/mapper/pickfsC-data",
            ]
        );
    }

    #[test]
    fn chunks_zeros_and_sizes_are_read_back() {
        let printed = printed("lvs-thin");
        let wrong = |value, printed: &str| mismatches("lvmthin", value, printed).len();
        assert_eq!(mismatches("lvmthin", json!({"chunk": 65536}), &printed), Vec::<String>::new());
        assert_eq!(wrong(json!({"chunk": 131_072}), &printed), 1);
        assert_eq!(wrong(json!({"chunk": 65536, "zero": "no"}), &printed), 1);
        // As an early form of the steps left it: a volume of two extents.
        let small = printed.replacen("LVM2_LV_SIZE='", "LVM2_LV_SIZE='8388608B' OLD='", 1);
        assert_eq!(wrong(json!({"chunk": 65536}), &small), 1);
        assert_eq!(wrong(json!({"chunk": 65536}), ""), 5);
    }
}
