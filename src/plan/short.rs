//! The short command line, as the plan file that says the same: one checker serves both, and a user can go on from
//! the printed file.

use super::complaint::{Complaint, Complaints, nearest, quoted};
use super::{Catalogue, Plan, from_toml};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const USUAL_TARGETS: [&str; 5] = ["ext4", "xfs", "btrfs", "btrfs:lzo", "btrfs:zstd:1"];
const USUAL_WORKLOAD: &str = "tree";

/// What the flags of `pickfs run` and `pickfs plan` say without a plan file.
#[derive(Clone, Debug, Default)]
pub struct Short {
    /// `NAME`, `NAME:VARIANT` or `NAME:OPTION+OPTION`.
    pub fs: Vec<String>,
    pub on: Vec<PathBuf>,
    pub source: Option<PathBuf>,
    /// A profile's name or file.
    pub like: Option<String>,
    pub scale: Option<f64>,
    pub size: Option<String>,
    pub memory: bool,
    /// As in [matrix]: every target with each.
    pub age: Vec<String>,
    pub fill: Vec<String>,
    pub rounds: Option<u32>,
    /// A share, such as `2%`.
    pub precision: Option<String>,
    /// A time, such as `2h`.
    pub budget: Option<String>,
    /// Features that a target must have.
    pub require: Vec<String>,
    pub seed: Option<u64>,
    pub workload: Option<String>,
    /// Are we root?
    pub root: bool,
    /// The current directory.
    pub folder: PathBuf,
}

/// The plan that the flags mean.
pub fn short(short: &Short, catalogue: &Catalogue) -> Result<Plan, Vec<Complaint>> {
    checked(short, catalogue).map(|(_, plan)| plan)
}

/// The text of the plan file that means the same as the flags.
pub fn short_toml(short: &Short, catalogue: &Catalogue) -> Result<String, Vec<Complaint>> {
    checked(short, catalogue).map(|(text, _)| text)
}

fn checked(short: &Short, catalogue: &Catalogue) -> Result<(String, Plan), Vec<Complaint>> {
    let mut document = Document::default();
    let mut complaints = Complaints::default();
    let parts: Vec<Part> = parts(short, catalogue, &mut complaints);
    repeated("--fs", &short.fs, &mut complaints);
    repeated("--on", short.on.iter().map(|path| path.to_string_lossy()), &mut complaints);
    write(short, &parts, &mut document, &mut complaints);
    let complaints = complaints.finish();
    if !complaints.is_empty() {
        return Err(complaints);
    }
    match from_toml(&document.text, "", &short.folder, catalogue) {
        Ok(plan) => Ok((document.text, plan)),
        Err(complaints) => Err(complaints.into_iter().map(|complaint| document.blame(complaint)).collect()),
    }
}

/// TOML that remembers from which flag each piece of it came.
#[derive(Default)]
struct Document {
    text: String,
    pieces: Vec<(usize, &'static str)>,
}

impl Document {
    fn put(&mut self, flag: &'static str, text: &str) {
        self.pieces.push((self.text.len(), flag));
        self.text.push_str(text);
    }

    fn line(&mut self, flag: &'static str, key: &str, value: &str) {
        self.put(flag, &format!("{key} = {value}\n"));
    }

