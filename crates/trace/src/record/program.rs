//! What is known of a watched program: its threads, their descriptors and mappings, and what comes
//! of each call. What sees the calls, a tracer or a log, is a [`World`].

mod ends;

use super::calls::{FileCall, Request, request};
use super::file_call::{LookResult, Looker};
use super::files::{Mapping, Objects, OpenFile, is_folder};
use super::first_tree::TouchedPaths;
use super::preload::{Greeting, LibraryCall};
use super::scope::Scope;
use super::stop_cost::{self, StopCost, StopNs};
use super::threads::{Life, Pending, Resolved, Thread};
use super::world::{Live, World};
use crate::{Class, Header, Kind, Op, Writer, coarse};
use foldhash::HashMap;
use pickfs_system::sys::ptrace::{Call, Resume};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

/// What was seen of a program until it ended.
pub struct ProgramRecord {
    pub writer: Writer,
    pub touched: TouchedPaths,
    pub counts: Header,
}

/// A program that is watched, and what it did so far.
pub struct Program<'a> {
    scope: &'a mut Scope,
    world: &'a dyn World,
    threads: HashMap<i32, Thread>,
    /// Numbers of threads of processes that ended and were not waited for yet, by process.
    ended: HashMap<i32, Vec<u32>>,
    objects: Objects,
    writer: Writer,
    touched: TouchedPaths,
    next_thread: u32,
    /// When the program began, by the world's clock: what was before is the start of it.
    begun: Option<u64>,
    /// CPU time between two stops while nothing was done between them.
    calibration: Vec<u64>,
    /// Taken off the time to think before each stop, where that is not left to the replay.
    stop_cost: Option<StopCost>,
    /// The call at hand was made without a stop.
    unstopped: bool,
    /// A watched folder is about to be renamed.
    pub moves_folder: bool,
    /// CPU time between two calls of the program, roughly, and how often it was that.
    gaps: BTreeMap<u64, u64>,
    /// Threads that have ended.
    pub lives: Vec<Life>,
    pub counts: Header,
}

