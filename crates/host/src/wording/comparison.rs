//! Figures and comparisons in words. A ratio above one is more: "more time", never "slower by"; "12
//! % less time" is always relative to the whole of the reference.

use super::text::{at_least_twice, counted, difference, half_width, percent, range, ratio};
use crate::analysis::{Comparison, Figure, Panel, Series};
use pickfs_stats::{Estimate, Finding};

impl Figure {
    /// The centre with its unit.
    pub(crate) fn shown(&self) -> String {
        self.unit.show(self.centre)
    }

    /// "1.19–1.24 s".
    pub(crate) fn range(&self) -> String {
        range(&self.unit.show(self.low * self.scale), &self.unit.show(self.high * self.scale))
    }

    /// "10", or "8, 2 missing".
    pub(crate) fn rounds_shown(&self) -> String {
        let missing = if self.missing > 0 { format!(", {} missing", self.missing) } else { String::new() };
        format!("{}{missing}", self.rounds)
    }
}

impl Comparison {
    /// "0.88 (0.84–0.92)".
    pub fn ratio(&self) -> String {
        ratio(&self.estimate)
    }

    /// "takes 12 % less time than ext4 (95 % interval 8–16 %)"; empty where nothing is judged.
    pub fn words(&self) -> String {
        self.finding.as_ref().map(|finding| against(finding, self)).unwrap_or_default()
    }
}

/// "×0.88 (0.84–0.92)", or a dash.
pub(crate) fn ratio_or_dash(found: Option<&Estimate>) -> String {
    found.map_or("–".to_string(), |found| format!("×{}", ratio(found)))
}

impl Panel {
    /// "IOPS" of "write: IOPS".
    pub(crate) fn without_phase(&self) -> &str {
        self.quantity.as_ref().unwrap_or(&self.name)
    }

    /// "differences below 3 % do not matter".
    pub(crate) fn smallest_difference(&self) -> String {
        format!("differences below {} do not matter", percent(self.threshold))
    }

    /// "±1.2 %", or "unknown": the reference against itself.
    pub(crate) fn noise_shown(&self) -> Option<String> {
        self.noise.as_ref().map(half_width)
    }
}

impl Series {
    /// "each point is the median of 17 rounds, its line their lowest and highest"; empty where each
    /// is one round.
    pub(crate) fn thinned(&self) -> String {
        match self.rounds_in_point {
            0 | 1 => String::new(),
            each => {
                format!("each point is the median of {}, its line their lowest and highest", counted(each, "round"))
            }
        }
    }
}

/// "12 % less time than ext4", "2.1 times the time of ext4".
fn amount_of(estimate: &Estimate, noun: &str, reference: &str) -> String {
    let (amount, _) = difference(estimate);
    match (at_least_twice(estimate.ratio), noun) {
        (true, "") => format!("{} that of {reference}", amount.trim_end_matches(" the")),
        (false, "") => format!("{amount} than {reference}"),
        (true, noun) => format!("{amount} {noun} of {reference}"),
        (false, noun) => format!("{amount} {noun} than {reference}"),
    }
}

/// "takes 12 % less time than ext4 (95 % interval 8–16 %)".
fn against(finding: &Finding, of: &Comparison) -> String {
    let (estimate, noun, reference) = (&of.estimate, of.noun, &of.reference);
    let verb = match noun {
        "" => "does",
        noun if noun.ends_with("time") => "takes",
        _ => "needs",
    };
    // Rounds that are missing count as slower than all others, so one end may have no value.
    let range = match estimate.interval {
        Some(_) => format!("95 % interval {}", difference(estimate).1),
        None => "no interval, as rounds are missing".to_string(),
    };
    let amount = amount_of(estimate, noun, reference);
    match finding {
        Finding::Higher | Finding::Lower => format!("{verb} {amount} ({range})"),
        Finding::Tie => format!("ties with {reference} (within ±{})", percent(of.margin)),
        Finding::ProbablyHigher | Finding::ProbablyLower => {
            format!("probably {verb} {amount} ({range}), which may be negligible")
        }
        Finding::Unresolved => format!("shows no clear difference from {reference}"),
        Finding::TooFewRounds => {
            format!("{verb} {amount} (anecdote: {}, no interval)", counted(estimate.n, "round"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_without_an_interval_has_none_in_words() {
        let (method, level, share_above) = (pickfs_stats::Method::SignedRank, 0.95, 1.0);
        let estimate = |interval| Estimate { ratio: 1.4, interval, method, level, n: 7, share_above };
        let said = |interval| {
            let found = Comparison::new(estimate(interval), Some(Finding::Higher), "ext4", "time_ns", 0.03);
            against(&Finding::Higher, &found)
        };
        assert_eq!(said(Some((1.3, 1.5))), "takes 40 % more time than ext4 (95 % interval 30–50 %)");
        assert_eq!(said(None), "takes 40 % more time than ext4 (no interval, as rounds are missing)");
    }
}
