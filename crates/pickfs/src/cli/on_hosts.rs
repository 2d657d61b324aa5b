//! `pickfs run --host`: a plan on other machines, each run whole on its machine; then what holds on
//! all of them.

use super::after::show;
use super::{Exit, FAILED, Outcome, STOPPED, choices, journals, plan_source, there};
use anyhow::{Context, Result};
use pickfs_core::journal::fold_file;
use pickfs_host::fleet::{self, FarRun, Finished, Ssh};
use pickfs_host::run::{count_stop_requests, tell};
use pickfs_system::process::Interrupted;
use std::path::{Path, PathBuf};

pub(crate) const FAR_FOLDER: &str = ".cache/pickfs";

// No doc comment: clap would take it for the verb's own.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Hosts {
    /// Run on these machines instead of here, by ssh; each does the whole plan, and goes on when
    /// the link is lost
    #[arg(long, visible_alias = "on-each", value_name = "HOST", value_delimiter = ',')]
    pub host: Vec<String>,
    /// With --host: the configuration of ssh [default: its own]
    #[arg(long, value_name = "FILE", requires = "host")]
    pub ssh_config: Option<PathBuf>,
    /// With --host: the folder there for pickfs and its runs; on a local disk, as journals are
    /// written to it
    #[arg(long, value_name = "DIR", requires = "host", default_value = FAR_FOLDER)]
    pub far_folder: String,
}

/// What is to be run there.
pub(crate) struct FarRequest<'a> {
    pub plan: Option<&'a Path>,
    pub resume: Option<&'a Path>,
    pub journal: Option<&'a Path>,
    /// Further words for `pickfs run` there.
    pub words: Vec<String>,
}

/// A host, and the journal that is fetched from it.
type Errand = (String, PathBuf);

pub(crate) fn run(hosts: &Hosts, wanted: &FarRequest) -> Outcome {
    let errands = errands(hosts, wanted)?;
    let plan = wanted.plan.map(|path| {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Exit::usage(format!("cannot read the plan {}: {error}; name a plan file, as text", path.display()))
        })?;
        plan_source::inlined(&text, path)
    });
    let plan = plan.transpose()?;
    let config = hosts.ssh_config.as_deref().map(|file| there(file).map(|file| file.display().to_string()));
    let ssh = Ssh::new(config.transpose()?.as_deref(), &hosts.far_folder, fleet::LEAVES)?;
    count_stop_requests()?;
    let finished = std::thread::scope(|scope| {
        let runs: Vec<_> = errands
            .iter()
            .map(|(host, journal)| {
                let resumes = wanted.resume.is_some();
                let far = FarRun { host, plan: plan.as_deref(), resumes, words: wanted.words.clone(), journal };
                let ssh = &ssh;
                scope.spawn(move || fleet::run(&far, ssh, &|line| tell(&format!("{}: {line}", far.host))))
            })
            .collect();
        runs.into_iter().map(|run| run.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    let codes = finished.into_iter().zip(&errands).map(|(finished, errand)| reported(finished, errand, hosts));
    let codes = codes.collect::<Result<Vec<u8>>>()?;
    let journals: Vec<PathBuf> = errands.into_iter().map(|(_, journal)| journal).filter(|path| path.exists()).collect();
    if journals.len() > 1 && !codes.contains(&STOPPED) {
        if let Err(error) = choices::print_between_machines(&journals) {
            let why = format!("{error:#}");
            let why = why.strip_prefix("pickfs: ").unwrap_or(&why).trim_end();
            tell(&format!("no comparison over all machines: {why}"));
        }
    }
    Ok(codes.into_iter().max().unwrap_or(0))
}

fn errands(hosts: &Hosts, wanted: &FarRequest) -> Result<Vec<Errand>> {
    let of = |flag: &str| Exit::usage(format!("{flag} names one file; give one --host with it"));
    match (hosts.host.as_slice(), wanted.journal, wanted.resume) {
        ([host], _, Some(journal)) => Ok(vec![(host.clone(), journal.to_path_buf())]),
        ([host], Some(journal), None) => Ok(vec![(host.clone(), journal.to_path_buf())]),
        (_, _, Some(_)) => Err(of("--resume")),
        (_, Some(_), _) => Err(of("--journal")),
        (all, None, None) => {
            let mut errands: Vec<Errand> = Vec::new();
            for host in all {
                if errands.iter().any(|(other, _)| other == host) {
                    return Err(Exit::usage(format!("--host names `{}` twice", host.escape_debug())));
                }
                let name: String = host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
                let taken = |path: &PathBuf| errands.iter().any(|(_, other)| other == path);
                let word = std::iter::once(format!("-{name}")).chain((2..).map(|n| format!("-{name}-{n}")));
                let journal = word.map(|word| journals::fresh(&word)).find(|path| !taken(path));
                errands.push((host.clone(), journal.context("no free name")?));
            }
            Ok(errands)
        }
    }
}

/// The command that takes a run up where it is.
fn again(hosts: &Hosts, (host, journal): &Errand) -> String {
    let mut words = vec!["pickfs", "run", "--host", host];
    if hosts.far_folder != FAR_FOLDER {
        words.extend(["--far-folder", &hosts.far_folder]);
    }
    let config = hosts.ssh_config.as_ref().map(|file| file.to_string_lossy());
    words.extend(config.iter().flat_map(|file| ["--ssh-config", file]));
    let journal = journal.to_string_lossy();
    words.extend(["--resume", &journal]);
    shell_words::join(words)
}

/// Shows what came of it; the exit code.
fn reported(finished: Result<Finished>, errand: &Errand, hosts: &Hosts) -> Outcome {
    let ((host, journal), again) = (errand, again(hosts, errand));
    let shown = journal.display();
    let finished = match finished {
        Ok(finished) => finished,
        Err(error) => {
            let rest = if journal.exists() { format!("; `{again}` tries again") } else { String::new() };
            tell(&format!("{host}: {error:#}{rest}"));
            return Ok(if error.is::<Interrupted>() { STOPPED } else { FAILED });
        }
    };
    if journal.exists() && finished != Finished::Left {
        tell(&format!("{host}: {shown}"));
        show(&fold_file(journal)?, journal)?;
    }
    Ok(match finished {
        Finished::Ended(code) => {
            if i32::from(STOPPED) == code {
                tell(&format!("{host}: stopped; `{again}` goes on"));
            }
            u8::try_from(code).unwrap_or(FAILED)
        }
        Finished::Died => {
            tell(&format!(
                "{host}: the run died there, and nothing saw how; `{again}` undoes what it left and goes on"
            ));
            FAILED
        }
        Finished::Left => {
            tell(&format!("{host}: the run goes on there; `{again}` fetches it"));
            STOPPED
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What names the run on its machine is in the command, and a path is one word of it.
    #[test]
    fn the_command_that_goes_on_reaches_the_same_run() {
        let errand = ("rack-1".to_string(), PathBuf::from("a run.jsonl"));
        let plain = Hosts { far_folder: FAR_FOLDER.into(), ..Hosts::default() };
        assert_eq!(again(&plain, &errand), "pickfs run --host rack-1 --resume 'a run.jsonl'");
        let other = Hosts { far_folder: "data/pickfs".into(), ssh_config: Some("ssh.conf".into()), ..Hosts::default() };
        let rest = "--far-folder data/pickfs --ssh-config ssh.conf --resume 'a run.jsonl'";
        assert_eq!(again(&other, &errand), format!("pickfs run --host rack-1 {rest}"));
    }
}
