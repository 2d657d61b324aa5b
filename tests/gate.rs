//! `pickfs compare` as a gate, simulated: false alarms of runs that are the same, of runs that differ from day to day and
//! of runs that drift, and what it finds of a slowdown.

mod simulated;

use pickfs::analysis::{Accepted, Gate, Measured, changes};
use pickfs::journal::Folded;
use pickfs::plan::Stop;
use pickfs::run::rehearse;
use simulated::noise::{Noise, replications, share_error};
use simulated::{plan, share, trials};

const TARGETS: usize = 5;
const PHASES: [&str; 5] = ["write", "tar-read", "copy-read", "stat-walk", "remove"];

/// What a run has for itself. Standard deviations of logarithms.
#[derive(Clone, Copy)]
struct Machine {
    rounds: u32,
    /// Of one whole job.
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
        // Of five phases alike the sum scatters by less than each.
        let mut time = || 1e9 * (level + machine.noise * 5f64.sqrt() * noise.normal()).exp();
        Some(PHASES.iter().map(|phase| (phase.to_string(), time())).collect())
    });
    folded.expect("a rehearsal touches nothing that could fail")
}

/// A run slower by so much against so many earlier ones.
fn gate(machine: Machine, earlier: usize, slower: f64, seed: u64) -> (Gate, Option<f64>) {
    let mut noise = Noise::new(seed);
    let old: Vec<Folded> = (0..earlier).map(|_| run(machine, 0.0, &mut noise)).collect();
    let new = run(machine, slower, &mut noise);
    let with_run = |folded| (run_of(folded), folded);
    let old: Vec<Measured> = old.iter().map(with_run).collect();
    let found = changes(&old, with_run(&new), Accepted { threshold: 0.05, scatter: 0.03 });
    (found.gate, found.at_most)
}

fn run_of(folded: &Folded) -> &pickfs::journal::Run {
    folded.run.as_ref().expect("a rehearsal has a plan")
}

/// Exit codes 0, 3 and 4, and how often the bound fails: its share of runs that are slower than "at most" says.
fn row(name: &str, machine: Machine, earlier: usize, slower: f64, salt: u64) -> [f64; 4] {
    let runs = replications(30, 1000);
    let found = trials(runs, salt, |seed| gate(machine, earlier, slower, seed));
    let of = |gate: Gate| share(&found, |(found, _)| *found == gate);
    let fails = share(&found, |(_, most)| most.is_some_and(|most| most.ln_1p() < slower - 1e-12));
    let shares = [of(Gate::Fine), of(Gate::Regression), of(Gate::Inconclusive), fails];
    let shown = shares.map(|share| format!("{:.1}", 100.0 * share)).join(" | ");
    println!("| {name} | {} | {earlier} | {:.0} | {shown} |", machine.rounds, 100.0 * slower.exp_m1());
    shares
}

#[test]
fn false_alarms_are_rare_and_slowdowns_are_found() {
    let runs = replications(30, 1000);
    let rare = 0.05 + 3.5 * share_error(0.05, runs);
    println!("| runs | rounds | earlier runs | slower % | fine % | regression % | inconclusive % | bound fails % |");
    let machines = [
        ("steady", STEADY),
        ("steady", Machine { rounds: 20, ..STEADY }),
        ("3 % from day to day", Machine { day: 0.03, ..STEADY }),
        ("3 % from day to day", Machine { rounds: 20, day: 0.03, ..STEADY }),
        ("walk of 1 % a round", Machine { rounds: 20, walk: 0.01, ..STEADY }),
        ("walk of 1 % a round", Machine { rounds: 40, walk: 0.01, ..STEADY }),
    ];
    let mut wrong = Vec::new();
    for (at, (name, machine)) in machines.into_iter().enumerate() {
        for earlier in [1, 3, 5] {
            let salt = 8000 + at as u64 * 10 + earlier as u64;
            let [fine, regression, _, fails] = row(name, machine, earlier, 0.0, salt);
            if regression > rare {
                wrong.push(format!("{name}, {earlier} earlier: {regression} false alarms"));
            }
            if name == "steady" && earlier == 1 && fine < 0.4 - 3.5 * share_error(0.4, runs) {
                wrong.push(format!("equal runs are fine in {fine} only"));
            }
            // Of one run what a day does is not in the bound, and said not to be.
            if (earlier > 1 || machine.day == 0.0 && machine.walk == 0.0) && fails > rare {
                wrong.push(format!("{name}, {earlier} earlier: the bound fails in {fails}"));
            }
        }
    }
    for (at, slower) in [0.07f64, 0.2].into_iter().enumerate() {
        for (number, rounds) in [8, 20].into_iter().enumerate() {
            for earlier in [1, 3, 5] {
                let salt = 8200 + (at * 100 + number * 10 + earlier) as u64;
                let machine = Machine { rounds, ..STEADY };
                let [fine, regression, ..] = row("steady", machine, earlier, slower.ln_1p(), salt);
                if fine > rare || (slower == 0.2 && regression < 0.8) {
                    wrong.push(format!("{slower} slower, {rounds} rounds, {earlier}: fine {fine}, found {regression}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
