//! What the script reads: for every panel that is compared, and every target that may be the
//! reference, the judgements as text. The script puts them in their places and computes nothing.

use super::LABEL;
use super::overview::{self, DifferenceCell};
use crate::analysis::Panel;
use crate::render::chart::forest::View;
use crate::render::chart::{Sheet, panels};
use serde_json::{Value, json};

pub(crate) fn island(sheet: &Sheet) -> Value {
    let names: Vec<Value> =
        sheet.shown.iter().map(|&target| json!([target, sheet.model.targets[target].name])).collect();
    let mut by_number = serde_json::Map::new();
    let numbered = sheet.model.reports().flat_map(|work| {
        let times = work.phases.len();
        panels(work).enumerate().map(move |(at, panel)| (at < times, panel))
    });
    for (number, (is_time, panel)) in numbered.enumerate() {
        if panel.rows.iter().any(|row| row.against.is_some()) {
            by_number.insert(number.to_string(), views(sheet, panel, is_time));
        }
    }
    let columns = overview::columns(sheet);
    let overview = columns.iter().map(|column| (column.number.to_string(), differences(sheet, column.panel)));
    let overview: serde_json::Map<String, Value> = overview.collect();
    json!({ "targets": names, "panels": by_number, "overview": overview })
}

/// The cells of a column of the overview, for each target that may be the reference.
fn differences(sheet: &Sheet, panel: &Panel) -> Value {
    let against = |reference: usize| {
        let cell = |row: &crate::analysis::Row| Some(DifferenceCell::of(panel, row, reference)?.json(row.target));
        let cells: Vec<Value> = panel.rows.iter().filter_map(cell).collect();
        (cells.len() > 1).then(|| (reference.to_string(), Value::Array(cells)))
    };
    Value::Object(sheet.shown.iter().filter_map(|target| against(*target)).collect())
}

fn views(sheet: &Sheet, panel: &Panel, is_time: bool) -> Value {
    let is_judged = |target: &&usize| panel.rows.iter().any(|row| row.compared_with(**target).is_some());
    let view = |target: &usize| {
        if is_time {
            (target.to_string(), View::of(panel, Some(*target), LABEL).json())
        } else {
            (target.to_string(), ratios(panel, *target))
        }
    };
    Value::Object(sheet.shown.iter().filter(is_judged).map(view).collect())
}

fn ratios(panel: &Panel, reference: usize) -> Value {
    let of = |row: &crate::analysis::Row| {
        let (ratio, words) = View::ratio_of(row, reference);
        json!([row.target, ratio, words])
    };
    json!({ "ratios": panel.rows.iter().map(of).collect::<Vec<_>>() })
}
