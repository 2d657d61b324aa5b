//! What the race saves: complete runs, with interim analyses and the hidden duplicate, against a
//! fixed number of repeats of every target of which the lowest mean wins. Prints the tables of
//! docs/race.md. `cargo bench --bench race`, a few minutes.

#[path = "../tests/simulated/mod.rs"]
mod simulated;

use pickfs_core::plan::Stop;
use pickfs_host::analysis::VerdictKind;
use simulated::noise::{FIELDS, Field, Noise, share_error};
use simulated::{Played, Race, mean, same_medians, share, trials};

const TRIALS: usize = 2000;

/// Targets by how much slower they are than the best; the last is what the whole answer is.
const TRUTHS: [(&str, [f64; 8]); 2] = [
    ("Two exactly tied best, others 1, 2, 3, 5, 10 and 25 % slower", [0.0, 0.0, 0.01, 0.02, 0.03, 0.05, 0.10, 0.25]),
    ("Three exactly tied best, others 10 to 40 % slower", [0.0, 0.0, 0.0, 0.10, 0.15, 0.20, 0.25, 0.40]),
];

/// Numbers of repeats that people take.
const FIXED: [u32; 4] = [3, 10, 20, 40];

/// More are tried up to here, to find where the lowest mean is as seldom wrong as the race.
const MOST: u32 = 20_000;

fn main() {
    for (title, slower) in TRUTHS {
        for threshold in [0.03, 0.02] {
            compare(title, slower, threshold);
        }
    }
}

/// The share of races in which the lowest mean of a fixed number of repeats names a wrong target.
struct Wrong {
    repeats: u32,
    share: f64,
}

/// A noise, its name, and what is added to every other target: see [`Race::odd`].
fn noises() -> Vec<(String, Field, f64)> {
    let same_means = FIELDS.into_iter().map(|field| (field.name.to_string(), field, 0.0));
    let mixed = FIELDS.into_iter().filter(|field| field.even != field.odd);
    let same_medians = mixed.map(|field| (format!("{}, same medians", field.name), field, same_medians(field)));
    same_means.chain(same_medians).collect()
}

