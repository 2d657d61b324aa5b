//! A command of the user's own: the door to all that pickfs has no workload for.
//!
//! `{dir}` in its words is the folder on the file system under test, which is also where it starts;
//! `{source}` is a copy of a tree there.

use super::settings::{Counts, Flag, Text, Texts, Words, choice, settings};
use super::trees::{self, Dataset, GENERATED};
use super::{Description, Workload, described, programs, settings, text};
use crate::stack::{Argv, Place};
use crate::stage::phase::*;
use crate::stage::{Program, Stage};
use anyhow::{Context, Result, bail};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use std::path::Path;

pub(crate) struct Command;

choice! { Start { Emptied = "cold", Kept = "warm", New = "fresh" } }

settings! {
    Order {
        command: Words, "program and arguments; `{dir}` is the target's folder, `{source}` the tree that was copied there";
        prepare: Words, "a command that is run before, untimed, in every cell";
        start: Start = "cold",
            "nothing cached and mounted anew; as `prepare` left the caches; or trimmed too, where the target is";
        writes: Flag = "true", "timed until all is durable; without, until it returned, and it can be repeated";
        codes: Counts = "0", "exit codes that are no failure";
        environment: Texts = "[]",
            "variables as NAME=value; `{dir}` and `{source}` as in the command; TMPDIR is in memory unless given";
        warm_up: Words, "run after a cold start, to bring the program back into memory, such as `PROGRAM --version`";
        package: Text, "what to install where the program is missing";
        source: settings::Path, "directory that is copied to the target first";
        source_as: Text = "source", "name of the copy below `{dir}`";
    }
}

const NAME: &str = "command";

impl Workload for Command {
    fn description(&self) -> &'static Description {
        described!("command.toml", [Order::ROWS, GENERATED])
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let order = Order::of(settings);
        let starts = match order.start {
            Start::Emptied => Cold,
            Start::Kept => Warm,
            Start::New => Fresh,
        };
        let timed = if order.writes { Durable } else { Returned };
        let about = "the command, until all is durable, or until it returned if it writes nothing";
        vec![Phase::new(NAME, about, starts, AnyRead, timed)]
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let order = Order::of(settings);
        let copies = self.dataset(settings).map(|_| programs(&[("cp", "coreutils")])).unwrap_or_default();
        let programs = [&order.command, &order.prepare, &order.warm_up].into_iter().filter_map(program);
        let named = programs.map(|name| Need::Named { name, package: order.package.clone() });
        copies.into_iter().chain(named).collect()
    }

    fn warm_up(&self, settings: &Settings, _place: &Place) -> Vec<Argv> {
        Order::of(settings).warm_up.filter(|words| !words.is_empty()).into_iter().collect()
    }

    /// What the command writes is unknown.
    fn dataset(&self, settings: &Settings) -> Option<Dataset> {
        let source = Order::of(settings).source;
        Some(Dataset { source, ..Dataset::of(settings) }).filter(|dataset| !dataset.is_unset())
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let (order, dataset) = (Order::of(settings), self.dataset(settings));
        let mut found = Vec::new();
        if order.command.as_ref().is_none_or(Vec::is_empty) {
            let message = "there is no command to run".to_string();
            let (path, value) = (["work", "command"], "[\"make\", \"-C\", \"{dir}\"]");
            found.push(Objection::such_as("command", message, "give one", &path, value));
        }
        let bad = order.environment.iter().find(|variable| variable.find('=').unwrap_or(0) == 0);
        found.extend(bad.map(|variable| {
            let message = format!("`{variable}` is no variable with a value");
            Objection::new("environment", message, "write it like \"LANG=C.UTF-8\"")
        }));
        if !plain_name(&order.source_as) {
            let message = "the copy must be right below the target's folder".to_string();
            found.push(Objection::new("source_as", message, "give a plain name, such as \"content\""));
        }
        let words = [("command", &order.command), ("prepare", &order.prepare)];
        let mentions = |words: &Option<Argv>| words.iter().flatten().any(|word| word.contains("{source}"));
        if let (None, Some((setting, _))) = (&dataset, words.into_iter().find(|(_, words)| mentions(words))) {
            let message = "`{source}` is used, and there is no tree".to_string();
            found.push(Objection::new(setting, message, "name one with `source`, or a generated one with `like`"));
        }
        found.extend(dataset.map(|dataset| dataset.objections()).unwrap_or_default());
        found
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (order, dir, memory) = (Order::of(settings), stage.root(), stage.memory());
        if let Some(dataset) = self.dataset(settings) {
            let source = dataset.staged(stage.place())?;
            trees::lay_out(stage, &source, &dir.join(&order.source_as))?;
        }
        if let Some(words) = order.prepare.as_ref().filter(|words| !words.is_empty()) {
            let prepare = order.program(words, &dir, &memory)?;
            stage.lay_out("preparing", |stage| stage.run(&prepare).map(drop))?;
        }
        let codes = order.codes.iter().filter_map(|code| i32::try_from(*code).ok());
        let words = order.command.as_deref().unwrap_or_default();
        let command = order.program(words, &dir, &memory)?.may_end_with(codes);
        let times = if order.writes { 0..1 } else { stage.repeats() };
        for _ in times {
            stage.phase(NAME, |p| p.output(&command).map(drop))?;
        }
        Ok(())
    }
}

impl Order {
    fn filled(&self, word: &str, dir: &Path) -> String {
        word.replace("{dir}", &text(dir)).replace("{source}", &text(&dir.join(&self.source_as)))
    }

    /// A program in the target's folder, with the environment that is asked for. Its temporary
    /// files go to memory, where they cost no disk and are gone after the cell.
    fn program(&self, words: &[String], dir: &Path, memory: &Path) -> Result<Program> {
        let mut words: Argv = words.iter().map(|word| self.filled(word, dir)).collect();
        match words.first_mut() {
            None => bail!("there is no command to run"),
            // From where it starts, not from where pickfs does.
            Some(program) if program.contains('/') => *program = text(&dir.join(&*program)),
            Some(_) => {}
        }
        let mut program = Program::new(words).in_folder(dir).with("TMPDIR", text(memory));
        for variable in &self.environment {
            let (name, value) = variable.split_once('=').context("a variable without a value")?;
            program = program.with(name, self.filled(value, dir));
        }
        Ok(program)
    }
}

fn plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
}

/// The program that must be there before: not one that the target's folder will hold.
fn program(words: &Option<Argv>) -> Option<String> {
    let name = words.iter().flatten().next()?;
    let later = name.contains('{') || name.contains('/') && !name.starts_with('/');
    (!later).then(|| name.clone())
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
        let shown = |words: Value| {
            let order = Order::of(&settings(json!({ "command": words })));
            order.program(order.command.as_ref().unwrap(), dir, dir).unwrap().shown()
        };
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
        assert_eq!(phase(json!({})).timed, Durable);
        assert_eq!(phase(json!({"writes": false})).timed, Returned);
        assert_eq!(phase(json!({"start": "warm"})).starts, Warm);
    }
}
