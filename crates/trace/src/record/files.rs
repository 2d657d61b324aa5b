//! Which descriptor of which process is which open file, as the kernel's own tables have it.

use crate::{Kind, Op};
use foldhash::HashMap;
use std::cell::RefCell;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

/// A descriptor: an open file, and whether it is closed when another program is executed.
#[derive(Clone, Copy, Debug)]
struct Slot {
    object: u32,
    close_on_exec: bool,
}

/// The descriptors that threads share.
#[derive(Debug, Default)]
pub(crate) struct Descriptors(HashMap<i32, Slot>);

pub(crate) type Shared<T> = Rc<RefCell<T>>;

/// One part of a mapping of a file.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub object: u32,
    /// What is written to memory goes to the file.
    pub writes: bool,
}

/// A file that was open already.
pub(crate) struct OpenFile {
    pub descriptor: i32,
    pub place: Vec<u8>,
    /// open(2)'s, without flags that make or cut it.
    pub flags: u64,
    pub position: u64,
}

/// An open file: descriptors and mappings that refer to it, in all processes.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    references: u32,
    /// 0 where it has none.
    pub path: u32,
    /// Where it lies, for what is opened from it on.
    pub place: Vec<u8>,
    /// How well what is written can be compressed, once that is known.
    pub class: Option<u8>,
}

/// All open files by number; the first is 1.
#[derive(Debug, Default)]
pub(crate) struct Objects(Vec<Object>);

impl Objects {
    pub(crate) fn add(&mut self, path: u32, place: Vec<u8>) -> u32 {
        self.0.push(Object { references: 0, path, place, class: None });
        self.0.len() as u32
    }

    pub(crate) fn get(&mut self, object: u32) -> &mut Object {
        &mut self.0[object as usize - 1]
    }

    pub(crate) fn refer(&mut self, object: u32) {
        self.get(object).references += 1;
    }

    /// The call that closes it, where nothing else refers to it.
    pub(crate) fn release(&mut self, object: u32) -> Option<Op> {
        let found = self.get(object);
        found.references = found.references.saturating_sub(1);
        (found.references == 0).then(|| Op { object, ..Op::new(Kind::Close) })
    }
}

impl Descriptors {
    pub(crate) fn object(&self, descriptor: i32) -> Option<u32> {
        self.0.get(&descriptor).map(|slot| slot.object)
    }

    /// What becomes of the file that the descriptor was before.
    pub(crate) fn set(
        &mut self,
        descriptor: i32,
        object: u32,
        close_on_exec: bool,
        objects: &mut Objects,
    ) -> Option<Op> {
        objects.refer(object);
        let before = self.0.insert(descriptor, Slot { object, close_on_exec });
        before.and_then(|slot| objects.release(slot.object))
    }

    pub(crate) fn close(&mut self, descriptor: i32, objects: &mut Objects) -> Option<Op> {
        self.0.remove(&descriptor).and_then(|slot| objects.release(slot.object))
    }

    pub(crate) fn mark(&mut self, descriptor: i32, close_on_exec: bool) {
        if let Some(slot) = self.0.get_mut(&descriptor) {
            slot.close_on_exec = close_on_exec;
        }
    }

    pub(crate) fn mark_range(&mut self, first: u32, last: u32) {
        let inside = |descriptor: &i32| (first..=last).contains(&(*descriptor as u32));
        self.0.iter_mut().filter(|(descriptor, _)| inside(descriptor)).for_each(|(_, slot)| slot.close_on_exec = true);
    }

    pub(crate) fn close_range(&mut self, first: u32, last: u32, objects: &mut Objects) -> Vec<Op> {
        self.close_all(|descriptor, _| (first..=last).contains(&(descriptor as u32)), objects)
    }

    pub(crate) fn executed(&mut self, objects: &mut Objects) -> Vec<Op> {
        self.close_all(|_, slot| slot.close_on_exec, objects)
    }

    pub(crate) fn ended(&mut self, objects: &mut Objects) -> Vec<Op> {
        self.close_all(|_, _| true, objects)
    }

