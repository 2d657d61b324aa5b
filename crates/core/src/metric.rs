//! What each metric means: one row a metric, which every room that plans, judges or prints metrics
//! asks.
//!
//! A metric is named in the journal as `<what>_<unit>`; the end of the name is its unit. A workload
//! may record metrics that have no row here: then the end of the name says enough to print them.
//! Must not know: `journal`, `plan`.

use pickfs_system::units::Unit;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// What of the whole system's CPU was not of other programs: a report takes the difference.
pub const CPU_NET_NS: &str = "cpu_net_ns";
pub const CPU_GROSS_NS: &str = "cpu_system_wide_ns";
/// What a program that was imported says of its runs, each of which is a `time_ns`.
pub const MEAN_RUN_NS: &str = "mean_run_ns";
pub const CPU_FOREIGN_NS: &str = "foreign_cpu_ns";

/// Which way a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    Less,
    More,
    /// It shows what was done, or what else happened.
    Neither,
}

/// How the values of a cell's phases become one value of the cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// Over all phases; a round that lacks one of them does not count.
    #[default]
    Sum,
    /// The same of logarithms, for phases that have no unit in common.
    GeometricMean,
    Largest,
    /// The first phase that has it.
    First,
}

/// The table of a report that shows a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportTable {
    Times,
    Throughput,
    Space,
    Layout,
    Cpu,
    Device,
    Durability,
    /// Of single operations, a table for each kind.
    Latency,
    /// What a workload measures itself, phase by phase.
    Workload,
    /// Of interest to few: kept out of short formats.
    Details,
    /// Compression has its own table layout.
    Compression,
}

/// The smallest relative difference that matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Margin {
    /// Shown, not compared.
    #[default]
    None,
    /// What the plan says.
    OfPlan,
    /// A share of one.
    Share(f64),
}

/// One metric, or all whose names begin or end alike.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name in the journal; one `*` stands for any text.
    pub name: &'static str,
    pub shown: ReportTable,
    /// Heading of its column; empty where the name in the journal is shown.
    #[serde(default)]
    pub heading: &'static str,
    #[serde(default)]
    pub combine: Combine,
    #[serde(default)]
    pub margin: Margin,
    /// Short name for limits in plans; empty for none.
    #[serde(default)]
    pub alias: &'static str,
    /// Column in the table of trade-offs; of several metrics with the same one the first that has
    /// values counts.
    #[serde(default)]
    pub criterion: &'static str,
    /// None: the end of the name says it.
    better: Option<Better>,
    #[serde(default)]
    noun: &'static str,
}

/// Every metric that means more than its name says, from `metric.toml`. The first row that fits a
/// name counts.
pub static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'static"))]
    struct File {
        metric: Vec<Metric>,
    }
    let file: File = toml::from_str(include_str!("metric.toml")).expect("a test reads them");
    file.metric
});

impl Metric {
    fn fits(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        }
    }

    /// The difference that matters, as a share of one; `of_plan` is the plan's own.
    pub fn matters(&self, of_plan: f64) -> Option<f64> {
        match self.margin {
            Margin::None => None,
            Margin::OfPlan => Some(of_plan),
            Margin::Share(share) => Some(share),
        }
    }
}

/// The row of a metric in the journal; `None` where its name says all.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.fits(name))
}

/// Which way a metric is good: what its row says, or the end of its name.
pub fn better(name: &str) -> Better {
    let by_name = || match name {
        _ if name.ends_with("_operations") => Better::Neither,
        _ if name.ends_with("_per_second") || name.ends_with("_adjacent_share") => Better::More,
        _ => Better::Less,
    };
    find(name).and_then(|metric| metric.better).unwrap_or_else(by_name)
}

/// What a metric is an amount of, for sentences: "12 % less CPU time than ext4".
pub fn noun(name: &str) -> &'static str {
    match find(name).map_or("", |metric| metric.noun) {
        "" if Unit::of_metric(name) == Unit::Nanoseconds => "time",
        // "does 12 % more than ext4".
        "" if name.ends_with("_per_second") => "",
        "" => "of it",
        noun => noun,
    }
}

/// The metric that a short name in a plan stands for.
pub fn by_alias(alias: &str) -> Option<&'static str> {
    aliases().find(|metric| metric.alias == alias).map(|metric| metric.name)
}

/// The short name of a metric, as a plan has it; its own where it has none.
pub fn short_name(name: &str) -> &str {
    find(name).map(|metric| metric.alias).filter(|alias| !alias.is_empty()).unwrap_or(name)
}

/// Those with a short name, in the order of these names.
pub(crate) fn aliases() -> impl Iterator<Item = &'static Metric> {
    let mut named: Vec<&Metric> = METRICS.iter().filter(|metric| !metric.alias.is_empty()).collect();
    named.sort_by_key(|metric| metric.alias);
    named.into_iter()
}

