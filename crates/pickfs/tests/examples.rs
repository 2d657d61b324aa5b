//! Every example is a plan that can be run unchanged, where the machine has what it needs.

use crate::common::{Lab, Said};
use std::path::{Path, PathBuf};

/// A run that ends before its first interim analysis decides nothing.
#[test]
fn every_example_says_how_long_it_takes_and_has_an_end() {
    for plan in examples() {
        let text = std::fs::read_to_string(&plan).expect("it is read");
        let stop = text.split_once("[stop]\n").unwrap_or_else(|| panic!("{}: no [stop]", plan.display()));
        assert!(stop.1.contains("budget = ") || stop.1.contains("rounds = 8"), "{}: nothing ends it", plan.display());
        let before = stop.0.lines().rev().take_while(|line| line.starts_with('#')).collect::<Vec<_>>().concat();
        assert!(before.contains("A round takes"), "{}: how long is a round?", plan.display());
    }
}

/// What a plan may lack in a page that shows a part of it.
const OF_A_PART: [&str; 6] = [
    "the plan has no targets", "the plan has no work", "has no backing", "is not among the targets", "has no `fs`",
    "this work puts",
];

/// A part of a plan that a page shows is right as far as it goes: it is what readers copy first.
#[test]
fn parts_of_plans_in_the_documents_are_right() {
    let (lab, mut count, mut wrong) = (Lab::new(), 0, Vec::new());
    for (page, text) in pages() {
        for part in parts_of_plans(&text) {
            std::fs::write(lab.path("part.toml"), &part).unwrap();
            let said = lab.run(&["plan", "part.toml"]);
            let known = [
                &OF_A_PART[..],
                &OF_THE_MACHINE,
                &["is no directory", "cannot read", "my-guest/vmlinuz", "there is no /dev/"],
            ]
            .concat();
            let strange = |complaint: &&str| !known.iter().any(|known| complaint.contains(known));
            wrong.extend(
                said.err.split("error: ").skip(1).filter(strange).map(|complaint| format!("{page}: {complaint}")),
            );
            count += 1;
        }
    }
    assert!(wrong.is_empty() && count > 15, "of {count} parts: {}", wrong.join("\n"));
}

/// Each command of the guide that would measure is planned instead; none is refused for more than
/// what this machine lacks.
#[test]
fn commands_of_the_guide_can_be_run() {
    let (_, guide) = pages().into_iter().find(|(page, _)| page == "guide.md").expect("there is a guide");
    let commands =
        guide.lines().filter_map(|line| line.strip_prefix("    ")).map(|line| line.trim_start_matches("sudo "));
    let (lab, mut count, mut wrong) = (Lab::new(), 0, Vec::new());
    std::os::unix::fs::symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"), lab.path("examples"))
        .unwrap();
    for command in commands.filter_map(|line| line.strip_prefix("pickfs ")) {
        let words: Vec<&str> =
            command.split_whitespace().map(|word| if word == "--now" { "--plan" } else { word }).collect();
        let words = match words[..] {
            ["run", ref rest @ ..] if rest.iter().any(|word| ["--resume", "--host"].contains(word)) => continue,
            ["run", ref rest @ ..] => [&["plan"], rest].concat(),
            ["for" | "plan" | "list", ..] => words,
            _ => continue,
        };
        let said = lab.run(&words);
        let complaints = said.err.split("error: ").filter(|text| !text.trim().is_empty());
        let known = [&OF_THE_MACHINE[..], &OF_THE_READER].concat();
        let strange = |complaint: &&str| said.code != Some(0) && !known.iter().any(|known| complaint.contains(known));
        wrong.extend(complaints.filter(strange).map(|complaint| format!("{words:?}: {complaint}")));
        count += 1;
    }
    assert!(wrong.is_empty() && count > 25, "of {count} commands: {}", wrong.join("\n"));
}

