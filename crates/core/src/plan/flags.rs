//! Flags that make a plan: a row each. Flags of one key are in the row of the key (`keys.rs`); here
//! are flags for several keys, or for settings of plug-ins. The command line is made of the rows,
//! and so is the one for another machine.

use super::flag::{Flag, Takes, given};
use super::keys::{ALL, Key, Kind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::collections::BTreeMap;
use std::path::Path;

/// Rows `name: Takes, keys "TABLE.KEY" ..., "VALUE", "help", excludes FLAGS, needs FLAGS;`.
macro_rules! flags {
    ($($name:ident: $takes:ident, keys $($key:literal)+, $value:literal, $help:literal $(, excludes $($other:ident)+)?
        $(, needs $($needed:ident)+)?;)*) => {
        &[$(Flag {
            keys: &[$($key),+],
            excludes: &[$($(stringify!($other)),+)?],
            needs: &[$($(stringify!($needed)),+)?],
            name: stringify!($name),
            takes: Takes::$takes,
            ..given($value, $help)
        }),*]
    };
}

/// In the order of the help, before those of single keys.
const OWN: &[Flag] = flags! {
    fs: Texts, keys "target", "FS", "File systems to compare, such as ext4,xfs:noatime,btrfs:zstd:1+noatime (NAME, and behind \
        a colon a variant, mount options, or both)";
    on: Paths, keys "backing" "target.backing", "DIR", "Where: as root with --fs, the folder for the image; otherwise the \
        existing directories to compare";
    memory: Nothing, keys "backing.memory", "", "Keep the image in memory: the software cost alone", excludes on;
    sim: NamesOrPaths, keys "machine.disk", "DISK", "Simulate instead of measuring, on a model of a disk such as hdd-7200 \
        (`pickfs list disks`); several are a run each", excludes on executor;
    processors: Number, keys "machine.processors", "N", "Simulate N processors that never wait for each other, 1 to 64 \
        [default: 8]", needs sim;
    source: Path, keys "work.source", "DIR", "Directory to work with [default: a generated tree]";
    like: NameOrPath, keys "work.like", "PROFILE", "What the generated tree is like (`pickfs list profiles`), or a file that \
        `pickfs scan` wrote", excludes source;
    scale: Number, keys "work.scale", "SCALE", "Size of the generated tree as a multiple of the profile, such as 0.1 \
        [default: 0.25 with no other aim, else 1]", excludes source;
    size: Text, keys "backing.image.size" "backing.memory.size" "target.backing.image.size", "SIZE", "Size of the image";
    workload: NameOrPath, keys "work.workload" "work", "NAME|FILE", "Workload to run (`pickfs list workloads`), or the file of \
        a recipe";
    job: Path, keys "work.job", "FILE", "Run this job file of fio's, section by section",
        excludes trace source like scale;
    trace: NameOrPath, keys "work.trace", "FILE|NAME", "Replay what `pickfs record` wrote, or a trace that `pickfs list \
        traces` names", excludes workload source like scale;
};

/// All flags.
fn rows() -> impl Iterator<Item = Flag> {
    OWN.iter().copied().chain(ALL.iter().flat_map(|table| table.keys.iter().filter_map(of_key)))
}

/// Each key that a flag gives, behind the tables that lead to it.
pub(super) fn paths() -> impl Iterator<Item = (Flag, Vec<&'static str>)> {
    let own = OWN.iter().flat_map(|flag| flag.keys.iter().map(|path| (*flag, path.split('.').collect())));
    own.chain(ALL.iter().flat_map(|table| {
        let head = Some(table.name()).filter(|name| !name.is_empty());
        table.keys.iter().filter_map(move |key| Some((of_key(key)?, head.into_iter().chain([key.name]).collect())))
    }))
}

/// The flag in the row of a key.
fn of_key(key: &Key) -> Option<Flag> {
    let (flag, Kind::Is(kind)) = (key.flag?, key.kind) else { return None };
    let help = if flag.help.is_empty() { key.about } else { flag.help };
    Some(Flag { name: key.name, takes: Takes::of(kind), help, ..flag })
}

/// Names of the flags that make a plan: none goes with a plan file, nor with a run that has its
/// plan already.
pub fn flag_names() -> impl Iterator<Item = &'static str> {
    rows().map(|flag| flag.name)
}

