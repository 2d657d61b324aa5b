//! Runs as jobs of Slurm: a controller and two machines on loopback, Debian's own programs, begun
//! and ended by each test.

use crate::common;

use crate::common::{Lab, SHORT_CELLS, Said, assert_each_once, ends, long_cells, no_guests, not_run, unable};
use pickfs_system::need::Need;
use pickfs_system::sys::process::{Signal, all_processes, kill};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(300);

fn no_slurm() -> Option<String> {
    let program = |name, package| Need::Program { name, package };
    let needs = [program("slurmctld", "slurmctld"), program("slurmd", "slurmd"), program("sbatch", "slurm-client")];
    pickfs_system::need::missing(&needs).first().map(ToString::to_string)
}

/// A controller, and the machines `n1` and `n2`; all ends when it is dropped.
struct Cluster {
    lab: Lab,
    controller: Option<Child>,
    machines: [Option<Child>; 2],
}

impl Cluster {
    /// With further lines of slurm.conf.
    fn new(more: &str) -> Cluster {
        let cluster = Cluster::prepared(more, |_| ());
        cluster.await_line(&["sinfo", "--noheader", "--Node", "--format=%N %T"], |line| line == "n2 idle");
        cluster
    }

    /// `note` gets to know the configuration before anything starts.
    fn prepared(more: &str, note: impl Fn(&Path)) -> Cluster {
        let lab = Lab::new();
        for folder in ["state", "spool-n1", "spool-n2", "local"] {
            std::fs::create_dir(lab.path(folder)).expect("a folder");
        }
        std::fs::write(lab.path("slurm.conf"), configuration(&lab, more)).expect("a configuration");
        let mut cluster = Cluster { lab, controller: None, machines: [None, None] };
        note(&cluster.conf());
        cluster.start_controller();
        cluster.start(1);
        cluster.start(2);
        cluster
    }

    fn start_controller(&mut self) {
        self.controller = Some(self.daemon("slurmctld", &["-D"]));
        self.await_line(&["scontrol", "ping"], |line| line.contains("is UP"));
    }

    fn start(&mut self, machine: usize) {
        self.machines[machine - 1] = Some(self.daemon("slurmd", &["-D", "-N", &format!("n{machine}")]));
    }

    fn daemon(&self, name: &str, words: &[&str]) -> Child {
        let log = std::fs::File::create(self.lab.path(&format!("{name}{}.out", words.concat()))).expect("a log");
        let mut command = Command::new(name);
        command.args(words).env("SLURM_CONF", self.conf()).env("XDG_STATE_HOME", self.lab.path("state-of-jobs"));
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        started.expect("it was looked for")
    }

    fn conf(&self) -> PathBuf {
        self.lab.path("slurm.conf")
    }

    fn slurm(&self, words: &[&str]) -> Output {
        Command::new(words[0])
            .args(&words[1..])
            .env("SLURM_CONF", self.conf())
            .output()
            .expect("Slurm's program starts")
    }

    /// Until the program prints such a line.
    fn await_line(&self, words: &[&str], is_it: impl Fn(&str) -> bool) {
        self.await_that(&format!("{words:?}"), || {
            String::from_utf8_lossy(&self.slurm(words).stdout).lines().any(|line| is_it(line.trim()))
        });
    }

    fn await_that(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            let logs = ["slurmctld.log", "slurmd-n1.log", "plan.slurm/messages", "journal.slurm/messages"];
            let read = |name: &&str| std::fs::read_to_string(self.lab.path(name)).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "{what} is not so\n{}", logs.iter().map(read).collect::<String>());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.lab.pickfs();
        let local = format!("--local-folder={}", self.lab.path("local").display());
        command.args(words).args(["--slurm", &local]).env("SLURM_CONF", self.conf());
        // The jobs get it from here.
        command.env("XDG_STATE_HOME", self.lab.path("state-of-jobs")).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Said {
        Said::of(self.command(words).output().expect("pickfs starts"))
    }

    fn start_run(&self, words: &[&str]) -> Child {
        self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("pickfs starts")
    }

    /// The journal of the whole run on its machine.
    fn journal_there(&self) -> Vec<u8> {
        let runs = std::fs::read_dir(self.own()).into_iter().flatten().flatten();
        runs.filter_map(|run| std::fs::read(run.path().join("journal.jsonl")).ok()).next().unwrap_or_default()
    }

    fn own(&self) -> PathBuf {
        self.lab.path(&format!("local/pickfs-{}", common::run(&["id", "-u"])))
    }

