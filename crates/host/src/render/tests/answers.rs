//! One answer in all places: sentences, rows, exports and `choices` of journals that were cut short
//! anywhere.

use super::*;
use crate::wording::answer::Standing;
use crate::wording::ranking::ranking;
use pickfs_core::plan::Stop;
use pickfs_stats::{Estimate, Finding};
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
    for work in model.reports() {
        let said = work.headline(model);
        let Some(race) = work.phases.first().and_then(|panel| panel.race.as_ref()) else {
            assert!(!said.contains("fastest"), "{said}");
            continue;
        };
        let others = || (0..model.targets.len()).filter(|at| *at != race.pick && !model.targets[*at].duplicate);
        let is_measured = |at: usize| work.phases[0].rows.iter().any(|row| row.target == at && row.figure.is_some());
        let is_known = |at: usize| race.slower.contains(&at) || !is_measured(at);
        let may_be_said = race.bound() == 0.0 && others().all(is_known);
        assert!(may_be_said || !said.contains("fastest (95 %)"), "{said}");
    }
}

/// Before the first look some targets have three rounds and some have two.
#[test]
fn no_target_is_the_fastest_before_all_are_known() {
    at_every_cut(Path::new("../../fixtures/journals/default-run.jsonl"), &mut assert_fastest_is_so);
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

/// What sentences, rows, JSON and `choices` say of a work is one answer.
fn assert_one_answer(model: &Model) {
    assert_fastest_is_so(model);
    let json: serde_json::Value = serde_json::from_str(&rendered(model, "json")).unwrap();
    let places = ranking(std::slice::from_ref(model));
    let overall = model.overall.iter().map(|overall| (&overall.work, &json["overall"]));
    let works = overall.chain(model.works.iter().enumerate().map(|(at, work)| (work, &json["works"][at])));
    for ((work, json), places) in works.zip(&places) {
        for (at, panel) in work.phases.iter().enumerate() {
            let Some(race) = &panel.race else { continue };
            assert_groups(model, work, race, at == 0);
            assert_rows(panel, race, work);
            assert_names_what_it_compares_with(model, work, panel, at == 0);
            let listed = |name: &str| listed(&json["times"][at][name]);
            let name = |at: &usize| model.targets[*at].name.clone();
            let best: Vec<String> = race.may_be_best().map(|at| name(&at)).collect();
            assert_eq!(listed("may_be_best"), best);
            assert_eq!(listed("slower"), race.slower.iter().map(name).collect::<Vec<_>>());
            assert_eq!(listed("left_early"), race.left_early.iter().map(name).collect::<Vec<_>>());
        }
        assert_places(model, work, places);
    }
    assert_trades(model);
}

/// What a target costs is shown with the time of its row.
fn assert_trades(model: &Model) {
    let (Some(criteria), Some(panel)) = (&model.criteria, model.judged().and_then(|work| work.phases.first())) else {
        return;
    };
    let Some(time) = criteria.names.iter().position(|name| name == "time") else { return };
    for row in criteria.rows.iter().filter(|row| row.target != criteria.reference) {
        let against = panel.rows.iter().find(|own| own.target == row.target).and_then(|own| own.against.as_ref());
        let interval = |estimate: &Estimate| (estimate.ratio, estimate.interval);
        let shown = row.cells[time].as_ref().map(interval);
        assert_eq!(shown, against.map(|found| interval(&found.estimate)), "{}", model.targets[row.target].name);
    }
}

fn listed(names: &serde_json::Value) -> Vec<String> {
    names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect()
}

/// Each target is in one group, and the sentence names each group.
fn assert_groups(model: &Model, work: &WorkReport, race: &Race, is_whole: bool) {
    let groups = [&vec![race.pick], &race.may_be_as_good, &race.slower, &race.left_early, &race.too_few];
    let mut all: Vec<usize> = groups.into_iter().flatten().copied().collect();
    let not_ranked = (0..model.targets.len()).filter(|at| !model.targets[*at].duplicate && !work.ranked.contains(at));
    let not_ranked: Vec<usize> = not_ranked.collect();
    let ranked: Vec<usize> = work.ranked.iter().chain(&race.too_few).copied().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(count, all.len(), "in two groups: {race:?}");
    assert!(all.iter().all(|at| ranked.contains(at)), "{race:?}");
    if is_whole {
        let said = work.headline(model);
        assert_eq!(all.len() + not_ranked.iter().filter(|at| !race.too_few.contains(at)).count(), {
            (0..model.targets.len()).filter(|at| !model.targets[*at].duplicate).count()
        });
        for at in (0..model.targets.len()).filter(|at| !model.targets[*at].duplicate) {
            assert!(said.contains(&model.targets[at].name), "no {} in {said}", model.targets[at].name);
        }
    }
}

/// Rows against the pick say what the sentence says, and no bound is better than what its row
/// shows.
fn assert_rows(panel: &Panel, race: &Race, work: &WorkReport) {
    for row in panel.rows.iter().filter(|row| row.figure.is_some() && work.ranked.contains(&row.target)) {
        let Some(found) = row.compared_with(race.pick) else { continue };
        let standing = Standing::in_panel(panel, row.target, Some(found));
        assert_eq!(race.slower.contains(&row.target), standing == Standing::Worse, "{standing:?}, {race:?}");
        assert!(standing != Standing::Open || !race.left_early.contains(&row.target), "{race:?}");
        assert_eq!(found.finding == Some(Finding::Higher), race.slower.contains(&row.target));
        // One that may lack its slow rounds has no upper bound.
        let Some(interval) = found.estimate.interval else { continue };
        assert!(1.0 / interval.0 - 1.0 <= race.bound() + 1e-9, "{interval:?} beside {}", race.bound());
    }
    let is_ranked = work.reference.is_some_and(|at| work.ranked.contains(&at));
    let reference = panel.rows.iter().find(|row| row.target == race.pick && is_ranked);
    let reference = reference.and_then(|row| row.against.as_ref());
    let upper = reference.and_then(|found| found.estimate.interval).map_or(0.0, |(_, high)| high - 1.0);
    assert!(upper <= race.bound() + 1e-9, "{upper} in the row of a bound of {}", race.bound());
}

/// What is slower than the pick is not left open by its row, and sentences that compare with
/// another target than the tables do name it.
fn assert_names_what_it_compares_with(model: &Model, work: &WorkReport, panel: &Panel, is_whole: bool) {
    let Some(race) = &panel.race else { return };
    let pick = &model.targets[race.pick].name;
    for row in panel.rows.iter().filter(|row| race.slower.contains(&row.target)) {
        let standing = Standing::in_panel(panel, row.target, row.against.as_ref());
        let word = standing.word(1.1, work.terms(), model.pick_of(panel));
        assert_ne!(word, "too close", "{} is slower than {pick}", model.targets[row.target].name);
    }
    let said = if is_whole { work.headline(model) } else { work.sentences(model).join(" ") };
    let is_named = |group: &[usize], title: &str| group.is_empty() || said.to_lowercase().contains(title);
    if work.reference != Some(race.pick) {
        assert!(is_named(&race.slower, &format!("slower than {}: ", pick.to_lowercase())), "{said}");
        assert!(is_named(&race.left_early, &format!("not settled against {}: ", pick.to_lowercase())), "{said}");
    }
}

/// The best of a ranking are the pick and what may be as good, and each that is slower has a later
/// place.
fn assert_places(model: &Model, work: &WorkReport, choice: &crate::wording::ranking::Choice) {
    let race = work.phases.first().and_then(|panel| panel.race.as_ref());
    let (Some(race), [best, later @ ..]) = (race, choice.places.as_slice()) else { return };
    let name = |at: usize| model.targets[at].name.clone();
    assert_eq!(best.names, race.may_be_best().map(name).collect::<Vec<_>>());
    let mut slower: Vec<String> = later.iter().flat_map(|place| place.names.clone()).collect();
    let mut wanted: Vec<String> = race.slower.iter().map(|at| name(*at)).collect();
    slower.sort();
    wanted.sort();
    assert_eq!(slower, wanted);
}

/// Two to seven targets of some truth and noise, with looks in every second one; some cells fail or
/// are missing.
fn random_journal(seed: u64) -> Lab {
    let mut random = pickfs_test_support::noise::Noise::new(seed);
    let mut draw = |most: f64| random.uniform() * most;
    let names = ["t0", "t1", "t2", "t3", "t4", "t5", "t6"];
    let count = 2 + draw(5.99) as usize;
    let mut lab = Lab::seeded(&names[..count], seed);
    lab.noise = [0.02, 0.1, 0.3][draw(2.99) as usize];
    let spread = [0.0, 0.05, 0.4][draw(2.99) as usize];
    let factors: Vec<f64> = (0..count).map(|_| 1.0 + draw(spread)).collect();
    let copy = draw(1.0) < 0.5;
    if copy {
        let target = pickfs_core::plan::Target { name: "t0 (again)".into(), duplicate: true, ..Default::default() };
        lab.plan.targets.push(target);
    }
    lab.plan.reference = "t0".into();
    let rounds = 2 + draw(10.0) as u32;
    let has_looks = draw(1.0) < 0.5;
    lab.plan.stop = Stop { rounds: (!has_looks).then_some(rounds), race: has_looks, ..lab.plan.stop };
    let skips = draw(1.0) < 0.3;
    let mut gone: Vec<String> = Vec::new();
    for round in 1..=rounds {
        for at in 0..lab.plan.targets.len() {
            if gone.contains(&lab.plan.targets[at].name) {
                continue;
            }
            let factor = factors.get(at).copied().unwrap_or(factors[0]);
            match draw(1.0) {
                luck if skips && luck < 0.1 => {}
                luck if skips && luck < 0.12 => lab.fail(at, round, Outcome::Skipped(vec!["no room".into()])),
                _ => lab.cell(at, round, factor),
            }
        }
        if has_looks && lab.plan.looks.is_due(round) {
            let look = look(&lab.plan, &lab.folded(), round, false);
            gone.extend(look.leaving.iter().map(|leaving| leaving.target.clone()));
            let ends = look.end.is_some();
            lab.records.push(Record::Look(look));
            if ends {
                break;
            }
        }
    }
    lab
}

/// Every format can be written, and the two for readers of text have the headline.
fn assert_formats(model: &Model) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = words(&headline(model));
    for format in crate::render::names(Kind::Run) {
        let text = rendered(model, format);
        if ["full", "text"].contains(&format) && model.overall.is_none() {
            assert!(words(&text).contains(&said), "{format} lacks {said}: {text}");
        }
    }
}

