//! Writes a trace, an operation at a time: what is kept in memory meanwhile is a few bytes for
//! each.

use super::columns::{COLUMNS, Column, MAGIC, Sections};
use super::paths::Paths;
use super::{Entry, EntryKind, Header, Op, coarse};
use anyhow::Result;

/// The columns of operations, and what the next one is compared with: differences are small
/// numbers.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    columns: [Column; COLUMNS],
    pub ops: u64,
    last: Option<Op>,
}

impl Writer {
    pub fn push(&mut self, op: Op) {
        let last = self.last.unwrap_or(Op::new(super::Kind::Open));
        let [kind, thread, began, object, path, other, offset, length, flags, result, think, took] = &mut self.columns;
        let step = |now: u32, before: u32| i64::from(now) - i64::from(before);
        kind.push(op.kind as u64);
        thread.push_signed(step(op.thread, last.thread));
        began.push(self.ops - u64::from(op.began).min(self.ops));
        object.push_signed(step(op.object, last.object));
        path.push_signed(step(op.path, last.path));
        other.push(op.other.into());
        offset.push_signed(op.offset.wrapping_sub(last.end()) as i64);
        length.push(op.length);
        flags.push(op.flags);
        result.push_signed(op.result.wrapping_sub(op.usual_result()));
        think.push(coarse(op.think_ns));
        took.push(coarse(op.took_ns));
        self.last = Some(op);
        self.ops += 1;
    }

    /// The whole file.
    pub fn finish(&self, header: &Header, paths: &Paths, tree: &[Entry]) -> Result<Vec<u8>> {
        let header = serde_json::to_vec(header)?;
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&(header.len() as u32).to_le_bytes());
        out.extend_from_slice(&header);
        name_columns(paths, &mut out)?;
        tree_columns(tree, &mut out)?;
        for (column, id) in self.columns.iter().zip(Sections::FIRST_OF_OPS..) {
            column.write(id, &mut out)?;
        }
        let sum = xxhash_rust::xxh3::xxh3_64(&out);
        out.push(Sections::END);
        out.extend_from_slice(&sum.to_le_bytes());
        Ok(out)
    }
}

fn name_columns(paths: &Paths, out: &mut Vec<u8>) -> Result<()> {
    let [mut lengths, mut above, mut names] = [(); 3].map(|()| Column::default());
    paths.names.0.iter().for_each(|length| lengths.push(u64::from(*length) / 4));
    for (number, node) in (1..).zip(&paths.nodes) {
        above.push(number - u64::from(node.above));
        names.push_signed(number as i64 - i64::from(node.name));
    }
    lengths.write(Sections::LENGTHS, out)?;
    above.write(Sections::ABOVE, out)?;
    names.write(Sections::NAMES, out)
}

fn tree_columns(tree: &[Entry], out: &mut Vec<u8>) -> Result<()> {
    let [mut paths, mut kinds, mut values] = [(); 3].map(|()| Column::default());
    let mut last = 0;
    for entry in tree {
        paths.push_signed(i64::from(entry.path) - last);
        last = entry.path.into();
        let (kind, value) = numbers_of(entry.what);
        kinds.push(kind);
        values.push(value);
    }
    paths.write(Sections::TREE_PATHS, out)?;
    kinds.write(Sections::TREE_KINDS, out)?;
    values.write(Sections::TREE_VALUES, out)
}

/// The kind of an entry and its number; a file's kind says the class of its content too.
fn numbers_of(what: EntryKind) -> (u64, u64) {
    match what {
        EntryKind::Directory => (0, 0),
        EntryKind::Hollow { bytes } => (1, bytes),
        EntryKind::Link { to } => (2, to.unwrap_or(0).into()),
        EntryKind::HardLink { to } => (3, to.into()),
        EntryKind::Node => (4, 0),
        EntryKind::File { bytes, class } => (8 + u64::from(class), bytes),
    }
}
