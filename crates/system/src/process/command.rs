//! Runs a program outside the timer and keeps its words for the case that it fails.

use super::RUN_MARK;
use crate::need::find_program;
use crate::visible::visible_line;
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The file that this process runs, also where another one has its name by now, or none.
pub const OWN_FILE: &str = "/proc/self/exe";

/// A program and its arguments; no shell ever sees it.
pub type Argv = Vec<String>;

/// Makes an [`Argv`] of words.
pub fn argv<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Argv {
    words.into_iter().map(|word| word.as_ref().to_string()).collect()
}

/// What marks a process as ours: variable and value.
pub type Mark<'a> = (&'a str, &'a str);

/// A command with our environment: plain words, marked, no inherited stdin.
pub fn command(argv: &Argv, marks: &[Mark]) -> Result<Command> {
    let Some((name, arguments)) = argv.split_first() else { bail!("an empty command") };
    let program = if name.contains('/') { name.into() } else { find_program(name).unwrap_or_else(|| name.into()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C").env_remove(super::CELL_MARK);
    for (name, value) in marks {
        command.env(name, value);
    }
    Ok(command)
}

/// This program again, as it runs: its file may have been replaced since, by an upgrade or by a
/// build.
pub fn own_program() -> Command {
    let mut command = Command::new(OWN_FILE);
    command.arg0("pickfs");
    command
}

/// Runs a program on our terminal, with a text on its standard input, which it need not read to the
/// end.
pub fn feed(argv: &Argv, text: &[u8]) -> Result<()> {
    use std::io::Write;
    let shown = argv.join(" ");
    let mut command = command(argv, &[])?;
    command.stdin(Stdio::piped()).env_remove("LC_ALL").env("LESSCHARSET", "utf-8");
    let mut child = command.spawn().with_context(|| format!("cannot run `{shown}`"))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that has read enough closes it.
        let _ = input.write_all(text);
    }
    child.wait().with_context(|| format!("cannot wait for `{shown}`"))?;
    Ok(())
}

/// Runs a program with a short text on its standard input; its stdout, and an error with its last
/// words.
pub fn feed_and_read(argv: &Argv, text: &[u8]) -> Result<String> {
    use std::io::Write;
    let shown = argv.join(" ");
    let mut command = command(argv, &[])?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run `{shown}`"))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that ends without reading it prints why.
        let _ = input.write_all(text);
    }
    let output = child.wait_with_output().with_context(|| format!("cannot wait for `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}: {}", output.status, last_words(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Its stdout, of at most this many bytes; a program that prints more is ended, which is an error.
/// Its other output is lost.
pub fn output_up_to(argv: &Argv, most: u64) -> Result<Vec<u8>> {
    use std::io::Read;
    let shown = argv.join(" ");
    let mut command = command(argv, &[])?;
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot run `{shown}`"))?;
    let mut found = Vec::new();
    // Once its output is closed, one that goes on writing ends.
    let read = child.stdout.take().map_or(Ok(0), |output| output.take(most + 1).read_to_end(&mut found));
    let ended = child.wait().with_context(|| format!("cannot wait for `{shown}`"))?;
    read.with_context(|| format!("cannot read what `{shown}` prints"))?;
    ensure!(found.len() as u64 <= most, "`{shown}` prints more than {most} bytes");
    ensure!(ended.success(), "`{shown}` ended with {ended}");
    Ok(found)
}

/// Its stdout; an error has the program's last words.
pub fn output(argv: &Argv, marks: &[Mark]) -> Result<String> {
    output_of(command(argv, marks)?, argv)
}

/// As [`output`], of a command that was made from these words and changed.
pub fn output_of(mut command: Command, argv: &Argv) -> Result<String> {
    let shown = argv.join(" ");
    let output = command.output().with_context(|| format!("cannot run `{shown}`"))?;
    if !output.status.success() {
        // Some say on stdout what went wrong, and some tell there of all that went well before.
        let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
        bail!("`{shown}` ended with {}: {}", output.status, last_words(said));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a listing begins with where the program could not be run, or was asked in vain.
pub const NO_LISTING: &str = "unknown: ";

/// As [`output`], with stderr as well and whatever the exit code: for version and fact listings.
pub fn listing(argv: &Argv, run: &str) -> String {
    let output = command(argv, &[(RUN_MARK, run)]).and_then(|mut c| Ok(c.output()?));
    match output {
        Ok(output) => String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_string(),
        Err(error) => format!("{NO_LISTING}{error}"),
    }
}

/// The last three lines that are not empty, and before them the first that is marked as an error: a
/// compiler's, say, that `make` then has more to say about. Each is made visible.
pub fn last_words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (earlier, last) = lines.split_at(lines.len().saturating_sub(3));
    let first = earlier.iter().find(|line| line.contains("error: "));
    let last: Vec<String> = first.into_iter().chain(last).map(|line| visible_line(line)).collect();
    if last.is_empty() { "it printed nothing".into() } else { last.join(" / ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_gives_the_programs_last_words() {
        let error = output(&argv(["ls", "/nowhere/at/all"]), &[]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all") && error.contains("No such file"), "{error}");
        assert!(output(&argv(["no-such-program"]), &[]).is_err());
        assert!(output(&Vec::new(), &[]).is_err());
    }

    #[test]
    fn output_ends_where_it_is_too_much() {
        let error = output_up_to(&argv(["yes"]), 1000).unwrap_err().to_string();
        assert!(error.contains("more than 1000 bytes"), "{error}");
        assert_eq!(output_up_to(&argv(["printf", "1234"]), 4).unwrap(), b"1234");
        assert!(output_up_to(&argv(["printf", "12345"]), 4).is_err() && output_up_to(&argv(["false"]), 4).is_err());
    }

    #[test]
    fn last_words_are_three_lines() {
        assert_eq!(last_words(b"a\nb\n\nc\n d \n"), "b / c / d");
        assert_eq!(last_words(b"\n"), "it printed nothing");
        assert_eq!(last_words(b"a\nb.c:1: error: no\nc.c:2: error: no\nd\ne\nf\n"), "b.c:1: error: no / d / e / f");
        assert_eq!(last_words(b"error: a\nb\n"), "error: a / b");
        assert_eq!(last_words(b"\x1b[2Ja\n"), r"\u{1b}[2Ja");
    }
}
