//! What docs/statistics.md promises of intervals, looks and races, simulated through the code of
//! real runs and reports.
//!
//! `cargo test` does few repetitions with bounds as wide as so few ask for: 3.5 standard errors,
//! which a right program leaves once in four thousand times; seeds are fixed. `make
//! test-statistics` does as many as the tables were made of.

use crate::simulated::habits::{Followed, HABITS, Habit, follow, truths};
use crate::simulated::noise::{FIELDS, Field, Noise, PAIRS, Pair, Side, replications, share_error};
use crate::simulated::{Race, mean, plan, play, report, share, trials};
use pickfs_core::journal::{Folded, StopReason};
use pickfs_core::plan::Stop;
use pickfs_host::analysis::{Comparison, VerdictKind, Warning};
use pickfs_host::run::rehearse;
use pickfs_stats::{paired_ratio, signed_rank_k};
use std::fmt::Write;

/// A simulated share may differ from what it should be by at most this many standard errors.
const ERRORS: f64 = 3.5;

/// A table for docs/statistics-tables.md, and what in it is out of bounds.
struct Table {
    text: String,
    wrong: Vec<String>,
}

impl Table {
    fn new(title: &str, head: &str) -> Table {
        let columns = head.matches('|').count().saturating_sub(1);
        Table { text: format!("\n{title}\n\n{head}\n|{}\n", "---|".repeat(columns)), wrong: Vec::new() }
    }

    fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }

    /// Prints it in one go, because tests run in parallel.
    fn finish(self) {
        println!("{}", self.text);
        assert!(self.wrong.is_empty(), "{}\n{}", self.text, self.wrong.join("\n"));
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// A share of `count` trials that should be at least so much.
fn is_at_least(share: f64, least: f64, count: usize) -> bool {
    share >= least - ERRORS * share_error(least, count)
}

fn is_at_most(share: f64, most: f64, count: usize) -> bool {
    share <= most + ERRORS * share_error(most, count)
}

// ---------------------------------------------------------------- one pair, a fixed number of
// rounds

/// Symmetric differences are covered exactly as often as counted out; of unlike sides no less than
/// 93 %.
#[test]
fn intervals_of_pairs_cover_what_they_say() {
    let count = replications(500, 10_000);
    let rounds = [6, 8, 10, 15, 20, 30];
    let head = rounds.map(|n| format!(" {n} |")).concat();
    let mut table = Table::new("Coverage of 95 % intervals, in %, by rounds", &format!("| noise |{head}"));
    let exact = |n: usize| signed_rank_k(n, 0.05).expect("enough rounds").1;
    table.row(&[vec!["exact level".to_string()], rounds.map(|n| percent(exact(n))).to_vec()].concat());
    for (at, pair) in PAIRS.into_iter().enumerate() {
        let mut row = vec![pair.name.to_string()];
        for n in rounds {
            let centre = pair.centre();
            let held = trials(count, (at * 100 + n) as u64, |seed| covers(pair, n, centre, seed));
            let covered = share(&held, |held| *held);
            let fits = if pair.is_symmetric() {
                (covered - exact(n)).abs() <= ERRORS * share_error(exact(n), count)
            } else {
                is_at_least(covered, 0.93, count)
            };
            table.expect(fits, || format!("{}, {n} rounds: {}", pair.name, percent(covered)));
            row.push(percent(covered));
        }
        table.row(&row);
    }
    table.finish();
}

fn covers(pair: Pair, n: usize, centre: f64, seed: u64) -> bool {
    let mut noise = Noise::new(seed);
    let truth = 1.05f64.ln();
    let logs: Vec<f64> = (0..n).map(|_| truth + pair.draw(&mut noise)).collect();
    let interval = paired_ratio(&logs, 0.95).and_then(|estimate| estimate.interval);
    interval.is_some_and(|(low, high)| low.ln() <= truth + centre && truth + centre <= high.ln())
}

// ---------------------------------------------------------------- one pair, looks that decide when
// to stop

/// What a run of two targets came to.
struct Pairing {
    covers: bool,
    rounds: u32,
    end: Option<StopReason>,
}

/// Plays a run of two targets of this true ratio to its end.
fn pairing(pair: Pair, log_ratio: f64, centre: f64, stop: Stop, seed: u64) -> Pairing {
    let mut noise = Noise::new(seed);
    let (mut shared, mut round) = (0.0, 0);
    let folded = play(&plan(&["b".to_string(), "a".to_string()], false, stop, seed), |cell| {
        if cell.round != round {
            (round, shared) = (cell.round, shared + 0.01 * noise.normal());
        }
        let is_first = cell.target.name == "a";
        let side = if is_first { log_ratio + pair.first.draw(&mut noise) } else { pair.second.draw(&mut noise) };
        shared + side
    });
    let (low, high) = against(&folded).and_then(|a| a.estimate.interval).expect("eight rounds have an interval");
    let truth = log_ratio + centre;
    let last = folded.looks.last().expect("a look ends the run");
    Pairing { covers: low.ln() <= truth && truth <= high.ln(), rounds: last.round, end: last.end }
}

/// The comparison of the second target with the first.
fn against(folded: &Folded) -> Option<Comparison> {
    report(folded).works.pop()?.phases.swap_remove(0).rows.swap_remove(1).against
}

fn variance(side: Side) -> f64 {
    match side {
        Side::Normal(sd) => sd.powi(2),
        Side::LogNormal(scale) => scale.powi(2) * 0.25f64.exp() * 0.25f64.exp_m1(),
        Side::Skew(mean) => mean.powi(2),
        // It has none; this is the scale that the reference simulation took.
        Side::T2(scale) => (3.0 * scale).powi(2) / 2.0,
        Side::Modes { sd, share, by } => sd.powi(2) + share * (1.0 - share) * by.powi(2),
    }
}

/// Standard deviation of the difference.
fn spread(pair: Pair) -> f64 {
    (variance(pair.first) + variance(pair.second)).sqrt()
}

/// Half-widths asked for, in standard deviations of the pair.
const GOALS: [f64; 3] = [0.35, 0.7, 1.4];

/// Intervals made at 97 % at each look cover the truth in at least 94 %, and are reported as 95 %.
#[test]
fn intervals_cover_when_precision_stops_the_run() {
    let count = replications(150, 10_000);
    let head = GOALS.map(|h| format!(" {h} sd: coverage | rounds | reached |")).concat();
    let title = "Runs of two targets that stop at a precision: coverage in %, mean rounds, goal reached in %";
    let mut table = Table::new(title, &format!("| noise |{head}"));
    for (at, pair) in PAIRS.into_iter().enumerate() {
        let mut row = vec![pair.name.to_string()];
        let centre = pair.centre();
        for (number, goal) in GOALS.into_iter().enumerate() {
            let stop = Stop { precision: Some((goal * spread(pair)).exp_m1()), ..Stop::default() };
            let salt = (1000 + at * 10 + number) as u64;
            let runs = trials(count, salt, |seed| pairing(pair, 1.05f64.ln(), centre, stop, seed));
            let (covered, rounds) = (share(&runs, |run| run.covers), mean(&runs, |run| f64::from(run.rounds)));
            table.expect(is_at_least(covered, 0.94, count), || {
                format!("{}, {goal} sd: {} covered", pair.name, percent(covered))
            });
            if (pair.name, goal) == ("normal1%", 0.7) {
                table.expect((rounds / 20.2 - 1.0).abs() <= 0.1, || format!("{rounds} rounds, not 20.2 in the mean"));
            }
            let reached = share(&runs, |run| run.end == Some(StopReason::Precise));
            row.extend([percent(covered), format!("{rounds:.1}"), percent(reached)]);
        }
        table.row(&row);
    }
    table.finish();
}

/// Those made at 98.4 %.
#[test]
fn intervals_cover_when_a_decision_stops_the_run() {
    let count = replications(150, 10_000);
    let ratios = [1.0, 1.02, 1.05, 1.2];
    let head = ratios.map(|ratio| format!(" {ratio:.2}: coverage | rounds | decided |")).concat();
    let title = "Runs of two targets that stop at a decision, by true ratio: coverage in %, mean rounds, decided in %";
    let mut table = Table::new(title, &format!("| noise |{head}"));
    for (at, pair) in PAIRS.into_iter().enumerate() {
        let mut row = vec![pair.name.to_string()];
        let centre = pair.centre();
        for (number, ratio) in ratios.into_iter().enumerate() {
            let salt = (2000 + at * 10 + number) as u64;
            let runs = trials(count, salt, |seed| pairing(pair, f64::ln(ratio), centre, Stop::default(), seed));
            let covered = share(&runs, |run| run.covers);
            table.expect(is_at_least(covered, 0.94, count), || {
                format!("{}, ratio {ratio}: {} covered", pair.name, percent(covered))
            });
            let rounds = mean(&runs, |run| f64::from(run.rounds));
            let decided = share(&runs, |run| run.end == Some(StopReason::Decided));
            row.extend([percent(covered), format!("{rounds:.1}"), percent(decided)]);
        }
        table.row(&row);
    }
    table.finish();
}

// ---------------------------------------------------------------- many targets

/// Pairs of 40 rounds show a difference of this many standard deviations with 80 % power at 95 %.
const SEEN_AT_40: f64 = 0.45;

/// Ties at the front, then targets from 1 % slower on, and last the one that must be thrown out.
fn field_of(count: usize, best: usize, field: Field) -> Race {
    let steps = [0.01, 0.02, 0.03, 0.05, 0.10, 0.25];
    let mut truth: Vec<f64> = vec![0.0; best];
    truth.extend((best..count).map(|at| f64::ln_1p(steps[(at - best) % steps.len()])));
    if best < count {
        truth[count - 1] = 4.0 * SEEN_AT_40 * (variance(field.even) + variance(field.odd)).sqrt();
    }
    Race { truth, field, odd: 0.0, stop: Stop::default() }
}

/// In 95 % of runs the pick is no more slower than its bound, and no true best is called slower.
#[test]
fn races_pick_within_their_bound_and_call_no_best_slower() {
    let count = replications(30, 1000);
    let head = "| noise | targets | tied best | pick within its bound % | a best called slower % | one good % | \
                several good % | undecided % | bound % | rounds | cells |";
    let mut table = Table::new("Races with a hidden duplicate, under drift", head);
    for (at, field) in FIELDS.into_iter().enumerate() {
        for (number, (targets, best)) in [(2, 1), (2, 2), (8, 1), (8, 3), (20, 1), (20, 3)].into_iter().enumerate() {
            let race = field_of(targets, best, field);
            let runs = trials(count, (3000 + at * 10 + number) as u64, |seed| race.play(seed));
            let within = share(&runs, |run| race.behind(run.pick).exp_m1() <= run.bound + 1e-9);
            let wronged = share(&runs, |run| race.best().iter().any(|best| run.slower.contains(best)));
            let what = || format!("{}, {best} best of {targets}", field.name);
            table.expect(is_at_least(within, 0.95, count), || format!("{}: within {}", what(), percent(within)));
            table.expect(is_at_most(wronged, 0.05, count), || format!("{}: wronged {}", what(), percent(wronged)));
            let kinds = [VerdictKind::Pick, VerdictKind::Tie, VerdictKind::Unresolved];
            let kinds = kinds.map(|kind| percent(share(&runs, |run| run.kind == kind)));
            let bound = format!("{:.1}", 100.0 * mean(&runs, |run| run.bound));
            let rounds = format!("{:.1}", mean(&runs, |run| f64::from(run.rounds)));
            let cells = format!("{:.0}", mean(&runs, |run| run.cells as f64));
            let names = [field.name.to_string(), targets.to_string(), best.to_string()];
            let shares = [percent(within), percent(wronged)];
            table.row(&[names.to_vec(), shares.to_vec(), kinds.to_vec(), vec![bound, rounds, cells]].concat());
        }
    }
    table.finish();
}

// ---------------------------------------------------------------- bounds, as a reader sees them

/// The number of targets, and of runs of them in short and in long tests.
const FOLLOWED: [(usize, usize, usize); 4] = [(2, 40, 1000), (5, 20, 1000), (10, 0, 400), (20, 0, 400)];

/// In 95 % of runs no bound of any target is false after any look until the run ends, in 90 % where
/// targets depend on their own past. A sawtooth as long as the run is no one's noise: only the
/// sentence that ends the run holds in 90 %.
#[test]
fn bounds_hold_as_a_reader_sees_them() {
    let head = "| noise | targets | no bound false until the end % | to round 40 % | in the last report % | the pick's % | \
                decided % | forgot % | rounds |";
    let mut table = Table::new("Bounds as a reader sees them: the worst of four truths", head);
    for (at, (name, habit)) in HABITS.into_iter().enumerate() {
        for (targets, few, many) in FOLLOWED {
            let count = replications(few, many);
            let follow =
                |truth: &Vec<f64>| trials(count, (7000 + at * 100 + targets) as u64, |seed| follow(habit, truth, seed));
            let runs: Vec<Vec<Followed>> =
                if count > 0 { truths(targets, habit.effect()).iter().map(follow).collect() } else { continue };
            let worst = |is_false: fn(&Followed) -> bool| {
                runs.iter().map(|runs| 1.0 - share(runs, is_false)).fold(1.0, f64::min)
            };
            let [any, to_40, at_end, pick] =
                [worst(|run| run.any), worst(|run| run.any_to_40), worst(|run| run.at_end), worst(|run| run.pick)];
            let all: Vec<&Followed> = runs.iter().flatten().collect();
            let forgot = share(&all, |run| run.forgot);
            let shares = [any, to_40, at_end, pick, share(&all, |run| run.is_decided), forgot].map(percent);
            let rounds = format!("{:.1}", mean(&all, |run| f64::from(run.rounds)));
            table.row(&[vec![name.to_string(), targets.to_string()], shares.to_vec(), vec![rounds]].concat());
            let (held, least) = match habit {
                Habit::Saw(rounds) if rounds > 20.0 => (pick, 0.9),
                Habit::Own(kept) if kept > 0.5 => (any, 0.9),
                _ => (any, 0.95),
            };
            table.expect(is_at_least(held, least, count), || format!("{name}, {targets}: {}", percent(held)));
        }
    }
    table.finish();
}

// ---------------------------------------------------------------- drift

/// What the machine does to all cells alike, by the number of the cell in the run.
type Change = fn(cells: usize, noise: &mut Noise) -> Vec<f64>;

const CHANGES: [(&str, Change); 6] = [
    ("none", |cells, _| vec![0.0; cells]),
    ("linear 5 %", |cells, _| linear(cells, 0.05)),
    ("linear 20 %", |cells, _| linear(cells, 0.20)),
    ("random walk, 1 % a cell", |cells, noise| walk(cells, 1.0, 0.0, noise)),
    ("AR(1), 0.9", |cells, noise| walk(cells, 0.9, 0.01 / f64::sqrt(1.0 - 0.81), noise)),
    ("one step of 10 %", |cells, noise| {
        let step = (noise.uniform() * (cells - 1) as f64).ceil() as usize;
        (0..cells).map(|at| if at >= step { 0.10 } else { 0.0 }).collect()
    }),
];

fn linear(cells: usize, by: f64) -> Vec<f64> {
    (0..cells).map(|at| by * at as f64 / cells as f64).collect()
}

/// Each value keeps a part of the one before.
fn walk(cells: usize, kept: f64, spread: f64, noise: &mut Noise) -> Vec<f64> {
    let first = spread * noise.normal();
    std::iter::successors(Some(first), |last| Some(kept * last + 0.01 * noise.normal())).take(cells).collect()
}

/// Two targets that are the same are found different no more often than the level says, whatever
/// the machine does meanwhile: each round has its own random order.
#[test]
fn drift_makes_no_differences() {
    let count = replications(400, 10_000);
    let exact = 1.0 - signed_rank_k(10, 0.05).expect("enough rounds").1;
    let title = format!("Two same targets found different, in %; exact level {}, noise 1 %", percent(exact));
    let mut table = Table::new(&title, "| drift | 10 rounds | looks, 0.7 sd asked for | mean rounds |");
    let fixed = Stop { rounds: Some(10), ..Stop::default() };
    let looks = Stop { precision: Some((0.7 * spread(PAIRS[0])).exp_m1()), ..Stop::default() };
    for (at, (name, change)) in CHANGES.into_iter().enumerate() {
        let of = |stop: Stop, salt: u64| trials(count, salt + at as u64, |seed| found_different(change, stop, seed));
        let (once, looked) = (of(fixed, 4000), of(looks, 4010));
        let shares = [&once, &looked].map(|runs| share(runs, |(different, _)| *different));
        table.expect(is_at_most(shares[0], exact, count), || format!("{name}: {}", percent(shares[0])));
        table.expect(is_at_most(shares[1], 0.05, count), || format!("{name}, looks: {}", percent(shares[1])));
        let rounds = mean(&looked, |(_, rounds)| f64::from(*rounds));
        table.row(&[name.to_string(), percent(shares[0]), percent(shares[1]), format!("{rounds:.1}")]);
    }
    table.finish();
}

/// Whether the interval leaves 1 out, and after how many rounds.
fn found_different(change: Change, stop: Stop, seed: u64) -> (bool, u32) {
    let mut noise = Noise::new(seed);
    let changes = change(2 * stop.most_rounds() as usize, &mut noise);
    let mut at = 0;
    let folded = play(&plan(&["b".to_string(), "a".to_string()], false, stop, seed), |_| {
        at += 1;
        changes[at - 1] + 0.01 * noise.normal()
    });
    let (low, high) = against(&folded).and_then(|a| a.estimate.interval).expect("eight rounds have an interval");
    (low > 1.0 || high < 1.0, folded.looks.last().expect("a look ends the run").round)
}

// ---------------------------------------------------------------- what is one observation

/// Ten measurements of one cell are one observation of its round.
#[test]
fn repeats_inside_a_cell_are_no_rounds() {
    for (rounds, kind) in [(1, VerdictKind::TooFewRounds), (2, VerdictKind::TooFewRounds), (8, VerdictKind::Pick)] {
        let report = report(&with_repeats(rounds, 10));
        let against = report.works[0].phases[0].rows[1].against.as_ref().expect("two targets with results");
        let estimate = &against.estimate;
        assert_eq!((estimate.n, estimate.interval.is_some()), (rounds as usize, rounds > 2), "{rounds} rounds");
        assert_eq!(report.works[0].verdict.kind, kind, "{rounds} rounds");
    }
}

/// Two targets that are 20 % apart, each cell measured several times.
fn with_repeats(rounds: u32, repeats: usize) -> Folded {
    let stop = Stop { rounds: Some(rounds), ..Stop::default() };
    let mut noise = Noise::new(5);
    rehearse(&plan(&["b".to_string(), "a".to_string()], false, stop, 1), |cell| {
        let level = if cell.target.name == "a" { 1.2 } else { 1.0 };
        let mut once = || ("write".to_string(), 1e9 * level * (0.01 * noise.normal()).exp());
        Some((0..repeats).map(|_| once()).collect())
    })
    .expect("a rehearsal touches nothing that could fail")
}

// ---------------------------------------------------------------- what a verdict must not depend
// on

/// A time by target and round, the same for every caller and in any order of calls.
fn time_of(race: &Race, target: usize, round: u32, seed: u64) -> f64 {
    let mut noise = Noise::new(seed ^ ((target as u64) << 40) ^ (u64::from(round) << 48));
    race.draw(target, &mut noise)
}

/// How a plan puts the same targets: in which order (the first is the reference), under which
/// names, in which unit.
#[derive(Clone, Copy)]
struct Dress<'a> {
    order: &'a [usize],
    prefix: &'a str,
    unit: f64,
}

