//! Predicts what file systems would store for a tree, by compressing a sample of it, without making
//! one.
//!
//! A [survey](crate::scan) counts kinds and sizes of all files, and draws some of each. Rounds read
//! more and more of these until the intervals are narrow, or time is up; each round goes where it
//! narrows them most. The draw depends on a fixed seed and the files' names, and not on threads.
//! This room must not know plans, journals or how a benchmark runs, and does not print.

#![expect(clippy::disallowed_methods, reason = "a prediction ends when its time is over")]

pub mod advice;
pub mod estimate;
pub(crate) mod file;
pub mod rules;

use crate::predict::rules::{CODECS, STORAGE_OPTIONS, StorageOption};
use crate::scan::sketch::Sample;
use crate::scan::survey::{self, Range, Survey};
use crate::scan::walk::{FORBIDDEN, Problems, UNREADABLE, VANISHED};
use estimate::{Amount, Drawn, Estimate, Part, Stratum};
use file::{Contents, Reader};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How much to read.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Half the width of the widest interval that is good enough, as a share of the tree's data.
    pub half_width: f64,
    /// No file is begun after it.
    pub time: Duration,
    pub threads: usize,
}

impl Effort {
    /// Good enough when the widest interval is ±0.8 points, and over in seconds.
    pub fn usual(threads: usize) -> Effort {
        Effort { half_width: 0.008, time: Duration::from_secs(10), threads }
    }
}

/// Files of each stratum, and pieces of each file after the first, that the first round reads.
const FIRST_FILES: usize = 6;
const FIRST_PIECES: u64 = 4;
/// A round grows the strata that make up so much of the variance.
const WORTH_GROWING: f64 = 0.9;

/// What is estimated of each file: data outside holes, then for each way bytes on disk and the same
/// uncompressed.
const QUANTITIES: usize = 1 + 2 * STORAGE_OPTIONS.len();
type Amounts = [Amount; QUANTITIES];

pub struct Prediction {
    pub files: u64,
    /// The sum of their sizes.
    pub apparent: u64,
    /// Without holes.
    pub data: Estimate,
    pub ways: Vec<Predicted>,
    /// Bytes per second of one processor, by codec in the order of [`CODECS`]; none where too
    /// little was compressed.
    pub speeds: [Option<f64>; CODECS.len()],
    pub files_read: u64,
    pub bytes_read: u64,
    pub problems: Problems,
}

/// The prediction for one way to store.
#[derive(Clone, Copy, Debug)]
pub struct Predicted {
    pub way: StorageOption,
    pub stored: Estimate,
    /// What compsize calls uncompressed.
    pub plain: Estimate,
}

/// One stratum while it is being sampled.
struct Layer<'a> {
    range: &'a Range,
    samples: Vec<&'a Sample>,
    /// Number of samples to read, and of pieces to read from each after the first.
    files: usize,
    pieces: u64,
    seen: BTreeMap<usize, SampledFile>,
}

/// A sampled file.
#[derive(Clone, Copy)]
struct SampledFile {
    size: f64,
    amounts: Amounts,
    /// Pieces asked for, without the first; all that there are if it was read whole.
    pieces: u64,
    whole: bool,
}

/// One file to read: its layer, its place there, pieces without the first.
#[derive(Clone, Copy)]
struct Task {
    layer: usize,
    sample: usize,
    pieces: u64,
}

pub fn predict(survey: &Survey, effort: &Effort) -> Prediction {
    let end = Instant::now() + effort.time;
    let mut layers = layers(survey);
    let mut readers: Vec<Reader> = (0..effort.threads.max(1)).map(|_| Reader::default()).collect();
    let mut problems = survey.problems.clone();
    let mut tasks = open_tasks(&layers);
    while !tasks.is_empty() && Instant::now() < end {
        for (task, outcome) in read_all(survey, &layers, &tasks, &mut readers, end) {
            layers[task.layer].note(&task, outcome, &mut problems);
        }
        tasks = if grow(&mut layers, effort.half_width) { open_tasks(&layers) } else { Vec::new() };
    }
    conclude(survey, &layers, &readers, problems)
}

