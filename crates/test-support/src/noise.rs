//! Seeded noise for simulations: the shapes that measured times take.
//!
//! All values are natural logarithms of a time: 0.01 is about 1 %.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in (0, 1]: never 0, so that its logarithm is finite.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box & Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Exponential with mean 1, which is the gamma distribution of shape 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Student's t with two degrees of freedom: tails so heavy that the variance is infinite.
    pub fn t2(&mut self) -> f64 {
        let half_chi_squared = self.exponential();
        self.normal() / half_chi_squared.max(f64::MIN_POSITIVE).sqrt()
    }
}

/// The noise of one target's logarithm of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    /// Normal with this standard deviation.
    Normal(f64),
    /// `scale * exp(0.5 g)`: skewed delays.
    LogNormal(f64),
    /// Exponential with this mean: a delay that is often short and seldom long.
    Skew(f64),
    /// Student's t with two degrees of freedom, of this scale.
    T2(f64),
    /// Normal with standard deviation `sd`, and a `share` (0 to 1) of the runs slower by `by`.
    Modes { sd: f64, share: f64, by: f64 },
}

impl Side {
    pub fn draw(self, noise: &mut Noise) -> f64 {
        match self {
            Side::Normal(sd) => sd * noise.normal(),
            Side::LogNormal(scale) => scale * (0.5 * noise.normal()).exp(),
            Side::Skew(mean) => mean * noise.exponential(),
            Side::T2(scale) => scale * noise.t2(),
            Side::Modes { sd, share, by } => sd * noise.normal() + if noise.uniform() <= share { by } else { 0.0 },
        }
    }

    /// The mean of [`Side::draw`].
    pub fn mean(self) -> f64 {
        match self {
            Side::Normal(_) | Side::T2(_) => 0.0,
            Side::LogNormal(scale) => scale * 0.125f64.exp(),
            Side::Skew(mean) => mean,
            Side::Modes { share, by, .. } => share * by,
        }
    }

    /// A draw less its mean: targets of different noise and the same mean of log time.
    pub fn centred(self, noise: &mut Noise) -> f64 {
        self.draw(noise) - self.mean()
    }
}

/// The noise of two targets in one round; what is measured is the truth plus first minus second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub name: &'static str,
    pub first: Side,
    pub second: Side,
}

impl Pair {
    const fn alike(name: &'static str, side: Side) -> Pair {
        Pair { name, first: side, second: side }
    }

    pub fn is_symmetric(self) -> bool {
        self.first == self.second
    }

    /// First minus second, without the mean being taken off.
    pub fn draw(self, noise: &mut Noise) -> f64 {
        self.first.draw(noise) - self.second.draw(noise)
    }

    /// The pseudomedian of [`Pair::draw`], which is what the Hodges-Lehmann estimate estimates: the
    /// median of the average of two differences. 0 for noise of one shape; else from a million
    /// averages, right to 0.2 % of their standard deviation.
    pub fn centre(self) -> f64 {
        if self.is_symmetric() {
            return 0.0;
        }
        let mut noise = Noise::new(20_240_601);
        let mut averages: Vec<f64> =
            (0..1_000_000).map(|_| (self.draw(&mut noise) + self.draw(&mut noise)) / 2.0).collect();
        *averages.select_nth_unstable_by(500_000, f64::total_cmp).1
    }
}

/// The noises under which an interval of one pair must keep its level.
pub const PAIRS: [Pair; 9] = [
    Pair::alike("normal1%", Side::Normal(0.01)),
    Pair::alike("normal10%", Side::Normal(0.10)),
    Pair::alike("logn.5", Side::LogNormal(0.02)),
    Pair::alike("gamma-skew", Side::Skew(0.05)),
    Pair::alike("bimodal80/20", Side::Modes { sd: 0.01, share: 0.2, by: 0.15 }),
    Pair::alike("bimodal50/50", Side::Modes { sd: 0.01, share: 0.5, by: 0.15 }),
    Pair::alike("t2 heavy", Side::T2(0.01)),
    Pair::alike("outlier5%x2", Side::Modes { sd: 0.01, share: 0.05, by: std::f64::consts::LN_2 }),
    Pair { name: "asym skew/normal", first: Side::Skew(0.05), second: Side::Normal(0.01) },
];

