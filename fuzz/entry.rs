//! What is fuzzed, and what must hold for any bytes: each function takes them and panics where
//! something is wrong. Called by the fuzzers in `fuzz_targets` and by
//! `crates/pickfs/tests/deep/fuzz.rs`, which needs no nightly compiler.

use pickfs::cli::catalogue;
use pickfs_core::journal::{Record, fold};
use pickfs_core::plan;
use pickfs_core::plan::{Catalogue, Chosen, Plan, Settings, from_toml};
use pickfs_core::protocol::{Answer, Request, Say};
use pickfs_disks::cuts::{Mode, Recording};
use pickfs_disks::{Disk, random_reads};
use pickfs_host::executor::sim::Calibration;
use pickfs_host::import::{File, ImportOptions, records};
use pickfs_host::wording::between_runs;
use pickfs_host::{analysis, import, render};
use pickfs_system::sys::{ptrace::Call, rings::memory_file};
use pickfs_target::stack::safety;
use pickfs_target::workload;
use pickfs_trace::record::{preload::Preload, program::Program, scope::Scope, world::Live};
use pickfs_trace::{Entry as TreeEntry, EntryKind, Header, Kind, Numbering, Op, Writer};
use pickfs_trees::profile::Profile;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub type Entry = fn(&[u8]);

/// Every entry, by the name of its fuzzer.
pub const ALL: &[(&str, Entry)] = &[
    ("calibration", calibration),
    ("devices", devices),
    ("disk-model", disk_model),
    ("import", import_any),
    ("job", job),
    ("journal", journal),
    ("plan", plan_text),
    ("profile", profile),
    ("protocol", protocol),
    ("recording", recording),
    ("rings", rings),
    ("strace", strace_log),
    ("trace", trace_file),
    ("trace-calls", trace_calls),
];

/// Any text as every foreign format: read, or refused, and what was read is shown by every format.
pub fn import_any(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for importer in import::ALL {
        let file = File { label: "fuzz", name: "fuzz", text: &text, round: None };
        let Ok(records) = records(&[file], ImportOptions { from: Some(importer.name()), rounds: false }) else {
            continue;
        };
        let touches = |record: &Record| matches!(record, Record::Step(_) | Record::Undone(_));
        assert!(!records.iter().any(touches), "an import says what is to be undone");
        let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let folded = fold(lines.join("\n").as_bytes()).unwrap();
        let Ok(model) = analysis::model(&folded) else { continue };
        for format in render::ALL {
            // The formats for other documents refuse a run.
            let _ = format.write(render::Document::Run(&model), &Default::default(), &mut std::io::sink());
        }
    }
}

/// Any text as a journal: folded, judged, shown by every format, and compared with itself.
pub fn journal(data: &[u8]) {
    let folded = fold(data).unwrap();
    let Ok(model) = analysis::model(&folded) else { return };
    for format in render::ALL {
        let _ = format.write(render::Document::Run(&model), &Default::default(), &mut std::io::sink());
    }
    let Some(run) = &folded.run else { return };
    let differs = !between_runs::differences((run, &folded), (run, &folded)).is_empty();
    // A plan that was read has targets and works, each with its own name; a damaged journal may
    // have anything.
    let names =
        [run.plan.targets.iter().map(|one| &one.name).collect(), run.plan.works.iter().map(|one| &one.name).collect()];
    let is_plan = names
        .iter()
        .all(|names: &Vec<_>| !names.is_empty() && names.iter().collect::<BTreeSet<_>>().len() == names.len());
    assert!(!differs || !is_plan);
    let accepted = analysis::Accepted { threshold: 0.05, scatter: None };
    between_runs::comparison(&[(run, &folded)], &[(run, &folded)], (run, &folded), accepted);
}

