//! ptrace(2): processes that stop at their system calls, so that another one can see what they ask
//! for and what they get.
//!
//! All functions are for the thread that called [`seize`]: the kernel refuses others. Not the `nix`
//! crate, whose wait fails on signals that it has no name for (a C library sends such to its own
//! threads), after which the process is stopped for good.

use super::process::process_id;
use super::seccomp::ARCHITECTURE;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A system call on its way in.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub number: i64,
    pub arguments: [u64; 6],
}

/// Why a thread has stopped.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// At a call that its filter watches, before the kernel does it.
    Entry(Call),
    /// After that call: its result, or minus the number of an error.
    Exit(i64),
    /// It has started another thread or process, which is watched too.
    Started(i32),
    /// It runs another program now; all threads of its process but itself are gone. Its former
    /// thread id.
    Executed(i32),
    /// It is about to end, and its memory is still there.
    Ending,
    /// It has just come to be.
    New,
    /// Its whole process is stopped by this signal (job control).
    Group,
    /// This signal is about to be delivered.
    Signal(i32),
}

/// What a wait came to.
#[derive(Debug)]
pub enum Event {
    Stopped(i32, Stop),
    Ended(i32, ExitStatus),
    /// There is nothing left to wait for.
    NoneLeft,
    /// A signal came, such as that of [`tick`].
    Tick,
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Until the next call that its filter watches.
    ToEntry,
    /// Until the end of the call that it is in.
    ToExit,
    /// It stays stopped until SIGCONT comes.
    Stay,
}

/// Watches a child and all that it will start. They are killed when the caller ends.
pub fn seize(pid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT;
    request(libc::PTRACE_SEIZE, pid, 0, options as usize).map(drop)
}

/// Watches a thread that runs already, and all that it will start. It goes on, and outlives the
/// caller.
pub fn seize_running(tid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT;
    request(libc::PTRACE_SEIZE, tid, 0, options as usize).map(drop)
}

/// Stops a watched thread, unless it is gone.
pub fn interrupt(tid: i32) {
    let _ = request(libc::PTRACE_INTERRUPT, tid, 0, 0);
}

/// Ends the watching of a stopped thread, which goes on, with a signal where that is not 0.
pub fn detach(tid: i32, signal: i32) {
    let _ = request(libc::PTRACE_DETACH, tid, 0, signal as usize);
}

/// From now on [`wait`] returns at least that often.
pub fn tick(every: std::time::Duration) -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all zeros is a valid value of it: no flags, so that calls are interrupted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the pointer is to a value that lives through the call; the handler does nothing.
    if unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let interval = libc::timeval { tv_sec: every.as_secs() as i64, tv_usec: i64::from(every.subsec_micros()) };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: the pointer is to a value that lives through the call.
    match unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets a stopped thread go on, with a signal where that is not 0. A thread that is gone is no
/// error.
pub fn resume(tid: i32, how: Resume, signal: i32) -> io::Result<()> {
    let kind = match how {
        Resume::ToEntry => libc::PTRACE_CONT,
        Resume::ToExit => libc::PTRACE_SYSCALL,
        Resume::Stay => libc::PTRACE_LISTEN,
    };
    match request(kind, tid, 0, signal as usize) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other.map(drop),
    }
}

/// Waits for any thread that is watched; children of the caller's other threads are theirs.
pub fn wait() -> io::Result<Event> {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a value that lives through the call.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) } {
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => return Ok(Event::Tick),
                error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Event::NoneLeft),
                error => return Err(error),
            },
            tid if libc::WIFSTOPPED(status) => {
                // It was killed while it was stopped, which its end will say.
                let Ok(stop) = stop(tid, status) else { continue };
                return Ok(Event::Stopped(tid, stop));
            }
            tid => return Ok(Event::Ended(tid, ExitStatus::from_raw(status))),
        }
    }
}

fn stop(tid: i32, status: i32) -> io::Result<Stop> {
    let signal = libc::WSTOPSIG(status);
    Ok(match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => entry(tid)?,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => Stop::Started(message(tid)?),
        libc::PTRACE_EVENT_EXEC => Stop::Executed(message(tid)?),
        libc::PTRACE_EVENT_EXIT => Stop::Ending,
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::New,
        libc::PTRACE_EVENT_STOP => Stop::Group,
        _ if signal == libc::SIGTRAP | 0x80 => at_call(tid)?,
        _ => Stop::Signal(signal),
    })
}

