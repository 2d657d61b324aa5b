//! The tree that a workload is done with: the user's own or one like a profile, staged in memory.
//!
//! No workload itself; it has the settings that all of them share which work on a tree.

use super::{Setting, Stage};
use crate::data::{
    self, Digest, Shape, TreeLayout,
    profile::{Profile, builtin},
};
use crate::plan::{Kind, Objection, Settings};
use crate::process::run_program;
use crate::stack::{Place, argv};
use crate::stage::Program;
use crate::units::show_bytes;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "source",
        kind: Kind::Path,
        default: None,
        about: "directory to copy; a generated tree unless said",
    },
    Setting {
        name: "like",
        kind: Kind::NameOrPath,
        default: None,
        about: "what a generated tree is like: a name from `pickfs list profiles`, or a file that `pickfs scan` wrote",
    },
    Setting {
        name: "scale",
        kind: Kind::Number,
        default: None,
        about: "how many times as many files, directories and bytes as in the profile",
    },
    Setting {
        name: "files",
        kind: Kind::Count,
        default: None,
        about: "files in the generated tree, instead of a scale",
    },
    Setting { name: "bytes", kind: Kind::Size, default: None, about: "bytes in the generated tree" },
];

/// What is larger does not come from wanting a large tree.
const LARGEST_SCALE: f64 = 1e6;
/// All trees of a run are made from this one, so that runs can be compared.
const SEED: u64 = 1;
/// A tree is staged, and read back into memory beside that.
const COPIES: u64 = 2;
/// What a file takes in memory besides its bytes, on average.
const A_FILE: u64 = 3 << 10;

/// The tree that a run has in memory.
pub struct Staged {
    pub folder: PathBuf,
    pub digest: Digest,
    /// Of all files, without those of second names.
    pub bytes: u64,
}

/// Puts the tree into memory, for [`staged`].
pub fn prepare(settings: &Settings, place: &Place) -> Result<()> {
    let folder = folder(settings, place);
    stage(settings, &folder)?;
    let digest = data::digest(&folder)?;
    ensure!(digest.entries > 0, "the source is empty; there is nothing to measure with");
    let note = serde_json::to_string(&(digest, data::apparent_bytes(&folder)))?;
    Ok(std::fs::write(folder.with_extension("json"), note)?)
}

/// The tree that [`prepare`] has staged with the same settings.
pub fn staged(settings: &Settings, place: &Place) -> Result<Staged> {
    let folder = folder(settings, place);
    let noted = std::fs::read_to_string(folder.with_extension("json"));
    let noted = noted.context("the source is not staged in memory; was the run prepared?")?;
    let (digest, bytes) = serde_json::from_str(&noted)?;
    Ok(Staged { folder, digest, bytes })
}

/// Where the tree lies in memory: one place per set of settings.
pub fn folder(settings: &Settings, place: &Place) -> PathBuf {
    let spelled = serde_json::to_string(settings).unwrap_or_default();
    place.memory.join(format!("source-{:016x}", xxhash_rust::xxh3::xxh3_64(spelled.as_bytes())))
}

impl Staged {
    /// Names, sizes and bytes of a copy.
    pub fn verify(&self, copy: &Path) -> Result<()> {
        if data::digest(copy)? == self.digest {
            return Ok(());
        }
        bail!("the content differs from the source: {}", data::differences(&self.folder, copy, 5).join(", "))
    }
}

/// Copies the tree to the file system under test, untimed, and sees that it is the same there.
pub fn lay_out(stage: &mut Stage, source: &Staged, tree: &Path) -> Result<()> {
    let text = |path: &Path| path.display().to_string();
    stage.lay_out("copying the tree to the file system", |stage| {
        stage.run(&Program::new(["cp", "-a", &text(&source.folder), &text(tree)])).map(drop)
    })?;
    stage.check("verifying what was written", || source.verify(tree))
}

/// The settings with a static site as the usual tree.
pub fn of_a_site(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if settings.path("source").is_none() {
        settings.0.entry("like".into()).or_insert_with(|| "site".into());
    }
    settings
}

/// What cannot be, or is too large for this machine's memory.
pub fn objections(settings: &Settings) -> Vec<Objection> {
    let generated = SETTINGS[1..].iter().find(|setting| settings.0.contains_key(setting.name));
    if let (Some(setting), true) = (generated, settings.path("source").is_some()) {
        let message = format!("`source` and `{}` exclude each other", setting.name);
        return vec![Objection::new(setting.name, message, "leave one of the two out: a source is taken as it is")];
    }
    if settings.path("source").is_some() {
        return Vec::new();
    }
    let wrong = bad_profile(settings).or_else(|| bad_scale(settings)).or_else(|| too_large(settings));
    wrong.into_iter().collect()
}

