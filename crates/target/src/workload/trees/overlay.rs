//! Folders seen as one tree by overlayfs, as containers see the layers of their image.

use crate::workload::text;
use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Limit of fsconfig(2), which takes 255 bytes of a value: the layers are named by the numbers of
/// their descriptors, so that a dozen fit.
pub(crate) const MOST_LAYERS: u64 = 12;

/// A mount that is attached nowhere: it is gone when this is dropped or the process ends, however
/// it ends.
pub(crate) struct Overlay {
    mount: OwnedFd,
}

impl Overlay {
    /// Mounts layers, the lowest first; what is changed goes below `changes`, into `upper`. Without
    /// that it is read-only.
    pub(crate) fn mount(layers: &[PathBuf], changes: Option<&Path>) -> Result<Overlay> {
        let mut held = Vec::new();
        let lower: Vec<String> = layers.iter().rev().map(|layer| hold(layer, &mut held)).collect::<Result<_>>()?;
        let mut options = vec![("lowerdir", lower.join(":"))];
        if let Some(changes) = changes {
            for (option, name) in [("upperdir", "upper"), ("workdir", "work")] {
                let folder = changes.join(name);
                std::fs::create_dir_all(&folder)?;
                options.push((option, hold(&folder, &mut held)?));
            }
        }
        let shown = options.iter().map(|(option, _)| *option).collect::<Vec<_>>().join(", ");
        Overlay::with(&options).with_context(|| {
            format!(
                "overlayfs does not take this file system ({shown} of {} layers); the kernel's log has why",
                layers.len()
            )
        })
    }

    fn with(options: &[(&str, String)]) -> rustix::io::Result<Overlay> {
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        options.iter().try_for_each(|(option, value)| fsconfig_set_string(&context, *option, value.as_str()))?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        Ok(Overlay { mount })
    }

    /// Its path, for this process and the programs that it starts.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.mount.as_raw_fd()))
    }
}

/// Opens a folder; returns its short name, which is valid while it is open.
fn hold(folder: &Path, held: &mut Vec<OwnedFd>) -> Result<String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(folder, flags, Mode::empty()).with_context(|| format!("opening {}", text(folder)))?;
    let name = format!("/proc/self/fd/{}", open.as_raw_fd());
    held.push(open);
    Ok(name)
}
