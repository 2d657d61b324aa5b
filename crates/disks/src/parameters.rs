//! A model's TOML file, and the flat table of integers that `model.c` takes.

mod tables;

use anyhow::{Context, Result, bail, ensure};
use pickfs_system::sys::disk_model::{DiskModel, WORDS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub type Words = [u64; WORDS];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Answers at once.
    None,
    HardDisk,
    Flash,
    /// A hard disk whose tracks overlap, and which hides that.
    ShingledDisk,
    /// A hard disk with zones that its host must write in order.
    HostManagedDisk,
    /// Flash that can write few places at a time: SD cards, eMMC.
    Card,
    /// Rented by operations a second.
    CloudVolume,
}

impl Kind {
    /// The value of `SIM_KIND`.
    fn word(self) -> u64 {
        match self {
            Kind::None => 0,
            Kind::HardDisk | Kind::ShingledDisk | Kind::HostManagedDisk => 1,
            Kind::Flash | Kind::Card => 2,
            Kind::CloudVolume => 3,
        }
    }

    pub(crate) fn has_arm(self) -> bool {
        self.word() == 1
    }
}

/// A model's file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// One line for lists.
    pub about: String,
    pub kind: Kind,
    /// Made from what was published of its kind, and compared with no real disk.
    #[serde(default)]
    pub sketch: bool,
    /// In the order of the file.
    pub parameters: toml::map::Map<String, toml::Value>,
}

/// A parameter as a file gives it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced {
    /// A number, in the unit that the parameter's name ends in, or a word.
    pub is: toml::Value,
    /// A publication or a datasheet; "assumed" where there is none.
    pub source: String,
}

impl Disk {
    /// A file of a user's own is as good as ours.
    pub fn parse(text: &str) -> Result<Disk> {
        let disk: Disk = toml::from_str(text).context("no model of a disk")?;
        disk.words(0, 0)?;
        Ok(disk)
    }

    /// For lists.
    pub fn described(&self) -> String {
        if self.sketch { format!("sketch: {}", self.about) } else { self.about.clone() }
    }

    pub fn sourced(&self, name: &str) -> Result<Sourced> {
        let found = self.parameters.get(name).with_context(|| format!("the parameter `{name}` is missing"))?;
        let sourced: Sourced = found.clone().try_into().with_context(|| format!("in the parameter `{name}`"))?;
        if sourced.source.trim().is_empty() {
            bail!("the parameter `{name}` names no source; write \"assumed\" if there is none");
        }
        Ok(sourced)
    }

    /// In the unit that the name ends in.
    pub(crate) fn number(&self, name: &str) -> Result<f64> {
        let is = self.sourced(name)?.is;
        let number = is.as_float().or(is.as_integer().map(|whole| whole as f64));
        let number = number.with_context(|| format!("`{name}` must be a number"))?;
        ensure!(number >= 0.0 && number.is_finite(), "`{name}` must be a number that is not negative");
        Ok(number)
    }

    /// The same disk with another number, of six digits.
    pub fn with(&self, name: &str, number: f64) -> Result<Disk> {
        self.with_value(name, significant(number, 6).into())
    }

    /// The same disk with a distribution: pairs of percent, and the longest time of that share.
    pub(crate) fn with_pairs(&self, name: &str, pairs: &[[f64; 2]]) -> Result<Disk> {
        let short = |pair: &[f64; 2]| pair.map(|number| (number * 100.0).round() / 100.0);
        self.with_value(name, toml::Value::try_from(pairs.iter().map(short).collect::<Vec<_>>())?)
    }

    fn with_value(&self, name: &str, value: toml::Value) -> Result<Disk> {
        let mut changed = self.clone();
        let place = changed.parameters.get_mut(name).and_then(toml::Value::as_table_mut);
        let fields = place.with_context(|| format!("the parameter `{name}` is missing"))?;
        fields.insert("is".to_string(), value);
        Ok(changed)
    }

    /// The same disk with a share of its buffers, for a share of the files: else files would be
    /// read from a buffer in which they had no room. The write cache is written at the same part of
    /// it as before. A disk without such buffers does not change.
    pub fn with_buffers(&self, share: f64) -> Result<Disk> {
        let buffers = [("segments", 1.0), ("cache_mib", 0.0625)];
        let has = buffers.iter().filter(|(name, _)| self.parameters.contains_key(*name));
        let smaller = has.copied().try_fold(self.clone(), |disk, (name, step)| {
            let number = (self.number(name)? * share / step).round() * step;
            disk.with(name, number.max(step))
        })?;
        let (Ok(high), Ok(cache)) = (self.number("high_water_mib"), self.number("cache_mib")) else {
            return Ok(smaller);
        };
        let left = smaller.number("cache_mib")? / cache;
        smaller.with("high_water_mib", if cache > 0.0 { high * left } else { 0.0 })
    }

