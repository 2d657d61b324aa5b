//! Whether a run can be trusted by others: what its journal shows of the rules, and its verdict computed by a second program.
//!
//! It reads journals and pages, and acts on none of what they say. It must not know how cells are run.
//!
//! Must not know: `executor`, `run`.

mod recompute;

pub use recompute::{decisions, differences, recomputed};
