//! The foot of a terminal: standings, the last results, and a bar with what goes on; what is to be
//! kept scrolls above.

use super::eta::Eta;
use super::keys::{Event, Keys};
use super::lines::{before, ended};
use super::{Destination, Finish, Progress, TerminalSize, cut, tell, tell_to};
use crate::analysis;
use crate::wording::history::interim_analysis;
use crate::wording::standings::Standings;
use crate::wording::text::{left, right};
use indicatif::{ProgressBar, ProgressStyle};
use pickfs_core::journal::{Folded, Look, Outcome, Run};
use pickfs_core::plan::Cell;
use pickfs_system::process::{end_requested, request_end};
use pickfs_system::units::show_duration;
use std::path::Path;
use std::time::{Duration, Instant};
use textwrap::core::display_width;

/// The bar shows whole seconds.
const TICK: Duration = Duration::from_secs(1);
/// The last results, an empty line, the bar, and what scrolled before it.
const OTHER_LINES: usize = 8;

pub(crate) struct Terminal {
    bar: ProgressBar,
    keys: Option<Keys>,
    clock: Eta,
    standings: Vec<String>,
    /// Results of the cell that is under way, or else of the last.
    results: Results,
    /// "round 2  xfs  tree".
    cell: String,
}

#[derive(Default)]
struct Results {
    of: String,
    phases: Vec<String>,
    is_over: bool,
}

impl Terminal {
    pub(crate) fn new() -> Terminal {
        let bar = ProgressBar::no_length();
        let (clock, standings, results) = Default::default();
        Terminal { bar, keys: None, clock, standings, results, cell: String::new() }
    }

    /// Everything that stands above the bar.
    fn draw(&self) {
        let results = match self.results.phases.as_slice() {
            [] => None,
            phases => Some(format!("{}: {}", self.results.of, phases.join(", "))),
        };
        let width = TerminalSize::now().columns;
        let lines = self.standings.iter().cloned().chain(results).map(|line| cut(&line, width));
        let foot: Vec<String> = lines.collect();
        let template = match foot.as_slice() {
            [] => "{elapsed_precise} {bar:12} {pos}/{len}  {wide_msg}",
            _ => "{prefix}\n{elapsed_precise} {bar:12} {pos}/{len}  {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_prefix(foot.join("\n"));
    }

    fn stand(&mut self, folded: &Folded) {
        // A journal that cannot be judged is the report's to complain of.
        let found = analysis::model(folded).ok().and_then(|model| model.standings());
        self.standings = found
            .map(|found| laid_out(&found, TerminalSize::now().lines.saturating_sub(OTHER_LINES)))
            .unwrap_or_default();
        self.draw();
    }
}

impl Progress for Terminal {
    fn begin(&mut self, run: &Run, _journal: &Path, planned: usize, ended: usize) {
        self.clock = Eta::of_run(run, planned, ended);
        self.draw();
        self.bar.reset();
        self.bar.set_length(planned as u64);
        self.bar.set_position(ended as u64);
        self.bar.enable_steady_tick(TICK);
        tell_to(Destination::Foot(self.bar.clone()));
        before(planned, ended).iter().for_each(|line| tell(line));
        self.keys = Keys::listen(|event| {
            if matches!(event, Event::Key(b'q')) && !end_requested() {
                request_end();
                tell("ending after this cell, then the report; Ctrl-C stops after this step");
            }
        });
        if self.keys.is_some() {
            tell("press q to end the run after the cell that is under way, with a report");
        }
    }

    fn begins_rounds_until(&mut self, end: Instant) {
        self.clock.end = Some(end);
    }

    fn say(&mut self, text: &str) {
        self.bar.set_message(text.to_string());
    }

    fn remark(&mut self, text: &str) {
        tell(text);
    }

    fn cell(&mut self, cell: &Cell) {
        self.clock.start();
        self.cell = format!("round {}  {}  {}", cell.round, cell.target.name, cell.work.name);
        self.bar.set_message(format!("{}  {}", self.clock.left(), self.cell));
    }

    fn phase(&mut self, phase: &str) {
        if !self.cell.is_empty() {
            self.bar.set_message(format!("{}  {}: {phase}", self.clock.left(), self.cell));
        }
    }

    fn phase_ended(&mut self, phase: &str, ns: f64) {
        if self.results.is_over {
            self.results = Results::default();
        }
        self.results.of.clone_from(&self.cell);
        self.results.phases.push(format!("{phase} {}", show_duration(ns)));
        self.draw();
    }

    fn cell_ended(&mut self, cell: &Cell, outcome: &Outcome, _folded: &Folded) {
        self.results.is_over = true;
        self.clock.stop(&cell.target.name);
        if *outcome != Outcome::Done {
            tell(&ended(&self.clock, cell, outcome, None));
        }
        self.bar.inc(1);
    }

    fn round_ended(&mut self, folded: &Folded) {
        self.stand(folded);
    }

    fn interim_analysis(&mut self, look: &Look, planned: usize, folded: &Folded) {
        tell(&interim_analysis(look, folded));
        self.clock.looked(look, planned);
        self.bar.set_length(planned as u64);
        self.stand(folded);
    }

    fn end(&mut self, _finish: Option<Finish>) {
        self.keys = None;
        tell_to(Destination::Lines);
        self.bar.finish_and_clear();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// At most `room` lines in all; names to the left, figures to the right.
fn laid_out(standings: &Standings, room: usize) -> Vec<String> {
    let lines = || std::iter::once(&standings.heading).chain(standings.rows.iter().map(|row| &row.cells));
    let width = |column: usize| lines().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |row: &[String; 5]| {
        let name = left(&row[0], widths[0]);
        let [time, difference, interval] = [1, 2, 3].map(|column| right(&row[column], widths[column]));
        format!("{name}  {time}  {difference}  {interval}  {}", row[4]).trim_end().to_string()
    };
    let shown = room.max(3).saturating_sub(1);
    let left_out = lines().count().saturating_sub(shown);
    let more = (left_out > 0).then(|| format!("… and {left_out} slower"));
    let rows = lines().take(shown).map(line);
    rows.chain(more).chain([standings.note.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording::standings::StandingsRow;

    fn cells(name: &str, rest: [&str; 4]) -> [String; 5] {
        let [time, difference, interval, word] = rest.map(String::from);
        [name.into(), time, difference, interval, word]
    }

    #[test]
    fn standings_are_a_table_that_fits() {
        let row = |name, rest| StandingsRow { cells: cells(name, rest), ..StandingsRow::default() };
        let heading = cells("After 3 rounds: whole job", ["time", "vs ext4", "95 % interval", ""]);
        let rows = vec![
            row("ext4", ["234 ms", "", "", "reference"]),
            row("xfs", ["1.24 s", "+5 %", "−9 to +25 %", "too close"]),
        ];
        let standings = Standings { heading, rows, note: "Noise floor ±3 %.".into() };
        let expected = "\
After 3 rounds: whole job    time  vs ext4  95 % interval
ext4                       234 ms                          reference
xfs                        1.24 s     +5 %    −9 to +25 %  too close
Noise floor ±3 %.";
        assert_eq!(laid_out(&standings, 20).join("\n"), expected);
        let lines = laid_out(&standings, 3);
        assert_eq!(lines[2..], ["… and 1 slower", "Noise floor ±3 %."]);
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abc", 4), "abc");
    }
}
