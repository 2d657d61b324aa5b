//! When a run whose number of rounds is not fixed looks at its results, and what chance of error
//! each look may spend.
//!
//! Looking again and again until something shows finds differences that are not there. So the looks
//! share one chance of error. A fifth of it goes to those before round 8, whose bounds are
//! Student's, by Bonferroni, and three quarters to those by signed ranks; the rest is kept for
//! noises so unlike that Student's bounds hold a little less often. Looks by ranks are so much
//! alike that each may spend more than its part of the three quarters (Pocock 1977), the later the
//! more: together they exceed their bounds with no more than that, whatever the noise, as the signs
//! of symmetric differences and the ranks of their sizes have one distribution.
//! crates/pickfs/tests/deep/constants.rs counts it out.

use serde::{Deserialize, Serialize};

/// The chance that any bound at any look does not hold.
pub const ALPHA: f64 = 0.05;
/// The rounds of a run whose number is not fixed end with this one.
pub const LAST_LOOK: u32 = 40;
/// The rounds in which the reference's copy is measured: by then it has shown how noisy the machine
/// is.
const COPIED_ROUNDS: u32 = 8;
/// The first round that anything can be concluded from.
pub const FIRST_LOOK: u32 = 3;

/// After which rounds a run looks, with the share of [`ALPHA`] that each may spend, and how long it
/// measures the reference's copy. A run keeps the one that it began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The schedule of journals that name none.
    Ten,
    #[default]
    EachRound,
}

const TEN: [(u32, f64); 10] = [
    (3, 0.02),
    (4, 0.04),
    (5, 0.06),
    (6, 0.08),
    (8, 0.216),
    (11, 0.216),
    (15, 0.216),
    (20, 0.216),
    (28, 0.216),
    (40, 0.216),
];

/// Among the early interim analyses the later spend more, as three rounds show little, and least of
/// all whether rounds depend on one another.
const EARLY: [f64; 5] = [0.02, 0.03, 0.04, 0.05, 0.06];
/// What the last look spends. One by ranks after n rounds spends the square root of n/40 of it.
const LAST: f64 = 0.184;
/// The smaller the chance of one comparison, the less do looks resemble each other in what exceeds
/// it.
const LESS_ALIKE: f64 = 1.08;

/// One look at the results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The last round that it sees.
    pub rounds: u32,
    /// The chance that it, of all looks, has a bound that does not hold, over all comparisons
    /// together; 0 to 1.
    pub alpha: f64,
    /// By which power of the number of comparisons that is shared.
    pub power: f64,
    /// There is no other: what it has is shared between two methods, and nothing is borrowed.
    pub is_alone: bool,
    /// It concludes nothing where rounds resemble those before them and are too few to say how
    /// much: there are others.
    pub waits: bool,
}

impl Look {
    /// The one look at a fixed number of rounds.
    pub fn only(rounds: u32) -> Look {
        Look { rounds, alpha: ALPHA, power: 1.0, is_alone: true, waits: false }
    }

    /// An interim analysis at which the bound of each of `comparisons` comparisons has this level.
    pub(crate) fn at_level(rounds: u32, one_sided: f64, comparisons: usize) -> Look {
        Look { rounds, alpha: one_sided * comparisons.max(1) as f64, power: 1.0, is_alone: false, waits: false }
    }

    /// The chance of error that the bound of each of `comparisons` comparisons may have.
    pub fn one_sided(&self, comparisons: usize) -> f64 {
        self.alpha / (comparisons.max(1) as f64).powf(self.power)
    }
}

impl Schedule {
    /// After which rounds it looks.
    pub fn rounds(self) -> impl Iterator<Item = u32> {
        (FIRST_LOOK..=LAST_LOOK).filter(move |round| self.place(*round).1)
    }

    /// The rounds in which the reference's copy is measured; `None` for all.
    pub fn copied_rounds(self) -> Option<u32> {
        (self == Schedule::EachRound).then_some(COPIED_ROUNDS)
    }

    pub fn is_due(self, round: u32) -> bool {
        self.place(round).1
    }

    /// The next look after this round.
    pub fn next(self, round: u32) -> Option<u32> {
        self.rounds().find(|due| *due > round)
    }

