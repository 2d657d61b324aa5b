//! `pickfs serve`: shows a store's pages to all, and takes pushes that have the token. Nothing else.

use super::{Exit, Outcome, Verb, site};
use crate::process::{request_stop, stop_on_signals, stop_requests};
use crate::store::{Limits, Refused, Store};
use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// Serve a store over HTTP: pages to read, and pushes with a token; for a trusted network, or behind a proxy with TLS
#[derive(clap::Args)]
pub struct Arguments {
    /// The store; made if it is not there
    store: PathBuf,
    /// Address and port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: String,
    /// File with the token that pushes need, at least 16 characters, for its owner's eyes only; without it there are no pushes
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// What the first page is called
    #[arg(long, default_value = "Which file system for which work on which disk?")]
    title: String,
}

/// Requests that are answered at once.
const WORKERS: usize = 4;
const LOOK: Duration = Duration::from_millis(300);
const SHORTEST_TOKEN: usize = 16;

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs serve /srv/runs", "pages at http://127.0.0.1:8080/"],
        ["pickfs serve /srv/runs --listen 0.0.0.0:8080 --token-file token", "and pushes from other machines"],
    ];

    fn run(&self) -> Outcome {
        let token = self.token_file.as_deref().map(token).transpose()?;
        let store = Store::open_or_make(&self.store)?;
        let server = Server::http(&self.listen);
        let server = server.map_err(|error| Exit::usage(format!("cannot listen at {}: {error}", self.listen)))?;
        stop_on_signals()?;
        let pushes = if token.is_some() { "pushes with the token" } else { "no pushes, as there is no --token-file" };
        println!("http://{}/: {}, {pushes}; Ctrl-C ends it", server.server_addr(), self.store.display());
        let desk = Desk { store, title: &self.title, token };
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| desk.work(&server));
            }
        });
        Ok(0)
    }
}

/// The hash of the token.
fn token(file: &Path) -> Result<[u8; 32]> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let mode = file.metadata()?.mode();
    ensure!(mode & 0o077 == 0, "others may read {shown}; `chmod 600 {shown}`");
    let text = text.trim();
    if text.len() < SHORTEST_TOKEN || text.contains(char::is_whitespace) {
        bail!(
            "the token in {shown} is not one word of at least {SHORTEST_TOKEN} characters; `openssl rand -hex 16` makes one"
        );
    }
    Ok(Sha256::digest(text).into())
}

/// What is answered: a code, a text and its kind.
struct Answer {
    code: u16,
    kind: &'static str,
    body: Vec<u8>,
}

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JOURNAL: &str = "application/jsonl";

fn answer(code: u16, text: impl Into<String>) -> Answer {
    Answer { code, kind: TEXT, body: (text.into() + "\n").into_bytes() }
}

struct Desk<'a> {
    store: Store,
    title: &'a str,
    token: Option<[u8; 32]>,
}

impl Desk<'_> {
    fn work(&self, server: &Server) {
        while stop_requests() == 0 {
            match server.recv_timeout(LOOK) {
                Ok(Some(request)) => self.serve(request),
                Ok(None) => {}
                Err(error) => {
                    eprintln!("pickfs: cannot serve any longer: {error}");
                    request_stop();
                }
            }
        }
    }

    fn serve(&self, mut request: Request) {
        let answer = self.answer(&mut request).unwrap_or_else(|error| {
            eprintln!("pickfs: {} {}: {error:#}", request.method(), request.url().escape_debug());
            answer(500, "the server failed; its terminal says why")
        });
        let header = |name: &str, value: &str| Header::from_bytes(name, value).expect("plain words");
        let response = Response::from_data(answer.body).with_status_code(answer.code);
        let response = response
            .with_header(header("Content-Type", answer.kind))
            .with_header(header("X-Content-Type-Options", "nosniff"))
            .with_header(header("Referrer-Policy", "no-referrer"));
        // A reader that has gone needs no answer.
        let _ = request.respond(response);
    }

    fn answer(&self, request: &mut Request) -> Result<Answer> {
        let url = request.url().to_string();
        let path = url.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/');
        match request.method() {
            Method::Get | Method::Head => self.page(path),
            Method::Put => match path.strip_prefix("journals/") {
                Some(hash) => self.push(hash, request),
                None => Ok(answer(404, "journals are pushed to journals/SHA-256")),
            },
            _ => Ok(answer(405, "GET reads a page, PUT pushes a journal")),
        }
    }

    fn page(&self, path: &str) -> Result<Answer> {
        let of = |folder: &str, end: &str| path.strip_prefix(folder)?.strip_suffix(end).filter(|hash| is_hash(hash));
        let there = |hash: &&str| self.store.journal(hash).is_file();
        if let Some(hash) = of("run/", ".html").filter(there) {
            return Ok(Answer { code: 200, kind: HTML, body: site::report_page(&self.store, hash)? });
        }
        if let Some(hash) = of("journals/", ".jsonl").filter(there) {
            let body = std::fs::read(self.store.journal(hash)).context("cannot read a journal")?;
            return Ok(Answer { code: 200, kind: JOURNAL, body });
        }
        let path = if path.is_empty() { "index.html" } else { path };
        let pages = site::pages(&self.store, self.title)?;
        let found = pages.into_iter().find(|(name, _)| name == path);
        Ok(found.map_or(answer(404, "there is no such page"), |(_, text)| Answer {
            code: 200,
            kind: HTML,
            body: text.into_bytes(),
        }))
    }

    /// Nothing of the journal is read before the token is right.
    fn push(&self, hash: &str, request: &mut Request) -> Result<Answer> {
        let Some(token) = self.token else { return Ok(answer(403, "this server takes no pushes")) };
        let given = request.headers().iter().find(|header| header.field.equiv("Authorization"));
        let given = given.and_then(|header| header.value.as_str().strip_prefix("Bearer ").map(Sha256::digest));
        // Hashes are compared: the time that it takes says nothing of the token.
        if given.is_none_or(|given| <[u8; 32]>::from(given) != token) {
            return Ok(answer(401, "a push needs the token of this server"));
        }
        match self.store.take(request.as_reader(), Some(hash), Limits::default()) {
            Ok(taken) if taken.is_new => Ok(answer(201, "taken")),
            Ok(_) => Ok(answer(200, "it was there already")),
            Err(error) if error.is::<Refused>() => Ok(answer(422, error.to_string())),
            Err(error) => Err(error),
        }
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
