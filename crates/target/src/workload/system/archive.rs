//! Archives that workloads unpack: what they hold, and how they are staged in memory.
//!
//! No workload itself; it has what those share that unpack tarballs and packages.

use crate::stack::argv;
use crate::workload::staging::fits;
use crate::workload::text;
use anyhow::{Context, Result, ensure};
use pickfs_system::need::Need;
use pickfs_system::process::run_program;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How a compressed file's name ends, what unpacks it in place, and the package that brings that
/// program.
const COMPRESSIONS: [(&str, &str, &str); 7] = [
    (".bz2", "bzip2", "bzip2"),
    (".gz", "gzip", "gzip"),
    (".lz4", "lz4", "lz4"),
    (".tbz2", "bzip2", "bzip2"),
    (".tgz", "gzip", "gzip"),
    (".xz", "xz", "xz-utils"),
    (".zst", "zstd", "zstd"),
];

/// What an archive holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArchiveContents {
    /// Names of all kinds.
    pub entries: u64,
    pub files: u64,
    pub bytes: u64,
}

impl ArchiveContents {
    /// From what tar lists with `-v` and numbers for owners: kind and rights, owner, size, date,
    /// time, name.
    pub(crate) fn of_listing(listing: &str) -> ArchiveContents {
        let lines = listing.lines().filter(|line| !line.is_empty());
        let add = |held: ArchiveContents, line: &str| {
            let size = line.split_whitespace().nth(2).and_then(|size| size.parse().ok()).unwrap_or(0);
            let (file, bytes) = if line.starts_with('-') { (1, size) } else { (0, 0) };
            ArchiveContents { entries: held.entries + 1, files: held.files + file, bytes: held.bytes + bytes }
        };
        lines.fold(ArchiveContents::default(), add)
    }

    pub(crate) fn of_tarball(tarball: &Path) -> Result<ArchiveContents> {
        let words = ["tar", "--numeric-owner", "-tvf", &text(tarball)];
        let held = ArchiveContents::of_listing(&run_program(&argv(words))?);
        ensure!(held.files > 0, "{} has no file in it", tarball.display());
        Ok(held)
    }

    pub(crate) fn and(self, other: ArchiveContents) -> ArchiveContents {
        ArchiveContents {
            entries: self.entries + other.entries,
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// What must be there to read an archive of that name.
pub(crate) fn needs(name: &Path) -> Vec<Need> {
    let program = |(_, name, package): &(_, &'static str, &'static str)| Need::Program { name, package };
    compression(name).iter().map(program).collect()
}

/// Copies a tarball into a folder in memory, and decompresses it there if it shall not be read
/// compressed; its path.
pub(crate) fn stage(tarball: &Path, folder: &Path, compressed: bool) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let name = tarball.file_name().with_context(|| format!("{} is no tarball", tarball.display()))?;
    let (staged, plain) = (folder.join(name), folder.join("source.tar"));
    fits(tarball.metadata()?.len(), folder)?;
    std::fs::copy(tarball, &staged).with_context(|| format!("cannot copy {} into memory", tarball.display()))?;
    match compression(tarball) {
        Some((_, program, _)) if !compressed => {
            let said = run_program(&argv([program, "-d", "-f", &text(&staged)]));
            said.context("cannot decompress it in memory; where memory is short, set `compressed = true`")?;
            rename_only(folder, &plain)?;
            Ok(plain)
        }
        _ => Ok(staged),
    }
}

/// Programs choose the name of what they decompress; it is all that is left.
fn rename_only(folder: &Path, to: &Path) -> Result<()> {
    let mut left = std::fs::read_dir(folder)?;
    let only = left.next().context("nothing was decompressed")??;
    Ok(std::fs::rename(only.path(), to)?)
}

fn compression(name: &Path) -> Option<(&'static str, &'static str, &'static str)> {
    let name = text(name);
    COMPRESSIONS.into_iter().find(|(end, ..)| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_counted() {
        let listing = "drwxrwxr-x 0/0               0 2024-01-01 00:00 a/\n\
                       -rw-rw-r-- 0/0             496 2024-01-01 00:00 a/with - blanks\n\
                       lrwxrwxrwx 0/0               0 2024-01-01 00:00 a/l -> b\n\
                       hrw-rw-r-- 0/0               0 2024-01-01 00:00 a/second link to a/x\n\
                       -rw-rw-r-- 0/0               4 2024-01-01 00:00 a/x\n";
        assert_eq!(ArchiveContents::of_listing(listing), ArchiveContents { entries: 5, files: 2, bytes: 500 });
    }

    #[test]
    fn a_tarball_is_staged_plain_or_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("tree")).unwrap();
        std::fs::write(at("tree/file"), vec![b'x'; 5000]).unwrap();
        let words = ["tar", "-czf", &text(&at("a.tar.gz")), "-C", &text(folder.path()), "tree"];
        run_program(&argv(words)).unwrap();
        let held = ArchiveContents { entries: 2, files: 1, bytes: 5000 };
        let plain = stage(&at("a.tar.gz"), &at("plain"), false).unwrap();
        assert!(plain.ends_with("source.tar") && plain.metadata().unwrap().len() > 5000);
        let packed = stage(&at("a.tar.gz"), &at("packed"), true).unwrap();
        assert!(packed.ends_with("a.tar.gz") && packed.metadata().unwrap().len() < 5000);
        for tarball in [&plain, &packed] {
            assert_eq!(ArchiveContents::of_tarball(tarball).unwrap(), held);
        }
        std::fs::write(at("torn.tar.gz"), "no archive").unwrap();
        let error = format!("{:#}", stage(&at("torn.tar.gz"), &at("torn"), false).unwrap_err());
        assert!(error.contains("gzip") && error.contains("torn"), "{error}");
        assert!(fits(u64::MAX, folder.path()).is_err());
    }
}
