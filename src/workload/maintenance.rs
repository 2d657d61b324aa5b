//! What an administrator does with a whole file system now and then, and what other programs feel of it: grow it, have
//! it share what is there twice, let it run full, remove, lose a device, trim, check, scrub, balance, count what users take.

use super::content::Pool;
use super::settings::{Duration as DurationKind, Texts, choice, settings};
use super::{Description, MEAN_OF_PHASES, Workload, programs};
use crate::data::random::Random;
use crate::need::Need;
use crate::plan::{Objection, Settings};
use crate::stack::Argv;
use crate::stage::phase::*;
use crate::stage::{Periodic, Program, Stage, Timed};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub struct Maintenance;

settings! {
    Upkeep {
        operations: Texts = r#"["fill", "remove", "check"]"#,
            "what is done, in the order of the phases: grow, dedup, fill, remove, degraded, rebuild, scrub, balance, quota, trim, check";
        idle: DurationKind = "5s", "how long the other program's writes are timed while nothing else goes on";
    }
}

choice! {
    /// In the order in which they are done.
    Operation {
        Grow = "grow", Dedup = "dedup", Fill = "fill", Remove = "remove", Degraded = "degraded", Rebuild = "rebuild", Scrub = "scrub",
        Balance = "balance", Quota = "quota", Trim = "trim", Check = "check",
    }
}

impl Operation {
    fn about(self) -> &'static str {
        match self {
            Operation::Grow => "grown from half of the device to all of it, while mounted",
            Operation::Dedup => "files that are there twice found and shared (duperemove), until their space is free",
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
            Operation::Trim => "all free space discarded (fstrim)",
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

const DESCRIPTION: Description = Description {
    name: "maintenance",
    about: "a file system grown, run full, emptied, rebuilt, checked and so on, and what other programs feel of it",
    settings: Upkeep::ROWS,
    main_setting: "operations",
    judged: MEAN_OF_PHASES,
    ..Description::EMPTY
};

const IDLE: &str = "idle";
const FILE: usize = 1 << 20;
const GIB: f64 = (1 << 30) as f64;
const FILES_IN_A_FOLDER: u64 = 512;
/// Of each class of content.
const OF_EACH_CLASS: usize = 4 << 20;
/// Of what was removed, so much must be free again; metadata may keep some.
const GIVEN_BACK: f64 = 0.9;
/// For the space to be free again, and between two looks whether it is.
const AT_MOST: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(10);

impl Workload for Maintenance {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
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
        let own = [Operation::Fill, Operation::Remove];
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
            ("remove", "fill", "removes what `fill` has written"),
            ("rebuild", "degraded", "replaces the device that `degraded` has taken away"),
        ];
        let lacking = follow.iter().find(|(name, after, _)| has(name) && !has(after));
        let lacking = lacking.map(|(name, after, why)| format!("`{name}` {why}, and there is no `{after}`"));
        let both = has("fill") && has("degraded");
        let full = both.then(|| {
            "a full file system may have no room to be rebuilt in: `degraded` has files of its own".to_string()
        });
        let remedy = format!("use some of {known}");
        wrong.or(lacking).or(full).map(|message| Objection::new("operations", message, &remedy)).into_iter().collect()
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let idle = Upkeep::of(settings).idle;
        let pool = stage.check("making content", || Ok(Pool::new(3, OF_EACH_CLASS)))?;
        let mut fill = Fill { root: stage.root(), pool: &pool, files: 0, room: [0; 2] };
        let twice = Twice { root: stage.root() };
        let all = operations(settings);
        if all.contains(&Operation::Grow) {
            let half = room(&stage.mount_point())?.of_all / 2;
            stage.shrink(half)?;
        }
        let other = Other { path: stage.root().join("other"), pool: &pool, refused: AtomicU64::new(0) };
        stage.lay_out("laying out the other program's file", |_| other.lay_out())?;
        stage.phase(IDLE, |p| other.beside(p, |p, failed| p.until(idle, PAUSE, || Ok(failed())).map(drop)))?;
        for operation in all {
            if operation == Operation::Dedup {
                stage.lay_out("laying out files and their copies", |_| twice.lay_out())?;
            }
            if operation == Operation::Degraded {
                stage.lay_out("filling a third of it", |_| fill.a_third())?;
                stage.degrade()?;
            }
            let programs = stage.upkeep(operation.word());
            // btrfs of Linux 6.18 does not replace a missing device while another program syncs: docs/maintenance.md.
            let beside =
                operation != Operation::Rebuild && programs.as_ref().is_none_or(|programs| programs.is_mounted);
            let mut work = |p: &mut Timed| match (operation, &programs) {
                (Operation::Fill, _) => fill.until_full(p),
                (Operation::Remove, _) => fill.remove_half(p),
                (Operation::Degraded, _) => fill.read(p),
                (Operation::Dedup, Some(programs)) => twice.share(p, &programs.run),
                (_, Some(programs)) => {
                    programs.run.iter().try_for_each(|words| p.run(&Program::new(words)))?;
                    // What there is room for differs.
                    if fill.files > 0 && matches!(operation, Operation::Rebuild | Operation::Scrub) {
                        p.done_times(fill.bytes() as f64 / GIB);
                    }
                    Ok(())
                }
                (operation, None) => anyhow::bail!("this file system has no {}", operation.word()),
            };
            stage.phase(operation.word(), |p| match beside {
                true => other.beside(p, |p, _| work(p)),
                false => work(p),
            })?;
            match operation {
                Operation::Fill => stage.check("reading back what was written", || fill.verify())?,
                Operation::Dedup => stage.check("reading back what is shared", || twice.verify())?,
                Operation::Remove => stage.check("writing after the removal", || fill.goes_on())?,
                Operation::Rebuild => stage.show_made()?,
                _ => {}
            }
        }
        stage.check("reading back what is there", || fill.verify())
    }
}

