//! Workloads that test pickfs itself: most misbehave on purpose, each in one way.

use super::settings::{Count, Duration as DurationKind, Flag, Size, settings};
use super::{Description, Workload};
use crate::stage::phase::*;
use crate::stage::{Stage, Timed};
use anyhow::{Result, ensure};
use pickfs_core::plan::Settings;
use pickfs_system::process::{CELL_MARK, RUN_MARK};
use std::path::Path;
use std::time::Duration;

/// What the names of these workloads begin with.
pub(crate) const PREFIX: &str = "meta.";

const fn phase(name: &'static str, about: &'static str) -> Phase {
    Phase::new(name, about, Fresh, Metadata, Returned)
}

macro_rules! description {
    ($name:literal, $about:literal, $settings:expr, $phases:expr, $programs:expr) => {
        fn description(&self) -> &'static Description {
            const {
                &Description {
                    name: $name,
                    about: concat!("tests pickfs itself: ", $about),
                    settings: $settings,
                    phases: $phases,
                    programs: $programs,
                    ..Description::EMPTY
                }
            }
        }
    };
}

/// Takes the whole agent with it.
pub(crate) struct Crash;

impl Workload for Crash {
    description!("meta.crash", "the agent aborts in the middle of a phase", &[], &[phase("crash", "abort")], &[]);

    fn run(&self, stage: &mut Stage, _settings: &Settings) -> Result<()> {
        stage.phase("crash", |_| std::process::abort())
    }
}

/// A program in its phase fails.
pub(crate) struct Fail;

impl Workload for Fail {
    description!(
        "meta.fail",
        "a program fails with words on stderr",
        &[],
        &[phase("fail", "list what is not there")],
        &[]
    );

    fn run(&self, stage: &mut Stage, _settings: &Settings) -> Result<()> {
        let absent = stage.root().join("absent").display().to_string();
        stage.phase("fail", |p| p.command(["ls", &absent]))
    }
}

/// Never returns, either as a program or in the agent's own loop.
pub(crate) struct Hang;

settings! {
    Hanging {
        inside: Flag = "false", "hang in the agent itself, where only the host's time limit helps";
    }
}

impl Workload for Hang {
    description!("meta.hang", "a phase that never ends", Hanging::ROWS, &[phase("hang", "wait for ever")], &[]);

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let inside = Hanging::of(settings).inside;
        stage.phase("hang", |p| {
            if inside {
                loop {
                    std::thread::sleep(Duration::from_secs(3600));
                }
            }
            p.command(["sleep", "infinity"])
        })
    }
}

/// Leaves a process behind that sits on the file system under test.
pub(crate) struct Leak;

settings! {
    Leaking {
        unmarked: Flag = "false", "without the mark by which it is found, as programs that overwrite their environment";
    }
}

impl Workload for Leak {
    description!(
        "meta.leak",
        "a process outlives its phase and holds the mount busy",
        Leaking::ROWS,
        &[phase("leak", "leave a process in its own session")],
        &[("setsid", "util-linux")]
    );

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let root = stage.root().display().to_string();
        let without: &[&str] = if Leaking::of(settings).unmarked { &["-u", RUN_MARK, "-u", CELL_MARK] } else { &[] };
        let words = [&["env", "-C", &root], without, &["setsid", "--fork", "sleep", "86400"]].concat();
        stage.phase("leak", |p| p.command(words))
    }
}

/// The smallest workload that behaves: one file written and read back.
pub(crate) struct Healthy;

settings! {
    OneFile {
        bytes: Size = "64KiB", "size of the file";
        count_for: DurationKind, "how long what was read is counted, when its phase is over";
    }
}

impl Workload for Healthy {
    description!(
        "meta.ok",
        "writes and reads one file",
        OneFile::ROWS,
        &[
            Phase::new("write", "write one file", Fresh, AllData, Durable),
            Phase::new("read", "read it back, cold", Cold, AllData, Returned),
        ],
        &[]
    );

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (file, OneFile { bytes, count_for }) = (stage.root().join("file"), OneFile::of(settings));
        let content = vec![0xA5; bytes as usize];
        stage.phase("write", |p| {
            p.handled(bytes, 1);
            p.own(|| Ok(std::fs::write(&file, &content)?))
        })?;
        for _ in stage.repeats() {
            let read = |p: &mut Timed| p.own(|| Ok(std::fs::read(&file)?));
            stage.phase_then("read", read, |p, found| {
                p.handled(bytes, 1);
                std::thread::sleep(count_for.unwrap_or_default());
                ensure!(found == content, "the file came back with another content");
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// A job whose size the target decides: it reads every file that the file system was born with.
///
/// `mke2fs -d FOLDER` fills what it makes, so a target that is born with a fifth more files has
/// exactly a fifth more to do. That is a slow-down of a known size that no statistics made up, for
/// testing what a report says of it.
pub(crate) struct Read;

settings! {
    Reading {
        passes: Count = "64", "how often each file is digested";
    }
}

impl Workload for Read {
    description!(
        "meta.read",
        "reads what mkfs put on the file system",
        Reading::ROWS,
        &[Phase::new(
            "read",
            "read and digest every file that the file system was born with, warm",
            Warm,
            AllData,
            Returned,
        )],
        &[]
    );

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (born, passes) = (stage.mount_point(), Reading::of(settings).passes);
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

/// FNV-1a, one byte after the other: slow, and bound by the processor's clock alone and not by its
/// caches.
fn digest(hash: u64, content: &[u8]) -> u64 {
    content.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Nothing at all, as a program: what a phase costs by itself.
pub(crate) struct True;

impl Workload for True {
    description!(
        "meta.true",
        "runs true, so that a phase shows its own cost",
        &[],
        &[Phase::new("true", "run true", Fresh, Metadata, Durable)],
        &[]
    );

    fn run(&self, stage: &mut Stage, _settings: &Settings) -> Result<()> {
        stage.phase("true", |p| p.command(["true"]))
    }
}
