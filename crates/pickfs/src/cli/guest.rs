//! `pickfs guest`: the guests of the `vm` executor that are kept, made and removed.

use super::{Exit, Outcome, USAGE, Verb, plan_source};
use anyhow::{Result, bail};
use pickfs_core::plan::{Plan, PlanArgs};
use pickfs_core::protocol::Bundle;
use pickfs_host::executor;
use pickfs_host::executor::vm::{self as guest, Guest, RELEASES, Recipe};
use pickfs_host::wording::text::counted;
use pickfs_system::process::{Interrupted, stop_on_signals};
use pickfs_system::units::show_bytes;
use pickfs_target::agent;
use pickfs_target::stack::Place;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Show, make or remove the guests of `--executor vm`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Subcommand,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// Show the guests that are kept: release, kernel, size, packages
    #[command(
        after_help = "Examples:\n  pickfs guest list --packages    each guest with its packages and their versions"
    )]
    List {
        /// Print the packages of each with their versions
        #[arg(long)]
        packages: bool,
    },
    /// Make a guest before a run needs it
    #[command(
        after_help = "Examples:\n  pickfs guest build PLAN.toml    the guests that the run of a plan would use\n  pickfs guest build trixie       one with the tools of every run"
    )]
    Build {
        /// A release of Debian (bookworm, bullseye, sid, trixie), or a plan file: the guests that
        /// its run would use
        #[arg(value_name = "RELEASE|PLAN")]
        of: String,
        /// Packages with the tools to install in it, in addition to what every guest has
        #[arg(value_name = "PACKAGE")]
        packages: Vec<String>,
    },
    /// Run a program in a root that was unpacked to compile modules
    #[command(hide = true)]
    Inside {
        root: PathBuf,
        #[arg(last = true)]
        words: Vec<OsString>,
    },
    /// Remove guests; a run that needs one makes it again
    #[command(
        after_help = "Examples:\n  pickfs guest remove --all    every guest; a run rebuilds the guests that it needs"
    )]
    Remove {
        /// As `pickfs guest list` shows them
        #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,
        /// Every guest
        #[arg(long)]
        all: bool,
    },
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs guest list", "guests that are built"],
        ["pickfs guest build PLAN.toml", "build the guests that a plan needs"],
    ];
    fn run(&self) -> Outcome {
        match &self.what {
            Subcommand::List { packages } => list(*packages),
            Subcommand::Build { of, packages } => build(of, packages),
            Subcommand::Inside { root, words } => match guest::enter(root, words)? {},
            Subcommand::Remove { names, all } => remove(names, *all),
        }
    }
}

fn list(packages: bool) -> Outcome {
    let guests = guest::all()?;
    if guests.is_empty() {
        let folder = guest::folder()?;
        println!("no guests in {}; `pickfs guest build bookworm` makes one, as a run does", folder.display());
        return Ok(0);
    }
    println!("{:<28} {:<9} {:<24} {:>8} {:>8}", "NAME", "RELEASE", "KERNEL", "SIZE", "PACKAGES");
    for guest in guests {
        let manifest = guest.manifest();
        let kernel = guest.kernel_release().unwrap_or("unknown".into());
        let (release, size) = (guest.release().unwrap_or("unknown"), show_bytes(guest.bytes() as f64));
        println!("{:<28} {release:<9} {kernel:<24} {size:>8} {:>8}", guest.name, manifest.lines().count());
        manifest.lines().filter(|_| packages).for_each(|line| println!("    {line}"));
    }
    Ok(0)
}

fn build(of: &str, packages: &[String]) -> Outcome {
    stop_on_signals()?;
    let Some(release) = RELEASES.iter().copied().find(|release| *release == of) else { return build_for(of, packages) };
    if let Some(wrong) = packages.iter().find(|name| !is_package(name)) {
        eprintln!("`{wrong}` is no name of a package; write names as `apt-cache search` prints them");
        return Ok(USAGE);
    }
    let recipe = Recipe::new(release, packages.iter().cloned(), &bundle(&Plan::default()).module_sources);
    let guest = make(&recipe)?;
    let lacks: Vec<String> = guest.lacks(&recipe).into_iter().filter(|name| packages.contains(name)).collect();
    if !lacks.is_empty() {
        guest::remove(&[guest])?;
        bail!("Debian {of} has no package {}; look for it on https://packages.debian.org/{of}/", lacks.join(", "));
    }
    Ok(0)
}

