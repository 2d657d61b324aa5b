//! What an audit of the sentences found false, each held on its own rounds: sums, references,
//! places, weights, times of zero, rounds that are missing. crates/pickfs/tests/deep/equals.rs has
//! runs of equals, crates/pickfs/tests/compare.rs has comparisons of two runs.

use crate::simulated::noise::{Noise, Side, replications, share_error};
use crate::simulated::{plan, play, report, share, trials};
use pickfs_core::journal::{Begin, End, Folded, Outcome, Record, StopReason};
use pickfs_core::plan::{Amounts, Cell, Plan, Stop, VerdictTerm};
use pickfs_host::analysis::{Model, Panel, Row, VerdictKind};
use pickfs_host::run::rehearse;
use pickfs_host::wording::ranking::ranking;

fn fixed(rounds: u32) -> Stop {
    Stop { rounds: Some(rounds), ..Stop::default() }
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| name.to_string()).collect()
}

fn panel(model: &Model) -> &Panel {
    model.overall.as_ref().map_or(&model.works[0], |overall| &overall.work).phases.first().expect("times")
}

fn row<'a>(model: &'a Model, name: &str) -> &'a Row {
    panel(model).rows.iter().find(|row| model.targets[row.target].name == name).expect("a row")
}

// ---------------------------------------------------------------- runs are not given up

#[test]
fn no_run_is_given_up() {
    let ends = trials(20, 701, |seed| {
        let mut noise = Noise::new(seed);
        let folded = play(&plan(&names(&["a", "b"]), true, Stop::default(), seed), |_| 0.05 * noise.normal());
        let last = folded.looks.last().expect("a look ends the run");
        (last.end, last.round)
    });
    let is_sound = |(end, round): &(Option<StopReason>, u32)| *end == Some(StopReason::Decided) || *round == 40;
    assert!(ends.iter().all(is_sound), "{ends:?}");
    assert!(ends.iter().any(|(end, _)| *end == Some(StopReason::Decided)), "{ends:?}");
}

// ---------------------------------------------------------------- times that add

/// Typically 5 % faster than `a`, and in one round of ten three times as slow: in the mean 14 %
/// slower.
fn rarely_slow(seed: u64, stop: Stop, adds: bool) -> Folded {
    let mut plan = plan(&names(&["a", "b"]), true, stop, seed);
    if adds {
        plan.verdict.amounts = Amounts::Counts;
        plan.verdict.parts = vec![VerdictTerm { work: "tree".into(), phase: None, amount: 20.0 }];
    }
    let mut noise = Noise::new(seed);
    play(&plan, |cell| {
        let slow = noise.uniform() <= 0.1;
        let level = if cell.target.name == "b" { 0.95f64.ln() + if slow { 3f64.ln() } else { 0.0 } } else { 0.0 };
        level + 0.02 * noise.normal()
    })
}

fn sum(folded: &Folded, target: &str) -> f64 {
    let cells = folded.cells.iter().filter(|cell| cell.target == target);
    cells.flat_map(|cell| folded.samples(cell)).map(|(.., value)| value).sum()
}

/// Where no slow round has come, nothing contradicts the pick: how often that happens is printed,
/// and docs/statistics.md says it.
#[test]
fn a_pick_never_goes_against_the_sums_without_saying_so() {
    for (at, stop) in [fixed(20), fixed(40), Stop::default()].into_iter().enumerate() {
        let count = replications(24, 500);
        let found = trials(count, 710 + at as u64, |seed| {
            let folded = rarely_slow(seed, stop, true);
            let model = report(&folded);
            let overall = &model.overall.as_ref().expect("counts").work;
            let race = overall.phases[0].race.as_ref().expect("rounds");
            let (pick, headline) = (model.targets[race.pick].name.as_str(), overall.headline(&model));
            let ratio = sum(&folded, "b") / sum(&folded, "a");
            let behind = if pick == "b" { ratio } else { 1.0 / ratio };
            let says = headline.contains("rounds added up") && overall.verdict.kind == VerdictKind::Unresolved;
            let is_wrong = pick == "b" && overall.verdict.kind != VerdictKind::Unresolved;
            ((behind > 1.03, says, headline), is_wrong)
        });
        let wrong = share(&found, |(_, wrong)| *wrong);
        println!("{stop:?}: picked for sure against the true sums in {:.1} %", 100.0 * wrong);
        let found: Vec<_> = found.into_iter().map(|(found, _)| found).collect();
        let silent: Vec<&String> =
            found.iter().filter(|(against, says, _)| *against && !says).map(|(.., line)| line).collect();
        assert!(silent.is_empty(), "{silent:?}");
        assert!(at == 2 || found.iter().any(|(against, ..)| *against), "no run was put to the test");
    }
}

