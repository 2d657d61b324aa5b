//! A tree before it is written: every directory and file, with size, name and recipe, from a
//! profile and a seed.
//!
//! It is the same on every machine and takes some dozens of bytes for a file, so that what a tree
//! needs is known before anything is made.

use crate::codec;
use crate::content::Recipe;
use crate::content::recipes::{self, Mixture};
use crate::profile::{Class, Contents, Kind, Profile};
use crate::tree::folders::{Folder, folders};
use crate::tree::names::name;
use crate::tree::sizes;
use anyhow::{Result, ensure};
use pickfs_system::random::Random;

/// How large a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Regular files, not counting further names of the same file, nor symbolic links.
    pub files: u64,
    /// The sum of their sizes, met exactly.
    pub bytes: u64,
}

impl Shape {
    /// The profile's own numbers of files and bytes, each times `scale`.
    pub fn scaled(profile: &Profile, scale: f64) -> Shape {
        let times = |number: u64| (number as f64 * scale + 0.5) as u64;
        Shape { files: times(profile.files()).max(1), bytes: times(profile.bytes()) }
    }
}

#[derive(Debug)]
pub struct TreeLayout {
    pub seed: u64,
    /// Parents before children; the root is first.
    pub directories: Vec<Directory>,
    pub mixtures: Vec<Mixture>,
    pub symlinks: u64,
    pub symlink_bytes: usize,
    pub hard_links: u64,
}

#[derive(Debug)]
pub struct Directory {
    /// From the root of the tree; empty for the root itself.
    pub path: String,
    /// Subdirectories, whose names count before those of files.
    pub subdirectories: u64,
    pub files: Vec<File>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    pub bytes: u64,
    /// Bytes of it that are a hole.
    pub hole: u64,
    /// Which random numbers its content is made of: files with the same hold the same.
    pub stream: u32,
    pub mixture: u16,
    pub by: By,
    pub kind: Kind,
    pub executable: bool,
    pub name_length: u8,
}

/// Which recipe of its mixture makes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    First,
    Second,
    /// Large files: piece by piece.
    Both,
}

/// Larger files are mixed in themselves.
const MIXED: u64 = 8 * codec::PIECE as u64;
/// What a file system in memory gives out at a time, and what it adds for each entry.
const PAGE: u64 = 4096;
const ENTRY: u64 = 1024;
/// What names look like unless a profile says.
const USUAL_LENGTHS: [u64; 5] = [4, 9, 12, 16, 30];

impl TreeLayout {
    /// An unsound profile is refused with a message for its author.
    pub fn new(profile: &Profile, shape: &Shape, seed: u64) -> Result<TreeLayout> {
        ensure!(shape.files > 0 || shape.bytes == 0, "a tree of no files cannot hold {} bytes", shape.bytes);
        ensure!(shape.files < 1 << 32, "a tree of {} files is larger than pickfs makes", shape.files);
        let mut random = Random::new(seed, u64::MAX);
        let folders = folders(profile, shape.files, &mut random);
        let (mut files, mixtures) = files(profile, shape);
        random.shuffle(&mut files);
        let entries = files.len() + folders.len();
        let lengths = name_lengths(profile, entries, &mut random);
        files.iter_mut().zip(&lengths).for_each(|(file, length)| file.name_length = *length);
        let directories = dealt(&folders, &lengths[files.len()..], files, seed);
        let part =
            |count: u64| (u128::from(count) * u128::from(shape.files) / u128::from(profile.files().max(1))) as u64;
        let names = &profile.names;
        Ok(TreeLayout {
            seed,
            directories,
            mixtures,
            symlinks: part(names.symlinks),
            symlink_bytes: names.symlink_bytes as usize,
            hard_links: part(names.hard_links),
        })
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.directories.iter().flat_map(|directory| &directory.files)
    }

    /// What the tree takes in memory, at most.
    pub fn memory(&self) -> u64 {
        let pages = |file: &File| (file.bytes - file.hole).next_multiple_of(PAGE) + ENTRY;
        let others = self.directories.len() as u64 + self.symlinks + self.hard_links;
        self.files().map(pages).sum::<u64>() + others * ENTRY
    }

