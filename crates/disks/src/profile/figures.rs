//! What a round has measured, and one round made of all.

use crate::virtual_clock::Loop;

/// What one round has measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Share of the sectors, and bytes a second, in reads of 1 MiB one after the other.
    pub sequential: Vec<(f64, f64)>,
    /// Bytes a second, in reads of 1 MiB, eight at a time.
    pub deep: f64,
    /// Nanoseconds of a read of 4 KiB that was read just before.
    pub same_place: f64,
    /// By queue depth: random reads of 4 KiB.
    pub random: Vec<(usize, Loop)>,
    /// Nanoseconds from a read of 4 KiB to the read of the 4 KiB before it; of hard disks.
    pub backwards: Option<f64>,
    /// Share of the stroke, number of reads, nanoseconds of the shortest; of hard disks.
    pub seeks: Vec<(f64, usize, f64)>,
    /// Where the disk may be written to.
    pub writes: Option<Writes>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    /// Random writes of 4 KiB, one at a time.
    pub random: Option<Loop>,
    /// By number of random writes before it: nanoseconds of each flush.
    pub flushes: Vec<(usize, Vec<f64>)>,
    /// Bytes that were written in sequence before, and bytes a second; in the first round only.
    pub sustained: Vec<(u64, f64)>,
}

/// One that was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub name: &'static str,
    pub value: f64,
    /// Where one number is not enough: pairs of percent and value, with their median as `value`.
    /// Empty elsewhere.
    pub pairs: Vec<[f64; 2]>,
}

pub(crate) fn parameter(name: &'static str, value: f64) -> Parameter {
    Parameter { name, value, pairs: Vec::new() }
}

impl Writes {
    /// Nanoseconds of flushes after this number of writes, the shortest first; none where there are
    /// none.
    pub fn flushes_after(&self, unsaved: usize) -> Option<Vec<f64>> {
        let (_, times) = self.flushes.iter().find(|(count, times)| *count == unsaved && !times.is_empty())?;
        let mut sorted = times.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(sorted)
    }
}

/// A time that is farther than this from its line is a separate corner, as a share of the line.
pub(crate) const NEAR: f64 = 0.02;

/// Pairs of percent and time, at most `most`, whose lines follow the sorted times: both ends, and
/// then the time that is farthest from its line, until all are near. So a gap between two modes has
/// a corner on each side.
pub(crate) fn distribution(sorted: &[f64], most: usize) -> Vec<[f64; 2]> {
    let last = sorted.len().saturating_sub(1);
    let mut corners = vec![0, last];
    let off = |low: usize, high: usize, at: usize| {
        let share = (at - low) as f64 / (high - low) as f64;
        (sorted[at] / (sorted[low] + (sorted[high] - sorted[low]) * share)).ln().abs()
    };
    while corners.len() < most {
        let between =
            corners.windows(2).flat_map(|ends| (ends[0] + 1..ends[1]).map(|at| (at, off(ends[0], ends[1], at))));
        let Some((farthest, _)) = between.filter(|(_, off)| *off > NEAR).max_by(|a, b| a.1.total_cmp(&b.1)) else {
            break;
        };
        corners.push(farthest);
        corners.sort_unstable();
    }
    corners.into_iter().map(|at| [100.0 * at as f64 / last.max(1) as f64, sorted[at]]).collect()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// One round from all: medians, the shortest seeks, and all flushes.
pub fn pooled(rounds: &[Round]) -> Round {
    let Some(first) = rounds.first() else { return Round::default() };
    let of = |value: &dyn Fn(&Round) -> Option<f64>| median(rounds.iter().filter_map(value).collect());
    let looped = |each: &dyn Fn(&Round) -> Option<Loop>| Loop {
        requests_a_second: of(&|round| Some(each(round)?.requests_a_second)),
        mean_ns: of(&|round| Some(each(round)?.mean_ns)),
        p99_ns: of(&|round| Some(each(round)?.p99_ns)),
    };
    let sequential = first
        .sequential
        .iter()
        .enumerate()
        .map(|(at, (share, _))| (*share, of(&|round| Some(round.sequential.get(at)?.1))));
    let random = first
        .random
        .iter()
        .enumerate()
        .map(|(at, (depth, _))| (*depth, looped(&|round| Some(round.random.get(at)?.1))));
    let seeks = first.seeks.iter().enumerate().map(|(at, (share, _, _))| {
        let here = rounds.iter().filter_map(|round| round.seeks.get(at));
        let (count, shortest) =
            here.fold((0, f64::INFINITY), |(sum, least), (_, count, ns)| (sum + count, least.min(*ns)));
        (*share, count, shortest)
    });
    let writes = first.writes.as_ref().map(|writes| Writes {
        random: Some(looped(&|round| round.writes.as_ref()?.random)),
        flushes: (writes.flushes.iter())
            .map(|(unsaved, _)| {
                let each = rounds.iter().filter_map(|round| round.writes.as_ref()?.flushes_after(*unsaved));
                (*unsaved, each.flatten().collect())
            })
            .collect(),
        sustained: writes.sustained.clone(),
    });
    Round {
        sequential: sequential.collect(),
        deep: of(&|round| Some(round.deep)),
        same_place: of(&|round| Some(round.same_place)),
        random: random.collect(),
        backwards: first.backwards.map(|_| of(&|round| round.backwards)),
        seeks: seeks.collect(),
        writes,
    }
}
