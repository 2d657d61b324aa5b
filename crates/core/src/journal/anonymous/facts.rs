//! Facts that may be shared: measured values, settings in effect, models and versions. A fact that is not here may hold
//! anything, such as the dump of a super block or the machine's own number.

const WHOLE: &[&str] = &[
    "a time is that of",
    "architecture",
    "attributes",
    "bonnie++",
    "bonnie++ files, in 1024s",
    "bonnie++ large file",
    "broken promises",
    "btrfs profiles",
    "bus",
    "compiled",
    "cpu",
    "cpus",
    "device",
    "disk below",
    "features",
    "file system check after each cut",
    "governor",
    "kernel",
    "kernel version",
    "kernel words",
    "loop direct I/O",
    "machine",
    "memory",
    "microcode",
    "mkfs",
    "mkfs options",
    "mount",
    "mount options",
    "overlayfs",
    "packages",
    "pieces of torn writes",
    "power cuts",
    "preemption",
    "second witness",
    "sectors",
    "seed",
    "simulated by",
    "simulated disk",
    "simulated processor",
    "sqlite journal_mode",
    "swap",
    "system",
    "turbo off",
    "what held the copy back",
    "work of the processor",
];

const BEGINNINGS: &[&str] = &[
    "above: ", "aged ", "dirty_", "documented: ", "first boot", "guest ", "parameter ", "queue ", "raw ", "server ",
    "tried: ", "version ", "vm.",
];

/// Endings of facts about a backing, whose name comes first.
const ENDINGS: &[&str] = &[" device", " disk below", " version", " of what was made"];

/// Whether a fact of this name may be shared. Imported ones have their file behind them.
pub(crate) fn may_be_shared(name: &str) -> bool {
    let name = name.split(" (file ").next().unwrap_or(name);
    WHOLE.contains(&name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || name.contains(" raw ")
}
