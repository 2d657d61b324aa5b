//! Every verdict against docs/audit/verdict.py, which computes it from the journal alone and shares
//! nothing with pickfs.

use crate::common::not_run;
use crate::simulated::noise::Noise;
use pickfs_core::journal::{Begin, End, Folded, Outcome, Provenance, Record, Sample, fold};
use pickfs_core::metric::Combine;
use pickfs_core::plan::{Amounts, Judged, Limit, Plan, Stop, VerdictTerm, Work};
use pickfs_host::analysis::model;
use pickfs_host::audit::{decisions, differences, recomputed};
use pickfs_host::render::{Document, Options, written};
use pickfs_stats::Schedule;
use pickfs_system::need::find_program;
use serde_json::Value;
use std::path::Path;

pub(crate) fn no_python() -> Option<String> {
    find_program("python3").is_none().then(|| "there is no python3 (apt-get install python3)".to_string())
}

/// Where report and recomputation differ; of the run's own looks only where this version made them.
pub(crate) fn compared(journal: &[u8], looked_now: bool) -> Vec<String> {
    let folded = fold(journal).expect("a journal");
    let model = model(&folded).expect("a plan");
    let report = written("json", Document::Run(&model), &Options::default()).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let anew = recomputed(journal).expect("python3 and its standard library");
    let mut found = differences(&report, &anew);
    if looked_now {
        found.extend(decisions(&report["looks"], &anew["looks"]));
    }
    found
}

#[test]
fn the_recomputation_has_every_verdict_of_random_journals() {
    if !not_run(no_python()) {
        hold(0..12);
        // Two targets have the very same bound after a look.
        hold(154..155);
    }
}

/// A difference names its seed, and leaves the journal where PICKFS_DIFFERING says.
pub(crate) fn hold(seeds: std::ops::Range<u64>) {
    let differing = |seed: u64| {
        let (journal, looked) = random(seed);
        let found = compared(journal.as_bytes(), looked);
        if let Some(folder) = std::env::var_os("PICKFS_DIFFERING").filter(|_| !found.is_empty()) {
            std::fs::write(Path::new(&folder).join(format!("{seed}.jsonl")), &journal).unwrap();
        }
        (!found.is_empty()).then(|| format!("seed {seed}: {}", found.join("\n  ")))
    };
    let found: Vec<String> = seeds.filter_map(differing).collect();
    assert!(found.is_empty(), "{} journals differ:\n{}", found.len(), found.join("\n"));
}

/// Draws what a plan and a machine may be like.
struct Draw(Noise);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        ((self.0.uniform() * most as f64).ceil() as usize).max(1) - 1
    }

    fn is(&mut self, chance: f64) -> bool {
        self.0.uniform() <= chance
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A journal of any plan on a machine of any noise, and whether it looked at its results as it went
/// on.
fn random(seed: u64) -> (String, bool) {
    let mut draw = Draw(Noise::new(seed));
    let plan = plan(&mut draw, seed);
    let level: Vec<f64> = plan.targets.iter().map(|_| draw.one(&[0.0, 0.0, 0.03, 0.1]) * draw.0.uniform()).collect();
    let sd = draw.one(&[0.003, 0.02, 0.02, 0.08]);
    let (outliers, kept): (f64, f64) = (draw.one(&[0.0, 0.0, 0.1]), draw.one(&[0.0, 0.0, 0.0, 0.7]));
    let fails = if draw.is(0.2) { Some(draw.below(plan.targets.len())) } else { None };
    let (mut last, coarse) = (vec![0.0; plan.targets.len()], draw.one(&[1.0, 1.0, 1e6]));
    let phases = draw.one(&[1, 1, 2, 3]);
    let folded = play_phases(&plan, phases, |at, is_first| {
        let normal = draw.0.normal();
        last[at] = if is_first { kept * last[at] + (1.0 - kept * kept).sqrt() * normal } else { normal };
        let slow = if draw.is(outliers) { 1.0 } else { 0.0 };
        let fails = is_first && fails == Some(at) && draw.is(0.1);
        (!fails).then(|| ((level[at] + sd * last[at] + slow).exp() * 1e8 / coarse).round() * coarse)
    });
    let mut records = records(&folded);
    let looked = plan.stop.rounds.is_none();
    if !looked {
        spoil(&mut records, &mut draw);
    }
    let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).expect("a record")).collect();
    (lines.join("\n") + "\n", looked)
}

fn play_phases(plan: &Plan, phases: usize, mut time: impl FnMut(usize, bool) -> Option<f64>) -> Folded {
    let place = |name: &str| plan.targets.iter().position(|target| target.name == name).expect("a target");
    let agent = |cell: &pickfs_core::plan::Cell| {
        let times = (0..phases).map(|phase| Some((format!("p{phase}"), time(place(&cell.target.name), phase == 0)?)));
        times.collect::<Option<Vec<_>>>()
    };
    pickfs_host::run::rehearse(plan, agent).expect("a rehearsal touches nothing that could fail")
}

