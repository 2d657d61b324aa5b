//! The shipped protocols in guests, shrunk to one round, and that a plan comes to the same shape
//! near and far. Guests are made and booted, which takes minutes: one protocol is always run, the
//! others by `make test-vm`.

use crate::common::{Lab, no_guests, not_run, run, shrunk, unable};
use pickfs_core::journal::{Folded, Outcome};
use std::collections::BTreeSet;
use std::path::Path;

/// The example for guests, with other targets and with each of these replaced, which must be there.
fn for_guests(example: &str, targets: &str, replaced: &[(&str, &str)]) -> String {
    // At the begin of a line: comments speak of them too.
    let (begin, end) = (example.find("\n[[target]]"), example.find("\n[matrix]").or(example.find("\n[[work]]")));
    let (begin, end) = (begin.expect("targets") + 1, end.expect("what comes after them") + 1);
    let text = format!("{}{targets}\n{}", &example[..begin], &example[end..]);
    format!("executor = \"vm\"\nturn = \"shared\"\nduplicate = false\n{}", shrunk(&text, replaced))
}

const TARGETS: &str = "[[target]]\nfs = \"ext4\"\n[[target]]\nfs = \"reiserfs\"\n";

/// Every cell is done, cold where it says so, and nothing is left; how each went is printed.
fn assert_all_done(lab: &Lab, plan: &str) -> Folded {
    let said = lab.run_plan(plan);
    assert!(lab.journal().is_file(), "{}", said.err);
    let folded = lab.folded();
    for cell in &folded.cells {
        println!("{} {}: {:?} {:?}", cell.target, cell.work, cell.outcome, cell.flags);
    }
    println!("{}\n{}", said.out, said.err);
    assert!(!folded.cells.is_empty());
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{} {}", cell.target, cell.work);
        assert!(cell.flags.iter().all(|flag| !flag.flag.ends_with("not-cold")), "{}: {:?}", cell.target, cell.flags);
    }
    lab.assert_nothing_left();
    folded
}

fn site_generator() -> String {
    let replaced = [
        ("size = \"3GiB\"", "size = \"160MiB\""),
        ("workload = \"walk\"\nrepeats = 6", "workload = \"walk\"\nfiles = 200\nbytes = \"4MiB\"\nrepeats = 2"),
        ("checked = 2000\nrepeats = 6", "checked = 40\nfiles = 200\nbytes = \"4MiB\"\nrepeats = 2"),
        ("scale = 0.25", "files = 100\nbytes = \"8MiB\""),
        ("(1..2000)", "(1..20)"),
        ("budget = \"2h\"", "rounds = 1"),
    ];
    for_guests(include_str!("../../../../examples/site-generator.toml"), TARGETS, &replaced)
}

#[test]
#[ignore = "boots guests: make test-vm"]
fn a_site_generator_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let folded = assert_all_done(&Lab::new(), &site_generator());
    assert_eq!(folded.cells.len(), 8);
}

fn bonnie_and_schedulers() -> String {
    let replaced = [
        ("size = \"8GiB\"", "size = \"128MiB\""),
        ("scheduler = [\"none\", \"mq-deadline\", \"bfq\", \"kyber\"]", "scheduler = [\"none\", \"bfq\"]"),
        ("fill = [\"40%\"]", "fill = [\"10%\"]"),
        ("40% full", "10% full"),
        (
            "size = \"2GiB\"\nfiles = 131072",
            "size = \"4MiB\"\ncharacters = \"1MiB\"\nfiles = 1024\nmissing = \"leave-out\"",
        ),
        (
            "files = 16384\nlarge = \"1GiB\"",
            "files = 64\ntime = \"1ms\"\nlarge = \"2MiB\"\ncharacters = \"64KiB\"\nseeks = 64\nsyncs = 8",
        ),
        ("budget = \"12h\"\nthreshold = \"3%\"", "rounds = 1"),
    ];
    for_guests(include_str!("../../../../examples/bonnie-and-schedulers.toml"), TARGETS, &replaced)
}

#[test]
#[ignore = "boots guests: make test-vm"]
fn bonnie_and_schedulers_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let folded = assert_all_done(&Lab::new(), &bonnie_and_schedulers());
    assert_eq!(folded.cells.len(), 8);
    for cell in &folded.cells {
        let scheduler = if cell.target.contains(" bfq") { "[bfq]" } else { "[none]" };
        let shown = &cell.provenance.facts["queue scheduler"];
        assert!(shown.contains(scheduler), "{}: {shown}", cell.target);
    }
}

#[test]
fn databases_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let replaced = [
        ("size = \"8GiB\"", "size = \"400MiB\""),
        ("reference = \"ext4 noatime\"", "reference = \"reiserfs noatime\""),
        ("clients = [10, 100]", "clients = [1, 3]\nserver = [\"max_wal_size=64MB\", \"shared_buffers=16MB\"]"),
        ("time = \"60s\"", "time = \"2s\""),
        ("transactions = 1000", "transactions = 20\nselects = 40"),
        ("rows = 100000", "rows = 2000"),
        ("budget = \"6h\"", "rounds = 1"),
    ];
    let plan =
        for_guests(include_str!("../../../../examples/postgresql.toml"), "[[target]]\nfs = \"reiserfs\"\n", &replaced);
    let folded = assert_all_done(&Lab::new(), &plan);
    assert_eq!(folded.cells.len(), 2);
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, text).expect("the file");
}

