//! The side of the machine that measures. Each run has a folder next to the folder of the program:
//! the plan, the journal, what the run says, and at its end the exit code.

use super::message::{FollowMessage, Order};
use super::{HELLO, checked_name, hash};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::whole_lines;
use pickfs_system::process::own_program;
use pickfs_system::sys::process::{Signal, kill};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);
/// Looks without news until the near side hears that the link stands.
const QUIET: u32 = 10;
/// Most bytes of a journal or of messages in one message.
const MOST: u64 = 1 << 20;

pub fn hello() {
    println!("{HELLO}");
}

/// The folder of a run on this machine.
struct Place(PathBuf);

impl Place {
    /// Next to the folder of the running program: `FOLDER/bin/pickfs-HASH` has its runs in
    /// `FOLDER/runs`.
    fn of(name: &str) -> Result<Place> {
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let folder = own.parent().and_then(Path::parent).context("this program lies in no folder")?;
        Ok(Place(folder.join("runs").join(checked_name(name)?)))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn journal(&self) -> PathBuf {
        self.file("journal.jsonl")
    }

    /// What its journal has; a torn line is none.
    fn lines(&self) -> Vec<u8> {
        let mut text = fs::read(self.journal()).unwrap_or_default();
        text.truncate(whole_lines(&text));
        text
    }

    /// Whether the near side, which has that many bytes, is to fetch others first.
    fn is_ahead_of(&self, near: u64) -> Result<bool> {
        let (far, shown) = (self.lines().len() as u64, self.0.display());
        ensure!(
            near <= far,
            "the journal in {shown} has lost lines that were fetched from it: move the fetched journal away, then \
             --resume with its name fetches what is left"
        );
        Ok(near < far)
    }

    /// The exit code of a run that has ended.
    fn code(&self) -> Option<i32> {
        fs::read_to_string(self.file("code")).ok()?.trim().parse().ok()
    }

    /// A run that ended before it measured anything: another one may begin in its place.
    fn was_refused(&self) -> bool {
        self.code().is_some() && self.journal().metadata().map_or(true, |found| found.len() == 0)
    }

    fn lock(&self) -> Result<File> {
        let path = self.file("lock");
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        file.with_context(|| format!("cannot open {}", path.display()))
    }

    /// The lock, unless the run is under way.
    fn locked(&self) -> Result<Option<File>> {
        let file = self.lock()?;
        Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
    }
}

/// Begins a run that goes on when the link ends. The same order again, of a run that is there, does
/// nothing.
pub fn start(name: &str) -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read the order")?;
    let order: Order = serde_json::from_str(&text).context("cannot read the order")?;
    let said = match begin(&Place::of(name)?, name, &order) {
        Ok(()) => FollowMessage::There,
        Err(error) => FollowMessage::Refused(format!("{error:#}")),
    };
    say(&said)
}

fn begin(place: &Place, name: &str, order: &Order) -> Result<()> {
    let shown = place.0.display();
    let make = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&place.0);
    make.with_context(|| format!("cannot make {shown}"))?;
    let id = fs::read_to_string(place.file("order")).unwrap_or_default();
    match order.resume {
        None if id == order.id => return Ok(()),
        None if !id.is_empty() && !place.was_refused() => {
            bail!("{shown} has a run that was to be fetched into the same journal: --resume fetches it")
        }
        Some(_) if id.is_empty() => bail!("nothing had begun in {shown}: give the plan again, without --resume"),
        _ => {}
    }
    // Under way: to be followed.
    let Some(lock) = place.locked()? else { return Ok(()) };
    if order.resume.map(|near| place.is_ahead_of(near)).transpose()?.unwrap_or(false) {
        return Ok(());
    }
    let write = |name: &str, text: &str| {
        fs::write(place.file(name), text).with_context(|| format!("cannot write {shown}/{name}"))
    };
    let begins = order.resume.is_none();
    for old in ["code", "stop"].into_iter().chain(begins.then_some("messages")) {
        let _ = fs::remove_file(place.file(old));
    }
    if begins {
        write("plan.toml", &order.plan)?;
        write("order", &order.id)?;
    }
    let messages = File::options().create(true).append(true).open(place.file("messages"))?;
    let taken_up = ["--resume", "journal.jsonl"];
    let begun = ["--journal", "journal.jsonl", "plan.toml"];
    let what = match order.resume {
        Some(_) => &taken_up[..],
        None if order.plan.is_empty() => &begun[..2],
        None => &begun[..],
    };
    // It has the lock as its standard input, and hands it on to the run.
    let keeper = own_program()
        .args(["far", "keep", name, "--"])
        .args(what)
        .args(&order.words)
        .current_dir(&place.0)
        .stdin(lock)
        .stdout(Stdio::null())
        .stderr(messages)
        .spawn();
    keeper.map(drop).context("cannot start the run")
}

