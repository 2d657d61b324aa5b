//! The state folder: what pickfs remembers of this user's runs. A user that can write there decides
//! what `clean` undoes, so each part of its path is checked, and only files of this user count.

use anyhow::{Context, Result};
use pickfs_system::sys::file::open_regular;
use pickfs_system::sys::own_folder::OwnFolder;
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// No file there is longer.
const LONGEST: u64 = 64 << 10;

/// The state folder, or a folder in it.
pub struct State {
    folder: OwnFolder,
    shown: PathBuf,
}

impl State {
    /// Made if it is not there.
    pub fn create(name: &str) -> Result<State> {
        let shown = place(name);
        let folder = OwnFolder::make(&shown).with_context(|| format!("cannot use {}; {REMEDY}", shown.display()))?;
        Ok(State { folder, shown })
    }

    /// `None` where it is not there.
    pub fn find(name: &str) -> Result<Option<State>> {
        let shown = place(name);
        match OwnFolder::open(&shown) {
            Ok(folder) => Ok(Some(State { folder, shown })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot use {}; {REMEDY}", shown.display())),
        }
    }

    /// For calls of this process that do not follow the last part.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of the same file for people.
    pub(crate) fn shown(&self, name: &str) -> PathBuf {
        self.shown.join(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// `None` where there is no regular file of this user.
    pub(crate) fn read(&self, name: &str) -> Option<(Vec<u8>, Metadata)> {
        let mut text = Vec::new();
        let file = self.opened(name)?;
        let found = file.metadata().ok()?;
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        Some((text, found))
    }

    pub fn opened(&self, name: &str) -> Option<File> {
        let file = open_regular(&self.file(name), true).ok()?;
        let own = rustix::process::geteuid().as_raw();
        file.metadata().is_ok_and(|found| found.uid() == own).then_some(file)
    }

    /// For writing; what it had stays until something is written.
    pub fn made_file(&self, name: &str) -> Result<File> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        options.open(self.file(name)).with_context(|| format!("cannot write {}", self.shown(name).display()))
    }

    pub(crate) fn remove(&self, name: &str) {
        // Gone already is as good.
        let _ = std::fs::remove_file(self.file(name));
    }
}

const REMEDY: &str = "set XDG_STATE_HOME to a folder of yours that others cannot write to";

fn place(name: &str) -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = rustix::process::geteuid().as_raw();
    let folder = folder(variable("XDG_STATE_HOME"), variable("HOME").filter(|home| home.is_dir()), user);
    if name.is_empty() { folder } else { folder.join(name) }
}

/// `$XDG_STATE_HOME/pickfs`, by default under `~/.local/state`. Users without a home, such as
/// `nobody`, have one in the temporary folder; root, which has no home in a service of systemd, has
/// it where other users cannot make it first.
fn folder(state: Option<PathBuf>, home: Option<PathBuf>, user: u32) -> PathBuf {
    let state = state.or_else(|| Some(home?.join(".local/state")));
    let without_home = || match user {
        0 => PathBuf::from("/var/lib"),
        user => std::env::temp_dir().join(format!("pickfs-state-{user}")),
    };
    state.unwrap_or_else(without_home).join("pickfs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn root_without_a_home_keeps_nothing_where_others_may_write() {
        let path = |text: &str| Some(PathBuf::from(text));
        let temporary = std::env::temp_dir().join("pickfs-state-1000/pickfs");
        for (state, home, user, expected) in [
            (path("/s"), path("/h"), 0, Path::new("/s/pickfs")),
            (None, path("/h"), 0, Path::new("/h/.local/state/pickfs")),
            (None, None, 0, Path::new("/var/lib/pickfs")),
            (None, None, 1000, &temporary),
        ] {
            assert_eq!(folder(state, home, user), expected);
        }
    }
}
