//! What an administrator does with a whole file system now and then, and what other programs feel
//! of it: grow and shrink it, share what is there twice, defragment, let it run full, remove, lose
//! a device, trim, check, scrub, balance, count what users take.

mod background_writer;
mod counted;
mod dedup_files;
mod fill;
mod fragmented_files;
mod snapshot_data;
mod tail_files;

use super::content::{Files, Pool};
use super::settings::{Duration as DurationKind, Texts, choice, settings};
use super::{Description, Workload, described, programs};
use crate::stage::phase::*;
use crate::stage::{Program, Stage, Timed, UpkeepPrograms};
use anyhow::{Context, Result};
use background_writer::BackgroundWriter;
use dedup_files::DedupFiles;
use fill::Fill;
use fragmented_files::FragmentedFiles;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use snapshot_data::SnapshotData;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tail_files::TailFiles;

pub(crate) struct Maintenance;

settings! {
    Upkeep {
        operations: Texts = r#"["fill", "remove", "check"]"#,
            "what is done, in the order of the phases: grow, dedup, defrag, snapshot, delete-snapshots, fill, remove, degraded, rebuild, scrub, balance, quota, trim, shrink, check";
        idle: DurationKind = "5s", "how long the other program's writes are timed while nothing else goes on";
    }
}

choice! {
    /// In the order in which they are done.
    Operation {
        Grow = "grow", Dedup = "dedup", Defrag = "defrag", Snapshot = "snapshot",
        DeleteSnapshots = "delete-snapshots", Fill = "fill", Remove = "remove", Degraded = "degraded",
        Rebuild = "rebuild", Scrub = "scrub", Balance = "balance", Quota = "quota", Trim = "trim", Shrink = "shrink", Check = "check",
    }
}

impl Operation {
    fn about(self) -> &'static str {
        match self {
            Operation::Grow => "grown from half of the device to all of it, while mounted",
            Operation::Dedup => "files that are there twice found and shared (duperemove), until their space is free",
            Operation::Defrag => "16 files of 4 MiB that lie in pieces of 16 KiB put together",
            Operation::Snapshot => "a hundred snapshots taken, one after the other",
            Operation::DeleteSnapshots => {
                "all of them deleted, after half of what they hold was written anew, until that is free"
            }
            Operation::Fill => "files of 1 MiB written until none fits, until durable; time and counts of one GiB",
            Operation::Remove => "every second file removed, until durable and its space is free",
            Operation::Degraded => {
                "all files read while one of several devices is missing, mounted anew; time and counts of one GiB"
            }
            Operation::Rebuild => {
                "an empty device taken in the place of the missing one, until all is there again; of one GiB"
            }
            Operation::Scrub => {
                "all data read and compared with their checksums, while mounted; of one GiB where files were written"
            }
            Operation::Balance => "all data and metadata written anew to other places, while mounted",
            Operation::Quota => "quota switched on, until all that is there is counted",
            Operation::Trim => "all free space discarded (fstrim; zpool trim of zfs)",
            Operation::Shrink => "made half as large, with files where it is cut off",
            Operation::Check => "unmounted, checked without repair, mounted",
        }
    }

    fn phase(self) -> Phase {
        let (starts, until) = match self {
            Operation::Check => (Cold, Durable),
            Operation::Grow => (Fresh, Durable),
            Operation::Degraded => (Warm, Returned),
            _ => (Warm, Durable),
        };
        Phase::new(self.word(), self.about(), starts, AnyRead, until)
    }
}

const IDLE: &str = "idle";
const FILE: usize = 1 << 20;
const GIB: f64 = (1 << 30) as f64;
/// Bytes of each class of content.
const OF_EACH_CLASS: usize = 4 << 20;
/// The share of what was removed that must be free again; metadata may keep some.
const GIVEN_BACK: f64 = 0.9;
/// For the space to be free again, and between two looks whether it is.
const AT_MOST: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(10);

