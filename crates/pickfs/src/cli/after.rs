//! What a run leaves to its user: the report, the page with charts, and files that are theirs.

use super::report;
use anyhow::Result;
use pickfs_core::journal::{Folded, typed};
use pickfs_host::run::tell;
use pickfs_system::sys::process::behind_sudo;
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// The report, and where the page with charts is.
pub(crate) fn show(folded: &Folded, journal: &Path) -> Result<()> {
    let word = typed(journal);
    let model = report::model(folded, journal)?;
    report::print(&model)?;
    match report::write_page(&model, journal) {
        Ok(page) => {
            give_back(&page);
            tell(&format!("with charts: {}", page.display()));
        }
        // The journal has what was measured in any case.
        Err(error) => tell(&format!("no page with charts: {error:#}; `pickfs report {word} --format html` makes one")),
    }
    Ok(())
}

/// What root made for the user behind sudo(8) is the user's, once no root acts on it any more. Only
/// a file or folder of root's own, under one name: what was put in its place, or linked there, does
/// not change.
pub(crate) fn give_back(path: &Path) {
    let Some((user, group)) = behind_sudo() else { return };
    let opened = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let Ok((file, found)) = opened.and_then(|file| file.metadata().map(|found| (file, found))) else { return };
    if found.uid() == 0 && (found.is_dir() || (found.is_file() && found.nlink() == 1)) {
        // Not on a file system without owners.
        let _ = fchown(&file, Some(user), Some(group));
    }
}
