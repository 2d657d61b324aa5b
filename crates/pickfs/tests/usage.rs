//! What is wrong on the command line is said in its own words: the option that was typed, why, and
//! what to do; never a key of the plan that the options stand for. The exit code is that of a usage
//! error, and nothing was touched.

use crate::common::Lab;
use std::process::Stdio;

/// Words of the command line, and what is said of them.
const WRONG: &[(&str, &[&str])] = &[
    ("plan --fs ext9", &["--fs: there is no file system `ext9`", "did you mean `ext4`? `pickfs list fs`"]),
    ("run --fs ext9", &["--fs: there is no file system `ext9`"]),
    (
        "plan --fs btrfs:zstd:99",
        &["--fs: `zstd:99` in `btrfs:zstd:99` is neither", "did you mean `zstd:1` or `zstd:3`?"],
    ),
    ("plan --fs ext4:x=/dev/sda", &["--fs: the option `x=/dev/sda` names a path", "take it out"]),
    ("plan --fs ext4,ext4", &["--fs names `ext4` twice", "leave one of the two out"]),
    ("plan --source missing", &["--source: cannot read the source", "or leave it out"]),
    ("plan --source file", &["--source: cannot read the source", "Not a directory", "or leave it out"]),
    ("plan --workload io --source .", &["--source: the workload `io` has no such setting", "leave --source out"]),
    ("plan --workload tre", &["--workload: there is no workload `tre`", "did you mean `tree`?"]),
    ("plan --workload command", &["--workload: there is no command to run", "in a plan (`pickfs init`"]),
    ("plan --workload fio", &["--workload: there is no job file", "name one: --job my.fio"]),
    ("plan --job missing.fio", &["--job: cannot read ", "name a job file of fio's"]),
    ("plan --workload tree --job file", &["--job: the workload `tree` has no such setting", "leave --job out"]),
    ("init x.toml --work fio", &["--work: there is no job file", "name one: --work my.fio"]),
    ("plan --workload postgres", &["--workload: there is no workload `postgres`", "did you mean `pgbench`?"]),
    ("plan --workload mysql", &["did you mean `sysbench`?"]),
    ("plan --workload quux", &["use one of `bonnie`, ", "`vm-image` and `walk`; `pickfs list workloads`"]),
    ("plan --fs btfs", &["--fs: there is no file system `btfs`", "did you mean `btrfs`?"]),
    ("plan --fs xsf", &["did you mean `xfs`?"]),
    ("rnu", &["unrecognized subcommand 'rnu'", "'run'"]),
    ("help verdict", &["no verb and no topic `verdict`", "did you mean `pickfs help verdicts`?"]),
    ("list workloads postgres", &["has no `postgres`", "did you mean `pickfs list workloads pgbench`?"]),
    ("list workloads postgres --json", &["has no `postgres`", "did you mean `pickfs list workloads pgbench`?"]),
    ("push store --far-folder x file", &["--far-folder are for a store on another machine", "HOST:FOLDER"]),
    ("push store --ssh-config file file", &["--far-folder are for a store on another machine", "HOST:FOLDER"]),
    ("run --trust", &["--trust is about a journal", "--resume or --again"]),
    ("plan --fs ext4:dicard", &["--fs: ext4 has no mount option `dicard`", "did you mean `discard`?"]),
    ("plan --fs btrfs:compres=zstd:1", &["btrfs has no mount option `compres`", "did you mean `compress=zstd:1`?"]),
    ("plan --fs btrfs:noatime+zstd:1", &["write the variant before the mount options"]),
    ("plan --budget 3", &["--budget must be a duration, but `3` has no unit", "--budget 90s"]),
    ("plan --budget tea", &["--budget must be a duration, but it is `tea`", "--budget 90s"]),
    ("plan --budget 9999999999h", &["--budget must be a duration, but `9999999999h` is out of range"]),
    ("plan --precision 3", &["--precision must be a share, but `3` has no unit", "--precision 3%"]),
    ("plan --rounds 0", &["--rounds is 0, which is out of range", "from 1 to 1000"]),
    ("plan --rounds -1", &["--rounds is negative"]),
    (
        "plan --rounds 3x --seed y --budget 1",
        &["--rounds must be a whole number, but it is the text `3x`", "--seed must be", "--budget must be"],
    ),
    ("plan --fs btrfs:zstd", &["--fs: `zstd` in `btrfs:zstd` is neither", "did you mean `zstd:1` or `zstd:3`?"]),
    (
        "plan --fs ext4 --size 10MiB",
        &["--size: this work puts 50.0 MiB where there is room for 10.0 MiB", "a larger size"],
    ),
    ("plan --scale -1", &["--scale is negative", "write a number of 0 or more, such as 2 or 0.5"]),
    ("report .", &[". is a folder without journals and without a tuning", "`pickfs run` makes a journal"]),
    ("report file", &["this is no journal of pickfs"]),
    ("apply --dry-run .", &[". is a folder without journals and without a tuning"]),
    ("apply --dry-run file", &["this is no journal of pickfs"]),
    ("audit file", &["file: ", "this is no journal of pickfs"]),
    ("choices file", &["file: this is no journal of pickfs"]),
    ("clean .", &[". is a folder without journals"]),
    ("clean file", &["file: this is no journal of pickfs"]),
    ("compare file file", &["file: this is no journal of pickfs"]),
    ("history file", &["file is no folder", "`pickfs report file`"]),
    ("plan --fs ext4 --pilot file", &["file: this is no journal of pickfs"]),
    ("run --again file", &["file: this is no journal of pickfs"]),
    ("run --resume file", &["file: this is no journal of pickfs"]),
    ("run --resume .", &[". is a folder without journals"]),
    ("share file", &["file: this is no journal of pickfs"]),
    ("share", &["no journal in pickfs-runs", "`pickfs run` makes one"]),
    ("tune --resume .", &[". is not the folder of a tuning", "`pickfs tune --fs FS`"]),
    ("why file", &["file: this is no journal of pickfs"]),
    ("init missing/plan.toml", &["there is no folder missing; make it first"]),
    ("record -- no-such-program", &["there is no program no-such-program"]),
    ("trace stats file", &["file is not a trace of pickfs; `pickfs record` makes one"]),
    ("plan --scale 0", &["--scale: a tree cannot be 0 times as large", "such as 0.1 or 3"]),
    ("plan --size lots", &["--size must be a size, but it is `lots`", "--size 20GiB"]),
    ("plan --fs xfs --size 100MiB", &["--size: xfs needs at least 300 MiB", "or leave xfs out"]),
    ("plan --fs ext4 --size 9PiB", &["--size: ", "the image takes 9.00 PiB", "give a smaller size"]),
    ("plan --on missing", &["--on: ", "missing is no directory", "make it first, or name another"]),
    ("plan --on missing --fs ext4", &["--on: ", "missing is no directory", "make it first, or name another"]),
    ("plan --on . --on .", &["--on names `", "` twice", "leave one of the two out"]),
    ("plan --sim tape", &["--sim: there is no model of a disk `tape`", "`pickfs list disks`"]),
    ("plan --sim nvm", &["--sim: there is no model of a disk `nvm`; did you mean `nvme`?", "`pickfs list disks`"]),
    ("run --sim nvme --on .", &["'--sim <DISK>' cannot be used with '--on <DIR>'"]),
    ("plan --like nothing", &["--like: `nothing` is neither a profile", "or a file that `pickfs scan"]),
    ("plan --age old", &["--age cannot be `old`", "\"churn 5x\""]),
    ("plan --fill 120%", &["--fill is `120%`, which leaves no room", "such as \"40%\""]),
    ("plan --require snapshot", &["--require: there is no feature `snapshot`", "did you mean `snapshots`?"]),
    ("plan --executor nope", &["--executor: there is no executor `nope`", "`local`"]),
    ("run missing.toml", &["cannot read the plan missing.toml", "`pickfs init` writes one"]),
    ("run --resume missing.jsonl", &["there is no file or folder missing.jsonl"]),
    ("run --resume file --budget 3", &["--budget must be a duration, but `3` has no unit"]),
    ("run --resume file --fs ext4", &["'--resume <JOURNAL>' cannot be used with '--fs <FS>'"]),
    ("run --more 3min", &["required", "--resume <JOURNAL>"]),
    ("plan --pilot missing.jsonl --fs ext4", &["there is no file or folder missing.jsonl"]),
    ("report missing.jsonl", &["there is no file or folder missing.jsonl"]),
    ("report", &["no journal in pickfs-runs", "`pickfs run`"]),
    ("report @9", &["no journal in pickfs-runs", "`pickfs run`"]),
    ("compare missing.jsonl file", &["there is no file or folder missing.jsonl"]),
    ("choices missing.jsonl", &["there is no file or folder missing.jsonl"]),
    ("history missing", &["there is no file or folder missing"]),
    ("choices missing --between machines", &["there is no file or folder missing"]),
    ("ask missing", &["missing is not a store", "`pickfs push missing JOURNAL` makes one"]),
    ("query missing", &["missing is not a store"]),
    ("site missing out", &["missing is not a store"]),
    ("push store file", &["file: this is no journal of pickfs"]),
    ("push store missing.jsonl", &["there is no file or folder missing.jsonl"]),
    ("push m1:a;b file", &["the folder `a;b` has other characters than letters, digits"]),
    ("push -- -oProxyCommand=x:runs file", &["`-oProxyCommand=x` is no host"]),
    ("report missing@2", &["there is no file or folder missing"]),
    ("run missing.toml --host m1", &["cannot read the plan missing.toml"]),
    ("run file --host m1,m2 --journal x.jsonl", &["--journal names one file; give one --host with it"]),
    ("run file --host m1,m1", &["--host names `m1` twice"]),
    ("run --again missing.jsonl", &["there is no file or folder missing.jsonl"]),
    ("clean missing.jsonl", &["there is no file or folder missing.jsonl"]),
    ("list fs ext9", &["`pickfs list fs` has no `ext9`", "without a name it shows all"]),
    ("init x.toml --budget tea", &["--budget must be a duration, but it is `tea`"]),
    ("init x.toml --work tre", &["--work: there is no workload `tre`"]),
    ("init x.toml --work ./missing", &["--work: cannot read the source", "or leave it out"]),
    ("init x.toml --work /usr --on missing", &["--on: ", "missing is no directory"]),
    ("init file", &["file exists", "--force"]),
    ("scan missing", &["missing is no directory", "name one that is there"]),
    ("scan --predict file", &["file is no directory", "name one that is there"]),
    ("import missing.json -o x.jsonl", &["there is no file or folder missing.json"]),
    ("import file -o x.jsonl --from abc", &["invalid value 'abc' for '--from <FORMAT>'", "fio"]),
    ("disk show tape", &["there is no model of a disk and no file `tape`", "`pickfs list disks`"]),
    ("disk show nvm", &["no file `nvm`; did you mean `nvme`?"]),
    ("disk show ./file", &["./file: no model of a disk"]),
    ("guest build woody", &["there is no release and no plan `woody`", "bookworm"]),
    ("guest remove woody", &["there is no guest `woody`", "`pickfs guest list`"]),
    ("help nonsense", &["no verb and no topic `nonsense`", "`pickfs help`"]),
];

