//! The side of the user: has a run begun on a machine, and fetches what it writes, whatever happens
//! to the link.

use super::hash;
use super::message::{FollowMessage, Order};
use super::ssh::{Ssh, Start, end};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::whole_lines;
use pickfs_system::process::{last_words, stop_requests};
use pickfs_system::visible::visible_line;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Failures in a row that are none of the link, until they are believed.
const BELIEVED: u32 = 3;
/// For the end of an ssh that has said all.
const PATIENCE: Duration = Duration::from_secs(20);
/// So often asked to stop, the near side leaves, and the far run goes on.
pub const LEAVES: usize = 3;
/// Bytes of a line that the far side may say. It sends a mebibyte at once, unless a line of a
/// journal is longer.
const LONGEST_LINE: u64 = 16 << 20;
/// Bytes of a journal, as a store takes it. The largest that we know has 40 MB.
const LONGEST_JOURNAL: u64 = 512 << 20;
/// What was said and not yet taken: a far side that sends more waits.
const AHEAD: usize = 2;
/// Messages of a run that are shown; further ones are counted.
const MOST_MESSAGES: u64 = 20_000;

/// A run that is to be on another machine.
pub struct FarRun<'a> {
    pub host: &'a str,
    /// Text of the plan file; nothing where the words stand for a plan, or the run of the journal
    /// is taken up.
    pub plan: Option<&'a str>,
    /// The run of the journal is taken up.
    pub resumes: bool,
    /// Further words for `pickfs run` there.
    pub words: Vec<String>,
    /// Where its journal is fetched to.
    pub journal: &'a Path,
}

/// How a far run ended, as far as this machine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Its exit code. The journal here is the whole journal there.
    Ended(i32),
    /// It died, and nothing saw how; the journal here is all that it wrote.
    Died,
    /// It was left to itself on request.
    Left,
}

/// Begins the run or takes it up, and fetches it. `tell` shows lines to the user.
pub fn run(far: &FarRun, ssh: &Ssh, tell: &dyn Fn(&str)) -> Result<Finished> {
    let mut copy = Copy::open(far.journal, !far.resumes)?;
    let name = name_of(far.journal)?;
    ssh.install(far.host)?;
    let order = Order {
        id: hash(format!("{} {}", jiff::Timestamp::now(), std::process::id()).as_bytes()),
        plan: far.plan.unwrap_or_default().to_string(),
        words: far.words.clone(),
        resume: far.resumes.then_some(copy.bytes),
    };
    begin(far.host, &name, &order, ssh)?;
    let mut watch = Watch { host: far.host, name: &name, ssh, tell, messages: 0, lines: 0, stops: 0, failures: 0 };
    let mut wait = Duration::from_secs(1);
    loop {
        let before = copy.bytes;
        match watch.once(&mut copy)? {
            Link::Ended(finished) => {
                watch.tell_of_the_rest();
                return Ok(finished);
            }
            Link::Left => return Ok(Finished::Left),
            Link::Lost(why) => {
                wait = if copy.bytes > before { Duration::from_secs(1) } else { (wait * 2).min(LONGEST_WAIT) };
                tell(&format!("the link is lost ({why}); the run goes on there, and is reached again in {wait:?}"));
                if watch.slept(wait) {
                    return Ok(Finished::Left);
                }
            }
        }
    }
}

/// The same for one journal of one machine and user, so that a lost run is found again: 16 digits.
fn name_of(journal: &Path) -> Result<String> {
    let journal = std::path::absolute(journal)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let user = rustix::process::geteuid().as_raw();
    Ok(hash(format!("{host} {user} {}", journal.display()).as_bytes())[..16].to_string())
}

fn begin(host: &str, name: &str, order: &Order, ssh: &Ssh) -> Result<()> {
    let text = serde_json::to_vec(order)?;
    // Twice is once: a link that ends on the way back is no failure.
    let ask = || ssh.ask(host, &["start", name], text.clone());
    let said = ask().or_else(|_| ask());
    let said = said.with_context(|| format!("cannot begin the run on {host}"))?;
    match serde_json::from_str(said.trim()) {
        Ok(FollowMessage::There) => Ok(()),
        Ok(FollowMessage::Refused(why)) => bail!("{host} does not begin the run: {}", visible_line(&why)),
        _ => bail!("{host} sent an answer that cannot be read: {}", visible_line(said.trim())),
    }
}

/// The local copy of the journal.
struct Copy {
    file: File,
    path: PathBuf,
    bytes: u64,
    hash: Sha256,
}

