//! `pickfs sim`: the simulated processor, held against the one that is here.

#![expect(clippy::disallowed_methods, reason = "dates files")]

use super::catalogue::catalogue;
use super::{Exit, Outcome, REFUSED, STOPPED, Verb};
use crate::analysis::{self, Counterpart};
use crate::executor::sim::{Calibration, Class};
use crate::executor::{self, sim};
use crate::journal::{Folded, fold_file};
use crate::metric::CPU_NET_NS;
use crate::plan::{Plan, from_toml};
use crate::run::{self, Finish, tell};
use crate::stats::median;
use crate::wording::fidelity;
use anyhow::{Context, Result, anyhow};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Find out how fast the simulated processor has to be
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Measure file systems in memory here and simulated, and write how many instructions a nanosecond has here
    #[command(after_help = EXAMPLES)]
    Calibrate(Calibrate),
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
}

/// Ten ticks of the kernel's count of processor time.
const LEAST_NS: f64 = 100e6;
/// The one that compresses, beside the same that does not.
const PLAIN: &str = "btrfs";
const COMPRESSED: &str = "btrfs zstd:1";
/// Phases of the work `tree` that move no data.
const OF_METADATA: [&str; 2] = ["stat-walk", "remove"];

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] =
        &[["sudo pickfs sim calibrate", "how many instructions a nanosecond has here: processor.toml"]];

    fn run(&self) -> Outcome {
        let What::Calibrate(calibrate) = &self.what;
        calibrate.run()
    }
}

impl Calibrate {
    fn run(&self) -> Outcome {
        let journals = ["here", "simulated"].map(|name| self.file.with_extension(format!("{name}.jsonl")));
        if let Some(taken) = [&self.file, &journals[0], &journals[1]].into_iter().find(|file| file.exists()) {
            return Err(Exit::usage(format!("{} is there already; give another name", taken.display())));
        }
        if !rustix::process::geteuid().is_root() {
            eprintln!("pickfs: file systems in memory can be made by root alone: sudo pickfs sim calibrate");
            return Ok(REFUSED);
        }
        run::count_stop_requests()?;
        tell(&format!("measuring here, {} rounds", self.rounds));
        let Some(here) = measured(&self.plan(false)?, &journals[0])? else { return Ok(STOPPED) };
        tell("simulating the same without a disk");
        let there = measured(&self.plan(true)?, &journals[1])?;
        let Some(there) = there else { return Ok(STOPPED) };
        let figures = analysis::figures(&here, &there, CPU_NET_NS, LEAST_NS)?;
        let calibration = self.calibration(&here, &there, &figures)?;
        self.print(&analysis::figures(&here, &there, "time_ns", 0.0)?, &figures, &calibration);
        write(&self.file, &calibration)?;
        println!("\nWritten to {0}. To use it: machine = {{ dilation = \"{0}\" }}", self.file.display());
        Ok(0)
    }

