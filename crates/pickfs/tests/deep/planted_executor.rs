//! An executor that is planted here, an agent behind a pipe that is slow, passes the same
//! end-to-end tests as `local`.
//!
//! A run of the planted executor is a process of this very test program, which calls the library as
//! the command line does.

use crate::common::{Lab, PATIENCE, failed, not_run, unable, writeback_knobs};
use pickfs_core::journal::{Outcome, Run, fold_file};
use pickfs_core::plan::Plan;
use pickfs_core::protocol::{Connection, Request};
use pickfs_host::executor::{Contact, ContactOutcome, Executor, Machine};
use pickfs_host::run::{self, Lines};
use pickfs_system::process::RUN_MARK;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What each message is late by.
const DELAY: Duration = Duration::from_millis(50);
/// The environment variables of a run in its own process: a plan as JSON, and a journal to write or
/// to take up.
const PLAN: &str = "PLANTED_PLAN";
const JOURNAL: &str = "PLANTED_JOURNAL";

struct Slow;

impl Executor for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn about(&self) -> &'static str {
        "this machine, behind a pipe on which each message takes 50 ms"
    }

    fn machine(&self, _plan: &Plan) -> Box<dyn Machine> {
        Box::new(SlowMachine)
    }
}

struct SlowMachine;

impl Machine for SlowMachine {
    fn reach(&mut self, request: Request) -> anyhow::Result<ContactOutcome> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pickfs"));
        let fast = Connection::open(command.arg("agent").env(RUN_MARK, &request.run))?;
        let slow = Connection { to: Box::new(Late(fast.to)), from: Box::new(Late(fast.from)), ..fast };
        Ok(ContactOutcome::Agent(Box::new(Contact::lasting(slow, request))))
    }
}

struct Late<T>(T);

impl<T: Read> Read for Late<T> {
    fn read(&mut self, piece: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(piece)?;
        std::thread::sleep(DELAY);
        Ok(read)
    }
}

impl<T: Write> Write for Late<T> {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        std::thread::sleep(DELAY);
        self.0.write(piece)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A run of the planted executor, in its own process.
#[test]
#[ignore = "started by the other tests, as a process of their own"]
fn planted_run() {
    let Some(journal) = std::env::var_os(JOURNAL).map(PathBuf::from) else { return };
    run::count_stop_requests().expect("signals");
    let mut progress = Lines::default();
    match std::env::var(PLAN) {
        Ok(plan) => {
            let plan: Plan = serde_json::from_str(&plan).expect("a plan");
            run::begin(&plan, &[], &[&Slow], &journal, &mut progress).expect("a run");
        }
        Err(_) => {
            let stop_change = run::StopChange::default();
            run::resume(&journal, &[], run::Trust::Own, stop_change, &[&Slow], &mut progress).expect("a run");
        }
    }
}

/// One of the executors, and a laboratory for it.
struct Bench {
    lab: Lab,
    planted: bool,
}

impl Bench {
    /// Begins a run of the plan.
    fn begin(&self, plan: &str) -> Child {
        self.lab.write_plan(plan);
        if !self.planted {
            return start(self.lab.pickfs().args(["run", "plan.toml", "--journal", "journal.jsonl"]));
        }
        let checked = self.lab.path("checked.jsonl");
        let mut plan = checked_plan(&self.lab, &checked);
        plan.executor = "slow".into();
        start(self.planted_run().env(PLAN, serde_json::to_string(&plan).expect("JSON")))
    }

    fn resume(&self) -> Child {
        if self.planted {
            start(&mut self.planted_run())
        } else {
            start(self.lab.pickfs().args(["run", "--resume", "journal.jsonl"]))
        }
    }

