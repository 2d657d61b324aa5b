//! Another machine, booted from the disks of a guest: process 1 until the system on the disk takes
//! over, and the service that reports when that is ready.
//!
//! The service, its program and its data lie in memory under /run, so nothing of pickfs is in the
//! system. The service is started when systemd has reached the unit that counts as ready, and takes
//! its times from systemd, so its own cost is in none of them.

use super::{LOWER, PATH, become_root, mount_lower, mount_new, name_disk, own_program, port, serial_of};
use crate::executor::vm::names::{BY_SERIAL, MOST_DISKS, TARGET_DISK, Word, how, target_disk};
use anyhow::{Context, Result, ensure};
use pickfs_core::protocol::{Boot, Booted};
use pickfs_system::process::last_words;
use pickfs_system::sys::clock::monotonic;
use rustix::mount::{mount_bind, mount_bind_recursive, mount_move};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// For the disk to appear.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where the new root is put together.
const NEXT: &str = "/next";
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// This program, seen from the system.
const PROGRAM: &str = "/run/pickfs";
const NOTES: &str = "/run/pickfs.json";
const UNITS: &str = "/run/systemd/system";
const SERVICE: &str = "pickfs-ready.service";
const SECTOR: u64 = 512;

/// What the service must know.
#[derive(Serialize, Deserialize)]
struct Notes {
    ready: String,
    booted: Booted,
}

/// Never returns where all goes well: the system's own init is process 1 then. `root` is the disk
/// with the guest's programs, `began_ns` when we began by the kernel's clock.
pub(super) fn become_system(root: &Path, began_ns: u64) -> Result<()> {
    let wanted = first_words(began_ns)?;
    mount_lower(root)?;
    let mut booted = Booted { kernel_ns: began_ns, ..Booted::default() };
    in_lower(|| {
        // One that is built in is not found.
        let _ = Command::new("modprobe").args(["-q", "-a"]).args(&wanted.modules).env("PATH", PATH).status();
        booted.modules_ns = monotonic();
        wanted.layers.iter().try_for_each(|layer| run(&layer.words, &layer.key))?;
        booted.opened_ns = monotonic();
        std::fs::create_dir_all(&wanted.mount_point).context("cannot make a mount point")?;
        run(&wanted.mount, &[])
    })?;
    booted.mounted_ns = monotonic();
    enter(&wanted, booted)?;
    // With nothing of ours in its environment.
    let error = Command::new("/sbin/init").env_clear().exec();
    Err(error).context("cannot start /sbin/init of the system on the disk")
}

/// The port is free again then, for the service.
fn first_words(began_ns: u64) -> Result<Boot> {
    let mut port = port()?;
    say(&mut port, &Word::Started { at_ns: monotonic().max(began_ns) })?;
    let mut line = String::new();
    BufReader::new(&port).read_line(&mut line).context("the host did not send what to boot")?;
    serde_json::from_str(&line).context("the host's message on what to boot cannot be read; is it the same pickfs?")
}

fn say(port: &mut File, word: &Word) -> Result<()> {
    port.write_all((serde_json::to_string(word)? + "\n").as_bytes()).context("cannot speak to the host")
}

/// Among the guest's programs, with the kernel's file systems in sight.
fn in_lower(work: impl FnOnce() -> Result<()>) -> Result<()> {
    disks()?;
    for folder in KERNELS {
        mount_bind_recursive(folder, format!("{LOWER}{folder}"))
            .with_context(|| format!("cannot show {folder} to the guest's programs"))?;
    }
    // The guest's disk is read-only, and cryptsetup and LVM keep locks in /run.
    mount_new("tmpfs", &format!("{LOWER}/run"), "mode=755")?;
    std::fs::create_dir(format!("{LOWER}/run/lock"))?;
    let before = File::open("/")?;
    std::env::set_current_dir(LOWER)?;
    rustix::process::chroot(".").context("cannot enter the guest's programs")?;
    let worked = work();
    rustix::process::fchdir(&before)?;
    rustix::process::chroot(".").context("cannot leave the guest's programs")?;
    worked
}

/// All names that a mount may ask for; the first is waited for.
fn disks() -> Result<()> {
    let begun = Instant::now();
    while !Path::new(BY_SERIAL).join(TARGET_DISK).exists() {
        ensure!(begun.elapsed() < PATIENCE, "there is no disk to boot from");
        name_disk(TARGET_DISK)?;
    }
    (1..MOST_DISKS).try_for_each(|index| name_disk(&target_disk(index)))
}

