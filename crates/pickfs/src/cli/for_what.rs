//! `pickfs for`: what is known for a purpose without measuring, and what measuring here would add.

use super::purpose::{self, Purpose};
use super::run::{self, Shown};
use super::{Exit, Outcome, Verb, did_you_mean, how_long, plan_source, programs, report};
use anyhow::Result;
use pickfs_core::plan::{Plan, PlanArgs, PlanFlags, Target, Work};
use pickfs_host::executor;
use pickfs_host::wording::digest::Digest;
use pickfs_host::wording::text::wrapped;
use pickfs_system::need;
use pickfs_system::units::{show_duration, show_share};
use pickfs_system::visible::visible;
use pickfs_target::{agent, workload};
use pickfs_trace::shipped;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Flags of works, which each word sets itself.
const OWN_WORKS: [&str; 3] = ["workload", "trace", "job"];

/// Answer a common question: what is known at once, and what measuring here would add
#[derive(clap::Args)]
#[command(mut_args(|argument| {
    let hidden = OWN_WORKS.contains(&argument.get_id().as_str());
    argument.hide(hidden)
}))]
pub(crate) struct Arguments {
    /// What the file system is for, such as laptop or postgres; without it, all that there is
    #[arg(value_name = "WHAT")]
    purpose: Option<String>,
    /// Measure at once
    #[arg(long)]
    now: bool,
    /// Print the plan file, and nothing else
    #[arg(long = "plan", conflicts_with = "now")]
    prints_plan: bool,
    /// Of a simulation: as the atlas that comes with pickfs was made, with few data and rounds
    #[arg(long)]
    short: bool,
    /// The kind of disk that is meant, such as hdd, ssd or nvme (`pickfs list disks`) [default:
    /// that of this folder]
    #[arg(long, value_name = "DISK", conflicts_with_all = ["now", "prints_plan"])]
    disk: Option<String>,
    #[command(flatten)]
    flags: PlanFlags,
    /// How to reach the machine that does the work (`pickfs list executors`)
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Where to write the journal
    #[arg(long, value_name = "FILE", requires = "now")]
    journal: Option<PathBuf>,
    /// Agree to the programs that the plan runs on this machine (`pickfs plan` shows them), and to
    /// fetch what a guest is made of
    #[arg(long)]
    yes: bool,
    /// How to show what goes on: for people, as plain lines, or as JSON, an object a line on
    /// standard error
    #[arg(long, value_name = "HOW", default_value = "people")]
    progress: Shown,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs for", "all that there is, with the time it takes"],
        ["pickfs for postgres", "what is known at once, and what measuring would add"],
        ["sudo pickfs for postgres --now", "measure"],
        ["pickfs for mail --disk hdd", "on another kind of disk"],
        ["sudo pickfs for photos --fs ext4,xfs --source ~/Pictures --now", "with your own choice and files"],
        ["pickfs for laptop --plan > laptop.toml", "its plan, to change and keep"],
    ];

    fn run(&self) -> Outcome {
        let Some(word) = &self.purpose else {
            print!("{}", list()?);
            return Ok(0);
        };
        let purpose = purpose::find(word)?;
        if let Some(flag) = OWN_WORKS.into_iter().find(|flag| self.flags.has(flag)) {
            let name = purpose.name;
            return Err(Exit::usage(format!("--{flag}: `for {name}` has its own works; use `pickfs run --{flag}`")));
        }
        let arguments = self.of(&purpose, &self.flags)?;
        if self.prints_plan {
            print!("{}", self.header(&purpose) + &plan_source::from_flags(&arguments)?.1);
            return Ok(0);
        }
        if self.now {
            return self.measure(arguments);
        }
        let disk = self.disk(&purpose)?;
        // The first is at once, whatever has to be looked at for the second.
        print!("{}{}", question(&purpose), known(&purpose, &disk));
        let plans = self.plans(&purpose)?;
        print!("{}", self.offer(&purpose, &plans));
        let may_ask = [std::io::stdin().is_terminal(), std::io::stdout().is_terminal()] == [true; 2];
        if may_ask && programs::asked("\nMeasure now?")? {
            return self.measure(arguments);
        }
        Ok(0)
    }
}

/// The kinds of disk that a question may be about, and how they are called.
struct Disk {
    models: Vec<String>,
    words: String,
}

impl Arguments {
    fn measure(&self, plan: PlanArgs) -> Outcome {
        run::Arguments::of_plan(plan, self.journal.clone(), self.yes, self.progress).run()
    }

