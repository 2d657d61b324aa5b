//! Exports read by the programs that they are for, and round trips through imports, with the real
//! binary.

use crate::common;

use crate::common::{Lab, Said, not_run};
use crate::made::Made;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Where Debian's modules are; another Python of a user has none of them.
const PYTHON: &str = "/usr/bin/python3";

fn made(lab: &Lab) {
    Made::new(&["ext4", "=cmd|' /C calc'!A0, \"x\""], &[1.0, 0.8], 7, 1).write(&lab.journal());
}

fn export(lab: &Lab, format: &str, to: &str) {
    lab.run(&["report", "journal.jsonl", "--format", format, "-o", to]).code(0);
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("it was written")).expect("it is JSON")
}

/// Why a module of Python cannot be had.
fn no_module(name: &str) -> Option<String> {
    let said = Command::new(PYTHON).args(["-c", &format!("import {name}")]).output();
    let there = said.is_ok_and(|said| said.status.success());
    (!there).then(|| format!("{PYTHON} has no {name} (apt-get install python3-{name})"))
}

#[track_caller]
fn python(lab: &Lab, script: &str) -> String {
    let said = Command::new(PYTHON).current_dir(lab.path(".")).args(["-c", script]).output().expect("Python starts");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).trim().to_string()
}

#[test]
fn tables_of_commas_read_in_pandas() {
    if not_run(no_module("pandas")) {
        return;
    }
    let lab = Lab::new();
    made(&lab);
    export(&lab, "csv", "samples.csv");
    export(&lab, "csv-summary", "summary.csv");
    let script = "
import pandas
d = pandas.read_csv('samples.csv')
assert str(d['value in unit'].dtype) == 'float64' and len(d) == 7 * 2 * 2 * 3, (d.dtypes, len(d))
assert list(d.target.unique()) == ['ext4', '\\'=cmd|\\' /C calc\\'!A0, \"x\"'], d.target.unique()
times = d[(d.metric == 'time_ns') & (d.phase == 'write') & (d.target == 'ext4')]['value in unit']
s = pandas.read_csv('summary.csv')
told = s[(s.metric == 'time_ns') & (s.phase == 'write') & (s.target == 'ext4')]['median in unit']
print(times.median() == told.iloc[0])";
    assert_eq!(python(&lab, script), "True");
}

#[test]
fn our_json_is_as_its_schema_says() {
    if not_run(no_module("jsonschema")) {
        return;
    }
    let lab = Lab::new();
    made(&lab);
    export(&lab, "json", "report.json");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/report-1.schema.json");
    let script = format!(
        "
import json, jsonschema
schema = json.load(open('{schema}'))
jsonschema.Draft202012Validator.check_schema(schema)
document = json.load(open('report.json'))
jsonschema.validate(document, schema)
for member in list(document):
    broken = {{name: value for name, value in document.items() if name != member}}
    try:
        jsonschema.validate(broken, schema)
        print('without', member)
    except jsonschema.ValidationError:
        pass
"
    );
    assert_eq!(python(&lab, &script), "", "the schema misses what is missing");
    lab.run(&[
        "compare", "journal.jsonl", "journal.jsonl", "--scatter", "0.1%", "--format", "json", "-o", "compare.json",
    ])
    .code(0);
    let schema = schema.replace("report-1", "compare-1");
    let compared = format!(
        "import json, jsonschema
schema = json.load(open('{schema}'))
jsonschema.Draft202012Validator.check_schema(schema)
print(jsonschema.validate(json.load(open('compare.json')), schema))"
    );
    assert_eq!(python(&lab, &compared), "None");
    let bmf = r#"
import json, jsonschema
metric = {'type': 'object', 'properties': {n: {'type': 'number'} for n in ['value', 'lower_value', 'upper_value']}, 'required': ['value']}
measures = {'type': 'object', 'patternProperties': {'.+': metric}}
jsonschema.validate(json.load(open('r.bmf')), {'type': 'object', 'patternProperties': {'.+': measures}})
one = json.load(open('r.bmf'))['ext4: tree, write']['latency']
print(one['lower_value'] < one['value'] < one['upper_value'])"#;
    export(&lab, "bmf", "r.bmf");
    assert_eq!(python(&lab, bmf), "True");
}

/// The three sheets come back as the same cells, a formula as its text.
#[test]
fn the_spreadsheet_opens_in_libreoffice_with_the_same_figures() {
    let there = Command::new("soffice").arg("--version").output().is_ok_and(|said| said.status.success());
    let why = (!there).then(|| "there is no soffice (apt-get install libreoffice-calc-nogui)".to_string());
    if not_run(why) {
        return;
    }
    let lab = Lab::new();
    made(&lab);
    export(&lab, "ods", "r.ods");
    export(&lab, "csv", "samples.csv");
    export(&lab, "csv-summary", "summary.csv");
    let profile = format!("-env:UserInstallation=file://{}", lab.path("office").display());
    // Commas, quotes, UTF-8, from the first line, stored values rather than shown ones, all sheets.
    let filter = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1";
    let words = ["--headless", &profile, "--convert-to", filter, "--outdir", "out", "r.ods"];
    let said = Command::new("soffice").current_dir(lab.path(".")).args(words).output().expect("it starts");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let rows = |name: &str| -> Vec<Vec<String>> {
        let text = std::fs::read(lab.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_slice());
        let cell = |cell: &str| match cell.parse::<f64>() {
            Ok(number) => format!("{number:.12e}"),
            Err(_) => cell.trim_start_matches('\'').to_string(),
        };
        rows.records().map(|row| row.expect("a row").iter().map(cell).collect()).collect()
    };
    assert_eq!(rows("out/r-Samples.csv"), rows("samples.csv"));
    assert_eq!(rows("out/r-Summary.csv"), rows("summary.csv"));
    assert_eq!(rows("out/r-Chart data.csv").len(), 1 + 3 * 2);
}

/// Times by target, phase and round, to the nanosecond.
fn times(lab: &Lab, journal: &str) -> Vec<String> {
    let folded = lab.folded_at(journal);
    let mut all = Vec::new();
    for cell in &folded.cells {
        for (phase, metric, value) in folded.samples(cell).filter(|(_, metric, _)| *metric == "time_ns") {
            all.push(format!("{} {} {} {phase} {metric} {value:.0}", cell.target, cell.work, cell.round));
        }
    }
    all.sort();
    all
}

#[test]
fn what_is_exported_and_imported_again_keeps_every_figure() {
    let lab = Lab::new();
    made(&lab);
    let before = times(&lab, "journal.jsonl");
    assert_eq!(before.len(), 7 * 2 * 2);
    let text = |journal: &str| lab.run(&["report", journal, "--format", "hyperfine"]).code(0).out;
    for format in ["json", "hyperfine", "phoronix"] {
        export(&lab, format, "exported");
        let journal = format!("{format}.jsonl");
        lab.run(&["import", "exported", "-o", &journal]).code(0);
        assert_eq!(times(&lab, &journal), before, "{format}");
        assert_eq!(text(&journal), text("journal.jsonl"), "{format}");
        let report = lab.run(&["report", &journal]).code(0).out;
        assert!(report.contains("imported from "), "{report}");
    }
    // Our own says all that the journal says: judgements, environment and order come back too.
    assert_comes_back(&lab);
    // And so it can be compared with the run that it came from.
    lab.run(&["compare", "journal.jsonl", "json.jsonl", "--scatter", "0.1%"]).code(0);
}

/// A real run (see `fixtures/journals`): what was in effect in each cell, where its time went, what
/// its device did.
#[test]
fn a_real_run_is_exported_whole_and_comes_back() {
    let lab = Lab::new();
    let journal = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/small-files.jsonl");
    std::fs::copy(journal, lab.journal()).unwrap();
    export(&lab, "json", "exported");
    lab.run(&["import", "exported", "-o", "json.jsonl"]).code(0);
    assert_comes_back(&lab);
    let document = json(&lab.path("exported"));
    let cell = &document["cells"][0];
    let told =
        ["provenance/facts/mount", "provenance/largest/volume", "ledger/settle_ns", "device_courses/0/until_ns/0"];
    for place in told {
        assert!(cell.pointer(&format!("/{place}")).is_some(), "no {place} in {cell}");
    }
    assert!(document["run_ledger"]["setup_ns"].as_u64() > Some(0));
}

/// `journal.jsonl`, and what came of it by way of JSON, are the same in JSON.
fn assert_comes_back(lab: &Lab) {
    export(lab, "json", "one.json");
    lab.run(&["report", "json.jsonl", "--format", "json", "-o", "two.json"]).code(0);
    let (mut one, mut two) = (json(&lab.path("one.json")), json(&lab.path("two.json")));
    assert_eq!((&one["run"]["imported"], &two["run"]["imported"]), (&"".into(), &"pickfs".into()));
    for document in [&mut one, &mut two] {
        document["run"]["imported"].take();
        document["verdict"]["warnings"].take();
    }
    assert!(one == two);
}

/// On the first screen of real outputs: the figures that each program shows first, and no seconds
/// made of rates.
#[test]
fn what_a_program_shows_first_opens_its_report() {
    let lab = Lab::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/import");
    for (name, shown) in [
        ("fio-3.33.json", &["write IOPS 21558/s", "write bandwidth 84.2 MiB/s", "read latency, mean"][..]),
        ("bonnie-2.00a.csv", &["putc: rate 1.23 MiB/s"][..]),
        ("pgbench-15.txt", &["transactions 722/s", "latency, mean 2.77 ms"][..]),
        ("pgbench-15.log", &["latency, mean 2.78 ms", "latency, p99"][..]),
        ("hyperfine-1.15.json", &["16.8 ms", "14.8 ms", "6.74 ms", "50.8 ms"][..]),
        ("hyperfine-2.0.json", &["11.6 ms", "1.36 ms", "10.5 ms", "14.0 ms"][..]),
    ] {
        let journal = format!("{name}.jsonl");
        lab.run(&["import", &format!("{fixtures}/{name}"), "-o", &journal]).code(0);
        let report = lab.run(&["report", &journal]).code(0).out;
        let line = report.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing: Vec<_> = shown.iter().filter(|figure| !line.contains(**figure)).collect();
        assert!(missing.is_empty(), "{missing:?} not in {report}");
        assert!(
            !line.contains("whole job") && !line.contains("geometric mean") && !line.contains(" takes "),
            "{report}"
        );
        assert!(!lab.run(&["report", &journal, "--full"]).code(0).out.contains("geometric mean"));
        let runs = lab.run(&["report", &journal, "--full"]).code(0).out.contains("ls -l /usr/bin: 8 runs: ");
        assert_eq!(runs, name.starts_with("hyperfine"), "{name}");
    }
}

/// Real output of each program, through import and report, never gets an interval.
#[test]
fn what_others_have_measured_is_shown_marked_and_without_intervals() {
    let lab = Lab::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/import");
    for (name, shown) in [
        ("fio-3.33.json", "write"),
        ("fio-3.33-plus.json", "mixed"),
        ("fio-3.33-status.json", "write"),
        ("bonnie-2.00a.csv", "putc"),
        ("pgbench-15.txt", "clients-2"),
        ("pgbench-15.log", "transactions"),
        ("pgbench-15-aggregate.log", "transactions"),
        ("hyperfine-1.15.json", "find /usr/share/doc -maxdepth 1"),
        ("hyperfine-2.0.json", "find /usr/share/doc -maxdepth 1"),
    ] {
        let journal = format!("{name}.jsonl");
        let (one, two) = (format!("one={fixtures}/{name}"), format!("two={fixtures}/{name}"));
        lab.run(&["import", &one, &two, "-o", &journal]).code(0);
        let report = lab.run(&["report", &journal, "--full"]).code(0).out;
        assert!(report.contains("imported from ") && report.contains(shown), "{report}");
        lab.run(&["report", &journal, "--format", "json", "-o", "r.json"]).code(0);
        let document = json(&lab.path("r.json"));
        let panels = document["works"][0]["times"].as_array().expect("times");
        let rows = panels.iter().flat_map(|panel| panel["rows"].as_array().expect("rows"));
        for row in rows {
            assert!(row["against_reference"]["estimate"]["low"].is_null(), "{name}: {row}");
        }
    }
    assert!(lab.run(&["import", &format!("{fixtures}/README.md"), "-o", "x.jsonl"]).code(1).err.contains("--from"));
    let ours = lab.run(&["import", "fio-3.33.json.jsonl", "-o", "x.jsonl"]).code(1).err;
    assert!(ours.contains("is a journal of pickfs already: pickfs report fio-3.33.json.jsonl"), "{ours}");
    let again = lab.run(&["import", &format!("{fixtures}/fio-3.33.json"), "-o", "fio-3.33.json.jsonl"]).code(1);
    assert!(again.err.contains("cannot create the journal"), "{}", again.err);
}

/// What another program says, or says that it is called, steers nothing, in any format.
#[test]
fn hostile_imports_are_inert_in_every_format() {
    let lab = Lab::new();
    let names = [
        "<script>alert(1)</script>".to_string(),
        "\u{1b}[31mred\u{7}\u{202e}".to_string(),
        "=1+1".to_string(),
        "x".repeat(1 << 19),
    ];
    let result = |name: &String| serde_json::json!({ "command": name, "mean": 1.5, "times": [1.0, 2.0] });
    let results: Vec<Value> = names.iter().map(result).collect();
    std::fs::write(lab.path("h.json"), serde_json::json!({ "results": results }).to_string()).unwrap();
    lab.run(&["import", "h.json", "-o", "journal.jsonl"]).code(0);
    for format in pickfs_host::render::ALL {
        export(&lab, format.name, "out");
        let written = std::fs::read(lab.path("out")).unwrap();
        assert!(written.len() < 4 << 20, "{}: {} bytes", format.name, written.len());
        if !format.is_binary {
            assert!(!written.contains(&0x1b) && !written.contains(&7), "{}", format.name);
        }
        // To a pipe the same bytes as to a file.
        let piped = lab.pickfs().args(["report", "journal.jsonl", "--format", format.name]).output().unwrap();
        assert!(piped.stdout == written, "{}", format.name);
    }
    let long = serde_json::json!({ "results": [result(&"x".repeat(10 << 20))] });
    std::fs::write(lab.path("h.json"), long.to_string()).unwrap();
    let said = lab.run(&["import", "h.json", "-o", "other.jsonl"]).code(1);
    let is_refused = said.err.contains("longer than a line of a journal may be");
    assert!(is_refused && !lab.path("other.jsonl").exists(), "{}", said.err);
    for wrong in
        ["{\"results\":[{\"command\":\"\\ud800\",\"mean\":1}]}", "{\"results\":[{\"command\":\"x\",\"mean\":NaN}]}"]
    {
        std::fs::write(lab.path("h.json"), wrong).unwrap();
        let said = lab.run(&["import", "h.json", "-o", "other.jsonl"]).code(1);
        assert!(
            said.err.contains("cannot read h.json as hyperfine") && !lab.path("other.jsonl").exists(),
            "{}",
            said.err
        );
    }
}

/// One of the usual accidents: a byte changed, a piece lost, doubled or swapped for another piece.
fn damaged(text: &[u8], random: &mut impl rand_core::Rng) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..1 + random.next_u32() % 4 {
        let mut place = || random.next_u64() as usize % bytes.len().max(1);
        let (from, length, to) = (place(), place() % 64, place());
        let end = (from + length).min(bytes.len());
        let piece: Vec<u8> = bytes[from.min(end)..end].to_vec();
        match random.next_u32() % 5 {
            0 if !bytes.is_empty() => bytes[from] = random.next_u32() as u8,
            1 => drop(bytes.drain(from.min(end)..end)),
            2 => drop(bytes.splice(to..to, piece)),
            3 => bytes.truncate(to),
            _ => {
                let odd =
                    ["1e308", "-1", "NaN", "\\ud800", "\0", "{", "<Result>", "99999999999999999999", "+++++", ":", ","];
                let odd = odd[random.next_u32() as usize % odd.len()].bytes();
                drop(bytes.splice(from..end, odd));
            }
        }
    }
    bytes
}

