//! What people want a file system for, a TOML file each in `purposes`, found through one sorted
//! list: the questions that it answers, and the plan that answers them. A new one is a file and its
//! line in the list.

use super::{Exit, did_you_mean};
use anyhow::Result;
use pickfs_core::plan::{self, PlanArgs, PlanFlags};
use pickfs_host::wording::digest::Digest;
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Purpose {
    #[serde(skip)]
    pub(super) name: &'static str,
    pub(super) about: String,
    /// Other words for it, sorted.
    pub(super) also: Vec<String>,
    pub(super) questions: Vec<String>,
    /// As `--fs` takes them.
    fs: Vec<String>,
    /// Of the image, where less would not do.
    size: Option<String>,
    /// The model of the disk that is meant, whatever lies below the folder at hand.
    pub(super) disk: Option<String>,
    /// Works of the atlas that are this work, without its short form.
    #[serde(default)]
    atlas: Vec<String>,
    /// Works of the atlas that come near.
    #[serde(default)]
    pub(super) near: Vec<String>,
    /// The work that the atlas simulates: the purpose's own, in a short form.
    #[serde(default)]
    short: toml::Table,
    /// Why it has neither.
    #[serde(default)]
    pub(super) unsimulated: String,
    /// What of the question the plan does not measure.
    #[serde(default)]
    pub(super) lacks: String,
    /// What a plan file has, without what the options of `run` say.
    plan: toml::Table,
}

macro_rules! purposes {
    ($($name:literal),*) => { &[$(($name, include_str!(concat!("purposes/", $name, ".toml")))),*] };
}

/// Each with its text, sorted.
const ALL: &[(&str, &str)] = purposes![
    "aged", "backup", "big-folder", "build", "compression", "containers", "desktop", "games", "git", "key-value",
    "laptop", "logs", "mail", "media", "mysql", "nas", "photos", "postgres", "scientific", "sdcard", "snapshots",
    "sqlite", "usb", "vm-images", "web"
];

