//! A tree packed into a read-only image: what that takes, how large it is, and how soon it is read.

use super::Dataset;
use super::blocks::{BLOCK, Blocks, Piece};
use crate::stage::{Latencies, Stage};
use crate::workload::settings::{Count, settings};
use crate::workload::{Description, Workload, described, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::Settings;
use pickfs_system::random::Random;
use pickfs_trees::Modes;
use rustix::fs::Advice;
use std::fs::File;
use std::os::unix::fs::FileExt;

pub(crate) struct Image;

settings! {
    Reading {
        reads: Count<1> = "2000", "blocks of 4 KiB that `read-random` reads, each once; fewer where the tree has fewer";
    }
}

/// What is read at random compresses better or worse than the tree does on average; with this many
/// pieces not by half.
const SURELY: u64 = 2;

impl Workload for Image {
    fn description(&self) -> &'static Description {
        described!("image.toml", [Reading::ROWS, Dataset::ROWS], Dataset::of)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (reads, source) = (Reading::of(settings).reads, Dataset::of(settings).staged(stage.place())?);
        let root = stage.root();
        let programs = stage.image(&source.folder).context("this file system is no image of a tree")?;
        stage.phase("pack", |p| {
            p.handled(source.bytes, source.digest.files);
            programs.iter().try_for_each(|words| p.command(words))
        })?;
        stage.check("verifying what was packed", || source.verify(&root, Modes::kept(true)))?;
        let bytes = stage.check("asking how large the image is", || size_of_image(&root))?;
        stage.say("pack", "image_bytes", bytes as f64);
        stage.show_made()?;
        for _ in stage.repeats() {
            stage.phase("tar-read", |p| {
                p.handled(source.bytes, source.digest.files);
                p.reads_at_least_stored(bytes);
                let read = p.discarded(["tar", "-c", "-C", &text(&root), "."])?;
                ensure!(read >= source.bytes, "tar gave {read} bytes of at least {}", source.bytes);
                Ok(())
            })?;
        }
        let blocks = stage.check("listing the files", || Blocks::of(&root))?;
        let pieces = blocks.different(reads, &mut Random::new(1, 0));
        let asked: u64 = pieces.iter().map(|piece| piece.length as u64).sum();
        let stored = (asked as f64 * (bytes as f64 / source.bytes.max(1) as f64).min(1.0)) as u64;
        for _ in stage.repeats() {
            stage.phase("read-random", |p| {
                p.handled(asked, pieces.len() as u64);
                p.reads_at_least_stored(stored / SURELY);
                let latencies = p.own(|| read(&pieces))?;
                p.latencies("latency", latencies);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Both file systems report the image's bytes as what is in use, and nothing free.
fn size_of_image(root: &std::path::Path) -> Result<u64> {
    let found = rustix::fs::statvfs(root).context("cannot ask for the room of the image")?;
    ensure!(found.f_blocks > 0 && found.f_bfree == 0, "the image reports {} free blocks", found.f_bfree);
    Ok(found.f_blocks * found.f_frsize)
}

/// Each opened anew, as a program's files are; nothing is read ahead of it.
fn read(pieces: &[Piece]) -> Result<Latencies> {
    let (mut latencies, mut buffer) = (Latencies::new(), [0; BLOCK]);
    latencies.start();
    for Piece { path, start, length } in pieces {
        let at = || format!("reading {}", path.display());
        let file = File::open(path).with_context(at)?;
        rustix::fs::fadvise(&file, 0, None, Advice::Random).with_context(at)?;
        file.read_exact_at(&mut buffer[..*length], *start).with_context(at)?;
        latencies.lap();
    }
    Ok(latencies)
}
