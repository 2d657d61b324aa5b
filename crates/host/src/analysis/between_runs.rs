//! A run and one or several earlier ones of the same targets and works, on another kernel, machine
//! or day: whether they can be compared at all, how every time has changed, and what that comes to.
//!
//! The gate asks one question: how much slower is any whole job at most? Rounds of two runs are not
//! paired. A slowdown is clear if it is beyond the threshold with all whole jobs compared at once
//! (Holm 1979: the chance of any false one is at most 5 %). All is well only if every whole job
//! excludes a slowdown beyond the threshold; that needs no correction, as all of them must agree
//! (Berger 1982). Between the two lies "inconclusive". Phases are detail. What whole runs of the
//! same differ by is seen in several runs: of two runs without it, and of a busy machine, nothing
//! is concluded. Two simulated runs are the exception to all scatter: a round of one and the same
//! round of the other differ by what was changed alone.

use super::judgement::{confidence, reliability};
use super::plain::plain;
use super::series::{Observed, ObservedWork, Rounds, is_simulated, observe};
use super::yardstick::Unreliable;
use pickfs_core::journal::{Folded, Run};
use pickfs_core::metric::Combine;
use pickfs_core::plan::Plan;
use pickfs_stats::{Estimate, Finding, Method, RunContext, RunScatter, Runs};
use serde_json::Value;

/// In what two runs differ, so that their times cannot be compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    pub field: Field,
    pub old: String,
    pub new: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    /// A key of the plan: "targets.ext4.backing.settings.size".
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

/// Why nothing is concluded, whatever the times are.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// A run, of the earlier ones or the new one.
    Unreliable { is_new: bool, reference: String, why: Unreliable },
    /// One earlier run, and nothing that shows how far two runs of the same differ.
    OneRun,
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
    /// It counts for the gate: a whole job, or the only phase.
    pub decides: bool,
    /// Slower beyond the threshold, with all comparisons that decide made at once.
    pub is_regression: bool,
    /// Slower beyond the threshold is excluded.
    pub is_fine: bool,
    /// By how much slower it is at most, as a share, at 95 %; `None` where too few rounds say.
    pub at_most: Option<f64>,
}

#[derive(Debug)]
pub struct Changes {
    /// Regressions first, then what is open, then the rest; each with the largest ratio first.
    pub changes: Vec<Change>,
    pub missing: Vec<OnlyIn>,
    pub threshold: f64,
    /// By how much slower any whole job is at most, as a share, at 95 %; `None` where one has no
    /// bound.
    pub at_most: Option<f64>,
    /// Earlier runs, and others that show what runs differ by.
    pub runs: usize,
    pub history: usize,
    /// What these differ by, and how they drift.
    pub beside: RunContext,
    /// Rounds of the same seeds were held against each other: both runs are simulated.
    pub paired: bool,
    pub doubt: Option<Doubt>,
    pub gate: Gate,
}

/// The chance of a false regression among all comparisons.
const ALPHA: f64 = 0.05;

/// Keys of a plan that may differ: when to stop, what to conclude, names, and how cells share the
/// machine do not affect the work.
const FREE: [&str; 10] =
    ["title", "reference", "rank_weakened", "executor", "verdict", "stop", "jobs", "turn", "looks", "other_speeds"];

/// Keys of a target that may differ: the machine is what may have changed, and a copy is as good as
/// the original.
const FREE_OF_TARGET: [&str; 3] = ["name", "machine", "duplicate"];

/// Settings that say where something lies, and not what it is.
const PLACES: [&str; 3] = ["dir", "path", "source"];

