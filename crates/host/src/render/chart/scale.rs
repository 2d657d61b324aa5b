//! Where values lie on an axis, and which of them get a label.

use pickfs_system::units::Unit;

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Linear,
    Logarithmic,
    /// Shares, 0 to 1, that come ever nearer to one: 0.9, 0.99, 0.999 lie equally far apart.
    Nines,
}

/// Values from `low` to `high` on pixels from `from` to `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// `values` decide how far it reaches; a scale is never empty.
    pub(crate) fn over(kind: Kind, values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Scale {
        let places = values.into_iter().map(|value| place(kind, value)).filter(|place| place.is_finite());
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let wide = if high - low > low.abs() * 1e-9 { high - low } else { (low.abs() * 0.1).max(1e-9) };
        Scale { kind, low, high: low + wide, from, to }
    }

    /// Some air at both ends, as a share of the whole.
    pub(crate) fn with_air(mut self, share: f64) -> Scale {
        let air = (self.high - self.low) * share;
        (self.low, self.high) = (self.low - air, self.high + air);
        self
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = (place(self.kind, value) - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// About `most` values that deserve a label.
    pub(crate) fn ticks(&self, most: usize, unit: Unit) -> Vec<f64> {
        match self.kind {
            Kind::Linear => linear_ticks(self.low, self.high, most, unit),
            Kind::Logarithmic => logarithmic_ticks(self.low, self.high, most),
            Kind::Nines => {
                let is_shown = |share: &f64| {
                    let place = place(Kind::Nines, *share);
                    place >= self.low - 1e-9 && place <= self.high + 1e-9
                };
                (0..=9).map(nines).filter(is_shown).collect()
            }
        }
    }
}

fn place(kind: Kind, value: f64) -> f64 {
    match kind {
        Kind::Linear => value,
        Kind::Logarithmic => value.max(1e-9).log10(),
        Kind::Nines => -(1.0 - value).max(1e-9).log10(),
    }
}

/// 0, 0.9, 0.99 ...
fn nines(count: i32) -> f64 {
    1.0 - 10f64.powi(-count)
}

/// Round numbers in the unit: powers of ten, or of 1024 for bytes.
fn linear_ticks(low: f64, high: f64, most: usize, unit: Unit) -> Vec<f64> {
    let base = match unit {
        Unit::Bytes | Unit::BytesPerSecond => 1024f64.powf(high.abs().max(1.0).log(1024.0).floor()),
        _ => 1.0,
    };
    let rough = (high - low) / base / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= rough).unwrap_or(power);
    let step = step * base;
    let first = (low / step).ceil();
    (0..=most * 2).map(|n| (first + n as f64) * step).take_while(|value| *value <= high + step * 1e-6).collect()
}

fn logarithmic_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let decades = (low.floor() as i32..=high.ceil() as i32).map(|n| 10f64.powi(n));
    let inside = |value: &f64| (low - 1e-9..=high + 1e-9).contains(&value.log10());
    let choices: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let of = |factors: &[f64]| -> Vec<f64> {
        decades.clone().flat_map(|decade| factors.iter().map(move |f| f * decade)).filter(inside).collect()
    };
    let fitting = choices.iter().map(|factors| of(factors)).find(|ticks| ticks.len() <= most);
    let fitting = fitting.unwrap_or_else(|| of(&[1.0]));
    let each = fitting.len().div_ceil(most.max(1)).max(1);
    fitting.into_iter().step_by(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_in_their_unit() {
        let linear = |low, high, unit| Scale::over(Kind::Linear, [low, high], 0.0, 100.0).ticks(4, unit);
        assert_eq!(linear(0.0, 1.9e9, Unit::Nanoseconds), [0.0, 5e8, 1e9, 1.5e9]);
        let mib = (1u64 << 20) as f64;
        assert_eq!(linear(0.0, 390.0 * mib, Unit::BytesPerSecond), [0.0, 100.0 * mib, 200.0 * mib, 300.0 * mib]);
        let log = |low, high| Scale::over(Kind::Logarithmic, [low, high], 0.0, 100.0).ticks(5, Unit::Nanoseconds);
        assert_eq!(log(900.0, 2e8), [1e3, 1e4, 1e5, 1e6, 1e7, 1e8].into_iter().step_by(2).collect::<Vec<_>>());
        assert_eq!(log(1000.0, 11_000.0), [1e3, 2e3, 5e3, 1e4]);
        let nines = Scale::over(Kind::Nines, [0.0, 0.999], 0.0, 90.0);
        assert_eq!(nines.ticks(9, Unit::Share).len(), 4);
        assert!((nines.at(0.99) - 60.0).abs() < 1e-6);
    }

    /// No values, one value, values that are none: still a scale, and nothing outside of it.
    #[test]
    fn no_values_break_a_scale() {
        let cases: [&[f64]; 5] = [&[], &[5.0], &[f64::NAN, f64::INFINITY], &[0.0, 0.0], &[-1e300, 1e300]];
        for values in cases {
            for kind in [Kind::Linear, Kind::Logarithmic, Kind::Nines] {
                let scale = Scale::over(kind, values.iter().copied(), 10.0, 90.0).with_air(0.05);
                for value in [0.0, 1.0, 5.0, 1e300, -1e300] {
                    assert!((10.0..=90.0).contains(&scale.at(value)), "{kind:?} {values:?} {value}");
                }
                assert!(scale.ticks(4, Unit::Bytes).len() <= 10, "{kind:?} {values:?}");
            }
        }
    }
}
