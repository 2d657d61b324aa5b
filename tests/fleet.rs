//! Runs on other machines by ssh: servers of ssh on loopback, each with keys, configuration and state folder of its own.

mod common;

use common::{Lab, Loop, Said, not_run, unable};
use pickfs::journal::Record;
use pickfs::need::{Need, find_program};
use pickfs::sys::process::{Signal, Stat, all_processes, kill};
use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 3;

const PLAN: &str = r#"
duplicate = false
backing = { memory = "64MiB" }
[[target]]
fs = "ext4"
[[work]]
workload = "meta.ok"
[stop]
rounds = 3
"#;

fn no_fleet() -> Option<String> {
    let program = |name, package| Need::Program { name, package };
    let needs =
        [program("sshd", "openssh-server"), program("ssh", "openssh-client"), program("ssh-keygen", "openssh-client")];
    let missing = pickfs::need::missing(&needs).first().map(ToString::to_string);
    missing.or_else(|| unable(&["ext4"]))
}

/// Machines `m1`, `m2` ..., which end when it is dropped.
struct Fleet {
    lab: Lab,
    servers: Vec<Child>,
}

impl Fleet {
    fn new(machines: usize) -> Fleet {
        let lab = Lab::new();
        // Where servers of ssh separate privileges; Debian's service makes it.
        std::fs::create_dir_all("/run/sshd").expect("the folder of sshd");
        for key in ["host", "user"] {
            let path = lab.path(key).display().to_string();
            common::run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &path]);
        }
        let servers = (1..=machines).map(|number| server(&lab, number)).collect();
        Fleet { lab, servers }
    }

    fn words<'a>(&self, words: &[&'a str]) -> Vec<&'a str> {
        [words, &["--ssh-config", "ssh_config", "--far-folder"]].concat()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.lab.pickfs();
        command.args(self.words(words)).arg(self.lab.path("far")).env("TMPDIR", self.lab.path(""));
        command
    }

    fn run(&self, words: &[&str]) -> Said {
        Said::of(self.command(words).stdin(Stdio::null()).output().expect("pickfs starts"))
    }

    fn start(&self, words: &[&str]) -> Near {
        let mut command = self.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Near(Some(command.spawn().expect("pickfs starts")))
    }

    /// Bytes of the journals on the far machines.
    fn far_journals(&self) -> Vec<Vec<u8>> {
        let runs = std::fs::read_dir(self.lab.path("far/runs")).into_iter().flatten().flatten();
        runs.filter_map(|run| std::fs::read(run.path().join("journal.jsonl")).ok()).collect()
    }

    /// Waits until so many cells have ended in the journal here.
    fn await_cells(&self, cells: usize) {
        let begun = Instant::now();
        while ends(&std::fs::read(self.lab.journal()).unwrap_or_default()).len() < cells {
            assert!(begun.elapsed() < Duration::from_secs(600), "no cell ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// As a network that fails: every session of a machine ends.
    fn cut(&self, machine: usize) {
        let server = self.servers[machine - 1].id() as i32;
        let sessions = all_processes().into_iter().filter_map(Stat::of).filter(|stat| stat.parent == server);
        sessions.for_each(|stat| drop(kill(stat.pid, Signal::KILL)));
    }

    /// The journal here is the one there, whole, each cell in it once, and nothing is left.
    fn assert_whole(&self) {
        let here = std::fs::read(self.lab.journal()).unwrap();
        assert!(self.far_journals().contains(&here), "the journals differ");
        let ends = ends(&here);
        assert_eq!((ends.len(), ends.iter().collect::<BTreeSet<_>>().len()), (ROUNDS, ROUNDS), "{ends:?}");
        self.lab.assert_nothing_left();
    }
}

/// A near side, which does not outlive its test.
struct Near(Option<Child>);

impl Near {
    fn pid(&self) -> i32 {
        self.0.as_ref().expect("it has not ended").id() as i32
    }

    fn said(mut self) -> Said {
        Said::of(self.0.take().expect("it has not ended").wait_with_output().expect("it ends"))
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // After a failure: what still runs there undoes what it did, and ends.
        let far = self.lab.path("far");
        let is_far = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(&far));
        let begun = Instant::now();
        while all_processes().iter().any(is_far) && begun.elapsed() < Duration::from_secs(20) {
            all_processes().iter().filter(|pid| is_far(pid)).for_each(|pid| drop(kill(*pid, Signal::TERM)));
            std::thread::sleep(Duration::from_millis(500));
        }
        for (at, server) in self.servers.iter_mut().enumerate() {
            let sessions =
                all_processes().into_iter().filter_map(Stat::of).filter(|one| one.parent == server.id() as i32);
            sessions.for_each(|stat| drop(kill(stat.pid, Signal::KILL)));
            let _ = server.kill();
            server.wait().unwrap_or_else(|error| panic!("server {at}: {error}"));
        }
    }
}

/// Listens when it returns; its address stands in `ssh_config` of the laboratory.
fn server(lab: &Lab, number: usize) -> Child {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let (path, user) = (|name: &str| lab.path(name).display().to_string(), common::run(&["id", "-un"]));
    let state = path(&format!("m{number}-state"));
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n\
         SetEnv XDG_STATE_HOME={state}\n",
        path("host"),
        path("user.pub")
    );
    let file = lab.path(&format!("sshd-{number}"));
    std::fs::write(&file, config).expect("the server's configuration");
    let mut client = std::fs::read_to_string(lab.path("ssh_config")).unwrap_or_default();
    client += &format!(
        "Host m{number}\nHostName 127.0.0.1\nPort {port}\nUser {user}\nIdentityFile {}\nIdentitiesOnly yes\n\
         UserKnownHostsFile {}\nStrictHostKeyChecking no\nLogLevel ERROR\n",
        path("user"),
        path("known")
    );
    std::fs::write(lab.path("ssh_config"), client).expect("the client's configuration");
    let program: PathBuf = find_program("sshd").expect("it was looked for");
    let mut command = Command::new(program);
    command.args(["-D", "-e", "-f"]).arg(file).stdin(Stdio::null());
    let log = std::fs::File::create(lab.path(&format!("sshd-{number}.log"))).expect("a log");
    let server = command.stdout(Stdio::null()).stderr(log).spawn().expect("sshd starts");
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "sshd does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// Ends of cells in a journal, raw: a cell that ended twice would be seen.
fn ends(journal: &[u8]) -> Vec<String> {
    let records = journal.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    records.filter_map(|record| if let Record::End(end) = record { Some(end.cell) } else { None }).collect()
}

const RUN: [&str; 6] = ["run", "plan.toml", "--journal", "journal.jsonl", "--host", "m1"];
const AGAIN: [&str; 5] = ["run", "--resume", "journal.jsonl", "--host", "m1"];

/// A run on one machine whose first cell has begun.
fn under_way() -> (Fleet, Near) {
    let fleet = Fleet::new(1);
    fleet.lab.write_plan(PLAN);
    let child = fleet.start(&RUN);
    fleet.await_cells(1);
    (fleet, child)
}

/// The run goes on while it cannot be reached.
#[test]
fn a_run_survives_its_link() {
    if not_run(no_fleet()) {
        return;
    }
    let (fleet, child) = under_way();
    fleet.cut(1);
    let said = child.said().code(0);
    assert!(said.err.contains("m1: the link is lost"), "{}", said.err);
    assert!(said.out.contains("ext4"), "{}", said.out);
    fleet.assert_whole();
    assert!(fleet.lab.path("journal.html").exists());
    // What has ended can be asked for again: nothing changes.
    let before = std::fs::read(fleet.lab.journal()).unwrap();
    fleet.run(&AGAIN).code(0);
    assert_eq!(std::fs::read(fleet.lab.journal()).unwrap()[..before.len()], before);
}

#[test]
fn a_near_side_that_dies_is_replaced_by_another() {
    if not_run(no_fleet()) {
        return;
    }
    let (fleet, child) = under_way();
    drop(child);
    fleet.run(&AGAIN).code(0);
    fleet.assert_whole();
}

#[test]
fn ctrl_c_stops_the_far_run_and_it_is_taken_up_there() {
    if not_run(no_fleet()) {
        return;
    }
    let (fleet, child) = under_way();
    kill(child.pid(), Signal::INT).unwrap();
    let said = child.said().code(130);
    assert!(said.err.contains("m1: stopping: finishing the step"), "{}", said.err);
    fleet.lab.assert_nothing_left();
    assert!(ends(&std::fs::read(fleet.lab.journal()).unwrap()).len() < ROUNDS);
    fleet.run(&AGAIN).code(0);
    fleet.assert_whole();
}

#[test]
fn each_machine_does_the_whole_plan_and_judges_it_itself() {
    if not_run(no_fleet()) {
        return;
    }
    let fleet = Fleet::new(2);
    fleet.lab.write_plan(&PLAN.replace("rounds = 3", "rounds = 1"));
    let said = fleet.run(&["run", "plan.toml", "--on-each", "m1,m2"]).code(0);
    let here: Vec<_> =
        std::fs::read_dir(fleet.lab.path("pickfs-runs")).unwrap().flatten().map(|one| one.path()).collect();
    let journals = here.iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let texts: Vec<Vec<u8>> = journals.map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| fleet.far_journals().contains(text) && ends(text).len() == 1));
    // Both are this machine, which it says of itself.
    assert!(said.err.contains("nothing is said over all machines") && said.err.contains("one machine"), "{}", said.err);
    // What is wrong is said there, and nothing is left here.
    fleet.lab.write_plan(&PLAN.replace("ext4", "ext9"));
    let wrong = fleet.run(&RUN).code(2);
    assert!(wrong.err.contains("m1: ") && wrong.err.contains("there is no file system `ext9`"), "{}", wrong.err);
    assert!(!fleet.lab.journal().exists());
    let strange = fleet.run(&["run", "plan.toml", "--host", "m9,-oProxyCommand=x"]);
    assert!(strange.err.contains("m9: cannot reach m9"), "{}", strange.err);
    assert!(strange.code(1).err.contains("is no host"));
}

