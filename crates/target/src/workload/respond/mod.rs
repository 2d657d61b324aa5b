//! How the machine answers while another program writes hard: small operations at fixed times,
//! during a background.
//!
//! Each operation is one that a user waits for: a mail saved, a page opened, a file renamed, a name
//! looked up, a program started. See docs/respond.md for what is counted.

mod probe_files;

use super::content::{Pool, Ring};
use super::settings::{Count, Duration as DurationKind, Size, Texts, choice, settings};
use super::staging::Staging;
use super::trees::Dataset;
use super::{Description, Workload, described, programs, text};
use crate::stack::{Place, argv};
use crate::stage::phase::*;
use crate::stage::{Part, Periodic, PeriodicLog, Program, Stage, Timed};
use anyhow::{Context, Result, bail};
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use pickfs_system::process::run_program;
use probe_files::ProbeFiles;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) struct Respond;

settings! {
    Responding {
        backgrounds: Texts = r#"["idle", "write", "drain", "untar", "remove"]"#,
            "what goes on meanwhile: nothing, a file written as fast as it goes, and then what is still dirty of it \
             after the writer has stopped; a tree unpacked; the tree removed";
        probes: Texts = r#"["append", "read", "create", "stat", "start"]"#, "what is done at fixed times";
        time: DurationKind = "60s", "how long `idle` and `write` last, and `untar` and `remove` at most";
        drain_time: DurationKind = "60s",
            "how long `drain` lasts at most; it ends when less than 1 MiB is dirty and the device has been quiet for 6 s";
        write_size: Size = "1GiB", "size of the file that `write` writes; from its end it goes on at its start";
        clients: Count<1, MOST_CLIENTS> = "1", "programs that write in `write`, each its own file with its share of `write_size`";
        start_every: DurationKind = "20s", "how often `start` is done";
        start_files: Count = "200", "files that `start` reads";
        start_bytes: Size = "30MiB", "bytes in all of these";
    }
}

choice! {
    /// What goes on meanwhile; `drain` comes behind `write` in its phase.
    Background { Idle = "idle", Write = "write", Drain = "drain", Untar = "untar", Remove = "remove" }
}

choice! {
    /// What is done at fixed times.
    pub(crate) Operation { Append = "append", Read = "read", Create = "create", Stat = "stat", Start = "start" }
}

impl Background {
    fn about(self) -> &'static str {
        match self {
            Background::Idle => "the probes alone",
            Background::Write => "the probes while a file is written, and until what is dirty has been written",
            Background::Drain => "",
            Background::Untar => "the probes while a tree is unpacked",
            Background::Remove => "the probes while the tree is removed",
        }
    }
}

impl Operation {
    fn about(self) -> &'static str {
        match self {
            Operation::Append => "append 4 KiB and fdatasync, every 100 ms: the 99th percentile",
            Operation::Read => "read 4 KiB that have not been read, cold, every 50 ms: the 99th percentile",
            Operation::Create => "create, rename, fsync of the directory, every 250 ms: the 99th percentile",
            Operation::Stat => "stat of a random path, cold, every 50 ms: the 99th percentile",
            Operation::Start => "start a program: read its files, cold: the 99th percentile",
        }
    }

    /// How often it is due, and when for the first time: they do not begin at the same moment.
    fn schedule(self, given: &Responding) -> [Duration; 2] {
        let (every, first) = match self {
            Operation::Append => (100, 3),
            Operation::Read => (50, 17),
            Operation::Create => (250, 31),
            Operation::Stat => (50, 41),
            Operation::Start => return [given.start_every, Duration::from_millis(71)],
        };
        [every, first].map(Duration::from_millis)
    }
}

/// Bytes of each class of content.
const OF_EACH_CLASS: usize = 4 << 20;
/// With fewer, the 99th percentile is the maximum.
const FEW: u64 = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// More threads would measure the scheduler.
const MOST_CLIENTS: u64 = 1000;

