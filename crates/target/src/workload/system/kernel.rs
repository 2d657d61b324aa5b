//! A Linux kernel unpacked, configured, compiled, compiled again with nothing changed, and removed:
//! many small files, and programs that work on them.
//!
//! The tarball is staged in memory, decompressed unless the plan wants it otherwise, as
//! decompressing costs the same on all file systems and hides what differs. What compilers keep for
//! a moment goes into memory too.

use super::archive::{self, ArchiveContents};
use crate::stack::{Argv, Place, argv};
use crate::stage::{Program, Stage};
use crate::workload::settings::{Count, Flag, Path as PathKind, Text, Texts, settings};
use crate::workload::staging::Staging;
use crate::workload::{Description, Workload, described, programs, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(crate) struct Kernel;

settings! {
    Source {
        tarball: PathKind, "kernel source, packed by tar; by default the newest /usr/src/linux-source-*.tar.xz";
        compressed: Flag = "false",
            "unpack it compressed; else it is decompressed once, in memory, before anything is measured";
        configure: Texts = r#"["tinyconfig"]"#,
            "what `make` is asked for to configure it, such as allnoconfig or defconfig";
        goals: Texts = r#"["vmlinux"]"#, "what `make` is asked for to compile it";
        result: Text = "vmlinux", "a file that must be there once it is compiled";
        jobs: Count<1>, "how many compilers at once; by default as many as there are processors";
    }
}

/// Where Debian's packages put kernel sources.
const SOURCES: &str = "/usr/src";

/// Headers of the programs that a kernel builds for itself.
const WARM_SOURCE: &str = "#include <ctype.h>\n#include <elf.h>\n#include <errno.h>\n#include <fcntl.h>\n\
    #include <getopt.h>\n#include <inttypes.h>\n#include <limits.h>\n#include <regex.h>\n#include <signal.h>\n\
    #include <stdarg.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #include <string.h>\n#include <sys/mman.h>\n#include <sys/stat.h>\n#include <sys/types.h>\n#include <sys/wait.h>\n\
    #include <time.h>\n#include <unistd.h>\nint main(void) { return puts(\"warm\") < 0; }\n";

/// All that a kernel's own Makefiles call: the shell by recipes, the compiler's parts by the
/// compiler, the rest by name. What is not there is not needed.
const WARM_MAKEFILE: &str = "all:\n\tgcc -O2 -o warm warm.c\n\tgcc -S -O2 -o warm.s warm.c\n\t\
    nm warm > symbols && objcopy warm copy && ar rc warm.a copy\n\t\
    -for program in awk basename cat cmp cut dirname expr find getconf git grep head ln mkdir mv nproc objdump perl \
    printf python3 readelf sed sha1sum sort strip tail touch tr uname uniq wc xargs; \
    do $$program --version; done > /dev/null 2>&1\n";

/// Noted when the tarball was staged.
#[derive(Debug, Serialize, Deserialize)]
struct Staged {
    tarball: PathBuf,
    held: ArchiveContents,
    /// Bytes of the Makefile that comes first, which every run of make reads.
    makefile_bytes: u64,
}

impl Workload for Kernel {
    fn description(&self) -> &'static Description {
        described!("kernel.toml", Source::ROWS)
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let mut needs = programs(self.description().programs);
        needs.push(Need::Header { name: "stdio.h", package: "libc6-dev" });
        needs.extend(Source::of(settings).found().iter().flat_map(|tarball| archive::needs(tarball)));
        needs
    }

    /// `gcc --version` loads neither the compiler proper, nor assembler, linker and headers.
    fn warm_up(&self, settings: &Settings, place: &Place) -> Vec<Argv> {
        vec![argv(["make", "-s", "-B", "-C", &text(&staging(settings, place).file("warm"))])]
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let source = Source::of(settings);
        let goals = [("configure", &source.configure), ("goals", &source.goals)];
        let empty = goals.into_iter().filter(|(_, goals)| goals.is_empty()).map(|(name, _)| {
            let message = format!("`{name}` names nothing to make");
            Objection::new(name, message, "name a goal of the kernel's Makefile, or leave the setting out")
        });
        empty.chain(source.no_tarball()).collect()
    }

    fn lacks(&self, settings: &Settings, place: &Place) -> Option<String> {
        let is_staged = staging(settings, place).file("json").exists();
        (!is_staged && Source::of(settings).found().is_none()).then(|| {
            let remedy = "`apt-get install linux-source`, or name your own tarball with `tarball`";
            format!("there is no kernel source: no {SOURCES}/linux-source-*.tar.xz: {remedy}")
        })
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let (source, staging) = (Source::of(settings), staging(settings, place));
        let found = source.found().context("there is no kernel source")?;
        let tarball = archive::stage(&found, &staging.folder, source.compressed)?;
        let held = ArchiveContents::of_tarball(&tarball)?;
        let makefile_bytes = first_makefile(&tarball)?;
        let warm = staging.file("warm");
        std::fs::create_dir_all(&warm)?;
        std::fs::write(warm.join("warm.c"), WARM_SOURCE)?;
        std::fs::write(warm.join("Makefile"), WARM_MAKEFILE)?;
        staging.note(&Staged { tarball, held, makefile_bytes })
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let source = Source::of(settings);
        let Staged { tarball, held, makefile_bytes } = staging(settings, stage.place()).noted()?;
        let unpacked = stage.root().join("unpacked");
        stage.phase("unpack", |p| {
            p.handled(held.bytes, held.files);
            p.own(|| Ok(std::fs::create_dir(&unpacked)?))?;
            p.command(["tar", "-xf", &text(&tarball), "-C", &text(&unpacked)])
        })?;
        stage.check("verifying what was unpacked", || verify(&unpacked, &held))?;
        let tree = only_folder(&unpacked)?;
        let memory = stage.memory();
        let make = |goals: &[String], option: Option<String>| {
            let words = argv(["make", "-C", &text(&tree)]).into_iter().chain(option);
            reproducible(words.chain(goals.iter().cloned()).collect(), &memory)
        };
        let (configure, compile) = (make(&source.configure, None), make(&source.goals, Some(source.jobs_option())));
        stage.phase("configure", |p| {
            p.reads_at_least(makefile_bytes);
            p.run(&configure)
        })?;
        stage.phase("compile", |p| {
            p.reads_at_least(makefile_bytes);
            p.run(&compile)
        })?;
        let result = tree.join(&source.result);
        let compiled = size_and_digest(&result)?;
        stage.fact("compiled", &compiled);
        stage.phase("recompile", |p| p.run(&compile))?;
        ensure!(size_and_digest(&result)? == compiled, "making it again changed {}", result.display());
        stage.phase("remove", |p| {
            p.removed(held.bytes, held.files);
            p.command(["rm", "-rf", &text(&unpacked)])
        })
    }
}

