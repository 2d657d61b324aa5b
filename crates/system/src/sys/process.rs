//! Processes: what they used, their parents, and signals to them.

use rustix::process::Pid;
use std::collections::HashMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

pub use rustix::process::Signal;

/// What a process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub max_rss_bytes: u64,
    /// What it had read from block devices.
    pub read_bytes: u64,
}

/// The calling process gets this signal when the thread that started it ends (prctl(2),
/// PR_SET_PDEATHSIG).
pub fn die_with_parent(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}

/// Processes whose parents die become children of the calling process and not of init
/// (PR_SET_CHILD_SUBREAPER), so that daemons that a workload starts still count as its own.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Waits for a child to end; what it and its waited-for children used comes with it (wait4(2)).
pub fn wait_with_usage(pid: i32) -> io::Result<(ExitStatus, Usage)> {
    let pid = process_id(pid)?.as_raw_nonzero().get();
    let mut status = 0;
    loop {
        // SAFETY: all zeros is a valid rusage.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to values that live through the call.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
            return Ok((ExitStatus::from_raw(status), read_usage(&usage)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// What the calling process has used, all its threads.
pub fn own_usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// The calling process may have as many files open as the system lets it.
pub fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, a call that finds no descriptor says so.
    let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
}

/// What the children that ended and were waited for have used, with theirs.
pub fn children_usage() -> Usage {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(which: libc::c_int) -> Usage {
    // SAFETY: all zeros is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a value that lives through the call, which cannot fail with these
    // arguments.
    unsafe { libc::getrusage(which, &raw mut usage) };
    read_usage(&usage)
}

/// Does work in the calling thread before all ordinary processes of the machine (SCHED_FIFO), where
/// that is allowed.
pub fn ahead_of_others<T>(work: impl FnOnce() -> T) -> T {
    schedule(libc::SCHED_FIFO, 1);
    let result = work();
    schedule(libc::SCHED_OTHER, 0);
    result
}

/// Sets the policy of the calling thread; a refusal changes nothing.
fn schedule(policy: i32, priority: i32) {
    let wanted = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a value that lives through the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const wanted) };
}

fn read_usage(usage: &libc::rusage) -> Usage {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024, // in KiB, getrusage(2)
        read_bytes: usage.ru_inblock as u64 * 512,    // in sectors: the kernel's I/O accounting, shifted by 9
    }
}

/// From now on, a write to a pipe without readers ends this process quietly, as it does other
/// programs; Rust starts with the signal ignored. Not for a process that has changes to undo.
pub fn end_with_reader() {
    // SAFETY: it installs no handler, only the default action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// True if the owner is this user, and for root also if it is the user whom sudo(8) names: a user
/// that may start us as root can make the same changes as root directly.
pub fn trusts(owner: u32) -> bool {
    let own = rustix::process::geteuid();
    owner == own.as_raw() || (own.is_root() && behind_sudo().is_some_and(|(user, _)| user == owner))
}

/// User and group for whom sudo(8) has started us as root.
pub fn behind_sudo() -> Option<(u32, u32)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some((number("SUDO_UID")?, number("SUDO_GID")?)).filter(|_| rustix::process::geteuid().is_root())
}

/// Sends a signal to one process.
pub fn kill(pid: i32, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(process_id(pid)?, signal)?)
}

/// Ends a process group at once; no group left is no error.
pub fn kill_group(leader: i32) -> io::Result<()> {
    match rustix::process::kill_process_group(process_id(leader)?, Signal::KILL) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => Ok(other?),
    }
}

/// Refuses 0, 1 and negative numbers: to kill(2) those mean our own group, init and everybody.
pub(crate) fn process_id(pid: i32) -> io::Result<Pid> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, format!("{pid} is not a process to wait for or end"));
    if pid > 1 { Pid::from_raw(pid).ok_or_else(refused) } else { Err(refused()) }
}

/// Children of the calling process, adopted ones included; none where the kernel does not list them
/// (CONFIG_PROC_CHILDREN).
pub(crate) fn children() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |listed: String| listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>();
    listed.flat_map(numbers).collect()
}

/// A line of /proc/PID/stat, in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    /// The program's name, cut at 15 bytes by the kernel.
    pub name: String,
    pub state: char,
    pub parent: i32,
    pub flags: u64,
    /// User plus system time in clock ticks.
    pub ticks: u64,
    /// The same of children that ended and were waited for, and of theirs.
    pub children_ticks: u64,
    /// When it began, in clock ticks since the machine was started.
    pub began: u64,
}

