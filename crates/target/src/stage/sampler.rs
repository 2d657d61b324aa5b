//! Samples the device every 100 ms while a phase runs, as one watches `iostat` do: its peak rates,
//! and its course.

use crate::probe::device::{Counters, Watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(100);

/// Most steps of a course; when it is full, two neighbours become one, so that no phase is too long
/// for the journal.
const MOST_STEPS: usize = 64;

/// What a phase's samples come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sampled {
    pub peaks: Peaks,
    pub course: Course,
}

/// Bytes per second, over the best 100 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Peaks {
    pub read: f64,
    pub write: f64,
}

/// Bytes by steps of time, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    /// Nanoseconds from the start of the phase to the end of each step.
    pub until_ns: Vec<u64>,
    pub read_bytes: Vec<u64>,
    pub write_bytes: Vec<u64>,
    /// Samples that make up a step; 0 before the first.
    samples: usize,
    /// Samples of the last step, so far.
    taken: usize,
}

impl Course {
    fn add(&mut self, until_ns: u64, read: u64, write: u64) {
        if self.taken == self.samples {
            if self.until_ns.len() == MOST_STEPS {
                self.halve();
            }
            self.samples = self.samples.max(1);
            self.taken = 0;
            self.until_ns.push(until_ns);
            self.read_bytes.push(0);
            self.write_bytes.push(0);
        }
        self.taken += 1;
        let last = self.until_ns.len() - 1;
        self.until_ns[last] = until_ns;
        self.read_bytes[last] += read;
        self.write_bytes[last] += write;
    }

    fn halve(&mut self) {
        self.until_ns = self.until_ns.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        self.read_bytes = self.read_bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.write_bytes = self.write_bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.samples *= 2;
    }
}

pub(crate) struct Sampler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Sampled>>>,
}

impl Sampler {
    pub(crate) fn start(devices: Vec<(u32, u32)>) -> Sampler {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = Watch::new(&devices).map(|watch| std::thread::spawn(move || sample(&watch, &seen)));
        Sampler { over, thread }
    }

    /// `None` where there is no device, or the phase was too short for a single sample.
    pub(crate) fn stop(mut self) -> Option<Sampled> {
        self.over.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok().flatten()
    }
}

fn sample(watch: &Watch, over: &AtomicBool) -> Option<Sampled> {
    let begun = Instant::now();
    let mut before = watch.read()?;
    let mut since = begun;
    let mut sampled: Option<Sampled> = None;
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(EVERY);
        let (now, elapsed) = (watch.read()?, since.elapsed());
        if elapsed >= EVERY / 2 {
            let so_far = sampled.get_or_insert_default();
            since = Instant::now();
            so_far.take(&before, &now, elapsed, since - begun);
            before = now;
        }
    }
    sampled
}

impl Sampled {
    fn take(&mut self, before: &Counters, now: &Counters, elapsed: Duration, until: Duration) {
        let read = now.read_bytes.saturating_sub(before.read_bytes);
        let write = now.write_bytes.saturating_sub(before.write_bytes);
        self.peaks.read = self.peaks.read.max(read as f64 / elapsed.as_secs_f64());
        self.peaks.write = self.peaks.write.max(write as f64 / elapsed.as_secs_f64());
        self.course.add(until.as_nanos() as u64, read, write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sample reads one byte, the third writes all.
    fn course(samples: u64) -> Course {
        let mut course = Course::default();
        (1..=samples).for_each(|at| course.add(at * 100, 1, if at == 3 { 1000 } else { 0 }));
        course
    }

    #[test]
    fn a_short_phase_keeps_every_sample() {
        let course = course(4);
        assert_eq!(course.until_ns, [100, 200, 300, 400]);
        assert_eq!((course.read_bytes, course.write_bytes), (vec![1; 4], vec![0, 0, 1000, 0]));
    }

    #[test]
    fn a_long_one_loses_steps_and_no_byte() {
        for samples in [MOST_STEPS as u64, MOST_STEPS as u64 + 1, 1000, 99_999] {
            let course = course(samples);
            assert!((MOST_STEPS / 2..=MOST_STEPS).contains(&course.until_ns.len()), "{samples}");
            assert_eq!(course.read_bytes.iter().sum::<u64>(), samples);
            assert_eq!(course.write_bytes.iter().sum::<u64>(), 1000);
            assert_eq!(course.until_ns.last(), Some(&(samples * 100)));
            assert!(course.until_ns.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
