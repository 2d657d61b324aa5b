//! How near a replay comes to the program itself. In each round each of six programs is recorded on
//! ext4; then program and trace take turns at once, in random order, on four file systems in
//! memory: a machine's speed changes within minutes. Needs root, ext4, xfs, btrfs, git, gcc, make
//! and sqlite3, and says so otherwise. `cargo bench --bench replay -- mail copy` takes the programs
//! whose names have one of these words.
//!
//! 1. On ext4 each replay takes as long as its program within 15 %, and within 10.6 % in the mean:
//!    what ARTC reached (Weiss et al., SOSP 2013). By the median of the rounds' ratios.
//! 2. Where a program is over 10 % faster on one file system than on another, and faster in every
//!    round, so is its trace, in nine of ten such pairs.

mod common;

use common::{run, text};
use pickfs_core::journal::{Folded, fold_file};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

const ROUNDS: usize = 5;
const MOST_ERROR: f64 = 0.15;
const MOST_MEAN_ERROR: f64 = 0.106;
const DIFFERS: f64 = 1.10;
const LEAST_AGREEMENT: f64 = 0.9;
const TARGETS: [(&str, &str); 4] = [
    ("ext4", "fs = \"ext4\""),
    ("xfs", "fs = \"xfs\""),
    ("btrfs", "fs = \"btrfs\""),
    ("btrfs zstd:1", "fs = \"btrfs\", variant = \"zstd:1\""),
];

/// Cargo sets it for benchmarks. Each program that starts looks for its libraries there first: mail
/// took 12 % longer to deliver.
const CARGO_LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Shell commands in an empty folder; `SOURCES` is a folder in memory.
struct Program {
    name: &'static str,
    prepare: &'static str,
    command: &'static str,
}

const PROGRAMS: [Program; 6] = [
    Program {
        name: "copy, search, remove",
        prepare: "mkdir tree && tar xf SOURCES/headers.tar -C tree",
        command: "cp -a tree copy && { grep -r inotify_add_watch copy >found; rm -r tree; }",
    },
    Program {
        name: "deliver mail",
        prepare: "mkdir tmp new cur",
        command: "for i in $(seq 400); do head -c $((200 + i * 977 % 9000)) SOURCES/letter >tmp/$i; mv tmp/$i new/; done; \
                  for i in new/*; do mv $i cur/; done; grep -l example -r cur >found",
    },
    Program { name: "git clone", prepare: "", command: "git clone --quiet --no-hardlinks SOURCES/source.git clone" },
    Program { name: "make", prepare: "cp -r SOURCES/project .", command: "make --silent -C project" },
    Program { name: "sqlite3", prepare: "", command: "sqlite3 test.db '.read SOURCES/inserts.sql' >found" },
    Program { name: "tar x", prepare: "", command: "tar xf SOURCES/headers.tar" },
];

fn main() -> ExitCode {
    common::keep_mounts_apart();
    let file_systems = ["ext4", "xfs", "btrfs"].iter().filter_map(|name| pickfs_target::stack::fs::find(name));
    let needs = file_systems.flat_map(|fs| fs.needs()).collect::<Vec<_>>();
    let programs =
        ["git", "gcc", "make", "sqlite3"].map(|name| pickfs_system::need::Need::Program { name, package: name });
    if let Some(why) = pickfs_system::need::missing(&[needs, programs.to_vec()].concat()).first() {
        println!("replay: not run, because {why}");
        return ExitCode::SUCCESS;
    }
    let programs = chosen();
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    let sources = folder.path().join("sources");
    make_sources(&sources);
    let one = |round, program: &&'static Program| {
        record(folder.path(), program);
        (program.name, measured(folder.path(), program, round))
    };
    let rounds: Vec<Times> =
        (1..=ROUNDS).map(|round| programs.iter().map(|program| one(round, program)).collect()).collect();
    let near = judge_errors(&programs, &rounds);
    let alike = judge_signs(&programs, &rounds);
    if near && alike { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn chosen() -> Vec<&'static Program> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen =
        |program: &&Program| words.is_empty() || words.iter().any(|word| program.name.contains(word.as_str()));
    PROGRAMS.iter().filter(is_chosen).collect()
}

