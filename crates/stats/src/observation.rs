//! What repeats inside one cell come to. They share a file system, its layout and the minute, so
//! they are no independent evidence: however many, they are one observation, only a sharper one.

/// The one observation that the values of one cell make: their geometric mean, or the arithmetic
/// one where a value is not above 0. Nothing of nothing.
pub fn one_observation(values: &[f64]) -> Option<f64> {
    let mean = |values: &mut dyn Iterator<Item = f64>, n: usize| values.sum::<f64>() / n as f64;
    match values {
        [] => None,
        // Alike to the last bit, as counts are: no logarithm shall round them.
        [first, rest @ ..] if rest.iter().all(|value| value == first) => Some(*first),
        _ if values.iter().all(|value| *value > 0.0) => {
            Some(mean(&mut values.iter().map(|value| value.ln()), values.len()).exp())
        }
        _ => Some(mean(&mut values.iter().copied(), values.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_make_one_value() {
        let cases: [(&[f64], Option<f64>); 7] = [
            (&[], None),
            (&[7.0], Some(7.0)),
            (&[3e15 + 1.0, 3e15 + 1.0], Some(3e15 + 1.0)),
            (&[1.0, 4.0, 16.0], Some(4.0)),
            (&[0.0, 10.0], Some(5.0)),
            (&[-2.0, 8.0, 3.0], Some(3.0)),
            (&[0.0, 0.0], Some(0.0)),
        ];
        for (values, wanted) in cases {
            let found = one_observation(values);
            let near = |(found, wanted): (f64, f64)| (found - wanted).abs() <= 1e-12 * wanted.abs();
            assert!(found.is_some() == wanted.is_some() && found.zip(wanted).is_none_or(near), "{values:?}: {found:?}");
        }
    }
}
