//! The pipe to the host. When the host is gone, teardown must still go on: telling fails silently then, asking says
//! [`Interrupted`].

use super::{Answer, Boot, Booted, Say};
use crate::journal::Record;
use crate::process::Interrupted;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, Write};

#[derive(Default)]
pub struct Link {
    host_gone: bool,
    in_guest: bool,
}

impl Link {
    pub fn new(in_guest: bool) -> Link {
        Link { host_gone: false, in_guest }
    }

    /// For the journal; nobody waits.
    pub fn tell(&mut self, record: Record) {
        self.say(&Say::Tell(record));
    }

    /// For the journal; returns when the host has written it.
    pub fn ask(&mut self, record: Record) -> Result<()> {
        match self.answer(&Say::Ask(record))? {
            Answer::Written => Ok(()),
            other => bail!("the host answered {other:?} where it was to write"),
        }
    }

    /// In a guest: has the host drop what it has cached of the guest's disks. The reason, where it has not; none where
    /// there is no host below.
    pub fn forget_below(&mut self) -> Result<Option<String>> {
        if !self.in_guest {
            return Ok(None);
        }
        match self.answer(&Say::Forget)? {
            Answer::Forgot { cached_bytes: 0 } => Ok(None),
            Answer::Forgot { cached_bytes } => {
                Ok(Some(format!("the host still has {cached_bytes} bytes of the disk in its cache")))
            }
            Answer::Kept(why) => Ok(Some(format!("the host has not dropped its cache of the disk: {why}"))),
            other => bail!("the host answered {other:?} where it was to drop its cache"),
        }
    }

    /// In a guest: has the host boot another machine from the guest's disks, and waits until that is gone.
    pub fn boot(&mut self, boot: Boot) -> Result<Booted> {
        match self.answer(&Say::Boot(Box::new(boot)))? {
            Answer::Booted(booted) => Ok(*booted),
            Answer::NotBooted(why) => bail!("{why}"),
            other => bail!("the host answered {other:?} where it was to boot"),
        }
    }

    /// The agent has a machine of its own, and a host below.
    pub fn is_in_guest(&self) -> bool {
        self.in_guest
    }

    fn answer(&mut self, say: &Say) -> Result<Answer> {
        self.say(say);
        let mut line = String::new();
        let read = if self.host_gone { 0 } else { std::io::stdin().lock().read_line(&mut line).unwrap_or(0) };
        if read == 0 {
            self.host_gone = true;
            return Err(Interrupted.into());
        }
        serde_json::from_str(&line).with_context(|| format!("the host answered `{}`", line.trim()))
    }

    fn say(&mut self, say: &Say) {
        if self.host_gone {
            return;
        }
        let told = serde_json::to_string(say).map_err(std::io::Error::from).and_then(|mut line| {
            line.push('\n');
            let mut out = std::io::stdout().lock();
            out.write_all(line.as_bytes())?;
            out.flush()
        });
        self.host_gone |= told.is_err();
    }

    /// Refuses to go on for a host that is not there.
    pub fn check(&self) -> Result<()> {
        if self.host_gone { bail!(Interrupted) } else { Ok(()) }
    }
}
