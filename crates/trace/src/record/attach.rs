//! Records a program that runs already: it is watched from outside for a while and goes on as
//! before. No filter can be put into it, so it stops at every call.

use super::files::OpenFile;
use super::first_tree::FirstTree;
use super::scope::Scope;
use super::tracer::Tracer;
use super::world::Live;
use super::{file_system_of, finished};
use crate::Header;
use anyhow::{Context, Result, bail, ensure};
use pickfs_system::sys::process::{self, Stat};
use pickfs_system::sys::ptrace::{self, Event, Resume, Stop};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is asked whether to end.
const TICK: Duration = Duration::from_millis(100);

/// Records a process with its threads and the processes below it until `ends` is true or none is
/// left. Folders must be absolute.
pub fn attach(pid: i32, under: &[PathBuf], ends: impl Fn() -> bool) -> Result<Vec<u8>> {
    ensure!(Path::new(&format!("/proc/{pid}")).exists(), "there is no process {pid}");
    ensure!(pid != std::process::id() as i32, "process {pid} is pickfs itself");
    let mut scope = Scope::new(under).context("cannot look at the folder to watch")?;
    // While it is looked at nothing may change: a name that is there and then not would mislead the
    // replay.
    let looked_at = Scope::new(under).context("cannot look at the folder to watch")?;
    let file_system = scope.roots().next().map(|(root, _)| file_system_of(&root)).unwrap_or_default();
    // 0 where that is not shown.
    let read_bytes = || process::read_bytes(pid).unwrap_or(0);
    let (live, read) = (Live::new(), read_bytes());
    ptrace::tick(TICK).context("cannot set a timer")?;
    let mut watched =
        Watched { tracer: Tracer::of_running(&mut scope, &live), processes: BTreeMap::new(), stopped: BTreeSet::new() };
    watched.seize(pid)?;
    let tree = watched.begin(|| FirstTree::look(&looked_at))?;
    watched.run(ends)?;
    let read = read_bytes().saturating_sub(read);
    let known = Header { file_system, roots: under.len() as u32, device_read_bytes: read, ..Header::default() };
    let seen = watched.tracer.program.finish();
    finished(seen, scope, tree, known)
}

struct Watched<'a> {
    tracer: Tracer<'a>,
    /// The process of each thread that was there at the start.
    processes: BTreeMap<i32, i32>,
    /// They stand still until all do.
    stopped: BTreeSet<i32>,
}

