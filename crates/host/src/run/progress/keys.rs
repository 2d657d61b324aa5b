//! Keys while a run goes on, and when the terminal is another's for a while.
//!
//! The terminal gives keys at once and shows none meanwhile. It is put back when this is dropped,
//! before the process is suspended (Ctrl-Z) and before it is ended by Ctrl-\; a shell does the same
//! after SIGKILL.

use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr,
};
use signal_hook::consts::{SIGQUIT, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::{Stdin, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A person does not notice it, and it takes no time from what is measured.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) enum Event {
    /// A letter in lower case, or any other byte of the keyboard.
    Key(u8),
    /// The process is about to be suspended, or ended by a signal.
    Suspending,
    /// It is in the foreground again.
    Back,
}

pub(crate) struct Keys {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    /// `None` where there is no keyboard, or another program reads it.
    pub(crate) fn listen(heard: impl Fn(Event) + Send + 'static) -> Option<Keys> {
        // A pager behind our output reads the same keyboard.
        if !isatty(stdin()) || !isatty(std::io::stdout()) || !is_ours() {
            return None;
        }
        let signals = Signals::new([SIGTSTP, SIGQUIT]).ok()?;
        let mode = Mode::take()?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let thread = std::thread::spawn(move || look_until(&ends, mode, signals, heard));
        Some(Keys { over, thread: Some(thread) })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn look_until(over: &AtomicBool, mut mode: Mode, mut signals: Signals, heard: impl Fn(Event)) {
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(LOOK);
        for signal in signals.pending() {
            heard(Event::Suspending);
            mode.put_back();
            let _ = emulate_default_handler(signal);
            // Back from being suspended, perhaps into the background.
            if is_ours() {
                mode.set();
                heard(Event::Back);
            }
        }
        if is_ours() {
            pressed().into_iter().for_each(|key| heard(Event::Key(key)));
        }
    }
}

/// The terminal listens to us: a reader in the background would be stopped by the kernel.
fn is_ours() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// Since the last look.
fn pressed() -> Vec<u8> {
    let mut keys = [0; 64];
    let read = rustix::io::read(stdin(), &mut keys).unwrap_or(0);
    keys[..read].to_ascii_lowercase()
}

/// How the terminal was, put back on drop.
struct Mode {
    terminal: Stdin,
    before: Termios,
}

impl Mode {
    fn take() -> Option<Mode> {
        let terminal = stdin();
        let before = tcgetattr(&terminal).ok()?;
        let mode = Mode { terminal, before };
        mode.set().then_some(mode)
    }

    /// Keys come one by one, unseen, and reading waits for none. Ctrl-C, Ctrl-\ and Ctrl-Z stay
    /// signals.
    fn set(&self) -> bool {
        let mut mode = self.before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        mode.special_codes[SpecialCodeIndex::VMIN] = 0;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&self.terminal, OptionalActions::Now, &mode).is_ok()
    }

    /// In the background the terminal is another's.
    fn put_back(&mut self) {
        if is_ours() {
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
        }
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        self.put_back();
    }
}
