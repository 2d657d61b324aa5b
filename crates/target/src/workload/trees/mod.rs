//! Workloads on a tree of files: the user's own or one like a profile, staged in memory.

mod blocks;
pub(crate) mod check;
pub(crate) mod containers;
pub(crate) mod copy_in;
pub(crate) mod image;
mod overlay;
pub(crate) mod snapshots;
pub(crate) mod tree;
pub(crate) mod vm_image;
pub(crate) mod walk;

use super::room::Room;
use super::settings::{Count, NameOrPath, Number, Path as PathKind, Size, settings};
use super::staging::Staging;
use super::text;
use crate::stack::{Place, argv};
use crate::stage::{Program, Stage};
use anyhow::{Result, anyhow, ensure};
use pickfs_core::plan::{Objection, Setting, Settings};
use pickfs_system::process::run_program;
use pickfs_system::units::show_bytes;
use pickfs_trees::{
    Digest, Modes, Shape, TreeLayout,
    profile::{Profile, builtin},
};
use std::path::{Path, PathBuf};

settings! {
    /// A tree of files as a plan describes it: the user's own, or one like a profile.
    pub Dataset {
        source: PathKind, "directory to copy; by default a generated tree";
        like: NameOrPath,
            "what a generated tree is like: a name from `pickfs list profiles`, or a file that `pickfs scan` wrote";
        scale: Number, "how many times as many files, directories and bytes as in the profile";
        files: Count, "files in the generated tree, instead of a scale";
        bytes: Size, "bytes in the generated tree";
    }
}

settings! {
    Jobs {
        jobs: Count<1, 1000> = "1", "how many threads share the files";
    }
}

/// Does a work in `jobs` threads, of which the first is this one; each is given its number from 0
/// on.
fn in_threads<T: Send>(jobs: u64, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let work = &work;
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs as usize).map(|job| scope.spawn(move || work(job))).collect();
        let first = work(0);
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(anyhow!("a thread failed"))));
        std::iter::once(first).chain(others.collect::<Vec<_>>()).collect()
    })
}

/// The settings of generated trees, for workloads that have another `source`.
pub(crate) const GENERATED: &[Setting] = Dataset::ROWS.split_at(1).1;

/// What is larger does not come from wanting a large tree.
const LARGEST_SCALE: f64 = 1e6;
/// All trees of a run are made from this one, so that runs can be compared.
const SEED: u64 = 1;
/// A tree is staged, and read back into memory as well.
const COPIES: u64 = 2;
/// What a file takes in memory in addition to its bytes, on average.
const A_FILE: u64 = 3 << 10;

/// The tree that a run has in memory.
pub(crate) struct Staged {
    pub folder: PathBuf,
    pub digest: Digest,
    /// Of all files, without those of second names.
    pub bytes: u64,
}

impl Staged {
    pub(crate) fn verify(&self, copy: &Path, modes: Modes) -> Result<()> {
        verify(copy, &self.folder, &self.digest, modes)
    }
}

/// Names, sizes and bytes of a copy, and its permissions where the file system under test keeps
/// them.
fn verify(copy: &Path, source: &Path, digest: &Digest, modes: Modes) -> Result<()> {
    if modes == Modes::Kept && pickfs_trees::digest(copy)? == *digest {
        return Ok(());
    }
    let found = pickfs_trees::differences(source, copy, 5, modes);
    ensure!(modes == Modes::Lost && found.is_empty(), "the content differs from the source: {}", found.join(", "));
    Ok(())
}

/// Copies the tree to the file system under test, untimed, and sees that it is the same there.
pub(crate) fn lay_out(stage: &mut Stage, source: &Staged, tree: &Path) -> Result<()> {
    stage.lay_out("copying the tree to the file system", |stage| {
        stage.run(&Program::new(["cp", "-a", &text(&source.folder), &text(tree)])).map(drop)
    })?;
    let modes = Modes::kept(stage.keeps_modes());
    stage.check("verifying what was written", || source.verify(tree, modes))
}

impl Dataset {
    /// With a static site as the usual tree.
    pub(crate) fn of_a_site(settings: &Settings) -> Dataset {
        let mut dataset = Dataset::of(settings);
        if dataset.source.is_none() {
            dataset.like.get_or_insert("site".into());
        }
        dataset
    }

