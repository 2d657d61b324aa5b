//! What a run says while it goes on: plain lines, a few lines at the foot of a terminal, the whole
//! of a large one, or JSON for programs.

mod eta;
mod full_screen;
mod json;
mod keys;
mod lines;
mod terminal;

pub use lines::Lines;

use super::Finish;
use full_screen::{FullScreen, Shared};
use indicatif::ProgressBar;
use json::Json;
use pickfs_core::journal::{Folded, Look, Outcome, Run};
use pickfs_core::plan::Cell;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use terminal::Terminal;
use textwrap::core::display_width;

/// Where messages go, while standard error is not plain lines.
static DESTINATION: Mutex<Destination> = Mutex::new(Destination::Lines);

enum Destination {
    Lines,
    Json,
    /// Above the foot of the terminal.
    Foot(ProgressBar),
    Screen(Arc<Shared>),
}

fn tell_to(destination: Destination) {
    *DESTINATION.lock().unwrap_or_else(PoisonError::into_inner) = destination;
}

/// Writes a line to stderr. Errors are ignored: a terminal that was closed must not end the run
/// before it is undone.
pub fn tell(text: &str) {
    let _ = match &*DESTINATION.lock().unwrap_or_else(PoisonError::into_inner) {
        Destination::Lines => writeln!(std::io::stderr(), "{text}"),
        Destination::Json => writeln!(std::io::stderr(), "{}", json::message(text)),
        Destination::Foot(bar) => {
            bar.println(text);
            Ok(())
        }
        Destination::Screen(screen) => {
            screen.message(text);
            Ok(())
        }
    };
}

/// Hears of a run's moments; every one may be ignored.
pub trait Progress {
    /// `_planned` cells are planned up to the next interim analysis; `_ended` of them ended in an
    /// earlier session.
    fn begin(&mut self, _run: &Run, _journal: &Path, _planned: usize, _ended: usize) {}
    /// The budget of time of this session.
    fn begins_rounds_until(&mut self, _end: Instant) {}
    /// What goes on just now.
    fn say(&mut self, _text: &str) {}
    /// What is to be read later too.
    fn remark(&mut self, _text: &str) {}
    fn cell(&mut self, _cell: &Cell) {}
    /// A phase of the cell gets ready.
    fn phase(&mut self, _phase: &str) {}
    /// A phase of the cell, or a part of one, took `_ns` nanoseconds.
    fn phase_ended(&mut self, _phase: &str, _ns: f64) {}
    /// With all that is known so far.
    fn cell_ended(&mut self, _cell: &Cell, _outcome: &Outcome, _folded: &Folded) {}
    fn round_ended(&mut self, _folded: &Folded) {}
    /// The run made an interim analysis. `_planned` cells are planned up to the next one, including
    /// ended ones.
    fn interim_analysis(&mut self, _look: &Look, _planned: usize, _folded: &Folded) {}
    /// `None` after an error.
    fn end(&mut self, _finish: Option<Finish>) {}
}

/// For what is no part of a run.
pub(crate) struct Silent;

impl Progress for Silent {}

/// The smallest terminal that a run fills.
const FULL: TerminalSize = TerminalSize { columns: 100, lines: 30 };

/// On a large terminal all of it, on one that can move its cursor its foot, elsewhere lines.
pub fn for_people() -> Box<dyn Progress> {
    let has_cursor = std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let size = TerminalSize::now();
    let is_large = size.columns >= FULL.columns && size.lines >= FULL.lines;
    match has_cursor {
        // A pager behind our output writes to the same terminal.
        true if is_large && std::io::stdout().is_terminal() => Box::new(FullScreen::default()),
        true => Box::new(Terminal::new()),
        false => Box::new(Lines::default()),
    }
}

#[derive(Clone, Copy)]
struct TerminalSize {
    columns: usize,
    lines: usize,
}

impl TerminalSize {
    /// Of the terminal behind standard error.
    fn now() -> TerminalSize {
        let found = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
        let found = found.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        found.map_or(TerminalSize { columns: 80, lines: 24 }, |size| TerminalSize {
            columns: size.ws_col.into(),
            lines: size.ws_row.into(),
        })
    }
}

/// To what fits a line: one that wraps would shift all above it.
fn cut(line: &str, width: usize) -> String {
    let mut shown = String::new();
    for letter in line.chars() {
        if display_width(&shown) + 2 > width {
            shown.push('…');
            break;
        }
        shown.push(letter);
    }
    shown
}

/// Standard error is read by a program.
pub fn is_for_programs() -> bool {
    matches!(&*DESTINATION.lock().unwrap_or_else(PoisonError::into_inner), Destination::Json)
}

/// From now on all messages are JSON.
pub fn for_programs() -> Box<dyn Progress> {
    tell_to(Destination::Json);
    Box::new(Json::new(Box::new(std::io::stderr())))
}