/// In what the runs differ that must be the same; empty where they can be compared.
pub(crate) fn differences(old: (&Run, &Folded), new: (&Run, &Folded)) -> Vec<Difference> {
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

/// What levels of one series have in common: all that [`differences`] asks for, and the machine but
/// for its kernel. A hash. `None` where the plan has no such target; a work that it does not have
/// stands for all.
pub(crate) fn likeness(run: &Run, target: &str, work: &str) -> Option<String> {
    let mut plan = serde_json::to_value(&run.plan).unwrap_or_default();
    FREE.iter().chain(&["targets", "works"]).for_each(|field| drop(remove(&mut plan, field)));
    let target = run.plan.targets.iter().find(|one| plain(&one.name) == target)?;
    let mut machine = serde_json::to_value(&target.machine).unwrap_or_default();
    ["kernel", "saved"].iter().for_each(|field| drop(remove(&mut machine, field)));
    let is_meant = |name: &str| plain(name) == work;
    let works = works_of(&run.plan);
    let any = works.iter().any(|(name, _)| is_meant(name));
    let works: Vec<Value> =
        works.into_iter().filter(|(name, _)| !any || is_meant(name)).map(|(_, work)| work).collect();
    let mut all = serde_json::json!([maker(run), plan, without(target, &FREE_OF_TARGET), machine, works]);
    leave_out_places(&mut all);
    Some(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(all.to_string().as_bytes())))
}

fn leave_out_places(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            PLACES.iter().for_each(|place| drop(fields.remove(*place)));
            fields.values_mut().for_each(leave_out_places);
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_places),
        _ => {}
    }
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
                let [Some(one), Some(other)] = amounts.map(|rounds| fixed(&rounds)) else { continue };
                if one != other {
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

/// What a user accepts of a new run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accepted {
    /// The smallest slowdown that matters, as a share.
    pub threshold: f64,
    /// What two runs of the same are known to differ by, where one earlier run alone cannot show
    /// it: a standard deviation, as a share.
    pub scatter: Option<f64>,
}

/// A journal's run, and what was measured in it.
pub type Measured<'a> = (&'a Run, &'a Folded);

/// How the times of a run have changed since earlier ones that it can be compared with; `threshold`
/// is the share that matters. Whole jobs decide; phases are their detail. `history` are other runs
/// of what the one earlier run was of: they show what runs differ by, and are not compared.
pub fn changes(old: &[Measured], history: &[Measured], new: Measured, accepted: Accepted) -> Changes {
    let threshold = accepted.threshold;
    let confidence = old.iter().map(|(run, _)| confidence(&run.plan)).fold(confidence(&new.0.plan), f64::max);
    let before: Vec<Observed> = old.iter().map(|(run, folded)| observe(folded, &run.plan)).collect();
    let after = observe(new.1, &new.0.plan);
    let is_copy = |name: &str| old[0].0.plan.targets.iter().any(|target| target.duplicate && target.name == name);
    let both = both_sides(&before[0], &after);
    let both = both.into_iter().filter(|(target, ..)| !is_copy(target));
    let paired = matches!(old, [one] if is_simulated(one.1) && is_simulated(new.1));
    let timed = both.flat_map(|(target, works, ..)| of_target(target, works, &before, &after));
    let timed: Vec<Timed> = timed.map(|timed| if paired { timed.paired() } else { timed }).collect();
    let others: Vec<Observed> = history.iter().map(|(run, folded)| observe(folded, &run.plan)).collect();
    let scatter = scatter(&timed, &others).or(accepted.scatter.map(known)).filter(|_| !paired);
    let beside = RunContext { drift: drift(&timed), scatter };
    let by = By { threshold, confidence, beside };
    let mut changes: Vec<Change> = timed.iter().map(|timed| timed.change(&by)).collect();
    believe(&mut changes, &timed, &by);
    let earlier = old.iter().zip(&before).map(|((run, _), observed)| (false, &run.plan, observed));
    // The new run first, as another is soon made.
    let mut all = std::iter::once((true, &new.0.plan, &after)).chain(earlier);
    let doubt = all.find_map(|(is_new, plan, observed)| unreliable(is_new, plan, observed));
    let doubt = doubt.or((!paired && scatter.is_none()).then_some(Doubt::OneRun));
    if doubt.is_some() {
        changes.iter_mut().for_each(Change::conclude_nothing);
    }
    changes.sort_by(|a, b| rank(a).cmp(&rank(b)).then(ratio(b).total_cmp(&ratio(a))));
    let decisive = || changes.iter().filter(|change| change.decides);
    let gate = match () {
        () if decisive().any(|change| change.is_regression) => Gate::Regression,
        () if decisive().next().is_some() && decisive().all(|change| change.is_fine) => Gate::Fine,
        () => Gate::Inconclusive,
    };
    let most = decisive().map(|change| change.at_most).collect::<Option<Vec<f64>>>();
    let at_most = most.and_then(|all| all.into_iter().reduce(f64::max));
    let missing = missing(&old[0].0.plan, &new.0.plan);
    let (runs, history) = (old.len(), history.len());
    Changes { changes, missing, threshold, at_most, runs, history, beside, paired, doubt, gate }
}

