//! `pickfs scan` on trees that are hostile: whatever they hold is reported, nothing ends the scan,
//! and no name leaves.

use crate::common::{Lab, Said, not_run};
use pickfs_trees::profile::{Kind, Profile};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

fn scan(lab: &Lab, words: &[&str]) -> Said {
    lab.run(&[&["scan"], words].concat())
}

fn profile(said: &Said) -> Profile {
    Profile::parse(&said.out).unwrap_or_else(|error| panic!("{error:#}\n{}", said.out))
}

fn class(profile: &Profile, kind: Kind) -> &pickfs_trees::profile::Class {
    profile.classes.iter().find(|class| class.kind == kind).unwrap_or_else(|| panic!("no {kind:?}"))
}

/// Totals of each level: (directories in the profile, subdirectories, files).
fn told(profile: &Profile) -> Vec<(u64, u64, u64)> {
    let sum = |pairs: &[(u64, u64)]| pairs.iter().map(|(entries, of)| entries * of).sum();
    let of = |pairs: &[(u64, u64)]| pairs.iter().map(|pair| pair.1).sum();
    profile.levels.iter().map(|level| (of(&level.files), sum(&level.subdirectories), sum(&level.files))).collect()
}

fn small_tree(root: &Path) {
    for folder in ["src/deep/deeper", "empty", "pictures"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for number in 0..40u32 {
        let text = format!("int main{number}(void) {{ return {number}; }}\n").repeat(1 + 7 * number as usize);
        fs::write(root.join(format!("src/unmistakable{number}.c")), &text).unwrap();
        fs::write(root.join(format!("src/deep/again{number}.c")), text).unwrap();
    }
    fs::hard_link(root.join("src/unmistakable1.c"), root.join("src/deep/deeper/second.c")).unwrap();
    fs::write(root.join("pictures/noise.jpg"), vec![7; 300_000]).unwrap();
}

#[test]
fn a_profile_has_what_the_tree_has_and_no_name_of_it() {
    let lab = Lab::new();
    let tree = lab.path("secretplace");
    small_tree(&tree);
    let said = scan(&lab, &["secretplace"]).code(0);
    let found = profile(&said);
    assert_eq!((found.files(), found.names.hard_links), (81, 1));
    assert_eq!(told(&found)[0], (1, 3, 0));
    assert_eq!(told(&found)[1].1 + told(&found)[2].1, 2);
    assert_eq!(told(&found).iter().map(|level| level.2).sum::<u64>(), 81);
    let source = class(&found, Kind::Source);
    assert_eq!((source.files, source.duplicates), (80, 0.5));
    let of_larger = source.contents.iter().filter(|row| row.sizes.0 > 2048).map(|row| row.ratios.zstd3);
    assert!(of_larger.clone().count() > 0 && of_larger.clone().all(|zstd| zstd < 0.2), "{:?}", source.contents);
    for part in ["secretplace", "unmistakable", "again", "deep", "second", "noise", "pictures", "src", ".jpg", "main"] {
        assert!(!said.out.contains(part), "{part} in\n{}", said.out);
    }
    for pair in told(&found).windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "as many directories as the level above has");
    }
    assert!(said.out.len() < 32 << 10);
}

#[test]
fn the_same_tree_gives_the_same_profile_whatever_the_number_of_threads() {
    let lab = Lab::new();
    small_tree(&lab.path("tree"));
    let first = scan(&lab, &["tree", "--threads", "1"]).code(0).out;
    for threads in ["2", "3", "16"] {
        assert_eq!(scan(&lab, &["tree", "--threads", threads]).code(0).out, first, "{threads} threads");
    }
    scan(&lab, &["tree", "-o", "profile.toml"]).code(0);
    assert_eq!(fs::read_to_string(lab.path("profile.toml")).unwrap(), first);
    let without = profile(&scan(&lab, &["tree", "--no-content"]).code(0));
    assert!(without.classes.iter().all(|class| class.contents.is_empty() && class.duplicates == 0.0));
}

