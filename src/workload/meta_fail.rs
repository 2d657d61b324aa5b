//! Misbehaves on purpose: a program in its phase fails.

use super::{Stage, Workload};
use crate::plan::Settings;
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::Result;
use std::borrow::Cow;

pub struct MetaFail;

impl Workload for MetaFail {
    fn name(&self) -> &'static str {
        "meta.fail"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: a program fails with words on stderr"
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        vec![Phase {
            name: Cow::Borrowed("fail"),
            about: "list what is not there",
            starts: Starts::Fresh,
            reads: Reads::Names,
            judged: Judged::Returned,
        }]
    }

    fn run(&self, stage: &mut Stage, _settings: &Settings) -> Result<()> {
        let absent = stage.root().join("absent").display().to_string();
        stage.phase("fail", |p| p.command(["ls", &absent]))
    }
}
