//! A recording of the user's own program, played on every target: the same calls in the same order,
//! with its times to think.

mod bytes;
mod call;
mod final_tree;
mod first_tree;
mod replay;
mod replay_dir;
mod schedule;
mod substitute;

use super::settings::{NameOrPath, Number, choice, settings};
use super::staging::Staging;
use super::{Description, Workload, described};
use crate::stack::Place;
use crate::stage::phase::*;
use crate::stage::{AfterPhase, Latencies, Stage};
use anyhow::{Context, Result};
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::sys::process::allow_many_files;
use pickfs_system::sys::thread_pool::ThreadPool;
use pickfs_system::units::show_share;
use pickfs_trace::{Class, Trace, shipped};
pub(crate) use replay::Outcome;
use replay::Replay;
use replay_dir::ReplayDir;
use schedule::Schedule;
use std::path::PathBuf;

pub(crate) struct Replayed;

choice! { Start { Recorded = "recorded", Cold = "cold", Warm = "warm" } }

settings! {
    Recording {
        trace: NameOrPath, "what `pickfs record` wrote, or a name from `pickfs list traces`";
        think: Number = "1", "times to think, as a multiple of the program's; 0 is as fast as possible";
        start: Start = "recorded", "caches as in the recording; nothing cached; or what was there before, cached";
    }
}

const PHASE: &str = "replay";

/// What all targets write is the same.
const SEED: u64 = 1;
const MOST_THINKING: f64 = 1000.0;
/// Seconds of a cell in addition to its replay: the first tree made, and all that is waited for.
const BESIDE_REPLAY: u64 = 5;

impl Workload for Replayed {
    fn description(&self) -> &'static Description {
        described!("trace.toml", Recording::ROWS)
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let order = Recording::of(settings);
        let trace = order.bytes().and_then(|bytes| pickfs_trace::read(&bytes)).ok();
        vec![order.phase(trace.as_ref())]
    }

    fn phases_of_cell(&self, settings: &Settings, place: &Place) -> Vec<Phase> {
        let order = Recording::of(settings);
        vec![order.phase(order.staged(place).ok().as_ref())]
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let order = Recording::of(settings);
        let mut found = Vec::new();
        if let Err(error) = order.bytes().and_then(|bytes| pickfs_trace::read(&bytes)) {
            let remedy = "record one with `pickfs record -- COMMAND`, or take one from `pickfs list traces`";
            found.push(Objection::new("trace", format!("{error:#}"), remedy));
        }
        if !(0.0..=MOST_THINKING).contains(&order.think) {
            let message = format!("the program cannot think {} times as long", order.think);
            found.push(Objection::new("think", message, "give 1 for its own pace, 0 for none, 2 for twice the time"));
        }
        found
    }

    /// A copy, so that all rounds have the same.
    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let order = Recording::of(settings);
        Ok(std::fs::write(order.place(place), order.bytes()?)?)
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let trace = pickfs_trace::read(&Recording::of(settings).bytes().ok()?).ok()?;
        Some(trace.tree_bytes().saturating_add(trace.stats().bytes_written))
    }

    /// As long as the busiest thread of the recording took, and a little for the tree.
    fn seconds(&self, settings: &Settings) -> u64 {
        let order = Recording::of(settings);
        let trace = order.bytes().and_then(|bytes| pickfs_trace::read(&bytes)).ok();
        trace
            .map_or(0, |trace| BESIDE_REPLAY.saturating_add((trace.longest_thread_ns(order.think) / 1e9).ceil() as u64))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let order = Recording::of(settings);
        let trace = order.staged(stage.place())?;
        stage.fact("trace", &summary(&trace));
        let mut replay_dir = ReplayDir::new(&trace, &stage.root(), SEED)?;
        stage.lay_out("making what was there before the recording", |stage| {
            let limits = stage.limits();
            stage.check("making the recording's first tree", || first_tree::make(&replay_dir, limits))
        })?;
        replay_dir.leave();
        let compiled = Schedule::of(&trace);
        allow_many_files();
        let mut pool = ThreadPool::new(compiled.lanes.len()).context("cannot start the threads of the replay")?;
        let replay = Replay::new(&replay_dir, &compiled, order.think);
        let play = |p: &mut crate::stage::Timed| {
            let limits = p.limits();
            replay_dir.enter()?;
            p.own(|| replay.play(&mut pool, limits))
        };
        stage.phase_then(PHASE, play, |p, outcome| {
            report(p, &trace, &outcome);
            Ok(())
        })?;
        let root = stage.root();
        let left = stage.check("looking at what the replay left", || final_tree::summary(&root))?;
        stage.fact("tree after the replay", &left);
        Ok(())
    }
}

