//! A store from the command line: pushed to from here and over HTTP, asked by every verb that reads journals, shown as a site.

mod common;
mod made;

use common::{Lab, not_run, run};
use made::Made;
use pickfs::need::Need;
use pickfs::process::argv;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
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
    let slower = lab.run(&["compare", "store@2", "store@last"]).code(3).out;
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
        for link in links.filter(|link| !link.starts_with('#')) {
            let link = link.split('#').next().unwrap();
            assert!(folder.join(link).is_file(), "{}: {link}", file.path().display());
        }
        pages += 1;
    }
    let front = std::fs::read_to_string(lab.path("www/index.html")).unwrap();
    assert!(front.contains("Our &lt;disks&gt;") && front.contains("3 of 3 alike"), "{front}");
    assert_eq!(pages, 1 + 1 + 2 + 3);
    assert!(lab.run(&["site", "store", "www"]).code(0).out.contains("of 3 runs"));
}

/// `pickfs serve`, ended when it is dropped.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn new(lab: &Lab, words: &[&str]) -> Served {
        let words = [&["serve", "store", "--listen", "127.0.0.1:0"], words].concat();
        let mut child = lab.pickfs().args(words).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("/:").next().unwrap().trim_start_matches("http://").to_string();
        Served { child, address }
    }

    /// The code and the body of the answer to a request as it stands.
    fn asked(&self, head: &str, body: &[u8]) -> (u32, String) {
        let mut link = TcpStream::connect(&self.address).unwrap();
        let head = format!("{head} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n");
        link.write_all(head.as_bytes()).unwrap();
        // A server that has refused reads no further.
        let _ = link.write_all(body);
        let mut answer = Vec::new();
        let _ = link.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (code, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_string()).unwrap_or_default())
    }

    fn put(&self, name: &str, token: &str, body: &[u8]) -> u32 {
        let length = body.len();
        let fields = format!("Authorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n");
        let head = format!("PUT {name} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{fields}");
        let mut link = TcpStream::connect(&self.address).unwrap();
        link.write_all(head.as_bytes()).unwrap();
        let _ = link.write_all(body);
        let mut answer = String::new();
        let _ = link.read_to_string(&mut answer);
        answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = pickfs::sys::process::kill(self.child.id() as i32, pickfs::sys::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

const TOKEN: &str = "0123456789abcdef0123";

#[test]
fn a_served_store_takes_pushes_with_the_token_and_shows_pages() {
    if not_run(Need::Program { name: "curl", package: "curl" }.check().err().map(|missing| missing.to_string())) {
        return;
    }
    let lab = Lab::new();
    journals(&lab);
    std::fs::write(lab.path("token"), TOKEN).unwrap();
    std::fs::set_permissions(lab.path("token"), PermissionsExt::from_mode(0o644)).unwrap();
    assert!(lab.run(&["serve", "store", "--token-file", "token"]).code(1).err.contains("chmod 600"));
    std::fs::set_permissions(lab.path("token"), PermissionsExt::from_mode(0o600)).unwrap();
    let served = Served::new(&lab, &["--token-file", "token"]);
    let url = format!("http://{}", served.address);
    let pushed = lab.run(&["push", &url, "runs", "--token-file", "token"]).code(0).out;
    assert!(pushed.ends_with(": 3 journals pushed\n"), "{pushed}");
    let again = lab.run(&["push", &url, "runs/1.jsonl", "--token-file", "token"]).code(0).out;
    assert!(again.ends_with(": 0 journals pushed, 1 there already\n"), "{again}");
    let (path, name) = file_below(&lab, "store/journals");
    assert_eq!(run(&["sha256sum", &path]).split(' ').next(), name.strip_suffix(".jsonl"));
    let (code, front) = served.asked("GET /", b"\r\n");
    assert!(code == 200 && front.contains("3 of 3 alike"), "{code}: {front}");
    let hash = name.strip_suffix(".jsonl").unwrap();
    assert_eq!(served.asked(&format!("GET /run/{hash}.html"), b"\r\n").0, 200);
    assert_eq!(served.asked(&format!("GET /journals/{name}"), b"\r\n").0, 200);
    for path in ["/../../etc/passwd", "/journals/../index.sqlite", "/index.sqlite", "/pickfs-store", "/run/x.html"] {
        assert_eq!(served.asked(&format!("GET {path}"), b"\r\n").0, 404, "{path}");
    }
    assert_eq!(served.asked("POST /journals/x", b"\r\n").0, 405);
}

#[test]
fn strangers_and_liars_are_refused_and_nothing_is_written() {
    let lab = Lab::new();
    journals(&lab);
    std::fs::write(lab.path("token"), TOKEN).unwrap();
    std::fs::set_permissions(lab.path("token"), PermissionsExt::from_mode(0o600)).unwrap();
    let journal = std::fs::read(lab.path("runs/0.jsonl")).unwrap();
    let path = lab.path("runs/0.jsonl").display().to_string();
    let hash = pickfs::process::output(&argv(["sha256sum", &path]), &[]).unwrap()[..64].to_string();
    let own = format!("/journals/{hash}");
    {
        let served = Served::new(&lab, &["--token-file", "token"]);
        assert_eq!(served.put(&own, "another-token-altogether", &journal), 401);
        assert_eq!(served.put(&own, "", &journal), 401);
        let lying = format!("/journals/{}", "0".repeat(64));
        assert_eq!(served.put(&lying, TOKEN, &journal), 422);
        assert_eq!(served.put("/journals/../../../tmp/x", TOKEN, &journal), 422);
        assert_eq!(served.put("/elsewhere", TOKEN, &journal), 404);
        assert_eq!(served.put(&own, TOKEN, b"no journal\n"), 422);
        let files =
            walkdir::WalkDir::new(lab.path("store")).into_iter().flatten().filter(|one| one.file_type().is_file());
        assert_eq!(files.map(|file| file.file_name().to_owned()).collect::<Vec<_>>(), ["pickfs-store"]);
        assert_eq!(served.put(&own, TOKEN, &journal), 201);
    }
    let served = Served::new(&lab, &[]);
    assert_eq!(served.put(&own, TOKEN, &journal), 403);
}

/// Every journal twice, by eight processes, each in an order of its own: the index is that of a rebuild.
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
        // Odd steps that do not divide the number go through all of them: two writers have each journal.
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
    let missing = pickfs::need::missing(&needs).first().map(ToString::to_string);
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

/// What readers of Parquet read, a unit test has seen; here its two files are whole.
#[test]
fn both_tables_are_written_as_parquet() {
    let lab = Lab::new();
    journals(&lab);
    lab.run(&["push", "store", "runs"]).code(0);
    let said = lab.run(&["query", "store", "--parquet", "out"]).code(0).out;
    assert_eq!(said, "out/journal.parquet\nout/result.parquet\n");
    for name in ["journal", "result"] {
        let bytes = std::fs::read(lab.path(&format!("out/{name}.parquet"))).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let about = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
        assert!(about + 12 < bytes.len(), "{about}");
    }
}
