//! Misbehaves on purpose: leaves a process behind that sits on the file system under test.

use super::{Judged, Phase, Reads, Stage, Starts, Workload};
use crate::need::Need;
use crate::plan::Settings;
use anyhow::Result;
use std::borrow::Cow;

pub struct MetaLeak;

impl Workload for MetaLeak {
    fn name(&self) -> &'static str {
        "meta.leak"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: a process outlives its phase and holds the mount busy"
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        vec![Phase {
            name: Cow::Borrowed("leak"),
            about: "leave a process in its own session",
            starts: Starts::Fresh,
            reads: Reads::Names,
            judged: Judged::Returned,
        }]
    }

    fn needs(&self, _settings: &Settings) -> Vec<Need> {
        vec![Need::Program { name: "setsid", package: "util-linux" }]
    }

    fn run(&self, stage: &mut Stage, _settings: &Settings) -> Result<()> {
        let root = stage.root().display().to_string();
        stage.phase("leak", |p| p.command(["env", "-C", &root, "setsid", "--fork", "sleep", "86400"]))
    }
}
