//! OpenZFS, and what zfs-fuse shares with it.
//!
//! A pool of all devices: each by itself, or by a variant. Mount options of a target are properties of its dataset, such
//! as `compression=lz4`; `noatime` is understood, so that one plan can ask it of every file system.

use super::*;
use crate::stack::take_down::{Act, Named, Removal, TakeDown, There};
use pickfs_system::units::parse_size;

pub(crate) const ZFS: Filesystem = Filesystem {
    name: "zfs",
    about: "OpenZFS: copy on write, with checksums, snapshots, compression and its own cache",
    variants: &[CACHE, LOG, MIRROR, RAIDZ, RAIDZ2, SPECIAL],
    mismatches: |spec, facts| [pool_mismatches(spec, facts), option_mismatches(spec, facts)].concat(),
    // In Debian's contrib.
    tools: &[("modprobe", "kmod"), ("zpool", "zfsutils-linux"), ("zfs", "zfsutils-linux")],
    making: Making {
        // Nothing else loads it: `zpool` only asks for it where its service has not.
        before: |_| vec![Step::run("load the kernel's module", ["modprobe", "zfs"])],
        ..POOL.making
    },
    kernel: Kernel {
        module_source: Some(ModuleSource { package: "zfs-dkms", tools: "zfsutils-linux" }),
        ..Kernel::with("enable `contrib` in Debian's sources and `apt-get install zfs-dkms`")
    },
    // Dnodes of 512 bytes are always compressed (zfs(4), `zfs_mdcomp_disable`): 512 that are alike were read as 33 bytes
    // each; half of that.
    limits: Limits { inode: Some(16), ..POOL.limits },
    mounting: Mounting {
        // Looks in the device's own folder: `zpool create` puts a partition table on a whole disk, and then the pool is
        // found beside the device, not on it.
        command: |_, spec| import(&spec.device.parent().unwrap_or(spec.device).display().to_string(), spec),
        ..POOL.mounting
    },
    // Waits until the open transaction group is on disk; `syncfs(2)` writes the intent log only.
    commit: Some(Commit {
        words: |spec| argv(["zpool", "sync", spec.name]),
        idle: |spec| argv(["zpool", "list", "-H", "-o", "name", spec.name]),
    }),
    facts: &[ZFS_GET, ZPOOL_GET, ZPOOL_STATUS, (CLONING, &["cat", "/sys/module/zfs/parameters/zfs_bclone_enabled"])],
    versions: &[("zfs", &["zfs", "version"])],
    // zfsprops(7), zpool-features(7). Blocks are cloned only where the module's switch allows it too, which was off in
    // most of 2.2 (zfs(4)).
    features: Features {
        more: &[CASE_FOLDING, CREATION_TIME, ENCRYPTION, REFLINKS],
        depending: &[
            (CASE_FOLDING, |state| state.property(ZFS_GET.0, "casesensitivity") == Some("insensitive")),
            (CHECKSUMS, has_checksums),
            (ENCRYPTION, |state| can(state, "feature@encryption")),
            (REFLINKS, |state| {
                let switch = state.facts.get(CLONING).is_some_and(|switch| switch.trim() == "1");
                switch && can(state, "feature@block_cloning")
            }),
        ],
        ..POOL.features
    },
    // Bytes that are still to be given back (zpoolprops(7)); zfs-fuse gives them back at once.
    snapshots: Some(Snapshots {
        freed: Some(Freed {
            program: |spec| argv(["zpool", "get", "-H", "-p", "-o", "value", "freeing", spec.name]),
            is_free: |printed| printed.trim() == "0",
        }),
        ..OF_POOL
    }),
    // Exported and imported, so that nothing is cached (zpool-import(8), zpool-replace(8), zpool-scrub(8)).
    upkeep: &[
        Upkeep::unmounted("degraded", &[ANOTHER_LAST]).of(REDUNDANT),
        Upkeep::mounted("rebuild", &[&["zpool", "replace", "-f", "-w", NAME, LAST]]).of(REDUNDANT),
        Upkeep::mounted("scrub", &[&["zpool", "scrub", "-w", NAME]]),
    ],
    tunables: Tunables(include_str!("zfs/tunables.toml")),
    ..POOL
};