    /// The complaint without its place in a text that nobody wrote, but with the flag that it comes from.
    fn blame(&self, complaint: Complaint) -> Complaint {
        let start = complaint.span.map(|span| span.start);
        let piece = self.pieces.iter().rev().find(|(from, _)| start.is_some_and(|start| *from <= start));
        let message = match piece {
            Some((_, flag)) if !flag.is_empty() => format!("{flag}: {}", complaint.message),
            _ => complaint.message,
        };
        Complaint { span: None, message, ..complaint }
    }
}

/// One element of `--fs`.
struct Part {
    name: String,
    variant: Option<String>,
    mount: Vec<String>,
}

impl Part {
    /// As a target is named by default.
    fn shown(&self) -> String {
        let words: Vec<&str> = [&self.name].into_iter().chain(&self.variant).chain(&self.mount).map(|w| &**w).collect();
        words.join(" ")
    }
}

fn parts(short: &Short, catalogue: &Catalogue, complaints: &mut Complaints) -> Vec<Part> {
    if short.fs.is_empty() && (short.on.is_empty() || short.memory) {
        return USUAL_TARGETS.iter().filter_map(|text| part(text, catalogue, complaints)).collect();
    }
    short.fs.iter().filter_map(|text| part(text, catalogue, complaints)).collect()
}

fn part(text: &str, catalogue: &Catalogue, complaints: &mut Complaints) -> Option<Part> {
    let (name, options) = text.split_once(':').map_or((text, None), |(name, options)| (name, Some(options)));
    let mut part = Part { name: name.trim().into(), variant: None, mount: Vec::new() };
    if part.name.is_empty() {
        let message = format!("--fs has an element without a name: {}", quoted(text));
        return complaints.refuse(&None, message, "write names with commas between them: --fs ext4,xfs");
    }
    let Some(options) = options else { return Some(part) };
    let driver = catalogue.filesystems.iter().find(|entry| entry.name == part.name);
    let variants = driver.map(|entry| entry.variants.as_slice()).unwrap_or_default();
    if variants.contains(&options) {
        part.variant = Some(options.into());
        return Some(part);
    }
    part.mount = options.split('+').map(String::from).collect();
    match part.mount.iter().find(|option| option.trim().is_empty() || is_no_option(option)) {
        Some(wrong) => complaints.refuse(&None, wrong_option(text, wrong), variant_remedy(options, variants)),
        None => Some(part),
    }
}

/// A colon before any `=` is how variants are written, `zstd:9`, and no mount option is.
fn is_no_option(option: &str) -> bool {
    option.split('=').next().is_some_and(|key| key.contains(':'))
}

fn wrong_option(text: &str, wrong: &str) -> String {
    match wrong.trim() {
        "" => format!("--fs has an empty option in {}", quoted(text)),
        wrong => format!("--fs: {} in {} is neither a variant nor a mount option", quoted(wrong), quoted(text)),
    }
}

fn variant_remedy(options: &str, variants: &[&'static str]) -> String {
    let example = "write mount options with `+` between them: btrfs:compress=zstd:1+noatime";
    match nearest(options, variants.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if variants.is_empty() => example.into(),
        None => format!("use a variant ({}), or {example}", variants.join(", ")),
    }
}

fn repeated(flag: &str, values: impl IntoIterator<Item = impl AsRef<str>>, complaints: &mut Complaints) {
    let mut seen = HashSet::new();
    for value in values {
        if !seen.insert(value.as_ref().to_string()) {
            complaints.add(&None, format!("{flag} names {} twice", quoted(value.as_ref())), "leave one of the two out");
        }
    }
}

fn write(short: &Short, parts: &[Part], document: &mut Document, complaints: &mut Complaints) {
    if let Some(seed) = short.seed {
        document.line("--seed", "seed", &seed.to_string());
    }
    write_targets(short, parts, document, complaints);
    write_matrix(short, document);
    document.put("", "\n[[work]]\n");
    document.line("--workload", "workload", &text(short.workload.as_deref().unwrap_or(USUAL_WORKLOAD)));
    if let Some(source) = &short.source {
        document.line("--source", "source", &text(&full("--source", source, short, complaints)));
    }
    write_likeness(short, document, complaints);
    write_verdict(short, document);
    write_stop(short, document);
}

fn write_matrix(short: &Short, document: &mut Document) {
    if !short.age.is_empty() || !short.fill.is_empty() {
        document.put("", "\n[matrix]\n");
    }
    for (flag, key, values) in [("--age", "age", &short.age), ("--fill", "fill", &short.fill)] {
        let values: Vec<String> = values.iter().map(|value| text(value)).collect();
        if !values.is_empty() {
            document.line(flag, key, &format!("[{}]", values.join(", ")));
        }
    }
}

fn write_likeness(short: &Short, document: &mut Document, complaints: &mut Complaints) {
    if let Some(like) = &short.like {
        let is_file = like.contains('/') || like.ends_with(".toml");
        let like = if is_file { full("--like", Path::new(like), short, complaints) } else { like.clone() };
        document.line("--like", "like", &text(&like));
    }
    if let Some(scale) = short.scale {
        document.line("--scale", "scale", &toml::Value::from(scale).to_string());
    }
}

fn write_verdict(short: &Short, document: &mut Document) {
    if !short.require.is_empty() {
        let names: Vec<String> = short.require.iter().map(|name| text(name)).collect();
        document.put("", "\n[verdict]\n");
        document.line("--require", "require", &format!("[{}]", names.join(", ")));
    }
}

fn write_stop(short: &Short, document: &mut Document) {
    let lines = [
        ("--rounds", "rounds", short.rounds.map(|rounds| rounds.to_string())),
        ("--precision", "precision", short.precision.as_deref().map(text)),
        ("--budget", "budget", short.budget.as_deref().map(text)),
    ];
    if lines.iter().any(|(_, _, value)| value.is_some()) {
        document.put("", "\n[stop]\n");
    }
    for (flag, key, value) in lines {
        if let Some(value) = value {
            document.line(flag, key, &value);
        }
    }
}

/// Which targets the flags mean, and on what.
fn write_targets(short: &Short, parts: &[Part], document: &mut Document, complaints: &mut Complaints) {
    let on: Vec<String> = short.on.iter().map(|path| full("--on", path, short, complaints)).collect();
    if short.memory && !on.is_empty() {
        let remedy = "leave one of the two out: memory lies in no directory";
        complaints.add(&None, "--memory and --on exclude each other", remedy);
    }
    match on.as_slice() {
        _ if short.memory => on_one(&Backing { place: Place::Memory, size: &short.size }, parts, document),
        [] => {
            let folder = full("the current directory", Path::new("."), short, complaints);
            on_one(&Backing { place: Place::Image("", &folder), size: &short.size }, parts, document);
        }
        all if parts.is_empty() => directories(all, document),
        [first, ..] if !short.root => as_found(first, &on, parts, &short.size, document),
        [one] => on_one(&Backing { place: Place::Image("--on", one), size: &short.size }, parts, document),
        all => on_each(all, parts, &short.size, document),
    }
}

enum Place<'a> {
    Memory,
    /// The flag that names the directory, and the directory.
    Image(&'static str, &'a str),
    Directory(&'a str),
}

struct Backing<'a> {
    place: Place<'a>,
    size: &'a Option<String>,
}

impl Backing<'_> {
    /// `image = { dir = "/mnt", size = "4GiB" }`, each piece under its flag.
    fn put(&self, document: &mut Document) {
        let flag = match self.place {
            Place::Directory(path) => return document.put("--on", &format!("directory = {}", text(path))),
            Place::Memory => {
                document.put("--memory", "memory = { ");
                "--memory"
            }
            Place::Image(flag, path) => {
                document.put(flag, &format!("image = {{ dir = {}", text(path)));
                document.put(flag, if self.size.is_some() { ", " } else { " " });
                flag
            }
        };
        if let Some(size) = self.size {
            document.put("--size", &format!("size = {} ", text(size)));
        }
        document.put(flag, "}");
    }

