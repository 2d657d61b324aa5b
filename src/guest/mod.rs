//! Guests of Debian for the `vm` executor: made once without root, kept in a cache, booted for every cell.
//!
//! The room has both ends of the pipe: what builds and starts a guest on the host, and `init`, which is its process 1. It
//! must not know what is measured: it brings the agent up in the guest and carries lines between it and the host.

mod accelerator;
mod boot;
mod booted;
mod build;
mod cache;
mod clock;
mod compile;
mod host_cache;
mod init;
mod initramfs;
mod kernel;
mod modules;
mod qemu;
mod recipe;
mod relay;
mod running;
mod stoppable;
mod tail;
mod udev;
mod watched;

pub use accelerator::{Accelerator, known as known_accelerator};
pub use booted::main as tell_ready;
pub use cache::{Guest, all, find_or_build, folder, remove};
pub use compile::enter;
pub use init::main as init;
pub use recipe::{RELEASES, Recipe, Release};
pub use relay::{main as relay, objection_to, recipes};

/// Serial numbers of the disks that a guest gets, by which its init knows them.
const ROOT_DISK: &str = "pickfs-root";
const DATA_DISK: &str = "pickfs-data";
/// That a tree is brought from.
const OTHER_DISK: &str = "pickfs-other";
/// Of the first disk under test; the others have a number behind it.
const TARGET_DISK: &str = "pickfs-target";
const MOST_DISKS: usize = 16;
/// Where a guest's init puts its disks, by their serial numbers. Not below /dev/disk, whose links programs take for udev's:
/// `zpool create` removes them and waits for udev to make them anew.
const BY_SERIAL: &str = "/dev/pickfs";
/// The virtio-serial port that the agent speaks on.
const PORT: &str = "pickfs";
/// A word for the kernel that makes a guest say [`ALIVE`] on its console and end.
const PROBE_WORD: &str = "pickfs.probe";
/// Before the type of the root's file system.
const ROOT_WORD: &str = "pickfs.root=";
/// A word for the kernel that makes what is on a guest's disks its system.
const BOOT_WORD: &str = "pickfs.boot";
const ALIVE: &str = "pickfs init: alive";

fn target_disk(index: usize) -> String {
    if index == 0 { TARGET_DISK.to_string() } else { format!("{TARGET_DISK}-{}", index + 1) }
}
