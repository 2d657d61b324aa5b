//! Numbers with units: read and printed in one place, so that "20 GiB" means the same in a plan, on the command line
//! and in a report. Sizes are bytes, times are nanoseconds, both integers; k, M, G ... are powers of 1024, as fio
//! users expect.
//!
//! Must not know: `journal`, `plan`, `render`, `stats`.

/// Bytes from "20GiB", "64M", "4k", "512", "2.5 GB" (all powers of 1024).
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let shift = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        "e" => 60,
        _ => return Err(format!("`{text}` is not a size; write it like 64MiB or 20GiB")),
    };
    positive(number * (1u64 << shift) as f64, text)
}

/// Nanoseconds from "90s", "5m", "2h", "1.5h", "250ms".
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "µs" | "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(format!("`{text}` is not a duration; write it like 90s, 5m or 2h")),
    };
    positive(number * seconds * 1e9, text)
}

/// A share of one from "3%" or "0.03".
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    match unit {
        "%" => Ok(number / 100.0),
        "" if number < 1.0 => Ok(number),
        _ => Err(format!("`{text}` is not a share; write it like 3%")),
    }
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    Ok((number, text[end..].trim()))
}

fn positive(value: f64, text: &str) -> Result<u64, String> {
    if !(1.0..9e18).contains(&value) {
        return Err(format!("`{text}` is out of range"));
    }
    Ok(value.round() as u64)
}

/// What a metric's value counts, told by the end of its name: `durable_ns`, `device_read_bytes`, `files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Bytes,
    BytesPerSecond,
    /// Things a second.
    PerSecond,
    /// Of one, printed in percent.
    Share,
    Count,
}

impl Unit {
    pub fn of_metric(name: &str) -> Unit {
        match name {
            _ if name.ends_with("_ns") => Unit::Nanoseconds,
            _ if name.ends_with("bytes_per_second") => Unit::BytesPerSecond,
            _ if name.ends_with("_per_second") => Unit::PerSecond,
            _ if name.ends_with("_bytes") => Unit::Bytes,
            _ if name.ends_with("_share") => Unit::Share,
            _ => Unit::Count,
        }
    }

    /// Three significant digits with a unit, for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Nanoseconds => show_duration(value),
            Unit::Bytes => show_bytes(value),
            Unit::BytesPerSecond => format!("{}/s", show_bytes(value)),
            Unit::PerSecond => format!("{}/s", show_count(value)),
            Unit::Share => show_share(value),
            Unit::Count => show_count(value),
        }
    }
}

/// Which way a metric is good, told by its name too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Less,
    More,
    /// It says what was done, or what else went on.
    Neither,
}

impl Better {
    pub fn of_metric(name: &str) -> Better {
        let says_what_was_done = ["done_", "foreign_", "generator_", "peak_", "ran_", "steady_cut", "work_"];
        match name {
            _ if says_what_was_done.iter().any(|start| name.starts_with(start)) => Better::Neither,
            "space_apparent_bytes" | "space_entries" | "space_files" | "space_total_bytes" => Better::Neither,
            "space_free_bytes" => Better::More,
            _ if name.ends_with("_operations") => Better::Neither,
            _ if name.ends_with("_per_second") || name.ends_with("_adjacent_share") => Better::More,
            _ => Better::Less,
        }
    }
}

/// "1.25 GiB" from bytes.
pub fn show_bytes(bytes: f64) -> String {
    const NAMES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes;
    let mut name = 0;
    while value.abs() >= 1000.0 && name + 1 < NAMES.len() {
        value /= 1024.0;
        name += 1;
    }
    if name == 0 { format!("{value:.0} B") } else { format!("{} {}", three_digits(value), NAMES[name]) }
}

/// "1.25 s", "3.1 min" from nanoseconds.
pub fn show_duration(ns: f64) -> String {
    let seconds = ns / 1e9;
    match seconds.abs() {
        s if s >= 7200.0 => format!("{:.1} h", seconds / 3600.0),
        s if s >= 120.0 => format!("{:.1} min", seconds / 60.0),
        s if s >= 1.0 => format!("{} s", three_digits(seconds)),
        s if s >= 1e-3 => format!("{} ms", three_digits(seconds * 1e3)),
        _ => format!("{} µs", three_digits(seconds * 1e6)),
    }
}

