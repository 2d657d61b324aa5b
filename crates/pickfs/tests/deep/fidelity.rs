//! `pickfs sim calibrate`: file systems in memory, on this machine and simulated. `pickfs sim
//! score`: published tables, and simulations of the same work.

use crate::common::{Lab, no_guests, not_run};

/// The table of docs/sim-results.md. A machine that does other work meanwhile shows more of that
/// than of the simulation.
#[test]
#[ignore = "nine rounds here and four guests, ten minutes: make test-sim"]
fn ratios_between_file_systems_are_those_of_this_machine() {
    let is_root = rustix::process::geteuid().is_root();
    if not_run((!is_root).then(|| "only root makes file systems in memory".into())) || not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let said = lab.run(&["sim", "calibrate"]).code(0).out;
    println!("{said}");
    let file = std::fs::read_to_string(lab.path("processor.toml")).expect("the file");
    println!("{file}");
    let line = said.lines().find(|line| line.starts_with("processor time: ")).expect("the agreement");
    let mut numbers = line.split(' ').filter_map(|word| word.parse::<f64>().ok());
    let (in_order, apart) = (numbers.next().expect("pairs"), numbers.next().expect("pairs"));
    assert!(apart >= 10.0 && in_order / apart >= 0.9, "{line}");
    // What was written is what a plan takes.
    lab.write_plan(
        "executor = \"sim\"\nmachine = { disk = \"none\", dilation = \"processor.toml\" }\nbacking = { memory = \"1GiB\" }\n\
         target = [{ fs = \"ext4\" }]\nwork = [\"tree\"]\n",
    );
    lab.run(&["plan", "plan.toml"]).code(0);
    let again = lab.run(&["sim", "calibrate"]).code(2).err;
    assert!(again.contains("processor.toml is there already"), "{again}");
}

const TABLE: &str = r#"
title = "Two groups"
source = "https://example.org, 2024"
licence = "CC BY 4.0"
drive = "a hard disk, 5400 rpm"
kernel = "5.15"
[[column]]
name = "zip"
about = "files packed"
unit = "s"
better = "lower"
work = { workload = "command", command = ["true"] }
phase = "command"
[[row]]
name = "ext4"
target = { fs = "ext4" }
published = { zip = 210.9 }
[[row]]
name = "xfs"
target = { fs = "xfs" }
published = { zip = 6.69 }
[[row]]
name = "jfs"
target = { fs = "jfs" }
published = { zip = 241.84 }
[[row]]
name = "hfsplus"
target = { fs = "hfsplus" }
published = { zip = 261.62 }
[[row]]
name = "ext4 on a second disk"
target = { fs = "ext4" }
published = { zip = 180.0 }
"#;

/// Journals that are there are scored without a machine; the files next to them give the reasons.
#[test]
fn a_table_is_scored_from_its_journal() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("journals/two.why")).expect("a folder");
    std::fs::write(lab.path("two.toml"), TABLE).expect("written");
    let cell = |number: u32, target: &str, end: &str, ns: f64| {
        format!(
            "{{\"begin\":{{\"cell\":\"{number}\",\"round\":1,\"target\":\"{target}\",\"work\":\"zip\",\"at\":\"\"}}}}\n\
             {{\"sample\":{{\"cell\":\"{number}\",\"phase\":\"command\",\"metric\":\"time_ns\",\"value\":{ns}}}}}\n\
             {{\"end\":{{\"cell\":\"{number}\",\"outcome\":{end},\"at\":\"\"}}}}\n"
        )
    };
    let journal = [
        cell(1, "ext4", "\"done\"", 21e9),
        cell(2, "xfs", "\"done\"", 1e9),
        cell(3, "jfs", "{\"skipped\":[\"no jfs\"]}", 1.0),
    ];
    std::fs::write(lab.path("journals/two.jsonl"), journal.concat()).expect("written");
    let score = ["sim", "score", "two.toml", "--journals", "journals", "--no-run"];
    let page = lab.run(&score).code(0).out;
    for line in [
        "| Two groups | 3 | 2 | 0.25 | 0.41 |",
        "a hard disk, 5400 rpm, Linux 5.15: simulated as hdd-5400, kernel of bookworm",
        "| ext4 | 210.9 s | 31.52 | 21.00 |",
        "| zip | ext4, ext4 on a second disk | 1.17 | 1.00 | both are simulated as hdd-5400 |",
        "* jfs, zip: no jfs",
        "* hfsplus, zip: pickfs has no file system `hfsplus`",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    // Slower on xfs, which is not as published.
    std::fs::write(lab.path("journals/two.jsonl"), journal.concat().replace(":1000000000}", ":90000000000}"))
        .expect("written");
    let page = lab.run(&score).code(0).out;
    assert!(page.contains("| zip | ext4, xfs | 31.52 | 0.23 | not known |"), "{page}");
    let why = r#"{"differences":[{"work":"other","sentence":"no"},{"work":"zip","sentence":"ext4 seeks | more."}]}"#;
    std::fs::write(lab.path("journals/two.why/zip.ext4.xfs.json"), why).expect("written");
    let page = lab.run(&score).code(0).out;
    assert!(page.contains("| zip | ext4, xfs | 31.52 | 0.23 | ext4 seeks \\| more. |"), "{page}");
    // Nothing measured is no score.
    let page = lab.run(&["sim", "score", "two.toml", "--no-run", "--journals", "none"]).code(1).out;
    assert!(
        page.contains("| Two groups | 0 | 0 | – | – |") && page.contains("* all of it: there is no two.jsonl yet"),
        "{page}"
    );
    let wrong = lab.run(&["sim", "score", "two.toml", "--scale", "0"]).code(2).err;
    assert!(wrong.contains("--scale is more than 0"), "{wrong}");
    std::fs::write(lab.path("bad.toml"), TABLE.replace("5400 rpm", "").replace("hard disk", "tape")).expect("written");
    let wrong = lab.run(&["sim", "score", "bad.toml"]).code(2).err;
    assert!(
        wrong.contains("bad.toml is no table of measurements") && wrong.contains("no model is like the drive"),
        "{wrong}"
    );
}
