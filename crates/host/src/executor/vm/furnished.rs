//! What all machines of a run share: the guests of its plan, and what was prepared for them.

use super::build::{Driver, Guest, find_or_build};
use super::recipes::{is_own, kernel_of, kind_of, kinds_and_recipes, own_kernels};
use super::{accelerator, initramfs};
use anyhow::{Context, Result, bail};
use pickfs_core::journal::{GuestHardware, GuestProcessor, Provenance};
use pickfs_core::plan::{Plan, Target};
use pickfs_core::protocol::Bundle;
use pickfs_system::process::{Interrupted, argv, run_program};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a guest's kernel and programs take in addition to what is staged.
pub(crate) const LEAST_MEMORY: u64 = 1 << 30;

pub(crate) struct Furnished {
    pub plan: Plan,
    pub bundle: Bundle,
    /// Of the disks of simulations: then the kernel's clock counts instructions. Its file, in a
    /// folder of the user's own.
    driver: Option<(&'static Driver<'static>, &'static str)>,
    /// By kind; why there is none, where one cannot be made.
    guests: BTreeMap<String, Result<Guest, String>>,
}

impl Furnished {
    pub(crate) fn new(plan: &Plan, driver: Option<(&'static Driver<'static>, &'static str)>) -> Furnished {
        Furnished { plan: plan.clone(), bundle: Bundle::default(), driver, guests: BTreeMap::new() }
    }

    /// One guest a release, with the tools of all cells: fewer to make and to keep. One whose
    /// modules cannot be compiled leaves its cells skipped, with the reason, and the others are
    /// done.
    pub(crate) fn furnish(&mut self, bundle: Bundle, say: &mut dyn FnMut(&str)) -> Result<Provenance> {
        let mut found = Provenance::default();
        for (kind, recipe) in kinds_and_recipes(&self.plan, &bundle)? {
            match find_or_build(&recipe, say).and_then(|guest| self.with_driver(guest, say)) {
                Ok(guest) => self.take(kind, guest, &mut found)?,
                Err(error) if recipe.compiled.is_empty() || error.is::<Interrupted>() => return Err(error),
                Err(error) => {
                    say(&format!("cells in guests of {kind} are skipped: {error:#}"));
                    self.guests.insert(kind, Err(format!("{error:#}")));
                }
            }
        }
        for folder in own_kernels(&self.plan).into_iter().map(String::from).collect::<Vec<_>>() {
            let guest = Guest::own(Path::new(&folder))?;
            let driver = self.driver.map(|(_, file)| guest.folder.join(file));
            self.take(folder, Guest { driver, ..guest }, &mut found)?;
        }
        self.bundle = bundle;
        Ok(found)
    }

    fn with_driver(&self, guest: Guest, say: &mut dyn FnMut(&str)) -> Result<Guest> {
        let driver = self.driver.map(|(driver, _)| driver.find_or_compile(&guest, say)).transpose()?;
        Ok(Guest { driver, ..guest })
    }

    fn take(&mut self, kind: String, guest: Guest, found: &mut Provenance) -> Result<()> {
        let kernel = guest.kernel_release().map(|release| format!(", kernel {release}")).unwrap_or_default();
        let (processor, how) = match self.driver {
            Some(_) => {
                found.facts.insert("simulated by".to_string(), simulator()?);
                (GuestProcessor::Simulated, "simulated".to_string())
            }
            None => {
                let accelerator = accelerator::find(&guest)?;
                (accelerator.processor(), accelerator.with_reason())
            }
        };
        found.hardware.guests.push(GuestHardware { guest: kind.clone(), processor });
        let borrowed: String = guest.borrowed().iter().map(|package| format!(", {package}")).collect();
        found.facts.insert(format!("guest {kind}"), format!("{}{kernel}{borrowed}, {how}", guest.name));
        self.guests.insert(kind, Ok(guest));
        Ok(())
    }

    /// The guest of a target, or why there is none.
    pub(crate) fn guest_of(&self, target: &Target) -> Result<Result<Guest, String>> {
        let kernel = kernel_of(target);
        let kind = if is_own(kernel) { kernel.to_string() } else { kind_of(target, &self.bundle) };
        let guest = self.guests.get(&kind).with_context(|| format!("the run has no guest of {kind}"))?.clone();
        match &guest {
            Ok(guest) if !guest.folder.is_dir() => bail!("the guest {} is gone; begin the run again", guest.name),
            _ => Ok(guest),
        }
    }

    /// Made once a run for each guest.
    pub(crate) fn first_root(&self, guest: &Guest, folder: &Path) -> Result<PathBuf> {
        let file = folder.join(format!("initramfs-{:016x}", xxhash_rust::xxh3::xxh3_64(guest.name.as_bytes())));
        if !file.exists() {
            // A cell that was stopped here must not leave half of it to the next.
            let partial = file.with_extension("partial");
            initramfs::write(&partial, guest, &self.modules_of(guest))?;
            std::fs::rename(&partial, &file)?;
        }
        Ok(file)
    }

    /// Of all that can be a target in it, whatever the plan has: fixed for a guest, so that results
    /// are.
    fn modules_of(&self, guest: &Guest) -> Vec<&str> {
        let usable = self.bundle.modules.iter().filter(|of| guest.has(&of.packages));
        let names: BTreeSet<&str> = usable.flat_map(|of| &of.modules).map(String::as_str).collect();
        names.into_iter().collect()
    }

    /// Bytes that are unpacked in the guest's memory.
    pub(crate) fn staged(&self) -> u64 {
        self.bundle.archive.as_ref().and_then(|path| path.metadata().ok()).map_or(0, |found| found.len())
    }
}

/// The programs on which the times of a simulation depend: QEMU's version, and the SHA-256 of this
/// program, which is in the guest.
fn simulator() -> Result<String> {
    let qemu = run_program(&argv(["qemu-system-x86_64", "--version"]))?;
    let own = run_program(&argv(["sha256sum", &format!("/proc/{}/exe", std::process::id())]))?;
    let (qemu, own) = (qemu.lines().next().unwrap_or_default(), own.get(..64).unwrap_or_default());
    Ok(format!("{qemu}, pickfs {own}"))
}
