//! Words, each with what follows it, and how often each comes: what text, records and machine code
//! are made of.
//!
//! They are made here from a seed that never changes; nothing is taken from anybody's text.

use pickfs_system::random::Random;

/// Room for a word; the last byte is its length.
pub(crate) const SLOT: usize = 16;

/// What words look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Programs, and prose between them.
    Source,
    /// Names and values, as JSON and logs have them.
    Records,
    /// Instructions of one to five bytes.
    Code,
}

/// How to make a vocabulary.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    pub form: Form,
    pub words: usize,
    /// Frequency falls as 1/(rank + this), Mandelbrot's form of Zipf's law: the larger, the more
    /// entropy.
    pub flatness: u64,
}

pub const VOCABULARIES: [Design; 6] = [
    Design { form: Form::Source, words: 16_384, flatness: 60 },
    Design { form: Form::Source, words: 1024, flatness: 4 },
    Design { form: Form::Source, words: 32_768, flatness: 4096 },
    Design { form: Form::Records, words: 4096, flatness: 16 },
    Design { form: Form::Code, words: 16_384, flatness: 60 },
    Design { form: Form::Code, words: 512, flatness: 4 },
];

/// Letters as often as programs have them.
const LETTERS: &[u8; 64] = b"etaoinsrhldcumfpgwybvkxjqzetaoinsrhldcumfpgwybvkxetaoinsrldceta1";
const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// Bytes that x86-64 code is full of.
const CODES: [u8; 32] = [
    0x48, 0x48, 0x48, 0x8b, 0x8b, 0x89, 0x89, 0xe8, 0x0f, 0x83, 0x4c, 0x41, 0x85, 0x74, 0xc0, 0xc7, 0x8d, 0xff, 0x24,
    0x31, 0x45, 0x5d, 0xc3, 0x66, 0x00, 0x75, 0xeb, 0xbe, 0xf6, 0x39, 0x54, 0x1f,
];
/// Word lengths, short ones twice: 1 to 10.
const LENGTHS: [usize; 16] = [1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10];
/// What stands after a word of a program.
const AFTER_SOURCE: [&[u8]; 24] = [
    b" ", b" ", b" ", b" ", b" ", b" ", b"_", b"_", b"_", b"_", b"_", b"(", b"(", b", ", b".", b"->", b" = ", b" = ",
    b");\n", b";\n  ", b"\n", b"\n * ", b" {\n", b" == ",
];
/// What stands after a name or a value of a record.
const AFTER_RECORDS: [&[u8]; 8] = [b"\": \"", b"\", \"", b" ", b"\":", b",\n", b"},\n", b"-", b"="];

/// The words, and for each sixteen random bits one of them.
pub(crate) struct Vocabulary {
    slots: Vec<[u8; SLOT]>,
    places: Vec<u16>,
}

impl Vocabulary {
    pub(crate) fn new(design: &Design) -> Vocabulary {
        let mut random = Random::new(design.words as u64, design.form as u64);
        let slots = (0..design.words).map(|_| slot(&word(design.form, &mut random))).collect();
        Vocabulary { slots, places: zipf_places(design) }
    }

    /// The word of sixteen bits with what lies behind it, and its length.
    #[inline]
    pub(crate) fn word(&self, bits: u16) -> (&[u8; SLOT], usize) {
        let slot = &self.slots[usize::from(self.places[usize::from(bits)])];
        (slot, usize::from(slot[SLOT - 1] & 15))
    }
}

fn slot(word: &[u8]) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    let length = word.len().min(SLOT - 1);
    slot[..length].copy_from_slice(&word[..length]);
    slot[SLOT - 1] = length as u8;
    slot
}

fn word(form: Form, random: &mut Random) -> Vec<u8> {
    match form {
        Form::Source => spelled(random, &AFTER_SOURCE),
        Form::Records => spelled(random, &AFTER_RECORDS),
        Form::Code => instruction(random),
    }
}

fn spelled(random: &mut Random, after: &[&[u8]]) -> Vec<u8> {
    let length = LENGTHS[random.index(LENGTHS.len())];
    let letters = match random.below(8) {
        0 => &DIGITS[..],
        _ => &LETTERS[..],
    };
    let mut word: Vec<u8> = (0..length).map(|_| letters[random.index(letters.len())]).collect();
    if random.below(8) == 0 {
        word.make_ascii_uppercase(); // macros and constants
    }
    word.extend_from_slice(after[random.index(after.len())]);
    word
}

/// A code, and at times an operand.
fn instruction(random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..1 + random.index(3)).map(|_| CODES[random.index(CODES.len())]).collect();
    let operand = [0, 0, 1, 1, 1, 2, 2, 3][random.index(8)];
    bytes.extend((0..operand).map(|_| random.bits() as u8));
    bytes
}

/// 65536 places shared out by Zipf's law, the frequent words getting many.
fn zipf_places(design: &Design) -> Vec<u16> {
    let weight = |rank: usize| (1u64 << 32) / (rank as u64 + design.flatness);
    let sum: u64 = (0..design.words).map(weight).sum();
    let mut places = Vec::with_capacity(1 << 16);
    let mut so_far = 0;
    for rank in 0..design.words {
        so_far += weight(rank);
        let end = (u128::from(so_far) << 16) / u128::from(sum);
        places.resize(end as usize, rank as u16);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_words_have_many_places_and_all_places_are_taken() {
        let places = zipf_places(&VOCABULARIES[0]);
        assert_eq!(places.len(), 1 << 16);
        let count = |rank| places.iter().filter(|place| **place == rank).count();
        let (first, hundredth) = (count(0) as f64, count(100) as f64);
        assert!((first / hundredth - 160.0 / 60.0).abs() < 0.05, "{first} {hundredth}");
    }

    #[test]
    fn words_fit_their_slots_and_text_is_text() {
        for design in &VOCABULARIES {
            let vocabulary = Vocabulary::new(design);
            for bits in 0..=u16::MAX {
                let (word, length) = vocabulary.word(bits);
                assert!((1..SLOT).contains(&length), "{design:?}");
                let text = word[..length].iter().all(|byte| byte.is_ascii_graphic() || b" \n".contains(byte));
                assert!(text || design.form == Form::Code, "{:?}", &word[..length]);
            }
        }
    }
}
