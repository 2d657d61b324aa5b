//! Visits everything below a directory, with all processors and in bounded memory.
//!
//! Directories wait in one queue that is taken from its end, so that it stays short. When it is
//! full nevertheless, a thread descends by itself. A directory is opened by its whole path below
//! the root, never through a symbolic link, so no descriptor stays open for what waits. What cannot
//! be read is counted and reported, and never ends the walk.

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Most directories that may wait; each is a path.
const WAITING: usize = 4096;
/// So deep a thread goes down by itself when no more may wait, a descriptor and a buffer a step.
const NESTED: usize = 64;
/// More threads gain nothing, and each has its own counts.
const THREADS: usize = 16;
/// Bytes of names that are read at a time.
const BUFFER: usize = 32 << 10;
/// The kernel takes paths of up to 4096 bytes; longer ones are opened in parts.
const PATH_PART: usize = 4000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// 0 is one for each processor.
    pub threads: usize,
    /// Go into what is mounted below the root too.
    pub all_file_systems: bool,
    /// Seed of the ranks that samples are drawn by.
    pub seed: u64,
}

impl Options {
    pub fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        if self.threads == 0 { all() } else { self.threads }
    }
}

/// Receives everything that is found. Each thread has its own.
pub(crate) trait Visitor: Send {
    /// Called for everything but the root; may count in the directory that it lies in.
    fn entry(&mut self, directory: &mut Directory, entry: &Entry);
    /// After the last entry of a directory, also of one that could not be read.
    fn directory(&mut self, directory: &Directory);
}

/// A directory that is being read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    /// Below the root; empty for the root itself.
    pub path: Vec<u8>,
    /// 0 is the root.
    pub depth: usize,
    /// Hash of the path and the seed.
    pub hash: u64,
    pub subdirectories: u64,
    /// Counted by the visitor.
    pub files: u64,
    /// Files with further names, counted by the visitor.
    pub linked: u64,
}

impl Directory {
    fn root(seed: u64) -> Directory {
        Directory { hash: seed, ..Directory::default() }
    }

    fn child(&self, name: &[u8]) -> Directory {
        Directory { path: self.join(name), depth: self.depth + 1, hash: self.rank(name), ..Directory::default() }
    }

    /// The path of an entry below the root.
    pub(crate) fn join(&self, name: &[u8]) -> Vec<u8> {
        if self.path.is_empty() { name.to_vec() } else { [&self.path[..], b"/", name].concat() }
    }

    /// A number for an entry that looks random and depends on its path and the seed alone.
    pub(crate) fn rank(&self, name: &[u8]) -> u64 {
        xxh3_64_with_seed(name, self.hash)
    }
}

pub(crate) struct Entry<'a> {
    pub name: &'a [u8],
    pub kind: FileType,
    pub stat: &'a Statx,
}

/// The directory that a walk began at; what is below is opened from here.
pub(crate) struct Root(OwnedFd);

impl Root {
    fn new(path: &Path) -> Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
        Ok(Root(opened.with_context(|| format!("{}: name a directory that is there and may be read", path.display()))?))
    }

    /// Opens a path below the root for reading, unless a symbolic link is in it.
    pub(crate) fn open(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut rest = path;
        let mut folder: Option<OwnedFd> = None;
        while rest.len() > PATH_PART {
            let end = rest[..PATH_PART].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
            let from = folder.as_ref().unwrap_or(&self.0);
            folder = Some(open_below(from, &rest[..end], OFlags::PATH | OFlags::DIRECTORY)?);
            rest = &rest[end + 1..];
        }
        open_below(folder.as_ref().unwrap_or(&self.0), rest, flags)
    }
}

fn open_below(folder: &OwnedFd, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat2(folder, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A kernel or a sandbox without openat2 looks at the last part alone.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(folder, path, flags, Mode::empty()),
        opened => opened,
    }
}

/// What a walk leaves.
pub(crate) struct WalkResult<V> {
    /// One of each thread.
    pub visitors: Vec<V>,
    pub problems: Problems,
    pub root: Root,
}

/// Visits everything below `root` but the root itself.
pub(crate) fn walk<V: Visitor>(root: &Path, options: &Options, visitor: impl Fn() -> V) -> Result<WalkResult<V>> {
    let root = Root::new(root)?;
    let origin = Mounted::of(&stat(&root.0, c"").context("looking at the root")?);
    let crew = Crew { root, origin, options: *options, queue: Queue::default(), problems: Mutex::default() };
    crew.queue.put(Directory::root(options.seed));
    let visitors = std::thread::scope(|scope| {
        let worker = || Worker { crew: &crew, visitor: visitor(), nested: 0 };
        let start = |_| {
            let worker = worker();
            scope.spawn(|| worker.run())
        };
        let threads: Vec<_> = (0..options.threads()).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread of the walk panicked")).collect()
    });
    let problems = crew.problems.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(WalkResult { visitors, problems, root: crew.root })
}

