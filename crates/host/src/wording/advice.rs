//! What to do with a verdict: the commands that make the pick, what an existing file system needs,
//! and what the choice costs.
//!
//! Of the journal only words are taken, into lines that are made here: a report of a stranger's
//! journal is pasted by root.

use super::text::{listed, plain};
use crate::analysis::{Model, TargetInfo, VerdictKind, value_of};
use pickfs_core::plan::{MkfsOptions, Settings, Target};
use usage::{USAGE, Usage};

mod usage;

/// How to come to a target.
#[derive(Debug, Default, PartialEq)]
pub struct Advice {
    pub target: String,
    pub steps: Vec<Step>,
    /// What the lines do not change, and what the choice costs.
    pub notes: Vec<String>,
}

/// A line to paste. [`DISK`] and [`FOLDER`] stand for what only the user knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// A few words: "new disk".
    pub when: &'static str,
    pub command: String,
    /// It belongs on the first screen.
    pub is_first: bool,
}

pub const DISK: &str = "/dev/DISK";
pub const FOLDER: &str = "/mnt/FOLDER";
/// A line of /etc/fstab, and no command.
pub const FSTAB: &str = "fstab";
const UDEV: &str = "udev rule";
const SYSCTL: &str = "sysctl";
/// Of lines of files, which are no commands.
pub const IN_FILES: [&str; 3] = [FSTAB, UDEV, SYSCTL];
const NEW: &str = "new disk";
const EXISTING: &str = "existing";

/// Unbroken, to be pasted, each with when.
pub(crate) fn pasted<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<String> {
    let steps: Vec<&Step> = steps.into_iter().collect();
    let widest = steps.iter().map(|step| step.when.len()).max().unwrap_or(0);
    steps.iter().map(|step| format!("  {:<widest$} {}", step.when, step.command)).collect()
}

/// The lines for a target whose mkfs and mount got these words: those of its variant, then its own.
/// `None` where there is no advice: for an existing folder, for an image, and where a word is
/// unsafe to paste.
pub fn of_target(target: &Target, mkfs: &[String], mount: &[String]) -> Option<Advice> {
    let name = target.fs.as_deref()?;
    let usage = USAGE.iter().find(|usage| usage.name == name)?;
    let words = Target { mkfs: mkfs.to_vec(), mount: mount.to_vec(), ..Target::default() };
    let is_safe =
        words.wrong_words(MkfsOptions::default()).is_empty() && mkfs.iter().chain(mount).all(|word| inert(word));
    if !is_safe {
        return None;
    }
    let in_place = target.nodatacow || (name == "btrfs" && target.variant.as_deref() == Some("nocow"));
    let lines = Lines { usage, mkfs, mount, disk: disk(target), in_place };
    let mut advice = Advice { target: plain(&target.name), ..Advice::default() };
    advice.steps.extend(lines.fresh());
    advice.steps.extend(lines.existing());
    advice.steps.extend(scheduler(target));
    advice.steps.extend(kept(target)?);
    advice.notes.extend(lines.notes());
    advice.notes.extend(where_kept(&advice.steps));
    let below: Vec<String> = target.layers.iter().map(|layer| plain(&layer.name)).collect();
    advice.notes.extend((!below.is_empty()).then(|| {
        format!(
            "Below it were {}, which these lines leave out: `pickfs plan` shows how they were made.",
            listed(&below)
        )
    }));
    Some(advice)
}

/// Safe in a shell without quotes.
fn inert(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:=^%+-".contains(c))
}

/// The device that was measured, where the plan names one; else one for each that it had.
fn disk(target: &Target) -> String {
    let settings = &target.backing.settings;
    let is_plain = |path: &&str| {
        path.starts_with("/dev/") && path.chars().all(|c| c.is_ascii_alphanumeric() || "/_-.:".contains(c))
    };
    match settings.text("path").filter(|_| target.backing.name == "device" && target.layers.is_empty()).filter(is_plain)
    {
        Some(path) => path.to_string(),
        None => match pickfs_core::plan::disks(settings).min(99) {
            1 => DISK.to_string(),
            count => (1..=count).map(|number| format!("{DISK}{number}")).collect::<Vec<_>>().join(" "),
        },
    }
}

fn scheduler(target: &Target) -> Option<Step> {
    let scheduler = target.scheduler.as_deref().filter(|name| inert(name))?;
    let command = format!("echo {scheduler} > /sys/block/DISK/queue/scheduler");
    Some(Step { when: "scheduler", command, is_first: true })
}

