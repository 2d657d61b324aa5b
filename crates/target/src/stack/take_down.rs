//! How plug-ins take down what they alone know: described here as their steps are, and done by the
//! agent, also long after a run, by the word in its journal.

use super::Argv;
use pickfs_core::journal::{Made, Undo};
use std::path::PathBuf;

/// How one kind of thing is taken down.
pub struct TakeDown {
    /// Journals have it.
    pub word: &'static str,
    pub named: Named,
    /// What is to go, in this order.
    pub removals: fn(&Remains) -> Vec<Removal>,
}

/// What it is named by, so that nothing is touched which no run has made.
pub enum Named {
    /// As the cell.
    ByCell,
    /// By the name of its layer, which makes this name.
    ByLayer(fn(&str) -> String),
    /// In a file of this name below the work's folder, by what the cell has started.
    InNote(&'static str),
}

/// What there may be.
pub struct Remains<'a> {
    pub name: &'a str,
    pub members: &'a [PathBuf],
    /// What the note holds, and the user that wrote it.
    pub note: (&'a str, u32),
}

/// Repeated until it is gone.
pub struct Removal {
    pub while_there: There,
    pub act: Act,
}

pub enum There {
    File(PathBuf),
    /// What may stay, such as a device that the kernel makes anew where it is looked at: it is done
    /// once, if all of these are there.
    Lasting(Vec<PathBuf>),
    /// Where a program prints what is so, whatever its exit code: `vgs` fails where another group
    /// is damaged and lists the others, and `mdadm --examine` where there is nothing.
    Listed(Argv, Box<dyn Fn(&str) -> bool>),
}

pub enum Act {
    Run(Argv),
    Write(PathBuf, &'static str),
}

impl TakeDown {
    pub(crate) fn of(&self, name: impl Into<String>) -> Undo {
        Undo::TakeDown([(self.word.to_string(), Made::Named(name.into()))].into())
    }

    pub(crate) fn of_layer(&self, name: String, members: &[PathBuf]) -> Undo {
        Undo::TakeDown([(self.word.to_string(), Made::Of { name, members: members.to_vec() })].into())
    }
}

impl There {
    /// Where a line that a program prints is this.
    pub(crate) fn line(program: Argv, line: &str) -> There {
        let line = line.to_string();
        There::Listed(program, Box::new(move |shown| shown.lines().any(|shown| shown.trim() == line)))
    }
}
