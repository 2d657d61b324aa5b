//! The machine of a target, as the system on it sees it: what the plan asked for, read back.

use pickfs_core::plan::{Settings, Target};
use pickfs_system::sys::devices::{self, content};
use procfs::Current;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Facts = BTreeMap<String, String>;

/// What kernel and devices take of the memory before anybody can count it.
const LEAST_SHARE_OF_MEMORY: f64 = 0.75;

/// What can be seen of a machine from within.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MachineState {
    words: Vec<String>,
    /// Words that the kernel did not know and gave to process 1.
    unknown: Vec<String>,
    /// Values of parameters of modules that words of the kernel name, by `MODULE.PARAMETER`.
    parameters: BTreeMap<String, String>,
    preemption: Option<String>,
    processors: u64,
    memory_bytes: u64,
    bus: Option<&'static str>,
    write_cache: Option<String>,
}

/// `None` where the executor has no settings for the machine: it is then used as found.
pub(crate) fn look(target: &Target) -> Option<MachineState> {
    if target.machine.is_empty() {
        return None;
    }
    let disk = target.backing.settings.path("path").and_then(|path| devices::device_number(&path));
    let words = split(&content("/proc/cmdline").unwrap_or_default());
    let value = |word: &String| {
        let (name, _) = parameter(word)?;
        let (module, parameter) = name.split_once('.')?;
        let file = format!("/sys/module/{}/parameters/{parameter}", module.replace('-', "_"));
        Some((name.to_string(), content(file)?))
    };
    Some(MachineState {
        parameters: words.iter().filter_map(value).collect(),
        words,
        unknown: ["/proc/1/environ", "/proc/1/cmdline"].into_iter().flat_map(between_noughts).collect(),
        preemption: content("/sys/kernel/debug/sched/preempt").and_then(|shown| chosen(&shown)),
        processors: simulated_processors()
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(0, |number| number.get() as u64)),
        memory_bytes: procfs::Meminfo::current().map_or(0, |memory| memory.mem_total),
        bus: disk.and_then(|number| bus(&devices::sys_path(number).canonicalize().ok()?)),
        write_cache: disk.and_then(|number| content(devices::queue_file(number, "write_cache")?)),
    })
}

/// The texts of a file of a process.
fn between_noughts(file: &str) -> Vec<String> {
    let content = std::fs::read(file).unwrap_or_default();
    content.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(String::from).collect()
}

/// `zfs.zfs_txg_timeout=1`: a parameter of a module, with its value. The kernel does not say so
/// where it knows no such module or parameter.
fn parameter(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| name.contains('.'))
}

/// A switch of the kernel's is shown as Y or N.
fn is_same_value(asked: &str, shown: &str) -> bool {
    let switch = |text: &str| match text {
        "1" | "y" | "Y" | "on" => Some(true),
        "0" | "n" | "N" | "off" => Some(false),
        _ => None,
    };
    asked == shown || (matches!(shown, "Y" | "N") && switch(asked) == switch(shown))
}

/// "none (voluntary) full" -> "voluntary".
fn chosen(shown: &str) -> Option<String> {
    Some(shown.split_once('(')?.1.split_once(')')?.0.to_string())
}

/// By the places of a disk's path in /sys; nothing for a bus that no plan can ask for.
fn bus(disk: &Path) -> Option<&'static str> {
    let parts: Vec<String> = disk.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let numbered = |name: &str| {
        let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        parts.iter().any(|part| part.strip_prefix(name).is_some_and(is_number))
    };
    match () {
        () if parts.iter().any(|part| part.starts_with("nvme")) => Some("nvme"),
        () if numbered("ata") => Some("sata"),
        () if numbered("virtio") && numbered("host") => Some("virtio-scsi"),
        () if numbered("virtio") => Some("virtio-blk"),
        () => None,
    }
}

/// As the driver of a simulation has them, of which the kernel itself knows one.
fn simulated_processors() -> Option<u64> {
    let pace = std::fs::read_to_string("/sys/module/simdisk/parameters/pace").ok()?;
    pace.split_whitespace().next()?.parse().ok()
}

impl MachineState {
    pub(crate) fn facts(&self) -> Facts {
        let fact = |name: &str, value: &str| (!value.is_empty()).then(|| (name.to_string(), value.to_string()));
        let found = [
            fact("kernel words", &self.words.join(" ")),
            fact("preemption", self.preemption.as_deref().unwrap_or_default()),
            fact("bus", self.bus.unwrap_or_default()),
        ];
        let parameters = self.parameters.iter().map(|(name, value)| (format!("parameter {name}"), value.clone()));
        found.into_iter().flatten().chain(parameters).collect()
    }

