//! What lay in the watched folders before a log began. The log does not show it, but what the
//! program found can only have been there: what it opened, looked at, renamed or removed, and had
//! not made itself.

use super::line::split;
use super::symbols::flags;
use crate::record::class::USUAL;
use crate::record::scope::Scope;
use crate::{Entry, EntryKind, Kind, Op, PathNode, Trace, Writer};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap};

/// What a line shows of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    kind: u32,
    bytes: u64,
    /// Where a link leads.
    to: Option<Vec<u8>>,
}

impl Fact {
    /// Reads `{st_mode=S_IFREG|0644, st_size=5, ...}`, and what readlink(2) returned.
    pub(crate) fn of(name: &str, arguments: &str) -> Option<Fact> {
        let words = split(arguments);
        if name.starts_with("readlink") {
            let at = if name == "readlink" { 1 } else { 2 };
            let to = words.get(at).filter(|word| !word.ends_with("...")).and_then(|word| super::line::unquoted(word));
            return Some(Fact { kind: libc::S_IFLNK, bytes: 0, to });
        }
        let field = |name: &str| {
            let value = arguments.split_once(name)?.1;
            flags(value.split([',', '}']).next()?)
        };
        let kind = field("st_mode=").or_else(|| field("stx_mode="))? as u32 & libc::S_IFMT;
        Some(Fact { kind, bytes: field("st_size=").or_else(|| field("stx_size=")).unwrap_or(0), to: None })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum PathKind {
    /// A file or a folder, which is not known yet.
    Something,
    Folder,
    File,
    Link(Option<u32>),
    Node,
}

/// What became of a path so far.
#[derive(Clone, Copy, PartialEq)]
enum Now {
    There,
    Gone,
}

struct Guess<'a> {
    scope: &'a mut Scope,
    first: BTreeMap<u32, (PathKind, u64)>,
    now: HashMap<u32, Now>,
    /// For paths that come from a rename: the path before.
    was: HashMap<u32, u32>,
    /// Their contents are the program's own by now.
    changed: std::collections::HashSet<u32>,
    /// Path and position, by open file.
    open: Vec<(u32, u64)>,
}

/// The trace, with what the program found.
pub(crate) fn with_first_tree(trace: Trace, scope: &mut Scope, facts: &BTreeMap<u32, Fact>) -> Result<Vec<u8>> {
    let roots: Vec<u32> = scope.roots().map(|(_, path)| path).collect();
    let mut guess = Guess {
        scope,
        first: roots.iter().map(|root| (*root, (PathKind::Folder, 0))).collect(),
        now: roots.iter().map(|root| (*root, Now::There)).collect(),
        was: HashMap::new(),
        changed: Default::default(),
        open: vec![(0, 0)],
    };
    for (number, op) in (0..).zip(&trace.ops) {
        guess.op(op, facts.get(&number));
    }
    let tree = guess.tree();
    let mut writer = Writer::default();
    trace.ops.iter().for_each(|op| writer.push(*op));
    writer.finish(&trace.header, &scope.numbering.paths, &tree)
}

fn what(found: PathKind, bytes: u64) -> EntryKind {
    match found {
        PathKind::Folder => EntryKind::Directory,
        PathKind::Link(to) => EntryKind::Link { to },
        PathKind::Node => EntryKind::Node,
        PathKind::Something | PathKind::File => EntryKind::File { bytes, class: USUAL },
    }
}

impl Guess<'_> {
    /// Without what would lie in no folder: a log can have gaps.
    fn tree(&self) -> Vec<Entry> {
        let mut folders = std::collections::HashSet::from([0]);
        let mut tree = Vec::new();
        for (path, (found, bytes)) in &self.first {
            if folders.contains(&self.scope.numbering.paths.node(*path).above) {
                folders.extend((*found == PathKind::Folder).then_some(*path));
                tree.push(Entry { path: *path, what: what(*found, *bytes) });
            }
        }
        tree
    }