fn make_sources(sources: &Path) {
    let project = sources.join("project");
    std::fs::create_dir_all(&project).expect("folders");
    let at = |name: &str| text(&sources.join(name));
    run("tar", &["cf", &at("headers.tar"), "-C", "/usr", "include"]);
    run("git", &["clone", "--quiet", "--bare", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), &at("source.git")]);
    std::fs::write(sources.join("letter"), "a letter of example.org\n".repeat(500)).expect("a letter");
    let mut inserts = String::from("PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);\n");
    for row in 0..4000 {
        let _ = writeln!(inserts, "INSERT INTO t(b) VALUES('a row of text, number {row}');");
        if row % 200 == 0 {
            let _ = writeln!(inserts, "SELECT count(*) FROM t WHERE b LIKE '%{row}%';");
        }
    }
    std::fs::write(sources.join("inserts.sql"), inserts).expect("inserts");
    let mut objects = String::new();
    for number in 0..4 {
        let mut file =
            String::from("#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
        for function in 0..150 {
            let _ = writeln!(
                file,
                "double f{number}_{function}(double *a, int n) {{ double s = {function}; for (int i = 0; i < n; i++) \
                 s += sqrt(a[i]) * a[(i + {function}) % n]; return s; }}"
            );
        }
        std::fs::write(project.join(format!("f{number}.c")), file).expect("a file");
        let _ = write!(objects, " f{number}.o");
    }
    std::fs::write(project.join("Makefile"), format!("CFLAGS = -O2\nall:{objects}\n")).expect("a Makefile");
}

