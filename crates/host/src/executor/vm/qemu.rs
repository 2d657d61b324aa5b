//! QEMU's command line for one cell.

use super::build::Guest;
use super::names::{
    BOOT_WORD, DATA_DISK, OTHER_DISK, PORT, ROOT_DISK, ROOT_WORD, SAVED_WORD, TARGET_DISK, target_disk,
};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Nothing that results depend on: such words are the user's. Least of all what makes the kernel
/// believe its clock unchecked (`tsc=reliable`, `no_timer_check`): under emulation on a busy
/// machine it then runs many times too fast.
const KERNEL_WORDS: &str = "console=ttyS0 quiet panic=-1 oops=panic random.trust_cpu=on";

/// A machine for one cell.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// `kvm` or `tcg`.
    pub accelerator: &'static str,
    pub memory_bytes: u64,
    pub processors: u32,
    /// Of the disk under test.
    pub bus: Bus,
    /// Those under test, in order.
    pub disks: Vec<Disk>,
    /// What was staged, as a tar archive.
    pub data: Option<PathBuf>,
    /// That a tree is brought from, never written to.
    pub other_disk: Option<Disk>,
    pub initramfs: PathBuf,
    /// Where the guest's console goes: a file, or a named pipe that has a reader.
    pub console: PathBuf,
    /// More words for the kernel.
    pub kernel_words: String,
    pub start: Start,
}

/// How a machine comes to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Start {
    Boot,
    /// Boots until it waits on its port, and is saved by way of this socket of QEMU's monitor.
    ToBeSaved(PathBuf),
    /// Goes on from the state that it is sent into this socket. The machine that was saved has the
    /// same words for the kernel.
    Saved(PathBuf),
    /// What is on its disks becomes the system, while another machine waits that has the same ones.
    Second,
}

/// A disk under test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Disk {
    /// A raw file or a block device.
    pub file: PathBuf,
    /// QEMU's cache mode.
    pub cache: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bus {
    VirtioBlk,
    VirtioScsi,
    Nvme,
    Sata,
}

impl Bus {
    /// As a plan spells it; anything else is the default.
    pub(crate) fn of(name: Option<&str>) -> Bus {
        match name {
            Some("virtio-scsi") => Bus::VirtioScsi,
            Some("nvme") => Bus::Nvme,
            Some("sata") => Bus::Sata,
            _ => Bus::VirtioBlk,
        }
    }
}

/// The guest gets errors of the host as a disk would report them, instead of being stopped until
/// there is room.
const ERRORS: &str = "werror=report,rerror=report";

pub(crate) fn command(guest: &Guest, machine: &Machine) -> Result<Vec<String>> {
    let (root, kind) = guest.root()?;
    let own = match &machine.start {
        Start::Boot => "",
        Start::ToBeSaved(_) | Start::Saved(_) => SAVED_WORD,
        Start::Second => BOOT_WORD,
    };
    let kernel_words = format!("{KERNEL_WORDS} {ROOT_WORD}{kind} {own} {}", machine.kernel_words);
    let mut words = common(guest, &machine.initramfs, &kernel_words, &machine.console);
    let mut add = |list: &[&str]| words.extend(list.iter().map(|word| word.to_string()));
    add(&["-machine", "pc"]);
    let accelerator = if machine.accelerator == "tcg" { "tcg,thread=multi" } else { machine.accelerator };
    let processor = if machine.accelerator == "tcg" { "max" } else { "host" };
    add(&["-accel", accelerator, "-cpu", processor, "-smp", &machine.processors.to_string()]);
    add(&["-m", &format!("{}M", machine.memory_bytes >> 20), "-device", "virtio-serial-pci"]);
    add(&["-chardev", "stdio,id=agent,signal=off", "-device", &format!("virtserialport,chardev=agent,name={PORT}")]);
    add(&["-drive", &drive("root", &root, "readonly=on,cache=unsafe")]);
    add(&["-device", &format!("virtio-blk-pci,drive=root,serial={ROOT_DISK}")]);
    match &machine.start {
        Start::ToBeSaved(monitor) => {
            add(&["-qmp", &format!("unix:{},server=on,wait=on", text(monitor).replace(',', ",,"))])
        }
        Start::Saved(state) => add(&["-incoming", &format!("unix:{}", text(state))]),
        Start::Boot | Start::Second => {}
    }
    if let Some(data) = &machine.data {
        add(&["-drive", &drive("data", data, "readonly=on,cache=unsafe")]);
        add(&["-device", &format!("virtio-blk-pci,drive=data,serial={DATA_DISK}")]);
    }
    if let Some(other) = &machine.other_disk {
        let how = format!("readonly=on,cache={},aio=threads", other.cache);
        add(&["-drive", &drive("other", &other.file, &how)]);
        add(&["-device", &format!("virtio-blk-pci,drive=other,serial={OTHER_DISK}")]);
    }
    if !machine.disks.is_empty() {
        add(controller(machine.bus));
    }
    for (index, disk) in machine.disks.iter().enumerate() {
        // The waiting machine holds QEMU's locks.
        let locks = if machine.start == Start::Second { ",file.locking=off" } else { "" };
        let how = format!("cache={},aio=threads,discard=unmap,{ERRORS}{locks}", disk.cache);
        add(&["-drive", &drive(&format!("target{index}"), &disk.file, &how)]);
        add(&["-device", &device(machine.bus, index)]);
    }
    Ok(words)
}

/// How the emulator of any guest begins: with nothing that was not asked for.
pub(crate) fn common(guest: &Guest, initramfs: &Path, kernel_words: &str, console: &Path) -> Vec<String> {
    let [kernel, initramfs] = [&guest.bootable(), initramfs].map(text);
    let serial = format!("file:{}", text(console));
    let words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"];
    let sandbox = ["-sandbox", "on,elevateprivileges=deny,spawn=deny"];
    let kernel = ["-kernel", &kernel, "-initrd", &initramfs, "-append", kernel_words.trim(), "-serial", &serial];
    words.iter().chain(&sandbox).chain(&kernel).map(|word| word.to_string()).collect()
}

fn controller(bus: Bus) -> &'static [&'static str] {
    match bus {
        Bus::VirtioBlk | Bus::Nvme => &[],
        Bus::VirtioScsi => &["-device", "virtio-scsi-pci,id=scsi"],
        Bus::Sata => &["-device", "ahci,id=ahci"],
    }
}

/// A serial number can be twenty characters long.
fn device(bus: Bus, index: usize) -> String {
    const { assert!(TARGET_DISK.len() + 3 <= 20) };
    let (drive, serial) = (format!("drive=target{index}"), format!("serial={}", target_disk(index)));
    match bus {
        Bus::VirtioBlk => format!("virtio-blk-pci,{drive},{serial}"),
        Bus::VirtioScsi => format!("scsi-hd,{drive},{serial}"),
        Bus::Nvme => format!("nvme,{drive},{serial}"),
        Bus::Sata => format!("ide-hd,bus=ahci.{index},{drive},{serial}"),
    }
}

/// A comma in a path is doubled.
fn drive(id: &str, file: &Path, how: &str) -> String {
    format!("if=none,id={id},format=raw,file={},{how}", text(file).replace(',', ",,"))
}

pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}
