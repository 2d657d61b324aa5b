//! Runs on other machines by ssh: servers of ssh on loopback, each with its own keys, configuration
//! and state folder.

use crate::common;

use crate::common::{Lab, Loop, PATIENCE, SHORT_CELLS, Said, assert_each_once, ends, long_cells, not_run, unable};
use crate::made::Made;
use pickfs_system::need::{Need, find_program};
use pickfs_system::sys::process::{Signal, Stat, all_processes, kill};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 3;

fn no_fleet() -> Option<String> {
    let program = |name, package| Need::Program { name, package };
    let needs =
        [program("sshd", "openssh-server"), program("ssh", "openssh-client"), program("ssh-keygen", "openssh-client")];
    let missing = pickfs_system::need::missing(&needs).first().map(ToString::to_string);
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

    /// Waits until a cell has ended in the journal here.
    fn await_cell(&self, run: &mut Near) {
        let begun = Instant::now();
        while ends(&std::fs::read(self.lab.journal()).unwrap_or_default()).is_empty() {
            assert!(run.goes_on(), "the run has ended");
            assert!(begun.elapsed() < PATIENCE, "no cell ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// As a network that fails: every session of a machine ends.
    fn cut(&self, machine: usize) {
        let server = self.servers[machine - 1].id() as i32;
        let sessions = all_processes().into_iter().filter_map(Stat::of).filter(|stat| stat.parent == server);
        sessions.for_each(|stat| drop(kill(stat.pid, Signal::KILL)));
    }

    /// No session and no new one, until it listens again.
    fn stop(&mut self, machine: usize) {
        // Stopped first: the sessions of a dead server have another parent, and would not be found.
        let _ = kill(self.servers[machine - 1].id() as i32, Signal::STOP);
        self.cut(machine);
        let _ = self.servers[machine - 1].kill();
        self.servers[machine - 1].wait().expect("it ends");
    }

    fn listen(&mut self, machine: usize) {
        self.servers[machine - 1] = listening(&self.lab, machine);
    }

    /// Programs that run on the far machines: runs, and agents.
    fn far_processes(&self) -> Vec<i32> {
        let far = self.lab.path("far");
        let is_far = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(&far));
        all_processes().into_iter().filter(is_far).collect()
    }

    fn agents(&self) -> Vec<i32> {
        let is_agent = |pid: &i32| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(b"agent"))
        };
        self.far_processes().into_iter().filter(is_agent).collect()
    }

    /// The journal here is the one there, whole, each cell in it once, and nothing is left.
    fn assert_whole(&self) {
        let here = std::fs::read(self.lab.journal()).unwrap();
        assert!(self.far_journals().contains(&here), "the journals differ");
        assert_each_once(&self.lab.journal(), ROUNDS);
        self.lab.assert_nothing_left();
    }
}

/// A near side, which does not outlive its test.
struct Near(Option<Child>);

impl Near {
    fn pid(&self) -> i32 {
        self.0.as_ref().expect("it has not ended").id() as i32
    }