impl Workload for Respond {
    fn description(&self) -> &'static Description {
        described!("respond.toml", [Responding::ROWS, Dataset::ROWS])
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let given = Responding::of(settings);
        let mut phases = Vec::new();
        for background in given.phases() {
            phases.push(Phase::new(background.word(), background.about(), Cold, Declared, Parts));
            for background in given.parts_of(background) {
                let part = |operation: Operation| Phase::part(part(operation, background).into(), operation.about());
                let only_shown = |part: Phase| if background == Background::Idle { part.only_shown() } else { part };
                phases.extend(given.operations().map(part).map(only_shown));
            }
        }
        phases
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let unpacking = [("tar", "tar"), ("timeout", "coreutils"), ("rm", "coreutils")];
        if Responding::of(settings).unpacks() { programs(&unpacking) } else { Vec::new() }
    }

    fn dataset(&self, settings: &Settings) -> Option<Dataset> {
        Responding::of(settings).unpacks().then(|| Dataset::of(settings))
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let given = Responding::of(settings);
        let lists =
            [("backgrounds", &given.backgrounds, Background::WORDS), ("probes", &given.probes, Operation::WORDS)];
        let mut found: Vec<Objection> =
            lists.into_iter().filter_map(|(setting, list, known)| bad_list(setting, list, known)).collect();
        if given.has(Background::Drain) && !given.has(Background::Write) {
            let message = "`drain` is what `write` leaves behind, and there is no `write`".to_string();
            found.push(Objection::new("backgrounds", message, "add \"write\", or leave \"drain\" out"));
        }
        found.extend(self.dataset(settings).map(|dataset| dataset.objections()).unwrap_or_default());
        found
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let given = Responding::of(settings);
        let tree = self.dataset(settings).map_or(Some(0), |dataset| dataset.bytes())?;
        let file = if given.has(Background::Write) { given.write_size } else { 0 };
        Some(ProbeFiles::new(&given).bytes() + file + tree)
    }

    fn seconds(&self, settings: &Settings) -> u64 {
        let given = Responding::of(settings);
        let lasts = |background| if background == Background::Drain { given.drain_time } else { given.time };
        let backgrounds = given.phases().flat_map(|background| given.parts_of(background));
        backgrounds.map(|background| lasts(background).as_secs()).fold(self.description().seconds, u64::saturating_add)
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let Some(dataset) = self.dataset(settings) else { return Ok(()) };
        dataset.prepare(place)?;
        let staging = dataset.staging(place);
        run_program(&argv(["tar", "-c", "-f", &text(&archive(&staging)), "-C", &text(&staging.folder), "."])).map(drop)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let given = Responding::of(settings);
        let (files, root) = (ProbeFiles::new(&given), stage.root());
        let pool = stage.check("making content", || Ok(Pool::new(2, OF_EACH_CLASS)))?;
        stage.lay_out("laying out what the probes use", |stage| {
            stage.check("writing", || files.lay_out(&root, &pool))
        })?;
        let tree = self.dataset(settings).map(|dataset| Tree::new(stage, &dataset)).transpose()?;
        for background in given.phases() {
            if let (Background::Remove, Some(tree)) = (background, &tree) {
                tree.unpack(stage)?;
            }
            let play = Play { background, given: &given, files: &files, pool: &pool, root: &root, tree: tree.as_ref() };
            stage.phase(background.word(), |p| play.run(p))?;
            if !stage.forgets_names() {
                let why = "without root, names and inodes cannot be dropped: those asked for may have been in memory";
                given.warm_stats(background).for_each(|part| stage.flag(&part, FlagKind::NotProvedCold, why.into()));
            }
            if let (Some(tree), Background::Untar | Background::Remove) = (&tree, background) {
                tree.tell(stage, background)?;
            }
        }
        Ok(())
    }
}

impl Responding {
    fn has(&self, background: Background) -> bool {
        self.backgrounds.iter().any(|name| name == background.word())
    }

    fn unpacks(&self) -> bool {
        self.has(Background::Untar) || self.has(Background::Remove)
    }

    /// Backgrounds that are phases.
    fn phases(&self) -> impl Iterator<Item = Background> {
        let all = Background::ALL.iter().copied();
        all.filter(|background| *background != Background::Drain && self.has(*background))
    }

    /// Backgrounds in the phase of one.
    fn parts_of(&self, background: Background) -> impl Iterator<Item = Background> {
        let drains = background == Background::Write && self.has(Background::Drain);
        std::iter::once(background).chain(drains.then_some(Background::Drain))
    }

    fn operations(&self) -> impl Iterator<Item = Operation> {
        let all = Operation::ALL.iter().copied();
        all.filter(|operation| self.probes.iter().any(|name| name == operation.word()))
    }

    /// The parts of a background whose `stat` was not cold, where names stay in memory.
    fn warm_stats(&self, background: Background) -> impl Iterator<Item = String> {
        let stats = self.operations().any(|operation| operation == Operation::Stat);
        self.parts_of(background).filter(move |_| stats).map(|background| part(Operation::Stat, background))
    }
}

fn part(operation: Operation, background: Background) -> String {
    format!("{}-during-{}", operation.word(), background.word())
}

