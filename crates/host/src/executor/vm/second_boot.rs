//! Another machine, booted from the disks of a guest while that guest waits and has nothing
//! mounted: the host's end.

use super::boot::{BOOT_PATIENCE, BOOTS, PANIC, connect, explained, in_each_boot};
use super::build::Guest;
use super::console::{Tail, plain};
use super::host_cache;
use super::names::Word;
use super::qemu::{Machine, Start};
use anyhow::{Context, Result, bail, ensure};
use jiff::SignedDuration;
use pickfs_core::protocol::{Answer, Boot, Booted, Heard, Session, clock};
use pickfs_system::process::{Interrupted, check_stop};
use pickfs_system::sys::process::read_bytes;
use pickfs_system::units::show_duration;
use std::time::{Duration, Instant};

/// For QEMU to be gone once it has closed its pipe.
const ENDING: Duration = Duration::from_secs(2);
/// For a system that is ready to be shut down: systemd lets a service take a minute and a half.
const END_PATIENCE: Duration = Duration::from_secs(150);

/// An error only when the run is to stop.
pub(crate) fn boot(guest: &Guest, machine: &Machine, wanted: &Boot, run: &str, cell: &str) -> Result<Answer> {
    let machine = Machine {
        data: None,
        start: Start::Second,
        console: machine.console.with_extension("booted"),
        ..machine.clone()
    };
    for time in 1..=BOOTS {
        match boot_once(guest, &machine, wanted, run, cell) {
            Ok(booted) => return Ok(Answer::Booted(Box::new(booted))),
            Err((error, _)) if error.is::<Interrupted>() => return Err(error),
            Err((error, Panicked(true))) if time < BOOTS => drop(error),
            Err((error, Panicked(true))) => return Ok(Answer::NotBooted(in_each_boot(&format!("{error:#}")))),
            Err((error, Panicked(false))) => return Ok(Answer::NotBooted(format!("{error:#}"))),
        }
    }
    unreachable!("the last boot returns")
}

/// Whether the kernel panicked before its first word.
struct Panicked(bool);

fn boot_once(
    guest: &Guest,
    machine: &Machine,
    wanted: &Boot,
    run: &str,
    cell: &str,
) -> Result<Booted, (anyhow::Error, Panicked)> {
    let not_begun = |error| (error, Panicked(false));
    let cached_bytes = match host_cache::forget(&machine.disks) {
        Answer::Forgot { cached_bytes } => cached_bytes,
        other => return Err(not_begun(anyhow::anyhow!("the host has not dropped its cache of the disk: {other:?}"))),
    };
    let (connection, console) = connect(guest, machine, run, cell).map_err(not_begun)?;
    let session = Session::start(connection, wanted).map_err(not_begun)?;
    let mut listener = Listener { session, spoke: false };
    match listener.hear_all(Duration::from_nanos(wanted.limit_ns)) {
        Ok(booted) => Ok(Booted { cached_bytes, ..booted }),
        Err(error) if error.is::<Interrupted>() => Err(not_begun(error)),
        Err(error) => Err(listener.explained(&error, &console)),
    }
}

struct Listener {
    session: Session,
    spoke: bool,
}

impl Listener {
    fn hear_all(&mut self, limit: Duration) -> Result<Booted> {
        let late = format!("its kernel was not up within {}", shown(BOOT_PATIENCE));
        let Word::Started { at_ns: from } = self.word(BOOT_PATIENCE.min(limit), &late)? else {
            bail!("it was ready before it began")
        };
        let started = Instant::now();
        let late = format!("it was not ready when the cell's time limit passed, {} after its start", shown(limit));
        let left = limit.saturating_sub(self.session.elapsed());
        let Word::Ready { at_ns: until, mut booted } = self.word(left, &late)? else { bail!("it began twice") };
        booted.host_ns = self.session.elapsed().as_nanos() as u64;
        booted.host_read_bytes = read_bytes(self.session.process_id() as i32);
        // A guest can say any numbers.
        let counted = SignedDuration::from_nanos((until as i64).saturating_sub(from as i64));
        if let Some(why) = clock::drift_between(counted, started.elapsed()) {
            bail!("{why}");
        }
        let late = format!("it was ready, and then not shut down within {}", shown(END_PATIENCE));
        ensure!(self.line(END_PATIENCE, &late)?.is_none(), "it sent a third message, where two are expected");
        Ok(*booted)
    }

    fn word(&mut self, patience: Duration, late: &str) -> Result<Word> {
        let line = self.line(patience, late)?.context("it ended before it was ready")?;
        serde_json::from_str(&line).with_context(|| format!("it said `{}`", plain(&line)))
    }

    /// Its next message; none when it has ended. `late` is why it must end if it sends nothing for
    /// that long.
    fn line(&mut self, patience: Duration, late: &str) -> Result<Option<String>> {
        let begun = Instant::now();
        loop {
            match self.session.hear()? {
                Heard::Line(line) => {
                    self.spoke = true;
                    return Ok(Some(line));
                }
                Heard::Closed => return Ok(None),
                Heard::Nothing => {}
            }
            check_stop()?;
            ensure!(begun.elapsed() <= patience, "{late}");
        }
    }

    fn explained(mut self, error: &anyhow::Error, console: &Tail) -> (anyhow::Error, Panicked) {
        if !matches!(self.session.hear(), Ok(Heard::Closed)) {
            self.session.kill();
        }
        match self.session.end(Some(ENDING)) {
            Ok(exit) => {
                let why = explained(&format!("{error:#}"), &exit, console);
                let panicked = !self.spoke && why.contains(PANIC);
                (anyhow::anyhow!(why), Panicked(panicked))
            }
            Err(wrong) => (wrong, Panicked(false)),
        }
    }
}

fn shown(duration: Duration) -> String {
    show_duration(duration.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::protocol::Connection;
    use std::process::Command;

    #[test]
    fn a_clock_that_no_guest_has_is_refused() {
        let edge = 1 << 63;
        let words = [Word::Started { at_ns: edge }, Word::Ready { at_ns: edge - 1, booted: Box::default() }];
        let lines = words.map(|word| serde_json::to_string(&word).unwrap()).join("\n");
        let connection = Connection::open(Command::new("echo").arg(lines)).unwrap();
        let mut listener = Listener { session: Session::start(connection, &()).unwrap(), spoke: false };
        let error = listener.hear_all(Duration::from_secs(60)).unwrap_err().to_string();
        assert!(error.contains("the guest's clock counted"), "{error}");
    }
}
