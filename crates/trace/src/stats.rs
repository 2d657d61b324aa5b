//! What is in a trace, counted.

use super::op::{Class, Kind};
use super::{Op, Trace};
use std::collections::BTreeMap;

/// Operations of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    pub operations: u64,
    pub failed: u64,
    /// Moved, of reads and writes.
    pub bytes: u64,
    /// Half of them took no longer, as recorded.
    pub median_ns: u64,
}

/// Totals of a whole trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// By class, in its order.
    pub classes: Vec<ClassCount>,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Bytes that the program read or wrote through its memory, in pages that it had touched.
    pub bytes_mapped: u64,
    /// CPU time between operations, of all threads.
    pub think_ns: u64,
}

/// Above this share of mapped bytes a trace is an approximation.
const MUCH_MAPPED: f64 = 0.2;

impl Stats {
    pub fn mapped_share(&self) -> f64 {
        self.bytes_mapped as f64 / (self.bytes_read + self.bytes_written + self.bytes_mapped).max(1) as f64
    }

    pub fn is_approximate(&self) -> bool {
        self.mapped_share() > MUCH_MAPPED
    }

    pub fn of(&self, class: Class) -> ClassCount {
        self.classes.get(class as usize).copied().unwrap_or_default()
    }

    /// Calls on files; what a thread starts or waits for is none.
    pub fn calls(&self) -> u64 {
        let all: u64 = self.classes.iter().map(|class| class.operations).sum();
        all - self.of(Class::Thread).operations
    }
}

impl Trace {
    /// Time of the busiest thread, in nanoseconds: its operations, and `think` times its times to
    /// think.
    pub fn longest_thread_ns(&self, think: f64) -> f64 {
        let mut threads: BTreeMap<u32, f64> = BTreeMap::new();
        for op in self.ops.iter().filter(|op| op.kind.class() != Class::Thread) {
            *threads.entry(op.thread).or_default() += op.took_ns as f64 + op.think_ns as f64 * think;
        }
        threads.into_values().fold(0.0, f64::max)
    }

    pub fn stats(&self) -> Stats {
        let mut stats = Stats { classes: vec![ClassCount::default(); Class::NAMES.len()], ..Stats::default() };
        let mut took: Vec<Vec<u64>> = vec![Vec::new(); Class::NAMES.len()];
        for op in &self.ops {
            let class = &mut stats.classes[op.kind.class() as usize];
            class.operations += 1;
            class.failed += u64::from(op.failed());
            class.bytes = class.bytes.saturating_add(bytes(op));
            stats.think_ns = stats.think_ns.saturating_add(op.think_ns);
            took[op.kind.class() as usize].push(op.took_ns);
        }
        for (class, took) in stats.classes.iter_mut().zip(&mut took) {
            took.sort_unstable();
            class.median_ns = took.get(took.len() / 2).copied().unwrap_or(0);
        }
        stats.bytes_read = stats.of(Class::Read).bytes;
        stats.bytes_written = stats.of(Class::Write).bytes;
        stats.bytes_mapped = stats.of(Class::Map).bytes;
        stats
    }
}

fn bytes(op: &Op) -> u64 {
    match op.kind {
        Kind::Clone => op.length,
        kind if kind.moves_bytes() => op.result.max(0) as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::example;
    use super::*;

    #[test]
    fn operations_are_counted_by_class() {
        let stats = example().0.stats();
        assert_eq!((stats.bytes_read, stats.bytes_written, stats.bytes_mapped), (4096, 4096, 0));
        assert_eq!((stats.of(Class::Open).operations, stats.of(Class::Name).failed), (2, 1));
        assert_eq!((stats.calls(), stats.think_ns, stats.of(Class::Open).median_ns), (6, 640, 1 << 12));
        assert!(!stats.is_approximate());
    }
}
