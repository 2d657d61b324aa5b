//! Reads what the driver of a simulated disk has recorded (`simdisk.c`): a first page with counts,
//! then one entry behind the other, each write with its data.

use super::NEVER;
use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// "PICFREC1", little endian.
const MAGIC: u64 = 0x3143_4552_4643_4950;
/// Bytes of the first page, where entries begin.
const FIRST: u64 = 4096;
const ENTRY: usize = 64;
const USED_AT: u64 = 16;
const MODE_AT: u64 = 32;

/// What the driver records from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Nothing = 0,
    /// Writes with their data, flushes, and what came to the medium.
    All = 1,
    /// Where is written, and no data.
    Places = 2,
}

/// A write, with what became of it. Times are nanoseconds of the recorded machine's clock,
/// [`NEVER`] where it did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub first: u64,
    pub sectors: u64,
    /// Where in the recording its data are, in bytes; nothing where none were kept.
    pub data_at: u64,
    pub submitted: u64,
    pub acknowledged: u64,
    /// No cut takes it any more: it was acknowledged with force unit access or by a disk that
    /// forgets nothing, or a flush that came behind its end was acknowledged.
    pub durable: u64,
    /// It was on the medium, whether anything asked for it or not.
    pub on_medium: u64,
}

/// All that a disk was given.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// In the order in which they were given.
    pub writes: Vec<Write>,
    /// When each flush was acknowledged; ascending.
    pub flushes: Vec<u64>,
    /// Bytes of the recording.
    pub used: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    operation: u64,
    first: u64,
    sectors: u64,
    forced: bool,
    submitted: u64,
    done: u64,
    data: u64,
}

struct Page {
    bytes: u64,
    used: u64,
    lost: u64,
    command_ns: u64,
    link_ps: u64,
    forgets: bool,
}

impl Recording {
    /// From a device or file.
    pub fn read(file: &File) -> Result<Recording> {
        Ok(Reader::of(file, FIRST)?.end())
    }

    /// Where was written behind a place of the recording: first sectors and numbers of sectors.
    pub fn places(file: &File, from: u64) -> Result<Vec<(u64, u64)>> {
        let reader = Reader::of(file, from)?;
        Ok(reader.recording.writes.iter().map(|write| (write.first, write.sectors)).collect())
    }

    /// Has the driver go on from a place of the recording.
    pub fn go_on(file: &File, from: u64, mode: Mode) -> Result<()> {
        let page = Page::read(file)?;
        ensure!((FIRST..=page.bytes).contains(&from), "a recording cannot go on at byte {from}");
        let written = file.write_all_at(&from.to_le_bytes(), USED_AT);
        let written = written.and_then(|()| file.write_all_at(&(mode as u64).to_le_bytes(), MODE_AT));
        written.and_then(|()| file.sync_all()).context("cannot write the first page of the recording")
    }
}

impl Page {
    fn read(file: &File) -> Result<Page> {
        let mut bytes = [0; 64];
        file.read_exact_at(&mut bytes, 0).context("cannot read the recording of the disk")?;
        let [magic, bytes, used, lost, _, command_ns, link_ps, forgets] = words(&bytes);
        ensure!(magic == MAGIC, "this is no recording of a disk");
        ensure!(
            (FIRST..=bytes).contains(&used),
            "the recording of the disk is damaged: {used} of {bytes} bytes are used"
        );
        Ok(Page { bytes, used, lost, command_ns, link_ps, forgets: forgets != 0 })
    }
}

fn words(bytes: &[u8; 64]) -> [u64; 8] {
    std::array::from_fn(|at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * at + byte])))
}

struct Reader {
    page: Page,
    recording: Recording,
    /// When each was given and acknowledged.
    flushes: Vec<(u64, u64)>,
    /// For flash: writes that are not on the medium yet, and how many of their sectors are not.
    unlanded: VecDeque<(usize, u64)>,
}

impl Reader {
    /// Of all entries from a place on.
    fn of(file: &File, from: u64) -> Result<Reader> {
        let page = Page::read(file)?;
        let Page { bytes, used, lost, .. } = page;
        ensure!(
            lost == 0,
            "{lost} writes had no room in the recording of {bytes} bytes: shorten `time`, or give a larger `record`"
        );
        let mut reader =
            Reader { page, recording: Recording::default(), flushes: Vec::new(), unlanded: VecDeque::new() };
        let mut at = from;
        while at < used {
            let mut bytes = [0; ENTRY];
            file.read_exact_at(&mut bytes, at).context("cannot read the recording of the disk")?;
            let [operation, first, sectors, forced, submitted, done, data, _] = words(&bytes);
            let entry = Entry { operation, first, sectors, forced: forced != 0, submitted, done, data };
            reader.take(entry, at + ENTRY as u64)?;
            at = at.saturating_add(ENTRY as u64).saturating_add(data);
        }
        ensure!(at == used, "the last entry of the recording ends behind it");
        Ok(reader)
    }

