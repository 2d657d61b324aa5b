//! What is a run's own: an undo that names anything else comes from a journal that was tampered
//! with or damaged.

use crate::stack::recipe::is_setting_of_runs;
use crate::stack::take_down::{Named, TakeDown};
use crate::stack::{Place, take_downs};
use pickfs_core::journal::{Made, Undo, is_run_id};
use pickfs_core::protocol::SIMULATED_RUN;
use pickfs_system::process::{DAEMON_MARK, RUN_MARK};
use pickfs_system::sys::devices::resolved;
use std::path::{Component, Path, PathBuf};

/// More than any plan has layers.
const MOST_LAYERS: usize = 64;

/// The run whose steps are taken back.
pub(crate) struct Own<'a> {
    /// Its id.
    pub run: &'a str,
    /// Disks that its plan names.
    pub disks: &'a [PathBuf],
    /// How what workloads leave is taken down.
    pub take_downs: &'a [&'static TakeDown],
}

impl Own<'_> {
    /// Twelve hexadecimal digits, as each run gets them, or the one name inside simulated machines:
    /// another word may be part of any name.
    pub(crate) fn is_run(&self) -> bool {
        is_run_id(self.run) || self.run == SIMULATED_RUN
    }

    /// Only what a step of this scope can have asked for: a journal is a file like any other, and
    /// `clean` may be root.
    pub(crate) fn covers(&self, scope: &str, undo: &Undo) -> bool {
        self.is_run()
            && match undo {
                Undo::Unmount(path) => path.parent() == Some(&self.mounts()),
                Undo::RemoveTree(path) => self.is_in_folder(path),
                Undo::DetachLoops(path) => self.is_image(path),
                Undo::RemoveZram(path) => *path == real(&Place::of_run(self.run).memory).join("zram"),
                Undo::Restore { path, value, set } => {
                    let is_setting = |path: &Path| is_plain(path) && is_setting_of_runs(path);
                    is_setting(path) && is_value(value) && set.as_ref().is_none_or(|set| is_setting(&set.path))
                }
                Undo::KillMarked(mark) => {
                    *mark == format!("{RUN_MARK}={}", self.run)
                        || is_cell(scope) && *mark == format!("{DAEMON_MARK}={}", name_of(scope))
                }
                Undo::RemoveMapping(name) => is_of_layer(name, scope),
                Undo::TakeDown(all) => {
                    !all.is_empty() && all.iter().all(|(word, made)| self.is_made_by(scope, word, made))
                }
            }
    }

    /// By a plug-in, in this scope.
    fn is_made_by(&self, scope: &str, word: &str, made: &Made) -> bool {
        let Some(take_down) = self.take_down(word) else { return false };
        let (name, cell) = (made.name(), name_of(scope));
        made.members().iter().all(|member| is_plain(member) && member.starts_with("/dev"))
            && match take_down.named {
                Named::ByCell => is_cell(scope) && name == cell,
                Named::ByLayer(named) => {
                    is_cell(scope) && (0..MOST_LAYERS).any(|layer| named(&format!("{cell}l{layer}")) == name)
                }
                Named::InNote(file) => self.is_in_folder(Path::new(name)) && Path::new(name).ends_with(file),
            }
    }

    pub(super) fn take_down(&self, word: &str) -> Option<&'static TakeDown> {
        take_downs().chain(self.take_downs.iter().copied()).find(|take_down| take_down.word == word)
    }

    /// An image that a backing of this run makes: in its folder, or in its own memory.
    pub(crate) fn is_image(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folder = path.parent().unwrap_or(path);
        let is_own =
            folder.file_name().is_some_and(|name| *name == *self.name()) || folder.parent() == Some(&self.mounts());
        is_plain(path) && is_own && name.starts_with("disk-") && name.ends_with(".img")
    }

    /// At or below a folder that carries the run's name, which no other run has.
    fn is_in_folder(&self, path: &Path) -> bool {
        let own = [self.name(), format!("{}-source", self.name())];
        is_plain(path) && path.components().any(|part| own.iter().any(|own| *part.as_os_str() == **own))
    }

    fn name(&self) -> String {
        format!("pickfs-{}", self.run)
    }

    fn mounts(&self) -> PathBuf {
        real(&Place::of_run(self.run).mounts)
    }
}

/// What drivers name pools and daemons by: unique on this machine.
pub(crate) fn name_of(scope: &str) -> String {
    format!("pickfs{scope}")
}

/// The path without symbolic links: undoing follows none. What the path names itself may be a link,
/// which is meant then.
pub(crate) fn real(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => resolved(above).join(name),
        _ => path.into(),
    }
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The scope of a cell is its id.
fn is_cell(scope: &str) -> bool {
    is_hex(scope, 16)
}

/// `pickfs`, the cell, `l` with the number of the layer, and `d` with that of the device where a
/// layer has several.
fn is_of_layer(name: &str, scope: &str) -> bool {
    let rest = name.strip_prefix(&name_of(scope)).and_then(|rest| rest.strip_prefix('l'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_cell(scope)
        && rest.is_some_and(|rest| match rest.split_once('d') {
            Some((layer, device)) => is_number(layer) && is_number(device),
            None => is_number(rest),
        })
}

fn is_value(value: &str) -> bool {
    (1..=64).contains(&value.len()) && value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}
