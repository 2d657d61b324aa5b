//! What a report says of the rounds that would settle it, and `plan` of what rounds buy, held
//! against what came.

use crate::simulated;

use crate::simulated::noise::{Noise, Side, replications, share_error};
use crate::simulated::{share, trials};
use pickfs_core::plan::Stop;
use pickfs_stats::{Comparisons, LAST_LOOK, Look, Schedule, USUAL_BOUNDS, USUAL_BOUNDS_AFTER, regret, rounds_to_go};

const GOAL: f64 = 0.03;

/// Rounds of its own plan, beyond those of a run with looks.
const LONGER: [u32; 12] = [47, 55, 65, 76, 89, 104, 122, 170, 235, 325, 500, 1000];

/// One case in ten, and nine in ten.
type Range = [Option<u32>; 2];

/// The last judgement before it was so, and the first after.
type Truth = (u32, u32);

/// With targets of these logarithms of time: what is forecast after `from` rounds, and when the
/// pick is good enough; `None` where it is so before.
fn forecast_and_truth(truth: &[f64], side: Side, from: u32, seed: u64) -> Option<(Range, Truth)> {
    let mut noise = Noise::new(seed);
    let logs: Vec<Vec<f64>> =
        truth.iter().map(|level| (0..1000).map(|_| level + side.draw(&mut noise)).collect()).collect();
    let comparisons = truth.len() - 1;
    let of = Comparisons { logs: &logs, candidates: truth.len(), comparisons, twins: None, lacking: &[], tick: 0.0 };
    let schedule = Schedule::EachRound;
    let looks = |until: u32| schedule.spent(&schedule.rounds().filter(|look| *look <= until).collect::<Vec<_>>());
    let is_settled = |looks: &[Look]| regret(&of, looks).regret.iter().any(|bound| *bound <= GOAL.ln_1p());
    if is_settled(&looks(from)) {
        return None;
    }
    let found = rounds_to_go(&of, &regret(&of, &looks(from)), (schedule, from), GOAL.ln_1p())?;
    let mut before = from;
    for after in schedule.rounds().filter(|look| *look > from).chain(LONGER) {
        let now = if after > LAST_LOOK { vec![Look::only(after)] } else { looks(after) };
        if is_settled(&now) {
            return Some((found, (before, after)));
        }
        before = after;
    }
    Some((found, (1000, u32::MAX)))
}

/// "One case in ten has come so far by the first number, nine in ten by the second."
#[test]
fn the_rounds_that_would_settle_it_are_in_their_range() {
    let runs = replications(30, 1000);
    println!("| truth | noise | after | open | first number at most % | second at most % | in the range % |");
    let outliers = Side::Modes { sd: 0.03, share: 0.1, by: 3f64.ln() };
    let cases: [(&str, &[f64], &str, Side, u32); 9] = [
        ("two equal", &[0.0, 0.0], "normal 5 %", Side::Normal(0.05), 8),
        ("two, +5 %", &[0.0, 0.05], "normal 5 %", Side::Normal(0.05), 8),
        ("two, +5 %", &[0.0, 0.05], "normal 10 %", Side::Normal(0.1), 8),
        ("two, +5 %", &[0.0, 0.05], "normal 10 %", Side::Normal(0.1), 20),
        ("two, +10 %", &[0.0, 0.1], "normal 10 %", Side::Normal(0.1), 8),
        ("five equal", &[0.0; 5], "normal 5 %", Side::Normal(0.05), 8),
        ("five equal", &[0.0; 5], "normal 5 %", Side::Normal(0.05), 20),
        ("five equal", &[0.0; 5], "t2 2 %", Side::T2(0.02), 8),
        ("five equal", &[0.0; 5], "10 % outliers x3", outliers, 20),
    ];
    let mut wrong = Vec::new();
    for (at, (name, truth, noise, side, from)) in cases.into_iter().enumerate() {
        let found = trials(runs, 6000 + at as u64, |seed| forecast_and_truth(truth, side, from, seed));
        let open: Vec<_> = found.into_iter().flatten().collect();
        let number = |end: Option<u32>| end.unwrap_or(u32::MAX);
        // Where it is between two judgements it may have been at either.
        let by = |which: usize| share(&open, |(range, (before, _))| *before < number(range[which]));
        let [first, second] = [by(0), by(1)];
        let inside =
            |(range, (before, after)): &(Range, Truth)| number(range[0]) <= *after && *before < number(range[1]);
        let held = share(&open, inside);
        let percent = [first, second, held].map(|share| format!("{:.0}", 100.0 * share)).join(" | ");
        println!("| {name} | {noise} | {from} | {} | {percent} |", open.len());
        // Heavy tails are known less well than the noise of so few rounds says.
        let least: f64 = if noise.starts_with("normal") { 0.75 } else { 0.6 };
        if open.len() >= 10 && held < least - 3.5 * share_error(least, open.len()) {
            wrong.push(format!("{name}, {noise}, after {from}: {held}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The middle of the bounds of equals is what `plan` says that rounds buy, to a tenth.
#[test]
fn rounds_buy_what_plan_says() {
    let runs = replications(60, 1000);
    let sd = 0.05;
    for (at, (count, bought)) in USUAL_BOUNDS.into_iter().enumerate().filter(|(at, _)| *at < 2 || runs > 60) {
        let bounds = trials(runs, 6500 + at as u64, |seed| {
            let mut noise = Noise::new(seed);
            let names: Vec<String> = (0..count).map(|at| at.to_string()).collect();
            let stop = Stop { threshold: 1e-6, ..Stop::default() };
            let folded =
                simulated::play(&simulated::plan(&names, true, stop, seed), |_| sd / 2f64.sqrt() * noise.normal());
            let look = |after: &u32| folded.looks.iter().find(|look| look.round == *after);
            USUAL_BOUNDS_AFTER.map(|after| look(&after).and_then(|look| look.at_most_slower).unwrap_or(f64::INFINITY))
        });
        for (number, share) in bought.into_iter().enumerate() {
            let mut all: Vec<f64> = bounds.iter().map(|bounds| bounds[number]).collect();
            all.sort_by(f64::total_cmp);
            let found = all[all.len() / 2].ln_1p() / sd;
            println!("{count} targets, {} rounds: {found:.2}, said {share}", USUAL_BOUNDS_AFTER[number]);
            let allowed = if runs > 60 { 0.1 } else { 0.25 };
            assert!((found / share - 1.0).abs() < allowed, "{count}, {}: {found}", USUAL_BOUNDS_AFTER[number]);
        }
    }
}
