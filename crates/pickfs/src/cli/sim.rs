//! `pickfs sim`: the simulated processor, held against the one that is here, and simulations
//! against what others have measured.

#![expect(clippy::disallowed_methods, reason = "dates files")]

mod score;
mod table;

use super::catalogue::catalogue;
use super::{Exit, Outcome, REFUSED, STOPPED, Verb};
use anyhow::{Context, Result, anyhow};
use pickfs_core::journal::{Folded, fold_file};
use pickfs_core::metric::CPU_NET_NS;
use pickfs_core::plan::{MOST_PROCESSORS, Plan, from_toml};
use pickfs_host::analysis::{self, Counterpart};
use pickfs_host::executor::sim::{Calibration, Class, Processor};
use pickfs_host::executor::{self, sim};
use pickfs_host::run::{self, Finish, tell};
use pickfs_host::wording::fidelity;
use pickfs_stats::median;
use pickfs_target::agent::CPU_LATENCY;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Calibrate the simulated processor to this machine, and compare simulations with published
/// measurements
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Subcommand,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// Measure file systems in memory here and simulated, and write how many instructions a
    /// nanosecond has here
    #[command(after_help = EXAMPLES)]
    Calibrate(Calibrate),
    /// Simulate what others have measured and published, and write how near it comes, as a page
    #[command(after_help = score::EXAMPLES)]
    Score(score::Score),
}

const EXAMPLES: &str = "Examples:\n  sudo pickfs sim calibrate    ten minutes: processor.toml, for machine = { dilation = \"processor.toml\" }\n\nOther programs that run meanwhile make this machine seem slow.";

#[derive(clap::Args)]
struct Calibrate {
    /// The file to write
    #[arg(default_value = "processor.toml", value_name = "FILE")]
    file: PathBuf,
    /// Rounds here; a simulation needs one
    #[arg(long, default_value_t = 9, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Size of the tree as a multiple of the profile `site`
    #[arg(long, default_value_t = 0.5)]
    scale: f64,
    /// File systems that do not compress
    #[arg(long, value_delimiter = ',', default_value = "ext4,xfs,btrfs")]
    fs: Vec<String>,
    /// Release of Debian whose kernel is simulated, or a folder with a kernel: best one like this
    /// machine's
    #[arg(long, default_value = "bookworm")]
    kernel: String,
    /// Words for that kernel, such as "init_on_alloc=0": what this machine's kernel has otherwise
    /// than Debian's
    #[arg(long, default_value = "", hide_default_value = true)]
    words: String,
    /// Rounds that an earlier calibration has measured here, instead of new ones
    #[arg(long, value_name = "JOURNAL")]
    here: Option<PathBuf>,
}

/// Ten ticks of the kernel's count of processor time.
const LEAST_NS: f64 = 100e6;
/// The target that compresses, and the same without compression.
const PLAIN: &str = "btrfs";
const COMPRESSED: &str = "btrfs zstd:1";
/// Phases of the work `tree` that move no data.
const OF_METADATA: [&str; 2] = ["stat-walk", "remove"];

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["sudo pickfs sim calibrate", "how many instructions a nanosecond has here: processor.toml"],
        ["pickfs sim score docs/score-card --scale 0.1", "how near simulations come to published measurements"],
    ];

    fn run(&self) -> Outcome {
        match &self.what {
            Subcommand::Calibrate(calibrate) => calibrate.run(),
            Subcommand::Score(score) => score.run(),
        }
    }
}

