//! The parts of the page from top to bottom.

use super::markup::{list, note, text};
use super::{forest, name, tables};
use crate::analysis::{Champions, Criteria, Model, Panel, Table, VerdictKind, WorkReport};
use crate::render::chart::series::{self, Chart};
use crate::render::chart::{Sheet, flame, panels, shapes, waterfall};
use crate::wording::advice::Advice;
use crate::wording::champions::COLUMNS;
use crate::wording::text::capital;
use crate::wording::why::LEDGERS;
use crate::wording::{headings, marks};
use maud::{Markup, PreEscaped, html};
use pickfs_core::metric::{self, ReportTable};

pub(crate) fn verdict(model: &Model) -> Markup {
    let kind = model.reports().next().map_or("No verdict", kind);
    let headlines = model.headlines_in_parts();
    let (first, others) = headlines.split_at(headlines.len().min(1));
    html! {
        section #verdict aria-labelledby="verdict-title" {
            h2 #verdict-title { (kind) }
            @for [answer, rest] in first {
                p.headline { (text(answer)) }
                @if !rest.is_empty() { p.rest { (text(rest.trim_start())) } }
            }
            @if !others.is_empty() {
                ul.others { @for [answer, rest] in others {
                    li { (text(answer)) @if !rest.is_empty() { " " span.rest { (text(rest.trim_start())) } } }
                } }
            }
            @for line in model.explanations() { p.rest { (text(&line)) } }
        }
    }
}

/// The whole job of all work as a picture, right below the answer; its work leaves it out.
pub(crate) fn first_panel(sheet: &Sheet) -> Markup {
    let work = sheet.model.reports().next().filter(|work| is_above(work, 0));
    html! {
        @if let Some(work) = work {
            section.panel data-work="0" data-phase=[tables::phase(&work.phases[0].phase)] aria-label=(text(&work.name)) {
                (forest::table(sheet, work, (0, 0)))
            }
        }
    }
}

/// More rows would take the overview off the first screen.
const MOST_ABOVE: usize = 8;

/// Whether the panel of that number stands above, not with its work.
fn is_above(work: &WorkReport, number: usize) -> bool {
    let has_few_rows = |panel: &Panel| panel.rows.len() <= MOST_ABOVE;
    number == 0 && !work.is_foreign && work.phases.first().is_some_and(has_few_rows)
}

/// Lines to paste; the script adds a button to each.
pub(crate) fn to_use(advice: &Advice) -> Markup {
    html! {
        h2 { (headings::TO_USE) " " (text(&advice.target)) }
        dl.paste { @for step in &advice.steps {
            div { dt { (capital(step.when)) } dd { code { (text(&step.command)) } } }
        } }
        (list(None, &advice.notes))
    }
}

/// Parts of the differences that `pickfs why` has explained.
pub(crate) fn why(model: &Model) -> Markup {
    let (charts, flames) = (waterfall::waterfalls(model), flame::flames(model));
    html! {
        @if model.why.iter().any(|kept| !kept.pairs.is_empty()) {
            section #why aria-labelledby="why-title" {
                h2 #why-title { (headings::WHY) }
                @if let Some(first) = charts.first() { (note(&first.about)) }
                div.charts { @for chart in &charts { (figure(chart)) } }
                @if let Some(first) = flames.first() { (note(&first.about)) }
                div.charts.whole { @for chart in &flames { (figure(chart)) } }
                (ledgers(model))
            }
        }
    }
}

fn ledgers(model: &Model) -> Markup {
    html! {
        details {
            summary { (headings::LEDGERS) }
            (note(LEDGERS))
            @for ledger in &model.ledgers("\u{a0}\u{a0}") {
                (tables::figures("", &ledger.title, ledger.heads, &ledger.rows))
                (list(None, &ledger.proofs))
            }
        }
    }
}

/// Doubts about the run, and how it went.
pub(crate) fn course(model: &Model) -> Markup {
    html! {
        @if !model.warnings().is_empty() {
            div.care { h3 { span aria-hidden="true" { "⚠" } " " (headings::WARNINGS) } (list(None, &model.warnings())) }
        }
        @if !model.course().is_empty() {
            details { summary { "How the run went" } (list(Some("course"), &model.course())) }
        }
    }
}

