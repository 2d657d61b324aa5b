//! The JSON that `hyperfine --export-json` writes, in seconds, for the scripts that plot it. What
//! pickfs does not know (times of user and system apart) is left out. `pickfs` holds the rounds, so
//! that an import can pair them again.

use super::{Format, Options};
use crate::analysis::Model;
use crate::analysis::raw::Times;
use serde_json::{Value, json};
use std::io::{self, Write};

pub(crate) const HYPERFINE: Format = Format {
    name: "hyperfine",
    about: "JSON as hyperfine exports it: times in seconds",
    run: Some(write),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let results: Vec<Value> = model.raw.times.iter().map(|times| result(model, times)).collect();
    serde_json::to_writer_pretty(&mut *out, &json!({ "results": results }))?;
    out.write_all(b"\n")
}

fn result(model: &Model, times: &Times) -> Value {
    let target = &model.targets[times.target].name;
    let seconds: Vec<f64> = times.rounds.iter().map(|(_, ns)| ns / 1e9).collect();
    let rounds: Vec<u32> = times.rounds.iter().map(|(round, _)| *round).collect();
    json!({
        "command": format!("{target}: {}, {}", times.work, times.phase),
        "mean": times.mean / 1e9,
        "stddev": times.deviation.map(|ns| ns / 1e9),
        "median": times.median / 1e9,
        "min": times.low / 1e9,
        "max": times.high / 1e9,
        "times": seconds,
        "parameters": { "target": target, "work": times.work, "phase": times.phase },
        "pickfs": { "rounds": rounds },
    })
}
