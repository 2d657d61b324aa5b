//! What a workload does inside the timer: programs of the trade, and our own loops.

use super::cold_proof::LeastRead;
use super::latencies::Latencies;
use super::open_loop::{self, Periodic, PeriodicLog};
use super::phase_result::{OwnCounts, Unit};
use super::program::Program;
use super::server::Used;
use super::settle::{self, WritebackWatch};
use super::steady_state;
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::FlagKind;
use pickfs_system::process::{Deadline, check_stop};
use pickfs_system::process::{Mark, last_words, output_of};
use pickfs_system::sys::{file, process};
use std::fs::File;
use std::io::{Read, Seek};
use std::ops::{Deref, DerefMut, Range};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Lent to a phase's closure; counts what the work itself cost and handled.
pub(crate) struct Timed<'a> {
    marks: &'a [Mark<'a>],
    deadline: &'a Deadline,
    /// Under test.
    devices: Vec<(u32, u32)>,
    /// Where programs say what went wrong; in memory, so that it costs the disk nothing.
    words: File,
    own: OwnCounts,
    /// Whether our own loop runs now, and counts what this process uses.
    is_own: bool,
    report: PhaseReport,
}

/// A flag with its reason.
pub(crate) type Doubt = (FlagKind, String);

/// What the work itself says of its phase.
#[derive(Debug, Default)]
pub(super) struct PhaseReport {
    /// The amount of work that the phase's quantities are given for.
    pub(super) unit: Unit,
    /// Instead of the stage's clock, in nanoseconds.
    pub(super) judged_ns: Option<f64>,
    pub(super) least_read: Option<LeastRead>,
    pub(super) found: Findings,
    pub(super) parts: Vec<Part>,
    /// Flags with their reasons.
    pub(super) doubts: Vec<Doubt>,
}

/// What the work itself says of a phase or a part.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub values: Vec<(String, f64)>,
    pub latencies: Vec<(String, Latencies)>,
}

/// A part of a phase that is judged by its parts, timed by the work itself.
#[derive(Debug)]
pub(crate) struct Part {
    pub(super) name: String,
    pub(super) time_ns: f64,
    pub(super) found: Findings,
    /// Flags with their reasons.
    pub(super) doubts: Vec<Doubt>,
}

impl Part {
    pub(crate) fn new(name: &str, time_ns: f64) -> Part {
        Part { name: name.into(), time_ns, found: Findings::default(), doubts: Vec::new() }
    }

    /// As [`Timed::say`].
    pub(crate) fn say(mut self, metric: &str, value: f64) -> Part {
        self.found.values.push((metric.into(), value));
        self
    }

    /// As [`Timed::doubt`].
    pub(crate) fn doubt(mut self, flag: FlagKind, why: String) -> Part {
        self.doubts.push((flag, why));
        self
    }

    /// As [`Timed::latencies`].
    pub(crate) fn latencies(mut self, operation: &str, latencies: Latencies) -> Part {
        self.found.latencies.push((operation.into(), latencies));
        self
    }
}

/// What a program printed. Reading it takes time and CPU that are not the program's.
pub(crate) struct Printed(File);

/// Bytes of what a program printed that are worth reading.
const MOST_PRINTED: u64 = 64 << 20;

/// Without a name. In /dev/shm, where there is one, it cannot fill more of the memory than that
/// may.
fn file_in_memory(name: &str) -> Result<File> {
    use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = open("/dev/shm", flags, Mode::RUSR | Mode::WUSR).or_else(|_| memfd_create(name, MemfdFlags::CLOEXEC));
    Ok(file?.into())
}

impl Printed {
    pub(crate) fn text(self, _: &AfterPhase) -> Result<String> {
        self.read()
    }