    fn of(&self, purpose: &Purpose, flags: &PlanFlags) -> Result<PlanArgs> {
        if self.short { purpose.in_short(flags) } else { Ok(purpose.arguments(flags, self.executor.clone())) }
    }

    fn disk(&self, purpose: &Purpose) -> Result<Disk> {
        let named: Vec<String> = match &self.disk {
            Some(disk) => vec![whole_name(disk)?],
            None if self.flags.has("sim") => {
                self.flags.texts("sim").iter().map(|disk| pickfs_disks::whole_name(disk)).collect()
            }
            None => purpose.disk.iter().filter(|_| !self.flags.has("on")).cloned().collect(),
        };
        if !named.is_empty() {
            let words = named.join(" and ");
            return Ok(Disk { models: named, words });
        }
        let folder = self.flags.text("on").unwrap_or(".");
        let all: BTreeSet<String> = purpose::atlas().into_iter().map(|digest| digest.disk).collect();
        Ok(match plan_source::kind_of_disk(Path::new(folder)) {
            (Some(name), Some(model)) => {
                Disk { models: vec![model.into()], words: format!("{model} ({name}, below this folder)") }
            }
            (Some(name), None) => {
                let words =
                    format!("any disk ({name} below this folder is virtual, so its kind is unknown: --disk names it)");
                Disk { models: all.into_iter().collect(), words }
            }
            (None, _) => {
                let words = "any disk (this folder is on no disk of this machine: --disk names one)".into();
                Disk { models: all.into_iter().collect(), words }
            }
        })
    }

    /// One, or one for each simulated disk.
    fn plans(&self, purpose: &Purpose) -> Result<Vec<Plan>> {
        let disks = self.flags.texts("sim");
        let of = |disk: Option<&String>| {
            let mut flags = self.flags.clone();
            disk.into_iter().for_each(|disk| flags.set("sim", [disk]));
            Ok(plan_source::from_flags(&self.of(purpose, &flags)?)?.0)
        };
        if disks.is_empty() { Ok(vec![of(None)?]) } else { disks.iter().map(|disk| of(Some(disk))).collect() }
    }

    /// What would be run, how long it takes, and the command.
    fn offer(&self, purpose: &Purpose, plans: &[Plan]) -> String {
        let plan = &plans[0];
        let mut text = "\nMeasuring here would add\n".to_string();
        let times = if plans.len() > 1 { format!("; {} such runs", plans.len()) } else { String::new() };
        let rows = [
            ("work", works(plan)),
            ("on", targets(plan) + &self.other_disk(purpose)),
            ("time", how_long::in_words(plan) + &times),
            ("not in it", purpose.lacks.clone()),
        ];
        let missing = missing(plan).into_iter().map(|missing| ("left out", missing));
        for (name, words) in rows.into_iter().chain(missing).filter(|(_, words)| !words.is_empty()) {
            let _ = writeln!(text, "{}", row(name, &words));
        }
        text + "\n" + &commands(&self.commands(purpose, plan))
    }

    /// What is meant may be another disk than that of this folder.
    fn other_disk(&self, purpose: &Purpose) -> String {
        let disk = purpose.disk.as_ref().filter(|_| !["on", "memory", "sim"].iter().any(|flag| self.flags.has(flag)));
        disk.map(|disk| format!("; a folder on a disk like {disk} is better: --on DIR")).unwrap_or_default()
    }

    /// Each with what it does.
    fn commands(&self, purpose: &Purpose, plan: &Plan) -> Vec<[String; 2]> {
        let typed = self.typed(purpose);
        let is_root = rustix::process::geteuid().is_root();
        let now = format!("pickfs {typed} --now");
        let mut commands =
            match is_root || self.executor.is_some() || ["on", "sim"].iter().any(|flag| self.flags.has(flag)) {
                true => vec![[now, "measure, then name the one to pick".to_string()]],
                // What is shown is done without root.
                false => vec![
                    [format!("sudo {now}"), "measure on this disk, then name the one to pick".into()],
                    [now, format!("the same without root: executor `{}`", plan.executor)],
                ],
            };
        let disk = purpose.disk.as_deref().filter(|_| !self.flags.has("sim") && !self.flags.has("on"));
        commands.extend(disk.map(|disk| {
            [format!("pickfs {typed} --sim {disk} --now"), format!("the same on a simulated {disk}, without root")]
        }));
        commands.push([format!("pickfs {typed} --plan"), "print the plan, to change and keep".into()]);
        commands
    }