const REDUNDANT: &[&str] = &["mirror", "raidz", "raidz2"];
const CLONING: &str = "zfs_bclone_enabled";

/// A fact and the words that print it.
type Program = (&'static str, &'static [&'static str]);

pub(super) const ZFS_GET: Program = ("zfs get", &["zfs", "get", "all", NAME]);
pub(super) const ZPOOL_GET: Program = ("zpool get", &["zpool", "get", "all", NAME]);
pub(super) const ZPOOL_STATUS: Program = ("zpool status", &["zpool", "status", NAME]);

const OF_POOL: Snapshots = Snapshots {
    take: |spec, number| argv(["zfs", "snapshot", &snapshot(spec, number)]),
    send: |spec, number| argv(["zfs", "send", &snapshot(spec, number)]),
    delete: |spec, number| argv(["zfs", "destroy", &snapshot(spec, number)]),
    receive: |spec| argv(["zfs", "receive", &format!("{}/received", spec.name)]),
    received: |spec| spec.mount_point.join("received"),
    roll_back: |spec, number| vec![argv(["zfs", "rollback", &snapshot(spec, number)])],
    mounts_to_roll_back: false,
    freed: None,
    // `used` of each is what it holds alone, without what two of them hold (zfsprops(7)).
    exclusive: Some(|spec| argv(["zfs", "get", "-H", "-p", "-o", "value", "usedbysnapshots", spec.name])),
};

fn snapshot(spec: &FsSpec, number: u64) -> String {
    format!("{}@snapshot-{number}", spec.name)
}

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
pub(super) const POOL: Filesystem = Filesystem {
    making: Making { takes_several: true, mounts: true, ..Making::by(create) },
    variants: &[CACHE, LOG, MIRROR, RAIDZ, RAIDZ2],
    // SPA_MINDEVSIZE; measured with zfs-fuse. 2^64 bytes by its format, of which the VFS leaves 8 EiB to a file; a pool takes
    // 2^78 and more.
    limits: Limits { least: 64 << 20, file: Some(VFS_FILE), volume: Some(u64::MAX), ..Limits::DEFAULT },
    mounting: Mounting {
        unmount: |spec| argv(["zpool", "export", spec.name]),
        take_down: Some(&EXPORT),
        mismatches: |_, asked, _, facts| {
            property_mismatches(asked, facts.get(ZFS_GET.0).map(String::as_str).unwrap_or_default())
        },
        // The intent log switched off: fsync returns before anything is written (zfsprops(7)).
        weakens: |option| option == "sync=disabled",
        ..Mounting::DEFAULT
    },
    mismatches: pool_mismatches,
    // zpool-add(8), zpool-online(8), zfsprops(7), zfs-snapshot(8). A pool never gets smaller by less than a device.
    features: Features {
        usual: &[CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, SNAPSHOTS],
        depending: &[(CHECKSUMS, has_checksums)],
        compresses: |_| true,
        ..Features::DEFAULT
    },
    snapshots: Some(OF_POOL),
    ..Filesystem::DEFAULT
};

const MIRROR: Variant = Variant::new("mirror", "a copy of everything on every device").devices(2);
// With two devices, one with parity is a mirror that costs more.
const RAIDZ: Variant = Variant::new("raidz", "striped over all devices, with one parity").devices(3);
const RAIDZ2: Variant = Variant::new("raidz2", "striped over all devices, with two parities").devices(4);
const CACHE: Variant = last("cache", "the last device caches what is read (L2ARC)");
const LOG: Variant = last("log", "the last device has the intent log: what is synced goes there first (SLOG)");
const SPECIAL: Variant = last("special", "the last device has the metadata, the others have the data");

/// The last device has a role of its own; those before it are striped.
const fn last(name: &'static str, about: &'static str) -> Variant {
    Variant::new(name, about).devices(2)
}

/// As `zpool create` takes it before the last device, and the line of `zpool status` above that device.
fn role(variant: &str) -> Option<&'static str> {
    [("cache", "cache"), ("log", "logs"), ("special", "special")].iter().find(|row| row.0 == variant).map(|row| row.1)
}

fn can(state: &FsState, feature: &str) -> bool {
    matches!(state.property(ZPOOL_GET.0, feature), Some("enabled" | "active"))
}

/// `checksum=off` takes them from data alone (zfsprops(7)).
fn has_checksums(state: &FsState) -> bool {
    state.property(ZFS_GET.0, "checksum") != Some("off")
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

/// `zpool status` shows a group as `mirror-0`, or `raidz1-0` where one parity was not counted, and a role on a line of its own.
fn pool_mismatches(spec: &FsSpec, facts: &Facts) -> Vec<String> {
    let Some(variant) = spec.variant else { return Vec::new() };
    let shown = facts.get(ZPOOL_STATUS.0).map(String::as_str).unwrap_or_default();
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
    let state = spec.state(facts);
    let mismatch = |pair: &[String]| {
        let fact = match pair[0].as_str() {
            "-o" => ZPOOL_GET.0,
            "-O" => ZFS_GET.0,
            _ => return None,
        };
        let (name, asked) = pair[1].split_once('=')?;
        let shown = state.property(fact, name).unwrap_or("nothing");
        (shown != asked).then(|| format!("asked for {name}={asked}, `{fact}` shows {shown}"))
    };
    spec.mkfs.windows(2).filter_map(mismatch).collect()
}

/// Properties of the dataset that were asked for as mount options; `properties` is what `zfs get all` prints.
fn property_mismatches(asked: &[String], properties: &str) -> Vec<String> {
    let shown = |name: &str| {
        let mut rows = properties.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find(|row| row.get(1) == Some(&name)).and_then(|row| row.get(2).copied())
    };
    let mismatch = |option: &String| {
        let option = property(option);
        let (name, asked) = option.split_once('=')?;
        let shown = shown(name).unwrap_or("nothing");
        let same = shown == asked || same_size(shown, asked);
        (!same).then(|| format!("asked for property {name}={asked}, zfs shows {shown}"))
    };
    asked.iter().filter_map(mismatch).collect()
}

/// `recordsize=8192` is shown as `8K`.
fn same_size(shown: &str, asked: &str) -> bool {
    let [shown, asked] = [shown, asked].map(|text| parse_size(text).ok());
    shown.is_some() && shown == asked
}

#[cfg(test)]
mod tests {
    use super::super::MountOptions;
    use super::*;
    use pickfs_core::plan::Target;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

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
            assert_eq!(property_mismatches(&[option.to_string()], shown).len(), wrong, "{option}");
        }
    }

    #[test]
    fn options_of_a_pool_are_read_back() {
        let facts = BTreeMap::from([
            ("zpool get".to_string(), "NAME  PROPERTY  VALUE  SOURCE\npk  ashift  12  local".to_string()),
            ("zfs get".to_string(), "NAME  PROPERTY  VALUE  SOURCE\npk  xattr  sa  local".to_string()),
        ]);
        for (options, wrong) in [
            ("-o ashift=12 -O xattr=sa", 0),
            ("-o ashift=13", 1),
            ("-O xattr=on -o ashift=9", 2),
            ("-o x=1", 1),
            ("-d", 0),
        ] {
            let mkfs = options.split(' ').map(String::from).collect();
            let asked = FsSpec { mkfs, ..spec(None, &[]) };
            assert_eq!(ZFS.mismatches(&asked, &MountOptions::new(), &facts).len(), wrong, "{options}");
        }
    }

    #[test]
    fn mount_options_of_a_pool_are_its_properties() {
        let target = Target { mount: vec!["noatime".into(), "recordsize=8K".into()], ..Target::default() };
        let made = create(&FsSpec::new(&ZFS, &target, Path::new("/dev/DEV"), Path::new("/m"))).join(" ");
        assert_eq!(made, "zpool create -f -o cachefile=none -O atime=off -O recordsize=8K -m /m pickfs /dev/DEV");
    }

    fn spec<'a>(variant: Option<&str>, more_devices: &'a [PathBuf]) -> FsSpec<'a> {
        let target = Target { variant: variant.map(String::from), ..Target::default() };
        FsSpec { more_devices, ..FsSpec::new(&ZFS, &target, Path::new("/dev/DEV"), Path::new("/m")) }
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
                ZFS.mismatches(
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