/// Seeded journals, each read at several ends of cells. `PICKFS_FULL=1` reads five thousand at each
/// of their ends.
#[test]
fn all_places_give_one_answer() {
    let few = 60;
    let count = pickfs_test_support::noise::replications(few, 5000);
    for seed in 0..count as u64 {
        let lab = random_journal(seed);
        let ends =
            lab.records.iter().enumerate().filter(|(_, record)| matches!(record, Record::End(_) | Record::Look(_)));
        let mut ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
        if count == few {
            let all = ends.len();
            ends = [all / 3, all / 2, all - 2, all - 1].map(|at| ends[at]).to_vec();
        }
        for end in ends {
            let mut cut = Lab::new(&[]);
            cut.plan = lab.plan.clone();
            cut.records = lab.records[..end].to_vec();
            println!("seed {seed}, {end} records");
            let model = cut.model();
            assert_one_answer(&model);
            assert_formats(&model);
        }
    }
}

/// The runs that people had were read by all of it too.
#[test]
fn a_default_run_gives_one_answer_wherever_it_is_cut() {
    at_every_cut(Path::new("../../fixtures/journals/default-run.jsonl"), &mut assert_one_answer);
}

/// The second is 6 % slower, and its slow rounds are missing: cut off, or not there at all.
#[test]
fn what_lacks_its_slow_rounds_is_not_picked() {
    for is_begun in [true, false] {
        let mut lab = Lab::new(&["ext4", "xfs"]);
        lab.noise = 0.0;
        lab.plan.stop.rounds = Some(20);
        for round in 1..=20 {
            lab.cell(0, round, 1.0);
            match round % 3 {
                0 if is_begun => drop(lab.begin(1, round)),
                0 => {}
                _ => lab.cell(1, round, 0.95),
            }
        }
        let model = lab.model();
        let race = model.works[0].phases[0].race.as_ref().expect("a race");
        assert_eq!((race.pick, race.bound().is_finite()), (0, true), "{race:?}");
        assert!(
            model.warnings()[0].contains("xfs lacks 6 of 20 rounds that other targets have"),
            "{:?}",
            model.warnings()
        );
        assert!(rendered(&model, "text").contains("xfs lacks 6 of 20"), "{}", rendered(&model, "text"));
    }
}

