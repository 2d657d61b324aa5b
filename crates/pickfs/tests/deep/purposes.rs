//! Words of `pickfs for`, in a short form, measure to an answer.

use crate::common::{Lab, not_run, unable};
use pickfs_system::need;
use pickfs_target::workload;
use toml::{Table, Value};

/// Settings that make a work short, by the names of workloads.
const SHORT: &[(&str, &str)] = &[
    ("check", "files = 20\nbytes = '1MiB'"),
    ("containers", "files = 20\nbytes = '1MiB'\ncontainers = 2\nchanges = 10"),
    ("io", "size = '8MiB'\noperations = 200"),
    ("pgbench", "clients = [2]\ntime = '1s'"),
    ("rocksdb", "keys = 5000\nsyncs = 50"),
    ("small-files", "files = 64\nlarge = '1MiB'\ncharacters = '1MiB'\nseeks = 16\nsyncs = 16\ntime = '1ms'"),
    ("snapshots", "files = 20\nbytes = '1MiB'\nsnapshots = 2\nchanges = 10"),
    ("sqlite", "transactions = 20\nrows = 500\nselects = 50"),
    ("sysbench", "clients = [2]\ntime = '1s'\ntables = 1\nrows = 1000"),
    ("vm-image", "size = '96MiB'\ndatabase = '16MiB'\nwrites = 50\nfiles = 20\nbytes = '1MiB'"),
    ("tree", "files = 20\nbytes = '1MiB'"),
];

/// Words of one work, of several and of a server: their plans come to an answer.
const MEASURED: &[&str] = &["build", "postgres", "web"];
/// Words that have all other workloads between them; of the rest `getting_started.rs` has the plans
/// checked.
const MORE: &[&str] = &["big-folder", "containers", "key-value", "media", "mysql", "snapshots", "sqlite", "vm-images"];

fn shortened(work: &mut Value) {
    let work = work.as_table_mut().unwrap();
    let name = work["workload"].as_str().unwrap();
    let Some((_, settings)) = SHORT.iter().find(|(short, _)| *short == name) else { return };
    let settings: Table = settings.parse().unwrap();
    if settings.contains_key("bytes") {
        work.remove("scale");
    }
    work.extend(settings);
}

/// The plan of a word, on two file systems that this machine can make.
fn short_plan(lab: &Lab, word: &str) -> (String, Vec<String>) {
    let said = lab.run(&["for", word, "--memory", "--rounds", "3", "--plan"]).code(0).out;
    let mut plan: Table = said.parse().unwrap();
    plan.insert("duplicate".into(), false.into());
    // The budget of the word.
    plan["backing"] = Value::Table("memory = '700MiB'".parse().unwrap());
    plan["stop"] = Value::Table("rounds = 3".parse().unwrap());
    let targets = plan["target"].as_array_mut().unwrap();
    targets.retain(|target| unable(&[target["fs"].as_str().unwrap()]).is_none());
    targets.truncate(2);
    let left = targets.len();
    let works = plan["work"].as_array_mut().unwrap();
    works.iter_mut().for_each(shortened);
    let needs = works.iter().filter_map(|work| workload::find(work["workload"].as_str()?));
    let needs: Vec<_> = needs.flat_map(|workload| workload.needs(&Default::default())).collect();
    let mut missing: Vec<String> = need::missing(&needs).iter().map(ToString::to_string).collect();
    missing.extend((left < 2).then(|| format!("{left} of its file systems can be made here")));
    (plan.to_string(), missing)
}

#[test]
fn words_come_to_an_answer() {
    measure(MEASURED, 2);
}

#[test]
#[ignore = "seven plans of three rounds, minutes: make test-all"]
fn more_words_come_to_an_answer() {
    measure(MORE, 4);
}

/// At least this many of the words, as programs may be missing.
fn measure(words: &[&str], least: usize) {
    if not_run(unable(&["ext4", "btrfs"])) {
        return;
    }
    let mut measured = 0;
    for word in words {
        let lab = Lab::new();
        let (plan, missing) = short_plan(&lab, word);
        if !missing.is_empty() {
            println!("{word} is not measured here: {}", missing.join("; "));
            continue;
        }
        let said = lab.run_plan(&plan);
        assert_eq!(said.code, Some(0), "{word}: {plan}\n{}\n{}", said.out, said.err);
        let first = said.out.split("\n\n").nth(1).unwrap_or_default();
        println!("{word}: {}", first.replace('\n', " "));
        let is_answer = ["Pick ", "No single winner", "Too close to call"].iter().any(|begin| first.starts_with(begin));
        assert!(is_answer, "{word}: {}", said.out);
        lab.assert_nothing_left();
        measured += 1;
    }
    assert!(measured >= least, "only {measured} words were measured");
}
