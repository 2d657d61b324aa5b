//! Modules of the guest's kernel: some come before its root; modules of file systems and layers are
//! loaded once before a machine is saved. Checking their signatures and linking them took a third
//! to a half of all that a simulated cell executed apart from its work.

use super::PATH;
use anyhow::{Context, Result, bail};
use pickfs_core::protocol::GUEST_FACTS;
use serde_json::json;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// Names of files, one a line.
const FIRST: &str = "order";
/// Names that modprobe takes, one a line.
const OF_CELLS: &str = "of-cells";

fn listed(list: &str) -> String {
    std::fs::read_to_string(Path::new("/modules").join(list)).unwrap_or_default()
}

pub(super) fn load_first() -> Result<()> {
    for name in listed(FIRST).lines() {
        let file = File::open(Path::new("/modules").join(name)).with_context(|| format!("no module {name}"))?;
        match rustix::system::finit_module(&file, c"", 0) {
            // Built into this kernel, or loaded already.
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => bail!("cannot load {name}: {error}"),
        }
    }
    Ok(())
}

/// To be asked for while the first root is in sight.
pub(super) fn of_cells() -> String {
    listed(OF_CELLS)
}

/// A module that is not there, or does not load, is missed by the targets that need it, where mount
/// or mkfs says so. The facts of each cell have what the kernel shows afterwards.
pub(super) fn load(names: &str) -> Result<()> {
    let Ok(said) = Command::new("modprobe").arg("-a").args(names.lines()).env("PATH", PATH).output() else {
        return Ok(());
    };
    let said = String::from_utf8_lossy(&said.stderr);
    let refused: Vec<&str> = said.lines().filter(|line| !line.contains("not found in directory")).collect();
    let registered = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let loaded: Vec<&str> = names.lines().filter(|name| is_loaded(name, &registered)).collect();
    let mut facts = json!({ "modules loaded before": loaded.join(" ") });
    if !refused.is_empty() {
        facts["modules that do not load"] = refused.join("; ").into();
    }
    std::fs::write(GUEST_FACTS, facts.to_string()).context("cannot write down which modules are loaded")
}

fn is_loaded(name: &str, registered: &str) -> bool {
    match name.strip_prefix("fs-") {
        Some(kind) => registered.lines().any(|line| line.split('\t').next_back() == Some(kind)),
        None => Path::new("/sys/module").join(name.replace('-', "_")).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_loaded_when_the_kernel_has_it_by_its_whole_name() {
        let registered = "nodev\tproc\n\text4\n\tfuseblk\n";
        for (name, wanted) in [("fs-ext4", true), ("fs-proc", true), ("fs-fuse", false), ("fs-xt4", false)] {
            assert_eq!(is_loaded(name, registered), wanted, "{name}");
        }
        assert!(!is_loaded("no-such-module", registered));
    }
}
