//! OpenZFS, and what zfs-fuse shares with it: pools.
//!
//! `noatime` of a target is understood, so that one plan can ask it of every file system.

use super::*;
use crate::stack::take_down::{Act, Named, Removal, TakeDown, There};
use pickfs_system::units::parse_size;

pub(super) fn with_code(data: Filesystem) -> Filesystem {
    let pool = pool(data);
    Filesystem {
        mismatches: |spec, facts| [pool_mismatches(spec, facts), option_mismatches(spec, facts)].concat(),
        making: Making {
            // Nothing else loads it: `zpool` only asks for it where its service has not.
            before: |_| vec![Step::run("load the kernel's module", ["modprobe", "zfs"])],
            ..pool.making
        },
        mounting: Mounting {
            // Looks in the device's own folder: `zpool create` puts a partition table on a whole
            // disk, and then the pool is found next to the device, not on it.
            command: |_, spec| import(&spec.device.parent().unwrap_or(spec.device).display().to_string(), spec),
            ..pool.mounting
        },
        features: Features { depending: DEPENDING, ..pool.features },
        ..pool
    }
}

/// Blocks are cloned only where the module's switch allows it too, which was off in most of 2.2
/// (zfs(4)).
const DEPENDING: &[(&str, By)] = &[
    (CASE_FOLDING, By::Code(|state| shown_property(state.facts, ZFS_GET, "casesensitivity") == Some("insensitive"))),
    (CHECKSUMS, By::Code(has_checksums)),
    (ENCRYPTION, By::Code(|state| can(state, "feature@encryption"))),
    (
        REFLINKS,
        By::Code(|state| {
            let switch = state.facts.get("zfs_bclone_enabled").is_some_and(|switch| switch.trim() == "1");
            switch && can(state, "feature@block_cloning")
        }),
    ),
];

const ZFS_GET: &str = "zfs get";
const ZPOOL_GET: &str = "zpool get";
const ZPOOL_STATUS: &str = "zpool status";

/// The pool of a daemon that was killed is gone already: the device is free then.
const EXPORT: TakeDown = TakeDown {
    word: "export_pool",
    named: Named::ByCell,
    removals: |remains| {
        let there = There::line(argv(["zpool", "list", "-H", "-o", "name"]), remains.name);
        vec![Removal { while_there: there, act: Act::Run(argv(["zpool", "export", "-f", remains.name])) }]
    },
};

/// What both implementations share.
pub(super) fn pool(data: Filesystem) -> Filesystem {
    Filesystem {
        making: Making { mkfs: |_, spec| create(spec), ..data.making },
        mounting: Mounting {
            take_down: Some(&EXPORT),
            mismatches: |_, asked, _, facts| {
                asked.iter().filter_map(|option| differs(ZFS_GET, &property(option), facts)).collect()
            },
            ..data.mounting
        },
        mismatches: pool_mismatches,
        features: Features {
            depending: &[(CHECKSUMS, By::Code(has_checksums))],
            compresses: |_| true,
            ..data.features
        },
        ..data
    }
}

/// As `zpool create` takes it before the last device, and the line of `zpool status` above that
/// device.
fn role(variant: &str) -> Option<&'static str> {
    [("cache", "cache"), ("log", "logs"), ("special", "special")].iter().find(|row| row.0 == variant).map(|row| row.1)
}

fn can(state: &FsState, feature: &str) -> bool {
    matches!(shown_property(state.facts, ZPOOL_GET, feature), Some("enabled" | "active"))
}

/// `checksum=off` takes them from data alone (zfsprops(7)).
fn has_checksums(state: &FsState) -> bool {
    shown_property(state.facts, ZFS_GET, "checksum") != Some("off")
}

/// Leaves the pool mounted at the mount point. Without a cache file, no later boot looks for it.
fn create(spec: &FsSpec) -> Argv {
    let mut words = argv(["zpool", "create", "-f", "-o", "cachefile=none"]);
    words.extend(spec.mkfs.iter().cloned());
    words.extend(spec.mount.iter().flat_map(|option| ["-O".to_string(), property(option)]));
    words.extend(argv(["-m", &spec.mount_point(), spec.name]));
    let (mut devices, variant) = (spec.devices(), spec.variant.map(String::from));
    let before = if spec.variant.and_then(role).is_some() { devices.len() - 1 } else { 0 };
    devices.splice(before..before, variant);
    words.extend(devices);
    words
}

/// From a folder that holds the pool's devices.
pub(super) fn import(folder: &str, spec: &FsSpec) -> Argv {
    argv(["zpool", "import", "-o", "cachefile=none", "-d", folder, spec.name])
}

fn property(option: &str) -> String {
    if option == "noatime" { "atime=off".into() } else { option.into() }
}

/// `zpool status` shows a group as `mirror-0`, or `raidz1-0` where one parity was not counted, and
/// a role on its own line.
fn pool_mismatches(spec: &FsSpec, facts: &Facts) -> Vec<String> {
    let Some(variant) = spec.variant else { return Vec::new() };
    let shown = facts.get(ZPOOL_STATUS).map(String::as_str).unwrap_or_default();
    let there = match (role(variant), variant) {
        (Some(role), _) => shown.lines().any(|line| line.trim() == role),
        (None, "raidz") => shown.split_whitespace().any(|word| word.starts_with("raidz1-")),
        (None, _) => shown.split_whitespace().any(|word| word.starts_with(&format!("{variant}-"))),
    };
    let sentence = || format!("asked for a pool with {variant}, `zpool status` shows none: {shown}");
    if there { Vec::new() } else { vec![sentence()] }
}

