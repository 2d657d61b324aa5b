//! A PostgreSQL cluster under pgbench, its own benchmark: small transactions of many clients, like a bank's (TPC-B).
//!
//! Every transaction waits until its log record is on the disk, so what is measured is mostly how fast a file system
//! makes small appends to the write-ahead log durable, and how it copes with scattered pages being written beside them.
//! The data are warm, as after loading; what a phase did not have to write itself by its end is written by a checkpoint
//! inside the phase, so that the device's bytes are all of its bytes, and outside of the time that it is judged by.

use super::clients::{name_of, to_clients};
use super::postgres::{self, Cluster, NAME, OURS};
use crate::stack::Argv;
use crate::stack::take_down::TakeDown;
use crate::stage::phase::*;
use crate::stage::{AfterPhase, Latencies, Stage, Timed};
use crate::workload::settings::{Count, Counts, Duration, Texts, settings};
use crate::workload::{Description, Workload, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::FlagKind;
use pickfs_core::metric::Combine;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use std::path::Path;

pub(crate) struct Pgbench;

settings! {
    Load {
        clients: Counts = "[10, 100]", "how many clients at once; a phase for each number";
        time: Duration = "60s", "how long the clients of a phase work, in whole seconds";
        transactions: Count, "number of transactions of each client, instead of a time";
        scale: Count,
            "size of the database, 100,000 accounts (about 15 MiB) each; by default as many as the most clients";
        threads: Count, "threads of pgbench; by default as many as there are processors";
        server: Texts = "[]", "settings of the server, such as \"shared_buffers=1GB\"; by default its own";
    }
}

const DESCRIPTION: Description = Description {
    name: "pgbench",
    about: "PostgreSQL under pgbench: small transactions of many clients, each durable before the next",
    settings: Load::ROWS,
    main_setting: "clients",
    choose_programs: &["server"],
    judged: (Combine::GeometricMean, "1000 transactions"),
    seconds: 120,
    ..Description::EMPTY
};

/// Number of transactions that times and counts are given for.
const TOLD_FOR: f64 = 1000.0;
/// A row of every table for a hundred thousand accounts, as PostgreSQL stores them.
const BYTES_OF_SCALE: u64 = 16 << 20;
/// An empty cluster, and the least of its write-ahead log.
const BYTES_OF_CLUSTER: u64 = 128 << 20;
/// All that is loaded is written to the log too, which keeps as much as this (max_wal_size).
const MOST_LOG: u64 = 1 << 30;
/// Connections for ourselves, and for the server's own workers.
const MORE_CONNECTIONS: u64 = 10;

impl Workload for Pgbench {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let make = Phase::new("initdb", "make an empty cluster, until durable", Fresh, AllData, Durable).only_shown();
        let load = Phase::new("load", "pgbench --initialize and a checkpoint, until durable", Warm, AllData, Durable)
            .only_shown();
        let run =
            Phase::new("", "pgbench with this many clients, warm; time of 1000 transactions", Warm, AllData, Durable);
        let runs = Load::of(settings).clients.into_iter();
        [make, load]
            .into_iter()
            .chain(runs.map(|clients| Phase { name: name_of(clients).into(), ..run.clone() }))
            .collect()
    }

    fn needs(&self, _settings: &Settings) -> Vec<Need> {
        postgres::needs()
    }

    fn versions(&self, _settings: &Settings) -> Vec<(&'static str, Argv)> {
        ["postgres", "pgbench"].map(|name| (name, postgres::version_of(name))).into()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let load = Load::of(settings);
        let all = [to_clients(&load.clients, "[10, 100]"), to_time(&load)];
        let to_server = load.server.iter().filter_map(|setting| to_server(setting));
        all.into_iter().flatten().chain(to_server).collect()
    }

    fn take_down(&self) -> Option<&'static TakeDown> {
        Some(&postgres::SEGMENT)
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let loaded = Load::of(settings).scale().saturating_mul(BYTES_OF_SCALE);
        Some(BYTES_OF_CLUSTER.saturating_add(loaded).saturating_add(loaded.min(MOST_LOG)))
    }

    /// Loading, and a time for each number of clients.
    fn seconds(&self, settings: &Settings) -> u64 {
        let load = Load::of(settings);
        DESCRIPTION.seconds.saturating_add(load.time.as_secs().saturating_mul(load.clients.len() as u64))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let mut cluster = Cluster::new(stage)?;
        let played = play(stage, &Load::of(settings), &mut cluster);
        cluster.end(played)
    }
}

