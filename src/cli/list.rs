//! `pickfs list`: every plug-in, from the same lists that run them.

use super::{Outcome, Verb};
use crate::data::profile::builtin::{self, Builtin};
use crate::need::{self, Need};
use crate::plan::{Setting, Settings};
use crate::render::{self, Kind};
use crate::stack::fs::feature::FEATURES;
use crate::stack::{backing, fs, layer};
use crate::units::show_bytes;
use crate::{executor, import, probe, workload};
use clap::ValueEnum;

/// List what pickfs knows: file systems, backings, workloads, probes, executors, formats, imports
#[derive(clap::Args)]
pub struct Arguments {
    /// What to list
    #[arg(value_enum)]
    what: Option<What>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Fs,
    Features,
    Backings,
    Layers,
    Workloads,
    Profiles,
    Probes,
    Executors,
    Formats,
    Imports,
}

impl Verb for Arguments {
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let everything = What::value_variants();
        for what in everything.iter().filter(|what| self.what.is_none_or(|only| only == **what)) {
            if self.what.is_none() {
                println!("{}:", what.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default());
            }
            list(*what);
        }
        Ok(0)
    }
}

fn list(what: What) {
    match what {
        What::Fs => fs::ALL.iter().for_each(|fs| filesystem(fs)),
        What::Features => FEATURES.iter().for_each(|feature| wide_row(feature.name, feature.about)),
        What::Backings => backing::ALL.iter().for_each(|one| plugin(one.name, one.about, one.settings, one.needs)),
        What::Layers => layer::ALL.iter().for_each(|one| plugin(one.name, one.about, one.settings, one.needs)),
        What::Workloads => workload::for_users().for_each(one_workload),
        What::Profiles => builtin::ALL.iter().for_each(profile),
        What::Probes => probe::ALL.iter().for_each(|probe| row(probe.name(), probe.about())),
        What::Executors => {
            executor::ALL.iter().for_each(|one| plugin(one.name(), one.about(), one.settings(), &one.needs()))
        }
        What::Formats => render::ALL.iter().for_each(format),
        What::Imports => import::ALL.iter().for_each(|one| row(one.name(), one.about())),
    }
}

fn plugin(name: &str, about: &str, of_it: &[Setting], needs: &[Need]) {
    row(name, about);
    settings(of_it);
    wanting(needs);
}

fn filesystem(fs: &fs::Filesystem) {
    row(fs.name, fs.about);
    for variant in fs.variants {
        println!("      {:<10} {}", variant.name, variant.about);
    }
    println!("      has {}", fs.features.join(", "));
    if !fs.more_features.is_empty() {
        println!("      by option or version: {}", fs.more_features.join(", "));
    }
    let sizes = [("files", fs.largest_file), ("all of it", fs.largest_volume)];
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
    let others = [(Kind::Comparison, "compare"), (Kind::Ranking, "choices")];
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
