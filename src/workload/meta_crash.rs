//! Misbehaves on purpose: takes the whole agent with it.

use super::{Stage, Workload};
use crate::plan::Settings;
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::Result;
use std::borrow::Cow;

pub struct MetaCrash;

impl Workload for MetaCrash {
    fn name(&self) -> &'static str {
        "meta.crash"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: the agent aborts in the middle of a phase"
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        vec![Phase {
            name: Cow::Borrowed("crash"),
            about: "abort",
            starts: Starts::Fresh,
            reads: Reads::Names,
            judged: Judged::Returned,
        }]
    }

    fn run(&self, stage: &mut Stage, _settings: &Settings) -> Result<()> {
        stage.phase("crash", |_| std::process::abort())
    }
}
