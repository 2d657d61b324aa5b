//! A PostgreSQL cluster on the file system under test, for the workloads that need one: made, started, asked and stopped.

use super::account;
use crate::stack::Argv;
use crate::stage::{Program, Stage};
use crate::workload::daemon::Daemon;
use anyhow::Result;
use pickfs_system::need::{Need, find_versioned};
use rustix::process::Signal;
use std::path::{Path, PathBuf};

/// Where Debian keeps a folder for each version; its programs are not on the path.
const VERSIONS: &str = "/usr/lib/postgresql";
const PACKAGE: &str = "postgresql";
/// The name of the database's own administrator, and of the database that every cluster has.
pub(crate) const NAME: &str = "postgres";
/// Of the socket's name; nothing listens on a network.
const PORT: &str = "5432";
/// In messages.
const PROGRAM: &str = "PostgreSQL";

/// Settings of the server that are recorded as facts of the cell.
const TOLD: &[&str] = &[
    "autovacuum",
    "checkpoint_timeout",
    "data_checksums",
    "dynamic_shared_memory_type",
    "fsync",
    "full_page_writes",
    "max_connections",
    "max_wal_size",
    "server_version",
    "shared_buffers",
    "synchronous_commit",
    "wal_buffers",
    "wal_compression",
    "wal_init_zero",
    "wal_level",
    "wal_recycle",
    "wal_sync_method",
];

/// What the workload sets itself, so that server and client meet and nothing is left behind.
pub(crate) const OURS: &[&str] = &[
    "config_file",
    "data_directory",
    "dynamic_shared_memory_type",
    "external_pid_file",
    "hba_file",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "max_connections",
    "port",
    "shared_memory_type",
    "unix_socket_directories",
];

pub(crate) fn needs() -> Vec<Need> {
    let program = |name| Need::VersionedProgram { name, under: VERSIONS, package: PACKAGE };
    let mut needs: Vec<Need> = ["initdb", "pg_isready", "pgbench", "postgres", "psql"].map(program).into();
    needs.push(Need::Program { name: "ipcrm", package: "util-linux" });
    needs
}

/// Prints a program's version.
pub(crate) fn version_of(name: &str) -> Argv {
    vec![path_of(name), "--version".into()]
}

fn path_of(name: &str) -> String {
    find_versioned(name, Path::new(VERSIONS)).map_or(name.into(), |path| path.display().to_string())
}

pub(crate) struct Cluster {
    /// User and group that it runs as, where we are root: PostgreSQL refuses to be root.
    user: Option<(u32, u32)>,
    data: PathBuf,
    /// In memory, for the socket and for what clients write.
    desk: PathBuf,
    daemon: Daemon,
}

impl Cluster {
    /// Makes its folders; nothing is in them yet.
    pub(crate) fn new(stage: &mut Stage) -> Result<Cluster> {
        let (data, desk) = (data(&stage.root()), stage.memory().join("postgres"));
        let user = account::lodge(stage, PROGRAM, NAME, &[&data, &desk])?;
        Ok(Cluster { user, data, desk, daemon: Daemon::new(PROGRAM) })
    }

    /// A folder in memory that the cluster's programs may write to.
    pub(crate) fn desk(&self) -> &Path {
        &self.desk
    }

    /// One of PostgreSQL's programs, as the user that may run it, with nobody's own configuration.
    pub(crate) fn program(&self, name: &str, words: &[&str]) -> Program {
        let program = Program::new([&[path_of(name).as_str()], words].concat()).in_folder(&self.desk);
        let program = program.with("HOME", self.desk.display().to_string()).with("PGOPTIONS", "");
        self.user.into_iter().fold(program, |program, (user, group)| program.for_user(user, group))
    }

    /// One that connects to the server, with the words that say how put first.
    pub(crate) fn client(&self, name: &str, words: &[&str]) -> Program {
        let desk = self.desk.display().to_string();
        self.program(name, &[&["-h", &desk, "-p", PORT, "-U", NAME], words].concat())
    }

    /// Makes the cluster. Any process that reaches the socket may connect, and its folder is
    /// closed.
    pub(crate) fn initdb(&self) -> Program {
        let data = self.data.display().to_string();
        let words = ["-D", &data, "-U", NAME, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"];
        self.program("initdb", &words)
    }

    /// SQL outside of all phases; what it prints.
    pub(crate) fn ask(&self, stage: &mut Stage, sql: &str) -> Result<String> {
        stage.run(&self.sql(sql))
    }

    /// Statements one after the other, each its own transaction.
    pub(crate) fn sql(&self, sql: &str) -> Program {
        let statements = sql.split(';').map(str::trim).filter(|statement| !statement.is_empty());
        let words: Vec<&str> = statements.flat_map(|statement| ["-c", statement]).collect();
        self.client("psql", &[&["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", NAME], &words[..]].concat())
    }

    /// Starts the server with the user's own settings, and waits until it answers.
    pub(crate) fn start(&mut self, stage: &mut Stage, connections: u64, settings: &[String]) -> Result<()> {
        let [data, desk] = [&self.data, &self.desk].map(|path| path.display().to_string());
        let connections = format!("max_connections={connections}");
        // Shared memory for parallel queries as files of the cluster: under /dev/shm a killed server would leave some.
        let ours = [
            "listen_addresses=",
            "dynamic_shared_memory_type=mmap",
            "shared_memory_type=mmap",
            "log_destination=stderr",
            "logging_collector=off",
            &connections,
        ];
        let all = settings.iter().map(String::as_str).chain(ours).flat_map(|setting| ["-c", setting]);
        let words: Vec<&str> = ["-D", &data, "-k", &desk, "-p", PORT].into_iter().chain(all).collect();
        let asks = self.client("pg_isready", &["-q", "-d", NAME]);
        self.daemon.start(stage, &self.program("postgres", &words), &asks)
    }

    /// An error with its last words if the server has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.daemon.check()
    }

    /// Reports the settings in effect, as the server has them.
    pub(crate) fn tell_settings(&self, stage: &mut Stage) -> Result<()> {
        let names: Vec<String> = TOLD.iter().map(|name| format!("'{name}'")).collect();
        let sql = format!("SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({})", names.join(", "));
        for row in self.ask(stage, &sql)?.lines() {
            if let Some((name, value)) = row.split_once('|') {
                stage.fact(&format!("server {name}"), value);
            }
        }
        Ok(())
    }

    /// Stops the server; a failure comes with what became of the server.
    pub(crate) fn end(self, played: Result<()>) -> Result<()> {
        // Fast shutdown: clients are sent away, and all is written.
        self.daemon.end(played, Signal::INT)
    }
}

fn data(root: &Path) -> PathBuf {
    root.join("cluster")
}

/// Where the server notes its small segment of System V shared memory, which it leaves when it is killed.
pub(crate) fn segment_note(root: &Path) -> PathBuf {
    data(root).join("postmaster.pid")
}
