//! Works that recipes describe: those of users, whose text a plan carries, and those of ours, which
//! lie in `recipes`.
//!
//! `figure` reads what their programs print, `play` runs them.

mod account;
mod daemon;
mod figure;
mod play;

use super::postgresql::SEGMENT;
use super::{Description, MEAN_OF_PHASES, Workload, judged};
use crate::stack::Argv;
use crate::stack::take_down::TakeDown;
use crate::stage::Stage;
use crate::stage::phase::*;
use anyhow::{Context, Result};
use pickfs_core::metric::Combine;
use pickfs_core::plan::recipe::{self, Command, PhaseOf, RECIPE, Reads, Recipe, Starts, Until, Values};
use pickfs_core::plan::{Judged, Objection, Setting, SettingKind, Settings};
use pickfs_system::need::{Need, find_versioned};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The recipe that a plan names.
pub(super) static GIVEN: RecipeWork = RecipeWork { text: None, described: OnceLock::new() };

/// Those of ours: each is a file of `recipes`.
macro_rules! built_in {
    ($($name:ident = $file:literal),+ $(,)?) => {$(
        pub(super) static $name: RecipeWork = RecipeWork::of(include_str!(concat!("../recipes/", $file, ".toml")));
    )+};
}

built_in! {
    BONNIE = "bonnie",
    DUCKDB = "duckdb",
    PGBENCH = "pgbench",
    ROCKSDB = "rocksdb",
    SYSBENCH = "sysbench",
}

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
        recipe::read_once(self.text.or(settings.text(RECIPE))?, "").ok()
    }

    fn describe(&self) -> Description {
        let Some(recipe) = self.recipe(&Settings::default()) else {
            let about = "your own work: programs, phases and figures that a recipe file names";
            return Description { name: RECIPE, about, settings: TEXT, main_setting: RECIPE, ..Description::EMPTY };
        };
        Description {
            name: &recipe.name,
            about: &recipe.about,
            settings: &recipe.settings,
            main_setting: recipe.main,
            choose_programs: that_choose_programs(recipe),
            judged: judged_as(recipe),
            seconds: self.seconds(&Settings::default()),
            ..Description::EMPTY
        }
    }
}

fn judged_as(recipe: &Recipe) -> (Combine, &'static str) {
    let (mean, name) = MEAN_OF_PHASES;
    if recipe.is_mean { (mean, recipe.per.unwrap_or(name)) } else { (Combine::Sum, "") }
}

/// Settings that a program gets unchanged, as words.
fn that_choose_programs(recipe: &Recipe) -> &'static [&'static str] {
    let texts = recipe.settings.iter().filter(|row| matches!(row.kind, SettingKind::Texts));
    Vec::leak(texts.map(|row| row.name).collect())
}

/// Before a cell folders are not known, and stay as they stand in the recipe.
fn before_cell(recipe: &Recipe, settings: &Settings) -> Values {
    let folders = ["dir", "memory", "port"].map(|name| (name, format!("{{{name}}}")));
    recipe.values(settings, folders.into_iter().chain([processors()]))
}

fn processors() -> (&'static str, String) {
    ("processors", std::thread::available_parallelism().map_or(1, usize::from).to_string())
}

