//! The folder of a tuning: what `tune` measures into it, and what reports read of it.

mod answer;
mod study;

use anyhow::Result;
use pickfs_host::wording::tuning::Tuned;
use std::path::Path;

pub(crate) use answer::tuned;
pub(crate) use study::{Study, is_tuning, journal};

/// The answer of the tuning in a folder; `None` where there is no tuning.
pub(crate) fn of_folder(folder: &Path) -> Result<Option<Tuned>> {
    if !is_tuning(folder) {
        return Ok(None);
    }
    Ok(Some(tuned(&Study::of_folder(folder)?, folder)?))
}
