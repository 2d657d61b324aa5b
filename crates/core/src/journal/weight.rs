//! How much memory a journal may take while it is read. A journal of a hostile author would else
//! take all that there is.

use super::Record;

/// Bytes that any journal may take, and how many more for ten bytes of it: one of a real run takes
/// up to 1.3 times its length by these estimates, and one that repeats a short line to no end
/// thirty times.
const FREE: u64 = 64 << 20;
const FOR_TEN: u64 = 14;

/// Bytes of a cell, of the name of a phase or metric, and of a step, with their places in the maps
/// that hold them, and the free room of these.
const CELL: u64 = 1000;
const NAME: u64 = 200;
const STEP: u64 = 800;

/// Bytes of one sample; its vector may have grown to twice its length.
const SAMPLE: u64 = 32;

/// Bytes of one value or key in a record: a string, its text and the least that an allocation
/// takes.
const VALUE: u64 = 56;

/// Counts of what is kept.
pub(crate) struct KeptCounts {
    pub cells: usize,
    pub names: usize,
    pub steps: usize,
}

/// Estimates, in bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    free: u64,
    read: u64,
    /// By what is in no count.
    taken: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { free: FREE, read: 0, taken: 0 }
    }
}

impl Budget {
    pub(crate) fn read(&mut self, line: &[u8]) {
        self.read += line.len() as u64;
    }

    /// False if the record would add too much to what is kept.
    pub(crate) fn take(&mut self, line: &[u8], record: &Record, kept: &KeptCounts) -> bool {
        let counted = kept.cells as u64 * CELL + kept.names as u64 * NAME + kept.steps as u64 * STEP;
        let weight = weight(line, record);
        let fits = counted + self.taken + weight <= self.free + self.read * FOR_TEN / 10;
        self.taken += if fits { weight } else { 0 };
        fits
    }
}

/// Of what is added up, or taken away, nothing stays; of a step its text, as what else it takes is
/// counted while it is kept.
fn weight(line: &[u8], record: &Record) -> u64 {
    match record {
        Record::Sample(_) => SAMPLE,
        Record::Ledger(_) | Record::Undone(_) | Record::Aim(_) | Record::Chain(_) => 0,
        Record::Step(_) | Record::Begin(_) => line.len() as u64,
        _ => line.len() as u64 + VALUE * values(line),
    }
}

/// No value stands without a comma or a bracket before it, and no string without two quotes.
fn values(line: &[u8]) -> u64 {
    line.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':')).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fold::fold_within;

    const LINES: u64 = 5_000;

    /// A line that repeats itself with its own number.
    fn flood(line: &str, free: u64) -> crate::journal::Folded {
        let lines: String = (0..LINES).map(|number| line.replace('N', &number.to_string()) + "\n").collect();
        fold_within(lines.as_bytes(), Budget { free, ..Budget::default() }).unwrap()
    }

    const STEP_LINE: &str = r#"{"step":{"scope":"run","number":N,"says":"","undo":{"unmount":"/x"}}}"#;

    #[test]
    fn no_kind_of_line_takes_all_the_memory() {
        for line in [
            r#"{"begin":{"cell":"N","round":1,"target":"a","work":"b"}}"#,
            r#"{"end":{"cell":"N","outcome":{"skipped":["a"]}}}"#,
            r#"{"sample":{"cell":"c","phase":"N","metric":"m","value":1}}"#,
            r#"{"sample":{"cell":"N","phase":"p","metric":"m","value":1}}"#,
            r#"{"unfit":{"target":"N","work":"w","outcome":{"skipped":["a"]}}}"#,
            r#"{"flag":{"cell":"c","phase":"N","flag":"noisy_device","why":"w"}}"#,
            r#"{"provenance":{"cell":"c","facts":{"N":"b"}}}"#,
            r#"{"device_course":{"cell":"c","phase":"N","until_ns":[1],"read_bytes":[1],"write_bytes":[1]}}"#,
            STEP_LINE,
        ] {
            assert_eq!(flood(line, FREE).unreadable, 0, "{line}");
            let lost = flood(line, 0).unreadable;
            assert!((LINES / 2..LINES).contains(&lost), "{line}: {lost}");
        }
    }

    /// What is undone takes none, so that a run may have as many steps as it likes.
    #[test]
    fn a_step_that_is_lost_is_named_and_one_that_is_undone_gives_its_memory_back() {
        assert!(!flood(STEP_LINE, 0).lost_steps.is_empty());
        let undone = r#"{"undone":{"scope":"run","number":N}}"#;
        let folded = flood(&format!("{STEP_LINE}\n{undone}"), 2_000);
        assert_eq!((folded.unreadable, folded.leftovers.len()), (0, 0));
    }

    /// With a 256th of what is free, they lose nothing.
    #[test]
    fn journals_of_real_runs_are_far_below() {
        let fixtures = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("fixtures/journals");
        for name in ["default-run", "small-files", "layers-and-age"] {
            let text = std::fs::read(fixtures.join(name).with_extension("jsonl")).unwrap();
            let whole = fold_within(&text[..], Budget::default()).unwrap();
            let small = fold_within(&text[..], Budget { free: FREE >> 8, ..Budget::default() }).unwrap();
            assert_eq!(whole.unreadable, small.unreadable, "{name}");
        }
    }
}
