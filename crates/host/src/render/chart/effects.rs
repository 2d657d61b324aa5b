//! The effects of each value of each option of tunings, with their intervals.

use super::axis::Axis;
use super::forest::symbol;
use super::painter::{Font, Painter};
use crate::wording::tuning::{EFFECTS_LEGEND, Tuned, word};

const MARGIN: f64 = 16.0;
const PLOT: f64 = 320.0;
const FIGURES: f64 = 250.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 44.0;
const TITLE: Font = Font::new(14.0, "ink bold");
const NAME: Font = Font::new(12.0, "ink");
const FIGURE: Font = Font::new(11.0, "");
const TICK: Font = Font::centred(10.5);

/// All on one logarithmic axis.
pub(crate) fn picture(tunings: &[Tuned]) -> String {
    let all = || tunings.iter().flat_map(|tuned| &tuned.effects);
    let names = all().map(|row| row.setting.chars().count()).max().unwrap_or(0) as f64 * 6.9 + 12.0;
    let margin = tunings.iter().map(|tuned| tuned.margin).fold(0.0, f64::max);
    let from = MARGIN + names;
    let axis = Axis::around(
        margin,
        all().map(|row| (row.effect.ratio, row.effect.low.zip(row.effect.high))),
        from,
        from + PLOT,
    );
    let mut painter = Painter::new(from + PLOT + FIGURES + MARGIN, 0.0);
    let bottom = tunings.iter().fold(MARGIN, |top, tuned| effects(&mut painter, tuned, &axis, top));
    painter.height = bottom + MARGIN;
    let title = tunings.iter().map(Tuned::title).collect::<Vec<_>>().join("; ");
    painter.alone(0.0, &title, EFFECTS_LEGEND)
}

/// From this height on; where the next begins.
fn effects(painter: &mut Painter, tuned: &Tuned, axis: &Axis, top: f64) -> f64 {
    let first = top + HEAD;
    let bottom = first + tuned.effects.len() as f64 * ROW;
    painter.text_cut((MARGIN, top + 16.0), &TITLE, painter.width - 2.0 * MARGIN, &tuned.title());
    let (low, high) = axis.band(tuned.margin);
    painter.rectangle((low, first), (high - low, bottom - first), "band");
    for (x, label) in axis.ticks(44.0) {
        painter.upright(x, (first, bottom), "g");
        painter.text((x, bottom + 14.0), &TICK, &label);
    }
    painter.upright(axis.one(), (first, bottom), "one");
    let middle = (axis.left + axis.right) / 2.0;
    painter.text((middle, bottom + 30.0), &TICK, "time with the value over time with the default");
    for (at, row) in tuned.effects.iter().enumerate() {
        let y = first + (at as f64 + 0.5) * ROW;
        let [setting, time, interval, _] = row.cells();
        let (from, to) = row.effect.low.zip(row.effect.high).unwrap_or((row.effect.ratio, row.effect.ratio));
        painter.text((MARGIN, y + 4.0), &NAME, &setting);
        painter.finding(symbol(Some(&row.finding)), (axis.at(from), axis.at(row.effect.ratio), axis.at(to)), y);
        let said = format!("{time} ({interval}) {}", word(row.finding));
        painter.text_cut((axis.right + 10.0, y + 4.0), &FIGURE, FIGURES, &said);
    }
    bottom + FOOT
}
