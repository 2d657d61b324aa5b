//! How many bytes LZ4 at a high level makes of content when it fills blocks of a fixed size: it counts what would be written, and
//! writes nothing.
//!
//! Made from the description of the block format (lz4_Block_format.md) and of what a high level does: chains of all places with
//! the same four bytes, of which the longest match within 64 KiB is taken, unless one that begins a byte or two later is longer. No code
//! of LZ4 is in here, so its matches differ a little.

const CHAIN_BITS: u32 = 15;
/// The golden ratio of 32 bits (Knuth, The Art of Computer Programming 3, 6.4).
pub(super) const GOLDEN: u32 = 0x9e37_79b1;
pub(super) const SHORTEST: usize = 4;
/// Least distances, in bytes: from the end of a match to the end of the block, and from its beginning.
const LAST_LITERALS: usize = 5;
pub(super) const LAST_MATCH: usize = 12;
const FARTHEST: usize = 65_535;
/// Places of a chain that are looked at: as level 9 does.
const TRIES: usize = 256;
const NONE: u32 = u32::MAX;

/// Tables, to be used again and again.
pub(crate) struct Filler {
    heads: Vec<u32>,
    /// The place before with the same hash, by place.
    chain: Vec<u32>,
}

impl Filler {
    pub(crate) fn new() -> Filler {
        Filler { heads: vec![NONE; 1 << CHAIN_BITS], chain: Vec::new() }
    }

    /// Bytes of the input that fill so much room at most, and the bytes that they take there.
    pub(crate) fn fill(&mut self, input: &[u8], room: usize) -> (usize, usize) {
        self.heads.fill(NONE);
        self.chain.clear();
        let (mut at, mut behind, mut written) = (0, 0, 0);
        while at + LAST_MATCH < input.len() && written + literals(at - behind) < room {
            let Some(mut length) = self.longest(input, at) else {
                at += 1;
                continue;
            };
            loop {
                let later = (1..=2).filter(|step| at + step + LAST_MATCH < input.len()).find_map(|step| {
                    self.longest(input, at + step).filter(|later| *later > length + step).map(|later| (step, later))
                });
                let Some((step, found)) = later else { break };
                length = found;
                at += step;
            }
            let sequence = literals(at - behind) + 2 + more(length - SHORTEST);
            if written + sequence > room {
                break;
            }
            written += sequence;
            at += length;
            behind = at;
        }
        let left = input.len() - behind;
        if written + literals(left) <= room {
            return (input.len(), written + literals(left));
        }
        (behind + most_literals(room - written), room)
    }

    /// The length of the longest match.
    fn longest(&mut self, input: &[u8], at: usize) -> Option<usize> {
        while self.chain.len() <= at {
            let place = self.chain.len();
            let head = &mut self.heads[(four(input, place).wrapping_mul(GOLDEN) >> (32 - CHAIN_BITS)) as usize];
            self.chain.push(*head);
            *head = place as u32;
        }
        let (mut best, mut place) = (SHORTEST - 1, self.chain[at]);
        for _ in 0..TRIES {
            if place == NONE || at - place as usize > FARTHEST {
                break;
            }
            best = best.max(common(input, place as usize, at));
            place = self.chain[place as usize];
        }
        (best >= SHORTEST).then_some(best)
    }
}

pub(super) fn four(input: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| input[at + i]))
}

pub(super) fn common(input: &[u8], early: usize, late: usize) -> usize {
    let most = input.len() - LAST_LITERALS - late;
    (0..most).take_while(|i| input[early + i] == input[late + i]).count()
}

/// A token and the bytes of a length beyond what it holds.
pub(super) fn more(length: usize) -> usize {
    if length < 15 { 0 } else { 1 + (length - 15) / 255 }
}

/// With the token that goes before them.
pub(super) fn literals(run: usize) -> usize {
    1 + more(run) + run
}

fn most_literals(room: usize) -> usize {
    let mut run = room.saturating_sub(1);
    while run > 0 && literals(run) > room {
        run -= 1;
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::random::Random;

    #[test]
    fn sequences_that_can_be_counted_by_hand() {
        let runs = [(0, 1), (14, 15), (15, 17), (269, 271), (270, 273)];
        assert_eq!(runs.map(|(run, _)| literals(run)), runs.map(|(_, bytes)| bytes));
        // A literal; a match of 994 bytes with distance 1 (a token, 2, and 4 for its length); 5 literals with their token.
        assert_eq!(Filler::new().fill(&[7; 1000], 4096), (1000, 2 + 2 + more(994 - SHORTEST) + 6));
        assert_eq!(Filler::new().fill(b"", 4096), (0, 1));
    }

    #[test]
    fn a_block_is_filled_and_no_more() {
        let mut noise = vec![0; 9000];
        Random::new(3, 1).fill(&mut noise);
        let mut filler = Filler::new();
        assert_eq!(filler.fill(&noise, 4096), (most_literals(4096), 4096));
        assert_eq!((most_literals(4096), literals(most_literals(4096))), (4079, 4096));
        let twice = [&noise[..3000], &noise[..3000], &noise[3000..]].concat();
        let (read, filled) = filler.fill(&twice, 4096);
        assert!((6900..7100).contains(&read) && filled == 4096, "{read} {filled}");
        assert_eq!(filler.fill(&twice, 4096), (read, filled), "nothing is left behind");
    }
}
