//! Where a workload plays: the stage owns the clock, the caches, the sync and the probes, so that no workload can
//! forget them.

use super::BuiltStack;
use super::caches;
use super::phase::{CacheState, ColdProof, Phase, TimedUntil};
use super::phase_result::{
    after_the_return, by_metric, counts_up, differences, doubted, find, foreign_cpu, foreign_io, of_one_time,
    own_samples, proof_of_reading,
};
use super::program::Program;
use super::sampler::{Sampled, Sampler};
use super::server::{Server, Used};
use super::timed::{Findings, Part, Timed, Told};
use crate::journal::{DeviceCourse, Flag, Histogram, Ledger, Provenance, Record, Sample};
use crate::probe::{self, Probe, Reading};
use crate::process::{self, Deadline, check_stop};
use crate::protocol::Link;
use crate::stack::{Argv, Place};
use crate::steps::StepRunner;
use crate::sys::clock::Clock;
use crate::sys::devices;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes that one inode takes at least on any disk format here (reiserfs stat data) that does not compress them, for
/// proving cold walks.
pub const SMALLEST_INODE: u64 = 44;

pub struct Stage<'a, 'b> {
    pub(crate) cell: &'a str,
    pub(crate) stack: &'a BuiltStack,
    pub(crate) engine: &'a StepRunner<'b>,
    pub(crate) link: &'a mut Link,
    /// The workload's name.
    pub(crate) workload: &'a str,
    /// As the workload declares them.
    pub(crate) phases: Vec<Phase>,
    /// Programs that a cold start brings back into memory, by asking for their version.
    pub(crate) programs: Vec<&'static str>,
    /// What is run besides after caches were dropped.
    pub(crate) warm_up: Vec<Argv>,
    pub(crate) deadline: &'a Deadline,
    pub(crate) trim: bool,
    /// How often the plan wants phases that only read; see [`Stage::repeats`].
    pub(crate) repeats: u32,
    /// Phases that were played, for holding those that write to one time.
    pub(crate) played: Vec<String>,
    pub(crate) ledger: &'a mut Ledger,
    /// Process ids of those that were started; they may have ended since.
    pub(crate) servers: Vec<i32>,
    pub(crate) expected: Expected,
    /// Of the phase before.
    pub(crate) clocked: Option<Clocked>,
    /// Why the last cold start was none for the host below.
    pub(crate) warm_below: Option<String>,
}

/// What a cold phase must read at least, known once something was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    data_bytes: Option<f64>,
    /// Of the same, what files hold.
    apparent_bytes: Option<f64>,
    entries: Option<f64>,
    /// What the file system held when it was empty.
    used_empty: Option<f64>,
}

impl Expected {
    pub(crate) fn of_empty(stack: &BuiltStack) -> Expected {
        let space = probe::ALL.iter().find(|probe| probe.name() == "space");
        let readings = space.map(|probe| probe.read(&stack.subject)).unwrap_or_default();
        let used = readings.iter().find(|reading| reading.metric == "space_used_bytes").map(|reading| reading.value);
        Expected { used_empty: used, ..Expected::default() }
    }

    /// Of content, what compression leaves; at most all.
    pub(crate) fn stored_share(&self) -> f64 {
        let share = self.data_bytes.zip(self.apparent_bytes).map(|(stored, apparent)| stored / apparent);
        share.filter(|share| share.is_finite()).unwrap_or(1.0).min(1.0)
    }
}

/// One phase's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clocked {
    pub returned_ns: u64,
    pub durable_ns: u64,
    /// The device's counters when the work had returned.
    pub(crate) returned: Option<probe::device::Counters>,
}

impl Stage<'_, '_> {
    /// The folder of the file system under test that the work owns.
    pub fn root(&self) -> PathBuf {
        self.stack.root.clone()
    }

    /// Where the file system under test is mounted, with what its mkfs put there.
    pub fn mount_point(&self) -> PathBuf {
        self.stack.mount_point.clone()
    }

    /// A folder in memory that is the cell's own; removed after the cell.
    pub fn memory(&self) -> PathBuf {
        self.engine.place.memory.join("cell")
    }

    pub fn place(&self) -> &Place {
        self.engine.place
    }

    /// To play a phase that only reads as often as the plan asks for: `for _ in stage.repeats() { stage.phase(...)? }`.
    /// Every time starts from the declared cache state; all together are one observation.
    pub fn repeats(&self) -> Range<u32> {
        0..self.repeats.max(1)
    }

