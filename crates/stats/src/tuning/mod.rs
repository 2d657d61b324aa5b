//! A search for the best levels of many options: each option alone, all together in a screening
//! design, a race of what looks best against the default, the winner of that with each other level,
//! and fresh rounds of the winner against the default.
//!
//! What is measured next follows from what was measured so far and from nothing else, so a search
//! that was cut goes on where it was. How often a stage is measured follows from its noise alone
//! and never from what its rounds favour. The claim about the winner rests on rounds that had no
//! part in its choice: among many, the luckiest looks better than it is.

mod design;
mod effects;
mod process;
mod search;

pub use design::{MOST_FACTORS, fold_over};
pub use effects::{Effect, default_within, effects, importance};
pub use search::{Answer, Next, next};

/// The level of each option; 0 is its default.
pub type Config = Vec<usize>;

/// What can be chosen.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// By option, the number of levels without the default.
    pub levels: Vec<usize>,
    /// A level of an option, and another option that must have its default with it.
    pub excludes: Vec<((usize, usize), usize)>,
}

impl Space {
    /// Each option with each of its levels, the default too.
    fn each_level(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.levels.iter().enumerate().flat_map(|(option, levels)| (0..=*levels).map(move |level| (option, level)))
    }

    fn allows(&self, config: &Config) -> bool {
        self.excludes.iter().all(|((option, level), other)| config[*option] != *level || config[*other] == 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The default, and each level of each option by itself.
    Alone,
    /// Levels of each option with those of the others, in a screening design. What costs by itself
    /// may pay together with another.
    Crossed,
    /// What looks best against the default, until it is decided; where its noise asks for more
    /// rounds than a race has, all of it in that many rounds.
    Race,
    /// The winner of the race, and the winner with each other level of each option, against the
    /// default, until it is decided or as often as in the race.
    Around,
    /// The winner against the default, in rounds that had no part in its choice.
    Confirm,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Alone, Kind::Crossed, Kind::Race, Kind::Around, Kind::Confirm];

    /// What is eliminated is measured no more, and it ends when it is decided, unless it has a
    /// number of rounds.
    pub fn is_race(self) -> bool {
        matches!(self, Kind::Race | Kind::Around)
    }

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Alone => "alone",
            Kind::Crossed => "crossed",
            Kind::Race => "race",
            Kind::Around => "around",
            Kind::Confirm => "confirm",
        }
    }
}

/// What a stage of a search has measured so far.
#[derive(Clone, Debug)]
pub struct Stage {
    pub kind: Kind,
    /// The first is the default.
    pub configs: Vec<Config>,
    /// Logarithms of times by configuration and round; NaN where there is none.
    pub logs: Vec<Vec<f64>>,
    /// No further round of it can be had, because time is up or the race is decided.
    pub is_over: bool,
}

impl Stage {
    pub fn rounds(&self) -> usize {
        self.logs.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Places of configurations that have a value in each round.
    fn complete(&self) -> Vec<usize> {
        let rounds = self.rounds();
        let is_complete = |at: &usize| {
            rounds > 0 && self.logs[*at].len() == rounds && self.logs[*at].iter().all(|log| log.is_finite())
        };
        (0..self.configs.len()).filter(is_complete).collect()
    }

    /// Of each configuration with a value, the mean of its logarithms less what its rounds have in
    /// common, and the number of its rounds. What a race has eliminated is compared in the rounds
    /// that it had.
    fn means(&self) -> Vec<(&Config, f64, usize)> {
        let complete = self.complete();
        let common =
            |round: usize| complete.iter().map(|at| self.logs[*at][round]).sum::<f64>() / complete.len() as f64;
        let common: Vec<f64> = (0..self.rounds()).map(common).collect();
        let of = |logs: &Vec<f64>| {
            let own = logs.iter().zip(&common).map(|(log, common)| log - common).filter(|log| log.is_finite());
            let own: Vec<f64> = own.collect();
            (own.iter().sum::<f64>() / own.len() as f64, own.len())
        };
        let all = self.configs.iter().zip(self.logs.iter().map(of));
        all.filter(|(_, (_, rounds))| *rounds > 0).map(|(config, (log, rounds))| (config, log, rounds)).collect()
    }

    /// Logarithms of the ratio of a configuration to the default, of the rounds that both have.
    fn against_default(&self, at: usize) -> Vec<f64> {
        let pairs = self.logs[at].iter().zip(&self.logs[0]).map(|(own, default)| own - default);
        pairs.filter(|log| log.is_finite()).collect()
    }

    /// The standard deviation of one value within its round, apart from what its configuration and
    /// its round explain; `None` without at least two rounds of two.
    fn noise(&self) -> Option<f64> {
        let (complete, rounds) = (self.complete(), self.rounds());
        if complete.len() < 2 || rounds < 2 {
            return None;
        }
        let of_config = |at: &usize| self.logs[*at].iter().sum::<f64>() / rounds as f64;
        let of_round =
            |round: usize| complete.iter().map(|at| self.logs[*at][round]).sum::<f64>() / complete.len() as f64;
        let all = (0..rounds).map(of_round).sum::<f64>() / rounds as f64;
        let square = |at: &usize, round: usize| (self.logs[*at][round] - of_config(at) - of_round(round) + all).powi(2);
        let squares: f64 = complete.iter().flat_map(|at| (0..rounds).map(move |round| square(at, round))).sum();
        Some((squares / ((complete.len() - 1) * (rounds - 1)) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests;