fn play(stage: &mut Stage, load: &Load, cluster: &mut Cluster) -> Result<()> {
    stage.phase("initdb", |p| p.run(&cluster.initdb()))?;
    cluster.start(stage, load.most_clients() + MORE_CONNECTIONS, &load.server)?;
    cluster.tell_settings(stage)?;
    stage.fact("server weakened by", &weakening(&load.server).unwrap_or("nothing".into()));
    let scale = load.scale();
    stage.phase("load", |p| {
        p.run(&cluster.client("pgbench", &["--initialize", "--quiet", "--scale", &scale.to_string(), NAME]))?;
        p.run(&cluster.sql("CHECKPOINT"))
    })?;
    let accounts = cluster.ask(stage, "SELECT count(*) FROM pgbench_accounts")?;
    ensure!(accounts.trim() == (scale * 100_000).to_string(), "{} accounts were loaded", accounts.trim());
    for &clients in &load.clients {
        one_run(stage, load, cluster, clients).with_context(|| format!("with {clients} clients"))?;
    }
    Ok(())
}

fn one_run(stage: &mut Stage, load: &Load, cluster: &mut Cluster, clients: u64) -> Result<()> {
    // No phase inherits the work of the one before: dead rows, a long history, pages not written yet.
    cluster.ask(stage, "TRUNCATE pgbench_history; VACUUM ANALYZE; CHECKPOINT")?;
    let prefix = text(&cluster.desk().join("transaction"));
    let program = cluster.client("pgbench", &words(load, clients, &prefix).each_ref().map(String::as_str));
    let desk = cluster.desk().to_path_buf();
    let play = |p: &mut Timed| {
        let printed = p.output(&program)?;
        cluster.check()?;
        p.run(&cluster.sql("CHECKPOINT")).map(|()| printed)
    };
    let done = stage.phase_then(&name_of(clients), play, |p, printed| {
        let report = Report::of(&printed.text(p)?)?;
        let done = report.transactions;
        report.tell(p);
        tell_latencies(p, &desk, done).map(|()| done)
    })?;
    if let Some(why) = waiting(load.scale(), clients) {
        stage.flag(&name_of(clients), FlagKind::ClientsWait, why);
    }
    let balanced = "SELECT (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(tbalance) FROM pgbench_tellers)";
    let found = cluster.ask(stage, &format!("SELECT count(*) FROM pgbench_history; {balanced}"))?;
    let wanted = format!("{done}\nt");
    ensure!(found.trim() == wanted, "{done} transactions should be in the history and balance, but found are {found}");
    Ok(())
}

/// Words of a run. The tables are vacuumed already; the seed is fixed, as far as it has an effect
/// with clients that hinder each other.
fn words(load: &Load, clients: u64, prefix: &str) -> [String; 11] {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let threads = load.threads.unwrap_or(processors).clamp(1, clients.max(1));
    let [amount, number] = match load.transactions {
        Some(count) => ["--transactions".into(), count.to_string()],
        None => ["--time".into(), load.time.as_secs().to_string()],
    };
    [
        "--no-vacuum".into(),
        "--random-seed=1".into(),
        "--log".into(),
        format!("--log-prefix={prefix}"),
        "--client".into(),
        clients.to_string(),
        "--jobs".into(),
        threads.to_string(),
        amount,
        number,
        NAME.into(),
    ]
}

/// What pgbench says of a run.
#[derive(Debug, PartialEq)]
struct Report {
    transactions: u64,
    /// Without the time that it took to connect.
    per_second: f64,
    connecting_ns: f64,
}

impl Report {
    fn of(printed: &str) -> Result<Report> {
        let after = |begin: &str| printed.lines().find_map(|line| line.trim().strip_prefix(begin)).map(str::trim);
        let first = |text: &str| text.split([' ', '/']).next().and_then(|number| number.parse::<f64>().ok());
        let number = |begin: &str| {
            after(begin).and_then(first).with_context(|| format!("pgbench did not print `{begin}`, but: {printed}"))
        };
        let failed = after("number of failed transactions:").and_then(first).unwrap_or(0.0);
        ensure!(failed == 0.0, "{failed} transactions failed");
        let transactions = number("number of transactions actually processed:")?;
        let with = |words: &str| printed.lines().find(|line| line.starts_with("tps = ") && line.contains(words));
        let rate = |line: &str| line.strip_prefix("tps = ").and_then(first);
        let without = with("without initial connection time").or_else(|| with("excluding connections"));
        let per_second =
            without.and_then(rate).with_context(|| format!("pgbench did not print tps, but: {printed}"))?;
        ensure!(transactions > 0.0 && per_second > 0.0, "not one transaction was done; give it more time");
        // Up to version 13 it printed a second rate instead, which connecting is part of.
        let included = with("including connections").and_then(rate);
        let connecting_ns = match included {
            Some(rate) => (transactions / rate - transactions / per_second) * 1e9,
            None => number("initial connection time =")? * 1e6,
        };
        Ok(Report { transactions: transactions as u64, per_second, connecting_ns: connecting_ns.max(0.0) })
    }

