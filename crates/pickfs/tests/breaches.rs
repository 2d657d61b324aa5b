//! Breaches of the rules of trusted results, planted in a clean run: each is found, and by its
//! rule.

use crate::audit::no_python;
use crate::common::{Lab, not_run};
use pickfs_core::journal::fold;
use pickfs_host::analysis::model;
use pickfs_host::audit::{CrossChecks, Evidence, Finding, Page, RULES, recomputed};
use pickfs_host::render::{Document, Options, written};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Command;

/// A small run of this version, which keeps every rule.
fn linked() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/journals/linked.jsonl");
    std::fs::read_to_string(path).unwrap()
}

/// As a forger with knowledge of the links would leave it.
fn linked_again(journal: &str) -> String {
    let mut text = String::new();
    for line in journal.lines() {
        let before: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        match line.starts_with("{\"chain\":") {
            true => {
                let mut record: Value = serde_json::from_str(line).unwrap();
                record["chain"]["before"] = before.into();
                text += &record.to_string();
            }
            false => text += line,
        }
        text.push('\n');
    }
    text
}

/// Rules that an audit does not find kept, by name.
fn not_kept(journal: &str, page: Option<fn(String) -> String>, anew: bool) -> Vec<&'static str> {
    let folded = fold(journal.as_bytes()).expect("a journal");
    let model = model(&folded).expect("a plan");
    let format = |name: &str| written(name, Document::Run(&model), &Options::default()).expect("a report");
    let page = page.map(|edited| {
        let made = String::from_utf8(format("html")).unwrap();
        Page { shown: edited(made.clone()), made, sentences: model.headlines() }
    });
    let report = serde_json::from_slice(&format("json")).expect("JSON");
    let beside = CrossChecks { report, anew: anew.then(|| recomputed(journal.as_bytes()).unwrap()), page, again: None };
    let evidence = Evidence::new(journal.as_bytes(), &folded, beside).unwrap();
    let findings = evidence.findings();
    let is_lost = |finding: &Finding| !matches!(finding, Finding::Kept | Finding::NotAsked);
    let lost = RULES.iter().zip(&findings).filter(|(_, finding)| is_lost(finding));
    lost.map(|(rule, _)| rule.name).collect()
}

/// Lines as records, those of that kind changed.
fn each(journal: &str, kind: &str, mut change: impl FnMut(&mut Value)) -> String {
    let line = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.get_mut(kind).into_iter().for_each(&mut change);
        record.to_string() + "\n"
    };
    journal.lines().map(line).collect()
}

/// The first of a kind alone for which it holds.
fn once(journal: &str, kind: &str, is: fn(&Value) -> bool, change: fn(&mut Value)) -> String {
    let mut is_done = false;
    let changed = each(journal, kind, |record| {
        if !is_done && is(record) {
            change(record);
            is_done = true;
        }
    });
    assert!(is_done, "no {kind} to change");
    changed
}

fn without(journal: &str, is: impl Fn(usize, &str) -> bool) -> String {
    let left = journal.lines().enumerate().filter(|(at, line)| !is(*at, line));
    left.map(|(_, line)| line.to_string() + "\n").collect()
}

/// Lines of the cell of that number in the order of the journal, from 1, with its link.
fn cell_lines(journal: &str, number: usize) -> std::ops::Range<usize> {
    let begins = journal.lines().enumerate().filter(|(_, line)| line.starts_with("{\"begin\"")).map(|(at, _)| at);
    let begins: Vec<usize> = begins.collect();
    begins[number - 1]..begins[number]
}

fn of_cell(record: &Value) -> bool {
    record["cell"] != ""
}

fn of_run(record: &Value) -> bool {
    record["cell"] == ""
}

fn is_time(record: &Value) -> bool {
    record["metric"] == "time_ns"
}

/// What the facts of the run are after it was taken up again.
fn session(journal: &str, change: fn(&mut Value)) -> String {
    let first =
        journal.lines().find(|line| line.starts_with("{\"provenance\":{\"cell\":\"\"")).expect("facts of the run");
    let mut record: Value = serde_json::from_str(first).unwrap();
    change(&mut record["provenance"]["facts"]);
    let at = cell_lines(journal, 6).start;
    let lines: Vec<&str> = journal.lines().collect();
    [&lines[..at], &[&record.to_string()], &lines[at..]].concat().join("\n") + "\n"
}

type Change = fn(&str) -> String;

