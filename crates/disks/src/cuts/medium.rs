//! Brings a disk from what it holds to an image, by writing what differs and nothing else.

use super::SECTOR;
use super::image::{Image, Survivors};
use super::recording::Recording;
use anyhow::{Context, Result};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Sectors that are written at once, at most.
const MOST: u64 = 2048;
/// Instead of the number of a write: the sector has its first content.
const ZEROS: u32 = u32::MAX;

/// What a disk holds, as far as known.
pub struct Medium<'a> {
    recording: &'a Recording,
    /// For each sector the write that it holds, `None` if unknown. A missing sector holds what
    /// surely survived, or its first content.
    held: HashMap<u64, Option<u32>>,
}

impl<'a> Medium<'a> {
    /// Nothing is known of sectors that were ever written.
    pub fn unknown(recording: &'a Recording) -> Medium<'a> {
        let mut medium = Medium { recording, held: HashMap::new() };
        recording.writes.iter().for_each(|write| medium.written(write.first, write.sectors));
        medium
    }

    /// Others have written there.
    pub fn written(&mut self, first: u64, sectors: u64) {
        self.held.extend((first..first + sectors).map(|sector| (sector, None)));
    }

    /// Makes the disk hold the image; the bytes that were written for it.
    pub fn become_image(&mut self, survivors: &mut Survivors, image: &Image, log: &File, disk: &File) -> Result<u64> {
        let mut touched: BTreeSet<u64> = survivors.changed().into_iter().collect();
        touched.extend(self.held.keys().chain(image.beyond.keys()));
        let base = |sector: &u64| survivors.base.get(sector).copied().unwrap_or(ZEROS);
        let wanted: Vec<(u64, u32)> = touched
            .iter()
            .map(|sector| (*sector, image.beyond.get(sector).copied().unwrap_or_else(|| base(sector))))
            .collect();
        let mut differing = wanted.clone();
        // What changed of the surely held is not known to be there.
        differing.retain(|(sector, write)| self.held.get(sector).is_none_or(|held| *held != Some(*write)));
        let bytes = self.write(&differing, log, disk)?;
        self.held = image.beyond.iter().map(|(sector, write)| (*sector, Some(*write))).collect();
        Ok(bytes)
    }

    fn write(&self, sectors: &[(u64, u32)], log: &File, disk: &File) -> Result<u64> {
        let mut buffer = Vec::new();
        let follows = |a: &(u64, u32), b: &(u64, u32)| a.0 + 1 == b.0;
        for run in sectors.chunk_by(follows).flat_map(|run| run.chunks(MOST as usize)) {
            buffer.clear();
            for part in run.chunk_by(|a, b| a.1 == b.1) {
                self.read(part[0], part.len() as u64, log, &mut buffer)?;
            }
            disk.write_all_at(&buffer, run[0].0 * SECTOR).context("cannot write an image of the disk")?;
        }
        Ok(sectors.len() as u64 * SECTOR)
    }

    /// The data of a number of sectors that one write has given.
    fn read(&self, (sector, write): (u64, u32), sectors: u64, log: &File, buffer: &mut Vec<u8>) -> Result<()> {
        let from = buffer.len();
        buffer.resize(from + (sectors * SECTOR) as usize, 0);
        if write == ZEROS {
            return Ok(());
        }
        let write = &self.recording.writes[write as usize];
        let at = write.data_at + (sector - write.first) * SECTOR;
        log.read_exact_at(&mut buffer[from..], at).context("cannot read the data of a recorded write")
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::Loses;
    use super::super::recording::tests::Written;
    use super::*;
    use pickfs_system::random::Random;

    const SECTORS: u64 = 64;

    /// At each moment the disk holds what a plain replay gives, also after others have written to
    /// it.
    #[test]
    fn a_disk_that_becomes_one_image_after_the_other_holds_each() {
        let mut random = Random::new(5, 5);
        let (mut written, mut now) = (Written::by_a_disk_that_forgets(true), 0);
        for number in 0..300_u64 {
            now += 1 + random.below(9);
            let (first, sectors) = (random.below(SECTORS - 8), 1 + random.below(8));
            let data = vec![(number % 255) as u8 + 1; (sectors * 512) as usize];
            written = match random.below(6) {
                0 => written.flush(now, now + random.below(30)),
                _ => written.write(first, &data, now, now + 1 + random.below(30)),
            };
        }
        let log = written.file();
        let recording = Recording::read(&log).expect("a recording");
        let disk = tempfile::tempfile().expect("a disk");
        // The disk has run to its end, and more.
        disk.write_all_at(&vec![0xEE; (SECTORS * SECTOR) as usize], 0).expect("written");
        let untouched: Vec<u64> = (0..SECTORS)
            .filter(|sector| !recording.writes.iter().any(|w| (w.first..w.first + w.sectors).contains(sector)))
            .collect();
        untouched.iter().for_each(|sector| disk.write_all_at(&[0; 512], sector * SECTOR).expect("written"));
        let mut medium = Medium::unknown(&recording);
        let mut survivors = Survivors::new(&recording, None);
        for when in (0..now + 40).step_by(23) {
            survivors.advance(when);
            for loses in [Loses::All, Loses::Some { whole: 1 }, Loses::Nothing] {
                let image = survivors.image(when, loses, &mut Random::new(2, when));
                medium.become_image(&mut survivors, &image, &log, &disk).expect("written");
                let mut found = vec![0; (SECTORS * SECTOR) as usize];
                disk.read_exact_at(&mut found, 0).expect("read");
                for sector in 0..SECTORS {
                    let write =
                        image.beyond.get(&sector).or(survivors.base.get(&sector)).map(|number| *number as usize);
                    let mut wanted = [0; 512];
                    if let Some(write) = write.map(|number| recording.writes[number]) {
                        let at = write.data_at + (sector - write.first) * SECTOR;
                        log.read_exact_at(&mut wanted, at).expect("read");
                    }
                    let held = &found[(sector * SECTOR) as usize..][..512];
                    assert!(held == wanted, "sector {sector} at {when} {loses:?}");
                }
                // The image again costs nothing.
                let again = medium.become_image(&mut survivors, &image, &log, &disk).expect("written");
                assert_eq!(again, 0);
                let (first, sectors) = (random.below(SECTORS - 8), 1 + random.below(8));
                disk.write_all_at(&vec![0xDD; (sectors * SECTOR) as usize], first * SECTOR).expect("written");
                medium.written(first, sectors);
            }
        }
    }
}
