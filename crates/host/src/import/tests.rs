//! Importers on real output of the programs (fixtures/import), and on input that should not exist.

use super::*;

const FIO: &str = include_str!("../../../../fixtures/import/fio-3.33.json");
const FIO_PLUS: &str = include_str!("../../../../fixtures/import/fio-3.33-plus.json");
const FIO_STATUS: &str = include_str!("../../../../fixtures/import/fio-3.33-status.json");
const BONNIE: &str = include_str!("../../../../fixtures/import/bonnie-2.00a.csv");
const BONNIE_LONG: &str = include_str!("../../../../fixtures/bonnie-2.00a-long.csv");
const PGBENCH: &str = include_str!("../../../../fixtures/import/pgbench-15.txt");
const PGBENCH_LOG: &str = include_str!("../../../../fixtures/import/pgbench-15.log");
const PGBENCH_AGGREGATE: &str = include_str!("../../../../fixtures/import/pgbench-15-aggregate.log");
const HYPERFINE: &str = include_str!("../../../../fixtures/import/hyperfine-1.15.json");
const HYPERFINE_2: &str = include_str!("../../../../fixtures/import/hyperfine-2.0.json");

const FS_BENCHMARK: &str = include_str!("../../../../fixtures/import/modern-fs-benchmark-100-xfs.json");

const TABLE: &str = "round,target,phase,value,unit\n1,a,read,2,s\n1,b,read,500,IOPS\n2,a,read,2.5,s\n";

fn figures(importer: &str, text: &str) -> Figures {
    match find(importer).unwrap().read(text).unwrap() {
        Contents::Figures(figures) => figures,
        Contents::Journal(_) => panic!("a whole run"),
    }
}

fn value(figures: &Figures, phase: &str, metric: &str) -> Option<f64> {
    figures.measures.iter().find(|one| one.phase == phase && one.metric == metric).map(|one| one.value)
}

#[test]
fn each_is_known_by_its_looks() {
    let all = [
        ("fio", FIO),
        ("fio", FIO_PLUS),
        ("fio", FIO_STATUS),
        ("bonnie", BONNIE),
        ("pgbench", PGBENCH),
        ("pgbench-log", PGBENCH_LOG),
        ("pgbench-log", PGBENCH_AGGREGATE),
        ("hyperfine", HYPERFINE),
        ("hyperfine", HYPERFINE_2),
        ("csv", TABLE),
        ("modern-fs-benchmark", FS_BENCHMARK),
        ("pickfs", "{\"schema\":1,\"cells\":[], 1 2 3 4 5 6 7"),
    ];
    for (name, text) in all {
        let found: Vec<&str> = ALL.iter().filter(|one| one.recognises(text)).map(|one| one.name()).collect();
        assert_eq!(found, [name]);
    }
}

/// Compared with what a reader of JSON finds at the documented place.
#[test]
fn fio_tells_of_every_job() {
    for text in [FIO, FIO_PLUS] {
        let output: serde_json::Value = serde_json::from_str(text).unwrap();
        let found = figures("fio", text);
        let (write, mixed) = (&output["jobs"][0], &output["jobs"][1]);
        let expected = [
            ("write", "write_bytes_per_second", &write["write"]["bw_bytes"]),
            ("write", "write_p99_ns", &write["write"]["clat_ns"]["percentile"]["99.000000"]),
            ("write", "sync_p99_ns", &write["sync"]["lat_ns"]["percentile"]["99.000000"]),
            ("mixed", "read_operations_per_second", &mixed["read"]["iops"]),
            ("mixed", "write_max_ns", &mixed["write"]["clat_ns"]["max"]),
        ];
        for (phase, metric, wanted) in expected {
            assert_eq!(value(&found, phase, metric), wanted.as_f64(), "{phase} {metric}");
        }
        let ms = write["job_runtime"].as_f64().unwrap().max(write["write"]["runtime"].as_f64().unwrap());
        assert_eq!(value(&found, "write", "time_ns"), Some(ms * 1e6));
        // The time of work that lasts a second is given for one GiB.
        assert!(value(&found, "mixed", "time_ns").unwrap() > 1e9 + 1.0);
        assert_eq!(found.facts["fio version"], "fio-3.33");
        assert_eq!(value(&found, "write", "read_p99_ns"), None);
    }
}

