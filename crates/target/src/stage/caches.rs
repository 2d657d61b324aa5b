//! Making a cache really cold: unmounted (exported), the device's buffers flushed, the loop's
//! backing file forgotten, mounted again. Dropping caches alone is not cold: it keeps what is not
//! reclaimable, and ZFS keeps its own cache elsewhere. Once a cell all clean caches of the machine
//! are dropped as well, so that its phases find memory free.

use super::built_stack::BuiltStack;
use super::served::served;
use crate::stack::AboveMount;
use crate::steps::StepRunner;
use anyhow::{Context, Result};
use pickfs_core::protocol::Link;
use pickfs_system::process::{Argv, users_of};
use pickfs_system::sys::devices;
use pickfs_system::sys::{block, file};
use std::path::Path;
use std::time::{Duration, Instant};

/// What is dropped of a file system that is unmounted, and whose pages, names and inodes went with
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// All clean caches of the machine: memory is free then, and what lies below has nothing of the
    /// file system either.
    All,
    /// The buffers of its devices, and what their images have in the page cache.
    Devices,
}

/// Makes every cache of the stack cold, as far as we may; what then is read proves it. What it
/// cannot prove is whether the host of a guest has it cached: the reason is returned where that is
/// so. Programs are cold then, too.
pub(crate) fn make_cold(
    stack: &BuiltStack,
    engine: &StepRunner,
    link: &mut Link,
    dropped: Dropped,
) -> Result<Option<String>> {
    stack.make_durable(engine)?;
    match stack.driver {
        Some(driver) if driver.volatile => {
            drop_caches()?;
            Ok(Some(format!("{} has everything in memory alone", driver.name)))
        }
        Some(_) => {
            let warm_below = unmount_cold(stack, engine, link, dropped)?;
            stack.mount(&stack.spec()).iter().try_for_each(|words| engine.mount(words).map(drop))?;
            Ok(warm_below)
        }
        None => {
            if rustix::process::geteuid().is_root() {
                drop_caches()?
            } else {
                drop_file_caches(&stack.root)?
            }
            let mount = devices::mount_of(&stack.root.canonicalize()?)?;
            Ok(served(&mount).map(|served| served.warm()))
        }
    }
}

/// The same of a durable file system, which is not mounted then; what is to work on it should be
/// warm.
pub(crate) fn unmount_cold(
    stack: &BuiltStack,
    engine: &StepRunner,
    link: &mut Link,
    dropped: Dropped,
) -> Result<Option<String>> {
    unmount_all(stack, engine)?;
    if dropped == Dropped::All {
        drop_caches()?;
    }
    drop_device_caches(stack)?;
    link.forget_below()
}

/// Programs may leave others that are on their way out, as `git commit` leaves `git gc`.
const PATIENCE: Duration = Duration::from_secs(10);
/// The kernel's server of NFS dates what it forgets by whole seconds, and keeps for half a minute
/// what it is to forget twice within one (`write_flush` and `cache_clean` of Linux,
/// net/sunrpc/cache.c). No process shows that it holds the file system.
const UNTIL_FORGOTTEN: Duration = Duration::from_secs(2);

/// Wherever it is mounted. What served a layer above has the one below in use until it has ended.
pub(super) fn unmount_all(stack: &BuiltStack, engine: &StepRunner) -> Result<()> {
    stack.unmount().iter().try_for_each(|words| unmount(stack, engine, words))
}

fn unmount(stack: &BuiltStack, engine: &StepRunner, words: &Argv) -> Result<()> {
    let begun = Instant::now();
    if engine.output(words).is_ok() {
        return Ok(());
    }
    let lets_go: Vec<Argv> = stack.above.iter().filter_map(AboveMount::let_go).collect();
    loop {
        // Before the next attempt: a process that ends in between does not hinder it.
        let above = stack.above.iter().map(AboveMount::mount_point);
        let seen_at = above.chain([stack.mount_point.as_path()]);
        let users: Vec<String> = seen_at.flat_map(users_of).collect();
        if users.is_empty() && !lets_go.is_empty() {
            std::thread::sleep(UNTIL_FORGOTTEN);
            lets_go.iter().try_for_each(|words| engine.output(words).map(drop))?;
        }
        let is_last = users.is_empty() && lets_go.is_empty() || begun.elapsed() > PATIENCE;
        match engine.output(words) {
            Ok(_) => return Ok(()),
            Err(error) if is_last && users.is_empty() => return Err(error),
            Err(error) if is_last => {
                let (users, patience) = (users.join(", "), PATIENCE.as_secs());
                return Err(
                    error.context(format!("in use by {users} for {patience} s; a work must leave no program running"))
                );
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// The same for a tree that lies elsewhere, on a disk that stays mounted.
pub(crate) fn make_cold_elsewhere(tree: &Path, engine: &StepRunner, programs: &[&str]) -> Result<()> {
    drop_file_caches(tree)?;
    if rustix::process::geteuid().is_root() {
        drop_caches()?;
    }
    warm_programs(engine, programs);
    Ok(())
}

fn drop_caches() -> Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop caches")
}

fn drop_device_caches(stack: &BuiltStack) -> Result<()> {
    for device in stack.all_devices() {
        block::flush_buffers(device).with_context(|| format!("cannot flush the buffers of {}", device.display()))?;
        drop_below(device)?;
    }
    Ok(())
}

/// A loop device that is not direct writes to the page cache of its file, and a file system without
/// barriers asks for no more: dirty pages there would be written while the next phase runs.
pub(crate) fn sync_below(stack: &BuiltStack) -> Result<()> {
    for device in stack.disks.iter().filter(|device| devices::loop_file(device).is_some()) {
        let synced = std::fs::File::open(device).and_then(|opened| opened.sync_data());
        synced.with_context(|| format!("cannot sync {}", device.display()))?;
    }
    Ok(())
}

/// A loop device reads through the page cache of its file, unless it is direct.
pub(crate) fn drop_below(device: &Path) -> Result<()> {
    match devices::loop_file(device) {
        Some(file) => {
            file::drop_file_cache(&file).with_context(|| format!("cannot drop the cache of {}", file.display()))
        }
        None => Ok(()),
    }
}

/// What one may do without root: data pages go, names and inodes stay. The proof will say so.
fn drop_file_caches(root: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_file() {
            file::drop_file_cache(entry.path())
                .with_context(|| format!("cannot drop the cache of {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// Dropping caches drops programs too; without this the first phase would pay for loading `tar`
/// from the system disk. And for the names of owners, which `tar` looks up: `id` asks the same
/// files of the system's.
pub(crate) fn warm_programs(engine: &StepRunner, programs: &[&str]) {
    for program in programs {
        engine.listing(&crate::stack::argv([program, "--version"]));
    }
    engine.listing(&crate::stack::argv(["id"]));
}
