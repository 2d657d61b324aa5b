//! How long a mount and a check take, the more files there are and the fuller the disk is.

use super::content::{Files, Pool, files_until_durable};
use super::room::Room;
use super::settings::{Counts, Flag, Size, settings};
use super::{Description, Workload, described};
use crate::stage::Stage;
use crate::stage::phase::*;
use anyhow::{Context, Result};
use pickfs_core::plan::{Objection, Settings};

pub(crate) struct Mount;

settings! {
    Steps {
        files: Counts = "[1000, 10000]", "mounted with this many small files; each number is a step";
        size: Size = "4KiB", "of each small file";
        full: Counts = "[50, 90]",
            "then mounted with this percentage of the room for files in use, by files of 1 MiB added to the small ones";
        check: Flag = "true", "at each step it is also checked without repair";
    }
}

const MOUNT: &str = "mount";
const CHECK: &str = "check";
const LARGE: usize = 1 << 20;
/// Bytes of each class of content.
const OF_EACH_CLASS: usize = 4 << 20;
/// A full one is what `maintenance` is for; there may be no room for what a mount writes.
const FULLEST: u64 = 95;

impl Workload for Mount {
    fn description(&self) -> &'static Description {
        described!("mount.toml", Steps::ROWS)
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let steps = Steps::of(settings);
        let phase = |step: Step, what: &str| {
            let about = match what {
                CHECK => "checked without repair while unmounted, cold; mounted again, untimed",
                _ => "mounted, cold",
            };
            Phase { name: step.phase(what).into(), ..Phase::new("", about, Unmounted, AnyRead, Returned) }
        };
        let at = |step: Step| steps.operations().into_iter().map(move |what| phase(step, what));
        steps.all().into_iter().flat_map(at).collect()
    }

    fn upkeep(&self, settings: &Settings) -> Vec<&'static str> {
        Steps::of(settings).operations()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let steps = Steps::of(settings);
        let mut wrong = Vec::new();
        if steps.all().is_empty() {
            wrong.push(Objection::new(
                "files",
                "there is no step: `files` and `full` are empty".into(),
                "name a number in one",
            ));
        }
        if let Some(percent) = steps.full.iter().find(|percent| !(1..=FULLEST).contains(*percent)) {
            let message = format!("{percent} percent is no fullness to mount at");
            wrong.push(Objection::new("full", message, &format!("use 1 to {FULLEST}")));
        }
        if steps.size == 0 || steps.size > LARGE as u64 {
            wrong.push(Objection::new(
                "size",
                "a small file has 1 byte to 1 MiB".into(),
                "name a size such as \"4KiB\"",
            ));
        }
        wrong
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let steps = Steps::of(settings);
        Some(steps.files.iter().max().copied().unwrap_or(0) * steps.size)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let steps = Steps::of(settings);
        let pool = stage.check("making content", || Ok(Pool::new(5, OF_EACH_CLASS)))?;
        let (size, root) = (steps.size as usize, stage.root());
        let mut small = Files { folder: root.join("small"), size, count: 0, pool: &pool };
        let mut large = Files { folder: root.join("large"), size: LARGE, count: 0, pool: &pool };
        let empty = Room::at(&root)?.free;
        for step in steps.all() {
            let missing = |small: &Files| match step {
                Step::Files(files) => Ok(files.saturating_sub(small.count)),
                Step::Full(percent) => {
                    Room::at(&root).map(|room| files_until_durable(room.free, empty / 100 * (100 - percent), LARGE))
                }
            };
            stage.lay_out("writing files for the next step", |stage| {
                while let count @ 1.. = missing(&small)? {
                    let files = if matches!(step, Step::Files(_)) { &mut small } else { &mut large };
                    let limits = stage.limits();
                    (0..count)
                        .try_for_each(|_| limits().and_then(|()| files.write_next().context("writing a file")))?;
                    stage.make_durable()?;
                }
                Ok(())
            })?;
            for what in steps.operations() {
                for _ in stage.repeats() {
                    let phase = step.phase(what);
                    match what {
                        CHECK => stage.upkeep_unmounted(&phase, CHECK)?,
                        _ => stage.mount(&phase)?,
                    }
                }
            }
        }
        stage.check("reading back what is there", || {
            [small, large].iter().try_for_each(|files| files.verify(0..files.count))
        })
    }
}

/// What is reached before it is mounted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// That number of small files.
    Files(u64),
    /// That percentage of the room in use.
    Full(u64),
}

impl Step {
    fn phase(self, what: &str) -> String {
        match self {
            Step::Files(files) => format!("{what}-{files}-files"),
            Step::Full(percent) => format!("{what}-{percent}-percent"),
        }
    }
}

impl Steps {
    /// Files first, each kind rising, none twice.
    fn all(&self) -> Vec<Step> {
        let rising = |numbers: &[u64]| {
            let mut numbers = numbers.to_vec();
            numbers.sort();
            numbers.dedup();
            numbers
        };
        let files = rising(&self.files).into_iter().map(Step::Files);
        files.chain(rising(&self.full).into_iter().map(Step::Full)).collect()
    }

    fn operations(&self) -> Vec<&'static str> {
        if self.check { vec![MOUNT, CHECK] } else { vec![MOUNT] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(rows: &[(&str, Value)]) -> Settings {
        Settings(rows.iter().map(|(name, value)| (name.to_string(), value.clone())).collect())
    }

    #[test]
    fn steps_rise_and_each_is_a_mount_and_a_check() {
        let names = |rows: &[(&str, Value)]| -> Vec<String> {
            Mount.phases(&settings(rows)).iter().map(|phase| phase.name.to_string()).collect()
        };
        let rows = [("files", json!([300, 20, 300])), ("full", json!([70]))];
        let all = [
            "mount-20-files", "check-20-files", "mount-300-files", "check-300-files", "mount-70-percent",
            "check-70-percent",
        ];
        assert_eq!(names(&rows), all);
        assert_eq!(names(&[("files", json!([5])), ("full", json!([])), ("check", json!(false))]), ["mount-5-files"]);
        assert_eq!(names(&[]).len(), 8);
    }

    #[test]
    fn what_is_no_step_is_refused() {
        for (rows, wrong) in [
            (vec![], 0),
            (vec![("files", json!([])), ("full", json!([]))], 1),
            (vec![("full", json!([0]))], 1),
            (vec![("full", json!([96]))], 1),
            (vec![("full", json!([95]))], 0),
            (vec![("size", json!(0))], 1),
            (vec![("size", json!(2 << 20)), ("full", json!([100]))], 2),
        ] {
            assert_eq!(Mount.objections(&settings(&rows)).len(), wrong, "{rows:?}");
        }
    }
}
