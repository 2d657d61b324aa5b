//! Pages of several runs: what changed between two, and which target is best on which disk. No
//! script and no request.

use super::markup::{list, text};
use super::sections::to_use;
use super::site::{page, table};
use crate::render::Options;
use crate::render::chart::{axis::Axis, effects};
use crate::wording::between_runs::{RunComparison, TimeChange};
use crate::wording::ranking::{BEST_COLUMNS, BEST_LEGEND, COLUMNS, Choice, LEGEND, best_cells, cells, sentence};
use crate::wording::text::percent;
use crate::wording::tuning::{CHOICES_LEGEND, EFFECTS, EFFECTS_LEGEND, Row as Effect, Tuned, where_it_matters};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};
use std::io::{self, Write};

/// Width and height of a row's plot, and the room at its ends, in pixels.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 22.0;
const MARGIN: f64 = 8.0;

pub(super) fn comparison(runs: &RunComparison, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let axis = axis(runs);
    // What the gate asks about comes first.
    let (deciding, other): (Vec<_>, Vec<_>) = runs.rows.iter().partition(|row| row.change.decides);
    let body = html! {
        h1 { "Before and now" }
        p.answer { (text(&runs.headline)) }
        (table("Times before and now", &["time of", "before", "now", "now / before", "", ""], html! {
            @for row in deciding.into_iter().chain(other) {
                tr {
                    th scope="row" { (text(&row.name())) }
                    td data-head="before" { (text(&row.old)) }
                    td data-head="now" { (text(&row.new)) }
                    td data-head="ratio" { (text(&row.ratio)) }
                    td.bar { (plot(&axis, runs.threshold, row)) }
                    td class=[row.change.is_regression.then_some("slower")] { (row.says) }
                }
            }
        }))
        p.legend { (text(&format!("The band is what does not matter: {} and less. ", percent(runs.threshold)))) (text(&runs.caveat)) }
        @if !runs.missing.is_empty() || !runs.facts.is_empty() { h2 { "What else differs" } }
        (list(None, &runs.missing))
        (list(None, &runs.facts.iter().map(|fact| fact.sentence()).collect::<Vec<_>>()))
    };
    out.write_all(page("Before and now", "", body).as_bytes())
}

pub(super) fn ranking(choices: &[Choice], _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let best = best_cells(choices);
    let body = html! {
        h1 { "Which is best on which disk" }
        (grid("Rankings", &COLUMNS, choices.iter().map(cells)))
        p.legend { (text(LEGEND)) }
        (list(None, &choices.iter().map(sentence).collect::<Vec<_>>()))
        @if !best.is_empty() {
            h2 { "The best of each file system" }
            (grid("The best of each file system", &BEST_COLUMNS, best))
            p.legend { (text(BEST_LEGEND)) }
        }
    };
    out.write_all(page("Which is best on which disk", "", body).as_bytes())
}

/// With the picture of the effects.
pub(super) fn tunings(tunings: &[Tuned], _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let title = if let [tuned] = tunings { tuned.title() } else { "Which option matters where".to_string() };
    let several = (tunings.len() > 1).then(|| where_it_matters(tunings));
    let picture = format!("data:image/svg+xml;base64,{}", STANDARD.encode(effects::picture(tunings)));
    let body = html! {
        h1 { (text(&title)) }
        @if let Some((heads, cells)) = several {
            (grid("Which option matters where", &heads, cells))
            p.legend { (text(CHOICES_LEGEND)) }
        }
        @for tuned in tunings {
            @if tunings.len() > 1 { h2 { (text(&tuned.title())) } }
            p { strong { (text(&tuned.headline())) } }
            p { (text(&tuned.how())) }
            (grid("Effects", &EFFECTS, tuned.effects.iter().map(Effect::cells)))
            (list(None, &tuned.findings()))
            @if let Some(advice) = &tuned.advice {
                (to_use(advice))
            }
        }
        p.legend { (text(EFFECTS_LEGEND)) }
        img src=(picture) alt="The effect of each setting with its interval";
    };
    out.write_all(page(&title, "", body).as_bytes())
}

/// Each row begins with its name.
fn grid(label: &str, heads: &[impl AsRef<str>], rows: impl IntoIterator<Item = impl AsRef<[String]>>) -> Markup {
    let heads: Vec<&str> = heads.iter().map(AsRef::as_ref).collect();
    let rows = html! {
        @for row in rows { tr {
            @for (at, cell) in row.as_ref().iter().enumerate() {
                @if at == 0 { th scope="row" { (text(cell)) } } @else { td data-head=(heads[at]) { (text(cell)) } }
            }
        } }
    };
    table(label, &heads, rows)
}

/// One axis for all ratios of a page; an interval without an end leaves the picture.
fn axis(runs: &RunComparison) -> Axis {
    let estimates = runs.rows.iter().filter_map(|row| row.change.estimate.as_ref());
    let whole = |(low, high): &(f64, f64)| *low > 0.0 && high.is_finite();
    let spans = estimates.map(|found| (found.ratio, found.interval.filter(whole)));
    Axis::around(runs.threshold, spans, MARGIN, WIDTH - MARGIN)
}

fn plot(axis: &Axis, threshold: f64, row: &TimeChange) -> Markup {
    let place = |ratio: f64| format!("{:.1}", axis.at(ratio));
    let (from, to) = axis.band(threshold);
    html! {
        @if let Some(found) = &row.change.estimate {
            svg.ratios width=(WIDTH) height=(HEIGHT) aria-hidden="true" {
                rect.band x=(format!("{from:.1}")) width=(format!("{:.1}", to - from)) height=(HEIGHT) {}
                line.one x1=(place(1.0)) x2=(place(1.0)) y1="0" y2=(HEIGHT) {}
                @if let Some((low, high)) = found.interval {
                    line x1=(place(low)) x2=(place(high)) y1=(HEIGHT / 2.0) y2=(HEIGHT / 2.0) {}
                }
                circle cx=(place(found.ratio)) cy=(HEIGHT / 2.0) r="4" {}
            }
        }
    }
}
