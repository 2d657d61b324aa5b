//! What the probes of [`super::respond`] work on, and what each of them does: no workload itself.
//!
//! All that is to be cold is used once after a cold start: there is as much of it as the probes can use in their time.

use crate::data::content::Content;
use crate::data::profile::Stuff;
use crate::data::random::Random;
use crate::plan::Settings;
use crate::stage::SMALLEST_INODE;
use anyhow::{Context, Result};
use rustix::fs::Advice;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of each class, that all content is cut from.
const OF_EACH_CLASS: usize = 4 << 20;
/// One block is read of so much: beyond what is read ahead of it, and beyond what compression takes for one.
const REGION: u64 = 128 << 10;
/// Paths for each that is asked for, so that few lie in the same block of inodes as one before.
const PATHS_FOR_EACH: u64 = 8;
const PATHS_IN_A_FOLDER: u64 = 64;
/// Every 50 ms.
const OFTEN: u64 = 20;
/// From the content of one write to that of the next; odd, so that none comes twice for long.
const STEP: u64 = 3 * Props::BLOCK as u64 + 97;

/// What there is, and how much of it.
pub struct Props {
    content: Vec<u8>,
    /// Blocks that can be read, one in a region.
    blocks: u64,
    paths: u64,
    /// Programs that can be started.
    starts: u64,
    start_files: u64,
    start_bytes: u64,
}

impl Props {
    pub const BLOCK: usize = 4096;

    /// As many as are used in so long a time, and some for an end that comes late.
    pub fn new(settings: &Settings, most: Duration) -> Props {
        let number = |name, usual| settings.number(name).unwrap_or(usual);
        let often = (most.as_millis() as u64).div_ceil(1000) * OFTEN * 11 / 10 + 20;
        let starts = most.as_nanos() as u64 / number("start_every", 20_000_000_000).max(1) + 2;
        let start_files = number("start_files", 200).max(1);
        let start_bytes = number("start_bytes", 30 << 20) / start_files * start_files;
        let paths = often * PATHS_FOR_EACH;
        Props { content: Vec::new(), blocks: often, paths, starts, start_files, start_bytes }
    }

    pub fn bytes(&self) -> u64 {
        self.blocks * REGION + self.starts * self.start_bytes
    }

    /// Bytes that a probe done so often makes the device read at least, after a cold start.
    pub fn least_read(&self, probe: &str, done: u64) -> u64 {
        match probe {
            "read" => done.min(self.blocks) * Props::BLOCK as u64,
            "stat" => done.min(self.paths) * SMALLEST_INODE,
            "start" => done.min(self.starts) * self.start_bytes,
            _ => 0,
        }
    }

    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Text, object code and media in equal parts.
    pub fn make_content(&mut self) {
        let mut content = Content::new();
        for (stream, stuff) in (1..).zip([Stuff::Source, Stuff::Object, Stuff::Media]) {
            self.content.extend_from_slice(content.like(stuff, &mut Random::new(2, stream), OF_EACH_CLASS));
        }
    }

    /// So many bytes, others each time.
    fn cut(&self, number: u64, length: usize) -> &[u8] {
        let at = (number * STEP % (self.content.len() - length) as u64) as usize;
        &self.content[at..at + length]
    }

    pub fn lay_out(&self, root: &Path) -> Result<()> {
        let mut file = File::create_new(root.join("blocks"))?;
        for number in 0..self.blocks {
            file.write_all(self.cut(number, REGION as usize))?;
        }
        File::create_new(root.join("appended"))?;
        std::fs::create_dir(root.join("created"))?;
        for number in 0..self.paths {
            let path = path(root, number);
            if number % PATHS_IN_A_FOLDER == 0 {
                std::fs::create_dir_all(path.parent().context("a path without a folder")?)?;
            }
            File::create_new(path)?;
        }
        for start in 0..self.starts {
            std::fs::create_dir_all(program(root, start))?;
            for number in 0..self.start_files {
                let mut file = File::create_new(program(root, start).join(format!("file{number}")))?;
                self.write_start(&mut file, start * self.start_files + number)?;
            }
        }
        Ok(())
    }

    fn write_start(&self, file: &mut File, seed: u64) -> Result<()> {
        let mut left = self.start_bytes / self.start_files;
        for piece in 0.. {
            let length = left.min(REGION);
            if length == 0 {
                break;
            }
            file.write_all(self.cut(seed * 31 + piece, length as usize))?;
            left -= length;
        }
        Ok(())
    }

