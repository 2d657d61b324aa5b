//! Made-up journals in, sentences out.

mod answers;
mod champions;

mod deciding;
mod exports;
mod html;
mod lab;
mod latency;
mod plug_ins;
mod ranking;
mod screen;
mod tuning;

use super::*;
use crate::analysis::*;
use lab::*;
use pickfs_core::journal::{self, Ledger, Outcome, Record};
use pickfs_core::plan::Work;
use pickfs_stats::Schedule;
use std::collections::HashSet;

/// The text report as one line, however it was broken.
fn text(model: &Model) -> String {
    rendered(model, "full").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn headline(model: &Model) -> String {
    model.headlines().swap_remove(0)
}

#[test]
fn formats_are_sorted_unique_and_described() {
    assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(ALL.iter().all(|format| !format.about.is_empty() && format.shows(Kind::Run)));
    assert!(find("html5").is_none());
}

#[test]
fn a_clear_winner_is_picked_with_its_interval() {
    let model = Lab::new(&["ext4", "xfs", "btrfs"]).rounds(10, &[1.0, 0.88, 1.4]).model();
    let said = headline(&model);
    assert!(
        said.starts_with("Pick xfs: the fastest (95 %). Slower than xfs: ext4 (+1")
            && said.contains(" %) and btrfs (+"),
        "{said}"
    );
    assert_eq!(model.works[0].verdict.kind, VerdictKind::Pick);
    assert!(
        model.works[0].sentences(&model)[0].starts_with("write: xfs 1.0"),
        "{:?}",
        model.works[0].sentences(&model)
    );
    assert!(
        model.works[0].sentences(&model)[0].contains("; slower than xfs: ext4 (+1"),
        "{:?}",
        model.works[0].sentences(&model)
    );
    assert!(!text(&model).contains("p ="));
}

#[test]
fn what_is_removed_goes_by_files() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.noise = 0.0;
    lab.rounds(8, &[1.0, 2.0]);
    for target in [0, 1] {
        lab.also(target, "remove", "removed_files", 1000.0);
    }
    let model = lab.model();
    let rates = model.works[0].beside.iter().find(|table| table.shown == ReportTable::Throughput).expect("rates");
    let shown = |panel: &Panel| {
        let of = |row: &Row| row.figure.as_ref().map_or(String::new(), |figure| panel.unit.show(figure.median));
        format!("{}: {}", panel.name, panel.rows.iter().map(of).collect::<Vec<_>>().join(", "))
    };
    let shown: Vec<String> = rates.panels.iter().map(shown).collect();
    assert_eq!(
        shown,
        ["write: 201 MiB/s, 101 MiB/s", "tar-read: 483 MiB/s, 242 MiB/s", "remove: files: 4949/s, 2474/s"]
    );
}

#[test]
fn less_and_more_are_shares_of_the_reference() {
    let mut lab = Lab::new(&["ext4", "half", "double", "more"]);
    lab.noise = 0.0;
    let model = lab.rounds(8, &[1.0, 0.5, 2.0, 1.25]).model();
    let words: Vec<String> =
        model.works[0].phases[0].rows.iter().filter_map(|row| Some(row.against.as_ref()?.words())).collect();
    assert_eq!(
        words,
        ["takes 50 % less time than ext4", "takes 2.0 times the time of ext4", "takes 25 % more time than ext4"]
            .map(|words| format!("{words} (95 % interval ±0)"))
    );
}

#[test]
fn a_picked_reference_is_told_by_its_nearest() {
    let model = Lab::new(&["ext4", "xfs", "btrfs"]).rounds(10, &[1.0, 1.2, 1.4]).model();
    let said = headline(&model);
    assert!(
        said.starts_with("Pick ext4: the fastest (95 %). Slower: xfs (+2") && said.contains(" and btrfs (+4"),
        "{said}"
    );
}

#[test]
fn a_tie_is_called_a_tie() {
    let model = Lab::new(&["ext4", "xfs", "btrfs"]).rounds(12, &[1.0, 1.0, 1.4]).model();
    let said = headline(&model);
    assert!(said.starts_with("No single winner: ext4 and xfs; either is at most "), "{said}");
    assert!(said.contains(" slower than the best (95 %). Slower: btrfs (+4"), "{said}");
    assert_eq!(best(&model), ["ext4", "xfs"]);
    assert!(text(&model).contains("= ties with ext4"), "ties are marked");
}