    /// Nanoseconds that the clients worked.
    fn took_ns(&self) -> f64 {
        self.transactions as f64 / self.per_second * 1e9
    }

    fn with_connecting(&self) -> f64 {
        self.transactions as f64 / (self.took_ns() + self.connecting_ns) * 1e9
    }

    fn tell(&self, p: &mut Timed) {
        p.took(self.took_ns());
        p.done_times(self.transactions as f64 / TOLD_FOR);
        p.say("work_transactions", self.transactions as f64);
        p.say("transactions_per_second", self.per_second);
        p.say("transactions_with_connections_per_second", self.with_connecting());
        p.say("connecting_ns", self.connecting_ns);
    }
}

/// Reading a line for each transaction takes a while.
fn tell_latencies(p: &mut AfterPhase, desk: &Path, done: u64) -> Result<()> {
    let latencies = take_logs(desk)?;
    ensure!(latencies.count() == done, "pgbench logged {} of its {done} transactions", latencies.count());
    p.latencies("latency", latencies);
    Ok(())
}

/// Every transaction of the logs that pgbench's threads wrote; they are removed.
fn take_logs(folder: &Path) -> Result<Latencies> {
    let mut all = Latencies::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("transaction.")) {
            let text = std::fs::read_to_string(&path).context("cannot read a log of pgbench")?;
            text.lines().try_for_each(|line| record(line, &mut all))?;
            std::fs::remove_file(&path)?;
        }
    }
    Ok(all)
}

/// `client number microseconds script second microsecond`.
fn record(line: &str, latencies: &mut Latencies) -> Result<()> {
    let time = line.split(' ').nth(2).and_then(|time| time.parse::<u64>().ok());
    let time = time.with_context(|| format!("`{line}` in pgbench's log is no transaction that was done"))?;
    latencies.record(time * 1000);
    Ok(())
}

impl Load {
    fn most_clients(&self) -> u64 {
        self.clients.iter().copied().max().unwrap_or(1)
    }

    fn scale(&self) -> u64 {
        self.scale.unwrap_or(self.most_clients())
    }
}

/// Each client updates one of as many branches as the scale says: with fewer than clients they wait for each other, and
/// not for the file system. On a small disk there may be no other way.
fn waiting(scale: u64, clients: u64) -> Option<String> {
    let waits = || {
        format!("with a scale of {scale}, {clients} clients wait for each other's rows, not for the file system alone")
    };
    (scale < clients).then(waits)
}

fn to_time(load: &Load) -> Option<Objection> {
    let message = format!("pgbench works for whole seconds, and {} ns are none", load.time.as_nanos());
    let whole = load.time.subsec_nanos() == 0;
    (!whole).then(|| Objection::new("time", message, "write it in seconds, such as \"60s\""))
}

fn to_server(setting: &str) -> Option<Objection> {
    let Some((name, value)) = setting.split_once('=') else {
        let message = format!("`{setting}` is no setting of the server");
        return Some(Objection::new("server", message, "write it as name=value, such as \"shared_buffers=1GB\""));
    };
    let name = name.trim().to_ascii_lowercase();
    if OURS.contains(&name.as_str()) {
        let message = format!("`{name}` is set by pickfs, so that server and clients meet and nothing is left behind");
        return Some(Objection::new("server", message, "leave it out"));
    }
    if name == "fsync" && is_off(value) {
        let message = "without fsync nothing waits for the file system, and there is nothing to compare".into();
        return Some(Objection::new("server", message, "leave it out; synchronous_commit can be set"));
    }
    None
}

/// As PostgreSQL reads it: any beginning of a word that is not another's too.
fn is_off(value: &str) -> bool {
    let value = value.trim().trim_matches('\'').to_ascii_lowercase();
    value == "0"
        || value.len() > 1 && "off".starts_with(&value)
        || !value.is_empty() && ["false", "no"].iter().any(|word| word.starts_with(&value))
}