    /// Comments above a plan: the questions, and the command that printed it.
    fn header(&self, purpose: &Purpose) -> String {
        let questions: String = purpose.questions.iter().map(|question| format!("# {question}\n")).collect();
        let typed = visible(&self.typed(purpose));
        format!("# {}\n#\n{questions}#\n# `pickfs {typed} --plan` printed it.\n\n", purpose.about)
    }

    /// The words of this command, as a shell takes them.
    fn typed(&self, purpose: &Purpose) -> String {
        // Easier to read than `--name=value`, where the value is no option.
        let apart = |word: String| match word.split_once('=').filter(|(_, value)| !value.starts_with('-')) {
            Some((name, value)) => vec![name.to_string(), value.to_string()],
            None => vec![word],
        };
        let typed = self.flags.as_typed().into_iter().flat_map(apart);
        let executor = self.executor.iter().map(|name| format!("--executor={name}"));
        let short = self.short.then(|| "--short".to_string());
        let words = ["for".to_string(), purpose.name.to_string()].into_iter().chain(typed).chain(executor).chain(short);
        shell_words::join(words)
    }
}

/// A model of a disk, by its name or the word for its kind.
fn whole_name(word: &str) -> Result<String> {
    let name = pickfs_disks::whole_name(word);
    let names = || pickfs_disks::ALL.iter().map(|entry| entry.name);
    if names().any(|known| known == name) {
        return Ok(name);
    }
    let near = did_you_mean("", pickfs_core::plan::nearest(word, names()));
    Err(Exit::usage(format!(
        "--disk: there is no model of a disk `{}`; {near}`pickfs list disks` shows all",
        word.escape_debug()
    )))
}

/// Aligned where they are short.
fn commands(rows: &[[String; 2]]) -> String {
    let widest = rows.iter().map(|[command, _]| command.chars().count()).max().unwrap_or(0);
    let line = |[command, does]: &[String; 2]| {
        if widest + does.chars().count() + 6 > report::width() {
            format!("  {command}\n      {does}\n")
        } else {
            format!("  {command:widest$}   {does}\n")
        }
    };
    rows.iter().map(line).collect()
}

/// "  NAME  WORDS", broken below itself.
fn row(name: &str, words: &str) -> String {
    let indent = " ".repeat(13);
    let lines = pickfs_host::wording::text::lines(words, report::width().saturating_sub(indent.len()));
    format!("  {name:<11}{}", lines.join(&format!("\n{indent}")))
}

fn question(purpose: &Purpose) -> String {
    let width = report::width();
    let mut text = wrapped("", &format!("{}: {}", purpose.name, purpose.about), width) + "\n";
    for question in &purpose.questions {
        let _ = writeln!(text, "{}", wrapped("  ", question, width));
    }
    text
}

/// What simulated runs say, without measuring.
fn known(purpose: &Purpose, disk: &Disk) -> String {
    let width = report::width();
    let found =
        |works: &[String]| disk.models.iter().flat_map(|model| purpose::known(works, model)).collect::<Vec<_>>();
    let (exact, near) = (found(&purpose.in_atlas()), found(&purpose.near));
    let mut text = "\nKnown without measuring, from simulated disks\n".to_string();
    let says = match (exact.is_empty(), near.is_empty()) {
        (false, _) => format!("on {}:", disk.words),
        (true, false) => format!("nothing for this work; the nearest is work on many small files, on {}:", disk.words),
        (true, true) => unknown(purpose, disk),
    };
    let _ = writeln!(text, "{}", wrapped("  ", &says, width));
    if exact.is_empty() && purpose.has_short() {
        let model = if disk.models.len() == 1 { &disk.models[0] } else { "nvme" };
        let command = format!("pickfs for {} --sim {model} --short --now", purpose.name);
        let _ = writeln!(text, "{}", wrapped("  ", &format!("`{command}` simulates it"), width));
    }
    let is_exact = !exact.is_empty();
    let shown = if exact.is_empty() { near } else { exact };
    for of_disk in shown.chunk_by(|one, next| (&one.disk, &one.work) == (&next.disk, &next.work)) {
        let Digest { disk, data, rounds, day, .. } = &of_disk[0];
        let _ =
            writeln!(text, "{}", wrapped("  ", &format!("Simulated {disk}, {day}, {rounds} rounds of {data}"), width));
        for Digest { kernel, verdict, .. } in of_disk {
            let _ = writeln!(text, "{}", wrapped("    ", &format!("Linux {}: {verdict}", version(kernel)), width));
        }
    }
    if !shown.is_empty() {
        let caveat = "Real disks and processors differ from models; more data can change the order.";
        let _ = writeln!(text, "{}", wrapped("  ", caveat, width));
    }
    if is_exact {
        let part = "What was simulated is a small part of the work below.";
        let _ = writeln!(text, "{}", wrapped("  ", part, width));
    }
    text
}

