//! A mark for tests alone: it shows that a new mark is one file and one line of
//! [`super::marks::ALL`].

use super::marks::{Holds, Mark};

/// At every comparison whose ratio is [`PLANTED_RATIO`].
pub(crate) const PLANTED: Mark = Mark {
    sign: "¤",
    meaning: "planted by a test",
    caveat: true,
    holds: Holds::Ratio(|found| found.estimate.ratio == PLANTED_RATIO),
};

/// No ratio of measured times is exactly this.
pub(crate) const PLANTED_RATIO: f64 = 1.2345678901;
