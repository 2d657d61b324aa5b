//! What another program feels meanwhile.

use super::Pool;
use crate::stage::{Periodic, Timed};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Another program that makes 4 KiB durable every 100 ms, in a file that was there before.
pub(super) struct BackgroundWriter<'a> {
    pub(super) path: PathBuf,
    pub(super) pool: &'a Pool,
    /// Writes that the file system refused because it was full.
    pub(super) refused: AtomicU64,
}

impl BackgroundWriter<'_> {
    const EVERY: Duration = Duration::from_millis(100);
    const BLOCK: usize = 4096;
    const BLOCKS: u64 = 256;

    pub(super) fn lay_out(&self) -> Result<()> {
        let mut file = File::create_new(&self.path).context("making the other program's file")?;
        Ok(file.write_all(self.pool.piece(0, Self::BLOCK * Self::BLOCKS as usize))?)
    }

    pub(super) fn beside(
        &self,
        p: &mut Timed,
        work: impl FnOnce(&mut Timed, &dyn Fn() -> bool) -> Result<()>,
    ) -> Result<()> {
        let file = File::options().write(true).open(&self.path).context("opening the other program's file")?;
        self.refused.store(0, Ordering::Relaxed);
        let write = |number: u64| {
            let block = self.pool.piece(number, Self::BLOCK);
            let written = file.write_all_at(block, number % Self::BLOCKS * Self::BLOCK as u64);
            match written.and_then(|()| file.sync_data()) {
                Err(error) if error.kind() == ErrorKind::StorageFull => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                done => done.context("the other program's write"),
            }
        };
        let mut periodic = [Periodic::new(Self::EVERY, Duration::ZERO, write)];
        for log in p.beside(&mut periodic, work)? {
            p.say("stall_ns", log.stall_ns as f64);
            p.say("refused_count", self.refused.load(Ordering::Relaxed) as f64);
            p.latencies("latency", log.latencies);
        }
        Ok(())
    }
}
