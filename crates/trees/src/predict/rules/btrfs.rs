//! btrfs: extents of 128 KiB at most, in sectors of 4 KiB, and files that lie in the metadata.
//!
//! Found on Linux 6.18 with every extent listed, `mount -o compress=...` and the defaults of mkfs:
//! * A compressed piece is kept when it saves at least a sector. If not, it is stored uncompressed,
//!   and so is all that is written of this file from then on. (Work on two or more pieces at a time
//!   makes that start a little earlier or later.)
//! * What the [heuristic](super::heuristic) calls hopeless is stored uncompressed, without such a
//!   mark.
//! * A file of at most one sector lies in the metadata if its bytes there are at most `max_inline`,
//!   2048: compressed first, and if that is too much, uncompressed. LZO is taken there even if it
//!   grew.
//! * A last piece of one sector or less is not compressed, as no sector could be saved.

use super::{Piece, Rules, StorageOption, Stored};
use crate::codec::Codec;

const SECTOR: u64 = 4096;
/// The default of the mount option.
const MAX_INLINE: u64 = 2048;

pub(crate) const RULES: Rules = Rules { filesystem: "btrfs", pieces, in_records: false, compsize: true };

fn pieces(way: &StorageOption, file: u64, pieces: &[Piece]) -> Vec<Stored> {
    let mut marked = false;
    let store = |piece: &Piece| {
        if file <= SECTOR {
            return small(way, piece);
        }
        let packed = way.size(piece).filter(|_| !marked && !piece.skipped && piece.bytes > SECTOR);
        let plain = sectors(piece.bytes);
        let kept = packed.map(sectors).filter(|packed| packed + SECTOR <= plain);
        marked |= packed.is_some() && kept.is_none();
        Stored { disk: kept.unwrap_or(plain), plain }
    };
    pieces.iter().map(store).collect()
}

fn small(way: &StorageOption, piece: &Piece) -> Stored {
    let may_grow = way.codec == Some(Codec::Lzo);
    let tried = way.size(piece).filter(|_| !piece.skipped);
    let packed = tried.filter(|packed| *packed <= MAX_INLINE && (may_grow || *packed < piece.bytes));
    match packed {
        Some(packed) => Stored { disk: packed, plain: piece.bytes },
        None if piece.bytes <= MAX_INLINE => Stored { disk: piece.bytes, plain: piece.bytes },
        None => Stored { disk: SECTOR, plain: SECTOR },
    }
}

fn sectors(bytes: u64) -> u64 {
    bytes.next_multiple_of(SECTOR)
}

#[cfg(test)]
mod tests {
    use super::super::{CODECS, STORAGE_OPTIONS};
    use super::*;

    const LZO: StorageOption = STORAGE_OPTIONS[1];
    const ZSTD: StorageOption = STORAGE_OPTIONS[3];
    const PIECE: u64 = 128 << 10;

    fn piece(bytes: u64, packed: u64) -> Piece {
        Piece { bytes, sizes: [packed; CODECS.len()], ..Piece::default() }
    }

    fn disk(way: &StorageOption, file: u64, all: &[Piece]) -> Vec<u64> {
        pieces(way, file, all).iter().map(|stored| stored.disk).collect()
    }

    #[test]
    fn small_files_as_the_kernel_stores_them() {
        let cases = [
            (&LZO, 1000, 1016, 1016, 1000), // LZO may grow
            (&ZSTD, 1000, 1010, 1000, 1000),
            (&ZSTD, 2048, 2060, 2048, 2048),
            (&ZSTD, 2049, 2060, 4096, 4096),
            (&ZSTD, 4096, 785, 785, 4096),
            (&ZSTD, 4096, 2049, 4096, 4096),
            (&STORAGE_OPTIONS[0], 2048, 1, 2048, 2048),
            (&STORAGE_OPTIONS[0], 2049, 1, 4096, 4096),
        ];
        for (way, bytes, packed, disk, plain) in cases {
            assert_eq!(pieces(way, bytes, &[piece(bytes, packed)]), [Stored { disk, plain }], "{bytes} {packed}");
        }
        let skipped = Piece { skipped: true, ..piece(3000, 20) };
        assert_eq!(disk(&ZSTD, 3000, &[skipped]), [4096]);
    }

    #[test]
    fn a_piece_must_save_a_sector_or_the_rest_is_stored_as_it_is() {
        let good = piece(PIECE, 40_000);
        assert_eq!(disk(&ZSTD, 3 * PIECE, &[good.clone(), good.clone(), good.clone()]), [40960; 3]);
        let bad = piece(PIECE, PIECE - 4095);
        assert_eq!(disk(&ZSTD, 3 * PIECE, &[good.clone(), bad, good.clone()]), [40960, PIECE, PIECE]);
        let barely = piece(PIECE, PIECE - 4096);
        assert_eq!(disk(&ZSTD, 2 * PIECE, &[barely, good.clone()]), [PIECE - 4096, 40960]);
        let skipped = Piece { skipped: true, ..good.clone() };
        assert_eq!(disk(&ZSTD, 2 * PIECE, &[skipped, good.clone()]), [PIECE, 40960]);
        assert_eq!(disk(&ZSTD, PIECE + 4096, &[good, piece(4096, 10)]), [40960, 4096]);
        assert_eq!(disk(&ZSTD, 8192, &[piece(8192, 4096)]), [4096]);
        assert_eq!(disk(&ZSTD, 8192, &[piece(8192, 4097)]), [8192]);
    }
}
