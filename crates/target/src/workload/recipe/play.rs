//! A recipe played on the stage.

use super::figure::value;
use super::{processors, program};
use crate::stage::{AfterPhase, Part, Printed, Program, Stage, Timed};
use crate::workload::content::Pool;
use crate::workload::daemon::Daemon;
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::Settings;
use pickfs_core::plan::recipe::{
    Command, Content, MadeFile, PhaseOf, Reads, Recipe, Starts, StopSignal, Until, Values,
};
use rustix::process::Signal;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Bytes of each class in the content of made files, which then comes again at odd distances.
const OF_EACH: usize = 1 << 20;
const PIECE: usize = 256 << 10;

/// While it is played.
struct Player {
    recipe: &'static Recipe,
    values: Values,
    dir: PathBuf,
    memory: PathBuf,
    daemon: Daemon,
    runs: bool,
}

pub(super) fn play(recipe: &'static Recipe, settings: &Settings, stage: &mut Stage) -> Result<()> {
    let (dir, memory) = (stage.root(), stage.memory());
    let shown = |path: &Path| path.display().to_string();
    let named = [("dir", shown(&dir)), ("memory", shown(&memory)), ("port", free_port()?.to_string()), processors()];
    let values = recipe.values(settings, named);
    let mut player = Player { recipe, values, dir, memory, daemon: Daemon::new(&recipe.name), runs: false };
    if !recipe.files.is_empty() {
        stage.lay_out("making the files", |_| recipe.files.iter().try_for_each(|file| player.make(file)))?;
    }
    let played = player.phases(stage);
    match &recipe.server {
        Some(server) => player.daemon.end(played, signal(server.stop)),
        None => played,
    }
}

/// What it prints is of no use.
fn untimed(stage: &mut Stage, program: &Program) -> Result<()> {
    stage.run(&program.clone().making("/dev/null")).map(drop)
}

/// A port that no program has at this moment; the server that gets it is started soon.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot find a free port")?;
    Ok(listener.local_addr()?.port())
}

fn signal(stop: StopSignal) -> Signal {
    match stop {
        StopSignal::Int => Signal::INT,
        StopSignal::Quit => Signal::QUIT,
        StopSignal::Term => Signal::TERM,
    }
}

impl Player {
    fn make(&self, file: &MadeFile) -> Result<()> {
        let path = self.dir.join(&file.path);
        let shown = || format!("cannot make {}", path.display());
        path.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(shown)?;
        let mut made = File::options().write(true).create_new(true).open(&path).with_context(shown)?;
        match &file.content {
            Content::Text(word) => made.write_all(word.filled(&self.values).concat().as_bytes()).with_context(shown),
            Content::Bytes(amount) => {
                let (pool, mut left) = (Pool::new(1, OF_EACH), amount.value(&self.values));
                for number in 0.. {
                    let bytes = left.min(PIECE as u64);
                    made.write_all(pool.piece(number, bytes as usize)).with_context(shown)?;
                    left -= bytes;
                    if left == 0 {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    fn program(&self, command: &Command, values: &Values) -> Result<Program> {
        program(self.recipe, command, values, &self.memory, &self.dir)
    }

    fn programs(&self, commands: &[Command], values: &Values) -> Result<Vec<Program>> {
        commands.iter().map(|command| self.program(command, values)).collect()
    }

    fn phases(&mut self, stage: &mut Stage) -> Result<()> {
        for (name, phase, values) in self.recipe.played(&self.values) {
            self.prepare(stage, phase, &values)?;
            let times = if phase.until == Until::Returned { stage.repeats() } else { 0..1 };
            for _ in times {
                self.phase(stage, &name, phase, &values)?;
            }
            let then = self.programs(&phase.then, &values)?;
            then.iter()
                .try_for_each(|program| untimed(stage, program))
                .with_context(|| format!("after phase {name}"))?;
        }
        Ok(())
    }

    /// Where the server was not started yet, it is by the phase that needs it.
    fn prepare(&mut self, stage: &mut Stage, phase: &PhaseOf, values: &Values) -> Result<()> {
        let before = self.programs(&phase.before, values)?;
        if before.is_empty() {
            return Ok(());
        }
        self.start(stage)?;
        stage.lay_out("preparing", |stage| before.iter().try_for_each(|program| untimed(stage, program)))
    }

    fn start(&mut self, stage: &mut Stage) -> Result<()> {
        let Some(server) = self.recipe.server.as_ref().filter(|_| !self.runs) else { return Ok(()) };
        let [run, ready] = [&server.run, &server.ready].map(|command| self.program(command, &self.values));
        self.runs = true;
        self.daemon.start(stage, &run?, &ready?)
    }

    fn phase(&mut self, stage: &mut Stage, name: &str, phase: &PhaseOf, values: &Values) -> Result<()> {
        let [run, flush] = [&phase.run, &phase.flush].map(|commands| self.programs(commands, values));
        let (run, flush) = (run?, flush?);
        // A server keeps files open, and a cold start unmounts the file system.
        if let Some(server) = self.recipe.server.as_ref().filter(|_| phase.starts == Starts::Cold && self.runs) {
            self.daemon.stop(signal(server.stop))?;
            self.runs = false;
        }
        let player = std::cell::RefCell::new(self);
        let work = |p: &mut Timed| {
            let printed = run.iter().map(|program| p.output(program)).collect::<Result<Vec<_>>>()?;
            player.borrow_mut().daemon.check()?;
            flush.iter().try_for_each(|program| p.run(program))?;
            Ok(printed)
        };
        let then = |p: &mut AfterPhase, printed| tell(p, phase, printed, values);
        stage.phase_once(name, |stage| player.borrow_mut().start(stage), work, then)
    }
}

/// What its programs printed becomes metrics and parts.
fn tell(p: &mut AfterPhase, phase: &PhaseOf, printed: Vec<Printed>, values: &Values) -> Result<()> {
    let texts: Vec<String> = printed.into_iter().map(|one| one.text(p)).collect::<Result<_>>()?;
    // Where a program shows its progress in one place, each state of it is a line.
    let text = texts.join("\n").replace('\r', "\n");
    if let Reads::AtLeast(amount) = &phase.reads {
        p.reads_at_least(amount.value(values));
    }
    for figure in &phase.metrics {
        let number = value(figure, &text, values)?;
        match figure.name.as_str() {
            "" => {}
            "time_ns" => {
                ensure!(number > 0.0, "the phase took no time by its own clock");
                p.took(number);
            }
            name => p.say(name, number),
        }
    }
    for part in &phase.parts {
        let took = value(&part.time, &text, values).with_context(|| format!("of part {}", part.name))?;
        ensure!(took > 0.0, "part {} took no time by its own clock", part.name);
        let mut measured = Part::new(&part.name, took);
        for figure in &part.metrics {
            let number = value(figure, &text, values)?;
            measured = if figure.name.is_empty() { measured } else { measured.say(&figure.name, number) };
        }
        p.part(measured);
    }
    Ok(())
}
