//! The pipe to the host. When the host is gone, teardown must still go on: telling fails silently then, asking says
//! [`Interrupted`].

use super::Interrupted;
use crate::journal::{Answer, Record, Say};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, Write};

pub struct Link {
    host_gone: bool,
}

impl Link {
    pub fn new() -> Link {
        Link { host_gone: false }
    }

    /// For the journal; nobody waits.
    pub fn tell(&mut self, record: Record) {
        self.say(&Say::Tell(record));
    }

    /// For the journal; returns when the host has written it.
    pub fn ask(&mut self, record: Record) -> Result<()> {
        self.say(&Say::Ask(record));
        let mut line = String::new();
        let read = if self.host_gone { 0 } else { std::io::stdin().lock().read_line(&mut line).unwrap_or(0) };
        if read == 0 {
            self.host_gone = true;
            return Err(Interrupted.into());
        }
        match serde_json::from_str(&line).with_context(|| format!("the host answered `{}`", line.trim()))? {
            Answer::Written => Ok(()),
        }
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
