//! How long single operations took: every one is counted, none is averaged away.

use anyhow::Result;
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use pickfs_system::sys::clock::Clock;

/// Relative error of a value is below one thousandth.
const DIGITS: u8 = 3;
/// What takes longer counts as this: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// What is shown of a histogram: the name's middle and the quantile.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// Latencies of operations of one kind, in nanoseconds. Each thread has its own, added up
/// afterwards.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    clock: Clock,
    /// When the last operation of a row ended, by this clock.
    last: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    pub fn new() -> Latencies {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("these bounds are allowed");
        let clock = Clock::of_machine();
        Latencies { histogram, clock, last: clock.now() }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
    }

    /// Records `count` operations that took this long each.
    pub(crate) fn record_many(&mut self, ns: u64, count: u64) {
        self.histogram.saturating_record_n(ns, count);
    }

    /// Starts a row of operations that follow each other.
    #[inline(always)]
    pub fn start(&mut self) {
        self.last = self.clock.now();
    }

    /// An operation of a row has ended, and the next begins: one look at the clock for both.
    #[inline(always)]
    pub fn lap(&mut self) {
        let now = self.clock.now();
        self.record(self.clock.nanoseconds(now.saturating_sub(self.last)));
        self.last = now;
    }

    /// Counts of both.
    pub(crate) fn add(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("all have the same bounds");
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(crate) fn mean_ns(&self) -> f64 {
        self.histogram.mean()
    }

    /// Nanoseconds that so large a share of all operations did not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share)
    }

    /// `latency_p99_ns` and its like, or `append_p99_ns` for the operation `append`.
    pub(super) fn samples(&self, operation: &str) -> Vec<(String, f64)> {
        let name = |what: &str| format!("{operation}_{what}");
        let mut samples = vec![
            (name("operations"), self.count() as f64),
            (name("mean_ns"), self.histogram.mean().round()),
            (name("max_ns"), self.histogram.max() as f64),
        ];
        samples.extend(QUANTILES.map(|(what, share)| (name(&format!("{what}_ns")), self.quantile(share) as f64)));
        samples
    }

    /// HdrHistogram's own compressed form (V2) in base64, which other programs read too.
    pub(super) fn encoded(&self) -> Result<String> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut bytes)
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Latencies as they come: most short, some a thousand times as long.
    fn recorded(seed: u64, count: u64) -> Vec<u64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        (0..count)
            .map(|_| if next() % 50 == 0 { 1_000_000 + next() % 9_000_000 } else { 900 + next() % 4000 })
            .collect()
    }

    fn exact(values: &mut [u64], share: f64) -> u64 {
        values.sort();
        values[(share * values.len() as f64).ceil() as usize - 1]
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        for (seed, count) in [(1, 200), (2, 5000), (3, 100_000)] {
            let mut values = recorded(seed, count);
            let mut latencies = Latencies::new();
            values.iter().for_each(|ns| latencies.record(*ns));
            for (_, share) in QUANTILES {
                let (found, wanted) = (latencies.quantile(share) as f64, exact(&mut values, share) as f64);
                assert!((found / wanted - 1.0).abs() < 0.01, "{share} of {count}: {found}, exactly {wanted}");
            }
        }
    }

    #[test]
    fn merging_adds_counts() {
        let (one, other) = (recorded(4, 3000), recorded(5, 700));
        let of = |values: &[u64]| {
            let mut latencies = Latencies::new();
            values.iter().for_each(|ns| latencies.record(*ns));
            latencies
        };
        let mut merged = of(&one);
        merged.add(&of(&other));
        let whole = of(&[one, other].concat());
        assert_eq!((merged.count(), merged.samples("x")), (3700, whole.samples("x")));
        assert_eq!(merged.encoded().unwrap(), whole.encoded().unwrap());
    }

    #[test]
    fn what_is_told_can_be_decoded() {
        let mut latencies = Latencies::new();
        recorded(6, 1000).iter().for_each(|ns| latencies.record(*ns));
        let bytes = base64::engine::general_purpose::STANDARD.decode(latencies.encoded().unwrap()).unwrap();
        let decoded: Histogram<u64> =
            hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(decoded, latencies.histogram);
    }

    #[test]
    fn a_row_of_laps_has_no_gaps() {
        let mut latencies = Latencies::new();
        let begun = Instant::now();
        latencies.start();
        (0..1000).for_each(|_| latencies.lap());
        let all = begun.elapsed().as_nanos() as f64;
        assert_eq!(latencies.count(), 1000);
        assert!(latencies.histogram.mean() * 1000.0 <= all * 1.01);
    }
}
