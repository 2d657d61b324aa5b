//! `pickfs share`: a run for others to see, without secrets and without what identifies its user
//! and machine.

use super::audit::{Audit, SHARED};
use super::{Exit, Outcome, Verb, journals, programs, report};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::{self, Anonymous, Folded, fold_file, open_file};
use pickfs_core::plan::Plan;
use pickfs_host::audit::as_html;
use pickfs_host::wording::text::{counted, plain, wrapped};
use pickfs_system::process::{argv, run_program};
use pickfs_system::visible::visible;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reasons and doubts that are listed; there may be one for each cell.
const MOST_TEXTS: usize = 40;

/// Pack a run to share it: journal and page without paths, addresses, secrets, and names of the
/// machine and its user
#[derive(clap::Args)]
pub(crate) struct Arguments {
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
        let measured = fold_file(&journal)?;
        measured.begun().with_context(|| journal.display().to_string())?;
        let desk = Desk::new(&output)?;
        let shared = desk.0.join(SHARED);
        let mut anonymous = Anonymous::new(names(&measured));
        let text = std::io::read_to_string(open_file(&journal)?);
        let text = text.with_context(|| format!("cannot read {}", journal.display()))?;
        let lines = anonymous.lines(&text);
        let journal = lines.join("\n") + "\n";
        std::fs::write(&shared, &journal).with_context(|| format!("cannot write {}", shared.display()))?;
        let folded = fold_file(&shared)?;
        let page = report::page(&report::model(&folded, Path::new(SHARED))?)?;
        std::fs::write(desk.0.join("report.html"), &page).context("cannot write the page")?;
        let audit =
            Audit::of(journal.as_bytes(), Path::new(SHARED), Some(String::from_utf8_lossy(&page).into_owned()), None)?;
        let disclosure = as_html(&audit.disclosure());
        std::fs::write(desk.0.join("disclosure.html"), &disclosure).context("cannot write the disclosure")?;
        let all = journal + &String::from_utf8_lossy(&page) + &disclosure;
        let left = anonymous.left(&all);
        ensure!(left.is_empty(), "nothing is shared: {} is still in it; report this as a bug", left.join(", "));
        pack(&desk.0, &output)?;
        println!("{}: journal.jsonl, report.html and disclosure.html", visible(&output.display().to_string()));
        print!("{}", described(&anonymous, &folded, &all));
        Ok(0)
    }
}

/// What was replaced and left out, and what a user should read before it is shared.
fn described(anonymous: &Anonymous, folded: &Folded, all: &str) -> String {
    let replaced: Vec<String> = anonymous.counts().into_iter().map(|(noun, count)| counted(count, noun)).collect();
    let replaced = if replaced.is_empty() { "nothing".to_string() } else { replaced.join(", ") };
    let mut text = format!("replaced: {replaced}\n");
    let paragraph = |heading: &str, words: Vec<String>| {
        if words.is_empty() {
            String::new()
        } else {
            wrapped("", &format!("{heading}: {}", words.join(", ")), report::width()) + "\n"
        }
    };
    text += &paragraph("left out, as these facts may hold anything", anonymous.left_out().map(visible).collect());
    text += "Read what is still in it before you share it:\n";
    let left = folded.run.iter().flat_map(|run| own_words(&run.plan)).chain(free_texts(folded));
    left.for_each(|line| text += &format!("  {line}\n"));
    text + &paragraph(
        "Parts of the replaced paths also occur elsewhere, such as in titles",
        anonymous.doubts(all).into_iter().map(visible).collect(),
    )
}

/// What the plan's author wrote: title, names, commands with the names of their variables.
fn own_words(plan: &Plan) -> Vec<String> {
    let names = |names: Vec<&str>| names.into_iter().map(visible).collect::<Vec<_>>().join(", ");
    let targets = plan.targets.iter().filter(|target| !target.duplicate).map(|target| target.name.as_str()).collect();
    let works = plan.works.iter().map(|work| work.name.as_str()).collect();
    let mut lines = vec![
        format!("title: {}", visible(&plan.title)),
        format!("targets: {}", names(targets)),
        format!("works: {}", names(works)),
    ];
    lines.extend(programs::describe(plan).lines().skip(1).map(|line| line.trim_start().to_string()));
    lines
}

/// Reasons and doubts, one of several that differ by numbers alone.
fn free_texts(folded: &Folded) -> Vec<String> {
    let flags = folded.flags.iter().chain(folded.cells.iter().flat_map(|cell| &cell.flags)).map(|flag| &flag.why);
    let ends = folded.cells.iter().filter_map(|cell| cell.outcome.as_ref()).chain(folded.unfit.values());
    let reasons = ends.flat_map(|outcome| match outcome {
        journal::Outcome::Skipped(reasons) => reasons.as_slice(),
        journal::Outcome::Failed(reason) => std::slice::from_ref(reason),
        journal::Outcome::Done => &[],
    });
    let texts = flags.chain(reasons).map(|text| plain(text));
    let texts: BTreeMap<String, String> =
        texts.map(|text| (text.replace(|letter: char| letter.is_ascii_digit(), ""), text)).collect();
    let more = texts.len().saturating_sub(MOST_TEXTS);
    let more = (more > 0).then(|| format!("reasons and doubts: {more} more in journal.jsonl"));
    texts.into_values().take(MOST_TEXTS).map(|text| format!("reason or doubt: {text}")).chain(more).collect()
}

/// A folder next to the archive, removed when dropped.
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

/// Without owners and times. A colon in its name makes no other host of it, a hyphen no option.
fn pack(folder: &Path, output: &Path) -> Result<()> {
    let [folder, output] =
        [folder, output].map(|path| std::path::absolute(path).map(|path| path.display().to_string()));
    let (folder, output) = (folder?, output?);
    let no_owner = ["--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--sort=name", "--force-local"];
    let what = ["-C", &folder, "-cz", "-f", &output, "disclosure.html", "journal.jsonl", "report.html"];
    run_program(&argv([&["tar"][..], &no_owner, &what].concat())).map(drop)
}

/// Names of this machine, of its user, and of the machine that measured.
fn names(folded: &Folded) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.and_then(|home| Some(home.file_name()?.to_string_lossy().into_owned()));
    let user = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(|name| std::env::var(name).ok());
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let measured = folded.host.get("host name").and_then(|name| name.split(' ').next()).map(String::from);
    let hosts = [here].into_iter().chain(measured).flat_map(names_of_host);
    user.chain(home).chain(hosts).collect()
}

/// Whole, short, and the domain.
fn names_of_host(host: String) -> Vec<String> {
    let parts = host.split_once('.').map(|(short, domain)| vec![short.to_string(), domain.to_string()]);
    parts.into_iter().flatten().chain([host]).collect()
}
