//! When power is cut: at random moments, and just before and after flushes.

use pickfs_system::random::Random;

/// A stretch of time in which power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: u64,
    pub until: u64,
    /// How often, at moments that are drawn evenly.
    pub evenly: usize,
    /// How often around the ends of flushes, where what is promised becomes true.
    pub at_flushes: usize,
}

/// When power is cut, in nanoseconds of the recorded clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub at: u64,
    /// By its number.
    pub span: usize,
    /// It says how much is lost at any moment; one at a flush does not.
    pub evenly: bool,
}

/// The moments of all spans, ascending. One in each of as many equal stretches, so that they cover
/// the whole span.
pub fn moments(spans: &[Span], flushes: &[u64], seed: u64) -> Vec<Moment> {
    let mut found = Vec::new();
    for (number, span) in spans.iter().enumerate() {
        let mut random = Random::new(seed, number as u64);
        let length = span.until.saturating_sub(span.from).max(1);
        for stretch in 0..span.evenly as u64 {
            let at = |share: u64| span.from + (u128::from(length) * u128::from(share) / span.evenly as u128) as u64;
            let (from, until) = (at(stretch), at(stretch + 1).max(at(stretch) + 1));
            found.push(Moment { at: from + random.below(until - from), span: number, evenly: true });
        }
        let inside: Vec<u64> = flushes.iter().copied().filter(|at| (span.from..span.until).contains(at)).collect();
        for drawn in 0..if inside.is_empty() { 0 } else { span.at_flushes } {
            let flush = inside[random.index(inside.len())];
            let at = if drawn % 2 == 0 { flush } else { flush - 1 };
            found.push(Moment { at, span: number, evenly: false });
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_cover_their_span_and_flushes_are_met_at_both_sides() {
        let span = Span { from: 1000, until: 2000, evenly: 10, at_flushes: 40 };
        let flushes = [500, 1200, 1700, 2500];
        let found = moments(&[span], &flushes, 7);
        let evenly: Vec<u64> = found.iter().filter(|moment| moment.evenly).map(|moment| moment.at).collect();
        assert_eq!(evenly.len(), 10);
        assert!(evenly.iter().enumerate().all(|(n, at)| at / 100 == 10 + n as u64), "{evenly:?}");
        let others: Vec<u64> = found.iter().filter(|moment| !moment.evenly).map(|moment| moment.at).collect();
        assert_eq!(others, [1199, 1200, 1699, 1700], "those outside of the span are not met");
        assert_eq!(found, moments(&[span], &flushes, 7));
        assert_ne!(found, moments(&[span], &flushes, 8));
        assert!(found.is_sorted());
    }

    #[test]
    fn a_span_without_flushes_or_length_has_moments_too() {
        let span = Span { from: 5, until: 5, evenly: 3, at_flushes: 4 };
        assert_eq!(moments(&[span], &[], 1).iter().map(|moment| moment.at).max(), Some(5));
        assert!(moments(&[], &[1], 1).is_empty());
    }
}