    /// The table for the model. `start` is where on the disk its device begins, in sectors;
    /// `phase_ns` the angle of the platter at time 0, as time of a turn.
    pub fn words(&self, start: u64, phase_ns: u64) -> Result<Words> {
        words(self, start, phase_ns)
    }

    /// The table of a drive that is made smaller, so that the device is all of it, and that holds
    /// data in a share of it: what is sized by the capacity (spare, blocks, SLC cache) shrinks with
    /// it, what is a speed or a buffer does not.
    pub fn used(&self, start: u64, sectors: u64, filled: f64) -> Result<Words> {
        used(self, start, sectors, filled)
    }

    /// The table of a host-managed disk whose device has `sectors` sectors, in whole zones.
    pub fn zoned(&self, start: u64, phase_ns: u64, sectors: u64) -> Result<Words> {
        zoned(self, start, phase_ns, sectors)
    }

    /// What it has answered may be lost without a flush, which takes `flush_us`.
    pub fn takes_flushes(&self) -> bool {
        self.words(0, 0).is_ok_and(|words| words[at("VOLATILE")] != 0) && self.parameters.contains_key(FLUSH)
    }

    /// It has what `used` needs.
    pub fn can_be_used(&self) -> bool {
        self.kind == Kind::Flash && self.number(SPARE).is_ok()
    }
}

/// In the order of `enum sim_parameter`.
const NAMES: [&str; 64] = [
    "KIND", "SECTORS", "START", "DEPTH", "COMMAND_NS", "LINK_PS", "VOLATILE", "ROTATIONAL", "FLUSH_NS", "TRIM_NS",
    "TURN_NS", "PHASE_NS", "HEADS", "HEAD_SWITCH_NS", "HEAD_SKEW_NS", "CYLINDER_SKEW_NS", "WRITE_SETTLE_NS",
    "AGE_LIMIT_NS", "WRITE_CACHE", "CACHE_SECTORS", "CACHE_SLOTS", "DESTAGE_WINDOW", "HIGH_WATER", "IDLE_NS",
    "SEGMENTS", "SEGMENT_SECTORS", "AHEAD_SECTORS", "DIES", "CHANNELS", "PAGE_SECTORS", "READ_NS", "PROGRAM_NS",
    "PROGRAM_PAGES", "CHANNEL_PS", "BUFFER_SECTORS", "PROTECTED", "ERASE_NS", "ERASE_PROGRAMS", "QUEUED_FLUSH",
    "SUSPEND_NS", "SLC_SECTORS", "SLC_PROGRAM_NS", "SLC_REFILL_NS", "FRAMES_NS", "UNIT_SECTORS", "OPEN_UNITS", "UNITS",
    "BLOCKS", "BLOCK_PROGRAMS", "FILLED", "BAND_SECTORS", "LOG_SECTORS", "STREAM_SECTORS", "CLEAN_IDLE_NS",
    "ZBC_SECTORS", "ZBC_ZONES", "ZBC_CONVENTIONAL", "BASE_NS", "PEAK_NS", "CREDITS", "OPERATION_SECTORS", "SEEKS",
    "ZONES", "FLUSHES",
];
const TABLES: usize = 64;
const MOST_SEEKS: usize = 128;
const SEEK_AT: usize = TABLES;
const ZONE_AT: usize = SEEK_AT + 2 * MOST_SEEKS;
const MOST_ZONES: u64 = 32;
const FLUSH_AT: usize = ZONE_AT + 3 * MOST_ZONES as usize;
pub(crate) const MOST_FLUSHES: usize = 16;

/// What a parameter's number is multiplied with, or made of.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Scale {
    By(f64),
    As(Unit),
}
use Scale::{As, By};

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    /// MB/s, as picoseconds of a sector.
    Rate,
    /// MB/s, as nanoseconds of a sector.
    Refill,
    /// A second, as nanoseconds between two.
    Often,
}

/// A parameter in a file, the word that it becomes, and its unit.
type Field = (&'static str, &'static str, Scale);

