//! A plan from its TOML text: the keys of the whole plan, its work and its limits.

use super::age;
use super::complaint::{Complaint, Complaints, Place, quoted};
use super::keys::{HOST, KeyTable, PLAN, STOP, WORK};
use super::machine::{LOCAL, check_turn};
use super::matrix::products;
use super::recipe_source;
use super::table::{Field, Reader, Table, choose, choose_entry, end_of, not_found, syntax};
use super::target::{PlacedTarget, check_machines, targets};
use super::value::settings;
use super::verdict_spec::{WorkShares, asked, verdict_spec};
use super::{Catalogue, Chosen, Plan, Repeats, Work};
use std::collections::HashSet;
use std::path::Path;
use toml::de::DeTable;

/// The checked plan, or all that is wrong with it. Relative paths in it are resolved against
/// `folder`; a plan without a title takes the name of its `file`.
pub fn from_toml(text: &str, file: &str, folder: &Path, catalogue: &Catalogue) -> Result<Plan, Vec<Complaint>> {
    let document = DeTable::parse(text).map_err(|error| vec![syntax(&error, text)])?;
    // What the whole plan lacks has its place at the end, where it would be added.
    let complaints = Complaints::default();
    let table = Table::new("the plan", end_of(text), document.get_ref(), &complaints);
    let executor = executor(&table, catalogue);
    let plan = plan(&table, file, &Reader { catalogue, folder, complaints: &complaints, executor });
    let complaints = complaints.finish();
    if complaints.is_empty() { Ok(plan) } else { Err(complaints) }
}

fn plan(table: &Table, file: &str, reader: &Reader) -> Plan {
    let mut plan = Plan { executor: reader.executor.into(), ..Plan::default() };
    PLAN.read(table, &mut plan, reader);
    check_turn(table, &plan);
    read_below(&STOP, table, &mut plan, reader, check_stop);
    read_below(&HOST, table, &mut plan, reader, check_host);
    let mut placed = products(targets(table, reader), table, reader);
    unique(placed.iter().map(|placed| (placed.target.name.as_str(), &placed.place)), "target", table.complaints);
    check_machines(&placed, reader);
    let reference = reference(table, &placed);
    again(table, &reference, &mut placed, reader);
    let discard = PLAN.get("discard", table, reader).unwrap_or_default();
    placed.iter_mut().for_each(|placed| placed.target.discard = discard);
    let room = placed.iter().filter_map(|placed| age::room(&placed.target)).min();
    let (works, asked) = works(table, room, reader);
    Plan {
        title: title(table, file, &placed),
        reference,
        jobs: jobs(table, reader).unwrap_or_default(),
        works,
        verdict: verdict_spec(table, &asked, reader),
        other_speeds: other_speeds(table, plan.stop.rounds, reader),
        targets: placed.into_iter().map(|placed| placed.target).collect(),
        ..plan
    }
}

/// A table whose keys have their places in the plan, and what must hold between them.
fn read_below(
    keys: &KeyTable,
    plan_table: &Table,
    plan: &mut Plan,
    reader: &Reader,
    check: fn(&Table, &Plan, &Reader),
) {
    let table = plan_table.field(keys.name()).and_then(|field| field.table(keys.head));
    if let Some(table) = table {
        keys.read(&table, plan, reader);
        check(&table, plan, reader);
    }
}

/// Two at once would share what no setting can part, unless they are simulated.
fn jobs(table: &Table, reader: &Reader) -> Option<u32> {
    let field = table.field("jobs")?;
    if reader.is_simulated() {
        return PLAN.get("jobs", table, reader);
    }
    if field.count()? != 1 {
        let why = "must be 1: two cells at once, in guests too, would share the memory bus, the processor's caches and \
                   the host's disk, and each would measure the other";
        field
            .refuse::<()>(why, "leave it out; to be done sooner, run part of the plan on another machine, or simulate");
    }
    Some(1)
}

/// The check takes two rounds: too much for a run of one or two, where no verdict is expected
/// either.
const CHECKED_FROM: u32 = 3;

/// Real processors have the speed that they have.
fn other_speeds(table: &Table, rounds: Option<u32>, reader: &Reader) -> bool {
    let is_affordable = rounds.is_none_or(|rounds| rounds >= CHECKED_FROM);
    let wanted = PLAN.get("other_speeds", table, reader).unwrap_or(reader.is_simulated() && is_affordable);
    if let Some(field) = table.field("other_speeds").filter(|_| wanted && !reader.is_simulated()) {
        let remedy = "leave it out, or simulate: executor = \"sim\"";
        field.refuse::<()>("is of simulations: only a simulated processor has another speed", remedy);
    }
    wanted
}

