//! How much slower than the best each target can be, after every look at a run, all targets and all looks together.
//!
//! The regret of target i is its logarithm of time less that of the best. As the best is one target, whichever it is,
//! only the k-1 comparisons with that one must hold for all k bounds to hold (Hsu 1984): each upper bound of a
//! difference i - j is made at alpha/(k-1), and the largest of them over j bounds the regret of i. The same event keeps
//! the true best in the race: it is eliminated only where such a bound on another target falls below 0. A bound holds
//! at all looks together, so the least so far counts, and a target that is out stays out.

use super::looks::Look;
use super::pairs::{Comparisons, Critical, Pairs};

/// The chance, for either side, that a target and its own copy are called different where they are the same.
const CONTRADICTION: f64 = 0.0005;

/// How the candidates stand after all looks. Amounts are natural logarithms of ratios: 0.03 is 3 %.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The upper bound of the regret of each candidate; infinite where too few rounds bound it.
    pub regret: Vec<f64>,
    /// For each candidate the number of the look that eliminated it, and another one that is faster.
    pub eliminated: Vec<Option<(usize, usize)>>,
    /// The upper bounds of the differences first minus second.
    pub above: Vec<Vec<f64>>,
    /// By how much the twins differ where they surely do, at the last look: all bounds are wider by that.
    pub contradiction: f64,
    /// The first-order autocorrelation that all bounds of the last look are widened for, 0 to 1.
    pub autocorrelation: f64,
    /// So much of it has been seen that the looks before that are forgotten.
    pub dependent: bool,
}

