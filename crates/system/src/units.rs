//! Numbers with units: read and printed in one place, so that "20 GiB" means the same in a plan, on
//! the command line and in a report. Sizes are bytes, times are nanoseconds, both integers; k, M, G
//! ... are powers of 1024, as fio users expect.

/// Bytes from "20GiB", "64M", "4k", "512", "2.5 GB" (all powers of 1024).
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        "e" | "eb" | "eib" => 60,
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

/// What a metric's value counts, shown by the end of its name: `durable_ns`, `device_read_bytes`,
/// `files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Bytes,
    BytesPerSecond,
    /// Things a second.
    PerSecond,
    /// A share of one, printed in percent.
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
    let shown = match seconds.abs() {
        s if s >= 7200.0 => format!("{:.1} h", seconds / 3600.0),
        s if s >= 120.0 => format!("{:.1} min", seconds / 60.0),
        s if s >= 1.0 => format!("{} s", three_digits(seconds)),
        s if s >= 1e-3 => format!("{} ms", three_digits(seconds * 1e3)),
        _ => format!("{} µs", three_digits(seconds * 1e6)),
    };
    shown.replace('-', "−")
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
        for text in ["", "GiB", "4kibib", "4bbb", "4ib", "4 parsecs", "-1k", "0", "99999999999T", "1e9"] {
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
    fn people_read_three_digits() {
        assert_eq!(show_bytes(1536.0), "1.50 KiB");
        assert_eq!(show_bytes(999.0), "999 B");
        assert_eq!(show_duration(1.5e9), "1.50 s");
        assert_eq!(show_duration(2.5e6), "2.50 ms");
        assert_eq!(show_duration(-160.0), "−0.16 µs");
        assert_eq!(Unit::of_metric("device_read_bytes").show(2_097_152.0), "2.00 MiB");
    }
}
