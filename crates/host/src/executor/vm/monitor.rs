//! QEMU's monitor (QMP: a line of JSON each way). It is spoken to before a machine goes on from
//! where it was saved, and when a machine has stopped itself; never while a cell runs.

use super::console::plain;
use anyhow::{Context, Result, bail, ensure};
use pickfs_system::process::check_stop;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// A line of QEMU's that is longer has no end.
const LONGEST: usize = 1 << 20;
/// After which a request to stop is looked for.
const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
    /// The guest has said that it panics, which a machine does to be saved.
    has_stopped: bool,
}

impl Monitor {
    /// Waits for the emulator, which waits for us.
    pub(crate) fn connect(socket: &Path, emulator: &mut Child) -> Result<Monitor> {
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) => ensure!(emulator.try_wait()?.is_none(), "QEMU did not start: {error}"),
            }
            check_stop()?;
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.set_read_timeout(Some(TICK)).context("cannot limit the waiting for QEMU")?;
        let mut monitor = Monitor { stream: BufReader::new(stream), has_stopped: false };
        monitor.line().context("QEMU does not greet")?;
        monitor.ask("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    pub(crate) fn ask(&mut self, execute: &str, arguments: Value) -> Result<Value> {
        let asked = json!({ "execute": execute, "arguments": arguments }).to_string() + "\n";
        self.stream.get_mut().write_all(asked.as_bytes()).context("QEMU takes no command")?;
        loop {
            let said = self.line()?;
            if let Some(answer) = said.get("return") {
                return Ok(answer.clone());
            }
            if let Some(error) = said.get("error") {
                bail!("QEMU refuses {execute}: {}", plain(error["desc"].as_str().unwrap_or("without a reason")));
            }
        }
    }

    /// A command that only people are meant to give. What it answers is a complaint.
    pub(crate) fn tell(&mut self, line: &str) -> Result<()> {
        let answer = self.ask("human-monitor-command", json!({ "command-line": line }))?;
        let said = answer.as_str().unwrap_or_default().trim();
        ensure!(said.is_empty(), "QEMU answered `{line}` with: {}", plain(said));
        Ok(())
    }

    /// Until the guest stops its machine.
    pub(crate) fn wait_for_stop(&mut self) -> Result<()> {
        while !self.has_stopped {
            self.line()?;
        }
        Ok(())
    }

    fn line(&mut self) -> Result<Value> {
        check_stop()?;
        let mut line = Vec::new();
        loop {
            let most = (LONGEST - line.len()) as u64;
            match self.stream.by_ref().take(most).read_until(b'\n', &mut line) {
                Ok(_) if line.len() == LONGEST => bail!("QEMU sent a line without an end"),
                Ok(0) => bail!("QEMU has ended"),
                Ok(_) => break,
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => check_stop()?,
                Err(error) => return Err(error).context("cannot hear QEMU"),
            }
        }
        let said: Value = serde_json::from_slice(&line).context("what QEMU sent cannot be read")?;
        self.has_stopped |= said["event"] == "GUEST_PANICKED";
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    /// The other end says these lines, one after each that it gets; the first one at once.
    fn monitor_of(lines: &'static [&'static str]) -> (Result<Monitor>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("bound");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a visitor");
            let mut heard = BufReader::new(stream.try_clone().expect("cloned"));
            for line in lines {
                stream.write_all(line.as_bytes()).expect("said");
                // The monitor may have gone after the last line.
                let _ = heard.read_line(&mut String::new());
            }
        });
        let mut emulator = Command::new("true").spawn().expect("started");
        let monitor = Monitor::connect(&socket, &mut emulator);
        emulator.wait().expect("ended");
        (monitor, folder)
    }

    const GREETING: &str = "{\"QMP\": {}}\n";

    #[test]
    fn answers_are_told_from_events() {
        let (monitor, _folder) = monitor_of(&[
            GREETING,
            "{\"return\": {}}\n",
            "{\"event\": \"RESUME\"}\n{\"return\": 3}\n",
            "{\"event\": \"GUEST_PANICKED\"}\n{\"error\": {\"desc\": \"no room\"}}\n",
        ]);
        let mut monitor = monitor.expect("connected");
        assert_eq!(monitor.ask("a", json!({})).expect("an answer"), 3);
        assert!(!monitor.has_stopped);
        let error = monitor.ask("b", json!({})).expect_err("refused").to_string();
        assert_eq!(error, "QEMU refuses b: no room");
        monitor.wait_for_stop().expect("it was said already");
        assert!(monitor.ask("c", json!({})).expect_err("it has ended").to_string().contains("has ended"));
    }

    #[test]
    fn what_a_command_for_people_answers_is_a_complaint() {
        let (monitor, _folder) = monitor_of(&[
            GREETING,
            "{\"return\": {}}\n",
            "{\"return\": \"\"}\n",
            "{\"return\": \"No device\\r\\n\"}\n",
        ]);
        let mut monitor = monitor.expect("connected");
        monitor.tell("savevm a").expect("done");
        let error = monitor.tell("savevm b").expect_err("refused").to_string();
        assert_eq!(error, "QEMU answered `savevm b` with: No device");
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let endless: &'static str = "x".repeat(LONGEST + 1).leak();
        let lines: &'static [&'static str] = vec![GREETING, "{\"return\": {}}\n", endless].leak();
        let (monitor, _folder) = monitor_of(lines);
        let error = monitor.expect("connected").ask("a", json!({})).expect_err("no answer").to_string();
        assert_eq!(error, "QEMU sent a line without an end");
    }

    #[test]
    fn an_emulator_that_has_ended_is_not_waited_for() {
        let mut emulator = Command::new("false").spawn().expect("started");
        let folder = tempfile::tempdir().expect("a folder");
        let error = Monitor::connect(&folder.path().join("none"), &mut emulator).err().expect("nobody there");
        assert!(error.to_string().contains("QEMU did not start"), "{error}");
    }
}
