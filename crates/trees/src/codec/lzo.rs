//! How many bytes LZO1X-1 makes of a page: it counts what would be written, and writes nothing.
//!
//! Made from the description of the stream (the kernel's Documentation/staging/lzo.rst) and of the
//! matcher that its compressor is known for: one table of the last place of each hash of four
//! bytes, the first match is taken, and the longer nothing is found the longer the steps. No code
//! of LZO is in here, so the hash is another one: with as many places as the kernel's table has and
//! 4096 bytes to enter, what collides makes no difference worth telling.

/// Places of the hash table, as a power of two.
const TABLE_BITS: u32 = 13;
/// The golden ratio of 32 bits (Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN: u32 = 0x9e37_79b1;
/// No match begins within this many bytes of the end.
const TAIL: usize = 20;
/// A match is found by as many bytes.
const SHORTEST: usize = 4;
/// The instruction that ends a stream.
const END: u64 = 3;
/// Literals that the two spare bits of a match's last byte can tell of.
const FREE_LITERALS: usize = 3;
/// Literals that one byte can tell of.
const SHORT_RUN: usize = 18;
/// The same at the start of a stream which has nothing but literals.
const ONLY_RUN: usize = 238;
/// Length and distance of the matches that take two bytes.
const NEAR: (usize, usize) = (8, 0x800);
/// Length of the matches that take three bytes.
const SHORT_MATCH: usize = 33;

/// The table, to be used again and again.
pub(crate) struct Lzo {
    places: Box<[u16; 1 << TABLE_BITS]>,
}

impl Lzo {
    pub(crate) fn new() -> Lzo {
        Lzo { places: Box::new([0; 1 << TABLE_BITS]) }
    }

    /// Bytes that the stream for at most 64 KiB would have.
    pub(crate) fn bytes(&mut self, input: &[u8]) -> u64 {
        let (mut written, mut behind) = (0, 0);
        self.places.fill(0);
        let mut at = SHORTEST;
        while at + TAIL < input.len() {
            let Some(place) = self.last_seen(input, at) else {
                at += 1 + ((at - behind) >> 5);
                continue;
            };
            let length = common(input, place, at);
            written += literals(at - behind) + a_match(length, at - place);
            at += length;
            behind = at;
        }
        written + last_literals(input.len() - behind, written == 0) + END
    }

    /// Where the four bytes at `at` stood before, by the table, which learns of them.
    fn last_seen(&mut self, input: &[u8], at: usize) -> Option<usize> {
        let word = four(input, at);
        let entry = &mut self.places[(word.wrapping_mul(GOLDEN) >> (32 - TABLE_BITS)) as usize];
        let place = usize::from(std::mem::replace(entry, at as u16));
        (four(input, place) == word).then_some(place)
    }
}

fn four(input: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| input[at + i]))
}

fn eight(input: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| input[at + i]))
}

/// How many bytes from two places on are alike, to the tail or a few bytes beyond, four at least.
fn common(input: &[u8], early: usize, late: usize) -> usize {
    let mut length = SHORTEST;
    while late + length + TAIL < input.len() {
        let unlike = eight(input, early + length) ^ eight(input, late + length);
        if unlike != 0 {
            return length + (unlike.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length
}

/// Bytes for a run of literals between two matches, or before the first, which is never short
/// enough to be free.
fn literals(run: usize) -> u64 {
    let length_bytes = match run {
        0..=FREE_LITERALS => 0,
        _ if run <= SHORT_RUN => 1,
        _ => 2 + (run - SHORT_RUN - 1) / 255,
    };
    (run + length_bytes) as u64
}

fn last_literals(run: usize, only: bool) -> u64 {
    if only && (1..=ONLY_RUN).contains(&run) { run as u64 + 1 } else { literals(run) }
}

/// Matches further away than 16 KiB take one byte more, but a page has none.
fn a_match(length: usize, distance: usize) -> u64 {
    match length {
        _ if length <= NEAR.0 && distance <= NEAR.1 => 2,
        _ if length <= SHORT_MATCH => 3,
        _ => 4 + ((length - SHORT_MATCH - 1) / 255) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_matches_take_what_the_format_says() {
        let runs = [(0, 0), (3, 3), (4, 5), (18, 19), (19, 21), (273, 275), (274, 277)];
        assert_eq!(runs.map(|(run, _)| literals(run)), runs.map(|(_, bytes)| bytes));
        let matches =
            [(4, 2048, 2), (8, 1, 2), (8, 2049, 3), (9, 1, 3), (33, 1, 3), (34, 1, 4), (288, 1, 4), (289, 1, 5)];
        assert_eq!(matches.map(|(length, distance, _)| a_match(length, distance)), matches.map(|(_, _, bytes)| bytes));
    }

    #[test]
    fn pages_that_can_be_counted_by_hand() {
        let mut lzo = Lzo::new();
        assert_eq!(lzo.bytes(&[]), 3);
        assert_eq!(lzo.bytes(b"0123456789"), 14);
        // Four literals, one match of distance 4 to the tail, then the rest of the tail.
        let zeros = lzo.bytes(&[0; 4096]);
        assert!((4096 / 255 + 3..4096 / 255 + 40).contains(&zeros), "{zeros}");
        assert_eq!(lzo.bytes(&[0; 4096]), zeros, "the table is cleared");
    }
}
