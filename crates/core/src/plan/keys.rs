//! Every key of a plan, table by table: what the check allows, and what editors, `pickfs help keys` and docs/plan.md say of it.
//! Settings of plug-ins (backings, layers, workloads, executors) are theirs, and are not here.

/// A key, how it is written, and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    /// A value as it stands in a plan.
    pub example: &'static str,
    pub about: &'static str,
}

/// One of the tables of a plan.
#[derive(Clone, Copy, Debug)]
pub struct KeyTable {
    /// As it stands above its keys; empty for those of the whole plan.
    pub head: &'static str,
    pub about: &'static str,
    pub keys: &'static [Key],
}

const fn key(name: &'static str, example: &'static str, about: &'static str) -> Key {
    Key { name, example, about }
}

const fn names<const N: usize>(keys: &[Key; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = keys[at].name;
        at += 1;
    }
    names
}

/// In the order of a plan.
pub const ALL: &[KeyTable] = &[
    KeyTable { head: "", about: "The whole plan, above the first line that begins with `[`", keys: &PLAN },
    KeyTable { head: "[[target]]", about: "One thing compared; as many as wanted", keys: &TARGET },
    KeyTable { head: "[matrix]", about: "Every target with every value; settings of the machine too", keys: &MATRIX },
    KeyTable {
        head: "[[work]]",
        about: "What is done on each; settings of the workload stand beside these keys",
        keys: &WORK,
    },
    KeyTable {
        head: "[verdict]",
        about: "What a target must have, hold and cost at most to be in the verdict",
        keys: &VERDICT,
    },
    KeyTable { head: "[stop]", about: "When it is enough", keys: &STOP },
    KeyTable { head: "[host]", about: "How the kernel writes back; restored after the run", keys: &HOST },
];

const PLAN: [Key; 18] = [
    key("title", "\"Daily work\"", "what reports are headed with; by default the file's name"),
    key("seed", "1", "all that is random comes from it; 1 unless given"),
    key("reference", "\"ext4\"", "name of the target that the others are compared with; by default the first"),
    key("rank_weakened", "true", "rank targets too whose options promise less after a crash; false unless given"),
    key("executor", "\"vm\"", "how the machine is reached that does the work: `pickfs list executors`"),
    key("machine", "{ kernel = \"trixie\" }", "settings of that machine, for all targets"),
    key("jobs", "4", "cells at once; only where they are simulated, else 1"),
    key(
        "turn",
        "\"shared\"",
        "what other runs do meanwhile: wait (`alone`), or go on where they share the machine as well (`shared`); only in guests",
    ),
    key(
        "other_speeds",
        "false",
        "whether a simulated verdict is checked with processors half and twice as fast; only there",
    ),
    key(
        "discard",
        "\"fresh\"",
        "what is said to the drive of unused blocks: `none`, `fresh` (all, before mkfs) or `trim` (fstrim too)",
    ),
    key(
        "duplicate",
        "false",
        "whether the reference runs a second time, hidden, as a check of the machine; true unless given",
    ),
    key(
        "backing",
        "{ image = { dir = \".\", size = \"20GiB\" } }",
        "where the bytes live, for all targets: `pickfs list backings`",
    ),
    key("target", "[{ fs = \"ext4\" }]", "the tables `[[target]]` below, on one line"),
    key("matrix", "{ scheduler = [\"none\", \"bfq\"] }", "the table `[matrix]` below, on one line"),
    key("work", "[{ workload = \"tree\" }]", "the tables `[[work]]` below, on one line"),
    key("verdict", "{ require = [\"snapshots\"] }", "the table `[verdict]` below, on one line"),
    key("stop", "{ budget = \"2h\" }", "the table `[stop]` below, on one line"),
    key("host", "{ dirty_bytes = \"1GiB\" }", "the table `[host]` below, on one line"),
];
pub(super) const PLAN_KEYS: [&str; 18] = names(&PLAN);

