//! What pickfs says of space and of devices against what compsize, du, df and the kernel say: on
//! real btrfs and loop devices, to the byte. Needs root and a few programs; says so where it cannot
//! run.

use crate::common;

use crate::common::{Loop, no_compsize, not_run, run};
use pickfs_system::random::Random;
use pickfs_system::sys::block;
use pickfs_system::sys::file::{AlignedBuffer, open_direct, stored_bytes};
use pickfs_target::probe::{
    self, Subject,
    compression::{CompressionTable, Row, bytes_of_subvolumes_alone, compression_table},
    shares::{Share, shares},
};
use pickfs_trees::content::Content;
use pickfs_trees::profile::Stuff;
use pickfs_trees::{Modes, Shape, differences, digest, generate};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const MIB: usize = 1 << 20;

fn btrfs(options: &str) -> Loop {
    Loop::btrfs(&std::env::temp_dir(), 512 << 20, &[], options)
}

fn subject(made: &Loop) -> Subject {
    let number = std::fs::metadata(&made.device).unwrap().rdev();
    Subject {
        device: Some((rustix::fs::major(number), rustix::fs::minor(number))),
        mount_point: made.mount_point(),
        filesystem: "btrfs".into(),
        ..Subject::default()
    }
}

/// What `compsize -b` prints, and its TOTAL.
fn compsize(root: &Path) -> (CompressionTable, Row) {
    let text = run(&["compsize", "-b", root.to_str().unwrap()]);
    let numbers = |line: &str| -> Vec<u64> {
        line.split(|c: char| !c.is_ascii_digit()).filter(|w| !w.is_empty()).map(|w| w.parse().unwrap()).collect()
    };
    let mut rows = BTreeMap::new();
    for line in text.lines().skip(2) {
        let name = ["none", "zlib", "lzo", "zstd", "prealloc", "TOTAL"].into_iter().find(|name| line.starts_with(name));
        let [_percent, disk_bytes, uncompressed_bytes, referenced_bytes] = numbers(line)[..] else { panic!("{line}") };
        rows.insert(name.unwrap(), Row { disk_bytes, uncompressed_bytes, referenced_bytes });
    }
    let total = rows.remove("TOTAL").unwrap();
    let [files, regular_extents, references, inline_extents] = numbers(text.lines().next().unwrap())[..] else {
        panic!("{text}")
    };
    (CompressionTable { rows, files, regular_extents, references, inline_extents }, total)
}

/// Everything that has ever been counted wrong: holes, preallocation, shared extents, hard links,
/// inline files, a subvolume, and a file of more extents than one call brings.
fn make_difficult_tree(root: &Path) {
    generate(&root.join("tree"), &Shape { files: 400, bytes: 20 * MIB as u64 }, 5).unwrap();
    let at = |name: &str| root.join(name).to_str().unwrap().to_string();
    let hole = File::create(at("hole")).unwrap();
    hole.set_len(4 * MIB as u64).unwrap();
    hole.write_all_at(b"an island", 2 * MIB as u64).unwrap();
    run(&["fallocate", "--length", "32MiB", &at("preallocated")]);
    let preallocated = File::options().write(true).open(at("preallocated")).unwrap();
    let mut page = vec![0; 4096];
    for block in 0..3500u64 {
        page[..8].copy_from_slice(&(block + 1).to_le_bytes());
        preallocated.write_all_at(&page, block * 8192 + 4096).unwrap();
    }
    run(&["cp", "-a", "--reflink=always", &at("tree"), &at("shared")]);
    run(&["btrfs", "subvolume", "create", &at("subvolume")]);
    for number in 0..30usize {
        std::fs::write(at(&format!("subvolume/tiny{number}")), "tiny ".repeat(number * 8)).unwrap();
    }
    std::fs::hard_link(at("hole"), at("same-hole")).unwrap();
    run(&["sync", "--file-system", &at("")]);
}

