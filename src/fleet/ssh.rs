//! The system's ssh, with the user's own configuration, keys and agent. It is never asked for a password: a run that waits
//! for one would look as if it measured.

use super::{HELLO, hex};
use crate::need::Need;
use crate::process::{Argv, OWN_FILE, argv, feed_and_read};
use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const NEEDS: [Need; 2] = [
    Need::Program { name: "ssh", package: "openssh-client" },
    Need::Program { name: "sftp", package: "openssh-client" },
];

/// A link that is silent for three of these, in seconds, is lost.
const SILENT: &str = "ServerAliveInterval=5";

/// How other machines are reached, and this program as it is to be there.
pub struct Ssh {
    options: Argv,
    /// The folder on the far machines that has the program and its runs.
    folder: String,
    program: String,
    /// Holds the sockets that several sessions share.
    sockets: PathBuf,
}

impl Ssh {
    /// `config` instead of ssh's own configuration; `folder` on the far machines, relative to the home there.
    pub fn new(config: Option<&str>, folder: &str) -> Result<Ssh> {
        if let Some(missing) = crate::need::missing(&NEEDS).first() {
            bail!("cannot reach other machines: {missing}");
        }
        // It stands among words that the login shell of the far machine reads.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
        ensure!(
            !folder.is_empty() && !folder.starts_with('-') && folder.bytes().all(is_plain),
            "the folder `{}` has other characters than letters, digits and ._/-; name another",
            folder.escape_debug()
        );
        // Short: a socket's path has at most 107 bytes.
        let sockets = std::env::temp_dir().join(format!("pickfs-ssh-{}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&sockets);
        made.with_context(|| format!("cannot make {}", sockets.display()))?;
        let control = format!("ControlPath={}/%C", sockets.display());
        let shared =
            ["ControlMaster=auto", "ControlPersist=30", &control, "BatchMode=yes", "ConnectTimeout=15", SILENT];
        let shared = shared.into_iter().flat_map(|option| ["-o", option]);
        let config = config.into_iter().flat_map(|file| ["-F", file]);
        let options = argv(config.chain(shared));
        let program = format!("{}/bin/pickfs-{}", folder.trim_end_matches('/'), &own_hash()?[..32]);
        Ok(Ssh { options, folder: folder.trim_end_matches('/').to_string(), program, sockets })
    }

    /// Copies the running program to the host, unless it is there.
    pub fn install(&self, host: &str) -> Result<()> {
        let is_odd = |c: char| c.is_whitespace() || c.is_control();
        ensure!(
            !host.is_empty() && !host.starts_with('-') && !host.contains(is_odd),
            "`{}` is no host; name one as ssh knows it",
            host.escape_debug()
        );
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
        let output = self.command(host, &["hello"]).stdin(Stdio::null()).output().context("cannot run ssh")?;
        let said = String::from_utf8_lossy(&output.stdout);
        // ssh's own failures; all others are those of the far side.
        if output.status.code() == Some(255) {
            bail!("cannot reach {host}: {}", crate::process::last_words(&output.stderr));
        }
        Ok(said.trim() == HELLO)
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
        feed_and_read(&words, batch.as_bytes()).map(drop)
    }

    /// The far side's answer to a few words and a text.
    pub fn ask(&self, host: &str, words: &[&str], text: &[u8]) -> Result<String> {
        feed_and_read(&self.words(host, words), text)
    }

    /// What the far side says until the link ends. A Ctrl-C here is not for ssh.
    pub fn listen(&self, host: &str, words: &[&str]) -> Result<std::process::Child> {
        let mut command = self.command(host, words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().context("cannot run ssh")
    }

    fn command(&self, host: &str, words: &[&str]) -> Command {
        let words = self.words(host, words);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0);
        command
    }

    fn words(&self, host: &str, words: &[&str]) -> Argv {
        let far = [&[host, self.program.as_str(), "far"], words].concat();
        [argv(["ssh"]), self.options.clone(), argv(["-T"]), argv(far)].concat()
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // Shared sessions end with the last one of them, or by themselves.
        let sockets = std::fs::read_dir(&self.sockets).into_iter().flatten().flatten();
        for socket in sockets {
            let control = format!("ControlPath={}", socket.path().display());
            let words = ["-o", &control, "-O", "exit", "none"];
            let _ = Command::new("ssh").args(words).stdin(Stdio::null()).stderr(Stdio::null()).status();
        }
        let _ = std::fs::remove_dir_all(&self.sockets);
    }
}

/// Of the running program.
fn own_hash() -> Result<String> {
    let mut own = File::open(OWN_FILE).context("cannot read this program's own file")?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let read = own.read(&mut chunk).context("cannot read this program's own file")?;
        if read == 0 {
            return Ok(hex(hash.finalize()));
        }
        hash.update(&chunk[..read]);
    }
}
