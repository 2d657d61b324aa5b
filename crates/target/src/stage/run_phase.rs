//! One phase, from its cache state to its samples.

use super::account::Spent;
use super::built_stack::is_buffered;
use super::cell_stage::Stage;
use super::phase::{CacheState, ColdProof, Phase, TimedUntil};
use super::phase_result::{
    OwnCounts, PhaseResult, PhaseTimer, Readings, Samples, Unit, WORKLOAD_READ_BYTES, by_metric,
};
use super::sampler::{Peaks, Sampled, Sampler};
use super::server::Used;
use super::settle::quiet_after;
use super::timed::{AfterPhase, Findings, Part, PhaseReport, Timed};
use super::{caches, cold_proof};
use crate::probe;
use crate::probe::device::{READ_BYTES_BELOW, WRITE_BYTES};
use crate::probe::space::{Occupied, USED_BYTES};
use crate::stack::argv;
use crate::stack::fs::TRIM;
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::{DeviceCourse, FlagKind, Histogram, Record};
use pickfs_core::protocol::PhaseClock;
use pickfs_system::process::check_stop;
use pickfs_system::sys::clock::{Clock, monotonic};
use pickfs_system::sys::mark::{Mark, mark};
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// What the timed part of a phase came to.
struct Played {
    clocked: PhaseTimer,
    sampled: Option<Sampled>,
    own: OwnCounts,
    report: PhaseReport,
}

impl Played {
    fn peaks(&self) -> Option<Peaks> {
        self.sampled.as_ref().map(|sampled| sampled.peaks)
    }
}

impl Stage<'_, '_> {
    /// Runs one of the workload's declared phases: brings the caches into the declared state,
    /// settles, reads the probes, times the work and then the sync, reads the probes again, and
    /// waits out what goes on afterwards.
    pub(crate) fn phase<T>(&mut self, name: &str, work: impl FnOnce(&mut Timed) -> Result<T>) -> Result<T> {
        self.phase_then(name, work, |_, done| Ok(done))
    }

