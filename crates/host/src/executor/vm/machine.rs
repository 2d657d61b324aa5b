//! The machine of the `vm` executor: QEMU for every cell, started here and watched until it ends.

use super::Vm;
use super::accelerator;
use super::boot::{BOOT_PATIENCE, BOOTS, PANIC, connect, explained, in_each_boot, is_killed};
use super::build::Guest;
use super::console::Tail;
use super::furnished::{Furnished, LEAST_MEMORY};
use super::names::{BY_SERIAL, DATA_DISK, OTHER_DISK};
use super::qemu::{self, Bus, Disk, Start};
use super::{host_cache, saved, second_boot};
use crate::executor::{Contact, ContactOutcome, Executor, Failure, Lifetime, Machine, Patience, agent_here};
use anyhow::{Context, Result};
use pickfs_core::journal::{Outcome, Provenance, Record};
use pickfs_core::plan::{Cell, Plan, Target};
use pickfs_core::protocol::{Answer, Arrival, Bundle, CellsRun, Exit, Job, Question, Request, Say};
use pickfs_system::process::Interrupted;
use pickfs_system::sys::block;
use pickfs_system::units::show_duration;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Patience = Patience {
    first_word: Some(BOOT_PATIENCE),
    // What was staged is unpacked, and the raw speed of the disk taken.
    ready: Some(Duration::from_secs(180)),
    grace: Duration::from_secs(30),
};
pub(crate) struct Guests {
    furnished: Furnished,
    running: Option<Running>,
}

/// A guest under way.
struct Running {
    started: Started,
    cell: String,
    /// Which start of the cell's machine it is, from 1; one that the host ended does not count.
    boot: u32,
    /// What it goes on from.
    state: Option<PathBuf>,
    /// Why it boots although it was to go on from a saved boot.
    not_saved: Option<String>,
    since: Instant,
    /// From the start of QEMU until the agent's first word.
    booted: Option<Duration>,
    /// The boot is in the journal.
    boot_is_journaled: bool,
    /// Bytes that the console had said when the cell began.
    before: u64,
    /// Devices that no other process may mount or erase meanwhile.
    _held: Vec<File>,
}

/// A started guest.
struct Started {
    guest: Guest,
    machine: qemu::Machine,
    console: Tail,
    run: String,
}

/// Where the plan does not say: an emulated processor takes half a minute to boot, another one a
/// second or two.
fn goes_on_from_saved(target: &Target, machine: &qemu::Machine) -> bool {
    let is_said = target.machine.0.get("saved").and_then(|said| said.as_bool());
    machine.bus != Bus::Nvme && is_said.unwrap_or(machine.accelerator == "tcg")
}

impl Guests {
    pub(crate) fn new(plan: &Plan) -> Guests {
        Guests { furnished: Furnished::new(plan, None), running: None }
    }

