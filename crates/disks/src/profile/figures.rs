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
    /// By number of random writes before it: nanoseconds of a flush.
    pub flushes: Vec<(usize, f64)>,
    /// Bytes that were written in sequence before, and bytes a second; in the first round only.
    pub sustained: Vec<(u64, f64)>,
}

/// One that was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub name: &'static str,
    pub value: f64,
}

pub(crate) fn parameter(name: &'static str, value: f64) -> Parameter {
    Parameter { name, value }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// One round from all: medians, and the shortest seeks.
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
        flushes: (writes.flushes.iter().enumerate())
            .map(|(at, (unsaved, _))| (*unsaved, of(&|round| Some(round.writes.as_ref()?.flushes.get(at)?.1))))
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
