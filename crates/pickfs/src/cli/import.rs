//! `pickfs import`: results of other programs as a journal.

use super::{Outcome, Verb, there};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use pickfs_core::journal::{Journal, Record, typed};
use pickfs_host::import::{self, File, ImportOptions};
use pickfs_host::run::tell;
use std::path::{Path, PathBuf};

/// Read results of other programs (fio, bonnie++, pgbench, hyperfine, Phoronix,
/// modern-fs-benchmark) into a journal
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files to read, or a folder of them; NAME=FILE names the target of what does not name one
    /// itself (else the file's name does)
    #[arg(required = true, value_name = "[NAME=]FILE")]
    files: Vec<String>,
    /// The journal to write
    #[arg(long, short, value_name = "JOURNAL")]
    output: PathBuf,
    /// What the files are (`pickfs list imports`); by default detected from the content
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(import::ALL.iter().map(|one| one.name())))]
    from: Option<String>,
    /// The n-th file of each name is its n-th round, or each folder in a folder is one: they were
    /// measured in turn
    #[arg(long)]
    rounds: bool,
}

/// A file on disk, with its label.
#[derive(Clone)]
struct LabelledFile {
    label: String,
    path: PathBuf,
    text: String,
    round: Option<u32>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs import fio.json -o fio.jsonl", "one result, its format is detected"],
        ["pickfs import results -o run.jsonl", "all files of a folder, such as tables with rounds"],
        [
            "pickfs import runs --rounds -o run.jsonl",
            "a folder of folders, each of which holds the results of one round",
        ],
        ["pickfs import ext4=a.csv xfs=b.csv -o both.jsonl", "two results of bonnie++, side by side"],
    ];
    fn run(&self) -> Outcome {
        let given = self
            .files
            .iter()
            .map(|word| given(word, self.rounds, self.from.is_some()))
            .collect::<Result<Vec<_>>>()?
            .concat();
        let names: Vec<String> = given.iter().map(|file| file.path.display().to_string()).collect();
        let files: Vec<File> = given
            .iter()
            .zip(&names)
            .map(|(file, name)| File { label: &file.label, name, text: &file.text, round: file.round })
            .collect();
        let wanted = ImportOptions { from: self.from.as_deref(), rounds: self.rounds };
        let records = import::records(&files, wanted)?;
        let mut journal = Journal::create(&self.output)?;
        if let Err(error) = records.iter().try_for_each(|record| journal.append(record)) {
            let _ = std::fs::remove_file(&self.output);
            return Err(error);
        }
        let values = records.iter().filter(|record| matches!(record, Record::Sample(_))).count();
        let (shown, word) = (self.output.display(), typed(&self.output));
        tell(&format!("{values} values in {shown}; `pickfs report {word}` shows them"));
        Ok(0)
    }
}

/// A file, or those of a folder. Folders in it are rounds, in the order of the numbers in their
/// names.
fn given(word: &str, rounds: bool, has_format: bool) -> Result<Vec<LabelledFile>> {
    let folder = Path::new(word);
    if !folder.is_dir() {
        return Ok(vec![read(word, None)?]);
    }
    let within = sorted(folder)?.into_iter().filter(|path| path.is_dir()).collect::<Vec<_>>();
    if !rounds || within.is_empty() {
        return of_folder(folder, None, has_format);
    }
    let files = (1..).zip(&within).map(|(round, folder)| of_folder(folder, Some(round), has_format));
    Ok(files.collect::<Result<Vec<_>>>()?.concat())
}

/// Results of a folder. Phoronix keeps each result a second time next to `composite.xml`, and
/// pictures, which have no figures.
fn of_folder(folder: &Path, round: Option<u32>, has_format: bool) -> Result<Vec<LabelledFile>> {
    let composite = folder.join("composite.xml");
    let mut paths = sorted(folder)?;
    paths.retain(|path| path.is_file() && (!composite.exists() || *path == composite));
    let files = paths.iter().map(|path| read(&path.to_string_lossy(), round)).collect::<Result<Vec<_>>>()?;
    let (known, other): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| has_format || import::importer_by_looks(&file.text).is_some());
    for file in other {
        tell(&format!("left out: {}, whose format is not known", file.path.display()));
    }
    Ok(known)
}

/// What is in a folder, 9 before 10.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let digits = name.trim_start_matches(|first: char| !first.is_ascii_digit());
        let end = digits.find(|next: char| !next.is_ascii_digit()).unwrap_or(digits.len());
        (digits[..end].parse::<u64>().ok(), name)
    });
    Ok(paths)
}

/// A file that is there is never taken for NAME=FILE.
fn read(word: &str, round: Option<u32>) -> Result<LabelledFile> {
    let (label, path) = match word.split_once('=') {
        Some((label, path)) if !Path::new(word).exists() => (Some(label), Path::new(path)),
        _ => (None, Path::new(word)),
    };
    let bytes = std::fs::read(there(path)?).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.is_empty() {
        bail!("{} is empty", path.display());
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(LabelledFile {
        label: label.map_or(stem, String::from),
        path: path.to_path_buf(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
        round,
    })
}
