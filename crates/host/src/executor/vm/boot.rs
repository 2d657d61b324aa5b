//! What the first and the second boot of a guest share: how QEMU is started, and how its end is
//! explained.

use super::build::Guest;
use super::console::Tail;
use super::names::how;
use super::qemu;
use anyhow::{Result, anyhow};
use pickfs_core::protocol::{Connection, Exit, Session};
use pickfs_system::process::{CELL_MARK, Interrupted, RUN_MARK};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

/// An emulated kernel on a busy machine may panic in its check of timers (`IO-APIC + timer doesn't
/// work`), though nothing is wrong with it: so often it is booted before that is the cell's
/// failure.
pub(crate) const BOOTS: u32 = 3;
/// From the start of QEMU until the first word, emulated on a busy machine.
pub(crate) const BOOT_PATIENCE: Duration = Duration::from_secs(180);

/// What a kernel says that is gone.
pub(crate) const PANIC: &str = "Kernel panic";

pub(crate) fn in_each_boot(why: &str) -> String {
    format!("in each of {BOOTS} boots {why}")
}

/// With how QEMU ended, if it did so itself, and the last words of both.
pub(crate) fn explained(why: &str, exit: &Exit, console: &Tail) -> String {
    console.finish();
    // What QEMU prints on the processor that it emulates at each start.
    let words = exit.last_words().filter(|words| words.split(" / ").any(|line| !line.contains("TCG doesn't support")));
    let errors = words.map(|words| format!(": {words}")).unwrap_or_default();
    let failed = exit.status.filter(|status| !status.success());
    let qemu = failed.map(|status| format!("; QEMU ended {}{errors}", how(status))).unwrap_or_default();
    let console = console.words(0).map(|words| format!("; the guest's console ends with: {words}"));
    format!("{why}{qemu}{}", console.unwrap_or_default())
}

/// How long QEMU may take to end after it was asked to.
const ENDING: Duration = Duration::from_secs(10);

/// How long an emulator that another program killed may take to be dead: its sockets are closed
/// before.
const DYING: Duration = Duration::from_millis(500);

/// Awaits the end of an emulator that was asked to end, or ends it where `done` is why it is of no
/// use, and adds the last words of both. It is killed also where we were interrupted: one that
/// still starts makes its files again in a folder that is being removed. `console` is asked for
/// when it has ended.
pub(crate) fn end<T>(done: Result<T>, connection: Connection, console: impl FnOnce() -> Tail) -> Result<T> {
    let patience = if done.is_ok() { ENDING } else { DYING };
    let ended = Session::start(connection, &()).and_then(|session| session.end(Some(patience)));
    match (done, ended) {
        (Err(error), Ok(exit)) if !error.is::<Interrupted>() => {
            Err(anyhow!(explained(&format!("{error:#}"), &exit, &console())))
        }
        (Ok(_), Err(error)) => Err(error),
        (done, _) => done,
    }
}

/// Whether the host ended QEMU, as the kernel does when memory is short: nothing of a guest can
/// send this signal.
pub(crate) fn is_killed(exit: &Exit) -> bool {
    exit.status.and_then(|status| status.signal()) == Some(libc::SIGKILL)
}

/// A program that ends with us, whatever ends us.
pub(crate) fn emulator(words: &[String], run: &str, cell: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(words).env(RUN_MARK, run).env(CELL_MARK, cell);
    command
}

/// Starts QEMU. The console is listened to before it can speak.
pub(crate) fn connect(guest: &Guest, machine: &qemu::Machine, run: &str, cell: &str) -> Result<(Connection, Tail)> {
    let words = qemu::command(guest, machine)?;
    let console = Tail::of_pipe(&machine.console)?;
    Ok((Connection::open(&mut emulator(&words, run, cell))?, console))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::sys::process::{Signal, kill};

    #[test]
    fn an_emulator_of_no_use_is_ended_and_one_that_others_killed_is_told() {
        for (is_killed, wanted) in [(true, "no luck; QEMU ended by signal 9"), (false, "no luck")] {
            let connection = Connection::open(Command::new("sleep").arg("600")).expect("a program");
            let process = connection.child.id() as i32;
            if is_killed {
                kill(process, Signal::KILL).expect("killed");
            }
            let error = end::<()>(Err(anyhow!("no luck")), connection, || Tail::of(|| Ok(std::io::empty())));
            let error = error.expect_err("of no use").to_string();
            assert!(error.starts_with(wanted) && error.contains("QEMU") == is_killed, "{error}");
            assert!(kill(process, Signal::KILL).is_err(), "it still runs");
        }
    }
}
