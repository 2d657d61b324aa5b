//! The server of a work: started, waited for, watched and stopped.

#![expect(clippy::disallowed_methods, reason = "waits until the server answers, for a limited time")]

use crate::stage::{Program, Server, Stage};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Starting is a matter of a second; stopping may have to write all that is only in memory.
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(300);
const SEEN_GONE: Duration = Duration::from_secs(1);

pub(crate) struct Daemon {
    /// In messages.
    name: String,
    server: Option<Server>,
}

impl Daemon {
    /// One that does not run yet.
    pub(crate) fn new(name: &str) -> Daemon {
        Daemon { name: name.into(), server: None }
    }

    /// Starts it, and waits until `asks` gets an answer.
    pub(crate) fn start(&mut self, stage: &mut Stage, program: &Program, asks: &Program) -> Result<()> {
        const PAUSE: Duration = Duration::from_millis(20);
        self.server = Some(stage.start(program)?);
        let until = Instant::now() + START;
        while Instant::now() < until {
            self.check()?;
            if stage.run(asks).is_ok() {
                return Ok(());
            }
            stage.limits()()?;
            std::thread::sleep(PAUSE);
        }
        let said = self.server.as_ref().map(Server::said).unwrap_or_default();
        bail!("{} did not answer within {START:?}; it printed: {said}", self.name)
    }

    /// An error with its last words if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.server.as_mut().map_or(Ok(()), Server::check).context("the server is gone")
    }

    /// Stops it, to be started again; an error if it was not well.
    pub(crate) fn stop(&mut self, signal: Signal) -> Result<()> {
        self.server.take().map_or(Ok(()), |server| server.stop(signal, STOP))
    }

    /// As [`Daemon::check`], after a failure of which it may be the cause: a server that is killed
    /// closes its sockets before its end can be seen, so its clients may fail a moment earlier.
    fn check_patiently(&mut self) -> Result<()> {
        let seen_by = Instant::now() + SEEN_GONE;
        while Instant::now() < seen_by {
            self.check()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        self.check()
    }

    /// Stops it by this signal; a failure comes with what became of the server.
    pub(crate) fn end(mut self, played: Result<()>, signal: Signal) -> Result<()> {
        let alive = if played.is_err() { self.check_patiently() } else { self.check() };
        let stopped = match (self.server.take(), &alive) {
            (Some(server), Ok(())) => server.stop(signal, STOP),
            _ => Ok(()),
        };
        match (played, alive, stopped) {
            (Err(error), Err(gone), _) => Err(error.context(format!("{gone:#}"))),
            (Err(error), ..) => Err(error),
            (Ok(()), alive, stopped) => alive.and(stopped),
        }
    }
}
