//! Compiles a kernel module of ours for a guest's kernel: with its release's own compiler and
//! headers of exactly that kernel, in namespaces, once.

use super::cache::{Guest, folder, turn};
use super::compile::{NAMES, TOOLS, inside, namespaces};
use super::watched::{Watched, last_words};
use super::{COMPILED, PARTIAL, root};
use anyhow::{Context, Result, ensure};
use pickfs_system::process::Interrupted;
use std::path::{Path, PathBuf};

/// A module by its sources: names of files with their texts. One of the files is its `Kbuild`.
pub(crate) struct Driver<'a> {
    pub name: &'a str,
    pub sources: &'a [(&'a str, &'a str)],
    /// One of the sources, of a QEMU plugin that is compiled next to the module.
    pub plugin: &'a str,
}

/// Where the plugin lies that was compiled with a module.
pub(crate) fn plugin_of(module: &Path) -> PathBuf {
    module.with_extension("so")
}

impl Driver<'_> {
    /// The module for a guest's kernel: kept from before, or compiled now.
    pub(crate) fn find_or_compile(&self, guest: &Guest, say: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let kernel =
            guest.kernel_release().with_context(|| format!("the kernel of {} names no release", guest.name))?;
        let release = guest.release().context("your own kernel has no headers in Debian's archive")?;
        let kept = folder()?.join(COMPILED).join(format!("{}_{:016x}_{kernel}.ko", self.name, self.digest()));
        if kept.is_file() {
            return Ok(kept);
        }
        let turn = turn(say)?;
        if !kept.is_file() {
            let desk = kept.with_extension(PARTIAL);
            let made = self.compile(release, &kernel, &desk, &kept, say);
            let _ = std::fs::remove_dir_all(&desk);
            made.with_context(|| format!("cannot compile {} for kernel {kernel}", self.name))?;
        }
        drop(turn);
        Ok(kept)
    }

    fn digest(&self) -> u64 {
        let all: Vec<String> = self.sources.iter().map(|(name, text)| format!("{name}\0{text}\0")).collect();
        xxhash_rust::xxh3::xxh3_64(all.concat().as_bytes())
    }

    fn compile(&self, release: &str, kernel: &str, desk: &Path, kept: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
        let namespaces = namespaces()?;
        say(&format!("fetching the compiler and headers of kernel {kernel}, once: about 70 MB"));
        let _ = std::fs::remove_dir_all(desk);
        let root = desk.join("root");
        std::fs::create_dir_all(desk).with_context(|| format!("cannot make {}", desk.display()))?;
        let headers = format!("linux-headers-{kernel}");
        let names: Vec<String> = TOOLS.iter().copied().chain([headers.as_str()]).map(String::from).collect();
        root::unpack(release, &[], "main", &names, desk, &root)?;
        let there = root.join("usr/src").join(&headers);
        ensure!(there.is_dir(), "Debian's archive has no {headers}; remove the guest, so that it is made anew");
        for (name, program) in NAMES {
            // What is there already is the package's own.
            let _ = std::os::unix::fs::symlink(program, root.join(name));
        }
        let folder = root.join("usr/src").join(self.name);
        std::fs::create_dir_all(&folder)?;
        for (name, text) in self.sources {
            std::fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        say(&format!("compiling {} for kernel {kernel}", self.name));
        let (headers, source) = (format!("/usr/src/{headers}"), format!("M=/usr/src/{}", self.name));
        let log = desk.join("log");
        let title = format!("compiling {}", self.name);
        let run = |words: &[&str], say: &mut dyn FnMut(&str)| {
            let ran =
                Watched { title: &title, log: &log, other_log: &log }.run(&inside(&root, namespaces, words)?, say);
            ran.map_err(|error| if error.is::<Interrupted>() { error } else { error.context(last_words(&log)) })
        };
        run(&["make", "-C", &headers, &source, "modules"], say)?;
        let at = |name: &str| format!("/usr/src/{}/{name}", self.name);
        let (source, plugin) = (at(self.plugin), at("plugin.so"));
        run(&["gcc", "-O2", "-fPIC", "-shared", "-o", &plugin, &source], say)?;
        // The module last: where it is, the plugin is.
        keep(&folder.join("plugin.so"), &plugin_of(kept))?;
        keep(&folder.join(format!("{}.ko", self.name)), kept)
    }
}

fn keep(made: &Path, kept: &Path) -> Result<()> {
    let partial = PathBuf::from(format!("{}.partial", kept.display()));
    std::fs::copy(made, &partial).with_context(|| format!("nothing has made {}", made.display()))?;
    std::fs::rename(&partial, kept).with_context(|| format!("cannot name {}", kept.display()))
}
