//! A PostgreSQL cluster on the file system under test, for the workloads that need one: made, started, asked and stopped.

use super::account;
use crate::stack::take_down::{Act, Named, Removal, TakeDown, There};
use crate::stack::{Argv, argv};
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

/// The small segment of System V shared memory that a server leaves when it is killed: by it a second server would see that
/// the first still runs. Only what the noted server made itself, as the number may have been given again, and what belongs to
/// the user who wrote the note.
pub(crate) const SEGMENT: TakeDown = TakeDown {
    word: "remove_segment",
    named: Named::InNote("cluster/postmaster.pid"),
    removals: |remains| {
        let (note, owner) = remains.note;
        let Some((server, segment)) = noted_segment(note) else { return Vec::new() };
        let is_there = move |all: &str| is_made_by(all, segment, [server, owner]);
        let there = There::Listed(argv(["cat", "/proc/sysvipc/shm"]), Box::new(is_there));
        let act = Act::Run(argv(["ipcrm", "--shmem-id", &segment.to_string()]));
        vec![Removal { while_there: there, act }]
    },
};

/// Process and segment: the first line, and the last number of the seventh.
fn noted_segment(note: &str) -> Option<(u32, u32)> {
    let mut lines = note.lines();
    let server = lines.next()?.trim().parse().ok()?;
    Some((server, lines.nth(5)?.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

/// By fields 5 and 8, process and user (sysvipc(7)).
fn is_made_by(all: &str, segment: u32, [process, user]: [u32; 2]) -> bool {
    all.lines().any(|row| {
        let fields: Vec<u32> = row.split_ascii_whitespace().map(|field| field.parse().unwrap_or(u32::MAX)).collect();
        fields.len() > 7 && (fields[1], fields[4], fields[7]) == (segment, process, user)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Own;
    use pickfs_core::journal::{Scope, StepTaken};
    use pickfs_core::protocol::Link;

    #[test]
    fn a_segment_goes_with_the_server_that_made_it_and_no_other_does() {
        use std::process::{Command, Stdio};
        let made = Command::new("ipcmk").args(["-M", "4096"]).stdout(Stdio::piped()).spawn();
        let made = made.expect("ipcmk of util-linux");
        let server = made.id();
        let printed = String::from_utf8(made.wait_with_output().unwrap().stdout).unwrap();
        let segment: u32 = printed.split_whitespace().next_back().unwrap().parse().unwrap();
        let is_there = || {
            let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
            is_made_by(&all, segment, [server, rustix::process::geteuid().as_raw()])
        };
        let folder = tempfile::tempdir().unwrap();
        let cluster = folder.path().canonicalize().unwrap().join("pickfs-0123456789ab/cluster");
        std::fs::create_dir_all(&cluster).unwrap();
        // As journals have had it from the first version on.
        let undo = format!(r#"{{"remove_segment":"{}"}}"#, cluster.join("postmaster.pid").display());
        let undo = serde_json::from_str(&undo).unwrap();
        let step =
            StepTaken { scope: Scope::Run, number: 1, says: "start".into(), does: String::new(), undo: Some(undo) };
        let own = Own { run: "0123456789ab", disks: &[], take_downs: &[&SEGMENT] };
        let note = |server: u32| {
            let noted = format!("{server}\n/d\n1795253383\n5432\n/s\n\n  9775883   {segment}\nready   \n");
            std::fs::write(cluster.join("postmaster.pid"), noted).unwrap();
        };
        for (noted, stays) in [(server + 1, true), (server, false), (server, false)] {
            note(noted);
            crate::steps::undo_all(&own, std::slice::from_ref(&step), &mut Link::to_nobody()).unwrap();
            assert_eq!(is_there(), stays, "{noted}");
        }
    }
}