/// Words of plan files, which no error about a command line may show.
const NOT_TYPED: [&str; 10] = [
    "meta.", "use one of `--", "[[", "[backing", "target[", "`source`", "`budget`", "`size`", "in quotes", "backtrace",
];

#[test]
fn errors_are_in_the_words_of_the_command_line() {
    let lab = Lab::new();
    std::fs::write(lab.path("file"), "neither a plan nor a journal\n").unwrap();
    let mut wrong = Vec::new();
    for (line, wanted) in WRONG {
        let words: Vec<&str> = line.split(' ').collect();
        let output = lab.pickfs().args(&words).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let lacks = wanted.iter().filter(|wanted| !said.contains(**wanted)).map(|wanted| format!("lacks {wanted}"));
        let has = NOT_TYPED.iter().filter(|not| said.contains(**not)).map(|not| format!("has {not}"));
        let code = (output.status.code() != Some(2)).then(|| format!("ends with {}", output.status));
        let found: Vec<String> = lacks.chain(has).chain(code).collect();
        if !found.is_empty() {
            wrong.push(format!("pickfs {line}: {}:\n{said}", found.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let left: Vec<_> = std::fs::read_dir(lab.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["file"], "something was touched");
}

/// A printed command can be pasted, whatever the file is called.
#[test]
fn a_path_with_a_blank_is_one_word_of_a_printed_command() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("my runs")).unwrap();
    std::fs::write(lab.path("my runs/a b"), "").unwrap();
    let journal = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/default-run.jsonl");
    std::fs::copy(journal, lab.path("my runs/1.jsonl")).unwrap();
    std::fs::copy(journal, lab.path("my runs/2.jsonl")).unwrap();
    let rows: [(&[&str], &str); 5] = [
        (&["tune", "--fs", "ext4", "--folder", "my runs"], "`--resume 'my runs'` goes on"),
        (&["history", "my runs/a b"], "`pickfs report 'my runs/a b'` shows"),
        (&["history", "my runs", "-n", "1"], "pickfs history 'my runs' -n 2"),
        (&["import", "my runs/1.jsonl", "-o", "new.jsonl"], "pickfs report 'my runs/1.jsonl'"),
        (&["init", "my plan.toml", "--fs", "ext4"], "  sudo pickfs run 'my plan.toml'"),
    ];
    for (words, wanted) in rows {
        let output = lab.pickfs().args(words).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
}

/// On a full device or to a reader that has gone, a verb fails with a sentence, and one that only
/// prints ends with its reader.
#[test]
fn output_that_cannot_be_written_is_an_error_and_no_panic() {
    let lab = Lab::new();
    for line in [
        "list", "list fs --json", "help", "help plan", "doctor", "plan", "completions bash", "disk show nvme",
        "guest list",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = lab.pickfs().args(&words).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("cannot write the output: No space left on device"), "{line}: {said}");
        // Its reader is gone before it begins.
        let (_, writer) = rustix::pipe::pipe().unwrap();
        let output = lab.pickfs().args(&words).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // By the signal, or with the code that stands for it.
        assert!(matches!(output.status.code(), None | Some(141)), "{line}: {} {said}", output.status);
        assert!(said.is_empty(), "{line}: {said}");
    }
}
