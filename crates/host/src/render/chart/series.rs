//! The charts that have two axes: rounds in order, latencies, device rates, and criteria against
//! each other. The page shows them where they belong, and each can stand alone as a picture.

use super::axis::ratio_label;
use super::painter::{BOTTOM, Font, LEFT, Painter, RIGHT, TOP, series_class};
use super::scale::{Kind, Scale};
use super::{Sheet, shapes};
use crate::analysis::{self, Criteria, DeviceRates, LatencyCurves, Panel, RateStep, Series, WorkReport};
use pickfs_stats::Estimate;
use pickfs_system::units::Unit;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 260.0;

/// A picture with its words.
pub(crate) struct Chart {
    /// For a file's name: letters, digits and hyphens.
    pub name: String,
    pub title: String,
    /// What the axes are and how to read it, for the caption and for readers who cannot see it.
    pub about: String,
    /// Whose phase; empty for all.
    pub phase: String,
    pub plot: Painter,
    /// Targets in it, by place among the shown ones.
    pub places: Vec<usize>,
}

fn plot() -> (Painter, f64, f64) {
    let plot = Painter::new(WIDTH, HEIGHT);
    let (right, bottom) = (plot.width - RIGHT, plot.height - BOTTOM);
    (plot, right, bottom)
}

pub(crate) fn labelled(scale: &Scale, most: usize, unit: Unit) -> Vec<(f64, String)> {
    let shown = |value: f64| if value == 0.0 { "0".to_string() } else { unit.show(value) };
    scale.ticks(most, unit).into_iter().map(|value| (value, shown(value))).collect()
}

/// Every phase of a work.
pub(crate) fn rounds(sheet: &Sheet, work: &WorkReport) -> Vec<Chart> {
    let more_than_one = |panel: &&Panel| panel.rows.iter().any(|row| row.series.points.len() > 1);
    work.phases.iter().filter(more_than_one).map(|panel| in_order(sheet, work, panel)).collect()
}

fn in_order(sheet: &Sheet, work: &WorkReport, panel: &Panel) -> Chart {
    let (mut plot, right, bottom) = plot();
    let points = || panel.rows.iter().flat_map(|row| &row.series.points);
    let rounds = points().flat_map(|point| [f64::from(point.first), f64::from(point.last)]);
    let x = Scale::over(Kind::Linear, rounds, LEFT, right).with_air(0.03);
    let y = Scale::over(Kind::Linear, points().flat_map(|p| [p.low, p.high]), bottom, TOP).with_air(0.05);
    let whole = x.ticks(7, Unit::Count).into_iter().filter(|round| round.fract() == 0.0);
    let (each, times) = if work.is_foreign { ("run", "Every run") } else { ("round", "Time of every round") };
    plot.x_axis(&x, &whole.map(|round| (round, format!("{round}"))).collect::<Vec<_>>(), each);
    plot.y_axis(&y, &labelled(&y, 5, panel.unit));
    let mut places = Vec::new();
    for row in panel.rows.iter().filter(|row| !row.series.points.is_empty()) {
        let place = sheet.place(row.target);
        places.push(place);
        plot.open_series(row.target, place);
        let name = sheet.name_at(place);
        let value =
            |point: &analysis::Point| format!("{name}, {}: {}", place_of(point, each), panel.unit.show(point.median));
        one_series(&mut plot, &row.series, (&x, &y), (place, &value));
        plot.close_series();
    }
    let thinned = panel.rows.iter().map(|row| row.series.thinned()).find(|thinned| !thinned.is_empty());
    let note = thinned.map_or(String::new(), |thinned| format!("; {thinned}"));
    Chart {
        name: shapes::file_name(&["rounds", &work.name, &panel.name]),
        title: panel.name.clone(),
        about: format!("{times} in the order they were done{note}."),
        phase: panel.phase.clone(),
        plot,
        places,
    }
}

/// "round 4", "rounds 4 to 8".
fn place_of(point: &analysis::Point, each: &str) -> String {
    let analysis::Point { first, last, .. } = point;
    if first == last { format!("{each} {first}") } else { format!("{each}s {first} to {last}") }
}

/// A target's place, and the tooltip of each of its points.
type Pointed<'a> = (usize, &'a dyn Fn(&analysis::Point) -> String);

fn one_series(plot: &mut Painter, series: &Series, (x, y): (&Scale, &Scale), (place, value): Pointed) {
    let middle = |first: u32, last: u32| (f64::from(first) + f64::from(last)) / 2.0;
    let at: Vec<(f64, f64)> =
        series.points.iter().map(|point| (x.at(middle(point.first, point.last)), y.at(point.median))).collect();
    plot.line(&at, "l thin");
    let ranges: Vec<String> = series
        .points
        .iter()
        .zip(&at)
        .filter(|(point, _)| point.high > point.low)
        .map(|(point, (x, _))| format!("M{x:.1} {:.1}V{:.1}", y.at(point.low), y.at(point.high)))
        .collect();
    if !ranges.is_empty() {
        plot.put(format_args!("<path class=\"l thin solid\" d=\"{}\"/>", ranges.concat()));
    }
    at.iter().zip(&series.points).for_each(|(at, point)| plot.marker_of(*at, place, &value(point)));
}