fn build_for(plan: &str, packages: &[String]) -> Outcome {
    if !Path::new(plan).is_file() {
        eprintln!("there is no release and no plan `{plan}`; use one of {}, or name a plan file", RELEASES.join(", "));
        return Ok(USAGE);
    }
    if !packages.is_empty() {
        eprintln!("a plan itself lists what its guests need; leave out {}", packages.join(" "));
        return Ok(USAGE);
    }
    for recipe in recipes(&in_guests(plan)?)? {
        make(&recipe)?;
    }
    Ok(0)
}

/// A plan that has its own cells in guests does not change: another executor has other settings.
/// Any other is done in guests.
fn in_guests(plan: &str) -> Result<Plan> {
    let read =
        |executor| plan_source::read(&PlanArgs { plan: Some(PathBuf::from(plan)), executor, ..PlanArgs::default() });
    let uses_guests = |plan: &Plan| executor::brings_its_own(&plan.executor);
    let own = read(None);
    if own.as_ref().is_ok_and(uses_guests) {
        return own;
    }
    read(Some(guest::NAME.to_string())).or_else(|error| own.and(Err(error)))
}

fn recipes(plan: &Plan) -> Result<Vec<Recipe>> {
    let recipes = guest::recipes(plan, &bundle(plan))?;
    if recipes.is_empty() {
        println!("there is nothing to make: every target of the plan has your own kernel");
    }
    Ok(recipes)
}

/// What its cells need in guests; nothing is made.
fn bundle(plan: &Plan) -> Bundle {
    agent::bundle(plan, &Place::of_run(""))
}

fn make(recipe: &Recipe) -> Result<Guest> {
    let made = guest::find_or_build(recipe, &mut |says| eprintln!("{says}"));
    // What could not be done then is no news.
    let guest = made.map_err(|error| if error.is::<Interrupted>() { Interrupted.into() } else { error })?;
    println!("{}  {}", guest.name, guest.folder.display());
    Ok(guest)
}

/// As Debian's policy has it: nothing in it that apt would take for more than a name.
fn is_package(name: &str) -> bool {
    let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    name.len() > 1 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_right)
}

fn remove(names: &[String], all: bool) -> Outcome {
    let guests = guest::all()?;
    let find = |name: &String| {
        let found = guests.iter().find(|guest| guest.name == *name).cloned();
        found.ok_or_else(|| Exit::usage(format!("there is no guest `{name}`; `pickfs guest list` shows all guests")))
    };
    let chosen = if all { guests.clone() } else { names.iter().map(find).collect::<Result<Vec<Guest>>>()? };
    let bytes: u64 = chosen.iter().map(Guest::bytes).sum();
    guest::remove(&chosen)?;
    println!("removed {}, {} free again", counted(chosen.len(), "guest"), show_bytes(bytes as f64));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_the_executor_that_has_guests() {
        let folder = tempfile::tempdir().expect("a folder");
        let rest = "backing = { memory = '1GiB' }\ntarget = [{ fs = 'ext4' }]\nwork = [{ workload = 'small-files' }]\n";
        for (first, wanted) in [
            ("executor = 'sim'\nmachine = { disk = 'nvme' }", Ok("sim")),
            ("executor = 'vm'\nmachine = { bus = 'nvme' }", Ok("vm")),
            ("", Ok("vm")),
            ("executor = 'sim'\nmachine = { disk = 'nosuchdisk' }", Err("nosuchdisk")),
        ] {
            let file = folder.path().join("plan.toml");
            std::fs::write(&file, format!("{first}\n{rest}")).expect("written");
            let found = in_guests(file.to_str().expect("a name"));
            match (&found, wanted) {
                (Ok(plan), Ok(executor)) => assert_eq!(plan.executor, executor, "{first}"),
                (Err(error), Err(says)) => assert!(format!("{error:#}").contains(says), "{first}: {error:#}"),
                _ => panic!("{first}: {found:?}"),
            }
        }
    }

    #[test]
    fn nothing_but_a_name_is_a_package() {
        for (name, right) in
            [("e2fsprogs", true), ("libstdc++6", true), ("0ad", true), ("a", false), ("?and(a)", false), ("a,b", false)]
                .into_iter()
                .chain([("-x", false), ("a b", false), ("Xfs", false), ("", false)])
        {
            assert_eq!(is_package(name), right, "{name}");
        }
    }
}