/// Each breach, with the rule that must find it even if all links are made anew; `chain` where
/// nothing else shows it.
const BREACHES: &[(&str, &str, Change)] = &[
    ("a time is edited upwards", "clock", |j| {
        once(j, "sample", is_time, |sample| sample["value"] = (sample["value"].as_f64().unwrap() * 9.0).into())
    }),
    ("a time is edited downwards", "chain", |j| once(j, "sample", is_time, |sample| sample["value"] = 1000.into())),
    ("a line is dropped", "chain", |j| without(j, |at, line| at > 40 && at < 60 && line.contains("time_ns"))),
    ("a blank is added", "chain", |j| j.replacen("{\"sample\":{", "{\"sample\": {", 1)),
    ("two lines are swapped", "chain", |j| {
        let mut lines: Vec<&str> = j.lines().collect();
        lines.swap(30, 31);
        lines.join("\n") + "\n"
    }),
    ("a line is torn in the middle", "whole", |j| {
        j.lines().enumerate().map(|(at, line)| if at == 30 { &line[..9] } else { line }.to_string() + "\n").collect()
    }),
    ("a line is no record", "whole", |j| j.replacen("{\"sample\"", "{\"example\"", 1)),
    ("the head is cut off", "whole", |j| {
        let run = j.lines().next().unwrap();
        without(j, |at, _| at == 0).replacen('\n', &format!("\n{run}\n"), 1)
    }),
    ("another run is appended", "whole", |j| j.to_string() + j.lines().next().unwrap() + "\n"),
    ("a link is removed", "chain", |j| {
        let last = j.lines().collect::<Vec<_>>().iter().rposition(|line| line.starts_with("{\"chain\"")).unwrap();
        without(j, |at, _| at == last)
    }),
    ("another version goes on", "version", |j| {
        let mut count = 0;
        each(j, "chain", |link| {
            count += 1;
            if count > 6 {
                link["pickfs"] = "0.0.9".into();
            }
        })
    }),
    ("the run claims another version", "version", |j| once(j, "run", |_| true, |run| run["pickfs"] = "9.9.9".into())),
    ("names of two targets are swapped in a round", "order", |j| {
        each(j, "begin", |begin| {
            if begin["round"] == 2 {
                let other = if begin["target"] == "ext2" { "btrfs" } else { "ext2" };
                if begin["target"] == "ext2" || begin["target"] == "btrfs" {
                    begin["target"] = other.into();
                }
            }
        })
    }),
    ("names of two targets are swapped in all rounds", "order", |j| {
        each(j, "begin", |begin| {
            if begin["target"] == "ext2" {
                begin["target"] = "btrfs".into();
            } else if begin["target"] == "btrfs" {
                begin["target"] = "ext2".into();
            }
        })
    }),
    ("the order is that of the plan", "order", |j| fixed_order(j)),
    ("a cell has another round", "dropped", |j| {
        once(j, "begin", |begin| begin["round"] == 2, |begin| begin["round"] = 3.into())
    }),
    ("a cell has a round that no plan has", "dropped", |j| {
        once(j, "begin", |begin| begin["round"] == 2, |begin| begin["round"] = u32::MAX.into())
    }),
    ("a cell is of a target that is not planned", "cells", |j| {
        once(j, "begin", |_| true, |begin| begin["target"] = "zfs".into())
    }),
    ("a cell is of a work that is not planned", "cells", |j| {
        once(j, "begin", |_| true, |begin| begin["work"] = "other".into())
    }),
    ("a cell is dropped", "dropped", |j| {
        let cell = cell_lines(j, 6);
        without(j, |at, _| cell.contains(&at))
    }),
    ("a round is dropped", "dropped", |j| {
        let (from, to) = (cell_lines(j, 5).start, cell_lines(j, 8).end);
        without(j, |at, _| (from..to).contains(&at))
    }),
    ("the last round is cut off", "stop", |j| {
        let from = cell_lines(j, 13).start;
        without(j, |at, _| at >= from)
    }),
    ("the end of a cell is dropped", "dropped", |j| {
        let cell = cell_lines(j, 6);
        without(j, |at, line| cell.contains(&at) && line.starts_with("{\"end\""))
    }),
    ("a cell is done again after it ended", "chosen", |j| {
        let (lines, cell) = (j.lines().collect::<Vec<_>>(), cell_lines(j, 6));
        [&lines[..cell.end], &lines[cell.clone()], &lines[cell.end..]].concat().join("\n") + "\n"
    }),
    ("a cell ends twice", "chosen", |j| {
        let end = j.lines().find(|line| line.starts_with("{\"end\"")).unwrap();
        j.replacen(end, &format!("{end}\n{end}"), 1)
    }),
    ("the aim is changed in the middle", "chosen", |j| {
        let plan: Value = serde_json::from_str(j.lines().next().unwrap()).unwrap();
        let aim = serde_json::json!({ "aim": plan["run"]["plan"]["stop"] });
        let at = cell_lines(j, 6).start;
        let lines: Vec<&str> = j.lines().collect();
        [&lines[..at], &[&aim.to_string()], &lines[at..]].concat().join("\n") + "\n"
    }),
    ("a cell ends before it begins", "clock", |j| {
        once(j, "end", |_| true, |end| end["at"] = "2001-01-01T00:00:00Z".into())
    }),
    ("phases take longer than the ledger", "clock", |j| {
        once(j, "ledger", of_cell, |ledger| ledger["phases_ns"] = 1_000_000.into())
    }),
    ("the copy of the reference has no results", "reference", |j| {
        each(j, "begin", |begin| {
            if begin["target"] == "ext4 (again)" {
                begin["target"] = "ext3".into();
            }
        })
    }),
    ("the plan has no copy of the reference", "reference", |j| {
        let copy = |target: &Value| target["duplicate"] == true;
        each(j, "run", |run| {
            run["plan"]["targets"].as_array_mut().unwrap().retain(|target| !copy(target));
        })
    }),
    ("weakened targets are ranked", "durability", |j| {
        once(j, "run", |_| true, |run| run["plan"]["rank_weakened"] = true.into())
    }),
    ("a mount without barriers is not marked", "durability", |j| {
        let has = |found: &Value| found["facts"]["mount"].is_string();
        once(j, "provenance", has, |found| found["facts"]["mount"] = "ext4 (rw,relatime,nobarrier)".into())
    }),
    ("a pool without sync is not marked", "durability", |j| {
        let has = |found: &Value| found["facts"]["mount"].is_string();
        once(j, "provenance", has, |found| found["facts"]["mount"] = "zfs (rw) sync=disabled".into())
    }),
    ("a cell does not show its mount", "read back", |j| {
        let has = |found: &Value| found["facts"]["mount"].is_string();
        once(j, "provenance", has, |found| drop(found["facts"].as_object_mut().unwrap().remove("mount")))
    }),
    ("options in effect are not the plan's", "read back", |j| {
        let has = |found: &Value| found["facts"]["mount"].is_string();
        once(j, "provenance", has, |found| found["mismatches"] = serde_json::json!(["asked noatime, found relatime"]))
    }),
    ("a read is warm", "cold", |j| flagged(j, "not-cold")),
    ("a read is not proved cold", "cold", |j| flagged(j, "not-proved-cold")),
    ("a source is warm", "cold", |j| flagged(j, "source-not-cold")),
    ("other programs use the processor", "quiet", |j| beside_times(j, "foreign_cpu_ns")),
    ("other programs use the disk", "quiet", |j| beside_times(j, "below_read_bytes")),
    ("a cell has other data", "seed", |j| {
        once(j, "provenance", |found| found["facts"]["seed"].is_string(), |found| found["facts"]["seed"] = "1".into())
    }),
    ("all rounds have the same data", "seed", |j| {
        each(j, "provenance", |found| {
            if found["facts"]["seed"].is_string() {
                found["facts"]["seed"] = "1".into();
            }
        })
    }),
    ("another kernel goes on", "software", |j| session(j, |facts| facts["kernel"] = "6.19.1".into())),
    ("another build of the kernel goes on", "software", |j| {
        session(j, |facts| facts["kernel version"] = "#2 SMP".into())
    }),
    ("another microcode goes on", "software", |j| session(j, |facts| facts["microcode"] = "0x99".into())),
    ("another system goes on", "software", |j| session(j, |facts| facts["system"] = "another".into())),
    ("tools change between cells", "software", |j| {
        let has = |found: &Value| found["facts"]["version btrfs-progs"].is_string();
        once(j, "provenance", has, |found| found["facts"]["version btrfs-progs"] = "9.9".into())
    }),
    ("another governor goes on", "settings", |j| {
        session(&once(j, "provenance", of_run, |found| found["facts"]["governor"] = "performance".into()), |facts| {
            facts["governor"] = "powersave".into();
        })
    }),
    ("turbo is switched on in the middle", "settings", |j| {
        session(&once(j, "provenance", of_run, |found| found["facts"]["turbo off"] = "1".into()), |facts| {
            facts["turbo off"] = "0".into();
        })
    }),
    ("processors may sleep longer from the middle on", "settings", |j| {
        session(&once(j, "provenance", of_run, |found| found["facts"]["cpu latency limit"] = "0 µs".into()), |facts| {
            facts["cpu latency limit"] = "100 µs".into();
        })
    }),
    ("writeback changes in the middle", "settings", |j| session(j, |facts| facts["dirty_bytes"] = "1".into())),
    ("the scheduler changes between cells", "settings", |j| {
        let has = |found: &Value| found["facts"]["queue scheduler"].is_string();
        once(j, "provenance", has, |found| found["facts"]["queue scheduler"] = "none [bfq]".into())
    }),
    ("readahead changes between cells", "settings", |j| {
        let has = |found: &Value| found["facts"]["queue read_ahead_kb"].is_string();
        once(j, "provenance", has, |found| found["facts"]["queue read_ahead_kb"] = "9".into())
    }),
    ("another processor goes on", "drive", |j| session(j, |facts| facts["cpu"] = "another".into())),
    ("memory is taken out", "drive", |j| session(j, |facts| facts["memory"] = "1 GiB".into())),
    ("another drive goes on", "drive", |j| session(j, |facts| facts["memory device"] = "another".into())),
    ("another firmware goes on", "drive", |j| {
        session(&once(j, "provenance", of_run, |found| found["facts"]["nvme0 firmware"] = "1.0".into()), |facts| {
            facts["nvme0 firmware"] = "1.1".into();
        })
    }),
    ("a file system is larger in one round", "drive", |j| {
        once(
            j,
            "provenance",
            |found| found["facts"]["sectors"].is_string(),
            |found| found["facts"]["sectors"] = "9".into(),
        )
    }),
    ("a look names another pick", "looks", |j| once(j, "look", |_| true, |look| look["pick"] = "ext4".into())),
    ("a look gives a better bound", "looks", |j| {
        once(j, "look", |_| true, |look| look["at_most_slower"] = 0.01.into())
    }),
    ("a look ends the run for another reason", "looks", |j| {
        once(j, "look", |_| true, |look| look["end"] = "decided".into())
    }),
    ("results are another program's", "own", |j| once(j, "run", |_| true, |run| run["imported"] = "fio".into())),
];

