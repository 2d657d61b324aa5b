//! What engines of containers do with a file system: an image unpacked layer by layer, its layers
//! read through overlayfs as one tree, and containers that change files of it, each of which is
//! copied up first.
//!
//! overlayfs clones a file that it copies up where the file system can (btrfs, xfs), and copies its
//! bytes where it cannot.

use super::blocks::{BLOCK, Blocks};
use super::overlay::{MOST_LAYERS, Overlay};
use super::{Dataset, Staged, text};
use crate::stack::{Place, argv};
use crate::stage::{AfterPhase, Stage};
use crate::workload::settings::{Count, settings};
use crate::workload::{Description, Workload, described, programs};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::Settings;
use pickfs_system::need::Need;
use pickfs_system::process::run_program;
use pickfs_system::random::Random;
use pickfs_system::sys::devices::overlay_parameters;
use pickfs_trees::Modes;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

pub(crate) struct Containers;

settings! {
    Amounts {
        layers: Count<2, MOST_LAYERS> = "5", "layers of the image, which share the tree: 2 to 12";
        containers: Count<1> = "10", "containers, one after the other";
        changes: Count<1> = "100", "blocks of 4 KiB that each container writes into files of the image, any file as likely";
    }
}

impl Workload for Containers {
    fn description(&self) -> &'static Description {
        described!("containers.toml", [Amounts::ROWS, Dataset::ROWS], Dataset::of)
    }

    fn needs(&self, _: &Settings) -> Vec<Need> {
        let hint = "load its module: `modprobe overlay`";
        let overlay = Need::Kernel { filesystem: "overlay", hint };
        programs(self.description().programs).into_iter().chain([overlay]).collect()
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let dataset = Dataset::of(settings);
        dataset.prepare(place)?;
        let count = Amounts::of(settings).layers;
        archives(&dataset, count, place).iter().zip(0..).try_for_each(|(archive, layer)| {
            if archive.exists() { Ok(()) } else { pack(&dataset.staging(place).folder, (layer, count), archive) }
        })
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (amounts, dataset) = (Amounts::of(settings), Dataset::of(settings));
        let source = dataset.staged(stage.place())?;
        let (wanted, modes) = (&source.digest, Modes::kept(stage.keeps_modes()));
        let archives = archives(&dataset, amounts.layers, stage.place());
        let [image, running] = ["layers", "containers"].map(|name| stage.root().join(name));
        let layers: Vec<PathBuf> = (0..amounts.layers).map(|layer| image.join(layer.to_string())).collect();
        stage.fact("overlayfs", &overlay_parameters());

        stage.phase("unpack", |p| {
            p.handled(source.bytes, wanted.files);
            layers.iter().zip(&archives).try_for_each(|(layer, archive)| {
                p.own(|| Ok(std::fs::create_dir_all(layer)?))?;
                p.command(["tar", "-x", "--same-owner", "-p", "-f", &text(archive), "-C", &text(layer)])
            })
        })?;
        stage.check("verifying all layers as one tree", || same(&source, &layers, modes))?;
        for _ in stage.repeats() {
            stage.phase("read", |p| {
                p.handled(source.bytes, wanted.files);
                let merged = p.own(|| Overlay::mount(&layers, None))?;
                let given = p.discarded(["tar", "-c", "-C", &text(&merged.root()), "."])?;
                ensure!(given >= source.bytes, "tar gave {given} bytes of at least {}", source.bytes);
                p.own(|| {
                    drop(merged);
                    Ok(())
                })
            })?;
        }
        for _ in stage.repeats() {
            stage.phase("walk", |p| {
                p.handled(0, wanted.files);
                let seen = p.own(|| super::tree::walk(&Overlay::mount(&layers, None)?.root()))?;
                ensure!(seen == wanted.entries, "the walk saw {seen} of {} entries", wanted.entries);
                Ok(())
            })?;
        }
        let blocks = stage.check("listing the files", || Blocks::of(&source.folder))?;
        let work = Work { layers: &layers, tree: &source.folder, blocks: &blocks, changes: amounts.changes };
        let changed = |_: &mut AfterPhase, changed: Vec<BTreeSet<&Path>>| {
            (0..).zip(&changed).try_for_each(|(number, paths)| copied_up(&running.join(number.to_string()), paths))
        };
        stage.phase_then("change", |p| p.own(|| work.all(&running, amounts.containers)), changed)?;
        stage.check("verifying that the layers have not changed", || same(&source, &layers, modes))?;
        stage.phase("remove", |p| {
            p.removed(source.bytes, wanted.files);
            p.command(["rm", "-rf", &text(&running)])?;
            p.command(["rm", "-rf", &text(&image)])
        })
    }
}

fn same(source: &Staged, layers: &[PathBuf], modes: Modes) -> Result<()> {
    source.verify(&Overlay::mount(layers, None)?.root(), modes)
}

/// In memory, the lowest first.
fn archives(dataset: &Dataset, layers: u64, place: &Place) -> Vec<PathBuf> {
    (0..layers).map(|layer| dataset.staging(place).file(&format!("layer-{layer}-of-{layers}.tar"))).collect()
}

