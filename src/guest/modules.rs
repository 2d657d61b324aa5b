//! Kernel modules that a guest needs before it can see its root: which, and in which order.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// For disks of every bus, the port of the agent, and the root.
const WANTED: &[&str] =
    &["virtio_pci", "virtio_blk", "virtio_console", "virtio_scsi", "sd_mod", "ahci", "nvme", "squashfs", "overlay"];

/// Files of a tree of modules, each after those that it needs. Writes the tree's own index of dependencies, too, which
/// the guest's `modprobe` reads later.
pub fn in_order(root: &Path, kernel: &str) -> Result<Vec<PathBuf>> {
    let root = root.display().to_string();
    run(&["depmod", "-b", &root, kernel])?;
    let mut files: Vec<PathBuf> = Vec::new();
    for module in WANTED {
        for line in run(&["modprobe", "-d", &root, "-S", kernel, "--show-depends", module])?.lines() {
            let Some(path) = line.strip_prefix("insmod ").map(|rest| PathBuf::from(rest.trim())) else { continue };
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// What a module file holds, uncompressed: newer releases of Debian keep them in xz.
pub fn content(file: &Path) -> Result<Vec<u8>> {
    if file.extension().is_some_and(|kind| kind == "xz") {
        let out = Command::new("xz").args(["-dc"]).arg(file).output().context("cannot run xz")?;
        ensure!(out.status.success(), "xz cannot read {}", file.display());
        return Ok(out.stdout);
    }
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn run(words: &[&str]) -> Result<String> {
    let program = crate::need::find_program(words[0]).with_context(|| format!("no program `{}`", words[0]))?;
    let out = Command::new(program).args(&words[1..]).output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "`{}` ended with {}: {}", words.join(" "), out.status, said.trim());
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