/// Has the run done by a child process, in a session that outlives the connection, and writes down
/// how it ended.
pub fn keep(name: &str, words: &[String]) -> Result<()> {
    let place = Place::of(name)?;
    rustix::process::setsid().context("cannot leave the session of the link")?;
    let child = own_program().args(["run", "--fetched"]).args(words).stdout(Stdio::null()).spawn();
    let mut child = child.context("cannot start the run")?;
    let code = watched(&mut child, &place)?;
    let new = place.file("code.new");
    fs::write(&new, code.to_string()).and_then(|()| fs::rename(new, place.file("code"))).context("cannot note the end")
}

/// Hands requests to stop on, each as a Ctrl-C.
fn watched(child: &mut Child, place: &Place) -> Result<i32> {
    use std::os::unix::process::ExitStatusExt;
    let mut stopped = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1));
        }
        let asked = fs::read_to_string(place.file("stop")).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if asked > stopped {
            stopped += 1;
            kill(child.id() as i32, Signal::INT)?;
        }
        std::thread::sleep(LOOK);
    }
}

/// Asks a run to stop for the `time`th time, from 1: first after the step, then at once.
pub fn stop(name: &str, time: u32) -> Result<()> {
    let place = Place::of(name)?;
    let new = place.file("stop.new");
    fs::write(&new, time.to_string()).and_then(|()| fs::rename(new, place.file("stop"))).context("cannot stop the run")
}

/// Says what the run adds to its journal and to its messages, from these offsets in bytes, until it
/// has ended. Ends when the link does, at the latest when nothing more can be said.
pub fn follow(name: &str, journal: u64, messages: u64) -> Result<()> {
    let place = Place::of(name)?;
    let (mut journal, mut messages, mut quiet) = (journal, messages, 0);
    loop {
        // Before the files are read: what is written until then is in them.
        let is_over = place.code().is_some() || place.locked()?.is_some();
        let mut news = false;
        while let Some(text) = lines_from(&place.journal(), journal)? {
            journal += text.len() as u64;
            news = true;
            say(&FollowMessage::Journal(text))?;
        }
        while let Some(text) = lines_from(&place.file("messages"), messages)? {
            messages += text.len() as u64;
            news = true;
            say(&FollowMessage::Messages(text))?;
        }
        if is_over {
            return ended(&place);
        }
        quiet = if news { 0 } else { quiet + 1 };
        if quiet % QUIET == QUIET - 1 {
            say(&FollowMessage::Alive)?;
        }
        std::thread::sleep(LOOK);
    }
}

fn ended(place: &Place) -> Result<()> {
    let text = place.lines();
    say(&FollowMessage::Ended { code: place.code(), bytes: text.len() as u64, sha256: hash(&text) })
}

/// Whole lines from there on, at most [`MOST`] bytes if a line is not longer; nothing where there
/// are none. What is not UTF-8 is no line of ours.
fn lines_from(path: &Path, offset: u64) -> Result<Option<String>> {
    let Ok(mut file) = File::open(path) else { return Ok(None) };
    file.seek(SeekFrom::Start(offset))?;
    let mut most = MOST;
    loop {
        let mut text = Vec::new();
        let read = (&mut file).take(most).read_to_end(&mut text)? as u64;
        match text.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                text.truncate(end + 1);
                return String::from_utf8(text).map(Some).with_context(|| format!("{} is not text", path.display()));
            }
            None if read < most => return Ok(None),
            None => {
                file.seek(SeekFrom::Start(offset))?;
                most *= 2;
            }
        }
    }
}

fn say(said: &FollowMessage) -> Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).context("the link has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_alone_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        assert_eq!(lines_from(&path, 0).unwrap(), None);
        fs::write(&path, "one\ntwo\nthr").unwrap();
        assert_eq!(lines_from(&path, 0).unwrap().as_deref(), Some("one\ntwo\n"));
        assert_eq!(lines_from(&path, 4).unwrap().as_deref(), Some("two\n"));
        assert_eq!(lines_from(&path, 8).unwrap(), None);
        assert_eq!(lines_from(&path, 800).unwrap(), None);
        let long = "x".repeat(3 * MOST as usize) + "\nshort\n";
        fs::write(&path, &long).unwrap();
        let first = lines_from(&path, 0).unwrap().unwrap();
        assert!(first.ends_with('\n') && long.starts_with(&first) && first.len() as u64 > 3 * MOST);
        fs::write(&path, b"\xff\xfe\n").unwrap();
        assert!(lines_from(&path, 0).is_err());
    }

    /// A torn line is none that the near side could fetch first.
    #[test]
    fn a_run_that_a_crash_cut_off_is_taken_up_where_all_its_lines_are_near() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place(folder.path().to_path_buf());
        assert!(!place.is_ahead_of(0).unwrap());
        fs::write(place.journal(), "one\ntwo\nthr").unwrap();
        assert!(place.is_ahead_of(4).unwrap() && !place.is_ahead_of(8).unwrap());
        assert!(place.is_ahead_of(9).unwrap_err().to_string().contains("has lost lines"));
    }

    #[test]
    fn names_are_no_paths() {
        for name in ["", "../x", "a/b", "A", "a b", &"a".repeat(65)] {
            assert!(checked_name(name).is_err(), "{name}");
        }
        assert!(checked_name("0a9f").is_ok());
    }
}
