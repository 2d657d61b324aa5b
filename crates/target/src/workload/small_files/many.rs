//! The phases on many files, in whole batches of the same work.

use super::engine::{self, Batch, Names, Step, Workers, on_each, place_of, room};
use super::{Job, Naming, Pool, block, content_of};
use crate::stage::{Latencies, Stage, Timed};
use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is appended, and made durable at a time.
pub(crate) const PIECE: usize = 4 << 10;

/// Create, stat and delete: bonnie++'s six tests are two such sets, files in order and files at
/// random.
pub(crate) fn play_set(stage: &mut Stage, job: &Job, pool: &Pool, naming: Naming) -> Result<()> {
    let (kind, at_random) = (naming.word(), naming == Naming::AtRandom);
    let make = if at_random { Names::at_random } else { Names::in_order };
    let names = make(job.files, job.directories);
    let steps = names.steps();
    let order = if at_random { names.shuffled() } else { names.steps() };
    let set = Set { job, kind, root: &stage.root(), names: &names };
    let most = room(set.root, job.files as u64, job.bytes_of_file() as u64)?;
    let phase = |what: &str| format!("{kind}-{what}");
    let created = set.timed(stage, &phase("create"), job.bytes_of_file(), 1..most, |batches, workers| {
        batches.into_iter().try_for_each(|batch| set.create(batch, &steps, pool, workers))
    })?;
    for _ in stage.repeats() {
        set.warm(stage, created, &order)?;
        // Cold, nothing can be done twice; warm, as often as it takes.
        let most = if job.is_cold() { created } else { created << 10 };
        set.timed(stage, &phase("stat"), 0, created..most, |batches, workers| {
            set.each("stat", batches, created, &order, workers, engine::stat)
        })?;
    }
    if !at_random {
        list(stage, &set, created)?;
    }
    set.timed(stage, &phase("delete"), 0, created..created, |batches, workers| {
        set.each("delete", batches, created, &order, workers, engine::delete)
    })?;
    Ok(())
}

fn list(stage: &mut Stage, set: &Set, created: u64) -> Result<()> {
    let (job, files) = (set.job, set.job.files as u64);
    for _ in stage.repeats() {
        set.warm(stage, created, &[])?;
        let mut latencies = Latencies::new();
        stage.phase("readdir", |p| {
            // Every name must come from the device, whatever else lies about it.
            p.reads_at_least(created * set.names.bytes());
            let (least, most) = if job.is_cold() { (Duration::ZERO, created) } else { (job.time, created << 10) };
            let (done, took) = p.in_batches(created, most, least, |batches| {
                batches.into_iter().try_for_each(|batch| {
                    let listed = Batch::open(&set.place(batch % created), job.directories)?.list(&mut latencies)?;
                    ensure!(listed == files, "readdir gave {listed} of {files} names");
                    Ok(())
                })
            })?;
            p.handled(0, done * files);
            p.say("entries_per_second", (done * files) as f64 / took.as_secs_f64());
            p.latencies("latency", latencies);
            Ok(())
        })?;
    }
    Ok(())
}

/// What bonnie++ does not do: rename, link, append and fsync, on one batch of files that are there.
pub(crate) fn play_others(stage: &mut Stage, job: &Job, pool: &Pool) -> Result<()> {
    let names = Names::in_order(job.files, job.directories);
    let set = Set { job, kind: "other", root: &stage.root(), names: &names };
    let steps = names.steps();
    stage.check("making files for what follows", || set.create(0, &steps, pool, &mut Workers::new(1)?))?;
    let others = Names::at_random(job.files, job.directories);
    let renamed: Vec<Step<Pair>> = steps.iter().zip(others.steps()).map(|(a, b)| (a.0, (a.1, b.1))).collect();
    let back: Vec<Step<Pair>> = renamed.iter().map(|(folder, (from, to))| (*folder, (*to, *from))).collect();
    set.timed(stage, "rename", 0, 1..u64::MAX, |batches, workers| set.rename(&renamed, &back, batches, workers))?;
    let links: Vec<Step<(usize, &CStr)>> = steps.iter().map(|step| (step.0, *step)).collect();
    let most = room(set.root, job.files as u64, 0)?;
    let linked = set.timed(stage, "link", 0, 1..most, |batches, workers| set.link(&links, batches, workers))?;
    stage.check("removing the links", || {
        (0..linked).try_for_each(|batch| Ok(std::fs::remove_dir_all(place_of(set.root, LINKED, batch))?))
    })?;
    let most = room(set.root, job.files as u64, PIECE as u64)?;
    set.timed(stage, "append", PIECE, 1..most, |batches, workers| {
        let append = |folder: BorrowedFd, name: &CStr| engine::append(folder, name, content_of(pool, name, PIECE));
        set.each("append", batches, 1, &steps, workers, append)
    })?;
    sync(stage, job, pool)
}

/// A piece appended and made durable, again and again; each thread has a file.
fn sync(stage: &mut Stage, job: &Job, pool: &Pool) -> Result<()> {
    let root = stage.root();
    let numbers: Vec<u64> = (0..job.syncs as u64).collect();
    let append = |batches: Range<u64>, workers: &mut Workers| {
        batches.into_iter().try_for_each(|_| {
            workers.work(&numbers, |own, latencies| {
                append_durably(&root.join(format!("log-{}", own[0])), own, pool, latencies)
            })
        })
    };
    in_batches(stage, "fsync", job, ((job.syncs * PIECE) as u64, 0), 1..u64::MAX, append).map(drop)
}

