//! The lines that a report says to paste, pasted: they give what was measured.

use crate::common::{Loop, run, unable};
use pickfs_core::plan::{Change, Discard, Target, Tunable, TunableDefault, TunableKind, TunableValue};
use pickfs_host::wording::advice::{self, Advice, DISK, FOLDER};
use pickfs_system::sys::devices::{effective_options, mount_of};
use pickfs_target::stack::fs::{self, Filesystem, FsSpec, Variant};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// A loop device that these lines make and mount.
struct Bench(Loop);

impl Bench {
    fn new() -> Bench {
        Bench::of(600 << 20)
    }

    fn of(bytes: u64) -> Bench {
        let bench = Bench(Loop::new(bytes));
        std::fs::create_dir(bench.0.mount_point()).unwrap();
        bench
    }

    fn folder(&self) -> String {
        self.0.mount_point().display().to_string()
    }

    /// Runs a line with this device and this folder, as a shell would: none of its words has
    /// quotes.
    fn paste(&self, line: &str) {
        let line = line.split('#').next().unwrap_or_default();
        let line = line.replace(DISK, &self.0.device).replace(FOLDER, &self.folder());
        for command in line.split(';').map(str::trim).filter(|command| !command.is_empty()) {
            run(&command.split_whitespace().collect::<Vec<_>>());
        }
    }

    /// Mounts by a line of fstab, as the machine would when it starts.
    fn mount_by_table(&self, line: &str) {
        let uuid = run(&["blkid", "--match-tag", "UUID", "--output", "value", &self.0.device]);
        let folder = self.folder();
        let table = self.0.mount_point().with_file_name("fstab");
        std::fs::write(&table, line.replace("UUID-OF-DISK", &uuid).replace(FOLDER, &folder) + "\n").unwrap();
        run(&["mount", "--fstab", &table.display().to_string(), &folder]);
    }

    fn unmount(&self) {
        run(&["umount", &self.folder()]);
    }

    fn options(&self) -> BTreeMap<String, Option<String>> {
        effective_options(&mount_of(&self.0.mount_point()).unwrap())
    }

    /// What the programs of the driver print of it, without what is another each time.
    fn facts(&self, driver: &Filesystem) -> BTreeMap<String, String> {
        let folder = self.folder();
        let said = |words: &&[&str]| {
            let words =
                words.iter().map(|word| word.replace("{device}", &self.0.device).replace("{mount point}", &folder));
            let words: Vec<String> = words.collect();
            let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).replace(&self.0.device, DISK).replace(&folder, FOLDER)
        };
        driver.facts.iter().map(|(name, words)| (name.to_string(), said(words))).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--quiet").arg(self.0.mount_point()).status();
    }
}

/// Lines of listings that say how it is made, and not when, by whom and with how much on it.
fn made_so(facts: &BTreeMap<String, String>) -> Vec<String> {
    const SAYS: &[&str] = &[
        "Filesystem features:", "Block size:", "Inode size:", "Reserved block count:", "Block count:", "Inode count:",
        "Cluster size:", "Flex block group size:", "RAID stripe width:", "Total journal size:", "meta-data=", "=  ",
        "data  ", "naming  ", "log  ", "realtime", "incompat_flags", "compat_ro_flags", "nodesize", "sectorsize",
        "csum_type", "Data, ", "Metadata, ", "System, ",
    ];
    let lines = facts.values().flat_map(|text| text.lines());
    let lines = lines.filter(|line| SAYS.iter().any(|begin| line.trim_start().starts_with(begin)));
    // How much is used of each is no matter of how it is made.
    lines.map(|line| line.split("used=").next().unwrap_or(line).to_string()).collect()
}

fn target(driver: &Filesystem, variant: &str, mkfs: &str, mount: &str) -> Target {
    let words = |text: &str| text.split_whitespace().map(String::from).collect();
    let variant = Some(variant.to_string()).filter(|variant| !variant.is_empty());
    Target {
        fs: Some(driver.name.into()),
        variant,
        mkfs: words(mkfs),
        mount: words(mount),
        discard: Discard::Fresh,
        ..Target::default()
    }
}

fn lines<'a>(advice: &'a Advice, when: &'a str) -> impl Iterator<Item = &'a str> {
    advice.steps.iter().filter(move |step| step.when == when).map(|step| step.command.as_str())
}