impl<'a> Program<'a> {
    pub fn new(scope: &'a mut Scope, world: &'a dyn World) -> Program<'a> {
        Program {
            scope,
            world,
            threads: HashMap::default(),
            ended: HashMap::default(),
            objects: Objects::default(),
            writer: Writer::default(),
            touched: TouchedPaths::default(),
            next_thread: 0,
            begun: None,
            calibration: Vec::new(),
            stop_cost: None,
            unstopped: false,
            moves_folder: false,
            gaps: BTreeMap::new(),
            lives: Vec::new(),
            counts: Header::default(),
        }
    }

    /// A thread that no watched one has started.
    pub fn first(&mut self, tid: i32, process: i32) {
        let first = Thread::first(tid, self.next_thread, self.world.folder(tid), self.world.clock(tid));
        self.next_thread += 1;
        self.threads.insert(tid, Thread { process, ..first });
    }

    /// Threads of a process that ran before, the first of them the process's own.
    pub(crate) fn adopt(&mut self, process: i32, threads: &[i32]) {
        for (number, tid) in threads.iter().enumerate() {
            self.first(*tid, process);
            if let Some(other) = self.threads.get(&threads[0]).filter(|_| number > 0) {
                let (files, folder, maps) = (other.files.clone(), other.folder.clone(), other.maps.clone());
                let own = self.thread(*tid);
                (own.files, own.folder, own.maps) = (files, folder, maps);
            }
            // What it did before does not count.
            self.thread(*tid).look_at_clock();
        }
    }

    /// A file that a process had open already, as if it were opened now.
    pub(crate) fn found_open(&mut self, tid: i32, file: &OpenFile) {
        let OpenFile { descriptor, place, flags, position } = file;
        let is_file = std::fs::symlink_metadata(std::ffi::OsStr::from_bytes(place))
            .is_ok_and(|found| found.is_file() || found.is_dir());
        let Some(path) = self.scope.resolve(b"", place).filter(|_| is_file) else { return };
        let kept = !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) as u64;
        let op = Op { path, flags: flags & kept, began: self.ops(), ..Op::new(Kind::Open) };
        self.ended_op(tid, op, (*descriptor).into(), place.clone());
        if *position > 0 {
            let object = self.thread(tid).files.borrow().object(*descriptor).unwrap_or(0);
            let seek = Op { object, offset: *position, began: self.ops(), ..Op::new(Kind::Seek) };
            self.write(tid, seek);
        }
    }

    pub(crate) fn tids(&self) -> Vec<i32> {
        self.threads.keys().copied().collect()
    }

    /// The end of the call that the thread is in is waited for.
    pub(crate) fn awaits(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.pending.is_some())
    }

    /// It is in a call that is recorded.
    pub(crate) fn is_in_operation(&self, tid: i32) -> bool {
        let pending = self.threads.get(&tid).and_then(|thread| thread.pending.as_ref());
        pending.is_some_and(|pending| matches!(pending.what, Resolved::Op(..)))
    }

    pub(crate) fn knows(&self, tid: i32) -> bool {
        self.threads.contains_key(&tid)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Times to think are written without stops, because some calls have none.
    pub(crate) fn has_unstopped_calls(&mut self) {
        self.stop_cost = Some(StopCost::new(Vec::new()));
    }

    pub fn begin(&mut self) {
        self.begun = Some(self.world.now());
    }

    /// Number of operations so far.
    pub(crate) fn ops(&self) -> u32 {
        self.writer.ops as u32
    }

    /// The call that the thread is in began earlier than it was looked at.
    pub(crate) fn began(&mut self, tid: i32, began: Option<u32>) {
        if let (Some(pending), Some(began)) = (&mut self.thread(tid).pending, began) {
            pending.began = began;
        }
    }

    /// The thread's folder is this one.
    pub(crate) fn set_cwd(&mut self, tid: i32, folder: Vec<u8>) {
        *self.thread(tid).folder.borrow_mut() = folder;
    }

    /// The descriptor is a watched file that was not seen to be opened.
    pub(crate) fn is_unseen_descriptor(&mut self, tid: i32, descriptor: i32, place: &[u8]) -> bool {
        let known = self.thread(tid).files.borrow().object(descriptor);
        known.is_none() && self.scope.covers(place)
    }

    /// The stopped thread goes on; `is_held` where it shares the recorder's processor.
    pub(crate) fn on_resume(&mut self, tid: i32, is_held: bool) {
        let now = self.world.now();
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.on_resume(now, is_held);
        }
    }

    /// No other thread can change its descriptors.
    pub(crate) fn has_files_alone(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| std::rc::Rc::strong_count(&thread.files) == 1)
    }

    /// The descriptor is a watched file.
    pub(crate) fn knows_file(&self, tid: i32, descriptor: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.files.borrow().object(descriptor).is_some())
    }

    /// No more need be known of what is written to the descriptor.
    pub(crate) fn needs_no_sample(&mut self, tid: i32, descriptor: i32) -> bool {
        let object = self.threads.get(&tid).and_then(|thread| thread.files.borrow().object(descriptor));
        object.is_none_or(|object| self.objects.get(object).class.is_some())
    }

    /// It is about to start a child that uses its memory and is no thread of its process.
    pub(crate) fn is_vfork(&self, tid: i32) -> bool {
        let flags = self.threads.get(&tid).map_or(0, |thread| thread.start);
        flags & libc::CLONE_VM as u64 != 0 && flags & libc::CLONE_THREAD as u64 == 0
    }

    /// A file is about to be opened, whose descriptor is not known yet.
    pub(crate) fn opens(&self, tid: i32) -> bool {
        let pending = self.threads.get(&tid).and_then(|thread| thread.pending.as_ref());
        pending.is_some_and(|pending| matches!(&pending.what, Resolved::Op(op, _) if op.kind == Kind::Open))
    }

    /// Adds to the thread's time to think.
    pub(crate) fn add_think_time(&mut self, tid: i32, ns: u64) {
        let thread = self.thread(tid);
        thread.think_ns = thread.think_ns.saturating_add(ns);
    }

    pub fn finish(self) -> ProgramRecord {
        let counts = Header {
            threads: self.next_thread,
            stop_cost_ns: if self.stop_cost.is_some() { 0 } else { stop_cost::of_gaps(self.calibration, &self.gaps) },
            wall_ns: self.begun.map_or(0, |begun| self.world.now().saturating_sub(begun)),
            ..self.counts
        };
        ProgramRecord { writer: self.writer, touched: self.touched, counts }
    }

    fn thread(&mut self, tid: i32) -> &mut Thread {
        self.threads.get_mut(&tid).expect("only threads that are known come here")
    }

    pub(crate) fn entered(&mut self, tid: i32, call: &Call) -> Resume {
        let cost = self.stop_ns();
        let thread = self.thread(tid);
        thread.greeted = false;
        let used = thread.think(cost);
        if self.begun.is_none() {
            return self.before_it_began(tid, used, call);
        }
        self.counts.stopped_calls += 1;
        self.asks(tid, call)
    }

    /// The library has stopped for itself. Where it asked just before, it did nothing meanwhile.
    pub(crate) fn on_preload_hello(&mut self, tid: i32, greeting: &Greeting) {
        let cost = self.stop_ns();
        let thread = self.thread(tid);
        if let Greeting::Loaded(start) = greeting {
            thread.think(cost);
            thread.think_ns = thread.think_ns.saturating_sub(start.map_or(0, |start| start.load_ns));
            if let (Some(cost), Some(start)) = (&mut self.stop_cost, start) {
                cost.measured_held(start.stop_ns);
            }
            return;
        }
        if !std::mem::replace(&mut thread.greeted, true) {
            thread.think(cost);
            return;
        }
        let (is_held, used) = (thread.stops.is_held(), thread.look_at_clock());
        if let Some(cost) = &mut self.stop_cost {
            cost.learn(used, is_held);
        }
    }

    /// What a stop costs; 0 where that is left to the replay.
    fn stop_ns(&self) -> StopNs {
        self.stop_cost.as_ref().map_or(StopNs::default(), StopCost::ns)
    }

    /// A call that was made without a stop, seen in the program itself; how many operations there
    /// are then.
    pub fn take(&mut self, mut made: LibraryCall, live: &Live) -> u32 {
        if self.knows(made.tid) {
            live.look_at(std::mem::take(&mut made.memory), made.begin);
            self.on_library_call(&made, || live.look_at_end(made.end));
            live.look_at_now();
        } else {
            self.counts.miss(|why| &mut why.unknown_thread);
        }
        self.ops()
    }

    /// `at_end` has the world look at its end.
    fn on_library_call(&mut self, made: &LibraryCall, at_end: impl FnOnce()) {
        self.unstopped = true;
        self.counts.unstopped_calls += 1;
        let cost = self.stop_ns();
        let thread = self.thread(made.tid);
        thread.greeted = false;
        thread.made_call(made, cost);
        let how = self.asks(made.tid, &made.call());
        at_end();
        if how == Resume::ToExit {
            self.began(made.tid, Some(made.began));
            self.ends(made.tid, made.result);
        }
        self.unstopped = false;
    }

    fn asks(&mut self, tid: i32, call: &Call) -> Resume {
        let Some(request) = request(call) else { return Resume::ToEntry };
        match request {
            Request::File(file) => self.file_call(tid, &file),
            Request::OpenHow(file, how) => self.open_how(tid, &file, how),
            Request::Close(descriptor) => self.close(tid, |tracer, files| {
                files.borrow_mut().close(descriptor, &mut tracer.objects).into_iter().collect()
            }),
            Request::CloseRange { first, last, only_marks } => self.close(tid, |tracer, files| {
                if only_marks {
                    files.borrow_mut().mark_range(first, last);
                    Vec::new()
                } else {
                    files.borrow_mut().close_range(first, last, &mut tracer.objects)
                }
            }),
            Request::CloseOnExec { descriptor, on } => {
                self.thread(tid).files.borrow_mut().mark(descriptor, on);
                Resume::ToEntry
            }
            Request::Duplicate { from, to, close_on_exec } => self.duplicate(tid, from, to, close_on_exec),
            Request::Folder => self.await_end(tid, Resolved::Folder),
            Request::Start { flags, flags_at } => self.start(tid, flags, flags_at),
            Request::Execute => {
                // Should it fail, what the program still reads through its memory is not seen.
                self.give_up_memory(tid);
                self.await_end(tid, Resolved::Execute)
            }
            Request::Wait => self.await_end(tid, Resolved::Wait),
            Request::Map { descriptor, length, offset, writes } => {
                let object = self.thread(tid).files.borrow().object(descriptor);
                match object {
                    Some(object) => self.await_end(tid, Resolved::Map { object, length, offset, writes }),
                    None => Resume::ToEntry,
                }
            }
            Request::Unmap { address, length } => {
                self.unmap(tid, address, address.saturating_add(length));
                Resume::ToEntry
            }
            Request::Affinity => Resume::ToEntry,
        }
    }

    fn before_it_began(&mut self, tid: i32, used: u64, call: &Call) -> Resume {
        if matches!(call.number, libc::SYS_execve) {
            return self.await_end(tid, Resolved::Execute);
        }
        self.calibration.push(used);
        Resume::ToExit
    }

    fn await_end(&mut self, tid: i32, what: Resolved) -> Resume {
        let began = self.writer.ops as u32;
        let entered = self.world.now();
        self.thread(tid).pending = Some(Pending { what, began, entered });
        Resume::ToExit
    }

    fn file_call(&mut self, tid: i32, call: &FileCall) -> Resume {
        let Some(thread) = self.threads.get(&tid) else { return Resume::ToEntry };
        // A call whose path depends on that is made with a stop.
        let moved = !self.touched.moved.is_empty() && !self.unstopped;
        let (scope, world) = (&mut *self.scope, self.world);
        let mut looker = Looker { tid, thread, scope, world, objects: &mut self.objects, moved };
        match looker.look(call) {
            LookResult::Watched(op, _) if call.assumed => {
                let began = self.writer.ops as u32;
                self.write(tid, Op { began, ..op });
                Resume::ToEntry
            }
            LookResult::Watched(op, place) => {
                self.moves_folder |= op.kind == Kind::Rename && is_folder(&place);
                self.await_end(tid, Resolved::Op(op, place))
            }
            LookResult::Elsewhere => {
                self.counts.elsewhere += 1;
                Resume::ToEntry
            }
            LookResult::Unknown => {
                self.counts.miss(|why| &mut why.partly_elsewhere);
                Resume::ToEntry
            }
            LookResult::NoFile => Resume::ToEntry,
        }
    }

    /// openat2(2): flags are the first number of what it points to.
    fn open_how(&mut self, tid: i32, call: &FileCall, how: u64) -> Resume {
        let op = Op { flags: self.word(tid, how), ..call.op };
        self.file_call(tid, &FileCall { op, ..*call })
    }

    /// A number in the program's memory; 0 where that cannot be read.
    fn word(&self, tid: i32, address: u64) -> u64 {
        let bytes = self.world.memory(tid, address, 8).and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    /// Files that nothing refers to any more are closed; that cannot fail, so its end is not looked
    /// at.
    fn close(
        &mut self,
        tid: i32,
        close: impl FnOnce(&mut Self, super::files::Shared<super::files::Descriptors>) -> Vec<Op>,
    ) -> Resume {
        let files = self.thread(tid).files.clone();
        let ops = close(self, files);
        self.write_all(tid, ops);
        Resume::ToEntry
    }

    fn write_all(&mut self, tid: i32, ops: Vec<Op>) {
        for op in ops {
            let began = self.writer.ops as u32;
            self.write(tid, Op { began, ..op });
        }
    }

    fn duplicate(&mut self, tid: i32, from: i32, to: Option<i32>, close_on_exec: bool) -> Resume {
        let files = self.thread(tid).files.clone();
        let object = files.borrow().object(from);
        match (object, to) {
            (Some(object), _) => self.await_end(tid, Resolved::Duplicate { from: object, close_on_exec }),
            // Something else comes in the place of a file.
            (None, Some(to)) => {
                self.close(tid, |tracer, files| files.borrow_mut().close(to, &mut tracer.objects).into_iter().collect())
            }
            (None, None) => Resume::ToEntry,
        }
    }

    fn start(&mut self, tid: i32, flags: u64, flags_at: u64) -> Resume {
        self.thread(tid).start = if flags_at == 0 { flags } else { self.word(tid, flags_at) };
        Resume::ToEntry
    }

    pub(crate) fn started(&mut self, tid: i32, new: i32) {
        let number = self.next_thread;
        self.next_thread += 1;
        let Some(parent) = self.threads.get(&tid) else { return };
        let child = parent.started(new, number, self.world.clock(new), &mut self.objects);
        self.threads.insert(new, child);
        let began = self.writer.ops as u32;
        self.write(tid, Op { other: number, began, ..Op::new(Kind::Spawn) });
    }

    /// A call has ended whose end is looked at.
    pub(crate) fn left(&mut self, tid: i32, result: i64) {
        self.thread(tid).look_at_clock();
        self.ends(tid, result);
    }

    fn ends(&mut self, tid: i32, result: i64) {
        let Some(Pending { what, began, entered }) = self.thread(tid).pending.take() else { return };
        match what {
            Resolved::Op(op, place) => {
                let took_ns = self.world.now().saturating_sub(entered);
                self.ended_op(tid, Op { began, took_ns, ..op }, result, place);
            }
            Resolved::Duplicate { from, close_on_exec } if result >= 0 => {
                let files = self.thread(tid).files.clone();
                let closed = files.borrow_mut().set(result as i32, from, close_on_exec, &mut self.objects);
                self.write_all(tid, closed.into_iter().collect());
            }
            Resolved::Folder if result == 0 => {
                let folder = self.thread(tid).folder.clone();
                *folder.borrow_mut() = self.world.folder(tid);
            }
            Resolved::Wait if result > 0 => self.joined(tid, result as i32, began),
            Resolved::Wait if result == 0 => self.joined_any(tid, began),
            Resolved::Map { object, length, offset, writes } if result > 0 => {
                self.map(
                    tid,
                    Mapping {
                        start: result as u64,
                        end: (result as u64).saturating_add(length),
                        offset,
                        object,
                        writes,
                    },
                );
            }
            _ => {}
        }
    }

    fn ended_op(&mut self, tid: i32, op: Op, result: i64, place: Vec<u8>) {
        // Results that say something: errors, and how many bytes went.
        let mut op = Op { result: if op.kind.moves_bytes() { result } else { result.min(0) }, ..op };
        if op.kind == Kind::Open && result >= 0 {
            op.object = self.objects.add(op.path, place);
            self.touched.opened.insert(op.path);
            let files = self.thread(tid).files.clone();
            let close_on_exec = op.flags & libc::O_CLOEXEC as u64 != 0;
            let closed = files.borrow_mut().set(result as i32, op.object, close_on_exec, &mut self.objects);
            self.write(tid, op);
            return self.write_all(tid, closed.into_iter().collect());
        }
        if result >= 0 {
            self.note(&op);
        }
        self.write(tid, op);
    }

    /// What a replay needs of the first tree.
    fn note(&mut self, op: &Op) {
        match op.kind {
            Kind::List => drop(self.touched.listed.insert(self.objects.get(op.object).path)),
            Kind::Rename => {
                self.touched.moved.insert(op.path);
                self.touched.opened.insert(op.path);
            }
            Kind::Link | Kind::Truncate if op.path != 0 => drop(self.touched.opened.insert(op.path)),
            _ => {}
        }
    }

    fn write(&mut self, tid: i32, op: Op) {
        if !op.is_within_a_file() {
            self.counts.miss(|why| &mut why.beyond_files);
            return;
        }
        let thread = self.thread(tid);
        let op = Op { thread: thread.number, think_ns: std::mem::take(&mut thread.think_ns), ..op };
        if op.kind.class() != Class::Thread && op.think_ns > 0 && self.stop_cost.is_none() {
            *self.gaps.entry(coarse(op.think_ns)).or_default() += 1;
        }
        self.writer.push(op);
    }

    /// wait4(2) returned a process that ended.
    fn joined(&mut self, tid: i32, pid: i32, began: u32) {
        for number in self.ended.remove(&pid).unwrap_or_default() {
            self.write(tid, Op { other: number, began, ..Op::new(Kind::Join) });
        }
    }

    /// waitid(2) does not return which one.
    fn joined_any(&mut self, tid: i32, began: u32) {
        let parent = self.thread(tid).process;
        let gone: Vec<i32> = self.ended.keys().copied().filter(|pid| *pid != parent).collect();
        gone.into_iter().for_each(|pid| self.joined(tid, pid, began));
    }

    fn map(&mut self, tid: i32, mapping: Mapping) {
        let maps = self.thread(tid).maps.clone();
        // What was mapped there is gone, and what its pages were cannot be seen any more.
        let gone = maps.borrow_mut().take(mapping.start, mapping.end, &mut self.objects);
        maps.borrow_mut().add(mapping, &mut self.objects);
        let closed = gone.iter().filter_map(|part| self.objects.release(part.object)).collect();
        self.write_all(tid, closed);
    }

    fn unmap(&mut self, tid: i32, start: u64, end: u64) {
        let maps = self.thread(tid).maps.clone();
        let parts = maps.borrow_mut().take(start, end, &mut self.objects);
        for part in parts {
            let mut ops = self.world.mapped(tid, &part).unwrap_or_else(|| {
                self.counts.miss(|why| &mut why.mapped);
                Vec::new()
            });
            ops.extend(self.objects.release(part.object));
            self.write_all(tid, ops);
        }
    }
}
