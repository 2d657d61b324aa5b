//! What survives a power cut: small changes at fixed times, unsynced and synced in each way, on a
//! disk that is recorded; then the power is cut at many moments, and the result is compared with
//! the calls that had returned. docs/durability.md has the reasons.

mod changes;
mod judge;
mod schedule;
mod survey;

use super::{Power, report_loss, unknown};
use crate::stage::{PowerCuts, Stage, Stamp};
use crate::workload::settings::{Duration as DurationKind, Items, Texts, choice, settings};
use crate::workload::{Description, Workload, described};
use anyhow::{Context, Result};
use changes::Changes;
use judge::CutResults;
use pickfs_core::plan::{Objection, Settings};
use pickfs_disks::cuts::Span;
use schedule::{Part, Schedule};
use std::time::Duration;

pub(crate) struct Ledger;

choice! {
    /// How a change is made durable before it is over.
    pub(crate) Sync {
        Never = "never",
        /// The file alone.
        File = "fsync",
        /// The file, and the folder that has its name.
        Folder = "fsync-folder",
        /// The content of the file.
        Data = "fdatasync",
        /// The file is opened so that each write is durable when it returns.
        Written = "dsync",
        /// The whole file system, once a second.
        All = "syncfs",
    }
}

settings! {
    Cutting {
        time: DurationKind = "120s", "how long changes are made whose loss is measured; three times the longest interval of commits";
        unsynced: Sync = "never", "how these are synced";
        syncs: Texts = r#"["fsync", "fsync-folder", "fdatasync", "dsync", "syncfs"]"#,
            "ways of syncing whose promises are checked, one after the other";
        synced_time: DurationKind = "10s", "how long each of them lasts";
        every: DurationKind = "25ms", "from one change to the next";
        cuts: Items = "200", "at random moments of `time`, of which the first third is left out, and a quarter as many at flushes";
        synced_cuts: Items = "200", "in all of `syncs`: half at random moments, half just before and after flushes";
    }
}

const NAMES: &str = "names";
const CONTENTS: &str = "contents";

impl Workload for Ledger {
    fn description(&self) -> &'static Description {
        described!("ledger.toml", [Cutting::ROWS, Power::ROWS])
    }

    fn recording(&self, settings: &Settings) -> Option<u64> {
        Some(Power::of(settings).recording())
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let given = Cutting::of(settings);
        let mut found: Vec<Objection> = unknown("syncs", &given.syncs, &Sync::WORDS[1..]).into_iter().collect();
        found.extend(Power::of(settings).objections());
        let few =
            [("cuts", given.cuts < 8), ("every", given.every < SHORTEST), ("time", given.time < given.every * 100)];
        let remedies = ["give at least 8", "give at least 1 ms", "give at least a hundred times `every`"];
        for ((setting, _), remedy) in few.into_iter().zip(remedies).filter(|((_, few), _)| *few) {
            found.push(Objection::new(setting, "is too few for a distribution".into(), remedy));
        }
        found
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (given, power) = (Cutting::of(settings), Power::of(settings));
        let schedule = given.schedule(stage.seed());
        let mut changes = Changes::new(&stage.root(), &schedule);
        stage.lay_out("laying out what is changed", |stage| stage.check("writing", || changes.lay_out()))?;
        let stamps =
            stage.at_fixed_times(given.every, schedule.steps.len() as u64, |number| changes.make(number as usize))?;
        drop(changes);
        let cuts = PowerCuts {
            spans: given.spans(&schedule, &stamps),
            losses: power.losses(stage)?,
            lies_ns: power.lies_ns(),
            fsck: power.fsck,
            seed: stage.seed(),
        };
        let outcomes = stage.cut_power(&cuts, |_, root| Ok(survey::survey(root, &schedule)))?;
        let found = CutResults::new(&schedule, &stamps, &outcomes)
            .context("what was found after the cuts contradicts itself")?;
        let verdicts = found.verdicts();
        for (phase, losses) in [(NAMES, &verdicts.names), (CONTENTS, &verdicts.contents)] {
            report_loss(stage, phase, losses, given.every.as_nanos() as u64)?;
        }
        verdicts.tally.report(stage, &power.losses);
        Ok(())
    }
}

/// Shorter than a sleep is exact.
const SHORTEST: Duration = Duration::from_millis(1);

impl Cutting {
    fn schedule(&self, seed: u64) -> Schedule {
        let count = |time: Duration| (time.as_nanos() / self.every.as_nanos().max(1)) as usize;
        let synced = self.syncs.iter().filter_map(|word| Sync::named(word));
        let parts = std::iter::once((self.unsynced, count(self.time)))
            .chain(synced.map(|sync| (sync, count(self.synced_time))));
        let a_second = (1_000_000_000 / self.every.as_nanos().max(1)).max(1) as usize;
        Schedule::new(parts, a_second, seed)
    }

    fn spans(&self, schedule: &Schedule, stamps: &[Stamp]) -> Vec<Span> {
        // Rounded up, so that no way of syncing is left without a cut.
        let each = self.synced_cuts.div_ceil(2 * (schedule.parts.len() - 1).max(1));
        let span = |(number, part): (usize, &Part)| {
            let (from, until) = (stamps[part.steps.start].begun, stamps[part.steps.end - 1].returned);
            match number {
                0 => Span { from: from + (until - from) / 3, until, evenly: self.cuts, at_flushes: self.cuts / 4 },
                _ => Span { from, until, evenly: each, at_flushes: each },
            }
        };
        schedule.parts.iter().enumerate().filter(|(_, part)| !part.steps.is_empty()).map(span).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cuts_leave_no_way_of_syncing_without_one() {
        let of_each = |synced_cuts: usize| {
            let given = Cutting { synced_cuts, ..Cutting::of(&Settings::default()) };
            let schedule = given.schedule(1);
            let stamps: Vec<Stamp> = schedule.steps.iter().map(|_| Stamp { begun: 0, returned: 9 }).collect();
            let spans = given.spans(&schedule, &stamps);
            spans[1..].iter().map(|span| (span.evenly, span.at_flushes)).collect::<Vec<_>>()
        };
        assert_eq!([0, 8, 200].map(of_each), [(0, 0), (1, 1), (20, 20)].map(|each| vec![each; 5]));
    }
}
