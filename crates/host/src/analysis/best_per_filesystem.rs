//! The best target of each file system, and those against each other: which scheduler (or other
//! option) for each, and then which of them all.
//!
//! The times themselves choose what is compared, so the intervals hold for all pairs of targets
//! together: what is chosen among them cannot make any of them false.

use super::elimination::{Race, higher_total};
use super::judged_pairs::JudgedPairs;
use super::model::*;
use super::panel::ReportInput;
use super::plain::plain;
use super::work::WorkReport;
use pickfs_core::plan::Target;
use pickfs_stats::Finding;

/// A table of more values has no reader.
const MOST_VALUES: usize = 8;

/// `None` where there is one file system, or none has several targets, or nothing is judged.
pub(crate) fn champions(case: &ReportInput, report: &WorkReport) -> Option<Champions> {
    let (panel, reference) = (report.phases.first()?, report.reference?);
    let groups = groups(case, &report.ranked);
    // With a single file system, the verdict is already complete.
    if groups.len() < 2 || groups.iter().all(|group| group.members.len() < 2) {
        return None;
    }
    let contest = &case.analysis.verdict.contest;
    let field = Field { case, pairs: &contest.pairs, race: contest.race.as_ref(), threshold: panel.threshold };
    let factor = factor(&groups);
    let mut found: Vec<(f64, Champion)> =
        groups.into_iter().filter_map(|group| field.champion(group, reference)).collect();
    // What the verdict picks is the first here too.
    let is_pick = |champion: &Champion| field.race.is_some_and(|race| race.pick == champion.target);
    found.sort_by(|a, b| (!is_pick(&a.1)).cmp(&!is_pick(&b.1)).then(a.0.total_cmp(&b.0)));
    let mut rows: Vec<Champion> = found.into_iter().map(|(_, champion)| champion).collect();
    let first = rows.first()?.target;
    rows.iter_mut().skip(1).for_each(|row| row.against = field.comparison(row.target, first));
    Some(Champions { of: report.name.clone(), factor, threshold: panel.threshold, rows })
}

/// Ranked targets of a file system with what each differs in from others, in the plan's order.
struct Group {
    name: String,
    members: Vec<(usize, String)>,
}

fn groups(case: &ReportInput, ranked: &[usize]) -> Vec<Group> {
    let planned =
        |at: usize| case.analysis.plan.targets.iter().find(|target| target.name == case.analysis.observed.targets[at]);
    let of_a_filesystem = |at: &usize| Some((*at, planned(*at).filter(|target| target.fs.is_some())?));
    let targets: Vec<(usize, &Target)> = ranked.iter().filter_map(of_a_filesystem).collect();
    let factors: Vec<Vec<String>> = targets.iter().map(|(_, target)| target.factors()).collect();
    let is_own = |word: &&String| factors.iter().any(|other| !other.contains(word));
    let mut groups: Vec<Group> = Vec::new();
    for ((at, target), words) in targets.into_iter().zip(&factors) {
        let name = plain(target.fs.as_deref().unwrap_or_default());
        let own: Vec<String> = words.iter().filter(is_own).cloned().collect();
        let value = if own.is_empty() { "default".to_string() } else { plain(&own.join(" ")) };
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.members.push((at, value)),
            None => groups.push(Group { name, members: vec![(at, value)] }),
        }
    }
    groups
}

/// The values that file systems share, and those of one alone, in the order of the plan; nothing
/// where they do not share two, or a file system has one of them twice.
fn factor(groups: &[Group]) -> Vec<String> {
    let mut values: Vec<&String> = Vec::new();
    for (_, value) in groups.iter().flat_map(|group| &group.members) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let having = |group: &Group, value: &String| group.members.iter().filter(|(_, own)| own == value).count();
    let is_shared = |value: &&&String| groups.iter().filter(|group| having(group, value) > 0).count() > 1;
    let is_clear = values.iter().all(|value| groups.iter().all(|group| having(group, value) < 2));
    let shared = values.iter().filter(is_shared).count();
    if !is_clear || shared < 2 || values.len() > MOST_VALUES {
        return Vec::new();
    }
    values.into_iter().cloned().collect()
}

