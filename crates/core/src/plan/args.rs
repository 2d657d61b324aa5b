//! The plan that flags stand for, as the plan file that says the same: one checker serves both, and a user can go on from
//! the printed file.

use super::complaint::{Complaint, Complaints, quoted};
use super::fs_flag::FsSpec;
use super::written::{list, table, text};
use super::{Catalogue, Plan, from_toml};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

const USUAL_TARGETS: [&str; 5] = ["ext4", "xfs", "btrfs", "btrfs:lzo", "btrfs:zstd:1"];
const USUAL_WORKLOAD: &str = "tree";
const WORKLOAD_OF_JOBS: &str = "fio";

// No doc comment: clap would take it for the verb's own.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PlanArgs {
    /// Plan file; without one, the options below make the plan
    #[arg(conflicts_with_all = flag_names())]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub flags: PlanFlags,
    /// How to reach the machine that does the work (`pickfs list executors`), whatever the plan says
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
}

// Each has its place in the plan, see `FLAGS`.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub struct PlanFlags {
    /// File systems to compare, such as ext4,xfs:noatime,btrfs:zstd:1+noatime (NAME, and behind a colon a variant, mount options, or both)
    #[arg(long, value_delimiter = ',')]
    pub fs: Vec<String>,
    /// Where: as root with --fs, the folder for the image; otherwise the directories to compare, used as they are
    #[arg(long, value_name = "DIR")]
    pub on: Vec<PathBuf>,
    /// Keep the image in memory: the software cost alone
    #[arg(long, conflicts_with = "on")]
    pub memory: bool,
    /// Simulate instead of measuring, on a model of a disk such as hdd-7200 (`pickfs list disks`); several are a run each
    #[arg(long, value_name = "DISK", value_delimiter = ',', conflicts_with_all = ["on", "executor"])]
    pub sim: Vec<String>,
    /// Simulate N cells at once [default: as many as there are processors]
    #[arg(long, value_name = "N", requires = "sim")]
    pub jobs: Option<u32>,
    /// Make every file system old first, such as "churn 5x" or "git 100"; several, and "none", to compare
    #[arg(long, value_name = "AGE", value_delimiter = ',')]
    pub age: Vec<String>,
    /// Fill every file system first, such as 80%; several, such as 0%,80%, to compare
    #[arg(long, value_name = "SHARE", value_delimiter = ',')]
    pub fill: Vec<String>,
    /// Directory to work with [default: a generated tree]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// What the generated tree is like (`pickfs list profiles`), or a file that `pickfs scan` wrote
    #[arg(long, value_name = "PROFILE", conflicts_with = "source")]
    pub like: Option<String>,
    /// Size of the generated tree as a multiple of the profile, such as 0.1 [default: 0.25 with no other aim, else 1]
    #[arg(long, conflicts_with = "source", allow_negative_numbers = true)]
    pub scale: Option<f64>,
    /// Size of the image
    #[arg(long)]
    pub size: Option<String>,
    /// Workload to run (`pickfs list workloads`), or the file of a recipe
    #[arg(long, value_name = "NAME|FILE")]
    pub workload: Option<String>,
    /// Run this job file of fio's, section by section
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "source", "like", "scale"])]
    pub job: Option<PathBuf>,
    /// Replay what `pickfs record` wrote, or a trace that `pickfs list traces` names
    #[arg(long, value_name = "FILE|NAME", conflicts_with_all = ["workload", "source", "like", "scale"])]
    pub trace: Option<String>,
    /// Run exactly N rounds instead of stopping adaptively
    #[arg(long, value_name = "N", conflicts_with = "precision", allow_negative_numbers = true)]
    pub rounds: Option<u32>,
    /// Stop when every 95 % interval is at most ± this wide, such as 2%
    #[arg(long, value_name = "SHARE")]
    pub precision: Option<String>,
    /// Begin no further round after this time, such as 2h [default, without --rounds and --precision: what the work needs, 3min or more]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Features that a file system must have to be in the verdict, such as snapshots,checksums (`pickfs list features`)
    #[arg(long, value_name = "FEATURE", value_delimiter = ',')]
    pub require: Vec<String>,
    /// Random seed
    #[arg(long, allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

