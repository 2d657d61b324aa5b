//! Boots another machine from the file system under test and measures how long that took: what a
//! workload asks of the stage that nothing on this machine can time.

use super::account::Spent;
use super::cell_stage::Stage;
use super::phase::{CacheState, Phase};
use super::settle::quiet_after;
use super::timed::Doubt;
use crate::stack::backing::{self, Elsewhere};
use crate::stack::fs;
use crate::stack::layer::{self, Opening};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::{Target, disks};
use pickfs_core::protocol::{Boot, Booted, OpenLayer};
use pickfs_system::process::check_stop;
use pickfs_system::sys::block;
use std::path::Path;
use std::time::Duration;

/// Where the booted machine mounts the file system first, among its guest's programs: they can be
/// written to nowhere else than in the kernel's own file systems.
const MOUNT_POINT: &str = "/dev/pickfs";
const OPEN_LAYERS_NS: &str = "open_layers_ns";
/// The share of what the booted machine read that must have come from the host's disk.
const FROM_DISK: f64 = 0.9;

impl Stage<'_, '_> {
    /// A phase that is the boot of another machine from the folder that the work owns, until its
    /// systemd has reached the unit `ready`. Judged by the booted kernel's own clock, from its
    /// start.
    pub(crate) fn boot(&mut self, phase: &str, ready: &str) -> Result<()> {
        let phase = self.declared(phase)?;
        ensure!(phase.only_reads() && phase.starts == CacheState::Cold, "phase {} is no boot", phase.name);
        let booted = self.boot_aside(ready)?;
        self.tell_samples(&phase.name, samples(&booted, !self.stack.target.layers.is_empty()));
        for (flag, why) in doubts(&booted, self.least_read()) {
            self.flag(&phase.name, flag, why);
        }
        self.settle_after(&phase)
    }

    /// The same, but without a report.
    pub(crate) fn boot_aside(&mut self, ready: &str) -> Result<Booted> {
        check_stop()?;
        self.put_down()?;
        let wanted = self.wanted(ready)?;
        let booted = self.spend(Spent::Phases, |stage| stage.link.boot(wanted));
        // Mounted again after a failure, too: teardown counts on it.
        let taken_up = self.take_up();
        let booted = booted.context("a machine was booted from the target, and it failed")?;
        taken_up?;
        self.deadline.check().map(|()| booted)
    }

    fn wanted(&self, ready: &str) -> Result<Boot> {
        let mut spec = self.stack.spec();
        spec.mount_point = Path::new(MOUNT_POINT);
        let driver = self.stack.driver.expect("objections() wants a file system");
        let folder = self.stack.root.strip_prefix(&self.stack.mount_point).unwrap_or(Path::new(""));
        let modules = layer::modules(&self.stack.target.layers);
        let layers: Result<Vec<Vec<OpenLayer>>> = self.stack.layers.openings.iter().map(open_layers).collect();
        Ok(Boot {
            modules: modules.into_iter().chain([format!("fs-{}", driver.kernel_type())]).collect(),
            layers: layers?.concat(),
            mount: driver.mount(&spec),
            mount_point: MOUNT_POINT.into(),
            folder: folder.display().to_string(),
            ready: ready.into(),
            limit_ns: self.deadline.left().as_nanos().min(u128::from(u64::MAX)) as u64,
        })
    }

    /// All that was written is on the disk, and nothing of the disk is in our memory.
    pub(super) fn put_down(&mut self) -> Result<()> {
        self.spend(Spent::Settling, |stage| {
            stage.stack.make_durable(stage.runner)?;
            stage.take_off()?;
            stage.forget_device()?;
            stage.stillness.settle(quiet_after(Duration::ZERO))
        })?;
        self.deadline.check()
    }

    /// What the other machine has written is not what we remember.
    fn take_up(&mut self) -> Result<()> {
        self.mount_again().context("what was booted is not mounted again").map(drop)
    }

    pub(super) fn forget_device(&self) -> Result<()> {
        ensure!(self.stack.device.is_some(), "a directory has no disk");
        // Below layers the disks have their own buffers.
        for device in self.stack.all_devices() {
            block::flush_buffers(device)
                .with_context(|| format!("cannot flush the buffers of {}", device.display()))?;
        }
        Ok(())
    }

