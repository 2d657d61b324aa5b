//! Bytes that compressors treat as they treat real data: words by Zipf's law, repeats of what came
//! shortly before, and noise, in the proportions of a recipe.
//!
//! Zeros between random bytes, as many benchmarks write, shrink alike under every compressor and at
//! no cost, which would erase exactly the differences that are to be measured. Here entropy coders
//! gain on words, LZO gains on repeats (btrfs lets it see 4 KiB at a time), and no compressor gains
//! on noise; a compressor has to work for its gain, as it does on real data. [`recipes`] measures
//! what each recipe compresses to.
//!
//! No block comes twice, and none is all zeros.

pub mod recipes;
pub mod vocabulary;

use crate::codec::PIECE;
use crate::content::vocabulary::{SLOT, VOCABULARIES, Vocabulary};
use crate::profile::Stuff;
use pickfs_system::random::{Random, scale};
use recipes::Mixture;

/// How to make bytes: what each step does, by chances of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// An index of [`VOCABULARIES`].
    pub vocabulary: u8,
    /// The chance of repeating bytes.
    pub repeats: u8,
    /// A repeat is of 8 to 8 + this many bytes; a power of two less one.
    pub longest: u16,
    /// Repeats start at most so far back.
    pub reach: u16,
    /// The chance of sixteen random bytes.
    pub noise: u8,
    /// Bits of each such byte that are random: 8, or fewer for what is like encoded text.
    pub bits: u8,
}

/// What no compressor shrinks: media, archives, ciphers.
pub const MEDIA: Recipe = Recipe { vocabulary: 0, repeats: 0, longest: 0, reach: 0, noise: 255, bits: 8 };

/// The most that a step may write beyond what it counts.
const SLACK: usize = 4096 + 64;

/// Makes content in its own buffer, again and again.
pub struct Content {
    vocabularies: [Option<Vocabulary>; VOCABULARIES.len()],
    buffer: Vec<u8>,
    /// Found once for each stuff and size, as makers of many files ask for the same ones again and
    /// again.
    known: Vec<((Stuff, usize), Recipe)>,
}

impl Default for Content {
    fn default() -> Content {
        Content::new()
    }
}

impl Content {
    pub fn new() -> Content {
        Content { vocabularies: std::array::from_fn(|_| None), buffer: Vec::new(), known: Vec::new() }
    }

    /// Makes `bytes` bytes by the recipe that comes nearest to this kind of content.
    pub fn like(&mut self, stuff: Stuff, random: &mut Random, bytes: usize) -> &[u8] {
        let recipe = self.recipe(stuff, bytes.next_power_of_two().min(PIECE));
        self.make(&recipe, random, bytes)
    }

    fn recipe(&mut self, stuff: Stuff, unit: usize) -> Recipe {
        if let Some((_, recipe)) = self.known.iter().find(|(of, _)| *of == (stuff, unit)) {
            return *recipe;
        }
        let Mixture { recipes, first } = recipes::mixture(&recipes::of_stuff(stuff), unit as u64);
        let recipe = recipes[usize::from(first < 0.5)];
        self.known.push(((stuff, unit), recipe));
        recipe
    }

    /// Makes `bytes` bytes; the next call overwrites them.
    pub fn make(&mut self, recipe: &Recipe, random: &mut Random, bytes: usize) -> &[u8] {
        if self.buffer.len() < bytes + SLACK {
            self.buffer.resize(bytes + SLACK, 0);
        }
        if recipe.noise == u8::MAX && recipe.bits == 8 {
            random.fill(&mut self.buffer[..bytes]);
            return &self.buffer[..bytes];
        }
        let number = usize::from(recipe.vocabulary) % VOCABULARIES.len();
        let vocabulary = self.vocabularies[number].get_or_insert_with(|| Vocabulary::new(&VOCABULARIES[number]));
        write(recipe, vocabulary, random, &mut self.buffer[..bytes + SLACK]);
        &self.buffer[..bytes]
    }
}

/// All but the slack. One loop, as this must be faster than any file system.
fn write(recipe: &Recipe, vocabulary: &Vocabulary, random: &mut Random, out: &mut [u8]) {
    let repeats = u64::from(recipe.repeats);
    let noise = repeats + u64::from(recipe.noise);
    let (longest, reach) = (u64::from(recipe.longest), u64::from(recipe.reach));
    let mask = letters(recipe.bits);
    let end = out.len() - SLACK;
    let mut at = 0;
    while at < end {
        let bits = random.bits();
        let choice = bits & 0xff;
        if choice < repeats && at > SLOT {
            let length = 8 + (bits >> 8 & longest) as usize;
            let back = SLOT + scale(bits << 24, reach.min((at - SLOT) as u64)) as usize;
            repeat(out, at, back, length);
            at += length;
        } else if choice >= repeats && choice < noise {
            let both = [random.bits(), random.bits()];
            for (part, bits) in both.iter().enumerate() {
                let letters = ((bits & mask.0) + mask.1).to_le_bytes();
                out[at + 8 * part..at + 8 * part + 8].copy_from_slice(&letters);
            }
            at += SLOT;
        } else {
            for part in 0..3 {
                let (word, length) = vocabulary.word((bits >> (16 + 16 * part)) as u16);
                out[at..at + SLOT].copy_from_slice(word);
                at += length;
            }
        }
    }
}

/// Sixteen bytes at a time, each of which stands before its copy is made, as no repeat starts
/// nearer.
#[inline]
fn repeat(out: &mut [u8], at: usize, back: usize, length: usize) {
    for step in (0..length).step_by(SLOT) {
        let from = at + step - back;
        let (before, after) = out.split_at_mut(at + step);
        after[..SLOT].copy_from_slice(&before[from..from + SLOT]);
    }
}

/// Which bits of eight bytes are random, and what is added to each byte so that few bits look like
/// text.
fn letters(bits: u8) -> (u64, u64) {
    let each = |byte: u8| u64::from_le_bytes([byte; 8]);
    match bits {
        8.. => (u64::MAX, 0),
        6 | 7 => (each(0x3f), each(b' ')),
        _ => (each(0x0f), each(b'a')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::recipes::recipes;
    use std::collections::HashSet;

    fn made(recipe: &Recipe, bytes: usize) -> Vec<u8> {
        Content::new().make(recipe, &mut Random::new(7, 1), bytes).to_vec()
    }

    #[test]
    fn no_block_comes_twice_or_is_zero() {
        for entry in recipes() {
            let bytes = made(&entry.recipe, 4 << 20);
            let blocks: HashSet<&[u8]> = bytes.chunks(4096).collect();
            assert_eq!(blocks.len(), 1024, "{:?}", entry.recipe);
            assert!(!blocks.contains(&[0; 4096][..]));
        }
    }

    #[test]
    fn a_longer_piece_begins_as_a_shorter_one() {
        let mut content = Content::new();
        for entry in recipes() {
            let mut of = |bytes| content.make(&entry.recipe, &mut Random::new(3, 9), bytes).to_vec();
            let (long, short) = (of(10_000), of(777));
            assert_eq!([short.len(), long.len()], [777, 10_000]);
            assert!(long.starts_with(&short), "{:?}: what was in the buffer shows", entry.recipe);
        }
    }
}
