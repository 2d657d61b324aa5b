//! A system that changes every day: kernels compiled and packages installed, end to end with the
//! real binary, on a tiny kernel and on tiny packages made here.

use crate::common;

use crate::common::{Lab, Observation, Said, failed, not_run, run, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use pickfs_core::plan::Settings;
use pickfs_system::need::missing;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const EXAMPLE: &str = include_str!("../../../../examples/unstable-system.toml");

const KERNEL: [&str; 5] = ["unpack", "configure", "compile", "recompile", "remove"];
const PACKAGES: [&str; 3] = ["install", "list", "remove"];

/// As many as btrfs needs to have more to read than what it reads when it is mounted.
const PACKAGES_MADE: usize = 30;

/// In the manner of Kbuild: a program for the machine that compiles, a configuration, objects, what
/// is linked of them.
const MAKEFILE: &str = "\
tinyconfig: scripts/conf
\tscripts/conf > .config
scripts/conf: scripts/conf.c
\tgcc -o $@ $<
SOURCES = $(wildcard kernel/*.c)
vmlinux: $(SOURCES:.c=.o)
\tld -r -o $@ $^
%.o: %.c .config
\tgcc -c -O1 -o $@ $<
";

fn cannot_run(filesystems: &[&str], workload: &str) -> bool {
    let needs = pickfs_target::workload::find(workload).expect("a workload").needs(&Settings::default());
    let lacking = missing(&needs).first().map(ToString::to_string);
    not_run(unable(filesystems).or(lacking))
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A tarball with one folder; `broken` is the content of one more file to compile. Of few files
/// btrfs would read all that there is to know when it is mounted, and a cold start would have
/// nothing to read.
fn tiny_kernel(lab: &Lab, broken: Option<&str>) -> String {
    let tree = lab.path("tiny-6.1");
    // Too large to be stored with its inode.
    write(&tree.join("Makefile"), &format!("{MAKEFILE}{}", "# what a Makefile has to say of itself\n".repeat(200)));
    write(&tree.join("scripts/conf.c"), "#include <stdio.h>\nint main(void) { return puts(\"CONFIG_TINY=y\") < 0; }\n");
    for number in 0..12 {
        let filler = format!("/* {} */\n", "what a driver has to say of itself ".repeat(100));
        let code = format!("{filler}int function_{number}(int x) {{ return x * {number}; }}\n");
        write(&tree.join(format!("kernel/part{number}.c")), &code);
    }
    for number in 0..600 {
        let text = format!("how to use driver {number}\n").repeat(10 + number % 150);
        write(&tree.join(format!("Documentation/driver{number}.txt")), &text);
    }
    broken.iter().for_each(|text| write(&tree.join("kernel/broken.c"), text));
    let (tarball, top) = (lab.path("tiny-6.1.tar.xz"), lab.path("."));
    run(&["tar", "-cJf", &tarball.display().to_string(), "-C", &top.display().to_string(), "tiny-6.1"]);
    tarball.display().to_string()
}

