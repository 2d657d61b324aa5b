//! The target side: `pickfs agent` reads one request on stdin, does it, and says what happened on
//! stdout.
//!
//! It owns needs, stack, provenance, phases, probes and teardown. It must not know how it was
//! reached, what other cells there are, nor what a number means: no executor, no report, no
//! statistics.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "limits of cells, and git, which makes a history"
)]

mod ageing;
mod cell;
mod check;
mod drive;
mod git;
mod hardware;
mod limits;
mod other_disk;
mod passed_on;
mod prepare;
mod provenance;

pub use cell::needs_of_target;
pub use provenance::CPU_LATENCY;

pub use check::{check, objections};
pub(crate) use pickfs_core::protocol::Link;
pub use prepare::{bundle, on_disks, on_machine};

pub(crate) use pickfs_system::process::Interrupted;
pub use pickfs_system::process::run_program;

use crate::stack::{Place, backing};
use crate::steps::{self, Own};
use crate::workload;
use anyhow::{Context, Result};
use pickfs_core::journal::StepTaken;
use pickfs_core::plan::Chosen;
use pickfs_core::protocol::{INTERRUPTED, Job, Request, Say};
use pickfs_system::process;
use std::fs::File;
use std::io::{BufRead, Write};
use std::path::PathBuf;

/// Reads the request and does it. The exit code is 0, [`INTERRUPTED`], or 1 with the cause on
/// stderr.
pub fn main() -> u8 {
    match read_request().and_then(|request| serve(&request)) {
        Ok(()) => 0,
        Err(error) if error.is::<Interrupted>() => INTERRUPTED,
        Err(error) => {
            eprintln!("{error:#}");
            1
        }
    }
}

fn read_request() -> Result<Request> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read the request")?;
    serde_json::from_str(&line).context("the request is not one this agent understands; is it the same pickfs?")
}

fn serve(request: &Request) -> Result<()> {
    process::obey_signals()?;
    let place = Place::of_run(&request.run);
    let mut link = Link::open(request);
    let _held_until_the_end = request.cpu_latency_us.map(hold_cpu_latency).transpose()?;
    match &request.job {
        Job::Prepare { plan, cells } => prepare::prepare(plan, *cells, &place, &mut link),
        Job::Cell(cell) | Job::WarmUp(cell) => match &request.arrival {
            None => cell::run(cell, None, &place, &mut link),
            Some(arrival) => {
                let (cell, machine) = prepare::arrive(arrival, cell, &place, &mut link)?;
                cell::run(&cell, Some(machine), &place, &mut link)
            }
        },
        Job::Try(cells) => cell::try_out(cells, &place, &mut link),
        Job::Undo { steps, backings } => undo(&request.run, steps, backings, &mut link),
        Job::Check(questions) => {
            link.report(&Say::Checked(questions.iter().map(check).collect()));
            Ok(())
        }
    }
}

/// Keeps processors from idling so deeply that they take longer to wake up. The kernel drops the
/// request with the file: <https://docs.kernel.org/power/pm_qos_interface.html>.
fn hold_cpu_latency(microseconds: u32) -> Result<File> {
    let remedy =
        || format!("cannot limit how long processors take to wake up: {CPU_LATENCY}; leave out `cpu_latency_us`");
    let mut file = File::options().write(true).open(CPU_LATENCY).with_context(remedy)?;
    file.write_all(&microseconds.to_ne_bytes()).with_context(remedy)?;
    Ok(file)
}

/// Disks that a backing erases are those whose settings a step may have changed.
fn undo(run: &str, steps: &[StepTaken], backings: &[Chosen], link: &mut Link) -> Result<()> {
    let erased = |chosen: &Chosen| backing::find(&chosen.name).map(|found| (found.erases)(&chosen.settings));
    let disks: Vec<PathBuf> = backings.iter().filter_map(erased).flatten().collect();
    steps::undo_all(&Own { run, disks: &disks, take_downs: workload::TAKE_DOWNS }, steps, link)
}
