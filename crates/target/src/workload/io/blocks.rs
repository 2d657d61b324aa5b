//! Blocks of a file: in which order they are done, what stands in them, and the proof that they
//! hold what was written.
//!
//! Content is like what people keep. Each 4 KiB begins with its place and with the generation that
//! wrote it, so that none comes twice, a read can be checked, and a whole file as well.

use anyhow::{Result, ensure};
use pickfs_system::random::Random;
use pickfs_trees::content::Content;
use pickfs_trees::profile::Stuff;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// All runs do the same blocks in the same order, so that they can be compared.
const SEED: u64 = 1;
/// What has a stamp.
const PAGE: usize = 4096;
const STAMP: usize = 8;
/// The generation stands in the highest byte.
const PLACE: u64 = (1 << 56) - 1;

/// The blocks from the first to the last.
pub(crate) fn in_order(blocks: u32) -> Vec<u32> {
    (0..blocks).collect()
}

/// The blocks of `operations` operations: all of them once in any order, then again in another.
pub fn shuffled(blocks: u32, operations: usize) -> Vec<u32> {
    let mut all = Vec::with_capacity(operations.next_multiple_of(blocks as usize));
    let mut random = Random::new(SEED, 1);
    while all.len() < operations {
        let mut pass = in_order(blocks);
        random.shuffle(&mut pass);
        all.extend(pass);
    }
    all.truncate(operations);
    all
}

/// Text, object code and media, a third each; whatever stands there is like one of them for long
/// enough that file systems find in a piece what they compress what they would find in such a file.
pub fn fill(buffer: &mut [u8], stream: u64) {
    let (mut content, third) = (Content::new(), buffer.len().div_ceil(3));
    for ((number, part), stuff) in (0..).zip(buffer.chunks_mut(third)).zip([Stuff::Source, Stuff::Object, Stuff::Media])
    {
        part.copy_from_slice(content.like(stuff, &mut Random::new(SEED, 3 * stream + number + 2), part.len()));
    }
}

/// Bytes to write from, of which blocks are taken in turns.
pub struct Supply {
    block: usize,
    blocks: usize,
    next: usize,
}

impl Supply {
    /// Blocks for one of `of` operations at a time. All together are small enough for a processor's
    /// cache, as what a program writes has mostly just been made; and as large as what btrfs and
    /// ZFS compress at a time, so that no block comes twice in that.
    pub fn new(block: usize, of: usize) -> Supply {
        let wanted = (128 << 10) / of.max(1);
        Supply { block, blocks: usize::max(wanted / block, 1), next: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.block * self.blocks
    }

    /// Where the next block stands.
    pub fn turn(&mut self) -> usize {
        let at = self.next;
        self.next = if at + 1 < self.blocks { at + 1 } else { 0 };
        at * self.block
    }
}

/// Marks a block that is going to stand at the offset.
pub fn stamp(block: &mut [u8], offset: u64, generation: u8) {
    for (number, page) in block.chunks_mut(PAGE).enumerate() {
        let stamp = (offset + (number * PAGE) as u64) | u64::from(generation) << 56;
        page[..STAMP].copy_from_slice(&stamp.to_le_bytes());
    }
}

/// The generation that wrote a page that was read at the offset.
pub fn generation(page: &[u8], offset: u64) -> Result<u8> {
    let mut stamp = [0; STAMP];
    stamp.copy_from_slice(&page[..STAMP]);
    let stamp = u64::from_le_bytes(stamp);
    ensure!(stamp & PLACE == offset, "what was read at {offset} is not what was written there");
    Ok((stamp >> 56) as u8)
}

/// Whether a file is what it must be: each block where it belongs, those `written` of generation 1
/// and all others of 0.
pub(crate) fn verify(file: &File, block: usize, blocks: u32, written: &[u32]) -> Result<()> {
    let length = file.metadata()?.len();
    let wanted = u64::from(blocks) * block as u64;
    ensure!(length == wanted, "the file has {length} bytes instead of {wanted}");
    let written: HashSet<u32> = written.iter().copied().collect();
    let mut found = pickfs_system::sys::file::AlignedBuffer::new(block);
    for number in 0..blocks {
        let offset = u64::from(number) * block as u64;
        file.read_exact_at(&mut found, offset)?;
        let wanted = u8::from(written.contains(&number));
        for (page, bytes) in (0..).zip(found.chunks(PAGE)) {
            let at = offset + page * PAGE as u64;
            let generation = generation(bytes, at)?;
            ensure!(generation == wanted, "the content at {at} was written {generation} times instead of {wanted}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_once_in_a_pass_and_in_any_order() {
        let mut order = shuffled(1000, 2500);
        assert_ne!(order[..1000], order[1000..2000]);
        let neighbours = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(neighbours < 10, "{neighbours} follow each other");
        for pass in [0..1000, 1000..2000] {
            order[pass.clone()].sort_unstable();
            assert_eq!(order[pass], in_order(1000));
        }
        assert_eq!(order.len(), 2500);
    }

    #[test]
    fn a_file_is_proved_and_damage_found() {
        let file = tempfile::tempfile().unwrap();
        let write = |number: u32, generation: u8| {
            let (mut block, offset) = (vec![0; 8192], u64::from(number) * 8192);
            fill(&mut block, u64::from(number));
            stamp(&mut block, offset, generation);
            file.write_all_at(&block, offset).unwrap();
        };
        (0..6).for_each(|number| write(number, 0));
        verify(&file, 8192, 6, &[]).unwrap();
        [2, 5, 2].into_iter().for_each(|number| write(number, 1));
        verify(&file, 8192, 6, &[2, 5, 2]).unwrap();
        let refused = |blocks, written: &[u32]| verify(&file, 8192, blocks, written).unwrap_err().to_string();
        assert!(refused(6, &[2]).contains("written 1 times instead of 0"));
        assert!(refused(6, &[1, 2, 5]).contains("written 0 times instead of 1"));
        assert!(refused(7, &[2, 5]).contains("49152 bytes instead of"));
        file.write_all_at(b"damage", 3 * 8192 + 4096).unwrap();
        assert!(refused(6, &[2, 5]).contains("28672"));
    }

    #[test]
    fn a_supply_goes_round() {
        let mut supply = Supply::new(32 << 10, 1);
        let places: Vec<usize> = (0..6).map(|_| supply.turn() >> 15).collect();
        assert_eq!((places, supply.bytes()), (vec![0, 1, 2, 3, 0, 1], 128 << 10));
        assert_eq!([Supply::new(4096, 32).bytes(), Supply::new(4 << 20, 32).bytes()], [4 << 10, 4 << 20]);
    }
}
