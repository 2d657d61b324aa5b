//! What was there when the recording began, made on the file system under test.

use super::replay_dir::ReplayDir;
use anyhow::{Context, Result};
use pickfs_trace::{Entry, EntryKind};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Makes all of it; `limits` is asked now and then.
pub(crate) fn make(replay_dir: &ReplayDir, limits: impl Fn() -> Result<()>) -> Result<()> {
    replay_dir.enter()?;
    for (number, entry) in replay_dir.trace.tree.iter().enumerate() {
        if number % 1000 == 0 {
            limits()?;
        }
        one(replay_dir, number as u32, entry).with_context(|| {
            format!("cannot make {} of the recording's first tree", replay_dir.trace.paths.text(entry.path))
        })?;
    }
    Ok(())
}

fn one(replay_dir: &ReplayDir, number: u32, entry: &Entry) -> Result<(), Errno> {
    let (folder, name) = (replay_dir.folder(), replay_dir.name(entry.path));
    match entry.what {
        EntryKind::Directory => rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o755)),
        EntryKind::Link { to } => {
            rustix::fs::symlinkat(to.map_or(replay_dir.elsewhere(), |to| replay_dir.full(to)), folder, name)
        }
        EntryKind::HardLink { to } => rustix::fs::linkat(folder, replay_dir.name(to), folder, name, AtFlags::empty()),
        EntryKind::Node => rustix::fs::mknodat(folder, name, FileType::Fifo, Mode::from_raw_mode(0o644), 0),
        EntryKind::Hollow { bytes } => new_file(replay_dir, entry).and_then(|file| rustix::fs::ftruncate(file, bytes)),
        EntryKind::File { bytes, class } => {
            let file = new_file(replay_dir, entry)?;
            let mut done = 0;
            while done < bytes {
                // Another place of the bytes for each part.
                let part = number.wrapping_add((done >> 10) as u32);
                done += rustix::io::write(&file, replay_dir.bytes.piece(class, part, bytes - done))? as u64;
            }
            Ok(())
        }
    }
}

fn new_file(replay_dir: &ReplayDir, entry: &Entry) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(replay_dir.folder(), replay_dir.name(entry.path), flags, Mode::from_raw_mode(0o755))
}