/// The ratio of the sums is next to the ratio of typical rounds where times add, and only there.
#[test]
fn sums_are_shown_where_times_add() {
    let (added, not) = (report(&rarely_slow(4711, fixed(40), true)), report(&rarely_slow(4711, fixed(40), false)));
    let overall = added.overall.as_ref().expect("counts");
    let shown = overall.sums_shown(&added);
    let ratio = sum(&rarely_slow(4711, fixed(40), true), "b") / sum(&rarely_slow(4711, fixed(40), true), "a");
    assert!(shown.starts_with(&format!("all rounds added up, relative to a: b {ratio:.2} (")), "{shown}, {ratio}");
    assert!(!not.headlines().concat().contains("added up") && not.overall.is_none());
    assert_eq!(not.works[0].verdict.kind, VerdictKind::Pick, "{:?}", not.headlines());
}

// ---------------------------------------------------------------- the reference

/// The same times of three targets and of a copy of each, whichever is the reference.
fn with_reference(truth: &[f64; 3], sides: &[Side; 3], reference: usize, seed: u64) -> Model {
    let order: Vec<usize> = (0..3).map(|at| (reference + at) % 3).collect();
    let names: Vec<String> = order.iter().map(usize::to_string).collect();
    let folded = play(&plan(&names, true, fixed(20), seed), |cell| {
        let (target, copy) = if cell.target.duplicate {
            (reference, 7)
        } else {
            (cell.target.name.parse::<usize>().expect("a number"), 0)
        };
        let mut noise = Noise::new(seed ^ ((target as u64 + 1 + copy) << 32) ^ (u64::from(cell.round) << 40));
        noise.uniform();
        truth[target] + sides[target].draw(&mut noise)
    });
    report(&folded)
}

/// Pick, bounds by target, and whether the run is decided.
fn stands(model: &Model) -> (usize, [f64; 3], bool) {
    let race = panel(model).race.as_ref().expect("twenty rounds");
    let number = |at: usize| model.targets[at].name.parse::<usize>().expect("a number");
    let bound = |target: usize| {
        let at = (0..model.targets.len()).find(|at| !model.targets[*at].duplicate && number(*at) == target);
        race.regret[at.expect("it took part")]
    };
    let is_decided = matches!(model.works[0].verdict.kind, VerdictKind::Pick | VerdictKind::Tie);
    (number(race.pick), [0, 1, 2].map(bound), is_decided)
}

/// Whatever the reference, each run has a pick; by what the others show, it is within the bound
/// that they have or within what matters, and a run that is decided under one is under all. But
/// each reference has its own copy, which is another sample of the noise: one in a thousand
/// contradicts by chance, and few more resemble themselves so much that all bounds are wider.
#[test]
fn the_reference_changes_no_pick_beyond_its_bound() {
    let normal = |sds: [f64; 3]| sds.map(Side::Normal);
    let outliers = Side::Modes { sd: 0.03, share: 0.1, by: 3f64.ln() };
    let cases = [
        ("2, 2, 2 %", [1.0, 1.0, 1.1], normal([0.02; 3])),
        ("3, 3, 3 %", [1.0, 1.0, 1.1], normal([0.03; 3])),
        ("3, 3, 3 %, further", [1.0, 1.05, 1.1], normal([0.03; 3])),
        ("1, 1, 8 %", [1.0, 1.08, 1.4], normal([0.01, 0.01, 0.08])),
        ("1, 1, 8 %, closer", [1.0, 1.01, 1.1], normal([0.01, 0.01, 0.08])),
        ("outliers", [1.0, 1.05, 1.1], [outliers; 3]),
    ];
    let matters = 0.03;
    println!("| noise | another pick % | beyond its bound % | by more than 1.5 points % | decided under one only % |");
    for (at, (name, truth, sides)) in cases.into_iter().enumerate() {
        let truth = truth.map(f64::ln);
        let runs = replications(25, 1000);
        let found = trials(runs, 720 + at as u64, |seed| {
            let all = [0, 1, 2].map(|reference| stands(&with_reference(&truth, &sides, reference, seed)));
            let others = || all.iter().flat_map(|one| all.iter().map(move |other| (one, other)));
            let beyond = others().map(|((pick, ..), (_, bounds, _))| bounds[*pick] - bounds_of(bounds).max(matters));
            let beyond = beyond.fold(0.0, f64::max);
            let another = others().any(|(one, other)| one.0 != other.0);
            let in_doubt = all.iter().any(|one| one.2) && !all.iter().all(|one| one.2);
            [another, beyond > 1e-9, beyond > matters / 2.0, in_doubt]
        });
        let shares = [0, 1, 2, 3].map(|which| share(&found, |run| run[which]));
        println!("| {name} | {} |", shares.map(|share| format!("{:.1}", 100.0 * share)).join(" | "));
        let rare = 0.01 + 3.5 * share_error(0.01, runs);
        assert!(shares[1] <= rare && shares[3] <= rare, "{name}: {shares:?}");
    }
}

