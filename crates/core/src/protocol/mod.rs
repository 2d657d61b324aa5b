//! What host and agent say to each other: one request on the agent's stdin, then journal records on
//! its stdout, some of which wait for an [`Answer`].
//!
//! This room must not know how an agent is reached, what a cell measures, or how steps are undone.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts agents, and limits their silence")]

pub mod clock;
mod link;
mod message;
mod session;

pub use link::Link;
pub use message::*;
pub use session::{Connection, Exit, Heard, Session};

/// Exit code of an agent that was asked to stop and has undone everything.
pub const INTERRUPTED: u8 = 130;
