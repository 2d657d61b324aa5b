//! NFS 4.2: client and server are this machine's own kernel, over the loopback device.
//!
//! The server is one for the whole machine, so it is started in guests alone. It holds the file
//! system that it exports, so the export goes before each unmount of that.

use super::network::{DELAY, IP, LOSS, RATE};
use super::*;

pub(crate) const NFS: Above = Above {
    name: "nfs",
    about: "a folder shared by NFS 4.2: client and server of one guest's kernel",
    settings: &[DELAY, EXPORT, LOSS, RATE],
    needs: &[
        Need::Root,
        GUEST,
        IP,
        Need::Program { name: "modprobe", package: "kmod" },
        Need::Program { name: "find", package: "findutils" },
        Need::Program { name: "mount.nfs", package: "nfs-common" },
        Need::Program { name: "rpc.nfsd", package: "nfs-kernel-server" },
        Need::Program { name: "rpc.mountd", package: "nfs-kernel-server" },
        Need::Program { name: "exportfs", package: "nfs-kernel-server" },
    ],
    modules: &["nfsd", "nfsv4"],
    versions: &[("mount.nfs", &["mount.nfs", "-V"])],
    kind: "nfs4",
    folders: &["nfs"],
    stores: "nfs",
    is_lowest: true,
    hides: &[CASE_FOLDING, CREATION_TIME],
    weakens: &[
        "other clients see what was written after a file is closed (close-to-open)",
        "with `export = \"async\"` an fsync does not wait for the disk of the server (exports(5))",
    ],
    make,
    shares: |seat| Some([exportfs(&["-i", "-o", &options(seat)], seat), exportfs(&["-u"], seat)]),
    let_go: &["exportfs", "-f"],
    mount: |seat| argv(["mount", "-t", "nfs4", "-o", "vers=4.2,proto=tcp", &format!("{HOST}:/"), &seat.at()]),
    facts: |_| vec![("exports", argv(["exportfs", "-s"])), network::shown()],
    mismatches,
    take_down: Some(&STOP),
    ..Above::SERVED
};

const EXPORT: Setting = setting(
    "export",
    SettingKind::Choice(&["async", "sync"]),
    None,
    "whether the server answers before what it was given is on its disk; `sync` unless given",
);
const HOST: &str = "127.0.0.1";

fn is_async(seat: &Seat) -> bool {
    seat.settings.text(EXPORT.name) == Some("async")
}

/// `fsid=0` makes the folder the root of all exports, so that the server reads no folder above it.
fn options(seat: &Seat) -> String {
    format!("rw,no_root_squash,no_subtree_check,fsid=0,{}", if is_async(seat) { "async" } else { "sync" })
}

fn exportfs(words: &[&str], seat: &Seat) -> Argv {
    let folder = format!("{HOST}:{}", seat.data());
    argv(["exportfs"].iter().chain(words).chain([&&*folder]))
}

/// A new server waits 90 s for clients of one before it, unless it learns that there was none
/// (`v4_end_grace`).
fn make(seat: &Seat) -> Vec<Step> {
    let (grace, says) = ("/proc/fs/nfsd/v4_end_grace", "wait for no client of an earlier server");
    let server = ["rpc.nfsd", "--host", HOST, "-N", "3", "-V", "4.2", "8"];
    network::steps(seat)
        .into_iter()
        .chain([
            Step::run("load the kernel's NFS server", ["modprobe", "nfsd"]),
            Step::run("show the NFS server's settings", ["mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd"]),
            Step::run("start the NFS server", server).undo(STOP.of(&*seat.name)),
            Step::run(says, ["find", "/", "-maxdepth", "0", "-fprintf", grace, "Y"]),
            seat.server("what looks up exports", ["rpc.mountd", "-N", "3"]),
        ])
        .collect()
}

/// The kernel has it as long as its settings are shown.
const THREADS: &str = "/proc/fs/nfsd/threads";

