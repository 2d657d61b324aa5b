//! One guest under way: its start, the lines to and from its agent, its limits, and its end, whoever brings it about.

use super::build::Guest;
use super::clock::Both;
use super::console::{Tail, plain};
use super::names::how;
use super::qemu::{self, Machine};
use super::{BOOT_PATIENCE, BOOTS, GUEST_GRACE, READY_PATIENCE, host_cache, second_boot};
use crate::agent::{self, Interrupted, Link};
use crate::journal::{Outcome, Record};
use crate::protocol::{Answer, Say};
use crate::sys::process::{self, Signal};
use crate::units::show_duration;
use anyhow::{Context, Result, anyhow, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(50);
/// A histogram is a tenth of that.
const LONGEST_LINE: u64 = 8 << 20;
/// Lines that wait; a guest that says more waits itself.
const MOST_LINES: usize = 256;
/// For QEMU to be gone once it has closed its pipe.
const ENDING: Duration = Duration::from_secs(2);

pub struct Running<'m> {
    guest: &'m Guest,
    machine: &'m Machine,
    marks: Marks<'m>,
    child: Child,
    to_guest: Sender<Vec<u8>>,
    lines: Receiver<Result<String>>,
    console: Tail,
    /// QEMU's own.
    words: Tail,
    reached: Reached,
    /// From the start of QEMU until the agent's first word; `None` before that, and when it was told.
    booted: Option<Duration>,
    /// What the console had said when the cell began.
    before: u64,
    /// When that was.
    begun: Option<Both>,
}

/// The kernel panicked before the machine had said a word: nothing has begun that it was booted for.
#[derive(Debug)]
struct PanickedAtBoot(String);

impl std::fmt::Display for PanickedAtBoot {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for PanickedAtBoot {}

/// Boots a machine until its kernel gets over its start, at most [`BOOTS`] times: `boot` is told which time it is.
pub fn booted_again<T>(mut boot: impl FnMut(u32) -> Result<T>) -> Result<T> {
    for time in 1..BOOTS {
        match boot(time) {
            Err(error) if error.is::<PanickedAtBoot>() => {}
            carried => return carried,
        }
    }
    let last = boot(BOOTS);
    last.map_err(
        |error| if error.is::<PanickedAtBoot>() { anyhow!("in each of {BOOTS} boots {error:#}") } else { error },
    )
}

/// What names a process as the run's and the cell's.
#[derive(Clone, Copy)]
pub struct Marks<'m> {
    pub run: &'m str,
    pub cell: &'m str,
    /// Which boot of the cell's machine it is, from 1.
    pub boot: u32,
}

/// How far a guest has come, and when.
#[derive(Clone, Copy, Debug)]
enum Reached {
    Started(Instant),
    Spoken(Instant),
    Begun(Instant),
}

impl Reached {
    /// Why it is to be ended, if it has been there for too long.
    fn overdue(self, now: Instant, limit: Duration) -> Option<String> {
        let shown = |duration: Duration| show_duration(duration.as_nanos() as f64);
        let (since, patience, why) = match self {
            Reached::Started(at) => {
                (at, BOOT_PATIENCE, format!("the guest did not boot within {}", shown(BOOT_PATIENCE)))
            }
            Reached::Spoken(at) => {
                (at, READY_PATIENCE, format!("the guest did not begin its cell within {}", shown(READY_PATIENCE)))
            }
            Reached::Begun(at) => {
                let why = format!("the time limit of {} passed, and the guest did not answer", shown(limit));
                (at, limit + GUEST_GRACE, why)
            }
        };
        (now.duration_since(since) > patience).then_some(why)
    }
}

