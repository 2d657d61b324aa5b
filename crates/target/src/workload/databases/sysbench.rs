//! A MariaDB server under sysbench's OLTP tests: the transactions that most comparisons of InnoDB are made of.
//!
//! Every transaction waits until its log record is on the disk (`innodb_flush_log_at_trx_commit=1`), and pages are
//! written twice, as the server does by itself. As under `pgbench` the data are warm, and what a phase left unwritten is
//! written by a checkpoint inside the phase and outside of the time that it is judged by.

use super::clients::{name_of, to_clients};
use super::mariadb::{self, ADMINISTRATOR, DATABASE, MariaDb, OURS};
use crate::stack::{Argv, argv};
use crate::stage::phase::*;
use crate::stage::{Latencies, Program, Stage, Timed};
use crate::workload::settings::{Count, Counts, Duration, Texts, choice, settings};
use crate::workload::{Description, Workload};
use anyhow::{Context, Result, ensure};
use pickfs_core::metric::Combine;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;

pub(crate) struct Sysbench;

choice! {
    /// What a transaction does.
    Test {
        ReadWrite = "read-write",
        WriteOnly = "write-only",
        UpdateIndex = "update-index",
        Insert = "insert",
    }
}

impl Test {
    fn script(self) -> &'static str {
        match self {
            Test::ReadWrite => "oltp_read_write",
            Test::WriteOnly => "oltp_write_only",
            Test::UpdateIndex => "oltp_update_index",
            Test::Insert => "oltp_insert",
        }
    }

    /// The server's counter that a transaction raises by one: those of a single statement commit by themselves.
    fn counter(self) -> &'static str {
        match self {
            Test::ReadWrite | Test::WriteOnly => "Com_commit",
            Test::UpdateIndex => "Com_update",
            Test::Insert => "Com_insert",
        }
    }
}

settings! {
    Load {
        clients: Counts = "[8, 64]", "how many clients at once; a phase for each number";
        time: Duration = "60s", "how long the clients of a phase work, in whole seconds";
        test: Test = "read-write", "sysbench's test: 14 reads and 4 writes a transaction, the writes alone, or one of them";
        tables: Count = "10", "number of tables";
        rows: Count = "100000", "rows of each table (about 25 MB for 100,000)";
        server: Texts = "[]", "settings of the server, such as \"innodb_buffer_pool_size=1G\"; by default its own";
    }
}

const DESCRIPTION: Description = Description {
    name: "sysbench",
    about: "MariaDB (MySQL) under sysbench's OLTP tests: transactions of many clients, each durable before the next",
    settings: Load::ROWS,
    main_setting: "clients",
    choose_programs: &["server"],
    judged: (Combine::GeometricMean, "1000 transactions"),
    seconds: 80,
    ..Description::EMPTY
};

/// What times and counts are given for.
const SHOWN_FOR: f64 = 1000.0;
/// A row with its index, as InnoDB stores it after some updates.
const BYTES_OF_ROW: u64 = 400;
/// An empty server: its log, its own tables, the least files for undoing and for temporary tables.
const BYTES_OF_SERVER: u64 = 256 << 20;
/// Connections for ourselves.
const MORE_CONNECTIONS: u64 = 10;

