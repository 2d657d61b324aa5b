//! `pickfs list options`: what people turn, by what has it; docs/options.md is made of the same
//! rows.

use pickfs_core::plan::{Tunable, TunableDefault, TunableKind, TunableValue};
use pickfs_target::stack::{MACHINE, fs, layer};
use serde_json::{Value, json};

/// A file system, a layer, the queue of a device or the kernel.
pub(super) struct Owner {
    pub name: &'static str,
    pub about: &'static str,
    tunables: Vec<&'static Tunable>,
}

pub(super) fn owners() -> Vec<Owner> {
    let filesystems = fs::ALL.iter().map(|fs| owner(fs.name, fs.about, fs.tunables.rows()));
    let layers = layer::ALL.iter().map(|one| owner(one.name, one.about, one.tunables.rows()));
    let of_machine = |kind| MACHINE.rows().iter().filter(move |tunable| tunable.kind == kind);
    let queue = "the queue of the device below, in a plan `queue` and `scheduler`";
    let queue = owner("queue", queue, of_machine(TunableKind::Queue));
    let kernel = owner("sysctl", "the kernel's memory, in a plan `sysctl`", of_machine(TunableKind::Sysctl));
    filesystems.chain([queue, kernel]).chain(layers).filter(|owner| !owner.tunables.is_empty()).collect()
}

fn owner(name: &'static str, about: &'static str, rows: impl IntoIterator<Item = &'static Tunable>) -> Owner {
    Owner { name, about, tunables: rows.into_iter().collect() }
}

impl Owner {
    pub(super) fn json(&self) -> Value {
        self.tunables.iter().map(|tunable| option(tunable)).collect()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.tunables.iter().flat_map(|tunable| lines(tunable)).collect()
    }
}

fn option(tunable: &Tunable) -> Value {
    let value = |value: &TunableValue| {
        let weakens = value.weakens.map(|(what, how)| json!({ "what": what.word(), "how": how }));
        json!({ "name": value.name, "words": value.words, "weakens": weakens, "excludes": value.excludes,
            "existing": tunable.line(value) })
    };
    let (default, depends) = match tunable.default {
        TunableDefault::Is(name) => (Some(name), None),
        TunableDefault::Depends(words) => (None, Some(words)),
    };
    json!({
        "name": tunable.name,
        "set": tunable.kind.word(),
        "about": tunable.about,
        "values": tunable.values.iter().map(value).collect::<Vec<_>>(),
        "default": default,
        "default_depends": depends,
        "existing": tunable.change.words(),
        "since": tunable.since,
        "source": tunable.source,
        "read_back": tunable.read_back(),
        "in_a_plan": tunable.is_settable(),
    })
}

fn default(tunable: &Tunable) -> &'static str {
    match tunable.default {
        TunableDefault::Is(words) | TunableDefault::Depends(words) => words,
    }
}

/// "128: features (no dates after 2038)".
fn costs(tunable: &Tunable) -> Vec<String> {
    let cost = |value: &TunableValue| {
        let (what, how) = value.weakens?;
        Some(format!("{}: {} ({how})", value.name, what.word()))
    };
    tunable.values.iter().filter_map(cost).collect()
}

fn lines(tunable: &Tunable) -> Vec<String> {
    let values: Vec<&str> = tunable.values.iter().map(|value| value.name).collect();
    let head = format!("{} ({}): {}", tunable.name, tunable.kind.word(), tunable.about);
    let values = format!("    {}; default {}", values.join(", "), default(tunable));
    let costs = costs(tunable).into_iter().map(|cost| format!("    costs with {cost}"));
    let since = if tunable.since.is_empty() { String::new() } else { format!("; {}", tunable.since) };
    let existing = format!("    existing: {}{since} [{}]", tunable.change.words(), tunable.source);
    [head, values].into_iter().chain(costs).chain([existing]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    fn page() -> String {
        let mut text = "# Options: what people turn, and what it costs\n\n\
            Made of the data of the drivers (`make schema`); `pickfs list options NAME` prints the same, `--json` for programs. \
            Values are those worth a trial,\nas written into a plan; others are allowed. Of ext4, xfs and btrfs each \
            value was made, mounted and read back, and each single default found in force\n(e2fsprogs 1.47.0, xfsprogs 6.1.0, \
            btrfs-progs 6.2, Linux 6.18; a test does so where it runs). Defaults of the others come from the source \
            named next to them.\n"
            .to_string();
        for owner in owners() {
            let _ = writeln!(text, "\n## {}\n\n{}.\n", owner.name, owner.about);
            text.push_str(
                "| option | set by | values | default | what it costs | existing file system | since; source |\n\
                 |---|---|---|---|---|---|---|\n",
            );
            owner.tunables.iter().for_each(|tunable| text.push_str(&row(tunable)));
        }
        text
    }

    fn row(tunable: &Tunable) -> String {
        let value = |value: &TunableValue| match value.words {
            [] => value.name.to_string(),
            words => format!("`{}`", words.join(" ")),
        };
        let values: Vec<String> = tunable.values.iter().map(value).collect();
        let existing = tunable.change.words();
        let since: Vec<&str> = [tunable.since, tunable.source].into_iter().filter(|text| !text.is_empty()).collect();
        let (name, about, kind) = (tunable.name, tunable.about, tunable.kind.word());
        let cells = [
            format!("`{name}`: {about}"),
            kind.to_string(),
            values.join(", "),
            default(tunable).to_string(),
            costs(tunable).join("; "),
            existing,
            since.join("; "),
        ];
        format!("| {} |\n", cells.join(" | "))
    }

    #[test]
    fn the_page_has_every_option() {
        let (path, wanted) = (concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md"), page());
        if std::env::var_os("PICKFS_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &wanted).expect("the page is written");
        }
        assert!(
            std::fs::read_to_string(path).ok() == Some(wanted),
            "docs/options.md is out of date: run `make schema`"
        );
    }

    /// What a page or a program shows is all of a row.
    #[test]
    fn entries_have_names_values_and_sources() {
        let owners = owners();
        let names: Vec<&str> = owners.iter().map(|owner| owner.name).collect();
        assert_eq!(names, ["bcachefs", "btrfs", "ext4", "f2fs", "xfs", "zfs", "queue", "sysctl", "luks"]);
        for owner in &owners {
            let options = owner.json();
            for option in options.as_array().unwrap() {
                let is_said = |key: &str| option[key].as_str().is_some_and(|text| !text.is_empty());
                assert!(["name", "set", "about", "existing", "source"].iter().all(|key| is_said(key)), "{option}");
                assert!(is_said("default") != is_said("default_depends"), "{option}");
            }
        }
        let shown = owners.iter().find(|owner| owner.name == "ext4").unwrap().lines().join("\n");
        assert!(
            shown.contains("inode_size (mkfs): bytes of an inode\n    128, 256, 512, 1024; default 256\n"),
            "{shown}"
        );
        assert!(shown.contains("costs with off: durability (after a crash it must be checked"), "{shown}");
    }
}
