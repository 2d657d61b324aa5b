//! Cuts the power of the disk under test: brings it to what it would hold after a cut at many
//! moments of what was recorded, and lets the file system recover each time, on the machine that
//! wrote it.

use super::caches;
use super::cell_stage::Stage;
use super::latencies::Latencies;
use super::program::Program;
use super::timed::Findings;
use crate::stack::{Argv, argv, fs, layer};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::plan::Target;
use pickfs_disks::cuts::{
    Agreement, Image, Loses, Medium, Mode, Moment, NEVER, Recording, Span, Survivors, Witness, moments,
};
use pickfs_system::process::{check_stop, last_words};
use pickfs_system::random::Random;
use pickfs_system::sys::block;
use pickfs_system::sys::clock::monotonic;
use pickfs_system::sys::devices;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What is to be cut, and what the disk loses each time.
#[derive(Clone, Debug)]
pub(crate) struct PowerCuts {
    pub spans: Vec<Span>,
    /// Each is tried at each moment.
    pub losses: Vec<Loses>,
    /// The disk loses the last nanoseconds of what it has acknowledged, flushed or not.
    pub lies_ns: Option<u64>,
    /// Whether the file system's own checker looks at each image, after it was mounted and
    /// unmounted.
    pub fsck: bool,
    pub seed: u64,
}

/// One cut: a moment and what the disk then held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub moment: Moment,
    /// By its number in [`PowerCuts::losses`].
    pub loses: usize,
    /// By its number in [`Outcomes::images`]: several cuts may leave the same.
    pub image: usize,
}

/// What a file system made of an image.
#[derive(Clone, Debug)]
pub(crate) struct Recovered<T> {
    /// How long the mount took, or why there was none.
    pub mounted: Result<Duration, String>,
    /// What was found on it; nothing where it was not mounted.
    pub found: Option<T>,
    /// What the file system's own checker found wrong when it was unmounted again.
    pub wrong: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Outcomes<T> {
    pub cuts: Vec<Cut>,
    pub images: Vec<Recovered<T>>,
    /// Whether a checker looked at all that could be mounted.
    pub are_checked: bool,
}

/// When an operation began and had returned, in nanoseconds of the clock of the recorded disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub begun: u64,
    pub returned: u64,
}

const CHECKER: &str = "file system check after each cut";

/// The disk and its recording.
struct Rig<'a> {
    device: PathBuf,
    log_path: PathBuf,
    log: File,
    recording: &'a Recording,
    medium: Medium<'a>,
    /// Programs that check the unmounted file system without repair: none where there are none.
    checkers: Vec<Argv>,
}

impl Stage<'_, '_> {
    /// Does operations at fixed times, one after the other; one that comes late does not shift
    /// those behind it.
    pub(crate) fn at_fixed_times(
        &mut self,
        every: Duration,
        count: u64,
        mut work: impl FnMut(u64) -> Result<()>,
    ) -> Result<Vec<Stamp>> {
        let (begun, mut stamps) = (monotonic(), Vec::with_capacity(count as usize));
        for number in 0..count {
            let due = begun + every.as_nanos() as u64 * number;
            std::thread::sleep(Duration::from_nanos(due.saturating_sub(monotonic())));
            let begun = monotonic();
            work(number)?;
            stamps.push(Stamp { begun, returned: monotonic() });
            if number % 64 == 0 {
                check_stop()?;
                self.deadline.check()?;
            }
        }
        Ok(stamps)
    }