#[test]
fn a_difference_that_does_not_matter_is_a_tie_even_if_it_is_sure() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.noise = 0.001;
    let model = lab.rounds(12, &[1.0, 1.01]).model();
    assert_eq!(model.works[0].verdict.kind, VerdictKind::Tie, "{}", headline(&model));
    assert_eq!(best(&model), ["ext4", "xfs"]);
}

#[test]
fn the_unresolved_asks_for_more_rounds() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.noise = 0.4;
    let model = lab.rounds(8, &[1.0, 1.0, 9.0]).model();
    let said = headline(&model);
    assert!(said.starts_with("Too close to call: "), "{said}");
    assert!(said.contains(" A new run of ") && said.contains(" would settle it. Slower: btrfs (+7"), "{said}");
    assert!(text(&model).contains("? cannot be distinguished from ext4"));
}

/// Whatever stops the run: what is marked has fewer rounds than the mark says, and seven are
/// enough.
#[test]
fn no_interval_of_seven_rounds_is_preliminary() {
    let is_marked = |rounds: u32, fixed: Option<u32>| {
        let mut lab = Lab::new(&["ext4", "xfs"]);
        lab.rounds(rounds, &[1.0, 1.1]).plan.stop.rounds = fixed;
        text(&lab.model()).contains("preliminary: fewer than 7 rounds")
    };
    assert_eq!([5, 6, 7].map(|rounds| is_marked(rounds, Some(rounds))), [true, false, false]);
    assert_eq!([5, 6, 7].map(|rounds| is_marked(rounds, None)), [true, true, false]);
}

#[test]
fn four_rounds_are_preliminary_and_two_an_anecdote() {
    let four = Lab::new(&["ext4", "xfs"]).rounds(4, &[1.0, 0.8]).model();
    assert!(headline(&four).starts_with("Pick xfs: the fastest (95 %)."), "{}", headline(&four));
    assert!(text(&four).contains("preliminary: fewer than 7 rounds"));
    let two = Lab::new(&["ext4", "xfs"]).rounds(2, &[1.0, 0.8]).model();
    assert!(
        headline(&two).starts_with("No verdict yet (anecdote: 2 rounds, no interval). So far xfs"),
        "{}",
        headline(&two)
    );
    assert_eq!(two.works[0].verdict.kind, VerdictKind::TooFewRounds);
}

#[test]
fn what_a_power_cut_takes_is_better_or_worse_and_not_slower() {
    let mut four = Lab::new(&["ext4", "xfs"]).rounds(4, &[1.0, 0.8]).model();
    four.works[0].durability = vec![with_cuts()];
    assert!(headline(&four).starts_with("Pick xfs: the best (95 %). Worse than xfs: ext4"), "{}", headline(&four));
    let mut one = Lab::new(&["ext4", "xfs"]).rounds(1, &[1.0, 0.8]).model();
    one.works[0].durability = vec![with_cuts()];
    assert!(headline(&one).contains("So far xfs loses the least: at most "), "{}", headline(&one));
}

fn with_cuts() -> Durability {
    Durability {
        target: 0,
        losses: Vec::new(),
        lost_transactions: 0,
        cuts: 10,
        promise_cuts: 10,
        broken: 0,
        may_break: 0.3,
        unmountable: 0,
        damaged: 0,
        fsck_errors: Some(0),
        inconsistent: 0,
        recovery: (1e6, 1e6),
        rounds: 4,
        first_broken: None,
    }
}

