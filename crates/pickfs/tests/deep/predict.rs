//! What `pickfs scan --predict` says before, against what compsize says after `cp -a` onto a real
//! btrfs, and what mkfs.erofs makes. Needs root and a few programs; says so where it cannot run.

use crate::common;

use crate::common::{Lab, Loop, no_compsize, not_run, run};
use flate2::{Compression, write::GzEncoder};
use pickfs_trees::{Shape, generate};
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const CODECS: [&str; 4] = ["lzo", "zlib:3", "zstd:1", "zstd:3"];

/// What is said of a codec, or found, all in per cent.
#[derive(Clone, Copy, Debug)]
struct Figures {
    share: f64,
    low: f64,
    high: f64,
    compsize: f64,
}

/// The rows of btrfs, by codec.
fn predicted(lab: &Lab, tree: &Path) -> BTreeMap<String, Figures> {
    let said = lab.run(&["scan", "--predict", tree.to_str().unwrap()]).code(0);
    print!("{}{}", said.out, said.err);
    let row = |line: &str| {
        let codec = line.strip_prefix("btrfs ")?.split_whitespace().next()?.to_string();
        let numbers = line.split_once("iB ")?.1.split(|c: char| !c.is_ascii_digit() && c != '.');
        let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
        let exact = line.contains("all read");
        let compsize = numbers[if exact { 1 } else { 3 }];
        let [low, high] = if exact { [numbers[0]; 2] } else { [numbers[1], numbers[2]] };
        Some((codec, Figures { share: numbers[0], low, high, compsize }))
    };
    said.out.lines().filter_map(row).collect()
}

/// The same, found by compsize of a copy; shares of the apparent size.
fn found(lab: &Lab, tree: &Path, codec: &str) -> Figures {
    let made = Loop::btrfs(&lab.path(""), 8 << 30, &[], &format!("compress={codec}"));
    let copy = made.mount_point().join("copy");
    run(&["cp", "-a", tree.to_str().unwrap(), copy.to_str().unwrap()]);
    run(&["sync", "--file-system", copy.to_str().unwrap()]);
    let text = run(&["compsize", "-b", copy.to_str().unwrap()]);
    let total = text.lines().find(|line| line.starts_with("TOTAL")).unwrap();
    let numbers: Vec<f64> = total.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [disk, uncompressed, _referenced] = numbers[..] else { panic!("{text}") };
    let share = 100.0 * disk / pickfs_trees::apparent_bytes(&copy) as f64;
    Figures { share, low: share, high: share, compsize: 100.0 * disk / uncompressed }
}

/// Predicts for a tree and copies it four times; prints a table.
fn compare(lab: &Lab, name: &str, tree: &Path) -> Vec<String> {
    let said = predicted(lab, tree);
    let mut wrong = Vec::new();
    for codec in CODECS {
        let (said, found) = (said[codec], found(lab, tree, codec));
        let row = format!(
            "| {name} | {codec} | {:.1} % ({:.1}–{:.1}) | {:.1} % | {:.1} % | {:.1} % |",
            said.share, said.low, said.high, found.share, said.compsize, found.compsize
        );
        println!("{row}");
        let near = said.low - 1.0 <= found.share && found.share <= said.high + 1.0;
        let close = (said.share - found.share).abs() <= 2.0 && (said.compsize - found.compsize).abs() <= 2.0;
        wrong.extend((!near || !close).then_some(row));
    }
    wrong
}

/// Generated text and programs, each file compressed by gzip.
fn make_compressed(root: &Path) {
    generate(root, &Shape { files: 200, bytes: 24 << 20 }, 5).unwrap();
    for entry in walkdir::WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_type().is_file()) {
        let plain = std::fs::read(entry.path()).unwrap();
        let packed = File::create(entry.path().with_extension("gz")).unwrap();
        GzEncoder::new(packed, Compression::new(6)).write_all(&plain).unwrap();
        std::fs::remove_file(entry.path()).unwrap();
    }
}

