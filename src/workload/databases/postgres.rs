//! A PostgreSQL cluster on the file system under test, for the workloads that need one: made, started, asked and stopped.

#![expect(clippy::disallowed_methods, reason = "waits until the server answers, for a limited time")]

use crate::need::{Need, find_versioned};
use crate::stack::Argv;
use crate::stage::{Program, Server, Stage};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where Debian keeps a folder for each version; its programs are not on the path.
const VERSIONS: &str = "/usr/lib/postgresql";
const PACKAGE: &str = "postgresql";
/// The name of the database's own administrator, and of the database that every cluster has.
pub const NAME: &str = "postgres";
/// Of the socket's name; nothing listens on a network.
const PORT: &str = "5432";
/// Starting is a matter of a second; stopping may have to write all that is only in memory.
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(300);
const SEEN_GONE: Duration = Duration::from_secs(1);

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
pub const OURS: &[&str] = &[
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

pub fn needs() -> Vec<Need> {
    let program = |name| Need::VersionedProgram { name, under: VERSIONS, package: PACKAGE };
    let mut needs: Vec<Need> = ["initdb", "pg_isready", "pgbench", "postgres", "psql"].map(program).into();
    needs.push(Need::Program { name: "ipcrm", package: "util-linux" });
    needs
}

/// Prints a program's version.
pub fn version_of(name: &str) -> Argv {
    vec![path_of(name), "--version".into()]
}

fn path_of(name: &str) -> String {
    find_versioned(name, Path::new(VERSIONS)).map_or(name.into(), |path| path.display().to_string())
}

pub struct Cluster {
    /// User and group that it runs as, where we are root: PostgreSQL refuses to be root.
    user: Option<(u32, u32)>,
    data: PathBuf,
    /// In memory, for the socket and for what clients write.
    desk: PathBuf,
    server: Option<Server>,
}

impl Cluster {
    /// Makes its folders; nothing is in them yet.
    pub fn new(stage: &mut Stage) -> Result<Cluster> {
        let root = rustix::process::geteuid().is_root();
        let found = if root { Some(somebody()?) } else { None };
        let user = found.map(|(_, user, group)| (user, group));
        let (data, desk) = (data(&stage.root()), stage.memory().join("postgres"));
        if let Some((name, user, group)) = found {
            let run = stage.place().name.clone();
            for path in [stage.root(), stage.memory()] {
                let (theirs, ours) = on_the_way(&path, &run);
                theirs.into_iter().try_for_each(|folder| must_pass(stage, folder, name, (user, group)))?;
                ours.into_iter().try_for_each(|folder| let_through(folder, group))?;
            }
        }
        for folder in [&data, &desk] {
            std::fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
            if let Some((user, group)) = user {
                chown(folder, Some(user), Some(group))
                    .with_context(|| format!("cannot give {} to another user", folder.display()))?;
            }
        }
        Ok(Cluster { user, data, desk, server: None })
    }

    /// A folder in memory that the cluster's programs may write to.
    pub fn desk(&self) -> &Path {
        &self.desk
    }

    /// One of PostgreSQL's programs, as the user that may run it, with nobody's own configuration.
    pub fn program(&self, name: &str, words: &[&str]) -> Program {
        let program = Program::new([&[path_of(name).as_str()], words].concat()).in_folder(&self.desk);
        let program = program.with("HOME", self.desk.display().to_string()).with("PGOPTIONS", "");
        self.user.into_iter().fold(program, |program, (user, group)| program.as_user(user, group))
    }

    /// One that connects to the server, with the words that say how put first.
    pub fn client(&self, name: &str, words: &[&str]) -> Program {
        let desk = self.desk.display().to_string();
        self.program(name, &[&["-h", &desk, "-p", PORT, "-U", NAME], words].concat())
    }

    /// Makes the cluster. Whoever reaches the socket may connect, and its folder is closed.
    pub fn initdb(&self) -> Program {
        let data = self.data.display().to_string();
        let words = ["-D", &data, "-U", NAME, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"];
        self.program("initdb", &words)
    }

    /// SQL outside of all phases; what it prints.
    pub fn ask(&self, stage: &mut Stage, sql: &str) -> Result<String> {
        stage.run(&self.sql(sql))
    }

    /// Statements one after the other, each its own transaction.
    pub fn sql(&self, sql: &str) -> Program {
        let statements = sql.split(';').map(str::trim).filter(|statement| !statement.is_empty());
        let words: Vec<&str> = statements.flat_map(|statement| ["-c", statement]).collect();
        self.client("psql", &[&["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", NAME], &words[..]].concat())
    }

    /// Starts the server with the user's own settings, and waits until it answers.
    pub fn start(&mut self, stage: &mut Stage, connections: u64, settings: &[String]) -> Result<()> {
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
        self.server = Some(stage.start(&self.program("postgres", &words))?);
        self.wait_until_ready(stage)
    }

    fn wait_until_ready(&mut self, stage: &mut Stage) -> Result<()> {
        const PAUSE: Duration = Duration::from_millis(20);
        let asks = self.client("pg_isready", &["-q", "-d", NAME]);
        for _ in 0..START.as_millis() / PAUSE.as_millis() {
            self.check()?;
            match stage.run(&asks) {
                Ok(_) => return Ok(()),
                // It was refused, not only too early, where the run is to stop.
                Err(error) if !error.to_string().contains("pg_isready") => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        let said = self.server.as_ref().map(Server::said).unwrap_or_default();
        bail!("PostgreSQL did not answer within {START:?}; it said: {said}")
    }

    /// An error with its last words if the server has ended.
    pub fn check(&mut self) -> Result<()> {
        self.server.as_mut().map_or(Ok(()), Server::check).context("the database server is gone")
    }

    /// As [`Cluster::check`], after a failure of which it may be the cause: a server that is killed closes its sockets
    /// before its end can be seen, so its clients may fail a moment earlier.
    fn check_patiently(&mut self) -> Result<()> {
        let seen_by = Instant::now() + SEEN_GONE;
        while Instant::now() < seen_by {
            self.check()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        self.check()
    }

    /// Tells of the settings in effect, as the server itself says.
    pub fn tell_settings(&self, stage: &mut Stage) -> Result<()> {
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
    pub fn end(mut self, played: Result<()>) -> Result<()> {
        let alive = if played.is_err() { self.check_patiently() } else { self.check() };
        let stopped = match (self.server.take(), &alive) {
            // Fast shutdown: clients are sent away, and all is written.
            (Some(server), Ok(())) => server.stop(Signal::INT, STOP),
            _ => Ok(()),
        };
        match (played, alive, stopped) {
            (Err(error), Err(gone), _) => Err(error.context(format!("{gone:#}"))),
            (Err(error), ..) => Err(error),
            (Ok(()), alive, stopped) => alive.and(stopped),
        }
    }
}

fn data(root: &Path) -> PathBuf {
    root.join("cluster")
}

/// Where the server notes its small segment of System V shared memory, which it leaves when it is killed.
pub fn segment_note(root: &Path) -> PathBuf {
    data(root).join("postmaster.pid")
}

/// The user that Debian's package makes, or the one that owns nothing.
fn somebody() -> Result<(&'static str, u32, u32)> {
    let all = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    let found = [NAME, "nobody"].into_iter().find_map(|name| ids(&all, name).map(|(user, group)| (name, user, group)));
    found.context(
        "there is neither a user `postgres` nor a user `nobody` to run PostgreSQL as; `adduser --system postgres`",
    )
}

fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let mut rows = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let row = rows.find(|row| row.first() == Some(&name))?;
    Some((row.get(2)?.parse().ok()?, row.get(3)?.parse().ok()?))
}

/// The folders down to `path`, itself the last: those of the user, and below them those that this run has made, from the
/// first that carries its name.
fn on_the_way<'a>(path: &'a Path, run: &str) -> (Vec<&'a Path>, Vec<&'a Path>) {
    let mut all: Vec<&Path> = path.ancestors().collect();
    all.reverse();
    let carries = |folder: &&Path| folder.file_name().is_some_and(|name| name == run);
    let first = all.iter().position(carries).unwrap_or(all.len());
    let ours = all.split_off(first);
    (all, ours)
}

/// What is not ours stays as it is. The kernel is asked, as access lists may let somebody pass.
fn must_pass(stage: &mut Stage, folder: &Path, name: &str, (user, group): (u32, u32)) -> Result<()> {
    let shown = folder.display().to_string();
    stage.run(&Program::new(["test", "-x", &shown]).in_folder("/").as_user(user, group)).map(drop).with_context(|| {
        format!(
            "PostgreSQL refuses to be root, and user {name} cannot pass {shown}: run as an ordinary user, or choose a \
             folder that {name} can reach"
        )
    })
}

/// The run's folders are closed to everybody else, and the server must pass through them to its own: its group may, and
/// still not list them.
fn let_through(folder: &Path, group: u32) -> Result<()> {
    let found = folder.metadata().with_context(|| format!("cannot look at {}", folder.display()))?;
    let open = found.mode() & 0o001 != 0 || found.gid() == group && found.mode() & 0o010 != 0;
    if !open {
        chown(folder, None, Some(group)).with_context(|| format!("cannot open {}", folder.display()))?;
        std::fs::set_permissions(folder, PermissionsExt::from_mode(found.mode() & 0o7707 | 0o010))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let passwd = "root:x:0:0:root:/:/bin/sh\npostgresql:x:1:2\npostgres:x:101:104:,,,:/var:/bin/sh\n";
        assert_eq!([ids(passwd, "postgres"), ids(passwd, "nobody")], [Some((101, 104)), None]);
    }

    #[test]
    fn only_what_the_run_made_is_opened() {
        let split = |path: &str| {
            let (theirs, ours) = on_the_way(Path::new(path), "pickfs-r");
            [theirs, ours].map(|folders| folders.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(" "))
        };
        let mounted = split("/run/pickfs-r/target/work");
        assert_eq!(mounted, ["/ /run", "/run/pickfs-r /run/pickfs-r/target /run/pickfs-r/target/work"]);
        // The mount point of a folder that was there already is the user's own.
        assert_eq!(split("/srv/data/pickfs-r"), ["/ /srv /srv/data", "/srv/data/pickfs-r"]);
        assert_eq!(split("/srv/pickfs-other"), ["/ /srv /srv/pickfs-other", ""]);
    }

    #[test]
    fn a_closed_folder_lets_one_group_through_and_an_open_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (closed, open) = (folder.path().join("closed"), folder.path().join("open"));
        for (path, mode) in [(&closed, 0o700), (&open, 0o755)] {
            std::fs::create_dir(path).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
            // Our own group: nobody else's can be given without being root.
            let_through(path, rustix::process::getegid().as_raw()).unwrap();
        }
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!([mode(&closed), mode(&open)], [0o710, 0o755]);
    }
}