impl Copy {
    /// A new one is made by its first line only: a run that is refused leaves no file, and an empty
    /// one is left by a near side that died before.
    fn open(path: &Path, is_new: bool) -> Result<Copy> {
        let shown = path.display();
        if is_new && path.metadata().is_ok_and(|found| !found.is_file() || found.len() > 0) {
            bail!("{shown} is there already; name another --journal, or take it up with --resume {shown}");
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let file = File::options().read(true).append(true).create(true).open(path);
        let mut file = file.with_context(|| format!("cannot write {shown}"))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("{shown} is in use by another pickfs; wait for it, or stop it first");
        }
        let found = file.metadata().with_context(|| format!("cannot read {shown}"))?;
        ensure!(found.is_file() && found.len() <= LONGEST_JOURNAL, "{shown} is no journal: it is too long, or no file");
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(|| format!("cannot read {shown}"))?;
        let whole = whole_lines(&text);
        file.set_len(whole as u64)?;
        let hash = Sha256::new_with_prefix(&text[..whole]);
        Ok(Copy { file, path: path.to_path_buf(), bytes: whole as u64, hash })
    }

    fn append(&mut self, text: &str) -> Result<()> {
        let shown = self.path.display();
        let bytes = self.bytes + text.len() as u64;
        ensure!(
            bytes <= LONGEST_JOURNAL,
            "the journal there is longer than the {} MiB that are fetched; {shown} has its start",
            LONGEST_JOURNAL >> 20
        );
        let remedy = || format!("cannot write {shown}; see to it, then --resume {shown} fetches the rest");
        self.file.write_all(text.as_bytes()).with_context(remedy)?;
        self.hash.update(text);
        self.bytes = bytes;
        Ok(())
    }

    fn is(&self, bytes: u64, sha256: &str) -> bool {
        self.bytes == bytes && format!("{:x}", self.hash.clone().finalize()) == sha256
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if self.bytes == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// How a link ended.
enum Link {
    Ended(Finished),
    Lost(String),
    Left,
}

struct Watch<'a> {
    host: &'a str,
    name: &'a str,
    ssh: &'a Ssh,
    tell: &'a dyn Fn(&str),
    /// Bytes of its messages that were shown.
    messages: u64,
    /// Lines of its messages.
    lines: u64,
    /// Requests to stop that were handed on.
    stops: usize,
    /// In a row, that were none of the link.
    failures: u32,
}

impl Watch<'_> {
    /// As long as one link lasts.
    fn once(&mut self, copy: &mut Copy) -> Result<Link> {
        let offsets = [copy.bytes.to_string(), self.messages.to_string()];
        let mut child = self.ssh.listen(self.host, &["follow", self.name, &offsets[0], &offsets[1]])?;
        let heard = heard(child.stdout.take().context("ssh has no output")?);
        let errors = Start::of(child.stderr.take());
        let link = self.attend(&heard, copy);
        // What was not understood, or is not wanted, may go on for ever.
        let (why, is_link) = match &link {
            Ok(None) => last_words_of(&mut child, errors),
            _ => (String::new(), true),
        };
        end(&mut child);
        match link? {
            Some(Link::Lost(why)) => self.failed(why),
            Some(link) => Ok(link),
            None if is_link => {
                self.failures = 0;
                Ok(Link::Lost(why))
            }
            None => self.failed(why),
        }
    }

    /// By a failure that is none of the link.
    fn failed(&mut self, why: String) -> Result<Link> {
        self.failures += 1;
        ensure!(self.failures < BELIEVED, "{} cannot be followed: {why}", self.host);
        Ok(Link::Lost(why))
    }

