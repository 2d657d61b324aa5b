//! The state of a running comparison: what leads, by how much, how noisy the machine is, and how
//! long a decision may take.

use super::answer::{Standing, interval, signed_percent};
use super::text::{about, capital, counted};
use crate::analysis::{Model, Panel, Row, WorkReport};
use pickfs_system::units::show_duration;

/// A table with a heading, and a line about all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Standings {
    /// Name, time, difference, interval, word.
    pub heading: [String; 5],
    /// The fastest first.
    pub rows: Vec<StandingsRow>,
    /// "Noise floor ±3 % (ext4 against itself). About 4.00 min to a decision."
    pub note: String,
}

/// A target that has a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StandingsRow {
    /// As in the heading.
    pub cells: [String; 5],
    /// Low, centre and high of the ratio to the reference; 1 for the reference itself, infinitely
    /// wide without an interval.
    pub ratio: [f64; 3],
    pub rounds: usize,
    pub is_eliminated: bool,
}

impl Model {
    /// `None` until something was measured.
    pub(crate) fn standings(&self) -> Option<Standings> {
        let work = self.judged()?;
        let panel = work.phases.first()?;
        let mut rows: Vec<&Row> = panel.rows.iter().filter(|row| row.figure.is_some()).collect();
        if rows.is_empty() {
            return None;
        }
        rows.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let reference = work.reference.map_or("", |at| self.targets[at].name.as_str());
        let heading = [
            format!("After {}: {}", counted(work.rounds, "round"), panel.name),
            "time".into(),
            format!("vs {reference}"),
            "95 % interval".into(),
            String::new(),
        ];
        let rows = rows.into_iter().map(|row| self.standing(row, panel, work));
        Some(Standings { heading, rows: rows.collect(), note: self.note(work, panel) })
    }

    /// What the pick is about: all works together, or the first.
    pub(crate) fn judged(&self) -> Option<&WorkReport> {
        self.overall.as_ref().map(|overall| &overall.work).or(self.works.first())
    }

    /// Empty without a race.
    pub(crate) fn pick_of(&self, panel: &Panel) -> &str {
        panel.race.as_ref().map_or("", |race| &self.targets[race.pick].name)
    }

    fn standing(&self, row: &Row, panel: &Panel, work: &WorkReport) -> StandingsRow {
        let name = &self.targets[row.target].name;
        let time = row.figure.as_ref().map_or(String::new(), |figure| panel.unit.show(figure.centre));
        let against = row.against.as_ref();
        let left = self.history.eliminated.iter().find(|(eliminated, ..)| eliminated == name);
        let word = match left {
            Some((_, round, _)) => format!("eliminated after {}", counted(*round as usize, "round")),
            None if work.reference == Some(row.target) => Standing::Reference.word(1.0, work.terms(), ""),
            None => Standing::in_panel(panel, row.target, against).word(ratio(row), work.terms(), self.pick_of(panel)),
        };
        let difference = against.map_or(String::new(), |found| signed_percent(found.estimate.ratio));
        let range = against.map_or(String::new(), |found| interval(&found.estimate));
        let unknown = (0.0, f64::INFINITY);
        let (low, high) = against.map_or((1.0, 1.0), |found| found.estimate.interval.unwrap_or(unknown));
        StandingsRow {
            cells: [name.clone(), time, difference, range, word],
            ratio: [low, ratio(row), high],
            rounds: row.figure.as_ref().map_or(0, |figure| figure.rounds),
            is_eliminated: left.is_some(),
        }
    }

    fn note(&self, work: &WorkReport, panel: &Panel) -> String {
        format!("{}. {}.", capital(&work.noise_floor(self)), self.time_to_decision(panel))
    }

    fn time_to_decision(&self, panel: &Panel) -> String {
        let Some(race) = &panel.race else { return "Too few rounds to compare".to_string() };
        let so_far = race.rounds as u32;
        let time = |needed: u32| {
            let rounds = about(needed.saturating_sub(so_far).max(1));
            (show_duration(f64::from(rounds) * self.history.round_ns as f64), counted(rounds as usize, "round"))
        };
        match race.rounds_needed() {
            _ if race.is_settled() => "Good enough for a decision".to_string(),
            Some([Some(least), Some(most)]) if most <= self.history.most_rounds => {
                let ((early, _), (late, rounds)) = (time(least), time(most));
                if early == late {
                    format!("A decision takes {late} more ({rounds}) or longer")
                } else {
                    format!("A decision takes {early} to {late} more (at most {rounds})")
                }
            }
            Some([Some(least), _]) if least <= self.history.most_rounds => {
                let (early, rounds) = time(least);
                format!("A decision takes {early} more ({rounds}) or longer")
            }
            None => "No decision yet".to_string(),
            _ => "A decision is out of reach of this run".to_string(),
        }
    }
}

/// Against the reference, which has 1 itself.
fn ratio(row: &Row) -> f64 {
    row.against.as_ref().map_or(1.0, |found| found.estimate.ratio)
}
