//! What compressors of file systems make of a piece of content: sizes only, nothing is kept.
//!
//! It must not know file systems: extents, sectors and the choice to give up are `store`'s. But
//! what a codec is includes how it is fed: btrfs hands LZO and zlib one page after another.

mod lzo;

use flate2::{Compress, Compression, FlushCompress};
use pickfs_system::sys::lz4::Lz4;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use zstd_safe::{CCtx, CParameter, Strategy};

/// What a file system compresses at a time, at most.
pub(crate) const PIECE: usize = 128 << 10;
/// What btrfs hands LZO and zlib at a time.
const PAGE: usize = 4 << 10;

/// Compressed over plain bytes, a file or a piece of 128 KiB of it at a time, before any rounding
/// to blocks; above 1 for what grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratios {
    /// As btrfs does: pages of 4 KiB, each on its own.
    pub lzo: f64,
    pub lz4: f64,
    /// At btrfs's usual level, 3.
    pub zlib: f64,
    pub zstd1: f64,
    pub zstd3: f64,
}

impl Ratios {
    pub(crate) fn is_unsaid(&self) -> bool {
        *self == Ratios::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// LZO1X-1 as btrfs uses it: each page of 4 KiB on its own, with lengths between.
    Lzo,
    /// Of the whole piece, by lz4_flex: the generated content was chosen by its sizes.
    Lz4,
    /// As Linux and the library do inputs of at most 64 KiB.
    Lz4Fast,
    /// At its level 9, as erofs uses it: results of 4 KiB, each filled with as much as goes in;
    /// what would not shrink is taken unchanged.
    Lz4Filled,
    /// As btrfs uses it: flushed after each page of 4 KiB, which costs about 2 %.
    Zlib(u32),
    /// zlib in one go, as zfs uses it.
    Gzip(u32),
    /// With a window of 128 KiB at most, as both use it.
    Zstd(i32),
    /// At its level 3 with the parameters that suit 64 KiB, whatever the size of the input: as
    /// bcachefs uses it.
    Zstd64k,
    /// Chunk by chunk, each in whole blocks: as f2fs and bcachefs use it.
    Chunks(Chunks),
}

/// How a piece is cut, and what is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chunks {
    pub codec: &'static Codec,
    /// The number of bytes that are compressed at a time; a piece is a multiple of it.
    pub bytes: usize,
    /// Only chunks with all their blocks are tried: the end of a file may have fewer.
    pub only_full: bool,
    /// Before the compressed bytes of each.
    pub header: u64,
    /// Results are rounded up to whole blocks of this many bytes. A piece that saves no block is
    /// stored uncompressed.
    pub block: u64,
}

/// Compressors with their memory, to be used again and again.
pub struct Meter {
    scratch: Vec<u8>,
    lzo: lzo::Lzo,
    lz4: Lz4,
    deflate: HashMap<u32, Compress>,
    zstd: HashMap<Codec, CCtx<'static>>,
}

impl Meter {
    pub fn new() -> Meter {
        // Room for the worst that any codec makes of a piece.
        let scratch = vec![0; PIECE + PIECE / 8 + 4096];
        Meter { scratch, lzo: lzo::Lzo::new(), lz4: Lz4::new(), deflate: HashMap::new(), zstd: HashMap::new() }
    }

    /// Compressed bytes of at most [`PIECE`] bytes.
    pub(crate) fn bytes(&mut self, codec: Codec, piece: &[u8]) -> u64 {
        assert!(piece.len() <= PIECE, "a piece of {} bytes", piece.len());
        match codec {
            Codec::Lzo => self.lzo(piece),
            // No block fails to fit, as the scratch has room for the worst.
            Codec::Lz4 => lz4_flex::block::compress_into(piece, &mut self.scratch).unwrap_or(piece.len()) as u64,
            Codec::Lz4Fast => piece.chunks(64 << 10).map(|chunk| self.lz4.bytes(chunk) as u64).sum(),
            Codec::Lz4Filled => self.lz4_filled(piece),
            Codec::Zlib(level) => self.deflate(level, piece, Some(PAGE)),
            Codec::Gzip(level) => self.deflate(level, piece, None),
            Codec::Zstd(_) | Codec::Zstd64k => self.zstd(codec, piece),
            Codec::Chunks(chunks) => piece.chunks(chunks.bytes).map(|chunk| self.chunk(&chunks, chunk)).sum(),
        }
    }

