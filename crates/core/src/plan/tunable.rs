//! What people turn: options of file systems, settings of layers, of the block layer and of the
//! kernel, each as data of its owner, with the values that are worth a trial.

use super::setting::leaked;
use super::{Catalogue, Settings, Target};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The text of a TOML file with a `[[tunable]]` for each [`Tunable`]; it is read when its rows are
/// asked for.
#[derive(Clone, Copy, Debug)]
pub struct Tunables(pub &'static str);

/// An option or a setting that can be turned.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunable {
    /// As its documentation calls it; unique among all that one target can have.
    pub name: &'static str,
    pub kind: TunableKind,
    pub about: &'static str,
    /// In an order that means something: from small to large, from weak to strong.
    #[serde(deserialize_with = "leaked")]
    pub values: &'static [TunableValue],
    pub default: TunableDefault,
    /// How a file system that is there gets another value.
    pub change: Change,
    /// Kernels and tools that have it.
    #[serde(default)]
    pub since: &'static str,
    /// Where default and meaning come from: a manual page, a file of Linux, an address.
    pub source: &'static str,
    /// For options of mkfs, the driver's fact in which [`FactForm`] is looked for.
    #[serde(default)]
    pub fact: &'static str,
}

/// Where it is set, and so how a target gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunableKind {
    /// Words of mkfs.
    Mkfs,
    /// Words of mkfs of an option that takes a list, of which mkfs sees the last one alone.
    MkfsList,
    /// A mount option; a property, on ZFS.
    Mount,
    /// An attribute of the root folder, which new files take over.
    Attribute,
    /// The file of that name of a device's queue.
    Queue,
    /// The file of that name below /proc/sys/vm.
    Sysctl,
    /// A parameter of this kernel module. No plan can set it: it holds for all file systems of the
    /// kind on the machine.
    Module(&'static str),
    /// A setting of this layer, where a target has the layer.
    Layer(&'static str),
}

/// A value that is worth a trial.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunableValue {
    /// As people say it: `256`, `zstd:1`, `off`.
    pub name: &'static str,
    /// What a target gets: words of mkfs, mount options, or the one text of a setting. None where
    /// that is as good as nothing written.
    #[serde(default, deserialize_with = "leaked")]
    pub words: &'static [&'static str],
    /// What the default has and this value has not, in words.
    #[serde(borrow)]
    pub weakens: Option<(Weakened, &'static str)>,
    /// Tunables that must keep their default with it.
    #[serde(default, deserialize_with = "leaked")]
    pub excludes: &'static [&'static str],
    #[serde(default)]
    pub shown: FactForm,
}

/// What a value takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weakened {
    /// A crash may take more than with the default.
    Durability,
    Checksums,
    Features,
    Space,
}