/// By the kind of disk that has them.
static FIELDS: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    toml::from_str(include_str!("parameters.toml"))
        .unwrap_or_else(|error| panic!("the parameters came broken: {error}"))
});

/// A number, or shares of all flushes with the longest of them: [[0, 300], [50, 330], [100, 2000]].
pub(crate) const FLUSH: &str = "flush_us";

/// Parameters that tables are made of.
const OF_TABLES: &[&str] = &[
    "zones", "outer_sectors", "inner_sectors", "seek_unit", "seek_short_us", "seek_root_us", "seek_boundary",
    "seek_line_us", "seek_slope_us",
];

/// Flash beyond the drive's capacity. Only a drive that is small and used needs it, so a file may
/// lack it.
const SPARE: &str = "spare_percent";

/// Share of the device that is written anywhere.
const CONVENTIONAL: &str = "conventional_percent";

/// What a disk has or has not.
const FLAGS: [&str; 3] = ["write_cache", "power_loss_protection", "queued_flush"];

fn fields(kind: Kind) -> Vec<&'static Field> {
    let lists: &[&str] = match kind {
        Kind::None => &["all"],
        Kind::HardDisk => &["all", "disks", "hard-disks"],
        Kind::Flash => &["all", "disks", "flash"],
        Kind::ShingledDisk => &["all", "disks", "hard-disks", "shingled"],
        Kind::HostManagedDisk => &["all", "disks", "hard-disks", "host-managed"],
        Kind::Card => &["all", "disks", "flash", "cards"],
        Kind::CloudVolume => &["all", "disks", "cloud"],
    };
    lists.iter().flat_map(|list| &FIELDS[list]).collect()
}

/// The place of a word in the table.
pub fn at(name: &str) -> usize {
    NAMES.iter().position(|known| *known == name).unwrap_or_else(|| panic!("the model has no parameter {name}"))
}

/// Where its three words are.
pub(crate) fn last_zone(words: &[u64]) -> usize {
    ZONE_AT + 3 * (words[at("ZONES")].max(1) as usize - 1)
}

pub(crate) fn words(disk: &Disk, start: u64, phase_ns: u64) -> Result<Words> {
    let fields = fields(disk.kind);
    let named = match disk.kind {
        Kind::None => "a disk without delay",
        Kind::HardDisk => "hard disks",
        Kind::Flash => "flash",
        Kind::ShingledDisk => "shingled hard disks",
        Kind::HostManagedDisk => "host-managed hard disks",
        Kind::Card => "cards",
        Kind::CloudVolume => "cloud volumes",
    };
    let known = |name: &str| match name {
        SPARE => disk.kind == Kind::Flash,
        CONVENTIONAL => disk.kind == Kind::HostManagedDisk,
        _ => fields.iter().any(|field| field.0 == name) || (disk.kind.has_arm() && OF_TABLES.contains(&name)),
    };
    if let Some(name) = disk.parameters.keys().find(|name| !known(name)) {
        bail!("`{}` is no parameter of {named}", name.escape_debug());
    }
    let mut words = [0; WORDS];
    let has_table = tables::flushes(disk, &mut words)?;
    for (name, word, scale) in fields.into_iter().filter(|(name, ..)| !has_table || *name != FLUSH) {
        words[at(word)] = scaled(disk.number(name)?, *scale).with_context(|| format!("`{name}`"))?;
    }
    words[at("KIND")] = disk.kind.word();
    words[at("START")] = start;
    words[at("ROTATIONAL")] = u64::from(disk.kind.has_arm());
    words[at("VOLATILE")] = match disk.kind {
        Kind::None | Kind::CloudVolume => 0,
        Kind::HardDisk | Kind::ShingledDisk | Kind::HostManagedDisk => words[at("WRITE_CACHE")],
        Kind::Flash | Kind::Card => u64::from(words[at("PROTECTED")] == 0),
    };
    for name in FLAGS.iter().filter(|name| disk.parameters.contains_key(**name)) {
        ensure!([0.0, 1.0].contains(&disk.number(name)?), "`{name}` must be 0 or 1");
    }
    ensure!(disk.kind != Kind::ShingledDisk || words[at("BAND_SECTORS")] > 0, "`band_mib` must be more than 0");
    if disk.kind == Kind::HostManagedDisk {
        conventional(disk)?;
    }
    if disk.kind.has_arm() {
        tables::of_arm(disk, &mut words)?;
        words[at("PHASE_NS")] = phase_ns % words[at("TURN_NS")].max(1);
    }
    in_range(words)
}

