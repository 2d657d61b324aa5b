//! What a run says while it goes on: plain lines, or a bar with an ETA for the whole plan on a terminal.

use crate::journal::{Look, Outcome};
use crate::plan::Cell;
use crate::units::show_duration;
use crate::wording::history::interim_analysis;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::io::Write;
use std::time::Instant;

/// A line on stderr, for whoever still reads it: a terminal that was closed must not end the run before it is undone.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Hears of a run's moments; every one may be ignored.
pub trait Progress {
    /// So many cells are planned, of which so many ended in an earlier session.
    fn begin(&mut self, _planned: usize, _ended: usize) {}
    /// What goes on just now.
    fn say(&mut self, _text: &str) {}
    /// What is to be read later too.
    fn remark(&mut self, _text: &str) {}
    fn cell(&mut self, _cell: &Cell) {}
    fn cell_ended(&mut self, _cell: &Cell, _outcome: &Outcome) {}
    /// The run looked at its results. So many cells are planned up to the next look, those that have ended included.
    fn looked(&mut self, _look: &Look, _planned: usize) {}
    fn end(&mut self) {}
}

/// Lines on stderr, and on a terminal a bar below them.
pub struct Plain {
    bar: Option<ProgressBar>,
    clock: Eta,
}

impl Plain {
    /// A terminal that moves no cursor gets lines.
    pub fn new(terminal: bool) -> Plain {
        let has_cursor = terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Plain { bar: has_cursor.then(bar), clock: Eta::default() }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => tell(text),
        }
    }
}

impl Progress for Plain {
    fn begin(&mut self, planned: usize, ended: usize) {
        self.clock = Eta { planned, ended, ..Eta::default() };
        if let Some(bar) = &self.bar {
            bar.set_length(planned as u64);
            bar.set_position(ended as u64);
        }
        match ended {
            0 => {}
            all if all == planned => self.line(&format!("all {planned} cells ended before")),
            some => self.line(&format!("{some} of {planned} cells ended before; going on with the others")),
        }
    }

    fn say(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_string()),
            None => tell(text),
        }
    }

    fn remark(&mut self, text: &str) {
        self.line(text);
    }

    fn cell(&mut self, cell: &Cell) {
        self.clock.start();
        if let Some(bar) = &self.bar {
            bar.set_message(format!(
                "round {}  {}  {}  {}",
                cell.round,
                cell.target.name,
                cell.work.name,
                self.clock.left()
            ));
        }
    }

    fn cell_ended(&mut self, cell: &Cell, outcome: &Outcome) {
        let took = self.clock.stop(&cell.target.name);
        let how = match outcome {
            Outcome::Done => format!("done in {}", show_duration(took * 1e9)),
            Outcome::Skipped(reasons) => format!("skipped: {}", reasons.join("; ")),
            Outcome::Failed(why) => format!("failed: {why}"),
        };
        let counted = format!("[{}/{}]", self.clock.ended, self.clock.planned);
        let text = format!("{counted} round {}  {}  {}  {how}", cell.round, cell.target.name, cell.work.name);
        match &self.bar {
            Some(bar) if *outcome == Outcome::Done => bar.inc(1),
            Some(bar) => {
                bar.println(text);
                bar.inc(1);
            }
            None => tell(&format!("{text}, {}", self.clock.left())),
        }
    }

    fn looked(&mut self, look: &Look, planned: usize) {
        self.line(&interim_analysis(look));
        self.clock.planned = planned;
        look.leaving.iter().for_each(|leaving| self.clock.forget(&leaving.target));
        if let Some(bar) = &self.bar {
            bar.set_length(planned as u64);
        }
    }

    fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed_precise} {bar:30} {pos}/{len}  {wide_msg}");
    let bar = ProgressBar::no_length();
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

/// Time left, from the mean of each target's cells so far; the overall mean for targets not seen yet.
#[derive(Default)]
struct Eta {
    planned: usize,
    ended: usize,
    begun: Option<Instant>,
    seconds: HashMap<String, (f64, usize)>,
}

impl Eta {
    fn start(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// Seconds of the cell that has just ended.
    fn stop(&mut self, target: &str) -> f64 {
        let took = self.begun.take().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        let (sum, count) = self.seconds.entry(target.into()).or_default();
        *sum += took;
        *count += 1;
        self.ended += 1;
        took
    }

    /// Of a target that has left, no cell will come.
    fn forget(&mut self, target: &str) {
        self.seconds.remove(target);
    }

    fn left(&self) -> String {
        if self.ended >= self.planned {
            return "none left".into();
        }
        let means: Vec<f64> = self.seconds.values().map(|(sum, count)| sum / *count as f64).collect();
        if means.is_empty() {
            return "time left unknown".into();
        }
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let seconds = mean * self.planned.saturating_sub(self.ended) as f64;
        format!("about {} left", show_duration(seconds * 1e9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{LeaveReason, Leaving};

    #[test]
    fn time_left_is_the_mean_of_the_targets_times_the_cells_left() {
        let seconds = HashMap::from([("fast".to_string(), (2.0, 2)), ("slow".to_string(), (3.0, 1))]);
        let eta = Eta { planned: 33, ended: 3, begun: None, seconds };
        assert_eq!(eta.left(), "about 60.0 s left");
        assert_eq!(Eta { planned: 1, ..Eta::default() }.left(), "time left unknown");
    }

    #[test]
    fn who_has_left_takes_no_more_time() {
        let seconds = HashMap::from([("fast".to_string(), (2.0, 2)), ("slow".to_string(), (90.0, 1))]);
        let mut plain = Plain { bar: None, clock: Eta { planned: 3, ended: 3, begun: None, seconds } };
        let leaving = vec![Leaving { target: "slow".into(), why: LeaveReason::SlowerThan("fast".into()) }];
        plain.looked(&Look { round: 8, leaving, ..Look::default() }, 13);
        assert_eq!(plain.clock.left(), "about 10.0 s left");
    }
}
