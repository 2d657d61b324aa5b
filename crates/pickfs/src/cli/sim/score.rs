//! `pickfs sim score`: simulations, held against what others have measured.

use super::table::{Better, Machine, Reason, Table};
use crate::cli::programs::{self, Source};
use crate::cli::report::deliver;
use crate::cli::{Exit, FAILED, Outcome, STOPPED, Verb, there, why};
use anyhow::{Context, Result, bail};
use pickfs_core::journal::{Folded, Outcome as Ended, fold_file};
use pickfs_core::metric;
use pickfs_core::plan::{Plan, Settings};
use pickfs_disks::Disk;
use pickfs_host::analysis::{Costs, Miss, score};
use pickfs_host::executor;
use pickfs_host::run::{self, Finish, StopChange, Trust, tell};
use pickfs_host::wording::score::{Column, Scored, page};
use pickfs_stats::median;
use pickfs_target::stack::fs;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(super) const EXAMPLES: &str = "Examples:\n  pickfs sim score docs/score-card --scale 0.1 -o card.md    every table there, with a tenth of the files\n  pickfs sim score docs/score-card --no-run                  the page once more, from the journals that are there\n\nA table is a TOML file; docs/sim.md describes it.";

#[derive(clap::Args)]
pub(super) struct Score {
    /// Tables of published measurements: TOML files, or folders with such files
    #[arg(required = true, value_name = "TABLES")]
    tables: Vec<PathBuf>,
    /// Folder for the journals; a run whose journal is there is taken up, or only scored where it
    /// has ended
    #[arg(long, default_value = "pickfs-runs/score", value_name = "DIR")]
    journals: PathBuf,
    /// Simulate nothing: score what the journals hold
    #[arg(long)]
    no_run: bool,
    /// How many times the files that a table names
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER")]
    scale: f64,
    /// Simulate N cells at once; each has the memory that its table names
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    jobs: u32,
    /// Explain each miss by `pickfs why`, which simulates its two cells again; what was explained
    /// is kept next to the journals
    #[arg(long, conflicts_with = "no_run")]
    why: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A table with the run of its plan.
struct Done<'s> {
    arguments: &'s Score,
    table: Table,
    folded: Folded,
    journal: PathBuf,
}

impl Score {
    pub(super) fn run(&self) -> Outcome {
        if !(self.scale > 0.0 && self.scale.is_finite()) {
            return Err(Exit::usage("--scale is more than 0, such as 0.1"));
        }
        let tables = self.files()?.iter().map(|file| Table::read(file)).collect::<Result<Vec<Table>>>()?;
        run::count_stop_requests()?;
        let mut scored = Vec::new();
        for table in tables {
            let Some(done) = self.done(table)? else { return Ok(STOPPED) };
            scored.push(done.scored()?);
        }
        deliver(page(&self.made(), &scored).as_bytes(), self.output.as_deref())?;
        Ok(if scored.iter().all(|table| table.figures.is_empty()) { FAILED } else { 0 })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for named in &self.tables {
            if there(named)?.is_file() {
                found.push(named.clone());
                continue;
            }
            let listed = std::fs::read_dir(named).with_context(|| format!("cannot list {}", named.display()))?;
            let files = listed.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
            let mut tables: Vec<PathBuf> =
                files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "toml")).collect();
            tables.sort();
            found.append(&mut tables);
        }
        if found.is_empty() { Err(Exit::usage("there is no table of measurements there")) } else { Ok(found) }
    }

    fn made(&self) -> String {
        let scale = if self.scale == 1.0 { String::new() } else { format!(" --scale {}", self.scale) };
        format!(
            "Made by `pickfs sim score{scale}` of pickfs {} on {}, one simulation of each cell. A later run writes this page anew.",
            env!("CARGO_PKG_VERSION"),
            jiff::Timestamp::now().strftime("%Y-%m-%d")
        )
    }

    /// `None`: stopped on request.
    fn done(&self, table: Table) -> Result<Option<Done<'_>>> {
        let name = table.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let journal = self.journals.join(format!("{name}.jsonl"));
        if !self.no_run {
            let mut plan = self.plan(&table)?;
            plan.jobs = self.jobs;
            if self.scale < 1.0 {
                plan.targets.iter_mut().try_for_each(|target| self.shrink_buffers(&mut target.machine))?;
            }
            if !self.simulated(&plan, &journal)? {
                return Ok(None);
            }
        }
        let folded = if journal.exists() { fold_file(&journal)? } else { Folded::default() };
        Ok(Some(Done { arguments: self, table, folded, journal }))
    }

    /// Of the rows whose file system pickfs knows.
    fn plan(&self, table: &Table) -> Result<Plan> {
        let folder = std::path::absolute(&table.file)?.parent().unwrap_or(Path::new("/")).to_path_buf();
        let is_known = |at: &usize| fs_of(table, *at).is_none_or(|name| fs::find(name).is_some());
        let rows: Vec<usize> = (0..table.words.rows.len()).filter(is_known).collect();
        table.words.plan(&rows, self.scale, &folder)
    }

    /// A built-in model gets buffers in proportion to the files; the user's own model does not
    /// change.
    fn shrink_buffers(&self, machine: &mut Settings) -> Result<()> {
        let Some((name, disk)) =
            machine.text("disk").and_then(|name| Some((name.to_string(), pickfs_disks::find(name)?)))
        else {
            return Ok(());
        };
        let smaller = disk.with_buffers(self.scale)?;
        if smaller.parameters == disk.parameters {
            return Ok(());
        }
        let folder = std::path::absolute(&self.journals)?;
        let file = folder.join(format!("{name}-{}.toml", self.scale));
        let about = format!("{}; its buffers times {}, as the files of a score card", disk.about, self.scale);
        let text = toml::to_string(&Disk { about, ..smaller })?;
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text));
        written.with_context(|| format!("cannot write {}", file.display()))?;
        machine.0.insert("disk".into(), file.display().to_string().into());
        Ok(())
    }

    /// Every cell of the plan has ended; false where that was stopped on request.
    fn simulated(&self, plan: &Plan, journal: &Path) -> Result<bool> {
        let mut progress = run::for_people();
        let finish = if journal.exists() {
            let folded = fold_file(journal)?;
            let is_same =
                folded.run.as_ref().is_some_and(|run| run.plan.works == plan.works && run.plan.targets == plan.targets);
            if !is_same {
                return Err(Exit::usage(format!(
                    "{} is of another table or --scale: give another folder with --journals, or --no-run to score it",
                    journal.display()
                )));
            }
            let ended = folded.cells.iter().filter(|cell| cell.outcome.is_some()).count();
            if ended >= plan.targets.len() * plan.works.len() {
                return Ok(true);
            }
            run::resume(journal, &[], Trust::Own, StopChange::default(), executor::ALL, progress.as_mut())?
        } else {
            tell(&format!("simulating {}", plan.title));
            programs::agreed(plan, &Source::Own, false)?;
            std::fs::create_dir_all(&self.journals)
                .with_context(|| format!("cannot make {}", self.journals.display()))?;
            run::begin(plan, &[], executor::ALL, journal, progress.as_mut())?
        };
        Ok(finish != Finish::Stopped)
    }
}

