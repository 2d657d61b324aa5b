//! The order in which calls ended that were made without a stop: a counter in memory that the
//! program can write to. So whatever the counter says, only what the rings can hold is waited for
//! and remembered.

use anyhow::{Result, ensure};
use std::collections::VecDeque;

/// A call during which more others ended counts as begun with the oldest of these.
const REMEMBERED: usize = 1 << 20;

/// What has been read of the order.
pub(crate) struct Sequence {
    /// All up to here has been read.
    seen: u64,
    /// Number of places after that which the recorder took itself.
    own: u64,
    /// Number of places up to there whose calls have not been found in the rings.
    missing: u64,
    /// How many operations there were after each place, from the first one that is remembered.
    ops: VecDeque<u32>,
    first: u64,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence { seen: 0, own: 0, missing: 0, ops: VecDeque::from([0]), first: 0 }
    }
}

impl Sequence {
    /// How many calls have ended since the last look, where the counter stands at `now` and the
    /// rings hold at most `most` calls.
    pub(crate) fn wanted(&self, now: u64, most: u64) -> Result<u64> {
        let last = self.seen.saturating_add(self.own);
        ensure!(now >= last, "the counter of calls went back from {last} to {now}");
        let calls = now - last;
        ensure!(
            calls <= most,
            "the counter of calls leaps from {last} to {now}, and at most {most} calls can be between"
        );
        Ok(calls)
    }

    /// Of the calls that were `wanted`, `new` are there; `late` ones have places that were read
    /// before. A thread that is killed in a call leaves one place empty, so `threads` places can be
    /// empty.
    pub(crate) fn found(&mut self, wanted: u64, new: u64, late: u64, threads: u64) -> Result<()> {
        ensure!(new <= wanted, "{new} calls have ended in {wanted} places of their order");
        let missing = self.missing + wanted - new;
        ensure!(late <= missing, "{late} calls have places in their order that others have, too");
        self.missing = missing - late;
        ensure!(self.missing <= threads, "{} calls have ended and are not there", self.missing);
        Ok(())
    }

    /// All up to there has been read.
    pub(crate) fn read(&mut self, now: u64) {
        (self.seen, self.own) = (now, 0);
    }

    pub(crate) fn is_new(&self, order: u64) -> bool {
        order > self.seen
    }

    pub(crate) fn is_at(&self, now: u64) -> bool {
        self.seen == now && self.own == 0
    }

    /// The recorder has taken a place, of which there were `ops` operations then.
    pub(crate) fn take(&mut self, order: u64, most: u64, ops: u32) -> Result<()> {
        self.wanted(order.wrapping_sub(1), most)?;
        self.own += 1;
        self.remember(order, ops);
        Ok(())
    }

    /// Remembers how many operations there were after a place.
    pub(crate) fn remember(&mut self, order: u64, ops: u32) {
        let Some(at) = order.checked_sub(self.first) else { return };
        let last = self.ops.back().copied().unwrap_or(0);
        while self.ops.len() as u64 <= at {
            self.ops.push_back(last);
        }
        self.ops[at as usize] = ops;
        while self.ops.len() > REMEMBERED {
            self.ops.pop_front();
            self.first += 1;
        }
    }

    pub(crate) fn ops_at(&self, order: u64) -> u32 {
        let at = usize::try_from(order.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.ops.get(at).or(self.ops.back()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_the_program_wrote_to_is_refused() {
        let mut sequence = Sequence::default();
        sequence.take(1, 9, 5).unwrap();
        assert_eq!(sequence.wanted(4, 9).unwrap(), 3);
        sequence.read(10);
        for (now, wanted) in [(10, Some(0)), (19, Some(9)), (20, None), (9, None), (0, None), (u64::MAX, None)] {
            assert_eq!(sequence.wanted(now, 9).ok(), wanted, "{now}");
            assert_eq!(sequence.take(now.wrapping_add(1), 9, 1).is_ok(), wanted.is_some(), "{now}");
            sequence.read(10);
        }
        assert!(sequence.ops.len() < 30, "{}", sequence.ops.len());
    }

    #[test]
    fn a_killed_thread_leaves_one_place_empty_and_no_more() {
        let found = |steps: &[(u64, u64, u64)]| {
            let mut sequence = Sequence::default();
            steps.iter().all(|(wanted, new, late)| sequence.found(*wanted, *new, *late, 2).is_ok())
        };
        assert!(found(&[(3, 2, 0), (1, 1, 1), (5, 3, 0), (0, 0, 2)]));
        assert!(!found(&[(3, 0, 0)]) && !found(&[(1, 0, 0), (1, 0, 0), (1, 0, 0)]), "more than there are threads");
        assert!(!found(&[(1, 2, 0)]) && !found(&[(1, 1, 1)]), "two calls of one place");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut sequence = Sequence::default();
        (1..=3).for_each(|order| sequence.remember(order, order as u32 * 10));
        assert_eq!([0, 1, 3, 9, u64::MAX].map(|order| sequence.ops_at(order)), [0, 10, 30, 30, 30]);
        sequence.remember(REMEMBERED as u64 + 2, 40);
        assert_eq!((sequence.ops.len(), sequence.ops_at(0), sequence.ops_at(u64::MAX)), (REMEMBERED, 30, 40));
    }
}
