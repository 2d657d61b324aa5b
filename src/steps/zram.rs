//! Disks in compressed memory: made, and removed by the number that the kernel gave them (kernel documentation,
//! admin-guide/blockdev/zram.rst).

use super::setting::set;
use crate::sys::devices::content;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONTROL: &str = "/sys/class/zram-control";
/// A disk that was unmounted just now may be looked at by udev.
const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// A new disk, by its device. One that was made and not noted yet takes no memory, as it has no size.
pub fn make(note: &Path, algorithm: &str, bytes: u64) -> Result<PathBuf> {
    let number = content(Path::new(CONTROL).join("hot_add")).context("the kernel gives no disk; is zram there?")?;
    std::fs::write(note, &number).with_context(|| format!("cannot write {}", note.display()))?;
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

/// Whose number is in the note, which goes with it: another may get the number later.
pub fn remove(note: &Path) -> Result<()> {
    let Ok(noted) = std::fs::read_to_string(note) else { return Ok(()) };
    let number: u32 = noted.trim().parse().with_context(|| format!("{} holds no number", note.display()))?;
    let number = number.to_string();
    for attempt in 0.. {
        let gone = !of(&number).exists();
        let removed = gone || set(&of(&number).join("reset"), "1").is_ok() && set(&hot_remove(), &number).is_ok();
        if removed {
            break;
        }
        ensure!(attempt < ATTEMPTS, "zram{number} is in use");
        std::thread::sleep(PAUSE);
    }
    std::fs::remove_file(note).with_context(|| format!("cannot remove {}", note.display()))
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

    #[test]
    fn a_note_goes_with_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("zram");
        assert!(remove(&note).is_ok());
        std::fs::write(&note, "4294967295\n").unwrap();
        remove(&note).unwrap();
        assert!(!note.exists());
        std::fs::write(&note, "../sda").unwrap();
        assert!(remove(&note).unwrap_err().to_string().contains("holds no number"));
    }
}
