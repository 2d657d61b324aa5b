//! Datasets: trees of files made from a seed, and the proof that a copy is the same.
//!
//! Plain files below a folder. It must not know file systems, plans or journals; whoever asks for a tree knows why.

pub mod ageing;
pub mod codec;
pub mod content;
pub mod copies;
pub mod describe;
pub mod digest;
mod folders;
pub mod generate;
pub mod history;
pub mod kinds;
pub mod measure;
mod names;
pub mod outline;
pub mod palette;
pub mod predict;
pub mod profile;
pub mod random;
pub mod share_out;
pub mod shipped;
mod sizes;
pub mod sketch;
pub mod store;
pub mod survey;
pub mod twins;
mod vocabulary;
pub mod walk;
mod write;

pub use digest::{Digest, differences, digest, digest_without};
pub use generate::{generate, generate_like};
pub use outline::{Outline, Shape};
pub use write::write;

/// Sum of the sizes of all regular files below a root, each once however many names it has, as `cp -a` and tar take
/// them; 0 where it cannot be read.
pub fn apparent_bytes(root: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut seen = std::collections::HashSet::new();
    let files = walkdir::WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let found = files.filter_map(|entry| entry.metadata().ok());
    found.filter(|file| file.nlink() == 1 || seen.insert((file.dev(), file.ino()))).map(|file| file.len()).sum()
}
