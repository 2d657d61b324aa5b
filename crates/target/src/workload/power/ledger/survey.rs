//! Looks at what a cut has left: which changes are there, and what is damaged.

use super::changes::{APPENDED, BEFORE, FILE, PAGE, name, number_of};
use super::schedule::{Kind, Schedule, Step, Stream};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What is there, by the steps of the schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Survey {
    pub there: Vec<bool>,
    /// Steps whose place holds neither what they wrote nor what was there before.
    pub damaged: Vec<usize>,
    /// What was durable before the first change, and is not there or cannot be read.
    pub gone: Vec<String>,
}

/// Never fails: what cannot be read is not there.
pub(crate) fn survey(root: &Path, schedule: &Schedule) -> Survey {
    let mut looked: Vec<FolderContent> = Vec::new();
    for (number, stream) in schedule.streams.iter().enumerate() {
        looked.push(look(&root.join(&stream.folder), number, stream));
    }
    let mut survey = Survey { there: vec![false; schedule.steps.len()], ..Survey::default() };
    for (step, what) in schedule.steps.iter().enumerate() {
        let Step::Change { stream, number } = *what else { continue };
        survey.there[step] = looked[stream].has(schedule.streams[stream].kind, number);
        if looked[stream].is_damaged(schedule.streams[stream].kind, number) {
            survey.damaged.push(step);
        }
    }
    survey.gone = looked.into_iter().filter_map(|looked| looked.gone).collect();
    survey
}

/// A place that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The record with this number, or [`BEFORE`].
    Whole(u64),
    Damaged,
}

/// What a stream's folder holds, by place: what is not in here is not there.
#[derive(Debug, Default)]
struct FolderContent {
    places: BTreeMap<u64, Place>,
    gone: Option<String>,
}

impl FolderContent {
    fn has(&self, kind: Kind, number: u64) -> bool {
        match (kind, self.at(kind, number)) {
            (Kind::Unlink, place) => place.is_none() && self.gone.is_none(),
            (_, Some(Place::Whole(BEFORE))) => false,
            (_, Some(Place::Whole(found))) => found >= number,
            (_, Some(Place::Damaged) | None) => false,
        }
    }

    fn is_damaged(&self, kind: Kind, number: u64) -> bool {
        self.at(kind, number) == Some(Place::Damaged)
    }

    fn at(&self, kind: Kind, number: u64) -> Option<Place> {
        self.places.get(&kind.places().map_or(number, |places| number % places)).copied()
    }
}

fn look(folder: &Path, number: usize, stream: &Stream) -> FolderContent {
    let read = match stream.kind {
        Kind::Append => fs::read(folder.join(FILE)).map(|content| appended(number, &content)),
        Kind::Overwrite => fs::read(folder.join(FILE)).map(|content| pages(number, &content)),
        Kind::Replace => replaced(folder, number, stream.kind),
        Kind::Create => created(folder, number),
        Kind::Mkdir | Kind::Unlink | Kind::Link => names(folder, stream.kind),
    };
    match read {
        Ok(places) => {
            let before = stream.kind.places().filter(|before| (places.len() as u64) < *before);
            let gone = before.map(|before| {
                format!("{}: {} of {before} places are gone", stream.folder, before - places.len() as u64)
            });
            FolderContent { places, gone }
        }
        Err(error) => FolderContent { places: BTreeMap::new(), gone: Some(format!("{}: {error}", stream.folder)) },
    }
}

fn appended(stream: usize, content: &[u8]) -> BTreeMap<u64, Place> {
    let records = content.chunks(APPENDED).enumerate();
    let place = |(at, record): (usize, &[u8])| match number_of(stream, record) {
        Some(found) if found == at as u64 => Some((at as u64, Place::Whole(found))),
        // Allocated, and not written: a file that ends early.
        _ if record.iter().all(|byte| *byte == 0) => None,
        _ => Some((at as u64, Place::Damaged)),
    };
    records.filter_map(place).collect()
}

fn pages(stream: usize, content: &[u8]) -> BTreeMap<u64, Place> {
    content.chunks(PAGE).enumerate().map(|(at, page)| (at as u64, whole(stream, page))).collect()
}

fn whole(stream: usize, bytes: &[u8]) -> Place {
    number_of(stream, bytes).map_or(Place::Damaged, Place::Whole)
}