    /// Runs one of the workload's declared phases: brings the caches into the declared state, settles, reads the
    /// probes, times the work and then the sync, reads the probes again, and waits out what goes on afterwards.
    pub fn phase<T>(&mut self, name: &str, work: impl FnOnce(&mut Timed) -> Result<T>) -> Result<T> {
        check_stop()?;
        let phase = self.declared(name)?;
        ensure!(phase.timed != TimedUntil::Part, "{name} is a part of a phase");
        self.may_be_played(&phase)?;
        self.get_ready(&phase)?;
        let before = self.accounted(|stage| Ok(stage.read_probes_before()))?;
        let marks = self.engine.marks();
        Clock::of_machine(); // finding how fast it ticks takes a while, and must not be timed
        let mut timed = Timed::new(&marks, self.deadline, self.stack.subject.devices())?;
        let sampler = Sampler::start(self.stack.subject.devices());
        let used = Used::by(&self.servers);
        let clocked = self.clock(&phase, work, &mut timed);
        let sampled = sampler.stop();
        timed.also_used(Used::by(&self.servers).since(used));
        let (counts, told) = timed.end();
        let (clocked, done) = clocked?;
        self.clocked = Some(clocked);
        self.deadline.check()?;
        let counters = self.accounted(|stage| Ok(stage.read_probes(&phase, false)))?;
        let mut samples = own_samples(&phase, &clocked, sampled.as_ref().map(|sampled| sampled.peaks));
        samples.extend(counts.map(|(metric, value)| (metric.to_string(), value as f64)));
        samples.extend(differences(&before, &counters));
        samples.extend(after_the_return(&clocked, &counters));
        self.drain(&phase, &clocked, &counters, &mut samples)?;
        if !phase.only_reads() {
            let states = self.accounted(|stage| Ok(stage.read_probes(&phase, true)))?;
            samples.extend(differences(&BTreeMap::new(), &states));
            let grown = find(&samples, "space_used_bytes").zip(self.expected.used_empty);
            samples.extend(grown.map(|(used, empty)| ("space_grown_bytes".to_string(), used - empty)));
        }
        // In this order: what a removal leaves is no measure of what it had to read.
        self.doubt(&phase, &clocked, &samples, &told);
        self.remember_expected(&samples);
        if let Some(judged) = told.judged_ns {
            samples.iter_mut().filter(|(metric, _)| metric == "time_ns").for_each(|sample| sample.1 = judged);
        }
        if let Some(pace) = &told.pace {
            samples = pace.of_one_gib(samples, |metric| counts_up(metric, &counters));
            pace.doubt().into_iter().for_each(|(flag, why)| self.flag(&phase.name, flag, why));
        }
        told.doubts.into_iter().for_each(|(flag, why)| self.flag(&phase.name, flag, why));
        samples = of_one_time(samples, told.times, |metric| metric == "time_ns" || counts_up(metric, &counters));
        self.tell_samples(&phase.name, samples);
        self.tell_course(&phase.name, sampled);
        self.tell_findings(&phase.name, told.found)?;
        self.tell_parts(&phase, told.parts)?;
        Ok(done)
    }

    pub(crate) fn declared(&self, name: &str) -> Result<Phase> {
        let found = self.phases.iter().find(|phase| phase.name == name).cloned();
        found.with_context(|| format!("{} does not declare a phase `{name}`", self.workload))
    }

    /// Runs a program outside any timer; what it prints. Accounted as a check.
    pub fn run(&mut self, program: &Program) -> Result<String> {
        check_stop()?;
        let marks = self.engine.marks();
        let ran = self.accounted(|_| process::output_of(program.command(&marks)?, &program.argv));
        self.deadline.check()?;
        ran
    }

    /// Starts a program that runs beside the phases to come, and is stopped by the workload; what it says goes to a
    /// file in memory.
    pub fn start(&mut self, program: &Program) -> Result<Server> {
        check_stop()?;
        let log = self.memory().join(format!("server-{}", self.servers.len()));
        let server = Server::start(program, &log, &self.engine.marks())?;
        self.servers.push(server.process() as i32);
        Ok(server)
    }

    /// Something that was found out about what is in effect.
    pub fn fact(&mut self, name: &str, value: &str) {
        let facts = BTreeMap::from([(name.to_string(), value.to_string())]);
        self.link.tell(Record::Provenance(Provenance { cell: self.cell.into(), facts, ..Provenance::default() }));
    }

