//! Vetoes, verdicts over many parts, trade-offs, the course of a run, and doubts about the machine.

use super::*;
use pickfs_core::journal::{Begin, End, LeaveReason, Leaving, Look, Sample, StopReason};
use pickfs_core::plan::{Limit, VerdictTerm};
use pickfs_stats::Finding;

fn notes(model: &Model) -> String {
    model.works[0].notes(model).join("\n")
}

fn part(phase: &str, amount: f64) -> VerdictTerm {
    VerdictTerm { work: "tree".into(), phase: Some(phase.into()), amount }
}

#[test]
fn one_failed_cell_keeps_a_target_out() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(9, &[1.0, 0.7, 1.4]);
    lab.plan.stop.rounds = Some(10);
    lab.cell(0, 10, 1.0);
    lab.fail(1, 10, Outcome::Failed("no space left".into()));
    lab.cell(2, 10, 1.4);
    let model = lab.model();
    assert!(headline(&model).starts_with("Pick ext4"), "{}", headline(&model));
    assert_eq!(notes(&model), "xfs is not ranked: 1 of 10 cells failed: no space left");
}

#[test]
fn limits_and_features_keep_targets_out_and_say_why() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(8, &[1.0, 0.7, 1.4]);
    for target in 0..3 {
        lab.also(target, "write", "space_grown_bytes", [2e9, 9e9, 1e9][target]);
    }
    for round in 1..=8 {
        lab.provenance(0, round, &[("features", "grow journal")], &[]);
        lab.provenance(1, round, &[("features", "grow snapshots")], &[]);
        lab.provenance(2, round, &[("features", "snapshots")], &[]);
    }
    let limit = |metric: &str, at_most| Limit { phase: None, metric: metric.into(), at_most };
    lab.plan.verdict.limits = vec![limit("space_grown_bytes", 4e9), limit("latency_p99_ns", 1e6)];
    let found = lab.model();
    assert_eq!(
        notes(&found),
        "xfs is not ranked: space is 8.38 GiB, above the limit of 3.73 GiB\nthe limit on latency_p99_ns has \
         no effect: no workload in this run measures it"
    );
    lab.plan.verdict.require = vec!["snapshots".into()];
    let found = lab.model();
    assert!(notes(&found).contains("ext4 is not ranked: it is not known to have snapshots"), "{}", notes(&found));
    assert!(headline(&found).contains("Only btrfs can be ranked: "), "{}", headline(&found));
}

/// A phase that is named and never timed: the works have results, what the plan asks for has none.
#[test]
fn a_verdict_over_what_nobody_has_finished_says_so() {
    let mut lab = Lab::new(&["ext4", "ext4 (again)", "xfs"]);
    lab.plan.targets[1].duplicate = true;
    lab.rounds(8, &[1.0, 1.0, 1.4]);
    lab.plan.verdict.parts = vec![part("nope", 1.0)];
    let model = lab.model();
    let wanted = "No verdict over all work: no target has finished all of it in any round.";
    let overall = model.overall.as_ref().expect("a part is named");
    assert_eq!(
        (headline(&model).as_str(), overall.work.noise_floor(&model).as_str()),
        (wanted, "noise floor unknown: nothing has results")
    );
    assert!(model.headlines()[1].starts_with("tree: Pick ext4"), "{:?}", model.headlines());
}

#[test]
fn a_duplicate_that_fails_is_not_told_to_be_absent() {
    let mut lab = Lab::new(&["ext4", "ext4 (again)", "xfs"]);
    lab.plan.targets[1].duplicate = true;
    for round in 1..=8 {
        lab.cell(0, round, 1.0);
        lab.fail(1, round, Outcome::Failed("no space left".into()));
        lab.cell(2, round, 1.3);
    }
    assert_eq!(
        lab.model().works[0].noise_floor(&lab.model()),
        "noise floor unknown: the duplicate of ext4 has no results"
    );
}

