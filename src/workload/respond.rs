//! How the machine answers while another program writes hard: small operations at fixed times, beside a background.
//!
//! Each probe is what somebody waits for: a mail saved, a page opened, a file renamed, a name looked up, a program
//! started. See docs/respond.md for what is counted.

use super::{Setting, Stage, Workload, dataset, props::Props};
use crate::need::Need;
use crate::plan::{Kind, Objection, Settings};
use crate::process::run_program;
use crate::stack::{Place, argv};
use crate::stage::{Every, Kept, Part, Program, Timed};
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct Respond;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "backgrounds",
        kind: Kind::Texts,
        default: Some("[\"idle\", \"write\", \"drain\", \"untar\", \"remove\"]"),
        about: "what goes on meanwhile: nothing, a file written as fast as it goes, and then what is still dirty of it \
                after the writer has stopped; a tree unpacked; the tree removed",
    },
    Setting {
        name: "probes",
        kind: Kind::Texts,
        default: Some("[\"append\", \"read\", \"create\", \"stat\", \"start\"]"),
        about: "what is done at fixed times",
    },
    Setting {
        name: "time",
        kind: Kind::Duration,
        default: Some("60s"),
        about: "how long `idle` and `write` last, and `untar` and `remove` at most",
    },
    Setting {
        name: "drain_time",
        kind: Kind::Duration,
        default: Some("60s"),
        about: "how long `drain` lasts at most; it ends when less than 1 MiB is dirty and the device has been \
                quiet for 6 s",
    },
    Setting {
        name: "write_size",
        kind: Kind::Size,
        default: Some("1GiB"),
        about: "size of the file that `write` writes; from its end it goes on at its start",
    },
    Setting { name: "start_every", kind: Kind::Duration, default: Some("20s"), about: "how often `start` is done" },
    Setting { name: "start_files", kind: Kind::Count, default: Some("200"), about: "files that `start` reads" },
    Setting { name: "start_bytes", kind: Kind::Size, default: Some("30MiB"), about: "bytes in all of these" },
    dataset::SETTINGS[0],
    dataset::SETTINGS[1],
    dataset::SETTINGS[2],
    dataset::SETTINGS[3],
    dataset::SETTINGS[4],
];

/// One probe: its name, how often it is due in milliseconds (0: as the settings say), when for the first time, and what
/// it is.
struct Probe {
    name: &'static str,
    every_ms: u64,
    first_ms: u64,
    about: &'static str,
}

/// They do not begin at the same moment.
const PROBES: [Probe; 5] = [
    Probe {
        name: "append",
        every_ms: 100,
        first_ms: 3,
        about: "append 4 KiB and fdatasync, every 100 ms: the 99th percentile",
    },
    Probe {
        name: "read",
        every_ms: 50,
        first_ms: 17,
        about: "read 4 KiB that nobody has read, cold, every 50 ms: the 99th percentile",
    },
    Probe {
        name: "create",
        every_ms: 250,
        first_ms: 31,
        about: "create, rename, fsync of the directory, every 250 ms: the 99th percentile",
    },
    Probe {
        name: "stat",
        every_ms: 50,
        first_ms: 41,
        about: "stat of a random path, cold, every 50 ms: the 99th percentile",
    },
    Probe {
        name: "start",
        every_ms: 0,
        first_ms: 71,
        about: "start a program: read its files, cold: the 99th percentile",
    },
];

/// Those that are phases; `drain` comes behind `write` in its phase.
const PHASES: [(&str, &str); 4] = [
    ("idle", "the probes alone"),
    ("write", "the probes while a file is written, and until what is dirty has been written"),
    ("untar", "the probes while a tree is unpacked"),
    ("remove", "the probes while the tree is removed"),
];
const DRAIN: &str = "drain";

/// Written at a time.
const CHUNK: usize = 256 << 10;
/// Of fewer, the 99th percentile is the maximum.
const FEW: u64 = 100;
const PAUSE: Duration = Duration::from_millis(10);

