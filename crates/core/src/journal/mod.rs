//! What happened: record types, append, fold. Append-only JSON lines, one run one file.
//!
//! This room must not know how a cell is run or what a number means. A torn last line is a crash,
//! not an error; `Begin` forgets what was seen for its cell; the first `End` of an attempt is
//! final; unknown fields are ignored and none is required.

mod anonymous;
mod append;
mod chain;
mod flag;
mod fold;
mod hardware;
mod leftovers;
mod lines;
mod record;
mod weight;

pub use anonymous::Anonymous;
pub use append::{Journal, typed};
pub use chain::{Links, links};
pub use flag::FlagKind;
pub use fold::{Folded, FoldedCell, NoJournal, fold, fold_file, fold_from, open_file};

pub use hardware::{BackingHardware, Disk, GuestHardware, GuestProcessor, Hardware, RawSpeed};
pub use lines::{LONGEST_LINE, whole_lines};
pub use record::*;