#[test]
fn failed_skipped_cut_off_and_unreached_cells_are_told_apart() {
    let mut lab = Lab::new(&["ext4", "xfs", "reiser4", "nilfs2"]);
    lab.rounds(8, &[1.0, 0.8]);
    lab.plan.stop.rounds = Some(10);
    for round in 1..=8 {
        lab.fail(2, round, Outcome::Skipped(vec!["no module reiser4".into(), "no mkfs.reiser4".into()]));
        lab.fail(3, round, Outcome::Failed("No space left on device".into()));
    }
    lab.begin(1, 8);
    let model = lab.model();
    let said: Vec<String> = model.holes.iter().map(|hole| hole.sentence(&model)).collect();
    assert_eq!(
        said,
        [
            "2 of 10 planned rounds not run",
            "xfs: begun and cut off in 1 of 8 rounds",
            "reiser4: skipped in every round: no module reiser4; no mkfs.reiser4",
            "nilfs2: failed in every round: No space left on device",
        ]
    );
    let text = text(&model);
    assert!(text.contains("│ reiser4") && text.contains("skipped") && text.contains("n = 7, 1 missing"), "{text}");
    assert!(rendered(&model, "svg").contains(">failed: No space left on device</text>"));
    assert!(headline(&model).starts_with("Pick xfs"), "{}", headline(&model));
}

#[test]
fn a_target_that_seldom_finishes_does_not_take_the_others_rounds() {
    let mut lab = Lab::new(&["ext4", "xfs", "nilfs2"]);
    lab.rounds(10, &[1.0, 0.8]);
    lab.cell(2, 1, 0.5);
    let model = lab.model();
    assert!(headline(&model).starts_with("Pick xfs"), "{}", headline(&model));
    assert_eq!(model.works[0].notes(&model), ["nilfs2 is not ranked: only 1 of 10 rounds finished"]);
}

#[test]
fn weakened_durability_is_not_ranked_unless_the_plan_asks() {
    let mut lab = Lab::new(&["ext4", "xfs", "ext4 nobarrier"]);
    lab.rounds(10, &[1.0, 0.9, 0.5]);
    lab.provenance(2, 4, &[], &["nobarrier"]);
    let model = lab.model();
    assert_eq!(best(&model), ["xfs"]);
    assert_eq!(model.works[0].notes(&model), ["ext4 nobarrier is not ranked: weaker durability: nobarrier"]);
    assert!(text(&model).contains("Weaker durability: ext4 nobarrier: nobarrier"));
    assert!(rendered(&model, "svg").contains("weaker durability: nobarrier"));
    lab.plan.rank_weakened = true;
    assert_eq!(best(&lab.model()), ["ext4 nobarrier"]);
}

/// 10 % apart: the pick stands, but no bound is believed more closely than that.
#[test]
fn a_reference_that_differs_from_itself_widens_the_bounds() {
    let mut lab = Lab::new(&["ext4", "xfs", "ext4 again"]);
    lab.plan.targets[2].duplicate = true;
    lab.plan.stop.rounds = Some(12);
    let model = lab.rounds(12, &[1.0, 0.95, 1.1]).model();
    let race = model.works[0].phases[0].race.as_ref().expect("twelve rounds");
    assert!((race.contradiction - 0.1).abs() < 0.01 && race.bound() > 0.03, "{}", headline(&model));
    assert!(
        text(&model).contains("ext4 measured twice in the same rounds differs from itself by "),
        "{}",
        text(&model)
    );
}

#[test]
fn a_quiet_duplicate_gives_the_noise_floor() {
    let mut lab = Lab::new(&["ext4", "xfs", "ext4 again"]);
    lab.plan.targets[2].duplicate = true;
    lab.noise = 0.02;
    let model = lab.rounds(12, &[1.0, 0.7, 1.0]).model();
    assert!(
        model.works[0].noise_floor(&model).starts_with("noise floor ±")
            && model.works[0].noise_floor(&model).ends_with("(ext4 against itself)")
    );
    assert_eq!(best(&model), ["xfs"]);
    assert!(!text(&model).contains("│ ext4 again"));
}

#[test]
fn a_verdict_of_impossible_weights_is_not_made() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 0.8]);
    lab.plan.verdict.parts = vec![pickfs_core::plan::VerdictTerm { work: "tree".into(), phase: None, amount: -1.0 }];
    assert!(model(&lab.folded()).unwrap_err().to_string().contains("has a weight or count of -1"));
}

