//! Seeded noise for the simulations among this room's tests.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub(super) fn new(seed: u64) -> Noise {
        Noise(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in (0, 1]: never 0, so that its logarithm is finite.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box & Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student's t with two degrees of freedom: tails so heavy that the variance is infinite.
    pub(super) fn t2(&mut self) -> f64 {
        let half_chi_squared = -self.uniform().ln();
        self.normal() / half_chi_squared.max(f64::MIN_POSITIVE).sqrt()
    }
}
