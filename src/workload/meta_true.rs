//! Nothing at all, as a program: what a phase costs by itself.

use super::{Stage, Workload};
use crate::plan::Settings;
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::Result;
use std::borrow::Cow;

pub struct MetaTrue;

impl Workload for MetaTrue {
    fn name(&self) -> &'static str {
        "meta.true"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: runs true, so that a phase shows its own cost"
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        vec![Phase {
            name: Cow::Borrowed("true"),
            about: "run true",
            starts: Starts::Fresh,
            reads: Reads::Names,
            judged: Judged::Durable,
        }]
    }

    fn run(&self, stage: &mut Stage, _settings: &Settings) -> Result<()> {
        stage.phase("true", |p| p.command(["true"]))
    }
}
