//! Samples the device every 100 ms while a phase runs, for its peak rates, as one watches `iostat` do.

use crate::probe::device::Watch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(100);

/// Bytes per second, over the best 100 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peaks {
    pub read: f64,
    pub write: f64,
}

pub struct Sampler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Peaks>>>,
}

impl Sampler {
    pub fn start(devices: Vec<(u32, u32)>) -> Sampler {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = Watch::new(&devices).map(|watch| std::thread::spawn(move || sample(&watch, &seen)));
        Sampler { over, thread }
    }

    /// `None` where there is no device, or the phase was too short for a single sample.
    pub fn stop(mut self) -> Option<Peaks> {
        self.over.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok().flatten()
    }
}

fn sample(watch: &Watch, over: &AtomicBool) -> Option<Peaks> {
    let mut before = watch.read()?;
    let mut since = Instant::now();
    let mut peaks = None;
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(EVERY);
        let (now, elapsed) = (watch.read()?, since.elapsed());
        if elapsed >= EVERY / 2 {
            let rate = |from: u64, to: u64| to.saturating_sub(from) as f64 / elapsed.as_secs_f64();
            let best: &mut Peaks = peaks.get_or_insert_default();
            best.read = best.read.max(rate(before.read_bytes, now.read_bytes));
            best.write = best.write.max(rate(before.write_bytes, now.write_bytes));
            (before, since) = (now, Instant::now());
        }
    }
    peaks
}
