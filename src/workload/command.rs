//! A command of the user's own: the door to all that pickfs has no workload for.
//!
//! `{dir}` in its words is the folder on the file system under test, which is also where it starts; `{source}` is a
//! copy of a tree there.

use super::{Setting, Stage, Workload, dataset};
use crate::need::Need;
use crate::plan::{Kind, Objection, Settings};
use crate::stack::{Argv, Place};
use crate::stage::Program;
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::path::Path;

pub struct Command;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "command",
        kind: Kind::Words,
        default: None,
        about: "program and arguments; `{dir}` is the target's folder, `{source}` the tree that was copied there",
    },
    Setting {
        name: "prepare",
        kind: Kind::Words,
        default: None,
        about: "a command that is run before, untimed, in every cell",
    },
    Setting {
        name: "start",
        kind: Kind::Choice(&["cold", "warm", "fresh"]),
        default: Some("cold"),
        about: "nothing cached and mounted anew; as `prepare` left the caches; or trimmed too, where the target is",
    },
    Setting {
        name: "writes",
        kind: Kind::Flag,
        default: Some("true"),
        about: "timed until all is durable; without, until it returned, and it can be repeated",
    },
    Setting { name: "codes", kind: Kind::Counts, default: Some("0"), about: "exit codes that are no failure" },
    Setting {
        name: "environment",
        kind: Kind::Texts,
        default: Some("[]"),
        about: "variables as NAME=value; `{dir}` and `{source}` as in the command; TMPDIR is in memory unless given",
    },
    Setting {
        name: "warm_up",
        kind: Kind::Words,
        default: None,
        about: "run after a cold start, to bring the program back into memory, such as `PROGRAM --version`",
    },
    Setting { name: "package", kind: Kind::Text, default: None, about: "what to install where the program is missing" },
    Setting { name: "source", kind: Kind::Path, default: None, about: "directory that is copied to the target first" },
    Setting { name: "source_as", kind: Kind::Text, default: Some("source"), about: "name of the copy below `{dir}`" },
    dataset::SETTINGS[1],
    dataset::SETTINGS[2],
    dataset::SETTINGS[3],
    dataset::SETTINGS[4],
];

const NAME: &str = "command";

impl Workload for Command {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "a command of your own, cold or warm, with what it needs prepared before"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "command"
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let starts = match settings.text("start") {
            Some("warm") => Starts::Warm,
            Some("fresh") => Starts::Fresh,
            _ => Starts::Cold,
        };
        let reads_only = settings.0.contains_key("writes") && !settings.flag("writes");
        let judged = if reads_only { Judged::Returned } else { Judged::Durable };
        let about = "the command, until all is durable, or until it returned if it writes nothing";
        vec![Phase { name: Cow::Borrowed(NAME), about, starts, reads: Reads::Unknown, judged }]
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let package = settings.text("package").map(String::from);
        let copies = tree(settings).map(|_| Need::Program { name: "cp", package: "coreutils" });
        let programs = ["command", "prepare", "warm_up"].into_iter().filter_map(|name| program(settings, name));
        copies.into_iter().chain(programs.map(|name| Need::Named { name, package: package.clone() })).collect()
    }

    fn warm_up(&self, settings: &Settings, _place: &Place) -> Vec<Argv> {
        Some(settings.texts("warm_up")).filter(|words| !words.is_empty()).into_iter().collect()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let mut found = Vec::new();
        if settings.texts("command").is_empty() {
            let message = "there is no command to run".to_string();
            found.push(Objection::new("command", message, "give one, such as command = [\"make\", \"-C\", \"{dir}\"]"));
        }
        let bad = settings.texts("environment").into_iter().find(|variable| variable.find('=').unwrap_or(0) == 0);
        found.extend(bad.map(|variable| {
            let message = format!("`{variable}` is no variable with a value");
            Objection::new("environment", message, "write it like \"LANG=C.UTF-8\"")
        }));
        if !plain_name(source_as(settings)) {
            let message = "the copy must be right below the target's folder".to_string();
            found.push(Objection::new("source_as", message, "give a plain name, such as \"content\""));
        }
        let mentions = |name: &str| settings.texts(name).iter().any(|word| word.contains("{source}"));
        if let (None, Some(setting)) = (tree(settings), ["command", "prepare"].into_iter().find(|name| mentions(name)))
        {
            let message = "`{source}` is used, and there is no tree".to_string();
            found.push(Objection::new(setting, message, "name one with `source`, or a generated one with `like`"));
        }
        found.extend(tree(settings).map(|tree| dataset::objections(&tree)).unwrap_or_default());
        found
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        tree(settings).map_or(Ok(()), |tree| dataset::prepare(&tree, place))
    }

    /// Of the tree; what the command writes nobody knows.
    fn bytes(&self, settings: &Settings) -> Option<u64> {
        dataset::bytes(&tree(settings)?)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (dir, memory) = (stage.root(), stage.memory());
        if let Some(tree) = tree(settings) {
            let source = dataset::staged(&tree, stage.place())?;
            dataset::lay_out(stage, &source, &dir.join(source_as(settings)))?;
        }
        if !settings.texts("prepare").is_empty() {
            let prepare = made(settings, "prepare", &dir, &memory)?;
            stage.lay_out("preparing", |stage| stage.run(&prepare).map(drop))?;
        }
        let codes = settings.numbers("codes").into_iter().filter_map(|code| i32::try_from(code).ok());
        let command = made(settings, "command", &dir, &memory)?.may_end_with(codes);
        let phase = self.phases(settings).remove(0);
        let times = if phase.only_reads() { stage.repeats() } else { 0..1 };
        for _ in times {
            stage.phase(NAME, |p| p.output(&command).map(drop))?;
        }
        Ok(())
    }
}

