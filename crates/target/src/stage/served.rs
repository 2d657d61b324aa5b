//! Existing folders on mounts that a program or another machine serves: what is known of them by
//! name, and what is not seen of them.

use procfs::process::MountInfo;

/// Types of mounts whose files another machine keeps, or the host of this one (9p, virtiofs).
const FAR: &[&str] = &[
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs",
    "pvfs2", "smb3", "smbfs", "virtiofs",
];

/// What serves a mount: "nfs4 of host:/export". Nothing where the kernel of this machine has its
/// device, as FUSE has for `fuseblk`.
pub(crate) fn served(mount: &MountInfo) -> Option<Served> {
    let kind = mount.fs_type.as_str();
    let is_far = FAR.contains(&kind);
    let is_program = kind == "fuse" || kind.starts_with("fuse.");
    let name = format!("{kind} of {}", mount.mount_source.as_deref().unwrap_or("unknown"));
    (is_far || is_program).then_some(Served { name, is_far })
}

pub(crate) struct Served {
    name: String,
    is_far: bool,
}

impl Served {
    /// Why a phase that starts cold is not proved to have done so.
    pub(crate) fn warm(&self) -> String {
        let whose =
            if self.is_far { "its server" } else { "the program that serves it, and of what lies behind that," };
        format!("{}: the cache of {whose} cannot be dropped from here", self.name)
    }

    /// A fact of the cell.
    pub(crate) fn not_covered(&self) -> String {
        let whose = if self.is_far { "of its server" } else { "behind the program that serves it" };
        format!(
            "{}; not seen: caches, processor and disk {whose}, what other clients see, and whether what was synced is durable there",
            self.name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_programs_and_of_other_machines_are_known_by_their_type() {
        let mount = |kind: &str| {
            let line = format!("36 35 0:40 / /mnt rw,relatime shared:1 - {kind} host:/srv rw");
            served(&MountInfo::from_line(&line).unwrap())
        };
        for (kind, is_far) in
            [("nfs4", true), ("virtiofs", true), ("ceph", true), ("fuse.sshfs", false), ("fuse", false)]
        {
            let served = mount(kind).unwrap();
            assert_eq!(served.is_far, is_far, "{kind}");
            assert!(served.warm().starts_with(&format!("{kind} of host:/srv: the cache of ")), "{}", served.warm());
            assert_eq!(served.not_covered().contains("of its server"), is_far, "{}", served.not_covered());
        }
        for kind in ["ext4", "fuseblk", "overlay", "zfs"] {
            assert!(mount(kind).is_none(), "{kind}");
        }
    }
}