    /// Programs of Slurm on this lab, and what they started.
    fn processes(&self, name: &str) -> Vec<i32> {
        let conf = format!("SLURM_CONF={}", self.conf().display());
        let is_ours = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == conf.as_bytes())
        };
        let named = |pid: &i32| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(name))
        };
        all_processes().into_iter().filter(|pid| is_ours(pid) && named(pid)).collect()
    }

    fn kill(&self, name: &str) {
        self.processes(name).into_iter().for_each(|pid| drop(kill(pid, Signal::KILL)));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Jobs first: what they have built they undo.
        let _ = self.slurm(&["scancel", "--batch", "--signal=TERM", "--user=root"]);
        let begun = Instant::now();
        while !self.processes("slurm-job").is_empty() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(100));
        }
        for child in self.machines.iter_mut().chain([&mut self.controller]).flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        ["slurmstepd", "slurm-job", "far"].iter().for_each(|name| self.kill(name));
    }
}

fn configuration(lab: &Lab, more: &str) -> String {
    let port = || TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().to_string();
    let at = |name: &str| lab.path(name).display().to_string();
    let machine = |name: &str| {
        format!("NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=1 RealMemory=2000\n", port())
    };
    format!(
        "ClusterName=lab\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nAuthType=auth/none\nCredType=cred/none\n\
         SlurmUser=root\nStateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\nSlurmdPidFile={}\n\
         SlurmctldLogFile={}\nSlurmdLogFile={}\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\nSwitchType=switch/none\nMpiDefault=none\nSelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\nReturnToService=2\nSlurmdParameters=config_overrides\nSlurmdTimeout=10\n\
         SchedulerParameters=batch_sched_delay=0,sched_interval=1\nSlurmctldParameters=idle_on_node_suspend\n{}{}\
         PartitionName=disks Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n{more}",
        port(),
        at("state"),
        at("spool-%n"),
        at("slurmctld.pid"),
        at("slurmd-%n.pid"),
        at("slurmctld.log"),
        at("slurmd-%n.log"),
        machine("n1"),
        machine("n2"),
    )
}

const ROUNDS: usize = 3;

const RUN: [&str; 4] = ["run", "plan.toml", "--journal", "journal.jsonl"];
const AGAIN: [&str; 3] = ["run", "--resume", "journal.jsonl"];

/// The controller goes away and comes back, the user's program dies, the job dies with all that it
/// has built: what was measured stays, on the machine that has measured it.
#[test]
fn a_whole_run_outlives_all_that_is_around_it() {
    if not_run(no_slurm().or_else(|| unable(&["ext4"]))) {
        return;
    }
    let mut cluster = Cluster::new("");
    cluster.lab.write_plan(&long_cells());
    let mut near = cluster.start_run(&RUN);
    cluster.await_that("a cell has ended", || ends(&cluster.journal_there()).len() == 1);
    near.kill().expect("it runs");
    near.wait().expect("it ends");
    let mut controller = cluster.controller.take().expect("it runs");
    controller.kill().expect("it runs");
    controller.wait().expect("it ends");
    // The kernel ends the job as it ends all others of a machine that goes down.
    cluster.kill("slurm-job");
    cluster.kill("--fetched");
    let before = cluster.journal_there();
    cluster.start_controller();
    let said = cluster.run(&AGAIN).code(0);
    assert!(said.err.contains("which has its journal"), "{}", said.err);
    let journal = std::fs::read(cluster.lab.journal()).unwrap();
    assert!(journal.starts_with(&before) && !before.is_empty() && journal == cluster.journal_there());
    assert_each_once(&cluster.lab.journal(), ROUNDS);
    cluster.lab.assert_nothing_left();
    // A new run is not taken for the old one.
    assert!(cluster.run(&RUN).code(2).err.contains("is there already"));
}