impl Workload for Maintenance {
    fn description(&self) -> &'static Description {
        described!("maintenance.toml", Upkeep::ROWS)
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let idle = Phase::new(IDLE, "only the other program's writes", Warm, AllData, Durable).only_shown();
        std::iter::once(idle).chain(operations(settings).into_iter().map(Operation::phase)).collect()
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let programs_of = |operation| match operation {
            Operation::Dedup => programs(&[("duperemove", "duperemove")]),
            Operation::Degraded => programs(&[("shred", "coreutils")]),
            Operation::Trim => programs(&[("fstrim", "util-linux")]),
            _ => Vec::new(),
        };
        operations(settings).into_iter().flat_map(programs_of).collect()
    }

    fn upkeep(&self, settings: &Settings) -> Vec<&'static str> {
        let own = [Operation::DeleteSnapshots, Operation::Fill, Operation::Remove];
        operations(settings).into_iter().filter(|one| !own.contains(one)).map(Operation::word).collect()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let given = Upkeep::of(settings).operations;
        let known = Operation::WORDS.join(", ");
        let unknown = given.iter().find(|name| !Operation::WORDS.contains(&name.as_str()));
        let wrong = match (unknown, given.is_empty()) {
            (Some(name), _) => Some(format!("`{name}` is no operation")),
            (None, true) => Some("there is nothing to be done".to_string()),
            (None, false) => None,
        };
        let has = |name: &str| given.iter().any(|given| given == name);
        let follow = [
            ("snapshot", "delete-snapshots", "holds what other operations want to free"),
            ("delete-snapshots", "snapshot", "deletes the snapshots that `snapshot` has taken"),
            ("remove", "fill", "removes what `fill` has written"),
            ("rebuild", "degraded", "replaces the device that `degraded` has taken away"),
        ];
        let lacking = follow.iter().find(|(name, after, _)| has(name) && !has(after));
        let lacking = lacking.map(|(name, after, why)| format!("`{name}` {why}, and there is no `{after}`"));
        let apart = [
            ("fill", "degraded", "a full file system may have no room to be rebuilt in"),
            ("fill", "shrink", "what has filled a file system may not fit into half of it"),
            ("degraded", "shrink", "both write files over much of the device"),
        ];
        let both = apart.iter().find(|(one, other, _)| has(one) && has(other));
        let full = both.map(|(one, other, why)| format!("`{one}` and `{other}` need separate works: {why}"));
        let remedy = format!("use some of {known}");
        wrong.or(lacking).or(full).map(|message| Objection::new("operations", message, &remedy)).into_iter().collect()
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let idle = Upkeep::of(settings).idle;
        let pool = stage.check("making content", || Ok(Pool::new(3, OF_EACH_CLASS)))?;
        let all = operations(settings);
        if all.contains(&Operation::Grow) {
            stage.halve()?;
        }
        let other = BackgroundWriter { path: stage.root().join("other"), pool: &pool, refused: AtomicU64::new(0) };
        stage.lay_out("laying out the other program's file", |_| other.lay_out())?;
        stage.phase(IDLE, |p| other.beside(p, |p, failed| p.until(idle, PAUSE, || Ok(failed())).map(drop)))?;
        let mut work = Work::new(stage.root(), &pool);
        for operation in all {
            work.prepare(stage, operation)?;
            let programs = stage.upkeep(operation.word());
            // btrfs of Linux 6.18 does not replace a missing device while another program syncs:
            // docs/maintenance.md.
            let beside =
                operation != Operation::Rebuild && programs.as_ref().is_none_or(|programs| programs.is_mounted);
            stage.phase(operation.word(), |p| {
                if beside {
                    other.beside(p, |p, _| work.operate(p, operation, programs.as_ref()))
                } else {
                    work.operate(p, operation, programs.as_ref())
                }
            })?;
            work.look_back(stage, operation, programs.as_ref())?;
        }
        stage.check("reading back what is there", || work.verify())
    }
}

/// The files that operations are done on.
struct Work<'a> {
    pool: &'a Pool,
    fill: Fill<'a>,
    twice: Option<DedupFiles>,
    pieces: Option<FragmentedFiles<'a>>,
    held: Option<SnapshotData<'a>>,
    cut: Option<TailFiles<'a>>,
}