    /// How many looks come before this round, and whether one is after it.
    fn place(self, round: u32) -> (usize, bool) {
        match self {
            Schedule::Ten => {
                let place = TEN.partition_point(|(due, _)| *due < round);
                (place, TEN.get(place).is_some_and(|(due, _)| *due == round))
            }
            Schedule::EachRound => {
                (round.saturating_sub(FIRST_LOOK) as usize, (FIRST_LOOK..=LAST_LOOK).contains(&round))
            }
        }
    }

    fn at(self, place: usize, rounds: u32) -> Option<Look> {
        let (share, power) = match (self, EARLY.get(place)) {
            (Schedule::Ten, _) => (TEN.get(place)?.1, 1.0),
            (Schedule::EachRound, Some(share)) => (*share, 1.0),
            (Schedule::EachRound, None) => (LAST * (f64::from(rounds) / f64::from(LAST_LOOK)).sqrt(), LESS_ALIKE),
        };
        (FIRST_LOOK..=LAST_LOOK).contains(&rounds).then_some(Look {
            rounds,
            alpha: ALPHA * share,
            power,
            is_alone: false,
            waits: self == Schedule::EachRound,
        })
    }

    /// What looks after these rounds, ascending, spend. Each takes the share of the next one that
    /// is due; one whose share a look at the end of a budget has taken before has nothing to spend,
    /// and is left out.
    pub fn spent(self, made: &[u32]) -> Vec<Look> {
        let mut free = 0;
        let look = |rounds: &u32| {
            let (place, _) = self.place(*rounds);
            let look = self.at(place, *rounds).filter(|_| place >= free)?;
            free = place + 1;
            Some(look)
        };
        made.iter().filter_map(look).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(schedule: Schedule, made: &[u32]) -> Vec<f64> {
        schedule.spent(made).iter().map(|look| (look.alpha / ALPHA * 1e3).round()).collect()
    }

    #[test]
    fn each_of_ten_looks_spends_the_share_of_the_next_in_the_schedule() {
        let shares = |made: &[u32]| shares(Schedule::Ten, made);
        let due: Vec<u32> = Schedule::Ten.rounds().collect();
        assert_eq!(due, [3, 4, 5, 6, 8, 11, 15, 20, 28, 40]);
        assert_eq!(shares(&due), [20.0, 40.0, 60.0, 80.0, 216.0, 216.0, 216.0, 216.0, 216.0, 216.0]);
        assert_eq!(shares(&[8, 11, 15]), [216.0; 3], "a journal from before the early looks");
        assert_eq!(shares(&[3, 7, 9, 40, 41]), [20.0, 216.0, 216.0, 216.0]);
        assert_eq!(shares(&[1, 2, 3, 4, 5]), [20.0, 40.0, 60.0]);
        let after = |made: &[u32]| Schedule::Ten.spent(made).iter().map(|look| look.rounds).collect::<Vec<_>>();
        assert_eq!(after(&[7, 8, 9, 10, 11, 12, 15]), [7, 9, 12], "one look for each of the schedule");
        assert_eq!((shares(&[]), shares(&[50])), (vec![], vec![]));
    }

    #[test]
    fn a_look_after_each_round_has_a_share_of_its_own() {
        let schedule = Schedule::EachRound;
        assert_eq!(schedule.rounds().collect::<Vec<_>>(), (3..=40).collect::<Vec<u32>>());
        assert_eq!(shares(schedule, &[1, 2, 3, 4, 7, 8, 10, 40, 41]), [20.0, 30.0, 60.0, 82.0, 92.0, 184.0]);
        assert_eq!([0, 3, 39, 40].map(|round| schedule.next(round)), [Some(3), Some(4), Some(40), None]);
    }

    /// Early interim analyses get Bonferroni's share, later ones a little less.
    #[test]
    fn comparisons_share_what_a_look_spends() {
        let looks = Schedule::EachRound.spent(&[3, 40]);
        let parts = looks.iter().map(|look| look.alpha / look.one_sided(10)).collect::<Vec<_>>();
        assert!((parts[0] - 10.0).abs() < 1e-9 && (parts[1] - 10f64.powf(1.08)).abs() < 1e-9, "{parts:?}");
        assert!((Look::only(9).one_sided(0) - ALPHA).abs() < 1e-12);
    }
}
