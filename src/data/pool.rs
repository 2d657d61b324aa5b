//! Content for many gigabytes at the speed of memory: blocks cut from some megabytes of each class, none of them twice.
//!
//! The stretch of a class is handed out from its start to its end, again and again, each time from one byte further on.
//! A file begins and goes on at whole blocks of that sequence, so that its blocks are all different ones for 4096 rounds
//! of a stretch, 32 GiB of a class: nothing that finds equal blocks gains by it. What compressors see of a file, 128 KiB
//! at a time, is as [`super::content`] made it.

use super::content::{Class, Content};
use super::random::Random;
use std::io::{Result, Write};

/// Of each class.
const STRETCH: usize = 8 << 20;
const BLOCK: usize = 4096;

pub struct Pool {
    stretches: Vec<Stretch>,
}

struct Stretch {
    class: Class,
    bytes: Vec<u8>,
    /// Where the next block begins: how many rounds before it, and how many blocks of this one.
    round: usize,
    block: usize,
}

impl Pool {
    pub fn new(seed: u64) -> Pool {
        let content = Content::new(seed);
        let stretch = |(stream, class): (u64, Class)| {
            let mut bytes = Vec::new();
            content.fill(class, &mut Random::new(seed, stream), &mut bytes, STRETCH);
            Stretch { class, bytes, round: 0, block: 0 }
        };
        Pool { stretches: (1..).zip([Class::Text, Class::Object, Class::Media]).map(stretch).collect() }
    }

    /// Writes a file's bytes; what is handed out depends on all that was written before.
    pub fn write(&mut self, class: Class, bytes: u64, out: &mut impl Write) -> Result<()> {
        let stretch = self.stretches.iter_mut().find(|stretch| stretch.class == class).expect("every class has one");
        let mut left = bytes;
        while left > 0 {
            let piece = stretch.next(left);
            out.write_all(piece)?;
            left -= piece.len() as u64;
        }
        Ok(())
    }
}

impl Stretch {
    /// As much as there is in one piece, of at most so many bytes; a part of a block uses up the whole.
    fn next(&mut self, most: u64) -> &[u8] {
        let blocks_of_round = (STRETCH - BLOCK) / BLOCK;
        let from = self.round % BLOCK + self.block * BLOCK;
        let blocks = (blocks_of_round - self.block).min(most.div_ceil(BLOCK as u64) as usize);
        let bytes = most.min((blocks * BLOCK) as u64) as usize;
        self.block += blocks;
        if self.block == blocks_of_round {
            (self.round, self.block) = (self.round + 1, 0);
        }
        &self.bytes[from..from + bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_block_comes_twice_whatever_the_sizes() {
        let mut pool = Pool::new(3);
        let mut met = HashSet::new();
        let mut blocks = 0;
        for bytes in [1 << 20, 5000, 12 << 20, 4096, 100, 9 << 20, 4096 * 3 + 1] {
            let mut file = Vec::new();
            pool.write(Class::Media, bytes, &mut file).unwrap();
            assert_eq!(file.len() as u64, bytes);
            blocks += file.chunks(BLOCK).len();
            met.extend(file.chunks(BLOCK).map(xxhash_rust::xxh3::xxh3_128));
        }
        assert_eq!(met.len(), blocks);
    }

    #[test]
    fn a_class_does_not_hang_on_the_others() {
        let text = |others: u64| {
            let (mut pool, mut file) = (Pool::new(3), Vec::new());
            pool.write(Class::Object, others, &mut Vec::new()).unwrap();
            pool.write(Class::Text, 10_000, &mut file).unwrap();
            file
        };
        assert_eq!(text(0), text(1 << 20));
        assert!(text(0).iter().all(|byte| byte.is_ascii_graphic() || b" \n".contains(byte)));
    }
}
