//! Processes: what they used, who their parents are, and making sure that none is left behind.

#![expect(clippy::disallowed_methods, reason = "gives up ending processes after a time")]

use rustix::process::{Pid, PidfdFlags};
use std::collections::HashMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

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

/// The calling process gets this signal when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG).
pub fn die_with_parent(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}

/// Processes whose parents die become children of the calling process and not of init (PR_SET_CHILD_SUBREAPER), so
/// that daemons that a workload starts still count as its own.
pub fn adopt_orphans() -> io::Result<()> {
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
    // SAFETY: all zeros is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a value that lives through the call, which cannot fail with these arguments.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    read_usage(&usage)
}

/// Does work in the calling thread before all ordinary processes of the machine (SCHED_FIFO), where that is allowed.
pub fn ahead_of_others<T>(work: impl FnOnce() -> T) -> T {
    schedule(libc::SCHED_FIFO, 1);
    let result = work();
    schedule(libc::SCHED_OTHER, 0);
    result
}

/// Of the calling thread; a refusal changes nothing.
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

/// From now on writing to a pipe that nobody reads ends us quietly, as it does other programs; Rust starts with the
/// signal ignored. Not for who has something to undo.
pub fn end_with_reader() {
    // SAFETY: it installs no handler, only the default action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
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
fn process_id(pid: i32) -> io::Result<Pid> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, format!("{pid} is not a process to wait for or end"));
    if pid > 1 { Pid::from_raw(pid).ok_or_else(refused) } else { Err(refused()) }
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
}

/// Who started whom.
pub struct Parents(HashMap<i32, i32>);

impl Parents {
    pub fn among(processes: &[Stat]) -> Parents {
        Parents(processes.iter().map(|stat| (stat.pid, stat.parent)).collect())
    }

    pub fn of(&self, pid: i32) -> Option<i32> {
        self.0.get(&pid).copied()
    }

    /// The process itself, its parent, and so on. As processes are read one after the other, ids may have been used twice
    /// meanwhile and parents may form a ring: nobody is deeper than there are processes.
    pub fn line(&self, pid: i32) -> impl Iterator<Item = i32> + '_ {
        std::iter::successors(Some(pid), |pid| self.of(*pid)).take(self.0.len() + 1)
    }
}

impl Stat {
    /// None when the process is gone.
    pub fn of(pid: i32) -> Option<Stat> {
        Stat::parse(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?))
    }

    /// The name stands in parentheses and may hold some itself, so the last one ends it (proc_pid_stat(5)).
    fn parse(line: &str) -> Option<Stat> {
        let (pid, rest) = line.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Stat {
            pid: pid.parse().ok()?,
            name: name.into(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            flags: number(9)?,
            ticks: number(14)? + number(15)?,
            children_ticks: number(16)? + number(17)?,
        })
    }
}

/// The ids of all processes.
pub fn all_processes() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Processes whose environment holds exactly this `NAME=value`: an environment is inherited through fork and exec,
/// also by daemons that leave group, session and parent. Not ourselves, not zombies, not those of other users.
pub fn marked_processes(mark: &str) -> Vec<i32> {
    let own = std::process::id() as i32;
    all_processes().into_iter().filter(|pid| *pid != own && is_marked(*pid, mark)).collect()
}

fn is_marked(pid: i32, mark: &str) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        && Stat::of(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Bytes that a process had read from block devices, with those of the children that it has waited for (proc_pid_io(5));
/// `None` where it is gone, or the kernel does not count them.
pub fn read_bytes(pid: i32) -> Option<u64> {
    Some(procfs::process::Process::new(pid).ok()?.io().ok()?.read_bytes)
}

/// Ends every marked process but those to spare, again and again, as they may fork meanwhile. Says whom it ended;
/// an error names who is still there after five seconds. Nobody there is believed at the second look: a process in
/// the middle of exec(2) shows no environment.
pub fn kill_marked(mark: &str, spare: &[i32]) -> io::Result<Vec<String>> {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut ended = Vec::new();
    let mut looks_without = 0;
    loop {
        let left: Vec<i32> = marked_processes(mark).into_iter().filter(|pid| !spare.contains(pid)).collect();
        looks_without = if left.is_empty() { looks_without + 1 } else { 0 };
        if looks_without == 2 {
            return Ok(ended);
        }
        let names: Vec<String> = left.iter().filter_map(|pid| kill_if_marked(*pid, mark)).collect();
        if !left.is_empty() && Instant::now() > deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("still running: {}", names.join(", "))));
        }
        ended.extend(names.into_iter().filter(|name| !ended.contains(name)).collect::<Vec<_>>());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A handle is taken before the mark is looked at, so that a process that got the number meanwhile is not hit.
