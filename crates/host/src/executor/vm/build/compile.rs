//! Kernel modules of which Debian has the source only: compiled by DKMS for exactly a guest's
//! kernel, once.
//!
//! DKMS, compiler and the kernel's headers are unpacked next to the guest, from its own release,
//! and run there in their own namespaces: no rights are needed, nothing of the host is seen but its
//! processors, /dev and /proc, and what runs there dies with us. Only the modules come into the
//! guest.

use super::recipe::Recipe;
use super::root::{self, MODULES};
use super::watched::{Watched, last_words};
use super::{COMPILED, PARTIAL};
use anyhow::{Context, Error, Result, bail, ensure};
use pickfs_core::protocol::ModuleSource;
use pickfs_system::process::{Interrupted, argv, run_program};
use rustix::mount::mount_bind_recursive;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What DKMS and the configure scripts of modules call without naming it.
pub(super) const TOOLS: &[&str] = &[
    "bash", "coreutils", "dash", "debianutils", "diffutils", "findutils", "gawk", "gcc", "grep", "gzip", "hostname",
    "kmod", "libc-bin", "libc6-dev", "make", "sed", "tar", "util-linux", "xz-utils",
];

/// Names that scripts of packages would have made, and what they stand for.
pub(super) const NAMES: &[(&str, &str)] = &[("usr/bin/awk", "gawk"), ("usr/bin/cc", "gcc"), ("usr/bin/sh", "dash")];

/// Where the kernel looks for modules that came later than itself.
const UPDATES: &str = "updates/dkms";

/// Into a root that was unpacked by the recipe: all modules that it wants compiled, from what is
/// kept where it is there.
pub(crate) fn add(recipe: &Recipe, folder: &Path, root: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    for source in &recipe.compiled {
        let job = Job::of(recipe, source, folder, root)?;
        if job.kept.is_dir() {
            say(&format!("{} was compiled for this kernel before, and is kept", job.title()));
        } else {
            job.compile(say).with_context(|| format!("cannot compile {}", job.title()))?;
        }
        let modules = root.join(MODULES).join(&job.kernel).join(UPDATES);
        std::fs::create_dir_all(&modules).with_context(|| format!("cannot make {}", modules.display()))?;
        for file in files(&job.kept)? {
            let name = file.file_name().context("a file without a name")?;
            std::fs::copy(&file, modules.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
        }
    }
    Ok(())
}

/// What the packages report of what is compiled: "zfs-dkms 2.1.11-1+deb12u1".
pub(crate) fn manifest(recipe: &Recipe, packages: &str) -> String {
    let line =
        |source: &ModuleSource| Some(format!("{} {}\n", source.package, root::version_of(packages, &source.tools)?));
    recipe.compiled.iter().filter_map(line).collect()
}

struct Job<'r> {
    recipe: &'r Recipe,
    source: &'r ModuleSource,
    version: String,
    kernel: String,
    /// The folder with what compiles, which goes with the guest's own.
    desk: PathBuf,
    /// Where the modules are put.
    kept: PathBuf,
}

