//! How many files repeat another, and how many bytes are holes: from samples that a survey drew.

use crate::parallel;
use crate::profile::Kind;
use crate::profile::kinds::kind;
use crate::scan::same_size::SizeGroup;
use crate::scan::sketch::Sample;
use crate::scan::survey::{Survey, Thin};
use rustix::fs::SeekFrom;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use xxhash_rust::xxh3::Xxh3;

/// Read in all, at most.
const FILES: usize = 1500;
const BYTES: u64 = 48 << 20;
/// If a file is longer than four of these, three are read: begin, middle and end.
const PART: u64 = 64 << 10;
/// Holes and data are followed so far in one file.
const STEPS: usize = 1000;

/// The share of the files of each kind that repeat another one.
pub(crate) fn repeated(survey: &Survey, threads: usize) -> BTreeMap<Kind, f64> {
    let sizes = affordable(survey.same_size.sizes());
    let digests = parallel::map(
        threads,
        &sizes,
        || vec![0; PART as usize],
        |buffer, group| {
            let of_several = group.samples.iter().filter(|_| group.samples.len() > 1);
            of_several.filter_map(|sample| digest(survey, sample, buffer)).collect::<Vec<_>>()
        },
    );
    let (mut files, mut repeats) = (BTreeMap::<Kind, f64>::new(), BTreeMap::<Kind, f64>::new());
    for (group, digests) in sizes.iter().zip(digests) {
        group.files.iter().for_each(|(kind, of_kind)| *files.entry(*kind).or_default() += *of_kind as f64);
        let stands_for = group.files.values().sum::<u64>() as f64 / group.samples.len().max(1) as f64;
        for kind in repeats_among(digests) {
            *repeats.entry(kind).or_default() += stands_for;
        }
    }
    let share = |(kind, repeats): (Kind, f64)| (kind, (repeats / files.get(&kind).copied().unwrap_or(1.0)).min(1.0));
    repeats.into_iter().map(share).collect()
}

/// As many sizes as may be read. They come in random order, so that these are a sample of all.
fn affordable(sizes: Vec<&SizeGroup>) -> Vec<&SizeGroup> {
    let (mut files, mut bytes) = (0, 0);
    let fits = |group: &&SizeGroup| {
        let several = if group.samples.len() > 1 { group.samples.len() } else { 0 };
        files += several;
        bytes += several as u64 * group.size.min(4 * PART);
        files <= FILES && bytes <= BYTES
    };
    sizes.into_iter().take_while(fits).collect()
}

/// The kinds of digests that repeat one before them.
fn repeats_among(mut digests: Vec<(u128, u64, Kind)>) -> Vec<Kind> {
    digests.sort_unstable();
    digests.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].2).collect()
}

/// Digest, rank and kind of a file's content.
fn digest(survey: &Survey, sample: &Sample, buffer: &mut [u8]) -> Option<(u128, u64, Kind)> {
    let file = survey.open(sample).ok()?;
    let executable = file.metadata().ok()?.permissions().mode() & 0o111 != 0;
    let mut hash = Xxh3::new();
    for place in places(sample.size) {
        let bytes = file.read_at(buffer, place).ok()?;
        hash.update(&buffer[..bytes]);
    }
    let name = sample.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    Some((hash.digest128(), sample.rank, kind(name, executable)))
}

fn places(size: u64) -> Vec<u64> {
    if size <= 4 * PART { (0..size).step_by(PART as usize).collect() } else { vec![0, size / 2, size - PART] }
}

/// The share of a kind's files that have holes, and what share of their bytes is in holes.
pub(crate) fn holes(survey: &Survey, thin: &Thin, files: u64) -> (f64, f64) {
    let (mut sparse, mut sampled, mut in_holes, mut bytes) = (0.0, 0.0, 0.0, 0.0);
    for sample in thin.samples.iter() {
        let found = survey.open(sample).map_or(0, |file| bytes_in_holes(&file, sample.size));
        sampled += 1.0;
        if found > 0 {
            sparse += 1.0;
            in_holes += found as f64;
            bytes += sample.size as f64;
        }
    }
    if sparse == 0.0 || files == 0 {
        return (0.0, 0.0);
    }
    // The samples are those with most in holes: when they are not all, the others have what misses
    // on disk.
    let all = thin.files as usize <= thin.samples.len();
    let missing = (thin.missing as f64 / thin.bytes.max(1) as f64).min(1.0);
    (thin.files as f64 * sparse / sampled / files as f64, if all { in_holes / bytes } else { missing })
}

fn bytes_in_holes(file: &File, size: u64) -> u64 {
    let (mut place, mut holes) = (0, 0);
    for _ in 0..STEPS {
        let Ok(hole) = rustix::fs::seek(file, SeekFrom::Hole(place)) else { break };
        if hole >= size {
            break;
        }
        place = rustix::fs::seek(file, SeekFrom::Data(hole)).unwrap_or(size);
        holes += place.min(size) - hole;
        if place >= size {
            break;
        }
    }
    holes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::survey::survey;
    use crate::scan::walk::Options;

    #[test]
    fn what_repeats_is_counted_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..60u8 {
            // Three of a kind hold the same; the media are as large and differ, but in their last
            // byte alone.
            std::fs::write(folder.path().join(format!("{number}.c")), vec![number / 3; 300]).unwrap();
            let mut media = vec![7; 500_000];
            media[499_999] = number;
            std::fs::write(folder.path().join(format!("{number}.mp4")), media).unwrap();
        }
        let survey = survey(folder.path(), &Options::default()).unwrap();
        assert_eq!(repeated(&survey, 2), BTreeMap::from([(Kind::Source, 40.0 / 60.0)]));
    }

    #[test]
    fn holes_are_found_where_the_file_system_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("a.db")).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[1; 1 << 18], 1 << 18).unwrap();
        std::fs::write(folder.path().join("b.db"), vec![1; 1 << 18]).unwrap();
        let survey = survey(folder.path(), &Options::default()).unwrap();
        let tally = &survey.kinds[&Kind::Store];
        assert_eq!(holes(&survey, &tally.thin, tally.files), (0.5, 0.75));
    }

    #[test]
    fn of_large_files_the_ends_are_read() {
        assert_eq!(places(1), [0]);
        assert_eq!(places(PART + 1), [0, PART]);
        assert_eq!(places(10 * PART), [0, 5 * PART, 9 * PART]);
    }
}