fn kind(work: &WorkReport) -> &'static str {
    let has_figures = || work.phases.iter().flat_map(|panel| &panel.rows).any(|row| row.figure.is_some());
    match work.verdict.kind {
        VerdictKind::Pick => "The pick",
        VerdictKind::Tie => "A tie",
        VerdictKind::Unresolved => "Still open",
        VerdictKind::TooFewRounds => "Too few rounds",
        VerdictKind::Single => "One target",
        VerdictKind::Nothing if has_figures() => "No verdict",
        VerdictKind::Nothing => "Nothing was measured",
    }
}

/// Controls that need the script, which shows them.
pub(crate) fn controls(sheet: &Sheet) -> Markup {
    let model = sheet.model;
    let reference = model.reports().find_map(|work| work.reference);
    let may_be_reference = |target: &&usize| reference == Some(**target) || is_judged_against(model, **target);
    let all: Vec<&WorkReport> = model.reports().collect();
    let mut phases: Vec<&str> = Vec::new();
    for panel in all.iter().flat_map(|work| &work.phases) {
        if !panel.phase.is_empty() && !phases.contains(&panel.phase.as_str()) {
            phases.push(&panel.phase);
        }
    }
    html! {
        form #controls hidden aria-label="What is shown" {
            label {
                "Compare with "
                select #reference {
                    @for &target in sheet.shown.iter().filter(may_be_reference) {
                        option value=(target) selected[reference == Some(target)] { (text(&model.targets[target].name)) }
                    }
                }
            }
            (choices("Targets", "t", sheet.shown.iter().map(|&t| (t.to_string(), model.targets[t].name.as_str()))))
            @if all.len() > 1 {
                (choices("Works", "work", all.iter().enumerate().map(|(at, work)| (at.to_string(), work.name.as_str()))))
            }
            (choices("Phases", "phase", phases.iter().map(|phase| (phase.to_string(), *phase))))
            button #theme type="button" { "Dark" }
            p #said role="status" {}
        }
    }
}

/// With many targets only pairs with the plan's reference are judged; a target without figures is
/// in none.
fn is_judged_against(model: &Model, target: usize) -> bool {
    let mut rows = model.reports().flat_map(panels).flat_map(|panel| &panel.rows);
    rows.any(|row| row.compared_with(target).is_some())
}

fn choices<'a>(title: &str, kind: &str, entries: impl Iterator<Item = (String, &'a str)>) -> Markup {
    html! {
        details.choices {
            summary { (title) }
            fieldset {
                legend { (title) }
                @for (value, name) in entries {
                    label { input type="checkbox" checked data-kind=(kind) value=(text(&value)); " " (text(name)) }
                }
            }
        }
    }
}

/// `number` is that of the work's first panel.
pub(crate) fn work(sheet: &Sheet, work: &WorkReport, (place, number): (usize, usize)) -> Markup {
    let overall = sheet.model.overall.as_ref().filter(|overall| std::ptr::eq(&overall.work, work));
    let sentences = work.sentences(sheet.model);
    let groups: Vec<&[Panel]> = work.phases.chunk_by(|a, b| a.phase == b.phase).collect();
    let firsts = groups.iter().scan(0, |next, group| {
        *next += group.len();
        Some(*next - group.len())
    });
    // If a work has several phases, only the whole job is open.
    let (open, folded): (Vec<_>, Vec<_>) =
        groups.iter().zip(firsts).partition(|(group, _)| groups.len() == 1 || group[0].phase.is_empty());
    let of_phase = |phase: &str| {
        let begin = format!("{phase}: ");
        sentences.iter().find_map(|line| line.strip_prefix(&begin).map(str::to_string))
    };
    html! {
        section.work data-work=(place) id={ "work-" (place) } {
            h2 { (text(&work.name)) }
            @if let Some(overall) = overall {
                (note(&overall.made_of()))
                @if !overall.sums.is_empty() { (note(&overall.sums_shown(sheet.model))) }
                @if let Some(robustness) = &overall.robustness { (note(&robustness.sentence(sheet.model))) }
            }
            (list(Some("notes"), &work.notes(sheet.model)))
            @for (group, first) in open { (panels_of(sheet, work, group, (first, number + first))) }
            (note(&work.noise_floor(sheet.model)))
            @if place == 0 { (legend()) }
            @if work.is_foreign { (list(Some("sentences"), &sentences)) }
            @if folded.len() > 1 { h3 { "Phase by phase" } }
            @for (group, first) in folded {
                details.phase data-phase=[tables::phase(&group[0].phase)] {
                    summary {
                        b { (text(&group[0].phase)) }
                        @if let Some(about) = sheet.model.phases.get(&(work.name.clone(), group[0].phase.clone())) {
                            span.about { " " (text(about)) }
                        }
                        @if let Some(sentence) = of_phase(&group[0].phase) { small { (text(&sentence)) } }
                    }
                    (panels_of(sheet, work, group, (first, number + first)))
                }
            }
            @if !work.beside.is_empty() { (beside(sheet, work, number + work.phases.len())) }
        }
    }
}

