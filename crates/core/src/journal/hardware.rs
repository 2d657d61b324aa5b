//! Hardware as reports compute with it. Facts say the same in words, for people; journals and
//! exports that have only the words are read here.

use pickfs_system::units::{parse_duration, parse_size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a run, or a cell's own machine, was found to be made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hardware {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backings: Vec<BackingHardware>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestHardware>,
}

/// Where the bytes of a backing lie, and how fast that is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BackingHardware {
    /// With this its facts begin: "image", or "device /dev/sdb" where a run has several.
    pub backing: String,
    /// What the file system is made on, or what a directory lies on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Disk>,
    /// The disk below a loop device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_below: Option<Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_speed: Option<RawSpeed>,
}

/// A block device as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disk {
    /// The kernel's name: "nvme0n1".
    pub device: String,
    /// Empty where it has none.
    pub model: String,
    /// Disks of virtual machines say true, whatever they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The fastest of several readings without a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RawSpeed {
    /// Read on, from the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffered_bytes_per_second: Option<f64>,
    /// Read again, from the page cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_bytes_per_second: Option<f64>,
    /// One read of 4 KiB, one at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_read_ns: Option<f64>,
    /// One write of 4 KiB with its flush.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable_write_ns: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuestHardware {
    /// The release whose kernel and programs it has, or the folder of the user's own.
    pub guest: String,
    pub processor: GuestProcessor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuestProcessor {
    /// The host's, under KVM.
    Kvm,
    /// Emulated by QEMU's translator.
    Tcg,
    /// Emulated, with a clock that counts instructions.
    Simulated,
}

impl Hardware {
    pub fn is_empty(&self) -> bool {
        self.backings.is_empty() && self.guests.is_empty()
    }

    /// The latest of that name.
    pub fn backing(&self, name: &str) -> Option<&BackingHardware> {
        self.backings.iter().rev().find(|one| one.backing == name)
    }

    /// Adds what was found later.
    pub fn extend(&mut self, later: Hardware) {
        self.backings.extend(later.backings);
        self.guests.extend(later.guests);
    }

    /// What these facts say, where nothing is known in types.
    pub fn or_in_words(&self, facts: &BTreeMap<String, String>) -> Cow<'_, Hardware> {
        if self.is_empty() { Cow::Owned(Hardware::in_words(facts)) } else { Cow::Borrowed(self) }
    }

    fn in_words(facts: &BTreeMap<String, String>) -> Hardware {
        let mut backings: BTreeMap<&str, BackingHardware> = BTreeMap::new();
        let mut guests = Vec::new();
        for (name, value) in facts {
            let guest = name.strip_prefix("guest ").zip(GuestProcessor::in_words(value));
            guests.extend(guest.map(|(guest, processor)| GuestHardware { guest: guest.into(), processor }));
            let of_backing = ENDINGS.iter().find_map(|(end, set)| Some((name.strip_suffix(end)?, set)));
            if let Some((backing, set)) = of_backing {
                set(backings.entry(backing).or_default(), value);
            }
        }
        let named = |(name, one): (&str, BackingHardware)| BackingHardware { backing: name.into(), ..one };
        Hardware { backings: backings.into_iter().map(named).collect(), guests }
    }
}

type Setter = fn(&mut BackingHardware, &str);

/// Facts of a backing, whose name comes first.
const ENDINGS: [(&str, Setter); 4] = [
    (" device", |backing, value| backing.device = Some(Disk::in_words(value))),
    (" disk below", |backing, value| backing.disk_below = Some(Disk::in_words(value))),
    (" raw 4 KiB random read", |backing, value| {
        // "9.10 ms each, one at a time, direct"
        let each = value.split(" each").next().and_then(|shown| parse_duration(shown).ok());
        backing.raw_speed.get_or_insert_default().random_read_ns = each.map(|ns| ns as f64);
    }),
    (" raw buffered reads", |backing, value| {
        let rate = value.strip_suffix("/s").and_then(|shown| parse_size(shown).ok());
        backing.raw_speed.get_or_insert_default().buffered_bytes_per_second = rate.map(|rate| rate as f64);
    }),
];

impl BackingHardware {
    /// What the bytes lie on in the end.
    pub fn disk(&self) -> Option<&Disk> {
        self.disk_below.as_ref().or(self.device.as_ref())
    }
}

