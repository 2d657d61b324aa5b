//! `pickfs list`: every plug-in, from the same lists that run them.

use super::{Exit, Outcome, Verb, options};
use clap::ValueEnum;
use pickfs_core::metric::{METRICS, Metric};
use pickfs_core::plan::{Setting, Settings, meant};
use pickfs_host::render::{self, Kind};
use pickfs_host::wording::marks;
use pickfs_host::{executor, import};
use pickfs_system::need::{self, Need};
use pickfs_system::units::show_bytes;
use pickfs_target::stack::fs::feature::FEATURES;
use pickfs_target::stack::{above, backing, fs, layer};
use pickfs_target::{probe, workload};
use pickfs_trace::shipped;
use pickfs_trees::profile::builtin::{self, Builtin};
use serde_json::{Value, json};

/// List what pickfs knows: file systems, their options, backings, workloads, disks, formats, metrics, marks and more
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
    /// As it is typed.
    fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }

    fn has_no(self, name: &str) -> anyhow::Error {
        let (word, entries) = (self.word(), entries(self));
        let known = entries.iter().filter_map(|one| Some((one["name"].as_str()?, one["about"].as_str()?)));
        let near = meant(name, known).map(|near| format!("did you mean `pickfs list {word} {near}`? "));
        let (name, near) = (name.escape_debug(), near.unwrap_or_default());
        Exit::usage(format!("`pickfs list {word}` has no `{name}`; {near}without a name it shows all"))
    }
}

/// Names of all that can be listed.
pub(crate) fn names() -> Vec<String> {
    let all = Listing::value_variants().iter().flat_map(|what| entries(*what));
    all.filter_map(|one| one["name"].as_str().map(String::from)).collect()
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs list workloads", "every work, with its phases and settings"],
        ["pickfs list workloads tree", "one of them"],
        ["pickfs list options btrfs", "what people turn of btrfs, with defaults and what it costs"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let named = |name: &str| self.name.as_deref().is_none_or(|only| only == name);
        if self.json {
            let whats = Listing::value_variants().iter().filter(|what| self.what.is_none_or(|only| only == **what));
            let all: Vec<Value> =
                whats.flat_map(|what| entries(*what)).filter(|one| one["name"].as_str().is_some_and(named)).collect();
            println!("{}", serde_json::to_string_pretty(&all)?);
            return Ok(0);
        }
        for what in Listing::value_variants().iter().filter(|what| self.what.is_none_or(|only| only == **what)) {
            if self.what.is_none() {
                println!("{}:", what.word());
            }
            if list(*what, &named) == 0 {
                return Err(what.has_no(self.name.as_deref().unwrap_or_default()));
            }
        }
        Ok(0)
    }
}

