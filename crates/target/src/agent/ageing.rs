//! Makes a fresh file system old, or full, before the work and outside of every phase.
//!
//! What is done comes from the round's seed and the room that the devices give to data alone, so
//! that every target of a round on the same room has the same done to it, and a file system that
//! compresses is left with more room, as it would be. What then lies on it is read back as a
//! digest, equal for all; how it lies there is recorded as facts. Afterwards everything is durable
//! and cold, and the folder for the work is made, as on a fresh file system.

use super::git;
use crate::probe::layout;
use crate::stage::BuiltStack;
use crate::stage::caches::{self, Dropped};
use crate::steps::StepRunner;
use anyhow::{Context, Result};
use pickfs_core::plan::{Ageing, Cell};
use pickfs_core::protocol::Link;
use pickfs_system::process::{Deadline, check_stop};
use pickfs_system::random::Random;
use pickfs_system::sys::block;
use pickfs_system::units::{show_bytes, show_share};
use pickfs_trees::Digest;
use pickfs_trees::ageing::{Amounts, FOLDERS, File, Operation, Schedule};
use pickfs_trees::content::Content;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

type Facts = BTreeMap<String, String>;

/// Next to the folder of the work, so that what is measured there counts none of it.
const FOLDER: &str = "aged";
/// Names do not stay in this order on the disk, nor does any file system have them in one folder.
const REPOSITORY: &str = "repository";
/// Files are written in pieces of this size.
const PIECE: usize = 1 << 20;

/// What was done, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AgeingCounts {
    made: u64,
    deleted: u64,
    written: u64,
    left: u64,
}

/// Ages the stack as its target says, and returns what was done; no facts for a target that stays
/// fresh.
pub(crate) fn age(
    cell: &Cell,
    stack: &BuiltStack,
    runner: &StepRunner,
    link: &mut Link,
    deadline: &Deadline,
) -> Result<Facts> {
    let (Some(ageing), Some(driver), Some(device)) = (Ageing::of(&cell.target), stack.driver, &stack.device) else {
        return Ok(Facts::new());
    };
    let sizes = std::iter::once(device).chain(&stack.more_devices).map(|device| block::size_of_device(device));
    let capacity = driver.data_bytes(cell.target.variant.as_deref(), &sizes.collect::<Result<Vec<_>, _>>()?);
    let folder = stack.mount_point.join(FOLDER);
    std::fs::create_dir(&folder).context("cannot make a folder for ageing")?;
    let amounts = Amounts {
        level: ageing.level_bytes(capacity),
        churn: ageing.churn_bytes(capacity),
        leaves: ageing.leaves_bytes(capacity),
    };
    let done = play(amounts, cell.seed, &folder, stack, runner, deadline)?;
    if ageing.pulls > 0 {
        git::clone_and_pull(&folder.join(REPOSITORY), ageing.pulls, stack, runner, deadline)?;
    }
    stack.make_durable(runner).context("cannot make the aged file system durable")?;
    let digest = pickfs_trees::digest_without(&folder, Some(".git")).context("cannot read the aged files back")?;
    let mut facts = facts_of(&done, &digest, ageing.pulls);
    facts.insert("aged layout".into(), layout_of(&folder));
    facts.extend(space_used(&folder).map(|used| ("aged space used".to_string(), used)));
    make_ready(stack, runner, link, &mut facts)?;
    Ok(facts)
}

/// As after a mkfs: the work's folder is new, and nothing is cached. The file system's own list of
/// free space is read while nothing of it is only in memory, and its traces are dropped again.
fn make_ready(stack: &BuiltStack, runner: &StepRunner, link: &mut Link, facts: &mut Facts) -> Result<()> {
    std::fs::remove_dir(&stack.root)?;
    std::fs::create_dir(&stack.root).context("cannot make a folder on the aged file system")?;
    caches::make_cold(stack, runner, link, Dropped::All)?;
    let block = rustix::fs::statvfs(&stack.root)?.f_frsize;
    let free_space = stack.driver.and_then(|driver| driver.free_space);
    let extents = free_space.and_then(|tool| tool.extents(&runner.listing(&tool.program(&stack.spec())), block));
    if extents.is_some() {
        caches::make_cold(stack, runner, link, Dropped::All)?;
    }
    let shown = extents.map(|(count, mean)| format!("{count:.0} extents of {} on average", show_bytes(mean)));
    facts.insert("aged free space".into(), shown.unwrap_or("unknown: no tool reports it of this file system".into()));
    Ok(())
}

