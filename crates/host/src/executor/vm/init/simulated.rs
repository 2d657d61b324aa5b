//! The agent of a simulation: its request lies on one disk, its questions are answered here, and
//! its records are put on another disk when it has ended. A host involved any earlier would answer
//! at an arbitrary time, and all later times would depend on that.

use super::{agent_command, word};
use crate::executor::vm::names::{
    BY_SERIAL, CLOCK_WORD, PACE_WORD, RECORDS_DISK, REGIONS_WORD, REQUEST_DISK, SYMBOLS_ASKED, SYMBOLS_ASKED_AT, how,
};
use anyhow::{Context, Result, ensure};
use pickfs_core::protocol::{Answer, Job, Request, Say};
use pickfs_system::sys::file;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Where the driver makes a disk of a region: "ADDRESS BYTES", and those of its recording where it
/// has one.
const ATTACH: &str = "/sys/module/simdisk/parameters/attach";
/// The driver takes from here how many processors there are, and how fast they compress and execute
/// programs.
const PACE: &str = "/sys/module/simdisk/parameters/pace";
/// Of the scheduler.
const SCHEDULER: &str = "/sys/kernel/debug/sched";
/// Where the driver stops the machine.
const SAVE: &str = "/sys/module/simdisk/parameters/save";
/// To take down what was built, after the cell's own limit.
const GRACE: Duration = Duration::from_secs(60);
/// Linux writes what is dirty every five seconds (`dirty_writeback_centisecs`).
const LONGEST_TIMER: Duration = Duration::from_secs(5);
/// For a job that has no limit.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// `HRTICK`: turns end by a timer and not by the kernel's tick. Without the others, which came with
/// Linux 6.6 and 6.12, a task that sleeps counts as one that could run for a while, and one that
/// runs goes on when another wakes.
const FEATURES: &[&str] = &["HRTICK", "NO_DELAY_DEQUEUE", "NO_RUN_TO_PARITY"];
/// Nanoseconds, by the names of several kernels.
const TURNS: &[(&str, &str)] = &[
    ("min_granularity_ns", "100000"),
    ("latency_ns", "100000"),
    ("wakeup_granularity_ns", "0"),
    ("base_slice_ns", "100000"),
];

/// The kernel's pool is filled with the same bytes each time: without them programs wait for
/// seconds, and with bytes of the host no two simulations would be alike.
pub(crate) fn fill_entropy() -> Result<()> {
    file::add_entropy(&[0x5a; 64]).context("cannot fill the pool of random numbers")
}

/// A word that the kernel does not know is handed to process 1: its clocks would go as before,
/// unseen.
pub(crate) fn check_clocks() -> Result<()> {
    let unknown = std::env::var_os(CLOCK_WORD).is_some();
    ensure!(
        !unknown,
        "this kernel does not know `{CLOCK_WORD}`, which slows its clocks: simulate it with `dilation = 1`"
    );
    Ok(())
}

/// Before anything is measured: the clocks change.
pub(crate) fn set_pace() -> Result<()> {
    let Some(words) = pace() else { return Ok(()) };
    std::fs::write(PACE, words.replace(',', " ")).context(
        "this kernel does not let its clocks go slower by what it executes: simulate it with `processors = 1`, \
         `compression = 1` and `user_mode = 1`",
    )
}

fn pace() -> Option<String> {
    word(|word| word.strip_prefix(PACE_WORD).map(String::from))
}

/// Of several processors each task has one; of the one that they share, a turn soon.
pub(crate) fn shorten_turns() -> Result<()> {
    if pace().is_none_or(|words| words.starts_with("1,")) {
        return Ok(());
    }
    let known = std::fs::read_to_string(format!("{SCHEDULER}/features")).context("the scheduler shows no features")?;
    for feature in FEATURES {
        let name = feature.trim_start_matches("NO_");
        if known.split_whitespace().any(|known| known.trim_start_matches("NO_") == name) {
            std::fs::write(format!("{SCHEDULER}/features"), feature)
                .with_context(|| format!("the scheduler does not take {feature}"))?;
        }
    }
    for (name, ns) in TURNS.iter().filter(|(name, _)| Path::new(SCHEDULER).join(name).exists()) {
        std::fs::write(format!("{SCHEDULER}/{name}"), ns)
            .with_context(|| format!("the scheduler's {name} is fixed"))?;
    }
    // All have one priority. A thread of the kernel with a low one (khugepaged, each ten seconds)
    // would wait for milliseconds, and the clock goes slower for it as long: on a processor of its
    // own it would not.
    rustix::process::setpriority_user(rustix::process::Uid::ROOT, 0).context("the threads keep their priorities")
}

/// Makes a disk of the first region; the others are of the cell, which is not there yet.
pub(crate) fn attach_root() -> Result<()> {
    regions()?.first().context("there is no region")?.attach()
}

/// Stops this machine, to be saved: every cell goes on from here, with its own regions.
pub(crate) fn be_saved() -> Result<()> {
    std::fs::write(SAVE, "1").context("cannot stop the machine")
}

