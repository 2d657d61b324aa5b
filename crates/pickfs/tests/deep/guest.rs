//! `--executor vm` from nothing, as an unprivileged user: a guest is made, booted for every cell,
//! shown and removed.

use crate::common::{Lab, Said, no_guests, not_run};
use pickfs_core::journal::{FoldedCell, Outcome};
use std::path::Path;
use std::process::Command;

const NOBODY: u32 = 65534;

/// A user without rights, with a place and its own cache. Root becomes `nobody` for it.
struct Nobody {
    lab: Lab,
}

impl Nobody {
    fn new() -> Nobody {
        let lab = Lab::new();
        // The folder of the built program may be closed to others.
        std::fs::copy(env!("CARGO_BIN_EXE_pickfs"), lab.path("pickfs")).expect("a copy of the program");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(lab.path(""), Some(NOBODY), Some(NOBODY)).expect("given away");
        }
        Nobody { lab }
    }

    fn run(&self, words: &[&str]) -> Said {
        let mut command = Command::new(self.lab.path("pickfs"));
        if rustix::process::geteuid().is_root() {
            let id = NOBODY.to_string();
            command = Command::new("setpriv");
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(self.lab.path("pickfs"));
        }
        command.args(words).current_dir(self.lab.path("")).env_remove("PICKFS_RUN");
        command.env("HOME", self.lab.path("")).env("XDG_STATE_HOME", self.lab.path("state"));
        command.env("XDG_CACHE_HOME", self.lab.path("cache"));
        Said::of(command.output().expect("pickfs starts"))
    }
}

/// Behind the time in the fact `guest boot`.
const SAVED: &str = ", from a saved boot";

#[track_caller]
fn assert_done(cells: &[FoldedCell], targets: &[&str]) {
    let found: Vec<&str> = cells.iter().map(|cell| cell.target.as_str()).collect();
    for target in targets {
        assert!(found.contains(target), "{target}: {found:?}");
    }
    for cell in cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        let fact = |name: &str| cell.provenance.facts.get(name).map(String::as_str).unwrap_or_default();
        let boot = fact("guest boot").trim_end_matches(SAVED);
        assert!(boot.ends_with('s'), "{}: {:?}", cell.target, cell.provenance.facts);
    }
}

/// The name of the only guest that `guest list` shows.
#[track_caller]
fn only_guest(listed: &str) -> &str {
    let lines: Vec<&str> = listed.lines().skip(1).filter(|line| !line.starts_with(' ')).collect();
    let [line] = lines[..] else { panic!("one guest is wanted: {listed}") };
    line.split_whitespace().next().unwrap_or_default()
}

#[test]
fn without_root_file_systems_are_measured_in_guests_from_nothing() {
    if not_run(no_guests()) {
        return;
    }
    let nobody = Nobody::new();
    let none = nobody.run(&["guest", "list"]).code(0);
    assert!(none.out.starts_with("no guests in ") && none.out.contains("pickfs guest build bookworm"), "{}", none.out);

    // Of one work and without a duplicate, which the short command line would add.
    let plan = "executor = \"vm\"\nturn = \"shared\"\nduplicate = false\nbacking = { image = { dir = \".\", size = \"300MiB\" } }\n\
                target = [{ fs = \"ext4\" }, { fs = \"reiserfs\" }]\n\
                work = [{ workload = \"tree\", like = \"site\", scale = 0.05 }]\nstop = { rounds = 1 }\n";
    std::fs::write(nobody.lab.path("plan.toml"), plan).expect("the plan is written");
    let shown = nobody.run(&["plan", "plan.toml"]).code(0).out;
    assert!(shown.contains("executor vm: ") && shown.contains("kernels and programs of bookworm"), "{shown}");
    assert!(!shown.contains("skipped") && !shown.contains("cannot be used"), "{shown}");

    let said = nobody.run(&["run", "plan.toml", "--journal", "journal.jsonl"]).code(0);
    let folded = nobody.lab.folded();
    assert_eq!(folded.cells.len(), 2, "{}", said.err);
    assert_done(&folded.cells, &["ext4", "reiserfs"]);
    let guest = folded.host.get("guest bookworm").cloned().unwrap_or_default();
    assert!(guest.contains(", kernel 6.1.") && (guest.contains("tcg (") || guest.contains("kvm (")), "{guest}");
    for cell in &folded.cells {
        let went_on = cell.provenance.facts["guest boot"].ends_with(SAVED);
        assert_eq!(went_on, guest.contains("tcg ("), "{:?}", cell.provenance.facts);
    }
    nobody.lab.assert_nothing_left();

    let listed = nobody.run(&["guest", "list"]).code(0).out;
    let name = only_guest(&listed).to_string();
    assert!(name.starts_with("bookworm-") && guest.starts_with(&name) && listed.contains(" 6.1."), "{listed}");
    let packages = nobody.run(&["guest", "list", "--packages"]).code(0).out;
    for package in ["    e2fsprogs ", "    linux-image-", "    reiserfsprogs "] {
        assert!(packages.contains(package), "{package}: {packages}");
    }
    // It is there already: nothing is made.
    let again = nobody.run(&["guest", "build", "plan.toml"]).code(0);
    assert!(again.out.starts_with(&name) && again.err.is_empty(), "{}{}", again.out, again.err);

    let removed = nobody.run(&["guest", "remove", &name]).code(0).out;
    assert!(removed.starts_with("removed 1 guest, "), "{removed}");
    assert!(nobody.run(&["guest", "list"]).out.starts_with("no guests in "));
}

