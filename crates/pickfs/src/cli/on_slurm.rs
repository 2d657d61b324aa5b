//! `pickfs run --slurm`: a whole run in its own allocation, or the cells of a simulation as
//! elements of an array.

use super::after::show;
use super::{Exit, FAILED, STOPPED};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::{fold_file, typed};
use pickfs_core::plan::{Cell, Plan};
use pickfs_host::fleet::{
    self, BROUGHT, Begin, Brought, Errand, JOURNAL, JobKind, MOST_ELEMENTS, NODE, PLAN, Slurm, State, place_of_cell,
};
use pickfs_host::run::{CellJobs, Part, tell};
use pickfs_system::process::stop_requests;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);
/// Looks between two questions to Slurm.
const SELDOM: u32 = 10;
/// Jobs for the same thing that ended without it, until they are believed.
const TRIES: u32 = 4;
/// So often asked to stop, we leave, and the job goes on.
const LEAVES: usize = 3;

// No doc comment: clap would take it for the verb's own.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ToSlurm {
    /// Run as jobs of Slurm: a whole run has a machine for itself; cells of a simulation are
    /// elements of an array
    #[arg(long, value_name = "PARTITION", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "host")]
    pub slurm: Option<String>,
    /// With --slurm: a further option of sbatch, such as --sbatch=--constraint=nvme
    #[arg(long, value_name = "OPTION", requires = "slurm", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// With --slurm: the folder on the machine of a job for journals under way; on a local disk
    #[arg(long, value_name = "DIR", requires = "slurm", default_value = "/var/tmp")]
    pub local_folder: PathBuf,
}

impl ToSlurm {
    /// `None` where Slurm is not asked for.
    pub(crate) fn slurm(&self) -> Result<Option<Slurm>> {
        self.slurm.as_deref().map(|partition| Slurm::new(partition, &self.sbatch)).transpose()
    }
}

/// The folder of the jobs of a journal, which all machines must see; made if it is not there.
fn folder_of(journal: &Path) -> Result<PathBuf> {
    let folder = std::path::absolute(journal)?.with_extension("slurm");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// A new run needs a journal and a folder that are not there.
pub(crate) fn refuse_old(journal: &Path) -> Result<()> {
    if journal.exists() || journal.with_extension("slurm").exists() {
        let (shown, word) = (journal.display(), typed(journal));
        return Err(Exit::usage(format!("{shown} is there already; name another --journal, or give --resume {word}")));
    }
    Ok(())
}

/// The journal of a run whose cells were elements of arrays.
pub(crate) fn is_of_parts(journal: &Path) -> bool {
    journal.with_extension("slurm").join(PLAN).exists()
}

/// The numbers of jobs, one per line, so that the process that resumes the run finds them.
struct Jobs {
    file: PathBuf,
}

impl Jobs {
    fn of(folder: &Path) -> Jobs {
        Jobs { file: folder.join("jobs") }
    }

    /// Each with the cells of its elements.
    fn read(&self) -> Vec<(String, Vec<String>)> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let words = text.lines().map(|line| line.split(' ').map(String::from).collect::<Vec<_>>());
        words.filter_map(|words| words.split_first().map(|(job, cells)| (job.clone(), cells.to_vec()))).collect()
    }

    fn add(&self, job: &str, cells: &[String]) -> Result<()> {
        let line = [&[job.to_string()], cells].concat().join(" ") + "\n";
        let all = fs::read_to_string(&self.file).unwrap_or_default() + &line;
        replace(&self.file, &all)
    }
}

/// At once: a job may be reading it.
fn replace(file: &Path, text: &str) -> Result<()> {
    let new = file.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, file));
    written.with_context(|| format!("cannot write {}", file.display()))
}

/// Cells as elements of arrays.
pub(crate) struct Elements {
    slurm: Slurm,
    folder: PathBuf,
    local: PathBuf,
    jobs: Jobs,
    /// How often each cell was given to Slurm in this session.
    tries: BTreeMap<String, u32>,
    notices: BTreeSet<String>,
}