/// The flag of each key of a plan that is made from flags; the longest path that fits is meant.
const FLAGS: [(&str, &str); 24] = [
    ("backing", "--on"),
    ("backing.image.size", "--size"),
    ("backing.memory", "--memory"),
    ("backing.memory.size", "--size"),
    ("executor", "--executor"),
    ("jobs", "--jobs"),
    ("machine.disk", "--sim"),
    ("matrix.age", "--age"),
    ("matrix.fill", "--fill"),
    ("seed", "--seed"),
    ("stop.budget", "--budget"),
    ("stop.precision", "--precision"),
    ("stop.rounds", "--rounds"),
    ("target", "--fs"),
    ("target.backing", "--on"),
    ("target.backing.image.size", "--size"),
    ("verdict.require", "--require"),
    ("work.job", "--job"),
    ("work.like", "--like"),
    ("work.scale", "--scale"),
    ("work.source", "--source"),
    ("work.trace", "--trace"),
    ("work.workload", "--workload"),
    ("work", "--workload"),
];

/// Names of the flags that make a plan: none goes with a plan file, nor with a run that has its plan already.
pub fn flag_names() -> impl Iterator<Item = &'static str> {
    FLAGS.iter().map(|(_, flag)| &flag[2..]).filter(|name| *name != "executor")
}

impl PlanArgs {
    /// The plan that the flags stand for, and the text of its file. Relative paths are in `folder`; `makes` tells whether
    /// file systems can be made, for which the work must be done by root.
    pub fn plan(&self, folder: &Path, makes: bool, catalogue: &Catalogue) -> Result<(Plan, String), Vec<Complaint>> {
        let text = self.text(folder, makes, catalogue)?;
        match from_toml(&text, "", folder, catalogue) {
            Ok(plan) => Ok((plan, text)),
            Err(complaints) => Err(complaints.into_iter().map(|complaint| self.blame(&text, complaint)).collect()),
        }
    }

    /// The text alone, of which only what no plan can say is refused.
    pub fn text(&self, folder: &Path, makes: bool, catalogue: &Catalogue) -> Result<String, Vec<Complaint>> {
        let mut writer = Writer { flags: &self.flags, folder, makes, catalogue, complaints: Complaints::default() };
        let table = writer.table(self.executor.as_deref());
        let complaints = writer.complaints.finish();
        if !complaints.is_empty() {
            return Err(complaints);
        }
        // Larger than an integer of a TOML value.
        let seed = self.flags.seed.map(|seed| format!("seed = {seed}\n")).unwrap_or_default();
        Ok(seed + &table.to_string())
    }

    /// The complaint without its place in a text that no user wrote, but with the flag that it comes from.
    fn blame(&self, text: &str, complaint: Complaint) -> Complaint {
        if complaint.source.is_some() {
            return complaint;
        }
        let document = DeTable::parse(text).expect("it was read before");
        let path = complaint.span.clone().and_then(|span| path_to(document.get_ref(), span.start)).unwrap_or_default();
        let fits = |key: &str| path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let flag = FLAGS.iter().filter(|(key, _)| fits(key)).max_by_key(|(key, _)| key.len());
        // Without --on, the image is in the current directory, which no flag names.
        let flag = flag.filter(|(_, flag)| *flag != "--on" || !self.flags.on.is_empty());
        // A work that is too large for a size that was typed.
        let is_of_size = self.flags.size.is_some() && complaint.remedy.contains("a larger `size`");
        let flag = flag.map(|(_, flag)| if is_of_size { "--size" } else { flag });
        let Some(flag) = flag else { return Complaint { span: None, ..complaint } };
        let key = path.rsplit('.').next().unwrap_or_default();
        Complaint { span: None, ..in_words_of(flag, key, complaint) }
    }
}

