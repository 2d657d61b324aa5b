//! A call on files, with its arguments followed into the program's memory: which watched file it is
//! about.

use super::calls::{FileCall, ITSELF, Length, Place};
use super::class::{SAMPLE, SMALLEST_SAMPLE, class_of};
use super::files::Objects;
use super::scope::Scope;
use super::threads::Thread;
use super::world::World;
use crate::{Kind, Op, attribute};

/// What came of looking at a call.
pub(crate) enum LookResult {
    Watched(Op, Vec<u8>),
    /// It is about a file that is not watched.
    Elsewhere,
    /// It is about a watched file, and cannot be written down.
    Unknown,
    /// It is about no file at all, such as a pipe.
    NoFile,
}

/// Looks at the arguments of threads' calls.
pub(crate) struct Looker<'a> {
    pub tid: i32,
    pub thread: &'a Thread,
    pub scope: &'a mut Scope,
    pub world: &'a dyn World,
    pub objects: &'a mut Objects,
    /// Some folder has been renamed, so that what is open may lie elsewhere now.
    pub moved: bool,
}

/// A file that a call names.
enum FileOperand {
    Object(u32),
    Path(u32, Vec<u8>),
    /// Not watched; where it lies, if that is known.
    Elsewhere(Vec<u8>),
    NoFile,
}