/// `-o ashift=12` of a pool and `-O xattr=sa` of its dataset, as `zpool create` takes them.
fn option_mismatches(spec: &FsSpec, facts: &Facts) -> Vec<String> {
    let mismatch = |pair: &[String]| match pair[0].as_str() {
        "-o" => differs(ZPOOL_GET, &pair[1], facts),
        "-O" => differs(ZFS_GET, &pair[1], facts),
        _ => None,
    };
    spec.mkfs.windows(2).filter_map(mismatch).collect()
}

/// A property that was asked for as `name=value`, where the fact shows another value:
/// `recordsize=8192` is shown as `8K`, and a feature that is enabled may be in use already.
fn differs(fact: &str, asked: &str, facts: &Facts) -> Option<String> {
    let (name, asked) = asked.split_once('=')?;
    let shown = shown_property(facts, fact, name).unwrap_or("nothing");
    let [shown_size, asked_size] = [shown, asked].map(|text| parse_size(text).ok());
    let same_size = shown_size.is_some() && shown_size == asked_size;
    let same = shown == asked || same_size || (asked, shown) == ("enabled", "active");
    (!same).then(|| format!("asked for {name}={asked}, `{fact}` shows {shown}"))
}

#[cfg(test)]
mod tests {
    use super::super::MountOptions;
    use super::*;
    use pickfs_core::plan::Target;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    fn facts(name: &str, shown: &str) -> Facts {
        Facts::from([(name.to_string(), shown.to_string())])
    }

    fn zfs() -> &'static Filesystem {
        find("zfs").expect("a driver")
    }

    #[test]
    fn properties_of_a_dataset_are_read_back() {
        let shown = "NAME  PROPERTY  VALUE  SOURCE\npk  compression  lzjb  local\npk  atime  on  default\n\
                     pk  recordsize  8K  local\npk  primarycache  metadata  local";
        let rows = [
            ("compression=lzjb", 0),
            ("compression=gzip", 1),
            ("noatime", 1),
            ("sync=off", 1),
            ("recordsize=8K", 0),
            ("recordsize=8192", 0),
            ("recordsize=16K", 1),
            ("primarycache=metadata", 0),
            ("primarycache=all", 1),
        ];
        for (option, wrong) in rows {
            let (asked, facts) = (FsSpec { mount: vec![option.into()], ..spec(None, &[]) }, facts(ZFS_GET, shown));
            assert_eq!(zfs().mismatches(&asked, &MountOptions::new(), &facts).len(), wrong, "{option}");
        }
    }

    #[test]
    fn options_of_a_pool_are_read_back() {
        let facts = BTreeMap::from([
            (
                "zpool get".to_string(),
                "NAME  PROPERTY  VALUE  SOURCE\npk  ashift  12  local\npk  feature@lz4_compress  active  local"
                    .to_string(),
            ),
            (
                "zfs get".to_string(),
                "NAME  PROPERTY  VALUE  SOURCE\npk  xattr  sa  local\npk  recordsize  8K  local".to_string(),
            ),
        ]);
        for (options, wrong) in [
            ("-o ashift=12 -O xattr=sa", 0),
            ("-o ashift=13", 1),
            ("-O xattr=on -o ashift=9", 2),
            ("-o x=1", 1),
            ("-O recordsize=8192", 0),
            ("-O recordsize=4096", 1),
            ("-o feature@lz4_compress=enabled", 0),
            ("-o feature@lz4_compress=disabled", 1),
            ("-d", 0),
        ] {
            let mkfs = options.split(' ').map(String::from).collect();
            let asked = FsSpec { mkfs, ..spec(None, &[]) };
            assert_eq!(zfs().mismatches(&asked, &MountOptions::new(), &facts).len(), wrong, "{options}");
        }
    }

    #[test]
    fn mount_options_of_a_pool_are_its_properties() {
        let target = Target { mount: vec!["noatime".into(), "recordsize=8K".into()], ..Target::default() };
        let made = create(&FsSpec::new(zfs(), &target, Path::new("/dev/DEV"), Path::new("/m"))).join(" ");
        assert_eq!(made, "zpool create -f -o cachefile=none -O atime=off -O recordsize=8K -m /m pickfs /dev/DEV");
    }

    fn spec<'a>(variant: Option<&str>, more_devices: &'a [PathBuf]) -> FsSpec<'a> {
        let target = Target { variant: variant.map(String::from), ..Target::default() };
        FsSpec { more_devices, ..FsSpec::new(zfs(), &target, Path::new("/dev/DEV"), Path::new("/m")) }
    }

    /// As zpool(8) of OpenZFS 2.1.11 prints it.
    #[test]
    fn the_last_device_has_a_role() {
        let more = ["/dev/E".into(), "/dev/F".into()];
        let rows = [("log", "logs"), ("special", "special"), ("cache", "cache"), ("mirror", "mirror-0")];
        for (variant, line) in rows {
            let spec = spec(Some(variant), &more);
            let created = create(&spec).join(" ");
            let devices = match variant {
                "mirror" => "mirror /dev/DEV /dev/E /dev/F".to_string(),
                role => format!("/dev/DEV /dev/E {role} /dev/F"),
            };
            assert_eq!(created, format!("zpool create -f -o cachefile=none -m /m pickfs {devices}"));
            let status =
                format!("config:\n\n\tNAME  STATE\n\tpk    ONLINE\n\t  vda ONLINE\n\t{line}\n\t  vdc ONLINE\n");
            let wrong = |status: &str| {
                zfs()
                    .mismatches(
                        &spec,
                        &MountOptions::new(),
                        &BTreeMap::from([("zpool status".to_string(), status.to_string())]),
                    )
                    .len()
            };
            assert_eq!((wrong(&status), wrong(&status.replace(line, "spares"))), (0, 1), "{variant}");
        }
    }
}