/// Whether a share of its files needs a share of its buffers.
fn has_buffers(disk: Disk) -> bool {
    disk.with_buffers(0.5).is_ok_and(|smaller| smaller.parameters != disk.parameters)
}

fn fs_of(table: &Table, row: usize) -> Option<&str> {
    table.words.rows[row].target.get("fs").and_then(|name| name.as_str())
}

impl Done<'_> {
    fn scored(&self) -> Result<Scored> {
        let (figures, left_out) = self.figures()?;
        let misses = score(&figures).misses;
        let heading = self.table.words.heading.clone();
        Ok(Scored {
            title: heading.title,
            source: heading.source,
            licence: heading.licence,
            note: heading.note,
            simulated: self.stand_ins()?,
            columns: self.table.words.columns.iter().map(column).collect(),
            reasons: misses.iter().map(|miss| self.reason(miss)).collect::<Result<_>>()?,
            figures,
            left_out,
        })
    }

    /// With what could not be simulated.
    fn figures(&self) -> Result<(Vec<Costs>, Vec<String>)> {
        let (words, mut figures, mut left_out) = (&self.table.words, Vec::new(), Vec::new());
        if self.folded.cells.is_empty() {
            return Ok((figures, vec![format!("all of it: there is no {} yet", file_name(&self.journal))]));
        }
        for (at, published) in self.table.published.iter().enumerate() {
            let row = &words.rows[at];
            for (number, column) in words.columns.iter().enumerate() {
                let Some(value) = published.get(&column.name) else { continue };
                match self.value(at, number)? {
                    Ok(found) => {
                        let published = if column.better == Better::Higher { 1.0 / value } else { *value };
                        let (column, row) = (column.name.clone(), row.name.clone());
                        figures.push(Costs { column, row, published, simulated: found });
                    }
                    Err(why) => left_out.push(format!("{}, {}: {why}", row.name, column.name)),
                }
            }
        }
        Ok((figures, left_out))
    }

    /// The cost, or why there is none.
    fn value(&self, row: usize, column: usize) -> Result<Result<f64, String>> {
        if let Some(name) = fs_of(&self.table, row).filter(|name| fs::find(name).is_none()) {
            return Ok(Err(format!("pickfs has no file system `{name}`")));
        }
        let words = &self.table.words;
        let (target, work) = (&words.rows[words.stands_for(row)?].name, words.work_of(column));
        let column = &words.columns[column];
        let cells = self.folded.cells.iter().filter(|cell| cell.target == *target && cell.work == work);
        let (mut values, mut reasons) = (Vec::new(), Vec::new());
        for cell in cells {
            match &cell.outcome {
                Some(Ended::Done) => {
                    let samples = self.folded.samples(cell);
                    let is_it =
                        |(phase, metric, _): &(&str, &str, f64)| *phase == column.phase && *metric == column.metric;
                    values.extend(samples.filter(is_it).map(|(_, _, value)| value));
                }
                Some(Ended::Skipped(why)) => reasons.extend(why.iter().cloned()),
                Some(Ended::Failed(why)) => reasons.push(why.clone()),
                None => {}
            }
        }
        Ok(match median(&values).filter(|value| *value > 0.0) {
            Some(value) if metric::better(&column.metric) == metric::Better::More => Ok(1.0 / value),
            Some(value) => Ok(value),
            None if reasons.is_empty() && values.is_empty() => {
                Err(format!("no {} of the phase {} was measured", column.metric, column.phase))
            }
            None => Err(reasons.join("; ")),
        })
    }

    /// A line for each drive with its kernel.
    fn stand_ins(&self) -> Result<Vec<String>> {
        let words = &self.table.words;
        let mut lines: Vec<String> = Vec::new();
        for (row, Machine { disk, kernel, processors }) in words.rows.iter().zip(words.machines()?) {
            let drive = row.drive.as_ref().or(words.heading.drive.as_ref()).map_or("", |drive| drive);
            let version = row.kernel.as_ref().or(words.heading.kernel.as_ref()).map_or("", |kernel| kernel);
            let processors = processors.map(|number| format!(", {number} processors")).unwrap_or_default();
            let line = format!("{drive}, Linux {version}{processors}: simulated as {disk}, kernel of {kernel}");
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let scale = self.arguments.scale;
        if scale != 1.0 && words.columns.iter().any(|column| column.scaled().is_some()) {
            let buffers =
                words.machines()?.iter().filter_map(|machine| pickfs_disks::find(&machine.disk)).any(has_buffers);
            let too = [(words.heading.memory.is_some(), "the memory"), (buffers, "the buffers of the hard disk")];
            let too: String = too.iter().filter(|(is, _)| *is).map(|(_, name)| format!(", and {name} too")).collect();
            lines.push(format!("{scale} times the files that were published{too}"));
        }
        Ok(lines)
    }

    /// Two rows of the same model, or what `pickfs why` says where that is at hand.
    fn reason(&self, miss: &Miss) -> Result<Option<String>> {
        let words = &self.table.words;
        let row = |name: &str| words.rows.iter().position(|row| row.name == name).context("a row of the table");
        let column = words.columns.iter().position(|column| column.name == miss.column).context("a column")?;
        let [one, other] = [words.stands_for(row(&miss.rows[0])?)?, words.stands_for(row(&miss.rows[1])?)?];
        if one == other {
            return Ok(Some(format!("both are simulated as {}", words.machines()?[one].disk)));
        }
        let pair = [one, other].map(|at| words.rows[at].name.clone());
        let name = format!("{}.{}.{}.json", miss.column, pair[0], pair[1]).replace(['/', ' '], "-");
        let file = self.journal.with_extension("why").join(name);
        if self.arguments.why && !file.exists() {
            std::fs::create_dir_all(self.journal.with_extension("why"))?;
            why::Arguments::of_pair(&self.journal, pair, &words.columns[column].phase, &file).run()?;
        }
        let of_table = words.heading.reasons.iter().find(|reason| reason.explains(miss));
        match of_table {
            Some(reason) => Ok(Some(reason.says.clone())),
            None if file.exists() => sentence(&file, words.work_of(column)),
            None => Ok(None),
        }
    }
}

