//! Reads a trace. It comes from anybody: every number is held against its bounds before it is used,
//! and a complaint names the byte where it stands.

use super::columns::{COLUMNS, Cursor, MAGIC, Sections, Unpacked};
use super::op::{Kind, LARGEST, MOST_ERRNO, Op, Target};
use super::paths::{LONGEST_NAME, Names, PathNode, Paths};
use super::{CLASSES, Entry, EntryKind, Header, SCHEMA, Trace};
use anyhow::{Context, Result, bail, ensure};

/// A hundred million operations are a day of a busy machine, and 8 GiB of memory.
const MOST_OPS: u64 = 100_000_000;
const MOST_PATHS: u64 = 50_000_000;
const MOST_THREADS: u32 = 1 << 20;
const MOST_ROOTS: u32 = 1000;
const LONGEST_HEADER: u32 = 64 << 10;

/// Whether it begins as a trace does.
pub fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads and checks a whole trace.
pub fn read(bytes: &[u8]) -> Result<Trace> {
    ensure!(is_one(bytes), "byte 0 should begin `pktrace`: this is no trace of pickfs");
    let mut cursor = Cursor::new(bytes, MAGIC.len());
    let header = header(&mut cursor)?;
    let paths = paths(&mut cursor, header.roots)?;
    let tree = tree(&mut cursor, &paths)?;
    let ops = ops(&mut cursor, &header, &paths)?;
    let (end, sum) = (cursor.at(), xxhash_rust::xxh3::xxh3_64(&bytes[..cursor.at()]));
    ensure!(cursor.byte()? == Sections::END, "byte {end} should begin the end");
    ensure!(cursor.take(8)? == sum.to_le_bytes(), "byte {end}: the checksum is of other bytes; the file is damaged");
    ensure!(cursor.is_at_end(), "byte {}: something comes after the end", cursor.at());
    Ok(Trace { header, paths, tree, ops })
}

fn header(cursor: &mut Cursor) -> Result<Header> {
    let length = u32::from_le_bytes(cursor.take(4)?.try_into()?);
    ensure!(length <= LONGEST_HEADER, "byte 8: a header of {length} bytes; {LONGEST_HEADER} is the most");
    let begun = cursor.at();
    let header: Header = serde_json::from_slice(cursor.take(length.into())?)
        .with_context(|| format!("the header at byte {begun} cannot be read"))?;
    ensure!(
        header.schema == SCHEMA,
        "the trace has schema {}, and this pickfs reads {SCHEMA}: use the version that wrote it, {:?}",
        header.schema,
        header.made_by
    );
    ensure!(header.threads >= 1 && header.threads <= MOST_THREADS, "byte {begun}: impossible number of threads");
    ensure!(header.roots >= 1 && header.roots <= MOST_ROOTS, "byte {begun}: impossible number of folders");
    Ok(header)
}

fn paths(cursor: &mut Cursor, roots: u32) -> Result<Paths> {
    let mut lengths = cursor.column(Sections::LENGTHS, MOST_PATHS)?;
    let mut names = Names::default();
    for _ in 0..lengths.count() {
        names.0.push(lengths.next_below(u64::from(LONGEST_NAME) / 4 + 1, "a name's length")? as u16 * 4);
    }
    lengths.end()?;
    let begun = cursor.at();
    let mut above = cursor.column(Sections::ABOVE, MOST_PATHS)?;
    let mut parts = cursor.column(Sections::NAMES, MOST_PATHS)?;
    let count = above.count();
    ensure!(parts.count() == count, "byte {begun}: paths with more or fewer names than there are");
    let mut paths = Paths::of(names);
    let mut met = std::collections::HashSet::new();
    for number in 1..=count {
        let up = above.next_below(number + 1, "the distance of a path to its folder")?;
        let name = (number as i64).wrapping_sub(parts.next_signed()?);
        let node = PathNode { above: number as u32 - up, name: u32::try_from(name).unwrap_or(u32::MAX) };
        let bad = |why: &str| format!("byte {begun}: path {number}: {why}");
        ensure!(up >= 1, bad("it is its own folder"));
        ensure!(node.above != 0 || node.name < roots, bad("more folders than there are"));
        ensure!(met.insert(node), bad("it was there before"));
        paths.push(node).map_err(|why| anyhow::anyhow!(bad(why)))?;
    }
    above.end()?;
    parts.end()?;
    Ok(paths)
}