    fn read(mut self) -> Result<String> {
        let (mut text, bytes) = (Vec::new(), self.0.metadata()?.len());
        ensure!(bytes <= MOST_PRINTED, "{bytes} bytes were printed, and {MOST_PRINTED} are the most that is read");
        self.0.rewind()?;
        self.0.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Lent when the phase is over and its counters are read. What must not be done inside of a phase
/// takes this as an argument, so that it does not compile there.
pub(crate) struct AfterPhase<'t, 'a>(pub(super) &'t mut Timed<'a>);

impl AfterPhase<'_, '_> {
    /// Runs a program that is no part of the phase; what it prints.
    pub(crate) fn ask(&self, program: &Program) -> Result<String> {
        check_stop()?;
        let printed = output_of(program.command(self.0.marks)?, &program.argv);
        self.0.deadline.check()?;
        printed
    }
}

impl<'a> Deref for AfterPhase<'_, 'a> {
    type Target = Timed<'a>;

    fn deref(&self) -> &Timed<'a> {
        self.0
    }
}

impl<'a> DerefMut for AfterPhase<'_, 'a> {
    fn deref_mut(&mut self) -> &mut Timed<'a> {
        self.0
    }
}

impl<'a> Timed<'a> {
    pub(super) fn new(marks: &'a [Mark<'a>], deadline: &'a Deadline, devices: Vec<(u32, u32)>) -> Result<Timed<'a>> {
        let words = file_in_memory("pickfs-words")?;
        Ok(Timed {
            marks,
            deadline,
            devices,
            words,
            own: OwnCounts::default(),
            is_own: false,
            report: PhaseReport::default(),
        })
    }

    /// All of it, when the phase is over.
    pub(super) fn end(self) -> (OwnCounts, PhaseReport) {
        (self.own, self.report)
    }

    /// Runs a program to its end; a failure has its last words.
    pub(crate) fn command<S: AsRef<str>>(&mut self, words: impl IntoIterator<Item = S>) -> Result<()> {
        self.run(&Program::new(words))
    }

    /// As [`Timed::command`], of a program with a folder, an environment or its own user.
    pub(crate) fn run(&mut self, program: &Program) -> Result<()> {
        self.run_into(program, Stdio::null())
    }

    /// What it prints, kept in memory: to be read when the phase is over.
    pub(crate) fn output(&mut self, program: &Program) -> Result<Printed> {
        let printed = Printed(file_in_memory("pickfs-output")?);
        let Err(error) = self.run_into(program, printed.0.try_clone()?.into()) else { return Ok(printed) };
        let text = printed.read()?;
        Err(if text.is_empty() { error } else { error.context(format!("it printed: {}", last_words(text.as_bytes()))) })
    }

    fn run_into(&mut self, program: &Program, stdout: Stdio) -> Result<()> {
        let mut command = program.command(self.marks)?;
        command.stdout(stdout).stderr(self.words.try_clone()?);
        let child = command.spawn().with_context(|| format!("cannot run `{}`", program.shown()))?;
        self.wait(child.id() as i32, program)
    }

    /// Runs a program whose output goes into a pipe that discards; returns the bytes that came. A
    /// pipe, because GNU tar reads no file at all when it sees that its output is /dev/null.
    pub(crate) fn discarded<S: AsRef<str>>(&mut self, words: impl IntoIterator<Item = S>) -> Result<u64> {
        let program = Program::new(words);
        let mut command = program.command(self.marks)?;
        let child = command.stdout(Stdio::piped()).stderr(self.words.try_clone()?).spawn();
        let mut child = child.with_context(|| format!("cannot run `{}`", program.shown()))?;
        let pipe = child.stdout.take().context("the program has no output pipe")?;
        file::set_pipe_size(&pipe, 1 << 20).ok();
        let bytes = file::discard_pipe(&pipe).context("cannot empty the pipe")?;
        self.wait(child.id() as i32, &program)?;
        Ok(bytes)
    }

