//! A disk in a file of the file system under test, with a file system inside it, as a virtual
//! machine has one: a loop device on a raw file, or on what QEMU's block layer shows of an image.
//!
//! Nothing of it is left, however the agent ends: the kernel detaches the loop device with its last
//! user, QEMU's server carries the mark of the cell, and the undo of both mounts is in the journal
//! before the work begins.

use super::cell_stage::Stage;
use super::program::Program;
use super::server::Server;
use crate::probe::device::Watch;
use crate::stack::fs::{Filesystem, FsSpec};
use crate::stack::{Argv, argv};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::plan::Target;
use pickfs_system::process::output;
use pickfs_system::sys::block::attach_loop;
use pickfs_system::sys::devices::{content, device_number, is_mount_point, loop_file, sys_path};
use rustix::io::Errno;
use rustix::process::Signal;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For a server to show an image and to end, which may have to write, and for the kernel to detach
/// a loop device.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// An image, and how a disk is made of it.
#[derive(Clone)]
pub(crate) struct DiskImage {
    pub file: PathBuf,
    /// The file system inside.
    pub inner: &'static Filesystem,
    /// Past the page cache of the file system under test.
    pub direct: bool,
    /// What QEMU calls the format, where QEMU serves it.
    pub format: Option<&'static str>,
}

/// The disk, and where the file system on it is mounted or will be. It is closed when this is
/// dropped too, but not waited for.
pub(crate) struct OpenDisk {
    pub image: DiskImage,
    pub root: PathBuf,
    device: PathBuf,
    seed: u64,
    /// The disk inside, and those of the file system under test.
    inside: Option<Watch>,
    outside: Option<Watch>,
    /// Keeps the loop device attached.
    attached: Option<File>,
    server: Option<Server>,
}

impl Stage<'_, '_> {
    /// Makes a disk of an image, outside of any phase.
    pub(crate) fn open_disk(&mut self, image: &DiskImage) -> Result<OpenDisk> {
        let root = self.place().inside();
        std::fs::create_dir_all(&root)?;
        let (server, served) = match image.format {
            Some(format) => {
                let (server, served) = self.serve(image, format)?;
                (Some(server), served)
            }
            None => (None, image.file.clone()),
        };
        // With more than one request at a time the server of QEMU 7.2 takes parts of one for
        // another, and the content is wrong.
        let direct = image.direct && server.is_none();
        let (attached, device) = self.attach(&served, direct)?;
        let number = device_number(&device).context("a loop device has no number")?;
        let passes_by = content(sys_path(number).join("loop/dio")).as_deref() == Some("1");
        ensure!(
            passes_by == direct,
            "the kernel cannot pass by the page cache for an image here; use cache = \"writeback\""
        );
        Ok(OpenDisk {
            image: image.clone(),
            root,
            device,
            seed: self.stack.seed,
            inside: Watch::new(&[number]),
            outside: Watch::new(&self.stack.subject.devices()),
            attached: Some(attached),
            server,
        })
    }

    /// The same with the file system mounted that was made on it before.
    pub(crate) fn open_mounted(&mut self, image: &DiskImage) -> Result<OpenDisk> {
        let disk = self.open_disk(image)?;
        self.runner.mount(&disk.mount())?;
        Ok(disk)
    }

    /// Unmounts it, and returns when nothing uses the image any more.
    pub(crate) fn close_disk(&mut self, mut disk: OpenDisk) -> Result<()> {
        disk.unmount()?;
        drop(disk.attached.take());
        let until = Instant::now() + PATIENCE;
        while loop_file(&disk.device).is_some_and(|file| file == disk.image.file || file == self.place().export()) {
            ensure!(Instant::now() < until, "{} is still in use", disk.device.display());
            std::thread::sleep(PAUSE);
        }
        let Some(server) = disk.server.take() else { return Ok(()) };
        // The server of QEMU 7.2 may wait for a request at that moment, and then never sees that it
        // is to end. An unmounted file wakes it.
        let export = self.place().export();
        while is_mount_point(&export)? {
            match unmount(&export) {
                Err(error) if Instant::now() > until => return Err(error),
                _ => std::thread::sleep(PAUSE),
            }
        }
        server.stop(Signal::TERM, PATIENCE)
    }