/// Without a name twice, and in their own order whatever the plan's is.
fn operations(settings: &Settings) -> Vec<Operation> {
    let given = Upkeep::of(settings).operations;
    Operation::ALL.iter().copied().filter(|one| given.iter().any(|name| name == one.word())).collect()
}

/// Another program that makes 4 KiB durable every 100 ms, in a file that was there before.
struct Other<'a> {
    path: PathBuf,
    pool: &'a Pool,
    /// Writes that the file system refused because it was full.
    refused: AtomicU64,
}

impl Other<'_> {
    const EVERY: Duration = Duration::from_millis(100);
    const BLOCK: usize = 4096;
    const BLOCKS: u64 = 256;

    fn lay_out(&self) -> Result<()> {
        let mut file = File::create_new(&self.path).context("making the other program's file")?;
        Ok(file.write_all(self.pool.piece(0, Other::BLOCK * Other::BLOCKS as usize))?)
    }

    fn beside(&self, p: &mut Timed, work: impl FnOnce(&mut Timed, &dyn Fn() -> bool) -> Result<()>) -> Result<()> {
        let file = File::options().write(true).open(&self.path).context("opening the other program's file")?;
        self.refused.store(0, Ordering::Relaxed);
        let write = |number: u64| {
            let block = self.pool.piece(number, Other::BLOCK);
            let written = file.write_all_at(block, number % Other::BLOCKS * Other::BLOCK as u64);
            match written.and_then(|()| file.sync_data()) {
                Err(error) if error.kind() == ErrorKind::StorageFull => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                done => done.context("the other program's write"),
            }
        };
        let mut periodic = [Periodic::new(Other::EVERY, Duration::ZERO, write)];
        for log in p.beside(&mut periodic, work)? {
            p.say("stall_ns", log.stall_ns as f64);
            p.say("refused_count", self.refused.load(Ordering::Relaxed) as f64);
            p.latencies("latency", log.latencies);
        }
        Ok(())
    }
}

/// Files of which each has a copy in blocks of its own: half of their bytes are duplicates.
struct Twice {
    root: PathBuf,
}

impl Twice {
    const FILES: u64 = 32;
    const DUPLICATES: u64 = Twice::FILES * FILE as u64;

    fn lay_out(&self) -> Result<()> {
        std::fs::create_dir(self.root.join("twice"))?;
        self.all().try_for_each(|(path, content)| std::fs::write(path, content)).context("writing files and copies")
    }