#[test]
fn nothing_that_a_tree_may_hold_ends_a_scan() {
    let lab = Lab::new();
    let tree = lab.path("tree");
    fs::create_dir(&tree).unwrap();
    symlink("loop", tree.join("loop")).unwrap();
    symlink("..", tree.join("up")).unwrap();
    symlink(&tree, tree.join("round")).unwrap();
    for name in [&b"no text \xff"[..], b"new\nline", b"\x1b[2Jescape", b"-rf", b" "] {
        fs::write(tree.join(OsStr::from_bytes(name)), "content").unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, tree.join("pipe.c"), fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let device = rustix::fs::FileType::CharacterDevice;
    let made = rustix::fs::mknodat(rustix::fs::CWD, tree.join("null"), device, rustix::fs::Mode::RWXU, 0x103);
    let others = if made.is_ok() { 3 } else { 2 };
    let said = scan(&lab, &["tree"]).code(0);
    assert!(said.err.contains(&format!("3 symbolic links, {others} others")), "{}", said.err);
    assert!(!said.err.contains('\x1b') && !said.out.contains('\x1b'));
    let found = profile(&said);
    assert_eq!(
        (found.files(), found.names.symlinks, found.names.symlink_bytes),
        (5, 3, { (tree.as_os_str().len() as u64 + 6) / 3 })
    );
}

#[test]
fn a_file_of_ten_terabytes_that_is_one_hole() {
    let lab = Lab::new();
    let tree = lab.path("tree");
    fs::create_dir(&tree).unwrap();
    if let Err(error) = File::create(tree.join("disk.img")).and_then(|file| file.set_len(10 << 40)) {
        not_run(Some(format!("it cannot be made here: {error}")));
        return;
    }
    let found = profile(&scan(&lab, &["tree"]).code(0));
    let store = class(&found, Kind::Store);
    assert_eq!((store.bytes, store.largest.clone(), store.sparse, store.holes), (10 << 40, vec![10 << 40], 1.0, 1.0));
    assert!(store.contents.is_empty(), "{:?}", store.contents);
}

#[test]
fn no_tree_at_all_ends_with_a_remedy() {
    let lab = Lab::new();
    fs::create_dir(lab.path("empty")).unwrap();
    fs::write(lab.path("file"), "x").unwrap();
    let found = profile(&scan(&lab, &["empty"]).code(0));
    assert_eq!((found.files(), told(&found)), (0, vec![(1, 0, 0)]));
    for path in ["nowhere", "file"] {
        let said = scan(&lab, &[path]).code(2);
        assert!(said.err.contains("is no directory; name one"), "{}", said.err);
    }
}

#[test]
fn what_may_not_be_read_is_told() {
    let is_root = rustix::process::geteuid().is_root();
    if not_run((!is_root).then(|| "it wants to give root up, and is not root".into())) {
        return;
    }
    let lab = Lab::new();
    let tree = lab.path("tree");
    fs::create_dir_all(tree.join("closed\x1b/inside")).unwrap();
    fs::write(tree.join("secret.c"), "x").unwrap();
    fs::write(tree.join("open.c"), "xyz").unwrap();
    let program = lab.path("pickfs");
    fs::copy(env!("CARGO_BIN_EXE_pickfs"), &program).unwrap();
    let modes = [(lab.path("."), 0o755), (tree.join("closed\x1b"), 0o700), (tree.join("secret.c"), 0o600)];
    for (path, mode) in modes.iter().chain([&(program.clone(), 0o755), &(tree.clone(), 0o755)]) {
        fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("scan").arg(&tree);
    let said = Said::of(command.output().unwrap()).code(0);
    assert!(said.err.contains("1 not permitted: closed\\u{1b}\n"), "{}", said.err);
    let found = profile(&said);
    assert_eq!((found.files(), told(&found)), (2, vec![(1, 1, 2), (1, 0, 0)]));
}

#[test]
fn what_changes_under_way_is_told_and_never_fatal() {
    let lab = Lab::new();
    let tree = lab.path("tree");
    let over = AtomicBool::new(false);
    let churn = || {
        for number in (0..30).cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
            let folder = tree.join(format!("folder{number}"));
            let _ = fs::create_dir_all(folder.join("below"));
            let _ = fs::write(folder.join("below/file.c"), "text");
            let _ = fs::rename(&folder, tree.join(format!("renamed{number}")));
            let _ = fs::remove_dir_all(tree.join(format!("renamed{}", (number + 15) % 30)));
        }
    };
    fs::create_dir(&tree).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(churn);
        let said: Vec<Said> = (0..20).map(|_| scan(&lab, &["tree"])).collect();
        over.store(true, Ordering::Relaxed);
        said.into_iter().for_each(|said| drop(profile(&said.code(0))));
    });
}
