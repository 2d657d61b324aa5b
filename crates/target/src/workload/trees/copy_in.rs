//! A tree that is brought from another disk: read cold there, copied until it is safe here.
//!
//! Two further times show which side held the copy back: what the source alone gives, cold, and
//! what the file system alone takes, from memory.

use super::{Dataset, GENERATED, verify};
use crate::probe::device::{Watch, watch_disk_of};
use crate::stack::Place;
use crate::stage::Doubt;
use crate::stage::{PhaseTimer, Program, Stage};
use crate::workload::settings::{Flag, Path as PathKind, settings};
use crate::workload::{Description, OtherDisk, Workload, described, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::{FlagKind, HELD_BACK};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::process::exposed;
use pickfs_system::sys::file;
use pickfs_system::units::show_bytes;
use pickfs_trees::{Digest, Modes};
use std::path::{Path, PathBuf};

pub(crate) struct CopyIn;

settings! {
    Origin {
        source: PathKind, "directory to copy from, such as the home on the old disk";
        from: PathKind, "instead of `source`: a directory on another disk, where a generated tree is put first";
        from_memory: Flag = "true",
            "also measure what the file system takes from memory, which must hold the tree twice";
    }
}

/// The share of what the source's files take on their disk that must be read for the copy to be
/// called cold there.
const COLD_SHARE: f64 = 0.9;
/// Rates that are nearer to each other are alike.
const ALIKE: f64 = 0.9;

impl Workload for CopyIn {
    fn description(&self) -> &'static Description {
        described!("copy_in.toml", [Origin::ROWS, GENERATED], Dataset::of)
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let Origin { source, from, .. } = Origin::of(settings);
        let remedy = "name the tree with `source`, or with `from` a directory on another disk for a generated tree";
        let (setting, folder) = match (source, from) {
            (None, None) => {
                return vec![Objection::new("source", "no tree is named to copy".into(), remedy)];
            }
            (Some(_), Some(_)) => {
                let remedy = "leave one of the two out: a source is copied from its place";
                return vec![Objection::new("from", "`source` and `from` exclude each other".into(), remedy)];
            }
            (Some(source), None) => ("source", source),
            (None, Some(from)) => ("from", from),
        };
        let message = format!("{} is no directory", folder.display());
        let gone = (!folder.is_dir()).then(|| Objection::new(setting, message, remedy));
        let exposed = exposed(&folder).filter(|_| setting == "from");
        let exposed = exposed.map(|exposed| Objection::new(setting, exposed.message, &exposed.remedy));
        gone.into_iter().chain(exposed).chain(Dataset::of(settings).objections()).collect()
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        if !Origin::of(settings).in_memory() {
            return Ok(());
        }
        Dataset::of(settings).prepare(place).context("a source that memory cannot hold needs `from_memory = false`")
    }

    fn folders(&self, settings: &Settings, place: &Place) -> Vec<PathBuf> {
        let in_guest = place.other_disk().is_dir();
        Origin::of(settings).from.filter(|_| !in_guest).map(|from| beside(&from, place)).into_iter().collect()
    }

    /// A source's image is made in memory, as nothing says where else there is room.
    fn other_disk(&self, settings: &Settings, place: &Place) -> Option<OtherDisk> {
        let Origin { source, from, .. } = Origin::of(settings);
        let folder = from.map_or(place.memory.clone(), |from| beside(&from, place));
        Some(OtherDisk { tree: source.unwrap_or_else(|| Dataset::of(settings).staging(place).folder), folder })
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (source, staged) = sides(stage, settings)?;
        let (tree, source) = (stage.root().join("tree"), Source::look(stage, source)?);
        stage.forget(&source.folder)?;
        let copy = Program::new(["cp", "-a", &text(&source.folder), &text(&tree)]);
        let read = stage.phase_then(
            "copy",
            |p| source.bytes_read(|| p.run(&copy)),
            |p, read| {
                p.handled(source.bytes, source.digest.files);
                read.into_iter().for_each(|read| p.say("source_read_bytes", read as f64));
                Ok(read)
            },
        )?;
        let copy = stage.clocked().context("the phase has no time")?;
        let modes = Modes::kept(stage.keeps_modes());
        stage.check("verifying what was copied", || verify(&tree, &source.folder, &source.digest, modes))?;
        let alone = read_alone(stage, &source)?;
        let into = match staged {
            Some(staged) => Some(write_alone(stage, &staged, &tree)?),
            None => None,
        };
        tell(stage, &source, copy, alone.ns, into);
        for (flag, why) in doubts(read, alone.read, source.on_disk) {
            stage.flag("copy", flag, why);
        }
        Ok(())
    }
}

impl Origin {
    /// Memory is needed for the second side, and for making a tree.
    fn in_memory(&self) -> bool {
        self.from_memory || self.source.is_none()
    }
}

fn beside(from: &Path, place: &Place) -> PathBuf {
    from.join(format!("{}-source", place.name))
}