/// The parent of each process.
pub struct Parents(HashMap<i32, i32>);

impl Parents {
    pub fn among(processes: &[Stat]) -> Parents {
        Parents(processes.iter().map(|stat| (stat.pid, stat.parent)).collect())
    }

    pub fn of(&self, pid: i32) -> Option<i32> {
        self.0.get(&pid).copied()
    }

    /// The process itself, its parent, and so on. As processes are read one after the other, ids
    /// may have been used twice meanwhile and parents may form a ring: so the line ends after as
    /// many steps as there are processes.
    pub fn line(&self, pid: i32) -> impl Iterator<Item = i32> + '_ {
        std::iter::successors(Some(pid), |pid| self.of(*pid)).take(self.0.len() + 1)
    }
}

impl Stat {
    /// None when the process is gone.
    pub fn of(pid: i32) -> Option<Stat> {
        Some(Stat::from(procfs::process::Process::new(pid).ok()?.stat().ok()?))
    }
}

impl From<procfs::process::Stat> for Stat {
    fn from(stat: procfs::process::Stat) -> Stat {
        Stat {
            pid: stat.pid,
            name: stat.comm,
            state: stat.state,
            parent: stat.ppid,
            flags: stat.flags.into(),
            ticks: stat.utime + stat.stime,
            children_ticks: (stat.cutime.max(0) + stat.cstime.max(0)) as u64,
            began: stat.starttime,
        }
    }
}

/// How long the thread of a process that waited longest for a processor has waited for one, since
/// it was started (/proc/PID/task/TID/schedstat, its second number); zero where the kernel does not
/// count it.
pub fn waited_for_processor(pid: i32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let waited = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    };
    Duration::from_nanos(threads.filter_map(waited).max().unwrap_or(0))
}

/// The ids of all processes.
pub fn all_processes() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Bytes that a process had read from block devices, with those of the children that it has waited
/// for (proc_pid_io(5)); `None` where it is gone, or the kernel does not count them.
pub fn read_bytes(pid: i32) -> Option<u64> {
    Some(procfs::process::Process::new(pid).ok()?.io().ok()?.read_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromRead;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn stat_lines_with_odd_names() {
        let fields = "S 7 7 7 0 -1 4194560 1 2 3 4 50 25 6 3 20 0 1 0 9 9 9".to_string() + &" 1".repeat(29);
        for name in ["sh", "a b", ":) (x", ")"] {
            let line = format!("42 ({name}) {fields}");
            let stat = Stat::from(procfs::process::Stat::from_read(line.as_bytes()).unwrap());
            let (pid, name, state, parent) = (42, name.into(), 'S', 7);
            let (ticks, children_ticks, began) = (75, 9, 9);
            let expected = Stat { pid, name, state, parent, flags: 4194560, ticks, children_ticks, began };
            assert_eq!(stat, expected);
        }
        assert_eq!(Stat::of(i32::MAX), None);
        assert_eq!(Stat::of(std::process::id() as i32).unwrap().parent, std::os::unix::process::parent_id() as i32);
    }

    #[test]
    fn a_child_tells_what_it_used() {
        let child = Command::new("sh").args(["-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exit 3"]).spawn();
        let (status, usage) = wait_with_usage(child.unwrap().id() as i32).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(usage.user_ns + usage.system_ns > 1_000_000 && usage.max_rss_bytes > 100_000, "{usage:?}");
        assert!(own_usage().max_rss_bytes > 100_000);
    }

    #[test]
    fn a_group_ends_as_a_whole_and_may_be_gone_already() {
        let mut leader = Command::new("sh").args(["-c", "sleep 60 & sleep 60"]).process_group(0).spawn().unwrap();
        kill_group(leader.id() as i32).unwrap();
        assert_eq!(leader.wait().unwrap().signal(), Some(9));
        kill_group(leader.id() as i32).unwrap();
    }

    #[test]
    fn everybody_cannot_be_killed() {
        for pid in [-1, 0, 1] {
            assert!(kill(pid, Signal::KILL).is_err() && kill_group(pid).is_err() && wait_with_usage(pid).is_err());
        }
    }
}
