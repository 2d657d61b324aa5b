//! LVM: a volume group over all devices below, and one logical volume in it.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer {
        least_by_settings: |settings| stripes(settings) as usize,
        steps: |settings, below| {
            let mut steps = group(below);
            let stripes = stripes(settings).to_string();
            let words = ["--extents", "100%FREE", "--stripes", &stripes, below.name];
            steps.extend([volume(VOLUME, &words), use_volume(below.name)]);
            steps
        },
        fact: |below| ("lvs", listing(below.name, "lv_name,segtype,stripes,stripe_size,lv_size,devices")),
        opens: Some(|below| Opening {
            programs: vec![command(&["vgchange", "--activate", "y", below.name])],
            key: None,
        }),
        mismatches: |settings, shown| {
            vec![differs("stripes", &stripes(settings).to_string(), field(shown, "LVM2_STRIPES"))]
        },
        take_down: Some(&GROUP),
        ..data
    }
}

/// A volume group with all its volumes. What marks the devices as parts of it stays on them, and
/// means nothing without it.
const GROUP: TakeDown = TakeDown {
    word: "remove_group",
    named: Named::ByLayer(str::to_string),
    removals: |remains| {
        let list = command(&["vgs", "--noheadings", "--options", "vg_name"]);
        let remove = command(&["vgremove", "--force", "--force", "--yes", remains.name]);
        vec![Removal { while_there: There::line(list, remains.name), act: Act::Run(remove) }]
    },
};

fn stripes(settings: &Settings) -> u64 {
    settings.number("stripes").unwrap_or(1).max(1)
}

/// The one that the file system, or the layer above, gets.
pub(super) const VOLUME: &str = "data";

/// A group over all devices, without a volume; its undo takes away all that will be in it.
pub(super) fn group(below: &Below) -> Vec<Step> {
    let devices = below.words();
    let mut make = command(&["vgcreate", "--yes"]);
    make.extend(std::iter::once(below.name.to_string()).chain(devices.iter().cloned()));
    let make = Step::run("make a volume group", make).undo(GROUP.of(below.name));
    devices.iter().map(|device| wipe(device)).chain([make]).collect()
}

/// Old signatures that show in it are wiped without a question.
pub(super) fn volume(name: &str, words: &[&str]) -> Step {
    let first = ["lvcreate", "--yes", "--wipesignatures", "y", "--zero", "y", "--name", name];
    Step::run("make a logical volume", command(&[&first, words].concat()))
}

pub(super) fn use_volume(group: &str) -> Step {
    Step::new("use the logical volume", Action::UseDevice(node(group)))
}

/// Names of groups have no hyphen, which would be doubled.
fn node(group: &str) -> PathBuf {
    mapping(&format!("{group}-{VOLUME}"))
}

/// Program and options, with the configuration of LVM behind the program.
pub(super) fn command(words: &[&str]) -> Argv {
    let (program, rest) = words.split_first().expect("a program");
    argv([program, "--config", GROUPS].iter().chain(rest))
}

/// What LVM says of the volume, as `NAME='value'`.
pub(super) fn listing(group: &str, fields: &str) -> Argv {
    let volume = format!("{group}/{VOLUME}");
    command(&["lvs", "--noheadings", "--nameprefixes", "--units", "b", "--options", fields, &volume])
}

/// The value of a field in such a listing.
pub(super) fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    let rest = shown.split_once(&format!("{name}='"))?.1;
    rest.split_once('\'').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, printed, sentences};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_group_and_a_volume_over_all_devices() {
        let said = sentences("lvm", json!({"stripes": 2}), 2);
        assert_eq!(
            said.iter().map(|line| line.replace(GROUPS, "CONFIG")).collect::<Vec<_>>(),
            [
                "run wipefs --all --force --quiet /dev/D0",
                "run wipefs --all --force --quiet /dev/D1",
                "run vgcreate --config CONFIG --yes pickfsC /dev/D0 /dev/D1; back: remove group pickfsC",
                "run lvcreate --config CONFIG --yes --wipesignatures y --zero y --name data --extents 100%FREE \
                 --stripes 2 pickfsC",
                "device /dev/mapper/pickfsC-data",
            ]
        );
    }

    #[test]
    fn stripes_are_read_back() {
        let printed = printed("lvs-striped");
        assert_eq!(mismatches("lvm", json!({"stripes": 2}), &printed), Vec::<String>::new());
        for (stripes, printed) in [(1, printed.as_str()), (3, &printed), (2, "")] {
            assert_eq!(mismatches("lvm", json!({"stripes": stripes}), printed).len(), 1, "{stripes} {printed}");
        }
    }
}