/// As written, else the file's name, else what is compared.
fn title(table: &Table, file: &str, placed: &[PlacedTarget]) -> String {
    if let Some(field) = table.field("title") {
        return field.text().unwrap_or_default().into();
    }
    if let Some(stem) = Path::new(file).file_stem().and_then(|stem| stem.to_str()) {
        return stem.into();
    }
    const SHOWN: usize = 5;
    let names: Vec<&str> = placed.iter().filter(|p| !p.target.duplicate).map(|p| p.target.name.as_str()).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

fn executor<'c>(table: &Table, catalogue: &'c Catalogue) -> &'c str {
    let listing = ("executor", "pickfs list executors");
    let field = table.field("executor");
    let chosen = field.and_then(|field| choose(&field, listing, &catalogue.executors, |e| e.name));
    let Some(name) = &catalogue.executor else { return chosen.map_or(LOCAL, |entry| entry.name) };
    match catalogue.executors.iter().find(|entry| entry.name == name) {
        Some(entry) => entry.name,
        None => {
            let names = catalogue.executors.iter().map(|entry| entry.name);
            let message = format!("--executor: there is no executor {}", quoted(name));
            table.complaints.add(&Place::default(), message, not_found(name, names, "pickfs list executors"));
            LOCAL
        }
    }
}

/// Complains of each name that was there before.
fn unique<'n>(names: impl Iterator<Item = (&'n str, &'n Place)>, what: &str, complaints: &Complaints) {
    let mut seen = HashSet::new();
    for (name, place) in names {
        if !seen.insert(name) {
            let message = format!("a second {what} is named {}", quoted(name));
            complaints.add(place, message, "give one of the two another `name`, or leave one out");
        }
    }
}

fn reference(table: &Table, placed: &[PlacedTarget]) -> String {
    let first = || placed.first().map(|placed| placed.target.name.clone()).unwrap_or_default();
    let Some(field) = table.field("reference") else { return first() };
    let Some(text) = field.text() else { return first() };
    let names = placed.iter().map(|placed| placed.target.name.as_str());
    if !placed.is_empty() && !names.clone().any(|name| name == text) {
        let message = format!("the reference {} is not among the targets", quoted(text));
        field.complaints.add(&field.place, message, not_found(text, names, "pickfs plan"));
    }
    text.into()
}

/// Adds the hidden second copy of the reference.
fn again(table: &Table, reference: &str, placed: &mut Vec<PlacedTarget>, reader: &Reader) {
    let wanted = PLAN.get("duplicate", table, reader).unwrap_or(!reader.is_simulated());
    let Some(original) = placed.iter().find(|placed| placed.target.name == reference) else { return };
    if !wanted {
        return;
    }
    let copy = PlacedTarget { target: original.target.again(), ..original.clone() };
    if let Some(taken) = placed.iter().find(|placed| placed.target.name == copy.target.name) {
        let message = format!("the name {} is kept for the second copy of the reference", quoted(&copy.target.name));
        table.complaints.add(
            &taken.place,
            message,
            "give this target another `name`, or write `duplicate = false` at the top",
        );
    }
    placed.push(copy);
}

/// The works, and what each asks of the verdict, also where the rest of it is wrong.
fn works<'a>(table: &Table<'a>, room: Option<u64>, reader: &Reader) -> (Vec<Work>, Vec<WorkShares<'a>>) {
    let Some(field) = table.field("work") else {
        let remedy = "say what to do on each target: add [[work]] with a line such as `workload = \"tree\"` below it";
        reader.complaints.add(&table.place, "the plan has no work", remedy);
        return Default::default();
    };
    let tables = field.tables("[[work]]");
    let read: Vec<Option<(Work, Place)>> = tables.iter().map(|table| work(table, room, reader)).collect();
    let asked = tables
        .iter()
        .zip(&read)
        .map(|(table, work)| asked(table, work.as_ref().map(|(work, _)| work), reader))
        .collect();
    let works: Vec<(Work, Place)> = read.into_iter().flatten().collect();
    unique(works.iter().map(|(work, place)| (work.name.as_str(), place)), "work", table.complaints);
    (works.into_iter().map(|(work, _)| work).collect(), asked)
}