impl Workload for Sysbench {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let make = Phase::new("install", "make a server's own tables, until durable", Fresh, AllData, Durable);
        let load = Phase::new("load", "sysbench prepare and a checkpoint, until durable", Warm, AllData, Durable);
        let run =
            Phase::new("", "sysbench with this many clients, warm; time of 1000 transactions", Warm, AllData, Durable);
        let runs = Load::of(settings).clients.into_iter();
        let runs = runs.map(|clients| Phase { name: name_of(clients).into(), ..run.clone() });
        [make.only_shown(), load.only_shown()].into_iter().chain(runs).collect()
    }

    fn needs(&self, _settings: &Settings) -> Vec<Need> {
        let mut needs = mariadb::needs();
        needs.push(Need::Program { name: "sysbench", package: "sysbench" });
        needs
    }

    fn versions(&self, _settings: &Settings) -> Vec<(&'static str, Argv)> {
        ["mariadbd", "sysbench"].map(|name| (name, argv([name, "--version"]))).into()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let load = Load::of(settings);
        let to_server = load.server.iter().filter_map(|setting| to_server(setting));
        [to_clients(&load.clients, "[8, 64]"), to_time(&load)].into_iter().flatten().chain(to_server).collect()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let load = Load::of(settings);
        Some(BYTES_OF_SERVER + load.tables.saturating_mul(load.rows).saturating_mul(BYTES_OF_ROW))
    }

    /// Loading, and a time for each number of clients.
    fn seconds(&self, settings: &Settings) -> u64 {
        let load = Load::of(settings);
        DESCRIPTION.seconds.saturating_add(load.time.as_secs().saturating_mul(load.clients.len() as u64))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let mut server = MariaDb::new(stage)?;
        let played = play(stage, &Load::of(settings), &mut server);
        server.end(played)
    }
}

fn play(stage: &mut Stage, load: &Load, server: &mut MariaDb) -> Result<()> {
    stage.phase("install", |p| p.run(&server.install()))?;
    let most = load.clients.iter().copied().max().unwrap_or(1);
    server.start(stage, most + MORE_CONNECTIONS, &load.server)?;
    server.tell_settings(stage)?;
    stage.fact("server weakened by", &weakening(&load.server).unwrap_or("nothing".into()));
    server.ask(stage, &format!("CREATE DATABASE {DATABASE}"))?;
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64).min(load.tables.max(1));
    stage.phase("load", |p| {
        p.run(&client(server, load, &[&format!("--threads={threads}"), "prepare"]))?;
        p.run(&checkpoint(server))
    })?;
    all_rows(stage, load, server, 0)?;
    for &clients in &load.clients {
        one_run(stage, load, server, clients).with_context(|| format!("with {clients} clients"))?;
    }
    Ok(())
}

fn one_run(stage: &mut Stage, load: &Load, server: &mut MariaDb, clients: u64) -> Result<()> {
    // No phase inherits the work of the one before.
    stage.run(&checkpoint(server))?;
    let before = server.counter(stage, load.test.counter())?;
    let (threads, time) = (format!("--threads={clients}"), format!("--time={}", load.time.as_secs()));
    let words = [&threads, &time, "--events=0", "--histogram=on", "--rand-seed=1", "run"];
    let program = client(server, load, &words);
    let play = |p: &mut Timed| {
        let printed = p.output(&program)?;
        server.check()?;
        p.run(&checkpoint(server)).map(|()| printed)
    };
    let done = stage.phase_then(&name_of(clients), play, |p, printed| {
        let report = Report::of(&printed.text(p)?)?;
        report.tell(p);
        p.latencies("latency", report.latencies);
        Ok(report.transactions)
    })?;
    let counted = server.counter(stage, load.test.counter())? - before;
    ensure!(counted == done, "sysbench did {done} transactions, and the server counted {counted}");
    all_rows(stage, load, server, done)
}

/// The tests put back each row that they delete; one only adds, a row in each of those that were `done` last at least.
fn all_rows(stage: &mut Stage, load: &Load, server: &MariaDb, done: u64) -> Result<()> {
    let mut all = 0;
    for table in 1..=load.tables {
        let found = server.ask(stage, &format!("SELECT count(*) FROM {DATABASE}.sbtest{table}"))?;
        let found: u64 = found.trim().parse().with_context(|| format!("table {table} has no count, but {found}"))?;
        let right = found == load.rows || load.test == Test::Insert && found > load.rows;
        ensure!(right, "table {table} should have {} rows and has {found}", load.rows);
        all += found - load.rows;
    }
    let added = if load.test == Test::Insert { done } else { 0 };
    ensure!(all >= added, "{added} rows were added, and the tables have {all} more than before");
    Ok(())
}

