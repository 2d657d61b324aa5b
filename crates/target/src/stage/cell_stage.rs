//! Where a workload plays: the stage owns the clock, the caches, the sync and the probes, so that
//! no workload can forget them.

use super::account::{Account, Spent};
use super::built_stack::BuiltStack;
use super::caches::{self, Dropped};
use super::cold_proof::{Expected, SMALLEST_INODE};
use super::phase::Phase;
use super::phase_result::{PhaseTimer, Samples};
use super::program::Program;
use super::server::Server;
use super::settle::Stillness;
use super::timed::Timed;
use crate::probe::layout::Found;
use crate::probe::{compression, space};
use crate::stack::fs::FsSpec;
use crate::stack::fs::feature::MODES;
use crate::stack::{Argv, Place, argv};
use crate::steps::StepRunner;
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::{Flag, FlagKind, Provenance, Record, Sample};
use pickfs_core::protocol::Link;
use pickfs_system::process::{self, Deadline, check_stop, run_program};
use pickfs_system::sys::block::size_of_device;
use pickfs_system::sys::quota::QuotaUsage;
use pickfs_system::sys::{devices, file, quota};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the stage must know of a workload to play it.
pub(crate) struct Script<'a> {
    pub name: &'a str,
    /// As the workload declares them with its settings.
    pub phases: Vec<Phase>,
    /// Programs that a cold start brings back into memory, by asking for their version.
    pub programs: Vec<&'static str>,
    /// What else is run after caches were dropped.
    pub warm_up: Vec<Argv>,
    /// How often the plan wants phases that only read; see [`Stage::repeats`].
    pub repeats: u32,
    /// Phases that start fresh are trimmed first.
    pub trim: bool,
}

/// Takes and deletes snapshots, each with its own program, sends the first and makes it anew of
/// what was sent, and goes back to one more.
pub(crate) struct SnapshotPrograms {
    pub take: Vec<Argv>,
    pub send: Argv,
    pub receive: Argv,
    /// Where the work's folder is in what was received.
    pub received: PathBuf,
    pub take_one_more: Argv,
    pub roll_back: Vec<Argv>,
    delete: Vec<Argv>,
    /// As [`crate::stack::fs::Snapshots::freed`]: a program, and what it prints then.
    freed: Option<(Argv, &'static str)>,
    exclusive: Option<Argv>,
    mount_point: PathBuf,
}

impl SnapshotPrograms {
    /// Between two looks whether the room of deleted ones is free.
    const PAUSE: Duration = Duration::from_millis(10);

    /// Until what they held is free; an error where that takes longer.
    pub(crate) fn delete_all(&self, p: &mut Timed, at_most: Duration) -> Result<()> {
        self.delete.iter().try_for_each(|words| p.command(words))?;
        let Some((words, prints)) = &self.freed else { return Ok(()) };
        let free = p.until(at_most, SnapshotPrograms::PAUSE, || Ok(run_program(words)?.trim() == *prints))?;
        ensure!(free, "what the snapshots held was not free after {} s", at_most.as_secs());
        Ok(())
    }

