//! Workloads that cut the power of a simulated disk, and what they have in common: what the disk
//! loses at a cut, and what all cuts come to.

pub(crate) mod ledger;
pub(crate) mod transactions;

use super::settings::{Duration, Flag, Size, Texts, choice, settings};
use crate::stage::{Cut, Outcomes, Stage};
use anyhow::Result;
use pickfs_core::journal::BROKEN_PROMISES;
use pickfs_core::plan::Objection;
use pickfs_disks::cuts::{Loses, SECTOR};
use pickfs_system::units::{show_bytes, show_duration};

choice! {
    /// What the disk loses of what it has acknowledged and not flushed.
    Loss { Nothing = "nothing", All = "all", Cached = "cached", Some = "some" }
}

settings! {
    Power {
        losses: Texts = r#"["nothing", "all", "cached", "some"]"#,
            "what the disk loses of what was not flushed, each tried at every cut: nothing, all, what its model had not written, \
             some with torn writes";
        torn: Size,
            "torn writes lose pieces of this many bytes; by default what the disk declares that it writes as one (physical_block_size)";
        fsck: Flag = "true", "after each cut the file system's own program checks, without repair, what was mounted and unmounted";
        lies: Duration, "the disk lies: a power cut loses the last changes of this long, flushed or not";
        record: Size = "2GiB", "room for all that the disk is given";
    }
}

impl Power {
    /// Bytes of the recording: a whole number of pages.
    fn recording(&self) -> u64 {
        self.record / 4096 * 4096
    }

    fn lies_ns(&self) -> Option<u64> {
        self.lies.map(|lies| lies.as_nanos() as u64).filter(|lies| *lies > 0)
    }

    /// A disk that lies loses the same whatever it keeps of the rest.
    fn losses(&self, stage: &mut Stage) -> Result<Vec<Loses>> {
        let piece = self.torn.map_or_else(|| stage.atomic_bytes(), Ok)?;
        stage.fact("pieces of torn writes", &show_bytes(piece as f64));
        let loses = |loss: Loss| match loss {
            Loss::Nothing => Loses::Nothing,
            Loss::All => Loses::All,
            Loss::Cached => Loses::Cached,
            Loss::Some => Loses::Some { whole: piece / SECTOR },
        };
        let mut losses: Vec<Loses> = self.losses.iter().filter_map(|word| Loss::named(word)).map(loses).collect();
        losses.truncate(if self.lies_ns().is_some() { 1 } else { losses.len() });
        Ok(losses)
    }

    fn objections(&self) -> Vec<Objection> {
        let mut found: Vec<Objection> = unknown("losses", &self.losses, Loss::WORDS).into_iter().collect();
        if self.losses.is_empty() {
            let remedy = "name at least one, such as losses = [\"all\"]";
            found.push(Objection::new("losses", "there is nothing to cut".into(), remedy));
        }
        if self.torn.is_some_and(|torn| torn == 0 || torn % SECTOR != 0) {
            let remedy = "give whole sectors, such as torn = \"512\"";
            found.push(Objection::new("torn", "a disk writes sectors of 512 bytes, and no part of one".into(), remedy));
        }
        found
    }
}

/// The first word of a list that is none of those known.
fn unknown(setting: &'static str, list: &[String], known: &[&str]) -> Option<Objection> {
    let found = list.iter().find(|word| !known.contains(&word.as_str()))?;
    let message = format!("`{}` is none of the {setting}", found.escape_debug());
    Some(Objection::new(setting, message, &format!("use some of {}", known.join(", "))))
}

const RECOVERY: &str = "recovery";

/// What all cuts come to, whatever was lost.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    /// What was broken first, for each cut with a broken promise; and by its number what the disk
    /// had lost.
    broken: Vec<(usize, String)>,
    cuts: usize,
    /// Cuts at which something was promised.
    promise_cuts: usize,
    /// Cuts that left a file system that could not be mounted; their promises are broken.
    unmountable: usize,
    /// Cuts that left a file system in which its own checker finds errors; their promises are
    /// broken. None where none looked.
    fsck_errors: Option<usize>,
    /// Cuts that left content which is neither old nor new, where nothing was promised.
    damaged: usize,
    images: usize,
    mounts_ns: Vec<u64>,
}

impl Tally {
    fn of<T>(outcomes: &Outcomes<T>) -> Tally {
        let mounted = outcomes.images.iter().filter_map(|image| Some(image.mounted.as_ref().ok()?.as_nanos() as u64));
        let (cuts, images) = (outcomes.cuts.len(), outcomes.images.len());
        let wrong = |cut: &&Cut| outcomes.images[cut.image].wrong.is_some();
        let fsck_errors = outcomes.are_checked.then(|| outcomes.cuts.iter().filter(wrong).count());
        Tally { cuts, images, mounts_ns: mounted.collect(), fsck_errors, ..Tally::default() }
    }

    fn report(&self, stage: &mut Stage, losses: &[String]) {
        let (cuts, images, promises, broken) = (self.cuts, self.images, self.promise_cuts, self.broken.len());
        stage.say(RECOVERY, "time_ns", quantile(&self.mounts_ns, 0.5) as f64);
        stage.say(RECOVERY, "recovery_max_ns", quantile(&self.mounts_ns, 1.0) as f64);
        stage.say(RECOVERY, "done_cuts", cuts as f64);
        stage.say(RECOVERY, "done_promise_cuts", promises as f64);
        stage.say(RECOVERY, "done_images", images as f64);
        stage.say(RECOVERY, "broken_promise_cuts", broken as f64);
        stage.say(RECOVERY, "unmountable_cuts", self.unmountable as f64);
        stage.say(RECOVERY, "damaged_content_cuts", self.damaged as f64);
        if let Some(errors) = self.fsck_errors {
            stage.say(RECOVERY, "fsck_error_cuts", errors as f64);
        }
        let shown = format!("{cuts} cuts, {images} different images; promises broken in {broken} of {promises}");
        stage.fact("power cuts", &shown);
        if let Some(broken) = self.broken_shown(losses) {
            stage.fact(BROKEN_PROMISES, &broken);
        }
    }

    /// How many cuts broke a promise, by what the disk had lost; and the first of them. None where
    /// none did.
    fn broken_shown(&self, losses: &[String]) -> Option<String> {
        let (first, why) = self.broken.first()?;
        let count = |number: usize| self.broken.iter().filter(|(loses, _)| *loses == number).count();
        let counts: Vec<String> =
            losses.iter().enumerate().map(|(number, word)| format!("{word} {}", count(number))).collect();
        let lost = losses.get(*first).map_or("", String::as_str);
        Some(format!("by what the disk lost: {}; first ({lost}): {why}", counts.join(", ")))
    }
}

/// The first words of what a checker has to say.
fn fsck_found(wrong: &str) -> String {
    format!("fsck finds errors ({wrong})")
}

fn at_a_cut(why: &str, at: u64) -> String {
    format!("{why}, at a cut at {}", show_duration(at as f64))
}

/// The worst loss, its quantiles and its curve. What is younger than `least` cannot be seen.
fn report_loss(stage: &mut Stage, phase: &str, losses: &[u64], least: u64) -> Result<()> {
    let worst = losses.iter().copied().max().unwrap_or_default().max(least);
    stage.say(phase, "time_ns", worst as f64);
    stage.say(phase, "loss_p95_ns", quantile(losses, 0.95) as f64);
    stage.distribution(phase, "loss", losses)
}

/// The value that so large a share does not exceed; 0 of none.
fn quantile(values: &[u64], share: f64) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.max(1) - 1).copied().unwrap_or_default()
}
