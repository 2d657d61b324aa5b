//! When a run whose number of rounds is not fixed looks at its results, and what chance of error each look may spend.
//!
//! Looking again and again until something shows finds differences that are not there. So the looks share one chance of
//! error: a fifth of it goes to the early ones, whose bounds are Student's, by Bonferroni; the others go to looks by
//! signed ranks. Those are so much alike that each may spend more than its share: at 0.27 of the chance of all six, at
//! least one of six exceeds its bound with no more than that chance (Pocock 1977), whatever the noise, as the signs of
//! symmetric differences and the ranks of their sizes have one distribution. tests/constants.rs counts it out.

/// The chance that any bound at any look does not hold.
pub const ALPHA: f64 = 0.05;

/// Rounds after which a run looks. From eight on they grow by about a third: fewer looks cost less, and no decision
/// comes more than a third too late.
pub const LOOKS: [u32; 10] = [3, 4, 5, 6, 8, 11, 15, 20, 28, 40];

/// What each look may spend of [`ALPHA`]. Of the early ones the later spend more, as three rounds show little, and least
/// of all whether rounds depend on one another.
const SHARES: [f64; 10] = [0.02, 0.04, 0.06, 0.08, LATE, LATE, LATE, LATE, LATE, LATE];
const LATE: f64 = 0.8 * 0.27;

/// One look at the results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The last round that it sees.
    pub rounds: u32,
    /// The chance that it, of all looks, has a bound that does not hold, over all comparisons together; 0 to 1.
    pub alpha: f64,
}

impl Look {
    /// The one look at a fixed number of rounds.
    pub fn only(rounds: u32) -> Look {
        Look { rounds, alpha: ALPHA }
    }
}

/// What looks after these rounds, ascending, spend. Each takes the share of the next one in the schedule; one whose share
/// a look at the end of a budget has taken before has nothing to spend, and is left out.
pub fn spent(made: &[u32]) -> Vec<Look> {
    let mut free = 0;
    let look = |rounds: &u32| {
        let place = LOOKS.partition_point(|due| due < rounds);
        let share = SHARES.get(place).filter(|_| *rounds >= LOOKS[0] && place >= free)?;
        free = place + 1;
        Some(Look { rounds: *rounds, alpha: ALPHA * share })
    };
    made.iter().filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_spends_the_share_of_the_next_in_the_schedule() {
        let shares =
            |made: &[u32]| spent(made).iter().map(|look| (look.alpha / ALPHA * 1e3).round()).collect::<Vec<_>>();
        assert_eq!(shares(&LOOKS), [20.0, 40.0, 60.0, 80.0, 216.0, 216.0, 216.0, 216.0, 216.0, 216.0]);
        assert_eq!(shares(&[8, 11, 15]), [216.0; 3], "a journal from before the early looks");
        assert_eq!(shares(&[3, 7, 9, 40, 41]), [20.0, 216.0, 216.0, 216.0]);
        assert_eq!(shares(&[1, 2, 3, 4, 5]), [20.0, 40.0, 60.0]);
        let after = |made: &[u32]| spent(made).iter().map(|look| look.rounds).collect::<Vec<_>>();
        assert_eq!(after(&[7, 8, 9, 10, 11, 12, 15]), [7, 9, 12], "one look for each of the schedule");
        assert_eq!((shares(&[]), shares(&[50])), (vec![], vec![]));
    }
}
