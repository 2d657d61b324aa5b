//! What layers above a file system pass on to it, tried before the work, outside of every timer:
//! whether fsync(2) waits for the disk, extended attributes, locks and hard links. What their
//! authors document is not asked.

use crate::probe::device::counters_of;
use crate::stage::BuiltStack;
use crate::steps::StepRunner;
use anyhow::{Context, Result};
use pickfs_core::journal::Provenance;
use pickfs_system::random::Random;
use rustix::fs::{FlockOperation, XattrFlags, flock, fsetxattr};
use std::fs::File;
use std::io::Write;
use std::path::Path;

const TRIAL: &str = ".pickfs-above";
const LINK: &str = ".pickfs-above-link";
/// Bytes; more than what a file system writes by itself to sync a file.
const CONTENT: usize = 1 << 20;
/// Of the round's random numbers.
const STREAM: u64 = 0x61_62_6f_76_65;

/// Adds what was found to what is in effect. A target with an fsync(2) that does not wait for its
/// disk is weakened.
pub(crate) fn tried(stack: &BuiltStack, runner: &StepRunner, provenance: &mut Provenance) -> Result<()> {
    let Some(last) = stack.above.last() else { return Ok(()) };
    let (trial, link) = (stack.root.join(TRIAL), stack.root.join(LINK));
    let found =
        found(stack, runner, &trial, &link).with_context(|| format!("cannot write through {}", last.layer.name));
    // Gone already where they could not be made.
    for path in [&trial, &link] {
        let _ = std::fs::remove_file(path);
    }
    for (what, passes) in found? {
        provenance.facts.insert(format!("tried: {what}"), if passes { "yes" } else { "no" }.into());
        if what == FSYNC && !passes {
            provenance.weakened.push(format!("fsync does not wait for the disk ({})", last.layer.name));
        }
    }
    Ok(())
}

const FSYNC: &str = "fsync waits for the disk";

fn found(stack: &BuiltStack, runner: &StepRunner, trial: &Path, link: &Path) -> Result<Vec<(&'static str, bool)>> {
    let mut file = File::create_new(trial)?;
    let found = [
        ("extended attributes", fsetxattr(&file, "user.pickfs", b"x", XattrFlags::empty()).is_ok()),
        ("locks", locks(&file, trial)?),
        ("hard links", std::fs::hard_link(trial, link).is_ok()),
    ];
    let _ = std::fs::remove_file(link);
    // What was done so far must not be taken for what is synced now.
    stack.make_durable(runner)?;
    let folder = File::open(&stack.root)?;
    let of_folder = waits(stack, 1, || {
        File::create_new(link)?;
        Ok(folder.sync_all().is_ok())
    })?;
    let mut content = vec![0; CONTENT];
    Random::new(stack.seed, STREAM).fill(&mut content);
    let of_file = waits(stack, CONTENT as u64, || {
        file.write_all(&content)?;
        Ok(file.sync_all().is_ok())
    })?;
    let of_folder = of_folder.map(|waits| ("fsync of a folder waits for the disk", waits));
    Ok(found.into_iter().chain(of_folder).chain(of_file.map(|waits| (FSYNC, waits))).collect())
}

/// Whether the devices have written that many bytes when it was changed and synced, which it says;
/// nothing where they count none. A mount may have made a change durable before it is synced.
fn waits(stack: &BuiltStack, least: u64, change_and_sync: impl FnOnce() -> Result<bool>) -> Result<Option<bool>> {
    let devices = stack.subject.devices();
    let before = counters_of(&devices);
    let synced = change_and_sync()?;
    let written =
        before.zip(counters_of(&devices)).map(|(before, now)| now.write_bytes.saturating_sub(before.write_bytes));
    Ok(written.map(|written| synced && written >= least))
}

/// A second open of the file does not get the lock that the first has.
fn locks(file: &File, trial: &Path) -> Result<bool> {
    let is_taken = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(is_taken(file) && !is_taken(&File::open(trial)?))
}
