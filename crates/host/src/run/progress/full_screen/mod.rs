//! The whole terminal, where it is large: a row a target with its interval on one axis, the cell
//! under way, the machine, and keys.
//!
//! A phase's clock must not pay for it: from the moment when a phase gets ready until its time is
//! known nothing is read or drawn.

#![expect(clippy::disallowed_types, reason = "pickfs itself makes the page, as this room must not know reports")]

mod layout;
mod machine;

use super::eta::Eta;
use super::keys::{Event, Keys};
use super::lines::{before, ended};
use super::{Destination, Finish, Progress, TerminalSize, tell, tell_to};
use crate::analysis;
use crate::wording::history::interim_analysis;
use crate::wording::standings::Standings;
use layout::layout;
use machine::{DeviceRate, Machine, ProcessorShares};
use pickfs_core::journal::{Folded, Look, Outcome, Run};
use pickfs_core::plan::Cell;
use pickfs_system::process::{end_requested, request_end};
use pickfs_system::units::show_duration;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_secs(1);
/// While cells wait for the user.
const PAUSE: Duration = Duration::from_millis(100);

/// All that is on the screen.
#[derive(Default)]
struct View {
    title: String,
    journal: PathBuf,
    begun: Option<Instant>,
    elapsed: Duration,
    clock: Eta,
    /// The round under way, and how many there may be.
    round: u32,
    most_rounds: u32,
    standings: Option<Standings>,
    /// "round 2  xfs  tree"; empty before the first cell.
    cell: String,
    /// Phases of the cell with their times, the last cell's until a new one has any.
    phases: Vec<String>,
    phase: String,
    doing: String,
    devices: Vec<DeviceRate>,
    processor: Option<ProcessorShares>,
    messages: Vec<String>,
    is_paused: bool,
    is_ending: bool,
    shows_keys: bool,
    wants_page: bool,
}

/// What the run, the keyboard and the clock share.
#[derive(Default)]
pub(super) struct Shared {
    view: Mutex<View>,
    /// A phase is measured: nothing is drawn.
    is_measuring: AtomicBool,
    is_over: AtomicBool,
}

impl Shared {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message is kept, and seen at once unless a phase is measured.
    pub(super) fn message(&self, text: &str) {
        self.view().messages.extend(text.lines().map(str::to_string));
        self.draw();
    }

    fn draw(&self) {
        if self.is_measuring.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let size = TerminalSize::now();
        let mut view = self.view();
        view.elapsed = view.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let lines = layout(&view, size.columns, size.lines);
        drop(view);
        write(&format!("\x1b[H{}\x1b[J", lines.join("\x1b[K\r\n")));
    }

    fn press(&self, key: u8) {
        let mut view = self.view();
        match key {
            b'q' => {
                view.is_ending = true;
                request_end();
            }
            b'p' => view.is_paused = !view.is_paused,
            b'o' => view.wants_page = true,
            b'?' => view.shows_keys = !view.shows_keys,
            _ => return,
        }
        drop(view);
        self.draw();
    }
}

fn write(text: &str) {
    let mut terminal = std::io::stderr().lock();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

/// The previous screen comes back on leaving.
fn enter() {
    write("\x1b[?1049h\x1b[?25l\x1b[2J");
}

fn leave() {
    write("\x1b[?25h\x1b[?1049l");
}

#[derive(Default)]
pub(super) struct FullScreen {
    shared: Arc<Shared>,
    keys: Option<Keys>,
    ticker: Option<JoinHandle<()>>,
}

impl FullScreen {
    fn begun(&self) -> bool {
        self.ticker.is_some()
    }

    fn change(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.shared.view());
        self.shared.draw();
    }

    fn measure(&self, is_measuring: bool) {
        self.shared.is_measuring.store(is_measuring, Ordering::Relaxed);
    }

    /// A journal that cannot be judged is the report's to complain of.
    fn stand(&self, folded: &Folded) {
        let standings = analysis::model(folded).ok().and_then(|model| model.standings());
        self.change(|view| view.standings = standings);
    }

    /// What the user asked for while a cell ran.
    fn between_cells(&self) {
        let journal = {
            let mut view = self.shared.view();
            std::mem::take(&mut view.wants_page).then(|| view.journal.clone())
        };
        if let Some(journal) = journal {
            tell(&page(&journal));
        }
        while self.shared.view().is_paused && !end_requested() {
            std::thread::sleep(PAUSE);
        }
    }
}