/// The lines of files that hold settings of the queue and of the kernel over a boot; `None` where a
/// word is unsafe.
fn kept(target: &Target) -> Option<Vec<Step>> {
    let scheduler = target.scheduler.iter().map(|value| ("scheduler".to_string(), value.clone()));
    let all = |settings: &Settings| {
        let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), String::from);
        settings.0.iter().map(|(name, value)| (name.clone(), text(value))).collect::<Vec<_>>()
    };
    let queue: Vec<(String, String)> = scheduler.chain(all(&target.queue)).collect();
    let sysctl = all(&target.sysctl);
    if queue.iter().chain(&sysctl).any(|(name, value)| !inert(name) || !inert(value)) {
        return None;
    }
    let rule = queue.iter().map(|(name, value)| format!(", ATTR{{queue/{name}}}=\"{value}\"")).collect::<String>();
    let rule = (!rule.is_empty()).then(|| format!("ACTION==\"add|change\", KERNEL==\"DISK\"{rule}"));
    let step = |when, command| Step { when, command, is_first: false };
    let lines = sysctl.iter().map(|(name, value)| step(SYSCTL, format!("vm.{name} = {value}")));
    Some(rule.into_iter().map(|rule| step(UDEV, rule)).chain(lines).collect())
}

/// Which files those are.
fn where_kept(steps: &[Step]) -> Option<String> {
    let file = |when: &str| match when {
        UDEV => {
            Some("/etc/udev/rules.d/60-DISK.rules takes the udev rule (`udevadm control --reload; udevadm trigger`)")
        }
        SYSCTL => {
            Some("/etc/sysctl.d/60-DISK.conf takes the lines of sysctl (`sysctl --system`), which hold for all disks")
        }
        _ => None,
    };
    let mut files: Vec<String> = steps.iter().filter_map(|step| file(step.when)).map(String::from).collect();
    files.dedup();
    (!files.is_empty()).then(|| format!("To hold after a boot: {}.", listed(&files)))
}

struct Lines<'a> {
    usage: &'a Usage,
    mkfs: &'a [String],
    mount: &'a [String],
    disk: String,
    in_place: bool,
}

impl Lines<'_> {
    /// Made anew.
    fn fresh(&self) -> Vec<Step> {
        let step = |when, command, is_first| Step { when, command, is_first };
        let words =
            |parts: &[&str]| parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ");
        let mkfs = self.mkfs.join(" ");
        if self.usage.is_pool {
            let properties = self.mount.iter().map(|property| format!("-O {property}")).collect::<Vec<_>>().join(" ");
            let made = words(&[self.usage.mkfs, &properties, "-m", FOLDER, "POOL", &mkfs, &self.disk]);
            return vec![step(NEW, made, true)];
        }
        let first = self.disk.split(' ').next().unwrap_or(DISK);
        let mut steps = Vec::new();
        if !self.usage.mkfs.is_empty() {
            steps.push(step(NEW, words(&[self.usage.mkfs, &mkfs, &self.disk]), true));
        }
        let (from, in_table) = match self.usage.mkfs {
            "" => ("none", "none".to_string()),
            _ => (first, "UUID=UUID-OF-DISK".to_string()),
        };
        let kind = self.usage.kind();
        let options = if self.mount.is_empty() { "defaults".to_string() } else { self.mount.join(",") };
        steps.push(step("mount", words(&["mount -t", kind, "-o", &options, from, FOLDER]), false));
        // After the root (fstab(5)).
        let pass = if self.usage.is_checked { 2 } else { 0 };
        steps.push(step(FSTAB, format!("{in_table} {FOLDER} {kind} {options} 0 {pass}"), true));
        if self.in_place {
            steps.push(step("then", format!("chattr +C {FOLDER}"), true));
        }
        steps
    }

    /// What one of the same kind needs that is there already.
    fn existing(&self) -> Vec<Step> {
        let step = |command: String| Step { when: EXISTING, command, is_first: false };
        let mut steps = Vec::new();
        if self.usage.is_pool {
            steps.extend(self.mount.iter().map(|property| step(format!("zfs set {property} POOL"))));
            return steps;
        }
        steps.extend(self.tuned().into_iter().flatten().map(step));
        if !self.mount.is_empty() {
            let options = self.mount.join(",");
            let can = self.mount.iter().all(|option| self.usage.remounts(option));
            let again = format!("umount {FOLDER}; mount {FOLDER}   # with the line of fstab");
            let now = if can { format!("mount -o remount,{options} {FOLDER}") } else { again };
            steps.push(Step { is_first: true, ..step(now) });
        }
        if let Some(algorithm) = self.compression() {
            steps.push(Step {
                is_first: true,
                ..step(format!("btrfs filesystem defragment -r -c{algorithm} {FOLDER}"))
            });
        }
        steps
    }

    /// Commands of the unmounted file system that stand for words of its mkfs; `None` where only a
    /// new one has them.
    fn tuned(&self) -> Option<Vec<String>> {
        let pairs = self.mkfs.chunks(2);
        pairs
            .map(|pair| match pair {
                [option, value] if self.usage.tunes(option, value) => {
                    Some(format!("tune2fs {option} {value} {}", self.disk))
                }
                _ => None,
            })
            .collect()
    }

    /// As `btrfs filesystem defragment` takes it.
    fn compression(&self) -> Option<&str> {
        let option = self.mount.iter().rev().find_map(|option| option.strip_prefix("compress"));
        let value = option?.trim_start_matches("-force").strip_prefix('=')?;
        let algorithm = value.split(':').next().unwrap_or_default();
        (self.usage.name == "btrfs" && ["lzo", "zlib", "zstd"].contains(&algorithm)).then_some(algorithm)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.compression().is_some() {
            notes.push(
                "Existing files do not change until `defragment` rewrites them, which copies what snapshots and \
                 reflinks share."
                    .to_string(),
            );
        }
        if self.in_place {
            notes.push(
                "`chattr +C` holds for files that are made from then on in that folder: copy the others anew (`cp \
                 --reflink=never`). They have no checksums and no compression."
                    .to_string(),
            );
        }
        match self.tuned() {
            None => {
                let words = self.mkfs.join(" ");
                notes.push(format!("Only a new {} has `{words}`: an existing one does not get it.", self.usage.name));
            }
            Some(tuned) if !tuned.is_empty() => {
                notes.push("`tune2fs` wants it unmounted; it reports where `e2fsck -f` must follow.".to_string());
            }
            Some(_) => {}
        }
        if !self.usage.mkfs.is_empty() {
            notes.push("A file system of another kind stays what it is: copy its files away, make the new one, copy them back.".into());
        }
        notes
    }
}

