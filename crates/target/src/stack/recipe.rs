//! How a stack is built: the one list of steps that the agent takes and `pickfs plan` prints.
//!
//! Which loop devices there will be is known when they are there, so the list comes in two parts:
//! what gives the devices, and what is built on them. The dry run puts `DEVICE` in the place of
//! each.

use super::backing::{self, Backing};
use super::fs::{self, Filesystem, FsSpec};
use super::layer::{self, Below, Layer};
use super::{AboveMount, Action, Place, Step};
use pickfs_core::plan::{Discard, HostSettings, QUEUE_SETTINGS, SYSCTLS, Settings, Target};
use std::path::{Path, PathBuf};

/// What a target is built of.
pub struct Recipe<'a> {
    target: &'a Target,
    place: &'a Place,
    /// Unique on this machine: for pools, mappings and groups.
    name: &'a str,
    /// The round's.
    seed: u64,
    pub driver: Option<&'static Filesystem>,
    pub backing: &'static Backing,
    layers: Vec<(&'static Layer, &'a Settings)>,
    /// What lies above the file system, the lowest first.
    pub above: Vec<AboveMount>,
}

/// A layer that is asked, once it stands, what is in effect.
pub struct BuiltLayer<'a> {
    pub layer: &'static Layer,
    pub settings: &'a Settings,
    pub name: String,
    pub devices: Vec<PathBuf>,
}

/// What is built on the devices of a backing.
pub struct OnDevices<'a> {
    pub layers: Vec<BuiltLayer<'a>>,
    pub layer_steps: Vec<Step>,
    pub filesystem_steps: Vec<Step>,
    /// Devices that the file system is made on.
    pub devices: Vec<PathBuf>,
}

impl<'a> Recipe<'a> {
    /// The error names what no plug-in is found for.
    pub fn new(target: &'a Target, place: &'a Place, name: &'a str, seed: u64) -> Result<Recipe<'a>, String> {
        let unknown = |kind: &str, name: &str| format!("this agent knows no {kind} `{name}`");
        let driver = match &target.fs {
            Some(name) => Some(fs::find(name).ok_or_else(|| unknown("file system", name))?),
            None => None,
        };
        let backing = backing::find(&target.backing.name).ok_or_else(|| unknown("backing", &target.backing.name))?;
        let find = |chosen: &'a pickfs_core::plan::Chosen| {
            let layer = layer::find(&chosen.name).ok_or_else(|| unknown("layer", &chosen.name))?;
            Ok((layer, &chosen.settings))
        };
        let layers = target.layers.iter().map(find).collect::<Result<Vec<_>, String>>()?;
        let above = AboveMount::all(target, place, name)?;
        Ok(Recipe { target, place, name, seed, driver, backing, layers, above })
    }

    /// Folders, and what gives devices or a directory.
    pub(crate) fn below(&self, folders_of_work: Vec<PathBuf>) -> Vec<Step> {
        let mut steps = vec![Step::folder("make a folder in memory", self.memory())];
        steps.extend(folders_of_work.into_iter().map(|path| Step::folder("make a folder for the work", path)));
        steps.extend((self.backing.steps)(&self.target.backing.settings, self.place));
        steps
    }

