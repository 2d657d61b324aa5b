//! Memory that the kernel itself took: inodes, names, trees, journals, caches of blocks that are not in the page cache.
//!
//! Of the whole system, so drivers and other programs show here too; page cache and memory of programs do not. A file
//! system that is a program (FUSE) keeps what it knows in its own memory, which is not counted.

use super::{Probe, Reading, Subject, counter};
use procfs::{Current, Meminfo};

pub struct Memory;

impl Probe for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "by how much the kernel's own memory has grown: inodes, names, trees; neither page cache nor programs"
    }

    fn read(&self, _subject: &Subject) -> Vec<Reading> {
        let bytes = Meminfo::current().ok().map(|memory| of_kernel(&memory));
        bytes.map(|bytes| counter("kernel_memory_bytes", bytes as f64)).into_iter().collect()
    }
}

/// What /proc/meminfo counts neither as free, nor for files, nor for programs. Not the sum of its rows of the kernel, as
/// pages that a file system or ZFS asks for directly stand in none of them.
fn of_kernel(memory: &Meminfo) -> u64 {
    let others = [memory.mem_free, memory.buffers, memory.cached, memory.swap_cached];
    let optional = [memory.anon_pages, memory.hugetlb];
    let others = others.into_iter().chain(optional.into_iter().flatten());
    memory.mem_total.saturating_sub(others.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromBufRead;

    #[test]
    fn what_is_neither_free_nor_of_files_nor_of_programs_is_the_kernels() {
        let rows = [
            ("MemTotal", 1000),
            ("MemFree", 100),
            ("Buffers", 20),
            ("Cached", 300),
            ("SwapCached", 1),
            ("Active", 5),
            ("Inactive", 5),
            ("SwapTotal", 0),
            ("SwapFree", 0),
            ("Dirty", 1),
            ("Writeback", 0),
            ("AnonPages", 79),
            ("Mapped", 9),
            ("Slab", 50),
            ("Committed_AS", 7),
            ("VmallocTotal", 9),
            ("VmallocUsed", 1),
            ("VmallocChunk", 0),
            ("Hugetlb", 200),
        ];
        let text: String = rows.iter().map(|(name, kibibytes)| format!("{name}: {kibibytes} kB\n")).collect();
        assert_eq!(of_kernel(&Meminfo::from_buf_read(text.as_bytes()).unwrap()), 300 << 10);
    }
}