    fn take(&mut self, entry: Entry, data_at: u64) -> Result<()> {
        let Entry { operation, first, sectors, forced, submitted, done, data } = entry;
        // The driver leaves 0 where the end never came.
        let acknowledged = if done == 0 { NEVER } else { done };
        match operation {
            1 => {
                ensure!(first.checked_add(sectors).is_some(), "a recorded write has no place");
                let durable = if forced || !self.page.forgets { acknowledged } else { NEVER };
                let data_at = if data == 0 { 0 } else { data_at };
                let on_medium = if self.page.forgets { NEVER } else { acknowledged };
                self.unlanded.push_back((self.recording.writes.len(), sectors));
                self.recording.writes.push(Write {
                    first,
                    sectors,
                    data_at,
                    submitted,
                    acknowledged,
                    durable,
                    on_medium,
                });
            }
            2 => self.flushes.push((submitted, acknowledged)),
            4 if first == NEVER => self.land_next(sectors, done),
            4 => self.land(first, sectors, submitted, done),
            other => bail!("the recording has an operation {other} that is not known"),
        }
        Ok(())
    }

    /// Flash programs what it was given in that order.
    fn land_next(&mut self, mut sectors: u64, when: u64) {
        while let Some((write, left)) = self.unlanded.front_mut() {
            let part = sectors.min(*left);
            (*left, sectors) = (*left - part, sectors - part);
            if *left > 0 {
                return;
            }
            let write = &mut self.recording.writes[*write];
            write.on_medium = write.on_medium.min(when);
            self.unlanded.pop_front();
            if sectors == 0 {
                return;
            }
        }
    }

    /// A hard disk has written an extent of its cache: what was in the cache when it began. What
    /// lies only in part in the extent is not counted.
    fn land(&mut self, first: u64, sectors: u64, begun: u64, when: u64) {
        let (command, link) = (self.page.command_ns, self.page.link_ps);
        let writes = &mut self.recording.writes;
        self.unlanded.retain(|(number, _)| {
            let write = &mut writes[*number];
            // When it came into the cache: its command and its transfer are over when it is
            // acknowledged.
            let transfer = write.sectors.saturating_mul(link) / 1000;
            let cached = write.acknowledged.saturating_sub(command.saturating_add(transfer));
            let ends = write.first + write.sectors;
            let inside = write.first >= first && ends <= first.saturating_add(sectors);
            let landed = inside && cached <= begun;
            if landed {
                write.on_medium = write.on_medium.min(when);
            }
            !landed
        });
    }