    /// In whole blocks, compressed or not.
    fn chunk(&mut self, chunks: &Chunks, chunk: &[u8]) -> u64 {
        let plain = (chunk.len() as u64).next_multiple_of(chunks.block);
        if chunks.only_full && plain < chunks.bytes as u64 {
            return plain;
        }
        // The rest of a last block is zeros, in memory too.
        let mut blocks = chunk.to_vec();
        blocks.resize(plain as usize, 0);
        (chunks.header + self.bytes(*chunks.codec, &blocks)).next_multiple_of(chunks.block).min(plain)
    }

    /// All but the last are full, and a last one that begins in this piece ends with it.
    fn lz4_filled(&mut self, piece: &[u8]) -> u64 {
        let (mut at, mut written) = (0, 0);
        while at < piece.len() {
            let (read, filled) = self.lz4.fill(&piece[at..], PAGE);
            let plain = PAGE.min(piece.len() - at);
            let (read, filled) =
                if read <= filled.max(plain) && filled >= plain { (plain, plain) } else { (read, filled) };
            (at, written) = (at + read, written + filled);
        }
        written as u64
    }

    /// A total of four bytes, then for each page its length in four bytes and its stream. No length
    /// crosses the end of a page of the result: the rest of the page is skipped.
    fn lzo(&mut self, piece: &[u8]) -> u64 {
        const LENGTH: u64 = 4;
        let mut written = LENGTH;
        for page in piece.chunks(PAGE) {
            written += LENGTH + self.lzo.bytes(page);
            let left = written.next_multiple_of(PAGE as u64) - written;
            written += if left < LENGTH { left } else { 0 };
        }
        written
    }

    /// zlib with its own header, its largest window and its usual memory. The stream is flushed
    /// after every `flush_each` bytes, if given.
    fn deflate(&mut self, level: u32, piece: &[u8], flush_each: Option<usize>) -> u64 {
        let stream = self.deflate.entry(level).or_insert_with(|| Compress::new(Compression::new(level), true));
        stream.reset();
        let mut feed = |bytes: &[u8], flush| {
            let room = &mut self.scratch[stream.total_out() as usize..];
            // The only error of a compressor is a misuse; the size is then that of nothing saved.
            stream.compress(bytes, room, flush).is_ok()
        };
        let fed = match flush_each {
            Some(step) => {
                piece.chunks(step).all(|bytes| feed(bytes, FlushCompress::Sync)) && feed(&[], FlushCompress::Finish)
            }
            None => feed(piece, FlushCompress::Finish),
        };
        if fed { stream.total_out() } else { piece.len() as u64 }
    }

    fn zstd(&mut self, codec: Codec, piece: &[u8]) -> u64 {
        let context = self.zstd.entry(codec).or_insert_with(|| zstd_context(codec));
        context.compress2(&mut self.scratch[..], piece).unwrap_or(piece.len()) as u64
    }

    /// Compressed over plain size of one piece, for every codec that a profile has a ratio for.
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

/// Settings stay over all the pieces. They are in range: levels beyond what zstd knows are taken as
/// its nearest.
fn zstd_context(codec: Codec) -> CCtx<'static> {
    let mut context = CCtx::create();
    let usual = match codec {
        Codec::Zstd(level) => &[CParameter::CompressionLevel(level), CParameter::WindowLog(PIECE.ilog2())][..],
        _ => &ZSTD_OF_64_KIB,
    };
    for parameter in usual {
        let _ = context.set_parameter(*parameter);
    }
    context
}