impl Workload for Respond {
    fn name(&self) -> &'static str {
        "respond"
    }

    fn about(&self) -> &'static str {
        "how soon small operations are answered while another program writes hard"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "time"
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let mut phases = Vec::new();
        for (name, about) in PHASES.into_iter().filter(|(name, _)| wanted(settings, "backgrounds", name)) {
            let (starts, reads, judged) = (Starts::Cold, Reads::Told, Judged::ByParts);
            phases.push(Phase { name: Cow::Borrowed(name), about, starts, reads, judged });
            phases.extend(parts(settings, name));
            if name == "write" && wanted(settings, "backgrounds", DRAIN) {
                phases.extend(parts(settings, DRAIN));
            }
        }
        phases
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let coreutils = |name| Need::Program { name, package: "coreutils" };
        let mut needs = Vec::new();
        if unpacks(settings) {
            needs.extend([Need::Program { name: "tar", package: "tar" }, coreutils("timeout"), coreutils("rm")]);
        }
        needs
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let backgrounds: Vec<&str> = PHASES.iter().map(|(name, _)| *name).chain([DRAIN]).collect();
        let lists = [("backgrounds", backgrounds), ("probes", PROBES.map(|probe| probe.name).to_vec())];
        let mut found: Vec<Objection> =
            lists.iter().filter_map(|(setting, known)| bad_list(settings, setting, known)).collect();
        if wanted(settings, "backgrounds", DRAIN) && !wanted(settings, "backgrounds", "write") {
            let message = "`drain` is what `write` leaves behind, and there is no `write`".to_string();
            found.push(Objection::new("backgrounds", message, "add \"write\", or leave \"drain\" out"));
        }
        if unpacks(settings) {
            found.extend(dataset::objections(settings));
        }
        found
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let tree = if unpacks(settings) { dataset::bytes(settings)? } else { 0 };
        let file = if wanted(settings, "backgrounds", "write") { settings.number("write_size")? } else { 0 };
        Some(Props::new(settings, most(settings)).bytes() + file + tree)
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        if !unpacks(settings) {
            return Ok(());
        }
        dataset::prepare(settings, place)?;
        let staged = dataset::staged(settings, place)?.folder;
        run_program(&argv(["tar", "-c", "-f", &text(&archive(&staged)), "-C", &text(&staged), "."])).map(drop)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let mut props = Props::new(settings, most(settings));
        let root = stage.root();
        stage.check("making content", || {
            props.make_content();
            Ok(())
        })?;
        stage.lay_out("laying out what the probes use", |stage| stage.check("writing", || props.lay_out(&root)))?;
        let tree = unpacks(settings).then(|| Tree::new(stage, settings)).transpose()?;
        for (name, _) in PHASES.into_iter().filter(|(name, _)| wanted(settings, "backgrounds", name)) {
            if let ("remove", Some(tree)) = (name, &tree) {
                tree.unpack(stage)?;
            }
            let background = Background { name, settings, props: &props, root: &root, tree: tree.as_ref() };
            stage.phase(name, |p| background.play(p))?;
            if !stage.forgets_names() {
                let why = "without root, names and inodes cannot be dropped: those asked for may have been in memory";
                warm_stats(settings, name).iter().for_each(|part| stage.flag(part, "not-proved-cold", why.into()));
            }
            if let (Some(tree), "untar" | "remove") = (&tree, name) {
                tree.tell(stage, name)?;
            }
        }
        Ok(())
    }
}

fn wanted(settings: &Settings, list: &str, name: &str) -> bool {
    // Without settings, as `pickfs list` asks, all.
    !settings.0.contains_key(list) || settings.texts(list).iter().any(|text| text == name)
}

fn unpacks(settings: &Settings) -> bool {
    ["untar", "remove"].iter().any(|name| wanted(settings, "backgrounds", name))
}

fn parts(settings: &Settings, background: &str) -> Vec<Phase> {
    let probes = PROBES.iter().filter(|probe| wanted(settings, "probes", probe.name));
    probes.map(|probe| Phase::part(part(probe.name, background).into(), probe.about)).collect()
}

fn part(probe: &str, background: &str) -> String {
    format!("{probe}-during-{background}")
}

/// The parts of a background whose `stat` was not cold, where names stay in memory.
fn warm_stats(settings: &Settings, background: &'static str) -> Vec<String> {
    let drains = background == "write" && wanted(settings, "backgrounds", DRAIN);
    let played = std::iter::once(background).chain(drains.then_some(DRAIN));
    played.filter(|_| wanted(settings, "probes", "stat")).map(|played| part("stat", played)).collect()
}

fn bad_list(settings: &Settings, setting: &'static str, known: &[&str]) -> Option<Objection> {
    let given = settings.texts(setting);
    let remedy = format!("use some of {}", known.join(", "));
    if settings.0.contains_key(setting) && given.iter().all(|name| name == DRAIN) {
        return Some(Objection::new(setting, "there is nothing to be done".into(), &remedy));
    }
    let unknown = given.iter().find(|name| !known.contains(&name.as_str()))?;
    Some(Objection::new(setting, format!("`{unknown}` is none of the {setting}"), &remedy))
}

fn duration(settings: &Settings, name: &str) -> Duration {
    Duration::from_nanos(settings.number(name).unwrap_or(60_000_000_000))
}

