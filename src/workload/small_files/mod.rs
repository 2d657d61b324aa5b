//! Many small files and one large one: what bonnie++ measures, and rename, link, append, fsync and readdir besides, with
//! every operation's latency.
//!
//! Each phase on many files does whole batches of the same work: as many as take a least time, told for one.

pub mod engine;
mod large;
mod many;

use super::{Setting, Stage, Workload};
use crate::data::content::Content;
use crate::data::profile::Stuff;
use crate::data::random::Random;
use crate::plan::{Kind, Objection, Settings};
use crate::stage::{Judged, Phase, Reads, Starts};
use anyhow::Result;
use std::borrow::Cow;
use std::ffi::CStr;
use std::time::Duration;

pub struct SmallFiles;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "files",
        kind: Kind::Count,
        default: Some("16384"),
        about: "files of a batch; phases on many files do one batch or more and are told for one",
    },
    Setting {
        name: "directories",
        kind: Kind::Count,
        default: Some("1"),
        about: "how many the files of a batch are spread over, in equal parts",
    },
    Setting {
        name: "file-size",
        kind: Kind::Size,
        default: None,
        about: "of each of the files; they are empty unless said, as bonnie++'s are",
    },
    Setting {
        name: "threads",
        kind: Kind::Count,
        default: Some("1"),
        about: "that share each batch's files, and the seeks, in equal parts; their directories too, where there are fewer",
    },
    Setting {
        name: "time",
        kind: Kind::Duration,
        default: Some("50ms"),
        about: "least time of a phase on many files: batches are doubled until they take so long or the room ends",
    },
    Setting { name: "large", kind: Kind::Size, default: Some("256MiB"), about: "size of the large file" },
    Setting {
        name: "characters",
        kind: Kind::Size,
        default: Some("20MiB"),
        about: "size of the file that is written and read by the character",
    },
    Setting { name: "seeks", kind: Kind::Count, default: Some("8192"), about: "random seeks in the large file" },
    Setting { name: "syncs", kind: Kind::Count, default: Some("512"), about: "fsyncs of a batch" },
    Setting {
        name: "cache",
        kind: Kind::Choice(&["cold", "warm"]),
        default: Some("cold"),
        about: "what rewrite, getc, read, seeks, stat, readdir and delete start from",
    },
];

impl Workload for SmallFiles {
    fn name(&self) -> &'static str {
        "small-files"
    }

    fn about(&self) -> &'static str {
        "what bonnie++ measures, and rename, link, append, fsync and readdir, with every latency"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn main_setting(&self) -> &'static str {
        "files"
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let cached = if Job::of(settings).cold { Starts::Cold } else { Starts::Warm };
        PHASES.iter().map(|row| row.phase(cached)).collect()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let Job { files, folders, threads, file_size, .. } = Job::of(settings);
        if file_size > OF_EACH_CLASS {
            let message = "this workload is for small files, of 4 MiB at most".to_string();
            return vec![Objection::new("file-size", message, "take a smaller one, or `large` for one large file")];
        }
        let numbers = ["files", "directories", "threads", "syncs"];
        if let Some(nothing) = numbers.into_iter().find(|name| settings.number(name) == Some(0)) {
            let message = format!("0 {nothing} are nothing to measure");
            return vec![Objection::new(nothing, message, "give 1 or more, or leave it out")];
        }
        let more = [("directories", folders), ("threads", threads)].into_iter().find(|(_, number)| *number > files);
        let told = more.map(|(setting, number)| {
            let message = format!("{number} {setting} are more than the {files} files of a batch");
            Objection::new(setting, message, "take fewer of them, or more `files`")
        });
        told.into_iter().collect()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let job = Job::of(settings);
        let many = job.files * (job.file_size + many::PIECE);
        Some((job.large + job.characters).max(many as u64))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let job = Job::of(settings);
        let mut pool = None;
        stage.check("making the content", || {
            pool = Some(Pool::new());
            Ok(())
        })?;
        let pool = pool.as_ref().expect("the check before has made it or failed");
        large::play(stage, &job, pool)?;
        many::play_set(stage, &job, pool, "sequential")?;
        many::play_set(stage, &job, pool, "random")?;
        many::play_others(stage, &job, pool)
    }
}

/// The settings, with those that were not given.
struct Job {
    files: usize,
    folders: usize,
    file_size: usize,
    threads: usize,
    time: Duration,
    large: u64,
    characters: u64,
    seeks: usize,
    syncs: usize,
    cold: bool,
}

impl Job {
    fn of(settings: &Settings) -> Job {
        let number = |name| settings.number(name).unwrap_or(1);
        Job {
            files: number("files") as usize,
            folders: number("directories") as usize,
            file_size: settings.number("file-size").unwrap_or(0) as usize,
            threads: number("threads") as usize,
            time: Duration::from_nanos(number("time")),
            large: number("large"),
            characters: number("characters"),
            seeks: number("seeks") as usize,
            syncs: number("syncs") as usize,
            cold: settings.text("cache") != Some("warm"),
        }
    }
}

/// A row of the table of phases.
struct Row {
    name: &'static str,
    about: &'static str,
    start: Start,
    judged: Judged,
}

/// What a phase starts from.
enum Start {
    Fresh,
    AsItIs,
    /// As the setting `cache` says; and what the device must read if that is cold.
    AsSet(Reads),
}

