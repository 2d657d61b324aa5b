//! Models on their virtual clock, measured as disks are: their parameters must be found again.

use super::super::parameters::{Disk, at};
use super::super::virtual_clock::{Clock, speeds_of};
use super::*;
use crate::models::find;
use pickfs_system::sys::disk_model::DiskModel;

struct Modelled {
    clock: Clock,
    sectors: u64,
    random: Random,
}

impl Modelled {
    fn new(disk: &Disk) -> Modelled {
        let words = disk.words(0, 0).expect("words");
        let clock = Clock::new(DiskModel::start(&words).expect("a model"));
        Modelled { clock, sectors: words[at("SECTORS")], random: Random(9) }
    }
}

impl Drive for Modelled {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn answer(&mut self, depth: usize, requests: &[Asked]) -> Result<RequestTimes> {
        // A program takes its time between its requests.
        self.clock.now += self.random.below(1 << 14);
        let mut next = requests.iter();
        Ok(self.clock.closed(depth, requests.len(), || *next.next().expect("one for each")))
    }
}

/// Measured as one of its kind, with the parameters of `base` where they cannot be seen.
fn profiled(disk: &Disk, base: &str, scratch: bool) -> FittedModel {
    let depth = disk.number("depth").expect("a depth") as usize;
    let mut drive = Modelled::new(disk);
    let rounds = measure(&mut drive, Wish { kind: disk.kind, depth, scratch }, &mut |_| ()).expect("rounds");
    let about = About { name: "a \"model\"", date: "2026-11-22", sectors: drive.sectors, depth };
    fitted(&rounds, &find(base).expect("a base"), base, &about).expect("a model")
}

#[track_caller]
fn near(what: &str, found: f64, is: f64, share: f64) {
    assert!((found / is - 1.0).abs() <= share, "{what}: {found}, not {is}");
}

/// Speeds that both give; none needs a parameter that was not measured.
#[track_caller]
fn gives_the_same(found: &Disk, of: &Disk, share: f64) {
    let (found, of) = (speeds_of(found).expect("speeds"), speeds_of(of).expect("speeds"));
    for place in 0..3 {
        near(&format!("sequential reads {place}"), found.sequential_reads[place], of.sequential_reads[place], share);
    }
    for (depth, (found, of)) in found.random_reads.iter().zip(of.random_reads).enumerate() {
        near(&format!("random reads {depth}"), found.requests_a_second, of.requests_a_second, share);
    }
}

#[test]
fn a_hard_disk_is_found_again() {
    let disk = find("hdd-7200").expect("it");
    // Started from another disk: what is found is measured.
    let mut other = disk.clone();
    for (name, value) in
        [("turn_us", 10000.0), ("outer_sectors", 2000.0), ("inner_sectors", 1500.0), ("command_us", 90.0)]
    {
        other = other.with(name, value).expect(name);
    }
    for (name, value) in [("seek_short_us", 1000.0), ("seek_root_us", 14500.0), ("seek_line_us", 8000.0)] {
        other = other.with(name, value).expect(name);
    }
    let line = 1000.0 + 14500.0 * 0.333_f64.sqrt() - 11272.0 * 0.333;
    let other = other.with("seek_line_us", line).expect("a line");
    for planted in [&disk, &other] {
        let found = profiled(planted, "hdd-7200", false);
        let value = |disk: &Disk, name: &str| disk.number(name).expect(name);
        for (name, share) in [("turn_us", 0.001), ("outer_sectors", 0.03), ("inner_sectors", 0.03), ("command_us", 0.1)]
        {
            near(name, value(&found.disk, name), value(planted, name), share);
        }
        let models =
            [&found.disk, planted].map(|disk| DiskModel::start(&disk.words(0, 0).expect("words")).expect("it"));
        for cylinders in [100, 1000, 10_000, 40_000, 400_000] {
            let [found, planted] = [0, 1].map(|at: usize| models[at].seek_ns(cylinders) as f64);
            assert!((found - planted).abs() < 4e5, "{cylinders} cylinders: {found}, not {planted}");
        }
        gives_the_same(&found.disk, planted, 0.05);
        assert!(found.assumed.contains(&"heads".to_string()) && !found.measured.contains(&"write_cache"));
    }
}

