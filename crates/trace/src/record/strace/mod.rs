//! A log of `strace -f -yy -ttt -T -xx` as a trace: its lines go through the same rules as the
//! calls of a program that runs.
//!
//! A log comes from anybody and is about another machine: this one's files are not looked at, and
//! what cannot be read is refused with its line.

mod arguments;
mod first;
mod line;
mod symbols;

use super::cpu_clock::CpuClock;
use super::files::Mapping;
use super::program::Program;
use super::scope::{Scope, absolute_by_text};
use super::world::World;
use crate::{Header, Op, SCHEMA};
use anyhow::{Context, Result, ensure};
use arguments::{Rebuilt, rebuilt};
use first::Fact;
use line::{Called, End, Line, LineKind, Outcome};
use pickfs_system::sys::ptrace::Resume;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

/// A day of a busy program.
const MOST_LINES: usize = 50_000_000;
const MOST_THREADS: u32 = 1 << 20;
/// Threads that have no number in the log are this one.
const ALONE: i32 = 1;

/// Reads a log; `under` names the folders whose files are kept, by their paths on the machine that
/// wrote the log. By default the folder that the program began in.
pub fn import(log: &str, under: &[Vec<u8>]) -> Result<Vec<u8>> {
    let lines = lines(log)?;
    ensure!(!lines.is_empty(), "the log is empty");
    let start = first_folder(&lines);
    let under = match (under, &start) {
        ([], Some(folder)) => std::slice::from_ref(folder),
        ([], None) => anyhow::bail!("no line shows the program's folder; name the folder to keep with --under"),
        (named, _) => named,
    };
    let mut scope = Scope::of_log(under);
    let seen = LogWorld {
        folders: RefCell::default(),
        start: start.clone().unwrap_or_default(),
        line: RefCell::default(),
        now: Cell::new(0),
    };
    let mut reader = Reader::new(&lines, &mut scope, &seen);
    for line in &lines {
        reader.line(line).with_context(|| format!("line {}", line.number))?;
    }
    let (program, facts, exit) = reader.end();
    let ended = program.finish();
    let header = Header {
        schema: SCHEMA,
        made_by: format!("pickfs {} from strace", env!("CARGO_PKG_VERSION")),
        kernel: "unknown".into(),
        file_system: "unknown".into(),
        roots: under.len() as u32,
        stop_cost_ns: 0,
        exit,
        ..ended.counts
    };
    let bytes = ended.writer.finish(&header, &scope.numbering.paths, &[])?;
    let read = crate::read(&bytes).context("the log contradicts itself")?;
    first::with_first_tree(read, &mut scope, &facts)
}

struct Numbered<'a> {
    number: usize,
    line: Line<'a>,
}

fn lines(log: &str) -> Result<Vec<Numbered<'_>>> {
    let (mut found, mut last) = (Vec::new(), 0);
    for (number, text) in (1..).zip(log.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        ensure!(number <= MOST_LINES, "line {number}: a log has at most {MOST_LINES} lines");
        let mut line = Line::of(text).with_context(|| format!("line {number}"))?;
        // The clock of the day may be set back.
        line.at_ns = line.at_ns.max(last);
        last = line.at_ns;
        line.tid = if line.tid == 0 { ALONE } else { line.tid };
        found.push(Numbered { number, line });
    }
    Ok(found)
}

/// Where the program was when it began: what its first relative call says.
fn first_folder(lines: &[Numbered]) -> Option<Vec<u8>> {
    lines.iter().find_map(|line| match &line.line.what {
        LineKind::Call(Called { arguments, .. }) | LineKind::Begun { arguments, .. } => {
            line::split(arguments).into_iter().filter(|word| word.starts_with("AT_FDCWD<")).find_map(line::place)
        }
        _ => None,
    })
}

/// What the line at hand says.
struct LogWorld {
    /// By thread.
    folders: RefCell<HashMap<i32, Vec<u8>>>,
    /// The first folder.
    start: Vec<u8>,
    line: RefCell<Option<Rebuilt>>,
    now: Cell<u64>,
}

impl World for LogWorld {
    fn text(&self, _: i32, address: u64) -> Option<Vec<u8>> {
        self.line.borrow().as_ref()?.text(address)
    }

    fn memory(&self, _: i32, address: u64, length: usize) -> Option<Vec<u8>> {
        self.line.borrow().as_ref()?.memory(address, length)
    }

    fn folder(&self, tid: i32) -> Vec<u8> {
        self.folders.borrow().get(&tid).unwrap_or(&self.start).clone()
    }

    fn descriptor(&self, _: i32, descriptor: i32) -> Vec<u8> {
        let line = self.line.borrow();
        let places = line.as_ref().map_or(&[][..], |line| &line.places);
        places.iter().find(|(known, _)| *known == descriptor).map(|(_, place)| place.clone()).unwrap_or_default()
    }

    fn clock(&self, _: i32) -> CpuClock {
        CpuClock::none()
    }

    fn mapped(&self, _: i32, _: &Mapping) -> Option<Vec<Op>> {
        None
    }

