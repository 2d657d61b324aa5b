//! QEMU's command line for one cell.

use super::cache::Guest;
use super::{DATA_DISK, PORT, ROOT_DISK, TARGET_DISK};
use std::path::{Path, PathBuf};

/// A machine for one cell.
#[derive(Clone, Debug)]
pub struct Machine {
    /// `kvm` or `tcg`.
    pub accelerator: &'static str,
    pub memory_bytes: u64,
    pub processors: u32,
    /// Of the disk under test.
    pub bus: Bus,
    /// The disk under test: a raw file or a block device.
    pub target: Option<PathBuf>,
    /// What was staged, as a tar archive.
    pub data: Option<PathBuf>,
    pub initramfs: PathBuf,
    /// Where the guest's console goes.
    pub console: PathBuf,
    /// More words for the kernel.
    pub kernel_words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    VirtioBlk,
    VirtioScsi,
    Nvme,
    Sata,
}

pub fn command(guest: &Guest, machine: &Machine) -> Vec<String> {
    let kernel_words = format!("console=ttyS0 quiet panic=-1 oops=panic {}", machine.kernel_words);
    let mut words: Vec<String> = Vec::new();
    let mut add = |list: &[&str]| words.extend(list.iter().map(|word| word.to_string()));
    add(&["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "pc"]);
    let accelerator = if machine.accelerator == "tcg" { "tcg,thread=multi" } else { machine.accelerator };
    let processor = if machine.accelerator == "tcg" { "max" } else { "host" };
    add(&["-accel", accelerator, "-cpu", processor, "-smp", &machine.processors.to_string()]);
    add(&["-m", &format!("{}M", machine.memory_bytes >> 20), "-sandbox", "on,elevateprivileges=deny,spawn=deny"]);
    add(&["-kernel", &text(&guest.kernel()), "-initrd", &text(&machine.initramfs), "-append", kernel_words.trim()]);
    add(&["-serial", &format!("file:{}", text(&machine.console)), "-device", "virtio-serial-pci"]);
    add(&["-chardev", "stdio,id=agent,signal=off", "-device", &format!("virtserialport,chardev=agent,name={PORT}")]);
    add(&["-drive", &drive("root", &guest.root(), "readonly=on,cache=unsafe")]);
    add(&["-device", &format!("virtio-blk-pci,drive=root,serial={ROOT_DISK}")]);
    if let Some(data) = &machine.data {
        add(&["-drive", &drive("data", data, "readonly=on,cache=unsafe")]);
        add(&["-device", &format!("virtio-blk-pci,drive=data,serial={DATA_DISK}")]);
    }
    if let Some(target) = &machine.target {
        // Past the host's page cache, and a flush of the guest is a flush of the host.
        add(&["-drive", &drive("target", target, "cache=none,aio=threads,discard=unmap")]);
        add(&bus(machine.bus));
    }
    words
}

fn bus(bus: Bus) -> Vec<&'static str> {
    const { assert!(TARGET_DISK.len() <= 20) }; // as long as a serial number can be
    match bus {
        Bus::VirtioBlk => vec!["-device", "virtio-blk-pci,drive=target,serial=pickfs-target"],
        Bus::VirtioScsi => {
            vec!["-device", "virtio-scsi-pci,id=scsi", "-device", "scsi-hd,drive=target,serial=pickfs-target"]
        }
        Bus::Nvme => vec!["-device", "nvme,drive=target,serial=pickfs-target"],
        Bus::Sata => vec!["-device", "ahci,id=ahci", "-device", "ide-hd,drive=target,bus=ahci.0,serial=pickfs-target"],
    }
}

/// A comma in a path is doubled.
fn drive(id: &str, file: &Path, how: &str) -> String {
    format!("if=none,id={id},format=raw,file={},{how}", text(file).replace(',', ",,"))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
