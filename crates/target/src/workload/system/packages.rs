//! A system installed by its package manager: some hundred packages put below a folder, every
//! installed file listed, and all of them removed. Managers write many small files and make them
//! durable as they go.
//!
//! Packages are the user's, or downloaded once a run; they lie in memory before anything is
//! measured, so that there is no network within a phase. Their scripts are not run: see
//! `manager.rs`.

use super::archive::ArchiveContents;
use super::manager::Manager;
use crate::stack::{Argv, Place, argv};
use crate::stage::{AfterPhase, Printed, Program, Stage};
use crate::workload::settings::{Path as PathKind, Texts, settings};
use crate::workload::staging::{Staging, fits};
use crate::workload::{Description, Workload, described, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use pickfs_system::process::run_program;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) struct Packages;

settings! {
    Selection {
        manager: Manager = "dpkg", "which package manager";
        archive: PathKind,
            "a folder with the packages' files, .deb or .pkg.tar.zst; else they are downloaded by apt-get once a run";
        names: Texts, "Debian packages to download with all that they depend on; by default xfce4: about 250";
    }
}

const USUAL: &str = "xfce4";

/// Lists of paths are the most compressible of all that is installed, and the rest's ratio says
/// little of them.
const LISTS_SHRINK_AT_MOST: u64 = 8;

/// Noted when the packages were staged.
#[derive(Debug, Serialize, Deserialize)]
struct Staged {
    files: Vec<String>,
    names: Vec<String>,
    held: ArchiveContents,
}

impl Workload for Packages {
    fn description(&self) -> &'static Description {
        described!("packages.toml", Selection::ROWS)
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let Selection { manager, archive, .. } = Selection::of(settings);
        let download = archive.is_none() && manager == Manager::Dpkg;
        let apt = download.then_some(Need::Program { name: "apt-get", package: "apt" });
        manager.needs().into_iter().chain(apt).collect()
    }

    fn versions(&self, settings: &Settings) -> Vec<(&'static str, Argv)> {
        let name = Selection::of(settings).manager.word();
        vec![(name, argv([name, "--version"]))]
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let Selection { manager, archive, names } = Selection::of(settings);
        let objection = |setting, message: String, remedy: &str| vec![Objection::new(setting, message, remedy)];
        match (archive, manager) {
            (Some(archive), _) if !archive.is_dir() => {
                let message = format!("{} is no folder", archive.display());
                objection("archive", message, "name a folder with packages, or leave it out to have them downloaded")
            }
            (Some(_), _) if names.is_some() => {
                let message = "`archive` and `names` exclude each other".to_string();
                objection("names", message, "leave one of the two out: all of an archive is installed")
            }
            (None, Manager::Pacman) => {
                let message = "only Debian's packages are downloaded".to_string();
                objection("manager", message, "name a folder with .pkg.tar.zst files as `archive`")
            }
            _ => Vec::new(),
        }
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let Selection { manager, archive, names } = Selection::of(settings);
        let staging = staging(settings, place);
        std::fs::create_dir_all(&staging.folder)?;
        match archive {
            Some(archive) => take(&archive, &staging.folder, manager)?,
            None => download(names.unwrap_or_default(), &staging.folder)?,
        }
        staging.note(&look(&staging.folder, manager)?)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let Staged { files, names, held } = staging(settings, stage.place()).noted()?;
        let (manager, root) = (Selection::of(settings).manager, stage.root().join("root"));
        stage.fact("packages", &format!("{} with {} files of {} bytes", names.len(), held.files, held.bytes));
        stage.phase("install", |p| {
            p.handled(held.bytes, held.files);
            p.own(|| manager.make_root(&root))?;
            p.run(&Program::new(manager.install(&root, &files)))
        })?;
        expect_installed(stage, manager, &root, names.len())?;
        let read = manager.bytes_of_lists(&root) / LISTS_SHRINK_AT_MOST;
        for _ in stage.repeats() {
            let list = Program::new(manager.list(&root, &names));
            let count = |p: &mut AfterPhase, listed: Printed| {
                p.handled(0, held.files);
                p.reads_at_least(read);
                let listed = listed.text(p)?;
                let listed = listed.lines().filter(|line| !line.is_empty()).count() as u64;
                ensure!(listed == held.entries, "{listed} of {} installed files were listed", held.entries);
                Ok(())
            };
            stage.phase_then("list", |p| p.output(&list), count)?;
        }
        stage.phase("remove", |p| {
            p.removed(held.bytes, held.files);
            p.run(&Program::new(manager.remove(&root, &names)))
        })?;
        expect_installed(stage, manager, &root, 0)
    }
}

