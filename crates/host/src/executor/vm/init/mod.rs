//! Process 1 of a guest: loads modules, mounts the root, starts the agent on its port, and switches
//! the machine off.
//!
//! It runs from the initramfs, with this program and its libraries in it, so that the agent is the
//! same program as on the host, whatever the guest's libraries are.

pub(crate) mod boot_root;
mod go_on;
mod modules;
mod simulated;
mod udev;

use crate::executor::vm::names::{
    ALIVE, BOOT_WORD, BY_SERIAL, DATA_DISK, MOST_DISKS, OTHER_DISK, PORT, PROBE_WORD, RECORDING_DISK, RECORDS_DISK,
    REQUEST_DISK, ROOT_DISK, ROOT_WORD, SAVED_WORD, SIM_WORD, how, target_disk,
};
use anyhow::{Context, Result, bail};
use pickfs_core::protocol::GUEST_PROGRAMS;
use pickfs_system::sys::clock::monotonic;
use rustix::fs::{CWD, FileType, Mode, makedev};
use rustix::mount::{MountFlags, mount, mount_bind, mount_move};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Disks and ports may appear a while after their drivers.
const PATIENCE: Duration = Duration::from_secs(60);
/// Names that programs are called by, and the packages' programs that have them.
const ALTERNATIVES: &[(&str, &str)] =
    &[("awk", "mawk"), ("c++", "g++"), ("cc", "gcc"), ("lzma", "xz"), ("which", "which.debianutils")];
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Of servers: the user that PostgreSQL runs as, and the one that sshd becomes until a client is
/// known (sshd(8)).
const OWN_USERS: &str = "postgres:x:999:999::/tmp:/bin/sh\nsshd:x:998:65534::/run/sshd:/usr/sbin/nologin\n";
/// Which the start of ssh.service makes.
const OF_SSHD: &str = "/run/sshd";
pub(super) const LOWER: &str = "/lower";

/// Never returns to the kernel: process 1 that ends is a panic.
pub fn main() -> ExitCode {
    if let Err(error) = live() {
        // On the console, whose last lines the host shows.
        eprintln!("pickfs init: {error:#}");
    }
    // Nothing is synced: a disk that fails could make it wait for ever, and none is kept.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    ExitCode::FAILURE
}

fn live() -> Result<()> {
    let began_ns = monotonic();
    first_mounts()?;
    if has_word(SIM_WORD) {
        simulated::check_clocks()?;
        simulated::fill_entropy()?;
    }
    modules::load_first()?;
    if has_word(SIM_WORD) {
        simulated::set_pace()?;
        simulated::attach_root()?;
    }
    // Booted only to see whether it boots.
    if has_word(PROBE_WORD) {
        eprintln!("{ALIVE}");
        return Ok(());
    }
    let root = disk(ROOT_DISK)?.context("there is no root disk")?;
    if has_word(BOOT_WORD) {
        return boot_root::become_system(&root, began_ns);
    }
    let modules = modules::of_cells();
    enter(&root)?;
    second_mounts()?;
    what_packages_would_have_made()?;
    // Where each cell boots, most would be loaded in vain.
    if has_word(SAVED_WORD) {
        modules::load(&modules)?;
    }
    if has_word(SIM_WORD) {
        simulated::shorten_turns()?;
        if has_word(SAVED_WORD) {
            simulated::be_saved()?;
        }
        simulated::attach_others()?;
    }
    (0..MOST_DISKS).try_for_each(|index| name_disk(&target_disk(index)))?;
    name_disk(DATA_DISK)?;
    name_disk(OTHER_DISK)?;
    if !has_word(SIM_WORD) {
        let port = port()?;
        if has_word(SAVED_WORD) {
            go_on::wait(&port)?;
        }
        return agent(port);
    }
    [REQUEST_DISK, RECORDS_DISK, RECORDING_DISK].into_iter().try_for_each(name_disk)?;
    simulated::agent()
}

fn has_word(wanted: &str) -> bool {
    word(|word| (word == wanted).then_some(())).is_some()
}

/// Finds a word of the kernel's command line.
fn word<T>(find: impl FnMut(&str) -> Option<T>) -> Option<T> {
    std::fs::read_to_string("/proc/cmdline").ok()?.split_whitespace().find_map(find)
}