pub(crate) fn attach_others() -> Result<()> {
    regions()?.iter().skip(1).try_for_each(Region::attach)
}

struct Region(String);

impl Region {
    fn attach(&self) -> Result<()> {
        std::fs::write(ATTACH, &self.0).with_context(|| format!("no disk in the region {}", self.0))
    }
}

fn regions() -> Result<Vec<Region>> {
    let listed = word(|word| word.strip_prefix(REGIONS_WORD).map(String::from)).context("no word names regions")?;
    Ok(listed.split(',').map(|region| Region(region.replace(':', " "))).collect())
}

pub(crate) fn agent() -> Result<()> {
    let mut line = String::new();
    let asked = File::open(Path::new(BY_SERIAL).join(REQUEST_DISK)).context("there is no request")?;
    BufReader::new(asked).read_line(&mut line).context("cannot read the request")?;
    let request: Request = serde_json::from_str(&line).context("the request is not understood")?;
    let limit = match &request.job {
        Job::Cell(cell) => Duration::from_nanos(cell.limit_ns) + GRACE,
        _ => LONGEST,
    };
    if let Job::Cell(cell) = &request.job {
        begin_round(cell.seed)?;
    }
    let mut child = agent_command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().map_err(|error| anyhow::anyhow!("cannot start the agent: {error}"))?;
    let (mut to, from) = child.stdin.take().zip(child.stdout.take()).context("no pipes to the agent")?;
    to.write_all(line.as_bytes()).context("the agent takes no request")?;
    let (send, said) = channel();
    std::thread::spawn(move || {
        BufReader::new(from).split(b'\n').map_while(Result::ok).try_for_each(|line| send.send(line)).ok();
    });
    let (begun, mut all) = (Instant::now(), Vec::new());
    loop {
        match said.recv_timeout(limit.saturating_sub(begun.elapsed())) {
            Ok(line) => {
                answer(&line, &mut to)?;
                all.extend(line);
                all.push(b'\n');
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                eprintln!("pickfs init: the agent has not ended within its limit of simulated time");
                child.kill().context("cannot end the agent")?;
                // Not waited for: what hangs in the kernel does not end.
                return deliver(&all);
            }
        }
    }
    let status = child.wait().context("cannot wait for the agent")?;
    if !status.success() {
        eprintln!("pickfs init: the agent ended {}", how(status));
    }
    deliver(&all)
}

/// Random numbers and a moment within the kernel's timers that no other round has, the same for all
/// targets of a round: on flash most file systems would repeat a round to the nanosecond, and an
/// interval over such rounds says nothing.
fn begin_round(seed: u64) -> Result<()> {
    let mut bytes = [0; 64];
    bytes.chunks_mut(8).for_each(|part| part.copy_from_slice(&seed.to_le_bytes()));
    file::add_entropy(&bytes).and_then(|()| file::reseed()).context("cannot fill the pool of random numbers")?;
    std::thread::sleep(Duration::from_nanos(seed % LONGEST_TIMER.as_nanos() as u64));
    Ok(())
}

/// As a host would, at once.
fn answer(line: &[u8], to: &mut ChildStdin) -> Result<()> {
    let answer = match serde_json::from_slice(line) {
        Ok(Say::Ask(_)) => Answer::Written,
        Ok(Say::ForgetCache | Say::Boot(_)) => Answer::Unsupported,
        // No answer is expected; the host judges what is not understood.
        _ => return Ok(()),
    };
    writeln!(to, "{}", serde_json::to_string(&answer)?).context("the agent takes no answer")
}

fn deliver(records: &[u8]) -> Result<()> {
    let mut disk = File::options()
        .read(true)
        .write(true)
        .open(Path::new(BY_SERIAL).join(RECORDS_DISK))
        .context("no records' disk")?;
    let room = std::io::Seek::seek(&mut disk, std::io::SeekFrom::End(0))?;
    ensure!((records.len() as u64) < room, "{} bytes of records have no room", records.len());
    std::io::Seek::rewind(&mut disk)?;
    disk.write_all(records).and_then(|()| disk.sync_all()).context("cannot write the records")?;
    deliver_symbols(&disk, room)
}

/// The kernel's symbols and modules with their addresses, and the names of programs, where the last
/// page of the disk asks for them. All that is measured is over.
fn deliver_symbols(disk: &File, room: u64) -> Result<()> {
    let mut asked = [0; SYMBOLS_ASKED.len()];
    disk.read_exact_at(&mut asked, room - SYMBOLS_ASKED_AT).context("cannot read the records' disk")?;
    if asked != *SYMBOLS_ASKED {
        return Ok(());
    }
    let read = |file: &str| std::fs::read(file).with_context(|| format!("cannot read {file}"));
    let programs = read("/sys/module/simdisk/parameters/programs")?;
    let symbols = [read("/proc/kallsyms")?, read("/proc/modules")?, programs].concat();
    disk.write_all_at(&symbols, room / 2).and_then(|()| disk.sync_all()).context("cannot write the kernel's symbols")
}