fn bad_list(setting: &'static str, given: &[String], known: &[&str]) -> Option<Objection> {
    let remedy = format!("use some of {}", known.join(", "));
    if given.iter().all(|name| name == Background::Drain.word()) {
        return Some(Objection::new(setting, "there is nothing to be done".into(), &remedy));
    }
    let unknown = given.iter().find(|name| !known.contains(&name.as_str()))?;
    Some(Objection::new(setting, format!("`{unknown}` is none of the {setting}"), &remedy))
}

/// One of the phases.
struct Play<'a> {
    background: Background,
    given: &'a Responding,
    files: &'a ProbeFiles,
    pool: &'a Pool,
    root: &'a Path,
    tree: Option<&'a Tree>,
}

impl Play<'_> {
    fn run(&self, p: &mut Timed) -> Result<()> {
        let operations: Vec<Operation> = self.given.operations().collect();
        let periodic: Result<Vec<Periodic>> = operations.iter().map(|operation| self.periodic(*operation)).collect();
        let mut periodic = periodic?;
        let mut read = 0;
        for background in self.given.parts_of(self.background) {
            let logs = p.beside(&mut periodic, |p, failed| self.work(background, p, failed))?;
            for (operation, log) in operations.iter().zip(logs) {
                read += self.files.least_read(*operation, log.latencies.count());
                p.part(report(*operation, background, log));
            }
        }
        p.reads_at_least(read);
        Ok(())
    }

    fn periodic<'a>(&'a self, operation: Operation) -> Result<Periodic<'a>> {
        let [period, first] = operation.schedule(self.given);
        Ok(match operation {
            Operation::Append => Periodic::new(period, first, self.files.append(self.root, self.pool)?),
            Operation::Read => Periodic::new(period, first, self.files.read(self.root)?),
            Operation::Create => Periodic::new(period, first, self.files.create(self.root, self.background.word())?),
            Operation::Stat => Periodic::new(period, first, self.files.stat(self.root)),
            Operation::Start => Periodic::new(period, first, self.files.start(self.root)),
        })
    }

    fn stream(&self, client: u64) -> PathBuf {
        self.root.join(if client == 0 { "stream".to_string() } else { format!("stream-{client}") })
    }

    fn work(&self, background: Background, p: &mut Timed, failed: &dyn Fn() -> bool) -> Result<()> {
        let time = self.given.time;
        match (background, self.tree) {
            (Background::Idle, _) => p.until(time, PAUSE, || Ok(failed())).map(drop),
            (Background::Write, _) => {
                let ring =
                    |client| Ring::new(&self.stream(client), self.pool, self.given.write_size / self.given.clients);
                let mut rings = (0..self.given.clients).map(ring).collect::<Result<Vec<_>>>()?;
                let (first, others) = rings.split_first_mut().context("nothing writes")?;
                writing_too(others, || p.until(time, Duration::ZERO, || Ok(failed() || write(first)?)).map(drop))
            }
            (Background::Drain, _) => {
                let mut written = p.written();
                p.until(self.given.drain_time, PAUSE, || Ok(failed() || written.all()?)).map(drop)
            }
            (Background::Untar, Some(tree)) => p.run(&timely(time, tree.unpacking())),
            (Background::Remove, Some(tree)) => p.run(&timely(time, argv(["rm", "-rf", &text(&tree.folder)]))),
            (background, None) => bail!("there is no tree for {}", background.word()),
        }
    }
}

fn write(ring: &mut Ring) -> Result<bool> {
    ring.write().context("writing in the background").map(|()| false)
}

/// Writes to these on their own threads for as long as the work lasts. An error of the work comes
/// before theirs.
fn writing_too(rings: &mut [Ring], work: impl FnOnce() -> Result<()>) -> Result<()> {
    let over = AtomicBool::new(false);
    let until_over = |ring: &mut Ring| {
        while !over.load(Ordering::Relaxed) {
            write(ring)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let until_over = &until_over;
        let others: Vec<_> = rings.iter_mut().map(|ring| scope.spawn(move || until_over(ring))).collect();
        let done = work();
        over.store(true, Ordering::Relaxed);
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(|_| bail!("a writer failed")));
        let others = others.collect::<Vec<Result<()>>>();
        done.and(others.into_iter().collect())
    })
}

/// Ended when its time is over, which is no failure.
fn timely(time: Duration, words: Vec<String>) -> Program {
    let limit = ["timeout".into(), "--kill-after=10".into(), format!("{:.3}", time.as_secs_f64())];
    Program::new(limit.into_iter().chain(words)).may_end_with([0, 124, 137])
}

