//! The oldest kernel of Linux that can read, or write, a made file system: the newest of the
//! versions that its features need.
//!
//! Distributions carry some features back to older kernels (ext4(5)): an older kernel of theirs may
//! do.

use super::{Facts, Filesystem};
use Needed::{ToRead, ToWrite};
use serde::Deserialize;
use std::cmp::Reverse;

/// What a kernel without a feature cannot do with a file system that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needed {
    /// Mount it (`incompat`).
    ToRead,
    /// Mount it other than read-only (`ro_compat`).
    ToWrite,
}

/// The word of a feature in the driver's facts, or no word for the file system itself; what it is
/// needed for; the first version of Linux that has it.
pub(crate) type Since = (&'static str, Needed, &'static str);

/// Such as `["3.10 (crc=1)", "5.10 (inobtcount=1)"]`: to read, and to write. Nothing where the
/// first kernel of the file system is not known.
pub(crate) fn of(driver: &Filesystem, facts: &Facts) -> Option<[String; 2]> {
    let is_word = |c: char| !(c.is_alphanumeric() || "_=".contains(c));
    let shown: Vec<&str> =
        driver.facts.iter().filter_map(|(name, _)| facts.get(*name)).flat_map(|text| text.split(is_word)).collect();
    let there = |(word, ..): &&Since| word.is_empty() || shown.contains(word);
    let newest = |needed: &[Needed]| {
        let rows = driver.kernel.since.iter().filter(|(_, to, _)| needed.contains(to)).filter(there);
        // If several have one version, the first is named.
        rows.min_by_key(|(_, _, version)| Reverse(numbers(version))).map(|(word, _, version)| match *word {
            "" => version.to_string(),
            word => format!("{version} ({word})"),
        })
    };
    Some([newest(&[ToRead])?, newest(&[ToRead, ToWrite])?])
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ALL, find};
    use super::*;

    #[test]
    fn the_newest_feature_decides() {
        let xfs =
            "meta-data=/dev/x isize=512\n = crc=1 finobt=1, sparse=1, rmapbt=0\n = reflink=1 bigtime=1 inobtcount=1";
        let btrfs = "compat_ro_flags 0x3\n( FREE_SPACE_TREE |\n FREE_SPACE_TREE_VALID )\nincompat_flags 0x341\n( MIXED_BACKREF |\n NO_HOLES )";
        let rows = [
            ("ext4", "dumpe2fs", "Filesystem features: has_journal extent flex_bg", "2.6.28", "2.6.28"),
            ("ext4", "dumpe2fs", "Filesystem features: extent metadata_csum", "2.6.28", "3.18 (metadata_csum)"),
            ("ext4", "dumpe2fs", "Filesystem features: casefold verity", "5.2 (casefold)", "5.4 (verity)"),
            ("xfs", "xfs_info", xfs, "5.10 (bigtime=1)", "5.10 (bigtime=1)"),
            ("xfs", "xfs_info", "crc=1 reflink=1", "3.10 (crc=1)", "4.9 (reflink=1)"),
            ("xfs", "xfs_info", "crc=0", "2.6", "2.6"),
            ("btrfs", "btrfs super block", btrfs, "3.14 (NO_HOLES)", "4.9 (FREE_SPACE_TREE_VALID)"),
        ];
        for (fs, fact, text, read, write) in rows {
            let facts = Facts::from([(fact.to_string(), text.to_string())]);
            assert_eq!(of(find(fs).unwrap(), &facts), Some([read.into(), write.into()]), "{fs}: {text}");
        }
        // What features of f2fs need is not known here, so nothing is said of it.
        assert!(["f2fs", "udf"].iter().all(|fs| of(find(fs).unwrap(), &Facts::new()).is_none()));
    }

    #[test]
    fn versions_are_numbers_and_features_are_newer_than_their_file_system() {
        for fs in ALL.iter() {
            let first = fs.kernel.since.first().map_or(Vec::new(), |(word, _, version)| {
                assert!(word.is_empty(), "{}", fs.name);
                numbers(version)
            });
            assert!(
                fs.kernel.since.iter().all(|(_, _, version)| numbers(version) >= first
                    && version.split('.').all(|part| part.parse::<u32>().is_ok())),
                "{}",
                fs.name
            );
        }
    }
}