    fn now(&self) -> u64 {
        self.now.get()
    }
}

/// A call whose end is in a later line.
struct UnfinishedCall {
    name: String,
    arguments: String,
    at_ns: u64,
    began: u32,
}

struct Reader<'a> {
    program: Program<'a>,
    seen: &'a LogWorld,
    /// Children that a later line names: their parents, in the order of those lines.
    parents: HashMap<i32, Vec<i32>>,
    begun: HashMap<i32, UnfinishedCall>,
    /// When each thread's last call ended.
    idle: HashMap<i32, u64>,
    /// What is taken off between two calls.
    stop_ns: u64,
    facts: BTreeMap<u32, Fact>,
    threads: u32,
    first: i32,
    exit: i32,
}

impl<'a> Reader<'a> {
    fn new(lines: &[Numbered], scope: &'a mut Scope, seen: &'a LogWorld) -> Reader<'a> {
        seen.now.set(lines[0].line.at_ns);
        let mut program = Program::new(scope, seen);
        program.begin();
        Reader {
            program,
            seen,
            parents: parents(lines),
            begun: HashMap::new(),
            idle: HashMap::new(),
            stop_ns: between_calls(lines),
            facts: BTreeMap::new(),
            threads: 0,
            first: lines[0].line.tid,
            exit: 0,
        }
    }

    fn line(&mut self, numbered: &Numbered) -> Result<()> {
        let Line { tid, at_ns, what } = &numbered.line;
        let (tid, at_ns) = (*tid, *at_ns);
        self.seen.now.set(self.seen.now.get().max(at_ns));
        if !self.program.knows(tid)
            && !matches!(what, LineKind::Other | LineKind::Ended { .. } | LineKind::Superseded { .. })
        {
            self.meet(tid)?;
        }
        match what {
            LineKind::Call(called) => self.call(tid, at_ns, called, None),
            LineKind::Begun { name, arguments } => {
                let began = self.program.ops();
                let begun = UnfinishedCall { name: (*name).into(), arguments: (*arguments).into(), at_ns, began };
                self.begun.insert(tid, begun);
                Ok(())
            }
            LineKind::Resumed { name, rest, end } => {
                // Where the log begins in the middle of a call, its start is not there.
                let Some(begun) = self.begun.remove(&tid) else { return Ok(()) };
                ensure!(begun.name == *name, "{name} is resumed where {} began", begun.name);
                let arguments = begun.arguments + rest;
                let called = Called { name, arguments: &arguments, end: *end };
                self.call(tid, begun.at_ns, &called, Some(begun.began))
            }
            LineKind::Ended { code } => {
                self.ended(tid, *code);
                Ok(())
            }
            LineKind::Superseded { by } if self.program.knows(tid) && self.program.knows(*by) => {
                self.program.executed(tid, *by);
                Ok(())
            }
            LineKind::Superseded { .. } | LineKind::Other => Ok(()),
        }
    }

    /// A thread's first line comes: its parent is in the line of the parent's call, which may come
    /// later.
    fn meet(&mut self, tid: i32) -> Result<()> {
        self.threads += 1;
        ensure!(self.threads <= MOST_THREADS, "a log has at most {MOST_THREADS} threads");
        let parent = self.parents.get_mut(&tid).and_then(|parents| (!parents.is_empty()).then(|| parents.remove(0)));
        let Some(parent) = parent.filter(|parent| self.program.knows(*parent)) else {
            // It was there before the log.
            self.program.first(tid, tid);
            return Ok(());
        };
        if let Some(UnfinishedCall { name, arguments, .. }) = self.begun.get(&parent) {
            self.ready_to_start(parent, &name.clone(), &arguments.clone())?;
        }
        let folder = self.seen.folder(parent);
        self.seen.folders.borrow_mut().insert(tid, folder);
        self.program.started(parent, tid);
        Ok(())
    }

    /// The flags of what it starts next.
    fn ready_to_start(&mut self, tid: i32, name: &str, arguments: &str) -> Result<()> {
        let Some(named) = symbols::call(name).filter(|_| STARTS.contains(&name)) else { return Ok(()) };
        let Some(found) = rebuilt(named, arguments)? else { return Ok(()) };
        let call = found.call;
        *self.seen.line.borrow_mut() = Some(found);
        self.program.entered(tid, &call);
        Ok(())
    }

    fn call(&mut self, tid: i32, at_ns: u64, called: &Called, began: Option<u32>) -> Result<()> {
        let Called { name, arguments, end } = called;
        let before = self.idle.insert(tid, at_ns.saturating_add(end.took_ns));
        let thought = before.map_or(0, |before| at_ns.saturating_sub(before));
        self.program.add_think_time(tid, thought.saturating_sub(self.stop_ns));
        let Some(named) = symbols::call(name) else { return Ok(()) };
        let Some(result) = end.result.map(value) else { return Ok(()) };
        let Some(found) = rebuilt(named, arguments)? else { return Ok(()) };
        if STARTS.contains(name) {
            return self.start(tid, name, arguments, result);
        }
        self.folder(tid, name, &found, result);
        let (call, ops) = (found.call, self.program.ops());
        self.missing(tid, &found);
        *self.seen.line.borrow_mut() = Some(found);
        self.seen.now.set(at_ns);
        // Calls that are taken to succeed are left out where they failed.
        let is_assumed = ASSUMED.contains(name) || *name == "lseek" && call.arguments[2] <= libc::SEEK_END as u64;
        if result >= 0 || !is_assumed {
            let how = self.program.entered(tid, &call);
            self.seen.now.set(at_ns.saturating_add(end.took_ns));
            if how == Resume::ToExit {
                self.program.began(tid, began);
                self.program.left(tid, result);
            }
        }
        if matches!(*name, "execve" | "execveat") && result == 0 {
            self.program.executed(tid, tid);
        }
        if result >= 0 && self.program.ops() == ops + 1 {
            self.facts.extend(Fact::of(name, arguments).map(|fact| (ops, fact)));
        }
        Ok(())
    }

    /// The child may have been met already.
    fn start(&mut self, tid: i32, name: &str, arguments: &str, result: i64) -> Result<()> {
        let child = i32::try_from(result).unwrap_or(0);
        if child <= 0 || self.program.knows(child) {
            return Ok(());
        }
        let is_next = self.parents.get(&child).is_some_and(|parents| parents.first() == Some(&tid));
        self.ready_to_start(tid, name, arguments)?;
        if is_next { self.meet(child) } else { Ok(()) }
    }

    /// Keeps the thread's folder, as the log shows it.
    fn folder(&mut self, tid: i32, name: &str, found: &Rebuilt, result: i64) {
        let shown =
            |wanted: i32| found.places.iter().find(|(known, _)| *known == wanted).map(|(_, place)| place.clone());
        let now = match name {
            "chdir" if result == 0 => {
                let path = found.text(found.call.arguments[0]).unwrap_or_default();
                Some(absolute_by_text(&self.seen.folder(tid), &path))
            }
            "fchdir" if result == 0 => shown(found.call.arguments[0] as i32),
            _ => shown(libc::AT_FDCWD),
        };
        if let Some(now) = now {
            self.seen.folders.borrow_mut().insert(tid, now.clone());
            self.program.set_cwd(tid, now);
        }
    }

    /// Files that were open before the log began are not in the trace; calls on them are counted.
    fn missing(&mut self, tid: i32, found: &Rebuilt) {
        for (descriptor, place) in &found.places {
            let is_open = *descriptor >= 0;
            if is_open && self.program.is_unseen_descriptor(tid, *descriptor, place) {
                self.program.counts.miss(|why| &mut why.opened_before);
            }
        }
    }

    fn ended(&mut self, tid: i32, code: i32) {
        if tid == self.first {
            self.exit = code;
        }
        self.begun.remove(&tid);
        self.idle.remove(&tid);
        if self.program.knows(tid) {
            self.program.ending(tid);
            self.program.ended(tid);
        }
    }

    fn end(self) -> (Program<'a>, BTreeMap<u32, Fact>, i32) {
        (self.program, self.facts, self.exit)
    }
}

