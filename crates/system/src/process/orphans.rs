//! Takes note of the end of processes whose parents have died, where we adopt them.
//!
//! One that has ended is still found by kill(2) until its parent has waited for it. So
//! umount.nilfs2, which asks for the end of its cleaner, gave up after 8.6 seconds.

use super::marked::is_marked;
use crate::sys::process::{children, wait_with_usage};
use std::thread::JoinHandle;

pub struct EndOfOrphan {
    pub process: i32,
    waiter: JoinHandle<()>,
}

impl EndOfOrphan {
    pub fn has_come(&self) -> bool {
        self.waiter.is_finished()
    }
}

/// Waits for each child whose environment holds this `NAME=value`, in its own thread; not for those
/// to spare, for which their starter waits.
pub fn await_orphans(mark: &str, spare: &[i32]) -> Vec<EndOfOrphan> {
    let orphans = children().into_iter().filter(|pid| !spare.contains(pid) && is_marked(*pid, mark));
    let wait = |process| {
        let waiter = std::thread::Builder::new().name("orphan".into()).spawn(move || {
            // No one asks how it ended.
            let _ = wait_with_usage(process);
        });
        Some(EndOfOrphan { process, waiter: waiter.ok()? })
    };
    orphans.filter_map(wait).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process::{Signal, Stat, kill};
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    const MARK: &str = "PICKFS_TEST_ORPHAN";

    fn sleeper(mark: &str) -> Child {
        Command::new("sleep").arg("60").env(MARK, mark).spawn().expect("sleep")
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// To the kernel an orphan that we have adopted is a child like these.
    #[test]
    fn what_ends_is_gone_and_not_found_by_kill_and_what_is_spared_stays_for_its_starter() {
        let own = std::process::id().to_string();
        let (mut orphan, mut spared, mut other) = (sleeper(&own), sleeper(&own), sleeper("other"));
        let [pid, spare] = [&orphan, &spared].map(|child| child.id() as i32);
        let mark = format!("{MARK}={own}");
        let mut awaited = Vec::new();
        // The environment is shown a moment after the start.
        until("the orphan is found", || {
            awaited.extend(await_orphans(&mark, &[spare]));
            !awaited.is_empty()
        });
        assert_eq!(awaited.iter().map(|end| end.process).collect::<Vec<_>>(), [pid]);
        assert!(!awaited[0].has_come());
        for child in [pid, spare] {
            kill(child, Signal::KILL).expect("killed");
        }
        until("nothing is left of the orphan", || Stat::of(pid).is_none());
        until("its end has come", || awaited[0].has_come());
        assert!(orphan.wait().is_err());
        until("the spared one is left to its starter", || Stat::of(spare).is_some_and(|stat| stat.state == 'Z'));
        assert!(spared.wait().is_ok());
        other.kill().and_then(|()| other.wait()).expect("killed");
    }
}
