//! Makes the changes of a schedule. What a record holds can be checked by itself: whose it is, its
//! number, a digest.

use super::Sync;
use super::schedule::{Kind, Schedule, Step, Stream};
use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a record that is appended, and of one that is a page. A file has no whole number of
/// pages.
pub(crate) const APPENDED: usize = 512;
pub(crate) const PAGE: usize = 4096;
pub(crate) const CREATED: usize = 3000;
/// Number of what was there before the first change.
pub(crate) const BEFORE: u64 = u64::MAX;
/// Names in the folder of a stream.
pub(crate) const FILE: &str = "file";
const NEW: &str = "new";

/// The name that a change makes, takes away or replaces; by the place where it is one of few.
pub(crate) fn name(kind: Kind, number: u64) -> String {
    format!("{}{}", kind.word(), kind.places().map_or(number, |places| number % places))
}

/// Bytes that say whose they are and whether they are whole.
pub(crate) fn record(stream: usize, number: u64, bytes: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(bytes);
    record.extend((stream as u64 + 1).to_le_bytes());
    record.extend(number.to_le_bytes());
    let mut word = (stream as u64) << 40 ^ number ^ 0x9e37_79b9_7f4a_7c15;
    while record.len() < bytes - 8 {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        record.extend(word.to_le_bytes());
    }
    record.truncate(bytes - 8);
    record.extend(xxh3_64(&record).to_le_bytes());
    record
}

/// The number of a record that is whole and of this stream.
pub(crate) fn number_of(stream: usize, bytes: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let end = bytes.len().checked_sub(8)?;
    (word(end)? == xxh3_64(&bytes[..end]) && word(0)? == stream as u64 + 1).then(|| word(8))?
}

/// The streams with their open files.
pub(crate) struct Changes<'a> {
    root: PathBuf,
    schedule: &'a Schedule,
    /// Open files of appends and overwrites.
    files: Vec<Option<File>>,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(root: &Path, schedule: &'a Schedule) -> Changes<'a> {
        Changes { root: root.into(), schedule, files: Vec::new() }
    }

    /// Before anything is timed or cut.
    pub(crate) fn lay_out(&mut self) -> Result<()> {
        for (number, stream) in self.schedule.streams.iter().enumerate() {
            let folder = self.root.join(&stream.folder);
            fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let file = lay_out(&folder, number, stream).with_context(|| format!("in {}", folder.display()))?;
            self.files.push(file);
        }
        Ok(())
    }

    pub(crate) fn make(&mut self, step: usize) -> Result<()> {
        let made = match self.schedule.steps[step] {
            Step::SyncAll => File::open(&self.root).and_then(|root| Ok(rustix::fs::syncfs(&root)?)),
            Step::Change { stream, number } => self.change(stream, number),
        };
        made.with_context(|| format!("cannot make change {step} in {}", self.root.display()))
    }

    fn change(&self, stream: usize, number: u64) -> std::io::Result<()> {
        let Stream { kind, sync, folder, .. } = &self.schedule.streams[stream];
        let (kind, sync, folder) = (*kind, *sync, self.root.join(folder));
        let path = folder.join(name(kind, number));
        match (kind, self.files[stream].as_ref()) {
            (Kind::Append, Some(file)) => {
                file.write_all_at(&record(stream, number, APPENDED), number * APPENDED as u64)?;
                sync_file(file, sync)
            }
            (Kind::Overwrite, Some(file)) => {
                let place = number % kind.places().unwrap_or(1);
                file.write_all_at(&record(stream, number, PAGE), place * PAGE as u64)?;
                sync_file(file, sync)
            }
            (Kind::Append | Kind::Overwrite, None) => Err(std::io::ErrorKind::NotFound.into()),
            (Kind::Create, _) => {
                write_file(&path, &record(stream, number, CREATED), sync)?;
                sync_folder(&folder, sync)
            }
            (Kind::Replace, _) => {
                let new = folder.join(NEW);
                write_file(&new, &record(stream, number, CREATED), sync)?;
                fs::rename(&new, &path)?;
                sync_folder(&folder, sync)
            }
            (Kind::Mkdir, _) => {
                fs::create_dir(&path)?;
                sync_folder(&path, sync)?;
                sync_folder(&folder, sync)
            }
            (Kind::Unlink, _) => {
                fs::remove_file(&path)?;
                sync_folder(&folder, sync)
            }
            (Kind::Link, _) => {
                fs::hard_link(folder.join(FILE), &path)?;
                sync_folder(&folder, sync)
            }
        }
    }
}

fn lay_out(folder: &Path, number: usize, stream: &Stream) -> std::io::Result<Option<File>> {
    let durable = if stream.sync == Sync::Written { rustix::fs::OFlags::DSYNC.bits() as i32 } else { 0 };
    let open =
        || OpenOptions::new().write(true).create(true).truncate(false).custom_flags(durable).open(folder.join(FILE));
    match stream.kind {
        Kind::Append => return open().map(Some),
        Kind::Overwrite => {
            let pages = stream.kind.places().unwrap_or(1) as usize;
            let file = open()?;
            file.write_all_at(&record(number, BEFORE, PAGE).repeat(pages), 0)?;
            return Ok(Some(file));
        }
        Kind::Replace => {
            for place in 0..stream.kind.places().unwrap_or(1) {
                fs::write(folder.join(name(stream.kind, place)), record(number, BEFORE, CREATED))?;
            }
        }
        Kind::Unlink => {
            for file in 0..stream.count {
                File::create_new(folder.join(name(stream.kind, file)))?;
            }
        }
        Kind::Link => fs::write(folder.join(FILE), b"linked\n")?,
        Kind::Create | Kind::Mkdir => {}
    }
    Ok(None)
}

fn write_file(path: &Path, content: &[u8], sync: Sync) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all_at(content, 0)?;
    sync_file(&file, sync)
}

fn sync_file(file: &File, sync: Sync) -> std::io::Result<()> {
    match sync {
        Sync::File | Sync::Folder => file.sync_all(),
        Sync::Data => file.sync_data(),
        Sync::Never | Sync::Written | Sync::All => Ok(()),
    }
}

fn sync_folder(folder: &Path, sync: Sync) -> std::io::Result<()> {
    if sync == Sync::Folder { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_not_whole_or_of_another_stream_is_none() {
        for bytes in [APPENDED, PAGE, CREATED] {
            let whole = record(3, 7, bytes);
            assert_eq!((whole.len(), number_of(3, &whole), number_of(2, &whole)), (bytes, Some(7), None));
            assert_eq!(number_of(3, &whole[..bytes - 1]), None);
            for at in [0, 9, bytes / 2, bytes - 1] {
                let mut torn = whole.clone();
                torn[at] ^= 1;
                assert_eq!(number_of(3, &torn), None, "byte {at}");
            }
        }
        assert_eq!(number_of(0, &[]), None);
        assert_eq!(number_of(0, &[0; APPENDED]), None);
    }
}
