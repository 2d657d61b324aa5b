//! What snapshots cost: to take them, to change files while one is held, to send one away, to
//! delete them, to make one anew of what was sent, and to go back to one.

use super::Dataset;
use super::blocks::{BLOCK, Blocks, Piece};
use crate::stage::{AfterPhase, Program, SnapshotPrograms, Stage, Timed};
use crate::workload::settings::{Count, settings};
use crate::workload::{Description, Workload, described, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::Settings;
use pickfs_system::random::Random;
use pickfs_trees::{Digest, Modes};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

pub(crate) struct Snapshots;

settings! {
    Amounts {
        snapshots: Count<1> = "10", "how many are taken, and deleted in the end";
        changes: Count<1> = "2000", "blocks of 4 KiB that `change` and `change-held` each write into files of the tree";
    }
}

/// For giving the room of deleted snapshots back.
const AT_MOST: Duration = Duration::from_secs(300);

impl Workload for Snapshots {
    fn description(&self) -> &'static Description {
        described!("snapshots.toml", [Amounts::ROWS, Dataset::ROWS], Dataset::of)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (amounts, source) = (Amounts::of(settings), Dataset::of(settings).staged(stage.place())?);
        let programs = stage.snapshots(amounts.snapshots).context("this file system takes no snapshots")?;
        let (tree, modes) = (stage.root().join("tree"), Modes::kept(stage.keeps_modes()));
        stage.phase("write", |p| {
            p.handled(source.bytes, source.digest.files);
            p.command(["cp", "-a", &text(&source.folder), &text(&tree)])
        })?;
        stage.check("verifying what was written", || source.verify(&tree, modes))?;
        let files = stage.check("listing the files", || Blocks::of(&tree))?;
        let mut random = Random::new(1, 0);
        stage.phase("change", |p| p.own(|| change(&files, amounts.changes, &mut random)))?;
        let held = stage.check("reading what the snapshots will hold", || pickfs_trees::digest(&tree))?;
        let exclusive = |p: &mut AfterPhase, ()| {
            p.say("snapshots_exclusive_bytes", programs.exclusive_bytes()? as f64);
            Ok(())
        };
        stage.phase_then("take", |p| programs.take.iter().try_for_each(|words| p.command(words)), exclusive)?;
        let change_held = |p: &mut Timed| p.own(|| change(&files, amounts.changes, &mut random));
        stage.phase_then("change-held", change_held, exclusive)?;
        for _ in stage.repeats() {
            stage.phase("send", |p| {
                p.handled(source.bytes, source.digest.files);
                p.reads_at_least(source.bytes);
                let sent = p.discarded(&programs.send)?;
                ensure!(sent >= source.bytes / 2, "{sent} bytes were sent of a tree of {}", source.bytes);
                Ok(())
            })?;
        }
        let stream = stage.memory().join("stream");
        stage.run(&Program::new(&programs.send).making(&stream))?;
        stage.phase("delete", |p| programs.delete_all(p, AT_MOST))?;
        let receive = Program::new(&programs.receive).reading(&stream);
        stage.phase("receive", |p| {
            p.handled(source.bytes, source.digest.files);
            p.run(&receive)
        })?;
        stage.check("comparing what was received", || is_same(&programs.received.join("tree"), &held))?;
        std::fs::remove_file(&stream)?;
        roll_back(stage, &programs, &tree, || change(&files, amounts.changes, &mut random))
    }
}

/// To a snapshot that is taken now, after changes that it does not have.
fn roll_back(
    stage: &mut Stage,
    programs: &SnapshotPrograms,
    tree: &Path,
    change: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let held = stage.check("reading what the snapshot will hold", || pickfs_trees::digest(tree))?;
    stage.lay_out("taking one more snapshot, and changing files", |stage| {
        stage.run(&Program::new(&programs.take_one_more))?;
        change()
    })?;
    stage.check("looking for the changes", || {
        ensure!(pickfs_trees::digest(tree)? != held, "no file has changed");
        Ok(())
    })?;
    stage.phase("roll-back", |p| programs.roll_back.iter().try_for_each(|words| p.command(words)))?;
    stage.check("comparing what was gone back to", || is_same(tree, &held))
}

fn is_same(tree: &Path, held: &Digest) -> Result<()> {
    let found = pickfs_trees::digest(tree)?;
    ensure!(found == *held, "{} has {found:?}, the snapshot held {held:?}", tree.display());
    Ok(())
}

/// Blocks in files of their own choice: the larger, the likelier.
fn change(files: &Blocks, changes: u64, random: &mut Random) -> Result<()> {
    let mut content = [0; BLOCK];
    for _ in 0..changes {
        let Piece { path, start, length } = files.any(random);
        random.fill(&mut content);
        let file = OpenOptions::new().write(true).open(path)?;
        file.write_all_at(&content[..length], start).with_context(|| format!("cannot write to {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_tree_than_the_snapshot_is_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "held").unwrap();
        let held = pickfs_trees::digest(folder.path()).unwrap();
        is_same(folder.path(), &held).unwrap();
        for content in ["Held", "held "] {
            std::fs::write(folder.path().join("a"), content).unwrap();
            assert!(is_same(folder.path(), &held).is_err(), "{content}");
        }
    }

    #[test]
    fn changes_leave_sizes_and_reach_every_file() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a", 1), ("b", 4096), ("c", 4097), ("empty", 0)] {
            std::fs::write(folder.path().join(name), vec![0; bytes]).unwrap();
        }
        let files = Blocks::of(folder.path()).unwrap();
        change(&files, 200, &mut Random::new(1, 0)).unwrap();
        for (path, bytes) in &files.files {
            let now = std::fs::read(path).unwrap();
            assert_eq!(now.len() as u64, *bytes);
            assert!(now.chunks(BLOCK).all(|block| block.iter().any(|byte| *byte != 0)), "{}", path.display());
        }
        assert_eq!(Blocks::of(folder.path()).unwrap().files, files.files);
    }
}
