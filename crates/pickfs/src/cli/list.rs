//! `pickfs list`: every plug-in, from the same lists that run them.

use super::{Exit, Outcome, Verb, did_you_mean, options};
use clap::ValueEnum;
use pickfs_core::metric::{METRICS, Metric};
use pickfs_core::plan::{Setting, Settings, meant};
use pickfs_host::executor::{self, Executor};
use pickfs_host::import;
use pickfs_host::render::{self, Kind};
use pickfs_host::wording::marks;
use pickfs_system::need::{self, Need};
use pickfs_system::units::show_bytes;
use pickfs_target::stack::fs::feature::FEATURES;
use pickfs_target::stack::{above, backing, fs, layer};
use pickfs_target::{probe, workload};
use pickfs_trace::shipped;
use pickfs_trees::profile::builtin::{self, Builtin};
use serde_json::{Value, json};

/// List what pickfs knows: file systems, their options, backings, workloads, disks, formats,
/// metrics, marks and more
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to list
    #[arg(value_enum)]
    what: Option<Listing>,
    /// Only the one of that name, such as `pickfs list workloads tree`
    name: Option<String>,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Listing {
    Fs,
    Options,
    Features,
    Backings,
    Layers,
    Above,
    Workloads,
    Profiles,
    Probes,
    Executors,
    Disks,
    Formats,
    Imports,
    Traces,
    Metrics,
    Marks,
}

impl Listing {
    /// The word to type.
    fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }

    fn has_no(self, name: &str) -> anyhow::Error {
        let (word, entries) = (self.word(), entries(self));
        let near = meant(name, entries.iter().map(|entry| (entry.name.as_str(), entry.about.as_str())));
        let near = did_you_mean(&format!("pickfs list {word} "), near);
        let name = name.escape_debug();
        Exit::usage(format!("`pickfs list {word}` has no `{name}`; {near}without a name it shows all"))
    }
}

/// Names of all that can be listed.
pub(crate) fn names() -> Vec<String> {
    Listing::value_variants().iter().flat_map(|what| entries(*what)).map(|entry| entry.name).collect()
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs list workloads", "every work, with its phases and settings"],
        ["pickfs list workloads tree", "one of them"],
        ["pickfs list options btrfs", "what people turn of btrfs, with defaults and what it costs"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let whats = Listing::value_variants().iter().filter(|what| self.what.is_none_or(|only| only == **what));
        let is_meant = |entry: &Entry| self.name.as_deref().is_none_or(|only| only == entry.name);
        let mut all: Vec<Value> = Vec::new();
        for what in whats {
            let entries: Vec<Entry> = entries(*what).into_iter().filter(is_meant).collect();
            if entries.is_empty() {
                return Err(what.has_no(self.name.as_deref().unwrap_or_default()));
            }
            if self.json {
                all.extend(entries.into_iter().map(|entry| entry.json(*what)));
                continue;
            }
            if self.what.is_none() {
                println!("{}:", what.word());
            }
            let width = width(&entries);
            entries.iter().for_each(|entry| entry.print(width));
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&all)?);
        }
        Ok(0)
    }
}

/// Anything that has a name.
#[derive(Default)]
struct Entry {
    name: String,
    about: String,
    settings: &'static [Setting],
    needs: Vec<Need>,
    /// What else there is to say: for people, a line each, and for programs.
    lines: Vec<String>,
    more: Vec<(&'static str, Value)>,
}

impl Entry {
    fn of(name: &str, about: &str) -> Entry {
        Entry { name: name.into(), about: about.into(), ..Entry::default() }
    }

    fn plug_in(name: &str, about: &str, settings: &'static [Setting], needs: &[Need]) -> Entry {
        Entry { settings, needs: needs.to_vec(), ..Entry::of(name, about) }
    }