fn plan(draw: &mut Draw, seed: u64) -> Plan {
    let names: Vec<String> = (0..2 + draw.below(4)).map(|at| format!("t{at}")).collect();
    let rounds = if draw.is(0.5) { Some(1 + draw.below(14) as u32) } else { None };
    let precision = if rounds.is_none() && draw.is(0.2) { Some(0.05) } else { None };
    let (race, threshold) = (draw.is(0.8), draw.one(&[0.03, 0.03, 0.1]));
    let mut plan = crate::simulated::plan(
        &names,
        draw.is(0.8),
        Stop { rounds, precision, race, threshold, ..Stop::default() },
        seed,
    );
    plan.looks = draw.one(&[Schedule::EachRound, Schedule::EachRound, Schedule::Ten]);
    if draw.is(0.4) {
        plan.works.push(Work { name: "mail".to_string(), ..Work::default() });
    }
    let combine = draw.one(&[Combine::Sum, Combine::Sum, Combine::GeometricMean, Combine::Largest, Combine::First]);
    plan.works[0].judged = Judged { combine, ..Judged::default() };
    if draw.is(0.5) {
        plan.verdict.amounts = if draw.is(0.5) { Amounts::Counts } else { Amounts::Weights };
        let term = |(at, work): (usize, &Work)| VerdictTerm {
            work: work.name.clone(),
            phase: (at == 0 && seed % 3 == 0).then(|| "p0".to_string()),
            amount: (at + 1) as f64,
        };
        plan.verdict.parts = plan.works.iter().enumerate().map(term).collect();
    }
    if draw.is(0.2) {
        plan.verdict.limits = vec![Limit { phase: None, metric: "time_ns".into(), at_most: 1.02e8 }];
    }
    plan
}

/// As a journal has them.
fn records(folded: &Folded) -> Vec<Record> {
    let mut records = vec![Record::Run(Box::new(folded.run.clone().expect("a run")))];
    let mut looks = folded.looks.iter().peekable();
    for cell in &folded.cells {
        while let Some(look) = looks.next_if(|look| look.round < cell.round) {
            records.push(Record::Look(look.clone()));
        }
        let (id, at) = (cell.id.clone(), String::new());
        let (target, work) = (cell.target.clone(), cell.work.clone());
        records.push(Record::Begin(Begin { cell: id.clone(), round: cell.round, target, work, at: at.clone() }));
        for (phase, metric, value) in folded.samples(cell) {
            let (phase, metric) = (phase.to_string(), metric.to_string());
            records.push(Record::Sample(Sample { cell: id.clone(), phase, metric, value }));
        }
        let outcome = cell.outcome.clone().expect("a rehearsal ends each cell");
        records.push(Record::End(End { cell: id, outcome, at }));
    }
    records.extend(looks.cloned().map(Record::Look));
    records
}

/// What may stand in a journal: cells that are skipped, cut off or repeated, on other stacks, while
/// other programs run.
fn spoil(records: &mut Vec<Record>, draw: &mut Draw) {
    let busy = draw.is(0.1);
    let habit = draw.below(8);
    let mut found = Vec::new();
    for record in records.drain(..) {
        let more = match &record {
            Record::Sample(sample) if busy => {
                vec![Record::Sample(Sample { metric: "foreign_cpu_ns".into(), value: sample.value, ..sample.clone() })]
            }
            Record::Sample(sample) if habit == 0 && draw.is(0.3) => {
                vec![Record::Sample(Sample { value: sample.value * 1.5, ..sample.clone() })]
            }
            Record::Begin(begin) if habit == 1 && draw.is(0.02) => {
                let weakened = vec!["nobarrier".to_string()];
                vec![Record::Provenance(Provenance { cell: begin.cell.clone(), weakened, ..Provenance::default() })]
            }
            Record::Begin(begin) if habit == 2 && draw.is(0.03) => {
                let mismatches = vec!["asked a, found b".to_string()];
                vec![Record::Provenance(Provenance { cell: begin.cell.clone(), mismatches, ..Provenance::default() })]
            }
            _ => Vec::new(),
        };
        match record {
            Record::End(end) if habit == 3 && draw.is(0.1) => {
                found.push(Record::End(End { outcome: Outcome::Skipped(vec!["no room".into()]), ..end }));
            }
            Record::End(_) if habit == 4 && draw.is(0.1) => {}
            Record::Sample(_) if habit == 5 && draw.is(0.05) => {}
            record => found.push(record),
        }
        found.extend(more);
    }
    *records = found;
}
