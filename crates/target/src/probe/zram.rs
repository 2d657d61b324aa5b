//! What a disk in compressed memory (zram) holds, and the memory that it takes: its `mm_stat`
//! (kernel documentation, admin-guide/blockdev/zram.rst).

use super::{Probe, Reading, Subject, state};
use pickfs_system::sys::devices;

pub(super) const PROBE: Probe = Probe {
    name: "zram",
    about: "of disks in compressed memory: bytes held, compressed, and the memory they take",
    read,
    only_after_writing: false,
};

fn read(subject: &Subject) -> Vec<Reading> {
    let own = subject.devices();
    let below = own.iter().flat_map(|device| devices::all_below(*device));
    let mut disks: Vec<(u32, u32)> = own.iter().copied().chain(below).collect();
    disks.sort_unstable();
    disks.dedup();
    let shown = disks.into_iter().filter_map(|disk| devices::content(devices::sys_path(disk).join("mm_stat")));
    readings(shown)
}

/// The sum of all disks: data, in which pages of one repeated word count too, compressed, and with
/// what the allocator takes.
fn readings(shown: impl Iterator<Item = String>) -> Vec<Reading> {
    let first_three = |line: String| -> Option<[f64; 3]> {
        let mut numbers = line.split_whitespace().map(str::parse);
        Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
    };
    let sum = shown.filter_map(first_three).reduce(|sum, more| [0, 1, 2].map(|at| sum[at] + more[at]));
    let names = ["zram_data_bytes", "zram_compressed_bytes", "zram_memory_bytes"];
    sum.into_iter().flat_map(|sum| names.into_iter().zip(sum)).map(|(name, value)| state(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_added_up() {
        let line = "38121472 24301829 25214976        0 25214976       33        0      111      111".to_string();
        let found = readings([line.clone(), line].into_iter());
        let values: Vec<(&str, f64)> = found.iter().map(|one| (one.metric.as_str(), one.value)).collect();
        assert_eq!(
            values,
            [
                ("zram_data_bytes", 76_242_944.0),
                ("zram_compressed_bytes", 48_603_658.0),
                ("zram_memory_bytes", 50_429_952.0)
            ]
        );
        assert_eq!(readings(std::iter::empty()), []);
        assert_eq!(readings(std::iter::once("no numbers".to_string())), []);
    }
}
