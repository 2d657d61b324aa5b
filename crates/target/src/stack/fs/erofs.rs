//! EROFS: how a tree is packed, with or without compression.

use super::*;

pub(super) fn with_code(data: Filesystem) -> Filesystem {
    let is_compressed = By::Code(|state| state.mkfs.iter().any(|word| word.starts_with("-z")));
    let features = Features { depending: vec![(COMPRESSION, is_compressed)].leak(), ..data.features };
    Filesystem { making: Making { image: Some(pack), ..data.making }, features, ..data }
}

/// All that is in a folder, in the place of what the device held.
fn pack(spec: &FsSpec, folder: &str) -> Argv {
    let words = ["mkfs.erofs".to_string(), "--quiet".into()];
    words.into_iter().chain(spec.mkfs.iter().cloned()).chain([spec.device(), folder.into()]).collect()
}
