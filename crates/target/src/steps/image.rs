//! Images of a run: written, attached to loop devices, and detached. A user with write access to a
//! folder can put another file in the place of an image, so the file that a loop device is attached
//! to is known by device and inode number.

use crate::stack::attach_words;
use anyhow::{Context, Result, bail, ensure};
use pickfs_system::process::{argv, check_stop, exposed, output};
use pickfs_system::sys::block::loop_status;
use pickfs_system::sys::devices::{self, Attached};
use pickfs_system::sys::file::{Entry, identity};
use pickfs_system::sys::process::trusts;
use rand_core::{Rng, SeedableRng};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Written, not only reserved: reserved blocks are converted at their first write, which would be
/// charged to the first file system that reaches them. Incompressible, so that a compressing file
/// system below holds it in full.
pub(crate) fn make(path: &Path, bytes: u64) -> Result<()> {
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(bytes);
    let mut file = File::options().create_new(true).write(true).mode(0o600).open(path)?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)
        .or_else(|error| if error == rustix::io::Errno::OPNOTSUPP { Ok(()) } else { Err(error) })
        .context("no room for the image; give a smaller `size` or another `dir`")?;
    let mut chunk = vec![0; 4 << 20];
    let mut left = bytes;
    while left > 0 {
        check_stop()?;
        random.fill_bytes(&mut chunk);
        let part = left.min(chunk.len() as u64) as usize;
        file.write_all(&chunk[..part])?;
        left -= part as u64;
    }
    Ok(file.sync_all()?)
}

/// `run` runs losetup, which opens the image by its name. What it has opened must be the file that
/// was held before.
pub(crate) fn attach(image: &Path, direct: bool, run: impl Fn(&Vec<String>) -> Result<String>) -> Result<PathBuf> {
    let held = hold(image)?;
    let device = PathBuf::from(run(&attach_words(image, direct))?.trim());
    let found = loop_status(&device).with_context(|| format!("cannot ask {} for its file", device.display()))?;
    if found.file != identity(&held.metadata()?) {
        detach_one(&device);
        bail!("another file was put in the place of {}; name a folder that other users cannot change", image.display());
    }
    Ok(device)
}

/// Opens the image of a run, which only we can have put there.
fn hold(image: &Path) -> Result<File> {
    let shown = image.display();
    if let Some(exposed) = image.parent().and_then(exposed) {
        bail!("{}; {}", exposed.message, exposed.remedy);
    }
    let held = Entry::without_links(&super::own::real(image)).and_then(|entry| entry.open());
    let held = held.with_context(|| format!("{shown} is not the image that this run made"))?;
    ensure!(trusts(held.metadata()?.uid()), "{shown} is not the image that this run made: it belongs to another user");
    Ok(held)
}

pub(crate) fn detach(image: &Path) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let loops = loops_of(image)?;
        if loops.is_empty() {
            return Ok(());
        }
        // A failure is seen in the next round, as the device remains.
        loops.iter().for_each(|device| detach_one(device));
        if !loops_of(image)?.is_empty() {
            std::thread::sleep(PAUSE);
        }
    }
    let left: Vec<String> = loops_of(image)?.iter().map(|device| device.display().to_string()).collect();
    ensure!(left.is_empty(), "{} is still attached to {}", image.display(), left.join(", "));
    Ok(())
}

fn detach_one(device: &Path) {
    let _ = output(&argv(["losetup", "--detach", &device.display().to_string()]), &[]);
}

fn loops_of(image: &Path) -> Result<Vec<PathBuf>> {
    let mut loops = Vec::new();
    for found in devices::attached_loops()?.into_iter().filter(|found| found.file == image) {
        let (device, shown) = (found.device.display(), image.display());
        let is_ours = is_attached(&found)?;
        ensure!(
            is_ours,
            "refused to detach {device}: its file is not {shown}, but had that name; look, and detach it by hand"
        );
        loops.push(found.device);
    }
    Ok(loops)
}

/// True where the loop device has the very file that has this name now, in a folder that is ours
/// alone; or the file has gone.
pub(crate) fn is_attached(found: &Attached) -> Result<bool> {
    let entry = match Entry::without_links(&found.file).and_then(|entry| Ok((entry.folder()?, entry.open()?))) {
        Ok((folder, file)) => Some((folder, file.metadata()?)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => return Ok(false),
    };
    Ok(match entry {
        None => found.deleted,
        Some((folder, file)) => {
            let is_ours = trusts(folder.uid()) && folder.mode() & 0o022 == 0;
            is_ours && loop_status(&found.device).is_ok_and(|of_loop| of_loop.file == identity(&file))
        }
    })
}
