//! Swapping: a phase in which memory was swapped measured the swap device too.

use super::{Probe, Reading, Subject, counter};

pub struct Memory;

impl Probe for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "pages swapped in and out, from /proc/vmstat"
    }

    fn read(&self, _subject: &Subject) -> Vec<Reading> {
        readings(&std::fs::read_to_string("/proc/vmstat").unwrap_or_default())
    }
}

fn readings(vmstat: &str) -> Vec<Reading> {
    let metric = |name: &str| match name {
        "pswpin" => Some("swap_in_pages"),
        "pswpout" => Some("swap_out_pages"),
        _ => None,
    };
    let reading = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some(counter(metric(name)?, value.trim().parse().ok()?))
    };
    vmstat.lines().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_counters_of_many() {
        let expected = [counter("swap_in_pages", 3.0), counter("swap_out_pages", 14.0)];
        assert_eq!(readings("pgpgin 99\npswpin 3\npswpout 14\npswpout_x 5\n"), expected);
        assert_eq!(readings(""), []);
    }
}
