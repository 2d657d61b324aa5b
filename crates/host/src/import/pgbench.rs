//! What pgbench prints at its end: the rate without the time to connect, and latencies as it
//! reports them. The judged time is that of a thousand transactions.

use super::{Contents, Figures, Importer, positive};
use anyhow::{Context, Result};

pub(crate) struct Pgbench;

pub(crate) const WORK: &str = "pgbench";

/// What a line of milliseconds begins with, the metric, and its name.
const LATENCIES: [(&str, &str, &str); 3] = [
    ("latency average =", "latency_mean_ns", "latency, mean"),
    ("latency stddev =", "latency_deviation_ns", "latency, stddev"),
    ("initial connection time =", "connecting_ns", "initial connection time"),
];

/// In nanoseconds.
const A_MILLISECOND: f64 = 1e6;

impl Importer for Pgbench {
    fn name(&self) -> &'static str {
        "pgbench"
    }

    fn about(&self) -> &'static str {
        "what pgbench prints at its end"
    }

    fn recognises(&self, text: &str) -> bool {
        text.contains("number of transactions actually processed:")
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let mut figures = Figures::default();
        let lines = || text.lines().map(str::trim);
        let after = |begin: &str| lines().find_map(|line| line.strip_prefix(begin)).map(str::trim);
        let clients = after("number of clients:").unwrap_or("?");
        let phase = format!("clients-{clients}");
        // Up to version 13 there were two rates.
        let rate = lines().rfind(|line| line.starts_with("tps = ") && !line.contains("including connections"));
        let rate =
            rate.and_then(|line| first(line.strip_prefix("tps = ")?)).context("it has no line `tps = ` with a rate")?;
        figures.say(WORK, &phase, "time_ns", 1e12 / rate);
        figures.show(WORK, &phase, ("transactions_per_second", "transactions"), rate);
        for (begin, metric, name) in LATENCIES {
            let found = after(begin).and_then(first);
            found.into_iter().for_each(|ms| figures.show(WORK, &phase, (metric, name), ms * A_MILLISECOND));
        }
        if let Some(failed) = after("number of failed transactions:").and_then(first) {
            figures.failed = Some(format!("{failed} transactions failed"));
        }
        for (name, begin) in [("scale", "scaling factor:"), ("duration", "duration:"), ("script", "transaction type:")]
        {
            figures.facts.extend(after(begin).map(|value| (format!("pgbench {name}"), value.to_string())));
        }
        figures.time_of("a thousand transactions");
        Ok(Contents::Figures(figures))
    }
}

/// The number that a text begins with, if it is above nought.
fn first(text: &str) -> Option<f64> {
    positive(text.split([' ', '/']).next()?)
}