impl Reason {
    fn explains(&self, miss: &Miss) -> bool {
        self.column == miss.column && miss.rows.iter().any(|row| self.rows.contains(row))
    }
}

fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn column(column: &super::table::Column) -> Column {
    let super::table::Column { name, about, unit, better, .. } = column.clone();
    Column { name, about, unit, is_rate: better == Better::Higher }
}

/// Of what `pickfs why --format json` wrote.
fn sentence(file: &Path, work: &str) -> Result<Option<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Ok(found) = serde_json::from_str::<Value>(&text) else {
        bail!("{} is not what `pickfs why` writes; remove it", file.display());
    };
    let differences = found["differences"].as_array().into_iter().flatten();
    let sentences = differences.filter(|one| one["work"] == work).filter_map(|one| one["sentence"].as_str());
    Ok(sentences.map(String::from).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_that_comes_with_pickfs_makes_a_plan() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/score-card");
        let journals = PathBuf::from("journals");
        let score =
            Score { tables: vec![folder], journals, no_run: true, scale: 0.01, jobs: 1, why: false, output: None };
        let files = score.files().expect("tables");
        assert!(files.len() >= 3, "{files:?}");
        for file in files {
            let table = Table::read(&file).expect("a table");
            let plan = score.plan(&table).expect("a plan");
            assert!(plan.targets.len() > 3 && plan.executor == "sim", "{}", file.display());
        }
        assert!(!Path::new("journals").exists(), "a plan alone writes nothing");
    }
}