    /// 4 KiB at the end of a file, and durable.
    pub fn append<'a>(&'a self, root: &Path) -> Result<impl FnMut(u64) -> Result<()> + Send + use<'a>> {
        let path = root.join("appended");
        let mut file =
            File::options().append(true).open(&path).with_context(|| format!("opening {}", path.display()))?;
        let mut next = 0;
        Ok(move |_| {
            next += 1;
            file.write_all(self.cut(next, Props::BLOCK)).context("appending")?;
            file.sync_data().context("fdatasync of what was appended")
        })
    }

    /// A block that nobody has read since the cold start.
    pub fn read(&self, root: &Path) -> Result<impl FnMut(u64) -> Result<()> + Send + use<>> {
        let path = root.join("blocks");
        let file = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
        // Else blocks that nobody asked for come with it, and the next is warm.
        rustix::fs::fadvise(&file, 0, None, Advice::Random).context("cannot switch reading ahead off")?;
        let order = shuffled(self.blocks, 3);
        let (mut next, mut buffer) = (0, vec![0; Props::BLOCK]);
        Ok(move |_| {
            let at = order[next % order.len()] * REGION;
            next += 1;
            file.read_exact_at(&mut buffer, at).context("reading a block")?;
            // For the case that the end comes so late that it is asked for again.
            rustix::fs::fadvise(&file, at, NonZeroU64::new(REGION), Advice::DontNeed).context("dropping a block")
        })
    }

    /// A new file under its last name, and the folder durable.
    pub fn create(
        &self,
        root: &Path,
        background: &'static str,
    ) -> Result<impl FnMut(u64) -> Result<()> + Send + use<>> {
        let folder = root.join("created");
        let directory = File::open(&folder).with_context(|| format!("opening {}", folder.display()))?;
        let mut next = 0;
        Ok(move |_| {
            let (new, last) = (folder.join("new"), folder.join(format!("{background}{next}")));
            next += 1;
            File::create_new(&new).context("creating a file")?;
            std::fs::rename(&new, &last).context("renaming a file")?;
            directory.sync_all().context("fsync of a directory")
        })
    }

    /// A path that nobody has asked for since the cold start.
    pub fn stat(&self, root: &Path) -> impl FnMut(u64) -> Result<()> + Send + use<> {
        let (root, order, mut next) = (root.to_path_buf(), shuffled(self.paths, 4), 0);
        move |_| {
            let path = path(&root, order[next % order.len()]);
            next += 1;
            path.symlink_metadata().map(drop).with_context(|| format!("stat of {}", path.display()))
        }
    }

    /// All files of a program that was not started since the cold start.
    pub fn start(&self, root: &Path) -> impl FnMut(u64) -> Result<()> + Send + use<> {
        let (root, files, starts, mut next) = (root.to_path_buf(), self.start_files, self.starts, 0);
        let mut content = Vec::new();
        move |_| {
            let folder = program(&root, next % starts);
            next += 1;
            for number in 0..files {
                content.clear();
                let file = File::open(folder.join(format!("file{number}")));
                file.and_then(|mut file| file.read_to_end(&mut content)).context("reading a program's file")?;
            }
            Ok(())
        }
    }
}

fn path(root: &Path, number: u64) -> PathBuf {
    root.join(format!("paths/{}/{number}", number / PATHS_IN_A_FOLDER))
}

fn program(root: &Path, number: u64) -> PathBuf {
    root.join(format!("programs/{number}"))
}

/// All numbers below, in an order that is the same for all targets.
fn shuffled(count: u64, stream: u64) -> Vec<u64> {
    let (mut numbers, mut random) = ((0..count).collect::<Vec<_>>(), Random::new(2, stream));
    random.shuffle(&mut numbers);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn props() -> Props {
        let given = json!({"start_every": 2_000_000_000_u64, "start_files": 3, "start_bytes": 600_000});
        let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
        let mut props = Props::new(&settings, Duration::from_secs(2));
        props.make_content();
        props
    }

    #[test]
    fn everything_is_used_once_before_anything_is_used_again() {
        let mut all = shuffled(1000, 7);
        assert!(all != shuffled(1000, 8) && all == shuffled(1000, 7) && !all.is_sorted());
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        let often = 2 * OFTEN;
        let props = props();
        assert!(props.blocks >= often && props.paths >= often && props.starts >= 2);
        assert_ne!(props.cut(1, 4096), props.cut(2, 4096));
    }

    #[test]
    fn every_cold_probe_has_something_to_prove() {
        let props = props();
        let read = |probe| [0, 2, u64::MAX].map(|done| props.least_read(probe, done));
        assert_eq!(read("read"), [0, 2 * 4096, props.blocks * 4096]);
        assert_eq!(read("stat"), [0, 2 * 44, props.paths * 44]);
        assert_eq!(read("start"), [0, 2 * 600_000, props.starts * 600_000]);
        assert_eq!((read("append"), read("create")), ([0; 3], [0; 3]));
    }

    #[test]
    fn every_probe_does_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let (root, props) = (folder.path(), props());
        props.lay_out(root).unwrap();
        assert_eq!(root.join("blocks").metadata().unwrap().len(), props.blocks * REGION);
        let bytes = crate::data::apparent_bytes(root);
        assert!(bytes.abs_diff(props.bytes()) < 1 << 20, "{bytes} of {}", props.bytes());
        let mut append = props.append(root).unwrap();
        let mut read = props.read(root).unwrap();
        let mut create = props.create(root, "idle").unwrap();
        let (mut stat, mut start) = (props.stat(root), props.start(root));
        for number in 0..5 {
            append(number).unwrap();
            read(number).unwrap();
            create(number).unwrap();
            stat(number).unwrap();
            start(number).unwrap();
        }
        assert_eq!(root.join("appended").metadata().unwrap().len(), 5 * Props::BLOCK as u64);
        assert_eq!(root.join("created").read_dir().unwrap().count(), 5);
        std::fs::remove_dir_all(root.join("programs")).unwrap();
        assert!(start(5).is_err());
        std::fs::write(root.join("blocks"), "").unwrap();
        assert!(read(5).is_err());
    }
}
