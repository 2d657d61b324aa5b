//! `pickfs share`: a run for others to see, without what tells who measured where.

use super::{Exit, Outcome, Verb, journals, report};
use crate::journal::{Anonymous, Folded, fold_file, open_file};
use crate::process::{argv, run_program};
use crate::wording::text::{counted, wrapped};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Pack a run to share it: journal and page without paths, UUIDs and names of the machine and its user
#[derive(clap::Args)]
pub struct Arguments {
    /// Journal of the run
    #[arg(default_value = "@last")]
    journal: PathBuf,
    /// The archive [default: RUN-shared.tar.gz here]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs share", "the newest run, as RUN-shared.tar.gz in this folder"],
        ["pickfs share @2 -o issue-7.tar.gz", "the run before it, under this name"],
    ];

    fn run(&self) -> Outcome {
        let journal = journals::named(&self.journal)?;
        let name = journal.file_stem().context("the journal has no name")?.to_string_lossy().into_owned();
        let output = self.output.clone().unwrap_or_else(|| format!("{name}-shared.tar.gz").into());
        if output.exists() {
            return Err(Exit::usage(format!("{} is there already; -o names another file", output.display())));
        }
        let desk = Desk::new(&output)?;
        let shared = desk.0.join("journal.jsonl");
        let mut anonymous = Anonymous::new(names(&fold_file(&journal)?));
        let text = std::io::read_to_string(open_file(&journal)?);
        let text = text.with_context(|| format!("cannot read {}", journal.display()))?;
        let lines: Vec<String> = text.lines().filter_map(|line| anonymous.line(line)).collect();
        std::fs::write(&shared, lines.join("\n") + "\n")
            .with_context(|| format!("cannot write {}", shared.display()))?;
        let page = report::page(&fold_file(&shared)?, Path::new("journal.jsonl"))?;
        std::fs::write(desk.0.join("report.html"), &page).context("cannot write the page")?;
        let all = lines.join("\n") + &String::from_utf8_lossy(&page);
        let left = anonymous.left(&all);
        ensure!(left.is_empty(), "nothing is shared: {} is still in it; report this as a bug", left.join(", "));
        pack(&desk.0, &output)?;
        println!("{}: journal.jsonl and report.html", output.display());
        let [paths, uuids, names] = anonymous.counts();
        let replaced = [counted(paths, "path"), counted(uuids, "UUID"), counted(names, "name")];
        println!("replaced: {}; names are those of this machine and its user", replaced.join(", "));
        let doubts = anonymous.doubts(&all);
        if !doubts.is_empty() {
            let told = format!(
                "Look at it before you share it. Parts of these paths also stand elsewhere, as in titles: {}",
                doubts.join(", ")
            );
            println!("{}", wrapped("", &told, report::width()));
        }
        Ok(0)
    }
}

/// A folder beside the archive that goes when it is dropped.
struct Desk(PathBuf);

impl Desk {
    fn new(output: &Path) -> Result<Desk> {
        let mut folder = output.as_os_str().to_owned();
        folder.push(format!(".{}", std::process::id()));
        let folder = PathBuf::from(folder);
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Desk(folder))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Nobody's, and of no time.
fn pack(folder: &Path, output: &Path) -> Result<()> {
    let (folder, output) = (folder.display().to_string(), output.display().to_string());
    let nobody = ["--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--sort=name"];
    let what = ["-C", &folder, "-cz", "-f", &output, "journal.jsonl", "report.html"];
    run_program(&argv([&["tar"][..], &nobody, &what].concat())).map(drop)
}

/// Of this machine, of who uses it, and of the machine that measured.
fn names(folded: &Folded) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.and_then(|home| Some(home.file_name()?.to_string_lossy().into_owned()));
    let user = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(|name| std::env::var(name).ok());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = host.split('.').next().map(String::from);
    let measured = folded.host.get("host name").and_then(|name| name.split(' ').next()).map(String::from);
    user.chain(home).chain([host]).chain(short).chain(measured).collect()
}
