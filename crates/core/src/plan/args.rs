//! The plan that flags stand for, as a plan file with the same content: one checker serves both,
//! and a user can go on from the printed file.

use super::complaint::{Complaint, Complaints, Place, Problem, quoted};
use super::flag::{Flag, Takes};
use super::flags::{self, PlanFlags, flag_names};
use super::fs_flag::FsSpec;
use super::keys::{PLAN, STOP};
use super::read::from_toml;
use super::table::{Reader, end_of};
use super::written::{table, text};
use super::{Catalogue, Plan, Stop};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use toml::de::DeTable;
use toml::{Table, Value};

/// What a run compares to which no file system is named.
pub const USUAL_TARGETS: [&str; 5] = ["ext4", "xfs", "btrfs", "btrfs:lzo", "btrfs:zstd:1"];
const USUAL_WORKLOAD: &str = "tree";
const WORKLOAD_OF_JOBS: &str = "fio";
/// Settings that name the data of a work.
const DATA: &[&str] = &["source", "like", "scale", "files", "bytes"];
const SIZE_OF_DATA: &[&str] = &["scale", "files", "bytes"];

// No doc comment: clap would take it for the verb's own.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PlanArgs {
    /// Plan file; without one, the options below make the plan
    #[arg(conflicts_with_all = flag_names())]
    pub plan: Option<PathBuf>,
    // A plan without targets that the options complete and change; empty for a plan of options
    // alone.
    #[arg(skip)]
    pub base: Table,
    #[command(flatten)]
    pub flags: PlanFlags,
    /// How to reach the machine that does the work (`pickfs list executors`), whatever the plan
    /// says
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
}

impl PlanArgs {
    /// The plan that the flags stand for, and the text of its file. Relative paths are in `folder`;
    /// `makes` is true if file systems can be made, for which the work must be done by root.
    pub fn plan(&self, folder: &Path, makes: bool, catalogue: &Catalogue) -> Result<(Plan, String), Vec<Complaint>> {
        let text = self.text(folder, makes, catalogue)?;
        Ok((from_toml(&text, "", folder, catalogue)?, text))
    }

    /// The text alone, of which only what no plan can say is refused.
    pub fn text(&self, folder: &Path, makes: bool, catalogue: &Catalogue) -> Result<String, Vec<Complaint>> {
        let (base, complaints) = (&self.base, Complaints::default());
        let writer = Writer { flags: &self.flags, base, folder, makes, catalogue, complaints };
        let mut table = writer.table(self.executor.as_deref());
        let complaints = writer.complaints.finish();
        if !complaints.is_empty() {
            return Err(complaints);
        }
        // Larger than an integer of a TOML value.
        let seed = self.flags.text("seed").filter(|seed| seed.parse::<u64>().is_ok()).map(|seed| {
            table.remove("seed");
            format!("seed = {seed}\n")
        });
        Ok(seed.unwrap_or_default() + &table.to_string())
    }
}

impl PlanFlags {
    /// What those flags say of when to stop that a run which is resumed can take.
    pub fn stop(&self) -> Result<Stop, Vec<Complaint>> {
        let (catalogue, complaints, mut plan) = (Catalogue::default(), Complaints::default(), Plan::default());
        let (base, folder, makes) = (&Table::new(), Path::new("/"), false);
        let writer =
            Writer { flags: self, base, folder, makes, catalogue: &catalogue, complaints: Complaints::default() };
        let text = writer.below(STOP.name()).to_string();
        let document = DeTable::parse(&text).expect("a table that was written");
        let place = Place { path: vec![STOP.name().into()], ..end_of(&text) };
        let table = super::table::Table::new(STOP.head, place, document.get_ref(), &complaints);
        let reader = Reader { catalogue: &catalogue, folder, complaints: &complaints, executor: "" };
        STOP.read(&table, &mut plan, &reader);
        let complaints = complaints.finish();
        if complaints.is_empty() { Ok(plan.stop) } else { Err(complaints) }
    }
}