/// The noise of many targets: of those with an even index, and of those with an odd one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    pub name: &'static str,
    pub even: Side,
    pub odd: Side,
}

impl Field {
    const fn alike(name: &'static str, side: Side) -> Field {
        Field { name, even: side, odd: side }
    }

    /// The noise of one target in one round; its mean is 0.
    pub fn draw(self, target: usize, noise: &mut Noise) -> f64 {
        if target % 2 == 0 { self.even.centred(noise) } else { self.odd.centred(noise) }
    }
}

/// The noises under which the set of best targets must keep its level.
pub const FIELDS: [Field; 6] = [
    Field::alike("normal 2%", Side::Normal(0.02)),
    Field::alike("normal 5%", Side::Normal(0.05)),
    Field::alike("skew 3%", Side::Skew(0.03)),
    Field { name: "mixed", even: Side::Normal(0.01), odd: Side::Skew(0.04) },
    Field::alike("bimodal", Side::Modes { sd: 0.01, share: 0.2, by: 0.10 }),
    Field::alike("outlier 3%x2", Side::Modes { sd: 0.02, share: 0.03, by: std::f64::consts::LN_2 }),
];

/// How often a simulation is repeated: `small` by default, `full` where the environment has
/// `PICKFS_FULL=1`.
pub fn replications(small: usize, full: usize) -> usize {
    if std::env::var_os("PICKFS_FULL").is_some_and(|value| value == "1") { full } else { small }
}

/// Standard error of a share `p` seen in `count` independent trials.
pub fn share_error(p: f64, count: usize) -> f64 {
    (p * (1.0 - p) / count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(count: usize, draw: impl FnMut() -> f64) -> f64 {
        std::iter::repeat_with(draw).take(count).sum::<f64>() / count as f64
    }

    /// Four standard errors of 40 000 draws; no mean is known well for a variance that is infinite.
    #[test]
    fn means_are_the_stated_ones() {
        let sides = PAIRS.iter().flat_map(|p| [p.first, p.second]).chain(FIELDS.iter().flat_map(|f| [f.even, f.odd]));
        for side in sides.filter(|side| !matches!(side, Side::T2(_))) {
            let mut noise = Noise::new(1);
            let centre = mean(40_000, || side.centred(&mut noise));
            let variance = mean(40_000, || side.centred(&mut noise).powi(2));
            assert!(centre.abs() < 4.0 * (variance / 40_000.0).sqrt(), "{side:?}: {centre}");
        }
    }

    /// For a = 0.05 Exp(1) alone the median of (a + a')/2 is 0.025 times 1.678347, the median of
    /// the gamma distribution of shape 2; a little normal noise hardly moves it.
    #[test]
    fn the_centre_of_unlike_noise_is_its_pseudomedian() {
        let centres = PAIRS.map(Pair::centre);
        assert!(centres[..8].iter().all(|centre| *centre == 0.0));
        let bare = Pair { name: "bare", first: Side::Skew(0.05), second: Side::Normal(0.0) }.centre();
        assert!((bare - 0.025 * 1.678_347).abs() < 1e-4, "{bare}");
        assert!((centres[8] - bare).abs() < 5e-3, "{}", centres[8]);
    }

    #[test]
    fn targets_take_turns_in_a_mixed_field() {
        let mixed = FIELDS[3];
        let draws = |target: usize| {
            let mut noise = Noise::new(3);
            (0..1000).map(|_| mixed.draw(target, &mut noise)).collect::<Vec<f64>>()
        };
        let lowest = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
        assert!(lowest(draws(0)) > -0.05 && lowest(draws(3)) >= -0.04 && draws(1) == draws(3));
    }
}