#[test]
fn a_run_that_slurm_stops_has_undone_all_and_goes_on_later() {
    if not_run(no_slurm().or_else(|| unable(&["ext4"]))) {
        return;
    }
    let cluster = Cluster::new("");
    cluster.lab.write_plan(&long_cells());
    let near = cluster.start_run(&RUN);
    cluster.await_that("a cell has ended", || ends(&cluster.journal_there()).len() == 1);
    kill(near.id() as i32, Signal::INT).expect("it runs");
    let said = Said::of(near.wait_with_output().expect("it ends")).code(130);
    assert!(said.err.contains("--slurm --resume journal.jsonl` goes on"), "{}", said.err);
    cluster.lab.assert_nothing_left();
    let stopped = ends(&std::fs::read(cluster.lab.journal()).unwrap()).len();
    assert!((1..ROUNDS).contains(&stopped), "{stopped}");
    cluster.run(&AGAIN).code(0);
    assert_each_once(&cluster.lab.journal(), ROUNDS);
    // What is wrong is said by the machine that would do it, and leaves nothing to be taken up.
    cluster.lab.write_plan(&SHORT_CELLS.replace("ext4", "ext9"));
    let wrong = cluster.run(&["run", "plan.toml", "--journal", "wrong.jsonl"]).code(2);
    assert!(wrong.err.contains("there is no file system `ext9`"), "{}", wrong.err);
    assert!(["wrong.jsonl", "wrong.slurm"].iter().all(|name| !cluster.lab.path(name).exists()));
}

/// Both machines were as fast in the past; now one of them is 8 % slower.
#[test]
fn a_machine_that_became_slower_takes_no_work() {
    if not_run(no_slurm()) {
        return;
    }
    let (lab, scontrol) = (Lab::new(), pickfs_system::need::find_program("scontrol").expect("it was looked for"));
    for machine in ["n1", "n2"] {
        std::fs::create_dir_all(lab.path(&format!("{machine}/pickfs"))).expect("a folder");
        std::fs::write(lab.path(&format!("{machine}/pickfs/gate")), "100\n101\n99\n100\n102\n").expect("a history");
    }
    let check = format!(
        "#!/bin/sh\nif [ $SLURMD_NODENAME = n2 ]; then speed=92; else speed=99; fi\n\
         why=$(XDG_STATE_HOME={lab}/$SLURMD_NODENAME {pickfs} doctor --gate --reading $speed,0) || \
         SLURM_CONF=$(cat {lab}/conf) {scontrol} update NodeName=$SLURMD_NODENAME State=DRAIN Reason=\"$why\"\n",
        lab = lab.path("").display(),
        pickfs = env!("CARGO_BIN_EXE_pickfs"),
        scontrol = scontrol.display()
    );
    let program = lab.path("check");
    std::fs::write(&program, check).expect("a program");
    common::run(&["chmod", "755", &program.display().to_string()]);
    let cluster = Cluster::prepared(
        &format!("HealthCheckProgram={}\nHealthCheckInterval=60\nHealthCheckNodeState=ANY\n", program.display()),
        |conf| std::fs::write(lab.path("conf"), conf.display().to_string()).expect("a note"),
    );
    let states = ["sinfo", "--noheader", "--Node", "--format=%N %T %E"];
    cluster.await_line(&states, |line| line.starts_with("n2 drained unfit: 8.0 % slower than the median of 5"));
    cluster.await_line(&states, |line| line == "n1 idle none");
    let refused = cluster.slurm(&["sbatch", "--nodelist=n2", "--immediate", "--wrap=true"]);
    assert!(!refused.status.success(), "{refused:?}");
}

const SIMULATED: &str = "executor = \"sim\"\nseed = 7\nduplicate = false\nother_speeds = false\nmachine = { disk = \"nvme\" }\n\
                         backing = { memory = \"512MiB\" }\ntarget = [{ fs = \"ext4\" }, { fs = \"xfs\" }]\n\
                         work = [{ workload = \"meta.ok\" }]\nstop = { rounds = ROUNDS }\n";

/// What the journal says of cells, line by line; what machines say of themselves and of their time
/// is left out.
fn of_cells(journal: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(journal).expect("a journal");
    let of_cell = |line: &&str| line.contains("\"cell\":\"") && !line.contains("\"cell\":\"\"");
    text.lines().filter(of_cell).map(String::from).collect()
}

/// One machine's journal of a plan is that of two machines.
#[track_caller]
fn assert_same_as_here(cluster: &Cluster) {
    let (there, here) = (of_cells(&cluster.lab.journal()), cluster.lab.path("here.jsonl"));
    cluster.lab.run(&["run", "plan.toml", "--journal", "here.jsonl"]).code(0);
    let here = of_cells(&here);
    assert!(there.len() > 100, "{} records", there.len());
    for (number, (one, other)) in there.iter().zip(&here).enumerate() {
        assert_eq!(one, other, "record {number}");
    }
    assert_eq!(there.len(), here.len());
}

