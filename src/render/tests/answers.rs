//! One answer in all places: sentences, rows, exports and `choices` of journals that were cut short anywhere.

use super::*;
use std::path::Path;

/// The model of what a journal says up to each end of a cell and each look.
fn at_every_cut(journal: &Path, each: &mut dyn FnMut(&Model)) {
    let mut folded = journal::Folded::default();
    for line in std::fs::read_to_string(journal).unwrap().lines() {
        let Ok(record) = serde_json::from_str::<Record>(line) else { continue };
        let tells = matches!(record, Record::End(_) | Record::Look(_));
        folded.take(record);
        if tells {
            each(&model(&folded).unwrap());
        }
    }
}

/// Each other target is slower, and each has a bound.
fn assert_fastest_is_so(model: &Model) {
    for work in model.works.iter().chain(model.overall.iter().map(|overall| &overall.work)) {
        let said = work.headline(model);
        let Some(race) = work.phases.first().and_then(|panel| panel.race.as_ref()) else {
            assert!(!said.contains("fastest"), "{said}");
            continue;
        };
        let others = || (0..model.targets.len()).filter(|at| *at != race.pick && !model.targets[*at].duplicate);
        let is_known = |at: usize| work.ranked.contains(&at) && race.slower.contains(&at);
        let may_be_said = race.bound() == 0.0 && others().all(is_known);
        assert!(may_be_said || !said.contains("fastest (95 %)"), "{said}");
    }
}

/// Before the first look some targets have three rounds and some have two.
#[test]
fn no_target_is_the_fastest_before_all_are_known() {
    at_every_cut(Path::new("tests/fixtures/journals/default-run.jsonl"), &mut assert_fastest_is_so);
}

/// Three rounds of all but one target, which has two: the others are compared.
#[test]
fn a_target_with_too_few_rounds_leaves_the_others_their_bounds() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(3, &[1.0, 1.4]);
    (1..=2).for_each(|round| lab.cell(2, round, 0.5));
    let model = lab.model();
    let (work, said) = (&model.works[0], headline(&model));
    let race = work.phases[0].race.as_ref().expect("two are compared");
    assert!(race.bound().is_finite() && said.starts_with("Too early to say"), "{said}");
    assert!(said.contains("Not ranked: btrfs"), "{said}");
    assert_eq!(work.notes(&model), ["btrfs is not ranked: too few rounds to compare (2)"]);
}