fn work(table: &Table, room: Option<u64>, reader: &Reader) -> Option<(Work, Place)> {
    let name = table.field("name").map(|field| (field.text(), field.place));
    let repeats = WORK.get("repeats", table, reader).map(Repeats).unwrap_or_default();
    let Some(field) = table.field("workload") else {
        let remedy = "add a line such as `workload = \"tree\"`; `pickfs list workloads` shows them all";
        return reader.complaints.refuse(&table.place, "this work has no `workload`", remedy);
    };
    let catalogue = reader.catalogue;
    let of_recipe = recipe_source::read(&field, reader)?;
    let (name_of_it, entry) = match &of_recipe {
        Some((recipe, entry)) => (recipe.name.as_str(), entry),
        None => {
            let entry = choose_entry(&field, ("workload", "pickfs list workloads"), &catalogue.workloads)?;
            (entry.name, entry)
        }
    };
    let given: Vec<Field> = table.fields().filter(|field| !WORK.has(field.key)).collect();
    let settings = settings(entry, &given, &WORK.names(), &field.place, reader);
    let bytes = (entry.bytes)(entry.name, &settings);
    let (name, place) = name.unwrap_or((Some(name_of_it), field.place));
    fits(bytes, room, &place, reader.complaints);
    let judged = (entry.judged)(entry.name, &settings);
    let workload = Chosen { name: entry.name.into(), settings };
    Some((Work { name: name?.into(), workload, repeats, judged }, place))
}

/// The smallest backing must hold the work. What file systems need themselves is not counted: a
/// file system that runs full is reported when it does.
fn fits(bytes: Option<u64>, room: Option<u64>, place: &Place, complaints: &Complaints) {
    let Some((bytes, room)) = bytes.zip(room).filter(|(bytes, room)| bytes > room) else { return };
    let [bytes, room] = [bytes, room].map(|size| pickfs_system::units::show_bytes(size as f64));
    let message = format!("this work puts {bytes} where there is room for {room}");
    // Of the two that do not fit, the size is the one that a plan can always change.
    let place = Place { span: place.span.clone(), path: ["backing", "image", "size"].map(String::from).into() };
    complaints.add(&place, message, "give the backing a larger size, or make the work smaller");
}

fn check_stop(table: &Table, plan: &Plan, _: &Reader) {
    if plan.stop.rounds.is_none() {
        return;
    }
    for field in ["precision", "race"].into_iter().filter_map(|key| table.field(key)) {
        let remedy = "leave `rounds` out to let interim analyses decide when it is enough, or leave this out";
        field.refuse::<()>("acts at interim analyses, and a fixed number of `rounds` has none", remedy);
    }
}

fn check_host(table: &Table, plan: &Plan, reader: &Reader) {
    let host = &plan.host;
    // The kernel would quietly take half of `dirty_bytes` instead.
    if host.dirty_bytes.zip(host.dirty_background_bytes).is_some_and(|(all, background)| background >= all) {
        let field = table.field("dirty_background_bytes");
        field.map(|field| field.refuse::<()>("must be less than `dirty_bytes`", "make it smaller, such as half of it"));
    }
    // The kernel counts hundredths of a second, and 0 would write at once.
    if host.dirty_expire_ns.is_some_and(|ns| ns < CENTISECOND) {
        let field = table.field("dirty_expire");
        field.map(|field| field.refuse::<()>("is shorter than the kernel counts", "give at least \"10ms\""));
    }
    if let Some(field) = table.field("cpu_latency_us").filter(|_| reader.is_simulated()) {
        let remedy = "leave it out, or run on this machine: executor = \"local\"";
        field.refuse::<()>("is of real machines: simulated processors wake up at once", remedy);
    }
}

const CENTISECOND: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::super::complaint::{Voice, render};
    use super::super::example::{Hostile, catalogue, complained, read, with};
    use super::super::{Discard, HostSettings, Stop};
    use super::*;
    use serde_json::json;

    const SAMPLE: &str = r#"title = "Daily work on this NVMe"
seed = 42
discard = "fresh"

[backing]
image = { dir = "nvme", size = "20GiB" }

[[target]]
fs = "ext4"
mkfs = ["-O", "^has_journal"]

[[target]]
fs = "btrfs"
mount = ["compress=zstd:1"]

[[target]]
name = "mine"
fs = "btrfs"
variant = "lzo"
backing = { memory = "8GiB" }

[matrix]                         # every target x every value
scheduler = ["none", "bfq"]

[[work]]
workload = "tree"
source = "~/src/ffmpeg"
files = 20_000
repeats = 3
count = { write = 1, tar-read = 20 }

