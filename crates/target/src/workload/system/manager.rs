//! Package managers: how each installs, lists and removes packages below a folder, without the
//! scripts in them.
//!
//! No workload itself; it has what `packages` knows of dpkg and of pacman.
//!
//! Scripts of maintainers are left out: they change the machine that they run on, they need a
//! system that they can run in, and what they do is no work of the file system's that two runs
//! would share. For dpkg they are taken out of the packages, whose data stays the same to the byte;
//! pacman can leave them out itself.

use super::archive::ArchiveContents;
use crate::stack::{Argv, argv};
use crate::workload::settings::choice;
use crate::workload::{programs, text};
use anyhow::{Context, Result, bail, ensure};
use pickfs_system::need::Need;
use pickfs_system::process::run_program;
use std::path::Path;

choice! { pub(crate) Manager { Dpkg = "dpkg", Pacman = "pacman" } }

/// All of a package that dpkg would run, ask or wait for.
const SCRIPTS: [&str; 6] = ["config", "postinst", "postrm", "preinst", "prerm", "triggers"];

/// As safe as dpkg is by itself, whatever this machine's configuration: container images often do
/// without fsync and without manuals. Packages are configured in any order, and no two can be in
/// each other's way.
const DPKG: [&str; 12] = [
    "--no-force-unsafe-io", "--path-include=*", "--force-bad-path", "--force-breaks", "--force-confnew",
    "--force-conflicts", "--force-depends", "--force-overwrite", "--force-remove-essential",
    "--force-remove-protected", "--no-triggers", "--no-debsig",
];

/// No signatures: a folder of files has none that this machine knows.
const PACMAN: &str = "[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\n";

impl Manager {
    pub(crate) fn needs(self) -> Vec<Need> {
        let mut needs = programs(match self {
            Manager::Dpkg => &[("dpkg", "dpkg"), ("dpkg-deb", "dpkg"), ("dpkg-query", "dpkg"), ("tar", "tar")],
            Manager::Pacman => &[("pacman", "pacman-package-manager"), ("tar", "tar"), ("zstd", "zstd")],
        });
        needs.push(Need::Root);
        needs
    }

    pub(crate) fn is_package(self, name: &str) -> bool {
        match self {
            Manager::Dpkg => name.ends_with(".deb"),
            Manager::Pacman => name.contains(".pkg.tar") && !name.ends_with(".sig"),
        }
    }

    /// What must be there below the folder before anything can be installed in it.
    pub(crate) fn make_root(self, root: &Path) -> Result<()> {
        std::fs::create_dir_all(root.join("var/log"))?;
        match self {
            Manager::Dpkg => {
                let state = root.join("var/lib/dpkg");
                for folder in ["info", "updates", "triggers"] {
                    std::fs::create_dir_all(state.join(folder))?;
                }
                ["status", "available"].iter().try_for_each(|name| std::fs::write(state.join(name), ""))?;
            }
            Manager::Pacman => {
                std::fs::create_dir_all(root.join("var/lib/pacman"))?;
                std::fs::create_dir_all(root.join("etc"))?;
                std::fs::write(root.join("etc/pickfs-pacman.conf"), PACMAN)?;
            }
        }
        Ok(())
    }

    pub(crate) fn install(self, root: &Path, packages: &[String]) -> Argv {
        let what: &[&str] = match self {
            Manager::Dpkg => &["--install"],
            Manager::Pacman => &["-U", "-dd", "--noscriptlet", "--overwrite", "*"],
        };
        self.words(root, what, packages)
    }

    pub(crate) fn list(self, root: &Path, names: &[String]) -> Argv {
        match self {
            Manager::Dpkg => {
                let state = format!("--admindir={}", text(&root.join("var/lib/dpkg")));
                [argv(["dpkg-query", &state, "-L"]), names.to_vec()].concat()
            }
            Manager::Pacman => self.words(root, &["-Ql"], names),
        }
    }

    pub(crate) fn remove(self, root: &Path, names: &[String]) -> Argv {
        let what: &[&str] = match self {
            Manager::Dpkg => &["--purge"],
            Manager::Pacman => &["-Rdd", "-n", "--noscriptlet"],
        };
        self.words(root, what, names)
    }