/// The first job of fio's output with these options more.
fn fio_with(options: &[&str], runtime: u64) -> Figures {
    let mut output: serde_json::Value = serde_json::from_str(FIO).unwrap();
    let job = &mut output["jobs"][0];
    job["job_runtime"] = runtime.into();
    options.iter().for_each(|option| job["job options"][option] = "1".into());
    figures("fio", &output.to_string())
}

/// Of four clones that are reported as one fio adds up the times.
#[test]
fn the_time_of_clones_is_that_of_the_longest() {
    let output: serde_json::Value = serde_json::from_str(FIO).unwrap();
    let write = &output["jobs"][0]["write"];
    let runtime = write["runtime"].as_u64().unwrap();
    let time = |found: &Figures| value(found, "write", "time_ns");
    assert_eq!(time(&fio_with(&["group_reporting"], 4 * runtime)), Some(runtime as f64 * 1e6));
    assert_eq!(time(&fio_with(&[], 4 * runtime)), Some(4e6 * runtime as f64));
    let at_a_rate = fio_with(&["rate_iops", "runtime"], runtime);
    assert_eq!(time(&at_a_rate), write["clat_ns"]["percentile"]["99.000000"].as_f64());
    let said = "one GiB, in jobs that end with their time; of the 99th percentile, in jobs at a rate";
    let words = |text: &str| text.split("; of ").map(String::from).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(words(&at_a_rate.facts["a time is that of"]), words(said));
}

#[test]
fn the_last_of_several_documents_counts_and_warnings_are_none() {
    let found = figures("fio", FIO_STATUS);
    let last = FIO_STATUS.rfind("\n{").unwrap();
    let output: serde_json::Value = serde_json::from_str(&FIO_STATUS[last..]).unwrap();
    assert_eq!(value(&found, "write", "write_bytes_per_second"), output["jobs"][0]["write"]["bw_bytes"].as_f64());
    let noisy = format!("fio: a {{warning}} before\nnote: {{}}\n{FIO}");
    assert_eq!(figures("fio", &noisy).measures, figures("fio", FIO).measures);
    let failed = FIO.replacen("\"error\" : 0", "\"error\" : 28", 1);
    assert!(figures("fio", &failed).failed.unwrap().contains("No space left"));
}

#[test]
fn what_bonnie_calls_plusses_is_missing_and_never_nought() {
    let found = figures("bonnie", BONNIE);
    let phases: Vec<&str> =
        found.measures.iter().filter(|one| one.metric == "time_ns").map(|one| one.phase.as_str()).collect();
    assert_eq!((phases, found.doubts.len()), (vec!["putc", "getc"], 10));
    assert!(found.measures.iter().all(|one| one.value > 0.0));
    assert_eq!(value(&found, "putc", "bytes_per_second"), Some(1264.0 * 1024.0));
    assert_eq!(value(&found, "putc", "latency_max_ns"), Some(683e6));
    assert_eq!(value(&found, "putc", "cpu_share"), Some(0.33));
}

/// Seconds a GiB and seconds a thousand files have no sum; what adds up its phases itself has one.
#[test]
fn phases_without_a_unit_in_common_are_not_added() {
    let judged = |label: &str, text: &str| {
        let all = records(&[File { label, name: label, text, round: None }], ImportOptions::default()).unwrap();
        let Some(Record::Run(run)) = all.first() else { panic!("no run") };
        run.plan.works[0].judged.clone()
    };
    for text in [BONNIE_LONG, FIO, PGBENCH] {
        let judged = judged("x", text);
        assert!(!judged.headlines.is_empty());
        assert_eq!(Judged { headlines: Vec::new(), ..judged }, Judged::mean_of_phases());
    }
    let mut figures = Figures::default();
    for phase in ["whole job", "read"] {
        let (work, phase, metric) = ("tree".to_string(), phase.to_string(), "time_ns".to_string());
        figures.add(Measure { target: None, work, phase, metric, round: Some(1), value: 1.0 });
    }
    drop_sums(&mut figures);
    assert_eq!((figures.summed.len(), figures.measures.len()), (1, 1));
}

