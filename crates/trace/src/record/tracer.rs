//! The loop: a thread stops, is looked at, and goes on.

use super::calls::{Place, Request, is_watched, request};
use super::preload::Preload;
use super::processor::Processor;
use super::program::Program;
use super::scope::Scope;
use super::world::Live;
use anyhow::{Context, Result};
use pickfs_system::sys::ptrace::{self, Call, Event, Resume, Stop};
use std::collections::HashSet;
use std::process::ExitStatus;

/// Watches a program that this one has started.
pub(crate) struct Tracer<'a> {
    pub program: Program<'a>,
    live: &'a Live,
    /// Calls that are made without a stop.
    preload: Option<Preload>,
    processor: Processor,
    /// They stopped before the one that started them said so.
    early: HashSet<i32>,
    /// The first process, whose end is the program's.
    pid: i32,
    exit: Option<ExitStatus>,
    /// Number of operations that already have their place in the order of calls that are made
    /// without a stop.
    marked: u32,
    /// It has no filter, and stops at calls that are not watched, too.
    every_call: bool,
}

/// Calls that mean nothing, made before the program begins: what is between them is the cost of
/// stopping.
const CALIBRATION: usize = 64;

/// See [`CALIBRATION`].
pub(crate) fn calibrate() {
    for _ in 0..CALIBRATION {
        // The path is empty: the call fails at once, and is watched.
        let _ = rustix::fs::stat(c"");
    }
}

