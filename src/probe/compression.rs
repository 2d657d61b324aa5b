//! What btrfs compression saved, as `compsize -b` tells it.
//!
//! The table is of everything below the mount point. It needs root; else there is nothing to read.

use super::{Probe, Reading, Subject, state};
use crate::sys::btrfs::{CompressionTable, Row, TYPES, compression_table};

pub struct Compression;

impl Probe for Compression {
    fn name(&self) -> &'static str {
        "compression"
    }

    fn about(&self) -> &'static str {
        "disk usage, uncompressed and referenced bytes per compression type, and extents, as compsize (btrfs, root)"
    }

    fn read(&self, subject: &Subject) -> Vec<Reading> {
        if subject.filesystem != "btrfs" {
            return Vec::new();
        }
        compression_table(&subject.mount_point).map(|table| readings(&table)).unwrap_or_default()
    }

    fn only_after_writing(&self) -> bool {
        true
    }
}

/// Types without bytes too: a zero is a finding, a missing row would be a question.
fn readings(table: &CompressionTable) -> Vec<Reading> {
    let rows = TYPES.iter().map(|name| (*name, table.rows.get(name).copied().unwrap_or_default()));
    let counts = [
        ("files", table.files),
        ("regular_extents", table.regular_extents),
        ("references", table.references),
        ("inline_extents", table.inline_extents),
    ];
    let counts = counts.map(|(name, count)| state(format!("compression_{name}"), count as f64));
    rows.chain([("total", table.total())]).flat_map(|(name, row)| row_readings(name, row)).chain(counts).collect()
}

fn row_readings(name: &str, row: Row) -> [Reading; 3] {
    let reading = |what: &str, bytes: u64| state(format!("compression_{name}_{what}_bytes"), bytes as f64);
    [
        reading("disk", row.disk_bytes),
        reading("uncompressed", row.uncompressed_bytes),
        reading("referenced", row.referenced_bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_three_metrics_and_there_are_four_counts() {
        let row = Row { disk_bytes: 1, uncompressed_bytes: 2, referenced_bytes: 3 };
        let table = CompressionTable { rows: [("zstd", row)].into(), files: 4, ..CompressionTable::default() };
        let readings = readings(&table);
        assert_eq!(readings.len(), 6 * 3 + 4);
        let value = |metric: &str| readings.iter().find(|r| r.metric == metric).unwrap().value;
        assert_eq!(value("compression_zstd_referenced_bytes"), 3.0);
        assert_eq!(value("compression_total_disk_bytes"), 1.0);
        assert_eq!(value("compression_lzo_disk_bytes"), 0.0);
        assert_eq!(value("compression_files"), 4.0);
    }

    #[test]
    fn other_file_systems_have_none() {
        assert_eq!(Compression.read(&Subject { filesystem: "ext4".into(), ..Subject::default() }), []);
    }
}
