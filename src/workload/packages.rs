//! A system installed by its package manager: some hundred packages put below a folder, every installed file listed,
//! and all of them removed. Managers write many small files and make them durable as they go.
//!
//! Packages are the user's, or downloaded once a run; they lie in memory before anything is measured, so that there is
//! no network within a phase. Their scripts are not run: see `manager.rs`.

use super::archive::{self, Held, text};
use super::manager::Manager;
use super::{Setting, Stage, Workload};
use crate::need::Need;
use crate::plan::{Kind, Objection, Settings};
use crate::process::run_program;
use crate::stack::{Argv, Place, argv};
use crate::stage::Program;
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub struct Packages;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "manager",
        kind: Kind::Choice(&["dpkg", "pacman"]),
        default: Some("dpkg"),
        about: "which package manager",
    },
    Setting {
        name: "archive",
        kind: Kind::Path,
        default: None,
        about: "a folder with the packages' files, .deb or .pkg.tar.zst; else they are downloaded by apt-get once a run",
    },
    Setting {
        name: "names",
        kind: Kind::Texts,
        default: None,
        about: "Debian packages to download with all that they depend on; xfce4 unless said: about 250",
    },
];

const PHASES: &[Phase] = &[
    Phase {
        name: Cow::Borrowed("install"),
        about: "install all packages from memory, without their scripts, until durable",
        starts: Starts::Fresh,
        reads: Reads::Names,
        judged: Judged::Durable,
    },
    Phase {
        name: Cow::Borrowed("list"),
        about: "let the package manager list every installed file, cold",
        starts: Starts::Cold,
        reads: Reads::Told,
        judged: Judged::Returned,
    },
    Phase {
        name: Cow::Borrowed("remove"),
        about: "remove all packages, cold, until durable",
        starts: Starts::Cold,
        reads: Reads::Names,
        judged: Judged::Durable,
    },
];

const USUAL: &str = "xfce4";

/// Lists of paths are the most compressible of all that is installed, and the rest's ratio says little of them.
const LISTS_SHRINK_AT_MOST: u64 = 8;

/// Noted when the packages were staged.
#[derive(Debug, Serialize, Deserialize)]
struct Staged {
    files: Vec<String>,
    names: Vec<String>,
    held: Held,
}

