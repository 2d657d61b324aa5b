//! The process that waits until it is watched, and then becomes the program that is recorded.

use super::preload::Preload;
use super::{calls, tracer};
use anyhow::{Context, Result, bail, ensure};
use pickfs_system::sys::rings::PASSES_AT;
use pickfs_system::sys::{ptrace, seccomp};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// By this variable the starter gets the library's path.
const LIBRARY: &str = "PICKFS_PRELOAD";
/// With this variable the starter takes no filter: the program does not stop at calls.
pub(crate) const UNFILTERED: &str = "PICKFS_UNFILTERED";
/// With this variable, a number, the starter starts the program that often and does not become it.
pub(crate) const TIMES: &str = "PICKFS_TIMES";
/// How long the start may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a program, which waits until it is watched, and watches it.
pub(crate) fn started(mut starter: Command, words: &[String], preload: Option<&Preload>) -> Result<i32> {
    if let Some(preload) = preload {
        starter.env(LIBRARY, preload.library());
    }
    let child = starter.args(words).spawn().context("cannot start the recorded program")?;
    let pid = child.id() as i32;
    ptrace::seize(pid).context(
        "cannot watch the program with ptrace(2); see /proc/sys/kernel/yama/ptrace_scope, and the seccomp profile of the \
         container",
    )?;
    Ok(pid)
}

/// Waits until it is watched, lets the kernel stop it at calls on files, and becomes the program.
/// Returns if it cannot.
pub fn run_watched(words: &[String]) -> Result<()> {
    let begun = Instant::now();
    while !ptrace::is_watched() {
        ensure!(begun.elapsed() < PATIENCE, "nothing records this program");
        std::thread::sleep(Duration::from_millis(1));
    }
    let library = std::env::var(LIBRARY).ok();
    if std::env::var_os(UNFILTERED).is_none() {
        calls::with_filter(library.as_ref().map(|_| PASSES_AT), seccomp::install)
            .context("the kernel takes no filter of system calls (seccomp)")?;
        tracer::calibrate();
    }
    let Some((program, arguments)) = words.split_first() else { bail!("there is no program to record") };
    let mut command = Command::new(program);
    command.args(arguments).env_remove(LIBRARY).env_remove(UNFILTERED).env_remove(TIMES);
    if let Some(library) = library {
        // Before what is loaded into all programs here.
        let others = std::env::var("LD_PRELOAD").ok().filter(|others| !others.is_empty());
        command.env("LD_PRELOAD", [Some(library), others].into_iter().flatten().collect::<Vec<_>>().join(":"));
    }
    if let Some(times) = std::env::var(TIMES).ok().and_then(|times| times.parse::<u32>().ok()) {
        for _ in 0..times {
            let status = command.status().with_context(|| format!("cannot run `{program}`"))?;
            ensure!(status.success(), "`{program}` failed");
        }
        return Ok(());
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run `{program}`"))
}
