//! How much slower than the best each target can be, after every look at a run, all targets and all
//! looks together.
//!
//! The regret of target i is its logarithm of time less that of the best. As the best is one
//! target, whichever it is, only the k-1 comparisons with that one must hold for all k bounds to
//! hold (Hsu 1984): each upper bound of a difference i - j is made at alpha/(k-1), and the largest
//! of them over j bounds the regret of i. The same event keeps the true best in the race: it is
//! eliminated only where such a bound on another target falls below 0. A bound holds at all looks
//! together, so the least so far counts, and a target that is out stays out.

use super::looks::Look;
use super::pairs::{Comparisons, Critical, Pairs};

/// The chance, for either side, that a target and its own copy are called different where they are
/// the same.
const CONTRADICTION: f64 = 0.0025;

/// How the candidates stand after all looks. Amounts are natural logarithms of ratios: 0.03 is 3 %.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The upper bound of the regret of each candidate; infinite where too few rounds bound it.
    pub regret: Vec<f64>,
    /// For each candidate that is eliminated another one that is faster.
    pub eliminated: Vec<Option<usize>>,
    /// The upper bounds of the differences first minus second.
    pub above: Vec<Vec<f64>>,
    /// By how much the twins differ where they surely do, at the last look: all bounds are wider by
    /// that.
    pub contradiction: f64,
    /// The first-order autocorrelation that all bounds of the last look are widened for, 0 to 1.
    pub autocorrelation: f64,
    /// So much of it has been seen that the looks before that are forgotten.
    pub dependent: bool,
    /// The last look concluded nothing, as rounds resemble those before them and are too few to say
    /// how much.
    pub waits: bool,
}

impl Standing {
    /// The state of `count` candidates before the first interim analysis.
    pub fn of(count: usize) -> Standing {
        Standing {
            regret: vec![f64::INFINITY; count],
            eliminated: vec![None; count],
            above: vec![vec![f64::INFINITY; count]; count],
            contradiction: 0.0,
            autocorrelation: 0.0,
            dependent: false,
            waits: false,
        }
    }

    /// One more interim analysis: the bound of each, and the eliminated ones.
    pub fn look(&mut self, of: &Comparisons, look: &Look) {
        update(of, look, self);
        eliminate(self);
        self.bound();
    }

    fn bound(&mut self) {
        let all = 0..self.regret.len();
        for at in all.clone() {
            let rivals = all.clone().filter(|other| *other != at && self.eliminated[*other].is_none());
            self.regret[at] = rivals.map(|other| self.above[at][other]).fold(0.0, f64::max);
        }
    }

    /// The candidates that are not eliminated, least regret first.
    pub fn members(&self) -> Vec<usize> {
        let mut members: Vec<usize> = (0..self.regret.len()).filter(|at| self.eliminated[*at].is_none()).collect();
        members.sort_by(|a, b| self.regret[*a].total_cmp(&self.regret[*b]));
        members
    }
}

/// Stands the candidates against each other at each look in turn.
pub fn standing(of: &Comparisons, looks: &[Look]) -> Standing {
    let mut found = Standing::of(of.candidates);
    looks.iter().for_each(|look| found.look(of, look));
    found
}

/// The upper bounds of the differences first minus second of all pairs of candidates, after every
/// look, with none eliminated: what has left is compared over the rounds that it has.
pub fn upper_bounds(of: &Comparisons, looks: &[Look]) -> Vec<Vec<f64>> {
    let mut found = Standing::of(of.candidates);
    looks.iter().for_each(|look| update(of, look, &mut found));
    found.above
}

/// By one more look.
fn update(of: &Comparisons, look: &Look, found: &mut Standing) {
    let pairs = Pairs::new(of, look.rounds as usize, &found.eliminated);
    let is_twins = |(at, _): &&((usize, usize), Vec<f64>)| of.twins.is_some_and(|(a, b)| *at == (a.min(b), a.max(b)));
    let twins = pairs.differences.iter().find(is_twins).map(|(_, pair)| pair);
    let apart = twins.and_then(|pair| pairs.bounds(pair, &mut Critical::new(CONTRADICTION)));
    let is_sure = |(low, _, high): &(f64, f64, f64)| *low > 0.0 || *high < 0.0;
    found.contradiction = apart.filter(is_sure).map_or(0.0, |(_, centre, _)| centre.abs());
    found.autocorrelation = pairs.autocorrelation;
    if pairs.dependent && !found.dependent {
        found.dependent = true;
        found.eliminated.fill(None);
        found.above.iter_mut().for_each(|row| row.fill(f64::INFINITY));
    }
    found.waits = look.waits && pairs.doubted;
    if found.waits {
        return;
    }
    let mut critical = Critical::of(look, of.comparisons);
    for (at, pair) in &pairs.differences {
        let (i, j) = *at;
        let is_open = |at: usize| at < of.candidates && found.eliminated[at].is_none();
        let bounds = (is_open(i) && is_open(j)).then(|| pairs.upper_bounds((at, pair), &mut critical)).flatten();
        let Some((above, below)) = bounds else { continue };
        let wider = found.contradiction + of.tick;
        found.above[i][j] = found.above[i][j].min(above + wider);
        found.above[j][i] = found.above[j][i].min(below + wider);
    }
}

