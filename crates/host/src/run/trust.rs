//! Which journals may be acted on. What a journal says is done with our rights, its commands and
//! its undoing, so it must be of a run that this user began on this machine. The owner of the file
//! is only the user that saved it. So the state folder remembers which file was the journal of each
//! run; a copy, or what was fetched or put in its place, is another file.

use super::state::State;
use crate::wording::text::counted;
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::{Folded, Journal, LONGEST_LINE, Run, SCHEMA, fold, fold_from, is_run_id, typed};
use pickfs_core::plan::Plan;
use pickfs_system::sys::file::{inode_and_birth, open_regular};
use pickfs_system::sys::process;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whose journals are acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Journals of runs that this user began here.
    Own,
    /// The user has read it and says so.
    Any,
}

/// One file a run, for good: a run that has ended can be taken up with another aim.
const FOLDER: &str = "begun";

/// Before the run touches anything.
pub(crate) fn note(run: &str, journal: &Journal) -> Result<()> {
    let state = State::create(FOLDER)?;
    let mut file = state.made_file(run)?;
    let identity = inode_and_birth(journal.file())?;
    let written = file.set_len(0).and_then(|()| file.write_all(identity.as_bytes()));
    written.with_context(|| format!("cannot write {}", state.shown(run).display()))
}

/// Forgets a run whose journal will not be resumed.
pub(crate) fn forget(run: &str) {
    if let Ok(Some(state)) = State::find(FOLDER) {
        state.remove(run);
    }
}

/// The file that is the journal of a run begun here.
fn noted(run: &str) -> Result<Option<String>> {
    let state = State::find(FOLDER)?.filter(|_| is_run_id(run));
    Ok(state.and_then(|state| state.read(run)).and_then(|(text, _)| String::from_utf8(text).ok()))
}

/// What there is of a run that has an entry and is dead.
#[derive(Debug, PartialEq, Eq)]
pub enum Remains {
    /// It touched nothing.
    Nothing,
    Journal,
    /// Its journal is not at its place any more.
    Gone,
}

/// A journal is noted before its first line is written, and nothing is touched before that. Where a
/// run of an early version began is not noted: then the file speaks for itself.
pub fn remains(run: &str, journal: &Path) -> Remains {
    let opened = open_regular(journal, false).and_then(|file| Ok((has_line(&file)?, inode_and_birth(&file)?)));
    match (opened.ok(), noted(run).ok().flatten()) {
        (Some((false, found)), Some(noted)) if found == noted => Remains::Nothing,
        (Some((_, found)), Some(noted)) if found == noted => Remains::Journal,
        (_, Some(_)) => Remains::Gone,
        (Some((true, _)), None) => Remains::Journal,
        (_, None) => Remains::Nothing,
    }
}

/// A disk that is full, or a machine that lost its power, leaves the first line torn.
fn has_line(file: &File) -> std::io::Result<bool> {
    let mut line = Vec::new();
    BufReader::new(file.take(LONGEST_LINE + 1)).read_until(b'\n', &mut line)?;
    Ok(line.ends_with(b"\n"))
}

/// An existing journal to act on and what it holds; a torn last line is cut off. All is read from
/// one open file, so that none can be put in its place between the look and the deed.
pub(crate) fn open(path: &Path, trust: Trust) -> Result<(Journal, Folded)> {
    let shown = path.display();
    let mut journal = Journal::open(path)?;
    if journal.file().metadata()?.mode() & 0o222 == 0 {
        bail!("{shown} is read-only, as journals in a store are: copy it, and give the copy with --trust");
    }
    let mut folded = judged(journal.file(), path, trust)?;
    if journal.cut_torn_line()? {
        folded = journal.fold()?;
    }
    Ok((journal, folded))
}

/// The plan of a journal, to be done again.
pub fn plan(path: &Path, trust: Trust) -> Result<Plan> {
    let file = open_regular(path, false).with_context(|| format!("cannot open the journal {}", path.display()))?;
    sound(&judged(&file, path, trust)?, path).map(|run| run.plan)
}

/// The same of what was packed, which `path` is: no run that was begun here.
pub fn packed_plan(journal: &[u8], path: &Path, trust: Trust) -> Result<Plan> {
    let shown = path.display();
    ensure!(trust == Trust::Any, "{shown} is packed, so no run that this user began here: read it, then give --trust");
    sound(&fold(journal)?, path).map(|run| run.plan)
}

fn judged(file: &File, path: &Path, trust: Trust) -> Result<Folded> {
    let shown = path.display();
    let found = file.metadata()?;
    if found.mode() & 0o022 != 0 {
        bail!("others may write to {shown}: read it, then `chmod go-w {}`", typed(path));
    }
    if trust == Trust::Own && !process::trusts(found.uid()) {
        bail!("{shown} belongs to user {}: read it, then give --trust", found.uid());
    }
    let folded = fold_from(file)?;
    let run = folded.begun().with_context(|| shown.to_string())?;
    if trust == Trust::Own && noted(&run.id)? != Some(inode_and_birth(file)?) {
        let steps = match folded.leftovers.len() {
            0 => String::new(),
            steps => format!(", and {} undone", counted(steps, "step")),
        };
        bail!(
            "{shown} is not the journal of a run that this user began here: it is a copy, was fetched, or is from a store. Its plan, \
             with its commands, would be done with your rights{steps}. Read it, then give --trust; a run of another machine goes on \
             there with --host"
        );
    }
    Ok(folded)
}

/// The run of a journal that we may act on: it is of a form that we know, and its name is one that
/// we give.
pub(crate) fn supported_run(folded: &Folded) -> Result<Run> {
    let run = folded.run.clone().context("the journal has no run record")?;
    if run.schema > SCHEMA {
        bail!("the journal is of schema {}, this pickfs knows {SCHEMA}; take a newer pickfs", run.schema);
    }
    if !run.imported.is_empty() {
        bail!(
            "the journal holds results of {}: there is nothing to take up, to do again or to undo",
            run.imported.escape_debug()
        );
    }
    if !is_run_id(&run.id) {
        bail!("`{}` is not the name of a run; the journal is damaged or not a journal", run.id.escape_debug());
    }
    Ok(run)
}

/// One whose plan can be done, too.
pub(crate) fn sound(folded: &Folded, path: &Path) -> Result<Run> {
    let run = supported_run(folded)?;
    if let Some(out_of_range) = run.plan.out_of_range() {
        bail!("the plan in {} has {out_of_range}, which no plan can have; begin a new run", path.display());
    }
    Ok(run)
}

/// Where lines cannot be read, it is not known what else is to be undone.
pub(crate) fn all_steps_were_read(folded: &Folded, path: &Path) -> Result<()> {
    let lost: Vec<String> = folded.lost_steps.iter().map(u64::to_string).collect();
    let shown = path.display();
    ensure!(
        lost.is_empty(),
        "these lines of {shown} cannot be read, and may have been steps: {}. All other steps are undone. Look at them, undo by \
         hand what they name, remove them, then `pickfs clean --trust {}`",
        lost.join(", "),
        typed(path)
    );
    Ok(())
}