/// Each of four equals is slow for half of the run: that shows before any of them is called slower,
/// and ends nothing.
#[test]
fn rounds_that_depend_on_one_another_leave_it_open() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs", "f2fs"]);
    lab.plan.stop = Stop { rounds: None, race: true, ..lab.plan.stop };
    for round in 1..=12 {
        (0..4).for_each(|at| lab.cell(at, round, 1.0 + 0.1 * (f64::from(round) * 0.5 + at as f64 * 1.6).sin()));
        if lab.plan.looks.is_due(round) {
            let look = look(&lab.plan, &lab.folded(), round, false);
            assert_eq!(look.end, None);
            lab.records.push(Record::Look(look));
        }
    }
    let model = lab.model();
    let json: serde_json::Value = serde_json::from_str(&rendered(&model, "json")).unwrap();
    let reason = "too few rounds to bound how much slower than the best, as each round resembles the one before";
    assert!(
        headline(&model).starts_with("Too early to say: ") && headline(&model).contains(reason),
        "{}",
        headline(&model)
    );
    assert_eq!(json["times"][0]["at_most_slower"], serde_json::Value::Null);
    assert!(!model.works[0].sentences(&model).iter().any(|line| line.contains("fastest")), "{model:?}");
    for format in ["text", "html", "markdown"] {
        let page = rendered(&model, format).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(reason) && page.contains("rounds are too few to say how much"), "{format}: {page}");
    }
    assert_one_answer(&model);
}

