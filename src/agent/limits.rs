//! What a file system that stands can hold and do, tried on it after the work, outside of every timer: how long a name and
//! how large a file it takes, whether it says when a file was made, whether copies can share blocks.
//!
//! Drivers say what their makers document; this is what the kernel answers here. Where the two differ, both are shown.

use crate::plan::{FILE, NAME};
use crate::stack::fs::feature::{CREATION_TIME, REFLINKS};
use crate::units::show_bytes;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

const TRIAL: &str = ".pickfs-limits";
const COPY: &str = ".pickfs-limits-copy";
/// More than the smallest files that are kept in an inode, and a multiple of every block size in use.
const CONTENT: usize = 256 << 10;

/// Facts, and the largest of each; what could not be tried is left out. `features` are those told of the file system before.
pub fn of(root: &Path, features: Option<&String>) -> (BTreeMap<String, String>, BTreeMap<String, u64>) {
    let (file, copy) = (root.join(TRIAL), root.join(COPY));
    let tried = tried(&file, &copy);
    // Gone already where they could not be made.
    for path in [&file, &copy] {
        let _ = std::fs::remove_file(path);
    }
    let Ok(tried) = tried else { return Default::default() };
    let name = longest_name(root);
    let mut facts = tried.facts(name);
    facts.extend(features.map(|told| ("features".to_string(), tried.features(told))));
    let largest = [(FILE, Some(tried.largest_file.unwrap_or(i64::MAX as u64))), (NAME, name)];
    (facts, largest.into_iter().filter_map(|(what, bytes)| Some((what.to_string(), bytes?))).collect())
}

fn longest_name(root: &Path) -> Option<u64> {
    rustix::fs::statvfs(root).ok().map(|found| found.f_namemax)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tried {
    /// In bytes, holes and all.
    largest_file: Option<u64>,
    creation_time: bool,
    reflinks: bool,
}

fn tried(file: &Path, copy: &Path) -> std::io::Result<Tried> {
    std::fs::write(file, vec![b'x'; CONTENT])?;
    let made = statx_knows_birth(file);
    let reflinks = rustix::fs::ioctl_ficlone(File::create_new(copy)?, File::open(file)?).is_ok();
    let largest_file = largest(&File::options().write(true).open(file)?);
    Ok(Tried { largest_file, creation_time: made, reflinks })
}

/// statx(2) leaves the bit out of its answer where a file system does not keep the time.
fn statx_knows_birth(file: &Path) -> bool {
    let asked = rustix::fs::statx(CWD, file, AtFlags::empty(), StatxFlags::BTIME);
    asked.is_ok_and(|told| StatxFlags::from_bits_retain(told.stx_mask).contains(StatxFlags::BTIME))
}

/// The largest length that ftruncate(2) takes; nothing is written. `None` where it takes any, as nothing was found out.
fn largest(file: &File) -> Option<u64> {
    let takes = |bytes: u64| file.set_len(bytes).is_ok();
    let (mut good, mut bad) = (CONTENT as u64, i64::MAX as u64);
    if takes(bad) {
        return None;
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if takes(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

impl Tried {
    fn facts(self, longest_name: Option<u64>) -> BTreeMap<String, String> {
        let yes = |flag: bool| if flag { "yes" } else { "no" }.to_string();
        let bytes = |bytes: u64| show_bytes(bytes as f64);
        let largest = self.largest_file.map_or("no limit below 8 EiB".into(), bytes);
        let facts = [
            ("tried: longest name", longest_name.map(bytes)),
            ("tried: largest file", Some(largest)),
            ("tried: creation time", Some(yes(self.creation_time))),
            ("tried: reflinks", Some(yes(self.reflinks))),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
    }

    /// With what was seen to be there, in the order of names. What was told and not seen stays: a trial of one file proves
    /// no absence.
    fn features(self, told: &str) -> String {
        let seen = [(self.creation_time, CREATION_TIME), (self.reflinks, REFLINKS)];
        let mut all: Vec<&str> = told.split(' ').filter(|name| !name.is_empty()).collect();
        all.extend(seen.iter().filter(|(there, _)| *there).map(|(_, name)| *name));
        all.sort_unstable();
        all.dedup();
        all.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_added_and_nothing_taken_away() {
        let tried = Tried { largest_file: Some(16 << 40), creation_time: true, reflinks: false };
        assert_eq!(tried.features("checksums reflinks"), "checksums creation-time reflinks");
        assert_eq!(tried.features(""), "creation-time");
        let facts = tried.facts(Some(255));
        assert_eq!(facts["tried: largest file"], "16.0 TiB");
        assert_eq!(facts["tried: longest name"], "255 B");
        assert_eq!(Tried { largest_file: None, ..tried }.facts(None).len(), 3);
    }

    /// As every machine has some: limits of a memory file system are those of the kernel's page cache.
    #[test]
    fn a_file_system_is_tried_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (facts, largest) = of(folder.path(), Some(&String::new()));
        assert_eq!(largest[NAME], 255);
        assert!(largest[FILE] > 1 << 40, "{largest:?}");
        assert_eq!(facts["tried: longest name"], "255 B", "{facts:?}");
        assert!(facts.contains_key("tried: largest file") && facts.contains_key("features"), "{facts:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(of(Path::new("/nowhere/at/all"), None) == Default::default());
    }
}
