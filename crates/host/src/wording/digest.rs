//! A run in the few words that a program can carry: what simulated runs that come with pickfs
//! found.

use super::text::plain;
use crate::analysis::{Model, WorkReport};
use pickfs_system::visible::visible;
use serde::{Deserialize, Serialize};

/// A work of a simulated run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    pub work: String,
    /// The model of the simulated disk.
    pub disk: String,
    pub kernel: String,
    /// On which it was run, as `2026-11-24`.
    pub day: String,
    /// The work with its data: "maildir (mail): 250 files, 14.4 MiB".
    pub data: String,
    pub rounds: usize,
    pub verdict: String,
}

/// A digest for each work; none of a run that is not simulated.
pub fn digests(model: &Model) -> Vec<Digest> {
    let [disk] = model.disks.as_slice() else { return Vec::new() };
    let Some(disk) = &disk.model else { return Vec::new() };
    let digest = |work: &WorkReport| Digest {
        work: work.name.clone(),
        disk: disk.clone(),
        kernel: model.kernel().unwrap_or_default(),
        day: model.started.chars().take("2026-11-24".len()).collect(),
        data: plain(&work.work_and_data()),
        rounds: work.rounds,
        verdict: visible(&verdict(model, work)),
    };
    model.works.iter().map(digest).collect()
}

/// Of the only work, what opens its report: where the plan says how often each phase happens, that
/// decides.
fn verdict(model: &Model, work: &WorkReport) -> String {
    match (&model.overall, model.works.as_slice()) {
        (Some(overall), [_]) => overall.work.headline(model),
        _ => work.headline(model),
    }
}