[[work]]
name = "small"
workload = "tree"
bytes = "64k"
pause = "2s"
shape = "flat"
count = 2.5

[verdict]
require = ["snapshots", "checksums"]
limit = { space = "10GiB", "write/device_write_bytes" = "4GiB" }

[stop]
threshold = "5%"
budget = "2h"

[host]
dirty_bytes = "1GiB"
"#;

    fn names(plan: &Plan) -> Vec<&str> {
        plan.targets.iter().map(|target| target.name.as_str()).collect()
    }

    #[test]
    fn the_sample_says_what_it_says() {
        let plan = read(SAMPLE).unwrap();
        let expected = [
            "ext4 -O ^has_journal none",
            "ext4 -O ^has_journal bfq",
            "btrfs compress=zstd:1 none",
            "btrfs compress=zstd:1 bfq",
            "mine none",
            "mine bfq",
            "ext4 -O ^has_journal none (again)",
        ];
        assert_eq!(names(&plan), expected);
        assert_eq!((plan.title.as_str(), plan.seed, plan.executor.as_str()), ("Daily work on this NVMe", 42, "local"));
        assert_eq!(plan.reference, expected[0]);
        assert_eq!(plan.stop, Stop { threshold: 0.05, budget_ns: Some(7_200_000_000_000), ..Stop::default() });
        assert_eq!(plan.host, HostSettings { dirty_bytes: Some(1 << 30), ..HostSettings::default() });
        assert!(plan.targets.iter().all(|target| target.discard == Discard::Fresh));
        assert_eq!(plan.targets[6].mkfs, ["-O", "^has_journal"]);
        assert!(plan.targets[6].duplicate && !plan.targets[0].duplicate);
        let mine = json!({"name": "mine bfq", "backing": {"name": "memory", "settings": {"size": 8_u64 << 30}},
            "fs": "btrfs", "variant": "lzo", "mkfs": [], "mount": [], "scheduler": "bfq", "discard": "fresh",
            "duplicate": false});
        assert_eq!(serde_json::to_value(&plan.targets[5]).unwrap(), mine);
        let image = json!({"dir": "/plans/nvme", "size": 20_u64 << 30, "direct": true});
        assert_eq!(serde_json::to_value(&plan.targets[3].backing.settings).unwrap(), image);
    }

    #[test]
    fn work_is_checked_and_completed() {
        let plan = read(SAMPLE).unwrap();
        let source = format!("{}/src/ffmpeg", std::env::var("HOME").unwrap());
        let expected = json!([
            {"name": "tree", "workload": {"name": "tree", "settings": {
                "source": source, "files": 20000, "pause": 250_000_000, "shape": "deep"}}, "repeats": 3},
            {"name": "small", "workload": {"name": "tree", "settings": {
                "bytes": 65536, "files": 4000, "pause": 2_000_000_000_u64, "shape": "flat"}}}]);
        assert_eq!(serde_json::to_value(&plan.works).unwrap(), expected);
        let expected = json!({"costs": true, "parts": [{"work": "tree", "phase": "write", "amount": 1.0},
            {"work": "tree", "phase": "tar-read", "amount": 20.0}, {"work": "small", "phase": null, "amount": 2.5}],
            "require": ["checksums", "snapshots"],
            "limits": [{"phase": null, "metric": "space_grown_bytes", "at_most": 1024.0 * 1024.0 * 10240.0},
            {"phase": "write", "metric": "device_write_bytes", "at_most": 1024.0 * 1024.0 * 4096.0}]});
        assert_eq!(serde_json::to_value(&plan.verdict).unwrap(), expected);
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let plan = read(&with("BTW", "")).unwrap();
        assert_eq!((names(&plan), plan.seed, plan.title.as_str()), (vec!["ext4", "ext4 (again)"], 1, "nvme"));
        assert_eq!((plan.stop, plan.host, plan.rank_weakened), (Stop::default(), HostSettings::default(), false));
        // The defaults of rows are those of journals that do not say.
        assert_eq!(read(&with("BTW", "[stop]\n[host]")).unwrap(), plan);
        let untitled = from_toml(&with("BTW", ""), "", Path::new("/"), &catalogue()).unwrap();
        assert_eq!(untitled.title, "ext4");
    }

    #[test]
    fn plans_that_are_right() {
        let dirs = "backing = { directory = [\"/a\", \"b\"] }";
        let rows: &[(&str, &str, &[&str])] = &[
            ("W", dirs, &["/a", "/plans/b", "/a (again)"]),
            ("W", "backing = { directory = \"/a\" }\nduplicate = false", &["/a"]),
            ("W", &format!("{dirs}\nreference = \"/plans/b\""), &["/a", "/plans/b", "/plans/b (again)"]),
            ("W", "[[target]]\nbacking.directory.path = \"/a\"\nname = \"here\"", &["here", "here (again)"]),
            ("BW", "duplicate = false\n[[target]]\nfs = \"xfs\"\nscheduler = \"bfq\"", &["xfs bfq"]),
            ("BW", "[[target]]\nfs = \"btrfs\"\nvariant = \"zstd:1\"", &["btrfs zstd:1", "btrfs zstd:1 (again)"]),
            (
                "BW",
                "duplicate = false\n[[target]]\nfs = \"btrfs\"\nmount = [\"noatime\"]\nnodatacow = true\nscheduler = \"bfq\"",
                &["btrfs noatime nodatacow bfq"],
            ),
            ("BW", "duplicate = false\n[[target]]\nfs = \"ext4\"\nnodatacow = false\noverlay = false", &["ext4"]),
            ("BW", "duplicate = false\n[[target]]\nfs = \"ext4\"\noverlay = true", &["ext4 overlay"]),
            (
                "BW",
                "duplicate = false\n[[target]]\nfs = \"ext4\"\nmount = [\"noatime\"]\nabove = [\"gocryptfs\", { overlayfs = {} }]\nlayers = [\"luks\"]",
                &["ext4 noatime + gocryptfs + overlayfs on luks"],
            ),
            ("BTW", "duplicate = false\n[matrix]\nmount = [\"\", \"noatime\"]", &["ext4", "ext4 noatime"]),
            (
                "BTW",
                "duplicate = false\n[matrix]\nscheduler = [\"bfq\", \"none\"]\nmkfs = [\"-E1\", \"\"]",
                &["ext4 -E1 bfq", "ext4 -E1 none", "ext4 bfq", "ext4 none"],
            ),
            ("BTW", "jobs = 1", &["ext4", "ext4 (again)"]),
            ("BTW", "executor = 'sim'\njobs = 4", &["ext4"]),
            ("BTW", "seed = 0xffff_ffff_ffff_ffff\n[stop]\nrounds = 1000", &["ext4", "ext4 (again)"]),
        ];
        for (given, text, expected) in rows {
            assert_eq!(names(&read(&with(given, text)).unwrap()), *expected, "{text}");
        }
    }

    #[rustfmt::skip]
    const HOSTILE: &[Hostile] = &[
        // Not TOML.
        ("", "seed = ", &[(1, "not TOML")]),
        ("", "seed = 1\nseed = 2", &[(2, "duplicate key")]),
        ("", "\n[stop\n", &[(2, "not TOML")]),
        ("", "title = \"a\u{0}\"", &[(1, "not TOML")]),
        ("", "title = 'a", &[(1, "not TOML")]),
        // Keys of the plan.
        ("", "", &[(1, "no targets"), (1, "no work")]),
        ("BTW", "sed = 1", &[(1, "did you mean `seed`?")]),
        ("BTW", "colour = 1\nflavour = 2", &[(1, "no key `colour`"), (2, "no key `flavour`")]),
        ("BTW", "title = 3", &[(1, "`title` must be text in quotes, but it is a whole number")]),
        ("BTW", "title = ' '", &[(1, "is empty")]),
        ("BTW", "title = \"a\\u001bb\"", &[(1, "control character in it: `a\\u{1b}b`")]),
        ("BTW", "seed = -1", &[(1, "`seed` is negative")]),
        ("BTW", "seed = 18446744073709551616", &[(1, "`seed` is too large")]),
        ("BTW", "seed = 1.5", &[(1, "must be a whole number, but it is a number with a point")]),
        ("BTW", "seed = 1979-05-27", &[(1, "it is a date")]),
        ("BTW", "reference = 'ext5'", &[(1, "did you mean `ext4`?")]),
        ("BTW", "reference = ['ext4']", &[(1, "it is a list")]),
        ("BTW", "rank_weakened = 'yes'", &[(1, "true or false")]),
        ("BTW", "other_speeds = true", &[(1, "`other_speeds` is of simulations")]),
        ("BTW", "duplicate = 0", &[(1, "true or false")]),
        ("BTW", "executor = 'slrum'", &[(1, "no executor `slrum`")]),
        ("BTW", "jobs = 2", &[(1, "would share the memory bus")]),
        ("BTW", "jobs = 0", &[(1, "`jobs` must be 1")]),
        ("BTW", "executor = 'sim'\njobs = 0", &[(2, "from 1 to 1000")]),
        ("BTW", "jobs = 'many'", &[(1, "must be a whole number")]),
        ("BTW", "turn = 'shared'", &[(1, "cannot be `shared` with the executor `local`")]),
        ("BTW", "discard = 'all'", &[(1, "use one of `none`, `fresh` and `trim`")]),
        // The backing.
        ("TW", "backing = 'image'", &[(1, "must be a table")]),
        ("TW", "backing = {}", &[(1, "is empty")]),
        ("TW", "[backing]\nimage = '/a'\nmemory = '1GiB'", &[(3, "a second backing `memory`")]),
        ("TW", "[backing]\nimige = '/a'", &[(2, "did you mean `image`?")]),
        ("TW", "[backing]\nimage = 7", &[(2, "`dir` must be text")]),
        ("TW", "[backing]\nimage = ['/a']", &[(2, "it is a list")]),
        ("TW", "[backing.image]\ndir = ''\nsize = '4 parsecs'\ndirect = 1",
            &[(2, "`dir` is empty"), (3, "`size` must be a size"), (4, "true or false")]),
        ("TW", "[backing.image]\nsize = -5", &[(2, "`size` is negative")]),
        ("TW", "[backing.image]\nsize = 0", &[(2, "out of range")]),
        ("TW", "[backing.image]\nsize = 1e300", &[(2, "it is a number with a point")]),
        ("TW", "[backing.image]\nsise = '4GiB'", &[(2, "did you mean `size`?")]),
        ("TW", "[backing.image]\ndir = \"a\\nb\"", &[(2, "control character")]),
        ("TW", "[backing.image]\ndir = '~root/x'", &[(2, "home directory of another user")]),
        ("TW", "[backing]\ndirectory = ['/a', '/b']", &[(2, "several paths")]),
        ("W", "target = [{ fs = 'ext4' }]\n[backing]\ndirectory = '/a'", &[(1, "`fs` cannot be chosen on `directory`")]),
        ("W", "[backing]\ndirectory = []", &[(2, "empty list")]),
        ("W", "[backing]\ndirectory = ['/a', 3]", &[(2, "`path` must be text")]),
        ("W", "[backing]\ndirectory = ['/a', '/a']", &[(2, "a second target is named `/a`")]),
        ("W", "[backing]\ndirectory = {}", &[(2, "`directory` needs `path`")]),
        ("W", "[backing]\ndevice = { path = '/dev/x', signatures = ['ext4', ''] }", &[(2, "is empty"), (2, "no targets")]),
        ("W", "backing = { image = '/a' }", &[(1, "the plan has no targets, and `image` needs")]),
        // Targets.
        ("BW", "target = 'ext4'", &[(1, "`target` must be a list")]),
        ("BW", "target = []", &[(1, "empty list")]),
        ("BW", "target = [1, { fs = 'ext4' }]", &[(1, "must be a table")]),
        ("BW", "[target]\nfs = 'ext4'", &[(1, "[[target]], with two brackets")]),
        ("BW", "[[target]]", &[(1, "this target has no `fs`")]),
        ("W", "[[target]]\nfs = 'ext4'", &[(1, "no backing")]),
        ("BW", "[[target]]\nfs = 'ext5'", &[(2, "did you mean `ext4`? `pickfs list fs`")]),
        ("BW", "[[target]]\nfs = 'ntfs-3g'", &[(2, "use one of `btrfs`, `ext4` and `xfs`")]),
        ("BW", "[[target]]\nfs = 'btrfs'\nvariant = 'zstd:9'", &[(3, "`lzo`, `nocow`")]),
        ("BW", "[[target]]\nfs = 'ext4'\nvariant = 'lzo'", &[(3, "ext4 has no variant `lzo`")]),
        ("BW", "[[target]]\nfs = 'ext4'\nmount = 'noatime'", &[(3, "must be a list, but it is the text")]),
        ("BW", "[[target]]\nfs = 'ext4'\nmount = ['a,b', '', 'c']", &[(3, "\"a\", \"b\""), (3, "is empty")]),
        ("BW", "[[target]]\nfs = 'xfs'\nmkfs = [\n'-l', 'logdev=/dev/sda']", &[(4, "names a device")]),
        ("BW", "[[target]]\nfs = 'xfs'\nmkfs = [[]]\nscheduler = 3", &[(3, "it is a list"), (4, "`scheduler` must be")]),
        ("BW", "[[target]]\nfs = 'ext4'\nnodatacow = true", &[(3, "ext4 has no copy on write of data")]),
        ("BW", "[[target]]\nfs = 'btrfs'\nnodatacow = 'yes'", &[(3, "must be true or false")]),
        ("BW", "[[target]]\nfs = 'xfs'\noverlay = true", &[(3, "on xfs: xfs is read-only in this test")]),
        ("BW", "[[target]]\nfs = 'ext4'\nabove = ['gocryptfs', 'overlayfs', 'gocryptfs']", &[(3, "3 are too many in this test")]),
        ("BW", "[[target]]\nfs = 'xfs'\nabove = ['gocryptfs', 'gocryptf', 3]", &[(3, "did you mean `gocryptfs`"), (3, "one layer")]),
        ("W", "[[target]]\noverlay = true\nbacking.directory = '/a'", &[(2, "`overlay` cannot be chosen on `directory`")]),
        ("BW", "[[target]]\nfs = 'ext4'\ndiscard = 'trim'", &[(3, "faster for every target that comes after")]),
        ("BW", "[[target]]\nfs = 'ext4'\nseed = 3\nlevels = 1", &[(3, "belongs to the whole plan"), (4, "no key `levels`")]),
        ("BW", "[[target]]\nfs = 'ext4'\n[[target]]\nfs = 'ext4'", &[(3, "give one of the two another `name`")]),
        ("BTW", "\n[[target]]\nfs = 'ext4'", &[(2, "not TOML")]),
        ("BW", "[[target]]\nfs = 'ext4'\nname = ''", &[(3, "`name` is empty")]),
        ("BW", "[[target]]\nfs = 'ext4'\n[[target]]\nfs = 'xfs'\nname = 'ext4 (again)'", &[(5, "is kept for")]),
        ("W", "[[target]]\nbacking.directory = '/a'\nvariant = 'x'\nmkfs = ['-f']\nmount = ['ro']",
            &[(3, "brings its own"), (4, "brings its own"), (5, "brings its own")]),
        ("TW", "[backing]\nimage = { size = '512k' }", &[(2, "ext4 needs at least 1.00 MiB, but the size is 512 KiB")]),
        ("W", "backing = { image = { size = '1k' } }\ntarget = [{ fs = 'ext4' }, { fs = 'ext4', name = 'b' }]",
            &[(1, "the size is 1.00 KiB")]),
        ("W", "target = [{ name = 'x' }]\n[backing]\ndirectory = ['/a', 3, '/b']", &[(3, "`path` must be text")]),
        ("W", "[[target]]\nfs = 'xfs'\n[target.backing.image]\nsize = '299MiB'", &[(4, "xfs needs at least 300 MiB")]),
        // Products.
        ("BTW", "[matrix]\nkernel = ['6.1']", &[(2, "[matrix] has no key `kernel`")]),
        ("BTW", "[matrix]\nscheduler = 'bfq'\nmount = [1]", &[(2, "must be a list"), (3, "must be text")]),
        ("BTW", "[matrix]\nscheduler = ['', 'bfq', 'bfq']", &[(2, "is empty"), (2, "`bfq` twice")]),
        ("BTW", "[matrix]\nmount = ['a,b']\nmkfs = []", &[(2, "more than one mount option"), (3, "empty list")]),
        ("BW", "[matrix]\nscheduler = ['bfq']\n[[target]]\nfs = 'xfs'\nscheduler = 'none'", &[(2, "itself")]),
        ("W", "[backing]\ndirectory = '/a'\n[matrix]\nmount = ['ro']", &[(4, "no file system is made")]),
        // Work.
        ("BT", "work = [{}]", &[(1, "no `workload`")]),
        ("BT", "[work]\nworkload = 'tree'", &[(1, "[[work]], with two brackets")]),
        ("BT", "[[work]]\nworkload = 'treee'\n[[work]]\nworkload = 1", &[(2, "did you mean `tree`?"), (4, "must be text")]),
        ("BT", "[[work]]\nworkload = 'tree'\n[[work]]\nworkload = 'tree'", &[(4, "a second work is named `tree`")]),
        ("BT", "[[work]]\nworkload = 'meta.ok'\nfiles = 3", &[(3, "there is nothing to set")]),
        ("BT", "[[work]]\nworkload = 'tree'\nfile = 3\nbytes = '9e9'", &[(3, "did you mean `files`?"), (4, "a size")]),
        ("BT", "[[work]]\nworkload = 'tree'\nfiles = -1\nbytes = true", &[(3, "is negative"), (4, "true or false")]),
        ("BT", "[[work]]\nworkload = 'tree'\nfiles = [10, 100]", &[(3, "must be a whole number, but it is a list")]),
        ("BT", "[[work]]\nworkload = 'tree'\npause = 90\nshape = 'odd'", &[(3, "\"90s\""), (4, "`deep` and `flat`")]),
        ("BT", "[[work]]\nworkload = 'tree'\nlabel = {}\nname = \"a\\tb\"", &[(3, "it is a table"), (4, "control")]),
        // Limits.
        ("BTW", "[stop]\nrounds = 0", &[(2, "from 1 to 1000")]),
        ("BTW", "[stop]\nrounds = 1001\nbudget = '2 fortnights'\ncell = ''\nthreshold = '300%'",
            &[(2, "out of range"), (3, "a duration"), (4, "is empty"), (5, "less than 100%")]),
        ("BTW", "[stop]\nrounds = 9\nprecision = '2%'\nrace = true", &[(3, "acts at interim analyses"), (4, "acts at interim analyses")]),
        ("BTW", "[stop]\nthreshold = '0%'\nprecision = 3", &[(2, "more than 0%"), (3, "`precision` must be")]),
        ("BTW", "stop = 3\nhost = 'x'", &[(1, "must be a table"), (2, "must be a table")]),
        ("BTW", "[host]\ndirty_expire = '1ms'", &[(2, "shorter than the kernel counts")]),
        ("BTW", "[host]\ndirty_bytes = 1\ndirty_background_bytes = '64MiB'", &[(3, "less than `dirty_bytes`")]),
        ("BTW", "executor = 'sim'\n[host]\ncpu_latency_us = 0", &[(3, "simulated processors wake up at once")]),
        ("BTW", "[host]\ncpu_latency_us = '0us'", &[(2, "whole number")]),
        ("BTW", "[host]\nswap = 1", &[(2, "no key `swap`")]),
    ];

    #[test]
    fn hostile_plans_get_all_their_complaints() {
        assert!(HOSTILE.len() >= 50);
        complained(HOSTILE);
    }

    #[test]
    fn deep_and_long_plans_are_complained_of() {
        let many: Vec<String> = (0..200).map(|i| format!("\"-{i}\"")).collect();
        let list = many.join(", ");
        let rows = [
            (format!("x = {}1{}", "[".repeat(5000), "]".repeat(5000)), "use fewer brackets and dots"),
            (format!("{}x = 1", "a.".repeat(5000)), "use fewer brackets and dots"),
            (with("BTW", &format!("[matrix]\nmkfs = [{list}]\nmount = [{}]", list.replace('-', "o"))), "1000 targets"),
            (with("BTW", &format!("executor = 'vm'\n[matrix]\nkernel = [{}]", "'a', ".repeat(1001))), "1001 targets"),
            (with("BTW", &format!("reference = \"{}\"", "é".repeat(5000))), "not among the targets"),
        ];
        for (text, says) in rows {
            let complaints = read(&text).unwrap_err();
            assert!(render(&text, "a.toml", &complaints, false).contains(says), "{complaints:?}");
        }
    }

    #[test]
    fn a_plan_cut_off_anywhere_never_panics() {
        for end in 0..SAMPLE.len() {
            let text = String::from_utf8_lossy(&SAMPLE.as_bytes()[..end]);
            if let Err(complaints) = read(&text) {
                assert!(!complaints.is_empty() && !render(&text, "a.toml", &complaints, true).is_empty());
            }
        }
    }

    #[test]
    fn any_value_anywhere_never_panics() {
        let mut wrong = 0;
        for (at, line) in SAMPLE.lines().enumerate() {
            let Some((key, _)) = line.split_once(" = ") else { continue };
            for value in
                ["\"\"", "0", "-1", "1e300", "true", "[]", "{}", "[[{}]]", "{ a.b = 1 }", "99999999999999999999"]
            {
                let replaced = format!("{key} = {value}");
                let lines = SAMPLE.lines().enumerate().map(|(i, line)| if i == at { &*replaced } else { line });
                let text = lines.collect::<Vec<_>>().join("\n");
                let Err(complaints) = read(&text) else { continue };
                wrong += 1;
                assert!(complaints.iter().all(|complaint| !complaint.help(Voice::File).is_empty()), "{text}");
                assert!(render(&text, "a.toml", &complaints, false).contains("help: "));
            }
        }
        assert!(wrong > 150, "{wrong}");
    }
}
