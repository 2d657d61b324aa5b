//! Logs of strace and what they become, line by line.

use super::import;
use crate::{EntryKind, Kind, Trace};

/// Lines with their thread; a call each 10 microseconds.
fn log(lines: &[(i32, &str)]) -> String {
    let line = |(number, (tid, text)): (usize, &(i32, &str))| format!("{tid} 17.{:06} {text}\n", 10 * number);
    lines.iter().enumerate().map(line).collect()
}

fn imported(lines: &[(i32, &str)]) -> Trace {
    crate::read(&import(&log(lines), &[b"/w".to_vec()]).unwrap()).unwrap()
}

fn kinds(trace: &Trace) -> Vec<(u32, Kind)> {
    trace.ops.iter().map(|op| (op.thread, op.kind)).collect()
}

#[test]
fn calls_on_files_become_operations_and_others_do_not() {
    let trace = imported(&[
        (7, r#"openat(AT_FDCWD</w>, "a", O_RDONLY) = 3</w/a> <0.000002>"#),
        (7, r#"openat(AT_FDCWD</w>, "/etc/x", O_RDONLY) = 4</etc/x> <0.000002>"#),
        (7, r#"read(3</w/a>, "abc"..., 4096) = 700 <0.000004>"#),
        (7, r#"read(4</etc/x>, "abc"..., 4096) = 700 <0.000004>"#),
        (7, r#"brk(NULL) = 0x5 <0.000001>"#),
        (7, r#"close(3</w/a>) = 0 <0.000001>"#),
        (7, r#"rename("a", "b/c") = -1 ENOENT (No such file or directory) <0.000003>"#),
        (7, "+++ exited with 3 +++"),
    ]);
    use Kind::{Close, End, Open, Read, Rename};
    assert_eq!(kinds(&trace), [(0, Open), (0, Read), (0, Close), (0, Rename), (0, End)]);
    let read = trace.ops[1];
    // Durations are kept coarsely.
    assert_eq!((read.length, read.result, read.took_ns, read.object), (4096, 700, 3968, 1));
    assert_eq!((trace.ops[3].result, trace.header.exit, trace.header.elsewhere), (-2, 3, 1));
    // The file was there, with what was read of it.
    let files: Vec<EntryKind> = trace.tree.iter().map(|entry| entry.what).collect();
    assert_eq!(files, [EntryKind::Directory, EntryKind::File { bytes: 700, class: 2 }]);
}

#[test]
fn calls_that_overlap_keep_their_order() {
    let trace = imported(&[
        (1, r#"clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>"#),
        (2, r#"mkdirat(AT_FDCWD</w>, "d", 0777 <unfinished ...>"#),
        (1, r#"<... clone resumed>, child_tidptr=0x5) = 2 <0.000030>"#),
        (1, r#"unlinkat(AT_FDCWD</w>, "e", 0) = 0 <0.000003>"#),
        (2, r#"<... mkdirat resumed>) = 0 <0.000020>"#),
        (2, "+++ exited with 0 +++"),
        (1, r#"wait4(-1, NULL, 0, NULL) = 2 <0.000003>"#),
    ]);
    use Kind::{End, Join, MakeDir, Spawn, Unlink};
    assert_eq!(kinds(&trace), [(0, Spawn), (0, Unlink), (1, MakeDir), (1, End), (0, Join)]);
    // It began after the first operation and before the second.
    assert_eq!(trace.ops.iter().map(|op| op.began).collect::<Vec<_>>()[..3], [0, 1, 1]);
}

#[test]
fn what_was_there_is_guessed_from_what_was_found() {
    let trace = imported(&[
        (1, r#"chdir("/w/s/..") = 0 <0.000001>"#),
        (1, r#"mkdir("new", 0777) = 0 <0.000001>"#),
        (1, r#"newfstatat(AT_FDCWD</w>, "s/f", {st_mode=S_IFREG|0644, st_size=900, ...}, 0) = 0 <0.000001>"#),
        (1, r#"readlink("l", "s/f", 100) = 3 <0.000001>"#),
        (1, r#"rename("old", "moved") = 0 <0.000001>"#),
        (1, r#"access("moved/in", R_OK) = 0 <0.000001>"#),
        (1, r#"openat(AT_FDCWD</w>, "new/g", O_WRONLY|O_CREAT, 0666) = 3</w/new/g> <0.000001>"#),
        (1, r#"write(3</w/new/g>, "abc", 3) = 3 <0.000001>"#),
        (1, r#"unlink("new/g") = 0 <0.000001>"#),
        (1, r#"mkdir("have", 0777) = -1 EEXIST (File exists) <0.000001>"#),
        (1, r#"rmdir("empty") = 0 <0.000001>"#),
    ]);
    let mut found: Vec<(String, EntryKind)> =
        trace.tree.iter().map(|entry| (trace.paths.text(entry.path), entry.what)).collect();
    found.sort_by_key(|(name, _)| name.clone());
    let count = |wanted: fn(&EntryKind) -> bool| found.iter().filter(|(_, what)| wanted(what)).count();
    // The root, s, old, empty; s/f, old/in, have; l.
    assert_eq!(count(|what| *what == EntryKind::Directory), 4, "{found:?}");
    assert_eq!(count(|what| *what == EntryKind::File { bytes: 900, class: 2 }), 1);
    assert_eq!(count(|what| matches!(what, EntryKind::File { bytes: 0, .. })), 2, "{found:?}");
    assert_eq!(count(|what| matches!(what, EntryKind::Link { to: Some(_) })), 1, "{found:?}");
}

#[test]
fn a_damaged_log_is_refused_with_its_line() {
    let good = r#"17.1 openat(AT_FDCWD</w>, "a", O_RDONLY) = 3</w/a> <0.000002>"#;
    for (bad, says) in [
        ("17.2 openat(AT_FDCWD</w>, \"a", "no end"),
        ("17.2 openat(AT_FDCWD</w>, \"a\", O_WHAT) = 3 <0.000002>", "O_WHAT"),
        ("17.2 what is that", "no call"),
        ("17.2 close(3</w/a>) = 0", "-T"),
    ] {
        let error = format!("{:#}", import(&format!("{good}\n{bad}\n"), &[]).expect_err(bad));
        assert!(error.contains("line 2") && error.contains(says), "{error}");
    }
    assert!(import("", &[]).is_err() && import("1.0 exit_group(0) = ?", &[]).is_err());
}