fn tree(cursor: &mut Cursor, paths: &Paths) -> Result<Vec<Entry>> {
    let begun = cursor.at();
    let mut columns = [Sections::TREE_PATHS, Sections::TREE_KINDS, Sections::TREE_VALUES]
        .into_iter()
        .map(|id| cursor.column(id, MOST_PATHS))
        .collect::<Result<Vec<Unpacked>>>()?;
    let [ids, kinds, values] = &mut columns[..] else { bail!("byte {begun}: a tree without its sections") };
    let count = ids.count();
    ensure!(kinds.count() == count && values.count() == count, "byte {begun}: sections of a tree that do not match");
    let (mut tree, mut last, mut made) = (Vec::new(), 0i64, FirstKinds(vec![None; paths.len() + 1]));
    for number in 0..count {
        last = last.wrapping_add(ids.next_signed()?);
        let path = u32::try_from(last).ok().filter(|path| *path >= 1 && *path as usize <= paths.len());
        let entry = path.and_then(|path| Some(Entry { path, what: what(kinds.next().ok()?, values.next().ok()?)? }));
        let entry = entry.with_context(|| format!("byte {begun}: entry {number} of the tree is impossible"))?;
        made.add(&entry, paths).map_err(|why| anyhow::anyhow!("byte {begun}: entry {number} of the tree {why}"))?;
        tree.push(entry);
    }
    columns.into_iter().try_for_each(Unpacked::end)?;
    Ok(tree)
}

fn what(kind: u64, value: u64) -> Option<EntryKind> {
    let path = u32::try_from(value).ok();
    Some(match kind {
        0 => EntryKind::Directory,
        1 if value <= LARGEST => EntryKind::Hollow { bytes: value },
        2 => EntryKind::Link { to: path.filter(|_| value != 0).or((value != 0).then_some(u32::MAX)) },
        3 => EntryKind::HardLink { to: path? },
        4 => EntryKind::Node,
        kind if (8..8 + u64::from(CLASSES)).contains(&kind) && value <= LARGEST => {
            EntryKind::File { bytes: value, class: (kind - 8) as u8 }
        }
        _ => return None,
    })
}

/// What is at each path of the first tree.
struct FirstKinds(Vec<Option<EntryKind>>);

impl FirstKinds {
    fn add(&mut self, entry: &Entry, paths: &Paths) -> Result<(), &'static str> {
        let at = |path: u32| self.0.get(path as usize).copied().flatten();
        let above = paths.node(entry.path).above;
        if at(entry.path).is_some() {
            return Err("was there before");
        }
        if above != 0 && at(above) != Some(EntryKind::Directory) {
            return Err("is in no folder");
        }
        if above == 0 && entry.what != EntryKind::Directory {
            return Err("should be a folder");
        }
        match entry.what {
            EntryKind::HardLink { to }
                if !matches!(at(to), Some(EntryKind::File { .. } | EntryKind::Hollow { .. } | EntryKind::Node)) =>
            {
                return Err("is a name of a file that is not there");
            }
            EntryKind::Link { to: Some(to) } if to as usize > paths.len() => {
                return Err("leads to a path that is not there");
            }
            _ => {}
        }
        self.0[entry.path as usize] = Some(entry.what);
        Ok(())
    }
}

