//! How the files of a surveyed tree compress: pieces of sampled files, in groups of like sizes and
//! like compressibility.
//!
//! Bytes decide: how much is read of a range of sizes depends on the bytes that its files hold
//! together, and each piece stands for its share of them. The effort does not grow with the tree.

use crate::codec::{Meter, PIECE, Ratios};
use crate::parallel;
use crate::profile::{Contents, Kind};
use crate::read_full;
use crate::scan::sketch::Sample;
use crate::scan::survey::{Range, Survey, Tally, range_end};
use pickfs_system::random::Random;
use rustix::fs::SeekFrom;
use std::collections::BTreeMap;
use std::fs::File;

/// Read in all, about.
const BUDGET: f64 = (64 << 20) as f64;
/// What opening a file costs, in bytes that could be measured meanwhile.
const OPENING: f64 = (8 << 10) as f64;
/// Sizes that file systems treat alike: inline, one block, a few, one piece, more.
const LIMITS: [u64; 6] = [2 << 10, 4 << 10, 16 << 10, 128 << 10, 1 << 20, u64::MAX];
/// Kinds with a smaller share of the bytes are not divided by size.
const NEGLIGIBLE: f64 = 0.003;
/// Groups of one kind and range of sizes.
const GROUPS: usize = 5;
/// Neighbours whose ratios are all nearer than this are one group.
const SAME: f64 = 0.02;

/// What was measured: by kind and index in [`LIMITS`], groups that differ.
#[derive(Default)]
pub(crate) struct Measured(BTreeMap<(Kind, usize), Vec<Group>>);

/// Reads and measures, a bounded number of pieces.
pub(crate) fn measure(survey: &Survey, threads: usize) -> Measured {
    let jobs = jobs(survey);
    let measured = parallel::map(threads, &jobs, Reader::default, |reader, job| reader.measure(survey, job));
    let read = read(&jobs, &measured);
    let mut cells: BTreeMap<(Kind, usize), Vec<Group>> = BTreeMap::new();
    for (job, pieces) in jobs.iter().zip(&measured) {
        let each = job.bytes / read[&(job.kind, job.range)].max(1) as f64;
        let group = |(length, ratios): &(usize, Ratios)| Group::new(each * *length as f64, *ratios);
        cells.entry((job.kind, job.limit)).or_default().extend(pieces.iter().map(group));
    }
    cells.retain(|_, groups| !groups.is_empty());
    cells.values_mut().for_each(join_alike);
    Measured(cells)
}

impl Measured {
    /// Groups of each kind, by size: at most `rows` in all, as far as kinds and ranges of sizes
    /// allow.
    pub(crate) fn contents(&self, survey: &Survey, rows: usize) -> BTreeMap<Kind, Vec<Contents>> {
        let mut cells = self.0.clone();
        join_least(&mut cells, rows);
        survey.kinds.iter().map(|(kind, tally)| (*kind, contents(&cells, *kind, tally))).collect()
    }
}

/// One file to be read.
struct Job<'a> {
    kind: Kind,
    range: usize,
    /// Index in [`LIMITS`].
    limit: usize,
    /// Bytes of all files of the kind in the range.
    bytes: f64,
    sample: &'a Sample,
    pieces: usize,
}

fn jobs(survey: &Survey) -> Vec<Job<'_>> {
    let all = survey.bytes().max(1) as f64;
    let ranges = || survey.kinds.values().flat_map(|tally| tally.ranges.values());
    let roots: f64 = ranges().map(|range| (range.bytes as f64 / all).sqrt()).sum();
    let mut jobs = Vec::new();
    for (kind, tally) in &survey.kinds {
        let negligible = (tally.bytes as f64) < NEGLIGIBLE * all;
        for (index, range) in tally.ranges.iter().filter(|(index, _)| **index > 0) {
            let share = range.bytes as f64 / all;
            let budget = BUDGET * (0.6 * share + 0.4 * share.sqrt() / roots.max(1e-9));
            let limit = if negligible { LIMITS.len() - 1 } else { limit_of(range_end(*index)) };
            jobs.extend(drawn(range, *index, budget).map(|(sample, pieces)| Job {
                kind: *kind,
                range: *index,
                limit,
                bytes: range.bytes as f64,
                sample,
                pieces,
            }));
        }
    }
    jobs
}

fn limit_of(size: u64) -> usize {
    LIMITS.iter().position(|limit| size <= *limit).unwrap_or(LIMITS.len() - 1)
}

/// Files of a range and how many pieces to read of each: many files rather than much of one.
fn drawn(range: &Range, index: usize, budget: f64) -> impl Iterator<Item = (&Sample, usize)> {
    let pieces = (budget / (OPENING + range_end(index).min(PIECE as u64) as f64)).ceil().max(2.0) as usize;
    let files = pieces.min(range.samples.len()).max(1);
    let each = pieces.div_ceil(files);
    range.samples.iter().take(files).map(move |sample| (sample, each.min(sample.size.div_ceil(PIECE as u64) as usize)))
}

