//! In what order operations must come: threads of a recording become lanes, and an operation waits
//! for those of other lanes that used the same name, the same file or the same open file before it
//! (Weiss et al., SOSP 2013). What used nothing in common may overlap as it happens.

use pickfs_trace::{Kind, Op, Target, Trace};
use std::ops::Range;

/// A trace made ready: which thread does what, and what it waits for.
pub(crate) struct Schedule {
    /// Operations of each lane, in order.
    pub lanes: Vec<Vec<Step>>,
    /// What the steps wait for.
    pub waits: Vec<Wait>,
}

/// An operation by its number in the trace, and which of [`Schedule::waits`] come before it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub op: u32,
    pub waits: Range<u32>,
}

/// A lane must have done this number of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub lane: u32,
    pub steps: u32,
}

impl Schedule {
    pub(crate) fn of(trace: &Trace) -> Schedule {
        let lanes = lanes_of_threads(trace);
        let count = lanes.iter().max().map_or(1, |most| *most as usize + 1);
        let mut compiler = Compiler {
            trace,
            places: Vec::with_capacity(trace.ops.len()),
            resources: vec![
                Resource::default();
                2 * (trace.paths.len() + 1) + trace.ops.iter().filter(|op| op.opens()).count() + 1
            ],
            paths_of_objects: vec![0],
            started: vec![None; trace.header.threads as usize],
            last: vec![None; trace.header.threads as usize],
            seen: vec![vec![0; count]; count],
            before: Vec::new(),
        };
        let mut order = Schedule { lanes: vec![Vec::new(); count], waits: Vec::new() };
        for (number, op) in (0..).zip(&trace.ops) {
            let lane = lanes[op.thread as usize];
            let from = order.waits.len() as u32;
            order.waits.extend(compiler.waits(number, op, lane));
            let steps = &mut order.lanes[lane as usize];
            compiler.places.push(Wait { lane, steps: steps.len() as u32 + 1 });
            steps.push(Step { op: number, waits: from..order.waits.len() as u32 });
        }
        order
    }
}

/// A thread that began when another had ended takes its lane, so that there are no more lanes than
/// ran at once.
fn lanes_of_threads(trace: &Trace) -> Vec<u32> {
    let threads = trace.header.threads as usize;
    let (mut last, mut lanes) = (vec![0u32; threads], vec![u32::MAX; threads]);
    for (number, op) in (0..).zip(&trace.ops) {
        last[op.thread as usize] = number;
    }
    // The last operation of the thread that has each lane.
    let mut ends: Vec<u32> = Vec::new();
    for op in &trace.ops {
        let lane = &mut lanes[op.thread as usize];
        if *lane == u32::MAX {
            let free = ends.iter().position(|end| *end < op.began);
            *lane = free.unwrap_or(ends.len()) as u32;
            if free.is_none() {
                ends.push(0);
            }
            ends[*lane as usize] = last[op.thread as usize];
        }
    }
    lanes.into_iter().map(|lane| if lane == u32::MAX { 0 } else { lane }).collect()
}

/// The users of something: the last call that changed it, and the calls that read it since.
#[derive(Clone, Default)]
struct Resource {
    changed: Option<u32>,
    looked: Vec<u32>,
}

struct Compiler<'a> {
    trace: &'a Trace,
    /// The place of each operation so far.
    places: Vec<Wait>,
    /// Names of paths, contents of paths, open files.
    resources: Vec<Resource>,
    paths_of_objects: Vec<u32>,
    /// By thread: what started it, and its last operation.
    started: Vec<Option<u32>>,
    last: Vec<Option<u32>>,
    /// By lane: how many steps of each other lane it has waited for already.
    seen: Vec<Vec<u32>>,
    /// Scratch: operations that come before the one at hand.
    before: Vec<u32>,
}