/// Why there is no answer for this disk.
fn unknown(purpose: &Purpose, disk: &Disk) -> String {
    let others = Vec::from_iter(purpose.disks_in_atlas()).join(", ");
    match (purpose.unsimulated.as_str(), others.as_str()) {
        ("", "") => "nothing: this work was not simulated yet".into(),
        ("", others) => format!("nothing for this work on {}; with --disk it is known on {others}", disk.words),
        (reason, _) => format!("nothing: {reason}"),
    }
}

/// "6.1" of "6.1.0-56-amd64".
fn version(kernel: &str) -> String {
    kernel.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn works(plan: &Plan) -> String {
    let work = |work: &Work| {
        let (name, settings) = (&work.workload.name, &work.workload.settings);
        if let Some(trace) = settings.text("trace") {
            let about = shipped::find(trace).map(|found| format!(" ({})", found.about));
            return format!("a replay of {trace}{}", about.unwrap_or_default());
        }
        let about = workload::find(name).map(|found| found.about()).unwrap_or_default();
        let data = ["source", "like"].into_iter().find_map(|name| settings.text(name));
        let scale = settings.0.get("scale").and_then(|scale| scale.as_f64()).filter(|scale| *scale != 1.0);
        let scale = scale.map(|scale| format!(", {} of its size", show_share(scale))).unwrap_or_default();
        let data = data.map(|data| format!(" of {data}{scale}")).unwrap_or_default();
        format!("{name}{data} ({about})")
    };
    plan.works.iter().map(work).collect::<Vec<_>>().join("; ")
}

/// Targets, and where they are.
fn targets(plan: &Plan) -> String {
    let shown: Vec<&Target> = plan.targets.iter().filter(|target| !target.duplicate).collect();
    let names: Vec<&str> = shown.iter().map(|target| target.name.as_str()).collect();
    let backing = &shown[0].backing;
    let place = match (backing.name.as_str(), backing.settings.text("dir")) {
        _ if executor::simulates(&plan.executor) => {
            format!(", on a simulated {}", shown[0].machine.text("disk").unwrap_or("disk"))
        }
        ("memory", _) => ", in memory".into(),
        (_, Some(folder)) => format!(", in an image in {folder}"),
        _ => String::new(),
    };
    format!("{}{place}", names.join(", "))
}

/// What this machine lacks, where it does the work: a line for each target or work that cannot be
/// measured for that.
fn missing(plan: &Plan) -> Vec<String> {
    if executor::brings_its_own(&plan.executor) {
        return Vec::new();
    }
    let of_target = |target: &Target| (target.name.clone(), agent::needs_of_target(target));
    let of_work = |work: &Work| {
        let needs = workload::find(&work.workload.name).map(|found| found.needs(&work.workload.settings));
        (work.name.clone(), needs.unwrap_or_default())
    };
    let lacking = |(name, needs): (String, Vec<need::Need>)| {
        let missing: Vec<String> = need::missing(&needs).iter().map(ToString::to_string).collect();
        (!missing.is_empty()).then(|| format!("{name}: {}", missing.join("; ")))
    };
    let shown = || plan.targets.iter().filter(|target| !target.duplicate);
    let mut all: Vec<String> = shown().map(of_target).filter_map(lacking).collect();
    if all.len() + 1 >= shown().count() {
        all.push(
            "so nothing is left to compare here; --executor vm has the kernels of Debian's releases, --sim too".into(),
        );
    }
    all.extend(plan.works.iter().map(of_work).filter_map(lacking));
    all
}

/// Every word with the time that its plan takes.
fn list() -> Result<String> {
    let head = "What is the file system for? `pickfs for WORD` answers at once with what is known, and what measuring would \
        add, with the time that measuring takes:";
    let mut text = wrapped("", head, report::width()) + "\n\n";
    for purpose in purpose::all() {
        let plan = plan_source::checked(purpose.arguments(&PlanFlags::default(), None))?;
        let budget = plan.stop.budget_ns.map(|ns| show_duration(ns as f64)).unwrap_or_default();
        let budget = budget.replace(".0 ", " ");
        let about: Vec<String> = pickfs_host::wording::text::lines(&purpose.about, report::width().saturating_sub(24));
        let _ = writeln!(text, "  {:<12}{budget:>7}   {}", purpose.name, about.join(&format!("\n{}", " ".repeat(24))));
    }
    text.push_str("\nOther words are understood too, such as mariadb, docker, steam or proxmox.\n");
    Ok(text)
}
