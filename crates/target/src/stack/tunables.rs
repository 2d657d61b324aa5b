//! What people turn below and beside file systems: of a device's queue, of the kernel, of layers.

use pickfs_core::plan::Tunable;

pub fn of_machine() -> Vec<Tunable> {
    Vec::new()
}