/// What is said of a key of the plan, said of the flag that it comes from.
fn in_words_of(flag: &str, key: &str, complaint: Complaint) -> Complaint {
    let subject = format!("{} ", quoted(key));
    let message = complaint.message.replace(" in quotes", "");
    let (message, remedy) = match (message.strip_prefix(&subject), message.split_once(" has no setting ")) {
        (Some(rest), _) => (format!("{flag} {rest}"), complaint.remedy),
        (None, Some((workload, _))) => (
            format!("{flag}: the workload {workload} has no such setting"),
            format!("leave {flag} out; `pickfs list workloads` shows which workload has which settings"),
        ),
        (None, None) => (format!("{flag}: {message}"), complaint.remedy),
    };
    // An example in a plan is text between quotes behind the key.
    let example = remedy.strip_prefix("write it like this: ").and_then(|line| line.split_once(" = "));
    let remedy = match (example, as_flag(&remedy)) {
        (Some((_, value)), _) => format!("write it like this: {flag} {}", value.trim_matches('"')),
        (None, Some(typed)) => typed,
        _ if remedy.contains(" = ") => format!("only a plan can say it (`pickfs init` writes one): {remedy}"),
        _ => remedy,
    };
    let remedy =
        remedy.replace("write something between the quotes, or leave the key out", "give it a value, or leave it out");
    let named = |text: String, (path, flag): &(&str, &str)| match path.rsplit_once('.') {
        Some((_, key)) => text.replace(&quoted(key), flag),
        None => text,
    };
    // A list of names is none of keys.
    let remedy = if remedy.starts_with("use one of") { remedy } else { FLAGS.iter().fold(remedy, named) };
    Complaint { message, remedy, ..complaint }
}

/// "name one: --job my.fio" of `name one: job = "my.fio"`, where the key has a flag.
fn as_flag(remedy: &str) -> Option<String> {
    let (before, line) = remedy.rsplit_once(": ")?;
    let (key, value) = line.split_once(" = ")?;
    let (_, flag) = FLAGS.iter().find(|(path, _)| path.rsplit('.').next() == Some(key))?;
    let value = value.strip_prefix('"')?.strip_suffix('"')?;
    (!value.contains('"')).then(|| format!("{before}: {flag} {value}"))
}

/// The names of the keys that lead to a place in the text, with points between them.
fn path_to(table: &DeTable, place: usize) -> Option<String> {
    let below = |value: &DeValue| match value {
        DeValue::Table(table) => path_to(table, place),
        DeValue::Array(list) => list.iter().find_map(|one| path_to(one.get_ref().as_table()?, place)),
        _ => None,
    };
    table.iter().find_map(|(key, value)| {
        let inside = below(value.get_ref()).map(|path| format!("{}.{path}", key.get_ref()));
        let elements = value.get_ref().as_array().into_iter().flat_map(|list| list.iter()).map(|one| one.span());
        let mut spans = [key.span(), value.span()].into_iter().chain(elements);
        inside.or_else(|| spans.any(|span| span.contains(&place)).then(|| key.get_ref().to_string()))
    })
}

/// The default of `--size`: twice the bytes of the work, where they are known, and a gibibyte for what file systems need
/// themselves; more where there is plenty of room. `None` leaves it to the backing.
pub fn image_size(work: Option<u64>, free: Option<u64>) -> Option<String> {
    /// Small file systems behave unlike those on a real disk: on 1.2 GiB, btrfs flushes its metadata early and copies a
    /// tree in twice the time that it takes on this size or any larger.
    const ROOMY: u64 = 4 << 30;
    let least = work.unwrap_or(0).saturating_mul(2).saturating_add(1 << 30);
    let roomy = free.is_some_and(|free| free / 2 > ROOMY);
    let size = if roomy { least.max(ROOMY) } else { least };
    (roomy || work.is_some()).then(|| format!("{}MiB", size >> 20))
}

/// Writes the table of a plan from flags.
struct Writer<'a> {
    flags: &'a PlanFlags,
    folder: &'a Path,
    makes: bool,
    catalogue: &'a Catalogue,
    complaints: Complaints,
}

fn unless_empty(table: Table) -> Option<Value> {
    (!table.is_empty()).then_some(Value::Table(table))
}