#[test]
fn what_is_predicted_is_what_compsize_finds() {
    if not_run(no_compsize()) {
        return;
    }
    let lab = Lab::new();
    let compressed = lab.path("compressed");
    make_compressed(&compressed);
    let mut wrong = compare(&lab, "gzip", &compressed);
    match Path::new("/usr/include") {
        headers if headers.is_dir() => wrong.extend(compare(&lab, "headers", headers)),
        _ => println!("not run for headers, because there is no /usr/include"),
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// For erofs with lz4hc: the predicted share with its interval, and what `mkfs.erofs` made of it by
/// `dump.erofs`, in percent.
fn erofs(lab: &Lab, tree: &Path) -> ([f64; 3], f64) {
    let said = lab.run(&["scan", "--predict", tree.to_str().unwrap()]).code(0);
    print!("{}{}", said.out, said.err);
    let row = said.out.lines().find_map(|line| line.strip_prefix("erofs lz4hc ")).expect("a row of erofs");
    let numbers = row.split_once("iB ").unwrap().1.split(|c: char| !c.is_ascii_digit() && c != '.');
    let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let said = if row.contains("all read") { [numbers[0]; 3] } else { [numbers[0], numbers[1], numbers[2]] };
    let image = lab.path("erofs.img");
    run(&["mkfs.erofs", "-zlz4hc", "--quiet", image.to_str().unwrap(), tree.to_str().unwrap()]);
    let shown = run(&["dump.erofs", "-S", image.to_str().unwrap()]);
    let bytes = |begin: &str| -> f64 {
        let line = shown.lines().find_map(|line| line.strip_prefix(begin)).unwrap_or_else(|| panic!("{shown}"));
        line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap()
    };
    let made = bytes("Filesystem total file size:");
    (said, 100.0 * made / bytes("Filesystem total original file size:"))
}

#[test]
fn what_is_predicted_is_what_mkfs_erofs_makes() {
    let program = |name| pickfs_system::need::Need::Program { name, package: "erofs-utils" };
    let missing = pickfs_system::need::missing(&[program("mkfs.erofs"), program("dump.erofs")]);
    if not_run(missing.first().map(ToString::to_string)) {
        return;
    }
    let lab = Lab::new();
    let generated = lab.path("generated");
    generate(&generated, &Shape { files: 400, bytes: 16 << 20 }, 5).unwrap();
    let trees = [generated, PathBuf::from("/usr/include"), PathBuf::from("/usr/share/doc")];
    for tree in trees.iter().filter(|tree| tree.is_dir()) {
        let ([said, low, high], made) = erofs(&lab, tree);
        println!("| {} | lz4hc | {said:.1} % ({low:.1}–{high:.1}) | {made:.1} % |", tree.display());
        // What time is there for decides how wide it is.
        assert!(low - 1.0 <= made && made <= high + 1.0, "{}", tree.display());
    }
}

/// The source of a kernel, downloaded as Debian's package.
fn kernel(lab: &Lab) -> Option<PathBuf> {
    let folder = lab.path("kernel");
    std::fs::create_dir(&folder).unwrap();
    let download = Command::new("apt-get").args(["download", "linux-source-6.1"]).current_dir(&folder).output();
    let packages = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let Some(package) = packages.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "deb")) else {
        println!("not run for a kernel, because `apt-get download linux-source-6.1` brought nothing: {download:?}");
        return None;
    };
    run(&["dpkg-deb", "--extract", package.to_str().unwrap(), folder.to_str().unwrap()]);
    let archive = folder.join("usr/src/linux-source-6.1.tar.xz");
    let tree = lab.path("tree");
    std::fs::create_dir(&tree).unwrap();
    run(&["tar", "--extract", "--file", archive.to_str().unwrap(), "--directory", tree.to_str().unwrap()]);
    Some(tree)
}