    /// Packages that are wholly there, by the manager's own records.
    pub(crate) fn installed(self, root: &Path) -> Result<usize> {
        match self {
            Manager::Dpkg => {
                let status = std::fs::read_to_string(root.join("var/lib/dpkg/status"))?;
                let whole = |line: &&str| line.starts_with("Status: ") && line.ends_with(" ok installed");
                Ok(status.lines().filter(whole).count())
            }
            Manager::Pacman => {
                let all: Vec<_> = std::fs::read_dir(root.join("var/lib/pacman/local"))?.collect::<Result<_, _>>()?;
                Ok(all.iter().filter(|entry| entry.path().is_dir()).count())
            }
        }
    }

    /// Bytes in which the manager keeps the names of all installed files.
    pub(crate) fn bytes_of_lists(self, root: &Path) -> u64 {
        let (state, is_list): (_, fn(&str) -> bool) = match self {
            Manager::Dpkg => ("var/lib/dpkg/info", |name| name.ends_with(".list")),
            Manager::Pacman => ("var/lib/pacman/local", |name| name == "files"),
        };
        let all = walkdir::WalkDir::new(root.join(state)).into_iter().flatten();
        let lists = all.filter(|entry| is_list(&entry.file_name().to_string_lossy()));
        lists.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Its name and what it installs, from the package's file.
    pub(crate) fn look_into(self, package: &Path) -> Result<(String, ArchiveContents)> {
        let file = text(package);
        let (name, listing) = match self {
            Manager::Dpkg => (
                run_program(&argv(["dpkg-deb", "-f", &file, "Package"]))?,
                run_program(&argv(["dpkg-deb", "--contents", &file]))?,
            ),
            Manager::Pacman => {
                let about = run_program(&argv(["tar", "-xOf", &file, ".PKGINFO"]))?;
                let name = about.lines().find_map(|line| line.strip_prefix("pkgname = "));
                let listing = run_program(&argv(["tar", "--numeric-owner", "-tvf", &file]))?;
                (name.context("its .PKGINFO has no name")?.to_string(), without_notes(&listing))
            }
        };
        Ok((name.trim().to_string(), ArchiveContents::of_listing(&listing)))
    }

    /// Takes out of a package in memory what must not be run.
    pub(crate) fn make_harmless(self, package: &Path) -> Result<()> {
        match self {
            Manager::Dpkg => without_scripts(package),
            Manager::Pacman => Ok(()),
        }
    }

    fn words(self, root: &Path, what: &[&str], more: &[String]) -> Argv {
        let at = |path: &str| text(&root.join(path));
        let mut words = match self {
            Manager::Dpkg => {
                let root = format!("--root={}", text(root));
                let log = format!("--log={}", at("var/log/dpkg.log"));
                [argv(["dpkg", &root, &log]), argv(DPKG)].concat()
            }
            Manager::Pacman => {
                let places = [
                    ("--root", text(root)),
                    ("--dbpath", at("var/lib/pacman")),
                    ("--config", at("etc/pickfs-pacman.conf")),
                    ("--cachedir", at("var/cache/pacman")),
                    ("--hookdir", at("etc/pacman.d/hooks")),
                    ("--gpgdir", at("etc/pacman.d/gnupg")),
                    ("--logfile", at("var/log/pacman.log")),
                ];
                let places = places.iter().flat_map(|(name, path)| [name.to_string(), path.clone()]);
                argv(["pacman"]).into_iter().chain(places).chain(["--noconfirm".to_string()]).collect()
            }
        };
        words.extend(argv(what));
        words.extend(more.iter().cloned());
        words
    }
}

/// The listing without the package's notes about itself, which begin with a dot.
fn without_notes(listing: &str) -> String {
    let name = |line: &str| line.split_whitespace().nth(5).unwrap_or("").to_string();
    let kept = listing.lines().filter(|line| !name(line).starts_with('.'));
    kept.map(|line| format!("{line}\n")).collect()
}

/// Writes a Debian package anew with all but its scripts; its data is copied unchanged.
fn without_scripts(package: &Path) -> Result<()> {
    let (control, packed) = (package.with_extension("control"), package.with_extension("control.tar"));
    run_program(&argv(["dpkg-deb", "--control", &text(package), &text(&control)]))?;
    for name in SCRIPTS.iter().map(|name| control.join(name)).filter(|path| path.exists()) {
        std::fs::remove_file(name)?;
    }
    let owners = ["--owner=0", "--group=0", "--numeric-owner"];
    let paths = ["-cf".into(), text(&packed), "-C".into(), text(&control), ".".into()];
    run_program(&argv(["tar"].into_iter().chain(owners).map(String::from).chain(paths)))?;
    let made = replace_control(&std::fs::read(package)?, &std::fs::read(&packed)?)?;
    std::fs::write(package, made)?;
    std::fs::remove_file(&packed)?;
    Ok(std::fs::remove_dir_all(&control)?)
}

/// deb(5): an archive of `ar` with three members, of which the second is the control archive.
fn replace_control(package: &[u8], control: &[u8]) -> Result<Vec<u8>> {
    const MAGIC: &[u8] = b"!<arch>\n";
    let mut rest = package.strip_prefix(MAGIC).context("it is no Debian package")?;
    let mut made = MAGIC.to_vec();
    let mut replaced = false;
    while !rest.is_empty() {
        let (header, name, size) = member(rest)?;
        let (whole, later) = rest.split_at((header + size + size % 2).min(rest.len()));
        if name.starts_with("control.tar") {
            made.extend(
                format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "control.tar", 0, 0, 0, 100_644, control.len()).bytes(),
            );
            made.extend_from_slice(control);
            made.extend(vec![b'\n'; control.len() % 2]);
            replaced = true;
        } else {
            made.extend_from_slice(whole);
        }
        rest = later;
    }
    ensure!(replaced, "it has no control archive");
    Ok(made)
}