    /// Runs a program to its end: each line that it printed, and when it came, in nanoseconds of
    /// the clock of the recorded disk.
    pub(crate) fn lines_as_they_come(&mut self, program: &Program) -> Result<Vec<(u64, String)>> {
        check_stop()?;
        let words = self.memory().join("last-words");
        let mut command = program.command(&self.runner.marks())?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&words)?);
        let mut child = command.spawn().with_context(|| format!("cannot run `{}`", program.shown()))?;
        let (pipe, mut lines) = (child.stdout.take().context("the program has no output")?, Vec::new());
        for line in BufReader::new(pipe).lines() {
            let now = monotonic();
            lines.push((now, line.with_context(|| format!("cannot read what `{}` prints", program.shown()))?));
        }
        let status = child.wait()?;
        self.deadline.check()?;
        let shown = || {
            format!(
                "`{}` ended with {status}: {}",
                program.shown(),
                last_words(&std::fs::read(&words).unwrap_or_default())
            )
        };
        ensure!(program.accepts(status), shown());
        Ok(lines)
    }

    /// Seed of the round.
    pub(crate) fn seed(&self) -> u64 {
        self.stack.seed
    }

    /// Bytes that the disk writes as one, by what it declares: "the smallest unit a physical
    /// storage device can write atomically" (Documentation/ABI/stable/sysfs-block of Linux).
    pub(crate) fn atomic_bytes(&self) -> Result<u64> {
        let disk = self.stack.disks.first().context("a directory has no disk")?;
        let file = devices::device_number(disk).and_then(|number| devices::queue_file(number, "physical_block_size"));
        let declared = file.and_then(devices::content).and_then(|text| text.parse().ok());
        declared.context("the kernel does not show what the disk writes as one")
    }

    /// Nanoseconds of one kind, of a phase that is not timed: its curve and its quantiles.
    pub(crate) fn distribution(&mut self, phase: &str, what: &str, values: &[u64]) -> Result<()> {
        let mut all = Latencies::new();
        values.iter().for_each(|ns| all.record(*ns));
        self.tell_findings(phase, Findings { values: Vec::new(), latencies: vec![(what.into(), all)] })
    }

    /// Cuts the power and examines the result, with the folder of the work on the mounted file
    /// system. In the end the file system is mounted as if there had been no cut.
    pub(crate) fn cut_power<T>(
        &mut self,
        wanted: &PowerCuts,
        mut look: impl FnMut(&mut Self, &Path) -> Result<T>,
    ) -> Result<Outcomes<T>> {
        self.put_down()?;
        let log_path = self.link.recording().context("nothing records this disk")?.to_path_buf();
        let open = |path: &Path| File::options().read(true).write(true).open(path);
        let log = open(&log_path).context("cannot open the recording of the disk")?;
        let recording = Recording::read(&log)?;
        self.hear_second_witness(&recording, &log)?;
        Recording::go_on(&log, recording.used, Mode::Places)?;
        let device = self.stack.disks.first().cloned().context("a directory has no disk")?;
        let medium = Medium::unknown(&recording);
        let checkers = if wanted.fsck { self.checkers()? } else { Vec::new() };
        let are_checked = !checkers.is_empty();
        let mut rig = Rig { device, log_path, log, recording: &recording, medium, checkers };
        let mut outcomes = Outcomes { cuts: Vec::new(), images: Vec::new(), are_checked };
        let mut survivors = Survivors::new(&recording, wanted.lies_ns);
        let mut known = HashMap::new();
        for moment in moments(&wanted.spans, &recording.flushes, wanted.seed) {
            survivors.advance(moment.at);
            for (number, loses) in wanted.losses.iter().enumerate() {
                let mut random = Random::new(wanted.seed ^ moment.at, number as u64);
                let image = survivors.image(moment.at, *loses, &mut random);
                let image = match known.get(&image) {
                    Some(image) => *image,
                    None => {
                        outcomes.images.push(self.recover(&mut rig, &mut survivors, &image, &mut look)?);
                        known.insert(image, outcomes.images.len() - 1);
                        outcomes.images.len() - 1
                    }
                };
                outcomes.cuts.push(Cut { moment, loses: number, image });
            }
        }
        // A disk that does not keep its word has all in the end, too.
        let mut survivors = Survivors::new(&recording, None);
        survivors.advance(NEVER - 1);
        let whole = survivors.image(NEVER - 1, Loses::Nothing, &mut Random::new(0, 0));
        rig.medium = Medium::unknown(&recording);
        rig.hold(&mut survivors, &whole)?;
        self.mount_again().context("the file system is not mounted again after the cuts").map(|_| outcomes)
    }

    /// Where a layer logs all writes too, both must say the same of the disk at each flush.
    fn hear_second_witness(&mut self, recording: &Recording, recorded: &File) -> Result<()> {
        let Some((mapping, log)) = self.stack.log_of_writes.clone() else { return Ok(()) };
        self.runner.output(&argv(["dmsetup", "message", &mapping, "0", "mark", "end"]))?;
        let witness = loop {
            check_stop()?;
            self.deadline.check()?;
            block::flush_buffers(&log).context("cannot flush the buffers of the log of writes")?;
            let open = File::open(&log).context("cannot open the log of writes")?;
            match Witness::read(&open)? {
                Some(witness) => break witness.compare(&open, recording, recorded)?,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let Agreement { flushes, before, .. } = witness;
        if let Some((flush, sector)) = witness.differs {
            bail!(
                "dm-log-writes contradicts the recording of the disk at {} of {flushes} flushes, first at flush {flush} in \
                 sector {sector}",
                witness.unequal
            );
        }
        let shown =
            format!("dm-log-writes: the same disk at each of {flushes} flushes, behind {before} before its log");
        self.fact("second witness", &shown);
        Ok(())
    }

    /// What checks the file system, which is not mounted. It must find nothing wrong before a cut:
    /// then what it finds is the cut's.
    fn checkers(&mut self) -> Result<Vec<Argv>> {
        let (driver, spec) = (self.stack.driver.context("a directory cannot be checked")?, self.stack.spec());
        let check = driver.upkeep("check", None).filter(|check| !check.is_mounted);
        let Some(check) = check else {
            self.fact(CHECKER, &format!("none: {} has no program that checks it unmounted", driver.name));
            return Ok(Vec::new());
        };
        let programs = check.programs(&spec);
        for words in &programs {
            self.runner.output(words).context("the file system is damaged although no power was cut")?;
        }
        self.forget_device()?;
        self.fact(CHECKER, &programs.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("; "));
        Ok(programs)
    }

    fn recover<T>(
        &mut self,
        rig: &mut Rig,
        survivors: &mut Survivors,
        image: &Image,
        look: &mut impl FnMut(&mut Self, &Path) -> Result<T>,
    ) -> Result<Recovered<T>> {
        check_stop()?;
        self.deadline.check()?;
        rig.hold(survivors, image)?;
        let recovered = match self.preen().and_then(|took| Ok(took + self.mount_again()?)) {
            Err(error) => {
                // What is below the mount that failed would hold the disk. What is not mounted
                // fails here.
                self.stack.unmount().iter().for_each(|words| drop(self.runner.output(words)));
                Recovered { mounted: Err(format!("{error:#}")), found: None, wrong: None }
            }
            Ok(took) => {
                let found = look(self, &self.stack.root)?;
                self.take_off()?;
                let mut checked = rig.checkers.iter().map(|words| self.runner.output(words));
                let wrong = checked.find_map(Result::err).map(|error| format!("{error:#}"));
                // A checker that was ended has found nothing.
                check_stop()?;
                self.deadline.check()?;
                Recovered { mounted: Ok(took), found: Some(found), wrong }
            }
        };
        self.forget_device()?;
        rig.see_what_recovery_wrote()?;
        Ok(recovered)
    }

    /// What a boot does before it mounts; how long that took.
    fn preen(&mut self) -> Result<Duration> {
        let driver = self.stack.driver.context("a directory cannot be mounted")?;
        let program = Program::new(driver.preen(&self.stack.spec())).may_end_with([0, 1]);
        if program.argv.is_empty() {
            return Ok(Duration::ZERO);
        }
        self.forget_device()?;
        let begun = Instant::now();
        let ran = program.command(&self.runner.marks())?.output();
        let ran = ran.with_context(|| format!("cannot run `{}`", program.shown()))?;
        let said = [ran.stdout, ran.stderr].concat();
        ensure!(program.accepts(ran.status), "`{}` ended with {}: {}", program.shown(), ran.status, last_words(&said));
        Ok(begun.elapsed())
    }

    /// Unmounted wherever it is mounted.
    pub(super) fn take_off(&self) -> Result<()> {
        ensure!(self.stack.driver.is_some(), "a directory cannot be unmounted");
        caches::unmount_all(self.stack, self.runner)
    }

    /// As the kernel finds it on the disk; how long that took.
    pub(super) fn mount_again(&self) -> Result<Duration> {
        ensure!(self.stack.driver.is_some(), "a directory cannot be mounted");
        self.forget_device()?;
        let mounts = self.stack.mount(&self.stack.spec());
        mounts.iter().try_fold(Duration::ZERO, |took, words| Ok(took + self.runner.mount(words)?))
    }
}

impl Rig<'_> {
    fn hold(&mut self, survivors: &mut Survivors, image: &Image) -> Result<()> {
        let disk = File::options().write(true).open(&self.device).context("cannot open the disk")?;
        self.medium.become_image(survivors, image, &self.log, &disk)?;
        disk.sync_all().context("cannot write an image of the disk")?;
        drop(disk);
        // What was written here is known; from now on it is the file system's.
        Recording::go_on(&self.log, self.recording.used, Mode::Places)
    }

    fn see_what_recovery_wrote(&mut self) -> Result<()> {
        // The driver writes it behind the kernel's back.
        block::flush_buffers(&self.log_path).context("cannot flush the buffers of the recording")?;
        for (first, sectors) in Recording::places(&self.log, self.recording.used)? {
            self.medium.written(first, sectors);
        }
        Ok(())
    }
}