/// Sectors of what flash maps; the most that a map is made for; blocks without which none could be
/// collected. As in ftl.h.
const UNIT_SECTORS: u64 = 8;
const MOST_UNITS: u64 = 1 << 23;
const LEAST_SPARE: u64 = 6;

fn used(disk: &Disk, start: u64, sectors: u64, filled: f64) -> Result<Words> {
    let mut words = words(disk, start, 0)?;
    ensure!(disk.kind == Kind::Flash, "only flash can be full");
    let (spare, share) = (disk.number(SPARE)? / 100.0, sectors as f64 / words[at("SECTORS")] as f64);
    let units = sectors / UNIT_SECTORS;
    let most = (MOST_UNITS * UNIT_SECTORS) >> 21;
    ensure!(units <= MOST_UNITS, "flash with a fill can have at most {most} GiB");
    // Each die has at least one program in a block, so small drives have few blocks.
    let programs = (words[at("ERASE_PROGRAMS")] as f64 * share).round().max(1.0) as u64;
    let block = words[at("PAGE_SECTORS")] * words[at("PROGRAM_PAGES")] * words[at("DIES")] * programs / UNIT_SECTORS;
    let blocks = (units as f64 * (1.0 + spare) / block as f64).floor() as u64;
    let least = ((LEAST_SPARE + 1) * block) as f64 / spare * (UNIT_SECTORS * 512) as f64 / f64::from(1 << 20);
    ensure!(
        blocks * block >= units + LEAST_SPARE * block,
        "with {} % of spare flash in blocks of {} KiB, a disk with a fill needs {least:.0} MiB",
        spare * 100.0,
        block * 4
    );
    let sized = [("UNITS", units), ("BLOCKS", blocks), ("BLOCK_PROGRAMS", programs)];
    sized.into_iter().for_each(|(name, value)| words[at(name)] = value);
    words[at("FILLED")] = (units as f64 * filled).round() as u64;
    words[at("SLC_SECTORS")] = (words[at("SLC_SECTORS")] as f64 * share).round() as u64;
    in_range(words)
}

fn in_range(words: Words) -> Result<Words> {
    match DiskModel::start(&words) {
        Ok(_) => Ok(words),
        Err(wrong) => bail!("`{}` is out of range", given_as(wrong)),
    }
}

/// Conventional zones of a host-managed disk, as a share.
fn conventional(disk: &Disk) -> Result<f64> {
    let percent = disk.number(CONVENTIONAL)?;
    ensure!(percent < 100.0, "`{CONVENTIONAL}` must be below 100");
    Ok(percent / 100.0)
}

fn zoned(disk: &Disk, start: u64, phase_ns: u64, sectors: u64) -> Result<Words> {
    let mut words = words(disk, start, phase_ns)?;
    let size = words[at("ZBC_SECTORS")];
    ensure!(
        size > 0 && sectors % size == 0,
        "a host-managed disk has whole zones: make the backing's size a multiple of {} MiB",
        size >> 11
    );
    let zones = sectors / size;
    words[at("ZBC_ZONES")] = zones;
    words[at("ZBC_CONVENTIONAL")] = (zones as f64 * conventional(disk)?).ceil() as u64;
    in_range(words)
}

/// As a file calls the word.
fn given_as(word: usize) -> &'static str {
    let name = NAMES.get(word).copied().unwrap_or_default();
    let field = FIELDS.values().flatten().find(|field| field.1 == name);
    let table = (name == "FLUSHES").then_some(FLUSH);
    field.map(|field| field.0).or(table).unwrap_or(name)
}

/// The value, rounded to `digits` significant digits.
pub fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * unit).round() / unit
}

/// Eighteen minutes in nanoseconds, 560 TB in sectors: sums of such numbers have room in the model.
const MOST: f64 = (1_u64 << 40) as f64;