/// Ratio charts of one phase, and its other charts. `first` is the place of its first panel in the
/// work.
fn panels_of(sheet: &Sheet, work: &WorkReport, group: &[Panel], (first, number): (usize, usize)) -> Markup {
    let phase = group[0].phase.as_str();
    let own = |charts: Vec<Chart>| charts.into_iter().filter(|chart| chart.phase == phase).collect::<Vec<_>>();
    html! {
        @for at in (0..group.len()).filter(|at| !is_above(work, number + at)) {
            div.panel data-phase=[tables::phase(phase)] { (forest::table(sheet, work, (first + at, number + at))) }
        }
        (charts(sheet, if work.is_foreign { "Every run" } else { "Rounds in order" }, &own(series::rounds(sheet, work))))
        (charts(sheet, "Latency of single operations", &own(series::latencies(sheet, work))))
        (charts(sheet, "The device over time", &own(series::rates(sheet, work))))
    }
}

/// A table of the page, and the number of its first panel for the script.
type Numbered<'a> = (usize, &'a Table);

fn beside(sheet: &Sheet, work: &WorkReport, first: usize) -> Markup {
    let mut number = first;
    let numbered = work.beside.iter().map(|table| {
        number += table.panels.len();
        (number - table.panels.len(), table)
    });
    let (main, more): (Vec<Numbered>, Vec<Numbered>) = numbered.partition(|(_, table)| is_of_the_whole(table));
    html! {
        h3 { (headings::OTHER_COSTS) }
        (list(Some("sentences"), &work.trade_offs(sheet.model)))
        div.tables { @for (number, table) in main { (tables::beside(sheet, work, table, number)) } }
        @if !more.is_empty() || !work.compression.is_empty() {
            details {
                summary { "Every other figure" }
                @for found in &work.compression { (tables::compression(sheet, work, found)) }
                @for (number, table) in more { (tables::beside(sheet, work, table, number)) }
            }
        }
    }
}

/// What is compared over all phases, and the rate of the work: the rest explains, and is folded
/// away.
fn is_of_the_whole(table: &Table) -> bool {
    let is_compared = |panel: &Panel| panel.phase.is_empty() && panel.rows.iter().any(|row| row.against.is_some());
    let is_rate = |panel: &Panel| metric::find(&panel.metric).is_some_and(|row| row.shown == ReportTable::Throughput);
    !table.is_detail() && table.panels.iter().any(|panel| is_compared(panel) || is_rate(panel))
}

fn charts(sheet: &Sheet, title: &str, charts: &[Chart]) -> Markup {
    html! {
        @if let Some(first) = charts.first() {
            h3 { (title) }
            (note(&first.about))
            (key(sheet))
            div.charts { @for chart in charts { (figure(chart)) } }
        }
    }
}

/// The shape and hue that each target has in charts.
fn key(sheet: &Sheet) -> Markup {
    html! {
        ul.key aria-label="Targets" { @for &target in &sheet.shown { li data-t=(target) { (name(sheet, target)) } } }
    }
}

fn figure(chart: &Chart) -> Markup {
    let plot = &chart.plot;
    html! {
        figure data-phase=[tables::phase(&chart.phase)] {
            figcaption { (text(&chart.title)) }
            svg.chart data-name=(chart.name) viewBox={ "0 0 " (plot.width) " " (plot.height) } role="img"
                aria-label=(text(&format!("{}. {}", chart.title, chart.about))) {
                (PreEscaped(&plot.body))
            }
        }
    }
}

pub(crate) fn champions(sheet: &Sheet, champions: &Champions) -> Markup {
    html! {
        section #best-of-each {
            h2 { (headings::BEST_OF_EACH) }
            (tables::figures("", &format!("Time of {}", champions.of), COLUMNS, champions.rows_shown(sheet.model)))
            @if let [head, rows @ ..] = champions.factor_shown().as_slice() {
                (tables::figures("", "By option", head.iter().map(String::as_str), rows))
            }
            @for line in champions.legend(sheet.model) { (note(&line)) }
        }
    }
}

