//! bindfs: a folder shown elsewhere by a program, unchanged. What FUSE alone costs.

use super::*;

pub(crate) const BINDFS: Above = Above {
    name: "bindfs",
    about: "a folder shown elsewhere by a program, unchanged: what FUSE alone costs",
    needs: &[Need::Root, Need::Program { name: "bindfs", package: "bindfs" }, FUSE],
    versions: &[("bindfs", &["bindfs", "--version"])],
    folders: &["bindfs"],
    stores: "bindfs",
    weakens: &["an fsync of a folder does not make its names durable (found by `ledger` with bindfs 1.14.7)"],
    mount: |seat| argv(["bindfs", &seat.data(), &seat.at()]),
    ..Above::SERVED
};