/// How long probes may be done after one cold start.
fn most(settings: &Settings) -> Duration {
    duration(settings, "time") + duration(settings, "drain_time")
}

fn every(probe: &Probe, settings: &Settings) -> Duration {
    if probe.every_ms > 0 { Duration::from_millis(probe.every_ms) } else { duration(settings, "start_every") }
}

/// One of the phases.
struct Background<'a> {
    name: &'static str,
    settings: &'a Settings,
    props: &'a Props,
    root: &'a Path,
    tree: Option<&'a Tree>,
}

impl Background<'_> {
    fn play(&self, p: &mut Timed) -> Result<()> {
        let probes: Vec<&Probe> = PROBES.iter().filter(|probe| wanted(self.settings, "probes", probe.name)).collect();
        let kinds: Result<Vec<Every>> = probes.iter().map(|probe| self.kind(probe)).collect();
        let mut kinds = kinds?;
        let kept = p.beside(&mut kinds, |p, failed| self.work(p, failed))?;
        let mut read = self.read(&probes, &kept);
        tell(p, &probes, self.name, kept);
        if self.name == "write" && wanted(self.settings, "backgrounds", DRAIN) {
            let at_most = duration(self.settings, "drain_time");
            let kept = p.beside(&mut kinds, |p, failed| {
                let mut written = p.written();
                p.until(at_most, PAUSE, || Ok(failed() || written.all()?)).map(drop)
            })?;
            read += self.read(&probes, &kept);
            tell(p, &probes, DRAIN, kept);
        }
        p.reads_at_least(read);
        Ok(())
    }

    fn kind<'a>(&'a self, probe: &Probe) -> Result<Every<'a>> {
        let (period, first) = (every(probe, self.settings), Duration::from_millis(probe.first_ms));
        Ok(match probe.name {
            "append" => Every::new(period, first, self.props.append(self.root)?),
            "read" => Every::new(period, first, self.props.read(self.root)?),
            "create" => Every::new(period, first, self.props.create(self.root, self.name)?),
            "stat" => Every::new(period, first, self.props.stat(self.root)),
            _ => Every::new(period, first, self.props.start(self.root)),
        })
    }

    /// Bytes that the probes must have read from the device.
    fn read(&self, probes: &[&Probe], kept: &[Kept]) -> u64 {
        let of = |(probe, kept): (&&Probe, &Kept)| self.props.least_read(probe.name, kept.latencies.count());
        probes.iter().zip(kept).map(of).sum()
    }

    fn work(&self, p: &mut Timed, failed: &dyn Fn() -> bool) -> Result<()> {
        let time = duration(self.settings, "time");
        match (self.name, self.tree) {
            ("idle", _) => p.until(time, PAUSE, || Ok(failed())).map(drop),
            ("write", _) => {
                let size = self.settings.number("write_size").unwrap_or(1 << 30);
                let mut stream = Stream::new(&self.root.join("stream"), self.props.content(), size)?;
                p.until(time, Duration::ZERO, || Ok(failed() || stream.write()?)).map(drop)
            }
            ("untar", Some(tree)) => p.run(&timely(time, tree.unpacking())),
            ("remove", Some(tree)) => p.run(&timely(time, vec!["rm".into(), "-rf".into(), text(&tree.folder)])),
            (other, _) => bail!("no background {other}"),
        }
    }
}

/// Ended when its time is over, which is no failure.
fn timely(time: Duration, words: Vec<String>) -> Program {
    let limit = ["timeout".into(), "--kill-after=10".into(), format!("{:.3}", time.as_secs_f64())];
    Program::new(limit.into_iter().chain(words)).may_end_with([0, 124, 137])
}

fn tell(p: &mut Timed, probes: &[&Probe], background: &str, kept: Vec<Kept>) {
    for (probe, kept) in probes.iter().zip(kept) {
        let share = |count: u64| count as f64 / kept.latencies.count().max(1) as f64;
        let part = Part::new(&part(probe.name, background), kept.latencies.quantile(0.99) as f64)
            .say("stall_ns", kept.stall_ns as f64)
            .say("over_100ms_share", share(kept.over_100ms))
            .say("over_1s_share", share(kept.over_1s))
            .say("ran_ns", kept.ran_ns as f64);
        let part = few(kept.latencies.count()).into_iter().fold(part, |part, why| part.doubt("few-operations", why));
        p.part(part.latencies("latency", kept.latencies));
    }
}

/// Why the 99th percentile says little.
fn few(operations: u64) -> Option<String> {
    (operations < FEW).then(|| format!("of {operations} operations the 99th percentile is the longest"))
}

/// A file that is written as fast as it goes, round and round.
struct Stream<'a> {
    file: File,
    content: &'a [u8],
    chunks: u64,
    written: u64,
}

