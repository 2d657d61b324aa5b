//! Makes a guest without root: Debian's packages unpacked by mmdebstrap, and packed again as a
//! squashfs.
//!
//! Packages are only unpacked; none of their scripts is run, as that would need its own root, and
//! none of their programs either: those of another release may not even start here. What the
//! scripts of a few would have made, the guest's init makes.

use super::modules;
use super::stoppable;
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// What no measurement needs and makes most of a root's size.
const LEFT_OUT: &[&str] = &[
    "boot/*",
    // A guest's devices are its kernel's.
    "dev/*",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "var/cache",
    "var/lib/apt",
    "var/log/*",
    "usr/lib/modules/*/vmlinuz",
    "usr/lib/modules/*/kernel/sound",
    // Shares and a shaped network take these alone.
    "usr/lib/modules/*/kernel/net/!(9p|dns_resolver|sched|sunrpc)",
    "usr/lib/modules/*/kernel/drivers/gpu",
    "usr/lib/modules/*/kernel/drivers/net",
    "usr/lib/modules/*/kernel/drivers/media",
    "usr/lib/modules/*/kernel/drivers/infiniband",
    "usr/lib/modules/*/kernel/drivers/usb",
    "usr/lib/modules/*/kernel/drivers/staging",
    "usr/lib/modules/*/kernel/drivers/iio",
    "usr/lib/modules/*/kernel/drivers/hid",
    "usr/lib/modules/*/kernel/drivers/input",
];

pub(super) const MODULES: &str = "usr/lib/modules";

/// The one that mmdebstrap takes by itself.
const MIRROR: &str = "http://deb.debian.org/debian";

/// As every release since bookworm has it, and as the kernel's modules are looked for in all of
/// them.
const MERGED_USR: &str = "mkdir -p \"$1/usr/bin\" \"$1/usr/sbin\" \"$1/usr/lib\" \"$1/usr/lib64\" && \
    ln -s usr/bin usr/sbin usr/lib usr/lib64 \"$1\"";

/// Options of apt on this machine for reaching and trusting its archive; a guest needs the same.
const APT_OPTIONS: &[&str] = &["Acquire::Check-Valid-Until", "Acquire::http::Proxy", "Acquire::https::Proxy"];

/// Those of the packages that the release has, with all that they need. Of further suites apt takes
/// only what the release has not, if they are like experimental: their Release file says
/// `NotAutomatic` (apt_preferences(5)).
pub(super) fn unpack(
    release: &str,
    suites: &[&str],
    components: &str,
    packages: &[String],
    temporary: &Path,
    root: &Path,
) -> Result<()> {
    // A pattern, as apt takes what there is of it: not every release has every tool.
    let names: Vec<String> = packages.iter().map(|name| format!("?exact-name({name})")).collect();
    let mut words: Vec<OsString> = vec![
        // Without `--quiet`, which hides why apt failed.
        "mmdebstrap".into(),
        // Nothing is run in it, and no privileges are needed.
        "--mode=chrootless".into(),
        // The packages themselves, which tell their versions.
        "--skip=cleanup/apt/cache".into(),
        "--variant=extract".into(),
        "--format=directory".into(),
        format!("--components={components}").into(),
        format!("--setup-hook={MERGED_USR}").into(),
    ];
    words.extend(suites.iter().map(|suite| OsString::from(format!("--setup-hook={}", source_of(suite)))));
    words.push(format!("--include=?and(?version(.),?or({}))", names.join(",")).into());
    words.extend(host_apt_options()?.iter().map(|line| format!("--aptopt={line}").into()));
    words.extend([release.into(), root.into()]);
    run(&words, Some(temporary)).map(drop)
}

/// Has apt look there as well.
fn source_of(suite: &str) -> String {
    format!("echo 'deb {MIRROR} {suite} main' > \"$1/etc/apt/sources.list.d/{suite}.list\"")
}