    /// What one piece of a file is made by.
    pub(crate) fn recipe(&self, file: &File, piece: u64) -> Recipe {
        let Mixture { recipes, first } = self.mixtures[usize::from(file.mixture)];
        let is_first = match file.by {
            By::First => true,
            By::Second => false,
            By::Both => ((piece + 1) as f64 * first) as u64 > (piece as f64 * first) as u64,
        };
        recipes[usize::from(!is_first)]
    }
}

/// Files go to directories as they come; directories get their paths.
fn dealt(folders: &[Folder], lengths: &[u8], files: Vec<File>, seed: u64) -> Vec<Directory> {
    let mut files = files.into_iter();
    let mut directories: Vec<Directory> = Vec::with_capacity(folders.len());
    let mut children = vec![0u64; folders.len()];
    for (place, (folder, length)) in folders.iter().zip(lengths).enumerate() {
        let own = name(None, children[folder.parent], usize::from(*length), &mut Random::new(seed, !(place as u64)));
        let path = match place {
            0 => String::new(),
            _ if folder.parent == 0 => own,
            _ => format!("{}/{own}", directories[folder.parent].path),
        };
        children[folder.parent] += u64::from(place > 0);
        let files = files.by_ref().take(folder.files as usize).collect();
        directories.push(Directory { path, subdirectories: folder.subdirectories, files });
    }
    directories
}

/// In random order.
fn name_lengths(profile: &Profile, entries: usize, random: &mut Random) -> Vec<u8> {
    let known: Vec<u64> = profile.names.lengths.iter().map(|length| u64::from(*length)).collect();
    let known = if known.is_empty() { USUAL_LENGTHS.to_vec() } else { known };
    let length = |place: usize| (sizes::quantile(&known, (place as f64 + 0.5) / entries as f64) + 1).min(255);
    let mut lengths: Vec<u8> = (0..entries).map(|place| length(place) as u8).collect();
    random.shuffle(&mut lengths);
    lengths
}

/// All files, class by class.
fn files(profile: &Profile, shape: &Shape) -> (Vec<File>, Vec<Mixture>) {
    let mut counts: Vec<u64> = profile.classes.iter().map(|class| class.files).collect();
    sizes::scale(&mut counts, shape.files);
    // A class of which a small tree has no file leaves its bytes to the others.
    let own = |(class, count): (&Class, &u64)| if *count > 0 { class.bytes } else { 0 };
    let mut bytes: Vec<u64> = profile.classes.iter().zip(&counts).map(own).collect();
    if bytes.iter().all(|bytes| *bytes == 0) {
        bytes.clone_from(&counts);
    }
    sizes::scale(&mut bytes, shape.bytes);
    let (mut all, mut mixtures) = (Vec::with_capacity(shape.files as usize), Vec::new());
    for ((class, count), bytes) in profile.classes.iter().zip(counts).zip(bytes) {
        let first = all.len();
        let sizes = sizes::sizes(class, count, bytes);
        all.extend((first as u32..).zip(sizes).map(|(stream, bytes)| plain(class, stream, bytes)));
        dress(class, &mut all[first..], &mut mixtures);
    }
    (all, mixtures)
}

fn plain(class: &Class, stream: u32, bytes: u64) -> File {
    let (hole, mixture, by, executable, name_length) = (0, 0, By::First, false, 0);
    File { bytes, hole, stream, mixture, by, kind: class.kind, executable, name_length }
}

/// Sets everything of files but their sizes, which rise.
fn dress(class: &Class, files: &mut [File], mixtures: &mut Vec<Mixture>) {
    mix(class, files, mixtures);
    every(class.executable, files.len(), |place| files[place].executable = true);
    every(class.sparse, files.len(), |place| {
        let file = &mut files[place];
        file.hole = (file.bytes as f64 * class.holes) as u64 / PAGE * PAGE;
    });
    repeat(class.duplicates, files);
}

/// Calls for that share of all places, evenly.
fn every(share: f64, count: usize, mut call: impl FnMut(usize)) {
    let until = |place: usize| (place as f64 * share) as u64;
    (0..count).filter(|place| until(place + 1) > until(*place)).for_each(&mut call);
}

/// Duplicates are of the file that comes before by size; the largest gets what bytes they lose.
fn repeat(share: f64, files: &mut [File]) {
    let Some((largest, files)) = files.split_last_mut() else { return };
    let mut lost = 0;
    every(share, files.len(), |place| {
        let original = place.checked_sub(1).map(|before| files[before]);
        if let Some(original) = original.filter(|_| files[place].hole == 0) {
            lost += files[place].bytes - original.bytes;
            files[place] = File { executable: files[place].executable, ..original };
        }
    });
    largest.bytes += lost;
}

