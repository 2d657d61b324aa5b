//! A tree like a developer's, from a seed: the same to the byte on every machine.
//!
//! Three files in four are text, one in five object code, the rest media; sizes are lognormal in each class and then
//! scaled so that their sum is what was asked for. Folders hold ten files on average and lie up to six deep; some
//! files are executable, some names are symbolic links, two are hard links. The content is described in
//! [`super::content`]: it compresses as the real thing does.

use super::content::{Class, Content};
use super::random::Random;
use anyhow::{Context, Result, ensure};
use std::fs::{DirBuilder, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// How large a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Regular files, not counting further names of the same file, nor symbolic links.
    pub files: u64,
    /// The sum of their sizes, met exactly.
    pub bytes: u64,
}

/// A class's share of files, in percent, and its sizes: median and deviation of the logarithm, before scaling.
struct Mix {
    class: Class,
    percent: u64,
    median: f64,
    deviation: f64,
    endings: [&'static str; 4],
}

const MIX: [Mix; 3] = [
    Mix { class: Class::Text, percent: 75, median: 4096.0, deviation: 1.3, endings: [".c", ".h", ".rs", ".sh"] },
    Mix { class: Class::Object, percent: 20, median: 20_480.0, deviation: 1.5, endings: [".o", ".so", ".a", ""] },
    Mix { class: Class::Media, percent: 5, median: 61_440.0, deviation: 1.2, endings: [".png", ".gz", ".jpg", ".zst"] },
];
const FILES_IN_FOLDER: u64 = 10;
const DEEPEST: usize = 6;
/// One file in so many has a symbolic link beside it.
const FILES_PER_LINK: u64 = 50;
const HARD_LINKS: usize = 2;
const NAMES: [&str; 16] = [
    "alpha", "buffer", "cache", "driver", "event", "format", "graph", "handle", "index", "journal", "kernel", "list",
    "memory", "node", "object", "page",
];
/// Files are made in pieces of this size; repeats do not reach across.
const PIECE: usize = 1 << 20;

/// A file to be.
struct Plan {
    folder: usize,
    name: String,
    class: Class,
    bytes: u64,
    mode: u32,
}

/// Makes the tree in `root`, which is made too where it is not there.
pub fn generate(root: &Path, shape: &Shape, seed: u64) -> Result<()> {
    ensure!(shape.files > 0 || shape.bytes == 0, "a tree of no files cannot hold {} bytes", shape.bytes);
    let mut random = Random::new(seed, 0);
    let folders = plan_folders(shape.files.div_ceil(FILES_IN_FOLDER), &mut random);
    let plans = plan_files(shape, folders.len(), &mut random);
    for folder in &folders {
        make_folder(&root.join(folder))?;
    }
    let content = Content::new(seed);
    let mut buffer = Vec::with_capacity(PIECE + 256);
    for (stream, plan) in (1..).zip(&plans) {
        let path = root.join(&folders[plan.folder]).join(&plan.name);
        write_file(&path, plan, &content, &mut Random::new(seed, stream), &mut buffer)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    make_links(root, &folders, &plans)
}

/// Paths below the root, parents before children; the first is the root itself. A folder's parent is any before it
/// that is not too deep, so that early ones hold many.
fn plan_folders(count: u64, random: &mut Random) -> Vec<PathBuf> {
    let mut folders = vec![(PathBuf::new(), 0)];
    for number in 1..count {
        let parents = folders.len();
        let (parent, depth) = std::iter::repeat_with(|| &folders[random.index(parents)])
            .find(|(_, depth)| *depth < DEEPEST)
            .expect("the root is not too deep");
        let name = format!("{}-{number}", NAMES[random.index(NAMES.len())]);
        folders.push((parent.join(name), depth + 1));
    }
    folders.into_iter().map(|(path, _)| path).collect()
}

/// Files in the order of their folders, as copying a tree would make them.
fn plan_files(shape: &Shape, folders: usize, random: &mut Random) -> Vec<Plan> {
    let mut plans: Vec<Plan> = (0..shape.files).map(|number| plan_file(number, folders, random)).collect();
    scale_sizes(&mut plans, shape.bytes);
    plans.sort_by_key(|plan| plan.folder);
    plans
}

fn plan_file(number: u64, folders: usize, random: &mut Random) -> Plan {
    let mix = pick(random.below(100));
    let ending = mix.endings[random.index(mix.endings.len())];
    Plan {
        folder: random.index(folders),
        name: format!("{}{number}{ending}", NAMES[random.index(NAMES.len())]),
        class: mix.class,
        bytes: random.lognormal(mix.median, mix.deviation) as u64,
        mode: if matches!(ending, ".sh" | ".so" | "") { 0o755 } else { 0o644 },
    }
}

fn pick(percent: u64) -> &'static Mix {
    let mut rest = percent;
    for mix in &MIX {
        match rest.checked_sub(mix.percent) {
            Some(left) => rest = left,
            None => return mix,
        }
    }
    &MIX[0]
}

/// Makes the sizes add up to `bytes` and keeps their proportions; what rounding leaves goes to the largest.
fn scale_sizes(plans: &mut [Plan], bytes: u64) {
    let sum: u64 = plans.iter().map(|plan| plan.bytes).sum();
    let scaled = |size: u64| (u128::from(size) * u128::from(bytes) / u128::from(sum.max(1))) as u64;
    plans.iter_mut().for_each(|plan| plan.bytes = scaled(plan.bytes));
    let missing = bytes - plans.iter().map(|plan| plan.bytes).sum::<u64>();
    if let Some(largest) = plans.iter_mut().max_by_key(|plan| plan.bytes) {
        largest.bytes += missing;
    }
}

/// Permissions are set and not left to the umask, as they are part of what trees are compared by.
fn make_folder(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(path);
    let set = made.and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(0o755)));
    set.with_context(|| format!("making {}", path.display()))
}

