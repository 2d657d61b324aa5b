//! bcache: the last device below caches the one before it.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer { steps, fact, mismatches, take_down: Some(&SET), ..data }
}

fn fact(below: &Below) -> (&'static str, Argv) {
    let settings = ["cache_mode", "state", "sequential_cutoff", "writeback_percent"];
    let files = settings.map(|name| backed(below.name).join(name).display().to_string());
    ("bcache", argv(["grep", "--with-filename", ""].into_iter().map(String::from).chain(files)))
}

const SET: TakeDown = TakeDown { word: "stop_cache", named: Named::ByLayer(uuid), removals: take_down };

/// The set stops, and what it caches with it: what is dirty stays in the cache (`detach` would
/// write it), as nothing of it is wanted any more. The kernel lets go of members a while after.
/// They keep their numbers, which other devices may have by now: only one that says that it is of
/// this set is changed.
fn take_down(remains: &Remains) -> Vec<Removal> {
    let set = Path::new(SETS).join(remains.name);
    let stop = Removal { act: Act::Write(set.join("stop"), "1"), while_there: There::File(set) };
    let forget = remains.members.iter().map(|member| {
        let (member, uuid) = (member.display().to_string(), remains.name.to_string());
        let is_member = Box::new(move |shown: &str| is_of_set(shown, &uuid));
        let there = There::Listed(argv(["bcache-super-show", &member]), is_member);
        Removal { while_there: there, act: Act::Run(argv(["wipefs", "--all", "--quiet", &member])) }
    });
    [stop].into_iter().chain(forget).collect()
}

/// `cset.uuid\t\tUUID`.
fn is_of_set(shown: &str, uuid: &str) -> bool {
    shown.lines().any(|line| line.strip_prefix("cset.uuid").is_some_and(|found| found.trim() == uuid))
}

/// Where the kernel shows the sets that stand.
const SETS: &str = "/sys/fs/bcache";

/// What the package has udev call for each device that belongs to a set: it hands a name to the
/// kernel.
const REGISTER: &str = "/usr/lib/udev/bcache-register";

/// The cache first: a device that finds its set is in use at once.
fn steps(settings: &Settings, below: &Below) -> Vec<Step> {
    let [slow, fast] = &below.words()[..] else { return Vec::new() };
    let set = uuid(below.name);
    let bucket = settings.number("bucket").unwrap_or_default().to_string();
    let make = ["make-bcache", "--wipe-bcache", "--cset-uuid", &set, "--bucket", &bucket];
    let writeback: &[&str] = if mode(settings) == "writeback" { &["--writeback"] } else { &[] };
    let make = [&make[..], writeback, &["--bdev", slow, "--cache", fast]].concat();
    let number = backed(below.name).join("dev/uevent");
    let link = Action::LinkDevice { uevent: number, link: below.memory.join(below.name) };
    vec![
        Step::run("load bcache", ["modprobe", "bcache"]),
        wipe(slow),
        wipe(fast),
        Step::run("make a cache and what it caches", make).undo(SET.of_layer(set, below.devices)),
        Step::run("start the cache", [REGISTER, fast]),
        Step::run("start what it caches", [REGISTER, slow]),
        Step::new("use what is cached", link),
    ]
}

fn mode(settings: &Settings) -> &str {
    settings.text("mode").unwrap_or_default()
}

/// Where the kernel shows the device of a set.
fn backed(name: &str) -> PathBuf {
    Path::new(SETS).join(uuid(name)).join("bdev0")
}

/// `cache_mode:writethrough [writeback] writearound none`, `state:clean` and so on, each behind the
/// path of its file.
fn mismatches(settings: &Settings, shown: &str) -> Vec<Option<String>> {
    let value = |name: &str| {
        let line = shown.lines().find_map(|line| line.split_once(&format!("/{name}:")));
        line.map(|(_, value)| value)
    };
    let modes = value("cache_mode").unwrap_or_default();
    let chosen = modes.split(' ').find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let mode = differs("cache mode", mode(settings), chosen);
    let state = value("state").unwrap_or("nothing");
    let whole = matches!(state, "clean" | "dirty");
    vec![mode, (!whole).then(|| format!("asked for a cache, the kernel shows {state}"))]
}

/// "pickfs" in ASCII, and the name's hash (Fowler, Noll and Vo, FNV-1a, 64 bits).
fn uuid(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("7069636b-6673-0000-{:04x}-{:012x}", hash >> 48, hash & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, sentences};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_second_device_caches_the_first() {
        let set = uuid("pickfsC");
        assert_eq!(
            sentences("bcache", json!({"mode": "writeback", "bucket": 1 << 19}), 2),
            [
                "run modprobe bcache".to_string(),
                "run wipefs --all --force --quiet /dev/D0".into(),
                "run wipefs --all --force --quiet /dev/D1".into(),
                format!(
                    "run make-bcache --wipe-bcache --cset-uuid {set} --bucket 524288 --writeback --bdev /dev/D0 \
                     --cache /dev/D1; back: stop cache {set}"
                ),
                "run /usr/lib/udev/bcache-register /dev/D1".into(),
                "run /usr/lib/udev/bcache-register /dev/D0".into(),
                format!("link /dev/shm/pickfs-r/cell/pickfsC to the device of /sys/fs/bcache/{set}/bdev0/dev/uevent"),
            ]
        );
    }

    #[test]
    fn only_sets_of_our_own_are_stopped() {
        let uuid = "7069636b-6673-0000-af63-dc4c8601ec8c";
        // As bcache-super-show 1.0.8 prints it.
        let said = format!("dev.uuid\t\t1f\ndev.sectors_first\t16\n\ncset.uuid\t\t{uuid}\n");
        assert!(is_of_set(&said, uuid) && !is_of_set(&said, &uuid[..35]) && !is_of_set("", uuid));
    }

    #[test]
    fn names_have_sets_of_their_own() {
        // FNV-1a of "a" by its authors' table.
        assert_eq!(uuid("a"), "7069636b-6673-0000-af63-dc4c8601ec8c");
        assert!(uuid("pickfsCl0") != uuid("pickfsCl1"));
    }

    #[test]
    fn mode_and_state_are_read_back() {
        let shown = |mode: &str, state: &str| {
            format!("/sys/fs/bcache/x/bdev0/cache_mode:{mode}\n/sys/fs/bcache/x/bdev0/state:{state}\n")
        };
        let back = "writethrough [writeback] writearound none";
        for (printed, wrong) in [
            (shown(back, "dirty"), 0),
            (shown(back, "clean"), 0),
            (shown("[writethrough] writeback writearound none", "clean"), 1),
            (shown(back, "no cache"), 1),
            (String::new(), 2),
        ] {
            assert_eq!(mismatches("bcache", json!({"mode": "writeback"}), &printed).len(), wrong, "{printed}");
        }
    }
}