impl Compiler<'_> {
    fn waits(&mut self, number: u32, op: &Op, lane: u32) -> Vec<Wait> {
        self.before.clear();
        self.threads(number, op);
        if op.opens() {
            self.paths_of_objects.push(op.path);
        }
        self.names(number, op);
        self.contents(number, op);
        self.objects(number, op);
        let mut waits: Vec<Wait> = Vec::new();
        for before in &self.before {
            let place = self.places[*before as usize];
            let seen = &mut self.seen[lane as usize][place.lane as usize];
            if place.lane != lane && place.steps > *seen {
                *seen = place.steps;
                waits.retain(|wait| wait.lane != place.lane);
                waits.push(place);
            }
        }
        waits
    }

    fn threads(&mut self, number: u32, op: &Op) {
        let thread = op.thread as usize;
        if self.last[thread].is_none() {
            self.before.extend(self.started[thread]);
        }
        self.last[thread] = Some(number);
        match op.kind {
            Kind::Spawn => self.started[op.other as usize] = Some(number),
            Kind::Join => self.before.extend(self.last[op.other as usize].filter(|last| *last < number)),
            _ => {}
        }
    }

    fn names(&mut self, number: u32, op: &Op) {
        use Kind::{Link, LinkObject, MakeDir, MakeNode, Open, RemoveDir, Rename, SymLink, Unlink};
        let makes = op.kind == Open && op.flags & libc::O_CREAT as u64 != 0;
        let changes = makes || matches!(op.kind, MakeDir | RemoveDir | Unlink | Rename | SymLink | MakeNode);
        if op.path != 0 && op.object == 0 || op.kind == Open {
            self.name(number, op.path, changes);
        }
        if matches!(op.kind, Rename | Link | LinkObject) {
            self.name(number, op.other, true);
        }
    }

    /// Its folders must be there, too.
    fn name(&mut self, number: u32, path: u32, changes: bool) {
        self.touch(number, 2 * path as usize, changes);
        let mut above = self.trace.paths.node(path).above;
        while above != 0 {
            self.touch(number, 2 * above as usize, false);
            above = self.trace.paths.node(above).above;
        }
    }

    fn contents(&mut self, number: u32, op: &Op) {
        use Kind::{
            Allocate, Chmod, Chown, Clone, CopyRange, MapWrite, Open, RemoveAttribute, SetAttribute, Times, Truncate,
            Write, WriteAt,
        };
        let cuts = op.kind == Open && op.flags & libc::O_TRUNC as u64 != 0;
        let changes = cuts
            || matches!(
                op.kind,
                Write
                    | WriteAt
                    | Truncate
                    | Allocate
                    | MapWrite
                    | Chmod
                    | Chown
                    | Times
                    | SetAttribute
                    | RemoveAttribute
            );
        let path = if op.object != 0 { self.path_of(op.object) } else { op.path };
        let names_only = matches!(op.kind, Kind::Close | Kind::List | Kind::Seek | Kind::Advise);
        if path != 0 && !names_only {
            // What is copied goes from the object to the other; what is cloned comes from the
            // other.
            self.touch(number, 2 * path as usize + 1, changes || op.kind == Clone);
        }
        if matches!(op.kind, CopyRange | Clone) {
            let other = self.path_of(op.other);
            self.touch(number, 2 * other as usize + 1, op.kind == CopyRange);
        }
    }

    fn objects(&mut self, number: u32, op: &Op) {
        use Kind::{Close, CopyRange, List, Open, Read, Seek, Write};
        let first = 2 * (self.trace.paths.len() + 1);
        let moves = matches!(op.kind, Close | CopyRange | List | Open | Read | Seek | Write);
        if op.object != 0 {
            self.touch(number, first + op.object as usize, moves);
        }
        if op.kind.other() == Target::Object {
            self.touch(number, first + op.other as usize, true);
        }
    }

    fn path_of(&self, object: u32) -> u32 {
        self.paths_of_objects.get(object as usize).copied().unwrap_or(0)
    }

    fn touch(&mut self, number: u32, resource: usize, changes: bool) {
        let resource = &mut self.resources[resource];
        self.before.extend(resource.changed.filter(|before| *before != number));
        if changes {
            self.before.extend(resource.looked.drain(..).filter(|before| *before != number));
            resource.changed = Some(number);
            return;
        }
        // The last one of each lane is enough.
        let lane = self.trace.ops[number as usize].thread;
        match resource.looked.iter_mut().find(|looked| self.trace.ops[**looked as usize].thread == lane) {
            Some(looked) => *looked = number,
            None => resource.looked.push(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_trace::{Header, Numbering};

    /// Operations on `top0/a` to `top0/d`, as `(thread, kind, path, other)`.
    fn order(ops: &[(u32, Kind, u32, u32)]) -> Schedule {
        let mut numbering = Numbering::default();
        let root = numbering.root(0);
        let a = numbering.below(root, b"a").unwrap();
        for name in [b"b", b"c"] {
            numbering.below(root, name);
        }
        numbering.below(a, b"d");
        let op = |(number, (thread, kind, path, other)): (u32, &(u32, Kind, u32, u32))| Op {
            thread: *thread,
            path: *path,
            other: *other,
            began: number,
            ..Op::new(*kind)
        };
        let header = Header { threads: 4, roots: 1, ..Header::default() };
        let ops = (0..).zip(ops).map(op).collect();
        Schedule::of(&Trace { header, paths: numbering.paths, tree: Vec::new(), ops })
    }

    fn waits(order: &Schedule, lane: usize, step: usize) -> Vec<(u32, u32)> {
        let Range { start, end } = order.lanes[lane][step].waits.clone();
        order.waits[start as usize..end as usize].iter().map(|wait| (wait.lane, wait.steps)).collect()
    }

    /// Both threads live to the end, so that neither takes the other's lane.
    const END: [(u32, Kind, u32, u32); 2] = [(0, Kind::SyncAll, 0, 0), (1, Kind::SyncAll, 0, 0)];

    #[test]
    fn what_a_name_is_used_for_keeps_its_order() {
        use Kind::{MakeDir, Stat, Unlink};
        let made = order(&[&[(0, MakeDir, 2, 0), (1, Stat, 5, 0)][..], &END].concat());
        assert_eq!(waits(&made, 1, 0), [(0, 1)]);
        let apart = order(&[&[(0, MakeDir, 3, 0), (1, Stat, 5, 0)][..], &END].concat());
        assert_eq!(waits(&apart, 1, 0), []);
        // Readers do not wait for each other; a removal waits for all, once.
        let looked = order(&[&[(0, Stat, 2, 0), (1, Stat, 2, 0), (1, Unlink, 2, 0)][..], &END].concat());
        assert_eq!((waits(&looked, 1, 0), waits(&looked, 1, 1)), (vec![], vec![(0, 1)]));
        let moved = order(&[&[(0, Kind::Rename, 2, 4), (1, Unlink, 5, 0), (1, Unlink, 4, 0)][..], &END].concat());
        assert_eq!((waits(&moved, 1, 0), waits(&moved, 1, 1)), (vec![(0, 1)], vec![]));
    }

    #[test]
    fn threads_wait_for_who_started_them_and_for_whom_they_await() {
        use Kind::{Join, Spawn, Stat};
        let order = order(&[(0, Spawn, 0, 1), (1, Stat, 2, 0), (1, Stat, 2, 0), (0, Join, 0, 1)]);
        assert_eq!(waits(&order, 1, 0), [(0, 1)]);
        assert_eq!(waits(&order, 0, 1), [(1, 2)]);
    }

    #[test]
    fn a_thread_that_begins_after_another_has_ended_takes_its_lane() {
        use Kind::Stat;
        let order = order(&[(0, Stat, 2, 0), (1, Stat, 2, 0), (0, Stat, 2, 0), (2, Stat, 2, 0), (3, Stat, 2, 0)]);
        assert_eq!(order.lanes.iter().map(Vec::len).collect::<Vec<_>>(), [4, 1]);
    }
}
