//! zfs: records of 128 KiB at most, in sectors of the pool.
//!
//! A file of one record has a record of its own size, in steps of 512 bytes; all records of larger
//! files are whole. With compression a record of zeros is a hole, one of at most 112 bytes lies in
//! the pointer to it, and one is stored compressed if an eighth is saved and a sector at that
//! (OpenZFS, "compression" in zfsprops(7)). Pointers to many records and the parity of raidz come
//! on top.

use super::{Piece, Rules, StorageOption, Stored};
use crate::codec::Codec;

const RECORD: u64 = 128 << 10;
const STEP: u64 = 512;

/// What a pool adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    /// Sectors have 2^ashift bytes.
    pub ashift: u32,
    /// Bytes that a pointer holds itself; 0 for pools without the feature `embedded_data`.
    pub embedded: u64,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { ashift: 12, embedded: 112 }
    }
}

pub(crate) const RULES: Rules = Rules {
    filesystem: "zfs",
    pieces: |way, file, all| pieces(way, file, all, &Pool::default()),
    in_records: true,
    compsize: false,
};

fn pieces(way: &StorageOption, file: u64, pieces: &[Piece], pool: &Pool) -> Vec<Stored> {
    let sectors = |bytes: u64| bytes.next_multiple_of(1 << pool.ashift);
    let store = |piece: &Piece| {
        let record = if file > RECORD { RECORD } else { piece.bytes.next_multiple_of(STEP) };
        let plain = sectors(record);
        let Some(packed) = way.size(piece).map(|size| size + header(way)) else { return Stored { disk: plain, plain } };
        let disk = match sectors(packed) {
            _ if piece.zeros || packed <= pool.embedded => 0,
            sectors if packed <= record - record / 8 && sectors < record => sectors,
            _ => plain,
        };
        Stored { disk, plain }
    };
    pieces.iter().map(store).collect()
}

/// Before the compressed bytes: lz4 has its length there, zstd its length, version and level.
fn header(way: &StorageOption) -> u64 {
    match way.codec {
        Some(Codec::Lz4) => 4,
        Some(Codec::Zstd(_)) => 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CODECS, STORAGE_OPTIONS};
    use super::*;

    const OFF: StorageOption = STORAGE_OPTIONS[5];
    const GZIP: StorageOption = STORAGE_OPTIONS[7];
    const ZSTD: StorageOption = STORAGE_OPTIONS[8];

    fn disk(way: &StorageOption, file: u64, bytes: u64, packed: u64, ashift: u32) -> u64 {
        let piece = Piece { bytes, sizes: [packed; CODECS.len()], ..Piece::default() };
        pieces(way, file, &[piece], &Pool { ashift, ..Pool::default() })[0].disk
    }

    #[test]
    fn records_as_the_rules_say() {
        let cases = [
            (&OFF, 1000, 1000, 1, 9, 1024),
            (&OFF, 1000, 1000, 1, 12, 4096),
            (&OFF, RECORD + 1, 1, 1, 12, RECORD), // all records of a larger file are whole
            (&GZIP, 10_000, 10_000, 3000, 12, 4096),
            (&GZIP, 10_000, 10_000, 3000, 9, 3072),
            (&GZIP, 4096, 4096, 300, 12, 4096), // no sector is saved
            (&GZIP, 4096, 4096, 112, 12, 0),
            (&GZIP, 4096, 4096, 113, 9, 512),
            (&ZSTD, 4096, 4096, 105, 9, 512), // its header makes it too long to lie in the pointer
            (&GZIP, RECORD, RECORD, RECORD / 8 * 7, 12, RECORD / 8 * 7),
            (&GZIP, RECORD, RECORD, RECORD / 8 * 7 + 1, 12, RECORD),
        ];
        for (way, file, bytes, packed, ashift, expected) in cases {
            assert_eq!(disk(way, file, bytes, packed, ashift), expected, "{way:?} {file} {packed} {ashift}");
        }
    }

    #[test]
    fn zeros_are_a_hole_if_there_is_compression() {
        let zeros = Piece { bytes: RECORD, zeros: true, sizes: [4000; CODECS.len()], ..Piece::default() };
        let disk = |way| pieces(way, RECORD, std::slice::from_ref(&zeros), &Pool::default())[0].disk;
        assert_eq!([disk(&OFF), disk(&GZIP)], [RECORD, 0]);
    }
}