fn reading(name: &str, subject: &Subject, metric: &str) -> u64 {
    let probe = probe::ALL.iter().find(|probe| probe.name == name).unwrap();
    let readings = (probe.read)(subject);
    readings.iter().find(|r| r.metric == metric).unwrap_or_else(|| panic!("no {metric} in {readings:?}")).value as u64
}

fn check_space(subject: &Subject) {
    let root = subject.mount_point.to_str().unwrap();
    let df = run(&["df", "--block-size=1", "--output=size,used,avail", root]);
    let df: Vec<u64> = df.lines().nth(1).unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    let du = run(&["du", "-s", "-B1", "--one-file-system", root]);
    let found = ["total", "used", "free", "allocated"];
    let found = found.map(|name| reading("space", subject, &format!("space_{name}_bytes")));
    assert_eq!(found, [df[0], df[1], df[2], du.split('\t').next().unwrap().parse().unwrap()]);
    let find = run(&["find", root, "-xdev", "-type", "f", "-printf", "%i %s\n"]);
    let inodes: BTreeMap<&str, u64> =
        find.lines().map(|l| l.split_once(' ').unwrap()).map(|(i, s)| (i, s.parse().unwrap())).collect();
    assert_eq!(reading("space", subject, "space_files"), inodes.len() as u64);
    assert_eq!(reading("space", subject, "space_apparent_bytes"), inodes.values().sum::<u64>());
}

/// What a program that reads all of it must get from the device.
#[test]
fn a_compressed_file_takes_what_its_extents_take() {
    if not_run(no_compsize()) {
        return;
    }
    for (options, is_less) in [("compress=zstd:1", true), ("compress=no", false)] {
        let made = btrfs(options);
        let path = made.mount_point().join("file");
        std::fs::write(&path, "so it goes ".repeat(MIB)).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let (_, total) = compsize(&path);
        let found = path.metadata().unwrap();
        assert_eq!(stored_bytes(&path, &found).unwrap(), total.disk_bytes, "{options}");
        assert_eq!(total.disk_bytes < found.blocks() * 512, is_less, "{options}");
    }
}

#[test]
fn accounts_are_compsizes_and_dus_to_the_byte() {
    if not_run(no_compsize()) {
        return;
    }
    for options in ["compress=lzo", "compress=zlib", "compress=zstd:1", "compress=no"] {
        let made = btrfs(options);
        make_difficult_tree(&made.mount_point());
        let (expected, total) = compsize(&made.mount_point());
        let found = compression_table(&made.mount_point()).unwrap();
        println!("{options}: {found:?}");
        assert_eq!((&found, found.total()), (&expected, total), "{options}");
        assert!(found.references > found.regular_extents + 7000 && found.inline_extents > 30, "{found:?}");
        let subject = subject(&made);
        assert_eq!(reading("compression", &subject, "compression_total_disk_bytes"), total.disk_bytes);
        assert_eq!(reading("compression", &subject, "compression_files"), expected.files);
        check_space(&subject);
    }
}

/// Uncompressed over disk bytes of one file.
fn ratio(file: &Path) -> f64 {
    let total = compression_table(file).unwrap().total();
    total.uncompressed_bytes as f64 / total.disk_bytes as f64
}

#[test]
fn classes_shrink_as_what_they_stand_for() {
    if not_run(no_compsize()) {
        return;
    }
    // Without force, a file written back early would stay uncompressed where its first part does
    // not shrink.
    let ratios = ["compress-force=lzo", "compress-force=zstd:1"].map(|options| {
        let made = btrfs(options);
        [Stuff::Source, Stuff::Object, Stuff::Media].map(|stuff| {
            let file = made.mount_point().join(format!("{stuff:?}"));
            let bytes = Content::new().like(stuff, &mut Random::new(11, stuff as u64), 16 * MIB).to_vec();
            std::fs::write(&file, bytes).unwrap();
            ratio(&file)
        })
    });
    println!("text, object and media shrink by LZO and zstd:1: {ratios:.2?}");
    let [[text_lzo, object_lzo, media_lzo], [text_zstd, object_zstd, media_zstd]] = ratios;
    assert!((2.2..2.7).contains(&text_lzo) && (3.8..5.0).contains(&text_zstd));
    assert!((1.3..1.6).contains(&object_lzo) && (2.0..2.5).contains(&object_zstd));
    assert_eq!((media_lzo, media_zstd), (1.0, 1.0));
}