#[test]
fn a_cell_begun_twice_counts_once() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 0.8]);
    let once = lab.model();
    let first: Vec<Record> = lab.records.iter().take(8).cloned().collect();
    let mut resumed = first;
    resumed.append(&mut lab.records);
    lab.records = resumed;
    let twice = lab.model();
    let medians = |model: &Model| -> Vec<f64> {
        model.works[0].phases.iter().flat_map(|p| &p.rows).filter_map(|row| Some(row.figure.as_ref()?.median)).collect()
    };
    assert_eq!(medians(&once), medians(&twice));
    assert_eq!(headline(&once), headline(&twice));
}

#[test]
fn neither_the_order_of_targets_nor_the_reference_moves_the_best_set() {
    let mut found = HashSet::new();
    let mut lab = Lab::new(&["a", "b", "c", "d"]);
    lab.noise = 0.03;
    lab.rounds(10, &[1.0, 1.0, 1.06, 1.5]);
    for turn in 0..4 {
        for reference in ["a", "b", "c", "d"] {
            lab.plan.reference = reference.into();
            found.insert(best(&lab.model()).join(" "));
        }
        lab.plan.targets.rotate_left(1);
        if turn == 2 {
            lab.plan.targets.swap(0, 2);
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_reference_without_results_is_replaced_and_said_so() {
    let mut lab = Lab::new(&["zfs", "ext4", "xfs"]);
    lab.plan.reference = "zfs".into();
    for round in 1..=8 {
        lab.fail(0, round, Outcome::Failed("no module".into()));
        lab.cell(1, round, 1.0);
        lab.cell(2, round, 0.8);
    }
    let model = lab.model();
    assert!(headline(&model).starts_with("Pick xfs: the fastest"), "{}", headline(&model));
    assert!(model.works[0].notes(&model).contains(&"zfs has no results; compared with ext4 instead".to_string()));
}

#[test]
fn one_target_has_numbers_and_no_verdict() {
    let model = Lab::new(&["ext4"]).rounds(6, &[1.0]).model();
    assert!(headline(&model).starts_with("ext4: the whole job takes 1.8"), "{}", headline(&model));
    assert!(headline(&model).contains("median of 6 rounds, 1."), "{}", headline(&model));
    assert_eq!(model.works[0].verdict.kind, VerdictKind::Single);
    assert!(!text(&model).contains('×'));
}

#[test]
fn a_journal_with_nothing_in_it_says_so() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    let model = lab.model();
    assert_eq!(headline(&model), "Nothing has been measured yet: 16 cells planned, none has ended.");
    lab.plan.targets[1].duplicate = true;
    lab.plan.stop.rounds = Some(20);
    lab.plan.looks = Schedule::EachRound;
    assert!(headline(&lab.model()).contains(": 28 cells planned"), "a copy has its first rounds alone");
    for format in ALL {
        let page = rendered(&model, format.name);
        // Tables of times alone have no place for words.
        let is_table = ["bmf", "csv", "csv-summary", "github-action-benchmark", "hyperfine", "ods", "prometheus"]
            .contains(&format.name);
        assert!(is_table || page.contains("Nothing has been measured yet"), "{}", format.name);
    }
    lab.plan.targets.clear();
    lab.plan.works.clear();
    assert!(headline(&lab.model()).starts_with("Nothing has been measured yet"));
    let error = crate::analysis::model(&journal::fold("".as_bytes()).unwrap()).unwrap_err();
    assert!(error.to_string().contains("no `run` record"));
}

#[test]
fn a_plan_of_endless_rounds_costs_nothing() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(3, &[1.0, 0.8]);
    lab.plan.stop.rounds = Some(u32::MAX);
    assert_eq!(lab.model().holes[0].sentence(&lab.model()), "4294967292 of 4294967295 planned rounds not run");
    lab.plan.stop.rounds = Some(0);
    assert_eq!(best(&lab.model()), ["xfs"]);
}

#[test]
fn hostile_names_steer_nothing() {
    let name = "<script>alert('x')</script>&\u{1b}[31m\u{202e}\"\n";
    let mut lab = Lab::new(&[name, "xfs\u{7}"]);
    lab.plan.title = "\u{1b}]0;owned\u{7}<b>".into();
    lab.rounds(8, &[1.0, 0.8]);
    lab.fail(0, 9, Outcome::Failed("\u{1b}[2J<img onerror=x>".into()));
    lab.flag(0, 2, "write\u{1b}[", "not-cold", "\u{9b}31m");
    let model = lab.model();
    for format in ALL {
        let page = rendered(&model, format.name);
        assert!(
            page.chars().all(|c| matches!(c, '\n' | '\r') || !c.is_control()),
            "{} has control characters",
            format.name
        );
        assert!(!page.contains('\u{202e}'));
    }
    let picture = rendered(&model, "svg");
    assert!(!picture.contains("<script") && !picture.contains("<img") && !picture.contains("<b>"));
    assert!(picture.contains("&lt;script&gt;"));
}

#[test]
fn values_that_make_no_ratio_are_left_out() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 0.8]);
    lab.also(0, "write", "device_read_bytes", 0.0).also(1, "write", "device_read_bytes", 4096.0);
    lab.also(0, "write", "device_write_bytes", -5.0).also(1, "write", "device_write_bytes", 1e300);
    let model = lab.model();
    for format in ALL {
        let page = rendered(&model, format.name).replace("pickfs_run_info", "");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}