    /// This test program in the laboratory, with its state folder.
    fn planted_run(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.current_dir(self.lab.path("")).env("XDG_STATE_HOME", self.lab.path("state")).env_remove(RUN_MARK);
        command
            .args(["--exact", "deep::planted_executor::planted_run", "--ignored", "--nocapture"])
            .env(JOURNAL, self.lab.journal());
        command
    }
}

/// As the command line reads and checks it: the run is stopped before its first cell.
fn checked_plan(lab: &Lab, journal: &Path) -> Plan {
    let mut child = start(lab.pickfs().args(["run", "plan.toml", "--journal", "checked.jsonl"]));
    let begun = Instant::now();
    let run: Run = loop {
        if let Some(run) = fold_file(journal).ok().and_then(|folded| folded.run) {
            break run;
        }
        assert!(begun.elapsed() < PATIENCE, "no run began");
        std::thread::sleep(Duration::from_millis(20));
    };
    interrupt(&child);
    child.wait().expect("its end");
    run.plan
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run")
}

fn interrupt(child: &Child) {
    pickfs_system::sys::process::kill(child.id() as i32, pickfs_system::sys::process::Signal::INT).expect("a signal");
}

fn on_each_executor(run: impl Fn(&Bench)) {
    if not_run(unable(&["ext4"])) {
        return;
    }
    for planted in [false, true] {
        let bench = Bench { lab: Lab::new(), planted };
        run(&bench);
        let folded = bench.lab.folded();
        assert_eq!(folded.run.expect("a run").plan.executor, if planted { "slow" } else { "local" });
        assert!(folded.leftovers.is_empty(), "{:?}", folded.leftovers);
        bench.lab.assert_nothing_left();
    }
}

/// A cell ends after `limit` at the latest.
fn plan(works: &[&str], rounds: u32, limit: &str) -> String {
    let works: String = works.iter().map(|work| format!("[[work]]\n{work}\n")).collect();
    format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\n[[target]]\nfs = \"ext4\"\n{works}\
         [stop]\nrounds = {rounds}\ncell = \"{limit}\"\n"
    )
}

#[test]
fn cells_end_as_they_should() {
    on_each_executor(|bench| {
        let knobs = writeback_knobs();
        let works = ["workload = \"meta.ok\"", "workload = \"meta.fail\"", "workload = \"meta.crash\""];
        let hangs = ["workload = \"meta.hang\"", "name = \"hang inside\"\nworkload = \"meta.hang\"\ninside = true"];
        let said = bench.begin(&plan(&[&works[..], &hangs].concat(), 1, "6s")).wait_with_output().expect("its end");
        let folded = bench.lab.folded();
        assert_eq!(folded.cells.len(), 5, "{}", String::from_utf8_lossy(&said.stderr));
        let cell = |work: &str| folded.cells.iter().find(|cell| cell.work == work).expect("a cell");
        assert_eq!(cell("meta.ok").outcome, Some(Outcome::Done));
        for (work, words) in [
            ("meta.fail", "No such file or directory"),
            ("meta.crash", "killed by signal 6"),
            ("meta.hang", "the time limit of 6.00 s passed"),
            ("hang inside", "the agent did not answer; killed"),
        ] {
            assert!(failed(cell(work)).contains(words), "{work}: {}", failed(cell(work)));
        }
        assert_eq!(writeback_knobs(), knobs);
    });
}

#[test]
fn a_stop_undoes_and_a_run_is_taken_up() {
    on_each_executor(|bench| {
        let child = bench.begin(&plan(&["workload = \"meta.ok\""], 3, "2m"));
        let begun = Instant::now();
        while !fold_file(&bench.lab.journal()).is_ok_and(|folded| !folded.cells.is_empty()) {
            assert!(begun.elapsed() < PATIENCE, "no cell began");
            std::thread::sleep(Duration::from_millis(20));
        }
        interrupt(&child);
        let said = child.wait_with_output().expect("its end");
        let words = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(words.contains("finishing the step, then undoing"), "{words}");
        assert!(bench.lab.folded().cells.len() < 3, "the run was not stopped");
        bench.lab.assert_nothing_left();
        bench.resume().wait_with_output().expect("its end");
        let folded = bench.lab.folded();
        let outcomes: Vec<_> = folded.cells.iter().map(|cell| cell.outcome.clone()).collect();
        assert_eq!(outcomes, vec![Some(Outcome::Done); 3]);
    });
}
