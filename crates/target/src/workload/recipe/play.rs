//! A recipe played on the stage.

use super::account::lodge;
use super::daemon::Daemon;
use super::figure::{Number, latencies, value};
use super::{filled, located, processors};
use crate::stage::{AfterPhase, Part, Printed, Program, Stage, Timed};
use crate::workload::content::Pool;
use anyhow::{Context, Error, Result, ensure};
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::Settings;
use pickfs_core::plan::recipe::{
    Command, Content, Doubt, Figure, FigureSource, MadeFile, PartOf, PhaseOf, Reads, Recipe, ServerOf, Starts,
    StopSignal, Until, Values,
};
use rustix::process::Signal;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Bytes of each class in the content of made files, which then comes again at odd distances.
const OF_EACH: usize = 1 << 20;
const PIECE: u64 = 256 << 10;

/// While it is played.
struct Player {
    recipe: &'static Recipe,
    values: Values,
    dir: PathBuf,
    memory: PathBuf,
    /// User and group of all programs, where they are not ours.
    user: Option<(u32, u32)>,
    daemon: Daemon,
    runs: bool,
    /// Its settings are among the facts.
    is_described: bool,
}

pub(super) fn play(recipe: &'static Recipe, settings: &Settings, stage: &mut Stage) -> Result<()> {
    let (dir, memory) = (stage.root(), stage.memory());
    let shown = |path: &Path| path.display().to_string();
    let named = [("dir", shown(&dir)), ("memory", shown(&memory)), ("port", free_port()?.to_string()), processors()];
    let values = recipe.values(settings, named);
    let user = recipe.server.as_ref().map_or(Ok(None), |server| make_folders(server, &values, stage))?;
    let daemon = Daemon::new(recipe.server.as_ref().map_or("", name_of));
    let mut player = Player { recipe, values, dir, memory, user, daemon, runs: false, is_described: false };
    if let Some(weakening) = recipe.weakening(settings) {
        stage.fact("server weakened by", &weakening);
    }
    if !recipe.files.is_empty() {
        stage.lay_out("making the files", |_| recipe.files.iter().try_for_each(|file| player.make(file)))?;
    }
    let played = player.phases(stage);
    match &recipe.server {
        Some(server) => player.daemon.end(played, signal(server.stop)),
        None => played,
    }
}

fn name_of(server: &ServerOf) -> &str {
    server.run.first().map_or("the server", |word| word.plain())
}

