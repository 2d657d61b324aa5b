//! What lies between a backing and a file system, one file each, in one sorted list: encryption,
//! volumes, arrays.
//!
//! A layer says how devices below become devices above, how that is read back, and how it is taken
//! down. It must not know which backing gave the devices, nor which file system comes on top;
//! layers are stacked in any order.

mod bcache;
mod delay;
mod dm_zoned;
mod integrity;
mod logwrites;
mod luks;
mod lvm;
mod lvmcache;
mod lvmthin;
mod lvmvdo;
mod md;
mod noflush;
mod writecache;

use super::data::{Programs, list, programs};
use super::take_down::{Act, Named, Remains, Removal, TakeDown, There};
use super::{Action, Argv, Step, argv};
use pickfs_core::journal::Undo;
use pickfs_core::plan::{Chosen, Objection, Setting, SettingKind, Settings, Tunables};
use pickfs_system::need::Need;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Puts what no data can say into a layer.
type Code = fn(Layer) -> Layer;

/// Every layer, sorted by name: its data, and the function that puts its code into the data.
const ROWS: [(&str, Code); 13] = [
    (include_str!("bcache.toml"), bcache::with_code),
    (include_str!("delay.toml"), delay::with_code),
    (include_str!("dm_zoned.toml"), dm_zoned::with_code),
    (include_str!("integrity.toml"), integrity::with_code),
    (include_str!("logwrites.toml"), logwrites::with_code),
    (include_str!("luks.toml"), luks::with_code),
    (include_str!("lvm.toml"), lvm::with_code),
    (include_str!("lvmcache.toml"), lvmcache::with_code),
    (include_str!("lvmthin.toml"), lvmthin::with_code),
    (include_str!("lvmvdo.toml"), lvmvdo::with_code),
    (include_str!("md.toml"), md::with_code),
    (include_str!("noflush.toml"), noflush::with_code),
    (include_str!("writecache.toml"), writecache::with_code),
];

/// Every layer, sorted by name.
pub static ALL: LazyLock<Vec<&'static Layer>> = LazyLock::new(|| {
    let read = |(text, with_code): (&'static str, fn(Layer) -> Layer)| -> &'static Layer {
        let data: Layer = toml::from_str(text).unwrap_or_else(|error| panic!("a layer came broken: {error}"));
        Box::leak(Box::new(with_code(data.complete())))
    };
    ROWS.into_iter().map(read).collect()
});

/// Every layer has it: a mirror of slow disks can leave the fast disk out, which then caches it.
const DEVICES: Setting = Setting {
    name: "devices",
    kind: SettingKind::Count,
    default: None,
    about: "only the first of them, up to this number; the others bypass it, for what comes above",
};

/// The configuration of LVM for this place: volumes may lie on volumes, nothing is left in /etc,
/// and no list of devices or daemon of the system interferes.
const GROUPS: &str = "devices/scan_lvs=1 devices/use_devicesfile=0 devices/obtain_device_list_from_udev=0 \
                          activation/monitoring=0 global/use_lvmpolld=0 global/use_lvmlockd=0 backup/backup=0 \
                          backup/archive=0";

/// What a layer is built on.
#[derive(Clone, Debug)]
pub struct Below<'a> {
    /// In the order in which the backing, or the layer below, gave them.
    pub devices: &'a [PathBuf],
    /// For mappings, groups and arrays: unique on this machine, begins with `pickfs`, letters and
    /// digits only.
    pub name: &'a str,
    /// A folder in memory that is the cell's own, for keys.
    pub memory: &'a Path,
}

impl Below<'_> {
    /// Devices as words of a command.
    pub(crate) fn words(&self) -> Vec<String> {
        self.devices.iter().map(|device| device.display().to_string()).collect()
    }

    /// What is made of each device alone, by the device and the name of what is made of it.
    fn each<T>(&self, make: impl Fn(&str, &str) -> Vec<T>) -> Vec<T> {
        self.words().iter().enumerate().flat_map(|(index, device)| make(device, &self.name_of(index))).collect()
    }

    /// What is made of the device with this index alone.
    fn name_of(&self, index: usize) -> String {
        if index == 0 { self.name.to_string() } else { format!("{}d{index}", self.name) }
    }
}