    /// `None` when the link ends first.
    fn attend(&mut self, heard: &Receiver<Heard>, copy: &mut Copy) -> Result<Option<Link>> {
        loop {
            if self.hand_stops_on() {
                return Ok(Some(Link::Left));
            }
            match heard.recv_timeout(LOOK) {
                Ok(Err(why)) => return Ok(Some(Link::Lost(why))),
                Ok(Ok(said)) => {
                    self.failures = 0;
                    if let Some(finished) = self.take(said, copy)? {
                        return Ok(Some(Link::Ended(finished)));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    fn take(&mut self, said: FollowMessage, copy: &mut Copy) -> Result<Option<Finished>> {
        match said {
            FollowMessage::Journal(text) => copy.append(&text)?,
            FollowMessage::Messages(text) => {
                self.messages += text.len() as u64;
                text.lines().filter(|line| !line.trim().is_empty()).for_each(|line| self.show(line));
            }
            FollowMessage::Ended { code, bytes, sha256 } if copy.is(bytes, &sha256) => {
                return Ok(Some(code.map_or(Finished::Died, Finished::Ended)));
            }
            FollowMessage::Ended { .. } => {
                let shown = copy.path.display();
                bail!(
                    "{shown} is not the journal on {}: move it away, then --resume {shown} fetches that one",
                    self.host
                )
            }
            FollowMessage::There | FollowMessage::Refused(_) | FollowMessage::Alive => {}
        }
        Ok(None)
    }

    fn show(&mut self, line: &str) {
        self.lines += 1;
        if self.lines <= MOST_MESSAGES {
            (self.tell)(&visible_line(line));
        }
    }

    fn tell_of_the_rest(&self) {
        if let more @ 1.. = self.lines.saturating_sub(MOST_MESSAGES) {
            (self.tell)(&format!("{more} more messages are not shown"));
        }
    }

    /// True when the user wants to leave.
    fn hand_stops_on(&mut self) -> bool {
        let asked = stop_requests();
        if asked >= LEAVES {
            return true;
        }
        while self.stops < asked {
            let time = (self.stops + 1).to_string();
            if let Err(error) = self.ssh.ask(self.host, &["stop", self.name, &time], Vec::new()) {
                (self.tell)(&format!("the request to stop did not get through: {error:#}"));
                return false;
            }
            self.stops += 1;
        }
        false
    }

    /// True when the user wants to leave meanwhile.
    fn slept(&self, wait: Duration) -> bool {
        let mut slept = Duration::ZERO;
        while slept < wait && stop_requests() < LEAVES {
            std::thread::sleep(LOOK);
            slept += LOOK;
        }
        stop_requests() >= LEAVES
    }
}

/// What ssh said as it ended, and whether the link ended rather than the far side.
fn last_words_of(child: &mut Child, mut errors: Start) -> (String, bool) {
    let mut waited = Duration::ZERO;
    while waited < PATIENCE && stop_requests() < LEAVES {
        // Longer than an answer: its start will do.
        let are_whole = errors.is_whole().unwrap_or(true);
        let ended = if are_whole { child.try_wait().ok().flatten() } else { None };
        if let Some(status) = ended {
            // 255 is ssh's own; a signal ended ssh and not the far side.
            let is_link = status.code().is_none_or(|code| code == 255);
            return (last_words(&errors.bytes.unwrap_or_default()), is_link);
        }
        std::thread::sleep(LOOK / 4);
        waited += LOOK / 4;
    }
    ("it closed its output and did not exit".into(), false)
}

/// A message, or why there are no more.
type Heard = Result<FollowMessage, String>;

/// By a thread, as reading waits.
fn heard(out: impl Read + Send + 'static) -> Receiver<Heard> {
    let (send, heard) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        let mut lines = BufReader::new(out);
        while let Some(said) = next(&mut lines) {
            // What comes after a line that is not understood would be misread.
            let is_last = said.is_err();
            if send.send(said).is_err() || is_last {
                return;
            }
        }
    });
    heard
}

/// The next line; nothing where the link has ended, also within a line.
fn next(lines: &mut impl BufRead) -> Option<Heard> {
    let mut line = Vec::new();
    lines.take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
    if line.ends_with(b"\n") {
        return Some(serde_json::from_slice(&line).map_err(|error| format!("its message cannot be read: {error}")));
    }
    let is_long = line.len() as u64 == LONGEST_LINE;
    is_long.then(|| Err(format!("it sent a line of more than {} MiB", LONGEST_LINE >> 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_without_end_is_not_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut copy = Copy::open(&path, true).unwrap();
        copy.append("one\n").unwrap();
        copy.bytes = LONGEST_JOURNAL - 4;
        copy.append("two\n").unwrap();
        let error = copy.append("x").unwrap_err().to_string();
        assert!(error.contains("longer than the 512 MiB") && error.contains("journal.jsonl"), "{error}");
        drop(copy);
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
    }

    /// One that sends more than is taken waits, and does not fill the memory.
    #[test]
    fn what_is_not_taken_is_not_read() {
        struct Endless(std::sync::Arc<std::sync::atomic::AtomicUsize>);
        impl Read for Endless {
            fn read(&mut self, chunk: &mut [u8]) -> std::io::Result<usize> {
                let line = b"\"alive\"\n";
                chunk[..line.len()].copy_from_slice(line);
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Ok(line.len())
            }
        }
        let lines = std::sync::Arc::default();
        let heard = heard(Endless(std::sync::Arc::clone(&lines)));
        (0..10).for_each(|_| assert_eq!(heard.recv().unwrap(), Ok(FollowMessage::Alive)));
        std::thread::sleep(LOOK);
        let read = lines.load(std::sync::atomic::Ordering::Relaxed);
        assert!(read <= 10 + AHEAD + 2, "{read} lines were read");
    }
}