    /// Layers, then the file system; or why they cannot be built on this number of devices.
    pub fn on_devices(&self, mut devices: Vec<PathBuf>) -> Result<OnDevices<'a>, String> {
        let (mut layers, mut layer_steps, memory) = (Vec::new(), Vec::new(), self.memory());
        for (number, (layer, settings)) in self.layers.iter().enumerate() {
            layer::above(layer, settings, devices.len())
                .map_err(|why| format!("{why}; give the backing `disks`, or choose another level or layer"))?;
            let pass_by = devices.split_off(layer::taken(settings, devices.len()));
            let name = format!("{}l{number}", self.name);
            let steps = (layer.steps)(settings, &Below { devices: &devices, name: &name, memory: &memory });
            let above: Vec<PathBuf> = steps.iter().filter_map(|step| step.action.device()).collect();
            layer_steps.extend(steps);
            layers.push(BuiltLayer { layer, settings, name, devices });
            devices = [above, pass_by].concat();
        }
        let filesystem_steps = match self.driver {
            Some(driver) => self.filesystem(driver, &devices)?,
            None => Vec::new(),
        };
        Ok(OnDevices { layers, layer_steps, filesystem_steps, devices })
    }

    /// Discards as declared, queue settings, mkfs, mount. Without discards the drivers keep mkfs
    /// and mount from them too.
    fn filesystem(&self, driver: &Filesystem, devices: &[PathBuf]) -> Result<Vec<Step>, String> {
        let target = self.target;
        if let Some(wrong) = fs::objection_to_devices(driver, target.variant.as_deref(), devices.len()) {
            return Err(format!("{}; {}", wrong.message, wrong.remedy));
        }
        let discarded = devices.iter().filter(|_| target.discard != Discard::None);
        let mut steps: Vec<Step> =
            discarded.map(|device| Step::new("discard all of the device", Action::Discard(device.clone()))).collect();
        steps.extend(devices.iter().flat_map(|device| queue_settings(target, device)));
        steps.extend(target.sysctl.0.iter().map(|(name, value)| fix(name, value.as_str().unwrap_or_default().into())));
        let mount_point = self.place.mount_point();
        let spec = self.spec(driver, devices, &mount_point);
        steps.extend((driver.making.before)(&spec));
        steps.push(Step::folder("make the mount point", mount_point.clone()));
        let make = driver.mkfs(&spec).map(|words| Step::new(format!("make {}", driver.name), Action::Run(words)));
        let mount = || Step::new(format!("mount {}", driver.name), Action::Mount(driver.mount(&spec)));
        let undo = driver.mounting.undo(&spec);
        if driver.making.mounts {
            steps.extend(make.map(|step| step.undo(undo)));
        } else {
            steps.extend(make.into_iter().chain([mount().undo(undo)]));
        }
        let in_place = driver.making.in_place.and_then(|in_place| in_place(&spec));
        steps.extend(in_place.map(|words| Step::new("have data written in place", Action::Run(words))));
        steps.extend(self.above.iter().flat_map(AboveMount::steps));
        // An image holds the tree itself, and nothing can be made in it.
        if driver.making.image.is_none() {
            let at = self.above.last().map_or(mount_point.as_path(), AboveMount::mount_point);
            steps.push(Step::new("make a folder for the work on it", Action::MakeWorkFolder(at.join("work"))));
        }
        Ok(steps)
    }

    fn spec<'s>(&'s self, driver: &Filesystem, devices: &'s [PathBuf], mount_point: &'s std::path::Path) -> FsSpec<'s> {
        let more_devices = devices.get(1..).unwrap_or_default();
        let base = FsSpec::new(driver, self.target, devices[0].as_path(), mount_point);
        FsSpec { more_devices, seed: self.seed, name: self.name, ..base }
    }

    /// Everything, with [`Recipe::slots`] for the devices of the backing.
    pub fn steps(&self) -> Result<Vec<Step>, String> {
        let mut steps = self.below(Vec::new());
        if self.driver.is_some() {
            let on = self.on_devices(self.slots())?;
            steps.extend(on.layer_steps.into_iter().chain(on.filesystem_steps));
        }
        Ok(steps)
    }

    /// The devices of the backing: their paths where they are known, else `DEVICE`, `DEVICE2` ...
    pub fn slots(&self) -> Vec<PathBuf> {
        let mut number = 0;
        let mut slot = |step: Step| match step.action {
            Action::AttachImage { .. } | Action::MakeZram { .. } => {
                number += 1;
                Some(PathBuf::from(if number == 1 { "DEVICE".into() } else { format!("DEVICE{number}") }))
            }
            action => action.device(),
        };
        let steps = (self.backing.steps)(&self.target.backing.settings, self.place);
        steps.into_iter().filter_map(&mut slot).collect()
    }

    fn memory(&self) -> PathBuf {
        self.place.memory.join("cell")
    }
}

