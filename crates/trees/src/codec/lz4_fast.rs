//! How many bytes LZ4 at its fastest makes of an input of at most 64 KiB: it counts what would be written, and writes nothing.
//!
//! Made from the description of the block format (lz4_Block_format.md) and of what the fast level does: a table with the last
//! place of each hash of four bytes, and steps that grow by one after 64 places without a match. Inputs of that size have a table of 8192
//! places, in the library and in Linux alike. No code of LZ4 is in here.

use super::lz4::{GOLDEN, LAST_MATCH, SHORTEST, common, four, literals, more};

/// The largest input.
pub(crate) const LARGEST: usize = 64 << 10;
const HASH_BITS: u32 = 13;
/// Places without a match after which the step grows.
const PATIENCE: usize = 64;

/// A table, to be used again and again: of each hash the last place.
pub(crate) struct Table(Vec<u16>);

impl Table {
    pub(crate) fn new() -> Table {
        Table(vec![0; 1 << HASH_BITS])
    }

    /// Compressed bytes of at most [`LARGEST`].
    pub(crate) fn bytes(&mut self, input: &[u8]) -> u64 {
        self.0.fill(0);
        let (mut behind, mut written) = (0, 0);
        let mut from = 1;
        while let Some((at, earlier)) = self.search(input, from) {
            let back =
                (1..=earlier.min(at - behind)).take_while(|back| input[at - back] == input[earlier - back]).count();
            let (mut at, mut earlier) = (at - back, earlier - back);
            written += literals(at - behind);
            loop {
                let length = common(input, earlier, at);
                written += 2 + more(length - SHORTEST);
                at += length;
                behind = at;
                if at + LAST_MATCH > input.len() {
                    return (written + literals(input.len() - behind)) as u64;
                }
                self.swap(input, at - 2);
                earlier = self.swap(input, at);
                if four(input, earlier) != four(input, at) {
                    break;
                }
                written += literals(0);
            }
            from = at + 1;
        }
        (written + literals(input.len() - behind)) as u64
    }

    /// The next place from there that has a match, and where that is.
    fn search(&mut self, input: &[u8], from: usize) -> Option<(usize, usize)> {
        let (mut at, mut looked) = (from, PATIENCE - 1);
        loop {
            let next = at + (looked / PATIENCE).max(1);
            if next + LAST_MATCH > input.len() {
                return None;
            }
            let earlier = self.swap(input, at);
            if four(input, earlier) == four(input, at) {
                return Some((at, earlier));
            }
            (at, looked) = (next, looked + 1);
        }
    }

    /// Puts a place into the table, and returns the one that was there.
    fn swap(&mut self, input: &[u8], at: usize) -> usize {
        let hash = four(input, at).wrapping_mul(GOLDEN) >> (u32::BITS - HASH_BITS);
        std::mem::replace(&mut self.0[hash as usize], at as u16) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;
    use crate::profile::Stuff;
    use pickfs_system::random::Random;

    #[test]
    fn sequences_that_can_be_counted_by_hand() {
        let mut table = Table::new();
        // A literal; a match of 994 bytes with distance 1 (a token, 2, and 4 for its length); 5 literals with their token.
        assert_eq!(table.bytes(&[7; 1000]), 2 + 2 + more(994 - SHORTEST) as u64 + 6);
        for (input, bytes) in [(&b""[..], 1), (b"x", 2), (b"abcdabcdabcda", 14)] {
            assert_eq!(table.bytes(input), bytes, "{input:?}");
        }
    }

    /// What liblz4 1.9.4 (LZ4_compress_default) made of the same bytes.
    #[test]
    fn sizes_are_those_of_the_library() {
        let mut table = Table::new();
        let found: Vec<u64> = [Stuff::Source, Stuff::Media]
            .into_iter()
            .flat_map(|stuff| {
                let made = Content::new().like(stuff, &mut Random::new(7, 1), LARGEST).to_vec();
                [5000, 16 << 10, LARGEST].map(|bytes| table.bytes(&made[..bytes]))
            })
            .collect();
        assert_eq!(found, [1527, 4455, 16_572, 5021, 16_450, 65_794]);
    }
}