impl Calibrate {
    fn run(&self) -> Outcome {
        let journals = ["here", "simulated", "checked"].map(|name| self.file.with_extension(format!("{name}.jsonl")));
        if let Some(taken) = std::iter::once(&self.file).chain(&journals).find(|file| file.exists()) {
            return Err(Exit::usage(format!("{} is there already; give another name", taken.display())));
        }
        if self.here.is_none() && !rustix::process::geteuid().is_root() {
            eprintln!("pickfs: file systems in memory can be made by root alone: sudo pickfs sim calibrate");
            return Ok(REFUSED);
        }
        run::count_stop_requests()?;
        let here = match &self.here {
            Some(journal) => self.measured_before(journal)?,
            None => {
                tell(&format!("measuring here, {} rounds", self.rounds));
                let Some(here) = measured(&self.plan(None)?, &journals[0])? else { return Ok(STOPPED) };
                here
            }
        };
        tell("simulating the same without a disk");
        let there = measured(&self.plan(Some(Processor::plainest()))?, &journals[1])?;
        let Some(there) = there else { return Ok(STOPPED) };
        let figures = analysis::figures(&here, &there, CPU_NET_NS, LEAST_NS)?;
        let calibration = self.calibration(&here, &there, &figures)?;
        write(&self.file, &calibration)?;
        tell("simulating it once more on the processor that was found");
        let processors = std::thread::available_parallelism().map_or(1, |here| here.get() as u64).min(MOST_PROCESSORS);
        let found = Processor { processors, ..calibration.processor() };
        let Some(checked) = measured(&self.plan(Some(found))?, &journals[2])? else {
            return Ok(STOPPED);
        };
        let of = |metric: &str, least: f64| analysis::figures(&here, &checked, metric, least);
        print(&of("time_ns", 0.0)?, &of(CPU_NET_NS, LEAST_NS)?, &calibration);
        let file = self.file.display();
        println!("\nWritten to {file}. To use it: machine = {{ dilation = \"{file}\", compression = \"{file}\" }}");
        Ok(0)
    }

    /// The earlier run, which must have the same works, or times of two trees would be compared.
    fn measured_before(&self, journal: &Path) -> Result<Folded> {
        let (folded, plan) = (fold_file(journal)?, self.plan(None)?);
        let is_same = folded.run.as_ref().is_some_and(|run| run.plan.works == plan.works);
        let other = format!("{} is not of the same work: give its --scale", journal.display());
        if is_same { Ok(folded) } else { Err(Exit::usage(other)) }
    }

    /// Here, or on a simulated processor.
    fn plan(&self, simulated: Option<Processor>) -> Result<Plan> {
        let targets = self.fs.iter().map(|name| format!("{{ fs = {name:?} }}"));
        let compressed =
            self.fs.iter().any(|name| name == PLAIN).then(|| "{ fs = \"btrfs\", variant = \"zstd:1\" }".to_string());
        let targets = targets.chain(compressed).collect::<Vec<_>>().join(", ");
        let (executor, rounds) = match simulated {
            Some(Processor { dilation, compression, user_mode, processors }) => {
                let machine = format!(
                    "{{ disk = \"none\", kernel = {:?}, words = {:?}, dilation = {dilation}, compression = {compression}, \
                     user_mode = {user_mode}, processors = {processors} }}",
                    self.kernel, self.words
                );
                (format!("executor = \"sim\"\nother_speeds = false\nmachine = {machine}\n"), 1)
            }
            // No simulated processor sleeps so deeply that it takes long to wake up.
            None if Path::new(CPU_LATENCY).exists() => ("host = { cpu_latency_us = 0 }\n".into(), self.rounds),
            None => (String::new(), self.rounds),
        };
        let text = format!(
            "{executor}duplicate = false\nbacking = {{ memory = \"1GiB\" }}\ntarget = [{targets}]\n\
             work = [{{ workload = \"tree\", like = \"site\", scale = {} }}]\nstop = {{ rounds = {rounds} }}\n",
            self.scale
        );
        let plan = from_toml(&text, "calibrate.toml", Path::new("/"), &catalogue());
        plan.map_err(|complaints| Exit::usage(pickfs_core::plan::render(&text, "calibrate.toml", &complaints, false)))
    }

    fn calibration(&self, here: &Folded, there: &Folded, figures: &[Counterpart]) -> Result<Calibration> {
        let of = |wanted: &dyn Fn(&Counterpart) -> bool| -> Vec<f64> {
            figures.iter().filter(|figure| wanted(figure)).map(Counterpart::dilation).collect()
        };
        let is_plain = |figure: &Counterpart| figure.target != COMPRESSED;
        let is_metadata = |figure: &Counterpart| OF_METADATA.contains(&figure.phase.as_str());
        let classes = [
            ("metadata", of(&|figure| is_plain(figure) && is_metadata(figure))),
            ("data", of(&|figure| is_plain(figure) && !is_metadata(figure))),
            (sim::COMPRESSION, analysis::compression(figures, PLAIN, COMPRESSED)),
        ];
        let classes = classes.into_iter().filter_map(|(name, found)| Some((name.to_string(), class(&found)?)));
        let fact = |folded: &Folded, name: &str| folded.host.get(name).cloned().unwrap_or_default();
        let kernels = there.cells.iter().find_map(|cell| cell.provenance.facts.get("kernel")).cloned();
        let rounds = here.cells.iter().map(|cell| cell.round).max().unwrap_or_default();
        let about = format!(
            "{}, {}; kernel {} here, {} simulated; tree like site, scale {}, {rounds} rounds",
            fact(here, "cpu"),
            jiff::Timestamp::now().strftime("%Y-%m-%d"),
            fact(here, "kernel"),
            kernels.unwrap_or_default(),
            self.scale
        );
        let all = median(&of(&is_plain)).context("no file system that does not compress was measured on both")?;
        Ok(Calibration { about, dilation: pickfs_disks::significant(all, 3), classes: classes.collect() })
    }
}