fn replaced(folder: &Path, stream: usize, kind: Kind) -> std::io::Result<BTreeMap<u64, Place>> {
    let mut found = BTreeMap::new();
    for place in 0..kind.places().unwrap_or_default() {
        match fs::read(folder.join(name(kind, place))) {
            Ok(content) => found.insert(place, whole(stream, &content)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
    }
    Ok(found)
}

fn created(folder: &Path, stream: usize) -> std::io::Result<BTreeMap<u64, Place>> {
    let mut found = names(folder, Kind::Create)?;
    for (number, place) in &mut found {
        let content = fs::read(folder.join(name(Kind::Create, *number)));
        *place = content.map_or(Place::Damaged, |content| whole(stream, &content));
    }
    Ok(found)
}

/// Numbers of the names that are there.
fn names(folder: &Path, kind: Kind) -> std::io::Result<BTreeMap<u64, Place>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?.file_name();
        let number = entry.to_str().and_then(|name| name.strip_prefix(kind.word())?.parse().ok());
        found.extend(number.map(|number: u64| (number, Place::Whole(number))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::Sync;
    use super::super::changes::{Changes, record};
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    /// Every change of every kind on this machine's own file system.
    fn made(steps: usize) -> (tempfile::TempDir, Schedule) {
        let folder = tempfile::tempdir().expect("a folder");
        let schedule = Schedule::new([(Sync::Never, 140), (Sync::Folder, 70), (Sync::Written, 20)], 10, 4);
        let mut changes = Changes::new(folder.path(), &schedule);
        changes.lay_out().expect("laid out");
        (0..steps).for_each(|step| changes.make(step).expect("made"));
        drop(changes);
        (folder, schedule)
    }

    #[test]
    fn what_was_changed_is_there_and_nothing_else() {
        for steps in [0, 1, 100, 139, 180, 230] {
            let (folder, schedule) = made(steps);
            let found = survey(folder.path(), &schedule);
            assert!(found.damaged.is_empty() && found.gone.is_empty(), "{found:?}");
            let there: Vec<usize> = (0..schedule.steps.len()).filter(|step| found.there[*step]).collect();
            assert_eq!(there, (0..steps).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_kind_of_damage_is_seen() {
        let (folder, schedule) = made(230);
        let stream = |kind: Kind| schedule.streams.iter().position(|stream| stream.kind == kind).expect("a stream");
        let at = |kind: Kind| folder.path().join(&schedule.streams[stream(kind)].folder);
        let step = |kind: Kind, number: u64| {
            let wanted = Step::Change { stream: stream(kind), number };
            schedule.steps.iter().position(|step| *step == wanted).expect("a step")
        };
        let file = |kind: Kind| OpenOptions::new().write(true).open(at(kind).join(FILE)).expect("opened");
        // Two records are zeros, a third is torn, and of a page one half is another's.
        file(Kind::Append).write_all_at(&[0; 2 * APPENDED], 3 * APPENDED as u64).expect("written");
        file(Kind::Append).write_all_at(b"x", 7 * APPENDED as u64 + 100).expect("written");
        file(Kind::Overwrite).write_all_at(&record(9, 9, PAGE / 2), 2 * PAGE as u64).expect("written");
        fs::write(at(Kind::Create).join(name(Kind::Create, 5)), "").expect("emptied");
        fs::remove_file(at(Kind::Create).join(name(Kind::Create, 6))).expect("removed");
        fs::write(at(Kind::Replace).join(name(Kind::Replace, 1)), "").expect("emptied");
        fs::remove_dir(at(Kind::Mkdir).join(name(Kind::Mkdir, 4))).expect("removed");
        fs::write(at(Kind::Unlink).join(name(Kind::Unlink, 8)), "").expect("back again");
        fs::remove_file(at(Kind::Link).join(name(Kind::Link, 0))).expect("removed");
        let found = survey(folder.path(), &schedule);
        let is_there = |kind, number| found.there[step(kind, number)];
        let is_damaged = |kind, number| found.damaged.contains(&step(kind, number));
        for (kind, number, damaged) in [
            (Kind::Append, 3, false),
            (Kind::Append, 4, false),
            (Kind::Append, 7, true),
            (Kind::Overwrite, 2, true),
            (Kind::Overwrite, 18, true),
            (Kind::Create, 5, true),
            (Kind::Create, 6, false),
            (Kind::Replace, 17, true),
            (Kind::Mkdir, 4, false),
            (Kind::Unlink, 8, false),
            (Kind::Link, 0, false),
        ] {
            assert!(!is_there(kind, number), "{kind:?} {number}");
            assert_eq!(is_damaged(kind, number), damaged, "{kind:?} {number}");
        }
        let missing = found.there.iter().filter(|there| !**there).count();
        assert_eq!(missing, 10 + 5, "five places of one replaced file, two of the page");
        assert!(found.gone.is_empty(), "{:?}", found.gone);
    }

    #[test]
    fn what_was_there_before_and_is_gone_is_named() {
        let (folder, schedule) = made(0);
        let of =
            |kind: Kind| schedule.streams.iter().find(|stream| stream.kind == kind).expect("a stream").folder.clone();
        fs::remove_dir(folder.path().join(of(Kind::Mkdir))).expect("removed");
        fs::remove_file(folder.path().join(of(Kind::Replace)).join(name(Kind::Replace, 2))).expect("removed");
        let found = survey(folder.path(), &schedule);
        assert_eq!(found.gone.len(), 2, "{:?}", found.gone);
        assert!(found.there.iter().all(|there| !there));
        let all = survey(&folder.path().join("nowhere"), &schedule);
        assert_eq!((all.gone.len(), all.there.iter().any(|there| *there)), (schedule.streams.len(), false));
    }
}
