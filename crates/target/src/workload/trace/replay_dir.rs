//! Where a replay happens: its folder, the names of paths there, and the files that are open.

use super::bytes::Bytes;
use pickfs_system::sys::file::AlignedBuffer;
use pickfs_trace::Trace;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError, RwLock};

/// What all threads of a replay share.
pub(crate) struct ReplayDir<'a> {
    pub trace: &'a Trace,
    root: PathBuf,
    /// Open between [`ReplayDir::enter`] and [`ReplayDir::leave`]: what is open keeps a file system
    /// from being unmounted.
    folder: OnceLock<OwnedFd>,
    /// From the folder on, by number; the first is empty.
    names: Vec<CString>,
    /// Open files, by number.
    open: Vec<RwLock<Option<OwnedFd>>>,
    pub bytes: Bytes,
}

/// What a call came to: bytes that went, or an error. `replaced` where the target did not have the
/// call, and what a program does then was done instead.
pub(crate) struct CallOutcome {
    pub result: Result<u64, Errno>,
    pub replaced: bool,
}

impl From<Result<u64, Errno>> for CallOutcome {
    fn from(result: Result<u64, Errno>) -> CallOutcome {
        CallOutcome { result, replaced: false }
    }
}

/// A thread's own memory to read into.
pub(crate) type Buffer = Vec<u8>;

/// Of it, as much as is asked for at an address that suits O_DIRECT, too: ext4 and xfs refuse any
/// other, where btrfs and f2fs go through the page cache.
pub(crate) fn room(buffer: &mut Buffer, length: usize) -> &mut [u8] {
    buffer.resize(buffer.len().max(length + AlignedBuffer::ALIGNMENT), 0);
    let start = buffer.as_ptr().align_offset(AlignedBuffer::ALIGNMENT);
    &mut buffer[start..start + length]
}

/// Longer reads are done in parts.
pub(crate) const LONGEST_READ: u64 = 16 << 20;

impl<'a> ReplayDir<'a> {
    pub(crate) fn new(trace: &'a Trace, root: &Path, seed: u64) -> anyhow::Result<ReplayDir<'a>> {
        let paths = (1..=trace.paths.len() as u32).map(|path| CString::new(trace.paths.text(path)));
        let names = std::iter::once(Ok(CString::default())).chain(paths).collect::<Result<_, _>>()?;
        let objects = trace.ops.iter().filter(|op| op.opens()).count();
        let open = (0..=objects).map(|_| RwLock::new(None)).collect();
        Ok(ReplayDir { trace, root: root.into(), folder: OnceLock::new(), names, open, bytes: Bytes::new(trace, seed) })
    }

    pub(crate) fn name(&self, path: u32) -> &CString {
        &self.names[path as usize]
    }

    /// Before the first call.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.root, flags, Mode::empty())?;
        self.folder.get_or_init(|| folder);
        Ok(())
    }

    /// After the last call: closes all.
    pub(crate) fn leave(&mut self) {
        self.open.iter_mut().for_each(|file| drop(file.get_mut().unwrap_or_else(PoisonError::into_inner).take()));
        self.folder.take();
    }

    pub(crate) fn folder(&self) -> &OwnedFd {
        self.folder.get().expect("the ground is entered before the first call")
    }

    /// In full, for what has no form that begins at a folder, and for links: where they are moved
    /// they lead to the same place.
    pub(crate) fn full(&self, path: u32) -> PathBuf {
        self.root.join(self.trace.paths.text(path))
    }

    /// Where links lead that left the watched folders.
    pub(crate) fn elsewhere(&self) -> PathBuf {
        self.root.join("elsewhere")
    }

    pub(crate) fn with_open<T>(
        &self,
        object: u32,
        work: impl FnOnce(&OwnedFd) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let file = self.open[object as usize].read().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().map_or(Err(Errno::BADF), work)
    }

    pub(crate) fn set_open(&self, object: u32, file: Option<OwnedFd>) -> Option<OwnedFd> {
        std::mem::replace(&mut *self.open[object as usize].write().unwrap_or_else(PoisonError::into_inner), file)
    }
}

pub(crate) fn nothing<T>(result: Result<T, Errno>) -> Result<u64, Errno> {
    result.map(|_| 0)
}
