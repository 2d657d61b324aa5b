//! ext4, and what its elders ext2 and ext3 share with it.

use super::*;

pub(crate) const EXT4: Filesystem = Filesystem {
    name: "ext4",
    about: "journalling, the default of Debian's installer",
    making: Making { mkfs: |spec| mke2fs("ext4", spec), ..EXT.making },
    without: &[
        Without { what: "checksums", mkfs: &["-O", "^metadata_csum"], mount: &[] },
        Without { what: "journal, log and transactions", mkfs: &["-O", "^has_journal"], mount: &[] },
    ],
    // Documentation/filesystems/ext4/blocks.rst of Linux: extents hold 2^32 blocks of a file and lie within 2^48 blocks.
    limits: Limits { file: Some(16 << 40), volume: Some(1 << 60), ..EXT.limits },
    // By the super block (ext4(5), FILE SYSTEM FEATURES). Where it was not read, a journal is assumed, as nearly always.
    features: Features {
        more: &[CASE_FOLDING, CREATION_TIME, ENCRYPTION, METADATA_CHECKSUMS],
        depending: &[
            (CASE_FOLDING, |state| flag(state, "casefold") == Some(true)),
            (CRASH_CONSISTENCY, |state| flag(state, "has_journal") != Some(false)),
            (ENCRYPTION, |state| flag(state, "encrypt") == Some(true)),
            (METADATA_CHECKSUMS, |state| flag(state, "metadata_csum") == Some(true)),
        ],
        ..EXT.features
    },
    upkeep: &[
        CHECK,
        // Only files with extents (e4defrag(8)).
        Upkeep::mounted("defrag", &[&["e4defrag"]]),
        GROW_MOUNTED,
        // With the feature, the kernel counts from the mount on (tune2fs(8)); what was there before, tune2fs counts.
        Upkeep {
            needs: &[QUOTA],
            counts_users: true,
            ..Upkeep::unmounted("quota", &[&["tune2fs", "-O", "quota", "-Q", "usrquota,grpquota", DEVICE]])
        },
        SHRINK_UNMOUNTED,
    ],
    // ext4(5), KERNEL SUPPORT; what of them keeps it from being read or written, fs/ext4/ext4.h of Linux.
    kernel: Kernel {
        since: &[
            ("", ToRead, "2.6.28"),
            ("mmp", ToRead, "3.0"),
            ("inline_data", ToRead, "3.8"),
            ("encrypt", ToRead, "4.1"),
            ("metadata_csum_seed", ToRead, "4.4"),
            ("ea_inode", ToRead, "4.13"),
            ("large_dir", ToRead, "4.13"),
            ("casefold", ToRead, "5.2"),
            ("bigalloc", ToWrite, "3.2"),
            ("quota", ToWrite, "3.6"),
            ("metadata_csum", ToWrite, "3.18"),
            ("project", ToWrite, "4.5"),
            ("verity", ToWrite, "5.4"),
        ],
        ..EXT.kernel
    },
    tunables: Tunables(include_str!("ext4/tunables.toml")),
    ..EXT
};

/// What all three share.
pub(super) const EXT: Filesystem = Filesystem {
    // One module serves all three.
    kernel: Kernel { slabs: &["ext4", "jbd2"], ..Kernel::DEFAULT },
    making: Making {
        lists: &["-E", "-O"],
        options: MkfsOptions { folders: &["-d"], programs: &[] },
        ..Filesystem::DEFAULT.making
    },
    tools: &[("mke2fs", "e2fsprogs"), ("dumpe2fs", "e2fsprogs")],
    // On less, mke2fs leaves the journal out and says so only in a warning.
    limits: Limits { least: 2 << 20, ..Limits::DEFAULT },
    facts: &[("dumpe2fs", &["dumpe2fs", "-h", DEVICE])],
    versions: &[("mke2fs", &["mke2fs", "-V"])],
    free_space: Some(FreeSpace { program: &["e2freefrag", DEVICE], extents: free_extents }),
    upkeep: &[CHECK, GROW_MOUNTED, SHRINK_UNMOUNTED],
    // resize2fs(8).
    features: Features { usual: &[CRASH_CONSISTENCY, GROW, SHRINK], ..Features::DEFAULT },
    mounting: Mounting {
        options: mount_names::EXT,
        // As ext4(5) documents them and as the kernel shows them (fs/ext4/super.c of Linux). Defaults are not shown.
        spellings: &[
            ("auto_da_alloc=0", "noauto_da_alloc"),
            ("auto_da_alloc=1", "auto_da_alloc"),
            ("barrier=0", "nobarrier"),
            ("barrier=1", "barrier"),
            ("bsdgroups", "grpid"),
            ("dioread_lock", "nodioread_nolock"),
            ("no_mbcache", "nombcache"),
            ("noload", "norecovery"),
            ("sysvgroups", "nogrpid"),
        ],
        // A commit interval over the default 5 s; no barriers; old data after a crash where new were promised (ext4(5)).
        weakens: |option| {
            let weak = ["nobarrier", "journal_async_commit", "data=writeback", "noauto_da_alloc"];
            weak.contains(&option) || number_above(option, "commit=", 5)
        },
        ..Mounting::DEFAULT
    },
    ..Filesystem::DEFAULT
};

const CHECK: Upkeep = Upkeep::unmounted("check", &[&["e2fsck", "-f", "-n", DEVICE]]);
const GROW_MOUNTED: Upkeep = Upkeep { before: (false, TO_HALF), ..Upkeep::mounted("grow", &[&["resize2fs", DEVICE]]) };
const SHRINK_UNMOUNTED: Upkeep = Upkeep::unmounted("shrink", TO_HALF);
/// resize2fs(8) makes nothing smaller that was not checked just before.
const TO_HALF: &[&[&str]] = &[&["e2fsck", "-f", "-p", DEVICE], &["resize2fs", DEVICE, HALF]];

const QUOTA: Need = Need::KernelFunction {
    what: "quotas of ext4 (CONFIG_QFMT_V2)",
    function: "v2_read_file_info",
    module: "quota_v2",
    hint: "leave `quota` out of `operations`, or run it on Debian's kernel, here or in a guest (executor = \"vm\")",
};

fn flag(state: &FsState, name: &str) -> Option<bool> {
    state.says("dumpe2fs", "Filesystem features:", name)
}

/// Nothing is left for the kernel to initialise in the background while a phase runs, and directory hashes come from
/// the round's seed.
pub(super) fn mke2fs(kind: &str, spec: &FsSpec) -> Argv {
    let discard = if spec.discard { "discard" } else { "nodiscard" };
    let extended = format!("{discard},lazy_itable_init=0,lazy_journal_init=0,hash_seed={}", uuid(spec.seed));
    // mke2fs sees the last `-E` alone: ours would be lost.
    let mut words = argv(["mke2fs", "-t", kind, "-q", "-F", "-E", &extended]);
    spec::add(&mut words, &["-E"], &spec.mkfs);
    words.extend(spec.devices());
    words
}

/// The seed in a shape that mke2fs takes for a hash seed.
fn uuid(seed: u64) -> String {
    let hex = format!("{seed:016x}{:016x}", !seed);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// e2freefrag(8), which counts in KiB.
fn free_extents(text: &str, _block: u64) -> Option<(f64, f64)> {
    Some((super::number(text, "Num. free extent")?, super::number(text, "Avg. free extent")? * 1024.0))
}
