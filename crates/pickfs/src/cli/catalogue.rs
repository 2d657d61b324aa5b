//! Every plug-in as data, for the plan's check.

use pickfs_core::plan::{Catalogue, Chosen, Entry, FilesystemEntry, Judged, Setting, Settings};
use pickfs_core::protocol::Check;
use pickfs_host::executor;
use pickfs_target::agent;
use pickfs_target::stack::fs::feature::FEATURES;
use pickfs_target::stack::{MACHINE, above, backing, fs, layer, zones};
use pickfs_target::workload;

pub fn catalogue() -> Catalogue {
    Catalogue {
        filesystems: fs::ALL.iter().map(|fs| filesystem(fs)).collect(),
        backings: backing::ALL.iter().map(|backing| backing_entry(backing)).collect(),
        workloads: workload::ALL.iter().map(|workload| workload_entry(*workload)).collect(),
        layers: layer::ALL.iter().map(|layer| layer_entry(layer)).collect(),
        above: above::ALL.iter().map(|layer| above_entry(layer)).collect(),
        cannot_lie: Some(above::objection),
        clash: Some(above::clash),
        executors: executor::ALL.iter().map(|executor| executor_entry(*executor)).collect(),
        simulators: executor::ALL.iter().filter(|e| e.simulates()).map(|executor| executor.name()).collect(),
        unfit: Some(|name, target| zones::objection(target, executor::find(executor::ALL, name)?.host_managed(target))),
        executor: None,
        features: FEATURES.iter().map(|feature| feature.name).collect(),
        tunables: [MACHINE].into_iter().chain(layer::ALL.iter().map(|layer| layer.tunables)).collect(),
    }
}

fn filesystem(fs: &fs::Filesystem) -> FilesystemEntry {
    let variants = fs.variants.iter().map(|variant| variant.name).collect();
    FilesystemEntry {
        name: fs.name,
        variants,
        minimum_size: fs.limits.least,
        takes_nodatacow: fs.making.in_place.is_some(),
        mkfs_options: fs.making.options,
        mount_options: fs.mounting.options,
        tunables: fs.tunables,
        devices: |name, variant, there| fs::objection_to_devices(fs::find(name)?, variant, there),
    }
}

fn layer_entry(layer: &layer::Layer) -> Entry {
    Entry {
        objections: |name, settings| layer::find(name).map(|layer| (layer.objections)(settings)).unwrap_or_default(),
        above: |name, settings, there| {
            layer::find(name).map_or(Ok(there), |layer| layer::above(layer, settings, there))
        },
        ..named(layer.name, layer.settings)
    }
}

fn above_entry(layer: &above::Above) -> Entry {
    Entry { objections: |_, settings| above::objections(settings), ..named(layer.name, layer.settings) }
}

fn backing_entry(backing: &backing::Backing) -> Entry {
    Entry {
        main_setting: backing.main_setting,
        makes_filesystem: backing.makes_filesystem,
        objections: |name, settings| agent::objections(&Check::Backing(chosen(name, settings))),
        ..named(backing.name, backing.settings)
    }
}

/// What has settings, and nothing else that a plan must know.
fn named(name: &'static str, settings: &'static [Setting]) -> Entry {
    Entry {
        name,
        about: Some(""),
        settings,
        main_setting: "",
        makes_filesystem: false,
        objections: |_, _| Vec::new(),
        above: |_, _, there| Ok(there),
        bytes: |_, _| None,
        phases: |_, _| Vec::new(),
        judged: |_, _| Judged::default(),
    }
}

fn executor_entry(executor: &dyn executor::Executor) -> Entry {
    let objections = |name: &str, settings: &Settings| {
        executor::find(executor::ALL, name).map(|executor| executor.objections(settings)).unwrap_or_default()
    };
    Entry { objections, ..named(executor.name(), executor.settings()) }
}

fn chosen(name: &str, settings: &Settings) -> Chosen {
    Chosen { name: name.into(), settings: settings.clone() }
}

