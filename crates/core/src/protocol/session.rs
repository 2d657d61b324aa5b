//! The host's end of the pipe: one agent under way, from its start to its last word.

use anyhow::{Context, Result, anyhow};
use pickfs_system::process::last_words;
use pickfs_system::sys::process;
use serde::Serialize;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long [`Session::hear`] waits for a line.
const TICK: Duration = Duration::from_millis(250);
/// Bytes; a histogram is a tenth of that.
const LONGEST_LINE: u64 = 8 << 20;
/// Lines that wait to be heard; an agent that sends more waits itself.
const MOST_LINES: usize = 256;
/// Bytes of an agent's stderr that are kept.
const LAST_ERRORS: usize = 4096;

/// A child process, and the three pipes on which its agent is reached.
pub struct Connection {
    pub child: Owned,
    pub to: Box<dyn Write + Send>,
    pub from: Box<dyn Read + Send>,
    pub errors: Box<dyn Read + Send>,
}

/// A child process that leads a process group, killed with it when dropped before its end.
pub struct Owned(Child);

impl Deref for Owned {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Ok(None) = self.try_wait() {
            process::kill_group(self.id() as i32).ok();
            let _ = self.wait();
        }
    }
}

impl Connection {
    /// Starts a program, in its own process group, whose stdin and stdout are the agent's.
    pub fn open(command: &mut Command) -> Result<Connection> {
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = Owned(command.spawn().with_context(|| format!("cannot start {program}"))?);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(errors)) = pipes else { return Err(anyhow!("no pipes to {program}")) };
        Ok(Connection { child, to: Box::new(to), from: Box::new(from), errors: Box::new(errors) })
    }
}

impl Connection {
    /// Starts a program that prints nothing on its stdout, which is given back: it closes when the
    /// program ends.
    pub fn open_silent(command: &mut Command) -> Result<(Connection, ChildStdout)> {
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = Owned(command.spawn().with_context(|| format!("cannot start {program}"))?);
        let pipes = (child.stdout.take(), child.stderr.take());
        let (Some(silent), Some(errors)) = pipes else { return Err(anyhow!("no pipes to {program}")) };
        let (to, from) = (Box::new(std::io::sink()), Box::new(std::io::empty()));
        Ok((Connection { child, to, from, errors: Box::new(errors) }, silent))
    }
}

/// What came of listening for a moment.
#[derive(Debug)]
pub enum Heard {
    Line(String),
    Nothing,
    /// The agent has closed its end.
    Closed,
}

/// How the child ended.
#[derive(Debug)]
pub struct Exit {
    /// None where it was killed here.
    pub status: Option<ExitStatus>,
    /// The end of what it said on stderr.
    pub errors: String,
}

impl Exit {
    /// The last lines of stderr, in one.
    pub fn last_words(&self) -> Option<String> {
        (!self.errors.trim().is_empty()).then(|| last_words(self.errors.as_bytes()))
    }
}

pub struct Session {
    child: Owned,
    to: Option<Sender<Vec<u8>>>,
    lines: Receiver<Result<String>>,
    errors: Option<JoinHandle<String>>,
    begun: Instant,
    was_killed: bool,
}

impl Session {
    pub fn start(connection: Connection, first: &impl Serialize) -> Result<Session> {
        let Connection { child, to, from, errors } = connection;
        let session = Session {
            child,
            to: Some(write_lines(to)),
            lines: read_lines(from),
            errors: Some(read_errors(errors)),
            begun: Instant::now(),
            was_killed: false,
        };
        session.say(first)?;
        Ok(session)
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// The next line, waited for a quarter of a second: waking up oftener would be seen in what the
    /// agent times. Fails for a line that no agent says.
    pub fn hear(&mut self) -> Result<Heard> {
        match self.lines.recv_timeout(TICK) {
            Ok(line) => line.map(Heard::Line),
            Err(RecvTimeoutError::Timeout) => Ok(Heard::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Heard::Closed),
        }
    }

    /// One that is dead already shows in how it ends.
    pub fn say(&self, what: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(what)? + "\n";
        self.to.iter().for_each(|to| drop(to.send(line.clone().into_bytes())));
        Ok(())
    }

    /// Closes our end: an agent that hears no more undoes what it has built, and ends.
    pub fn hang_up(&mut self) {
        self.to = None;
    }

    pub fn kill(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.was_killed = true;
            process::kill_group(self.child.id() as i32).ok();
        }
    }

    /// Waits until the child has ended, at most for `patience` if there is one; then it is killed.
    pub fn end(mut self, patience: Option<Duration>) -> Result<Exit> {
        self.hang_up();
        let begun = Instant::now();
        while let (Some(patience), Ok(None)) = (patience, self.child.try_wait()) {
            if begun.elapsed() > patience {
                self.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait().context("cannot wait for the agent")?;
        // Children that the agent left in its group hold its pipes open.
        process::kill_group(self.child.id() as i32).ok();
        let errors = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        Ok(Exit { status: (!self.was_killed).then_some(status), errors })
    }
}

/// Writes in a thread, so that the caller does not wait for an agent that reads nothing.
fn write_lines(mut to: impl Write + Send + 'static) -> Sender<Vec<u8>> {
    let (send, lines) = mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for line in lines {
            if to.write_all(&line).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    });
    send
}

/// Until the agent closes its end. A last line without an end is torn and dropped; one that has no
/// end in sight is an error.
fn read_lines(from: impl Read + Send + 'static) -> Receiver<Result<String>> {
    let (send, lines) = mpsc::sync_channel(MOST_LINES);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(from);
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
            let begun = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
            Some(Err(anyhow!("the agent sent a line without an end: `{}`", begun.trim())))
        }
        _ => None,
    }
}

fn read_errors(mut errors: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut kept, mut piece) = (Vec::new(), [0; LAST_ERRORS]);
        while let Ok(read @ 1..) = errors.read(&mut piece) {
            kept.extend_from_slice(&piece[..read]);
            kept.drain(..kept.len().saturating_sub(LAST_ERRORS));
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
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
}