/// A replay in a folder that is empty, without a stage: for tests and benchmarks of the replay
/// itself.
pub struct InFolder<'a> {
    replay_dir: ReplayDir<'a>,
    order: Schedule,
    pool: ThreadPool,
}

impl<'a> InFolder<'a> {
    /// Makes the first tree, and all threads ready.
    pub fn new(folder: &std::path::Path, trace: &'a Trace) -> Result<InFolder<'a>> {
        let replay_dir = ReplayDir::new(trace, folder, SEED)?;
        first_tree::make(&replay_dir, || Ok(()))?;
        let order = Schedule::of(trace);
        let pool = ThreadPool::new(order.lanes.len())?;
        Ok(InFolder { replay_dir, order, pool })
    }

    /// Once; with a seed, threads sleep at random.
    pub fn play(&mut self, think: f64, delays: Option<u64>) -> Result<Outcome> {
        let mut replay = Replay::new(&self.replay_dir, &self.order, think);
        replay.delays = delays;
        let outcome = replay.play(&mut self.pool, || Ok(()));
        self.replay_dir.leave();
        outcome
    }
}

pub fn play_in(folder: &std::path::Path, trace: &Trace, think: f64) -> Result<Outcome> {
    InFolder::new(folder, trace)?.play(think, None)
}

/// The number of threads that a replay has, for which all of its order is found.
pub fn threads(trace: &Trace) -> usize {
    Schedule::of(trace).lanes.len()
}

impl Recording {
    fn bytes(&self) -> Result<Vec<u8>> {
        let name = self.trace.as_deref().context("there is no trace")?;
        match shipped::find(name) {
            Some(shipped) => Ok(shipped.bytes.to_vec()),
            None => std::fs::read(name).with_context(|| format!("cannot read the trace {name}")),
        }
    }

    fn place(&self, place: &Place) -> PathBuf {
        Staging::new("trace", self, place).file("pktrace")
    }

    fn staged(&self, place: &Place) -> Result<Trace> {
        let bytes =
            std::fs::read(self.place(place)).context("the trace is not staged in memory; was the run prepared?")?;
        pickfs_trace::read(&bytes)
    }

    fn phase(&self, trace: Option<&Trace>) -> Phase {
        let cold = match self.start {
            Start::Cold => true,
            Start::Warm => false,
            Start::Recorded => trace.is_some_and(Trace::began_cold),
        };
        let about = "every call of the recording, with its times to think, until all is durable";
        Phase::new(PHASE, about, if cold { CacheState::Cold } else { CacheState::Warm }, AnyRead, Durable)
    }
}

/// What is played, for provenance.
fn summary(trace: &Trace) -> String {
    let (header, stats) = (&trace.header, trace.stats());
    format!(
        "{} calls of {} threads, recorded on {} (Linux {}), {} mapped",
        stats.calls(),
        header.threads,
        header.file_system,
        header.kernel,
        show_share(stats.mapped_share())
    )
}

fn report(p: &mut AfterPhase, trace: &Trace, outcome: &Outcome) {
    p.handled(outcome.bytes, 0);
    for name in Class::NAMES {
        let mut latencies = Latencies::new();
        let own = outcome.took.iter().filter(|(class, _)| class.name() == name);
        own.for_each(|(_, ns)| latencies.record(*ns));
        if latencies.count() > 0 {
            p.latencies(name, latencies);
        }
    }
    p.say("replayed_operations", outcome.took.len() as f64);
    p.say("differing_calls", outcome.differing as f64);
    p.say("other_length_calls", outcome.other_lengths as f64);
    p.say("replaced_calls", outcome.replaced as f64);
    p.say("left_out_calls", outcome.left_out as f64);
    if let Some((number, what)) = &outcome.first {
        let (count, all) = (outcome.differing, outcome.took.len());
        let why = format!(
            "{count} of {all} calls ended another way than in the recording; the first, number {number}: {what}"
        );
        p.doubt(FlagKind::ReplayDiffers, why);
    }
    let stats = trace.stats();
    if stats.is_approximate() {
        let share = show_share(stats.mapped_share());
        let why = format!("{share} of the program's bytes went through its memory, which the replay only approximates");
        p.doubt(FlagKind::ReplayApproximate, why);
    }
}
