//! The best target of each file system, and those against each other: which scheduler (or option) for each, and then
//! which of them all. Judged like everything else, by pairs of rounds.

use super::elimination::compare;
use super::model::*;
use super::panel::Case;
use super::plain::plain;
use super::series::Rounds;
use super::work::WorkReport;
use crate::stats::{self, Finding};

/// `None` where there is one file system, or none has several targets, or nothing is judged.
pub fn champions(case: &Case, report: &WorkReport) -> Option<Champions> {
    let (panel, reference) = (report.phases.first()?, report.reference?);
    let groups = groups(case, &report.ranked);
    // Of one file system alone the verdict says all there is to say.
    if groups.len() < 2 || groups.iter().all(|(_, members)| members.len() < 2) {
        return None;
    }
    let field = Field { case, series: &case.analysis.verdict.values, threshold: panel.threshold };
    let mut found: Vec<(f64, Champion)> =
        groups.into_iter().filter_map(|(name, members)| field.champion(name, &members, reference)).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rows: Vec<Champion> = found.into_iter().map(|(_, champion)| champion).collect();
    let first = rows.first()?.target;
    for row in rows.iter_mut().skip(1) {
        row.against = field.against(row.target, first);
    }
    Some(Champions { of: report.name.clone(), rows })
}

/// Ranked targets by file system and variant, in the plan's order.
fn groups(case: &Case, ranked: &[usize]) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for &at in ranked {
        let planned =
            case.analysis.plan.targets.iter().find(|target| target.name == case.analysis.observed.targets[at]);
        let Some(fs) = planned.and_then(|target| target.fs.as_ref()) else { continue };
        let variant = planned.and_then(|target| target.variant.as_ref());
        let name = plain(&[fs].into_iter().chain(variant).cloned().collect::<Vec<_>>().join(" "));
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(at),
            None => groups.push((name, vec![at])),
        }
    }
    groups
}

struct Field<'a> {
    case: &'a Case<'a>,
    series: &'a [Rounds],
    threshold: f64,
}

impl Field<'_> {
    fn compare(&self, a: usize, b: usize) -> Option<stats::Estimate> {
        compare(&self.series[a], &self.series[b], self.case.analysis.confidence)
    }

    /// With its ratio to the reference, by which it is chosen.
    fn champion(&self, name: String, members: &[usize], reference: usize) -> Option<(f64, Champion)> {
        let ratio = |at: usize| if at == reference { Some(1.0) } else { Some(self.compare(at, reference)?.ratio) };
        let mut measured: Vec<(f64, usize)> = members.iter().filter_map(|&at| Some((ratio(at)?, at))).collect();
        measured.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, target) = *measured.first()?;
        let others = || measured.iter().skip(1).map(|(_, at)| *at);
        let finding = |at: usize| self.compare(at, target).map(|estimate| stats::judge(&estimate, self.threshold));
        let ties = others().filter(|at| finding(*at) == Some(Finding::Tie)).collect();
        let is_open = |at: &usize| matches!(finding(*at), Some(Finding::Unresolved | Finding::TooFewRounds));
        let open = others().filter(is_open).collect();
        Some((least, Champion { group: name, target, members: measured.len(), ties, open, against: None }))
    }

    fn against(&self, target: usize, first: usize) -> Option<Comparison> {
        let estimate = self.compare(target, first)?;
        let finding = stats::judge(&estimate, self.threshold);
        let name = &self.case.targets[first].name;
        Some(Comparison::new(estimate, Some(finding), name, "time_ns", self.threshold))
    }
}
