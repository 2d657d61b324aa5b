//! Records what a program does to its files, without privileges: the kernel stops it at calls on
//! files (seccomp), and what it asked for and got is written down (ptrace). All that it starts is
//! followed.
//!
//! It must not know what becomes of a trace, nor how one is replayed.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "starts the program that is recorded, and dates its calls"
)]

pub mod attach;
mod calls;
mod class;
mod cpu_clock;
mod file_call;
mod files;
mod first_tree;
mod mapped;
pub mod preload;
mod processor;
pub mod program;
pub mod scope;
mod sequence;
mod start_cost;
pub mod starter;
pub mod starts;
mod stop_cost;
pub mod strace;
mod threads;
mod tracer;
pub mod world;

use crate::{Header, SCHEMA};
use anyhow::{Context, Result, ensure};
use first_tree::FirstTree;
use pickfs_system::sys::{process, ptrace};
use preload::Preload;
use program::ProgramRecord;
use scope::Scope;
use starter::started;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tracer::Tracer;
use world::Live;

/// What to record.
pub struct RecordOptions<'a> {
    /// This program with the words that make it call [`starter::run_watched`] with the words behind
    /// them.
    pub starter: Command,
    /// This program with the words that make it call [`starts::print`].
    pub start_cost: Command,
    pub words: &'a [String],
    /// Folders whose files are watched, absolute.
    pub under: &'a [PathBuf],
    /// Every call on files stops the program, and no library is loaded into it.
    pub every_call_stops: bool,
}

/// A recording.
pub struct Recorded {
    pub trace: Vec<u8>,
    pub exit: ExitStatus,
}

/// Runs a program to its end and records it.
pub fn record(options: RecordOptions) -> Result<Recorded> {
    let mut scope = Scope::new(options.under).context("cannot look at the folder to watch")?;
    let tree = FirstTree::look(&scope)?;
    let file_system = scope.roots().next().map(|(root, _)| file_system_of(&root)).unwrap_or_default();
    let preload = if options.every_call_stops { None } else { Preload::new(Some(options.start_cost))? };
    let pid = started(options.starter, options.words, preload.as_ref())?;
    ptrace::ignore_interrupts();
    let before = process::children_usage();
    let live = Live::new();
    let mut tracer = Tracer::new(&mut scope, &live, pid, preload);
    let exit = tracer.run()?;
    let used = process::children_usage();
    ensure!(tracer.program.has_begun(), "the program was not started: it ended before");
    let known = Header {
        file_system,
        roots: options.under.len() as u32,
        cpu_ns: (used.user_ns + used.system_ns - before.user_ns - before.system_ns).saturating_sub(tracer.own_cpu_ns()),
        device_read_bytes: used.read_bytes - before.read_bytes,
        exit: exit.code().unwrap_or_else(|| -exit.signal().unwrap_or(0)),
        ..Header::default()
    };
    let seen = tracer.program.finish();
    Ok(Recorded { trace: finished(seen, scope, tree, known)?, exit })
}

/// The trace of what was seen, with what else is known of it.
fn finished(seen: ProgramRecord, mut scope: Scope, tree: FirstTree, known: Header) -> Result<Vec<u8>> {
    let named = scope.numbering.paths.len();
    let (mut tree, uncached) = tree.needed(&mut scope, &seen.touched, named)?;
    tree.append(&mut scope.brought);
    let header = Header {
        schema: SCHEMA,
        made_by: format!("pickfs {}", env!("CARGO_PKG_VERSION")),
        kernel: kernel(),
        threads: seen.counts.threads,
        wall_ns: seen.counts.wall_ns,
        stops: seen.counts.stops,
        stopped_calls: seen.counts.stopped_calls,
        unstopped_calls: seen.counts.unstopped_calls,
        stop_cost_ns: seen.counts.stop_cost_ns,
        elsewhere: seen.counts.elsewhere,
        not_recorded: seen.counts.not_recorded,
        reasons: seen.counts.reasons,
        uncached_bytes: Some(uncached),
        ..known
    };
    seen.writer.finish(&header, &scope.numbering.paths, &tree)
}

fn kernel() -> String {
    // Without what a distribution or a machine adds to it.
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    release.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default().to_string()
}

/// Its type, as the kernel calls it.
fn file_system_of(folder: &Path) -> String {
    let mounts = procfs::process::Process::myself().and_then(|own| own.mountinfo());
    let mut above: Vec<_> =
        mounts.into_iter().flatten().filter(|mount| folder.starts_with(&mount.mount_point)).collect();
    above.sort_by_key(|mount| mount.mount_point.as_os_str().len());
    above.pop().map(|mount| mount.fs_type).unwrap_or_default()
}