    /// Where it is not the machine that the plan asks for.
    pub(crate) fn mismatches(&self, asked: &Settings, queue: &Settings) -> Vec<String> {
        let words = split(asked.text("words").unwrap_or_default()).into_iter().filter_map(|word| self.lacks(&word));
        let bus = asked.text("bus").filter(|bus| self.bus.is_some_and(|shown| shown != *bus));
        let bus = bus.map(|bus| mismatch_text(&format!("bus {bus}"), self.bus.unwrap_or_default()));
        let processors = asked.number("processors").filter(|number| *number != self.processors);
        let processors =
            processors.map(|number| mismatch_text(&format!("{number} processors"), &self.processors.to_string()));
        words.chain(bus).chain(processors).chain(self.little_memory(asked)).chain(self.no_flush(asked, queue)).collect()
    }

    fn lacks(&self, word: &str) -> Option<String> {
        let asked = format!("kernel word {word}");
        if self.unknown.iter().any(|unknown| unknown == word) || !self.words.iter().any(|shown| shown == word) {
            return Some(mismatch_text(&asked, "that it does not know it"));
        }
        if let Some((name, value)) = parameter(word) {
            let shown = self.parameters.get(name).map_or("no such parameter", String::as_str);
            return (!is_same_value(value, shown)).then(|| mismatch_text(&asked, shown));
        }
        let model = word.strip_prefix("preempt=")?;
        let shown = self.preemption.as_deref().unwrap_or("no preemption that could be chosen");
        (shown != model).then(|| mismatch_text(&asked, shown))
    }

    fn little_memory(&self, asked: &Settings) -> Option<String> {
        let wanted = asked.number("memory")? as f64;
        let shown = pickfs_system::units::show_bytes(self.memory_bytes as f64);
        let little = (self.memory_bytes as f64) < LEAST_SHARE_OF_MEMORY * wanted;
        little.then(|| mismatch_text(&format!("memory {}", pickfs_system::units::show_bytes(wanted)), &shown))
    }

    /// A disk with a cache that the kernel takes for one without: nothing would ever be flushed.
    fn no_flush(&self, asked: &Settings, queue: &Settings) -> Option<String> {
        let volatile = matches!(asked.text("cache"), Some("none" | "writeback")) && queue.text("write_cache").is_none();
        let through = self.write_cache.as_deref() == Some("write through");
        (volatile && through)
            .then(|| mismatch_text(&format!("cache {}", asked.text("cache").unwrap_or_default()), "write through"))
    }
}

fn mismatch_text(asked: &str, shown: &str) -> String {
    format!("asked for {asked}, the kernel shows {shown}")
}

/// The disks under the file system.
pub(crate) fn disks(device: Option<&Path>, more: &[PathBuf]) -> Vec<(u32, u32)> {
    device.into_iter().chain(more.iter().map(PathBuf::as_path)).filter_map(devices::device_number).collect()
}

/// Where scheduler and queue are not as the target says, on any of its disks.
pub(crate) fn queue_mismatches(target: &Target, disks: &[(u32, u32)]) -> Vec<String> {
    let shown =
        |number: &(u32, u32), name: &str| devices::queue_file(*number, name).and_then(content).unwrap_or_default();
    let of_disk = |number: &(u32, u32)| {
        let scheduler =
            target.scheduler.as_ref().and_then(|asked| scheduler_mismatch(asked, &shown(number, "scheduler")));
        let setting = |(name, asked): (&String, &serde_json::Value)| {
            let (asked, shown) = (asked.as_str().unwrap_or_default(), shown(number, name));
            (shown != asked).then(|| mismatch_text(&format!("queue {name} {asked}"), &shown))
        };
        scheduler.into_iter().chain(target.queue.0.iter().filter_map(setting)).collect::<Vec<_>>()
    };
    let mut found: Vec<String> = disks.iter().flat_map(of_disk).collect();
    found.dedup();
    found
}

pub(crate) fn sysctl_mismatches(target: &Target) -> Vec<String> {
    let mismatch = |(name, asked): (&String, &serde_json::Value)| {
        let (asked, shown) = (asked.as_str().unwrap_or_default(), content(sysctl_file(name)).unwrap_or_default());
        (shown != asked).then(|| mismatch_text(&format!("vm.{name} {asked}"), &shown))
    };
    target.sysctl.0.iter().filter_map(mismatch).collect()
}

pub(crate) fn sysctl_file(name: &str) -> PathBuf {
    Path::new("/proc/sys/vm").join(name)
}

