//! A program that runs beside the phases of a cell, such as a database server. It is the workload's: one that is not
//! stopped before the workload ends has leaked.

use super::command::{Mark, last_words};
use super::program::Program;
use crate::sys::process::{self, Signal};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

pub struct Server {
    child: Child,
    shown: String,
    /// All that it says.
    log: PathBuf,
}

impl Server {
    /// Starts it as the head of a process group; what it says goes to `log`.
    pub(super) fn start(program: &Program, log: &Path, marks: &[Mark]) -> Result<Server> {
        let out = File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        let mut command = program.command(marks)?;
        command.stdout(out.try_clone()?).stderr(out).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start `{}`", program.shown()))?;
        Ok(Server { child, shown: program.shown(), log: log.into() })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// An error with its last words if it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("`{}` ended with {status}: {}", self.shown, self.said()),
            None => Ok(()),
        }
    }

    /// Its last words.
    pub fn said(&self) -> String {
        last_words(&std::fs::read(&self.log).unwrap_or_default())
    }

    /// Asks it to end and waits; an error if it does not, or not well.
    pub fn stop(mut self, signal: Signal, patience: Duration) -> Result<()> {
        self.check()?;
        process::kill(self.child.id() as i32, signal)?;
        match self.wait(patience)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("`{}` ended with {status}: {}", self.shown, self.said()),
            None => bail!("`{}` did not end within {patience:?}: {}", self.shown, self.said()),
        }
    }

    fn wait(&mut self, patience: Duration) -> Result<Option<ExitStatus>> {
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // Whoever is left of it is found by its mark.
            let _ = process::kill_group(self.child.id() as i32);
            let _ = self.child.wait();
        }
    }
}