/// Each entry for programs: what it is, its settings, and what this machine lacks for it.
fn entries(what: Listing) -> Vec<Value> {
    let kind = what.word();
    let setting = |of: &Setting| json!({ "name": of.name, "about": of.about, "default": of.default });
    let entry = |name: &str, about: &str, settings: &[Setting], needs: &[Need]| {
        let missing: Vec<String> = need::missing(needs).iter().map(ToString::to_string).collect();
        let settings: Vec<Value> = settings.iter().map(setting).collect();
        json!({ "kind": kind, "name": name, "about": about, "settings": settings, "missing": missing })
    };
    let plain = |name: &str, about: &str| entry(name, about, &[], &[]);
    let filesystem = |fs: &fs::Filesystem| {
        let mut found = entry(fs.name, fs.about, &[], &fs.needs());
        found["variants"] = fs.variants.iter().map(|variant| variant.name).collect();
        found["features"] = fs.features.usual.iter().copied().collect();
        found["features_by_option"] = fs.features.more.iter().copied().collect();
        found["keeps_no"] = fs.features.keeps_no.iter().copied().collect();
        found["about_variants"] = fs.variants.iter().map(|one| (one.name.to_string(), json!(one.about))).collect();
        found["largest_file_bytes"] = fs.limits.file.into();
        found["largest_volume_bytes"] = fs.limits.volume.into();
        found["minimum_size_bytes"] = fs.limits.least.into();
        found
    };
    let workload = |one: &'static dyn workload::Workload| {
        let mut found = entry(one.name(), one.about(), one.settings(), &one.needs(&Settings::default()));
        let phases = one.phases(&Settings::default());
        found["phases"] = phases.iter().map(|phase| json!({ "name": phase.name, "about": phase.about })).collect();
        found
    };
    match what {
        Listing::Fs => fs::ALL.iter().map(|one| filesystem(one)).collect(),
        Listing::Options => options::owners().iter().map(|one| one.json(plain(one.name, one.about))).collect(),
        Listing::Features => FEATURES.iter().map(|one| plain(one.name, one.about)).collect(),
        Listing::Backings => {
            backing::ALL.iter().map(|one| entry(one.name, one.about, one.settings, one.needs)).collect()
        }
        Listing::Layers => layer::ALL.iter().map(|one| entry(one.name, one.about, one.settings, one.needs)).collect(),
        Listing::Above => above::ALL.iter().map(|one| entry(one.name, one.about, &[], one.needs)).collect(),
        Listing::Workloads => workload::for_users().map(workload).collect(),
        Listing::Profiles => builtin::ALL.iter().map(|one| plain(one.name, &one.profile().about)).collect(),
        Listing::Probes => probe::ALL.iter().map(|one| plain(one.name(), one.about())).collect(),
        Listing::Executors => {
            executor::ALL.iter().map(|one| entry(one.name(), one.about(), one.settings(), &one.needs())).collect()
        }
        Listing::Disks => pickfs_disks::ALL.iter().map(|one| plain(one.name, &one.disk().described())).collect(),
        Listing::Formats => render::ALL.iter().map(|one| plain(one.name, one.about)).collect(),
        Listing::Imports => import::ALL.iter().map(|one| plain(one.name(), one.about())).collect(),
        Listing::Traces => shipped::ALL.iter().map(|one| plain(one.name, one.about)).collect(),
        Listing::Metrics => headed().map(|one| plain(one.name, &column(one))).collect(),
        Listing::Marks => marks::explained().map(|(sign, meaning)| plain(sign, &meaning)).collect(),
    }
}

/// The command that shows an entry, and what that is about, of each entry that has the word; in lower case.
pub(crate) fn that_mention(word: &str) -> Vec<[String; 2]> {
    let texts = |entry: &Value| {
        let parts = ["name", "about", "variants", "about_variants", "features"].map(|part| entry[part].to_string());
        parts.concat().to_lowercase()
    };
    let row = |what: Listing, entry: &Value| {
        let text = |part: &str| entry[part].as_str().unwrap_or_default().to_string();
        [format!("pickfs list {} {}", what.word(), text("name")), text("about")]
    };
    let of = |what: &Listing| {
        let found = entries(*what).into_iter().filter(|entry| texts(entry).contains(word));
        found.map(|entry| row(*what, &entry)).collect::<Vec<_>>()
    };
    Listing::value_variants().iter().flat_map(of).collect()
}

/// How many of them have a wanted name.
fn list(what: Listing, named: &dyn Fn(&str) -> bool) -> usize {
    fn each<T>(all: impl Iterator<Item = T>, named: impl Fn(&T) -> bool, show: impl Fn(T)) -> usize {
        all.filter(named).map(show).count()
    }
    match what {
        Listing::Fs => each(fs::ALL.iter(), |fs| named(fs.name), |fs| filesystem(fs)),
        Listing::Options => each(options::owners().iter(), |one| named(one.name), |one| print!("{one}")),
        Listing::Features => each(FEATURES.iter(), |one| named(one.name), |one| wide_row(one.name, one.about)),
        Listing::Backings => {
            each(backing::ALL.iter(), |one| named(one.name), |one| plugin(one.name, one.about, one.settings, one.needs))
        }
        Listing::Layers => {
            each(layer::ALL.iter(), |one| named(one.name), |one| plugin(one.name, one.about, one.settings, one.needs))
        }
        Listing::Above => each(above::ALL.iter(), |one| named(one.name), |one| layer_above(one)),
        Listing::Workloads => each(workload::for_users(), |one| named(one.name()), one_workload),
        Listing::Profiles => each(builtin::ALL.iter(), |one| named(one.name), profile),
        Listing::Probes => each(probe::ALL.iter(), |one| named(one.name()), |one| row(one.name(), one.about())),
        Listing::Executors => each(
            executor::ALL.iter(),
            |one| named(one.name()),
            |one| plugin(one.name(), one.about(), one.settings(), &one.needs()),
        ),
        Listing::Disks => {
            each(pickfs_disks::ALL.iter(), |one| named(one.name), |one| wide_row(one.name, &one.disk().described()))
        }
        Listing::Formats => each(render::ALL.iter(), |one| named(one.name), format),
        Listing::Imports => each(import::ALL.iter(), |one| named(one.name()), |one| row(one.name(), one.about())),
        Listing::Traces => each(shipped::ALL.iter(), |one| named(one.name), |one| wide_row(one.name, one.about)),
        Listing::Metrics => each(headed(), |one| named(one.name), |one| wide_row(one.name, &column(one))),
        Listing::Marks => each(marks::explained(), |(sign, _)| named(sign), |(sign, meaning)| row(sign, &meaning)),
    }
}

