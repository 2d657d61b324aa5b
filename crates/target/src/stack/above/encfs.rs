//! EncFS: a folder whose names and content are encrypted by a program, in its standard mode.

use super::*;

pub(crate) const ENCFS: Above = Above {
    name: "encfs",
    about: "an encrypted folder: AES, blocks of 1 KiB, a program in C++",
    needs: &[Need::Root, Need::Program { name: "encfs", package: "encfs" }, FUSE],
    versions: &[("encfs", &["encfs", "--version"])],
    kind: "fuse.encfs",
    folders: &["encfs"],
    stores: "encfs",
    weakens: &[
        "its authors advise against it where someone may see several versions of the encrypted files (audit of 2014)",
    ],
    // The first mount makes it. The program that prints the password is one of the shell's, which
    // EncFS starts.
    mount: |seat| argv(["encfs", "--standard", "--public", "--extpass=echo pickfs", &seat.data(), &seat.at()]),
    ..Above::ENCRYPTS
};
