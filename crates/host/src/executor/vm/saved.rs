//! A guest that has booted, saved in a file, for cells that go on from there: an emulated processor
//! takes half a minute to boot.
//!
//! The guest waits on its port before it has read anything of its cell. Its disks are empty files
//! of the same sizes meanwhile. QEMU writes and reads the state by a socket: it may start no
//! program, and a file of a state has a name only since QEMU 8.2.

use super::boot::{BOOT_PATIENCE, connect, end};
use super::build::Guest;
use super::kept::{self, Alike};
use super::monitor::Monitor;
use super::names::{ENTROPY, WAITING};
use super::qemu::{self, Disk, Start};
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use pickfs_core::protocol::Connection;
use pickfs_system::process::check_stop;
use pickfs_system::sys::block;
use procfs::Current;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes a second; QEMU's default is made for networks.
const NO_LIMIT: u64 = 1 << 40;
/// From one look at QEMU or at the console to the next.
const TICK: Duration = Duration::from_millis(20);
/// For a state that is written, or read.
const PATIENCE: Duration = Duration::from_secs(120);

/// The state of a machine like this one that has booted.
pub(crate) fn find_or_make(guest: &Guest, machine: &qemu::Machine, folder: &Path, run: &str) -> Result<PathBuf> {
    let sizes = machine.disks.iter().map(|disk| size(&disk.file)).collect::<Result<Vec<_>>>()?;
    let caches: Vec<&str> = machine.disks.iter().map(cache_of_blank).collect();
    let qemu::Machine { memory_bytes, processors, bus, other_disk, kernel_words, .. } = machine;
    let words = format!(
        "{} {memory_bytes} {processors} {bus:?} {sizes:?} {caches:?} {other_disk:?} {kernel_words}",
        processor(machine)
    );
    // What the run has brought along is there when it boots.
    let is_lasting = machine.data.is_none() && other_disk.is_none();
    let alike = Alike { guest, initramfs: &machine.initramfs, words, is_lasting };
    kept::find_or_make(&alike, folder, |file| fill(guest, machine, folder, file, run))
}

/// A kernel that has booted has made itself fit for its processor: for the emulated one, or for
/// this host's.
fn processor(machine: &qemu::Machine) -> String {
    let of_host = || {
        let all = procfs::CpuInfo::current().ok()?;
        Some(format!("{} {:?}", all.model_name(0)?, all.flags(0)?))
    };
    let host = if machine.accelerator == "tcg" { None } else { of_host() };
    format!("{} {}", machine.accelerator, host.unwrap_or_default())
}

/// Saves such a machine with empty disks into the file.
fn fill(guest: &Guest, machine: &qemu::Machine, folder: &Path, file: &Path, run: &str) -> Result<()> {
    let sizes = machine.disks.iter().map(|disk| size(&disk.file)).collect::<Result<Vec<_>>>()?;
    let caches = machine.disks.iter().map(cache_of_blank);
    let memory_bytes = machine.memory_bytes;
    let free = procfs::Meminfo::current().ok().and_then(|memory| memory.mem_available).unwrap_or(u64::MAX);
    ensure!(free > 2 * memory_bytes, "too little memory is free to keep the state of a guest");
    let blanks: Vec<PathBuf> = (0..sizes.len()).map(|index| folder.join(format!("blank-{index}"))).collect();
    for (blank, bytes) in blanks.iter().zip(&sizes) {
        File::create(blank).and_then(|blank| blank.set_len(*bytes)).context("cannot make an empty disk")?;
    }
    let disks = blanks.iter().zip(caches).map(|(file, cache)| Disk { file: file.clone(), cache: cache.into() });
    let monitor = folder.join("monitor");
    let machine = qemu::Machine {
        disks: disks.collect(),
        console: folder.join("console-saved"),
        start: Start::ToBeSaved(monitor.clone()),
        ..machine.clone()
    };
    let made = make(guest, &machine, &monitor, file, run);
    [&blanks[..], &[monitor, machine.console]].concat().iter().for_each(|file| drop(std::fs::remove_file(file)));
    made
}

/// As the disk of the cell shows its write cache to the guest. There is nothing to keep, so nothing
/// is flushed.
fn cache_of_blank(disk: &Disk) -> &'static str {
    if ["writethrough", "directsync"].contains(&disk.cache.as_str()) { "writethrough" } else { "unsafe" }
}

fn size(disk: &Path) -> Result<u64> {
    let found = disk.metadata().with_context(|| format!("there is no {}", disk.display()))?;
    let is_device = found.file_type().is_block_device();
    let bytes = if is_device { block::size_of_device(disk) } else { Ok(found.len()) };
    bytes.with_context(|| format!("cannot read the size of {}", disk.display()))
}

