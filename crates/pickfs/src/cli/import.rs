//! `pickfs import`: results of other programs as a journal.

use super::{Outcome, Verb, there};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use pickfs_core::journal::{Journal, Record};
use pickfs_host::import::{self, File, Wanted};
use pickfs_host::run::tell;
use std::path::{Path, PathBuf};

/// Read results of other programs (fio, bonnie++, pgbench, hyperfine, Phoronix) into a journal
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files to read, or a folder of them; NAME=FILE names the target of what does not name one itself (else the file's name does)
    #[arg(required = true, value_name = "[NAME=]FILE")]
    files: Vec<String>,
    /// The journal to write
    #[arg(long, short, value_name = "JOURNAL")]
    output: PathBuf,
    /// What the files are (`pickfs list imports`); by default detected from the content
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(import::ALL.iter().map(|one| one.name())))]
    from: Option<String>,
    /// The n-th file of each name is its n-th round: they were measured in turn, one of each
    #[arg(long)]
    rounds: bool,
}

/// A file on disk, with its label.
struct Given {
    label: String,
    path: PathBuf,
    text: String,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs import fio.json -o fio.jsonl", "one result, its format is detected"],
        ["pickfs import results -o run.jsonl", "all files of a folder, such as tables with rounds"],
        ["pickfs import ext4=a.csv xfs=b.csv -o both.jsonl", "two results of bonnie++, side by side"],
    ];
    fn run(&self) -> Outcome {
        let given = self.files.iter().map(|word| files(word)).collect::<Result<Vec<_>>>()?.concat();
        let given = given.iter().map(|word| read(word)).collect::<Result<Vec<_>>>()?;
        let names: Vec<String> = given.iter().map(|file| file.path.display().to_string()).collect();
        let files: Vec<File> =
            given.iter().zip(&names).map(|(file, name)| File { label: &file.label, name, text: &file.text }).collect();
        let wanted = Wanted { from: self.from.as_deref(), rounds: self.rounds };
        let records = import::records(&files, wanted)?;
        let mut journal = Journal::create(&self.output)?;
        if let Err(error) = records.iter().try_for_each(|record| journal.append(record)) {
            let _ = std::fs::remove_file(&self.output);
            return Err(error);
        }
        let values = records.iter().filter(|record| matches!(record, Record::Sample(_))).count();
        let shown = self.output.display();
        tell(&format!("{values} values in {shown}; `pickfs report {shown}` shows them"));
        Ok(0)
    }
}

/// Those of a folder, by name; what lies in folders within is no result of this one.
fn files(word: &str) -> Result<Vec<String>> {
    if !Path::new(word).is_dir() {
        return Ok(vec![word.to_string()]);
    }
    let entries = std::fs::read_dir(word).with_context(|| format!("cannot list {word}"))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let mut files: Vec<String> =
        paths.iter().filter(|path| path.is_file()).map(|path| path.to_string_lossy().into_owned()).collect();
    files.sort_unstable();
    Ok(files)
}

/// A file that is there is never taken for NAME=FILE.
fn read(word: &str) -> Result<Given> {
    let (label, path) = match word.split_once('=') {
        Some((label, path)) if !Path::new(word).exists() => (Some(label), Path::new(path)),
        _ => (None, Path::new(word)),
    };
    let bytes = std::fs::read(there(path)?).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.is_empty() {
        bail!("{} is empty", path.display());
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Given {
        label: label.map_or(stem, String::from),
        path: path.to_path_buf(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}
