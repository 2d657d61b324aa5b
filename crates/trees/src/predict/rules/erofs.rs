//! erofs: blocks of 4 KiB that `mkfs.erofs -zlz4hc` fills with as much of a file as goes in, and
//! ends of files that lie behind their inodes.
//!
//! As erofs-utils 1.5 does it (lib/compress.c, lib/inode.c):
//! * A file is compressed from its start to its end, block after block; the last block of a file is
//!   its own.
//! * Where the blocks, with 8 bytes of index for each 4 KiB of content, save nothing, the file is
//!   stored uncompressed.
//! * An uncompressed file has whole blocks, and its end behind its inode, where both fit into a
//!   block.

use super::{Piece, Rules, StorageOption, Stored};

const BLOCK: u64 = 4096;
/// An inode with its own time (struct erofs_inode_extended).
const INODE: u64 = 64;
/// Bytes of an index for each 4 KiB of content, and for a file.
const INDEX: u64 = 8;
const INDEX_HEAD: u64 = 16;

pub(crate) const RULES: Rules = Rules { filesystem: "erofs", pieces, in_records: false, compsize: false };

fn pieces(way: &StorageOption, file: u64, pieces: &[Piece]) -> Vec<Stored> {
    let plain: Vec<u64> = pieces.iter().map(|piece| plain(file, piece.bytes)).collect();
    let packed: Option<Vec<u64>> = pieces.iter().map(|piece| way.size(piece)).collect();
    let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    let kept = packed.map(|packed| whole(packed, bytes >= file)).filter(|packed| {
        let index = INDEX_HEAD + INDEX * bytes.div_ceil(BLOCK);
        packed.iter().sum::<u64>() + index < bytes
    });
    let disk = kept.unwrap_or_else(|| plain.clone());
    disk.into_iter().zip(plain).map(|(disk, plain)| Stored { disk, plain }).collect()
}

/// Blocks run on from piece to piece: only the file's last one is not full.
fn whole(mut packed: Vec<u64>, complete: bool) -> Vec<u64> {
    let sum: u64 = packed.iter().sum();
    if let Some(last) = packed.last_mut().filter(|_| complete) {
        *last += sum.next_multiple_of(BLOCK) - sum;
    }
    packed
}

/// Bytes of a piece without compression, where all but a file's last are whole blocks.
fn plain(file: u64, bytes: u64) -> u64 {
    let tail = file % BLOCK;
    let is_last = bytes % BLOCK == tail;
    if is_last && tail + INODE <= BLOCK { bytes } else { bytes.next_multiple_of(BLOCK) }
}

#[cfg(test)]
mod tests {
    use super::super::{CODECS, STORAGE_OPTIONS};
    use super::*;

    const NONE: StorageOption = STORAGE_OPTIONS[9];
    const LZ4HC: StorageOption = STORAGE_OPTIONS[10];
    const PIECE: u64 = 128 << 10;

    /// The file's bytes, each piece with what it is compressed to, and what is stored.
    type Row = (&'static StorageOption, u64, &'static [(u64, u64)], &'static [u64]);

    #[test]
    fn files_as_mkfs_erofs_stores_them() {
        assert_eq!([NONE.rules.filesystem, LZ4HC.rules.filesystem], ["erofs"; 2]);
        let rows: [Row; 9] = [
            (&NONE, 100, &[(100, 50)], &[100]),
            (&NONE, 4096 + 4032, &[(4096 + 4032, 9)], &[4096 + 4032]),
            (&NONE, 4096 + 4033, &[(4096 + 4033, 9)], &[8192]),
            (&LZ4HC, 100, &[(100, 50)], &[100]),
            (&LZ4HC, 9000, &[(9000, 4097)], &[8192]),
            (&LZ4HC, 8200, &[(8200, 4097)], &[8200]),
            (&LZ4HC, 4500, &[(4500, 2000)], &[4096]),
            (&LZ4HC, 2 * PIECE, &[(PIECE, 40_000), (PIECE, 50_000)], &[40_000, 50_112]),
            (&LZ4HC, 9 * PIECE, &[(PIECE, 40_000), (PIECE, 50_000)], &[40_000, 50_000]),
        ];
        for (way, file, given, stored) in rows {
            let piece =
                |&(bytes, packed): &(u64, u64)| Piece { bytes, sizes: [packed; CODECS.len()], ..Piece::default() };
            let all: Vec<Piece> = given.iter().map(piece).collect();
            let found: Vec<u64> = pieces(way, file, &all).iter().map(|stored| stored.disk).collect();
            assert_eq!(found, stored, "{} {file}", way.option);
        }
    }
}
