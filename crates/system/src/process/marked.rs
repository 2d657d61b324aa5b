//! Processes that belong to a run or a cell, found by a mark in their environment, and ended.

use crate::sys::process::{Signal, Stat, all_processes, kill, process_id};
use rustix::process::PidfdFlags;
use std::io;
use std::time::{Duration, Instant};

/// Processes whose environment holds exactly this `NAME=value`: an environment is inherited through
/// fork and exec, also by daemons that leave group, session and parent. Not ourselves, not zombies,
/// not those of other users.
pub fn marked_processes(mark: &str) -> Vec<i32> {
    with_all(&[mark])
}

fn with_all(marks: &[&str]) -> Vec<i32> {
    let own = std::process::id() as i32;
    all_processes().into_iter().filter(|pid| *pid != own && has_all(*pid, marks)).collect()
}

pub(super) fn is_marked(pid: i32, mark: &str) -> bool {
    has_all(pid, &[mark])
}

fn has_all(pid: i32, marks: &[&str]) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    let has = |mark: &&str| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
    marks.iter().all(has) && Stat::of(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Ends every marked process, again and again, as they may fork meanwhile. Returns the processes
/// that it ended; an error names processes that still run after five seconds. An empty result
/// counts only at the second look: a process in the middle of exec(2) shows no environment.
pub fn kill_marked(mark: &str) -> io::Result<Vec<String>> {
    kill_with_all(&[mark])
}

/// As [`kill_marked`], for processes that carry all these marks.
pub fn kill_with_all(marks: &[&str]) -> io::Result<Vec<String>> {
    kill_but(marks, |_| false)
}

/// As [`kill_marked`], but for our own processes program that began after us, and all below them:
/// where our host has died, another one has sent them to do what we do, and they end us.
pub fn kill_marked_but_successors(mark: &str) -> io::Result<Vec<String>> {
    kill_but(&[mark], is_of_successor)
}

fn is_of_successor(pid: i32) -> bool {
    let own = std::process::id() as i32;
    let program = |pid: i32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let Some(us) = Stat::of(own) else { return false };
    let parent = |pid: &i32| Stat::of(*pid).map(|stat| stat.parent).filter(|parent| *parent > 1);
    // A ring of parents, of ids that were used twice meanwhile, is no line.
    let mut line = std::iter::successors(Some(pid), parent).take(1000).take_while(|pid| *pid != own);
    line.any(|pid| {
        let is_younger = Stat::of(pid).is_some_and(|stat| (stat.began, stat.pid) > (us.began, us.pid));
        is_younger && program(pid).is_some_and(|found| program(own) == Some(found))
    })
}

fn kill_but(marks: &[&str], spares: impl Fn(i32) -> bool) -> io::Result<Vec<String>> {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut ended = Vec::new();
    let mut looks_without = 0;
    loop {
        let left: Vec<i32> = with_all(marks).into_iter().filter(|pid| !spares(*pid)).collect();
        looks_without = if left.is_empty() { looks_without + 1 } else { 0 };
        if looks_without == 2 {
            return Ok(ended);
        }
        let names: Vec<String> = left.iter().filter_map(|pid| kill_if_marked(*pid, marks)).collect();
        if !left.is_empty() && Instant::now() > deadline {
            return Err(still_running(left));
        }
        ended.extend(names.into_iter().filter(|name| !ended.contains(name)).collect::<Vec<_>>());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn still_running(pids: impl IntoIterator<Item = i32>) -> io::Error {
    let named = pids.into_iter().map(|pid| match Stat::of(pid) {
        Some(stat) => format!("{} (pid {pid})", stat.name),
        None => format!("pid {pid}"),
    });
    let named: Vec<String> = named.collect();
    io::Error::new(io::ErrorKind::TimedOut, format!("still running: {}", named.join(", ")))
}

/// A handle is taken before the mark is looked at, so that a process that got the number meanwhile
/// is not hit.
fn kill_if_marked(pid: i32, marks: &[&str]) -> Option<String> {
    let handle = rustix::process::pidfd_open(process_id(pid).ok()?, PidfdFlags::empty()).ok()?;
    if !has_all(pid, marks) {
        return None;
    }
    let name = Stat::of(pid)?.name;
    rustix::process::pidfd_send_signal(&handle, Signal::KILL).ok()?;
    Some(format!("{name} (pid {pid})"))
}

/// Ends our children that carry no mark of that name, and says whom: programs that overwrite their
/// environment to show what they do, as database servers, lose the mark; orphans among them are our
/// children where we adopt them. Only for a moment at which every other child has been waited for.
/// An error names the children that remain after a second.
pub fn kill_unmarked_children(name: &str) -> io::Result<Vec<String>> {
    let own = std::process::id() as i32;
    let mut ended = Vec::new();
    // The children of an ended process may become ours.
    for attempt in 0.. {
        let children = all_processes().into_iter().filter_map(Stat::of).filter(|stat| stat.parent == own);
        let living = children.filter(|stat| !matches!(stat.state, 'Z' | 'X') && !has_variable(stat.pid, name));
        let left: Vec<Stat> = living.collect();
        if left.is_empty() {
            break;
        }
        if attempt == 100 {
            return Err(still_running(left.iter().map(|stat| stat.pid)));
        }
        for stat in left {
            // Its number cannot belong to another process yet: it has not been waited for.
            let said = format!("{} (pid {})", stat.name, stat.pid);
            if kill(stat.pid, Signal::KILL).is_ok() && !ended.contains(&said) {
                ended.push(said);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(ended)
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
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    fn sleeper(mark: &str) -> std::process::Child {
        let (name, value) = mark.split_once('=').unwrap();
        Command::new("sleep").arg("60").env(name, value).spawn().unwrap()
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
        // The kernel closes the pipe that reports the exec a moment before it shows the new
        // environment.
        let mut tries = 0;
        while found() != expected && tries < 1000 {
            std::thread::sleep(Duration::from_millis(1));
            tries += 1;
        }
        assert_eq!(found(), expected);
        assert_eq!(kill_but(&[&mark], |pid| pid == spared).unwrap(), [format!("sleep (pid {})", first.id())]);
        assert_eq!(marked_processes(&mark), [spared]);
        assert_eq!(first.wait().unwrap().signal(), Some(9));
        kill(spared, Signal::TERM).unwrap();
        assert_eq!(second.wait().unwrap().signal(), Some(15));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// What a process of our program is that began after us: this test program, which waits in the
    /// test below.
    #[test]
    fn a_successor_and_what_it_started_are_spared() {
        let mark = format!("PICKFS_TEST_SUCCESSOR={}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut successor = Command::new(std::env::current_exe().unwrap());
        successor.args(["--exact", "process::marked::tests::waits_for_its_end", "--ignored"]);
        let mut successor = successor.env(name, value).stdout(std::process::Stdio::null()).spawn().unwrap();
        let mut other = sleeper(&mark);
        let begun = Instant::now();
        while marked_processes(&mark).len() < 3 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(kill_marked_but_successors(&mark).unwrap(), [format!("sleep (pid {})", other.id())]);
        assert_eq!(marked_processes(&mark).len(), 2, "the successor and its sleep");
        assert_eq!(kill_marked(&mark).unwrap().len(), 2);
        other.wait().unwrap();
        successor.wait().unwrap();
    }

    #[test]
    #[ignore = "started by the test above"]
    fn waits_for_its_end() {
        if std::env::var_os("PICKFS_TEST_SUCCESSOR").is_some() {
            Command::new("sleep").arg("60").status().unwrap();
        }
    }
}
