//! A program that runs for minutes: its progress is reported now and then, and it ends when we are
//! asked to stop.

use anyhow::{Context, Result, ensure};
use pickfs_system::process::check_stop;
use pickfs_system::units::show_duration;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);
/// Between two words on how far it is.
const EVERY: Duration = Duration::from_secs(20);
/// Characters of a log's line that are shown.
const WIDTH: usize = 100;
/// Lines of a log that the report of a failure shows.
const LAST: usize = 8;

pub(crate) struct Watched<'a> {
    pub title: &'a str,
    /// Its output is appended there.
    pub log: &'a Path,
    /// Where a program below it writes.
    pub other_log: &'a Path,
}

impl Watched<'_> {
    pub(crate) fn run(&self, words: &[OsString], say: &mut dyn FnMut(&str)) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log);
        let log = log.with_context(|| format!("cannot write {}", self.log.display()))?;
        let program = words.first().context("no program to run")?;
        let mut command = Command::new(program);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child =
            command.spawn().with_context(|| format!("cannot run {}; install it", program.to_string_lossy()))?;
        let ended = self.wait(&mut child, say);
        if ended.is_err() {
            let _ = child.kill();
            child.wait().context("cannot wait for what was ended")?;
        }
        let status = ended?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    fn wait(&self, child: &mut Child, say: &mut dyn FnMut(&str)) -> Result<ExitStatus> {
        let begun = Instant::now();
        let mut said = begun;
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for it")? {
                return Ok(status);
            }
            check_stop()?;
            if said.elapsed() > EVERY {
                said = Instant::now();
                let taken = show_duration(begun.elapsed().as_nanos() as f64);
                say(&format!("{}, after {taken}: {}", self.title, self.now()));
            }
            std::thread::sleep(TICK);
        }
    }

    /// The last line of the innermost program at work, which writes more than dots.
    fn now(&self) -> String {
        let at_work = if self.other_log.exists() { self.other_log } else { self.log };
        let line: String = last_lines(at_work, 1).concat();
        // A path's end says more than its beginning.
        let skipped = line.chars().count().saturating_sub(WIDTH);
        line.chars().skip(skipped).collect()
    }
}

/// The last errors of a log, or its end where it names none; in one line.
pub(crate) fn last_words(log: &Path) -> String {
    let lines = last_lines(log, usize::MAX);
    let errors: Vec<&String> = lines.iter().filter(|line| line.to_lowercase().contains("error:")).collect();
    let excerpt = if errors.is_empty() { lines.iter().collect() } else { errors };
    let excerpt: Vec<&str> = excerpt[excerpt.len().saturating_sub(LAST)..].iter().map(|line| line.as_str()).collect();
    excerpt.join(" / ")
}

fn last_lines(log: &Path, count: usize) -> Vec<String> {
    let said = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&said);
    let lines: Vec<String> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(String::from).collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> (Result<()>, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, other_log) = (folder.path().join("log"), folder.path().join("other"));
        let watched = Watched { title: "it", log: &log, other_log: &other_log };
        let words = ["sh", "-c", script].map(OsString::from);
        let ended = watched.run(&words, &mut |_| {});
        (ended, last_words(&log))
    }

    #[test]
    fn what_it_said_is_kept_and_its_end_is_known() {
        let (ended, said) = run("echo one; echo; echo two >&2");
        assert!(ended.is_ok() && said == "one / two", "{ended:?} {said}");
        let (ended, said) = run("seq 100; exit 3");
        assert!(format!("{:#}", ended.unwrap_err()).contains("exit status: 3"));
        assert!(said.starts_with("93 / 94") && said.ends_with("/ 100"), "{said}");
    }

    #[test]
    fn the_line_that_is_told_is_of_whoever_is_at_work_and_short() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, other_log) = (folder.path().join("log"), folder.path().join("other"));
        let watched = Watched { title: "it", log: &log, other_log: &other_log };
        assert_eq!(watched.now(), "");
        std::fs::write(&log, "configure\n").expect("written");
        assert_eq!(watched.now(), "configure");
        std::fs::write(&other_log, format!("CC {}zfs/arc.o\n", "deep/".repeat(40))).expect("written");
        assert!(watched.now().ends_with("deep/zfs/arc.o") && watched.now().len() == WIDTH, "{}", watched.now());
    }
}
