//! The loops over many files: names and their order are made before, so that a loop is its system
//! calls and two looks at a clock, and costs nothing else that shows
//! (`crates/pickfs/benches/small_files.rs`).

use crate::stage::Latencies;
use anyhow::{Context, Result, ensure};
use pickfs_system::random::Random;
use pickfs_system::sys::thread_pool::ThreadPool;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The names of one batch of files, folder by folder; every batch has the same.
pub struct Names {
    names: Vec<CString>,
    folders: usize,
}

/// A file to work on: its folder's number, and its name there or whatever else an operation wants
/// to know of it.
pub type Step<'a, What = &'a CStr> = (usize, What);

/// What a file is called in an error.
pub trait Named {
    fn name(&self) -> &CStr;
}

impl Named for &CStr {
    fn name(&self) -> &CStr {
        self
    }
}

/// Before and after.
impl Named for (&CStr, &CStr) {
    fn name(&self) -> &CStr {
        self.0
    }
}

/// With its folder.
impl Named for (usize, &CStr) {
    fn name(&self) -> &CStr {
        self.1
    }
}

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Random letters of a name: up to this many, as in bonnie++.
const MOST_LETTERS: u64 = 12;

impl Names {
    /// As bonnie++ names files that it makes in order: a number in ten digits, and random letters.
    pub fn in_order(files: usize, folders: usize) -> Names {
        let mut random = Random::new(1, 11);
        Names::new((0..files).map(|number| format!("{number:010x}{}", letters(&mut random))), folders)
    }

    /// As bonnie++ names files that it makes in random order: random letters, and a number.
    pub fn at_random(files: usize, folders: usize) -> Names {
        let mut random = Random::new(1, 12);
        Names::new((0..files).map(|number| format!("{}{number:010x}", letters(&mut random))), folders)
    }

    fn new(names: impl Iterator<Item = String>, folders: usize) -> Names {
        let names = names.map(|name| CString::new(name).expect("letters and digits hold no zero byte"));
        Names { names: names.collect(), folders }
    }

    /// In the order in which they are named: the first folder's files, then the next one's.
    pub fn steps(&self) -> Vec<Step<'_>> {
        let in_each = self.names.len().div_ceil(self.folders);
        self.names.iter().enumerate().map(|(number, name)| (number / in_each, name.as_c_str())).collect()
    }

    /// In an order that has nothing to do with names and folders.
    pub fn shuffled(&self) -> Vec<Step<'_>> {
        let mut steps = self.steps();
        Random::new(1, 13).shuffle(&mut steps);
        steps
    }

    /// All their bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.names.iter().map(|name| name.as_bytes().len() as u64).sum()
    }
}

fn letters(random: &mut Random) -> String {
    let length = random.below(MOST_LETTERS + 1);
    (0..length).map(|_| char::from(LETTERS[random.index(LETTERS.len())])).collect()
}

/// The open folders of one batch.
pub struct Batch {
    folders: Vec<OwnedFd>,
}

impl Batch {
    /// Makes the folders, which must not be there.
    pub fn make(place: &Path, folders: usize) -> Result<Batch> {
        let made =
            |path: &PathBuf| std::fs::create_dir(path).with_context(|| format!("cannot make {}", path.display()));
        made(&place.into())?;
        (0..folders).try_for_each(|number| made(&folder_of(place, number)))?;
        Batch::open(place, folders)
    }

    pub(crate) fn open(place: &Path, folders: usize) -> Result<Batch> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |number| {
            let path = folder_of(place, number);
            rustix::fs::open(&path, flags, Mode::empty()).with_context(|| format!("cannot open {}", path.display()))
        };
        Ok(Batch { folders: (0..folders).map(open).collect::<Result<_>>()? })
    }

    pub fn folder(&self, number: usize) -> BorrowedFd<'_> {
        self.folders[number].as_fd()
    }

    /// An operation on every file in this order, each with its latency; `doing` names it should it
    /// fail.
    #[inline(always)]
    pub fn each<What: Named + Copy>(
        &self,
        doing: &str,
        steps: &[Step<What>],
        latencies: &mut Latencies,
        mut operation: impl FnMut(BorrowedFd, What) -> Result<(), Errno>,
    ) -> Result<()> {
        latencies.start();
        for (folder, what) in steps {
            if let Err(error) = operation(self.folder(*folder), *what) {
                return Err(failed(doing, *folder, what.name(), error));
            }
            latencies.lap();
        }
        Ok(())
    }

    /// Every folder read whole, each with its latency; the entries in them.
    pub(crate) fn list(&self, latencies: &mut Latencies) -> Result<u64> {
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut entries = 0;
        latencies.start();
        for folder in &self.folders {
            let mut listing = rustix::fs::RawDir::new(folder, &mut buffer);
            while let Some(entry) = listing.next() {
                entries += u64::from(!matches!(entry.context("readdir")?.file_name().to_bytes(), b"." | b".."));
            }
            latencies.lap();
        }
        Ok(entries)
    }
}