    fn plan(&self, simulated: bool) -> Result<Plan> {
        let targets = self.fs.iter().map(|name| format!("{{ fs = {name:?} }}"));
        let compressed =
            self.fs.iter().any(|name| name == PLAIN).then(|| "{ fs = \"btrfs\", variant = \"zstd:1\" }".to_string());
        let targets = targets.chain(compressed).collect::<Vec<_>>().join(", ");
        let (executor, rounds) = match simulated {
            true => ("executor = \"sim\"\nother_speeds = false\nmachine = { disk = \"none\", dilation = 1 }\n", 1),
            false => ("", self.rounds),
        };
        let text = format!(
            "{executor}duplicate = false\nbacking = {{ memory = \"1GiB\" }}\ntarget = [{targets}]\n\
             work = [{{ workload = \"tree\", like = \"site\", scale = {} }}]\nstop = {{ rounds = {rounds} }}\n",
            self.scale
        );
        let plan = from_toml(&text, "calibrate.toml", Path::new("/"), &catalogue());
        plan.map_err(|complaints| Exit::usage(crate::plan::render(&text, "calibrate.toml", &complaints, false)))
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
            ("compression", analysis::compression(figures, PLAIN, COMPRESSED)),
        ];
        let classes = classes.into_iter().filter_map(|(name, found)| Some((name.to_string(), class(&found)?)));
        let fact = |folded: &Folded, name: &str| folded.host.get(name).cloned().unwrap_or_default();
        let kernels = there.cells.iter().find_map(|cell| cell.provenance.facts.get("kernel")).cloned();
        let about = format!(
            "{}, {}; kernel {} here, {} simulated; tree like site, scale {}, {} rounds",
            fact(here, "cpu"),
            jiff::Timestamp::now().strftime("%Y-%m-%d"),
            fact(here, "kernel"),
            kernels.unwrap_or_default(),
            self.scale,
            self.rounds
        );
        let all = median(&of(&is_plain)).context("no file system that does not compress was measured on both")?;
        Ok(Calibration { about, dilation: sim::significant(all, 3), classes: classes.collect() })
    }

    fn print(&self, times: &[Counterpart], processor: &[Counterpart], calibration: &Calibration) {
        println!("{}\n", calibration.about);
        fidelity::table(processor).iter().for_each(|line| println!("{line}"));
        println!();
        let agreement = |what: &str, figures: &[Counterpart]| {
            let (found, noise) = (analysis::agreement(figures, None), analysis::between_halves(figures));
            println!("{}", fidelity::agreement(what, &found, &noise));
        };
        agreement("processor time", processor);
        agreement("time", times);
        if let Some(own) = calibration.classes.get("compression") {
            let corrected =
                analysis::with_own_constant(processor, PLAIN, COMPRESSED, calibration.dilation, own.dilation);
            agreement("processor time, compression with its own constant", &corrected);
            let [before, after] = [processor, &corrected].map(|figures| analysis::agreement(figures, Some(COMPRESSED)));
            println!("{}", fidelity::with_own_constant(COMPRESSED, &before, &after));
        }
        println!();
        let classes = calibration.classes.iter();
        classes.for_each(|(name, class)| println!("{}", fidelity::class(name, [class.from, class.dilation, class.to])));
        println!("{}", fidelity::dilation(calibration.dilation));
    }
}

fn class(found: &[f64]) -> Option<Class> {
    let of = |value: f64| sim::significant(value, 3);
    let from = found.iter().copied().reduce(f64::min)?;
    let to = found.iter().copied().reduce(f64::max)?;
    Some(Class { dilation: of(median(found)?), from: of(from), to: of(to) })
}

/// `None`: stopped on request.
fn measured(plan: &Plan, journal: &Path) -> Result<Option<Folded>> {
    let mut progress = run::for_people();
    match run::begin(plan, executor::ALL, journal, progress.as_mut())? {
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
        let calibrate = Calibrate { file: "x.toml".into(), rounds: 3, scale: 0.01, fs };
        let [here, there] = [false, true].map(|simulated| calibrate.plan(simulated).expect("a plan"));
        let names = |plan: &Plan| plan.targets.iter().map(|target| target.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&here), ["ext4", PLAIN, COMPRESSED]);
        assert_eq!(names(&here), names(&there));
        assert_eq!((here.works, here.stop.rounds, there.stop.rounds), (there.works, Some(3), Some(1)));
        assert_eq!(there.targets[0].machine.0["dilation"], 1.0);
        assert!(!there.other_speeds);
        let fs = vec!["fat".to_string()];
        assert!(Calibrate { fs, ..calibrate }.plan(true).is_err());
    }

    #[test]
    fn a_class_is_the_middle_of_its_figures() {
        assert_eq!(class(&[3.0, 2.0, 2.71234]), Some(Class { dilation: 2.71, from: 2.0, to: 3.0 }));
        assert_eq!(class(&[]), None);
    }
}
