//! Makes other traces of a trace: its beginning, or several of it side by side.

use super::op::{Kind, Target};
use super::{Entry, EntryKind, Header, Op, PathNode, Paths, Trace, Writer};
use anyhow::{Result, anyhow, ensure};
use std::collections::HashMap;

/// The first operations alone.
pub fn cut(trace: &Trace, operations: usize) -> Result<Vec<u8>> {
    write(trace.header.clone(), &trace.paths, &trace.tree, trace.ops.iter().take(operations).copied())
}

/// As if the program had been started so often at once, each time in its own folders.
pub fn scale(trace: &Trace, copies: u32) -> Result<Vec<u8>> {
    ensure!(copies >= 1, "there must be one copy at least");
    let header = &trace.header;
    let many = |count: u32| count.checked_mul(copies).ok_or_else(|| anyhow!("so large a trace cannot be"));
    let (roots, threads) = (many(header.roots)?, many(header.threads)?);
    many(trace.paths.len() as u32)?;
    many(trace.ops.len() as u32)?;
    let mut paths = Paths::of(trace.paths.names.clone());
    let mut tree = Vec::new();
    for copy in 0..copies {
        let shift = Shift { paths: copy * trace.paths.len() as u32, threads: 0 };
        for node in &trace.paths.nodes {
            let name = if node.above == 0 { node.name + copy * header.roots } else { node.name };
            let node = PathNode { above: shift.path(node.above), name };
            paths.push(node).map_err(|why| anyhow!(why))?;
        }
        tree.extend(trace.tree.iter().map(|entry| shift.entry(entry)));
    }
    let mut objects = Objects::default();
    let ops = trace.ops.iter().flat_map(|op| (0..copies).map(move |copy| (copy, *op)));
    let ops = ops.map(|(copy, op)| {
        let shift = Shift { paths: copy * trace.paths.len() as u32, threads: copy * header.threads };
        objects.renumbered(copy, Op { began: op.began * copies, ..shift.op(&op) })
    });
    write(Header { roots, threads, ..header.clone() }, &paths, &tree, ops)
}

/// The times to think are without the cost of stops already.
fn write(header: Header, paths: &Paths, tree: &[Entry], ops: impl Iterator<Item = Op>) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    ops.for_each(|op| writer.push(op));
    writer.finish(&Header { stop_cost_ns: 0, ..header }, paths, tree)
}

/// What is added to the numbers of a copy.
struct Shift {
    paths: u32,
    threads: u32,
}

impl Shift {
    fn path(&self, path: u32) -> u32 {
        if path == 0 { 0 } else { path + self.paths }
    }

    fn entry(&self, entry: &Entry) -> Entry {
        let what = match entry.what {
            EntryKind::Link { to } => EntryKind::Link { to: to.map(|to| self.path(to)) },
            EntryKind::HardLink { to } => EntryKind::HardLink { to: self.path(to) },
            other => other,
        };
        Entry { path: self.path(entry.path), what }
    }

    fn op(&self, op: &Op) -> Op {
        let other = match op.kind.other() {
            Target::Path | Target::MaybePath => self.path(op.other),
            Target::Thread => op.other + self.threads,
            _ => op.other,
        };
        Op { thread: op.thread + self.threads, path: self.path(op.path), other, ..*op }
    }
}

/// Open files, numbered anew in the order of opening.
#[derive(Default)]
struct Objects {
    numbers: HashMap<(u32, u32), u32>,
}

impl Objects {
    fn renumbered(&mut self, copy: u32, op: Op) -> Op {
        if op.opens() {
            let number = self.numbers.len() as u32 + 1;
            self.numbers.insert((copy, op.object), number);
        }
        let new = |object: u32| self.numbers.get(&(copy, object)).copied().unwrap_or(0);
        let other = if matches!(op.kind, Kind::CopyRange | Kind::Clone) { new(op.other) } else { op.other };
        Op { object: new(op.object), other, ..op }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::example;
    use super::super::read;
    use super::*;

    #[test]
    fn a_beginning_is_a_trace() {
        let (trace, _) = example();
        for operations in 0..=trace.ops.len() + 1 {
            let cut = read(&cut(&trace, operations).unwrap()).unwrap();
            assert_eq!(cut.ops[..], trace.ops[..operations.min(trace.ops.len())]);
        }
    }

    #[test]
    fn copies_stand_side_by_side() {
        let (trace, _) = example();
        assert_eq!(read(&scale(&trace, 1).unwrap()).unwrap(), trace);
        let three = read(&scale(&trace, 3).unwrap()).unwrap();
        assert_eq!((three.ops.len(), three.tree.len()), (3 * trace.ops.len(), 3 * trace.tree.len()));
        assert_eq!((three.header.roots, three.header.threads, three.tree_bytes()), (3, 6, 30_000));
        assert!(three.paths.text(three.paths.len() as u32).starts_with("top2/"));
        assert!(scale(&trace, 0).is_err() && scale(&trace, u32::MAX).is_err());
    }
}
