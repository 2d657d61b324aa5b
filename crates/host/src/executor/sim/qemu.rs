//! QEMU's command line for one cell of a simulation: nothing in it has the host's clock or the
//! host's timing.

use super::processor::{PROCESSOR, Processor};
use super::region::Region;
use crate::executor::vm::{CLOCK_WORD, Guest, PACE_WORD, REGIONS_WORD, ROOT_WORD, SAVED_WORD, SIM_WORD, common, text};
use anyhow::Result;
use std::path::PathBuf;

/// An instruction is a nanosecond, and idle time is skipped. Recording closes a race of QEMU's
/// between a processor that falls asleep and the clock that is moved for it; what is recorded is
/// not needed.
const CLOCK: &str = "shift=0,sleep=off,align=off,rr=record,rrfile=/dev/null";
/// The date of every simulation.
pub(crate) const DATE: &str = "2026-01-01T00:00:00";
/// The same, as records have it.
pub(crate) const DATE_OF_RECORDS: &str = "2026-01-01T00:00:00Z";
/// The same, in seconds since 1970.
pub(crate) const DATE_SECONDS: u64 = 1_767_225_600;
/// QEMU has no regions of memory below.
const FIRST_ADDRESS: u64 = 4 << 30;
const APART: u64 = 1 << 30;
/// The processor has forty bits of address.
const MOST_MEMORY: &str = "768G";
/// Current processors need no separate page tables for the kernel. With each change of them QEMU
/// forgets what it knows of addresses: that and the rest of the mitigations were a third of a
/// cell's processor time, and 1 % of its simulated time.
const KERNEL_WORDS: &str = "console=ttyS0 quiet panic=-1 oops=panic nokaslr tsc=reliable mitigations=off";

/// A machine for one cell, or one that boots to be saved for all cells that are alike.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub memory_bytes: u64,
    pub initramfs: PathBuf,
    /// A file that gets what the kernel says.
    pub console: PathBuf,
    pub kernel_words: String,
    pub processor: Processor,
    /// The root first.
    pub regions: Vec<Region>,
    /// A region whose disk is recorded, and the region that it is recorded in, by their places
    /// among all.
    pub recorded: Option<(usize, usize)>,
    /// A plugin that counts instructions, and the file that it writes when QEMU ends.
    pub profile: Option<(PathBuf, PathBuf)>,
    /// Set for a machine that is saved, or continues from a saved state; others boot and have no
    /// monitor.
    pub saved: Option<Saved>,
    /// Seconds of this machine's processor after which QEMU is ended.
    pub limit_seconds: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Saved {
    /// Where the state is, in QEMU's own format.
    pub image: PathBuf,
    /// A socket that is made.
    pub monitor: PathBuf,
}

pub(crate) fn command(guest: &Guest, machine: &Machine) -> Result<Vec<String>> {
    let (_, kind) = guest.root()?;
    let at = addresses(machine);
    let mut regions: Vec<String> =
        at.iter().zip(&machine.regions).map(|(at, region)| format!("{at}:{}", region.bytes)).collect();
    if let Some((disk, recording)) = machine.recorded {
        regions[disk] = format!("{}:{}", regions[disk], regions[recording]);
    }
    let regions = regions.join(",");
    let clock = clock_words(machine.processor.dilation);
    let pace = pace_words(machine.processor);
    let stops = if machine.saved.is_some() { SAVED_WORD } else { "" };
    let kernel_words = format!(
        "{KERNEL_WORDS} {clock} {pace} {SIM_WORD} {REGIONS_WORD}{regions} {stops} {ROOT_WORD}{kind} {}",
        machine.kernel_words
    );
    let mut words: Vec<String> = Vec::new();
    let mut add = |list: &[&str]| words.extend(list.iter().map(|word| word.to_string()));
    // At the first limit its own signal, so that it is not taken for a kill by the host.
    let (limit, last) = (machine.limit_seconds, machine.limit_seconds + 10);
    add(&["prlimit", &format!("--cpu={limit}:{last}"), "--"]);
    let common = common(guest, &machine.initramfs, &kernel_words, &machine.console);
    add(&common.iter().map(String::as_str).collect::<Vec<_>>());
    if let Some(Saved { image, monitor }) = &machine.saved {
        // The machine does not run before the monitor starts it.
        add(&["-S", "-qmp", &format!("unix:{},server=on,wait=on", text(monitor).replace(',', ",,"))]);
        // No device has this disk. The guest stops its machine by saying that it panics.
        add(&["-drive", &format!("if=none,id=state,format=qcow2,file={}", text(image).replace(',', ",,"))]);
        add(&["-device", "pvpanic", "-action", "panic=pause"]);
    }
    if let Some((plugin, out)) = &machine.profile {
        let [plugin, out] = [plugin, out].map(|file| text(file).replace(',', ",,"));
        add(&["-plugin", &format!("file={plugin},out={out}")]);
    }
    add(&[
        "-machine", "pc,nvdimm=on,hpet=off", "-accel", "tcg,thread=single", "-icount", CLOCK, "-smp", "1", "-cpu",
        PROCESSOR,
    ]);
    add(&["-rtc", &format!("base={DATE},clock=vm"), "-seed", "1"]);
    let (memory, slots) = (machine.memory_bytes >> 20, machine.regions.len());
    add(&["-m", &format!("{memory}M,slots={slots},maxmem={MOST_MEMORY}")]);
    for (index, (region, at)) in machine.regions.iter().zip(at).enumerate() {
        let file = text(&region.file).replace(',', ",,");
        let memory = format!("memory-backend-file,id=region{index},share=on,size={},mem-path={file}", region.bytes);
        add(&["-object", &memory, "-device", &format!("nvdimm,id=nvdimm{index},memdev=region{index},addr={at}")]);
    }
    Ok(words)
}

