//! Another machine, booted from the disks of a guest while that guest waits and has nothing mounted: the host's end.

use super::BOOT_PATIENCE;
use super::build::Guest;
use super::names::Word;
use super::qemu::Machine;
use super::running::{Marks, Running, booted_again};
use super::{clock, console, host_cache};
use crate::agent::Interrupted;
use crate::protocol::{Answer, Boot, Booted};
use crate::units::show_duration;
use anyhow::{Context, Result, bail, ensure};
use jiff::SignedDuration;
use std::time::{Duration, Instant};

/// For a system that is ready to be shut down: systemd lets a service take a minute and a half.
const END_PATIENCE: Duration = Duration::from_secs(150);

/// An error only when the run is to stop.
pub(super) fn boot(guest: &Guest, machine: &Machine, wanted: &Boot, marks: Marks) -> Result<Answer> {
    match booted_again(|boot| carry(guest, machine, wanted, Marks { boot, ..marks })) {
        Ok(booted) => Ok(Answer::Booted(Box::new(booted))),
        Err(error) if error.is::<Interrupted>() => Err(error),
        Err(error) => Ok(Answer::NotBooted(format!("{error:#}"))),
    }
}

fn carry(guest: &Guest, machine: &Machine, wanted: &Boot, marks: Marks) -> Result<Booted> {
    let machine =
        Machine { data: None, boots: true, console: machine.console.with_extension("booted"), ..machine.clone() };
    let cached_bytes = match host_cache::forget(&machine.disks) {
        Answer::Forgot { cached_bytes } => cached_bytes,
        other => bail!("the host has not dropped its cache of the disk: {other:?}"),
    };
    let begun = Instant::now();
    let mut running = Running::start(guest, &machine, wanted, marks)?;
    let heard = hear(&mut running, Duration::from_nanos(wanted.limit_ns), begun);
    let booted = heard.map_err(|error| if error.is::<Interrupted>() { error } else { running.explained(error) })?;
    Ok(Booted { cached_bytes, ..booted })
}

fn hear(running: &mut Running, limit: Duration, begun: Instant) -> Result<Booted> {
    let late = format!("its kernel was not up within {}", shown(BOOT_PATIENCE));
    let Word::Started { at_ns: from } = word(running, BOOT_PATIENCE.min(limit), &late)? else {
        bail!("it was ready before it began")
    };
    let started = Instant::now();
    let late = format!("it was not ready when the cell's time limit passed, {} after its start", shown(limit));
    let Word::Ready { at_ns: until, mut booted } = word(running, limit.saturating_sub(begun.elapsed()), &late)? else {
        bail!("it began twice")
    };
    booted.host_ns = begun.elapsed().as_nanos() as u64;
    booted.host_read_bytes = running.read_bytes();
    let counted = SignedDuration::from_nanos(until as i64 - from as i64);
    if let Some(why) = clock::wrong(counted, started.elapsed()) {
        bail!("{why}");
    }
    let late = format!("it was ready, and then not shut down within {}", shown(END_PATIENCE));
    ensure!(running.next(END_PATIENCE, &late)?.is_none(), "it says more than it is to say");
    Ok(*booted)
}

fn word(running: &mut Running, patience: Duration, late: &str) -> Result<Word> {
    let line = running.next(patience, late)?.context("it ended before it was ready")?;
    serde_json::from_str(&line).with_context(|| format!("it said `{}`", console::plain(&line)))
}

fn shown(duration: Duration) -> String {
    show_duration(duration.as_nanos() as f64)
}