/// The default of `--size`: twice the bytes of the work, where they are known, and a gibibyte for
/// what file systems need themselves; more where there is plenty of room. `None` leaves it to the
/// backing.
pub fn image_size(work: Option<u64>, free: Option<u64>) -> Option<String> {
    /// Small file systems behave unlike those on a real disk: on 1.2 GiB, btrfs flushes its
    /// metadata early and copies a tree in twice the time that it takes on this size or any larger.
    const ROOMY: u64 = 4 << 30;
    let least = work.unwrap_or(0).saturating_mul(2).saturating_add(1 << 30);
    let roomy = free.is_some_and(|free| free / 2 > ROOMY);
    let size = if roomy { least.max(ROOMY) } else { least };
    (roomy || work.is_some()).then(|| format!("{}MiB", size >> 20))
}

/// Writes the table of a plan from flags.
struct Writer<'a> {
    flags: &'a PlanFlags,
    base: &'a Table,
    folder: &'a Path,
    makes: bool,
    catalogue: &'a Catalogue,
    complaints: Complaints,
}

impl Writer<'_> {
    fn table(&self, executor: Option<&str>) -> Table {
        let (backing, targets) = self.targets();
        let value = |key: &str| match key {
            "executor" => executor.map(Value::from),
            "backing" => backing.clone(),
            "target" => (!targets.is_empty()).then(|| targets.clone().into()),
            "work" => Some(self.works().into()),
            // A key with a flag, or a table of such keys.
            _ => self.below("").remove(key).or_else(|| self.changed(key)),
        };
        PLAN.keys.iter().filter_map(|key| Some((key.name.to_string(), value(key.name)?))).collect()
    }

    /// What the base says of a key; where that is a table, with the keys that flags give.
    fn changed(&self, key: &str) -> Option<Value> {
        let given = self.below(key);
        match self.base.get(key) {
            Some(Value::Table(base)) => Some(base.clone().into_iter().chain(given).collect::<Table>().into()),
            base => base.cloned().or_else(|| (!given.is_empty()).then(|| given.into())),
        }
    }

    /// The keys of a table that flags give one by one; above all tables, keys with the flag in
    /// their row.
    fn below(&self, table: &str) -> Table {
        let given = |(flag, path): (Flag, Vec<&'static str>)| {
            let (key, tables) = path.split_last()?;
            let is_given = self.flags.has(flag.name) && (flag.keys.is_empty() || !table.is_empty());
            (is_given && tables.join(".") == table).then(|| (key.to_string(), self.value(flag, &path)))
        };
        flags::paths().filter_map(given).collect()
    }

    fn value(&self, flag: Flag, path: &[&str]) -> Value {
        let text = self.flags.text(flag.name).unwrap_or_default();
        match flag.takes {
            Takes::Texts => self.flags.texts(flag.name).to_vec().into(),
            Takes::Number => number(text),
            takes if takes.is_path(text) => self.absolute(path, text).into(),
            _ => text.into(),
        }
    }

    /// Those of the base, changed where a setting of theirs is given.
    fn works(&self) -> Vec<Table> {
        let Some(Value::Array(works)) = self.base.get("work") else { return vec![self.work()] };
        let given = self.below("work");
        let works = works.iter().filter_map(Value::as_table);
        for key in given.keys().filter(|key| !works.clone().any(|work| self.takes(work, key))) {
            let place = Place::default().below("work", None).below(key, None);
            self.complaints.add(&place, Problem::Of("changes none of the works".into()), "leave it out");
        }
        let change = |work: &Table| {
            let changes = || given.iter().filter(|(key, _)| self.takes(work, key));
            // Other data have another size.
            let replaced = match changes().any(|(key, _)| key == "source" || key == "like") {
                true => DATA,
                false if changes().any(|(key, _)| key == "scale") => SIZE_OF_DATA,
                false => &[],
            };
            let kept = work.iter().filter(|(key, _)| !replaced.contains(&key.as_str()));
            kept.chain(changes()).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        works.clone().map(change).collect()
    }

    fn takes(&self, work: &Table, setting: &str) -> bool {
        let workload = work.get("workload").and_then(Value::as_str);
        let known = self.catalogue.workloads.iter().find(|known| Some(known.name) == workload);
        known.is_some_and(|known| known.settings.iter().any(|known| known.name == setting))
    }

    fn work(&self) -> Table {
        let usual = [("trace", "trace"), ("job", WORKLOAD_OF_JOBS)].into_iter().find(|(flag, _)| self.flags.has(flag));
        let usual = usual.map_or(USUAL_WORKLOAD, |(_, workload)| workload);
        table([("workload", Some(usual.into()))]).into_iter().chain(self.below("work")).collect()
    }

    /// The backing that targets share, and the targets that the flags name.
    fn targets(&self) -> (Option<Value>, Vec<Table>) {
        let flags = self.flags;
        let specs = self.specs();
        let on: Vec<String> = flags.texts("on").iter().map(|path| self.absolute(&["backing"], path)).collect();
        self.refuse_repeated("target", flags.texts("fs"));
        self.refuse_repeated("backing", &on);
        let size = || text(flags.text("size"));
        let image = |folder: &str| self::backing("image", table([("dir", Some(folder.into())), ("size", size())]));
        let made = || specs.iter().map(FsSpec::target).collect::<Vec<_>>();
        match on.as_slice() {
            _ if flags.has("memory") => (self::backing("memory", table([("size", size())])), made()),
            [] => (image(&self.absolute(&[], ".")), made()),
            [one] if specs.is_empty() => (self::backing("directory", one.as_str()), Vec::new()),
            all if specs.is_empty() => (self::backing("directory", all.to_vec()), Vec::new()),
            // No file system can be made, so the existing directories are compared. File systems
            // that were asked for stay in the plan, and each is skipped with its reasons.
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

    fn specs(&self) -> Vec<FsSpec> {
        let flags = self.flags;
        let is_usual = !flags.has("fs") && (!flags.has("on") || flags.has("memory"));
        let named = flags.texts("fs").iter().map(String::as_str);
        let texts = if is_usual { USUAL_TARGETS.to_vec() } else { named.collect() };
        texts.into_iter().filter_map(|text| FsSpec::parse(text, self.catalogue, &self.complaints)).collect()
    }

    fn refuse_repeated(&self, key: &str, values: &[String]) {
        let mut seen = HashSet::new();
        for value in values.iter().filter(|value| !seen.insert(*value)) {
            let problem = Problem::Of(format!("names {} twice", quoted(value)));
            self.complaints.add(&Place::default().below(key, None), problem, "leave one of the two out");
        }
    }

    /// Made absolute here, so that the printed plan means the same wherever it is kept.
    fn absolute(&self, key: &[&str], path: &str) -> String {
        let place = Place { span: None, path: key.iter().map(|name| name.to_string()).collect() };
        if path.is_empty() {
            self.complaints.add(&place, Problem::Of("is empty".into()), "name a path");
        }
        let absolute = std::path::absolute(self.folder.join(path)).ok();
        absolute.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| {
            let message = format!("{} cannot be made an absolute path in UTF-8", quoted(path));
            self.complaints.add(&place, message, "use a path that has only UTF-8 in it");
            String::new()
        })
    }
}

/// What is no number, or a larger one than TOML has, is left to the check of the plan as text. What
/// is whole is written so: some keys take nothing else.
fn number(text: &str) -> Value {
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
    let float = text.parse::<f64>().ok().filter(|_| !is_whole);
    let float = float.map(|float| {
        if float.fract() == 0.0 && float.abs() < 1e15 { Value::from(float as i64) } else { Value::from(float) }
    });
    text.parse::<i64>().ok().map(Value::from).or(float).unwrap_or_else(|| text.into())
}

fn backing(name: &str, settings: impl Into<Value>) -> Option<Value> {
    Some(Value::Table(table([(name, Some(settings.into()))])))
}

#[cfg(test)]
mod tests {
    use super::super::complaint::Voice;
    use super::super::example::catalogue;
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: PlanArgs,
    }

    /// The plan of a command line; `root` stands alone, the dashes of flags are left out, and `_`
    /// is a space in a word.
    fn plan(line: &str) -> Result<(Plan, String), Vec<String>> {
        let is_flag = |word: &str| word == "executor" || flag_names().any(|flag| flag == word);
        let dashed = |word: &str| if is_flag(word) { format!("--{word}") } else { word.replace('_', " ") };
        let words = line.split_whitespace().filter(|word| *word != "root").map(dashed);
        let arguments = Line::try_parse_from(std::iter::once("pickfs".to_string()).chain(words)).expect(line).arguments;
        let plan = arguments.plan(Path::new("/here"), line.contains("root"), &catalogue());
        plan.map_err(|complaints| {
            let voice = Voice::Flags(&arguments.flags);
            complaints.iter().map(|one| format!("{} / {}", one.message(voice), one.help(voice))).collect()
        })
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

    /// Flags, and what becomes of the base.
    #[test]
    fn flags_change_a_plan_that_is_there() {
        let base = "title = 'a'\n[stop]\nbudget = '1h'\ncell = '5m'\n[[work]]\nworkload = 'tree'\nfiles = 9\nshape = 'flat'\n\
            [[work]]\nworkload = 'meta.ok'\n";
        let changed = |line: &str| {
            let words = line.split_whitespace();
            let mut arguments = Line::try_parse_from(["pickfs"].into_iter().chain(words)).expect(line).arguments;
            arguments.base = base.parse().unwrap();
            arguments.plan(Path::new("/here"), true, &catalogue()).map_err(|complaints| complaints.len())
        };
        let tree = |plan: &Plan| {
            let settings = &plan.works[0].workload.settings;
            (
                settings.number("files"),
                settings.text("source").map(String::from),
                settings.text("shape") == Some("flat"),
            )
        };
        let (plan, text) = changed("--fs ext4 --memory").unwrap();
        assert_eq!(tree(&plan), (Some(9), None, true), "{text}");
        assert_eq!((plan.works.len(), plan.title.as_str(), plan.stop.cell_ns), (2, "a", 300_000_000_000));
        let (plan, text) = changed("--fs ext4 --memory --source /a --budget 2h").unwrap();
        assert_eq!(tree(&plan), (Some(4000), Some("/a".into()), true), "other data, of the default size: {text}");
        assert_eq!((plan.stop.cell_ns, plan.stop.budget_ns), (300_000_000_000, Some(7_200_000_000_000)));
        assert_eq!(changed("--fs ext4 --memory --scale 2"), Err(1), "none of these works has a scale");
    }

    #[test]
    fn what_no_flag_says_is_left_to_the_plan() {
        let text = plan("fs ext4 budget 1h").unwrap().1;
        assert!(text.ends_with("\n[stop]\nbudget = \"1h\"\n") && !text.contains("[verdict]"), "{text}");
        assert!(!plan("fs ext4").unwrap().1.contains("[stop]"));
    }

    /// A command line, and what is said of it, with what to do.
    const WRONG: &[(&str, &[&str])] = &[
        ("fs ext5", &["--fs: there is no file system `ext5` / did you mean `ext4`?"]),
        ("fs ext4, rounds 0", &["--fs has an element without a name: `` / write names with commas"]),
        ("fs ext4:", &["--fs has an empty option in `ext4:`"]),
        ("fs btrfs:a++b", &["--fs has an empty option in `btrfs:a++b`"]),
        ("fs btrfs:zstd:9", &["--fs: `zstd:9` in `btrfs:zstd:9` is neither a variant nor a mount option / did you"]),
        (
            "fs btrfs:noatime+zstd:1",
            &["`zstd:1` in `btrfs:noatime+zstd:1` is neither a variant nor a mount option / write the variant before"],
        ),
        (
            "fs ext4:-m_0",
            &[
                "--fs: the option `-m 0` begins with a dash / options of mkfs go there: mkfs = [\"-m\", \"0\"] in a plan",
            ],
        ),
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
        (
            "rounds 3x budget 1",
            &[
                "--rounds must be a whole number, but it is the text `3x` / write it like this: --rounds 10",
                "--budget must be a duration, but `1` has no unit",
            ],
        ),
        ("seed -1", &["--seed is negative / write a whole number of 0 or more"]),
        ("seed 18446744073709551616", &["--seed must be a whole number, but it is the text `18446744073709551616`"]),
        ("executor slrum", &["--executor: there is no executor `slrum`"]),
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

    #[test]
    fn complaints_name_the_flag() {
        for (line, expected) in WRONG {
            let said = plan(line).expect_err(line);
            assert_eq!(said.len(), expected.len(), "{line}: {said:?}");
            for (said, expected) in said.iter().zip(*expected) {
                assert!(said.contains(expected), "{line}: {said:?}");
            }
            assert!(said.iter().all(|said| !said.ends_with(" / ")), "{said:?}");
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
        for (path, says) in [("", "--on is empty"), ("/a\nb", "control character")] {
            let mut arguments = PlanArgs::default();
            arguments.flags.set("on", [path]);
            let complaints = arguments.plan(Path::new("/"), false, &catalogue()).unwrap_err();
            let message = complaints[0].message(Voice::Flags(&arguments.flags));
            assert!(complaints.len() == 1 && message.contains(says) && message.starts_with("--on"), "{message}");
        }
    }
}
