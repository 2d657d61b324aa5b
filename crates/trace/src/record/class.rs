//! How well bytes can be compressed, in four classes: of what is kept of content, this is all.

use crate::CLASSES;
use std::io::Read;
use std::path::Path;

/// Less says too little.
pub(crate) const SMALLEST_SAMPLE: usize = 512;
/// More says no more.
pub(crate) const SAMPLE: usize = 16 << 10;
/// Where nothing is known.
pub(crate) const USUAL: u8 = 2;

/// 0 is what no compressor shrinks, 3 what shrinks to a quarter and less.
pub(crate) fn class_of(bytes: &[u8]) -> u8 {
    if bytes.len() < SMALLEST_SAMPLE {
        return USUAL;
    }
    let share = lz4_flex::block::compress(bytes).len() as f64 / bytes.len() as f64;
    let class = [0.9, 0.6, 0.3].iter().filter(|bound| share < **bound).count() as u8;
    class.min(CLASSES - 1)
}

/// The present class of a file, if it still has this size.
pub(crate) fn class_of_file(path: &Path, bytes: u64) -> u8 {
    let mut sample = Vec::new();
    let same = |file: &std::fs::File| file.metadata().is_ok_and(|found| found.is_file() && found.len() == bytes);
    match std::fs::symlink_metadata(path)
        .ok()
        .filter(|found| found.is_file())
        .and_then(|_| std::fs::File::open(path).ok())
    {
        Some(file) if same(&file) => {
            let read = file.take(SAMPLE as u64).read_to_end(&mut sample);
            read.map_or(USUAL, |_| class_of(&sample))
        }
        _ => USUAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::random::Random;
    use pickfs_trees::content::Content;
    use pickfs_trees::profile::Stuff;

    #[test]
    fn noise_code_and_logs_are_apart() {
        let (mut content, mut random) = (Content::new(), Random::new(1, 1));
        let mut class = |stuff| class_of(content.like(stuff, &mut random, SAMPLE));
        let [media, object, source] = [Stuff::Media, Stuff::Object, Stuff::Source].map(&mut class);
        assert!(media == 0 && object > 0 && source >= object, "{media} {object} {source}");
        assert_eq!((class_of(&[0; SAMPLE]), class_of(b"short")), (3, USUAL));
    }
}