/// A folder with Debian packages. Every script in them would fail, and leave a trace.
fn tiny_archive(lab: &Lab) -> String {
    let archive = lab.path("archive");
    std::fs::create_dir(&archive).unwrap();
    for number in 0..PACKAGES_MADE {
        let (made, name) = (lab.path(&format!("deb{number}")), format!("tiny{number}"));
        let about = format!(
            "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\n\
             Depends: not-there\nPre-Depends: tiny{}\nDescription: tiny\n",
            (number + 1) % PACKAGES_MADE
        );
        write(&made.join("DEBIAN/control"), &about);
        write(&made.join("DEBIAN/conffiles"), &format!("/etc/{name}.conf\n"));
        write(&made.join(format!("etc/{name}.conf")), "said = here\n");
        for script in ["preinst", "postinst", "prerm", "postrm"] {
            let path = made.join("DEBIAN").join(script);
            write(&path, &format!("#!/bin/sh\ntouch {}\nexit 7\n", lab.path("script-ran").display()));
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        for file in 0..20 {
            let text = format!("file {file} of {name}\n").repeat(40 * (file + 1));
            write(&made.join(format!("usr/share/{name}/file{file}")), &text);
        }
        let package = archive.join(format!("{name}_1_all.deb")).display().to_string();
        run(&["dpkg-deb", "--root-owner-group", "--build", &made.display().to_string(), &package]);
    }
    write(&archive.join("README"), "no package\n");
    archive.display().to_string()
}

/// As pacman's makepkg leaves them.
fn tiny_pacman_archive(lab: &Lab) -> String {
    let archive = lab.path("pacman-archive");
    std::fs::create_dir(&archive).unwrap();
    for number in 0..3 {
        let (made, name) = (lab.path(&format!("pkg{number}")), format!("tiny{number}"));
        let about = "pkgver = 1-1\npkgdesc = tiny\nbuilddate = 1700000000\npackager = a\nsize = 9\narch = any\n";
        write(&made.join(".PKGINFO"), &format!("pkgname = {name}\npkgbase = {name}\n{about}depend = not-there\n"));
        write(&made.join(".INSTALL"), "post_install() {\n  exit 7\n}\n");
        for file in 0..20 {
            write(&made.join(format!("usr/share/{name}/file{file}")), &format!("{file}\n").repeat(900));
        }
        let package = archive.join(format!("{name}-1-1-any.pkg.tar.zst")).display().to_string();
        let words = ["tar", "--zstd", "--owner=0", "--group=0", "-cf", &package, "-C"];
        run(&[&words[..], &[&made.display().to_string(), ".PKGINFO", ".INSTALL", "usr"]].concat());
    }
    archive.display().to_string()
}

/// The example with each of these replaced, which must be in it.
fn shrunk(replaced: &[(&str, &str)]) -> String {
    common::shrunk(EXAMPLE, replaced)
}

fn assert_measured(folded: &Folded, cell: &FoldedCell) {
    let phases: &[&str] = if cell.work == "kernel" { &KERNEL } else { &PACKAGES };
    for phase in phases {
        let value = |metric: &str| {
            folded.value(cell, phase, metric).unwrap_or_else(|| panic!("{} {phase} has no {metric}", cell.target))
        };
        let judged = if *phase == "list" { "returned_ns" } else { "durable_ns" };
        assert!(value("time_ns") == value(judged) && value("returned_ns") > 0.0, "{} {phase}", cell.target);
        assert!(value("cpu_workload_ns") > 0.0 && value("after_write_bytes") >= 0.0, "{} {phase}", cell.target);
    }
    assert!(cell.flags.iter().all(|flag| flag.flag != "not-cold"), "{}: {:?}", cell.target, cell.flags);
}

#[test]
fn the_example_runs_on_a_tiny_kernel_and_tiny_packages() {
    if cannot_run(&["btrfs", "ext4", "xfs"], "kernel")
        || cannot_run(&["ext4"], "packages")
        || cannot_run(&["ext4"], "bonnie")
    {
        return;
    }
    let lab = Lab::new();
    let tarball = format!("tarball = \"{}\"", tiny_kernel(&lab, None));
    let archive = format!("archive = \"{}\"", tiny_archive(&lab));
    let plan = shrunk(&[
        ("image = { dir = \".\", size = \"6GiB\" }", "memory = \"320MiB\""),
        ("[[target]]\nfs = \"ext4\"\n", "[[target]]\nfs = \"ext4\"\n[[target]]\nfs = \"xfs\"\n"),
        ("seed = 1\n", "seed = 1\nduplicate = false\n"),
        ("# tarball = \"~/src/linux-6.12.tar.xz\"", &tarball),
        ("names = [\"xfce4\"]\n", ""),
        ("# archive = \"/var/cache/apt/archives\"", &archive),
        // Enough single characters for half a second on a fast machine: below that bonnie++ has no
        // value to tell.
        (
            "size = \"2GiB\"\nfiles = 131072",
            "size = \"8MiB\"\ncharacters = \"3MiB\"\nfiles = 1024\nmissing = \"leave-out\"",
        ),
        ("budget = \"10h\"", "rounds = 1"),
    ]);
    lab.run_plan(&plan).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 18);
    let mut compiled = Vec::new();
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{} {}", cell.target, cell.work);
        if cell.work == "bonnie" {
            assert!(folded.value(cell, "putc", "time_ns").is_some_and(|ns| ns > 0.0), "{}", cell.target);
            continue;
        }
        assert_measured(&folded, cell);
        compiled.extend(cell.provenance.facts.get("compiled"));
        let mounted = &cell.provenance.facts["mount"];
        assert_eq!(mounted.contains("compress=zstd:3"), cell.target.contains("compress"), "{mounted}");
        assert_eq!(mounted.contains("nospace_cache"), ["btrfs", "btrfs compress"].contains(&cell.target.as_str()));
        if cell.work == "packages" {
            let facts = &cell.provenance.facts;
            assert!(facts["packages"].starts_with("30 with 630 files of "), "{}", facts["packages"]);
            // dpkg makes every file durable by itself.
            assert!(folded.value(cell, "install", "device_flushes").is_none_or(|flushes| flushes > 30.0));
        }
    }
    assert!(compiled.len() == 6 && compiled.iter().all(|told| *told == compiled[0]), "{compiled:#?}");
    assert!(compiled[0].starts_with("vmlinux, "), "{}", compiled[0]);
    assert!(!lab.path("script-ran").exists(), "a package's script was run");
    lab.assert_nothing_left();
}

