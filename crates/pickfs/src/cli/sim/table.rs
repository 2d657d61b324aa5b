//! Files of published measurements. Their words make a plan; their figures are for the score alone,
//! and no plan is made where they can be seen.

use crate::cli::Exit;
use crate::cli::catalogue::catalogue;
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::{MOST_PROCESSORS, PROCESSORS, Plan, Settings, from_toml, processors};
use pickfs_system::units::parse_size;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Value;

/// A file, as others have measured.
pub(super) struct Table {
    pub file: PathBuf,
    pub words: Words,
    /// By row, then by column.
    pub published: Vec<BTreeMap<String, f64>>,
}

/// What was compared, without what came out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Words {
    pub heading: Heading,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Heading {
    pub title: String,
    /// Where the figures are from: address, version, date.
    pub source: String,
    pub licence: String,
    #[serde(default)]
    pub note: String,
    /// As its vendor calls it, with its class: "Kingston A2000, NVMe"; or a model of pickfs's.
    #[serde(default)]
    pub drive: Option<String>,
    /// What simulates it, where that is not the model of its class: the path of a model's file.
    #[serde(default)]
    pub model: Option<String>,
    /// Version, such as "5.15".
    #[serde(default)]
    pub kernel: Option<String>,
    #[serde(default)]
    pub processors: Option<u64>,
    /// Of the machine; `--scale` multiplies it, so that as large a share of the files fits into it.
    #[serde(default)]
    pub memory: Option<String>,
    /// Of the file system; `--scale` multiplies it too.
    #[serde(default)]
    pub size: Option<String>,
    /// Why pairs are not in the published order, where that was found.
    #[serde(default, rename = "reason")]
    pub reasons: Vec<Reason>,
}

/// Of a pair of rows that is not in the published order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    pub column: String,
    /// One of the pair is such a row.
    pub rows: Vec<String>,
    pub says: String,
}

/// Of a simulated disk where the table names none, and the least.
const USUAL_SIZE: &str = "2GiB";
const LEAST_SIZE: u64 = 512 << 20;
/// The least of a simulated machine.
const LEAST_MEMORY: u64 = 1 << 30;

/// One comparison of all rows.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub name: String,
    /// As the source describes it.
    pub about: String,
    pub unit: String,
    pub better: Better,
    /// As a plan has it.
    pub work: toml::Table,
    pub phase: String,
    #[serde(default = "usual_metric")]
    pub metric: String,
    /// The setting of the work that `--scale` multiplies; unless given, `scale` of a work with
    /// `like`.
    #[serde(default)]
    pub scaled: Option<String>,
}

fn usual_metric() -> String {
    "time_ns".into()
}

impl Column {
    /// The setting that `--scale` multiplies; `None` where the work is always the published one.
    pub(super) fn scaled(&self) -> Option<&str> {
        self.scaled.as_deref().or(self.work.contains_key("like").then_some("scale"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Better {
    Lower,
    Higher,
}

/// One of the compared columns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub name: String,
    /// File system and options, as a plan has them.
    pub target: toml::Table,
    #[serde(default)]
    pub drive: Option<String>,
    #[serde(default)]
    pub kernel: Option<String>,
}

#[derive(Deserialize)]
struct File {
    #[serde(flatten)]
    heading: toml::Table,
    column: Vec<Column>,
    row: Vec<toml::Table>,
}

/// Words that a drive's description has, and the model that stands for such drives; the first row
/// that fits counts.
const MODELS: &[(&[&str], &str)] = &[
    (&["nvme", "plp"], "nvme-plp"),
    (&["nvme", "dram-less"], "nvme-dramless"),
    (&["nvme"], "nvme"),
    (&["sata", "plp"], "sata-plp"),
    (&["sata", "dram-less"], "sata-dramless"),
    (&["sata", "ssd"], "sata-ssd"),
    (&["shingled"], "smr-5900"),
    (&["hard disk", "5400"], "hdd-5400"),
    (&["hard disk"], "hdd-7200"),
    (&["memory"], "none"),
];

/// Releases of Debian with a guest, by the version of their kernel.
const KERNELS: [(&str, &str); 4] = [("bullseye", "5.10"), ("bookworm", "6.1"), ("trixie", "6.12"), ("sid", "7.2")];
/// From 3.0 on a major version has had about that many releases.
const RELEASES: u64 = 20;

/// What stands for a row's drive and kernel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Machine {
    pub disk: String,
    pub kernel: &'static str,
    pub processors: Option<u64>,
}

impl Table {
    pub(super) fn read(file: &Path) -> Result<Table> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read the table {}", file.display()))?;
        let parsed = Table::parse(&text, file);
        parsed.map_err(|error| Exit::usage(format!("{} is no table of measurements: {error:#}", file.display())))
    }

    fn parse(text: &str, file: &Path) -> Result<Table> {
        let File { heading, column: columns, row } = toml::from_str(text)?;
        let (mut rows, mut published) = (Vec::new(), Vec::new());
        for mut row in row {
            let figures = row.remove("published").context("a row has no `published`")?;
            let figures: BTreeMap<String, f64> = figures.try_into().context("in `published`")?;
            for (name, value) in &figures {
                ensure!(columns.iter().any(|column| column.name == *name), "there is no column `{name}`");
                ensure!(*value > 0.0 && value.is_finite(), "{name} = {value}: figures are more than 0");
            }
            rows.push(Value::Table(row).try_into().context("in a row")?);
            published.push(figures);
        }
        let words = Words { heading: Value::Table(heading).try_into()?, columns, rows };
        words.machines()?;
        for reason in &words.heading.reasons {
            let is_row = |name: &String| words.rows.iter().any(|row| row.name == *name);
            let is_there =
                words.columns.iter().any(|column| column.name == reason.column) && reason.rows.iter().all(is_row);
            ensure!(is_there, "a reason names no column and rows of the table: {}", reason.says);
        }
        Ok(Table { file: file.to_path_buf(), words, published })
    }
}

impl Words {
    /// What each row is simulated on.
    pub(super) fn machines(&self) -> Result<Vec<Machine>> {
        self.rows.iter().map(|row| self.machine(row).with_context(|| format!("row {}", row.name))).collect()
    }

