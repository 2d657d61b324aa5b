//! Ratio charts: a table whose rows hold a small plot each, so that the picture is also the figures, on any width of
//! page. Places are percentages. What a plot shows for each reference is computed here, once, for the page and for its
//! script alike.

use super::Sheet;
use super::markup::Markup;
use crate::analysis::{Comparison, Figure, Panel, Row, WorkReport};
use crate::render::svg::Axis;
use crate::stats::Finding;
use crate::wording::marks;
use serde_json::{Value, json};

/// A panel against one reference. All places are percent of the plot's width.
pub struct View {
    pub ticks: Vec<(f64, String)>,
    pub band: (f64, f64),
    pub one: f64,
    pub marks: Vec<Mark>,
}

/// A row of it.
pub struct Mark {
    pub target: usize,
    /// The symbol; empty where nothing is to be shown.
    pub finding: &'static str,
    pub at: f64,
    pub from: f64,
    pub to: f64,
    /// "×0.88 (0.84–0.92) =".
    pub ratio: String,
    pub words: String,
}

impl View {
    pub fn of(panel: &Panel, reference: Option<usize>) -> View {
        let compared =
            |row: &Row| reference.and_then(|reference| row.compared_with(reference).or(own(row, reference)).cloned());
        let found: Vec<Option<Comparison>> = panel.rows.iter().map(compared).collect();
        let axis = Axis::around(panel.band, found.iter().flatten().map(|found| &found.estimate), 3.0, 97.0);
        let mark = |(row, found): (&Row, &Option<Comparison>)| mark(row, found.as_ref(), &axis, reference);
        View {
            ticks: axis.ticks_apart(12.0),
            band: axis.band(panel.band.threshold),
            one: axis.one(),
            marks: panel.rows.iter().zip(&found).map(mark).collect(),
        }
    }

    /// A ratio alone, and what it says: "×0.88 (0.84–0.92)".
    pub fn ratio_of(row: &Row, reference: usize) -> (String, String) {
        let found = row.compared_with(reference).or(own(row, reference));
        let is_own = row.figure.is_some() && reference == row.target;
        let lacking = if is_own { "reference" } else { "" };
        found.map_or((lacking.to_string(), String::new()), |found| (ratio(found), found.words.clone()))
    }

    pub fn json(&self) -> Value {
        let mark = |mark: &Mark| {
            json!([mark.target, mark.finding, round(mark.at), round(mark.from), round(mark.to), mark.ratio, mark.words])
        };
        let ticks: Vec<Value> = self.ticks.iter().map(|(x, label)| json!([round(*x), label])).collect();
        json!({
            "ticks": ticks,
            "band": [round(self.band.0), round(self.band.1 - self.band.0)],
            "one": round(self.one),
            "marks": self.marks.iter().map(mark).collect::<Vec<_>>(),
        })
    }
}

/// The plan's own reference is compared with even where there are too many targets for all pairs.
fn own(row: &Row, reference: usize) -> Option<&Comparison> {
    row.against.as_ref().filter(|_| row.others.is_empty() && row.target != reference)
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn mark(row: &Row, found: Option<&Comparison>, axis: &Axis, reference: Option<usize>) -> Mark {
    let own = row.figure.is_some() && reference == Some(row.target);
    let Some(found) = found.filter(|_| !own) else {
        let (finding, ratio) = if own { ("reference", "reference") } else { ("", "") };
        let (ratio, words, one) = (ratio.to_string(), String::new(), axis.one());
        return Mark { target: row.target, finding, at: one, from: one, to: one, ratio, words };
    };
    let estimate = &found.estimate;
    let (low, high) = estimate.interval.unwrap_or((estimate.ratio, estimate.ratio));
    let words = format!("{}{}", found.words, marks::caveats(found));
    Mark {
        target: row.target,
        finding: symbol(found.finding.as_ref()),
        at: axis.at(estimate.ratio),
        from: axis.at(low),
        to: axis.at(high),
        ratio: ratio(found),
        words,
    }
}

fn symbol(finding: Option<&Finding>) -> &'static str {
    match finding {
        Some(Finding::Lower) => "less",
        Some(Finding::Higher) => "more",
        Some(Finding::ProbablyLower) => "maybe-less",
        Some(Finding::ProbablyHigher) => "maybe-more",
        Some(Finding::Tie) => "tie",
        Some(Finding::TooFewRounds) => "few",
        Some(Finding::Unresolved { .. }) | None => "open",
    }
}

