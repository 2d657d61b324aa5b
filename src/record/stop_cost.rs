//! What the recorder's stops take of a program's processor time, to be taken off its times to think.

use std::collections::{BTreeMap, VecDeque};

/// What a call takes that fails at once.
const CALL_NS: u64 = 200;
const FEW: usize = 4;
const MANY: usize = 32;

/// Of one stop, as the program goes on. The same stop costs 8 µs while the recorder is woken on the program's processor and 20 µs while it
/// is on another one (23 November 2026, a virtual machine), and that changes within a program. So the library in it stops twice for
/// nothing as soon as it is loaded, and now and then again. Until it has, the loop of calls that mean nothing must do.
#[derive(Debug)]
pub struct StopCost {
    alone: u64,
    recent: VecDeque<u64>,
}

impl StopCost {
    /// From nanoseconds between stops of the loop.
    pub fn new(calibration: Vec<u64>) -> StopCost {
        StopCost { alone: median(calibration), recent: VecDeque::new() }
    }

    /// Nanoseconds of processor time between two stops between which the program did nothing.
    pub fn learn(&mut self, ns: u64) {
        if self.recent.len() == MANY {
            self.recent.pop_front();
        }
        self.recent.push_back(ns.saturating_sub(CALL_NS));
    }

    pub fn ns(&self) -> u64 {
        if self.recent.len() < FEW { self.alone } else { median(self.recent.iter().copied().collect()) }
    }
}

/// Where it is left to the replay: as in the loop of calls that mean nothing, or more where another program has the processor
/// meanwhile and every return finds its caches cold. The shortest of the program's own gaps show that: in nearly every program a
/// twentieth of all calls comes right after another.
pub fn of_gaps(calibration: Vec<u64>, gaps: &BTreeMap<u64, u64>) -> u64 {
    const SHORTEST: u64 = 20;
    const MOST: u64 = 20;
    const MOST_UNKNOWN: u64 = 20_000;
    let alone = median(calibration);
    let (all, mut seen) = (gaps.values().sum::<u64>(), 0);
    let short = gaps.iter().find(|(_, count)| {
        seen += **count;
        seen * SHORTEST >= all
    });
    // What runs already makes no calls that mean nothing.
    let most = if alone == 0 { MOST_UNKNOWN } else { MOST * alone };
    short.map_or(alone, |(gap, _)| (*gap).clamp(alone, most))
}

/// 0 of none.
pub fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_cost_what_the_shortest_gaps_take_within_reason() {
        let cost = |gaps: &[(u64, u64)]| of_gaps(vec![900, 1000, 5000], &gaps.iter().copied().collect());
        assert_eq!(cost(&[]), 1000);
        assert_eq!(cost(&[(100, 50), (3000, 50)]), 1000);
        assert_eq!(cost(&[(100, 1), (3000, 50), (90_000, 49)]), 3000);
        assert_eq!(cost(&[(1_000_000, 10)]), 20_000);
        assert_eq!(of_gaps(Vec::new(), &[(3000, 9)].into()), 3000);
    }

    #[test]
    fn the_cost_follows_the_program() {
        let mut cost = StopCost::new(vec![7900, 8000, 50_000]);
        (1..FEW).for_each(|_| cost.learn(20_200));
        assert_eq!(cost.ns(), 8000, "a few may be chance");
        cost.learn(20_200);
        assert_eq!(cost.ns(), 20_000);
        (0..MANY / 2).for_each(|_| cost.learn(8200));
        assert_eq!(cost.ns(), 8000);
        (0..MANY).for_each(|_| cost.learn(9200));
        assert_eq!((cost.ns(), cost.recent.len()), (9000, MANY));
    }
}
