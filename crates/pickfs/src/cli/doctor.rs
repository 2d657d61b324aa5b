//! `pickfs doctor`: what this machine can run, what is missing and how to get it.

use super::{Exit, Outcome, Verb, did_you_mean, gate::Gate, report};
use pickfs_core::plan::{Settings, USUAL_TARGETS, nearest};
use pickfs_host::executor;
use pickfs_host::run::Active;
use pickfs_host::wording::text::lines;
use pickfs_system::need::{Missing, Need};
use pickfs_system::visible::visible_lines;
use pickfs_target::stack::{above, backing, fs, layer};
use pickfs_target::workload;
use std::collections::BTreeSet;

/// Show what this machine can run, what is missing and how to get it
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Show all that these lack: file systems, layers, workloads or others
    #[arg(value_name = "NAME", conflicts_with = "gate")]
    names: Vec<String>,
    /// Show for all of them what they lack
    #[arg(long, conflicts_with_all = ["names", "gate"])]
    all: bool,
    /// As JSON, for programs
    #[arg(long, conflicts_with_all = ["names", "all"])]
    json: bool,
    #[command(flatten)]
    gate: Gate,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs doctor", "what works here, on one screen"],
        ["pickfs doctor zfs lvm", "what these lack, and what brings it"],
        ["sudo pickfs doctor", "the same as root sees it"],
        ["pickfs doctor --gate", "is this machine fit to measure? for health checks of many machines"],
    ];
    const ONLY_PRINTS: bool = true;
    fn run(&self) -> Outcome {
        match (self.gate.gate, self.json) {
            (true, _) => self.gate.run(),
            (false, true) => json(),
            (false, false) if self.all || !self.names.is_empty() => whole(&self.names),
            (false, false) => short(),
        }
    }
}

/// A title, and what is needed for each entry.
type Section = (&'static str, Vec<(&'static str, Vec<Need>)>);

fn sections() -> [Section; 6] {
    [
        ("file systems", fs::ALL.iter().map(|fs| (fs.name, fs.needs())).collect()),
        ("backings", backing::ALL.iter().map(|backing| (backing.name, backing.needs.to_vec())).collect()),
        ("layers", layer::ALL.iter().map(|layer| (layer.name, layer.needs.to_vec())).collect()),
        ("layers above", above::ALL.iter().map(|layer| (layer.name, layer.needs.to_vec())).collect()),
        ("workloads", workload::for_users().map(|one| (one.name(), one.needs(&Settings::default()))).collect()),
        ("executors", executor::ALL.iter().map(|executor| (executor.name(), executor.needs())).collect()),
    ]
}

/// The same for programs: the state of each entry, and what to install.
fn json() -> Outcome {
    let mut packages = BTreeSet::new();
    let mut all = serde_json::Map::new();
    for (title, rows) in sections() {
        let entry = |(name, needs): &(&str, Vec<Need>)| {
            let unmet = unmet(needs);
            packages.extend(unmet.iter().filter_map(|(need, _)| (*need).clone().package()));
            let missing: Vec<String> = unmet.iter().map(|(_, missing)| missing.to_string()).collect();
            serde_json::json!({ "name": name, "state": state(needs, &unmet), "missing": missing })
        };
        all.insert(title.replace(' ', "_"), rows.iter().map(entry).collect());
    }
    all.insert("root".into(), rustix::process::geteuid().is_root().into());
    all.insert("packages".into(), packages.into_iter().collect());
    println!("{}", serde_json::to_string_pretty(&all)?);
    Ok(0)
}

/// All but root, which is said in the state.
fn unmet(needs: &[Need]) -> Vec<(&Need, Missing)> {
    let unmet = needs.iter().filter_map(|need| Some((need, need.check().err()?)));
    unmet.filter(|(need, _)| **need != Need::Root).collect()
}

fn state_of(needs: &[Need]) -> &'static str {
    state(needs, &unmet(needs))
}

fn state(needs: &[Need], unmet: &[(&Need, Missing)]) -> &'static str {
    match unmet.is_empty() {
        false => "missing",
        true if needs.iter().any(|need| need.check().is_err()) => "sudo",
        true => "ok",
    }
}