/// Where the program lies, if there is a folder for each of its versions.
fn located(recipe: &Recipe, name: &str) -> String {
    let found = recipe.under.and_then(|under| find_versioned(name, Path::new(under)));
    found.map_or(name.into(), |path| path.display().to_string())
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
        let need = |(name, package): &(&'static str, &'static str)| match recipe.under {
            Some(under) => Need::VersionedProgram { name, under, package },
            None => Need::Program { name, package },
        };
        let listed = recipe.needs.iter().map(need).collect();
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
        let located = |name: &str| self.recipe(settings).map_or(name.into(), |recipe| located(recipe, name));
        let words = |words: &'static Vec<String>| {
            let (name, others) = words.split_first()?;
            Some((name.as_str(), [&[located(name)], others].concat()))
        };
        all.filter_map(words).collect()
    }

    fn take_down(&self, settings: &Settings, root: &Path) -> Option<(&'static TakeDown, PathBuf)> {
        let recipe = self.recipe(settings)?;
        let word = recipe.server.as_ref()?.segment.as_ref()?;
        let values = recipe.values(settings, [("dir", root.display().to_string())]);
        Some((&SEGMENT, word.filled(&values).concat().into()))
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let Some(recipe) = self.recipe(settings) else {
            let remedy = "name the file of a recipe: workload = \"./mine.toml\"; docs/recipes.md describes its content";
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
        let is_fixed = recipe.seconds.as_ref().is_some_and(|amount| amount.names().next().is_none());
        match (self.bytes(settings), self.bytes(&usual)) {
            // As with other works, more bytes take longer; where the recipe reckons itself, it
            // knows better.
            (Some(bytes), Some(by_default)) if by_default > 0 && is_fixed => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::find;
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

    const OF_PGBENCH: &str = "pgbench (15.14 (Debian 15.14-0+deb12u1))\nnumber of transactions actually processed: 4000\n\
        number of failed transactions: 0 (0.000%)\nlatency average = 5.000 ms\ninitial connection time = 500.000 ms\n\
        tps = 2000.000000 (without initial connection time)\n";
    const OF_OLDER_PGBENCH: &str = "number of transactions actually processed: 4000/4000\n\
        tps = 1600.0 (including connections establishing)\ntps = 2000.0 (excluding connections establishing)\n";
    /// As sysbench 1.0.20 prints it.
    const OF_SYSBENCH: &str = "Latency histogram (values are in milliseconds)\n\
        \x20      value  ------------- distribution ------------- count\n\
        \x20      0.654 |                                         1\n\
        \x20      2.615 |**************************************** 149\n\
        \x20    116.802 |*                                        3\n \n\
        SQL statistics:\n    transactions:                        153   (30.58 per sec.)\n\
        \x20   queries:                             3060 (611.51 per sec.)\n\
        \x20   ignored errors:                      1      (0.20 per sec.)\n\
        \x20   reconnects:                          0      (0.00 per sec.)\n\nGeneral statistics:\n\
        \x20   total time:                          5.0040s\n    total number of events:              153\n\n\
        Latency (ms):\n         min:                                    0.65\n\
        \x20        max:                                  116.42\n";
    /// As bonnie++ 2.00a of Debian 12 printed it for -s 64:8k -n 16:0:0:1 on ext4, and with enough
    /// to do.
    const OF_SHORT_BONNIE: &str = include_str!("../../../../../fixtures/bonnie-2.00a-short.csv");
    const OF_BONNIE: &str = include_str!("../../../../../fixtures/bonnie-2.00a-long.csv");

    /// What the figures of a phase come to that ask nothing, and those of its parts, without what
    /// is only checked.
    fn figures(work: &RecipeWork, phase: &str, settings: serde_json::Value, printed: &str) -> Result<Vec<String>> {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let recipe = work.recipe(&settings).unwrap();
        let played = recipe.played(&before_cell(recipe, &settings));
        let (_, phase, values) = played.into_iter().find(|(name, ..)| name == phase).unwrap();
        let mut shown = Vec::new();
        let mut all = |figures: &'static [recipe::Figure], of: &str| {
            let mut values = values.clone();
            for figure in figures {
                let asks = matches!(&figure.source, recipe::FigureSource::Found { ask: Some(_), .. });
                let Some(found) = (if asks { None } else { figure::value(figure, printed, &values)? }) else {
                    continue;
                };
                found
                    .wrong
                    .filter(|_| figure.doubt.is_none())
                    .map_or(Ok(()), |wrong| Err(anyhow::Error::msg(wrong)))?;
                values.named.insert(figure.name, found.number.to_string());
                shown.extend((!figure.is_inner).then(|| format!("{of}{} {}", figure.name, found.number)));
            }
            anyhow::Ok(())
        };
        all(&phase.metrics, "")?;
        for part in &phase.parts {
            if figure::value(&part.time, printed, &values)?.is_some() {
                all(std::slice::from_ref(&part.time), &format!("{} ", part.name))?;
                all(&part.metrics, &format!("{} ", part.name))?;
            }
        }
        shown.retain(|one| !one.starts_with(' '));
        Ok(shown)
    }

    #[test]
    fn recipes_of_ours_read_what_their_programs_print() {
        let keys = |keys: u64| json!({ "keys": keys });
        let usual = || json!({"clients": [2]});
        let of_pgbench = "work_transactions 4000, units_count 4, transactions_per_second 2000, time_ns 2000000000";
        let connecting = "connecting_ns 500000000, transactions_with_connections_per_second 1600";
        let of_sysbench = "work_transactions 153, units_count 0.153, time_ns 5004000000, transactions_per_second 30.57";
        let bonnie = json!({"size": 64 << 20, "characters": 3 << 20, "files": 16384, "seeks": 8192});
        // 1417 KiB a second of 3 MiB, 33 % of a processor, 283 ms at most.
        let putc = format!(
            "putc time_ns {}, putc bytes_per_second {}, putc latency_max_ns 283000000, putc cpu_share 0.33",
            3072.0 / 1417.0 * 1e9,
            1417 * 1024
        );
        let failed = OF_PGBENCH.replace("transactions: 0 (", "transactions: 3 (");
        let none = OF_PGBENCH.replace("processed: 4000", "processed: 0");
        let lost = OF_SYSBENCH.replace("reconnects:                          0", "reconnects: 2");
        let without_time = OF_SYSBENCH.replace("total time:", "");
        let older_bonnie = OF_BONNIE.replacen("1.98", "1.97", 1);
        let rows = [
            (&ROCKSDB, "fill", keys(2000), OF_DB_BENCH, Ok("operations_per_second 97684")),
            (&ROCKSDB, "fill", keys(2001), OF_DB_BENCH, Err("must be at least 2001")),
            (&ROCKSDB, "read-random", keys(2000), OF_DB_BENCH, Ok("operations_per_second 359582")),
            (&ROCKSDB, "overwrite", keys(2000), OF_DB_BENCH, Err("fits nothing")),
            (&PGBENCH, "clients-2", usual(), OF_PGBENCH, Ok(of_pgbench)),
            (&PGBENCH, "clients-2", usual(), OF_PGBENCH, Ok(connecting)),
            (&PGBENCH, "clients-2", usual(), OF_OLDER_PGBENCH, Ok(of_pgbench)),
            (&PGBENCH, "clients-2", usual(), &failed, Err("is 3, and must be 0")),
            (&PGBENCH, "clients-2", usual(), &none, Err("work_transactions is 0")),
            (&PGBENCH, "clients-2", usual(), "", Err("fits nothing")),
            (&SYSBENCH, "clients-2", usual(), OF_SYSBENCH, Ok(of_sysbench)),
            (&SYSBENCH, "clients-2", usual(), OF_SYSBENCH, Ok("deadlocked_transactions 1")),
            (&SYSBENCH, "clients-2", usual(), &lost, Err("lost_connections is 2")),
            (&SYSBENCH, "clients-2", usual(), &without_time, Err("of time_ns fits nothing")),
            (&BONNIE, "bonnie++", bonnie.clone(), OF_SHORT_BONNIE, Ok(&putc)),
            (&BONNIE, "bonnie++", bonnie.clone(), &older_bonnie, Err("of format-1.98 fits nothing")),
            (&BONNIE, "bonnie++", bonnie.clone(), "1.98,2.00a,name", Err("of format-1.98 fits nothing")),
        ];
        for (work, phase, settings, printed, wanted) in rows {
            match (figures(work, phase, settings, printed), wanted) {
                (Ok(found), Ok(wanted)) => assert!(found.join(", ").contains(wanted), "{phase} {found:?}: {wanted}"),
                (Err(error), Err(says)) => assert!(format!("{error:#}").contains(says), "{phase} {error:#}: {says}"),
                (found, wanted) => panic!("{phase} {found:?}, not {wanted:?}"),
            }
        }
        let parts = |printed: &str| {
            let found = figures(&BONNIE, "bonnie++", bonnie.clone(), printed).unwrap();
            found
                .iter()
                .filter_map(|one| one.split_once(" time_ns").map(|(part, _)| part.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (parts(OF_SHORT_BONNIE).join(" "), parts(OF_BONNIE).len()),
            ("putc getc sequential-create".into(), 12)
        );
        assert_eq!(figures(&BONNIE, "bonnie++", bonnie.clone(), OF_BONNIE).unwrap().len(), 12 * 4);
    }

    #[test]
    fn every_latency_is_read() {
        let latencies = |work: &RecipeWork, printed: &str, done: u64| {
            let settings = serde_json::from_value(json!({"clients": [2]})).unwrap();
            let recipe = work.recipe(&settings).unwrap();
            let mut values = before_cell(recipe, &settings);
            values.named.extend([("work_transactions", done.to_string()), ("most", "116.42".into())]);
            figure::latencies(&recipe.phases[2].latencies[0], printed, &values)
        };
        let near = |ns: u64, wanted: f64| (ns as f64 / wanted - 1.0).abs() < 0.01;
        let of_pgbench = latencies(&PGBENCH, "1500 2\n9000 1\n", 3).unwrap();
        assert!(near(of_pgbench.quantile(0.5), 1.5e6) && near(of_pgbench.quantile(1.0), 9e6));
        let of_sysbench = latencies(&SYSBENCH, OF_SYSBENCH, 153).unwrap();
        assert!(near(of_sysbench.quantile(0.5), 2.615e6) && near(of_sysbench.quantile(1.0), 116.42e6));
        assert!(latencies(&PGBENCH, "1500 2\nfailed 1\n", 3).is_err());
        assert!(latencies(&SYSBENCH, OF_SYSBENCH, 154).is_err());
    }

    #[test]
    fn settings_of_servers_that_promise_less_are_named_and_those_that_promise_nothing_refused() {
        let rows: [(&RecipeWork, &str, bool, &str); 24] = [
            (&PGBENCH, "shared_buffers=1GB", false, "nothing"),
            (&PGBENCH, "synchronous_commit=on", false, "nothing"),
            (&PGBENCH, "synchronous_commit=off", false, "synchronous_commit=off"),
            (&PGBENCH, "full_page_writes='no'", false, "full_page_writes='no'"),
            (&PGBENCH, "fsync=on", false, "nothing"),
            (&PGBENCH, "fsync = OFF", true, "nothing"),
            (&PGBENCH, "fsync=of", true, "nothing"),
            (&PGBENCH, "fsync='f'", true, "nothing"),
            (&PGBENCH, "fsync=0", true, "nothing"),
            (&PGBENCH, "Port=5433", true, "nothing"),
            (&PGBENCH, "shared_buffers", true, "nothing"),
            (&SYSBENCH, "innodb_buffer_pool_size=1G", false, "nothing"),
            (&SYSBENCH, "innodb_flush_log_at_trx_commit=1", false, "nothing"),
            (&SYSBENCH, "innodb_flush_log_at_trx_commit=3", false, "nothing"),
            (&SYSBENCH, "innodb_flush_log_at_trx_commit=2", false, "innodb_flush_log_at_trx_commit=2"),
            (&SYSBENCH, "innodb-flush-log-at-trx-commit=0", false, "innodb-flush-log-at-trx-commit=0"),
            (&SYSBENCH, "INNODB_DOUBLEWRITE=off", false, "INNODB_DOUBLEWRITE=off"),
            (&SYSBENCH, "innodb_doublewrite=1", false, "nothing"),
            (&SYSBENCH, "datadir=/x", true, "nothing"),
            (&SYSBENCH, "innodb_flush_method=nosync", true, "nothing"),
            (&SYSBENCH, "Skip-Networking=0", true, "nothing"),
            (&SYSBENCH, "--socket=/x", true, "nothing"),
            (&SYSBENCH, "=3", true, "nothing"),
            (&SYSBENCH, "verbose", true, "nothing"),
        ];
        for (work, text, refused, weakened) in rows {
            let settings: Settings = serde_json::from_value(json!({ "server": [text] })).unwrap();
            let objections = work.objections(&settings);
            assert_eq!(
                objections.first().is_some_and(|one| one.setting == "server"),
                refused,
                "{text}: {objections:?}"
            );
            assert_eq!(work.recipe(&settings).unwrap().weakening(&settings).as_deref(), Some(weakened), "{text}");
        }
    }

    #[test]
    fn phases_needs_and_sizes_of_recipes_of_ours_follow_their_settings() {
        let settings = |given: serde_json::Value| -> Settings { serde_json::from_value(given).unwrap() };
        let objections = |work: &RecipeWork, given: serde_json::Value| {
            let all = work.objections(&settings(given));
            all.into_iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        let names = |work: &RecipeWork, given: &Settings| {
            work.phases(given).into_iter().map(|phase| phase.name.into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&PGBENCH, &Settings::default()), "initdb load clients-10 clients-100");
        let few = settings(json!({"clients": [1, 3]}));
        assert_eq!(names(&PGBENCH, &few), "initdb load clients-1 clients-3");
        assert_eq!((PGBENCH.bytes(&few), PGBENCH.seconds(&few)), (Some((128 + 48 + 48) << 20), 240));
        let words = |given: serde_json::Value| {
            let given = settings(given);
            let recipe = PGBENCH.recipe(&given).unwrap();
            let values = recipe.values(&given, [("processors", "9".to_string())]);
            let (_, phase, values) = recipe.played(&values).swap_remove(2);
            filled(&phase.run[0], &values).join(" ")
        };
        let of_time = words(json!({"clients": [1, 3]}));
        assert!(of_time.ends_with("--client 1 --jobs 1 --time=60 postgres"), "{of_time}");
        let of_count = words(json!({"clients": [8], "transactions": 7, "threads": 2, "time": 60_000_000_000_u64}));
        assert!(of_count.ends_with("--client 8 --jobs 2 --transactions=7 postgres"), "{of_count}");
        for wrong in [json!([10, 10]), json!([0, 1]), json!([])] {
            assert_eq!(objections(&PGBENCH, json!({ "clients": wrong })), ["clients"]);
        }
        assert_eq!(objections(&PGBENCH, json!({"time": 1_500_000_000_u64})), ["time"]);
        assert!(
            objections(&PGBENCH, json!({"clients": [10, 100], "scale": 99, "time": 60_000_000_000_u64})).is_empty()
        );
        assert_eq!(objections(&SYSBENCH, json!({"time": 0})), ["time"]);
        assert_eq!(objections(&BONNIE, json!({"size": (1 << 20) + 1, "files": 1})), ["size", "files"]);
        let bytes = |given: serde_json::Value| BONNIE.bytes(&settings(given));
        assert_eq!(bytes(json!({"size": 1 << 20})), Some(1 << 20));
        assert_eq!(bytes(json!({"size": 1 << 20, "file-size": 10})), Some(1_310_720));
        for need in PGBENCH.needs(&few) {
            match need {
                Need::VersionedProgram { name: "ipcrm", package, .. } => assert_eq!(package, "util-linux"),
                Need::VersionedProgram { name: "sh" | "awk", .. } => {}
                Need::VersionedProgram { package, .. } => assert_eq!(package, "postgresql"),
                other => panic!("{other:?}"),
            }
        }
        let noted = PGBENCH.take_down(&few, Path::new("/d")).map(|(_, note)| note);
        assert_eq!(noted.as_deref(), Some(Path::new("/d/cluster/postmaster.pid")));
        let of_bonnie = BONNIE.needs(&few).into_iter().next();
        assert_eq!(of_bonnie, Some(Need::Program { name: "bonnie++", package: "bonnie++" }));
    }

    /// A file that is added to the folder must be listed too.
    #[test]
    fn every_recipe_of_the_folder_is_a_work() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/workload/recipes")).unwrap();
        for entry in folder {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let complaints = recipe::read_once(&text, "").err().unwrap_or_default();
            let said = pickfs_core::plan::render(&text, &path.display().to_string(), &complaints, false);
            assert!(complaints.is_empty(), "{said}");
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(find(&name).is_some(), "{name}");
        }
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
