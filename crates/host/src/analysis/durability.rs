//! What power cuts have taken of each target, and whether what was promised was kept.

use super::eligibility::{RECOVERY, TRANSACTIONS, broken_promises};
use super::model::TargetInfo;
use super::plain::plain;
use super::series::{ObservedWork, Rounds};
use pickfs_core::journal::{BROKEN_PROMISES, Outcome};

/// The error of the bound on promises that may still be broken.
const ERROR: f64 = 0.05;
/// What can be lost, with the phases of the works that cut power.
const LOST: [(LossKind, &str); 3] =
    [(LossKind::Names, "names"), (LossKind::Contents, "contents"), (LossKind::Transactions, TRANSACTIONS)];

/// Durability of one target, over all rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Durability {
    pub target: usize,
    /// Losses of all that the work has.
    pub losses: Vec<Loss>,
    /// Transactions that one cut took, at most.
    pub lost_transactions: u64,
    pub cuts: u64,
    /// Cuts at which something was promised, and those of them at which a promise was broken.
    pub promise_cuts: u64,
    pub broken: u64,
    /// The share of cuts that may break a promise, in 95 % of runs at most.
    pub may_break: f64,
    /// Cuts that left nothing to be mounted, and contents that were neither old nor new.
    pub unmountable: u64,
    pub damaged: u64,
    /// Cuts after which the file system's own checker found errors; none where none looked.
    pub fsck_errors: Option<u64>,
    /// Cuts after which a program's own check failed.
    pub inconsistent: u64,
    /// Nanoseconds that mounting took after a cut: the median, and the longest.
    pub recovery: (f64, f64),
    pub rounds: usize,
    /// What was broken first in the last round that broke something, by the work's own words.
    pub first_broken: Option<String>,
}

/// Nanoseconds by which the oldest lost change had returned before the cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    pub of: LossKind,
    pub median: f64,
    pub worst: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// Folders, links and removals.
    Names,
    Contents,
    /// What a program had acknowledged.
    Transactions,
}

pub(crate) fn durability(observed: &ObservedWork, targets: &[TargetInfo]) -> Vec<Durability> {
    let shown = (0..targets.len()).filter(|target| !targets[*target].duplicate);
    shown.filter_map(|target| of_target(observed, target)).collect()
}

fn of_target(observed: &ObservedWork, target: usize) -> Option<Durability> {
    let series = |phase: &str, metric: &str| observed.series(target, phase, metric);
    let count = |metric: &str| sum(&series(RECOVERY, metric)) as u64;
    let cuts = count("done_cuts");
    if cuts == 0 {
        return None;
    }
    let loss = |(of, phase): (LossKind, &str)| {
        let longest = series(phase, "loss_max_ns");
        let median = median(&series(phase, "loss_p50_ns"));
        (!longest.is_empty()).then(|| Loss { of, median, worst: worst(&longest) })
    };
    let (broken, promise_cuts) = broken_promises(observed, target);
    Some(Durability {
        target,
        losses: LOST.into_iter().filter_map(loss).collect(),
        lost_transactions: worst(&series(TRANSACTIONS, "lost_transactions")) as u64,
        cuts,
        promise_cuts,
        broken,
        may_break: pickfs_stats::largest_share(broken, promise_cuts, ERROR).unwrap_or(1.0),
        unmountable: count("unmountable_cuts"),
        damaged: count("damaged_content_cuts"),
        fsck_errors: (!series(RECOVERY, "fsck_error_cuts").is_empty()).then(|| count("fsck_error_cuts")),
        inconsistent: count("inconsistent_cuts"),
        recovery: (median(&series(RECOVERY, "time_ns")), worst(&series(RECOVERY, "recovery_max_ns"))),
        rounds: series(RECOVERY, "done_cuts").len(),
        first_broken: first_broken(observed, target),
    })
}

fn first_broken(observed: &ObservedWork, target: usize) -> Option<String> {
    let done = observed.cells[target].values().rev().filter(|cell| cell.outcome == Some(Outcome::Done));
    done.filter_map(|cell| cell.provenance.facts.get(BROKEN_PROMISES)).next().map(|broken| plain(broken))
}

fn values(rounds: &Rounds) -> Vec<f64> {
    rounds.iter().map(|(_, value)| *value).collect()
}

fn sum(rounds: &Rounds) -> f64 {
    values(rounds).iter().sum()
}

fn median(rounds: &Rounds) -> f64 {
    pickfs_stats::median(&values(rounds)).unwrap_or_default()
}

fn worst(rounds: &Rounds) -> f64 {
    values(rounds).into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::eligibility::Veto;
    use super::super::made_up::MadeUp;
    use super::super::series::observe;
    use super::*;

    fn with_cuts(broken: f64) -> MadeUp {
        let mut made = MadeUp::new(&["a", "b"]);
        for (round, loss) in [(1, 4e9), (2, 6e9), (3, 5e9)] {
            let samples = [
                ("names", "time_ns", loss),
                ("names", "loss_p50_ns", loss / 2.0),
                ("names", "loss_max_ns", loss),
                ("recovery", "time_ns", 1e7),
                ("recovery", "recovery_max_ns", 2e7),
                ("recovery", "done_cuts", 200.0),
                ("recovery", "done_promise_cuts", 100.0),
            ];
            made.cell("a", round, Outcome::Done, &samples);
            let broken = [("recovery", "broken_promise_cuts", broken)];
            made.cell("b", round, Outcome::Done, &[&samples[..], &broken].concat());
        }
        made
    }

    #[test]
    fn cuts_of_all_rounds_are_counted_together() {
        let made = with_cuts(1.0);
        let observed = observe(&made.folded, &made.plan);
        let targets: Vec<TargetInfo> = (0..2).map(|_| TargetInfo::default()).collect();
        let found = durability(&observed.works[0], &targets);
        assert_eq!((found[0].cuts, found[0].promise_cuts, found[0].broken, found[0].rounds), (600, 300, 0, 3));
        assert_eq!(
            (&found[0].losses[..], found[0].recovery),
            (&[Loss { of: LossKind::Names, median: 2.5e9, worst: 6e9 }][..], (1e7, 2e7))
        );
        assert!((found[0].may_break - 0.00994).abs() < 1e-4, "{}", found[0].may_break);
        assert!(found[1].broken == 3 && found[1].may_break > 0.02, "{:?}", found[1]);
    }

    #[test]
    fn a_broken_promise_keeps_a_target_out_of_the_verdict() {
        use super::super::composite::score;
        use pickfs_core::metric::Combine;
        let veto = Veto::BrokenPromises { cuts: 3, of: 300, is_acknowledged: false, work: None };
        for (broken, wanted) in [(0.0, vec![]), (1.0, vec![veto])] {
            let made = with_cuts(broken);
            let observed = observe(&made.folded, &made.plan);
            let works: Vec<&ObservedWork> = observed.works.iter().collect();
            let scores = score(&made.plan, &observed, "time_ns", Combine::Sum);
            let found = super::super::eligibility::vetoes(&made.plan, &observed, &works, &scores).remove(1);
            assert_eq!(found, wanted);
        }
    }
}
