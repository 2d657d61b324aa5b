//! What a file system that stands can hold and do, tried on it after the work, outside of every
//! timer: how long a name and how large a file it takes, whether it says when a file was made,
//! whether copies can share blocks.
//!
//! Drivers say what their makers document; this is what the kernel answers here. Where the two
//! differ, both are shown.

use crate::stack::fs::feature::{CREATION_TIME, REFLINKS};
use pickfs_core::plan::{FILE, NAME};
use pickfs_system::units::show_bytes;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

const TRIAL: &str = ".pickfs-limits";
const COPY: &str = ".pickfs-limits-copy";
/// More than the smallest files that are kept in an inode, and a multiple of every block size in
/// use.
const CONTENT: usize = 256 << 10;
/// What a file made longer may take of the device, and all lengths together of time. Where holes
/// cost more, as each needs pointers (reiserfs) or blocks (FAT), it is not tried on; no single
/// length is more than twice the one before.
const MOST_SPACE: u64 = 4 << 20;
const MOST_TIME: Duration = Duration::from_secs(5);
/// No file is longer, on any file system.
const ANY: u64 = i64::MAX as u64;

/// Facts, and the largest of each; what could not be tried is left out. `features` are those known
/// of the file system before. `make_durable` is its own way: OpenZFS gives no copy of blocks that
/// are still dirty (EAGAIN).
pub(crate) fn of(
    root: &Path,
    features: Option<&String>,
    make_durable: impl FnOnce() -> anyhow::Result<()>,
) -> (BTreeMap<String, String>, BTreeMap<String, u64>) {
    let (file, copy) = (root.join(TRIAL), root.join(COPY));
    let tried = tried(&file, &copy, make_durable);
    // Gone already where they could not be made.
    for path in [&file, &copy] {
        let _ = std::fs::remove_file(path);
    }
    let Ok(tried) = tried else { return Default::default() };
    let name = longest_name(root);
    let mut facts = tried.facts(name);
    facts.extend(features.map(|list| ("features".to_string(), tried.features(list))));
    let largest = [(FILE, tried.largest_file.ok()), (NAME, name)];
    (facts, largest.into_iter().filter_map(|(what, bytes)| Some((what.to_string(), bytes?))).collect())
}

fn longest_name(root: &Path) -> Option<u64> {
    rustix::fs::statvfs(root).ok().map(|found| found.f_namemax)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LimitTrial {
    /// In bytes, holes and all; or why it is not known.
    largest_file: Result<u64, &'static str>,
    creation_time: bool,
    reflinks: bool,
}

fn tried(file: &Path, copy: &Path, make_durable: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<LimitTrial> {
    std::fs::write(file, vec![b'x'; CONTENT])?;
    make_durable()?;
    let made = statx_knows_birth(file);
    let reflinks = rustix::fs::ioctl_ficlone(File::create_new(copy)?, File::open(file)?).is_ok();
    let opened = File::options().write(true).open(file)?;
    let (free, begun) = (free_bytes(&opened), Instant::now());
    let spent = || Spent { space: free.saturating_sub(free_bytes(&opened)), time: begun.elapsed() };
    let largest_file = largest(|bytes| opened.set_len(bytes), spent);
    Ok(LimitTrial { largest_file, creation_time: made, reflinks })
}

/// statx(2) leaves the bit out of its answer where a file system does not keep the time.
fn statx_knows_birth(file: &Path) -> bool {
    let asked = rustix::fs::statx(CWD, file, AtFlags::empty(), StatxFlags::BTIME);
    asked.is_ok_and(|stat| StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME))
}

fn free_bytes(file: &File) -> u64 {
    rustix::fs::fstatvfs(file).map_or(0, |found| found.f_bfree * found.f_frsize)
}

/// Since the trial began.
struct Spent {
    space: u64,
    time: Duration,
}

/// The largest length that ftruncate(2) takes; nothing is written. The search goes up by doubling,
/// so that it ends soon where a hole is not free.
fn largest(set_len: impl Fn(u64) -> io::Result<()>, spent: impl Fn() -> Spent) -> Result<u64, &'static str> {
    let takes = |bytes: u64| {
        let taken = match set_len(bytes) {
            Ok(()) => true,
            Err(error) if is_limit(&error) => false,
            Err(_) => return Err("not tried: a longer file fails for another reason than its length"),
        };
        match spent() {
            Spent { space, .. } if space > MOST_SPACE => Err("not tried: holes take space here"),
            Spent { time, .. } if time > MOST_TIME => Err("not tried: it takes too long"),
            _ => Ok(taken),
        }
    };
    let mut good = CONTENT as u64;
    let mut bad = loop {
        if good == ANY {
            return Ok(ANY);
        }
        let next = good.saturating_mul(2).min(ANY);
        if !takes(next)? {
            break next;
        }
        good = next;
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if takes(middle)? { good = middle } else { bad = middle }
    }
    Ok(good)
}

