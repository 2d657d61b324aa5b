//! What is in effect, read back from the kernel and the tools, not copied from the plan.

use super::hardware;
use crate::stack::fs::feature::FsState;
use crate::stack::fs::oldest_kernel;
use crate::stack::fs::{Filesystem, argvs, of_kernel, spelled};
use crate::stack::{AboveMount, Argv};
use crate::stage::{BuiltStack, served};
use crate::steps::StepRunner;
use anyhow::Result;
use pickfs_core::journal::{BackingHardware, Disk, MKFS_WORDS, MOUNT_WORDS, Provenance, VERSION};
use pickfs_core::plan::{Cell, FILE, VOLUME};
use pickfs_system::process::{NO_LISTING, listing};
use pickfs_system::sys::devices::{self, content};
use pickfs_system::sys::file;
use pickfs_system::units::show_bytes;
use procfs::process::MountInfo;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

/// The kernel's interface to limit how long processors take to wake up, in microseconds.
pub const CPU_LATENCY: &str = "/dev/cpu_dma_latency";

type Facts = BTreeMap<String, String>;

/// Versions of the programs that a cell uses, by name.
pub(crate) fn versions(programs: Vec<(&'static str, Argv)>, run: &str) -> Vec<(String, String)> {
    let said = |words: &Argv| version_in(&listing(words, run));
    programs.into_iter().map(|(name, words)| (format!("{VERSION}{name}"), said(&words))).collect()
}

/// Some programs say their version with their usage alone: in a line of it, or before it. A package
/// that dpkg does not know, as in a guest, has none.
fn version_in(said: &str) -> String {
    if said.starts_with("dpkg-query: ") {
        return format!("{NO_LISTING}{said}");
    }
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let Some(usage) = lines.iter().position(|line| line.to_lowercase().starts_with("usage:")) else {
        return said.to_string();
    };
    let (before, within) = lines.split_at(usage);
    match within.iter().find(|line| line.starts_with("Version")) {
        Some(version) => version.to_string(),
        None if before.is_empty() => said.to_string(),
        None => before.join("\n"),
    }
}

/// A cell's facts, and where they contradict the plan.
pub(crate) fn of_cell(cell: &Cell, stack: &BuiltStack, runner: &StepRunner) -> Result<Provenance> {
    let mount = devices::mount_of(&stack.stored().canonicalize()?)?;
    let options = devices::effective_options(&mount);
    let shown: Vec<String> = options.iter().map(|(name, value)| spelled(name, value.as_deref())).collect();
    let mut facts = Facts::from([("mount".to_string(), in_words(&mount)), ("seed".to_string(), cell.seed.to_string())]);
    facts.extend(of_device(stack));
    let served = served(&mount).filter(|_| stack.driver.is_none());
    facts.extend(served.map(|served| ("served".to_string(), served.not_covered())));
    let sysctl = |name: &String| Some((format!("vm.{name}"), content(hardware::sysctl_file(name))?));
    facts.extend(stack.target.sysctl.0.keys().filter_map(sysctl));
    facts.extend(stack.layers.facts.clone());
    let mut provenance = Provenance { cell: cell.id.clone(), ..Provenance::default() };
    if let Some(driver) = stack.driver {
        let spec = stack.spec();
        facts.extend(driver.mkfs(&spec).map(|words| ("mkfs".to_string(), words.join(" "))));
        let asked = [(MKFS_WORDS, spec.mkfs.join(" ")), (MOUNT_WORDS, spec.mount.join(","))];
        facts.extend(asked.map(|(name, words)| (name.to_string(), words)));
        facts.extend(driver.facts(&spec).into_iter().map(|(name, words)| (name.to_string(), runner.listing(&words))));
        facts.extend(versions(argvs(driver.versions), &runner.run));
        provenance.mismatches = driver.mismatches(&spec, &options, &facts);
        provenance.mismatches.extend(other_driver(driver.kernel_type(), &mount.fs_type));
        provenance.weakened = weakened(driver, &spec.mount, &spec.mkfs, &shown);
        provenance.weakened.extend(driver.volatile.then(|| "kept in memory alone".to_string()));
    }
    let kernels = stack.driver.and_then(|driver| oldest_kernel::of(driver, &facts));
    let names = ["oldest kernel that reads it", "oldest kernel that writes it"];
    facts.extend(kernels.into_iter().flatten().zip(names).map(|(kernel, name)| (name.to_string(), kernel)));
    facts.extend(features(stack, &mount.fs_type, &shown, &facts).map(|names| ("features".to_string(), names)));
    provenance.largest = documented(stack.driver.or_else(|| of_kernel(&mount.fs_type)));
    facts.extend(
        provenance
            .largest
            .iter()
            .map(|(what, bytes)| (format!("documented: largest {what}"), show_bytes(*bytes as f64))),
    );
    provenance.mismatches.extend(stack.layers.mismatches.iter().cloned());
    let attributes = file::attributes(&stack.stored()).ok();
    provenance.mismatches.extend(hardware::queue_mismatches(&stack.target, &stack.subject.devices()));
    provenance.mismatches.extend(hardware::sysctl_mismatches(&stack.target));
    if stack.flushes_lost {
        provenance.weakened.push("write_cache=write through".into());
    }
    if let Some(shown) = hardware::look(&stack.target) {
        facts.extend(shown.facts());
        provenance.mismatches.extend(shown.mismatches(&stack.target.machine, &stack.target.queue));
    }
    provenance.mismatches.extend(of_above(&stack.above, runner, &mut facts)?);
    provenance.mismatches.extend(in_place_mismatch(stack, attributes.as_deref()));
    facts.extend(attributes.map(|names| ("attributes".to_string(), names.join(" "))));
    provenance.facts = facts;
    Ok(provenance)
}

/// Adds how layers above are mounted, and versions of their programs; what contradicts the plan in
/// that.
fn of_above(all: &[AboveMount], runner: &StepRunner, facts: &mut Facts) -> Result<Vec<String>> {
    let mut mismatches = Vec::new();
    for (number, above) in all.iter().enumerate() {
        let mount = devices::mount_of(&above.mount_point().canonicalize()?)?;
        let served = above.facts().into_iter().map(|(name, words)| (name.to_string(), runner.listing(&words)));
        let served: Vec<_> = served.collect();
        let shown = served.iter().map(|(_, shown)| shown.as_str()).collect::<String>();
        mismatches.extend(above.mismatches(&mount.fs_type, &devices::effective_options(&mount), &shown));
        facts.extend(served);
        let of_module = (mount.fs_type == "overlay").then(|| format!("; {}", devices::overlay_parameters()));
        let name = format!("above: {}", above.layer.name);
        let name = if facts.contains_key(&name) { format!("{name} ({})", number + 1) } else { name };
        facts.insert(name, in_words(&mount) + &of_module.unwrap_or_default());
        facts.extend(versions(argvs(above.layer.versions), &runner.run));
    }
    Ok(mismatches)
}

/// A helper of `mount` may give the device to another driver. FUSE shows its programs behind a dot.
fn other_driver(asked: &str, shown: &str) -> Option<String> {
    let driver = shown.split('.').next();
    (driver != Some(asked)).then(|| format!("asked for the driver {asked}, the kernel shows {shown}"))
}

/// Source, type and options, as mountinfo has them.
fn in_words(mount: &MountInfo) -> String {
    let options = devices::effective_options(mount);
    let shown: Vec<String> = options.iter().map(|(name, value)| spelled(name, value.as_deref())).collect();
    format!("{} {} {}", mount.mount_source.as_deref().unwrap_or_default(), mount.fs_type, shown.join(","))
}

/// Largest file and volume by the driver; what is tried later takes precedence.
fn documented(driver: Option<&Filesystem>) -> BTreeMap<String, u64> {
    let Some(driver) = driver else { return BTreeMap::new() };
    let largest = [(FILE, driver.limits.file), (VOLUME, driver.limits.volume)];
    largest.into_iter().filter_map(|(what, bytes)| Some((what.to_string(), bytes?))).collect()
}

/// What users can have of this file system, with blanks between; of one that we did not make, as
/// far as its type and its mount options tell. Nothing where no driver knows it.
fn features(stack: &BuiltStack, kind: &str, shown: &[String], facts: &Facts) -> Option<String> {
    let features = match stack.driver {
        Some(driver) => {
            let spec = stack.spec();
            let mount: Vec<String> = spec.mount.iter().chain(shown).cloned().collect();
            driver.features.in_effect(&FsState { mount: &mount, ..spec.state(facts) })
        }
        None => {
            let state = FsState { mkfs: &[], mount: shown, variant: None, nodatacow: false, facts };
            of_kernel(kind)?.features.in_effect(&state)
        }
    };
    let is_hidden = |name: &&&str| stack.above.iter().any(|above| above.layer.hides.contains(*name));
    Some(features.iter().filter(|name| !is_hidden(name)).copied().collect::<Vec<_>>().join(" "))
}

/// A block device and, if it is a loop device, the disk below: what the kernel says of them, and of
/// their queues in words.
pub(crate) fn of_backing(number: (u32, u32)) -> (BackingHardware, Facts) {
    let (device, in_words) = in_brief(number);
    let mut facts = Facts::from([("device".to_string(), in_words)]);
    let disk_below = devices::below(number).map(|below| {
        let (disk, in_words) = in_brief(below);
        facts.insert("disk below".to_string(), in_words);
        disk
    });
    (BackingHardware { device: Some(device), disk_below, ..BackingHardware::default() }, facts)
}

/// With "loop0, scheduler none, write cache write back, sectors 512/512 B, rotational 0, direct I/O
/// 1".
fn in_brief(number: (u32, u32)) -> (Disk, String) {
    let queue = |name: &str| queue_setting(number, name);
    let sys = devices::sys_path(number);
    let name = sys.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let (model, rotational) = (devices::model(number), queue("rotational"));
    let blocks: Option<u64> = content(sys.join("size")).and_then(|blocks| blocks.parse().ok());
    let disk = Disk {
        device: name.clone().unwrap_or_default(),
        model: model.clone().unwrap_or_default(),
        rotational: rotational.as_ref().map(|flag| flag == "1"),
        bytes: blocks.map(|blocks| blocks * 512),
    };
    let sectors = queue("logical_block_size").zip(queue("physical_block_size"));
    let parts = [
        name,
        model,
        queue("scheduler").map(|shown| format!("scheduler {shown}")),
        queue("write_cache").map(|mode| format!("write cache {mode}")),
        sectors.map(|(logical, physical)| format!("sectors {logical}/{physical} B")),
        rotational.map(|flag| format!("rotational {flag}")),
        content(sys.join("loop/dio")).map(|flag| format!("direct I/O {flag}")),
    ];
    (disk, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn queue_setting(number: (u32, u32), name: &str) -> Option<String> {
    devices::queue_file(number, name).and_then(content)
}

/// The queue of the device under the file system.
fn of_device(stack: &BuiltStack) -> Facts {
    let Some(number) = stack.subject.device else { return Facts::new() };
    let mut facts = Facts::from([("device".to_string(), format!("{}:{}", number.0, number.1))]);
    let names = [
        "scheduler", "write_cache", "fua", "logical_block_size", "physical_block_size", "rotational", "read_ahead_kb",
        "discard_max_bytes",
    ];
    for name in names.into_iter().chain(stack.target.queue.0.keys().map(String::as_str)) {
        facts.extend(queue_setting(number, name).map(|value| (format!("queue {name}"), value)));
    }
    let sys = devices::sys_path(number);
    facts.extend(devices::model(number).map(|model| ("model".to_string(), model)));
    for (name, file) in [
        ("sectors", "size"),
        ("loop direct I/O", "loop/dio"),
        ("loop file", "loop/backing_file"),
        ("zram algorithm", "comp_algorithm"),
        ("zram size", "disksize"),
    ] {
        facts.extend(content(sys.join(file)).map(|value| (name.to_string(), value)));
    }
    facts
}

/// As asked and as shown: an option that weakens counts wherever it is seen.
fn weakened(driver: &Filesystem, mount: &[String], mkfs: &[String], shown: &[String]) -> Vec<String> {
    let mut found: Vec<String> =
        mount.iter().chain(mkfs).chain(shown).filter(|option| driver.mounting.weakens(option)).cloned().collect();
    found.sort();
    found.dedup();
    found
}

/// What is made in the work's folder takes the attribute from it.
fn in_place_mismatch(stack: &BuiltStack, attributes: Option<&[String]>) -> Option<String> {
    let found = attributes.is_some_and(|names| names.iter().any(|name| name == file::IN_PLACE));
    let by_variant = stack.driver.and_then(|driver| driver.making.in_place?(&stack.spec())).is_some();
    let is_asked = stack.target.nodatacow || by_variant;
    let shown = attributes.map_or("none".into(), |names| names.join(" "));
    (is_asked && !found).then(|| format!("asked for data in place, the kernel shows these attributes: {shown}"))
}

/// "rack-7 (3f9a01bc)": clones have one name, and machines of a rack one kind of hardware. The
/// machine's own number is secret, so that its hash stands here (machine-id(5)).
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let number = content("/etc/machine-id").or_else(|| content("/sys/class/dmi/id/product_uuid"));
    let hash = number.map(|id| xxhash_rust::xxh3::xxh3_64(format!("pickfs {id}").as_bytes()) as u32);
    Some(hash.map_or(name.clone(), |hash| format!("{name} ({hash:08x})")))
}

/// What holds for the whole run.
pub(crate) fn of_host() -> Facts {
    let mut facts = Facts::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.filter(|v| !v.is_empty()).map(|v| (name.to_string(), v)));
    };
    fact("kernel", content("/proc/sys/kernel/osrelease"));
    fact("kernel version", content("/proc/sys/kernel/version"));
    fact("architecture", Some(std::env::consts::ARCH.into()));
    fact("system", field("/etc/os-release", "PRETTY_NAME=").map(|name| name.trim_matches('"').to_string()));
    fact("cpu", field("/proc/cpuinfo", "model name").map(|name| name.trim_start_matches([' ', '\t', ':']).to_string()));
    fact("cpus", std::thread::available_parallelism().ok().map(|n| n.to_string()));
    fact(
        "microcode",
        field("/proc/cpuinfo", "microcode").map(|name| name.trim_start_matches([' ', '\t', ':']).to_string()),
    );
    fact("governor", content("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    fact("idle driver", content("/sys/devices/system/cpu/cpuidle/current_driver").filter(|driver| driver != "none"));
    fact("cpu latency limit", cpu_latency());
    fact("turbo off", content("/sys/devices/system/cpu/intel_pstate/no_turbo"));
    fact("memory", memory("MemTotal:"));
    fact("swap", memory("SwapTotal:"));
    fact("host name", host_name());
    fact("machine", content("/sys/class/dmi/id/product_name"));
    for knob in [
        "dirty_bytes",
        "dirty_background_bytes",
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_expire_centisecs",
        "dirty_writeback_centisecs",
    ] {
        fact(knob, content(format!("/proc/sys/vm/{knob}")));
    }
    facts
}

/// How long processors may take to wake up: the smallest limit that any program asked for. Only
/// root may read it.
fn cpu_latency() -> Option<String> {
    const NO_LIMIT: i32 = 2_000_000_000;
    let mut bytes = [0; 4];
    File::open(CPU_LATENCY).and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    let microseconds = i32::from_ne_bytes(bytes);
    (0..NO_LIMIT).contains(&microseconds).then(|| format!("{microseconds} µs"))
}

/// `/proc/meminfo` says kB and means KiB.
fn memory(field_name: &str) -> Option<String> {
    let kibibytes: f64 = field("/proc/meminfo", field_name)?.trim_end_matches("kB").trim().parse().ok()?;
    Some(pickfs_system::units::show_bytes(kibibytes * 1024.0))
}

fn field(path: &str, begin: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(begin)).map(|rest| rest.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(driver: Option<&'static Filesystem>, variant: &str) -> BuiltStack {
        let target = pickfs_core::plan::Target { variant: Some(variant.into()), ..Default::default() };
        let (mount_point, root, pool) = ("/m".into(), "/m/root".into(), "pickfs".into());
        BuiltStack { driver, target, mount_point, root, pool, ..BuiltStack::default() }
    }

    #[test]
    fn of_a_usage_the_version_is_kept_and_an_error_is_none() {
        let rows = [
            ("mkudffs from udftools 2.3\nUsage:\n\tmkudffs [options] device\nOptions:\n", "mkudffs from udftools 2.3"),
            (
                "bonnie++: invalid option -- 'h'\nusage:\nbonnie++ [-d scratch-dir]\n      [-D]\n\nVersion: 2.00a",
                "Version: 2.00a",
            ),
            ("zfs-fuse\t0.7.0-25", "zfs-fuse\t0.7.0-25"),
            (
                "dpkg-query: no packages found matching zfs-fuse",
                "unknown: dpkg-query: no packages found matching zfs-fuse",
            ),
            ("Usage: mkfs.fat [OPTIONS]\nCreate FAT", "Usage: mkfs.fat [OPTIONS]\nCreate FAT"),
            (
                "mkfs.btrfs, part of btrfs-progs v6.2\n+EXPERIMENTAL",
                "mkfs.btrfs, part of btrfs-progs v6.2\n+EXPERIMENTAL",
            ),
        ];
        for (said, wanted) in rows {
            assert_eq!(version_in(said), wanted);
        }
    }

    #[test]
    fn a_mount_by_another_driver_is_a_mismatch() {
        assert_eq!(other_driver("ext4", "ext4"), None);
        assert_eq!(other_driver("fuse", "fuse.zfs"), None);
        let found = other_driver("ntfs", "fuseblk").unwrap();
        assert_eq!(found, "asked for the driver ntfs, the kernel shows fuseblk");
    }

    #[test]
    fn a_folder_that_copies_on_write_all_the_same_is_a_mismatch() {
        let mut stack = stack(crate::stack::fs::find("btrfs"), "");
        let wrong = |stack: &BuiltStack, names: Option<&[&str]>| {
            let names = names.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
            in_place_mismatch(stack, names.as_deref()).is_some()
        };
        assert!(!wrong(&stack, Some(&[])) && !wrong(&stack, None));
        stack.target.nodatacow = true;
        assert!(wrong(&stack, Some(&["noatime"])) && wrong(&stack, None));
        assert!(!wrong(&stack, Some(&["noatime", file::IN_PLACE])));
        let by_variant = self::stack(crate::stack::fs::find("btrfs"), "nocow");
        assert!(wrong(&by_variant, Some(&["noatime"])) && !wrong(&by_variant, Some(&[file::IN_PLACE])));
    }

    #[test]
    fn features_are_those_of_what_stands() {
        let none = Facts::new();
        let shown = |options: &str| options.split(',').map(String::from).collect::<Vec<_>>();
        let made = |variant: &str, options: &str| {
            features(&stack(crate::stack::fs::find("btrfs"), variant), "btrfs", &shown(options), &none).unwrap()
        };
        assert!(made("lzo", "rw,compress=lzo").starts_with("checksums compression crash-consistency "));
        assert!(made("nocow", "rw").starts_with("crash-consistency "));
        assert!(made("", "rw,nodatasum").starts_with("crash-consistency "));
        let found = |kind: &str, options: &str| features(&stack(None, ""), kind, &shown(options), &none);
        assert!(found("btrfs", "rw").unwrap().contains("checksums compression"));
        assert!(found("btrfs", "rw,nodatacow").unwrap().starts_with("crash-consistency "));
        assert_eq!([found("overlay", "rw"), found("fuse", "rw")], [None, None]);
    }

    #[test]
    fn the_host_has_a_kernel_and_memory() {
        let facts = of_host();
        assert!(facts.contains_key("kernel") && facts.contains_key("memory"), "{facts:?}");
    }
}