/// Something that makes devices of devices: what is constant as data, what depends on the cell as
/// functions.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layer {
    pub name: &'static str,
    /// One phrase for `pickfs list layers`.
    pub about: &'static str,
    #[serde(deserialize_with = "list")]
    pub settings: &'static [Setting],
    /// Programs and the Debian packages that bring them.
    #[serde(deserialize_with = "list")]
    tools: &'static [(&'static str, &'static str)],
    #[serde(deserialize_with = "list")]
    more_needs: &'static [Need],
    /// It makes mappings of the device mapper.
    maps: bool,
    /// All of these, and root.
    #[serde(skip)]
    pub needs: &'static [Need],
    /// Of the kernel, as modprobe names them.
    #[serde(deserialize_with = "list")]
    pub modules: &'static [&'static str],
    /// Programs that print versions of what was used.
    #[serde(deserialize_with = "programs")]
    pub versions: Programs,
    /// True where it makes one device of all, false where it makes one of each.
    pub joins: bool,
    /// How many devices it takes from below at least, and at most, where there is a limit.
    least_devices: usize,
    most_devices: Option<usize>,
    /// What lies on it reaches the same place of the first device below, and it keeps nothing of
    /// that itself.
    pub passes: bool,
    /// It takes host-managed disks, and what lies on it is written anywhere.
    pub takes_zones: bool,
    /// The last device below gets dm-log-writes' log of the first.
    pub logs: bool,
    /// What people turn of it, as far as its settings reach; sorted by name.
    #[serde(skip)]
    pub tunables: Tunables,
    /// How many devices these settings take at least.
    #[serde(skip)]
    least_by_settings: fn(&Settings) -> usize,
    /// What is wrong with settings that are right in themselves.
    #[serde(skip)]
    pub objections: fn(&Settings) -> Vec<Objection>,
    /// Steps that build it. Steps that use a device give it to what lies above, in their order.
    #[serde(skip)]
    pub steps: fn(&Settings, &Below) -> Vec<Step>,
    /// A program that prints what is in effect of what has this name, by the fact that it becomes.
    #[serde(skip)]
    fact: fn(&Below) -> (&'static str, Argv),
    /// How another machine, which has the same disks, opens what was made; `None` where that is not
    /// known.
    #[serde(skip)]
    pub opens: Option<fn(&Below) -> Opening>,
    /// What that fact contradicts of what the plan asked for.
    #[serde(skip)]
    mismatches: fn(&Settings, &str) -> Vec<Option<String>>,
    /// How what only this layer knows is taken down; others may use it too.
    #[serde(skip)]
    pub(crate) take_down: Option<&'static TakeDown>,
}

/// Programs, from first to last, and the file that each reads as its standard input.
pub struct Opening {
    pub programs: Vec<Argv>,
    pub key: Option<PathBuf>,
}

impl Default for Layer {
    fn default() -> Layer {
        Layer {
            name: "",
            about: "",
            settings: &[],
            tools: &[],
            more_needs: &[],
            maps: true,
            needs: &[],
            modules: &["dm-mod"],
            versions: &[],
            joins: false,
            least_devices: 1,
            most_devices: None,
            passes: false,
            takes_zones: false,
            logs: false,
            tunables: Tunables(""),
            least_by_settings: |_| 1,
            objections: |_| Vec::new(),
            steps: |_, _| Vec::new(),
            fact: |_| ("", Vec::new()),
            opens: None,
            mismatches: |_, _| Vec::new(),
            take_down: None,
        }
    }
}

