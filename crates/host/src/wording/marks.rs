//! The marks at figures and ratios, and what each means: one list for every format, so that no
//! format can leave out a caveat that another one has.

use crate::analysis::{Comparison, Model, Panel, Row, WorkReport};
use pickfs_stats::{Finding, Method};

/// One mark. A new one is a row of [`ALL`].
pub(crate) struct Mark {
    /// One character; empty for a mark that only the legend and tooltips explain.
    pub sign: &'static str,
    /// For the legend; `{reference}` stands for the target that ratios are relative to.
    pub meaning: &'static str,
    /// For one comparison: a tooltip needs no word on what the numbers already show.
    pub caveat: bool,
    pub holds: Holds,
}

/// What a mark stands at, and when.
pub(crate) enum Holds {
    /// At the figure of a row.
    Figure(fn(&Panel, &Row) -> bool),
    /// At a ratio.
    Ratio(fn(&Comparison) -> bool),
}

use Holds::{Figure, Ratio};

/// Every mark, in the order of print.
pub(crate) const ALL: &[Mark] = &[
    Mark {
        sign: "*",
        meaning: "may be the best",
        caveat: false,
        holds: Figure(|panel, row| {
            panel.race.as_ref().is_some_and(|race| race.may_be_best().any(|at| at == row.target))
        }),
    },
    Mark { sign: "†", meaning: "cache state unproven", caveat: true, holds: Figure(|_, row| row.unproven_cache) },
    Mark {
        sign: "",
        meaning: "preliminary: fewer than 7 rounds",
        caveat: true,
        holds: Ratio(|found| found.estimate.method == Method::LogT),
    },
    Mark {
        sign: "=",
        meaning: "ties with {reference}",
        caveat: false,
        holds: Ratio(|found| found.finding == Some(Finding::Tie)),
    },
    Mark {
        sign: "~",
        meaning: "probably, but may be negligible",
        caveat: false,
        holds: Ratio(|found| matches!(found.finding, Some(Finding::ProbablyHigher | Finding::ProbablyLower))),
    },
    Mark {
        sign: "?",
        meaning: "cannot be distinguished from {reference}",
        caveat: false,
        holds: Ratio(|found| matches!(found.finding, Some(Finding::Unresolved))),
    },
    Mark {
        sign: "^",
        meaning: "significant only if the noise were symmetric; here it is skewed",
        caveat: true,
        holds: Ratio(|found| found.rests_on_symmetry),
    },
    #[cfg(test)]
    super::planted_mark::PLANTED,
];

/// Marks of one figure or ratio, or of a whole table.
pub(crate) type Marks = Vec<&'static Mark>;

/// The marks at the figure of a row.
pub(crate) fn of_figure(panel: &Panel, row: &Row) -> Marks {
    let holds = |mark: &&Mark| matches!(mark.holds, Figure(holds) if row.figure.is_some() && holds(panel, row));
    ALL.iter().filter(holds).collect()
}

/// The marks at a ratio.
pub(crate) fn of_ratio(found: &Comparison) -> Marks {
    ALL.iter().filter(|mark| matches!(mark.holds, Ratio(holds) if holds(found))).collect()
}

/// "×1.23 (1.15–1.30) ~".
pub(crate) fn ratio(found: &Comparison) -> String {
    format!("×{}{}", found.ratio(), signs(&of_ratio(found)))
}

/// All marks in some panels, each once, in the order of [`ALL`].
pub(crate) fn used<'a>(panels: impl IntoIterator<Item = &'a Panel>) -> Marks {
    let rows: Vec<(&Panel, &Row)> =
        panels.into_iter().flat_map(|panel| panel.rows.iter().map(move |row| (panel, row))).collect();
    let holds = |mark: &&Mark| match mark.holds {
        Figure(holds) => rows.iter().any(|(panel, row)| row.figure.is_some() && holds(panel, row)),
        Ratio(holds) => rows.iter().filter_map(|(_, row)| row.against.as_ref()).any(holds),
    };
    ALL.iter().filter(holds).collect()
}

