//! Whether a phase that should start cold did: what the device has read, against what it must have
//! read. Pure.

use super::phase::{ColdProof, Phase};
use super::phase_result::PhaseResult;
use crate::probe::device::READ_BYTES;
use crate::probe::space::Occupied;
use pickfs_core::journal::FlagKind;

/// Bytes that one inode takes at least on any disk format here (reiserfs stat data) that does not
/// compress them.
pub(crate) const SMALLEST_INODE: u64 = 44;

/// The share of what must be read that must have been seen.
const SEEN: f64 = 0.9;

/// What a cold phase must read at least, known once something was written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    pub occupied: Occupied,
    /// Bytes of an inode, at least.
    pub inode: u64,
    /// A small file takes less than the whole blocks that it is counted as, and at least what it
    /// holds.
    pub packs_tails: bool,
}

impl Expected {
    /// What was read anew; the rest does not change.
    pub(crate) fn update(&mut self, found: Occupied) {
        let old = self.occupied;
        self.occupied = Occupied {
            stored_bytes: found.stored_bytes.or(old.stored_bytes),
            apparent_bytes: found.apparent_bytes.or(old.apparent_bytes),
            entries: found.entries.or(old.entries),
        };
    }

    /// The share of content that compression leaves; at most all. None where it may have left less
    /// than is known.
    pub(crate) fn stored_share(&self) -> Option<f64> {
        let Occupied { stored_bytes, apparent_bytes, .. } = self.occupied;
        if stored_bytes.is_none() && apparent_bytes.is_some() {
            return None;
        }
        let share = stored_bytes.zip(apparent_bytes).map(|(stored, apparent)| stored / apparent);
        Some(share.filter(|share| share.is_finite()).unwrap_or(1.0).min(1.0))
    }

    /// Bytes that the device must read in a phase; none where that is unknown.
    fn bytes(&self, phase: &Phase, declared: Option<LeastRead>) -> Option<f64> {
        match phase.proof {
            ColdProof::AllData => {
                let most = self.occupied.apparent_bytes.filter(|_| self.packs_tails).unwrap_or(f64::INFINITY);
                self.occupied.stored_bytes.map(|stored| stored.min(most))
            }
            ColdProof::Metadata => self.occupied.entries.map(|entries| entries * self.inode as f64),
            ColdProof::Declared => declared.and_then(|least| match least {
                LeastRead::Content(bytes) => self.stored_share().map(|share| bytes as f64 * share),
                LeastRead::Stored(bytes) => Some(bytes as f64),
            }),
            ColdProof::AnyRead => Some(0.0),
        }
    }
}

/// The least that the work itself declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LeastRead {
    /// Bytes of content, which the file system may have compressed.
    Content(u64),
    /// Bytes as they lie on the device.
    Stored(u64),
}

/// Why a phase that started cold is not proved to have been cold. `witness` is a counter that must
/// have seen the reads too.
pub(crate) fn doubt(
    phase: &Phase,
    expected: &Expected,
    declared: Option<LeastRead>,
    result: &PhaseResult,
    witness: Option<&str>,
) -> Option<(FlagKind, String)> {
    match (bytes_read(result, witness), expected.bytes(phase, declared)) {
        (Some(0.0), _) if phase.proof == ColdProof::AnyRead => {
            let why = "the drive gave no byte: it was not cold, or there was nothing to read";
            Some((FlagKind::NotProvedCold, why.into()))
        }
        (Some(read), Some(least)) if read >= SEEN * least => None,
        (Some(read), Some(least)) => {
            Some((FlagKind::NotCold, format!("the drive gave {read:.0} bytes, at least {least:.0} were to be read")))
        }
        (Some(_), None) => Some((FlagKind::NotProvedCold, "how much was to be read is not known".into())),
        (None, _) => Some((FlagKind::NotCold, "there is no device whose reads could prove it".into())),
    }
}

/// What the device has read, and the witness too, where there is one.
fn bytes_read(result: &PhaseResult, witness: Option<&str>) -> Option<f64> {
    let read = result.count(READ_BYTES)?;
    let seen = witness.and_then(|metric| result.count(metric));
    Some(seen.map_or(read, |seen| seen.min(read)))
}

#[cfg(test)]
mod tests {
    use super::super::phase::*;
    use super::super::phase_result::WORKLOAD_READ_BYTES;
    use super::*;
    use crate::probe::device::READ_BYTES_BELOW;