/// Strata with the most bytes first, which is where time should go if there is little.
fn layers(survey: &Survey) -> Vec<Layer<'_>> {
    let ranges = survey.kinds.values().flat_map(|tally| tally.ranges.values()).filter(|range| range.bytes > 0);
    let layer = |range| -> Layer { Layer::new(range) };
    let mut layers: Vec<Layer> = ranges.map(layer).collect();
    layers.sort_by_key(|layer| std::cmp::Reverse(layer.range.bytes));
    layers
}

impl<'a> Layer<'a> {
    fn new(range: &'a Range) -> Layer<'a> {
        let samples = range.samples.iter().collect();
        Layer { range, samples, files: FIRST_FILES, pieces: FIRST_PIECES, seen: BTreeMap::new() }
    }

    fn note(&mut self, task: &Task, outcome: io::Result<Contents>, problems: &mut Problems) {
        match outcome {
            Ok(contents) => {
                self.seen.insert(task.sample, SampledFile::of(&contents, task.pieces));
            }
            Err(error) => {
                self.samples.get(task.sample).iter().for_each(|sample| complain(problems, sample, &error));
                self.seen.remove(&task.sample);
            }
        }
    }

    /// By size, as the file system counts it.
    fn stratum(&self, quantity: usize) -> Stratum {
        let way = quantity.checked_sub(1).map(|amount| &STORAGE_OPTIONS[amount / 2]);
        let in_records = way.is_some_and(|way| way.rules.in_records);
        let size =
            |seen: &SampledFile| if in_records { survey::in_records(seen.size as u64) as f64 } else { seen.size };
        let drawn = self.seen.values().map(|seen| Drawn { size: size(seen), amount: seen.amounts[quantity] }).collect();
        let bytes = if in_records { self.range.in_records } else { self.range.bytes };
        Stratum { files: self.range.files as f64, bytes: bytes as f64, drawn }
    }
}

fn complain(problems: &mut Problems, sample: &Sample, error: &io::Error) {
    match error.kind() {
        io::ErrorKind::NotFound => problems.add(VANISHED, &sample.path, ""),
        io::ErrorKind::PermissionDenied => problems.add(FORBIDDEN, &sample.path, ""),
        _ => problems.add(UNREADABLE, &sample.path, &error.to_string()),
    }
}

impl SampledFile {
    fn of(contents: &Contents, pieces: u64) -> SampledFile {
        let mut amounts = [Amount::default(); QUANTITIES];
        amounts[0].bytes = contents.data as f64;
        for (index, way) in STORAGE_OPTIONS.iter().enumerate() {
            let stored = way.pieces(contents.bytes, &contents.pieces);
            amounts[1 + 2 * index] = amount(contents, stored.iter().map(|stored| stored.disk));
            amounts[2 + 2 * index] = amount(contents, stored.iter().map(|stored| stored.plain));
        }
        let whole = contents.pieces.len() as u64 >= contents.count;
        SampledFile { size: contents.bytes as f64, amounts, pieces, whole }
    }
}

fn amount(contents: &Contents, stored: impl Iterator<Item = u64>) -> Amount {
    let pairs = contents.pieces.iter().zip(stored).map(|(piece, stored)| (piece.bytes as f64, stored as f64));
    estimate::of_file(contents.data as f64, contents.count as usize, &pairs.collect::<Vec<_>>())
}

/// What the layers want and do not have. One file of each layer, then the next of each: time may be
/// up before the end.
fn open_tasks(layers: &[Layer]) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (layer, wants) in layers.iter().enumerate() {
        for sample in 0..wants.files.min(wants.samples.len()) {
            let enough = wants.seen.get(&sample).is_some_and(|seen| seen.whole || seen.pieces >= wants.pieces);
            if !enough {
                tasks.push(Task { layer, sample, pieces: wants.pieces });
            }
        }
    }
    tasks.sort_by_key(|task| (task.sample, task.layer));
    tasks
}

/// Threads take one task after the other.
fn read_all(
    survey: &Survey,
    layers: &[Layer],
    tasks: &[Task],
    readers: &mut [Reader],
    end: Instant,
) -> Vec<(Task, io::Result<Contents>)> {
    let next = AtomicUsize::new(0);
    let work = |reader: &mut Reader| {
        let mut done = Vec::new();
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| Instant::now() < end) {
            let sample = layers[task.layer].samples[task.sample];
            let read = survey.open(sample).and_then(|file| reader.read(&file, task.pieces, sample.rank));
            done.push((*task, read));
        }
        done
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = readers.iter_mut().map(|reader| scope.spawn(|| work(reader))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread of the prediction panicked")).collect()
    })
}

