//! What to pick, in words: one sentence for each work, one line for each phase, and the small print.

use super::text::{capital, counted, half_width, listed, more_rounds};
use crate::analysis::*;
use crate::metric;
use crate::units::{Unit, show_bytes};

/// A work's report, and the names of its targets.
struct Context<'a> {
    targets: &'a [TargetInfo],
    work: &'a WorkReport,
}

impl WorkReport {
    fn context<'a>(&'a self, model: &'a Model) -> Context<'a> {
        Context { targets: &model.targets, work: self }
    }

    /// "noise floor ±1.2 % (ext4 against itself)" of the whole job, or why there is none.
    pub fn noise_floor(&self, model: &Model) -> String {
        let Some(panel) = self.phases.first() else { return String::new() };
        let name = self.reference.map_or("", |reference| &model.targets[reference].name);
        match &panel.noise {
            Some(noise) if noise.interval.is_some() => {
                format!("noise floor {} ({name} against itself)", half_width(noise))
            }
            None if self.reference.is_none() => "noise floor unknown: nothing has results".to_string(),
            None if self.duplicate.is_some() => format!("noise floor unknown: the duplicate of {name} has no results"),
            Some(_) => "noise floor unknown: too few rounds of the reference's duplicate".to_string(),
            None => format!("noise floor unknown: {name} has no duplicate"),
        }
    }

    /// The verdict in one or a few sentences.
    pub fn headline(&self, model: &Model) -> String {
        let context = self.context(model);
        let nothing = "Nothing to judge: no cell has finished with a timed phase.".to_string();
        let Some(panel) = self.phases.first() else { return nothing };
        let measured: Vec<&Row> = panel.rows.iter().filter(|row| row.figure.is_some()).collect();
        match (self.verdict.kind, measured.as_slice(), &panel.best) {
            (VerdictKind::Refused, ..) if panel.refused.is_some() => {
                let why = panel.refused.as_ref().map(DiffersFromItself::sentence).unwrap_or_default();
                format!("{}. The machine or the drive is not steady enough.", capital(&why))
            }
            (VerdictKind::Nothing, [], _) if self.is_overall => {
                "No verdict over all work: no target has finished all of it in any round.".to_string()
            }
            (VerdictKind::Nothing, [], _) => nothing,
            (VerdictKind::Nothing, ..) => {
                let count = if self.ranked.is_empty() { "no target" } else { "only one target" };
                format!("No verdict: {count} can be ranked.")
            }
            (VerdictKind::Single, [row, ..], _) => alone(row, panel, &context),
            (_, _, Some(best)) => judged(best, panel, &context),
            (_, rows, None) => anecdote(rows, panel, &context),
        }
    }

    /// One line for each phase.
    pub fn sentences(&self, model: &Model) -> Vec<String> {
        let phases = self.phases.iter().filter(|panel| !panel.phase.is_empty());
        phases.map(|panel| phase(panel, &self.context(model))).collect()
    }

    /// What the time is paid with: one line for each target that clearly differs from the reference.
    pub fn trade_offs(&self, model: &Model) -> Vec<String> {
        let line = |found: &TradeOff| {
            let amounts: Vec<String> =
                found.differences.iter().map(|(metric, estimate)| amount(estimate, metric::noun(metric))).collect();
            format!("{} needs {}", model.targets[found.target].name, listed(&amounts))
        };
        self.costs.iter().map(line).collect()
    }

    /// Who is not ranked and why, and other small print.
    pub fn notes(&self, model: &Model) -> Vec<String> {
        self.verdict.notes.iter().map(|one| note(one, self, model)).collect()
    }
}

fn note(note: &Note, work: &WorkReport, model: &Model) -> String {
    let name = |target: usize| &model.targets[target].name;
    match note {
        Note::Eliminated(target) => format!(
            "{} was eliminated early, so it cannot be picked, although no remaining target proved faster",
            name(*target)
        ),
        Note::NotRanked(target, vetoes) => {
            let reasons: Vec<String> = vetoes.iter().map(in_words).collect();
            format!("{} is not ranked: {}", name(*target), reasons.join("; "))
        }
        Note::ReferenceReplaced(planned) => {
            let reference = work.reference.map_or("", |at| name(at));
            format!("{planned} has no results; compared with {reference} instead")
        }
        Note::LimitWithoutEffect(limit) => {
            let phase = limit.phase.as_ref().map_or(String::new(), |phase| format!("{phase}/"));
            let metric = super::text::plain(&format!("{phase}{}", limit.metric));
            format!("the limit on {metric} has no effect: no workload in this run measures it")
        }
        Note::WeakenedAreRanked => "targets with weaker durability are ranked because the plan asks for it".to_string(),
    }
}