/// Gives files their recipes, one group of the profile's contents after the other.
fn mix(class: &Class, files: &mut [File], mixtures: &mut Vec<Mixture>) {
    let usual = [Contents { like: Some(recipes::usual(class.kind)), ..Contents::default() }];
    let rows = if class.contents.is_empty() { &usual[..] } else { &class.contents };
    let mut ranges: Vec<(u64, u64)> = rows.iter().map(|row| row.sizes).collect();
    ranges.sort_unstable();
    ranges.dedup();
    let mut rest = files;
    for (place, range) in ranges.iter().enumerate() {
        // Files that no group speaks for go with the next, or with the last.
        let last = place + 1 == ranges.len();
        let count = if last { rest.len() } else { rest.partition_point(|file| file.bytes <= range.1) };
        let (group, others) = rest.split_at_mut(count);
        let rows: Vec<&Contents> = rows.iter().filter(|row| row.sizes == *range).collect();
        mix_group(&rows, group, mixtures);
        rest = others;
    }
}

/// Each file is all of one row; the largest choose first, so that the shares of bytes come out.
fn mix_group(rows: &[&Contents], files: &mut [File], mixtures: &mut Vec<Mixture>) {
    let bytes: f64 = files.iter().map(|file| file.bytes as f64).sum();
    let shares: f64 = rows.iter().map(|row| row.share).sum();
    let typical = typical(files);
    let mut quotas: Vec<Quota> = Vec::new();
    for row in rows {
        let mixture = mixture(row, typical);
        quotas.push(Quota {
            left: bytes * row.share / shares,
            first: 0.0,
            second: 0.0,
            mixture,
            place: mixtures.len(),
        });
        mixtures.push(mixture);
    }
    for file in files.iter_mut().rev() {
        let most = quotas.iter_mut().reduce(|most, quota| if quota.left > most.left { quota } else { most });
        if let Some(quota) = most {
            (file.mixture, file.by) = (quota.place as u16, quota.take(file.bytes));
        }
    }
}

/// What files of a row may still hold, and how much of that either recipe has made.
struct Quota {
    left: f64,
    first: f64,
    second: f64,
    mixture: Mixture,
    place: usize,
}

impl Quota {
    fn take(&mut self, bytes: u64) -> By {
        let size = bytes as f64;
        self.left -= size;
        if bytes >= MIXED {
            return By::Both;
        }
        let first = self.first + size / 2.0 <= self.mixture.first * (self.first + self.second + size);
        *if first { &mut self.first } else { &mut self.second } += size;
        if first { By::First } else { By::Second }
    }
}

/// What stuff is called after is true of long files, and short ones shrink less by themselves;
/// ratios are of files of just these sizes.
fn mixture(row: &Contents, typical: u64) -> Mixture {
    match row.like {
        Some(stuff) => recipes::mixture(&recipes::of_stuff(stuff), codec::PIECE as u64),
        None => recipes::mixture(&row.ratios, typical),
    }
}