    fn machine(&self, row: &Row) -> Result<Machine> {
        let processors = self.heading.processors.map(|number| number.clamp(1, MOST_PROCESSORS));
        let drive = row.drive.as_ref().or(self.heading.drive.as_ref()).context("`drive` is missing")?;
        let kernel = row.kernel.as_ref().or(self.heading.kernel.as_ref()).context("`kernel` is missing")?;
        // Where kernels are compared, the version is what counts.
        let several = if row.kernel.is_none() { processors.unwrap_or(2) } else { 1 };
        let model = self.heading.model.as_ref().filter(|_| row.drive.is_none());
        Ok(Machine {
            disk: model.cloned().map_or_else(|| nearest_model(drive), Ok)?,
            kernel: nearest_kernel(kernel, several)?,
            processors,
        })
    }

    /// The first row that is simulated as this one is.
    pub(super) fn stands_for(&self, at: usize) -> Result<usize> {
        let machines = self.machines()?;
        let is_same =
            |other: &usize| machines[*other] == machines[at] && self.rows[*other].target == self.rows[at].target;
        Ok((0..at).find(is_same).unwrap_or(at))
    }

    /// Of the rows that `rows` names, one for all that are simulated alike.
    pub(super) fn plan(&self, rows: &[usize], scale: f64, folder: &Path) -> Result<Plan> {
        let machines = self.machines()?;
        let mut targets = Vec::new();
        for at in rows.iter().copied().filter(|at| self.stands_for(*at).is_ok_and(|first| first == *at)) {
            let Machine { disk, kernel, processors } = &machines[at];
            let mut machine: toml::Table = [("disk", disk.as_str().into()), ("kernel", (*kernel).into())]
                .map(|(name, value): (&str, Value)| (name.to_string(), value))
                .into_iter()
                .collect();
            let number = processors.filter(|number| is_possible(kernel, *number));
            machine.extend(number.map(|number| (PROCESSORS.to_string(), Value::from(number as i64))));
            let memory = self.heading.memory.as_ref().map(|memory| scaled(memory, scale, LEAST_MEMORY)).transpose()?;
            machine.extend(memory.map(|memory| ("memory".to_string(), memory)));
            let mut target = self.rows[at].target.clone();
            target.insert("name".into(), self.rows[at].name.clone().into());
            target.insert("machine".into(), machine.into());
            targets.push(Value::Table(target));
        }
        let mut plan = toml::Table::new();
        let mut set = |name: &str, value: Value| plan.insert(name.to_string(), value);
        set("title", self.heading.title.clone().into());
        set("executor", "sim".into());
        set("other_speeds", false.into());
        set("duplicate", false.into());
        let size = self.heading.size.as_ref().map(|size| scaled(size, scale, LEAST_SIZE));
        let size = size.unwrap_or_else(|| Ok(USUAL_SIZE.into()))?;
        set("backing", toml::Table::from_iter([("memory".to_string(), size)]).into());
        set("stop", toml::Table::from_iter([("rounds".to_string(), 1.into())]).into());
        set("target", Value::Array(targets));
        set("work", Value::Array(self.works(scale)));
        let text = toml::to_string(&plan)?;
        let plan = from_toml(&text, "table", folder, &catalogue());
        plan.map_err(|complaints| {
            Exit::usage(pickfs_core::plan::render(&text, "the plan of this table", &complaints, false))
        })
    }