/// Manuals compressed by gzip, and the kernel's package, which is xz.
fn archives(lab: &Lab) -> PathBuf {
    let tree = lab.path("archives");
    std::fs::create_dir(&tree).unwrap();
    for source in [Path::new("/usr/share/man"), &lab.path("kernel")] {
        if source.is_dir() {
            run(&["cp", "-a", source.to_str().unwrap(), tree.to_str().unwrap()]);
        }
    }
    tree
}

#[test]
#[ignore = "copies 2 GiB four times: minutes"]
fn four_real_trees_are_predicted_within_two_points() {
    if not_run(no_compsize()) {
        return;
    }
    let lab = Lab::new();
    let kernel = kernel(&lab);
    let trees = [
        ("/usr/include", Some(PathBuf::from("/usr/include"))),
        ("/usr/share/doc", Some(PathBuf::from("/usr/share/doc"))),
        ("linux-source-6.1", kernel),
        ("archives", Some(archives(&lab))),
    ];
    let there = trees.into_iter().filter_map(|(name, tree)| Some((name, tree.filter(|tree| tree.is_dir())?)));
    let wrong: Vec<String> = there.flat_map(|(name, tree)| compare(&lab, name, &tree)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn hostile_trees_are_told_of_and_never_fatal() {
    let lab = Lab::new();
    let tree = lab.path("tree");
    std::fs::create_dir(&tree).unwrap();
    let at = |name: &[u8]| tree.join(std::ffi::OsStr::from_bytes(name));
    std::fs::write(at(b"not\xffutf8\x1b[31m"), b"text ".repeat(10_000)).unwrap();
    std::os::unix::fs::symlink("loop", at(b"loop")).unwrap();
    std::os::unix::fs::symlink("..", at(b"up")).unwrap();
    std::os::unix::fs::symlink("gone", at(b"dangling")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at(b"fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let sparse = File::create(at(b"sparse.img")).unwrap();
    let large = [10u64 << 40, 1 << 40, 1 << 34].into_iter().find(|bytes| sparse.set_len(*bytes).is_ok());
    sparse.write_all_at(b"island", large.unwrap() / 2).unwrap();
    let said = lab.run(&["scan", "--predict", tree.to_str().unwrap()]).code(0);
    print!("{}{}", said.out, said.err);
    assert!(said.out.contains("are not in holes") && said.out.contains("Turn compression on"));
    assert!(!said.out.contains('\x1b') && !said.err.contains('\x1b'));
}

/// pickfs as a user that may not read everything, unlike root.
fn as_nobody(lab: &Lab) -> Command {
    const NOBODY: u32 = 65534;
    let all = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    let copy = lab.path("pickfs");
    std::fs::copy(env!("CARGO_BIN_EXE_pickfs"), &copy).unwrap();
    [lab.path(""), copy.clone()].iter().for_each(|path| all(path));
    let mut command = Command::new(copy);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn a_file_that_may_not_be_read_is_told_and_taken_as_others_are() {
    let lab = Lab::new();
    let tree = lab.path("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..6 {
        std::fs::write(tree.join(format!("{number}.txt")), b"text ".repeat(10_000)).unwrap();
    }
    std::fs::set_permissions(tree.join("3.txt"), Permissions::from_mode(0o000)).unwrap();
    std::fs::set_permissions(&tree, Permissions::from_mode(0o755)).unwrap();
    let said = common::Said::of(as_nobody(&lab).args(["scan", "--predict"]).arg(&tree).output().unwrap()).code(0);
    print!("{}{}", said.out, said.err);
    assert!(said.err.contains("what could not be seen") && said.err.contains("1 not permitted: 3.txt"), "{}", said.err);
    assert!(said.out.contains("btrfs zstd:1        24.0 KiB"), "{}", said.out);
}

#[test]
fn no_directory_and_nothing_to_compress() {
    let lab = Lab::new();
    let said = lab.run(&["scan", "--predict", "nowhere"]).code(2);
    assert!(said.err.contains("is no directory; name one that is there"), "{}", said.err);
    let said = lab.run(&["scan", "--predict", "."]).code(0);
    assert_eq!(said.out, "0 files, 0 B\n\nThere is nothing to compress.\n");
}