/// An empty name is the folder itself. Network file systems answer from what they know already.
fn stat(folder: impl AsFd, name: &CStr) -> rustix::io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(folder, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

/// Where an entry is mounted: both differ on another file system, the mount alone where a folder is
/// mounted again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mounted {
    device: (u32, u32),
    mount: u64,
}

impl Mounted {
    fn of(stat: &Statx) -> Mounted {
        let known = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Mounted { device: (stat.stx_dev_major, stat.stx_dev_minor), mount: if known { stat.stx_mnt_id } else { 0 } }
    }
}

/// What all threads share.
struct Crew {
    root: Root,
    origin: Mounted,
    options: Options,
    queue: Queue,
    problems: Mutex<Problems>,
}

struct Worker<'a, V> {
    crew: &'a Crew,
    visitor: V,
    nested: usize,
}

impl<V: Visitor> Worker<'_, V> {
    fn run(mut self) -> V {
        let crew = self.crew;
        while let Some((directory, _turn)) = crew.queue.take() {
            self.visit(directory);
        }
        self.visitor
    }

    fn visit(&mut self, mut directory: Directory) {
        match self.crew.root.open(&directory.path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(folder) => self.list(&folder, &mut directory),
            Err(error) => self.complain(error, &directory.path),
        }
        self.visitor.directory(&directory);
    }

    fn list(&mut self, folder: &OwnedFd, directory: &mut Directory) {
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut names = RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(name) = names.next() {
            match name {
                Ok(name) if [c".", c".."].contains(&name.file_name()) => {}
                Ok(name) => self.look(folder, directory, name.file_name()),
                Err(error) => return self.complain(error, &directory.path),
            }
        }
    }

    fn look(&mut self, folder: &OwnedFd, directory: &mut Directory, name: &CStr) {
        let stat = match stat(folder, name) {
            Ok(stat) => stat,
            Err(error) => return self.complain(error, &directory.join(name.to_bytes())),
        };
        let kind = FileType::from_raw_mode(stat.stx_mode.into());
        if kind == FileType::Directory {
            directory.subdirectories += 1;
        }
        self.visitor.entry(directory, &Entry { name: name.to_bytes(), kind, stat: &stat });
        if kind == FileType::Directory {
            self.descend(directory.child(name.to_bytes()), &stat);
        }
    }

    fn descend(&mut self, directory: Directory, stat: &Statx) {
        if !self.crew.options.all_file_systems && Mounted::of(stat) != self.crew.origin {
            lock(&self.crew.problems).add(LEFT_OUT, &directory.path, "");
            self.visitor.directory(&directory);
        } else if self.nested < NESTED && self.crew.queue.is_full() {
            self.nested += 1;
            self.visit(directory);
            self.nested -= 1;
        } else {
            self.crew.queue.put(directory);
        }
    }

    fn complain(&self, error: Errno, path: &[u8]) {
        let (what, detail) = match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE => (VANISHED, String::new()),
            Errno::ACCESS | Errno::PERM => (FORBIDDEN, String::new()),
            other => (UNREADABLE, std::io::Error::from(other).to_string()),
        };
        lock(&self.crew.problems).add(what, path, &detail);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Directories that wait, and how many threads may still bring more.
#[derive(Default)]
struct Queue {
    state: Mutex<(Vec<Directory>, usize)>,
    changed: Condvar,
}

/// Held by a thread as long as it may bring more; dropped even if it panics, so that the others
/// end.
struct Turn<'a>(&'a Queue);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.1 -= 1;
        if state.1 == 0 {
            self.0.changed.notify_all();
        }
    }
}

impl Queue {
    fn put(&self, directory: Directory) {
        lock(&self.state).0.push(directory);
        self.changed.notify_one();
    }

    fn is_full(&self) -> bool {
        lock(&self.state).0.len() >= WAITING
    }

    /// `None` when nothing waits and no thread can add more.
    fn take(&self) -> Option<(Directory, Turn<'_>)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(directory) = state.0.pop() {
                state.1 += 1;
                return Some((directory, Turn(self)));
            }
            if state.1 == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

pub(crate) const FORBIDDEN: &str = "not permitted";
pub(crate) const LEFT_OUT: &str = "left out, as another file system is mounted there";
pub(crate) const UNREADABLE: &str = "cannot be read";
pub(crate) const VANISHED: &str = "vanished or changed meanwhile";

/// What a walk could not see: how often for each reason, and some of the paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(BTreeMap<&'static str, (u64, BTreeSet<String>)>);

impl Problems {
    /// Number of paths that are kept of each reason: the first by name, whichever thread found
    /// them.
    const SHOWN: usize = 3;

