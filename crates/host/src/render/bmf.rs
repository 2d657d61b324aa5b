//! Bencher Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format/>): the median
//! of every judged time as `latency` in nanoseconds, with the interval of the median where there
//! are rounds enough for one.

use super::{Format, Options};
use crate::analysis::Model;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The longest name that Bencher takes.
const LONGEST: usize = 1024;

pub(crate) const BMF: Format = Format {
    name: "bmf",
    about: "Bencher Metric Format: medians of times, for trends in CI",
    run: Some(write),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut benches = Map::new();
    for times in &model.raw.times {
        let name = format!("{}: {}, {}", model.targets[times.target].name, times.work, times.phase);
        let mut latency = json!({ "value": times.median });
        if let Some((low, high)) = times.interval {
            latency["lower_value"] = json!(low);
            latency["upper_value"] = json!(high);
        }
        let name: String = name.chars().take(LONGEST).collect();
        benches.insert(name, json!({ "latency": latency }));
    }
    serde_json::to_writer_pretty(&mut *out, &Value::Object(benches))?;
    out.write_all(b"\n")
}