    fn close_all(&mut self, which: impl Fn(i32, &Slot) -> bool, objects: &mut Objects) -> Vec<Op> {
        let chosen = self.0.iter().filter(|(descriptor, slot)| which(**descriptor, slot));
        let mut chosen: Vec<i32> = chosen.map(|(descriptor, _)| *descriptor).collect();
        chosen.sort_unstable();
        chosen.into_iter().filter_map(|descriptor| self.close(descriptor, objects)).collect()
    }

    /// What a child has that does not share them.
    pub(crate) fn copied(&self, objects: &mut Objects) -> Descriptors {
        self.0.values().for_each(|slot| objects.refer(slot.object));
        Descriptors(self.0.clone())
    }
}

/// Parts of files that a process sees in its memory.
#[derive(Debug, Default)]
pub(crate) struct Mappings(Vec<Mapping>);

impl Mappings {
    pub(crate) fn add(&mut self, mapping: Mapping, objects: &mut Objects) {
        objects.refer(mapping.object);
        self.0.push(mapping);
    }

    /// Takes a range of addresses away; the parts of mappings that were there. Each still has its
    /// reference, also where a part of the same mapping stays.
    pub(crate) fn take(&mut self, start: u64, end: u64, objects: &mut Objects) -> Vec<Mapping> {
        let (mut kept, mut taken) = (Vec::new(), Vec::new());
        for mapping in self.0.drain(..) {
            let part = |from: u64, to: u64| {
                let (from, to) = (mapping.start.max(from), mapping.end.min(to));
                let offset = mapping.offset.saturating_add(from.saturating_sub(mapping.start));
                (from < to).then_some(Mapping { start: from, end: to, offset, ..mapping })
            };
            let parts = [part(0, start), part(start, end), part(end, u64::MAX)];
            // One reference is there already.
            parts.iter().flatten().skip(1).for_each(|part| objects.refer(part.object));
            let [before, inside, after] = parts;
            kept.extend(before.into_iter().chain(after));
            taken.extend(inside);
        }
        self.0 = kept;
        taken
    }

    pub(crate) fn copied(&self, objects: &mut Objects) -> Mappings {
        self.0.iter().for_each(|mapping| objects.refer(mapping.object));
        Mappings(self.0.clone())
    }
}

pub(crate) fn is_folder(place: &[u8]) -> bool {
    std::fs::symlink_metadata(std::ffi::OsStr::from_bytes(place)).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_closed_when_nothing_refers_to_it() {
        let (mut objects, mut first) = (Objects::default(), Descriptors::default());
        let file = objects.add(1, Vec::new());
        assert!(first.set(3, file, false, &mut objects).is_none());
        assert!(first.set(4, file, true, &mut objects).is_none());
        let mut child = first.copied(&mut objects);
        assert!(first.ended(&mut objects).is_empty());
        assert!(child.executed(&mut objects).is_empty() && child.object(4).is_none());
        assert_eq!(child.close(3, &mut objects).map(|op| (op.kind, op.object)), Some((Kind::Close, file)));
    }

    #[test]
    fn a_descriptor_that_is_given_again_closes_what_it_was() {
        let (mut objects, mut table) = (Objects::default(), Descriptors::default());
        let [one, two] = [1, 2].map(|path| objects.add(path, Vec::new()));
        table.set(3, one, false, &mut objects);
        assert_eq!(table.set(3, two, false, &mut objects).unwrap().object, one);
        assert_eq!(table.close_range(3, 9, &mut objects).len(), 1);
    }

    #[test]
    fn a_mapping_is_taken_apart() {
        let (mut objects, mut maps) = (Objects::default(), Mappings::default());
        let object = objects.add(1, Vec::new());
        maps.add(Mapping { start: 100, end: 200, offset: 1000, object, writes: false }, &mut objects);
        let taken = maps.take(120, 140, &mut objects);
        assert_eq!(
            taken.iter().map(|part| (part.start, part.end, part.offset)).collect::<Vec<_>>(),
            [(120, 140, 1020)]
        );
        let rest = maps.take(0, u64::MAX, &mut objects);
        let parts: Vec<_> = rest.iter().map(|part| (part.start, part.end, part.offset)).collect();
        assert_eq!(parts, [(100, 120, 1000), (140, 200, 1040)]);
        let closed: Vec<bool> = [(); 3].map(|()| objects.release(object).is_some()).into();
        assert_eq!(closed, [false, false, true]);
    }
}