/// In a typical round the second is 5 % faster, and its rare slow rounds make its sum the larger
/// one.
#[test]
fn sums_that_contradict_the_typical_round_leave_it_open() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.plan.stop.rounds = Some(20);
    for round in 1..=20 {
        lab.cell(0, round, 1.0);
        lab.cell(1, round, if round % 7 == 0 { 3.0 } else { 0.95 });
    }
    let part =
        |phase: &str| pickfs_core::plan::VerdictTerm { work: "tree".into(), phase: Some(phase.into()), amount: 1.0 };
    lab.plan.verdict.amounts = pickfs_core::plan::Amounts::Counts;
    lab.plan.verdict.parts = vec![part("write"), part("tar-read")];
    let model = lab.model();
    let overall = &model.overall.as_ref().expect("parts are named").work;
    for work in [overall, &model.works[0]] {
        let said = work.headline(&model);
        assert!(
            said.starts_with("Too close to call: ") && said.contains("All 20 rounds added up, xfs takes "),
            "{said}"
        );
        assert!(!said.contains("fastest") && !said.contains("Slower") && said.contains("in a typical round"), "{said}");
        assert!(!work.sentences(&model).iter().any(|line| line.contains("fastest")), "{:?}", work.sentences(&model));
    }
}

#[test]
fn of_several_that_are_as_good_the_sentence_reads() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.noise = 0.0;
    let said = headline(&lab.rounds(10, &[1.0, 1.0]).model());
    assert_eq!(said, "No single winner: ext4 and xfs; no other is faster than either (95 %).");
}

/// Where there is a pick, each format has the lines that make it, and what the choice costs.
#[test]
fn a_pick_comes_with_what_to_paste() {
    let made = |factors: &[f64]| {
        let mut lab = Lab::new(&["a", "b"]);
        lab.plan.targets[0].fs = Some("xfs".into());
        lab.plan.targets[0].variant = Some("of its own".into());
        lab.plan.targets[1].fs = Some("btrfs".into());
        lab.rounds(8, factors);
        let words = [("mkfs options", "-m reflink=0"), ("mount options", "noatime"), ("features", "grow")];
        (1..=8).for_each(|round| lab.provenance(0, round, &words, &[]));
        (1..=8).for_each(|round| lab.provenance(1, round, &[("features", "grow snapshots")], &[]));
        lab.model()
    };
    let model = made(&[1.0, 1.4]);
    for format in ["text", "full", "markdown", "html", "json"] {
        let said = rendered(&model, format);
        assert!(said.contains("mkfs.xfs -m reflink=0 /dev/DISK"), "{format}: {said}");
        assert!(said.contains("/mnt/FOLDER xfs noatime 0 0"), "{format}: {said}");
        assert!(format == "text" || said.contains("lacks what others here have: snapshots"), "{format}: {said}");
    }
    // Without the words of a variant nothing is known of it, and without a pick nothing is asked
    // for.
    let mut unknown = made(&[1.0, 1.4]);
    unknown.targets[0].facts.retain(|fact| fact.name == "features");
    assert_eq!(unknown.advice(), None);
    let mut open = made(&[1.0, 1.4]);
    open.works[0].verdict.kind = VerdictKind::Unresolved;
    assert!(!rendered(&open, "html").contains("id=\"use\""));
}