    fn json(self, what: Listing) -> Value {
        let missing: Vec<String> = need::missing(&self.needs).iter().map(ToString::to_string).collect();
        let setting = |of: &Setting| json!({ "name": of.name, "about": of.about, "default": of.default });
        let settings: Vec<Value> = self.settings.iter().map(setting).collect();
        let mut value = json!({ "kind": what.word(), "name": self.name, "about": self.about, "settings": settings,
            "missing": missing });
        self.more.into_iter().for_each(|(key, more)| value[key] = more);
        value
    }

    fn print(&self, width: usize) {
        println!("  {:<width$} {}", self.name, self.about);
        self.lines.iter().for_each(|line| println!("      {line}"));
        for setting in self.settings {
            let default = setting.default.map(|text| format!(" (default {text})")).unwrap_or_default();
            println!("      {} = ...  {}{default}", setting.name, setting.about);
        }
        need::missing(&self.needs).iter().for_each(|missing| println!("      missing here: {missing}"));
    }
}

/// Of the column of names.
fn width(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.name.chars().count()).fold(12, usize::max)
}

fn entries(what: Listing) -> Vec<Entry> {
    match what {
        Listing::Fs => fs::ALL.iter().map(|one| filesystem(one)).collect(),
        Listing::Options => options::owners().iter().map(of_options).collect(),
        Listing::Features => FEATURES.iter().map(|one| Entry::of(one.name, one.about)).collect(),
        Listing::Backings => {
            backing::ALL.iter().map(|one| Entry::plug_in(one.name, one.about, one.settings, one.needs)).collect()
        }
        Listing::Layers => {
            layer::ALL.iter().map(|one| Entry::plug_in(one.name, one.about, one.settings, one.needs)).collect()
        }
        Listing::Above => above::ALL.iter().map(|one| layer_above(one)).collect(),
        Listing::Workloads => workload::for_users().map(of_workload).collect(),
        Listing::Profiles => builtin::ALL.iter().map(profile).collect(),
        Listing::Probes => probe::ALL.iter().map(|one| Entry::of(one.name, one.about)).collect(),
        Listing::Executors => {
            let entry = |one: &&dyn Executor| Entry::plug_in(one.name(), one.about(), one.settings(), &one.needs());
            executor::ALL.iter().map(entry).collect()
        }
        Listing::Disks => pickfs_disks::ALL.iter().map(|one| Entry::of(one.name, &one.disk().described())).collect(),
        Listing::Formats => render::ALL.iter().map(format).collect(),
        Listing::Imports => import::ALL.iter().map(|one| Entry::of(one.name(), one.about())).collect(),
        Listing::Traces => shipped::ALL.iter().map(|one| Entry::of(one.name, one.about)).collect(),
        Listing::Metrics => METRICS.iter().filter(|metric| !metric.heading.is_empty()).map(metric).collect(),
        Listing::Marks => marks::explained().map(|(sign, meaning)| Entry::of(sign, &meaning)).collect(),
    }
}

/// The command that shows an entry, and what that is about, of each entry that has the word; in
/// lower case.
pub(crate) fn that_mention(word: &str) -> Vec<[String; 2]> {
    let has_word = |entry: &Entry| {
        let more = entry.more.iter().filter(|(key, _)| ["variants", "about_variants", "features"].contains(key));
        let more = more.map(|(_, value)| value.to_string()).collect::<String>();
        [entry.name.as_str(), &entry.about, &more].concat().to_lowercase().contains(word)
    };
    let of = |what: &Listing| {
        let (kind, entries) = (what.word(), entries(*what).into_iter().filter(has_word));
        entries.map(|entry| [format!("pickfs list {kind} {}", entry.name), entry.about]).collect::<Vec<_>>()
    };
    Listing::value_variants().iter().flat_map(of).collect()
}

fn of_options(owner: &options::Owner) -> Entry {
    Entry { lines: owner.lines(), more: vec![("options", owner.json())], ..Entry::of(owner.name, owner.about) }
}

