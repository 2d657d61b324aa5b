//! Which change is made when: drawn from the seed, each kind as often as any other.

use super::{Sync, choice};
use pickfs_system::random::Random;
use std::ops::Range;

choice! {
    /// What is changed.
    pub(crate) Kind {
        /// A record at the end of a file.
        Append = "append",
        /// A page of a file that has it.
        Overwrite = "overwrite",
        /// A new file with content.
        Create = "create",
        /// A new file that takes the name of an old one.
        Replace = "replace",
        Mkdir = "mkdir",
        Unlink = "unlink",
        Link = "link",
    }
}

/// Places that are written again and again, by kind.
const PAGES: u64 = 16;
const REPLACED: u64 = 4;

impl Kind {
    /// What lies in the name alone.
    pub(crate) fn is_name(self) -> bool {
        matches!(self, Kind::Mkdir | Kind::Unlink | Kind::Link)
    }

    /// How many changes later the same place is changed again.
    pub(crate) fn places(self) -> Option<u64> {
        match self {
            Kind::Overwrite => Some(PAGES),
            Kind::Replace => Some(REPLACED),
            _ => None,
        }
    }

    /// Whether a change of this kind is durable when it has been synced so (fsync(2), open(2) of
    /// Linux's man-pages: a new name is in its folder, which is synced by itself).
    fn is_promised(self, sync: Sync) -> bool {
        match sync {
            Sync::Never => false,
            Sync::File | Sync::Data | Sync::Written => matches!(self, Kind::Append | Kind::Overwrite),
            Sync::Folder | Sync::All => true,
        }
    }

    /// Kinds that mean something with this way of syncing.
    fn with(sync: Sync) -> &'static [Kind] {
        match sync {
            Sync::Never | Sync::Folder | Sync::All => Kind::ALL,
            Sync::File => &[Kind::Append, Kind::Overwrite, Kind::Create, Kind::Replace],
            Sync::Data | Sync::Written => &[Kind::Append, Kind::Overwrite],
        }
    }
}

/// Changes of one kind, one after the other, in their own folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stream {
    pub kind: Kind,
    pub sync: Sync,
    pub folder: String,
    /// How many there are.
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// The change of this stream with this number.
    Change { stream: usize, number: u64 },
    /// All that was changed so far is synced.
    SyncAll,
}

/// Steps that are synced in one way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub sync: Sync,
    pub steps: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    pub streams: Vec<Stream>,
    pub steps: Vec<Step>,
    /// The first is the one whose loss is measured.
    pub parts: Vec<Part>,
}

impl Schedule {
    /// Takes ways of syncing with numbers of steps; in the part of `syncfs` it comes once in
    /// `a_second` steps.
    pub(crate) fn new(parts: impl IntoIterator<Item = (Sync, usize)>, a_second: usize, seed: u64) -> Schedule {
        let mut schedule = Schedule { streams: Vec::new(), steps: Vec::new(), parts: Vec::new() };
        for (number, (sync, count)) in parts.into_iter().enumerate() {
            let first_stream = schedule.streams.len();
            for kind in Kind::with(sync) {
                let folder = format!("{number}-{}-{}", kind.word(), sync.word());
                schedule.streams.push(Stream { kind: *kind, sync, folder, count: 0 });
            }
            let begin = schedule.steps.len();
            let mut random = Random::new(seed, number as u64);
            let mut order: Vec<usize> = Vec::new();
            for step in 0..count {
                if sync == Sync::All && step % a_second == a_second - 1 {
                    schedule.steps.push(Step::SyncAll);
                    continue;
                }
                if order.is_empty() {
                    order = (first_stream..schedule.streams.len()).collect();
                    random.shuffle(&mut order);
                }
                let stream = order.pop().unwrap_or(first_stream);
                let number = schedule.streams[stream].count;
                schedule.streams[stream].count += 1;
                schedule.steps.push(Step::Change { stream, number });
            }
            schedule.parts.push(Part { sync, steps: begin..schedule.steps.len() });
        }
        schedule
    }