struct By {
    threshold: f64,
    confidence: f64,
    beside: RunContext,
}

/// A time in all runs: its rounds of each, nanoseconds, and their logarithms.
struct Timed<'a> {
    target: &'a str,
    work: &'a str,
    phase: Option<&'a str>,
    decides: bool,
    new: Rounds,
    old: Vec<Rounds>,
    logs: Runs,
}

/// Each run drifts as a whole.
fn drift(timed: &[Timed]) -> f64 {
    let runs = timed.first().map_or(0, |timed| timed.old.len());
    let decisive = || timed.iter().filter(|timed| timed.decides);
    let old = (0..runs).map(|run| decisive().map(|timed| timed.logs.old[run].clone()).collect());
    let all: Vec<Vec<Vec<f64>>> = old.chain([decisive().map(|timed| timed.logs.new.clone()).collect()]).collect();
    pickfs_stats::drift_factor(&all)
}

/// What the earlier runs differ by, and those others.
fn scatter(timed: &[Timed], others: &[Observed]) -> Option<RunScatter> {
    let of_others = |timed: &Timed| {
        let of = |observed: &Observed| logs(&series(observed, timed.target, timed.work, timed.phase));
        others.iter().map(of).collect::<Vec<Vec<f64>>>()
    };
    let decisive = timed.iter().filter(|timed| timed.decides);
    pickfs_stats::run_scatter(
        &decisive.map(|timed| [timed.logs.old.clone(), of_others(timed)].concat()).collect::<Vec<_>>(),
    )
}

fn known(share: f64) -> RunScatter {
    RunScatter { deviation: share, freedom: f64::INFINITY }
}

fn unreliable(is_new: bool, plan: &Plan, observed: &Observed) -> Option<Doubt> {
    let why = reliability(plan, observed)?;
    Some(Doubt::Unreliable { is_new, reference: plain(&plan.reference), why })
}

/// Whether a run can show what runs of the same kind as this one differ by: of the same plan,
/// kernel and machine, made before the new one, on a machine that was not busy.
pub fn is_history(one: Measured, old: Measured, new: Measured) -> bool {
    let machine = |(_, folded): Measured| {
        let facts =
            folded.host.iter().filter(|(name, _)| ["kernel", "cpu", "memory", "drive"].contains(&name.as_str()));
        facts.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
    };
    let is_earlier = one.0.id != old.0.id && one.0.id != new.0.id && one.0.started < new.0.started;
    let is_quiet = || reliability(&one.0.plan, &observe(one.1, &one.0.plan)).is_none();
    is_earlier && machine(one) == machine(old) && differences(one, old).is_empty() && is_quiet()
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
fn of_target<'a>(target: &'a str, works: Works<'a>, before: &[Observed<'a>], after: &Observed<'a>) -> Vec<Timed<'a>> {
    let mut phases = works.0.phases();
    phases.extend(works.1.phases().into_iter().filter(|phase| !works.0.phases().contains(phase)));
    let has_whole = works.0.judged == works.1.judged && phases.len() > 1;
    let timed = |phase: Option<&'a str>| {
        let of = |observed: &Observed| series(observed, target, works.0.name, phase);
        let (new, old) = (of(after), before.iter().map(of).collect::<Vec<Rounds>>());
        let logs = Runs { new: logs(&new), old: old.iter().map(logs).collect(), pairs: Vec::new() };
        let decides = phase.is_none() || !has_whole;
        Timed { target, work: works.0.name, phase, decides, new, old, logs }
    };
    let whole = has_whole.then(|| timed(None));
    let all = whole.into_iter().chain(phases.iter().map(|phase| timed(Some(phase))));
    // What no run has, no further one must wait for.
    all.filter(|timed| !timed.new.is_empty() || timed.old.iter().any(|old| !old.is_empty())).collect()
}