#[test]
#[ignore = "four guests: make test-fleet"]
fn cells_of_a_simulation_are_the_same_on_many_machines() {
    if not_run(no_slurm().or_else(no_guests)) {
        return;
    }
    let cluster = Cluster::new("");
    cluster.lab.write_plan(&SIMULATED.replace("ROUNDS", "1"));
    let said = cluster.run(&RUN).code(0);
    assert!(said.err.contains("job 1: 2 cells"), "{}", said.err);
    assert_each_once(&cluster.lab.journal(), 2);
    assert_same_as_here(&cluster);
    cluster.lab.assert_nothing_left();
    // What has ended is taken up without another job.
    let again = cluster.run(&AGAIN).code(0);
    assert!(!again.err.contains("job "), "{}", again.err);
}

#[test]
fn elements_that_are_held_are_told_with_what_lets_them_go_on() {
    if not_run(no_slurm().or_else(no_guests)) {
        return;
    }
    let cluster = Cluster::new("");
    cluster.lab.write_plan(&SIMULATED.replace("ROUNDS", "1"));
    let mut near = cluster.start_run(&[&RUN[..], &["--sbatch=--hold"]].concat());
    let mut lines = BufReader::new(near.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let held = "elements of job 1 are held (JobHeldUser): `scontrol release 1` lets them go on";
    assert!(lines.any(|line| line.contains(held)), "nothing is said of held elements");
    // It asks every two seconds, and says it once.
    std::thread::sleep(Duration::from_secs(6));
    kill(near.id() as i32, Signal::INT).expect("it runs");
    let rest: Vec<String> = lines.collect();
    assert_eq!(near.wait().expect("it ends").code(), Some(130), "{rest:#?}");
    assert!(!rest.iter().any(|line| line.contains(held)), "{rest:#?}");
    cluster.lab.assert_nothing_left();
}

/// Whatever dies meanwhile.
#[test]
#[ignore = "a hundred cells in guests, an hour: make test-fleet"]
fn a_hundred_cells_over_two_machines_are_those_of_one() {
    if not_run(no_slurm().or_else(no_guests)) {
        return;
    }
    let rounds = std::env::var("PICKFS_ROUNDS").unwrap_or("50".into());
    let (cells, before) = (2 * rounds.parse::<usize>().expect("a number"), disks_in_memory());
    let mut cluster = Cluster::new("");
    cluster.lab.write_plan(&SIMULATED.replace("ROUNDS", &rounds));
    let brought = |cluster: &Cluster| {
        let files = std::fs::read_dir(cluster.lab.path("journal.slurm")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|end| end == "jsonl")).count()
    };
    let mut near = cluster.start_run(&RUN);
    cluster.await_long("a tenth", || brought(&cluster) >= cells / 10);
    let mut controller = cluster.controller.take().expect("it runs");
    controller.kill().expect("it runs");
    controller.wait().expect("it ends");
    // What is under way ends without it; there may be nothing under way.
    std::thread::sleep(Duration::from_secs(20));
    cluster.start_controller();
    cluster.release();
    cluster.await_long("a quarter", || brought(&cluster) >= cells / 4);
    near.kill().expect("it runs");
    near.wait().expect("it ends");
    cluster.kill("far");
    cluster.kill("slurm-job");
    let mut machine = cluster.machines[0].take().expect("it runs");
    machine.kill().expect("it runs");
    machine.wait().expect("it ends");
    std::thread::sleep(Duration::from_secs(15));
    cluster.start(1);
    cluster.release();
    cluster.run(&AGAIN).code(0);
    assert_each_once(&cluster.lab.journal(), cells);
    assert_same_as_here(&cluster);
    // As prolog and epilog do on real machines: killed elements have left their disks in memory.
    let state = cluster.lab.path("state-of-jobs");
    Said::of(cluster.lab.pickfs().arg("clean").env("XDG_STATE_HOME", state).output().expect("pickfs starts")).code(0);
    assert_eq!(disks_in_memory(), before);
    cluster.lab.assert_nothing_left();
}

/// Folders of simulated machines.
fn disks_in_memory() -> BTreeSet<OsString> {
    let found = std::fs::read_dir("/dev/shm").expect("there is /dev/shm").flatten().map(|entry| entry.file_name());
    found.filter(|name| name.as_encoded_bytes().starts_with(b"pickfs-")).collect()
}

impl Cluster {
    /// What an administrator does after a controller has died that had started a job and not yet
    /// written so: it starts the job again, and as the machine has it already, drains the machine
    /// and holds the job.
    fn release(&self) {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_secs(1));
            self.slurm(&["scontrol", "update", "nodename=n1,n2", "state=resume"]);
            self.slurm(&["scontrol", "release", "1"]);
        }
    }

    fn await_long(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < 12 * PATIENCE, "{what} is not so");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}