    fn start(&self, cell: &Cell, guest: Guest, request: Request, boot: u32) -> Result<(Contact, Running)> {
        let folder = self.furnished.bundle.folder.join("guest");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let machine = self.machine(cell, &guest, &folder)?;
        // What does not go on boots.
        let state = if goes_on_from_saved(&cell.target, &machine) && boot == 1 {
            saved::find_or_make(&guest, &machine, &folder, &request.run).map(Some)
        } else {
            Ok(None)
        };
        let (state, not_saved) = match state {
            Ok(state) => (state, None),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let socket = folder.join("incoming");
        let start = if state.is_some() { Start::Saved(socket.clone()) } else { Start::Boot };
        let machine = qemu::Machine { start, ..machine };
        let held = machine.disks.iter().filter_map(|disk| hold(&disk.file).transpose()).collect::<Result<_>>()?;
        let arrival = Arrival {
            disks: Vm.disk_names(machine.disks.len()),
            archive: machine.data.as_ref().map(|_| in_the_guest(DATA_DISK)),
            tree: machine.other_disk.as_ref().map(|_| in_the_guest(OTHER_DISK)),
            host: self.furnished.plan.host,
            recording: None,
            is_simulated: false,
        };
        let request =
            Request { answers: vec![Question::ForgetCache, Question::Boot], arrival: Some(arrival), ..request };
        let (mut connection, console) = connect(&guest, &machine, &request.run, &cell.id)?;
        if let Some(state) = &state {
            saved::go_on(state, &socket, &mut connection)?;
            connection.to.write_all(saved::word_to_go_on()?.as_bytes()).context("QEMU takes nothing for the guest")?;
        }
        let running = Running {
            started: Started { guest, machine, console, run: request.run.clone() },
            cell: cell.id.clone(),
            boot,
            state,
            not_saved,
            since: Instant::now(),
            booted: None,
            boot_is_journaled: false,
            before: 0,
            _held: held,
        };
        Ok((Contact { connection, request, patience: PATIENCE, lifetime: Lifetime::PerJob }, running))
    }

    fn machine(&self, cell: &Cell, guest: &Guest, folder: &Path) -> Result<qemu::Machine> {
        let (settings, bundle) = (&cell.target.machine, &self.furnished.bundle);
        let all = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let cache = settings.text("cache").unwrap_or("none").to_string();
        let target = bundle.targets.get(&cell.target.name).and_then(|target| target.disks.clone());
        let backing = &cell.target.backing.name;
        let disks = target
            .with_context(|| format!("a guest cannot have the backing `{backing}`; use image, memory or device"))?;
        Ok(qemu::Machine {
            accelerator: accelerator::find(guest)?.name,
            memory_bytes: settings.number("memory").unwrap_or(LEAST_MEMORY) + 3 * self.furnished.staged(),
            processors: settings.number("processors").unwrap_or(all) as u32,
            bus: Bus::of(settings.text("bus")),
            disks: disks.into_iter().map(|file| Disk { file, cache: cache.clone() }).collect(),
            data: bundle.archive.clone(),
            other_disk: bundle.works.get(&cell.work.name).and_then(|work| self.tree_disk(work.tree.clone()?)),
            initramfs: self.furnished.first_root(guest, folder)?,
            console: folder.join("console"),
            kernel_words: settings.text("words").unwrap_or_default().into(),
            start: Start::Boot,
        })
    }

    /// QEMU passes the host's cache by, but a memory file system has no other place.
    fn tree_disk(&self, file: PathBuf) -> Option<Disk> {
        let cache = if file.starts_with(&self.furnished.bundle.folder) { "unsafe" } else { "none" };
        Some(Disk { file, cache: cache.into() })
    }
}

impl Machine for Guests {
    fn cells(&self) -> CellsRun {
        CellsRun::Elsewhere
    }

    /// What is no cell is done here, where the disks of the guests are.
    fn reach(&mut self, request: Request) -> Result<ContactOutcome> {
        let before = self.running.take();
        let Job::Cell(cell) = &request.job else {
            return Ok(ContactOutcome::Agent(Box::new(Contact::lasting(agent_here(&request.run)?, request))));
        };
        let cell = cell.clone();
        let guest = match self.furnished.guest_of(&cell.target)? {
            Ok(guest) => guest,
            Err(reason) => return Ok(ContactOutcome::Nowhere(vec![reason])),
        };
        let boot = before.filter(|before| before.cell == cell.id).map_or(1, |before| before.boot);
        let (contact, running) = self.start(&cell, guest, request, boot)?;
        self.running = Some(running);
        Ok(ContactOutcome::Agent(Box::new(contact)))
    }

    fn furnish(&mut self, bundle: Bundle, say: &mut dyn FnMut(&str)) -> Result<Provenance> {
        self.furnished.furnish(bundle, say)
    }

    fn overhear(&mut self, said: &mut Say) {
        let Some(running) = &mut self.running else { return };
        let booted = *running.booted.get_or_insert(running.since.elapsed());
        match said {
            Say::Tell(Record::Begin(_)) => running.before = running.started.console.said(),
            Say::Tell(Record::End(end)) => {
                if let Outcome::Failed(why) = &mut end.outcome {
                    let words = running.started.console.words(running.before);
                    words.into_iter().for_each(|words| why.push_str(&format!("; the guest's console: {words}")));
                }
            }
            Say::Tell(Record::Provenance(found)) => {
                running.started.guest.add_versions(&mut found.facts);
                if std::mem::replace(&mut running.boot_is_journaled, true) {
                    return;
                }
                let boots = format!("{}, as no agent answered in the one before", running.boot);
                found.facts.extend((running.boot > 1).then(|| ("guest boots".to_string(), boots)));
                let how = if running.state.is_some() { ", from a saved boot" } else { "" };
                found.facts.insert("guest boot".into(), show_duration(booted.as_nanos() as f64) + how);
                found.facts.extend(running.not_saved.take().map(|why| ("guest not saved".to_string(), why)));
            }
            _ => {}
        }
    }

