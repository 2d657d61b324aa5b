//! pgbench's log of single transactions (`-l`): latencies by their own percentiles. With
//! `--aggregate-interval`, a line for each interval, there are means and the largest alone. How
//! long a client waited between transactions is not in it, so that the judged time is the mean
//! latency.

use super::pgbench::WORK;
use super::{Contents, Figures, Importer};
use anyhow::{Context, Result, ensure};

pub(crate) struct PgbenchLog;

const PHASE: &str = "transactions";

/// Seconds since 1970 in 2001: no count of clients or transactions is as large.
const AN_EPOCH: f64 = 1e9;

impl Importer for PgbenchLog {
    fn name(&self) -> &'static str {
        "pgbench-log"
    }

    fn about(&self) -> &'static str {
        "pgbench -l, with or without --aggregate-interval"
    }

    fn recognises(&self, text: &str) -> bool {
        let first = text.lines().next().unwrap_or_default();
        let numbers = first.split_ascii_whitespace().take(6).filter(|field| field.parse::<f64>().is_ok());
        numbers.count() == 6
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let mut figures = Figures::default();
        let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
        let rows: Vec<Row> =
            lines.map(|(at, line)| Row::of(line).with_context(|| format!("line {}", at + 1))).collect::<Result<_>>()?;
        ensure!(!rows.is_empty(), "there is no line in it");
        let count: f64 = rows.iter().map(|row| row.count).sum();
        ensure!(count > 0.0, "there is no transaction in it");
        let mean = rows.iter().map(|row| row.sum_ns).sum::<f64>() / count;
        figures.say(WORK, PHASE, "time_ns", mean);
        figures.show(WORK, PHASE, ("latency_mean_ns", "latency, mean"), mean);
        figures.say(WORK, PHASE, "latency_max_ns", rows.iter().map(|row| row.max_ns).fold(0.0, f64::max));
        if rows.iter().all(|row| row.is_single) {
            let mut all: Vec<f64> = rows.iter().map(|row| row.max_ns).collect();
            all.sort_by(f64::total_cmp);
            for (share, name) in [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")] {
                // The smallest that so large a share does not exceed.
                let at = (share * all.len() as f64).ceil() as usize;
                let (metric, shown) = (format!("latency_{name}_ns"), name.replace("p999", "p99.9"));
                figures.show(WORK, PHASE, (&metric, &format!("latency, {shown}")), all[at.clamp(1, all.len()) - 1]);
            }
        }
        figures.headline(WORK, PHASE, "latency_max_ns", "longest latency");
        figures.time_of("one transaction, on average");
        Ok(Contents::Figures(figures))
    }
}

/// One transaction, or those of an interval.
struct Row {
    is_single: bool,
    count: f64,
    sum_ns: f64,
    max_ns: f64,
}

impl Row {
    /// `client txno latency_us script epoch_s epoch_us ...`, or `epoch_s count sum_us sum2 min_us
    /// max_us ...`.
    fn of(line: &str) -> Result<Row> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        ensure!(fields.len() >= 6, "it has {} fields, where a log of pgbench has 6 or more", fields.len());
        ensure!(
            fields[2] != "failed" && fields[2] != "skipped",
            "a transaction has {}; such a log has no time",
            fields[2]
        );
        let number = |at: usize| {
            let found = fields[at].parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
            found.with_context(|| format!("`{}` is no number of a log of pgbench", fields[at]))
        };
        if number(0)? >= AN_EPOCH {
            return Ok(Row { is_single: false, count: number(1)?, sum_ns: number(2)? * 1e3, max_ns: number(5)? * 1e3 });
        }
        ensure!(number(4)? >= AN_EPOCH, "its fifth field is no moment");
        let ns = number(2)? * 1e3;
        Ok(Row { is_single: true, count: 1.0, sum_ns: ns, max_ns: ns })
    }
}