/// A phase of as many batches as the job's time takes, within these bounds; returns how many. Each
/// handles `bytes` bytes and `files` files.
fn in_batches(
    stage: &mut Stage,
    phase: &str,
    job: &Job,
    (bytes, files): (u64, u64),
    batches: Range<u64>,
    mut work: impl FnMut(Range<u64>, &mut Workers) -> Result<()>,
) -> Result<u64> {
    let mut workers = Workers::new(job.threads)?;
    let play = |p: &mut Timed| {
        p.in_batches(batches.start, batches.end, job.time, |batches| work(batches, &mut workers))
            .map(|(done, took)| (done, took, workers))
    };
    stage.phase_then(phase, play, |p, (done, took, workers)| {
        let latencies = workers.latencies();
        p.handled(done * bytes, done * files);
        p.say("operations_per_second", latencies.count() as f64 / took.as_secs_f64());
        p.latencies("latency", latencies);
        Ok(done)
    })
}

fn append_durably(path: &Path, numbers: &[u64], pool: &Pool, latencies: &mut Latencies) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).context("cannot open the file for fsync")?;
    latencies.start();
    for number in numbers {
        engine::write_all(&file, &block(pool, *number)[..PIECE]).context("append before fsync")?;
        rustix::fs::fsync(&file).context("fsync")?;
        latencies.lap();
    }
    Ok(())
}

/// Files of one kind, in batches.
struct Set<'a> {
    job: &'a Job,
    kind: &'static str,
    root: &'a Path,
    names: &'a Names,
}

impl Set<'_> {
    fn place(&self, batch: u64) -> PathBuf {
        place_of(self.root, self.kind, batch)
    }

    /// A phase of batches of this set's files, each of which handles `bytes` bytes of every file.
    fn timed(
        &self,
        stage: &mut Stage,
        phase: &str,
        bytes: usize,
        batches: Range<u64>,
        work: impl FnMut(Range<u64>, &mut Workers) -> Result<()>,
    ) -> Result<u64> {
        let handled = ((self.job.files * bytes) as u64, self.job.files as u64);
        in_batches(stage, phase, self.job, handled, batches, work)
    }

    fn create(&self, batch: u64, steps: &[Step], pool: &Pool, workers: &mut Workers) -> Result<()> {
        let (size, batch) = (self.job.bytes_of_file(), Batch::make(&self.place(batch), self.job.directories)?);
        workers.work(steps, |steps, latencies| {
            batch.each("create", steps, latencies, |f, name| engine::create(f, name, content_of(pool, name, size)))
        })
    }

    /// Does an operation on every file of these batches; `there` batches exist and are taken in
    /// turn.
    fn each(
        &self,
        doing: &str,
        batches: Range<u64>,
        there: u64,
        order: &[Step],
        workers: &mut Workers,
        operation: impl Fn(BorrowedFd, &CStr) -> Result<(), Errno> + Sync,
    ) -> Result<()> {
        batches.into_iter().try_for_each(|batch| {
            on_each(self.root, self.kind, self.job.directories, batch % there..batch % there + 1, |batch| {
                workers.work(order, |steps, latencies| batch.each(doing, steps, latencies, &operation))
            })
        })
    }

    /// Where caches shall be warm, they are made so.
    fn warm(&self, stage: &mut Stage, created: u64, order: &[Step]) -> Result<()> {
        if self.job.is_cold() {
            return Ok(());
        }
        stage.check("bringing files into the caches", || {
            on_each(self.root, self.kind, self.job.directories, 0..created, |batch| {
                batch.list(&mut Latencies::new())?;
                batch.each("stat", order, &mut Latencies::new(), engine::stat)
            })
        })
    }

    /// Every file renamed and, once all are, back again.
    fn rename(
        &self,
        there: &[Step<Pair>],
        back: &[Step<Pair>],
        batches: Range<u64>,
        workers: &mut Workers,
    ) -> Result<()> {
        let batch = Batch::open(&self.place(0), self.job.directories)?;
        batches.into_iter().try_for_each(|_| {
            [there, back].into_iter().try_for_each(|steps| {
                workers.work(steps, |steps, latencies| {
                    batch.each("rename", steps, latencies, |folder, (from, to)| {
                        rustix::fs::renameat(folder, from, folder, to)
                    })
                })
            })
        })
    }

    /// Every file gets a second name in a folder that is new.
    fn link(&self, steps: &[Step<(usize, &CStr)>], batches: Range<u64>, workers: &mut Workers) -> Result<()> {
        let from = Batch::open(&self.place(0), self.job.directories)?;
        batches.into_iter().try_for_each(|batch| {
            let to = Batch::make(&place_of(self.root, LINKED, batch), self.job.directories)?;
            workers.work(steps, |steps, latencies| {
                from.each("link", steps, latencies, |folder, (number, name)| {
                    rustix::fs::linkat(folder, name, to.folder(number), name, AtFlags::empty())
                })
            })
        })
    }
}

/// Two names, before and after.
type Pair<'a> = (&'a CStr, &'a CStr);

/// What batches of links are called.
const LINKED: &str = "linked";
