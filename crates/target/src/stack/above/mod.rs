//! What lies between a file system and the work, one file each, in one sorted list: overlayfs,
//! encrypted folders, shared folders.
//!
//! Each keeps what is written in its own folder on what lies below, and shows it at a mount point,
//! where the work or the next layer above lies. It describes what is made once and how it is
//! mounted, which a cold start does again.

mod bindfs;
mod encfs;
mod gocryptfs;
mod mergerfs;
mod network;
mod nfs;
mod ninep;
mod overlayfs;
mod smb;
mod sshfs;

use super::fs::feature::{CASE_FOLDING, COMPRESSION, CREATION_TIME, MODES, NO_WHITEOUTS, READ_ONLY, REFLINKS};
use super::fs::{self, Filesystem, MountOptions, Programs};
use super::take_down::{Act, Named, Removal, TakeDown, There};
use super::{Action, Argv, Place, Step, argv};
pub(super) use network::NETWORK;
use pickfs_core::journal::Undo;
use pickfs_core::plan::{Chosen, Objection, Setting, SettingKind, Settings, Target, setting};
use pickfs_core::protocol::GUEST_PROGRAMS;
use pickfs_system::need::Need;
use pickfs_system::process::DAEMON_MARK;
use std::path::{Path, PathBuf};

/// Every layer above, sorted by name.
pub const ALL: &[&Above] = &[
    &ninep::NINEP,
    &bindfs::BINDFS,
    &encfs::ENCFS,
    &gocryptfs::GOCRYPTFS,
    &mergerfs::MERGERFS,
    &nfs::NFS,
    &overlayfs::OVERLAYFS,
    &smb::SMB,
    &sshfs::SSHFS,
];

/// Something that shows a folder elsewhere. A layer above names what differs from [`Above::SERVED`]
/// or [`Above::ENCRYPTS`].
pub struct Above {
    pub name: &'static str,
    /// One phrase for `pickfs list above`.
    pub about: &'static str,
    pub settings: &'static [Setting],
    pub needs: &'static [Need],
    /// Of the kernel, as modprobe names them.
    pub modules: &'static [&'static str],
    /// Programs that print versions of what was used.
    pub versions: Programs,
    /// The type of its mount, as the kernel shows it.
    kind: &'static str,
    /// Folders on what lies below, each after the one that it is in.
    folders: &'static [&'static str],
    /// The one of them with all that is written.
    stores: &'static str,
    /// Files lie there under the names that the work sees.
    pub keeps_names: bool,
    /// syncfs(2) on it waits for what lies below too.
    pub passes_sync: bool,
    /// A program or a server of the kernel answers for it.
    pub is_served: bool,
    /// Its server has one place on a machine, and shows a folder of a file system alone.
    is_lowest: bool,
    /// Features of the file system below that are not had through it, unless they are seen there.
    pub hides: &'static [&'static str],
    /// What nearly all file systems keep of a file, and it does not: [`MODES`].
    pub keeps_no: &'static [&'static str],
    /// What it promises less than the file system below, by its documentation.
    pub weakens: &'static [&'static str],
    /// Why it cannot lie on this file system.
    cannot: fn(&Filesystem) -> Option<&'static str>,
    /// What is made once, after the folders: keys, a server.
    make: fn(&Seat) -> Vec<Step>,
    /// Have its server show the folder, and no longer: run before each mount, and after each
    /// unmount.
    shares: fn(&Seat) -> Option<[Argv; 2]>,
    /// A program that has it forget what it showed, where it may still hold that.
    let_go: &'static [&'static str],
    /// Run again after each unmount.
    mount: fn(&Seat) -> Argv,
    /// Programs that print what its server and its network show, by the facts that they become.
    facts: fn(&Seat) -> Vec<(&'static str, Argv)>,
    /// What a mount of it, and all that `facts` print, contradict of what was asked for.
    mismatches: fn(&Seat, &MountOptions, &str) -> Vec<String>,
    /// How what only this layer knows is taken down.
    pub(crate) take_down: Option<&'static TakeDown>,
}

/// What each program needs apart from itself.
const FUSE: Need = Need::File { path: "/dev/fuse", hint: "`modprobe fuse`" };