    fn result(counts: &[(&str, f64)]) -> PhaseResult {
        let counts = counts.iter().map(|(metric, value)| (metric.to_string(), *value)).collect();
        PhaseResult { counts, ..PhaseResult::default() }
    }

    #[test]
    fn packed_tails_are_as_long_as_their_files() {
        let occupied = Occupied { stored_bytes: Some(6_651_904.0), apparent_bytes: Some(5_400_000.0), entries: None };
        let phase = Phase::new("read", "", Cold, AllData, Returned);
        let read = |packs_tails| {
            let expected = Expected { occupied, inode: 44, packs_tails };
            doubt(&phase, &expected, None, &result(&[(READ_BYTES, 5_476_352.0)]), None).map(|(flag, _)| flag)
        };
        assert_eq!([read(false), read(true)], [Some(FlagKind::NotCold), None]);
    }

    #[test]
    fn reads_from_a_cache_below_prove_nothing() {
        let loop_device = result(&[(READ_BYTES, 100.0), (READ_BYTES_BELOW, 3.0)]);
        assert_eq!(bytes_read(&loop_device, Some(READ_BYTES_BELOW)), Some(3.0));
        assert_eq!(bytes_read(&loop_device, None), Some(100.0));
        // In memory there is no disk below, and others may read more of it than we do.
        assert_eq!(bytes_read(&result(&[(READ_BYTES, 100.0)]), Some(READ_BYTES_BELOW)), Some(100.0));
        let busy = result(&[(READ_BYTES, 100.0), (READ_BYTES_BELOW, 900.0)]);
        assert_eq!(bytes_read(&busy, Some(READ_BYTES_BELOW)), Some(100.0));
        assert_eq!(bytes_read(&result(&[]), None), None);
        // On a shared disk, what others read proves nothing of us.
        let shared = result(&[(READ_BYTES, 900.0), (WORKLOAD_READ_BYTES, 3.0)]);
        assert_eq!(bytes_read(&shared, Some(WORKLOAD_READ_BYTES)), Some(3.0));
    }

    #[test]
    fn each_proof_asks_for_its_own_bytes() {
        let occupied = Occupied { stored_bytes: Some(500.0), apparent_bytes: Some(1000.0), entries: Some(10.0) };
        let expected = Expected { occupied, inode: 44, packs_tails: false };
        let rows = [
            (AllData, None, 450.0, None),
            (AllData, None, 449.0, Some(FlagKind::NotCold)),
            (Metadata, None, 396.0, None),
            (Metadata, None, 395.0, Some(FlagKind::NotCold)),
            (Declared, Some(LeastRead::Content(1000)), 450.0, None),
            (Declared, Some(LeastRead::Stored(1000)), 450.0, Some(FlagKind::NotCold)),
            (Declared, None, 1e9, Some(FlagKind::NotProvedCold)),
            (AnyRead, None, 0.0, Some(FlagKind::NotProvedCold)),
            (AnyRead, None, 1.0, None),
        ];
        for (proof, declared, read, wanted) in rows {
            let phase = Phase::new("x", "", Cold, proof, Returned);
            let found = doubt(&phase, &expected, declared, &result(&[(READ_BYTES, read)]), None);
            assert_eq!(found.map(|(flag, _)| flag), wanted, "{proof:?} {declared:?} {read}");
        }
        // Compressed, and nothing shows how well.
        let unknown = Expected { occupied: Occupied { stored_bytes: None, ..occupied }, ..expected };
        for (proof, declared) in [(AllData, None), (Declared, Some(LeastRead::Content(1000)))] {
            let phase = Phase::new("x", "", Cold, proof, Returned);
            let (flag, why) = doubt(&phase, &unknown, declared, &result(&[(READ_BYTES, 1e9)]), None).unwrap();
            assert_eq!((flag, why.as_str()), (FlagKind::NotProvedCold, "how much was to be read is not known"));
        }
        let phase = Phase::new("x", "", Cold, AllData, Returned);
        assert!(doubt(&phase, &expected, None, &result(&[]), None).is_some_and(|(_, why)| why.contains("no device")));
    }

    #[test]
    fn what_was_not_read_anew_stays() {
        let mut expected = Expected::default();
        assert_eq!(expected.stored_share(), Some(1.0));
        expected.update(Occupied { stored_bytes: Some(500.0), apparent_bytes: Some(1000.0), entries: Some(10.0) });
        expected.update(Occupied { entries: Some(12.0), ..Occupied::default() });
        assert_eq!((expected.stored_share(), expected.occupied.entries), (Some(0.5), Some(12.0)));
    }
}