/// Options instead of a plan file, which the machine completes by what it finds there.
#[test]
fn options_stand_for_a_plan_as_they_do_here() {
    if not_run(no_fleet()) {
        return;
    }
    let fleet = Fleet::new(1);
    let options = ["--fs", "ext4", "--memory", "--size", "64MiB", "--workload", "meta.ok", "--rounds", "1"];
    let to = ["--journal", "journal.jsonl", "--host", "m1"];
    let wrong = fleet.run(&[&["run", "--fs", "ext9"][..], &to].concat()).code(2);
    assert!(wrong.err.contains("m1: ") && wrong.err.contains("there is no file system `ext9`"), "{}", wrong.err);
    let here = fleet.run(&[&["run", "--on", "here"][..], &to].concat()).code(2);
    assert!(here.err.contains("--on here is looked for on the other machine"), "{}", here.err);
    assert!(!fleet.lab.journal().exists());
    fleet.run(&[&["run"][..], &options, &to].concat()).code(0);
    let text = std::fs::read(fleet.lab.journal()).unwrap();
    assert!(fleet.far_journals().contains(&text) && ends(&text).len() == 2, "{}", String::from_utf8_lossy(&text));
    fleet.lab.assert_nothing_left();
}

/// The machine with the disk asks for its name twice, and refuses what is in use there.
#[test]
fn a_disk_is_erased_by_ssh_with_the_checks_of_its_own_machine() {
    if not_run(no_fleet()) {
        return;
    }
    let fleet = Fleet::new(1);
    let mut disk = Loop::new(64 << 20);
    common::run(&["mke2fs", "-q", "-F", "-t", "ext4", &disk.device]);
    let named = format!("{{ path = \"{}\", signatures = [\"ext4\"] }}", disk.device);
    fleet.lab.write_plan(&PLAN.replace("memory = \"64MiB\"", &format!("device = {named}")));
    let own = disk.device.clone();
    let agreed = [&RUN[..], &["--erase", &own]].concat();

    let before = std::fs::read(&disk.device).unwrap();
    let unconfirmed = fleet.run(&RUN).code(5);
    assert!(unconfirmed.err.contains(&format!("m1: refused: everything on {own}")), "{}", unconfirmed.err);
    fleet.run(&[&RUN[..], &["--erase", "another-serial"]].concat()).code(5);
    assert!(std::fs::read(&disk.device).unwrap() == before, "a refused run wrote to the disk");
    disk.mount("defaults");
    let mounted = fleet.run(&agreed).code(5);
    assert!(mounted.err.contains("m1: ") && mounted.err.contains("is mounted at"), "{}", mounted.err);
    disk.unmount();
    assert!(!fleet.lab.journal().exists(), "a refused run left a journal");

    fleet.run(&agreed).code(0);
    fleet.assert_whole();
    assert!(std::fs::read(&disk.device).unwrap() != before, "nothing was written to the disk");
}