/// A new one by its lines, one made as for a measurement, and one that was there before.
fn check(driver: &Filesystem, target: &Target) {
    let named = format!("{} {:?} {:?} {:?}", driver.name, target.variant, target.mkfs, target.mount);
    let (new, measured, old) = (Bench::new(), Bench::new(), Bench::new());
    let spec_of = |bench: &Bench, target: &Target| {
        let (device, folder) = (PathBuf::from(&bench.0.device), bench.0.mount_point());
        let spec = FsSpec::new(driver, target, &device, &folder);
        (
            spec.mkfs.clone(),
            spec.mount.clone(),
            driver.mkfs(&spec).expect("a program"),
            driver.making.in_place.and_then(|in_place| in_place(&spec)),
        )
    };
    let (mkfs, mount, made, in_place) = spec_of(&measured, target);
    let advice = advice::of_target(target, &mkfs, &mount).unwrap_or_else(|| panic!("{named}: no advice"));
    let is_asked = |bench: &Bench, from: &str| {
        let (device, folder) = (PathBuf::from(&bench.0.device), bench.0.mount_point());
        // How it was made is compared below: one that was there was made otherwise.
        let mounted = Target { mkfs: Vec::new(), mount: mount.clone(), variant: None, ..target.clone() };
        let spec = FsSpec::new(driver, &mounted, &device, &folder);
        let wrong = driver.mismatches(&spec, &bench.options(), &bench.facts(driver));
        assert!(wrong.is_empty(), "{named} {from}: {wrong:?}");
    };
    // As for a measurement.
    run(&made.iter().map(String::as_str).collect::<Vec<_>>());
    lines(&advice, "mount").for_each(|line| measured.paste(line));
    in_place.iter().for_each(|words| drop(run(&words.iter().map(String::as_str).collect::<Vec<_>>())));
    // By the printed lines.
    lines(&advice, "new disk").for_each(|line| new.paste(line));
    lines(&advice, "mount").for_each(|line| new.paste(line));
    is_asked(&new, "mount");
    lines(&advice, "then").for_each(|line| new.paste(line));
    let made = made_so(&new.facts(driver));
    assert!(!made.is_empty() || !["btrfs", "ext4", "xfs"].contains(&driver.name), "{named}: {:?}", new.facts(driver));
    assert_eq!(made, made_so(&measured.facts(driver)), "{named}");
    assert_eq!(new.options(), measured.options(), "{named}");
    assert_eq!(new.facts(driver).get("root attributes"), measured.facts(driver).get("root attributes"), "{named}");
    let after_mount = new.options();
    new.unmount();
    lines(&advice, "fstab").for_each(|line| new.mount_by_table(line));
    assert_eq!(new.options(), after_mount, "{named}: fstab");
    // One that was there, made and mounted without any word.
    let plain = Target { mkfs: Vec::new(), mount: Vec::new(), variant: None, ..target.clone() };
    let (_, _, made, _) = spec_of(&old, &plain);
    run(&made.iter().map(String::as_str).collect::<Vec<_>>());
    lines(&advice, "existing").filter(|line| line.starts_with("tune2fs")).for_each(|line| old.paste(line));
    let plain = advice::of_target(&plain, &[], &[]).unwrap_or_default();
    lines(&plain, "mount").for_each(|line| old.paste(line));
    std::fs::write(old.0.mount_point().join("file"), vec![7; 1 << 20]).unwrap();
    let table = lines(&advice, "fstab").next().unwrap_or_default().to_string();
    for line in lines(&advice, "existing").filter(|line| !line.starts_with("tune2fs")) {
        if line.starts_with("umount") { (old.unmount(), old.mount_by_table(&table)).1 } else { old.paste(line) }
    }
    is_asked(&old, "existing");
    let only_new = advice.notes.iter().any(|note| note.starts_with("Only a new"));
    if driver.name.starts_with("ext") && !only_new {
        assert_eq!(made_so(&old.facts(driver)), made_so(&new.facts(driver)), "{named}: existing");
    }
}

/// Words beyond variants, as people give them.
const OTHERS: &[(&str, &str, &str)] = &[
    ("btrfs", "", "noatime compress-force=zstd:3"),
    ("btrfs", "", "nodatacow"),
    ("ext4", "", "commit=60 noauto_da_alloc"),
    ("ext4", "-O ^has_journal", "noatime"),
    ("ext4", "-m 0", "lazytime"),
    ("ext4", "-O fast_commit -m 1", ""),
    ("ext4", "-b 1024", "data=journal"),
    ("xfs", "-m reflink=0", "noatime"),
    ("xfs", "", "logbsize=256k allocsize=1m"),
];