fn ratio(found: &Comparison) -> String {
    format!("×{}{}", found.shown, marks::signs(&marks::of_ratio(found)))
}

/// The table of a work's panel at that place; `number` is under which the script finds its views.
pub fn table(page: &mut Markup, sheet: &Sheet, work: &WorkReport, (place, number): (usize, usize)) {
    let panel = &work.phases[place];
    let view = View::of(panel, work.reference);
    super::tables::open_scroll(page, &format!("{}: times and ratios of {}", work.name, panel.name));
    page.put(format_args!("<table class=\"forest\" data-p=\"{number}\"><caption>")).element("b", &panel.name);
    let noise = panel.noise.as_ref().map_or(String::new(), |noise| format!("; noise floor {}", noise.shown));
    page.element("span", &format!(" differences within {} do not matter here{noise}", panel.threshold_shown));
    if let Some(why) = &panel.refused {
        page.element("em", &format!(" {why}"));
    }
    page.raw("</caption><thead><tr><th scope=\"col\">Target</th><th scope=\"col\" class=\"plot\">Time relative to <span data-named>");
    page.text(work.reference.map_or("", |at| &sheet.model.targets[at].name));
    page.raw("</span></th><th scope=\"col\">Ratio, 95 % interval</th><th scope=\"col\" class=\"n\">Median</th><th scope=\"col\" class=\"rounds\">Every round</th></tr></thead><tbody>\n");
    for (row, mark) in panel.rows.iter().zip(&view.marks) {
        match &row.figure {
            Some(figure) => table_row(page, sheet, panel, (row, figure), (mark, &view)),
            // Why is said once, in the first panel.
            None => absent(page, sheet, row, if place == 0 { &row.absent.why } else { row.absent.word }),
        }
    }
    page.raw("</tbody>");
    foot(page, panel, &view);
    page.raw("</table></div>\n");
}

fn foot(page: &mut Markup, panel: &Panel, view: &View) {
    page.raw("<tfoot aria-hidden=\"true\"><tr><td></td><td class=\"plot\"><svg class=\"ticks\">");
    for (x, label) in &view.ticks {
        page.put(format_args!("<text x=\"{}%\" y=\"12\">", round(*x))).text(label).raw("</text>");
    }
    page.raw("</svg></td><td></td><td></td><td class=\"rounds\"><span class=\"ends\">");
    if let Some((low, high)) = reach(panel) {
        page.element("span", &panel.unit.show(low)).element("span", &panel.unit.show(high));
    }
    page.raw("</span></td></tr></tfoot>");
}

fn absent(page: &mut Markup, sheet: &Sheet, row: &Row, why: &str) {
    page.put(format_args!("<tr data-t=\"{}\"><th scope=\"row\">", row.target));
    sheet.name(page, row.target);
    page.raw("</th><td colspan=\"4\" class=\"absent\">").text(why).raw("</td></tr>\n");
}

