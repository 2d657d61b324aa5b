//! `pickfs record`: what a program does to its files, as a trace that can be replayed on any file
//! system.

#![expect(clippy::disallowed_methods, reason = "ends a recording after a time")]

use super::{Exit, Outcome, Verb, there};
use anyhow::{Context, Result};
use pickfs_core::journal::typed;
use pickfs_host::run::tell;
use pickfs_host::wording::text::counted;
use pickfs_system::need;
use pickfs_system::process::{own_program, stop_on_signals, stop_requests};
use pickfs_system::units::{parse_duration, show_bytes, show_duration, show_share};
use pickfs_trace::Trace;
use pickfs_trace::record::{self, RecordOptions, Recorded};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Record what a command does to files below the current folder, to replay it on other file
/// systems; no root needed
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to write the trace [default: the command's name with .pktrace]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folders whose files are recorded, instead of the current one
    #[arg(long, value_name = "DIR")]
    under: Vec<PathBuf>,
    /// Record a program that runs already, with all processes below it, until Ctrl-C; it goes on
    /// afterwards
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<i32>,
    /// With --pid: stop recording after this time, such as 30s
    #[arg(long = "for", value_name = "TIME", requires = "pid", value_parser = parse_duration)]
    duration: Option<u64>,
    /// Stop the program at every call on files, and load no library into it; slower
    #[arg(long, conflicts_with = "pid")]
    no_preload: bool,
    /// The program that is recorded, as this one starts it
    #[arg(long, hide = true)]
    watched: bool,
    /// Print what the start of a recorded program takes
    #[arg(long, hide = true)]
    start_cost: bool,
    /// The command, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required_unless_present_any = ["pid", "start_cost"])]
    command: Vec<String>,
}

/// What it is called, and none of what is in it.
const ENDING: &str = "pktrace";

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs record -- make", "what make does to files here, into make.pktrace"],
        ["pickfs record --under /srv/mail -- doveadm index -A '*'", "files elsewhere"],
        ["sudo pickfs record --pid 4711 --for 1min --under /srv/db", "a service that runs"],
        ["sudo pickfs run --trace make.pktrace --fs ext4,xfs,btrfs", "then replay it"],
    ];

    fn run(&self) -> Outcome {
        if self.watched {
            return record::starter::run_watched(&self.command).map(|()| 0);
        }
        let own = |words: &[&str]| {
            let mut command = own_program();
            command.arg("record").args(words);
            command
        };
        // It becomes what is recorded, whose words come behind.
        let starter = || own(&["--watched", "--"]);
        if self.start_cost {
            return record::starts::print(starter).map(|()| 0);
        }
        let output = self.output.clone().unwrap_or_else(|| match self.pid {
            Some(pid) => format!("pid-{pid}.{ENDING}").into(),
            None => usual_output(&self.command),
        });
        if output.exists() && self.output.is_none() {
            let shown = output.display();
            return Err(Exit::usage(format!(
                "{shown} is there already; name another file with --output, or remove it"
            )));
        }
        let under = self.folders()?;
        if let Some(pid) = self.pid {
            return self.attach(pid, &under, &output);
        }
        self.refuse_unknown_program()?;
        let options = RecordOptions {
            starter: starter(),
            start_cost: own(&["--start-cost"]),
            words: &self.command,
            under: &under,
            every_call_stops: self.no_preload,
        };
        let Recorded { trace, exit } = record::record(options)?;
        std::fs::write(&output, &trace).with_context(|| format!("cannot write {}", output.display()))?;
        summary(&pickfs_trace::read(&trace)?, trace.len(), &output, &under).iter().for_each(|line| tell(line));
        Ok(exit.code().unwrap_or_else(|| 128 + exit.signal().unwrap_or(0)) as u8)
    }
}