/// Bytes that were measured of each kind and range.
fn read(jobs: &[Job], measured: &[Vec<(usize, Ratios)>]) -> BTreeMap<(Kind, usize), usize> {
    let mut read = BTreeMap::new();
    for (job, pieces) in jobs.iter().zip(measured) {
        *read.entry((job.kind, job.range)).or_default() += pieces.iter().map(|(length, _)| length).sum::<usize>();
    }
    read
}

#[derive(Default)]
struct Reader {
    meter: Meter,
    buffer: Vec<u8>,
}

impl Reader {
    /// Bytes and ratios of some pieces of a file; none when it cannot be read (any more), or is all
    /// holes.
    fn measure(&mut self, survey: &Survey, job: &Job) -> Vec<(usize, Ratios)> {
        let Ok(file) = survey.open(job.sample) else { return Vec::new() };
        let mut random = Random::new(job.sample.rank, 0);
        let all = job.sample.size.div_ceil(PIECE as u64);
        let place = |piece: usize| {
            let (from, to) = (all * piece as u64 / job.pieces as u64, all * (piece as u64 + 1) / job.pieces as u64);
            (from + random.below((to - from).max(1))) * PIECE as u64
        };
        let places: Vec<u64> = (0..job.pieces).map(place).collect();
        places.into_iter().filter_map(|place| self.piece(&file, place)).collect()
    }

    fn piece(&mut self, file: &File, place: u64) -> Option<(usize, Ratios)> {
        self.buffer.resize(PIECE, 0);
        let place = data_from(file, place)?;
        let length = read_full(file, &mut self.buffer, place).ok()?;
        (length > 0).then(|| (length, self.meter.ratios(&self.buffer[..length])))
    }
}

/// The place itself, or the next that is not in a hole, or the first of the file.
fn data_from(file: &File, place: u64) -> Option<u64> {
    let seek = |place| rustix::fs::seek(file, SeekFrom::Data(place));
    match seek(place).or_else(|_| seek(0)) {
        Ok(data) => Some(data & !4095),
        Err(rustix::io::Errno::INVAL) => Some(place), // a file system that knows no holes
        Err(_) => None,
    }
}

/// Pieces that are described together.
#[derive(Clone)]
struct Group {
    /// Bytes of the tree that it stands for.
    bytes: f64,
    /// Mean ratios, in the order of [`Ratios`].
    ratios: [f64; 5],
}

impl Group {
    fn new(bytes: f64, ratios: Ratios) -> Group {
        Group { bytes, ratios: [ratios.lzo, ratios.lz4, ratios.zlib, ratios.zstd1, ratios.zstd3] }
    }

    /// The growth of the sum of squares when two become one (Ward 1963).
    fn cost(&self, other: &Group) -> f64 {
        let weight = self.bytes * other.bytes / (self.bytes + other.bytes).max(f64::MIN_POSITIVE);
        weight * self.ratios.iter().zip(&other.ratios).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
    }

    fn is_like(&self, other: &Group) -> bool {
        self.ratios.iter().zip(&other.ratios).all(|(a, b)| (a - b).abs() < SAME)
    }

    fn join(&mut self, other: &Group) {
        let all = (self.bytes + other.bytes).max(f64::MIN_POSITIVE);
        let mean = |(own, ratio): (&mut f64, &f64)| *own = (*own * self.bytes + ratio * other.bytes) / all;
        self.ratios.iter_mut().zip(&other.ratios).for_each(mean);
        self.bytes = all;
    }

    fn ratios(&self) -> Ratios {
        let [lzo, lz4, zlib, zstd1, zstd3] = self.ratios;
        Ratios { lzo, lz4, zlib, zstd1, zstd3 }
    }
}

/// By zstd, neighbours become one until there are few and they differ.
fn join_alike(groups: &mut Vec<Group>) {
    groups.sort_by(|a, b| a.ratios[4].total_cmp(&b.ratios[4]));
    while let Some((_, index)) = cheapest(groups) {
        if groups.len() <= GROUPS && !groups[index].is_like(&groups[index + 1]) {
            break;
        }
        join_at(groups, index);
    }
}

/// The pair of neighbours whose joining loses least: what it costs, and the index of the first.
fn cheapest(groups: &[Group]) -> Option<(f64, usize)> {
    let costs = groups.windows(2).enumerate().map(|(index, pair)| (pair[0].cost(&pair[1]), index));
    costs.min_by(|a, b| a.0.total_cmp(&b.0))
}

fn join_at(groups: &mut Vec<Group>, index: usize) {
    let next = groups.remove(index + 1);
    groups[index].join(&next);
}

