//! A store from the command line: pushed to, asked by every verb that reads journals, shown as a
//! site.

use crate::common::{Lab, not_run, run};
use crate::made::Made;
use pickfs_system::need::Need;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::process::{Child, Stdio};

/// Three runs, each slower than the one before, begun on three days.
fn journals(lab: &Lab) {
    std::fs::create_dir_all(lab.path("runs")).unwrap();
    for (at, factor) in [1.0, 1.02, 1.3].into_iter().enumerate() {
        let path = lab.path(&format!("runs/{at}.jsonl"));
        let mut made = Made::new(&["ext4", "xfs"], &[factor, 0.7 * factor], 10, at as u64 + 1);
        made.plan.executor = "local".into();
        made.write(&path);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text
            .replace("2026-01-31", &format!("2026-02-0{}", at + 1))
            .replace("\"id\":\"made\"", &format!("\"id\":\"made{at}\""));
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn a_store_is_read_by_every_verb_that_reads_journals() {
    let lab = Lab::new();
    journals(&lab);
    let pushed = lab.run(&["push", "store", "runs"]).code(0).out;
    assert_eq!(pushed, "store: 3 journals pushed\n");
    // In another order, again.
    let again = lab.run(&["push", "store", "runs/2.jsonl", "runs/0.jsonl", "runs/1.jsonl"]).code(0).out;
    assert_eq!(again, "store: 0 journals pushed, 3 there already\n");
    let history = lab.run(&["history", "store"]).code(0).out;
    assert!(history.starts_with("store@1  2026-02-03 12:00") && history.contains("store@3  2026-02-01"), "{history}");
    // The newest by its run, not by its push.
    let slower = lab.run(&["compare", "store@2", "store@last", "--scatter", "1%"]).code(3).out;
    assert!(slower.contains("2 of 2 whole jobs are slower"), "{slower}");
    let choices = lab.run(&["choices", "store"]).code(0).out;
    assert_eq!(choices, lab.run(&["choices", "runs/2.jsonl", "runs/1.jsonl", "runs/0.jsonl"]).code(0).out);
    let asked = lab.run(&["ask", "store", "--like", "tree", "-n", "1"]).code(0).out;
    assert!(asked.contains("Pick xfs") && asked.contains("and 2 older: -n 3"), "{asked}");
    let command: Vec<&str> =
        asked.lines().find_map(|line| line.trim().strip_prefix("pickfs ")).unwrap().split(' ').collect();
    assert!(lab.run(&command).code(0).out.contains("Pick xfs"), "{asked}");
    // What measures it again is there, and is read.
    let again = asked.lines().find_map(|line| line.trim().strip_prefix("pickfs run --trust --again ")).unwrap();
    assert!(lab.path(again).is_file(), "{asked}");
    lab.run(&["ask", "store", "--disk", "nvme"]).code(1);
    let best = lab.run(&["query", "store", "SELECT best, count(*) AS n FROM result GROUP BY 1", "--format", "csv"]);
    assert_eq!(best.code(0).out, "best,n\nxfs,3\n");
    let usual = lab.run(&["query", "store"]).code(0).out;
    assert!(usual.contains("xfs") && usual.contains("tree"), "{usual}");
    let wrong = lab.run(&["query", "store", "DELETE FROM journal"]).code(2);
    assert!(wrong.err.contains("readonly"), "{}", wrong.err);
    // What lies in a store is taken up by no run, and done again only if its reader says so.
    let (journal, _) = file_below(&lab, "store/journals");
    for words in [["run", "--resume", &journal], ["run", "--again", &journal]] {
        let refused = lab.run(&words).code(1);
        assert!(refused.err.contains("store"), "{}", refused.err);
    }
}

/// The first file below a folder, and its name.
fn file_below(lab: &Lab, folder: &str) -> (String, String) {
    let mut files =
        walkdir::WalkDir::new(lab.path(folder)).into_iter().flatten().filter(|one| one.file_type().is_file());
    let file = files.next().expect("a file");
    (file.path().display().to_string(), file.file_name().to_string_lossy().into_owned())
}

#[test]
fn what_is_no_journal_and_what_is_no_store_is_left_alone() {
    let lab = Lab::new();
    journals(&lab);
    std::fs::write(lab.path("runs/notes.jsonl"), "notes\n").unwrap();
    let pushed = lab.run(&["push", "store", "runs"]).code(1);
    assert!(pushed.out.contains("3 journals pushed, 1 not pushed"), "{}", pushed.out);
    assert!(pushed.err.contains("notes.jsonl: refused: its first line is no `run` record"), "{}", pushed.err);
    let refused = lab.run(&["push", "runs", "runs/0.jsonl"]).code(1);
    assert!(refused.err.contains("runs is no store, and it is not empty"), "{}", refused.err);
    for verb in ["query", "ask"] {
        assert!(lab.run(&[verb, "runs"]).code(2).err.contains("`pickfs push runs JOURNAL` makes one"));
    }
    assert_eq!(std::fs::read_dir(lab.path("runs")).unwrap().count(), 4);
}

/// A file that is named itself is a slip on the command line, and stops all of it.
#[test]
fn a_named_file_that_is_no_journal_is_refused_before_a_store_is_made() {
    let lab = Lab::new();
    journals(&lab);
    for (name, text) in [("notes", "notes\n"), ("empty", ""), ("other.jsonl", "{\"run\":{}}\n")] {
        std::fs::write(lab.path(name), text).unwrap();
        let refused = lab.run(&["push", "new", "runs/0.jsonl", name]).code(2);
        assert!(refused.err.contains(&format!("{name}: this is no journal of pickfs")), "{}", refused.err);
        assert!(!lab.path("new").exists(), "{name}");
    }
}

#[test]
fn a_store_without_an_answer_names_the_verb_that_lists_its_runs() {
    let lab = Lab::new();
    Made::new(&["ext4", "xfs"], &[1.0, 0.7], 1, 1).write(&lab.path("one.jsonl"));
    lab.run(&["push", "store", "one.jsonl"]).code(0);
    let asked = lab.run(&["query", "store"]).code(0);
    assert!(asked.err.contains("`pickfs history store` lists its runs"), "{}", asked.err);
    assert_eq!(lab.run(&["query", "store", "SELECT best FROM result WHERE best != ''"]).code(0).err, "");
}

/// Every link of the site is a file of it.
#[test]
fn a_site_leads_from_each_figure_to_its_evidence() {
    let lab = Lab::new();
    journals(&lab);
    lab.run(&["push", "store", "runs"]).code(0);
    lab.run(&["site", "store", "www", "--title", "Our <disks>"]).code(0);
    let mut pages = 0;
    for file in walkdir::WalkDir::new(lab.path("www")).into_iter().flatten() {
        let Some(folder) = file.path().parent().filter(|_| file.path().extension().is_some_and(|end| end == "html"))
        else {
            continue;
        };
        let text = std::fs::read_to_string(file.path()).unwrap();
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.filter(|link| !link.starts_with('#') && !link.starts_with("data:")) {
            let link = link.split('#').next().unwrap();
            assert!(folder.join(link).is_file(), "{}: {link}", file.path().display());
        }
        pages += 1;
    }
    let front = std::fs::read_to_string(lab.path("www/index.html")).unwrap();
    assert!(front.contains("Our &lt;disks&gt;") && front.contains("3 of 3 alike"), "{front}");
    // Each of the three runs has its report and its disclosure.
    assert_eq!(pages, 1 + 1 + 2 + 2 * 3);
    assert!(lab.run(&["site", "store", "www"]).code(0).out.contains("of 3 runs"));
}

/// The far side of a push: its exit code does not count, its answer does.
struct Taking(Child);

impl Taking {
    fn new(lab: &Lab, store: &str, hash: &str) -> Taking {
        let mut command = lab.pickfs();
        command.args(["far", "take", store, hash]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Taking(command.spawn().unwrap())
    }

    fn feed(&mut self, text: &[u8]) {
        // One that has refused reads no further.
        let _ = self.0.stdin.as_mut().unwrap().write_all(text);
    }

    fn answer(mut self) -> String {
        drop(self.0.stdin.take());
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        self.0.wait().unwrap();
        said
    }
}

fn sha256(text: &[u8]) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names of all files below a folder.
fn names(lab: &Lab, folder: &str) -> Vec<String> {
    let files = walkdir::WalkDir::new(lab.path(folder)).sort_by_file_name().into_iter().flatten();
    let files = files.filter(|one| one.file_type().is_file());
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_far_side_of_a_push_takes_journals_and_nothing_else() {
    let lab = Lab::new();
    journals(&lab);
    let journal = std::fs::read(lab.path("runs/0.jsonl")).unwrap();
    let (hash, other) = (sha256(&journal), "0".repeat(64));
    let torn = &journal[..journal.len() - 1];
    let line = [&journal[..], &vec![b'x'; 17 << 20]].concat();
    std::fs::create_dir(lab.path("full")).unwrap();
    std::fs::write(lab.path("full/file"), "").unwrap();
    std::fs::write(lab.path("victim"), "victim").unwrap();
    std::os::unix::fs::symlink(lab.path("victim"), lab.path("link")).unwrap();
    let refused: [(&str, &str, &[u8], &str); 9] = [
        ("store", &other, &journal, "and not 0000"),
        ("store", "../../etc/x", &journal, "is not a SHA-256"),
        ("store", &hash, b"", "whole line"),
        ("store", &hash, torn, "whole line"),
        ("store", &hash, &line, "a line of a journal has at most"),
        ("store", &hash, b"no journal\n", "no `run` record"),
        ("store", &hash, b"\0\xff\n", "no `run` record"),
        ("full", &hash, &journal, "it is not empty"),
        ("link", &hash, &journal, "cannot make a store"),
    ];
    for (store, hash, text, wanted) in refused {
        let mut taking = Taking::new(&lab, store, hash);
        taking.feed(text);
        let said = taking.answer();
        assert!(said.starts_with("{\"refused\":") && said.contains(wanted), "{wanted}: {said}");
    }
    assert_eq!(names(&lab, "store"), ["pickfs-store"]);
    assert_eq!(
        (names(&lab, "full"), std::fs::read(lab.path("victim")).unwrap()),
        (vec!["file".into()], b"victim".into())
    );
    for answer in ["\"new\"\n", "\"known\"\n"] {
        let mut taking = Taking::new(&lab, "store", &hash);
        taking.feed(&journal);
        assert_eq!(taking.answer(), answer);
    }
    assert!(names(&lab, "store").contains(&format!("{hash}.jsonl")));
}

/// A push that goes on keeps its file meanwhile.
#[test]
fn what_killed_pushes_left_goes_with_the_next_push() {
    let lab = Lab::new();
    journals(&lab);
    let journal = std::fs::read(lab.path("runs/0.jsonl")).unwrap();
    let begun = |count: usize| {
        let mut taking = Taking::new(&lab, "store", &sha256(&journal));
        taking.feed(&journal[..journal.len() / 2]);
        while names(&lab, "store/incoming").len() < count {
            assert!(taking.0.try_wait().unwrap().is_none(), "it has ended");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        taking
    };
    let mut live = begun(1);
    let mut killed = begun(2);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    assert_eq!(names(&lab, "store/incoming").len(), 2);
    lab.run(&["push", "store", "runs/1.jsonl"]).code(0);
    assert_eq!(names(&lab, "store/incoming").len(), 1);
    live.feed(&journal[journal.len() / 2..]);
    assert_eq!(live.answer(), "\"new\"\n");
    assert!(names(&lab, "store/incoming").is_empty());
}

/// In this order: the journal, its name, the folder of its name; each new folder in the one above;
/// then the answer.
#[test]
fn what_a_push_answers_is_on_the_disk() {
    let strace = std::process::Command::new("strace").arg("-V").output();
    if not_run(strace.err().map(|error| format!("strace cannot be run: {error}"))) {
        return;
    }
    let lab = Lab::new();
    journals(&lab);
    let journal = std::fs::read(lab.path("runs/0.jsonl")).unwrap();
    let (hash, log) = (sha256(&journal), lab.path("log").display().to_string());
    let traced = |store: &str| {
        let words = ["-f", "-y", "-s", "200", "-e", "trace=linkat,fsync,write,mkdir,mkdirat", "-o", &log];
        let pickfs = [env!("CARGO_BIN_EXE_pickfs"), "push", store, "runs/0.jsonl"];
        let mut command = std::process::Command::new("strace");
        assert!(command.current_dir(lab.path("")).args(words).args(pickfs).status().unwrap().success());
        std::fs::read_to_string(&log).unwrap()
    };
    let in_order = |log: &str, wanted: &[String]| {
        let mut rest = log;
        for part in wanted {
            let at = rest.find(part).unwrap_or_else(|| panic!("{part} is missing, or comes too early:\n{log}"));
            rest = &rest[at + part.len()..];
        }
    };
    let first = traced("new/store");
    let (answer, named) = ("journal pushed".to_string(), format!("{hash}.jsonl\""));
    let synced = |folder: &str| format!("{folder}>)");
    let folder = format!("/new/store/journals/{}", &hash[..2]);
    in_order(&first, &["/store/incoming/".into(), named.clone(), synced(&folder), answer.clone()]);
    in_order(
        &first,
        &["mkdir(".into(), synced(lab.path("").display().to_string().trim_end_matches('/')), answer.clone()],
    );
    in_order(&first, &["/new/store\"".into(), synced("/new"), answer.clone()]);
    in_order(&first, &["\"pickfs-store\"".into(), synced("/new/store"), answer.clone()]);
    in_order(&first, &[format!("\"{}\"", &hash[..2]), synced("/new/store/journals"), named.clone()]);
    // Of another writer, which may not have come to that yet.
    let known = traced("new/store");
    in_order(
        &known,
        &[named.clone(), synced(&format!("{folder}/{hash}.jsonl")), synced(&folder), "there already".into()],
    );
}

/// A user with write access to a store can lead no reader and no writer out of it.
#[test]
fn links_in_a_store_are_not_followed() {
    let lab = Lab::new();
    journals(&lab);
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(lab.path(to), lab.path(name)).unwrap();
    lab.run(&["push", "store", "runs/0.jsonl"]).code(0);
    let secret = std::fs::read(lab.path("runs/1.jsonl")).unwrap();
    let (hash, third) = (sha256(&secret), sha256(&std::fs::read(lab.path("runs/2.jsonl")).unwrap()));
    // A journal that is a link, one in a folder that is one, and a pipe: each where a journal would
    // lie.
    std::fs::create_dir_all(lab.path(&format!("store/journals/{}", &hash[..2]))).unwrap();
    link("runs/1.jsonl", &format!("store/journals/{}/{hash}.jsonl", &hash[..2]));
    std::fs::create_dir(lab.path("away")).unwrap();
    std::fs::copy(lab.path("runs/2.jsonl"), lab.path(&format!("away/{third}.jsonl"))).unwrap();
    link("away", &format!("store/journals/{}", &third[..2]));
    let pipe = format!("{}.jsonl", "a".repeat(64));
    std::fs::create_dir_all(lab.path("store/journals/aa")).unwrap();
    run(&["mkfifo", &lab.path(&format!("store/journals/aa/{pipe}")).display().to_string()]);
    // An index that is somebody's database.
    lab.run(&["push", "other", "runs/0.jsonl"]).code(0);
    let before = std::fs::read(lab.path("other/index.sqlite")).unwrap();
    std::fs::remove_file(lab.path("store/index.sqlite")).unwrap();
    link("other/index.sqlite", "store/index.sqlite");

    assert!(lab.run(&["site", "store", "www"]).code(0).out.contains("of 1 run\n"));
    assert!(names(&lab, "www/journals").iter().all(|name| !name.contains(&hash) && !name.contains(&third)));
    for words in [&["history", "store"][..], &["query", "store"], &["ask", "store"], &["push", "copy", "store"]] {
        let said = lab.run(words).code(0);
        assert!(!said.out.contains("2026-02-02") && !said.out.contains("2026-02-03"), "{words:?}: {}", said.out);
    }
    assert_eq!(names(&lab, "copy/journals").len(), 1);
    assert!(std::fs::read(lab.path("other/index.sqlite")).unwrap() == before, "another database was written to");
    for (store, journal, wanted) in [("store", "1", "not a regular file"), ("store", "2", "Not a directory")] {
        let said = lab.run(&["push", store, &format!("runs/{journal}.jsonl")]).code(1);
        assert!(said.err.contains("cannot write to the store"), "{wanted}: {}", said.err);
    }
    std::fs::remove_dir(lab.path("store/incoming")).unwrap();
    link("away", "store/incoming");
    assert!(lab.run(&["push", "store", "runs/1.jsonl"]).code(1).err.contains("cannot write to the store"));
    assert_eq!(names(&lab, "away"), [format!("{third}.jsonl")]);
}

/// Every journal twice, by eight processes, each in its own order: the index is that of a rebuild.
#[test]
#[ignore = "ten thousand journals: minutes; `make test-all`"]
fn ten_thousand_journals_by_eight_writers() {
    const JOURNALS: usize = 10_000;
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("made")).unwrap();
    Made::new(&["ext4", "xfs"], &[1.0, 0.8], 4, 1).write(&lab.path("first.jsonl"));
    let text = std::fs::read_to_string(lab.path("first.jsonl")).unwrap();
    for number in 0..JOURNALS {
        let text = text.replace("\"id\":\"made\"", &format!("\"id\":\"made{number}\""));
        let day = format!("2026-{:02}-{:02}", 1 + number % 12, 1 + number / 12 % 28);
        std::fs::write(lab.path(&format!("made/{number}.jsonl")), text.replace("2026-01-31", &day)).unwrap();
    }
    let writer = |writer: usize| {
        // Odd steps that do not divide the number go through all of them: two writers have each
        // journal.
        let step = [1, 3, 7, 9, 11, 13, 17, 19][writer];
        let mine = (0..JOURNALS).map(|at| at * step % JOURNALS).filter(|number| number % 4 == writer % 4);
        let names: Vec<String> = mine.map(|number| format!("made/{number}.jsonl")).collect();
        let words = ["push".to_string(), "store".to_string()].into_iter().chain(names);
        lab.pickfs().args(words).stdout(Stdio::null()).spawn().expect("pickfs starts")
    };
    let writers: Vec<Child> = (0..8).map(writer).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let dump = |words: &[&str]| {
        let all = "SELECT * FROM journal LEFT JOIN result USING (hash) ORDER BY hash, number";
        lab.run(&[&["query", "store", all, "--format", "csv"], words].concat()).code(0).out
    };
    let before = dump(&[]);
    assert_eq!(before.lines().count(), JOURNALS + 1);
    assert!(before == dump(&["--reindex"]), "a rebuild gives another index");
    let begun = std::time::Instant::now();
    lab.run(&["choices", "store"]).code(0);
    println!("`choices` over {JOURNALS} journals: {:.2?}", begun.elapsed());
    assert_eq!(walkdir::WalkDir::new(lab.path("store/incoming")).min_depth(1).into_iter().count(), 0);
}

/// A real server in the laboratory, which ends with it.
struct Server {
    data: String,
}

impl Server {
    fn new(lab: &Lab) -> Server {
        let data = lab.path("database").display().to_string();
        run(&["chmod", "755", &lab.path("").display().to_string()]);
        run(&["install", "-d", "-o", "postgres", "-m", "700", &data]);
        let server = Server { data };
        server.control(&["initdb", "--auth=trust", "--no-sync", "--locale=C.UTF-8", "--pgdata"]);
        let options = format!("-k {} -c listen_addresses= -c fsync=off", server.data);
        let log = format!("{}/log", server.data);
        server.control(&["pg_ctl", "start", "--wait", "--silent", "--log", &log, "--options", &options, "--pgdata"]);
        server
    }

    /// A program of the server's package, as its user.
    fn control(&self, words: &[&str]) -> String {
        let program = server_program(words[0]).expect("it was looked for");
        let words = [&["runuser", "-u", "postgres", "--", &program], &words[1..], &[&self.data]].concat();
        run(&words)
    }

    fn address(&self) -> String {
        format!("postgresql:///postgres?host={}&user=postgres", self.data)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.control(&["pg_ctl", "stop", "--mode=immediate", "--silent", "--pgdata"]);
    }
}

/// Debian has them in a folder of their version.
fn server_program(name: &str) -> Option<String> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let places = versions.map(|version| version.path().join("bin").join(name));
    places.filter(|place| place.is_file()).map(|place| place.display().to_string()).max()
}

fn no_postgresql() -> Option<String> {
    let needs = [
        Need::Root,
        Need::Program { name: "psql", package: "postgresql-client" },
        Need::Program { name: "runuser", package: "util-linux" },
    ];
    let missing = pickfs_system::need::missing(&needs).first().map(ToString::to_string);
    missing.or_else(|| server_program("initdb").is_none().then(|| "no PostgreSQL; install postgresql".to_string()))
}

/// Whatever order journals come in, and however often.
#[test]
fn postgresql_gives_the_answers_of_sqlite() {
    if not_run(no_postgresql()) {
        return;
    }
    let lab = Lab::new();
    journals(&lab);
    let server = Server::new(&lab);
    let address = server.address();
    let questions = [
        "SELECT * FROM journal ORDER BY hash",
        "SELECT * FROM result ORDER BY hash, number",
        "SELECT best, count(*) AS n FROM result GROUP BY best ORDER BY best",
        "SELECT title, max(bytes) AS most FROM journal WHERE superseded = 0 GROUP BY title ORDER BY title",
    ];
    let assert_same = |what: &str| {
        for sql in questions {
            let here = lab.run(&["query", "store", sql, "--format", "csv"]).code(0).out;
            assert!(here.lines().count() > 1, "{here}");
            assert_eq!(here, lab.run(&["query", &address, sql, "--format", "csv"]).code(0).out, "{what}: {sql}");
        }
        assert_eq!(lab.run(&["query", "store"]).code(0).out, lab.run(&["query", &address]).code(0).out, "{what}");
        for verb in ["choices", "ask"] {
            let here = lab.run(&[verb, "store"]).code(0).out;
            let there = lab.run(&[verb, &address]).code(0).out;
            let command = |line: &str| line.trim().starts_with("pickfs run --trust");
            let answers = |said: &str| said.lines().filter(|line| !command(line)).collect::<Vec<_>>().join("\n");
            assert_eq!(answers(&here.replace("store@", "STORE@")), answers(&there), "{what}: {verb}");
        }
    };
    lab.run(&["push", "store", "runs/2.jsonl"]).code(0);
    lab.run(&["query", "store", "--to", &address]).code(0);
    assert_same("one");
    // A run that went on: its shorter journal counts no more.
    let whole = std::fs::read_to_string(lab.path("runs/0.jsonl")).unwrap();
    let half: String = whole.lines().take(whole.lines().count() / 2).map(|line| format!("{line}\n")).collect();
    std::fs::write(lab.path("half.jsonl"), half).unwrap();
    lab.run(&["push", "store", "half.jsonl", "runs/1.jsonl"]).code(0);
    lab.run(&["query", "store", "--to", &address]).code(0);
    lab.run(&["push", "store", "runs"]).code(0);
    for _ in 0..2 {
        assert_eq!(lab.run(&["query", "store", "--to", &address]).code(0).err, format!("4 journals in {address}\n"));
    }
    assert_same("all");
    let wrong = lab.run(&["query", &address, "DELETE FROM journal"]).code(2);
    assert!(wrong.err.contains("read-only"), "{}", wrong.err);
    lab.run(&["query", "store", "--reindex", "--to", &address]).code(0);
    assert_same("made again");
}
