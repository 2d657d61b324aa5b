//! The course of a run in words.

use super::text::{about, counted, percent, plain};
use crate::analysis::{Ending, History, Model, RepeatsAdvice};
use crate::journal::Enough;
use crate::units::show_duration;

impl Model {
    /// One line for each target that was eliminated, then how the run ended.
    pub fn course(&self) -> Vec<String> {
        let History { eliminated, ending: end, overspent, repeats: advice } = &self.history;
        let eliminated = eliminated
            .iter()
            .map(|(target, round, why)| format!("{target} was eliminated after {}: {why}", rounds(*round)));
        let overspent = overspent.map(|spent| {
            format!(
                "Resumed after its budget: the risk of having lost the true best is up to {}, not 5 %.",
                percent(spent)
            )
        });
        eliminated.chain(end.as_ref().map(ending)).chain(overspent).chain(advice.iter().map(repeats)).collect()
    }
}

fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Ended { round, end, rounds_needed, needed_ns } => {
            let needed = rounds_needed.map(|needed| {
                let time = needed_ns.map(|ns| format!(" ({} more)", show_duration(ns as f64))).unwrap_or_default();
                format!("; about {} rounds in all{time} would be needed", about(needed))
            });
            format!("Ended after {}: {}{}.", rounds(*round), reason(*end), needed.unwrap_or_default())
        }
        Ending::InProgress { round, next_look } => {
            let next = next_look.map(|next| format!("; the next interim analysis is after {next}")).unwrap_or_default();
            format!("In progress: {} so far{next}.", rounds(*round))
        }
    }
}

/// Why a run has enough rounds.
pub fn reason(end: Enough) -> String {
    end.to_string()
}

fn rounds(count: u32) -> String {
    counted(count as usize, "round")
}

/// "Repeats of tree tar-read: scatter 1.2 % on one file system, 4 % between rounds; 1 is worth its time."
pub fn repeats(advice: &RepeatsAdvice) -> String {
    let percent = |variance: f64| percent(variance.sqrt());
    let (within, between) = (percent(advice.found.within), percent(advice.found.between));
    let worth = match advice.found.repeats {
        1 => "repeating is not worth its time".to_string(),
        more => format!("{more} repeats are worth their time"),
    };
    let (work, phase) = (plain(&advice.work), plain(&advice.phase));
    format!("Repeats of {work}, {phase}: scatter {within} on one file system, {between} between rounds; {worth}.")
}