fn first_mounts() -> Result<()> {
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount_new(kind, at, "")?;
    }
    Ok(())
}

pub(super) fn mount_new(kind: &str, at: &str, options: &str) -> Result<()> {
    std::fs::create_dir_all(at).with_context(|| format!("cannot make {at}"))?;
    let options = std::ffi::CString::new(options)?;
    mount(kind, at, kind, MountFlags::empty(), Some(options.as_c_str())).with_context(|| format!("cannot mount {kind}"))
}

/// The disk with this serial number, whatever its bus; waits for it while disks may still appear.
fn disk(serial: &str) -> Result<Option<PathBuf>> {
    let wait = serial == ROOT_DISK;
    let begun = Instant::now();
    loop {
        for entry in std::fs::read_dir("/sys/block").context("cannot list /sys/block")? {
            let entry = entry?;
            if serial_of(&entry.path()).is_some_and(|found| found == serial) {
                return Ok(Some(Path::new("/dev").join(entry.file_name())));
            }
        }
        if !wait || begun.elapsed() > PATIENCE {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// virtio-blk and NVMe show it as text, SCSI as a page of vital product data behind four bytes.
pub(super) fn serial_of(block: &Path) -> Option<String> {
    let text = ["serial", "device/serial"].iter().find_map(|name| std::fs::read(block.join(name)).ok());
    let page = || Some(std::fs::read(block.join("device/vpd_pg80")).ok()?.get(4..)?.to_vec());
    Some(String::from_utf8_lossy(&text.or_else(page)?).trim().to_string())
}

/// The guest's programs, from the packed root.
pub(super) fn mount_lower(root: &Path) -> Result<()> {
    std::fs::create_dir_all(LOWER)?;
    let kind = word(|word| word.strip_prefix(ROOT_WORD).map(String::from)).unwrap_or("squashfs".into());
    mount(root, LOWER, &*kind, MountFlags::RDONLY, None).with_context(|| format!("cannot mount the root as {kind}"))
}

/// The image below, memory above: programs may write where they like.
fn enter(root: &Path) -> Result<()> {
    for folder in ["/upper", "/next"] {
        std::fs::create_dir_all(folder)?;
    }
    mount_lower(root)?;
    mount_new("tmpfs", "/upper", "")?;
    for folder in ["/upper/files", "/upper/work"] {
        std::fs::create_dir_all(folder)?;
    }
    let layers = c"lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work";
    mount("root", "/next", "overlay", MountFlags::empty(), Some(layers)).context("cannot lay memory over the root")?;
    for folder in ["proc", "sys", "dev", "run", "tmp", "pickfs"] {
        std::fs::create_dir_all(Path::new("/next").join(folder))?;
    }
    // What is mounted below moves along, so the program and its libraries need not be copied.
    mount_bind("/agent", format!("/next{GUEST_PROGRAMS}")).context("cannot keep the agent's programs")?;
    for folder in ["/proc", "/sys", "/dev"] {
        mount_move(folder, format!("/next{folder}")).with_context(|| format!("cannot move {folder}"))?;
    }
    std::env::set_current_dir("/next")?;
    become_root()
}

/// The working directory.
pub(super) fn become_root() -> Result<()> {
    mount_move(".", "/").context("cannot move the root")?;
    rustix::process::chroot(".").context("cannot enter the root")?;
    Ok(std::env::set_current_dir("/")?)
}

fn second_mounts() -> Result<()> {
    mount_new("tmpfs", "/run", "mode=755")?;
    mount_new("tmpfs", "/tmp", "mode=1777")?;
    mount_new("tmpfs", "/dev/shm", "mode=1777,size=90%")?;
    // Only debugfs shows which preemption the kernel has; a kernel without it shows nothing.
    let _ = mount_new("debugfs", "/sys/kernel/debug", "");
    mount_new("devpts", "/dev/pts", "")?;
    udev::have_seen_all()?;
    nodes()
}

/// Device nodes whose drivers are loaded when they are opened, such as `/dev/fuse`: "fuse fuse
/// c10:229".
fn nodes() -> Result<()> {
    let system = rustix::system::uname();
    let listed =
        std::fs::read_to_string(format!("/lib/modules/{}/modules.devname", system.release().to_string_lossy()));
    for line in listed.unwrap_or_default().lines() {
        let [_, name, numbers] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let Some((major, minor)) = numbers.strip_prefix('c').and_then(|numbers| numbers.split_once(':')) else {
            continue;
        };
        let path = Path::new("/dev").join(name);
        path.parent().map(std::fs::create_dir_all).transpose()?;
        let (mode, device) = (Mode::from_raw_mode(0o600), makedev(major.parse()?, minor.parse()?));
        match rustix::fs::mknodat(CWD, &path, FileType::CharacterDevice, mode, device) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => bail!("cannot make {}: {error}", path.display()),
        }
    }
    Ok(())
}

/// Makes what the scripts of packages would have made, because they were not run: users and groups,
/// and links by which programs are called.
fn what_packages_would_have_made() -> Result<()> {
    for (file, master) in [("/etc/passwd", "passwd.master"), ("/etc/group", "group.master")] {
        let there = Path::new(file).exists();
        let content = std::fs::read_to_string(Path::new("/usr/share/base-passwd").join(master)).unwrap_or_default();
        if !there {
            let own = if file.ends_with("passwd") { OWN_USERS } else { "postgres:x:999:\n" };
            std::fs::write(file, content + own)?;
        }
    }
    if !Path::new("/bin/sh").exists() {
        std::os::unix::fs::symlink("dash", "/bin/sh").context("cannot make /bin/sh")?;
    }
    for (name, program) in ALTERNATIVES.iter().filter(|(_, program)| Path::new("/usr/bin").join(program).exists()) {
        // One that is there already is the package's own.
        let _ = std::os::unix::fs::symlink(program, Path::new("/usr/bin").join(name));
    }
    // diod turns clients away whose address has no name.
    if !Path::new("/etc/hosts").exists() {
        std::fs::write("/etc/hosts", "127.0.0.1 localhost\n").context("cannot make /etc/hosts")?;
    }
    std::fs::create_dir_all(OF_SSHD).with_context(|| format!("cannot make {OF_SSHD}"))?;
    let _ = std::os::unix::fs::symlink("/proc/self/mounts", "/etc/mtab");
    let _ = std::os::unix::fs::symlink("/proc/self/fd", "/dev/fd");
    Ok(())
}

/// Gives a disk a name that does not depend on the bus.
pub(super) fn name_disk(serial: &str) -> Result<()> {
    let Some(device) = disk(serial)? else { return Ok(()) };
    std::fs::create_dir_all(BY_SERIAL)?;
    let link = Path::new(BY_SERIAL).join(serial);
    std::os::unix::fs::symlink(&device, &link)?;
    udev::link_partitions(&link, &device)
}

fn agent(port: File) -> Result<()> {
    let mut command = agent_command();
    command.stdin(port.try_clone()?).stdout(port);
    let status = command.status().context("cannot start the agent")?;
    if !status.success() {
        eprintln!("pickfs init: the agent ended {}", how(status));
    }
    Ok(())
}

fn agent_command() -> Command {
    let words = own_program(GUEST_PROGRAMS, Path::new(GUEST_PROGRAMS).join("loader").exists());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("agent");
    command.env("PATH", PATH).env("HOME", "/tmp");
    // No udev runs here that would make nodes and links, or answer.
    command.env("DM_DISABLE_UDEV", "1").env("MDADM_NO_UDEV", "1");
    command
}

/// The words that start this program from where its folder lies: one with its own libraries by its
/// own loader.
pub(super) fn own_program(at: &str, has_loader: bool) -> Vec<String> {
    let program = format!("{at}/start");
    if has_loader {
        vec![format!("{at}/loader"), "--library-path".into(), format!("{at}/lib"), program]
    } else {
        vec![program]
    }
}

/// The serial port of the agent's name.
pub(super) fn port() -> Result<File> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        for entry in std::fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            let name = std::fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim() == PORT {
                let path = Path::new("/dev").join(entry.file_name());
                return File::options().read(true).write(true).open(&path).context("cannot open the agent's port");
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bail!("there is no port for the agent")
}
