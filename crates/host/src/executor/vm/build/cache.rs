//! Guests that are made already, under the user's cache folder, and folders of the user's own that
//! look like them.

use super::recipe::{RELEASES, Recipe};
use super::{COMPILED, PARTIAL, guest, kernel, root};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::VERSION;
use pickfs_system::process::{NO_LISTING, check_stop, kill_marked};
use pickfs_system::sys::process::trusts;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TURN_TICK: Duration = Duration::from_millis(100);

/// A guest that is there: a kernel, a root, and the modules that come first.
#[derive(Clone, Debug, Default)]
pub struct Guest {
    pub name: String,
    pub folder: PathBuf,
    /// A module of ours for its kernel, which is loaded after all that come first.
    pub driver: Option<PathBuf>,
}

impl Guest {
    /// A folder of the user's own: a kernel `vmlinuz` and a root `root.TYPE` at least.
    pub(crate) fn own(folder: &Path) -> Result<Guest> {
        let guest = Guest { name: folder.display().to_string(), folder: folder.into(), driver: None };
        std::fs::metadata(guest.kernel()).with_context(|| format!("there is no {}", guest.kernel().display()))?;
        guest.root()?;
        Ok(guest)
    }

    pub(crate) fn kernel(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    /// The image of the root, and the type of its file system, which is the ending of its name.
    pub(crate) fn root(&self) -> Result<(PathBuf, String)> {
        let entries =
            std::fs::read_dir(&self.folder).with_context(|| format!("cannot list {}", self.folder.display()))?;
        let kind = |path: &Path| Some(path.file_name()?.to_str()?.strip_prefix("root.")?.to_string());
        let mut roots = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let found = roots.find_map(|path| kind(&path).filter(|_| path.is_file()).map(|kind| (path, kind)));
        found.with_context(|| format!("there is no root image, such as root.squashfs, in {}", self.folder.display()))
    }

    /// In the order in which they are to be loaded.
    pub(crate) fn modules(&self) -> Result<Vec<PathBuf>> {
        let order = self.folder.join("modules.order");
        let listed = if order.exists() { std::fs::read_to_string(&order) } else { Ok(String::new()) };
        let listed = listed.with_context(|| format!("cannot read {}", order.display()))?;
        let files = listed.lines().map(|name| self.folder.join("modules").join(name));
        Ok(files.chain(self.driver.clone()).collect())
    }

    /// Packages with their versions, one per line; empty where there is no list.
    pub fn manifest(&self) -> String {
        std::fs::read_to_string(self.folder.join("manifest")).unwrap_or_default()
    }

    /// Packages of other suites than its release, as in "bcachefs-tools 1:1.13.0-1~exp1 from
    /// experimental".
    pub(crate) fn borrowed(&self) -> Vec<String> {
        let recipe = std::fs::read_to_string(self.folder.join("recipe")).unwrap_or_default();
        let manifest = self.manifest();
        let one = |line: &str| {
            let (name, suite) = line.strip_prefix("borrowed ")?.split_once(" from ")?;
            Some(format!("{name} {} from {suite}", root::version_of(&manifest, name).unwrap_or("unknown")))
        };
        recipe.lines().filter_map(one).collect()
    }

    /// Gives versions, among the facts of a cell, that no program in the guest could be asked for:
    /// packages are only unpacked there, so that dpkg knows none.
    pub(crate) fn add_versions(&self, facts: &mut BTreeMap<String, String>) {
        let asked_in_vain =
            |(name, said): &(&String, &mut String)| name.starts_with(VERSION) && said.starts_with(NO_LISTING);
        let manifest = self.manifest();
        for (name, said) in facts.iter_mut().filter(asked_in_vain) {
            if let Some(version) = root::version_of(&manifest, &name[VERSION.len()..]) {
                *said = version.to_string();
            }
        }
    }

    /// The release of Debian; `None` for a folder of the user's own.
    pub fn release(&self) -> Option<&'static str> {
        let named = |name: &&str| self.name.strip_prefix(*name).is_some_and(|rest| rest.starts_with('-'));
        RELEASES.iter().copied().find(named)
    }

