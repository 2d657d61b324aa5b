//! The course of a run: who left when, why it ended, and what more rounds would cost.

use super::text::{about, counted, plain};
use crate::analysis::{self as decide, Observed, RepeatsAdvice};
use crate::journal::{Enough, Folded, Look};
use crate::plan::Plan;
use crate::stats::LOOKS;
use crate::units::show_duration;

/// One line for each target that left, then how the run ended. Nothing for a fixed number of rounds that is done.
pub fn course(folded: &Folded, plan: &Plan, observed: &Observed) -> Vec<String> {
    let round = observed.last_round();
    // Of a run that ended there, nobody was left behind.
    let went_on = folded.looks.iter().filter(|look| look.end.is_none() || look.round < round);
    let leaving = went_on.flat_map(|look| look.leaving.iter().map(move |leaving| (look.round, leaving)));
    let mut lines: Vec<String> = leaving
        .map(|(round, leaving)| {
            format!(
                "{} left after {}: {}",
                plain(&leaving.target),
                counted(round as usize, "round"),
                plain(&leaving.why)
            )
        })
        .collect();
    let last = folded.looks.last().filter(|look| look.round == round);
    lines.extend(match (plan.stop.rounds, last.and_then(|look| Some((look, look.end?)))) {
        (_, None) if round == 0 => None,
        (Some(_), None | Some((_, Enough::Rounds))) => None,
        (_, Some((look, end))) => Some(ended(look, end)),
        (None, None) => Some(under_way(round)),
    });
    lines.extend(overspent(folded, plan));
    lines.extend(decide::repeats_advice(folded, observed).iter().map(repeats));
    lines
}

/// "Repeats of tree tar-read: scatter 1.2 % on one file system, 4 % between rounds; 1 is worth its time."
pub fn repeats(advice: &RepeatsAdvice) -> String {
    let percent = |variance: f64| super::text::percent(variance.sqrt());
    let (within, between) = (percent(advice.found.within), percent(advice.found.between));
    let worth = match advice.found.repeats {
        1 => "repeating is not worth its time".to_string(),
        more => format!("{more} repeats are worth their time"),
    };
    let (work, phase) = (plain(&advice.work), plain(&advice.phase));
    format!("Repeats of {work}, {phase}: scatter {within} on one file system, {between} between rounds; {worth}.")
}

fn ended(look: &Look, end: Enough) -> String {
    let needed = look.rounds_needed.filter(|needed| *needed > look.round).map(|needed| {
        let time = look.needed_ns.filter(|ns| *ns > 0).map(|ns| format!(" ({} more)", show_duration(ns as f64)));
        let needed = about(needed);
        format!("; about {needed} rounds in all{} would be needed", time.unwrap_or_default())
    });
    format!("Ended after {}: {end}{}.", counted(look.round as usize, "round"), needed.unwrap_or_default())
}

fn under_way(round: u32) -> String {
    let next = LOOKS.iter().find(|look| **look > round);
    let next = next.map_or(String::new(), |next| format!("; the next look is after {next}"));
    format!("Not at its end: {} so far{next}.", counted(round as usize, "round"))
}

/// A look at the end of a budget spends all that is left of the chance of error; those of a session that goes on spend
/// more. Looks after a fixed number of rounds send nobody away: only the last one counts.
fn overspent(folded: &Folded, plan: &Plan) -> Option<String> {
    let spent: f64 = folded.looks.iter().map(|look| look.alpha).sum();
    let (_, before) = folded.looks.split_last()?;
    let went_on = before.iter().any(|look| look.end == Some(Enough::Budget));
    (plan.stop.rounds.is_none() && went_on && spent > crate::stats::ALPHA * 1.001).then(|| {
        let percent = super::text::percent(spent.min(1.0));
        format!("Taken up again after its budget: the chance that a true best was lost is at most {percent}, not 5 %.")
    })
}