impl Elements {
    pub(crate) fn new(slurm: Slurm, journal: &Path, plan: &Plan, local: &Path) -> Result<Elements> {
        let folder = folder_of(journal)?;
        fleet::bring_program(&folder)?;
        replace(&folder.join(PLAN), &serde_json::to_string(plan)?)?;
        let jobs = Jobs::of(&folder);
        Ok(Elements { slurm, folder, local: local.into(), jobs, tries: BTreeMap::new(), notices: BTreeSet::new() })
    }

    /// The run has ended, and no job will be started again.
    pub(crate) fn end(self) {
        fleet::remove_program(&self.folder);
    }

    fn tell_once(&mut self, text: String) {
        if self.notices.insert(text.clone()) {
            tell(&text);
        }
    }

    /// Elements that have not ended, by their cells; `None` where Slurm does not answer.
    fn live(&mut self) -> Option<BTreeMap<String, State>> {
        let jobs = self.jobs.read();
        let numbers: Vec<String> = jobs.iter().map(|(job, _)| job.clone()).collect();
        match self.slurm.live(&numbers) {
            Ok(live) => {
                live.iter().for_each(|((job, _), state)| self.tell_if_held(job, state));
                let cells: BTreeMap<String, Vec<String>> = jobs.into_iter().collect();
                let of = |(job, index): (String, usize), state| Some((cells.get(&job)?.get(index)?.clone(), state));
                Some(live.into_iter().filter_map(|(element, state)| of(element, state)).collect())
            }
            Err(error) => {
                self.tell_once(format!("{error:#}; waiting for it"));
                None
            }
        }
    }

    /// Cells that have no journal and are in no job are given to Slurm.
    fn submit_missing(&mut self, cells: &[String], live: &BTreeMap<String, State>) -> Result<()> {
        let is_missing = |cell: &&String| !live.contains_key(*cell) && !place_of_cell(&self.folder, cell).exists();
        let missing: Vec<String> = cells.iter().filter(is_missing).cloned().collect();
        for chunk in missing.chunks(MOST_ELEMENTS) {
            let what = JobKind::Cells(chunk.to_vec());
            let errand = Errand { folder: self.folder.clone(), local: self.local.clone(), what };
            let job = self.slurm.submit(&errand, None)?;
            self.jobs.add(&job, chunk)?;
            chunk.iter().for_each(|cell| *self.tries.entry(cell.clone()).or_default() += 1);
            tell(&format!("job {job}: {} cells", chunk.len()));
        }
        Ok(())
    }

    fn stop(&mut self) {
        for (job, _) in self.jobs.read() {
            if let Err(error) = self.slurm.stop(&job) {
                self.tell_once(format!("job {job} is not stopped: {error:#}"));
            }
        }
    }

    /// A cell whose element is neither under way nor has brought it: given to Slurm again, or why
    /// not.
    fn again(&mut self, cell: &str) -> Result<Option<String>> {
        let tries = self.tries.get(cell).copied().unwrap_or(0);
        let messages = self.folder.join("messages");
        if tries >= TRIES {
            return Ok(Some(format!("{tries} elements of arrays ended without it; see {}", messages.display())));
        }
        if tries > 0 {
            self.tell_once(format!(
                "the element of cell {cell} ended without it, try {tries}; see {}",
                messages.display()
            ));
        }
        self.submit_missing(&[cell.to_string()], &BTreeMap::new())?;
        Ok(None)
    }
}

impl CellJobs for Elements {
    /// More rounds, or another reference, change the plan in which the jobs look for their cells.
    fn expect(&mut self, plan: &Plan, cells: &[Cell]) -> Result<()> {
        replace(&self.folder.join(PLAN), &serde_json::to_string(plan)?)?;
        let ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
        loop {
            if let Some(live) = self.live() {
                return self.submit_missing(&ids, &live);
            }
            if stop_requests() > 0 {
                return Ok(());
            }
            std::thread::sleep(LOOK * SELDOM);
        }
    }

