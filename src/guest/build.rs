//! Makes a guest without root: Debian's packages unpacked by mmdebstrap, and packed again as a squashfs.
//!
//! Packages are only unpacked; none of their scripts is run, as that would need a root of its own. What the scripts of
//! a few would have made, the guest's init makes.

use super::modules;
use super::recipe::Recipe;
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// What no measurement needs and makes most of a root's size.
const LEFT_OUT: &[&str] = &[
    "boot",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "var/cache",
    "var/lib/apt",
    "lib/modules/*/kernel/sound",
    "lib/modules/*/kernel/net",
    "lib/modules/*/kernel/drivers/gpu",
    "lib/modules/*/kernel/drivers/net",
    "lib/modules/*/kernel/drivers/media",
    "lib/modules/*/kernel/drivers/infiniband",
    "lib/modules/*/kernel/drivers/usb",
    "lib/modules/*/kernel/drivers/staging",
    "lib/modules/*/kernel/drivers/iio",
    "lib/modules/*/kernel/drivers/hid",
    "lib/modules/*/kernel/drivers/input",
];

/// Into a folder beside it, which gets its name when all is there.
pub fn build(recipe: &Recipe, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    let partial = folder.with_extension("partial");
    let _ = std::fs::remove_dir_all(&partial);
    std::fs::create_dir_all(&partial).with_context(|| format!("cannot make {}", partial.display()))?;
    let made = fill(recipe, &partial, say);
    if made.is_err() {
        let _ = std::fs::remove_dir_all(&partial);
        return made;
    }
    std::fs::rename(&partial, folder).with_context(|| format!("cannot name {}", folder.display()))
}

fn fill(recipe: &Recipe, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    let root = folder.join("root");
    say(&format!("fetching {} packages of Debian {}", recipe.packages.len(), recipe.release));
    unpack(recipe, folder, &root)?;
    say("finding the kernel and its modules");
    take_kernel(folder, &root)?;
    say("packing the root");
    pack(folder, &root)?;
    std::fs::write(folder.join("recipe"), recipe.text())?;
    let manifest = manifest(&root)?;
    std::fs::remove_dir_all(&root).context("cannot remove what was unpacked")?;
    Ok(std::fs::write(folder.join("manifest"), manifest)?)
}

fn unpack(recipe: &Recipe, folder: &Path, root: &Path) -> Result<()> {
    let packages: Vec<&str> = recipe.packages.iter().map(String::as_str).collect();
    let archive = folder.join("root.tar");
    let include = format!("--include={}", packages.join(","));
    let words: [OsString; 8] = [
        "mmdebstrap".into(),
        "--quiet".into(),
        // The packages themselves, which tell their versions.
        "--skip=cleanup/apt/cache".into(),
        "--variant=extract".into(),
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr".into(),
        include.into(),
        recipe.release.into(),
        archive.clone().into(),
    ];
    run(&words, Some(folder))?;
    std::fs::create_dir(root)?;
    // Device nodes only root can make; a guest has its own.
    let words = ["tar", "-x", "--exclude=./dev/*", "-f"].map(OsString::from);
    run(&[words.as_slice(), &[archive.clone().into(), "-C".into(), root.into()]].concat(), None)?;
    Ok(std::fs::remove_file(archive)?)
}

fn take_kernel(folder: &Path, root: &Path) -> Result<()> {
    let release = kernel_release(root)?;
    std::fs::copy(root.join("boot").join(format!("vmlinuz-{release}")), folder.join("vmlinuz"))?;
    let modules = folder.join("modules");
    std::fs::create_dir(&modules)?;
    let mut order = String::new();
    for file in modules::in_order(root, &release)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(".xz").to_string();
        std::fs::write(modules.join(&name), modules::content(&file)?)?;
        order.push_str(&name);
        order.push('\n');
    }
    Ok(std::fs::write(folder.join("modules.order"), order)?)
}

fn kernel_release(root: &Path) -> Result<String> {
    let entries = std::fs::read_dir(root.join("boot")).context("no folder boot: the kernel's package has none")?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut releases: Vec<String> = names.filter_map(|name| Some(name.strip_prefix("vmlinuz-")?.to_string())).collect();
    releases.sort();
    releases.pop().context("no kernel in boot")
}

fn pack(folder: &Path, root: &Path) -> Result<()> {
    let mut words: Vec<OsString> = vec!["mksquashfs".into(), root.into(), folder.join("root.squashfs").into()];
    // Fast to unpack, which an emulated processor does slowly.
    words.extend(["-quiet", "-no-progress", "-all-root", "-comp", "lz4", "-wildcards", "-e"].map(OsString::from));
    words.extend(LEFT_OUT.iter().map(OsString::from));
    run(&words, None)
}

/// "package version" of all that is in it, by the names of the packages' files.
fn manifest(root: &Path) -> Result<String> {
    let entries = std::fs::read_dir(root.join("var/cache/apt/archives")).context("no packages in apt's cache")?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut lines: Vec<String> = names.filter_map(|name| versioned(&name)).collect();
    lines.sort();
    Ok(lines.concat())
}

/// `e2fsprogs_1%3a1.47.0-2_amd64.deb`: the colon of an epoch is escaped.
fn versioned(name: &str) -> Option<String> {
    let mut parts = name.strip_suffix(".deb")?.split('_');
    let (package, version) = (parts.next()?, parts.next()?);
    Some(format!("{package} {}\n", version.replace("%3a", ":")))
}

fn run(words: &[OsString], temporary: Option<&Path>) -> Result<()> {
    let shown: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let program = crate::need::find_program(&shown[0]).with_context(|| format!("no program `{}`", shown[0]))?;
    let mut command = Command::new(program);
    command.args(&words[1..]).env("LC_ALL", "C");
    temporary.iter().for_each(|folder| {
        command.env("TMPDIR", folder);
    });
    let out = command.output().with_context(|| format!("cannot run {}", shown[0]))?;
    let said = String::from_utf8_lossy(&out.stderr);
    let last: Vec<&str> = said.lines().rev().take(3).collect();
    ensure!(out.status.success(), "`{}` ended with {}: {}", shown.join(" "), out.status, last.join(" / "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names_of_files() {
        assert_eq!(versioned("e2fsprogs_1%3a1.47.0-2_amd64.deb").as_deref(), Some("e2fsprogs 1:1.47.0-2\n"));
        assert_eq!(versioned("lock"), None);
    }
}