    /// Bytes that only snapshots hold, all of them together: they would be free without them. Of
    /// btrfs data outside the metadata alone, of ZFS metadata too.
    pub(crate) fn exclusive_bytes(&self) -> Result<u64> {
        let Some(words) = &self.exclusive else {
            let counted = compression::bytes_of_subvolumes_alone(&self.mount_point);
            return counted.context("cannot count the extents that only snapshots hold");
        };
        let printed = run_program(words)?;
        printed.trim().parse().with_context(|| format!("`{}` printed {printed:?} instead of bytes", words.join(" ")))
    }
}

/// An operation on the whole of a file system.
pub(crate) struct UpkeepPrograms {
    /// False where the first unmounts it and the last mounts it again.
    pub is_mounted: bool,
    /// As [`crate::stack::fs::Upkeep::counts_users`].
    pub counts_users: bool,
    pub run: Vec<Argv>,
}

/// One cell's workload on its stack.
pub struct Stage<'a, 'b> {
    pub(super) script: Script<'a>,
    pub(super) stack: &'a BuiltStack,
    pub(super) runner: &'a StepRunner<'b>,
    pub(super) link: &'a mut Link,
    pub(super) deadline: &'a Deadline,
    /// Of the cell, which it names. While the work plays, all that is neither settling nor a phase
    /// is a check.
    pub(super) account: &'a mut Account,
    /// Phases that were played, to check that writing ones are played once.
    played: Vec<String>,
    /// Process ids of started servers; they may have ended since.
    pub(super) servers: Vec<i32>,
    pub(super) expected: Expected,
    /// What the file system held when it was empty.
    pub(super) used_empty: Option<f64>,
    /// Times of the phase before.
    pub(super) clocked: Option<PhaseTimer>,
    /// The part of the durable time that starting a program takes alone.
    pub(super) commit_start: Duration,
    /// Why the last cold start was none for the host below.
    pub(super) warm_below: Option<String>,
    /// All clean caches of the machine were, in this cell.
    pub(super) were_dropped: bool,
    /// Stillness of the devices under test.
    pub(super) stillness: Stillness,
}

impl<'a, 'b> Stage<'a, 'b> {
    pub(crate) fn new(
        script: Script<'a>,
        stack: &'a BuiltStack,
        runner: &'a StepRunner<'b>,
        link: &'a mut Link,
        deadline: &'a Deadline,
        account: &'a mut Account,
    ) -> Stage<'a, 'b> {
        let inode = stack.driver.and_then(|driver| driver.limits.inode).unwrap_or(SMALLEST_INODE);
        let packs_tails = stack.driver.is_some_and(|driver| driver.limits.packs_tails);
        Stage {
            script,
            stack,
            runner,
            link,
            deadline,
            account,
            played: Vec::new(),
            servers: Vec::new(),
            expected: Expected { inode, packs_tails, ..Expected::default() },
            used_empty: space::used_bytes(&stack.subject),
            clocked: None,
            commit_start: Duration::ZERO,
            warm_below: None,
            were_dropped: false,
            stillness: Stillness::watch(stack.subject.devices()),
        }
    }

    /// For our own loops outside of phases.
    pub(crate) fn limits(&self) -> impl Fn() -> Result<()> + Sync + Copy + use<'a> {
        self.deadline.limits()
    }
}

impl Stage<'_, '_> {
    /// The folder of the file system under test that the work owns.
    pub(crate) fn root(&self) -> PathBuf {
        self.stack.root.clone()
    }

    /// Where the file system under test is mounted, with what its mkfs put there.
    pub(crate) fn mount_point(&self) -> PathBuf {
        self.stack.mount_point.clone()
    }

    /// A folder in memory that is the cell's own; removed after the cell.
    pub(crate) fn memory(&self) -> PathBuf {
        self.runner.place.memory.join("cell")
    }

    /// Whether the file system under test keeps permissions; a folder that was there already is
    /// taken to.
    pub(crate) fn keeps_modes(&self) -> bool {
        let above = self.stack.above.iter().map(|above| above.layer.keeps_no);
        let below = self.stack.driver.map(|driver| driver.features.keeps_no);
        !above.chain(below).any(|keeps_no| keeps_no.contains(&MODES))
    }

    /// Programs for `count` snapshots of the file system under test; `None` where it takes none.
    pub(crate) fn snapshots(&self, count: u64) -> Option<SnapshotPrograms> {
        let (programs, spec) = (self.stack.driver?.snapshots?, self.stack.spec());
        let each = |words: &[&str]| (0..count).map(|number| programs.of(words, &spec, number)).collect::<Vec<_>>();
        let freed = programs.freed.map(|freed| (freed.program(&spec), freed.prints));
        let below = self.stack.root.strip_prefix(&self.stack.mount_point).unwrap_or(Path::new(""));
        let driver = self.stack.driver?;
        let mounted = if programs.mounts_to_roll_back {
            vec![driver.mounting.unmount(&spec), driver.mount(&spec)]
        } else {
            Vec::new()
        };
        Some(SnapshotPrograms {
            take: each(programs.take),
            send: programs.of(programs.send, &spec, 0),
            receive: programs.of(programs.receive, &spec, 0),
            received: programs.received(&spec).join(below),
            take_one_more: programs.of(programs.take, &spec, count),
            roll_back: [programs.roll_back(&spec, count), mounted].concat(),
            delete: each(programs.delete),
            freed,
            exclusive: programs.exclusive(&spec),
            mount_point: self.stack.mount_point.clone(),
        })
    }

    /// Programs that pack a folder into the image under test, in the place of what it was, until it
    /// is durable and mounted; none where it is no image.
    pub(crate) fn image(&self, folder: &Path) -> Option<Vec<Argv>> {
        let (driver, spec) = (self.stack.driver?, self.stack.spec());
        let pack = (driver.making.image?)(&spec, &folder.display().to_string());
        Some(vec![driver.mounting.unmount(&spec), pack, argv(["sync", &spec.device()]), driver.mount(&spec)])
    }

