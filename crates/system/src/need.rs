//! What must be there before a thing can run, and what to do when it is not. Plug-ins list their
//! needs as data; the agent, `pickfs list` and `pickfs doctor` ask the machine.

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// One thing that must be there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    Root,
    /// A program on the path (or in the sbin folders), and the Debian package that brings it.
    Program {
        name: &'static str,
        package: &'static str,
    },
    /// A header of C that compiling takes, as in `#include <NAME>`.
    Header {
        name: &'static str,
        package: &'static str,
    },
    /// A program that Debian keeps off the path, one folder a version: `UNDER/15/bin/NAME`; one on
    /// the path will do.
    VersionedProgram {
        name: &'static str,
        under: &'static str,
        package: &'static str,
    },
    /// A program that the plan names: on the path, or a path itself; and the package that brings
    /// it, if that is said.
    Named {
        name: String,
        package: Option<String>,
    },
    /// A file system type of the kernel, built in or as a module; `hint` says where one may come
    /// from.
    Kernel {
        filesystem: &'static str,
        hint: &'static str,
    },
    /// A part of the kernel that shows itself by a file, or is a module yet to be loaded.
    Driver {
        what: &'static str,
        module: &'static str,
        sign: &'static str,
        hint: &'static str,
    },
    /// A part of the kernel that shows itself by one of its functions, or is a module yet to be
    /// loaded.
    KernelFunction {
        what: &'static str,
        function: &'static str,
        module: &'static str,
        hint: &'static str,
    },
    /// A device node or file.
    File {
        path: &'static str,
        hint: &'static str,
    },
    /// No program of that name may run unless pickfs started it (`PICKFS_RUN` in its environment).
    NoProcess {
        name: &'static str,
        hint: &'static str,
    },
}

/// Why a need is not met, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub what: String,
    pub remedy: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "{}: {}", self.what, self.remedy)
    }
}

impl Need {
    /// The Debian package that meets it, as far as one does.
    pub fn package(self) -> Option<String> {
        match self {
            Need::Program { package, .. } | Need::Header { package, .. } | Need::VersionedProgram { package, .. } => {
                Some(package.to_string())
            }
            Need::Named { package, .. } => package,
            Need::Root
            | Need::Kernel { .. }
            | Need::Driver { .. }
            | Need::KernelFunction { .. }
            | Need::File { .. }
            | Need::NoProcess { .. } => None,
        }
    }

    /// Asks this machine.
    pub fn check(&self) -> Result<(), Missing> {
        let (met, what, remedy) = match self {
            Need::Root => (
                rustix::process::geteuid().is_root(),
                "not root".into(),
                "run it with sudo, or measure a directory with --on DIR".into(),
            ),
            Need::Program { name, package } => {
                (find_program(name).is_some(), format!("no program `{name}`"), format!("apt-get install {package}"))
            }
            Need::Header { name, package } => {
                let there = Path::new("/usr/include").join(name).is_file();
                (there, format!("no header `{name}`"), format!("apt-get install {package}"))
            }
            Need::VersionedProgram { name, under, package } => {
                let there = find_versioned(name, Path::new(under)).is_some();
                (there, format!("no program `{name}`"), format!("apt-get install {package}"))
            }
            Need::Named { name, package } => {
                let remedy = match package {
                    Some(package) => format!("apt-get install {package}"),
                    None => "install it, or name another program in the plan".into(),
                };
                (find_program(name).is_some(), format!("no program `{name}`"), remedy)
            }
            Need::Kernel { filesystem, hint } => {
                (kernel_has(filesystem), format!("the kernel has no {filesystem}"), hint.to_string())
            }
            Need::Driver { what, module, sign, hint } => {
                let there = Path::new(sign).exists() || module_exists(module);
                (there, format!("the kernel has no {what}"), hint.to_string())
            }
            Need::KernelFunction { what, function, module, hint } => (
                function_exists(function) || module_exists(module),
                format!("the kernel has no {what}"),
                hint.to_string(),
            ),
            Need::File { path, hint } => (Path::new(path).exists(), format!("no {path}"), hint.to_string()),
            Need::NoProcess { name, hint } => (!runs(name), format!("`{name}` runs already"), hint.to_string()),
        };
        if met { Ok(()) } else { Err(Missing { what, remedy }) }
    }
}

