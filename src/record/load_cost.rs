//! What the library that records takes of a program's processor time while the dynamic linker loads it, to be taken off the first time to
//! think.

use super::stop_cost::median;
use crate::sys::process::wait_with_usage;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

/// A program that does nothing, and is everywhere.
const PROGRAM: &str = "true";
const ROUNDS: usize = 15;
/// For fewer starts it is not worth the 25 ms that it takes to find out.
const MANY: u32 = 8;

/// Found out beside the program, once it has started some others.
pub struct LoadCost {
    library: String,
    loads: u32,
    ns: Arc<OnceLock<u64>>,
}

impl LoadCost {
    pub fn new(library: String) -> LoadCost {
        LoadCost { library, loads: 0, ns: Arc::default() }
    }

    /// Nanoseconds that a load takes, from now on; 0 as long as that is not known. The library was loaded once more.
    pub fn loaded(&mut self) -> u64 {
        self.loads += 1;
        if self.loads == MANY {
            let (library, ns) = (self.library.clone(), self.ns.clone());
            std::thread::spawn(move || ns.set(measured(&library)));
        }
        self.ns.get().copied().unwrap_or(0)
    }
}

/// With and without it in turn.
fn measured(library: &str) -> u64 {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        with.extend(cpu_ns(Command::new(PROGRAM).env("LD_PRELOAD", library)));
        without.extend(cpu_ns(Command::new(PROGRAM).env_remove("LD_PRELOAD")));
    }
    median(with).saturating_sub(median(without))
}

fn cpu_ns(command: &mut Command) -> Option<u64> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let (_, used) = wait_with_usage(child.id() as i32).ok()?;
    Some(used.user_ns + used.system_ns)
}
