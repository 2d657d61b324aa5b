//! How long single operations took: one table for each operation of a phase, and which targets
//! differ in the slowest hundredth.

use super::model::Table;
use super::panel::{PanelSpec, WorkContext, nonzero, panel};
use super::plain::plain;
use super::series::ObservedWork;
use pickfs_core::metric::{METRICS, Metric, ReportTable};

/// The columns of each table: end of the metric's name, and its row.
fn columns() -> impl Iterator<Item = (&'static str, &'static Metric)> {
    let shown = METRICS.iter().filter(|metric| metric.shown == ReportTable::Latency);
    shown.filter_map(|metric| Some((metric.name.strip_prefix('*')?, metric)))
}

/// Metrics that few readers need.
const MORE: [&str; 3] = ["_p90_ns", "_mean_ns", "_operations"];

/// The name of the operation where a phase has one kind alone.
const ONLY: &str = "latency";

/// Operations of a work by phase, as (phase, operation).
pub(crate) struct Latencies<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Latencies<'a> {
    /// Known by the quantile that all of them have.
    pub(crate) fn of(observed: &ObservedWork<'a>) -> Latencies<'a> {
        let measured = observed.measured().into_iter();
        let mut found: Vec<_> =
            measured.filter_map(|(phase, metric)| Some((phase, metric.strip_suffix("_p99_ns")?))).collect();
        found.sort();
        Latencies(found)
    }

    /// It has a place in a table of latencies.
    pub(crate) fn show(&self, phase: &str, metric: &str) -> bool {
        columns().any(|(end, _)| self.has(phase, metric, end))
    }

    /// It is said of them too.
    pub(crate) fn tell(&self, phase: &str, metric: &str) -> bool {
        MORE.iter().any(|end| self.has(phase, metric, end))
    }

    fn has(&self, phase: &str, metric: &str, end: &str) -> bool {
        metric.strip_suffix(end).is_some_and(|operation| self.0.contains(&(phase, operation)))
    }

    pub(crate) fn tables(&self, observed: &ObservedWork, context: &WorkContext) -> Vec<Table> {
        let table = |(phase, operation): &(&str, &str)| {
            let column = |(end, column): (&str, &Metric)| {
                let metric = [*operation, end].concat();
                let quantity = PanelSpec {
                    name: column.heading.to_string(),
                    quantity: None,
                    phase: plain(phase),
                    metric: plain(&metric),
                    wanted: column.matters(0.0),
                };
                nonzero(panel(quantity, &observed.in_phase(phase, &metric), context))
            };
            let operation = if *operation == ONLY { String::new() } else { plain(&operation.replace('_', " ")) };
            Table {
                shown: ReportTable::Latency,
                phase: plain(phase),
                operation,
                panels: columns().filter_map(column).collect(),
            }
        };
        self.0.iter().map(table).collect()
    }
}