#[test]
fn lines_of_a_report_give_what_was_measured() {
    let mut pasted = 0;
    for driver in fs::ALL.iter() {
        let is_made = driver.making.image.is_none() && !driver.making.mounts && !driver.volatile;
        if let (true, Some(why)) = (is_made, unable(&[driver.name])) {
            println!("{} is not made here: {why}", driver.name);
        }
        if !is_made || unable(&[driver.name]).is_some() {
            continue;
        }
        let fits = |variant: &&Variant| variant.least_devices == 1 && variant.zoned.is_none();
        let variants = driver.variants.iter().filter(fits).map(|variant| target(driver, variant.name, "", ""));
        let others = OTHERS.iter().filter(|(name, ..)| *name == driver.name);
        let others = others.map(|(_, mkfs, mount)| target(driver, "", mkfs, mount));
        for target in [target(driver, "", "", "")].into_iter().chain(variants).chain(others) {
            check(driver, &target);
            pasted += 1;
        }
    }
    println!("{pasted} targets");
}

#[test]
fn no_option_is_remounted_that_only_a_mount_takes() {
    let driver = fs::find("ext4").unwrap();
    let only_mount = |one: &&Tunable| one.kind == TunableKind::Mount && one.change == Change::MountAgain;
    let values: Vec<_> = driver.tunables.rows().iter().filter(only_mount).flat_map(Tunable::others).collect();
    assert!(values.iter().any(|value| value.words == ["nodelalloc"]));
    for value in values {
        let words: Vec<String> = value.words.iter().map(ToString::to_string).collect();
        let advice = advice::of_target(&target(driver, "", "", &words.join(" ")), &[], &words).unwrap_or_default();
        let remounted: Vec<_> = lines(&advice, "existing").filter(|line| line.contains("remount")).collect();
        assert!(remounted.is_empty(), "{words:?}: {remounted:?}");
    }
}

/// A file system that is made and mounted with values of its tunables.
#[derive(PartialEq)]
struct Turned {
    made: Vec<String>,
    options: BTreeMap<String, Option<String>>,
    attributes: Option<String>,
}

/// What mkfs prints where a version of it does not have a feature yet.
const LACKS: &[&str] = &["unrecognized filesystem feature", "Invalid filesystem option set", "unknown option"];

type Values<'a> = [(&'a Tunable, &'a TunableValue)];

fn tried(words: &[String]) -> Result<(), String> {
    let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
    let said = || format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(said()) }
}

impl Bench {
    fn make(&self, driver: &Filesystem, values: &Values) -> Result<(), String> {
        self.with_spec(driver, values, |spec| tried(&driver.mkfs(spec).expect("a program")))
    }

    fn mount(&self, driver: &Filesystem, values: &Values) -> Result<(), String> {
        self.with_spec(driver, values, |spec| {
            let options = if spec.mount.is_empty() { "defaults".to_string() } else { spec.mount.join(",") };
            tried(&["mount", "-t", driver.name, "-o", &options, &self.0.device, &self.folder()].map(String::from))?;
            let in_place = driver.making.in_place.and_then(|in_place| in_place(spec));
            in_place.map_or(Ok(()), |words| tried(&words))
        })
    }

    /// Unmounts it too; the error has what is not as the values say.
    fn read_back(&self, driver: &Filesystem, values: &Values) -> Result<Turned, String> {
        let (facts, options) = (self.facts(driver), self.options());
        self.unmount();
        let wrong = self.with_spec(driver, values, |spec| driver.mismatches(spec, &options, &facts));
        let is_shown = |(tunable, value): &(&Tunable, &TunableValue)| {
            value.shown.agrees(facts.get(tunable.fact).map(String::as_str).unwrap_or_default())
        };
        if !wrong.is_empty() || !values.iter().all(is_shown) {
            return Err(format!("not what was asked: {wrong:?} {facts:?}"));
        }
        Ok(Turned { made: made_so(&facts), options, attributes: facts.get("root attributes").cloned() })
    }

    fn with_spec<T>(&self, driver: &Filesystem, values: &Values, act: impl Fn(&FsSpec) -> T) -> T {
        let plain = target(driver, "", "", "");
        let target = values.iter().fold(plain, |target, (tunable, value)| tunable.applied(&target, value));
        let (device, folder) = (PathBuf::from(&self.0.device), self.0.mount_point());
        act(&FsSpec::new(driver, &target, &device, &folder))
    }
}

/// Made, mounted and read back with the values.
fn turn(driver: &Filesystem, bench: &Bench, values: &Values) -> Result<Turned, String> {
    let named = values.iter().map(|(tunable, value)| format!("{} {}", tunable.name, value.name)).collect::<Vec<_>>();
    let made = bench.make(driver, values).and_then(|()| bench.mount(driver, values));
    let turned = made.and_then(|()| bench.read_back(driver, values));
    turned.map_err(|said| format!("{} {}: {said}", driver.name, named.join(", ")))
}