    /// Each once; columns of one work differ in their phases.
    fn works(&self, scale: f64) -> Vec<Value> {
        let named = self.columns.iter().enumerate().filter(|(at, _)| self.work_of(*at) == self.columns[*at].name);
        named
            .map(|(_, column)| {
                let mut work = column.work.clone();
                work.insert("name".into(), column.name.clone().into());
                if let Some(name) = column.scaled() {
                    let times = match work.get(name) {
                        Some(Value::Integer(number)) => Value::Integer((*number as f64 * scale).round() as i64),
                        own => (own.and_then(Value::as_float).unwrap_or(1.0) * scale).into(),
                    };
                    work.insert(name.into(), times);
                }
                Value::Table(work)
            })
            .collect()
    }

    /// The name that the work of a column has in the plan: that of the first column with the same.
    pub(super) fn work_of(&self, column: usize) -> &str {
        let first = self.columns.iter().find(|other| other.work == self.columns[column].work);
        first.map_or("", |first| &first.name)
    }
}

/// In whole MiB, as machines and disks have them.
fn scaled(size: &str, scale: f64, least: u64) -> Result<Value> {
    let published = parse_size(size).map_err(anyhow::Error::msg)?;
    let mib = (published as f64 * scale).max(least as f64) / f64::from(1 << 20);
    Ok(format!("{}MiB", mib.round()).into())
}

fn nearest_model(drive: &str) -> Result<String> {
    if drive.contains('/') || pickfs_disks::find(drive).is_some() {
        return Ok(drive.to_string());
    }
    let words = drive.to_lowercase();
    let found = MODELS.iter().find(|(wanted, _)| wanted.iter().all(|word| words.contains(word)));
    let (_, model) = found.with_context(|| {
        format!("no model is like the drive `{drive}`: name its class, such as \"NVMe\" or \"hard disk, 5400 rpm\"")
    })?;
    Ok(model.to_string())
}

/// Of the kernels that can have that many processors, the one that is fewest releases away, the
/// earlier of two.
fn nearest_kernel(version: &str, processors: u64) -> Result<&'static str> {
    let wanted = release(version).with_context(|| format!("`{version}` is no version of Linux, such as \"5.15\""))?;
    let fitting = KERNELS.iter().filter(|(name, _)| is_possible(name, processors));
    let nearest = fitting.min_by_key(|(_, version)| release(version).map(|known| known.abs_diff(wanted)));
    Ok(nearest.context("no kernel can have that many processors")?.0)
}

fn is_possible(kernel: &str, number: u64) -> bool {
    let machine = [("kernel".to_string(), kernel.into()), (PROCESSORS.to_string(), number.into())];
    processors(&Settings(machine.into_iter().collect())) == number
}