    /// The kernel that QEMU gets: the unpacked one where there is one.
    pub(crate) fn bootable(&self) -> PathBuf {
        let unpacked = self.folder.join(kernel::UNPACKED);
        if unpacked.is_file() { unpacked } else { self.kernel() }
    }

    /// As `uname -r` would say it.
    pub fn kernel_release(&self) -> Option<String> {
        kernel::release(&self.kernel())
    }

    /// All of these packages are in it; where no list was written, they may be.
    pub(crate) fn has(&self, packages: &[String]) -> bool {
        let manifest = self.manifest();
        manifest.is_empty() || packages.iter().all(|name| root::version_of(&manifest, name).is_some())
    }

    /// What it takes on the disk.
    pub fn bytes(&self) -> u64 {
        let files = walkdir::WalkDir::new(&self.folder).into_iter().flatten();
        files.filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512)).sum()
    }

    /// Packages of the recipe that its release does not have.
    pub fn lacks(&self, recipe: &Recipe) -> Vec<String> {
        let manifest = self.manifest();
        recipe.packages.iter().filter(|name| root::version_of(&manifest, name).is_none()).cloned().collect()
    }
}

/// `$XDG_CACHE_HOME/pickfs/guests`.
pub fn folder() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or_else(home);
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set; set one of them")?.join("pickfs/guests"))
}

/// Sorted by name; none where nothing was made yet.
pub fn all() -> Result<Vec<Guest>> {
    let Ok(entries) = std::fs::read_dir(folder()?) else { return Ok(Vec::new()) };
    let made = |path: &PathBuf| path.join("manifest").is_file() && path.extension().is_none();
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(made);
    let name = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut guests: Vec<Guest> = folders.map(|folder| Guest { name: name(&folder), folder, driver: None }).collect();
    guests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(guests)
}

pub fn find_or_build(recipe: &Recipe, say: &mut dyn FnMut(&str)) -> Result<Guest> {
    let guest = Guest { name: recipe.name(), folder: folder()?.join(recipe.name()), driver: None };
    let made = || guest.folder.join("manifest").is_file();
    if made() {
        return own(guest);
    }
    let turn = turn(say)?;
    if !made() {
        remove_unfinished()?;
        guest::build(recipe, &guest.folder, say).with_context(|| format!("cannot make the guest {}", guest.name))?;
        let lacks = guest.lacks(recipe);
        if !lacks.is_empty() {
            say(&format!("Debian {} has no {}", recipe.release, lacks.join(", ")));
        }
    }
    drop(turn);
    own(guest)
}

/// A kernel and programs that another user has put there would run with our disks.
fn own(guest: Guest) -> Result<Guest> {
    for path in [guest.folder.as_path(), guest.folder.parent().unwrap_or(&guest.folder)] {
        let owner = path.metadata()?.uid();
        let shown = path.display();
        ensure!(trusts(owner), "{shown} belongs to user {owner}; point XDG_CACHE_HOME to your own folder");
    }
    Ok(guest)
}

/// Waits for the lock: no other process makes or removes guests here until it is dropped.
pub(super) fn turn(say: &mut dyn FnMut(&str)) -> Result<File> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}; point XDG_CACHE_HOME to your own folder", folder.display()))?;
    let lock = File::create(folder.join("lock")).with_context(|| format!("cannot write to {}", folder.display()))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        say("waiting for another pickfs that makes a guest");
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            check_stop()?;
            std::thread::sleep(TURN_TICK);
        }
    }
    Ok(lock)
}

