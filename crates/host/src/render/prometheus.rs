//! The textfile format of Prometheus' node exporter
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>): for each target and phase the
//! median time, its interval, the ratio to the reference, and whether it is the pick.

use super::{Format, Options};
use crate::analysis::{Model, Panel, Race, Row, Times, WorkReport};
use pickfs_stats::Estimate;
use std::io::{self, Write};

pub(crate) const PROMETHEUS: Format = Format {
    name: "prometheus",
    about: "times, ratios and the pick as a textfile for Prometheus' node exporter",
    run: Some(write),
    ..Format::NONE
};

/// A metric with its help; every sample of it must follow.
type Family<'m> = (&'static str, &'static str, Vec<Sample<'m>>);
type Sample<'m> = (Vec<(&'static str, &'m str)>, f64);

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    for (name, help, samples) in families(model).iter().filter(|(_, _, samples)| !samples.is_empty()) {
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge")?;
        for (labels, value) in samples.iter().filter(|(_, value)| value.is_finite()) {
            let labels: Vec<String> = labels.iter().map(|(key, text)| format!("{key}=\"{}\"", escaped(text))).collect();
            writeln!(out, "{name}{{{}}} {value}", labels.join(","))?;
        }
    }
    Ok(())
}

fn families(model: &Model) -> Vec<Family<'_>> {
    let info = vec![("run", model.run.as_str()), ("version", &model.pickfs), ("title", &model.title)];
    let ratios = |figure: fn(&Estimate) -> Option<f64>| -> Vec<Sample> {
        model.reports().flat_map(|work| ratios_of(model, work, figure)).collect()
    };
    let times = |figure: fn(&Times) -> Option<f64>| -> Vec<Sample> {
        model.raw.times.iter().filter_map(|times| Some((of_times(model, times), figure(times)? / 1e9))).collect()
    };
    let bounds = |value: fn(&Race, usize) -> f64| model.reports().flat_map(|work| races(model, work, value)).collect();
    vec![
        ("pickfs_run_info", "The run, and the version of pickfs that measured.", vec![(info, 1.0)]),
        ("pickfs_time_seconds", "Median time over all rounds.", times(|times| Some(times.median))),
        ("pickfs_time_low_seconds", "Lower end of the 95 % interval of the median.", times(|t| Some(t.interval?.0))),
        ("pickfs_time_high_seconds", "Upper end of the 95 % interval of the median.", times(|t| Some(t.interval?.1))),
        ("pickfs_rounds", "Rounds that the median is made of.", rounds(model)),
        (
            "pickfs_ratio",
            "The figure divided by that of the reference, paired by rounds.",
            ratios(|found| Some(found.ratio)),
        ),
        ("pickfs_ratio_low", "Lower end of the 95 % interval of the ratio.", ratios(|found| Some(found.interval?.0))),
        ("pickfs_ratio_high", "Upper end of the 95 % interval of the ratio.", ratios(|found| Some(found.interval?.1))),
        ("pickfs_pick", "1 for the target to pick, 0 for the others.", bounds(|race, at| f64::from(race.pick == at))),
        (
            "pickfs_at_most_slower",
            "By which share a target is slower than the best at most, with 95 % confidence.",
            bounds(|race, at| race.regret[at]),
        ),
    ]
}

fn of_times<'m>(model: &'m Model, times: &'m Times) -> Vec<(&'static str, &'m str)> {
    vec![("target", model.targets[times.target].name.as_str()), ("work", &times.work), ("phase", &times.phase)]
}

fn rounds(model: &Model) -> Vec<Sample<'_>> {
    model.raw.times.iter().map(|times| (of_times(model, times), times.rounds.len() as f64)).collect()
}

fn ratios_of<'m>(model: &'m Model, work: &'m WorkReport, figure: fn(&Estimate) -> Option<f64>) -> Vec<Sample<'m>> {
    let sample = |panel: &'m Panel, row: &'m Row| {
        let found = row.against.as_ref()?;
        let name = model.targets[row.target].name.as_str();
        let labels =
            vec![("target", name), ("work", &work.name), ("phase", &panel.name), ("reference", &found.reference)];
        Some((labels, figure(&found.estimate)?))
    };
    work.phases.iter().flat_map(|panel| panel.rows.iter().filter_map(move |row| sample(panel, row))).collect()
}

fn races<'m>(model: &'m Model, work: &'m WorkReport, value: fn(&Race, usize) -> f64) -> Vec<Sample<'m>> {
    let race = work.phases.first().and_then(|panel| panel.race.as_ref());
    let sample = |race: &Race, at: usize| {
        (vec![("target", model.targets[at].name.as_str()), ("work", &work.name)], value(race, at))
    };
    race.into_iter().flat_map(|race| work.ranked.iter().map(|at| sample(race, *at)).collect::<Vec<_>>()).collect()
}

/// As a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stays_a_label() {
        assert_eq!(escaped("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }
}