    fn all(&self) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
        let one = |number| (self.root.join(format!("twice/{number}")), Twice::content(number % Twice::FILES));
        (0..2 * Twice::FILES).map(one)
    }

    /// No block is like another's.
    fn content(number: u64) -> Vec<u8> {
        let mut content = vec![0; FILE];
        Random::new(number, 2).fill(&mut content);
        content
    }

    /// Until nearly all that was there twice is free.
    fn share(&self, p: &mut Timed, programs: &[Argv]) -> Result<()> {
        p.handled(2 * Twice::DUPLICATES, 2 * Twice::FILES);
        let before = room(&self.root)?.free;
        programs.iter().try_for_each(|words| p.command(words))?;
        p.own(|| Ok(rustix::fs::syncfs(File::open(&self.root)?)?))?;
        let freed = || -> Result<u64> { Ok(room(&self.root)?.free.saturating_sub(before)) };
        let wanted = (Twice::DUPLICATES as f64 * GIVEN_BACK) as u64;
        let is_free = p.until(AT_MOST, PAUSE, || Ok(freed()? >= wanted))?;
        let freed = freed()?;
        ensure!(is_free, "of {} bytes that were there twice, {freed} were free after {AT_MOST:?}", Twice::DUPLICATES);
        p.say("duplicate_bytes", Twice::DUPLICATES as f64);
        p.say("freed_bytes", freed as f64);
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        self.all().try_for_each(|(path, content)| {
            let found = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            ensure!(found == content, "{} has other bytes since it is shared", path.display());
            Ok(())
        })
    }
}

/// Files that fill the file system.
struct Fill<'a> {
    root: PathBuf,
    pool: &'a Pool,
    /// Complete ones.
    files: u64,
    /// Free when it was empty, and when it was full.
    room: [u64; 2],
}

impl Fill<'_> {
    /// The error is the one that a full file system gives; any other fails the cell.
    fn until_full(&mut self, p: &mut Timed) -> Result<()> {
        self.room[0] = room(&self.root)?.free;
        let limits = p.limits();
        loop {
            limits()?;
            match self.write_next() {
                Ok(()) => self.files += 1,
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error).context("a full file system gave another error than ENOSPC"),
            }
        }
        ensure!(self.files > 0, "not one file of 1 MiB fits");
        self.room[1] = room(&self.root)?.free;
        p.handled(self.files * FILE as u64, self.files);
        p.say("filled_bytes", (self.files * FILE as u64) as f64);
        p.say("free_when_full_bytes", self.room[1] as f64);
        p.done_times(self.files as f64 * FILE as f64 / GIB);
        Ok(())
    }

    /// What is fuller may have no room to be rebuilt in.
    fn a_third(&mut self) -> Result<()> {
        let first = room(&self.root)?.free;
        while room(&self.root)?.free > first / 3 * 2 {
            self.write_next().context("filling a third of it")?;
            self.files += 1;
        }
        Ok(())
    }

    fn write_next(&self) -> std::io::Result<()> {
        let path = self.path(self.files);
        if self.files % FILES_IN_A_FOLDER == 0 {
            std::fs::create_dir_all(path.parent().expect("a folder"))?;
        }
        File::create(path)?.write_all(self.pool.piece(self.files, FILE))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.root.join(format!("fill{}/{number}", number / FILES_IN_A_FOLDER))
    }

    fn remove_half(&mut self, p: &mut Timed) -> Result<()> {
        let removed: Vec<u64> = (0..self.files).step_by(2).collect();
        p.handled(removed.len() as u64 * FILE as u64, removed.len() as u64);
        removed.iter().try_for_each(|number| std::fs::remove_file(self.path(*number)))?;
        let share = removed.len() as f64 / self.files as f64 * GIVEN_BACK;
        let wanted = self.room[1] as f64 + self.room[0].saturating_sub(self.room[1]) as f64 * share;
        let free = p.until(AT_MOST, PAUSE, || Ok(room(&self.root)?.free as f64 >= wanted))?;
        ensure!(free, "the space of removed files was not free after {} s", AT_MOST.as_secs());
        Ok(())
    }

    fn read(&self, p: &mut Timed) -> Result<()> {
        p.handled(self.bytes(), self.numbers().count() as u64);
        let read = |number: u64| std::fs::read(self.path(number)).map(drop);
        p.own(|| self.numbers().try_for_each(read).context("reading while a device is missing"))?;
        p.done_times(self.bytes() as f64 / GIB);
        Ok(())
    }

    /// Of the files that are there.
    fn bytes(&self) -> u64 {
        self.numbers().count() as u64 * FILE as u64
    }

    /// All files, or every second.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let step = if self.is_thinned() { 2 } else { 1 };
        (step - 1..self.files).step_by(step as usize)
    }

    fn is_thinned(&self) -> bool {
        self.files > 0 && !self.path(0).exists()
    }

    /// A file fits again, and durably.
    fn goes_on(&self) -> Result<()> {
        let path = self.root.join("after");
        let mut file = File::create_new(&path).context("making a file")?;
        file.write_all(self.pool.piece(7, FILE)).and_then(|()| file.sync_all()).context("writing a file")?;
        ensure!(std::fs::read(&path)? == self.pool.piece(7, FILE), "other bytes came back than were written");
        Ok(())
    }

    /// What was written without an error is there.
    fn verify(&self) -> Result<()> {
        for number in self.numbers() {
            let found = std::fs::read(self.path(number)).with_context(|| format!("reading file {number}"))?;
            ensure!(found == self.pool.piece(number, FILE), "file {number} of {} has other bytes", self.files);
        }
        Ok(())
    }
}

