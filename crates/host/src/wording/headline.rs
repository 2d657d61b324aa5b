//! What to pick, in words: one sentence for each work, one line for each phase, and the small
//! print.

use super::answer::{Terms, signed, signed_percent};
use super::durability;
use super::text::{about, capital, counted, half_width, listed, more_rounds};
use crate::analysis::*;
use pickfs_core::journal::HELD_BACK;
use pickfs_core::metric;
use pickfs_system::units::{Unit, show_bytes, show_duration};

/// A headline's answer, which ends with how sure it is, and what follows it: what is slower, or
/// what would settle it. The second begins with a blank where there is one.
type HeadlineParts = [String; 2];

/// A work's report, and the names of its targets.
struct Context<'a> {
    targets: &'a [TargetInfo],
    work: &'a WorkReport,
    history: &'a History,
}

impl WorkReport {
    fn context<'a>(&'a self, model: &'a Model) -> Context<'a> {
        Context { targets: &model.targets, work: self, history: &model.history }
    }

    /// "noise floor ±1.2 % (ext4 against itself)" of the whole job, or why there is none.
    pub fn noise_floor(&self, model: &Model) -> String {
        let Some(panel) = self.phases.first() else { return String::new() };
        let name = self.reference.map_or("", |reference| &model.targets[reference].name);
        match &panel.noise {
            Some(noise) if noise.interval.is_some() => {
                // The copy is measured in the first rounds alone.
                let some = format!(" in {} of {} rounds", noise.n, self.rounds);
                let some = if noise.n < self.rounds { some } else { String::new() };
                format!("noise floor {} ({name} against itself{some})", half_width(noise))
            }
            None if self.reference.is_none() => "noise floor unknown: nothing has results".to_string(),
            None if self.duplicate.is_some() => format!("noise floor unknown: the duplicate of {name} has no results"),
            Some(_) => "noise floor unknown: too few rounds of the reference's duplicate".to_string(),
            None => format!("noise floor unknown: {name} has no duplicate"),
        }
    }

    /// The verdict in one or a few sentences, after broken promises.
    pub fn headline(&self, model: &Model) -> String {
        self.headline_parts(model).concat()
    }

    fn headline_parts(&self, model: &Model) -> HeadlineParts {
        let [answer, rest] = self.answer(model);
        [durability::guilt(self, model) + &answer, rest]
    }

    fn answer(&self, model: &Model) -> HeadlineParts {
        let context = self.context(model);
        let nothing = "Nothing was measured: no cell ended with a time.".to_string();
        let Some(panel) = self.phases.first() else { return [nothing, String::new()] };
        let measured: Vec<&Row> = panel.rows.iter().filter(|row| row.figure.is_some()).collect();
        let answer = match (self.verdict.kind, measured.as_slice(), &panel.race) {
            (.., None) if self.is_foreign => foreign(&measured, panel, &context),
            (VerdictKind::Nothing, [], _) if self.is_overall => {
                "No verdict over all work: no target has finished all of it in any round.".to_string()
            }
            (VerdictKind::Nothing, [], _) => nothing,
            (VerdictKind::Nothing, ..) => match self.ranked.as_slice() {
                [alone] => {
                    format!("Only {} can be ranked: there is nothing to compare it with.", model.targets[*alone].name)
                }
                _ => "No verdict: no target can be ranked.".to_string(),
            },
            (VerdictKind::Single, [row, ..], _) => {
                durability::alone(self, row.target, model).unwrap_or_else(|| alone(row, panel, &context))
            }
            (_, _, Some(race)) => return judged(race, panel, &context),
            (_, rows, None) => anecdote(rows, panel, &context),
        };
        [answer, String::new()]
    }

    /// One line for each phase.
    pub fn sentences(&self, model: &Model) -> Vec<String> {
        if self.is_foreign {
            return self.phases.iter().flat_map(|panel| runs(panel, &self.context(model))).collect();
        }
        let phases = self.phases.iter().filter(|panel| !panel.phase.is_empty());
        let cuts = self.durability.iter().map(|found| durability::sentence(found, model));
        phases.map(|panel| phase(panel, &self.context(model))).chain(cuts).collect()
    }