/// A layer has a run of the tree in the order of names, and the folders above its files. All names
/// of a file are in one layer.
fn pack(tree: &Path, (layer, count): (u64, u64), archive: &Path) -> Result<()> {
    let list = archive.with_extension("list");
    let mut names = Vec::new();
    for path in part(tree, layer, count)? {
        names.extend_from_slice(path.as_os_str().as_bytes());
        names.push(0);
    }
    std::fs::write(&list, names)?;
    let (folder, from) = (text(tree), format!("--files-from={}", text(&list)));
    let words =
        ["tar", "-c", "--null", "--no-recursion", "--verbatim-files-from", "-C", &folder, &from, "-f", &text(archive)];
    run_program(&argv(words)).context("cannot pack a layer in memory")?;
    Ok(std::fs::remove_file(&list)?)
}

fn part(tree: &Path, layer: u64, count: u64) -> Result<BTreeSet<PathBuf>> {
    let all: Vec<walkdir::DirEntry> =
        walkdir::WalkDir::new(tree).min_depth(1).sort_by_file_name().into_iter().collect::<Result<_, _>>()?;
    let (mut first_names, mut chosen) = (BTreeMap::new(), BTreeSet::new());
    for (at, entry) in (0..).zip(&all) {
        let (metadata, own) = (entry.metadata()?, at * count / all.len() as u64);
        let is_linked = metadata.nlink() > 1 && !metadata.is_dir();
        let of = if is_linked { *first_names.entry((metadata.dev(), metadata.ino())).or_insert(own) } else { own };
        if of == layer {
            let path = entry.path().strip_prefix(tree)?;
            chosen.extend(path.ancestors().filter(|above| !above.as_os_str().is_empty()).map(Path::to_path_buf));
        }
    }
    Ok(chosen)
}

/// What each container does.
struct Work<'a> {
    layers: &'a [PathBuf],
    /// The tree that was packed, and its blocks.
    tree: &'a Path,
    blocks: &'a Blocks,
    changes: u64,
}

impl<'a> Work<'a> {
    /// One after the other, each with other files; which ones each has changed.
    fn all(&self, running: &Path, containers: u64) -> Result<Vec<BTreeSet<&'a Path>>> {
        let mut random = Random::new(1, 0);
        (0..containers).map(|number| self.one(&running.join(number.to_string()), &mut random)).collect()
    }

    fn one(&self, folder: &Path, random: &mut Random) -> Result<BTreeSet<&'a Path>> {
        let merged = Overlay::mount(self.layers, Some(folder))?;
        let (root, mut content, mut changed) = (merged.root(), [0; BLOCK], BTreeSet::new());
        for _ in 0..self.changes {
            let piece = self.blocks.of_any_file(random);
            let path = piece.path.strip_prefix(self.tree)?;
            random.fill(&mut content);
            let file = OpenOptions::new().write(true).open(root.join(path));
            let file = file.with_context(|| format!("opening {} in a container", path.display()))?;
            file.write_all_at(&content[..piece.length], piece.start)
                .with_context(|| format!("writing to {}", path.display()))?;
            changed.insert(path);
        }
        Ok(changed)
    }
}

/// A file has one copy above the layers, whatever names it has there.
fn copied_up(folder: &Path, changed: &BTreeSet<&Path>) -> Result<()> {
    let upper = folder.join("upper");
    let there = |path: &&&Path| upper.join(path).symlink_metadata().is_ok_and(|found| found.is_file());
    let found = changed.iter().filter(there).count();
    ensure!(found == changed.len(), "{} has {found} of {} files that were changed", upper.display(), changed.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_image_has_layers_and_containers() {
        let objections = |pairs: serde_json::Value| {
            let settings = Settings(pairs.as_object().unwrap().clone().into_iter().collect());
            Containers.objections(&settings).iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        assert!(objections(json!({"scale": 0.01})).is_empty());
        assert_eq!(objections(json!({"scale": 0.0})), ["scale"]);
    }

    /// Two names of one file, far apart in their order, and folders that several layers have.
    #[test]
    fn layers_share_the_tree_and_keep_the_names_of_a_file_together() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a/b/1", "a/b/2", "a/3", "c/4", "c/5", "z"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), name).unwrap();
        }
        std::fs::hard_link(at("a/3"), at("zz")).unwrap();
        std::os::unix::fs::symlink("z", at("link")).unwrap();
        let parts: Vec<BTreeSet<PathBuf>> = (0..3).map(|layer| part(folder.path(), layer, 3).unwrap()).collect();
        let shown = |part: &BTreeSet<PathBuf>| part.iter().map(|path| text(path)).collect::<Vec<_>>().join(" ");
        assert_eq!(
            parts.iter().map(shown).collect::<Vec<_>>(),
            ["a a/3 a/b a/b/1 zz", "a a/b a/b/2 c c/4 c/5", "link z"]
        );
    }
}
