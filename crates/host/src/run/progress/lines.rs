//! A line for each moment: for pipes, logs and terminals without a cursor.

use super::eta::Eta;
use super::{Progress, tell};
use crate::analysis::is_simulated;
use crate::wording::history::interim_analysis;
use pickfs_core::journal::{Folded, Look, Outcome, Run};
use pickfs_core::plan::Cell;
use pickfs_system::units::show_duration;
use std::path::Path;
use std::time::Instant;

#[derive(Default)]
pub struct Lines {
    clock: Eta,
}

impl Progress for Lines {
    fn begin(&mut self, run: &Run, _journal: &Path, planned: usize, ended: usize) {
        self.clock = Eta::of_run(run, planned, ended);
        before(planned, ended).iter().for_each(|line| tell(line));
    }

    fn begins_rounds_until(&mut self, end: Instant) {
        self.clock.end = Some(end);
    }

    fn say(&mut self, text: &str) {
        tell(text);
    }

    fn remark(&mut self, text: &str) {
        tell(text);
    }

    fn cell(&mut self, _cell: &Cell) {
        self.clock.start();
    }

    fn cell_ended(&mut self, cell: &Cell, outcome: &Outcome, folded: &Folded) {
        let waited = self.clock.stop(&cell.target.name);
        tell(&format!("{}, {}", self.line(cell, outcome, waited, folded), self.clock.left()));
    }

    fn interim_analysis(&mut self, look: &Look, planned: usize, folded: &Folded) {
        tell(&interim_analysis(look, folded));
        self.clock.looked(look, planned);
    }
}

impl Lines {
    fn line(&self, cell: &Cell, outcome: &Outcome, waited: f64, folded: &Folded) -> String {
        // Simulated ones run several at once, ahead of their turn: how long the last was waited for
        // says nothing of it.
        let took = (!is_simulated(folded)).then_some(waited);
        ended(&self.clock, cell, outcome, took)
    }
}

/// What earlier sessions have done, if anything.
pub(crate) fn before(planned: usize, ended: usize) -> Option<String> {
    match ended {
        0 => None,
        all if all == planned => Some(format!("all {planned} cells ended before")),
        some => Some(format!("{some} of {planned} cells ended before; going on with the others")),
    }
}

/// "[3/33] round 1  ext4  tree  done in 2.00 s", without the seconds where they are not known.
pub(crate) fn ended(clock: &Eta, cell: &Cell, outcome: &Outcome, took: Option<f64>) -> String {
    let how = match outcome {
        Outcome::Done => took.map_or("done".into(), |took| format!("done in {}", show_duration(took * 1e9))),
        Outcome::Skipped(reasons) => format!("skipped: {}", reasons.join("; ")),
        Outcome::Failed(why) => format!("failed: {why}"),
    };
    format!("{} round {}  {}  {}  {how}", clock.counted(), cell.round, cell.target.name, cell.work.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::journal::{LeaveReason, Leaving};

    #[test]
    fn an_eliminated_target_takes_no_more_time() {
        let mut lines = Lines::default();
        lines.begin(&Run::default(), Path::new("a"), 3, 2);
        lines.clock.start();
        lines.clock.stop("slow");
        let leaving = vec![Leaving { target: "slow".into(), why: LeaveReason::SlowerThan("fast".into()) }];
        lines.interim_analysis(&Look { round: 8, leaving, ..Look::default() }, 13, &Folded::default());
        assert_eq!(lines.clock.left(), "time left unknown");
    }

    #[test]
    fn no_time_is_told_of_simulated_cells() {
        let host = [("guest ext4", "6.1.0-56-amd64, simulated"), ("guest ext4", "6.1.0-56-amd64, qemu")];
        let told = host.map(|(name, value)| {
            let mut folded = Folded::default();
            folded.host.insert(name.into(), value.into());
            let lines = Lines { clock: Eta::new(9, 3) };
            lines.line(&Cell::default(), &Outcome::Done, 2.0, &folded)
        });
        assert_eq!(told, ["[3/9] round 0      done", "[3/9] round 0      done in 2.00 s"]);
    }

    #[test]
    fn a_line_says_how_a_cell_ended() {
        let cell = Cell { round: 2, ..Cell::default() };
        let line = |outcome| ended(&Eta::new(9, 3), &cell, &outcome, Some(2.0));
        assert_eq!(line(Outcome::Done), "[3/9] round 2      done in 2.00 s");
        assert_eq!(line(Outcome::Skipped(vec!["a".into(), "b".into()])), "[3/9] round 2      skipped: a; b");
        assert_eq!(before(9, 0), None);
        assert!(before(9, 9).is_some_and(|line| line.starts_with("all 9")));
    }
}
