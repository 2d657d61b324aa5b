//! What was measured beside the time: throughput, space, CPU, what the device saw, how compression came out.

use super::latency::Latencies;
use super::model::*;
use super::work::{self, CPU_THRESHOLD, Case, Context, Quantity, SPACE_THRESHOLD};
use crate::analysis::{Combine, ObservedWork, Rounds};
use crate::stats::{self, Finding};
use crate::units::{show_bytes, show_share};
use crate::wording::headline;
use crate::wording::text::plain;

/// One row of what is shown: in which table, under which name, from which metric.
struct Measure {
    table: &'static str,
    name: &'static str,
    metric: &'static str,
    how: Combine,
    /// Compared with the reference, if differences of this share matter.
    wanted: Option<f64>,
}

const fn measure(
    table: &'static str,
    name: &'static str,
    metric: &'static str,
    how: Combine,
    wanted: Option<f64>,
) -> Measure {
    Measure { table, name, metric, how, wanted }
}

const SPACE: &str = "Space";
const CPU: &str = "CPU time";
const DEVICE: &str = "What the device saw";
const DURABLE: &str = "Until the data was safe";

const LAYOUT: &str = "Layout of what was written";

const MEASURES: [Measure; 20] = [
    measure(SPACE, "space filled", "space_grown_bytes", Combine::First, Some(SPACE_THRESHOLD)),
    measure(SPACE, "space allocated", "space_allocated_bytes", Combine::First, Some(SPACE_THRESHOLD)),
    measure(SPACE, "apparent size", "space_apparent_bytes", Combine::First, None),
    measure(LAYOUT, "layout score", "layout_adjacent_share", Combine::First, None),
    measure(LAYOUT, "fragments a file", "layout_fragments_mean", Combine::First, None),
    measure(LAYOUT, "fragments, 99 % have at most", "layout_fragments_p99", Combine::First, None),
    measure(CPU, "CPU, whole system", "cpu_system_wide_ns", Combine::Sum, Some(CPU_THRESHOLD)),
    measure(CPU, "CPU, workload alone", "cpu_workload_ns", Combine::Sum, Some(CPU_THRESHOLD)),
    measure(CPU, "CPU, other processes", "foreign_cpu_ns", Combine::Sum, None),
    measure(DEVICE, "written", "device_write_bytes", Combine::Sum, Some(CPU_THRESHOLD)),
    measure(DEVICE, "read", "device_read_bytes", Combine::Sum, Some(CPU_THRESHOLD)),
    measure(DEVICE, "peak write", "peak_write_bytes_per_second", Combine::Largest, None),
    measure(DEVICE, "peak read", "peak_read_bytes_per_second", Combine::Largest, None),
    measure(DEVICE, "flushes", "device_flushes", Combine::Sum, None),
    measure(DURABLE, "command returned", "returned_ns", Combine::Sum, None),
    measure(DURABLE, "durable", "durable_ns", Combine::Sum, None),
    measure(DURABLE, "written in between", "sync_write_bytes", Combine::Sum, None),
    measure(DURABLE, "device busy in between", "sync_busy_ns", Combine::Sum, None),
    measure(DURABLE, "device busy after", "after_ns", Combine::Sum, None),
    measure(DURABLE, "written after", "after_write_bytes", Combine::Sum, None),
];

/// Of interest to few: kept out of short formats.
const DETAILS: [&str; 13] = [
    "layout_",
    "workload_",
    "device_",
    "below_",
    "swap_",
    "pressure_",
    "space_",
    "work_",
    "peak_",
    "cpu_",
    "foreign_",
    "after_",
    "sync_",
];

/// Fills in all of a work's report that is not time.
pub fn fill(report: &mut WorkReport, observed: &ObservedWork, case: &Case) {
    let targets = case.targets;
    let duplicate = targets.iter().position(|target| target.duplicate);
    let duplicate = duplicate.filter(|_| report.phases.iter().any(|panel| panel.noise.is_some()));
    let context = Context {
        targets,
        holes: case.holes,
        work: &report.name,
        reference: report.reference,
        duplicate,
        ranked: &report.ranked,
        rounds: report.rounds,
        unasked: case.observed.unasked(),
        level: case.level,
        refused: None,
    };
    let mut tables = vec![throughput(observed, &context)];
    for title in [SPACE, LAYOUT, CPU, DEVICE, DURABLE] {
        let chosen = MEASURES.iter().filter(|measure| measure.table == title);
        let panels = chosen.filter_map(|measure| measured(measure, observed, &context)).collect();
        tables.push(Table { title: title.to_string(), detail: false, panels });
    }
    tables.extend(everything_else(observed, &context));
    tables.retain(|table| !table.panels.is_empty());
    let (trade_offs, compression) = (trade_offs(&tables, &context), compression(observed, targets));
    (report.trade_offs, report.beside, report.compression) = (trade_offs, tables, compression);
}

fn measured(measure: &Measure, observed: &ObservedWork, context: &Context) -> Option<Panel> {
    let series = observed.over_phases(measure.metric, measure.how);
    let quantity = Quantity {
        name: measure.name.to_string(),
        phase: String::new(),
        metric: measure.metric.to_string(),
        better: Better::of_metric(measure.metric),
        wanted: measure.wanted,
    };
    something(work::panel(quantity, &series, context))
}

/// A quantity that is nought everywhere is no news.
pub fn something(panel: Panel) -> Option<Panel> {
    let any = panel.rows.iter().filter_map(|row| row.figure.as_ref()).any(|figure| figure.high > 0.0);
    any.then_some(panel)
}