/// Settings after which a crash may take more than with the defaults. All targets have the same.
fn weakening(settings: &[String]) -> Option<String> {
    let weakens = |setting: &&String| {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        ["synchronous_commit", "full_page_writes"].contains(&name.trim().to_ascii_lowercase().as_str()) && is_off(value)
    };
    let found: Vec<&str> = settings.iter().filter(weakens).map(String::as_str).collect();
    (!found.is_empty()).then(|| found.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(pairs: &[(&str, Value)]) -> Settings {
        Settings(pairs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect())
    }

    const PRINTED: &str = "pgbench (15.14 (Debian 15.14-0+deb12u1))\ntransaction type: <builtin: TPC-B (sort of)>\n\
        number of transactions actually processed: 4000\nnumber of failed transactions: 0 (0.000%)\n\
        latency average = 5.000 ms\ninitial connection time = 500.000 ms\n\
        tps = 2000.000000 (without initial connection time)\n";

    #[test]
    fn rates_are_told_with_and_without_connecting() {
        let report = Report::of(PRINTED).unwrap();
        assert_eq!(report, Report { transactions: 4000, per_second: 2000.0, connecting_ns: 5e8 });
        assert_eq!((report.took_ns(), report.with_connecting()), (2e9, 1600.0));
        let older = "number of transactions actually processed: 4000/4000\n\
            tps = 1600.0 (including connections establishing)\ntps = 2000.0 (excluding connections establishing)\n";
        assert_eq!(Report::of(older).unwrap(), report);
    }

    #[test]
    fn a_run_that_failed_or_says_nothing_is_no_report() {
        for (printed, cause) in [
            (PRINTED.replace("transactions: 0 (", "transactions: 3 ("), "3 transactions failed"),
            (PRINTED.replace("tps = ", "rate "), "did not print tps"),
            (PRINTED.replace("processed: 4000", "processed: 0"), "not one transaction"),
            (PRINTED.replace("initial connection time =", "it took"), "initial connection time"),
            (String::new(), "actually processed"),
        ] {
            let error = Report::of(&printed).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn every_line_of_every_log_is_a_latency() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("transaction.77", "0 1 1500 0 1700000000 100\n1 1 2500 0 1700000000 200\n");
        write("transaction.77.1", "2 1 9000 0 1700000000 100\n");
        write(".s.PGSQL.5432.lock", "77\n");
        let latencies = take_logs(folder.path()).unwrap();
        assert_eq!(latencies.count(), 3);
        assert!((8_990_000..9_010_000).contains(&latencies.quantile(1.0)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        write("transaction.78", "0 1 failed 0 1700000000 100\n");
        assert!(take_logs(folder.path()).unwrap_err().to_string().contains("no transaction"));
    }

    #[test]
    fn what_cannot_be_measured_is_objected_to() {
        let objections = |pairs: &[(&str, Value)]| {
            let all = Pgbench.objections(&settings(pairs));
            all.into_iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        let right = [("clients", json!([10, 100])), ("scale", json!(100)), ("time", json!(60_000_000_000_u64))];
        assert_eq!(objections(&right), Vec::<&str>::new());
        assert!(objections(&[("clients", json!([10, 100])), ("scale", json!(99))]).is_empty());
        assert!(waiting(99, 100).is_some() && waiting(100, 100).is_none());
        assert_eq!(objections(&[("clients", json!([10, 10]))]), ["clients"]);
        assert_eq!(objections(&[("clients", json!([0, 1]))]), ["clients"]);
        assert_eq!(objections(&[("clients", json!([]))]), ["clients"]);
        assert_eq!(objections(&[("time", json!(1_500_000_000_u64))]), ["time"]);
        for (setting, refused) in [
            ("shared_buffers=1GB", false),
            ("synchronous_commit=off", false),
            ("fsync=on", false),
            ("fsync = OFF", true),
            ("fsync=of", true),
            ("fsync='f'", true),
            ("fsync=0", true),
            ("Port=5433", true),
            ("shared_buffers", true),
        ] {
            assert_eq!(objections(&[("server", json!([setting]))]).len(), usize::from(refused), "{setting}");
        }
    }

    #[test]
    fn weaker_promises_of_the_server_are_told() {
        let weakening = |list: &[&str]| weakening(&list.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(weakening(&["shared_buffers=1GB", "synchronous_commit=on", "full_page_writes=1"]), None);
        let found = weakening(&["synchronous_commit=off", "work_mem=1MB", "full_page_writes=no"]);
        assert_eq!(found.as_deref(), Some("synchronous_commit=off full_page_writes=no"));
    }

    #[test]
    fn phases_and_size_follow_the_clients() {
        let names = |settings: &Settings| {
            Pgbench.phases(settings).into_iter().map(|phase| phase.name.into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&Settings::default()), ["initdb", "load", "clients-10", "clients-100"]);
        let few = settings(&[("clients", json!([1, 3]))]);
        assert_eq!(names(&few), ["initdb", "load", "clients-1", "clients-3"]);
        assert_eq!((Load::of(&few).scale(), Pgbench.bytes(&few)), (3, Some((128 + 48 + 48) << 20)));
        let words = words(&Load::of(&few), 1, "/p").join(" ");
        assert!(words.contains("--client 1 --jobs 1 --time 60 postgres"), "{words}");
    }

    #[test]
    fn a_machine_without_it_hears_what_to_install() {
        for need in Pgbench.needs(&Settings::default()) {
            match need {
                Need::VersionedProgram { package, .. } => assert_eq!(package, "postgresql"),
                other => assert_eq!(other, Need::Program { name: "ipcrm", package: "util-linux" }),
            }
        }
    }
}
