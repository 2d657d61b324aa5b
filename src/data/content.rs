//! Bytes of three classes that compressors treat as they treat what developers keep: source text, object code, and
//! media that are compressed already.
//!
//! Zeros between random bytes, as many benchmarks write, shrink alike under every compressor and at no cost, which
//! would erase exactly the differences that are to be measured. So text is words by Zipf's law (that is what entropy
//! coders gain on) with repeats from the last few KiB (that is what LZO gains on, which btrfs lets see 4 KiB at a
//! time). The constants were set by storing big files of each class on btrfs until their ratios were near those of
//! the real thing (in parentheses), whole file over disk usage:
//!
//! | class | like | LZO | zstd:1 |
//! |---|---|---|---|
//! | text | C headers | 2.5 (2.6) | 4.6 (4.6) |
//! | object | ELF programs | 1.4 (1.5) | 2.3 (2.1) |
//! | media | JPEG, gzip | 1.0 (1.0) | 1.0 (1.0) |
//!
//! Small files shrink less, as a file system rounds each up to its block.
//!
//! No block comes twice, nor is any all zeros.

use super::random::{Random, scale};

/// What a file is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Text,
    Object,
    Media,
}

/// What all files of a tree share: its words and instructions.
pub struct Content {
    words: Vec<Word>,
    /// Sixteen random bits to a word, the frequent ones with many places.
    zipf: Vec<u16>,
    instructions: Vec<Instruction>,
}

#[derive(Clone, Copy)]
struct Word {
    letters: [u8; 15],
    length: u8,
}

impl Word {
    fn bytes(&self) -> &[u8] {
        &self.letters[..usize::from(self.length)]
    }
}

/// Fixed bytes, then an operand of so many bytes that vary.
#[derive(Clone, Copy)]
struct Instruction {
    code: [u8; 3],
    length: u8,
    operand: u8,
}

const WORDS: usize = 16_384;
const INSTRUCTIONS: u64 = 4096;
/// Frequency falls as 1/(rank + this), Mandelbrot's form of Zipf's law: the larger, the more entropy.
const FLATNESS: u64 = 60;
/// Letters as often as programs have them.
const LETTERS: &[u8; 64] = b"etaoinsrhldcumfpgwybvkxjqzetaoinsrhldcumfpgwybvkxetaoinsrldceta1";
const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// Bytes that x86-64 code is full of.
const CODES: [u8; 32] = [
    0x48, 0x48, 0x48, 0x8b, 0x8b, 0x89, 0x89, 0xe8, 0x0f, 0x83, 0x4c, 0x41, 0x85, 0x74, 0xc0, 0xc7, 0x8d, 0xff, 0x24,
    0x31, 0x45, 0x5d, 0xc3, 0x66, 0x00, 0x75, 0xeb, 0xbe, 0xf6, 0x39, 0x54, 0x1f,
];
/// The bits of an operand that vary: offsets in a structure are small and even, addresses near by are alike.
const OPERANDS: [u64; 4] = [0xf8, 0xff, 0xffff, 0xff_ffff];
/// Word lengths, short ones twice: 1 to 12.
const LENGTHS: [u8; 16] = [1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 12];
/// What stands between words of a program.
const SEPARATORS: [&[u8]; 32] = [
    b" ",
    b" ",
    b" ",
    b" ",
    b" ",
    b" ",
    b"_",
    b"_",
    b"_",
    b"_",
    b"_",
    b"_",
    b"_",
    b"(",
    b"(",
    b", ",
    b", ",
    b".",
    b"->",
    b" = ",
    b" = ",
    b");\n    ",
    b";\n    ",
    b";\n        ",
    b"\n",
    b"\n * ",
    b" {\n        ",
    b";\n}\n\n",
    b"\n#define ",
    b" *",
    b" == ",
    b"[0x",
];
/// Shares of 256: how often text repeats what it had before instead of going on with new words.
const TEXT_REPEATS: u64 = 112;
const OBJECT_REPEATS: u64 = 50;
/// LZO in btrfs sees pages of 4 KiB, so text repeats from nearer than that.
const TEXT_REACH: u64 = 2 << 10;
/// Object code repeats mostly from near, and at times from far: what zstd finds and LZO does not.
const OBJECT_REACHES: [u64; 4] = [256, 256, 512, 16 << 10];

impl Content {
    pub fn new(seed: u64) -> Content {
        let mut random = Random::new(seed, u64::MAX);
        let words = (0..WORDS).map(|_| word(&mut random)).collect();
        let instructions = (0..INSTRUCTIONS).map(|_| instruction(&mut random)).collect();
        Content { words, zipf: zipf_places(WORDS), instructions }
    }

    /// Appends so many bytes of a class.
    pub fn fill(&self, class: Class, random: &mut Random, out: &mut Vec<u8>, bytes: usize) {
        let end = out.len() + bytes;
        let start = out.len();
        out.reserve(bytes + 256);
        while out.len() < end {
            match class {
                Class::Text => self.text(random, out, start),
                Class::Object => self.object(random, out, start),
                Class::Media => out.extend_from_slice(&random.bits().to_le_bytes()),
            }
        }
        out.truncate(end);
    }

    /// A repeat, or a few words.
    fn text(&self, random: &mut Random, out: &mut Vec<u8>, start: usize) {
        let bits = random.bits();
        if bits & 0xff < TEXT_REPEATS {
            return repeat(out, start, bits >> 8, TEXT_REACH);
        }
        for part in 0..2 {
            let bits = bits >> (8 + 21 * part);
            out.extend_from_slice(self.word(bits).bytes());
            out.extend_from_slice(SEPARATORS[(bits >> 16) as usize % SEPARATORS.len()]);
        }
    }