/// The scheduler first: it brings its own number of requests, also when it is set back, and so that
/// number is set back once more after it.
fn queue_settings(target: &Target, device: &std::path::Path) -> Vec<Step> {
    let set = |says: String, name: &str, value: &str| {
        let (device, name, value) = (device.to_path_buf(), name.to_string(), value.to_string());
        Step::new(says, Action::SetQueue { device, name, value })
    };
    let keep = Action::KeepQueue { device: device.to_path_buf(), name: "nr_requests".into() };
    let keep = Step::new("keep the queue's number of requests", keep);
    let scheduler = target.scheduler.iter();
    let scheduler = scheduler.flat_map(|value| [keep.clone(), set("set the I/O scheduler".into(), "scheduler", value)]);
    let queue = target.queue.0.iter();
    let queue =
        queue.map(|(name, value)| set(format!("set the queue's {name}"), name, value.as_str().unwrap_or_default()));
    scheduler.chain(queue).collect()
}

/// Once, before the first cell: folders, and how the kernel writes back. `memory_bytes` is the
/// machine's, where its settings may be changed.
pub fn of_run(place: &Place, host: &HostSettings, memory_bytes: Option<u64>) -> Vec<Step> {
    const PAGE: u64 = 4096;
    let set = |bytes: u64| write_back(host, |part| (bytes / part / PAGE * PAGE).to_string());
    folders(place).into_iter().chain(memory_bytes.into_iter().flat_map(set)).collect()
}

/// The same on a machine that is not there yet, for the dry run.
pub fn of_machine_to_be(place: &Place, host: &HostSettings) -> Vec<Step> {
    let set = write_back(host, |part| format!("1/{part} of its memory"));
    folders(place).into_iter().chain(set).collect()
}

fn folders(place: &Place) -> [Step; 2] {
    [folder_in_memory(place), Step::folder("make a folder for mount points", place.mounts.clone())]
}

/// For what a run stages: all that a host needs whose cells run on their own machines.
pub fn folder_in_memory(place: &Place) -> Step {
    Step::folder("make a folder in memory", place.memory.clone())
}

/// True for a setting of the kernel that a run may change: how it writes back, and a device's
/// queue.
pub(crate) fn is_setting_of_runs(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match path.parent() {
        Some(folder) if folder == Path::new(VM) => {
            SYSCTLS.contains(&name) || SHARES.iter().any(|(_, share)| *share == name)
        }
        Some(folder) if folder.starts_with("/sys/dev/block") || folder.starts_with("/sys/devices") => {
            folder.ends_with("queue") && (name == "scheduler" || QUEUE_SETTINGS.contains(&name))
        }
        _ => false,
    }
}

const VM: &str = "/proc/sys/vm";

/// Settings in bytes, and settings that they switch off.
const SHARES: [(&str, &str); 2] =
    [("dirty_background_bytes", "dirty_background_ratio"), ("dirty_bytes", "dirty_ratio")];

fn fix(name: &str, value: String) -> Step {
    let knob = |name: &str| Path::new(VM).join(name);
    let instead_of = SHARES.iter().find(|(bytes, _)| *bytes == name).map(|(_, share)| knob(share));
    Step::new(format!("fix vm.{name}"), Action::Set { path: knob(name), value, instead_of })
}