fn metric(metric: &Metric) -> Entry {
    let limit =
        if metric.alias.is_empty() { String::new() } else { format!("; in limits of a plan: {}", metric.alias) };
    Entry::of(metric.name, &format!("{}{limit}", metric.heading))
}

fn layer_above(layer: &above::Above) -> Entry {
    let lines = layer.weakens.iter().map(ToString::to_string).collect();
    Entry { lines, ..Entry::plug_in(layer.name, layer.about, layer.settings, layer.needs) }
}

/// Names, and what they are behind the longest of them.
fn columns<'a>(rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let width = rows.clone().map(|(name, _)| name.chars().count()).fold(10, usize::max);
    rows.map(|(name, about)| format!("{name:<width$} {about}")).collect()
}

fn filesystem(fs: &fs::Filesystem) -> Entry {
    let (features, limits) = (&fs.features, &fs.limits);
    let named = |head: &str, names: &[&str], between: &str| {
        (!names.is_empty()).then(|| format!("{head} {}", names.join(between)))
    };
    let sizes = [("largest file", limits.file), ("largest volume", limits.volume)];
    let sizes = sizes.iter().filter_map(|(what, bytes)| Some(format!("{what} {}", show_bytes((*bytes)? as f64))));
    let sizes = sizes.collect::<Vec<_>>().join(", ");
    let more = [
        named("has", features.usual, ", "),
        named("by option or version:", features.more, ", "),
        named("keeps no", features.keeps_no, ", no "),
        (!sizes.is_empty()).then(|| format!("{sizes} (documented)")),
    ];
    let variants = columns(fs.variants.iter().map(|variant| (variant.name, variant.about)));
    Entry {
        lines: variants.into_iter().chain(more.into_iter().flatten()).collect(),
        more: vec![
            ("variants", fs.variants.iter().map(|variant| variant.name).collect()),
            ("features", json!(features.usual)),
            ("features_by_option", json!(features.more)),
            ("keeps_no", json!(features.keeps_no)),
            ("about_variants", fs.variants.iter().map(|one| (one.name.to_string(), json!(one.about))).collect()),
            ("largest_file_bytes", limits.file.into()),
            ("largest_volume_bytes", limits.volume.into()),
            ("minimum_size_bytes", limits.least.into()),
        ],
        ..Entry::plug_in(fs.name, fs.about, &[], &fs.needs())
    }
}

fn of_workload(workload: &'static dyn workload::Workload) -> Entry {
    let usual = Settings::default();
    let (phases, needs) = (workload.phases(&usual), workload.needs(&usual));
    let for_programs = phases.iter().map(|phase| json!({ "name": phase.name, "about": phase.about }));
    Entry {
        lines: columns(phases.iter().map(|phase| (phase.name.as_ref(), phase.about)))
            .iter()
            .map(|line| format!("phase {line}"))
            .collect(),
        more: vec![("phases", for_programs.collect())],
        ..Entry::plug_in(workload.name(), workload.about(), workload.settings(), &needs)
    }
}

fn profile(builtin: &Builtin) -> Entry {
    let profile = builtin.profile();
    let line = format!("{} files, {}", profile.files(), show_bytes(profile.bytes() as f64));
    Entry { lines: vec![line], ..Entry::of(builtin.name, &profile.about) }
}