/// Flags that cannot change in a resumed run.
pub fn fixed_flag_names() -> impl Iterator<Item = &'static str> {
    rows().filter(|flag| !flag.may_change).map(|flag| flag.name)
}

/// What was given on the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanFlags {
    /// By the name of the flag.
    values: BTreeMap<&'static str, Vec<String>>,
    /// Flags that the user gave by another name, and the name.
    alias: Option<(&'static [&'static str], &'static str)>,
}

impl PlanFlags {
    /// Without flags, for a verb where some flags have one name together.
    pub fn with_alias(flags: &'static [&'static str], name: &'static str) -> PlanFlags {
        PlanFlags { alias: Some((flags, name)), ..PlanFlags::default() }
    }

    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub fn texts(&self, name: &str) -> &[String] {
        debug_assert!(flag_names().any(|known| known == name), "{name}");
        self.values.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().map(String::as_str)
    }

    /// As if it had been typed.
    pub fn set(&mut self, name: &'static str, values: impl IntoIterator<Item = impl Into<String>>) {
        debug_assert!(flag_names().any(|known| known == name), "{name}");
        self.values.insert(name, values.into_iter().map(Into::into).collect());
    }

    /// As if it had not been typed.
    pub fn remove(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// As the user knows it: "--budget".
    fn typed(&self, name: &'static str) -> String {
        let alias = self.alias.filter(|(flags, _)| flags.contains(&name));
        format!("--{}", alias.map_or(name, |(_, alias)| alias))
    }

    /// The flag that gives a key.
    pub(super) fn flag_of(&self, path: &[String]) -> Option<String> {
        paths().find(|(_, keys)| keys == path).map(|(flag, _)| self.typed(flag.name))
    }

    /// Of the flags that are given, the one that a key, or what it is in, comes from.
    pub(super) fn giver(&self, path: &[String]) -> Option<String> {
        // Not of this list, as it may go with a plan file.
        if path == ["executor"] {
            return Some("--executor".into());
        }
        // The longest path that leads to the key.
        (1..=path.len()).rev().find_map(|length| {
            let (flag, _) = paths().find(|(flag, keys)| self.has(flag.name) && *keys == path[..length])?;
            Some(self.typed(flag.name))
        })
    }

    /// As arguments for a command line on another machine, which completes them by what it finds
    /// there. An error names a path that would be looked for in another folder there.
    pub fn words(&self) -> Result<Vec<String>, String> {
        for (flag, values) in self.given() {
            let name = flag.name;
            let is_relative = |value: &&String| flag.takes.is_path(value) && Path::new(value).is_relative();
            if let Some(path) = values.iter().find(is_relative) {
                return Err(format!("--{name} {path} is looked for on the other machine: give its whole path there"));
            }
        }
        Ok(self.as_typed())
    }

    fn given(&self) -> impl Iterator<Item = (Flag, &Vec<String>)> {
        rows().filter_map(|flag| Some((flag, self.values.get(flag.name)?)))
    }

    /// As arguments for a command line on this machine, in this folder.
    pub fn as_typed(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (flag, values) in self.given() {
            let name = flag.name;
            // With `=`: a value may begin with a dash.
            match flag.takes {
                Takes::Nothing => words.push(format!("--{name}")),
                Takes::Texts | Takes::NamesOrPaths => words.push(format!("--{name}={}", values.join(","))),
                _ => words.extend(values.iter().map(|value| format!("--{name}={value}"))),
            }
        }
        words
    }
}

impl Flag {
    fn argument(&self) -> Arg {
        let argument = Arg::new(self.name).long(self.name).help(self.help).conflicts_with_all(self.excludes);
        let argument = self.needs.iter().fold(argument, |argument, other| argument.requires(other));
        let action = match self.takes {
            Takes::Nothing => return argument.action(ArgAction::SetTrue),
            Takes::Texts | Takes::Paths | Takes::NamesOrPaths => ArgAction::Append,
            _ => ArgAction::Set,
        };
        let argument = argument.value_name(self.value).action(action);
        match self.takes {
            Takes::Texts | Takes::NamesOrPaths => argument.value_delimiter(','),
            Takes::Number => argument.allow_negative_numbers(true),
            _ => argument,
        }
    }
}

