//! `pickfs disk`: the models of disks that simulations use, and a model of a disk that is here.

mod profile;

use super::{Exit, Outcome, Verb, did_you_mean};
use anyhow::{Context, Result};
use pickfs_core::plan::nearest;
use pickfs_disks::{Disk, ModelSpeeds};
use pickfs_host::executor::sim;
use pickfs_system::units::{show_bytes, show_duration};
use std::path::{Path, PathBuf};

/// Show a model of a disk, or measure a disk and make a model of it
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Subcommand,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// Show a model's parameters with their sources, and the speeds that it gives
    #[command(
        after_help = "Examples:\n  pickfs disk show hdd-7200    a model that `pickfs list disks` names\n  pickfs disk show my.toml     your own model"
    )]
    Show {
        /// A name that `pickfs list disks` prints, or a TOML file
        #[arg(value_name = "NAME|FILE")]
        name: String,
    },
    /// Write the source of the simulated disk's driver, to compile it for your own kernel
    #[command(
        after_help = "Examples:\n  pickfs disk driver driver && make -C linux M=$PWD/driver modules    driver/simdisk.ko"
    )]
    Driver {
        /// A folder; it is made if there is none
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Measure a disk and write a model of it, for `--sim`
    #[command(after_help = profile::EXAMPLES)]
    Profile(profile::Arguments),
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs list disks", "the models that come with pickfs"],
        ["pickfs disk show hdd-7200", "one of them, with its sources and speeds"],
        ["sudo pickfs disk profile /dev/sdb", "measure a disk by reading it, two minutes: sdb.toml"],
    ];
    fn run(&self) -> Outcome {
        let name = match &self.what {
            Subcommand::Show { name } => name,
            Subcommand::Driver { folder } => return write_driver(folder),
            Subcommand::Profile(arguments) => return arguments.run(),
        };
        let disk = named(name)?;
        println!("{name}: {}\n", disk.described());
        if disk.sketch {
            println!("A sketch is made from what was published of its kind, and was compared with no real disk.\n");
        }
        parameters(&disk)?.iter().for_each(|line| println!("{line}"));
        println!("\nOn a virtual clock, without an operating system, this gives:\n");
        figures(&pickfs_disks::speeds_of(&disk)?).iter().for_each(|(what, value)| println!("  {what:<42} {value}"));
        Ok(0)
    }
}

fn write_driver(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in sim::driver_sources() {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    println!("{}: compile it with `make -C KERNEL M=... modules`", folder.display());
    Ok(0)
}

fn named(name: &str) -> Result<Disk> {
    if let Some(disk) = pickfs_disks::find(name) {
        return Ok(disk);
    }
    if !Path::new(name).is_file() {
        let shown = name.escape_debug();
        let near = did_you_mean("", nearest(name, pickfs_disks::ALL.iter().map(|entry| entry.name)));
        return Err(Exit::usage(format!(
            "there is no model of a disk and no file `{shown}`; {near}`pickfs list disks` shows the models"
        )));
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
    Disk::parse(&text).map_err(|error| Exit::usage(format!("{name}: {error:#}")))
}

fn parameters(disk: &Disk) -> Result<Vec<String>> {
    let row = |name: &String| {
        let sourced = disk.sourced(name)?;
        let value = match &sourced.is {
            toml::Value::String(word) => word.clone(),
            // A distribution, by its ends.
            toml::Value::Array(pairs) => match (&pairs[..], |pair: &toml::Value| pair[1].to_string()) {
                ([first, .., last], of) => format!("{} to {}", of(first), of(last)),
                _ => sourced.is.to_string(),
            },
            number => number.to_string(),
        };
        Ok(format!("  {name:<22} {value:>12}  {}", sourced.source))
    };
    disk.parameters.keys().map(row).collect()
}

/// What was measured, and its value with a unit.
fn figures(speeds: &ModelSpeeds) -> Vec<(String, String)> {
    let rate = |bytes: f64| format!("{}/s", show_bytes(bytes));
    let mut rows = Vec::new();
    let mut row = |what: &str, value: String| rows.push((what.to_string(), value));
    for (place, bytes) in ["beginning", "middle", "end"].iter().zip(speeds.sequential_reads) {
        row(&format!("sequential read, 1 MiB, at the {place}"), rate(bytes));
    }
    row("sequential write, 1 MiB, queue depth 8", rate(speeds.sequential_writes));
    let looped = |found: pickfs_disks::Loop| {
        let (mean, p99) = (show_duration(found.mean_ns), show_duration(found.p99_ns));
        format!("{:.0} IOPS, {mean} on average, 99th percentile {p99}", found.requests_a_second)
    };
    row("random read, 4 KiB, queue depth 1", looped(speeds.random_reads[0]));
    row("random read, 4 KiB, queue depth 32", looped(speeds.random_reads[1]));
    row("random write, 4 KiB, queue depth 1, cached", looped(speeds.random_write));
    for (writes, ns) in speeds.flushes {
        row(&format!("flush after {writes} random writes of 4 KiB"), show_duration(ns));
    }
    for used in &speeds.used {
        let (full, amplification) = (used.filled * 100.0, used.write_amplification);
        let value = format!("{:.0} IOPS, write amplification {amplification:.2}", used.requests_a_second);
        row(&format!("random write for long, used, {full:.0} % full"), value);
    }
    speeds.average_seek_ns.iter().for_each(|ns| row("average seek", show_duration(*ns)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disk_can_be_shown() {
        for entry in pickfs_disks::ALL {
            let disk = named(entry.name).expect(entry.name);
            assert_eq!(parameters(&disk).expect(entry.name).len(), disk.parameters.len());
            let rows = figures(&pickfs_disks::speeds_of(&disk).expect(entry.name));
            assert!(rows.len() >= 11 && rows.iter().all(|(_, value)| !value.contains("NaN")), "{rows:?}");
        }
        assert!(named("floppy").unwrap_err().to_string().contains("`pickfs list disks`"));
    }
}
