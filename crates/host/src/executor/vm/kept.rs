//! Boots that are saved, each in a file: one for all cells, and all runs, whose machines are alike.
//! They lie with their guest, and go with it.

use super::build::Guest;
use anyhow::{Context, Result};
use pickfs_system::need::find_program;
use pickfs_system::process::check_stop;
use rustix::fs::{FlockOperation, flock, statvfs};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::xxh3_64;

/// In a guest's folder.
const FOLDER: &str = "saved";
const ENDING: &str = "boot";
/// Of one guest; the least recently used ones go. A boot takes 200 to 350 MB.
const MOST: usize = 8;
/// With less the disk is left to others, and a boot lies in the run's own folder.
const LEAST_FREE: u64 = 4 << 30;
const TICK: Duration = Duration::from_millis(50);

/// What a saved boot is made of.
pub(crate) struct Alike<'a> {
    pub guest: &'a Guest,
    /// With this program in it, and the list of modules that are loaded.
    pub initramfs: &'a Path,
    /// All else that a machine has when it boots.
    pub words: String,
    /// Nothing of it is this run's alone.
    pub is_lasting: bool,
}

/// The file with such a boot; `make` fills one where there is none. Others that want the same wait
/// for it.
pub(crate) fn find_or_make(alike: &Alike, of_run: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = folder(alike, of_run)?;
    let file = folder.join(format!("{:016x}.{ENDING}", alike.digest()?));
    let partial = file.with_extension("partial");
    let locked = loop {
        if let Ok(there) = File::open(&file) {
            // The date of its last use.
            let _ = there.set_modified(SystemTime::now());
            return Ok(file);
        }
        let lock = File::options().create(true).append(true).open(&partial);
        let lock = lock.with_context(|| format!("cannot make {}", partial.display()))?;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            check_stop()?;
            std::thread::sleep(TICK);
        }
        // The process that had it has named it, or given up and removed it.
        if partial.metadata().is_ok_and(|there| lock.metadata().is_ok_and(|own| own.ino() == there.ino())) {
            break lock;
        }
    };
    let made = make(&partial);
    if made.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    made?;
    std::fs::rename(&partial, &file).context("cannot name what was saved of the guest")?;
    drop(locked);
    remove_all_but_newest(&folder, MOST);
    Ok(file)
}

/// A guest of the user's own may change in its place, so nothing of it outlives the run.
fn folder(alike: &Alike, of_run: &Path) -> Result<PathBuf> {
    let kept = alike.guest.folder.join(FOLDER);
    let free = statvfs(&alike.guest.folder).map_or(0, |found| found.f_bavail * found.f_frsize);
    let is_kept = alike.is_lasting && alike.guest.release().is_some() && free > LEAST_FREE;
    let folder = if is_kept { kept } else { of_run.to_path_buf() };
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

impl Alike<'_> {
    fn digest(&self) -> Result<u64> {
        let qemu = find_program("qemu-system-x86_64").context("there is no QEMU")?.metadata()?;
        let content = std::fs::read(self.initramfs);
        let content = content.with_context(|| format!("cannot read {}", self.initramfs.display()))?;
        let qemu = format!("{} {}.{}", qemu.len(), qemu.mtime(), qemu.mtime_nsec());
        let all = format!("{} {:x} {qemu} {}", self.guest.name, xxh3_64(&content), self.words);
        Ok(xxh3_64(all.as_bytes()))
    }
}

/// A run that misses one makes it again, the same.
fn remove_all_but_newest(folder: &Path, count: usize) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_boots = entries.filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
    let mut dated: Vec<(SystemTime, PathBuf)> =
        of_boots.filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path))).collect();
    dated.sort();
    let surplus = dated.len().saturating_sub(count);
    dated.into_iter().take(surplus).for_each(|(_, path)| drop(std::fs::remove_file(path)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn guest(folder: &Path, name: &str) -> Guest {
        Guest { name: name.into(), folder: folder.into(), driver: None }
    }

    #[test]
    fn a_boot_is_made_once_for_what_is_alike_and_lies_with_a_guest_of_debians() {
        let [of_guest, of_run] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let [first, other] = ["first", "other"].map(|name| of_run.path().join(name));
        [&first, &other].iter().for_each(|file| std::fs::write(file, file.as_os_str().as_encoded_bytes()).expect("it"));
        let free = statvfs(of_guest.path()).expect("a file system");
        if find_program("qemu-system-x86_64").is_none() || free.f_bavail * free.f_frsize <= LEAST_FREE {
            return pickfs_test_support::not_run("there is no QEMU, or less than 4 GiB are free");
        }
        let made = Cell::new(0);
        let make = |file: &Path| {
            made.set(made.get() + 1);
            Ok(std::fs::write(file, "a boot")?)
        };
        let rows = [
            ("bookworm-1", &first, "1 GiB", true, 1),
            ("bookworm-1", &first, "1 GiB", true, 1),
            ("bookworm-1", &other, "1 GiB", true, 2),
            ("bookworm-1", &first, "2 GiB", true, 3),
            ("bookworm-1", &first, "1 GiB", false, 4),
            ("bookworm-1", &first, "1 GiB", false, 4),
            ("./own", &first, "1 GiB", true, 5),
        ];
        for (name, initramfs, words, is_lasting, wanted) in rows {
            let guest = guest(of_guest.path(), name);
            let alike = Alike { guest: &guest, initramfs, words: words.into(), is_lasting };
            let file = find_or_make(&alike, of_run.path(), make).expect("a boot");
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), "a boot");
            assert_eq!(made.get(), wanted, "{name} {words}");
            assert_eq!(file.starts_with(of_guest.path()), is_lasting && guest.release().is_some(), "{name}");
        }
        let guest = guest(of_guest.path(), "bookworm-1");
        let alike = Alike { guest: &guest, initramfs: &first, words: "3 GiB".into(), is_lasting: true };
        let failed = find_or_make(&alike, of_run.path(), |_| anyhow::bail!("no luck"));
        assert_eq!(failed.expect_err("a failure").to_string(), "no luck");
        find_or_make(&alike, of_run.path(), make).expect("a boot, the second time");
        let names = || std::fs::read_dir(of_guest.path().join(FOLDER)).expect("a folder").count();
        assert_eq!(names(), 4);
        remove_all_but_newest(&of_guest.path().join(FOLDER), 1);
        assert_eq!(names(), 1);
        find_or_make(&alike, of_run.path(), |_| panic!("the newest was removed")).expect("the newest");
    }
}
