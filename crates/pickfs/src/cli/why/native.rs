//! A run of this machine, to be explained by its simulation: the same plan on the model of a disk
//! that is nearest to its own.

use crate::cli::Exit;
use anyhow::Result;
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use pickfs_core::plan::{
    Chosen, HostSettings, MOST_PROCESSORS, OtherProcessors, PROCESSORS, Plan, SIZE, Settings, Stop, Target,
};
use pickfs_host::executor::sim;
use pickfs_stats::paired_ratio;
use std::collections::BTreeMap;

/// Of what the run has noted of the disk below. A disk of a virtual machine may say that it turns
/// where it does not.
pub(super) fn nearest_model(plan: &Plan, folded: &Folded) -> &'static str {
    let backing = plan.targets.first().map_or("", |target| target.backing.name.as_str());
    let hardware = folded.hardware();
    let below = hardware.backing(backing).and_then(|backing| backing.disk_below.as_ref());
    if ["memory", "zram"].contains(&backing) {
        return "none";
    }
    let (device, rotates) = below.map_or(("", None), |disk| (disk.device.as_str(), disk.rotational));
    pickfs_disks::like(device, rotates == Some(true))
}

/// The plan as a simulation of one round, with as many processors as its machine had; these never
/// sleep.
pub(super) fn simulated(plan: &Plan, folded: &Folded, model: &str, kernel: Option<&str>) -> Result<Plan> {
    let mut machine = sim::usual(model);
    let processors = folded.host.get("cpus").and_then(|number| number.parse::<u64>().ok());
    machine.0.extend(processors.map(|number| (PROCESSORS.to_string(), number.clamp(1, MOST_PROCESSORS).into())));
    machine.0.extend(kernel.map(|release| ("kernel".to_string(), release.into())));
    let target = |target: &Target| {
        let size = target.backing.settings.0.get(SIZE).filter(|size| size.is_u64());
        let Some(size) = size.filter(|_| target.fs.is_some()) else {
            return Err(Exit::usage(format!(
                "{} has no size that could be simulated: run the plan with a backing `memory` or `image`",
                target.name
            )));
        };
        let settings = Settings(BTreeMap::from([(SIZE.to_string(), size.clone())]));
        let backing = Chosen { name: "memory".into(), settings };
        Ok(Target { backing, machine: machine.clone(), ..target.clone() })
    };
    let own = plan.targets.iter().filter(|target| !target.duplicate);
    Ok(Plan {
        executor: sim::NAME.into(),
        targets: own.map(target).collect::<Result<_>>()?,
        stop: Stop { rounds: Some(1), ..plan.stop },
        other_speeds: false,
        host: HostSettings { cpu_latency_us: None, ..plan.host },
        ..plan.clone()
    })
}

/// Cells of a target that were done.
fn done<'f>(folded: &'f Folded, work: &str, target: &str) -> impl Iterator<Item = &'f FoldedCell> {
    folded.cells.iter().filter(move |cell| {
        cell.target == target
            && cell.work == work
            && cell.outcome == Some(Outcome::Done)
            && folded.processors(cell) == OtherProcessors::NONE
    })
}

/// The mean times of a phase over all cells of a target that were done.
fn times<'f>(folded: &'f Folded, work: &str, target: &str) -> BTreeMap<&'f str, f64> {
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (phase, metric, value) in done(folded, work, target).flat_map(|cell| folded.samples(cell)) {
        if metric == "time_ns" {
            times.entry(phase).or_default().push(value);
        }
    }
    times.into_iter().map(|(phase, times)| (phase, times.iter().sum::<f64>() / times.len() as f64)).collect()
}

/// Of all phases; none where nothing was measured.
pub(super) fn all_time(folded: &Folded, work: &str, target: &str) -> Option<f64> {
    let times = times(folded, work, target);
    (!times.is_empty()).then(|| times.values().sum())
}

/// By how much a target took longer than the reference in these phases, of the reference's time.
pub(super) fn measured(folded: &Folded, work: &str, [target, reference]: [&str; 2], phases: &[&str]) -> Option<f64> {
    let time = |name: &str| {
        let times = times(folded, work, name);
        phases.iter().map(|phase| times.get(phase).copied()).sum::<Option<f64>>()
    };
    let (one, other) = (time(target)?, time(reference)?);
    (other > 0.0).then(|| one / other - 1.0)
}

