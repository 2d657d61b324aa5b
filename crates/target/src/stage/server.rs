//! A program that runs during the phases of a cell, such as a database server. It is the
//! workload's: one that is not stopped before the workload ends has leaked.

use super::program::Program;
use crate::probe::cpu::tick_ns;
use anyhow::{Context, Result, bail};
use pickfs_system::process::{Mark, last_words};
use pickfs_system::sys::process::{self, Parents, Signal, Stat};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

pub(crate) struct Server {
    child: Child,
    shown: String,
    /// All its output.
    log: PathBuf,
}

impl Server {
    /// Starts it as the head of a process group; its output goes to `log`.
    pub(super) fn start(program: &Program, log: &Path, marks: &[Mark]) -> Result<Server> {
        let out = File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        let mut command = program.command(marks)?;
        command.stdout(out.try_clone()?).stderr(out).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start `{}`", program.shown()))?;
        Ok(Server { child, shown: program.shown(), log: log.into() })
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// An error with its last words if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("`{}` ended with {status}: {}", self.shown, self.said()),
            None => Ok(()),
        }
    }

    /// Its last words.
    pub(crate) fn said(&self) -> String {
        last_words(&std::fs::read(&self.log).unwrap_or_default())
    }

    /// Asks it to end and waits; an error if it does not, or not well. A server without a handler
    /// dies of the signal.
    pub(crate) fn stop(mut self, signal: Signal, patience: Duration) -> Result<()> {
        self.check()?;
        process::kill(self.child.id() as i32, signal)?;
        match self.wait(patience)? {
            Some(status) if status.success() || status.signal() == Some(signal.as_raw()) => Ok(()),
            Some(status) => bail!("`{}` ended with {status}: {}", self.shown, self.said()),
            None => bail!("`{}` did not end within {patience:?}: {}", self.shown, self.said()),
        }
    }

    fn wait(&mut self, patience: Duration) -> Result<Option<ExitStatus>> {
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }
}

/// What servers and all their descendants have used so far; the difference of two is what a phase
/// cost them. What ended processes used counts for the process that waited for them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Used {
    pub cpu_ns: u64,
    /// Had read from block devices.
    pub read_bytes: u64,
}

impl Used {
    /// Those among them that have ended are no children of ours any more, even where their number
    /// was given again.
    pub(super) fn by(servers: &[i32]) -> Used {
        if servers.is_empty() {
            return Used::default();
        }
        let all: Vec<Stat> = process::all_processes().into_iter().filter_map(Stat::of).collect();
        let family = family(&all, servers, std::process::id() as i32);
        Used {
            cpu_ns: family.iter().map(|stat| stat.ticks + stat.children_ticks).sum::<u64>() * tick_ns(),
            read_bytes: family.iter().filter_map(|stat| process::read_bytes(stat.pid)).sum(),
        }
    }

    pub(super) fn since(self, before: Used) -> Used {
        Used {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
        }
    }
}

fn family<'a>(all: &'a [Stat], servers: &[i32], own: i32) -> Vec<&'a Stat> {
    let parents = Parents::among(all);
    let is_server = |pid: i32| servers.contains(&pid) && parents.of(pid) == Some(own);
    all.iter().filter(|stat| parents.line(stat.pid).any(is_server)).collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // Processes that remain are found by their mark.
            let _ = process::kill_group(self.child.id() as i32);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, parent: i32, ticks: u64) -> Stat {
        Stat { pid, name: "x".into(), state: 'S', parent, flags: 0, ticks, children_ticks: 0, began: 0 }
    }

    #[test]
    fn servers_count_with_all_that_descend_from_them_and_nobody_else() {
        let all = [
            stat(10, 1, 1), // we
            stat(20, 10, 1),
            stat(21, 20, 1),
            stat(22, 21, 1),
            stat(30, 10, 1), // no server
            stat(40, 30, 1), // has the number of one that ended
            stat(51, 52, 1), // a ring
            stat(52, 51, 1),
        ];
        let pids: Vec<i32> = family(&all, &[20, 40, 60], 10).iter().map(|stat| stat.pid).collect();
        assert_eq!(pids, [20, 21, 22]);
    }

    #[test]
    fn what_a_child_of_a_server_used_counts_though_nobody_has_waited_for_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let done = folder.path().join("done");
        let script = format!("({work}); : > {}; sleep 60", done.display());
        let program = Program::new(["sh", "-c", &script]);
        let server = Server::start(&program, &folder.path().join("log"), &[]).unwrap();
        let servers = [server.process() as i32];
        let before = Used::by(&servers);
        while !done.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let used = Used::by(&servers).since(before);
        assert!(used.cpu_ns >= 3 * tick_ns(), "{used:?}");
        assert_eq!(Used::by(&[]), Used::default());
        drop(server);
        assert_eq!(Used::by(&servers), Used::default());
    }

    #[test]
    fn what_a_process_had_read_is_found_where_the_kernel_counts_it() {
        let counted = std::fs::read_to_string("/proc/self/io").is_ok_and(|text| text.contains("\nread_bytes: "));
        if !counted {
            pickfs_test_support::not_run("it does not count");
            return;
        }
        let usage = process::own_usage().read_bytes;
        assert!(process::read_bytes(std::process::id() as i32) >= Some(usage));
    }
}
