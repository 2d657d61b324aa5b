//! Pushing to `pickfs serve` on another machine, by curl: it knows the user's proxies and certificates.

use super::Taken;
use super::admit::hex;
use crate::need::Need;
use crate::process::{argv, feed_and_read};
use anyhow::{Result, bail};
use sha2::{Digest, Sha256};
use std::path::Path;

const CURL: Need = Need::Program { name: "curl", package: "curl" };

pub fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Pushes a journal, of which `text` are the whole lines. The token goes to curl on its standard input, as arguments can be
/// seen by every user of the machine.
pub fn push(address: &str, token: &str, text: &[u8], scratch: &Path) -> Result<Taken> {
    if let Err(missing) = CURL.check() {
        bail!("cannot push to {address}: {missing}");
    }
    let hash = hex(&Sha256::digest(text));
    let body = scratch.display().to_string();
    let url = format!("{}/journals/{hash}", address.trim_end_matches('/'));
    let words = ["--silent", "--show-error", "--request", "PUT", "--write-out", "\n%{http_code}", "--header", "@-"];
    let words = argv([&["curl"][..], &words, &["--upload-file", &body, &url]].concat());
    let said = feed_and_read(&words, format!("Authorization: Bearer {token}\n").as_bytes())?;
    let (answer, code) = said.trim_end().rsplit_once('\n').unwrap_or(("", said.trim_end()));
    match code {
        "201" => Ok(Taken { hash, is_new: true }),
        "200" => Ok(Taken { hash, is_new: false }),
        _ => bail!("{address} answers {code}: {}", answer.trim().escape_debug()),
    }
}