fn alone(row: &Row, panel: &Panel, context: &Context) -> String {
    let Some(figure) = &row.figure else { return String::new() };
    let (name, part, rounds) = (&context.targets[row.target].name, part(panel), counted(figure.rounds, "round"));
    let spread = format!("median of {rounds}, {}", figure.range());
    format!("{name}: {part} takes {} ({spread}). There is no other result to compare with.", figure.shown())
}

fn anecdote(rows: &[&Row], panel: &Panel, context: &Context) -> String {
    let ranked: Vec<&Row> = rows.iter().copied().filter(|row| context.work.ranked.contains(&row.target)).collect();
    let rounds = ranked.iter().filter_map(|row| row.figure.as_ref()).map(|figure| figure.rounds).min().unwrap_or(0);
    let so_far = fastest(&ranked).and_then(|row| {
        let shown = &row.figure.as_ref()?.shown();
        Some(format!(" So far {} takes {shown}, the least time for {}.", context.targets[row.target].name, part(panel)))
    });
    let doubt = if rounds < 3 { "no interval" } else { "too few of them shared by all targets" };
    format!("No verdict yet (anecdote: {}, {doubt}).{}", counted(rounds, "round"), so_far.unwrap_or_default())
}

/// "the whole job", or the phase if it is the only one.
fn part(panel: &Panel) -> String {
    if panel.name == crate::analysis::WHOLE_JOB { "the whole job".to_string() } else { panel.name.clone() }
}

fn judged(best: &Race, panel: &Panel, context: &Context) -> String {
    let names = names(&best.members, context);
    let headline = match (best.conclusion, best.members.as_slice()) {
        (Conclusion::Pick, [at, ..]) => format!("Pick {}: {}", names[0], pick(*at, panel, context)),
        (Conclusion::WithinNoise, _) => within_noise(&names, panel),
        (Conclusion::Tie, _) => tie(&names, best, panel, context),
        (Conclusion::Unresolved, [_]) => {
            format!("No pick: {} may still be the best, but was eliminated early.", names[0])
        }
        _ => unresolved(&names, best, panel, context),
    };
    headline + &preliminary(best, context)
}

/// A name from so few rounds is no decision: no run ends for it.
fn preliminary(best: &Race, context: &Context) -> String {
    let (rounds, targets) = (counted(best.rounds, "round"), context.work.ranked.len());
    match best.corrected {
        true if best.rounds >= 6 => String::new(),
        false if targets > 2 => {
            format!(" Preliminary: {rounds}, not corrected for comparing {targets} targets at once.")
        }
        _ => format!(" Preliminary: {rounds}."),
    }
}

/// Faster than all others, but by no more than what noise alone could look like to who wants to know so exactly.
fn within_noise(names: &[String], panel: &Panel) -> String {
    let floor = panel.noise_shown().unwrap_or_default();
    format!(
        "No verdict: the noise floor, {floor}, is above the {} that matter, and {} is ahead by less than that noise.",
        super::text::percent(panel.band.wanted),
        names.first().map_or("", String::as_str),
    )
}

fn names(members: &[usize], context: &Context) -> Vec<String> {
    members.iter().map(|&at| context.targets[at].name.clone()).collect()
}

/// Why the one target is picked: it against the reference, or, if it is the reference, the nearest against it.
fn pick(at: usize, panel: &Panel, context: &Context) -> String {
    let beaten = others(&[at], panel, context);
    let part = part(panel);
    let beats_all = if beaten.len() == 1 { "the other target takes" } else { "every other ranked target takes" };
    let ranked_reference = context.work.reference.filter(|reference| context.work.ranked.contains(reference));
    if ranked_reference == Some(at) {
        return match fastest(&beaten).and_then(|row| said(row, context)) {
            Some(said) if beaten.len() == 1 => format!("for {part}, {said}."),
            Some(said) => format!("for {part}, {beats_all} longer; the nearest: {said}."),
            None => format!("for {part}, {beats_all} longer."),
        };
    }
    let row = panel.rows.iter().find(|row| row.target == at);
    let against = row.and_then(told).filter(|_| ranked_reference.is_some());
    match against.map(Comparison::words) {
        Some(words) if beaten.len() == 1 => format!("{part} {words}."),
        Some(words) => format!("{part} {words}, and {beats_all} longer than {}.", context.targets[at].name),
        None => format!("for {part}, {beats_all} longer."),
    }
}

