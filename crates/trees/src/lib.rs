//! Datasets: trees of files made from a seed, and the proof that a copy is the same.
//!
//! This crate knows plain files below a folder. It must not know file systems, plans or journals;
//! its callers know what a tree is for.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ageing;
pub mod codec;
pub mod content;
pub(crate) mod digest;
pub mod history;
pub(crate) mod parallel;
pub mod predict;
pub mod profile;
pub mod scan;
pub(crate) mod tree;

pub use digest::{Digest, Modes, differences, digest, digest_without, first_link};
pub use tree::layout::{Shape, TreeLayout};
pub use tree::write::write;
pub use tree::{generate, generate_like};

/// Sum of the sizes of all regular files below a root, each once however many names it has, as `cp
/// -a` and tar take them; 0 where it cannot be read.
pub fn apparent_bytes(root: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut seen = std::collections::HashSet::new();
    let files = walkdir::WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let found = files.filter_map(|entry| entry.metadata().ok());
    found.filter(|file| file.nlink() == 1 || seen.insert((file.dev(), file.ino()))).map(|file| file.len()).sum()
}

/// Fills a buffer from a place of a file on; the bytes that were there, fewer where the file ends.
pub(crate) fn read_full(file: &std::fs::File, buffer: &mut [u8], place: u64) -> std::io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], place + length as u64) {
            Ok(0) => break,
            Ok(bytes) => length += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