    fn put_own(&self, document: &mut Document) {
        document.put("", "backing = { ");
        self.put(document);
        document.put("", " }\n");
    }

    fn put_shared(&self, document: &mut Document) {
        document.put("", if document.text.is_empty() { "[backing]\n" } else { "\n[backing]\n" });
        self.put(document);
        document.put("", "\n");
    }
}

fn on_one(backing: &Backing, parts: &[Part], document: &mut Document) {
    backing.put_shared(document);
    for part in parts {
        put_target(document);
        put_part(part, document);
    }
}

/// Every file system in every directory; the directory is part of the name then.
fn on_each(all: &[String], parts: &[Part], size: &Option<String>, document: &mut Document) {
    for path in all {
        for part in parts {
            put_target(document);
            document.line("--fs", "name", &text(&format!("{} on {path}", part.shown())));
            put_part(part, document);
            Backing { place: Place::Image("--on", path), size }.put_own(document);
        }
    }
}

/// Without root no file system can be made, so the directories are compared as they are; those that were asked for stay
/// in the plan, and each is skipped with its reasons.
fn as_found(first: &str, on: &[String], parts: &[Part], size: &Option<String>, document: &mut Document) {
    Backing { place: Place::Image("--on", first), size }.put_shared(document);
    for path in on {
        put_target(document);
        Backing { place: Place::Directory(path), size }.put_own(document);
    }
    for part in parts {
        put_target(document);
        put_part(part, document);
    }
}

fn directories(all: &[String], document: &mut Document) {
    let paths: Vec<String> = all.iter().map(|path| text(path)).collect();
    let value = if let [one] = paths.as_slice() { one.clone() } else { format!("[{}]", paths.join(", ")) };
    document.put("", if document.text.is_empty() { "[backing]\n" } else { "\n[backing]\n" });
    document.line("--on", "directory", &value);
}

fn put_target(document: &mut Document) {
    document.put("", if document.text.is_empty() { "" } else { "\n" });
    document.put("--fs", "[[target]]\n");
}

fn put_part(part: &Part, document: &mut Document) {
    document.line("--fs", "fs", &text(&part.name));
    if let Some(variant) = &part.variant {
        document.line("--fs", "variant", &text(variant));
    }
    if !part.mount.is_empty() {
        let options: Vec<String> = part.mount.iter().map(|option| text(option)).collect();
        document.line("--fs", "mount", &format!("[{}]", options.join(", ")));
    }
}

