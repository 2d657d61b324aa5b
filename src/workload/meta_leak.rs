//! Misbehaves on purpose: leaves a process behind that sits on the file system under test.

use super::{Setting, Stage, Workload};
use crate::need::Need;
use crate::plan::{Kind, Settings};
use crate::process::{CELL_MARK, RUN_MARK};
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::Result;
use std::borrow::Cow;

pub struct MetaLeak;

const SETTINGS: &[Setting] = &[Setting {
    name: "unmarked",
    kind: Kind::Flag,
    default: Some("false"),
    about: "without the mark by which it is found, as programs that overwrite their environment",
}];

impl Workload for MetaLeak {
    fn name(&self) -> &'static str {
        "meta.leak"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: a process outlives its phase and holds the mount busy"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
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

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let root = stage.root().display().to_string();
        let without: &[&str] = if settings.flag("unmarked") { &["-u", RUN_MARK, "-u", CELL_MARK] } else { &[] };
        let words = [&["env", "-C", &root], without, &["setsid", "--fork", "sleep", "86400"]].concat();
        stage.phase("leak", |p| p.command(words))
    }
}
