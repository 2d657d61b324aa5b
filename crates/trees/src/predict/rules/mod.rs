//! What file systems store for a file, given what compressors make of its pieces: rounding, giving up, files so small
//! that they lie in the metadata. Data only: no directories, names, inodes, checksums or second copies.
//!
//! Pure; it must not read files or know how files are sampled.

pub(crate) mod bcachefs;
pub(crate) mod btrfs;
pub(crate) mod erofs;
pub(crate) mod f2fs;
pub mod heuristic;
pub(crate) mod zfs;

use crate::codec::Codec;

/// A piece of a file of at most 128 KiB, measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its place among the file's pieces.
    pub place: u64,
    pub bytes: u64,
    pub zeros: bool,
    /// btrfs does not try to compress it: see [`heuristic`].
    pub skipped: bool,
    /// By codec in the order of [`CODECS`].
    pub sizes: [u64; CODECS.len()],
}

/// Every codec that any file system below stores with.
pub(crate) const CODECS: [Codec; 11] = [
    Codec::Lzo,
    Codec::Zlib(3),
    Codec::Zstd(1),
    Codec::Zstd(3),
    Codec::Lz4,
    Codec::Gzip(6),
    Codec::Lz4Filled,
    f2fs::LZ4,
    f2fs::ZSTD,
    bcachefs::LZ4,
    bcachefs::ZSTD,
];

/// One way to store: a file system with its compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub filesystem: &'static str,
    /// As its mount option or property has it.
    pub option: &'static str,
    /// None does not compress.
    pub codec: Option<Codec>,
}

const fn way(filesystem: &'static str, option: &'static str, codec: Option<Codec>) -> Way {
    Way { filesystem, option, codec }
}

pub const WAYS: [Way; 17] = [
    way("btrfs", "none", None),
    way("btrfs", "lzo", Some(Codec::Lzo)),
    way("btrfs", "zlib:3", Some(Codec::Zlib(3))),
    way("btrfs", "zstd:1", Some(Codec::Zstd(1))),
    way("btrfs", "zstd:3", Some(Codec::Zstd(3))),
    way("zfs", "off", None),
    way("zfs", "lz4", Some(Codec::Lz4)),
    way("zfs", "gzip-6", Some(Codec::Gzip(6))),
    way("zfs", "zstd-3", Some(Codec::Zstd(3))),
    way("erofs", "none", None),
    way("erofs", "lz4hc", Some(Codec::Lz4Filled)),
    way("f2fs", "none", None),
    way("f2fs", "lz4", Some(f2fs::LZ4)),
    way("f2fs", "zstd", Some(f2fs::ZSTD)),
    way("bcachefs", "none", None),
    way("bcachefs", "lz4", Some(bcachefs::LZ4)),
    way("bcachefs", "zstd", Some(bcachefs::ZSTD)),
];

/// Bytes of a file or of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub disk: u64,
    /// The same without compression, rounded as it is stored: what `compsize` calls uncompressed.
    pub plain: u64,
}

impl Way {
    /// Compressed bytes of a piece; none where the way does not compress.
    fn size(&self, piece: &Piece) -> Option<u64> {
        let index = CODECS.iter().position(|codec| Some(*codec) == self.codec)?;
        Some(piece.sizes[index])
    }

    /// What is stored for each of a file's pieces, in their order. Some pieces may be missing if
    /// the size in `file` shows that there are more.
    pub(crate) fn pieces(&self, file: u64, pieces: &[Piece]) -> Vec<Stored> {
        match self.filesystem {
            "bcachefs" => bcachefs::pieces(self, file, pieces),
            "btrfs" => btrfs::pieces(self, file, pieces),
            "erofs" => erofs::pieces(self, file, pieces),
            "f2fs" => f2fs::pieces(self, file, pieces),
            _ => zfs::pieces(self, file, pieces, &zfs::Pool::default()),
        }
    }
}
