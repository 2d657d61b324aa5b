//! The report as one page of HTML that needs nothing but itself: no network, no folder beside it, and no script, which
//! only filters and changes the reference.
//!
//! The page is laid out here and computes nothing. The script reads judgements that were made in Rust, for every
//! reference, from a block of JSON. A content security policy that names style and script by their hashes forbids
//! everything else, should something of a journal ever pass as markup.

mod forest;
mod island;
mod markup;
mod sections;
mod tables;

use super::chart::painter::{SHAPES, series_class};
use super::chart::{Sheet, panels, shapes, works};
use super::{Format, Options};
use crate::analysis::Model;
use crate::wording::text::escaped;
use base64::Engine as _;
use markup::{Markup, json_in_script};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub const HTML: Format = Format {
    name: "html",
    about: "one page with charts, filters and all that is known, for a browser; needs no network",
    run: Some(write),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(page(model).as_bytes())
}

/// The room that a label of a ratio chart needs, in percent of its width.
const LABEL: f64 = 12.0;

/// With the shape that it has in charts.
fn name(page: &mut Markup, sheet: &Sheet, target: usize) {
    let place = sheet.place(target);
    page.put(format_args!(
        "<svg class=\"mark {}\" aria-hidden=\"true\"><use href=\"#k{}\" x=\"50%\" y=\"50%\"/></svg>",
        series_class(place),
        place % SHAPES
    ));
    page.element("span", &sheet.model.targets[target].name);
}

fn page(model: &Model) -> String {
    let sheet = Sheet::of(model);
    let mut page = Markup::default();
    head(&mut page, model);
    sections::verdict(&mut page, &sheet);
    sections::controls(&mut page, &sheet);
    contents(&mut page, &sheet);
    let mut number = 0;
    for (place, work) in works(model).enumerate() {
        sections::work(&mut page, &sheet, work, (place, number));
        number += panels(work).count();
    }
    if let Some(champions) = &model.champions {
        sections::champions(&mut page, &sheet, champions);
    }
    if let Some(criteria) = &model.criteria {
        sections::criteria(&mut page, &sheet, criteria);
    }
    sections::legend(&mut page);
    sections::tail(&mut page, &sheet);
    foot(&mut page, model);
    page.raw("<script type=\"application/json\" id=\"judged\">").raw(&json_in_script(&island::island(&sheet)));
    page.raw("</script>\n<script>").raw(SCRIPT).raw("</script>\n</body></html>\n");
    page.0
}

fn head(page: &mut Markup, model: &Model) {
    let title = if model.title.is_empty() { "pickfs" } else { &model.title };
    page.raw("<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">");
    page.put(format_args!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; script-src '{}'; \
         img-src blob: data:; base-uri 'none'; form-action 'none'\">",
        hash(STYLE),
        hash(SCRIPT)
    ));
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">");
    page.put(format_args!("<title>{}</title>", escaped(title))).raw("<style>").raw(STYLE).raw("</style></head>\n");
    page.raw("<body><a class=\"skip\" href=\"#main\">To the verdict</a>");
    page.put(format_args!(
        "<svg class=\"defs\" aria-hidden=\"true\"><defs>{}{}</defs></svg>\n",
        shapes::KEYS,
        shapes::FINDINGS
    ));
}

/// As a content security policy names what may be run.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}

fn contents(page: &mut Markup, sheet: &Sheet) {
    page.raw("<nav aria-label=\"Parts of this page\"><ul>");
    for (place, work) in works(sheet.model).enumerate() {
        page.put(format_args!("<li data-work=\"{place}\"><a href=\"#work-{place}\">"))
            .text(&work.name)
            .raw("</a></li>");
    }
    let all_round = sheet.model.criteria.as_ref().map(|_| ("all-round", "All round"));
    let others = [("reading", "How to read"), ("missing", "Doubts"), ("effect", "In effect")];
    for (id, words) in all_round.into_iter().chain(others) {
        page.put(format_args!("<li><a href=\"#{id}\">{words}</a></li>"));
    }
    page.raw("</ul></nav>\n");
}

fn foot(page: &mut Markup, model: &Model) {
    page.raw("</main>\n<footer>");
    let parts = [
        ("Run", &model.run),
        ("begun", &model.started),
        ("measured by pickfs", &model.pickfs),
        ("journal", &model.journal),
    ];
    let known = parts.iter().filter(|(_, value)| !value.is_empty()).map(|(word, value)| format!("{word} {value}"));
    page.element("p", &known.collect::<Vec<_>>().join(" · "));
    page.raw("</footer>\n");
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
