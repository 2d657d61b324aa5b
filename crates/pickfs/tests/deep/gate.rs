//! `pickfs compare` as a gate, simulated: false alarms of runs that are the same, of runs that
//! differ from day to day and of runs that drift, and what it finds of a slowdown.

use crate::simulated::noise::{Noise, replications, share_error};
use crate::simulated::{plan, share, trials};
use pickfs_core::journal::Folded;
use pickfs_core::plan::Stop;
use pickfs_host::analysis::{Accepted, Gate, Measured, changes};
use pickfs_host::run::rehearse;

const TARGETS: usize = 5;
const PHASES: [&str; 5] = ["write", "tar-read", "copy-read", "stat-walk", "remove"];

/// What a run has for itself. Standard deviations of logarithms.
#[derive(Clone, Copy)]
struct Machine {
    rounds: u32,
    /// Noise of one whole job.
    noise: f64,
    /// From run to run, alike for all targets.
    day: f64,
    /// From round to round, as a random walk.
    walk: f64,
}

const STEADY: Machine = Machine { rounds: 8, noise: 0.03, day: 0.0, walk: 0.0 };

/// A run in which the first target is slower by so much.
fn run(machine: Machine, slower: f64, noise: &mut Noise) -> Folded {
    let names: Vec<String> = (0..TARGETS).map(|at| format!("t{at}")).collect();
    let stop = Stop { rounds: Some(machine.rounds), ..Stop::default() };
    let (mut round, mut drift) = (0, machine.day * noise.normal());
    let folded = rehearse(&plan(&names, false, stop, 1), |cell| {
        if cell.round != round {
            (round, drift) = (cell.round, drift + machine.walk * noise.normal());
        }
        let level = drift + if cell.target.name == "t0" { slower } else { 0.0 };
        // The sum of five phases alike scatters by less than each.
        let mut time = || 1e9 * (level + machine.noise * 5f64.sqrt() * noise.normal()).exp();
        Some(PHASES.iter().map(|phase| (phase.to_string(), time())).collect())
    });
    folded.expect("a rehearsal touches nothing that could fail")
}

/// Earlier runs that are compared, and others of the same kind in the folder of one of them.
#[derive(Clone, Copy)]
struct Earlier {
    compared: usize,
    beside: usize,
}

const fn earlier(compared: usize) -> Earlier {
    Earlier { compared, beside: 0 }
}

/// One earlier run alone, with three others, and several.
const EARLIER: [Earlier; 5] = [earlier(1), Earlier { compared: 1, beside: 3 }, earlier(2), earlier(4), earlier(6)];

/// A run slower by so much against earlier ones.
fn gate(machine: Machine, earlier: Earlier, slower: f64, seed: u64) -> (Gate, Option<f64>) {
    let mut noise = Noise::new(seed);
    let mut all = |runs: usize| -> Vec<Folded> { (0..runs).map(|_| run(machine, 0.0, &mut noise)).collect() };
    let (old, beside) = (all(earlier.compared), all(earlier.beside));
    let new = run(machine, slower, &mut noise);
    let with_run = |folded| (run_of(folded), folded);
    let [old, beside] = [&old, &beside].map(|runs| runs.iter().map(with_run).collect::<Vec<Measured>>());
    let found = changes(&old, &beside, with_run(&new), Accepted { threshold: 0.05, scatter: None });
    (found.gate, found.at_most)
}

fn run_of(folded: &Folded) -> &pickfs_core::journal::Run {
    folded.run.as_ref().expect("a rehearsal has a plan")
}

/// Exit codes 0, 3 and 4, and how often the bound fails: its share of runs that are slower than "at
/// most" says.
fn row(name: &str, machine: Machine, earlier: Earlier, slower: f64, salt: u64) -> [f64; 4] {
    let runs = replications(10, 1000);
    let found = trials(runs, salt, |seed| gate(machine, earlier, slower, seed));
    let of = |gate: Gate| share(&found, |(found, _)| *found == gate);
    let fails = share(&found, |(_, most)| most.is_some_and(|most| most.ln_1p() < slower - 1e-12));
    let shares = [of(Gate::Fine), of(Gate::Regression), of(Gate::Inconclusive), fails];
    let shown = shares.map(|share| format!("{:.1}", 100.0 * share)).join(" | ");
    let Earlier { compared, beside } = earlier;
    println!("| {name} | {} | {compared} | {beside} | {:.0} | {shown} |", machine.rounds, 100.0 * slower.exp_m1());
    shares
}

const DAYS: [(&str, f64); 3] = [("steady", 0.0), ("1 % from day to day", 0.01), ("3 % from day to day", 0.03)];

/// Neither is said of runs that are the same more often than in 5 %.
fn false_alarms(rare: f64, wrong: &mut Vec<String>) {
    let days = DAYS.into_iter().flat_map(|(name, day)| [20].map(|rounds| (name, Machine { rounds, day, ..STEADY })));
    let walks = [20].map(|rounds| ("walk of 1 % a round", Machine { rounds, walk: 0.01, ..STEADY }));
    for (at, (name, machine)) in days.chain(walks).enumerate() {
        for (number, earlier) in EARLIER.into_iter().enumerate() {
            let salt = 8000 + (at * 10 + number) as u64;
            let [fine, regression, _, fails] = row(name, machine, earlier, 0.0, salt);
            if regression > rare || fails > rare {
                wrong.push(format!("{name}, {number}: {regression} false alarms, the bound fails in {fails}"));
            }
            if earlier.compared + earlier.beside == 1 && fine + regression > 0.0 {
                wrong.push(format!("{name}: something is concluded from two runs"));
            }
        }
    }
}

#[test]
fn false_alarms_are_rare_and_slowdowns_are_found() {
    let rare = 0.05 + 3.5 * share_error(0.05, replications(10, 1000));
    println!(
        "| runs | rounds | earlier runs | other runs | slower % | fine % | regression % | inconclusive % | bound fails % |"
    );
    let mut wrong = Vec::new();
    for (at, slower) in [0.1f64, 0.2].into_iter().enumerate() {
        for (place, (name, day)) in DAYS.into_iter().enumerate() {
            for (number, earlier) in EARLIER.into_iter().enumerate() {
                let salt = 8500 + (at * 100 + place * 10 + number) as u64;
                let machine = Machine { rounds: 20, day, ..STEADY };
                let [fine, found, _, fails] = row(name, machine, earlier, slower.ln_1p(), salt);
                let must_find = slower == 0.2 && day == 0.0 && earlier.compared + earlier.beside >= 4;
                if fine > rare || fails > rare || must_find && found < 0.8 {
                    wrong.push(format!("{slower} slower, {name}, {number}: fine {fine}, found {found}, {fails} fail"));
                }
            }
        }
    }
    false_alarms(rare, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
