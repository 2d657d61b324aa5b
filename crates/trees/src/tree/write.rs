//! Writing a tree that is outlined, with all processors: each takes one directory after another.
//!
//! What is in a file follows from the seed and the file alone, and one thread makes all of a
//! directory in order, so that no chance of threads shows in the tree.

use crate::codec::PIECE;
use crate::content::Content;
use crate::parallel;
use crate::tree::layout::{Directory, File, TreeLayout};
use crate::tree::names::name;
use anyhow::{Context, Result};
use pickfs_system::random::Random;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::DirBuilder;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;

/// Streams of random numbers beyond those of files.
const NAMES: u64 = 1 << 63;
const LINKS: u64 = 1 << 62;
/// Bits of a stream number that count a file's pieces: each piece has its own random stream.
const STREAMS: u32 = 24;

/// Makes the tree in `root`, which is made too where it is not there.
pub fn write(root: &Path, outline: &TreeLayout) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(root);
    made.with_context(|| format!("making {}", root.display()))?;
    let writer = Writer { root: open_directory(CWD, root)?, outline, hidden: hidden_bits() };
    writer
        .directories()
        .and_then(|()| writer.files())
        .and_then(|()| writer.links())
        .with_context(|| format!("making a tree in {}", root.display()))
}

struct Writer<'a> {
    root: OwnedFd,
    outline: &'a TreeLayout,
    /// Permission bits that new files do not get by themselves.
    hidden: u32,
}

impl Writer<'_> {
    fn directories(&self) -> Result<()> {
        self.permit(self.root.as_fd(), 0o755)?;
        for directory in self.outline.directories.iter().skip(1) {
            rustix::fs::mkdirat(&self.root, &directory.path, Mode::from_raw_mode(0o755))?;
            if self.hidden & 0o755 != 0 {
                let made = open_directory(self.root.as_fd(), Path::new(&directory.path))?;
                self.permit(made.as_fd(), 0o755)?;
            }
        }
        Ok(())
    }

    fn files(&self) -> Result<()> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let directories: Vec<(usize, &Directory)> = self.outline.directories.iter().enumerate().collect();
        parallel::map(threads, &directories, Content::new, |content, (place, directory)| {
            let opened = open_directory(self.root.as_fd(), here(&directory.path))?;
            (0..).zip(&directory.files).try_for_each(|(number, file)| {
                let name = file_name(self.outline, *place, number);
                self.file(&opened, &name, file, content).with_context(|| format!("writing {}/{name}", directory.path))
            })
        })
        .into_iter()
        .collect()
    }

    fn file(&self, directory: &OwnedFd, name: &str, file: &File, content: &mut Content) -> Result<()> {
        let mode = if file.executable { 0o755 } else { 0o644 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))?;
        self.permit(made.as_fd(), mode)?;
        let made = std::fs::File::from(made);
        for piece in 0..file.bytes.div_ceil(PIECE as u64) {
            self.piece(&made, file, piece, content)?;
        }
        if file.hole > 0 {
            made.set_len(file.bytes)?;
        }
        Ok(())
    }

    /// What of a piece is not in the hole, which lies in the middle of the file.
    fn piece(&self, made: &std::fs::File, file: &File, piece: u64, content: &mut Content) -> Result<()> {
        let start = piece * PIECE as u64;
        let length = (file.bytes - start).min(PIECE as u64);
        let hole = (file.bytes - file.hole) / 2 / 4096 * 4096;
        let from = hole.clamp(start, start + length) - start;
        let until = (hole + file.hole).clamp(start, start + length) - start;
        if until - from == length {
            return Ok(());
        }
        let mut random = Random::new(self.outline.seed, u64::from(file.stream) << STREAMS | piece);
        let bytes = content.make(&self.outline.recipe(file, piece), &mut random, length as usize);
        if from == until {
            return Ok(made.write_all_at(bytes, start)?);
        }
        made.write_all_at(&bytes[..from as usize], start)?;
        Ok(made.write_all_at(&bytes[until as usize..], start + until)?)
    }

    fn permit(&self, made: BorrowedFd, mode: u32) -> Result<()> {
        match self.hidden & mode {
            0 => Ok(()),
            _ => Ok(rustix::fs::fchmod(made, Mode::from_raw_mode(mode))?),
        }
    }

    /// Symbolic links to files in the same folder, and further names of files somewhere else.
    fn links(&self) -> Result<()> {
        let mut random = Random::new(self.outline.seed, LINKS);
        let places: Vec<usize> = (0..self.outline.directories.len())
            .filter(|place| !self.outline.directories[*place].files.is_empty())
            .collect();
        let links = self.outline.symlinks + self.outline.hard_links;
        for link in 0..if places.is_empty() { 0 } else { links } {
            let [from, to] = [(); 2].map(|()| places[random.index(places.len())]);
            let number = random.below(self.outline.directories[to].files.len() as u64);
            if link < self.outline.symlinks {
                let target = padded(file_name(self.outline, to, number), self.outline.symlink_bytes);
                rustix::fs::symlinkat(target, &self.root, self.link(to, link))?;
            } else {
                let original = self.within(to, &file_name(self.outline, to, number));
                let name = self.link(from, link);
                rustix::fs::linkat(&self.root, original, &self.root, name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// A path in a directory that no file has: numbers of links go on where those of no directory
    /// reach.
    fn link(&self, directory: usize, link: u64) -> String {
        let number = (1 << 40) + link;
        self.within(directory, &name(None, number, 0, &mut Random::new(self.outline.seed, NAMES | number)))
    }

    fn within(&self, directory: usize, name: &str) -> String {
        match self.outline.directories[directory].path.as_str() {
            "" => name.into(),
            path => format!("{path}/{name}"),
        }
    }
}

fn file_name(outline: &TreeLayout, directory: usize, number: u64) -> String {
    let Directory { subdirectories, files, .. } = &outline.directories[directory];
    let file = &files[number as usize];
    let mut random = Random::new(outline.seed, NAMES | (directory as u64) << 32 | number);
    name(Some(file.kind), subdirectories + number, usize::from(file.name_length), &mut random)
}

/// A target that is longer and leads to the same.
fn padded(target: String, bytes: usize) -> String {
    "./".repeat(bytes.saturating_sub(target.len()) / 2) + &target
}

fn here(path: &str) -> &Path {
    Path::new(if path.is_empty() { "." } else { path })
}

fn open_directory(at: BorrowedFd, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty()).with_context(|| format!("opening {}", path.display()))
}

/// The umask, which only the kernel's status page shows without changing it. If it cannot be read,
/// all bits, so that permissions are then set again.
fn hidden_bits() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o777)
}