fn staging(settings: &Settings, place: &Place) -> Staging {
    Staging::new("kernel", settings, place)
}

impl Source {
    /// The user's tarball, or the newest that a package has put there.
    fn found(&self) -> Option<PathBuf> {
        self.tarball.clone().or_else(|| newest_source(Path::new(SOURCES)))
    }

    fn no_tarball(&self) -> Option<Objection> {
        let path = self.tarball.as_ref().filter(|path| !path.is_file())?;
        let message = format!("there is no tarball {}", path.display());
        Some(Objection::new("tarball", message, "name one that is there, or leave it out"))
    }

    fn jobs_option(&self) -> String {
        let processors = std::thread::available_parallelism().map_or(1, |number| number.get() as u64);
        format!("-j{}", self.jobs.unwrap_or(processors))
    }
}

fn newest_source(folder: &Path) -> Option<PathBuf> {
    let all = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let sources = all.filter_map(|path| Some((version(path.file_name()?.to_str()?)?, path)));
    sources.max().map(|(_, path)| path)
}

/// `linux-source-6.1.tar.xz` is [6, 1].
fn version(name: &str) -> Option<Vec<u64>> {
    let version = name.strip_prefix("linux-source-")?.strip_suffix(".tar.xz")?;
    version.split('.').map(|part| part.parse().ok()).collect()
}