impl clap::Args for PlanFlags {
    fn augment_args(command: Command) -> Command {
        command.args(rows().map(|flag| flag.argument()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        PlanFlags::augment_args(command)
    }
}

impl clap::FromArgMatches for PlanFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PlanFlags, clap::Error> {
        let mut flags = PlanFlags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for flag in rows().filter(|flag| matches.value_source(flag.name) == Some(ValueSource::CommandLine)) {
            let values = matches.try_get_many::<String>(flag.name).ok().flatten();
            self.set(flag.name, values.into_iter().flatten());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{catalogue, with};
    use super::super::{PlanArgs, from_toml, page, schema};
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: PlanArgs,
    }

    fn flags(line: &[impl AsRef<str>]) -> PlanFlags {
        let words = ["pickfs"].into_iter().chain(line.iter().map(AsRef::as_ref));
        Line::try_parse_from(words).expect("a line").arguments.flags
    }

    /// `planted` is a row of `keys.rs` in tests, and is named nowhere else.
    #[test]
    fn a_new_key_is_one_row() {
        let file = |value: &str| {
            from_toml(&with("BTW", &format!("[host]\nplanted = {value}")), "", Path::new("/"), &catalogue())
        };
        assert_eq!(file("3").expect("a plan").host.dirty_expire_ns, Some(3));
        assert_eq!(file("10").expect_err("out of range").len(), 1);
        let given = flags(&["--planted", "4"]);
        let arguments = PlanArgs { flags: given.clone(), ..PlanArgs::default() };
        let (plan, text) = arguments.plan(Path::new("/"), true, &catalogue()).expect("a plan");
        assert!(plan.host.dirty_expire_ns == Some(4) && text.ends_with("[host]\nplanted = 4\n"), "{text}");
        assert_eq!(given.words(), Ok(vec!["--planted=4".to_string()]));
        let schema = schema(&catalogue());
        assert_eq!(schema["properties"]["host"]["properties"]["planted"]["maximum"], 9);
        assert!(page().contains("| `planted` | `planted = 3` | a key of one row |"));
        assert!(Line::command().render_long_help().to_string().contains("--planted <N>"));
        assert!(flag_names().any(|name| name == "planted") && fixed_flag_names().all(|name| name != "planted"));
    }

    #[test]
    fn words_mean_the_flags_that_they_are_made_of() {
        let lines: [&[&str]; 8] = [
            &["--fs", "ext4,btrfs:compress=zstd:1+noatime", "--on", "/a b", "--on", "/c", "--size", "3GiB"],
            &["--memory", "--like", "maildir", "--scale", "-0.5", "--budget", "1h", "--require", "a,b"],
            &[
                "--sim", "nvme", "--processors", "4", "--jobs", "3", "--age", "churn 5x,none", "--fill", "0%,80%",
                "--rounds", "4",
            ],
            &["--source", "/src", "--precision", "2%", "--seed", "18446744073709551615", "--workload", "tree"],
            &["--trace", "/t.pktrace"],
            &["--job", "/j.fio"],
            &["--planted", "3"],
            &["--workload", "name = 'a/b'\n# from mine.toml"],
        ];
        // All flags occur, so none is forgotten.
        let all = lines.concat().join(" ");
        for flag in flag_names() {
            assert!(all.contains(&format!("--{flag}")), "{flag}");
        }
        for line in lines {
            let flags = flags(line);
            assert_eq!(self::flags(&flags.words().expect("whole paths")), flags, "{line:?}");
        }
        for line in [
            ["--on", "a"],
            ["--source", "~/x"],
            ["--like", "a.toml"],
            ["--trace", "./t"],
            ["--job", "j"],
            ["--sim", "./d"],
        ] {
            let refused = flags(&line).words().expect_err("a path of this folder");
            assert!(refused.contains(line[0]) && refused.contains("whole path"), "{refused}");
        }
    }
}