impl<'r> Job<'r> {
    fn of(recipe: &'r Recipe, source: &'r ModuleSource, folder: &Path, root: &Path) -> Result<Job<'r>> {
        let packages = root::manifest(root)?;
        let version = root::version_of(&packages, &source.tools).with_context(|| {
            format!("Debian {} has no {}; does its mirror have `contrib`?", recipe.release, source.tools)
        })?;
        let (version, kernel) = (version.to_string(), root::kernel_release(root)?);
        let guests = folder.parent().context("the guest lies nowhere")?;
        let name = format!("{}_{version}_{kernel}", source.package);
        Ok(Job { recipe, source, version, kernel, desk: folder.join("desk"), kept: guests.join(COMPILED).join(name) })
    }

    fn title(&self) -> String {
        format!("{} {} for kernel {}", self.source.package, self.version, self.kernel)
    }

    fn compile(&self, say: &mut dyn FnMut(&str)) -> Result<()> {
        let namespaces = namespaces()?;
        say(&format!("fetching what compiles {}", self.title()));
        self.unpack()?;
        say(&format!("compiling {}; it takes minutes, and is done once", self.title()));
        self.work(namespaces, say)?;
        let partial = PathBuf::from(format!("{}.{PARTIAL}", self.kept.display()));
        // What a build that was killed has left.
        let _ = std::fs::remove_dir_all(&partial);
        std::fs::create_dir_all(&partial).with_context(|| format!("cannot make {}", partial.display()))?;
        for file in self.modules()? {
            let name = file.file_name().context("a module without a name")?;
            std::fs::copy(&file, partial.join(name)).with_context(|| format!("cannot keep {}", file.display()))?;
        }
        std::fs::remove_dir_all(&self.desk).context("cannot remove what has compiled")?;
        std::fs::rename(&partial, &self.kept).with_context(|| format!("cannot name {}", self.kept.display()))
    }

    /// Headers of exactly that kernel; the source of exactly the version of the tools.
    fn unpack(&self) -> Result<()> {
        let headers = format!("linux-headers-{}", self.kernel);
        let names = TOOLS.iter().copied().chain([self.source.package.as_str(), &headers]);
        let names: Vec<String> = names.map(String::from).collect();
        let temporary = self.desk.parent().context("the guest lies nowhere")?;
        root::unpack(self.recipe.release, &[], self.recipe.components(), &names, temporary, &self.desk)?;
        let packages = root::manifest(&self.desk)?;
        let found = root::version_of(&packages, &self.source.package).unwrap_or("nothing");
        ensure!(found == self.version, "Debian's archive has {found} of it by now; remove the guest, and try again");
        ensure!(
            root::version_of(&packages, &headers).is_some(),
            "Debian's archive has no {headers} any more; try again"
        );
        for (name, program) in NAMES {
            // What is there already is the package's own.
            let _ = std::os::unix::fs::symlink(program, self.desk.join(name));
        }
        Ok(())
    }

    fn work(&self, namespaces: &[&str], say: &mut dyn FnMut(&str)) -> Result<()> {
        let (name, version) = self.dkms_name()?;
        // It goes with what was begun.
        let log = self.desk.with_extension("log");
        let make_log = self.desk.join("var/lib/dkms").join(&name).join(&version).join("build/make.log");
        let one = ["-m", &name, "-v", &version, "-k", &self.kernel];
        for words in [[&["dkms", "add"], &one[..4]].concat(), [&["dkms", "build"], &one[..]].concat()] {
            let title = self.title();
            let watched = Watched { title: &title, log: &log, other_log: &make_log };
            let ran = watched.run(&inside(&self.desk, namespaces, &words)?, say);
            ran.map_err(
                |error| if error.is::<Interrupted>() { error } else { self.explained(error, &log, &make_log) },
            )?;
        }
        Ok(std::fs::remove_file(&log)?)
    }

    /// With the last output, and all output kept: what `make` has said behind what DKMS has said of
    /// it.
    fn explained(&self, error: Error, log: &Path, make_log: &Path) -> Error {
        let kept = PathBuf::from(format!("{}.log", self.kept.display()));
        let said = [log, make_log].map(|file| std::fs::read(file).unwrap_or_default()).concat();
        let folder = kept.parent().map(std::fs::create_dir_all);
        match folder.transpose().and_then(|_| std::fs::write(&kept, said)) {
            Ok(()) => error.context(format!("{}; the whole output is in {}", last_words(&kept), kept.display())),
            Err(wrong) => error.context(format!("{}, and its log cannot be kept: {wrong}", last_words(log))),
        }
    }

    /// Name and version as DKMS knows them.
    fn dkms_name(&self) -> Result<(String, String)> {
        let sources = std::fs::read_dir(self.desk.join("usr/src")).context("no sources were unpacked")?;
        let mut configured = sources.flatten().map(|entry| entry.path().join("dkms.conf"));
        let text = configured.find_map(|path| std::fs::read_to_string(path).ok());
        let text = text.with_context(|| format!("{} has no dkms.conf", self.source.package))?;
        let value = |key| quoted(&text, key).with_context(|| format!("dkms.conf has no {key}"));
        Ok((value("PACKAGE_NAME")?, value("PACKAGE_VERSION")?))
    }

    fn modules(&self) -> Result<Vec<PathBuf>> {
        let (name, version) = self.dkms_name()?;
        let folder = self.desk.join("var/lib/dkms").join(name).join(version).join(&self.kernel);
        let made = walkdir::WalkDir::new(folder).into_iter().flatten();
        let made = made.map(walkdir::DirEntry::into_path).filter(|path| {
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            folder == "module" && path.file_name().is_some_and(|name| name.to_string_lossy().contains(".ko"))
        });
        let modules: Vec<PathBuf> = made.collect();
        ensure!(!modules.is_empty(), "DKMS has made no module of {}", self.title());
        Ok(modules)
    }
}

