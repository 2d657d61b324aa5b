//! What a site's check does: it reads many small files whole, and works on what is in each: lines,
//! words, links.
//!
//! Every cell has the amount of work for a byte as a fact. Where the processor is busy with it, a
//! faster file system gains less, as it would under the program itself.

use super::{Dataset, Jobs, in_threads};
use crate::stage::{Latencies, Stage};
use crate::workload::settings::{Count, Size, settings};
use crate::workload::{Description, Workload, described};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::Settings;
use std::path::{Path, PathBuf};

pub(crate) struct Check;

settings! {
    Checking {
        checked: Count = "2000", "how many small files are read; all of them where there are fewer";
        small: Size = "64KiB", "no larger file is read";
        passes: Count = "8",
            "how often lines, words and links of each file are gone through: the work of the processor";
    }
}

impl Workload for Check {
    fn description(&self) -> &'static Description {
        described!("check.toml", [Dataset::ROWS, Checking::ROWS, Jobs::ROWS], Dataset::of_a_site)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let source = Dataset::of_a_site(settings).staged(stage.place())?;
        let Checking { checked, small, passes } = Checking::of(settings);
        let Jobs { jobs } = Jobs::of(settings);
        let tree = stage.root().join("tree");
        super::lay_out(stage, &source, &tree)?;
        let (names, wanted) = stage.check("choosing the files and checking them in memory", || {
            let names = small_files(&source.folder, small, checked)?;
            ensure!(!names.is_empty(), "no file of the tree is as small as `small`; name a larger size");
            let wanted = check(&source.folder, &names, passes, jobs)?;
            Ok((names, wanted))
        })?;
        let mean = wanted.working.mean_ns() * names.len() as f64 / wanted.bytes as f64;
        stage.fact("work of the processor", &format!("{mean:.0} ns for each byte that is read"));
        let stored = stored_bytes(stage, &tree, &names)?;
        for _ in stage.repeats() {
            stage.phase("check", |p| {
                p.handled(wanted.bytes, names.len() as u64);
                p.reads_at_least_stored(stored);
                let found = p.own(|| check(&tree, &names, passes, jobs))?;
                ensure!(found.digest == wanted.digest, "other content was read than was written");
                p.latencies("read", found.reading);
                p.latencies("work", found.working);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Bytes of these files that the device must give when they are read. Of a file that takes more
/// than it holds, its content is all that is read.
fn stored_bytes(stage: &mut Stage, root: &Path, names: &[PathBuf]) -> Result<u64> {
    names.iter().map(|name| root.join(name)).try_fold(0, |sum, path| {
        let held = path.metadata()?.len();
        Ok(sum + stage.stored_bytes(&path)?.min(held))
    })
}

/// Paths below the root of `most` regular files of at most `small` bytes, spread over the tree by a
/// hash of their names, and in the order of their names.
fn small_files(root: &Path, small: u64, most: u64) -> Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStrExt;
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_file() && (1..=small).contains(&entry.metadata()?.len()) {
            let name = entry.path().strip_prefix(root).context("a file outside of its tree")?.to_path_buf();
            found.push((xxhash_rust::xxh3::xxh3_64(name.as_os_str().as_bytes()), name));
        }
    }
    found.sort();
    found.truncate(most as usize);
    let mut names: Vec<PathBuf> = found.into_iter().map(|(_, name)| name).collect();
    names.sort();
    Ok(names)
}

/// What came of reading and checking files.
#[derive(Default)]
struct Checked {
    bytes: u64,
    /// Digest of all that was found in all of them.
    digest: u64,
    reading: Latencies,
    working: Latencies,
}

/// Checks with `jobs` threads, each of which takes its share of the files in their order.
fn check(root: &Path, names: &[PathBuf], passes: u64, jobs: u64) -> Result<Checked> {
    let share = names.len().div_ceil(jobs as usize).max(1);
    let shares: Vec<&[PathBuf]> = names.chunks(share).collect();
    let all = in_threads(jobs, |job| check_share(root, shares.get(job).copied().unwrap_or_default(), passes))?;
    Ok(all.into_iter().fold(Checked::default(), |mut sum, one| {
        sum.bytes += one.bytes;
        sum.digest = mix(sum.digest, one.digest);
        sum.reading.add(&one.reading);
        sum.working.add(&one.working);
        sum
    }))
}

fn check_share(root: &Path, names: &[PathBuf], passes: u64) -> Result<Checked> {
    let mut checked = Checked::default();
    for name in names {
        let path = root.join(name);
        checked.reading.start();
        let content = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        checked.reading.lap();
        checked.working.start();
        for _ in 0..passes {
            let page = std::hint::black_box(Page::of(&content));
            checked.digest = mix(mix(mix(mix(checked.digest, page.lines), page.words), page.links), page.digest);
        }
        checked.working.lap();
        checked.bytes += content.len() as u64;
    }
    Ok(checked)
}

/// What is in a file.
#[derive(Debug, Default, PartialEq)]
struct Page {
    lines: u64,
    words: u64,
    links: u64,
    /// Digest of all words and of where the links lead.
    digest: u64,
}

impl Page {
    fn of(content: &[u8]) -> Page {
        let mut page = Page::default();
        for line in content.split(|byte| *byte == b'\n') {
            page.lines += 1;
            for word in line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()) {
                page.words += 1;
                page.digest = mix(page.digest, word.iter().fold(0, |hash, byte| mix(hash, u64::from(*byte))));
                if let Some(target) = target(word) {
                    page.links += 1;
                    page.digest = mix(page.digest, target.len() as u64);
                }
            }
        }
        page
    }
}

/// Where an attribute such as `href="about.html"` leads.
fn target(word: &[u8]) -> Option<&[u8]> {
    let quoted = [&b"href=\""[..], b"src=\""].iter().find_map(|start| word.strip_prefix(*start))?;
    quoted.split(|byte| *byte == b'"').next()
}

/// FNV-1a's step.
fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_words_and_links_are_seen() {
        let page = Page::of(b"<p>See <a href=\"one.html\">one</a>\nor <img src=\"two.png\"> it</p>\n");
        assert_eq!((page.lines, page.words, page.links), (3, 7, 2));
        assert_ne!(Page::of(b"<a href=\"one\">").digest, Page::of(b"<a href=\"two\">").digest);
        assert_eq!(Page::of(b"\n\n").words, 0);
    }

