//! `pickfs list`: every plug-in, from the same lists that run them.

use super::{Exit, Outcome, Verb};
use clap::ValueEnum;
use pickfs_core::plan::{Setting, Settings, meant};
use pickfs_host::render::{self, Kind};
use pickfs_host::{executor, import};
use pickfs_system::need::{self, Need};
use pickfs_system::units::show_bytes;
use pickfs_target::stack::fs::feature::FEATURES;
use pickfs_target::stack::{above, backing, fs, layer};
use pickfs_target::{probe, workload};
use pickfs_trace::shipped;
use pickfs_trees::profile::builtin::{self, Builtin};
use serde_json::{Value, json};

/// List what pickfs knows: file systems, backings, workloads, probes, executors, disks, formats, imports, traces
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to list
    #[arg(value_enum)]
    what: Option<What>,
    /// Only the one of that name, such as `pickfs list workloads tree`
    name: Option<String>,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Fs,
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
}

impl What {
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
    let all = What::value_variants().iter().flat_map(|what| entries(*what));
    all.filter_map(|one| one["name"].as_str().map(String::from)).collect()
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs list workloads", "every work, with its phases and settings"],
        ["pickfs list workloads tree", "one of them"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let named = |name: &str| self.name.as_deref().is_none_or(|only| only == name);
        if self.json {
            let whats = What::value_variants().iter().filter(|what| self.what.is_none_or(|only| only == **what));
            let all: Vec<Value> =
                whats.flat_map(|what| entries(*what)).filter(|one| one["name"].as_str().is_some_and(named)).collect();
            println!("{}", serde_json::to_string_pretty(&all)?);
            return Ok(0);
        }
        for what in What::value_variants().iter().filter(|what| self.what.is_none_or(|only| only == **what)) {
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
fn entries(what: What) -> Vec<Value> {
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
        What::Fs => fs::ALL.iter().map(|one| filesystem(one)).collect(),
        What::Features => FEATURES.iter().map(|one| plain(one.name, one.about)).collect(),
        What::Backings => backing::ALL.iter().map(|one| entry(one.name, one.about, one.settings, one.needs)).collect(),
        What::Layers => layer::ALL.iter().map(|one| entry(one.name, one.about, one.settings, one.needs)).collect(),
        What::Above => above::ALL.iter().map(|one| entry(one.name, one.about, &[], one.needs)).collect(),
        What::Workloads => workload::for_users().map(workload).collect(),
        What::Profiles => builtin::ALL.iter().map(|one| plain(one.name, &one.profile().about)).collect(),
        What::Probes => probe::ALL.iter().map(|one| plain(one.name(), one.about())).collect(),
        What::Executors => {
            executor::ALL.iter().map(|one| entry(one.name(), one.about(), one.settings(), &one.needs())).collect()
        }
        What::Disks => pickfs_disks::ALL.iter().map(|one| plain(one.name, &one.disk().described())).collect(),
        What::Formats => render::ALL.iter().map(|one| plain(one.name, one.about)).collect(),
        What::Imports => import::ALL.iter().map(|one| plain(one.name(), one.about())).collect(),
        What::Traces => shipped::ALL.iter().map(|one| plain(one.name, one.about)).collect(),
    }
}

/// The command that shows an entry, and what that is about, of each entry that has the word; in lower case.
pub(crate) fn that_mention(word: &str) -> Vec<[String; 2]> {
    let texts = |entry: &Value| {
        let parts = ["name", "about", "variants", "about_variants", "features"].map(|part| entry[part].to_string());
        parts.concat().to_lowercase()
    };
    let row = |what: What, entry: &Value| {
        let text = |part: &str| entry[part].as_str().unwrap_or_default().to_string();
        [format!("pickfs list {} {}", what.word(), text("name")), text("about")]
    };
    let of = |what: &What| {
        let found = entries(*what).into_iter().filter(|entry| texts(entry).contains(word));
        found.map(|entry| row(*what, &entry)).collect::<Vec<_>>()
    };
    What::value_variants().iter().flat_map(of).collect()
}

/// How many of them have a wanted name.
fn list(what: What, named: &dyn Fn(&str) -> bool) -> usize {
    fn each<T>(all: impl Iterator<Item = T>, named: impl Fn(&T) -> bool, show: impl Fn(T)) -> usize {
        all.filter(named).map(show).count()
    }
    match what {
        What::Fs => each(fs::ALL.iter(), |fs| named(fs.name), |fs| filesystem(fs)),
        What::Features => each(FEATURES.iter(), |one| named(one.name), |one| wide_row(one.name, one.about)),
        What::Backings => {
            each(backing::ALL.iter(), |one| named(one.name), |one| plugin(one.name, one.about, one.settings, one.needs))
        }
        What::Layers => {
            each(layer::ALL.iter(), |one| named(one.name), |one| plugin(one.name, one.about, one.settings, one.needs))
        }
        What::Above => each(above::ALL.iter(), |one| named(one.name), |one| layer_above(one)),
        What::Workloads => each(workload::for_users(), |one| named(one.name()), one_workload),
        What::Profiles => each(builtin::ALL.iter(), |one| named(one.name), profile),
        What::Probes => each(probe::ALL.iter(), |one| named(one.name()), |one| row(one.name(), one.about())),
        What::Executors => each(
            executor::ALL.iter(),
            |one| named(one.name()),
            |one| plugin(one.name(), one.about(), one.settings(), &one.needs()),
        ),
        What::Disks => {
            each(pickfs_disks::ALL.iter(), |one| named(one.name), |one| wide_row(one.name, &one.disk().described()))
        }
        What::Formats => each(render::ALL.iter(), |one| named(one.name), format),
        What::Imports => each(import::ALL.iter(), |one| named(one.name()), |one| row(one.name(), one.about())),
        What::Traces => each(shipped::ALL.iter(), |one| named(one.name), |one| wide_row(one.name, one.about)),
    }
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
    let sizes = [("files", fs.limits.file), ("all of it", fs.limits.volume)];
    let known = sizes.iter().filter_map(|(what, bytes)| Some(format!("{what} {}", show_bytes((*bytes)? as f64))));
    let known: Vec<String> = known.collect();
    if !known.is_empty() {
        println!("      documented at most: {}", known.join(", "));
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
    let others =
        [(Kind::Comparison, "compare"), (Kind::Ranking, "choices"), (Kind::Machines, "choices --between machines")];
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