/// Bytes, not shares of whatever memory is free, and the same for all; the kernel's default shares
/// of the memory there is, unless the plan says otherwise. `share` gives one part of that number.
fn write_back(host: &HostSettings, share: impl Fn(u64) -> String) -> [Step; 4] {
    let background = host.dirty_background_bytes.map_or_else(|| share(10), |bytes| bytes.to_string());
    let dirty = host.dirty_bytes.map_or_else(|| share(5), |bytes| bytes.to_string());
    let expire = host.dirty_expire_ns.map_or(3000, |ns| ns / 10_000_000);
    [
        fix("dirty_background_bytes", background),
        fix("dirty_bytes", dirty),
        fix("dirty_expire_centisecs", expire.to_string()),
        fix("dirty_writeback_centisecs", "500".into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Chosen;
    use serde_json::json;

    fn settings(value: serde_json::Value) -> Settings {
        Settings(value.as_object().unwrap().clone().into_iter().collect())
    }

    fn target(fs: &str) -> Target {
        let backing = Chosen { name: "memory".into(), settings: settings(json!({"size": 1 << 30})) };
        Target { fs: Some(fs.into()), backing, ..Target::default() }
    }

    /// What is said of the steps that give devices and of those on them.
    fn said(target: &Target) -> Vec<String> {
        let recipe = Recipe::new(target, &Place::of_run("r"), "pickfsC", 1).map(|recipe| recipe.steps());
        recipe.unwrap().unwrap().into_iter().map(|step| format!("{}: {}", step.says, step.action)).collect()
    }

    #[test]
    fn discard_and_queue_settings_come_before_mkfs() {
        let mut target = target("btrfs");
        target.scheduler = Some("none".into());
        target.queue = settings(json!({"nr_requests": "64"}));
        target.sysctl = settings(json!({"dirty_bytes": "1048576"}));
        (target.discard, target.nodatacow) = (Discard::Fresh, true);
        let said = said(&target);
        let tail = [
            "discard all of the device: DEVICE",
            "keep the queue's number of requests: nr_requests of DEVICE",
            "set the I/O scheduler: scheduler of DEVICE to none",
            "set the queue's nr_requests: nr_requests of DEVICE to 64",
            "fix vm.dirty_bytes: 1048576 to /proc/sys/vm/dirty_bytes",
        ];
        assert_eq!(said[2..7], tail);
        let words = said.iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>();
        assert_eq!(
            words,
            ["make", "attach", "discard", "keep", "set", "set", "fix", "make", "make", "mount", "have", "make"],
            "{said:?}"
        );
    }

    #[test]
    fn a_pool_is_mounted_by_what_makes_it() {
        let said = said(&target("zfs"));
        assert!(said.iter().any(|line| line.contains("zpool create")), "{said:?}");
        assert!(!said.iter().any(|line| line.contains("zpool import")), "{said:?}");
    }

    #[test]
    fn what_is_in_memory_alone_is_mounted_and_not_made() {
        let said = said(&target("tmpfs"));
        let steps: Vec<&String> =
            said.iter().filter(|line| line.ends_with("target") || line.contains("mkfs")).collect();
        assert_eq!(steps.len(), 2, "{said:?}");
        assert!(steps[1].starts_with("mount tmpfs: mount -t tmpfs tmpfs /run/"), "{said:?}");
    }

    #[test]
    fn layers_hand_their_devices_up() {
        let mut target = target("xfs");
        target.layers =
            vec![Chosen { name: "delay".into(), settings: settings(json!({"read": 1_000_000, "write": 0})) }];
        let said = said(&target);
        assert!(said.iter().any(|line| line.ends_with("mkfs.xfs -f -q -K /dev/mapper/pickfsCl0")), "{said:?}");
        target.layers = vec![Chosen { name: "md".into(), settings: settings(json!({"level": "raid5"})) }];
        let place = Place::of_run("r");
        let error = Recipe::new(&target, &place, "pickfsC", 1).unwrap().steps().unwrap_err();
        assert!(error.starts_with("md needs 3 devices"), "{error}");
    }

    #[test]
    fn write_back_is_a_share_of_the_memory_unless_the_plan_says_otherwise() {
        let host = HostSettings { dirty_bytes: Some(1 << 20), ..HostSettings::default() };
        let steps = of_run(&Place::of_run("r"), &host, Some(1 << 30));
        let shown: Vec<String> = steps[2..].iter().map(|step| step.action.to_string()).collect();
        assert_eq!(shown[2], "3000 to /proc/sys/vm/dirty_expire_centisecs");
        let soon = HostSettings { dirty_expire_ns: Some(5_000_000_000), ..host };
        let steps = of_run(&Place::of_run("r"), &soon, Some(1 << 30));
        assert_eq!(steps[4].action.to_string(), "500 to /proc/sys/vm/dirty_expire_centisecs");
        assert_eq!(shown[0], "107372544 to /proc/sys/vm/dirty_background_bytes");
        assert_eq!(shown[1], "1048576 to /proc/sys/vm/dirty_bytes");
        assert_eq!(of_run(&Place::of_run("r"), &host, None).len(), 2);
        let steps = of_machine_to_be(&Place::of_run("r"), &host);
        let shown: Vec<String> = steps[2..4].iter().map(|step| step.action.to_string()).collect();
        assert_eq!(shown[0], "1/10 of its memory to /proc/sys/vm/dirty_background_bytes");
        assert_eq!(shown[1], "1048576 to /proc/sys/vm/dirty_bytes");
    }
}