/// xfs writes slowly and reads fast: how often each is done decides.
fn reader_and_writer() -> Lab {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    for round in 1..=8 {
        for (target, [write, read]) in [[1.0, 1.0], [1.5, 0.7]].into_iter().enumerate() {
            let cell = lab.begin(target, round);
            let wobble = 1.0 + 0.001 * f64::from(round);
            lab.sample(&cell, "write", "time_ns", 1e9 * write * wobble);
            lab.sample(&cell, "tar-read", "time_ns", 1e9 * read / wobble);
            lab.end(&cell, Outcome::Done);
        }
    }
    lab
}

#[test]
fn how_often_each_part_is_done_decides() {
    let mut lab = reader_and_writer();
    assert!(lab.model().overall.is_none(), "one whole work is its own verdict");
    lab.plan.verdict.amounts = pickfs_core::plan::Amounts::Counts;
    for (reads, winner, ratio) in [(1.0, "ext4", 1.1), (20.0, "xfs", (1.5 + 14.0) / 21.0)] {
        lab.plan.verdict.parts = vec![part("write", 1.0), part("tar-read", reads)];
        let model = lab.model();
        let overall = model.overall.as_ref().expect("parts are named");
        assert!(headline(&model).starts_with(&format!("Pick {winner}: ")), "{}", headline(&model));
        assert_eq!(overall.made_of(), format!("1 × tree write and {reads} × tree tar-read: their times add"));
        let against = overall.work.phases[0].rows[1].against.as_ref().expect("xfs is compared");
        assert!((against.estimate.ratio / ratio - 1.0).abs() < 0.005, "{}", against.estimate.ratio);
        assert!(text(&model).contains("── all work ──") && rendered(&model, "svg").contains("all work"));
        assert_eq!(model.headlines().len(), 1, "one question has one answer: {:?}", model.headlines());
    }
}

/// xfs fails the work that counts nothing, and takes much space there.
#[test]
fn a_work_that_is_left_out_keeps_nobody_out() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 0.7]);
    let mail = |outcome: Outcome, round| {
        let (cell, at) = (format!("mail-{round}"), String::new());
        let (target, work) = ("xfs".to_string(), "mail".to_string());
        let sample =
            Sample { cell: cell.clone(), phase: "send".into(), metric: "space_grown_bytes".into(), value: 9e9 };
        let begin = Begin { cell: cell.clone(), round, target, work, at: at.clone() };
        [Record::Begin(begin), Record::Sample(sample), Record::End(End { cell, outcome, at })]
    };
    lab.records.extend(mail(Outcome::Failed("no space left".into()), 1));
    lab.records.extend((2..=8).flat_map(|round| mail(Outcome::Done, round)));
    lab.plan.works.push(Work { name: "mail".into(), ..Work::default() });
    lab.plan.verdict.parts = vec![VerdictTerm { work: "tree".into(), phase: None, amount: 1.0 }];
    lab.plan.verdict.limits = vec![Limit { phase: None, metric: "space_grown_bytes".into(), at_most: 4e9 }];
    let model = lab.model();
    assert!(headline(&model).starts_with("Pick xfs"), "{}", headline(&model));
    let notes = &model.overall.as_ref().expect("a part is named").work.notes(&model);
    assert_eq!(*notes, ["the limit on space_grown_bytes has no effect: no workload in this run measures it"]);
    assert_eq!(crate::analysis::look(&lab.plan, &lab.folded(), 8, false).best, ["xfs"]);
}

#[test]
fn weights_that_barely_decide_are_told() {
    let mut lab = reader_and_writer();
    let said = |weights: [f64; 2], lab: &mut Lab| {
        lab.plan.verdict.parts = vec![part("write", weights[0]), part("tar-read", weights[1])];
        let model = lab.model();
        let overall = model.overall.as_ref().expect("parts are named");
        let robustness = overall.robustness.as_ref().expect("two parts");
        let sum: f64 = robustness.shares.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{:?}", robustness.shares);
        (overall.work.headline(&model), robustness.robust, robustness.sentence(&model))
    };
    // ln 1.5 against ln 0.7: even at weights of 0.47 to 0.53.
    let (headline, robust, sentence) = said([1.2, 1.0], &mut lab);
    assert!(headline.starts_with("Pick ext4") && !robust, "{headline} {sentence}");
    assert!(
        sentence.starts_with("not robust: in 75 % of 10000 random variations of the weights and rounds"),
        "{sentence}"
    );
    let (headline, robust, sentence) = said([1.0, 9.0], &mut lab);
    assert!(headline.starts_with("Pick xfs") && robust && sentence.starts_with("robust: "), "{headline} {sentence}");
}

