//! A guest of QEMU, booted for every cell: any kernel of Debian's, without root and without a spare disk.

use super::Executor;
use crate::need::Need;
use anyhow::{Context, Result};
use std::ffi::OsString;

pub struct Vm;

impl Executor for Vm {
    fn name(&self) -> &'static str {
        "vm"
    }

    fn about(&self) -> &'static str {
        "a virtual machine of Debian for every cell, without root and without a spare disk"
    }

    /// An agent that has cells done in guests.
    fn command(&self) -> Result<Vec<OsString>> {
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        Ok(vec![own.into(), "agent".into(), "--in-guests".into()])
    }

    fn needs(&self) -> Vec<Need> {
        let program = |name, package| Need::Program { name, package };
        vec![
            program("qemu-system-x86_64", "qemu-system-x86"),
            program("mmdebstrap", "mmdebstrap"),
            program("mksquashfs", "squashfs-tools"),
            program("depmod", "kmod"),
            program("tar", "tar"),
            program("xz", "xz-utils"),
        ]
    }
}
