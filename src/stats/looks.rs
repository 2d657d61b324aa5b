//! When a run whose number of rounds is not fixed looks at its results, and what chance of error each look may spend.
//!
//! Looking again and again until something shows finds differences that are not there. So the looks share one chance of
//! error: a fifth of it goes to the early ones, whose bounds are Student's, by Bonferroni; the others go to looks by
//! signed ranks. Those are so much alike that each may spend more than its share: at 0.27 of the chance of all six, at
//! least one of six exceeds its bound with no more than that chance (Pocock 1977), whatever the noise, as the signs of
//! symmetric differences and the ranks of their sizes have one distribution. tests/constants.rs counts it out.

use super::ALPHA;

/// Rounds after which a run looks. From eight on they grow by about a third: fewer looks cost less, and no decision
/// comes more than a third too late.
pub const SCHEDULE: [u32; 10] = [3, 4, 5, 6, 8, 11, 15, 20, 28, 40];

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

/// What looks after these rounds, ascending, spend. Each takes the share of the next one in the schedule: that of a look
/// that a budget brings forward is gone. Looks beyond the schedule have nothing to spend and are left out.
pub fn spent(made: &[u32]) -> Vec<Look> {
    let look = |(rounds, place): (&u32, usize)| Look { rounds: *rounds, alpha: ALPHA * SHARES[place] };
    made.iter().zip(places(made)).map(look).collect()
}

/// The round of the next look after those that were made.
pub fn next_look(made: &[u32]) -> Option<u32> {
    let after_last = places(made).last().map_or(0, |place| place + 1);
    SCHEDULE[after_last..].first().copied()
}

/// Whose places in the schedule the looks take.
fn places(made: &[u32]) -> Vec<usize> {
    let mut next = 0;
    let place = |rounds: &u32| {
        next += SCHEDULE[next..].partition_point(|due| due < rounds) + 1;
        (next <= SCHEDULE.len()).then(|| next - 1)
    };
    made.iter().map_while(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_spends_the_share_of_the_next_in_the_schedule() {
        let shares =
            |made: &[u32]| spent(made).iter().map(|look| (look.alpha / ALPHA * 1e3).round()).collect::<Vec<_>>();
        assert_eq!(shares(&SCHEDULE), [20.0, 40.0, 60.0, 80.0, 216.0, 216.0, 216.0, 216.0, 216.0, 216.0]);
        assert_eq!(shares(&[8, 11, 15]), [216.0; 3], "a journal from before the early looks");
        assert_eq!(shares(&[3, 7, 9, 40, 41]), [20.0, 216.0, 216.0, 216.0]);
        assert_eq!(shares(&[1, 2, 3, 4, 5]), [20.0, 40.0, 60.0, 80.0, 216.0]);
        assert_eq!((shares(&[]), shares(&[50])), (vec![], vec![]));
    }

    #[test]
    fn a_look_brought_forward_takes_the_place_of_the_next() {
        let cases: [(&[u32], Option<u32>); 6] = [
            (&[], Some(3)),
            (&[3, 4], Some(5)),
            (&[8], Some(11)),
            (&[3, 4, 5, 6, 8, 9], Some(15)),
            (&[38], None),
            (&SCHEDULE, None),
        ];
        for (made, wanted) in cases {
            assert_eq!(next_look(made), wanted, "{made:?}");
        }
    }
}