/// Every reason why the power of a target's disk cannot be cut, with what to do.
pub(crate) fn objections(target: &Target, is_recorded: bool) -> Vec<String> {
    let driver = target.fs.as_deref().and_then(fs::find);
    let rows = [
        (!is_recorded, "only simulated disks are recorded: use executor = \"sim\"".to_string()),
        (driver.is_none(), "a directory has no simulated disk: name a file system".into()),
        (
            driver
                .and_then(|driver| driver.variant(target.variant.as_deref()))
                .is_some_and(|variant| variant.zoned.is_some()),
            "a disk that was cut cannot be put back where zones are written in order: take another disk and variant"
                .into(),
        ),
        (driver.is_some_and(|driver| driver.volatile), format!("a cut takes all of {}: it is in memory", target.name)),
    ];
    let passes = |name: &str| layer::find(name).is_some_and(|layer| layer.passes);
    let moves = target.layers.iter().find(|chosen| !passes(&chosen.name));
    let moved = moves.map(|chosen| {
        format!("what lies on the layer {} is not what the disk was given: leave it out of `layers`", chosen.name)
    });
    let uncut = driver.and_then(|driver| driver.uncut.map(|why| format!("leave out {}: {why}", driver.name)));
    let rows = rows.into_iter().chain(uncut.map(|why| (true, why)));
    let rows = rows.chain(moved.map(|why| (true, why)));
    rows.filter(|(stands, _)| *stands).map(|(_, why)| why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Chosen;

    #[test]
    fn every_reason_against_cuts_is_given() {
        let layer = |name: &str| Chosen { name: name.into(), ..Chosen::default() };
        let (luks, delay) = (layer("luks"), layer("delay"));
        let target = |fs: Option<&str>, layers: &[&Chosen]| Target {
            fs: fs.map(String::from),
            layers: layers.iter().map(|layer| (*layer).clone()).collect(),
            ..Target::default()
        };
        for (target, is_recorded, wanted) in [
            (target(Some("ext4"), &[]), true, vec![]),
            (target(Some("tmpfs"), &[]), true, vec!["in memory"]),
            (target(Some("ext4"), &[]), false, vec!["executor = \"sim\""]),
            (target(None, &[&delay, &luks]), true, vec!["name a file system", "the layer luks"]),
            (target(Some("ext4"), &[&delay, &layer("noflush")]), true, vec![]),
            (target(Some("jfs"), &[]), true, vec!["leave out jfs"]),
            (Target { variant: Some("zoned".into()), ..target(Some("f2fs"), &[]) }, true, vec!["zones are written in"]),
        ] {
            let found = objections(&target, is_recorded);
            assert_eq!(found.len(), wanted.len(), "{found:?}");
            assert!(found.iter().zip(&wanted).all(|(found, wanted)| found.contains(wanted)), "{found:?} {wanted:?}");
        }
    }
}