/// Once for each reference; the script shows the one that is chosen.
pub(crate) fn criteria(sheet: &Sheet, criteria: &Criteria) -> Markup {
    html! {
        section #trade-offs {
            h2 { (headings::TRADE_OFFS) }
            (note("What cannot be added up, side by side: less is better in all."))
            (key(sheet))
            @for (at, row) in criteria.rows.iter().enumerate() {
                div data-reference=(row.target) hidden[row.target != criteria.reference] {
                    div.charts { @for chart in series::criteria(sheet, criteria, at) { (figure(&chart)) } }
                    (tables::criteria(sheet, criteria, at))
                }
            }
        }
    }
}

/// What is missing, in doubt, and was in effect; where the time went.
pub(crate) fn tail(sheet: &Sheet) -> Markup {
    let model = sheet.model;
    let (weakened, missing) = (model.weakened(), model.not_measured());
    let machine: Vec<(&str, &str)> = model.host.iter().map(|fact| (fact.name.as_str(), fact.value.as_str())).collect();
    html! {
        section #missing {
            h2 { (headings::NOT_MEASURED) ", and " (headings::SUSPICIOUS.to_lowercase()) }
            @if missing.is_empty() && model.flags.is_empty() && weakened.is_empty() {
                p { "Every planned cell was measured" @if model.doubts.is_empty() { ", and nothing is in doubt" } "." }
            }
            @for (title, lines) in [(headings::NOT_MEASURED, &missing), (headings::WEAKER, &weakened)] {
                @if !lines.is_empty() { h3 { (title) } }
                (list(None, lines))
            }
            (doubts(model))
        }
        section #effect {
            h2 { (headings::SETTINGS) }
            (note("Read back from kernel and tools while it ran."))
            (tables::effect(sheet, &model.effect))
            (tables::facts("The machine", &machine))
        }
        @if !model.ledger.parts.is_empty() { (ledger(model)) }
    }
}

/// One kind after the other, as a run on a busy machine has hundreds.
fn doubts(model: &Model) -> Markup {
    let flags = &model.flags;
    html! {
        @if !flags.is_empty() { h3 { (headings::SUSPICIOUS) } }
        @for kind in flags.chunk_by(|a, b| a.flag == b.flag) {
            details {
                summary {
                    (text(&kind[0].flag)) " in " (kind.len()) @if kind.len() == 1 { " place" } @else { " places" }
                }
                ul { @for flag in kind { li { (text(&flag.sentence(model))) } } }
            }
        }
    }
}

fn ledger(model: &Model) -> Markup {
    let ledger = &model.ledger;
    let shares = ledger.parts.iter().scan(0.0, |from, part| {
        let share = part.share * 100.0;
        *from += share;
        Some((format!("{:.2}%", *from - share), format!("{share:.2}%")))
    });
    html! {
        section #ledger {
            h2 { (headings::TIME_SPENT) }
            p { (text(&ledger.sentence())) "." }
            svg.ledger aria-hidden="true" {
                @for (at, (from, share)) in shares.enumerate() {
                    rect class={ "h" (at) " p" (at) } x=(from) width=(share) height="100%" {}
                }
            }
            ul.key {
                @for (at, part) in ledger.parts.iter().enumerate() {
                    li {
                        svg class={ "swatch h" (at) } aria-hidden="true" {
                            rect class={ "p" (at) } width="100%" height="100%" {}
                        }
                        (part.name) " " (text(&part.shown()))
                    }
                }
            }
        }
    }
}

/// How the pictures are read.
pub(crate) fn legend() -> Markup {
    let all: Vec<_> = marks::ALL.iter().collect();
    html! {
        div #reading {
            ul class="key legend" {
                @for (finding, words) in shapes::MEANINGS {
                    li {
                        svg.mark aria-hidden="true" {
                            g class={ "f-" (finding) } { use href={ "#f-" (finding) } x="50%" y="50%" {} }
                        }
                        (words)
                    }
                }
            }
            details {
                summary { "How to read these charts" }
                (note(HOW_TO_READ))
                (note(&format!("{}.", marks::meanings(&all, "the reference").join("; "))))
            }
        }
    }
}

const HOW_TO_READ: &str = "Marks are ratios paired by round, lines their 95 % intervals, on a logarithmic axis; further \
                           left is less: faster by times, slower by rates. In the shaded band differences are too small to matter, or noise. In “every \
                           round” each stroke is a round and the long one the median.";