/// Wants twice as much where it narrows the widest interval most; false where all are narrow, or
/// all is read.
fn grow(layers: &mut [Layer], enough: f64) -> bool {
    let data = estimate_of(layers, 0).1.bytes.max(1.0);
    let ways = (0..STORAGE_OPTIONS.len()).map(|way| estimate_of(layers, 1 + 2 * way));
    let widest = ways.max_by(|a, b| a.1.half_width.total_cmp(&b.1.half_width));
    let Some((parts, _)) = widest.filter(|(_, total)| total.half_width > enough * data) else { return false };
    let mut order: Vec<usize> = (0..layers.len()).collect();
    let variance = |part: &Part| part.between + part.within;
    order.sort_by(|a, b| variance(&parts[*b]).total_cmp(&variance(&parts[*a])));
    let all: f64 = parts.iter().map(variance).sum();
    let (mut covered, mut grown) = (0.0, false);
    for index in order {
        if covered < WORTH_GROWING * all && layers[index].grow(&parts[index]) {
            covered += variance(&parts[index]);
            grown = true;
        }
    }
    grown
}

impl Layer<'_> {
    /// False where there is no more.
    fn grow(&mut self, part: &Part) -> bool {
        let more_files = self.files < self.samples.len();
        let more_pieces = self.seen.values().any(|seen| !seen.whole);
        if more_files && (part.between >= part.within || !more_pieces) {
            self.files *= 2;
        } else if more_pieces && part.within > 0.0 {
            self.pieces *= 2;
        }
        more_files || (more_pieces && part.within > 0.0)
    }
}

fn estimate_of(layers: &[Layer], quantity: usize) -> (Vec<Part>, Estimate) {
    let strata: Vec<Stratum> = layers.iter().map(|layer| layer.stratum(quantity)).collect();
    let parts = estimate::parts(&strata);
    let total = estimate::total(&parts);
    (parts, total)
}

fn conclude(survey: &Survey, layers: &[Layer], readers: &[Reader], problems: Problems) -> Prediction {
    let estimate = |quantity| estimate_of(layers, quantity).1;
    let predicted = |(index, way): (usize, &StorageOption)| Predicted {
        way: *way,
        stored: estimate(1 + 2 * index),
        plain: estimate(2 + 2 * index),
    };
    let bytes_read = readers.iter().map(|reader| reader.measured).sum();
    let spent = |codec: usize| readers.iter().map(|reader| reader.spent[codec]).sum::<u64>();
    let speed = |codec| (bytes_read >= 1 << 16).then(|| bytes_read as f64 / (spent(codec).max(1) as f64 / 1e9));
    Prediction {
        files: survey.files(),
        apparent: survey.bytes(),
        data: estimate(0),
        ways: STORAGE_OPTIONS.iter().enumerate().map(predicted).collect(),
        speeds: std::array::from_fn(speed),
        files_read: layers.iter().map(|layer| layer.seen.len() as u64).sum(),
        bytes_read,
        problems,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::walk::Options;

    /// More files than are sampled, in one range of sizes.
    #[test]
    fn what_zfs_does_not_compress_is_known_from_the_walk() {
        let folder = tempfile::tempdir().unwrap();
        let mut taken = 0;
        for number in 0..400 {
            let size = 4097 + number * 10;
            std::fs::write(folder.path().join(format!("{number}.txt")), "x".repeat(size)).unwrap();
            taken += size.next_multiple_of(4096);
        }
        let survey = crate::scan::survey::survey(folder.path(), &Options::default()).unwrap();
        let found = predict(&survey, &Effort { half_width: 1.0, ..Effort::usual(1) });
        let off =
            found.ways.iter().find(|ways| (ways.way.rules.filesystem, ways.way.option) == ("zfs", "off")).unwrap();
        assert!(found.files_read < 400, "{}", found.files_read);
        assert_eq!((off.stored.bytes.round(), off.stored.half_width), (taken as f64, 0.0));
        assert_eq!(off.plain, off.stored);
    }
}
