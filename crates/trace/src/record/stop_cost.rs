//! What the recorder's stops take of a program's processor time, to be taken off its times to
//! think.

use std::collections::{BTreeMap, VecDeque};

/// What a call takes that fails at once.
const CALL_NS: u64 = 200;
const FEW: usize = 4;
const MANY: usize = 32;

/// Nanoseconds of one stop: of a thread on the recorder's processor, and of one that runs anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StopNs {
    pub held: u64,
    pub free: u64,
}

/// Halves of a thread's stops: going on, and coming to the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HalfStops {
    held: u64,
    free: u64,
    last_is_held: bool,
}

impl HalfStops {
    pub(crate) fn on_resume(&mut self, is_held: bool) {
        let [held, free] = if is_held { [2, 0] } else { [0, 2] };
        *self = HalfStops { held: self.held + held, free: self.free + free, last_is_held: is_held };
    }

    pub(crate) fn is_held(self) -> bool {
        self.last_is_held
    }

    /// All but the coming to the stop that is next.
    pub(crate) fn take_ended(&mut self) -> HalfStops {
        let all = *self;
        let next = (all.held + all.free).min(1);
        let [held, free] = if all.last_is_held { [next, 0] } else { [0, next] };
        *self = HalfStops { held, free, ..all };
        HalfStops { held: all.held - held, free: all.free - free, ..all }
    }
}

impl StopNs {
    pub(crate) fn of(self, stops: HalfStops) -> u64 {
        (self.held * stops.held + self.free * stops.free) / 2
    }
}

/// The cost of one stop while the program runs. It is three times as much where the recorder is on
/// another processor, and that changes within a program. So the library in it stops twice for
/// nothing once loaded, and now and then again. Until it has, the loop of calls that mean nothing
/// must do.
#[derive(Debug)]
pub(crate) struct StopCost {
    alone: u64,
    held: Recent,
    free: Recent,
    measured_held: Option<u64>,
}

/// Stops for nothing.
#[derive(Debug, Default)]
struct Recent(VecDeque<u64>);

impl Recent {
    fn learn(&mut self, ns: u64) {
        if self.0.len() == MANY {
            self.0.pop_front();
        }
        self.0.push_back(ns);
    }

    fn ns(&self) -> Option<u64> {
        (self.0.len() >= FEW).then(|| median(self.0.iter().copied().collect()))
    }
}

impl StopCost {
    /// From nanoseconds between stops of the loop.
    pub(crate) fn new(calibration: Vec<u64>) -> StopCost {
        let (held, free) = Default::default();
        StopCost { alone: median(calibration), held, free, measured_held: None }
    }

    /// Nanoseconds of processor time between two stops between which the program did nothing.
    pub(crate) fn learn(&mut self, ns: u64, is_held: bool) {
        let recent = if is_held { &mut self.held } else { &mut self.free };
        recent.learn(ns.saturating_sub(CALL_NS));
    }

    /// What a stop of a thread that is held takes in truth: the recorder does its work on the same
    /// processor, and leaves it with cold caches. A stop for nothing does not show that.
    pub(crate) fn measured_held(&mut self, ns: u64) {
        self.measured_held = Some(ns);
    }

    pub(crate) fn ns(&self) -> StopNs {
        let (held, free) = (self.held.ns(), self.free.ns());
        StopNs { held: self.measured_held.or(held).unwrap_or(self.alone), free: free.or(held).unwrap_or(self.alone) }
    }
}

/// Where it is left to the replay: as in the loop of calls that mean nothing, or more where another
/// program has the processor meanwhile and every return finds its caches cold. The shortest of the
/// program's own gaps show that: in nearly every program a twentieth of all calls comes right after
/// another.
pub(crate) fn of_gaps(calibration: Vec<u64>, gaps: &BTreeMap<u64, u64>) -> u64 {
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
pub(crate) fn median(mut values: Vec<u64>) -> u64 {
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
        let now = |cost: &StopCost| (cost.ns().held, cost.ns().free);
        (1..FEW).for_each(|_| cost.learn(20_200, false));
        assert_eq!(now(&cost), (8000, 8000), "a few may be chance");
        cost.learn(20_200, false);
        assert_eq!(now(&cost), (8000, 20_000));
        (0..FEW).for_each(|_| cost.learn(3200, true));
        assert_eq!(now(&cost), (3000, 20_000));
        (0..MANY).for_each(|_| cost.learn(9200, false));
        assert_eq!((now(&cost), cost.free.0.len()), ((3000, 9000), MANY));
        cost.measured_held(5500);
        (0..MANY).for_each(|_| cost.learn(2200, true));
        assert_eq!(now(&cost), (5500, 9000));
    }

    #[test]
    fn the_way_to_the_next_stop_counts_with_the_next() {
        let cost = StopNs { held: 4, free: 20 };
        let mut stops = HalfStops::default();
        assert_eq!((cost.of(stops), cost.of(stops.take_ended())), (0, 0));
        stops.on_resume(true);
        stops.on_resume(false);
        assert_eq!((cost.of(stops), stops.is_held()), (24, false));
        assert_eq!((cost.of(stops.take_ended()), cost.of(stops)), (14, 10));
        stops.on_resume(true);
        assert_eq!((cost.of(stops.take_ended()), cost.of(stops)), (12, 2));
    }
}