/// All pages that are only in memory are written.
fn checkpoint(server: &MariaDb) -> Program {
    server.sql("SET GLOBAL innodb_log_checkpoint_now = ON")
}

fn client(server: &MariaDb, load: &Load, words: &[&str]) -> Program {
    let (socket, user) = (format!("--mysql-socket={}", server.socket()), format!("--mysql-user={ADMINISTRATOR}"));
    let (tables, rows) = (format!("--tables={}", load.tables), format!("--table-size={}", load.rows));
    let database = format!("--mysql-db={DATABASE}");
    let ours = [load.test.script(), "--db-driver=mysql", &socket, &user, &database, &tables, &rows];
    server.program("sysbench", &[&ours[..], words].concat())
}

/// What sysbench says of a run.
struct Report {
    transactions: u64,
    took_ns: f64,
    /// Given up by the server, as two clients waited for each other, and done again.
    deadlocks: f64,
    latencies: Latencies,
}

impl Report {
    fn of(printed: &str) -> Result<Report> {
        let after = |begin: &str| printed.lines().find_map(|line| line.trim().strip_prefix(begin)).map(str::trim);
        let number = |begin: &str| {
            let first = after(begin).and_then(|rest| rest.split_whitespace().next());
            let value = first.and_then(|first| first.trim_end_matches('s').parse::<f64>().ok());
            value.with_context(|| format!("sysbench did not print `{begin}`, but: {printed}"))
        };
        let (transactions, seconds) = (number("transactions:")?, number("total time:")?);
        ensure!(transactions > 0.0 && seconds > 0.0, "not one transaction was done; give it more time");
        let lost = number("reconnects:")?;
        ensure!(lost == 0.0, "{lost} connections to the server were lost");
        let latencies = histogram(printed, number("max:")?)?;
        let listed = latencies.count();
        ensure!(
            listed == transactions as u64,
            "sysbench lists the latencies of {listed} of {transactions} transactions"
        );
        let deadlocks = number("ignored errors:")?;
        Ok(Report { transactions: transactions as u64, took_ns: seconds * 1e9, deadlocks, latencies })
    }

    fn tell(&self, p: &mut Timed) {
        p.took(self.took_ns);
        p.done_times(self.transactions as f64 / SHOWN_FOR);
        p.say("work_transactions", self.transactions as f64);
        p.say("transactions_per_second", self.transactions as f64 / self.took_ns * 1e9);
        p.say("deadlocked_transactions", self.deadlocks);
    }
}

/// Rows of `milliseconds |stars count`, each 1.7 % above the one before; `most` is the largest latency in milliseconds.
fn histogram(printed: &str, most: f64) -> Result<Latencies> {
    let mut all = Latencies::new();
    for line in printed.lines() {
        let Some((value, rest)) = line.split_once('|') else { continue };
        let count = rest.split_whitespace().last().and_then(|count| count.parse::<u64>().ok());
        let row = value.trim().parse::<f64>().ok().zip(count);
        let (value, count) = row.with_context(|| format!("`{line}` in sysbench's histogram is no row of it"))?;
        all.record_many((value.min(most) * 1e6) as u64, count);
    }
    Ok(all)
}

fn to_time(load: &Load) -> Option<Objection> {
    let message = format!("sysbench works for whole seconds, and {} ns are none", load.time.as_nanos());
    let whole = load.time.subsec_nanos() == 0 && load.time.as_secs() > 0;
    (!whole).then(|| Objection::new("time", message, "write it in seconds, such as \"60s\""))
}

