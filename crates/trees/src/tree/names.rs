//! Names of files and directories: syllables made here, a number that makes them unique, and an
//! ending by kind.

use crate::profile::Kind;
use pickfs_system::random::Random;

/// No file system takes longer ones.
const LONGEST: usize = 255;

/// A name of `length` bytes, or a little longer where that is too short. No two numbers have the
/// same name.
pub(crate) fn name(kind: Option<Kind>, number: u64, length: usize, random: &mut Random) -> String {
    let ending = kind.map_or("", |kind| ending(kind, random));
    let number = in_letters(number);
    let tail = number.len() + ending.len();
    let word = length.min(LONGEST).saturating_sub(tail + 1);
    if word == 0 {
        return number + ending;
    }
    let mut name = syllables(word, random);
    name.push('_');
    name + &number + ending
}

fn ending(kind: Kind, random: &mut Random) -> &'static str {
    let endings: &[&str] = match kind {
        Kind::Source => &[".c", ".h", ".rs", ".py", ".hpp"],
        Kind::Document => &[".html", ".md", ".txt", ".xml"],
        Kind::Data => &[".json", ".csv", ".yaml", ".log"],
        Kind::Object => &[".o", ".so", ".a", ""],
        Kind::Image => &[".jpg", ".png", ".webp"],
        Kind::Media => &[".mp4", ".mp3", ".ogg"],
        Kind::Archive => &[".gz", ".zip", ".zst", ".deb"],
        Kind::Store => &[".db", ".sqlite", ".mbox"],
        Kind::Other => &["", ".dat", ".conf"],
    };
    endings[random.index(endings.len())]
}

/// In base 36.
fn in_letters(mut number: u64) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = Vec::new();
    loop {
        text.push(char::from(LETTERS[(number % 36) as usize]));
        number /= 36;
        if number == 0 {
            return text.into_iter().rev().collect();
        }
    }
}

/// A consonant, a vowel, and so on.
fn syllables(length: usize, random: &mut Random) -> String {
    const CONSONANTS: &[u8; 16] = b"bcdfghklmnprstvz";
    const VOWELS: &[u8; 4] = b"aeio";
    let mut bits = 0;
    let letter = |place: usize| {
        if place % 16 == 0 {
            bits = random.bits();
        }
        let some = (bits >> (4 * (place % 16))) as usize;
        char::from(if place % 2 == 0 { CONSONANTS[some % 16] } else { VOWELS[some % 4] })
    };
    (0..length).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_have_their_lengths_and_none_comes_twice() {
        for length in [0, 1, 3, 8, 40, 255, 300] {
            let named = |number| name(Some(Kind::Source), number, length, &mut Random::new(1, number % 7));
            let names: HashSet<String> = (0..3000).map(named).collect();
            assert_eq!(names.len(), 3000);
            let right = |name: &&String| name.len() == length.min(LONGEST) || (length < 8 && name.len() < 8);
            assert_eq!(names.iter().filter(right).count(), 3000, "{length}");
        }
        assert_eq!(name(None, 36, 0, &mut Random::new(1, 1)), "10");
    }
}
