//! A series of times on a page of the site: a picture, and the same as a table.

use super::markup::text;
use crate::render::chart::scale::{Kind, Scale};
use crate::wording::trends::Trend;
use maud::{Markup, html};
use pickfs_system::units::show_duration;

const STEP: f64 = 84.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 116.0;
const HEIGHT: f64 = 150.0;

/// `to_source` gives the address of what is known of a run, by its hash.
pub(crate) fn trend(trend: &Trend, heading: Markup, to_source: &dyn Fn(&Trend, &str) -> String) -> Markup {
    html! {
        section.trend {
            h3 { (heading) @if !trend.machine.is_empty() { small { ", " (text(trend.machine)) } } }
            @if trend.changes.is_empty() { p { "No change is shown." } }
            @for change in &trend.changes {
                p.change.slower[change.is_slower] { (if change.is_slower { "▲ " } else { "▼ " }) (text(&change.words)) }
            }
            div.scroll tabindex="0" role="region" aria-label={ (text(&named(trend))) " over " (trend.over) "s" } {
                (picture(trend))
                table {
                    thead { tr { th scope="col" { (trend.over) } th scope="col" { "time" } th scope="col" { "error" } th scope="col" { "evidence" } } }
                    tbody {
                        @for (at, point) in trend.points.iter().enumerate() {
                            tr.changed[trend.changes.iter().any(|change| change.at == at)] {
                                th scope="row" { (text(&point.exactly)) }
                                td { (text(&point.time)) }
                                td { (text(&point.error)) }
                                td { a href=(to_source(trend, &point.run.hash)) { "run " (text(point.run.hash.get(..8).unwrap_or_default())) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn picture(trend: &Trend) -> Markup {
    let (low, high) = range(trend.points.iter().map(|point| point.ns));
    let scale = Scale::over(Kind::Linear, [low, high], BOTTOM, TOP).with_air(0.08);
    let width = LEFT + STEP * trend.points.len() as f64;
    let x = |at: usize| LEFT + STEP * (at as f64 + 0.5);
    let line: Vec<String> =
        trend.points.iter().enumerate().map(|(at, point)| format!("{:.1},{:.1}", x(at), scale.at(point.ns))).collect();
    html! {
        svg width=(width) height=(HEIGHT) viewBox={ "0 0 " (width) " " (HEIGHT) } role="img" aria-label={ "Times of " (text(&named(trend))) ", as in the table below" } {
            @for value in [low, high] {
                line.grid x1=(LEFT) x2=(width) y1=(px(scale.at(value))) y2=(px(scale.at(value))) {}
                text x=(LEFT - 8.0) y=(px(scale.at(value) + 4.0)) text-anchor="end" { (text(&show_duration(value))) }
            }
            @for change in &trend.changes {
                line.cut.slower[change.is_slower] x1=(px(x(change.at) - STEP / 2.0)) x2=(px(x(change.at) - STEP / 2.0)) y1="6" y2=(BOTTOM + 8.0) {}
            }
            polyline points=(line.join(" ")) {}
            @for (at, point) in trend.points.iter().enumerate() {
                circle cx=(px(x(at))) cy=(px(scale.at(point.ns))) r="4.5" {}
                text x=(px(x(at))) y=(HEIGHT - 10.0) text-anchor="middle" { (text(&point.label)) }
            }
        }
    }
}

/// Unlike those of all other series of a page.
fn named(trend: &Trend) -> String {
    let parts = [trend.target, trend.work, trend.disk, trend.machine];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn px(place: f64) -> String {
    format!("{place:.1}")
}

/// What the picture spans: all points, and at least 10 %, so that what is next to nothing does not
/// look like a slope.
fn range(times: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = times.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ns| (low.min(ns), high.max(ns)));
    let middle = (low + high) / 2.0;
    (low.min(middle * 0.95), high.max(middle * 1.05))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousandth_is_no_slope_and_a_fifth_fills_the_picture() {
        assert_eq!(range([1000.0, 1001.0].into_iter()), (1000.5 * 0.95, 1000.5 * 1.05));
        assert_eq!(range([1000.0, 1200.0].into_iter()), (1000.0, 1200.0));
    }
}