/// "8.0 %" from a share of one.
pub fn show_share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn show_count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { three_digits(value) }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [("4k", 4096), ("64MiB", 64 << 20), ("1.5 GB", 3 << 29), ("512", 512), ("2T", 2 << 40)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "4 parsecs", "-1k", "0", "99999999999T", "1e9"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_nanoseconds() {
        for (text, ns) in [("90s", 90_000_000_000), ("2h", 7_200_000_000_000), ("250ms", 250_000_000)] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
        for text in ["90", "s", "5 fortnights", "0s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_of_one() {
        assert_eq!(parse_share("3%"), Ok(0.03));
        assert_eq!(parse_share("0.5"), Ok(0.5));
        assert!(parse_share("3").is_err());
    }

    #[test]
    fn a_metrics_name_tells_its_unit_and_its_direction() {
        use super::{Better::*, Unit::*};
        for (name, unit, better) in [
            ("after_write_bytes", Bytes, Less),
            ("append_max_ns", Nanoseconds, Less),
            ("append_p99_ns", Nanoseconds, Less),
            ("compression_total_disk_bytes", Bytes, Less),
            ("cpu_system_wide_ns", Nanoseconds, Less),
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
            ("work_bytes_per_second", BytesPerSecond, Neither),
            ("work_files", Count, Neither),
        ] {
            assert_eq!((Unit::of_metric(name), Better::of_metric(name)), (unit, better), "{name}");
        }
    }

    /// What workloads say, after `.say(` in src/workload. `{direction}` is a direction's name.
    const SAID: [(&str, Unit, Better); 23] = {
        use super::{Better::*, Unit::*};
        [
            ("bytes_per_second", BytesPerSecond, More),
            ("connecting_ns", Nanoseconds, Less),
            ("copied_bytes_per_second", BytesPerSecond, More),
            ("cpu_share", Share, Less),
            ("done_per_second", PerSecond, Neither),
            ("done_share", Share, Neither),
            ("entries_per_second", PerSecond, More),
            ("generator_late_ns", Nanoseconds, Neither),
            ("late_start_share", Share, Less),
            ("latency_max_ns", Nanoseconds, Less),
            ("operations_per_second", PerSecond, More),
            ("over_100ms_share", Share, Less),
            ("over_1s_share", Share, Less),
            ("ran_ns", Nanoseconds, Neither),
            ("source_read_bytes", Bytes, Less),
            ("source_read_bytes_per_second", BytesPerSecond, More),
            ("stall_ns", Nanoseconds, Less),
            ("target_write_bytes_per_second", BytesPerSecond, More),
            ("transactions_per_second", PerSecond, More),
            ("transactions_with_connections_per_second", PerSecond, More),
            ("work_transactions", Count, Neither),
            ("{direction}_bytes_per_second", BytesPerSecond, More),
            ("{direction}_operations_per_second", PerSecond, More),
        ]
    };

    #[test]
    fn all_that_workloads_say_has_a_unit_and_a_direction() {
        for (name, unit, better) in SAID {
            assert_eq!((Unit::of_metric(name), Better::of_metric(name)), (unit, better), "{name}");
        }
        let mut said: Vec<String> = Vec::new();
        for entry in walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/workload")) {
            let entry = entry.unwrap();
            if entry.path().extension().is_some_and(|kind| kind == "rs") {
                said.extend(metrics_in(&std::fs::read_to_string(entry.path()).unwrap()));
            }
        }
        said.sort();
        said.dedup();
        assert_eq!(said, SAID.map(|(name, ..)| name));
    }

    #[test]
    fn latencies_are_times_of_which_less_is_better() {
        use super::{Better::*, Unit::*};
        // `work` is the processor's, which no file system does better.
        let named =
            [("latency", Less), ("lstat", Less), ("read", Less), ("readdir", Less), ("sync", Less), ("work", Neither)];
        for (operation, better) in named {
            for what in ["mean", "max", "p50", "p90", "p99", "p999"] {
                let name = format!("{operation}_{what}_ns");
                assert_eq!((Unit::of_metric(&name), Better::of_metric(&name)), (Nanoseconds, better), "{name}");
            }
            let count = format!("{operation}_operations");
            assert_eq!((Unit::of_metric(&count), Better::of_metric(&count)), (Count, Neither), "{count}");
        }
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

    #[test]
    fn people_read_three_digits() {
        assert_eq!(show_bytes(1536.0), "1.50 KiB");
        assert_eq!(show_bytes(999.0), "999 B");
        assert_eq!(show_duration(1.5e9), "1.50 s");
        assert_eq!(show_duration(2.5e6), "2.50 ms");
        assert_eq!(Unit::of_metric("device_read_bytes").show(2_097_152.0), "2.00 MiB");
    }
}