#[test]
fn unproven_caches_are_marked_and_doubts_grouped() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 0.8]);
    for round in [2, 5] {
        lab.flag(1, round, "tar-read", "not-cold", "only 12 % of the bytes were read");
    }
    let model = lab.model();
    let said: Vec<String> = model.flags.iter().map(|flag| flag.sentence(&model)).collect();
    assert_eq!(said, ["not-cold (xfs, tar-read): 2 times, such as only 12 % of the bytes were read"]);
    lab.flag(0, 2, "tar-read", "not-cold", "only 3 % of the bytes were read");
    lab.flag(0, 3, "write", "foreign-io", "another wrote");
    let several = crate::wording::warnings::suspicious_readings(&lab.model());
    let foreign = "foreign-io (ext4, write): another wrote";
    let cold = "not-cold (ext4: tar-read; xfs: tar-read): 3 times, such as only 3 % of the bytes were read";
    assert_eq!(several, [foreign, cold]);
    let marked = |panel: &Panel| panel.rows.iter().map(|row| row.unproven_cache).collect::<Vec<_>>();
    let names: Vec<&str> = model.works[0].phases.iter().map(|panel| panel.name.as_str()).collect();
    assert_eq!(names, ["whole job", "write", "tar-read", "remove"]);
    assert_eq!(marked(&model.works[0].phases[1]), [false, false]);
    assert_eq!(marked(&model.works[0].phases[2]), [false, true]);
    assert!(text(&model).contains("† cache state unproven"));
    // For a user's own command nothing can be proved; other doubts are not about the cache.
    for (flag, unproven) in [("not-proved-cold", true), ("foreign-io", false)] {
        let mut lab = Lab::new(&["ext4", "xfs"]);
        lab.rounds(8, &[1.0, 0.8]);
        lab.flag(0, 3, "tar-read", flag, "the drive gave no byte");
        let model = lab.model();
        let rows = [0, 1, 2].map(|panel| marked(&model.works[0].phases[panel]));
        assert_eq!(rows, [[unproven, false], [false, false], [unproven, false]], "{flag}");
        assert_eq!(text(&model).contains("† cache state unproven"), unproven, "{flag}");
    }
}

#[test]
fn space_and_cpu_stand_beside_the_time() {
    let mut lab = Lab::new(&["ext4", "btrfs zstd:1"]);
    lab.rounds(8, &[1.0, 1.3]);
    lab.also(0, "write", "space_grown_bytes", 2e9).also(1, "write", "space_grown_bytes", 0.9e9);
    lab.also(1, "write", "compression_zstd_disk_bytes", 0.8e9);
    lab.also(1, "write", "compression_zstd_uncompressed_bytes", 1.6e9);
    lab.also(1, "write", "compression_total_disk_bytes", 0.9e9).also(1, "write", "compression_files", 1500.0);
    let model = lab.model();
    let said = &model.works[0].trade_offs(&model)[0];
    assert!(
        said.starts_with("btrfs zstd:1 needs 55 % less space and 3") && said.contains(" % more CPU time ("),
        "{said}"
    );
    let found = &model.works[0].compression[0];
    assert_eq!((found.rows[0].kind.as_str(), found.rows[1].cells()[1].as_str()), ("total", "50.0 %"));
    assert_eq!((found.summary().as_str(), found.differs), ("1500 files", false));
}