/// What compiles like a kernel, in few files; enough of them that a cold start has something to
/// read.
fn tiny_kernel(lab: &Lab) -> String {
    let tree = lab.path("tiny-6.1");
    let rules = "tinyconfig:\n\techo CONFIG_TINY=y > .config\nSOURCES = $(wildcard kernel/*.c)\nvmlinux: \
                 $(SOURCES:.c=.o)\n\tld -r -o $@ $^\n%.o: %.c .config\n\tgcc -c -o $@ $<\n";
    write(&tree.join("Makefile"), &format!("{rules}{}", "# what a Makefile has to say of itself\n".repeat(200)));
    for number in 0..4 {
        let filler = format!("/* {} */\n", "what a driver has to say of itself ".repeat(100));
        let code = format!("{filler}int function_{number}(int x) {{ return x * {number}; }}\n");
        write(&tree.join(format!("kernel/part{number}.c")), &code);
    }
    for number in 0..300 {
        let text = format!("how to use driver {number}\n").repeat(10 + number % 150);
        write(&tree.join(format!("Documentation/driver{number}.txt")), &text);
    }
    let (tarball, top) = (lab.path("tiny-6.1.tar.xz"), lab.path("."));
    run(&["tar", "-cJf", &tarball.display().to_string(), "-C", &top.display().to_string(), "tiny-6.1"]);
    tarball.display().to_string()
}

/// Packages that need no script.
fn tiny_archive(lab: &Lab) -> String {
    let archive = lab.path("archive");
    std::fs::create_dir(&archive).expect("a folder");
    for number in 0..10 {
        let (made, name) = (lab.path(&format!("deb{number}")), format!("tiny{number}"));
        let about = format!(
            "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: tiny\n"
        );
        write(&made.join("DEBIAN/control"), &about);
        for file in 0..20 {
            let text = format!("file {file} of {name}\n").repeat(40 * (file + 1));
            write(&made.join(format!("usr/share/{name}/file{file}")), &text);
        }
        let package = archive.join(format!("{name}_1_all.deb")).display().to_string();
        run(&["dpkg-deb", "--root-owner-group", "--build", &made.display().to_string(), &package]);
    }
    archive.display().to_string()
}

fn unstable_system(lab: &Lab) -> String {
    let tarball = format!("tarball = \"{}\"", tiny_kernel(lab));
    let archive = format!("archive = \"{}\"", tiny_archive(lab));
    let replaced = [
        ("size = \"6GiB\"", "size = \"160MiB\""),
        ("# tarball = \"~/src/linux-6.12.tar.xz\"", tarball.as_str()),
        ("names = [\"xfce4\"]\n", ""),
        ("# archive = \"/var/cache/apt/archives\"", archive.as_str()),
        (
            "size = \"2GiB\"\nfiles = 131072",
            "size = \"4MiB\"\ncharacters = \"1MiB\"\nfiles = 1024\nmissing = \"leave-out\"",
        ),
        ("budget = \"10h\"", "rounds = 1"),
    ];
    for_guests(include_str!("../../../../examples/unstable-system.toml"), "[[target]]\nfs = \"ext4\"\n", &replaced)
}

#[test]
#[ignore = "boots guests: make test-vm"]
fn an_unstable_system_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let folded = assert_all_done(&lab, &unstable_system(&lab));
    assert_eq!(folded.cells.len(), 3);
}

/// Those of the ignored tests, which would be the last to notice that an example has changed.
#[test]
fn the_plans_of_long_tests_are_still_those_of_the_examples() {
    let lab = Lab::new();
    for plan in [site_generator(), bonnie_and_schedulers(), unstable_system(&lab)] {
        lab.write_plan(&plan);
        lab.run(&["plan", "plan.toml"]).code(0);
    }
}

/// What a journal says of each cell, without its numbers.
fn shape(folded: &Folded) -> BTreeSet<String> {
    let plan = &folded.run.as_ref().expect("a run").plan;
    let targets = plan.targets.iter().map(|target| format!("target {}", target.name));
    let cells = folded.cells.iter().flat_map(|cell| {
        let name = format!("{} {} round {}", cell.target, cell.work, cell.round);
        let told = folded.samples(cell).map(|(phase, metric, _)| format!("{name} {phase} {metric}"));
        told.collect::<Vec<_>>()
    });
    targets.chain(cells).collect()
}

#[test]
#[ignore = "boots guests: make test-vm"]
fn a_plan_comes_to_the_same_shape_near_and_far() {
    if not_run(no_guests().or(unable(&["ext4"]))) {
        return;
    }
    let plan = "duplicate = false\nbacking = { image = { dir = \".\", size = \"64MiB\" } }\ntarget = [{ fs = \"ext4\", \
                queue = { read_ahead_kb = 256 } }]\nwork = [{ workload = \"tree\", like = \"site\", scale = 0.02 }]\n\
                stop = { rounds = 1 }\n";
    let shapes = ["local", "vm"].map(|executor| {
        let lab = Lab::new();
        let folded = assert_all_done(&lab, &format!("executor = \"{executor}\"\n{plan}"));
        assert_eq!(folded.cells[0].target, "ext4 read_ahead_kb=256");
        assert_eq!(folded.cells[0].provenance.facts["queue read_ahead_kb"], "256");
        shape(&folded)
    });
    let [near, far] = &shapes;
    // The disk below a loop device is none of a guest's, other processes are there or not, and a
    // phase of a few milliseconds has no peaks.
    let own = |name: &&String| [" below_", " foreign_", " peak_"].iter().all(|other| !name.contains(other));
    let differ: Vec<&String> = near.symmetric_difference(far).filter(own).collect();
    assert!(differ.is_empty(), "only near or only far: {differ:#?}");
}