impl Standing {
    /// So many candidates before any look.
    fn of(count: usize) -> Standing {
        Standing {
            regret: vec![f64::INFINITY; count],
            eliminated: vec![None; count],
            above: vec![vec![f64::INFINITY; count]; count],
            contradiction: 0.0,
            autocorrelation: 0.0,
            dependent: false,
        }
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
    let mut found = after(of, looks, eliminate);
    found.bound();
    found
}

/// The upper bounds of the differences first minus second of all pairs of candidates, after every look, with none
/// eliminated: what has left is compared over the rounds that it has.
pub fn upper_bounds(of: &Comparisons, looks: &[Look]) -> Vec<Vec<f64>> {
    after(of, looks, |_, _| ()).above
}

fn after(of: &Comparisons, looks: &[Look], eliminate: impl Fn(usize, &mut Standing)) -> Standing {
    let mut found = Standing::of(of.candidates);
    for (number, look) in looks.iter().enumerate() {
        let pairs = Pairs::new(of, look.rounds as usize, &found.eliminated);
        update(&pairs, of, look, &mut found);
        eliminate(number, &mut found);
    }
    found
}

/// By one more look.
fn update(pairs: &Pairs, of: &Comparisons, look: &Look, found: &mut Standing) {
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

/// Those that another one beats are out; nobody where each is beaten in a circle, which ranks of three targets can do.
fn eliminate(number: usize, found: &mut Standing) {
    let open = found.members();
    let beats = |by: usize, at: usize| by != at && found.above[by][at] < 0.0;
    let beaten: Vec<(usize, usize)> = open
        .iter()
        .filter_map(|at| {
            let faster = open.iter().copied().filter(|by| beats(*by, *at));
            faster.min_by(|a, b| found.above[*a][*at].total_cmp(&found.above[*b][*at])).map(|by| (*at, by))
        })
        .collect();
    if beaten.len() < open.len() {
        beaten.into_iter().for_each(|(at, by)| found.eliminated[at] = Some((number, by)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::looks::{LAST_LOOK, Schedule};
    use crate::stats::noise::{Noise, Pair, Side, replications, share_error};
    use crate::stats::signed_rank::{centre_and_interval, signed_rank_k};

    /// What makes the noise of a field.
    #[derive(Clone, Copy)]
    enum Kind {
        /// Of targets with an even index, and of those with an odd one.
        Sides(Side, Side),
        /// Standard deviations from the first target's to the last one's.
        Unequal(f64, f64),
        /// A target's own autocorrelation.
        Own(f64),
        /// All cells of a round follow one autocorrelated series.
        Shared(f64),
        /// Up to 5 % with the place in the round.
        Drift,
    }

    const fn alike(side: Side) -> Kind {
        Kind::Sides(side, side)
    }

    const FIELDS: [(&str, Kind); 14] = [
        ("normal 2 %", alike(Side::Normal(0.02))),
        ("normal 5 %", alike(Side::Normal(0.05))),
        ("normal 10 %", alike(Side::Normal(0.10))),
        ("lognormal 30 %", alike(Side::Normal(0.30))),
        ("t2 2 %", alike(Side::T2(0.02))),
        ("10 % outliers x3", alike(Side::Modes { sd: 0.03, share: 0.1, by: 1.0986 })),
        ("bimodal", alike(Side::Modes { sd: 0.01, share: 0.2, by: 0.15 })),
        ("skewed, normal", Kind::Sides(Side::Skew(0.05), Side::Normal(0.01))),
        ("1.2 to 7.5 %", Kind::Unequal(0.012, 0.075)),
        ("7.5 to 1.2 %", Kind::Unequal(0.075, 0.012)),
        ("drift in rounds", Kind::Drift),
        ("shared AR(1) 0.9", Kind::Shared(0.9)),
        ("own AR(1) 0.3", Kind::Own(0.3)),
        ("own AR(1) 0.6", Kind::Own(0.6)),
    ];

    /// Rounds with a truth; the second copy of the first target comes last.
    struct Race {
        kind: Kind,
        truth: Vec<f64>,
        /// Of even targets over odd ones, by pairs of rounds.
        centre: f64,
    }

    /// What a race came to.
    struct Played {
        /// Every bound held at every look.
        covered: bool,
        /// So did those of the picks.
        pick_covered: bool,
        rounds: u32,
        cells: usize,
        decided: bool,
        forgot: bool,
        /// Of the pick, after 8, 20 and 40 rounds.
        bounds: [f64; 3],
    }

    impl Race {
        fn new(kind: Kind, truth: &[f64]) -> Race {
            let centre = match kind {
                Kind::Sides(first, second) => Pair { name: "", first, second }.centre(),
                _ => 0.0,
            };
            Race { kind, truth: truth.to_vec(), centre }
        }

        fn difference(&self, first: usize, second: usize) -> f64 {
            let unlike = f64::from(u8::from(second % 2 == 1)) - f64::from(u8::from(first % 2 == 1));
            self.truth[first] - self.truth[second] + self.centre * unlike
        }

        fn best(&self) -> usize {
            let all = 0..self.truth.len();
            all.clone().find(|at| all.clone().all(|other| self.difference(*at, other) <= 1e-9)).expect("a best")
        }

        fn draw(&self, target: usize, own: &mut [f64], noise: &mut Noise) -> f64 {
            let last = (self.truth.len() - 1).max(1) as f64;
            match self.kind {
                Kind::Sides(even, odd) => {
                    if target % 2 == 0 {
                        even.draw(noise)
                    } else {
                        odd.draw(noise)
                    }
                }
                Kind::Unequal(from, to) => from * f64::powf(to / from, target as f64 / last) * noise.normal(),
                Kind::Own(kept) => {
                    own[target] = kept * own[target] + (1.0 - kept * kept).sqrt() * noise.normal();
                    0.03 * own[target]
                }
                Kind::Shared(_) => 0.03 * noise.normal(),
                Kind::Drift => 0.02 * noise.normal() + 0.05 * noise.uniform(),
            }
        }

        /// As a run plays it: who is eliminated has no further rounds, and the copy of the first has few.
        fn play(&self, seed: u64, until_decided: bool) -> Played {
            let (count, best) = (self.truth.len(), self.best());
            let mut noise = Noise::new(seed);
            let mut own: Vec<f64> = (0..=count).map(|_| noise.normal()).collect();
            let mut shared = 0.0;
            let mut logs: Vec<Vec<f64>> = vec![Vec::new(); count + 1];
            let mut out = vec![false; count + 1];
            let mut played = Played {
                covered: true,
                pick_covered: true,
                rounds: 0,
                cells: 0,
                decided: false,
                forgot: false,
                bounds: [f64::INFINITY; 3],
            };
            let schedule = Schedule::EachRound;
            let looks = schedule.spent(&schedule.rounds().collect::<Vec<u32>>());
            let (mut found, mut number) = (Standing::of(count), 0);
            for round in 1..=LAST_LOOK {
                if let Kind::Shared(kept) = self.kind {
                    shared = kept * shared + 0.05 * noise.normal();
                }
                for (target, log) in logs.iter_mut().enumerate() {
                    let twin = target % count;
                    let drawn = match self.kind {
                        Kind::Own(_) => self.draw(target, &mut own, &mut noise),
                        _ => self.draw(twin, &mut own, &mut noise),
                    };
                    let is_there = !out[twin] && (target < count || schedule.copied_rounds() >= Some(round));
                    played.cells += usize::from(is_there);
                    log.push(if is_there { self.truth[twin] + shared + drawn } else { f64::NAN });
                }
                played.rounds = round;
                let Some(look) = looks.iter().find(|look| look.rounds == round) else { continue };
                let twins = Some((0, count));
                let of = Comparisons { candidates: count, comparisons: count - 1, twins, ..compared(&logs) };
                update(&Pairs::new(&of, round as usize, &found.eliminated), &of, look, &mut found);
                eliminate(number, &mut found);
                found.bound();
                number += 1;
                // What is forgotten has not been believed.
                played.covered |= found.dependent && !played.forgot;
                played.forgot = found.dependent;
                played.covered &= (0..count).all(|i| i == best || self.difference(i, best) <= found.above[i][best]);
                let pick = found.members()[0];
                played.pick_covered &= self.difference(pick, best) <= found.regret[pick];
                for (bound, after) in played.bounds.iter_mut().zip([8, 20, 40]) {
                    *bound = if round <= after { found.regret[pick] } else { *bound };
                }
                played.decided = found.regret[pick] < 1.03f64.ln();
                if until_decided && played.decided {
                    break;
                }
                (0..count).for_each(|target| out[target] = found.eliminated[target].is_some());
            }
            played
        }
    }

    fn shares(races: &[Played], holds: impl Fn(&Played) -> bool) -> f64 {
        races.iter().filter(|race| holds(race)).count() as f64 / races.len() as f64
    }

    fn plays(race: &Race, count: usize, until_decided: bool) -> Vec<Played> {
        (0..count).map(|seed| race.play(7_000_000 + seed as u64, until_decided)).collect()
    }

    /// 95 % of the runs have no bound that fails at any of ten looks, of any of the targets; where targets depend on
    /// their own past, 90 %, where looks before that is seen count only as long as they are not forgotten. 3.5 standard errors more.
    #[test]
    fn all_bounds_hold_together_at_all_looks() {
        let count = replications(10, 2000);
        let targets: &[usize] = if count > 10 { &[2, 5, 10, 20] } else { &[2, 5] };
        println!("| noise | targets | covered % | the pick's % | forgot % | after 8: % | after 20: % | after 40: % |");
        for (name, kind) in FIELDS {
            for targets in targets {
                let races = plays(&Race::new(kind, &vec![0.0; *targets]), count, false);
                let own = matches!(kind, Kind::Own(_));
                let covered = shares(&races, |race| race.covered);
                let least: f64 = if own { 0.90 } else { 0.95 };
                let bounds =
                    [0, 1, 2].map(|at| format!("{:.1}", 100.0 * middle(&races, |race| race.bounds[at]).exp_m1()));
                let forgot = shares(&races, |race| race.forgot);
                let pick = shares(&races, |race| race.pick_covered);
                let percent = [covered, pick, forgot].map(|share| format!("{:.1}", 100.0 * share));
                println!("| {name} | {targets} | {} | {} |", percent.join(" | "), bounds.join(" | "));
                assert!(covered >= least - 3.5 * share_error(least, count), "{name}, {targets} targets: {covered}");
                assert!(own || forgot < 0.03 + 3.5 * share_error(0.03, count), "{name}, {targets}: forgot {forgot}");
            }
        }
    }

    fn middle(races: &[Played], of: impl Fn(&Played) -> f64) -> f64 {
        super::super::median(&races.iter().map(of).collect::<Vec<_>>()).expect("races")
    }

    /// Of five targets 0, 10, 20, 40 and 80 % slower, few rounds find the best.
    #[test]
    fn a_wide_field_is_decided_after_a_few_rounds() {
        let count = replications(15, 2000);
        let truth = [0.0, 0.1, 0.2, 0.4, 0.8].map(f64::ln_1p);
        println!("| noise | covered % | the pick's % | decided % | rounds | cells |");
        for (name, kind) in FIELDS {
            let races = plays(&Race::new(kind, &truth), count, true);
            let percent =
                [shares(&races, |r| r.covered), shares(&races, |r| r.pick_covered), shares(&races, |r| r.decided)];
            let mean = |of: fn(&Played) -> f64| races.iter().map(of).sum::<f64>() / count as f64;
            let (rounds, cells) = (mean(|race| f64::from(race.rounds)), mean(|race| race.cells as f64));
            println!(
                "| {name} | {} | {rounds:.1} | {cells:.1} |",
                percent.map(|p| format!("{:.1}", 100.0 * p)).join(" | ")
            );
            assert!(percent[1] >= 0.95 - 3.5 * share_error(0.95, count), "{name}: {percent:?}");
            assert!(name != "normal 5 %" || cells < 40.0, "{name}: {cells} cells");
        }
    }

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
        assert_eq!((found.eliminated[0], found.regret[1]), (Some((0, 1)), 0.0));
        assert_eq!(standing(&compared(&logs), &[Look::only(2)]).regret, [f64::INFINITY; 2]);
    }

    /// Eight rounds of two targets are known to within the ranks: K = 6 at 5 % one-sided (Hollander & Wolfe 1999).
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
        assert!(after(8).eliminated[2].is_some_and(|(look, _)| look < 4) && after(8).members() == [0, 1]);
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

    #[test]
    fn rounds_that_resemble_the_one_before_widen_the_bounds() {
        let race = |kept| Race::new(Kind::Own(kept), &[0.0; 8]).play(5, false).forgot;
        assert_eq!([race(0.0), race(0.9)], [false, true]);
    }

    /// The second of two equals lacks some of its twenty rounds: so it may be slower than it looks, and the first is not.
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
