//! Programs that pickfs runs outside any timer: how they are started, marked, limited and stopped.
//!
//! Host and target use it alike. It must not know why a program runs, nor what its output means.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "starts programs for all other rooms, and limits them"
)]

mod command;
mod deadline;
mod marked;
mod orphans;
mod stop;
mod strangers;
mod users;

pub use command::{
    Argv, Mark, NO_LISTING, OWN_FILE, argv, command, feed, feed_and_read, last_words, listing, output, output_of,
    output_up_to, own_program,
};
pub use deadline::Deadline;
pub use marked::{kill_marked, kill_marked_but_successors, kill_unmarked_children, kill_with_all, marked_processes};
pub use orphans::{EndOfOrphan, await_orphans};
pub use stop::{
    Interrupted, check_stop, count_signals, end_requested, obey_signals, request_end, request_stop, stop_on_signals,
    stop_requests,
};
pub use strangers::exposed;
pub use users::{users_of, writers_of};

/// The environment variable that names the run to every process that belongs to it.
pub const RUN_MARK: &str = "PICKFS_RUN";
/// The environment variable that names the cell to every process that belongs to it.
pub const CELL_MARK: &str = "PICKFS_CELL";
/// The environment variable of programs that a stack needs while it stands; they are no leak of a
/// workload.
pub const DAEMON_MARK: &str = "PICKFS_DAEMON";

/// Runs a program without marks; its output, or an error with its last words.
pub fn run_program(argv: &Argv) -> anyhow::Result<String> {
    output(argv, &[])
}