/// Bytes of the header, the name, and bytes of the content.
fn member(rest: &[u8]) -> Result<(usize, String, usize)> {
    const HEADER: usize = 60;
    let Some(header) = rest.get(..HEADER) else { bail!("it is torn") };
    let field = |from: usize, to: usize| String::from_utf8_lossy(&header[from..to]).trim().to_string();
    let size: usize = field(48, 58).parse().context("it is damaged")?;
    ensure!(rest.len() - HEADER >= size, "it is torn");
    Ok((HEADER, field(0, 16), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(members: &[(&str, &[u8])]) -> Vec<u8> {
        let member = |(name, bytes): &(&str, &[u8])| {
            let mut all =
                format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, bytes.len()).into_bytes();
            all.extend_from_slice(bytes);
            all.extend(vec![b'\n'; bytes.len() % 2]);
            all
        };
        [b"!<arch>\n".to_vec(), members.iter().flat_map(member).collect()].concat()
    }

    #[test]
    fn only_the_control_archive_is_replaced() {
        let version: (&str, &[u8]) = ("debian-binary", b"2.0\n");
        let data: (&str, &[u8]) = ("data.tar.xz", b"odd");
        let package = packed(&[version, ("control.tar.xz", b"old one"), data]);
        assert_eq!(replace_control(&package, b"new").unwrap(), packed(&[version, ("control.tar", b"new"), data]));
        for broken in [&package[..40], &package[..package.len() - 4], b"!<arch>\n", b"no package", &packed(&[version])]
        {
            assert!(replace_control(broken, b"new").is_err());
        }
    }

    #[test]
    fn a_package_loses_its_scripts_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made");
        std::fs::create_dir_all(made.join("DEBIAN")).unwrap();
        std::fs::create_dir_all(made.join("etc")).unwrap();
        std::fs::write(made.join("etc/a.conf"), "a\n").unwrap();
        let about = "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a\n";
        for (name, text) in [("control", about), ("conffiles", "/etc/a.conf\n"), ("preinst", "#!/bin/false\n")] {
            use std::os::unix::fs::PermissionsExt;
            let path = made.join("DEBIAN").join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let package = folder.path().join("a_1.deb");
        run_program(&argv(["dpkg-deb", "--build", &text(&made), &text(&package)])).unwrap();
        let before = Manager::Dpkg.look_into(&package).unwrap();
        without_scripts(&package).unwrap();
        assert_eq!(Manager::Dpkg.look_into(&package).unwrap(), before);
        assert_eq!((before.0.as_str(), before.1.files, before.1.bytes), ("a", 1, 2));
        let control = folder.path().join("left");
        run_program(&argv(["dpkg-deb", "--control", &text(&package), &text(&control)])).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(&control).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["conffiles", "control"]);
    }

    #[test]
    fn notes_of_a_package_are_not_installed() {
        let listing = "-rw-r--r-- 0/0 9 2024-01-01 00:00 .PKGINFO\n-rw-r--r-- 0/0 5 2024-01-01 00:00 usr/.hidden\n";
        assert_eq!(
            ArchiveContents::of_listing(&without_notes(listing)),
            ArchiveContents { entries: 1, files: 1, bytes: 5 }
        );
    }
}