fn kill_if_marked(pid: i32, mark: &str) -> Option<String> {
    let handle = rustix::process::pidfd_open(process_id(pid).ok()?, PidfdFlags::empty()).ok()?;
    if !is_marked(pid, mark) {
        return None;
    }
    let name = Stat::of(pid)?.name;
    rustix::process::pidfd_send_signal(&handle, Signal::KILL).ok()?;
    Some(format!("{name} (pid {pid})"))
}

/// Ends our children that carry no mark of that name, and says whom: programs that overwrite their environment to show
/// what they do, as database servers, lose the mark; orphans among them are our children where we adopt them. Only for
/// a moment at which every other child has been waited for.
pub fn kill_unmarked_children(name: &str) -> Vec<String> {
    let own = std::process::id() as i32;
    let mut ended = Vec::new();
    // Whoever is ended may leave children of its own to us.
    for _ in 0..100 {
        let children = all_processes().into_iter().filter_map(Stat::of).filter(|stat| stat.parent == own);
        let living = children.filter(|stat| !matches!(stat.state, 'Z' | 'X') && !has_variable(stat.pid, name));
        let left: Vec<Stat> = living.collect();
        if left.is_empty() {
            break;
        }
        for stat in left {
            // Its number cannot have been given to another: nobody has waited for it.
            let said = format!("{} (pid {})", stat.name, stat.pid);
            if kill(stat.pid, Signal::KILL).is_ok() && !ended.contains(&said) {
                ended.push(said);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    ended
}

fn has_variable(pid: i32, name: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|entry| entry.strip_prefix(name.as_bytes()).is_some_and(|r| r.starts_with(b"=")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn sleeper(mark: &str) -> std::process::Child {
        let (name, value) = mark.split_once('=').unwrap();
        Command::new("sleep").arg("60").env(name, value).spawn().unwrap()
    }

    #[test]
    fn stat_lines_with_odd_names() {
        let fields = "S 7 7 7 0 -1 4194560 1 2 3 4 50 25 6 3 20 0 1 0 9 9 9";
        for name in ["sh", "a b", ":) (x", ")"] {
            let stat = Stat::parse(&format!("42 ({name}) {fields}")).unwrap();
            let (pid, name, state, parent) = (42, name.into(), 'S', 7);
            let expected = Stat { pid, name, state, parent, flags: 4194560, ticks: 75, children_ticks: 9 };
            assert_eq!(stat, expected);
        }
        assert_eq!(Stat::parse("42 (sh"), None);
        assert_eq!(Stat::of(std::process::id() as i32).unwrap().parent, std::os::unix::process::parent_id() as i32);
    }

    #[test]
    fn marked_processes_are_found_and_ended_but_for_the_spared() {
        let mark = format!("PICKFS_TEST_MARK={}", std::process::id());
        let (mut first, mut second, mut other) = (sleeper(&mark), sleeper(&mark), sleeper(&format!("{mark}0")));
        let spared = second.id() as i32;
        let mut expected = vec![first.id() as i32, spared];
        expected.sort();
        let found = || {
            let mut found = marked_processes(&mark);
            found.sort();
            found
        };
        // The kernel closes the pipe that tells us of the exec a moment before it shows the new environment.
        let mut tries = 0;
        while found() != expected && tries < 1000 {
            std::thread::sleep(Duration::from_millis(1));
            tries += 1;
        }
        assert_eq!(found(), expected);
        assert_eq!(kill_marked(&mark, &[spared]).unwrap(), [format!("sleep (pid {})", first.id())]);
        assert_eq!(marked_processes(&mark), [spared]);
        assert_eq!(first.wait().unwrap().signal(), Some(9));
        kill(spared, Signal::TERM).unwrap();
        assert_eq!(second.wait().unwrap().signal(), Some(15));
        other.kill().unwrap();
        other.wait().unwrap();
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
