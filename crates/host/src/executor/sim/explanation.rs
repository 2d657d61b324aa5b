//! What a cell leaves that explains its times: the instructions that a plugin of QEMU's has
//! counted, what the clocks of its phases showed, and the symbols of its kernel. The cell is the
//! same without it: the plugin only looks, and the symbols come when all is over.

use super::region::{RECORDS, Region};
use crate::executor::vm::{Guest, SYMBOLS_ASKED, SYMBOLS_ASKED_AT, plugin_of};
use anyhow::{Context, Result};
use pickfs_core::protocol::{PhaseClock, Say};
use std::path::{Path, PathBuf};

/// The files of a cell in the folder of explanations.
pub(crate) struct Files {
    profile: PathBuf,
    said: PathBuf,
    symbols: PathBuf,
}

impl Files {
    pub(crate) fn of(folder: &Path, cell: &str) -> Files {
        let file = |kind: &str| folder.join(format!("{cell}.{kind}"));
        Files { profile: file("profile"), said: file("said"), symbols: file("symbols") }
    }

    /// Asks the guest for its symbols. Returns the plugin, and where it is to write.
    pub(crate) fn ask(&self, guest: &Guest, records: &Region) -> Result<(PathBuf, PathBuf)> {
        let plugin = guest.driver.as_deref().map(plugin_of).filter(|plugin| plugin.is_file());
        let plugin = plugin.with_context(|| {
            format!(
                "there is no QEMU plugin next to the driver of {}; compile `profile.c` of `pickfs disk driver`",
                guest.name
            )
        })?;
        records.write_at(SYMBOLS_ASKED, RECORDS - SYMBOLS_ASKED_AT)?;
        Ok((plugin, self.profile.clone()))
    }

    /// Out of a machine that has ended.
    pub(crate) fn take(&self, records: &Region) -> Result<()> {
        for (file, at) in [(&self.said, 0), (&self.symbols, RECORDS / 2)] {
            std::fs::write(file, records.text_at(at)?).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
}

/// What explains the times of a cell.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// As `profile.c` has written it.
    pub profile: String,
    /// In their order, each of a clock that the profile counts.
    pub clocks: Vec<PhaseClock>,
    /// As /proc/kallsyms shows them.
    pub symbols: String,
}

impl Explanation {
    /// That of a cell, from the folder that [`super::Sim::explaining`] was given.
    pub fn read(folder: &Path, cell: &str) -> Result<Explanation> {
        let files = Files::of(folder, cell);
        let text =
            |file: &Path| std::fs::read_to_string(file).with_context(|| format!("the cell left no {}", file.display()));
        let clock = |line: &str| match serde_json::from_str(line) {
            Ok(Say::Clock(clock)) => Some(*clock),
            _ => None,
        };
        let clocks = text(&files.said)?.lines().filter_map(clock).collect();
        Ok(Explanation { profile: text(&files.profile)?, clocks, symbols: text(&files.symbols)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::sys::mark::Mark;

    /// What the agent executes, and what the plugin looks for.
    #[test]
    fn marks_have_the_same_numbers_in_the_agent_and_in_the_plugin() {
        let source = include_str!("mark.h");
        let phase = Mark::WorkBegins as u32 & 0xffff_ff00;
        assert!(source.contains(&format!("#define MARK_PHASE {phase:#010x}\n")), "{phase:#x}");
        let values =
            [Mark::WorkBegins, Mark::WorkEnds, Mark::SyncBegins, Mark::SyncEnds].map(|mark| mark as u32 - phase);
        assert_eq!(values, [1, 2, 3, 4]);
        assert!(source.contains("enum { WORK_BEGINS = 1, WORK_ENDS, SYNC_BEGINS, SYNC_ENDS };"));
    }

    #[test]
    fn what_a_cell_left_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = PhaseClock { phase: "write".into(), returned_ns: 7, ..PhaseClock::default() };
        let said = serde_json::to_string(&Say::Clock(Box::new(clock.clone()))).expect("JSON");
        let records =
            Region::disk(&folder.path().join("records"), "it", RECORDS, &super::super::region::at_once(RECORDS));
        let records = records.expect("a region");
        records.write_at(format!("{{\"phase\":\"write\"}}\n{said}\n").as_bytes(), 0).expect("written");
        records.write_at("s".repeat(3 << 20).as_bytes(), RECORDS / 2).expect("written");
        let files = Files::of(folder.path(), "a");
        files.take(&records).expect("taken");
        assert!(Explanation::read(folder.path(), "a").is_err(), "QEMU has written no profile");
        std::fs::write(&files.profile, "end\n").expect("written");
        let found = Explanation::read(folder.path(), "a").expect("read");
        assert_eq!((found.clocks, found.symbols.len(), found.profile.as_str()), (vec![clock], 3 << 20, "end\n"));
    }
}