/// Level 3 of zstd 1.5 for inputs of 16 to 128 KiB, with the window of 64 KiB
/// (lib/compress/clevels.h). Left to itself zstd takes others for inputs of at most 16 KiB.
const ZSTD_OF_64_KIB: [CParameter; 7] = [
    CParameter::Strategy(Strategy::ZSTD_dfast),
    CParameter::WindowLog(16),
    CParameter::ChainLog(15),
    CParameter::HashLog(16),
    CParameter::SearchLog(2),
    CParameter::MinMatch(5),
    CParameter::TargetLength(0),
];

impl Default for Meter {
    fn default() -> Meter {
        Meter::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;
    use crate::profile::Stuff;
    use pickfs_system::random::Random;

    const ALL: [Codec; 7] =
        [Codec::Lzo, Codec::Lz4, Codec::Zlib(3), Codec::Gzip(6), Codec::Zstd(1), Codec::Zstd(3), Codec::Lz4Filled];

    fn made(stuff: Stuff) -> Vec<u8> {
        Content::new().like(stuff, &mut Random::new(7, 1), PIECE).to_vec()
    }

    #[test]
    fn text_shrinks_by_the_power_of_the_codec_and_noise_by_none() {
        let (text, noise) = (made(Stuff::Source), made(Stuff::Media));
        let mut meter = Meter::new();
        let sizes = ALL.map(|codec| meter.bytes(codec, &text));
        let [lzo, lz4, zlib, gzip, zstd1, zstd3, filled] = sizes;
        assert!(
            zstd3 < zstd1 && gzip < zlib && zlib < lzo && lz4 < lzo && filled < lzo && lzo < PIECE as u64 / 2,
            "{sizes:?}"
        );
        let noise = ALL.map(|codec| meter.bytes(codec, &noise));
        assert!(noise.iter().all(|size| (PIECE as u64..PIECE as u64 * 102 / 100).contains(size)), "{noise:?}");
        assert_eq!(sizes, ALL.map(|codec| meter.bytes(codec, &text)), "a piece leaves nothing behind");
    }

    #[test]
    fn nothing_and_one_byte_are_pieces_too() {
        let mut meter = Meter::new();
        for codec in ALL {
            assert!(meter.bytes(codec, &[]) < 16 && meter.bytes(codec, b"x") < 24, "{codec:?}");
        }
    }

    /// zstd itself takes other parameters for at most 16 KiB.
    #[test]
    fn zstd_for_64_kib_is_level_3_until_inputs_are_small() {
        let (text, mut meter) = (made(Stuff::Source), Meter::new());
        for (bytes, same) in [(64 << 10, true), (20_000, true), (16_000, false), (5000, false)] {
            let [own, fixed] = [Codec::Zstd(3), Codec::Zstd64k].map(|codec| meter.bytes(codec, &text[..bytes]));
            assert_eq!(own == fixed, same, "{bytes}: {own} {fixed}");
            assert!(fixed.abs_diff(own) < own / 20, "{bytes}: {own} {fixed}");
        }
    }

    /// What liblz4 1.9.4 (LZ4_compress_default) made of the same bytes.
    #[test]
    fn fast_lz4_is_that_of_the_library() {
        let mut meter = Meter::new();
        let sizes = [Stuff::Source, Stuff::Media].map(|stuff| {
            let made = made(stuff);
            [5000, 16 << 10, 64 << 10].map(|bytes| meter.bytes(Codec::Lz4Fast, &made[..bytes]))
        });
        assert_eq!(sizes, [[1527, 4455, 16_572], [5021, 16_450, 65_794]]);
    }

    #[test]
    fn a_length_never_crosses_a_page_of_lzos_result() {
        let mut meter = Meter::new();
        // Noise of 4081 bytes takes 4 for the total, 4 for the length, 4081, 17 that give the
        // number of literals, and 3 for the end.
        let noise = &made(Stuff::Media)[..8192];
        let one = meter.lzo.bytes(&noise[..4096]);
        assert_eq!(meter.bytes(Codec::Lzo, &noise[..4096]), 8 + one);
        let pages: Vec<u8> = b"z".repeat(4096 * 20);
        let each = 4 + meter.lzo.bytes(&pages[..4096]);
        let plain = 4 + 20 * each;
        assert!((plain..plain + 3).contains(&meter.bytes(Codec::Lzo, &pages)));
    }
}