/// What the check has found, on the processor of the calibration.
fn print(times: &[Counterpart], processor: &[Counterpart], calibration: &Calibration) {
    println!("{}\n", calibration.about);
    let classes = calibration.classes.iter();
    classes.for_each(|(name, class)| println!("{}", fidelity::class(name, [class.from, class.dilation, class.to])));
    println!("{}\n", fidelity::dilation(calibration.dilation));
    fidelity::table(processor).iter().for_each(|line| println!("{line}"));
    println!();
    for (what, figures) in [("processor time", processor), ("time", times)] {
        let (found, noise) = (analysis::agreement(figures), analysis::between_halves(figures));
        println!("{}", fidelity::agreement(what, &found.unwrap_or_default(), &noise.unwrap_or_default()));
        let two = figures.iter().filter(|figure| [PLAIN, COMPRESSED].contains(&figure.target.as_str())).cloned();
        let two = analysis::agreement(&two.collect::<Vec<_>>());
        if let Some(two) = two.filter(|_| calibration.classes.contains_key(sim::COMPRESSION)) {
            println!("{}", fidelity::of_two(COMPRESSED, PLAIN, &two));
        }
    }
}

fn class(found: &[f64]) -> Option<Class> {
    let of = |value: f64| pickfs_disks::significant(value, 3);
    let from = found.iter().copied().reduce(f64::min)?;
    let to = found.iter().copied().reduce(f64::max)?;
    Some(Class { dilation: of(median(found)?), from: of(from), to: of(to) })
}

/// `None`: stopped on request.
fn measured(plan: &Plan, journal: &Path) -> Result<Option<Folded>> {
    let mut progress = run::for_people();
    match run::begin(plan, &[], executor::ALL, journal, progress.as_mut())? {
        Finish::Stopped => Ok(None),
        Finish::Enough(_) => Ok(Some(fold_file(journal)?)),
    }
}

fn write(file: &Path, calibration: &Calibration) -> Result<()> {
    let text = toml::to_string(calibration).map_err(|error| anyhow!("cannot put the result into TOML: {error}"))?;
    let written = std::fs::File::create_new(file).and_then(|mut open| open.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_plans_have_the_same_work_on_the_same_targets() {
        let fs = ["ext4", "btrfs"].map(String::from).into();
        let (kernel, words) = ("bookworm".to_string(), "init_on_alloc=0".to_string());
        let calibrate = Calibrate { file: "x.toml".into(), rounds: 3, scale: 0.01, fs, kernel, words, here: None };
        let processor = Processor { dilation: 2.5, compression: 3.0, user_mode: 2.0, processors: 2 };
        let [here, there] = [None, Some(processor)].map(|simulated| calibrate.plan(simulated).expect("a plan"));
        let names = |plan: &Plan| plan.targets.iter().map(|target| target.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&here), ["ext4", PLAIN, COMPRESSED]);
        assert_eq!(names(&here), names(&there));
        assert_eq!((here.works, here.stop.rounds, there.stop.rounds), (there.works, Some(3), Some(1)));
        assert_eq!(Processor::of(&there.targets[0].machine).expect("a processor"), processor);
        assert_eq!(there.targets[0].machine.text("kernel"), Some("bookworm"));
        assert_eq!(there.targets[0].machine.text("words"), Some("init_on_alloc=0"));
        assert!(!there.other_speeds);
        let fs = vec!["fat".to_string()];
        assert!(Calibrate { fs, ..calibrate }.plan(Some(Processor::plainest())).is_err());
    }

    #[test]
    fn a_class_is_the_middle_of_its_figures() {
        assert_eq!(class(&[3.0, 2.0, 2.71234]), Some(Class { dilation: 2.71, from: 2.0, to: 3.0 }));
        assert_eq!(class(&[]), None);
    }
}