fn flagged(journal: &str, flag: &str) -> String {
    let cell: Value = serde_json::from_str(journal.lines().find(|line| line.starts_with("{\"end\"")).unwrap()).unwrap();
    let flag =
        serde_json::json!({ "flag": { "cell": cell["end"]["cell"], "phase": "tar-read", "flag": flag, "why": "" } });
    journal.replacen("{\"end\"", &format!("{flag}\n{{\"end\""), 1)
}

fn beside_times(journal: &str, metric: &str) -> String {
    let more = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["sample"]["metric"] != "time_ns" {
            return format!("{line}\n");
        }
        record["sample"]["metric"] = metric.into();
        record["sample"]["value"] = 9_000_000_000_000u64.into();
        format!("{line}\n{record}\n")
    };
    journal.lines().map(more).collect()
}

/// The cells of each round in the order of their names.
fn fixed_order(journal: &str) -> String {
    let lines: Vec<&str> = journal.lines().collect();
    let name = |number: usize| {
        let begin: Value = serde_json::from_str(lines[cell_lines(journal, number).start]).unwrap();
        begin["begin"]["target"].as_str().unwrap().to_string()
    };
    let mut text: Vec<&str> = lines[..cell_lines(journal, 1).start].to_vec();
    for round in 0..3 {
        let mut cells: Vec<usize> = (round * 4 + 1..round * 4 + 5).collect();
        cells.sort_by_key(|number| name(*number));
        cells.into_iter().for_each(|number| text.extend(&lines[cell_lines(journal, number)]));
    }
    text.extend(&lines[cell_lines(journal, 13).start..]);
    text.join("\n") + "\n"
}