/// On ext4 in memory, in its own folder.
fn record(folder: &Path, program: &Program) {
    let (image, mount) = (folder.join("image"), folder.join("mount"));
    std::fs::create_dir_all(&mount).expect("a folder");
    run("truncate", &["-s", "2G", &text(&image)]);
    run("mke2fs", &["-t", "ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", &text(&image)]);
    run("mount", &["-o", "loop", &text(&image), &text(&mount)]);
    let inside = mount.join("work");
    std::fs::create_dir(&inside).expect("a folder");
    let shell = |words: &[&str], command: &str| {
        let mut whole = Command::new(words[0]);
        // In the locale that pickfs gives to commands: in others a program that starts reads files
        // of the C library's.
        whole
            .args(&words[1..])
            .args(["sh", "-c", &with_sources(command, folder)])
            .current_dir(&inside)
            .env("LC_ALL", "C")
            .env_remove(CARGO_LIBRARIES);
        let output = whole.output().expect("the program starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    };
    if !program.prepare.is_empty() {
        shell(&["env"], program.prepare);
    }
    let trace = text(&trace_of(folder, program));
    shell(&[env!("CARGO_BIN_EXE_pickfs"), "record", "-o", &trace, "--"], program.command);
    run("umount", &[&text(&mount)]);
    std::fs::remove_file(&image).expect("removed");
}

/// Milliseconds by program, by target: of the program and of its trace.
type Times = BTreeMap<&'static str, Vec<(f64, f64)>>;

/// One run of pickfs of a program and its trace, on each target.
fn measured(folder: &Path, program: &Program, round: usize) -> Vec<(f64, f64)> {
    let mut plan = format!(
        "backing = {{ memory = \"2GiB\" }}\nreference = \"ext4\"\nduplicate = false\nseed = {round}\nstop = {{ rounds = 1 }}\n"
    );
    for (name, target) in TARGETS {
        let _ = writeln!(plan, "[[target]]\nname = \"{name}\"\n{}", target.replace(", ", "\n"));
    }
    let shell = |command: &str| format!("[\"sh\", \"-c\", {:?}]", with_sources(command, folder));
    let _ = writeln!(plan, "[[work]]\nname = \"program\"\nworkload = \"command\"\nstart = \"warm\"");
    let _ = writeln!(plan, "command = {}", shell(program.command));
    if !program.prepare.is_empty() {
        let _ = writeln!(plan, "prepare = {}", shell(program.prepare));
    }
    let _ = writeln!(plan, "[[work]]\nname = \"replay\"\nworkload = \"trace\"\nstart = \"warm\"");
    let _ = writeln!(plan, "trace = {:?}", text(&trace_of(folder, program)));
    std::fs::write(folder.join("plan.toml"), plan).expect("a plan");
    let journal = folder.join("journal.jsonl");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pickfs"));
    command.args(["run", "plan.toml", "--journal", &text(&journal)]).current_dir(folder);
    command.env("XDG_STATE_HOME", folder).env_remove(CARGO_LIBRARIES);
    let status = command.stdout(std::process::Stdio::null()).status().expect("pickfs starts");
    assert!(status.success(), "{status}");
    let folded = fold_file(&journal).expect("a journal");
    std::fs::remove_file(&journal).expect("removed");
    let of =
        |target: &str| (time_ms(&folded, target, "program", "command"), time_ms(&folded, target, "replay", "replay"));
    TARGETS.map(|(target, _)| of(target)).to_vec()
}

fn time_ms(folded: &Folded, target: &str, work: &str, phase: &str) -> f64 {
    let cells = folded.cells.iter().filter(|cell| cell.target == target && cell.work == work);
    let mut samples = cells.flat_map(|cell| folded.samples(cell));
    let time = samples.find(|(of, metric, _)| (*of, *metric) == (phase, "time_ns")).map(|(_, _, value)| value);
    time.unwrap_or_else(|| panic!("{target} {work}: nothing was measured")) / 1e6
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    pickfs_stats::median(&values.collect::<Vec<_>>()).expect("there are rounds")
}

fn judge_errors(programs: &[&Program], rounds: &[Times]) -> bool {
    let heads = TARGETS.map(|(name, _)| format!("{name}: program, replay"));
    println!("| program | {} | error on ext4 (rounds) |\n|---|{}---|", heads.join(" | "), "---|".repeat(TARGETS.len()));
    let mut errors = Vec::new();
    for Program { name, .. } in programs {
        let times = |target: usize| rounds.iter().map(move |round| round[name][target]);
        let shown: Vec<String> = (0..TARGETS.len())
            .map(|target| {
                format!("{:.0}, {:.0}", median(times(target).map(|t| t.0)), median(times(target).map(|t| t.1)))
            })
            .collect();
        let of_rounds = times(0).map(|(own, replay)| replay / own - 1.0).collect::<Vec<_>>();
        let error = median(of_rounds.iter().copied());
        let (least, most) = of_rounds.iter().fold((f64::MAX, f64::MIN), |(a, b), error| (a.min(*error), b.max(*error)));
        println!(
            "| {name} | {} | {:+.1} % ({:+.0} to {:+.0}) |",
            shown.join(" | "),
            100.0 * error,
            100.0 * least,
            100.0 * most
        );
        errors.push(error.abs());
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let met = mean <= MOST_MEAN_ERROR && errors.iter().all(|error| *error <= MOST_ERROR);
    println!("medians of {ROUNDS} rounds, ms; mean error {:.1} %: {}", 100.0 * mean, verdict(met));
    met
}

fn judge_signs(programs: &[&Program], rounds: &[Times]) -> bool {
    let (mut apart, mut agree) = (0, 0);
    for Program { name, .. } in programs {
        for first in 0..TARGETS.len() {
            for second in first + 1..TARGETS.len() {
                let own = rounds.iter().map(|round| round[name][first].0 / round[name][second].0);
                let own: Vec<f64> = own.collect();
                let replay = median(rounds.iter().map(|round| round[name][first].1 / round[name][second].1));
                let middle = median(own.iter().copied());
                let is_sure = own.iter().all(|ratio| (*ratio > 1.0) == (middle > 1.0));
                if is_sure && !(1.0 / DIFFERS..=DIFFERS).contains(&middle) {
                    apart += 1;
                    agree += usize::from((middle > 1.0) == (replay > 1.0));
                    if (middle > 1.0) != (replay > 1.0) {
                        let (first, second) = (TARGETS[first].0, TARGETS[second].0);
                        println!("{name}: {first} / {second} is {middle:.2}, replayed {replay:.2}");
                    }
                }
            }
        }
    }
    let met = agree as f64 >= LEAST_AGREEMENT * apart as f64;
    println!("{agree} of {apart} pairs over 10 % apart in every round have the same sign: {}", verdict(met));
    met
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}

fn trace_of(folder: &Path, program: &Program) -> std::path::PathBuf {
    folder.join(format!("{}.pktrace", program.name.replace([' ', ','], "-")))
}

fn with_sources(command: &str, folder: &Path) -> String {
    command.replace("SOURCES", &text(&folder.join("sources")))
}
