//! The course of a run: what was eliminated when, why it ended, and what more rounds would cost.

use super::judgement::Analysis;
use super::plain::plain;
use super::repeats::{RepeatsAdvice, repeats_advice};
use pickfs_core::journal::{Folded, LeaveReason, StopReason};
use pickfs_core::plan::Plan;

#[derive(Debug, Default)]
pub struct History {
    /// Targets that were eliminated: name, after which round, and why.
    pub eliminated: Vec<(String, u32, LeaveReason)>,
    /// `None` for a fixed number of rounds that is done, and before the first one.
    pub ending: Option<Ending>,
    pub repeats: Vec<RepeatsAdvice>,
    /// What a round of the remaining targets takes, in nanoseconds; 0 where the journal does not
    /// say.
    pub round_ns: u64,
    /// The rounds that this run may have.
    pub most_rounds: u32,
}

#[derive(Debug)]
pub enum Ending {
    Ended { round: u32, end: StopReason, rounds_needed: Option<u32>, needed_ns: Option<u64>, by_width: bool },
    InProgress { round: u32, next_look: Option<u32> },
}

pub(crate) fn history(analysis: &Analysis) -> History {
    let (folded, plan, observed) = (analysis.folded, analysis.plan, &analysis.observed);
    let round = observed.last_round();
    // A run that ended there eliminated nothing.
    let went_on = folded.looks.iter().filter(|look| look.end.is_none() || look.round < round);
    let leaving = went_on.flat_map(|look| look.leaving.iter().map(move |leaving| (look.round, leaving)));
    History {
        eliminated: leaving.map(|(round, one)| (plain(&one.target), round, one.why.clone())).collect(),
        ending: ending(folded, plan, round),
        repeats: repeats_advice(folded, observed),
        round_ns: analysis.round_ns(),
        most_rounds: plan.stop.most_rounds(),
    }
}

fn ending(folded: &Folded, plan: &Plan, round: u32) -> Option<Ending> {
    let last = folded.looks.last().filter(|look| look.round == round);
    match (plan.stop.rounds, last.and_then(|look| Some((look, look.end?)))) {
        (_, None) if round == 0 => None,
        (Some(_), None | Some((_, StopReason::Rounds))) => None,
        (_, Some((look, end))) => {
            let rounds_needed = look.rounds_needed.filter(|needed| *needed > look.round);
            let (needed_ns, by_width) = (look.needed_ns.filter(|ns| *ns > 0), plan.stop.precision.is_some());
            Some(Ending::Ended { round, end, rounds_needed, needed_ns, by_width })
        }
        (None, None) => Some(Ending::InProgress { round, next_look: plan.looks.next(round) }),
    }
}
