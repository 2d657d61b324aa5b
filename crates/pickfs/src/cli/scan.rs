//! `pickfs scan`: what a tree is like, what its directories take, and what file systems would store
//! for it.

#![expect(clippy::disallowed_methods, reason = "shows progress, and dates profiles")]

use super::{Exit, Outcome, Verb, report};
use pickfs_system::units::{show_bytes, show_duration, show_share};
use pickfs_trees::profile::Profile;
use pickfs_trees::scan::describe::describe;
use pickfs_trees::scan::survey::{Survey, survey};
use pickfs_trees::scan::walk::Options;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Describe a tree without its names and content, predict what file systems would store for it, or
/// list what its directories take
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory to look at
    dir: PathBuf,
    /// Print what btrfs, zfs, erofs, f2fs and bcachefs would store for it, by codec, instead of a
    /// profile
    #[arg(long)]
    predict: bool,
    /// Print what each top-level directory takes on the disk, and what would be free without it,
    /// instead of a profile
    #[arg(long, conflicts_with_all = ["predict", "no_content", "json", "all_file_systems", "threads"])]
    shares: bool,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Read no file: sizes and shape alone
    #[arg(long, conflicts_with = "predict")]
    no_content: bool,
    /// Print the profile as JSON, for programs
    #[arg(long, conflicts_with = "predict")]
    json: bool,
    /// Go into other file systems that are mounted below it
    #[arg(long)]
    all_file_systems: bool,
    /// Threads; one for each processor if not given
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    threads: usize,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs scan --predict DIR", "what compression would save, in seconds"],
        ["pickfs scan --shares DIR", "what each of its directories takes on the disk"],
        ["pickfs scan DIR -o mine.toml", "a profile of a tree, for --like mine.toml"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        // A fixed seed: two scans of a tree show the same.
        let options = Options { threads: self.threads.min(64), all_file_systems: self.all_file_systems, seed: 1 };
        if !self.dir.is_dir() {
            return Err(Exit::usage(format!("{} is no directory; name one that is there", self.dir.display())));
        }
        if self.predict {
            return super::predict::main(&self.dir, &options, self.output.as_deref());
        }
        if self.shares {
            return super::shares::main(&self.dir, self.output.as_deref());
        }
        let begun = Instant::now();
        let survey = survey(&self.dir, &options)?;
        let walked = begun.elapsed();
        let profile = describe(&survey, !self.no_content, options.threads(), about(&survey))?;
        summary(&survey, &profile, walked, begun.elapsed()).iter().for_each(|line| pickfs_host::run::tell(line));
        let text = if self.json { serde_json::to_string_pretty(&profile)? + "\n" } else { profile.to_toml()? };
        report::deliver(text.as_bytes(), self.output.as_deref()).map(|()| 0)
    }
}

/// When, by what and of how much, but not of which.
fn about(survey: &Survey) -> String {
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let version = env!("CARGO_PKG_VERSION");
    format!("Scanned by pickfs {version} on {day}: {} entries, {}", survey.entries, show_bytes(survey.bytes() as f64))
}

/// For people: what was seen, and what could not be.
fn summary(survey: &Survey, profile: &Profile, walked: Duration, all: Duration) -> Vec<String> {
    let nanoseconds = |time: Duration| show_duration(time.as_nanos() as f64);
    let rate = survey.entries as f64 / walked.as_secs_f64();
    let mut lines = vec![
        format!("{} entries in {} ({rate:.0}/s), all in {}", survey.entries, nanoseconds(walked), nanoseconds(all)),
        format!(
            "{} directories, {} files of {}, {} further names of files, {} symbolic links, {} others",
            survey.directories,
            survey.files(),
            show_bytes(survey.bytes() as f64),
            survey.hard_links,
            survey.symlinks,
            survey.others
        ),
    ];
    lines.extend(profile.classes.iter().map(|class| {
        let name = format!("{:?}", class.kind).to_lowercase();
        let (bytes, repeat) = (show_bytes(class.bytes as f64), show_share(class.duplicates));
        format!("  {name:<9}{:>9} files {bytes:>10}, {repeat:>7} repeat another", class.files)
    }));
    lines.extend(survey.problems.lines().into_iter().map(|line| format!("note: {line}")));
    lines
}