impl Change {
    /// What is shown is of these rounds alone.
    fn conclude_nothing(&mut self) {
        (self.finding, self.is_regression, self.is_fine, self.at_most) = (None, false, false, None);
    }
}

impl Timed<'_> {
    /// Each round with that of the same seed in the one earlier run.
    fn paired(mut self) -> Self {
        let before = |round: u32| self.old.first()?.iter().find(|(other, _)| *other == round).map(|(_, value)| *value);
        let pairs = self.new.iter().filter_map(|(round, value)| Some((value / before(*round)?).ln())).collect();
        self.logs.pairs = pairs;
        self
    }

    fn change(&self, by: &By) -> Change {
        let median = |rounds: &[&Rounds]| {
            pickfs_stats::median(
                &rounds.iter().flat_map(|rounds| rounds.iter().map(|(_, value)| *value)).collect::<Vec<_>>(),
            )
        };
        let old: Vec<&Rounds> = self.old.iter().collect();
        let estimate = self.logs.ratio(&by.beside, by.confidence);
        // One-sided: an upper bound alone.
        let bound = self.logs.ratio(&by.beside, 2.0 * by.confidence - 1.0);
        // What a few rounds seem to show or to exclude is neither.
        let has_enough = |found: &Estimate| [Method::RankSum, Method::SignedRank].contains(&found.method);
        let at_most = bound.filter(has_enough).and_then(|found| found.interval).map(|(_, high)| high - 1.0);
        let finding = estimate.as_ref().filter(|found| has_enough(found));
        Change {
            target: self.target.to_string(),
            work: self.work.to_string(),
            phase: self.phase.map(String::from),
            decides: self.decides,
            old: median(&old),
            new: median(&[&self.new]),
            old_rounds: self.old.iter().map(Vec::len).sum(),
            new_rounds: self.new.len(),
            finding: finding.map(|estimate| pickfs_stats::judge(estimate, by.threshold)),
            is_regression: false,
            is_fine: at_most.is_some_and(|most| most <= by.threshold),
            at_most,
            estimate,
        }
    }
}

fn logs(rounds: &Rounds) -> Vec<f64> {
    rounds.iter().map(|(_, value)| value.ln()).collect()
}

/// Marks the regressions, with all comparisons that decide made at once.
fn believe(changes: &mut [Change], timed: &[Timed], by: &By) {
    let p = |timed: &Timed| timed.logs.p_above(by.threshold.ln_1p(), &by.beside);
    let decisive: Vec<usize> = (0..timed.len()).filter(|at| timed[*at].decides).collect();
    let believed = pickfs_stats::holm(&decisive.iter().map(|at| p(&timed[*at])).collect::<Vec<_>>(), ALPHA);
    decisive.into_iter().zip(believed).for_each(|(at, believed)| changes[at].is_regression = believed);
}

fn series(observed: &Observed, target: &str, work: &str, phase: Option<&str>) -> Rounds {
    let target = observed.targets.iter().position(|name| *name == target);
    let work = observed.works.iter().find(|other| other.name == work);
    let (Some(target), Some(work)) = (target, work) else { return Rounds::new() };
    match phase {
        Some(phase) => work.series(target, phase, "time_ns"),
        None => work.over_phases("time_ns", Combine::Sum).swap_remove(target),
    }
}