    /// None of its settings is given.
    pub(crate) fn is_unset(&self) -> bool {
        self.source.is_none() && self.generated().is_none()
    }

    /// The first setting that only a generated tree can have.
    fn generated(&self) -> Option<&'static str> {
        let Dataset { source: _, like, scale, files, bytes } = self;
        let given = [like.is_some(), scale.is_some(), files.is_some(), bytes.is_some()];
        GENERATED.iter().zip(given).find(|(_, given)| *given).map(|(row, _)| row.name)
    }

    /// Where the tree lies in memory: one place per set of settings.
    pub(crate) fn staging(&self, place: &Place) -> Staging {
        Staging::new("source", self, place)
    }

    /// Puts the tree into memory, for [`Dataset::staged`]; once, for however many workloads.
    pub(crate) fn prepare(&self, place: &Place) -> Result<()> {
        let staging = self.staging(place);
        if staging.is_complete() {
            return Ok(());
        }
        self.stage(&staging.folder)?;
        let digest = pickfs_trees::digest(&staging.folder)?;
        ensure!(digest.entries > 0, "the source is empty; there is nothing to measure with");
        staging.note(&(digest, pickfs_trees::apparent_bytes(&staging.folder)))
    }

    /// The tree that [`Dataset::prepare`] has staged with the same settings.
    pub(crate) fn staged(&self, place: &Place) -> Result<Staged> {
        let staging = self.staging(place);
        let (digest, bytes) = staging.noted()?;
        Ok(Staged { folder: staging.folder, digest, bytes })
    }

    /// Makes the tree, or refuses before anything is made where it does not fit.
    fn stage(&self, folder: &Path) -> Result<()> {
        match &self.source {
            Some(source) => copy_into_memory(source, folder),
            None => {
                let layout = TreeLayout::new(&self.profile()?, &self.shape()?, SEED)?;
                fits(layout.memory(), folder, "the generated tree takes", "take a smaller one with `scale`")?;
                pickfs_trees::write(folder, &layout)
            }
        }
    }

    /// The sum of the sizes of all files, each once.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match &self.source {
            Some(source) => Some(pickfs_trees::apparent_bytes(source)),
            None => self.shape().ok().map(|shape| shape.bytes),
        }
    }

    fn profile(&self) -> Result<Profile> {
        builtin::profile(self.like.as_deref().unwrap_or(builtin::USUAL))
    }

    fn shape(&self) -> Result<Shape> {
        let usual = Shape::scaled(&self.profile()?, self.scale.unwrap_or(1.0));
        Ok(Shape { files: self.files.unwrap_or(usual.files), bytes: self.bytes.unwrap_or(usual.bytes) })
    }

    /// What cannot be, or is too large for this machine's memory.
    pub(crate) fn objections(&self) -> Vec<Objection> {
        match (&self.source, self.generated()) {
            (Some(_), Some(setting)) => {
                let message = format!("`source` and `{setting}` exclude each other");
                vec![Objection::new(setting, message, "leave one of the two out: a source is copied unchanged")]
            }
            (Some(_), None) => Vec::new(),
            (None, _) => {
                let wrong = self.bad_profile().or_else(|| self.bad_scale()).or_else(|| self.too_large());
                wrong.into_iter().collect()
            }
        }
    }

    fn bad_profile(&self) -> Option<Objection> {
        let error = self.profile().err()?;
        let remedy = format!("use one of {}, or a file that `pickfs scan DIR --output FILE` wrote", builtin::names());
        Some(Objection::new("like", format!("{error:#}"), &remedy))
    }

    fn bad_scale(&self) -> Option<Objection> {
        let scale = self.scale?;
        if self.files.is_some() {
            let message = "`scale` and `files` exclude each other".to_string();
            return Some(Objection::new("scale", message, "leave one of the two out"));
        }
        let message = format!("a tree cannot be {scale} times as large");
        let good = scale > 0.0 && scale <= LARGEST_SCALE;
        (!good).then(|| Objection::new("scale", message, "give a number such as 0.1 or 3"))
    }

    fn too_large(&self) -> Option<Objection> {
        let shape = self.shape().ok()?;
        let wanted = shape.bytes.saturating_add(shape.files.saturating_mul(A_FILE)).saturating_mul(COPIES);
        let free = Room::at(Path::new("/dev/shm")).ok()?.free;
        let message = format!(
            "a tree of {} files with {} takes about {} of memory, staged and read back, and {} are free",
            shape.files,
            show_bytes(shape.bytes as f64),
            show_bytes(wanted as f64),
            show_bytes(free as f64)
        );
        let sizes = [("scale", self.scale.is_some()), ("files", self.files.is_some()), ("bytes", self.bytes.is_some())];
        let setting = sizes.into_iter().find(|(_, given)| *given).map_or("like", |(name, _)| name);
        let scale = free as f64 / wanted as f64 * self.scale.unwrap_or(1.0);
        let (remedy, path, scale) = ("take a smaller tree", ["work", "scale"], rounded_down(scale).to_string());
        (wanted > free).then(|| Objection::such_as(setting, message, remedy, &path, &scale))
    }
}