    /// What the time is paid with: one line for each target that clearly differs from the
    /// reference.
    pub(crate) fn trade_offs(&self, model: &Model) -> Vec<String> {
        let line = |found: &TradeOff| {
            let amounts: Vec<String> =
                found.differences.iter().map(|(metric, estimate)| amount(estimate, metric::noun(metric))).collect();
            format!("{} needs {}", model.targets[found.target].name, listed(&amounts))
        };
        self.costs.iter().map(line).collect()
    }

    /// Which targets are not ranked and why, and other small print.
    pub(crate) fn notes(&self, model: &Model) -> Vec<String> {
        self.verdict.notes.iter().map(|one| note(one, self, model)).collect()
    }
}

fn note(note: &Note, work: &WorkReport, model: &Model) -> String {
    let name = |target: usize| &model.targets[target].name;
    match note {
        Note::NotRanked(target, vetoes) => {
            let reasons: Vec<String> = vetoes.iter().map(in_words).collect();
            format!("{} is not ranked: {}", name(*target), reasons.join("; "))
        }
        Note::HeldBack(target, why) => format!("{}, {HELD_BACK}: {why}", name(*target)),
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
    let spread = if figure.rounds == 1 { rounds } else { format!("median of {rounds}, {}", figure.range()) };
    let took = figure.shown();
    format!("{name}: {part} takes {took} ({spread}). There is no other result to compare with.")
}

/// The headline for figures of another program: those of its first phase, or the first one of
/// several targets.
fn foreign(rows: &[&Row], panel: &Panel, context: &Context) -> String {
    let phases: std::collections::BTreeSet<&str> = context.work.phases.iter().map(|one| one.phase.as_str()).collect();
    let [row] = rows else {
        let shown = listed(&some(rows.iter().map(|row| with_time(row, context)).collect()));
        let why = match phases.len() {
            1 => "too few rounds to rank the targets",
            _ => "its phases have no unit in common",
        };
        return format!("{}: {shown}. No pick: {why}.", panel.name);
    };
    let of_phase = context.work.phases.iter().filter(|one| one.phase == panel.phase);
    let figure = |one: &Panel| {
        let found = one.rows.iter().find(|found| found.target == row.target)?.figure.as_ref()?;
        Some(format!("{} {}", one.without_phase(), found.shown()))
    };
    let figures: Vec<String> = of_phase.filter_map(figure).take(4).collect();
    format!("{}, {}: {}.", context.targets[row.target].name, panel.phase, figures.join("; "))
}

/// "ls: 8 runs: 10.9 ms, 50.8 ms, ...": a line for each target.
fn runs(panel: &Panel, context: &Context) -> Vec<String> {
    let several = panel.rows.iter().filter(|row| row.series.points.len() > 1);
    let line = |row: &Row| {
        let points = &row.series.points;
        let each: Vec<String> = points.iter().map(|point| panel.unit.show(point.median)).collect();
        let name = &context.targets[row.target].name;
        match row.series.thinned() {
            whole if whole.is_empty() => format!("{name}: {}: {}", counted(points.len(), "run"), each.join(", ")),
            thinned => format!("{name}: {} ({thinned})", each.join(", ")),
        }
    };
    several.map(line).collect()
}

fn anecdote(rows: &[&Row], panel: &Panel, context: &Context) -> String {
    let ranked: Vec<&Row> = rows.iter().copied().filter(|row| context.work.ranked.contains(&row.target)).collect();
    let rounds = ranked.iter().filter_map(|row| row.figure.as_ref()).map(|figure| figure.rounds).min().unwrap_or(0);
    let so_far = fastest(&ranked).and_then(|row| {
        let shown = &row.figure.as_ref()?.shown();
        let name = &context.targets[row.target].name;
        Some(if context.work.durability.is_empty() {
            format!(" So far {name} takes {shown}, the least time for {}.", part(panel))
        } else {
            format!(" So far {name} loses the least: at most {shown}.")
        })
    });
    let doubt = if rounds < 3 { "no interval" } else { "too few of them shared by all targets" };
    format!("No verdict yet (anecdote: {}, {doubt}).{}", counted(rounds, "round"), so_far.unwrap_or_default())
}

/// "the whole job", or the phase if it is the only one.
fn part(panel: &Panel) -> String {
    if panel.name == crate::analysis::WHOLE_JOB { "the whole job".to_string() } else { panel.name.clone() }
}

/// Each target is in one group: the pick or several that are as good, maybe as good, slower,
/// eliminated early, and not ranked.
fn judged(race: &Race, panel: &Panel, context: &Context) -> HeadlineParts {
    let verdict = &context.work.verdict;
    let pick = &context.targets[race.pick].name;
    let others =
        [in_all(race, context), slower(race, panel, context), left_early(race, panel, context), not_ranked(context)];
    let others: String = others.iter().filter(|text| !text.is_empty()).map(|text| format!(" {text}")).collect();
    let terms = context.work.terms();
    match verdict.kind {
        VerdictKind::Tie => {
            let most = verdict.best.iter().map(|at| race.regret[*at]).fold(0.0, f64::max);
            let ties = names(&verdict.best, context);
            let each = if ties.len() == 2 { "either" } else { "each" };
            let bound = match most {
                0.0 => format!("no other is {} than {each} (95 %)", terms.better),
                most => format!("{each} is {}", at_most(most, terms)),
            };
            let open = open(race, &verdict.best, context);
            [format!("No single winner: {}; {bound}.", listed(&some(ties))), open + &others]
        }
        VerdictKind::Pick => {
            [format!("Pick {pick}: {}.", bound(race, context)), open(race, &[race.pick], context) + &others]
        }
        _ => {
            let names = listed(&some(names(&race.may_be_best().collect::<Vec<_>>(), context)));
            let (why, more) = match race.too_few.is_empty() {
                true if race.is_refused() => ("Too early to say", more(race, context.history)),
                true => ("Too close to call", more(race, context.history)),
                false => ("Too early to say", String::new()),
            };
            [format!("{why}: {names}. Best guess {pick}: {}.", bound(race, context)), more + &others]
        }
    }
}

/// " These may be as good or worse: xfs and btrfs."
fn open(race: &Race, named: &[usize], context: &Context) -> String {
    let open: Vec<usize> = race.may_be_as_good.iter().copied().filter(|at| !named.contains(at)).collect();
    match open.len() {
        0 => String::new(),
        1 => format!(" {} may be as good or worse.", names(&open, context)[0]),
        _ => format!(" These may be as good or worse: {}.", listed(&some(names(&open, context)))),
    }
}

/// "the fastest (95 %)", "at most 4 % slower than the best (95 %)".
fn bound(race: &Race, context: &Context) -> String {
    let terms = context.work.terms();
    let is_early = is_early(race, context);
    let bound =
        if is_fastest(race) && !is_early { format!("the {} (95 %)", terms.best) } else { at_most(race.bound(), terms) };
    let typical = if race.higher_total[race.pick].is_some() { "in a typical round " } else { "" };
    let among = match is_early {
        _ if race.is_refused() => ", as each round resembles the one before",
        true => ", of those with enough rounds",
        false => "",
    };
    format!("{typical}{bound}{among}")
}

/// Some have times, and too few of them to be ranked: one of these may be faster.
fn is_early(race: &Race, context: &Context) -> bool {
    let too_few = |veto: &Veto| matches!(veto, Veto::Unfinished { rounds: 1.., .. } | Veto::TooFew { .. });
    let mut notes = context.work.verdict.notes.iter();
    !race.too_few.is_empty()
        || notes.any(|note| matches!(note, Note::NotRanked(_, vetoes) if vetoes.iter().any(too_few)))
}

/// All others are called slower: of one of several equals it is not enough that no other is faster.
fn is_fastest(race: &Race) -> bool {
    let others = [&race.may_be_as_good, &race.left_early, &race.too_few];
    others.iter().all(|group| group.is_empty()) && race.higher_total[race.pick].is_none()
}

/// "Not ranked: zfs.": the notes say why.
fn not_ranked(context: &Context) -> String {
    let is_out = |at: &usize| !context.targets[*at].duplicate && !context.work.ranked.contains(at);
    let out: Vec<usize> = (0..context.targets.len()).filter(is_out).collect();
    if out.is_empty() { String::new() } else { format!("Not ranked: {}.", listed(&some(names(&out, context)))) }
}

/// "All 20 rounds added up, b takes 14 % more time than a (2–26 %), and here times add.": where a
/// typical round and all rounds together disagree, or may.
fn in_all(race: &Race, context: &Context) -> String {
    let name = |at: usize| &context.targets[at].name;
    let sentence = |found: &HigherTotal| {
        let range = found.sums.interval.map(|(low, high)| format!(" ({} to {})", signed(low), signed_percent(high)));
        let takes = match (found.is_shown, found.sums.most()) {
            (true, _) => format!("takes {} more time", super::text::percent(found.sums.ratio - 1.0)),
            (false, most) if most.is_finite() => format!("may take {} more time", super::text::percent_up(most - 1.0)),
            (false, _) => "may take more time".to_string(),
        };
        let range = range.filter(|_| found.is_shown).unwrap_or_default();
        format!(
            "All {} rounds added up, {} {takes} than {}{range}; times add here, so that counts.",
            found.sums.rounds,
            name(race.pick),
            name(found.than),
        )
    };
    race.higher_total[race.pick].iter().map(sentence).collect()
}

/// What a bound can be at most, to say more than that it is wide: twice the time.
const MOST_SAID: f64 = 1.0;

/// "at most 4 % slower than the best (95 %)".
pub(crate) fn at_most(bound: f64, Terms { better, worse, .. }: &Terms) -> String {
    match bound {
        0.0 => format!("no other is {better} (95 %)"),
        // A percentage of several hundred reads like a measured difference, which it is not.
        bound if bound > MOST_SAID && bound.is_finite() => format!("too noisy to say how much {worse} than the best"),
        bound if bound.is_finite() => {
            format!("at most {} {worse} than the best (95 %)", super::text::percent_up(bound))
        }
        _ => format!("too few rounds to bound how much {worse} than the best"),
    }
}

/// " 8 to 40 more rounds (4.0 min to 20.0 min) would settle it." True in eight cases of ten; the
/// rounds are those of a new run where this run may not have that many.
fn more(race: &Race, history: &History) -> String {
    let time = |rounds: u32| show_duration(f64::from(rounds) * history.round_ns as f64);
    let within = |from: u32, to: u32| match history.round_ns {
        0 => String::new(),
        _ if from == to => format!(" ({})", time(to)),
        _ => format!(" ({} to {})", time(from), time(to)),
    };
    let left = |needed: u32| about(needed.saturating_sub(race.rounds as u32).max(1));
    let most = history.most_rounds;
    match race.rounds_needed() {
        Some([Some(least), Some(last)]) if last <= most && left(least) == left(last) => {
            let from = left(least);
            format!(" As few as {}{} may settle it.", more_rounds(from), within(from, from))
        }
        Some([Some(least), Some(last)]) if last <= most => {
            let (from, to) = (left(least), left(last));
            format!(" {from} to {}{} would settle it.", more_rounds(to), within(from, to))
        }
        Some([Some(least), _]) if least <= most && race.rounds < most as usize => {
            let from = left(least);
            format!(
                " As few as {}{} may settle it; even all {most} rounds of this run may not.",
                more_rounds(from),
                within(from, from)
            )
        }
        Some([Some(least), Some(last)]) => {
            let (from, to) = (about(least), about(last).min(1000));
            format!(" A new run of {from} to {to} rounds{} would settle it.", within(from, to))
        }
        Some([Some(least), None]) => format!(" A new run of {} rounds or more may settle it.", about(least)),
        Some([None, _]) => " No run would settle it: 1000 rounds are too few.".to_string(),
        None => String::new(),
    }
}

/// "Slower: btrfs lzo (+15 %), btrfs zstd:1 (+33 %)." Against the pick, and the least first. The
/// tables compare with the reference: where that is not the pick, the sentence names what it
/// compares with, "Slower than xfs: ...".
fn slower(race: &Race, panel: &Panel, context: &Context) -> String {
    let title = format!("{}{}", capital(context.work.terms().worse), beyond(race, " than", context));
    group(&title, &race.slower, race, panel, context)
}

/// "Left early, not settled: btrfs (+17 %)."
fn left_early(race: &Race, panel: &Panel, context: &Context) -> String {
    let title = format!("Left early, not settled{}", beyond(race, " against", context));
    group(&title, &race.left_early, race, panel, context)
}

/// " than xfs"; empty where the pick is what the tables compare with.
fn beyond(race: &Race, word: &str, context: &Context) -> String {
    if context.work.reference == Some(race.pick) {
        return String::new();
    }
    format!("{word} {}", context.targets[race.pick].name)
}

fn group(title: &str, targets: &[usize], race: &Race, panel: &Panel, context: &Context) -> String {
    // In the panel's own unit, or with many targets by their times.
    let own = |at: usize| {
        let row = panel.rows.iter().find(|row| row.target == at)?;
        row.compared_with(race.pick).map(|found| found.estimate.ratio)
    };
    let ratio = |at: usize| own(at).or_else(|| panel.pairs.get(at, race.pick).map(|found| found.estimate.ratio));
    let mut found: Vec<(usize, Option<f64>)> = targets.iter().map(|at| (*at, ratio(*at))).collect();
    found.sort_by(|a, b| a.1.unwrap_or(0.0).total_cmp(&b.1.unwrap_or(0.0)));
    let shown = |(at, ratio): &(usize, Option<f64>)| {
        let by = ratio.map(|ratio| format!(" ({})", signed_percent_of(ratio))).unwrap_or_default();
        format!("{}{by}", context.targets[*at].name)
    };
    let shown: Vec<String> = found.iter().map(shown).collect();
    if shown.is_empty() { String::new() } else { format!("{title}: {}.", listed(&some(shown))) }
}

/// "+3.8 %": with the digits that a headline has.
fn signed_percent_of(ratio: f64) -> String {
    if ratio < 1.0 { signed_percent(ratio) } else { format!("+{}", super::text::percent(ratio - 1.0)) }
}

fn names(members: &[usize], context: &Context) -> Vec<String> {
    members.iter().map(|&at| context.targets[at].name.clone()).collect()
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

fn fastest<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let centre = |row: &Row| row.figure.as_ref().map_or(f64::INFINITY, |figure| figure.centre);
    rows.iter().copied().min_by(|a, b| centre(a).total_cmp(&centre(b)))
}

/// One line for a phase: the fastest, and the slower ones.
fn phase(panel: &Panel, context: &Context) -> String {
    let name = &panel.name;
    let row = |at: usize| panel.rows.iter().find(|row| row.target == at);
    let shown = |rows: &mut dyn Iterator<Item = &Row>| listed(&some(rows.map(|row| with_time(row, context)).collect()));
    let Some(race) = &panel.race else {
        return format!("{name}: {} (not ranked)", shown(&mut panel.rows.iter().filter(|row| row.figure.is_some())));
    };
    let best = shown(&mut race.may_be_best().filter_map(row));
    let first = match race.may_be_as_good.len() {
        0 if is_fastest(race) && !is_early(race, context) => format!("{best}, {}", context.work.terms().best),
        0 => format!("{best}; {}", bound(race, context)),
        _ if race.is_settled() => {
            format!("{best}; {}: {}", context.targets[race.pick].name, bound(race, context))
        }
        _ => format!("too close to call: {best}"),
    };
    let groups = [slower(race, panel, context), left_early(race, panel, context), too_few(race, context)];
    let groups = groups.iter().filter(|group| !group.is_empty());
    let groups: String = groups.map(|group| format!("; {}", small(group.trim_end_matches('.')))).collect();
    format!("{name}: {first}{groups}")
}

/// "Too few rounds: xfs.", of one phase.
fn too_few(race: &Race, context: &Context) -> String {
    let names = names(&race.too_few, context);
    if names.is_empty() { String::new() } else { format!("Too few rounds: {}.", listed(&some(names))) }
}

/// With a small first letter.
fn small(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
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
        Veto::BrokenPromises { cuts, of, is_acknowledged, work } => {
            let what = if *is_acknowledged { "transactions were lost or damaged" } else { "what was synced was lost" };
            let place = work.as_ref().map_or(String::new(), |work| format!(" of {work}"));
            format!("{what} in {cuts} of {}{place}", counted(*of as usize, "power cut"))
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
            let metric = super::text::plain(&metric::short_name(&limit.metric).replace('_', " "));
            format!("{metric} is {}, above the limit of {}", unit.show(*median), unit.show(limit.at_most))
        }
        Veto::Unfinished { rounds: 0, .. } => "no round of the whole job finished".to_string(),
        Veto::TooFew { rounds } => format!("too few rounds to compare ({rounds})"),
        Veto::Unfinished { rounds, of } => format!("only {rounds} of {} finished", counted(*of, "round")),
    }
}

