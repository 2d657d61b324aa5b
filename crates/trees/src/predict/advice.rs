//! Whether compression is worth turning on, and with which codec.

use super::rules::CODECS;
use super::{Predicted, Prediction};

/// Savings, as shares of what is stored without compression: below the first no setting is worth
/// it, above the second one surely is.
pub const LITTLE: f64 = 0.03;
const MUCH: f64 = 0.10;
/// The fastest codec that saves this share of what the best one saves is recommended.
const NEARLY: f64 = 0.8;
/// Further savings below this share are not worth a word.
const WORTH_NAMING: f64 = 0.005;

/// What to do with compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// The sample does not show whether anything is saved.
    Unknown,
    None,
    Little,
    Much,
}

/// The advice for one file system.
pub struct Advice<'a> {
    pub gain: Gain,
    /// The recommended way.
    pub pick: &'a Predicted,
    /// The share of what is stored without compression that the pick saves.
    pub saves: f64,
    pub more: Option<More<'a>>,
}

/// A way that saves clearly more than the pick.
pub struct More<'a> {
    pub way: &'a Predicted,
    /// The further saving, as a share of what is stored without compression.
    pub share: f64,
    /// Speed as a share of the pick's, where both are known.
    pub speed: Option<f64>,
}

impl Prediction {
    /// `None` for a file system of which no way to compress was predicted.
    pub fn advice(&self, filesystem: &str) -> Option<Advice<'_>> {
        let mut ways = self.ways.iter().filter(|way| way.way.rules.filesystem == filesystem);
        let plain = ways.next()?.stored.bytes.max(1.0);
        let saves = |way: &Predicted| 1.0 - way.stored.bytes / plain;
        let best = ways.clone().max_by(|a, b| saves(a).total_cmp(&saves(b)))?;
        let speed = |way: &Predicted| self.speed(way).unwrap_or(0.0);
        let nearly = ways.filter(|way| saves(way) >= NEARLY * saves(best));
        let pick = nearly.max_by(|a, b| speed(a).total_cmp(&speed(b))).unwrap_or(best);
        let gain = match saves(best) {
            best if best < LITTLE => Gain::None,
            _ if pick.stored.interval().1 > (1.0 - LITTLE) * plain => Gain::Unknown,
            best if best < MUCH => Gain::Little,
            _ => Gain::Much,
        };
        let share = saves(best) - saves(pick);
        let speed = self.speed(pick).zip(self.speed(best)).map(|(pick, best)| best / pick);
        let more = (share >= WORTH_NAMING).then_some(More { way: best, share, speed });
        Some(Advice { gain, pick, saves: saves(pick), more })
    }

    /// Bytes a second that one processor compresses; `None` where it was not measured.
    pub fn speed(&self, predicted: &Predicted) -> Option<f64> {
        let index = CODECS.iter().position(|codec| Some(*codec) == predicted.way.codec)?;
        self.speeds[index]
    }
}