    fn op(&mut self, op: &Op, fact: Option<&Fact>) {
        if op.opens() {
            self.open.push((op.path, 0));
        }
        match (op.failed(), op.object) {
            (true, _) => self.failed(op),
            (false, object) if object != 0 && op.kind != Kind::Open => self.on_file(op, fact),
            _ => self.on_path(op, fact),
        }
    }

    fn failed(&mut self, op: &Op) {
        let errno = -op.result as i32;
        match (op.kind, errno) {
            (Kind::MakeDir | Kind::Open | Kind::MakeNode | Kind::SymLink, libc::EEXIST) => {
                self.need(op.path, PathKind::Something)
            }
            (Kind::Link, libc::EEXIST) => self.need(op.other, PathKind::Something),
            (Kind::RemoveDir, libc::ENOTEMPTY) | (Kind::Open | Kind::Unlink, libc::EISDIR) if op.path != 0 => {
                self.need(op.path, PathKind::Folder)
            }
            (Kind::ReadLink, libc::EINVAL) => self.need(op.path, PathKind::Something),
            _ => {}
        }
    }

    fn on_path(&mut self, op: &Op, fact: Option<&Fact>) {
        let has = |flag: i32| op.flags & flag as u64 != 0;
        match op.kind {
            Kind::Open if has(libc::O_CREAT) => self.note_created(op.path),
            Kind::Open if has(libc::O_DIRECTORY) => self.need(op.path, PathKind::Folder),
            Kind::Open => {
                self.need(op.path, PathKind::Something);
                if has(libc::O_TRUNC) {
                    self.change(op.path);
                }
            }
            Kind::MakeDir | Kind::MakeNode | Kind::SymLink => self.note_created(op.path),
            Kind::RemoveDir => self.gone(op.path, PathKind::Folder),
            Kind::Unlink => self.gone(op.path, PathKind::Something),
            Kind::Rename => {
                self.gone(op.path, PathKind::Something);
                self.note_created(op.other);
                self.was.insert(op.other, op.path);
            }
            Kind::Link => {
                self.need(op.path, PathKind::Something);
                self.note_created(op.other);
            }
            Kind::Truncate => {
                self.need(op.path, PathKind::File);
                self.change(op.path);
            }
            Kind::ReadLink => {
                let to = fact.and_then(|fact| fact.to.as_deref()).and_then(|to| self.target(op.path, to));
                self.need(op.path, PathKind::Link(to));
            }
            _ if op.path != 0 => self.note_lookup(op.path, fact),
            _ => {}
        }
    }

    fn note_lookup(&mut self, path: u32, fact: Option<&Fact>) {
        let kind = fact.map_or(PathKind::Something, |fact| match fact.kind {
            libc::S_IFDIR => PathKind::Folder,
            libc::S_IFREG => PathKind::File,
            libc::S_IFLNK => PathKind::Link(None),
            _ => PathKind::Node,
        });
        self.need(path, kind);
        if let Some(fact) = fact.filter(|fact| fact.kind == libc::S_IFREG) {
            self.at_least(path, fact.bytes);
        }
    }

    fn on_file(&mut self, op: &Op, fact: Option<&Fact>) {
        let Some((path, position)) = self.open.get(op.object as usize).copied() else { return };
        let moved = op.result.max(0) as u64;
        let end = match op.kind {
            Kind::Read => position + moved,
            Kind::ReadAt => op.offset.saturating_add(moved),
            _ => 0,
        };
        match op.kind {
            _ if path == 0 => {}
            Kind::List => self.need(path, PathKind::Folder),
            Kind::Stat => self.note_lookup(path, fact),
            Kind::Read | Kind::ReadAt => {
                self.need(path, PathKind::File);
                self.at_least(path, end);
            }
            Kind::LinkObject => self.note_created(op.other),
            Kind::Write | Kind::WriteAt | Kind::Truncate | Kind::Allocate => self.change(path),
            Kind::CopyRange => {
                self.at_least(path, op.offset.saturating_add(moved));
                let to = self.open.get(op.other as usize).map_or(0, |(path, _)| *path);
                self.change(to);
            }
            _ => {}
        }
        let position = match op.kind {
            Kind::Read => end,
            Kind::Seek if op.flags == libc::SEEK_SET as u64 => op.offset,
            Kind::Seek if op.flags == libc::SEEK_CUR as u64 => position.saturating_add(op.offset),
            _ => position,
        };
        self.open[op.object as usize].1 = position;
    }

