//! Reports scale: a journal of a million samples folds, is judged and rendered as text and as a
//! page within limits of time, memory and size. Prints them with their limits, and keeps the page
//! with `-- --page=FILE`; exit code 1 if one is exceeded. `cargo bench --bench report`.

use pickfs_core::journal::{Begin, End, Outcome, Record, Run, SCHEMA, Sample, fold_file};
use pickfs_core::plan::{Plan, Target, Work};
use pickfs_host::analysis;
use pickfs_host::render::{self, Document, Options};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

const TARGETS: u32 = 5;
const ROUNDS: u32 = 1000;
const PHASES: [&str; 5] = ["write", "tar-read", "copy-read", "rewrite", "remove"];
const METRICS: usize = 40;

const TIME_LIMIT: Duration = Duration::from_secs(2);
const MEMORY_LIMIT: u64 = 300 << 20;
const PAGE_LIMIT: usize = 3 << 20;

/// Metrics that are judged or shown; the rest of the forty are pressure figures.
const NAMES: [&str; 20] = [
    "time_ns",
    "returned_ns",
    "durable_ns",
    "after_ns",
    "after_write_bytes",
    "work_bytes",
    "work_files",
    "cpu_system_wide_ns",
    "cpu_workload_ns",
    "foreign_cpu_ns",
    "device_read_bytes",
    "device_write_bytes",
    "device_read_requests",
    "device_write_requests",
    "device_flushes",
    "peak_read_bytes_per_second",
    "peak_write_bytes_per_second",
    "space_used_bytes",
    "space_allocated_bytes",
    "space_apparent_bytes",
];

fn main() -> std::process::ExitCode {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    write_journal(file.path()).expect("the journal can be written");
    let begun = Instant::now();
    let folded = fold_file(file.path()).expect("the journal folds");
    let folding = begun.elapsed();
    let model = analysis::model(&folded).expect("the journal is judged");
    let judging = begun.elapsed() - folding;
    let shown =
        |format: &str| render::written(format, Document::Run(&model), &Options::default()).expect("it is shown");
    let (_, page) = (shown("text"), shown("html"));
    let (all, peak) = (begun.elapsed(), peak_memory());
    println!("{} samples: fold {folding:.2?}, judge {judging:.2?}, all {all:.2?} (limit {TIME_LIMIT:?})", samples());
    println!("the page has {} KiB (limit {} KiB)", page.len() >> 10, PAGE_LIMIT >> 10);
    println!("peak memory {} MiB (limit {} MiB)", peak >> 20, MEMORY_LIMIT >> 20);
    println!("{}", model.headlines().join("\n"));
    if let Some(path) = std::env::args().find_map(|word| word.strip_prefix("--page=").map(String::from)) {
        std::fs::write(path, &page).expect("the page can be written");
    }
    if all > TIME_LIMIT || peak > MEMORY_LIMIT || page.len() > PAGE_LIMIT {
        return std::process::ExitCode::FAILURE;
    }
    std::process::ExitCode::SUCCESS
}

fn samples() -> usize {
    (TARGETS * ROUNDS) as usize * PHASES.len() * METRICS
}

fn write_journal(path: &std::path::Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    let names = (0..TARGETS).map(|target| Target { name: format!("target {target}"), ..Target::default() });
    let works = vec![Work { name: "tree".into(), ..Work::default() }];
    let mut plan = Plan { title: "A million samples".into(), targets: names.collect(), works, ..Plan::default() };
    plan.stop.rounds = Some(ROUNDS);
    put(&mut out, &Record::Run(Box::new(Run { schema: SCHEMA, plan, ..Run::default() })))?;
    let metrics: Vec<String> = (0..METRICS).map(metric).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for round in 1..=ROUNDS {
        for target in 0..TARGETS {
            write_cell(&mut out, round, target, &metrics, &mut random)?;
        }
    }
    out.flush()
}

fn metric(number: usize) -> String {
    NAMES.get(number).map_or_else(|| format!("pressure_io_{number}_ns"), |name| name.to_string())
}

fn write_cell(
    out: &mut impl Write,
    round: u32,
    target: u32,
    metrics: &[String],
    random: &mut Xoshiro256PlusPlus,
) -> std::io::Result<()> {
    let (cell, target_name) = (format!("{:016x}", target * 1_000_000 + round), format!("target {target}"));
    let begin = Begin { cell: cell.clone(), round, target: target_name, work: "tree".into(), at: String::new() };
    put(out, &Record::Begin(begin))?;
    for phase in PHASES {
        for metric in metrics {
            let noise = 1.0 + 0.05 * (random.next_u64() as f64 / u64::MAX as f64);
            let value = (1e9 * noise * (1.0 + 0.02 * f64::from(target))).round();
            let sample = Sample { cell: cell.clone(), phase: phase.into(), metric: metric.clone(), value };
            put(out, &Record::Sample(sample))?;
        }
    }
    put(out, &Record::End(End { cell, outcome: Outcome::Done, at: String::new() }))
}

fn put(out: &mut impl Write, record: &Record) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

/// Bytes; what writing the journal took is in it, which is little.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
