//! Pressure stall information: how long some or all tasks waited for CPU, memory or I/O (kernel
//! documentation, accounting/psi.rst). Of the whole system, so foreign work shows here too. The
//! `procfs` crate wants two lines, of which kernels before 5.13 have one for the CPU.

use super::{Probe, Reading, Subject, counter};

pub(super) const PROBE: Probe = Probe {
    name: "pressure",
    about: "time that some or all tasks were stalled for CPU, memory or I/O, where the kernel has PSI",
    read,
    only_after_writing: false,
};

fn read(_subject: &Subject) -> Vec<Reading> {
    let of = |resource: &str| {
        let text = std::fs::read_to_string(format!("/proc/pressure/{resource}")).unwrap_or_default();
        readings(resource, &text)
    };
    ["cpu", "memory", "io"].into_iter().flat_map(of).collect()
}

/// Lines are `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, the total in microseconds.
fn readings(resource: &str, text: &str) -> Vec<Reading> {
    let reading = |line: &str| {
        let who = line.split(' ').next().filter(|who| ["some", "full"].contains(who))?;
        let microseconds: u64 = line.rsplit_once("total=")?.1.trim().parse().ok()?;
        Some(counter(format!("pressure_{resource}_{who}_ns"), (microseconds * 1000) as f64))
    };
    text.lines().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_become_nanoseconds() {
        let text =
            "some avg10=1.00 avg60=0.30 avg300=0.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let expected = [counter("pressure_io_some_ns", 12_345_000.0), counter("pressure_io_full_ns", 7000.0)];
        assert_eq!(readings("io", text), expected);
        assert_eq!(readings("io", ""), []);
        assert_eq!(readings("io", "odd total=5\nsome total=x"), []);
    }
}
