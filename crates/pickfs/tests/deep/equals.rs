//! Targets that are the same: no headline and no phase sentence may call one of them slower in more
//! than 5 % of runs, through the analysis and the wording of real reports. `PICKFS_FULL=1` plays
//! 2000 runs of each kind.

use crate::simulated::noise::{Noise, Side, replications, share_error};
use crate::simulated::{plan, report, share, trials};
use pickfs_core::journal::{Folded, Record, Sample};
use pickfs_core::plan::Stop;
use pickfs_host::analysis::Model;
use pickfs_host::run::rehearse;

const PHASES: [&str; 5] = ["write", "tar-read", "copy-read", "stat-walk", "remove"];

/// A whole run of equals of five phases, with the hidden copy of the reference; rounds are fast or
/// slow as a whole.
fn run_of_equals(count: usize, side: Side, stop: Stop, seed: u64) -> Model {
    let names: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
    let (mut noise, mut round, mut shared) = (Noise::new(seed), 0, 0.0);
    let folded = rehearse(&plan(&names, true, stop, seed), |cell| {
        if cell.round != round {
            (round, shared) = (cell.round, 0.05 * noise.normal());
        }
        let mut time = || 1e9 * (shared + side.draw(&mut noise)).exp();
        Some(PHASES.iter().map(|phase| (phase.to_string(), time())).collect())
    });
    report(&folded.expect("a rehearsal touches nothing that could fail"))
}

/// The sentences that call a target slower, or one alone the fastest, which is the same of all
/// others.
fn slurs(model: &Model) -> Vec<String> {
    let said = model.headlines().into_iter().chain(model.works[0].sentences(model));
    said.filter(|line| {
        line.to_lowercase().split("slower than the best").any(|part| part.contains("slower"))
            || line.contains("fastest")
    })
    .collect()
}

/// A number of targets, and how many runs of it are played in short and in long tests.
const COUNTS: [(usize, usize); 4] = [(2, 60), (5, 24), (10, 6), (20, 2)];

#[test]
fn equals_are_called_slower_in_at_most_one_run_in_twenty() {
    let stops = [
        ("8 rounds", Stop { rounds: Some(8), ..Stop::default() }),
        ("20 rounds", Stop { rounds: Some(20), ..Stop::default() }),
        ("looks", Stop::default()),
    ];
    let sides = [("normal 3 %", Side::Normal(0.03)), ("t2 2 %", Side::T2(0.02))];
    println!("| noise | targets x 5 phases | rounds | runs | a sentence calls one slower % |");
    let mut wrong = Vec::new();
    for (at, (noise, side)) in sides.into_iter().enumerate() {
        for (count, few) in COUNTS {
            for (number, (rounds, stop)) in stops.into_iter().enumerate() {
                let runs = replications(few, 2000);
                let salt = (9000 + at * 100 + count * 10 + number) as u64;
                let found = trials(runs, salt, |seed| slurs(&run_of_equals(count, side, stop, seed)));
                let called = share(&found, |lines| !lines.is_empty());
                println!("| {noise} | {count} | {rounds} | {runs} | {:.1} |", 100.0 * called);
                if called > 0.05 + 3.5 * share_error(0.05, runs) {
                    wrong.push(format!("{noise}, {count} targets, {rounds}: {called} of {runs}, {:?}", found.concat()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The test above must be able to see a slur: of targets that do differ, sentences say so.
#[test]
fn targets_that_differ_are_called_slower() {
    let names: Vec<String> = ["t0", "t1"].map(String::from).to_vec();
    let mut noise = Noise::new(1);
    let stop = Stop { rounds: Some(8), ..Stop::default() };
    let folded = rehearse(&plan(&names, true, stop, 1), |cell| {
        let level = if cell.target.name == "t1" { 2.0 } else { 1.0 };
        Some(PHASES.iter().map(|phase| (phase.to_string(), 1e9 * level * (0.01 * noise.normal()).exp())).collect())
    });
    assert_eq!(slurs(&report(&folded.expect("a rehearsal"))).len(), 6);
}

/// The share of the noise of 10 % that is the speed of the processor.
const EXPLAINED: f64 = 0.6;

/// A run of `rounds` rounds of one phase, and the readings of the processor's speed that earlier
/// versions took with each time: those of `t1` are lower by the share `lower`. `t1` takes longer by
/// `slower`, all others the same.
fn run_with_readings((count, rounds): (usize, u32), slower: f64, lower: f64, seed: u64) -> (Folded, Vec<Record>) {
    let names: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
    let (mut noise, mut readings) = (Noise::new(seed), Vec::new());
    let stop = Stop { rounds: Some(rounds), ..Stop::default() };
    let folded = rehearse(&plan(&names, true, stop, seed), |cell| {
        let (speed, rest) = (0.1 * noise.normal(), 0.1 * noise.normal());
        let (level, moved) = if cell.target.name == "t1" { (1.0 + slower, 1.0 - lower) } else { (1.0, 1.0) };
        let (phase, metric) = ("write".to_string(), "cpu_speed_per_second".to_string());
        readings.push(Record::Sample(Sample {
            cell: cell.id.clone(),
            phase,
            metric,
            value: 8e4 * moved * (-speed).exp(),
        }));
        let time = (EXPLAINED.sqrt() * speed + (1.0 - EXPLAINED).sqrt() * rest).exp();
        Some(vec![("write".to_string(), 1e9 * level * time)])
    });
    (folded.expect("a rehearsal"), readings)
}

/// All that is said, and whether the bound of the pick is false: `t1` is slower by this.
fn judged(folded: &Folded, slower: f64) -> (Vec<String>, Vec<String>, bool) {
    let model = report(folded);
    let race = model.works[0].phases[0].race.as_ref().expect("a race");
    let is_false = model.targets[race.pick].name == "t1" && race.bound() < slower;
    (slurs(&model), [model.headlines(), model.works[0].sentences(&model)].concat(), is_false)
}

/// Old journals have readings of the processor's speed, which a target can move itself: they decide
/// nothing.
#[test]
fn readings_of_the_processor_decide_nothing() {
    println!(
        "| targets | rounds | its readings lower by | runs | equals: one called slower % | 5 % slower: bound false % | said alike % |"
    );
    let mut wrong = Vec::new();
    for size in [(2, 15), (2, 28), (5, 15), (5, 28)] {
        for lower in [0.0, 0.02, 0.05, 0.1, 0.2] {
            let runs = replications(2, 200);
            let found = trials(runs, 9900 + u64::from(size.1), |seed| {
                [0.0, 0.05].map(|slower| {
                    let (mut folded, readings) = run_with_readings(size, slower, lower, seed);
                    let without = judged(&folded, slower);
                    readings.into_iter().for_each(|reading| folded.take(reading));
                    let with = judged(&folded, slower);
                    (with.clone(), with == without)
                })
            });
            let shares = [
                share(&found, |[equals, _]| !equals.0.0.is_empty()),
                share(&found, |[_, slower]| slower.0.2),
                share(&found, |both| both.iter().all(|(_, alike)| *alike)),
            ];
            let [called, bound, alike] = shares.map(|share| 100.0 * share);
            println!("| {} | {} | {lower} | {runs} | {called:.1} | {bound:.1} | {alike:.1} |", size.0, size.1);
            if alike < 100.0 || shares[0].max(shares[1]) > 0.05 + 3.5 * share_error(0.05, runs) {
                wrong.push(format!("{size:?}, {lower}: {shares:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