fn small_plan(fs: &str, work: &str) -> String {
    format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\n[[target]]\nfs = \"{fs}\"\n[[work]]\n{work}\n[stop]\nrounds = 1\n"
    )
}

#[test]
fn packages_are_installed_by_pacman_too() {
    let pacman = Settings([("manager".to_string(), "pacman".into())].into());
    let needs = pickfs_target::workload::find("packages").expect("a workload").needs(&pacman);
    let lacking = missing(&needs).first().map(ToString::to_string);
    if not_run(unable(&["ext4"]).or(lacking)) {
        return;
    }
    let lab = Lab::new();
    let archive = tiny_pacman_archive(&lab);
    let work = format!("workload = \"packages\"\nmanager = \"pacman\"\narchive = \"{archive}\"");
    lab.run_plan(&small_plan("ext4", &work)).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells[0].outcome, Some(Outcome::Done));
    assert_measured(&folded, &folded.cells[0]);
    let told = &folded.cells[0].provenance.facts["packages"];
    assert!(told.starts_with("3 with 60 files of "), "{told}");
    lab.assert_nothing_left();
}

#[test]
fn a_kernel_that_does_not_compile_fails_with_what_the_compiler_said() {
    if cannot_run(&["ext4"], "kernel") {
        return;
    }
    let lab = Lab::new();
    let tarball = tiny_kernel(&lab, Some("int broken( { return missing; }\n"));
    let work = format!("workload = \"kernel\"\ntarball = \"{tarball}\"\njobs = 1");
    lab.run_plan(&small_plan("ext4", &work)).code(1);
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    for part in ["phase compile", "kernel/broken.c:1:", "error: ", "make: *** "] {
        assert!(why.contains(part), "{part} is not in: {why}");
    }
    lab.assert_nothing_left();
}

#[test]
fn what_make_was_to_make_must_be_there() {
    if cannot_run(&["ext4"], "kernel") {
        return;
    }
    let lab = Lab::new();
    let work = format!("workload = \"kernel\"\ntarball = \"{}\"\nresult = \"bzImage\"", tiny_kernel(&lab, None));
    lab.run_plan(&small_plan("ext4", &work)).code(1);
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    assert!(why.contains("bzImage") && why.contains("`result`"), "{why}");
    lab.assert_nothing_left();
}