/// How a fact shows a value. Blanks and commas all count as one blank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactForm {
    /// The value asked for, by the option's or the file's name; a default of a mount is shown
    /// nowhere.
    #[default]
    AsAsked,
    Text(&'static str),
    Lacks(&'static str),
}

/// What is in force where a plan says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunableDefault {
    /// The value of that name.
    Is(&'static str),
    /// No single value; in words.
    Depends(&'static str),
}

/// How a file system that is there gets another value. In lines, `{}` stands for the words of the
/// value, and `{value}` for its name; a line with neither switches on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    Remount,
    /// Unmounted, then mounted with it.
    MountAgain,
    /// A program on the device of the unmounted file system.
    Unmounted(&'static str),
    /// A program on the mounted file system.
    Mounted(&'static str),
    /// A program, after which only new files have it.
    NewFiles(&'static str),
    /// Written to its file at any time.
    Write,
    /// Only a new file system has it.
    OnlyNew,
}

impl Weakened {
    pub fn word(self) -> &'static str {
        match self {
            Weakened::Durability => "durability",
            Weakened::Checksums => "checksums",
            Weakened::Features => "features",
            Weakened::Space => "space",
        }
    }
}

impl TunableKind {
    /// In one word, for tables.
    pub fn word(self) -> &'static str {
        match self {
            TunableKind::Mkfs | TunableKind::MkfsList => "mkfs",
            TunableKind::Mount => "mount",
            TunableKind::Attribute => "attribute",
            TunableKind::Queue => "queue",
            TunableKind::Sysctl => "sysctl",
            TunableKind::Module(_) => "module",
            TunableKind::Layer(name) => name,
        }
    }
}

impl Tunables {
    /// Panics where the text is wrong, which a test finds.
    pub fn rows(self) -> &'static [Tunable] {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
        struct File {
            #[serde(default)]
            tunable: Vec<Tunable>,
        }
        static READ: Mutex<BTreeMap<&str, &[Tunable]>> = Mutex::new(BTreeMap::new());
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(self.0).or_insert_with(|| {
            let file: File = toml::from_str(self.0).unwrap_or_else(|error| panic!("tunables came broken: {error}"));
            file.tunable.leak()
        })
    }
}

impl FactForm {
    /// Whether the text of a fact agrees.
    pub fn agrees(self, fact: &str) -> bool {
        let folded = |text: &str| {
            let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
            format!(" {} ", words.collect::<Vec<_>>().join(" "))
        };
        match self {
            FactForm::AsAsked => true,
            FactForm::Text(text) => folded(fact).contains(&folded(text)),
            FactForm::Lacks(text) => !folded(fact).contains(&folded(text)),
        }
    }
}

const REMOUNT: &str = "mount -o remount,{} FOLDER";

impl Change {
    /// For tables, with OPTION for what the value says.
    pub fn words(self) -> String {
        let named = |line: &str| line.replace("{}", "OPTION").replace("{value}", "VALUE");
        match self {
            Change::Remount => named(REMOUNT),
            Change::MountAgain => "unmount it, and mount it with the option".into(),
            Change::Unmounted(line) => format!("{}, unmounted", named(line)),
            Change::Mounted(line) => named(line),
            Change::NewFiles(line) => format!("{}, for what is written then", named(line)),
            Change::Write => "at any time".into(),
            Change::OnlyNew => "only a new one has it".into(),
        }
    }
}

impl Tunable {
    /// The line that gives the value to a file system that is there, with DEVICE, FOLDER or POOL
    /// for what only its owner knows; `None` where there is no such line, or nothing to write.
    pub fn line(&self, value: &TunableValue) -> Option<String> {
        let line = match self.change {
            Change::Remount => REMOUNT,
            Change::Unmounted(line) | Change::Mounted(line) | Change::NewFiles(line) => line,
            Change::MountAgain | Change::Write | Change::OnlyNew => return None,
        };
        let between = if self.kind == TunableKind::Mount { "," } else { " " };
        let fits = line.contains('{') || value.name == "on";
        let filled = || line.replace("{}", &value.words.join(between)).replace("{value}", value.name);
        (fits && !value.words.is_empty()).then(filled)
    }

    /// Where a cell reads it back.
    pub fn read_back(&self) -> String {
        match self.kind {
            TunableKind::Mkfs | TunableKind::MkfsList => self.fact.into(),
            TunableKind::Mount => "/proc/self/mountinfo".into(),
            TunableKind::Attribute => "lsattr".into(),
            TunableKind::Queue => format!("/sys/block/DEVICE/queue/{}", self.name),
            TunableKind::Sysctl => format!("/proc/sys/vm/{}", self.name),
            TunableKind::Module(module) => format!("/sys/module/{module}/parameters/{}", self.name),
            TunableKind::Layer(name) => format!("the status of {name}"),
        }
    }

    pub fn value(&self, name: &str) -> Option<&'static TunableValue> {
        self.values.iter().find(|value| value.name == name)
    }

    /// All values but the default.
    pub fn others(&self) -> impl Iterator<Item = &'static TunableValue> {
        let default = self.default;
        self.values.iter().filter(move |value| default != TunableDefault::Is(value.name))
    }

    /// False where no plan can set it.
    pub fn is_settable(&self) -> bool {
        !matches!(self.kind, TunableKind::Module(_))
    }

    /// The target with this value; its name does not change.
    pub fn applied(&self, target: &Target, value: &TunableValue) -> Target {
        let mut target = target.clone();
        let words = || value.words.iter().map(|word| word.to_string());
        // As a plan's reader keeps it: what a layer counts in is a number.
        let number = |text: String| text.parse::<u64>().map_or(text.clone().into(), serde_json::Value::from);
        let set = |settings: &mut Settings| settings.0.extend(words().map(|text| (self.name.into(), text.into())));
        match self.kind {
            TunableKind::Mkfs => target.mkfs.extend(words()),
            TunableKind::MkfsList => value.words.chunks(2).for_each(|pair| join(&mut target.mkfs, pair)),
            TunableKind::Mount => target.mount.extend(words()),
            TunableKind::Attribute => target.nodatacow |= !value.words.is_empty(),
            TunableKind::Queue if self.name == SCHEDULER => target.scheduler = words().next(),
            TunableKind::Queue => set(&mut target.queue),
            TunableKind::Sysctl => set(&mut target.sysctl),
            TunableKind::Module(_) => {}
            TunableKind::Layer(name) => {
                target
                    .layers
                    .iter_mut()
                    .filter(|layer| layer.name == name)
                    .for_each(|layer| layer.settings.0.extend(words().map(|text| (self.name.into(), number(text)))));
            }
        }
        target
    }
}

impl Catalogue {
    /// All that a plan can turn of a target, without what another target must have too.
    pub fn tunables_of(&self, target: &Target) -> Vec<Tunable> {
        let driver = self.filesystems.iter().find(|entry| Some(entry.name) == target.fs.as_deref());
        let has = |tunable: &&Tunable| match tunable.kind {
            TunableKind::Layer(name) => target.layers.iter().any(|layer| layer.name == name),
            _ => tunable.is_settable(),
        };
        let own = driver.map(|entry| entry.tunables);
        own.iter().chain(&self.tunables).flat_map(|file| file.rows()).filter(has).copied().collect()
    }
}

