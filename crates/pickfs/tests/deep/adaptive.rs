//! Runs that end when they know enough: what is measured, what the journal says of it, and what the
//! report makes of it must agree, whatever the noise of the machine lets a run decide.

use crate::common::{Lab, PATIENCE, not_run, unable};
use pickfs_core::journal::{Begin, End, Folded, Look, Outcome, Record, Sample, StopReason, fold_file};
use pickfs_core::plan::{Plan, order};
use pickfs_host::analysis as decide;
use pickfs_host::analysis::{self, HoleKind, Model, VerdictKind};
use pickfs_host::run::cells_of_rounds;
use pickfs_host::wording::history::eliminated_as;
use pickfs_stats::{ALPHA, FIRST_LOOK};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

const WORK: &str = "[[work]]\nworkload = \"meta.read\"\npasses = 16\n";

/// The reference `a`, and others that have this many percent more to read.
fn plan(lab: &Lab, more: &[(&str, u32)], stop: &str) -> String {
    let others: String = more.iter().map(|(name, percent)| lab.born_with(name, 100 + percent)).collect();
    format!("seed = 7\n{}{others}{WORK}[stop]\n{stop}", lab.born_with("a", 100))
}

fn plan_of(folded: &Folded) -> &Plan {
    &folded.run.as_ref().expect("a run").plan
}

