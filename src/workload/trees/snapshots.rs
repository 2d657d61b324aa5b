//! What snapshots cost: to take them, to change files while one is held, to send one away, and to delete them.

use super::Dataset;
use crate::data::Modes;
use crate::data::random::Random;
use crate::plan::{Objection, Settings};
use crate::process::run_program;
use crate::stack::Argv;
use crate::stage::phase::*;
use crate::stage::{Program, Stage};
use crate::workload::settings::{Count, joined, settings};
use crate::workload::{Description, Workload, text};
use anyhow::{Context, Result, ensure};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct Snapshots;

settings! {
    Amounts {
        snapshots: Count = "10", "how many are taken, and deleted in the end";
        changes: Count = "2000", "blocks of 4 KiB that `change` and `change-held` each write into files of the tree";
    }
}

const ROWS: [crate::plan::Setting; Amounts::ROWS.len() + Dataset::ROWS.len()] = joined(Amounts::ROWS, Dataset::ROWS);

const DESCRIPTION: Description = Description {
    name: "snapshots",
    about: "what snapshots cost: taken, held while files change, sent away, deleted",
    settings: &ROWS,
    main_setting: "snapshots",
    phases: &[
        Phase::new("write", "cp -a from memory, until durable", Fresh, Metadata, Durable).only_shown(),
        Phase::new("change", "blocks of files written anew, without a snapshot, until durable", Warm, AllData, Durable)
            .only_shown(),
        Phase::new("take", "the snapshots, one after the other, until durable", Warm, AllData, Durable),
        Phase::new(
            "change-held",
            "blocks of files written anew while all are held, until durable",
            Warm,
            AllData,
            Durable,
        ),
        Phase::new("send", "the first snapshot as a stream into a pipe that discards, cold", Cold, Declared, Returned),
        Phase::new("delete", "all snapshots, until what they held is free", Warm, AllData, Durable),
    ],
    programs: &[("cp", "coreutils")],
    takes_snapshots: true,
    ..Description::EMPTY
};

const BLOCK: usize = 4096;
/// For giving the room of deleted snapshots back, and between two looks whether it is.
const AT_MOST: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(10);

impl Workload for Snapshots {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn dataset(&self, settings: &Settings) -> Option<Dataset> {
        Some(Dataset::of(settings))
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let amounts = Amounts::of(settings);
        let counts = [("snapshots", amounts.snapshots), ("changes", amounts.changes)];
        let nothing = counts.into_iter().find(|(_, count)| *count == 0);
        nothing.map(|(name, _)| Objection::new(name, format!("`{name}` is 0"), "give 1 or more")).into_iter().collect()
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
        let files = stage.check("listing the files", || files_of(&tree))?;
        ensure!(!files.is_empty(), "no file of the tree holds a byte that could be changed");
        let mut random = Random::new(1, 0);
        let all = |programs: &[Argv]| programs.iter().map(Program::new).collect::<Vec<_>>();
        stage.phase("change", |p| p.own(|| change(&files, amounts.changes, &mut random)))?;
        let take = all(&programs.take);
        stage.phase("take", |p| take.iter().try_for_each(|program| p.run(program)))?;
        stage.phase("change-held", |p| p.own(|| change(&files, amounts.changes, &mut random)))?;
        for _ in stage.repeats() {
            stage.phase("send", |p| {
                p.handled(source.bytes, source.digest.files);
                p.reads_at_least(source.bytes);
                let sent = p.discarded(&programs.send)?;
                ensure!(sent >= source.bytes / 2, "{sent} bytes were sent of a tree of {}", source.bytes);
                Ok(())
            })?;
        }
        let delete = all(&programs.delete);
        stage.phase("delete", |p| {
            delete.iter().try_for_each(|program| p.run(program))?;
            let Some((words, is_free)) = &programs.freed else { return Ok(()) };
            let free = p.until(AT_MOST, PAUSE, || Ok(is_free(&run_program(words)?)))?;
            ensure!(free, "what the snapshots held was not free after {} s", AT_MOST.as_secs());
            Ok(())
        })
    }
}

/// Every file that holds something, with its bytes, in the order of names.
fn files_of(tree: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(tree).sort_by_file_name() {
        let entry = entry?;
        let bytes = if entry.file_type().is_file() { entry.metadata()?.len() } else { 0 };
        if bytes > 0 {
            files.push((entry.into_path(), bytes));
        }
    }
    Ok(files)
}

/// So many blocks, each in a file of its own choice: the larger, the likelier. What is shorter than a block is written
/// whole.
fn change(files: &[(PathBuf, u64)], changes: u64, random: &mut Random) -> Result<()> {
    let blocks: Vec<u64> = files
        .iter()
        .scan(0, |sum, (_, bytes)| {
            *sum += bytes.div_ceil(BLOCK as u64);
            Some(*sum)
        })
        .collect();
    let all = blocks.last().copied().unwrap_or_default();
    let mut content = [0; BLOCK];
    for _ in 0..changes {
        let block = random.below(all);
        let at = blocks.partition_point(|sum| *sum <= block);
        let (path, bytes) = &files[at];
        let start = (block - if at == 0 { 0 } else { blocks[at - 1] }) * BLOCK as u64;
        random.fill(&mut content);
        let file: File = OpenOptions::new().write(true).open(path)?;
        let length = (bytes - start).min(BLOCK as u64) as usize;
        file.write_all_at(&content[..length], start).with_context(|| format!("cannot write to {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_leave_sizes_and_reach_every_file() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a", 1), ("b", 4096), ("c", 4097), ("empty", 0)] {
            std::fs::write(folder.path().join(name), vec![0; bytes]).unwrap();
        }
        let files = files_of(folder.path()).unwrap();
        assert_eq!(files.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [1, 4096, 4097]);
        change(&files, 200, &mut Random::new(1, 0)).unwrap();
        for (path, bytes) in &files {
            let now = std::fs::read(path).unwrap();
            assert_eq!(now.len() as u64, *bytes);
            assert!(now.chunks(BLOCK).all(|block| block.iter().any(|byte| *byte != 0)), "{}", path.display());
        }
        assert_eq!(files_of(folder.path()).unwrap(), files);
    }
}
