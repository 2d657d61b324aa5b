//! Many small files and one large one: what bonnie++ measures, and also rename, link, append, fsync
//! and readdir, with every operation's latency.
//!
//! Each phase on many files does whole batches of the same work: as many as take a least time. Its
//! quantities are those of one batch.

pub mod engine;
mod large;
mod many;

use super::content::Pool;
use super::settings::{Duration, Items, Size, choice, settings};
use super::{Description, Workload, described};
use crate::stage::Stage;
use crate::stage::phase::*;
use anyhow::Result;
use pickfs_core::plan::{Objection, Settings};
use std::ffi::CStr;

pub(crate) struct SmallFiles;

choice! { Cache { Emptied = "cold", Filled = "warm" } }

settings! {
    Job {
        files: Items<1> = "16384", "files of a batch; phases on many files do one batch or more and are reported for one";
        directories: Items<1> = "1", "how many the files of a batch are spread over, in equal parts";
        file_size["file-size"]: Size, "of each of the files; empty by default, as bonnie++'s are";
        threads: Items<1> = "1",
            "that share each batch's files, and the seeks, in equal parts; their directories too, where there are fewer";
        time: Duration = "50ms",
            "least time of a phase on many files: batches are doubled until they take this long or the room ends";
        large: Size = "256MiB", "size of the large file";
        characters: Size = "20MiB", "size of the file that is written and read by the character";
        seeks: Items = "8192", "random seeks in the large file";
        syncs: Items<1> = "512", "fsyncs of a batch";
        cache: Cache = "cold", "what rewrite, getc, read, seeks, stat, readdir and delete start from";
    }
}

impl Workload for SmallFiles {
    fn description(&self) -> &'static Description {
        described!("small_files.toml", Job::ROWS)
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let cached = if Job::of(settings).is_cold() { Cold } else { Warm };
        let of_setting = |phase: &Phase| if phase.starts == Cold { cached } else { phase.starts };
        self.description().phases.iter().map(|phase| Phase { starts: of_setting(phase), ..phase.clone() }).collect()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let job = Job::of(settings);
        if job.bytes_of_file() > OF_EACH_CLASS {
            let message = "this workload is for small files, of 4 MiB at most".to_string();
            return vec![Objection::new("file-size", message, "take a smaller one, or `large` for one large file")];
        }
        let Job { files, directories, threads, .. } = job;
        let more = [("directories", directories), ("threads", threads)].into_iter().find(|(_, number)| *number > files);
        let complaints = more.map(|(setting, number)| {
            let message = format!("{number} {setting} are more than the {files} files of a batch");
            Objection::new(setting, message, "take fewer of them, or more `files`")
        });
        complaints.into_iter().collect()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let job = Job::of(settings);
        let many = job.files * (job.bytes_of_file() + many::PIECE);
        Some((job.large + job.characters).max(many as u64))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let job = Job::of(settings);
        let pool = &stage.check("making the content", || Ok(Pool::new(1, OF_EACH_CLASS)))?;
        large::play(stage, &job, pool)?;
        many::play_set(stage, &job, pool, Naming::InOrder)?;
        many::play_set(stage, &job, pool, Naming::AtRandom)?;
        many::play_others(stage, &job, pool)
    }
}

choice! {
    /// In which order the files of a set are named, and done.
    Naming { InOrder = "sequential", AtRandom = "random" }
}

impl Job {
    fn bytes_of_file(&self) -> usize {
        self.file_size.unwrap_or(0) as usize
    }

    fn is_cold(&self) -> bool {
        self.cache == Cache::Emptied
    }
}

/// Bytes of each class of content that blocks and files are cut from.
const OF_EACH_CLASS: usize = 4 << 20;
/// A block of the large file.
fn block(pool: &Pool, number: u64) -> &[u8] {
    pool.piece(number, large::BLOCK)
}

/// Content of the file that is called so; nothing where files are empty.
#[inline]
fn content_of<'a>(pool: &'a Pool, name: &CStr, bytes: usize) -> &'a [u8] {
    if bytes == 0 { &[] } else { pool.at(xxhash_rust::xxh3::xxh3_64(name.to_bytes()), bytes) }
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
    }

    #[test]
    fn cold_and_warm_are_declared() {
        let cold = |settings: &Settings| SmallFiles.phases(settings).iter().filter(|p| p.starts == Cold).count();
        assert_eq!(cold(&Settings::default()), 9);
        assert_eq!(cold(&Settings([("cache".to_string(), "warm".into())].into())), 0);
    }

    #[test]
    fn content_is_neither_zeros_nor_the_same() {
        let pool = Pool::new(1, OF_EACH_CLASS);
        assert_ne!(block(&pool, 0), block(&pool, 1));
        assert_ne!(content_of(&pool, c"one", 4096), content_of(&pool, c"other", 4096));
        assert!(content_of(&pool, c"one", 0).is_empty() && block(&pool, 7).iter().any(|byte| *byte != 0));
    }
}