#[test]
fn every_planted_breach_is_found_by_its_rule() {
    if not_run(no_python()) {
        return;
    }
    let clean = linked_again(&each(&linked(), "none", |_| {}));
    assert_eq!(not_kept(&clean, Some(|page| page), true), [""; 0]);
    assert_eq!(linked_again(&clean), clean);
    let mut wrong = Vec::new();
    for (breach, rule, change) in BREACHES {
        let changed = change(&clean);
        assert_ne!(changed, clean, "{breach}");
        let found = not_kept(&changed, None, false);
        // What is cut off or added at the end has no link behind it.
        let is_at_end = changed.starts_with(&clean) || clean.starts_with(&changed);
        if !is_at_end && !found.contains(&"chain") {
            wrong.push(format!("{breach}: the links do not show it, only {found:?}"));
        }
        if *rule != "chain" {
            let found = not_kept(&linked_again(&changed), None, *rule == "looks");
            if !found.contains(rule) || found.contains(&"chain") {
                wrong.push(format!("{breach}: not by `{rule}`, but {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), BREACHES.len(), wrong.join("\n"));
}

#[test]
fn a_page_that_was_edited_is_found() {
    if not_run(no_python()) {
        return;
    }
    for edited in [|page: String| page.replacen("btrfs", "ext4", 99), |page: String| page.replacen("<p", "<p ", 1)] {
        assert_eq!(not_kept(&linked(), Some(edited), true), ["page"]);
    }
}

/// What they cannot know is open; nothing is held against them.
#[test]
fn journals_of_earlier_versions_break_no_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/journals");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "jsonl") {
            continue;
        }
        let said = pickfs(&["audit", &path.to_string_lossy()]);
        let is_linked = path.ends_with("linked.jsonl");
        assert_eq!(said.0, if is_linked { 0 } else { 4 }, "{}: {}", path.display(), said.1);
    }
}

/// Its page may be edited, and is not unpacked to be read.
#[test]
fn a_bundle_is_audited_as_it_is() {
    let lab = Lab::new();
    // As before it was shared a first time.
    std::fs::write(lab.path("run.jsonl"), linked_again(&linked().replace("00000000000000", "5f3a9c0b7e1d42"))).unwrap();
    lab.run(&["share", "run.jsonl", "-o", "b.tar.gz"]).code(0);
    lab.run(&["audit", "b.tar.gz"]).code(if no_python().is_some() { 4 } else { 0 });
    let tar = |words: &[&str]| {
        assert!(Command::new("tar").args(words).current_dir(lab.path(".")).status().unwrap().success());
    };
    tar(&["-xzf", "b.tar.gz"]);
    let page = std::fs::read_to_string(lab.path("report.html")).unwrap();
    std::fs::write(lab.path("report.html"), page.replace("ext2", "EXT2")).unwrap();
    tar(&["-czf", "edited.tar.gz", "journal.jsonl", "report.html"]);
    std::fs::remove_file(lab.path("report.html")).unwrap();
    let said = lab.run(&["audit", "edited.tar.gz"]).code(3);
    assert!(said.out.starts_with("Broken: rule 22 (page)"), "{}", said.out);
    assert!(!lab.path("report.html").exists());
}

/// What is cited says what the report says, and names the run by its journal.
#[test]
fn a_disclosure_has_answer_grade_machine_and_name() {
    let lab = Lab::new();
    std::fs::write(lab.path("run.jsonl"), linked()).unwrap();
    let said = lab.run(&["audit", "run.jsonl", "--disclosure", "page.md"]).out;
    let page = std::fs::read_to_string(lab.path("page.md")).unwrap();
    let grade = said.split(':').next().unwrap();
    let name = said.lines().find_map(|line| line.strip_prefix("sha256 of the journal: ")).unwrap();
    let report: Value =
        serde_json::from_str(&lab.run(&["report", "run.jsonl", "--format", "json"]).code(0).out).unwrap();
    let answer = report["verdict"]["headlines"][0].as_str().unwrap().to_string();
    for wanted in [&answer, grade, name, "Processor: ", "ext4: mke2fs", "noise floor", "run --trust --again"] {
        assert!(!wanted.is_empty() && page.contains(wanted), "{wanted:?} is missing in {page}");
    }
    lab.run(&["audit", "run.jsonl", "--disclosure", "page.html"]);
    let html = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(html.contains(name) && html.contains("<h2>Answer</h2>") && !html.contains("src="), "{html}");
}

/// One that has no chain is reproduced too: its times came out again. Other times are a breach only
/// of the same program.
#[test]
fn simulations_that_come_out_the_same_are_reproduced() {
    if not_run(no_python()) {
        return;
    }
    let lab = Lab::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../atlas/site-nvme-sid.jsonl.xz");
    let old = Command::new("xz").arg("-dc").arg(&shipped).output().unwrap().stdout;
    let old = String::from_utf8(old).unwrap();
    let by = |program: &str| {
        old.replacen("\"facts\":{\"guest ", &format!("\"facts\":{{\"simulated by\":\"{program}\",\"guest "), 1)
    };
    let longer = |journal: &str| {
        once(journal, "sample", is_time, |sample| sample["value"] = (sample["value"].as_u64().unwrap() + 1).into())
    };
    let fewer = |journal: &str| without(journal, |at, _| at >= cell_lines(journal, 20).start);
    let (named, other) = (by("QEMU 7, pickfs 1"), by("QEMU 7, pickfs 2"));
    assert!(named != old);
    let cases = [
        (&old, old.clone(), 0, "Reproduced: "),
        (&named, other.clone(), 0, "Reproduced: "),
        (&named, longer(&named), 3, "Broken: rule 23 (again)"),
        (&named, longer(&other), 4, "Open: "),
        (&old, longer(&old), 4, "Open: "),
        (&named, fewer(&named), 4, "Open: "),
    ];
    for (number, (first, again, code, start)) in cases.iter().enumerate() {
        std::fs::write(lab.path("first.jsonl"), first).unwrap();
        std::fs::write(lab.path("again.jsonl"), again).unwrap();
        let said = lab.run(&["audit", "first.jsonl", "--again", "again.jsonl"]).code(*code);
        assert!(said.out.starts_with(start), "{number}: {}", said.out);
    }
    // Cells have other ids in what was shared, also a second time.
    for (from, to) in [("first.jsonl", "b.tar.gz"), ("journal.jsonl", "c.tar.gz")] {
        lab.run(&["share", from, "-o", to]).code(0);
        let said = lab.run(&["audit", to, "--again", "first.jsonl"]).code(0);
        assert!(said.out.starts_with("Reproduced: "), "{to}: {}", said.out);
        assert!(
            Command::new("tar")
                .args(["-xzf", to, "journal.jsonl"])
                .current_dir(lab.path("."))
                .status()
                .unwrap()
                .success()
        );
    }
    let said = lab.run(&["run", "--again", "b.tar.gz"]).code(1);
    assert!(said.err.contains("packed") && said.err.contains("--trust"), "{}", said.err);
}

/// Its other content stays in it.
#[test]
fn a_hostile_bundle_is_read_and_nothing_else() {
    let lab = Lab::new();
    let root = lab.path("hostile");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(lab.path("outside"), "as it was").unwrap();
    let script = "set -e; cd hostile; cp ../run.jsonl journal.jsonl; echo '<html>' > report.html
        printf '#!/bin/sh\ntouch ../executed\n' | tee python3 tar xz gzip pickfs > sh; chmod +x python3 tar xz gzip pickfs sh
        ln -s ../outside link; ln -s ../../../../etc evil
        /bin/tar -czf ../b.tar.gz -P --transform='s,^evil$,../outside,' *";
    std::fs::write(lab.path("run.jsonl"), linked()).unwrap();
    assert!(Command::new("sh").args(["-c", script]).current_dir(lab.path(".")).status().unwrap().success());
    std::fs::remove_dir_all(&root).unwrap();
    let before = names_in(&lab);
    let said = lab.run(&["audit", "b.tar.gz"]).code(3);
    assert!(said.out.starts_with("Broken: rule 22 (page)"), "{}", said.out);
    assert_eq!(names_in(&lab), before);
    assert_eq!(std::fs::read_to_string(lab.path("outside")).unwrap(), "as it was");
    // A journal that is a link in the archive has no content there.
    let script =
        "ln -s /etc/passwd journal.jsonl; touch report.html; tar -czf l.tar.gz journal.jsonl report.html; rm *.jsonl";
    assert!(Command::new("sh").args(["-c", script]).current_dir(lab.path(".")).status().unwrap().success());
    let said = lab.run(&["audit", "l.tar.gz"]).code(2);
    assert!(said.err.contains("no `run` record") && !said.err.contains("root:"), "{}", said.err);
}

fn names_in(lab: &Lab) -> Vec<String> {
    let names =
        std::fs::read_dir(lab.path(".")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "state").collect();
    names.sort();
    names
}

fn pickfs(words: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pickfs")).args(words).output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}