/// `input` is short enough for a pipe to hold it.
fn run(words: &[String], input: &[u8]) -> Result<()> {
    let (program, arguments) = words.split_first().context("no program opens or mounts the disk")?;
    let mut command = Command::new(program);
    // No udev runs yet, to which libdevmapper would leave the nodes.
    command
        .args(arguments)
        .env("PATH", PATH)
        .env("DM_DISABLE_UDEV", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
    child.stdin.take().context("no pipe")?.write_all(input).with_context(|| format!("{program} reads nothing"))?;
    let out = child.wait_with_output().with_context(|| format!("cannot wait for {program}"))?;
    let shown = words.join(" ");
    ensure!(out.status.success(), "`{shown}` ended {}: {}", how(out.status), last_words(&out.stderr));
    Ok(())
}

/// The folder on the disk becomes the root; the service lies in memory.
fn enter(wanted: &Boot, booted: Booted) -> Result<()> {
    std::fs::create_dir_all(NEXT)?;
    let mounted = format!("{LOWER}{}", wanted.mount_point.display());
    mount_bind(Path::new(&mounted).join(&wanted.folder), NEXT)
        .context("cannot make the folder on the disk the root")?;
    mount_new("tmpfs", &format!("{NEXT}/run"), "mode=755")?;
    let program = format!("{NEXT}{PROGRAM}");
    std::fs::create_dir(&program)?;
    mount_bind("/agent", &program).context("cannot keep our own program")?;
    let units = format!("{NEXT}{UNITS}");
    let wants = format!("{units}/{}.wants", wanted.ready);
    std::fs::create_dir_all(&wants)?;
    std::fs::write(format!("{units}/{SERVICE}"), service(&wanted.ready, Path::new("/agent/loader").exists()))?;
    std::os::unix::fs::symlink(format!("{UNITS}/{SERVICE}"), format!("{wants}/{SERVICE}"))?;
    let notes = serde_json::to_string(&Notes { ready: wanted.ready.clone(), booted })?;
    std::fs::write(format!("{NEXT}{NOTES}"), notes)?;
    for folder in KERNELS {
        mount_move(folder, format!("{NEXT}{folder}")).with_context(|| format!("cannot move {folder}"))?;
    }
    std::env::set_current_dir(NEXT)?;
    become_root()
}

/// Ordered behind the unit that wants it, which systemd then does not wait for.
fn service(ready: &str, has_loader: bool) -> String {
    format!(
        "[Unit]\nDescription=Tell the host that the system is ready\nAfter={ready}\n\
         [Service]\nType=oneshot\nExecStart={} agent --tell-ready\nStandardError=journal+console\n",
        own_program(PROGRAM, has_loader).join(" ")
    )
}

/// The service. Errors go to the console, whose last lines the host shows; the machine is switched
/// off either way.
pub fn main() -> ExitCode {
    let result = tell();
    if let Err(error) = &result {
        eprintln!("pickfs init: {error:#}");
    }
    let off = systemctl(&["poweroff", "--no-block"]);
    if let Err(error) = &off {
        eprintln!("pickfs init: {error:#}");
    }
    if result.is_ok() && off.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell() -> Result<()> {
    // First, as what follows reads as well.
    let (read_bytes, write_bytes) = moved()?;
    let Notes { ready, booted } = serde_json::from_str(&std::fs::read_to_string(NOTES)?)?;
    let listed = systemctl(&["list-units", "--failed", "--plain", "--no-legend", "--no-pager"])?;
    let failed = listed.lines().filter_map(|line| line.split_whitespace().next().map(String::from)).collect();
    let booted = Booted {
        init_ns: moment("UserspaceTimestampMonotonic", None)?,
        ready_ns: moment("ActiveEnterTimestampMonotonic", Some(&ready))?,
        read_bytes,
        write_bytes,
        failed,
        ..booted
    };
    say(&mut port()?, &Word::Ready { at_ns: monotonic(), booted: Box::new(booted) })
}

/// A time that systemd reports, in nanoseconds by the kernel's monotonic clock.
fn moment(property: &str, unit: Option<&str>) -> Result<u64> {
    let output = systemctl(&[&["show", "--value", "--property", property][..], unit.as_slice()].concat())?;
    let microseconds: u64 = output.trim().parse().with_context(|| format!("{property} is `{}`", output.trim()))?;
    ensure!(microseconds > 0, "{property} of {} is not set", unit.unwrap_or("systemd"));
    Ok(microseconds * 1000)
}

fn systemctl(words: &[&str]) -> Result<String> {
    let out = Command::new("systemctl").args(words).output().context("cannot run systemctl")?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "`systemctl {}` ended {}: {}", words.join(" "), how(out.status), said.trim());
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Bytes that the disks under test have read and written.
fn moved() -> Result<(u64, u64)> {
    let mut sum = (0, 0);
    for entry in std::fs::read_dir("/sys/block").context("cannot list /sys/block")? {
        let block = entry?.path();
        if serial_of(&block).is_some_and(|serial| serial.starts_with(TARGET_DISK)) {
            let (read, written) = sectors(&std::fs::read_to_string(block.join("stat"))?)
                .with_context(|| format!("cannot read the counters of {}", block.display()))?;
            sum = (sum.0 + read * SECTOR, sum.1 + written * SECTOR);
        }
    }
    Ok(sum)
}

/// Read and written (Linux, Documentation/block/stat.rst).
fn sectors(stat: &str) -> Option<(u64, u64)> {
    let numbers: Vec<u64> = stat.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some((*numbers.get(2)?, *numbers.get(6)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_places() {
        let stat = "    1523      201    98304      412      120        7     2048       33        0      300      445";
        assert_eq!(sectors(stat), Some((98304, 2048)));
        assert_eq!((sectors(""), sectors("1 2 3 4")), (None, None));
    }

    #[test]
    fn the_service_comes_after_what_wants_it() {
        let text = service("multi-user.target", true);
        assert!(text.contains("\nAfter=multi-user.target\n"), "{text}");
        let start =
            "\nExecStart=/run/pickfs/loader --library-path /run/pickfs/lib /run/pickfs/start agent --tell-ready\n";
        assert!(text.contains(start), "{text}");
        assert!(service("a.target", false).contains("\nExecStart=/run/pickfs/start agent --tell-ready\n"));
    }
}