/// Kind of the verdict, rounds, and the best by their own numbers.
///
/// None are named where the report says that rounds depend on one another. Looks before that was
/// seen are forgotten then: a target that has left since has too few rounds to be beaten again, and
/// only the reference, which stays, has more.
fn verdict(race: &Race, dress: &Dress, seed: u64) -> (VerdictKind, u32, Vec<usize>) {
    // Names sort the other way round than numbers do.
    let names: Vec<String> = dress.order.iter().map(|target| format!("{}{}", dress.prefix, 99 - target)).collect();
    let number = |name: &str| 99 - name[dress.prefix.len()..].parse::<usize>().expect("a number follows");
    let folded = play(&plan(&names, false, race.stop, seed), |cell| {
        time_of(race, number(&cell.target.name), cell.round, seed) + dress.unit.ln()
    });
    let (report, rounds) = (report(&folded), folded.looks.last().expect("a look ends the run").round);
    let verdict = &report.works[0].verdict;
    let mut best: Vec<usize> = verdict.best.iter().map(|at| number(&report.targets[*at].name)).collect();
    best.sort_unstable();
    if report.doubts.iter().any(|doubt| matches!(doubt, Warning::Dependent { .. })) {
        best.clear();
    }
    (verdict.kind, rounds, best)
}

