//! What the host has cached of a guest's disks: a phase that is cold in the guest must not be read
//! from there.

use super::qemu::Disk;
use anyhow::{Context, Result};
use pickfs_core::protocol::Answer;
use pickfs_system::process::argv;
use pickfs_system::process::run_program;
use pickfs_system::sys::file;
use std::path::Path;

/// Pages that a processor has in hand stay for a moment; more than that is a cache.
const IN_HAND: u64 = 1 << 20;

impl Disk {
    /// QEMU reads it through the host's page cache.
    fn is_cached(&self) -> bool {
        matches!(self.cache.as_str(), "writeback" | "writethrough" | "unsafe")
    }
}

/// Written out and dropped, and then looked at.
pub(crate) fn forget(disks: &[Disk]) -> Answer {
    let left: Result<Vec<u64>> = disks.iter().map(forget_one).collect();
    match left.map(|left| left.iter().sum()) {
        Ok(cached_bytes) => Answer::Forgot { cached_bytes },
        Err(error) => Answer::Kept(format!("{error:#}")),
    }
}

/// Bytes that a guest's reads would still find.
fn forget_one(disk: &Disk) -> Result<u64> {
    let shown = disk.file.display();
    file::drop_file_cache(&disk.file).with_context(|| format!("cannot drop the host's cache of {shown}"))?;
    if !disk.is_cached() {
        return Ok(0);
    }
    let left = cached_bytes(&disk.file).with_context(|| format!("cannot see what the host has cached of {shown}"))?;
    Ok(if left > IN_HAND { left } else { 0 })
}

fn cached_bytes(path: &Path) -> Result<u64> {
    let path = path.display().to_string();
    let output = run_program(&argv(["fincore", "--bytes", "--noheadings", "--output", "RES", "--", &path]))?;
    output.trim().parse().with_context(|| format!("fincore printed `{}`", output.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_was_read_is_forgotten_or_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        std::fs::write(&file, vec![1; 8 << 20]).unwrap();
        if rustix::fs::statfs(folder.path()).unwrap().f_type == 0x0102_1994 {
            return pickfs_test_support::not_run("the temporary folder is in memory, where nothing can be dropped");
        }
        assert_eq!(cached_bytes(&file).unwrap(), 8 << 20);
        let disk = Disk { file: file.clone(), cache: "writeback".into() };
        assert_eq!(forget(&[disk]), Answer::Forgot { cached_bytes: 0 });
        assert!(cached_bytes(&file).unwrap() <= IN_HAND);
    }

    #[test]
    fn what_stays_counts_where_the_guest_reads_through_it() {
        let memory = Path::new("/dev/shm");
        let Ok(folder) = tempfile::tempdir_in(memory) else {
            return pickfs_test_support::not_run("there is no /dev/shm");
        };
        let file = folder.path().join("disk");
        std::fs::write(&file, vec![1; 8 << 20]).unwrap();
        for (cache, wanted) in [("writeback", 8 << 20), ("writethrough", 8 << 20), ("none", 0), ("directsync", 0)] {
            let disk = Disk { file: file.clone(), cache: cache.into() };
            assert_eq!(forget(&[disk]), Answer::Forgot { cached_bytes: wanted }, "{cache}");
        }
        let gone = Disk { file: folder.path().join("gone"), cache: "none".into() };
        let Answer::Kept(why) = forget(&[gone]) else { panic!("a disk that is gone was forgotten") };
        assert!(why.contains("cannot drop the host's cache of"), "{why}");
    }
}
