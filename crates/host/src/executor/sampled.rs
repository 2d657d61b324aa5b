//! This machine as [`super::local`] has it. While a cell runs, perf(1) looks at fixed times at what
//! every processor executes. A run on it explains times and measures none: looking takes time, too.

use super::{Contact, ContactOutcome, Executor, Machine, agent_here, local};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::Record;
use pickfs_core::plan::Plan;
use pickfs_core::protocol::{Job, PhaseClock, Request, Say};
use pickfs_system::need::Need;
use pickfs_system::process::{argv, command, output};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// From one look at a processor to the next, in nanoseconds.
pub const PERIOD_NS: u64 = 250_000;

pub const NEEDS: [Need; 2] = [Need::Root, Need::Program { name: "perf", package: "linux-perf" }];

pub struct Sampled {
    /// Where each cell leaves what explains its times.
    pub folder: PathBuf,
    /// Perf also sees where tasks go to sleep.
    pub sees_sleep: bool,
}

impl Executor for Sampled {
    fn name(&self) -> &'static str {
        local::Local.name()
    }

    fn about(&self) -> &'static str {
        "this machine, while perf looks at what its processors execute"
    }

    fn machine(&self, _plan: &Plan) -> Box<dyn Machine> {
        Box::new(SampledMachine { folder: self.folder.clone(), sees_sleep: self.sees_sleep, sampler: None })
    }

    fn needs(&self) -> Vec<Need> {
        NEEDS.to_vec()
    }
}

struct SampledMachine {
    folder: PathBuf,
    sees_sleep: bool,
    sampler: Option<Sampler>,
}

impl Machine for SampledMachine {
    fn reach(&mut self, request: Request) -> Result<ContactOutcome> {
        self.sampler = match &request.job {
            Job::Cell(cell) => Some(Sampler::start(Files::of(&self.folder, &cell.id), self.sees_sleep)?),
            _ => None,
        };
        Ok(ContactOutcome::Agent(Box::new(Contact::lasting(agent_here(&request.run)?, request))))
    }

    fn overhear(&mut self, said: &mut Say) {
        let Some(sampler) = &mut self.sampler else { return };
        match said {
            Say::Clock(clock) => sampler.clocks.push((**clock).clone()),
            Say::Tell(Record::End(_)) => {
                // What is missing of it is missed by who reads it.
                let _ = self.sampler.take().map(Sampler::end);
            }
            _ => {}
        }
    }
}

/// The files of a cell in the folder of explanations.
struct Files {
    samples: PathBuf,
    clocks: PathBuf,
}

impl Files {
    fn of(folder: &Path, cell: &str) -> Files {
        let file = |kind: &str| folder.join(format!("{cell}.{kind}"));
        Files { samples: file("samples"), clocks: file("clocks") }
    }
}

/// perf(1), which ends with us.
struct Sampler {
    files: Files,
    perf: Child,
    clocks: Vec<PhaseClock>,
}

impl Sampler {
    /// Returns once perf looks.
    fn start(files: Files, sees_sleep: bool) -> Result<Sampler> {
        let to = files.samples.display().to_string();
        let words = ["setpriv", "--pdeathsig", "KILL", "--", "perf", "record", "--quiet", "--all-cpus"];
        let looks = format!("--event=cpu-clock/period={PERIOD_NS}/");
        let what = [&looks, "--call-graph=fp", "--kernel-callchains", "--clockid=CLOCK_MONOTONIC", "--output", &to];
        let sleeps = sees_sleep.then_some("--event=context-switches/period=1/");
        // It reads what to do from its input, and answers on its output.
        let when = ["--delay=-1", "--control", "fd:0,1"];
        let mut command = command(&argv(words.into_iter().chain(what).chain(sleeps).chain(when)), &[])?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let perf = command.spawn().context("cannot start perf")?;
        let mut sampler = Sampler { files, perf, clocks: Vec::new() };
        sampler.tell("enable").context("perf does not start to look")?;
        Ok(sampler)
    }

    fn tell(&mut self, what: &str) -> Result<()> {
        let (input, output) = (self.perf.stdin.as_mut(), self.perf.stdout.as_mut());
        writeln!(input.context("perf has no input")?, "{what}")?;
        // A line, and in some versions a zero byte after it.
        let mut answer = [0; 16];
        let length = output.context("perf has no output")?.read(&mut answer)?;
        ensure!(answer[..length].starts_with(b"ack"), "its answer to {what} is {length} bytes without an ack");
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        self.tell("stop").context("perf does not end")?;
        self.perf.wait().context("cannot wait for perf")?;
        let text = serde_json::to_vec(&self.clocks)?;
        std::fs::write(&self.files.clocks, text).context("cannot write what clocks have shown")
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // Of a cell that has not ended.
        let _ = self.perf.kill();
        let _ = self.perf.wait();
    }
}

/// What explains the times of a cell.
pub struct Samples {
    /// As perf-script(1) shows them, with the begin of each process.
    pub text: String,
    pub clocks: Vec<PhaseClock>,
}

impl Samples {
    /// Those of a cell, from the folder of [`Sampled`].
    pub fn read(folder: &Path, cell: &str) -> Result<Samples> {
        let files = Files::of(folder, cell);
        let clocks = std::fs::read(&files.clocks).context("perf did not see the cell to its end")?;
        let from = files.samples.display().to_string();
        let fields = "comm,pid,tid,cpu,time,event,ip";
        let words = ["perf", "script", "--show-task-events", "--ns", "--fields", fields, "--input", &from];
        Ok(Samples { text: output(&argv(words), &[])?, clocks: serde_json::from_slice(&clocks)? })
    }
}
