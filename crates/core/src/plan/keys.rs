//! Every key of a plan, a row each: its name, kind and range, default, example, words, what it
//! sets, and its flag. The reader, the JSON schema, docs/plan.md, `pickfs help keys`, the command
//! line, what `--resume` may change and the words for another machine all follow from the row.
//! Settings of plug-ins (backings, layers, workloads, executors) are theirs, and are not here.

use super::Plan;
use super::SettingKind::{self, Choice, Count, Duration, Flag, Share, Size, Text, Texts, Within};
use super::flag::{self, given};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write;

/// A key, and all that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub(super) kind: Kind,
    /// As a user would type it.
    pub(super) default: Option<&'static str>,
    /// A value as it stands in a plan.
    pub example: &'static str,
    pub(super) about: &'static str,
    pub(super) flag: Option<flag::Flag>,
    /// Puts it into the plan; `None` for a key that is read together with others.
    pub(super) set: Option<fn(&mut Plan, Value)>,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A value that is right or wrong by itself.
    Is(SettingKind),
    /// What only its own reader can check.
    Own(Shape),
    /// A table with its own keys.
    Below(&'static KeyTable),
}

/// What can be said of a value that its own reader checks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Any,
    List,
    /// A number, or one for each phase.
    Amounts,
    Executor,
    Filesystem,
    Workload,
    Backing,
    Targets,
    Matrix,
    Works,
}

/// One of the tables of a plan.
#[derive(Clone, Copy, Debug)]
pub struct KeyTable {
    /// As it stands above its keys; empty for those of the whole plan.
    pub head: &'static str,
    pub about: &'static str,
    pub keys: &'static [Key],
}

