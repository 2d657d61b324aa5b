//! Files of the host that are memory of a guest: how a simulated machine gets its disks and hands
//! out what it has written. The first page says what a region is; the guest's driver (`simdisk.c`)
//! reads it.

use anyhow::{Context, Result, bail};
use pickfs_disks::parameters::{Words, at};
use pickfs_system::sys::disk_model::WORDS;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::time::{Duration, Instant};

/// "PICFSIM1", little endian.
const MAGIC: u64 = 0x314d_4953_4643_4950;
const READ_ONLY: u64 = 1;
const SERIAL_AT: u64 = 32;
const AT_ONCE_AT: u64 = 64;
const WORDS_AT: u64 = 512;
/// Where the disk's first sector is: behind the first page.
const DATA: u64 = 4096;
const PAGE: usize = 4096;
/// Room for the records of a cell, in bytes.
pub(crate) const RECORDS: u64 = 256 << 20;

/// The first page of a recording: "PICFREC1", little endian.
const RECORD_MAGIC: u64 = 0x3143455246434950;
const WITH_DATA: u64 = 1;

/// A region's file, sparse.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Region {
    pub file: PathBuf,
    /// A multiple of [`STEP`].
    pub bytes: u64,
}

/// The sizes of regions are multiples of this. QEMU wants no less of memory that it shares; few
/// sizes make few guests that are saved for them.
const STEP: u64 = 2 << 20;

impl Region {
    /// An empty disk. What was in the file is lost.
    pub(crate) fn disk(file: &Path, serial: &str, bytes: u64, words: &Words) -> Result<Region> {
        Region::make(file, serial, bytes, words, 0)
    }

    /// As large as another, without content: what stands in for it until the guest looks.
    pub(crate) fn blank(&self, file: &Path) -> Result<Region> {
        let made = File::create(file).and_then(|open| open.set_len(self.bytes));
        made.with_context(|| format!("cannot make {}", file.display()))?;
        Ok(Region { file: file.into(), bytes: self.bytes })
    }

    /// A disk without delay with this content, which the guest cannot change.
    pub(crate) fn content(file: &Path, serial: &str, mut content: impl Read) -> Result<Region> {
        let open = File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
        io::Seek::seek(&mut &open, io::SeekFrom::Start(DATA))?;
        let bytes = io::copy(&mut content, &mut &open).with_context(|| format!("cannot fill {}", file.display()))?;
        Region::make(file, serial, bytes.next_multiple_of(PAGE as u64).max(PAGE as u64), &at_once(bytes), READ_ONLY)
    }

    /// Where a disk with these words is recorded. It is a disk without delay too.
    pub(crate) fn recording(file: &Path, serial: &str, bytes: u64, words: &Words) -> Result<Region> {
        let region = Region::disk(file, serial, bytes, &at_once(bytes))?;
        let of_disk = ["COMMAND_NS", "LINK_PS", "VOLATILE"].map(|name| words[at(name)]);
        let page = [&[RECORD_MAGIC, bytes, PAGE as u64, 0, WITH_DATA], &of_disk[..]].concat();
        let open = File::options().write(true).open(file);
        let written = open.and_then(|open| open.write_all_at(&little_endian(&page), DATA));
        written.with_context(|| format!("cannot write {}", file.display())).map(|()| region)
    }

    fn make(file: &Path, serial: &str, bytes: u64, words: &Words, flags: u64) -> Result<Region> {
        let make = || -> io::Result<Region> {
            let open = File::options().create(true).truncate(false).write(true).open(file)?;
            if flags & READ_ONLY == 0 {
                open.set_len(0)?;
            }
            let all = (DATA + bytes).next_multiple_of(STEP);
            open.set_len(all)?;
            let header = [MAGIC, flags, bytes / 512, DATA];
            open.write_all_at(&little_endian(&header), 0)?;
            open.write_all_at(serial.as_bytes(), SERIAL_AT)?;
            open.write_all_at(&little_endian(words), WORDS_AT)?;
            Ok(Region { file: file.into(), bytes: all })
        };
        make().with_context(|| format!("cannot make {}", file.display()))
    }