impl<'m> Running<'m> {
    /// The first line that it hears is there before it can hear.
    pub fn start(
        guest: &'m Guest,
        machine: &'m Machine,
        first: &impl serde::Serialize,
        marks: Marks<'m>,
    ) -> Result<Running<'m>> {
        let words = qemu::command(guest, machine)?;
        let console = Tail::of_pipe(&machine.console)?;
        // It ends with us, whatever ends us.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(&words);
        command.env(agent::RUN_MARK, marks.run).env(agent::CELL_MARK, marks.cell);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start QEMU")?;
        let stdin = child.stdin.take().context("no pipe to the guest")?;
        let stdout = child.stdout.take().context("no pipe from the guest")?;
        let stderr = child.stderr.take().context("no pipe from QEMU")?;
        let running = Running {
            guest,
            machine,
            marks,
            child,
            to_guest: write_lines(stdin),
            lines: read_lines(stdout),
            console,
            words: Tail::of(move || Ok(stderr)),
            reached: Reached::Started(Instant::now()),
            booted: None,
            before: 0,
            begun: None,
        };
        running.say(first)?;
        Ok(running)
    }

    /// Until the cell has ended, or the guest has, or must; it is gone then. An error says all that is known of why.
    pub fn carry(mut self, link: &mut Link, limit: Duration) -> Result<()> {
        let carried = self.carry_lines(link, limit);
        carried.map_err(|error| if error.is::<Interrupted>() { error } else { self.explained(error) })
    }

    /// What it says next; none when it has ended. `late` is why it must end if it says nothing for so long.
    pub fn next(&mut self, patience: Duration, late: &str) -> Result<Option<String>> {
        let begun = Instant::now();
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => {
                    self.has_spoken();
                    return line.map(Some);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            agent::check_stop()?;
            if begun.elapsed() > patience {
                bail!("{late}");
            }
        }
    }

    /// Bytes that QEMU itself had read from block devices; none where the host does not tell.
    pub fn read_bytes(&self) -> Option<u64> {
        process::read_bytes(self.child.id() as i32)
    }

    fn carry_lines(&mut self, link: &mut Link, limit: Duration) -> Result<()> {
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => {
                    if self.pass_on(&line?, link)? {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the guest ended before its cell did"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            agent::check_stop()?;
            if let Some(why) = self.reached.overdue(Instant::now(), limit) {
                bail!(why);
            }
        }
    }

    fn has_spoken(&mut self) {
        if let Reached::Started(at) = self.reached {
            self.booted = Some(at.elapsed());
            self.reached = Reached::Spoken(Instant::now());
        }
    }

    /// True when that was the cell's end.
    fn pass_on(&mut self, line: &str, link: &mut Link) -> Result<bool> {
        self.has_spoken();
        let said: Say = serde_json::from_str(line).with_context(|| format!("the guest said `{}`", plain(line)))?;
        match said {
            // The host has said so itself, before the guest was there.
            Say::Tell(Record::Begin(begin)) => {
                self.begun = Both::now(&begin.at);
                self.reached = Reached::Begun(Instant::now());
                self.before = self.console.said();
                Ok(false)
            }
            // Gone with the guest: nobody need undo them.
            Say::Tell(Record::Undone(_)) => Ok(false),
            Say::Ask(Record::Step(_)) => self.say(&Answer::Written).map(|()| false),
            Say::Tell(Record::End(mut end)) => {
                if let (Outcome::Done, Some(why)) = (&end.outcome, self.drift(&end.at)) {
                    end.outcome = Outcome::Failed(why);
                }
                if let Outcome::Failed(why) = &mut end.outcome {
                    let words = self.console.words(self.before);
                    words.into_iter().for_each(|words| why.push_str(&format!("; the guest's console: {words}")));
                }
                link.tell(Record::End(end));
                Ok(true)
            }
            Say::Tell(Record::Provenance(mut found)) => {
                let booted = self.booted.take().map(|booted| show_duration(booted.as_nanos() as f64));
                let again = (booted.is_some() && self.marks.boot > 1)
                    .then(|| format!("{}, the kernel panicked before", self.marks.boot));
                found.facts.extend(again.map(|again| ("guest boots".to_string(), again)));
                found.facts.extend(booted.map(|booted| ("guest boot".to_string(), booted)));
                link.tell(Record::Provenance(found));
                Ok(false)
            }
            Say::Tell(record) => {
                link.tell(record);
                Ok(false)
            }
            Say::Ask(record) => {
                link.ask(record)?;
                self.say(&Answer::Written).map(|()| false)
            }
            Say::Forget => self.say(&host_cache::forget(&self.machine.disks)).map(|()| false),
            Say::Boot(wanted) => {
                let answer = second_boot::boot(self.guest, self.machine, &wanted, self.marks)?;
                self.say(&answer).map(|()| false)
            }
        }
    }

    fn drift(&self, ended: &str) -> Option<String> {
        self.begun?.drift(Both::now(ended)?)
    }

    fn say(&self, what: &impl serde::Serialize) -> Result<()> {
        let line = serde_json::to_string(what)? + "\n";
        // One that is dead already shows in how it ends.
        let _ = self.to_guest.send(line.into_bytes());
        Ok(())
    }

    /// With how QEMU ended, if it did so itself, and the last words of both.
    pub fn explained(&mut self, error: anyhow::Error) -> anyhow::Error {
        let ended = self.ended_by_itself();
        self.switch_off();
        self.console.finish();
        self.words.finish();
        let words = self.words.words(0).map(|words| format!(": {words}")).unwrap_or_default();
        let qemu =
            ended.filter(|status| !status.success()).map(|status| format!("; QEMU ended {}{words}", how(status)));
        let console = self.console.words(0).map(|words| format!("; the guest's console ends with: {words}"));
        let whole = format!("{error:#}{}{}", qemu.unwrap_or_default(), console.unwrap_or_default());
        let panicked = matches!(self.reached, Reached::Started(_)) && whole.contains("Kernel panic");
        if panicked { anyhow!(PanickedAtBoot(whole)) } else { anyhow!(whole) }
    }

    /// It closes its pipe a moment before it is gone.
    fn ended_by_itself(&mut self) -> Option<ExitStatus> {
        let begun = Instant::now();
        let is_closed = matches!(self.lines.try_recv(), Err(mpsc::TryRecvError::Disconnected));
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if !is_closed || begun.elapsed() > ENDING {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Not asked first: its disks are made anew for the next cell.
    fn switch_off(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = process::kill(self.child.id() as i32, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.switch_off();
    }
}

/// By a thread: a guest that takes nothing makes nobody wait.
fn write_lines(mut stdin: impl Write + Send + 'static) -> Sender<Vec<u8>> {
    let (send, lines) = mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for line in lines {
            if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                return;
            }
        }
    });
    send
}

