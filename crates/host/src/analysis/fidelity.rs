//! How near simulated times come to those of the same work on a real machine: ratios between
//! targets, phase by phase, and by how much the simulated processor is slower.

use super::series::{Rounds, observe};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::Folded;
use pickfs_stats::median;
use std::collections::BTreeMap;

/// Pairs that differ by less than this say nothing about order.
const APART: f64 = 0.10;

/// Logarithms of the ratio of two figures, by two accounts.
#[derive(Clone, Copy)]
pub(super) struct Ratio {
    truth: f64,
    seen: f64,
}

impl Ratio {
    /// Each figure has what is true and what was seen.
    pub(super) fn of(one: [f64; 2], other: [f64; 2]) -> Ratio {
        Ratio { truth: (one[0] / other[0]).ln(), seen: (one[1] / other[1]).ln() }
    }

    pub(super) fn is_apart(self) -> bool {
        self.truth.abs() > APART.ln_1p()
    }

    pub(super) fn is_in_order(self) -> bool {
        self.truth.signum() == self.seen.signum() && self.seen != 0.0
    }

    pub(super) fn error(self) -> f64 {
        (self.seen - self.truth).abs()
    }
}

/// One phase of one target, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterpart {
    pub phase: String,
    pub target: String,
    /// Medians over the rounds: of all, and of every other one.
    pub here: f64,
    pub halves: Option<[f64; 2]>,
    pub simulated: f64,
}

impl Counterpart {
    /// How many times slower it is simulated.
    pub fn dilation(&self) -> f64 {
        self.simulated / self.here
    }
}

/// Ratios of two targets in the same phase, of one kind of time against another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Pairs that differ by more than 10 % here, and those of them that are in the same order
    /// simulated.
    pub apart: usize,
    pub in_order: usize,
    /// By how much ratios are off, as shares: in the median over all pairs, and the largest.
    pub median_error: f64,
    pub worst_error: f64,
}

/// Figures of both runs' plans; `metric` is a time, such as `cpu_net_ns`: without a disk, too, a
/// writer may wait for the kernel's timers. Figures below `least` nanoseconds are left out: kernels
/// count processor time in ticks.
pub fn figures(here: &Folded, simulated: &Folded, metric: &str, least: f64) -> Result<Vec<Counterpart>> {
    let [here, simulated] = [medians(here, metric)?, medians(simulated, metric)?];
    let figure = |of: &(String, String), (here, halves): (f64, Option<[f64; 2]>)| {
        let (simulated, _) = *simulated.get(of)?;
        Some(Counterpart { phase: of.0.clone(), target: of.1.clone(), here, halves, simulated })
    };
    let is_seen = |figure: &Counterpart| figure.here > 0.0 && figure.here >= least && figure.simulated > 0.0;
    let figures: Vec<Counterpart> = here.iter().filter_map(|(of, found)| figure(of, *found)).filter(is_seen).collect();
    ensure!(!figures.is_empty(), "no phase was measured in both runs that is long enough: give a larger --scale");
    Ok(figures)
}

/// By phase and target.
type Medians = BTreeMap<(String, String), (f64, Option<[f64; 2]>)>;

fn medians(folded: &Folded, metric: &str) -> Result<Medians> {
    let plan = &folded.run.as_ref().context("a journal without a run")?.plan;
    let observed = observe(folded, plan);
    let of = |rounds: &[(u32, f64)]| median(&rounds.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    let mut found = Medians::new();
    for work in &observed.works {
        for phase in work.phases() {
            for (target, name) in observed.targets.iter().enumerate() {
                let rounds = work.series(target, phase, metric);
                let half =
                    |rest: u32| rounds.iter().copied().filter(|(round, _)| round % 2 == rest).collect::<Rounds>();
                let halves = of(&half(0)).zip(of(&half(1))).map(|(even, odd)| [even, odd]);
                let all = of(&rounds).map(|all| (all, halves));
                found.extend(all.map(|all| ((phase.to_string(), name.to_string()), all)));
            }
        }
    }
    Ok(found)
}

/// Simulated against here, over all pairs of targets in each phase; `None` where there is none.
pub fn agreement(figures: &[Counterpart]) -> Option<Agreement> {
    agreement_of(figures, |figure| Some([figure.here, figure.simulated]))
}

/// The same between two halves of the rounds here: what noise alone does.
pub fn between_halves(figures: &[Counterpart]) -> Option<Agreement> {
    agreement_of(figures, |figure| figure.halves)
}

/// Each figure has the two times whose ratios are compared.
fn agreement_of(figures: &[Counterpart], times: impl Fn(&Counterpart) -> Option<[f64; 2]>) -> Option<Agreement> {
    let mut found = Agreement::default();
    let mut errors: Vec<f64> = Vec::new();
    for (at, one) in figures.iter().enumerate() {
        for other in figures[at + 1..].iter().filter(|other| other.phase == one.phase) {
            let Some((one, other)) = times(one).zip(times(other)) else { continue };
            let ratio = Ratio::of(one, other);
            errors.push(ratio.error().exp_m1());
            if ratio.is_apart() {
                found.apart += 1;
                found.in_order += usize::from(ratio.is_in_order());
            }
        }
    }
    found.median_error = median(&errors)?;
    found.worst_error = errors.iter().copied().fold(0.0, f64::max);
    Some(found)
}

/// By how much the compression of one target slows the processor down, in the phases where it takes
/// at least a tenth of the time here: what the compressed target takes more than the plain one,
/// simulated over here.
pub fn compression(figures: &[Counterpart], plain: &str, compressed: &str) -> Vec<f64> {
    let of = |target: &str, phase: &str| figures.iter().find(|f| f.target == target && f.phase == phase);
    let share = |one: &Counterpart| {
        let other = of(plain, &one.phase)?;
        let more = one.here - other.here;
        (more > 0.1 * one.here).then(|| (one.simulated - other.simulated) / more).filter(|found| *found > 0.0)
    };
    figures.iter().filter(|figure| figure.target == compressed).filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(phase: &str, target: &str, here: f64, simulated: f64) -> Counterpart {
        Counterpart { phase: phase.into(), target: target.into(), here, halves: None, simulated }
    }

    #[test]
    fn pairs_are_counted_where_they_are_apart() {
        let figures = [
            figure("write", "a", 100.0, 270.0),
            figure("write", "b", 105.0, 250.0), // as near as not to count, and the other way round
            figure("write", "c", 200.0, 540.0),
            figure("read", "a", 100.0, 300.0),
            figure("read", "b", 150.0, 290.0), // in another order
        ];
        let found = agreement(&figures).expect("pairs");
        assert_eq!((found.apart, found.in_order), (3, 2));
        assert!((found.worst_error - (1.5 * 300.0 / 290.0 - 1.0)).abs() < 1e-9, "{found:?}");
        assert!(found.median_error > 0.0 && found.median_error < 0.2, "{found:?}");
        let same = agreement_of(&figures, |f| Some([f.here, f.here * 3.0])).expect("pairs");
        assert_eq!((same.in_order, same.apart), (3, 3));
        assert!(same.worst_error < 1e-12);
        assert_eq!(between_halves(&figures), None);
    }

    #[test]
    fn compression_has_a_constant_of_its_own() {
        // All else is slowed down three times, compression six times.
        let figures = [
            figure("write", "plain", 100.0, 300.0),
            figure("write", "zstd", 150.0, 600.0),
            figure("remove", "plain", 10.0, 30.0),
            figure("remove", "zstd", 10.1, 31.0), // no compression in it
        ];
        assert_eq!(compression(&figures, "plain", "zstd"), [6.0]);
    }
}