/// The columns of the table of trade-offs: for each criterion the metrics that may stand for it.
pub fn criteria() -> Vec<Vec<&'static Metric>> {
    let mut columns: Vec<Vec<&Metric>> = Vec::new();
    for metric in METRICS.iter().filter(|metric| !metric.criterion.is_empty()) {
        match columns.iter_mut().find(|column| column[0].criterion == metric.criterion) {
            Some(column) => column.push(metric),
            None => columns.push(vec![metric]),
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_counts() {
        let shown = |name: &str| find(name).map(|metric| (metric.shown, metric.heading));
        assert_eq!(
            ["loss_max_ns", "space_grown_bytes", "swap_in_pages"].map(short_name),
            ["loss", "space", "swap_in_pages"]
        );
        assert_eq!(shown("space_grown_bytes"), Some((ReportTable::Space, "space filled")));
        assert_eq!(shown("space_entries"), Some((ReportTable::Details, "")));
        assert_eq!(shown("lstat_p99_ns"), Some((ReportTable::Latency, "p99")));
        assert_eq!(shown("transactions_per_second"), None);
        assert_eq!(
            (noun("lstat_p99_ns"), noun("space_grown_bytes"), noun("swap_in_pages")),
            ("time", "space", "of it")
        );
    }

    #[test]
    fn no_row_hides_behind_another() {
        for (at, metric) in METRICS.iter().enumerate().filter(|(_, metric)| !metric.name.contains('*')) {
            let found = METRICS.iter().position(|row| row.fits(metric.name));
            assert_eq!(found, Some(at), "{}", metric.name);
        }
    }

    #[test]
    fn short_names_and_criteria_are_those_of_the_rows() {
        let names: Vec<&str> = aliases().map(|metric| metric.alias).collect();
        assert_eq!(names, ["cpu", "loss", "p99", "space", "time"]);
        assert_eq!((by_alias("p99"), by_alias("p98")), (Some("latency_p99_ns"), None));
        let columns: Vec<&str> = criteria().iter().map(|column| column[0].criterion).collect();
        assert_eq!(columns, ["time", "tail (p99)", "space", "CPU", "written"]);
    }

    #[test]
    fn a_metrics_name_tells_its_unit_and_its_direction() {
        use {Better::*, Unit::*};
        for (name, unit, direction) in [
            ("after_write_bytes", Bytes, Less),
            ("append_max_ns", Nanoseconds, Less),
            ("append_p99_ns", Nanoseconds, Less),
            ("compression_total_disk_bytes", Bytes, Less),
            ("cpu_net_ns", Nanoseconds, Less),
            ("cpu_system_wide_ns", Nanoseconds, Neither),
            ("device_flushes", Count, Less),
            ("device_read_requests", Count, Less),
            ("done_per_second", PerSecond, Neither),
            ("done_times", Count, Neither),
            ("durable_ns", Nanoseconds, Less),
            ("foreign_cpu_ns", Nanoseconds, Neither),
            ("generator_late_ns", Nanoseconds, Neither),
            ("latency_operations", Count, Neither),
            ("latency_p999_ns", Nanoseconds, Less),
            ("layout_adjacent_share", Share, More),
            ("layout_fragments_mean", Count, Less),
            ("layout_fragments_p99", Count, Less),
            ("peak_write_bytes_per_second", BytesPerSecond, Neither),
            ("pressure_io_full_ns", Nanoseconds, Less),
            ("ran_bytes", Bytes, Neither),
            ("returned_ns", Nanoseconds, Less),
            ("space_apparent_bytes", Bytes, Neither),
            ("space_entries", Count, Neither),
            ("space_files", Count, Neither),
            ("space_free_bytes", Bytes, More),
            ("space_grown_bytes", Bytes, Less),
            ("space_total_bytes", Bytes, Neither),
            ("steady_rate_bytes_per_second", BytesPerSecond, More),
            ("swap_in_pages", Count, Less),
            ("sync_busy_ns", Nanoseconds, Less),
            ("sync_write_bytes", Bytes, Less),
            ("time_ns", Nanoseconds, Less),
            ("transactions_per_second", PerSecond, More),
            ("removed_files_per_second", PerSecond, More),
            ("work_bytes_per_second", BytesPerSecond, More),
            ("work_files", Count, Neither),
        ] {
            assert_eq!((Unit::of_metric(name), better(name)), (unit, direction), "{name}");
        }
    }

    /// What workloads say, after `.say(` in crates/target/src/workload. `{direction}` is a
    /// direction's name.
    const SAID: &[(&str, Unit, Better)] = {
        use {Better::*, Unit::*};
        &[
            ("broken_promise_cuts", Count, Less),
            ("bytes_per_second", BytesPerSecond, More),
            ("connecting_ns", Nanoseconds, Less),
            ("copied_bytes_per_second", BytesPerSecond, More),
            ("cpu_share", Share, Less),
            ("damaged_content_cuts", Count, Less),
            ("deadlocked_transactions", Count, Less),
            ("differing_calls", Count, Less),
            ("done_cuts", Count, Neither),
            ("done_images", Count, Neither),
            ("done_per_second", PerSecond, Neither),
            ("done_promise_cuts", Count, Neither),
            ("done_share", Share, Neither),
            ("duplicate_bytes", Bytes, Neither),
            ("entries_per_second", PerSecond, More),
            ("filled_bytes", Bytes, More),
            ("fragments_after_count", Count, Less),
            ("fragments_before_count", Count, Neither),
            ("free_when_full_bytes", Bytes, Neither),
            ("freed_bytes", Bytes, More),
            ("fsck_error_cuts", Count, Less),
            ("generator_late_ns", Nanoseconds, Neither),
            ("image_before_bytes", Bytes, Neither),
            ("image_bytes", Bytes, Less),
            ("inconsistent_cuts", Count, Less),
            ("inner_read_bytes", Bytes, Neither),
            ("inner_write_bytes", Bytes, Neither),
            ("late_start_share", Share, Less),
            ("latency_max_ns", Nanoseconds, Less),
            ("left_out_calls", Count, Less),
            ("loss_p95_ns", Nanoseconds, Less),
            ("lost_transactions", Count, Less),
            ("operations_per_second", PerSecond, More),
            ("other_length_calls", Count, Less),
            ("over_100ms_share", Share, Less),
            ("over_1s_share", Share, Less),
            ("ran_ns", Nanoseconds, Neither),
            ("recovery_max_ns", Nanoseconds, Less),
            ("refused_count", Count, Less),
            ("replaced_calls", Count, Less),
            ("replayed_operations", Count, Neither),
            ("snapshots_exclusive_bytes", Bytes, Neither),
            ("source_read_bytes", Bytes, Less),
            ("source_read_bytes_per_second", BytesPerSecond, More),
            ("stall_ns", Nanoseconds, Less),
            ("target_write_bytes_per_second", BytesPerSecond, More),
            ("time_ns", Nanoseconds, Less),
            ("transactions_per_second", PerSecond, More),
            ("transactions_with_connections_per_second", PerSecond, More),
            ("unmountable_cuts", Count, Less),
            ("work_transactions", Count, Neither),
            ("write_amplification", Count, Less),
            ("{direction}_bytes_per_second", BytesPerSecond, More),
            ("{direction}_operations_per_second", PerSecond, More),
        ]
    };

    #[test]
    fn all_that_workloads_say_has_a_unit_and_a_direction() {
        for &(name, unit, direction) in SAID {
            assert_eq!((Unit::of_metric(name), better(name)), (unit, direction), "{name}");
        }
        let mut said: Vec<String> = Vec::new();
        for entry in walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/src/workload")) {
            let entry = entry.unwrap();
            let (kind, path) = (entry.path().extension().unwrap_or_default(), entry.path());
            // What plays recipes says what these do.
            let is_in = |name: &str| path.parent().is_some_and(|folder| folder.ends_with(name));
            match kind.to_str() {
                Some("rs") if !is_in("recipe") => said.extend(metrics_in(&std::fs::read_to_string(path).unwrap())),
                Some("toml") if is_in("recipes") => said.extend(metrics_of(&std::fs::read_to_string(path).unwrap())),
                _ => {}
            }
        }
        said.sort();
        said.dedup();
        assert_eq!(said, SAID.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn latencies_are_times_of_which_less_is_better() {
        use {Better::*, Unit::*};
        // `work` is the processor's, which no file system does better.
        let named =
            [("latency", Less), ("lstat", Less), ("read", Less), ("readdir", Less), ("sync", Less), ("work", Neither)];
        for (operation, direction) in named {
            for what in ["mean", "max", "p50", "p90", "p99", "p999"] {
                let name = format!("{operation}_{what}_ns");
                assert_eq!((Unit::of_metric(&name), better(&name)), (Nanoseconds, direction), "{name}");
            }
            let count = format!("{operation}_operations");
            assert_eq!((Unit::of_metric(&count), better(&count)), (Count, Neither), "{count}");
        }
    }

    fn metrics_of(recipe: &str) -> Vec<String> {
        let recipe = crate::plan::recipe::read_once(recipe, "").expect("a recipe");
        let parts = recipe.phases.iter().flat_map(|phase| &phase.parts).flat_map(|part| &part.metrics);
        let named =
            recipe.phases.iter().flat_map(|phase| &phase.metrics).chain(parts).filter(|figure| !figure.is_inner);
        let named = named.map(|figure| figure.name.to_string());
        named.filter(|name| !["", "time_ns", "units_count"].contains(&name.as_str())).collect()
    }

    /// The last text among the arguments of each `.say(`; before it may stand the phase.
    fn metrics_in(source: &str) -> Vec<String> {
        source.split(".say(").skip(1).map(|rest| last_text(arguments(rest))).collect()
    }

    /// Up to the closing parenthesis.
    fn arguments(rest: &str) -> &str {
        let mut open = 1;
        let end = rest.find(|c: char| {
            open += i32::from(c == '(') - i32::from(c == ')');
            open == 0
        });
        &rest[..end.expect("a call is closed")]
    }

    fn last_text(arguments: &str) -> String {
        let texts: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
        texts.last().unwrap_or_else(|| panic!("no metric in .say({arguments})")).to_string()
    }
}