fn make(guest: &Guest, machine: &qemu::Machine, monitor: &Path, file: &Path, run: &str) -> Result<()> {
    let (mut connection, console) = connect(guest, machine, run, "")?;
    let save = |emulator: &mut Child| {
        let mut monitor = Monitor::connect(monitor, emulator)?;
        wait(BOOT_PATIENCE, || Ok(console.has_said(WAITING) || emulator.try_wait()?.is_some()))?;
        ensure!(console.has_said(WAITING), "QEMU has ended");
        write(&mut monitor, file)?;
        monitor.ask("quit", json!({}))
    };
    let saved = save(&mut connection.child);
    end(saved, connection, || console).map(drop)
}

fn write(monitor: &mut Monitor, file: &Path) -> Result<()> {
    let socket = file.with_extension("socket");
    // One that an earlier attempt has left cannot be bound to.
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).with_context(|| format!("cannot listen at {}", socket.display()))?;
    let mut state = File::create(file).context("cannot make the file of the guest's state")?;
    let writer = thread::spawn(move || io::copy(&mut listener.accept()?.0, &mut state));
    // QEMU stops it for the last pages. One that was stopped before would stay so when it is to go
    // on.
    monitor.ask("migrate-set-parameters", json!({ "max-bandwidth": NO_LIMIT }))?;
    monitor.ask("migrate", json!({ "uri": format!("unix:{}", socket.display()) }))?;
    wait(PATIENCE, || {
        let found = monitor.ask("query-migrate", json!({}))?;
        match found["status"].as_str().unwrap_or_default() {
            "completed" => Ok(true),
            "failed" | "cancelled" => {
                bail!("QEMU cannot save it: {}", found["error-desc"].as_str().unwrap_or("no reason"))
            }
            _ => Ok(false),
        }
    })?;
    let _ = std::fs::remove_file(&socket);
    let written = writer.join().map_err(|_| anyhow!("the state's writer panicked"))?;
    written.map(drop).context("cannot write the guest's state")
}

/// Sends QEMU the state. It goes on from there as soon as it has read it.
pub(crate) fn go_on(state: &Path, socket: &Path, emulator: &mut Connection) -> Result<()> {
    let mut file = File::open(state).context("the guest's state is gone")?;
    let mut stream = None;
    wait(PATIENCE, || {
        stream = UnixStream::connect(socket).ok();
        Ok(stream.is_some() || emulator.child.try_wait()?.is_some())
    })?;
    let _ = std::fs::remove_file(socket);
    let mut stream = stream.context("QEMU has ended")?;
    io::copy(&mut file, &mut stream).map(drop).map_err(Error::from).context("QEMU does not take the guest's state")
}

/// What a guest waits for: its own random bytes, so that no two that go on from one state make the
/// same choices.
pub(crate) fn word_to_go_on() -> Result<String> {
    let mut bytes = [0; ENTROPY];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).context("no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
}

fn wait(patience: Duration, mut is_over: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_over()? {
        ensure!(begun.elapsed() < patience, "nothing came of it within {} s", patience.as_secs());
        check_stop()?;
        thread::sleep(TICK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_disk_has_the_write_cache_of_the_one_that_it_stands_for() {
        let rows = [
            ("none", "unsafe"),
            ("writeback", "unsafe"),
            ("writethrough", "writethrough"),
            ("directsync", "writethrough"),
        ];
        for (cache, wanted) in rows {
            assert_eq!(cache_of_blank(&Disk { file: "disk".into(), cache: cache.into() }), wanted, "{cache}");
        }
    }

    #[test]
    fn a_state_is_sent_whole_and_an_emulator_that_has_ended_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [state, socket] = ["state", "socket"].map(|name| folder.path().join(name));
        std::fs::write(&state, vec![7; 3 << 20]).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let reader = thread::spawn(move || io::copy(&mut listener.accept().unwrap().0, &mut io::sink()).unwrap());
        let mut sleeper = Connection::open(std::process::Command::new("sleep").arg("60")).unwrap();
        go_on(&state, &socket, &mut sleeper).unwrap();
        assert_eq!(reader.join().unwrap(), 3 << 20);
        let mut ended = Connection::open(&mut std::process::Command::new("true")).unwrap();
        ended.child.wait().unwrap();
        let error = go_on(&state, &socket, &mut ended).unwrap_err().to_string();
        assert_eq!(error, "QEMU has ended");
    }
}