impl Above {
    /// One that a program serves by FUSE. The kernel passes neither syncfs(2) nor a request for a
    /// clone on to it.
    const SERVED: Above = Above {
        name: "",
        about: "",
        settings: &[],
        needs: &[],
        modules: &["fuse"],
        versions: &[],
        kind: "fuse",
        folders: &[],
        stores: "",
        keeps_names: true,
        passes_sync: false,
        is_served: true,
        is_lowest: false,
        hides: &[CREATION_TIME, REFLINKS],
        keeps_no: &[],
        weakens: &[],
        cannot: |driver| driver.making.image.map(|_| READ_ONLY),
        make: |_| Vec::new(),
        shares: |_| None,
        let_go: &[],
        mount: |_| Vec::new(),
        facts: |_| Vec::new(),
        mismatches: |_, _, _| Vec::new(),
        take_down: None,
    };

    /// One that encrypts names and content: the file system below finds nothing in them to compress
    /// or to fold.
    const ENCRYPTS: Above =
        Above { keeps_names: false, hides: &[CASE_FOLDING, COMPRESSION, CREATION_TIME, REFLINKS], ..Above::SERVED };
}

/// Where one of them has its place.
#[derive(Clone, Debug, PartialEq)]
struct Seat {
    /// What lies below is mounted there.
    below: PathBuf,
    at: PathBuf,
    /// The folder with all that is written.
    data: PathBuf,
    /// A folder in memory that is the cell's own, for keys.
    memory: PathBuf,
    /// The cell's, for what it has on this machine.
    name: String,
    settings: Settings,
}

impl Seat {
    /// A program that starts a server and returns when that answers.
    fn server<S: AsRef<str>>(&self, says: &str, words: impl IntoIterator<Item = S>) -> Step {
        self.daemon(says, Action::Mount(argv(words)))
    }

    /// What starts a server that has the cell's mark.
    fn daemon(&self, says: &str, action: Action) -> Step {
        Step::new(format!("start {says}"), action).undo(Undo::KillMarked(format!("{DAEMON_MARK}={}", self.name)))
    }

    fn at(&self) -> String {
        self.at.display().to_string()
    }

    fn data(&self) -> String {
        self.data.display().to_string()
    }

    fn key(&self, name: &str) -> String {
        self.memory.join(name).display().to_string()
    }
}

/// A layer above, as a target has it mounted.
#[derive(Clone)]
pub struct AboveMount {
    pub layer: &'static Above,
    seat: Seat,
}

/// The layer above of that name.
pub fn find(name: &str) -> Option<&'static Above> {
    ALL.iter().copied().find(|layer| layer.name == name)
}

/// Why a layer above cannot lie on a file system, or on another layer above, both by name.
pub fn objection(name: &str, on: &str) -> Option<&'static str> {
    let layer = find(name)?;
    match find(on) {
        Some(_) if layer.is_lowest => Some("its server shows a folder of a file system, and no other layer above"),
        Some(below) => (layer.kind == "overlay" && below.is_served).then_some(NO_WHITEOUTS),
        None => (layer.cannot)(fs::find(on)?),
    }
}

/// Why these layers above, the lowest first, cannot be on one target.
pub fn clash(layers: &[Chosen]) -> Option<String> {
    network::clash(layers)
}

/// What those of a target need.
pub(crate) fn needs(target: &Target) -> impl Iterator<Item = Need> {
    let layers = target.layers_above().into_iter().filter_map(|chosen| Some((find(&chosen.name)?, chosen.settings)));
    layers.flat_map(|(layer, settings)| layer.needs.iter().chain(network::needs(&settings)).cloned())
}

/// What is wrong with settings of the layer above of that name.
pub fn objections(settings: &Settings) -> Vec<Objection> {
    network::objections(settings)
}

/// What a server of the kernel, or the loopback device, has for the whole machine is changed in
/// guests alone.
const GUEST: Need = Need::File { path: GUEST_PROGRAMS, hint: "guests of pickfs alone have it: executor = \"vm\"" };

/// Run once, in a guest, to undo what holds for all of it: a journal never has it done elsewhere.
fn once_in_a_guest(words: &[&str]) -> Removal {
    Removal { while_there: There::Lasting(vec![GUEST_PROGRAMS.into()]), act: Act::Run(argv(words)) }
}

