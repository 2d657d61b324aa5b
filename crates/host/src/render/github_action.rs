//! The list that github-action-benchmark reads as `customSmallerIsBetter`: medians of every judged
//! time in seconds, with the range of the rounds.

use super::{Format, Options};
use crate::analysis::Model;
use serde_json::{Value, json};
use std::io::{self, Write};

pub(crate) const GITHUB_ACTION: Format = Format {
    name: "github-action-benchmark",
    about: "medians of times as github-action-benchmark reads them (customSmallerIsBetter)",
    run: Some(write),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let one = |times: &crate::analysis::raw::Times| -> Value {
        json!({
            "name": format!("{}: {}, {}", model.targets[times.target].name, times.work, times.phase),
            "unit": "s",
            "value": times.median / 1e9,
            "range": format!("{}–{}", times.low / 1e9, times.high / 1e9),
            "extra": format!("rounds: {}\nrun: {}", times.rounds.len(), model.run),
        })
    };
    let list: Vec<Value> = model.raw.times.iter().map(one).collect();
    serde_json::to_writer_pretty(&mut *out, &list)?;
    out.write_all(b"\n")
}