#[test]
fn a_copy_on_another_file_system_has_the_same_digest() {
    if not_run(no_compsize()) {
        return;
    }
    let source = tempfile::tempdir().unwrap();
    generate(source.path(), &Shape { files: 200, bytes: 4 * MIB as u64 }, 9).unwrap();
    let made = btrfs("compress=zstd:1");
    let copy = made.mount_point().join("copy");
    run(&["cp", "-a", source.path().to_str().unwrap(), copy.to_str().unwrap()]);
    assert_eq!(differences(source.path(), &copy, 5, Modes::Kept), Vec::<String>::new());
    assert_eq!(digest(source.path()).unwrap(), digest(&copy).unwrap());
}

/// The fields of a device in /proc/diskstats, from the first counter on.
fn diskstats(device: &str) -> Vec<u64> {
    let name = device.trim_start_matches("/dev/");
    let text = std::fs::read_to_string("/proc/diskstats").unwrap();
    let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some(name)).unwrap();
    line.split_whitespace().skip(3).map(|field| field.parse().unwrap()).collect()
}

#[test]
fn the_device_probe_sees_each_byte() {
    if not_run(no_compsize()) {
        return;
    }
    let made = Loop::new(512 << 20);
    let device = Path::new(&made.device);
    assert_eq!(block::size_of_device(device).unwrap(), 512 << 20);
    let subject = subject(&made);
    let read = |metric| reading("device", &subject, metric);
    let metrics = ["device_write_bytes", "device_read_bytes", "device_discard_bytes"];
    let before = metrics.map(read);
    let mut buffer = AlignedBuffer::new(MIB);
    Random::new(1, 1).fill(&mut buffer);
    let file = open_direct(device, true).unwrap();
    for piece in 0..8 {
        file.write_all_at(&buffer, piece * MIB as u64).unwrap();
    }
    file.read_exact_at(&mut buffer, 0).unwrap();
    drop(file);
    block::flush_buffers(device).unwrap();
    block::discard(device, 0, 2 * MIB as u64).unwrap();
    let after = metrics.map(read);
    assert_eq!([0, 1, 2].map(|i| after[i] - before[i]), [8 * MIB as u64, MIB as u64, 2 * MIB as u64]);
    let fields = diskstats(&made.device);
    assert_eq!(after, [fields[6] * 512, fields[2] * 512, fields[13] * 512]);
    assert_eq!([read("device_read_requests"), read("device_write_requests")], [fields[0], fields[4]]);
}

#[test]
fn probes_read_twice_only_grow() {
    // What /proc does not show of a processor that sleeps now: whether it does, for two counters in
    // ticks.
    let unknown = |metric: &str| {
        if metric == "cpu_system_wide_ns" {
            20e6 * std::thread::available_parallelism().map_or(1.0, |all| all.get() as f64)
        } else {
            0.0
        }
    };
    let subject = Subject { mount_point: "/dev/shm".into(), filesystem: "tmpfs".into(), ..Subject::default() };
    for probe in probe::ALL.iter().filter(|probe| !probe.only_after_writing && probe.name != "foreign") {
        let (before, after) = ((probe.read)(&subject), (probe.read)(&subject));
        assert_eq!(before.len(), after.len());
        assert!(
            before.iter().zip(&after).all(|(a, b)| a.metric == b.metric && a.value <= b.value + unknown(&a.metric)),
            "{after:?}"
        );
    }
}