fn to_server(setting: &str) -> Option<Objection> {
    let (name, value) = split(setting);
    if name.is_empty() || setting.trim().starts_with('-') || !setting.contains('=') {
        let message = format!("`{setting}` is no setting of the server");
        let remedy = "write it as name=value, such as \"innodb_buffer_pool_size=1G\"";
        return Some(Objection::new("server", message, remedy));
    }
    if OURS.contains(&name.as_str()) {
        let message = format!("`{name}` is set by pickfs, so that server and clients meet and nothing is left behind");
        return Some(Objection::new("server", message, "leave it out"));
    }
    if name == "innodb_flush_method" && value == "nosync" {
        let message = "with nosync nothing waits for the file system, and there is nothing to compare".into();
        return Some(Objection::new("server", message, "leave it out; innodb_flush_log_at_trx_commit can be set"));
    }
    None
}

/// Name and value, spelled alike: the server takes `-` for `_`, and any case.
fn split(setting: &str) -> (String, String) {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    (name.trim().to_ascii_lowercase().replace('-', "_"), value.trim().to_ascii_lowercase())
}

/// Settings after which a crash may take more than with the defaults. All targets have the same.
fn weakening(settings: &[String]) -> Option<String> {
    let weakens = |setting: &&String| match split(setting) {
        (name, value) if name == "innodb_flush_log_at_trx_commit" => !["1", "3"].contains(&value.as_str()),
        (name, value) if name == "innodb_doublewrite" => ["0", "off", "false"].contains(&value.as_str()),
        _ => false,
    };
    let found: Vec<&str> = settings.iter().filter(weakens).map(String::as_str).collect();
    (!found.is_empty()).then(|| found.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Latency histogram (values are in milliseconds)\n\
        \x20      value  ------------- distribution ------------- count\n\
        \x20      0.654 |                                         1\n\
        \x20      2.615 |**************************************** 149\n\
        \x20    116.802 |*                                        3\n \n\
        SQL statistics:\n    transactions:                        153   (30.58 per sec.)\n\
        \x20   queries:                             3060 (611.51 per sec.)\n\
        \x20   ignored errors:                      1      (0.20 per sec.)\n\
        \x20   reconnects:                          0      (0.00 per sec.)\n\nGeneral statistics:\n\
        \x20   total time:                          5.0040s\n    total number of events:              153\n\n\
        Latency (ms):\n         min:                                    0.65\n\
        \x20        max:                                  116.42\n";

    #[test]
    fn a_report_is_read_with_every_latency() {
        let report = Report::of(PRINTED).expect("a report of sysbench 1.0.20");
        assert_eq!((report.transactions, report.took_ns, report.deadlocks), (153, 5.004e9, 1.0));
        let quantiles = [0.5, 1.0].map(|share| report.latencies.quantile(share) as f64 / 1e6);
        assert!((quantiles[0] / 2.615 - 1.0).abs() < 0.01 && (116.0..116.5).contains(&quantiles[1]), "{quantiles:?}");
        let without = |part: &str| Report::of(&PRINTED.replace(part, "")).is_err();
        assert!(without("total time:") && without("     0.654 |                                         1\n"));
        assert!(Report::of(&PRINTED.replace("reconnects:                          0", "reconnects: 2")).is_err());
    }

    #[test]
    fn settings_that_promise_less_are_named_and_those_that_promise_nothing_refused() {
        let weakened = |setting: &str| weakening(&[setting.to_string()]).is_some();
        let less = ["innodb_flush_log_at_trx_commit=2", "innodb-flush-log-at-trx-commit=0", "INNODB_DOUBLEWRITE=off"];
        assert!(less.iter().all(|setting| weakened(setting)));
        assert!(!["innodb_flush_log_at_trx_commit=1", "innodb_doublewrite=1"].iter().any(|setting| weakened(setting)));
        let refused = ["datadir=/x", "innodb_flush_method=nosync", "Skip-Networking=0", "--socket=/x", "verbose"];
        assert!(refused.iter().all(|setting| to_server(setting).is_some()));
        assert!(to_server("innodb_buffer_pool_size=1G").is_none());
    }
}