/// Bytes.
struct Room {
    of_all: u64,
    free: u64,
}

fn room(at: &Path) -> Result<Room> {
    let found = rustix::fs::statvfs(at).with_context(|| format!("asking for the room in {}", at.display()))?;
    Ok(Room { of_all: found.f_blocks * found.f_frsize, free: found.f_bavail * found.f_frsize })
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
        assert_eq!(Maintenance.upkeep(&settings(&["check", "fill", "remove", "scrub"])), ["scrub", "check"]);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (given, wrong) in [
            (&["fill"][..], 0),
            (&[], 1),
            (&["defrag"], 1),
            (&["remove"], 1),
            (&["remove", "fill"], 0),
            (&["rebuild", "fill"], 1),
        ] {
            assert_eq!(Maintenance.objections(&settings(given)).len(), wrong, "{given:?}");
        }
        for (given, wrong) in [(&["rebuild"][..], 1), (&["rebuild", "degraded"], 0), (&["fill", "degraded"], 1)] {
            assert_eq!(Maintenance.objections(&settings(given)).len(), wrong, "{given:?}");
        }
        assert!(Maintenance.objections(&Settings::default()).is_empty());
    }

    #[test]
    fn every_second_file_is_a_copy_and_must_stay_one() {
        let folder = tempfile::tempdir().unwrap();
        let twice = Twice { root: folder.path().into() };
        twice.lay_out().unwrap();
        twice.verify().unwrap();
        let bytes = |number: u64| std::fs::read(folder.path().join(format!("twice/{number}"))).unwrap();
        assert!(bytes(0) == bytes(Twice::FILES) && bytes(0) != bytes(1));
        let blocks: std::collections::BTreeSet<Vec<u8>> = (0..Twice::FILES)
            .flat_map(|number| bytes(number).chunks(4096).map(Vec::from).collect::<Vec<_>>())
            .collect();
        assert_eq!(blocks.len() as u64 * 4096, Twice::DUPLICATES, "a block is there more often than twice");
        let mut changed = bytes(3);
        changed[77] ^= 1;
        std::fs::write(folder.path().join("twice/3"), changed).unwrap();
        assert!(twice.verify().is_err());
    }

    #[test]
    fn files_that_changed_are_found() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::new(3, 1 << 20));
        let mut fill = Fill { root: folder.path().into(), pool: &pool, files: 0, room: [0; 2] };
        for _ in 0..3 {
            fill.write_next().unwrap();
            fill.files += 1;
        }
        fill.verify().unwrap();
        assert!(!fill.is_thinned());
        std::fs::remove_file(fill.path(2)).unwrap();
        assert!(fill.verify().is_err());
        std::fs::remove_file(fill.path(0)).unwrap();
        assert!(fill.is_thinned() && fill.verify().is_ok());
        std::fs::write(fill.path(1), vec![0; FILE]).unwrap();
        assert!(fill.verify().is_err());
        fill.goes_on().unwrap();
    }
}