/// What PTRACE_GET_SYSCALL_INFO (Linux 5.3) says.
fn information(tid: i32) -> io::Result<libc::ptrace_syscall_info> {
    // SAFETY: all zeros is a valid value of it.
    let mut found: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::ptrace_syscall_info>();
    request(libc::PTRACE_GET_SYSCALL_INFO, tid, size, &raw mut found as usize)?;
    Ok(found)
}

/// None of ours for a program of another architecture, whose numbers mean other calls.
fn number(found: &libc::ptrace_syscall_info, number: u64) -> i64 {
    if found.arch == ARCHITECTURE { number as i64 } else { -1 }
}

fn entry(tid: i32) -> io::Result<Stop> {
    let found = information(tid)?;
    if found.op != libc::PTRACE_SYSCALL_INFO_SECCOMP {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: for this `op` the kernel has filled that member.
    let call = unsafe { found.u.seccomp };
    Ok(Stop::Entry(Call { number: number(&found, call.nr), arguments: call.args }))
}

/// Before or after a call: of programs without a filter both are seen.
fn at_call(tid: i32) -> io::Result<Stop> {
    let found = information(tid)?;
    if found.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
        // SAFETY: for this `op` the kernel has filled that member.
        let call = unsafe { found.u.entry };
        return Ok(Stop::Entry(Call { number: number(&found, call.nr), arguments: call.args }));
    }
    if found.op != libc::PTRACE_SYSCALL_INFO_EXIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: for this `op` the kernel has filled that member.
    Ok(Stop::Exit(unsafe { found.u.exit }.sval))
}

fn message(tid: i32) -> io::Result<i32> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize)?;
    Ok(message as i32)
}

/// One request. Requests that write get, as `data`, the address of a value that the caller keeps
/// until it returns.
fn request(kind: libc::c_uint, tid: i32, address: usize, data: usize) -> io::Result<i64> {
    let tid = process_id(tid)?.as_raw_nonzero().get();
    // SAFETY: this file's requests write at most into a value of the right type whose address its
    // caller passes and keeps.
    match unsafe { libc::ptrace(kind, tid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Reads memory of a stopped thread into `buffer`; how many bytes there were up to the first that
/// cannot be read.
pub fn read_memory(tid: i32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the local part is `buffer`, which lives through the call; the remote address is the
    // other process's own.
    match unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) } {
        -1 => Err(io::Error::last_os_error()),
        bytes => Ok(bytes as usize),
    }
}

/// Puts another first argument into the call that a stopped thread is about to make.
#[cfg(target_arch = "x86_64")]
pub fn set_first_argument(tid: i32, value: u64) -> io::Result<()> {
    let at = std::mem::offset_of!(libc::user, regs) + std::mem::offset_of!(libc::user_regs_struct, rdi);
    request(libc::PTRACE_POKEUSER, tid, at, value as usize).map(drop)
}

#[cfg(not(target_arch = "x86_64"))]
pub fn set_first_argument(_: i32, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Writes a number into the memory of a stopped thread.
pub fn write_word(tid: i32, address: u64, value: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEDATA, tid, address as usize, value as usize).map(drop)
}

/// Reads text up to its NUL; at most PATH_MAX bytes, as the kernel takes no longer path.
pub fn read_text(tid: i32, address: u64) -> io::Result<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    let mut at = address;
    while text.len() < libc::PATH_MAX as usize {
        // Not beyond a page: the next may not be there.
        let piece = (PAGE - at % PAGE).min(if text.is_empty() { 256 } else { PAGE }) as usize;
        let from = text.len();
        text.resize(from + piece, 0);
        let read = read_memory(tid, at, &mut text[from..])?;
        text.truncate(from + read);
        if let Some(end) = text[from..].iter().position(|byte| *byte == 0) {
            text.truncate(from + end);
            return Ok(text);
        }
        at += piece as u64;
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}

/// The calling process ignores interrupts from now on: one from the keyboard is for the program
/// that it watches.
pub fn ignore_interrupts() {
    // SAFETY: it installs no handler, it only ignores.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGQUIT, libc::SIG_IGN) };
}

/// True once another process watches the caller.
pub fn is_watched() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
}