/// Joins the most similar groups until at most `rows` are left, or one of each kind and range.
fn join_least(cells: &mut BTreeMap<(Kind, usize), Vec<Group>>, rows: usize) {
    while cells.values().map(Vec::len).sum::<usize>() > rows {
        let costs = cells.values_mut().filter_map(|groups| cheapest(groups).map(|(cost, index)| (cost, index, groups)));
        let Some((_, index, groups)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else { return };
        join_at(groups, index);
    }
}

/// The groups of a kind. Sizes of which nothing could be read go with the next larger ones, or the
/// largest that were.
fn contents(cells: &BTreeMap<(Kind, usize), Vec<Group>>, kind: Kind, tally: &Tally) -> Vec<Contents> {
    let largest = tally.largest.first().copied().unwrap_or(0);
    let own: Vec<(usize, &Vec<Group>)> =
        cells.iter().filter(|(key, _)| key.0 == kind).map(|(key, groups)| (key.1, groups)).collect();
    let mut from = 0;
    let mut contents = Vec::new();
    for (place, (limit, groups)) in own.iter().enumerate() {
        let to = if place + 1 == own.len() { largest.max(from) } else { LIMITS[*limit] };
        let all: f64 = groups.iter().map(|group| group.bytes).sum();
        let row = |group: &Group| Contents {
            sizes: (from, to),
            share: group.bytes / all,
            like: None,
            ratios: group.ratios(),
        };
        contents.extend(groups.iter().map(row));
        from = to.saturating_add(1);
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;
    use crate::profile::Stuff;
    use crate::scan::walk::Options;
    use std::path::Path;

    fn group(bytes: f64, ratio: f64) -> Group {
        Group { bytes, ratios: [ratio; 5] }
    }

    fn shares(groups: &[Group]) -> Vec<(f64, f64)> {
        groups.iter().map(|group| (group.bytes, (group.ratios[0] * 1000.0).round() / 1000.0)).collect()
    }

    #[test]
    fn groups_are_told_apart_where_they_differ() {
        type Groups<'a> = &'a [(f64, f64)];
        let cases: [(&[f64], Groups); 3] = [
            (&[0.5, 0.501, 0.499], &[(3.0, 0.5)]),
            (&[1.0, 0.2, 1.0, 0.2, 1.0], &[(2.0, 0.2), (3.0, 1.0)]),
            (
                &[0.1, 0.13, 0.3, 0.33, 0.5, 0.7, 0.9, 0.93],
                &[(2.0, 0.115), (2.0, 0.315), (1.0, 0.5), (1.0, 0.7), (2.0, 0.915)],
            ),
        ];
        for (ratios, wanted) in cases {
            let mut groups: Vec<Group> = ratios.iter().map(|ratio| group(1.0, *ratio)).collect();
            join_alike(&mut groups);
            assert_eq!(shares(&groups), wanted);
        }
    }

    #[test]
    fn what_weighs_least_is_joined_first() {
        let mut cells = BTreeMap::from([
            ((Kind::Source, 0), vec![group(1000.0, 0.2), group(1000.0, 0.4)]),
            ((Kind::Other, 0), vec![group(1.0, 0.1), group(1.0, 0.9)]),
        ]);
        join_least(&mut cells, 3);
        assert_eq!(shares(&cells[&(Kind::Other, 0)]), [(2.0, 0.5)]);
        join_least(&mut cells, 1);
        assert_eq!(cells.values().map(Vec::len).sum::<usize>(), 2, "a group of each stays");
    }

    /// Two sizes of text, and media: text shrinks, media does not, and a file of holes is nothing.
    fn tree(root: &Path) {
        let mut content = Content::new();
        let mut write = |name: String, stuff, bytes| {
            let made = content.like(stuff, &mut Random::new(name.len() as u64, bytes as u64), bytes);
            std::fs::write(root.join(name), made).unwrap();
        };
        (0..20).for_each(|number| write(format!("{number}.c"), Stuff::Source, 3000 + number));
        (0..4).for_each(|number| write(format!("{number}.h"), Stuff::Source, 300_000 + number));
        (0..4).for_each(|number| write(format!("{number}.jpg"), Stuff::Media, 600_000 + number));
        File::create(root.join("hole.jpg")).unwrap().set_len(10 << 40).unwrap();
    }

    #[test]
    fn text_shrinks_and_media_do_not_and_holes_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        tree(folder.path());
        let survey = crate::scan::survey::survey(folder.path(), &Options::default()).unwrap();
        let contents = measure(&survey, 2).contents(&survey, 80);
        let zstd: Vec<f64> = contents[&Kind::Image].iter().map(|row| row.ratios.zstd3).collect();
        assert!(zstd.len() == 1 && zstd[0] > 0.99, "{zstd:?}");
        let total: f64 = contents[&Kind::Image].iter().map(|row| row.share).sum();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        // Sources are less than 0.3 % of the bytes because of the hole, so they are not divided by
        // size.
        assert!(contents[&Kind::Source].iter().all(|row| row.ratios.zstd3 < 0.6 && row.sizes == (0, 300_003)));
    }
}