/// Where the tree is put, in the target's folder.
fn source_as(settings: &Settings) -> &str {
    settings.text("source_as").unwrap_or("source")
}

fn plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
}

/// The settings of the tree, if one is asked for.
fn tree(settings: &Settings) -> Option<Settings> {
    let asked = |setting: &Setting| settings.0.get(setting.name).map(|value| (setting.name.to_string(), value.clone()));
    let given: Settings = Settings(dataset::SETTINGS.iter().filter_map(asked).collect());
    Some(given).filter(|given| !given.0.is_empty())
}

/// The program that must be there before: not one that the target's folder will hold.
fn program(settings: &Settings, words: &str) -> Option<String> {
    let name = settings.texts(words).into_iter().next()?;
    let later = name.contains('{') || name.contains('/') && !name.starts_with('/');
    (!later).then_some(name)
}

fn filled(settings: &Settings, word: &str, dir: &Path) -> String {
    let source = dir.join(source_as(settings)).display().to_string();
    word.replace("{dir}", &dir.display().to_string()).replace("{source}", &source)
}

/// The program of a setting, in the target's folder and with the environment that is asked for. Its temporary files go
/// to memory, where they cost no disk and are gone after the cell.
fn made(settings: &Settings, name: &str, dir: &Path, memory: &Path) -> Result<Program> {
    let mut words: Argv = settings.texts(name).iter().map(|word| filled(settings, word, dir)).collect();
    match words.first_mut() {
        None => bail!("`{name}` has no words"),
        // From where it starts, not from where pickfs does.
        Some(program) if program.contains('/') => *program = dir.join(&*program).display().to_string(),
        Some(_) => {}
    }
    let mut program = Program::new(words).in_folder(dir).with("TMPDIR", memory.display().to_string());
    for variable in settings.texts("environment") {
        let (name, value) = variable.split_once('=').context("a variable without a value")?;
        program = program.with(name, filled(settings, value, dir));
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(pairs: Value) -> Settings {
        Settings(pairs.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let rows = [
            (json!({"command": ["true"]}), ""),
            (json!({}), "command"),
            (json!({"command": ["true"], "environment": ["LANG=C", "=x"]}), "environment"),
            (json!({"command": ["true"], "environment": ["LANG"]}), "environment"),
            (json!({"command": ["ls", "{source}"]}), "command"),
            (json!({"command": ["ls"], "prepare": ["ls", "{source}/x"]}), "prepare"),
            (json!({"command": ["ls", "{source}"], "like": "site"}), ""),
            (json!({"command": ["ls", "{source}"], "like": "sight"}), "like"),
            (json!({"command": ["ls"], "source_as": "../x"}), "source_as"),
            (json!({"command": ["ls"], "source_as": "/x"}), "source_as"),
            (json!({"command": ["ls"], "source_as": "content"}), ""),
        ];
        for (given, setting) in rows {
            let found = Command.objections(&settings(given.clone()));
            assert_eq!(found.first().map_or("", |objection| objection.setting), setting, "{given}");
        }
    }

    #[test]
    fn folders_are_filled_in_and_programs_found_from_there() {
        let dir = Path::new("/target/work");
        let shown = |words: Value| made(&settings(json!({ "command": words })), "command", dir, dir).unwrap().shown();
        assert_eq!(shown(json!(["ls", "{dir}/a", "x{source}"])), "ls /target/work/a x/target/work/source");
        assert_eq!(shown(json!(["./build", "a/b"])), "/target/work/./build a/b");
        assert_eq!(shown(json!(["{dir}/build"])), "/target/work/build");
        assert_eq!(shown(json!(["/bin/ls"])), "/bin/ls");
    }

    #[test]
    fn programs_are_needed_unless_the_target_will_hold_them() {
        let needs = |words: Value| Command.needs(&settings(json!({ "command": words, "package": "p" })));
        let named = |name: &str| vec![Need::Named { name: name.into(), package: Some("p".into()) }];
        assert_eq!(needs(json!(["nanoc", "compile"])), named("nanoc"));
        assert_eq!(needs(json!(["/opt/x/run"])), named("/opt/x/run"));
        assert_eq!(needs(json!(["./build"])), []);
        assert_eq!(needs(json!(["{dir}/build"])), []);
    }

    #[test]
    fn a_command_that_writes_is_timed_until_durable() {
        let phase = |given: Value| Command.phases(&settings(given)).remove(0);
        assert_eq!(phase(json!({})).judged, Judged::Durable);
        assert_eq!(phase(json!({"writes": false})).judged, Judged::Returned);
        assert_eq!(phase(json!({"start": "warm"})).starts, Starts::Warm);
    }
}