fn scheduler_mismatch(asked: &str, shown: &str) -> Option<String> {
    let taken = shown == asked || shown.contains(&format!("[{asked}]"));
    (!taken).then(|| mismatch_text(&format!("scheduler {asked}"), shown))
}

/// True if the kernel is about to take a cache that must be flushed for none, or if a layer hides
/// it.
pub(crate) fn loses_flushes(target: &Target, disks: &[(u32, u32)]) -> bool {
    let has_cache = |number: &(u32, u32)| {
        devices::queue_file(*number, "write_cache").and_then(content).as_deref() == Some("write back")
    };
    let is_told = target.queue.text("write_cache") == Some("write through") && disks.iter().any(has_cache);
    let hides = |number: &(u32, u32)| !has_cache(number) && devices::all_below(*number).iter().any(has_cache);
    is_told || disks.iter().any(hides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bus_is_known_by_the_path_of_its_disk() {
        let pci = "/sys/devices/pci0000:00/0000:00:05.0";
        for (path, expected) in [
            ("virtio3/block/vda", Some("virtio-blk")),
            ("virtio3/host2/target2:0:0/2:0:0:0/block/sda", Some("virtio-scsi")),
            ("nvme/nvme0/nvme0n1", Some("nvme")),
            ("ata3/host2/target2:0:0/2:0:0:0/block/sda", Some("sata")),
            ("usb1/1-1/1-1:1.0/host3/target3:0:0/3:0:0:0/block/sdb", None),
        ] {
            assert_eq!(bus(&Path::new(pci).join(path)), expected, "{path}");
        }
        assert_eq!(bus(Path::new("/sys/devices/virtual/block/loop0")), None);
        assert_eq!(chosen("none (voluntary) full").as_deref(), Some("voluntary"));
    }

    #[test]
    fn what_is_not_as_asked_is_told() {
        let shown = MachineState {
            words: split(
                "console=ttyS0 preempt=full nosuchword elevator=noop a.timeout=5 a.off=0 a.wrong=1 b.absent=1",
            ),
            unknown: split("nosuchword"),
            parameters: [("a.timeout", "5"), ("a.off", "N"), ("a.wrong", "N")]
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .into(),
            preemption: Some("full".into()),
            processors: 2,
            memory_bytes: 980 << 20,
            bus: Some("nvme"),
            write_cache: Some("write through".into()),
        };
        let rows = [
            (json!({}), None),
            (json!({"words": "preempt=full", "bus": "nvme", "processors": 2, "memory": 1 << 30}), None),
            (json!({"words": "preempt=none"}), Some("kernel word preempt=none")),
            (json!({"words": "nosuchword"}), Some("kernel word nosuchword")),
            (json!({"words": "absent"}), Some("kernel word absent")),
            (json!({"words": "a.timeout=5 a.off=0"}), None),
            (json!({"words": "a.wrong=1"}), Some("kernel word a.wrong=1")),
            (json!({"words": "b.absent=1"}), Some("kernel word b.absent=1")),
            (json!({"bus": "sata"}), Some("bus sata")),
            (json!({"processors": 4}), Some("4 processors")),
            (json!({"memory": 2_u64 << 30}), Some("memory 2.00 GiB")),
            (json!({"cache": "none"}), Some("cache none")),
            (json!({"cache": "directsync"}), None),
        ];
        for (asked, expected) in rows {
            let asked = Settings(serde_json::from_value(asked).unwrap());
            let found = shown.mismatches(&asked, &Settings::default());
            let wanted: Vec<String> =
                expected.iter().map(|what| format!("asked for {what}, the kernel shows ")).collect();
            assert_eq!(found.len(), wanted.len(), "{asked:?}: {found:?}");
            assert!(wanted.iter().all(|begin| found[0].starts_with(begin)), "{asked:?}: {found:?}");
        }
        let still = MachineState { preemption: None, ..shown };
        let asked = Settings([("words".to_string(), "preempt=full".into())].into());
        assert_eq!(still.mismatches(&asked, &Settings::default()).len(), 1);
        assert_eq!(still.facts().get("preemption"), None);
    }

    #[test]
    fn a_scheduler_must_be_the_one_in_brackets() {
        for (asked, shown, right) in [
            ("bfq", "none mq-deadline [bfq]", true),
            ("none", "[none] mq-deadline", true),
            ("bfq", "[none] bfq", false),
            ("none", "none", true),
            ("kyber", "", false),
        ] {
            assert_eq!(scheduler_mismatch(asked, shown).is_none(), right, "{asked} {shown}");
        }
    }
}
