//! Datasets: trees of files made from a seed, and the proof that a copy is the same.
//!
//! Plain files below a folder. It must not know file systems, plans or journals; whoever asks for a tree knows why.

pub mod content;
pub mod digest;
pub mod generate;
pub mod random;

pub use digest::{Digest, differences, digest};
pub use generate::{Shape, generate};

/// Sum of the sizes of all regular files below a root; 0 where it cannot be read.
pub fn apparent_bytes(root: &std::path::Path) -> u64 {
    let files = walkdir::WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}