    fn wait(&mut self, cell: &Cell) -> Result<Part> {
        let place = place_of_cell(&self.folder, &cell.id);
        let mut gone = 0;
        for look in 1_u32.. {
            if place.exists() {
                return Ok(Part::Journal(place));
            }
            if stop_requests() > 0 {
                self.stop();
                return Ok(Part::Stopped);
            }
            std::thread::sleep(LOOK);
            if look % SELDOM != 0 {
                continue;
            }
            let Some(live) = self.live() else { continue };
            match live.get(&cell.id) {
                Some(_) => gone = 0,
                // Twice: what it has brought may not be seen here yet.
                None => gone += 1,
            }
            if gone >= 2 && !place.exists() {
                if let Some(why) = self.again(&cell.id)? {
                    return Ok(Part::Failed(why));
                }
            }
        }
        bail!("the waiting never ends")
    }
}

impl Elements {
    /// By a person, or by Slurm, which then may have drained a machine too.
    fn tell_if_held(&mut self, job: &str, State { state, reason }: &State) {
        if state == "PENDING" && reason.to_lowercase().contains("held") {
            self.tell_once(format!(
                "elements of job {job} are held ({reason}): `scontrol release {job}` lets them go on; `sinfo -R` lists \
                 machines that Slurm has drained"
            ));
        }
    }
}

/// A whole run that is to be a job.
pub(crate) struct Whole<'a> {
    pub journal: &'a Path,
    /// What begins it; nothing where it is taken up.
    pub begin: Option<Vec<String>>,
    /// What it is begun and taken up with.
    pub words: Vec<String>,
    pub local: &'a Path,
}

/// The exit code.
pub(crate) fn run_whole(slurm: &Slurm, whole: &Whole) -> Result<u8> {
    let word = typed(whole.journal);
    if whole.begin.is_some() {
        refuse_old(whole.journal)?;
    } else if !whole.journal.with_extension("slurm").is_dir() {
        let shown = whole.journal.display();
        return Err(Exit::usage(format!("{shown} is no run of Slurm: the folder of its jobs is not next to it")));
    }
    let folder = folder_of(whole.journal)?;
    fleet::bring_program(&folder)?;
    let mut watch = Watch {
        slurm,
        whole,
        jobs: Jobs::of(&folder),
        folder: folder.clone(),
        tries: 0,
        stops: 0,
        shown: String::new(),
    };
    let ended = watch.until_it_ends()?;
    match ended {
        None => {
            tell(&format!("the job goes on; `pickfs run --slurm --resume {word}` looks after it"));
            Ok(STOPPED)
        }
        Some(brought) if brought.bytes == 0 => {
            tell(fs::read_to_string(folder.join("messages")).unwrap_or_default().trim_end());
            // Nothing was measured that could be taken up.
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
            Ok(u8::try_from(brought.code).unwrap_or(FAILED))
        }
        Some(brought) => {
            if whole.journal.exists() {
                show(&fold_file(whole.journal)?, whole.journal)?;
            }
            if brought.code != i32::from(STOPPED) {
                fleet::remove_program(&watch.folder);
            } else {
                tell(&format!("stopped; `pickfs run --slurm --resume {word}` goes on"));
            }
            Ok(u8::try_from(brought.code).unwrap_or(FAILED))
        }
    }
}

struct Watch<'a> {
    slurm: &'a Slurm,
    whole: &'a Whole<'a>,
    folder: PathBuf,
    jobs: Jobs,
    tries: u32,
    stops: usize,
    /// The state that the user knows.
    shown: String,
}

