//! For tests: a catalogue, which is what plans may name without any plug-in, and plans of few
//! lines.

use super::complaint::Voice;
use super::target::OVERLAYFS;
use super::{
    Catalogue, Complaint, Entry, FilesystemEntry, Judged, MkfsOptions, Objection, Plan, Setting, SettingKind, Settings,
    Tunables, from_toml, render,
};
use std::path::Path;

const fn setting(name: &'static str, kind: SettingKind, default: Option<&'static str>) -> Setting {
    Setting { name, kind, default, about: "for tests" }
}

const IMAGE: &[Setting] = &[
    setting("dir", SettingKind::Path, None),
    setting("size", SettingKind::Size, Some("4GiB")),
    setting("direct", SettingKind::Flag, Some("true")),
    setting("disks", SettingKind::Count, None),
];
const MACHINE: &[Setting] = &[
    setting("kernel", SettingKind::Text, Some("bookworm")),
    setting("memory", SettingKind::Size, Some("1GiB")),
    setting("processors", SettingKind::Count, None),
];
const MD: &[Setting] = &[setting("level", SettingKind::Choice(&["raid0", "raid1"]), Some("raid1"))];
const MEMORY: &[Setting] = &[setting("size", SettingKind::Size, Some("1GiB"))];
const DIRECTORY: &[Setting] = &[setting("path", SettingKind::Path, None)];
const DEVICE: &[Setting] =
    &[setting("path", SettingKind::Path, None), setting("signatures", SettingKind::Texts, Some("[]"))];
const TREE: &[Setting] = &[
    setting("source", SettingKind::Path, None),
    setting("files", SettingKind::Count, Some("4000")),
    setting("bytes", SettingKind::Size, None),
    setting("pause", SettingKind::Duration, Some("250ms")),
    setting("shape", SettingKind::Choice(&["deep", "flat"]), Some("deep")),
    setting("label", SettingKind::Text, None),
];

pub(super) fn catalogue() -> Catalogue {
    let fs = |name, variants: &[&'static str], mebibytes: u64| FilesystemEntry {
        name,
        variants: variants.to_vec(),
        minimum_size: mebibytes << 20,
        takes_nodatacow: name == "btrfs",
        mkfs_options: MkfsOptions { folders: if name == "ext4" { &["-d"] } else { &[] }, programs: &[] },
        mount_options: if name == "xfs" { &["noatime", "relatime", "uquota"] } else { &[] },
        tunables: Tunables(""),
        devices,
    };
    let entry = |name, settings, main_setting| Entry {
        name,
        about: Some(""),
        settings,
        main_setting,
        makes_filesystem: true,
        objections: |_, _| Vec::new(),
        above: |_, _, there| Ok(there),
        bytes: |_, _| None,
        phases: |_, _| Vec::new(),
        judged: |_, _| Judged::default(),
    };
    let btrfs = ["dup", "lzo", "nocow", "raid1", "single", "zlib", "zstd:1", "zstd:3"];
    Catalogue {
        tunables: Vec::new(),
        filesystems: vec![fs("btrfs", &btrfs, 109), fs("ext4", &[], 1), fs("xfs", &[], 300)],
        backings: vec![
            entry("device", DEVICE, "path"),
            Entry { makes_filesystem: false, ..entry("directory", DIRECTORY, "path") },
            entry("image", IMAGE, "dir"),
            entry("memory", MEMORY, "size"),
        ],
        workloads: vec![
            Entry { phases: |_, _| phases(&["write", "read"]), ..entry("meta.ok", &[], "") },
            Entry { phases: |_, _| phases(&["write", "tar-read", "remove"]), ..entry("tree", TREE, "source") },
        ],
        executors: ["local", "sim", "ssh"]
            .map(|name| entry(name, &[], ""))
            .into_iter()
            .chain([entry("vm", MACHINE, "kernel")])
            .collect(),
        simulators: vec!["sim"],
        unfit: None,
        executor: None,
        layers: vec![entry("luks", &[], ""), Entry { above: array, ..entry("md", MD, "level") }],
        above: vec![entry("gocryptfs", &[], ""), entry(OVERLAYFS, &[], "")],
        clash: Some(|layers| (layers.len() > 2).then(|| format!("{} are too many in this test", layers.len()))),
        cannot_lie: Some(|layer, on| (layer == OVERLAYFS && on == "xfs").then_some("xfs is read-only in this test")),
        features: vec!["checksums", "compression", "metadata-checksums", "snapshots"],
    }
}

/// As the file `nvme.toml`; relative paths are in `/plans`.
pub(super) fn read(text: &str) -> Result<Plan, Vec<Complaint>> {
    from_toml(text, "dir/nvme.toml", Path::new("/plans"), &catalogue())
}

/// The text below as many of the smallest lines of a plan as `given` names.
pub(super) fn with(given: &str, text: &str) -> String {
    let line = |letter| match letter {
        'B' => "backing = { image = \"/m\" }\n",
        'T' => "target = [{ fs = \"ext4\" }]\n",
        _ => "work = [{ workload = \"tree\" }]\n",
    };
    given.chars().map(line).collect::<String>() + text
}

/// What else is given, the text, and for each complaint its line in the text and what it must
/// contain.
pub(super) type Hostile = (&'static str, &'static str, &'static [(usize, &'static str)]);

/// Asserts that each plan gets all its complaints, each at its line and with a remedy.
pub(super) fn complained(rows: &[Hostile]) {
    for (given, text, expected) in rows {
        let whole = with(given, text);
        let complaints = read(&whole).expect_err(text);
        let shown = render(&whole, "a.toml", &complaints, false);
        assert_eq!(complaints.len(), expected.len(), "{text}\n{shown}");
        for (complaint, (line, says)) in complaints.iter().zip(*expected) {
            let span = complaint.place.span.clone().expect("a place");
            let found = whole[..span.start].matches('\n').count().wrapping_sub(given.len()).wrapping_add(1);
            assert_eq!(found, *line, "{text}\n{shown}");
            let remedy = complaint.help(Voice::File);
            let all = format!("{} / {remedy}", complaint.message(Voice::File));
            assert!(all.contains(says) && !remedy.is_empty(), "{text}\n{says}\n{shown}");
            assert!(shown.contains("--> a.toml:") && shown.contains(&remedy), "{shown}");
        }
    }
}

fn devices(name: &str, variant: Option<&str>, there: usize) -> Option<Objection> {
    let object = |setting, message| Some(Objection::new(setting, message, "take another"));
    match (name, variant) {
        ("btrfs", Some("raid1")) if there < 2 => {
            object("variant", format!("btrfs raid1 needs 2 devices, but {there} are below it"))
        }
        _ if name == "btrfs" || there < 2 => None,
        _ => object("fs", format!("{name} uses one device, but {there} are below it")),
    }
}

fn array(_: &str, _: &Settings, there: usize) -> Result<usize, String> {
    if there < 2 { Err(format!("md needs 2 devices, and {there} lie below it")) } else { Ok(1) }
}

fn phases(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}
