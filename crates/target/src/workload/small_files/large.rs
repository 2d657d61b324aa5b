//! The phases on one large file: as bonnie++ does them, block by block and character by character.

use super::engine::Workers;
use super::{Job, Pool, block as block_of};
use crate::stage::{Latencies, Stage, Stream, Timed};
use anyhow::{Context, Result, ensure};
use pickfs_system::random::Random;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// bonnie++'s chunk.
pub(crate) const BLOCK: usize = 8 << 10;
/// Once in this many seeks, what was read is changed and written back.
const DIRTY: usize = 10;
/// Where a rewritten block has its number, and a seek its mark.
const MARKED: usize = 9;

pub(crate) fn play(stage: &mut Stage, job: &Job, pool: &Pool) -> Result<()> {
    let characters = stage.root().join("characters");
    let large = Large { path: stage.root().join("large"), blocks: (job.large / BLOCK as u64).max(1), pool };
    stage.phase("putc", |p| timed(p, job.characters, |laps| put(&characters, job.characters, pool, laps)))?;
    stage.phase("write", |p| in_blocks(p, large.blocks, |laps| large.write(laps)))?;
    warm(stage, job, &large.path)?;
    stage.phase("rewrite", |p| {
        p.reads_at_least(large.bytes());
        in_blocks(p, large.blocks, |laps| large.rewrite(laps))
    })?;
    let on_disk = stage.stored_bytes(&characters)?.min(job.characters);
    for _ in stage.repeats() {
        warm(stage, job, &characters)?;
        stage.phase("getc", |p| {
            p.reads_at_least_stored(on_disk);
            timed(p, job.characters, |laps| get(&characters, job.characters, laps))
        })?;
    }
    for _ in stage.repeats() {
        warm(stage, job, &large.path)?;
        stage.phase("read", |p| {
            p.reads_at_least(large.bytes());
            in_blocks(p, large.blocks, |laps| large.read(laps))
        })?;
    }
    seek(stage, job, &large)?;
    stage.check("verifying the large file", || large.verify())?;
    stage.check("removing the large files", || {
        [&characters, &large.path].into_iter().try_for_each(|path| Ok(std::fs::remove_file(path)?))
    })
}

/// Where caches shall be warm, they are made so.
fn warm(stage: &mut Stage, job: &Job, path: &Path) -> Result<()> {
    if job.is_cold() {
        return Ok(());
    }
    stage.check("bringing a file into the cache", || {
        std::io::copy(&mut File::open(path)?, &mut std::io::sink())?;
        Ok(())
    })
}

fn in_blocks(p: &mut Timed, blocks: u64, work: impl FnOnce(&mut Latencies) -> Result<()>) -> Result<()> {
    timed(p, blocks * BLOCK as u64, work)
}

fn timed(p: &mut Timed, bytes: u64, work: impl FnOnce(&mut Latencies) -> Result<()>) -> Result<()> {
    let mut latencies = Latencies::new();
    p.own(|| work(&mut latencies))?;
    p.handled(bytes, 1);
    p.latencies("latency", latencies);
    Ok(())
}

/// One latency a block: to look at the clock takes longer than a character.
fn put(path: &Path, characters: u64, pool: &Pool, latencies: &mut Latencies) -> Result<()> {
    let mut stream = Stream::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut left = characters as usize;
    let mut number = 0;
    latencies.start();
    while left > 0 {
        let block = &block_of(pool, number)[..left.min(BLOCK)];
        block.iter().try_for_each(|byte| stream.put(*byte)).context("putc")?;
        (left, number) = (left - block.len(), number + 1);
        latencies.lap();
    }
    stream.close().context("fclose after putc")
}

fn get(path: &Path, characters: u64, latencies: &mut Latencies) -> Result<()> {
    let mut stream = Stream::read(path).with_context(|| format!("cannot open {}", path.display()))?;
    let (mut sum, mut count) = (0u64, 0u64);
    latencies.start();
    while let Some(byte) = stream.get().context("getc")? {
        (sum, count) = (sum + u64::from(byte), count + 1);
        if count % BLOCK as u64 == 0 {
            latencies.lap();
        }
    }
    if count % BLOCK as u64 != 0 {
        latencies.lap();
    }
    std::hint::black_box(sum);
    ensure!(count == characters, "getc gave {count} of {characters} characters");
    Ok(())
}

fn seek(stage: &mut Stage, job: &Job, large: &Large) -> Result<()> {
    let mut random = Random::new(1, 21);
    let seeks: Vec<(bool, u64)> =
        (0..job.seeks).map(|number| (number % DIRTY == DIRTY - 1, random.below(large.blocks))).collect();
    let different: BTreeSet<u64> = seeks.iter().map(|seek| seek.1).collect();
    warm(stage, job, &large.path)?;
    let mut workers = Workers::new(job.threads)?;
    let work = |p: &mut Timed| {
        p.own(|| workers.work(&seeks, |seeks, latencies| large.seek(seeks, latencies))).map(|()| workers)
    };
    stage.phase_then("seeks", work, |p, workers| {
        p.reads_at_least(different.len() as u64 * BLOCK as u64);
        p.handled(seeks.len() as u64 * BLOCK as u64, 1);
        p.latencies("latency", workers.latencies());
        Ok(())
    })
}