/// The bound of the pick that goes by bounds alone.
fn bounds_of(bounds: &[f64; 3]) -> f64 {
    bounds.iter().copied().fold(f64::INFINITY, f64::min)
}

// ---------------------------------------------------------------- order and places

/// `b` is eliminated early, then the machine slows down: its own median is that of a fast machine.
/// With 4 % of noise, the interval of its three rounds would hold 1, and the places would rightly
/// be one.
#[test]
fn an_eliminated_target_is_shown_and_placed_by_the_rounds_it_shares() {
    let mut noise = Noise::new(732);
    let folded = play(&plan(&names(&["a", "b", "c"]), true, Stop::default(), 5), |cell| {
        let level: f64 = match cell.target.name.as_str() {
            "b" => 1.31,
            "c" => 1.005,
            _ => 1.0,
        };
        level.ln() + if cell.round > 3 { 0.4 } else { 0.0 } + 0.02 * noise.normal()
    });
    let model = report(&folded);
    let [a, b] = ["a", "b"].map(|name| row(&model, name).figure.as_ref().expect("times"));
    let ratio = row(&model, "b").against.as_ref().expect("shared rounds").estimate.ratio;
    assert!(b.rounds < a.rounds && b.median < a.median, "the machine slowed down: {a:?}, {b:?}");
    assert!((b.centre / a.centre - ratio).abs() < 1e-9 && (1.2..1.4).contains(&ratio), "{a:?}, {b:?}, {ratio}");
    assert!(b.low * b.scale <= b.centre && b.centre <= b.high * b.scale, "{b:?}");
    let places = ranking(&[model]).swap_remove(0).places;
    assert_eq!(places.last().map(|place| place.names.clone()), Some(names(&["b"])), "{places:?}");
}

/// By place, the numbers of the targets.
fn places(model: Model) -> Vec<Vec<usize>> {
    let number = |name: &String| name.parse::<usize>().expect("a number");
    let found = ranking(&[model]).swap_remove(0).places;
    found.iter().map(|place| place.names.iter().map(number).collect()).collect()
}

fn ladder(steps: &[f64], sd: f64, seed: u64) -> Model {
    let names: Vec<String> = (0..steps.len()).map(|at| at.to_string()).collect();
    let mut noise = Noise::new(seed);
    report(&play(&plan(&names, false, fixed(20), seed), |cell| {
        steps[cell.target.name.parse::<usize>().expect("a number")].ln_1p() + sd * noise.normal()
    }))
}