/// Until the guest's end. A last line without an end is torn and dropped; one that has no end in sight is an error.
fn read_lines(stdout: impl Read + Send + 'static) -> Receiver<Result<String>> {
    let (send, lines) = mpsc::sync_channel(MOST_LINES);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        while let Some(line) = next_line(&mut reader, LONGEST_LINE) {
            let is_last = line.is_err();
            if send.send(line).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

fn next_line(reader: &mut impl BufRead, longest: u64) -> Option<Result<String>> {
    let mut line = Vec::new();
    let read = reader.by_ref().take(longest).read_until(b'\n', &mut line).ok()?;
    match line.last() {
        Some(b'\n') => Some(Ok(String::from_utf8_lossy(&line).into_owned())),
        _ if read as u64 == longest => {
            let begun = plain(&String::from_utf8_lossy(&line[..line.len().min(200)]));
            Some(Err(anyhow!("the guest says a line without an end: `{begun}`")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_guest_are_bounded_and_a_torn_one_is_dropped() {
        let rows: [(&[u8], &[&str]); 6] = [
            (b"", &[]),
            (b"a\nb\n", &["a\n", "b\n"]),
            (b"a\ntorn", &["a\n"]),
            (b"\xff\n", &["\u{fffd}\n"]),
            (b"1234567890\n", &["a line without an end: `12345678`"]),
            (b"1234567\n1\n", &["1234567\n", "1\n"]),
        ];
        for (said, wanted) in rows {
            let mut reader = BufReader::new(said);
            let mut found = Vec::new();
            while let Some(line) = next_line(&mut reader, 8) {
                let is_last = line.is_err();
                found.push(line.unwrap_or_else(|error| error.to_string()));
                if is_last {
                    break;
                }
            }
            assert_eq!(found.len(), wanted.len(), "{found:?}");
            assert!(found.iter().zip(wanted).all(|(found, wanted)| found.ends_with(wanted)), "{found:?}");
        }
    }

    #[test]
    fn each_stretch_of_a_guests_life_has_its_own_patience() {
        let limit = Duration::from_secs(60);
        let then = Instant::now();
        let rows = [
            (Reached::Started(then), BOOT_PATIENCE, "did not boot within"),
            (Reached::Spoken(then), READY_PATIENCE, "did not begin its cell within"),
            (Reached::Begun(then), limit + GUEST_GRACE, "the time limit of 60.0 s passed"),
        ];
        for (reached, patience, says) in rows {
            assert_eq!(reached.overdue(then + patience, limit), None);
            let why = reached.overdue(then + patience + TICK, limit).unwrap();
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn a_machine_that_panics_as_it_starts_is_booted_again_and_no_other() {
        let boots = |panics: u32, then: fn() -> Result<()>| {
            let mut times = 0;
            let last = booted_again(|time| {
                times = time;
                if time <= panics { Err(anyhow!(PanickedAtBoot("it ended".into()))) } else { then() }
            });
            (times, last.map_err(|error| error.to_string()))
        };
        assert_eq!(boots(0, || Ok(())), (1, Ok(())));
        assert_eq!(boots(BOOTS - 1, || Ok(())), (BOOTS, Ok(())));
        assert_eq!(boots(1, || Err(anyhow!("broken"))), (2, Err("broken".into())));
        assert_eq!(boots(9, || Ok(())), (BOOTS, Err(format!("in each of {BOOTS} boots it ended"))));
    }
}