#[test]
fn nobody_is_on_the_front_who_is_beaten_all_round() {
    let mut lab = Lab::new(&["ext4", "fast and fat", "slow and small", "slow and fat"]);
    lab.rounds(8, &[1.0, 0.7, 1.4, 1.5]);
    for (target, bytes) in [2e9, 3e9, 1e9, 3.1e9].into_iter().enumerate() {
        lab.also(target, "write", "space_grown_bytes", bytes);
    }
    let model = lab.model();
    let found = model.criteria.as_ref().expect("three criteria");
    assert_eq!(found.names, ["time", "space", "CPU"]);
    assert_eq!(found.rows.iter().map(|row| row.on_front).collect::<Vec<_>>(), [true, true, true, false]);
    assert!(text(&model).contains("fast and fat *") && !text(&model).contains("slow and fat *"));
}

fn look(round: u32, leaving: &[&str], end: Option<StopReason>, rounds_needed: Option<u32>) -> Record {
    let why = || LeaveReason::SlowerThan("xfs".into());
    let leaving = leaving.iter().map(|name| Leaving { target: name.to_string(), why: why() });
    let (leaving, alpha, needed_ns) = (leaving.collect(), 0.05 / 6.0, rounds_needed.map(|_| 7_200_000_000_000));
    Record::Look(Look { round, alpha, leaving, end, rounds_needed, needed_ns, ..Look::default() })
}

/// It was not there, so nothing of it is missing.
#[test]
fn rounds_after_a_target_has_left_are_not_missing() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(8, &[1.0, 1.0, 1.4]);
    for round in 9..=11 {
        lab.cell(0, round, 1.0);
        lab.cell(1, round, 1.0);
    }
    let rounds = |lab: &Lab| {
        let model = lab.model();
        model.works[0].phases[0].rows[2].figure.as_ref().map(|figure| figure.rounds_shown().clone())
    };
    assert_eq!(rounds(&lab).as_deref(), Some("8, 3 missing"));
    lab.plan.stop.rounds = None;
    lab.records.push(look(8, &["btrfs"], None, None));
    assert_eq!(rounds(&lab).as_deref(), Some("8"));
}

#[test]
fn the_course_says_who_left_and_why_it_ended() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(8, &[1.0, 1.0, 1.4]);
    for round in 9..=11 {
        lab.cell(0, round, 1.0);
        lab.cell(1, round, 1.0);
    }
    lab.plan.stop.rounds = None;
    assert_eq!(lab.model().course(), ["In progress: 11 rounds so far; the next interim analysis is after 12."]);
    lab.records.push(look(8, &["btrfs"], None, None));
    lab.records.push(look(11, &[], Some(StopReason::Budget), Some(123)));
    let model = lab.model();
    assert_eq!(
        model.course(),
        [
            "btrfs was eliminated after 8 rounds: behind xfs",
            "Ended after 11 rounds: the budget is used up; in nine cases of ten 130 rounds \
             in all (2.0 h more) would be enough."
        ]
    );
    assert!(model.holes.is_empty(), "nobody asked btrfs after round 8: {:?}", model.holes);
    assert!(!notes(&model).contains("btrfs"), "{}", notes(&model));
    assert!(!model.works[0].verdict.best.contains(&2), "{}", headline(&model));
}

/// btrfs left because xfs was faster, and xfs failed later: what its own eight rounds bound still
/// holds.
#[test]
fn a_target_that_left_is_judged_by_its_own_rounds_when_its_beater_is_out() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(8, &[1.0, 0.7, 0.9]);
    lab.plan.stop.rounds = None;
    lab.records.push(look(8, &["btrfs"], None, None));
    for round in 9..=11 {
        lab.cell(0, round, 1.0);
        lab.fail(1, round, Outcome::Failed("no space left".into()));
    }
    assert_eq!((lab.model().works[0].verdict.kind, best(&lab.model())), (VerdictKind::Pick, vec!["btrfs"]));
}