impl<'a> Work<'a> {
    fn new(root: PathBuf, pool: &'a Pool) -> Work<'a> {
        Work {
            pool,
            fill: Fill {
                files: Files { folder: root.join("fill"), size: FILE, count: 0, pool },
                root,
                room: [0; 2],
                commit: None,
            },
            twice: None,
            pieces: None,
            held: None,
            cut: None,
        }
    }

    /// Lays out what an operation needs, untimed.
    fn prepare(&mut self, stage: &mut Stage, operation: Operation) -> Result<()> {
        let (root, pool) = (stage.root(), self.pool);
        match operation {
            Operation::Dedup => {
                let twice = self.twice.insert(DedupFiles { root });
                stage.lay_out("laying out files and their copies", |_| twice.lay_out())
            }
            Operation::Defrag => {
                let (folder, stored) = (root.join("pieces"), stage.stored().join("pieces"));
                let pieces = self.pieces.insert(FragmentedFiles { folder, stored, pool, fragments: 0 });
                stage.lay_out("laying out files in pieces", |_| pieces.lay_out())?;
                pieces.count(stage)
            }
            Operation::Snapshot => {
                let programs =
                    stage.snapshots(SnapshotData::SNAPSHOTS).context("this file system takes no snapshots")?;
                let held =
                    self.held.insert(SnapshotData { folder: root.join("held"), pool, programs, is_changed: false });
                stage.lay_out("laying out what snapshots hold", |_| held.lay_out())
            }
            Operation::DeleteSnapshots => {
                let held = self.held.as_mut().context("there is no snapshot")?;
                stage.lay_out("writing half of it anew", |_| held.change())
            }
            Operation::Degraded => {
                self.fill.a_third(stage)?;
                stage.degrade()
            }
            Operation::Remove => {
                self.fill.commit = stage.commit();
                Ok(())
            }
            Operation::Shrink => {
                let cut = self.cut.insert(TailFiles::new(root.join("cut"), pool, stage.device_bytes()));
                stage.lay_out("laying out files where it is cut off", |_| cut.lay_out())
            }
            _ => Ok(()),
        }
    }

    /// What is timed.
    fn operate(&mut self, p: &mut Timed, operation: Operation, programs: Option<&UpkeepPrograms>) -> Result<()> {
        match (operation, programs, &self.twice, &self.pieces) {
            (Operation::Snapshot, ..) => self.held.as_ref().map_or(Ok(()), |held| held.take(p)),
            (Operation::DeleteSnapshots, ..) => self.held.as_ref().map_or(Ok(()), |held| held.delete(p)),
            (Operation::Fill, ..) => self.fill.until_full(p),
            (Operation::Remove, ..) => self.fill.remove_half(p),
            (Operation::Degraded, ..) => self.fill.read(p),
            (Operation::Dedup, Some(programs), Some(twice), _) => twice.share(p, &programs.run),
            (Operation::Defrag, Some(programs), _, Some(pieces)) => pieces.put_together(p, &programs.run),
            (_, Some(programs), ..) => {
                programs.run.iter().try_for_each(|words| p.run(&Program::new(words)))?;
                // What there is room for differs.
                if self.fill.files.count > 0 && matches!(operation, Operation::Rebuild | Operation::Scrub) {
                    p.done_times(self.fill.bytes() as f64 / GIB);
                }
                Ok(())
            }
            (operation, ..) => anyhow::bail!("this file system has no {}", operation.word()),
        }
    }

    /// What must be so afterwards, untimed.
    fn look_back(&self, stage: &mut Stage, operation: Operation, programs: Option<&UpkeepPrograms>) -> Result<()> {
        match operation {
            Operation::Fill => stage.check("reading back what was written", || self.fill.verify()),
            Operation::Dedup => stage.check("reading back what is there", || self.verify()),
            Operation::DeleteSnapshots => stage.check("reading back what they held", || self.verify()),
            Operation::Remove => stage.check("writing after the removal", || self.fill.goes_on()),
            Operation::Rebuild => stage.show_made(),
            Operation::Quota if programs.is_some_and(|programs| programs.counts_users) => counted::verify(stage),
            Operation::Defrag => {
                let Some(pieces) = &self.pieces else { return Ok(()) };
                let [before, after] = pieces.verify_fewer(stage)?;
                stage.say(operation.word(), "fragments_before_count", before as f64);
                stage.say(operation.word(), "fragments_after_count", after as f64);
                Ok(())
            }
            Operation::Shrink => stage
                .check("reading back what was moved", || self.cut.as_ref().map_or(Ok(()), TailFiles::verify_smaller)),
            _ => Ok(()),
        }
    }

    /// All that was written without an error is there.
    fn verify(&self) -> Result<()> {
        self.twice.as_ref().map_or(Ok(()), DedupFiles::verify)?;
        self.pieces.as_ref().map_or(Ok(()), FragmentedFiles::verify)?;
        self.held.as_ref().map_or(Ok(()), SnapshotData::verify)?;
        self.cut.as_ref().map_or(Ok(()), TailFiles::verify)?;
        self.fill.verify()
    }
}

/// Without a name twice, and in their own order whatever the plan's is.
fn operations(settings: &Settings) -> Vec<Operation> {
    let given = Upkeep::of(settings).operations;
    Operation::ALL.iter().copied().filter(|one| given.iter().any(|name| name == one.word())).collect()
}

/// From the device, unless it is dirty.
fn read_anew(path: &Path) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut read = || -> std::io::Result<()> {
        let mut file = File::open(path)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        file.read_to_end(&mut content).map(drop)
    };
    read().with_context(|| format!("reading {}", path.display()))?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(operations: &[&str]) -> Settings {
        Settings([("operations".to_string(), json!(operations))].into())
    }

    #[test]
    fn operations_have_an_order_of_their_own() {
        let names: Vec<_> =
            Maintenance.phases(&settings(&["check", "fill", "check"])).into_iter().map(|p| p.name).collect();
        assert_eq!(names, ["idle", "fill", "check"]);
        let mixed = ["delete-snapshots", "snapshot", "check", "shrink", "fill", "remove", "defrag", "scrub"];
        assert_eq!(Maintenance.upkeep(&settings(&mixed)), ["defrag", "snapshot", "scrub", "shrink", "check"]);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (given, wrong) in [
            (&["fill"][..], 0),
            (&[], 1),
            (&["tidy"], 1),
            (&["defrag", "shrink", "quota"], 0),
            (&["fill", "shrink"], 1),
            (&["degraded", "shrink"], 1),
            (&["remove"], 1),
            (&["remove", "fill"], 0),
            (&["rebuild", "fill"], 1),
            (&["snapshot"], 1),
            (&["delete-snapshots"], 1),
            (&["delete-snapshots", "snapshot", "fill"], 0),
        ] {
            assert_eq!(Maintenance.objections(&settings(given)).len(), wrong, "{given:?}");
        }
        for (given, wrong) in [(&["rebuild"][..], 1), (&["rebuild", "degraded"], 0), (&["fill", "degraded"], 1)] {
            assert_eq!(Maintenance.objections(&settings(given)).len(), wrong, "{given:?}");
        }
        assert!(Maintenance.objections(&Settings::default()).is_empty());
    }
}
