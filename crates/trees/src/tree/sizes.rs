//! Sizes of files as a profile has them: not drawn, but spread evenly over the quantiles, so that
//! few files have the right distribution too; and made to add up.

use crate::profile::{Class, Lognormal};

/// Sizes of `files` files, ascending, that sum to `bytes` where there are any. Exact on all
/// machines.
pub(crate) fn sizes(class: &Class, files: u64, bytes: u64) -> Vec<u64> {
    let tops = tops(&class.largest, files, class.files);
    let body = body(class, files as usize, &tops);
    let mut sizes = fitted(body, tops, bytes);
    sizes.sort_unstable();
    sizes
}

/// As many of the largest sizes as belong to `files` files, spread evenly over the known ones.
fn tops(largest: &[u64], files: u64, of: u64) -> Vec<u64> {
    let count = (largest.len() as u128 * u128::from(files) / u128::from(of.max(1))) as u64;
    let count = count.max(1).min(files).min(4 * largest.len() as u64);
    let at = |top: u64| ((2 * top + 1) * largest.len() as u64 / (2 * count)) as usize;
    (0..count).filter_map(|top| largest.get(at(top)).copied()).collect()
}

/// All but the largest, none larger than those.
fn body(class: &Class, files: usize, tops: &[u64]) -> Vec<u64> {
    let count = files.saturating_sub(tops.len());
    let places = (0..count).map(|place| (place as f64 + 0.5) / files as f64);
    match class.lognormal {
        Some(lognormal) => lognormals(&lognormal, places),
        None if class.sizes.len() == files => class.sizes[..count].to_vec(),
        None => {
            let known = below(&class.sizes, count as f64 / files as f64, tops.last().copied());
            places.map(|place| quantile(&known, place)).collect()
        }
    }
}

/// The quantiles such that at the place where the largest begin there is the smallest of them: what
/// lies between the last but one and the very largest says nothing of how many are how large.
fn below(known: &[u64], place: f64, largest: Option<u64>) -> Vec<u64> {
    let mut known = known.to_vec();
    let steps = known.len().saturating_sub(1) as f64;
    if let (Some(largest), Some(last)) = (largest.filter(|_| place * steps > steps - 1.0), known.last_mut()) {
        *last = largest.min(*last);
    }
    known
}

/// Between the two that are known and next to it, evenly in the logarithm: by halving with square
/// roots, which all machines round alike.
pub(crate) fn quantile(known: &[u64], place: f64) -> u64 {
    let Some(last) = known.len().checked_sub(1) else { return 0 };
    let exact = place * last as f64;
    let low = (exact as usize).min(last);
    let (mut from, mut to) = (known[low] as f64 + 1.0, known[(low + 1).min(last)] as f64 + 1.0);
    let mut way = exact - low as f64;
    for _ in 0..8 {
        let middle = (from * to).sqrt();
        way *= 2.0;
        if way < 1.0 {
            to = middle;
        } else {
            (from, way) = (middle, way - 1.0);
        }
    }
    (from + way * (to - from) - 1.0 + 0.5) as u64
}

/// The places rise, so one walk along the bell is enough; an exponential is (1 + x/2^20)^(2^20), as
/// the last bit of a library's may differ between machines.
fn lognormals(lognormal: &Lognormal, places: impl Iterator<Item = f64>) -> Vec<u64> {
    const STEP: f64 = 1.0 / 256.0;
    const DENSITY: f64 = 0.398_942_280_401_432_7; // 1 / sqrt(2 pi)
    let (mut x, mut below) = (-6.0f64, 0.0f64);
    let size = |place: f64| {
        while below < place && x < 6.0 {
            let middle = x + STEP / 2.0;
            below += STEP * DENSITY * exponential(-middle * middle / 2.0);
            x += STEP;
        }
        (lognormal.median * exponential(lognormal.deviation * x)) as u64
    };
    places.map(size).collect()
}

pub(crate) fn exponential(x: f64) -> f64 {
    (0..20).fold(1.0 + x / f64::from(1 << 20), |power, _| power * power)
}