/// One that is there without the value gets it by the line for that.
fn change(driver: &Filesystem, bench: &Bench, tunable: &Tunable, value: &TunableValue) -> Result<(), String> {
    let Some(line) = tunable.line(value).filter(|_| !matches!(tunable.change, Change::NewFiles(_))) else {
        return Ok(());
    };
    let line = line.replace("DEVICE", &bench.0.device).replace("FOLDER", &bench.folder());
    let paste = || {
        let words = |command: &str| command.split_whitespace().map(String::from).collect::<Vec<_>>();
        line.split(';').try_for_each(|command| tried(&words(command)))
    };
    bench.make(driver, &[])?;
    let pasted = match tunable.change {
        Change::Unmounted(_) => paste().and_then(|()| bench.mount(driver, &[])),
        _ => bench.mount(driver, &[]).and_then(|()| paste().inspect_err(|_| bench.unmount())),
    };
    let read = pasted.and_then(|()| bench.read_back(driver, &[(tunable, value)]));
    read.map(drop).map_err(|said| format!("{} {} {} of an existing one: {said}", driver.name, tunable.name, value.name))
}

/// Drivers that can be made here and have something to turn, with a device for each.
fn turnable() -> impl Iterator<Item = (&'static Filesystem, Bench)> {
    fs::ALL.iter().filter(|driver| !driver.tunables.rows().is_empty() && !driver.making.mounts).filter_map(|driver| {
        match unable(&[driver.name]) {
            Some(why) => println!("{} is not made here: {why}", driver.name),
            // What xfs takes for 16 allocation groups.
            None => {
                return Some((*driver, Bench::of(if driver.limits.least > 256 << 20 { 2 << 30 } else { 600 << 20 })));
            }
        }
        None
    })
}

impl Turned {
    /// The same without options that only show because they were asked for: some show a default
    /// then, such as `data=ordered`.
    fn but_for_what_is_asked(&self, value: &TunableValue, plain: &Turned) -> Turned {
        let is_asked = |name: &str| value.words.iter().any(|word| word.split('=').next() == Some(name));
        let kept = self.options.iter().filter(|(name, _)| plain.options.contains_key(*name) || !is_asked(name));
        let options = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        Turned { made: self.made.clone(), options, attributes: self.attributes.clone() }
    }
}

/// Tunables that nothing shows: default and other values look the same.
const UNSEEN: &[(&str, &str)] = &[("ext4", "journal_ioprio")];

#[test]
fn every_value_of_a_tunable_is_made_mounted_and_read_back() {
    let (mut turned, mut wrong) = (0, Vec::new());
    for (driver, bench) in turnable() {
        let plain = turn(driver, &bench, &[]).expect("a file system");
        for tunable in driver.tunables.rows().iter().filter(|tunable| tunable.is_settable()) {
            for value in tunable.values {
                let named = format!("{} {} {}", driver.name, tunable.name, value.name);
                let found = match turn(driver, &bench, &[(tunable, value)]) {
                    Err(said) if LACKS.iter().any(|lacks| said.contains(lacks)) => {
                        println!("mkfs here does not have it: {named}");
                        continue;
                    }
                    Err(said) => {
                        wrong.push(said);
                        continue;
                    }
                    Ok(found) => found,
                };
                turned += 1;
                if tunable.default != TunableDefault::Is(value.name) {
                    wrong.extend(change(driver, &bench, tunable, value).err());
                }
                let is_seen = !UNSEEN.contains(&(driver.name, tunable.name));
                match tunable.default {
                    TunableDefault::Is(default)
                        if default == value.name && found.but_for_what_is_asked(value, &plain) != plain =>
                    {
                        wrong.push(format!("{named} is not the default: {:?} {:?}", found.made, found.options));
                    }
                    TunableDefault::Is(default) if default != value.name && is_seen && found == plain => {
                        wrong.push(format!("{named} is as good as the default"));
                    }
                    _ => {}
                }
            }
        }
    }
    println!("{turned} values");
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

/// Two at a time, as a tuning crosses them: a quarter of an hour.
#[test]
#[ignore = "a quarter of an hour"]
fn values_that_do_not_exclude_each_other_go_together() {
    let (mut pairs, mut wrong) = (0, Vec::new());
    for (driver, bench) in turnable() {
        let can = |tunable: &&Tunable| tunable.is_settable();
        let values =
            driver.tunables.rows().iter().filter(can).flat_map(|one| one.others().map(move |value| (one, value)));
        let values: Vec<_> = values.filter(|value| turn(driver, &bench, &[*value]).is_ok()).collect();
        for (at, first) in values.iter().enumerate() {
            for second in values[at..].iter().filter(|second| second.0.name != first.0.name) {
                let excluded = first.1.excludes.contains(&second.0.name) || second.1.excludes.contains(&first.0.name);
                let outcome = turn(driver, &bench, &[*first, *second]);
                pairs += 1;
                wrong.extend(outcome.err().filter(|_| !excluded));
            }
        }
    }
    println!("{pairs} pairs");
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}
