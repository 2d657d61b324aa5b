//! Options of file systems, as given to mkfs and as facts show them.

use super::Facts;
use pickfs_core::plan::{Tunable, TunableKind, TunableValue, Tunables};

/// Values that mkfs was asked for, and that the driver's facts do not show.
pub(super) fn mismatches(tunables: Tunables, mkfs: &[String], facts: &Facts) -> Vec<String> {
    if mkfs.is_empty() {
        return Vec::new();
    }
    let tunables = tunables.rows();
    let is_of_mkfs = |tunable: &&Tunable| matches!(tunable.kind, TunableKind::Mkfs | TunableKind::MkfsList);
    let values =
        tunables.iter().filter(is_of_mkfs).flat_map(|tunable| tunable.values.iter().map(move |v| (tunable, v)));
    let asked: Vec<_> = values.filter(|(_, value)| is_asked(value.words, mkfs)).collect();
    let is_free = |tunable: &Tunable| asked.iter().all(|(_, value)| !value.excludes.contains(&tunable.name));
    let differs = |(tunable, value): &&(&Tunable, &TunableValue)| {
        is_free(tunable) && facts.get(tunable.fact).is_some_and(|fact| !value.shown.agrees(fact))
    };
    let sentence = |(tunable, value): &(&Tunable, &TunableValue)| {
        format!("asked mkfs for {}, {} shows another {}", value.words.join(" "), tunable.fact, tunable.name)
    };
    asked.iter().filter(differs).map(sentence).collect()
}

/// Whether all words stand among those of mkfs; lists may hold more.
fn is_asked(words: &[&str], mkfs: &[String]) -> bool {
    let has = |pair: &[&str]| match pair {
        [option, list] => list.split(',').all(|one| {
            mkfs.windows(2).any(|given| given[0] == *option && given[1].split(',').any(|other| other == one))
        }),
        [word] => mkfs.iter().any(|given| given == word),
        _ => false,
    };
    !words.is_empty() && words.chunks(2).all(has)
}

#[cfg(test)]
mod tests {
    use super::super::{ALL, find};
    use super::*;
    use crate::stack::{MACHINE, layer};
    use pickfs_core::plan::TunableDefault::{Depends, Is};
    use pickfs_core::plan::Weakened::Durability;

    /// Each in its list sorted by name, mkfs first; what is said is said.
    #[test]
    fn every_tunable_is_whole() {
        let of_layers = layer::ALL.iter().flat_map(|layer| layer.tunables.rows());
        let of_machine: Vec<Tunable> = MACHINE.rows().iter().chain(of_layers).copied().collect();
        let lists = ALL.iter().map(|driver| driver.tunables.rows()).chain([&of_machine[..]]);
        let lists = lists.filter(|list| !list.is_empty());
        for list in lists {
            for tunable in list {
                let (name, values) = (tunable.name, tunable.values);
                let said = [name, tunable.about, tunable.source];
                assert!(said.iter().all(|text| !text.is_empty()), "{name}: {said:?}");
                match tunable.default {
                    Is(default) => assert!(tunable.value(default).is_some(), "{name}: {default}"),
                    Depends(words) => assert!(!words.is_empty(), "{name}: no default"),
                }
                let is_default = |value: &TunableValue| tunable.default == Is(value.name);
                let idle = values.iter().filter(|value| value.words.is_empty() && !is_default(value));
                assert_eq!(idle.count(), 0, "{name}: a value without words");
                assert!(tunable.others().next().is_some(), "{name}: nothing to try");
                let names: std::collections::BTreeSet<_> = values.iter().map(|value| value.name).collect();
                assert_eq!(names.len(), values.len(), "{name}: a value twice");
                let others = values.iter().flat_map(|value| value.excludes);
                others.for_each(|other| assert!(list.iter().any(|one| one.name == *other), "{name}: {other}"));
                assert!(!values.iter().any(|value| is_default(value) && value.weakens.is_some()), "{name}");
            }
            let key = |tunable: &Tunable| (tunable.kind.word(), tunable.name);
            assert!(list.windows(2).all(|pair| key(&pair[0]).0 != key(&pair[1]).0 || key(&pair[0]) < key(&pair[1])));
            let names: std::collections::BTreeSet<_> = list.iter().map(|tunable| tunable.name).collect();
            assert_eq!(names.len(), list.len());
            assert!(std::ptr::eq(list, &of_machine[..]) || of_machine.iter().all(|one| !names.contains(one.name)));
        }
    }

    /// A report marks what the driver knows as weaker, and a tuning leaves out what its row says:
    /// they must agree.
    #[test]
    fn mount_options_weaken_as_their_driver_says() {
        for driver in ALL.iter() {
            for tunable in driver.tunables.rows().iter().filter(|tunable| tunable.kind == TunableKind::Mount) {
                for value in tunable.values {
                    let weak = value.words.iter().any(|option| driver.mounting.weakens(option));
                    let said = matches!(value.weakens, Some((Durability, _)));
                    assert_eq!(weak, said, "{} {} {}", driver.name, tunable.name, value.name);
                }
            }
        }
    }

    /// A cell without `discard` is mounted with the option against discards, which no value of a
    /// tunable may need.
    #[test]
    fn what_a_value_needs_is_asked_for() {
        for tunable in find("f2fs").unwrap().tunables.rows().iter().filter(|tunable| tunable.name == "discard_unit") {
            assert!(tunable.values.iter().all(|value| value.words.contains(&"discard")), "{:?}", tunable.values);
        }
        // bch2_remount() in fs/bcachefs/fs.c of Linux 6.12 takes none of its own options.
        let rows = find("bcachefs").unwrap().tunables.rows().iter();
        let remounted = rows.filter(|tunable| tunable.change.words().contains("remount")).map(|tunable| tunable.name);
        assert_eq!(remounted.collect::<Vec<_>>(), ["atime"]);
    }

    #[test]
    fn what_mkfs_did_not_do_is_a_mismatch() {
        let text = "Filesystem features: has_journal extent,  fast_commit\nInode size:\t          256\n";
        let facts = Facts::from([("dumpe2fs".to_string(), text.to_string())]);
        for (mkfs, wrong) in [
            ("-I 256", 0),
            ("-I 128", 1),
            ("-O fast_commit", 0),
            ("-O ^metadata_csum,fast_commit", 0),
            ("-O ^has_journal,^metadata_csum", 1),
            ("-O inline_data -I 512", 2),
            ("-L label", 0),
            ("-i 4096", 0),
        ] {
            let words: Vec<String> = mkfs.split(' ').map(String::from).collect();
            assert_eq!(mismatches(find("ext4").unwrap().tunables, &words, &facts).len(), wrong, "{mkfs}");
        }
        // Mixed groups have small nodes, whatever is asked.
        let facts = Facts::from([("btrfs super block".to_string(), "nodesize 4096 ( MIXED_GROUPS )".to_string())]);
        let words: Vec<String> = ["-n", "16384", "-M"].map(String::from).to_vec();
        assert!(mismatches(find("btrfs").unwrap().tunables, &words, &facts).is_empty());
        assert_eq!(mismatches(find("btrfs").unwrap().tunables, &words[..2], &facts).len(), 1);
    }
}