    fn end(mut self) -> Recording {
        self.flushes.sort_unstable();
        // For each flush: the earliest end among it and all later flushes.
        let mut earliest = NEVER;
        for (_, acknowledged) in self.flushes.iter_mut().rev() {
            earliest = earliest.min(*acknowledged);
            *acknowledged = earliest;
        }
        for write in &mut self.recording.writes {
            let behind = self.flushes.partition_point(|(given, _)| *given < write.acknowledged);
            let flushed = self.flushes.get(behind).map_or(NEVER, |(_, acknowledged)| *acknowledged);
            write.durable = write.durable.min(flushed);
        }
        let mut flushes: Vec<u64> = self.flushes.iter().map(|(_, acknowledged)| *acknowledged).collect();
        flushes.retain(|acknowledged| *acknowledged != NEVER);
        flushes.sort_unstable();
        flushes.dedup();
        Recording { flushes, used: self.page.used, ..self.recording }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Write as _;

    /// A recording as the driver writes it.
    pub(crate) struct Written {
        entries: Vec<u8>,
        forgets: bool,
    }

    impl Written {
        pub(crate) fn by_a_disk_that_forgets(forgets: bool) -> Written {
            Written { entries: Vec::new(), forgets }
        }

        pub(crate) fn entry(mut self, words: [u64; 6], data: &[u8]) -> Written {
            let all = words.into_iter().chain([data.len() as u64, 0]);
            all.for_each(|word| self.entries.extend(word.to_le_bytes()));
            self.entries.extend(data);
            self
        }

        pub(crate) fn write(self, first: u64, data: &[u8], submitted: u64, done: u64) -> Written {
            let sectors = data.len() as u64 / 512;
            self.entry([1, first, sectors, 0, submitted, done], data)
        }

        pub(crate) fn forced(self, first: u64, data: &[u8], submitted: u64, done: u64) -> Written {
            let sectors = data.len() as u64 / 512;
            self.entry([1, first, sectors, 1, submitted, done], data)
        }

        pub(crate) fn flush(self, submitted: u64, done: u64) -> Written {
            self.entry([2, 0, 0, 0, submitted, done], &[])
        }

        pub(crate) fn file(self) -> File {
            let mut file = tempfile::tempfile().expect("a file");
            let used = FIRST + self.entries.len() as u64;
            let page = [MAGIC, used + 4096, used, 0, 1, 10, 1000, u64::from(self.forgets)];
            page.into_iter().for_each(|word| file.write_all(&word.to_le_bytes()).expect("written"));
            file.write_all_at(&self.entries, FIRST).expect("written");
            file
        }
    }

    fn read(written: Written) -> Recording {
        Recording::read(&written.file()).expect("a recording")
    }

    #[test]
    fn a_write_is_durable_when_a_flush_behind_its_end_is_acknowledged() {
        let a = [1; 512];
        // Given, acknowledged: the second flush was given before the third write had ended.
        let written = Written::by_a_disk_that_forgets(true)
            .write(0, &a, 1, 5)
            .flush(4, 9)
            .write(8, &a, 6, 12)
            .flush(10, 20)
            .flush(13, 18)
            .write(16, &a, 19, 0)
            .forced(24, &a, 21, 23);
        let found = read(written);
        let durable: Vec<u64> = found.writes.iter().map(|write| write.durable).collect();
        assert_eq!(durable, [18, 18, NEVER, 23], "{found:?}");
        assert_eq!(found.flushes, [9, 18]);
    }

    #[test]
    fn a_disk_that_forgets_nothing_has_what_it_acknowledged() {
        let found = read(Written::by_a_disk_that_forgets(false).write(0, &[1; 512], 1, 5).write(8, &[1; 512], 6, 0));
        assert_eq!(found.writes.iter().map(|write| write.durable).collect::<Vec<_>>(), [5, NEVER]);
    }

    #[test]
    fn flash_programs_in_order_and_a_hard_disk_by_extents() {
        let a = [1; 1024];
        let flash = Written::by_a_disk_that_forgets(true)
            .write(0, &a, 1, 2)
            .write(8, &a, 3, 4)
            .entry([4, NEVER, 3, 0, 0, 30], &[])
            .entry([4, NEVER, 1, 0, 0, 40], &[]);
        assert_eq!(read(flash).writes.iter().map(|write| write.on_medium).collect::<Vec<_>>(), [30, 40]);
        // The extent was begun at 50: the third write came into the cache 12 ns before its end.
        let disk = Written::by_a_disk_that_forgets(true)
            .write(0, &a, 1, 20)
            .write(2, &a, 3, 30)
            .write(0, &a, 52, 65)
            .entry([4, 0, 4, 0, 50, 70], &[]);
        assert_eq!(read(disk).writes.iter().map(|write| write.on_medium).collect::<Vec<_>>(), [70, 70, NEVER]);
    }

    #[test]
    fn numbers_that_no_disk_says_are_no_trouble() {
        let written = Written::by_a_disk_that_forgets(true).write(8, &[1; 512], u64::MAX, u64::MAX - 1);
        let read = read(written.entry([4, u64::MAX - 1, 9, 0, 0, 3], &[]).entry([4, 8, 1, 0, u64::MAX, 7], &[]));
        assert_eq!(read.writes[0].on_medium, 7);
    }

    #[test]
    fn what_is_no_whole_recording_is_refused() {
        let refused = |file: &File, says: &str| {
            let error = format!("{:#}", Recording::read(file).expect_err(says));
            assert!(error.contains(says), "{error}");
        };
        let file = || Written::by_a_disk_that_forgets(true).write(0, &[1; 512], 1, 5).file();
        let changed = |at: u64, word: u64| {
            let file = file();
            file.write_all_at(&word.to_le_bytes(), at).expect("written");
            file
        };
        refused(&changed(0, 7), "no recording");
        refused(&changed(16, 1 << 40), "is damaged");
        refused(&changed(24, 3), "3 writes had no room");
        refused(&changed(FIRST, 9), "operation 9");
        refused(&changed(FIRST + 48, 9999), "ends behind it");
        refused(&changed(FIRST + 48, u64::MAX), "ends behind it");
        refused(&tempfile::tempfile().expect("a file"), "cannot read");
    }

    #[test]
    fn the_driver_goes_on_where_it_is_told_to() {
        let file = Written::by_a_disk_that_forgets(true).write(0, &[1; 512], 1, 5).write(8, &[2; 512], 6, 7).file();
        let second = FIRST + 64 + 512;
        assert_eq!(Recording::places(&file, second).expect("places"), [(8, 1)]);
        Recording::go_on(&file, second, Mode::Places).expect("written");
        assert_eq!(Recording::read(&file).expect("a recording").writes.len(), 1);
        assert!(Recording::go_on(&file, 0, Mode::Nothing).is_err());
    }
}