fn tie(names: &[String], best: &Race, panel: &Panel, context: &Context) -> String {
    let beaten = others(&best.members, panel, context);
    let within = &panel.margin();
    if beaten.is_empty() && names.len() > 3 {
        return format!("No single winner: all {} targets tie (within {within}).", names.len());
    }
    format!("No single winner: {} tie (within {within}){}", listed(names), the_rest(&beaten, context))
}

fn unresolved(names: &[String], best: &Race, panel: &Panel, context: &Context) -> String {
    let more = best.more_rounds().map(|n| format!(" (about {} would tell)", more_rounds(n))).unwrap_or_default();
    let rest = the_rest(&others(&best.members, panel, context), context);
    format!("Unresolved between {}{more}{rest}", listed(names))
}

/// The end of the sentence, with those that are out of the race: each is shown to be slower than one that is in it.
fn the_rest(beaten: &[&Row], context: &Context) -> String {
    let names: Vec<String> = beaten.iter().map(|row| context.targets[row.target].name.clone()).collect();
    match beaten {
        [] => ".".to_string(),
        [row] => said(row, context)
            .map_or(format!("; {} takes longer than one of them.", names[0]), |said| format!("; {said}.")),
        _ => format!(". Shown to take longer than one of them: {}.", listed(&some(names))),
    }
}

/// A headline is read at a glance; the tables name all.
fn some(names: Vec<String>) -> Vec<String> {
    const MOST: usize = 8;
    if names.len() <= MOST {
        return names;
    }
    let rest = format!("{} more", names.len() - MOST + 1);
    names.into_iter().take(MOST - 1).chain([rest]).collect()
}

fn others<'a>(members: &[usize], panel: &'a Panel, context: &Context) -> Vec<&'a Row> {
    let ranked = panel.rows.iter().filter(|row| row.figure.is_some() && context.work.ranked.contains(&row.target));
    ranked.filter(|row| !members.contains(&row.target)).collect()
}

fn fastest<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let median = |row: &Row| row.figure.as_ref().map_or(f64::INFINITY, |figure| figure.median);
    rows.iter().copied().min_by(|a, b| median(a).total_cmp(&median(b)))
}

fn slowest<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let median = |row: &Row| row.figure.as_ref().map_or(0.0, |figure| figure.median);
    rows.iter().copied().max_by(|a, b| median(a).total_cmp(&median(b)))
}

/// "btrfs takes 40 % more time than ext4 (95 % interval 31–50 %)"; nothing for the reference itself, nor where the two
/// are not told apart.
fn said(row: &Row, context: &Context) -> Option<String> {
    told(row).map(|against| format!("{} {}", context.targets[row.target].name, against.words()))
}

/// One line for a phase: who is fastest, and who is slowest.
fn phase(panel: &Panel, context: &Context) -> String {
    let name = &panel.name;
    if let Some(why) = &panel.refused {
        return format!("{name}: {}", why.sentence());
    }
    let measured: Vec<&Row> = panel.rows.iter().filter(|row| row.figure.is_some()).collect();
    let Some(best) = &panel.best else {
        let shown = measured.iter().map(|row| with_time(row, context)).collect::<Vec<_>>();
        return format!("{name}: {} (not ranked)", listed(&shown));
    };
    let rows: Vec<&Row> =
        best.members.iter().filter_map(|at| measured.iter().copied().find(|r| r.target == *at)).collect();
    let shown = listed(&rows.iter().map(|row| with_time(row, context)).collect::<Vec<_>>());
    let more = best.more_rounds().map(|n| format!(" (about {} would tell)", more_rounds(n))).unwrap_or_default();
    let first = match rows.len() {
        1 if best.conclusion == Conclusion::Unresolved => format!("{shown} may be fastest, but was eliminated early"),
        1 => format!("{shown}, fastest{}", brief_of(rows[0]).map(|brief| format!(", {brief}")).unwrap_or_default()),
        _ if best.conclusion == Conclusion::Tie => format!("{shown} tie within {}", panel.margin()),
        _ => format!("unresolved between {shown}{more}"),
    };
    let beaten = others(&best.members, panel, context);
    let which = if beaten.len() > 1 { "slowest: " } else { "slower: " };
    let slowest = slowest(&beaten).map(|row| format!("; {which}{}", brief(row, context)));
    format!("{name}: {first}{}", slowest.unwrap_or_default())
}

