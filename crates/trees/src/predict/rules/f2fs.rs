//! f2fs: clusters of 16 KiB that are compressed each on its own, in blocks of 4 KiB, and files so
//! small that they lie in their inodes.
//!
//! As Linux 6.1 does it (fs/f2fs/compress.c, inline.c), with mkfs and mount at their defaults and
//! `compress_extension=*`:
//! * A cluster is compressed if it has all four blocks: the end of a file often is not, nor is a
//!   file of at most 12 KiB. The rest of the last block is zeros.
//! * Its result has a head of 24 bytes, and is kept if it saves a block.
//! * zstd is at its level 1.
//! * Without compression a file of at most 3488 bytes lies in its inode, and takes no block. A file
//!   that may be compressed never does.
//!
//! What a cluster saves stays reserved for the file until it is released (`f2fs_io
//! release_cblocks`), which makes the file read-only: until then neither df nor du shows it. What
//! is predicted is what is written, and what is taken after that.

use super::{Piece, Rules, StorageOption, Stored};
use crate::codec::{Chunks, Codec};

const BLOCK: u64 = 4096;
/// Addresses in an inode, without those of attributes and one that is reserved, of 4 bytes each.
const MAX_INLINE: u64 = 4 * (923 - 50 - 1);
const CLUSTER: Chunks =
    Chunks { codec: &Codec::Lz4Fast, bytes: 4 * BLOCK as usize, only_full: true, header: 24, block: BLOCK };
pub(crate) const LZ4: Codec = Codec::Chunks(CLUSTER);
pub(crate) const ZSTD: Codec = Codec::Chunks(Chunks { codec: &Codec::Zstd(1), ..CLUSTER });

pub(crate) const RULES: Rules = Rules { filesystem: "f2fs", pieces, in_records: false, compsize: false };

fn pieces(way: &StorageOption, file: u64, pieces: &[Piece]) -> Vec<Stored> {
    let plain = |piece: &Piece| piece.bytes.next_multiple_of(BLOCK);
    let disk = |piece: &Piece| match way.size(piece) {
        None if file <= MAX_INLINE => 0,
        packed => packed.unwrap_or(plain(piece)),
    };
    pieces.iter().map(|piece| Stored { disk: disk(piece), plain: plain(piece) }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{CODECS, STORAGE_OPTIONS};
    use super::*;
    use crate::codec::Meter;

    const NONE: StorageOption = STORAGE_OPTIONS[11];
    const PACKED: StorageOption = STORAGE_OPTIONS[12];

    #[test]
    fn only_files_that_are_never_compressed_lie_in_their_inodes() {
        for (way, file, packed, stored) in
            [(&NONE, 3488, 9, 0), (&NONE, 3489, 9, 4096), (&PACKED, 100, 4096, 4096), (&PACKED, 40_000, 12_288, 12_288)]
        {
            let piece = Piece { bytes: file, sizes: [packed; CODECS.len()], ..Piece::default() };
            let found = pieces(way, file, &[piece])[0];
            assert_eq!((found.disk, found.plain), (stored, file.next_multiple_of(BLOCK)), "{way:?} {file}");
        }
    }

    #[test]
    fn whole_clusters_alone_are_compressed() {
        let mut meter = Meter::new();
        for (bytes, stored) in
            [(4096, 4096), (12_288, 12_288), (12_289, 4096), (16_384, 4096), (20_000, 8192), (128 << 10, 8 * 4096)]
        {
            let zeros = vec![0; bytes];
            assert_eq!([LZ4, ZSTD].map(|codec| meter.bytes(codec, &zeros)), [stored; 2], "{bytes}");
        }
    }
}
