//! Whole runs on other machines, and journals for stores there, by the system's ssh or by Slurm.
//!
//! A run stays on one machine, so that its rounds can be compared: the running program is copied
//! there, named by its hash, and does there what `pickfs run` does, with all its checks. It has let
//! go of the link that started it. The near side fetches journal and messages from where it has
//! them, again and again when a link is lost. A job of Slurm does the same in an allocation that it
//! has for itself; its journal lies on its machine, and comes to a folder that all see when the job
//! ends. This room must not know what a run measures, nor what is in a journal but whole lines.
//!
//! Must not know: `analysis`, `executor`, `render`, `run`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "starts ssh, far runs and those of Slurm, and names each order by its time"
)]

mod far;
mod message;
mod near;
mod on_node;
mod push;
mod slurm;
mod sockets;
mod ssh;

pub use far::{follow, hello, keep, start, stop};
pub use message::Answer;
pub use near::{FarRun, Finished, LEAVES, run};
pub use on_node::{BROUGHT, Brought, JOURNAL, NODE, PLAN, job, place_of_cell};
pub use push::{FarStore, answer};
pub use slurm::{Begin, Errand, JobKind, MOST_ELEMENTS, Slurm, State, VERB, bring_program, remove_program};
pub use ssh::Ssh;

use anyhow::{Result, bail, ensure};
use sha2::{Digest, Sha256};

/// What the far side answers to `hello`; raised when near and far would misunderstand each other.
const HELLO: &str = "pickfs far 1";

/// Goes into a path: what names a run on its machine.
fn checked_name(name: &str) -> Result<&str> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if name.is_empty() || name.len() > 64 || !is_plain {
        bail!("`{}` does not name a run", name.escape_debug());
    }
    Ok(name)
}

/// A word for ssh.
fn checked_host(host: &str) -> Result<&str> {
    ensure!(
        !host.is_empty() && !host.starts_with('-') && !host.contains(|c: char| c.is_whitespace() || c.is_control()),
        "`{}` is no host; name one as ssh knows it",
        host.escape_debug()
    );
    Ok(host)
}

/// A folder of a far machine, relative to the home there. It stands among words that the login
/// shell of that machine reads.
fn checked_folder(folder: &str) -> Result<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    ensure!(
        !folder.is_empty() && !folder.starts_with('-') && folder.bytes().all(is_plain),
        "the folder `{}` has other characters than letters, digits and ._/-; name another",
        folder.escape_debug()
    );
    Ok(folder)
}

fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
