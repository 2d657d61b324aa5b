//! A file overwritten again and again for a time, as a log or a recording is: how fast it goes on once caches are full
//! and the first fine seconds are over.

use super::{Setting, Stage, Workload};
use crate::data::content::Content;
use crate::data::profile::Stuff;
use crate::data::random::Random;
use crate::plan::{Kind, Objection, Settings};
use crate::stage::SHORTEST_TIME;
use crate::stage::{Judged, Phase, Reads, Starts};
use crate::units::show_duration;
use anyhow::{Context, Result, ensure};
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

pub struct Stream;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "time",
        kind: Kind::Duration,
        default: Some("100s"),
        about: "how long; doubled up to three times where the rate is not steady, as far as `cell` allows",
    },
    Setting {
        name: "size",
        kind: Kind::Size,
        default: Some("256MiB"),
        about: "size of the file; from its end it goes on at its start",
    },
    Setting {
        name: "sync",
        kind: Kind::Size,
        default: Some("4MiB"),
        about: "fdatasync whenever so much is written, in whole writes of 256 KiB",
    },
];

const PHASES: &[Phase] = &[Phase {
    name: Cow::Borrowed("overwrite-1GiB"),
    about: "overwrite a file from start to end, again and again; told for 1 GiB at the steady rate",
    starts: Starts::Warm,
    reads: Reads::Data,
    judged: Judged::Durable,
}];

/// What is written at a time.
const BLOCK: usize = 256 << 10;
/// Bytes of each class of content that blocks are cut from.
const OF_EACH_CLASS: usize = 8 << 20;
/// From the content of one block to that of the next; odd, so that none comes twice for very long.
const STEP: u64 = 3 * BLOCK as u64 + 4097;

impl Workload for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn about(&self) -> &'static str {
        "a file overwritten for a time, for the steady rate of writing"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "time"
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        PHASES.to_vec()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        settings.number("size").map(|size| in_blocks(size) * BLOCK as u64)
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let too_short = settings.number("time").filter(|time| Duration::from_nanos(*time) < SHORTEST_TIME);
        let told = too_short.map(|time| {
            let (time, least) = (show_duration(time as f64), show_duration(SHORTEST_TIME.as_nanos() as f64));
            let message = format!("in {time} no rate can be seen to be steady");
            Objection::new("time", message, &format!("give {least} or more"))
        });
        told.into_iter().collect()
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let number = |name| settings.number(name).unwrap_or(1);
        let time = Duration::from_nanos(number("time"));
        let mut content = Vec::new();
        stage.check("making the content", || {
            content = make_content();
            Ok(())
        })?;
        let mut ring = Ring::new(&stage.root().join("file"), &content, in_blocks(number("size")))?;
        stage.check("writing the file for the first time", || {
            ring.write(ring.blocks)?;
            Ok(())
        })?;
        let sync = in_blocks(number("sync"));
        stage.phase("overwrite-1GiB", |p| p.for_a_time(time, || ring.write(sync)))?;
        stage.check("verifying what was written last", || ring.verify())
    }
}

fn in_blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK as u64).max(1)
}

/// Text, object code and media in equal parts.
fn make_content() -> Vec<u8> {
    let (mut content, mut made) = (Content::new(), Vec::new());
    for (stream, stuff) in (1..).zip([Stuff::Source, Stuff::Object, Stuff::Media]) {
        made.extend_from_slice(content.like(stuff, &mut Random::new(1, stream), OF_EACH_CLASS));
    }
    made
}

/// A file that is written round and round.
struct Ring<'a> {
    file: File,
    content: &'a [u8],
    blocks: u64,
    /// In blocks, since it was made.
    written: u64,
}

impl Ring<'_> {
    fn new<'a>(path: &Path, content: &'a [u8], blocks: u64) -> Result<Ring<'a>> {
        let file = File::options().read(true).write(true).create_new(true).open(path);
        Ok(Ring { file: file.with_context(|| format!("making {}", path.display()))?, content, blocks, written: 0 })
    }

    /// So many blocks further on, then durable; the bytes of them.
    fn write(&mut self, blocks: u64) -> Result<u64> {
        for _ in 0..blocks {
            self.file.write_all_at(self.block(self.written), self.place(self.written))?;
            self.written += 1;
        }
        self.file.sync_data()?;
        Ok(blocks * BLOCK as u64)
    }

    /// Other bytes each time that a place comes round.
    fn block(&self, number: u64) -> &[u8] {
        let at = (number * STEP % (self.content.len() - BLOCK) as u64) as usize;
        &self.content[at..at + BLOCK]
    }

    fn place(&self, number: u64) -> u64 {
        number % self.blocks * BLOCK as u64
    }

    /// The last round holds what was written last.
    fn verify(&self) -> Result<()> {
        let mut found = vec![0; BLOCK];
        for number in self.written.saturating_sub(self.blocks)..self.written {
            self.file.read_exact_at(&mut found, self.place(number))?;
            ensure!(found == self.block(number), "other bytes at {} than were written", self.place(number));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_goes_round_and_damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let content = make_content();
        let mut ring = Ring::new(&folder.path().join("file"), &content, 5).unwrap();
        for blocks in [5, 2, 4, 3] {
            assert_eq!(ring.write(blocks).unwrap(), blocks * BLOCK as u64);
            ring.verify().unwrap();
        }
        assert_eq!(ring.file.metadata().unwrap().len(), 5 * BLOCK as u64);
        assert_ne!(ring.block(0), ring.block(5));
        ring.file.write_all_at(b"damage", 2 * BLOCK as u64 + 70).unwrap();
        assert!(ring.verify().is_err());
    }

    #[test]
    fn a_time_that_shows_nothing_is_refused() {
        let objections = |seconds: u64| {
            let settings = Settings([("time".to_string(), (seconds * 1_000_000_000).into())].into());
            Stream.objections(&settings).len()
        };
        assert_eq!([objections(30), objections(99), objections(100), objections(900)], [1, 1, 0, 0]);
    }
}
