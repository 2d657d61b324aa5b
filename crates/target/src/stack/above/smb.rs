//! SMB 3.1.1: the kernel's client (cifs), and Samba's smbd as the server, by TCP over the loopback
//! device.
//!
//! smbd reads a configuration of the cell alone, which lies in memory with all that it keeps. Its
//! port is one for the whole machine, so it is started in guests alone.

use super::network::{DELAY, IP, LOSS, RATE};
use super::*;

pub(crate) const SMB: Above = Above {
    name: "smb",
    about: "a folder shared by SMB 3.1.1: the kernel's client and Samba, by TCP in one guest",
    settings: &[DELAY, ENCRYPTION, EXPORT, LOSS, NAMES, RATE],
    needs: &[
        Need::Root,
        GUEST,
        IP,
        Need::Program { name: "find", package: "findutils" },
        Need::Program { name: "unshare", package: "util-linux" },
        Need::Program { name: "smbd", package: "samba" },
        Need::Program { name: "testparm", package: "samba-common-bin" },
        Need::Program { name: "smbclient", package: "smbclient" },
        Need::Program { name: "mount.cifs", package: "cifs-utils" },
    ],
    modules: &["cifs"],
    versions: &[("smbd", &["smbd", "--version"]), ("mount.cifs", &["mount.cifs", "-V"])],
    kind: "cifs",
    folders: &["smb"],
    stores: "smb",
    is_lowest: true,
    hides: &[CASE_FOLDING, CREATION_TIME, REFLINKS],
    keeps_no: &[MODES],
    weakens: &[
        "owners and modes of files are not kept, and a symbolic link is a file that other clients see as one (mfsymlinks)",
        "names that differ in upper and lower case alone are one name, unless `names = \"case-sensitive\"`",
        "with `export = \"async\"` an fsync does not wait for the disk of the server (smb.conf(5))",
    ],
    make,
    mount,
    facts: |seat| {
        let shown = argv(["testparm", "-s", &seat.key(CONFIGURATION)]);
        vec![("smb.conf", shown), network::shown()]
    },
    mismatches,
    ..Above::SERVED
};

const ENCRYPTION: Setting =
    choice("encryption", &["plain", "sealed"], "whether what passes is encrypted; `plain` unless given");
const EXPORT: Setting = choice(
    "export",
    &["async", "sync"],
    "whether an fsync is answered before what was written is on the server's disk; `sync` unless given",
);
const NAMES: Setting = choice(
    "names",
    &["case-insensitive", "case-sensitive"],
    "whether names that differ in case alone are one; so it is unless given, and whole folders are searched for it",
);

const fn choice(name: &'static str, words: &'static [&'static str], about: &'static str) -> Setting {
    setting(name, SettingKind::Choice(words), None, about)
}

fn is_sealed(seat: &Seat) -> bool {
    seat.settings.text(ENCRYPTION.name) == Some("sealed")
}

/// The one that the protocol has.
const PORT: &str = "445";
const HOST: &str = "127.0.0.1";
/// Of root, the only user with a password; nothing here is secret.
const USERS: &str = "smb-users";
const PASSWORD: &str = "pickfs";
/// MD4 of the password in UTF-16, as smbpasswd(5) has it.
const HASH: &str = "E4A95223359A13C600C45E4969284023";
const CONFIGURATION: &str = "smb.conf";
/// All that smbd keeps.
const KEPT: &str = "smb";

fn share(seat: &Seat) -> String {
    format!("//{HOST}/{}", seat.name)
}

/// Samba's defaults, but for where it listens and keeps its files, and what is no share of files.
fn configuration(seat: &Seat) -> String {
    let kept = seat.key(KEPT);
    let folders = ["private dir", "lock directory", "state directory", "cache directory", "pid directory"];
    let mut lines = vec![
        "[global]".into(),
        "server role = standalone server".into(),
        "netbios name = pickfs".into(),
        "interfaces = lo".into(),
        "bind interfaces only = yes".into(),
        "disable netbios = yes".into(),
        format!("smb ports = {PORT}"),
        format!("passdb backend = smbpasswd:{}", seat.key(USERS)),
        "load printers = no".into(),
        "printcap name = /dev/null".into(),
        "disable spoolss = yes".into(),
        format!("ncalrpc dir = {kept}/rpc"),
    ];
    lines.extend(folders.map(|folder| format!("{folder} = {kept}")));
    lines.extend([format!("[{}]", seat.name), format!("path = {}", seat.data()), "read only = no".into()]);
    lines.extend(asked_of_samba(seat).into_iter().map(|line| line.to_lowercase()));
    lines.into_iter().map(|line| line + "\\n").collect()
}

/// smbd writes over its environment as sshd does, so the cell's mark stays with unshare(1), whose
/// end is that of all processes of the server. It is ready when it has a share of the cell's name:
/// another server at its port has none.
fn make(seat: &Seat) -> Vec<Step> {
    let users = format!("root:0:{}:{HASH}:[U          ]:LCT-60000000:\\n", "X".repeat(32));
    let written = |says: &str, name: &str, text: &str| {
        Step::run(format!("write {says}"), ["find", "/", "-maxdepth", "0", "-fprintf", &seat.key(name), text])
    };
    let configuration_file = seat.key(CONFIGURATION);
    let starts =
        ["unshare", "--pid", "--fork", "--kill-child=KILL", "smbd", "-F", "--debug-stdout", "--no-process-group", "-s"];
    let login = format!("root%{PASSWORD}");
    let asks = ["smbclient", "-s", &configuration_file, "-p", PORT, "-t", "10", "-U", &login, "-c", "exit"];
    let server = Action::Daemon {
        argv: argv(starts.into_iter().chain([&*configuration_file])),
        ready: argv(asks.into_iter().chain([&*share(seat)])),
    };
    network::steps(seat)
        .into_iter()
        .chain([
            Step::folder("make a folder for what smbd keeps", seat.key(KEPT).into()),
            written("who has a password", USERS, &users),
            written("smbd's configuration", CONFIGURATION, &configuration(seat)),
            seat.daemon("smbd", server),
        ])
        .collect()
}

fn mount(seat: &Seat) -> Argv {
    let seal = if is_sealed(seat) { ",seal" } else { "" };
    let options = format!("vers=3.1.1,port={PORT},username=root,password={PASSWORD},mfsymlinks{seal}");
    argv(["mount", "-t", "cifs", "-o", &options, &share(seat), &seat.at()])
}

/// Of a share, as testparm shows it: it leaves defaults out.
fn asked_of_samba(seat: &Seat) -> Vec<&'static str> {
    let names = match seat.settings.text(NAMES.name) {
        Some("case-sensitive") => Some("case sensitive = Yes"),
        Some(_) => Some("case sensitive = No"),
        None => None,
    };
    let is_async = seat.settings.text(EXPORT.name) == Some("async");
    names.into_iter().chain(is_async.then_some("strict sync = No")).collect()
}

