//! Two runs of the same targets and works, on another kernel, machine or day: whether they can be compared at all, how
//! every time has changed, and what that comes to.
//!
//! Rounds of two runs are not paired. A slowdown is clear if it is beyond the threshold with all comparisons made at once
//! (Holm 1979: the chance of any false one is at most 5 %). All is well only if every single comparison excludes a
//! slowdown beyond the threshold; that needs no correction, as all of them must agree (Berger 1982). Between the two lies
//! "inconclusive".

use super::judgement::confidence;
use super::series::{Observed, ObservedWork, Rounds, observe};
use crate::journal::{Folded, Run};
use crate::metric::Combine;
use crate::plan::Plan;
use crate::stats::{self, Estimate, Finding, Method};
use serde_json::Value;

/// In what two runs differ, so that their times cannot be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub field: Field,
    pub old: String,
    pub new: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Of the plan: "targets.ext4.backing.settings.size".
    Plan(String),
    /// How much was worked on.
    Data { target: String, work: String, phase: String, metric: &'static str },
}

/// A target or work that one run alone has.
#[derive(Clone, Debug, PartialEq)]
pub struct OnlyIn {
    pub part: Part,
    pub name: String,
    /// Else in the new run.
    pub old: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Target,
    Work,
}

/// What all changes come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// No target is slower beyond the threshold.
    Fine,
    /// Some clearly is.
    Regression,
    /// None clearly is, and of some it is not excluded.
    Inconclusive,
}

/// One time of both runs.
#[derive(Clone, Debug)]
pub struct Change {
    pub target: String,
    pub work: String,
    /// `None`: the whole job.
    pub phase: Option<String>,
    /// Median nanoseconds; `None` where a run has no value.
    pub old: Option<f64>,
    pub new: Option<f64>,
    pub old_rounds: usize,
    pub new_rounds: usize,
    /// New over old; `None` where a run has no value.
    pub estimate: Option<Estimate>,
    pub finding: Option<Finding>,
    /// Slower beyond the threshold, with all comparisons made at once.
    pub is_regression: bool,
    /// Slower beyond the threshold is excluded.
    pub is_fine: bool,
}

#[derive(Debug)]
pub struct Changes {
    /// Regressions first, then what is open, then the rest; each with the largest ratio first.
    pub changes: Vec<Change>,
    pub missing: Vec<OnlyIn>,
    pub threshold: f64,
    pub gate: Gate,
}

/// The chance of a false regression among all comparisons.
const ALPHA: f64 = 0.05;

/// Of a plan: when to stop, what to conclude, and how to name it says nothing of the work.
const FREE: [&str; 6] = ["title", "reference", "rank_weakened", "executor", "verdict", "stop"];

/// Of a target: the machine is what may have changed, and a copy is as good as the original.
const FREE_OF_TARGET: [&str; 3] = ["name", "machine", "duplicate"];

/// Settings that say where something lies, and not what it is.
const PLACES: [&str; 3] = ["dir", "path", "source"];

/// In what the runs differ that must be the same; empty where they can be compared.
pub fn differences(old: (&Run, &Folded), new: (&Run, &Folded)) -> Vec<Difference> {
    let mut found = Vec::new();
    let (old_run, new_run) = (old.0, new.0);
    compare_values("imported", &maker(old_run).into(), &maker(new_run).into(), &mut found);
    let plan = |run: &Run| {
        let mut value = serde_json::to_value(&run.plan).unwrap_or_default();
        FREE.iter().chain(&["targets", "works"]).for_each(|field| drop(remove(&mut value, field)));
        value
    };
    compare_values("plan", &plan(old_run), &plan(new_run), &mut found);
    pairs("targets", (&old_run.plan, &new_run.plan), targets_of, &mut found);
    pairs("works", (&old_run.plan, &new_run.plan), works_of, &mut found);
    if found.is_empty() {
        data(old.1, &old_run.plan, new.1, &new_run.plan, &mut found);
    }
    found
}

/// Whose times they are: an export of pickfs that was imported again is still its own.
fn maker(run: &Run) -> &str {
    if run.imported.is_empty() || run.imported.starts_with("pickfs") { "pickfs" } else { &run.imported }
}

fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut()?.remove(field)
}

fn targets_of(plan: &Plan) -> Vec<(String, Value)> {
    let shown = plan.targets.iter().filter(|target| !target.duplicate);
    shown.map(|target| (target.name.clone(), without(target, &FREE_OF_TARGET))).collect()
}

fn works_of(plan: &Plan) -> Vec<(String, Value)> {
    plan.works.iter().map(|work| (work.name.clone(), without(work, &["name"]))).collect()
}