impl Watch<'_> {
    /// Until the run has ended; `None` where it is left to itself on request.
    fn until_it_ends(&mut self) -> Result<Option<Brought>> {
        // One that is under way since an earlier session is looked after.
        let mut job = self.jobs.read().pop().map(|(job, _)| job);
        let mut is_own = false;
        loop {
            let goes_on = job.as_ref().map_or(Ok(true), |job| self.waited(job))?;
            if !goes_on {
                return Ok(None);
            }
            let brought = self.fetched()?;
            let was_stopped = brought.as_ref().is_some_and(|brought| brought.code == i32::from(STOPPED));
            match brought {
                Some(brought) if self.stops > 0 || (is_own && !was_stopped) => return Ok(Some(brought)),
                _ if self.stops > 0 => bail!("stopped before the run had begun"),
                _ => {}
            }
            self.tries += 1;
            ensure!(
                self.tries <= TRIES,
                "{TRIES} jobs ended without the run; see {}",
                self.folder.join("messages").display()
            );
            job = Some(self.submit()?);
            is_own = true;
        }
    }

    /// On the machine that has the journal, if there is one.
    fn submit(&self) -> Result<String> {
        let node = fs::read_to_string(self.folder.join(NODE)).ok();
        let (begin, words) = (self.begin()?, self.whole.words.clone());
        let (what, local) = (JobKind::Run { begin, words }, self.whole.local.to_path_buf());
        let errand = Errand { folder: self.folder.clone(), local, what };
        let _ = fs::remove_file(self.folder.join(BROUGHT));
        let job = self.slurm.submit(&errand, node.as_deref())?;
        self.jobs.add(&job, &[])?;
        let on = node.map(|node| format!(", on {node}, which has its journal")).unwrap_or_default();
        tell(&format!("job {job}{on}"));
        Ok(job)
    }

    /// Words that begin the run, also where an earlier session has said them.
    fn begin(&self) -> Result<Begin> {
        let file = self.folder.join("begin.json");
        let shown = file.display();
        if let Some(words) = self.whole.begin.as_ref().filter(|_| !file.exists()) {
            let begin = Begin::new(words);
            fs::write(&file, serde_json::to_vec(&begin)?).with_context(|| format!("cannot write {shown}"))?;
            return Ok(begin);
        }
        let text = fs::read(&file).with_context(|| format!("cannot read {shown}, with which the run was begun"))?;
        serde_json::from_slice(&text).with_context(|| format!("{shown} is damaged"))
    }

    /// False where the user leaves.
    fn waited(&mut self, job: &str) -> Result<bool> {
        loop {
            match self.slurm.live(&[job.to_string()]) {
                Ok(live) => match live.into_values().next() {
                    None => return Ok(true),
                    Some(State { state, reason }) => self.tell_new(job, &format!("{state} ({reason})")),
                },
                Err(error) => self.tell_new(job, &format!("{error:#}; waiting for it")),
            }
            for _ in 0..SELDOM {
                std::thread::sleep(LOOK);
                let asked = stop_requests();
                if asked >= LEAVES {
                    return Ok(false);
                }
                if self.stops < asked {
                    self.stops += 1;
                    self.slurm.stop(job)?;
                }
            }
        }
    }

    fn tell_new(&mut self, job: &str, state: &str) {
        let state = state.replace(" (None)", "");
        if self.shown != state {
            tell(&format!("job {job}: {state}"));
            self.shown = state;
        }
    }

    /// The journal that a job has brought is ours from now on.
    fn fetched(&self) -> Result<Option<Brought>> {
        let Ok(text) = fs::read(self.folder.join(BROUGHT)) else { return Ok(None) };
        let brought: Brought = serde_json::from_slice(&text).context("what the job has brought is damaged")?;
        if brought.bytes == 0 {
            return Ok(Some(brought));
        }
        let (from, to) = (self.folder.join(JOURNAL), self.whole.journal);
        let there = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        ensure!(brought.is(&there), "{} is not the journal that the job has written", from.display());
        let here = fs::read(to).unwrap_or_default();
        ensure!(
            there.starts_with(&here),
            "{} is another journal than that of the job: move it away, then --resume it again",
            to.display()
        );
        let new = to.with_extension("new");
        let written = fs::write(&new, there).and_then(|()| fs::rename(&new, to));
        written.with_context(|| format!("cannot write {}", to.display()))?;
        Ok(Some(brought))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_blank_is_one_word_of_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("my run.jsonl");
        fs::write(&journal, "").unwrap();
        let said = refuse_old(&journal).unwrap_err().to_string();
        assert!(said.ends_with(&format!("or give --resume '{}'\n", journal.display())), "{said}");
    }
}
