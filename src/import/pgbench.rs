//! What pgbench prints when it is done: the rate without the time to connect, and latencies as it tells them. The judged
//! time is that of a thousand transactions.

use super::{Contents, Figures, Importer, positive};
use anyhow::{Context, Result};

pub struct Pgbench;

pub const WORK: &str = "pgbench";

/// What a line begins with, the metric, and nanoseconds of its unit.
const LATENCIES: [(&str, &str, f64); 3] = [
    ("latency average =", "latency_mean_ns", 1e6),
    ("latency stddev =", "latency_deviation_ns", 1e6),
    ("initial connection time =", "connecting_ns", 1e6),
];

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
        figures.say(WORK, &phase, "transactions_per_second", rate);
        for (begin, metric, unit) in LATENCIES {
            let found = after(begin).and_then(first);
            found.into_iter().for_each(|value| figures.say(WORK, &phase, metric, value * unit));
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