/// The one file of a queue that is a key of a target by itself.
pub const SCHEDULER: &str = "scheduler";

/// Appends an option of mkfs and its list, to the list that the words have of the same option where
/// they have one.
pub fn join(words: &mut Vec<String>, pair: &[&str]) {
    let at = words.iter().position(|word| Some(&word.as_str()) == pair.first());
    match (at.and_then(|at| words.get_mut(at + 1)), pair) {
        (Some(list), [_, more]) => *list = format!("{list},{more}"),
        _ => words.extend(pair.iter().map(|word| word.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Chosen;

    const LIST: TunableValue = value("off", &["-O", "^has_journal"]);

    const fn value(name: &'static str, words: &'static [&'static str]) -> TunableValue {
        TunableValue { name, words, weakens: None, excludes: &[], shown: FactForm::AsAsked }
    }

    fn tunable(kind: TunableKind, name: &'static str) -> Tunable {
        let (change, default) = (Change::Remount, TunableDefault::Is("off"));
        Tunable { name, kind, about: "", values: &[LIST], default, change, since: "", source: "", fact: "" }
    }

    /// Where each kind goes in a target, as TOML would have put it there.
    #[test]
    fn a_value_goes_where_its_kind_is_set() {
        let luks = Chosen { name: "luks".into(), ..Chosen::default() };
        let given = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let target = Target { mkfs: given(&["-O", "quota"]), layers: vec![luks], ..Target::default() };
        let applied =
            |kind, name, words: &'static [&'static str]| tunable(kind, name).applied(&target, &value("x", words));
        assert_eq!(applied(TunableKind::Mkfs, "a", &["-I", "128"]).mkfs, given(&["-O", "quota", "-I", "128"]));
        let list = applied(TunableKind::MkfsList, "a", &["-O", "bigalloc", "-C", "65536"]).mkfs;
        assert_eq!(list, given(&["-O", "quota,bigalloc", "-C", "65536"]));
        assert_eq!(applied(TunableKind::Mount, "a", &["noatime"]).mount, given(&["noatime"]));
        assert!(applied(TunableKind::Attribute, "a", &["+C"]).nodatacow);
        assert_eq!(applied(TunableKind::Queue, SCHEDULER, &["bfq"]).scheduler.as_deref(), Some("bfq"));
        assert_eq!(applied(TunableKind::Queue, "nr_requests", &["64"]).queue.text("nr_requests"), Some("64"));
        assert_eq!(applied(TunableKind::Sysctl, "dirty_bytes", &["64"]).sysctl.text("dirty_bytes"), Some("64"));
        let layer = |words| applied(TunableKind::Layer("luks"), "sector", words).layers[0].settings.clone();
        assert_eq!((layer(&["4096"]).number("sector"), layer(&["aes"]).text("sector")), (Some(4096), Some("aes")));
        assert_eq!(applied(TunableKind::Module("zfs"), "a", &["1"]), target);
    }

    #[test]
    fn lines_have_the_words_of_the_value() {
        let two = value("on", &["journal_async_commit", "data=writeback"]);
        let line = |kind, change, of: &TunableValue| Tunable { change, ..tunable(kind, "a") }.line(of);
        let remounted = line(TunableKind::Mount, Change::Remount, &two);
        assert_eq!(remounted.as_deref(), Some("mount -o remount,journal_async_commit,data=writeback FOLDER"));
        let tuned = line(TunableKind::MkfsList, Change::Unmounted("tune2fs {} DEVICE"), &LIST);
        assert_eq!(tuned.as_deref(), Some("tune2fs -O ^has_journal DEVICE"));
        assert_eq!(line(TunableKind::Mkfs, Change::OnlyNew, &LIST), None);
        let on = value("on", &["-O", "bgt"]);
        let converted = |of| line(TunableKind::Mkfs, Change::Unmounted("btrfstune --to DEVICE"), of);
        assert_eq!((converted(&on).as_deref(), converted(&LIST)), (Some("btrfstune --to DEVICE"), None));
        let balanced = line(TunableKind::Mkfs, Change::Mounted("balance {value} FOLDER"), &on);
        assert_eq!(balanced.as_deref(), Some("balance on FOLDER"));
        assert_eq!(line(TunableKind::Mount, Change::Remount, &value("off", &[])), None);
    }

    #[test]
    fn facts_are_read_by_words() {
        let fact = "Filesystem features:  has_journal\textent\nInode size:\t          1280\nfinobt=1, sparse=1";
        for (shown, agrees) in [
            (FactForm::Text("Inode size: 1280"), true),
            (FactForm::Text("Inode size: 128"), false),
            (FactForm::Text("finobt=1"), true),
            (FactForm::Lacks("has_journal"), false),
            (FactForm::Lacks("journal"), true),
            (FactForm::AsAsked, true),
        ] {
            assert_eq!(shown.agrees(fact), agrees, "{shown:?}");
        }
    }
}