impl Layer {
    /// With what follows from its data.
    fn complete(self) -> Layer {
        let programs = self.tools.iter().map(|(name, package)| Need::Program { name, package });
        let mapper = if self.maps { vec![MAPPER, MAPS] } else { Vec::new() };
        let needs = [Need::Root].into_iter().chain(programs).chain(mapper).chain(self.more_needs.iter().cloned());
        let settings = [self.settings, &[DEVICES]].concat().leak();
        Layer { needs: needs.collect::<Vec<_>>().leak(), settings, ..self }
    }

    /// Programs that print what is in effect, by the facts that they become: one of each thing that
    /// the layer makes.
    pub(crate) fn facts(&self, below: &Below) -> Vec<(String, Argv)> {
        let of = |index: usize| {
            let (fact, words) = (self.fact)(&Below { name: &below.name_of(index), ..below.clone() });
            (if index == 0 { fact.to_string() } else { format!("{fact} (device {})", index + 1) }, words)
        };
        (0..if self.joins { 1 } else { below.devices.len() }).map(of).collect()
    }

    pub(crate) fn mismatches(&self, settings: &Settings, shown: &str) -> Vec<String> {
        (self.mismatches)(settings, shown).into_iter().flatten().collect()
    }
}

/// The layer of that name.
pub fn find(name: &str) -> Option<&'static Layer> {
    ALL.iter().copied().find(|layer| layer.name == name)
}

/// How many it takes of the devices below it; the others pass by.
pub(crate) fn taken(settings: &Settings, there: usize) -> usize {
    settings.number(DEVICES.name).map_or(there, |devices| devices as usize)
}

/// How many devices lie above a layer, or why it cannot be built on this number.
pub fn above(layer: &Layer, settings: &Settings, there: usize) -> Result<usize, String> {
    let (taken, least) = (taken(settings, there), layer.least_devices.max((layer.least_by_settings)(settings)));
    if taken > there || least > there {
        return Err(format!("{} needs {} devices, and {there} lie below it", layer.name, taken.max(least)));
    }
    if taken < least {
        return Err(format!("{} needs {least} devices, and `devices` gives it {taken}", layer.name));
    }
    if let Some(most) = layer.most_devices.filter(|most| taken > *most) {
        return Err(format!("{} takes {most} devices, and gets {taken}: give it `devices = {most}`", layer.name));
    }
    Ok(if layer.joins { 1 + there - taken } else { there })
}

/// What the layers of a target need, without knowing how they are stacked.
pub(crate) fn needs(layers: &[Chosen]) -> Vec<Need> {
    layers.iter().filter_map(|chosen| find(&chosen.name)).flat_map(|layer| layer.needs.iter().cloned()).collect()
}

/// The kernel's modules of those layers.
pub(crate) fn modules(layers: &[Chosen]) -> Vec<String> {
    let layers = layers.iter().filter_map(|chosen| find(&chosen.name));
    layers.flat_map(|layer| layer.modules).map(|module| module.to_string()).collect()
}

/// What cryptsetup, dmsetup and the like make and show.
fn mapping(name: &str) -> PathBuf {
    Path::new("/dev/mapper").join(name)
}

/// A mapping over the whole of a device, in device-mapper's words.
fn map(says: String, device: &str, name: &str, words: &[&str]) -> Step {
    let map = Action::MapWhole { device: device.into(), name: name.into(), words: argv(words) };
    Step::new(says, map).undo(Undo::RemoveMapping(name.into()))
}

/// A program that makes a mapping, which is then used.
fn open(device: &str, name: &str, words: Argv) -> [Step; 2] {
    let open = Step::run(format!("open {device}"), words).undo(Undo::RemoveMapping(name.into()));
    [open, Step::new(format!("use what {device} holds"), Action::UseDevice(mapping(name)))]
}

/// The table of its mapping.
fn table(fact: &'static str, below: &Below) -> (&'static str, Argv) {
    (fact, argv(["dmsetup", "table", below.name]))
}