impl AboveMount {
    /// Those of a target, the lowest first; the error names what no plug-in is found for.
    pub fn all(target: &Target, place: &Place, cell: &str) -> Result<Vec<AboveMount>, String> {
        let mut below = place.mount_point();
        let mut all = Vec::new();
        for (number, chosen) in target.layers_above().iter().enumerate() {
            let layer =
                find(&chosen.name).ok_or_else(|| format!("this agent knows no layer above `{}`", chosen.name))?;
            let at = place.above(number);
            let (data, memory) = (below.join(layer.stores), place.memory.join("cell"));
            let below = std::mem::replace(&mut below, at.clone());
            let seat = Seat { below, at, data, memory, name: cell.into(), settings: chosen.settings.clone() };
            all.push(AboveMount { layer, seat });
        }
        Ok(all)
    }

    pub(crate) fn facts(&self) -> Vec<(&'static str, Argv)> {
        (self.layer.facts)(&self.seat)
    }

    pub fn mount_point(&self) -> &Path {
        &self.seat.at
    }

    /// What has its server let go of the file system below, after the share was taken back; two
    /// seconds after that.
    pub(crate) fn let_go(&self) -> Option<Argv> {
        let words = self.layer.let_go;
        (!words.is_empty()).then(|| argv(words))
    }

    /// Where what lies below is mounted.
    pub(crate) fn below(&self) -> &Path {
        &self.seat.below
    }

    /// Folders on what lies below, what is made once, and the mount.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let (name, seat) = (self.layer.name, &self.seat);
        let folder = |folder: &&str| {
            Step::new(format!("make a folder for {name}"), Action::MakeWorkFolder(seat.below.join(folder)))
        };
        let share = self.shares().map(|[share, _]| Step::run(format!("share the folder of {name}"), share));
        let mount = Step::new(format!("mount {name}"), Action::Mount((self.layer.mount)(seat)));
        let folders = self.layer.folders.iter().map(folder);
        folders
            .chain((self.layer.make)(seat))
            .chain(share)
            .chain([Step::folder(format!("make the mount point of {name}"), seat.at.clone())])
            .chain([mount.undo(Undo::Unmount(seat.at.clone()))])
            .collect()
    }

    fn shares(&self) -> Option<[Argv; 2]> {
        (self.layer.shares)(&self.seat)
    }

    pub(crate) fn mount(&self) -> Vec<Argv> {
        let share = self.shares().map(|[share, _]| share);
        share.into_iter().chain([(self.layer.mount)(&self.seat)]).collect()
    }

    pub(crate) fn unmount(&self) -> Vec<Argv> {
        let take_back = self.shares().map(|[_, take_back]| take_back);
        std::iter::once(argv(["umount", &self.seat.at()])).chain(take_back).collect()
    }

    /// Where on what lies below a path lies that is seen on it; the folder with all of them where
    /// names differ there.
    pub(crate) fn stored(&self, seen: &Path) -> PathBuf {
        match seen.strip_prefix(&self.seat.at) {
            Ok(rest) if self.layer.keeps_names => self.seat.data.join(rest),
            _ => self.seat.data.clone(),
        }
    }

    /// What the mount that is found in its place contradicts, by its type, its options and what its
    /// server shows. overlayfs mounts read-only where it cannot use the folder for its own work.
    pub fn mismatches(&self, kind: &str, shown: &MountOptions, served: &str) -> Vec<String> {
        let Above { name, kind: own, .. } = self.layer;
        if kind != *own {
            return vec![format!("asked for {name}, the kernel shows {kind}")];
        }
        let read_only = shown.contains_key("ro").then(|| format!("{name} is read-only: the kernel's log has why"));
        (self.layer.mismatches)(&self.seat, shown, served).into_iter().chain(read_only).collect()
    }
}

/// For the tests of every layer above.
#[cfg(test)]
mod example {
    use super::*;
    use crate::stack::sentence;
    use serde_json::json;

    pub(super) fn mounts(names: &[&str]) -> Vec<AboveMount> {
        with(names, Settings::default())
    }

