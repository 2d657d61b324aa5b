//! A root file system on the target, from the start of the kernel to a ready user space.
//!
//! The system is the guest's own Debian with systemd, udev and D-Bus, copied to the target. It is
//! booted once untimed, which sets up what packages leave to the first boot, and then for the
//! phase, each time in its own machine.

use crate::stack::{Argv, argv};
use crate::stage::{Program, Stage};
use crate::workload::settings::{Text, Texts, settings};
use crate::workload::{Description, Workload, described, programs, text};
use anyhow::{Context, Result};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use pickfs_system::units::show_duration;
use std::fs::{create_dir_all, write};
use std::path::Path;

pub(crate) struct Boot;

settings! {
    System {
        ready: Text = "multi-user.target",
            "unit of systemd with which the system is ready; it is what the machine boots into";
        services: Texts = "[]",
            "programs of more services that the system starts, as PROGRAM or PROGRAM=PACKAGE, such as \"cron\" or \
             \"sshd=openssh-server\"";
    }
}

/// Files that the scripts of packages, which were not run, would have made, and the first boot does
/// not make.
const FILES: [(&str, &str); 5] = [
    ("etc/fstab", ""),
    ("etc/hostname", "pickfs\n"),
    // With one, no boot is the first; all machines that are compared have the same.
    ("etc/machine-id", "70696370696370696370696370696370\n"),
    ("etc/sysusers.d/pickfs.conf", "u messagebus - \"System Message Bus\"\n"),
    ("etc/default/locale", "LANG=C.UTF-8\n"),
];

impl Workload for Boot {
    fn description(&self) -> &'static Description {
        described!("boot.toml", System::ROWS)
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let named = |text: String| {
            let (name, package) = text.split_once('=').unwrap_or((&text, &text));
            Need::Named { name: name.into(), package: Some(package.into()) }
        };
        let services = System::of(settings).services.into_iter().map(named);
        programs(self.description().programs).into_iter().chain(services).collect()
    }

    fn versions(&self, _settings: &Settings) -> Vec<(&'static str, Argv)> {
        vec![("systemd", argv(["systemctl", "--version"]))]
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let ready = System::of(settings).ready;
        let is_unit = |name: &str| {
            let (stem, kind) = name.rsplit_once('.').unwrap_or_default();
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_@".contains(letter);
            !stem.is_empty() && stem.chars().all(plain) && kind == "target"
        };
        let message = || format!("`{}` is no target of systemd", ready.escape_debug());
        let remedy = "name one, such as ready = \"multi-user.target\" or \"basic.target\"";
        if is_unit(&ready) { Vec::new() } else { vec![Objection::new("ready", message(), remedy)] }
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let ready = System::of(settings).ready;
        stage.lay_out("laying out a system", |stage| lay_out(stage, &ready))?;
        let first = stage.boot_aside(&ready).context("the first boot, which is not timed")?;
        stage.fact("first boot", &format!("{}, not timed", show_duration(first.ready_ns as f64)));
        for _ in stage.repeats() {
            stage.boot("boot", &ready)?;
        }
        Ok(())
    }
}

/// The guest's own root, and what makes it a system that can be booted.
fn lay_out(stage: &mut Stage, ready: &str) -> Result<()> {
    let root = stage.root();
    let at = text(&root);
    stage.run(&Program::new(["cp", "-a", "--one-file-system", "/.", &at]))?;
    FILES.iter().try_for_each(|(path, content)| file(&root, path, content))?;
    let systemctl = |words: &[&str]| Program::new(["systemctl", "--root", &at].iter().chain(words).copied());
    // As it would be at a first boot: what distributions enable by themselves.
    stage.run(&systemctl(&["preset-all"]))?;
    stage.run(&systemctl(&["set-default", ready])).map(drop)
}

fn file(root: &Path, path: &str, content: &str) -> Result<()> {
    let path = root.join(path);
    path.parent().map(create_dir_all).transpose()?;
    write(&path, content).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        serde_json::from_str(text).expect("settings")
    }

    #[test]
    fn services_are_programs_with_their_packages() {
        let needs = Boot.needs(&settings(r#"{"services": ["cron", "sshd=openssh-server"]}"#));
        let packages: Vec<String> = needs.into_iter().filter_map(Need::package).collect();
        let wanted = ["coreutils", "systemd", "systemd-sysv", "udev", "dbus", "cron", "openssh-server"];
        assert_eq!(packages, wanted);
    }

    #[test]
    fn only_a_target_of_systemd_can_be_ready() {
        let rows = [("multi-user.target", 0), ("basic.target", 0), ("ssh.service", 1), ("", 1), ("../x.target", 1)];
        for (ready, wanted) in rows {
            let found = Boot.objections(&settings(&format!(r#"{{"ready": "{ready}"}}"#)));
            assert_eq!(found.len(), wanted, "{ready}");
        }
        assert!(Boot.objections(&Settings::default()).is_empty());
    }
}