    /// Requests of these kinds take no time; kinds as the driver names them, such as "RM".
    pub(crate) fn answer_at_once(&self, kinds: &[&str]) -> Result<()> {
        let mask = kinds.iter().try_fold(0, |mask, kind| Some(mask | 1_u64 << number_of_kind(kind)?));
        let mask = mask.with_context(|| format!("no kinds of requests: {kinds:?}"))?;
        let open = File::options().write(true).open(&self.file);
        let written = open.and_then(|file| file.write_all_at(&mask.to_le_bytes(), AT_ONCE_AT));
        written.with_context(|| format!("cannot write {}", self.file.display()))
    }

    /// Writes at a place of the disk.
    pub(crate) fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        let written = File::options().write(true).open(&self.file).and_then(|file| file.write_all_at(bytes, DATA + at));
        written.with_context(|| format!("cannot write {}", self.file.display()))
    }

    /// The text at a place of the disk, up to the first zero.
    pub(crate) fn text_at(&self, at: u64) -> Result<String> {
        let file = File::open(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        let (mut text, mut piece) = (Vec::new(), vec![0; 1 << 20]);
        loop {
            let read = file.read_at(&mut piece, DATA + at + text.len() as u64)?;
            let end = piece[..read].iter().position(|byte| *byte == 0).unwrap_or(read);
            text.extend(&piece[..end]);
            if end == 0 || end < read {
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
        }
    }

    /// A digest of all pages of the disk that are not zero, with their places.
    pub(crate) fn digest(&self) -> Result<String> {
        let file = File::open(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        let (mut hash, mut from) = (xxhash_rust::xxh3::Xxh3::new(), DATA);
        let mut page = [0; PAGE];
        while let Ok(begin) = seek(&file, SeekFrom::Data(from)) {
            let end = seek(&file, SeekFrom::Hole(begin)).context("cannot find the end of data")?;
            for at in (begin / PAGE as u64 * PAGE as u64..end).step_by(PAGE) {
                file.read_exact_at(&mut page, at).context("cannot read a page")?;
                if at >= DATA && page.iter().any(|byte| *byte != 0) {
                    hash.update(&at.to_le_bytes());
                    hash.update(&page);
                }
            }
            from = end.max(begin + 1);
        }
        Ok(format!("{:032x}", hash.digest128()))
    }
}

/// As `waits.c` numbers them.
fn number_of_kind(kind: &str) -> Option<u32> {
    let mut letters = kind.chars();
    let operation = "RWFD".find(letters.next()?)? as u32;
    letters.try_fold(operation << 4, |number, flag| Some(number | 1 << "MSAF".find(flag)?))
}

fn little_endian(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The table of a disk without delay.
pub(crate) fn at_once(bytes: u64) -> Words {
    let mut words = [0; WORDS];
    words[at("SECTORS")] = (bytes / 512).max(1);
    words[at("DEPTH")] = 64;
    words
}

/// What the console has of a guest that was ended as it slept.
pub(crate) const SLEEPS: &str = "the guest sleeps";

/// Longest time that an emulator may do nothing at all.
const ASLEEP: Duration = Duration::from_secs(60);

/// What a machine has written into a region, as soon as its emulator has ended; nothing of it is
/// read before.
pub(crate) struct Delivered {
    emulator: Option<ChildStdout>,
    process: u32,
    /// How long it may do nothing at all.
    patience: Duration,
    /// Where it is written down that it did nothing: the guest's console.
    console: PathBuf,
    region: PathBuf,
    read: u64,
}

impl Read for Delivered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(emulator) = self.emulator.take() {
            self.wait_for(emulator)?;
        }
        let file = File::open(&self.region)?;
        let read = file.read_at(buffer, DATA + self.read)?;
        // Behind the last line the region is empty.
        let text = buffer[..read].iter().position(|byte| *byte == 0).unwrap_or(read);
        self.read += text as u64;
        Ok(text)
    }
}

impl Delivered {
    pub(crate) fn of(process: u32, emulator: ChildStdout, console: &Path, region: PathBuf) -> Delivered {
        let (console, patience) = (console.into(), ASLEEP);
        Delivered { emulator: Some(emulator), process, patience, console, region, read: 0 }
    }

    /// Until it has ended. Nothing outside can wake a guest that sleeps without a timer, so one
    /// that did nothing for long is killed. How busy the host is does not matter: what waits for a
    /// processor is not asleep.
    fn wait_for(&self, mut emulator: ChildStdout) -> io::Result<()> {
        let (mut used, mut since) = (None, Instant::now());
        loop {
            let look = Timespec { tv_sec: 1, tv_nsec: 0 };
            let mut awaited = [PollFd::new(&emulator, PollFlags::IN)];
            match rustix::event::poll(&mut awaited, Some(&look)) {
                // Such as that of a request to stop.
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return io::copy(&mut emulator, &mut io::sink()).map(drop),
                Err(error) => return Err(error.into()),
            }
            let now = asleep_after(self.process);
            if now.is_none() || now != used {
                (used, since) = (now, Instant::now());
            } else if since.elapsed() >= self.patience {
                let mut console = File::options().append(true).create(true).open(&self.console)?;
                writeln!(console, "pickfs: {SLEEPS}, and has no timer that would wake it")?;
                // It is our child and was not waited for, so the number is still its own.
                Pid::from_raw(self.process as i32).map_or(Ok(()), |pid| kill_process(pid, Signal::KILL))?;
                return Ok(());
            }
        }
    }
}

/// Ticks of processor time that a process has used, where all of its threads sleep.
fn asleep_after(process: u32) -> Option<u64> {
    let process = procfs::process::Process::new(process as i32).ok()?;
    let mut ticks = 0;
    for task in process.tasks().ok()? {
        let stat = task.ok()?.stat().ok()?;
        if stat.state != 'S' {
            return None;
        }
        ticks += stat.utime + stat.stime;
    }
    Some(ticks)
}

/// A size that a region can have, and its sectors.
pub(crate) fn check_size(bytes: u64) -> Result<u64> {
    if bytes > 256 << 30 {
        bail!("a simulated disk can have at most 256 GiB");
    }
    Ok(bytes / PAGE as u64 * PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of sleep is more than its patience, a second of work is not.
    #[test]
    fn an_emulator_that_sleeps_for_long_is_killed_and_the_console_has_why() {
        for (script, is_killed) in [("exec sleep 1000", true), ("while kill -0 $PPID; do :; done", false)] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut command = std::process::Command::new("sh");
            let mut child = command.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().expect("sh");
            let from = Delivered {
                emulator: child.stdout.take(),
                process: child.id(),
                patience: Duration::from_millis(100),
                console: folder.path().join("console"),
                region: folder.path().join("region"),
                read: 0,
            };
            std::fs::write(&from.region, "").expect("a region");
            let console = from.console.clone();
            let waiting = std::thread::spawn({
                let mut from = from;
                move || from.read(&mut [0; 10]).expect("nothing")
            });
            if !is_killed {
                std::thread::sleep(Duration::from_secs(3));
                assert!(!waiting.is_finished(), "it works");
                child.kill().expect("killed");
            }
            assert_eq!(waiting.join().expect("an end"), 0);
            let said = std::fs::read_to_string(console).unwrap_or_default();
            assert_eq!(said.contains("the guest sleeps"), is_killed, "{said}");
            let _ = child.wait();
        }
    }

    #[test]
    fn a_digest_is_of_what_is_on_the_disk_and_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let region = Region::disk(&folder.path().join("a"), "it", 1 << 20, &at_once(1 << 20)).expect("made");
        assert_eq!(region.bytes, 2 << 20, "with the first page, in steps");
        let empty = region.digest().expect("a digest");
        let file = File::options().write(true).open(&region.file).expect("opened");
        file.write_all_at(&[0; PAGE], DATA + 8192).expect("zeros");
        assert_eq!(region.digest().expect("a digest"), empty, "a page of zeros is no content");
        file.write_all_at(b"x", DATA + 8192).expect("written");
        let there = region.digest().expect("a digest");
        file.write_all_at(b"\0", DATA + 8192).expect("written");
        file.write_all_at(b"x", DATA + 12288).expect("written");
        let elsewhere = region.digest().expect("a digest");
        assert!(there != empty && elsewhere != empty && there != elsewhere);
        let anew = Region::disk(&region.file, "it", 1 << 20, &at_once(1 << 20)).expect("made");
        assert_eq!(anew.digest().expect("a digest"), empty);
    }

    #[test]
    fn what_was_written_is_read_up_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        Region::disk(&path, "it", 1 << 20, &at_once(1 << 20)).expect("made");
        let read = || {
            let mut text = String::new();
            let (console, patience) = (folder.path().join("console"), Duration::MAX);
            let mut from = Delivered { emulator: None, process: 0, patience, console, region: path.clone(), read: 0 };
            from.read_to_string(&mut text).expect("read");
            text
        };
        assert_eq!(read(), "");
        let lines = "a line\n".repeat(3000);
        File::options().write(true).open(&path).expect("opened").write_all_at(lines.as_bytes(), DATA).expect("written");
        assert_eq!(read(), lines);
    }

    /// The page that the driver reads, field by field.
    #[test]
    fn the_first_page_is_laid_out_as_in_the_driver() {
        let source = include_str!("simdisk.c");
        assert!(source.contains(&format!("#define MAGIC {MAGIC:#018x}ULL")), "{MAGIC:#x}");
        assert!(source.contains("u64 magic, flags, sectors, data;\n\tchar serial[32];\n"));
        assert!(source.contains("takes no time. */\n\tu64 at_once;\n\tu64 reserved[55];\n\tu64 words[SIM_WORDS];"));
        assert_eq!((SERIAL_AT, AT_ONCE_AT, WORDS_AT), (4 * 8, 4 * 8 + 32, 4 * 8 + 32 + 8 + 55 * 8));
        const { assert!(WORDS_AT as usize + WORDS * 8 <= PAGE) };
        assert!(source.contains(&format!("#define RECORD_MAGIC {RECORD_MAGIC:#018x}ULL")), "{RECORD_MAGIC:#x}");
        assert!(source.contains("u64 magic, bytes, used, lost, mode, command_ns, link_ps, forgets;"));
        assert!(source.contains("enum { IDLE, WITH_DATA, WITHOUT_DATA };"));
    }

    #[test]
    fn kinds_have_the_numbers_of_the_driver() {
        let source = include_str!("waits.c");
        assert!(source.contains("enum { HAS_META = 1, HAS_SYNC = 2, HAS_AHEAD = 4, HAS_FUA = 8, KINDS = 64, "));
        assert!(source.contains("operations[] = \"RWFD\";") && source.contains("operation << 4 | "));
        for (kind, number) in [
            ("R", Some(0)),
            ("RM", Some(1)),
            ("RA", Some(4)),
            ("WFSM", Some(27)),
            ("F", Some(32)),
            ("D", Some(48)),
            ("timer", None),
            ("", None),
        ] {
            assert_eq!(number_of_kind(kind), number, "{kind}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let region = Region::disk(&folder.path().join("a"), "it", 1 << 20, &at_once(1 << 20)).expect("made");
        let mask =
            || u64::from_le_bytes(std::fs::read(&region.file).expect("read")[64..72].try_into().expect("a word"));
        assert_eq!(mask(), 0);
        region.answer_at_once(&["RM", "F"]).expect("written");
        assert_eq!(mask(), 1 << 1 | 1 << 32);
        assert!(region.answer_at_once(&["X"]).is_err());
    }
}
