//! Memory that the kernel keeps for a kind of file system: its inodes, trees, records of the
//! journal (slabinfo(5)).
//!
//! Of all file systems of that kind on the machine. At least so much: a kernel may keep small
//! objects of several kinds in one cache, whose name then says nothing of them (slab_merge), and
//! neither names, which all kinds share, nor blocks of metadata, which are cache of a device, are
//! in it.

use super::{Probe, Reading, Subject, counter};
use crate::stack::fs::of_kernel;

pub(super) const PROBE: Probe = Probe {
    name: "memory",
    about: "by how much the kernel's memory for inodes, trees and journal of this kind of file system has grown",
    read,
    only_after_writing: false,
};

fn read(subject: &Subject) -> Vec<Reading> {
    let slabs = std::fs::read_to_string("/proc/slabinfo").unwrap_or_default();
    let bytes = bytes(&slabs, &subject.filesystem, rustix::param::page_size() as u64);
    bytes.map(|bytes| counter("slab_bytes", bytes as f64)).into_iter().collect()
}

/// `None` where no cache has a name of that kind, which stands in front of an underscore.
fn bytes(slabs: &str, kind: &str, page: u64) -> Option<u64> {
    let named = of_kernel(kind).map_or(&[][..], |driver| driver.kernel.slabs);
    let modules = if named.is_empty() { &[kind] } else { named };
    let of = |line: &str| {
        // Most lines are of others: only ours are taken apart.
        let ours = line.split_once('_').filter(|(module, _)| modules.contains(module));
        let words: Vec<&str> = ours?.1.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        Some(number(14)? * number(5)? * page)
    };
    slabs.lines().filter_map(of).reduce(|sum, more| sum + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLABS: &str = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> ...
xfs_inode             80    144   1024   16    4 : tunables    0    0    0 : slabdata      9      9      0
jbd2_journal_head    306    442    120   34    1 : tunables    0    0    0 : slabdata     13     13      0
ext4_inode_cache   19235  19502   1128   14    4 : tunables    0    0    0 : slabdata   1393   1393      0
ext4_io_end          448    704     64   64    1 : tunables    0    0    0 : slabdata     11     11      0
dentry             35561  36120    192   21    1 : tunables    0    0    0 : slabdata   1720   1720      0
";

    #[test]
    fn caches_of_the_module_count_in_whole_slabs() {
        let rows = [
            ("xfs", Some(9 * 4)),
            ("ext4", Some(13 + 1393 * 4 + 11)),
            ("ext2", Some(13 + 1393 * 4 + 11)),
            ("btrfs", None),
            ("fuse.sshfs", None),
        ];
        for (kind, pages) in rows {
            assert_eq!(bytes(SLABS, kind, 4096), pages.map(|pages| pages * 4096), "{kind}");
        }
        assert_eq!(bytes("", "xfs", 4096), None);
        assert_eq!(bytes("xfs_inode 1 2\n", "xfs", 4096), None);
    }
}
