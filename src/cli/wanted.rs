//! Which plan is meant: a file, or the short command line. Shared by `run` and `plan`.

use super::{REFUSED, USAGE, catalogue::catalogue};
use crate::need;
use crate::plan::{self, Catalogue, Complaint, Plan, Short};
use crate::run::tell;
use anyhow::{Context, Result, bail};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Clone, Debug, Default)]
pub struct Wanted {
    /// Plan file; without one, the options below make the plan
    pub plan: Option<PathBuf>,
    /// File systems to compare, such as ext4,xfs,btrfs:compress=zstd:1 (NAME[:VARIANT] or NAME[:OPTION+OPTION])
    #[arg(long, value_delimiter = ',', conflicts_with = "plan")]
    pub fs: Vec<String>,
    /// Where: as root with --fs, the folder for the image; otherwise the directories to compare as they are
    #[arg(long, value_name = "DIR", conflicts_with = "plan")]
    pub on: Vec<PathBuf>,
    /// Keep the image in memory: the software cost alone
    #[arg(long, conflicts_with_all = ["plan", "on"])]
    pub memory: bool,
    /// Make every file system old first, such as "churn 5x" or "git 100"; several, and "none", to compare
    #[arg(long, value_name = "AGE", value_delimiter = ',', conflicts_with = "plan")]
    pub age: Vec<String>,
    /// Fill every file system first, such as 80%; several, such as 0%,80%, to compare
    #[arg(long, value_name = "SHARE", value_delimiter = ',', conflicts_with = "plan")]
    pub fill: Vec<String>,
    /// Directory to work with; a generated tree unless said
    #[arg(long, value_name = "DIR", conflicts_with = "plan")]
    pub source: Option<PathBuf>,
    /// What the generated tree is like (`pickfs list profiles`), or a file that `pickfs scan` wrote
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["plan", "source"])]
    pub like: Option<String>,
    /// How many times as large as the profile, such as 0.1
    #[arg(long, conflicts_with_all = ["plan", "source"])]
    pub scale: Option<f64>,
    /// Size of the image
    #[arg(long, conflicts_with = "plan")]
    pub size: Option<String>,
    /// Workload to run
    #[arg(long, conflicts_with = "plan")]
    pub workload: Option<String>,
    /// Exactly so many rounds, every target once in each, instead of as many as a decision needs
    #[arg(long, conflicts_with_all = ["plan", "precision"])]
    pub rounds: Option<u32>,
    /// Go on until every comparison is known to so much to either side, such as 2%
    #[arg(long, value_name = "SHARE", conflicts_with = "plan")]
    pub precision: Option<String>,
    /// Begin no further round after this time, such as 2h; 3min for a generated tree unless anything else is said
    #[arg(long, value_name = "TIME", conflicts_with = "plan")]
    pub budget: Option<String>,
    /// Features that a file system must have to be in the verdict, such as snapshots,checksums (`pickfs list features`)
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', conflicts_with = "plan")]
    pub require: Vec<String>,
    /// What reaches the machine that does the work (`pickfs list executors`), whatever the plan says
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
    /// Everything random comes from it
    #[arg(long, conflicts_with = "plan")]
    pub seed: Option<u64>,
}

impl Wanted {
    /// A plan file, to be done in guests whatever it says itself.
    pub fn in_guests(plan: PathBuf) -> Wanted {
        Wanted { plan: Some(plan), executor: Some("vm".into()), ..Wanted::default() }
    }

    /// The executor that is named. A machine of its own is where file systems can be made without root: it is taken where
    /// nobody has named anything, if it can be had.
    fn executor(&self) -> Option<String> {
        let root = rustix::process::geteuid().is_root();
        let unable = root || self.plan.is_some() || !self.on.is_empty() || self.executor.is_some();
        let vm = crate::executor::find("vm").filter(|vm| !unable && need::missing(&vm.needs()).is_empty());
        vm.map(|vm| vm.name().to_string()).or_else(|| self.executor.clone())
    }
}

/// The checked plan, or the exit code after all complaints were printed.
pub fn plan(arguments: &Wanted) -> Result<std::result::Result<Plan, u8>> {
    let arguments = &chosen(arguments);
    let catalogue = Catalogue { executor: arguments.executor.clone(), ..catalogue() };
    let (text, file, folder) = match &arguments.plan {
        Some(path) => (read(path)?, path.display().to_string(), folder_of(path)?),
        None => match plan::short_toml(&short(arguments)?, &catalogue) {
            Ok(text) => (text, String::new(), std::env::current_dir()?),
            Err(complaints) => return Ok(Err(complain("", "command line", &complaints))),
        },
    };
    Ok(plan::from_toml(&text, &file, &folder, &catalogue).map_err(|complaints| complain(&text, &file, &complaints)))
}