fn workload_entry(workload: &dyn workload::Workload) -> Entry {
    Entry {
        about: workload::is_for_users(workload).then(|| workload.about()),
        main_setting: workload.main_setting(),
        objections: |name, settings| agent::objections(&Check::Workload(chosen(name, settings))),
        bytes: |name, settings| workload::find(name)?.bytes(settings),
        phases,
        judged: |name, settings| workload::find(name).map(|found| found.judged(settings)).unwrap_or_default(),
        ..named(workload.name(), workload.settings())
    }
}

fn phases(name: &str, settings: &Settings) -> Vec<String> {
    let phases = workload::find(name).map(|workload| workload.phases(settings)).unwrap_or_default();
    phases.into_iter().map(|phase| phase.name.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::WORK;
    use std::collections::BTreeSet;

    #[test]
    fn no_setting_of_a_workload_hides_a_key_of_the_plan() {
        for workload in workload::ALL {
            let hidden: Vec<_> = workload.settings().iter().filter(|s| WORK.has(s.name)).collect();
            assert!(hidden.is_empty(), "{}: {hidden:?}", workload.name());
        }
    }

    /// A name that no plug-in declares would read as absent, without a default and without a word.
    #[test]
    fn every_setting_that_is_read_by_name_is_declared() {
        let Catalogue { backings, layers, above, workloads, executors, .. } = catalogue();
        let entries = [backings, layers, above, workloads, executors].concat();
        let declared: BTreeSet<&str> = entries.iter().flat_map(|entry| entry.settings).map(|row| row.name).collect();
        let (mut reads, mut unknown) = (0, Vec::new());
        for file in walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).into_iter().flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            for read in code.split("settings.").skip(1) {
                let Some((_, name)) = read.split_once("(\"").filter(|(method, _)| GETTERS.contains(method)) else {
                    continue;
                };
                let name = name.split('"').next().unwrap_or_default();
                reads += 1;
                unknown.extend((!declared.contains(name)).then(|| format!("{}: {name}", file.path().display())));
            }
        }
        assert!(unknown.is_empty() && reads > 20, "{reads} reads, of these unknown: {unknown:#?}");
    }

    const GETTERS: [&str; 5] = ["flag", "number", "path", "text", "texts"];

    #[test]
    fn workloads_declare_what_they_are_judged_by() {
        use pickfs_core::metric::Combine::{GeometricMean, Largest, Sum};
        let judged = |name: &str| {
            let found = workload::find(name).unwrap().judged(&Settings::default());
            (found.combine, found.phases.join(" "), found.name)
        };
        for (name, combine, quantity, has, lacks) in [
            ("pgbench", GeometricMean, "1000 transactions", "clients-10 clients-100", "load"),
            ("bonnie", GeometricMean, "geometric mean of the phases", "write", "putc"),
            ("small-files", GeometricMean, "geometric mean of the phases", "fsync", "getc"),
            ("respond", Largest, "worst 99th percentile", "read-during-write", "read-during-idle"),
        ] {
            let (how, phases, named) = judged(name);
            assert_eq!((how, named.as_str()), (combine, quantity), "{name}");
            assert!(phases.contains(has) && !phases.contains(lacks), "{name}: {phases}");
        }
        assert_eq!(judged("io"), (GeometricMean, String::new(), "geometric mean of the phases".into()));
        assert_eq!(judged("tree"), (Sum, String::new(), String::new()));
        assert!(workload::find("tree").unwrap().judged(&Settings::default()).is_whole_job());
    }

    /// A plan may give counts by phase, and a phase before a slash.
    #[test]
    fn every_workload_names_its_phases() {
        use pickfs_core::plan::recipe::RECIPE;
        for entry in catalogue().workloads {
            let phases = (entry.phases)(entry.name, &Settings::default());
            assert_eq!(phases.is_empty(), entry.name == RECIPE, "{}: those of a recipe are in its text", entry.name);
            assert!(phases.iter().all(|phase| !phase.contains('/')), "{}", entry.name);
        }
    }
}