/// (phase, name, value) of what a program shows first.
fn headlines(importer: &str, text: &str) -> Vec<(String, String, f64)> {
    let found = figures(importer, text);
    let all = found.headlines.values().flatten();
    let shown = all.filter_map(|one| {
        let name = one.quantity()?.to_string();
        Some((one.phase.clone(), name, value(&found, &one.phase, &one.metric)?))
    });
    shown.collect()
}

/// Each value as its program prints it, read here a second time from the text.
#[test]
fn what_a_program_shows_first_is_what_is_shown_of_it() {
    let has = |importer: &str, text: &str, phase: &str, name: &str, wanted: f64| {
        let all = headlines(importer, text);
        let found = all.iter().find(|(of, called, _)| of == phase && called == name);
        let found = found.unwrap_or_else(|| panic!("{importer}: no {phase}, {name} in {all:?}")).2;
        assert!((found / wanted - 1.0).abs() < 1e-9, "{importer}, {phase}, {name}: {found}, not {wanted}");
    };
    let fio: serde_json::Value = serde_json::from_str(FIO).unwrap();
    let mixed = &fio["jobs"][1]["read"];
    has("fio", FIO, "mixed", "read IOPS", mixed["iops"].as_f64().unwrap());
    has("fio", FIO, "mixed", "read bandwidth", mixed["bw_bytes"].as_f64().unwrap());
    has("fio", FIO, "mixed", "read latency, mean", mixed["clat_ns"]["mean"].as_f64().unwrap());
    has("fio", FIO, "mixed", "read latency, p99", mixed["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap());
    let fields: Vec<&str> = BONNIE_LONG.trim().split(',').collect();
    has("bonnie", BONNIE_LONG, "write", "rate", fields[11].parse::<f64>().unwrap() * 1024.0);
    has("bonnie", BONNIE_LONG, "seeks", "rate", fields[19].parse().unwrap());
    has("bonnie", BONNIE_LONG, "random-delete", "rate", fields[36].parse().unwrap());
    let after = |begin: &str| {
        let line = PGBENCH.lines().find_map(|line| line.trim().strip_prefix(begin)).unwrap();
        line.trim().split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    has("pgbench", PGBENCH, "clients-2", "transactions", after("tps ="));
    has("pgbench", PGBENCH, "clients-2", "latency, mean", after("latency average =") * 1e6);
    for (text, pointer) in [(HYPERFINE, ""), (HYPERFINE_2, "/summary/time_wall_clock")] {
        let output: serde_json::Value = serde_json::from_str(text).unwrap();
        let ls = &output["results"][0];
        for (name, field) in [("mean", "mean"), ("stddev", "stddev"), ("min", "min"), ("max", "max")] {
            let seconds = ls.pointer(&format!("{pointer}/{field}")).unwrap().as_f64().unwrap();
            has("hyperfine", text, "command", name, seconds * 1e9);
        }
        let times: Vec<f64> = figures("hyperfine", text)
            .measures
            .iter()
            .filter(|one| one.metric == "time_ns" && one.target.as_deref() == Some("ls -l /usr/bin"))
            .map(|one| one.value)
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert_eq!(times.len(), 8);
        has("hyperfine", text, "command", "mean", mean);
    }
}

/// Seconds are all that 2.0 writes today; another unit is refused, not taken for seconds.
#[test]
fn other_units_of_hyperfine_are_refused() {
    let other = HYPERFINE_2.replacen("\"second\"", "\"millisecond\"", 1);
    assert!(find("hyperfine").unwrap().read(&other).is_err());
}

/// No bonnie++ of Debian 12 writes 48 fields: they are the 50 without the two that came with 1.98.
#[test]
fn bonnie_of_48_fields_says_the_same() {
    let mut fields: Vec<&str> = BONNIE_LONG.trim().split(',').collect();
    fields.drain(7..9);
    fields[0] = "1.97";
    let older = figures("bonnie", &fields.join(","));
    assert_eq!(older.measures, figures("bonnie", BONNIE_LONG).measures);
    assert_eq!(older.measures.iter().filter(|one| one.metric == "time_ns").count(), 12);
    fields.pop();
    assert!(find("bonnie").unwrap().read(&fields.join(",")).is_err());
}

#[test]
fn pgbench_tells_rates_and_latencies() {
    let found = figures("pgbench", PGBENCH);
    for (metric, wanted) in [
        ("transactions_per_second", 721.704771),
        ("time_ns", 1e12 / 721.704771),
        ("latency_mean_ns", 2.765e6),
        ("connecting_ns", 4.166e6),
    ] {
        assert!((value(&found, "clients-2", metric).unwrap() / wanted - 1.0).abs() < 1e-12, "{metric}");
    }
    let old = "number of clients: 2\ntps = 10.0 (including connections establishing)\n\
               tps = 20.0 (excluding connections establishing)\n";
    assert_eq!(value(&figures("pgbench", old), "clients-2", "transactions_per_second"), Some(20.0));
    let failed = PGBENCH.replace("transactions: 0 (", "transactions: 7 (");
    assert!(figures("pgbench", &failed).failed.unwrap().starts_with("7 transactions"));
}

#[test]
fn logs_of_pgbench_are_latencies() {
    let found = figures("pgbench-log", PGBENCH_LOG);
    let mut all: Vec<f64> =
        PGBENCH_LOG.lines().map(|line| line.split(' ').nth(2).unwrap().parse::<f64>().unwrap() * 1e3).collect();
    all.sort_by(f64::total_cmp);
    assert_eq!(value(&found, "transactions", "latency_p50_ns"), Some(all[149]));
    assert_eq!(value(&found, "transactions", "latency_p99_ns"), Some(all[296]));
    let intervals = figures("pgbench-log", PGBENCH_AGGREGATE);
    let mean = (1085371.0 + 1999288.0 + 2002322.0) / (257.0 + 506.0 + 491.0) * 1e3;
    assert!((value(&intervals, "transactions", "latency_mean_ns").unwrap() / mean - 1.0).abs() < 1e-12);
    assert_eq!(value(&intervals, "transactions", "latency_max_ns"), Some(23652e3));
    assert_eq!(value(&intervals, "transactions", "latency_p50_ns"), None);
}

#[test]
fn runs_of_hyperfine_are_repeats_of_one_round() {
    let found = figures("hyperfine", HYPERFINE);
    let times: Vec<f64> = found.measures.iter().filter(|one| one.metric == "time_ns").map(|one| one.value).collect();
    assert_eq!((times.len(), times[0], times[1]), (16, 10_939_419.0, 50_789_610.0));
    assert!(found.measures.iter().all(|one| one.round.is_none()));
    let file = File { label: "x", name: "x.json", text: HYPERFINE, round: None };
    let records = records(&[file], ImportOptions::default()).unwrap();
    let rounds: Vec<u32> = records
        .iter()
        .filter_map(|one| if let Record::Begin(begin) = one { Some(begin.round) } else { None })
        .collect();
    assert_eq!(rounds, [1, 1]);
    assert!(matches!(&records[0], Record::Run(run) if run.imported == "hyperfine"));
}

#[test]
fn figures_of_a_foreign_run_have_the_unit_that_ends_their_name() {
    let found = figures("modern-fs-benchmark", FS_BENCHMARK);
    assert!(found.measures.iter().all(|one| one.target.as_deref() == Some("xfs single") && one.round.is_none()));
    // In the file: 361.199294090271 MB/s, 6420.052665 IOPS, 786 ms; snapshots are null, and are no
    // time of nought.
    assert_eq!(value(&found, "seqwrite", "bytes_per_second"), Some(361.199294090271 * 1e6));
    assert_eq!(value(&found, "randwrite", "operations_per_second"), Some(6420.052665));
    assert_eq!(value(&found, "smalltree_rm", "time_ns"), Some(786e6));
    assert_eq!(value(&found, "snapshot_create", "time_ns"), None);
    let aging = found.measures.iter().filter(|one| one.phase == "aging" && one.metric == "time_ns").count();
    assert_eq!(aging, 100);
    assert_eq!(found.facts["kernel"], "7.0.0-1007-azure");
    assert_eq!(found.facts["nearfull95_pct"], "97");
}

#[test]
fn files_of_a_label_are_rounds_only_if_somebody_says_so() {
    let files = || ["a", "b", "a", "b"].map(|label| File { label, name: "f", text: BONNIE_LONG, round: None });
    let rounds = |rounds: bool| -> Vec<u32> {
        let records = records(&files(), ImportOptions { from: None, rounds }).unwrap();
        records.iter().filter_map(|one| if let Record::Begin(begin) = one { Some(begin.round) } else { None }).collect()
    };
    assert_eq!((rounds(false), rounds(true)), (vec![1, 1], vec![1, 1, 2, 2]));
}

#[test]
fn a_test_of_phoronix_has_a_phase_for_each_of_its_units() {
    let result = |scale: &str, value: &str| {
        format!(
            "<Result><Title>FIO</Title><Description>Read</Description><Scale>{scale}</Scale><Proportion>HIB</Proportion>\
             <Data><Entry><Identifier>A</Identifier><Value>{value}</Value></Entry></Data></Result>"
        )
    };
    let all = [result("GiB/s", "2"), result("IOPS", "4")].concat();
    let found = figures("phoronix", &format!("<PhoronixTestSuite>{all}</PhoronixTestSuite>"));
    let times: Vec<(&str, f64)> = found
        .measures
        .iter()
        .filter(|one| one.metric == "time_ns")
        .map(|one| (one.phase.as_str(), one.value))
        .collect();
    assert_eq!(times, [("Read, GiB/s", 5e8), ("Read, IOPS", 2.5e11)]);
}

/// What is not known here is refused: one GiB/s is no operation a second.
#[test]
fn rates_of_bytes_are_no_operations() {
    let text = |unit: &str| format!("round,target,phase,value,unit\n1,a,read,2,{unit}\n");
    for (unit, bytes) in [("B/s", 2.0), ("KiB/s", 2048.0), ("GiB/s", 2147483648.0), ("TB/s", 2e12)] {
        let found = figures("csv", &text(unit));
        let rate = found.measures.iter().find(|one| one.metric == "bytes_per_second").map(|one| one.value);
        assert_eq!(rate, Some(bytes), "{unit}");
    }
    for unit in ["Mbit/s", "gb/s", "PiB/s", "Bytes/s"] {
        let refused = super::csv::Csv.read(&text(unit)).map(drop).expect_err(unit).to_string();
        assert!(refused.contains("has the unit"), "{unit}: {refused}");
    }
}

#[test]
fn a_composite_of_phoronix_is_read_by_its_scales() {
    let entry = |name: &str, raw: &str| {
        format!("<Entry><Identifier>{name}</Identifier><Value>1</Value><RawString>{raw}</RawString></Entry>")
    };
    let result = |scale: &str, proportion: &str| {
        let data = entry("A &amp; B", "2:4:x") + &entry("C", "");
        format!(
            "<Result><Identifier>pts/fio-2.2.0</Identifier><Title>FIO</Title><Description>{scale}</Description>\
             <Scale>{scale}</Scale><Proportion>{proportion}</Proportion><Data>{data}</Data></Result>"
        )
    };
    let all =
        [("Seconds", "LIB"), ("MB/s", "HIB"), ("TPS", "HIB"), ("Score", "HIB")].map(|(s, p)| result(s, p)).concat();
    let found = figures("phoronix", &format!("<PhoronixTestSuite>{all}</PhoronixTestSuite>"));
    let values = |phase: &str, metric: &str| -> Vec<f64> {
        found.measures.iter().filter(|one| one.phase == phase && one.metric == metric).map(|one| one.value).collect()
    };
    assert_eq!(values("Seconds", "time_ns"), [2e9, 4e9, 1e9]);
    assert_eq!(values("MB/s", "bytes_per_second"), [2e6, 4e6, 1e6]);
    assert_eq!(values("TPS", "time_ns"), [5e11, 2.5e11, 1e12]);
    assert_eq!(found.measures[0].target.as_deref(), Some("A & B"));
    assert_eq!(found.doubts.len(), 3, "{:?}", found.doubts);
    // A doubt makes no target and no work.
    let text = format!("<PhoronixTestSuite>{all}</PhoronixTestSuite>");
    let file = File { label: "composite", name: "composite.xml", text: &text, round: None };
    let records = records(&[file], ImportOptions::default()).unwrap();
    let Some(Record::Run(run)) = records.first() else { panic!("no run") };
    let targets: Vec<&str> = run.plan.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!((targets, run.plan.works.len()), (vec!["A & B", "C"], 1));
    let flag = |one: &Record| if let Record::Flag(flag) = one { Some(flag.cell.clone()) } else { None };
    let cells: Vec<String> = records.iter().filter_map(flag).collect();
    assert!(cells.len() == 3 && cells.iter().filter(|cell| cell.is_empty()).count() == 1, "{cells:?}");
}

#[test]
fn nonsense_is_refused_and_never_a_panic() {
    let hostile = [
        "",
        "{",
        "{}",
        "[[[[[[",
        "\u{0}\u{1b}[31m",
        "{\"results\":[{\"command\":\"\\ud800\",\"mean\":1}]}",
        "{\"results\":[{\"command\":\"x\",\"mean\":1e999}]}",
        "{\"results\":[{\"command\":\"x\",\"mean\":NaN}]}",
        "{\"results\":[{\"command\":\"x\",\"mean\":1,\"times\":[1,2],\"pickfs\":{\"rounds\":[1]}}]}",
        "{\"fio version\":\"x\",\"jobs\":[]}",
        "{\"schema\":99,\"cells\":[]}",
        "<PhoronixTestSuite><Result></PhoronixTestSuite>",
        "<PhoronixTestSuite><Entry/><Entry><Value>1</Value></Entry></PhoronixTestSuite>",
        "1.98,",
        "tps = ",
        "0 1 x 0 1700000000 100",
    ];
    for importer in ALL {
        for text in hostile {
            if let Ok(Contents::Figures(figures)) = importer.read(text) {
                assert!(figures.measures.is_empty(), "{} read {text}", importer.name());
            }
        }
        let deep = "<Result>".repeat(100_000) + &"{\"jobs\":[".repeat(100_000);
        assert!(importer.read(&deep).is_err(), "{}", importer.name());
    }
}

#[test]
fn a_plain_table_has_its_rounds() {
    let found = figures("csv", TABLE);
    let of = |one: &Measure| (one.round, one.target.clone().unwrap_or_default(), one.metric.clone(), one.value);
    let time = |round, target: &str, value| (Some(round), target.to_string(), "time_ns".to_string(), value);
    let rate = (Some(1), "b".to_string(), "operations_per_second".to_string(), 500.0);
    let wanted = [time(1, "a", 2e9), time(1, "b", 2e9), rate, time(2, "a", 2.5e9)];
    assert_eq!(found.measures.iter().map(of).collect::<Vec<_>>(), wanted);
}

/// All of them at once.
#[test]
fn lines_of_a_table_that_cannot_be_read_are_named() {
    let lines = ["1,a,read,2", "0,a,read,2,s", "1,a,read,fast,s", "1,a,read,2,miles", "1,,read,2,s"];
    let text = ["round,target,phase,value,unit", &lines.join("\n")].join("\n");
    let error = find("csv").unwrap().read(&text).err().expect("an error").to_string();
    let parts =
        ["line 2 has 4 fields", "line 3 has no round", "line 4 has no value", "line 5 has the unit", "line 6 names no"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}
