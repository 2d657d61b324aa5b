//! Daily work on a tree of files: write it, read it two ways, walk it, remove it.
//!
//! The tree is the user's own, or a generated one; it is staged in memory before any cell, so that reading the source
//! costs every file system the same.

use super::Dataset;
use crate::stage::Stage;
use crate::stage::phase::*;
use crate::workload::{Description, Workload, text};
use anyhow::{Result, ensure};
use pickfs_core::plan::Settings;
use pickfs_trees::Modes;
use std::path::Path;

pub(crate) struct Tree;

const DESCRIPTION: Description = Description {
    name: "tree",
    about: "daily work on a tree of files: write, read by tar and by cp, walk, remove",
    settings: Dataset::ROWS,
    main_setting: "source",
    phases: &[
        Phase::new("write", "cp -a from memory, until durable", Fresh, Metadata, Durable),
        Phase::new("tar-read", "tar -c into a pipe that discards, cold", Cold, AllData, Returned),
        Phase::new("copy-read", "cp -a into memory, cold", Cold, AllData, Returned),
        Phase::new("stat-walk", "lstat of every entry, cold", Cold, Metadata, Returned),
        Phase::new("remove", "rm -rf, cold, until durable", Cold, Metadata, Durable),
    ],
    programs: &[("cp", "coreutils"), ("tar", "tar"), ("rm", "coreutils")],
    seconds: 12,
    dataset: Some(Dataset::of),
    ..Description::EMPTY
};

impl Workload for Tree {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let source = Dataset::of(settings).staged(stage.place())?;
        let (wanted, bytes) = (&source.digest, source.bytes);
        let tree = stage.root().join("tree");
        let copy = stage.memory().join("copy");
        let (root, modes) = (text(&stage.root()), Modes::kept(stage.keeps_modes()));

        stage.phase("write", |p| {
            p.handled(bytes, wanted.files);
            p.command(["cp", "-a", &text(&source.folder), &text(&tree)])
        })?;
        stage.check("verifying what was written", || source.verify(&tree, modes))?;
        for _ in stage.repeats() {
            stage.phase("tar-read", |p| {
                p.handled(bytes, wanted.files);
                let given = p.discarded(["tar", "-c", "-C", &root, "tree"])?;
                ensure!(given >= bytes, "tar gave {given} bytes of at least {bytes}");
                Ok(())
            })?;
        }
        for _ in stage.repeats() {
            stage.phase("copy-read", |p| {
                p.handled(bytes, wanted.files);
                p.command(["cp", "-a", &text(&tree), &text(&copy)])
            })?;
            stage.check("verifying what was read back", || {
                source.verify(&copy, modes)?;
                Ok(std::fs::remove_dir_all(&copy)?)
            })?;
        }
        for _ in stage.repeats() {
            stage.phase("stat-walk", |p| {
                p.handled(0, wanted.files);
                let seen = p.own(|| walk(&tree))?;
                ensure!(seen == wanted.entries, "the walk saw {seen} of {} entries", wanted.entries);
                Ok(())
            })?;
        }
        stage.phase("remove", |p| {
            p.removed(bytes, wanted.files);
            p.command(["rm", "-rf", &text(&tree)])
        })
    }
}

/// lstat of every entry below the root.
pub(crate) fn walk(tree: &Path) -> Result<u64> {
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(tree).min_depth(1) {
        entry?.path().symlink_metadata()?;
        seen += 1;
    }
    Ok(seen)
}
