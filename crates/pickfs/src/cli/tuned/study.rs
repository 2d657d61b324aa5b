//! The folder of a tuning: its options, the plan of each stage, and what its journals say.

use super::super::catalogue::catalogue;
use super::super::{Exit, did_you_mean};
use anyhow::{Context, Result};
use pickfs_core::journal::{Folded, StopReason, fold_file};
use pickfs_core::plan::{Plan, Stop, Target, Tunable, TunableKind, TunableValue, Weakened, nearest};
use pickfs_host::analysis::logs_of_targets;
use pickfs_host::run::{self, Trust};
use pickfs_stats::tuning::{Config, Kind, MOST_FACTORS, Next, Space, Stage, next};
use std::path::{Path, PathBuf};

/// Of the budget, which stages share alike.
const STAGES: u64 = Kind::ALL.len() as u64;

/// An option, and its values without the default.
pub(crate) struct Choice {
    pub tunable: Tunable,
    pub values: Vec<&'static TunableValue>,
}

/// What is tuned.
pub(crate) struct Study {
    /// The plan with the default alone, and its second copy.
    pub base: Plan,
    pub options: Vec<Choice>,
}

impl Study {
    /// Of the options with these names, or of all that are the file system's own. What weakens
    /// durability or checksums takes part only if it may.
    pub(crate) fn new(mut base: Plan, names: &[String], weaken: bool, margin: f64) -> Result<Study, String> {
        let Some(target) = base.targets.first().filter(|target| target.fs.is_some()) else {
            return Err(
                "options are those of a file system that is made: give --fs, as root, in a guest or with --sim".into(),
            );
        };
        let all = catalogue().tunables_of(target);
        let known = || all.iter().map(|tunable| tunable.name);
        if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == *name)) {
            let near = did_you_mean("", nearest(unknown, known()));
            let fs = target.fs.as_deref().unwrap_or_default();
            return Err(format!(
                "--options: {unknown} is no option of {fs}; {near}`pickfs list options {fs}` shows all"
            ));
        }
        let is_open = |value: &&TunableValue| weaken || !weakens(value);
        let is_own = |tunable: &Tunable| {
            !matches!(tunable.kind, TunableKind::Queue | TunableKind::Sysctl | TunableKind::Layer(_))
        };
        let is_named = |tunable: &&Tunable| match names {
            [] => is_own(tunable),
            names => names.iter().any(|name| name == tunable.name),
        };
        let options = all.iter().filter(is_named).map(|tunable| Choice {
            tunable: *tunable,
            values: tunable.others().filter(is_open).filter(|value| changes(tunable, target, value)).collect(),
        });
        let options: Vec<Choice> = options.filter(|option| !option.values.is_empty()).collect();
        if options.is_empty() {
            let remedy = if weaken { "" } else { "; --weaken also allows options that weaken durability or checksums" };
            return Err(format!("none of these options has another value than the default to try{remedy}"));
        }
        if options.len() > MOST_FACTORS {
            return Err(format!(
                "{} options are too many at once; name at most {MOST_FACTORS} with --options",
                options.len()
            ));
        }
        let share = base.stop.budget_ns.map(|budget| budget / STAGES);
        base.stop = Stop { threshold: margin, budget_ns: share, rounds: None, precision: None, ..base.stop };
        Ok(Study { base, options })
    }

    /// As its first journal has it, if this user began that here.
    pub(crate) fn of_folder(folder: &Path) -> Result<Study> {
        let first = journal(folder, Kind::Alone);
        if !first.exists() {
            return Err(Exit::usage(format!(
                "{} is not the folder of a tuning: there is no {}; `pickfs tune --fs FS` begins one",
                folder.display(),
                first.display()
            )));
        }
        let mut base = run::plan(&first, Trust::Own)?;
        let names: Vec<String> = base.targets.iter().map(|target| target.name.clone()).collect();
        base.targets =
            base.targets.iter().take(1).chain(base.targets.iter().filter(|target| target.duplicate)).cloned().collect();
        let target = base.targets.first().context("its plan has no target")?;
        let options = catalogue().tunables_of(target).into_iter().map(|tunable| Choice {
            values: tunable.others().filter(|value| names.contains(&name(target, &[(&tunable, value)]))).collect(),
            tunable,
        });
        let options = options.filter(|option| !option.values.is_empty()).collect();
        base.stop.rounds = None;
        Ok(Study { base, options })
    }

    pub(crate) fn margin(&self) -> f64 {
        self.base.stop.threshold
    }

    pub(crate) fn space(&self) -> Space {
        let place = |name: &str| self.options.iter().position(|option| option.tunable.name == name);
        let of = |(at, option): (usize, &Choice)| {
            let values = option.values.iter().enumerate();
            let excludes = values.flat_map(move |(level, value)| {
                value.excludes.iter().filter_map(move |name| Some(((at, level + 1), place(name)?)))
            });
            excludes.collect::<Vec<_>>()
        };
        Space {
            levels: self.options.iter().map(|option| option.values.len()).collect(),
            excludes: self.options.iter().enumerate().flat_map(of).collect(),
        }
    }

    /// The simulated disk, or what the file system is made on.
    pub(crate) fn place(&self) -> String {
        let target = &self.base.targets[0];
        let backing = &target.backing;
        match target.machine.text("disk").filter(|_| self.base.executor == "sim") {
            Some(disk) => format!("a simulated {disk}"),
            None => backing.settings.text("path").unwrap_or(&backing.name).to_string(),
        }
    }

    /// What a configuration sets.
    pub(crate) fn settings(&self, config: &Config) -> Vec<(&Tunable, &'static TunableValue)> {
        let set = self.options.iter().zip(config).filter(|(_, level)| **level > 0);
        set.map(|(option, level)| (&option.tunable, option.values[level - 1])).collect()
    }

    pub(crate) fn target(&self, config: &Config) -> Target {
        let default = &self.base.targets[0];
        let settings = self.settings(config);
        let target = settings.iter().fold(default.clone(), |target, (tunable, value)| tunable.applied(&target, value));
        Target { name: name(default, &settings), ..target }
    }

    pub(crate) fn plan(&self, kind: Kind, configs: &[Config], rounds: Option<u32>) -> Plan {
        let copies = self.base.targets[1..].iter().cloned();
        let fs = self.base.targets[0].fs.as_deref().unwrap_or_default();
        Plan {
            title: format!("options of {fs}, {}: {}", kind.name(), about(kind)),
            // Rounds of one stage have nothing in common with those of another.
            seed: self.base.seed.wrapping_add(kind as u64),
            targets: configs.iter().map(|config| self.target(config)).chain(copies).collect(),
            stop: Stop { rounds, race: kind.is_race(), ..self.base.stop },
            // Of the answer alone: each check takes a round of all targets.
            other_speeds: kind == Kind::Confirm && self.base.executor == "sim",
            ..self.base.clone()
        }
    }

    /// The journal of a stage that was cut.
    pub(crate) fn unfinished(&self, folder: &Path) -> Result<Option<PathBuf>> {
        for kind in Kind::ALL {
            let path = journal(folder, kind);
            if path.exists() && !is_through(&fold_file(&path)?) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    pub(crate) fn next(&self, folder: &Path) -> Result<Next> {
        Ok(next(&self.space(), &self.stages(folder)?, self.margin()))
    }

    pub(crate) fn stages(&self, folder: &Path) -> Result<Vec<Stage>> {
        let of = |kind: Kind| {
            let path = journal(folder, kind);
            path.exists().then(|| fold_file(&path).map(|folded| self.stage(kind, &folded)))
        };
        Kind::ALL.into_iter().filter_map(of).collect()
    }

    fn stage(&self, kind: Kind, folded: &Folded) -> Stage {
        let planned = folded.run.iter().flat_map(|run| &run.plan.targets);
        let names: Vec<String> = planned.filter(|target| !target.duplicate).map(|target| target.name.clone()).collect();
        let is_over = end(folded).is_some_and(|end| kind.is_race() || end != StopReason::Rounds);
        let configs = names.iter().map(|name| self.config(name)).collect();
        Stage { kind, configs, logs: logs_of_targets(folded, &names), is_over }
    }

    /// That of a target's name.
    fn config(&self, wanted: &str) -> Config {
        let default = &self.base.targets[0];
        let words = wanted.strip_prefix(default.name.as_str()).unwrap_or_default().trim_start();
        let words: Vec<&str> = words.split(BETWEEN).collect();
        let level = |option: &Choice| {
            let is_set = |value: &&TunableValue| words.contains(&word(&option.tunable, value).as_str());
            option.values.iter().position(is_set).map_or(0, |at| at + 1)
        };
        self.options.iter().map(level).collect()
    }
}

/// All its rounds are done, and its verdict was checked.
fn is_through(folded: &Folded) -> bool {
    let is_checked = || folded.run.as_ref().is_some_and(|run| run::checked_end(&run.plan, folded).is_some());
    end(folded).is_some_and(|end| !end.is_final() || is_checked())
}

/// Why a run ended, if all its rounds are done.
fn end(folded: &Folded) -> Option<StopReason> {
    let last = folded.looks.last()?;
    let wanted = folded.run.as_ref()?.plan.stop.rounds;
    last.end.filter(|end| *end != StopReason::Rounds || wanted.is_none_or(|rounds| last.round >= rounds))
}

pub(crate) fn is_tuning(folder: &Path) -> bool {
    journal(folder, Kind::Alone).is_file()
}

pub(crate) fn journal(folder: &Path, kind: Kind) -> PathBuf {
    folder.join(format!("{}-{}.jsonl", kind as u8 + 1, kind.name()))
}

/// Durability or checksums: what no tuning gives away unasked.
pub(crate) fn weakens(value: &TunableValue) -> bool {
    matches!(value.weakens, Some((Weakened::Durability | Weakened::Checksums, _)))
}

/// False of what is as good as nothing written, and of what the target has already.
fn changes(tunable: &Tunable, target: &Target, value: &TunableValue) -> bool {
    tunable.applied(target, value) != *target
}

const BETWEEN: &str = ", ";

fn name(default: &Target, settings: &[(&Tunable, &'static TunableValue)]) -> String {
    let words: Vec<String> = settings.iter().map(|(tunable, value)| word(tunable, value)).collect();
    format!("{} {}", default.name, words.join(BETWEEN)).trim_end().to_string()
}

/// As people say it: `commit=30`.
pub(crate) fn word(tunable: &Tunable, value: &TunableValue) -> String {
    format!("{}={}", tunable.name, value.name)
}

/// What a stage is for.
pub(crate) fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Alone => "each value by itself",
        Kind::Crossed => "all in combinations",
        Kind::Race => "the best against the default",
        Kind::Around => "each other value in the best combination",
        Kind::Confirm => "the winner in fresh rounds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_host::wording::advice;

    fn of_ext4(names: &[&str], weaken: bool) -> Result<Study, String> {
        let target = Target { name: "ext4".into(), fs: Some("ext4".into()), ..Target::default() };
        let base = Plan { targets: vec![target.clone(), target.again()], reference: "ext4".into(), ..Plan::default() };
        Study::new(base, &names.iter().map(|name| name.to_string()).collect::<Vec<_>>(), weaken, 0.03)
    }

    #[test]
    fn a_configuration_is_known_by_the_name_of_its_target() {
        let study = of_ext4(&["data", "delalloc", "inode_size", "stripe"], true).unwrap();
        let space = study.space();
        for option in 0..space.levels.len() {
            let config: Config =
                (0..space.levels.len()).map(|at| if at == option { 0 } else { space.levels[at] }).collect();
            assert_eq!(study.config(&study.target(&config).name), config, "{}", study.target(&config).name);
        }
        assert_eq!(study.config("ext4"), vec![0; space.levels.len()]);
        let excluded = |name: &str| study.options.iter().position(|option| option.tunable.name == name).unwrap();
        assert!(
            space.excludes.iter().any(|((with, _), other)| (*with, *other) == (excluded("data"), excluded("delalloc")))
        );
    }

    #[test]
    fn what_weakens_is_left_out_unless_it_may() {
        let count = |weaken| of_ext4(&[], weaken).unwrap().space().levels.iter().sum::<usize>();
        assert!(count(true) > count(false));
        assert!(of_ext4(&["barrier"], true).is_ok() && of_ext4(&["barrier"], false).is_err());
    }

    #[test]
    fn other_processors_check_the_answer_alone() {
        let study = of_ext4(&["atime"], false).unwrap();
        let simulated = Plan { executor: "sim".into(), other_speeds: true, ..study.base.clone() };
        let study = Study { base: simulated, ..study };
        let is_checked = |kind| study.plan(kind, &[vec![0], vec![1]], Some(4)).other_speeds;
        assert_eq!(Kind::ALL.map(is_checked), [false, false, false, false, true]);
    }

    #[test]
    fn the_lines_of_a_configuration_set_its_options() {
        let study = of_ext4(&["inode_size", "lazytime"], false).unwrap();
        let target = study.target(&vec![1, 1]);
        assert_eq!(target.name, "ext4 inode_size=128, lazytime=on");
        let advice = advice::of_target(&target, &target.mkfs, &target.mount).unwrap();
        let lines: Vec<&str> = advice.steps.iter().map(|step| step.command.as_str()).collect();
        assert!(
            lines.contains(&"mkfs.ext4 -I 128 /dev/DISK") && lines.contains(&"mount -o remount,lazytime /mnt/FOLDER"),
            "{lines:?}"
        );
    }
}