/// Any text as a job file of fio: an option that reaches beyond the target is seen, however it is
/// written.
pub fn job(data: &[u8]) {
    const BEYOND: [&str; 5] = ["directory", "exec_prerun", "exec_postrun", "include", "ioscheduler"];
    let folder = Path::new("/dev/shm").join(format!("pickfs-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("job.fio");
    std::fs::write(&path, data).unwrap();
    let settings = Settings([("job".to_string(), path.display().to_string().into())].into());
    let fio = workload::find("fio").unwrap();
    let refused = !fio.objections(&settings).is_empty();
    fio.phases(&settings);
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(data);
    let keys = text.lines().filter_map(|line| line.split('=').next().map(str::trim));
    let beyond = keys.into_iter().find(|key| BEYOND.contains(key));
    assert!(refused || beyond.is_none(), "{beyond:?} is let through");
}

/// Four texts with NUL between them as what lsblk, lsblk for the parents, wipefs and the kernel say
/// of a device: what cannot be read is never safe to erase.
pub fn devices(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parts: Vec<&str> = text.splitn(4, '\0').chain([""; 4]).collect();
    let users = safety::Users { swaps: parts[3].to_string(), ..safety::Users::default() };
    let found = safety::refusals(parts[0], parts[1], parts[2], &users, &[]);
    safety::identity(parts[0]);
    safety::paths(parts[0]);
    let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    assert!(!found.is_empty() || parts[..3].iter().all(|text| is_json(text)));
    let swapped = safety::paths(parts[0]).into_iter().next();
    let listed = swapped.is_some_and(|path| parts[3].lines().any(|line| line.split_whitespace().next() == Some(&path)));
    assert!(!found.is_empty() || !listed, "swap is erased");
}

/// Any text as a plan: read, or refused with complaints that can be shown.
pub fn plan_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut known: Catalogue = catalogue::catalogue();
    // This machine is asked nothing.
    let entries = known.backings.iter_mut().chain(&mut known.workloads).chain(&mut known.layers);
    entries.chain(&mut known.executors).for_each(|entry| entry.objections = |_, _| Vec::new());
    match from_toml(&text, "fuzz.toml", Path::new("/nowhere"), &known) {
        Ok(plan) => {
            assert_eq!(plan.out_of_range(), None);
            let written = serde_json::to_string(&plan).unwrap();
            assert_eq!(serde_json::from_str::<Plan>(&written).unwrap(), plan);
            plan::expand(&Plan { stop: plan::Stop { rounds: Some(1), ..plan.stop }, ..plan });
        }
        Err(complaints) => {
            assert!(!complaints.is_empty());
            plan::render(&text, "fuzz.toml", &complaints, false);
        }
    }
}

/// Any text as what host and agent say: refused, or the same when it is written again.
pub fn protocol(data: &[u8]) {
    // serde_json reads the last digit of a long number only nearly.
    fn words(said: &impl std::fmt::Debug) -> String {
        format!("{said:?}").chars().filter(|c| !c.is_ascii_digit()).collect()
    }
    fn again<T: serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) {
        let Ok(said) = serde_json::from_str::<T>(text) else { return };
        let again: T = serde_json::from_str(&serde_json::to_string(&said).unwrap()).unwrap();
        assert_eq!(words(&again), words(&said));
    }
    for line in String::from_utf8_lossy(data).lines() {
        again::<Say>(line);
        again::<Answer>(line);
        again::<Request>(line);
        again::<Record>(line);
        again::<Chosen>(line);
    }
}

/// Any bytes as a trace: refused with the place, or read, and what is written of it is the same.
pub fn trace_file(data: &[u8]) {
    match pickfs_trace::read(data) {
        Err(error) => assert!(!format!("{error:#}").is_empty()),
        Ok(found) => {
            let again = pickfs_trace::read(&pickfs_trace::cut(&found, usize::MAX).unwrap()).unwrap();
            assert_eq!((again.ops, again.tree, again.paths), (found.ops, found.tree, found.paths));
        }
    }
}

/// Any text as a log of strace: refused with its line, or a trace that can be read.
pub fn strace_log(data: &[u8]) {
    match pickfs_trace::record::strace::import(&String::from_utf8_lossy(data), &[b"/w".to_vec()]) {
        Err(error) => assert!(!format!("{error:#}").is_empty()),
        Ok(bytes) => drop(pickfs_trace::read(&bytes).unwrap()),
    }
}

/// Any bytes as calls of a trace, twelve numbers each: what the reader lets through can be
/// replayed, and changes nothing outside of its folder.
pub fn trace_calls(data: &[u8]) {
    let mut numbering = Numbering::default();
    let root = numbering.root(0);
    let mut paths = vec![root];
    for name in [&b"a"[..], b"b", b"some_name", b"d", b"e"] {
        paths.extend([root, paths[paths.len() / 2]].iter().filter_map(|above| numbering.below(*above, name)));
    }
    let tree = [
        (0, EntryKind::Directory),
        (1, EntryKind::Directory),
        (3, EntryKind::File { bytes: 5000, class: 1 }),
        (5, EntryKind::Link { to: None }),
    ]
    .map(|(path, what)| TreeEntry { path: paths[path], what });
    let (mut writer, mut opened) = (Writer::default(), 0);
    for bytes in data.chunks_exact(12).take(64) {
        let number = |at: usize| u32::from(bytes[at]);
        let mut op = Op {
            thread: number(1) % 3,
            began: number(2),
            object: number(3) % (opened + 1),
            path: number(4) % (paths.len() as u32 + 1),
            other: number(5) % 8,
            offset: u64::from(number(6)) << (bytes[7] % 24),
            length: u64::from(number(8)) << (bytes[9] % 12),
            flags: u64::from(number(10)) << (bytes[11] % 20),
            result: if bytes[11] > 200 { -i64::from(bytes[10]) } else { i64::from(bytes[8]) },
            ..Op::new(Kind::ALL[bytes[0] as usize % Kind::ALL.len()])
        };
        if op.kind == Kind::Open {
            op.object = if op.result >= 0 { opened + 1 } else { 0 };
            opened += u32::from(op.result >= 0);
        }
        writer.push(op);
    }
    let header = Header { schema: pickfs_trace::SCHEMA, roots: 1, threads: 3, ..Header::default() };
    let Ok(found) = pickfs_trace::read(&writer.finish(&header, &numbering.paths, &tree).unwrap()) else { return };
    let folder = Path::new("/dev/shm").join(format!("pickfs-fuzz-trace-{}", std::process::id()));
    let inside = folder.join("inside");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(folder.join("a"), b"outside").unwrap();
    workload::trace::play_in(&inside, &found, 0.0).unwrap();
    let mut left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    let kept = std::fs::read(folder.join("a")).unwrap() == b"outside";
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(kept && left == ["a", "inside"], "{left:?}");
}