    fn answer(&mut self, said: Say) -> Result<Answer> {
        let Some(running) = &self.running else { return Ok(Answer::Unsupported) };
        let Started { guest, machine, run, .. } = &running.started;
        match said {
            Say::ForgetCache => Ok(host_cache::forget(&machine.disks)),
            Say::Boot(boot) => second_boot::boot(guest, machine, &boot, run, &running.cell),
            _ => Ok(Answer::Unsupported),
        }
    }

    fn explain(&mut self, why: String, exit: &Exit) -> Failure {
        let Some(running) = &mut self.running else { return Failure::Final(why) };
        let whole = explained(&why, exit, &running.started.console);
        if is_killed(exit) {
            return Failure::Killed(whole);
        }
        let panicked = running.booted.is_none() && whole.contains(PANIC);
        let state = running.state.as_ref().filter(|_| running.booted.is_none());
        // Kept, it would fail the next run as well.
        state.map(std::fs::remove_file);
        match &mut running.boot {
            boot if (panicked || state.is_some()) && *boot < BOOTS => {
                *boot += 1;
                Failure::Again
            }
            _ if panicked => Failure::Final(in_each_boot(&whole)),
            _ => Failure::Final(whole),
        }
    }
}

/// A block device, held as mount(2) would, so that the kernel refuses it to any other program that
/// mounts or erases it; the kernel refuses us a device that another program has.
fn hold(disk: &Path) -> Result<Option<File>> {
    let found = disk.metadata().with_context(|| format!("there is no {}", disk.display()))?;
    if !found.file_type().is_block_device() {
        return Ok(None);
    }
    let held = block::open_exclusive(disk);
    held.map(Some).with_context(|| format!("{} is in use; free it first", disk.display()))
}

/// Where init puts the disk with that serial number.
pub(crate) fn in_the_guest(serial: &str) -> PathBuf {
    Path::new(BY_SERIAL).join(serial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::process::{argv, output};
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    /// It says nothing of the boot, and a panic has as many more as without it.
    #[test]
    fn what_the_host_ended_is_no_boot_without_an_answer() {
        let machine = qemu::Machine {
            accelerator: "tcg",
            memory_bytes: 0,
            processors: 1,
            bus: Bus::of(None),
            disks: Vec::new(),
            data: None,
            other_disk: None,
            initramfs: PathBuf::new(),
            console: PathBuf::new(),
            kernel_words: String::new(),
            start: Start::Boot,
        };
        let console = Tail::of(|| Ok(PANIC.as_bytes()));
        let running = Running {
            started: Started { guest: Guest::default(), machine, console, run: String::new() },
            cell: String::new(),
            boot: 1,
            state: None,
            not_saved: None,
            since: Instant::now(),
            booted: None,
            boot_is_journaled: false,
            before: 0,
            _held: Vec::new(),
        };
        let mut guests = Guests { running: Some(running), ..Guests::new(&Plan::default()) };
        let exit = |status| Exit { status, errors: String::new() };
        let (killed, hung) = (exit(Some(ExitStatus::from_raw(libc::SIGKILL))), exit(None));
        let mut ended = |exit: &Exit| {
            let is_again = guests.explain("ended".into(), exit) == Failure::Again;
            (is_again, guests.running.as_ref().map_or(0, |running| running.boot))
        };
        let exits = [&killed, &hung, &killed, &hung, &hung];
        let wanted = [(false, 1), (true, 2), (false, 2), (true, 3), (false, 3)];
        assert_eq!(exits.map(&mut ended), wanted);
    }

    #[test]
    fn a_disk_is_held_while_its_guest_runs_and_refused_where_another_has_it() {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(1 << 20).unwrap();
        assert!(hold(image.path()).unwrap().is_none(), "a file is no device");
        let attached = output(&argv(["losetup", "--find", "--show", &image.path().display().to_string()]), &[]);
        let Ok(device) = attached else { return pickfs_test_support::not_run("only root can make a loop device") };
        let held = hold(Path::new(device.trim())).map(|held| held.is_some());
        let first = hold(Path::new(device.trim()));
        let second = hold(Path::new(device.trim())).map(drop);
        drop(first);
        output(&argv(["losetup", "--detach", device.trim()]), &[]).unwrap();
        assert!(held.unwrap());
        assert!(second.unwrap_err().to_string().contains("is in use"));
    }
}
