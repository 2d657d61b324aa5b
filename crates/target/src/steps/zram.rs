//! Disks in compressed memory: made, and removed by the number that the kernel gave them (kernel
//! documentation, admin-guide/blockdev/zram.rst).

use super::setting::set;
use anyhow::{Context, Result, ensure};
use pickfs_system::sys::devices::content;
use pickfs_system::sys::file::{Entry, beginning};
use pickfs_system::sys::process::trusts;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONTROL: &str = "/sys/class/zram-control";
/// A disk that was unmounted just now may be looked at by udev.
const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// A new disk, by its device. One that was made and not noted yet takes no memory, as it has no
/// size.
pub(crate) fn make(note: &Path, algorithm: &str, bytes: u64) -> Result<PathBuf> {
    let number = content(Path::new(CONTROL).join("hot_add")).context("the kernel gives no disk; is zram there?")?;
    std::fs::write(note, format!("{number}\n{algorithm}\n{bytes}\n"))
        .with_context(|| format!("cannot write {}", note.display()))?;
    let disk = of(&number);
    let (chooser, size) = (disk.join("comp_algorithm"), disk.join("disksize"));
    let offered = content(&chooser).unwrap_or_default();
    set(&chooser, algorithm).with_context(|| format!("this kernel offers {offered}"))?;
    set(&size, &bytes.to_string())?;
    let shown = content(&chooser).unwrap_or_default();
    ensure!(chosen(&shown) == Some(algorithm), "asked for {algorithm}, the kernel shows {shown}");
    let shown = content(&size).unwrap_or_default();
    ensure!(shown == bytes.to_string(), "asked for {bytes} bytes, the kernel shows {shown}");
    Ok(Path::new("/dev").join(format!("zram{number}")))
}

/// Removes the disk whose number is in the note, and the note with it: another disk may get the
/// number later. A disk of another size or algorithm has already got it. Only we can have written
/// the note.
pub(crate) fn remove(note: &Entry, shown: &Path) -> Result<()> {
    let shown = shown.display();
    let file = match note.open() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.with_context(|| format!("refused to read {shown}: it is no plain file"))?,
    };
    let owners = [file.metadata()?.uid(), note.folder()?.uid()];
    ensure!(owners.into_iter().all(trusts), "refused to read {shown}: it, or its folder, belongs to another user");
    let noted = beginning(file)?;
    let mut lines = noted.lines();
    let number: u32 =
        lines.next().unwrap_or_default().trim().parse().with_context(|| format!("{shown} holds no number"))?;
    let disk = of(&number.to_string());
    let size = content(disk.join("disksize")).unwrap_or_default();
    let chooser = content(disk.join("comp_algorithm")).unwrap_or_default();
    if is_same([lines.next(), lines.next()], &size, &chooser) {
        remove_disk(&number.to_string())?;
    }
    std::fs::remove_file(note.path()).with_context(|| format!("cannot remove {shown}"))
}

/// Algorithm and size as noted; earlier versions noted neither. A disk has no size until it got its
/// algorithm.
fn is_same(noted: [Option<&str>; 2], size: &str, chooser: &str) -> bool {
    match noted {
        [Some(algorithm), Some(bytes)] => size == "0" || size == bytes && chosen(chooser) == Some(algorithm),
        _ => true,
    }
}

fn remove_disk(number: &str) -> Result<()> {
    for attempt in 0.. {
        let gone = !of(number).exists();
        let removed = gone || set(&of(number).join("reset"), "1").is_ok() && set(&hot_remove(), number).is_ok();
        if removed {
            break;
        }
        ensure!(attempt < ATTEMPTS, "zram{number} is in use");
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn of(number: &str) -> PathBuf {
    Path::new("/sys/block").join(format!("zram{number}"))
}

fn hot_remove() -> PathBuf {
    Path::new(CONTROL).join("hot_remove")
}

/// `lzo lzo-rle lz4 [zstd]`.
fn chosen(shown: &str) -> Option<&str> {
    shown.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_algorithm_stands_in_brackets() {
        assert_eq!(chosen("lzo lzo-rle lz4 [zstd]"), Some("zstd"));
        assert_eq!(chosen("[lzo-rle]"), Some("lzo-rle"));
        assert_eq!(chosen("lzo"), None);
    }

    fn removed(note: &Path) -> Result<()> {
        remove(&Entry::without_links(note).unwrap(), note)
    }

    #[test]
    fn a_note_goes_with_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().canonicalize().unwrap().join("zram");
        assert!(removed(&note).is_ok());
        for noted in ["4294967295\n", "4294967295\nlz4\n4096\n"] {
            std::fs::write(&note, noted).unwrap();
            removed(&note).unwrap();
            assert!(!note.exists());
        }
        std::fs::write(&note, "../sda").unwrap();
        assert!(removed(&note).unwrap_err().to_string().contains("holds no number"));
    }

    #[test]
    fn a_disk_that_got_the_number_later_is_another() {
        let noted = [Some("lz4"), Some("4096")];
        assert!(is_same(noted, "4096", "lzo [lz4] zstd") && is_same(noted, "0", "[lzo] lz4"));
        assert!(!is_same(noted, "4096", "[lzo] lz4") && !is_same(noted, "8192", "[lz4]"));
        assert!(is_same([None, None], "8192", "[lzo]"));
    }
}
