//! Files that a program reads and writes through its memory: no call says so, but the kernel says
//! which pages are there.

use super::files::Mapping;
use crate::{Kind, Op};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bits of the last byte of an entry of /proc/PID/pagemap: the page is in memory, or in swap.
const THERE: u8 = 0b11 << 6;
/// Pages of a mapping that are looked at, and of them at a time: programs map files of any size.
const MOST: u64 = 1 << 24;
const AT_ONCE: u64 = 1 << 13;
/// Parts that are so near to each other are one: the kernel maps 16 pages around each that is
/// touched.
const NEAR: u64 = 16;

/// What a part of a mapping came to, as if it had been read or written by calls. Pages count that
/// are there: a few more than were touched.
pub(crate) fn operations(tid: i32, mapping: &Mapping) -> Vec<Op> {
    let page = rustix::param::page_size() as u64;
    let (first, count) = (mapping.start / page, (mapping.end - mapping.start).div_ceil(page));
    let pages = File::open(format!("/proc/{tid}/pagemap")).ok();
    let there = (0..count.min(MOST)).step_by(AT_ONCE as usize).flat_map(|at| {
        let mut entries = vec![0; 8 * AT_ONCE.min(count - at) as usize];
        let read = pages.as_ref().and_then(|file| file.read_at(&mut entries, 8 * (first + at)).ok());
        entries.truncate(read.unwrap_or(0));
        let is_there = |entry: &[u8]| entry.last().is_some_and(|bits| *bits & THERE != 0);
        entries.chunks_exact(8).map(is_there).collect::<Vec<bool>>()
    });
    let kind = if mapping.writes { Kind::MapWrite } else { Kind::MapRead };
    let operation = |(from, to): (u64, u64)| {
        let length = ((to - from) * page).min(mapping.end - mapping.start - from * page);
        let offset = mapping.offset + from * page;
        Op { object: mapping.object, offset, length, result: length as i64, ..Op::new(kind) }
    };
    runs(there).into_iter().map(operation).collect()
}

/// From and up to which number something is true, with small gaps closed.
fn runs(all: impl Iterator<Item = bool>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (at, _) in (0..).zip(all).filter(|(_, is)| *is) {
        match runs.last_mut() {
            Some((_, end)) if at < *end + NEAR => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn pages_near_each_other_are_one_run() {
        let pages = |there: &[u64]| runs((0..100).map(|at| there.contains(&at)));
        assert_eq!(pages(&[]), []);
        assert_eq!(pages(&[3, 4, 5]), [(3, 6)]);
        assert_eq!(pages(&[0, 15, 40, 99]), [(0, 16), (40, 41), (99, 100)]);
    }
}
