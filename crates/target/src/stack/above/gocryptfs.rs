//! gocryptfs: a folder whose names and content are encrypted by a program (AES-256-GCM, EME).

use super::*;

pub(crate) const GOCRYPTFS: Above = Above {
    name: "gocryptfs",
    about: "an encrypted folder: AES-256-GCM, blocks of 4 KiB, a program in Go",
    needs: &[
        Need::Root,
        Need::Program { name: "gocryptfs", package: "gocryptfs" },
        // Its server gives its output to it, and keeps the pipes of the mount where it is missing.
        Need::Program { name: "logger", package: "bsdutils" },
        // It is mounted by it, and its package does not depend on that.
        Need::Program { name: "fusermount", package: "fuse3" },
        FUSE,
    ],
    versions: &[("gocryptfs", &["gocryptfs", "--version"])],
    kind: "fuse.gocryptfs",
    folders: &["gocryptfs"],
    stores: "gocryptfs",
    // Opening is not what is measured: the smallest cost of scrypt that it takes.
    make: |seat| vec![Step::run("encrypt the folder", words(&["-init", "-scryptn", "10"], &[&seat.data()]))],
    mount: |seat| words(&["-allow_other"], &[&seat.data(), &seat.at()]),
    ..Above::ENCRYPTS
};

/// The password is printed by a program, as nothing here is secret. With `-nosyslog` the server
/// would keep the pipes that the mount's output is read from.
fn words(options: &[&str], folders: &[&str]) -> Argv {
    let common = ["-q", "-extpass", "echo", "-extpass", "pickfs"];
    argv(["gocryptfs"].iter().chain(&common).chain(options).chain(folders))
}

#[cfg(test)]
mod tests {
    use super::super::example::sentences;

    #[test]
    fn the_folder_is_encrypted_once_and_opened_by_the_same_password() {
        let (password, data) = ("-q -extpass echo -extpass pickfs", "/run/pickfs-r/target/gocryptfs");
        let at = "/run/pickfs-r/above";
        assert_eq!(
            sentences("gocryptfs"),
            [
                format!("run gocryptfs {password} -init -scryptn 10 {data}"),
                format!("run gocryptfs {password} -allow_other {data} {at}; back: unmount {at}"),
            ]
        );
    }
}