    /// Runs our own loop in this process.
    pub(crate) fn own<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.own_with(|_| work())
    }

    /// As [`Timed::own`], for work that also reports values itself. Another own loop inside of it
    /// is counted with it.
    fn own_with<T>(&mut self, work: impl FnOnce(&mut Timed<'a>) -> Result<T>) -> Result<T> {
        if self.is_own {
            return work(self);
        }
        self.is_own = true;
        let before = process::own_usage();
        let result = work(self);
        let after = process::own_usage();
        self.is_own = false;
        self.own.used.cpu_ns += (after.user_ns + after.system_ns).saturating_sub(before.user_ns + before.system_ns);
        self.own.used.read_bytes += after.read_bytes.saturating_sub(before.read_bytes);
        result
    }

    /// The same, and no ordinary process of the machine delays it: for work whose time must depend
    /// on its amount alone. Where that is not allowed, the work is done without it.
    pub(crate) fn ahead_of_others<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.own(|| process::ahead_of_others(work))
    }

    /// Does a piece of work, which says how many bytes it completed, again and again for a time;
    /// longer where its rate is not steady by then. What it handled is counted here.
    pub(crate) fn for_a_time(&mut self, time: Duration, mut piece: impl FnMut() -> Result<u64>) -> Result<()> {
        let (begun, deadline, limits) = (Instant::now(), self.deadline, self.limits());
        // Settling afterwards may need all of its patience.
        let may_last = |more: Duration| deadline.left() > more + more / 10 + settle::PATIENCE;
        let run =
            self.own(|| steady_state::keep(time, || begun.elapsed(), may_last, || limits().and_then(|()| piece())))?;
        self.handled(run.bytes, 0);
        self.report.unit = Unit::Gib(run);
        Ok(())
    }

    /// Does operations at fixed times, each kind on its own thread, for as long as the other work
    /// lasts. Returns the log of each kind, in their order; an error of the work comes before
    /// theirs.
    pub(crate) fn beside(
        &mut self,
        kinds: &mut [Periodic],
        work: impl FnOnce(&mut Timed<'a>, &dyn Fn() -> bool) -> Result<()>,
    ) -> Result<Vec<PeriodicLog>> {
        let limits = self.limits();
        self.own_with(|timed| open_loop::beside(kinds, &limits, |failed| work(timed, failed)))
    }

    /// To learn when all that was written is on the device under test.
    pub(crate) fn written(&self) -> WritebackWatch {
        WritebackWatch::watch(self.devices.clone())
    }

    /// Asks again and again, with so long a pause, until something is so, or for so long; whether
    /// it was. What is asked may be work.
    pub(crate) fn until(
        &mut self,
        at_most: Duration,
        pause: Duration,
        mut is_so: impl FnMut() -> Result<bool>,
    ) -> Result<bool> {
        let (begun, limits) = (Instant::now(), self.limits());
        loop {
            limits()?;
            if is_so()? {
                return Ok(true);
            }
            let left = at_most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(pause));
        }
    }

    /// Does batches of the same work: `first` of them, and as many again until they took `least` or
    /// there are `most`. All counters are given for one, so that targets are compared on the same
    /// work. Returns how many there were, and how long they took.
    pub(crate) fn in_batches(
        &mut self,
        first: u64,
        most: u64,
        least: Duration,
        mut work: impl FnMut(Range<u64>) -> Result<()>,
    ) -> Result<(u64, Duration)> {
        let (begun, limits) = (Instant::now(), self.limits());
        let (done, took) = self.own(|| {
            let (mut done, mut more) = (0, first);
            loop {
                limits()?;
                work(done..done + more)?;
                (done, more) = (done + more, (done + more).min(most.saturating_sub(done + more)));
                let took = begun.elapsed();
                if took >= least || more == 0 {
                    break Ok((done, took));
                }
            }
        })?;
        self.done_times(done as f64);
        Ok((done, took))
    }

    /// What the phase handled, for throughput.
    pub(crate) fn handled(&mut self, bytes: u64, files: u64) {
        self.own.bytes += bytes;
        self.own.files += files;
    }

    /// What the phase removed: as nothing of it is moved, its rate is one of files.
    pub(crate) fn removed(&mut self, bytes: u64, files: u64) {
        self.handled(bytes, files);
        self.own.removed_files += files;
    }

    /// The phase did a fixed piece of work `times` times, where that number is not the same for all
    /// targets: all counters are given for one.
    pub(crate) fn done_times(&mut self, times: f64) {
        self.report.unit = Unit::Times(times);
    }

    /// What the phase is judged by instead of the stage's clock, where a program times its work
    /// itself and does other things as well; in nanoseconds, for the whole phase (see
    /// [`Timed::done_times`]).
    pub(crate) fn took(&mut self, ns: f64) {
        self.report.judged_ns = Some(ns);
    }

    /// The least that a cold start makes the device read, for a phase that reads
    /// [`super::ColdProof::Declared`]: bytes of content, which the file system may have compressed.
    pub(crate) fn reads_at_least(&mut self, bytes: u64) {
        self.report.least_read = Some(LeastRead::Content(bytes));
    }

    /// The same in bytes as they lie on the device: a file may be compressed better than all of the
    /// tree is.
    pub(crate) fn reads_at_least_stored(&mut self, bytes: u64) {
        self.report.least_read = Some(LeastRead::Stored(bytes));
    }

    /// A quantity of the workload's own; its unit and its direction follow from its name, see
    /// [`pickfs_system::units`].
    pub(crate) fn say(&mut self, metric: &str, value: f64) {
        self.report.found.values.push((metric.into(), value));
    }

    /// Latencies of an operation: `latency` where the phase has one kind alone.
    pub(crate) fn latencies(&mut self, operation: &str, latencies: Latencies) {
        self.report.found.latencies.push((operation.into(), latencies));
    }

    /// A part of a phase that is judged by its parts.
    pub(crate) fn part(&mut self, part: Part) {
        self.report.parts.push(part);
    }

    /// A flag: the values stay, the doubt is reported with them.
    pub(crate) fn doubt(&mut self, flag: FlagKind, why: String) {
        self.report.doubts.push((flag, why));
    }

    pub(crate) fn limits(&self) -> impl Fn() -> Result<()> + Sync + Copy + use<'a> {
        self.deadline.limits()
    }

    fn wait(&mut self, pid: i32, program: &Program) -> Result<()> {
        let (status, usage) = process::wait_with_usage(pid).context("cannot wait for the program")?;
        self.own.used.cpu_ns += usage.user_ns + usage.system_ns;
        self.own.used.read_bytes += usage.read_bytes;
        if !program.accepts(status) {
            bail!("`{}` ended with {status}: {}", program.shown(), self.said());
        }
        Ok(())
    }

    /// By programs that run during the phase and are waited for long after it.
    pub(super) fn also_used(&mut self, used: Used) {
        self.own.used.cpu_ns += used.cpu_ns;
        self.own.used.read_bytes += used.read_bytes;
    }

    fn said(&mut self) -> String {
        let mut text = Vec::new();
        match self.words.rewind().and_then(|()| self.words.read_to_end(&mut text)) {
            Ok(_) => last_words(&text),
            Err(error) => format!("its words are lost: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As where probes run during work that has loops of its own.
    #[test]
    fn a_loop_within_a_loop_is_counted_once() {
        let deadline = Deadline::start("none", 0);
        let mut timed = Timed::new(&[], &deadline, Vec::new()).unwrap();
        let used = || process::own_usage().user_ns + process::own_usage().system_ns;
        let before = used();
        let work = || Ok(pickfs_system::sys::clock::use_processor(300_000_000));
        let own = timed.own_with(|timed| timed.own(work)).unwrap();
        let in_all = used() - before;
        let counted = timed.end().0.used.cpu_ns;
        assert!(counted >= own / 2 && counted <= in_all, "{counted} ns of {in_all}");
    }
}
