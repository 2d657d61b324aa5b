//! bcachefs: extents of at most 64 KiB that are compressed each on its own, in blocks of 4 KiB, and
//! files so small that they lie in the B-tree.
//!
//! As Linux 6.12 does it (fs/bcachefs/compress.c, io_write.c, opts.h), at the defaults of `bcachefs
//! format` and mount:
//! * A block is as large as the largest physical sector of the devices (bcachefs-tools,
//!   c_src/libbcachefs.c). Here it is 4 KiB. Disks that report 512 bytes lose less by rounding.
//! * A compressed extent holds at most `encoded_extent_max`, 64 KiB. The rest of a file's last
//!   block is zeros.
//! * A result is kept if it saves a block. zstd's has its length in 4 bytes before it, lz4's has
//!   nothing.
//! * zstd is at its default level, 3, with the parameters for 64 KiB also where there is less.
//! * A file of at most 1024 bytes lies in the B-tree, with and without compression. With blocks of
//!   512 bytes the limit is 256.
//!
//! The page cache is written back in stretches of at most 1 MiB, so a file that was written in one
//! go has its extents at multiples of 64 KiB. Small writes with `fsync` between make smaller ones.
//! An extent at the end of a bucket is cut there, which is left out.

use super::{Piece, Rules, StorageOption, Stored};
use crate::codec::{Chunks, Codec};

const BLOCK: u64 = 4096;
const MAX_INLINE: u64 = 1024;
const EXTENT: Chunks = Chunks { codec: &Codec::Lz4Fast, bytes: 64 << 10, only_full: false, header: 0, block: BLOCK };
pub(crate) const LZ4: Codec = Codec::Chunks(EXTENT);
pub(crate) const ZSTD: Codec = Codec::Chunks(Chunks { codec: &Codec::Zstd64k, header: 4, ..EXTENT });

pub(crate) const RULES: Rules = Rules { filesystem: "bcachefs", pieces, in_records: false, compsize: false };

fn pieces(way: &StorageOption, file: u64, pieces: &[Piece]) -> Vec<Stored> {
    let store = |piece: &Piece| {
        let plain = if file <= MAX_INLINE { 0 } else { piece.bytes.next_multiple_of(BLOCK) };
        Stored { disk: way.size(piece).map_or(plain, |packed| packed.min(plain)), plain }
    };
    pieces.iter().map(store).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{CODECS, STORAGE_OPTIONS};
    use super::*;
    use crate::codec::Meter;
    use crate::content::Content;
    use crate::profile::Stuff;
    use pickfs_system::random::Random;

    const NONE: StorageOption = STORAGE_OPTIONS[14];
    const PACKED: StorageOption = STORAGE_OPTIONS[15];

    #[test]
    fn files_lie_in_the_b_tree_whether_they_are_compressed_or_not() {
        for (way, file, packed, stored) in [
            (&NONE, 1024, 9, (0, 0)),
            (&NONE, 1025, 9, (4096, 4096)),
            (&PACKED, 1024, 4096, (0, 0)),
            (&PACKED, 1025, 4096, (4096, 4096)),
            (&PACKED, 40_000, 12_288, (12_288, 40_960)),
        ] {
            let piece = Piece { bytes: file, sizes: [packed; CODECS.len()], ..Piece::default() };
            let found = pieces(way, file, &[piece])[0];
            assert_eq!((found.disk, found.plain), stored, "{way:?} {file}");
        }
    }

    #[test]
    fn extents_of_64_kib_and_the_end_of_a_file_are_compressed_each() {
        let mut meter = Meter::new();
        for (bytes, stored) in [(4096, 1), (4097, 1), (64 << 10, 1), ((64 << 10) + 1, 2), (128 << 10, 2)] {
            let zeros = vec![0; bytes];
            assert_eq!([LZ4, ZSTD].map(|codec| meter.bytes(codec, &zeros)), [stored * BLOCK; 2], "{bytes}");
        }
        let noise = Content::new().like(Stuff::Media, &mut Random::new(7, 1), 10_000).to_vec();
        assert_eq!([LZ4, ZSTD].map(|codec| meter.bytes(codec, &noise)), [3 * BLOCK; 2]);
    }
}
