//! Series -> figures and comparisons: a panel for each quantity. Every pair of targets is judged: a
//! reader of the report may take another target as the reference, and must find judgements made in
//! advance.

use super::by_round::{compare, p_value, rests_on_symmetry};
use super::judged_pairs::{JudgedPairs, MOST_TARGETS};
use super::judgement::{Analysis, Contest, Judgement, TIMES};
use super::missing;
use super::model::*;
use super::plain::plain;
use super::points::{self, Series};
use super::series::{ObservedWork, Rounds, at_round};
use pickfs_core::journal::FlagKind;
use pickfs_core::metric::{self, ReportTable};
use pickfs_stats::{Estimate, Finding, STATISTICS};
use pickfs_system::units::Unit;

/// What all works of a report share.
pub(crate) struct ReportInput<'a> {
    pub analysis: &'a Analysis<'a>,
    pub targets: &'a [TargetInfo],
    pub holes: &'a [Hole],
}

/// What every panel of a work shares.
pub(crate) struct WorkContext<'a> {
    pub case: &'a ReportInput<'a>,
    pub judgement: &'a Judgement,
    pub work: &'a str,
    pub rounds: usize,
    /// For each target, the number of rounds after its elimination: nothing is missing there.
    pub unasked: Vec<usize>,
}