fn compare(title: &str, slower: [f64; 8], threshold: f64) {
    println!("\n## {title}; differences below {:.0} % do not matter\n", 100.0 * threshold);
    println!("| noise | method | wrong % | says tie % | names one % | unresolved % | cells |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut saved = Vec::new();
    for (at, (name, field, odd)) in noises().into_iter().enumerate() {
        let truth = slower.iter().map(|slower: &f64| slower.ln_1p()).collect();
        let race = Race { truth, field, odd, stop: Stop { threshold, ..Stop::default() } };
        let runs = trials(TRIALS, at as u64, |seed| race.play(seed));
        let wrong = share(&runs, |run| is_wrong(run, &race));
        let cells = mean(&runs, |run| run.cells as f64);
        row(&name, wrong, &runs, cells);
        let worse = share(&runs, |run| names_a_worse_one(run, &race));
        let fixed = ladder(&race, at as u64, wrong.min(worse));
        for fixed in fixed.iter().filter(|fixed| FIXED.contains(&fixed.repeats)) {
            let (repeats, wrong, cells) = (fixed.repeats, 100.0 * fixed.share, fixed.repeats * 8);
            println!("| {name} | lowest mean of {repeats} | {wrong:.1} | 0.0 | 100.0 | 0.0 | {cells} |");
        }
        saved.push(saving(&name, [wrong, worse], cells, &fixed));
    }
    // Where nothing but equals is near the best, any three repeats name one of them; the answer is
    // that they tie.
    if slower[2] > 0.0 {
        println!(
            "\n| noise | cells | wrong % | repeats | share | at worst | names a worse one % | repeats | share | at worst |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        println!("{}", saved.join("\n"));
    }
}

fn row(name: &str, wrong: f64, runs: &[Played], cells: f64) {
    let kind = |kind: VerdictKind| 100.0 * share(runs, |run| run.kind == kind);
    println!(
        "| {name} | race | {:.1} | {:.1} | {:.1} | {:.1} | {cells:.0} |",
        100.0 * wrong,
        kind(VerdictKind::Tie),
        kind(VerdictKind::Pick),
        kind(VerdictKind::Unresolved),
    );
}

/// Every way to be wrong: a true best is not among the candidates (and so neither among the ties,
/// nor the one named), or a tie is announced with one that is slower by more than the band
/// announced with it.
fn is_wrong(run: &Played, race: &Race) -> bool {
    let lost = race.best().iter().any(|best| !run.candidates.contains(best));
    let apart = |target: &usize| race.behind(*target) > run.threshold.ln_1p() + 1e-12;
    lost || (run.kind == VerdictKind::Tie && run.named.iter().any(apart))
}

/// Only what the lowest mean can get wrong as well: naming one that is not truly best, or a tie
/// with one that is slower by more than the band.
fn names_a_worse_one(run: &Played, race: &Race) -> bool {
    let behind = |target: &usize, allowed: f64| race.behind(*target) > allowed + 1e-12;
    match run.kind {
        VerdictKind::Pick => run.named.iter().any(|target| behind(target, 0.0)),
        VerdictKind::Tie => run.named.iter().any(|target| behind(target, run.threshold.ln_1p())),
        _ => false,
    }
}

/// Wrong shares of the lowest mean, of more and more repeats until there are no more than `goal`.
fn ladder(race: &Race, salt: u64, goal: f64) -> Vec<Wrong> {
    let mut sums: Vec<(Noise, Vec<f64>)> =
        (0..TRIALS as u64).map(|at| (Noise::new(((salt + 500) << 32) + at), vec![0.0; race.truth.len()])).collect();
    let (mut found, mut before): (Vec<Wrong>, u32) = (Vec::new(), 0);
    for repeats in rungs() {
        for (noise, sums) in &mut sums {
            for _ in before..repeats {
                add_round(race, noise, sums);
            }
        }
        let named_wrong = |(_, sums): &(Noise, Vec<f64>)| race.behind(lowest(sums)) > 0.0;
        found.push(Wrong { repeats, share: share(&sums, named_wrong) });
        before = repeats;
        if repeats >= FIXED[3] && found.iter().any(|wrong| wrong.share <= goal) {
            break;
        }
    }
    found
}

/// What a round does to all alike cancels in the order of the means.
fn add_round(race: &Race, noise: &mut Noise, sums: &mut [f64]) {
    for (target, sum) in sums.iter_mut().enumerate() {
        *sum += race.draw(target, noise);
    }
}

/// 3, 10, 20, 40, 60, 80, 120, 160, 240, 320, ...
fn rungs() -> impl Iterator<Item = u32> {
    let doubling = std::iter::successors(Some(40), |rung| Some(rung * 2)).flat_map(|rung| [rung, rung * 3 / 2]);
    FIXED[..3].iter().copied().chain(doubling).take_while(|rung| *rung <= MOST)
}

fn lowest(sums: &[f64]) -> usize {
    (0..sums.len()).min_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap_or(0)
}

/// The share of cells that the race takes, of the number that the lowest mean needs to be as seldom
/// wrong, for each way to count what is wrong; then the same for the most wrong shares that the
/// race's trials allow (one standard error and one trial above).
fn saving(name: &str, wrongs: [f64; 2], cells: f64, fixed: &[Wrong]) -> String {
    let at_most = |goal: f64| fixed.iter().find(|fixed| fixed.share <= goal);
    let said = |found: Option<&Wrong>| match found {
        Some(found) => (found.repeats.to_string(), format!("{:.2}", cells / f64::from(found.repeats * 8))),
        None => (format!("over {MOST}"), format!("under {:.2}", cells / f64::from(MOST * 8))),
    };
    let counted = wrongs.map(|wrong| {
        let (repeats, share) = said(at_most(wrong));
        let doubtful = wrong + share_error(wrong, TRIALS) + 1.0 / TRIALS as f64;
        let (_, at_worst) = said(at_most(doubtful));
        format!("{:.2} | {repeats} | {share} | {at_worst}", 100.0 * wrong)
    });
    format!("| {name} | {cells:.0} | {} |", counted.join(" | "))
}