/// Any text as a TOML string.
fn text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The path made absolute here, so that the printed plan means the same wherever it is kept.
fn full(flag: &str, path: &Path, short: &Short, complaints: &mut Complaints) -> String {
    if path.as_os_str().is_empty() {
        complaints.add(&None, format!("{flag} is empty"), "name a path");
    }
    let full = std::path::absolute(short.folder.join(path)).ok();
    full.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| {
        let message = format!("{flag}: {} cannot be made an absolute path in UTF-8", quoted(&path.to_string_lossy()));
        complaints.add(&None, message, "use a path that has only UTF-8 in it");
        String::new()
    })
}

#[cfg(test)]
mod tests {
    use super::super::example::catalogue;
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    /// The command line of a test: `root` and `memory` stand alone, everything else takes a value.
    fn parsed(line: &str) -> Short {
        let mut short = Short { folder: "/here".into(), ..Short::default() };
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "root" => short.root = true,
                "memory" => short.memory = true,
                _ => set(&mut short, word, words.next().unwrap_or_default()),
            }
        }
        short
    }

    fn set(short: &mut Short, flag: &str, value: &str) {
        match flag {
            "fs" => short.fs.extend(value.split(',').map(String::from)),
            "on" => short.on.push(value.into()),
            "age" => short.age.extend(value.split(',').map(String::from)),
            "fill" => short.fill.extend(value.split(',').map(String::from)),
            "source" => short.source = Some(value.into()),
            "like" => short.like = Some(value.into()),
            "scale" => short.scale = value.parse().ok(),
            "size" => short.size = Some(value.into()),
            "rounds" => short.rounds = value.parse().ok(),
            "seed" => short.seed = value.parse().ok(),
            "precision" => short.precision = Some(value.into()),
            "budget" => short.budget = Some(value.into()),
            "require" => short.require.extend(value.split(',').map(String::from)),
            _ => short.workload = Some(value.into()),
        }
    }

    /// "name@backing:main" of each target but the duplicate.
    fn shown(plan: &Plan) -> String {
        let one = |target: &super::super::Target| {
            let settings = &target.backing.settings;
            let place = settings.text("dir").or(settings.text("path")).unwrap_or_default();
            format!("{}@{}{place}", target.name, target.backing.name)
        };
        plan.targets.iter().filter(|target| !target.duplicate).map(one).collect::<Vec<_>>().join(" ")
    }

    const RIGHT: &[(&str, &str)] = &[
        ("", "ext4@image/here xfs@image/here btrfs@image/here btrfs lzo@image/here btrfs zstd:1@image/here"),
        ("memory fs ext4", "ext4@memory"),
        ("root fs ext4,btrfs:zstd:1 on /mnt", "ext4@image/mnt btrfs zstd:1@image/mnt"),
        ("fs btrfs:compress=zstd:1+noatime", "btrfs compress=zstd:1 noatime@image/here"),
        ("on a on /b", "/here/a@directory/here/a /b@directory/b"),
        ("root on /b", "/b@directory/b"),
        ("on /a on /b fs ext4", "/a@directory/a /b@directory/b ext4@image/a"),
        (
            "root on /a on /b fs ext4,xfs:ro",
            "ext4 on /a@image/a xfs ro on /a@image/a ext4 on /b@image/b xfs ro on /b@image/b",
        ),
        ("fs ext4:data=journal", "ext4 data=journal@image/here"),
        ("memory fs ext4 fill 0%,80%", "ext4@memory ext4 80% full@memory"),
        ("on ~x", "/here/~x@directory/here/~x"),
    ];

    #[test]
    fn flags_make_targets() {
        for (line, expected) in RIGHT {
            assert_eq!(shown(&short(&parsed(line), &catalogue()).unwrap()), *expected, "{line}");
        }
    }

    #[test]
    fn the_printed_file_means_the_same() {
        for (line, _) in RIGHT {
            let text = short_toml(&parsed(line), &catalogue()).unwrap();
            let read = from_toml(&text, "", Path::new("/elsewhere"), &catalogue()).unwrap();
            assert_eq!(read, short(&parsed(line), &catalogue()).unwrap(), "{text}");
        }
    }

    #[test]
    fn the_printed_file_is_one_to_go_on_from() {
        let line = "root fs ext4,btrfs:lzo on /mnt size 8GiB source src seed 18446744073709551615 \
            precision 2% budget 1.5h require snapshots,checksums";
        let expected = "seed = 18446744073709551615\n\n[backing]\nimage = { dir = \"/mnt\", size = \"8GiB\" }\n\n\
            [[target]]\nfs = \"ext4\"\n\n[[target]]\nfs = \"btrfs\"\nvariant = \"lzo\"\n\n\
            [[work]]\nworkload = \"tree\"\nsource = \"/here/src\"\n\n[verdict]\nrequire = [\"snapshots\", \"checksums\"]\n\n\
            [stop]\nprecision = \"2%\"\nbudget = \"1.5h\"\n";
        assert_eq!(short_toml(&parsed(line), &catalogue()).unwrap(), expected);
        let plan = short(&parsed(line), &catalogue()).unwrap();
        assert_eq!((plan.stop.rounds, plan.seed, plan.title.as_str()), (None, u64::MAX, "ext4, btrfs lzo"));
        assert_eq!((plan.stop.precision, plan.stop.budget_ns), (Some(0.02), Some(5_400_000_000_000)));
        assert_eq!(plan.verdict.require, ["checksums", "snapshots"]);
        assert_eq!(plan.works[0].workload.settings.text("source"), Some("/here/src"));
        assert_eq!(plan.targets[0].backing.settings.number("size"), Some(8 << 30));
    }

    #[test]
    fn what_no_flag_says_is_left_to_the_plan() {
        let text = short_toml(&parsed("fs ext4 budget 1h"), &catalogue()).unwrap();
        assert!(text.ends_with("\n[stop]\nbudget = \"1h\"\n") && !text.contains("[verdict]"), "{text}");
        assert!(!short_toml(&parsed("fs ext4"), &catalogue()).unwrap().contains("[stop]"));
    }

    #[test]
    fn complaints_name_the_flag() {
        let rows: &[(&str, &[&str])] = &[
            ("fs ext5", &["--fs: there is no file system `ext5` / did you mean `ext4`?"]),
            ("fs ext4, rounds 0", &["--fs has an element without a name: `` / write names with commas"]),
            ("fs ext4:", &["--fs has an empty option in `ext4:`"]),
            ("fs btrfs:a++b", &["--fs has an empty option in `btrfs:a++b`"]),
            (
                "fs btrfs:zstd:9",
                &["--fs: `zstd:9` in `btrfs:zstd:9` is neither a variant nor a mount option / did you"],
            ),
            ("fs ext4:zstd:1", &["neither a variant nor a mount option / write mount options with `+`"]),
            ("fs ext4:x=/dev/sda", &["--fs: the option `x=/dev/sda` names a device"]),
            ("fs ext4,xfs,ext4", &["--fs names `ext4` twice"]),
            ("on /a on /a", &["--on names `/a` twice"]),
            ("memory on /a", &["--memory and --on exclude each other"]),
            ("fs xfs size 100MiB", &["--size: xfs needs at least 300 MiB"]),
            ("memory fs xfs size 100MiB", &["--size: xfs needs at least 300 MiB"]),
            (
                "size many rounds 0 work tee",
                &["--size: `size` must be a size", "--workload: there is no", "--rounds: "],
            ),
            ("work meta.ok source /a", &["--source: `meta.ok` has no setting `source`"]),
            (
                "rounds 5000",
                &["--rounds: `rounds` is 5000, which is out of range / write a whole number from 1 to 1000"],
            ),
            ("precision 3", &["--precision: `precision` must be a share in quotes"]),
            ("budget tea budget 0s", &["--budget: `budget` must be a duration"]),
            (
                "require snapshot,,checksums",
                &["--require: there is no feature `snapshot` / did you", "--require: `require` is empty"],
            ),
        ];
        for (line, expected) in rows {
            let complaints = short(&parsed(line), &catalogue()).expect_err(line);
            let said: Vec<String> = complaints.iter().map(|c| format!("{} / {}", c.message, c.remedy)).collect();
            assert_eq!(said.len(), expected.len(), "{line}: {said:?}");
            for (said, expected) in said.iter().zip(*expected) {
                assert!(said.contains(expected), "{line}: {said:?}");
            }
            assert!(complaints.iter().all(|complaint| complaint.span.is_none() && !complaint.remedy.is_empty()));
        }
    }

    #[test]
    fn paths_that_no_plan_can_hold_are_complained_of() {
        for (path, says) in [(&b"\xff"[..], "UTF-8"), (b"", "--on is empty"), (b"/a\nb", "control character")] {
            let short = Short { on: vec![OsStr::from_bytes(path).into()], folder: "/".into(), ..Short::default() };
            let complaints = short_toml(&short, &catalogue()).unwrap_err();
            assert!(complaints.len() == 1 && complaints[0].message.contains(says), "{complaints:?}");
        }
    }
}
