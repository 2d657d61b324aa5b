//! What was measured apart from the time: throughput, space, CPU, what the device saw, how
//! compression came out.

use super::latency::Latencies;
use super::model::*;
use super::panel::{PanelSpec, WorkContext, nonzero, panel};
use super::plain::plain;
use super::series::{ObservedWork, Rounds, at_round};
use pickfs_core::metric::{self, Combine, METRICS, Metric, ReportTable};
use pickfs_stats::{Estimate, Finding};

/// The tables of metrics over all phases, in the order of print.
const TABLES: [ReportTable; 5] =
    [ReportTable::Space, ReportTable::Layout, ReportTable::Cpu, ReportTable::Device, ReportTable::Durability];

/// All of a work's metrics that are no judged times.
pub(crate) fn tables(observed: &ObservedWork, context: &WorkContext) -> Vec<Table> {
    let mut tables = vec![throughput(observed, context)];
    for shown in TABLES {
        let chosen = METRICS.iter().filter(|metric| metric.shown == shown && !metric.heading.is_empty());
        let panels = chosen.filter_map(|metric| measured(metric, observed, context)).collect();
        tables.push(table(shown, panels));
    }
    tables.extend(everything_else(observed, context));
    tables.retain(|table| !table.panels.is_empty());
    tables
}

fn table(shown: ReportTable, panels: Vec<Panel>) -> Table {
    Table { shown, phase: String::new(), operation: String::new(), panels }
}

fn measured(metric: &Metric, observed: &ObservedWork, context: &WorkContext) -> Option<Panel> {
    let series = observed.over_phases(metric.name, metric.combine);
    let quantity = PanelSpec {
        name: metric.heading.to_string(),
        quantity: None,
        phase: String::new(),
        metric: metric.name.to_string(),
        wanted: metric.matters(0.0),
    };
    nonzero(panel(quantity, &series, context))
}

/// Bytes of work through each phase, by its judged time; of what is removed, its files.
fn throughput(observed: &ObservedWork, context: &WorkContext) -> Table {
    let mut panels = Vec::new();
    for phase in observed.phases() {
        let removes = observed.in_phase(phase, "removed_files").iter().any(|rounds| !rounds.is_empty());
        let amount = if removes { "removed_files" } else { "work_bytes" };
        let (amounts, times) = (observed.in_phase(phase, amount), observed.in_phase(phase, "time_ns"));
        let rates: Vec<Rounds> = amounts.iter().zip(&times).map(|(amount, times)| rate(amount, times)).collect();
        let quantity = PanelSpec {
            name: plain(phase),
            quantity: removes.then(|| "files".to_string()),
            phase: plain(phase),
            metric: format!("{amount}_per_second"),
            wanted: None,
        };
        panels.extend(nonzero(panel(quantity, &rates, context)));
    }
    table(ReportTable::Throughput, panels)
}

fn rate(amounts: &Rounds, times: &Rounds) -> Rounds {
    let both = amounts.iter().filter_map(|&(round, amount)| at_round(times, round).map(|time| (round, amount, time)));
    both.filter(|(_, _, time)| *time > 0.0).map(|(round, amount, time)| (round, amount * 1e9 / time)).collect()
}

/// Phase by phase: what a workload measures itself, then the probes' small print, which explains
/// odd times.
fn everything_else(observed: &ObservedWork, context: &WorkContext) -> Vec<Table> {
    let latencies = Latencies::of(observed);
    let (mut own, mut details) = (Vec::new(), Vec::new());
    for (phase, metric) in observed.measured() {
        let shown = metric::find(metric).map(|metric| metric.shown);
        if observed.judged.headlines.iter().any(|one| (one.phase.as_str(), one.metric.as_str()) == (phase, metric)) {
            continue;
        }
        if matches!(shown, Some(ReportTable::Times | ReportTable::Compression)) || latencies.show(phase, metric) {
            continue;
        }
        let quantity = PanelSpec {
            name: plain(phase),
            quantity: Some(plain(&said(metric))),
            phase: plain(phase),
            metric: plain(metric),
            wanted: None,
        };
        let panel = nonzero(panel(quantity, &observed.in_phase(phase, metric), context));
        let is_own = matches!(shown, None | Some(ReportTable::Workload | ReportTable::Latency));
        let detail = !is_own || latencies.tell(phase, metric);
        if detail { details.extend(panel) } else { own.extend(panel) }
    }
    let others = [table(ReportTable::Workload, own), table(ReportTable::Details, details)];
    latencies.tables(observed, context).into_iter().chain(others).collect()
}