fn page(journal: &Path) -> String {
    let page = journal.with_extension("html");
    let program = std::env::current_exe().unwrap_or_else(|_| "pickfs".into());
    let mut command = Command::new(program);
    command.arg("report").arg(journal).arg("--output").arg(&page).stdin(Stdio::null());
    match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => format!("what is known so far: {}", page.display()),
        Ok(status) => format!("no page was written: pickfs report ended with {status}"),
        Err(error) => format!("no page was written: {error}"),
    }
}

impl Progress for FullScreen {
    fn begin(&mut self, run: &Run, journal: &Path, planned: usize, ended: usize) {
        let targets = run.plan.targets.iter().filter(|target| !target.duplicate);
        let targets: Vec<&str> = targets.map(|target| target.name.as_str()).collect();
        let works: Vec<&str> = run.plan.works.iter().map(|work| work.name.as_str()).collect();
        enter();
        self.change(|view| {
            view.title = format!("{}: {}", works.join(", "), targets.join(", "));
            view.begun = Some(Instant::now());
            view.journal = journal.into();
            view.clock = Eta::of_run(run, planned, ended);
            view.most_rounds = run.plan.stop.most_rounds();
        });
        tell_to(Destination::Screen(self.shared.clone()));
        before(planned, ended).iter().for_each(|line| tell(line));
        let shared = self.shared.clone();
        self.keys = Keys::listen(move |event| match event {
            Event::Key(key) => shared.press(key),
            Event::Suspending => leave(),
            Event::Back => enter(),
        });
        let shared = self.shared.clone();
        self.ticker = Some(std::thread::spawn(move || tick(&shared)));
    }

    fn begins_rounds_until(&mut self, end: Instant) {
        self.change(|view| view.clock.end = Some(end));
    }

    fn say(&mut self, text: &str) {
        if !self.begun() {
            return tell(text);
        }
        self.change(|view| view.doing = text.into());
    }

    fn remark(&mut self, text: &str) {
        tell(text);
    }

    fn cell(&mut self, cell: &Cell) {
        self.between_cells();
        self.change(|view| {
            view.clock.start();
            view.round = cell.round;
            view.cell = format!("round {}  {}  {}", cell.round, cell.target.name, cell.work.name);
            view.phases.clear();
            view.phase.clear();
            view.doing = "making the file system".into();
        });
    }

    fn phase(&mut self, phase: &str) {
        self.change(|view| (view.phase, view.doing) = (phase.into(), String::new()));
        self.measure(true);
    }

    fn phase_ended(&mut self, phase: &str, ns: f64) {
        self.measure(false);
        self.change(|view| {
            view.phases.push(format!("{phase} {}", show_duration(ns)));
            view.phase.clear();
        });
    }

    fn cell_ended(&mut self, cell: &Cell, outcome: &Outcome, folded: &Folded) {
        self.measure(false);
        let processor = ProcessorShares::of_cell(folded, &cell.id);
        self.change(|view| {
            view.clock.stop(&cell.target.name);
            (view.phase, view.doing) = (String::new(), "cleaning up".into());
            view.processor = processor.or(view.processor.take());
        });
        if *outcome != Outcome::Done {
            let line = ended(&self.shared.view().clock, cell, outcome, None);
            tell(&line);
        }
    }

    fn round_ended(&mut self, folded: &Folded) {
        self.stand(folded);
    }

    fn interim_analysis(&mut self, look: &Look, planned: usize, folded: &Folded) {
        tell(&interim_analysis(look, folded));
        self.shared.view().clock.looked(look, planned);
        self.stand(folded);
    }

    fn end(&mut self, _finish: Option<Finish>) {
        let Some(ticker) = self.ticker.take() else { return };
        self.keys = None;
        self.shared.is_over.store(true, Ordering::Relaxed);
        ticker.thread().unpark();
        let _ = ticker.join();
        leave();
        tell_to(Destination::Lines);
        // They were on a screen that is gone.
        let messages = std::mem::take(&mut self.shared.view().messages);
        messages.iter().for_each(|line| tell(line));
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// Each second what the disks do, and the time, while no phase is measured.
fn tick(shared: &Shared) {
    let mut machine = Machine::default();
    while !shared.is_over.load(Ordering::Relaxed) {
        if shared.is_measuring.load(Ordering::Relaxed) {
            // Rates over a phase would be of no moment.
            machine = Machine::default();
        } else {
            let devices = machine.rates();
            shared.view().devices = devices;
            shared.draw();
        }
        std::thread::park_timeout(TICK);
    }
}