    /// The word of the lowest sixteen bits.
    fn word(&self, bits: u64) -> &Word {
        &self.words[usize::from(self.zipf[(bits & 0xffff) as usize])]
    }

    /// A repeat, or a stretch of code, of a table or of names, as sections of a program are.
    fn object(&self, random: &mut Random, out: &mut Vec<u8>, start: usize) {
        let bits = random.bits();
        if bits & 0xff < OBJECT_REPEATS {
            return repeat(out, start, bits >> 8, OBJECT_REACHES[(bits >> 15) as usize % 4]);
        }
        match (bits >> 8) % 256 {
            0 => table(random, out),
            1 => self.names(random, out),
            _ => self.code(random, out),
        }
    }

    /// Four instructions with their operands.
    fn code(&self, random: &mut Random, out: &mut Vec<u8>) {
        for _ in 0..4 {
            let bits = random.bits();
            let place = usize::from(self.zipf[(bits & 0xffff) as usize]) % self.instructions.len();
            let instruction = self.instructions[place];
            out.extend_from_slice(&instruction.code[..usize::from(instruction.length)]);
            let operand = (bits >> 18) & OPERANDS[(bits >> 16) as usize % 4];
            out.extend_from_slice(&(operand as u32).to_le_bytes()[..usize::from(instruction.operand)]);
        }
    }

    /// Names as a symbol table holds them.
    fn names(&self, random: &mut Random, out: &mut Vec<u8>) {
        for _ in 0..12 {
            let bits = random.bits();
            for part in 0..3 {
                out.extend_from_slice(self.word(bits >> (16 * part)).bytes());
                out.push(if part < 2 { b'_' } else { 0 });
            }
        }
    }
}

/// Records of 24 bytes whose address grows, as relocations and symbols.
fn table(random: &mut Random, out: &mut Vec<u8>) {
    let mut address = random.bits() & 0xff_fff8;
    for _ in 0..24 {
        let bits = random.bits();
        address += bits & 0x1f8;
        out.extend_from_slice(&address.to_le_bytes());
        out.extend_from_slice(&[8, 0, 0, 0]);
        out.extend_from_slice(&((bits >> 16) as u32 & 0x3ff).to_le_bytes());
        out.extend_from_slice(&(address ^ ((bits >> 32) & 0xfff)).to_le_bytes());
    }
}

/// Copies 8 to 135 bytes from within reach. Where there is too little before, it is done with what is there.
fn repeat(out: &mut Vec<u8>, start: usize, bits: u64, reach: u64) {
    let length = 8 + (bits & 0x7f) as usize;
    let reach = reach.min((out.len() - start) as u64);
    let back = length + scale(bits << 8, reach) as usize;
    if let Some(from) = out.len().checked_sub(back).filter(|from| *from >= start) {
        out.extend_from_within(from..from + length);
    } else {
        out.push(b'\n');
    }
}

fn word(random: &mut Random) -> Word {
    let length = LENGTHS[random.index(LENGTHS.len())];
    let letters: [u8; 15] = std::array::from_fn(|_| LETTERS[random.index(LETTERS.len())]);
    let letters = match random.below(8) {
        0 | 1 => letters.to_ascii_uppercase().try_into().unwrap_or(letters), // macros and constants
        2 => std::array::from_fn(|_| DIGITS[random.index(DIGITS.len())]),
        _ => letters,
    };
    Word { letters, length }
}

fn instruction(random: &mut Random) -> Instruction {
    let code = std::array::from_fn(|_| CODES[random.index(CODES.len())]);
    let operand = [0, 1, 1, 1, 2, 2, 3, 3][random.index(8)];
    Instruction { code, length: [1, 2, 2, 3][random.index(4)], operand }
}

/// 65536 places shared out by Zipf's law, the frequent words getting many.
fn zipf_places(words: usize) -> Vec<u16> {
    let weight = |rank: usize| (1u64 << 32) / (rank as u64 + FLATNESS);
    let sum: u64 = (0..words).map(weight).sum();
    let mut places = Vec::with_capacity(1 << 16);
    let mut so_far = 0;
    for rank in 0..words {
        so_far += weight(rank);
        let end = (u128::from(so_far) << 16) / u128::from(sum);
        places.resize(end as usize, rank as u16);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn made(class: Class, bytes: usize) -> Vec<u8> {
        let mut out = vec![0xaa];
        Content::new(7).fill(class, &mut Random::new(7, 1), &mut out, bytes);
        out.split_off(1)
    }

    #[test]
    fn frequent_words_have_many_places_and_all_places_are_taken() {
        let places = zipf_places(WORDS);
        assert_eq!(places.len(), 1 << 16);
        let count = |rank| places.iter().filter(|place| **place == rank).count();
        let (first, hundredth) = (count(0) as f64, count(100) as f64);
        assert!((first / hundredth - 160.0 / 60.0).abs() < 0.05, "{first} {hundredth}");
    }

    #[test]
    fn no_block_comes_twice_or_is_zero() {
        for class in [Class::Text, Class::Object, Class::Media] {
            let bytes = made(class, 4 << 20);
            assert_eq!(bytes.len(), 4 << 20);
            let blocks: HashSet<&[u8]> = bytes.chunks(512).collect();
            assert_eq!(blocks.len(), (4 << 20) / 512, "{class:?}");
            assert!(!blocks.contains(&[0; 512][..]));
        }
    }

    #[test]
    fn text_is_text() {
        let text = made(Class::Text, 1 << 16);
        assert!(text.iter().all(|byte| byte.is_ascii_graphic() || b" \n".contains(byte)));
        let lines = text.split(|byte| *byte == b'\n').count();
        assert!((800..4000).contains(&lines), "{lines} lines in 64 KiB");
    }
}