/// Looks share the chance of error that a fixed number of rounds has for its one judgement.
#[test]
fn intervals_are_wider_where_results_may_stop_the_run() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(20, &[1.0, 1.1]);
    let half = |lab: &Lab| {
        let model = lab.model();
        let against = model.works[0].phases[0].rows[1].against.as_ref().map(|against| against.estimate.clone());
        against.and_then(|estimate| estimate.half_width()).expect("an interval")
    };
    let fixed = half(&lab);
    lab.plan.stop.rounds = None;
    lab.records.push(look(20, &["ext4"], None, None));
    assert!(half(&lab) > fixed);
    assert!(text(&lab.model()).contains("with its 95 % interval"));
}

fn with_duplicate(factors: &[f64], noise: f64) -> Lab {
    let mut lab = Lab::new(&["ext4", "xfs", "ext4 (again)"]);
    lab.plan.targets[2].duplicate = true;
    lab.noise = noise;
    lab.rounds(10, factors);
    lab
}

#[test]
fn a_reference_unlike_its_copy_makes_the_environment_untrustworthy() {
    let warnings = |lab: &Lab| lab.model().warnings().join("\n");
    let calm = with_duplicate(&[1.0, 1.2, 1.0], 0.001);
    assert!(!warnings(&calm).contains("trustworthy") && !warnings(&calm).contains("noise floor"));
    let apart = warnings(&with_duplicate(&[1.0, 1.2, 1.01], 0.0001));
    assert!(apart.contains("unreliable environment: two identical ext4 targets differ in 3 of 3 phases"), "{apart}");
    let loud = with_duplicate(&[1.0, 1.2, 1.0], 0.3);
    let floor = loud.model().works[0].noise_floor(&loud.model());
    let floor = floor.split(['±', '(']).nth(1).expect("as ±12 % (ext4 against itself)").trim();
    let loud = warnings(&loud);
    assert!(
        loud.contains(&format!("can seem to differ by {floor}, ")),
        "one noise floor in one report: {floor}, {loud}"
    );
    assert!(loud.contains("this machine is noisy: ") && loud.contains("more than the 3 % that matter"), "{loud}");
}

/// Half as long again in each round, where others use a processor all the time: no format has a
/// word or a sign for it.
#[test]
fn of_a_busy_machine_no_difference_is_called_clear() {
    let with = |foreign_ns: f64| {
        let mut lab = Lab::new(&["ext4", "xfs"]);
        lab.rounds(8, &[1.0, 1.5]);
        for (target, (phase, _)) in [0, 1].into_iter().flat_map(|at| super::lab::PHASES.map(|phase| (at, phase))) {
            lab.also(target, phase, "foreign_cpu_ns", foreign_ns);
        }
        lab.model()
    };
    let (quiet, busy) = (with(5e7), with(1e9));
    assert!(
        headline(&quiet).contains("Slower: xfs") && !quiet.warnings().join("").contains("busy"),
        "{}",
        headline(&quiet)
    );
    let warned = busy.warnings().join("\n");
    assert!(warned.contains("in 48 of 48 phases, so no difference is called clear"), "{warned}");
    let worded: [(&str, &[&str]); 3] = [
        ("text", &["Slower", "slower", "fastest"]),
        ("markdown", &["Slower: ", "the fastest"]),
        ("json", &["\"higher\"", "\"lower\"", "Slower"]),
    ];
    for (format, words) in worded {
        let (before, after) = (rendered(&quiet, format), rendered(&busy, format));
        assert!(words.iter().any(|word| before.contains(word)), "{format}: {before}");
        let after = after.replace("slower than the best", "");
        assert_eq!(words.iter().find(|word| after.contains(**word)), None, "{format}: {after}");
    }
    let findings = |model: &Model| {
        let rows = model.works[0].phases.iter().flat_map(|panel| panel.rows.iter());
        rows.filter_map(|row| row.against.as_ref()?.finding).collect::<Vec<_>>()
    };
    assert_eq!(findings(&quiet), [Finding::Higher; 4]);
    assert_eq!(findings(&busy), [Finding::Unresolved; 4]);
}

