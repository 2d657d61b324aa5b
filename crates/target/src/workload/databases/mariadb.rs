//! A MariaDB server on the file system under test: made, started, asked and stopped. It reads no configuration of the
//! machine's, so that its settings are its own defaults and those of the plan.

use super::account;
use crate::stage::{Program, Stage};
use crate::workload::daemon::Daemon;
use anyhow::{Context, Result};
use pickfs_system::need::Need;
use rustix::process::Signal;
use std::path::PathBuf;

/// The user of Debian's package.
const ACCOUNT: &str = "mysql";
const PROGRAM: &str = "MariaDB";
/// The database's own administrator, who needs no password: the socket's folder is closed.
pub(crate) const ADMINISTRATOR: &str = "root";
pub(crate) const DATABASE: &str = "pickfs";

/// Settings of the server that are recorded as facts of the cell.
const TOLD: &[&str] = &[
    "innodb_buffer_pool_size",
    "innodb_checksum_algorithm",
    "innodb_doublewrite",
    "innodb_file_per_table",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_io_capacity",
    "innodb_log_file_size",
    "innodb_page_size",
    "innodb_use_native_aio",
    "log_bin",
    "max_connections",
    "sync_binlog",
    "version",
];

/// What the workload sets itself, so that server and client meet and nothing is left behind.
pub(crate) const OURS: &[&str] = &[
    "basedir",
    "bind_address",
    "datadir",
    "log_error",
    "max_connections",
    "pid_file",
    "port",
    "skip_networking",
    "socket",
    "tmpdir",
    "user",
];

pub(crate) const PROGRAMS: [(&str, &str); 4] = [
    ("mariadb", "mariadb-client"),
    ("mariadb-admin", "mariadb-client"),
    ("mariadb-install-db", "mariadb-server"),
    ("mariadbd", "mariadb-server"),
];

pub(crate) fn needs() -> Vec<Need> {
    PROGRAMS.map(|(name, package)| Need::Program { name, package }).into()
}

pub(crate) struct MariaDb {
    /// User and group that it runs as, where we are root: MariaDB refuses to be root.
    user: Option<(u32, u32)>,
    data: PathBuf,
    /// For files that it makes to sort; on the file system under test, like its data.
    temporary: PathBuf,
    /// In memory, for the socket.
    desk: PathBuf,
    daemon: Daemon,
}

impl MariaDb {
    /// Makes its folders; nothing is in them yet.
    pub(crate) fn new(stage: &mut Stage) -> Result<MariaDb> {
        let [data, temporary] = ["mariadb", "temporary"].map(|name| stage.root().join(name));
        let desk = stage.memory().join("mariadb");
        let user = account::lodge(stage, PROGRAM, ACCOUNT, &[&data, &temporary, &desk])?;
        Ok(MariaDb { user, data, temporary, desk, daemon: Daemon::new(PROGRAM) })
    }

    /// One of its programs, or one that connects to it, as the user that may run it.
    pub(crate) fn program(&self, name: &str, words: &[&str]) -> Program {
        let program = Program::new([&[name], words].concat()).in_folder(&self.desk);
        let program = program.with("HOME", self.desk.display().to_string());
        self.user.into_iter().fold(program, |program, (user, group)| program.for_user(user, group))
    }

    fn client(&self, name: &str, words: &[&str]) -> Program {
        let (socket, user) = (format!("--socket={}", self.socket()), format!("--user={ADMINISTRATOR}"));
        self.program(name, &[&["--no-defaults", &socket, &user], words].concat())
    }

    pub(crate) fn socket(&self) -> String {
        self.desk.join("socket").display().to_string()
    }

    /// Makes the tables of the server itself.
    pub(crate) fn install(&self) -> Program {
        let data = format!("--datadir={}", self.data.display());
        let words = ["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"];
        self.program("mariadb-install-db", &words)
    }

    /// Statements, each its own transaction; without headings.
    pub(crate) fn sql(&self, sql: &str) -> Program {
        self.client("mariadb", &["--skip-column-names", "--batch", "--execute", sql])
    }

    /// SQL outside of all phases; what it prints.
    pub(crate) fn ask(&self, stage: &mut Stage, sql: &str) -> Result<String> {
        stage.run(&self.sql(sql))
    }

    /// Starts the server with the user's own settings, and waits until it answers.
    pub(crate) fn start(&mut self, stage: &mut Stage, connections: u64, settings: &[String]) -> Result<()> {
        let desk = |name: &str| self.desk.join(name).display().to_string();
        let ours = [
            format!("--datadir={}", self.data.display()),
            format!("--tmpdir={}", self.temporary.display()),
            format!("--socket={}", self.socket()),
            format!("--pid-file={}", desk("process")),
            "--skip-networking".into(),
            format!("--max-connections={connections}"),
        ];
        let given = settings.iter().map(|setting| format!("--{setting}"));
        let words: Vec<String> = ["--no-defaults".to_string()].into_iter().chain(given).chain(ours).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let asks = self.client("mariadb-admin", &["ping"]);
        self.daemon.start(stage, &self.program("mariadbd", &words), &asks)
    }

    /// An error with its last words if the server has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.daemon.check()
    }

    /// Records the settings in effect, as the server itself says.
    pub(crate) fn tell_settings(&self, stage: &mut Stage) -> Result<()> {
        let names: Vec<String> = TOLD.iter().map(|name| format!("'{name}'")).collect();
        let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", names.join(", "));
        for row in self.ask(stage, &sql)?.lines() {
            if let Some((name, value)) = row.split_once('\t') {
                stage.fact(&format!("server {name}"), value);
            }
        }
        Ok(())
    }

    /// One of the server's counters since its start.
    pub(crate) fn counter(&self, stage: &mut Stage, name: &str) -> Result<u64> {
        let printed = self.ask(stage, &format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        let value = printed.split_whitespace().nth(1).and_then(|value| value.parse().ok());
        value.with_context(|| format!("MariaDB has no counter {name}, but: {printed}"))
    }

    /// Stops the server; a failure comes with what became of the server.
    pub(crate) fn end(self, played: Result<()>) -> Result<()> {
        self.daemon.end(played, Signal::TERM)
    }
}