/// The type of a mapping, in what `dmsetup table` prints of it.
fn mapping_differs(kind: &str, shown: &str) -> Vec<Option<String>> {
    vec![differs("a mapping of type", kind, shown.split_whitespace().nth(2))]
}

/// Old signatures make some programs ask, and others refuse.
fn wipe(device: &str) -> Step {
    Step::run(format!("forget what was on {device}"), ["wipefs", "--all", "--force", "--quiet", device])
}

/// For mappings.
const MAPPER: Need = Need::Driver {
    what: "device mapper",
    module: "dm-mod",
    sign: "/sys/class/misc/device-mapper",
    hint: "boot Debian's stock kernel (linux-image-amd64), or use guests, which have it (--executor vm)",
};
/// For mappings and what takes them away.
const MAPS: Need = Need::Program { name: "dmsetup", package: "dmsetup" };

/// The value that a program prints behind a word and a colon, such as `cipher:  aes-xts-plain64`.
fn value<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(word)?.trim_start().strip_prefix(':')).map(str::trim)
}

/// "asked for cipher X, cryptsetup shows Y" unless they are the same.
fn differs(what: &str, asked: &str, shown: Option<&str>) -> Option<String> {
    let shown = shown.unwrap_or("nothing");
    (shown != asked).then(|| format!("asked for {what} {asked}, the kernel shows {shown}"))
}

/// For the tests of every layer.
#[cfg(test)]
mod example {
    use super::*;
    use crate::stack::sentence;
    use serde_json::Value;

    pub(super) fn settings(value: Value) -> Settings {
        Settings(value.as_object().unwrap().clone().into_iter().collect())
    }

    /// The steps on this number of devices.
    pub(super) fn sentences(name: &str, value: Value, devices: usize) -> Vec<String> {
        let devices: Vec<PathBuf> = (0..devices).map(|n| format!("/dev/D{n}").into()).collect();
        let below = Below { devices: &devices, name: "pickfsC", memory: Path::new("/dev/shm/pickfs-r/cell") };
        (find(name).unwrap().steps)(&settings(value), &below).iter().map(sentence).collect()
    }