    pub(crate) fn add(&mut self, what: &'static str, path: &[u8], detail: &str) {
        let (count, examples) = self.0.entry(what).or_default();
        *count += 1;
        let shown = sanitize(path);
        examples.insert(if detail.is_empty() { shown } else { format!("{shown} ({detail})") });
        if examples.len() > Self::SHOWN {
            examples.pop_last();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One line for each reason.
    pub fn lines(&self) -> Vec<String> {
        let line = |(what, (count, examples)): (&&str, &(u64, BTreeSet<String>))| {
            let shown: Vec<&str> = examples.iter().map(String::as_str).collect();
            let more = if *count > shown.len() as u64 { ", ..." } else { "" };
            format!("{count} {what}: {}{more}", shown.join(", "))
        };
        self.0.iter().map(line).collect()
    }
}

/// A path as text that a terminal takes for nothing else: what is no text as U+FFFD, control
/// characters and changes of the direction of writing as escapes, the end of a long one.
pub fn sanitize(path: &[u8]) -> String {
    const LONGEST: usize = 160;
    let path = if path.is_empty() { b"." } else { path };
    let turns =
        |c| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let mut shown = String::from(if path.len() > LONGEST { "..." } else { "" });
    for c in String::from_utf8_lossy(&path[path.len().saturating_sub(LONGEST)..]).chars() {
        if c.is_control() || turns(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[derive(Default)]
    struct Paths(Vec<Vec<u8>>);

    impl Visitor for Paths {
        fn entry(&mut self, directory: &mut Directory, entry: &Entry) {
            self.0.push(directory.join(entry.name));
        }

        fn directory(&mut self, _: &Directory) {}
    }

    fn paths(root: &Path, threads: usize) -> (Vec<Vec<u8>>, Problems) {
        let walked = walk(root, &Options { threads, ..Options::default() }, Paths::default).unwrap();
        let mut found: Vec<Vec<u8>> = walked.visitors.into_iter().flat_map(|visitor| visitor.0).collect();
        found.sort();
        (found, walked.problems)
    }

    #[test]
    fn everything_is_found_once_whatever_the_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a/b/c", "a/d", "e"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
            fs::write(folder.path().join(path).join("file"), "").unwrap();
        }
        std::os::unix::fs::symlink("..", folder.path().join("a/up")).unwrap();
        let wanted = ["a", "a/b", "a/b/c", "a/b/c/file", "a/d", "a/d/file", "a/up", "e", "e/file"];
        for threads in [1, 2, 7] {
            let (found, problems) = paths(folder.path(), threads);
            assert_eq!(found, wanted.map(|path| path.as_bytes().to_vec()), "{threads} threads");
            assert!(problems.is_empty());
        }
    }

    #[test]
    fn more_directories_than_may_wait_and_paths_longer_than_the_kernel_takes() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..WAITING + 500 {
            fs::create_dir_all(folder.path().join(format!("{number}/below"))).unwrap();
        }
        let mut deep = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        let name = "deep".repeat(50);
        for _ in 0..50 {
            rustix::fs::mkdirat(&deep, &name, Mode::RWXU).unwrap();
            deep = rustix::fs::openat(&deep, &name, OFlags::PATH, Mode::empty()).unwrap();
        }
        let (found, problems) = paths(folder.path(), 2);
        assert_eq!((found.len(), problems), (2 * (WAITING + 500) + 50, Problems::default()));
        assert!(found.iter().any(|path| path.len() == 50 * 201 - 1));
    }

    #[test]
    fn paths_are_shown_so_that_no_terminal_obeys_them() {
        let cases: [(&[u8], &str); 4] = [
            (b"", "."),
            (b"a\x1b[2J\nb", "a\\u{1b}[2J\\nb"),
            (b"\xff", "\u{fffd}"),
            ("x\u{202e}y".as_bytes(), "x\\u{202e}y"),
        ];
        for (path, wanted) in cases {
            assert_eq!(sanitize(path), wanted);
        }
        assert_eq!(sanitize(&[b'x'; 999]).len(), 163);
    }

    #[test]
    fn some_examples_are_kept_and_all_are_counted() {
        let mut problems = Problems::default();
        for path in ["d", "b", "c", "a"] {
            problems.add(FORBIDDEN, path.as_bytes(), "");
        }
        problems.add(UNREADABLE, b"x", "worn out");
        assert_eq!(problems.lines(), ["1 cannot be read: x (worn out)", "4 not permitted: a, b, c, ..."]);
    }
}
