//! The times of many runs as series, over kernel releases or over days, with the changes in them.

use super::machines::signed;
use super::ranking::Choice;
use crate::analysis::{Level, shifts};
use pickfs_system::units::show_duration;
use std::collections::{BTreeMap, BTreeSet};

/// One work of one run in a store.
#[derive(Clone, Debug)]
pub struct StoredRun {
    pub hash: String,
    /// RFC 3339.
    pub started: String,
    pub machine: String,
    pub kernel: String,
    /// What its audit came to: "By the rules".
    pub grade: String,
    pub choice: Choice,
}

/// A target's time for one work on one disk and machine, in at least two runs.
#[derive(Debug)]
pub(crate) struct Trend<'a> {
    pub disk: &'a str,
    pub work: &'a str,
    pub target: &'a str,
    /// Empty where it is simulated: any machine gives the same.
    pub machine: &'a str,
    /// "kernel" or "day".
    pub over: &'static str,
    pub points: Vec<TrendPoint<'a>>,
    pub changes: Vec<TrendChange>,
}

#[derive(Debug)]
pub(crate) struct TrendPoint<'a> {
    pub run: &'a StoredRun,
    /// The release, or the day.
    pub label: String,
    pub ns: f64,
    pub time: String,
    /// "±1.2 %": one standard error of the run's rounds.
    pub error: String,
    /// The whole kernel, or the minute.
    pub exactly: String,
}

#[derive(Debug)]
pub(crate) struct TrendChange {
    /// The first point after it.
    pub at: usize,
    /// "+12 % (8 to 16 %) from 6.12.117 on".
    pub words: String,
    /// More time.
    pub is_slower: bool,
    /// As a natural logarithm.
    pub size: f64,
}

/// How the marks come about, for readers.
pub(crate) const METHOD: &str = "A change is marked where the mean time after it differs from the one before by more than 1 %, beyond what \
                          the rounds' scatter explains (likelihood ratio, Hawkins 1977, at a chance of 1 in 100 for a series \
                          without a change; all cuts counted; parts searched alike, Vostrikova 1981). Times of real machines are \
                          also taken to differ by 3 % from run to run, or by more where eight runs show more. Times are \
                          geometric means of the rounds. With a release of Debian come its tools: what changed is the kernel or \
                          the tools.";

/// Trends over all runs; the longest series are of the targets that ran most.
pub(crate) fn trends(runs: &[StoredRun]) -> Vec<Trend<'_>> {
    type Key<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);
    let mut series: BTreeMap<Key, Vec<(&StoredRun, &Level)>> = BTreeMap::new();
    for run in runs {
        for level in &run.choice.levels {
            let machine = if level.simulated { "" } else { run.machine.as_str() };
            let key = (
                run.choice.disk.as_str(),
                run.choice.work.as_str(),
                level.target.as_str(),
                machine,
                level.alike.as_str(),
            );
            series.entry(key).or_default().push((run, level));
        }
    }
    let several = series.into_iter().filter(|(_, members)| members.len() > 1);
    several.map(|((disk, work, target, machine, _), members)| trend((disk, work, target, machine), members)).collect()
}

fn trend<'a>(
    (disk, work, target, machine): (&'a str, &'a str, &'a str, &'a str),
    mut members: Vec<(&'a StoredRun, &'a Level)>,
) -> Trend<'a> {
    let kernels: BTreeSet<&str> = members.iter().map(|(run, _)| run.kernel.as_str()).collect();
    let by_kernel = kernels.len() > 1 && !kernels.contains("");
    members.sort_by(|(a, _), (b, _)| {
        let versions = if by_kernel { version(&a.kernel).cmp(&version(&b.kernel)) } else { std::cmp::Ordering::Equal };
        versions.then(a.started.cmp(&b.started)).then(a.hash.cmp(&b.hash))
    });
    let points: Vec<TrendPoint> = members.iter().map(|(run, level)| point(run, level, by_kernel)).collect();
    let levels: Vec<&Level> = members.iter().map(|(_, level)| *level).collect();
    let change = |shift: pickfs_stats::LevelShift| TrendChange {
        at: shift.at,
        words: format!(
            "{} ({} to {}) from {} on",
            signed(shift.size),
            signed(shift.interval.0),
            signed(shift.interval.1),
            points[shift.at].label
        ),
        is_slower: shift.size > 0.0,
        size: shift.size,
    };
    let changes = shifts(&levels).into_iter().map(change).collect();
    let over = if by_kernel { "kernel" } else { "day" };
    Trend { disk, work, target, machine, over, points, changes }
}

