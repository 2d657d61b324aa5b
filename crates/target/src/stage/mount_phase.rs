//! Phases that start unmounted: the mount itself, and what is done with an unmounted file system.

use super::caches;
use super::cell_stage::Stage;
use super::phase::{CacheState, Phase};
use super::program::Program;
use super::server::Used;
use crate::stack::Argv;
use anyhow::{Context, Result, ensure};
use pickfs_system::sys::{devices, process};
use std::time::Duration;

impl Stage<'_, '_> {
    /// A phase that is the mount: the time of its programs, one after the other.
    pub(crate) fn mount(&mut self, phase: &str) -> Result<()> {
        ensure!(self.declared(phase)?.starts == CacheState::Unmounted, "phase {phase} starts mounted");
        let (stack, runner) = (self.stack, self.runner);
        self.phase(phase, |p| {
            let before = process::children_usage();
            let mut mounts = stack.mount(&stack.spec()).into_iter();
            let took = mounts.try_fold(Duration::ZERO, |took, words| Ok(took + runner.mount(&words)?));
            let after = process::children_usage();
            p.also_used(Used {
                cpu_ns: (after.user_ns + after.system_ns).saturating_sub(before.user_ns + before.system_ns),
                read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
            });
            // The stage's clock would include the runner's other work.
            took.map(|took: Duration| p.took(took.as_nanos() as f64))
        })
    }

    /// What makes data durable in addition to `syncfs(2)`.
    pub(crate) fn commit(&self) -> Option<Argv> {
        self.stack.commit()
    }

    /// A phase that does an operation on the device alone. It is mounted again, untimed; what that
    /// reads is counted.
    pub(crate) fn upkeep_unmounted(&mut self, phase: &str, operation: &str) -> Result<()> {
        ensure!(self.declared(phase)?.starts == CacheState::Unmounted, "phase {phase} starts mounted");
        let programs = self.programs_of_device(operation).with_context(|| format!("it has no {operation}"))?;
        self.phase(phase, |p| programs.iter().try_for_each(|words| p.run(&Program::new(words))))
    }

    fn programs_of_device(&self, operation: &str) -> Option<Vec<Argv>> {
        let spec = self.stack.spec();
        let upkeep = self.stack.driver?.upkeep(operation, spec.variant).filter(|upkeep| !upkeep.is_mounted);
        upkeep.map(|upkeep| upkeep.programs(&spec))
    }

    /// Dropping caches has dropped the programs, too.
    pub(super) fn warm_programs_of_device(&self) {
        let checks = self.programs_of_device("check").unwrap_or_default();
        let all = self.stack.mount(&self.stack.spec()).into_iter().chain(checks);
        let names: Vec<String> = all.filter_map(|words| words.into_iter().next()).collect();
        caches::warm_programs(self.runner, &names.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Mounts what a phase has left unmounted, whether it failed or not: teardown counts on it.
    pub(super) fn be_mounted(&self, phase: &Phase) -> Result<()> {
        let at = devices::resolved(&self.stack.mount_point);
        if phase.starts != CacheState::Unmounted || devices::is_mount_point(&at)? {
            return Ok(());
        }
        let mounts = self.stack.mount(&self.stack.spec());
        mounts.iter().try_for_each(|words| self.runner.mount(words).map(drop)).context("mounting it again")
    }
}
