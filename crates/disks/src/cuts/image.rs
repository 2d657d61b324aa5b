//! Which of the writes are on the disk after a cut, for several kinds of disks.

use super::recording::{Recording, Write};
use pickfs_system::random::Random;
use std::collections::{BTreeMap, HashMap};

/// What a disk loses of what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loses {
    /// Nothing that it has acknowledged: a drive with power-loss protection.
    Nothing,
    /// All of it: the worst that a disk may do which keeps its word.
    All,
    /// What the model of the disk had not brought to the medium by then.
    Cached,
    /// Some of it, drawn by the seed, and some writes in part: sectors of this number at a time are
    /// whole.
    Some { whole: u64 },
}

/// What is on the disk: of each sector the write that it has. Where there is none it has its first
/// content, zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Image {
    /// Number of writes that surely are there, in the order of [`Survivors`].
    base: usize,
    /// Where it differs from these: sectors with the numbers of their writes.
    pub beyond: BTreeMap<u64, u32>,
}

/// Follows the recording through time. Moments must ascend.
pub struct Survivors<'a> {
    recording: &'a Recording,
    /// Writes by the time from which on they surely survive, and that time.
    by_time: Vec<(u64, u32)>,
    /// How many of these have been reached.
    reached: usize,
    /// The write that each sector has surely; one that was given later is never replaced by an
    /// earlier one.
    pub base: HashMap<u64, u32>,
    /// Sectors whose write changed since they were last asked for.
    changed: Vec<u64>,
    lies_ns: Option<u64>,
}

impl<'a> Survivors<'a> {
    /// `lies_ns`: a disk that loses so much of the end, whatever it has acknowledged.
    pub fn new(recording: &'a Recording, lies_ns: Option<u64>) -> Survivors<'a> {
        let sure = |write: &Write| match lies_ns {
            None => write.durable,
            Some(lies) => write.acknowledged.saturating_add(lies),
        };
        let numbered = recording.writes.iter().enumerate();
        let mut by_time: Vec<(u64, u32)> = numbered.map(|(number, write)| (sure(write), number as u32)).collect();
        by_time.sort_unstable();
        Survivors { recording, by_time, reached: 0, base: Default::default(), changed: Vec::new(), lies_ns }
    }

    /// Goes on to a moment.
    pub fn advance(&mut self, at: u64) {
        while let Some(&(_, number)) = self.by_time.get(self.reached).filter(|(sure, _)| *sure <= at) {
            self.reached += 1;
            let write = &self.recording.writes[number as usize];
            for sector in write.first..write.first + write.sectors {
                let held = self.base.entry(sector).or_insert(number);
                *held = (*held).max(number);
                self.changed.push(sector);
            }
        }
    }

    /// Sectors that may hold something else than when this was last asked, with repetitions.
    pub(crate) fn changed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.changed)
    }

    /// What a disk holds at the moment that was last advanced to, which is given again.
    pub fn image(&self, at: u64, loses: Loses, random: &mut Random) -> Image {
        let mut image = Image { base: self.reached, beyond: BTreeMap::new() };
        if self.lies_ns.is_some() {
            return image;
        }
        let mut unsure: Vec<u32> = self.by_time[self.reached..].iter().map(|(_, number)| *number).collect();
        unsure.retain(|number| self.recording.writes[*number as usize].submitted <= at);
        // A write that was given later lies over an earlier one.
        unsure.sort_unstable();
        for number in unsure {
            let write = &self.recording.writes[number as usize];
            let survives: Box<dyn FnMut(u64) -> bool> = match loses {
                Loses::Nothing => Box::new(|_| write.acknowledged <= at),
                Loses::All => Box::new(|_| false),
                Loses::Cached => Box::new(|_| write.on_medium <= at),
                Loses::Some { whole } => drawn(random, whole),
            };
            self.lay(number, survives, &mut image.beyond);
        }
        image
    }

    fn lay(&self, number: u32, mut survives: impl FnMut(u64) -> bool, beyond: &mut BTreeMap<u64, u32>) {
        let write = &self.recording.writes[number as usize];
        for sector in write.first..write.first + write.sectors {
            if survives(sector) && self.base.get(&sector).is_none_or(|held| *held < number) {
                beyond.insert(sector, number);
            }
        }
    }
}