impl Disk {
    /// Reads "sda, Samsung SSD 870, scheduler none, write cache write back, sectors 512/512 B,
    /// rotational 0".
    fn in_words(fact: &str) -> Disk {
        let parts: Vec<&str> = fact.split(", ").collect();
        let flag = parts.iter().find_map(|part| part.strip_prefix("rotational "));
        let is_setting = |part: &str| ["scheduler ", "rotational "].iter().any(|start| part.starts_with(start));
        let model = parts.get(1).filter(|part| !is_setting(part)).unwrap_or(&"").trim();
        Disk {
            device: parts[0].to_string(),
            model: model.to_string(),
            rotational: flag.map(|flag| flag == "1"),
            bytes: None,
        }
    }
}

impl GuestProcessor {
    /// Reads the end of "bookworm-1f2e3d4c5b6a7988, kernel 6.1.0-56-amd64, tcg (why)".
    fn in_words(fact: &str) -> Option<GuestProcessor> {
        match () {
            () if fact.ends_with(", simulated") => Some(GuestProcessor::Simulated),
            () if fact.contains(" tcg (") => Some(GuestProcessor::Tcg),
            () if fact.contains(" kvm (") => Some(GuestProcessor::Kvm),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_words(facts: &[(&str, &str)]) -> Hardware {
        Hardware::in_words(&facts.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    #[test]
    fn words_of_a_backing_are_read() {
        let found = in_words(&[
            ("cpu", "Some device"),
            ("device", "8:0"),
            ("image device", "loop0, scheduler none, rotational 0, direct I/O 1"),
            ("image disk below", "sda, Fast SSD 870, scheduler none, write cache write back, rotational 0"),
            ("image raw 4 KiB random read", "9.10 ms each, one at a time, direct"),
            ("image raw buffered reads", "1.50 GiB/s"),
            ("device /dev/sdb raw buffered reads", "fast"),
            ("memory disk below", "vda, rotational 1"),
        ]);
        let names: Vec<&str> = found.backings.iter().map(|one| one.backing.as_str()).collect();
        assert_eq!(names, ["device /dev/sdb", "image", "memory"]);
        assert_eq!(found.backing("device /dev/sdb").unwrap().raw_speed, Some(RawSpeed::default()));
        let image = found.backing("image").unwrap();
        let disk = Disk { device: "sda".into(), model: "Fast SSD 870".into(), rotational: Some(false), bytes: None };
        assert_eq!((image.disk(), image.device.as_ref().unwrap().model.as_str()), (Some(&disk), ""));
        let speed = image.raw_speed.unwrap();
        assert_eq!(
            (speed.random_read_ns, speed.buffered_bytes_per_second),
            (Some(9.1e6), Some(1.5 * (1u64 << 30) as f64))
        );
        let memory = found.backing("memory").unwrap().disk().unwrap();
        assert_eq!((memory.device.as_str(), memory.model.as_str(), memory.rotational), ("vda", "", Some(true)));
    }

    #[test]
    fn words_of_a_guest_are_read() {
        for (fact, wanted) in [
            ("bookworm-1f, kernel 6.1.0-56-amd64, simulated", Some(GuestProcessor::Simulated)),
            ("bookworm-1f, kernel 6.1.0-56-amd64, tcg (no /dev/kvm)", Some(GuestProcessor::Tcg)),
            ("bookworm-1f tcg (no /dev/kvm)", Some(GuestProcessor::Tcg)),
            ("bookworm-1f, kvm (a kernel booted under it)", Some(GuestProcessor::Kvm)),
            ("2, as no agent answered in the one before", None),
        ] {
            let found = in_words(&[("guest bookworm", fact)]);
            assert_eq!(found.guests.first().map(|guest| guest.processor), wanted, "{fact}");
        }
    }

    #[test]
    fn words_are_read_only_where_there_are_no_types() {
        let facts = BTreeMap::from([("guest sid".to_string(), "sid-1, simulated".to_string())]);
        let guests = vec![GuestHardware { guest: "sid".into(), processor: GuestProcessor::Kvm }];
        let typed = Hardware { guests, ..Hardware::default() };
        assert_eq!(typed.or_in_words(&facts).as_ref(), &typed);
        assert_eq!(Hardware::default().or_in_words(&facts).guests[0].processor, GuestProcessor::Simulated);
        let text = serde_json::to_string(&typed).unwrap();
        assert_eq!(text, r#"{"guests":[{"guest":"sid","processor":"kvm"}]}"#);
        assert_eq!(serde_json::from_str::<Hardware>(&text).unwrap(), typed);
    }
}