    /// What the tools report of a file system that the work itself has made.
    pub(crate) fn show_made(&mut self) -> Result<()> {
        let Some(driver) = self.stack.driver else { return Ok(()) };
        for (name, words) in driver.facts(&self.stack.spec()) {
            let shown = self.runner.listing(&words);
            self.fact(&format!("{name} of what was made"), &shown);
        }
        Ok(())
    }

    /// Programs for an operation on the whole of the file system under test; none where it has no
    /// such operation.
    pub(crate) fn upkeep(&self, operation: &str) -> Option<UpkeepPrograms> {
        let (driver, spec) = (self.stack.driver?, self.spec_with_half());
        let upkeep = driver.upkeep(operation, spec.variant)?;
        let own = upkeep.programs(&spec);
        let run = if upkeep.is_mounted { own } else { self.stack.aside(own, &upkeep.then(&spec)) };
        Some(UpkeepPrograms { is_mounted: upkeep.is_mounted, counts_users: upkeep.counts_users, run })
    }

    /// Bytes of the first device of the file system under test; 0 where it has none.
    pub(crate) fn device_bytes(&self) -> u64 {
        self.stack.device.as_deref().and_then(|device| size_of_device(device).ok()).unwrap_or_default()
    }

    fn spec_with_half(&self) -> FsSpec<'_> {
        FsSpec { half: self.device_bytes() / 2, ..self.stack.spec() }
    }

    /// What root's files take, as quotas of the file system under test count it.
    pub(crate) fn counted_of_root(&self) -> Result<QuotaUsage> {
        let device = self.stack.device.as_deref().context("only a device has quotas")?;
        quota::of_user(device, 0).context("the kernel counts nothing (quotactl)")
    }

    /// The work's folder on the file system itself, which layers above may show elsewhere.
    pub(crate) fn stored(&self) -> PathBuf {
        self.stack.stored()
    }

    /// In how many pieces the files of a folder lie, as [`Found`] has them; what is dirty is in
    /// none.
    pub(crate) fn fragments(&mut self, folder: &Path) -> Result<u64> {
        let found = Found::of(folder).context("the file system does not report where files lie (FIEMAP)")?;
        Ok(found.map_or(0, |found| found.fragments()))
    }

    /// Takes the last of several devices away, untimed, and mounts the others anew; an empty device
    /// is in its place.
    pub(crate) fn degrade(&mut self) -> Result<()> {
        let stack = self.stack;
        let (driver, spec) = (stack.driver.context("a folder has no devices")?, stack.spec());
        let upkeep = driver.upkeep("degraded", spec.variant).with_context(|| format!("{} needs all", driver.name))?;
        let all = stack.aside(upkeep.programs(&spec), &spec.degraded());
        self.lay_out("taking a device away", |stage| {
            all.iter().try_for_each(|words| stage.run(&Program::new(words)).map(drop))
        })
    }

    /// Makes the file system half as large, untimed, so that it can grow.
    pub(crate) fn halve(&mut self) -> Result<()> {
        let stack = self.stack;
        let driver = stack.driver.context("a folder cannot be made smaller")?;
        let spec = self.spec_with_half();
        let upkeep = driver.upkeep("grow", spec.variant).with_context(|| format!("{} cannot grow", driver.name))?;
        let (is_mounted, own) = upkeep.before(&spec);
        let all = if is_mounted { own } else { stack.aside(own, &spec) };
        self.lay_out("making it smaller", |stage| {
            all.iter().try_for_each(|words| stage.run(&Program::new(words)).map(drop))
        })
    }

    /// Once a cell is enough where nothing below the file system has its own cache: dropping the
    /// caches of others again and again would make their programs read them anew, from the disk
    /// under test perhaps.
    pub(super) fn what_to_drop(&mut self) -> Dropped {
        let is_first = !std::mem::replace(&mut self.were_dropped, true);
        if is_first || self.stack.is_cached_below() { Dropped::All } else { Dropped::Devices }
    }

    pub(crate) fn place(&self) -> &Place {
        self.runner.place
    }

    /// To play a phase that only reads as often as the plan asks for: `for _ in stage.repeats() {
    /// stage.phase(...)? }`. Every time starts from the declared cache state; all together are one
    /// observation.
    pub(crate) fn repeats(&self) -> Range<u32> {
        0..self.script.repeats.max(1)
    }

    pub(super) fn declared(&self, name: &str) -> Result<Phase> {
        let found = self.script.phases.iter().find(|phase| phase.name == name).cloned();
        found.with_context(|| format!("{} does not declare a phase `{name}`", self.script.name))
    }

    /// Runs a program outside any timer; what it prints.
    pub(crate) fn run(&mut self, program: &Program) -> Result<String> {
        check_stop()?;
        let marks = self.runner.marks();
        let ran = process::output_of(program.command(&marks)?, &program.argv);
        self.deadline.check()?;
        ran
    }

    /// Starts a program that runs during the next phases, and is stopped by the workload; its
    /// output goes to a file in memory.
    pub(crate) fn start(&mut self, program: &Program) -> Result<Server> {
        check_stop()?;
        let log = self.memory().join(format!("server-{}", self.servers.len()));
        let server = Server::start(program, &log, &self.runner.marks())?;
        self.servers.push(server.process() as i32);
        Ok(server)
    }

    /// Something that was found out about what is in effect.
    pub(crate) fn fact(&mut self, name: &str, value: &str) {
        let facts = BTreeMap::from([(name.to_string(), value.to_string())]);
        self.link.tell(Record::Provenance(Provenance {
            cell: self.account.cell().into(),
            facts,
            ..Provenance::default()
        }));
    }

    /// Untimed work, such as verifying what was written.
    pub(crate) fn check<T>(&mut self, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        check_stop()?;
        let checked = work();
        self.deadline.check()?;
        checked.with_context(|| what.to_string())
    }

    /// Bytes that a durable file of the work takes on the device, compressed. It is asked for where
    /// it lies, as layers above pass no question about it on. Where one of them keeps it under
    /// another name it takes no less than it holds.
    pub(crate) fn stored_bytes(&mut self, path: &Path) -> Result<u64> {
        let below = path.strip_prefix(&self.stack.root).context("no file of the work")?;
        if !self.stack.keeps_names() {
            return Ok(path.symlink_metadata()?.len());
        }
        let lies = self.stack.stored().join(below);
        self.check("looking at what a file takes", || Ok(file::stored_bytes(&lies, &lies.symlink_metadata()?)?))
    }

    /// A phase that writes leaves another file system than it found: a second time would measure
    /// something else.
    pub(super) fn may_be_played(&mut self, phase: &Phase) -> Result<()> {
        let again = self.played.iter().any(|name| *name == phase.name);
        ensure!(!again || phase.only_reads(), "phase {} writes, and so cannot be repeated", phase.name);
        self.played.push(phase.name.to_string());
        Ok(())
    }

    /// How long the phase before took.
    pub(crate) fn clocked(&self) -> Option<PhaseTimer> {
        self.clocked
    }

    /// A quantity of a phase that is over; see [`Timed::say`].
    pub(crate) fn say(&mut self, phase: &str, metric: &str, value: f64) {
        self.tell_samples(phase, vec![(metric.into(), value)]);
    }

    /// Makes the next reading of a tree elsewhere on this machine come from its disk. Whether it
    /// does is for the workload to prove, by [`crate::probe::device::watch_disk_of`].
    pub(crate) fn forget(&mut self, tree: &Path) -> Result<()> {
        caches::make_cold_elsewhere(tree, self.runner, &self.script.programs)
    }

    /// Whether a cold start forgets names and inodes too: without root, on an existing directory,
    /// data alone is dropped.
    pub(crate) fn forgets_names(&self) -> bool {
        self.stack.driver.is_some() || rustix::process::geteuid().is_root()
    }

    /// Whether a tree elsewhere lies on the disk of the file system under test; none where that
    /// cannot be seen.
    pub(crate) fn shares_disk_with(&self, tree: &Path) -> Option<bool> {
        Some(devices::lowest_disk(self.stack.subject.device?)? == devices::lowest_disk(devices::disk_of_file(tree)?)?)
    }

    /// Does work whose time goes to this part.
    pub(super) fn spend<T>(&mut self, part: Spent, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.account.enter(part);
        let done = work(self);
        self.account.enter(before);
        done
    }

    pub(super) fn flag_unsettled(&mut self, phase: &Phase, unsettled: Option<String>, when: &str) {
        if let Some(why) = unsettled {
            self.flag(&phase.name, FlagKind::NotSettled, format!("{when}: {why}"));
        }
    }

    /// A doubt about a phase, reported with its values.
    pub(crate) fn flag(&mut self, phase: &str, flag: FlagKind, why: String) {
        let flag = Flag { cell: self.account.cell().into(), phase: phase.into(), flag: flag.name().into(), why };
        self.link.tell(Record::Flag(flag));
    }

    pub(super) fn tell_samples(&mut self, phase: &str, samples: Samples) {
        for (metric, value) in samples {
            let (cell, phase) = (self.account.cell().into(), phase.to_string());
            self.link.tell(Record::Sample(Sample { cell, phase, metric, value }));
        }
    }
}
