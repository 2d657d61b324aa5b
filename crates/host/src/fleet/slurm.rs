//! The system's Slurm, by its own programs. A job is this very program: the batch script names it
//! as its interpreter, and holds the order as JSON, so no shell stands between them.

use anyhow::{Context, Result, bail, ensure};
use pickfs_system::need::Need;
use pickfs_system::process::{Argv, OWN_FILE, argv, feed_and_read, run_program};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const NEEDS: [Need; 3] = [
    Need::Program { name: "sbatch", package: "slurm-client" },
    Need::Program { name: "scancel", package: "slurm-client" },
    Need::Program { name: "squeue", package: "slurm-client" },
];

/// The verb that a batch script gives its interpreter.
pub const VERB: &str = "slurm-job";

/// Seconds before a time limit, or a preemption, at which a job is asked to end by itself.
const NOTICE: u32 = 120;

/// Elements of an array: what `MaxArraySize` allows where it is not configured.
pub const MOST_ELEMENTS: usize = 1000;

/// A line of the kernel's `#!` has at most 255 characters.
const LONGEST_FIRST_LINE: usize = 255;

/// What a job is to do, as its batch script says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Errand {
    /// Seen by all machines; gets what the job makes.
    pub folder: PathBuf,
    /// A folder on the job's machine alone: journals of runs under way lie below it.
    pub local: PathBuf,
    pub what: JobKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// One cell for each element of the array, by its index.
    Cells(Vec<String>),
    /// A whole run, with these words for `pickfs run`; it is taken up where the machine, or the
    /// folder, has its journal.
    Run {
        begin: Begin,
        /// What it is begun and taken up with.
        words: Vec<String>,
    },
}

/// What begins a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// Differs between any two runs, also of one journal that was removed meanwhile.
    pub id: String,
    /// For `pickfs run`.
    pub words: Vec<String>,
}

impl Begin {
    pub fn new(words: &[String]) -> Begin {
        let id = super::hash(format!("{} {}", jiff::Timestamp::now(), std::process::id()).as_bytes());
        Begin { id: id[..16].to_string(), words: words.to_vec() }
    }
}

/// State and reason of a job that has not ended, in Slurm's words.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub state: String,
    pub reason: String,
}

/// How jobs are given to it.
#[derive(Clone, Debug, Default)]
pub struct Slurm {
    /// The partition; Slurm's default where it is empty.
    pub partition: String,
    /// Further options of sbatch.
    pub options: Vec<String>,
}

impl Slurm {
    pub fn new(partition: &str, options: &[String]) -> Result<Slurm> {
        if let Some(missing) = pickfs_system::need::missing(&NEEDS).first() {
            bail!("cannot use Slurm: {missing}");
        }
        Ok(Slurm { partition: partition.to_string(), options: options.to_vec() })
    }

    /// The number of the new job. On `node` alone, where one is named.
    pub fn submit(&self, errand: &Errand, node: Option<&str>) -> Result<String> {
        let script = script(errand)?;
        let said = feed_and_read(&self.sbatch(errand, node), script.as_bytes()).context("Slurm takes no job")?;
        // JOB, or JOB;CLUSTER.
        let job = said.trim().split(';').next().unwrap_or_default().to_string();
        ensure!(is_job(&job), "sbatch printed `{}`, which is no job number", said.trim().escape_debug());
        Ok(job)
    }

    fn sbatch(&self, errand: &Errand, node: Option<&str>) -> Argv {
        let output = errand.folder.join("messages").display().to_string();
        let mut words = argv(["sbatch", "--parsable", "--job-name=pickfs", "--nodes=1", "--ntasks=1", "--requeue"]);
        words.extend([format!("--output={output}"), "--open-mode=append".into(), "--chdir=/".into()]);
        words.push(format!("--signal=B:TERM@{NOTICE}"));
        match &errand.what {
            JobKind::Cells(cells) => words.push(format!("--array=0-{}", cells.len().saturating_sub(1))),
            JobKind::Run { .. } => words.push("--exclusive".into()),
        }
        words.extend((!self.partition.is_empty()).then(|| format!("--partition={}", self.partition)));
        words.extend(self.options.iter().cloned());
        words.extend(node.map(|node| format!("--nodelist={node}")));
        words
    }

    /// Asks a job to end by itself, or ends it where it has not begun.
    pub fn stop(&self, job: &str) -> Result<()> {
        run_program(&argv(["scancel", "--quiet", "--state=PENDING", job]))?;
        run_program(&argv(["scancel", "--quiet", "--batch", "--signal=TERM", job])).map(drop)
    }

    /// What has not ended of these jobs, by job and index of the element.
    pub fn live(&self, jobs: &[String]) -> Result<BTreeMap<(String, usize), State>> {
        let mut live = BTreeMap::new();
        for job in jobs {
            let words = ["squeue", "--noheader", "--array", "--states=all", "--format=%F|%K|%T|%r", "--jobs", job];
            let text = match run_program(&argv(words)) {
                Ok(text) => text,
                // Forgotten, as Slurm does some minutes after the end.
                Err(error) if format!("{error:#}").contains("Invalid job id") => continue,
                Err(error) => return Err(error.context("Slurm does not answer")),
            };
            live.extend(text.lines().filter_map(state));
        }
        Ok(live)
    }
}

