//! Works that recipes describe: those of users, whose text a plan carries, and those of ours, which lie in `recipes`.
//!
//! `figure` reads what their programs print, `play` runs them.

mod figure;
mod play;

use super::{Description, MEAN_OF_PHASES, Workload, judged};
use crate::stack::Argv;
use crate::stage::phase::*;
use crate::stage::{Program, Stage};
use anyhow::{Context, Result};
use pickfs_core::metric::Combine;
use pickfs_core::plan::recipe::{self, Command, PhaseOf, RECIPE, Reads, Recipe, Starts, Until, Values};
use pickfs_core::plan::{Judged, Objection, Setting, SettingKind, Settings};
use pickfs_system::need::Need;
use std::path::Path;
use std::sync::OnceLock;

/// The recipe that a plan names.
pub(super) static GIVEN: RecipeWork = RecipeWork { text: None, described: OnceLock::new() };
pub(super) static ROCKSDB: RecipeWork = RecipeWork::of(include_str!("../recipes/rocksdb.toml"));

pub(crate) struct RecipeWork {
    /// None where the text is in the settings.
    text: Option<&'static str>,
    described: OnceLock<&'static Description>,
}

const TEXT: &[Setting] = &[Setting {
    name: RECIPE,
    kind: SettingKind::Recipe,
    default: None,
    about: "the text of a recipe; a plan names its file: workload = \"./mine.toml\"",
}];

impl RecipeWork {
    const fn of(text: &'static str) -> RecipeWork {
        RecipeWork { text: Some(text), described: OnceLock::new() }
    }

    fn recipe(&self, settings: &Settings) -> Option<&'static Recipe> {
        recipe::kept(self.text.or(settings.text(RECIPE))?, "").ok()
    }

    fn describe(&self) -> Description {
        let Some(recipe) = self.recipe(&Settings::default()) else {
            let about = "a work of your own: programs, phases and figures that a recipe file names";
            return Description { name: RECIPE, about, settings: TEXT, main_setting: RECIPE, ..Description::EMPTY };
        };
        Description {
            name: &recipe.name,
            about: &recipe.about,
            settings: &recipe.settings,
            main_setting: recipe.main,
            judged: judged_as(recipe),
            seconds: self.seconds(&Settings::default()),
            ..Description::EMPTY
        }
    }
}

fn judged_as(recipe: &Recipe) -> (Combine, &'static str) {
    if recipe.is_mean { MEAN_OF_PHASES } else { (Combine::Sum, "") }
}

/// Before a cell folders are not known, and stay as they stand in the recipe.
fn before_cell(recipe: &Recipe, settings: &Settings) -> Values {
    let folders = ["dir", "memory", "port"].map(|name| (name, format!("{{{name}}}")));
    recipe.values(settings, folders.into_iter().chain([processors()]))
}

fn processors() -> (&'static str, String) {
    ("processors", std::thread::available_parallelism().map_or(1, usize::from).to_string())
}

fn filled(command: &Command, values: &Values) -> Argv {
    command.iter().flat_map(|word| word.filled(values)).collect()
}