/// Words that are run in what was unpacked, by way of [`enter`]. Whatever ends us ends `unshare`,
/// and with it all in its namespace of processes. Nothing of ours is in their environment.
pub(super) fn inside(root: &Path, namespaces: &[&str], words: &[&str]) -> Result<Vec<OsString>> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let mut all: Vec<OsString> = ["setpriv", "--pdeathsig", "KILL", "--", "nice"].map(OsString::from).into();
    all.extend(namespaces.iter().map(OsString::from));
    all.extend([own.into(), "guest".into(), "inside".into(), root.into(), "--".into()]);
    all.extend(["unshare", "--pid", "--fork", "--kill-child", "--root"].map(OsString::from));
    all.push(root.into());
    all.extend(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LC_ALL=C"].map(OsString::from));
    all.extend(words.iter().map(OsString::from));
    Ok(all)
}

/// In namespaces that were made for it: lends a root the devices and processes of this machine, and
/// becomes the program.
pub fn enter(root: &Path, words: &[OsString]) -> Result<Infallible> {
    for folder in ["dev", "proc"] {
        let (lent, at) = (Path::new("/").join(folder), root.join(folder));
        mount_bind_recursive(&lent, &at).with_context(|| format!("cannot bind {} there", lent.display()))?;
    }
    let (program, arguments) = words.split_first().context("no program to run")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", program.to_string_lossy()))
}

/// Namespaces of users and mounts; root can do without the first where it is switched off.
const NAMESPACES: &[&[&str]] = &[&["unshare", "--user", "--map-root-user", "--mount"], &["unshare", "--mount"]];

pub(super) fn namespaces() -> Result<&'static [&'static str]> {
    match NAMESPACES.iter().find(|words: &&&[&str]| run_program(&argv(words.iter().copied().chain(["true"]))).is_ok()) {
        Some(words) => Ok(words),
        None => bail!(
            "modules are compiled in namespaces, and this host lets only root make them. Allow it (sysctl \
             kernel.unprivileged_userns_clone=1, user.max_user_namespaces=15000 or, on Ubuntu, \
             kernel.apparmor_restrict_unprivileged_userns=0), or have root run `pickfs guest build` once with \
             XDG_CACHE_HOME set to a folder that both can write to"
        ),
    }
}