#[test]
fn a_hard_disk_that_may_be_written_to_shows_its_cache() {
    for (cache, flush) in [(1.0, 100.0), (0.0, 40.0)] {
        let disk = find("hdd-7200").expect("it").with("write_cache", cache).expect("a disk");
        let disk = disk.with("flush_us", flush).expect("a disk");
        let found = profiled(&disk.with("capacity_gb", 1.0).expect("a small one"), "hdd-7200", true);
        assert_eq!(found.disk.number("write_cache").expect("it"), cache);
        near("flush", found.disk.number("flush_us").expect("it"), flush, 0.05);
    }
}

#[test]
fn flash_is_found_again() {
    for (name, base) in [("nvme", "sata-ssd"), ("sata-ssd", "nvme"), ("nvme", "nvme")] {
        let disk = find(name).expect(name);
        let found = profiled(&disk, base, false);
        gives_the_same(&found.disk, &disk, 0.05);
        assert!(found.toml.contains("measured on 2026-11-22"), "{}", found.toml);
        assert!(found.toml.contains(&format!("not measured, as in {base}: ")));
    }
}

#[test]
fn flash_that_may_be_written_to_shows_its_capacitors_and_its_fast_part() {
    let nvme = find("nvme").expect("it");
    for (protected, slc) in [(0.0, 10.0), (1.0, 20.0)] {
        let disk = nvme.with("power_loss_protection", protected).expect("a disk");
        let disk = disk.with("slc_gib", slc).expect("a disk").with("flush_us", 250.0).expect("a disk");
        let found = profiled(&disk, "nvme", true).disk;
        let value = |name: &str| found.number(name).expect(name);
        assert_eq!(value("power_loss_protection"), protected);
        near("fast part", value("slc_gib"), slc, 0.1);
        near("program", value("program_us"), 800.0, 0.15);
        near("flush", value("flush_us"), 250.0, 0.1);
    }
}

#[test]
fn a_tiny_disk_is_refused() {
    let disk = find("nvme").expect("it").with("capacity_gb", 0.01).expect("a disk");
    let wish = Wish { kind: Kind::Flash, depth: 32, scratch: false };
    let said = measure(&mut Modelled::new(&disk), wish, &mut |_| ()).expect_err("too small");
    assert!(said.to_string().contains("64 MiB"), "{said}");
}

/// Two modes and a tail, of which one number would be wrong for nearly all flushes.
#[test]
fn flushes_with_two_modes_are_found_again() {
    let share = |pairs: &[[f64; 2]], percent: f64| {
        let above = pairs.iter().position(|pair| pair[0] >= percent).expect("it rises to 100");
        let ends = [pairs[above.saturating_sub(1)], pairs[above]];
        let part = (percent - ends[0][0]) / (ends[1][0] - ends[0][0]).max(1e-9);
        ends[0][1] + (ends[1][1] - ends[0][1]) * part
    };
    for base in ["sata-ssd", "nvme"] {
        let planted = [[0.0, 300.0], [35.0, 330.0], [35.01, 1300.0], [98.0, 1400.0], [100.0, 9000.0]];
        let disk = find(base).expect("it").with_pairs("flush_us", &planted).expect("a distribution");
        let found = profiled(&disk, base, true);
        assert_eq!(found.disk.number("power_loss_protection").expect("it"), 0.0);
        let is = found.disk.sourced("flush_us").expect("it").is;
        let pairs: Vec<[f64; 2]> = is.try_into().expect("pairs");
        for percent in [2.0, 15.0, 31.0, 39.0, 60.0, 90.0] {
            near(&format!("{base}, {percent} %"), share(&pairs, percent), share(&planted, percent), 0.05);
        }
        assert!(share(&pairs, 99.9) > 2000.0, "{base}: the tail is cut off: {pairs:?}");
        assert!(found.toml.contains("do not depend on each other"), "{}", found.toml);
    }
}
