//! The same compared with the same, through the whole of pickfs: a target called slower here is
//! noise that was believed.

use crate::common::{Lab, not_run, unable};
use pickfs_host::analysis::{self, Model};

/// Two targets that differ in nothing but their name, and the hidden duplicate of the first.
fn targets(backing: &str) -> String {
    let target =
        |name: &str| format!("[[target]]\nname = \"{name}\"\nfs = \"ext4\"\nbacking = {{ memory = \"{backing}\" }}\n");
    target("one") + &target("other")
}

fn born(lab: &Lab) -> String {
    lab.born_with("one", 60) + &lab.born_with("other", 60) + "[[work]]\nworkload = \"meta.read\"\n"
}

fn tree(_: &Lab) -> String {
    targets("64MiB") + "[[work]]\nworkload = \"tree\"\nfiles = 60\nbytes = \"4MiB\"\n"
}

/// Runs the plan and prints a line of what was said: rounds, why it ended, the verdict, the ratio
/// of the two. True if one is called slower: the pick alone is no error, as either of two equals
/// may be picked.
fn names_one_as_slower(number: usize, plan: fn(&Lab) -> String, stop: &str) -> bool {
    let lab = Lab::new();
    lab.run_plan(&format!("seed = {number}\n{}{stop}", plan(&lab))).code(0);
    lab.assert_nothing_left();
    let folded = lab.folded();
    let model = analysis::model(&folded).expect("the report is made");
    let end = folded.looks.last().and_then(|look| look.end).map_or("-".to_string(), |end| format!("{end:?}"));
    let work = &model.works[0];
    let kind = format!("{:?}", work.verdict.kind);
    let race = work.phases[0].race.as_ref().expect("enough rounds for a race");
    println!(
        "{number:>3}  {:>2} rounds  {end:<9} {kind:<12} {}, slower: {:?}",
        work.rounds,
        ratio(&model),
        race.slower
    );
    !race.slower.is_empty()
}

fn ratio(model: &Model) -> String {
    let panel = &model.works[0].phases[0];
    let row = panel.rows.iter().find(|row| model.targets[row.target].name == "other");
    let shown = row.and_then(|row| row.against.as_ref()).map_or("no ratio".to_string(), |against| against.ratio());
    format!("{shown}, {}", model.works[0].noise_floor(model))
}

fn false_differences(count: usize, plan: fn(&Lab) -> String, stop: &str) -> usize {
    (1..=count).filter(|number| names_one_as_slower(*number, plan, stop)).count()
}

/// Each names one in at most 5 %, so two of four do in at most 1.4 %.
#[test]
fn four_comparisons_of_the_same_call_at_most_one_slower() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    assert!(false_differences(4, born, "[stop]\nrounds = 8\n") <= 1);
}

#[test]
#[ignore = "takes minutes: cargo test --test end-to-end same:: -- --ignored --nocapture"]
fn twenty_comparisons_of_the_same_work_call_at_most_one_slower() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    assert!(false_differences(20, born, "") <= 1);
}

/// A whole day's work writes, so that the layout and the flusher have a say.
#[test]
#[ignore = "takes minutes: cargo test --test end-to-end same:: -- --ignored --nocapture"]
fn twenty_comparisons_of_the_same_tree_call_at_most_one_slower() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    assert!(false_differences(20, tree, "") <= 1);
}