/// The plan file that the short command line stands for.
pub fn toml(arguments: &Wanted) -> Result<std::result::Result<String, u8>> {
    let arguments = &chosen(arguments);
    let text = plan::short_toml(&short(arguments)?, &Catalogue { executor: arguments.executor.clone(), ..catalogue() });
    let line = arguments.executor.as_ref().map(|name| format!("executor = \"{name}\"\n")).unwrap_or_default();
    Ok(text.map(|text| line + &text).map_err(|complaints| complain("", "command line", &complaints)))
}

/// With the executor that is taken where none is named; says so.
fn chosen(arguments: &Wanted) -> Wanted {
    let executor = arguments.executor();
    if executor != arguments.executor {
        tell(
            "not root, so every cell gets a virtual machine of its own; --on DIR measures a directory of yours as it is",
        );
    }
    Wanted { executor, ..arguments.clone() }
}

fn complain(text: &str, file: &str, complaints: &[Complaint]) -> u8 {
    anstream::eprint!("{}", plan::render(text, file, complaints, std::io::stderr().is_terminal()));
    if complaints.iter().any(|complaint| complaint.refusal) { REFUSED } else { USAGE }
}

fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the plan {}", path.display()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => bail!("{} is no text (UTF-8); is it a plan?", path.display()),
    }
}

fn folder_of(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    Ok(absolute.parent().map(Path::to_path_buf).unwrap_or_default())
}

fn short(arguments: &Wanted) -> Result<Short> {
    Ok(Short {
        fs: arguments.fs.clone(),
        on: arguments.on.clone(),
        source: arguments.source.clone(),
        like: arguments.like.clone(),
        scale: arguments.scale,
        size: arguments.size.clone().or_else(|| size_for(arguments)),
        memory: arguments.memory,
        age: arguments.age.clone(),
        fill: arguments.fill.clone(),
        rounds: arguments.rounds,
        precision: arguments.precision.clone(),
        budget: arguments.budget.clone().or_else(|| usual_budget(arguments)),
        require: arguments.require.clone(),
        seed: arguments.seed,
        workload: arguments.workload.clone(),
        root: rustix::process::geteuid().is_root() || arguments.executor.as_deref() == Some("vm"),
        folder: std::env::current_dir().context("there is no current directory")?,
    })
}

/// A first look at a machine is to end while one waits for it. Whoever names data or an aim gets the time that it takes.
fn usual_budget(arguments: &Wanted) -> Option<String> {
    let names_data = arguments.source.is_some() || arguments.like.is_some() || arguments.scale.is_some();
    let says_more = names_data || arguments.rounds.is_some() || arguments.precision.is_some();
    (!says_more).then(|| "3min".to_string())
}

/// Small file systems behave unlike those on a real disk: on 1.2 GiB, btrfs flushes its metadata early and copies a tree
/// in twice the time that it takes on this size or any larger.
const ROOMY: u64 = 4 << 30;

/// Of the source, or of the tree that is generated if one is asked for; what is wrong with it is told by the plan's check.
fn bytes(arguments: &Wanted) -> Option<u64> {
    use crate::data::{Shape, profile::builtin};
    if let Some(source) = &arguments.source {
        return Some(crate::data::apparent_bytes(source));
    }
    let said = arguments.like.is_some() || arguments.scale.is_some();
    let like = said.then(|| builtin::profile(arguments.like.as_deref().unwrap_or(builtin::USUAL)).ok())??;
    Some(Shape::scaled(&like, arguments.scale.unwrap_or(1.0)).bytes)
}

/// Twice the source and a gibibyte for what the file systems need themselves; more where there is plenty of room.
fn size_for(arguments: &Wanted) -> Option<String> {
    let bytes = bytes(arguments);
    let least = bytes.unwrap_or(0).saturating_mul(2).saturating_add(1 << 30);
    let roomy = free_bytes(arguments).is_some_and(|free| free / 2 > ROOMY);
    let size = if roomy { least.max(ROOMY) } else { least };
    // Without a source and without plenty of room, the backing's own default is as good as any.
    (roomy || bytes.is_some()).then(|| format!("{}MiB", size >> 20))
}

/// Where the image is going to be; the tightest of several folders.
fn free_bytes(arguments: &Wanted) -> Option<u64> {
    let folders = match (arguments.memory, arguments.on.is_empty()) {
        (true, _) => vec![Path::new("/dev/shm").to_path_buf()],
        (false, true) => vec![std::env::current_dir().ok()?],
        (false, false) => arguments.on.iter().map(|folder| folder.into()).collect::<Vec<PathBuf>>(),
    };
    let free = |folder: &PathBuf| rustix::fs::statvfs(folder).ok().map(|found| found.f_bavail * found.f_frsize);
    // A folder that does not tell counts as full.
    folders.iter().map(free).min().flatten()
}