fn bad_profile(settings: &Settings) -> Option<Objection> {
    let error = profile(settings).err()?;
    let remedy = format!("use one of {}, or a file that `pickfs scan DIR --output FILE` wrote", builtin::names());
    Some(Objection::new("like", format!("{error:#}"), &remedy))
}

fn bad_scale(settings: &Settings) -> Option<Objection> {
    let scale = settings.decimal("scale")?;
    if settings.number("files").is_some() {
        let message = "`scale` and `files` exclude each other".to_string();
        return Some(Objection::new("scale", message, "leave one of the two out"));
    }
    let message = format!("a tree cannot be {scale} times as large");
    let good = scale > 0.0 && scale <= LARGEST_SCALE;
    (!good).then(|| Objection::new("scale", message, "give a number such as 0.1 or 3"))
}

fn too_large(settings: &Settings) -> Option<Objection> {
    let shape = shape(settings).ok()?;
    let wanted = shape.bytes.saturating_add(shape.files.saturating_mul(A_FILE)).saturating_mul(COPIES);
    let free = free(Path::new("/dev/shm")).ok()?;
    let message = format!(
        "a tree of {} files with {} takes about {} of memory, staged and read back, and {} are free",
        shape.files,
        show_bytes(shape.bytes as f64),
        show_bytes(wanted as f64),
        show_bytes(free as f64)
    );
    let setting = ["scale", "files", "bytes"].into_iter().find(|name| settings.0.contains_key(*name));
    let scale = free as f64 / wanted as f64 * settings.decimal("scale").unwrap_or(1.0);
    let remedy = format!("take a smaller tree, such as `scale = {}`", rounded_down(scale));
    (wanted > free).then(|| Objection::new(setting.unwrap_or("like"), message, &remedy))
}

/// One digit that counts.
fn rounded_down(scale: f64) -> f64 {
    let unit = (1..9).map(|power| 0.1f64.powi(power)).find(|unit| *unit <= scale * 0.9).unwrap_or(1e-9);
    let digits = (scale * 0.9 / unit).floor();
    if scale >= 2.0 { scale.floor() - 1.0 } else { format!("{:.9}", (digits * unit).max(1e-9)).parse().unwrap_or(unit) }
}

fn free(folder: &Path) -> rustix::io::Result<u64> {
    rustix::fs::statvfs(folder).map(|found| found.f_bavail * found.f_frsize)
}

fn profile(settings: &Settings) -> Result<Profile> {
    builtin::profile(settings.text("like").unwrap_or(builtin::USUAL))
}

fn shape(settings: &Settings) -> Result<Shape> {
    let profile = profile(settings)?;
    let usual = Shape::scaled(&profile, settings.decimal("scale").unwrap_or(1.0));
    let number = |name| settings.number(name);
    Ok(Shape { files: number("files").unwrap_or(usual.files), bytes: number("bytes").unwrap_or(usual.bytes) })
}

/// The sum of the sizes of all files, each once.
pub fn bytes(settings: &Settings) -> Option<u64> {
    match settings.path("source") {
        Some(source) => Some(data::apparent_bytes(&source)),
        None => shape(settings).ok().map(|shape| shape.bytes),
    }
}

/// Makes the tree, or refuses before anything is made where it does not fit.
fn stage(settings: &Settings, staged: &Path) -> Result<()> {
    match settings.path("source") {
        Some(source) => copy_into_memory(&source, staged),
        None => {
            let outline = TreeLayout::new(&profile(settings)?, &shape(settings)?, SEED)?;
            fits(outline.memory(), staged, "the generated tree takes", "take a smaller one with `scale`")?;
            data::write(staged, &outline)
        }
    }
}

/// With `cp -a`, as workloads do, so that what cannot be copied is found before anything is measured.
fn copy_into_memory(source: &Path, staged: &Path) -> Result<()> {
    let what = format!("{} has", source.display());
    fits(data::apparent_bytes(source), staged, &what, "take a smaller source")?;
    let [source, staged] = [source, staged].map(|path| path.display().to_string());
    run_program(&argv(["cp", "-a", &source, &staged])).map(drop)
}

fn fits(bytes: u64, staged: &Path, what: &str, remedy: &str) -> Result<()> {
    let free = free(staged.parent().unwrap_or(staged))?;
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
            let found = objections(&settings(given.clone()));
            let told: Vec<String> = found.iter().map(|o| format!("{} / {}", o.message, o.remedy)).collect();
            assert_eq!(found.first().map_or("", |objection| objection.setting), setting, "{given} {told:?}");
            assert!(told.first().is_none_or(|told| told.contains(says)), "{given} {told:?}");
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
