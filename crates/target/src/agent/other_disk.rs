//! The disk that a tree is brought from, where the work is done in a guest: a folder of the host is
//! not the guest's, so the tree is put on its own ext4, without root, and the guest gets that read
//! only.

use crate::stack::{Place, Step, argv};
use crate::steps::StepRunner;
use crate::workload::{self, OtherDisk};
use anyhow::{Context, Result};
use pickfs_core::plan::Work;
use pickfs_core::protocol::Link;
use std::path::{Path, PathBuf};

/// Room for what is not the files' bytes: an inode and a part of a directory for each, and the file
/// system's own.
const AN_ENTRY: u64 = 512;
const ITS_OWN: u64 = 16 << 20;
const BLOCK: u64 = 4096;

/// Where the image for a work lies on the host; none where nothing is brought.
pub(crate) fn image(work: &Work, place: &Place) -> Option<PathBuf> {
    of(work, place).map(|other| at(&other))
}

fn of(work: &Work, place: &Place) -> Option<OtherDisk> {
    let chosen = &work.workload;
    workload::find(&chosen.name)?.other_disk(&chosen.settings, place)
}

/// By its tree, so that two works with the same one share it.
fn at(other: &OtherDisk) -> PathBuf {
    let hash = xxhash_rust::xxh3::xxh3_64(other.tree.as_os_str().as_encoded_bytes());
    other.folder.join(format!("other-disk-{hash:016x}"))
}

/// On the host, once per run, when sources are staged.
pub(crate) fn make(works: &[Work], runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    for work in works {
        let Some(other) = of(work, runner.place) else { continue };
        let image = at(&other);
        if !other.folder.exists() {
            runner.take(Step::folder("make a folder for the other disk", other.folder.clone()), link)?;
        }
        if !image.exists() {
            let made = fill(&other.tree, &image, runner, link);
            made.with_context(|| format!("cannot make a disk of {}", other.tree.display()))?;
        }
    }
    Ok(())
}

/// Directories are read in the order of a hash: in each run in the same.
const UUID: &str = "7069636b-6673-4000-8000-000000000000";

/// mke2fs makes a `lost+found`, which is nothing of the tree.
fn fill(tree: &Path, image: &Path, runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    let (bytes, entries) = size(tree)?;
    let [tree, image] = [tree, image].map(|path| path.display().to_string());
    let (blocks, inodes) = ((bytes / BLOCK).to_string(), (entries + 64).to_string());
    let mut words = argv(["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-O", "^has_journal"]);
    words.extend(argv(["-U", UUID, "-E", &format!("hash_seed={UUID}")]));
    words.extend(argv(["-N", &inodes, "-d", &tree, &image, &blocks]));
    runner.take(Step::run("put the tree on a separate disk", words), link)?;
    let remove = ["debugfs", "-w", "-R", "rmdir lost+found", &image];
    runner.take(Step::run("leave nothing but the tree on it", remove), link)?;
    Ok(())
}

/// Bytes that hold the tree, and its entries.
fn size(tree: &Path) -> Result<(u64, u64)> {
    let (mut bytes, mut entries) = (0, 0);
    for entry in walkdir::WalkDir::new(tree) {
        let found = entry?.metadata()?;
        bytes += found.len().next_multiple_of(BLOCK) + AN_ENTRY;
        entries += 1;
    }
    Ok((bytes + bytes / 16 + ITS_OWN, entries))
}

/// In a guest. It goes with the guest, so nothing is kept for undoing.
pub(crate) fn mount(device: &Path, runner: &StepRunner) -> Result<()> {
    let place = runner.place.other_disk();
    std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let [device, place] = [device, &place].map(|path| path.display().to_string());
    runner.output(&argv(["mount", "-t", "ext4", "-o", "ro,noatime", &device, &place]))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_holds_its_tree_and_its_own() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("small"), "x").unwrap();
        std::fs::write(folder.path().join("large"), vec![0; 1 << 20]).unwrap();
        let (bytes, entries) = size(folder.path()).unwrap();
        assert_eq!(entries, 3);
        assert!(bytes > ITS_OWN + (1 << 20) + BLOCK, "{bytes}");
    }
}
