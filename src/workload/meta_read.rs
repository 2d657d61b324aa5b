//! A job whose size the target decides: it reads every file that the file system was born with.
//!
//! `mke2fs -d FOLDER` fills what it makes, so a target that is born with a fifth more files has exactly a fifth more
//! to do. That is a slow-down of a known size that no statistics made up, for testing what a report says of it.

use super::{Setting, Stage, Workload};
use crate::plan::{Kind, Settings};
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::{Result, ensure};
use std::borrow::Cow;
use std::path::Path;

pub struct MetaRead;

const SETTINGS: &[Setting] =
    &[Setting { name: "passes", kind: Kind::Count, default: Some("64"), about: "how often each file is digested" }];

const PHASES: &[Phase] = &[Phase {
    name: Cow::Borrowed("read"),
    about: "read and digest every file that the file system was born with, warm",
    starts: Starts::Warm,
    reads: Reads::Data,
    judged: Judged::Returned,
}];

impl Workload for MetaRead {
    fn name(&self) -> &'static str {
        "meta.read"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: reads what mkfs put on the file system"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        PHASES.to_vec()
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let born = stage.mount_point();
        let passes = settings.number("passes").unwrap_or(1);
        // Else the phase would wait for the device's thread, which others on the machine may delay.
        stage.check("reading the files into the cache", || digest_all(&born, 0).map(drop))?;
        for _ in stage.repeats() {
            stage.phase("read", |p| {
                let (bytes, files) = p.ahead_of_others(|| digest_all(&born, passes))?;
                ensure!(files > 0, "the file system was born empty; give its mkfs something to fill it with");
                p.handled(bytes, files);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Bytes and files read.
fn digest_all(root: &Path, passes: u64) -> Result<(u64, u64)> {
    let (mut bytes, mut files) = (0, 0);
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let content = std::fs::read(entry.path())?;
            std::hint::black_box((0..passes).fold(0, |hash, _| digest(hash, &content)));
            (bytes, files) = (bytes + content.len() as u64, files + 1);
        }
    }
    Ok((bytes, files))
}

/// FNV-1a, one byte after the other: slow, and bound by the processor's clock alone and not by its caches.
fn digest(hash: u64, content: &[u8]) -> u64 {
    content.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
