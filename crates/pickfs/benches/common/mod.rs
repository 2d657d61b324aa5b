//! What benchmarks share.

#![allow(dead_code)] // each benchmark uses its part

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Set in a process whose mounts are its own.
const APART: &str = "PICKFS_BENCH_APART";

/// Starts this program anew in its own mount namespace: its mounts end with it, also when it is
/// killed. A loop device that mount(8) makes ends with its mount.
pub fn keep_mounts_apart() {
    if !rustix::process::geteuid().is_root() || std::env::var_os(APART).is_some() {
        return;
    }
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--"]).arg(own).args(std::env::args_os().skip(1));
    panic!("unshare: {}", command.env(APART, "1").exec());
}

pub fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().expect("the program starts");
    assert!(status.success(), "{program} {words:?}");
}

pub fn text(path: &Path) -> String {
    path.display().to_string()
}
