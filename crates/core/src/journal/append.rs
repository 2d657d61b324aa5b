//! One run's file: created or taken up again, locked against a second writer, appended line by
//! line.

use super::chain::{Chain, is_closed_by};
use super::{Folded, LONGEST_LINE, Record, fold_from};
use anyhow::{Context, Result, bail, ensure};
use pickfs_system::sys::file::open_regular;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub struct Journal {
    file: File,
    path: PathBuf,
    /// All that is in the file; `None` until it is needed.
    chain: Option<Chain>,
}

impl Journal {
    /// A new journal; its folder is made, an existing file is never touched.
    pub fn create(path: &Path) -> Result<Journal> {
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}; give --journal FILE elsewhere", folder.display()))?;
        }
        // Write access to the journal decides what is undone, so only its owner has it.
        let file = OpenOptions::new().create_new(true).read(true).append(true).mode(0o644).open(path);
        let elsewhere = || format!("cannot create the journal {}; give --journal FILE elsewhere", path.display());
        let file = file.with_context(elsewhere)?;
        Journal { file, path: path.to_path_buf(), chain: None }.locked()
    }

    /// An existing file; nothing is known of it yet. All that follows is of this very file,
    /// whatever becomes of its path.
    pub fn open(path: &Path) -> Result<Journal> {
        let file = open_regular(path, true).with_context(|| format!("cannot open the journal {}", path.display()))?;
        Journal { file, path: path.to_path_buf(), chain: None }.locked()
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn fold(&self) -> Result<Folded> {
        fold_from(&self.file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One line, handed to the kernel whole: a killed process tears no line, and the page cache is
    /// not synced, so that the journal adds no flush to a disk that is being measured.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let (bytes, most) = (line.len(), LONGEST_LINE >> 20);
        ensure!(
            bytes as u64 <= LONGEST_LINE,
            "a record of {bytes} bytes is longer than a line of a journal may be ({most} MiB)"
        );
        let mut chain = self.chain.take().map_or_else(|| self.chained(), Ok)?;
        let before = chain.clone();
        chain.add(&line);
        if is_closed_by(record) {
            let mut link = serde_json::to_vec(&Record::Chain(chain.link()))?;
            link.push(b'\n');
            chain.add(&link);
            line.extend(link);
        }
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(&line);
        if written.is_err() {
            // A disk that is full takes half a line, which would spoil the next one.
            let _ = self.file.set_len(length);
        }
        self.chain = Some(if written.is_ok() { chain } else { before });
        written.with_context(|| {
            let shown = self.path.display();
            let again = format!("`pickfs run --resume {}` goes on", typed(&self.path));
            let again = if length == 0 { "begin the run again" } else { &again };
            format!("cannot write the journal {shown}; see to it, then {again}")
        })
    }

    fn chained(&mut self) -> Result<Chain> {
        let (mut chain, mut chunk) = (Chain::default(), vec![0; 64 << 10]);
        self.file.rewind().context("cannot read the journal")?;
        loop {
            match self.file.read(&mut chunk).context("cannot read the journal")? {
                0 => return Ok(chain),
                read => chain.add(&chunk[..read]),
            }
        }
    }

    fn locked(self) -> Result<Journal> {
        use rustix::fs::{FlockOperation, flock};
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("{} is in use by another pickfs; wait for it, or stop it first", self.path.display());
        }
        Ok(self)
    }

    /// Cuts the last line off if it has no end. True if there was one.
    pub fn cut_torn_line(&mut self) -> Result<bool> {
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
            self.chain = None;
        }
        Ok(keep < length)
    }
}

/// A path in a command that can be pasted: one word of a shell.
pub fn typed(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Begin, Run, fold_file};

    fn begin(cell: &str) -> Record {
        Record::Begin(Begin { cell: cell.into(), round: 1, target: "a".into(), work: "w".into(), at: String::new() })
    }

    #[test]
    fn a_path_is_one_word_of_a_command() {
        for (path, word) in [("runs/a.jsonl", "runs/a.jsonl"), ("my run; rm x", "'my run; rm x'")] {
            assert_eq!(typed(Path::new(path)), word);
        }
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
        let mut journal = Journal::open(&path).unwrap();
        assert!(journal.cut_torn_line().unwrap() && !journal.cut_torn_line().unwrap());
        assert_eq!(journal.fold().unwrap().cells.len(), 1);
        journal.append(&begin("three")).unwrap();
        drop(journal);
        assert_eq!(fold_file(&path).unwrap().cells.len(), 2);
    }

    /// What is read and written is the file that was opened and not the one that has its path now.
    #[test]
    fn a_journal_that_is_swapped_stays_the_one_that_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        Journal::create(&path).unwrap().append(&begin("ours")).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        std::fs::write(&path, "theirs\n").unwrap();
        assert_eq!(journal.fold().unwrap().cells[0].id, "ours");
        journal.append(&begin("more")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs\n");
        assert_eq!(fold_file(&folder.path().join("moved")).unwrap().cells.len(), 2);
    }

    /// It could not be read again.
    #[test]
    fn a_record_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let rest = serde_json::to_vec(&begin("")).unwrap().len() + 1;
        let longest = "x".repeat(LONGEST_LINE as usize - rest);
        journal.append(&begin(&longest)).unwrap();
        let refused = journal.append(&begin(&(longest + "x"))).unwrap_err().to_string();
        assert!(refused.contains("longer than a line of a journal may be (4 MiB)"), "{refused}");
        assert_eq!((fold_file(&path).unwrap().cells.len(), fold_file(&path).unwrap().unreadable), (1, 0));
    }

    #[test]
    fn two_writers_are_refused_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let first = Journal::create(&path).unwrap();
        assert!(Journal::create(&path).is_err());
        assert!(Journal::open(&path).err().unwrap().to_string().contains("in use by another pickfs"));
        drop(first);
    }
}
