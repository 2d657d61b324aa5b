//! What a replay writes: bytes that compress as those of the recording did.

use crate::data::content::Content;
use crate::data::profile::Stuff;
use crate::data::random::Random;
use crate::trace::{CLASSES, Trace};

/// What each class of a trace is made of, from what no compressor shrinks to what shrinks most.
const STUFF: [Stuff; CLASSES as usize] = [Stuff::Media, Stuff::Object, Stuff::Source, Stuff::Log];

/// Bytes of each class, to cut from.
pub struct Bytes(Vec<Vec<u8>>);

/// At least so many, so that what is cut twice in a row is seldom the same.
const LEAST: u64 = 2 << 20;
/// Longer writes are made of parts.
const MOST: u64 = 32 << 20;

impl Bytes {
    pub fn new(trace: &Trace, seed: u64) -> Bytes {
        let longest = trace.ops.iter().filter(|op| op.kind.class() == crate::trace::Class::Write).map(|op| op.length);
        let bytes = (2 * longest.max().unwrap_or(0)).clamp(LEAST, MOST) as usize;
        let mut content = Content::new();
        let made = |(number, stuff): (u64, Stuff)| content.like(stuff, &mut Random::new(seed, number), bytes).to_vec();
        Bytes((1..).zip(STUFF).map(made).collect())
    }

    /// For a write of this number: up to so many bytes, always the same, whatever came before it.
    pub fn piece(&self, class: u8, number: u32, length: u64) -> &[u8] {
        let bytes = &self.0[usize::from(class % CLASSES)];
        let length = length.min(bytes.len() as u64 / 2) as usize;
        let mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Spread over all places where a piece can begin, without a division.
        let at = ((u128::from(mixed) * (bytes.len() - length) as u128) >> 64) as usize;
        &bytes[at..at + length]
    }
}