/// Counted from 0.0.
fn release(version: &str) -> Option<u64> {
    let (major, rest) = version.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(major.parse::<u64>().ok()? * RELEASES + minor.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        title = "Two disks"
        source = "https://example.org, 2024"
        licence = "CC BY 4.0"
        kernel = "5.15"
        processors = 12
        [[column]]
        name = "write"
        about = "a tree written"
        unit = "s"
        better = "lower"
        work = { workload = "tree", like = "site", scale = 0.5 }
        phase = "write"
        [[column]]
        name = "remove"
        about = "and removed"
        unit = "files/s"
        better = "higher"
        work = { workload = "tree", like = "site", scale = 0.5 }
        phase = "remove"
        [[row]]
        name = "slow ext4"
        target = { fs = "ext4" }
        drive = "WD Red WD10EFRX, hard disk, 5400 rpm"
        published = { write = 40.0, remove = 100 }
        [[row]]
        name = "fast ext4"
        target = { fs = "ext4" }
        drive = "Kingston A2000, NVMe"
        published = { write = 4.0, remove = 1000 }
        [[row]]
        name = "another"
        target = { fs = "ext4" }
        drive = "Samsung 970 EVO, NVMe"
        published = { write = 5.0 }
    "#;

    fn table(text: &str) -> Table {
        Table::parse(text, Path::new("a.toml")).expect("a table")
    }

    #[test]
    fn a_plan_has_the_words_and_not_the_figures() {
        let plan = |text: &str| table(text).words.plan(&[0, 1, 2], 0.1, Path::new("/")).expect("a plan");
        let found = plan(TABLE);
        let names: Vec<&str> = found.targets.iter().map(|target| &*target.name).collect();
        assert_eq!(names, ["slow ext4", "fast ext4"], "drives of one class are simulated once");
        let disks: Vec<_> = found.targets.iter().map(|target| target.machine.text("disk")).collect();
        assert_eq!(disks, [Some("hdd-5400"), Some("nvme")]);
        assert_eq!(found.targets[0].machine.number(PROCESSORS), Some(12));
        assert_eq!(found.targets[0].machine.text("kernel"), Some("bookworm"));
        assert_eq!((found.works.len(), found.works[0].name.as_str()), (1, "write"));
        let scale = found.works[0].workload.settings.0.get("scale").and_then(|scale| scale.as_f64());
        assert_eq!(scale, Some(0.05));
        assert_eq!(found, plan(&TABLE.replace("40.0", "0.4").replace("1000", "1").replace("5.0 }", "500.0 }")));
        assert_ne!(found, plan(&TABLE.replace("Kingston A2000, NVMe", "sata-ssd")));
    }

    #[test]
    fn a_share_of_the_files_has_a_share_of_the_machine() {
        let text = TABLE.replace("processors = 12", "processors = 12\nmemory = \"2GiB\"\nsize = \"2GiB\"");
        let of = |text: &str, scale: f64| {
            let plan = table(text).words.plan(&[0], scale, Path::new("/")).expect("a plan");
            let target = &plan.targets[0];
            [target.machine.number("memory"), target.backing.settings.number("size")]
        };
        for (scale, memory, size) in [(1.0, 2048, 2048), (0.7, 1434, 1434), (0.1, 1024, 512)] {
            assert_eq!(of(&text, scale), [Some(memory << 20), Some(size << 20)], "{scale}");
        }
        assert_eq!(of(TABLE, 0.1)[1], Some(2 << 30), "no size is named");
    }

    #[test]
    fn drives_and_kernels_stand_for_others() {
        for (drive, model) in [
            ("hdd-7200", "hdd-7200"),
            ("./mine.toml", "./mine.toml"),
            ("Samsung PM983, NVMe with PLP", "nvme-plp"),
            ("T-FORCE TM8FPL500G, NVMe, DRAM-less", "nvme-dramless"),
            ("Samsung PM863, SATA SSD with PLP", "sata-plp"),
            ("TEAM T253X2512G, SATA SSD, DRAM-less", "sata-dramless"),
            ("Samsung 850 Pro, SATA SSD", "sata-ssd"),
            ("Seagate, shingled hard disk", "smr-5900"),
            ("hard disk", "hdd-7200"),
        ] {
            assert_eq!(nearest_model(drive).expect(drive), model);
            assert!(model.contains('/') || pickfs_disks::find(model).is_some(), "{model}");
        }
        assert!(nearest_model("a tape").is_err());
        for (version, processors, release) in [
            ("5.15", 8, "bookworm"),
            ("5.15", 1, "bullseye"),
            ("3.10.0-1160", 1, "bullseye"),
            ("6.6.8-2-MANJARO", 1, "bookworm"),
            ("6.14", 1, "trixie"),
            ("7.0", 1, "sid"),
        ] {
            assert_eq!(nearest_kernel(version, processors).expect(version), release, "{version}");
        }
        assert!(nearest_kernel("Linux", 1).is_err());
    }

    #[test]
    fn a_wrong_table_is_refused_with_the_reason() {
        for (from, to, says) in [
            ("write = 4.0", "wrote = 4.0", "there is no column `wrote`"),
            ("write = 4.0", "write = 0.0", "figures are more than 0"),
            ("published = { write = 5.0 }", "", "a row has no `published`"),
            ("kernel = \"5.15\"", "", "`kernel` is missing"),
            ("Samsung 970 EVO, NVMe", "a tape", "no model is like the drive `a tape`"),
            (
                "processors = 12",
                "processors = 12\n[[reason]]\ncolumn = \"write\"\nrows = [\"ext5\"]\nsays = \"x\"",
                "no column and rows",
            ),
            ("title", "tittle", "unknown field `tittle`"),
            ("drive = \"Kingston", "disc = \"Kingston", "unknown field `disc`"),
        ] {
            assert!(TABLE.contains(from), "{from}");
            let error = Table::parse(&TABLE.replacen(from, to, 1), Path::new("a.toml")).err().expect(to);
            let said = format!("{error:#}");
            assert!(said.contains(says), "{to}: {said}");
        }
    }
}
