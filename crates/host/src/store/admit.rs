//! What is pushed, read once, checked and hashed on the way into a file without a name of the
//! sender's choosing.

use super::folder::{Folder, Unfinished};
use anyhow::{Context, Result};
use pickfs_core::journal::{LONGEST_LINE, Record, SCHEMA};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};

/// The sender's fault.
#[derive(Debug)]
pub(crate) struct Refused(pub String);

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "refused: {}", self.0)
    }
}

impl std::error::Error for Refused {}

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Refused(why.into()).into())
}

/// Bytes that a journal, and a line of it, may have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub journal: u64,
    pub line: u64,
}

impl Default for Limits {
    /// The largest real journal that we know has 40 MB.
    fn default() -> Limits {
        Limits { journal: 512 << 20, line: LONGEST_LINE }
    }
}

/// The hash of a journal in lower case: 64 digits, so that it is no path.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// A journal that may be kept; its file goes when it is dropped.
pub(crate) struct Admitted {
    pub hash: String,
    pub file: Unfinished,
}

/// Reads a journal to its end into a file of the folder, and judges it.
pub(crate) fn admit(
    journal: &mut dyn Read,
    declared: Option<&str>,
    limits: Limits,
    folder: Folder,
) -> Result<Admitted> {
    if let Some(declared) = declared.filter(|declared| !is_hash(declared)) {
        let start: String = declared.chars().take(80).collect();
        return refused(format!("`{}` is not a SHA-256 in lower case", start.escape_debug()));
    }
    let mut file = Unfinished::new(folder).context(UNWRITTEN)?;
    let mut reading = Reading { hash: Sha256::new(), limits, bytes: 0, line: 0, first: Vec::new(), is_first: true };
    let mut chunk = vec![0; 64 << 10];
    loop {
        let read = journal.read(&mut chunk).context("cannot read what is pushed")?;
        if read == 0 {
            break;
        }
        reading.take(&chunk[..read])?;
        file.file.write_all(&chunk[..read]).context(UNWRITTEN)?;
    }
    Ok(Admitted { hash: reading.end(declared)?, file })
}

const UNWRITTEN: &str = "cannot write what is pushed";

struct Reading {
    hash: Sha256,
    limits: Limits,
    bytes: u64,
    /// Bytes of the present line.
    line: u64,
    first: Vec<u8>,
    is_first: bool,
}

impl Reading {
    fn take(&mut self, chunk: &[u8]) -> Result<()> {
        self.bytes += chunk.len() as u64;
        if self.bytes > self.limits.journal {
            return refused(format!("a journal has at most {} bytes", self.limits.journal));
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line += piece.len() as u64;
            if self.line > self.limits.line {
                return refused(format!("a line of a journal has at most {} bytes", self.limits.line));
            }
            if self.is_first {
                self.first.extend(piece);
            }
            if piece.ends_with(b"\n") {
                // Before the rest is read: what does not begin as a journal is none.
                if std::mem::take(&mut self.is_first) {
                    begins_a_journal(&self.first)?;
                }
                self.line = 0;
            }
        }
        self.hash.update(chunk);
        Ok(())
    }

    fn end(self, declared: Option<&str>) -> Result<String> {
        if self.is_first || self.line > 0 {
            return refused("it does not end with a whole line, so it is not whole or no journal");
        }
        let hash = format!("{:x}", self.hash.finalize());
        match declared.filter(|declared| *declared != hash) {
            Some(declared) => refused(format!("its SHA-256 is {hash}, and not {declared} as it claims")),
            None => Ok(hash),
        }
    }
}

/// A `run` record of a schema that we know, or anything that calls itself one of a newer schema:
/// that is kept until a newer pickfs reads it.
pub(super) fn begins_a_journal(line: &[u8]) -> Result<()> {
    if matches!(serde_json::from_slice(line), Ok(Record::Run(run)) if !run.id.is_empty()) {
        return Ok(());
    }
    let newer = serde_json::from_slice::<serde_json::Value>(line).ok();
    let newer = newer.and_then(|value| value.get("run")?.get("schema")?.as_u64());
    match newer.filter(|schema| *schema > u64::from(SCHEMA)) {
        Some(_) => Ok(()),
        None => refused("its first line is no `run` record with an id, so it is no journal"),
    }
}
