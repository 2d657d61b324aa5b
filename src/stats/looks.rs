//! When a run whose number of rounds is not fixed may look at its results.

/// Rounds after which a run looks. Growing by about a third: fewer looks cost fewer chances of a false alarm, and no
/// decision comes more than a third too late.
pub const LOOKS: [u32; 6] = [8, 11, 15, 20, 28, 40];