#[test]
fn what_is_not_there_is_told_before_anything_is_touched() {
    let lab = Lab::new();
    let refused = |work: &str, says: &[&str]| {
        let said = lab.run_plan(&small_plan("ext4", work)).code(2);
        let flat = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
        says.iter().for_each(|part| assert!(flat.contains(part), "{part} is not in: {}", said.err));
    };
    refused("workload = \"kernel\"\ntarball = \"/nowhere/linux.tar.xz\"", &["no tarball /nowhere/linux.tar.xz"]);
    refused("workload = \"packages\"\narchive = \"/nowhere\"", &["/nowhere is no folder"]);
    refused("workload = \"packages\"\nmanager = \"pacman\"", &["name a folder with .pkg.tar.zst files"]);
}

/// Where Debian's packages put sources, nothing is to be seen. The other work is done.
#[test]
fn a_missing_kernel_source_is_told_with_its_package() {
    let is_root = rustix::process::geteuid().is_root();
    let why = (!is_root).then(|| "it wants to hide a folder, and is not root".into());
    if not_run(why.or_else(|| unable(&["ext4"]))) {
        return;
    }
    let lab = Lab::new();
    let works = "workload = \"kernel\"\n[[work]]\nworkload = \"tree\"\nfiles = 20\nbytes = \"1MiB\"";
    lab.write_plan(&small_plan("ext4", works));
    let hidden = "mount -t tmpfs none /usr/src && exec \"$0\" run plan.toml --journal journal.jsonl";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", hidden, env!("CARGO_BIN_EXE_pickfs")]).current_dir(lab.path("."));
    command.env("XDG_STATE_HOME", lab.path("state"));
    let said = Said::of(command.output().expect("unshare starts")).code(0);
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["no /usr/src/linux-source-", "apt-get install linux-source"] {
        assert!(flat.contains(part), "{part} is not in: {}", said.out);
    }
    let folded = lab.folded();
    let done = folded.cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done));
    assert!(done.clone().all(|cell| cell.work == "tree") && done.count() > 0, "{:?}", folded.cells);
}

#[test]
fn packages_that_cannot_be_downloaded_end_the_run() {
    if cannot_run(&["ext4"], "packages") {
        return;
    }
    let lab = Lab::new();
    let said = lab.run_plan(&small_plan("ext4", "workload = \"packages\"\nnames = [\"no-such-package-anywhere\"]"));
    let said = said.code(1);
    let told = [said.out, said.err].concat();
    for part in ["cannot download the packages", "`archive`", "no-such-package-anywhere"] {
        assert!(told.contains(part), "{part} is not in: {told}");
    }
    lab.assert_nothing_left();
}

#[test]
#[ignore = "compiles a real kernel, which takes minutes: make test-kernel"]
fn a_real_kernel_is_compiled() {
    if cannot_run(&["ext4"], "kernel") {
        return;
    }
    let lab = Lab::new();
    let plan = small_plan("ext4", "workload = \"kernel\"").replace("64MiB", "4GiB");
    let said = lab.run_plan(&plan.replace("rounds = 1", "rounds = 1\ncell = \"1h\"")).code(0);
    println!("{}", said.out);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    assert_eq!(cell.outcome, Some(Outcome::Done));
    assert_measured(&folded, cell);
    println!("{}, {:?}", cell.provenance.facts["compiled"], cell.flags);
    for phase in KERNEL {
        let told = ["returned_ns", "durable_ns", "cpu_workload_ns", "device_write_bytes", "device_read_bytes"];
        println!("{phase}: {:?}", told.map(|metric| (metric, folded.value(cell, phase, metric))));
    }
    lab.assert_nothing_left();
}