impl Row {
    fn phase(&self, cached: Starts) -> Phase {
        let (starts, reads) = match self.start {
            Start::Fresh => (Starts::Fresh, Reads::Names),
            Start::AsItIs => (Starts::Warm, Reads::Names),
            Start::AsSet(reads) => (cached, reads),
        };
        Phase { name: Cow::Borrowed(self.name), about: self.about, starts, reads, judged: self.judged }
    }
}

const fn row(name: &'static str, about: &'static str, start: Start, judged: Judged) -> Row {
    Row { name, about, start, judged }
}

const PHASES: &[Row] = &[
    row("putc", "a file written by putc(3), until durable", Start::Fresh, Judged::Durable),
    row("write", "the large file written in blocks of 8 KiB, until durable", Start::AsItIs, Judged::Durable),
    row(
        "rewrite",
        "each block of the large file read, changed and written back, until durable",
        Start::AsSet(Reads::Told),
        Judged::Durable,
    ),
    row("getc", "the file of putc read by getc(3)", Start::AsSet(Reads::Told), Judged::Returned),
    row("read", "the large file read in blocks of 8 KiB", Start::AsSet(Reads::Told), Judged::Returned),
    row(
        "seeks",
        "random blocks of the large file read, every tenth changed and written back, until durable",
        Start::AsSet(Reads::Told),
        Judged::Durable,
    ),
    row("sequential-create", "files made with names in order, until durable", Start::AsItIs, Judged::Durable),
    row("sequential-stat", "stat of them in that order", Start::AsSet(Reads::Names), Judged::Returned),
    row("readdir", "their directories read whole", Start::AsSet(Reads::Told), Judged::Returned),
    row(
        "sequential-delete",
        "they are deleted in that order, until durable",
        Start::AsSet(Reads::Names),
        Judged::Durable,
    ),
    row("random-create", "files made with names in no order, until durable", Start::AsItIs, Judged::Durable),
    row("random-stat", "stat of them in another order", Start::AsSet(Reads::Names), Judged::Returned),
    row("random-delete", "they are deleted in that order, until durable", Start::AsSet(Reads::Names), Judged::Durable),
    row("rename", "files renamed within their directories and back, until durable", Start::AsItIs, Judged::Durable),
    row("link", "files given a second name in a new directory, until durable", Start::AsItIs, Judged::Durable),
    row(
        "append",
        "4 KiB appended to each file, opened and closed for it, until durable",
        Start::AsItIs,
        Judged::Durable,
    ),
    row("fsync", "4 KiB appended to one file and fsynced, again and again", Start::AsItIs, Judged::Durable),
];

/// Bytes of each class of content that blocks and files are cut from.
const OF_EACH_CLASS: usize = 4 << 20;
/// From the content of one block to that of the next; odd, so that none comes twice for very long.
const STEP: usize = 3 * large::BLOCK + 4097;

/// Content to write: text, object code and media in equal parts.
struct Pool(Vec<u8>);

impl Pool {
    fn new() -> Pool {
        let (mut content, mut made) = (Content::new(), Vec::new());
        for (stream, stuff) in (1..).zip([Stuff::Source, Stuff::Object, Stuff::Media]) {
            made.extend_from_slice(content.like(stuff, &mut Random::new(1, stream), OF_EACH_CLASS));
        }
        Pool(made)
    }

    /// Of a large file.
    fn block(&self, number: u64) -> &[u8] {
        self.at(number.wrapping_mul(STEP as u64), large::BLOCK)
    }

    /// Of the file that is called so; nothing of it where files are empty.
    #[inline]
    fn piece(&self, name: &CStr, bytes: usize) -> &[u8] {
        if bytes == 0 { &[] } else { self.at(xxhash_rust::xxh3::xxh3_64(name.to_bytes()), bytes) }
    }

    fn at(&self, place: u64, bytes: usize) -> &[u8] {
        let at = (place % (self.0.len() - bytes) as u64) as usize;
        &self.0[at..at + bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(list: &[(&str, u64)]) -> Settings {
        Settings(list.iter().map(|(name, value)| (name.to_string(), (*value).into())).collect())
    }

    #[test]
    fn more_directories_or_threads_than_files_are_refused() {
        let objections = |files, directories, threads| {
            let list = [("files", files), ("directories", directories), ("threads", threads)];
            SmallFiles.objections(&settings(&list)).len()
        };
        assert_eq!([objections(9, 9, 9), objections(9, 10, 1), objections(9, 1, 10)], [0, 1, 1]);
        assert_eq!(SmallFiles.objections(&settings(&[("file-size", 5 << 20)])).len(), 1);
        for nothing in ["files", "directories", "threads", "syncs"] {
            let told = SmallFiles.objections(&settings(&[(nothing, 0)]));
            assert_eq!(told.first().map(|objection| objection.setting), Some(nothing));
        }
    }

    #[test]
    fn cold_and_warm_are_declared() {
        let cold =
            |settings: &Settings| SmallFiles.phases(settings).iter().filter(|p| p.starts == Starts::Cold).count();
        assert_eq!(cold(&Settings::default()), 9);
        assert_eq!(cold(&Settings([("cache".to_string(), "warm".into())].into())), 0);
    }

    #[test]
    fn content_is_neither_zeros_nor_the_same() {
        let pool = Pool::new();
        assert_ne!(pool.block(0), pool.block(1));
        assert_ne!(pool.piece(c"one", 4096), pool.piece(c"other", 4096));
        assert!(pool.piece(c"one", 0).is_empty() && pool.block(7).iter().any(|byte| *byte != 0));
    }
}
