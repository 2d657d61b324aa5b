//! Daily work on a tree of files: write it, read it two ways, walk it, remove it.
//!
//! The tree is the user's own, or a generated one; it is staged in memory before any cell, so that
//! reading the source costs every file system the same.

use super::Dataset;
use crate::stage::Stage;
use crate::workload::{Description, Workload, described, text};
use anyhow::{Result, ensure};
use pickfs_core::plan::Settings;
use pickfs_trees::Modes;
use std::path::Path;

pub(crate) struct Tree;

impl Workload for Tree {
    fn description(&self) -> &'static Description {
        described!("tree.toml", Dataset::ROWS, Dataset::of)
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
