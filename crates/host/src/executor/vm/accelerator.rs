//! Whether KVM truly works here: a `/dev/kvm` that is there may still hang a kernel, so one is
//! booted.

use super::build::{Guest, folder};
use super::initramfs;
use super::names::{ALIVE, PROBE_WORD};
use super::qemu::{self, Bus, Disk, Machine, Start};
use anyhow::{Context, Result};
use pickfs_core::journal::GuestProcessor;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A kernel under KVM says its word within a second or two.
const PATIENCE: Duration = Duration::from_secs(20);
const DEVICE: &str = "/dev/kvm";
/// Most bytes of the console; a kernel writes some ten KiB before its first program runs.
const MOST_SAID: u64 = 1 << 20;

/// What a guest's processor is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accelerator {
    /// `kvm` or `tcg`.
    pub name: &'static str,
    pub why: String,
}

impl Accelerator {
    fn tcg(why: impl Into<String>) -> Accelerator {
        Accelerator { name: "tcg", why: why.into() }
    }

    fn kvm() -> Accelerator {
        Accelerator { name: "kvm", why: "a kernel booted under it".into() }
    }

    pub(crate) fn processor(&self) -> GuestProcessor {
        if self.name == "kvm" { GuestProcessor::Kvm } else { GuestProcessor::Tcg }
    }

    pub(crate) fn with_reason(&self) -> String {
        format!("{} ({})", self.name, self.why)
    }
}

/// Probed once for a kernel of the host, and kept.
pub(crate) fn find(guest: &Guest) -> Result<Accelerator> {
    if let Some(known) = known() {
        return Ok(known);
    }
    let found = probe(guest)?;
    let text = format!("{}\n{}\n{}\n", host(), found.name, found.why);
    std::fs::write(note()?, text).context("cannot keep what was found out of KVM")?;
    Ok(found)
}

/// What an earlier probe found on this kernel of the host; a device that cannot be opened needs
/// none.
pub(crate) fn known() -> Option<Accelerator> {
    if let Err(error) = File::options().read(true).write(true).open(DEVICE) {
        return Some(Accelerator::tcg(format!("{DEVICE} cannot be used: {error}")));
    }
    let text = std::fs::read_to_string(note().ok()?).ok()?;
    let [kernel, name, why] = text.lines().collect::<Vec<_>>()[..] else { return None };
    let found = if name == "kvm" { Accelerator::kvm() } else { Accelerator::tcg(why) };
    (kernel == host()).then_some(found)
}

fn note() -> Result<std::path::PathBuf> {
    Ok(folder()?.join("accelerator"))
}

/// Another kernel may do what this one cannot.
fn host() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn probe(guest: &Guest) -> Result<Accelerator> {
    let desk = folder()?.join(format!("probe-{}", std::process::id()));
    std::fs::create_dir_all(&desk).with_context(|| format!("cannot make {} to probe KVM in", desk.display()))?;
    let found = boot(guest, &desk);
    std::fs::remove_dir_all(&desk).with_context(|| format!("cannot remove {}", desk.display()))?;
    found
}

fn boot(guest: &Guest, desk: &Path) -> Result<Accelerator> {
    let (first_root, console) = (desk.join("initramfs"), desk.join("console"));
    initramfs::write(&first_root, guest, &[])?;
    let machine = Machine {
        accelerator: "kvm",
        memory_bytes: 512 << 20,
        processors: 1,
        bus: Bus::VirtioBlk,
        disks: Vec::<Disk>::new(),
        data: None,
        other_disk: None,
        initramfs: first_root,
        console: console.clone(),
        kernel_words: PROBE_WORD.into(),
        start: Start::Boot,
    };
    let words = qemu::command(guest, &machine)?;
    let (program, arguments) = words.split_first().context("no command for QEMU")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start QEMU")?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && !is_alive(&console) && child.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    child.wait()?;
    Ok(if is_alive(&console) {
        Accelerator::kvm()
    } else {
        let late = format!("a kernel under {DEVICE} was not up within {} s", PATIENCE.as_secs());
        Accelerator::tcg(late + "; the file `accelerator` in the cache of guests says so: remove it to try again")
    })
}

fn is_alive(console: &Path) -> bool {
    let mut text = Vec::new();
    let read = File::open(console).and_then(|file| file.take(MOST_SAID).read_to_end(&mut text));
    read.is_ok() && String::from_utf8_lossy(&text).contains(ALIVE)
}