/// Every need that is not met.
pub fn missing(needs: &[Need]) -> Vec<Missing> {
    needs.iter().filter_map(|need| need.check().err()).collect()
}

/// Looks where `sudo` and root's shells look, as mkfs programs live in sbin.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"]);
    folders.filter(|f| !f.is_empty()).map(|f| Path::new(f).join(name)).find(|p| executable(p))
}

/// That of the newest version below a folder, else the one on the path.
pub fn find_versioned(name: &str, under: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(under).into_iter().flatten().flatten().map(|entry| entry.path());
    let programs = folders.map(|folder| folder.join("bin").join(name)).filter(|program| executable(program));
    programs.max_by_key(|program| version(program)).or_else(|| find_program(name))
}

/// Numbers of the folder's name: 9.6 is older than 15.
fn version(program: &Path) -> Vec<u32> {
    let folder = program.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().split('.').map_while(|part| part.parse().ok()).collect()
}

fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Registered now, or a module that mount would load.
fn kernel_has(filesystem: &str) -> bool {
    let registered = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let known = registered.lines().any(|line| line.split('\t').next_back() == Some(filesystem));
    known || module_exists(filesystem)
}

/// A kernel may be built without a list of its functions (CONFIG_KALLSYMS); then it may well have
/// it.
fn function_exists(name: &str) -> bool {
    std::fs::read_to_string("/proc/kallsyms").map_or(true, |listed| lists_function(name, &listed))
}

/// Lines are `ffffffff81000000 T name`, with the module's name behind where it is of one.
fn lists_function(name: &str, listed: &str) -> bool {
    listed.lines().any(|line| line.split_ascii_whitespace().nth(2) == Some(name))
}

/// By its own name, or as one that another module brings: ext4's brings ext2 and ext3.
fn module_exists(name: &str) -> bool {
    let folder = Path::new("/lib/modules").join(&*rustix::system::uname().release().to_string_lossy());
    let index = |file| std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    is_listed(name, &index("modules.dep"), &index("modules.alias"))
}

fn is_listed(name: &str, modules: &str, aliases: &str) -> bool {
    let (file, alias) = (format!("/{name}.ko"), format!("alias fs-{name} "));
    let own = modules.lines().any(|line| line.split(':').next().is_some_and(|module| module.contains(&file)));
    own || aliases.lines().any(|line| line.starts_with(&alias))
}

/// Whether a program runs that is not ours. `comm` holds 15 bytes of the name.
fn runs(name: &str) -> bool {
    let short = &name[..name.len().min(15)];
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let named = processes.filter(|process| comm(process).as_deref() == Some(short));
    named.filter(|process| is_alive(process)).any(|process| !is_ours(&process))
}

/// A process that is ending has given its memory back, and with it its arguments and the mark that
/// made it ours.
fn is_alive(process: &Path) -> bool {
    std::fs::read(process.join("cmdline")).is_ok_and(|arguments| !arguments.is_empty())
}

fn comm(process: &Path) -> Option<String> {
    Some(std::fs::read_to_string(process.join("comm")).ok()?.trim_end().to_string())
}

