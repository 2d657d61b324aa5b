//! Whole runs on other machines, by the system's ssh or by Slurm.
//!
//! A run stays on one machine, so that its rounds can be compared: the running program is copied there, named by its hash, and
//! does there what `pickfs run` does, with all its checks. It has let go of the link that started it. The near side fetches
//! journal and messages from where it has them, again and again when a link is lost. A job of Slurm does the same in an allocation
//! that it has for itself; its journal lies on its machine, and comes to a folder that all see when the job ends. This room
//! must not know what a run measures, nor what is in a journal but whole lines.
//!
//! Must not know: `agent`, `analysis`, `executor`, `journal`, `plan`, `render`, `run`, `stack`, `stage`, `workload`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "starts ssh, far runs and those of Slurm, and names each order by its time"
)]

mod far;
mod message;
mod near;
mod on_node;
mod slurm;
mod ssh;

pub use far::{follow, hello, keep, start, stop};
pub use near::{Far, Finished, run};
pub use on_node::{BROUGHT, Brought, JOURNAL, NODE, PLAN, job, place_of_cell};
pub use slurm::{Begin, Errand, MOST_ELEMENTS, Slurm, State, VERB, What, bring_program, remove_program};
pub use ssh::Ssh;

use anyhow::{Result, bail};
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

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes))
}
