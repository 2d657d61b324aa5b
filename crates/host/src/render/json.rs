//! Our own JSON: all that a report says and all that it is made of, in the layout of
//! [`crate::exchange`].

use super::tables::{self, finding_name, method_name};
use super::{Format, Options};
use crate::analysis::owners::{Cause, Pair, Spent};
use crate::analysis::raw::{RawCell, better_name, unit_name};
use crate::analysis::{self, Champion, Fact, Gate, Hole, Model, Panel, Proof, Race, VerdictKind, WorkReport};
use crate::exchange::*;
use crate::wording::advice::{self, Advice};
use crate::wording::between_runs;
use crate::wording::tuning::Tuned;
use std::collections::BTreeMap;
use std::io::{self, Write};

pub(crate) const JSON: Format = Format {
    name: "json",
    about: "everything: judgements, environment, order, samples (schema/report-1.schema.json)",
    run: Some(run),
    comparison: Some(comparison),
    tunings: Some(tunings),
    ..Format::NONE
};

fn run(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &report(model))?;
    out.write_all(b"\n")
}

fn tunings(tunings: &[Tuned], _: &Options, out: &mut dyn Write) -> io::Result<()> {
    match tunings {
        [tuned] => serde_json::to_writer_pretty(&mut *out, tuned)?,
        tunings => serde_json::to_writer_pretty(&mut *out, tunings)?,
    }
    out.write_all(b"\n")
}

fn report(model: &Model) -> Report<'_> {
    let raw = &model.raw;
    let target_name = |at: Option<usize>| at.map(|at| model.targets[at].name.clone());
    Report {
        schema: SCHEMA,
        run: Run {
            id: model.run.clone(),
            title: model.title.clone(),
            started: model.started.clone(),
            pickfs: model.pickfs.clone(),
            seed: raw.seed,
            imported: raw.imported.clone(),
            machine: model.machine(),
        },
        verdict: Verdict {
            headlines: model.headlines(),
            why: model.explanations(),
            course: model.course(),
            warnings: model.warnings(),
        },
        to_use: model.advice().map(to_use),
        environment: facts(&model.host),
        targets: model
            .targets
            .iter()
            .map(|target| Target {
                name: target.name.clone(),
                duplicate: target.duplicate,
                weakened: target.weakened.clone(),
                mkfs: target.mkfs.to_string(),
                mount: target.mount.to_string(),
                aged: target.aged(),
                facts: facts(&target.facts),
            })
            .collect(),
        overall: model.overall.as_ref().map(|overall| work(model, &overall.work)),
        works: model.works.iter().map(|one| work(model, one)).collect(),
        best_of_each: model.champions.iter().flat_map(|found| &found.rows).map(|row| best_of(model, row)).collect(),
        explained: explained(model),
        not_measured: model.holes.iter().map(|hole| missing(hole, target_name(hole.target))).collect(),
        doubts: model
            .flags
            .iter()
            .map(|group| Doubt {
                flag: group.flag.clone(),
                phase: group.phase.clone(),
                target: target_name(group.target),
                count: group.count,
                example: group.example.clone(),
            })
            .collect(),
        ledger: TimeSpent {
            total_ns: model.ledger.total_ns,
            parts_ns: model.ledger.parts.iter().map(|part| (part.name, part.ns)).collect(),
        },
        run_ledger: raw.ledger.clone(),
        plan: raw.plan.clone(),
        looks: raw.looks.clone(),
        cells: List::each(|| raw.cells.iter().map(|one| cell(model, one))),
    }
}

