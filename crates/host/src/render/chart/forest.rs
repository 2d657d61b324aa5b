//! Forest plots: what one shows for each reference, computed here once, for the picture, the page
//! and its script alike. Places are percent of the plot's width.

use super::axis::Axis;
use crate::analysis::{Comparison, Panel, Row};
use crate::wording::{marks, text as words};
use pickfs_stats::{Estimate, Finding};
use serde_json::{Value, json};

/// A panel against one reference. All places are percent of the plot's width.
pub(crate) struct View {
    pub ticks: Vec<(f64, String)>,
    pub band: (f64, f64),
    pub one: f64,
    pub marks: Vec<Mark>,
    /// The plan's reference measured a second time, against the first.
    pub copy: Option<Mark>,
}

/// A row of it.
pub(crate) struct Mark {
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
    /// `label` is the room that a label needs, in percent.
    pub(crate) fn of(panel: &Panel, reference: Option<usize>, label: f64) -> View {
        let compared = |row: &Row| row.compared_with(reference?).cloned();
        let found: Vec<Option<Comparison>> = panel.rows.iter().map(compared).collect();
        let axis = Axis::around(
            panel.threshold,
            found.iter().flatten().map(|found| &found.estimate).chain(&panel.noise).map(|of| (of.ratio, of.interval)),
            3.0,
            97.0,
        );
        let mark = |(row, found): (&Row, &Option<Comparison>)| mark(row, found.as_ref(), &axis, reference);
        View {
            ticks: axis.ticks(label),
            band: axis.band(panel.threshold),
            one: axis.one(),
            copy: panel.noise.as_ref().map(|noise| copy(noise, &axis)),
            marks: panel.rows.iter().zip(&found).map(mark).collect(),
        }
    }

    /// A ratio alone, and its text: "×0.88 (0.84–0.92)".
    pub(crate) fn ratio_of(row: &Row, reference: usize) -> (String, String) {
        let found = row.compared_with(reference);
        let is_own = row.figure.is_some() && reference == row.target;
        let lacking = if is_own { "reference" } else { "" };
        found.map_or((lacking.to_string(), String::new()), |found| (marks::ratio(found), found.words()))
    }

    pub(crate) fn json(&self) -> Value {
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

/// To hundredths of a percent.
pub(crate) fn round(value: f64) -> f64 {
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
    let words = format!("{}{}", found.words(), marks::caveats(found));
    Mark {
        target: row.target,
        finding: symbol(found.finding.as_ref()),
        at: axis.at(estimate.ratio),
        from: axis.at(low),
        to: axis.at(high),
        ratio: marks::ratio(found),
        words,
    }
}

fn copy(noise: &Estimate, axis: &Axis) -> Mark {
    let (low, high) = noise.interval.unwrap_or((noise.ratio, noise.ratio));
    let (at, from, to) = (axis.at(noise.ratio), axis.at(low), axis.at(high));
    let ratio = format!("×{}", words::ratio(noise));
    Mark { target: usize::MAX, finding: "open", at, from, to, ratio, words: String::new() }
}

pub(crate) fn symbol(finding: Option<&Finding>) -> &'static str {
    match finding {
        Some(Finding::Lower) => "less",
        Some(Finding::Higher) => "more",
        Some(Finding::ProbablyLower) => "maybe-less",
        Some(Finding::ProbablyHigher) => "maybe-more",
        Some(Finding::Tie) => "tie",
        Some(Finding::TooFewRounds) => "few",
        Some(Finding::Unresolved) | None => "open",
    }
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
            Some(Finding::Unresolved),
        ];
        let symbols: Vec<&str> = findings.iter().map(|finding| symbol(finding.as_ref())).collect();
        let mut unique = symbols.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), symbols.len());
        for symbol in symbols {
            assert!(crate::render::chart::shapes::FINDINGS.contains(&format!("\"f-{symbol}\"")), "{symbol}");
        }
    }
}