struct Large<'a> {
    path: PathBuf,
    blocks: u64,
    pool: &'a Pool,
}

impl Large<'_> {
    fn bytes(&self) -> u64 {
        self.blocks * BLOCK as u64
    }

    fn open(&self) -> Result<File> {
        let opened = File::options().read(true).write(true).open(&self.path);
        opened.with_context(|| format!("cannot open {}", self.path.display()))
    }

    /// One thing done with each block in order, each with its latency.
    fn each(&self, latencies: &mut Latencies, mut work: impl FnMut(u64) -> std::io::Result<()>) -> Result<()> {
        latencies.start();
        for number in 0..self.blocks {
            work(number).with_context(|| format!("block {number} of {}", self.path.display()))?;
            latencies.lap();
        }
        Ok(())
    }

    fn write(&self, latencies: &mut Latencies) -> Result<()> {
        let made = File::options().write(true).create_new(true).open(&self.path);
        let file = made.with_context(|| format!("cannot make {}", self.path.display()))?;
        self.each(latencies, |number| file.write_all_at(block_of(self.pool, number), number * BLOCK as u64))
    }

    /// Every block read, given its number, and written back.
    fn rewrite(&self, latencies: &mut Latencies) -> Result<()> {
        let (file, mut block) = (self.open()?, [0; BLOCK]);
        self.each(latencies, |number| {
            file.read_exact_at(&mut block, number * BLOCK as u64)?;
            block[..8].copy_from_slice(&number.to_le_bytes());
            file.write_all_at(&block, number * BLOCK as u64)
        })
    }

    fn read(&self, latencies: &mut Latencies) -> Result<()> {
        let (file, mut block) = (self.open()?, [0; BLOCK]);
        self.each(latencies, |number| file.read_exact_at(&mut block, number * BLOCK as u64))
    }

    fn seek(&self, seeks: &[(bool, u64)], latencies: &mut Latencies) -> Result<()> {
        let (file, mut block) = (self.open()?, [0; BLOCK]);
        latencies.start();
        for (dirty, number) in seeks {
            let place = number * BLOCK as u64;
            file.read_exact_at(&mut block, place).with_context(|| format!("reading at {place}"))?;
            if *dirty {
                block[8] = !block_of(self.pool, *number)[8];
                file.write_all_at(&block, place).with_context(|| format!("writing at {place}"))?;
            }
            latencies.lap();
        }
        Ok(())
    }

    /// Every block has its number, and what was written to it first behind that.
    fn verify(&self) -> Result<()> {
        let (file, mut block) = (self.open()?, [0; BLOCK]);
        ensure!(file.metadata()?.len() == self.bytes(), "it has {} bytes", file.metadata()?.len());
        for number in 0..self.blocks {
            file.read_exact_at(&mut block, number * BLOCK as u64)?;
            let right = block[..8] == number.to_le_bytes() && block[MARKED..] == block_of(self.pool, number)[MARKED..];
            ensure!(right, "other bytes in block {number} than were written");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_and_rewritten_is_there_and_damage_is_found() {
        let lab = tempfile::tempdir().unwrap();
        let pool = Pool::new(1, super::super::OF_EACH_CLASS);
        let large = Large { path: lab.path().join("large"), blocks: 40, pool: &pool };
        let mut latencies = Latencies::new();
        large.write(&mut latencies).unwrap();
        assert!(large.verify().is_err(), "not yet numbered");
        large.rewrite(&mut latencies).unwrap();
        large.read(&mut latencies).unwrap();
        large.seek(&[(false, 3), (true, 3), (true, 39)], &mut latencies).unwrap();
        large.verify().unwrap();
        assert_eq!(latencies.count(), 123);
        let before = std::fs::read(&large.path).unwrap();
        assert_eq!(before[3 * BLOCK + 8], !block_of(&pool, 3)[8]);
        large.open().unwrap().write_all_at(b"damage", 7 * BLOCK as u64 + 70).unwrap();
        assert!(large.verify().is_err());
    }

    #[test]
    fn characters_come_back() {
        let lab = tempfile::tempdir().unwrap();
        let (path, pool) = (lab.path().join("characters"), Pool::new(1, super::super::OF_EACH_CLASS));
        let characters = 3 * BLOCK as u64 + 5;
        let mut latencies = Latencies::new();
        put(&path, characters, &pool, &mut latencies).unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[..BLOCK], *block_of(&pool, 0));
        get(&path, characters, &mut latencies).unwrap();
        assert_eq!(latencies.count(), 8);
        assert!(get(&path, characters + 1, &mut latencies).is_err());
    }
}