impl<'a> ReportInput<'a> {
    /// `name` is the work that is judged.
    pub(crate) fn context(&'a self, name: &'a str, judgement: &'a Judgement, rounds: usize) -> WorkContext<'a> {
        WorkContext { case: self, judgement, work: name, rounds, unasked: self.analysis.observed.unasked() }
    }
}

/// What a panel shows, and how it is judged.
pub(crate) struct PanelSpec {
    /// The phase where there is a `quantity`.
    pub name: String,
    /// What it is of the phase, where the phase alone does not say it.
    pub quantity: Option<String>,
    pub phase: String,
    pub metric: String,
    /// `None`: shown, not compared.
    pub wanted: Option<f64>,
}

/// A time, with the targets that may be the best in it.
pub(crate) fn time_panel(name: &str, phase: &str, times: &[Rounds], contest: &Contest, context: &WorkContext) -> Panel {
    let wanted = Some(context.case.analysis.plan.stop.threshold);
    let what =
        PanelSpec { name: plain(name), quantity: None, phase: plain(phase), metric: "time_ns".to_string(), wanted };
    build_panel(what, times, contest, context)
}

/// The same of one phase.
pub(crate) fn phase_panel(phase: &str, observed: &ObservedWork, context: &WorkContext) -> Panel {
    let times = TIMES.map(|metric| observed.in_phase(phase, metric));
    let contest = context.judgement.contest_of(times.each_ref().map(Vec::as_slice), context.case.analysis.confidence);
    time_panel(phase, phase, &times[0], &contest, context)
}

/// One quantity for every target, compared with the reference round by round.
pub(crate) fn panel(what: PanelSpec, series: &[Rounds], context: &WorkContext) -> Panel {
    build_panel(what, series, &Contest::default(), context)
}

/// A quantity that is nought everywhere is no news.
pub(crate) fn nonzero(panel: Panel) -> Option<Panel> {
    let any = panel.rows.iter().filter_map(|row| row.figure.as_ref()).any(|figure| figure.high > 0.0);
    any.then_some(panel)
}

fn build_panel(what: PanelSpec, series: &[Rounds], contest: &Contest, context: &WorkContext) -> Panel {
    let (is_time, is_compared) = (what.metric == "time_ns", what.wanted.is_some());
    let threshold = what.wanted.unwrap_or(0.0);
    let unit = Unit::of_metric(&what.metric);
    let pairs = is_time.then_some(&contest.pairs);
    let pairing = Pairing { series, pairs, context, metric: &what.metric, threshold, judged: is_compared };
    let each = if is_compared { pairing.each_with_each() } else { Vec::new() };
    let base = base(context.judgement).filter(|_| is_compared);
    let row = |target: usize| {
        let mut figure = figure(&series[target], unit, context.rounds.saturating_sub(context.unasked[target]));
        let others = each.get(target).cloned().unwrap_or_default();
        let reference = context.judgement.reference.filter(|_| is_compared);
        let against = reference.and_then(|reference| match others.get(reference) {
            Some(judged) => judged.clone(),
            None => pairing.comparison(target, reference),
        });
        let beside = base.and_then(|base| match others.get(base) {
            Some(judged) => judged.clone(),
            None => pairing.comparison(target, base),
        });
        if let (Some(figure), Some(found), Some(base)) = (&mut figure, &beside, base) {
            scale_to_reference(figure, &found.estimate, &series[target], &series[base]);
        }
        let lacking = || missing::absent(context.case.holes, context.work, target);
        let absent = if figure.is_none() { lacking() } else { Absent::Present };
        let series = if is_time { points::series(&series[target]) } else { Series::default() };
        Row { target, figure, reference, against, others, absent, series, unproven_cache: false }
    };
    let targets = context.case.targets;
    let shown_targets = (0..targets.len()).filter(|&target| !targets[target].duplicate);
    Panel {
        rows: shown_targets.map(row).collect(),
        name: what.quantity.iter().fold(what.name, |phase, quantity| format!("{phase}: {quantity}")),
        quantity: what.quantity,
        phase: what.phase,
        unit,
        better: metric::better(&what.metric),
        metric: what.metric,
        threshold,
        noise: contest.noise.clone(),
        race: contest.race.clone(),
        pairs: if is_time { contest.pairs.clone() } else { JudgedPairs::default() },
    }
}

fn figure(series: &Rounds, unit: Unit, reached: usize) -> Option<Figure> {
    let values: Vec<f64> = series.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
    let median = match unit {
        // For a rate, take the median of its time, which differs between two values: so rate and
        // time agree.
        Unit::BytesPerSecond | Unit::PerSecond => {
            1.0 / pickfs_stats::median(&values.iter().map(|rate| 1.0 / rate).collect::<Vec<_>>())?
        }
        _ => pickfs_stats::median(&values)?,
    };
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let rounds = values.len();
    let statistics = STATISTICS.iter().filter_map(|one| Some((one.name, (one.of)(&values)?))).collect();
    let missing = reached.saturating_sub(rounds);
    Some(Figure { median, low, high, centre: median, scale: 1.0, statistics, unit, rounds, missing })
}

/// The target whose own median is shown: the reference, or the pick where the reference was
/// eliminated and its median is one of few rounds.
fn base(judgement: &Judgement) -> Option<usize> {
    let pick = judgement.contest.race.as_ref().map(|race| race.pick);
    let stays = judgement.reference.filter(|reference| !judgement.rules.left.contains(reference));
    stays.or(pick).or(judgement.reference)
}

/// Two medians of noisy series may lie on the other side of the ratio between them, and one of a
/// target that was eliminated is over other rounds: what is shown is the base's median by the
/// paired ratio.
fn scale_to_reference(figure: &mut Figure, found: &Estimate, own: &Rounds, base: &Rounds) {
    let values: Vec<f64> = base.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
    let Some(median) = pickfs_stats::median(&values) else { return };
    figure.centre = median * found.ratio;
    let has = |round: &u32| at_round(own, *round).is_some();
    if base.iter().any(|(round, _)| !has(round)) && figure.median > 0.0 {
        figure.scale = figure.centre / figure.median;
    }
}

/// One quantity of all targets, about to be compared.
struct Pairing<'a> {
    series: &'a [Rounds],
    /// For times: the pairs, which are judged already.
    pairs: Option<&'a JudgedPairs>,
    context: &'a WorkContext<'a>,
    metric: &'a str,
    threshold: f64,
    /// False: the ratios are reported, and nothing is concluded from them.
    judged: bool,
}

