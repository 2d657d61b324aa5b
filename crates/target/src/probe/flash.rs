//! What simulated flash did below its interface: how much it copied to make room, and how much of
//! it holds data.
//!
//! The disk's driver has a file `flash` (`simdisk.c` of the executor `sim`): bytes that hold data,
//! bytes that writes took with padding, bytes that garbage collection copied, and erased blocks.
//! Other disks have no such file.

use super::{Kind, Probe, Reading, Subject, counter};

pub(super) const PROBE: Probe = Probe {
    name: "flash",
    about: "bytes that simulated flash programs, copies and holds, where the plan gives it a `disk_fill`",
    read,
    only_after_writing: false,
};

fn read(subject: &Subject) -> Vec<Reading> {
    let text = |(major, minor): (u32, u32)| std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/flash"));
    let devices = subject.devices();
    let counts = devices.into_iter().filter_map(|device| counts(&text(device).ok()?));
    counts.reduce(|sum, of| std::array::from_fn(|at| sum[at] + of[at])).map(readings).unwrap_or_default()
}

fn counts(text: &str) -> Option<[f64; 4]> {
    let numbers: Option<Vec<f64>> = text.split_ascii_whitespace().map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn readings([valid, written, copied, collected]: [f64; 4]) -> Vec<Reading> {
    vec![
        counter("flash_write_bytes", written),
        counter("flash_copied_bytes", copied),
        counter("flash_collected_blocks", collected),
        Reading { metric: "flash_valid_bytes".to_string(), kind: Kind::State, value: valid },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_numbers_of_the_driver_and_nothing_of_others() {
        assert_eq!(counts("4096 8192 12288 3\n"), Some([4096.0, 8192.0, 12288.0, 3.0]));
        assert_eq!((counts(""), counts("1 2 3\n"), counts("1 2 x 4\n")), (None, None, None));
        let found: Vec<(String, f64)> =
            readings([1.0, 2.0, 3.0, 4.0]).into_iter().map(|r| (r.metric, r.value)).collect();
        let named = |name: &str| found.iter().find(|(metric, _)| metric == name).map(|(_, value)| *value);
        assert_eq!(named("flash_valid_bytes"), Some(1.0));
        assert_eq!(named("flash_copied_bytes"), Some(3.0));
    }
}