impl Model {
    /// For the pick of the run, or the first of several that are as good.
    pub fn advice(&self) -> Option<Advice> {
        let verdict = &self.judged()?.verdict;
        let picked = matches!(verdict.kind, VerdictKind::Pick | VerdictKind::Tie);
        let at = *verdict.best.first().filter(|_| picked)?;
        let target = &self.targets[at];
        let planned = target.planned.as_ref()?;
        let (mkfs, mount) = words(target, planned)?;
        let mut advice = of_target(planned, &mkfs, &mount)?;
        advice.notes.extend(self.costs(target));
        Some(advice)
    }

    /// What others of the run have, and what a crash may take.
    fn costs(&self, target: &TargetInfo) -> Vec<String> {
        let lost = super::features::lacked(self, target);
        let lost =
            (!lost.is_empty()).then(|| format!("{} lacks what others here have: {}.", target.name, lost.join(", ")));
        let weak = (!target.weakened.is_empty())
            .then(|| format!("After a crash it may lose more than by default: {}.", target.weakened.join(", ")));
        lost.into_iter().chain(weak).collect()
    }
}

/// Words of mkfs and of mount, unchanged. Earlier journals do not have those of variants.
fn words(target: &TargetInfo, planned: &Target) -> Option<(Vec<String>, Vec<String>)> {
    let fact = |name: &str| value_of(&target.facts, name);
    let split = |text: &str, end: char| text.split(end).filter(|word| !word.is_empty()).map(String::from).collect();
    match (fact(pickfs_core::journal::MKFS_WORDS), fact(pickfs_core::journal::MOUNT_WORDS)) {
        (Some(mkfs), Some(mount)) => Some((split(mkfs, ' '), split(mount, ','))),
        _ if planned.variant.is_none() => Some((planned.mkfs.clone(), planned.mount.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Chosen;

    fn said(fs: &str, mkfs: &str, mount: &str) -> Vec<String> {
        let split = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        let target = Target { fs: Some(fs.into()), ..Target::default() };
        let advice = of_target(&target, &split(mkfs), &split(mount));
        let steps = advice.into_iter().flat_map(|advice| advice.steps);
        steps.map(|step| format!("{}: {}", step.when, step.command)).collect()
    }

    #[test]
    fn lines_are_those_of_the_words() {
        for (fs, mkfs, mount, lines) in [
            (
                "ext4",
                "",
                "",
                "new disk: mkfs.ext4 /dev/DISK / mount: mount -t ext4 -o defaults /dev/DISK /mnt/FOLDER / \
              fstab: UUID=UUID-OF-DISK /mnt/FOLDER ext4 defaults 0 2",
            ),
            (
                "ext4",
                "-O ^has_journal",
                "noatime",
                "new disk: mkfs.ext4 -O ^has_journal /dev/DISK / \
              mount: mount -t ext4 -o noatime /dev/DISK /mnt/FOLDER / fstab: UUID=UUID-OF-DISK /mnt/FOLDER ext4 noatime 0 2 / \
              existing: tune2fs -O ^has_journal /dev/DISK / existing: mount -o remount,noatime /mnt/FOLDER",
            ),
            (
                "jfs",
                "",
                "noatime",
                "new disk: mkfs.jfs /dev/DISK / mount: mount -t jfs -o noatime /dev/DISK /mnt/FOLDER / \
              fstab: UUID=UUID-OF-DISK /mnt/FOLDER jfs noatime 0 2 / existing: mount -o remount,noatime /mnt/FOLDER",
            ),
            (
                "btrfs",
                "",
                "compress=zstd:1",
                "new disk: mkfs.btrfs /dev/DISK / \
              mount: mount -t btrfs -o compress=zstd:1 /dev/DISK /mnt/FOLDER / \
              fstab: UUID=UUID-OF-DISK /mnt/FOLDER btrfs compress=zstd:1 0 0 / \
              existing: mount -o remount,compress=zstd:1 /mnt/FOLDER / \
              existing: btrfs filesystem defragment -r -czstd /mnt/FOLDER",
            ),
            (
                "xfs",
                "",
                "logbsize=256k",
                "new disk: mkfs.xfs /dev/DISK / \
              mount: mount -t xfs -o logbsize=256k /dev/DISK /mnt/FOLDER / \
              fstab: UUID=UUID-OF-DISK /mnt/FOLDER xfs logbsize=256k 0 0 / \
              existing: umount /mnt/FOLDER; mount /mnt/FOLDER   # with the line of fstab",
            ),
            (
                "zfs",
                "",
                "compression=lz4",
                "new disk: zpool create -O compression=lz4 -m /mnt/FOLDER POOL /dev/DISK / \
              existing: zfs set compression=lz4 POOL",
            ),
            (
                "tmpfs",
                "",
                "size=1g",
                "mount: mount -t tmpfs -o size=1g none /mnt/FOLDER / \
              fstab: none /mnt/FOLDER tmpfs size=1g 0 0 / existing: mount -o remount,size=1g /mnt/FOLDER",
            ),
            ("squashfs", "", "", ""),
        ] {
            assert_eq!(said(fs, mkfs, mount).join(" / "), lines, "{fs} {mkfs} {mount}");
        }
    }

    #[test]
    fn settings_of_the_queue_and_the_kernel_hold_over_a_boot() {
        let settings = |pairs: &[(&str, &str)]| {
            Settings(pairs.iter().map(|(name, value)| (name.to_string(), (*value).into())).collect())
        };
        let target = |value: &str| Target {
            fs: Some("ext4".into()),
            scheduler: Some("bfq".into()),
            queue: settings(&[("read_ahead_kb", value)]),
            sysctl: settings(&[("dirty_bytes", "64")]),
            ..Target::default()
        };
        let advice = of_target(&target("512"), &[], &[]).expect("lines");
        let in_files: Vec<(&str, &str)> = advice.steps.iter().map(|step| (step.when, step.command.as_str())).collect();
        let rule =
            r#"ACTION=="add|change", KERNEL=="DISK", ATTR{queue/scheduler}="bfq", ATTR{queue/read_ahead_kb}="512""#;
        assert!(in_files.ends_with(&[(UDEV, rule), (SYSCTL, "vm.dirty_bytes = 64")]), "{in_files:?}");
        assert!(advice.notes.iter().any(|note| note.contains("udev rule") && note.contains("sysctl.d")));
        assert_eq!(of_target(&target("5\", RUN=\"x"), &[], &[]), None);
    }

    /// A journal may be of a stranger, and root pastes what its report says.
    #[test]
    fn nothing_is_said_of_words_that_a_shell_or_a_program_could_misread() {
        for (mkfs, mount) in
            [("", "noatime;reboot"), ("-L $(reboot)", ""), ("/etc/passwd", ""), ("", "loop=x"), ("-d x", "a/b")]
        {
            assert!(said("ext4", mkfs, mount).is_empty(), "{mkfs} {mount}");
        }
        assert!(said("ext4; reboot", "", "").is_empty());
        let settings = pickfs_core::plan::Settings([("path".to_string(), "/dev/x; reboot".into())].into());
        let backing = Chosen { name: "device".into(), settings };
        assert_eq!(disk(&Target { backing, ..Target::default() }), DISK);
    }
}