pub(crate) fn latencies(sheet: &Sheet, work: &WorkReport) -> Vec<Chart> {
    work.latencies.iter().map(|kind| latency(sheet, work, kind)).collect()
}

fn latency(sheet: &Sheet, work: &WorkReport, kind: &LatencyCurves) -> Chart {
    let (mut plot, right, bottom) = plot();
    let points = || kind.curves.iter().flat_map(|curve| &curve.points);
    let x = Scale::over(Kind::Logarithmic, points().map(|(ns, _)| *ns), LEFT, right).with_air(0.02);
    let y = Scale::over(Kind::Nines, points().map(|(_, share)| *share).chain([0.9]), bottom, TOP);
    plot.x_axis(&x, &labelled(&x, 6, Unit::Nanoseconds), "an operation took at most (logarithmic)");
    let shares = y.ticks(9, Unit::Share);
    plot.y_axis(&y, &shares.iter().map(|share| (*share, share_label(*share))).collect::<Vec<_>>());
    for curve in &kind.curves {
        let place = sheet.place(curve.target);
        let at: Vec<(f64, f64)> = curve.points.iter().map(|(ns, share)| (x.at(*ns), y.at(*share))).collect();
        plot.open_series(curve.target, place);
        plot.line(&at, "l");
        let name = sheet.name_at(place);
        let last = at.last().zip(curve.points.last());
        for (at, (ns, share)) in at.iter().zip(&curve.points).step_by((at.len() / 4).max(1)).chain(last) {
            let value = format!("{name}: {} within {}", share_label(*share), Unit::Nanoseconds.show(*ns));
            plot.marker_of(*at, place, &value);
        }
        plot.close_series();
    }
    let unreadable: usize = kind.curves.iter().map(|curve| curve.unreadable).sum();
    let lacking = if unreadable > 0 { format!(" {unreadable} histograms cannot be read.") } else { String::new() };
    let title = [kind.phase.as_str(), kind.operation.as_str()].into_iter().filter(|word| !word.is_empty());
    let title = title.collect::<Vec<_>>().join(", ");
    Chart {
        name: shapes::file_name(&["latency", &work.name, &title]),
        about: format!(
            "Share of all operations of all rounds that took no longer; further left is faster, and the scale upwards \
             spreads the slowest.{lacking}"
        ),
        title,
        phase: kind.phase.clone(),
        plot,
        places: kind.curves.iter().map(|curve| sheet.place(curve.target)).collect(),
    }
}