const TARGET: [Key; 14] = [
    key("name", "\"ext4 tuned\"", "what it is called; by default what distinguishes it"),
    key(
        "fs",
        "\"btrfs\"",
        "the file system: `pickfs list fs`; none on `backing = { directory = ... }`, which has its own",
    ),
    key("variant", "\"zstd:1\"", "a named set of its options, as `pickfs list fs` shows them"),
    key("mkfs", "[\"-m\", \"0\"]", "options for its mkfs and their values; no path, no device"),
    key("mount", "[\"noatime\"]", "mount options; properties, on ZFS"),
    key("nodatacow", "true", "files are written in place (`chattr +C`), where the file system can"),
    key("overlay", "true", "the work sees it through overlayfs, as a container does; false unless given"),
    key("scheduler", "\"mq-deadline\"", "I/O scheduler of the device: none, mq-deadline, kyber or bfq"),
    key("age", "\"churn 5x\"", "makes it old before the work: `churn Nx` or `git N`"),
    key("fill", "\"80%\"", "share of it that is filled before the work"),
    key("backing", "{ device = { path = \"/dev/sdX\" } }", "where its own bytes live, instead of the plan's"),
    key("layers", "[\"luks\", \"lvm\"]", "what lies below the file system, the lowest first: `pickfs list layers`"),
    key("machine", "{ memory = \"4GiB\" }", "settings of its machine, besides the plan's"),
    key("queue", "{ nr_requests = 64 }", "settings of the device's queue, as in /sys/block/DEVICE/queue"),
];
pub(super) const TARGET_KEYS: [&str; 14] = names(&TARGET);

/// In this order the values come in a product's name, which is the order in a name that is made from a target.
const MATRIX: [Key; 5] = [
    key("mkfs", "[\"\", \"-m 0\"]", "words for mkfs; \"\" stands for none"),
    key("mount", "[\"\", \"noatime\"]", "mount options"),
    key("scheduler", "[\"none\", \"bfq\"]", "I/O schedulers"),
    key("age", "[\"none\", \"churn 5x\"]", "what makes them old"),
    key("fill", "[\"0%\", \"80%\"]", "how full they are"),
];
pub(super) const MATRIX_KEYS: [&str; 5] = names(&MATRIX);

/// All other keys of a work are settings of its workload.
const WORK: [Key; 5] = [
    key("name", "\"home\"", "what it is called; by default its workload"),
    key("workload", "\"tree\"", "what is done: `pickfs list workloads`, which shows the settings of each"),
    key("repeats", "6", "how often phases that only read are done in each cell; 1 unless given"),
    key("weight", "2", "how much it matters in the verdict, or `{ PHASE = ... }`; 0 leaves it out"),
    key("count", "{ write = 1, tar-read = 5 }", "how often it is done in life, or each phase: then times add"),
];
pub const WORK_KEYS: [&str; 5] = names(&WORK);

const VERDICT: [Key; 3] = [
    key("require", "[\"snapshots\", \"checksums\"]", "features that a target must have: `pickfs list features`"),
    key(
        "holds",
        "{ file = \"20TiB\", volume = \"100TiB\" }",
        "sizes that it must be able to hold: `file`, `volume`, `name`",
    ),
    key(
        "limit",
        "{ space = \"120GiB\", \"write/cpu\" = \"5s\" }",
        "the most that it may cost, as METRIC or PHASE/METRIC: `time`, `cpu`, `space`, `p99`, `loss`, or a name of the journal",
    ),
];
pub(super) const VERDICT_KEYS: [&str; 3] = names(&VERDICT);

const STOP: [Key; 6] = [
    key("rounds", "20", "exactly this number of rounds, instead of stopping when it is enough"),
    key("precision", "\"2%\"", "until every difference is known this well, to either side"),
    key("race", "false", "whether targets that are shown to be slower leave; true unless given"),
    key("budget", "\"2h\"", "no further round is begun after this time"),
    key("cell", "\"30m\"", "a cell that takes longer is ended and has failed; 10m unless given"),
    key("threshold", "\"5%\"", "the smallest difference in time worth acting on; 3% unless given"),
];
pub(super) const STOP_KEYS: [&str; 6] = names(&STOP);

const HOST: [Key; 3] = [
    key("dirty_bytes", "\"1GiB\"", "how much may be unwritten before writers wait; a fifth of memory unless given"),
    key("dirty_background_bytes", "\"256MiB\"", "how much may be before it is written; a tenth of memory unless given"),
    key("dirty_expire", "\"15s\"", "how long data may be unwritten before they are; 30s unless given"),
];
pub(super) const HOST_KEYS: [&str; 3] = names(&HOST);

/// The key of a table.
pub(super) fn about(head: &str, name: &str) -> Option<&'static Key> {
    ALL.iter().find(|table| table.head == head)?.keys.iter().find(|key| key.name == name)
}
