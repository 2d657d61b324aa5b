//! Misbehaves on purpose: never returns, either as a program or in the agent's own loop.

use super::{Setting, Stage, Workload};
use crate::plan::{Kind, Settings};
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::Result;
use std::borrow::Cow;

pub struct MetaHang;

const SETTINGS: &[Setting] = &[Setting {
    name: "inside",
    kind: Kind::Flag,
    default: Some("false"),
    about: "hang in the agent itself, where only the host's time limit helps",
}];

impl Workload for MetaHang {
    fn name(&self) -> &'static str {
        "meta.hang"
    }

    fn about(&self) -> &'static str {
        "tests pickfs itself: a phase that never ends"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        vec![Phase {
            name: Cow::Borrowed("hang"),
            about: "wait for ever",
            starts: Starts::Fresh,
            reads: Reads::Names,
            judged: Judged::Returned,
        }]
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        if settings.flag("inside") {
            stage.phase("hang", |p| {
                p.own(|| {
                    loop {
                        std::thread::sleep(std::time::Duration::from_secs(3600))
                    }
                })
            })
        } else {
            stage.phase("hang", |p| p.command(["sleep", "infinity"]))
        }
    }
}