/// Two snapshots that are alike: each alone holds nothing, both together what was removed or
/// written anew whole since.
#[test]
fn what_snapshots_hold_alone_is_what_btrfs_and_compsize_and_its_quotas_count() {
    if not_run(no_compsize()) {
        return;
    }
    // Inline files lie in the metadata, which is not counted, but by compsize in each snapshot.
    let made = btrfs("max_inline=0");
    let root = made.mount_point();
    let at = |name: &str| root.join(name).to_str().unwrap().to_string();
    generate(&root.join("tree"), &Shape { files: 100, bytes: 10 * MIB as u64 }, 5).unwrap();
    let random = |bytes: usize, seed: u64| {
        let mut content = vec![0; bytes];
        Random::new(seed, 0).fill(&mut content);
        content
    };
    ["removed", "partly", "kept"].iter().zip(1..).for_each(|(name, seed)| {
        std::fs::write(root.join(name), random(3 * MIB, seed)).unwrap();
    });
    run(&["sync", "--file-system", &at("")]);
    let take = |name: &str| run(&["btrfs", "subvolume", "snapshot", "-r", &at(""), &at(name)]);
    let alone = || bytes_of_subvolumes_alone(&root).unwrap();
    assert_eq!(alone(), 0);
    take("one");
    assert_eq!(alone(), 0);
    std::fs::remove_file(root.join("removed")).unwrap();
    // Some of an extent: the whole of it is still referred to. Written back meanwhile, the file may
    // have two.
    File::options().write(true).open(root.join("partly")).unwrap().write_all_at(&random(MIB, 9), 0).unwrap();
    run(&["sync", "--file-system", &at("")]);
    let shown = run(&["btrfs", "filesystem", "du", "-s", "--raw", &at("one")]);
    let exclusive: u64 = shown.lines().last().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(alone(), exclusive, "{shown}");
    assert!((3 * MIB as u64..=4 * MIB as u64).contains(&exclusive), "{shown}");
    run(&["btrfs", "subvolume", "snapshot", "-r", &at("one"), &at("two")]);
    let total = |words: &[&str]| -> u64 {
        let text = run(&[&["compsize", "-b"], words, &[&at("")]].concat());
        let line = text.lines().find(|line| line.starts_with("TOTAL")).unwrap();
        line.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    assert_eq!(alone(), total(&[]) - total(&["-x"]));
    run(&["btrfs", "quota", "enable", &at("")]);
    // Enabling starts a rescan; groups that are assigned meanwhile may be shown without members
    // (Linux 6.18).
    run(&["btrfs", "quota", "rescan", "-W", &at("")]);
    run(&["btrfs", "qgroup", "create", "1/0", &at("")]);
    for name in ["one", "two"] {
        let shown = run(&["btrfs", "subvolume", "show", &at(name)]);
        let id = shown.lines().find_map(|line| line.trim().strip_prefix("Subvolume ID:")).unwrap().trim().to_string();
        run(&["btrfs", "qgroup", "assign", "--no-rescan", &format!("0/{id}"), "1/0", &at("")]);
    }
    run(&["btrfs", "quota", "rescan", "-w", &at("")]);
    let shown = run(&["btrfs", "qgroup", "show", "--sync", "--raw", &at("")]);
    let group = shown.lines().find(|line| line.starts_with("1/0")).unwrap();
    let with_metadata: u64 = group.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!((alone()..alone() + MIB as u64 / 2).contains(&with_metadata), "{} {shown}", alone());
}

/// Directories with their own blocks and such that they share: whole files, a part of one, a
/// further name.
fn make_sharing_tree(root: &Path) {
    let at = |name: &str| root.join(name).to_str().unwrap().to_string();
    for (name, seed) in [("one", 5), ("two", 6)] {
        generate(&root.join(name), &Shape { files: 100, bytes: 10 * MIB as u64 }, seed).unwrap();
    }
    std::fs::create_dir(root.join("copy")).unwrap();
    run(&["cp", "-a", "--reflink=always", &at("one"), &at("copy/one")]);
    let mut content = vec![0; MIB];
    Random::new(7, 0).fill(&mut content);
    std::fs::write(root.join("copy/own"), &content).unwrap();
    std::fs::write(root.join("top"), &content[..100_000]).unwrap();
    std::fs::create_dir(root.join("names")).unwrap();
    std::fs::hard_link(root.join("copy/own"), root.join("names/own")).unwrap();
    run(&["sync", "--file-system", &at("")]);
}

#[test]
fn shares_of_directories_on_btrfs_are_what_compsize_counts() {
    if not_run(no_compsize()) {
        return;
    }
    let made = btrfs("compress=zstd:1,max_inline=0");
    let root = made.mount_point();
    make_sharing_tree(&root);
    let disk = |paths: &[&str]| -> u64 {
        let paths: Vec<String> = paths.iter().map(|path| root.join(path).to_str().unwrap().to_string()).collect();
        let words = ["compsize", "-b"].into_iter().chain(paths.iter().map(String::as_str));
        let text = run(&words.collect::<Vec<_>>());
        let line = text.lines().find(|line| line.starts_with("TOTAL")).unwrap();
        line.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    let found = shares(&root).unwrap();
    let all = ["one", "two", "copy", "names", "top"];
    assert_eq!((found.sum.disk_bytes, found.by_blocks, found.unseen), (disk(&all), 0, 0));
    assert_eq!(found.rows.len(), all.len());
    for share in &found.rows {
        let name = share.name.as_ref().map_or("top", |name| name.to_str().unwrap());
        let others: Vec<&str> = all.into_iter().filter(|other| *other != name).collect();
        assert_eq!(share.disk_bytes, disk(&[name]), "{name}");
        assert_eq!(share.alone_bytes, disk(&all) - disk(&others), "{name}");
    }
}

/// On btrfs and XFS, which share blocks, and on ext4, where only names are shared.
#[test]
fn shares_of_directories_are_what_du_and_btrfs_count() {
    if not_run(no_compsize().or_else(|| common::unable(&["xfs", "ext4"]))) {
        return;
    }
    let share = |root: &Path, name: &str| -> Share {
        let found = shares(root).unwrap();
        assert_eq!(found.by_blocks, 0);
        found.rows.into_iter().find(|share| share.name.as_ref().is_some_and(|row| *row == *name)).unwrap()
    };
    let made = btrfs("max_inline=0");
    let root = made.mount_point();
    make_sharing_tree(&root);
    let shown = run(&["btrfs", "filesystem", "du", "-s", "--raw", root.join("two").to_str().unwrap()]);
    let numbers: Vec<u64> = shown.lines().last().unwrap().split_whitespace().flat_map(str::parse).collect();
    let two = share(&root, "two");
    assert_eq!([two.disk_bytes, two.alone_bytes], numbers[..2], "{shown}");
    for filesystem in ["xfs", "ext4"] {
        let mut made = Loop::new(512 << 20);
        run(&[&format!("mkfs.{filesystem}"), "-q", &made.device]);
        made.mount("noatime");
        let root = made.mount_point();
        let sharing = filesystem == "xfs";
        if sharing {
            make_sharing_tree(&root);
        } else {
            generate(&root.join("two"), &Shape { files: 100, bytes: 10 * MIB as u64 }, 6).unwrap();
        }
        let two = share(&root, "two");
        let blocks: u64 = walkdir::WalkDir::new(root.join("two"))
            .into_iter()
            .flatten()
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.metadata().unwrap().blocks() * 512)
            .sum();
        assert_eq!((two.disk_bytes, two.alone_bytes), (blocks, blocks), "{filesystem}");
        if sharing {
            let (one, copy, names) = (share(&root, "one"), share(&root, "copy"), share(&root, "names"));
            assert_eq!((one.alone_bytes, names.alone_bytes), (0, 0));
            assert_eq!((names.disk_bytes, copy.disk_bytes), (MIB as u64, one.disk_bytes + MIB as u64));
            assert_eq!((names.files, names.apparent_bytes), (1, MIB as u64));
        }
    }
}