/// A benchmark that was done each night: each folder is a round, and what one file system alone has
/// is not what they are ranked by.
#[test]
fn folders_of_a_folder_are_rounds() {
    let lab = Lab::new();
    for (round, factor) in [(9, 1.0), (10, 1.02), (11, 0.99)] {
        let folder = lab.path(&format!("runs/{round}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("log.txt"), "no result").unwrap();
        for (fs, ms, more) in [("ext4", 100.0, ""), ("xfs", 200.0, ",\"snapshot_create_ms\":3")] {
            let time = ms * factor + f64::from(round);
            let text = format!(
                r#"{{"fs":"{fs}","layout":"single","kernel":"7.0","results":{{"rm_ms":{time},"scrub_s":null{more}}}}}"#
            );
            std::fs::write(folder.join(format!("result-{fs}.json")), text).unwrap();
        }
    }
    let said = lab.run(&["import", "runs", "--rounds", "-o", "runs.jsonl"]).code(0).err;
    assert!(said.contains("left out: runs/9/log.txt"), "{said}");
    let folded = lab.folded_at("runs.jsonl");
    let cells = folded.cells.iter().filter(|cell| cell.target == "ext4 single");
    let times: Vec<(u32, f64)> = cells.map(|cell| (cell.round, folded.samples(cell).next().unwrap().2)).collect();
    // The night of folder 10 comes after that of folder 9.
    assert_eq!(times, [(1, 109e6), (2, 112e6), (3, 110e6)]);
    let report = lab.run(&["report", "runs.jsonl"]).code(0).out;
    assert!(report.contains("ext4 single") && !report.contains("not ranked"), "{report}");
}

/// Real results, damaged: read or refused, and what was read is shown by every format. With
/// PICKFS_FULL a hundred times as often; `fuzz/` looks further.
#[test]
fn damaged_results_are_read_or_refused() {
    use pickfs_host::import::{ALL, File, ImportOptions, records};
    use rand_core::SeedableRng;
    let lab = Lab::new();
    made(&lab);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for format in ["json", "hyperfine", "phoronix"] {
        export(&lab, format, "exported");
        all.push(std::fs::read(lab.path("exported")).unwrap());
    }
    let fixtures = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/import")).unwrap();
    all.extend(fixtures.map(|file| std::fs::read(file.unwrap().path()).unwrap()));
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
    let (mut read, count) = (0, if std::env::var_os("PICKFS_FULL").is_some() { 20_000 } else { 200 });
    for number in 0..count {
        let bytes = damaged(&all[number % all.len()], &mut random);
        let text = String::from_utf8_lossy(&bytes);
        let from = ALL.iter().find(|one| one.recognises(&text)).map_or("fio", |one| one.name());
        let file = File { label: "damaged", name: "damaged", text: &text, round: None };
        let Ok(records) = records(&[file], ImportOptions { from: Some(from), rounds: false }) else { continue };
        let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let Ok(model) = pickfs_host::analysis::model(&pickfs_core::journal::fold(lines.join("\n").as_bytes()).unwrap())
        else {
            continue;
        };
        read += 1;
        for format in pickfs_host::render::ALL {
            let document = pickfs_host::render::Document::Run(&model);
            format.write(document, &Default::default(), &mut std::io::sink()).unwrap();
        }
    }
    assert!(read > count / 10, "{read} of {count} were read: too few to show anything");
}

/// The archive has the figures, and no trace of the user and the place.
#[test]
fn a_run_that_is_shared_has_its_figures_and_no_paths() {
    let lab = Lab::new();
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/default-run.jsonl");
    let home = lab.path("ann-whale").display().to_string();
    // As if its image had lain in somebody's home, which the title names too.
    let text = std::fs::read_to_string(run).expect("a fixture").replace("\"title\":\"", "\"title\":\"ann-whale: ");
    let facts = serde_json::json!({ "kernel words": format!("{home}/disk.img"), "loop file": home });
    let found = serde_json::json!({ "provenance": { "cell": "", "facts": facts } });
    std::fs::write(lab.path("run.jsonl"), format!("{text}{found}\n")).expect("written");
    let said = lab.run(&["share", "run.jsonl"]).code(0).out;
    assert!(said.contains("run-shared.tar.gz: journal.jsonl, report.html and disclosure.html"), "{said}");
    assert!(said.contains("also occur elsewhere") && said.contains("ann-whale"), "{said}");
    assert!(said.contains("hold anything: loop file\n") && said.contains("  title: ann-whale: "), "{said}");
    assert!(lab.run(&["share", "run.jsonl"]).code(2).err.contains("is there already"));
    let [archive, here] = ["run-shared.tar.gz", "."].map(|name| lab.path(name).display().to_string());
    common::run(&["tar", "-xf", &archive, "-C", &here]);
    let read = |name: &str| std::fs::read_to_string(lab.path(name)).expect("it was packed");
    let both = read("journal.jsonl") + &read("report.html") + &read("disclosure.html");
    for old in [home.as_str(), "/tmp/", "\"step\""] {
        assert!(!both.contains(old), "{old}");
    }
    let figures = |journal: &str| {
        let said = lab.run(&["report", journal]).code(0).out;
        let lines = said.lines().filter(|line| [" ms ", " s ", "%"].iter().any(|part| line.contains(part)));
        lines.filter(|line| !line.contains("pickfs run")).map(String::from).collect::<Vec<_>>()
    };
    assert!(figures("run.jsonl").len() > 5, "{:?}", figures("run.jsonl"));
    assert_eq!(figures("run.jsonl"), figures("journal.jsonl"));
}

#[rustfmt::skip]
const SECRET: &[&str] = &[
    "S3cretPw", "AKIAVERYSECRET", "hunter22", "plainvalue", "tok en", "pw77pw77", "db7", "corp.example", "whale",
    "WHALE", "0123456789abcdef", "S3Z9NX0M", "0b9e9c0d", "10.20.30.40", "anns-disk", "fileserver", "52:54",
    "fe80", "5000c500", "ABCD-1234", "1a2b3c4d", "abcdef-GHIJ", "miller", "nas9", "nas-smb", "secret-project",
    "carl", concat!("/", "home/"), "2Fann", "/srv/",
];
const KEPT: &[&str] =
    &["mysqldump", "--result-file=", "DB=", "PGPASSWORD=", "LANG=C.UTF-8", "ST4000NM0035, sectors 512/4096 B", "2 GHz"];

/// All of it is in the archive before it is replaced; names of files are no hosts and no options.
#[test]
fn secrets_and_addresses_are_not_shared() {
    let lab = Lab::new();
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/failed-and-skipped.jsonl");
    let mut records: Vec<Value> = std::fs::read_to_string(run)
        .expect("a fixture")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    let settings = serde_json::json!({
        "command": ["mysqldump", "-uann", "-pS3cretPw", "--host=db7.corp.example", "--result-file=/srv/ann/dump"],
        "prepare": ["sh", "-c", "export API_TOKEN='tok en'; curl -u bob:pw77pw77 https://intra.corp.example/x"],
        "environment": ["AWS_SECRET_ACCESS_KEY=AKIAVERYSECRET", "PGPASSWORD=hunter22", "DB=plainvalue", "LANG=C.UTF-8"],
    });
    let work = serde_json::json!({ "name": "dump", "workload": { "name": "command", "settings": settings } });
    records[0]["run"]["plan"]["works"].as_array_mut().unwrap().push(work);
    let facts = serde_json::json!({
        "host name": "whale-7.corp.example (0123456789abcdef)", "serial": "S3Z9NX0M123456A", "cpu": "CPU of ann, 2 GHz",
        "kernel words": "root=UUID=0b9e9c0d-9cb2-41c1-8da6-946b7f861bd9 resume=/dev/mapper/whale--7-swap ip=10.20.30.40",
        "mkfs": "mkfs.ext4 -L anns-disk /dev/loop0", "disk below": "sda, ST4000NM0035, sectors 512/4096 B",
        "nfs": "fileserver.corp.example:/export/ann", "in-a-key": "v",
    });
    records.insert(1, serde_json::json!({ "provenance": { "cell": "", "facts": facts } }));
    let why = "ANN on WHALE-7 and whale-7.corp.example, 52:54:00:ab:cd:ef, fe80::5054:ff:feab:cdef, naa.5000c500a1b2c3d4, \
        ABCD-1234, 1a2b3c4d:5e6f7a8b:9c0d1e2f:3a4b5c6d, abcdef-GHIJ-klmn-OPQR-stuv-WXYZ-012345, ann.miller@mail.example, \
        nas9:/export/x, //nas-smb/ann, /dev/whale-vg/home, ../ann/secret-project, file:///HOME/carl/x of carl, >/HOME/ann/s4, \
        %2Fhome%2Fann%2Fs5, anns-disk";
    records
        .push(serde_json::json!({ "flag": { "cell": "", "flag": "foreign-io", "why": why.replace("HOME", "home") } }));
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    std::fs::write(lab.path("a:b.jsonl"), lines.join("\n")).expect("a journal");
    let output = lab.pickfs().args(["share", "a:b.jsonl", "-o=-x:y.tar.gz"]).env("USER", "ann").output().unwrap();
    let said = Said::of(output).code(0).out;
    let [archive, here] = ["-x:y.tar.gz", "."].map(|name| lab.path(name).display().to_string());
    common::run(&["tar", "--force-local", "-xf", &archive, "-C", &here]);
    let read = |name: &str| std::fs::read_to_string(lab.path(name)).expect("it was packed");
    let both = read("journal.jsonl") + &read("report.html") + &read("disclosure.html") + &said;
    for secret in SECRET {
        assert!(!both.contains(secret), "{secret}:\n{said}");
    }
    // A fact's name is shown where it is left out.
    assert!(said.contains("in-a-key") && !read("journal.jsonl").contains("in-a-key"), "{said}");
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("ann"));
    assert!(!word(&both), "{said}");
    for kept in KEPT {
        assert!(both.contains(kept), "{kept}:\n{said}");
    }
    for shown in ["command: mysqldump", "environment: ", "works: ", "targets: ", "reason or doubt: ", "left out, "] {
        assert!(said.contains(shown), "{shown}:\n{said}");
    }
}

/// Results of several files of others are one run with rounds, judged by the same statistics.
#[test]
fn a_folder_of_tables_is_one_run_with_rounds() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("results")).unwrap();
    for (target, slower) in [("ext4", 1.0), ("xfs", 1.2)] {
        let row = |round: u32| {
            let noise = 1.0 + 0.01 * (f64::from(round) * slower * 1.9).sin();
            format!("{round},{target},read,{:.6},s\n", slower * noise)
        };
        let rows: String = (1..=8).map(row).collect();
        std::fs::write(lab.path(&format!("results/{target}.csv")), format!("round,target,phase,value,unit\n{rows}"))
            .unwrap();
    }
    lab.run(&["import", "results", "-o", "all.jsonl"]).code(0);
    let said = lab.run(&["report", "all.jsonl", "--format", "json"]).code(0);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let work = &report["works"][0];
    assert_eq!((&work["rounds"], &work["verdict"]["pick"]), (&8.into(), &"ext4".into()), "{work}");
    assert_eq!(work["times"][0]["slower"], serde_json::json!(["xfs"]), "{work}");
}
