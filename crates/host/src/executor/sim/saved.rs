//! A guest that has booted, saved at one instruction, for cells that go on from there and pay for
//! no boot. The boot runs by the counted clock and gives the same memory on every host. At the stop
//! itself QEMU's main thread may move the clock to the next timer, or stop first: two states that
//! were saved of the same boot differed in their clocks by 3.5 ms, and so did all cells. The driver
//! waits behind the stop, with interrupts off, until one exact time by which that is over.

use super::qemu::{self, Saved};
use crate::executor::vm::{Guest, Monitor, Tail, emulator, end};
use anyhow::{Context, Result};
use pickfs_core::protocol::Connection;
use pickfs_system::process::{argv, run_program};
use serde_json::json;
use std::fs::File;
use std::path::Path;
use std::process::{Child, ChildStdout};

/// Of the state in its image.
const NAME: &str = "booted";
const BOOTS: &str = "leave `saved` out of the plan, so that each cell boots";

/// Boots the machine until it stops itself, and saves it into its image.
pub(crate) fn make(guest: &Guest, machine: &qemu::Machine, run: &str) -> Result<()> {
    let Saved { image, monitor: socket } = machine.saved.as_ref().context("a machine that is not to be saved")?;
    run_program(&argv(["qemu-img", "create", "-q", "-f", "qcow2", &image.display().to_string(), "1M"]))?;
    let (mut connection, _) = start(guest, machine, run, "")?;
    let save = |emulator: &mut Child| {
        let mut monitor = listening(socket, emulator)?;
        monitor.ask("cont", json!({}))?;
        monitor.wait_for_stop()?;
        monitor.tell(&format!("savevm {NAME}"))?;
        monitor.ask("quit", json!({}))
    };
    let saved = save(&mut connection.child);
    let saved = saved.with_context(|| format!("a simulated machine does not boot, or cannot be saved; {BOOTS}"));
    end(saved, connection, || console(machine)).map(drop)
}

/// Starts QEMU: with a copy of what was saved, which goes on as soon as this returns, or with a
/// boot.
pub(crate) fn go_on(
    guest: &Guest,
    machine: &qemu::Machine,
    run: &str,
    cell: &str,
) -> Result<(Connection, ChildStdout)> {
    let (mut connection, silent) = start(guest, machine, run, cell)?;
    let Some(saved) = &machine.saved else { return Ok((connection, silent)) };
    let load = |emulator: &mut Child| {
        let mut monitor = listening(&saved.monitor, emulator)?;
        monitor.tell(&format!("loadvm {NAME}"))?;
        monitor.ask("cont", json!({}))
    };
    match load(&mut connection.child) {
        Ok(_) => Ok((connection, silent)),
        Err(error) => {
            let error = error.context(format!("a simulated machine does not go on; {BOOTS}"));
            end(Err(error), connection, || console(machine))
        }
    }
}

fn console(machine: &qemu::Machine) -> Tail {
    let console = machine.console.clone();
    Tail::of(move || File::open(console))
}

fn start(guest: &Guest, machine: &qemu::Machine, run: &str, cell: &str) -> Result<(Connection, ChildStdout)> {
    for old in [Some(&machine.console), machine.saved.as_ref().map(|saved| &saved.monitor)].into_iter().flatten() {
        let _ = std::fs::remove_file(old);
    }
    Connection::open_silent(&mut emulator(&qemu::command(guest, machine)?, run, cell))
}

/// What the host shares with the guest is no part of its state.
fn listening(socket: &Path, emulator: &mut Child) -> Result<Monitor> {
    let mut monitor = Monitor::connect(socket, emulator)?;
    let capability = json!({ "capability": "x-ignore-shared", "state": true });
    monitor.ask("migrate-set-capabilities", json!({ "capabilities": [capability] }))?;
    Ok(monitor)
}