/// QEMU's count ticks once a nanosecond. A kernel that is given a higher rate has slower clocks,
/// all of them.
fn clock_words(dilation: f64) -> String {
    match (dilation * 1e6).round() as u64 {
        1_000_000 => String::new(),
        khz => format!("{CLOCK_WORD}={khz}"),
    }
}

/// The scheduler's clock counts what all processors do, so tasks seem to run for long to the
/// kernel's watchdog.
fn pace_words(processor: Processor) -> String {
    let thousandths = |times: f64| (times * 1e3).round() as u64;
    match (processor.processors, thousandths(processor.compression), thousandths(processor.user_mode)) {
        (1, 1000, 1000) => String::new(),
        (processors, compression, programs) => format!("nosoftlockup {PACE_WORD}{processors},{compression},{programs}"),
    }
}

/// Where the guest finds its regions: behind its memory, as far apart as QEMU may want.
fn addresses(machine: &Machine) -> Vec<u64> {
    let begin = FIRST_ADDRESS + machine.memory_bytes.next_multiple_of(APART);
    let next = |at: &mut u64, region: &Region| {
        let here = *at;
        *at += region.bytes.next_multiple_of(APART);
        Some(here)
    };
    machine.regions.iter().scan(begin, next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        ["vmlinuz", "root.squashfs"].iter().for_each(|name| std::fs::write(folder.path().join(name), "").expect("it"));
        let region = |name: &str| Region { file: name.into(), bytes: 1 << 20 };
        let machine = Machine {
            memory_bytes: 1 << 30,
            initramfs: "first".into(),
            console: "console".into(),
            kernel_words: "mitigations=off".into(),
            processor: Processor { dilation: 2.7, compression: 2.2, user_mode: 2.0, processors: 1 },
            regions: vec![region("a"), region("b,c")],
            recorded: Some((1, 0)),
            profile: Some(("profile.so".into(), "c,d".into())),
            saved: Some(Saved { image: "state".into(), monitor: "a,monitor".into() }),
            limit_seconds: 100,
        };
        command(&Guest::own(folder.path()).expect("a guest"), &machine).expect("words")
    }

    /// Disks, networks and channels of QEMU answer when the host does; its clocks and random
    /// numbers are the host's.
    #[test]
    fn nothing_of_the_machine_has_the_timing_of_the_host() {
        let words = words();
        for word in &words {
            for refused in ["-blockdev", "-netdev", "-nic", "-chardev", "virtio", "nvme", "scsi", "stdio", "kvm"] {
                assert!(!word.contains(refused), "{word}");
            }
        }
        let after = |flag: &str| {
            let at: Vec<usize> = (0..words.len()).filter(|at| words[*at] == flag).collect();
            at.iter().map(|at| words[at + 1].as_str()).collect::<Vec<_>>()
        };
        // The one drive is no disk of the machine: nothing in it has `drive=`.
        assert_eq!(after("-drive"), ["if=none,id=state,format=qcow2,file=state"]);
        assert!(words.iter().all(|word| !word.contains("drive=state")));
        let at = [5_u64 << 30, 6 << 30];
        assert_eq!(
            after("-device"),
            [
                "pvpanic".to_string(),
                format!("nvdimm,id=nvdimm0,memdev=region0,addr={}", at[0]),
                format!("nvdimm,id=nvdimm1,memdev=region1,addr={}", at[1])
            ]
        );
        let expected = format!("{REGIONS_WORD}{}:1048576,{}:1048576:{}:1048576 ", at[0], at[1], at[0]);
        assert!(after("-append")[0].contains(&expected), "{expected}");
        assert!(after("-append")[0].contains(" tsc_early_khz=2700000 "), "{}", after("-append")[0]);
        assert!(after("-append")[0].contains(" pickfs.pace=1,2200,2000 "), "{}", after("-append")[0]);
        assert_eq!(clock_words(1.0), "");
        for (processors, compression, user_mode, expected) in [
            (1, 1.0, 1.0, ""),
            (1, 3.0, 1.0, "nosoftlockup pickfs.pace=1,3000,1000"),
            (8, 1.0, 1.5, "nosoftlockup pickfs.pace=8,1000,1500"),
        ] {
            assert_eq!(pace_words(Processor { dilation: 2.7, compression, user_mode, processors }), expected);
        }
        // It stands still until the monitor starts it, and gets no command after that.
        assert!(words.contains(&"-S".to_string()) && after("-qmp") == ["unix:a,,monitor,server=on,wait=on"]);
        assert_eq!(after("-plugin"), ["file=profile.so,out=c,,d"]);
        assert_eq!(after("-icount"), [CLOCK]);
        assert!(CLOCK.contains("sleep=off") && CLOCK.contains("rr=record,rrfile=/dev/null"));
        assert_eq!((after("-smp"), after("-accel")), (vec!["1"], vec!["tcg,thread=single"]));
        assert_eq!(after("-cpu"), [PROCESSOR]);
        for instruction in ["-erms", "-rdrand", "-rdseed"] {
            assert!(PROCESSOR.contains(instruction), "{instruction}");
        }
        assert_eq!(after("-rtc"), ["base=2026-01-01T00:00:00,clock=vm"]);
        assert!(after("-object")[1].ends_with("mem-path=b,,c") && after("-serial") == ["file:console"]);
        assert!(words.contains(&"-nodefaults".to_string()) && words.contains(&"-seed".to_string()));
    }
}