    /// Untimed work, such as verifying what was written; accounted as a check.
    pub fn check<T>(&mut self, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        check_stop()?;
        let checked = self.accounted(|_| work());
        self.deadline.check()?;
        checked.with_context(|| what.to_string())
    }

    /// Untimed work that puts on the file system what the phases read: it is durable then, and from now on it is what a
    /// cold start must make the device read.
    pub fn lay_out(&mut self, what: &str, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        work(self).with_context(|| what.to_string())?;
        let there = self.accounted(|stage| {
            stage.stack.make_durable(stage.engine)?;
            let walking = probe::ALL.iter().filter(|probe| probe.only_after_writing());
            Ok(by_metric(walking.flat_map(|probe: &&dyn Probe| probe.read(&stage.stack.subject))))
        })?;
        self.remember_expected(&differences(&BTreeMap::new(), &there));
        self.deadline.check()
    }

    /// A phase that writes leaves another file system than it found: a second time would measure something else.
    fn may_be_played(&mut self, phase: &Phase) -> Result<()> {
        let again = self.played.iter().any(|name| *name == phase.name);
        ensure!(!again || phase.only_reads(), "phase {} writes, and so cannot be repeated", phase.name);
        self.played.push(phase.name.to_string());
        Ok(())
    }

    /// How long the phase before took.
    pub fn clocked(&self) -> Option<Clocked> {
        self.clocked
    }

    /// A quantity of a phase that is over; see [`Timed::say`].
    pub fn say(&mut self, phase: &str, metric: &str, value: f64) {
        self.tell_samples(phase, vec![(metric.into(), value)]);
    }

    /// Times what is no part of the job and explains it. It starts settled, with the caches as they are, and nothing
    /// is told of it but what the workload makes of these times.
    pub fn aside(&mut self, what: &'static str, work: impl FnOnce(&mut Timed) -> Result<()>) -> Result<Clocked> {
        check_stop()?;
        let phase = Phase { name: what.into(), starts: CacheState::Warm, ..Phase::part("".into(), "") };
        self.get_ready(&phase)?;
        let marks = self.engine.marks();
        let mut timed = Timed::new(&marks, self.deadline, self.stack.subject.devices())?;
        self.clock(&phase, work, &mut timed).map(|(clocked, ())| clocked)
    }

    /// Makes the next reading of a tree elsewhere on this machine come from its disk. Whether it does is for the
    /// workload to prove, by [`crate::probe::device::bytes_read_by_disk_of`].
    pub fn forget(&mut self, tree: &Path) -> Result<()> {
        self.accounted(|stage| caches::make_cold_elsewhere(tree, stage.engine, &stage.programs))
    }

    /// Whether a cold start forgets names and inodes too: without root, on a directory as it is, data alone is dropped.
    pub fn forgets_names(&self) -> bool {
        self.stack.driver.is_some() || rustix::process::geteuid().is_root()
    }

    /// Whether a tree elsewhere lies on the disk of the file system under test; none where that cannot be seen.
    pub fn shares_disk_with(&self, tree: &Path) -> Option<bool> {
        let own = self.stack.subject.below.or(self.stack.subject.device)?;
        Some(devices::whole_disk(own)? == devices::whole_disk(devices::disk_of_file(tree)?)?)
    }

    fn get_ready(&mut self, phase: &Phase) -> Result<()> {
        let begun = Instant::now();
        if phase.starts == CacheState::Cold {
            self.warm_below = caches::make_cold(self.stack, self.engine, self.link, &self.programs)?;
            for words in &self.warm_up {
                self.engine.output(words).context("cannot bring programs back into memory")?;
            }
            if phase.proof == ColdProof::AnyRead {
                // Going there makes the device read; what is read then would prove nothing of the command.
                self.stack.root.metadata().context("cannot look at the target's folder")?;
            }
        }
        if phase.starts == CacheState::Fresh && self.trim {
            self.engine.output(&crate::stack::argv(["fstrim", &self.stack.mount_point.display().to_string()]))?;
        }
        let settled = caches::settle(&self.stack.subject.devices(), Duration::ZERO)?;
        self.flag_unsettled(phase, settled.unsettled, "before the phase");
        self.ledger.settle_ns += begun.elapsed().as_nanos() as u64;
        self.deadline.check()
    }

