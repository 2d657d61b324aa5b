//! SquashFS: how a tree is packed, and what of it is read back.

use super::*;

pub(super) fn with_code(data: Filesystem) -> Filesystem {
    Filesystem { making: Making { image: Some(pack), ..data.making }, mismatches, ..data }
}

fn mismatches(spec: &FsSpec, facts: &Facts) -> Vec<String> {
    let asked = spec.variant.unwrap_or("gzip");
    let lines = facts.get("unsquashfs").map(String::as_str).unwrap_or_default().lines();
    let shown = lines.filter_map(|line| line.strip_prefix("Compression ")).next().map_or("nothing", str::trim);
    // Options of the target's own may name another.
    let own = spec.mkfs.iter().filter(|word| *word == "-comp").count() > usize::from(spec.variant.is_some());
    let wrong = !own && shown != asked;
    wrong.then(|| format!("asked for compression {asked}, unsquashfs shows {shown}")).into_iter().collect()
}

/// All that is in a folder, in the place of what the device held.
fn pack(spec: &FsSpec, folder: &str) -> Argv {
    let words = ["mksquashfs".to_string(), folder.into(), spec.device()];
    let options = ["-noappend", "-no-progress", "-quiet"].map(String::from);
    words.into_iter().chain(options).chain(spec.mkfs.iter().cloned()).collect()
}