impl Pairing<'_> {
    fn estimate(&self, target: usize, reference: usize) -> Option<Estimate> {
        if target == reference {
            return None;
        }
        compare(&self.series[target], &self.series[reference], self.context.case.analysis.confidence)
    }

    /// `None` for a target against itself, and where no ratio can be made.
    fn comparison(&self, target: usize, reference: usize) -> Option<Comparison> {
        let found = match self.pairs {
            Some(pairs) => self.found_in(pairs, target, reference),
            None => self.estimate(target, reference).map(|own| self.judged(own, reference)),
        }?;
        let (own, base) = (&self.series[target], &self.series[reference]);
        let leaves_one_out = found.estimate.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        let found = Comparison { p: leaves_one_out.then(|| p_value(own, base)).flatten(), ..found };
        if !found.tells() {
            return Some(found);
        }
        let rests_on_symmetry = rests_on_symmetry(own, base, self.context.case.analysis.confidence);
        Some(Comparison { rests_on_symmetry, ..found })
    }

    fn found_in(&self, pairs: &JudgedPairs, target: usize, reference: usize) -> Option<Comparison> {
        let pair = pairs.get(target, reference)?;
        let found = self.found(pair.estimate, Some(pair.finding), reference);
        Some(Comparison { variance: pair.variance, ..found })
    }

    fn judged(&self, estimate: Estimate, reference: usize) -> Comparison {
        let finding = self.judged.then(|| self.finding(&estimate));
        self.found(estimate, finding, reference)
    }

    /// What others did to the machine is in its times and rates, and not in what lies on the disk.
    fn finding(&self, estimate: &Estimate) -> Finding {
        let lies = |found: &metric::Metric| {
            matches!(found.shown, ReportTable::Space | ReportTable::Layout | ReportTable::Compression)
        };
        let lies = metric::find(self.metric).is_some_and(lies);
        match pickfs_stats::judge(estimate, self.threshold) {
            Finding::TooFewRounds => Finding::TooFewRounds,
            Finding::Tie => Finding::Tie,
            _ if self.context.judgement.rules.is_unreliable && !lies => Finding::Unresolved,
            found => found,
        }
    }

    fn found(&self, estimate: Estimate, finding: Option<Finding>, reference: usize) -> Comparison {
        let name = self.context.case.targets[reference].name.as_str();
        Comparison::new(estimate, finding, name, self.metric, self.threshold)
    }

    /// Each target against each but the reference's copy, by target and reference; none of too
    /// many. A pair is compared once, that reference below: the other way round it is the same
    /// comparison.
    fn each_with_each(&self) -> Vec<Vec<Option<Comparison>>> {
        let (count, reference) = (self.context.case.targets.len(), self.context.judgement.reference);
        if count > MOST_TARGETS {
            return Vec::new();
        }
        let mut found = vec![vec![None; count]; count];
        for (a, b) in (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))) {
            let (above, below) = if reference == Some(a) { (b, a) } else { (a, b) };
            found[above][below] = self.comparison(above, below);
            found[below][above] = found[above][below].as_ref().map(|found| self.swapped(found, above));
        }
        let copies = (0..count).filter(|at| self.context.case.targets[*at].duplicate);
        copies.for_each(|copy| found.iter_mut().for_each(|row| row[copy] = None));
        found
    }

    fn swapped(&self, found: &Comparison, reference: usize) -> Comparison {
        let finding = found.finding.map(Finding::swapped);
        let swapped = self.found(found.estimate.swapped(), finding, reference);
        let Comparison { variance, p, rests_on_symmetry, .. } = *found;
        Comparison { variance, p, rests_on_symmetry, ..swapped }
    }
}

pub(crate) fn mark_unproven(panel: &mut Panel, observed: &ObservedWork) {
    for row in &mut panel.rows {
        row.unproven_cache = observed.flags(row.target).any(|flag| {
            let in_panel =
                if panel.phase.is_empty() { observed.judges(&flag.phase) } else { flag.phase == panel.phase };
            let here = in_panel || flag.phase.is_empty();
            here && FlagKind::voids_cold_proof(&flag.flag)
        });
    }
}
