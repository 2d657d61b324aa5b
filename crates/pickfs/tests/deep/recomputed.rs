//! Verdicts of five hundred random journals, computed a second time.

use crate::audit::{hold, no_python};
use crate::common::not_run;

#[test]
fn the_recomputation_has_every_verdict_of_many_random_journals() {
    if !not_run(no_python()) {
        hold(12..512);
    }
}
