//! The agent's end of the pipe. When the host is gone, teardown must still go on: telling fails
//! silently then, asking says [`Interrupted`].

use super::{Answer, Boot, Booted, PhaseClock, Question, Request, Say};
use crate::journal::Record;
use anyhow::{Context, Result, bail};
use pickfs_system::process::{Interrupted, check_stop, request_stop};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};

pub struct Link {
    host_gone: bool,
    can: Vec<Question>,
    is_simulated: bool,
    recording: Option<PathBuf>,
    answers: Receiver<Result<Answer>>,
}

impl Link {
    /// Hears from now on what the host says: the request must have been read.
    pub fn open(request: &Request) -> Link {
        let (send, answers) = mpsc::channel();
        std::thread::spawn(move || listen(&send));
        let is_simulated = request.arrival.as_ref().is_some_and(|arrival| arrival.is_simulated);
        let recording = request.arrival.as_ref().and_then(|arrival| arrival.recording.clone());
        Link { host_gone: false, can: request.answers.clone(), is_simulated, recording, answers }
    }

    /// The machine is the same at each moment: what is read again is the same.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// The device with what the target's disk was given, where that is recorded.
    pub fn recording(&self) -> Option<&Path> {
        self.recording.as_deref()
    }

    /// For tests: records that are sent here are dropped.
    pub fn to_nobody() -> Link {
        Link { host_gone: true, can: Vec::new(), is_simulated: false, recording: None, answers: mpsc::channel().1 }
    }

    /// The machine answers such a question.
    pub fn can(&self, question: Question) -> bool {
        self.can.contains(&question)
    }

    /// Sends a record for the journal; does not wait.
    pub fn tell(&mut self, record: Record) {
        self.say(&Say::Tell(record));
    }

    /// What gets ready, before any of it is timed.
    pub fn begin_phase(&mut self, phase: &str) {
        self.say(&Say::Phase(phase.into()));
    }

    /// For an explanation of the times.
    pub fn tell_clock(&mut self, clock: PhaseClock) {
        self.say(&Say::Clock(Box::new(clock)));
    }

    /// Reports what begins before any cell, as progress for the user.
    pub fn doing(&mut self, what: &str) {
        self.say(&Say::Doing(what.into()));
    }

    /// For the journal; returns when the host has written it.
    pub fn ask(&mut self, record: Record) -> Result<()> {
        match self.answer(&Say::Ask(record))? {
            Answer::Written => Ok(()),
            other => bail!("the host answered {other:?} where it was to write"),
        }
    }

    /// Has the host drop what it has cached of the machine's disks. The reason, where it has not;
    /// none where no host has such a cache.
    pub fn forget_below(&mut self) -> Result<Option<String>> {
        if !self.can(Question::ForgetCache) {
            return Ok(None);
        }
        match self.answer(&Say::ForgetCache)? {
            Answer::Forgot { cached_bytes: 0 } => Ok(None),
            Answer::Forgot { cached_bytes } => {
                Ok(Some(format!("the host still has {cached_bytes} bytes of the disk in its cache")))
            }
            Answer::Kept(why) => Ok(Some(format!("the host has not dropped its cache of the disk: {why}"))),
            other => bail!("the host answered {other:?} where it was to drop its cache"),
        }
    }

    /// Has the host boot another machine from the same disks, and waits until that is gone.
    pub fn boot(&mut self, boot: Boot) -> Result<Booted> {
        match self.answer(&Say::Boot(Box::new(boot)))? {
            Answer::Booted(booted) => Ok(*booted),
            Answer::NotBooted(why) => bail!("{why}"),
            other => bail!("the host answered {other:?} where it was to boot"),
        }
    }

    fn answer(&mut self, say: &Say) -> Result<Answer> {
        self.say(say);
        let answer = if self.host_gone { None } else { self.answers.recv().ok() };
        self.host_gone |= answer.is_none();
        answer.unwrap_or_else(|| bail!(Interrupted))
    }

    fn say(&mut self, say: &Say) {
        if self.host_gone {
            return;
        }
        let result = serde_json::to_string(say).map_err(std::io::Error::from).and_then(|mut line| {
            line.push('\n');
            let mut out = std::io::stdout().lock();
            out.write_all(line.as_bytes())?;
            out.flush()
        });
        self.host_gone |= result.is_err();
    }

    /// Ends preparing or a check.
    pub fn report(&mut self, say: &Say) {
        self.say(say);
    }

    /// Refuses to go on for a host that is not there.
    pub fn check(&self) -> Result<()> {
        if self.host_gone { bail!(Interrupted) } else { check_stop() }
    }
}

/// A host that closes its end is gone, which is a request to stop.
fn listen(answers: &Sender<Result<Answer>>) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let said = serde_json::from_str(&line).with_context(|| format!("the host answered `{}`", line.trim()));
        match said {
            Ok(Answer::Stop) => request_stop(),
            // An agent that is about to end hears no answer.
            said => drop(answers.send(said)),
        }
    }
    request_stop();
}
