//! Doubts about a phase: every kind that pickfs itself raises, and whether it voids the proof of a
//! cold start.

/// A kind of doubt; in a journal it stands as its name, and other programs may have written other
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// A phase that should start cold read less than it must.
    NotCold,
    /// Nothing can show whether it was cold.
    NotProvedCold,
    /// The tree that was copied came from a cache.
    SourceNotCold,
    /// The same when it was read alone, for comparison.
    SourceAloneNotCold,
    /// The machine or the device was still busy.
    NotSettled,
    /// Others used the disk, or the processor.
    ForeignIo,
    ForeignCpu,
    /// The kernel counted less CPU for the whole system than for the work.
    CpuLost,
    /// The rate of writing never became steady, or its halves differ.
    NeverSteady,
    HalvesDiffer,
    /// A percentile of too few operations.
    FewOperations,
    /// A program had no value for some of its tests.
    NoValue,
    /// An open loop: the target was slower than the rate, or pickfs itself began operations late.
    RateNotKept,
    GeneratorLate,
    /// Clients of a database that wait for each other.
    ClientsWait,
    /// A booted system had failed units.
    Degraded,
    /// A replay's calls ended another way than those of the recording, or it can only be near to
    /// it.
    ReplayDiffers,
    ReplayApproximate,
    /// The host ended the machine, and the cell was done again.
    MachineKilled,
}

use FlagKind::*;

/// Every kind, its name, and whether it voids the proof of a cold start.
const TABLE: &[(FlagKind, &str, bool)] = &[
    (NotCold, "not-cold", true),
    (NotProvedCold, "not-proved-cold", true),
    (SourceNotCold, "source-not-cold", true),
    (SourceAloneNotCold, "source-alone-not-cold", false),
    (NotSettled, "not-settled", false),
    (ForeignIo, "foreign-io", false),
    (ForeignCpu, "foreign-cpu", false),
    (CpuLost, "cpu-lost", false),
    (NeverSteady, "never-steady", false),
    (HalvesDiffer, "halves-differ", false),
    (FewOperations, "few-operations", false),
    (NoValue, "no-value", false),
    (RateNotKept, "rate-not-kept", false),
    (GeneratorLate, "generator-late", false),
    (ClientsWait, "clients-wait", false),
    (Degraded, "degraded", false),
    (ReplayDiffers, "replay-differs", false),
    (ReplayApproximate, "replay-approximate", false),
    (MachineKilled, "machine-killed", false),
];

impl FlagKind {
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Whether a flag of that name says that a phase which should start cold did not, or cannot be
    /// shown to have.
    pub fn voids_cold_proof(name: &str) -> bool {
        TABLE.iter().any(|(_, known, voids)| *known == name && *voids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        for (at, (kind, name, voids)) in TABLE.iter().enumerate() {
            assert_eq!((*kind as usize, kind.name(), FlagKind::voids_cold_proof(name)), (at, *name, *voids));
        }
        assert!(!FlagKind::voids_cold_proof("from another program"));
    }
}