    fn goes_on(&mut self) -> bool {
        self.0.as_mut().expect("it has not ended").try_wait().expect("it is ours").is_none()
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
        let begun = Instant::now();
        while !self.far_processes().is_empty() && begun.elapsed() < Duration::from_secs(20) {
            self.far_processes().into_iter().for_each(|pid| drop(kill(pid, Signal::TERM)));
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
    listening(lab, number)
}

/// With the configuration that is there.
fn listening(lab: &Lab, number: usize) -> Child {
    let file = lab.path(&format!("sshd-{number}"));
    let text = std::fs::read_to_string(&file).expect("the server's configuration");
    let port: u16 = text.lines().find_map(|line| line.strip_prefix("Port ")?.parse().ok()).expect("its port");
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

const RUN: [&str; 6] = ["run", "plan.toml", "--journal", "journal.jsonl", "--host", "m1"];
const AGAIN: [&str; 5] = ["run", "--resume", "journal.jsonl", "--host", "m1"];

/// A run on one machine whose first cell has ended.
fn under_way() -> (Fleet, Near) {
    let fleet = Fleet::new(1);
    fleet.lab.write_plan(&long_cells());
    let mut child = fleet.start(&RUN);
    fleet.await_cell(&mut child);
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
    let fleet = Fleet::new(1);
    fleet.lab.write_plan(SHORT_CELLS);
    // One that died at once has left an empty journal, and nothing to take up.
    let journal = fleet.lab.journal();
    std::fs::write(&journal, "").unwrap();
    let said = fleet.run(&AGAIN).code(1);
    assert!(said.err.contains("nothing had begun") && said.err.contains("without --resume"), "{}", said.err);
    std::fs::write(&journal, "").unwrap();
    let mut child = fleet.start(&RUN);
    fleet.await_cell(&mut child);
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
    fleet.lab.write_plan(&SHORT_CELLS.replace("rounds = 3", "rounds = 1"));
    let said = fleet.run(&["run", "plan.toml", "--on-each", "m1,m2"]).code(0);
    let here: Vec<_> =
        std::fs::read_dir(fleet.lab.path("pickfs-runs")).unwrap().flatten().map(|one| one.path()).collect();
    let journals = here.iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let texts: Vec<Vec<u8>> = journals.map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| fleet.far_journals().contains(text) && ends(text).len() == 1));
    // Both are this machine, which it says of itself.
    assert!(said.err.contains("no comparison over all machines") && said.err.contains("one machine"), "{}", said.err);
    // What is wrong is said there, and nothing is left here.
    fleet.lab.write_plan(&SHORT_CELLS.replace("ext4", "ext9"));
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
    fleet.lab.write_plan(&SHORT_CELLS.replace("memory = \"64MiB\"", &format!("device = {named}")));
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

/// The store is made there, with the rights of the user that logs in.
#[test]
fn journals_are_pushed_by_ssh_into_a_store_there() {
    if not_run(no_fleet()) {
        return;
    }
    let fleet = Fleet::new(1);
    std::fs::create_dir(fleet.lab.path("runs")).unwrap();
    for seed in 1..=2 {
        Made::new(&["ext4", "xfs"], &[1.0, 0.8], 4, seed).write(&fleet.lab.path(&format!("runs/{seed}.jsonl")));
    }
    std::fs::write(fleet.lab.path("runs/notes.jsonl"), "notes\n").unwrap();
    let store = format!("m1:{}", fleet.lab.path("store").display());
    let pushed = fleet.run(&["push", &store, "runs"]).code(1);
    assert_eq!(pushed.out, format!("{store}: 2 journals pushed, 1 not pushed\n"));
    assert!(pushed.err.contains("notes.jsonl: m1: refused: its first line is no `run` record"), "{}", pushed.err);
    let again = fleet.run(&["push", &store, "runs/1.jsonl"]).code(0);
    assert_eq!(again.out, format!("{store}: 0 journals pushed, 1 there already\n"));
    let full = format!("m1:{}", fleet.lab.path("runs").display());
    let refused = fleet.run(&["push", &full, "runs/1.jsonl"]).code(1);
    assert!(refused.err.contains("is no store, and it is not empty"), "{}", refused.err);
    assert_eq!(
        fleet.lab.run(&["history", "store"]).code(0).out.lines().filter(|line| line.contains("store@")).count(),
        2
    );
    let nowhere = fleet.run(&["push", "m9:store", "runs/1.jsonl"]).code(1);
    assert!(nowhere.err.contains("cannot reach m9"), "{}", nowhere.err);
}

/// What dies in a run of [`forty_runs_with_twenty_kills`].
const VICTIMS: [&str; 5] = ["near", "session", "run", "agent", "machine"];

fn strike(fleet: &mut Fleet, near: &Near, machine: usize, victim: &str) {
    let end = |pid: i32| drop(kill(pid, Signal::KILL));
    match victim {
        "near" => end(near.pid()),
        "session" => fleet.cut(machine),
        "agent" => fleet.agents().into_iter().for_each(end),
        "run" => {
            let agents = fleet.agents();
            fleet.far_processes().into_iter().filter(|pid| !agents.contains(pid)).for_each(end);
        }
        // All at once, as a machine that goes down; then it is back.
        _ => {
            fleet.stop(machine);
            fleet.far_processes().into_iter().for_each(end);
            fleet.listen(machine);
        }
    }
}

fn whole_lines(journal: &Path) -> Vec<u8> {
    let text = std::fs::read(journal).unwrap_or_default();
    text[..pickfs_core::journal::whole_lines(&text)].to_vec()
}

/// What a user does when a run did not end well.
fn finished(fleet: &Fleet, journal: &str, host: &str) -> Said {
    let anew = ["run", "plan.toml", "--journal", journal, "--host", host];
    // It had not begun there, and has left nothing to be taken up.
    if !fleet.lab.path(journal).exists() {
        return fleet.run(&anew);
    }
    let again = fleet.run(&["run", "--resume", journal, "--host", host]);
    // Its near side died before anything had begun there.
    if again.err.contains("nothing had begun") {
        return fleet.run(&anew);
    }
    again
}

/// Four machines in turn; in every other run something dies at a moment from a seed. Whatever it
/// was, a second command ends the run: each cell is in its journal once, the journal is that of its
/// machine, and nothing is left.
#[test]
#[ignore = "forty runs: make test-fleet"]
fn forty_runs_with_twenty_kills() {
    if not_run(no_fleet()) {
        return;
    }
    let runs: usize = std::env::var("PICKFS_RUNS").map_or(40, |count| count.parse().expect("a number"));
    let mut fleet = Fleet::new(4);
    fleet.lab.write_plan(SHORT_CELLS);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(21);
    for number in 0..runs {
        let (machine, journal) = (number % 4 + 1, format!("journal{number}.jsonl"));
        let host = format!("m{machine}");
        let near = fleet.start(&["run", "plan.toml", "--journal", &journal, "--host", &host]);
        let victim = VICTIMS[random.next_u64() as usize % VICTIMS.len()];
        let moment = Duration::from_millis(random.next_u64() % 4000);
        let mut before = Vec::new();
        if number % 2 == 1 {
            let begun = Instant::now();
            // Before the journal is there, there is nothing to be lost.
            while !fleet.lab.path(&journal).exists() && begun.elapsed() < Duration::from_secs(120) {
                std::thread::sleep(Duration::from_millis(20));
            }
            std::thread::sleep(moment);
            before = whole_lines(&fleet.lab.path(&journal));
            strike(&mut fleet, &near, machine, victim);
        }
        let said = near.said();
        let again = (said.code != Some(0)).then(|| finished(&fleet, &journal, &host));
        let code = again.as_ref().map(|again| again.code);
        println!(
            "run {number} on {host}: {} at {moment:?}, then {code:?}",
            if number % 2 == 1 { victim } else { "nothing" }
        );
        let errors = again.map(|again| again.err).unwrap_or_default();
        assert!(matches!(code, None | Some(Some(0 | 1))), "run {number}, {victim}: {}\n{errors}", said.err);
        assert!(fleet.lab.path(&journal).exists(), "run {number}, {victim}: {}\n{errors}", said.err);
        assert_each_once(&fleet.lab.path(&journal), ROUNDS);
        let kept = whole_lines(&fleet.lab.path(&journal)).starts_with(&before);
        assert!(kept, "run {number}, {victim}: what was here before is lost");
        let here = std::fs::read(fleet.lab.path(&journal)).unwrap();
        assert!(fleet.far_journals().contains(&here), "run {number}, {victim}: the journals differ");
        fleet.lab.assert_nothing_left();
    }
}

/// For five minutes the machine cannot be reached, while one phase runs.
#[test]
#[ignore = "six minutes of waiting: make test-fleet"]
fn a_link_that_is_cut_for_five_minutes_harms_no_run() {
    if not_run(no_fleet()) {
        return;
    }
    let mut fleet = Fleet::new(1);
    let long = "workload = \"command\"\ncommand = [\"sleep\", \"330\"]\nwrites = false";
    let plan = SHORT_CELLS.replace("workload = \"meta.ok\"", long).replace("rounds = 3", "rounds = 1\ncell = \"20m\"");
    fleet.lab.write_plan(&plan);
    let near = fleet.start(&RUN);
    let begins = |text: &[u8]| String::from_utf8_lossy(text).contains("{\"begin\":");
    let begun = Instant::now();
    while !std::fs::read(fleet.lab.journal()).is_ok_and(|text| begins(&text)) {
        assert!(begun.elapsed() < PATIENCE, "no cell begins");
        std::thread::sleep(Duration::from_millis(50));
    }
    fleet.stop(1);
    std::thread::sleep(Duration::from_secs(300));
    fleet.listen(1);
    let said = near.said().code(0);
    assert!(said.err.contains("m1: the link is lost"), "{}", said.err);
    let here = std::fs::read(fleet.lab.journal()).unwrap();
    assert!(fleet.far_journals().contains(&here), "the journals differ");
    assert_each_once(&fleet.lab.journal(), 1);
    fleet.lab.assert_nothing_left();
}