impl Looker<'_> {
    pub(crate) fn look(&mut self, call: &FileCall) -> LookResult {
        let mut op = call.op;
        let named = self.named(call.place);
        let second = self.named(call.second);
        let (named, second) = match op.kind {
            Kind::Rename | Kind::Link => self.brought(named, second),
            _ => (named, second),
        };
        if !self.lengths(&mut op, call) {
            return LookResult::NoFile;
        }
        if matches!(op.kind, Kind::CopyRange | Kind::Clone) {
            return self.between(op, call, named, second);
        }
        let place = match named {
            FileOperand::Elsewhere(_) => return LookResult::Elsewhere,
            FileOperand::NoFile if call.place != Place::Nothing => return LookResult::NoFile,
            FileOperand::NoFile => Vec::new(),
            FileOperand::Object(object) => {
                op.object = object;
                Vec::new()
            }
            FileOperand::Path(path, place) => {
                op.path = path;
                place
            }
        };
        if op.object != 0 && op.kind == Kind::Link {
            op = Op { kind: Kind::LinkObject, ..op };
        }
        match second {
            FileOperand::Path(path, _) => op.other = path,
            FileOperand::Elsewhere(_) => return LookResult::Unknown,
            // A wrong address, which changes nothing.
            FileOperand::NoFile if call.second != Place::Nothing => return LookResult::NoFile,
            _ => {}
        }
        self.details(&mut op, call);
        LookResult::Watched(op, place)
    }

    /// A name that is moved between watched and other folders: the other one stands for a name
    /// outside of the watched ones.
    fn brought(&mut self, from: FileOperand, to: FileOperand) -> (FileOperand, FileOperand) {
        match (from, to) {
            (FileOperand::Elsewhere(from), to @ FileOperand::Path(..)) => match self.scope.stand_in(&from, true) {
                Some(path) => (FileOperand::Path(path, from), to),
                None => (FileOperand::Elsewhere(from), to),
            },
            (from @ FileOperand::Path(..), FileOperand::Elsewhere(to)) => match self.scope.stand_in(&to, false) {
                Some(path) => (from, FileOperand::Path(path, to)),
                None => (from, FileOperand::Elsewhere(to)),
            },
            other => other,
        }
    }

    fn named(&mut self, place: Place) -> FileOperand {
        match place {
            Place::Nothing => FileOperand::NoFile,
            Place::Descriptor(descriptor) => self.descriptor(descriptor),
            Place::PathOrSelf { folder, address } => match self.world.text(self.tid, address) {
                Some(path) if !path.is_empty() => self.path(folder, &path),
                _ => self.descriptor(folder),
            },
            Place::Path { folder, address } => match self.world.text(self.tid, address) {
                Some(path) if !path.is_empty() => self.path(folder, &path),
                _ => FileOperand::NoFile,
            },
        }
    }

    fn descriptor(&self, descriptor: i32) -> FileOperand {
        self.thread.files.borrow().object(descriptor).map_or(FileOperand::NoFile, FileOperand::Object)
    }

    fn path(&mut self, folder: i32, path: &[u8]) -> FileOperand {
        let Some(base) = self.base(folder, path) else { return FileOperand::Elsewhere(Vec::new()) };
        match self.scope.resolve(&base, path) {
            Some(number) => FileOperand::Path(number, self.scope.absolute(&base, path)),
            None => FileOperand::Elsewhere(self.scope.absolute(&base, path)),
        }
    }

    /// The folder that a path starts from; none where it is no watched one.
    fn base(&mut self, folder: i32, path: &[u8]) -> Option<Vec<u8>> {
        if path.first() == Some(&b'/') {
            return Some(Vec::new());
        }
        if folder == libc::AT_FDCWD {
            return if self.moved {
                Some(self.world.folder(self.tid))
            } else {
                Some(self.thread.folder.borrow().clone())
            };
        }
        let object = self.thread.files.borrow().object(folder);
        match object {
            Some(object) if !self.moved => Some(self.objects.get(object).place.clone()),
            // A folder above a watched one, or one that was renamed.
            _ => Some(self.world.descriptor(self.tid, folder)).filter(|place| place.first() == Some(&b'/')),
        }
    }

    /// Numbers that stand in the program's memory; false where they cannot be read.
    fn lengths(&self, op: &mut Op, call: &FileCall) -> bool {
        match call.length {
            Length::Given => true,
            Length::Vectors { address, count } => {
                let Some(bytes) = self.memory(address, 16 * count.min(1024) as usize) else { return false };
                op.length = bytes.chunks_exact(16).map(|vector| word(&vector[8..])).fold(0, u64::saturating_add);
                true
            }
            Length::Offsets { from, to } => {
                let number = |address| self.memory(address, 8).map(|bytes| word(&bytes));
                let (from, to) = ((from != 0).then(|| number(from)), (to != 0).then(|| number(to)));
                op.flags |= u64::from(from.is_some()) | u64::from(to.is_some()) << 1 | to.flatten().unwrap_or(0) << 2;
                op.offset = from.flatten().unwrap_or(0);
                true
            }
        }
    }

    /// Bytes that go from one file to another. Where only one of them is watched, it is read or
    /// written.
    fn between(&self, op: Op, call: &FileCall, named: FileOperand, second: FileOperand) -> LookResult {
        let watched = |op| LookResult::Watched(op, Vec::new());
        if op.kind == Kind::Clone {
            return self.clone_of(op, call, named, second);
        }
        let (has_from, has_to) = (op.flags & 1 != 0, op.flags & 2 != 0);
        let to = if has_to { op.flags >> 2 } else { 0 };
        match (named, second) {
            (FileOperand::Object(from), FileOperand::Object(to)) => watched(Op { object: from, other: to, ..op }),
            (FileOperand::Object(object), _) => {
                let kind = if has_from { Kind::ReadAt } else { Kind::Read };
                watched(Op { kind, object, flags: 0, ..op })
            }
            (_, FileOperand::Object(object)) => {
                let kind = if has_to { Kind::WriteAt } else { Kind::Write };
                watched(Op { kind, object, offset: to, flags: u64::from(super::class::USUAL), ..op })
            }
            _ => LookResult::NoFile,
        }
    }

    /// ioctl(2) names the source by number; a part by `struct file_clone_range`.
    fn clone_of(&self, op: Op, call: &FileCall, named: FileOperand, second: FileOperand) -> LookResult {
        let part = if call.data == 0 { None } else { self.memory(call.data, 32) };
        let source = match &part {
            Some(part) => self.descriptor(word(part) as i32),
            None => second,
        };
        let number = |at: usize| part.as_ref().map_or(0, |part| word(&part[8 * at..]));
        match (named, source) {
            (FileOperand::Object(object), FileOperand::Object(other)) => LookResult::Watched(
                Op { object, other, offset: number(1), length: number(2), flags: number(3), ..op },
                Vec::new(),
            ),
            (FileOperand::Object(_), _) => LookResult::Unknown,
            _ => LookResult::NoFile,
        }
    }

    /// What else must be known of some kinds.
    fn details(&mut self, op: &mut Op, call: &FileCall) {
        match op.kind {
            Kind::Write | Kind::WriteAt => op.flags = self.class(op, call).into(),
            Kind::SymLink => {
                let to = self.world.text(self.tid, call.data).unwrap_or_default();
                let place = self.thread.folder.borrow().clone();
                let link = match call.place {
                    Place::Path { folder, address } => (folder, self.world.text(self.tid, address).unwrap_or_default()),
                    _ => (libc::AT_FDCWD, Vec::new()),
                };
                let base = self.base(link.0, &link.1).unwrap_or(place);
                let full = self.scope.absolute(&base, &link.1);
                let folder = full.iter().rposition(|byte| *byte == b'/').map_or(&full[..0], |end| &full[..end]);
                op.other = self.scope.resolve(folder, &to).unwrap_or(0);
                op.length = to.len() as u64;
            }
            Kind::GetAttribute | Kind::SetAttribute | Kind::RemoveAttribute => {
                let name = self.world.text(self.tid, call.data).unwrap_or_default();
                let numbering = &mut self.scope.numbering;
                op.flags = attribute::code(&name, || numbering.name(&name));
            }
            Kind::Chown | Kind::Stat => op.flags &= ITSELF,
            _ => {}
        }
    }

    /// How well what is written can be compressed: looked at once for each file.
    fn class(&mut self, op: &Op, call: &FileCall) -> u8 {
        if let Some(class) = self.objects.get(op.object).class {
            return class;
        }
        if op.length < SMALLEST_SAMPLE as u64 || call.data == 0 {
            return super::class::USUAL;
        }
        let sample = self.memory(call.data, op.length.min(SAMPLE as u64) as usize).unwrap_or_default();
        let class = class_of(&sample);
        self.objects.get(op.object).class = Some(class);
        class
    }

    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        self.world.memory(self.tid, address, length)
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes[..8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