/// Compiles to the same bytes for every user, in every place, at any time.
fn reproducible(words: Argv, memory: &Path) -> Program {
    let fixed = [
        ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
        ("KBUILD_BUILD_USER", "pickfs"),
        ("KBUILD_BUILD_HOST", "pickfs"),
        ("KBUILD_BUILD_VERSION", "1"),
        // Flags and depth of a make that may have started us do not apply to this one.
        ("MAKEFLAGS", ""),
        ("MAKELEVEL", "0"),
        ("TZ", "UTC"),
    ];
    let of_memory = ["HOME", "TMPDIR"].map(|name| (name, text(memory)));
    let program = Program::new(words);
    let program = fixed.iter().fold(program, |program, (name, value)| program.with(name, *value));
    of_memory.into_iter().fold(program, |program, (name, value)| program.with(name, value))
}

/// In one folder at the top, as kernels are packed.
fn first_makefile(tarball: &Path) -> Result<u64> {
    let words = ["tar", "--numeric-owner", "-tvf", &text(tarball), "--wildcards", "--no-wildcards-match-slash"];
    let listing = pickfs_system::process::run_program(&argv(words.into_iter().chain(["*/Makefile"])));
    let listing = listing.context("it has no folder with a Makefile at its top, as kernels have")?;
    Ok(ArchiveContents::of_listing(&listing).bytes)
}

fn only_folder(unpacked: &Path) -> Result<PathBuf> {
    let all = std::fs::read_dir(unpacked)?.collect::<Result<Vec<_>, _>>()?;
    let folders: Vec<PathBuf> = all.iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    match folders.as_slice() {
        [only] => Ok(only.clone()),
        _ => anyhow::bail!("the tarball has {} folders at its top; pack the kernel in one", folders.len()),
    }
}

fn verify(unpacked: &Path, held: &ArchiveContents) -> Result<()> {
    let found = pickfs_trees::apparent_bytes(unpacked);
    ensure!(found == held.bytes, "{found} bytes were unpacked of {}", held.bytes);
    Ok(())
}

/// Size and digest of what was compiled: equal on all file systems.
fn size_and_digest(result: &Path) -> Result<String> {
    let bytes = std::fs::read(result);
    let bytes = bytes.with_context(|| format!("make has not made {}; is `result` right?", result.display()))?;
    let name = result.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{name}, {} bytes, xxh3 {:016x}", bytes.len(), xxhash_rust::xxh3::xxh3_64(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(pairs: serde_json::Value) -> Settings {
        Settings(pairs.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn the_newest_source_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest_source(folder.path()), None);
        for name in ["linux-source-6.1.tar.xz", "linux-source-6.12.tar.xz", "linux-source-6.9.tar.xz", "linux-9.tar.xz"]
        {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::write(folder.path().join("linux-source-7.0-rc1.tar.xz"), "").unwrap();
        assert!(newest_source(folder.path()).unwrap().ends_with("linux-source-6.12.tar.xz"));
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let good = json!({"tarball": "/proc/version", "goals": ["vmlinux"], "configure": ["tinyconfig"]});
        let objections = |change: serde_json::Value| {
            let mut all = settings(good.clone());
            all.0.extend(settings(change).0);
            Kernel.objections(&all).iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        assert!(objections(json!({})).is_empty());
        assert_eq!(objections(json!({"goals": []})), ["goals"]);
        assert_eq!(objections(json!({"tarball": "/nowhere"})), ["tarball"]);
    }

    #[test]
    fn programs_that_decompress_are_needed() {
        let needs = |tarball: &str| Kernel.needs(&settings(json!({"tarball": tarball})));
        let has = |tarball: &str, name: &str| {
            needs(tarball).iter().any(|n| matches!(n, Need::Program { name: n, .. } if *n == name))
        };
        assert!(has("/a.tar.zst", "zstd") && has("/a.tgz", "gzip") && has("/a.tar", "bison"));
        assert!(!has("/a.tar", "xz") && has("/a.tar.xz", "xz"));
    }
}