impl Arguments {
    fn refuse_unknown_program(&self) -> Result<()> {
        let Some(name) = self.command.first() else { return Ok(()) };
        let is_there = if name.contains('/') { Path::new(name).exists() } else { need::find_program(name).is_some() };
        if is_there { Ok(()) } else { Err(Exit::usage(format!("there is no program {}", name.escape_debug()))) }
    }

    fn attach(&self, pid: i32, under: &[PathBuf], output: &Path) -> Outcome {
        stop_on_signals()?;
        let begun = Instant::now();
        let is_over = || self.duration.is_some_and(|ns| begun.elapsed() >= Duration::from_nanos(ns));
        if self.duration.is_none() {
            tell(&format!("Recording process {pid}; Ctrl-C ends that, and the process goes on."));
        }
        let trace = record::attach::attach(pid, under, || is_over() || stop_requests() > 0)?;
        std::fs::write(output, &trace).with_context(|| format!("cannot write {}", output.display()))?;
        summary(&pickfs_trace::read(&trace)?, trace.len(), output, under).iter().for_each(|line| tell(line));
        Ok(0)
    }

    /// Absolute, each of which is there.
    fn folders(&self) -> Result<Vec<PathBuf>> {
        if self.under.is_empty() {
            let own = match self.pid {
                Some(pid) => std::fs::read_link(format!("/proc/{pid}/cwd")).with_context(|| {
                    format!("cannot find the current folder of process {pid}; name one with --under")
                })?,
                None => std::env::current_dir().context("cannot find the current folder")?,
            };
            return Ok(vec![own]);
        }
        let folder = |path: &PathBuf| {
            if !there(path)?.is_dir() {
                return Err(Exit::usage(format!("--under: {} is no folder", path.display())));
            }
            Ok(std::path::absolute(path)?)
        };
        self.under.iter().map(folder).collect()
    }
}

fn usual_output(command: &[String]) -> PathBuf {
    let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or("program".as_ref());
    Path::new(program).with_extension(ENDING)
}

/// For people: what was recorded, what was not, and what to do next.
fn summary(trace: &Trace, bytes: usize, output: &Path, under: &[PathBuf]) -> Vec<String> {
    let (header, stats, shown) = (&trace.header, trace.stats(), output.display());
    let calls = stats.calls() as usize;
    let size = |bytes: u64| show_bytes(bytes as f64);
    let mut lines = vec![format!(
        "{shown}: {} on files by {} in {}; {} read, {} written; {} ({:.1} bytes a call)",
        counted(calls, "call"),
        counted(header.threads as usize, "thread"),
        show_duration(header.wall_ns as f64),
        size(stats.bytes_read),
        size(stats.bytes_written),
        size(bytes as u64),
        bytes as f64 / calls.max(1) as f64
    )];
    if stats.bytes_mapped > 0 {
        let (share, mapped) = (show_share(stats.mapped_share()), size(stats.bytes_mapped));
        let near = if stats.is_approximate() { "; the replay only approximates that" } else { "" };
        lines.push(format!("{mapped} ({share}) went through memory (mmap){near}"));
    }
    let folders: Vec<String> = under.iter().map(|folder| folder.display().to_string()).collect();
    if header.elsewhere > 0 {
        let folders = folders.join(" and ");
        lines.push(format!(
            "{} calls on paths outside of {folders} are left out; --under names other folders",
            header.elsewhere
        ));
    }
    if header.not_recorded > 0 {
        let calls = counted(header.not_recorded as usize, "call");
        lines.push(format!("{calls} could not be recorded{}", header.why_not_recorded(": ")));
    }
    if calls == 0 {
        let folders = folders.join(" and ");
        lines.push(format!(
            "There is nothing to replay, as no call was on a file below {folders}; --under names another folder"
        ));
        return lines;
    }
    lines.push("The trace has no names and no contents: `pickfs trace audit` shows every text in it.".into());
    lines.push(format!("Next: sudo pickfs run --trace {} --fs ext4,xfs,btrfs", typed(output)));
    lines
}