    /// Whether the change of a step is promised, and from when on: when it has returned, or when
    /// this later step has.
    pub(crate) fn promised(&self, step: usize) -> Option<usize> {
        let Step::Change { stream, .. } = self.steps[step] else { return None };
        let Stream { kind, sync, .. } = self.streams[stream];
        if sync == Sync::All {
            let part = self.parts.iter().find(|part| part.steps.contains(&step))?;
            return (step..part.steps.end).find(|later| self.steps[*later] == Step::SyncAll);
        }
        kind.is_promised(sync).then_some(step)
    }

    /// For each step the later one that changes the same place.
    pub(crate) fn replaced_by(&self) -> Vec<Option<usize>> {
        let mut found = vec![None; self.steps.len()];
        let mut last = std::collections::HashMap::new();
        for (step, what) in self.steps.iter().enumerate() {
            let Step::Change { stream, number } = *what else { continue };
            let Some(places) = self.streams[stream].kind.places() else { continue };
            if let Some(earlier) = last.insert((stream, number % places), step) {
                found[earlier] = Some(step);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_comes_as_often_as_any_other_and_the_seed_gives_the_order() {
        let schedule = Schedule::new([(Sync::Never, 70), (Sync::Data, 10), (Sync::All, 20)], 10, 1);
        assert_eq!((schedule.steps.len(), schedule.parts.len(), schedule.streams.len()), (100, 3, 7 + 2 + 7));
        assert!(schedule.streams[..7].iter().all(|stream| stream.count == 10));
        let syncs: Vec<usize> = (0..100).filter(|step| schedule.steps[*step] == Step::SyncAll).collect();
        assert_eq!(syncs, [89, 99]);
        let mut folders: Vec<&str> = schedule.streams.iter().map(|stream| stream.folder.as_str()).collect();
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), 16, "each stream has a folder of its own");
        let other = Schedule::new([(Sync::Never, 70), (Sync::Data, 10), (Sync::All, 20)], 10, 2);
        assert!(other != schedule);
    }

    #[test]
    fn only_what_the_system_call_promises_is_promised() {
        for (sync, promised) in [
            (Sync::Never, vec![]),
            (Sync::File, vec![Kind::Append, Kind::Overwrite]),
            (Sync::Folder, Kind::ALL.to_vec()),
            (Sync::Data, vec![Kind::Append, Kind::Overwrite]),
            (Sync::Written, vec![Kind::Append, Kind::Overwrite]),
            (Sync::All, Kind::ALL.to_vec()),
        ] {
            let found: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| kind.is_promised(sync)).collect();
            assert_eq!(found, promised, "{sync:?}");
            assert!(found.iter().all(|kind| Kind::with(sync).contains(kind)));
        }
        let schedule = Schedule::new([(Sync::Never, 7), (Sync::All, 25), (Sync::Folder, 7)], 10, 1);
        assert_eq!(schedule.promised(3), None);
        assert_eq!(schedule.promised(7), Some(16), "with the next sync of all");
        assert_eq!(schedule.promised(16), None, "it changes nothing");
        assert_eq!(schedule.promised(30), None, "the sync that comes next is another part's");
        assert_eq!(schedule.promised(33), Some(33));
    }

    #[test]
    fn what_is_changed_again_is_known() {
        let schedule = Schedule::new([(Sync::Data, 100)], 10, 1);
        let replaced = schedule.replaced_by();
        for (step, what) in schedule.steps.iter().enumerate() {
            let Step::Change { stream, number } = *what else { unreachable!() };
            let later =
                schedule.steps.iter().position(|other| *other == Step::Change { stream, number: number + PAGES });
            let wanted = if schedule.streams[stream].kind == Kind::Overwrite { later } else { None };
            assert_eq!(replaced[step], wanted);
        }
    }
}