fn explained(model: &Model) -> Vec<Explained> {
    let time = |spent: &Spent| ExplainedTime {
        ns: spent.ns,
        requests: spent.requests,
        parts_ns: spent.parts_ns.iter().map(|(part, ns)| (part.word(), *ns)).collect(),
    };
    let part = |cause: &Cause| ExplainedPart {
        owner: cause.owner.clone(),
        state: tables::state_name(cause.state),
        share: cause.share,
        target: time(&cause.target),
        reference: time(&cause.reference),
    };
    let of = |simulated_on: &Option<String>, pair: &Pair| Explained {
        work: pair.work.clone(),
        phase: pair.difference.phase.clone(),
        target: pair.target.clone(),
        reference: pair.reference.clone(),
        simulated_on: simulated_on.clone(),
        target_ns: pair.difference.target_ns,
        reference_ns: pair.difference.reference_ns,
        share: pair.difference.share,
        parts: pair.difference.causes.iter().map(part).collect(),
        target_rest_ns: pair.difference.target_rest_ns,
        reference_rest_ns: pair.difference.reference_rest_ns,
        rest_share: pair.difference.rest_share,
    };
    let kept = model.why.iter();
    kept.flat_map(|kept| kept.pairs.iter().map(move |pair| of(&kept.simulated_on, pair))).collect()
}

fn to_use(advice: Advice) -> ToUse {
    let step = |step: advice::Step| Step { when: step.when, command: step.command };
    ToUse { target: advice.target, steps: advice.steps.into_iter().map(step).collect(), notes: advice.notes }
}

fn facts(facts: &[Fact]) -> BTreeMap<String, String> {
    facts.iter().map(|fact| (fact.name.clone(), fact.value.clone())).collect()
}

fn missing(hole: &Hole, target: Option<String>) -> Missing {
    let (work, why) = (hole.work.clone(), hole.why.clone());
    Missing { target, work, kind: hole.kind.word(), why, rounds: hole.rounds, of: hole.of }
}

fn names(model: &Model, places: &[usize]) -> Vec<String> {
    places.iter().map(|at| model.targets[*at].name.clone()).collect()
}

fn work(model: &Model, work: &WorkReport) -> Work {
    let quantities = |panels: &[Panel]| panels.iter().map(|panel| quantity(model, panel)).collect();
    let race = work.phases.first().and_then(|panel| panel.race.as_ref());
    Work {
        name: work.name.clone(),
        reference: work.reference.map(|at| model.targets[at].name.clone()),
        rounds: work.rounds,
        ranked: names(model, &work.ranked),
        verdict: WorkVerdict {
            kind: match work.verdict.kind {
                VerdictKind::Pick => "pick",
                VerdictKind::Tie => "tie",
                VerdictKind::Unresolved => "unresolved",
                VerdictKind::TooFewRounds => "too few rounds",
                VerdictKind::Single => "single",
                VerdictKind::Nothing => "nothing",
            },
            headline: work.headline(model),
            best: names(model, &work.verdict.best),
            pick: race.map(|race| model.targets[race.pick].name.clone()),
            at_most_slower: race.map(Race::bound).filter(|bound| bound.is_finite()),
            notes: work.notes(model),
        },
        sentences: work.sentences(model),
        trade_offs: work.trade_offs(model),
        noise: work.noise_floor(model),
        times: quantities(&work.phases),
        beside: work
            .beside
            .iter()
            .map(|table| Table { title: table.title(), quantities: quantities(&table.panels) })
            .collect(),
    }
}

fn quantity(model: &Model, panel: &Panel) -> Quantity {
    Quantity {
        name: panel.name.clone(),
        phase: panel.phase.clone(),
        metric: panel.metric.clone(),
        unit: unit_name(panel.unit),
        better: better_name(panel.better),
        threshold: panel.threshold,
        noise: panel.noise.as_ref().map(estimate),
        may_be_best: panel.race.as_ref().map(|race| names(model, &race.may_be_best().collect::<Vec<_>>())),
        slower: panel.race.as_ref().map(|race| names(model, &race.slower)),
        left_early: panel.race.as_ref().map(|race| names(model, &race.left_early)),
        rows: panel
            .rows
            .iter()
            .map(|row| Row {
                at_most_slower: panel
                    .race
                    .as_ref()
                    .map(|race| race.regret[row.target])
                    .filter(|bound| bound.is_finite()),
                target: model.targets[row.target].name.clone(),
                figure: row.figure.as_ref().map(|figure| Figure {
                    median: Number(figure.median),
                    least: Number(figure.low),
                    most: Number(figure.high),
                    rounds: figure.rounds,
                    missing: figure.missing,
                    statistics: figure.statistics.iter().map(|(name, value)| (*name, Number(*value))).collect(),
                }),
                against_reference: row.against.as_ref().map(compared),
                absent: row.absent.why(),
                cache_state_unproven: row.unproven_cache,
            })
            .collect(),
    }
}

