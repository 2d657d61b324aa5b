//! What near and far say to each other: JSON, one message a line.

use serde::{Deserialize, Serialize};

/// What is to be run, on the standard input of `start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Order {
    /// Differs between any two runs that are begun; the same order twice begins one run.
    pub id: String,
    /// Text of the plan file; empty where the words stand for a plan, or a run is taken up.
    pub plan: String,
    /// Further words for `pickfs run`.
    pub words: Vec<String>,
    /// Bytes of the journal that are near already, where a run is to be taken up: what is far and
    /// not yet near is fetched first.
    pub resume: Option<u64>,
}

/// What came of a journal that was brought to a store, on the standard output of `take`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    New,
    /// The store had it.
    Known,
    Refused(String),
}

/// Messages of a run under way, on the standard output of `start` and `follow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FollowMessage {
    /// The run is under way, or has ended: it can be followed.
    There,
    Refused(String),
    /// Whole lines.
    Journal(String),
    /// Whole lines of its standard error.
    Messages(String),
    /// Nothing new.
    Alive,
    /// `code` is missing where nothing saw its end: the machine was started again, say.
    Ended {
        code: Option<i32>,
        bytes: u64,
        sha256: String,
    },
}