/// It takes a quiet machine, and no number of rounds is promised; bounds beyond twice the time are
/// no figures.
#[test]
fn on_a_busy_machine_more_rounds_are_not_the_advice() {
    let with = |foreign_ns: f64| {
        let mut lab = Lab::seeded(&["ext4", "xfs"], 6);
        lab.noise = 0.2;
        lab.rounds(4, &[1.0, 1.0]);
        for (target, (phase, _)) in [0, 1].into_iter().flat_map(|at| super::lab::PHASES.map(|phase| (at, phase))) {
            lab.also(target, phase, "foreign_cpu_ns", foreign_ns);
        }
        headline(&lab.model())
    };
    let (quiet, busy) = (with(0.0), with(1e9));
    assert!(quiet.contains("Best guess") && quiet.contains("settle it"), "{quiet}");
    assert!(busy.contains("Best guess") && !busy.contains("settle it"), "{busy}");
    let at_most = |bound: f64| crate::wording::headline::at_most(bound, &crate::wording::answer::OF_TIMES);
    assert_eq!(at_most(1.0), "at most 100 % slower than the best (95 %)");
    assert_eq!(at_most(13.6), "too noisy to say how much slower than the best");
}

/// The copy takes from a third to three times as long as its original: compared with that, half as
/// much again means nothing.
#[test]
fn beside_a_broken_yardstick_nothing_within_its_floor_is_clear() {
    let with = |wild: f64| {
        let mut lab = Lab::new(&["ext4", "xfs", "slow", "ext4 (again)"]);
        lab.plan.targets[3].duplicate = true;
        lab.plan.stop.rounds = Some(8);
        for round in 1..=8 {
            [1.0, 1.5, 30.0].iter().enumerate().for_each(|(at, factor)| lab.cell(at, round, *factor));
            lab.cell(3, round, if round % 2 == 0 { wild } else { 1.0 / wild });
        }
        let model = lab.model();
        let rows = model.works[0].phases[0].rows.iter();
        rows.filter_map(|row| row.against.as_ref()?.finding).collect::<Vec<_>>()
    };
    assert_eq!(with(1.1), [Finding::Higher; 2]);
    assert_eq!(with(3.0), [Finding::Unresolved, Finding::Higher]);
}

/// ext4 takes 20 % longer, and half of its time the one simulated processor did the work of the
/// kernel's workers. Several processors do it while the program runs.
#[test]
fn a_simulated_order_that_turns_round_without_workers_is_open() {
    let with = |own_of_ext4: f64, processors: Option<u64>| {
        let mut lab = Lab::new(&["ext4", "xfs"]);
        for target in &mut lab.plan.targets {
            target.machine.0.extend(processors.map(|number| ("processors".to_string(), number.into())));
        }
        lab.rounds(8, &[1.2, 1.0]);
        lab.provenance(0, 0, &[("guest bookworm", "bookworm-1, kernel 6.1, simulated")], &[]);
        for (phase, seconds) in super::lab::PHASES {
            lab.also(0, phase, "cpu_workload_ns", seconds * 1.2e9 * own_of_ext4);
            lab.also(1, phase, "cpu_workload_ns", seconds * 1e9);
        }
        lab.model()
    };
    let (sure, open) = (with(0.8, None), with(0.3, Some(1)));
    let several = with(0.3, Some(8));
    assert!(headline(&several).starts_with("Pick xfs"), "{}", headline(&several));
    let said = several.warnings().join("\n");
    assert!(said.contains("8 processors") && said.contains("never wait") && !said.contains("turns round"), "{said}");
    assert!(
        headline(&sure).starts_with("Pick xfs") && headline(&sure).contains("Slower than xfs: ext4"),
        "{}",
        headline(&sure)
    );
    assert_eq!((open.works[0].verdict.kind, best(&open)), (VerdictKind::Unresolved, vec!["ext4", "xfs"]));
    assert!(!headline(&open).contains("Pick") && !headline(&open).contains("Slower"), "{}", headline(&open));
    let warned = [&sure, &open].map(|model| model.warnings().join("\n"));
    assert!(!warned[0].contains("turns round") && warned[1].contains("left open: xfs over ext4"), "{warned:?}");
}