fn ops(cursor: &mut Cursor, header: &Header, paths: &Paths) -> Result<Vec<Op>> {
    let begun = cursor.at();
    let mut columns = Vec::with_capacity(COLUMNS);
    for id in (Sections::FIRST_OF_OPS..).take(COLUMNS) {
        columns.push(cursor.column(id, MOST_OPS)?);
    }
    let count = columns[0].count();
    ensure!(columns.iter().all(|column| column.count() == count), "byte {begun}: sections that do not match");
    let mut ops: Vec<Op> = Vec::new();
    let mut check = Check { threads: header.threads, paths: paths.len() as u32, open: vec![false] };
    for number in 0..count {
        let op = op(&mut columns, ops.last(), number, header.stop_cost_ns)
            .and_then(|op| check.op(&op, number).map(|()| op))
            .with_context(|| format!("byte {begun}: operation {number} cannot be"))?;
        ops.push(op);
    }
    columns.into_iter().try_for_each(Unpacked::end)?;
    Ok(ops)
}

fn op(columns: &mut [Unpacked], last: Option<&Op>, number: u64, stop_cost: u64) -> Result<Op> {
    let [kind, thread, began, object, path, other, offset, length, flags, result, think, took] = columns else {
        bail!("columns are missing");
    };
    let last = last.copied().unwrap_or(Op::new(Kind::Open));
    let step = |column: &mut Unpacked, before: u32| -> Result<u32> {
        Ok(u32::try_from(i64::from(before).wrapping_add(column.next_signed()?))?)
    };
    let kind = kind.next_below(Kind::ALL.len() as u64, "a kind")?;
    let mut op = Op {
        thread: step(thread, last.thread)?,
        began: (number - u64::from(began.next_below(number + 1, "the operations meanwhile")?)) as u32,
        object: step(object, last.object)?,
        path: step(path, last.path)?,
        other: u32::try_from(other.next()?)?,
        offset: last.end().wrapping_add(offset.next_signed()? as u64),
        length: length.next()?,
        flags: flags.next()?,
        think_ns: think.next()?.saturating_sub(stop_cost),
        took_ns: took.next()?,
        ..Op::new(Kind::ALL[kind as usize])
    };
    op.result = result.next_signed()?.wrapping_add(op.usual_result());
    Ok(op)
}

/// What an operation refers to, and whether that is there.
struct Check {
    threads: u32,
    paths: u32,
    /// By the number of an open file.
    open: Vec<bool>,
}

impl Check {
    fn op(&mut self, op: &Op, number: u64) -> Result<()> {
        ensure!(op.thread < self.threads, "thread {} of {}", op.thread, self.threads);
        ensure!(u64::from(op.began) <= number, "it began after it ended");
        ensure!(op.is_within_a_file(), "an offset or a length above {LARGEST}");
        ensure!(op.result >= -MOST_ERRNO, "no error has the number {}", op.result.wrapping_neg());
        match op.kind.target() {
            Target::Path if op.kind != Kind::Open => ensure!(op.object == 0, "an open file where a path is meant"),
            Target::Object => ensure!(self.is_open(op.object), "file {} is not open", op.object),
            Target::Either if op.object != 0 => ensure!(self.is_open(op.object), "file {} is not open", op.object),
            _ => {}
        }
        let needs_path = op.kind.target() == Target::Path || op.kind.target() == Target::Either && op.object == 0;
        ensure!(!needs_path || op.path >= 1, "a path is missing");
        ensure!(op.path <= self.paths, "path {} of {}", op.path, self.paths);
        self.other(op)?;
        match op.kind {
            Kind::Open if !op.failed() => {
                ensure!(op.object as usize == self.open.len(), "the next open file is number {}", self.open.len());
                self.open.push(true);
            }
            Kind::Open => ensure!(op.object == 0, "an open file of a call that failed"),
            Kind::Close => self.open[op.object as usize] = false,
            _ => {}
        }
        Ok(())
    }

    fn other(&self, op: &Op) -> Result<()> {
        match op.kind.other() {
            Target::Object => ensure!(self.is_open(op.other), "file {} is not open", op.other),
            Target::Path => ensure!(op.other >= 1 && op.other <= self.paths, "path {} of {}", op.other, self.paths),
            Target::MaybePath => ensure!(op.other <= self.paths, "path {} of {}", op.other, self.paths),
            Target::Thread => ensure!(op.other < self.threads, "thread {} of {}", op.other, self.threads),
            Target::Nothing | Target::Either => ensure!(op.other == 0, "a number that means nothing"),
        }
        Ok(())
    }