fn play(
    amounts: Amounts,
    seed: u64,
    folder: &Path,
    stack: &BuiltStack,
    runner: &StepRunner,
    deadline: &Deadline,
) -> Result<AgeingCounts> {
    let mut done = AgeingCounts::default();
    if amounts.level == 0 {
        return Ok(done);
    }
    for number in 0..FOLDERS {
        std::fs::create_dir(folder.join(name_of_folder(number)))?;
    }
    let mut content = Content::new();
    for operation in Schedule::new(amounts, seed) {
        check_stop()?;
        deadline.check()?;
        let acted = match operation {
            Operation::Make(file) => make(&file, folder, &mut content, seed),
            Operation::Delete(file) => std::fs::remove_file(path_of(&file, folder)).context("cannot delete a file"),
            Operation::Sync => stack.make_durable(runner),
        };
        let [left, level] = [done.left, amounts.level].map(|bytes| show_bytes(bytes as f64));
        acted.with_context(|| format!("ageing, with {left} of at most {level} in files"))?;
        done.count(operation);
    }
    Ok(done)
}

fn make(file: &File, folder: &Path, content: &mut Content, seed: u64) -> Result<()> {
    let path = path_of(file, folder);
    let written = std::fs::File::create_new(&path).and_then(|mut out| {
        // Its own stream of random bits: no two files hold a block alike.
        let mut random = Random::new(seed, file.number + 1);
        for from in (0..file.bytes).step_by(PIECE) {
            let bytes = (file.bytes - from).min(PIECE as u64) as usize;
            out.write_all(content.like(file.stuff, &mut random, bytes))?;
        }
        Ok(())
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn name_of_folder(number: u64) -> String {
    format!("folder-{number:02}")
}

fn path_of(file: &File, folder: &Path) -> PathBuf {
    folder.join(name_of_folder(file.folder)).join(format!("file-{:07}", file.number))
}

impl AgeingCounts {
    fn count(&mut self, operation: Operation) {
        match operation {
            Operation::Make(file) => {
                self.made += 1;
                self.written += file.bytes;
                self.left += file.bytes;
            }
            Operation::Delete(file) => {
                self.deleted += 1;
                self.left -= file.bytes;
            }
            Operation::Sync => {}
        }
    }
}

/// What was done, and what is there now: the same on every target.
fn facts_of(done: &AgeingCounts, digest: &Digest, pulls: u32) -> Facts {
    let written = show_bytes(done.written as f64);
    let files = (done.made > 0).then(|| format!("{} files made ({written}), {} deleted", done.made, done.deleted));
    let pulled = (pulls > 0).then(|| format!("a repository cloned, {pulls} times pulled"));
    let did = files.into_iter().chain(pulled).collect::<Vec<_>>().join("; ");
    let left = format!("{} files of {} bytes, digest {}", digest.files, digest.bytes, digest.hash);
    Facts::from([("aged by".into(), did), ("aged files".into(), left)])
}

fn layout_of(folder: &Path) -> String {
    let found = match layout::Found::of(folder) {
        Ok(Some(found)) => found,
        Ok(None) => return "unknown: no file has a block".into(),
        Err(error) => return format!("unknown: the file system does not report where files lie ({error})"),
    };
    let score = found.score().map_or("unknown".to_string(), show_share);
    let (mean, p99) = (found.mean_fragments(), found.fragments_at(0.99));
    format!("score {score}, {mean:.2} fragments a file (99 % have at most {p99}), of {} files", found.files())
}

/// Equal operations, unequal fullness: what df says.
fn space_used(folder: &Path) -> Option<String> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| show_bytes((blocks * found.f_frsize) as f64);
    Some(format!("{} of {}", bytes(found.f_blocks.saturating_sub(found.f_bfree)), bytes(found.f_blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_counted() {
        let file = |bytes| File { number: 0, folder: 0, stuff: pickfs_trees::profile::Stuff::Source, bytes };
        let mut done = AgeingCounts::default();
        for operation in
            [Operation::Make(file(10)), Operation::Make(file(5)), Operation::Sync, Operation::Delete(file(10))]
        {
            done.count(operation);
        }
        assert_eq!(done, AgeingCounts { made: 2, deleted: 1, written: 15, left: 5 });
        let facts = facts_of(&done, &Digest { hash: "h".into(), entries: 3, files: 1, bytes: 5 }, 7);
        assert_eq!(facts["aged by"], "2 files made (15 B), 1 deleted; a repository cloned, 7 times pulled");
        assert_eq!(facts["aged files"], "1 files of 5 bytes, digest h");
    }
}
