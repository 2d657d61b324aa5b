//! A journal as numbers for a search among options.

use super::composite::score;
use super::eligibility::Veto;
use super::judgement::Analysis;
use super::series::observe;
use super::stopping::looks_made;
use pickfs_core::journal::Folded;
use pickfs_core::metric::Combine;

/// Natural logarithms of the time of the verdict's works, by round, of each target that is named;
/// NaN where there is none, and in all rounds of one that may not be picked, such as for a limit
/// that it exceeds.
pub fn logs_of_targets(folded: &Folded, targets: &[String]) -> Vec<Vec<f64>> {
    let Some(run) = &folded.run else { return vec![Vec::new(); targets.len()] };
    let observed = observe(folded, &run.plan);
    let last = observed.last_round();
    let values = score(&run.plan, &observed, "time_ns", Combine::Sum);
    let analysis = Analysis::of(&run.plan, folded, observed, looks_made(&run.plan, folded, last));
    let place = |name: &String| analysis.observed.targets.iter().position(|target| target == name);
    let may_be_picked = |at: &usize| !analysis.verdict.vetoes[*at].iter().any(Veto::is_final);
    let of = |name: &String| {
        let mut logs = vec![f64::NAN; last as usize];
        for (round, value) in place(name).filter(may_be_picked).into_iter().flat_map(|at| &values[at]) {
            logs[*round as usize - 1] = value.ln();
        }
        logs
    };
    targets.iter().map(of).collect()
}
