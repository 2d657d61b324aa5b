//! mergerfs: two folders shown as one by a program.

use super::*;

pub(crate) const MERGERFS: Above = Above {
    name: "mergerfs",
    about: "two folders of one file system shown as one by a program, which creates files by its policy `epmfs`",
    needs: &[Need::Root, Need::Program { name: "mergerfs", package: "mergerfs" }, FUSE],
    versions: &[("mergerfs", &["mergerfs", "--version"])],
    kind: "fuse.mergerfs",
    folders: &["mergerfs", "mergerfs/1", "mergerfs/2"],
    stores: "mergerfs",
    // A file lies in either of the two.
    keeps_names: false,
    // By itself it creates nothing where less than 4 GiB are free.
    mount: |seat| {
        argv(["mergerfs", "-o", "allow_other,minfreespace=0", &format!("{0}/1:{0}/2", seat.data()), &seat.at()])
    },
    ..Above::SERVED
};