/// The records of the journal, raw: what is there twice is seen twice.
fn records(lab: &Lab) -> Vec<Record> {
    let text = std::fs::read_to_string(lab.journal()).expect("the journal");
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

/// Everything that must hold of a run that is not under way, whatever was measured.
fn checked(lab: &Lab) -> (Folded, Model) {
    lab.assert_nothing_left();
    let folded = lab.folded();
    assert_cells_follow_from_looks(lab, &folded);
    assert_looks_follow_from_cells(lab, &folded);
    let model = analysis::model(&folded).expect("the report is made");
    assert_report_tells(&folded, &model);
    (folded, model)
}

/// Each target once in each round until it has left, and nothing else.
fn assert_cells_follow_from_looks(lab: &Lab, folded: &Folded) {
    let plan = plan_of(folded);
    let last = folded.looks.last().expect("a look").round;
    let wanted: Vec<String> = cells_of_rounds(plan, folded).take(last as usize).flatten().map(|cell| cell.id).collect();
    let ends: Vec<String> = records(lab)
        .into_iter()
        .filter_map(|record| if let Record::End(end) = record { Some(end.cell) } else { None })
        .collect();
    assert_eq!(ends, wanted, "in the order of the plan, each once");
    assert!(folded.cells.iter().all(|cell| cell.outcome == Some(Outcome::Done)));
}

/// Made again from what had been measured by then, each look says the same.
fn assert_looks_follow_from_cells(lab: &Lab, folded: &Folded) {
    let mut by_then = Folded::default();
    let mut seen = BTreeSet::new();
    for record in records(lab) {
        if let Record::Look(look) = &record {
            assert!(seen.insert(look.round), "two looks after {}", look.round);
            assert!(seen.last() == Some(&look.round), "looks out of order");
            // A budget that is used up makes a look where none is due, and may still find that all
            // is decided.
            let budget_used = look.end == Some(StopReason::Budget) || look_is_not_due(plan_of(folded), look.round);
            let again = decide::look(plan_of(folded), &by_then, look.round, budget_used);
            assert_eq!(Look { at: look.at.clone(), ..again }, *look);
        }
        by_then.take(record);
    }
    if plan_of(folded).stop.rounds.is_none() {
        let mut due = plan_of(folded).looks.rounds().filter(|look| Some(look) <= seen.last());
        assert!(due.all(|look| seen.contains(&look)), "{seen:?}");
    }
}

fn look_is_not_due(plan: &Plan, round: u32) -> bool {
    plan.stop.rounds.is_none() && !plan.looks.is_due(round)
}

fn assert_report_tells(folded: &Folded, model: &Model) {
    assert!(model.holes.iter().all(|hole| hole.kind != HoleKind::NotRun), "{:?}", model.holes);
    for look in &folded.looks {
        for leaving in &look.leaving {
            let why = eliminated_as(&leaving.why);
            let line = format!("{} was eliminated after {} rounds: {why}", leaving.target, look.round);
            assert!(model.course().contains(&line), "{line}: {:?}", model.course());
        }
    }
    let last = folded.looks.last().expect("a look");
    let kind = model.works[0].verdict.kind;
    if last.end == Some(StopReason::Decided) {
        assert!(matches!(kind, VerdictKind::Pick | VerdictKind::Tie), "{kind:?}");
        assert_eq!(best(model)[0], last.pick);
    }
    println!("{}: {:?} {kind:?} of {}", last.round, last.end, best(model).join(", "));
}

fn best(model: &Model) -> Vec<String> {
    model.works[0].verdict.best.iter().map(|target| model.targets[*target].name.clone()).collect()
}

fn ends(folded: &Folded) -> Vec<Option<StopReason>> {
    folded.looks.iter().map(|look| look.end).collect()
}

/// Takes up a run that is over: nothing is measured, and the report is given again.
fn assert_complete(lab: &Lab) {
    let before = std::fs::read(lab.journal()).expect("the journal");
    let said = lab.run(&RESUME).code(0);
    assert!(said.err.contains("cells ended before") && !said.err.contains("going on"), "{}", said.err);
    assert_eq!(said.out, lab.run(&["report", "journal.jsonl"]).code(0).out);
    assert!(std::fs::read(lab.journal()).expect("the journal") == before, "something was written");
}

/// Stops the run by Ctrl-C when `cells` cells have ended, those of earlier sessions included.
fn stopped_after(lab: &Lab, words: &[&str], cells: usize) {
    let mut command = lab.pickfs();
    let mut child = command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("pickfs starts");
    let begun = Instant::now();
    let ended = |folded: &Folded| folded.cells.iter().filter(|cell| cell.outcome.is_some()).count();
    while !fold_file(&lab.journal()).is_ok_and(|folded| ended(&folded) >= cells) {
        assert!(begun.elapsed() < PATIENCE, "no {cells} cells ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    pickfs_system::sys::process::kill(child.id() as i32, pickfs_system::sys::process::Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    lab.assert_nothing_left();
}

const RUN: [&str; 4] = ["run", "plan.toml", "--journal", "journal.jsonl"];
const RESUME: [&str; 3] = ["run", "--resume", "journal.jsonl"];

#[test]
fn a_run_ends_when_it_has_decided_and_stays_ended() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&plan(&lab, &[("b", 20), ("c", 60)], "")).code(0);
    let (folded, model) = checked(&lab);
    let first = &folded.looks[0];
    assert_eq!(first.round, FIRST_LOOK);
    assert!((first.alpha - 0.02 * ALPHA).abs() < 1e-12);
    assert_eq!(best(&model), ["a"], "{:?}", model.headlines());
    assert_complete(&lab);
}

/// What three rounds of a run would have written that has not come that far: `b` is now above `a`
/// and now below, `c` is far slower.
fn make_three_rounds_up(lab: &Lab) {
    let run = lab.folded().run.expect("a run");
    let mut made = vec![Record::Run(Box::new(run.clone()))];
    for cell in (1..=3).flat_map(|round| order(&run.plan, round)) {
        let factor = match (cell.target.name.as_str(), cell.round % 4) {
            ("b", 0 | 3) => 1.035,
            ("b", _) => 0.965,
            ("c", _) => 1.6,
            _ => 1.0,
        };
        let (at, value) = (String::new(), factor * 1e7 * (1.0 + f64::from(cell.round) / 1000.0));
        let (target, work) = (cell.target.name, cell.work.name);
        made.push(Record::Begin(Begin { cell: cell.id.clone(), round: cell.round, target, work, at: at.clone() }));
        let (phase, metric) = ("read".to_string(), "time_ns".to_string());
        made.push(Record::Sample(Sample { cell: cell.id.clone(), phase, metric, value }));
        made.push(Record::End(End { cell: cell.id, outcome: Outcome::Done, at }));
    }
    let lines = made.iter().map(|record| serde_json::to_string(record).expect("plain data") + "\n");
    std::fs::write(lab.journal(), lines.collect::<String>()).expect("the journal is written");
}

/// The first three rounds are made up, so that no noise can keep the loser in the race, nor end it:
/// all later ones are real.
#[test]
fn who_is_beaten_leaves_and_the_others_go_on() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(&plan(&lab, &[("b", 0), ("c", 60)], ""));
    stopped_after(&lab, &RUN, 1);
    make_three_rounds_up(&lab);
    // Three rounds of four, and of the fourth some.
    stopped_after(&lab, &RESUME, 13);
    assert_eq!(ends(&lab.folded()), [None], "between the first look and the second");
    lab.run(&RESUME).code(0);
    let (folded, model) = checked(&lab);
    assert!(folded.looks.len() > 1 && folded.looks[0].end.is_none(), "{:?}", folded.looks);
    let leaving: Vec<&str> = folded.looks[0].leaving.iter().map(|leaving| leaving.target.as_str()).collect();
    assert_eq!(leaving, ["c"]);
    assert!(model.holes.is_empty(), "{:?}", model.holes);
}

