//! A guest of QEMU, booted for every cell: any kernel of Debian's, without root and without a spare
//! disk.
//!
//! The folder has both ends of the pipe: `build` makes guests, `init` is process 1 inside one. It
//! must not know what is measured: it brings the agent up in the guest.

mod accelerator;
mod boot;
mod build;
mod console;
mod furnished;
mod host_cache;
mod init;
mod initramfs;
mod kept;
mod machine;
mod monitor;
mod names;
mod qemu;
mod recipes;
mod saved;
mod second_boot;

pub(super) use boot::{emulator, end, explained, is_killed};
pub(super) use build::{Driver, plugin_of};
pub use build::{Guest, RELEASES, Recipe, all, enter, find_or_build, folder, remove};
pub(super) use console::Tail;
pub(super) use furnished::{Furnished, LEAST_MEMORY};
pub use init::boot_root::main as tell_ready;
pub use init::main as init;
pub(super) use kept::{Alike, find_or_make as find_or_save};
pub(super) use machine::in_the_guest;
pub(super) use monitor::Monitor;
pub(super) use names::{
    CLOCK_WORD, DATA_DISK, OTHER_DISK, PACE_WORD, RECORDING_DISK, RECORDS_DISK, REGIONS_WORD, REQUEST_DISK, ROOT_DISK,
    ROOT_WORD, SAVED_WORD, SIM_WORD, SYMBOLS_ASKED, SYMBOLS_ASKED_AT, target_disk as nth_target_disk,
};
pub(super) use qemu::{common, text};
pub use recipes::recipes;
pub(super) use recipes::{is_own, kernel_of, objection_to};

use super::{Executor, Machine};
use pickfs_core::plan::SettingKind::*;
use pickfs_core::plan::{Objection, Plan, Setting, Settings, setting};
use pickfs_system::need::Need;
use std::path::PathBuf;

pub const NAME: &str = "vm";

pub struct Vm;

#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    setting("kernel", NameOrPath, Some("bookworm"),
        "release of Debian that brings kernel and programs: bullseye (5.10), bookworm (6.1), trixie (6.12), sid; or a \
        folder with your own kernel and root"),
    setting("words", Text, None, "for the kernel, such as \"preempt=full\""),
    setting("memory", Size, Some("1GiB"), "in addition to what is staged in it"),
    setting("processors", Count, None, "by default as many as the host has"),
    setting("bus", Choice(&["virtio-blk", "virtio-scsi", "nvme", "sata"]), Some("virtio-blk"),
        "what the disk is attached to"),
    setting("cache", Choice(&["none", "writethrough", "writeback", "directsync"]), Some("none"),
        "what QEMU does with the host's page cache; \"none\" passes it by, and a flush is a flush of the host"),
    setting("saved", Flag, None,
        "cells go on from one saved boot; by default where the processor is emulated, as booting is slow there. Not \
        with the bus `nvme`, whose state QEMU cannot save"),
];

/// True if guests are known to have no KVM here; before the first check they may have it.
pub fn is_emulated() -> bool {
    accelerator::known().is_some_and(|known| known.name == "tcg")
}

impl Executor for Vm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "a virtual machine of Debian for every cell, without root and without a spare disk"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn machine(&self, plan: &Plan) -> Box<dyn Machine> {
        Box::new(machine::Guests::new(plan))
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        settings.text("kernel").and_then(recipes::objection_to).into_iter().collect()
    }

    fn condition(&self) -> Option<String> {
        Some(match accelerator::known() {
            Some(known) if known.name == "kvm" => format!("ok      guests run on {}", known.with_reason()),
            Some(known) => format!("note    guests run on {}, many times slower", known.with_reason()),
            None => "note    KVM: not known; the first run with --executor vm boots a kernel to find out".into(),
        })
    }

    fn disk_names(&self, disks: usize) -> Vec<PathBuf> {
        (0..disks).map(|index| machine::in_the_guest(&names::target_disk(index))).collect()
    }

    fn brings_its_own(&self) -> bool {
        true
    }

    /// An emulated processor takes about a minute to get ready; how long another takes was not
    /// measured.
    fn seconds(&self) -> u64 {
        if is_emulated() { 60 } else { 0 }
    }

    fn needs(&self) -> Vec<Need> {
        let program = |name, package| Need::Program { name, package };
        vec![
            program("qemu-system-x86_64", "qemu-system-x86"),
            program("mmdebstrap", "mmdebstrap"),
            program("mksquashfs", "squashfs-tools"),
            program("depmod", "kmod"),
            program("setpriv", "util-linux"),
            program("tar", "tar"),
            program("xz", "xz-utils"),
        ]
    }
}