fn format(format: &render::Format) -> Entry {
    let others = [
        (Kind::Comparison, "compare"),
        (Kind::Ranking, "choices"),
        (Kind::Machines, "choices --between machines"),
        (Kind::Tunings, "report FOLDER"),
    ];
    let verbs: Vec<&str> = others.iter().filter(|(kind, _)| format.shows(*kind)).map(|(_, verb)| *verb).collect();
    let also = (!verbs.is_empty()).then(|| format!("also of `pickfs {}`", verbs.join("`, `pickfs ")));
    Entry { lines: also.into_iter().collect(), ..Entry::of(format.name, format.about) }
}
#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    fn heading(what: Listing) -> &'static str {
        match what {
            Listing::Fs => "File systems",
            Listing::Options => "Options and settings that people turn",
            Listing::Features => "Features, for `require`",
            Listing::Backings => "Backings: where the bytes live",
            Listing::Layers => "Layers below a file system",
            Listing::Above => "Layers above a file system",
            Listing::Workloads => "Workloads and recipes",
            Listing::Profiles => "Trees that are made, for `like`",
            Listing::Probes => "Probes",
            Listing::Executors => "Executors",
            Listing::Disks => "Models of disks",
            Listing::Formats => "Formats of reports",
            Listing::Imports => "Results of other programs",
            Listing::Traces => "Recordings of programs",
            Listing::Metrics => "Metrics, by their names in journals, JSON and CSV",
            Listing::Marks => "Marks",
        }
    }

    /// A cell of a table of Markdown.
    fn cell(text: &str) -> String {
        text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*")
    }

    fn rows(kind: &str, entry: &Value, page: &mut String) {
        let text = |of: &Value, part: &str| of[part].as_str().unwrap_or_default().to_string();
        let name = text(entry, "name");
        let _ = writeln!(page, "| `{name}` | {} |", cell(&text(entry, "about")));
        for setting in entry["settings"].as_array().into_iter().flatten() {
            let default = setting["default"].as_str().map(|of| format!(" (default {of})")).unwrap_or_default();
            let about = cell(&(text(setting, "about") + &default));
            let _ = writeln!(page, "| {kind} `{}` | {about} |", text(setting, "name"));
        }
        for phase in entry["phases"].as_array().into_iter().flatten() {
            let _ = writeln!(page, "| {kind} phase `{}` | {} |", text(phase, "name"), cell(&text(phase, "about")));
        }
        for (variant, about) in entry["about_variants"].as_object().into_iter().flatten() {
            let about = cell(about.as_str().unwrap_or_default());
            let _ = writeln!(page, "| {kind} `{name}:{variant}` | {about} |");
        }
    }

    fn reference() -> String {
        let mut page = String::from(
            "# Reference\n\nMade of the program's own lists (`make schema`). `pickfs list`, `pickfs list workloads tree` and \
             `pickfs help exit-codes`\nprint the same on a terminal, with what this machine lacks; `pickfs VERB --help` has \
             every flag.\n\n* [Every key of a plan](plan.md); [every key of a recipe](recipes.md#every-key); [words of `pickfs \
             for`](for.md)\n* [Rules of an audit](rules.md); [events for programs](progress.md#for-programs)\n",
        );
        for what in Listing::value_variants() {
            let _ = writeln!(page, "\n## {}\n\n| | |\n|---|---|", heading(*what));
            entries(*what).into_iter().for_each(|entry| rows("&emsp;", &entry.json(*what), &mut page));
        }
        for (heading, text) in [
            ("Exit codes", include_str!("help/exit-codes.txt")),
            ("Files", include_str!("help/files.txt")),
            ("Environment", include_str!("help/environment.txt")),
        ] {
            let lines: String = text.lines().map(|line| format!("    {line}\n")).collect();
            let _ = write!(page, "\n## {heading}\n\n{lines}");
        }
        page
    }

    #[test]
    fn names_do_not_reach_into_the_next_column() {
        for what in Listing::value_variants() {
            let entries = entries(*what);
            let width = width(&entries);
            let longest = entries.iter().map(|entry| entry.name.chars().count()).max();
            assert!(longest.is_some_and(|longest| longest <= width), "{}", what.word());
        }
        assert_eq!([Listing::Fs, Listing::Imports].map(|what| width(&entries(what))), [12, 19]);
        let rows = [("read", "a"), ("write-clone", "b")];
        assert_eq!(columns(rows.into_iter()), ["read        a", "write-clone b"]);
    }

    #[test]
    fn the_reference_is_what_the_lists_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
        if std::env::var_os("PICKFS_WRITE_SCHEMA").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == reference(), "docs/reference.md is out of date: run `make schema`");
    }
}