    pub(super) fn with(names: &[&str], settings: Settings) -> Vec<AboveMount> {
        let place =
            Place { name: "pickfs-r".into(), memory: "/dev/shm/pickfs-r".into(), mounts: "/run/pickfs-r".into() };
        let chosen = |name: &&str| Chosen { name: name.to_string(), settings: settings.clone() };
        let target = Target { above: names.iter().map(chosen).collect(), ..Target::default() };
        AboveMount::all(&target, &place, "pickfsC").unwrap()
    }

    /// The steps of one on a file system, without its folders and its mount point.
    pub(super) fn sentences(name: &str) -> Vec<String> {
        set(name, json!({}))
    }

    pub(super) fn settings(given: serde_json::Value) -> Settings {
        Settings(given.as_object().unwrap().clone().into_iter().collect())
    }

    pub(super) fn set(name: &str, given: serde_json::Value) -> Vec<String> {
        let steps = with(&[name], settings(given)).remove(0).steps();
        steps.iter().map(sentence).filter(|said| !said.starts_with("make directory")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::example::mounts;
    use super::*;

    #[test]
    fn the_list_is_sorted_unique_and_described() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
        for layer in ALL {
            assert!(!layer.about.is_empty() && !layer.about.ends_with('.'), "{}", layer.name);
            assert!(layer.folders.contains(&layer.stores) && fs::find(layer.name).is_none(), "{}", layer.name);
            assert!(layer.kind.starts_with("fuse") == layer.needs.contains(&FUSE), "{}", layer.name);
            assert!(!layer.is_served || !layer.versions.is_empty(), "{}", layer.name);
        }
    }

    #[test]
    fn each_lies_on_the_one_below() {
        let all = mounts(&["bindfs", "gocryptfs", "bindfs"]);
        let at: Vec<_> = all.iter().map(|mount| mount.mount_point().display().to_string()).collect();
        assert_eq!(at, ["/run/pickfs-r/above", "/run/pickfs-r/above1", "/run/pickfs-r/above2"]);
        let seen = Path::new("/run/pickfs-r/above2/work/file");
        let stored = all.iter().rev().scan(seen.to_path_buf(), |seen, mount| {
            *seen = mount.stored(seen);
            Some(seen.display().to_string())
        });
        assert_eq!(
            stored.collect::<Vec<_>>(),
            [
                "/run/pickfs-r/above1/bindfs/work/file",
                "/run/pickfs-r/above/gocryptfs",
                "/run/pickfs-r/target/bindfs/gocryptfs"
            ]
        );
    }

    #[test]
    fn a_target_needs_the_programs_of_its_layers() {
        let chosen = |name: &str| Chosen { name: name.into(), ..Chosen::default() };
        let target = Target { above: vec![chosen("bindfs"), chosen("gocryptfs")], ..Target::default() };
        let programs = needs(&target).filter_map(|need| need.package()).collect::<Vec<_>>();
        assert_eq!(programs, ["bindfs", "gocryptfs", "bsdutils", "fuse3"]);
        let unknown = Target { above: vec![chosen("nofs")], ..Target::default() };
        let error = AboveMount::all(&unknown, &Place::of_run("r"), "pickfsC").err().unwrap();
        assert_eq!(error, "this agent knows no layer above `nofs`");
    }

    #[test]
    fn some_cannot_lie_on_others() {
        for (name, on, refused) in [
            ("overlayfs", "ext4", false),
            ("overlayfs", "vfat", true),
            ("overlayfs", "bindfs", true),
            ("bindfs", "overlayfs", false),
            ("bindfs", "squashfs", true),
            ("gocryptfs", "btrfs", false),
            ("gocryptfs", "bindfs", false),
        ] {
            assert_eq!(objection(name, on).is_some(), refused, "{name} on {on}");
        }
    }

    #[test]
    fn another_mount_in_its_place_is_a_mismatch() {
        let options = |word: &str| MountOptions::from([(word.to_string(), None)]);
        for (name, kind, word, wrong) in [
            ("bindfs", "fuse", "rw", 0),
            ("gocryptfs", "fuse.gocryptfs", "rw", 0),
            ("gocryptfs", "ext4", "rw", 1),
            ("sshfs", "fuse.sshfs", "ro", 1),
        ] {
            assert_eq!(mounts(&[name])[0].mismatches(kind, &options(word), "").len(), wrong, "{name} {kind} {word}");
        }
    }
}