/// "0 %", "90 %", "99.9 %".
fn share_label(share: f64) -> String {
    let text = format!("{:.7}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Written and read are separate pictures; what is nought all the time has none.
pub(crate) fn rates(sheet: &Sheet, work: &WorkReport) -> Vec<Chart> {
    type Rate = fn(&RateStep) -> f64;
    let kinds: [(&str, Rate); 2] = [("written", |step| step.write), ("read", |step| step.read)];
    let of = |rates: &DeviceRates, word: &str, rate: Rate| {
        let any = rates.curves.iter().flat_map(|curve| &curve.steps).any(|step| rate(step) > 0.0);
        any.then(|| device_rate(sheet, work, rates, word, rate))
    };
    work.rates
        .iter()
        .flat_map(|rates| kinds.into_iter().filter_map(move |(word, rate)| of(rates, word, rate)))
        .collect()
}

fn device_rate(
    sheet: &Sheet,
    work: &WorkReport,
    rates: &DeviceRates,
    word: &str,
    rate: impl Fn(&RateStep) -> f64,
) -> Chart {
    let (mut plot, right, bottom) = plot();
    let steps = || rates.curves.iter().flat_map(|curve| &curve.steps);
    let x = Scale::over(Kind::Linear, steps().map(|step| step.until_ns).chain([0.0]), LEFT, right);
    let y = Scale::over(Kind::Linear, steps().map(&rate).chain([0.0]), bottom, TOP);
    plot.x_axis(&x, &labelled(&x, 5, Unit::Nanoseconds), "since the phase began");
    plot.y_axis(&y, &labelled(&y, 5, Unit::BytesPerSecond));
    for curve in &rates.curves {
        let place = sheet.place(curve.target);
        let ends = |step: &RateStep| [(x.at(step.from_ns), y.at(rate(step))), (x.at(step.until_ns), y.at(rate(step)))];
        let at: Vec<(f64, f64)> = curve.steps.iter().flat_map(ends).collect();
        plot.open_series(curve.target, place);
        plot.line(&at, "l");
        at.last().into_iter().for_each(|at| plot.marker(*at, place));
        plot.close_series();
    }
    Chart {
        name: shapes::file_name(&["device", &work.name, &rates.phase, word]),
        title: format!("{}, {word}", rates.phase),
        about: "Bytes a second on the device, of each target in the round whose time is in the middle; the marker is \
                its end."
            .to_string(),
        phase: rates.phase.clone(),
        plot,
        places: rates.curves.iter().map(|curve| sheet.place(curve.target)).collect(),
    }
}

/// Each criterion against the first one, relative to the row at `reference`.
pub(crate) fn criteria(sheet: &Sheet, criteria: &Criteria, reference: usize) -> Vec<Chart> {
    (1..criteria.names.len()).map(|other| against_time(sheet, criteria, reference, other)).collect()
}

/// A target's point, with the intervals of both ratios.
type Point = ((f64, f64), (f64, f64), (f64, f64));

fn against_time(sheet: &Sheet, criteria: &Criteria, reference: usize, other: usize) -> Chart {
    let (mut plot, right, bottom) = plot();
    let point = |row: usize| point(criteria, row, reference, other);
    let found: Vec<(usize, Point)> = (0..criteria.rows.len()).filter_map(|row| Some((row, point(row)?))).collect();
    let x = Scale::over(Kind::Logarithmic, found.iter().flat_map(|(_, (at, x, _))| [at.0, x.0, x.1]), LEFT, right);
    let y = Scale::over(Kind::Logarithmic, found.iter().flat_map(|(_, (at, _, y))| [at.1, y.0, y.1]), bottom, TOP);
    let (x, y) = (x.with_air(0.08), y.with_air(0.08));
    let (first, name) = (&criteria.names[0], &criteria.names[other]);
    plot.x_axis(&x, &ratio_ticks(&x, 4), &format!("{first}, relative to the reference"));
    plot.y_axis(&y, &ratio_ticks(&y, 4));
    plot.put(format_args!(
        "<path class=\"one\" d=\"M{:.1} {TOP}V{bottom}M{LEFT} {:.1}H{right}\"/>\n",
        x.at(1.0),
        y.at(1.0)
    ));
    for (row, ((px, py), (x0, x1), (y0, y1))) in &found {
        let row = &criteria.rows[*row];
        let place = sheet.place(row.target);
        let (cx, cy) = (x.at(*px), y.at(*py));
        plot.open_series(row.target, place);
        let cross = format!("M{:.1} {cy:.1}H{:.1}M{cx:.1} {:.1}V{:.1}", x.at(*x0), x.at(*x1), y.at(*y0), y.at(*y1));
        plot.put(format_args!("<path class=\"l thin solid\" d=\"{cross}\"/>"));
        if row.on_front {
            plot.put(format_args!("<circle class=\"ring\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"9\"/>"));
        }
        plot.marker((cx, cy), place);
        plot.close_series();
    }
    Chart {
        name: shapes::file_name(&["trade-offs", name]),
        title: format!("{first} and {name}"),
        about: format!(
            "Ratios of {first} (across) and {name} (up) to the reference, with their intervals; further left and down is \
             better, and no other target is better in all of them than one with a ring."
        ),
        phase: String::new(),
        plot,
        places: found.iter().map(|(row, _)| sheet.place(criteria.rows[*row].target)).collect(),
    }
}

fn point(criteria: &Criteria, row: usize, reference: usize, other: usize) -> Option<Point> {
    let place = |criterion: usize| {
        let found = &criteria.rows[row].others[reference][criterion];
        let spread =
            |estimate: &Estimate| (estimate.ratio, estimate.interval.unwrap_or((estimate.ratio, estimate.ratio)));
        if row == reference { Some((1.0, (1.0, 1.0))) } else { found.as_ref().map(spread) }
    };
    let ((x, across), (y, up)) = (place(0)?, place(other)?);
    Some(((x, y), across, up))
}

fn ratio_ticks(scale: &Scale, most: usize) -> Vec<(f64, String)> {
    const FINE: [f64; 17] = [0.25, 0.33, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0];
    let inside = |ratio: &f64| scale.at(*ratio) != scale.at(0.0) && scale.at(*ratio) != scale.at(1e300);
    let fine: Vec<f64> = FINE.into_iter().filter(inside).collect();
    let chosen = if fine.len() >= 2 { fine } else { scale.ticks(most, Unit::Count) };
    let chosen = shapes::apart(chosen, |ratio| scale.at(ratio), 34.0);
    chosen.into_iter().map(|ratio| (ratio, ratio_label(ratio))).collect()
}

impl Chart {
    /// A separate picture, with its title above and the legend of targets below.
    pub(crate) fn alone(self, sheet: &Sheet) -> String {
        const HEAD: f64 = 28.0;
        let mut picture = Painter::new(self.plot.width, 0.0);
        picture.text((10.0, -8.0), &Font::new(14.0, "ink bold"), &self.title);
        picture.body += &self.plot.body;
        let (mut x, mut y) = (16.0, self.plot.height + 14.0);
        for &place in &self.places {
            let name = sheet.name_at(place);
            let room = 24.0 + 6.4 * name.chars().count() as f64;
            if x > 16.0 && x + room > picture.width {
                (x, y) = (16.0, y + 18.0);
            }
            picture.put(format_args!("<g class=\"{}\">", series_class(place)));
            picture.marker((x, y), place);
            picture.put(format_args!("</g>"));
            picture.text((x + 10.0, y + 3.5), &Font::new(11.0, ""), name);
            x += room;
        }
        picture.height = y + HEAD + 10.0;
        picture.alone(-HEAD, &self.title, &self.about)
    }
}