/// Where the tree is brought from, and its copy in memory where the second side is wanted.
fn sides(stage: &mut Stage, settings: &Settings) -> Result<(PathBuf, Option<PathBuf>)> {
    let origin = Origin::of(settings);
    let staged = origin.in_memory().then(|| Dataset::of(settings).staged(stage.place())).transpose()?;
    let other_disk = Some(stage.place().other_disk()).filter(|folder| folder.is_dir());
    let source = match (other_disk.or(origin.source), origin.from, &staged) {
        (Some(source), _, _) => source,
        (None, Some(from), Some(staged)) => {
            let folder = beside(&from, stage.place());
            stage.run(&Program::new(["cp", "-a", &text(&staged.folder), &text(&folder.join("tree"))]))?;
            stage.run(&Program::new(["sync", "--file-system", &text(&folder)]))?;
            folder.join("tree")
        }
        _ => anyhow::bail!("no tree is named to copy; name it with `source`"),
    };
    Ok((source, staged.filter(|_| origin.from_memory).map(|staged| staged.folder)))
}

/// The tree where it is brought from.
struct Source {
    folder: PathBuf,
    digest: Digest,
    /// Bytes of all files, without those of second names.
    bytes: u64,
    /// That its files take on their disk, at most what they hold.
    on_disk: u64,
    /// Where it lies on one.
    disk: Option<Watch>,
}

impl Source {
    fn look(stage: &mut Stage, folder: PathBuf) -> Result<Source> {
        let (digest, bytes, on_disk) = stage.check("looking at the source", || {
            Ok((pickfs_trees::digest(&folder)?, pickfs_trees::apparent_bytes(&folder), on_disk(&folder)?))
        })?;
        ensure!(digest.entries > 0, "{} is empty; there is nothing to bring", folder.display());
        let disk = watch_disk_of(&folder);
        Ok(Source { folder, digest, bytes, on_disk: on_disk.min(bytes), disk })
    }

    /// Bytes that its disk reads meanwhile; none where there is no disk.
    fn bytes_read(&self, work: impl FnOnce() -> Result<()>) -> Result<Option<u64>> {
        let counted = || Some(self.disk.as_ref()?.read()?.read_bytes);
        let before = counted();
        work()?;
        Ok(counted().zip(before).map(|(after, before)| after - before))
    }
}

/// What the files take, each once.
fn on_disk(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut met) = (0, std::collections::HashSet::new());
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_file() && met.insert((found.dev(), found.ino())) {
            bytes += file::stored_bytes(entry.path(), &found)?;
        }
    }
    Ok(bytes)
}

/// The source read cold into nothing.
fn read_alone(stage: &mut Stage, source: &Source) -> Result<Alone> {
    stage.forget(&source.folder)?;
    let (mut read, words) = (None, ["tar", "-c", "-C", &text(&source.folder), "."]);
    let clocked = stage.aside("reading the source alone", |p| {
        read = source.bytes_read(|| p.discarded(words).map(drop))?;
        Ok(())
    })?;
    Ok(Alone { ns: clocked.returned_ns, read })
}

struct Alone {
    ns: u64,
    /// By the disk; none where there is no disk.
    read: Option<u64>,
}

/// The same tree written from memory, where the copy was.
fn write_alone(stage: &mut Stage, staged: &Path, tree: &Path) -> Result<u64> {
    stage.run(&Program::new(["rm", "-rf", &text(tree)]))?;
    let clocked = stage.aside("writing from memory alone", |p| p.command(["cp", "-a", &text(staged), &text(tree)]))?;
    Ok(clocked.durable_ns)
}

fn tell(stage: &mut Stage, source: &Source, copy: PhaseTimer, alone: u64, into: Option<u64>) {
    let rate = |ns: u64| source.bytes as f64 / (ns.max(1) as f64 / 1e9);
    let rates = Rates { copy: rate(copy.durable_ns), source: rate(alone), target: into.map(rate) };
    stage.say("copy", "copied_bytes_per_second", rates.copy);
    stage.say("copy", "source_read_bytes_per_second", rates.source);
    rates.target.into_iter().for_each(|target| stage.say("copy", "target_write_bytes_per_second", target));
    let shares = stage.shares_disk_with(&source.folder);
    stage.fact(HELD_BACK, &rates.held_back(shares));
}

/// The copy's time is doubted by what the copy read; what held it back, also by what the reading
/// alone did.
fn doubts(copy: Option<u64>, alone: Option<u64>, on_disk: u64) -> Vec<Doubt> {
    let read = [(FlagKind::SourceNotCold, copy), (FlagKind::SourceAloneNotCold, alone)];
    read.into_iter().filter_map(|(flag, read)| Some((flag, doubt(read, on_disk)?))).collect()
}

