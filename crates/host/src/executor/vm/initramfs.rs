//! The first root of a guest: this program, its libraries, and the modules that come before the
//! guest's own root.

use super::build::{Guest, Initramfs};
use anyhow::{Context, Result};
use pickfs_system::process::OWN_FILE;
use std::path::{Path, PathBuf};
use std::process::Command;

/// This program, its libraries, and the modules that come before the root.
/// `of_cells` are names of modules that a machine loads before it is saved.
pub(crate) fn write(path: &Path, guest: &Guest, of_cells: &[&str]) -> Result<()> {
    let program = std::fs::read(OWN_FILE).context("cannot read this program's own file")?;
    let mut made = Initramfs::create(path)?;
    let mut order = String::new();
    for module in guest.modules()? {
        let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
        made.file(&format!("modules/{name}"), &std::fs::read(&module)?)?;
        order.push_str(&format!("{name}\n"));
    }
    made.file("modules/order", order.as_bytes())?;
    made.file("modules/of-cells", of_cells.join("\n").as_bytes())?;
    for (at, file) in libraries()? {
        let content = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let kept =
            if at.contains("ld-linux") { "agent/loader".to_string() } else { format!("agent/lib/{}", base(&at)) };
        made.file(&kept, &content)?;
        made.link(&at, &format!("/{kept}"))?;
    }
    made.file("agent/start", &program)?;
    made.link("init", "/agent/start")?;
    made.finish()
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Where this program's loader looks for each library, and the file; none for a static program.
fn libraries() -> Result<Vec<(String, PathBuf)>> {
    // ldd would take the kernel's link for itself.
    let own = format!("/proc/{}/exe", std::process::id());
    let out = Command::new("ldd").arg(own).output().context("cannot run ldd")?;
    let said = String::from_utf8_lossy(&out.stdout);
    let paths = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(|path| (path.to_string(), PathBuf::from(path))).collect())
}