    #[test]
    fn small_files_are_chosen_from_the_whole_tree_and_damage_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..40 {
            let part = folder.path().join(format!("part{}", number % 4));
            std::fs::create_dir_all(&part).unwrap();
            std::fs::write(part.join(format!("page{number}")), format!("page {number}\n").repeat(number)).unwrap();
        }
        let names = small_files(folder.path(), 200, 10).unwrap();
        let parts = (0..4).filter(|part| names.iter().any(|name| name.starts_with(format!("part{part}")))).count();
        assert!(names.len() == 10 && names.is_sorted() && parts >= 2, "{names:?}");
        assert!(names.iter().all(|name| (1..=200).contains(&folder.path().join(name).metadata().unwrap().len())));
        assert_eq!(names, small_files(folder.path(), 200, 10).unwrap());
        let before = check(folder.path(), &names, 2, 1).unwrap();
        for jobs in [2, 3, 100] {
            let shared = check(folder.path(), &names, 2, jobs).unwrap();
            let counts = [&shared, &before].map(|one| (one.bytes, one.reading.count(), one.working.count()));
            assert_eq!(counts[0], counts[1], "{jobs}");
            assert_eq!(shared.digest, check(folder.path(), &names, 2, jobs).unwrap().digest);
        }
        assert_eq!((before.reading.count(), before.working.count()), (10, 10));
        std::fs::write(folder.path().join(&names[3]), "another page").unwrap();
        assert_ne!(check(folder.path(), &names, 2, 1).unwrap().digest, before.digest);
    }
}