fn make_folders(server: &ServerOf, values: &Values, stage: &mut Stage) -> Result<Option<(u32, u32)>> {
    let folders: Vec<PathBuf> = server.folders.iter().flat_map(|word| word.filled(values)).map(PathBuf::from).collect();
    lodge(stage, name_of(server), server.account, &folders)
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
                let pool = Pool::new(1, OF_EACH);
                pool.write_to(&mut made, 0, amount.value(&self.values), PIECE).with_context(shown)
            }
        }
    }

    fn program(&self, command: &Command, values: &Values) -> Result<Program> {
        let mut words = filled(command, values);
        words.iter_mut().take(1).for_each(|name| *name = located(self.recipe, name));
        // Temporary files go to memory, where they cost no disk and are gone after the cell.
        let mut program = Program::new(words).in_folder(&self.dir).with("TMPDIR", self.memory.display().to_string());
        for variable in self.recipe.environment.iter().flat_map(|word| word.filled(values)) {
            let (name, value) = variable.split_once('=').context("a variable without a value")?;
            program = program.with(name, value);
        }
        Ok(self.user.into_iter().fold(program, |program, (user, group)| program.for_user(user, group)))
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
            phase.facts.iter().try_for_each(|facts| self.keep(stage, facts, ""))?;
        }
        Ok(())
    }

    /// Where the server was not started yet, it is by the phase that needs it.
    fn prepare(&mut self, stage: &mut Stage, phase: &PhaseOf, values: &Values) -> Result<()> {
        let before = self.programs(&phase.before, values)?;
        // What it writes as it starts is durable then, and no part of a warm phase.
        if phase.is_served && (phase.starts == Starts::Warm || !before.is_empty()) {
            self.start(stage)?;
        }
        if before.is_empty() {
            return Ok(());
        }
        stage.lay_out("preparing", |stage| before.iter().try_for_each(|program| untimed(stage, program)))
    }

    fn start(&mut self, stage: &mut Stage) -> Result<()> {
        let Some(server) = self.recipe.server.as_ref().filter(|_| !self.runs) else { return Ok(()) };
        let [run, ready] = [&server.run, &server.ready].map(|command| self.program(command, &self.values));
        self.runs = true;
        self.daemon.start(stage, &run?, &ready?)?;
        let Some(facts) = server.facts.as_ref().filter(|_| !std::mem::replace(&mut self.is_described, true)) else {
            return Ok(());
        };
        self.keep(stage, facts, "server ")
    }

    /// What the command prints becomes facts.
    fn keep(&self, stage: &mut Stage, facts: &Command, prefix: &str) -> Result<()> {
        let printed = stage.run(&self.program(facts, &self.values)?)?;
        for (name, value) in printed.lines().filter_map(|line| line.split_once(['\t', '|'])) {
            stage.fact(&format!("{prefix}{name}"), value);
        }
        Ok(())
    }

    fn phase(&mut self, stage: &mut Stage, name: &str, phase: &'static PhaseOf, values: &Values) -> Result<()> {
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
        let then = |p: &mut AfterPhase, printed| player.borrow().tell(p, phase, printed, values.clone());
        let ready = |stage: &mut Stage| if phase.is_served { player.borrow_mut().start(stage) } else { Ok(()) };
        stage.phase_once(name, ready, work, then)
    }

    /// What its programs printed becomes metrics and parts.
    fn tell(&self, p: &mut AfterPhase, phase: &'static PhaseOf, printed: Vec<Printed>, values: Values) -> Result<()> {
        let texts: Vec<String> = printed.into_iter().map(|one| one.text(p)).collect::<Result<_>>()?;
        // Where a program shows its progress in one place, each state of it is a line.
        let text = texts.join("\n").replace('\r', "\n");
        let mut found = values.clone();
        for (figure, number) in self.numbers(p, &phase.metrics, &text, &mut found)? {
            match figure.name {
                "time_ns" => {
                    ensure!(number > 0.0, "the phase took no time by its own clock");
                    p.took(number);
                }
                "units_count" => p.done_times(number),
                name => p.say(name, number),
            }
        }
        if let Reads::AtLeast(amount) = &phase.reads {
            p.reads_at_least(amount.value(&found));
        }
        for of in &phase.latencies {
            let all = latencies(of, &self.answer(p, of.ask.as_ref(), &text, &found)?, &found)?;
            p.latencies(of.name, all);
        }
        let mut without = Vec::new();
        for part in &phase.parts {
            let mut values = values.clone();
            let took = value(&part.time, &text, &values).with_context(|| format!("of part {}", part.name))?;
            let Some(Number { number: took, .. }) = took else {
                without.push(part);
                continue;
            };
            ensure!(took > 0.0, "part {} took no time by its own clock", part.name);
            let numbers = self.numbers(p, &part.metrics, &text, &mut values)?.into_iter();
            p.part(numbers.fold(Part::new(&part.name, took), |part, (figure, number)| part.say(figure.name, number)));
        }
        if without.is_empty() { Ok(()) } else { without_value(p, phase, &without, values) }
    }

    /// The figures to show; `values` gets all that have a name.
    fn numbers(
        &self,
        p: &mut AfterPhase,
        figures: &'static [Figure],
        text: &str,
        values: &mut Values,
    ) -> Result<Vec<(&'static Figure, f64)>> {
        let mut all = Vec::new();
        for figure in figures {
            let ask = if let FigureSource::Found { ask, .. } = &figure.source { ask.as_ref() } else { None };
            let Some(found) = value(figure, &self.answer(p, ask, text, values)?, values)? else { continue };
            match (found.wrong, &figure.doubt) {
                (Some(_), Some((doubt, why))) => p.doubt(flag(*doubt), why.filled(values).concat()),
                (Some(wrong), None) => return Err(Error::msg(wrong)),
                (None, _) => {}
            }
            if !figure.name.is_empty() {
                values.named.insert(figure.name, found.number.to_string());
                all.extend((!figure.is_inner).then_some((figure, found.number)));
            }
        }
        Ok(all)
    }

    /// What is searched: what the command prints, or what the phase has printed.
    fn answer<'t>(
        &self,
        p: &AfterPhase,
        ask: Option<&Command>,
        text: &'t str,
        values: &Values,
    ) -> Result<Cow<'t, str>> {
        ask.map_or(Ok(text.into()), |ask| Ok(p.ask(&self.program(ask, values)?)?.into()))
    }
}

/// Parts without a time: a target that has none would have no whole job, and be out of the verdict
/// for being fast.
fn without_value(p: &mut AfterPhase, phase: &PhaseOf, parts: &[&PartOf], mut values: Values) -> Result<()> {
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    values.named.insert("parts", names.join(", "));
    let why = phase.no_value.as_ref().map(|why| why.filled(&values).concat()).unwrap_or_default();
    let more: BTreeSet<String> = parts.iter().filter_map(|part| part.more).map(|name| format!("`{name}`")).collect();
    let more = more.into_iter().collect::<Vec<_>>().join(" and ");
    ensure!(parts.len() < phase.parts.len(), "{why}; no part is left to report, give more {more}");
    let setting = phase.may_miss.unwrap_or_default();
    let is_left_out = values.settings.text(setting) == Some("leave-out");
    ensure!(is_left_out, "{why}; give more {more}, or {setting} = \"leave-out\"");
    p.doubt(FlagKind::NoValue, why);
    Ok(())
}

fn flag(doubt: Doubt) -> FlagKind {
    match doubt {
        Doubt::ClientsWait => FlagKind::ClientsWait,
        Doubt::NoValue => FlagKind::NoValue,
    }
}
