//! sshfs: a folder shared by an SSH server of our own, on this machine.
//!
//! ssh starts the server on a pipe (`ProxyCommand`, `sshd -i`), so there is no port that could be taken, and no network: what is
//! measured is SFTP, encryption and FUSE. Keys of both sides are made for the cell and lie in memory.

use super::*;

pub(crate) const SSHFS: Above = Above {
    name: "sshfs",
    about: "a folder shared by SSH: client and server on this machine, over a pipe",
    needs: &[
        Need::Root,
        Need::Program { name: "sshfs", package: "sshfs" },
        Need::Program { name: "ssh", package: "openssh-client" },
        Need::Program { name: "ssh-keygen", package: "openssh-client" },
        Need::Program { name: "sshd", package: "openssh-server" },
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
    make: |seat| [HOST, USER].map(|name| key(name, &seat.key(name))).into(),
    mount,
    ..Above::SERVED
};

const HOST: &str = "sshfs-host-key";
const USER: &str = "sshfs-user-key";

fn key(name: &str, file: &str) -> Step {
    Step::run(format!("make {name}"), ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "pickfs", "-f", file])
}

/// Nothing of the configuration of this machine is read, on either side.
fn mount(seat: &Seat) -> Argv {
    let server = format!(
        "ProxyCommand=/usr/sbin/sshd -i -f /dev/null -h {} -o AuthorizedKeysFile={}.pub -o StrictModes=no -o UsePAM=no \
         -o LogLevel=ERROR -o 'Subsystem=sftp internal-sftp'",
        seat.key(HOST),
        seat.key(USER)
    );
    let client = format!(
        "allow_other,default_permissions,IdentityFile={},BatchMode=yes,StrictHostKeyChecking=no,\
         UserKnownHostsFile=/dev/null,LogLevel=ERROR",
        seat.key(USER)
    );
    argv([
        "sshfs",
        &format!("root@localhost:{}", seat.data()),
        &seat.at(),
        "-F",
        "/dev/null",
        "-o",
        &server,
        "-o",
        &client,
    ])
}

#[cfg(test)]
mod tests {
    use super::super::example::sentences;

    #[test]
    fn keys_of_both_sides_are_made_before_the_server_is_started() {
        let said = sentences("sshfs");
        let cell = "/dev/shm/pickfs-r/cell";
        let key = |name: &str| format!("run ssh-keygen -q -t ed25519 -N  -C pickfs -f {cell}/sshfs-{name}-key");
        assert_eq!(said[..2], [key("host"), key("user")]);
        let server =
            format!("sshd -i -f /dev/null -h {cell}/sshfs-host-key -o AuthorizedKeysFile={cell}/sshfs-user-key.pub");
        assert!(said[2].contains(&server) && said[2].ends_with("; back: unmount /run/pickfs-r/above"), "{said:?}");
    }
}