/// Every one, sorted by name.
pub(super) fn all() -> impl Iterator<Item = Purpose> {
    ALL.iter().map(|(name, text)| {
        let purpose = toml::from_str(text).unwrap_or_else(|error| panic!("{name} came broken: {error}"));
        Purpose { name, ..purpose }
    })
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// By its name or another word for it.
pub(super) fn find(word: &str) -> Result<Purpose> {
    let word = word.to_lowercase();
    let mut all: Vec<Purpose> = all().collect();
    if let Some(at) = all.iter().position(|one| one.name == word || one.also.contains(&word)) {
        return Ok(all.swap_remove(at));
    }
    let words = all.iter().flat_map(|one| one.also.iter().map(String::as_str).chain([one.name]));
    let near = plan::nearest(&word, words).or_else(|| {
        let about = all.iter().map(|one| (one.name, one.about.as_str()));
        plan::meant(&word, about)
    });
    let near = did_you_mean("pickfs for ", near);
    Err(Exit::usage(format!("no answer is prepared for `{}`; {near}`pickfs for` lists all", word.escape_debug())))
}

/// The command and what it is about, of each purpose that has the word; in lower case.
pub(super) fn that_mention(word: &str) -> Vec<[String; 2]> {
    let texts = |one: &Purpose| {
        [one.questions.clone(), one.also.clone(), vec![one.name.into()]].concat().join(" ").to_lowercase()
    };
    let found = all().filter(|one| texts(one).contains(word) || one.about.to_lowercase().contains(word));
    found.map(|one| [format!("pickfs for {}", one.name), one.about]).collect()
}

/// What each run of the atlas has but its work, its file systems, its disk, and the rounds of each
/// simulation that flags ask for.
const SHORT: &str = r#"
seed = 1
jobs = 1
duplicate = false
other_speeds = false
machine = { kernel = "bookworm", saved = true }
"#;
const SHORT_SIZE: &str = "1GiB";

impl Purpose {
    pub(super) fn has_short(&self) -> bool {
        !self.short.is_empty()
    }

    /// Works of the atlas that are this work: the ones that its file names, and its own short form.
    pub(super) fn in_atlas(&self) -> Vec<String> {
        self.atlas.iter().cloned().chain([self.name.to_string()]).collect()
    }

    /// Disks on which the atlas has this work, sorted.
    pub(super) fn disks_in_atlas(&self) -> BTreeSet<String> {
        let works = self.in_atlas();
        atlas().into_iter().filter(|digest| works.contains(&digest.work)).map(|digest| digest.disk).collect()
    }

    /// The plan of its run in the atlas, whose work has the purpose's name; on the disk that the
    /// options name.
    pub(super) fn in_short(&self, given: &PlanFlags) -> Result<PlanArgs> {
        let name = self.name;
        if !self.has_short() {
            return Err(Exit::usage(format!("--short: `{name}` has no short form; leave it out")));
        }
        if given.texts("sim").len() != 1 {
            return Err(Exit::usage("--short is the plan of a simulation: name one disk with --sim"));
        }
        let mut base: toml::Table = toml::from_str(SHORT)?;
        let disk = pickfs_disks::whole_name(&given.texts("sim")[0]);
        base.insert("title".into(), format!("Atlas: {name} on {disk}, kernel of bookworm").into());
        let mut work = self.short.clone();
        work.insert("name".into(), name.into());
        base.insert("work".into(), vec![work].into());
        let mut flags = given.clone();
        if !given.has("size") {
            flags.set("size", [SHORT_SIZE]);
        }
        Ok(Purpose { plan: base, fs: self.fs.clone(), ..Purpose::default() }.arguments(&flags, None))
    }

    /// With these options, which change the plan.
    pub(super) fn arguments(&self, given: &PlanFlags, executor: Option<String>) -> PlanArgs {
        let mut flags = given.clone();
        let is_root = rustix::process::geteuid().is_root();
        // Existing folders are compared, except one that root can make an image in.
        let makes = given.has("memory") || given.texts("on").len() < 2 && (is_root || !given.has("on"));
        if makes && !given.has("fs") {
            flags.set("fs", &self.fs);
        }
        let size = self.size.iter().filter(|_| !given.has("size"));
        size.for_each(|size| flags.set("size", [size]));
        PlanArgs { base: self.plan.clone(), flags, executor, ..PlanArgs::default() }
    }
}

/// What the atlas of simulated disks says of these works on this disk, sorted. `make atlas-digest`
/// makes the file from the journals.
pub(super) fn known(works: &[String], disk: &str) -> Vec<Digest> {
    atlas().into_iter().filter(|digest: &Digest| works.contains(&digest.work) && digest.disk == disk).collect()
}

pub(super) fn atlas() -> Vec<Digest> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    include_str!("purposes/atlas.jsonl").lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::plan_source;

    #[test]
    fn a_short_form_has_the_size_that_is_asked_for() {
        for (asked, size) in [(None, SHORT_SIZE), (Some("8GiB"), "8GiB")] {
            let mut flags = PlanFlags::default();
            flags.set("sim", ["nvme"]);
            asked.into_iter().for_each(|size| flags.set("size", [size]));
            let short = find("laptop").and_then(|purpose| purpose.in_short(&flags)).expect("a short form");
            assert_eq!(short.flags.text("size"), Some(size));
        }
    }

    #[test]
    fn every_purpose_is_complete_and_found_by_each_of_its_words() {
        assert!(names().is_sorted(), "sorted");
        let mut words = BTreeSet::new();
        for one in all() {
            assert!(one.also.is_sorted() && !one.questions.is_empty() && one.fs.len() > 1, "{}", one.name);
            assert!(one.questions.iter().all(|question| question.ends_with('?')), "{:?}", one.questions);
            assert!(one.disk.iter().all(|disk| pickfs_disks::find(disk).is_some()), "{:?}", one.disk);
            for word in one.also.iter().map(String::as_str).chain([one.name]) {
                assert!(words.insert(word.to_string()), "{word} is two");
                assert_eq!(find(&word.to_uppercase()).expect("a purpose").name, one.name);
            }
        }
    }

    #[test]
    fn every_plan_is_right_and_can_be_changed() {
        let root = rustix::process::geteuid().is_root();
        for one in all() {
            let plan = |flags: &[(&'static str, &[&str])]| {
                let mut given = PlanFlags::default();
                flags.iter().for_each(|(name, values)| given.set(name, values.iter().copied()));
                plan_source::checked(one.arguments(&given, None))
                    .unwrap_or_else(|error| panic!("{}: {error}", one.name))
            };
            let names = |plan: &pickfs_core::plan::Plan| {
                plan.targets.iter().map(|target| target.name.clone()).collect::<BTreeSet<_>>().len()
            };
            assert!(plan(&[]).stop.budget_ns.is_some(), "{}: how long it takes is known", one.name);
            assert!(names(&plan(&[("memory", &[])])) >= one.fs.len(), "{}", one.name);
            let changed = plan(&[("fs", &["ext4", "xfs"]), ("sim", &["nvme"]), ("budget", &["7min"])]);
            assert!(changed.executor == "sim" && changed.stop.budget_ns == Some(420_000_000_000), "{}", one.name);
            if root {
                assert_eq!(plan(&[("on", &["/tmp"])]).targets[0].backing.settings.text("dir"), Some("/tmp"));
            }
            // An existing folder cannot be made old.
            let is_made =
                one.plan.contains_key("matrix") || plan(&[("on", &["/tmp", "/var/tmp"])]).targets[0].fs.is_some();
            assert_eq!(is_made, one.plan.contains_key("matrix"), "{}: folders as they are", one.name);
        }
    }

    /// A short form is the simulation of one work, called as the purpose, of each of its file
    /// systems.
    #[test]
    fn short_forms_are_plans_of_the_atlas() {
        let mut given = PlanFlags::default();
        let shorts: Vec<Purpose> = all().filter(Purpose::has_short).collect();
        assert!(shorts.len() >= 5 && shorts.iter().all(|one| one.in_short(&given).is_err()), "no disk is named");
        given.set("sim", ["hdd"]);
        for one in shorts {
            let plan = plan_source::checked(one.in_short(&given).expect(one.name)).expect(one.name);
            let works: Vec<&str> = plan.works.iter().map(|work| work.name.as_str()).collect();
            assert_eq!((works, plan.stop.rounds, plan.executor.as_str()), (vec![one.name], Some(3), "sim"));
            assert_eq!((plan.targets.len(), plan.targets[0].machine.text("disk")), (one.fs.len(), Some("hdd-7200")));
        }
        let without = all().find(|one| !one.has_short()).expect("one");
        assert!(without.in_short(&given).is_err_and(|error| error.to_string().contains("no short form")));
    }

    /// `make atlas-digest` writes what has changed.
    #[test]
    fn the_page_lists_them() {
        let known = |one: &Purpose| match one.disks_in_atlas() {
            disks if !disks.is_empty() => Vec::from_iter(disks).join(", "),
            _ if one.has_short() => "not yet".into(),
            _ => format!("no: {}", one.unsimulated),
        };
        let rows: Vec<String> =
            all().map(|one| format!("| `{}` | {} | {} |", one.name, one.about, known(&one))).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/for.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (first, last) = (page.find("| `").expect("a table"), page.rfind(" |\n").expect("a table") + 2);
        let wanted = format!("{}{}{}", &page[..first], rows.join("\n"), &page[last..]);
        if std::env::var_os("PICKFS_WRITE_DIGEST").is_some() {
            std::fs::write(path, &wanted).expect("the page");
        }
        assert_eq!(page, wanted, "`make atlas-digest` brings it up to date");
    }

    /// Each word is in the atlas or can be simulated for it, or says why not.
    #[test]
    fn words_without_a_simulation_have_the_reason() {
        for one in all() {
            let simulated = one.has_short() || !one.atlas.is_empty();
            assert_eq!(simulated, one.unsimulated.is_empty(), "{}", one.name);
        }
    }

    /// A run of the atlas answers what its word asks now, whatever the word's file said when it was
    /// made.
    #[test]
    fn runs_of_the_atlas_have_the_plans_of_their_words() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../atlas");
        for digest in atlas() {
            let Some(one) = all().find(|one| one.name == digest.work) else { continue };
            let file = folder.join(format!("{}-{}-bookworm.jsonl.xz", one.name, digest.disk));
            let unpacked = std::process::Command::new("xz").arg("-dc").arg(&file).output().expect("xz").stdout;
            let made = pickfs_core::journal::fold(&unpacked[..]).expect("a journal").run.expect("a run").plan;
            let mut given = PlanFlags::default();
            given.set("sim", [&digest.disk]);
            let mut now = plan_source::checked(one.in_short(&given).expect(one.name)).expect(one.name);
            // These are from before programs had a pace of their own, as atlas/README.md says.
            let older = made.targets.iter().map(|target| !target.machine.0.contains_key("user_mode"));
            let targets = now.targets.iter_mut().zip(older).filter(|(_, is_older)| *is_older);
            targets.for_each(|(target, _)| drop(target.machine.0.remove("user_mode")));
            assert_eq!(made, now, "{}: `packaging/atlas` makes it anew", file.display());
        }
    }

    /// Each has something to show for it: a run of the atlas, where it names one.
    #[test]
    fn works_of_the_atlas_are_there_for_each_kind_of_disk() {
        for one in all() {
            for work in one.atlas.iter().chain(&one.near) {
                for disk in ["hdd-7200", "sata-ssd", "nvme"] {
                    assert!(!known(std::slice::from_ref(work), disk).is_empty(), "{}: {work} on {disk}", one.name);
                }
            }
        }
    }

    #[test]
    fn slips_are_answered_with_what_was_meant() {
        for (word, near) in [
            ("postgers", "pickfs for postgres`?"),
            ("dokcer", "pickfs for docker`?"),
            ("lapotp", "pickfs for laptop`?"),
            ("qemuu", "pickfs for qemu`?"),
            ("zzzzzz", "`pickfs for` lists all"),
        ] {
            let said = find(word).expect_err(word).to_string();
            assert!(said.contains(near), "{said}");
        }
    }
}
