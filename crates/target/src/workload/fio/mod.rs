//! Any fio job file of the user's, run by the real fio on the target.
//!
//! Sections that fio runs together are a stage, and stages are separate phases, each with a run of
//! fio and the hygiene of the stage. fio times its own sections: lay-out and start are in no
//! section's time. What a file would do elsewhere is refused before anything is touched.

mod job;
mod output;

use super::settings::{Path as PathKind, settings};
use super::staging::Staging;
use super::{Description, Workload, described};
use crate::stack::{Place, argv};
use crate::stage::phase::*;
use crate::stage::{AfterPhase, Program, Stage};
use anyhow::{Context, Result, ensure};
use job::{Job, Section};
use output::Output;
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::{Objection, Settings};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

pub(crate) struct Fio;

settings! {
    JobFile {
        job: PathKind, "fio job file; without any `directory` in it";
    }
}

impl Workload for Fio {
    fn description(&self) -> &'static Description {
        described!("fio.toml", JobFile::ROWS)
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let read = JobFile::of(settings).job.and_then(|path| Job::read(&path).ok());
        // Without a job file, as `pickfs list` shows it: every one has a first stage.
        read.map_or_else(|| vec![stage_phase(0)], |job| phases_of(&job))
    }

    /// Of the copy that cells work with: a guest has no other, and the user's file may have
    /// changed.
    fn phases_of_cell(&self, settings: &Settings, place: &Place) -> Vec<Phase> {
        Job::read(&staged(settings, place)).map_or_else(|_| self.phases(settings), |job| phases_of(&job))
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let object = |(message, remedy): (String, String)| Objection::new("job", message, &remedy);
        let Some(path) = JobFile::of(settings).job else {
            let path = ["work", "job"];
            return vec![Objection::such_as("job", "there is no job file".into(), "name one", &path, "\"my.fio\"")];
        };
        match Job::read(&path) {
            Ok(job) => job.complaints().into_iter().map(object).collect(),
            Err(error) => vec![object((format!("{error:#}"), "name a job file of fio's, with a section".into()))],
        }
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let path = JobFile::of(settings).job.context("there is no job file")?;
        std::fs::copy(&path, staged(settings, place)).with_context(|| format!("cannot copy {}", path.display()))?;
        Ok(())
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let path = staged(settings, stage.place());
        let job = Job::read(&path).context("the job file is not staged in memory; was the run prepared?")?;
        stage.fact("fio_job", &std::fs::read_to_string(&path)?);
        let beside = stage.memory().join("beside");
        std::fs::create_dir(&beside).with_context(|| format!("cannot make {}", beside.display()))?;
        for (number, sections) in job.stages().into_iter().enumerate() {
            let output = stage.memory().join(format!("fio-{number}.json"));
            let program = program(&stage.root(), &output, sections, &path).in_folder(&beside);
            let tell = |p: &mut AfterPhase, ()| {
                let text = std::fs::read_to_string(&output).context("fio reported nothing")?;
                let report = Output::parse(&text)?;
                sections.iter().try_for_each(|section| {
                    p.part(report.part(section, &section.phase())?);
                    report.rate_not_kept(section).into_iter().for_each(|why| p.doubt(FlagKind::RateNotKept, why));
                    Ok(())
                })
            };
            stage.phase_then(&stage_name(number), |p| p.run(&program), tell)?;
            stage.check("looking for what fio wrote elsewhere", || nothing_beside(&beside))?;
        }
        Ok(())
    }
}

fn phases_of(job: &Job) -> Vec<Phase> {
    let mut phases = Vec::new();
    for (number, sections) in job.stages().into_iter().enumerate() {
        phases.push(stage_phase(number));
        let about = "a section; fixed work by its time, for a time by that of 1 GiB, at a rate by its p99";
        phases.extend(sections.iter().map(|section| Phase::part(Cow::Owned(section.phase()), about)));
    }
    phases
}

fn stage_phase(number: usize) -> Phase {
    Phase {
        name: Cow::Owned(stage_name(number)),
        about: "sections that fio runs together",
        starts: if number == 0 { Fresh } else { Warm },
        proof: Declared,
        timed: Parts,
        judged: true,
    }
}

fn stage_name(number: usize) -> String {
    format!("{}{}", job::STAGE, number + 1)
}

/// A copy, so that all rounds have the same.
fn staged(settings: &Settings, place: &Place) -> PathBuf {
    Staging::new("fio", &JobFile::of(settings), place).file("fio")
}

fn program(root: &Path, output: &Path, sections: &[Section], job: &Path) -> Program {
    let mut words = argv(["fio", "--eta=never", "--output-format=json+"]);
    words.push(format!("--directory={}", root.display()));
    words.push(format!("--output={}", output.display()));
    words.extend(sections.iter().map(|section| format!("--section={}", section.name)));
    words.push(job.display().to_string());
    Program::new(words)
}

/// What fio keeps of verifying is its own; anything else was meant for somewhere.
fn nothing_beside(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ensure!(
            name.ends_with("-verify.state"),
            "fio wrote `{name}` outside of the target; see `man fio` for what does so"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_play_the_staged_copy_where_the_file_itself_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.fio");
        std::fs::write(&file, "[first]\nsize=1m\nrw=write\n[second]\nstonewall\nsize=1m\nrw=read\n").unwrap();
        let settings = Settings([("job".to_string(), file.display().to_string().into())].into());
        let place = Place { memory: folder.path().into(), ..Place::of_run("r") };
        let names = |phases: Vec<Phase>| phases.into_iter().map(|phase| phase.name.into_owned()).collect::<Vec<_>>();
        let wanted = names(Fio.phases(&settings));
        assert!(wanted.len() >= 3, "{wanted:?}");
        Fio.prepare(&settings, &place).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(names(Fio.phases_of_cell(&settings, &place)), wanted);
        assert_ne!(names(Fio.phases(&settings)), wanted);
    }
}