/// `NAME="value"` of a shell's settings.
fn quoted(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_string()).filter(|value| !value.is_empty())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::vm::build::recipe::RELEASES;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        std::fs::write(path, text).expect("written");
    }

    /// A root in the form that is unpacked for a guest with OpenZFS, and its job.
    fn unpacked(folder: &Path, recipe: &'static Recipe) -> Result<Job<'static>> {
        let root = folder.join("guest.partial/root");
        write(&root.join("usr/lib/modules/6.1.0-9-amd64/modules.order"), "");
        write(&root.join("var/cache/apt/archives/zfsutils-linux_2.1.11-1+deb12u1_amd64.deb"), "");
        Job::of(recipe, &recipe.compiled[0], &folder.join("guest.partial"), &root)
    }

    fn recipe() -> &'static Recipe {
        let zfs = ModuleSource { package: "zfs-dkms".into(), tools: "zfsutils-linux".into() };
        Box::leak(Box::new(Recipe::new(RELEASES[0], ["zfs-dkms".to_string()], &[zfs])))
    }

    #[test]
    fn what_is_kept_is_of_one_kernel_and_one_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = unpacked(folder.path(), recipe()).expect("a job");
        assert_eq!(job.kept, folder.path().join("compiled/zfs-dkms_2.1.11-1+deb12u1_6.1.0-9-amd64"));
        assert_eq!(job.title(), "zfs-dkms 2.1.11-1+deb12u1 for kernel 6.1.0-9-amd64");
        assert!(job.desk.starts_with(folder.path().join("guest.partial")), "it goes with what was begun");
        assert_eq!(manifest(recipe(), "a 1\nzfsutils-linux 2.1\n"), "zfs-dkms 2.1\n");
    }

    #[test]
    fn what_was_compiled_before_is_taken_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = unpacked(folder.path(), recipe()).expect("a job");
        write(&job.kept.join("zfs.ko"), "a module");
        let (guest, mut said) = (folder.path().join("guest.partial"), Vec::new());
        add(recipe(), &guest, &guest.join("root"), &mut |line| said.push(line.to_string())).expect("added");
        let module = guest.join("root/usr/lib/modules/6.1.0-9-amd64/updates/dkms/zfs.ko");
        assert_eq!(std::fs::read_to_string(module).expect("the module"), "a module");
        assert!(said.concat().contains("was compiled for this kernel before"), "{said:?}");
    }

    #[test]
    fn a_release_without_the_tools_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        write(&root.join("var/cache/apt/archives/tar_1_amd64.deb"), "");
        let error = add(recipe(), folder.path(), &root, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("has no zfsutils-linux; does its mirror have `contrib`?"), "{error}");
    }

    #[test]
    fn names_modules_and_settings_are_found_where_dkms_has_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = unpacked(folder.path(), recipe()).expect("a job");
        assert!(job.dkms_name().is_err() && job.modules().is_err());
        write(&job.desk.join("usr/src/zfs-2.1.11/dkms.conf"), "PACKAGE_NAME=\"zfs\"\nPACKAGE_VERSION=\"2.1.11\"\n");
        write(&job.desk.join("usr/src/linux-headers-6.1.0-9-amd64/Makefile"), "");
        assert_eq!(job.dkms_name().expect("found"), ("zfs".to_string(), "2.1.11".to_string()));
        let made = job.desk.join("var/lib/dkms/zfs/2.1.11");
        write(&made.join("6.1.0-9-amd64/x86_64/module/zfs.ko.xz"), "");
        write(&made.join("build/module/zfs.ko"), "not stripped");
        assert_eq!(job.modules().expect("found"), [made.join("6.1.0-9-amd64/x86_64/module/zfs.ko.xz")]);
    }

    #[test]
    fn a_failure_is_told_with_its_errors_and_its_log_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = unpacked(folder.path(), recipe()).expect("a job");
        let (log, make_log) = (folder.path().join("log"), folder.path().join("make.log"));
        write(&log, "configure: fine\n");
        write(&make_log, "CC a.o\na.c:1: error: no such thing\nCC b.o\n");
        let complaint = format!("{:#}", job.explained(anyhow::anyhow!("it ended"), &log, &make_log));
        let kept = format!("{}.log", job.kept.display());
        assert_eq!(complaint, format!("a.c:1: error: no such thing; the whole output is in {kept}: it ended"));
        assert!(std::fs::read_to_string(kept).expect("the log").starts_with("configure: fine\nCC a.o"));
    }

    #[test]
    fn what_is_run_inside_dies_with_us_and_sees_nothing_of_ours() {
        let words = inside(Path::new("/desk"), NAMESPACES[0], &["dkms", "add"]).expect("words");
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let line = words.join(" ");
        assert!(
            line.starts_with("setpriv --pdeathsig KILL -- nice unshare --user --map-root-user --mount /"),
            "{line}"
        );
        let within = "guest inside /desk -- unshare --pid --fork --kill-child --root /desk env -i ";
        assert!(line.contains(within) && line.ends_with(" dkms add"), "{line}");
    }
}