fn is_ours(process: &Path) -> bool {
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|variable| variable.starts_with(b"PICKFS_RUN="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_kernel_shows_itself_by_a_file() {
        let driver = |sign| Need::Driver { what: "such part", module: "no-such-module", sign, hint: "get one" };
        assert!(driver("/proc/self").check().is_ok());
        assert_eq!(driver("/no/such").check().unwrap_err().to_string(), "the kernel has no such part: get one");
    }

    #[test]
    fn a_part_of_the_kernel_shows_itself_by_a_function() {
        let listed = "0000000000000000 T vfs_read\n0000000000000000 t v2_read_file_info\t[quota_v2]\n";
        for (name, there) in [("vfs_read", true), ("v2_read_file_info", true), ("read", false), ("quota_v2", false)] {
            assert_eq!(lists_function(name, listed), there, "{name}");
        }
        let part =
            |function| Need::KernelFunction { what: "part", function, module: "no-such-module", hint: "get one" };
        assert!(part("vfs_read").check().is_ok());
        if Path::new("/proc/kallsyms").exists() {
            assert_eq!(part("no_such_function").check().unwrap_err().to_string(), "the kernel has no part: get one");
        }
    }

    #[test]
    fn every_reason_is_given_with_a_remedy() {
        let needs = [
            Need::Program { name: "sh", package: "dash" },
            Need::Program { name: "mkfs.nowhere", package: "nowhere-tools" },
            Need::Header { name: "nowhere.h", package: "nowhere-dev" },
            Need::Named { name: "/bin/sh".into(), package: None },
            Need::Named { name: "nowhere".into(), package: Some("nowhere-bin".into()) },
            Need::Named { name: "/nowhere/at/all".into(), package: None },
            Need::Kernel { filesystem: "nowherefs", hint: "try another world" },
        ];
        let said: Vec<String> = missing(&needs).iter().map(Missing::to_string).collect();
        assert_eq!(
            said,
            [
                "no program `mkfs.nowhere`: apt-get install nowhere-tools",
                "no header `nowhere.h`: apt-get install nowhere-dev",
                "no program `nowhere`: apt-get install nowhere-bin",
                "no program `/nowhere/at/all`: install it, or name another program in the plan",
                "the kernel has no nowherefs: try another world"
            ]
        );
    }

    #[test]
    fn the_newest_version_is_taken_and_the_path_will_do() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for (version, mode) in [("9.6", 0o755), ("15", 0o755), ("13", 0o755), ("16", 0o644)] {
            let bin = folder.path().join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::write(bin.join("sh"), "").unwrap();
            std::fs::set_permissions(bin.join("sh"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(find_versioned("sh", folder.path()), Some(folder.path().join("15/bin/sh")));
        assert_eq!(find_versioned("sh", &folder.path().join("none")), find_program("sh"));
        let need =
            Need::VersionedProgram { name: "initdb.nowhere", under: "/usr/lib/postgresql", package: "postgresql" };
        assert_eq!(need.check().unwrap_err().to_string(), "no program `initdb.nowhere`: apt-get install postgresql");
    }

    #[test]
    fn a_module_may_bring_several_file_systems() {
        let modules =
            "kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz\nkernel/fs/xfs/xfs.ko: kernel/lib/libcrc32c.ko";
        let aliases = "# Aliases\nalias fs-ext4 ext4\nalias fs-ext3 ext4\nalias fs-nfs4 nfs";
        let known = ["ext4", "ext3", "xfs", "ext2", "nfs", "libcrc32c"].map(|name| is_listed(name, modules, aliases));
        assert_eq!(known, [true, true, true, false, false, false]);
    }

    #[test]
    fn the_kernel_knows_proc() {
        assert!(kernel_has("proc"));
    }

    #[test]
    fn a_program_of_somebody_else_is_in_the_way_and_our_own_is_not() {
        let start = |ours: bool| {
            let mut command = std::process::Command::new("sleep");
            command.arg("60").env_remove("PICKFS_RUN");
            if ours { command.env("PICKFS_RUN", "r") } else { &mut command }.spawn().expect("sleep")
        };
        for ours in [false, true] {
            let mut child = start(ours);
            let process = PathBuf::from(format!("/proc/{}", child.id()));
            // Between fork and exec it still has our name, and at first no environment.
            let starts = || std::fs::read(process.join("environ")).is_ok_and(|environment| environment.is_empty());
            while comm(&process).as_deref() != Some("sleep") || starts() {
                std::thread::yield_now();
            }
            let seen = (comm(&process), is_ours(&process));
            let in_the_way = runs("sleep");
            child.kill().and_then(|()| child.wait()).expect("killed");
            assert_eq!(seen, (Some("sleep".into()), ours));
            assert!(ours || in_the_way);
        }
        assert!(!runs("no-such-program"));
    }

    #[test]
    fn a_program_that_has_ended_is_not_in_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("pickfs-ends");
        std::fs::copy(find_program("true").expect("true"), &program).expect("a copy");
        let mut child = std::process::Command::new(&program).env_remove("PICKFS_RUN").spawn().expect("a start");
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        while comm(&process).as_deref() != Some("pickfs-ends") || is_alive(&process) {
            std::thread::yield_now();
        }
        let in_the_way = runs("pickfs-ends");
        child.wait().expect("its end");
        assert!(!in_the_way);
    }
}
