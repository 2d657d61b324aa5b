//! Kernel modules that a guest needs before it can see its root: which, and in which order.

use anyhow::{Context, Result, ensure};
use pickfs_system::process::argv;
use pickfs_system::process::run_program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// For disks of every bus, the port of the agent, and the root.
const WANTED: &[&str] =
    &["virtio_pci", "virtio_blk", "virtio_console", "virtio_scsi", "sd_mod", "ahci", "nvme", "squashfs", "overlay"];

/// Files of a tree of modules, each after the ones that it needs. Writes the tree's own index of
/// dependencies, too, which the guest's `modprobe` reads later.
pub(crate) fn in_order(root: &Path, kernel: &str) -> Result<Vec<PathBuf>> {
    let root = root.display().to_string();
    run_program(&argv(["depmod", "-b", &root, kernel]))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for module in WANTED {
        let asked = argv(["modprobe", "-d", &root, "-S", kernel, "--show-depends", module]);
        for line in run_program(&asked)?.lines() {
            let Some(path) = line.strip_prefix("insmod ").map(|rest| PathBuf::from(rest.trim())) else { continue };
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// What a module file holds, uncompressed: Debian keeps them in xz since trixie, others in zstd.
pub(crate) fn content(file: &Path) -> Result<Vec<u8>> {
    let unpacker = match file.extension().and_then(|kind| kind.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return std::fs::read(file).with_context(|| format!("cannot read {}", file.display())),
    };
    let out = Command::new(unpacker).arg("-dc").arg(file).output();
    let out = out.with_context(|| format!("cannot run {unpacker}; install it to unpack {}", file.display()))?;
    ensure!(out.status.success(), "{unpacker} cannot read {}", file.display());
    Ok(out.stdout)
}

/// `ext4.ko` of `.../fs/ext4/ext4.ko.xz`.
pub(crate) fn plain_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    [".xz", ".zst"].iter().find_map(|kind| name.strip_suffix(kind)).unwrap_or(&name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_read_however_they_are_packed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.ko");
        std::fs::write(&file, "a module, as it were").expect("written");
        assert_eq!(content(&file).expect("read"), b"a module, as it were");
        for (packer, kind) in [("xz", "xz"), ("zstd", "zst")] {
            let Ok(packed) = Command::new(packer).arg("-c").arg(&file).output() else {
                pickfs_test_support::not_run(format!("there is no {packer} here"));
                continue;
            };
            let packed_file = folder.path().join(format!("a.ko.{kind}"));
            std::fs::write(&packed_file, packed.stdout).expect("written");
            assert_eq!(content(&packed_file).expect("read"), b"a module, as it were", "{kind}");
        }
        let names = ["x/ext4.ko", "x/ext4.ko.xz", "x/ext4.ko.zst"].map(|name| plain_name(Path::new(name)));
        assert_eq!(names, ["ext4.ko", "ext4.ko", "ext4.ko"]);
    }
}
