//! What tests of several crates share. Never part of a program.

pub mod noise;

/// Says why a test cannot run here. With `PICKFS_MUST_RUN` in the environment that is a failure.
#[track_caller]
pub fn not_run(why: impl std::fmt::Display) {
    assert!(std::env::var_os("PICKFS_MUST_RUN").is_none(), "it must run, but {why}");
    println!("{}: not run, because {why}", std::thread::current().name().unwrap_or("a test"));
}