impl Watched<'_> {
    /// Until nothing new is found: threads start others meanwhile.
    fn seize(&mut self, pid: i32) -> Result<()> {
        loop {
            let before = self.processes.len();
            for process in family(pid) {
                for tid in numbers(&format!("/proc/{process}/task")) {
                    if self.processes.contains_key(&tid) {
                        continue;
                    }
                    match ptrace::seize_running(tid) {
                        Ok(()) => drop(self.processes.insert(tid, process)),
                        // It was started by one that is watched, and is watched with it; or it has
                        // ended.
                        Err(_) if before > 0 || tid != pid => {}
                        Err(error) => bail!(
                            "cannot watch process {pid} with ptrace(2): {error}; run as root, see \
                             /proc/sys/kernel/yama/ptrace_scope, and end what watches it now (strace, a debugger)"
                        ),
                    }
                }
            }
            if self.processes.len() == before {
                ensure!(before > 0, "process {pid} has ended");
                return Ok(());
            }
        }
    }

    /// Stops all of them, looks at what they have open and at what `look` does, and lets them go
    /// on.
    fn begin<T>(&mut self, look: impl FnOnce() -> Result<T>) -> Result<T> {
        self.processes.keys().for_each(|tid| ptrace::interrupt(*tid));
        let mut signals = BTreeMap::new();
        while self.stopped.len() < self.processes.len() {
            match ptrace::wait().context("cannot wait for the program")? {
                Event::NoneLeft => bail!("the program ended before the recording began"),
                Event::Ended(tid, _) => drop(self.processes.remove(&tid)),
                Event::Tick => self.help_waiting()?,
                Event::Stopped(tid, stop) if self.processes.contains_key(&tid) => {
                    match stop {
                        Stop::Signal(signal) => drop(signals.insert(tid, signal)),
                        // It may have stopped already.
                        Stop::Started(new) => {
                            self.processes.insert(new, process_of(new));
                            self.stopped.extend(self.tracer.release(new).then_some(new));
                        }
                        _ => {}
                    }
                    self.stopped.insert(tid);
                }
                Event::Stopped(tid, _) => self.tracer.hold(tid),
            }
            let processes = &self.processes;
            self.stopped.retain(|tid| processes.contains_key(tid));
        }
        let processes: BTreeSet<i32> = self.processes.values().copied().collect();
        for process in processes {
            let threads =
                self.processes.iter().filter(|(_, of)| **of == process).map(|(tid, _)| *tid).collect::<Vec<_>>();
            self.tracer.program.adopt(process, &threads);
            for file in open_files(process) {
                self.tracer.program.found_open(threads[0], &file);
            }
        }
        let looked = look()?;
        self.tracer.program.begin();
        for tid in std::mem::take(&mut self.stopped) {
            self.tracer.go_on(tid, signals.get(&tid).copied().unwrap_or(0))?;
        }
        Ok(looked)
    }

    /// A thread that has called vfork(2) cannot stop before its child runs another program, and the
    /// child stands still: it goes on, and is stopped anew.
    fn help_waiting(&mut self) -> Result<()> {
        let late: Vec<i32> = self.processes.keys().copied().filter(|tid| !self.stopped.contains(tid)).collect();
        for tid in late {
            if Stat::of(tid).is_none_or(|stat| stat.state != 'D') {
                ptrace::interrupt(tid);
                continue;
            }
            for child in children(tid, tid).into_iter().filter(|child| self.stopped.remove(child)) {
                ptrace::resume(child, Resume::ToEntry, 0).context("cannot let the program go on")?;
            }
        }
        Ok(())
    }

    fn run(&mut self, ends: impl Fn() -> bool) -> Result<()> {
        let mut leaving = false;
        loop {
            if !leaving && ends() {
                leaving = true;
                self.tracer.program.tids().into_iter().for_each(ptrace::interrupt);
            }
            match ptrace::wait().context("cannot wait for the program")? {
                Event::NoneLeft => return Ok(()),
                Event::Tick => {}
                Event::Ended(tid, _) => self.tracer.program.ended(tid),
                Event::Stopped(tid, stop) => {
                    self.tracer.program.counts.stops += 1;
                    let next = self.tracer.stopped(tid, stop)?;
                    match (leaving, next) {
                        (true, next) => ptrace::detach(tid, next.map_or(0, |(_, signal)| signal)),
                        (false, Some((how, signal))) => self.tracer.resume(tid, how, signal)?,
                        (false, None) => {}
                    }
                }
            }
        }
    }
}

/// The process and all below it.
fn family(pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(process) = found.get(at).copied() {
        for thread in numbers(&format!("/proc/{process}/task")) {
            found.extend(children(process, thread));
        }
        at += 1;
    }
    found
}

fn children(process: i32, thread: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).unwrap_or_default();
    text.split(' ').filter_map(|child| child.trim().parse().ok()).collect()
}

/// The process of a thread; itself where that is gone.
fn process_of(tid: i32) -> i32 {
    procfs::process::Process::new(tid).and_then(|found| found.status()).map_or(tid, |status| status.tgid)
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn open_files(process: i32) -> Vec<OpenFile> {
    use std::os::unix::ffi::OsStringExt;
    let file = |descriptor: i32| {
        let place = std::fs::read_link(format!("/proc/{process}/fd/{descriptor}")).ok()?.into_os_string().into_vec();
        let text = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).ok()?;
        let field = |name: &str| text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
        let flags = u64::from_str_radix(field("flags:")?, 8).ok()?;
        Some(OpenFile { descriptor, place, flags, position: field("pos:")?.parse().ok()? })
    };
    let mut files: Vec<OpenFile> = numbers(&format!("/proc/{process}/fd")).into_iter().filter_map(file).collect();
    files.sort_by_key(|file| file.descriptor);
    files
}