fn folder_of(place: &Path, number: usize) -> PathBuf {
    place.join(format!("{number:05}"))
}

#[cold]
fn failed(doing: &str, folder: usize, name: &CStr, error: Errno) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("{doing} of {folder:05}/{}", name.to_string_lossy()))
}

/// A new file with this content, closed again; without content it is not written to.
#[inline(always)]
pub fn create(folder: BorrowedFd, name: &CStr, content: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    write_all(&file, content)
}

#[inline(always)]
pub fn stat(folder: BorrowedFd, name: &CStr) -> Result<(), Errno> {
    rustix::fs::statat(folder, name, AtFlags::empty()).map(drop)
}

#[inline(always)]
pub fn delete(folder: BorrowedFd, name: &CStr) -> Result<(), Errno> {
    rustix::fs::unlinkat(folder, name, AtFlags::empty())
}

/// Opened, written to at its end, closed.
#[inline(always)]
pub(crate) fn append(folder: BorrowedFd, name: &CStr, content: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::openat(folder, name, OFlags::WRONLY | OFlags::APPEND, Mode::empty())?;
    write_all(&file, content)
}

#[inline(always)]
pub(crate) fn write_all(file: &OwnedFd, mut content: &[u8]) -> Result<(), Errno> {
    while !content.is_empty() {
        match rustix::io::write(file, content) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => content = &content[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Threads that do the work, each with its own latencies; made before the clock runs.
pub struct Workers {
    pool: ThreadPool,
    latencies: Vec<Latencies>,
}

impl Workers {
    pub fn new(threads: usize) -> Result<Workers> {
        let pool = ThreadPool::new(threads).with_context(|| format!("cannot start {threads} threads"))?;
        Ok(Workers { latencies: (0..pool.threads()).map(|_| Latencies::new()).collect(), pool })
    }

    /// Each thread does its share of the steps, consecutive ones.
    pub fn work<T: Sync>(
        &mut self,
        steps: &[T],
        work: impl Fn(&[T], &mut Latencies) -> Result<()> + Sync,
    ) -> Result<()> {
        let share = steps.len().div_ceil(self.latencies.len()).max(1);
        let shares = steps.chunks(share).zip(&mut self.latencies);
        let ended = self.pool.each(shares, |(steps, own)| work(steps, own)).expect("the work does not panic");
        ended.into_iter().collect()
    }

    /// Latencies of all threads.
    pub fn latencies(&self) -> Latencies {
        let mut all = Latencies::new();
        self.latencies.iter().for_each(|own| all.add(own));
        all
    }
}

/// How many batches the file system has room for at most, where one has `files` files with `bytes`
/// bytes each: of what is free, half the inodes and a quarter of the space go to one phase. One
/// batch is always tried.
pub(crate) fn room(root: &Path, files: u64, bytes: u64) -> Result<u64> {
    let free = rustix::fs::statvfs(root).with_context(|| format!("cannot ask for the room in {}", root.display()))?;
    ensure!(files > 0, "a batch without files");
    // Where inodes are made when they are needed, some tell zero of zero.
    let by_inodes = if free.f_files == 0 { u64::MAX } else { free.f_favail / 2 / files };
    let by_space = free.f_bavail.saturating_mul(free.f_frsize) / 4 / (files * (bytes + ROOM_OF_A_FILE));
    Ok(by_inodes.min(by_space).clamp(1, MOST_BATCHES))
}

/// What a small file takes at most in addition to its bytes, on file systems that keep a node of 4
/// KiB for each.
const ROOM_OF_A_FILE: u64 = 8 << 10;
/// More would only make the walk over all of them long.
const MOST_BATCHES: u64 = 32;

/// The place of a batch.
pub(crate) fn place_of(root: &Path, kind: &str, batch: u64) -> PathBuf {
    root.join(format!("{kind}-{batch}"))
}

/// Work on each of these batches, which are there.
pub(crate) fn on_each(
    root: &Path,
    kind: &str,
    folders: usize,
    batches: Range<u64>,
    mut work: impl FnMut(&Batch) -> Result<()>,
) -> Result<()> {
    batches.into_iter().try_for_each(|batch| work(&Batch::open(&place_of(root, kind, batch), folders)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_has_its_name_and_folder() {
        for names in [Names::in_order(100, 3), Names::at_random(100, 3)] {
            let steps = names.steps();
            let different: BTreeSet<&CStr> = steps.iter().map(|step| step.1).collect();
            let in_folder = |number| steps.iter().filter(|step| step.0 == number).count();
            assert_eq!((different.len(), [0, 1, 2, 3].map(in_folder)), (100, [34, 34, 32, 0]));
            let mut shuffled = names.shuffled();
            assert_ne!(shuffled, steps);
            shuffled.sort();
            assert_eq!(shuffled, {
                let mut sorted = steps.clone();
                sorted.sort();
                sorted
            });
        }
        let sorted = |names: Names| {
            let names = names.names;
            names.is_sorted()
        };
        assert!(sorted(Names::in_order(300, 1)) && !sorted(Names::at_random(300, 1)));
    }

    #[test]
    fn each_operation_does_what_it_is_called() {
        let lab = tempfile::tempdir().unwrap();
        let names = Names::at_random(50, 2);
        let steps = names.steps();
        let place = place_of(lab.path(), "batch", 0);
        let batch = Batch::make(&place, 2).unwrap();
        let mut workers = Workers::new(3).unwrap();
        let files = || walkdir::WalkDir::new(&place).into_iter().filter(|e| e.as_ref().unwrap().file_type().is_file());
        let sizes = || files().map(|e| e.unwrap().metadata().unwrap().len()).sum::<u64>();
        workers
            .work(&steps, |steps, own| batch.each("create", steps, own, |f, name| create(f, name, b"12345")))
            .unwrap();
        assert_eq!((files().count(), sizes()), (50, 250));
        workers.work(&steps, |steps, own| batch.each("append", steps, own, |f, name| append(f, name, b"67"))).unwrap();
        assert_eq!((files().count(), sizes()), (50, 350));
        workers.work(&names.shuffled(), |steps, own| batch.each("stat", steps, own, stat)).unwrap();
        let mut listed = Latencies::new();
        assert_eq!((batch.list(&mut listed).unwrap(), listed.count()), (50, 2));
        workers.work(&names.shuffled()[..40], |steps, own| batch.each("delete", steps, own, delete)).unwrap();
        assert_eq!(files().count(), 10);
        assert_eq!(workers.latencies().count(), 190);
    }

    #[test]
    fn a_failure_names_the_operation_and_the_file() {
        let lab = tempfile::tempdir().unwrap();
        let names = Names::in_order(9, 1);
        let batch = Batch::make(&place_of(lab.path(), "batch", 0), 1).unwrap();
        for threads in [1, 4] {
            let mut workers = Workers::new(threads).unwrap();
            let failed = workers.work(&names.steps(), |steps, own| batch.each("stat", steps, own, stat));
            let said = format!("{:#}", failed.unwrap_err());
            assert!(said.starts_with("stat of 00000/000000000") && said.contains("No such file"), "{said}");
        }
        assert!(Batch::make(&place_of(lab.path(), "batch", 0), 1).is_err());
    }

    #[test]
    fn one_batch_is_tried_however_little_room_there_is() {
        let lab = tempfile::tempdir().unwrap();
        assert_eq!(room(lab.path(), u64::MAX >> 20, 1).unwrap(), 1);
        assert!(room(lab.path(), 1, 0).unwrap() > 1);
    }
}