fn plan_with(machine: &str, matrix: &str) -> String {
    format!(
        "executor = \"vm\"\nbacking = {{ memory = \"16MiB\" }}\n\
         target = [{{ fs = \"ext4\"{machine} }}]\nwork = [{{ workload = \"meta.ok\" }}]\n{matrix}\n"
    )
}

#[test]
fn a_kernel_that_nobody_knows_is_told_where_it_stands() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("own")).expect("a folder");
    std::fs::write(lab.path("own/vmlinuz"), "").expect("a kernel");
    let rows = [
        (", machine = { kernel = \"buster\" }", "", "plan.toml:3:", "there is no kernel `buster`"),
        ("", "[matrix]\nkernel = [\"sid\", \"trixy\"]", "plan.toml:6:", "there is no kernel `trixy`"),
        (", machine = { kernel = \"./nowhere\" }", "", "plan.toml:3:", "nowhere/vmlinuz"),
        (", machine = { kernel = \"./own\" }", "", "plan.toml:3:", "there is no root image"),
    ];
    for (machine, matrix, place, message) in rows {
        lab.write_plan(&plan_with(machine, matrix));
        let said = lab.run(&["plan", "plan.toml"]).code(2).err;
        assert!(said.contains(place) && said.contains(message), "{said}");
        assert!(!message.contains("no kernel") || said.contains("`bookworm`, `bullseye`, `sid`, `trixie`"), "{said}");
    }
    std::fs::write(lab.path("own/root.erofs"), "").expect("a root");
    lab.write_plan(&plan_with(", machine = { kernel = \"./own\" }", ""));
    let said = lab.run(&["plan", "plan.toml"]).code(0).out;
    assert!(said.contains(&format!("kernels and programs of {}", lab.path("own").display())), "{said}");
}

#[test]
fn what_there_is_not_is_neither_made_nor_removed() {
    let lab = Lab::new();
    let run = |words: &[&str]| {
        let out = lab.pickfs().args(words).env("XDG_CACHE_HOME", lab.path("cache")).output().expect("pickfs starts");
        Said::of(out)
    };
    lab.write_plan(&plan_with("", ""));
    let rows: [(&[&str], i32, &str); 6] = [
        (&["guest", "build", "buster"], 2, "use one of bookworm, bullseye, sid, trixie"),
        (&["guest", "build", "bookworm", "a,b"], 2, "`a,b` is no name of a package"),
        (&["guest", "build", "plan.toml", "fio"], 2, "leave out fio"),
        (&["guest", "remove", "bookworm-1"], 2, "`pickfs guest list` shows"),
        (&["guest", "remove"], 2, "<NAME>"),
        (&["guest", "remove", "a", "--all"], 2, "cannot be used with"),
    ];
    for (words, code, message) in rows {
        let said = run(words).code(code).err;
        assert!(said.contains(message), "{words:?}: {said}");
    }
    assert!(run(&["guest", "remove", "--all"]).code(0).out.starts_with("removed 0 guests"));
    let doctor = run(&["doctor", "--all"]).code(0).out;
    assert!(
        doctor.contains("executors:\n") && doctor.contains("guests") | doctor.contains("KVM: not known"),
        "{doctor}"
    );
}

const RELEASES: [&str; 4] = ["bullseye", "bookworm", "trixie", "sid"];

#[test]
#[ignore = "fetches four guests and boots six: minutes"]
fn every_release_boots_and_a_folder_of_ones_own_does() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let plan = |kernels: &[&str]| {
        format!(
            "executor = \"vm\"\nduplicate = false\nbacking = {{ image = {{ dir = \".\", size = \"300MiB\" }} }}\n\
             target = [{{ fs = \"ext4\" }}]\nwork = [{{ workload = \"meta.ok\" }}]\nstop = {{ rounds = 1 }}\n\
             [matrix]\nkernel = [{}]\n",
            kernels.iter().map(|kernel| format!("\"{kernel}\"")).collect::<Vec<_>>().join(", ")
        )
    };
    lab.run_plan(&plan(&RELEASES)).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), RELEASES.len());
    assert_done(&folded.cells, &RELEASES.map(|release| format!("ext4 {release}")).each_ref().map(|name| &name[..]));

    let kept = pickfs_host::executor::vm::all().expect("guests");
    let bookworm = folded.host.get("guest bookworm").expect("a guest").split(',').next().unwrap_or_default();
    let guest = kept.iter().find(|guest| guest.name == bookworm).expect("kept");
    let own = lab.path("own");
    std::fs::create_dir(&own).expect("a folder");
    for name in ["vmlinuz", "vmlinux", "root.squashfs", "modules", "modules.order"] {
        std::os::unix::fs::symlink(guest.folder.join(name), own.join(name)).expect("a link");
    }
    std::fs::remove_file(lab.journal()).expect("the first journal");
    lab.run_plan(&plan(&["./own"])).code(0);
    assert_done(&lab.folded().cells, &["ext4 ./own"]);
    assert!(Path::new(&own).exists() && kept.len() >= RELEASES.len());
    lab.assert_nothing_left();
}