#[test]
fn a_run_that_was_stopped_makes_the_looks_of_one_that_was_not() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(&plan(&lab, &[("b", 20)], ""));
    stopped_after(&lab, &RUN, 5);
    assert!(lab.folded().looks.is_empty(), "a run that is stopped is not looked at");
    lab.run(&RESUME).code(0);
    let (folded, _) = checked(&lab);
    assert!(folded.looks.iter().all(|look| plan_of(&folded).looks.is_due(look.round)), "{:?}", folded.looks);
    assert!(
        ends(&folded).split_last().is_some_and(|(last, others)| last.is_some() && others.iter().all(Option::is_none))
    );
}

#[test]
fn a_budget_ends_a_session_and_not_the_run() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    // Used up by the first round on any machine: a session that gets further might end by a
    // decision.
    let said = lab.run_plan(&plan(&lab, &[("b", 20)], "budget = \"1ms\"\n")).code(0);
    let all = [said.err.as_str(), said.out.as_str()].concat();
    let hints = (all.matches("--resume").count(), all.contains("pickfs run --resume journal.jsonl --more "));
    assert_eq!(hints, (1, true), "{all}");
    let (folded, model) = checked(&lab);
    assert_eq!(ends(&folded), [Some(StopReason::Budget)]);
    let first = folded.looks[0].round;
    assert!(model.course().iter().any(|line| line.contains("the budget is used up")), "{:?}", model.course());
    lab.run(&RESUME).code(0);
    let (folded, _) = checked(&lab);
    assert_eq!(ends(&folded), [Some(StopReason::Budget); 2], "each session has a budget of its own");
    assert_eq!((first, folded.looks[1].round), (1, 2));
    assert!(
        folded.looks.iter().all(|look| look.alpha == 0.0),
        "rounds without a bound spend nothing: {:?}",
        folded.looks
    );
}

/// 30 % is as precise as eight rounds are on all but the busiest machine.
#[test]
fn precision_ends_a_run_or_lets_it_go_on() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&plan(&lab, &[("b", 20)], "precision = \"30%\"\n")).code(0);
    let (folded, model) = checked(&lab);
    let last = folded.looks.last().expect("a look");
    let against = model.works[0].phases[0].rows[1].against.as_ref().expect("b is compared with a");
    let is_precise = against.estimate.half_width().is_some_and(|half| half <= 0.3f64.ln_1p());
    assert_eq!(last.end == Some(StopReason::Precise), is_precise, "{last:?}, {}", against.ratio());
    assert!(is_precise || matches!(last.end, Some(StopReason::Rounds)), "{last:?}");
}

#[test]
fn a_fixed_number_of_rounds_is_looked_at_once() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&plan(&lab, &[("b", 20)], "rounds = 3\n")).code(0);
    let (folded, model) = checked(&lab);
    let look = &folded.looks[0];
    assert_eq!((look.round, look.alpha, look.end, &look.leaving), (3, ALPHA, Some(StopReason::Rounds), &vec![]));
    assert_eq!((ends(&folded).len(), model.works[0].rounds), (1, 3));
    assert_complete(&lab);
}