    /// The same for work that leaves something to be read and counted, which is done when the phase
    /// is over: neither its time nor its CPU is the phase's.
    pub(crate) fn phase_then<T, U>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Timed) -> Result<T>,
        then: impl FnOnce(&mut AfterPhase, T) -> Result<U>,
    ) -> Result<U> {
        self.phase_once(name, |_| Ok(()), work, then)
    }

    /// The same once something is ready, untimed, which the caches' state must not find running,
    /// such as a server.
    pub(crate) fn phase_once<T, U>(
        &mut self,
        name: &str,
        ready: impl FnOnce(&mut Self) -> Result<()>,
        work: impl FnOnce(&mut Timed) -> Result<T>,
        then: impl FnOnce(&mut AfterPhase, T) -> Result<U>,
    ) -> Result<U> {
        check_stop()?;
        let phase = self.declared(name)?;
        ensure!(phase.timed != TimedUntil::Part, "{name} is a part of a phase");
        self.may_be_played(&phase)?;
        self.link.begin_phase(name);
        self.spend(Spent::Settling, |stage| stage.get_ready(&phase, ready))?;
        let before = self.read_probes_before();
        let marks = self.runner.marks();
        let mut timed = Timed::new(&marks, self.deadline, self.stack.subject.devices())?;
        let (clocked, sampled, done) = self.play(&phase, work, &mut timed)?;
        // Counters first: what is written while others are read is not lost, as draining counts
        // from them.
        let after = self.read_probes();
        let drained = self.spend(Spent::Settling, |stage| stage.drain(&phase, &clocked, &after))?;
        let done = then(&mut AfterPhase(&mut timed), done).with_context(|| format!("in phase {name}"))?;
        self.deadline.check()?;
        let (own, report) = timed.end();
        let played = Played { clocked, sampled, own, report };
        let mut result = PhaseResult::of(&phase, &played.clocked, &played.own, played.peaks(), &before, &after);
        result.others.extend(drained);
        self.look_at_tree(&phase, &played, &mut result)?;
        self.report(&phase, played, result)?;
        Ok(done)
    }

    /// The timed part.
    fn play<T>(
        &mut self,
        phase: &Phase,
        work: impl FnOnce(&mut Timed) -> Result<T>,
        timed: &mut Timed,
    ) -> Result<(PhaseTimer, Option<Sampled>, T)> {
        Clock::of_machine(); // finding how fast it ticks takes a while, and must not be timed
        let sampler = Sampler::start(self.stack.subject.devices());
        let used = Used::by(&self.servers);
        let clocked = self.clock(phase, work, timed);
        let sampled = sampler.stop();
        timed.also_used(Used::by(&self.servers).since(used));
        let (clocked, done) = clocked?;
        self.clocked = Some(clocked);
        Ok((clocked, sampled, done))
    }

    /// Walks over the tree come when it is quiet; with what is found, whether the phase was cold.
    fn look_at_tree(&mut self, phase: &Phase, played: &Played, result: &mut PhaseResult) -> Result<()> {
        let occupied = if phase.only_reads() { Occupied::default() } else { self.walk(result) };
        // In this order: what a removal leaves is no measure of what it had to read.
        self.doubt(phase, played, result);
        self.expected.update(occupied);
        if let (Some(_), Some(judged)) = (result.time_ns, played.report.judged_ns) {
            result.time_ns = Some(judged);
        }
        Ok(())
    }

    /// What the file system holds after a phase that wrote.
    fn walk(&self, result: &mut PhaseResult) -> Occupied {
        let states = self.read_walking_probes();
        result.add_readings(&Readings::new(), &states);
        let used = states.get(USED_BYTES).map(|reading| reading.value);
        if let (Some(used), Some(empty)) = (used, self.used_empty) {
            result.state("space_grown_bytes", used - empty);
        }
        Occupied::of(&self.stack.subject, &states)
    }

    fn report(&mut self, phase: &Phase, played: Played, result: PhaseResult) -> Result<()> {
        let report = played.report;
        let unsteady = if let Unit::Gib(run) = &report.unit { run.doubt() } else { None };
        for (flag, why) in unsteady.into_iter().chain(report.doubts) {
            self.flag(&phase.name, flag, why);
        }
        self.tell_samples(&phase.name, result.samples(&report.unit));
        self.tell_course(&phase.name, played.sampled);
        self.tell_findings(&phase.name, report.found)?;
        self.tell_parts(phase, report.parts)
    }

    /// Untimed work that puts on the file system what the phases read: it is durable then, and from
    /// now on it is what a cold start must make the device read.
    pub(crate) fn lay_out(&mut self, what: &str, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        work(self).with_context(|| what.to_string())?;
        self.make_durable()?;
        self.expected.update(Occupied::of(&self.stack.subject, &self.read_walking_probes()));
        self.deadline.check()
    }

    /// In the midst of what is laid out.
    pub(crate) fn make_durable(&self) -> Result<()> {
        self.stack.make_durable(self.runner)
    }

    /// Times what is no part of the job and explains it. It starts settled, with unchanged caches,
    /// and only what the workload makes of these times is reported.
    pub(crate) fn aside(
        &mut self,
        what: &'static str,
        work: impl FnOnce(&mut Timed) -> Result<()>,
    ) -> Result<PhaseTimer> {
        check_stop()?;
        let phase = Phase { name: what.into(), starts: CacheState::Warm, ..Phase::part("".into(), "") };
        self.spend(Spent::Settling, |stage| stage.get_ready(&phase, |_| Ok(())))?;
        let marks = self.runner.marks();
        let mut timed = Timed::new(&marks, self.deadline, self.stack.subject.devices())?;
        self.clock(&phase, work, &mut timed).map(|(clocked, ())| clocked)
    }

    fn get_ready(&mut self, phase: &Phase, ready: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if phase.starts == CacheState::Cold {
            let dropped = self.what_to_drop();
            self.warm_below = caches::make_cold(self.stack, self.runner, self.link, dropped)?;
            // What comes now reads from other disks, and its time is one with the quiet of this
            // one.
            self.stillness.look();
            caches::warm_programs(self.runner, &self.script.programs);
            for words in &self.script.warm_up {
                self.runner.output(words).context("cannot bring programs back into memory")?;
            }
            if phase.proof == ColdProof::AnyRead {
                // Going there makes the device read; what is read then would prove nothing of the
                // command.
                self.stack.root.metadata().context("cannot look at the target's folder")?;
            }
        }
        if phase.starts == CacheState::Fresh && self.script.trim {
            // Of a directory it is not known what else discards its free space.
            let of_directory = || vec![argv(["fstrim", &self.stack.mount_point.display().to_string()])];
            let programs = self.upkeep(TRIM.operation).map_or_else(of_directory, |upkeep| upkeep.run);
            programs.iter().try_for_each(|words| self.runner.output(words).map(drop))?;
        }
        if phase.starts == CacheState::Unmounted {
            self.stack.make_durable(self.runner)?;
            // Once it is unmounted, some of these programs find nothing to ask.
            self.commit_start = self.stack.commit_start(self.runner)?;
            let dropped = self.what_to_drop();
            self.warm_below = caches::unmount_cold(self.stack, self.runner, self.link, dropped)?;
            self.stillness.look();
            self.warm_programs_of_device();
        } else {
            if phase.starts != CacheState::Cold {
                self.stack.make_durable(self.runner)?;
            }
            self.commit_start = self.stack.commit_start(self.runner)?;
        }
        ready(self)?;
        caches::sync_below(self.stack)?;
        let settled = self.stillness.settle(quiet_after(Duration::ZERO))?;
        self.flag_unsettled(phase, settled.unsettled, "before the phase");
        self.deadline.check()
    }

    fn clock<T>(
        &mut self,
        phase: &Phase,
        work: impl FnOnce(&mut Timed) -> Result<T>,
        timed: &mut Timed,
    ) -> Result<(PhaseTimer, T)> {
        let before = self.waits();
        let around = self.account.enter(Spent::Phases);
        // Each mark comes before the clock is read, so what is executed between two marks is what
        // the clock shows.
        mark(Mark::WorkBegins);
        let begun = Instant::now();
        let worked = work(timed);
        mark(Mark::WorkEnds);
        let returned_ns = begun.elapsed().as_nanos() as u64;
        self.account.enter(around);
        // Outside of both times: reading it is no part of the work.
        let between = self.waits();
        let returned = probe::device::counters_of(&self.stack.subject.devices());
        let mounted = self.be_mounted(phase);
        // Synced even after a failure: what the kernel says of lost writes is the better cause.
        let around = self.account.enter(Spent::Phases);
        mark(Mark::SyncBegins);
        let syncing = Instant::now();
        let synced = mounted.and_then(|()| self.stack.make_durable(self.runner));
        mark(Mark::SyncEnds);
        let synced_ns = syncing.elapsed().as_nanos() as u64;
        let uncounted_ns = synced_ns.min(self.commit_start.as_nanos() as u64);
        self.account.enter(around);
        let waits = [before, between, self.waits()];
        self.stillness.anew();
        let (sync_ns, until_durable) = (synced_ns - uncounted_ns, !phase.only_reads());
        let durable_ns = returned_ns + sync_ns;
        let begun_at_ns = (!self.link.is_simulated()).then(|| [begun, syncing].map(monotonic_at));
        let name = phase.name.to_string();
        self.link.tell_clock(PhaseClock {
            phase: name,
            until_durable,
            returned_ns,
            sync_ns,
            uncounted_ns,
            waits,
            begun_at_ns,
        });
        self.deadline.check().with_context(|| format!("in phase {}", phase.name))?;
        match (worked, synced) {
            (Ok(done), Ok(())) => Ok((PhaseTimer { returned_ns, durable_ns, returned }, done)),
            (Err(error), Ok(())) => Err(error.context(format!("in phase {}", phase.name))),
            (Ok(_), Err(error)) => Err(error.context(format!("syncing phase {}", phase.name))),
            (Err(error), Err(sync)) => bail!("in phase {}: {error:#}; and its sync: {sync:#}", phase.name),
        }
    }

    /// What the processor of a simulation has waited for so far. Reading it waits for nothing.
    fn waits(&self) -> String {
        let shown = || std::fs::read_to_string("/proc/simdisk_waits").unwrap_or_default();
        if self.link.is_simulated() { shown() } else { String::new() }
    }

    /// What the file system still does afterwards belongs to this phase, and is kept out of the
    /// next.
    fn drain(&mut self, phase: &Phase, clocked: &PhaseTimer, after: &Readings) -> Result<Samples> {
        let devices = self.stack.subject.devices();
        let settled = self.stillness.settle(quiet_after(Duration::from_nanos(clocked.durable_ns)))?;
        let mut found = vec![("after_ns".to_string(), settled.busy_ns as f64)];
        if let (Some(before), Some(now)) = (after.get(WRITE_BYTES), probe::device::counters_of(&devices)) {
            found.push(("after_write_bytes".into(), now.write_bytes as f64 - before.value));
        }
        self.flag_unsettled(phase, settled.unsettled, "after the phase");
        Ok(found)
    }

    /// In reverse, so that the readings before and after nest: what a probe itself costs, such as
    /// looking at every process, falls outside of what those listed before it see.
    fn read_probes_before(&self) -> Readings {
        let wanted = probe::ALL.iter().rev().filter(|probe| !probe.only_after_writing);
        by_metric(wanted.flat_map(|probe| (probe.read)(&self.stack.subject)))
    }

    fn read_probes(&self) -> Readings {
        let wanted = probe::ALL.iter().filter(|probe| !probe.only_after_writing);
        by_metric(wanted.flat_map(|probe| (probe.read)(&self.stack.subject)))
    }

    /// Of probes that walk over the tree, each in a thread: nothing is timed meanwhile.
    fn read_walking_probes(&self) -> Readings {
        let (subject, walking) = (&self.stack.subject, probe::ALL.iter().filter(|probe| probe.only_after_writing));
        std::thread::scope(|scope| {
            let walks: Vec<_> = walking.map(|probe| scope.spawn(|| (probe.read)(subject))).collect();
            let found = walks.into_iter().map(|walk| walk.join().unwrap_or_else(|panic| resume_unwind(panic)));
            by_metric(found.flatten())
        })
    }

    /// Flags a phase: the value stays, the doubt is reported with it.
    fn doubt(&mut self, phase: &Phase, played: &Played, result: &mut PhaseResult) {
        if let Some((flag, why)) = self.not_cold(phase, result, &played.report) {
            let names = doubted(&phase.name, &played.report.parts);
            names.iter().for_each(|name| self.flag(name, flag, why.clone()));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let capacity_ns = played.clocked.durable_ns as f64 * processors;
        let doubts = [result.foreign_io(), result.foreign_cpu(capacity_ns), result.without_false_cpu()];
        for (flag, why) in doubts.into_iter().flatten() {
            self.flag(&phase.name, flag, why);
        }
    }

    fn not_cold(&self, phase: &Phase, result: &PhaseResult, report: &PhaseReport) -> Option<(FlagKind, String)> {
        match (&self.warm_below, phase.starts) {
            (_, CacheState::Fresh | CacheState::Warm) => None,
            (Some(why), CacheState::Cold | CacheState::Unmounted) => Some((FlagKind::NotCold, why.clone())),
            (None, CacheState::Cold | CacheState::Unmounted) => {
                cold_proof::doubt(phase, &self.expected, report.least_read, result, self.witness())
            }
        }
    }

    /// What must have seen the device's reads too. A loop device that does not pass by the page
    /// cache of its file can be read without any disk; the disk under a directory that is there
    /// already is read by others as well. What layers read of the disks below has no counter: each
    /// reads more or less than is read of it.
    fn witness(&self) -> Option<&'static str> {
        match self.stack.driver {
            None => Some(WORKLOAD_READ_BYTES),
            Some(_) => self.stack.device.as_deref().is_some_and(is_buffered).then_some(READ_BYTES_BELOW),
        }
    }

    fn tell_course(&mut self, phase: &str, sampled: Option<Sampled>) {
        let Some(Sampled { course, .. }) = sampled else { return };
        let (cell, phase) = (self.account.cell().into(), phase.to_string());
        let (until_ns, read_bytes, write_bytes) = (course.until_ns, course.read_bytes, course.write_bytes);
        self.link.tell(Record::DeviceCourse(DeviceCourse { cell, phase, until_ns, read_bytes, write_bytes }));
    }

    pub(super) fn tell_findings(&mut self, phase: &str, found: Findings) -> Result<()> {
        self.tell_samples(phase, found.values);
        for (operation, latencies) in found.latencies {
            self.tell_samples(phase, latencies.samples(&operation));
            let (cell, phase, encoded) = (self.account.cell().into(), phase.to_string(), latencies.encoded()?);
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

/// Of a moment that has passed. `Instant` does not show what it counts from.
fn monotonic_at(moment: Instant) -> u64 {
    monotonic().saturating_sub(moment.elapsed().as_nanos() as u64)
}

/// Names for which a doubt that a phase was cold is reported: the phase, and its parts, which
/// reports show then.
fn doubted(phase: &str, parts: &[Part]) -> Vec<String> {
    std::iter::once(phase).chain(parts.iter().map(|part| part.name.as_str())).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Place;
    use crate::stack::fs::{self, Commit, Filesystem};
    use crate::stage::caches::Dropped;
    use crate::stage::{Account, BuiltStack, Script};
    use crate::steps::StepRunner;
    use pickfs_core::plan::{Chosen, Target};
    use pickfs_core::protocol::Link;
    use pickfs_system::process::Deadline;
    use std::sync::LazyLock;

    const START: Duration = Duration::from_millis(500);
    /// Its program needs all of its time to start.
    static SLOW_TO_START: LazyLock<Filesystem> = LazyLock::new(|| {
        let mut filesystem = *fs::find("udf").expect("a driver");
        filesystem.commit = Some(Commit::of(&["sleep", "0.5"]));
        filesystem
    });

    /// Plays on a stage with this stack.
    fn on_stage<T>(stack: &BuiltStack, play: impl FnOnce(&mut Stage) -> T) -> T {
        let place = Place::of_run("none");
        let (runner, deadline) =
            (StepRunner::new(&place, pickfs_core::journal::Scope::Run), Deadline::start("none", 0));
        let (mut link, mut account) = (Link::to_nobody(), Account::open("none"));
        let script = Script {
            name: "none",
            phases: Vec::new(),
            programs: Vec::new(),
            warm_up: Vec::new(),
            repeats: 1,
            trim: false,
        };
        play(&mut Stage::new(script, stack, &runner, &mut link, &deadline, &mut account))
    }

    #[test]
    fn starting_the_program_that_makes_data_durable_is_no_time_of_the_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let (driver, root) = (Some(&*SLOW_TO_START), folder.path().into());
        let stack = BuiltStack { driver, root, ..BuiltStack::default() };
        let clocked = on_stage(&stack, |stage| stage.aside("nothing", |_| Ok(()))).unwrap();
        assert!(clocked.durable_ns < START.as_nanos() as u64, "{clocked:?}");
    }

    #[test]
    fn caches_of_the_machine_are_dropped_once_a_cell_unless_layers_may_have_some() {
        let layered = Target { layers: vec![Chosen::default()], ..Target::default() };
        for (target, second) in [(Target::default(), Dropped::Devices), (layered, Dropped::All)] {
            let stack = BuiltStack { target, device: Some("/dev/null".into()), ..BuiltStack::default() };
            let dropped = on_stage(&stack, |stage| [stage.what_to_drop(), stage.what_to_drop(), stage.what_to_drop()]);
            assert_eq!(dropped, [Dropped::All, second, second]);
        }
    }

    #[test]
    fn a_phase_that_was_not_cold_had_no_cold_parts() {
        let parts = ["read-during-write", "read-during-drain"].map(|name| Part::new(name, 1.0));
        assert_eq!(doubted("write", &parts), ["write", "read-during-write", "read-during-drain"]);
        assert_eq!(doubted("tar-read", &[]), ["tar-read"]);
    }
}