fn without(one: &impl serde::Serialize, free: &[&str]) -> Value {
    let mut value = serde_json::to_value(one).unwrap_or_default();
    free.iter().for_each(|field| drop(remove(&mut value, field)));
    value
}

type Named = Vec<(String, Value)>;

/// Those of one name are compared; without any name in common there is nothing to compare.
fn pairs(what: &str, plans: (&Plan, &Plan), of: fn(&Plan) -> Named, found: &mut Vec<Difference>) {
    let (old, new) = (of(plans.0), of(plans.1));
    let both: Vec<_> =
        old.iter().filter_map(|(name, a)| Some((name, a, &new.iter().find(|(other, _)| other == name)?.1))).collect();
    if both.is_empty() {
        let list = |named: &Named| named.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ");
        found.push(Difference { field: Field::Plan(what.to_string()), old: list(&old), new: list(&new) });
    }
    both.into_iter().for_each(|(name, a, b)| compare_values(&[what, ".", name].concat(), a, b, found));
}

fn compare_values(field: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    match (old.as_object(), new.as_object()) {
        (Some(a), Some(b)) => {
            let only_new = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_new).filter(|key| !PLACES.contains(&key.as_str())) {
                let [one, other] = [a, b].map(|map| map.get(key).unwrap_or(&Value::Null));
                compare_values(&[field, ".", key].concat(), one, other, found);
            }
        }
        _ if old != new => {
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
            found.push(Difference { field: Field::Plan(field.to_string()), old: shown(old), new: shown(new) });
        }
        _ => {}
    }
}

/// The data shows in how much of it was worked on, where that is the same in every round of a run.
fn data(old: &Folded, old_plan: &Plan, new: &Folded, new_plan: &Plan, found: &mut Vec<Difference>) {
    let (old, new) = (observe(old, old_plan), observe(new, new_plan));
    for (target, work, a, b) in both_sides(&old, &new) {
        for metric in ["work_bytes", "work_files", "space_apparent_bytes"] {
            for phase in work.0.phases() {
                let amounts = [work.0.series(a, phase, metric), work.1.series(b, phase, metric)];
                if let [Some(one), Some(other)] = amounts.map(|rounds| fixed(&rounds))
                    && one != other
                {
                    let (target, work, phase) = (target.to_string(), work.0.name.to_string(), phase.to_string());
                    let field = Field::Data { target, work, phase, metric };
                    found.push(Difference { field, old: one.to_string(), new: other.to_string() });
                }
            }
        }
    }
    // One target says it for all.
    found.truncate(1);
}

/// The one value of two rounds and more.
fn fixed(rounds: &Rounds) -> Option<f64> {
    let first = rounds.first()?.1;
    (rounds.len() > 1 && rounds.iter().all(|(_, value)| *value == first)).then_some(first)
}

type Works<'a> = (&'a ObservedWork<'a>, &'a ObservedWork<'a>);

/// Every target and work that both have: its name, the works, and the target's place in each.
fn both_sides<'a>(old: &'a Observed<'a>, new: &'a Observed<'a>) -> Vec<(&'a str, Works<'a>, usize, usize)> {
    let mut both = Vec::new();
    for work in &old.works {
        let Some(other) = new.works.iter().find(|other| other.name == work.name) else { continue };
        for (a, target) in old.targets.iter().enumerate() {
            if let Some(b) = new.targets.iter().position(|name| name == target) {
                both.push((*target, (work, other), a, b));
            }
        }
    }
    both
}

/// How the times of runs that can be compared have changed; `threshold` is the share that matters.
pub fn changes(old: (&Run, &Folded), new: (&Run, &Folded), threshold: f64) -> Changes {
    let confidence = confidence(&old.0.plan).max(confidence(&new.0.plan));
    let (before, after) = (observe(old.1, &old.0.plan), observe(new.1, &new.0.plan));
    let is_copy = |name: &str| old.0.plan.targets.iter().any(|target| target.duplicate && target.name == name);
    let both = both_sides(&before, &after);
    let both: Vec<_> = both.into_iter().filter(|(target, ..)| !is_copy(target)).collect();
    let by = By { threshold, confidence };
    let mut changes: Vec<Change> =
        both.into_iter().flat_map(|(target, works, a, b)| of_target(target, works, (a, b), &by)).collect();
    believe(&mut changes, &before, &after, threshold);
    changes.sort_by(|a, b| rank(a).cmp(&rank(b)).then(ratio(b).total_cmp(&ratio(a))));
    let gate = match () {
        () if changes.iter().any(|change| change.is_regression) => Gate::Regression,
        () if !changes.is_empty() && changes.iter().all(|change| change.is_fine) => Gate::Fine,
        () => Gate::Inconclusive,
    };
    Changes { changes, missing: missing(&old.0.plan, &new.0.plan), threshold, gate }
}

