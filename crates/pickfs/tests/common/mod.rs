//! What the end-to-end tests share: their own place, the real binary, and the proof that nothing is
//! left.

#![allow(dead_code)] // each test file uses its part

pub mod steps;

use pickfs_core::journal::{Folded, FoldedCell, Outcome, Record, fold_file};
use pickfs_system::need::Need;
use std::collections::BTreeSet;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// One observation of a cell: all samples of a metric in a phase, however many.
pub trait Observation {
    fn value(&self, cell: &FoldedCell, phase: &str, metric: &str) -> Option<f64>;
}

impl Observation for Folded {
    fn value(&self, cell: &FoldedCell, phase: &str, metric: &str) -> Option<f64> {
        let samples = self.samples(cell).filter(|(in_phase, name, _)| (*in_phase, *name) == (phase, metric));
        pickfs_stats::one_observation(&samples.map(|(_, _, value)| value).collect::<Vec<_>>())
    }
}

pub struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Lab {
        Lab { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn journal(&self) -> PathBuf {
        self.path("journal.jsonl")
    }

    /// pickfs with its own state folder, so that `clean` sees this test's runs alone.
    pub fn pickfs(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pickfs"));
        command
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .env_remove("PICKFS_RUN")
            .env_remove("COLUMNS");
        if self.own_cache().exists() {
            command.env("XDG_CACHE_HOME", self.own_cache());
        }
        command
    }

    pub fn run(&self, words: &[&str]) -> Said {
        Said::of(self.pickfs().args(words).output().expect("pickfs starts"))
    }

    pub fn write_plan(&self, plan: &str) {
        std::fs::write(self.path("plan.toml"), plan).expect("the plan is written");
    }

    /// Writes a plan and runs it into [`Lab::journal`].
    pub fn run_plan(&self, plan: &str) -> Said {
        self.write_plan(plan);
        self.run(&["run", "plan.toml", "--journal", "journal.jsonl"])
    }

    pub fn folded(&self) -> Folded {
        self.folded_at("journal.jsonl")
    }

    pub fn folded_at(&self, journal: &str) -> Folded {
        fold_file(&self.path(journal)).expect("the journal folds")
    }

    /// From now on the guests of the user's cache, without the boots that were saved of them.
    pub fn forget_boots(&self) {
        let link = |from: &Path, to: PathBuf| std::os::unix::fs::symlink(from, to).expect("a link");
        let (from, to) =
            (pickfs_host::executor::vm::folder().expect("a cache"), self.own_cache().join("pickfs/guests"));
        std::fs::create_dir_all(&to).expect("a folder");
        link(&from.join("compiled"), to.join("compiled"));
        for guest in pickfs_host::executor::vm::all().expect("guests") {
            let own = to.join(&guest.name);
            std::fs::create_dir(&own).expect("a folder");
            let files = std::fs::read_dir(&guest.folder).expect("a guest").flatten();
            files
                .filter(|file| file.file_name() != "saved")
                .for_each(|file| link(&file.path(), own.join(file.file_name())));
        }
    }

    fn own_cache(&self) -> PathBuf {
        self.path("own-cache")
    }

    /// The folder of the guest that a plan needs, which is made if there is none.
    pub fn guest_of(&self, plan: &str) -> PathBuf {
        std::fs::write(self.path("guest.toml"), plan).expect("a plan");
        let built = self.run(&["guest", "build", "guest.toml"]).code(0).out;
        built.split_whitespace().nth(1).expect("the guest's folder").into()
    }

    /// A target for `meta.read`: ext4 in memory, made with `files` files to read.
    pub fn born_with(&self, name: &str, files: u32) -> String {
        let folder = self.path(name);
        std::fs::create_dir(&folder).expect("a folder");
        for number in 0..files {
            std::fs::write(folder.join(format!("file{number}")), vec![number as u8; 8192]).expect("a file");
        }
        format!(
            "[[target]]\nname = \"{name}\"\nfs = \"ext4\"\nbacking = {{ memory = \"16MiB\" }}\nmkfs = [\"-d\", \"{}\"]\n",
            folder.display()
        )
    }

    /// Mounts, loop devices, folders and processes that carry the run's name.
    pub fn leftovers(&self) -> Vec<String> {
        let Ok(folded) = fold_file(&self.journal()) else { return Vec::new() };
        let Some(run) = folded.run else { return Vec::new() };
        let name = format!("pickfs-{}", run.id);
        let mut left = lines_with("/proc/self/mountinfo", &name);
        left.extend(loops_with(&name));
        let folders =
            [PathBuf::from("/dev/shm"), PathBuf::from("/run"), std::env::temp_dir(), self.folder.path().into()];
        left.extend(
            folders.iter().map(|folder| folder.join(&name)).filter(|p| p.exists()).map(|p| p.display().to_string()),
        );
        let marked = pickfs_system::process::marked_processes(&format!("PICKFS_RUN={}", run.id));
        left.extend(marked.iter().map(|pid| format!("process {pid}")));
        left
    }

    pub fn assert_nothing_left(&self) {
        let left = self.leftovers();
        assert!(left.is_empty(), "left behind: {left:#?}");
    }
}

/// What a program said, and how it ended.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn code(self, code: i32) -> Said {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

/// Why a test that makes file systems cannot run here.
pub fn unable(filesystems: &[&str]) -> Option<String> {
    let driver = |name: &&str| pickfs_target::stack::fs::find(name).expect("a known file system").needs();
    let backing = pickfs_target::stack::backing::find("memory").expect("a known backing").needs.to_vec();
    let needs: Vec<_> = filesystems.iter().flat_map(driver).chain(backing).collect();
    let missing = pickfs_system::need::missing(&needs);
    (!missing.is_empty()).then(|| missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Why no guest can be made here: a program of the host's, or the mirror that its packages come
/// from.
pub fn no_guests() -> Option<String> {
    let vm = pickfs_host::executor::find(pickfs_host::executor::ALL, "sim").expect("it needs all that guests need");
    let missing: Vec<String> = pickfs_system::need::missing(&vm.needs()).iter().map(ToString::to_string).collect();
    if !missing.is_empty() {
        return Some(missing.join("; "));
    }
    let said = Command::new("apt-config").arg("dump").output().ok();
    let proxied = said.is_some_and(|said| String::from_utf8_lossy(&said.stdout).contains("Acquire::http::Proxy"));
    let reached = || {
        let mut addresses = "deb.debian.org:80".to_socket_addrs().into_iter().flatten();
        addresses.any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(10)).is_ok())
    };
    (!proxied && !reached()).then(|| "Debian's mirror is not reached from here".to_string())
}

/// A plan with each of these replaced, which must be there.
pub fn shrunk(plan: &str, replaced: &[(&str, &str)]) -> String {
    replaced.iter().fold(plan.to_string(), |plan, (long, short)| {
        assert!(plan.contains(long), "the example has no `{long}` any more");
        plan.replace(long, short)
    })
}

/// True where a test cannot run here, and prints why. With `PICKFS_MUST_RUN` in the environment
/// that is a failure.
#[track_caller]
pub fn not_run(why: Option<String>) -> bool {
    let Some(why) = why else { return false };
    assert!(std::env::var_os("PICKFS_MUST_RUN").is_none(), "it must run, but {why}");
    println!("{}: not run, because {why}", std::thread::current().name().unwrap_or("a test"));
    true
}

/// Runs a program that must succeed; returns what it printed, without blanks at the ends.
#[track_caller]
pub fn run(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// Why a test on btrfs in a loop device, against compsize, cannot run here.
pub fn no_compsize() -> Option<String> {
    let program = |name, package| Need::Program { name, package };
    let needs = [
        Need::Root,
        Need::File { path: "/dev/loop-control", hint: "modprobe loop" },
        Need::Kernel { filesystem: "btrfs", hint: "modprobe btrfs" },
        program("mkfs.btrfs", "btrfs-progs"),
        program("compsize", "btrfs-compsize"),
    ];
    pickfs_system::need::missing(&needs).first().map(ToString::to_string)
}

/// A small file system in memory, mounted in a laboratory until it is dropped.
pub struct SmallDisk {
    pub folder: PathBuf,
}

impl SmallDisk {
    /// `size` as mount(8) takes it of a tmpfs.
    pub fn new(lab: &Lab, size: &str) -> SmallDisk {
        let folder = lab.path("small");
        std::fs::create_dir(&folder).expect("a folder");
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "small", &folder.display().to_string()]);
        SmallDisk { folder }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}

/// A sparse file as a loop device, perhaps mounted; taken down in any case, also when a test
/// panics.
pub struct Loop {
    pub device: String,
    folder: tempfile::TempDir,
    mounted: bool,
}

impl Loop {
    /// A loop device of `bytes` bytes.
    pub fn new(bytes: u64) -> Loop {
        Loop::new_in(&std::env::temp_dir(), bytes)
    }

    fn new_in(folder: &Path, bytes: u64) -> Loop {
        let folder = tempfile::tempdir_in(folder).expect("a temporary folder");
        let image = folder.path().join("disk.img");
        std::fs::File::create(&image).expect("the image").set_len(bytes).expect("its size");
        let device = run(&["losetup", "--find", "--show", &image.display().to_string()]);
        Loop { device, folder, mounted: false }
    }

    /// With a btrfs, mounted.
    pub fn btrfs(folder: &Path, bytes: u64, mkfs: &[&str], options: &str) -> Loop {
        let mut made = Loop::new_in(folder, bytes);
        run(&[&["mkfs.btrfs", "-q"], mkfs, &[&made.device]].concat());
        made.mount(options);
        made
    }

    pub fn mount(&mut self, options: &str) {
        std::fs::create_dir_all(self.mount_point()).expect("the mount point");
        run(&["mount", "-o", options, &self.device, &self.mount_point().display().to_string()]);
        self.mounted = true;
    }

    pub fn unmount(&mut self) {
        assert!(self.is_unmounted(), "{} stays mounted", self.mount_point().display());
    }

    /// A program that another test starts has our open files until it is executed.
    fn is_unmounted(&mut self) -> bool {
        let place = self.mount_point();
        let unmount = |_| {
            let is_done = Command::new("umount").arg(&place).status().is_ok_and(|status| status.success());
            if !is_done {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_done
        };
        !std::mem::take(&mut self.mounted) || (0..100).any(unmount)
    }

    pub fn mount_point(&self) -> PathBuf {
        self.folder.path().join("mount")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.is_unmounted();
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

pub fn failed(cell: &FoldedCell) -> &str {
    match &cell.outcome {
        Some(Outcome::Failed(why)) => why,
        other => panic!("{} {} should have failed: {other:?}", cell.target, cell.work),
    }
}

fn lines_with(path: &str, word: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter(|line| line.contains(word)).map(String::from).collect()
}

fn loops_with(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backing = |path: PathBuf| std::fs::read_to_string(path.join("loop/backing_file")).ok();
    all.filter_map(|entry| backing(entry.path())).filter(|file| file.contains(word)).collect()
}

/// `key = value` of /proc/sys/vm, for comparing before and after; read while no run is under way,
/// as tests run in parallel and every run of root's sets them.
pub fn writeback_knobs() -> Vec<String> {
    let turn = std::fs::File::open("/run/pickfs.lock").ok();
    if let Some(turn) = &turn {
        rustix::fs::flock(turn, rustix::fs::FlockOperation::LockExclusive).expect("the turn");
    }
    let names = [
        "dirty_bytes",
        "dirty_background_bytes",
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_expire_centisecs",
        "dirty_writeback_centisecs",
    ];
    names
        .map(|name| {
            format!(
                "{name} {}",
                std::fs::read_to_string(Path::new("/proc/sys/vm").join(name)).unwrap_or_default().trim()
            )
        })
        .into()
}

/// Where the modules are that `crates/pickfs/tests/browser/package.json` names: fetched once by
/// each test file, below `target/`.
pub fn modules(of: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(of);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for name in ["package.json", "package-lock.json"] {
        let from =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("crates/pickfs/tests/browser").join(name);
        std::fs::copy(from, folder.join(name)).map_err(|error| error.to_string())?;
    }
    let said = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .output()
        .map_err(|error| error.to_string())?;
    let errors = String::from_utf8_lossy(&said.stderr);
    if said.status.success() { Ok(folder) } else { Err(format!("npm fetches no modules: {errors}")) }
}

/// Why there is nothing to look at pages with.
pub fn no_browser() -> Option<String> {
    let is_there =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|said| said.status.success());
    let missing: Vec<&str> = ["chromium", "node", "npm"].into_iter().filter(|program| !is_there(program)).collect();
    if !missing.is_empty() {
        return Some(format!("there is no {}: apt-get install chromium nodejs npm", missing.join(", ")));
    }
    modules("browser").err()
}

/// What a script of crates/pickfs/tests/browser prints.
#[track_caller]
pub fn node(script: &str, words: &[PathBuf]) -> String {
    let forgotten = tempfile::tempdir().expect("a folder");
    let said = Command::new("node")
        .arg(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("crates/pickfs/tests/browser").join(script))
        .args(words)
        .env("PICKFS_BROWSER_MODULES", modules("browser").expect("npm fetches what the test needs"))
        .env("PICKFS_CHROMIUM", "/usr/bin/chromium")
        // Chromium forgets some of what it makes there.
        .env("TMPDIR", forgotten.path())
        .output()
        .expect("node starts");
    let (out, errors) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{out}\n{errors}");
    out.into_owned()
}

/// Runs wait for each other, so a test waits this long for what one of them does. It is a limit, and
/// no test depends on it.
pub const PATIENCE: Duration = Duration::from_secs(1800);

/// Three short cells on ext4 in memory.
pub const SHORT_CELLS: &str = r#"
duplicate = false
backing = { memory = "64MiB" }
[[target]]
fs = "ext4"
[[work]]
workload = "meta.ok"
[stop]
rounds = 3
"#;

/// As [`SHORT_CELLS`], but cells last seconds: a test that sees one end can stop or cut the run
/// before the last.
pub fn long_cells() -> String {
    SHORT_CELLS.replace("[stop]", "count_for = \"3s\"\n[stop]")
}

/// Ends of cells in a journal, raw: a cell that ended twice would be seen.
pub fn ends(journal: &[u8]) -> Vec<String> {
    let records = journal.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    records.filter_map(|record| if let Record::End(end) = record { Some(end.cell) } else { None }).collect()
}

/// Each cell once, and none missing; the warm-up's is no cell of a round and not in the journal.
#[track_caller]
pub fn assert_each_once(journal: &Path, cells: usize) {
    let ends = ends(&std::fs::read(journal).expect("a journal"));
    assert_eq!((ends.len(), ends.iter().collect::<BTreeSet<_>>().len()), (cells, cells), "{ends:?}");
}