impl Stream<'_> {
    fn new<'a>(path: &Path, content: &'a [u8], size: u64) -> Result<Stream<'a>> {
        let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
        Ok(Stream { file, content, chunks: size.div_ceil(CHUNK as u64).max(1), written: 0 })
    }

    /// One chunk; never enough.
    fn write(&mut self) -> Result<bool> {
        let from = (self.written * (3 * CHUNK as u64 + 4097) % (self.content.len() - CHUNK) as u64) as usize;
        let at = self.written % self.chunks * CHUNK as u64;
        self.file.write_all_at(&self.content[from..from + CHUNK], at).context("writing in the background")?;
        self.written += 1;
        Ok(false)
    }
}

/// The tree that is unpacked and removed.
struct Tree {
    archive: PathBuf,
    folder: PathBuf,
    entries: u64,
}

impl Tree {
    fn new(stage: &mut Stage, settings: &Settings) -> Result<Tree> {
        let staged = dataset::staged(settings, stage.place())?;
        let folder = stage.root().join("unpacked");
        std::fs::create_dir(&folder).context("cannot make a folder on the target")?;
        Ok(Tree { archive: archive(&staged.folder), folder, entries: staged.digest.entries })
    }

    fn unpacking(&self) -> Vec<String> {
        ["tar", "-x", "-f", &text(&self.archive), "-C", &text(&self.folder)].map(String::from).into()
    }

    /// What is there of it.
    fn there(&self) -> u64 {
        walkdir::WalkDir::new(&self.folder).min_depth(1).into_iter().filter(Result::is_ok).count() as u64
    }

    /// All of it, untimed, unless it is there.
    fn unpack(&self, stage: &mut Stage) -> Result<()> {
        if self.there() == self.entries {
            return Ok(());
        }
        let words = self.unpacking();
        stage.lay_out("unpacking what is to be removed", |stage| stage.run(&Program::new(&words)).map(drop))
    }

    /// How much of its work the background did in its time.
    fn tell(&self, stage: &mut Stage, background: &str) -> Result<()> {
        let mut there = 0;
        stage.check("counting what is there", || {
            there = self.there();
            Ok(())
        })?;
        let done = if background == "remove" { self.entries.saturating_sub(there) } else { there };
        stage.say(background, "done_share", done as f64 / self.entries as f64);
        Ok(())
    }
}

fn archive(staged: &Path) -> PathBuf {
    staged.with_extension("tar")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_done_is_refused() {
        let rows = [
            (json!({}), ""),
            (json!({"backgrounds": ["idle"], "probes": ["append"]}), ""),
            (json!({"backgrounds": ["drain", "idle"]}), "backgrounds"),
            (json!({"backgrounds": ["drain"]}), "backgrounds"),
            (json!({"backgrounds": []}), "backgrounds"),
            (json!({"backgrounds": ["storm"]}), "backgrounds"),
            (json!({"probes": ["appendix"]}), "probes"),
            (json!({"like": "sight"}), "like"),
            (json!({"like": "sight", "backgrounds": ["write"]}), ""),
        ];
        for (given, setting) in rows {
            let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
            let found = Respond.objections(&settings);
            assert_eq!(found.first().map_or("", |objection| objection.setting), setting, "{given}");
        }
    }

    #[test]
    fn a_percentile_of_few_is_flagged() {
        assert!(few(99).is_some_and(|why| why.contains("99 operations")) && few(100).is_none());
        // It is what it says.
        for (count, is_longest) in [(99, true), (100, false)] {
            let mut latencies = crate::stage::Latencies::new();
            (1..=count).for_each(|ns| latencies.record(ns));
            assert_eq!(latencies.quantile(0.99) == latencies.quantile(1.0), is_longest, "{count}");
        }
    }

    #[test]
    fn every_probe_is_a_part_of_every_background() {
        let given = json!({"backgrounds": ["write", "drain", "untar"], "probes": ["append", "stat"]});
        let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
        let names: Vec<String> = Respond.phases(&settings).iter().map(|phase| phase.name.to_string()).collect();
        let wanted = [
            "write",
            "append-during-write",
            "stat-during-write",
            "append-during-drain",
            "stat-during-drain",
            "untar",
            "append-during-untar",
            "stat-during-untar",
        ];
        assert_eq!(names, wanted);
        assert_eq!(warm_stats(&settings, "write"), ["stat-during-write", "stat-during-drain"]);
        assert_eq!(warm_stats(&settings, "untar"), ["stat-during-untar"]);
        assert_eq!(Respond.phases(&Settings::default()).len(), 4 + 5 * 5);
    }
}
