//! How many bytes LZ4's own library makes of content. What it writes is thrown away.

use std::ffi::{c_char, c_int, c_void};

/// As erofs uses it.
const LEVEL: c_int = 9;

// The crate that builds the library declares its other functions.
unsafe extern "C" {
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_compress_HC_destSize(
        state: *mut c_void,
        from: *const c_char,
        to: *mut c_char,
        bytes: *mut c_int,
        room: c_int,
        level: c_int,
    ) -> c_int;
}

/// Memory of the compressor, to be used again and again.
pub struct Lz4 {
    scratch: Vec<u8>,
    /// Of 8 bytes each, as it must be aligned so.
    state: Vec<u64>,
}

impl Lz4 {
    pub fn new() -> Lz4 {
        // SAFETY: it takes nothing and returns a constant.
        let state = unsafe { LZ4_sizeofStateHC() } as usize;
        Lz4 { scratch: Vec::new(), state: vec![0; state.div_ceil(8)] }
    }

    /// Compressed bytes at the usual level; those of the input where it is too large for the
    /// library.
    pub fn bytes(&mut self, input: &[u8]) -> usize {
        // Room for the worst: then only an input of more than 2,113,929,216 bytes fails.
        self.scratch.resize(input.len() + input.len() / 255 + 16, 0);
        let (Ok(bytes), Ok(room)) = (c_int::try_from(input.len()), c_int::try_from(self.scratch.len())) else {
            return input.len();
        };
        let (from, to) = (input.as_ptr().cast(), self.scratch.as_mut_ptr().cast());
        // SAFETY: both slices are as long as is said, and the library keeps neither.
        match unsafe { lz4_sys::LZ4_compress_default(from, to, bytes, room) } {
            written @ 1.. => written as usize,
            _ => input.len(),
        }
    }

    /// Bytes of the input that fill this room at most at level 9, and the bytes that they take
    /// there.
    pub fn fill(&mut self, input: &[u8], room: usize) -> (usize, usize) {
        self.scratch.resize(self.scratch.len().max(room), 0);
        let mut read = c_int::try_from(input.len()).unwrap_or(c_int::MAX);
        let room = c_int::try_from(room).unwrap_or(c_int::MAX);
        let (state, from, to) =
            (self.state.as_mut_ptr().cast(), input.as_ptr().cast(), self.scratch.as_mut_ptr().cast());
        // SAFETY: the state is as large and aligned as the library says; it reads at most `read`
        // bytes and writes at most `room`, which both slices have.
        let written = unsafe { LZ4_compress_HC_destSize(state, from, to, &mut read, room, LEVEL) };
        if written > 0 { (read as usize, written as usize) } else { (0, 0) }
    }
}

impl Default for Lz4 {
    fn default() -> Lz4 {
        Lz4::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn sequences_that_can_be_counted_by_hand() {
        let mut lz4 = Lz4::new();
        // A literal with its token; a match of 994 bytes: its distance, and 4 bytes for its length;
        // 5 literals with their token.
        let bytes = 2 + (2 + 4) + 6;
        assert_eq!((lz4.bytes(&[7; 1000]), lz4.fill(&[7; 1000], 4096)), (bytes, (1000, bytes)));
        for (input, bytes) in [(&b""[..], 1), (b"x", 2), (b"abcdabcdabcda", 14)] {
            assert_eq!(lz4.bytes(input), bytes, "{input:?}");
        }
    }

    #[test]
    fn a_block_is_filled_and_no_more() {
        let mut noise = vec![0; 9000];
        Random::new(3, 1).fill(&mut noise);
        let mut lz4 = Lz4::new();
        let (read, filled) = lz4.fill(&noise, 4096);
        assert!((4070..4096).contains(&read) && (4090..=4096).contains(&filled), "{read} {filled}");
        let twice = [&noise[..3000], &noise[..3000], &noise[3000..]].concat();
        let (read, filled) = lz4.fill(&twice, 4096);
        assert!((6900..7100).contains(&read) && (4090..=4096).contains(&filled), "{read} {filled}");
        assert_eq!(lz4.fill(&twice, 4096), (read, filled), "nothing is left behind");
    }
}
