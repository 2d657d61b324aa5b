//! A guest of QEMU, booted for every cell: any kernel of Debian's, without root and without a spare disk.
//!
//! The folder has both ends of the pipe: `build` makes guests, `init` is process 1 inside one. It must not know what is
//! measured: it brings the agent up in the guest.

mod accelerator;
mod build;
mod clock;
mod console;
mod host_cache;
mod init;
mod names;
mod qemu;
mod relay;
mod running;
mod second_boot;

use super::Executor;
use crate::need::Need;
use crate::plan::{Kind, Setting};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::time::Duration;

pub use accelerator::{Accelerator, known as known_accelerator};
pub use build::{Guest, RELEASES, Recipe, Release, all, enter, find_or_build, folder, remove};
pub use init::boot_root::main as tell_ready;
pub use init::main as init;
pub use relay::{main as relay, objection_to, recipes};

/// From the start of QEMU until the agent's first word, emulated on a busy machine.
pub const BOOT_PATIENCE: Duration = Duration::from_secs(180);
/// An emulated kernel on a busy machine may panic in its check of timers (`IO-APIC + timer doesn't work`), though nothing
/// is wrong with it: so often it is booted before that is the cell's failure.
pub const BOOTS: u32 = 3;
/// From there until its cell begins: what was staged is unpacked, and the raw speed of the disk taken.
pub const READY_PATIENCE: Duration = Duration::from_secs(180);
/// How long an agent in a guest may take to tear down after its own deadline.
pub const GUEST_GRACE: Duration = Duration::from_secs(30);

pub struct Vm;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "kernel",
        kind: Kind::NameOrPath,
        default: Some("bookworm"),
        about: "release of Debian that brings kernel and programs: bullseye (5.10), bookworm (6.1), trixie (6.12), sid; \
                or a folder with a kernel and a root of your own",
    },
    Setting { name: "words", kind: Kind::Text, default: None, about: "for the kernel, such as \"preempt=full\"" },
    Setting { name: "memory", kind: Kind::Size, default: Some("1GiB"), about: "beside what is staged in it" },
    Setting { name: "processors", kind: Kind::Count, default: None, about: "as many as the host has unless said" },
    Setting {
        name: "bus",
        kind: Kind::Choice(&["virtio-blk", "virtio-scsi", "nvme", "sata"]),
        default: Some("virtio-blk"),
        about: "what the disk is attached to",
    },
    Setting {
        name: "cache",
        kind: Kind::Choice(&["none", "writethrough", "writeback", "directsync"]),
        default: Some("none"),
        about: "what QEMU does with the host's page cache; \"none\" passes it by, and a flush is a flush of the host",
    },
];

impl Executor for Vm {
    fn name(&self) -> &'static str {
        "vm"
    }

    fn about(&self) -> &'static str {
        "a virtual machine of Debian for every cell, without root and without a spare disk"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    /// An agent that has cells done in guests.
    fn command(&self) -> Result<Vec<OsString>> {
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        Ok(vec![own.into(), "agent".into(), "--in-guests".into()])
    }

    /// Whoever watches the guest sees first that it is dead, and knows its console.
    fn patience(&self) -> Duration {
        BOOT_PATIENCE * BOOTS + READY_PATIENCE + GUEST_GRACE
    }

    fn brings_its_own(&self) -> bool {
        true
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