impl Model {
    /// The sentences that open a report: one over all works if there are several, then one for each
    /// work. A verdict over weighted phases of the only work is its answer: that of all its phases
    /// alike would be a second one, and may be another.
    pub fn headlines(&self) -> Vec<String> {
        self.headlines_in_parts().iter().map(|parts| parts.concat()).collect()
    }

    pub(crate) fn headlines_in_parts(&self) -> Vec<HeadlineParts> {
        let works = &self.works;
        if works.iter().all(|work| work.rounds == 0) {
            let (cells, most) = (counted(self.planned_cells, "cell"), if self.may_need_fewer { "up to " } else { "" });
            let answer = format!("Nothing has been measured yet: {most}{cells} planned, none has ended.");
            return vec![[answer, String::new()]];
        }
        let several = works.len() > 1;
        let overall = self.overall.iter().map(|overall| {
            let [answer, rest] = overall.work.headline_parts(self);
            let depends = depends(self).filter(|_| several).map(|depends| format!(" {depends}"));
            [answer, rest + &depends.unwrap_or_default()]
        });
        let named = several || self.overall.is_some();
        let name = |work: &WorkReport| if named { format!("{}: ", work.name) } else { String::new() };
        let is_answered =
            !several && self.overall.as_ref().is_some_and(|overall| overall.work.verdict.kind != VerdictKind::Nothing);
        let own = works.iter().filter(|_| !is_answered);
        let own = own.map(|work| {
            let [answer, rest] = work.headline_parts(self);
            [name(work) + &answer, rest]
        });
        overall.chain(own).collect()
    }
}

/// Some where no target is among the best of every work: one number for all of them hides that.
fn depends(model: &Model) -> Option<String> {
    let works = &model.works;
    let common = (0..model.targets.len()).any(|at: usize| works.iter().all(|work| work.verdict.best.contains(&at)));
    let judged = works.iter().all(|work| !work.verdict.best.is_empty());
    let best_at = |work: &WorkReport| {
        let names: Vec<String> = work.verdict.best.iter().map(|&at| model.targets[at].name.clone()).collect();
        format!("{}: {}", work.name, listed(&names))
    };
    let each: Vec<String> = works.iter().map(best_at).collect();
    (judged && !common).then(|| format!("It depends on the work: {}.", each.join("; ")))
}

/// "55 % less space", "2.1 times the CPU time".
fn amount(estimate: &pickfs_stats::Estimate, noun: &str) -> String {
    let (amount, range) = super::text::difference(estimate);
    let shown = format!("{amount} {noun}");
    if range == "±0" { shown } else { format!("{shown} ({range})") }
}