impl<'a> Tracer<'a> {
    pub(crate) fn new(scope: &'a mut Scope, live: &'a Live, pid: i32, preload: Option<Preload>) -> Tracer<'a> {
        let mut program = Program::new(scope, live);
        program.first(pid, pid);
        if preload.is_some() {
            program.has_unstopped_calls();
        }
        let (processor, early) = (Processor::default(), HashSet::new());
        Tracer { program, live, preload, processor, early, pid, exit: None, marked: 0, every_call: false }
    }

    /// A tracer of programs that run already.
    pub(crate) fn of_running(scope: &'a mut Scope, live: &'a Live) -> Tracer<'a> {
        let program = Program::new(scope, live);
        let (processor, early) = (Processor::default(), HashSet::new());
        Tracer { program, live, preload: None, processor, early, pid: 0, exit: None, marked: 0, every_call: true }
    }

    /// Processor time, in nanoseconds, of processes that are not the program's.
    pub(crate) fn own_cpu_ns(&self) -> u64 {
        self.preload.as_ref().map_or(0, Preload::own_cpu_ns)
    }

    /// A thread has stopped before it is known.
    pub(crate) fn hold(&mut self, tid: i32) {
        self.early.insert(tid);
    }

    /// It is held no more. False: it was not held.
    pub(crate) fn release(&mut self, tid: i32) -> bool {
        self.early.remove(&tid)
    }

    pub(crate) fn go_on(&mut self, tid: i32, signal: i32) -> Result<()> {
        self.resume(tid, Resume::ToEntry, signal)
    }

    pub(crate) fn resume(&mut self, tid: i32, how: Resume, signal: i32) -> Result<()> {
        if let Some(preload) = &mut self.preload {
            let program = &mut self.program;
            preload.resumed(tid, program.has_files_alone(tid), |file| program.needs_no_sample(tid, file));
            program.on_resume(tid, self.processor.holds(tid));
            self.processor.on_resume(tid);
        }
        let how = if self.every_call && how == Resume::ToEntry { Resume::ToExit } else { how };
        ptrace::resume(tid, how, signal).context("cannot let the program go on")
    }

    /// Until nothing of the program is left; how its first process ended.
    pub(crate) fn run(&mut self) -> Result<ExitStatus> {
        loop {
            match ptrace::wait().context("cannot wait for the program")? {
                Event::NoneLeft => return self.exit.context("the program is lost: its end was not seen"),
                Event::Tick => self.processor.tick(),
                Event::Ended(tid, status) => {
                    self.processor.ended(tid);
                    if tid == self.pid {
                        self.exit = Some(status);
                    }
                    self.drain()?;
                    self.program.ended(tid);
                    self.mark(|preload| preload.ended(tid))?;
                }
                Event::Stopped(tid, stop) => {
                    self.program.counts.stops += 1;
                    self.drain()?;
                    let next = self.stopped(tid, stop)?;
                    if self.preload.is_some() {
                        let is_recorded = self.program.ops() > self.marked || self.program.is_in_operation(tid);
                        self.processor.stops(tid, is_recorded);
                    }
                    self.mark(|_| Ok(()))?;
                    if let Some((how, signal)) = next {
                        self.resume(tid, how, signal)?;
                    }
                }
            }
        }
    }

    /// Takes what threads have done without a stop by now.
    fn drain(&mut self) -> Result<()> {
        let (Some(preload), program, live) = (&mut self.preload, &mut self.program, self.live) else { return Ok(()) };
        preload.drain(|made| program.take(made, live))?;
        self.marked = self.program.ops();
        Ok(())
    }

    /// Says what is otherwise now in the shared memory, and where in the order of calls that came.
    fn mark(&mut self, change: impl FnOnce(&mut Preload) -> Result<()>) -> Result<()> {
        let Some(preload) = &mut self.preload else { return Ok(()) };
        change(preload)?;
        if self.program.ops() > self.marked { preload.mark(self.program.ops()) } else { Ok(()) }
    }

    /// What must be done before some calls.
    fn before(&mut self, tid: i32, call: &Call) -> Result<()> {
        match request(call) {
            Some(Request::Affinity) => self.processor.asks(tid),
            Some(Request::Start { flags, flags_at }) => keep_in_sight(tid, flags, flags_at)
                .context("cannot watch a child that the program starts so that nothing does (CLONE_UNTRACED)")?,
            _ => {}
        }
        Ok(())
    }

    /// A call that stops, where others do not: what their threads know may not be so any more.
    fn entered(&mut self, tid: i32, call: &Call) -> Resume {
        let how = self.program.entered(tid, call);
        let (Some(preload), program) = (&mut self.preload, &mut self.program) else { return how };
        if std::mem::take(&mut program.moves_folder) {
            preload.set_moved();
        }
        match request(call) {
            Some(Request::Close(descriptor) | Request::Duplicate { to: Some(descriptor), .. }) => {
                preload.forget(tid, descriptor)
            }
            Some(Request::CloseRange { .. }) => preload.forget_known(tid),
            Some(Request::File(file)) => {
                if let Place::Path { folder, .. } | Place::PathOrSelf { folder, .. } = file.place {
                    if program.has_files_alone(tid) && program.knows_file(tid, folder) {
                        preload.knows_folder(tid, folder);
                    }
                }
            }
            _ => {}
        }
        how
    }

    /// How the thread goes on; none for one that is not known yet.
    pub(crate) fn stopped(&mut self, tid: i32, stop: Stop) -> Result<Option<(Resume, i32)>> {
        if !self.program.knows(tid) {
            self.early.insert(tid);
            return Ok(None);
        }
        let how = match stop {
            Stop::Entry(call) if self.every_call && !is_watched(&call) => {
                if call.number == libc::SYS_io_uring_enter {
                    self.program.counts.miss(|why| &mut why.io_uring);
                }
                Resume::ToEntry
            }
            Stop::Entry(call) => {
                let greeted = self.preload.as_mut().map(|preload| preload.on_preload_hello(tid, &call)).transpose()?;
                if let Some(greeting) = greeted.flatten() {
                    self.program.on_preload_hello(tid, &greeting);
                    return Ok(Some((Resume::ToEntry, 0)));
                }
                self.before(tid, &call)?;
                self.entered(tid, &call)
            }
            // Calls that are not watched, and the one in which the thread was found.
            Stop::Exit(_) if self.every_call && !self.program.awaits(tid) => Resume::ToEntry,
            Stop::Exit(result) => {
                if let Some(preload) = self.preload.as_ref().filter(|_| self.program.opens(tid)) {
                    preload.forget(tid, result as i32);
                }
                self.program.left(tid, result);
                Resume::ToEntry
            }
            Stop::Started(new) => {
                let lends = self.program.is_vfork(tid);
                self.processor.started(tid, new);
                self.program.started(tid, new);
                if let Some(preload) = &mut self.preload {
                    preload.forget_known(tid);
                    if lends {
                        preload.lend(tid, new);
                    }
                }
                if self.early.remove(&new) {
                    let _ = self.resume(new, Resume::ToEntry, 0);
                }
                Resume::ToEntry
            }
            Stop::Executed(former) => {
                self.program.executed(tid, former);
                if let Some(preload) = &mut self.preload {
                    [tid, former].into_iter().try_for_each(|tid| preload.ended(tid))?;
                }
                Resume::ToEntry
            }
            Stop::Ending => {
                self.program.ending(tid);
                Resume::ToEntry
            }
            Stop::New => Resume::ToEntry,
            Stop::Group => Resume::Stay,
            Stop::Signal(signal) => return Ok(Some((Resume::ToEntry, signal))),
        };
        Ok(Some((how, 0)))
    }
}

/// A child that nothing watches would have no call on files: the kernel answers ENOSYS where the
/// filter stops one. So no child is started with the flag that asks for that. `flags_at` is the
/// address of the flags, or 0.
fn keep_in_sight(tid: i32, flags: u64, flags_at: u64) -> std::io::Result<()> {
    const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;
    if flags_at == 0 {
        return if flags & UNTRACED == 0 { Ok(()) } else { ptrace::set_first_argument(tid, flags & !UNTRACED) };
    }
    let mut bytes = [0; 8];
    let is_there = ptrace::read_memory(tid, flags_at, &mut bytes).is_ok_and(|read| read == bytes.len());
    let flags = u64::from_le_bytes(bytes);
    if !is_there || flags & UNTRACED == 0 { Ok(()) } else { ptrace::write_word(tid, flags_at, flags & !UNTRACED) }
}