    /// What the programs of Debian 12 really printed of such a layer in a guest.
    pub(super) fn printed(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/layers");
        std::fs::read_to_string(Path::new(folder).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// What is wrong where all that the layer asks prints this text.
    pub(super) fn mismatches(name: &str, value: Value, printed: &str) -> Vec<String> {
        let (layer, settings) = (find(name).unwrap(), settings(value));
        layer.mismatches(&settings, printed)
    }
}

#[cfg(test)]
mod tests {
    use super::example::{mismatches, printed, sentences, settings};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_list_is_sorted_unique_and_described() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
        for layer in ALL.iter() {
            assert!(!layer.about.is_empty() && !layer.about.ends_with('.'), "{}", layer.name);
            assert!(layer.settings.iter().all(|setting| !setting.about.is_empty()), "{}", layer.name);
            assert!(layer.settings.iter().any(|setting| setting.name == DEVICES.name), "{}", layer.name);
            assert!(!layer.versions.is_empty() && layer.needs.contains(&Need::Root), "{}", layer.name);
        }
    }

    #[test]
    fn every_device_is_encrypted_with_one_key() {
        let said = sentences("luks", json!({"cipher": "aes-xts-plain64", "sector": 4096}), 2);
        let format = "cryptsetup luksFormat --batch-mode --type luks2 --cipher aes-xts-plain64 --sector-size 4096 \
                      --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file /dev/shm/pickfs-r/cell/pickfsC-key";
        let open = "cryptsetup open --type luks2 --key-file /dev/shm/pickfs-r/cell/pickfsC-key";
        assert_eq!(
            said,
            [
                "run dd if=/dev/urandom of=/dev/shm/pickfs-r/cell/pickfsC-key bs=64 count=1 status=none".to_string(),
                format!("run {format} /dev/D0"),
                format!("run {open} /dev/D0 pickfsC; back: remove mapping pickfsC"),
                "device /dev/mapper/pickfsC".to_string(),
                format!("run {format} /dev/D1"),
                format!("run {open} /dev/D1 pickfsCd1; back: remove mapping pickfsCd1"),
                "device /dev/mapper/pickfsCd1".to_string(),
            ]
        );
    }

    #[test]
    fn each_thing_that_a_layer_makes_is_read_back() {
        let devices = ["/dev/D0".into(), "/dev/D1".into()];
        let below = Below { devices: &devices, name: "pickfsC", memory: Path::new("/m") };
        for (name, asked) in [
            ("luks", vec!["cryptsetup status pickfsC", "cryptsetup status pickfsCd1"]),
            ("dm-zoned", vec!["dmsetup table pickfsC", "dmsetup table pickfsCd1"]),
            ("md", vec!["mdadm --detail /dev/md/pickfsC"]),
        ] {
            let (names, words): (Vec<_>, Vec<_>) = find(name).unwrap().facts(&below).into_iter().unzip();
            assert_eq!(words.iter().map(|words| words.join(" ")).collect::<Vec<_>>(), asked);
            assert!(names.iter().skip(1).all(|name| name.ends_with(" (device 2)")), "{names:?}");
        }
    }

    #[test]
    fn what_is_booted_has_the_modules_of_its_layers() {
        let layers = ["luks", "lvm"].map(|name| Chosen { name: name.into(), ..Chosen::default() });
        assert_eq!(modules(&layers), ["dm-crypt", "xts", "aesni-intel", "dm-mod"]);
    }

    #[test]
    fn devices_are_counted_from_below_upwards() {
        for (name, given, there, found) in [
            ("luks", json!({}), 2, Ok(2)),
            ("bcache", json!({}), 2, Ok(1)),
            ("bcache", json!({}), 3, Err("bcache takes 2 devices, and gets 3: give it `devices = 2`")),
            ("bcache", json!({"devices": 2}), 3, Ok(2)),
            ("lvm", json!({}), 3, Ok(1)),
            ("lvm", json!({"stripes": 3}), 2, Err("lvm needs 3 devices, and 2 lie below it")),
            ("lvmcache", json!({}), 1, Err("lvmcache needs 2 devices, and 1 lie below it")),
            ("md", json!({"level": "raid1", "devices": 2}), 3, Ok(2)),
            ("md", json!({"level": "raid5"}), 2, Err("md needs 3 devices, and 2 lie below it")),
            ("md", json!({"level": "raid6", "devices": 2}), 4, Err("md needs 4 devices, and `devices` gives it 2")),
            ("delay", json!({"devices": 1}), 2, Ok(2)),
            ("delay", json!({"devices": 3}), 2, Err("delay needs 3 devices, and 2 lie below it")),
            ("delay", json!({"devices": 0}), 2, Err("delay needs 1 devices, and `devices` gives it 0")),
        ] {
            let counted = above(find(name).unwrap(), &settings(given.clone()), there);
            assert_eq!(counted, found.map_err(String::from), "{name} {given}");
        }
    }

    #[test]
    fn values_are_found_behind_their_words() {
        let text = "  type:    LUKS2\n  cipher:  aes-xts-plain64\n  sector size:  4096\n";
        assert_eq!([value(text, "cipher"), value(text, "sector size")], [Some("aes-xts-plain64"), Some("4096")]);
        assert_eq!(value(text, "key"), None);
        assert_eq!(differs("cipher", "x", Some("x")), None);
        assert!(differs("cipher", "x", None).unwrap().contains("nothing"));
        let shown = printed("cryptsetup-status");
        for (cipher, sector, wrong) in
            [("aes-xts-plain64", 512, 0), ("aes-xts-plain64", 4096, 1), ("aes-cbc-essiv:sha256", 4096, 2)]
        {
            let found = mismatches("luks", json!({"cipher": cipher, "sector": sector}), &shown);
            assert_eq!(found.len(), wrong, "{found:?}");
        }
    }
}