    fn is_open(&self, object: u32) -> bool {
        self.open.get(object as usize).copied().unwrap_or(false)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::{Numbering, Writer};
    use super::*;

    /// Two threads; every kind of number is somewhere.
    pub(crate) fn example() -> (Trace, Vec<u8>) {
        let mut numbering = Numbering::default();
        let root = numbering.root(0);
        let folder = numbering.below(root, b"folder").unwrap();
        let file = numbering.below(folder, b"file.c").unwrap();
        let new = numbering.below(folder, b"new").unwrap();
        let tree = vec![
            Entry { path: root, what: EntryKind::Directory },
            Entry { path: folder, what: EntryKind::Directory },
            Entry { path: file, what: EntryKind::File { bytes: 10_000, class: 2 } },
        ];
        let op = |kind| Op::new(kind);
        let ops = vec![
            Op { path: file, object: 1, took_ns: 1 << 12, ..op(Kind::Open) },
            Op { other: 1, ..op(Kind::Spawn) },
            Op { object: 1, length: 4096, result: 4096, began: 1, think_ns: 640, ..op(Kind::Read) },
            Op { thread: 1, path: new, object: 2, flags: 0o101, began: 2, ..op(Kind::Open) },
            Op { thread: 1, object: 2, length: 4096, result: 4096, began: 4, flags: 1, ..op(Kind::Write) },
            Op { path: new, result: -2, began: 3, ..op(Kind::Unlink) },
            Op { object: 1, began: 6, ..op(Kind::Close) },
        ];
        let header = Header { schema: SCHEMA, roots: 1, threads: 2, ..Header::default() };
        let mut writer = Writer::default();
        ops.iter().for_each(|op| writer.push(*op));
        let bytes = writer.finish(&header, &numbering.paths, &tree).unwrap();
        (Trace { header, paths: numbering.paths, tree, ops }, bytes)
    }

    #[test]
    fn what_is_written_is_read() {
        let (trace, bytes) = example();
        assert_eq!(read(&bytes).unwrap(), trace);
    }

    #[test]
    fn what_is_cut_off_or_turned_is_refused_with_its_place() {
        let (_, bytes) = example();
        for end in 0..bytes.len() {
            let error = format!("{:#}", read(&bytes[..end]).unwrap_err());
            assert!(error.contains("byte"), "{end}: {error}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(read(&damaged).is_err(), "{at}");
        }
        assert!(read(&[bytes, vec![0]].concat()).is_err());
    }

    #[test]
    fn what_refers_to_nothing_is_refused() {
        let (trace, _) = example();
        type Damage = fn(&mut Trace);
        let rows: [(&str, Damage); 10] = [
            ("thread 2", |trace| trace.ops[2].thread = 2),
            ("not open", |trace| trace.ops[2].object = 2),
            ("not open", |trace| trace.ops.push(Op { object: 1, ..Op::new(Kind::Read) })),
            ("path 9", |trace| trace.ops[5].path = 9),
            ("path is missing", |trace| trace.ops[5].path = 0),
            ("next open file", |trace| trace.ops[3].object = 4),
            ("thread 7", |trace| trace.ops[1].other = 7),
            ("above", |trace| trace.ops[4].length = u64::MAX),
            ("in no folder", |trace| {
                trace.tree.remove(1);
            }),
            ("no error", |trace| trace.ops[5].result = -5000),
        ];
        for (says, damage) in rows {
            let mut trace = trace.clone();
            damage(&mut trace);
            let mut writer = Writer::default();
            trace.ops.iter().for_each(|op| writer.push(*op));
            let bytes = writer.finish(&trace.header, &trace.paths, &trace.tree).unwrap();
            let error = format!("{:#}", read(&bytes).expect_err(says));
            assert!(error.contains(says) && error.contains("byte"), "{says}: {error}");
        }
    }
}