/// EFBIG by ftruncate(2); EINVAL where a file system checks the length itself.
fn is_limit(error: &io::Error) -> bool {
    [Errno::FBIG, Errno::INVAL].iter().any(|limit| error.raw_os_error() == Some(limit.raw_os_error()))
}

impl LimitTrial {
    fn facts(self, longest_name: Option<u64>) -> BTreeMap<String, String> {
        let yes = |flag: bool| if flag { "yes" } else { "no" }.to_string();
        let bytes = |bytes: u64| show_bytes(bytes as f64);
        let largest = match self.largest_file {
            Ok(ANY) => "no limit below 8 EiB".to_string(),
            Ok(most) => bytes(most),
            Err(why) => why.to_string(),
        };
        let facts = [
            ("tried: longest name", longest_name.map(bytes)),
            ("tried: largest file", Some(largest)),
            ("tried: creation time", Some(yes(self.creation_time))),
            ("tried: reflinks", Some(yes(self.reflinks))),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
    }

    /// The known and the seen features, in the order of names. Features that are known but were not
    /// seen stay: a trial of one file proves no absence.
    fn features(self, names: &str) -> String {
        let seen = [(self.creation_time, CREATION_TIME), (self.reflinks, REFLINKS)];
        let mut all: Vec<&str> = names.split(' ').filter(|name| !name.is_empty()).collect();
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
        let tried = LimitTrial { largest_file: Ok(16 << 40), creation_time: true, reflinks: false };
        assert_eq!(tried.features("checksums reflinks"), "checksums creation-time reflinks");
        assert_eq!(tried.features(""), "creation-time");
        let facts = tried.facts(Some(255));
        assert_eq!(facts["tried: largest file"], "16.0 TiB");
        assert_eq!(facts["tried: longest name"], "255 B");
        let any = LimitTrial { largest_file: Ok(ANY), ..tried }.facts(None);
        assert_eq!((any.len(), any["tried: largest file"].as_str()), (3, "no limit below 8 EiB"));
    }

    /// What is found where a length above `limit` fails so, and each byte of the longest so far
    /// takes so much space and time.
    fn found(
        limit: u64,
        fails: Errno,
        space: impl Fn(u64) -> u64,
        time: impl Fn(u64) -> Duration,
    ) -> Result<u64, &'static str> {
        let longest = std::cell::Cell::new(0);
        let set_len = |bytes: u64| {
            longest.set(longest.get().max(bytes.min(limit)));
            if bytes > limit { Err(io::Error::from(fails)) } else { Ok(()) }
        };
        largest(set_len, || Spent { space: space(longest.get()), time: time(longest.get()) })
    }

    #[test]
    fn a_limit_is_found_and_a_full_disk_is_none() {
        let (free, at_once) = (|_: u64| 0, |_: u64| Duration::ZERO);
        for limit in [CONTENT as u64, (CONTENT as u64) + 1, 4 << 40, (2 << 40) - 4096, ANY - 1, ANY] {
            assert_eq!(found(limit, Errno::FBIG, free, at_once), Ok(limit));
        }
        assert!(found(1 << 30, Errno::NOSPC, free, at_once).is_err());
    }

    #[test]
    fn holes_that_cost_something_are_not_made_long() {
        // Four bytes of pointers for each block of 4 KiB, and a limit of 2 TiB.
        let pointers = std::cell::Cell::new(0);
        let space = |bytes: u64| {
            pointers.set(bytes / 1024);
            bytes / 1024
        };
        assert_eq!(found(2 << 40, Errno::FBIG, space, |_| Duration::ZERO), Err("not tried: holes take space here"));
        assert!(pointers.get() <= 2 * MOST_SPACE, "{pointers:?}");
        let slow = |bytes: u64| Duration::from_nanos(bytes >> 20);
        assert_eq!(found(ANY, Errno::FBIG, |_| 0, slow), Err("not tried: it takes too long"));
    }

    #[test]
    fn blocks_are_durable_before_a_copy_is_to_share_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = None;
        of(folder.path(), None, || {
            let written = std::fs::metadata(folder.path().join(TRIAL))?.len();
            seen = Some((written, folder.path().join(COPY).exists()));
            Ok(())
        });
        assert_eq!(seen, Some((CONTENT as u64, false)));
    }

    /// As every machine has some: limits of a memory file system are those of the kernel's page
    /// cache.
    #[test]
    fn a_file_system_is_tried_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (facts, largest) = of(folder.path(), Some(&String::new()), || Ok(()));
        assert_eq!(largest[NAME], 255);
        assert!(largest[FILE] > 1 << 40, "{largest:?}");
        assert_eq!(facts["tried: longest name"], "255 B", "{facts:?}");
        assert!(facts.contains_key("tried: largest file") && facts.contains_key("features"), "{facts:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(of(Path::new("/nowhere/at/all"), None, || Ok(())) == Default::default());
    }
}
