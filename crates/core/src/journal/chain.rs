//! Records that say what came before them, so that a line which was edited, removed, added or moved
//! later is found.
//!
//! After each end of a cell and each look stands the SHA-256 of all bytes of the journal before it.
//! It does not protect against rewriting all of them: for that the last one is the run's name, to
//! be published with its result.

use super::record::{Link, Record};
use sha2::{Digest, Sha256};

#[derive(Clone, Default)]
pub(crate) struct Chain(Sha256);

impl Chain {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn link(&self) -> Link {
        let before = format!("{:x}", self.0.clone().finalize());
        Link { before, pickfs: env!("CARGO_PKG_VERSION").to_string() }
    }
}

/// True for what a link follows.
pub(crate) fn is_closed_by(record: &Record) -> bool {
    matches!(record, Record::End(_) | Record::Look(_))
}

/// What the links of a journal show.
#[derive(Debug, Default, PartialEq)]
pub struct Links {
    pub number: usize,
    /// Lines of hashes that do not fit what is before them.
    pub broken: Vec<usize>,
    /// Lines of ends and looks that no link follows, of those after the first link.
    pub unlinked: Vec<usize>,
    /// The last one.
    pub last: String,
    /// Versions that wrote them, each with the line of its first.
    pub versions: Vec<(String, usize)>,
}

/// Follows the links of a whole journal.
pub fn links(journal: &[u8]) -> Links {
    let (mut found, mut chain, mut closed) = (Links::default(), Chain::default(), None);
    for (at, line) in journal.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let record = serde_json::from_slice::<Record>(line).ok();
        if let Some(Record::Chain(link)) = &record {
            found.number += 1;
            // Of what an earlier version wrote.
            if found.number == 1 {
                found.unlinked.clear();
            }
            if link.before != chain.link().before {
                found.broken.push(at + 1);
            }
            if found.versions.iter().all(|(version, _)| *version != link.pickfs) {
                found.versions.push((link.pickfs.clone(), at + 1));
            }
            found.last.clone_from(&link.before);
            closed = None;
        } else {
            found.unlinked.extend(closed.take());
            closed = record.filter(is_closed_by).map(|_| at + 1);
        }
        chain.add(line);
    }
    found.unlinked.extend(closed);
    found.unlinked.retain(|_| found.number > 0);
    found
}

/// Lines of a journal that were changed on purpose, with links that fit them where it had some.
pub(crate) fn linked_again(lines: impl Iterator<Item = Option<String>>) -> Vec<String> {
    let mut chain = Chain::default();
    let with_link = |line: Option<String>| {
        let line = line.unwrap_or_else(|| serde_json::to_string(&Record::Chain(chain.link())).expect("plain data"));
        chain.add(line.as_bytes());
        chain.add(b"\n");
        line
    };
    lines.map(with_link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Begin, End, Journal, Outcome, Sample};

    fn written(cells: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        for (at, cell) in cells.iter().enumerate() {
            // As a run that is taken up again.
            if at == 2 {
                drop(journal);
                journal = Journal::open(&path).unwrap();
            }
            let (cell, at, work) = (cell.to_string(), String::new(), "w".to_string());
            let begin = Begin { cell: cell.clone(), round: 1, target: cell.clone(), work, at: at.clone() };
            journal.append(&Record::Begin(begin)).unwrap();
            let (phase, metric) = ("read".to_string(), "time_ns".to_string());
            journal.append(&Record::Sample(Sample { cell: cell.clone(), phase, metric, value: 7.0 })).unwrap();
            journal.append(&Record::End(End { cell, outcome: Outcome::Done, at })).unwrap();
        }
        drop(journal);
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn each_cell_ends_with_a_link_also_of_a_run_that_goes_on() {
        let whole = written(&["a", "b", "c", "d"]);
        let found = links(whole.as_bytes());
        assert_eq!((found.number, found.broken, found.unlinked), (4, vec![], vec![]));
        assert_eq!(found.versions, [(env!("CARGO_PKG_VERSION").to_string(), 4)]);
        assert_eq!(links(b"{\"end\":{\"cell\":\"c\",\"outcome\":\"done\"}}\n"), Links::default());
    }

    /// The lines of the links that no longer fit, and of ends without one.
    #[test]
    fn what_was_changed_breaks_every_later_link() {
        let whole = written(&["a", "b", "c"]);
        let lines: Vec<&str> = whole.lines().collect();
        let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat();
        let swapped = [&lines[4..8], &lines[..4], &lines[8..]].concat();
        let edited = whole.replacen(":7", ":6", 1);
        for (changed, broken, unlinked) in [
            (edited.lines().collect::<Vec<_>>(), vec![4, 8, 12], vec![]),
            (without(1), vec![3, 7, 11], vec![]),
            (without(3), vec![7, 11], vec![]),
            (without(11), vec![], vec![11]),
            (swapped, vec![4, 8, 12], vec![]),
            (lines[..8].to_vec(), vec![], vec![]),
        ] {
            let found = links((changed.join("\n") + "\n").as_bytes());
            assert_eq!((found.broken, found.unlinked), (broken, unlinked), "{changed:#?}");
        }
    }
}
