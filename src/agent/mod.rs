//! The target side: `pickfs agent` reads one request on stdin, does it, and says what happened on stdout.
//!
//! It owns needs, stack, provenance, phases, probes and teardown. It must not know how it was reached, what other
//! cells there are, nor what a number means: no executor, no report, no statistics.
//!
//! Must not know: `analysis`, `cli`, `executor`, `import`, `render`, `run`, `wording`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "limits of cells, and git, which makes a history"
)]

mod ageing;
mod cell;
mod drive;
mod git;
mod hardware;
mod limits;

mod other_disk;
mod prepare;
mod provenance;

pub use cell::{needs_of_target, now};

pub use crate::protocol::Link;
pub use other_disk::image as image_of_other_disk;
pub use prepare::STAGED;

pub use crate::process::{CELL_MARK, Interrupted, RUN_MARK, check_stop, last_words, run_program, stop_on_signals};

use crate::plan::{Cell, Plan};
use crate::protocol::{Job, Request};
use crate::stack::Place;
use crate::{process, steps};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::BufRead;

/// Exit code of an agent that was asked to stop and has taken everything down.
pub const INTERRUPTED: u8 = 130;

/// Where cells are done that are not done on this machine.
pub trait Elsewhere {
    /// Once per run, before anything else is prepared.
    fn prepare(&self, plan: &Plan, place: &Place) -> Result<BTreeMap<String, String>>;
    fn cell(&self, request: &Request, cell: &Cell, link: &mut Link) -> Result<()>;
}

/// Reads the request and does it; cells `elsewhere` where that is given, and then nothing of this machine is set or
/// mounted for them. The exit code is 0, [`INTERRUPTED`], or 1 with the cause on stderr.
pub fn main(elsewhere: Option<&dyn Elsewhere>) -> std::process::ExitCode {
    match read_request().and_then(|request| serve(&request, elsewhere)) {
        Ok(()) => 0.into(),
        Err(error) if error.is::<Interrupted>() => INTERRUPTED.into(),
        Err(error) => {
            eprintln!("{error:#}");
            1.into()
        }
    }
}

fn read_request() -> Result<Request> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read the request")?;
    serde_json::from_str(&line).context("the request is not one this agent understands; is it the same pickfs?")
}

fn serve(request: &Request, elsewhere: Option<&dyn Elsewhere>) -> Result<()> {
    process::obey_signals()?;
    let place = Place::of_run(&request.run);
    let mut link = Link::new(request.guest.is_some());
    match (&request.job, elsewhere) {
        (Job::Prepare(plan), _) => prepare::prepare(plan, elsewhere, &place, &mut link),
        (Job::Cell(cell), Some(elsewhere)) => elsewhere.cell(request, cell, &mut link),
        (Job::Cell(cell), None) => {
            let guest = request.guest.as_ref();
            let facts = guest.map(|part| prepare::in_guest(part, cell, &place, &mut link)).transpose()?;
            cell::run(cell, facts.unwrap_or_default(), &place, &mut link)
        }
        (Job::Undo(steps), _) => steps::undo_all(&request.run, steps, &mut link),
    }
}