/// Makes the sum right where that distorts least: a little more or less of the hundredth of the
/// files that are largest apart from known ones, or of more of them; else other largest ones, as a
/// part of a tree has no file as large as the whole; else all.
fn fitted(mut body: Vec<u64>, mut tops: Vec<u64>, bytes: u64) -> Vec<u64> {
    let sum = |sizes: &[u64]| sizes.iter().sum::<u64>();
    let left = bytes.saturating_sub(sum(&tops));
    let largest = body.last().copied().unwrap_or(0);
    let adjustable = [100, 10, 1].map(|part| body.len() - body.len() / part).into_iter().find(|from| {
        let fixed = sum(&body[..*from]);
        let wanted = left.saturating_sub(fixed) as f64 / sum(&body[*from..]).max(1) as f64;
        *from < body.len() && (0.8..1.25).contains(&wanted)
    });
    if let Some(from) = adjustable {
        let rest = left - sum(&body[..from]);
        scale(&mut body[from..], rest);
    } else if !tops.is_empty() && bytes >= sum(&body) + largest * tops.len() as u64 {
        let rest = bytes - sum(&body);
        scale(&mut tops, rest);
    } else {
        body.append(&mut tops);
        scale(&mut body, bytes);
    }
    body.extend(tops);
    body
}

/// In proportion, with exactly that sum: what is rounded off a size goes to the next.
pub(crate) fn scale(numbers: &mut [u64], sum: u64) {
    let all: u128 = numbers.iter().map(|number| u128::from(*number)).sum();
    if all == 0 {
        let count = numbers.len() as u64;
        let even = |place: u64| sum / count + u64::from(place >= count - sum % count);
        return numbers.iter_mut().enumerate().for_each(|(place, number)| *number = even(place as u64));
    }
    let (mut before, mut given) = (0u128, 0u64);
    for number in numbers {
        before += u128::from(*number);
        let until = (before * u128::from(sum) / all) as u64;
        *number = until - given;
        given = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(files: u64, sizes: &[u64], largest: &[u64]) -> Class {
        Class { files, sizes: sizes.into(), largest: largest.into(), ..Class::default() }
    }

    #[test]
    fn sizes_add_up_and_follow_the_quantiles() {
        let cases: [(Class, u64, u64, &[u64]); 7] = [
            (class(4, &[7, 9, 20, 80], &[]), 4, 116, &[7, 9, 20, 80]),
            (class(4, &[7, 9, 20, 80], &[80]), 4, 120, &[7, 10, 23, 80]),
            (class(4, &[7, 9, 20, 80], &[80]), 4, 236, &[7, 9, 20, 200]),
            (class(3, &[], &[]), 3, 10, &[3, 3, 4]),
            (class(2, &[0, 0], &[]), 2, 0, &[0, 0]),
            (class(0, &[1, 2], &[2]), 0, 0, &[]),
            (class(100, &[10, 10], &[9000, 8000, 7000]), 10, 1090, &[10, 10, 10, 10, 10, 10, 10, 10, 10, 1000]),
        ];
        for (class, files, bytes, wanted) in cases {
            let found = sizes(&class, files, bytes);
            assert_eq!(found.iter().sum::<u64>(), bytes, "{class:?}");
            assert_eq!(found, wanted, "{class:?}");
        }
    }

    #[test]
    fn between_quantiles_sizes_are_even_in_their_logarithm() {
        let found: Vec<u64> = [0.0, 0.25, 0.5, 0.75, 1.0].iter().map(|place| quantile(&[9, 99, 999], *place)).collect();
        assert_eq!(found, [9, 31, 99, 315, 999]);
        assert_eq!((quantile(&[], 0.5), quantile(&[7], 0.9)), (0, 7));
    }

    #[test]
    fn a_lognormal_has_its_median_and_its_spread() {
        let lognormal = Lognormal { median: 4096.0, deviation: 1.3 };
        let sizes = lognormals(&lognormal, [0.5, 0.841345, 0.977250, 0.999968].into_iter());
        for (size, wanted) in sizes.iter().zip([4096.0, 15_029.0, 55_146.0, 742_500.0]) {
            assert!((*size as f64 / wanted - 1.0).abs() < 0.02, "{size} instead of {wanted}");
        }
    }
}