fn is_job(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The state in a line `JOB|INDEX|STATE|REASON`; `None` where the job has ended.
fn state(line: &str) -> Option<((String, usize), State)> {
    const ENDED: [&str; 10] = [
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
        "REVOKED", "TIMEOUT",
    ];
    let mut words = line.trim().splitn(4, '|');
    let (job, index, state, reason) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let live = !ENDED.contains(&state);
    live.then(|| ((job.to_string(), index.parse().unwrap_or(0)), State { state: state.into(), reason: reason.into() }))
}

fn script(errand: &Errand) -> Result<String> {
    let program = errand.folder.join(PROGRAM);
    let first = format!("#!{} {VERB}", program.display());
    ensure!(
        !first[2..first.len() - VERB.len() - 1].contains(char::is_whitespace) && first.len() <= LONGEST_FIRST_LINE,
        "{} cannot be the folder of a job: it has blanks, or is too long for a batch script; name another --journal",
        errand.folder.display()
    );
    Ok(format!("{first}\n{}\n", serde_json::to_string(errand)?))
}

const PROGRAM: &str = "pickfs";

/// Puts this program into the folder, as jobs start it: one that is built anew meanwhile is
/// another.
pub fn bring_program(folder: &Path) -> Result<()> {
    let place = folder.join(PROGRAM);
    if place.exists() {
        return Ok(());
    }
    let new = folder.join(format!("{PROGRAM}.{}", std::process::id()));
    let copied = std::fs::copy(OWN_FILE, &new).and_then(|_| std::fs::rename(&new, &place));
    copied.with_context(|| format!("cannot copy pickfs to {}", place.display()))
}

/// The run has ended, and takes no more room than it must.
pub fn remove_program(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(PROGRAM));
}

/// The errand of a batch script.
pub(crate) fn read_errand(script: &Path) -> Result<Errand> {
    let shown = script.display();
    let text = std::fs::read_to_string(script).with_context(|| format!("cannot read the batch script {shown}"))?;
    let order = text.split_once('\n').map(|(_, order)| order).unwrap_or_default();
    serde_json::from_str(order).with_context(|| format!("{shown} is no batch script of `pickfs run --slurm`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errand(folder: &str, what: JobKind) -> Errand {
        Errand { folder: folder.into(), local: "/var/tmp/pickfs-0".into(), what }
    }

    #[test]
    fn a_batch_script_is_read_by_the_job_as_it_was_meant() {
        let what = JobKind::Run { begin: Begin::new(&["a\n#b".into()]), words: vec!["--erase=x y".into()] };
        let errand = errand("/shared/run.slurm", what);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        let text = script(&errand).unwrap();
        assert!(text.starts_with("#!/shared/run.slurm/pickfs slurm-job\n{"), "{text}");
        std::fs::write(&file, text).unwrap();
        assert_eq!(read_errand(&file).unwrap(), errand);
    }

    #[test]
    fn folders_that_no_first_line_can_name_are_refused() {
        for folder in ["/shared b", "/a\tb", &format!("/{}", "x".repeat(250))] {
            let refused = script(&errand(folder, JobKind::Cells(Vec::new()))).expect_err(folder).to_string();
            assert!(refused.contains("name another --journal"), "{refused}");
        }
    }

    #[test]
    fn what_has_ended_is_told_from_what_goes_on() {
        let lines = "7|0|RUNNING|None\n7|1|PENDING|Resources\n7|2|COMPLETED|None\n7|3|CANCELLED|None\n8|N/A|COMPLETING|None\nnonsense";
        let live: Vec<String> = lines
            .lines()
            .filter_map(state)
            .map(|((job, index), state)| format!("{job}.{index} {} {}", state.state, state.reason))
            .collect();
        assert_eq!(live, ["7.0 RUNNING None", "7.1 PENDING Resources", "8.0 COMPLETING None"]);
    }

    #[test]
    fn real_runs_get_a_machine_for_themselves_and_cells_an_array() {
        let slurm = Slurm { partition: "disks".into(), options: vec!["--constraint=nvme".into()] };
        let run = slurm
            .sbatch(&errand("/f", JobKind::Run { begin: Begin::default(), words: Vec::new() }), Some("n2"))
            .join(" ");
        assert!(run.contains(" --exclusive --partition=disks --constraint=nvme --nodelist=n2"), "{run}");
        let cells = slurm.sbatch(&errand("/f", JobKind::Cells(vec!["a".into(), "b".into()])), None).join(" ");
        assert!(cells.contains(" --array=0-1 ") && !cells.contains("--exclusive"), "{cells}");
    }
}