    fn settle_after(&mut self, phase: &Phase) -> Result<()> {
        let quiet = quiet_after(Duration::ZERO);
        let settled = self.spend(Spent::Settling, |stage| stage.stillness.settle(quiet))?;
        self.flag_unsettled(phase, settled.unsettled, "after the phase");
        Ok(())
    }

    /// Bytes of the init alone, which every boot reads; a file system may have compressed it.
    fn least_read(&self) -> f64 {
        let init = ["lib/systemd/systemd", "usr/lib/systemd/systemd"];
        let size = |path: &&str| self.stack.root.join(path).metadata().ok();
        init.iter().find_map(size).map_or(0.0, |found| found.len() as f64) * self.expected.stored_share().unwrap_or(0.0)
    }
}

fn open_layers(opening: &Opening) -> Result<Vec<OpenLayer>> {
    let key = opening.key.as_ref().map(|path| std::fs::read(path).context("cannot read the key of a layer"));
    let key = key.transpose()?.unwrap_or_default();
    Ok(opening.programs.iter().map(|words| OpenLayer { words: words.clone(), key: key.clone() }).collect())
}

fn samples(booted: &Booted, has_layers: bool) -> Vec<(String, f64)> {
    let parts = [
        ("time_ns", booted.ready_ns),
        ("kernel_ns", booted.kernel_ns),
        ("load_modules_ns", booted.modules_ns.saturating_sub(booted.kernel_ns)),
        (OPEN_LAYERS_NS, booted.opened_ns.saturating_sub(booted.modules_ns)),
        ("mount_ns", booted.mounted_ns.saturating_sub(booted.opened_ns)),
        ("user_space_ns", booted.ready_ns.saturating_sub(booted.init_ns)),
        ("host_clock_ns", booted.host_ns),
        ("device_read_bytes", booted.read_bytes),
        ("device_write_bytes", booted.write_bytes),
    ];
    let parts = parts.into_iter().filter(|(metric, _)| has_layers || *metric != OPEN_LAYERS_NS);
    parts.map(|(metric, value)| (metric.to_string(), value as f64)).collect()
}

/// Flags with their reasons. A machine that was just started has nothing in its memory; the host
/// may have.
fn doubts(booted: &Booted, least: f64) -> Vec<Doubt> {
    let mut found = Vec::new();
    let read = booted.read_bytes as f64;
    if booted.cached_bytes > 0 {
        let why = format!("the host still had {} bytes of the disk in its cache", booted.cached_bytes);
        found.push((FlagKind::NotCold, why));
    } else if read < least {
        let why = format!("the drive gave {read:.0} bytes, and the system's init alone has {least:.0}");
        found.push((FlagKind::NotCold, why));
    } else if let Some(bytes) = booted.host_read_bytes.filter(|bytes| (*bytes as f64) < FROM_DISK * read) {
        let why = format!("of the {read:.0} bytes that the machine read only {bytes} came from the host's disk");
        found.push((FlagKind::NotCold, why));
    }
    if !booted.failed.is_empty() {
        let why = format!("units of the system failed: {}", booted.failed.join(", "));
        found.push((FlagKind::Degraded, why));
    }
    found
}