/// 4 % apart and sure of it, while a copy of one of them swings by 8 %: that says nothing of the
/// quiet two.
#[test]
fn a_loud_copy_hides_no_difference_of_quiet_targets() {
    let mut lab = Lab::new(&["ext4", "xfs", "ext4 (again)"]);
    lab.plan.targets[2].duplicate = true;
    lab.noise = 0.0;
    lab.plan.stop.rounds = Some(10);
    for round in 1..=10 {
        let jitter = if round % 2 == 0 { 1.08 } else { 0.93 };
        lab.cell(0, round, 1.0);
        lab.cell(1, round, 1.04 + 0.001 * f64::from(round));
        lab.cell(2, round, jitter);
    }
    let model = lab.model();
    assert_eq!((model.works[0].verdict.kind, best(&model)), (VerdictKind::Pick, vec!["ext4"]), "{}", headline(&model));
}

#[test]
fn drifts_jumps_wide_ranges_and_modes_are_told() {
    let warnings = |times: &dyn Fn(u32) -> f64, rounds: u32| {
        let mut lab = Lab::new(&["ext4", "xfs"]);
        lab.noise = 0.0;
        lab.plan.stop.rounds = Some(rounds);
        for round in (1..=rounds).filter(|round| times(*round).is_finite()) {
            lab.cell(0, round, times(round));
            lab.cell(1, round, times(round));
        }
        lab.model().warnings().join("\n")
    };
    let wobble = |round: u32| 1.0 + 0.003 * f64::from(round * round * 7 % 11);
    let steady = warnings(&wobble, 20);
    assert_eq!(steady, "");
    assert!(
        warnings(&|round| 1.0 + 0.01 * f64::from(round), 20)
            .contains("ext4 drifted over the rounds; paired comparisons remain valid")
    );
    let jump = warnings(&|round| if round > 8 { 1.08 * wobble(21 - round) } else { wobble(9 - round) }, 16);
    assert!(jump.contains("drifted") || jump.contains("changed from one level to another after round 8"), "{jump}");
    let without = |round: u32| if matches!(round, 2 | 5 | 6) { f64::NAN } else { 1.0 };
    // Falling at each level, so that it is no trend.
    let level = |round: u32| if round > 13 { 1.2 } else { 1.0 };
    let step = |round: u32| level(round) - 0.004 * f64::from(round % 13);
    let jump = warnings(&|round| without(round) * step(round), 26);
    assert!(jump.contains("changed from one level to another after round 13"), "{jump}");
    assert!(
        warnings(&|round| if round == 5 { 1.5 } else { wobble(round) }, 12).contains("ext4 ranges over "),
        "one far out"
    );
    let two = warnings(&|round| wobble(round) * if round % 2 == 0 { 1.3 } else { 1.0 }, 24);
    assert!(two.contains("tree: xfs has several modes, 1.9") && two.contains("in 50 % of the rounds"), "{two}");
}

#[test]
fn failures_of_one_target_are_a_result_and_those_of_all_an_accident() {
    let told = |failing: &dyn Fn(usize, u32) -> bool| {
        let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
        for round in 1..=8 {
            for target in 0..3 {
                if failing(target, round) {
                    lab.fail(target, round, Outcome::Failed("no memory".into()))
                } else {
                    lab.cell(target, round, 1.0)
                }
            }
        }
        lab.model().warnings().join("\n")
    };
    let one = told(&|target, round| target == 1 && round < 5);
    assert!(one.contains("xfs failed in 4 of 8 cells, the others in 0 of 16: unlikely to be chance"), "{one}");
    assert!(!told(&|_, round| round == 3).contains("unlikely to be chance"));
}

/// Twelve rounds far above, eight a little below.
#[test]
fn what_rests_on_symmetry_is_marked() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.noise = 0.0;
    lab.plan.stop.rounds = Some(20);
    for round in 1..=20 {
        lab.cell(0, round, 1.0);
        lab.cell(1, round, if round <= 12 { (0.02 * f64::from(round * round)).exp() } else { 0.999 });
    }
    let said = text(&lab.model());
    assert!(said.contains("^ significant only if the noise were symmetric; here it is skewed"), "{said}");
}