/// Those that a report shows in a column of their own.
fn headed() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| !metric.heading.is_empty())
}

fn column(metric: &Metric) -> String {
    let limit =
        if metric.alias.is_empty() { String::new() } else { format!("; in limits of a plan: {}", metric.alias) };
    format!("{}{limit}", metric.heading)
}

fn plugin(name: &str, about: &str, of_it: &[Setting], needs: &[Need]) {
    row(name, about);
    settings(of_it);
    wanting(needs);
}

fn layer_above(layer: &above::Above) {
    row(layer.name, layer.about);
    for promise in layer.weakens {
        println!("      {promise}");
    }
    wanting(layer.needs);
}

fn filesystem(fs: &fs::Filesystem) {
    row(fs.name, fs.about);
    for variant in fs.variants {
        println!("      {:<10} {}", variant.name, variant.about);
    }
    if !fs.features.usual.is_empty() {
        println!("      has {}", fs.features.usual.join(", "));
    }
    if !fs.features.more.is_empty() {
        println!("      by option or version: {}", fs.features.more.join(", "));
    }
    if !fs.features.keeps_no.is_empty() {
        println!("      keeps no {}", fs.features.keeps_no.join(", no "));
    }
    let sizes = [("largest file", fs.limits.file), ("largest volume", fs.limits.volume)];
    let known = sizes.iter().filter_map(|(what, bytes)| Some(format!("{what} {}", show_bytes((*bytes)? as f64))));
    let known: Vec<String> = known.collect();
    if !known.is_empty() {
        println!("      {} (documented)", known.join(", "));
    }
    wanting(&fs.needs());
}

fn one_workload(workload: &dyn workload::Workload) {
    row(workload.name(), workload.about());
    for phase in workload.phases(&Settings::default()) {
        println!("      phase {:<10} {}", phase.name, phase.about);
    }
    settings(workload.settings());
    wanting(&workload.needs(&Settings::default()));
}

fn profile(builtin: &Builtin) {
    let profile = builtin.profile();
    row(builtin.name, &profile.about);
    println!("      {} files, {}", profile.files(), show_bytes(profile.bytes() as f64));
}

fn format(format: &render::Format) {
    let others = [
        (Kind::Comparison, "compare"),
        (Kind::Ranking, "choices"),
        (Kind::Machines, "choices --between machines"),
        (Kind::Tunings, "report FOLDER"),
    ];
    let verbs: Vec<&str> = others.iter().filter(|(kind, _)| format.shows(*kind)).map(|(_, verb)| *verb).collect();
    let also =
        if verbs.is_empty() { String::new() } else { format!(" (also of `pickfs {}`)", verbs.join("`, `pickfs ")) };
    wide_row(format.name, &format!("{}{also}", format.about));
}

fn row(name: &str, about: &str) {
    println!("  {name:<12} {about}");
}

fn wide_row(name: &str, about: &str) {
    println!("  {name:<20} {about}");
}

fn settings(list: &[Setting]) {
    for setting in list {
        let default = setting.default.map(|text| format!(" (default {text})")).unwrap_or_default();
        println!("      {} = ...  {}{default}", setting.name, setting.about);
    }
}

fn wanting(needs: &[Need]) {
    for missing in need::missing(needs) {
        println!("      missing here: {missing}");
    }
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
            entries(*what).iter().for_each(|entry| rows("&emsp;", entry, &mut page));
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
    fn the_reference_is_what_the_lists_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
        if std::env::var_os("PICKFS_WRITE_SCHEMA").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == reference(), "docs/reference.md is out of date: run `make schema`");
    }
}
