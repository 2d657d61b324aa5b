//! `pickfs trace`: looks at recordings, and makes others of them.

use super::{Exit, Outcome, Verb};
use anyhow::{Context, Result};
use pickfs_core::journal::typed;
use pickfs_host::wording::text::counted;
use pickfs_system::units::{show_bytes, show_duration, show_share};
use pickfs_trace::record::strace;
use pickfs_trace::{Class, EntryKind, Kind, Op, Target, Trace, shipped};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Look at what `pickfs record` wrote: its calls, its counts, every text in it; or make another
/// trace of it, or one of a log of strace
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print what was there before, and every call, a line each
    #[command(after_help = "Examples:\n  pickfs trace show make.pktrace | less")]
    Show {
        /// A file, or a name that `pickfs list traces` prints
        #[arg(value_name = "FILE|NAME")]
        trace: String,
    },
    /// Count calls, bytes, errors and times
    #[command(after_help = "Examples:\n  pickfs trace stats make.pktrace")]
    Stats {
        /// A file, or a name that `pickfs list traces` prints
        #[arg(value_name = "FILE|NAME")]
        trace: String,
    },
    /// Print every text that the file holds, to see before sharing that it has no names
    #[command(after_help = "Examples:\n  pickfs trace audit make.pktrace")]
    Audit {
        /// A file, or a name that `pickfs list traces` prints
        #[arg(value_name = "FILE|NAME")]
        trace: String,
    },
    /// Keep the first calls alone
    #[command(after_help = "Examples:\n  pickfs trace cut make.pktrace --calls 1000 -o start.pktrace")]
    Cut {
        /// A file, or a name that `pickfs list traces` prints
        #[arg(value_name = "FILE|NAME")]
        trace: String,
        /// How many
        #[arg(long, value_name = "N")]
        calls: usize,
        /// Where to write the new trace
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Make a trace of a log of `strace -f -yy -ttt -T -xx`
    #[command(after_help = "Examples:\n  strace -f -yy -ttt -T -xx -o make.log make\n  pickfs trace import make.log")]
    Import {
        /// The log
        #[arg(value_name = "LOG")]
        log: PathBuf,
        /// Folders whose files are kept, as the log names them [default: the folder that the
        /// program began in]
        #[arg(long, value_name = "DIR")]
        under: Vec<PathBuf>,
        /// Where to write the trace [default: the log's name with .pktrace]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// The same program several times at once, each in its own folders
    #[command(after_help = "Examples:\n  pickfs trace scale make.pktrace --copies 4 -o four.pktrace")]
    Scale {
        /// A file, or a name that `pickfs list traces` prints
        #[arg(value_name = "FILE|NAME")]
        trace: String,
        /// How many
        #[arg(long, value_name = "N")]
        copies: u32,
        /// Where to write the new trace
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs trace stats make.pktrace", "what a program did, counted"],
        ["pickfs trace audit make.pktrace", "every text in the file, before it is shared"],
        ["pickfs trace scale make.pktrace --copies 4 -o four.pktrace", "four at once"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let mut out = std::io::stdout().lock();
        match &self.what {
            Action::Show { trace } => show(&read(trace)?, &mut out)?,
            Action::Stats { trace } => stats(&read(trace)?).iter().try_for_each(|line| writeln!(out, "{line}"))?,
            Action::Audit { trace } => audit(&bytes(trace)?, &read(trace)?, &mut out)?,
            Action::Cut { trace, calls, output } => made(output, &pickfs_trace::cut(&read(trace)?, *calls)?, &mut out)?,
            Action::Import { log, under, output } => import(log, under, output.as_deref(), &mut out)?,
            Action::Scale { trace, copies, output } => {
                let scaled = pickfs_trace::scale(&read(trace)?, *copies)
                    .map_err(|error| Exit::usage(format!("--copies: {error:#}")))?;
                made(output, &scaled, &mut out)?;
            }
        }
        Ok(0)
    }
}

fn bytes(name: &str) -> Result<Vec<u8>> {
    match shipped::find(name) {
        Some(shipped) => Ok(shipped.bytes.to_vec()),
        None => std::fs::read(name).map_err(|error| {
            let remedy = "`pickfs list traces` names the traces that come with pickfs";
            Exit::usage(format!("cannot read the trace {}: {error}; {remedy}", name.escape_debug()))
        }),
    }
}

fn read(name: &str) -> Result<Trace> {
    let (bytes, shown) = (bytes(name)?, name.escape_debug());
    if !pickfs_trace::is_one(&bytes) {
        return Err(Exit::usage(format!("{shown} is not a trace of pickfs; `pickfs record` makes one")));
    }
    pickfs_trace::read(&bytes).with_context(|| format!("the trace {shown} cannot be used; record it again"))
}

fn write(output: &PathBuf, bytes: &[u8]) -> Result<()> {
    std::fs::write(output, bytes).with_context(|| format!("cannot write {}", output.display()))
}

/// A trace that was made of another one: what is in it, and how it is used.
fn made(output: &PathBuf, bytes: &[u8], out: &mut impl Write) -> Result<()> {
    write(output, bytes)?;
    writeln!(out, "{}: {}", output.display(), in_short(&pickfs_trace::read(bytes)?))?;
    writeln!(out, "{}", next(output))?;
    Ok(())
}

/// The header of a part, or of copies, has the times of the whole recording: those of the calls are
/// summed.
fn in_short(trace: &Trace) -> String {
    let (calls, all) = (trace.stats().calls() as usize, trace.ops.len());
    let threads: BTreeSet<u32> = trace.ops.iter().map(|op| op.thread).collect();
    let others = match all - calls {
        0 => String::new(),
        others => format!(" and {others} that start threads or wait for them,"),
    };
    format!(
        "{} on files{others} by {}; as recorded, the busiest thread takes {}",
        counted(calls, "call"),
        counted(threads.len(), "thread"),
        show_duration(trace.longest_thread_ns(1.0))
    )
}

fn next(output: &Path) -> String {
    format!("Next: sudo pickfs run --trace {} --fs ext4,xfs,btrfs", typed(output))
}

/// A log is text, but names in it may be any bytes.
fn import(log: &Path, under: &[PathBuf], output: Option<&Path>, out: &mut impl Write) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let shown = log.display();
    let text = std::fs::read(log).with_context(|| format!("cannot read {shown}"))?;
    if let Some(folder) = under.iter().find(|folder| !folder.is_absolute()) {
        let folder = folder.display();
        return Err(Exit::usage(format!("--under: name {folder} by its full path on the machine that wrote the log")));
    }
    let under: Vec<Vec<u8>> = under.iter().map(|folder| folder.as_os_str().as_bytes().to_vec()).collect();
    let bytes = strace::import(&String::from_utf8_lossy(&text), &under)
        .with_context(|| format!("{shown} cannot be used; log with `strace -f -yy -ttt -T -xx -o LOG COMMAND`"))?;
    let output = output.map_or_else(|| log.with_extension("pktrace"), Path::to_path_buf);
    write(&output, &bytes)?;
    let (trace, shown) = (pickfs_trace::read(&bytes)?, output.display());
    let (calls, header) = (trace.stats().calls(), &trace.header);
    writeln!(out, "{shown}: {calls} calls on files by {}", counted(header.threads as usize, "thread"))?;
    if header.elsewhere > 0 {
        writeln!(out, "{} calls on paths elsewhere are left out; --under names other folders", header.elsewhere)?;
    }
    if header.not_recorded > 0 {
        let calls = counted(header.not_recorded as usize, "call");
        writeln!(out, "{calls} could not be taken over{}", header.why_not_recorded(": "))?;
    }
    writeln!(
        out,
        "What lay there before is guessed from what the program found. Times to think are times between calls."
    )?;
    writeln!(out, "{}", next(&output))?;
    Ok(())
}

fn show(trace: &Trace, out: &mut impl Write) -> Result<()> {
    for entry in &trace.tree {
        let what = match entry.what {
            EntryKind::Directory => "folder".to_string(),
            EntryKind::File { bytes, class } => format!("file {bytes} bytes, class {class}"),
            EntryKind::Hollow { bytes } => format!("file {bytes} bytes, not opened"),
            EntryKind::Link { to: Some(to) } => format!("link to {}", trace.paths.text(to)),
            EntryKind::Link { to: None } => "link elsewhere".to_string(),
            EntryKind::HardLink { to } => format!("the same file as {}", trace.paths.text(to)),
            EntryKind::Node => "pipe or device".to_string(),
        };
        writeln!(out, "before: {} {what}", trace.paths.text(entry.path))?;
    }
    for (number, op) in trace.ops.iter().enumerate() {
        writeln!(out, "{number} {}", line(trace, op))?;
    }
    Ok(())
}

/// As strace would show it, with numbers for names.
fn line(trace: &Trace, op: &Op) -> String {
    let mut words = vec![format!("thread {} {}", op.thread, op.kind.name())];
    if op.path != 0 {
        words.push(trace.paths.text(op.path));
    }
    if op.object != 0 {
        words.push(format!("#{}", op.object));
    }
    match op.kind.other() {
        Target::Path | Target::MaybePath if op.other != 0 => words.push(format!("to {}", trace.paths.text(op.other))),
        Target::Thread => words.push(format!("thread {}", op.other)),
        Target::Object => words.push(format!("with #{}", op.other)),
        _ => {}
    }
    if op.length != 0 {
        words.push(format!("{} bytes", op.length));
    }
    if op.offset != 0 {
        words.push(format!("at {}", op.offset as i64));
    }
    if op.flags != 0 {
        words.push(if op.kind == Kind::Open { format!("0o{:o}", op.flags) } else { format!("flags {}", op.flags) });
    }
    let result = if op.failed() {
        std::io::Error::from_raw_os_error(-op.result as i32).to_string()
    } else {
        op.result.to_string()
    };
    let think = show_duration(op.think_ns as f64);
    format!("{} = {result} after {think}", words.join(" "))
}

fn stats(trace: &Trace) -> Vec<String> {
    let (header, stats) = (&trace.header, trace.stats());
    let time = |ns: u64| show_duration(ns as f64);
    let size = |bytes: u64| show_bytes(bytes as f64);
    let mut lines = vec![
        format!("recorded by {} on {}, Linux {}", header.made_by, header.file_system, header.kernel),
        format!(
            "{} on files by {}; exit code {}",
            counted(stats.calls() as usize, "call"),
            counted(header.threads as usize, "thread"),
            header.exit
        ),
        format!(
            "{} in all, with recording; {} CPU time between calls; {} stops{}",
            time(header.wall_ns),
            time(stats.think_ns),
            header.stops,
            // Where some calls made no stop, each time to think is free of it already.
            if header.stop_cost_ns > 0 { format!(", {} each", time(header.stop_cost_ns)) } else { String::new() }
        ),
        format!(
            "{} read (with all files elsewhere, {} from a disk), {} written, {} mapped ({})",
            size(stats.bytes_read),
            size(header.device_read_bytes),
            size(stats.bytes_written),
            size(stats.bytes_mapped),
            show_share(stats.mapped_share())
        ),
        format!(
            "before: {}, {}{}",
            files_and_folders(trace),
            size(trace.tree_bytes()),
            header.uncached_bytes.map_or(String::new(), |cold| format!(", of which {} not in memory", size(cold)))
        ),
        format!(
            "not in it: {} on files elsewhere, {}{}",
            counted(header.elsewhere as usize, "call"),
            counted(header.not_recorded as usize, "other"),
            header.why_not_recorded(": ")
        ),
        String::new(),
        format!("  {:<8}{:>10}{:>10}{:>12}{:>12}", "calls", "number", "failed", "bytes", "median"),
    ];
    // Recordings of earlier versions do not say.
    if header.stopped_calls + header.unstopped_calls > 0 {
        let [stopped, seen] =
            [header.stopped_calls, header.unstopped_calls].map(|calls| counted(calls as usize, "call"));
        let line =
            format!("calls on any files, these and others: {stopped} with a stop of the program, {seen} without");
        lines.insert(3, line);
    }
    for (name, class) in Class::NAMES.iter().zip(&stats.classes).filter(|(_, class)| class.operations > 0) {
        let bytes = if class.bytes == 0 { String::new() } else { size(class.bytes) };
        let median = if class.median_ns == 0 { String::new() } else { time(class.median_ns) };
        lines.push(format!("  {name:<8}{:>10}{:>10}{bytes:>12}{median:>12}", class.operations, class.failed));
    }
    lines
}

/// The tree before the recording.
fn files_and_folders(trace: &Trace) -> String {
    match trace.tree.len() {
        1 => "1 file or folder".into(),
        many => format!("{many} files and folders"),
    }
}

/// All text is in the header, whose fields pickfs itself fills; everything behind it is numbers.
fn audit(bytes: &[u8], trace: &Trace, out: &mut impl Write) -> Result<()> {
    writeln!(out, "Text, all of it (the header):")?;
    writeln!(out, "{}", serde_json::to_string_pretty(&trace.header)?)?;
    let names = trace.paths.names.0.len();
    writeln!(out, "\nNumbers, in {} bytes: {names} names, of each its length in steps of four;", bytes.len())?;
    let counts = [counted(trace.paths.len(), "path"), files_and_folders(trace), counted(trace.ops.len(), "call")];
    writeln!(out, "{}.", counts.join(", "))?;
    let some: Vec<String> = (0..names.min(5) as u32).map(|number: u32| trace.paths.names.text(number)).collect();
    writeln!(out, "Names in a replay are made of these numbers: {}", some.join(", "))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_said_of_what_they_count() {
        let mut trace = read("git-clone").unwrap();
        let said = |trace: &Trace| stats(trace).join("\n");
        assert!(said(&trace).contains("\nbefore: 1 file or folder, ") && !said(&trace).contains("with a stop"));
        (trace.header.stopped_calls, trace.header.unstopped_calls) = (251, 1);
        let wanted = "calls on any files, these and others: 251 calls with a stop of the program, 1 call without\n";
        assert!(said(&trace).contains(wanted), "{}", said(&trace));
    }
}