/// A metric's name without its unit; a rate of bytes keeps what sets it apart from the bytes.
fn said(metric: &str) -> String {
    let words = |name: &str| name.replace('_', " ");
    match (metric.strip_suffix("_bytes_per_second"), metric.strip_suffix("_ns"), metric.strip_suffix("_per_second")) {
        (Some(bytes), ..) => words(bytes) + " rate",
        (_, Some(name), _) | (_, _, Some(name)) => words(name),
        _ => words(metric),
    }
}

/// For each target what it clearly saves or costs against the reference, by the criteria that are
/// no times.
pub(crate) fn costs(tables: &[Table], targets: &[TargetInfo]) -> Vec<TradeOff> {
    let panels = || tables.iter().flat_map(|table| &table.panels).filter(|panel| panel.phase.is_empty());
    let panel = |metric: &&Metric| panels().find(|panel| panel.metric == metric.name);
    let criteria: Vec<&Panel> =
        metric::criteria().iter().filter_map(|criterion| criterion.iter().find_map(panel)).collect();
    let shown = (0..targets.len()).filter(|at| !targets[*at].duplicate);
    let of_target = |target| {
        let clear = |panel: &&Panel| Some((panel.metric.clone(), clear_difference(panel, target)?));
        TradeOff { target, differences: criteria.iter().filter_map(clear).collect() }
    };
    shown.map(of_target).filter(|found| !found.differences.is_empty()).collect()
}

fn clear_difference(panel: &Panel, target: usize) -> Option<Estimate> {
    let against = panel.rows.iter().find(|row| row.target == target)?.against.as_ref()?;
    matches!(against.finding, Some(Finding::Higher | Finding::Lower)).then(|| against.estimate.clone())
}

/// What was compressed, and how well, for each target that says so.
pub(crate) fn compression(observed: &ObservedWork, targets: &[TargetInfo]) -> Vec<Compression> {
    let kinds = compression_kinds(observed);
    let shown = (0..targets.len()).filter(|at| !targets[*at].duplicate);
    if kinds.is_empty() { Vec::new() } else { shown.filter_map(|at| compression_of(observed, at, &kinds)).collect() }
}

/// The total first, then the types by name.
fn compression_kinds(observed: &ObservedWork) -> Vec<String> {
    let name = |metric: &str| Some(metric.strip_prefix("compression_")?.strip_suffix("_disk_bytes")?.to_string());
    let mut kinds: Vec<String> = observed.measured().into_iter().filter_map(|(_, metric)| name(metric)).collect();
    kinds.sort_by_key(|kind| (kind != "total", kind.clone()));
    kinds.dedup();
    kinds
}

fn compression_of(observed: &ObservedWork, target: usize, kinds: &[String]) -> Option<Compression> {
    let mut differs = false;
    let mut rounds = 0;
    let mut median = |name: &str| {
        let series = &observed.over_phases(&["compression_", name].concat(), Combine::First)[target];
        let values: Vec<f64> = series.iter().map(|(_, value)| *value).collect();
        differs |= values.iter().any(|value| *value != values[0]);
        rounds = rounds.max(values.len());
        pickfs_stats::median(&values)
    };
    let rows: Vec<CompressionRow> = kinds.iter().filter_map(|kind| compression_row(kind, &mut median)).collect();
    let named = ["files", "regular_extents", "references", "inline_extents"];
    let counts = named.into_iter().filter_map(|name| Some((name, median(name)?))).collect();
    (!rows.is_empty()).then_some(Compression { target, counts, rows, differs, rounds })
}

fn compression_row(kind: &str, median: &mut impl FnMut(&str) -> Option<f64>) -> Option<CompressionRow> {
    let mut bytes = |what: &str| median(&[kind, what].concat());
    let disk_bytes = bytes("_disk_bytes")?;
    let uncompressed_bytes = bytes("_uncompressed_bytes").unwrap_or(0.0);
    let referenced_bytes = bytes("_referenced_bytes").unwrap_or(0.0);
    Some(CompressionRow { kind: plain(kind), disk_bytes, uncompressed_bytes, referenced_bytes })
}