/// One digit that counts.
fn rounded_down(scale: f64) -> f64 {
    let unit = (1..9).map(|power| 0.1f64.powi(power)).find(|unit| *unit <= scale * 0.9).unwrap_or(1e-9);
    let digits = (scale * 0.9 / unit).floor();
    if scale >= 2.0 { scale.floor() - 1.0 } else { format!("{:.9}", (digits * unit).max(1e-9)).parse().unwrap_or(unit) }
}

/// With `cp -a`, as workloads do, so that what cannot be copied is found before anything is
/// measured.
fn copy_into_memory(source: &Path, staged: &Path) -> Result<()> {
    let what = format!("{} has", source.display());
    fits(pickfs_trees::apparent_bytes(source), staged, &what, "take a smaller source")?;
    run_program(&argv(["cp", "-a", &text(source), &text(staged)])).map(drop)
}

fn fits(bytes: u64, staged: &Path, what: &str, remedy: &str) -> Result<()> {
    let free = Room::at(staged.parent().unwrap_or(staged))?.free;
    let (show, wanted) = (|bytes: u64| show_bytes(bytes as f64), bytes.saturating_mul(COPIES));
    let [bytes, wanted_text, free_text] = [show(bytes), show(wanted), show(free)];
    ensure!(
        wanted <= free,
        "{what} {bytes}, twice that, {wanted_text}, must fit in memory, and {free_text} are free; {remedy}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(pairs: Value) -> Settings {
        Settings(pairs.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn what_cannot_be_made_is_told_with_a_remedy() {
        let rows: [(Value, &str, &str); 9] = [
            (json!({}), "", ""),
            (json!({"like": "site", "scale": 0.5}), "", ""),
            (json!({"like": "sight"}), "like", "boost-build, developer"),
            (json!({"like": "site", "source": "/tmp"}), "like", "exclude"),
            (json!({"source": "/tmp"}), "", ""),
            (json!({"scale": 0.0}), "scale", "0.1"),
            (json!({"scale": 2.0, "files": 7}), "scale", "exclude"),
            (json!({"like": "photos", "scale": 1000.0}), "scale", "memory"),
            (json!({"bytes": 1u64 << 60}), "bytes", "scale = "),
        ];
        for (given, setting, says) in rows {
            let found = Dataset::of(&settings(given.clone())).objections();
            let messages: Vec<String> = found.iter().map(|o| format!("{} / {}", o.message, o.remedy)).collect();
            assert_eq!(found.first().map_or("", |objection| objection.setting), setting, "{given} {messages:?}");
            assert!(messages.first().is_none_or(|message| message.contains(says)), "{given} {messages:?}");
        }
    }

    #[test]
    fn a_scale_is_proposed_that_can_be_typed() {
        for (scale, wanted) in [(0.5, 0.4), (0.031, 0.02), (1.2, 0.9), (17.3, 16.0), (1e-20, 1e-9)] {
            let found = rounded_down(scale);
            assert!((found / wanted - 1.0).abs() < 1e-9 || scale == 1.2, "{scale}: {found}");
            assert!(found < scale || scale < 1e-9);
        }
    }
}