fn report(operation: Operation, background: Background, log: PeriodicLog) -> Part {
    let share = |count: u64| count as f64 / log.latencies.count().max(1) as f64;
    let part = Part::new(&part(operation, background), log.latencies.quantile(0.99) as f64)
        .say("stall_ns", log.stall_ns as f64)
        .say("over_100ms_share", share(log.over_100ms))
        .say("over_1s_share", share(log.over_1s))
        .say("ran_ns", log.ran_ns as f64);
    let part = few(log.latencies.count()).into_iter().fold(part, |part, why| part.doubt(FlagKind::FewOperations, why));
    part.latencies("latency", log.latencies)
}

/// Why the 99th percentile says little.
fn few(operations: u64) -> Option<String> {
    (operations < FEW).then(|| format!("of {operations} operations the 99th percentile is the longest"))
}

/// The tree that is unpacked and removed.
struct Tree {
    archive: PathBuf,
    folder: PathBuf,
    entries: u64,
}

impl Tree {
    fn new(stage: &mut Stage, dataset: &Dataset) -> Result<Tree> {
        let entries = dataset.staged(stage.place())?.digest.entries;
        let folder = stage.root().join("unpacked");
        std::fs::create_dir(&folder).context("cannot make a folder on the target")?;
        Ok(Tree { archive: archive(&dataset.staging(stage.place())), folder, entries })
    }

    fn unpacking(&self) -> Vec<String> {
        argv(["tar", "-x", "-f", &text(&self.archive), "-C", &text(&self.folder)])
    }

    /// What is there of it.
    fn there(&self) -> u64 {
        walkdir::WalkDir::new(&self.folder).min_depth(1).into_iter().filter(Result::is_ok).count() as u64
    }

    /// All of it, untimed, unless it is there.
    fn unpack(&self, stage: &mut Stage) -> Result<()> {
        if self.there() == self.entries {
            return Ok(());
        }
        let words = self.unpacking();
        stage.lay_out("unpacking what is to be removed", |stage| stage.run(&Program::new(&words)).map(drop))
    }

    /// How much of its work the background did in its time.
    fn tell(&self, stage: &mut Stage, background: Background) -> Result<()> {
        let there = stage.check("counting what is there", || Ok(self.there()))?;
        let done = if background == Background::Remove { self.entries.saturating_sub(there) } else { there };
        stage.say(background.word(), "done_share", done as f64 / self.entries as f64);
        Ok(())
    }
}

fn archive(staging: &Staging) -> PathBuf {
    staging.file("tar")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_done_is_refused() {
        let rows = [
            (json!({}), ""),
            (json!({"backgrounds": ["idle"], "probes": ["append"]}), ""),
            (json!({"backgrounds": ["drain", "idle"]}), "backgrounds"),
            (json!({"backgrounds": ["drain"]}), "backgrounds"),
            (json!({"backgrounds": []}), "backgrounds"),
            (json!({"backgrounds": ["storm"]}), "backgrounds"),
            (json!({"probes": ["appendix"]}), "probes"),
            (json!({"like": "sight"}), "like"),
            (json!({"like": "sight", "backgrounds": ["write"]}), ""),
        ];
        for (given, setting) in rows {
            let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
            let found = Respond.objections(&settings);
            assert_eq!(found.first().map_or("", |objection| objection.setting), setting, "{given}");
        }
    }

    #[test]
    fn a_percentile_of_few_is_flagged() {
        assert!(few(99).is_some_and(|why| why.contains("99 operations")) && few(100).is_none());
        // It is what it says.
        for (count, is_longest) in [(99, true), (100, false)] {
            let mut latencies = crate::stage::Latencies::new();
            (1..=count).for_each(|ns| latencies.record(ns));
            assert_eq!(latencies.quantile(0.99) == latencies.quantile(1.0), is_longest, "{count}");
        }
    }

    #[test]
    fn every_probe_is_a_part_of_every_background() {
        let given = json!({"backgrounds": ["write", "drain", "untar"], "probes": ["append", "stat"]});
        let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
        let names: Vec<String> = Respond.phases(&settings).iter().map(|phase| phase.name.to_string()).collect();
        let wanted = [
            "write", "append-during-write", "stat-during-write", "append-during-drain", "stat-during-drain", "untar",
            "append-during-untar", "stat-during-untar",
        ];
        assert_eq!(names, wanted);
        let warm_stats = |background| Responding::of(&settings).warm_stats(background).collect::<Vec<_>>();
        assert_eq!(warm_stats(Background::Write), ["stat-during-write", "stat-during-drain"]);
        assert_eq!(warm_stats(Background::Untar), ["stat-during-untar"]);
        assert_eq!(Respond.phases(&Settings::default()).len(), 4 + 5 * 5);
    }
}