/// The size of the file that the average byte lies in.
fn typical(files: &[File]) -> u64 {
    let sum: u128 = files.iter().map(|file| u128::from(file.bytes)).sum();
    let squares: u128 = files.iter().map(|file| u128::from(file.bytes) * u128::from(file.bytes)).sum();
    (squares / sum.max(1)).min(1 << 40) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Ratios;
    use crate::profile::Names;
    use crate::{digest, write};
    use std::os::unix::fs::MetadataExt;

    fn profile(class: Class) -> Profile {
        let names = Names { lengths: vec![5, 30], symlinks: 20, symlink_bytes: 40, hard_links: 10 };
        Profile { names, classes: vec![class], ..Profile::default() }
    }

    fn class() -> Class {
        Class { files: 1000, bytes: 8 << 20, sizes: vec![0, 1000, 4000, 100_000], executable: 0.25, ..Class::default() }
    }

    #[test]
    fn shares_come_out_as_they_are_asked_for() {
        let class = Class { duplicates: 0.03, sparse: 0.05, holes: 0.9, ..class() };
        let outline = TreeLayout::new(&profile(class), &Shape { files: 1000, bytes: 8 << 20 }, 1).unwrap();
        let count = |what: fn(&File) -> bool| outline.files().filter(|file| what(file)).count();
        assert_eq!(count(|file| file.executable), 250);
        let holes = count(|file| file.hole > 0);
        assert!((15..=55).contains(&holes), "{holes}");
        let mut streams: Vec<u32> = outline.files().map(|file| file.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        assert!((965..=975).contains(&streams.len()), "{}", streams.len());
        assert_eq!(outline.files().map(|file| file.bytes).sum::<u64>(), 8 << 20);
    }

    #[test]
    fn content_is_shared_out_by_bytes() {
        let row = |sizes, share, ratio| {
            let ratios = Ratios { lzo: ratio, lz4: ratio, zlib: ratio, zstd1: ratio, zstd3: ratio };
            Contents { sizes, share, like: None, ratios }
        };
        let contents = vec![row((0, 4000), 1.0, 1.0), row((4001, 1 << 40), 0.3, 0.1), row((4001, 1 << 40), 0.7, 1.0)];
        let outline =
            TreeLayout::new(&profile(Class { contents, ..class() }), &Shape { files: 1000, bytes: 8 << 20 }, 1)
                .unwrap();
        let bytes = |which: u16, large: bool| -> u64 {
            outline.files().filter(|f| (f.bytes > 4000) == large && f.mixture == which).map(|f| f.bytes).sum()
        };
        assert_eq!([bytes(1, false), bytes(2, false), bytes(0, true)], [0; 3]);
        let share = bytes(1, true) as f64 / (bytes(1, true) + bytes(2, true)) as f64;
        assert!((share - 0.3).abs() < 0.01, "{share}");
    }

    #[test]
    fn a_tree_is_what_its_outline_says() {
        let class = Class { duplicates: 0.1, sparse: 0.2, holes: 0.5, ..class() };
        let outline = TreeLayout::new(&profile(class), &Shape { files: 1000, bytes: 8 << 20 }, 1).unwrap();
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let roots = ["a", "b"].map(|name| folder.path().join(name));
        roots.iter().for_each(|root| write(root, &outline).unwrap());
        assert_eq!(digest(&roots[0]).unwrap(), digest(&roots[1]).unwrap());
        let entries: Vec<_> = walkdir::WalkDir::new(&roots[0]).min_depth(1).into_iter().map(Result::unwrap).collect();
        let links = entries.iter().filter(|entry| entry.path_is_symlink());
        let lengths: Vec<u64> = links.map(|entry| entry.metadata().unwrap().len()).collect();
        assert!(lengths.len() == 20 && lengths.iter().all(|length| (39..=40).contains(length)), "{lengths:?}");
        assert!(entries.iter().all(|entry| entry.path().exists()), "a link leads nowhere");
        let files: Vec<_> = entries.iter().filter(|e| e.file_type().is_file()).map(|e| e.metadata().unwrap()).collect();
        assert_eq!(files.len(), 1010);
        assert!(files.iter().any(|file| file.blocks() * 512 + 8192 < file.size()), "no file has a hole");
        let used: u64 = files.iter().map(|file| file.blocks() * 512).sum();
        assert!(used <= outline.memory() && used * 2 > outline.memory(), "{used} {}", outline.memory());
    }

    #[test]
    fn odd_shapes() {
        let outline = |files, bytes| TreeLayout::new(&profile(class()), &Shape { files, bytes }, 1);
        assert!(outline(0, 1).is_err() && outline(1 << 32, 1).is_err());
        for (files, bytes) in [(0, 0), (1, 3), (20, 5), (3, 1 << 30)] {
            let outline = outline(files, bytes).unwrap();
            assert_eq!(outline.files().map(|file| file.bytes).sum::<u64>(), bytes);
            assert_eq!(outline.files().count() as u64, files);
        }
        assert!(TreeLayout::new(&Profile::default(), &Shape { files: 0, bytes: 0 }, 1).is_ok());
    }

    #[test]
    fn another_seed_is_another_tree() {
        let made = |seed| {
            let folder = tempfile::tempdir().unwrap();
            let outline = TreeLayout::new(&profile(class()), &Shape { files: 30, bytes: 1 << 20 }, seed).unwrap();
            write(folder.path(), &outline).unwrap();
            digest(folder.path()).unwrap().hash
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }
}
