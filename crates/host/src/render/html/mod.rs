//! The report as one page of HTML that needs nothing but itself: no network, no folder next to it,
//! and no script, which only filters and changes the reference.
//!
//! The page is laid out here and computes nothing. The script reads judgements that were made in
//! Rust, for every reference, from a block of JSON. A content security policy that names style and
//! script by their hashes forbids everything else, should something of a journal ever pass as
//! markup.

mod forest;
mod island;
mod markup;
mod overview;
mod sections;
mod side_by_side;
pub mod site;
mod site_trend;
mod tables;

use super::chart::painter::{SHAPES, series_class};
use super::chart::{Sheet, panels, shapes};
use super::{Format, Options};
use crate::analysis::Model;
use crate::wording::headings;
use base64::Engine as _;
use markup::{json_in_script, text};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(crate) const HTML: Format = Format {
    name: "html",
    about: "one page with charts, filters and all that is known, for a browser; needs no network",
    run: Some(write),
    comparison: Some(side_by_side::comparison),
    ranking: Some(side_by_side::ranking),
    tunings: Some(side_by_side::tunings),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(page(model).0.as_bytes())
}

/// The room that a label of a ratio chart needs, in percent of its width.
const LABEL: f64 = 12.0;

/// With the shape that it has in charts.
fn name(sheet: &Sheet, target: usize) -> Markup {
    let place = sheet.place(target);
    html! {
        svg class={ "mark " (series_class(place)) } aria-hidden="true" {
            use href={ "#k" (place % SHAPES) } x="50%" y="50%" {}
        }
        span { (text(&sheet.model.targets[target].name)) }
    }
}

fn page(model: &Model) -> Markup {
    let sheet = Sheet::of(model);
    let title = question(model);
    let scripts = format!("script-src '{}'; img-src blob: data:; ", hash(SCRIPT));
    let first_panels = model.reports().scan(0, |next, work| {
        *next += panels(work).count();
        Some(*next - panels(work).count())
    });
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&browser_title(model, &title), &summary(model), STYLE, &scripts))
            body {
                a.skip href="#main" { "To the verdict" }
                svg.defs aria-hidden="true" { defs { (PreEscaped(shapes::KEYS)) (PreEscaped(shapes::FINDINGS)) } }
                header {
                    p.kicker { "pickfs report" }
                    h1 { (text(&title)) }
                    p.machine { (text(&model.setting())) }
                    (system(model))
                }
                main #main {
                    (sections::verdict(model))
                    (sections::first_panel(&sheet))
                    @if let Some(advice) = model.advice() {
                        section #use aria-label=(headings::TO_USE) { (sections::to_use(&advice)) }
                    }
                    (sections::controls(&sheet))
                    (overview::overview(&sheet))
                    (sections::why(model))
                    (sections::course(model))
                    (contents(model))
                    @for (place, (work, number)) in model.reports().zip(first_panels).enumerate() {
                        (sections::work(&sheet, work, (place, number)))
                    }
                    @if let Some(champions) = &model.champions { (sections::champions(&sheet, champions)) }
                    @if let Some(criteria) = &model.criteria { (sections::criteria(&sheet, criteria)) }
                    (sections::tail(&sheet))
                }
                (foot(model))
                script type="application/json" id="judged" { (json_in_script(&island::island(&sheet))) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The title; where that only lists the targets, what is asked of them.
fn question(model: &Model) -> String {
    let targets = model.targets.iter().filter(|target| !target.duplicate);
    let names: Vec<String> = targets.map(|target| target.name.clone()).collect();
    match names.as_slice() {
        _ if model.title.is_empty() => "pickfs".to_string(),
        [head @ .., last] if !head.is_empty() && model.title == names.join(", ") => {
            format!("Which one: {} or {last}?", head.join(", "))
        }
        _ => model.title.clone(),
    }
}

/// For the card that a chat shows of a link: the answer, and what was measured.
fn summary(model: &Model) -> String {
    let answer = model.headlines().into_iter().next().unwrap_or_default();
    format!("{answer} {}", model.setting()).trim().to_string()
}

/// Tabs of several runs of one plan differ by their date.
fn browser_title(model: &Model, title: &str) -> String {
    model.started.get(..16).map_or(title.to_string(), |start| format!("{} · {title}", start.replace('T', " ")))
}

fn system(model: &Model) -> Markup {
    html! {
        @if !model.system().is_empty() {
            dl.system { @for (name, value) in model.system() { div { dt { (name) } dd { (text(&value)) } } } }
        }
    }
}

/// A dot on its interval.
const ICON: &str = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M1 8h14M1 5v6M15 5v6' \
    stroke='%230072b2' stroke-width='2'/><circle cx='8' cy='8' r='3.5' fill='%230072b2'/></svg>";

/// `about` is for cards of links, `more` what the page may load in addition to its style.
fn head(title: &str, about: &str, style: &str, more: &str) -> Markup {
    let policy = format!("default-src 'none'; style-src '{}'; {more}base-uri 'none'; form-action 'none'", hash(style));
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (text(title)) }
            link rel="icon" href=(ICON);
            meta property="og:title" content=(text(title));
            meta property="og:type" content="article";
            @if !about.is_empty() {
                meta name="description" property="og:description" content=(text(about));
            }
            style { (PreEscaped(style)) }
        }
    }
}

/// As a content security policy names what may be run.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}

fn contents(model: &Model) -> Markup {
    let best = model.champions.as_ref().map(|_| ("best-of-each", headings::BEST_OF_EACH));
    let trade_offs = model.criteria.as_ref().map(|_| ("trade-offs", headings::TRADE_OFFS));
    let others = [("reading", "How to read"), ("missing", headings::SUSPICIOUS), ("effect", headings::SETTINGS)];
    html! {
        nav aria-label="Parts of this page" {
            ul {
                @for (place, work) in model.reports().enumerate() {
                    li data-work=(place) { a href={ "#work-" (place) } { (text(&work.name)) } }
                }
                @for (id, words) in best.into_iter().chain(trade_offs).chain(others) { li { a href={ "#" (id) } { (words) } } }
            }
        }
    }
}

fn foot(model: &Model) -> Markup {
    let parts = [
        ("Run", &model.run),
        ("begun", &model.started),
        ("measured by pickfs", &model.pickfs),
        ("journal", &model.journal),
    ];
    let known = parts.iter().filter(|(_, value)| !value.is_empty()).map(|(word, value)| format!("{word} {value}"));
    html! { footer { p { (text(&known.collect::<Vec<_>>().join(" · "))) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `printf '' | openssl dgst -sha256 -binary | base64` says.
    #[test]
    fn hashes_are_those_of_the_policy() {
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    /// The block of script ends where it should.
    #[test]
    fn style_and_script_hold_no_end_of_themselves() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
    }
}