#[test]
fn a_phase_that_is_missing_somewhere_makes_no_whole_job() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 0.8]);
    let of_last = |r: &Record| matches!(r, Record::Sample(s) if s.cell == "1-8" && s.phase == "remove");
    lab.records.retain(|record| !of_last(record));
    let model = lab.model();
    let rounds = |panel: usize| model.works[0].phases[panel].rows[1].figure.as_ref().unwrap().rounds;
    assert_eq!((rounds(0), rounds(1), rounds(3)), (7, 8, 7));
}

#[test]
fn text_fits_its_width() {
    let names: Vec<String> = (0..12).map(|n| format!("btrfs on LUKS and LVM, compress=zstd:{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let model = Lab::new(&names).rounds(6, &[1.0; 12]).model();
    for (width, format) in [60, 80, 100, 160].into_iter().flat_map(|width| [(width, text::TEXT), (width, text::FULL)]) {
        let mut out = Vec::new();
        format.write(Document::Run(&model), &Options { width, ..Options::default() }, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        let long = page.lines().find(|line| line.chars().count() > width);
        assert_eq!(long, None, "{} at {width}", format.name);
        assert!(!page.contains('\u{1b}'));
    }
}

#[test]
fn several_works_are_told_apart() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    let mut other = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 0.8]);
    other.rounds(8, &[1.0, 1.3]);
    lab.plan.works.push(Work { name: "web".into(), ..Work::default() });
    let lines: Vec<String> = other.records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    let lines = lines.join("\n").replace("\"cell\":\"", "\"cell\":\"web ").replace("\"tree\"", "\"web\"");
    lab.records.extend(lines.lines().map(|line| serde_json::from_str::<Record>(line).unwrap()));
    let model = lab.model();
    assert!(headline(&model).ends_with("It depends on the work: tree: xfs; web: ext4."), "{}", headline(&model));
    assert!(model.headlines()[1].starts_with("tree: Pick xfs") && model.headlines()[2].starts_with("web: Pick ext4"));
    assert!(text(&model).contains("── web ──"));
}

#[test]
fn the_ledger_says_what_share_was_measuring() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(3, &[1.0, 0.8]);
    let ledger =
        |cell: &str, setup_ns, phases_ns| Ledger { cell: cell.into(), setup_ns, phases_ns, ..Ledger::default() };
    lab.records.push(Record::Ledger(ledger("0-1", 4_000_000_000, 40_000_000_000)));
    lab.records.push(Record::Ledger(ledger("run", 6_000_000_000, 0)));
    let model = lab.model();
    assert_eq!(model.ledger.sentence(), "80 % of 50.0 s was inside phases");
    assert_eq!(model.ledger.parts[1].shown(), "20 %");
    assert!(model.holes.is_empty(), "the run's own ledger is no cell: {:?}", model.holes);
}

/// Clearly slower than xfs, but not distinguished from a reference whose times scatter widely.
#[test]
fn who_is_out_is_not_said_to_be_like_the_reference() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    for round in 1..=10 {
        lab.cell(0, round, if round % 2 == 0 { 0.7 } else { 1.5 });
        lab.cell(1, round, 1.0);
        lab.cell(2, round, 1.15);
    }
    let model = lab.model();
    let (said, phase) = (headline(&model), &model.works[0].sentences(&model)[0]);
    assert!(said.starts_with("Too close to call: ") && said.ends_with("Slower than xfs: btrfs (+15 %)."), "{said}");
    assert!(phase.contains("; slower than xfs: btrfs (+15 %)") && !phase.contains("not told apart"), "{phase}");
    let screen = rendered(&model, "text");
    let row = screen.lines().find(|line| line.starts_with("  btrfs"));
    assert!(row.is_some_and(|row| row.ends_with("slower than xfs")), "{screen}");
}