    /// It was there, or the program has made it.
    fn need(&mut self, path: u32, found: PathKind) {
        if path == 0 {
            return;
        }
        match self.now.get(&path) {
            Some(Now::Gone) => return,
            Some(Now::There) => return self.refine(path, found),
            None => {}
        }
        self.now.insert(path, Now::There);
        self.folder_of(path);
        let before = self.before(path);
        if before == path || !self.now.contains_key(&before) {
            self.first.insert(before, (found, 0));
            if before != path {
                self.now.insert(before, Now::Gone);
                self.folder_of(before);
            }
        }
        if before != path {
            self.was.insert(path, before);
        }
    }

    fn refine(&mut self, path: u32, found: PathKind) {
        let before = self.origin(path);
        if let Some((known, _)) = self.first.get_mut(&before) {
            let is_better =
                *known == PathKind::Something || *known == PathKind::Link(None) && matches!(found, PathKind::Link(_));
            if is_better {
                *known = found;
            }
        }
    }

    fn folder_of(&mut self, path: u32) {
        let above = self.scope.numbering.paths.node(path).above;
        if above != 0 {
            self.need(above, PathKind::Folder);
            // A name that another is below of is a folder.
            self.refine(above, PathKind::Folder);
        }
    }

    /// The path that something below a renamed folder had at first.
    fn before(&mut self, path: u32) -> u32 {
        let node = self.scope.numbering.paths.node(path);
        let above = if node.above == 0 { 0 } else { self.origin(node.above) };
        if above == node.above {
            return path;
        }
        self.scope.numbering.at(PathNode { above, name: node.name }).unwrap_or(path)
    }

    fn origin(&self, path: u32) -> u32 {
        let mut at = path;
        // A rename back and forth makes a circle.
        for _ in 0..64 {
            match self.was.get(&at) {
                Some(before) if *before != path => at = *before,
                _ => break,
            }
        }
        at
    }

    fn note_created(&mut self, path: u32) {
        if path == 0 {
            return;
        }
        self.folder_of(path);
        if self.now.insert(path, Now::There) != Some(Now::There) {
            self.was.remove(&path);
            self.changed.insert(path);
        }
    }

    fn gone(&mut self, path: u32, found: PathKind) {
        self.need(path, found);
        if path != 0 {
            self.now.insert(path, Now::Gone);
        }
    }

    fn change(&mut self, path: u32) {
        if path != 0 {
            self.need(path, PathKind::File);
            self.changed.insert(path);
        }
    }

    fn at_least(&mut self, path: u32, bytes: u64) {
        if self.changed.contains(&path) {
            return;
        }
        let before = self.origin(path);
        if let Some((_, known)) = self.first.get_mut(&before) {
            *known = (*known).max(bytes);
        }
    }

    /// Where a link leads, if that is a path that the program uses.
    fn target(&self, link: u32, to: &[u8]) -> Option<u32> {
        let numbering = &self.scope.numbering;
        if to.first() == Some(&b'/') {
            return self.scope.known(to);
        }
        let above = numbering.paths.node(link).above;
        to.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").try_fold(above, |at, part| {
            match part {
                _ if at == 0 => None,
                b".." => Some(numbering.paths.node(at).above).filter(|above| *above != 0),
                part => numbering.known_below(at, part),
            }
        })
    }
}