/// As `pickfs why` keeps it next to the journal.
#[test]
fn an_explanation_is_on_the_first_screen_and_in_every_report() {
    use crate::analysis::owners::{Breakdown, Kept, Pair, Part, Spent, State, between};
    let breakdown = |ns: f64| {
        let parts_ns = [(Part::Seek, 0.8 * ns), (Part::Turn, 0.2 * ns)].into();
        let owners = [((State::Idle, "metadata reads".to_string()), Spent { ns, parts_ns, ..Spent::default() })].into();
        Breakdown { phase: "all phases".into(), time_ns: ns, owners, ..Breakdown::default() }
    };
    let difference = between(&breakdown(158.0), &breakdown(100.0)).expect("a difference");
    let pair = Pair { work: "tree".into(), target: "xfs".into(), reference: "ext4".into(), difference };
    let mut model = Lab::new(&["ext4", "xfs"]).rounds(10, &[1.0, 1.5]).model();
    for format in ["text", "full", "html", "json", "markdown"] {
        assert!(!rendered(&model, format).contains("Why xfs"), "{format}");
    }
    let kept = Kept { threshold: 0.03, is_proved: true, pairs: vec![pair], ..Kept::default() };
    model.why = Some(kept.clone());
    let wanted = "Why xfs takes 58 % longer than ext4 (all phases): 58 % waits for metadata reads (46 % seek, 12 % turn), 0 % other. \
                  Not proved: waiting for metadata reads.";
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\u{a0}', " ");
    for format in ["text", "full", "html", "json", "markdown"] {
        let shown = in_one_line(&rendered(&model, format));
        assert!(shown.contains(wanted), "{format}: {shown}");
    }
    let page = rendered(&model, "html");
    assert!(page.contains("xfs against ext4") && page.contains("<title>+46.4 % seek, +11.6 % turn</title>"));
    assert!(
        pictures(&model).iter().any(|(name, picture)| name == "why-tree-xfs-ext4.svg" && picture.contains("+58.0"))
    );
    // The whole ledger, in each format that has room for it.
    for (format, wanted) in [
        ("full", "│ waiting for metadata reads ┆ +58.0 % ┆ 0.16 µs ┆ 0.10 µs"),
        ("html", "<th scope=\"row\">waiting for metadata reads</th><td>+58.0 %</td><td>0.16 µs</td><td>0.10 µs</td>"),
        ("html", "<th scope=\"row\"> seek</th><td>+46.4 %</td>"),
        ("markdown", "| waiting for metadata reads | +58.0 % | 0.16 µs | 0.10 µs |"),
        ("full", "│ not accounted for ┆ 0.0 %"),
        ("full", "waiting for metadata reads: nothing takes it away, so it is not proved"),
        (
            "json",
            "{\"owner\":\"metadata reads\",\"state\":\"idle\",\"share\":0.58,\"target\":{\"ns\":158.0,\"requests\":0,\"parts_ns\":{\"seek\":",
        ),
    ] {
        let shown = in_one_line(&rendered(&model, format));
        assert!(shown.contains(wanted), "{format}: {wanted}: {shown}");
    }
    let sheets: Vec<_> = tables::why(&model).collect();
    assert!(sheets.iter().all(|row| row.len() == tables::WHY.len()) && sheets.len() == 2, "one cause, and the rest");
    assert!(!in_one_line(&rendered(&model, "text")).contains("not accounted for"), "the answer on one screen");
    model.why = Some(Kept { is_proved: false, simulated_on: Some("nvme".into()), ..kept });
    let said = in_one_line(&rendered(&model, "text"));
    assert!(said.contains("Simulated on nvme: Why xfs takes") && said.contains("The causes are not proved."), "{said}");
}