/// All marks at some ratios, each once, in the order of [`ALL`].
pub(crate) fn of_ratios<'a>(ratios: impl IntoIterator<Item = &'a Comparison>) -> Marks {
    let ratios: Vec<&Comparison> = ratios.into_iter().collect();
    ALL.iter().filter(|mark| matches!(mark.holds, Ratio(holds) if ratios.iter().any(|found| holds(found)))).collect()
}

/// " * †": each sign after a blank, for the end of a figure or a ratio.
pub(crate) fn signs(marks: &[&Mark]) -> String {
    marks.iter().filter(|mark| !mark.sign.is_empty()).map(|mark| format!(" {}", mark.sign)).collect()
}

/// "× time relative to ext4, with its 95 % interval; * may be the best; ...": only the marks
/// that are given, and then the noise floor.
pub(crate) fn legend(model: &Model, work: &WorkReport, marks: &[&Mark]) -> String {
    let reference = work.reference.map_or("", |reference| &model.targets[reference].name);
    let compared = work.phases.iter().flat_map(|panel| &panel.rows).any(|row| row.against.is_some());
    let what = if work.is_foreign { "" } else { "time " };
    let ratio = compared.then(|| format!("× {what}relative to {reference}, with its 95 % interval"));
    let noise = Some(work.noise_floor(model)).filter(|noise| !noise.is_empty());
    ratio.into_iter().chain(meanings(marks, reference)).chain(noise).collect::<Vec<_>>().join("; ")
}

/// "* may be the best": a line for each mark.
pub(crate) fn meanings(marks: &[&Mark], reference: &str) -> Vec<String> {
    let meaning = |mark: &&Mark| {
        let meaning = mark.meaning.replace("{reference}", reference);
        format!("{} {meaning}", mark.sign).trim_start().to_string()
    };
    marks.iter().map(meaning).collect()
}

/// Each sign with what it means, for a list of all.
pub fn explained() -> impl Iterator<Item = (&'static str, String)> {
    ALL.iter().map(|mark| {
        let sign = if mark.sign.is_empty() { "no sign" } else { mark.sign };
        (sign, mark.meaning.replace("{reference}", "the reference"))
    })
}

/// "; cache state unproven": the caveats of a ratio, for the end of a sentence.
pub(crate) fn caveats(found: &Comparison) -> String {
    of_ratio(found).iter().filter(|mark| mark.caveat).map(|mark| format!("; {}", mark.meaning)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::planted_mark::PLANTED_RATIO;
    use super::*;
    use pickfs_stats::Estimate;

    fn comparison(finding: Finding, ratio: f64) -> Comparison {
        let estimate =
            Estimate { ratio, interval: None, method: Method::SignedRank, level: 0.95, n: 8, share_above: 0.5 };
        Comparison::new(estimate, Some(finding), "ext4", "time_ns", 0.03)
    }

    #[test]
    fn a_ratio_has_all_its_marks_in_the_order_of_the_list() {
        let mut found = comparison(Finding::ProbablyLower, 0.9);
        found.rests_on_symmetry = true;
        assert_eq!(signs(&of_ratio(&found)), " ~ ^");
        assert_eq!(caveats(&found), "; significant only if the noise were symmetric; here it is skewed");
        assert_eq!(signs(&of_ratio(&comparison(Finding::Lower, 0.9))), "");
    }

    #[test]
    fn a_new_mark_is_one_row() {
        let marks = of_ratio(&comparison(Finding::Tie, PLANTED_RATIO));
        assert_eq!(signs(&marks), " = ¤");
        assert_eq!(meanings(&marks, "ext4"), ["= ties with ext4", "¤ planted by a test"]);
    }

    #[test]
    fn signs_are_unlike() {
        let mut signs: Vec<&str> = ALL.iter().map(|mark| mark.sign).filter(|sign| !sign.is_empty()).collect();
        let count = signs.len();
        signs.sort_unstable();
        signs.dedup();
        assert_eq!(signs.len(), count);
    }
}
