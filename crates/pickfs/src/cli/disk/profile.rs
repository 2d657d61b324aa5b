//! `pickfs disk profile`: a disk that is here becomes a model.

#![expect(clippy::disallowed_methods, reason = "dates models")]

use crate::cli::confirm;
use crate::cli::{Exit, Outcome, REFUSED};
use anyhow::{Context, Result};
use pickfs_core::journal::typed;
use pickfs_disks::profile::{About, Drive, FittedModel, RealDrive, Round, Wish, fitted, measure, pooled};
use pickfs_disks::{Disk, Kind, ModelSpeeds};
use pickfs_system::sys::devices::{content, device_number, queue_file, resolved, whole_disk};
use pickfs_system::units::{show_bytes, show_duration};
use pickfs_target::probe::device::{Counters, counters};
use std::io::Write;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "Examples:\n  sudo pickfs disk profile /dev/sdb\n  pickfs run --sim sdb.toml --fs ext4,xfs\n\nWithout --scratch the disk is only read, and what needs writing (flush, write cache, program times) is taken from the model\nof its kind. Blocks of flash that were never written answer sooner than data do: --scratch writes them first.";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A block device; best one that nothing else uses meanwhile
    #[arg(value_name = "DEVICE")]
    device: PathBuf,

    /// The model's file; the device's name with .toml unless given
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write to the disk too: everything on it is lost
    #[arg(long)]
    scratch: bool,

    /// Agree to losing everything on the device with this serial number
    #[arg(long, value_name = "SERIAL", requires = "scratch")]
    erase: Vec<String>,

    /// What the disk is, where the system does not know it: disks of virtual machines often report
    /// that they rotate
    #[arg(long, value_name = "hard-disk|flash")]
    kind: Option<GivenKind>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum GivenKind {
    HardDisk,
    Flash,
}

impl Arguments {
    pub(crate) fn run(&self) -> Outcome {
        let number = device_number(&resolved(&self.device))
            .ok_or_else(|| Exit::usage(format!("{} is no block device; `lsblk` lists them", self.device.display())))?;
        let name =
            resolved(&self.device).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let output = self.output.clone().unwrap_or_else(|| format!("{name}.toml").into());
        if output.exists() {
            return Err(Exit::usage(format!("{} is there already; give another name with --output", output.display())));
        }
        if self.scratch && !confirm::scratch(&self.device, &self.erase)? {
            return Ok(REFUSED);
        }
        let mut drive = RealDrive::open(&self.device, self.scratch)?;
        let wish = Wish { kind: self.kind_of(number), depth: depth_of(number), scratch: self.scratch };
        let before = counters(number);
        let rounds = measure(&mut drive, wish, &mut |what| eprintln!("{}: {what}", self.device.display()))?;
        let others = before.zip(counters(number)).and_then(|(before, after)| foreign(before, after, drive.sent()));
        // A device of a virtual machine may be called as no disk of its kind is.
        let base_name = if wish.kind == Kind::HardDisk { "hdd-7200" } else { pickfs_disks::like(&name, false) };
        let base = pickfs_disks::find(base_name).context("a model that comes with pickfs")?;
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        let about = About { name: &product(number, &name), date: &date, sectors: drive.sectors(), depth: wish.depth };
        let fitted = fitted(&rounds, &base, base_name, &about)?;
        let mut file =
            std::fs::File::create_new(&output).with_context(|| format!("cannot write {}", output.display()))?;
        file.write_all(fitted.toml.as_bytes()).with_context(|| format!("cannot write {}", output.display()))?;
        print(&about, &rounds, &fitted)?;
        if let Some(others) = others {
            println!("\nOther programs sent {others} requests to the disk meanwhile: measure again when it is quiet.");
        }
        println!(
            "\n{} of {} parameters were measured; the others are those of {base_name}.",
            fitted.measured.len(),
            fitted.disk.parameters.len()
        );
        println!("Written to {}. To use it: pickfs run --sim {} --fs ext4,xfs,btrfs", output.display(), typed(&output));
        Ok(0)
    }

    fn kind_of(&self, number: (u32, u32)) -> Kind {
        match self.kind {
            Some(GivenKind::HardDisk) => Kind::HardDisk,
            Some(GivenKind::Flash) => Kind::Flash,
            None if queue(number, "rotational").as_deref() == Some("1") => Kind::HardDisk,
            None => Kind::Flash,
        }
    }
}

