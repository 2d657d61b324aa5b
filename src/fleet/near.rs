//! The side of the user: has a run begun on a machine, and fetches what it writes, whatever happens to the link.

use super::message::{Order, Said};
use super::ssh::Ssh;
use super::{hash, hex};
use crate::process::{last_words, stop_requests};
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Failures in a row that are none of the link, until they are believed.
const BELIEVED: u32 = 3;
/// So often asked to stop, the near side leaves, and the far run goes on.
const LEAVES: usize = 3;

/// A run that is to be on another machine.
pub struct Far<'a> {
    pub host: &'a str,
    /// Text of the plan file; nothing where the words stand for a plan, or the run of the journal is taken up.
    pub plan: Option<&'a str>,
    /// The run of the journal is taken up.
    pub resumes: bool,
    /// Further words for `pickfs run` there.
    pub words: Vec<String>,
    /// Where its journal is fetched to.
    pub journal: &'a Path,
}

/// How a far run came to its end, as far as it is known here.
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
pub fn run(far: &Far, ssh: &Ssh, tell: &dyn Fn(&str)) -> Result<Finished> {
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
    let mut watch = Watch { host: far.host, name: &name, ssh, tell, messages: 0, stops: 0, failures: 0 };
    let mut wait = Duration::from_secs(1);
    loop {
        let before = copy.bytes;
        match watch.once(&mut copy)? {
            Link::Ended(finished) => return Ok(finished),
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
    let said = ssh.ask(host, &["start", name], &text).or_else(|_| ssh.ask(host, &["start", name], &text));
    let said = said.with_context(|| format!("cannot begin the run on {host}"))?;
    match serde_json::from_str(said.trim()) {
        Ok(Said::There) => Ok(()),
        Ok(Said::Refused(why)) => bail!("{host} does not begin the run: {why}"),
        _ => bail!("{host} gives no answer that is understood: {}", said.trim().escape_debug()),
    }
}

/// The journal as it is here.
struct Copy {
    file: File,
    path: PathBuf,
    bytes: u64,
    hash: Sha256,
}

impl Copy {
    /// A new one is made by its first line only: a run that is refused leaves no file, and an empty one is left by a near
    /// side that died before.
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
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(|| format!("cannot read {shown}"))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64)?;
        let hash = Sha256::new_with_prefix(&text[..whole]);
        Ok(Copy { file, path: path.to_path_buf(), bytes: whole as u64, hash })
    }

    fn append(&mut self, text: &str) -> Result<()> {
        let shown = self.path.display();
        let remedy = || format!("cannot write {shown}; see to it, then --resume {shown} fetches the rest");
        self.file.write_all(text.as_bytes()).with_context(remedy)?;
        self.hash.update(text);
        self.bytes += text.len() as u64;
        Ok(())
    }

    fn is(&self, bytes: u64, sha256: &str) -> bool {
        self.bytes == bytes && hex(self.hash.clone().finalize()) == sha256
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
        let link = self.attend(&heard, copy);
        if !matches!(link, Ok(None)) {
            let _ = child.kill();
        }
        let mut said = Vec::new();
        if let Some(mut errors) = child.stderr.take() {
            let _ = errors.read_to_end(&mut said);
        }
        let status = child.wait().context("cannot wait for ssh")?;
        if let Some(link) = link? {
            return Ok(link);
        }
        // 255 is ssh's own; a signal ended ssh and not the far side.
        let is_link = status.code().is_none_or(|code| code == 255);
        self.failures = if is_link { 0 } else { self.failures + 1 };
        let why = last_words(&said);
        if self.failures >= BELIEVED {
            bail!("{} cannot be followed: {why}", self.host);
        }
        Ok(Link::Lost(why))
    }

    /// `None` when the link ends first.
    fn attend(&mut self, heard: &Receiver<Said>, copy: &mut Copy) -> Result<Option<Link>> {
        loop {
            if self.hand_stops_on() {
                return Ok(Some(Link::Left));
            }
            match heard.recv_timeout(LOOK) {
                Ok(said) => {
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

    fn take(&mut self, said: Said, copy: &mut Copy) -> Result<Option<Finished>> {
        match said {
            Said::Journal(text) => copy.append(&text)?,
            Said::Messages(text) => {
                self.messages += text.len() as u64;
                text.lines().filter(|line| !line.trim().is_empty()).for_each(|line| (self.tell)(line));
            }
            Said::Ended { code, bytes, sha256 } if copy.is(bytes, &sha256) => {
                return Ok(Some(code.map_or(Finished::Died, Finished::Ended)));
            }
            Said::Ended { .. } => {
                let shown = copy.path.display();
                bail!(
                    "{shown} is not the journal on {}: move it away, then --resume {shown} fetches that one",
                    self.host
                )
            }
            Said::There | Said::Refused(_) | Said::Alive => {}
        }
        Ok(None)
    }

    /// True when the user wants to leave.
    fn hand_stops_on(&mut self) -> bool {
        let asked = stop_requests();
        if asked >= LEAVES {
            return true;
        }
        while self.stops < asked {
            let time = (self.stops + 1).to_string();
            if let Err(error) = self.ssh.ask(self.host, &["stop", self.name, &time], b"") {
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

/// By a thread, as reading waits.
fn heard(out: impl Read + Send + 'static) -> Receiver<Said> {
    let (send, heard) = channel();
    std::thread::spawn(move || {
        // A line that is not understood is the end of the link: what comes next would be misread.
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        let said = lines.map_while(|line| serde_json::from_str(&line).ok());
        for said in said {
            if send.send(said).is_err() {
                return;
            }
        }
    });
    heard
}