/// Half of the writes are there, a quarter is not, and of a quarter some pieces are.
fn drawn(random: &mut Random, whole: u64) -> Box<dyn FnMut(u64) -> bool> {
    let (fate, salt) = (random.below(4), random.bits());
    Box::new(move |sector| match fate {
        0 | 1 => true,
        2 => false,
        _ => Random::new(salt, sector / whole.max(1)).below(2) == 0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::recording::tests::Written;
    use super::*;

    const LOSSES: [Loses; 4] = [Loses::Nothing, Loses::All, Loses::Cached, Loses::Some { whole: 1 }];

    /// Sectors that are there, each with the write that it has.
    fn held(survivors: &Survivors, image: &Image) -> BTreeMap<u64, u32> {
        let mut all: BTreeMap<u64, u32> = survivors.base.iter().map(|(sector, write)| (*sector, *write)).collect();
        all.extend(&image.beyond);
        all
    }

    fn at(recording: &Recording, at: u64, loses: Loses) -> BTreeMap<u64, u32> {
        let mut survivors = Survivors::new(recording, None);
        survivors.advance(at);
        let image = survivors.image(at, loses, &mut Random::new(1, at));
        held(&survivors, &image)
    }

    #[test]
    fn each_kind_of_disk_keeps_what_it_must() {
        let a = [1; 512];
        let written = Written::by_a_disk_that_forgets(true)
            .write(0, &a, 1, 5)
            .entry([4, u64::MAX, 1, 0, 0, 8], &[])
            .write(1, &a, 10, 15)
            .flush(16, 20)
            .write(2, &a, 22, 25)
            .write(3, &a, 28, 35);
        let recording = Recording::read(&written.file()).expect("a recording");
        let sectors = |when, loses| at(&recording, when, loses).into_keys().collect::<Vec<u64>>();
        for (when, nothing, all, cached) in [
            (4, vec![], vec![], vec![]),
            (6, vec![0], vec![], vec![]),
            (9, vec![0], vec![], vec![0]),
            (19, vec![0, 1], vec![], vec![0]),
            (20, vec![0, 1], vec![0, 1], vec![0, 1]),
            (30, vec![0, 1, 2], vec![0, 1], vec![0, 1]),
            (40, vec![0, 1, 2, 3], vec![0, 1], vec![0, 1]),
        ] {
            assert_eq!(sectors(when, Loses::Nothing), nothing, "{when}");
            assert_eq!(sectors(when, Loses::All), all, "{when}");
            assert_eq!(sectors(when, Loses::Cached), cached, "{when}");
        }
        // What is flushed is lost as well by a disk that does not keep its word.
        for (when, wanted) in [(14, vec![]), (24, vec![0]), (26, vec![0, 1])] {
            let mut survivors = Survivors::new(&recording, Some(10));
            survivors.advance(when);
            let image = survivors.image(when, Loses::Nothing, &mut Random::new(1, 1));
            assert_eq!(held(&survivors, &image).into_keys().collect::<Vec<u64>>(), wanted, "{when}");
        }
    }

    #[test]
    fn what_was_given_later_lies_above_and_an_earlier_write_never_replaces_it() {
        let a = [1; 512];
        // The first is flushed only after the second, which was forced to the medium.
        let written = Written::by_a_disk_that_forgets(true)
            .write(7, &a, 1, 5)
            .forced(7, &a, 6, 9)
            .flush(12, 20)
            .write(7, &a, 21, 25)
            .write(7, &a, 26, 29);
        let recording = Recording::read(&written.file()).expect("a recording");
        for (when, loses, wanted) in [
            (5, Loses::Nothing, 0),
            (10, Loses::All, 1),
            (10, Loses::Nothing, 1),
            (20, Loses::All, 1),
            (27, Loses::Nothing, 2),
            (30, Loses::Nothing, 3),
            (30, Loses::All, 1),
        ] {
            assert_eq!(at(&recording, when, loses), [(7, wanted)].into(), "{when} {loses:?}");
        }
    }

    /// Against a plain replay of every write that survives, in the order in which they were given.
    #[test]
    fn images_are_those_of_a_plain_replay() {
        let mut random = Random::new(3, 3);
        let (mut written, mut now) = (Written::by_a_disk_that_forgets(true), 0);
        for _ in 0..400 {
            now += 1 + random.below(9);
            let (first, sectors, takes) = (random.below(40), 1 + random.below(8), 1 + random.below(30));
            let data = vec![0; (sectors * 512) as usize];
            written = match random.below(6) {
                0 => written.flush(now, now + takes),
                1 => written.forced(first, &data, now, now + takes),
                _ => written.write(first, &data, now, now + takes),
            };
        }
        let recording = Recording::read(&written.file()).expect("a recording");
        let mut survivors = Survivors::new(&recording, None);
        for when in (0..now + 50).step_by(17) {
            survivors.advance(when);
            for (loses, survives) in [
                (
                    Loses::Nothing,
                    &(|write: &Write| write.acknowledged.min(write.durable) <= when) as &dyn Fn(&Write) -> bool,
                ),
                (Loses::All, &|write: &Write| write.durable <= when),
            ] {
                let mut plain = BTreeMap::new();
                for (number, write) in recording.writes.iter().enumerate().filter(|(_, write)| survives(write)) {
                    (write.first..write.first + write.sectors).for_each(|sector| {
                        plain.insert(sector, number as u32);
                    });
                }
                let image = survivors.image(when, loses, &mut Random::new(1, 1));
                assert_eq!(held(&survivors, &image), plain, "{when} {loses:?}");
            }
            // Whatever is drawn lies between the two.
            let image = survivors.image(when, Loses::Some { whole: 8 }, &mut Random::new(1, when));
            let given = |number: &u32| recording.writes[*number as usize].submitted <= when;
            assert!(image.beyond.values().all(given));
        }
    }

    #[test]
    fn some_are_torn_and_the_same_seed_tears_them_alike() {
        let mut written = Written::by_a_disk_that_forgets(true);
        for number in 0..200 {
            written = written.write(number * 16, &[1; 16 * 512], number, number + 1);
        }
        let recording = Recording::read(&written.file()).expect("a recording");
        let mut survivors = Survivors::new(&recording, None);
        survivors.advance(500);
        for whole in [1, 8] {
            let draw = |seed| survivors.image(500, Loses::Some { whole }, &mut Random::new(seed, 0));
            let image = draw(1);
            assert_eq!(image, draw(1));
            assert_ne!(image, draw(2));
            let there = |write: u64| image.beyond.keys().filter(|sector| **sector / 16 == write).count();
            let counts: Vec<usize> = (0..200).map(there).collect();
            let torn = counts.iter().filter(|count| (1..16).contains(*count)).count();
            let whole_ones = counts.iter().filter(|count| **count == 16).count();
            assert!((15..80).contains(&torn) && (80..140).contains(&whole_ones), "{torn} {whole_ones}");
            assert!(counts.iter().all(|count| *count as u64 % whole == 0), "pieces of {whole} are whole");
        }
        for loses in LOSSES {
            assert_eq!(survivors.image(500, loses, &mut Random::new(1, 0)).base, 0, "nothing was flushed");
        }
    }
}
