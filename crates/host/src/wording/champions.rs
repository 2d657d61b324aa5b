//! The best of each file system in words: what every format puts into its tables.

use super::headings;
use super::marks;
use super::text::{counted, listed, percent, percent_up};
use crate::analysis::{Champion, Champions, Comparison, Model, Proof};

/// Headings of [`Champions::rows_shown`].
pub(crate) const COLUMNS: [&str; 4] = ["file system", "best of it", "how sure", "time"];

impl Champions {
    /// A row for each file system, the fastest first.
    pub(crate) fn rows_shown(&self, model: &Model) -> Vec<[String; 4]> {
        let row = |row: &Champion| {
            let time = row.against.as_ref().map_or("first".to_string(), marks::ratio);
            [row.filesystem.clone(), model.targets[row.target].name.clone(), self.how_sure(row, model), time]
        };
        self.rows.iter().map(row).collect()
    }

    /// A row for each file system and a column for each value of what targets differ in, the
    /// headings first; empty where file systems share none.
    pub(crate) fn factor_shown(&self) -> Vec<Vec<String>> {
        if self.factor.is_empty() {
            return Vec::new();
        }
        let cell = |row: &Champion, value: &String| match row.members.iter().find(|member| member.value == *value) {
            None => String::new(),
            Some(member) => member.against.as_ref().map_or(self.place(row).to_string(), marks::ratio),
        };
        let of_row = |row: &Champion| {
            let cells = self.factor.iter().map(|value| cell(row, value));
            [row.filesystem.clone()].into_iter().chain(cells).collect::<Vec<_>>()
        };
        let head = [COLUMNS[0].to_string()].into_iter().chain(self.factor.iter().cloned());
        [head.collect()].into_iter().chain(self.rows.iter().map(of_row)).collect()
    }

    fn place(&self, row: &Champion) -> &'static str {
        match row.proof {
            Proof::Open { .. } => "first so far",
            Proof::Alone => "only one",
            Proof::Tie(_) => "best, tied",
            Proof::Faster | Proof::GoodEnough => "best",
        }
    }

    fn how_sure(&self, row: &Champion, model: &Model) -> String {
        let names =
            |targets: &[usize]| listed(&targets.iter().map(|at| model.targets[*at].name.clone()).collect::<Vec<_>>());
        let bound = || row.bound.map(|bound| format!("at most {} slower than the best", percent_up(bound)));
        match &row.proof {
            Proof::Alone => "the only one".to_string(),
            Proof::Faster if row.members.len() == 2 => "faster than the other".to_string(),
            Proof::Faster => format!("faster than each of the other {}", row.members.len() - 1),
            Proof::GoodEnough => bound().unwrap_or_default(),
            Proof::Tie(others) => format!("tied with {} within {}", names(others), percent(self.threshold)),
            Proof::Open { others, .. } => {
                let known = bound().unwrap_or_else(|| "too few rounds".to_string());
                let open = if others.is_empty() { String::new() } else { format!("; perhaps {}", names(others)) };
                format!("too close to call: {known}{open}")
            }
        }
    }

    /// What the figures are relative to, what signs mean, and what stays open for good.
    pub(crate) fn legend(&self, model: &Model) -> Vec<String> {
        let first = self.rows.first().map_or("", |row| &model.targets[row.target].name);
        let level = "with intervals of which all hold together in 95 % of runs";
        let between = format!("time: × time of {} relative to {first}, {level}", self.of);
        let within = "file system by option: × time relative to the best of that file system".to_string();
        let ratios: Vec<&Comparison> = self.rows.iter().filter_map(|row| row.against.as_ref()).collect();
        let members = self.rows.iter().flat_map(|row| &row.members).filter_map(|member| member.against.as_ref());
        let shown: Vec<&Comparison> =
            if self.factor.is_empty() { ratios } else { ratios.into_iter().chain(members).collect() };
        let signs = marks::meanings(&marks::of_ratios(shown), "the one that it is relative to");
        let within = Some(within).filter(|_| !self.factor.is_empty());
        let legend = [between].into_iter().chain(within).chain(signs).collect::<Vec<_>>().join("; ");
        [legend].into_iter().chain(self.left_open()).collect()
    }

    /// An eliminated target has no further rounds: the question within its file system gets no
    /// answer.
    fn left_open(&self) -> Option<String> {
        let open = |row: &&Champion| matches!(row.proof, Proof::Open { eliminated: true, .. });
        let names: Vec<String> = self.rows.iter().filter(open).map(|row| row.filesystem.clone()).collect();
        let remedy = "with `rounds = N` below [stop] no target is eliminated";
        let says = |names: String| format!("{names}: eliminated before the best of it was clear; {remedy}.");
        (!names.is_empty()).then(|| says(listed(&names)))
    }

    /// "Best of each file system: btrfs none; ext4 bfq (too close to call)": on one line.
    pub(crate) fn in_short(&self, model: &Model) -> String {
        let short = |row: &Champion| {
            let name = &model.targets[row.target].name;
            match &row.proof {
                Proof::Tie(others) => format!("{name} (tied with {})", counted(others.len(), "other")),
                Proof::Open { .. } => format!("{name} (too close to call)"),
                _ => name.clone(),
            }
        };
        format!("{}: {}", headings::BEST_OF_EACH, self.rows.iter().map(short).collect::<Vec<_>>().join("; "))
    }
}
