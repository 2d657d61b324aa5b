//! The system's ssh, with the user's own configuration, keys and agent. It is never asked for a
//! password: a run that waits for one would look as if it measured.

use super::sockets::Sockets;
use super::{HELLO, checked_folder, checked_host};
use anyhow::{Context, Result, bail, ensure};
use pickfs_system::need::Need;
use pickfs_system::process::{Argv, Interrupted, OWN_FILE, argv, last_words, stop_requests};
use pickfs_system::sys::process::kill_group;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

const NEEDS: [Need; 2] = [
    Need::Program { name: "ssh", package: "openssh-client" },
    Need::Program { name: "sftp", package: "openssh-client" },
];

/// A link that is silent for three of these, in seconds, is lost.
const SILENT: &str = "ServerAliveInterval=5";

/// Most bytes of an answer: it is a line of JSON, or some lines of ssh.
const LONGEST_ANSWER: u64 = 64 << 10;
const LOOK: Duration = Duration::from_millis(10);

/// How other machines are reached, and this program in the form that they need.
pub struct Ssh {
    options: Argv,
    /// The folder on the far machines that has the program and its runs.
    folder: String,
    program: String,
    /// Shared by several sessions.
    _sockets: Sockets,
    /// Number of requests to stop that end the waiting.
    leaves: usize,
}

impl Ssh {
    /// `config` instead of ssh's own configuration; `folder` on the far machines, relative to the
    /// home there. After `leaves` requests to stop no answer is waited for.
    pub fn new(config: Option<&str>, folder: &str, leaves: usize) -> Result<Ssh> {
        if let Some(missing) = pickfs_system::need::missing(&NEEDS).first() {
            bail!("cannot reach other machines: {missing}");
        }
        let folder = checked_folder(folder)?.trim_end_matches('/').to_string();
        let program = format!("{folder}/bin/pickfs-{}", &own_hash()?[..32]);
        let sockets = Sockets::new()?;
        let control = format!("ControlPath={}/%C", sockets.folder().display());
        let shared =
            ["ControlMaster=auto", "ControlPersist=30", &control, "BatchMode=yes", "ConnectTimeout=15", SILENT];
        let shared = shared.into_iter().flat_map(|option| ["-o", option]);
        let config = config.into_iter().flat_map(|file| ["-F", file]);
        let options = argv(config.chain(shared));
        Ok(Ssh { options, folder, program, _sockets: sockets, leaves })
    }

    /// Copies the running program to the host, unless it is there.
    pub(crate) fn install(&self, host: &str) -> Result<()> {
        checked_host(host)?;
        if self.says_hello(host)? {
            return Ok(());
        }
        self.copy(host).with_context(|| format!("cannot copy pickfs to {host}"))?;
        let remedy = "it may need another processor or newer libraries: `make static` builds a pickfs that needs none";
        ensure!(self.says_hello(host)?, "pickfs was copied to {host} and does not run there; {remedy}");
        Ok(())
    }

    /// An error only where the host is not reached.
    fn says_hello(&self, host: &str) -> Result<bool> {
        let answer = self.answer(&self.words(host, &["hello"]), Vec::new())?;
        // ssh's own failures; all others are those of the far side.
        if answer.status.code() == Some(255) {
            bail!("cannot reach {host}: {}", last_words(&answer.err));
        }
        Ok(answer.out.trim_ascii() == HELLO.as_bytes())
    }

    fn copy(&self, host: &str) -> Result<()> {
        let bin = format!("{}/bin", self.folder);
        let ends = bin.match_indices('/').map(|(at, _)| at).chain([bin.len()]).filter(|at| *at > 0);
        let folders: String = ends.map(|end| format!("-mkdir {}\n", &bin[..end])).collect();
        // Hosts may share a home.
        let new = format!("{}.{}-{}", self.program, std::process::id(), &super::hash(host.as_bytes())[..8]);
        let program = &self.program;
        // The program as it runs, also where its file was replaced since.
        let own = format!("/proc/{}/exe", std::process::id());
        let batch = format!("{folders}put {own} {new}\nchmod 700 {new}\nrename {new} {program}\n");
        let words = [argv(["sftp", "-q"]), self.options.clone(), argv(["-b", "-", host])].concat();
        self.answer(&words, batch.into_bytes())?.of_success(&words).map(drop)
    }

