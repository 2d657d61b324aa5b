//! What survives a power cut: small changes at fixed times, unsynced and synced in each way, on a disk that is recorded; then
//! the power is cut at many moments, and what is left is compared with what had returned. docs/durability.md has the reasons.

mod changes;
mod judge;
mod schedule;
mod survey;

use super::settings::{Duration as DurationKind, Items, Size, Texts, choice, settings};
use super::{Description, Workload};
use crate::cuts::{Loses, Span};
use crate::metric::Combine;
use crate::plan::{Objection, Settings};
use crate::stage::phase::*;
use crate::stage::{PowerCuts, Stage};
use anyhow::{Context, Result};
use changes::Changes;
use judge::{Found, Verdicts};
use schedule::{Part, Schedule};
use std::time::Duration;

pub struct Ledger;

choice! {
    /// How a change is made durable before it is over.
    pub Sync {
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

choice! {
    /// What the disk loses of what it has acknowledged and not flushed.
    Loss { Nothing = "nothing", All = "all", Cached = "cached", Some = "some" }
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
        losses: Texts = r#"["nothing", "all", "cached", "some"]"#,
            "what the disk loses of what was not flushed, each tried at every cut: nothing, all, what its model had not written, \
             some with torn writes";
        lies: DurationKind, "the disk lies: it loses the last changes for so long, flushed or not";
        record: Size = "2GiB", "room for all that the disk is given";
    }
}

const DESCRIPTION: Description = Description {
    name: "ledger",
    about: "what a power cut takes: seconds of work lost, and whether fsync kept its promise; on simulated disks",
    settings: Cutting::ROWS,
    main_setting: "time",
    phases: &[
        Phase::new(
            NAMES,
            "oldest folder, link or removal that a cut takes: the worst of all cuts",
            Warm,
            Declared,
            Returned,
        ),
        Phase::new(CONTENTS, "oldest content that a cut takes: the worst of all cuts", Warm, Declared, Returned),
        Phase::new(RECOVERY, "mounting after a cut: the median", Warm, Declared, Returned).only_shown(),
    ],
    judged: (Combine::Largest, "worst loss"),
    ..Description::EMPTY
};

const NAMES: &str = "names";
const CONTENTS: &str = "contents";
const RECOVERY: &str = "recovery";

impl Workload for Ledger {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn recording(&self, settings: &Settings) -> Option<u64> {
        Some(Cutting::of(settings).record / 4096 * 4096)
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let given = Cutting::of(settings);
        let unknown = |setting, list: &[String], known: &[&str]| {
            let found = list.iter().find(|word| !known.contains(&word.as_str()))?;
            let message = format!("`{}` is none of the {setting}", found.escape_debug());
            Some(Objection::new(setting, message, &format!("use some of {}", known.join(", "))))
        };
        let mut found: Vec<Objection> = unknown("syncs", &given.syncs, &Sync::WORDS[1..]).into_iter().collect();
        found.extend(unknown("losses", &given.losses, Loss::WORDS));
        if given.losses.is_empty() {
            let remedy = "name at least one, such as losses = [\"all\"]";
            found.push(Objection::new("losses", "there is nothing to cut".into(), remedy));
        }
        let few =
            [("cuts", given.cuts < 8), ("every", given.every < SHORTEST), ("time", given.time < given.every * 100)];
        let remedies = ["give at least 8", "give at least 1 ms", "give at least a hundred times `every`"];
        for ((setting, _), remedy) in few.into_iter().zip(remedies).filter(|((_, few), _)| *few) {
            found.push(Objection::new(setting, "says nothing of a distribution".into(), remedy));
        }
        found
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let given = Cutting::of(settings);
        let schedule = given.schedule(stage.seed());
        let mut changes = Changes::new(&stage.root(), &schedule);
        stage.lay_out("laying out what is changed", |stage| stage.check("writing", || changes.lay_out()))?;
        let stamps =
            stage.at_fixed_times(given.every, schedule.steps.len() as u64, |number| changes.make(number as usize))?;
        drop(changes);
        let cuts = given.cuts(&schedule, &stamps, stage.seed());
        let outcomes = stage.cut_power(&cuts, |root| survey::survey(root, &schedule))?;
        let found =
            Found::new(&schedule, &stamps, &outcomes).context("what was found after the cuts contradicts itself")?;
        tell(stage, &given, &found)
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

    fn cuts(&self, schedule: &Schedule, stamps: &[crate::stage::Stamp], seed: u64) -> PowerCuts {
        let synced = (schedule.parts.len() - 1).max(1);
        let span = |(number, part): (usize, &Part)| {
            let (from, until) = (stamps[part.steps.start].begun, stamps[part.steps.end - 1].returned);
            match number {
                0 => Span { from: from + (until - from) / 3, until, evenly: self.cuts, at_flushes: self.cuts / 4 },
                _ => Span {
                    from,
                    until,
                    evenly: self.synced_cuts / 2 / synced,
                    at_flushes: self.synced_cuts / 2 / synced,
                },
            }
        };
        let spans = schedule.parts.iter().enumerate().filter(|(_, part)| !part.steps.is_empty()).map(span).collect();
        let loses = |loss: Loss| match loss {
            Loss::Nothing => Loses::Nothing,
            Loss::All => Loses::All,
            Loss::Cached => Loses::Cached,
            Loss::Some => Loses::Some { whole: if seed % 2 == 0 { 1 } else { 8 } },
        };
        let lies_ns = self.lies.map(|lies| lies.as_nanos() as u64).filter(|lies| *lies > 0);
        let mut losses: Vec<Loses> = self.losses.iter().filter_map(|word| Loss::named(word)).map(loses).collect();
        losses.truncate(if lies_ns.is_some() { 1 } else { losses.len() });
        PowerCuts { spans, losses, lies_ns, seed }
    }
}

fn tell(stage: &mut Stage, given: &Cutting, found: &Found) -> Result<()> {
    let least = given.every.as_nanos() as u64;
    let verdicts = found.verdicts();
    for (phase, losses) in [(NAMES, &verdicts.names), (CONTENTS, &verdicts.contents)] {
        // What is younger than the last change cannot be seen.
        let worst = losses.iter().copied().max().unwrap_or_default().max(least);
        stage.say(phase, "time_ns", worst as f64);
        stage.say(phase, "loss_p95_ns", quantile(losses, 0.95) as f64);
        stage.distribution(phase, "loss", losses)?;
    }
    tell_recovery(stage, &verdicts);
    stage.fact("power cuts", &verdicts.shown());
    if let Some(broken) = verdicts.broken_shown(&given.losses) {
        stage.fact("broken promises", &broken);
    }
    Ok(())
}

fn tell_recovery(stage: &mut Stage, verdicts: &Verdicts) {
    let mounts: Vec<u64> = verdicts.mounts_ns.clone();
    stage.say(RECOVERY, "time_ns", quantile(&mounts, 0.5) as f64);
    stage.say(RECOVERY, "recovery_max_ns", quantile(&mounts, 1.0) as f64);
    stage.say(RECOVERY, "done_cuts", verdicts.cuts as f64);
    stage.say(RECOVERY, "done_promise_cuts", verdicts.promise_cuts as f64);
    stage.say(RECOVERY, "done_images", verdicts.images as f64);
    stage.say(RECOVERY, "broken_promise_cuts", verdicts.broken.len() as f64);
    stage.say(RECOVERY, "unmountable_cuts", verdicts.unmountable as f64);
    stage.say(RECOVERY, "damaged_content_cuts", verdicts.damaged as f64);
}

/// The value that so large a share does not exceed; 0 of none.
fn quantile(values: &[u64], share: f64) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.max(1) - 1).copied().unwrap_or_default()
}