fn host_apt_options() -> Result<Vec<String>> {
    let said = run(&["apt-config".into(), "dump".into()], None)?;
    let wanted = |line: &&str| line.split_whitespace().next().is_some_and(|key| APT_OPTIONS.contains(&key));
    Ok(said.lines().filter(wanted).map(|line| line.trim_end_matches(';').to_string()).collect())
}

pub(super) fn take_kernel(folder: &Path, root: &Path) -> Result<()> {
    let release = kernel_release(root)?;
    let beside_modules = root.join(MODULES).join(&release).join("vmlinuz");
    let in_boot = root.join("boot").join(format!("vmlinuz-{release}"));
    let kernel = if in_boot.exists() { in_boot } else { beside_modules };
    std::fs::copy(&kernel, folder.join("vmlinuz")).with_context(|| format!("no kernel {}", kernel.display()))?;
    let modules = folder.join("modules");
    std::fs::create_dir(&modules)?;
    let mut order = String::new();
    for file in modules::in_order(root, &release)? {
        let name = modules::plain_name(&file);
        std::fs::write(modules.join(&name), modules::content(&file)?)?;
        order.push_str(&name);
        order.push('\n');
    }
    Ok(std::fs::write(folder.join("modules.order"), order)?)
}

pub(super) fn kernel_release(root: &Path) -> Result<String> {
    let entries =
        std::fs::read_dir(root.join(MODULES)).context("no kernel's modules: the kernel's package has none")?;
    let mut releases: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    releases.sort();
    releases.pop().context("no kernel's modules")
}

pub(super) fn pack(folder: &Path, root: &Path) -> Result<()> {
    let mut words: Vec<OsString> = vec!["mksquashfs".into(), root.into(), folder.join("root.squashfs").into()];
    // Fast to unpack, which an emulated processor does slowly.
    words.extend(["-quiet", "-no-progress", "-all-root", "-comp", "lz4", "-wildcards", "-e"].map(OsString::from));
    words.extend(LEFT_OUT.iter().map(OsString::from));
    run(&words, Some(folder)).map(drop)
}

/// Of a package in a [`manifest`].
pub(super) fn version_of<'m>(manifest: &'m str, package: &str) -> Option<&'m str> {
    manifest.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix(' '))
}

/// "package version" of all that is in it, by the names of the packages' files.
pub(super) fn manifest(root: &Path) -> Result<String> {
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

/// What a build runs carries this in its environment.
pub(super) fn mark(temporary: &Path) -> String {
    format!("TMPDIR={}", temporary.display())
}

fn run(words: &[OsString], temporary: Option<&Path>) -> Result<String> {
    let shown: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let program = pickfs_system::need::find_program(&shown[0]).with_context(|| format!("no program `{}`", shown[0]))?;
    let mut command = Command::new(program);
    command.args(&words[1..]).env("LC_ALL", "C");
    temporary.iter().for_each(|folder| {
        command.env("TMPDIR", folder);
    });
    let out = stoppable::output(&mut command).with_context(|| format!("cannot run {}", shown[0]))?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "`{}` ended with {}: {}", shown.join(" "), out.status, causes(&said));
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The first lines of errors if there are any, as others follow from them, else the last lines.
fn causes(said: &str) -> String {
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("E: ")).take(3).collect();
    let last = || said.lines().skip(said.lines().count().saturating_sub(3)).collect();
    let lines: Vec<&str> = if errors.is_empty() { last() } else { errors };
    lines.join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names_of_files() {
        assert_eq!(versioned("e2fsprogs_1%3a1.47.0-2_amd64.deb").as_deref(), Some("e2fsprogs 1:1.47.0-2\n"));
        assert_eq!(versioned("lock"), None);
    }

    #[test]
    fn what_went_wrong_is_picked_out() {
        let said = "I: going\nGet:1 of 7\nE: Release file is expired\nI: removing\nE: failed to run\n";
        assert_eq!(causes(said), "E: Release file is expired / E: failed to run");
        assert_eq!(causes("E: 404 a\nE: 404 b\nE: 404 c\nE: failed to run\n"), "E: 404 a / E: 404 b / E: 404 c");
        assert_eq!(causes("a\nb\nc\nd"), "b / c / d");
    }
}
