//! The archive that a kernel unpacks as its first root: cpio in the "newc" format (Linux,
//! Documentation/driver-api/ early-userspace/buffer-format.rst), uncompressed, as unpacking costs
//! an emulated processor seconds.

use anyhow::{Context, Result};
use cpio::newc;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

pub(crate) struct Initramfs {
    out: BufWriter<File>,
    entries: u32,
    folders: BTreeSet<PathBuf>,
}

impl Initramfs {
    pub(crate) fn create(path: &Path) -> Result<Initramfs> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Initramfs { out: BufWriter::new(file), entries: 0, folders: BTreeSet::new() })
    }

    pub(crate) fn folder(&mut self, path: &str) -> Result<()> {
        let path = Path::new(path.trim_start_matches('/'));
        for folder in path.ancestors().collect::<Vec<_>>().into_iter().rev().filter(|f| !f.as_os_str().is_empty()) {
            if self.folders.insert(folder.to_path_buf()) {
                self.entry(&folder.display().to_string(), FOLDER, b"")?;
            }
        }
        Ok(())
    }

    /// With the folders above it; executable.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) -> Result<()> {
        self.below(path, PROGRAM, content)
    }

    /// A symbolic link, with the folders above it.
    pub(crate) fn link(&mut self, path: &str, to: &str) -> Result<()> {
        self.below(path, LINK, to.as_bytes())
    }

    fn below(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        let path = path.trim_start_matches('/');
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above)?;
        }
        self.entry(path, mode, content)
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        newc::trailer(&mut self.out)?;
        Ok(self.out.flush()?)
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<()> {
        self.entries += 1;
        let size = u32::try_from(content.len()).context("a file of 4 GiB or more in an initramfs")?;
        let mut entry = newc::Builder::new(name).ino(self.entries).mode(mode).write(&mut self.out, size);
        entry.write_all(content)?;
        entry.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn cpio_reads_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("initramfs");
        let mut made = Initramfs::create(&path).unwrap();
        made.file("/init", b"five!").unwrap();
        made.file("/lib/a/b", b"").unwrap();
        made.file("/lib/c", b"12345678").unwrap();
        made.link("/start", "/init").unwrap();
        made.finish().unwrap();
        let listing = Command::new("cpio").arg("-itv").stdin(File::open(&path).unwrap()).stderr(Stdio::null()).output();
        let Ok(listing) = listing else { return pickfs_test_support::not_run("there is no cpio here") };
        let text = String::from_utf8_lossy(&listing.stdout).into_owned();
        let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(8)).collect();
        assert_eq!(names, ["init", "lib", "lib/a", "lib/a/b", "lib/c", "start"], "{text}");
        assert!(text.lines().any(|line| line.starts_with('l') && line.ends_with("start -> /init")), "{text}");
        assert!(
            text.lines().next().is_some_and(|line| line.starts_with("-rwxr-xr-x") && line.contains(" 5 ")),
            "{text}"
        );
    }
}