impl Workload for Packages {
    fn name(&self) -> &'static str {
        "packages"
    }

    fn about(&self) -> &'static str {
        "some hundred packages: install, list every installed file, remove"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "archive"
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        PHASES.to_vec()
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let download = settings.path("archive").is_none() && manager(settings) == Manager::Dpkg;
        let apt = download.then_some(Need::Program { name: "apt-get", package: "apt" });
        manager(settings).needs().into_iter().chain(apt).collect()
    }

    fn versions(&self, settings: &Settings) -> Vec<(&'static str, Argv)> {
        let name = manager(settings).program();
        vec![(name, argv([name, "--version"]))]
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let objection = |setting, message: String, remedy: &str| vec![Objection::new(setting, message, remedy)];
        match (settings.path("archive"), manager(settings)) {
            (Some(archive), _) if !archive.is_dir() => {
                let message = format!("{} is no folder", archive.display());
                objection("archive", message, "name a folder with packages, or leave it out to have them downloaded")
            }
            (Some(_), _) if settings.0.contains_key("names") => {
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
        let folder = folder(settings, place);
        std::fs::create_dir_all(&folder)?;
        match settings.path("archive") {
            Some(archive) => take(&archive, &folder, manager(settings))?,
            None => download(settings, &folder)?,
        }
        let staged = look(&folder, manager(settings))?;
        Ok(std::fs::write(noted(settings, place), serde_json::to_string(&staged)?)?)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let note = std::fs::read_to_string(noted(settings, stage.place()));
        let note = note.context("the packages are not staged in memory; was the run prepared?")?;
        let Staged { files, names, held } = serde_json::from_str(&note)?;
        let (manager, root) = (manager(settings), stage.root().join("root"));
        stage.fact("packages", &format!("{} with {} files of {} bytes", names.len(), held.files, held.bytes));
        stage.phase("install", |p| {
            p.handled(held.bytes, held.files);
            p.own(|| manager.make_root(&root))?;
            p.run(&Program::new(manager.install(&root, &files)))
        })?;
        expect_installed(stage, manager, &root, names.len())?;
        let read = manager.bytes_of_lists(&root) / LISTS_SHRINK_AT_MOST;
        for _ in stage.repeats() {
            stage.phase("list", |p| {
                p.handled(0, held.files);
                p.reads_at_least(read);
                let listed = p.output(&Program::new(manager.list(&root, &names)))?;
                let listed = listed.lines().filter(|line| !line.is_empty()).count() as u64;
                ensure!(listed == held.entries, "{listed} of {} installed files were listed", held.entries);
                Ok(())
            })?;
        }
        stage.phase("remove", |p| {
            p.handled(held.bytes, held.files);
            p.run(&Program::new(manager.remove(&root, &names)))
        })?;
        expect_installed(stage, manager, &root, 0)
    }
}

fn expect_installed(stage: &mut Stage, manager: Manager, root: &Path, wanted: usize) -> Result<()> {
    stage.check("counting what is installed", || {
        let found = manager.installed(root)?;
        ensure!(found == wanted, "{} says that {found} packages are installed, not {wanted}", manager.program());
        Ok(())
    })
}

fn manager(settings: &Settings) -> Manager {
    Manager::named(settings.text("manager"))
}

/// The user's packages, copied.
fn take(archive: &Path, folder: &Path, manager: Manager) -> Result<()> {
    let all: Vec<_> = std::fs::read_dir(archive)?.collect::<Result<_, _>>()?;
    let packages = all.iter().filter(|entry| manager.is_package(&entry.file_name().to_string_lossy()));
    let packages: Vec<_> = packages.collect();
    ensure!(!packages.is_empty(), "{} has no package for {}", archive.display(), manager.program());
    let bytes = packages.iter().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum();
    archive::fits(bytes, folder)?;
    for package in packages {
        std::fs::copy(package.path(), folder.join(package.file_name()))
            .with_context(|| format!("cannot copy {} into memory", package.path().display()))?;
    }
    Ok(())
}

/// All that is needed on a machine that has nothing, whatever is installed here; apt-get checks what it gets.
fn download(settings: &Settings, folder: &Path) -> Result<()> {
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
    words.extend(names(settings));
    run_program(&words).context(
        "cannot download the packages; see to the network and `apt-get update`, or name a folder with packages as `archive`",
    )?;
    take(&archives, folder, Manager::Dpkg)?;
    std::fs::remove_dir_all(&archives)?;
    Ok(std::fs::remove_file(&nothing)?)
}

fn names(settings: &Settings) -> Vec<String> {
    let names = settings.texts("names");
    if names.is_empty() { argv([USUAL]) } else { names }
}

/// Makes every package harmless and looks into it.
fn look(folder: &Path, manager: Manager) -> Result<Staged> {
    let all: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    let mut files: Vec<PathBuf> = all.iter().map(|entry| entry.path()).collect();
    files.sort();
    let (mut held, mut names) = (Held::default(), BTreeSet::new());
    for file in &files {
        let looked = manager.make_harmless(file).and_then(|()| manager.look_into(file));
        let (name, more) = looked.with_context(|| format!("cannot use the package {}", file.display()))?;
        ensure!(names.insert(name.clone()), "the package {name} is there twice; leave one of its versions out");
        held = held.and(more);
    }
    Ok(Staged { files: files.iter().map(|file| text(file)).collect(), names: names.into_iter().collect(), held })
}

fn folder(settings: &Settings, place: &Place) -> PathBuf {
    archive::folder("packages", settings, place)
}

fn noted(settings: &Settings, place: &Place) -> PathBuf {
    folder(settings, place).with_extension("json")
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
