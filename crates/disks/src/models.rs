//! The disks that are modelled, a TOML file each: every parameter with its source.

use super::parameters::Disk;

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
    "cloud-volume",
    "hdd-7200",
    "hp-97560",
    "none",
    "nvme",
    "sata-ssd",
    "sd-card",
    "smr-5900",
    "smr-host-managed"
];

impl Entry {
    pub fn disk(&self) -> Disk {
        Disk::parse(self.text).unwrap_or_else(|error| panic!("the disk {} came broken: {error:#}", self.name))
    }
}

/// The whole name of the one disk that is meant by its last word, or by all others: "ssd" is "sata-ssd", "hdd" is "hdd-7200". What
/// fits none stays as it is.
pub fn whole_name(short: &str) -> String {
    let mut fitting = ALL
        .iter()
        .filter(|entry| entry.name.rsplit_once('-').is_some_and(|(first, last)| [first, last].contains(&short)));
    let only = fitting.next().filter(|_| fitting.next().is_none());
    only.map_or(short, |entry| entry.name).to_string()
}

pub fn find(name: &str) -> Option<Disk> {
    ALL.iter().find(|entry| entry.name == name).map(Entry::disk)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_word_of_a_name_is_enough() {
        for (short, whole) in [
            ("hdd", "hdd-7200"),
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
        ] {
            let said = with(from, to);
            assert!(said.contains(says), "{to}: {said}");
        }
    }
}