fn compared(against: &analysis::Comparison) -> Comparison {
    Comparison {
        estimate: estimate(&against.estimate),
        finding: finding_name(against),
        words: against.words(),
        p: against.p,
        rests_on_symmetry: against.rests_on_symmetry,
    }
}

fn best_of(model: &Model, row: &Champion) -> BestOfFilesystem {
    let (proof, others): (_, &[usize]) = match &row.proof {
        Proof::Alone => ("alone", &[]),
        Proof::Faster => ("faster", &[]),
        Proof::GoodEnough => ("good enough", &[]),
        Proof::Tie(others) => ("tie", others),
        Proof::Open { others, .. } => ("open", others),
    };
    let members = row.members.iter().filter_map(|member| Some((member, compared(member.against.as_ref()?))));
    BestOfFilesystem {
        filesystem: row.filesystem.clone(),
        best: model.targets[row.target].name.clone(),
        proof,
        others: names(model, others),
        at_most_slower: row.bound,
        against_first: row.against.as_ref().map(compared),
        members: members.map(|(member, found)| (model.targets[member.target].name.clone(), found)).collect(),
    }
}

fn estimate(estimate: &pickfs_stats::Estimate) -> Estimate {
    Estimate {
        ratio: estimate.ratio,
        low: estimate.interval.map(|(low, _)| low),
        high: estimate.interval.map(|(_, high)| high),
        level: estimate.level,
        method: method_name(estimate.method),
        rounds: estimate.n,
        share_above: estimate.share_above,
    }
}

fn cell<'a>(model: &'a Model, cell: &'a RawCell) -> Cell<'a> {
    Cell {
        id: cell.id.clone(),
        order: cell.order,
        round: cell.round,
        target: cell.target.clone(),
        work: cell.work.clone(),
        outcome: cell.outcome.into(),
        why: cell.why.clone(),
        flags: cell.flags.clone(),
        histograms: cell.histograms.clone(),
        provenance: Some(cell.provenance.clone()),
        ledger: cell.ledger.clone(),
        device_courses: cell.courses.clone(),
        samples: List::each(|| {
            model.raw.samples(cell).map(|one| (one.phase.into(), one.metric.into(), Number(one.value)))
        }),
    }
}

fn comparison(runs: &between_runs::RunComparison, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let facts = runs.facts.iter();
    let document = RunComparison {
        schema: SCHEMA,
        gate: match runs.gate {
            Gate::Fine => "fine",
            Gate::Regression => "regression",
            Gate::Inconclusive => "inconclusive",
        },
        headline: runs.headline.clone(),
        caveat: runs.caveat.clone(),
        threshold: runs.threshold,
        at_most_slower: runs.at_most,
        old_runs: runs.runs,
        times: runs.rows.iter().map(change).collect(),
        missing: runs.missing.clone(),
        not_the_same: facts
            .map(|fact| FactChange { name: fact.name.clone(), old: fact.old.clone(), new: fact.new.clone() })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn change(row: &between_runs::TimeChange) -> TimeChange {
    let estimate = row.change.estimate.as_ref();
    let interval = estimate.and_then(|estimate| estimate.interval);
    TimeChange {
        target: row.target.clone(),
        work: row.work.clone(),
        phase: row.phase.clone(),
        old_median_ns: row.change.old,
        new_median_ns: row.change.new,
        old_rounds: row.change.old_rounds,
        new_rounds: row.change.new_rounds,
        ratio: estimate.map(|estimate| estimate.ratio),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        level: estimate.map(|estimate| estimate.level),
        method: estimate.map(|estimate| method_name(estimate.method)),
        decides: row.change.decides,
        says: row.says,
    }
}
