//! How long a plan will take and what that buys, in words: from an earlier run, or from a rule of
//! thumb.

use super::journals;
use anyhow::{Context, Result};
use pickfs_core::journal::fold_file;
use pickfs_core::plan::{Plan, Stop};
use pickfs_host::analysis as decide;
use pickfs_host::executor;
use pickfs_host::run::{self, Forecast};
use pickfs_host::wording::history::repeats as repeats_in_words;
use pickfs_host::wording::text::percent_up;
use pickfs_stats::{USUAL_BOUNDS, USUAL_BOUNDS_AFTER};
use pickfs_system::units::{show_duration, show_share};
use std::fmt::Write;
use std::path::Path;

/// From the journal of an earlier run.
pub(crate) fn describe(plan: &Plan, pilot: &Path) -> Result<String> {
    let pilot = &journals::named(pilot)?;
    let folded = fold_file(pilot)?;
    folded.begun().with_context(|| pilot.display().to_string())?;
    let forecast = run::forecast(plan, &folded).with_context(|| {
        format!(
            "{} has too little of this plan: at least three rounds are needed in which all targets and works that \
             both have were finished; run the plan with a small `budget` and take its journal",
            pilot.display()
        )
    })?;
    let mut text = in_words(&forecast, &plan.stop, pilot);
    if let Some(run) = &folded.run {
        if executor::brings_its_own(&run.plan.executor) {
            let _ = writeln!(
                text,
                "  these times are by the clocks of guests, without what their machines take to boot and to compute"
            );
        }
        let observed = decide::observe(&folded, &run.plan);
        for advice in decide::repeats_advice(&folded, &observed) {
            let _ = writeln!(text, "  {}", repeats_in_words(&advice));
        }
    }
    Ok(text)
}

fn in_words(forecast: &Forecast, stop: &Stop, pilot: &Path) -> String {
    let [few, usual, many] = forecast.rounds;
    let [short, middle, long] = forecast.ns.map(|ns| show_duration(ns as f64));
    // A fixed number of rounds ends with no answer asked for.
    let answered = match stop.rounds {
        None => format!("; {:.0} % end with an answer", forecast.decided * 100.0),
        Some(_) => String::new(),
    };
    let mut text = format!(
        "forecast, from {} rounds of {}: {usual} rounds ({few} to {many} in eight cases of ten), {middle} ({short} to \
         {long}){answered}\n",
        forecast.pilot_rounds,
        pilot.display(),
    );
    for bought in &forecast.buys {
        let (time, rounds) = (show_duration(bought.ns as f64), bought.rounds);
        let buys = match bought.at_most {
            // More reads like a measured difference, which it is not.
            most if most > 1.0 => "are too few to say how much slower than the best the pick can be".to_string(),
            most => format!("buy a pick that is at most {} slower than the best", percent_up(most)),
        };
        let _ = writeln!(text, "  {time} ({rounds} rounds) {buys}");
    }
    if let Some(budget) = stop.budget_ns.filter(|_| forecast.cut > 0.0) {
        let (budget, cut) = (show_duration(budget as f64), forecast.cut * 100.0);
        let _ = writeln!(text, "  the budget of {budget} ends {cut:.1} % of such runs before");
    }
    if forecast.lacks_copy {
        let why = "the earlier run has no second copy of the reference, so no noise floor";
        let _ = writeln!(text, "  {why}: on a noisy machine it will take longer, and fewer runs end with an answer");
    }
    if forecast.pilot_rounds < 8 {
        let _ = writeln!(text, "  so few rounds know too little of the noise: it may well take longer");
    }
    if !forecast.unknown.is_empty() {
        let names = forecast.unknown.join(", ");
        let _ = writeln!(text, "  not in the earlier run, and counted with the time of the others only: {names}");
    }
    text
}

/// A scatter as machines often have it, to have an example.
const USUAL: f64 = 0.05;

/// The forecast for a plan with this number of targets.
pub(crate) fn without_pilot(targets: usize) -> String {
    let (_, by_rounds) =
        USUAL_BOUNDS.iter().find(|(most, _)| targets <= *most).unwrap_or(&USUAL_BOUNDS[USUAL_BOUNDS.len() - 1]);
    let shown = USUAL_BOUNDS_AFTER.iter().zip(by_rounds);
    let shown: Vec<String> = shown
        .map(|(rounds, bound)| format!("{} after {rounds} rounds", show_share((bound * USUAL).exp_m1())))
        .collect();
    format!(
        "precision: if the ratio of two targets scatters by {} from round to round, the pick of equals is at most {} slower \
         than the best, and in proportion; --pilot JOURNAL gives it for this machine, in minutes\n",
        show_share(USUAL),
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rounds_buy_more_and_more_targets_less() {
        let text = without_pilot(4);
        assert!(text.contains("at most 5.8 % after 8 rounds, 3.3 % after 20 rounds, 2.1 % after 40 rounds"), "{text}");
        assert!(without_pilot(50).contains("8.2 % after 8 rounds"), "{}", without_pilot(50));
    }

    #[test]
    fn a_forecast_says_what_it_leaves_out() {
        let minutes = |n: u64| n * 60_000_000_000;
        let forecast = Forecast {
            pilot_rounds: 8,
            rounds: [8, 11, 15],
            ns: [minutes(5), minutes(7), minutes(9)],
            decided: 0.97,
            cut: 0.0,
            lacks_copy: false,
            unknown: Vec::new(),
            buys: [(8, 0.042), (4, 3.8641)]
                .map(|(rounds, at_most)| pickfs_host::run::BoundAfter { rounds, ns: minutes(5), at_most })
                .to_vec(),
        };
        let outlook = |rounds, budget_ns, cut| {
            let stop = Stop { rounds, budget_ns, ..Stop::default() };
            let text = in_words(&Forecast { cut, ..forecast.clone() }, &stop, Path::new("j"));
            (text.contains("97 % end with an answer"), text.contains("the budget of 3.0 min ends 1.5 % of such runs"))
        };
        assert_eq!(outlook(None, None, 0.0), (true, false));
        assert_eq!(outlook(None, Some(minutes(3)), 0.015), (true, true));
        assert_eq!(outlook(None, Some(minutes(30)), 0.0), (true, false));
        assert_eq!(outlook(Some(8), None, 0.0), (false, false), "nobody asks for an answer");
        let text = in_words(&forecast, &Stop::default(), Path::new("j"));
        let bought = "5.0 min (8 rounds) buy a pick that is at most 4.2 % slower than the best";
        assert!(
            text.contains(bought) && text.contains("5.0 min (4 rounds) are too few to say") && !text.contains("387"),
            "{text}"
        );
        let text = in_words(&Forecast { lacks_copy: true, ..forecast }, &Stop::default(), Path::new("j"));
        assert!(text.contains("no second copy of the reference"), "{text}");
    }
}
