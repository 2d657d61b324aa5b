//! A program that takes long and ends at once when the run is to stop, with all that it has
//! started.

use anyhow::{Context, Result};
use pickfs_system::process::{self, check_stop};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The environment variable by which such a program's processes are found.
const MARK: &str = "PICKFS_BUILD";
const TICK: Duration = Duration::from_millis(50);

/// What it printed, however it ended; an error [`pickfs_system::process::Interrupted`] when it was
/// stopped, and none of it is left.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    let own = std::process::id().to_string();
    command.env(MARK, &own).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let (send, ended) = mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    loop {
        match ended.recv_timeout(TICK) {
            Ok(output) => return Ok(output?),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("it is no longer needed"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(stop) = check_stop() {
            process::kill_marked(&format!("{MARK}={own}")).context("cannot end it")?;
            return Err(stop);
        }
    }
}