/// The order in which a plan has its targets, which of them is the reference, what they are called
/// and the unit of time are nothing to a verdict, whether beaten targets leave or not; see
/// [`verdict`] for the exception.
#[test]
fn verdicts_depend_on_times_alone() {
    let count = replications(20, 500);
    let own = Dress { order: &[0, 1, 2, 3, 4, 5], prefix: "", unit: 1.0 };
    let others = [
        Dress { order: &[0, 5, 4, 3, 2, 1], prefix: "", unit: 1.0 },
        Dress { prefix: "file system ", ..own },
        Dress { order: &[0, 2, 3, 1, 5, 4], prefix: "x", unit: 1e3 },
        Dress { unit: 1e-6, ..own },
        Dress { order: ORDERS[5], ..own },
        Dress { order: ORDERS[2], ..own },
        Dress { order: ORDERS[1], prefix: "other ", unit: 1e3 },
    ];
    for (at, field) in FIELDS.into_iter().enumerate() {
        let truth = [0.0, 0.0, 0.01, 0.03, 0.10, 0.40].to_vec();
        let race = Race { truth, field, odd: 0.0, stop: Stop::default() };
        let all_stay = Race { stop: Stop { race: false, ..race.stop }, ..race.clone() };
        for race in [race, all_stay] {
            let differing = trials(count, 5000 + at as u64, |seed| {
                let wanted = verdict(&race, &own, seed);
                let got = others.iter().map(|dress| verdict(&race, dress, seed)).enumerate();
                got.filter(|(_, got)| *got != wanted).map(|(dress, got)| (seed, wanted.clone(), dress, got)).next()
            });
            let differing: Vec<_> = differing.into_iter().flatten().collect();
            assert!(differing.is_empty(), "{}: {} of {count}, such as {:?}", field.name, differing.len(), differing[0]);
        }
    }
}

/// Orders of six targets: which comes first.
const ORDERS: [&[usize]; 6] = [
    &[0, 1, 2, 3, 4, 5],
    &[1, 0, 2, 3, 4, 5],
    &[2, 1, 0, 3, 4, 5],
    &[3, 4, 5, 0, 1, 2],
    &[4, 3, 2, 1, 0, 5],
    &[5, 1, 2, 3, 4, 0],
];