fn brief(row: &Row, context: &Context) -> String {
    let name = &context.targets[row.target].name;
    brief_of(row).map_or(with_time(row, context), |brief| format!("{name}, {brief}"))
}

fn brief_of(row: &Row) -> Option<String> {
    told(row).map(Comparison::brief)
}

/// The comparison with the reference if it says which of the two is faster: "is not told apart from ext4" explains
/// neither why one is picked nor why one is out.
fn told(row: &Row) -> Option<&Comparison> {
    row.against.as_ref().filter(|against| against.tells())
}

fn with_time(row: &Row, context: &Context) -> String {
    let shown = row.figure.as_ref().map(Figure::shown).unwrap_or_default();
    format!("{} {shown}", context.targets[row.target].name)
}

fn in_words(veto: &Veto) -> String {
    match veto {
        Veto::Weakened(options) => format!("weaker durability: {}", super::text::plain(&options.join(", "))),
        Veto::Failed { cells, of, why } => {
            format!("{cells} of {} failed: {}", counted(*of, "cell"), super::text::plain(why))
        }
        Veto::Lacks(feature) => format!("it is not known to have {}", super::text::plain(feature)),
        Veto::Small { what, largest, wanted } => {
            let bytes = |bytes: u64| show_bytes(bytes as f64);
            let found = largest
                .map_or("it is not known how large they may be".into(), |found| format!("it takes {}", bytes(found)));
            format!("a {} of {} is required, and {found}", super::text::plain(what), bytes(*wanted))
        }
        Veto::OverLimit { limit, median, .. } => {
            let unit = Unit::of_metric(&limit.metric);
            let metric = super::text::plain(&limit.metric.replace('_', " "));
            format!("{metric} is {}, above the limit of {}", unit.show(*median), unit.show(limit.at_most))
        }
        Veto::Unfinished { rounds: 0, .. } => "no round of the whole job finished".to_string(),
        Veto::Unfinished { rounds, of } => format!("only {rounds} of {} finished", counted(*of, "round")),
    }
}

impl Model {
    /// The sentences that open a report: one over all works if there are several, then one for each work.
    pub fn headlines(&self) -> Vec<String> {
        let works = &self.works;
        if works.iter().all(|work| work.rounds == 0) {
            let (cells, most) = (counted(self.planned_cells, "cell"), if self.may_need_fewer { "up to " } else { "" });
            return vec![format!("Nothing has been measured yet: {most}{cells} planned, none has ended.")];
        }
        let several = works.len() > 1;
        let overall = self.overall.iter().map(|overall| {
            let depends = depends(self).filter(|_| several).map(|depends| format!(" {depends}"));
            format!("{}{}", overall.work.headline(self), depends.unwrap_or_default())
        });
        let name = |work: &WorkReport| if several { format!("{}: ", work.name) } else { String::new() };
        overall.chain(works.iter().map(|work| format!("{}{}", name(work), work.headline(self)))).collect()
    }
}

/// Some where no target is among the best of every work: one number for all of them hides that.
fn depends(model: &Model) -> Option<String> {
    let works = &model.works;
    let everywhere = |at: usize| works.iter().all(|work| work.verdict.best.contains(&at));
    let common = (0..model.targets.len()).any(everywhere);
    let judged = works.iter().all(|work| !work.verdict.best.is_empty());
    let best_at = |work: &WorkReport| {
        let names: Vec<String> = work.verdict.best.iter().map(|&at| model.targets[at].name.clone()).collect();
        format!("{}: {}", work.name, listed(&names))
    };
    let each: Vec<String> = works.iter().map(best_at).collect();
    (judged && !common).then(|| format!("It depends on the work: {}.", each.join("; ")))
}

/// "55 % less space", "2.1 times the CPU time".
fn amount(estimate: &crate::stats::Estimate, noun: &str) -> String {
    let (amount, range) = super::text::difference(estimate);
    let shown = format!("{amount} {noun}");
    if range == "±0" { shown } else { format!("{shown} ({range})") }
}