impl Workload for RecipeWork {
    fn description(&self) -> &'static Description {
        self.described.get_or_init(|| Box::leak(Box::new(self.describe())))
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let Some(recipe) = self.recipe(settings) else { return Vec::new() };
        let values = before_cell(recipe, settings);
        recipe.played(&values).into_iter().flat_map(|(name, phase, _)| phases_of(name, phase)).collect()
    }

    fn judged(&self, settings: &Settings) -> Judged {
        self.recipe(settings).map(|recipe| judged(&self.phases(settings), judged_as(recipe))).unwrap_or_default()
    }

    fn chosen_commands(&self, settings: &Settings) -> Vec<(&'static str, Argv)> {
        let Some(recipe) = self.recipe(settings).filter(|_| self.text.is_none()) else { return Vec::new() };
        let values = before_cell(recipe, settings);
        let variables = recipe.environment.iter().map(|word| ("environment", word.filled(&values)));
        let versions = recipe.versions.iter().map(|words| ("version", words.clone()));
        let commands = recipe.commands().into_iter().map(|(key, command)| (key, filled(command, &values)));
        variables.chain(versions).chain(commands).collect()
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let Some(recipe) = self.recipe(settings) else { return Vec::new() };
        let listed = super::programs(&recipe.needs);
        let values = before_cell(recipe, settings);
        let first = |command: &Command| filled(command, &values).into_iter().next();
        let is_listed = |name: &String| recipe.needs.iter().any(|(program, _)| program == name);
        // What the target will hold cannot be there before.
        let is_there = |name: &String| !name.contains('{') && (!name.contains('/') || name.starts_with('/'));
        let others = recipe.commands().into_iter().filter_map(|(_, command)| first(command));
        let others = others.filter(|name| is_there(name) && !is_listed(name));
        let mut needs: Vec<Need> = listed;
        for need in others.map(|name| Need::Named { name, package: None }) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    fn versions(&self, settings: &Settings) -> Vec<(&'static str, Argv)> {
        let all = self.recipe(settings).into_iter().flat_map(|recipe| &recipe.versions);
        all.filter_map(|words| Some((words.first()?.as_str(), words.clone()))).collect()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let Some(recipe) = self.recipe(settings) else {
            let remedy = "name the file of a recipe: workload = \"./mine.toml\"; docs/recipes.md says what is in it";
            return vec![Objection::new(RECIPE, "there is no recipe to play".into(), remedy)];
        };
        let wrong = recipe.out_of_range(settings).into_iter();
        wrong.map(|(setting, message, remedy)| Objection::new(setting, message, &remedy)).collect()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let recipe = self.recipe(settings)?;
        let values = before_cell(recipe, settings);
        recipe.bytes.as_ref().map(|amount| amount.value(&values))
    }

    fn seconds(&self, settings: &Settings) -> u64 {
        let Some(recipe) = self.recipe(settings) else { return 0 };
        let seconds = |settings: &Settings| {
            recipe.seconds.as_ref().map_or(0, |amount| amount.value(&before_cell(recipe, settings)))
        };
        let text = settings.0.get(RECIPE).map(|text| (RECIPE.to_string(), text.clone()));
        let usual = Settings(text.into_iter().collect());
        match (self.bytes(settings), self.bytes(&usual)) {
            // As with other works, more bytes take longer; where the recipe reckons itself, it knows better.
            (Some(bytes), Some(by_default)) if by_default > 0 && seconds(settings) == seconds(&usual) => {
                (seconds(&usual) as f64 * bytes as f64 / by_default as f64).ceil() as u64
            }
            _ => seconds(settings),
        }
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let recipe = self.recipe(settings).context("the plan has no recipe")?;
        if let (None, Some(text)) = (self.text, settings.text(RECIPE)) {
            stage.fact("recipe", &format!("{}, sha256 {}", recipe.name, recipe::digest(text)));
        }
        play::play(recipe, settings, stage)
    }
}

/// The phase, and its parts.
fn phases_of(name: String, of: &'static PhaseOf) -> Vec<Phase> {
    let starts = match of.starts {
        Starts::Fresh => Fresh,
        Starts::Warm => Warm,
        Starts::Cold => Cold,
    };
    let proof = match of.reads {
        Reads::AllData => AllData,
        Reads::Metadata => Metadata,
        Reads::Anything => AnyRead,
        Reads::AtLeast(_) => Declared,
    };
    let timed = match of.until {
        Until::Returned => Returned,
        Until::Durable => Durable,
        Until::Parts => Parts,
    };
    let shown = |phase: Phase, is_judged: bool| if is_judged { phase } else { phase.only_shown() };
    let whole = Phase { name: name.into(), ..Phase::new("", of.about, starts, proof, timed) };
    let parts = of.parts.iter().map(|part| shown(Phase::part(part.name.as_str().into(), part.about), part.is_judged));
    std::iter::once(shown(whole, of.is_judged)).chain(parts).collect()
}

