//! Time left, from the mean of each target's cells so far; the overall mean for targets not seen
//! yet.

use crate::executor;
use pickfs_core::journal::{Look, Run};
use pickfs_system::units::show_duration;
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Eta {
    pub planned: usize,
    pub ended: usize,
    begun: Option<Instant>,
    /// No round begins after this.
    pub end: Option<Instant>,
    seconds: HashMap<String, (f64, usize)>,
    /// The next cell boots a guest, which others start from: its time says nothing of theirs.
    is_booting: bool,
}

impl Eta {
    pub(crate) fn of_run(run: &Run, planned: usize, ended: usize) -> Eta {
        let is_booting = executor::brings_its_own(&run.plan.executor);
        Eta { is_booting, ..Eta::new(planned, ended) }
    }

    pub(crate) fn new(planned: usize, ended: usize) -> Eta {
        Eta { planned, ended, ..Eta::default() }
    }

    /// "[3/33]".
    pub(crate) fn counted(&self) -> String {
        format!("[{}/{}]", self.ended, self.planned)
    }

    pub(crate) fn start(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// Seconds of the cell that has just ended.
    pub(crate) fn stop(&mut self, target: &str) -> f64 {
        let took = self.begun.take().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        self.ended += 1;
        if !std::mem::take(&mut self.is_booting) {
            let (sum, count) = self.seconds.entry(target.into()).or_default();
            *sum += took;
            *count += 1;
        }
        took
    }

    /// After an interim analysis: an eliminated target has no more cells.
    pub(crate) fn looked(&mut self, look: &Look, planned: usize) {
        self.planned = planned;
        for leaving in &look.leaving {
            self.seconds.remove(&leaving.target);
        }
    }

    pub(crate) fn left(&self) -> String {
        if self.ended >= self.planned {
            return "the results next".into();
        }
        let means: Vec<f64> = self.seconds.values().map(|(sum, count)| sum / *count as f64).collect();
        if means.is_empty() {
            return "time left unknown".into();
        }
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let seconds = mean * self.planned.saturating_sub(self.ended) as f64;
        match self.end.map(|end| end.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => "the budget is used up: this round is the last".into(),
            Some(budget) if budget.as_secs_f64() < seconds => {
                format!("no new round after {}", show_duration(budget.as_nanos() as f64))
            }
            _ => format!("about {} left", show_duration(seconds * 1e9)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::journal::{LeaveReason, Leaving};
    use pickfs_core::plan::Plan;

    #[test]
    fn time_left_is_the_mean_of_the_targets_times_the_cells_left() {
        let seconds = HashMap::from([("fast".to_string(), (2.0, 2)), ("slow".to_string(), (3.0, 1))]);
        let mut eta = Eta { planned: 33, ended: 3, seconds, ..Eta::default() };
        assert_eq!(eta.left(), "about 60.0 s left");
        assert_eq!(Eta::new(3, 3).left(), "the results next", "rounds may follow");
        assert_eq!(Eta::new(1, 0).left(), "time left unknown");
        let leaving = vec![Leaving { target: "slow".into(), why: LeaveReason::Vetoed }];
        eta.looked(&Look { leaving, ..Look::default() }, 33);
        assert_eq!(eta.left(), "about 30.0 s left");
        let guests = Run { plan: Plan { executor: "sim".into(), ..Plan::default() }, ..Run::default() };
        for (run, wanted) in [(Run::default(), "about 0.00 µs left"), (guests, "time left unknown")] {
            let mut eta = Eta::of_run(&run, 2, 0);
            eta.stop("ext4");
            assert_eq!(eta.left(), wanted, "{}", run.plan.executor);
        }
        let now = Instant::now();
        for (end, wanted) in [
            (now, "the budget is used up: this round is the last"),
            (now + Duration::from_secs(20), "no new round after "),
            (now + Duration::from_secs(40_000), "about 30.0 s left"),
        ] {
            eta.end = Some(end);
            assert!(eta.left().starts_with(wanted), "{}", eta.left());
        }
    }
}
