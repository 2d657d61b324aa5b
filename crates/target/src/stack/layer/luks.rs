//! LUKS2 encryption of every device below.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer {
        steps,
        fact: |below| ("cryptsetup status", argv(["cryptsetup", "status", below.name])),
        tunables: Tunables(include_str!("luks/tunables.toml")),
        opens: Some(|below| {
            let programs = below.each(|device, name| vec![open_words(device, name, "-")]);
            Opening { programs, key: Some(key(below)) }
        }),
        mismatches,
        ..data
    }
}

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

/// The layer's own: there may be one of its kind above it.
fn key(below: &Below) -> PathBuf {
    below.memory.join(format!("{}-key", below.name))
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