/// Why the source cannot be said to have been cold.
fn doubt(read: Option<u64>, on_disk: u64) -> Option<String> {
    match read {
        None => Some("the source lies on no disk whose reads could prove that it was cold".into()),
        Some(read) if read as f64 >= COLD_SHARE * on_disk as f64 => None,
        Some(read) => Some(format!(
            "the source's disk gave {} of {}; it was in a cache, or is stored compressed",
            show_bytes(read as f64),
            show_bytes(on_disk as f64)
        )),
    }
}

/// Bytes a second.
struct Rates {
    copy: f64,
    /// Read cold, into nothing.
    source: f64,
    /// Written from memory.
    target: Option<f64>,
}

impl Rates {
    /// As a sentence. `shares` is whether both lie on one disk, where that can be seen.
    fn held_back(&self, shares: Option<bool>) -> String {
        let show = |rate: f64| format!("{}/s", show_bytes(rate));
        let (copy, source) = (show(self.copy), show(self.source));
        let Some(target) = self.target else {
            return format!("unknown: the source gives {source} alone, the copy came at {copy}; see `from_memory`");
        };
        let who = match (self.source / target, shares) {
            (_, Some(true)) => "the disk that source and target share",
            (ratio, _) if ratio < ALIKE => "the source",
            (ratio, _) if ratio > 1.0 / ALIKE => "the target",
            _ => "both alike",
        };
        let both = self.copy < ALIKE * self.source.min(target);
        let turn = if both { ", which is slower than either: one waits for the other" } else { "" };
        format!(
            "{who}: the source gives {source} alone, the target takes {} from memory, the copy came at {copy}{turn}",
            show(target)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_slower_side_is_named() {
        const MIB: f64 = (1 << 20) as f64;
        type Row = (f64, f64, Option<f64>, Option<bool>, &'static str, bool);
        let rows: [Row; 6] = [
            (95.0, 100.0, Some(400.0), Some(false), "the source: the source gives 100 MiB/s alone", false),
            (95.0, 400.0, Some(100.0), None, "the target: the source gives 400 MiB/s alone", false),
            (60.0, 100.0, Some(105.0), Some(false), "both alike", true),
            (60.0, 100.0, Some(400.0), Some(false), "the source", true),
            (60.0, 100.0, Some(400.0), Some(true), "the disk that source and target share", true),
            (60.0, 100.0, None, Some(false), "unknown", false),
        ];
        for (copy, source, target, shares, starts, turns) in rows {
            let rates = Rates { copy: copy * MIB, source: source * MIB, target: target.map(|rate| rate * MIB) };
            let why = rates.held_back(shares);
            assert!(why.starts_with(starts) && why.contains("slower than either") == turns, "{why}");
        }
    }

    #[test]
    fn a_source_that_was_cached_is_doubted() {
        assert_eq!(doubt(Some(95), 100), None);
        assert!(doubt(Some(80), 100).unwrap().contains("80 B of 100 B"));
        assert!(doubt(None, 100).unwrap().contains("no disk"));
        // Each by its own reading.
        let flags = |copy, alone| doubts(copy, alone, 100).into_iter().map(|(flag, _)| flag).collect::<Vec<_>>();
        assert!(flags(Some(95), Some(95)).is_empty());
        assert_eq!(flags(Some(5), Some(95)), [FlagKind::SourceNotCold]);
        assert_eq!(flags(Some(95), Some(5)), [FlagKind::SourceAloneNotCold]);
    }

    #[test]
    fn the_sources_disk_is_not_looked_for_while_it_is_read() {
        let watch = |numbers: &str| {
            let (major, minor) = numbers.split_once(':')?;
            Watch::new(&[(major.parse().ok()?, minor.parse().ok()?)])
        };
        let mut disks = std::fs::read_dir("/sys/dev/block").into_iter().flatten().flatten();
        let disk = disks.find_map(|entry| watch(entry.file_name().to_str()?));
        let Some(disk) = disk else { return pickfs_test_support::not_run("there is no disk") };
        // A folder whose disk could not be found any more.
        let folder = PathBuf::from("/nowhere/at/all");
        let source = Source { folder, digest: Digest::default(), bytes: 0, on_disk: 0, disk: Some(disk) };
        assert!(source.bytes_read(|| Ok(())).unwrap().is_some());
    }

    #[test]
    fn it_must_be_said_where_the_tree_comes_from() {
        let rows = [
            (json!({}), "source", "no tree is named"),
            (json!({"from": "/tmp", "source": "/tmp"}), "from", "exclude"),
            (json!({"source": "/nowhere/at/all"}), "source", "no directory"),
            (json!({"from": "/nowhere/at/all"}), "from", "no directory"),
            (json!({"from": "/", "like": "site"}), "", ""),
            (json!({"source": "/", "like": "site"}), "like", "exclude"),
        ];
        for (given, setting, says) in rows {
            let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
            let found = CopyIn.objections(&settings);
            assert_eq!(found.first().map_or("", |objection| objection.setting), setting, "{given}");
            assert!(found.first().is_none_or(|objection| objection.message.contains(says)), "{given}");
        }
    }
}
