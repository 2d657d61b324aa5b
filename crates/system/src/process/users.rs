//! The processes that keep a file system or a device in use.

use procfs::process::{FDTarget, Process, all_processes};
use std::path::Path;

/// Processes that work in a folder or run, map or hold open a file at or below it, as "git (123)".
/// What may not be looked at is left out.
pub fn users_of(folder: &Path) -> Vec<String> {
    let Ok(processes) = all_processes() else { return Vec::new() };
    let users = processes.flatten().filter(|process| uses(process, folder));
    users.map(|process| shown(&process)).collect()
}

/// Other processes that have one of these block devices open for writing, under any name: the
/// device, and the process as "qemu (123)". Processes that only read, such as udev's, do no harm;
/// they come and go.
pub fn writers_of(devices: &[(u32, u32)]) -> Vec<((u32, u32), String)> {
    let own = std::process::id() as i32;
    let others = all_processes().into_iter().flatten().flatten().filter(|process| process.pid != own);
    let writes = |process: Process| {
        let device = descriptors(process.pid).find_map(|descriptor| {
            let device = open_device(process.pid, &descriptor).filter(|device| devices.contains(device))?;
            is_written(process.pid, &descriptor).then_some(device)
        });
        Some((device?, shown(&process)))
    };
    others.filter_map(writes).collect()
}

fn shown(process: &Process) -> String {
    format!("{} ({})", process.stat().map_or("?".into(), |stat| stat.comm), process.pid)
}

fn descriptors(process: i32) -> impl Iterator<Item = std::ffi::OsString> {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name())
}

/// What the file itself is: its name may be a link's, another node's or gone. Without asking a
/// server that may not answer.
fn open_device(process: i32, descriptor: &std::ffi::OsStr) -> Option<(u32, u32)> {
    use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
    let path = Path::new("/proc").join(process.to_string()).join("fd").join(descriptor);
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    let is_device = FileType::from_raw_mode(found.stx_mode.into()) == FileType::BlockDevice;
    is_device.then_some((found.stx_rdev_major, found.stx_rdev_minor))
}

fn is_written(process: i32, descriptor: &std::ffi::OsStr) -> bool {
    let path = Path::new("/proc").join(process.to_string()).join("fdinfo").join(descriptor);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    // What cannot be read may be the worst.
    flags.is_none_or(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

fn uses(process: &Process, folder: &Path) -> bool {
    let is_in = |path: &Path| path.starts_with(folder);
    let own = [process.cwd(), process.root(), process.exe()];
    let files = process.fd().into_iter().flatten().flatten();
    own.into_iter().flatten().any(|path| is_in(&path))
        || files.into_iter().any(|file| matches!(&file.target, FDTarget::Path(path) if is_in(path)))
        || process.maps().is_ok_and(|maps| {
            maps.into_iter().any(|map| matches!(&map.pathname, procfs::process::MMapPath::Path(path) if is_in(path)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{argv, command};

    #[test]
    fn only_other_programs_that_write_are_named() {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(1 << 20).unwrap();
        let attached =
            crate::process::output(&argv(["losetup", "--find", "--show", &image.path().display().to_string()]), &[]);
        let Ok(device) = attached else { return pickfs_test_support::not_run("only root can make a loop device") };
        let device = Path::new(device.trim());
        let number = crate::sys::devices::device_number(device).unwrap();
        let _own = std::fs::OpenOptions::new().write(true).open(device).unwrap();
        let named = [true, false].map(|write| {
            let input = std::fs::OpenOptions::new().read(true).write(write).open(device).unwrap();
            let mut sleep = command(&argv(["sleep", "60"]), &[]).unwrap().stdin(input).spawn().unwrap();
            let named = (writers_of(&[number]), format!("sleep ({})", sleep.id()));
            sleep.kill().unwrap();
            sleep.wait().unwrap();
            named
        });
        crate::process::output(&argv(["losetup", "--detach", &device.display().to_string()]), &[]).unwrap();
        let [(writers, sleep), (readers, _)] = named;
        assert_eq!((writers, readers), (vec![(number, sleep)], Vec::new()));
    }

    #[test]
    fn users_are_named_for_as_long_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        assert!(users_of(folder.path()).is_empty());
        let mut sleep = command(&argv(["sleep", "60"]), &[]).unwrap().current_dir(folder.path()).spawn().unwrap();
        assert_eq!(users_of(folder.path()), [format!("sleep ({})", sleep.id())]);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        let file = std::fs::File::create(folder.path().join("open")).unwrap();
        assert_eq!(users_of(folder.path()).len(), 1);
        drop(file);
        assert!(users_of(folder.path()).is_empty());
    }
}