/// Any text as what `pickfs sim calibrate` has written.
pub fn calibration(data: &[u8]) {
    if let Ok(found) = Calibration::parse(&String::from_utf8_lossy(data)) {
        found.processor();
    }
}

/// Any text as the model of a disk: refused with a reason, or a disk that answers.
pub fn disk_model(data: &[u8]) {
    match Disk::parse(&String::from_utf8_lossy(data)) {
        Err(error) => assert!(!format!("{error:#}").is_empty()),
        Ok(disk) => {
            disk.described();
            let found = random_reads(&disk, 1 << 12, 1, 20, 1).unwrap();
            assert!(found.mean_ns >= 0.0);
        }
    }
}

/// Any text as the profile of a tree: refused, or the same when it is written again.
pub fn profile(data: &[u8]) {
    let Ok(found) = Profile::parse(&String::from_utf8_lossy(data)) else { return };
    found.files();
    found.bytes();
    let written = found.to_toml().unwrap();
    assert_eq!(Profile::parse(&written).unwrap().to_toml().unwrap(), written);
}

/// Any bytes as what a disk was given: refused, or writes that have a place.
pub fn recording(data: &[u8]) {
    let file = memory_file(c"pickfs-fuzz-recording").unwrap();
    file.write_all_at(data, 0).unwrap();
    let Ok(found) = Recording::read(&file) else { return };
    let has_place = |write: &pickfs_disks::cuts::Write| write.first.checked_add(write.sectors).is_some();
    assert!(found.writes.len() <= data.len() / 64 && found.writes.iter().all(has_place));
    Recording::places(&file, found.used).unwrap();
    Recording::go_on(&file, found.used, Mode::All).unwrap();
}

/// Where the rings' memory has the counter of calls, and the first ring; of that its head and its
/// bytes.
const COUNTER: u64 = 0;
const RING: u64 = 4096;
const HEAD: u64 = RING + 16;
const BYTES: u64 = RING + 4096;

/// Gives records of damaged bytes sizes that a ring can have, and places in the order; how many
/// there are.
fn repaired(bytes: &mut Vec<u8>) -> u64 {
    let (mut at, mut order) = (0, 0_u64);
    while at + 160 <= bytes.len() {
        let left = (bytes.len() - at) as u32 / 8 * 8;
        let given = u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let size = if (160..=left).contains(&given) { given / 8 * 8 } else { left.min(160) };
        order += 1;
        bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&order.to_le_bytes());
        at += size as usize;
    }
    bytes.truncate(at);
    order
}

/// The counter, the ring's head, and the bytes of a ring as a recorded program writes them into the
/// recorder's memory: refused, or calls whose trace can be read. Of an even length, only what the
/// calls are is damaged.
pub fn rings(data: &[u8]) {
    let (numbers, bytes) = data.split_at(data.len().min(16));
    let (mut numbers, mut bytes) = (numbers.to_vec(), bytes[..bytes.len().min(256 << 10)].to_vec());
    if data.len() % 2 == 0 {
        let count = repaired(&mut bytes);
        numbers = [count, bytes.len() as u64].map(u64::to_le_bytes).concat();
    }
    let (counter, head) = numbers.split_at(numbers.len().min(8));
    let Some(mut preload) = Preload::new(None).unwrap() else { return };
    let memory = std::fs::File::options().write(true).open(preload.memory()).unwrap();
    let put = |at, bytes: &[u8]| memory.write_all_at(bytes, at).unwrap();
    put(RING, &1_u32.to_le_bytes());
    let tid = std::process::id() as i32;
    let hello = Call { number: libc::SYS_close, arguments: [-1_000_000_i64 as u64, 0, 0, 0, 0, 0] };
    preload.on_preload_hello(tid, &hello).unwrap();
    put(BYTES, &bytes);
    put(HEAD, head);
    put(COUNTER, counter);
    let (mut scope, live) = (Scope::of_log(&[b"/nowhere".to_vec()]), Live::new());
    let mut program = Program::new(&mut scope, &live);
    program.first(tid, tid);
    program.begin();
    let took = preload.drain(|made| program.take(made, &live)).and_then(|()| preload.ended(tid));
    program.ended(tid);
    let seen = program.finish();
    if took.is_ok() {
        let header =
            Header { schema: pickfs_trace::SCHEMA, roots: 1, threads: seen.counts.threads, ..Header::default() };
        pickfs_trace::read(&seen.writer.finish(&header, &scope.numbering.paths, &[]).unwrap()).unwrap();
    }
}
