//! Machines that are not honest, as an ssh that answers for them: what they say fills neither disk
//! nor memory, steers no terminal, and is not taken for what it is not.

use crate::common::{Lab, Said, not_run};
use crate::made::Made;
use pickfs_system::need::Need;
use pickfs_system::sys::process::{Signal, kill};
use sha2::{Digest, Sha256};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Bytes of address space for pickfs: less than what is said here.
const MEMORY: u64 = 1 << 30;

/// A laboratory where `ssh` is a script: what it does when asked for `hello`, to `take` a journal,
/// and to `follow` a run.
struct Host {
    lab: Lab,
}

const HONEST_HELLO: &str = "echo 'pickfs far 1'";

impl Host {
    fn new(hello: &str, take: &str, follow: &str) -> Host {
        let lab = Lab::new();
        let script = format!(
            "#!/bin/sh\nfor word; do case $word in\nhello) {hello}\nexit;;\nstart) cat >/dev/null; echo '\"there\"'; exit;;\n\
             stop) exit;;\ntake) {take}\nexit;;\nfollow) {follow}\nexit;;\nesac; done\n"
        );
        for folder in ["bin", "tmp"] {
            std::fs::create_dir(lab.path(folder)).unwrap();
        }
        for name in ["ssh", "sftp"] {
            let path = lab.path("bin").join(name);
            std::fs::write(&path, &script).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Made::new(&["ext4", "xfs"], &[1.0, 0.8], 4, 1).write(&lab.path("honest.jsonl"));
        Host { lab }
    }

    fn command(&self, words: &[&str]) -> Command {
        let path = format!("{}:{}", self.lab.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={MEMORY}")).arg(env!("CARGO_BIN_EXE_pickfs")).args(words);
        command.current_dir(self.lab.path("")).env("PATH", path).env("TMPDIR", self.lab.path("tmp"));
        command.env("XDG_STATE_HOME", self.lab.path("state")).env_remove("PICKFS_RUN");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Said {
        let said = Said::of(self.command(words).output().unwrap());
        self.assert_harmless(&said);
        said
    }

    fn fetch(&self) -> Said {
        self.run(&FETCH)
    }

    /// Nothing that a terminal or a build server would obey, no sockets, and no run that `clean`
    /// would act on.
    fn assert_harmless(&self, said: &Said) {
        for text in [&said.out, &said.err] {
            let steers = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
            assert!(!text.contains(steers), "{}", text.escape_debug());
            assert!(!text.lines().any(|line| line.trim_start().starts_with("::") || line.contains("##[")), "{text}");
        }
        assert_eq!(std::fs::read_dir(self.lab.path("tmp")).unwrap().count(), 0, "sockets were left");
        let active = walkdir::WalkDir::new(self.lab.path("state/pickfs/active")).min_depth(1).into_iter().flatten();
        assert_eq!(active.count(), 0, "what was fetched counts as a run that was begun here");
    }

    /// Commands that say a journal and its end.
    fn say_journal(&self, text: &str, sha256: &str) -> String {
        let ended = serde_json::json!({"ended": {"code": 0, "bytes": text.len(), "sha256": sha256}});
        let said = format!("{}\n{ended}\n", serde_json::json!({ "journal": text }));
        std::fs::write(self.lab.path("said"), said).unwrap();
        format!("cat {}", self.lab.path("said").display())
    }
}

const FETCH: [&str; 7] = ["run", "--fs", "ext4", "--journal", "journal.jsonl", "--host", "evil"];

fn no_prlimit() -> Option<String> {
    Need::Program { name: "prlimit", package: "util-linux" }.check().err().map(|missing| missing.to_string())
}

fn sha256(text: &[u8]) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

const ESCAPES: &str = r"\033]0;title\007\033[2J\r\302\233\342\200\256 ##[error]x";

#[test]
fn what_no_far_side_says_ends_the_run_with_a_reason() {
    if not_run(no_prlimit()) {
        return;
    }
    let endless = r"tr '\0' x </dev/zero";
    let rows: Vec<(String, String, &str)> = vec![
        (endless.into(), String::new(), "it sent more than the 65536 bytes that an answer may have"),
        ("head -c 1000000000 /dev/zero".into(), String::new(), "it sent more than the 65536 bytes"),
        (format!("printf '{ESCAPES}' >&2; exit 255"), String::new(), "cannot reach evil"),
        (HONEST_HELLO.into(), endless.into(), "it sent a line of more than 16 MiB"),
        (HONEST_HELLO.into(), format!(r#"printf '{{"journal":"'; {endless}"#), "it sent a line of more than 16 MiB"),
        (HONEST_HELLO.into(), r"printf '\377\376\000\n'; sleep 1000".into(), "its message cannot be read"),
        (HONEST_HELLO.into(), format!("printf '{ESCAPES}\\n::stop-commands::t' >&2; exit 3"), "cannot be followed"),
        (HONEST_HELLO.into(), format!("{endless} >&2; exit 3"), "cannot be followed"),
    ];
    std::thread::scope(|scope| {
        for (hello, follow, wanted) in &rows {
            scope.spawn(move || {
                let host = Host::new(hello, "", follow);
                let said = host.fetch().code(1);
                assert!(said.err.contains(wanted), "{wanted}: {}", said.err);
                assert!(said.err.len() < 100_000 && !host.lab.journal().exists(), "{wanted}");
            });
        }
    });
}

#[test]
fn messages_steer_no_terminal_and_are_counted() {
    if not_run(no_prlimit()) {
        return;
    }
    let host = Host::new(HONEST_HELLO, "", "cat messages");
    let text = std::fs::read_to_string(host.lab.path("honest.jsonl")).unwrap();
    host.say_journal(&text, &sha256(text.as_bytes()));
    let odd = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}\n::stop-commands::t\n\r##[error]x\n".to_string()
        + &"y".repeat(1 << 20)
        + "\n";
    let many = serde_json::json!({ "messages": "x\n".repeat(1000) }).to_string() + "\n";
    let said = serde_json::json!({ "messages": odd }).to_string() + "\n" + &many.repeat(1000);
    std::fs::write(host.lab.path("messages"), said + &std::fs::read_to_string(host.lab.path("said")).unwrap()).unwrap();
    let said = host.fetch().code(0);
    assert!(said.err.contains("evil: \\u{1b}]0;title\\u{7}"), "{}", &said.err[..200]);
    assert_eq!(said.err.lines().filter(|line| *line == "evil: x").count(), 20_000 - 4);
    assert!(said.err.contains("evil: 980004 more messages are not shown"));
    assert!(said.err.lines().all(|line| line.chars().count() < 2100));
}

#[test]
fn a_journal_is_what_its_hash_says_and_ends_where_its_machine_says() {
    if not_run(no_prlimit()) {
        return;
    }
    let liar = Host::new(HONEST_HELLO, "", "cat said");
    let text = std::fs::read_to_string(liar.lab.path("honest.jsonl")).unwrap() + "{\"\0\": \"\u{1b}[2J\"}\n";
    liar.say_journal(&text, &"0".repeat(64));
    let said = liar.fetch().code(1);
    assert!(said.err.contains("is not the journal on evil"), "{}", said.err);

    let growing = Host::new(HONEST_HELLO, "", "cat said; while :; do cat said; done");
    growing.say_journal(&text, &sha256(text.as_bytes()));
    growing.fetch().code(0);
    assert!(std::fs::read_to_string(growing.lab.journal()).unwrap() == text);
}

#[test]
fn a_far_store_is_believed_no_more() {
    if not_run(no_prlimit()) {
        return;
    }
    let rows = [
        (r"tr '\0' x </dev/zero", "it sent more than the 65536 bytes"),
        (r#"cat >/dev/null; printf '{"refused":"\\u001b[2J ##[error]"}\n'"#, r"evil: \u{1b}[2J # #[error]"),
        (r"cat >/dev/null; printf '\033[2J\n'", "sent an answer that cannot be read"),
        (r"printf '\033[2J\n' >&2; exit 1", "ended with exit status: 1"),
        ("exit 0", "sent an answer that cannot be read"),
    ];
    for (take, wanted) in rows {
        let host = Host::new(HONEST_HELLO, take, "");
        let said = host.run(&["push", "evil:store", "honest.jsonl"]).code(1);
        assert!(said.err.contains(wanted), "{wanted}: {}", said.err);
    }
}

/// Sent Ctrl-C until it ends.
fn interrupted(host: &Host, words: &[&str]) -> Said {
    let mut child: Child = host.command(words).spawn().unwrap();
    while !host.lab.path("asked").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    for _ in 0..600 {
        let _ = kill(child.id() as i32, Signal::INT);
        std::thread::sleep(Duration::from_millis(100));
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    // One that does not end is no test of the others.
    let _ = child.kill();
    Said::of(child.wait_with_output().unwrap())
}

#[test]
fn a_machine_that_does_not_answer_is_left_on_request() {
    if not_run(no_prlimit()) {
        return;
    }
    let silent = "touch asked; exec sleep 1000";
    let host = Host::new(silent, "", "");
    let said = interrupted(&host, &FETCH).code(130);
    host.assert_harmless(&said);
    let host = Host::new(HONEST_HELLO, silent, "");
    let said = interrupted(&host, &["push", "evil:store", "honest.jsonl"]).code(130);
    host.assert_harmless(&said);
}
