//! How long single operations took, as curves: the histograms of all rounds added up, read at
//! shares that lie ever closer together towards the slowest.

use super::model::TargetInfo;
use super::plain::plain;
use super::series::ObservedWork;
use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use pickfs_core::journal::{self, Outcome};
use std::io::Read;

/// Bytes of a histogram that is unpacked; ours have some tens of thousands. A larger one is a bomb.
const LARGEST: u64 = 4 << 20;
/// What has more operations than this shows the first ones.
const MOST_CURVES: usize = 64;
/// Points of a curve for each power of ten towards the slowest.
const BY_DECADE: f64 = 20.0;
/// As pickfs records them: up to an hour, in nanoseconds, three digits.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// One kind of operation of a phase.
#[derive(Debug)]
pub struct LatencyCurves {
    pub phase: String,
    /// Empty where the phase has one kind alone.
    pub operation: String,
    pub curves: Vec<LatencyCurve>,
}

#[derive(Debug)]
pub struct LatencyCurve {
    pub target: usize,
    /// Nanoseconds, and the share of operations, 0 to 1, that took no longer; both ascend.
    pub points: Vec<(f64, f64)>,
    /// Histograms that cannot be read, and so are not in it.
    pub unreadable: usize,
}

pub(crate) fn latencies(observed: &ObservedWork, targets: &[TargetInfo]) -> Vec<LatencyCurves> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for found in (0..targets.len()).flat_map(|target| histograms(observed, target)) {
        let kind = (found.phase.as_str(), found.operation.as_str());
        if kinds.len() < MOST_CURVES && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let curves = |&(phase, operation): &(&str, &str)| LatencyCurves {
        phase: plain(phase),
        operation: if operation == "latency" { String::new() } else { plain(&operation.replace('_', " ")) },
        curves: (0..targets.len())
            .filter(|target| !targets[*target].duplicate)
            .filter_map(|target| curve(observed, target, (phase, operation)))
            .collect(),
    };
    kinds.iter().map(curves).filter(|kind| !kind.curves.is_empty()).collect()
}

fn histograms<'a>(observed: &ObservedWork<'a>, target: usize) -> impl Iterator<Item = &'a journal::Histogram> {
    let done = observed.cells[target].values().filter(|cell| cell.outcome == Some(Outcome::Done));
    done.flat_map(|cell| &cell.histograms).collect::<Vec<_>>().into_iter()
}

fn curve(observed: &ObservedWork, target: usize, (phase, operation): (&str, &str)) -> Option<LatencyCurve> {
    let mut all = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, DIGITS).ok()?;
    let mut unreadable = 0;
    let own = histograms(observed, target).filter(|found| found.phase == phase && found.operation == operation);
    for found in own {
        let added = decoded(&found.encoded).and_then(|histogram| all.add(&histogram).ok());
        unreadable += usize::from(added.is_none());
    }
    (!all.is_empty()).then(|| LatencyCurve { target, points: points(&all), unreadable })
}

/// `None` for what pickfs would not write.
fn decoded(encoded: &str) -> Option<Histogram<u64>> {
    if encoded.len() as u64 > LARGEST {
        return None;
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    // Past the outer cookie and length; what is inside has its own cookie.
    let mut unpacked = Vec::new();
    ZlibDecoder::new(bytes.get(8..)?).take(LARGEST).read_to_end(&mut unpacked).ok()?;
    let length = u32::from_be_bytes(unpacked.get(4..8)?.try_into().ok()?);
    (u64::from(length) <= LARGEST).then_some(())?;
    Deserializer::new().deserialize(&mut unpacked.as_slice()).ok()
}

fn points(all: &Histogram<u64>) -> Vec<(f64, f64)> {
    let decades = (all.len() as f64).log10();
    let steps = (decades * BY_DECADE).floor().min(BY_DECADE * 9.0) as u32;
    let shares = (0..=steps).map(|step| 1.0 - 10f64.powf(-f64::from(step) / BY_DECADE));
    let mut points: Vec<(f64, f64)> = Vec::new();
    for share in shares {
        let ns = all.value_at_quantile(share) as f64;
        match points.last_mut().filter(|(before, _)| *before >= ns) {
            Some(same) => same.1 = share,
            None => points.push((ns, share)),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    fn encoded(values: &[u64]) -> String {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, DIGITS).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    #[test]
    fn curves_ascend_to_the_slowest() {
        let values: Vec<u64> = (1..=10_000).map(|n| n * 1000).collect();
        let points = points(&decoded(&encoded(&values)).unwrap());
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert!(points.len() <= 81 && points.last().unwrap().1 > 0.9998);
        let at = |share: f64| points.iter().find(|point| point.1 >= share - 1e-9).unwrap().0;
        for (share, ns) in [(0.9, 9_000_000.0), (0.99, 9_900_000.0), (0.999, 9_990_000.0)] {
            assert!((at(share) / ns - 1.0).abs() < 0.002, "{share}: {}", at(share));
        }
    }

    #[test]
    fn what_is_no_histogram_of_ours_is_refused() {
        let good = encoded(&[5, 7]);
        let bytes = base64::engine::general_purpose::STANDARD.decode(&good).unwrap();
        let mut torn = bytes.clone();
        torn.truncate(bytes.len() / 2);
        let torn = base64::engine::general_purpose::STANDARD.encode(torn);
        for hostile in ["", "%%%", "AAAA", torn.as_str(), "A".repeat(5 << 20).as_str(), &good.replace('H', "B")] {
            let _ = decoded(hostile); // does neither panic nor take memory
        }
        assert!(decoded(&torn).is_none() && decoded("").is_none());
        assert!(decoded(&claims_to_be_long()).is_none());
    }

    /// Says that 4 GiB follow.
    fn claims_to_be_long() -> String {
        use flate2::{Compression, write::ZlibEncoder};
        use std::io::Write;
        let mut inner = 0x1c84_9303u32.to_be_bytes().to_vec();
        inner.extend(u32::MAX.to_be_bytes());
        inner.extend([0; 64]);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&inner).unwrap();
        let packed = zlib.finish().unwrap();
        let mut outer = 0x1c84_9304u32.to_be_bytes().to_vec();
        outer.extend((packed.len() as u32).to_be_bytes());
        outer.extend(packed);
        base64::engine::general_purpose::STANDARD.encode(outer)
    }
}
