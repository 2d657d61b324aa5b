//! How fast this processor is at the moment: the same small work, again and again for 30 ms.

#![expect(clippy::disallowed_methods, reason = "measures how fast this machine is")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

/// Long enough to see what the scheduler does.
const DURATION: Duration = Duration::from_millis(30);
/// More than a core's own caches hold, as the work of a file system does not stay in them either.
const BUFFER: usize = 8 << 20;
const PIECE: usize = 128 << 10;
/// System calls in each piece of work.
const CALLS: usize = 32;

/// The buffer, which is made once so that no page is new in a measurement.
pub(crate) struct SpeedProbe {
    buffer: Vec<u8>,
    at: usize,
}

impl SpeedProbe {
    pub(crate) fn new() -> SpeedProbe {
        SpeedProbe { buffer: (0..BUFFER).map(|at| (at % 251) as u8).collect(), at: 0 }
    }

    /// Pieces of work a second, which mean nothing but by their ratios.
    pub(crate) fn read(&mut self) -> f64 {
        let begun = Instant::now();
        let mut pieces = 0u32;
        while pieces == 0 || begun.elapsed() < DURATION {
            self.work();
            pieces += 1;
        }
        f64::from(pieces) / begun.elapsed().as_secs_f64()
    }

    /// A copy, a hash and some system calls, about as a file system mixes them.
    fn work(&mut self) {
        let next = (self.at + PIECE) % BUFFER;
        self.buffer.copy_within(self.at..self.at + PIECE, next);
        black_box(xxh3_64(&self.buffer[next..next + PIECE]));
        for _ in 0..CALLS {
            black_box(rustix::process::getppid());
        }
        self.at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_of_pieces_and_the_buffer_stays_whole() {
        let mut probe = SpeedProbe::new();
        assert!(probe.read() > 0.0 && probe.read().is_finite());
        assert_eq!(probe.buffer.len(), BUFFER);
        assert!(probe.buffer.iter().all(|byte| *byte < 251));
    }
}