/// Bytes of work through each phase, by its judged time.
fn throughput(observed: &ObservedWork, context: &Context) -> Table {
    let mut panels = Vec::new();
    for phase in observed.phases() {
        let (bytes, times) = (observed.in_phase(phase, "work_bytes"), observed.in_phase(phase, "time_ns"));
        let rates: Vec<Rounds> = bytes.iter().zip(&times).map(|(bytes, times)| rate(bytes, times)).collect();
        let quantity = Quantity {
            name: plain(phase),
            phase: plain(phase),
            metric: "work_bytes_per_second".to_string(),
            better: Better::More,
            wanted: None,
        };
        panels.extend(something(work::panel(quantity, &rates, context)));
    }
    Table { title: "Throughput".to_string(), detail: false, panels }
}

fn rate(bytes: &Rounds, times: &Rounds) -> Rounds {
    let time_of = |round: u32| times.binary_search_by_key(&round, |(round, _)| *round).ok().map(|at| times[at].1);
    let both = bytes.iter().filter_map(|&(round, bytes)| time_of(round).map(|time| (round, bytes, time)));
    both.filter(|(_, _, time)| *time > 0.0).map(|(round, bytes, time)| (round, bytes * 1e9 / time)).collect()
}

/// Phase by phase: what a workload measures itself, then the probes' small print, which explains odd times.
fn everything_else(observed: &ObservedWork, context: &Context) -> Vec<Table> {
    let latencies = Latencies::of(observed);
    let (mut own, mut details) = (Vec::new(), Vec::new());
    for (phase, metric) in observed.measured() {
        if metric == "time_ns" || metric.starts_with("compression_") || latencies.show(phase, metric) {
            continue;
        }
        let said = metric.strip_suffix("_ns").or(metric.strip_suffix("_per_second")).unwrap_or(metric);
        let quantity = Quantity {
            name: plain(&format!("{phase}: {}", said.replace('_', " "))),
            phase: plain(phase),
            metric: plain(metric),
            better: Better::of_metric(metric),
            wanted: None,
        };
        let panel = something(work::panel(quantity, &observed.in_phase(phase, metric), context));
        let known = MEASURES.iter().any(|measure| measure.metric == metric) || latencies.tell(phase, metric);
        let detail = known || DETAILS.iter().any(|start| metric.starts_with(start));
        if detail { details.extend(panel) } else { own.extend(panel) }
    }
    let others = [("What the workload says of itself", false, own), ("Details", true, details)];
    let others = others.map(|(title, detail, panels)| Table { title: title.to_string(), detail, panels });
    latencies.tables(observed, context).into_iter().chain(others).collect()
}

/// For each target what it clearly saves or costs against the reference.
fn trade_offs(tables: &[Table], context: &Context) -> Vec<String> {
    let Some(reference) = context.reference else { return Vec::new() };
    let find = |metric: &str| tables.iter().flat_map(|table| &table.panels).find(|panel| panel.metric == metric);
    let space = find("space_grown_bytes").or_else(|| find("space_allocated_bytes"));
    let told = [
        (space, "space"),
        (find("cpu_system_wide_ns"), "CPU time"),
        (find("device_write_bytes"), "written to the device"),
    ];
    let shown = (0..context.targets.len()).filter(|at| !context.targets[*at].duplicate && *at != reference);
    let lines = shown.filter_map(|target| {
        let found = told.iter().filter_map(|(panel, noun)| clear_difference((*panel)?, target, noun));
        let found: Vec<String> = found.collect();
        (!found.is_empty()).then(|| headline::trade_off(&context.targets[target], &found))
    });
    lines.collect()
}

fn clear_difference(panel: &Panel, target: usize, noun: &str) -> Option<String> {
    let against = panel.rows.iter().find(|row| row.target == target)?.against.as_ref()?;
    let clear = matches!(against.finding, Some(Finding::Higher | Finding::Lower));
    clear.then(|| headline::amount(&against.estimate, noun))
}

fn compression(observed: &ObservedWork, targets: &[TargetInfo]) -> Vec<Compression> {
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
        let series = &observed.over_phases(&format!("compression_{name}"), Combine::First)[target];
        let values: Vec<f64> = series.iter().map(|(_, value)| *value).collect();
        differs |= values.iter().any(|value| *value != values[0]);
        rounds = rounds.max(values.len());
        stats::median(&values)
    };
    let rows: Vec<CompressionRow> = kinds.iter().filter_map(|kind| compression_row(kind, &mut median)).collect();
    let counts = [
        ("files", "files"),
        ("regular_extents", "regular extents"),
        ("references", "references"),
        ("inline_extents", "inline extents"),
    ];
    let shown = counts.iter().filter_map(|(name, said)| Some(format!("{:.0} {said}", median(name)?)));
    let summary = shown.collect::<Vec<_>>().join(", ");
    (!rows.is_empty()).then_some(Compression { target, summary, rows, differs, rounds })
}

fn compression_row(kind: &str, median: &mut impl FnMut(&str) -> Option<f64>) -> Option<CompressionRow> {
    let disk_bytes = median(&format!("{kind}_disk_bytes"))?;
    let uncompressed_bytes = median(&format!("{kind}_uncompressed_bytes")).unwrap_or(0.0);
    let referenced_bytes = median(&format!("{kind}_referenced_bytes")).unwrap_or(0.0);
    let share = disk_bytes / uncompressed_bytes;
    Some(CompressionRow {
        kind: plain(kind),
        percent: if share.is_finite() { show_share(share) } else { String::new() },
        disk: show_bytes(disk_bytes),
        uncompressed: show_bytes(uncompressed_bytes),
        referenced: show_bytes(referenced_bytes),
        disk_bytes,
        uncompressed_bytes,
        referenced_bytes,
    })
}
