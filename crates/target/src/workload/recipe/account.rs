//! The user that a database server runs as, where pickfs is root: servers refuse to be that.

use crate::stage::{Program, Stage};
use anyhow::{Context, Result};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// Makes folders for a server that no other user may enter. Returns the user and group that it must
/// run as, where we are root and it has an account: that of this name, or the one that owns
/// nothing.
pub(super) fn lodge(
    stage: &mut Stage,
    program: &str,
    name: Option<&'static str>,
    folders: &[PathBuf],
) -> Result<Option<(u32, u32)>> {
    let name = name.filter(|_| rustix::process::geteuid().is_root());
    let found = name.map(|name| account(program, name)).transpose()?;
    let user = found.map(|(_, user, group)| (user, group));
    if let Some((name, user, group)) = found {
        let run = stage.place().name.clone();
        for path in [stage.root(), stage.memory()] {
            let (theirs, ours) = on_the_way(&path, &run);
            theirs.into_iter().try_for_each(|folder| must_pass(stage, folder, (program, name), (user, group)))?;
            ours.into_iter().try_for_each(|folder| let_through(folder, group))?;
        }
    }
    for folder in folders {
        std::fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
        if let Some((user, group)) = user {
            chown(folder, Some(user), Some(group))
                .with_context(|| format!("cannot give {} to another user", folder.display()))?;
        }
    }
    Ok(user)
}

/// The user that Debian's package makes, or the one that owns nothing.
fn account<'a>(program: &str, name: &'a str) -> Result<(&'a str, u32, u32)> {
    let all = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    let found = [name, "nobody"].into_iter().find_map(|name| ids(&all, name).map(|(user, group)| (name, user, group)));
    found.with_context(|| {
        format!("there is neither a user `{name}` nor a user `nobody` to run {program} as; `adduser --system {name}`")
    })
}

fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let mut rows = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let row = rows.find(|row| row.first() == Some(&name))?;
    Some((row.get(2)?.parse().ok()?, row.get(3)?.parse().ok()?))
}

/// The folders down to `path`, itself the last: the user's, and below them the folders that this
/// run has made, from the first that carries its name.
fn on_the_way<'a>(path: &'a Path, run: &str) -> (Vec<&'a Path>, Vec<&'a Path>) {
    let mut all: Vec<&Path> = path.ancestors().collect();
    all.reverse();
    let carries = |folder: &&Path| folder.file_name().is_some_and(|name| name == run);
    let first = all.iter().position(carries).unwrap_or(all.len());
    let ours = all.split_off(first);
    (all, ours)
}

/// Others' folders are not changed. The kernel decides, as access lists may let the user pass.
fn must_pass(stage: &mut Stage, folder: &Path, (program, name): (&str, &str), (user, group): (u32, u32)) -> Result<()> {
    let shown = folder.display().to_string();
    stage.run(&Program::new(["test", "-x", &shown]).in_folder("/").for_user(user, group)).map(drop).with_context(|| {
        format!(
            "{program} refuses to be root, and user {name} cannot pass {shown}: run as an ordinary user, or choose a \
             folder that {name} can reach"
        )
    })
}

/// The run's folders are closed to everybody else, and the server must pass through them to its
/// own: its group may, and still not list them.
fn let_through(folder: &Path, group: u32) -> Result<()> {
    let found = folder.metadata().with_context(|| format!("cannot look at {}", folder.display()))?;
    let open = found.mode() & 0o001 != 0 || found.gid() == group && found.mode() & 0o010 != 0;
    if !open {
        chown(folder, None, Some(group)).with_context(|| format!("cannot open {}", folder.display()))?;
        std::fs::set_permissions(folder, PermissionsExt::from_mode(found.mode() & 0o7707 | 0o010))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let passwd = "root:x:0:0:root:/:/bin/sh\npostgresql:x:1:2\npostgres:x:101:104:,,,:/var:/bin/sh\n";
        assert_eq!([ids(passwd, "postgres"), ids(passwd, "nobody")], [Some((101, 104)), None]);
    }

    #[test]
    fn only_what_the_run_made_is_opened() {
        let split = |path: &str| {
            let (theirs, ours) = on_the_way(Path::new(path), "pickfs-r");
            [theirs, ours].map(|folders| folders.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(" "))
        };
        let mounted = split("/run/pickfs-r/target/work");
        assert_eq!(mounted, ["/ /run", "/run/pickfs-r /run/pickfs-r/target /run/pickfs-r/target/work"]);
        // The mount point of a folder that was there already is the user's own.
        assert_eq!(split("/srv/data/pickfs-r"), ["/ /srv /srv/data", "/srv/data/pickfs-r"]);
        assert_eq!(split("/srv/pickfs-other"), ["/ /srv /srv/pickfs-other", ""]);
    }

    #[test]
    fn a_closed_folder_lets_one_group_through_and_an_open_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (closed, open) = (folder.path().join("closed"), folder.path().join("open"));
        for (path, mode) in [(&closed, 0o700), (&open, 0o755)] {
            std::fs::create_dir(path).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
            // Our own group: only root can give another.
            let_through(path, rustix::process::getegid().as_raw()).unwrap();
        }
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!([mode(&closed), mode(&open)], [0o710, 0o755]);
    }
}