/// Bounds of the same over the rounds, at 95 %, where they do not show the share of one of them;
/// none of too few rounds.
pub(super) fn noise(
    folded: &Folded,
    work: &str,
    names: [&str; 2],
    phases: &[&str],
    (share, threshold): (f64, f64),
) -> Option<[f64; 2]> {
    let time = |cell: &FoldedCell| {
        let of_phases = |(phase, metric, _): &(&str, &str, f64)| *metric == "time_ns" && phases.contains(phase);
        folded.samples(cell).filter(of_phases).map(|(.., ns)| ns).sum::<f64>()
    };
    let [target, reference] =
        names.map(|name| done(folded, work, name).map(|cell| (cell.round, time(cell))).collect::<BTreeMap<_, _>>());
    let ratio = |(round, time): (&u32, &f64)| Some((time / reference.get(round)?).ln());
    let logs: Vec<f64> = target.iter().filter_map(ratio).collect();
    let [low, high] = paired_ratio(&logs, 0.95)?.interval.map(|(low, high)| [low - 1.0, high - 1.0])?;
    let shows = if share > 0.0 { low > 0.0 && high >= threshold } else { high < 0.0 && low <= -threshold };
    (!shows).then_some([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::journal::{Begin, End, Record, Sample};
    use serde_json::json;

    fn target(name: &str, backing: &str, settings: serde_json::Value) -> Target {
        let settings = Settings(serde_json::from_value(settings).expect("settings"));
        let backing = Chosen { name: backing.into(), settings };
        Target { name: name.into(), fs: Some("ext4".into()), backing, ..Target::default() }
    }

    #[test]
    fn the_nearest_model_follows_from_what_the_run_noted() {
        for (backing, below, wanted) in [
            ("memory", "", "none"),
            ("image", "nvme0n1, scheduler none, rotational 0", "nvme"),
            ("image", "sda, scheduler mq-deadline, rotational 1", "hdd-7200"),
            ("image", "sda, rotational 0", "sata-ssd"),
        ] {
            let plan = Plan { targets: vec![target("a", backing, json!({}))], ..Plan::default() };
            let mut folded = Folded::default();
            folded.host.insert(format!("{backing} disk below"), below.into());
            assert_eq!(nearest_model(&plan, &folded), wanted, "{backing} {below}");
        }
    }

    #[test]
    fn a_plan_is_simulated_where_its_targets_have_a_size() {
        let copy = Target { duplicate: true, ..target("a", "image", json!({ "size": 7 })) };
        let targets = vec![target("a", "image", json!({ "size": 7, "dir": "/x" })), copy];
        let host = HostSettings { cpu_latency_us: Some(0), ..HostSettings::default() };
        let plan = Plan { targets, executor: "local".into(), host, ..Plan::default() };
        let mut folded = Folded::default();
        folded.host.insert("cpus".into(), "512".into());
        let found = simulated(&plan, &folded, "none", None).expect("a plan");
        let [one] = &found.targets[..] else { panic!("{found:?}") };
        assert_eq!((found.executor.as_str(), found.stop.rounds), ("sim", Some(1)));
        assert_eq!(found.host, HostSettings::default());
        assert_eq!((one.backing.name.as_str(), one.backing.settings.number(SIZE)), ("memory", Some(7)));
        assert_eq!((one.machine.text("disk"), one.machine.text("kernel")), (Some("none"), Some("bookworm")));
        assert_eq!(one.machine.number(PROCESSORS), Some(MOST_PROCESSORS));
        let plan = Plan { targets: vec![target("a", "device", json!({ "path": "/dev/x" }))], ..plan };
        let error = simulated(&plan, &folded, "none", None).expect_err("no size").to_string();
        assert!(error.contains("a has no size that could be simulated"), "{error}");
    }

    #[test]
    fn what_was_measured_is_the_mean_over_cells_that_were_done() {
        let mut folded = Folded::default();
        for (id, name, times, outcome) in [
            ("1", "btrfs", [20.0, 10.0], Outcome::Done),
            ("2", "btrfs", [40.0, 10.0], Outcome::Done),
            ("3", "ext4", [15.0, 5.0], Outcome::Done),
            ("4", "ext4", [99.0, 99.0], Outcome::Failed("it was full".into())),
        ] {
            take_cell(&mut folded, (id, name, 1), &[("write", times[0]), ("read", times[1])], outcome);
        }
        let of = |phases: &[&str]| measured(&folded, "tree", ["btrfs", "ext4"], phases);
        assert_eq!((of(&["write"]), of(&["write", "read"])), (Some(1.0), Some(1.0)));
        assert_eq!((all_time(&folded, "tree", "btrfs"), all_time(&folded, "tree", "xfs")), (Some(40.0), None));
        assert_eq!((of(&["remove"]), measured(&folded, "io", ["btrfs", "ext4"], &["write"])), (None, None));
    }

    #[test]
    fn what_rounds_do_not_show_is_noise() {
        let longer = vec![(110.0, 100.0), (109.0, 100.0), (111.0, 101.0), (110.0, 99.0)];
        let hardly = vec![(101.0, 100.0), (101.1, 100.0), (101.0, 100.1), (100.9, 100.0)];
        for (times, share, is_noise) in [
            (vec![(110.0, 100.0), (90.0, 100.0), (105.0, 100.0), (96.0, 100.0)], 0.1, true),
            (longer.clone(), 0.1, false),
            (longer, -0.1, true),
            (hardly, 0.05, true),
            // Too few for bounds.
            (vec![(110.0, 100.0), (90.0, 100.0)], 0.1, false),
        ] {
            let mut folded = Folded::default();
            for (round, (btrfs, ext4)) in (1..).zip(&times) {
                for (name, ns) in [("btrfs", btrfs), ("ext4", ext4)] {
                    take_cell(&mut folded, (&format!("{round}{name}"), name, round), &[("write", *ns)], Outcome::Done);
                }
            }
            let found = noise(&folded, "tree", ["btrfs", "ext4"], &["write"], (share, 0.03));
            assert_eq!(found.is_some(), is_noise, "{times:?}, {share}");
        }
    }

    fn take_cell(
        folded: &mut Folded,
        (id, target, round): (&str, &str, u32),
        phases: &[(&str, f64)],
        outcome: Outcome,
    ) {
        let (cell, at) = (id.to_string(), String::new());
        let (target, work) = (target.to_string(), "tree".to_string());
        folded.take(Record::Begin(Begin { cell: cell.clone(), round, target, work, at: at.clone() }));
        for (phase, value) in phases {
            let (cell, phase, metric) = (cell.clone(), phase.to_string(), "time_ns".to_string());
            folded.take(Record::Sample(Sample { cell, phase, metric, value: *value }));
        }
        folded.take(Record::End(End { cell, outcome, at }));
    }
}
