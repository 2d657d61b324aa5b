//! The history of a git repository, made from a seed, as a stream for `git fast-import`: the same
//! commits on every machine, as names and dates in it are fixed.
//!
//! The first commit has all the files; each further one changes some, adds some and deletes as
//! many, as a day's work in a large project does. Each state has its own branch, so that a clone
//! can be brought on commit by commit.

use crate::content::Content;
use crate::profile::Stuff;
use pickfs_system::random::Random;
use std::io::{Result, Write};

/// Files at any time.
const FILES: usize = 600;
const CHANGED: usize = 24;
const ADDED: usize = 4;
const MEDIAN: f64 = 6144.0;
const DEVIATION: f64 = 1.2;
const LARGEST: u64 = 256 << 10;
const FOLDERS: u64 = 40;
/// 2020-01-01; a commit an hour.
const FIRST_DATE: u64 = 1_577_836_800;

/// Name of the branch with the first commit and `commits` more.
pub fn branch(commits: u32) -> String {
    format!("after-{commits:06}")
}

/// Writes a history of the first commit and `commits` more.
pub fn write(commits: u32, seed: u64, out: &mut impl Write) -> Result<()> {
    let (content, random) = (Content::new(), Random::new(seed, 0x617));
    let mut history = History { content, random, paths: vec![String::new(); FILES], made: 0 };
    head(0, out)?;
    history.replace(&(0..FILES).collect::<Vec<_>>(), out)?;
    for commit in 1..=commits {
        head(commit, out)?;
        history.change(out)?;
    }
    out.write_all(b"done\n")
}

struct History {
    content: Content,
    random: Random,
    /// Paths of the files that there are.
    paths: Vec<String>,
    made: u64,
}

impl History {
    /// One commit's worth.
    fn change(&mut self, out: &mut impl Write) -> Result<()> {
        let mut places: Vec<usize> = (0..FILES).collect();
        for at in 0..CHANGED + ADDED {
            let other = at + self.random.index(FILES - at);
            places.swap(at, other);
        }
        for place in &places[..CHANGED] {
            let path = self.paths[*place].clone();
            self.file(&path, out)?;
        }
        for place in &places[CHANGED..CHANGED + ADDED] {
            writeln!(out, "D {}", self.paths[*place])?;
        }
        self.replace(&places[CHANGED..CHANGED + ADDED], out)
    }

    /// New files in these places.
    fn replace(&mut self, places: &[usize], out: &mut impl Write) -> Result<()> {
        for place in places {
            let path = format!("part-{:02}/file-{:06}.c", self.random.below(FOLDERS), self.made);
            self.made += 1;
            self.file(&path, out)?;
            self.paths[*place] = path;
        }
        Ok(())
    }

    fn file(&mut self, path: &str, out: &mut impl Write) -> Result<()> {
        let bytes = (self.random.lognormal(MEDIAN, DEVIATION) as u64).clamp(64, LARGEST);
        let stuff = if self.random.below(20) == 0 { Stuff::Media } else { Stuff::Source };
        writeln!(out, "M 100644 inline {path}\ndata {bytes}")?;
        out.write_all(self.content.like(stuff, &mut self.random, bytes as usize))?;
        out.write_all(b"\n")
    }
}

fn head(commit: u32, out: &mut impl Write) -> Result<()> {
    let date = FIRST_DATE + 3600 * u64::from(commit);
    let message = format!("Commit {commit}");
    writeln!(out, "commit refs/heads/{}\nmark :{}", branch(commit), commit + 1)?;
    writeln!(out, "committer pickfs <pickfs@example.org> {date} +0000\ndata {}\n{message}", message.len())?;
    if commit > 0 { writeln!(out, "from :{commit}") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(commits: u32, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write(commits, seed, &mut out).unwrap();
        out
    }

    #[test]
    fn a_history_comes_from_its_seed_and_a_longer_one_begins_alike() {
        let (short, long) = (written(2, 1), written(5, 1));
        assert_eq!(short, written(2, 1));
        assert_ne!(short, written(2, 2));
        let end = short.len() - b"done\n".len();
        assert!(long.starts_with(&short[..end]));
    }

    #[test]
    fn every_commit_changes_adds_and_deletes() {
        let text = String::from_utf8_lossy(&written(3, 1)).into_owned();
        let count = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
        assert_eq!(count("commit refs/heads/after-"), 4);
        assert_eq!(count("M 100644 inline part-"), FILES + 3 * (CHANGED + ADDED));
        assert_eq!(count("D part-"), 3 * ADDED);
    }
}
