//! Swapping: a phase in which memory was swapped measured the swap device too.

use super::{Probe, Reading, Subject, counter};
use std::collections::HashMap;

pub(super) const PROBE: Probe =
    Probe { name: "swap", about: "pages swapped in and out, from /proc/vmstat", read, only_after_writing: false };

fn read(_subject: &Subject) -> Vec<Reading> {
    readings(&procfs::vmstat().unwrap_or_default())
}

fn readings(vmstat: &HashMap<String, i64>) -> Vec<Reading> {
    let reading = |(field, metric)| Some(counter(metric, *vmstat.get(field)? as f64));
    [("pswpin", "swap_in_pages"), ("pswpout", "swap_out_pages")].into_iter().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromBufRead;

    #[test]
    fn two_counters_of_many() {
        let text = "pgpgin 99\npswpin 3\npswpout 14\npswpout_x 5\n";
        let expected = [counter("swap_in_pages", 3.0), counter("swap_out_pages", 14.0)];
        assert_eq!(readings(&procfs::VmStat::from_buf_read(text.as_bytes()).unwrap().0), expected);
        assert_eq!(readings(&HashMap::new()), []);
    }
}