fn expect_installed(stage: &mut Stage, manager: Manager, root: &Path, wanted: usize) -> Result<()> {
    stage.check("counting what is installed", || {
        let found = manager.installed(root)?;
        ensure!(found == wanted, "{} reports {found} installed packages, not {wanted}", manager.word());
        Ok(())
    })
}

fn staging(settings: &Settings, place: &Place) -> Staging {
    Staging::new("packages", settings, place)
}

/// The user's packages, copied.
fn take(archive: &Path, folder: &Path, manager: Manager) -> Result<()> {
    let all: Vec<_> = std::fs::read_dir(archive)?.collect::<Result<_, _>>()?;
    let packages = all.iter().filter(|entry| manager.is_package(&entry.file_name().to_string_lossy()));
    let packages: Vec<_> = packages.collect();
    ensure!(!packages.is_empty(), "{} has no package for {}", archive.display(), manager.word());
    let bytes = packages.iter().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum();
    fits(bytes, folder)?;
    for package in packages {
        std::fs::copy(package.path(), folder.join(package.file_name()))
            .with_context(|| format!("cannot copy {} into memory", package.path().display()))?;
    }
    Ok(())
}

/// All that is needed on a machine that has nothing, whatever is installed here; apt-get checks
/// what it gets.
fn download(names: Vec<String>, folder: &Path) -> Result<()> {
    let (archives, nothing) = (folder.join("apt"), folder.join("nothing-installed"));
    std::fs::create_dir_all(archives.join("partial"))?;
    std::fs::write(&nothing, "")?;
    let options = [
        format!("Dir::State::status={}", text(&nothing)),
        format!("Dir::Cache::archives={}", text(&archives)),
        "Debug::NoLocking=1".into(),
        "APT::Sandbox::User=root".into(),
        "APT::Install-Recommends=false".into(),
    ];
    let mut words = argv(["apt-get", "install", "--download-only", "-qq", "-y"]);
    words.extend(options.into_iter().flat_map(|option| ["-o".to_string(), option]));
    words.extend(if names.is_empty() { argv([USUAL]) } else { names });
    run_program(&words).context(
        "cannot download the packages; see to the network and `apt-get update`, or name a folder with packages as `archive`",
    )?;
    take(&archives, folder, Manager::Dpkg)?;
    std::fs::remove_dir_all(&archives)?;
    Ok(std::fs::remove_file(&nothing)?)
}

/// Makes every package harmless and looks into it.
fn look(folder: &Path, manager: Manager) -> Result<Staged> {
    let all: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    let mut files: Vec<PathBuf> = all.iter().map(|entry| entry.path()).collect();
    files.sort();
    let (mut held, mut names) = (ArchiveContents::default(), BTreeSet::new());
    for file in &files {
        let looked = manager.make_harmless(file).and_then(|()| manager.look_into(file));
        let (name, more) = looked.with_context(|| format!("cannot use the package {}", file.display()))?;
        ensure!(names.insert(name.clone()), "the package {name} is there twice; leave one of its versions out");
        held = held.and(more);
    }
    Ok(Staged { files: files.iter().map(|file| text(file)).collect(), names: names.into_iter().collect(), held })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_installed_is_told() {
        let objections = |pairs: serde_json::Value| {
            let settings = Settings(pairs.as_object().unwrap().clone().into_iter().collect());
            Packages.objections(&settings).iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        assert!(objections(json!({"manager": "dpkg"})).is_empty());
        assert!(objections(json!({"manager": "pacman", "archive": "/"})).is_empty());
        assert_eq!(objections(json!({"manager": "pacman"})), ["manager"]);
        assert_eq!(objections(json!({"archive": "/proc/version"})), ["archive"]);
        assert_eq!(objections(json!({"archive": "/", "names": ["hello"]})), ["names"]);
    }
}
