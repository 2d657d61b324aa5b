//! What file systems store for a file, given what compressors make of its pieces: rounding, giving
//! up, files so small that they lie in the metadata. Data only: no directories, names, inodes,
//! checksums or second copies.
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

/// What one file system stores.
#[derive(Debug)]
pub struct Rules {
    pub filesystem: &'static str,
    /// What is stored for each of a file's pieces, in their order. Some pieces may be missing if
    /// the size of the file shows that there are more.
    pieces: fn(&StorageOption, u64, &[Piece]) -> Vec<Stored>,
    /// Files are counted by their size in records: so what is not compressed is known from the
    /// walk.
    pub(crate) in_records: bool,
    /// compsize(8) reads it.
    pub compsize: bool,
}

/// Every file system, in the order of answers.
pub const ALL: [&Rules; 5] = [&btrfs::RULES, &zfs::RULES, &erofs::RULES, &f2fs::RULES, &bcachefs::RULES];

/// One way to store: a file system with its compression.
#[derive(Clone, Copy, Debug)]
pub struct StorageOption {
    pub rules: &'static Rules,
    /// As its mount option or property has it.
    pub option: &'static str,
    /// None does not compress.
    pub codec: Option<Codec>,
}

const fn way(rules: &'static Rules, option: &'static str, codec: Option<Codec>) -> StorageOption {
    StorageOption { rules, option, codec }
}

pub const STORAGE_OPTIONS: [StorageOption; 17] = [
    way(&btrfs::RULES, "none", None),
    way(&btrfs::RULES, "lzo", Some(Codec::Lzo)),
    way(&btrfs::RULES, "zlib:3", Some(Codec::Zlib(3))),
    way(&btrfs::RULES, "zstd:1", Some(Codec::Zstd(1))),
    way(&btrfs::RULES, "zstd:3", Some(Codec::Zstd(3))),
    way(&zfs::RULES, "off", None),
    way(&zfs::RULES, "lz4", Some(Codec::Lz4)),
    way(&zfs::RULES, "gzip-6", Some(Codec::Gzip(6))),
    way(&zfs::RULES, "zstd-3", Some(Codec::Zstd(3))),
    way(&erofs::RULES, "none", None),
    way(&erofs::RULES, "lz4hc", Some(Codec::Lz4Filled)),
    way(&f2fs::RULES, "none", None),
    way(&f2fs::RULES, "lz4", Some(f2fs::LZ4)),
    way(&f2fs::RULES, "zstd", Some(f2fs::ZSTD)),
    way(&bcachefs::RULES, "none", None),
    way(&bcachefs::RULES, "lz4", Some(bcachefs::LZ4)),
    way(&bcachefs::RULES, "zstd", Some(bcachefs::ZSTD)),
];

/// Bytes of a file or of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub disk: u64,
    /// The same without compression, rounded as stored: what `compsize` calls uncompressed.
    pub plain: u64,
}

impl StorageOption {
    /// Compressed bytes of a piece; none where the way does not compress.
    fn size(&self, piece: &Piece) -> Option<u64> {
        let index = CODECS.iter().position(|codec| Some(*codec) == self.codec)?;
        Some(piece.sizes[index])
    }

    pub(crate) fn pieces(&self, file: u64, pieces: &[Piece]) -> Vec<Stored> {
        (self.rules.pieces)(self, file, pieces)
    }
}