fn scaled(number: f64, scale: Scale) -> Result<u64> {
    let is_count = matches!(scale, By(1.0));
    ensure!(!is_count || number.fract() == 0.0, "{number} is no whole number");
    let scaled = match scale {
        By(factor) => number * factor,
        As(Unit::Rate) => 512e6 / number,
        As(Unit::Refill) => 512e3 / number,
        As(Unit::Often) => 1e9 / number,
    };
    ensure!(scaled <= MOST, "{number} is {}", if matches!(scale, By(_)) { "too much" } else { "too little" });
    Ok(scaled.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::find;
    use pickfs_system::sys::disk_model::SOURCES;

    /// The enum of model.h, without its prefix.
    #[test]
    fn the_table_is_laid_out_as_in_c() {
        let of = |file: &str| SOURCES.iter().find(|source| source.0 == file).expect("it").1;
        let header = of("model.h");
        let body = header.split("enum sim_parameter {").nth(1).and_then(|rest| rest.split("};").next()).expect("it");
        let names = body.lines().filter_map(|line| line.trim().strip_prefix("SIM_")?.split([',', ' ']).next());
        let names: Vec<&str> = names.collect();
        assert_eq!(names[..NAMES.len()], NAMES);
        assert_eq!(names[NAMES.len()..], ["TABLES"]);
        for (name, value) in [
            ("SIM_MOST_SEEKS", MOST_SEEKS),
            ("SIM_MOST_ZONES", MOST_ZONES as usize),
            ("SIM_MOST_FLUSHES", MOST_FLUSHES),
        ] {
            assert!(header.contains(&format!("#define {name} {value}\n")), "{name}");
        }
        let [unit, most] = [format!("{UNIT_SECTORS}"), format!("(1 << {})", MOST_UNITS.ilog2())];
        let spare = LEAST_SPARE.to_string();
        for (name, value) in [("UNIT_SECTORS", unit), ("MOST_UNITS", most), ("LEAST_SPARE", spare)] {
            assert!(of("ftl.h").contains(&format!("#define FTL_{name} {value}\n")), "{name}");
        }
        assert_eq!(FLUSH_AT + 2 * MOST_FLUSHES, WORDS);
    }

    /// Every distance among 1,962 cylinders, against the published curve.
    #[test]
    fn the_seek_curve_of_the_hp_97560_is_the_published_one() {
        let words = find("hp-97560").expect("it").words(0, 0).expect("words");
        let model = DiskModel::start(&words).expect("a model");
        for distance in 1..1962_u64 {
            let d = distance as f64;
            let published = if distance <= 383 { 3.24 + 0.400 * d.sqrt() } else { 8.00 + 0.008 * d };
            let found = model.seek_ns(distance) as f64 / 1e6;
            assert!((found / published - 1.0).abs() < 0.001, "{distance} cylinders: {found} ms, not {published} ms");
        }
        assert_eq!(model.seek_ns(0), 0);
        let zone = &words[ZONE_AT..ZONE_AT + 3];
        assert_eq!((zone, words[at("SECTORS")]), (&[0, 0, 72][..], 1962 * 19 * 72));
    }

    #[test]
    fn numbers_that_no_disk_has_are_refused() {
        for (model, name, number, why) in [
            ("nvme", "read_us", 1e30, "`read_us`: 1000000000000000000000000000000 is too much"),
            ("nvme", "link_mb_s", 0.0, "`link_mb_s`: 0 is too little"),
            ("nvme", "channel_mb_s", 0.0, "`channel_mb_s`: 0 is too little"),
            ("nvme", "dies", 1.5, "`dies`: 1.5 is no whole number"),
            ("nvme", "queued_flush", 7.0, "`queued_flush` must be 0 or 1"),
            ("smr-5900", "band_mib", 0.0, "`band_mib` must be more than 0"),
            ("hdd-7200", "high_water_mib", 33.0, "`high_water_mib` is out of range"),
            ("hdd-7200", "cache_mib", 23.0, "`high_water_mib` is out of range"),
            ("cloud-volume", "base_per_second", 0.0, "`base_per_second`: 0 is too little"),
        ] {
            let disk = find(model).expect("it").with(name, number).expect("a disk");
            let error = disk.words(0, 0).expect_err(name);
            assert_eq!(format!("{error:#}"), why);
        }
    }

    #[test]
    fn zones_hold_the_whole_disk() {
        let words = find("hdd-7200").expect("it").words(0, 0).expect("words");
        let zones = words[at("ZONES")] as usize;
        let row = |zone: usize| &words[ZONE_AT + 3 * zone..ZONE_AT + 3 * zone + 3];
        let cylinders = row(1)[1];
        for zone in 1..zones {
            assert_eq!(row(zone)[0] - row(zone - 1)[0], cylinders * words[at("HEADS")] * row(zone - 1)[2], "{zone}");
        }
        let last = row(zones - 1);
        let end = last[0] + cylinders * words[at("HEADS")] * last[2];
        let spare = end - words[at("SECTORS")];
        assert!(spare < zones as u64 * words[at("HEADS")] * 3600, "{spare} sectors behind the end");
    }
}
