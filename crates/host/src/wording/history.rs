//! The course of a run in words.

use super::answer::{OF_LOSSES, OF_TIMES};
use super::text::{about, counted, percent, plain};
use crate::analysis::{Ending, History, Model, RepeatsAdvice};
use pickfs_core::journal::{Folded, LeaveReason, Look, StopReason};
use pickfs_system::units::show_duration;

impl Model {
    /// One line for each target that was eliminated, then how the run ended.
    pub fn course(&self) -> Vec<String> {
        let History { eliminated, ending: end, repeats: advice, .. } = &self.history;
        let eliminated = eliminated.iter().map(|(target, round, why)| {
            format!("{target} was eliminated after {}: {}", rounds(*round), eliminated_as(why))
        });
        eliminated.chain(end.as_ref().map(ending)).chain(advice.iter().map(repeats)).collect()
    }
}

fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Ended { round, end, rounds_needed, needed_ns, by_width } => {
            let needed = rounds_needed.map(|needed| {
                let time = needed_ns.map(|ns| format!(" ({} more)", show_duration(ns as f64))).unwrap_or_default();
                // By how an interval narrows, in the middle; of a decision a forecast says more.
                let when = if *by_width { "by its width" } else { "in nine cases of ten" };
                format!("; {when} {} rounds in all{time} would be enough", about(needed))
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
pub(crate) fn reason(end: StopReason) -> &'static str {
    match end {
        StopReason::Decided => "decided",
        StopReason::Precise => "as precise as was asked for",
        StopReason::Rounds => "that was the last round",
        StopReason::Budget => "the budget is used up",
        StopReason::Nothing => "there is nothing left to compare",
    }
}

/// Why a target was eliminated.
pub fn eliminated_as(why: &LeaveReason) -> String {
    match why {
        LeaveReason::SlowerThan(other) => format!("behind {}", plain(other)),
        LeaveReason::Vetoed => "out of the verdict".to_string(),
    }
}

/// "after 11 rounds: xfs leaves (behind ext4); 2 targets may be the best".
pub(crate) fn interim_analysis(look: &Look, folded: &Folded) -> String {
    let is_one_work = folded.run.as_ref().is_some_and(|run| run.plan.works.len() == 1);
    // As the report says it of a work that cuts power, if it is the only one.
    let terms = if is_one_work && folded.interned("done_cuts").is_some() { &OF_LOSSES } else { &OF_TIMES };
    let leaving =
        look.leaving.iter().map(|leaving| format!("{} leaves ({})", leaving.target, eliminated_as(&leaving.why)));
    let best = match look.best.as_slice() {
        _ if look.at_most_slower.is_some_and(|bound| bound > 0.0) => {
            look.at_most_slower.map(|bound| format!("{}: {}", look.pick, super::headline::at_most(bound, terms)))
        }
        [] => None,
        [one] => Some(format!("{one} is ahead")),
        all => Some(format!("{} targets may be the best", all.len())),
    };
    let end = look.end.map(|end| reason(end).to_string());
    let end = end.or_else(|| look.best.is_empty().then(|| "nothing is decided yet".to_string()));
    let parts: Vec<String> = leaving.chain(best).chain(end).collect();
    format!("after {}: {}", rounds(look.round), parts.join("; "))
}

fn rounds(count: u32) -> String {
    counted(count as usize, "round")
}

/// "Repeats of tree tar-read: scatter 1.2 % on one file system, 4 % between rounds; 1 is worth its
/// time."
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

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::journal::{Leaving, Record, Run, Sample};
    use pickfs_core::plan::{Plan, Work};

    #[test]
    fn an_interim_analysis_without_results_says_so() {
        let look = Look { round: 8, ..Look::default() };
        let mut folded = Folded::default();
        assert_eq!(interim_analysis(&look, &folded), "after 8 rounds: nothing is decided yet");
        assert!(interim_analysis(&Look { round: 1, ..Look::default() }, &folded).starts_with("after 1 round: "));
        let ahead = Look { best: vec!["xfs".into()], ..look };
        assert_eq!(interim_analysis(&ahead, &folded), "after 8 rounds: xfs is ahead");
        let bounded = Look { pick: "ext4".into(), at_most_slower: Some(0.04), ..ahead };
        let said = "after 8 rounds: ext4: at most 4 % slower than the best (95 %)";
        assert_eq!(interim_analysis(&bounded, &folded), said);
        let plan = Plan { works: vec![Work::default()], ..Plan::default() };
        folded.run = Some(Run { plan, ..Run::default() });
        let (cell, phase, metric) = ("a".into(), "recovery".into(), "done_cuts".into());
        folded.take(Record::Sample(Sample { cell, phase, metric, value: 200.0 }));
        assert_eq!(interim_analysis(&bounded, &folded), said.replace("slower", "worse"), "of a power cut");
    }

    #[test]
    fn how_many_rounds_would_do_is_by_what_was_asked_for() {
        let said = |by_width| {
            let (end, rounds_needed) = (StopReason::Budget, Some(48));
            ending(&Ending::Ended { round: 12, end, rounds_needed, needed_ns: None, by_width })
        };
        let ended = "Ended after 12 rounds: the budget is used up";
        assert_eq!(said(false), format!("{ended}; in nine cases of ten 48 rounds in all would be enough."));
        assert_eq!(said(true), format!("{ended}; by its width 48 rounds in all would be enough."));
    }

    /// As this version writes them, and as schema 1 did.
    #[test]
    fn reasons_of_every_schema_are_read() {
        let cases = [
            (r#"{"slower_than":"xfs"}"#, LeaveReason::SlowerThan("xfs".into()), "behind xfs"),
            (r#""vetoed""#, LeaveReason::Vetoed, "out of the verdict"),
        ];
        for (written, why, words) in cases {
            let read: Leaving = serde_json::from_str(&[r#"{"target":"b","why":"#, written, "}"].concat()).unwrap();
            assert_eq!((&read.why, eliminated_as(&read.why).as_str()), (&why, words));
            assert_eq!(serde_json::to_string(&why).unwrap(), written);
        }
    }
}