/// Every reason why no machine can be booted from a target, with what to do.
pub fn objections(target: &Target, can_boot: bool) -> Vec<String> {
    let driver = target.fs.as_deref().and_then(fs::find);
    let settings = &target.backing.settings;
    let backing = backing::find(&target.backing.name);
    let is_made_there = backing.is_some_and(|backing| matches!(backing.elsewhere, Elsewhere::MadeThere));
    let disks = disks(settings);
    let opens = |name: &str| layer::find(name).is_none_or(|layer| layer.opens.is_some());
    let layers = target.layers.iter().map(|layer| layer.name.as_str());
    let unopened: Vec<&str> = layers.filter(|name| !opens(name)).collect();
    let rows = [
        (!can_boot, "this machine cannot be booted from a target: use executor = \"vm\"".to_string()),
        (driver.is_none(), "a directory cannot be booted: name a file system".into()),
        (
            driver.is_some_and(|driver| driver.volatile),
            format!("{} is empty once it is unmounted: take another file system", target.name),
        ),
        (
            driver.is_some_and(|driver| driver.making.mounts),
            format!("{} is not brought up by `mount` alone: take another file system", target.name),
        ),
        (
            !target.layers_above().is_empty(),
            "a root is mounted without layers above it: leave out `above` and `overlay`".into(),
        ),
        (!unopened.is_empty(), format!("no boot opens {}: leave it out of `layers`", unopened.join(" and "))),
        (
            can_boot && is_made_there,
            "the guest's memory is gone where another machine boots: use backing image or device".into(),
        ),
        (disks > 1, format!("a root is mounted from one disk, and there are {disks}: leave out `disks`")),
    ];
    rows.into_iter().filter(|(stands, _)| *stands).map(|(_, why)| why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Chosen;

    #[test]
    fn every_reason_against_a_root_is_told() {
        let chosen = |name: &str| Chosen { name: name.into(), ..Chosen::default() };
        let target = |fs: Option<&str>, backing: &str, layers: &[&str]| Target {
            name: "t".into(),
            fs: fs.map(String::from),
            backing: chosen(backing),
            layers: layers.iter().map(|name| chosen(name)).collect(),
            ..Target::default()
        };
        let rows = [
            (target(Some("ext4"), "device", &[]), true, vec![]),
            (target(Some("ext4"), "image", &[]), false, vec!["use executor"]),
            (target(None, "directory", &[]), false, vec!["use executor", "name a file system"]),
            (target(Some("zfs"), "device", &[]), true, vec!["another file system"]),
            (target(Some("tmpfs"), "image", &[]), true, vec!["is empty once"]),
            (target(Some("xfs"), "memory", &["md", "luks"]), true, vec!["no boot opens md", "backing image or device"]),
            (target(Some("xfs"), "device", &["lvm", "luks"]), true, vec![]),
        ];
        for (target, can_boot, wanted) in rows {
            let found = objections(&target, can_boot);
            assert_eq!(found.len(), wanted.len(), "{found:?}");
            assert!(found.iter().zip(&wanted).all(|(found, wanted)| found.contains(wanted)), "{found:?} {wanted:?}");
        }
        let mut two = target(Some("btrfs"), "device", &[]);
        two.backing.settings.0.insert(backing::MORE_DEVICES.into(), serde_json::json!(["/dev/b"]));
        assert_eq!(objections(&two, true).len(), 1);
    }

    #[test]
    fn a_boot_is_doubted_for_each_cause() {
        let fine = Booted { read_bytes: 1000, host_read_bytes: Some(1000), ..Booted::default() };
        let rows = [
            (fine.clone(), vec![]),
            (Booted { host_read_bytes: None, ..fine.clone() }, vec![]),
            (Booted { host_read_bytes: Some(899), ..fine.clone() }, vec![FlagKind::NotCold]),
            (Booted { read_bytes: 99, ..fine.clone() }, vec![FlagKind::NotCold]),
            (Booted { cached_bytes: 1, read_bytes: 0, ..fine.clone() }, vec![FlagKind::NotCold]),
            (Booted { failed: vec!["a.service".into()], ..fine }, vec![FlagKind::Degraded]),
        ];
        for (booted, wanted) in rows {
            let found: Vec<_> = doubts(&booted, 100.0).into_iter().map(|(flag, _)| flag).collect();
            assert_eq!(found, wanted, "{booted:?}");
        }
    }

    #[test]
    fn the_parts_of_a_boot_lie_between_its_moments() {
        let booted = Booted {
            kernel_ns: 10,
            modules_ns: 15,
            opened_ns: 18,
            mounted_ns: 22,
            init_ns: 30,
            ready_ns: 130,
            host_ns: 200,
            ..Booted::default()
        };
        let samples_of_all = samples(&booted, true);
        let value = |metric: &str| samples_of_all.iter().find(|(name, _)| name == metric).map(|(_, value)| *value);
        let metrics = ["time_ns", "kernel_ns", "load_modules_ns", "open_layers_ns", "mount_ns", "user_space_ns"];
        assert_eq!(metrics.map(|metric| value(metric).unwrap()), [130.0, 10.0, 5.0, 3.0, 4.0, 100.0]);
        assert!(samples(&booted, false).iter().all(|(name, _)| name != OPEN_LAYERS_NS));
    }
}
