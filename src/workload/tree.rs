//! Daily work on a tree of files: write it, read it two ways, walk it, remove it.
//!
//! The tree is the user's own, or a generated one; it is staged in memory before any cell, so that reading the source
//! costs every file system the same.

use super::{Setting, Stage, Workload, dataset};
use crate::need::Need;
use crate::plan::{Objection, Settings};
use crate::stack::Place;
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::{Result, ensure};
use std::borrow::Cow;
use std::path::Path;

pub struct Tree;

const PHASES: &[Phase] = &[
    Phase {
        name: Cow::Borrowed("write"),
        about: "cp -a from memory, until durable",
        starts: Starts::Fresh,
        reads: Reads::Names,
        judged: Judged::Durable,
    },
    Phase {
        name: Cow::Borrowed("tar-read"),
        about: "tar -c into a pipe that discards, cold",
        starts: Starts::Cold,
        reads: Reads::Data,
        judged: Judged::Returned,
    },
    Phase {
        name: Cow::Borrowed("copy-read"),
        about: "cp -a into memory, cold",
        starts: Starts::Cold,
        reads: Reads::Data,
        judged: Judged::Returned,
    },
    Phase {
        name: Cow::Borrowed("stat-walk"),
        about: "lstat of every entry, cold",
        starts: Starts::Cold,
        reads: Reads::Names,
        judged: Judged::Returned,
    },
    Phase {
        name: Cow::Borrowed("remove"),
        about: "rm -rf, cold, until durable",
        starts: Starts::Cold,
        reads: Reads::Names,
        judged: Judged::Durable,
    },
];

impl Workload for Tree {
    fn name(&self) -> &'static str {
        "tree"
    }

    fn about(&self) -> &'static str {
        "daily work on a tree of files: write, read by tar and by cp, walk, remove"
    }

    fn settings(&self) -> &'static [Setting] {
        dataset::SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "source"
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        PHASES.to_vec()
    }

    fn needs(&self, _settings: &Settings) -> Vec<Need> {
        let program = |name, package| Need::Program { name, package };
        vec![program("cp", "coreutils"), program("tar", "tar"), program("rm", "coreutils")]
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        dataset::prepare(settings, place)
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        dataset::objections(settings)
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        dataset::bytes(settings)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let source = dataset::staged(settings, stage.place())?;
        let (wanted, bytes) = (&source.digest, source.bytes);
        let tree = stage.root().join("tree");
        let copy = stage.memory().join("copy");
        let root = text(&stage.root());

        stage.phase("write", |p| {
            p.handled(bytes, wanted.files);
            p.command(["cp", "-a", &text(&source.folder), &text(&tree)])
        })?;
        stage.check("verifying what was written", || source.verify(&tree))?;
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
                source.verify(&copy)?;
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
            p.handled(bytes, wanted.files);
            p.command(["rm", "-rf", &text(&tree)])
        })
    }
}

/// lstat of every entry below the root.
fn walk(tree: &Path) -> Result<u64> {
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(tree).min_depth(1) {
        entry?.path().symlink_metadata()?;
        seen += 1;
    }
    Ok(seen)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