/// Removes what killed builds left, and ends their programs that still write there. Only with the
/// lock: then no build is under way.
fn remove_unfinished() -> Result<()> {
    for entry in std::fs::read_dir(folder()?)?.flatten() {
        if entry.path().extension().is_some_and(|ending| ending == PARTIAL) {
            kill_marked(&root::mark(&entry.path())).context("cannot end what an earlier build has left")?;
            std::fs::remove_dir_all(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// With the last guest goes what was compiled for any of them.
pub fn remove(guests: &[Guest]) -> Result<()> {
    let turn = turn(&mut |_| {})?;
    remove_unfinished()?;
    for guest in guests {
        std::fs::remove_dir_all(&guest.folder).with_context(|| format!("cannot remove {}", guest.folder.display()))?;
    }
    let compiled = folder()?.join(COMPILED);
    if compiled.exists() && all()?.is_empty() {
        std::fs::remove_dir_all(&compiled).with_context(|| format!("cannot remove {}", compiled.display()))?;
    }
    drop(turn);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        files.iter().for_each(|(name, content)| std::fs::write(folder.path().join(name), content).expect("written"));
        folder
    }

    /// Files with their content, and what is found of them.
    type Row = (&'static [(&'static str, &'static [u8])], Option<(&'static str, usize)>);

    #[test]
    fn a_folder_of_ones_own_needs_a_kernel_and_a_root() {
        let said = |files: &[(&str, &[u8])]| {
            let folder = folder_with(files);
            Guest::own(folder.path()).and_then(|guest| Ok((guest.root()?.1, guest.modules()?.len())))
        };
        let rows: [Row; 4] = [
            (&[("vmlinuz", b"")], None),
            (&[("root.erofs", b"")], None),
            (&[("vmlinuz", b""), ("root.erofs", b"")], Some(("erofs", 0))),
            (&[("vmlinuz", b""), ("root.ext4", b""), ("modules.order", b"a.ko\nb.ko\n")], Some(("ext4", 2))),
        ];
        for (files, wanted) in rows {
            assert_eq!(said(files).ok(), wanted.map(|(kind, modules)| (kind.to_string(), modules)), "{files:?}");
        }
    }

    #[test]
    fn what_a_release_does_not_have_is_told() {
        let folder = folder_with(&[("manifest", b"base-files 12\nxfsprogs 6.1\n")]);
        let guest = Guest { name: "bookworm-1".into(), folder: folder.path().into(), ..Guest::default() };
        let packages = ["base-files", "xfs", "xfsprogs"].map(String::from);
        let recipe = Recipe { release: "bookworm", packages: packages.into(), compiled: Vec::new() };
        assert_eq!((guest.lacks(&recipe), guest.release()), (vec!["xfs".to_string()], Some("bookworm")));
        let has = |names: &[&str]| guest.has(&names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        assert!(has(&[]) && has(&["xfsprogs", "base-files"]) && !has(&["xfsprogs", "xfs"]));
        std::fs::write(folder.path().join("manifest"), "").expect("written");
        assert!(has(&["xfs"]), "of one's own guest nobody knows");
    }

    #[test]
    fn the_manifest_has_versions_that_no_program_could_be_asked_for() {
        let folder = folder_with(&[("manifest", b"zfs-fuse 0.7.0-25+b1\nzfs-fuse-more 2\n")]);
        let guest = Guest { name: "bookworm-1".into(), folder: folder.path().into(), ..Guest::default() };
        let rows = [
            ("version zfs-fuse", "unknown: no program `dpkg-query`", "0.7.0-25+b1"),
            ("version zfs-fuse-more", "3", "3"),
            ("version zfs", "unknown: no program `zfs`", "unknown: no program `zfs`"),
            ("zfs-fuse", "unknown: no", "unknown: no"),
        ];
        let mut facts = rows.iter().map(|(name, said, _)| (name.to_string(), said.to_string())).collect();
        guest.add_versions(&mut facts);
        for (name, _, wanted) in rows {
            assert_eq!(facts[name], wanted, "{name}");
        }
    }

    #[test]
    fn what_comes_from_another_suite_is_told_with_its_version() {
        let packages = ["bcachefs-tools", "xfsprogs"].map(String::from);
        let recipe = Recipe { release: "trixie", packages: packages.into(), compiled: Vec::new() }.text();
        for (manifest, sources) in [
            ("bcachefs-tools 1:1.13.0-1~exp1\nxfsprogs 6.13\n", "bcachefs-tools 1:1.13.0-1~exp1 from experimental"),
            ("bcachefs-tools-more 2\n", "bcachefs-tools unknown from experimental"),
        ] {
            let folder = folder_with(&[("manifest", manifest.as_bytes()), ("recipe", recipe.as_bytes())]);
            let guest = Guest { name: "trixie-1".into(), folder: folder.path().into(), ..Guest::default() };
            assert_eq!(guest.borrowed(), [sources]);
        }
    }
}
