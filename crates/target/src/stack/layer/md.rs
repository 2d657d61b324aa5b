//! Linux's software RAID (md) over all devices below.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer {
        // md takes two for each level but 6; of these, one with parity is a mirror.
        least_by_settings: |settings| match level(settings) {
            "raid5" => 3,
            "raid6" => 4,
            _ => 2,
        },
        steps,
        fact: |below| ("mdadm --detail", argv(["mdadm", "--detail", &node(below.name).display().to_string()])),
        mismatches,
        take_down: Some(&ARRAY),
        ..data
    }
}

const ARRAY: TakeDown = TakeDown {
    word: "stop_array",
    named: Named::ByLayer(|name| node(name).display().to_string()),
    removals: take_down,
};

/// Without their superblocks, as udev would start the array anew where it sees them; also of an
/// array that was stopped before, or only begun. A member's number may have been given to another
/// device since: only what says that it is of this array is changed.
fn take_down(remains: &Remains) -> Vec<Removal> {
    let node = remains.name.to_string();
    let stop = Act::Run(argv(["mdadm", "--stop", &node]));
    let stop = Removal { while_there: There::Lasting(vec![node.clone().into()]), act: stop };
    let forget = remains.members.iter().map(|member| {
        let (member, node) = (member.display().to_string(), node.clone());
        let examine = argv(["mdadm", "--examine", "--export", &member]);
        let is_member = Box::new(move |shown: &str| is_member_of(shown, &node));
        let act = Act::Run(argv(["mdadm", "--zero-superblock", &member]));
        Removal { while_there: There::Listed(examine, is_member), act }
    });
    [stop].into_iter().chain(forget).collect()
}

/// `MD_NAME=HOST:NAME`, or without the host.
fn is_member_of(examined: &str, node: &str) -> bool {
    let name = examined.lines().find_map(|line| line.strip_prefix("MD_NAME="));
    name.is_some_and(|name| name.rsplit(':').next() == node.rsplit('/').next())
}

/// `--assume-clean`: only blocks that were never written are out of step. Which devices a write
/// goes to, and what is read for its parity, depends on the array's shape and not on what is there,
/// so times are those of an array in step; a resync during the work would be charged to it.
fn steps(settings: &Settings, below: &Below) -> Vec<Step> {
    let node = node(below.name);
    let devices = below.words();
    let shown = node.display().to_string();
    let mut words = argv(["mdadm", "--create", &shown, "--run", "--assume-clean", "--metadata", "1.2"]);
    words.extend(argv(["--level", level(settings), "--raid-devices", &devices.len().to_string()]));
    if let Some(chunk) = chunk(settings) {
        words.extend(argv(["--chunk", &format!("{}K", chunk >> 10)]));
    }
    if let Some(bitmap) = bitmap(settings) {
        words.extend(argv(["--bitmap", bitmap]));
    }
    words.extend(devices.iter().cloned());
    let make = Step::run("make an array", words).undo(ARRAY.of_layer(shown, below.devices));
    let wipes = devices.iter().map(|device| wipe(device));
    wipes.chain([make, Step::new("use the array", Action::UseDevice(node))]).collect()
}

fn mismatches(settings: &Settings, shown: &str) -> Vec<Option<String>> {
    let state = value(shown, "State").unwrap_or("nothing");
    // "active" is one that is being written just now.
    let whole = state.split(", ").all(|word| matches!(word, "clean" | "active"));
    let state = (!whole).then(|| format!("asked for a whole array, the kernel shows {state}"));
    let chunk = chunk(settings)
        .and_then(|chunk| differs("chunk size", &format!("{}K", chunk >> 10), value(shown, "Chunk Size")));
    let asked = bitmap(settings).filter(|asked| *asked == "internal");
    let bitmap = asked.and_then(|asked| differs("bitmap", asked, value(shown, "Intent Bitmap").map(internal)));
    let level = differs("level", level(settings), value(shown, "Raid Level"));
    vec![level, chunk, bitmap, state]
}

fn internal(shown: &str) -> &str {
    if shown.eq_ignore_ascii_case("internal") { "internal" } else { shown }
}

fn level(settings: &Settings) -> &str {
    settings.text("level").unwrap_or_default()
}

/// A mirror has none.
fn chunk(settings: &Settings) -> Option<u64> {
    settings.number("chunk").filter(|_| level(settings) != "raid1")
}

/// What is only striped cannot get out of step.
fn bitmap(settings: &Settings) -> Option<&str> {
    settings.text("bitmap").filter(|_| level(settings) != "raid0")
}

/// mdadm makes a node that the kernel numbers, and this link to it.
fn node(name: &str) -> PathBuf {
    Path::new("/dev/md").join(name)
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, printed, sentences};
    use serde_json::json;

    #[test]
    fn an_array_is_made_as_its_level_needs() {
        let made = |value, devices| sentences("md", value, devices)[devices..].to_vec();
        let first = "run mdadm --create /dev/md/pickfsC --run --assume-clean --metadata 1.2 --level";
        let back = "back: stop array /dev/md/pickfsC";
        for (level, devices, words) in [
            ("raid0", 2, "--chunk 64K"),
            ("raid1", 2, "--bitmap internal"),
            ("raid5", 3, "--chunk 64K --bitmap internal"),
        ] {
            let value = json!({"level": level, "chunk": 65536, "bitmap": "internal"});
            let all = ["/dev/D0", "/dev/D1", "/dev/D2"][..devices].join(" ");
            assert_eq!(
                made(value, devices),
                [
                    format!("{first} {level} --raid-devices {devices} {words} {all}; {back}"),
                    "device /dev/md/pickfsC".to_string(),
                ]
            );
        }
    }

    #[test]
    fn only_members_of_the_array_are_forgotten() {
        let said = "MD_LEVEL=raid1\nMD_DEVICES=2\nMD_NAME=host:pickfsa1l0\nMD_UUID=1:2:3:4\n";
        for (said, name, is_member) in [
            (said, "pickfsa1l0", true),
            ("MD_NAME=pickfsa1l0", "pickfsa1l0", true),
            (said, "pickfsa1l", false),
            (said, "a1l0", false),
            ("", "pickfsa1l0", false),
        ] {
            assert_eq!(super::is_member_of(said, &format!("/dev/md/{name}")), is_member, "{name}");
        }
    }

    #[test]
    fn the_array_is_read_back() {
        let printed = printed("mdadm-detail-raid10");
        let asked = |level: &str, chunk: u64| json!({"level": level, "chunk": chunk, "bitmap": "internal"});
        assert_eq!(mismatches("md", asked("raid10", 512 << 10), &printed), Vec::<String>::new());
        for (value, printed, wrong) in [
            (asked("raid5", 512 << 10), printed.clone(), 1),
            (asked("raid10", 64 << 10), printed.clone(), 1),
            (asked("raid10", 512 << 10), printed.replace("clean", "clean, degraded, recovering"), 1),
            (asked("raid10", 512 << 10), printed.replace("Internal", "None"), 1),
            (asked("raid10", 512 << 10), String::new(), 4),
        ] {
            assert_eq!(mismatches("md", value, &printed).len(), wrong, "{printed}");
        }
    }
}
