//! What people turn: options of file systems, settings of layers, of the block layer and of the kernel, each as data of its owner,
//! with the values that are worth a trial.

use super::{Catalogue, Settings, Target};

/// An option or a setting that can be turned.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// As its documentation calls it; unique among all that one target can have.
    pub name: &'static str,
    pub kind: TunableKind,
    pub about: &'static str,
    /// In an order that means something: from small to large, from weak to strong.
    pub values: &'static [TunableValue],
    pub default: TunableDefault,
    /// How a file system that is there gets another value.
    pub change: Change,
    /// Kernels and tools that have it.
    pub since: &'static str,
    /// Where default and meaning come from: a manual page, a file of Linux, an address.
    pub source: &'static str,
    /// For options of mkfs, the driver's fact in which [`Shown`] is looked for.
    pub fact: &'static str,
}

/// Where it is set, and so how a target gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A parameter of this kernel module. No plan can set it: it holds for all file systems of the kind on the machine.
    Module(&'static str),
    /// A setting of this layer, where a target has the layer.
    Layer(&'static str),
}

/// A value that is worth a trial.
#[derive(Clone, Copy, Debug)]
pub struct TunableValue {
    /// As people say it: `256`, `zstd:1`, `off`.
    pub name: &'static str,
    /// What a target gets: words of mkfs, mount options, or the one text of a setting. None where that is as good as nothing written.
    pub words: &'static [&'static str],
    /// What the default has and this value has not, in words.
    pub weakens: Option<(Weakened, &'static str)>,
    /// Tunables that must keep their default with it.
    pub excludes: &'static [&'static str],
    pub shown: Shown,
}

/// What a value takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakened {
    /// A crash may take more than with the default.
    Durability,
    Checksums,
    Features,
    Space,
}

/// How a fact shows a value. Blanks and commas all count as one blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// As it was asked for, by the option's or the file's name; a default of a mount is shown nowhere.
    AsAsked,
    Text(&'static str),
    Lacks(&'static str),
}

/// What is in force where a plan says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunableDefault {
    /// The value of that name.
    Is(&'static str),
    /// No single value; in words.
    Depends(&'static str),
}

/// How a file system that is there gets another value. In lines, `{}` stands for the words of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl TunableValue {
    pub const fn new(name: &'static str, words: &'static [&'static str]) -> TunableValue {
        TunableValue { name, words, weakens: None, excludes: &[], shown: Shown::AsAsked }
    }

    pub const fn shown(self, text: &'static str) -> TunableValue {
        TunableValue { shown: Shown::Text(text), ..self }
    }

    /// For what is switched off, and then stands nowhere.
    pub const fn lacks(self, text: &'static str) -> TunableValue {
        TunableValue { shown: Shown::Lacks(text), ..self }
    }

    pub const fn weakens(self, what: Weakened, how: &'static str) -> TunableValue {
        TunableValue { weakens: Some((what, how)), ..self }
    }

    pub const fn excludes(self, names: &'static [&'static str]) -> TunableValue {
        TunableValue { excludes: names, ..self }
    }
}

impl Shown {
    /// Whether the text of a fact agrees.
    pub fn agrees(self, fact: &str) -> bool {
        let folded = |text: &str| {
            let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
            format!(" {} ", words.collect::<Vec<_>>().join(" "))
        };
        match self {
            Shown::AsAsked => true,
            Shown::Text(text) => folded(fact).contains(&folded(text)),
            Shown::Lacks(text) => !folded(fact).contains(&folded(text)),
        }
    }
}

impl Tunable {
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

    /// The target with this value, which leaves its name as it was.
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
        let own = driver.into_iter().flat_map(|entry| entry.tunables);
        own.chain(&self.tunables).filter(has).copied().collect()
    }
}

/// The one file of a queue that is a key of a target by itself.
pub const SCHEDULER: &str = "scheduler";

/// Appends an option of mkfs and its list, to the list that the words have of the same option where they have one.
pub fn join(words: &mut Vec<String>, pair: &[&str]) {
    let at = words.iter().position(|word| Some(&word.as_str()) == pair.first());
    match (at.and_then(|at| words.get_mut(at + 1)), pair) {
        (Some(list), [_, more]) => *list = format!("{list},{more}"),
        _ => words.extend(pair.iter().map(|word| word.to_string())),
    }
}
