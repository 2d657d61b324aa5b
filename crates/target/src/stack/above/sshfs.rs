//! sshfs: a folder shared by our own SSH server, on this machine.
//!
//! ssh starts the server on a pipe (`ProxyCommand`, `sshd -i`), so there is no port that could be
//! taken, and no network: what is measured is SFTP, encryption and FUSE. Where the network is
//! shaped, the server listens on a port. Keys of both sides are made for the cell and lie in
//! memory.

use super::network::{SETTINGS, is_shaped};
use super::*;

pub(crate) const SSHFS: Above = Above {
    name: "sshfs",
    about: "a folder shared by SSH: client and server on this machine, over a pipe",
    settings: &SETTINGS,
    needs: &[
        Need::Root,
        Need::Program { name: "sshfs", package: "sshfs" },
        Need::Program { name: "ssh", package: "openssh-client" },
        Need::Program { name: "ssh-keygen", package: "openssh-client" },
        Need::Program { name: "sshd", package: "openssh-server" },
        Need::Program { name: "unshare", package: "util-linux" },
        Need::File { path: "/run/sshd", hint: "`mkdir -p /run/sshd`, which the start of ssh.service does too" },
        FUSE,
    ],
    versions: &[("sshfs", &["sshfs", "--version"]), ("ssh", &["ssh", "-V"])],
    kind: "fuse.sshfs",
    folders: &["sshfs"],
    stores: "sshfs",
    hides: &[CASE_FOLDING, CREATION_TIME, REFLINKS],
    weakens: &[
        "other clients see what was written after a file is closed (close-to-open)",
        "what is written to a file is durable after its fsync, or a sync of the server after it was closed",
    ],
    make,
    mount,
    facts: |seat| is_shaped(&seat.settings).then(network::shown).into_iter().collect(),
    mismatches: |seat, _, served| network::mismatch(&seat.settings, served).into_iter().collect(),
    ..Above::SERVED
};

const HOST: &str = "sshfs-host-key";
const USER: &str = "sshfs-user-key";

fn key(name: &str, file: &str) -> Step {
    Step::run(format!("make {name}"), ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "pickfs", "-f", file])
}

/// Of a server that is reached through a network; in a guest it takes none from others.
const PORT: &str = "2222";

/// sshd writes over its environment, so the cell's mark stays with unshare(1), whose end is that of
/// all processes of the server. It is ready when it takes the cell's own key: another server at its
/// port would not.
fn make(seat: &Seat) -> Vec<Step> {
    let keys = [HOST, USER].map(|name| key(name, &seat.key(name))).into_iter();
    if !is_shaped(&seat.settings) {
        return keys.collect();
    }
    let own = ["unshare", "--pid", "--fork", "--kill-child=KILL"].map(String::from);
    let listens = ["-D", "-e", "-p", PORT, "-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none"].map(String::from);
    let options = format!("-F /dev/null -p {PORT} {}", client(seat).map(|option| format!("-o {option}")).join(" "));
    let words = options.split(' ').chain(["-s", "root@127.0.0.1", "sftp"]);
    let server = Action::Daemon {
        argv: own.into_iter().chain(server(seat)).chain(listens).collect(),
        ready: argv(std::iter::once("ssh").chain(words)),
    };
    keys.chain(network::steps(seat)).chain([seat.daemon("sshd", server)]).collect()
}

fn client(seat: &Seat) -> [String; 5] {
    let key = format!("IdentityFile={}", seat.key(USER));
    let options = ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"];
    let [batch, checks, known, level] = options.map(String::from);
    [key, batch, checks, known, level]
}

/// Nothing of the configuration of this machine is read, on either side.
fn server(seat: &Seat) -> Argv {
    let [key, users] = [seat.key(HOST), format!("AuthorizedKeysFile={}.pub", seat.key(USER))];
    let options = [&users, "StrictModes=no", "UsePAM=no", "LogLevel=ERROR", "Subsystem=sftp internal-sftp"];
    let options = options.into_iter().flat_map(|option| ["-o", option]);
    argv(["/usr/sbin/sshd", "-f", "/dev/null", "-h", &key].into_iter().chain(options))
}

fn mount(seat: &Seat) -> Argv {
    let pipe = || {
        // ssh gives it to a shell.
        let words = server(seat).into_iter().map(|word| if word.contains(' ') { format!("'{word}'") } else { word });
        format!("ProxyCommand={} -i", words.collect::<Vec<_>>().join(" "))
    };
    let way = if is_shaped(&seat.settings) { ["-p".into(), PORT.into()] } else { ["-o".into(), pipe()] };
    let client = format!("allow_other,default_permissions,{}", client(seat).join(","));
    argv([
        "sshfs",
        &format!("root@127.0.0.1:{}", seat.data()),
        &seat.at(),
        "-F",
        "/dev/null",
        &way[0],
        &way[1],
        "-o",
        &client,
    ])
}

#[cfg(test)]
mod tests {
    use super::super::example::{sentences, set};
    use serde_json::json;

    #[test]
    fn keys_of_both_sides_are_made_before_the_server_is_started() {
        let said = sentences("sshfs");
        let cell = "/dev/shm/pickfs-r/cell";
        let key = |name: &str| format!("run ssh-keygen -q -t ed25519 -N  -C pickfs -f {cell}/sshfs-{name}-key");
        assert_eq!(said[..2], [key("host"), key("user")]);
        let server =
            format!("sshd -f /dev/null -h {cell}/sshfs-host-key -o AuthorizedKeysFile={cell}/sshfs-user-key.pub");
        assert!(said[2].contains(&server) && said[2].ends_with("; back: unmount /run/pickfs-r/above"), "{said:?}");
        assert!(said[2].contains("'Subsystem=sftp internal-sftp' -i -o allow_other"), "{said:?}");
    }

    #[test]
    fn through_a_shaped_network_the_server_listens_on_a_port() {
        let said = set("sshfs", json!({"delay": "1ms"}));
        let (server, client) = (&said[4], &said[5]);
        let marked = "start unshare --pid --fork --kill-child=KILL /usr/sbin/sshd ";
        assert!(server.starts_with(marked) && server.contains(" -p 2222 "), "{server}");
        let ready = "until ssh -F /dev/null -p 2222 -o IdentityFile=/dev/shm/pickfs-r/cell/sshfs-user-key ";
        assert!(server.contains(ready) && server.contains(" -s root@127.0.0.1 sftp; "), "{server}");
        assert!(server.ends_with("back: kill PICKFS_DAEMON=pickfsC"), "{server}");
        assert!(client.contains(" -p 2222 ") && !client.contains("ProxyCommand"), "{client}");
    }
}