const ASSUMED: [&str; 6] = ["close", "close_range", "fstat", "fstatfs", "fadvise64", "readahead"];
const STARTS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

fn value(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Value(value) => value,
        Outcome::Error(name) => -i64::from(symbols::error(name)),
    }
}

/// The children of each thread, in the order of the lines that show them.
fn parents(lines: &[Numbered]) -> HashMap<i32, Vec<i32>> {
    let mut parents: HashMap<i32, Vec<i32>> = HashMap::new();
    for Numbered { line, .. } in lines {
        let (name, end) = match &line.what {
            LineKind::Call(Called { name, end, .. }) | LineKind::Resumed { name, end, .. } => (name, end),
            _ => continue,
        };
        let Some(Outcome::Value(child)) = end.result.filter(|_| STARTS.contains(name)) else { continue };
        if let Some(child) = i32::try_from(child).ok().filter(|child| *child > 0) {
            parents.entry(child).or_default().push(line.tid);
        }
    }
    parents
}

/// What strace itself takes between two calls of a thread: a twentieth of all come right after
/// another.
fn between_calls(lines: &[Numbered]) -> u64 {
    const SHORTEST: usize = 20;
    let (mut idle, mut gaps) = (HashMap::new(), Vec::new());
    for Numbered { line, .. } in lines {
        let took = match &line.what {
            LineKind::Call(Called { end: End { took_ns, .. }, .. }) => *took_ns,
            // For calls in two lines, the gap before them is not counted.
            _ => {
                idle.remove(&line.tid);
                continue;
            }
        };
        let before = idle.insert(line.tid, line.at_ns.saturating_add(took));
        gaps.extend(before.map(|before| line.at_ns.saturating_sub(before)));
    }
    gaps.sort_unstable();
    gaps.get(gaps.len() / SHORTEST).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
