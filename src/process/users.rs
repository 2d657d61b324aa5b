//! Who keeps a file system in use.

use procfs::process::{FDTarget, Process, all_processes};
use std::path::Path;

/// Processes that work in a folder or run, map or hold open a file at or below it, as "git (123)". What may not be looked at is left out.
pub fn users_of(folder: &Path) -> Vec<String> {
    let Ok(processes) = all_processes() else { return Vec::new() };
    let users = processes.flatten().filter(|process| uses(process, folder));
    let shown = |process: Process| format!("{} ({})", process.stat().map_or("?".into(), |stat| stat.comm), process.pid);
    users.map(shown).collect()
}

fn uses(process: &Process, folder: &Path) -> bool {
    let is_in = |path: &Path| path.starts_with(folder);
    let own = [process.cwd(), process.root(), process.exe()];
    let files = process.fd().into_iter().flatten().flatten();
    own.into_iter().flatten().any(|path| is_in(&path))
        || files.into_iter().any(|file| matches!(&file.target, FDTarget::Path(path) if is_in(path)))
        || process.maps().is_ok_and(|maps| {
            maps.into_iter().any(|map| matches!(&map.pathname, procfs::process::MMapPath::Path(path) if is_in(path)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{argv, command};

    #[test]
    fn users_are_named_for_as_long_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        assert!(users_of(folder.path()).is_empty());
        let mut sleep = command(&argv(["sleep", "60"]), &[]).unwrap().current_dir(folder.path()).spawn().unwrap();
        assert_eq!(users_of(folder.path()), [format!("sleep ({})", sleep.id())]);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        let file = std::fs::File::create(folder.path().join("open")).unwrap();
        assert_eq!(users_of(folder.path()).len(), 1);
        drop(file);
        assert!(users_of(folder.path()).is_empty());
    }
}
