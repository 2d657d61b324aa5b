//! Judging scales: 200 targets with 20 phases in 40 rounds are judged within a second, be they all
//! alike or not. Prints the times; exit code 1 if one is exceeded. `cargo bench --bench judge`.

use pickfs_test_support::noise;

use noise::Noise;
use pickfs_core::journal::{Begin, End, Folded, Outcome, Record, Run, SCHEMA, Sample};
use pickfs_core::plan::{Plan, Target, Work};
use pickfs_host::analysis;
use std::time::{Duration, Instant};

const TARGETS: usize = 200;
const PHASES: usize = 20;
const ROUNDS: u32 = 40;

const LIMIT: Duration = Duration::from_secs(1);

/// By how much the last target is slower than the first (those between lie evenly), and the noise
/// of a cell; that of a phase is 1 % more.
const WORLDS: [(&str, f64, f64); 4] =
    [("all alike", 0.0, 0.0), ("some alike", 0.5, 0.0), ("all different", 20.0, 0.0), ("all noise", 0.0, 0.1)];

fn main() -> std::process::ExitCode {
    let judged = WORLDS.map(|(name, range, noise)| judge(name, range, noise));
    if judged.iter().any(|time| *time > LIMIT) {
        return std::process::ExitCode::FAILURE;
    }
    std::process::ExitCode::SUCCESS
}

fn judge(name: &str, range: f64, noise: f64) -> Duration {
    let begun = Instant::now();
    let folded = world(range, noise);
    let folding = begun.elapsed();
    let begun = Instant::now();
    let model = analysis::model(&folded).expect("the journal is judged");
    let judging = begun.elapsed();
    let kind = model.works[0].verdict.kind;
    println!(
        "{TARGETS} targets, {PHASES} phases, {ROUNDS} rounds, {name} ({kind:?}): fold {folding:.2?}, judge {judging:.2?} \
         (limit {LIMIT:?})"
    );
    judging
}

fn world(range: f64, spread: f64) -> Folded {
    let mut noise = Noise::new(1);
    let names = (0..TARGETS).map(|target| Target { name: format!("target {target}"), ..Target::default() });
    let works = vec![Work { name: "tree".into(), ..Work::default() }];
    let mut plan = Plan { targets: names.collect(), works, ..Plan::default() };
    plan.targets.push(Target { name: "again".into(), duplicate: true, ..Target::default() });
    plan.stop.rounds = Some(ROUNDS);
    let names: Vec<String> = plan.targets.iter().map(|target| target.name.clone()).collect();
    let mut folded = Folded::default();
    folded.take(Record::Run(Box::new(Run { schema: SCHEMA, plan, ..Run::default() })));
    for round in 1..=ROUNDS {
        for (target, name) in names.iter().enumerate() {
            let level = range * (target % TARGETS) as f64 / TARGETS as f64;
            cell(&mut folded, name, round, level.ln_1p() + spread * noise.normal(), &mut noise);
        }
    }
    folded
}

fn cell(folded: &mut Folded, target: &str, round: u32, level: f64, noise: &mut Noise) {
    let cell = format!("{target} {round}");
    let begin = Begin { cell: cell.clone(), round, target: target.into(), work: "tree".into(), at: String::new() };
    folded.take(Record::Begin(begin));
    for phase in 0..PHASES {
        let value = (1e9 * (level + 0.01 * noise.normal()).exp()).round();
        let (phase, metric) = (format!("phase {phase}"), "time_ns".to_string());
        folded.take(Record::Sample(Sample { cell: cell.clone(), phase, metric, value }));
    }
    folded.take(Record::End(End { cell, outcome: Outcome::Done, at: String::new() }));
}