/// What works and what does not, by name.
fn short() -> Outcome {
    let root = rustix::process::geteuid().is_root();
    let mut all: Vec<(&str, [Vec<&str>; 3])> = Vec::new();
    for (title, rows) in sections() {
        let mut by_state: [Vec<&str>; 3] = Default::default();
        for (name, needs) in &rows {
            let state = STATES.iter().position(|(state, _)| *state == state_of(needs));
            by_state[state.unwrap_or(0)].push(name);
        }
        all.push((title, by_state));
    }
    let defaults = &all[0].1;
    let usual: BTreeSet<&str> =
        USUAL_TARGETS.iter().map(|target| target.split_once(':').map_or(*target, |(name, _)| name)).collect();
    let can_run =
        |root: bool| usual.iter().all(|name| defaults[0].contains(name) || (root && defaults[1].contains(name)));
    let [alone, with_root] = [root, true].map(can_run);
    let names = usual.into_iter().collect::<Vec<_>>().join(" ");
    let first = match (alone, with_root) {
        (true, _) => format!("ready: `pickfs run` compares {names} here"),
        (false, true) => format!("with sudo, or in guests: `sudo pickfs run` compares {names} here"),
        (false, false) => format!("not ready for `pickfs run`: `pickfs doctor {names}` lists what is missing"),
    };
    println!("{first}\n");
    for (title, by_state) in &all {
        let parts = STATES.iter().zip(by_state).filter(|(_, names)| !names.is_empty());
        for (at, ((_, word), names)) in parts.enumerate() {
            let indent = format!("{:<14}{word:<9}", if at == 0 { title } else { "" });
            let text = lines(&names.join(" "), report::width().saturating_sub(indent.len()));
            println!("{indent}{}", text.join(&format!("\n{:23}", "")));
        }
    }
    println!();
    machine();
    leftovers()?;
    println!("\npickfs doctor NAME   what one lacks, and how to get it; --all covers all");
    Ok(0)
}

/// What is printed for each state.
const STATES: [(&str, &str); 3] = [("ok", "ok"), ("sudo", "as root"), ("missing", "missing")];

/// With all that is missing: of these, or of everything.
fn whole(names: &[String]) -> Outcome {
    let mut sections = sections();
    let known = || sections.iter().flat_map(|(_, rows)| rows.iter().map(|(name, _)| *name));
    if let Some(wrong) = names.iter().find(|name| !known().any(|known| known == *name)) {
        let near = did_you_mean("", nearest(wrong, known()));
        let wrong = wrong.escape_debug();
        return Err(Exit::usage(format!("there is no `{wrong}`; {near}`pickfs list` shows all names")));
    }
    if !names.is_empty() {
        sections.iter_mut().for_each(|(_, rows)| rows.retain(|(name, _)| names.iter().any(|wanted| wanted == name)));
    }
    let mut packages = BTreeSet::new();
    for (title, rows) in sections.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        section(title, rows.into_iter(), &mut packages);
    }
    if names.is_empty() {
        println!("machine:");
        machine();
        leftovers()?;
    }
    if !packages.is_empty() {
        let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
        println!("\nto get what Debian packages bring:\n  apt-get install {packages}");
    }
    Ok(0)
}

/// What only lacks root says so in its first column: thirteen times the same remedy does not help.
fn section<'a>(title: &str, rows: impl Iterator<Item = (&'a str, Vec<Need>)>, packages: &mut BTreeSet<String>) {
    println!("{title}:");
    for (name, needs) in rows {
        let unmet = unmet(&needs);
        println!("  {:<7} {name}", state(&needs, &unmet));
        for (need, missing) in unmet {
            println!("            {missing}");
            packages.extend(need.clone().package());
        }
    }
}

fn machine() {
    let exists = |path: &str| std::path::Path::new(path).exists();
    let fact = |what: &str, good: bool, otherwise: &str| {
        println!(
            "  {} {what}{}",
            if good { "ok     " } else { "note   " },
            if good { String::new() } else { format!(": {otherwise}") }
        )
    };
    fact(
        "root",
        rustix::process::geteuid().is_root(),
        "this user can measure existing directories (pickfs run --on DIR), where cold reads of names are not proved, and \
         file systems in guests (--executor vm); sudo adds what is marked so above",
    );
    executor::ALL.iter().filter_map(|executor| executor.condition()).for_each(|line| println!("  {line}"));
    fact(
        "pressure figures",
        std::fs::read_to_string("/proc/pressure/io").is_ok(),
        "boot with psi=1 to have them; runs go on without",
    );
    fact("tmpfs for staging", exists("/dev/shm"), "mount a tmpfs on /dev/shm; sources are staged in it");
    let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
        .unwrap_or("performance".into());
    fact("CPU governor", governor.trim() == "performance", "it is not `performance`, so CPU-bound results vary more");
}

fn leftovers() -> anyhow::Result<()> {
    let active = Active::list()?;
    println!("runs under way or dead: {}", if active.is_empty() { "none" } else { "" });
    for (run, journal) in active {
        println!("  {run}  {}  (if it is dead: pickfs clean)", visible_lines(&journal.display().to_string()));
    }
    Ok(())
}
