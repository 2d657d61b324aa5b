//! What lies between a backing and a file system, one file each, in one sorted list: encryption, volumes, arrays.
//!
//! A layer says how devices below become devices above, how that is read back, and how it is taken down. It must not
//! know which backing gave the devices, nor which file system comes on top; layers are stacked in any order.

mod luks;

use super::{Argv, Step};
use crate::need::Need;
use crate::plan::{Chosen, Setting, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every layer, sorted by name.
pub const ALL: &[&dyn Layer] = &[&luks::Luks];

/// What a layer is built on.
#[derive(Clone, Debug)]
pub struct Below<'a> {
    /// In the order in which the backing, or the layer below, gave them.
    pub devices: &'a [PathBuf],
    /// For mappings, groups and arrays: unique on this machine, begins with `pickfs`, letters and digits only.
    pub name: &'a str,
    /// A folder in memory that is the cell's own, for keys.
    pub memory: &'a Path,
}

impl Below<'_> {
    /// Devices as words of a command.
    pub fn words(&self) -> Vec<String> {
        self.devices.iter().map(|device| device.display().to_string()).collect()
    }

    /// The name for what is made of the device of that index.
    pub fn name_of(&self, index: usize) -> String {
        if index == 0 { self.name.to_string() } else { format!("{}d{index}", self.name) }
    }
}

/// Something that makes devices of devices.
pub trait Layer: Sync {
    fn name(&self) -> &'static str;
    /// One sentence for `pickfs list layers`.
    fn about(&self) -> &'static str;
    /// Steps that build it. Those that use a device give it to what lies above, in their order.
    fn steps(&self, settings: &Settings, below: &Below) -> Vec<Step>;
    /// Programs that say what is in effect, by the fact that it becomes.
    fn facts(&self, settings: &Settings, below: &Below) -> Vec<(&'static str, Argv)>;
    /// What the facts contradict of what the plan asked for.
    fn mismatches(&self, settings: &Settings, facts: &BTreeMap<String, String>) -> Vec<String>;

    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// How many devices it takes from below at least.
    fn least_devices(&self, _settings: &Settings) -> usize {
        1
    }

    fn needs(&self) -> Vec<Need>;

    /// Programs that print versions of what was used.
    fn versions(&self) -> Vec<(&'static str, Argv)>;
}

/// The layer of that name.
pub fn find(name: &str) -> Option<&'static dyn Layer> {
    ALL.iter().copied().find(|layer| layer.name() == name)
}

/// What the layers of a target need, without knowing how they are stacked.
pub fn needs(layers: &[Chosen]) -> Vec<Need> {
    layers.iter().filter_map(|chosen| find(&chosen.name)).flat_map(|layer| layer.needs()).collect()
}

/// What cryptsetup, dmsetup and the like make and show.
fn mapping(name: &str) -> PathBuf {
    Path::new("/dev/mapper").join(name)
}

/// The value that a program prints behind a word and a colon, such as `cipher:  aes-xts-plain64`.
fn told<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(word)?.trim_start().strip_prefix(':')).map(str::trim)
}

/// "asked for cipher X, cryptsetup shows Y" unless they are the same.
fn differs(what: &str, asked: &str, shown: Option<&str>) -> Option<String> {
    let shown = shown.unwrap_or("nothing");
    (shown != asked).then(|| format!("asked for {what} {asked}, the kernel shows {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::sentence;
    use serde_json::{Value, json};

    fn settings(value: Value) -> Settings {
        Settings(value.as_object().unwrap().clone().into_iter().collect())
    }

    /// The steps on so many devices.
    fn sentences(name: &str, value: Value, devices: usize) -> Vec<String> {
        let devices: Vec<PathBuf> = (0..devices).map(|n| format!("/dev/D{n}").into()).collect();
        let below = Below { devices: &devices, name: "pickfsC", memory: Path::new("/dev/shm/pickfs-r/cell") };
        find(name).unwrap().steps(&settings(value), &below).iter().map(sentence).collect()
    }

    #[test]
    fn the_list_is_sorted_unique_and_described() {
        assert!(ALL.is_sorted_by(|a, b| a.name() < b.name()));
        for layer in ALL {
            assert!(!layer.about().is_empty() && !layer.about().ends_with('.'), "{}", layer.name());
            assert!(layer.settings().iter().all(|setting| !setting.about.is_empty()), "{}", layer.name());
            assert!(!layer.versions().is_empty() && layer.needs().contains(&Need::Root), "{}", layer.name());
        }
    }

    #[test]
    fn every_device_is_encrypted_with_one_key() {
        let said = sentences("luks", json!({"cipher": "aes-xts-plain64", "sector": 4096}), 2);
        let format = "cryptsetup luksFormat --batch-mode --type luks2 --cipher aes-xts-plain64 --sector-size 4096 \
                      --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file /dev/shm/pickfs-r/cell/luks-key";
        let open = "cryptsetup open --type luks2 --key-file /dev/shm/pickfs-r/cell/luks-key";
        assert_eq!(
            said,
            [
                "run dd if=/dev/urandom of=/dev/shm/pickfs-r/cell/luks-key bs=64 count=1 status=none".to_string(),
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
    fn values_are_found_behind_their_words() {
        let text = "/dev/mapper/x is active.\n  type:    LUKS2\n  cipher:  aes-xts-plain64\n  sector size:  4096\n";
        assert_eq!([told(text, "cipher"), told(text, "sector size")], [Some("aes-xts-plain64"), Some("4096")]);
        assert_eq!(told(text, "key"), None);
        assert_eq!(differs("cipher", "x", Some("x")), None);
        assert!(differs("cipher", "x", None).unwrap().contains("nothing"));
    }
}
