//! The race on noise that others have measured: runs of five file systems on hosted machines, as
//! rounds in random orders. The truth is what all of them together show.

use crate::simulated::noise::Noise;
use pickfs_stats::{Comparisons, LAST_LOOK, Regret, Schedule, median};
use std::collections::BTreeMap;
use std::process::Command;

/// Logarithms of times of each file system in the runs that have all of them.
struct Foreign {
    metric: String,
    names: Vec<String>,
    logs: Vec<Vec<f64>>,
}

/// Orders that are drawn for each metric.
const ORDERS: u64 = 1000;
/// The relative difference that matters.
const GOAL: f64 = 0.03;

fn all() -> Vec<Foreign> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/foreign/noise.csv.xz");
    let text = Command::new("xz").args(["-dc", file]).output().expect("xz").stdout;
    let text = String::from_utf8(text).unwrap();
    let mut found: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, f64>>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [run, config, metric, value] = fields[..] else { panic!("{line}") };
        let value: f64 = value.parse().unwrap();
        if value > 0.0 {
            // Of a rate, the time is the inverse.
            let log = if metric.ends_with("_ms") { value.ln() } else { -value.ln() };
            found.entry(metric).or_default().entry(run).or_default().insert(config, log);
        }
    }
    let of_metric = |(metric, runs): (&str, BTreeMap<&str, BTreeMap<&str, f64>>)| {
        let names: Vec<String> =
            runs.values().max_by_key(|run| run.len()).unwrap().keys().map(|name| name.to_string()).collect();
        let whole: Vec<_> = runs.into_values().filter(|run| run.len() == names.len()).collect();
        let logs = names.iter().map(|name| whole.iter().map(|run| run[name.as_str()]).collect()).collect();
        Foreign { metric: metric.to_string(), names, logs }
    };
    found.into_iter().map(of_metric).collect()
}

/// The centre of the differences of two (Hodges & Lehmann 1963).
fn centre(a: &[f64], b: &[f64]) -> f64 {
    let pair: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let averages: Vec<f64> =
        pair.iter().enumerate().flat_map(|(i, x)| pair[i..].iter().map(move |y| (x + y) / 2.0)).collect();
    median(&averages).unwrap()
}

/// What a reader of one order is shown.
struct Shown {
    rounds: u32,
    is_decided: bool,
    pick: usize,
    is_false_bound: bool,
    is_wrong_name: bool,
}

fn race(of: &Foreign, behind: &[f64], seed: u64) -> Shown {
    let (count, rounds) = (of.names.len(), of.logs[0].len());
    let (mut noise, mut order) = (Noise::new(seed), (0..rounds).collect::<Vec<_>>());
    for last in (1..rounds).rev() {
        order.swap(last, (noise.uniform() * (last + 1) as f64).ceil() as usize - 1);
    }
    let logs: Vec<Vec<f64>> = of.logs.iter().map(|row| order.iter().map(|at| row[*at]).collect()).collect();
    let compared =
        Comparisons { logs: &logs, candidates: count, comparisons: count - 1, twins: None, lacking: &[], tick: 0.0 };
    let looks = Schedule::EachRound.spent(&(3..=LAST_LOOK).collect::<Vec<_>>());
    let mut found = Regret::of(count);
    let mut shown = Shown { rounds: 0, is_decided: false, pick: 0, is_false_bound: false, is_wrong_name: false };
    for look in looks {
        found.look(&compared, &look);
        let pick = found.members()[0];
        shown.is_false_bound |= (0..count).any(|at| behind[at] > found.regret[at] + 1e-12);
        let is_decided = found.regret[pick] <= GOAL.ln_1p();
        shown = Shown { rounds: look.rounds, is_decided, pick, ..shown };
        if is_decided {
            break;
        }
    }
    shown.is_wrong_name = shown.is_decided && behind[shown.pick] > GOAL.ln_1p();
    shown
}

/// The first of each single run, where that is not the best of all.
fn wrong_firsts(of: &Foreign, best: usize) -> f64 {
    let rounds = of.logs[0].len();
    let first = |round: usize| (0..of.names.len()).min_by(|a, b| of.logs[*a][round].total_cmp(&of.logs[*b][round]));
    (0..rounds).filter(|round| first(*round) != Some(best)).count() as f64 / rounds as f64
}

#[test]
fn bounds_hold_on_noise_of_others() {
    println!(
        "| metric | runs | best | single runs that name another first % | bounds hold % | wrong name % | decided % | rounds |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for of in all().into_iter().filter(|of| of.logs[0].len() >= 40) {
        let count = of.names.len();
        let behind = |at: usize| (0..count).map(|other| centre(&of.logs[at], &of.logs[other])).fold(0.0, f64::max);
        let behind: Vec<f64> = (0..count).map(behind).collect();
        let best = (0..count).min_by(|a, b| behind[*a].total_cmp(&behind[*b])).unwrap();
        let shown: Vec<Shown> = (0..ORDERS).map(|seed| race(&of, &behind, seed)).collect();
        let share = |is: fn(&Shown) -> bool| shown.iter().filter(|one| is(one)).count() as f64 / ORDERS as f64;
        let (holds, wrong) = (1.0 - share(|one| one.is_false_bound), share(|one| one.is_wrong_name));
        let rounds = shown.iter().map(|one| f64::from(one.rounds)).sum::<f64>() / ORDERS as f64;
        println!(
            "| {} | {} | {} | {:.0} | {:.1} | {:.1} | {:.1} | {rounds:.1} |",
            of.metric,
            of.logs[0].len(),
            of.names[best],
            100.0 * wrong_firsts(&of, best),
            100.0 * holds,
            100.0 * wrong,
            100.0 * share(|one| one.is_decided)
        );
        assert!(holds >= 0.95 && wrong <= 0.02, "{}: bounds hold in {holds}, {wrong} wrong names", of.metric);
    }
}