    fn attach(&mut self, file: &Path, direct: bool) -> Result<(File, PathBuf)> {
        let opened = OpenOptions::new().read(true).write(true).open(file);
        let opened = opened.with_context(|| format!("cannot open {}", file.display()))?;
        let until = Instant::now() + PATIENCE;
        loop {
            let device = PathBuf::from(self.run(&Program::new(["losetup", "--find"]))?.trim());
            match attach_loop(&device, &opened, direct) {
                Ok(attached) => return Ok((attached, device)),
                Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) && Instant::now() < until => {}
                Err(error) => {
                    let what = format!("cannot attach {} to {}", file.display(), device.display());
                    return Err(anyhow::Error::from(error).context(what));
                }
            }
        }
    }

    /// Starts QEMU's server; the file as which it shows what the image holds.
    fn serve(&mut self, image: &DiskImage, format: &str) -> Result<(Server, PathBuf)> {
        let export = self.place().export();
        File::create(&export)?;
        // In a name that QEMU reads as one of several words, a comma is written twice.
        let name = |path: &Path| path.display().to_string().replace(',', ",,");
        let direct = if image.direct { "on" } else { "off" };
        let file = name(&image.file);
        let file = format!("driver=file,node-name=file,filename={file},discard=unmap,cache.direct={direct}");
        let disk = format!("driver={format},node-name=disk,file=file,discard=unmap");
        let shown = format!("type=fuse,id=shown,node-name=disk,mountpoint={},writable=on", name(&export));
        let words = ["qemu-storage-daemon", "--blockdev", &file, "--blockdev", &disk, "--export", &shown];
        let mut server = self.start(&Program::new(words))?;
        let until = Instant::now() + PATIENCE;
        while !is_mount_point(&export)? {
            server.check()?;
            if Instant::now() > until {
                bail!("QEMU's server does not show {}: {}", image.file.display(), server.said());
            }
            std::thread::sleep(PAUSE);
        }
        Ok((server, export))
    }
}

impl OpenDisk {
    /// Makes the file system, and mounts it.
    pub(crate) fn make(&self) -> Vec<Argv> {
        self.image.inner.mkfs(&self.spec()).into_iter().chain([self.mount()]).collect()
    }

    fn mount(&self) -> Argv {
        self.image.inner.mount(&self.spec())
    }

    fn spec(&self) -> FsSpec<'_> {
        let spec = FsSpec::new(self.image.inner, &Target::default(), &self.device, &self.root);
        FsSpec { seed: self.seed, ..spec }
    }

    /// Returns when all that was written inside is on the disk: by then the file system under test
    /// was asked to make it durable too.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(rustix::fs::syncfs(File::open(&self.root)?)?)
    }

    /// Bytes that both were given so far: the disk inside, and the device below; none where one has
    /// no counter.
    pub(crate) fn written(&self) -> Option<[u64; 2]> {
        Some([self.inside.as_ref()?.read()?.write_bytes, self.outside.as_ref()?.read()?.write_bytes])
    }

    /// Bytes that were read from the disk inside so far.
    pub(crate) fn read_inside(&self) -> Option<u64> {
        Some(self.inside.as_ref()?.read()?.read_bytes)
    }

    fn unmount(&self) -> Result<()> {
        if !is_mount_point(&self.root)? {
            return Ok(());
        }
        unmount(&self.root)
    }
}

fn unmount(at: &Path) -> Result<()> {
    output(&argv(["umount", &at.display().to_string()]), &[]).map(drop)
}

impl Drop for OpenDisk {
    /// What fails here is undone from the journal. The server goes last, with its field.
    fn drop(&mut self) {
        let _ = self.unmount();
        self.attached = None;
    }
}