    fn clock<T>(
        &mut self,
        phase: &Phase,
        work: impl FnOnce(&mut Timed) -> Result<T>,
        timed: &mut Timed,
    ) -> Result<(Clocked, T)> {
        let begun = Instant::now();
        let worked = work(timed);
        let returned_ns = begun.elapsed().as_nanos() as u64;
        // Outside of both times: reading it is no part of the work.
        let returned = probe::device::counters_of(&self.stack.subject.devices());
        // Synced even after a failure: what the kernel says of lost writes is the better cause.
        let syncing = Instant::now();
        let synced = self.stack.make_durable(self.engine);
        let durable_ns = returned_ns + syncing.elapsed().as_nanos() as u64;
        self.ledger.phases_ns += durable_ns;
        self.deadline.check().with_context(|| format!("in phase {}", phase.name))?;
        match (worked, synced) {
            (Ok(done), Ok(())) => Ok((Clocked { returned_ns, durable_ns, returned }, done)),
            (Err(error), Ok(())) => Err(error.context(format!("in phase {}", phase.name))),
            (Ok(_), Err(error)) => Err(error.context(format!("syncing phase {}", phase.name))),
            (Err(error), Err(sync)) => bail!("in phase {}: {error:#}; and its sync: {sync:#}", phase.name),
        }
    }

    /// What the file system still does afterwards belongs to this phase, and is kept out of the next.
    /// Counted from where the phase's own counters end: what is written while the probes are read is not lost.
    fn drain(
        &mut self,
        phase: &Phase,
        clocked: &Clocked,
        counters: &BTreeMap<String, Reading>,
        samples: &mut Vec<(String, f64)>,
    ) -> Result<()> {
        let begun = Instant::now();
        let devices = self.stack.subject.devices();
        let before = counters.get("device_write_bytes").map(|reading| reading.value);
        let settled = caches::settle(&devices, Duration::from_nanos(clocked.durable_ns))?;
        samples.push(("after_ns".into(), settled.busy_ns as f64));
        if let (Some(before), Some(after)) = (before, probe::device::counters_of(&devices)) {
            samples.push(("after_write_bytes".into(), after.write_bytes as f64 - before));
        }
        self.flag_unsettled(phase, settled.unsettled, "after the phase");
        self.ledger.settle_ns += begun.elapsed().as_nanos() as u64;
        Ok(())
    }

    /// In reverse, so that the readings before and after nest: what a probe itself costs, such as looking at every
    /// process, falls outside of what those listed before it see.
    fn read_probes_before(&self) -> BTreeMap<String, Reading> {
        let wanted = probe::ALL.iter().rev().filter(|probe| !probe.only_after_writing());
        by_metric(wanted.flat_map(|probe: &&dyn Probe| probe.read(&self.stack.subject)))
    }

    fn read_probes(&self, phase: &Phase, walking: bool) -> BTreeMap<String, Reading> {
        debug_assert!(!walking || !phase.only_reads());
        let wanted = probe::ALL.iter().filter(|probe| probe.only_after_writing() == walking);
        by_metric(wanted.flat_map(|probe: &&dyn Probe| probe.read(&self.stack.subject)))
    }

    fn accounted<T>(&mut self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let result = work(self);
        self.ledger.checks_ns += begun.elapsed().as_nanos() as u64;
        result
    }

    fn remember_expected(&mut self, samples: &[(String, f64)]) {
        let value = |name: &str| find(samples, name);
        let data = value("compression_total_disk_bytes").or_else(|| value("space_allocated_bytes"));
        self.expected.data_bytes = data.or(self.expected.data_bytes);
        self.expected.apparent_bytes = value("space_apparent_bytes").or(self.expected.apparent_bytes);
        self.expected.entries = value("space_entries").or(self.expected.entries);
    }