/// What only readers have: their folders, files and disks.
const OF_THE_READER: [&str; 6] =
    ["is no directory", "there is no /", "No such file", "--sim takes one disk here", "cannot read", "no root"];

/// A page that the index does not name is found by no one; one that it names and is not there, by
/// everyone.
#[test]
fn the_manual_names_each_of_its_pages_and_no_other() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let (index, pages): (Vec<_>, Vec<_>) = pages().into_iter().partition(|(page, _)| page == "README.md");
    let links = index[0].1.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let named: Vec<&str> = links.filter(|link| !link.is_empty()).collect();
    let gone: Vec<&&str> = named.iter().filter(|link| !docs.join(link).exists()).collect();
    let unnamed: Vec<&String> =
        pages.iter().map(|(page, _)| page).filter(|page| !named.contains(&page.as_str())).collect();
    assert!(gone.is_empty() && unnamed.is_empty(), "not there: {gone:?}; not named: {unnamed:?}");
}

#[test]
fn what_is_cited_is_this_version() {
    for (file, before) in [("CITATION.cff", "\nversion: "), ("README.md", "(version ")] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap();
        assert!(text.contains(&format!("{before}{}", env!("CARGO_PKG_VERSION"))), "{file}");
    }
}

/// A link from a page to itself leads nowhere.
#[test]
fn no_page_links_to_itself() {
    for (page, text) in pages() {
        assert!(!text.contains(&format!("]({page})")), "{page}");
    }
}

fn pages() -> Vec<(String, String)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("docs");
    let files = std::fs::read_dir(folder).expect("there are documents").map(|entry| entry.expect("a page").path());
    let pages = files.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    pages.map(|path| (name(&path), std::fs::read_to_string(&path).expect("it is read"))).collect()
}

/// Indented blocks that are TOML and have a key of a plan.
fn parts_of_plans(page: &str) -> Vec<String> {
    let lines: Vec<&str> = page.lines().collect();
    let blocks = lines.split(|line| !line.is_empty() && !line.starts_with("    "));
    let text = |block: &[&str]| block.iter().map(|line| format!("{}\n", line.trim_start_matches("    "))).collect();
    let blocks = blocks.map(text).filter(|block: &String| !block.trim().is_empty());
    let keys = ["backing", "executor", "layers", "machine", "matrix", "stop", "target", "verdict", "work"];
    let is_plan = |block: &String| {
        let table: Option<toml::Table> = toml::from_str(block).ok();
        table.is_some_and(|table| keys.iter().any(|key| table.contains_key(*key)))
    };
    blocks.filter(is_plan).collect()
}

/// Complaints about this machine, not about the plan: a program or a source that is not there, no
/// room on its disk.
const OF_THE_MACHINE: [&str; 3] =
    ["apt-get install", "a smaller size, or another place", "make it first, or name another"];

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("examples");
    let files = std::fs::read_dir(folder).expect("there are examples").map(|entry| entry.expect("an example").path());
    let mut plans: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    plans.sort();
    plans
}

#[test]
fn every_example_is_right_as_it_stands() {
    let plans = examples();
    assert!(plans.len() >= 10, "{plans:?}");
    for plan in plans {
        let lab = Lab::new();
        let said: Said = lab.run(&["plan", &plan.display().to_string()]);
        let complaints: Vec<&str> = said.err.split("error: ").skip(1).collect();
        let strange = complaints.iter().find(|told| OF_THE_MACHINE.iter().all(|known| !told.contains(known)));
        assert!(strange.is_none(), "{}: {}", plan.display(), strange.unwrap_or(&""));
        if said.code == Some(0) {
            assert!(said.out.contains("\nwork "), "{}: {}", plan.display(), said.out);
        } else {
            assert!(!complaints.is_empty(), "{}: {}{}", plan.display(), said.out, said.err);
            println!("{}: not planned, because {}", plan.display(), complaints.concat());
        }
    }
}