fn queue(number: (u32, u32), name: &str) -> Option<String> {
    content(queue_file(number, name)?)
}

/// As many commands as the disk takes at a time, as far as the model can follow.
fn depth_of(number: (u32, u32)) -> usize {
    let own = whole_disk(number).and_then(|disk| content(disk.join("device/queue_depth")));
    let depth = own.or_else(|| queue(number, "nr_requests")).and_then(|depth| depth.parse().ok());
    depth.unwrap_or(32).clamp(1, 128)
}

/// Maker and product, where the disk says them.
fn product(number: (u32, u32), name: &str) -> String {
    let part = |part: &str| whole_disk(number).and_then(|disk| content(disk.join("device").join(part)));
    let words: Vec<String> =
        ["vendor", "model"].iter().filter_map(|name| part(name)).filter(|word| !word.starts_with("0x")).collect();
    if words.is_empty() { name.to_string() } else { words.join(" ") }
}

/// Requests that were not ours. The kernel counts large requests in pieces, so only an excess of
/// small ones shows.
fn foreign(before: Counters, after: Counters, ours: u64) -> Option<u64> {
    let all = after.read_requests + after.write_requests - before.read_requests - before.write_requests;
    let others = all.saturating_sub(ours);
    (others > ours / 10).then_some(others)
}

fn print(about: &About, rounds: &[Round], fitted: &FittedModel) -> Result<()> {
    println!("{}, {}\n", about.name, show_bytes(about.sectors as f64 * 512.0));
    println!("  {:<38} {:>12}  {:<26} {:>12} {:>8}", "", "measured", "of 5 rounds", "the model", "off by");
    for row in compared(rounds, &fitted.disk)? {
        let show = |value: f64| (row.show)(value);
        let range = format!("{} to {}", show(row.range.0), show(row.range.1));
        let off = 100.0 * (row.model / row.measured - 1.0);
        println!("  {:<38} {:>12}  {range:<26} {:>12} {off:>+6.1} %", row.what, show(row.measured), show(row.model));
    }
    Ok(())
}

/// What was measured against what the fitted model gives.
struct Compared {
    what: String,
    measured: f64,
    range: (f64, f64),
    model: f64,
    show: fn(f64) -> String,
}

fn compared(rounds: &[Round], disk: &Disk) -> Result<Vec<Compared>> {
    let speeds: ModelSpeeds = pickfs_disks::speeds_of(disk)?;
    let rate: fn(f64) -> String = |bytes| format!("{}/s", show_bytes(bytes));
    let time: fn(f64) -> String = show_duration;
    let iops: fn(f64) -> String = |each| format!("{each:.0} IOPS");
    let mut rows = Vec::new();
    let all = pooled(rounds);
    let mut row = |what: &str, of: &dyn Fn(&Round) -> Option<f64>, model: f64, show: fn(f64) -> String| {
        let values = rounds.iter().filter_map(of);
        let range = values.fold((f64::INFINITY, 0.0_f64), |range, value| (range.0.min(value), range.1.max(value)));
        if let Some(measured) = of(&all) {
            rows.push(Compared { what: what.to_string(), measured, range, model, show });
        }
    };
    row(
        "sequential read at the beginning",
        &|round| Some(round.sequential.first()?.1),
        speeds.sequential_reads[0],
        rate,
    );
    row("sequential read at the end", &|round| Some(round.sequential.last()?.1), speeds.sequential_reads[2], rate);
    for (model, depth) in speeds.random_reads.iter().zip([1, 32]) {
        let of =
            |round: &Round| round.random.iter().find(|(of, _)| *of == depth).map(|(_, found)| found.requests_a_second);
        row(&format!("random read, 4 KiB, {depth} at a time"), &of, model.requests_a_second, iops);
    }
    row(
        "random write, 4 KiB, cached",
        &|round| Some(round.writes.as_ref()?.random?.mean_ns),
        speeds.random_write.mean_ns,
        time,
    );
    for (unsaved, model) in speeds.flushes {
        let of = |round: &Round| {
            let times = round.writes.as_ref()?.flushes_after(unsaved as usize)?;
            Some(times.iter().sum::<f64>() / times.len() as f64)
        };
        row(&format!("flush after {unsaved} random writes"), &of, model, time);
    }
    Ok(rows)
}