    /// The far side's answer to a few words and a text.
    pub(crate) fn ask(&self, host: &str, words: &[&str], text: Vec<u8>) -> Result<String> {
        let words = self.words(host, words);
        self.answer(&words, text)?.of_success(&words)
    }

    /// What a program says to a text. It is ended if it prints more than an answer, or if the user
    /// leaves.
    fn answer(&self, words: &Argv, text: Vec<u8>) -> Result<Answer> {
        let mut command = command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {}", words[0]))?;
        let input = child.stdin.take();
        // A program that ends without reading it prints why.
        std::thread::spawn(move || input.map(|mut input| input.write_all(&text)));
        let answer = await_answer(&mut child, self.leaves);
        if answer.is_err() {
            end(&mut child);
        }
        answer.with_context(|| format!("no answer from {}", words[0]))
    }

    /// What the far side says until the link ends. A Ctrl-C here is not for ssh.
    pub(crate) fn listen(&self, host: &str, words: &[&str]) -> Result<std::process::Child> {
        let mut command = command(&self.words(host, words));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().context("cannot run ssh")
    }

    fn words(&self, host: &str, words: &[&str]) -> Argv {
        let far = [&[host, self.program.as_str(), "far"], words].concat();
        [argv(["ssh"]), self.options.clone(), argv(["-T"]), argv(far)].concat()
    }
}

/// A Ctrl-C here is not for ssh.
fn command(words: &Argv) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("LC_ALL", "C").process_group(0);
    command
}

/// How a program ended, and the start of what it said.
struct Answer {
    status: ExitStatus,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Answer {
    fn of_success(self, words: &Argv) -> Result<String> {
        ensure!(self.status.success(), "{} ended with {}: {}", words[0], self.status, last_words(&self.err));
        Ok(String::from_utf8_lossy(&self.out).into_owned())
    }
}

fn await_answer(child: &mut Child, leaves: usize) -> Result<Answer> {
    let mut parts = [Start::of(child.stdout.take()), Start::of(child.stderr.take())];
    loop {
        let are_whole = parts[0].is_whole()? & parts[1].is_whole()?;
        let ended = if are_whole { child.try_wait().context("cannot wait for it")? } else { None };
        if let Some(status) = ended {
            let [out, err] = parts.map(|part| part.bytes.unwrap_or_default());
            return Ok(Answer { status, out, err });
        }
        if stop_requests() >= leaves {
            bail!(Interrupted);
        }
        std::thread::sleep(LOOK);
    }
}

/// With all that it started: a proxy, say.
pub(crate) fn end(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        let _ = kill_group(child.id() as i32);
    }
    let _ = child.wait();
}

/// The part of a program's output that is an answer. It is read by a thread, as reading waits.
pub(crate) struct Start {
    heard: Receiver<Vec<u8>>,
    /// Once it is whole.
    pub bytes: Option<Vec<u8>>,
}

impl Start {
    pub(crate) fn of(from: Option<impl Read + Send + 'static>) -> Start {
        let (send, heard) = sync_channel(1);
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(from) = from {
                // What came before an error counts.
                let _ = from.take(LONGEST_ANSWER + 1).read_to_end(&mut bytes);
            }
            send.send(bytes)
        });
        Start { heard, bytes: None }
    }

    /// Whether its end was read.
    pub(crate) fn is_whole(&mut self) -> Result<bool> {
        self.bytes = self.bytes.take().or_else(|| self.heard.try_recv().ok());
        let length = self.bytes.as_ref().map_or(0, Vec::len) as u64;
        ensure!(length <= LONGEST_ANSWER, "it sent more than the {LONGEST_ANSWER} bytes that an answer may have");
        Ok(self.bytes.is_some())
    }
}

/// Hash of the running program.
fn own_hash() -> Result<String> {
    let mut own = File::open(OWN_FILE).context("cannot read this program's own file")?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let read = own.read(&mut chunk).context("cannot read this program's own file")?;
        if read == 0 {
            return Ok(format!("{:x}", hash.finalize()));
        }
        hash.update(&chunk[..read]);
    }
}