/// Eliminates the candidates that another one beats, but none where each is beaten in a circle,
/// which ranks of three targets can do.
fn eliminate(found: &mut Standing) {
    let open = found.members();
    let beats = |by: usize, at: usize| by != at && found.above[by][at] < 0.0;
    let beaten: Vec<(usize, usize)> = open
        .iter()
        .filter_map(|at| {
            let faster = open.iter().copied().filter(|by| beats(*by, *at));
            faster
                .min_by(|a, b| found.above[*a][*at].total_cmp(&found.above[*b][*at]).then(a.cmp(b)))
                .map(|by| (*at, by))
        })
        .collect();
    if beaten.len() < open.len() {
        beaten.into_iter().for_each(|(at, by)| found.eliminated[at] = Some(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::Schedule;
    use crate::signed_rank::{centre_and_interval, signed_rank_k};
    use pickfs_test_support::noise::Noise;

    fn logs_of(levels: &[f64], rounds: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut noise = Noise::new(seed);
        levels.iter().map(|level| (0..rounds).map(|_| level.ln() + 0.01 * noise.normal()).collect()).collect()
    }

    fn compared(logs: &[Vec<f64>]) -> Comparisons<'_> {
        Comparisons { logs, candidates: logs.len(), comparisons: logs.len() - 1, twins: None, lacking: &[], tick: 0.0 }
    }

    /// Three rounds of one pair: t(0.95, 2) = 2.919986 for mean 0.02 and standard deviation 0.01.
    #[test]
    fn one_early_pair_has_students_bound() {
        let logs = vec![vec![0.01, 0.02, 0.03], vec![0.0; 3]];
        let found = standing(&compared(&logs), &[Look::only(3)]);
        let half = 2.919_986 * 0.01 / 3f64.sqrt();
        assert!((found.above[0][1] - (0.02 + half)).abs() < 1e-7 && (found.above[1][0] - (half - 0.02)).abs() < 1e-7);
        assert_eq!((found.eliminated[0], found.regret[1]), (Some(1), 0.0));
        assert_eq!(standing(&compared(&logs), &[Look::only(2)]).regret, [f64::INFINITY; 2]);
    }

    /// Eight rounds of two targets are known to within the ranks: K = 6 at 5 % one-sided (Hollander
    /// & Wolfe 1999).
    #[test]
    fn later_pairs_have_signed_rank_bounds() {
        let logs = vec![vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 9.0], vec![0.0; 8]];
        let look = Look::at_level(8, 0.05, 1);
        let found = standing(&Comparisons { comparisons: 1, ..compared(&logs) }, &[look]);
        let k = signed_rank_k(8, 0.1).map(|(k, _)| k).expect("ranks");
        let (_, (low, high)) = centre_and_interval(&logs[0], k).expect("an interval");
        assert!(found.autocorrelation == 0.0 && found.above[0][1] == high && found.above[1][0] == -low);
    }

    #[test]
    fn bounds_never_grow_and_who_is_out_stays_out() {
        let mut logs = logs_of(&[1.0, 1.005, 1.2], 20, 3);
        logs[2][8..].iter_mut().for_each(|log| *log = -9.0);
        let rounds = Schedule::Ten.rounds().collect::<Vec<u32>>();
        let after = |looks: usize| standing(&compared(&logs), &Schedule::Ten.spent(&rounds[..looks]));
        assert_eq!(after(4).eliminated, after(8).eliminated);
        assert!(after(8).eliminated[2].is_some() && after(8).members() == [0, 1]);
        for looks in 1..8 {
            let (earlier, later) = (after(looks), after(looks + 1));
            assert!((0..3).all(|at| later.regret[at] <= earlier.regret[at]), "{looks} looks");
        }
    }

    /// Each of three is faster than the next in two thirds of the rounds.
    #[test]
    fn a_circle_eliminates_nobody() {
        let turns = [[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]];
        let logs: Vec<Vec<f64>> = (0..3).map(|at| (0..600).map(|round| turns[round % 3][at]).collect()).collect();
        let found = standing(&compared(&logs), &[Look::at_level(600, 0.15, 2)]);
        assert!(found.above[1][0] < 0.0 && found.eliminated == [None; 3]);
    }

    #[test]
    fn neither_unit_nor_order_matters() {
        let logs = logs_of(&[1.0, 1.01, 1.02, 1.3], 11, 9);
        let order = [2, 0, 3, 1];
        let other: Vec<Vec<f64>> = order.iter().map(|at| logs[*at].iter().map(|log| log + 20.7).collect()).collect();
        let looks = Schedule::EachRound.spent(&(3..=11).collect::<Vec<u32>>());
        let (one, two) = (standing(&compared(&logs), &looks), standing(&compared(&other), &looks));
        assert!((0..4).all(|at| (one.regret[order[at]] - two.regret[at]).abs() < 1e-9));
    }

    /// All bounds are wider by what the copy differs by, and by nothing where it may be the same.
    #[test]
    fn a_contradiction_widens_every_bound() {
        let mut logs = logs_of(&[1.0, 1.3, 1.0], 15, 4);
        let of = |logs: &[Vec<f64>]| {
            let of = Comparisons { candidates: 2, comparisons: 1, twins: Some((0, 2)), ..compared(logs) };
            standing(&of, &[Look::only(15)])
        };
        let same = of(&logs);
        logs[2].iter_mut().for_each(|log| *log += 0.05);
        let apart = of(&logs);
        assert!(same.contradiction == 0.0 && (apart.contradiction - 0.05).abs() < 0.01);
        assert!((apart.above[0][1] - same.above[0][1] - apart.contradiction).abs() < 1e-3);
    }

    /// A copy that resembles itself by a standard error or two is one of many samples of the noise.
    #[test]
    fn another_copy_changes_no_bound_by_its_noise() {
        let logs = logs_of(&[1.0, 1.01, 1.02], 20, 6);
        let with = |copy: Vec<f64>| {
            let all = [logs.clone(), vec![copy]].concat();
            let of = Comparisons { candidates: 3, comparisons: 2, twins: Some((0, 3)), ..compared(&all) };
            let found = standing(&of, &[Look::only(20)]);
            (found.above, found.autocorrelation)
        };
        let first = with(logs_of(&[1.0], 20, 7).swap_remove(0));
        assert!((8..60).all(|seed| with(logs_of(&[1.0], 20, seed).swap_remove(0)) == first), "{first:?}");
        let drifts = with((0..20).map(|round| 0.01 * f64::from(round)).collect());
        assert!(drifts.1 > first.1 && drifts.0[0][1] > first.0[0][1], "{drifts:?}");
    }

    /// Own autocorrelation of 0.9, eight targets: seen before round 20, it leaves no bound, and
    /// after that wide ones.
    #[test]
    fn rounds_that_resemble_the_one_before_wait_and_then_widen_the_bounds() {
        let mut noise = Noise::new(5);
        let mut row = |kept: f64| {
            let first = noise.normal();
            let next = |last: &f64| Some(kept * last + (1.0 - kept * kept).sqrt() * noise.normal());
            std::iter::successors(Some(first), next).take(40).map(|log| 0.03 * log).collect::<Vec<f64>>()
        };
        let [free, tied] = [0.0, 0.9].map(|kept| (0..8).map(|_| row(kept)).collect::<Vec<_>>());
        let after = |logs: &[Vec<f64>], rounds: u32| {
            standing(&compared(logs), &Schedule::EachRound.spent(&(3..=rounds).collect::<Vec<u32>>()))
        };
        let kinds = [&free, &tied]
            .map(|logs| [12, 40].map(|rounds| (after(logs, rounds).dependent, after(logs, rounds).waits)));
        assert_eq!(kinds, [[(false, false); 2], [(true, true), (true, false)]]);
        let bound =
            |logs: &[Vec<f64>], rounds: u32| after(logs, rounds).regret.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(bound(&free, 12) < 0.05 && bound(&tied, 12).is_infinite());
        assert!(bound(&tied, 40) > 2.0 * bound(&free, 40) && bound(&tied, 40).is_finite());
    }

    /// The second of two equals lacks some of its twenty rounds: so it may be slower than it looks,
    /// and the first is not.
    #[test]
    fn missing_rounds_may_have_been_slow() {
        let mut noise = Noise::new(5);
        let mut logs: Vec<Vec<f64>> = (0..2).map(|_| (0..20).map(|_| 0.02 * noise.normal()).collect()).collect();
        let known = standing(&compared(&logs), &[Look::only(20)]);
        for (count, is_bounded) in [(1, true), (12, false)] {
            let lacking = vec![vec![false; 20], (0..20).map(|round| round < count).collect()];
            logs[1][..count].fill(f64::NAN);
            let found = standing(&Comparisons { lacking: &lacking, ..compared(&logs) }, &[Look::only(20)]);
            assert_eq!(found.regret[1].is_finite(), is_bounded, "{count}: {found:?}");
            assert!(found.regret[1] > known.regret[1] && found.regret[0].is_finite(), "{count}: {found:?}");
        }
    }
}
