//! LUKS2 encryption of every device below.

use super::*;
use crate::stack::fs::tunables::{Is, MKFS, OnlyNew};
use pickfs_core::plan::{TunableKind, TunableValue};

pub(crate) const LUKS: Layer = Layer {
    name: "luks",
    about: "encryption: LUKS2 on every device below",
    settings: &[
        Setting {
            name: "cipher",
            kind: SettingKind::Text,
            default: Some("aes-xts-plain64"),
            about: "as cryptsetup spells it",
        },
        Setting {
            name: "sector",
            kind: SettingKind::Count,
            default: Some("512"),
            about: "bytes that are encrypted at a time",
        },
        DEVICES,
    ],
    needs: &[Need::Root, Need::Program { name: "cryptsetup", package: "cryptsetup-bin" }, MAPPER, MAPS],
    modules: &["dm-crypt", "xts", "aesni-intel"],
    versions: &[("cryptsetup", &["cryptsetup", "--version"])],
    steps,
    fact: |below| ("cryptsetup status", argv(["cryptsetup", "status", below.name])),
    tunables: TUNABLES,
    opens: Some(|below| {
        let programs = below.each(|device, name| vec![open_words(device, name, "-")]);
        Opening { programs, key: Some(key(below)) }
    }),
    mismatches,
    ..Layer::DEFAULT
};

const ONLY_NEW: Tunable =
    Tunable { kind: TunableKind::Layer("luks"), change: OnlyNew, source: "cryptsetup-luksFormat(8)", ..MKFS };

const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "cipher",
        about: "how it encrypts",
        values: &[
            TunableValue::new("aes-xts-plain64", &["aes-xts-plain64"]),
            TunableValue::new("xchacha12,aes-adiantum-plain64", &["xchacha12,aes-adiantum-plain64"]),
        ],
        default: Is("aes-xts-plain64"),
        ..ONLY_NEW
    },
    Tunable {
        name: "sector",
        about: "bytes that are encrypted at a time",
        values: &[TunableValue::new("512", &["512"]), TunableValue::new("4096", &["4096"])],
        default: Is("512"),
        since: "LUKS2, Linux 4.12; cryptsetup from 2.4 on takes 4096 by itself where the device's sectors allow it",
        ..ONLY_NEW
    },
];

fn steps(settings: &Settings, below: &Below) -> Vec<Step> {
    let key = key(below).display().to_string();
    let make_key = argv(["dd", "if=/dev/urandom", &format!("of={key}"), "bs=64", "count=1", "status=none"]);
    let devices = below.each(|device, name| one(settings, device, name, &key));
    std::iter::once(Step::run("make a key", make_key)).chain(devices).collect()
}

fn mismatches(settings: &Settings, shown: &str) -> Vec<Option<String>> {
    let sector = settings.number("sector").unwrap_or_default().to_string();
    // Some versions print the unit.
    let shown_sector = value(shown, "sector size").map(|sector| sector.trim_end_matches(" [bytes]"));
    let cipher = differs("cipher", settings.text("cipher").unwrap_or_default(), value(shown, "cipher"));
    vec![cipher, differs("sector size", &sector, shown_sector)]
}

fn key(below: &Below) -> PathBuf {
    below.memory.join("luks-key")
}

fn open_words(device: &str, name: &str, key: &str) -> Argv {
    argv(["cryptsetup", "open", "--type", "luks2", "--key-file", key, device, name])
}

/// Opening is not what is measured: a key of random bytes needs no slow derivation.
fn one(settings: &Settings, device: &str, name: &str, key: &str) -> Vec<Step> {
    let (cipher, sector) = (settings.text("cipher").unwrap_or_default(), settings.number("sector").unwrap_or_default());
    let sector = sector.to_string();
    let format = ["cryptsetup", "luksFormat", "--batch-mode", "--type", "luks2", "--cipher", cipher, "--sector-size"];
    let rest = [&sector, "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", key, device];
    let [open, used] = open(device, name, open_words(device, name, key));
    vec![Step::run(format!("encrypt {device}"), format.iter().chain(&rest)), open, used]
}