struct Field<'a> {
    case: &'a ReportInput<'a>,
    pairs: &'a JudgedPairs,
    race: Option<&'a Race>,
    threshold: f64,
}

impl Field<'_> {
    /// The upper bound of the logarithm of the first over the second.
    fn above(&self, a: usize, b: usize) -> f64 {
        match self.pairs.interval(a, b) {
            _ if a == b => 0.0,
            found => found.map_or(f64::INFINITY, |(_, high)| high.ln()),
        }
    }

    fn is_slower(&self, target: usize, than: usize) -> bool {
        self.pairs.finding(target, than) == Some(Finding::Higher)
    }

    fn comparison(&self, a: usize, b: usize) -> Option<Comparison> {
        let found = self.pairs.get(a, b)?;
        let name = &self.case.targets[b].name;
        Some(Comparison::new(found.estimate, Some(found.finding), name, "time_ns", self.threshold))
    }

    /// With its ratio to the reference. The verdict's pick is the champion of its file system.
    fn champion(&self, group: Group, reference: usize) -> Option<(f64, Champion)> {
        let of = |at: usize| Some(self.pairs.get(at, reference)?.estimate.ratio);
        let ratio = |at: usize| if at == reference { Some(1.0) } else { of(at) };
        let measured: Vec<(usize, f64)> = group.members.iter().filter_map(|(at, _)| Some((*at, ratio(*at)?))).collect();
        let all: Vec<usize> = measured.iter().map(|(at, _)| *at).collect();
        let is_pick = |at: usize| self.race.is_some_and(|race| race.pick == at);
        let (target, least) = measured.into_iter().min_by(|a, b| {
            let bounds = self.bound(a.0, &all).total_cmp(&self.bound(b.0, &all));
            (!is_pick(a.0)).cmp(&!is_pick(b.0)).then(bounds).then(a.1.total_cmp(&b.1))
        })?;
        let bound = Some(self.bound(target, &all)).filter(|bound| bound.is_finite()).map(f64::exp_m1);
        let members =
            group.members.into_iter().filter(|(at, _): &(usize, String)| all.contains(at)).map(|(at, value)| {
                let against = self.comparison(at, target).filter(|_| at != target);
                Member { target: at, value, against }
            });
        let (members, proof) = (members.collect(), self.proof(target, &all));
        Some((least, Champion { filesystem: group.name, target, proof, bound, members, against: None }))
    }

    /// The upper bound of its logarithm over that of the best of these.
    fn bound(&self, target: usize, all: &[usize]) -> f64 {
        all.iter().map(|other| self.above(target, *other)).fold(0.0, f64::max)
    }

    fn proof(&self, target: usize, all: &[usize]) -> Proof {
        let rules = &self.case.analysis.verdict.rules;
        let is_good = |at: usize| {
            let close = self.bound(at, all) <= self.threshold.ln_1p();
            close && higher_total(&self.case.analysis.verdict.values, at, all, rules).is_none()
        };
        let others = || all.iter().copied().filter(|at| *at != target);
        let good: Vec<usize> = others().filter(|at| is_good(*at)).collect();
        if all.len() < 2 {
            return Proof::Alone;
        }
        if !is_good(target) {
            let is_slower = |at: &usize| all.iter().any(|by| self.is_slower(*at, *by));
            let others: Vec<usize> = others().filter(|at| !is_slower(at)).collect();
            let is_out = |at: &usize| self.race.is_some_and(|race| race.beaten_by[*at].is_some());
            let eliminated = others.iter().chain([&target]).any(is_out);
            return Proof::Open { others, eliminated };
        }
        match good.is_empty() {
            false => Proof::Tie(good),
            true if others().all(|other| self.is_slower(other, target)) => Proof::Faster,
            true => Proof::GoodEnough,
        }
    }
}