fn mismatches(seat: &Seat, shown: &MountOptions, served: &str) -> Vec<String> {
    let version = shown.get("vers").and_then(Option::as_deref).unwrap_or("none");
    let version = (version != "3.1.1").then(|| format!("asked for SMB 3.1.1, the kernel shows version {version}"));
    let seal = is_sealed(seat) != shown.contains_key("seal");
    let seal = seal.then(|| "the kernel shows other encryption than was asked for".to_string());
    let ours = |line: &&str| line.starts_with("case sensitive") || line.starts_with("strict sync");
    let (asked, found) = (asked_of_samba(seat), served.lines().map(str::trim).filter(ours).collect::<Vec<_>>());
    let wrong = (asked != found).then(|| format!("asked for a share with {asked:?}, Samba shows {found:?}"));
    version.into_iter().chain(seal).chain(wrong).chain(network::mismatch(&seat.settings, served)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{set, settings, with};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_server_has_a_configuration_of_the_cell_and_is_ready_when_it_has_the_share() {
        let said = set("smb", json!({}));
        let (kept, at) = ("/dev/shm/pickfs-r/cell", "/run/pickfs-r/above");
        let ending = |line: &str| line.chars().rev().take(60).collect::<String>().chars().rev().collect::<String>();
        assert_eq!(said.len(), 5, "{said:?}");
        assert_eq!(said[0], "run ip link set lo up");
        assert!(said[1].contains("-fprintf /dev/shm/pickfs-r/cell/smb-users root:0:XX"), "{}", said[1]);
        let share = "[pickfsC]\\npath = /run/pickfs-r/target/smb\\nread only = no\\n";
        assert!(said[2].contains(&format!("private dir = {kept}/smb\\n")) && said[2].ends_with(share), "{}", said[2]);
        let starts = format!(
            "start unshare --pid --fork --kill-child=KILL smbd -F --debug-stdout --no-process-group -s {kept}/smb.conf "
        );
        assert!(said[3].starts_with(&starts), "{}", said[3]);
        assert!(said[3].contains("-c exit //127.0.0.1/pickfsC; "), "{}", ending(&said[3]));
        assert!(said[3].ends_with("back: kill PICKFS_DAEMON=pickfsC"), "{}", ending(&said[3]));
        let options = "vers=3.1.1,port=445,username=root,password=pickfs,mfsymlinks";
        assert_eq!(said[4], format!("run mount -t cifs -o {options} //127.0.0.1/pickfsC {at}; back: unmount {at}"));
    }

    #[test]
    fn what_is_asked_of_samba_is_in_its_configuration_and_is_read_back() {
        let asked = json!({"export": "async", "names": "case-sensitive", "encryption": "sealed"});
        let said = set("smb", asked.clone());
        assert!(said[2].ends_with("\\ncase sensitive = yes\\nstrict sync = no\\n"), "{}", said[2]);
        assert!(said[4].contains(",mfsymlinks,seal "), "{}", said[4]);
        let shown = |names: &[&str]| -> MountOptions {
            let flags = names.iter().map(|name| (name.to_string(), None));
            flags.chain([("vers".to_string(), Some("3.1.1".to_string()))]).collect()
        };
        let [none, both] = ["[pickfsC]\n\tread only = No\n", "\tcase sensitive = Yes\n\tstrict sync = No\n"];
        for (given, names, served, wrong) in [
            (json!({}), &[][..], none, 0),
            (json!({"export": "sync", "encryption": "plain"}), &[], none, 0),
            (json!({}), &["seal"], both, 2),
            (asked.clone(), &["seal"], both, 0),
            (asked, &[], none, 2),
        ] {
            let found = with(&["smb"], settings(given.clone()))[0].mismatches("cifs", &shown(names), served);
            assert_eq!(found.len(), wrong, "{given}: {found:?}");
        }
        let old = MountOptions::from([("vers".to_string(), Some("2.1".to_string()))]);
        assert_eq!(with(&["smb"], Settings::default())[0].mismatches("cifs", &old, none).len(), 1);
    }
}