#[test]
fn no_two_targets_have_different_places_where_their_interval_holds_one() {
    let runs = replications(20, 400);
    let found = trials(runs, 740, |seed| {
        let model = ladder(&[0.0, 0.02, 0.04, 0.06, 0.08], 0.03, seed);
        let interval = |a: usize, b: usize| {
            let row = panel(&model).rows.iter().find(|row| row.target == a).expect("a row");
            row.compared_with(b).and_then(|found| found.estimate.interval).expect("twenty rounds")
        };
        let all: Vec<(usize, usize)> =
            (0..5).flat_map(|a| (0..5).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
        let holds: Vec<(usize, usize)> =
            all.into_iter().filter(|(a, b)| interval(*a, *b).0 <= 1.0 && interval(*a, *b).1 >= 1.0).collect();
        let places = places(model);
        let place = |target: usize| places.iter().position(|place| place.contains(&target));
        // Among the best, only the pick is known to be faster than all of the later places.
        let is_best = |target: usize| place(target) == Some(0) && target != places[0][0];
        let is_known = |(a, b): &(usize, usize)| !is_best(*a) && !is_best(*b);
        let wrong: Vec<_> = holds.into_iter().filter(is_known).filter(|(a, b)| place(*a) != place(*b)).collect();
        (places.len(), wrong)
    });
    assert!(found.iter().all(|(_, wrong)| wrong.is_empty()), "{found:?}");
    assert!(found.iter().any(|(places, _)| *places > 1), "no table has two places");
}

#[test]
fn equals_seldom_have_a_worst() {
    let runs = replications(40, 1000);
    let found = trials(runs, 750, |seed| places(ladder(&[0.0; 10], 0.03, seed)).len());
    let several = share(&found, |places| *places > 1);
    println!("ten equals: {:.1} % of {runs} tables have a second place", 100.0 * several);
    assert!(several <= 0.05 + 3.5 * share_error(0.05, runs), "{several}");
}

// ---------------------------------------------------------------- weights

/// Three equal targets and three works: noise alone must not make one of them the best under all
/// weights.
#[test]
fn weights_are_drawn_with_the_noise() {
    let runs = replications(30, 500);
    let largest = trials(runs, 760, |seed| {
        let mut plan = plan(&names(&["a", "b", "c"]), false, fixed(12), seed);
        let work = plan.works[0].clone();
        plan.works =
            ["one", "two", "three"].map(|name| pickfs_core::plan::Work { name: name.into(), ..work.clone() }).into();
        let mut noise = Noise::new(seed);
        let model = report(&play(&plan, |_| 0.05 * noise.normal()));
        let robustness = model.overall.as_ref().and_then(|overall| overall.robustness.as_ref()).expect("three works");
        robustness.shares.iter().map(|(_, share)| *share).fold(0.0, f64::max)
    });
    let sure = share(&largest, |share| *share > 0.9);
    println!("three equals: one has more than 90 % of the draws in {:.1} % of {runs} runs", 100.0 * sure);
    assert!(sure <= 0.15 + 3.5 * share_error(0.15, runs), "{sure}");
}

// ---------------------------------------------------------------- what is left out, and what is
// missing

#[test]
fn times_of_zero_are_said_to_be_left_out() {
    let folded = |zero: bool| {
        let mut noise = Noise::new(771);
        rehearse(&plan(&names(&["a", "b"]), false, fixed(12), 3), |cell: &Cell| {
            let is_lost = zero && cell.target.name == "b" && cell.round > 10;
            Some(vec![("write".to_string(), if is_lost { 0.0 } else { 1e9 * (0.01 * noise.normal()).exp() })])
        })
    };
    let said = |zero: bool| report(&folded(zero).expect("a rehearsal")).warnings().join("\n");
    assert!(said(true).contains("b has times of zero or less in 2 of 12 rounds"), "{}", said(true));
    assert!(!said(false).contains("zero"), "{}", said(false));
}

/// Skipped, not failed: such cells veto nothing.
#[test]
fn rounds_that_a_target_lacks_are_said() {
    let mut noise = Noise::new(781);
    let mut lacking = Folded::default();
    let plan: Plan = plan(&names(&["a", "b"]), false, fixed(12), 3);
    let whole = play(&plan, |_| 0.01 * noise.normal());
    lacking.take(Record::Run(Box::new(whole.run.clone().expect("a plan"))));
    for cell in &whole.cells {
        let (id, target, work) = (cell.id.clone(), cell.target.clone(), cell.work.clone());
        lacking.take(Record::Begin(Begin { cell: id.clone(), round: cell.round, target, work, at: String::new() }));
        let is_slow = cell.target == "b" && [3, 7, 8].contains(&cell.round);
        for (phase, metric, value) in whole.samples(cell).filter(|_| !is_slow) {
            let (cell, phase, metric) = (id.clone(), phase.to_string(), metric.to_string());
            lacking.take(Record::Sample(pickfs_core::journal::Sample { cell, phase, metric, value }));
        }
        if !is_slow {
            lacking.take(Record::End(End { cell: id, outcome: Outcome::Done, at: String::new() }));
        }
    }
    let said = report(&lacking).warnings().join("\n");
    assert!(said.contains("b lacks 3 of 12 rounds that other targets have"), "{said}");
    assert!(!report(&whole).warnings().join("\n").contains("lacks"));
}

/// With two equals of two modes each, medians often contradict the ratio; what is shown never does.
#[test]
fn shown_times_never_contradict_the_ratio_beside_them() {
    let found = trials(40, 790, |seed| {
        let mut noise = Noise::new(seed);
        let side = Side::Modes { sd: 0.01, share: 0.4, by: 0.1 };
        let model = report(&play(&plan(&names(&["a", "b"]), false, fixed(20), seed), |_| side.draw(&mut noise)));
        let [a, b] = ["a", "b"].map(|name| row(&model, name).figure.as_ref().expect("times"));
        let ratio = row(&model, "b").against.as_ref().expect("twenty rounds").estimate.ratio;
        let contradicts = |one: f64, other: f64| (other / one > 1.0) != (ratio > 1.0);
        (contradicts(a.median, b.median), contradicts(a.centre, b.centre))
    });
    assert!(found.iter().any(|(medians, _)| *medians), "the medians contradict nothing");
    assert!(found.iter().all(|(_, shown)| !shown), "{found:?}");
}
