//! One run's file: created or taken up again, locked against a second writer, appended line by line.

use super::{Folded, Record, fold_file};
use anyhow::{Context, Result, bail};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// A new journal; its folder is made, an existing file is never touched.
    pub fn create(path: &Path) -> Result<Journal> {
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}; give --journal FILE elsewhere", folder.display()))?;
        }
        let file = OpenOptions::new().create_new(true).append(true).open(path);
        let elsewhere = || format!("cannot create the journal {}; give --journal FILE elsewhere", path.display());
        let file = file.with_context(elsewhere)?;
        Journal { file, path: path.to_path_buf() }.locked()
    }

    /// An existing journal of a user who is trusted, by number, and what it holds; a torn last line is cut off first.
    pub fn reopen(path: &Path, trusts: impl Fn(u32) -> bool) -> Result<(Journal, Folded)> {
        let shown = path.display();
        let file = OpenOptions::new().read(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open the journal {shown}"))?;
        let (owner, mode) = file.metadata().map(|found| (found.uid(), found.mode()))?;
        if !trusts(owner) {
            bail!("{shown} belongs to user {owner}: read it, then give --any-owner, or copy it");
        }
        if mode & 0o222 == 0 {
            bail!("{shown} is read-only, as journals in a store are: copy it, and give the copy");
        }
        if mode & 0o002 != 0 {
            bail!("anyone may write to {shown}: read it, then `chmod o-w {shown}`");
        }
        let mut journal = Journal { file, path: path.to_path_buf() }.locked()?;
        let mut folded = fold_file(path)?;
        if folded.run.is_none() {
            bail!("{shown} is not a pickfs journal (it has no `run` record)");
        }
        if journal.cut_torn_line()? {
            folded = fold_file(path)?;
        }
        Ok((journal, folded))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One line, handed to the kernel whole: a killed process tears no line, and the page cache is not synced, so
    /// that the journal adds no flush to a disk that is being measured.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(&line);
        if written.is_err() {
            // A disk that is full takes half a line, which would spoil the next one.
            let _ = self.file.set_len(length);
        }
        written.with_context(|| {
            let shown = self.path.display();
            format!("cannot write the journal {shown}; see to it, then `pickfs run --resume {shown}` goes on")
        })
    }

    fn locked(self) -> Result<Journal> {
        use rustix::fs::{FlockOperation, flock};
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("{} is in use by another pickfs; wait for it, or stop it first", self.path.display());
        }
        Ok(self)
    }

    /// True if there was one.
    fn cut_torn_line(&mut self) -> Result<bool> {
        let length = self.file.seek(SeekFrom::End(0))?;
        let mut keep = length;
        let mut chunk = vec![0; 64 << 10];
        while keep > 0 {
            let begin = keep.saturating_sub(chunk.len() as u64);
            let part = &mut chunk[..(keep - begin) as usize];
            self.file.seek(SeekFrom::Start(begin))?;
            self.file.read_exact(part)?;
            if let Some(at) = part.iter().rposition(|&byte| byte == b'\n') {
                keep = begin + at as u64 + 1;
                break;
            }
            keep = begin;
        }
        if keep < length {
            self.file.set_len(keep)?;
        }
        Ok(keep < length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Begin, Run};

    fn begin(cell: &str) -> Record {
        Record::Begin(Begin { cell: cell.into(), round: 1, target: "a".into(), work: "w".into(), at: String::new() })
    }

    #[test]
    fn a_torn_last_line_is_cut_and_the_journal_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/j.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        journal.append(&Record::Run(Box::new(Run { id: "r".into(), ..Run::default() }))).unwrap();
        journal.append(&begin("one")).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"{\"begin\":{\"cell\":\"tw"].concat()).unwrap();
        let (mut journal, folded) = Journal::reopen(&path, |_| true).unwrap();
        assert_eq!(folded.cells.len(), 1);
        journal.append(&begin("three")).unwrap();
        drop(journal);
        assert_eq!(fold_file(&path).unwrap().cells.len(), 2);
    }

    /// The last line of another file is not taken for a torn one.
    #[test]
    fn what_is_no_journal_or_a_strangers_is_left_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let refused = |trusts: bool| Journal::reopen(&path, |_| trusts).err().unwrap().to_string();
        std::fs::write(&path, "notes\nwithout an end").unwrap();
        assert!(refused(true).contains("is not a pickfs journal"));
        assert_eq!(std::fs::read(&path).unwrap(), b"notes\nwithout an end");
        std::fs::remove_file(&path).unwrap();
        Journal::create(&path).unwrap().append(&Record::Run(Box::default())).unwrap();
        assert!(refused(false).contains("--any-owner"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
        assert!(!rustix::process::geteuid().is_root() || refused(true).contains("is read-only"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(refused(true).contains("anyone may write"));
    }

    #[test]
    fn two_writers_are_refused_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let first = Journal::create(&path).unwrap();
        assert!(Journal::create(&path).is_err());
        assert!(Journal::reopen(&path, |_| true).err().unwrap().to_string().contains("in use by another pickfs"));
        drop(first);
    }
}