/// A program in the target's folder. Its temporary files go to memory, where they cost no disk and are gone after the cell.
fn program(recipe: &Recipe, command: &Command, values: &Values, memory: &Path, dir: &Path) -> Result<Program> {
    let words = filled(command, values);
    let mut program = Program::new(words).in_folder(dir).with("TMPDIR", memory.display().to_string());
    for variable in recipe.environment.iter().flat_map(|word| word.filled(values)) {
        let (name, value) = variable.split_once('=').context("a variable without a value")?;
        program = program.with(name, value);
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::find;
    use pickfs_core::plan::recipe::kept;
    use serde_json::json;

    const TEXT: &str = "name = 'mine'\nabout = 'x'\njudged = 'mean'\nseconds = 'keys / 10'\nneeds = { a = 'b' }\n\
        setting = { keys = { kind = 'count', default = 30, at_least = 2, about = 'x' }, \
        with = { kind = 'counts', default = [1, 4], about = 'x' } }\n\
        [server]\nrun = ['a', '-p{port}']\nready = 'a {dir}'\n\
        [[phase]]\nname = 'with-{with}'\nabout = 'x'\neach = 'with'\nstarts = 'cold'\nuntil = 'returned'\n\
        run = [['c', '{with}', '{keys*2}'], ['{dir}/d']]\nmetric = [{ name = 'a_ns', find = 'took (.*)' }]\n\
        [[phase]]\nname = 'w'\nabout = 'x'\nstarts = 'warm'\njudged = false\nrun = '/e'\n";

    fn settings(more: serde_json::Value) -> Settings {
        let mut settings: Settings = serde_json::from_value(more).unwrap();
        settings.0.insert(RECIPE.into(), TEXT.into());
        settings
    }

    #[test]
    fn a_recipe_is_described_by_its_text_and_settings() {
        let work = find(RECIPE).unwrap();
        let phases = |settings: &Settings| {
            let phases = work.phases(settings).into_iter();
            phases.map(|phase| format!("{} {:?} {:?}", phase.name, phase.starts, phase.timed)).collect::<Vec<_>>()
        };
        let given = settings(json!({"with": [7], "keys": 41}));
        assert_eq!(phases(&given), ["with-7 Cold Returned", "w Warm Durable"]);
        let usual = settings(json!({}));
        assert_eq!(phases(&usual).len(), 3);
        assert_eq!((work.seconds(&given), work.seconds(&usual), work.bytes(&usual)), (5, 3, None));
        assert_eq!(work.judged(&usual).phases, ["with-1", "with-4"]);
        let named = |name: &str| Need::Named { name: name.into(), package: None };
        assert_eq!(work.needs(&usual), [Need::Program { name: "a", package: "b" }, named("c"), named("/e")]);
        let shown: Vec<String> =
            work.chosen_commands(&given).iter().map(|(what, words)| format!("{what}: {}", words.join(" "))).collect();
        assert_eq!(shown, ["server: a -p{port}", "ready: a {dir}", "run: c 7 82", "run: {dir}/d", "run: /e"]);
    }

    /// As db_bench 7.8.3 prints it.
    const OF_DB_BENCH: &str = "Keys:       16 bytes each (+ 0 bytes user-defined timestamp)\nCompression: Snappy\n\
        DB path: [/tmp/t1/db]\nfillrandom   :      10.215 micros/op 97684 ops/sec 0.020 seconds 2000 operations;   38.8 MB/s\n\
        readrandom   :       2.764 micros/op 359582 ops/sec 0.006 seconds 2000 operations;   95.3 MB/s (1336 of 2000 found)\n";

    #[test]
    fn the_recipe_of_rocksdb_reads_what_its_program_prints() {
        let recipe = kept(ROCKSDB.text.unwrap(), "").unwrap();
        let values = |keys: u64| before_cell(recipe, &Settings([("keys".to_string(), json!(keys))].into()));
        let found = |phase: usize, keys: u64| {
            let figures = recipe.phases[phase].metrics.iter();
            figures.map(|figure| figure::value(figure, OF_DB_BENCH, &values(keys)).ok()).collect::<Vec<_>>()
        };
        assert_eq!(found(1, 2000), [Some(2000.0), Some(97684.0)], "fill");
        assert_eq!(found(1, 2001), [None, Some(97684.0)], "not all were done");
        assert_eq!(found(3, 2000), [Some(2000.0), Some(359582.0)], "read-random");
        assert_eq!(found(2, 2000), [None, None], "overwrite");
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let objections = |settings: &Settings| {
            let found = find(RECIPE).unwrap().objections(settings);
            found.into_iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        assert!(objections(&settings(json!({}))).is_empty());
        assert_eq!(objections(&settings(json!({"keys": 1}))), ["keys"]);
        assert_eq!(objections(&settings(json!({"with": [2, 3, 2]}))), ["with"]);
        assert_eq!(objections(&Settings::default()), [RECIPE]);
        assert_eq!(objections(&Settings([(RECIPE.to_string(), json!("name = 1"))].into())), [RECIPE]);
    }
}