/// Tables of rows `name: Kind = "default", "example", "about", sets PLACE, flag(...);`, in the
/// order of a plan.
macro_rules! keys {
    ($($(#[$doc:meta])* $vis:vis $table:ident: $head:literal, $said:literal {
        $($(#[$cfg:meta])* $name:ident: $kind:ident($($of:tt)*) $(= $default:literal)?, $example:literal, $about:literal
            $(, sets $($place:ident).+)?
            $(, flag($value:literal $(, $help:literal)? $(, $field:ident = $is:expr)*))?;)*
    })*) => {
        pub const ALL: &[&KeyTable] = &[$(&$table),*];

        $($(#[$doc])* $vis static $table: KeyTable = KeyTable {
            head: $head,
            about: $said,
            keys: &[$($(#[$cfg])* {
                #[allow(unused_mut)]
                let mut key = Key {
                    name: stringify!($name),
                    kind: Kind::$kind($($of)*),
                    example: $example,
                    about: $about,
                    ..NO_KEY
                };
                $(key.default = Some($default);)?
                $(key.set = Some(|plan, value| put(&mut plan.$($place).+, value));)?
                $(key.flag = Some(flag::Flag { $($field: $is,)* ..given($value, concat!($($help)?)) });)?
                key
            }),*],
        };)*
    };
}

/// A row says what is not as here.
pub(super) const NO_KEY: Key =
    Key { name: "", kind: Kind::Is(Text), default: None, example: "", about: "", flag: None, set: None };

keys! {
    pub(super) PLAN: "", "Keys of the whole plan; they come before the first `[table]`" {
        title: Is(Text), "\"Daily work\"", "what reports are headed with; by default the file's name";
        seed: Is(Count) = "1", "1", "all that is random comes from it", sets seed, flag("SEED", "Random seed");
        reference: Is(Text), "\"ext4\"", "name of the target that the others are compared with; by default the first";
        rank_weakened: Is(Flag) = "false", "true", "rank targets too whose options promise less after a crash",
            sets rank_weakened;
        executor: Own(Shape::Executor), "\"vm\"",
            "where the work runs: on this machine, in a virtual machine, or simulated (`pickfs list executors`)";
        machine: Own(Shape::Any), "{ kernel = \"trixie\" }", "settings of that machine, for all targets";
        jobs: Is(Within(1, 1000)), "4", "cells at once; only where they are simulated, else 1",
            flag("N", "Simulate N cells at once [default: as many as there are processors]", needs = &["sim"]);
        turn: Is(Choice(&["alone", "shared"])), "\"shared\"",
            "what other runs do meanwhile: wait (`alone`), or go on where they share the machine as well (`shared`); only in guests",
            sets turn;
        other_speeds: Is(Flag), "false",
            "whether a simulated verdict is checked with processors half and twice as fast, one alone, and twice as many; only there";
        discard: Is(Choice(&["none", "fresh", "trim"])), "\"fresh\"",
            "whether unused blocks are discarded (TRIM): `none`, `fresh` (all, before mkfs) or `trim` (what is free later, too)";
        duplicate: Is(Flag), "false",
            "whether the reference runs a second time, hidden, as a check of the machine; true unless given, but in simulations";
        backing: Own(Shape::Backing), "{ image = { dir = \".\", size = \"20GiB\" } }",
            "where the bytes live, for all targets: `pickfs list backings`";
        target: Own(Shape::Targets), "[{ fs = \"ext4\" }]", "the tables `[[target]]` below, on one line";
        matrix: Own(Shape::Matrix), "{ scheduler = [\"none\", \"bfq\"] }", "the table `[matrix]` below, on one line";
        work: Own(Shape::Works), "[{ workload = \"tree\" }]", "the tables `[[work]]` below, on one line";
        verdict: Below(&VERDICT), "{ require = [\"snapshots\"] }", "the table `[verdict]` below, on one line";
        stop: Below(&STOP), "{ budget = \"2h\" }", "the table `[stop]` below, on one line";
        host: Below(&HOST), "{ dirty_bytes = \"1GiB\" }", "the table `[host]` below, on one line";
    }

    pub(super) TARGET: "[[target]]", "One file system to compare; add as many as you like" {
        name: Is(Text), "\"ext4 tuned\"", "what it is called; by default what distinguishes it";
        fs: Own(Shape::Filesystem), "\"btrfs\"",
            "the file system: `pickfs list fs`; none on `backing = { directory = ... }`, which has its own";
        variant: Is(Text), "\"zstd:1\"", "a named set of its options, as `pickfs list fs` shows them";
        mkfs: Is(Texts), "[\"-m\", \"0\"]", "options for its mkfs and their values; no path, no device";
        mount: Is(Texts), "[\"noatime\"]", "mount options; properties, on ZFS";
        nodatacow: Is(Flag), "true", "files are written in place (`chattr +C`), where the file system can";
        overlay: Is(Flag) = "false", "true", "the work sees it through overlayfs, as a container does: `above = [\"overlayfs\"]`";
        above: Own(Shape::List), "[\"gocryptfs\"]",
            "what lies between it and the work, the lowest first: `pickfs list above`";
        scheduler: Is(Text), "\"mq-deadline\"", "I/O scheduler of the device: none, mq-deadline, kyber or bfq";
        age: Is(Text), "\"churn 5x\"", "makes it old before the work: `churn Nx` or `git N`";
        fill: Is(Text), "\"80%\"", "share of it that is filled before the work";
        backing: Own(Shape::Backing), "{ device = { path = \"/dev/sdX\" } }",
            "where its own bytes live, instead of the plan's";
        layers: Own(Shape::List), "[\"luks\", \"lvm\"]",
            "what lies below the file system, the lowest first: `pickfs list layers`";
        machine: Own(Shape::Any), "{ memory = \"4GiB\" }", "settings of its machine, added to the plan's";
        queue: Own(Shape::Any), "{ nr_requests = 64 }",
            "settings of the device's queue, as in /sys/block/DEVICE/queue";
        sysctl: Own(Shape::Any), "{ vfs_cache_pressure = 50 }",
            "settings of the kernel, as in /proc/sys/vm, while it is this target's turn";
    }

    /// In this order the values come in a product's name, which is the order in a name that is made
    /// from a target.
    pub(super) MATRIX: "[matrix]", "Every target with every value; settings of the machine too" {
        mkfs: Is(Texts), "[\"\", \"-m 0\"]", "words for mkfs; \"\" stands for none";
        mount: Is(Texts), "[\"\", \"noatime\"]", "mount options";
        scheduler: Is(Texts), "[\"none\", \"bfq\"]", "I/O schedulers";
        age: Is(Texts), "[\"none\", \"churn 5x\"]", "what makes them old", flag("AGE",
            "Make every file system old first, such as \"churn 5x\" or \"git 100\"; several, and \"none\", to compare");
        fill: Is(Texts), "[\"0%\", \"80%\"]", "how full they are",
            flag("SHARE", "Fill every file system first, such as 80%; several, such as 0%,80%, to compare");
    }

    /// All other keys of a work are settings of its workload.
    pub WORK: "[[work]]", "What is done on each target; settings of the workload go in here too" {
        name: Is(Text), "\"home\"", "what it is called; by default its workload";
        workload: Own(Shape::Workload), "\"tree\"",
            "what is done: `pickfs list workloads`, which shows the settings of each";
        repeats: Is(Within(1, 100)) = "1", "6", "how often phases that only read are done in each cell";
        weight: Own(Shape::Amounts), "2",
            "how much it matters in the verdict, or `{ PHASE = ... }`; 0 leaves it out";
        count: Own(Shape::Amounts), "{ write = 1, tar-read = 5 }",
            "how often this work (or each phase) happens in real use; total time then decides";
    }

    pub(super) VERDICT: "[verdict]", "What a target must offer, and the most it may cost, to be ranked" {
        require: Is(Texts), "[\"snapshots\", \"checksums\"]", "features that a target must have: `pickfs list features`",
            flag("FEATURE", "Features that a file system must have to be in the verdict, such as snapshots,checksums \
                (`pickfs list features`)");
        holds: Own(Shape::Any), "{ file = \"20TiB\", volume = \"100TiB\" }",
            "sizes that it must be able to hold: `file`, `volume`, `name`";
        limit: Own(Shape::Any), "{ space = \"120GiB\", \"write/cpu\" = \"5s\" }",
            "the most that it may cost, as METRIC or PHASE/METRIC: `time`, `cpu`, `space`, `p99`, `loss`, or a name of the \
             journal";
    }

    pub(super) STOP: "[stop]", "When it is enough" {
        rounds: Is(Within(1, super::MOST_ROUNDS as u64)), "20",
            "exactly this number of rounds, instead of stopping when it is enough", sets stop.rounds,
            flag("N", "Run exactly N rounds instead of stopping adaptively", excludes = &["precision"], may_change = true);
        precision: Is(Share), "\"2%\"", "until every difference is known to within this margin", sets stop.precision,
            flag("SHARE", "Stop when every 95 % interval is at most ± this wide, such as 2%", may_change = true);
        race: Is(Flag) = "true", "false", "whether targets that are shown to be slower leave", sets stop.race;
        budget: Is(Duration), "\"2h\"", "no further round is begun after this time", sets stop.budget_ns,
            flag("TIME", "Begin no further round after this time, such as 2h [default, without --rounds and --precision: \
                what the work needs, 3min or more]", may_change = true);
        cell: Is(Duration) = "10m", "\"30m\"", "a cell that takes longer is ended and has failed", sets stop.cell_ns;
        threshold: Is(Share) = "3%", "\"5%\"", "the smallest difference in time worth acting on", sets stop.threshold;
    }

    pub(super) HOST: "[host]", "How the kernel writes back and idles; restored after the run" {
        dirty_bytes: Is(Size), "\"1GiB\"",
            "how much may be unwritten before writers wait; a fifth of memory unless given", sets host.dirty_bytes;
        dirty_background_bytes: Is(Size), "\"256MiB\"",
            "how much may be before it is written; a tenth of memory unless given", sets host.dirty_background_bytes;
        dirty_expire: Is(Duration), "\"15s\"",
            "how long data may be unwritten before they are; 30s unless given", sets host.dirty_expire_ns;
        cpu_latency_us: Is(Within(0, 1_000_000)), "0",
            "microseconds that an idle processor may take to wake up (`/dev/cpu_dma_latency`): 0 keeps all awake; as the \
                machine is unless given", sets host.cpu_latency_us;
        #[cfg(test)]
        planted: Is(Within(1, 9)), "3", "a key of one row", sets host.dirty_expire_ns, flag("N", may_change = true);
    }
}

impl Key {
    /// What is said of it, with its default.
    pub fn about(&self) -> String {
        self.default.map_or(self.about.into(), |text| format!("{}; {text} unless given", self.about))
    }
}

/// A value that was checked by its kind, in its place.
fn put<T: DeserializeOwned>(place: &mut T, value: Value) {
    if let Ok(value) = serde_json::from_value(value) {
        *place = value;
    }
}

impl KeyTable {
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// The table's own key.
    pub(super) fn name(&self) -> &'static str {
        self.head.trim_matches(['[', ']'])
    }
}

/// docs/plan.md.
pub fn page() -> String {
    "# Every key of a plan\n\nGenerated from the list that plans are checked against (`make schema`); `pickfs help keys` prints the same. \
        Settings of file systems,\nbackings, layers, workloads and executors are shown by `pickfs list`. Examples are in \
        [examples/](../examples/).\n"
        .to_string()
        + &page_of("##", "The plan", ALL)
}

/// Tables of Markdown below headings of this level; `whole` is the heading of keys that stand in no
/// table.
pub fn page_of(level: &str, whole: &str, tables: &[&KeyTable]) -> String {
    let mut text = String::new();
    for table in tables {
        let head = if table.head.is_empty() { whole.to_string() } else { format!("`{}`", table.head) };
        let _ = writeln!(text, "\n{level} {head}\n\n{}.\n\n| key | such as | meaning |\n|---|---|---|", table.about);
        for key in table.keys {
            let Key { name, example, .. } = key;
            let _ = writeln!(text, "| `{name}` | `{name} = {example}` | {} |", key.about());
        }
    }
    text
}