impl Writer<'_> {
    fn table(&mut self, executor: Option<&str>) -> Table {
        let flags = self.flags;
        let (backing, targets) = self.targets();
        table([
            ("executor", executor.map(Value::from)),
            ("jobs", flags.jobs.map(Value::from)),
            ("machine", unless_empty(table([("disk", flags.sim.first().map(|disk| self.disk(disk)))]))),
            ("backing", backing),
            ("target", (!targets.is_empty()).then(|| Value::from(targets))),
            ("matrix", unless_empty(table([("age", list(&flags.age)), ("fill", list(&flags.fill))]))),
            ("work", Some(Value::from(vec![self.work()]))),
            ("verdict", unless_empty(table([("require", list(&flags.require))]))),
            ("stop", unless_empty(self.stop())),
        ])
    }

    /// The name of a model, or the path of one.
    fn disk(&mut self, disk: &str) -> Value {
        match disk.contains('/') {
            true => Value::from(self.absolute("--sim", Path::new(disk))),
            false => Value::from(disk),
        }
    }

    fn stop(&self) -> Table {
        let PlanFlags { rounds, precision, budget, .. } = self.flags;
        table([("rounds", rounds.map(Value::from)), ("precision", text(precision)), ("budget", text(budget))])
    }

    fn work(&mut self) -> Table {
        let flags = self.flags;
        let source = flags.source.as_ref().map(|source| Value::from(self.absolute("--source", source)));
        let like = flags.like.as_ref().map(|like| match like.contains('/') || like.ends_with(".toml") {
            true => Value::from(self.absolute("--like", Path::new(like))),
            false => Value::from(like.as_str()),
        });
        if let Some(trace) = &flags.trace {
            let is_file = trace.contains('/') || trace.ends_with(".pktrace");
            let trace = if is_file { self.absolute("--trace", Path::new(trace)) } else { trace.clone() };
            return table([("workload", Some("trace".into())), ("trace", Some(trace.into()))]);
        }
        let job = flags.job.as_ref().map(|job| Value::from(self.absolute("--job", job)));
        let usual = if job.is_some() { WORKLOAD_OF_JOBS } else { USUAL_WORKLOAD };
        let workload = match flags.workload.as_deref().unwrap_or(usual) {
            file if !file.contains('\n') && (file.contains('/') || file.ends_with(".toml")) => {
                self.absolute("--workload", Path::new(file))
            }
            name => name.to_string(),
        };
        // Some workloads take a whole number alone.
        let is_whole = |scale: f64| scale.fract() == 0.0 && scale.abs() < 1e15;
        let scale =
            flags.scale.map(|scale| if is_whole(scale) { Value::from(scale as i64) } else { Value::from(scale) });
        table([("workload", Some(workload.into())), ("job", job), ("source", source), ("like", like), ("scale", scale)])
    }

    /// The backing that targets share, and the targets that the flags name.
    fn targets(&mut self) -> (Option<Value>, Vec<Table>) {
        let flags = self.flags;
        let specs = self.specs();
        let on: Vec<String> = flags.on.iter().map(|path| self.absolute("--on", path)).collect();
        self.refuse_repeated("--fs", &flags.fs);
        self.refuse_repeated("--on", &on);
        let size = || text(&flags.size);
        let image = |folder: &str| self::backing("image", table([("dir", Some(folder.into())), ("size", size())]));
        let made = || specs.iter().map(FsSpec::target).collect::<Vec<_>>();
        match on.as_slice() {
            _ if flags.memory => (self::backing("memory", table([("size", size())])), made()),
            [] => (image(&self.absolute("the current directory", Path::new("."))), made()),
            [one] if specs.is_empty() => (self::backing("directory", one.as_str()), Vec::new()),
            all if specs.is_empty() => (self::backing("directory", all.to_vec()), Vec::new()),
            // No file system can be made, so the directories are compared as they are. File systems that were asked for stay
            // in the plan, and each is skipped with its reasons.
            [first, ..] if !self.makes => {
                let directory = |path: &String| table([("backing", self::backing("directory", path.as_str()))]);
                (image(first), on.iter().map(directory).chain(made()).collect())
            }
            [one] => (image(one), made()),
            // Every file system in every directory, which is part of the name then.
            all => {
                let target = |spec: &FsSpec, path: &str| {
                    let own = [("name", Some(format!("{} on {path}", spec.name()).into())), ("backing", image(path))];
                    table(own).into_iter().chain(spec.target()).collect()
                };
                (None, all.iter().flat_map(|path| specs.iter().map(move |spec| target(spec, path))).collect())
            }
        }
    }

    fn specs(&mut self) -> Vec<FsSpec> {
        let usual = self.flags.fs.is_empty() && (self.flags.on.is_empty() || self.flags.memory);
        let named = self.flags.fs.iter().map(String::as_str);
        let texts: Vec<&str> = if usual { USUAL_TARGETS.to_vec() } else { named.collect() };
        texts.into_iter().filter_map(|text| FsSpec::parse(text, self.catalogue, &self.complaints)).collect()
    }

    fn refuse_repeated(&mut self, flag: &str, values: &[String]) {
        let mut seen = HashSet::new();
        for value in values.iter().filter(|value| !seen.insert(*value)) {
            let message = format!("{flag} names {} twice", quoted(value));
            self.complaints.add(&None, message, "leave one of the two out");
        }
    }

    /// The path made absolute here, so that the printed plan means the same wherever it is kept.
    fn absolute(&mut self, flag: &str, path: &Path) -> String {
        if path.as_os_str().is_empty() {
            self.complaints.add(&None, format!("{flag} is empty"), "name a path");
        }
        let absolute = std::path::absolute(self.folder.join(path)).ok();
        absolute.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| {
            let shown = quoted(&path.to_string_lossy());
            let message = format!("{flag}: {shown} cannot be made an absolute path in UTF-8");
            self.complaints.add(&None, message, "use a path that has only UTF-8 in it");
            String::new()
        })
    }
}

