//! `pickfs scan --shares`: what each top-level directory of a tree takes on the disk.

use super::{Outcome, report};
use anyhow::Context;
use pickfs_host::run::tell;
use pickfs_system::units::{show_bytes, show_share};
use pickfs_target::probe::shares::{Share, Shares, shares};
use pickfs_trees::scan::walk::sanitize;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) fn main(dir: &Path, output: Option<&Path>) -> Outcome {
    let found = shares(dir).with_context(|| format!("{}: name a directory that may be read", dir.display()))?;
    let shown = text(&found);
    report::deliver(shown.as_bytes(), output)?;
    notes(&found).iter().for_each(|note| tell(note));
    Ok(0)
}

fn text(found: &Shares) -> String {
    let mut out = format!(
        "{:>10} {:>8} {:>10} {:>10} {:>10} {:>9}  directory\n",
        "on disk", "of all", "alone", "size", "disk/size", "files"
    );
    for share in &found.rows {
        let name = share.name.as_ref().map_or_else(|| ".".into(), |name| sanitize(name.as_bytes()) + "/");
        let _ = writeln!(out, "{}  {name}", row(share, found));
    }
    let _ = writeln!(out, "{}  all of it", row(&found.sum, found));
    out + "\non disk: data that lies there, compressed, each block once, without metadata and second copies; alone: what no\n\
           other of these directories has, and so is free without it; size: of the files, with holes; `.`: files of\n\
           the directory itself\n"
}

fn row(share: &Share, found: &Shares) -> String {
    let part = |bytes: u64, of: u64| if of == 0 { String::new() } else { show_share(bytes as f64 / of as f64) };
    format!(
        "{:>10} {:>8} {:>10} {:>10} {:>10} {:>9}",
        show_bytes(share.disk_bytes as f64),
        part(share.disk_bytes, found.sum.disk_bytes),
        show_bytes(share.alone_bytes as f64),
        show_bytes(share.apparent_bytes as f64),
        part(share.disk_bytes, share.apparent_bytes),
        share.files
    )
}

fn notes(found: &Shares) -> Vec<String> {
    let blocks = (found.by_blocks > 0).then(|| {
        format!(
            "note: {} files count by their blocks, as du does: what they share, and on btrfs what compression saves, is \
             unknown; on btrfs root can see it",
            found.by_blocks
        )
    });
    let unseen =
        (found.unseen > 0).then(|| format!("note: {} names could not be looked at, and are left out", found.unseen));
    blocks.into_iter().chain(unseen).collect()
}