struct By {
    threshold: f64,
    confidence: f64,
}

fn rank(change: &Change) -> (bool, bool) {
    (!change.is_regression, change.is_fine)
}

fn ratio(change: &Change) -> f64 {
    change.estimate.as_ref().map_or(0.0, |estimate| estimate.ratio)
}

fn missing(old: &Plan, new: &Plan) -> Vec<OnlyIn> {
    let only = |part: Part, these: Named, those: Named, old: bool| {
        let lacks = |name: &String| !those.iter().any(|(other, _)| other == name);
        let names = these.into_iter().map(|(name, _)| name).filter(lacks);
        names.map(|name| OnlyIn { part, name, old }).collect::<Vec<_>>()
    };
    [
        only(Part::Target, targets_of(old), targets_of(new), true),
        only(Part::Target, targets_of(new), targets_of(old), false),
        only(Part::Work, works_of(old), works_of(new), true),
        only(Part::Work, works_of(new), works_of(old), false),
    ]
    .concat()
}

/// The whole job, if it has several phases, and each phase.
fn of_target(target: &str, works: Works, at: (usize, usize), by: &By) -> Vec<Change> {
    let whole = |work: &ObservedWork, at: usize| work.over_phases("time_ns", Combine::Sum).swap_remove(at);
    let mut phases = works.0.phases();
    phases.extend(works.1.phases().into_iter().filter(|phase| !works.0.phases().contains(phase)));
    let name = (target, works.0.name);
    let is_one = works.0.judged == works.1.judged && phases.len() > 1;
    let all = is_one.then(|| change(name, None, &whole(works.0, at.0), &whole(works.1, at.1), by));
    let each = phases.iter().map(|phase| {
        let times = |work: &ObservedWork, at: usize| work.series(at, phase, "time_ns");
        change(name, Some(phase), &times(works.0, at.0), &times(works.1, at.1), by)
    });
    // What neither run has, no third one must wait for.
    all.into_iter().chain(each).filter(|change| change.old.is_some() || change.new.is_some()).collect()
}

fn change((target, work): (&str, &str), phase: Option<&str>, old: &Rounds, new: &Rounds, by: &By) -> Change {
    let values = |rounds: &Rounds| rounds.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    let estimate = stats::unpaired_ratio(&logs(new), &logs(old), by.confidence);
    // What a few rounds seem to exclude is not excluded.
    let is_sure = estimate.as_ref().is_some_and(|estimate| estimate.method == Method::RankSum);
    let high = estimate.as_ref().and_then(|estimate| estimate.interval).map(|(_, high)| high);
    Change {
        target: target.to_string(),
        work: work.to_string(),
        phase: phase.map(String::from),
        old: stats::median(&values(old)),
        new: stats::median(&values(new)),
        old_rounds: old.len(),
        new_rounds: new.len(),
        finding: estimate.as_ref().map(|estimate| stats::judge(estimate, by.threshold)),
        is_regression: false,
        is_fine: is_sure && high.is_some_and(|high| high <= 1.0 + by.threshold),
        estimate,
    }
}

fn logs(rounds: &Rounds) -> Vec<f64> {
    rounds.iter().map(|(_, value)| value.ln()).collect()
}

/// Marks the regressions, with all comparisons made at once.
fn believe(changes: &mut [Change], old: &Observed, new: &Observed, threshold: f64) {
    let shift = threshold.ln_1p();
    let p: Vec<f64> = changes
        .iter()
        .map(|change| match &change.estimate {
            Some(_) => stats::rank_sum_above(&logs(&series(new, change)), &logs(&series(old, change)), shift),
            None => 1.0,
        })
        .collect();
    let believed = stats::holm(&p, ALPHA);
    changes.iter_mut().zip(believed).for_each(|(change, believed)| change.is_regression = believed);
}

fn series(observed: &Observed, change: &Change) -> Rounds {
    let target = observed.targets.iter().position(|name| *name == change.target);
    let work = observed.works.iter().find(|work| work.name == change.work);
    let (Some(target), Some(work)) = (target, work) else { return Rounds::new() };
    match &change.phase {
        Some(phase) => work.series(target, phase, "time_ns"),
        None => work.over_phases("time_ns", Combine::Sum).swap_remove(target),
    }
}