fn backing(name: &str, settings: impl Into<Value>) -> Option<Value> {
    Some(Value::Table(table([(name, Some(settings.into()))])))
}

#[cfg(test)]
mod tests {
    use super::super::example::catalogue;
    use super::*;
    use clap::{CommandFactory, Parser};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: PlanArgs,
    }

    /// The plan of a command line; `root` stands alone, the dashes of flags are left out, and `_` is a space in a word.
    fn plan(line: &str) -> Result<(Plan, String), Vec<Complaint>> {
        let is_flag = |word: &str| FLAGS.iter().any(|(_, flag)| flag[2..] == *word);
        let dashed = |word: &str| if is_flag(word) { format!("--{word}") } else { word.replace('_', " ") };
        let words = line.split_whitespace().filter(|word| *word != "root").map(dashed);
        let line_read = Line::try_parse_from(std::iter::once("pickfs".to_string()).chain(words)).expect(line);
        line_read.arguments.plan(Path::new("/here"), line.contains("root"), &catalogue())
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
        ("fs btrfs:zstd:1+noatime", "btrfs zstd:1 noatime@image/here"),
        (
            "fs btrfs_zstd:1,btrfs_lzo_noatime,xfs",
            "btrfs zstd:1@image/here btrfs lzo noatime@image/here xfs@image/here",
        ),
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
    fn every_flag_has_its_key() {
        let mut named: Vec<&str> = FLAGS.iter().map(|(_, flag)| *flag).collect();
        named.sort();
        named.dedup();
        let line = Line::command();
        let mut flags: Vec<String> =
            line.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
        flags.sort();
        assert_eq!(named, flags);
    }

    #[test]
    fn flags_make_targets() {
        for (line, expected) in RIGHT {
            assert_eq!(shown(&plan(line).unwrap().0), *expected, "{line}");
        }
    }

    #[test]
    fn the_printed_file_means_the_same() {
        for (line, _) in RIGHT {
            let (plan, text) = plan(line).unwrap();
            let read = from_toml(&text, "", Path::new("/elsewhere"), &catalogue()).unwrap();
            assert_eq!(read, plan, "{text}");
        }
    }

    #[test]
    fn the_printed_file_is_one_to_go_on_from() {
        let line = "root fs ext4,btrfs:lzo on /mnt size 8GiB source src seed 18446744073709551615 \
            precision 2% budget 1.5h require snapshots,checksums";
        let expected = "seed = 18446744073709551615\n[backing.image]\ndir = \"/mnt\"\nsize = \"8GiB\"\n\n\
            [[target]]\nfs = \"ext4\"\n\n[[target]]\nfs = \"btrfs\"\nvariant = \"lzo\"\n\n\
            [[work]]\nworkload = \"tree\"\nsource = \"/here/src\"\n\n[verdict]\nrequire = [\"snapshots\", \"checksums\"]\n\n\
            [stop]\nprecision = \"2%\"\nbudget = \"1.5h\"\n";
        let (plan, text) = plan(line).unwrap();
        assert_eq!(text, expected);
        assert_eq!((plan.stop.rounds, plan.seed, plan.title.as_str()), (None, u64::MAX, "ext4, btrfs lzo"));
        assert_eq!((plan.stop.precision, plan.stop.budget_ns), (Some(0.02), Some(5_400_000_000_000)));
        assert_eq!(plan.verdict.require, ["checksums", "snapshots"]);
        assert_eq!(plan.works[0].workload.settings.text("source"), Some("/here/src"));
        assert_eq!(plan.targets[0].backing.settings.number("size"), Some(8 << 30));
    }

    #[test]
    fn what_no_flag_says_is_left_to_the_plan() {
        let text = plan("fs ext4 budget 1h").unwrap().1;
        assert!(text.ends_with("\n[stop]\nbudget = \"1h\"\n") && !text.contains("[verdict]"), "{text}");
        assert!(!plan("fs ext4").unwrap().1.contains("[stop]"));
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
            (
                "fs btrfs:noatime+zstd:1",
                &[
                    "`zstd:1` in `btrfs:noatime+zstd:1` is neither a variant nor a mount option / write the variant before",
                ],
            ),
            ("fs ext4:-m_0", &["--fs: the option `-m 0` begins with a dash / only a plan can say it"]),
            ("fs xfs:noatme", &["--fs: xfs has no mount option `noatme` / did you mean `noatime`?"]),
            ("fs ext4:zstd:1", &["neither a variant nor a mount option / write mount options with `+`"]),
            ("fs ext4:x=/dev/sda", &["--fs: the option `x=/dev/sda` names a path"]),
            ("fs ext4,xfs,ext4", &["--fs names `ext4` twice"]),
            ("on /a on /a", &["--on names `/a` twice"]),
            ("fs xfs size 100MiB", &["--size: xfs needs at least 300 MiB"]),
            ("memory fs xfs size 100MiB", &["--size: xfs needs at least 300 MiB"]),
            (
                "size many rounds 0 workload tee",
                &[
                    "--size must be a size, but it is `many` / write it like this: --size 20GiB",
                    "--workload: there is no",
                    "--rounds is 0",
                ],
            ),
            (
                "workload meta.ok source /a",
                &["--source: the workload `meta.ok` has no such setting / leave --source out; `pickfs list"],
            ),
            ("rounds 5000", &["--rounds is 5000, which is out of range / write a whole number from 1 to 1000"]),
            ("precision 3", &["--precision must be a share, but `3` has no unit / write it like this: --precision 3%"]),
            ("budget tea", &["--budget must be a duration, but it is `tea` / write it like this: --budget 90s"]),
            (
                "require snapshot,,checksums",
                &[
                    "--require: there is no feature `snapshot` / did you",
                    "--require is empty / give it a value, or leave it out",
                ],
            ),
        ];
        for (line, expected) in rows {
            let complaints = plan(line).expect_err(line);
            let said: Vec<String> = complaints.iter().map(|c| format!("{} / {}", c.message, c.remedy)).collect();
            assert_eq!(said.len(), expected.len(), "{line}: {said:?}");
            for (said, expected) in said.iter().zip(*expected) {
                assert!(said.contains(expected), "{line}: {said:?}");
            }
            assert!(complaints.iter().all(|complaint| complaint.span.is_none() && !complaint.remedy.is_empty()));
        }
    }

    #[test]
    fn flags_that_exclude_each_other_are_refused() {
        for line in [
            "--memory --on /a",
            "a.toml --seed 3",
            "a.toml --age none",
            "--source a --like b",
            "--rounds 3 --precision 2%",
        ] {
            let refused = Line::try_parse_from(["pickfs"].into_iter().chain(line.split(' '))).err().expect(line);
            assert!(refused.to_string().contains("cannot be used with"), "{line}: {refused}");
        }
        assert!(Line::try_parse_from(["pickfs", "a.toml", "--executor", "vm"]).is_ok());
    }

    #[test]
    fn paths_that_no_plan_can_hold_are_complained_of() {
        for (path, says) in [(&b"\xff"[..], "UTF-8"), (b"", "--on is empty"), (b"/a\nb", "control character")] {
            let flags = PlanFlags { on: vec![OsStr::from_bytes(path).into()], ..PlanFlags::default() };
            let arguments = PlanArgs { flags, ..PlanArgs::default() };
            let complaints = arguments.plan(Path::new("/"), false, &catalogue()).unwrap_err();
            assert!(complaints.len() == 1 && complaints[0].message.contains(says), "{complaints:?}");
        }
    }
}
