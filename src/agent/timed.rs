//! What a workload does inside the timer: programs of the trade, and loops of our own.

use super::command::{Mark, command, last_words};
use super::hygiene;
use super::pace::{self, Pace};
use super::watch::{self, Deadline};
use crate::stack::Argv;
use crate::sys::{file, process};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Lent to a phase's closure; counts what the work itself cost and handled.
pub struct Timed<'a> {
    marks: &'a [Mark<'a>],
    deadline: &'a Deadline,
    /// Where programs say what went wrong; in memory, so that it costs the disk nothing.
    words: File,
    /// CPU of the workload's own processes, in nanoseconds.
    pub cpu_ns: u64,
    /// What the workload's own processes had read from block devices.
    pub read_bytes: u64,
    pub bytes: u64,
    pub files: u64,
    /// Where the work was for a time.
    pub(super) pace: Option<Pace>,
}

impl<'a> Timed<'a> {
    pub(super) fn new(marks: &'a [Mark<'a>], deadline: &'a Deadline) -> Result<Timed<'a>> {
        let words = rustix::fs::memfd_create("pickfs-words", rustix::fs::MemfdFlags::CLOEXEC)?;
        let (cpu_ns, read_bytes, bytes, files) = (0, 0, 0, 0);
        Ok(Timed { marks, deadline, words: words.into(), cpu_ns, read_bytes, bytes, files, pace: None })
    }

    /// Runs a program to its end; a failure has its last words.
    pub fn command<S: AsRef<str>>(&mut self, words: impl IntoIterator<Item = S>) -> Result<()> {
        let argv = crate::stack::argv(words);
        let mut command = self.prepared(&argv)?;
        let child =
            command.stdout(Stdio::null()).spawn().with_context(|| format!("cannot run `{}`", argv.join(" ")))?;
        self.wait(child.id() as i32, &argv)
    }

    /// Runs a program whose output goes into a pipe that discards; returns the bytes that came. A pipe, because GNU
    /// tar reads no file at all when it sees that its output is /dev/null.
    pub fn discarded<S: AsRef<str>>(&mut self, words: impl IntoIterator<Item = S>) -> Result<u64> {
        let argv = crate::stack::argv(words);
        let mut command = self.prepared(&argv)?;
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot run `{}`", argv.join(" ")))?;
        let pipe = child.stdout.take().context("the program has no output pipe")?;
        file::set_pipe_size(&pipe, 1 << 20).ok();
        let bytes = file::discard_pipe(&pipe).context("cannot empty the pipe")?;
        self.wait(child.id() as i32, &argv)?;
        Ok(bytes)
    }

    /// Runs a loop of our own in this process.
    pub fn own<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = process::own_usage();
        let result = work();
        let after = process::own_usage();
        self.cpu_ns += (after.user_ns + after.system_ns).saturating_sub(before.user_ns + before.system_ns);
        self.read_bytes += after.read_bytes.saturating_sub(before.read_bytes);
        result
    }

    /// The same, and no ordinary process of the machine delays it: for work that shall take as long as it is large.
    /// Where that is not allowed it is done all the same.
    pub fn ahead_of_others<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.own(|| process::ahead_of_others(work))
    }

    /// Does a piece of work, which says how many bytes it completed, again and again for a time; longer where its rate
    /// is not steady by then. What it handled is counted here.
    pub fn for_a_time(&mut self, time: Duration, mut piece: impl FnMut() -> Result<u64>) -> Result<()> {
        let (begun, deadline) = (Instant::now(), self.deadline);
        // Settling afterwards may need all of its patience.
        let may_last = |more: Duration| deadline.left() > more + more / 10 + hygiene::PATIENCE;
        let pace = self.own(|| {
            pace::keep(
                time,
                || begun.elapsed(),
                may_last,
                || {
                    watch::check_stop()?;
                    deadline.check()?;
                    piece()
                },
            )
        })?;
        self.handled(pace.bytes, 0);
        self.pace = Some(pace);
        Ok(())
    }

    /// What the phase handled, for throughput.
    pub fn handled(&mut self, bytes: u64, files: u64) {
        self.bytes += bytes;
        self.files += files;
    }

    fn prepared(&self, argv: &Argv) -> Result<Command> {
        let mut command = command(argv, self.marks)?;
        command.stderr(self.words.try_clone()?);
        Ok(command)
    }

    fn wait(&mut self, pid: i32, argv: &Argv) -> Result<()> {
        let (status, usage) = process::wait_with_usage(pid).context("cannot wait for the program")?;
        self.cpu_ns += usage.user_ns + usage.system_ns;
        self.read_bytes += usage.read_bytes;
        if !status.success() {
            bail!("`{}` ended with {status}: {}", argv.join(" "), self.said());
        }
        Ok(())
    }

    fn said(&mut self) -> String {
        let mut text = Vec::new();
        match self.words.rewind().and_then(|()| self.words.read_to_end(&mut text)) {
            Ok(_) => last_words(&text),
            Err(error) => format!("its words are lost: {error}"),
        }
    }
}
