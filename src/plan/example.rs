//! A catalogue for tests: what plans may name, without any plug-in.

use super::{Catalogue, Entry, FilesystemEntry, Kind, Setting};

const fn setting(name: &'static str, kind: Kind, default: Option<&'static str>) -> Setting {
    Setting { name, kind, default, about: "for tests" }
}

const IMAGE: &[Setting] = &[
    setting("dir", Kind::Path, None),
    setting("size", Kind::Size, Some("4GiB")),
    setting("direct", Kind::Flag, Some("true")),
];
const MEMORY: &[Setting] = &[setting("size", Kind::Size, Some("1GiB"))];
const DIRECTORY: &[Setting] = &[setting("path", Kind::Path, None)];
const DEVICE: &[Setting] = &[setting("path", Kind::Path, None), setting("signatures", Kind::Texts, Some("[]"))];
const TREE: &[Setting] = &[
    setting("source", Kind::Path, None),
    setting("files", Kind::Count, Some("4000")),
    setting("bytes", Kind::Size, None),
    setting("pause", Kind::Duration, Some("250ms")),
    setting("shape", Kind::Choice(&["deep", "flat"]), Some("deep")),
    setting("label", Kind::Text, None),
];

pub(super) fn catalogue() -> Catalogue {
    let fs = |name, variants: &[&'static str], mebibytes: u64| FilesystemEntry {
        name,
        variants: variants.to_vec(),
        minimum_size: mebibytes << 20,
    };
    let entry = |name, settings, main_setting| Entry {
        name,
        settings,
        main_setting,
        makes_filesystem: true,
        objections: |_, _| Vec::new(),
        bytes: |_, _| None,
    };
    let btrfs = ["dup", "lzo", "nocow", "single", "zlib", "zstd:1", "zstd:3"];
    Catalogue {
        filesystems: vec![fs("btrfs", &btrfs, 109), fs("ext4", &[], 1), fs("xfs", &[], 300)],
        backings: vec![
            entry("device", DEVICE, "path"),
            Entry { makes_filesystem: false, ..entry("directory", DIRECTORY, "path") },
            entry("image", IMAGE, "dir"),
            entry("memory", MEMORY, "size"),
        ],
        workloads: vec![entry("meta.ok", &[], ""), entry("tree", TREE, "source")],
        executors: vec!["local", "ssh", "vm"],
    }
}
