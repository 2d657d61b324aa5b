//! The side of a Slurm job: a cell, or a whole run, whose journal lies on this machine until it has
//! ended.

use super::hash;
use super::slurm::{Begin, Errand, JobKind, read_errand};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::whole_lines;
use pickfs_system::process::{count_signals, own_program, stop_requests};
use pickfs_system::sys::process::{Signal, kill};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);

/// How a job of a whole run ended, kept next to the journal that it has brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brought {
    /// Exit code of `pickfs run`.
    pub code: i32,
    pub bytes: u64,
    pub sha256: String,
}

impl Brought {
    /// Whether these are the bytes of its journal.
    pub fn is(&self, journal: &[u8]) -> bool {
        self.bytes == journal.len() as u64 && self.sha256 == hash(journal)
    }
}

/// Files of the folder that all machines see.
pub const JOURNAL: &str = "journal.jsonl";
pub const BROUGHT: &str = "brought.json";
/// Names the machine that has the journal of a whole run.
pub const NODE: &str = "node";
/// The plan of cells that are done each by itself.
pub const PLAN: &str = "plan.json";

/// Where a cell's journal is brought to.
pub fn place_of_cell(folder: &Path, cell: &str) -> PathBuf {
    folder.join(format!("{cell}.jsonl"))
}

/// Does what a batch script says; the exit code.
pub fn job(script: &Path) -> Result<u8> {
    let errand = read_errand(script)?;
    count_signals(&[libc::SIGTERM, libc::SIGINT], |_| ())?;
    match &errand.what {
        JobKind::Cells(cells) => {
            let index = variable("SLURM_ARRAY_TASK_ID")?;
            let cell = index.parse::<usize>().ok().and_then(|index| cells.get(index));
            one_cell(&errand, cell.with_context(|| format!("the array has no element {index}"))?)
        }
        JobKind::Run { begin, words } => whole_run(&errand, begin, words),
    }
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set: this is no job of Slurm"))
}

fn one_cell(errand: &Errand, cell: &str) -> Result<u8> {
    let place = place_of_cell(&errand.folder, cell);
    if place.exists() {
        return Ok(0);
    }
    let folder = own_folder(&errand.local)?;
    // Each try has its own journal, so that none that was killed is taken for one that ended.
    let tried = std::env::var("SLURM_RESTART_COUNT").unwrap_or_default();
    let own = folder.join(format!("{}-{cell}-{}{tried}.jsonl", variable("SLURM_JOB_ID")?, std::process::id()));
    let plan = errand.folder.join(PLAN);
    let words = ["far".into(), "part".into(), shown(&plan)?, cell.to_string(), shown(&own)?];
    let code = child(&words, &folder, None)?;
    if code == 0 {
        bring(&fs::read(&own)?, &place, false)?;
    }
    // A run that was killed is undone with it.
    if code >= 0 {
        let _ = fs::remove_file(&own);
    }
    Ok(u8::try_from(code).unwrap_or(1))
}

/// One run, one machine: on another than the one that has its journal, nothing is done.
fn whole_run(errand: &Errand, begin: &Begin, words: &[String]) -> Result<u8> {
    let node = variable("SLURMD_NODENAME")?;
    let mark = errand.folder.join(NODE);
    if let Some(other) = fs::read_to_string(&mark).ok().filter(|other| other.trim() != node) {
        eprintln!("the journal of this run is on {}: nothing is done on {node}", other.trim());
        return Ok(0);
    }
    let folder = own_folder(&errand.local)?.join(super::checked_name(&begin.id)?);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let lock = File::options().write(true).create(true).truncate(false).open(folder.join("lock"))?;
    // The job before may still undo what it did.
    while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        ensure!(stop_requests() == 0, "stopped while another job of this run was under way");
        std::thread::sleep(LOOK);
    }
    bring(node.as_bytes(), &mark, true)?;
    let (own, there) = (folder.join(JOURNAL), errand.folder.join(JOURNAL));
    // A machine that lost its disk goes on from what was brought.
    if !own.exists() && there.exists() {
        fs::copy(&there, &own).with_context(|| format!("cannot fetch {}", there.display()))?;
    }
    let _ = fs::remove_file(errand.folder.join(BROUGHT));
    let journal = shown(&own)?;
    let is_begun = own.metadata().is_ok_and(|found| found.len() > 0);
    let what = if is_begun {
        // Its folder is this user's alone, and what was brought there comes from the folder that
        // says what is to be done.
        ["--trust", "--resume", &journal].map(String::from).to_vec()
    } else {
        [&begin.words[..], &["--journal".to_string(), journal]].concat()
    };
    let all = [vec!["run".to_string(), "--fetched".into()], what, words.to_vec()].concat();
    // Not in the folder that all see: nothing is written there while the disk is measured.
    let messages = folder.join("messages");
    let code = child(&all, &folder, Some(&messages))?;
    eprint!("{}", fs::read_to_string(&messages).unwrap_or_default());
    let mut text = fs::read(&own).unwrap_or_default();
    text.truncate(whole_lines(&text));
    if !text.is_empty() {
        bring(&text, &there, true)?;
    }
    let brought = Brought { code, bytes: text.len() as u64, sha256: hash(&text) };
    bring(&serde_json::to_vec(&brought)?, &errand.folder.join(BROUGHT), true)?;
    Ok(u8::try_from(code).unwrap_or(1))
}

/// A folder below which no other user can have put anything.
fn own_folder(local: &Path) -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = local.join(format!("pickfs-{user}"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.with_context(|| format!("cannot make {}; name another --local-folder", folder.display()))?;
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        bail!("{} is not a folder of user {user} alone; name another --local-folder", folder.display());
    }
    Ok(folder)
}

/// This program again, with requests to stop handed on; its exit code, or minus the signal that
/// ended it.
fn child(words: &[String], folder: &Path, messages: Option<&Path>) -> Result<i32> {
    let mut command = own_program();
    command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(file) = messages {
        command.stderr(File::create(file).with_context(|| format!("cannot write {}", file.display()))?);
    }
    let mut child = command.spawn().context("cannot start the run")?;
    let mut handed_on = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().unwrap_or_else(|| -status.signal().unwrap_or(1)));
        }
        while handed_on < stop_requests() {
            handed_on += 1;
            kill(child.id() as i32, Signal::TERM)?;
        }
        std::thread::sleep(LOOK);
    }
}

/// Whole or not at all. Where it does not replace, the first one stays.
fn bring(text: &[u8], place: &Path, replaces: bool) -> Result<()> {
    let new = place.with_extension(format!("new-{}-{}", std::process::id(), variable("SLURM_JOB_ID")?));
    let write = || -> std::io::Result<()> {
        fs::write(&new, text)?;
        File::open(&new)?.sync_all()?;
        if replaces {
            fs::rename(&new, place)
        } else {
            let linked = fs::hard_link(&new, place);
            fs::remove_file(&new)?;
            linked.or_else(|error| if place.exists() { Ok(()) } else { Err(error) })
        }
    };
    write().with_context(|| format!("cannot write {}", place.display()))
}

fn shown(path: &Path) -> Result<String> {
    path.to_str().map(String::from).with_context(|| format!("{} is not UTF-8", path.display()))
}