/// An agent whose host is dead stops it too, and `pickfs clean` afterwards. Where there is none,
/// `rpc.nfsd 0` would start one to stop it: with version 3, which asks for a portmapper.
const STOP: TakeDown = TakeDown {
    word: "stop_nfs_server",
    named: Named::ByCell,
    removals: |_| {
        let once = |act| Removal { while_there: There::Lasting(vec![GUEST_PROGRAMS.into(), THREADS.into()]), act };
        vec![
            once_in_a_guest(&["exportfs", "-u", "-a"]),
            once(Act::Write(THREADS.into(), "0")),
            once(Act::Run(argv(["umount", "/proc/fs/nfsd"]))),
        ]
    },
};

fn mismatches(seat: &Seat, shown: &MountOptions, served: &str) -> Vec<String> {
    let version = shown.get("vers").and_then(Option::as_deref).unwrap_or("none");
    let version = (version != "4.2").then(|| format!("asked for NFS 4.2, the kernel shows version {version}"));
    let asked = if is_async(seat) { "async" } else { "sync" };
    let is_asked = served.split(['(', ',', ')']).any(|word| word == asked);
    let export = (!is_asked).then(|| format!("asked for an export that is {asked}, the server shows {served}"));
    version.into_iter().chain(export).chain(network::mismatch(&seat.settings, served)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{set, settings, with};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_server_starts_before_the_export_and_the_export_goes_before_the_file_system() {
        let (data, at) = ("127.0.0.1:/run/pickfs-r/target/nfs", "/run/pickfs-r/above");
        let export = format!("exportfs -i -o rw,no_root_squash,no_subtree_check,fsid=0,sync {data}");
        let mount = format!("mount -t nfs4 -o vers=4.2,proto=tcp 127.0.0.1:/ {at}");
        assert_eq!(
            set("nfs", json!({})),
            [
                "run ip link set lo up".to_string(),
                "run modprobe nfsd".into(),
                "run mount -t nfsd nfsd /proc/fs/nfsd".into(),
                "run rpc.nfsd --host 127.0.0.1 -N 3 -V 4.2 8; back: stop nfs server pickfsC".into(),
                "run find / -maxdepth 0 -fprintf /proc/fs/nfsd/v4_end_grace Y".into(),
                "run rpc.mountd -N 3; back: kill PICKFS_DAEMON=pickfsC".into(),
                format!("run {export}"),
                format!("run {mount}; back: unmount {at}"),
            ]
        );
        let share = with(&["nfs"], Settings::default()).remove(0);
        let joined = |all: Vec<Argv>| all.iter().map(|words| words.join(" ")).collect::<Vec<_>>();
        assert_eq!(joined(share.mount()), [export, mount]);
        assert_eq!(joined(share.unmount()), [format!("umount {at}"), format!("exportfs -u {data}")]);
        assert!(set("nfs", json!({"export": "async"}))[6].contains("fsid=0,async "));
    }

    #[test]
    fn another_version_or_export_than_was_asked_for_is_a_mismatch() {
        let shown = |version: &str| MountOptions::from([("vers".to_string(), Some(version.to_string()))]);
        let served = "/run/pickfs-r/target/nfs  127.0.0.1(sync,wdelay,hide,no_subtree_check,fsid=0,sec=sys,rw)\n";
        for (given, version, wrong) in
            [(json!({}), "4.2", 0), (json!({}), "4.1", 1), (json!({"export": "async"}), "4.2", 1)]
        {
            let found = with(&["nfs"], settings(given))[0].mismatches("nfs4", &shown(version), served);
            assert_eq!(found.len(), wrong, "{found:?}");
        }
    }

    #[test]
    fn it_lies_on_a_file_system_alone() {
        assert!(objection("nfs", "ext4").is_none() && objection("gocryptfs", "nfs").is_none());
        assert!(objection("nfs", "nfs").is_some() && objection("nfs", "bindfs").is_some());
    }
}