fn table_row(
    page: &mut Markup,
    sheet: &Sheet,
    panel: &Panel,
    (row, figure): (&Row, &Figure),
    (mark, view): (&Mark, &View),
) {
    page.put(format_args!("<tr data-t=\"{}\"><th scope=\"row\">", row.target));
    sheet.name(page, row.target);
    let rounds = format!("n = {}", figure.rounds_shown);
    let (best, caveats): (Vec<_>, Vec<_>) = marks::of_figure(panel, row).into_iter().partition(|mark| !mark.caveat);
    let notes = [rounds, sheet.model.targets[row.target].note.clone()].into_iter().filter(|note| !note.is_empty());
    let notes: Vec<String> = notes.chain(marks::meanings(&caveats, "")).collect();
    page.element("small", &notes.join(", ")).raw("</th><td class=\"plot\">");
    plot(page, mark, view);
    page.raw("</td><td class=\"ratio\" data-r title=\"").text(&mark.words).raw("\">").text(&mark.ratio);
    page.raw("</td><td class=\"n\">").element("b", &figure.shown);
    for mark in best {
        page.put(format_args!("<span class=\"best\" title=\"{}\"> {}</span>", mark.meaning, mark.sign));
    }
    page.element("small", &figure.range).raw("</td><td class=\"rounds\">");
    strip(page, sheet, panel, row, figure);
    page.raw("</td></tr>\n");
}

fn plot(page: &mut Markup, mark: &Mark, view: &View) {
    page.put(format_args!(
        "<svg class=\"row\" aria-hidden=\"true\"><rect class=\"band\" x=\"{}%\" width=\"{}%\" height=\"100%\"/>",
        round(view.band.0),
        round(view.band.1 - view.band.0)
    ));
    for (x, _) in &view.ticks {
        page.put(format_args!("<line class=\"g\" x1=\"{0}%\" x2=\"{0}%\" y2=\"100%\"/>", round(*x)));
    }
    page.put(format_args!("<line class=\"one\" x1=\"{0}%\" x2=\"{0}%\" y2=\"100%\"/>", round(view.one)));
    if !mark.finding.is_empty() {
        page.put(format_args!(
            "<g class=\"f-{}\"><line x1=\"{}%\" x2=\"{}%\" y1=\"50%\" y2=\"50%\"/><use href=\"#f-{0}\" x=\"{}%\" y=\"50%\"/></g>",
            mark.finding,
            round(mark.from),
            round(mark.to),
            round(mark.at)
        ));
    }
    page.raw("</svg>");
}

/// Of all rows' rounds.
fn reach(panel: &Panel) -> Option<(f64, f64)> {
    let points = || panel.rows.iter().flat_map(|row| &row.series.points);
    let low = points().map(|point| point.low).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.high).fold(f64::NEG_INFINITY, f64::max);
    (low <= high).then_some((low, high))
}

/// A stroke for every round, a longer one for the median.
fn strip(page: &mut Markup, sheet: &Sheet, panel: &Panel, row: &Row, figure: &Figure) {
    let Some((low, high)) = reach(panel) else { return };
    let wide = if high > low { high - low } else { 1.0 };
    let at = |value: f64| ((value - low) / wide * 980.0 + 10.0).round();
    let class = super::plot::series_class(sheet.place(row.target));
    page.put(format_args!(
        "<svg class=\"strip {class}\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"l\" d=\""
    ));
    for point in &row.series.points {
        page.put(format_args!("M{} 6v8", at(point.median)));
        if point.high > point.low {
            page.put(format_args!("M{} 10H{}", at(point.low), at(point.high)));
        }
    }
    page.put(format_args!("\"/><path class=\"l median\" d=\"M{} 0v20\"/></svg>", at(figure.median)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_a_symbol_of_its_own() {
        let findings = [
            Some(Finding::Lower),
            Some(Finding::Higher),
            Some(Finding::ProbablyLower),
            Some(Finding::ProbablyHigher),
            Some(Finding::Tie),
            Some(Finding::TooFewRounds),
            Some(Finding::Unresolved { rounds: None }),
        ];
        let symbols: Vec<&str> = findings.iter().map(|finding| symbol(finding.as_ref())).collect();
        let mut unique = symbols.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), symbols.len());
        for symbol in symbols {
            assert!(super::super::shapes::FINDINGS.contains(&format!("\"f-{symbol}\"")), "{symbol}");
        }
    }
}
