//! The smallest workload that behaves: one file written and read back.

use super::{Setting, Stage, Workload};
use crate::plan::{Kind, Settings};
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::{Result, ensure};
use std::borrow::Cow;

pub struct MetaOk;

const SETTINGS: &[Setting] =
    &[Setting { name: "bytes", kind: Kind::Size, default: Some("64KiB"), about: "size of the file" }];

const PHASES: &[Phase] = &[
    Phase {
        name: Cow::Borrowed("write"),
        about: "write one file",
        starts: Starts::Fresh,
        reads: Reads::Data,
        judged: Judged::Durable,
    },
    Phase {
        name: Cow::Borrowed("read"),
        about: "read it back, cold",
        starts: Starts::Cold,
        reads: Reads::Data,
        judged: Judged::Returned,
    },
];

impl Workload for MetaOk {
    fn name(&self) -> &'static str {
        "meta.ok"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: writes and reads one file"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        PHASES.to_vec()
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let file = stage.root().join("file");
        let bytes = settings.number("bytes").unwrap_or(1) as usize;
        let content = vec![0xA5; bytes];
        stage.phase("write", |p| {
            p.handled(bytes as u64, 1);
            p.own(|| Ok(std::fs::write(&file, &content)?))
        })?;
        for _ in stage.repeats() {
            let mut found = Vec::new();
            stage.phase("read", |p| {
                p.handled(bytes as u64, 1);
                found = p.own(|| Ok(std::fs::read(&file)?))?;
                Ok(())
            })?;
            ensure!(found == content, "the file came back with another content");
        }
        Ok(())
    }
}