fn write_file(path: &Path, plan: &Plan, content: &Content, random: &mut Random, buffer: &mut Vec<u8>) -> Result<()> {
    let mut file = File::create_new(path)?;
    let mut left = plan.bytes;
    while left > 0 {
        let piece = left.min(PIECE as u64);
        buffer.clear();
        content.fill(plan.class, random, buffer, piece as usize);
        file.write_all(buffer)?;
        left -= piece;
    }
    Ok(file.set_permissions(Permissions::from_mode(plan.mode))?)
}

/// Symbolic links stand beside their targets; hard links in the root.
fn make_links(root: &Path, folders: &[PathBuf], plans: &[Plan]) -> Result<()> {
    for plan in plans.iter().step_by(FILES_PER_LINK as usize) {
        let link = root.join(&folders[plan.folder]).join(format!("link-to-{}", plan.name));
        symlink(&plan.name, &link).with_context(|| format!("linking {}", link.display()))?;
    }
    for plan in plans.iter().rev().take(HARD_LINKS) {
        let link = root.join(format!("same-as-{}", plan.name));
        let file = root.join(&folders[plan.folder]).join(&plan.name);
        std::fs::hard_link(file, &link).with_context(|| format!("linking {}", link.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::digest;
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use walkdir::{DirEntry, WalkDir};

    fn tree(files: u64, bytes: u64, seed: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        generate(folder.path(), &Shape { files, bytes }, seed).unwrap();
        folder
    }

    #[test]
    fn the_seed_decides_and_this_tree_is_pinned() {
        let found = digest(tree(50, 1 << 20, 1).path()).unwrap();
        assert_eq!(found.hash, "d2ed0b7d76568028db391d2baf328af8");
        assert_ne!(digest(tree(50, 1 << 20, 2).path()).unwrap().hash, found.hash);
    }

    #[test]
    fn a_tree_is_what_was_asked_for() {
        let folder = tree(1000, 8 << 20, 3);
        let entries: Vec<DirEntry> = WalkDir::new(folder.path()).into_iter().map(Result::unwrap).collect();
        let of = |wanted: fn(&DirEntry) -> bool| entries.iter().filter(move |entry| wanted(entry));
        let files = || of(|entry| entry.file_type().is_file());
        let sizes = files().map(|entry| entry.metadata().unwrap());
        assert_eq!(sizes.map(|m| m.len() as f64 / m.nlink() as f64).sum::<f64>(), f64::from(8 << 20));
        assert_eq!(files().count(), 1000 + HARD_LINKS);
        assert_eq!(of(|entry| entry.file_type().is_symlink()).count(), 20);
        assert_eq!(of(|entry| entry.file_type().is_dir()).count(), 100);
        assert!(of(|entry| entry.path_is_symlink()).all(|link| link.path().exists()));
        let deepest = of(|entry| entry.file_type().is_dir()).map(DirEntry::depth).max().unwrap();
        assert!((4..=DEEPEST).contains(&deepest), "{deepest}");
        let executables = files().filter(|entry| entry.metadata().unwrap().mode() & 0o111 != 0).count();
        assert!((200..400).contains(&executables), "{executables}");
    }

    #[test]
    fn odd_shapes() {
        assert_eq!(digest(tree(1, 3, 1).path()).unwrap().bytes, 2 * 3, "the file and its hard link");
        assert_eq!(digest(tree(0, 0, 1).path()).unwrap().entries, 0);
        assert_eq!(digest(tree(20, 5, 1).path()).unwrap().files, 22);
        let nowhere = tempfile::tempdir().unwrap();
        assert!(generate(nowhere.path(), &Shape { files: 0, bytes: 1 }, 1).is_err());
    }
}