    /// Flags: the value stays, the doubt is told beside it.
    fn doubt(&mut self, phase: &Phase, clocked: &Clocked, samples: &[(String, f64)], told: &Told) {
        if let Some((flag, why)) = self.not_cold(phase, samples, told) {
            doubted(&phase.name, &told.parts).iter().for_each(|name| self.flag(name, flag, why.clone()));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let doubts = [foreign_io(samples), foreign_cpu(samples, clocked.durable_ns as f64 * processors)];
        for (flag, why) in doubts.into_iter().flatten() {
            self.flag(&phase.name, flag, why);
        }
    }

    fn not_cold(&self, phase: &Phase, samples: &[(String, f64)], told: &Told) -> Option<(&'static str, String)> {
        if phase.starts != CacheState::Cold {
            return None;
        }
        if let Some(why) = &self.warm_below {
            return Some(("not-cold", why.clone()));
        }
        let expected = match phase.proof {
            ColdProof::AllData => self.expected.data_bytes,
            ColdProof::Metadata => {
                let inode = self.stack.driver.and_then(|driver| driver.least_inode).unwrap_or(SMALLEST_INODE);
                self.expected.entries.map(|entries| entries * inode as f64)
            }
            ColdProof::Declared => {
                let share = if told.least_is_stored { 1.0 } else { self.expected.stored_share() };
                told.least_read.map(|bytes| bytes as f64 * share)
            }
            ColdProof::AnyRead => Some(0.0),
        };
        match (proof_of_reading(samples, self.witness()), expected) {
            (Some(0.0), _) if phase.proof == ColdProof::AnyRead => {
                let why = "the drive gave no byte: it was not cold, or there was nothing to read";
                Some(("not-proved-cold", why.into()))
            }
            (Some(read), Some(expected)) if read >= 0.9 * expected => None,
            (Some(read), Some(expected)) => {
                Some(("not-cold", format!("the drive gave {read:.0} bytes, at least {expected:.0} were to be read")))
            }
            _ => Some(("not-cold", "there is no device whose reads could prove it".into())),
        }
    }

    /// What must have seen the device's reads too. A loop device that does not pass by the page cache of its file can
    /// be read without any disk; the disk under a directory that is there already is read by others as well.
    fn witness(&self) -> Option<&'static str> {
        let direct = self.stack.subject.device.and_then(|n| devices::content(devices::sys_path(n).join("loop/dio")));
        match (self.stack.driver, direct.as_deref()) {
            (None, _) => Some("workload_read_bytes"),
            (_, Some("0")) => Some("below_read_bytes"),
            _ => None,
        }
    }

    pub(crate) fn flag_unsettled(&mut self, phase: &Phase, unsettled: Option<String>, when: &str) {
        if let Some(why) = unsettled {
            self.flag(&phase.name, "not-settled", format!("{when}: {why}"));
        }
    }

    /// A doubt about a phase, told beside its values.
    pub fn flag(&mut self, phase: &str, flag: &str, why: String) {
        let flag = Flag { cell: self.cell.into(), phase: phase.into(), flag: flag.into(), why };
        self.link.tell(Record::Flag(flag));
    }

    pub(crate) fn tell_samples(&mut self, phase: &str, samples: Vec<(String, f64)>) {
        for (metric, value) in samples {
            let (cell, phase) = (self.cell.to_string(), phase.to_string());
            self.link.tell(Record::Sample(Sample { cell, phase, metric, value }));
        }
    }

    fn tell_course(&mut self, phase: &str, sampled: Option<Sampled>) {
        let Some(Sampled { course, .. }) = sampled else { return };
        let (cell, phase) = (self.cell.to_string(), phase.to_string());
        let (until_ns, read_bytes, write_bytes) = (course.until_ns, course.read_bytes, course.write_bytes);
        self.link.tell(Record::DeviceCourse(DeviceCourse { cell, phase, until_ns, read_bytes, write_bytes }));
    }

    fn tell_findings(&mut self, phase: &str, found: Findings) -> Result<()> {
        self.tell_samples(phase, found.values);
        for (operation, latencies) in found.latencies {
            self.tell_samples(phase, latencies.samples(&operation));
            let (cell, phase, encoded) = (self.cell.to_string(), phase.to_string(), latencies.encoded()?);
            self.link.tell(Record::Histogram(Histogram { cell, phase, operation, encoded }));
        }
        Ok(())
    }

    fn tell_parts(&mut self, phase: &Phase, parts: Vec<Part>) -> Result<()> {
        let by_parts = phase.timed == TimedUntil::Parts;
        ensure!(parts.is_empty() != by_parts, "phase {} gave {} parts", phase.name, parts.len());
        for part in parts {
            let declared = self.declared(&part.name)?;
            ensure!(declared.timed == TimedUntil::Part, "{} is no part of a phase", part.name);
            self.tell_samples(&part.name, vec![("time_ns".into(), part.time_ns.round())]);
            part.doubts.into_iter().for_each(|(flag, why)| self.flag(&part.name, flag, why));
            self.tell_findings(&part.name, part.found)?;
        }
        Ok(())
    }
}
