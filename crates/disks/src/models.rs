//! The disks that are modelled, a TOML file each: every parameter with its source.

use super::parameters::Disk;
use serde::Deserialize;

/// A disk by its name.
pub struct Entry {
    pub name: &'static str,
    text: &'static str,
}

macro_rules! entries {
    ($($name:literal),*) => { &[$(Entry { name: $name, text: include_str!(concat!("models/", $name, ".toml")) }),*] };
}

/// Every disk, sorted by name.
pub const ALL: &[Entry] = entries![
    "cloud-volume", "hdd-5400", "hdd-7200", "hp-97560", "none", "nvme", "nvme-dramless", "nvme-plp", "sata-dramless",
    "sata-plp", "sata-ssd", "sd-card", "smr-5900", "smr-host-managed"
];

/// The file of a disk that has what another one has, but for some parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    about: String,
    like: String,
    parameters: toml::Table,
}

impl Entry {
    pub fn disk(&self) -> Disk {
        let Some(Variant { about, like, parameters }) = self.variant() else {
            return Disk::parse(self.text)
                .unwrap_or_else(|error| panic!("the disk {} came broken: {error:#}", self.name));
        };
        let mut disk = find(&like).unwrap_or_else(|| panic!("the disk {} is like none", self.name));
        disk.parameters.extend(parameters);
        Disk { about, ..disk }
    }

    fn variant(&self) -> Option<Variant> {
        toml::from_str(self.text).ok()
    }
}

/// The whole name of the one disk that is meant by its last word, or by all others, and is no
/// variant of another: "ssd" is "sata-ssd", "hdd" is "hdd-7200". What fits none does not change.
pub fn whole_name(short: &str) -> String {
    let is_meant =
        |entry: &&Entry| entry.name.rsplit_once('-').is_some_and(|(first, last)| [first, last].contains(&short));
    let mut fitting = ALL.iter().filter(is_meant).filter(|entry| entry.variant().is_none());
    let only = fitting.next().filter(|_| fitting.next().is_none());
    only.map_or(short, |entry| entry.name).to_string()
}

/// The model nearest to a disk of this machine, by its name in /dev and whether it turns.
pub fn like(device: &str, rotates: bool) -> &'static str {
    if device.starts_with("nvme") {
        "nvme"
    } else if rotates {
        "hdd-7200"
    } else {
        "sata-ssd"
    }
}

pub fn find(name: &str) -> Option<Disk> {
    ALL.iter().find(|entry| entry.name == name).map(Entry::disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its file is read like any other's, and only what holds data of files has changed.
    #[test]
    fn a_share_of_the_buffers_is_a_disk_too() {
        let disk = find("hdd-5400").unwrap();
        let small = Disk::parse(&toml::to_string(&disk.with_buffers(0.03).unwrap()).unwrap()).unwrap();
        let differing = disk.parameters.iter().filter(|(name, value)| small.parameters[name.as_str()] != **value);
        let differing: Vec<(&str, f64)> =
            differing.map(|(name, _)| (name.as_str(), small.number(name).unwrap())).collect();
        assert_eq!(differing, [("cache_mib", 0.9375), ("high_water_mib", 0.703125), ("segments", 1.0)]);
        for (name, share, cache, high) in [
            ("hdd-7200", 1.0, 32.0, 24.0),
            ("hdd-7200", 0.001, 0.0625, 0.046875),
            ("hdd-7200", 0.9, 28.8125, 21.6094),
            ("hp-97560", 0.001, 0.0625, 0.0625),
            ("smr-5900", 2.0, 64.0, 48.0),
        ] {
            let smaller = find(name).unwrap().with_buffers(share).unwrap();
            let found = ["cache_mib", "high_water_mib"].map(|name| smaller.number(name).unwrap());
            assert_eq!(found, [cache, high], "{name} {share}");
            smaller.words(0, 0).unwrap();
        }
        let flash = find("nvme").unwrap();
        assert_eq!(flash.with_buffers(0.03).unwrap().parameters, flash.parameters);
    }

    #[test]
    fn every_disk_is_complete_and_names_its_sources() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for entry in ALL {
            let disk = entry.disk();
            assert!(!disk.about.is_empty() && !disk.about.ends_with('.'), "{}", entry.name);
            for name in disk.parameters.keys() {
                assert!(disk.sourced(name).is_ok(), "{}: {name}", entry.name);
            }
        }
    }

    /// What a database waits for.
    #[test]
    fn classes_of_flash_differ_in_their_flushes() {
        let of = |name: &str| find(name).expect("it");
        for (name, like) in
            [("nvme-plp", "nvme"), ("nvme-dramless", "nvme"), ("sata-dramless", "sata-ssd"), ("sata-plp", "sata-ssd")]
        {
            let (variant, other) = (of(name), of(like));
            let names = |disk: &Disk| disk.parameters.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&variant), names(&other), "{name}");
            let differ =
                variant.parameters.iter().filter(|(key, value)| other.parameters.get(*key) != Some(value)).count();
            assert_eq!(differ, 1, "{name}");
        }
        let takes = ["nvme", "nvme-plp", "nvme-dramless", "sata-dramless", "sata-plp", "hdd-7200", "none"]
            .map(|name| of(name).takes_flushes());
        assert_eq!(takes, [true, false, true, true, false, true, false]);
    }

    #[test]
    fn a_word_of_a_name_is_enough() {
        for (short, whole) in [
            ("hdd", "hdd-7200"),
            ("hdd-5400", "hdd-5400"),
            ("sata", "sata-ssd"),
            ("ssd", "sata-ssd"),
            ("sd", "sd-card"),
            ("nvme", "nvme"),
            ("smr", "smr-5900"),
            ("smr-host", "smr-host-managed"),
            ("sd", "sd-card"),
            ("tape", "tape"),
        ] {
            assert_eq!(whole_name(short), whole);
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_reason() {
        let with = |from: &str, to: &str| {
            let text = ALL.iter().find(|entry| entry.name == "nvme").expect("nvme").text;
            assert!(text.contains(from), "{from}");
            format!("{:#}", Disk::parse(&text.replacen(from, to, 1)).expect_err(to))
        };
        for (from, to, says) in [
            ("dies = { is = 32", "dyes = { is = 32", "`dyes` is no parameter of flash"),
            ("dies = { is = 32", "dies = { is = 1000", "`dies`"),
            ("is = 32, source = \"assumed: 256 Gbit dies\"", "is = 32, source = \" \"", "no source"),
            ("is = 32, source", "is = \"many\", source", "`dies` must be a number"),
            ("read_us = { is = 60", "read_us = { is = -1", "`read_us` must be a number that is not negative"),
            ("kind = \"flash\"", "kind = \"tape\"", "no model of a disk"),
            ("flush_us = { is = 300", "flush_us = { is = [[0, 300]]", "`flush_us` has 2 to 16 pairs"),
            (
                "flush_us = { is = 300",
                "flush_us = { is = [[0, \"a\"], [100, 2]]",
                "`flush_us` must be a number, or pairs",
            ),
            ("flush_us = { is = 300", "flush_us = { is = [[0, 9], [50, 3], [100, 9]]", "`flush_us` is out of range"),
            ("flush_us = { is = 300", "flush_us = { is = [[0, 9], [90, 9]]", "`flush_us` is out of range"),
            (
                "flush_us = { is = 300",
                "flush_us = { is = [[0, 9], [100, 5e6]]",
                "`flush_us` must be a number, or pairs",
            ),
        ] {
            let said = with(from, to);
            assert!(said.contains(says), "{to}: {said}");
        }
    }
}
