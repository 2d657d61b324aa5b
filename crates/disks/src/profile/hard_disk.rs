//! The parameters of a hard disk, from what a round has measured.

use super::super::parameters::{Disk, significant};
use super::figures::{Parameter, Round, median, parameter};
use anyhow::Result;

/// Lengths of tracks at the outer and the inner edge, in any unit. Between them they fall evenly
/// with the radius.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lengths {
    outer: f64,
    inner: f64,
}

impl Lengths {
    /// From shares of the sectors and speeds there. Tracks that fall evenly with the radius have
    /// squares that fall evenly with the sectors.
    pub(crate) fn of(speeds: &[(f64, f64)]) -> Lengths {
        let count = speeds.len() as f64;
        let squares = || speeds.iter().map(|(share, speed)| (*share, speed * speed));
        let mean = squares().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / count, sum.1 + y / count));
        let (products, spread) = squares()
            .fold((0.0, 0.0), |sum, (x, y)| (sum.0 + (x - mean.0) * (y - mean.1), sum.1 + (x - mean.0).powi(2)));
        let slope = (products / spread).min(0.0);
        let at = |share: f64| (mean.1 + slope * (share - mean.0)).max(1.0).sqrt();
        Lengths { outer: at(0.0), inner: at(1.0) }
    }

    /// The share of the sectors before a cylinder, which is a share of the stroke.
    pub(crate) fn sectors_before(self, cylinder: f64) -> f64 {
        let Lengths { outer, inner } = self;
        (outer * cylinder - (outer - inner) * cylinder * cylinder / 2.0) / ((outer + inner) / 2.0)
    }
}

/// The parameters that a round measures; `base` has the others.
pub(crate) fn parameters(round: &Round, base: &Disk) -> Result<Vec<Parameter>> {
    let given = |name: &str| base.number(name);
    let backwards = round.backwards.unwrap_or(f64::NAN);
    let beginning = round.sequential.first().map_or(f64::NAN, |(_, speed)| *speed);
    let mut found = Vec::new();
    // The next read ends one turn later, less the 4 KiB between both ends. Much sooner: it was in
    // the disk's cache.
    let turn = backwards + 4096.0 / beginning * 1e9;
    let is_turn = turn > 3e6;
    let turn = if is_turn { turn } else { given("turn_us")? * 1e3 };
    if is_turn {
        found.push(parameter("turn_us", turn / 1e3));
    }
    let heads = given("heads")?;
    let skew = ((heads - 1.0) * given("head_skew_us")? + given("cylinder_skew_us")?) / heads * 1e3;
    let Lengths { outer, inner } = Lengths::of(&round.sequential);
    let sectors = |speed: f64| speed * (turn + skew) / 1e9 / 512.0;
    // The first zone is half a zone away from the edge.
    let half = (outer - inner) / given("zones")? / 2.0;
    found.push(parameter("outer_sectors", sectors(outer - half).round()));
    found.push(parameter("inner_sectors", sectors(inner + half).round()));
    let command = round.same_place - 4096.0 / (given("link_mb_s")? * 1e6) * 1e9;
    let is_cached = command > 0.0 && command < turn / 4.0;
    let command = if is_cached { command } else { given("command_us")? * 1e3 };
    if is_cached {
        found.push(parameter("command_us", command / 1e3));
    }
    let transfer = 4096.0 / ((outer + inner) / 2.0) * 1e9;
    found.extend(seeks(round, turn, command + transfer));
    found.extend(writes(round, turn, command));
    Ok(found)
}

/// The shortest of n reads had an n-th of a turn to wait, on average.
fn seeks(round: &Round, turn: f64, rest: f64) -> Vec<Parameter> {
    let points: Vec<(f64, f64)> = round
        .seeks
        .iter()
        .map(|(share, count, shortest)| (*share, (shortest - turn / (*count as f64 + 1.0) - rest).max(0.0) / 1e3))
        .collect();
    let boundaries = (5..80).map(|percent| f64::from(percent) / 100.0);
    let curves = boundaries.filter_map(|boundary| Curve::fitted(&points, boundary));
    let best = curves.min_by(|a, b| a.squares(&points).total_cmp(&b.squares(&points)));
    let Some(curve) = best else { return Vec::new() };
    let Curve { short, root, boundary, slope } = curve;
    let [short, root, slope] = [short, root, slope].map(|value| significant(value, 6));
    // Up to the next tenth: the curve must not fall at its boundary by what is rounded.
    let line = ((short + root * boundary.sqrt() - slope * boundary) * 10.0).ceil() / 10.0;
    let names = [("seek_short_us", short), ("seek_root_us", root), ("seek_boundary", boundary)];
    let rest = [("seek_line_us", line), ("seek_slope_us", slope)];
    names.into_iter().chain(rest).map(|(name, value)| parameter(name, value)).collect()
}

/// A root of the distance, then a line that continues it (Ruemmler and Wilkes 1994); microseconds,
/// shares of the stroke.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    short: f64,
    root: f64,
    boundary: f64,
    slope: f64,
}

impl Curve {
    fn at(&self, share: f64) -> f64 {
        self.short + self.root * share.min(self.boundary).sqrt() + self.slope * (share - self.boundary).max(0.0)
    }

    fn squares(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(share, us)| (self.at(*share) - us).powi(2)).sum()
    }

    /// By least squares; a curve that falls is none, and a line must begin at no negative time.
    fn fitted(points: &[(f64, f64)], boundary: f64) -> Option<Curve> {
        let mut normal = [[0.0; 4]; 3];
        for (share, us) in points {
            let row = [1.0, share.min(boundary).sqrt(), (share - boundary).max(0.0), *us];
            for (line, factor) in normal.iter_mut().zip(row) {
                line.iter_mut().zip(row).for_each(|(cell, value)| *cell += factor * value);
            }
        }
        let [short, root, slope] = solved(normal)?;
        let is_curve =
            short >= 0.0 && root >= 0.0 && slope >= 0.0 && short + root * boundary.sqrt() >= slope * boundary;
        is_curve.then_some(Curve { short, root, boundary, slope })
    }
}

/// Three linear equations, by Gauss with pivots.
fn solved(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        let head = rows[column];
        if head[column].abs() < 1e-12 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let factor = row[column] / head[column];
            row.iter_mut().zip(head).for_each(|(cell, value)| *cell -= factor * value);
        }
    }
    Some([0, 1, 2].map(|at| rows[at][3] / rows[at][at]))
}

/// A write that does not wait for the platter was taken into a cache.
fn writes(round: &Round, turn: f64, command: f64) -> Vec<Parameter> {
    let Some(writes) = &round.writes else { return Vec::new() };
    let random = writes.random.map_or(f64::NAN, |found| found.mean_ns);
    let flush = writes.flushes_after(0).map_or(f64::NAN, median);
    let is_cached = f64::from(u8::from(random < turn / 4.0));
    vec![parameter("write_cache", is_cached), parameter("flush_us", (flush - command).max(0.0) / 1e3)]
}