fn point<'a>(run: &'a StoredRun, level: &Level, by_kernel: bool) -> TrendPoint<'a> {
    let minute = run.started.get(..16).unwrap_or_default().replace('T', " ");
    let (label, exactly) = if by_kernel {
        (release(&run.kernel).to_string(), run.kernel.clone())
    } else {
        (run.started.get(..10).unwrap_or_default().to_string(), minute)
    };
    let error = super::text::percent((level.deviation / (level.rounds.max(1) as f64).sqrt()).exp_m1());
    TrendPoint { run, label, ns: level.ns, time: show_duration(level.ns), error: format!("±{error}"), exactly }
}

/// "6.12.117" of "6.12.117+deb13-amd64".
fn release(kernel: &str) -> &str {
    let end = kernel.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(kernel.len());
    if end == 0 { kernel } else { &kernel[..end] }
}

/// Its numbers, in their order.
fn version(kernel: &str) -> Vec<u64> {
    let numbers = kernel.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.map(|part| part.parse().unwrap_or(u64::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kernel: &str, day: u32, seconds: f64, simulated: bool) -> StoredRun {
        let level = Level {
            target: "ext4".into(),
            ns: seconds * 1e9,
            deviation: 0.01,
            rounds: 5,
            alike: "a".into(),
            simulated,
        };
        let choice = Choice { disk: "nvme".into(), work: "tree".into(), levels: vec![level], ..Choice::default() };
        let started = format!("2026-01-{day:02}T03:04:05Z");
        StoredRun {
            hash: format!("{day}"),
            started,
            machine: "rack-1".into(),
            kernel: kernel.into(),
            grade: "Open".into(),
            choice,
        }
    }

    #[test]
    fn kernels_are_in_the_order_of_their_numbers() {
        let runs = [
            run("6.12.117+deb13-amd64", 1, 2.0, true),
            run("5.10.0-46-amd64", 2, 1.0, true),
            run("6.1.0-56-amd64", 3, 1.0, true),
        ];
        let found = &trends(&runs)[0];
        let labels: Vec<&str> = found.points.iter().map(|point| point.label.as_str()).collect();
        assert_eq!((found.over, labels), ("kernel", vec!["5.10.0", "6.1.0", "6.12.117"]));
        let change = &found.changes[..];
        assert!(change.len() == 1 && change[0].at == 2 && change[0].is_slower, "{change:?}");
        assert!(
            change[0].words.starts_with("+100 % (+") && change[0].words.ends_with(" from 6.12.117 on"),
            "{change:?}"
        );
    }

    #[test]
    fn days_of_real_machines_differ() {
        let pair = |seconds: f64| [run("6.1", 1, 1.0, false), run("6.1", 2, seconds, false)];
        let near = pair(1.08);
        let found = trends(&near);
        assert_eq!(
            (found[0].over, found[0].changes.len(), found[0].points[1].label.as_str()),
            ("day", 0, "2026-01-02")
        );
        assert_eq!(trends(&pair(1.5))[0].changes.len(), 1);
        let mut other = pair(1.5);
        other[1].choice.levels[0].alike = "b".into();
        assert_eq!(trends(&other).len(), 0, "another plan is no series");
        let mut elsewhere = pair(1.5);
        elsewhere[1].machine = "rack-2".into();
        assert_eq!(trends(&elsewhere).len(), 0, "nor is another machine");
    }
}
